"""What an experiment logs is what it computed, to the last bit; what cannot be logged is kept."""

from __future__ import annotations

import html
import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from experiment.loaded import load_parts

import rankeval as rk
from rankeval.contamination import refusal
from rankeval.errors import ConfigError, GuardRefusal, InvalidInput, RankevalWarning
from rankeval.experiment import check_config, load_config, run_experiment

SHORT = [
    "rankers.lambdarank.params.n_estimators=10",
    "rankers.xgboost.params.n_estimators=10",
    "rankers.catboost.params.iterations=10",
    "cv.n_splits=2",
]
DIGITS = [
    "data.arguments={n_queries: 50, n_candidates: 12}",
    "rankers.boosted-trees.params={max_iter: 5}",
    "rankers.boosted-trees.grid={}",
    "cv.n_splits=2",
]


def logged(result):
    """Return the store's client and the runs of a result: the parent, then its children."""
    import mlflow

    client = mlflow.MlflowClient(result.config.tracking.uri)
    return client, [client.get_run(run.run_id) for run in (result.tracked, *result.tracked.children)]


def mlflow_json(client, run, path):
    """Return the content of an artifact."""
    with tempfile.TemporaryDirectory() as folder:
        return json.loads(Path(client.download_artifacts(run.info.run_id, path, folder)).read_text())


@pytest.fixture(autouse=True)
def _own_store(tmp_path, empty_database):
    """Give the test a store whose tables exist, and put MLflow's own setting back, which is one for the process."""
    import mlflow

    shutil.copy(empty_database, tmp_path / "mlflow.db")
    yield
    mlflow.set_tracking_uri(None)


def assert_logged_as_computed(result):
    """Hold MLflow's per-query scores against `rk.evaluate` on the saved predictions."""
    import mlflow

    import rankeval_mlflow

    mlflow.set_tracking_uri(result.config.tracking.uri)
    _, (_, *children) = logged(result)
    assert [run.info.run_name for run in children] == list(result.config.rankers)
    for run in children:
        frame = pd.read_parquet(result.predictions(run.info.run_name))
        computed = rk.evaluate(
            frame["relevance"], frame["score"], qid=frame["qid"], measures=result.config.all_measures
        )
        kept = rankeval_mlflow.load_evaluation(run.info.run_id, role="test")
        pd.testing.assert_frame_equal(kept.per_query, computed.per_query, check_exact=True)
        assert run.data.metrics["test/nDCG_at_10"] == computed.aggregate()["nDCG@10"]


