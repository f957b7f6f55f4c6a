"""Tags of state are data, and tags for people are for people: whoever rewords all of them breaks nothing."""

from __future__ import annotations

import pytest

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.reading.listing import logged_runs

DATA = ("rankeval.complete", "rankeval.record", "rankeval.role", "rankeval.kind", "rankeval.card", "rankeval.outcome",
        "rankeval.evaluation", "rankeval.guard.ledger", "rankeval.guard.head", ".state", ".version")  # fmt: skip
NOTE = "mlflow.note.content"


def is_for_people(key):
    return key == NOTE or (key.startswith("rankeval.") and not key.endswith(DATA))


def reword(client, model="ranker"):
    """Write nonsense into every tag of runs and versions that is for people; return the keys."""
    ids = [one.experiment_id for one in client.search_experiments()]
    seen = set()
    for run in client.search_runs(ids):
        for key in filter(is_for_people, run.data.tags):
            client.set_tag(run.info.run_id, key, "umformuliert; in 3 in x")
            seen.add(key)
    for version in client.search_model_versions(f"name='{model}'"):
        for key in filter(is_for_people, version.tags):
            client.set_model_version_tag(model, version.version, key, "umformuliert; in 3 in x")
            seen.add(key)
    return seen


def test_promotions_and_rollbacks_go_on(champions, client):
    seen = reword(client)
    assert {"rankeval.promotion", "rankeval.promotion.champion", "rankeval.headline", NOTE} <= seen
    back = rkm.rollback("ranker", reason="slow on phones")
    assert (back.version, champions.holder()) == ("2", "2")
    reword(client)
    said = f"version 3 was rolled back from ranker@champion to version 2 in run {back.run_id} \\(slow on phones\\)"
    with pytest.raises(InvalidInput, match=said):
        rkm.promote("ranker", 3, measure="nDCG@10")
    assert rkm.promote("ranker", 3, measure="nDCG@10", again=True).moved
    reword(client)
    champions.put("2")
    with pytest.raises(InvalidInput, match="from version 2 to version 3, and somebody else moved it back"):
        rkm.rollback("ranker", reason="x")
    client.delete_registered_model_alias("ranker", "champion")
    with pytest.raises(InvalidInput, match="version 3 had it last"):
        rkm.promote("ranker", 1, measure="nDCG@10", first=True)


def test_an_override_is_told_of_the_version_in_use(ranker, client):
    why = {"override": "broken index", "override_by": "ann"}
    assert rkm.promote("ranker", ranker.add(0.0), **why).moved
    reword(client)
    done = rkm.promote("ranker", ranker.add(0.3), measure="nDCG@10")
    assert (done.moved, "Version 2 got the alias by override by ann: broken index." in done.reason) == (True, True)
    reword(client)
    assert [rkm.rollback("ranker", reason="x").version for _ in range(2)] == ["2", "1"]


def test_evaluations_are_found_listed_and_compared(champions, client, assert_same):
    before = {version: rkm.load_evaluation(f"models:/ranker/{version}", "test") for version in champions.runs}
    shown = rkm.leaderboard(None, role="test").table
    names = [(run.run_id, run.roles) for run in logged_runs()]
    reword(client)
    for version, evaluation in before.items():
        assert_same(evaluation, rkm.load_evaluation(f"models:/ranker/{version}", "test"))
        assert_same(evaluation, rkm.load(champions.runs[version]))
        rkm.log(evaluation, role="dev", model_version=f"ranker/{version}")
    assert [(run.run_id, run.roles) for run in logged_runs() if run.roles == ("test",)] == names
    assert rkm.leaderboard(None, role="test").table.equals(shown)
    assert len(rkm.compare_runs(["ranker/1", "ranker/2"], measures="nDCG@10", role="test").table) == 1


def test_a_state_that_is_no_json_is_said(champions, client):
    for key in ("rankeval.promotion.champion.state", "rankeval.evaluation"):
        client.set_model_version_tag("ranker", "3", key, "{")
    with pytest.raises(TrackingError, match=r"tag rankeval.promotion.champion.state of a version cannot be read"):
        rkm.rollback("ranker", reason="x")
    with pytest.raises(TrackingError, match=r"tag rankeval.evaluation of a version cannot be read"):
        rkm.load_evaluation("models:/ranker/3", "test")
    assert champions.holder() == "3"
