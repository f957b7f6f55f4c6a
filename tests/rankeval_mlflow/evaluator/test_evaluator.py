"""`mlflow.models.evaluate` with a ranker gives, logs and returns what `rankeval.evaluate` gives."""

from __future__ import annotations

import math

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.exceptions import MlflowException
from mlflow.models import MetricThreshold

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.evaluation import from_bytes, to_bytes
from rankeval_mlflow.delivery.sending import send
from rankeval_mlflow.delivery.spool import waiting

MEASURES = ["nDCG@10", "AP", "P(rel=2)@5"]
CONFIG = {"qid": "qid", "docid": "docid", "measures": MEASURES}


def expected(frame, **options):
    return rk.evaluate(frame["relevance"], frame["bm25"], qid=frame["qid"], measures=MEASURES, **options)


def evaluated(model, data, *, run=None, **options):
    """Call MLflow in a run of its own, and return the result and the run as it is afterwards."""
    options = {"evaluators": "rankeval", "evaluator_config": CONFIG, "model_type": "ranker", **options}
    with mlflow.start_run(run) as active:
        result = mlflow.models.evaluate(model, data, **options)
    return result, mlflow.get_run(active.info.run_id)


def inputs_of(kind, frame, logged, function):
    """Return model, data and options of a call, for each kind of input that MLflow has."""
    rows = frame.drop(columns="bm25")
    static = frame.drop(columns=["first", "second"])
    return {
        "uri": (logged.model_uri, rows, {"targets": "relevance"}),
        "pyfunc": (mlflow.pyfunc.load_model(logged.model_uri), rows, {"targets": "relevance"}),
        "function": (function, rows, {"targets": "relevance"}),
        "static": (None, static, {"targets": "relevance", "predictions": "bm25"}),
        "dataset": (None, mlflow.data.from_pandas(static, targets="relevance", predictions="bm25", name="web"), {}),
    }[kind]


def check_once(run, client, result, ev, assert_same):
    """Each metric has one point in the run, is returned, and the evaluation is loaded again, bit for bit."""
    values = dict(zip((one.key for one in ev.measures), ev.aggregate(), strict=True))
    assert values.items() <= result.metrics.items()
    assert run.data.metrics == result.metrics
    histories = {key: client.get_metric_history(run.info.run_id, key) for key in run.data.metrics}
    assert {key: len(points) for key, points in histories.items()} == dict.fromkeys(result.metrics, 1)
    back = rkm.load_evaluation(run.info.run_id)
    pd.testing.assert_frame_equal(back.per_query, ev.per_query, check_exact=True)
    assert_same(back, from_bytes(to_bytes(back)))
    assert back.judgments_digest == ev.judgments_digest
    assert back.ranking_digest == ev.ranking_digest
    assert run.info.status == "FINISHED"


@pytest.mark.parametrize("kind", ["uri", "pyfunc", "function", "static", "dataset"])
def test_every_kind_of_input_gives_the_values_of_evaluate_once(kind, frame, logged, function, client, assert_same):
    """A model by URI, a pyfunc model, a function, static predictions and a Dataset: equal values, one point each."""
    model, data, options = inputs_of(kind, frame, logged, function)
    result, run = evaluated(model, data, **options)
    check_once(run, client, result, expected(frame, docid=frame["docid"]), assert_same)
    pd.testing.assert_frame_equal(result.artifacts["per_query"].content, expected(frame).per_query, check_exact=True)
    points = mlflow.get_logged_model(logged.model_id).metrics or []
    if kind in {"uri", "pyfunc"}:
        assert {point.key: point.value for point in points} == result.metrics
        assert len(points) == len(result.metrics)
        assert {point.run_id for point in points} == {run.info.run_id}
        assert all(point.dataset_name and point.dataset_digest for point in points)
        assert [model.model_id for model in run.inputs.model_inputs] == [logged.model_id]
        assert rkm.load_evaluation(run.info.run_id).name == "linear"
    else:
        assert not points
        assert rkm.load_evaluation(run.info.run_id).name == (None if kind == "function" else "bm25")


def test_a_server_holds_each_metric_once(server, frame, function, assert_same):
    """Over HTTP, with a logged model and with static predictions."""
    mlflow.set_tracking_uri(server.uri)
    client = mlflow.MlflowClient()
    info = mlflow.pyfunc.log_model(name="linear", python_model=function, pip_requirements=[])
    for model, options in ((info.model_uri, {}), (None, {"predictions": "bm25"})):
        data = frame.drop(columns="bm25") if model else frame.drop(columns=["first", "second"])
        result, run = evaluated(model, data, targets="relevance", **options)
        check_once(run, client, result, expected(frame), assert_same)
    points = mlflow.get_logged_model(info.model_id).metrics
    assert sorted(point.key for point in points) == sorted(result.metrics)


