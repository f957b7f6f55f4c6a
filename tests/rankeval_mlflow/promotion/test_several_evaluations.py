"""Several evaluations of one version that disagree decide nothing until one of them is named."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import mlflow
import pytest
from typer.testing import CliRunner

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, RankevalWarning
from rankeval_mlflow.commands import app
from rankeval_mlflow.run_names import DECISION

ASKED = {"measure": "nDCG@10"}


def logged(evaluated, scores, version, **options):
    """Log another evaluation of a version of the ranker, and return its run."""
    ev = evaluated(scores, salt=options.pop("salt", 0))
    return rkm.log(ev, role="test", model_version=f"ranker/{version}", **options).run_id


@pytest.fixture
def twice(ranker, scores_of, evaluated):
    """Return a model whose version 2 is as good as version 1, and was evaluated again with all scores 1."""
    equal = ranker.add(0.0)
    ranker.runs["2 again"] = logged(evaluated, scores_of(None) * 0 + 1, equal)
    return ranker


def test_a_second_evaluation_turns_no_decision(twice, client):
    with pytest.raises(InvalidInput) as caught:
        rkm.promote("ranker", 2, **ASKED)
    assert caught.value.argument == "run_id"
    said = str(caught.value)
    assert (
        "version 2 of ranker has evaluations of role 'test' that disagree by nDCG@10, or are of other data: 0." in said
    )
    assert f" in run {twice.runs['2']}, 1.0000 in run {twice.runs['2 again']}" in said
    assert (twice.holder(), "rankeval.promotion.champion" in twice.tags("2")) == ("1", False)
    assert client.get_experiment_by_name("ranker promotions") is None, "nothing was decided"


def test_loading_by_the_version_warns_and_names_the_runs(twice):
    with pytest.warns(RankevalWarning, match=f"of run {twice.runs['2 again']}; load another .*{twice.runs['2']}"):
        assert rkm.load_evaluation("models:/ranker/2").mean()["nDCG@10"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        rkm.load_evaluation(twice.runs["2"])
        rkm.load_evaluation("ranker/1")


def test_a_version_that_was_rejected_is_not_accepted_by_a_later_evaluation(ranker, scores_of, evaluated):
    equal = ranker.add(0.0)
    assert rkm.promote("ranker", equal, **ASKED).outcome == "rejected"
    logged(evaluated, scores_of(None) + 0.3, equal)
    with pytest.raises(InvalidInput, match="disagree"):
        rkm.promote("ranker", equal, **ASKED)
    assert ranker.holder() == "1"


def test_a_named_run_decides_and_the_record_says_that_it_was_named(twice, client, tmp_path):
    """Each of the two runs is a question of its own, and costs a decision."""
    rejected = rkm.promote("ranker", 2, **ASKED, run_id=twice.runs["2"])
    assert (rejected.outcome, rejected.decision.counted) == ("rejected", "decision 1 of 20")
    assert f"The caller named run {twice.runs['2']} as the evaluation of version 2." in rejected.reason
    moved = rkm.promote("ranker", 2, **ASKED, run_id=[twice.runs["2 again"]])
    assert (moved.moved, moved.decision.counted) == (True, "decision 2 of 20")
    said = json.loads(Path(client.download_artifacts(moved.run_id, DECISION, str(tmp_path))).read_text("utf-8"))
    assert (said["candidate_run"], said["named_runs"]) == (twice.runs["2 again"], [twice.runs["2 again"]])
    assert f"named run {twice.runs['2 again']}" in client.get_run(moved.run_id).data.tags["mlflow.note.content"]


def test_a_second_evaluation_of_the_holder_turns_no_decision(ranker, scores_of, evaluated):
    """A poor one of the version in use would let everybody pass."""
    equal, first = ranker.add(0.0), ranker.runs["1"]
    logged(evaluated, scores_of(None) - 0.2, 1)
    with pytest.raises(InvalidInput, match=r"version 1 of ranker, which has the alias champion now, has evaluations"):
        rkm.promote("ranker", equal, **ASKED)
    done = rkm.promote("ranker", equal, **ASKED, run_id=[first])
    assert (done.outcome, ranker.holder()) == ("rejected", "1")


@pytest.mark.further
def test_equal_evaluations_are_one_and_the_first_counts(ranker, scores_of, evaluated, client, tmp_path):
    """Equal to 1e-6 by query: the question stays the same, so its answer stays free."""
    better = ranker.add(0.1)
    before = rkm.promote("ranker", better, **ASKED, dry_run=True)
    logged(evaluated, scores_of(0.1, seed=2) + 9e-7, better)
    logged(evaluated, scores_of(0.1, seed=2), better)
    done = rkm.promote("ranker", better, **ASKED)
    assert (done.moved, done.decision.is_new, before.decision.counted) == (True, False, "decision 1 of 20")
    said = json.loads(Path(client.download_artifacts(done.run_id, DECISION, str(tmp_path))).read_text("utf-8"))
    assert (said["candidate_run"], said["named_runs"]) == (ranker.runs[better], [])


def test_more_than_1e_6_is_another_evaluation(ranker, scores_of, evaluated):
    better = ranker.add(0.1)
    logged(evaluated, scores_of(0.1, seed=2) + 2e-6, better)
    with pytest.raises(InvalidInput, match="disagree"):
        rkm.promote("ranker", better, **ASKED)


def test_evaluations_of_other_months_of_the_holder_do_not_hinder(ranker, scores_of, evaluated):
    """The content of the candidate's tells which one of the version in use is meant."""
    logged(evaluated, scores_of(0.3), 1, salt=1)
    assert rkm.promote("ranker", ranker.add(0.1), **ASKED).moved


