"""log and load_evaluation: what comes back is what went in, and nothing that is not whole."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import mlflow
import numpy as np
import pytest

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import ConventionMismatch, InvalidInput, TrackingError
from rankeval.evaluation import to_bytes
from rankeval.tracking import LoggedData
from rankeval_mlflow.delivery.payload import checked_manifest, pieces_of
from rankeval_mlflow.delivery.spool import waiting
from rankeval_mlflow.run_names import COMPLETE, manifest_path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"qid": [f"q{number}" for number in range(20)]},
        {"name": None, "query_weight": dict(enumerate(np.linspace(1, 2, 20)))},
        {"convention": "sklearn", "measures": ["nDCG", "RR"]},
        {"qid": np.array([f"requête {number}" for number in range(20)], dtype=object)},
    ],
    ids=["int ids", "string ids", "weights", "another convention", "object ids"],
)
def test_an_evaluation_comes_back_bit_for_bit(small, assert_same, options):
    evaluation = small(**options)
    tracked = rkm.log(evaluation)
    assert_same(evaluation, rkm.load_evaluation(tracked.run_id))


def with_ends(evaluation):
    """Return the aggregates and the ends of their intervals by metric name."""
    keys = ("nDCG_at_10", "AP", "P__rel.2_at_5")
    ends = {
        f"{key}_{end}": value
        for end in ("ci_low", "ci_high")
        for key, value in zip(keys, evaluation.ci()[end], strict=True)
    }
    return dict(zip(keys, evaluation.aggregate(), strict=True)) | ends


def manifest(client, run):
    """Return the manifest of the only piece of a run, held against the completeness tag."""
    (label,) = pieces_of(run.data.tags)
    with tempfile.TemporaryDirectory() as folder:
        path = client.download_artifacts(run.info.run_id, manifest_path(label), folder)
        return checked_manifest(Path(path).read_bytes(), label, run.data.tags)


def test_tags_of_ours_are_few_and_short(small, client):
    tags = client.get_run(rkm.log(small(), role="dev").run_id).data.tags
    ours = {key: value for key, value in tags.items() if key.startswith("rankeval.")}
    assert set(ours) == {"rankeval.card", "rankeval.complete", "rankeval.kind", "rankeval.record", "rankeval.role"}
    assert all(len(value) <= 40 and "{" not in value for value in ours.values())


def test_the_completeness_tag_names_and_hashes_what_was_written(small, client):
    first, second = (rkm.log(small(), role="dev").run_id for _ in range(2))
    other = rkm.log(small(seed=1), role="dev").run_id
    one, two, three = (client.get_run(run).data.tags[COMPLETE] for run in (first, second, other))
    assert one == two != three
    assert re.fullmatch("dev:[0-9a-f]{16}", one)


@pytest.mark.parametrize(
    ("data", "name", "rows"),
    [
        (None, "judgments-", 160),
        ("letor", "letor", 160),
        (rk.RankingData(np.zeros((160, 2)), np.zeros(160), np.repeat(np.arange(20), 8), name="toy"), "toy", 160),
    ],
    ids=["unnamed", "name", "RankingData"],
)
def test_the_data_set_is_an_input_with_the_role_as_its_context(small, client, data, name, rows):
    evaluation = small()
    run = client.get_run(rkm.log(evaluation, role="test", data=data).run_id)
    (used,) = run.inputs.dataset_inputs
    assert used.dataset.name.startswith(name)
    assert used.dataset.digest == evaluation.judgments_digest[:16]
    assert json.loads(used.dataset.profile) == {"num_rows": rows, "num_queries": 20}
    assert {tag.key: tag.value for tag in used.tags} == {
        "mlflow.data.context": "test",
        "rankeval.role": "test",
        "rankeval.digest": evaluation.judgments_digest,
    }


def test_a_data_set_of_another_role_is_refused(small):
    with pytest.raises(InvalidInput, match="has the role 'dev', the evaluation 'test'"):
        rkm.log(small(), role="test", data=LoggedData("letor", "ab" * 32, "dev", 1, 1))


def test_the_active_run_is_written_to_and_stays_open(small, client):
    with mlflow.start_run() as active:
        tracked = rkm.log(small())
        assert tracked.run_id == active.info.run_id
        assert client.get_run(tracked.run_id).info.status == "RUNNING"


def test_without_an_active_run_a_new_one_is_made_in_the_experiment_that_is_set_and_ended(small, client):
    experiment = mlflow.set_experiment("letor")
    run = client.get_run(rkm.log(small()).run_id)
    assert run.info.experiment_id == experiment.experiment_id
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "ridge"
    assert mlflow.active_run() is None


def test_a_second_role_in_a_run_does_not_touch_the_metrics_of_the_first(small, assert_same, client):
    dev, test = small(), small(seed=3)
    run_id = rkm.log(dev, role="dev").run_id
    rkm.log(test, role="test", run_id=run_id)
    metrics = client.get_run(run_id).data.metrics
    assert metrics["AP"] == dev.aggregate()["AP"]
    assert metrics["test/AP"] == test.aggregate()["AP"]
    assert_same(dev, rkm.load_evaluation(run_id, "dev"))
    assert_same(test, rkm.load_evaluation(run_id, "test"))
    with pytest.raises(InvalidInput, match=r"roles \['dev', 'test'\]; choose one"):
        rkm.load_evaluation(run_id)
    with pytest.raises(InvalidInput, match="no evaluation of role 'train'"):
        rkm.load_evaluation(run_id, "train")


def test_the_same_evaluation_may_be_logged_again_and_another_one_not(small, client):
    run_id = rkm.log(small(), role="dev").run_id
    before = client.get_run(run_id).data.to_dictionary()
    rkm.log(small(), role="dev", run_id=run_id)
    assert client.get_run(run_id).data.to_dictionary() == before
    with pytest.raises(InvalidInput, match="already has an evaluation of role 'dev'"):
        rkm.log(small(seed=1), role="dev", run_id=run_id)
    assert waiting() == []
    assert client.get_run(run_id).data.to_dictionary() == before


def test_a_run_without_the_completeness_tag_is_refused(small, client):
    run_id = rkm.log(small()).run_id
    client.delete_tag(run_id, COMPLETE)
    with pytest.raises(InvalidInput, match=r"no tag rankeval\.complete: it has no whole evaluation"):
        rkm.load_evaluation(run_id)


def test_an_artifact_that_was_altered_is_refused(small, client, tmp_path):
    run_id = rkm.log(small()).run_id
    other = tmp_path / "evaluation.parquet"
    other.write_bytes(to_bytes(small(seed=1)))
    client.log_artifact(run_id, str(other), "rankeval/dev")
    with pytest.raises(TrackingError, match="was altered or replaced"):
        rkm.load_evaluation(run_id)


@pytest.mark.parametrize(
    "arguments",
    [{"run_id": "0" * 32}, {}, {"model_id": "m-" + "0" * 32}, {"model_version": "ranker/7"}],
    ids=["run", "experiment", "model", "version"],
)
def test_what_is_not_there_is_named_before_anything_is_written(small, client, arguments, monkeypatch):
    if not arguments:
        monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "4711")
    with pytest.raises(InvalidInput, match="there is no "):
        rkm.log(small(), **arguments)
    assert client.search_runs(["0"]) == []
    assert waiting() == []
    with pytest.raises(InvalidInput, match="there is no run"):
        rkm.load_evaluation("0" * 32)


def test_a_logged_model_gets_the_metrics_with_their_data_set(small, client):
    model = mlflow.initialize_logged_model("ranker")
    evaluation = small()
    tracked = rkm.log(evaluation, role="test", model_id=model.model_id, data="letor")
    metrics = client.get_logged_model(model.model_id).metrics
    assert {metric.key: metric.value for metric in metrics} == with_ends(evaluation)
    assert {(metric.run_id, metric.dataset_name, metric.dataset_digest) for metric in metrics} == {
        (tracked.run_id, "letor", evaluation.judgments_digest[:16])
    }
    assert [used.model_id for used in client.get_run(tracked.run_id).inputs.model_inputs] == [model.model_id]


def test_a_registered_version_gets_a_tag_and_leads_back_to_the_evaluation(small, assert_same, client):
    client.create_registered_model("ranker")
    version = client.create_model_version("ranker", "s3://models/ranker")
    client.set_registered_model_alias("ranker", "champion", version.version)
    evaluation = small()
    tracked = rkm.log(evaluation, role="test", model_version=version)
    tags = client.get_model_version("ranker", version.version).tags
    row = evaluation.ci().loc["nDCG@10"]
    names = {"mean": "nDCG_at_10", "ci_low": "nDCG_at_10_ci_low", "ci_high": "nDCG_at_10_ci_high"}
    said = {name: float(f"{row[column]:.4g}") for column, name in names.items()}
    assert json.loads(tags["rankeval.evaluation"]) == {"test": {**said, "run_id": tracked.run_id}}
    assert len(tags) == 1
    assert_same(evaluation, rkm.load_evaluation("models:/ranker@champion"))
    assert_same(evaluation, rkm.load_evaluation("models:/ranker/1", "test"))


def test_a_version_that_is_none_is_refused_before_anything_is_written(small, client):
    client.create_registered_model("ranker")
    with pytest.raises(InvalidInput, match="unknown alias of ranker 'champion'; none is known"):
        rkm.log(small(), model_version="ranker@champion")
    with pytest.raises(InvalidInput, match="expected a version of a registered model: 'ranker/7'"):
        rkm.log(small(), model_version="ranker")
    assert client.search_runs(["0"]) == []
    assert waiting() == []


def test_what_comes_from_outside_is_escaped_in_report_and_description(small, client, tmp_path):
    run_id = rkm.log(small("<script>alert(1)</script> | x")).run_id
    page = Path(client.download_artifacts(run_id, "rankeval/dev/report.html", str(tmp_path))).read_text("utf-8")
    note = client.get_run(run_id).data.tags["mlflow.note.content"]
    assert "<script>alert" not in page + note, "the page has a script of its own, and no other"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not re.search(r"(src|href)=.?(https?:|//)", page), "the page stands alone"


def test_a_frame_is_no_evaluation(small):
    with pytest.raises(InvalidInput, match="DataFrame'>; expected a result such as evaluate"):
        rkm.log(small().per_query)


@pytest.mark.parametrize("value", [None, 3, b"x", [], object()], ids=lambda value: type(value).__name__)
def test_odd_runs_are_refused_by_name(value):
    """In one line of our own, and before a store is asked."""
    with pytest.raises(InvalidInput, match=r"^name is [^\n]*; expected the id of a run"):
        rkm.load_evaluation(value)
    with pytest.raises(InvalidInput, match=r"^runs is 3; expected several runs, each by its id or as a model$"):
        rkm.compare_runs(3)
    with pytest.raises(InvalidInput, match=r"^runs is 'abc'; expected several runs, each by its id or as a model$"):
        rkm.compare_runs("abc")


def test_a_subset_comes_back_and_is_told_from_the_whole(small, assert_same, client):
    """Loaded evaluations divide as the logged ones do, and the run of a subset says that it is one."""
    evaluation = small()
    part = evaluation.subset(evaluation.queries[:7])
    whole_run, part_run = rkm.log(evaluation).run_id, rkm.log(part).run_id
    assert_same(rkm.load_evaluation(part_run), part)
    assert_same(rkm.load_evaluation(whole_run).subset(evaluation.queries[:7]), part)
    runs = [client.get_run(run) for run in (whole_run, part_run)]
    facts = [manifest(client, run)["facts"]["dev"] for run in runs]
    for digest in ("judgments", "ranking"):
        assert facts[0][digest] != facts[1][digest]
    assert "a subset: 7 of 20 queries" in runs[1].data.tags["mlflow.note.content"]
    with pytest.raises(rk.errors.ConventionMismatch, match="the same subset of both"):
        rkm.compare_runs([whole_run, part_run])


def test_system_measure_convention_data_and_role_are_parameters(small, client):
    with mlflow.start_run() as run:
        rkm.log(small(), role="dev", data="letor")
        rkm.log(small("trees", seed=1), role="test", data="letor")
    assert client.get_run(run.info.run_id).data.params == {
        "system": "ridge",
        "measure": "nDCG@10",
        "convention": "rankeval",
        "data": "letor",
        "role": "dev",
        "test/system": "trees",
        "test/role": "test",
    }


def test_steps_are_curves_and_every_one_loads_back(small, client, assert_same):
    """The role is that of the last step."""
    epochs = [small("net", seed=seed) for seed in range(3)]
    with mlflow.start_run() as run:
        for step, evaluation in enumerate(epochs):
            rkm.log(evaluation, role="dev", step=step, report=False)
    run_id = run.info.run_id
    history = client.get_metric_history(run_id, "nDCG_at_10")
    assert [(point.step, point.value) for point in history] == [
        (step, evaluation.aggregate()["nDCG@10"]) for step, evaluation in enumerate(epochs)
    ]
    for step, evaluation in enumerate(epochs):
        assert_same(rkm.load_evaluation(run_id, f"dev/step-{step}"), evaluation)
    assert_same(rkm.load_evaluation(run_id), epochs[-1])
    final = small("net", seed=9)
    rkm.log(final, role="dev", run_id=run_id, step=7, report=False)
    assert_same(rkm.load_evaluation(run_id), final)
    assert_same(rkm.load_evaluation(run_id, "dev/step-1"), epochs[1])
    with pytest.raises(InvalidInput, match="dev/step-9"):
        rkm.load_evaluation(run_id, "dev/step-9")
    with pytest.raises(InvalidInput, match="other content"):
        rkm.log(final, role="dev", run_id=run_id, step=1)


@pytest.mark.parametrize("step", [-1, 1.5, True, "3", 2**31])
def test_a_step_is_a_whole_number(small, step):
    with pytest.raises(InvalidInput, match="step is"):
        rkm.log(small(), step=step)


def test_dev_and_test_of_the_same_content_are_two_inputs(small, client):
    with mlflow.start_run() as run:
        rkm.log(small(), role="dev", data="letor")
        rkm.log(small(), role="test", data="letor")
        rkm.log(small(), role="test", data="letor")  # the same again adds none
    found = client.get_run(run.info.run_id).inputs.dataset_inputs
    tags = [{tag.key: tag.value for tag in each.tags} for each in found]
    short = small().judgments_digest[:16]
    assert sorted((each.dataset.digest, one["mlflow.data.context"]) for each, one in zip(found, tags, strict=True)) == [
        (short, "dev"),
        (f"{short}-test", "test"),
    ]
    assert {one["rankeval.digest"] for one in tags} == {small().judgments_digest}


def test_the_table_of_runs_has_a_view_with_columns_for_the_measures(small, client):
    """Saved for all, as MLflow saves views; more measures are added, and no view of another's is touched."""
    key = "mlflow.sharedViewState.rankeval"

    def columns():
        return json.loads(json.loads(client.get_experiment("0").tags[key])["state"])["selectedColumns"]

    rkm.log(small(measures=["AP"]))
    assert columns()[:2] == ["metrics.`AP`", "params.`system`"]
    rkm.log(small(measures=["nDCG@10", "AP"]))
    before = client.get_experiment("0").tags[key]
    assert columns()[:3] == ["metrics.`AP`", "metrics.`nDCG_at_10`", "params.`system`"]
    rkm.log(small(measures=["AP"], seed=2))
    assert client.get_experiment("0").tags[key] == before
    client.set_experiment_tag("0", key, "mine")
    rkm.log(small(measures=["RR"]))
    assert client.get_experiment("0").tags[key] == "mine"