@pytest.mark.further
def test_a_run_has_a_parent_with_the_comparison_and_a_child_per_ranker(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///elsewhere.db")
    result = run_experiment(load_config("quickstart", [*DIGITS, f"tracking.uri=sqlite:///{tmp_path}/mlflow.db"]))
    client, (parent, *children) = logged(result)
    assert parent.data.tags["rankeval.standing"] == "confirmatory"
    for run in (parent, *children):
        assert run.data.tags["rankeval.guard.head"] == result.guard.head
        guard = mlflow_json(client, run, "rankeval/record/manifest.json")["facts"]["record"]["guard"]
        assert guard["guard.elsewhere"] == "0"
    for role, is_said in (("test", True), ("dev", False)):
        path = client.download_artifacts(children[0].info.run_id, f"rankeval/{role}/report.html", str(tmp_path))
        assert (result.guard.line in html.unescape(Path(path).read_text())) is is_said
    assert parent.data.tags["rankeval.headline"] == result.comparison.headline
    assert "difference/nDCG_at_10" in parent.data.metrics
    artifacts = {entry.path for entry in client.list_artifacts(parent.info.run_id)}
    assert artifacts >= {"rankeval", "experiment.yaml", "comparison.csv"}
    reports = {file.path for file in client.list_artifacts(result.tracked.run_id, "rankeval/record")}
    assert "rankeval/record/report.html" in reports
    assert parent.data.metrics["test/nDCG_at_10"] == max(
        one.test.aggregate()["nDCG@10"] for one in result.facts.candidates
    )
    roles = {(tag.key, tag.value) for entry in parent.inputs.dataset_inputs for tag in entry.tags}
    assert {("mlflow.data.context", "dev"), ("mlflow.data.context", "test")} <= roles
    for run in children:
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert "rankeval.complete" in run.data.tags
        assert run.data.params["estimator"] == result.config.rankers[run.info.run_name].estimator
    assert_logged_as_computed(result)
    assert not (tmp_path / "elsewhere.db").exists()


def test_the_validation_part_and_the_iterations_are_logged(tmp_path):
    for place, part in enumerate(("train", "vali", "test")):
        rows = [f"{row % 2} qid:{place}{row // 4} 1:{row % 3} 2:{row + place}" for row in range(40)]
        (tmp_path / f"{part}.txt").write_text("\n".join(rows))
    booster = {"estimator": "lightgbm.LGBMRanker", "params": {"n_estimators": 5, "n_jobs": 1, "verbose": -1}}
    config = {
        "name": "early",
        "data": {"loader": "letor", "path": str(tmp_path)},
        "rankers": {
            "ridge": {"estimator": "sklearn.linear_model.Ridge"},
            "boosted": {**booster, "early_stopping_rounds": 2},
        },
        "cv": {"n_splits": 2},
        "tracking": {"uri": f"sqlite:///{tmp_path}/mlflow.db"},
    }
    result = run_experiment(config)
    _, runs = logged(result)
    digests = {one.role: one.digest for one in result.facts.data}
    assert set(digests) == {"dev", "validation", "test"}
    for run in runs:
        tags = [{tag.key: tag.value for tag in entry.tags} for entry in run.inputs.dataset_inputs]
        assert {tag["rankeval.role"]: tag["rankeval.digest"] for tag in tags} == digests
    _, ridge, boosted = runs
    assert boosted.data.metrics["n_iterations"] == result.facts.candidates[1].n_iterations
    assert "n_iterations" not in ridge.data.metrics


RIVALS = {
    "name": "rivals",
    "data": {"loader": "digits", "arguments": {"n_queries": 60, "n_candidates": 15}},
    "rankers": {
        "ridge": {"estimator": "sklearn.linear_model.Ridge"},
        "trees": {"estimator": "lightgbm.LGBMRanker", "params": {"n_estimators": 5, "n_jobs": 1, "verbose": -1}},
    },
    "measures": ["nDCG@10", "AP"],
    "cv": {"n_splits": 3},
}


def rivals(tmp_path, **changes):
    """Run an experiment with a store of its own."""
    guard = {"ledger": str(tmp_path / "ledger.db")}
    return run_experiment({**RIVALS, "guard": guard, "tracking": {"uri": f"sqlite:///{tmp_path}/mlflow.db"}, **changes})


def models_of(client, run):
    """Return the logged models of a run."""
    return [client.get_logged_model(output.model_id) for output in run.outputs.model_outputs]


def assert_predicts(client, run, result):
    """Hold the logged model of a ranker against the scores that were evaluated, bit for bit."""
    import mlflow

    (model,) = models_of(client, run)
    mlflow.set_tracking_uri(result.config.tracking.uri)
    test = load_parts(result.config).test
    frame = pd.read_parquet(result.predictions(run.info.run_name))
    loaded = mlflow.pyfunc.load_model(f"models:/{model.model_id}")
    np.testing.assert_array_equal(loaded.predict(test.X), frame["score"])
    return model


@pytest.mark.further
def test_each_ranker_has_its_folds_its_time_and_its_model_and_a_cached_one_the_same(tmp_path):
    """Nothing is trained for the second run, and its models predict the same as those of the first."""
    before = time.time()
    first, again = rivals(tmp_path), rivals(tmp_path)
    assert (first.n_trained, again.n_trained) == (2, 0)
    runs, flavors = [], []
    for result in (first, again):
        client, (parent, *children) = logged(result)
        assert not models_of(client, parent)
        begin, end = parent.info.start_time, parent.info.end_time
        assert 1000 * before - 1 <= begin < end <= 1000 * time.time() + 1
        for run, candidate in zip(children, result.facts.candidates, strict=True):
            assert begin <= run.info.start_time <= run.info.end_time <= end
            took = (run.info.end_time - run.info.start_time) / 1000
            assert candidate.reused or took >= candidate.seconds - 0.01
            assert run.data.tags["rankeval.trained"] == ("no: cached by an earlier run" if candidate.reused else "yes")
            folds = client.get_metric_history(run.info.run_id, "nDCG_at_10_fold")
            assert [point.step for point in folds] == [0, 1, 2]
            assert all(0 < point.value <= 1 for point in folds)
            model = assert_predicts(client, run, result)
            flavors.append(model.model_type)
            runs.append((run, folds, model))
    assert set(flavors) == {"ranker"}
    for (run, folds, model), (other, same, twin) in zip(runs[:2], runs[2:], strict=True):
        assert [point.value for point in folds] == [point.value for point in same]
        assert run.data.metrics["nDCG_at_10_sd"] == other.data.metrics["nDCG_at_10_sd"]
        assert model.params == twin.params
        assert model.model_id != twin.model_id


@pytest.mark.further
def test_the_parent_has_the_measures_of_the_winner_and_the_table_of_rankers(tmp_path):
    result = rivals(tmp_path)
    client, (parent, *children) = logged(result)
    best = max(children, key=lambda run: run.data.metrics["test/nDCG_at_10"])
    for name in ("nDCG_at_10", "test/nDCG_at_10", "AP"):
        assert parent.data.metrics[name] == best.data.metrics[name]
    assert parent.data.params["system"] == best.info.run_name
    table = mlflow_json(client, parent, "rankeval/record/rankers.json")
    first, *others = (row[0] for row in table["data"])
    assert first == best.info.run_name
    assert len(others) == 1


@pytest.mark.further
def test_a_model_that_no_earlier_run_kept_is_told(tmp_path):
    rivals(tmp_path, tracking="off")
    client, (_, *children) = logged(rivals(tmp_path))
    for run in children:
        assert run.data.tags["rankeval.trained"] == "no: cached by an earlier run, which kept no model"
        assert not models_of(client, run)


def test_a_ranker_that_cannot_be_saved_is_a_warning_and_the_run_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("rankeval_mlflow.saving._write", _refuse)
    with pytest.warns(RankevalWarning, match="The ranker was not saved: ValueError: not in this flavour"):
        result = rivals(tmp_path)
    client, (parent, *children) = logged(result)
    assert parent.info.status == "FINISHED"
    for run in children:
        assert not models_of(client, run)
        assert "not in this flavour" in run.data.tags["mlflow.note.content"]


def _refuse(*_):
    raise ValueError("not in this flavour")


@pytest.mark.further
def test_a_damaged_packed_model_is_a_warning(tmp_path):
    first = rivals(tmp_path)
    for path in first.directory.glob("kept/*/model-mlflow"):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(RankevalWarning, match="the packed model is damaged"):
        again = rivals(tmp_path)
    assert again.n_trained == 0
    client, (_, *children) = logged(again)
    assert not any(models_of(client, run) for run in children)


def failed_run(tmp_path):
    """Return the client, and the only run of the store."""
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.get_experiment_by_name("rivals")
    (run,) = client.search_runs([experiment.experiment_id])
    return client, run


def test_a_refusal_ends_the_run_as_failed_with_its_reason_and_nothing_scored(tmp_path, monkeypatch):
    ledger = tmp_path / "ledger.db"
    monkeypatch.setenv("RANKEVAL_LEDGER", str(ledger))
    refusal.forget()
    config = check_config({**RIVALS, "tracking": "off"})
    dev = load_parts(config).dev
    rk.Guard("someone-else", ledger=str(ledger)).register("theirs", dev.X, dev.y, qid=dev.qid)
    with pytest.raises(GuardRefusal, match="theirs"):
        rivals(tmp_path)
    refusal.forget()
    client, run = failed_run(tmp_path)
    assert run.info.status == "FAILED"
    assert run.info.end_time >= run.info.start_time
    assert run.data.tags["rankeval.headline"].startswith("No result. GuardRefusal: ")
    assert "theirs" in run.data.tags["mlflow.note.content"]
    assert not run.data.metrics
    assert run.data.params["primary"] == "nDCG@10"
    roles = {tag.value for use in run.inputs.dataset_inputs for tag in use.tags if tag.key == "rankeval.role"}
    assert roles == {"dev", "test"}
    assert "experiment.yaml" in {entry.path for entry in client.list_artifacts(run.info.run_id)}


def test_an_error_ends_the_run_as_failed_and_a_wrong_file_is_no_run(tmp_path):
    import mlflow

    with pytest.raises(ConfigError, match="folds"):
        rivals(tmp_path, cv={"n_splits": 1000})
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    assert client.get_experiment_by_name("rivals") is None
    broken = {"ridge": RIVALS["rankers"]["ridge"], "odd": {"estimator": "experiment.broken.Broken"}}
    with pytest.raises(InvalidInput, match=r"rankers\.odd: .* ZeroDivisionError: nothing to divide by"):
        rivals(tmp_path, rankers=broken)
    _, run = failed_run(tmp_path)
    assert run.info.status == "FAILED"
    assert run.data.tags["rankeval.headline"].endswith("cannot be trained: ZeroDivisionError: nothing to divide by")


def test_a_failed_run_that_cannot_be_logged_hides_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    broken = {"odd": {"estimator": "experiment.broken.Broken"}}
    with (
        pytest.warns(RankevalWarning, match="cannot be reached now"),
        pytest.warns(RankevalWarning, match="the failed run was not logged: .*127.0.0.1:9"),
        pytest.raises(InvalidInput, match="nothing to divide by"),
    ):
        rivals(tmp_path, rankers=broken, tracking={"uri": "http://127.0.0.1:9"})


ALL_FOUR = [pytest.mark.rest, pytest.mark.needs("xgboost", "catboost")]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("folder", "left_out"),
    [
        pytest.param("letor_cranfield/Fold1", ["rankers.xgboost=null", "rankers.catboost=null"], id="two rankers"),
        pytest.param("letor_cranfield/Fold1", [], marks=ALL_FOUR),
        pytest.param("ltr_lightgbm", [], marks=ALL_FOUR),
    ],
)
def test_letor_folders_run_with_all_rankers_and_again_for_nothing(folder, left_out, shared: Path, tmp_path):
    settings = [
        f"data.path={shared / folder}",
        f"guard.ledger=sqlite:///{tmp_path}/ledger.db",
        f"tracking.uri=sqlite:///{tmp_path}/mlflow.db",
        *(setting for setting in SHORT if not left_out or "boost." not in setting),
        *left_out,
    ]
    n_rankers = 4 - len(left_out)
    first = run_experiment(load_config("letor", settings))
    assert (first.n_trained, first.looks_added, first.guard.standing) == (n_rankers, n_rankers - 1, "confirmatory")
    assert_logged_as_computed(first)
    second = run_experiment(load_config("letor", [*settings, "tracking=off"]))
    assert (second.n_trained, second.looks_added) == (0, 0)
    np.testing.assert_array_equal(
        [each.test.scores for each in first.facts.candidates], [each.test.scores for each in second.facts.candidates]
    )