def test_an_evaluation_without_the_measure_does_not_hinder(ranker):
    import rankeval as rk

    better = ranker.add(0.1)
    rkm.log(rk.evaluate([1, 0], [0.2, 0.1], qid=[1, 1], measures="RR"), role="test", model_version=f"ranker/{better}")
    assert rkm.promote("ranker", better, **ASKED).moved


@pytest.mark.usefixtures("ranker")
def test_evaluations_of_a_version_and_of_its_logged_model_count_alike(scores_of, evaluated, client):
    """The order in which they were logged does not matter."""
    model = mlflow.initialize_logged_model("ranker")
    client.create_model_version("ranker", f"models:/{model.model_id}", model_id=model.model_id)
    with mlflow.start_run() as run:
        rkm.log(evaluated(scores_of(0.0)), role="test", model_id=model.model_id)
    other = logged(evaluated, scores_of(0.3), 2)
    with pytest.raises(InvalidInput, match="disagree"):
        rkm.promote("ranker", 2, **ASKED)
    assert not rkm.promote("ranker", 2, **ASKED, run_id=run.info.run_id)
    assert rkm.promote("ranker", 2, **ASKED, run_id=other).moved


def test_a_deleted_run_is_no_evaluation_any_more(twice, client):
    client.delete_run(twice.runs["2 again"])
    assert rkm.promote("ranker", 2, **ASKED).outcome == "rejected"


def test_a_run_of_somebody_who_may_not_edit_the_version_is_no_evidence(ranker, scores_of, evaluated, client):
    """Whoever may log a run may tag it as they like; the version itself must say that it has an evaluation."""
    silent = ranker.add(role=None)
    run_id = rkm.log(evaluated(scores_of(0.3)), role="test").run_id
    client.set_tag(run_id, "rankeval.test.version", f"ranker/{silent}")
    with pytest.raises(InvalidInput, match=f"version {silent} of ranker has no evaluation of role 'test'"):
        rkm.promote("ranker", silent, **ASKED)


def test_one_run_may_hold_the_evaluation_of_two_versions(ranker, scores_of, evaluated, client):
    """Equal models that were registered twice, say."""
    versions = [ranker.add(role=None), ranker.add(role=None)]
    with mlflow.start_run() as run:
        for version in versions:
            logged(evaluated, scores_of(0.1), version)
    assert client.get_run(run.info.run_id).data.tags["rankeval.test.version"] == "ranker/2; ranker/3"
    assert all(rkm.promote("ranker", version, **ASKED, dry_run=True) for version in versions)