def test_a_run_is_of_the_kind_that_it_was_first(small, client):
    run_id = rkm.log(small("a", seed=1)).run_id
    rkm.log(rk.compare({"a": small("a", seed=1), "b": small("b", seed=2)}), run_id)
    assert client.get_run(run_id).data.tags["rankeval.kind"] == "evaluation"


def test_a_measure_of_a_column_comes_back_with_its_column(client, assert_same):
    """The metric's key leads back to the measure, and evaluations by other prices are not compared."""
    name = "Revenue@2(column='price (€)')"
    rng = np.random.default_rng(0)
    qid, y, score, price = (
        np.repeat(np.arange(30), 5),
        rng.integers(0, 3, 150),
        rng.normal(size=150),
        rng.normal(size=150),
    )

    def logged(score, price):
        columns = {"price (€)": price}
        evaluation = rk.evaluate(y, score, qid=qid, columns=columns, measures=["nDCG@10", name])
        return evaluation, rkm.log(evaluation).run_id

    evaluation, run = logged(score, price)
    assert_same(evaluation, rkm.load_evaluation(run))
    key = rk.measure(name).key
    assert rk.measure_from_key(key) == rk.measure(name)
    assert client.get_run(run).data.metrics[key] == pytest.approx(evaluation.aggregate()[name])
    _, better = logged(y + score, price)
    assert rkm.compare_runs([run, better]).table["measure"].tolist() == ["nDCG@10", name]
    _, dearer = logged(score, price + 1)
    with pytest.raises(ConventionMismatch, match="has other values in one than in the other"):
        rkm.compare_runs([run, dearer])
