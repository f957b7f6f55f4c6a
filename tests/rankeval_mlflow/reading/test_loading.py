"""load_evaluation, load_comparison and compare_runs: what was logged comes back bit for bit, at its size."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import mlflow
import numpy as np
import pytest
from pandas.testing import assert_frame_equal

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.comparison.record import with_notes
from rankeval.errors import InvalidInput, TrackingError
from rankeval.tracking import RunRecord, host
from rankeval_mlflow.packing.nodes import keys_of


@pytest.fixture
def systems(small):
    return {name: small(name, seed=seed) for seed, name in enumerate(("bm25", "a/b", "a_b"))}


@pytest.fixture(params=["sqlite", pytest.param("server", marks=pytest.mark.server)])
def somewhere(request):
    """Set MLflow to the sqlite store, and to the server."""
    if request.param == "server":
        mlflow.set_tracking_uri(request.getfixturevalue("server").uri)


@pytest.mark.usefixtures("somewhere")
def test_ten_thousand_queries_by_six_measures_come_back_bit_for_bit(assert_same):
    labels = np.random.default_rng(0).integers(0, 3, 50_000)
    qid = np.repeat(np.arange(10_000), 5)
    measures = ["nDCG@10", "AP", "RR", "P@5", "R@5", "ERR(max_rel=2)"]
    given = [
        rk.evaluate(labels, labels + np.random.default_rng(seed).normal(size=50_000), qid=qid, measures=measures)
        for seed in range(2)
    ]
    runs = [rkm.log(evaluation, report=False) for evaluation in given]
    for run, evaluation in zip(runs, given, strict=True):
        assert_same(rkm.load_evaluation(run), evaluation)
    expected = rk.compare({run.run_id: one for run, one in zip(runs, given, strict=True)}, test="t")
    assert_frame_equal(rkm.compare_runs(runs).table, expected.table)


def test_an_evaluation_at_a_step_is_loaded_by_its_step_and_the_last_one_by_its_role(small, assert_same):
    epochs = [small(seed=seed) for seed in range(3)]
    run_id = rkm.log(epochs[0], step=0, report=False).run_id
    for step in (1, 2):
        rkm.log(epochs[step], run_id=run_id, step=step, report=False)
    assert_same(rkm.load_evaluation(run_id, "dev/step-1"), epochs[1])
    assert_same(rkm.load_evaluation(run_id, "dev"), epochs[2])
    assert_same(rkm.load_evaluation(run_id), epochs[2])


def test_the_greatest_step_is_the_last_one_in_whatever_order_steps_were_logged(small, client, assert_same):
    """As MLflow shows the metric of the greatest step."""
    run_id = rkm.log(small(seed=0), step=10, report=False).run_id
    rkm.log(small(seed=1), run_id=run_id, step=9, report=False)
    assert_same(rkm.load_evaluation(run_id), small(seed=0))
    shown = client.get_run(run_id).data.metrics
    assert [shown[key] for key in keys_of(small(seed=0)).values()] == list(small(seed=0).aggregate().to_dict().values())


@pytest.mark.parametrize(("first", "second"), [(None, 3), (3, None), (0, None)])
def test_a_role_has_steps_or_a_single_evaluation(first, second, small, client):
    run_id = rkm.log(small(seed=0), step=first, report=False).run_id
    before = client.get_run(run_id).data
    with pytest.raises(InvalidInput, match=r"role 'dev' in run .* has (no step|steps).*another role="):
        rkm.log(small(seed=1), run_id=run_id, step=second, report=False)
    assert client.get_run(run_id).data.to_dictionary() == before.to_dictionary()
    rkm.log(small(seed=1), role="test", run_id=run_id, step=second, report=False)


def test_the_steps_of_a_role_are_on_the_same_data(small, client):
    """The leaderboard would show the data of one with the value of the other."""
    run_id = rkm.log(small(), data="shop", step=1, report=False).run_id
    before = client.get_run(run_id).data
    changed = rk.evaluate([1, 0, 1], [0.3, 0.2, 0.1], qid=["a", "a", "b"], measures="RR")
    with pytest.raises(InvalidInput, match=r"role 'dev' in run .* is on other data .*another role="):
        rkm.log(changed, data="shop", run_id=run_id, step=2, report=False)
    assert client.get_run(run_id).data.to_dictionary() == before.to_dictionary()
    rkm.log(changed, role="train", run_id=run_id, data="shop", step=2, report=False)


def test_a_comparison_comes_back_with_the_scores_of_every_query(systems, assert_same):
    """So that what is computed from scores is computed again, to the same result."""
    compared = with_notes(rk.compare(systems, baseline="bm25"), "exploratory")
    back = rkm.load_comparison(rkm.log(compared, report=False))
    assert_frame_equal(back.table, compared.table)
    assert (back.notes, back.headline, list(back.evaluations)) == (compared.notes, compared.headline, list(systems))
    for name, evaluation in systems.items():
        assert_same(back.evaluations[name], evaluation)
    assert back.best == compared.best
    assert_frame_equal(back.effects, compared.effects)
    assert back.plot(system="a/b") is not None


def test_comparisons_over_collections_and_of_records_come_back(small, systems, assert_same):
    parts = [(name, small(name, seed=k), small(name, seed=k + 5)) for k, name in enumerate("xy")]
    given = {name: {"news": news, "web": web.subset(web.queries[1:])} for name, news, web in parts}
    pooled = rk.compare(given, baseline="x", n_resamples=99)
    back = rkm.load_comparison(rkm.log(pooled, name="pooled", report=False).run_id, "pooled")
    assert_frame_equal(back.table, pooled.table)
    assert_same(back.evaluations["y"]["web"], given["y"]["web"])
    compared = rk.compare(systems, baseline="bm25")
    tracked = host("mlflow").tracker().log(RunRecord("parent", comparison=compared), experiment="letor")
    assert_same(rkm.load_comparison(tracked).evaluations["a_b"], systems["a_b"])


def test_a_comparison_that_is_not_there_is_answered_with_those_that_are(systems, small):
    run = rkm.log(rk.compare(systems, baseline="bm25"), name="final", report=False)
    with pytest.raises(InvalidInput, match=r"has no result 'comparison'; .* and has 'final'"):
        rkm.load_comparison(run)
    with pytest.raises(InvalidInput, match=r"has no result 'comparison'; .*'evaluation', and has 'dev'"):
        rkm.load_comparison(rkm.log(small(), report=False))
    with pytest.raises(InvalidInput, match=r"has no evaluation; .* 'comparison', and has 'final'"):
        rkm.load_evaluation(run)
    with pytest.raises(InvalidInput, match="label is 3; expected"):
        rkm.load_comparison(run, 3)


def test_a_comparison_that_was_altered_is_refused(systems, client):
    run = client.get_run(rkm.log(rk.compare(systems, baseline="bm25"), report=False).run_id)
    folder = f"{urlsplit(run.info.artifact_uri).path}/rankeval/comparison"
    shutil.copy(f"{folder}/evaluations/a_b.parquet", f"{folder}/evaluations/bm25.parquet")
    with pytest.raises(TrackingError, match=r"evaluations/bm25.parquet' in run .* was altered or replaced"):
        rkm.load_comparison(run)
    Path(f"{folder}/comparison.json").write_text("{}")
    with pytest.raises(TrackingError, match=r"comparison.json' in run .* was altered or replaced"):
        rkm.load_comparison(run)


def test_a_manifest_of_which_a_byte_was_altered_is_refused(small, client):
    """Even if it reads the same: facts that stand in it alone would change unseen."""
    run = client.get_run(rkm.log(small(), report=False).run_id)
    path = Path(urlsplit(run.info.artifact_uri).path, "rankeval", "dev", "manifest.json")
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(TrackingError):
        rkm.load_evaluation(run)


def test_the_baseline_of_runs_may_have_any_spelling_and_may_stand_apart(systems, client):
    client.create_registered_model("ranker")
    client.create_model_version("ranker", "s3://models/ranker")
    client.set_registered_model_alias("ranker", "champion", "1")
    first, *others = (rkm.log(evaluation, report=False) for evaluation in systems.values())
    rkm.log(systems["bm25"], run_id=first.run_id, model_version="ranker/1", report=False)
    expected = rk.compare(systems, baseline="bm25").table
    runs = [first, *others]
    for baseline in ("bm25", first, first.run_id, "ranker@champion", "models:/ranker/1", client.get_run(first.run_id)):
        assert_frame_equal(rkm.compare_runs(runs, baseline=baseline).table, expected)
    apart = rkm.compare_runs(others, baseline="ranker@champion")
    assert_frame_equal(apart.table, expected)
    with pytest.raises(InvalidInput, match="there is no run 'BM25'"):
        rkm.compare_runs(runs, baseline="BM25")


@pytest.mark.usefixtures("somewhere")
def test_many_runs_are_loaded_without_asking_twice(small, monkeypatch):
    """One question for each run; a store that has just answered is not asked whether it is there."""
    runs = [rkm.log(small(f"s{seed}", seed=seed), report=False).run_id for seed in range(4)]
    asked = []
    for name in ("get_run", "search_runs", "search_experiments", "download_artifacts"):
        plain = getattr(mlflow.MlflowClient, name)

        def counting(*arguments, plain=plain, name=name, **options):
            asked.append(name)
            return plain(*arguments, **options)

        monkeypatch.setattr(mlflow.MlflowClient, name, counting)
    assert len(rkm.compare_runs(runs, baseline=runs[0]).table) == 3 * 3
    assert asked in ([*["get_run"] * 4], ["search_experiments", *["get_run"] * 4])


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("role", [5, ["dev"]])
def test_a_role_that_is_no_text_is_refused(small, role):
    """Of one run and of several."""
    run = rkm.log(small(), report=False)
    for call in (rkm.load_evaluation, lambda run, role: rkm.compare_runs([run, run], role=role)):
        with pytest.raises(InvalidInput, match=r"role is .*5|role is .*dev.*; expected a text"):
            call(run, role)


def test_a_version_means_the_evaluation_that_was_logged_for_it(small, client, assert_same):
    """Though its run holds another role; with two roles the error names the version and not the run."""
    client.create_registered_model("ranker")
    for seed in (1, 2):
        version = client.create_model_version("ranker", "s3://models/ranker")
        with mlflow.start_run():
            rkm.log(small("other", seed=9), role="dev")
            rkm.log(small(f"v{seed}", seed=seed), role="oof", model_version=version)
    assert_same(rkm.load_evaluation("models:/ranker/2"), small("v2", seed=2))
    compared = rkm.compare_runs(["models:/ranker/2"], baseline="models:/ranker/1", measures="AP")
    assert (compared.table["baseline"].tolist(), compared.table["system"].tolist()) == (["v1"], ["v2"])
    with mlflow.start_run():
        for role in ("dev", "test"):
            rkm.log(small("v3"), role=role, model_version="ranker/2")
    for ask in (rkm.load_evaluation, lambda name: rkm.compare_runs([name, "models:/ranker/1"])):
        with pytest.raises(InvalidInput, match=r"models:/ranker/2 has evaluations of the roles") as caught:
            ask("models:/ranker/2")
        assert "run " not in str(caught.value).partition("roles")[0]


def test_an_evaluation_that_was_not_logged_for_a_version_is_not_taken_for_it(small, client):
    """Its run may hold the evaluation of another system under the role that is asked for."""
    client.create_registered_model("m")
    client.create_model_version("m", "s3://m/1")
    with mlflow.start_run():
        rkm.log(small("version 1"), role="dev", model_version="m/1", report=False)
        rkm.log(small("another system", seed=1), role="test", report=False)
    assert rkm.load_evaluation("models:/m/1", "dev").name == "version 1"
    with pytest.raises(InvalidInput) as caught:
        rkm.load_evaluation("models:/m/1", "test")
    assert "models:/m/1" in str(caught.value)


def test_the_description_of_a_run_links_to_its_report_and_its_version_and_the_version_to_the_run(small, client):
    client.create_registered_model("ranker")
    version = client.create_model_version("ranker", "s3://models/ranker")
    run_id = rkm.log(small(), model_version=version, page="<p>").run_id
    note = client.get_run(run_id).data.tags["mlflow.note.content"]
    for page in ("report.html", "queries.html"):
        assert f"(get-artifact?path=rankeval/dev/{page}&run_uuid={run_id})" in note
    assert "(#/models/ranker/versions/1)" in note
    assert f"(#/runs/{run_id})" in client.get_model_version("ranker", 1).description
    experiment = client.get_experiment("0")
    assert "(#/experiments/0/runs?" in experiment.tags["mlflow.note.content"]
    assert "viewStateShareKey=rankeval)" in experiment.tags["mlflow.note.content"]
    without = client.get_run(rkm.log(small(), report=False).run_id).data.tags["mlflow.note.content"]
    assert "get-artifact" not in without