@pytest.mark.parametrize(
    ("evaluators", "config"),
    [
        ("rankeval", {"rankeval": CONFIG}),
        (["rankeval"], {"rankeval": CONFIG}),
        (None, CONFIG),
        (None, {"rankeval": CONFIG}),
        (["default", "rankeval"], {"rankeval": CONFIG}),
    ],
    ids=["name-nested", "list", "default-flat", "default-nested", "beside-default"],
)
def test_every_way_to_name_the_evaluator_gives_the_same(evaluators, config, frame, client, assert_same):
    """By name, in a list, and by MLflow's own resolution; with flat and nested settings."""
    data = frame.drop(columns=["first", "second"])
    result, run = evaluated(
        None, data, targets="relevance", predictions="bm25", evaluators=evaluators, evaluator_config=config
    )
    check_once(run, client, result, expected(frame), assert_same)


def test_other_types_of_model_are_not_ours(frame):
    """A regressor is evaluated by MLflow alone, and a ranker by us alone."""
    data = frame[["relevance", "bm25"]]
    settings = {"targets": "relevance", "predictions": "bm25", "evaluators": None, "evaluator_config": None}
    result, run = evaluated(None, data, model_type="regressor", **settings)
    assert "mean_squared_error" in result.metrics
    assert not [tag for tag in run.data.tags if tag.startswith("rankeval.")]
    with pytest.raises(MlflowException, match="could not be evaluated by any of the registered evaluators"):
        evaluated(None, data, model_type="regressor", **{**settings, "evaluators": ["rankeval"]})


def test_ids_are_fed_to_a_model_only_if_it_asks_for_them(frame):
    """By its signature, or because the caller says so; else the model sees the features."""
    seen = []

    class Looking(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            return model_input["first"] + model_input.get("qid", pd.Series("q0", model_input.index)).str[1:].astype(int)

    rows = frame.drop(columns="bm25")
    signature = mlflow.models.infer_signature(rows[["first", "qid"]], np.zeros(1))
    info = mlflow.pyfunc.log_model(name="looks", python_model=Looking(), signature=signature, pip_requirements=[])
    _, run = evaluated(info.model_uri, rows, targets="relevance")
    scores = rows["first"] + rows["qid"].str[1:].astype(int)
    assert rkm.load_evaluation(run.info.run_id).ranking_digest == (
        rk.evaluate(rows["relevance"], scores, qid=rows["qid"], docid=rows["docid"], measures=MEASURES).ranking_digest
    )

    def look(features):
        seen.append(list(features.columns))
        return features["first"]

    evaluated(look, rows, targets="relevance")
    evaluated(look, rows, targets="relevance", evaluator_config={**CONFIG, "pass_ids": True})
    assert seen == [["first", "second"], ["first", "second", "qid", "docid"]]


def test_a_list_shorter_than_k_is_normalised_by_all_judgments():
    """The list of mlflow #24541: one of five relevant documents was retrieved; nDCG@5 is .339."""
    judged = {"q": dict.fromkeys("12345", 1)}
    retrieved = pd.DataFrame({"qid": ["q"], "docid": ["1"], "score": [0.9], "relevance": [1]})
    config = {"docid": "docid", "measures": "nDCG@5"}
    result, run = evaluated(
        None,
        retrieved.drop(columns="relevance"),
        predictions="score",
        evaluator_config={**config, "qrels": judged},
    )
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, 6))
    assert result.metrics["nDCG_at_5"] == pytest.approx(1 / ideal, abs=1e-15)
    assert round(result.metrics["nDCG_at_5"], 3) == 0.339
    ev = rk.evaluate(judged, {"q": {"1": 0.9}}, measures="nDCG@5")
    assert result.metrics["nDCG_at_5"] == ev.aggregate().iloc[0]
    assert rkm.load_evaluation(run.info.run_id).convention.judgments == "qrels"
    rows, _ = evaluated(None, retrieved, targets="relevance", predictions="score", evaluator_config=config)
    assert rows.metrics["nDCG_at_5"] == 1.0