@pytest.mark.parametrize("given", ["0" * 32, ["0" * 32], 7])
def test_a_run_that_is_the_evaluation_of_neither_version_is_refused(twice, given):
    with pytest.raises(InvalidInput) as caught:
        rkm.promote("ranker", 2, **ASKED, run_id=given)
    assert caught.value.argument == "run_id"
    assert twice.holder() == "1"


def test_a_gate_takes_no_run():
    with pytest.raises(InvalidInput) as caught:
        rkm.promote("ranker", 1, gate=object(), run_id="0" * 32)
    assert caught.value.argument == "run_id"


def test_a_champion_without_evaluation_is_named_as_the_champion(ranker):
    """With what to do, since nobody thinks of the version in use."""
    ranker.put(ranker.add(role=None))
    with pytest.raises(InvalidInput) as caught:
        rkm.promote("ranker", ranker.add(0.1), **ASKED)
    said = str(caught.value)
    assert said.startswith("version 2 of ranker, which has the alias champion now, has no evaluation of role 'test'")
    assert 'log one: rankeval_mlflow.log(ev, role="test", model_version="ranker/2")' in said


@pytest.mark.further
def test_a_version_has_at_most_four_tags(ranker, client):
    """Its evaluations, its last acceptance, and its last rejection since."""
    better = ranker.add(0.1)
    rkm.log(rkm.load_evaluation(f"models:/ranker/{better}"), role="dev", model_version=f"ranker/{better}")
    assert rkm.promote("ranker", better, **ASKED).moved
    assert rkm.promote("ranker", ranker.add(0.3), **ASKED).moved
    assert rkm.promote("ranker", better, **ASKED).outcome == "rejected"
    tags = client.get_model_version("ranker", better).tags
    promotion = ["rankeval.promotion.champion", "rankeval.promotion.champion.state"]
    assert sorted(tags) == ["rankeval.evaluation", *promotion, "rankeval.rejection.champion"]
    value = rkm.load_evaluation(f"models:/ranker/{better}", "test").aggregate()["nDCG@10"]
    said = json.loads(tags["rankeval.evaluation"])
    assert (said["test"]["nDCG_at_10"], said["test"]["run_id"]) == (float(f"{value:.4g}"), ranker.runs[better])
    assert [*said] == ["test", "dev"]


def test_the_command_names_a_run(twice, store):
    asked = ["promote", "ranker", "--version", "2", "-m", "nDCG@10", "--uri", store]
    assert CliRunner().invoke(app, [*asked, "--run-id", twice.runs["2"]]).exit_code == 1
    assert CliRunner().invoke(app, [*asked, "--run-id", twice.runs["2 again"]]).exit_code == 0


@pytest.mark.server
def test_a_second_evaluation_through_a_server(server, ranker_of, scores_of, evaluated):
    """As a team of several users has it."""
    mlflow.set_tracking_uri(server.uri)
    ranker = ranker_of(mlflow.MlflowClient(), "evaluated-twice")
    equal = ranker.add(0.0)
    rkm.log(evaluated(scores_of(0.9)), role="test", model_version=f"evaluated-twice/{equal}")
    with pytest.raises(InvalidInput, match="disagree"):
        rkm.promote("evaluated-twice", equal, **ASKED)
    assert not rkm.promote("evaluated-twice", equal, **ASKED, run_id=ranker.runs[equal])


@pytest.mark.further
def test_evaluations_of_the_candidate_on_other_data_need_a_name(ranker, scores_of, evaluated):
    """Nobody can say which month is meant; the version in use then follows the candidate."""
    logged(evaluated, scores_of(0.3), 1, salt=1)
    better = ranker.add(0.1)
    other = logged(evaluated, scores_of(0.1), better, salt=1)
    with pytest.raises(InvalidInput, match="or are of other data"):
        rkm.promote("ranker", better, **ASKED)
    assert rkm.promote("ranker", better, **ASKED, run_id=other).outcome == "rejected"
    assert rkm.promote("ranker", better, **ASKED, run_id=ranker.runs[better]).moved