def test_a_query_without_rows_counts_if_the_judgments_hold_it(frame):
    """With qrels, a query that the ranking lacks is scored as an empty ranking."""
    judgments = frame[["qid", "docid", "relevance"]]
    rows = frame[frame["qid"] != "q3"][["qid", "docid", "bm25"]]
    result, _ = evaluated(None, rows, predictions="bm25", evaluator_config={**CONFIG, "qrels": judgments})
    run = rk.Run(rows["qid"].to_numpy(), rows["docid"].to_numpy(), rows["bm25"].to_numpy())
    ev = rk.evaluate(rk.Qrels.from_frame(judgments), run, measures=MEASURES)
    assert ev.n_queries == 30
    assert result.metrics["AP"] == ev.aggregate()["AP"]


def test_arrays_in_place_of_columns(frame):
    """Data without column names: qid and the weights come as arrays, and the model gets the whole matrix."""
    weights = frame["qid"].str[1:].astype(int).to_numpy() + 1
    result, run = evaluated(
        lambda X: 2 * X[:, 0] + X[:, 1],
        frame[["first", "second"]].to_numpy(),
        targets=frame["relevance"].to_numpy(),
        evaluator_config={"qid": frame["qid"].to_numpy(), "query_weight": weights, "measures": MEASURES},
    )
    ev = expected(frame, query_weight=weights)
    assert result.metrics["AP"] == ev.aggregate()["AP"] != expected(frame).aggregate()["AP"]
    assert rkm.load_evaluation(run.info.run_id).per_query.equals(ev.per_query)


def test_a_changed_convention_reaches_the_evaluation(frame):
    """The preset and a rule of its own stand in the card."""
    data = frame.drop(columns=["first", "second"]).assign(bm25=frame["bm25"].round())
    rules = {"convention": rk.Convention.with_rules("sklearn", no_relevant="skip")}
    result, run = evaluated(
        None, data, targets="relevance", predictions="bm25", evaluator_config={**CONFIG, **rules, "role": "test"}
    )
    ev = rk.evaluate(data["relevance"], data["bm25"], qid=data["qid"], measures=MEASURES, **rules)
    assert result.metrics["nDCG_at_10"] == ev.aggregate().iloc[0]
    assert rkm.load_evaluation(run.info.run_id).convention == ev.convention
    assert run.data.tags["rankeval.role"] == "test"


def test_the_data_set_has_its_name_role_and_full_digest(frame, logged, function):
    """MLflow logs the data set without a role and samples its digest; ours has both, under the same name."""
    model, data, options = inputs_of("dataset", frame, logged, function)
    _, run = evaluated(model, data, evaluator_config={**CONFIG, "role": "test"}, **options)
    found = {one.dataset.digest: {tag.key: tag.value for tag in one.tags} for one in run.inputs.dataset_inputs}
    assert {one.dataset.name for one in run.inputs.dataset_inputs} == {"web"}
    digest = expected(frame, docid=frame["docid"]).judgments_digest
    ours = found.pop(digest.removeprefix("sha256:")[:16])
    assert ours["rankeval.digest"] == digest
    assert ours["rankeval.role"] == ours["mlflow.data.context"] == "test"
    assert list(found.values()) == [{}]  # MLflow's own


def test_a_second_role_in_the_same_run_has_names_of_its_own(frame, logged):
    """The returned metrics have the names under which the run has them, with and without a logged model."""
    rows = frame.drop(columns="bm25")
    first, run = evaluated(logged.model_uri, rows, targets="relevance")
    half = rows[rows["qid"] < "q2"]
    second, run = evaluated(
        logged.model_uri, half, run=run.info.run_id, targets="relevance", evaluator_config={**CONFIG, "role": "test"}
    )
    assert set(second.metrics) == {f"test/{key}" for key in first.metrics}
    assert set(second.artifacts) == {"test/per_query", "test/manifest"}
    assert run.data.metrics == {**first.metrics, **second.metrics}
    assert (
        rkm.load_evaluation(run.info.run_id, "test").n_queries < rkm.load_evaluation(run.info.run_id, "dev").n_queries
    )


def test_thresholds_hold_for_values_and_for_the_ends_of_intervals(frame):
    """`mlflow.validate_evaluation_results` reads what is returned."""
    data = frame.drop(columns=["first", "second"]).assign(noise=np.random.default_rng(1).normal(size=len(frame)))
    good, _ = evaluated(None, data.drop(columns="noise"), targets="relevance", predictions="bm25")
    poor, _ = evaluated(None, data.drop(columns="bm25"), targets="relevance", predictions="noise")
    low, value, high = (good.metrics[f"nDCG_at_10{end}"] for end in ("_ci_low", "", "_ci_high"))
    assert low < value < high
    better = {"nDCG_at_10": MetricThreshold(threshold=0.5, min_absolute_change=0.01, greater_is_better=True)}
    mlflow.validate_evaluation_results(better, good, poor)
    sure = {"nDCG_at_10_ci_low": MetricThreshold(threshold=(low + value) / 2, greater_is_better=True)}
    with pytest.raises(MlflowException, match="nDCG_at_10_ci_low"):
        mlflow.validate_evaluation_results(sure, good)


def test_the_result_can_be_saved_and_loaded(frame, tmp_path):
    """With its metrics and artifacts, as MLflow's own results."""
    data = frame.drop(columns=["first", "second"])
    result, _ = evaluated(None, data, targets="relevance", predictions="bm25")
    result.save(tmp_path / "saved")
    back = type(result).load(tmp_path / "saved")
    assert back.metrics == result.metrics
    pd.testing.assert_frame_equal(back.artifacts["per_query"].content, result.artifacts["per_query"].content)
    assert back.artifacts["manifest"].content == result.artifacts["manifest"].content


def test_registered_content_is_refused_and_the_run_failed(frame, function, tmp_path, monkeypatch):
    """The refusal of the guard comes through MLflow, and no number of it is logged."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    features = frame[["first", "second"]]
    guard = rk.Guard("shop")
    test = guard.register("shop-test", features, frame["relevance"], qid=frame["qid"])
    # Other ids and other labels: only the features tell that these are the rows of the test collection.
    renamed = frame.drop(columns="bm25").assign(qid=frame["qid"].map(lambda one: f"other-{one}"))
    renamed["relevance"] = renamed["relevance"].map({0: 0, 1: 3, 2: 7})
    with pytest.raises(rk.errors.GuardRefusal, match=r"mlflow.models.evaluate was refused.*shop-test"):
        evaluated(function, renamed, targets="relevance")
    (run,) = mlflow.search_runs(output_format="list")
    assert run.info.status == "FAILED"
    assert not run.data.metrics
    assert not [tag for tag in run.data.tags if tag.startswith("rankeval.")]
    guard.open(guard.freeze(test, systems={"bm25": frame["bm25"]}, measure="nDCG@10"))
    result, _ = evaluated(function, frame.drop(columns="bm25"), targets="relevance")
    assert result.metrics["AP"] == expected(frame).aggregate()["AP"]


@pytest.mark.parametrize("by", [str, lambda ledger: rk.Guard("shop", ledger=ledger)], ids=["place", "guard"])
def test_a_ledger_elsewhere_is_respected_too(by, frame, tmp_path, monkeypatch):
    """The key `guard` names a ledger beside the one of the project."""
    from rankeval.contamination.refusal import forget

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKEVAL_LEDGER", raising=False)
    elsewhere = tmp_path / "elsewhere" / "ledger"
    rk.Guard("shop", ledger=elsewhere).register("shop-test", frame[["first"]], frame["relevance"], qid=frame["qid"])
    forget()
    call = {"targets": "relevance", "predictions": "bm25"}
    evaluated(None, frame, **call)
    with pytest.raises(rk.errors.GuardRefusal, match="shop-test"):
        evaluated(None, frame, **call, evaluator_config={**CONFIG, "guard": by(str(elsewhere))})
    forget()


@pytest.mark.parametrize("with_model", [True, False], ids=["model", "static"])
def test_an_upload_that_fails_is_sent_later_with_its_metrics(with_model, frame, logged, client, monkeypatch):
    """MLflow logs no metrics then, so the resend does: once, and for the model too."""

    def broken(*_, **__):
        raise OSError("the disk is full")

    data, options = frame.drop(columns="bm25"), {"targets": "relevance"}
    if not with_model:
        data, options = frame, {"targets": "relevance", "predictions": "bm25"}
    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "log_artifacts", broken)
        with pytest.raises(rk.errors.TrackingError, match="resend"):
            evaluated(logged.model_uri if with_model else None, data, **options)
    (run,) = mlflow.search_runs(output_format="list")
    assert run.info.status == "FAILED"
    assert not run.data.metrics
    (upload,) = waiting()
    run = mlflow.get_run(send(upload).run_id)
    assert run.data.metrics["AP"] == expected(frame).aggregate()["AP"]
    assert {len(client.get_metric_history(run.info.run_id, key)) for key in run.data.metrics} == {1}
    points = mlflow.get_logged_model(logged.model_id).metrics or []
    assert {point.key: point.value for point in points} == (run.data.metrics if with_model else {})
    assert rkm.load_evaluation(run.info.run_id).per_query.equals(expected(frame).per_query)
