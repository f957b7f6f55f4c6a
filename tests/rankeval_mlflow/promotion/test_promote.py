"""promote: the alias moves only to a version that is shown to be better, and its record is there before."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import ConventionMismatch, InvalidInput, UnknownName

DECISION = "rankeval/promotion/decision.json"


def decision_of(client, run_id, folder):
    return json.loads(Path(client.download_artifacts(run_id, DECISION, str(folder))).read_text("utf-8"))


def test_a_better_version_gets_the_alias(ranker, client, tmp_path):
    better = ranker.add(0.1)
    done = rkm.promote("ranker", version=int(better), alias="champion", measure="nDCG@10", margin=0.0, who="ann")
    assert (done.accepted, done.moved, bool(done), done.alias_before) == (True, True, True, "1")
    assert ranker.holder() == better
    assert done.words.startswith("ranker@champion: moved from version 1 to version 2. ranker v2 beats ranker v1 by +0.")
    assert ranker.tags(better)["rankeval.promotion.champion"] == f"accepted over 1 in {done.run_id}"
    said = decision_of(client, done.run_id, tmp_path)
    assert (said["decision"], said["version"], said["alias_before"], said["who"]) == ("accepted", "2", "1", "ann")
    assert (said["candidate_run"], said["holder_run"]) == (ranker.runs["2"], ranker.runs["1"])
    assert said["numbers"]["difference"] == done.comparison.table["difference"][0]
    run = client.get_run(done.run_id)
    assert run.data.tags["rankeval.promotion"] == "moved from 1 to 2"
    assert run.data.params["decision"] == "accepted"
    assert run.info.status == "FINISHED"


def test_the_numbers_are_those_of_compare(ranker):
    """Nothing is computed a second time: the comparison is the one of `rk.compare` on the logged evaluations."""
    options = {"alpha": 0.02, "budget": 2, "test": "randomization"}
    done = rkm.promote("ranker", ranker.add(0.1), measure="nDCG@10", margin=0.01, **options)
    old, new = (rkm.load_evaluation(f"models:/ranker/{version}", "test") for version in "12")
    systems = {"ranker v1": old, "ranker v2": new}
    same = rk.compare(systems, baseline="ranker v1", test="randomization", claim="better", margin=0.01,
                      alpha=0.01, correction="none")  # fmt: skip
    pd.testing.assert_frame_equal(done.comparison.table, same.table)


def test_an_equal_version_is_rejected_and_the_record_says_so(ranker, client, tmp_path):
    equal = ranker.add(0.0)
    done = rkm.promote("ranker", equal, measure="nDCG@10")
    assert (done.accepted, done.moved, bool(done), done.outcome) == (False, False, False, "rejected")
    assert ranker.holder() == "1"
    assert "No gain was shown" in done.reason
    assert decision_of(client, done.run_id, tmp_path)["decision"] == "rejected"
    assert client.get_run(done.run_id).data.tags["rankeval.promotion"] == "stays with 1: rejected"
    tags = ranker.tags(equal)
    assert tags["rankeval.rejection.champion"] == f"rejected against 1 in {done.run_id}"
    assert "rankeval.promotion.champion" not in tags


def test_not_worse_by_a_margin_suffices_if_asked(ranker):
    assert not rkm.promote("ranker", ranker.add(0.0), measure="nDCG@10")
    assert rkm.promote("ranker", 2, measure="nDCG@10", claim="not_worse", margin=0.06).moved
    assert ranker.holder() == "2"


def test_a_rejection_never_covers_the_acceptance_of_a_version(ranker):
    better = ranker.add(0.1)
    first = rkm.promote("ranker", better, measure="nDCG@10")
    ranker.put("1")
    assert not rkm.promote("ranker", better, measure="nDCG@10", margin=0.3)
    assert ranker.tags(better)["rankeval.promotion.champion"] == f"accepted over 1 in {first.run_id}"


FORMS = {
    "text": lambda v: v.version,
    "number": lambda v: int(v.version),
    "uri": lambda v: f"models:/ranker/{v.version}",
    "alias": lambda _: "models:/ranker@challenger",
    "latest": lambda _: "latest",
    "ModelVersion": lambda v: v,
}


@pytest.mark.further
def test_a_version_is_given_in_any_form(ranker, client):
    ranker.put(ranker.add(0.1), "challenger")
    version = client.get_model_version("ranker", "2")
    for name, form in FORMS.items():
        done = rkm.promote("ranker", form(version), measure="nDCG@10", dry_run=True)
        assert (done.version, bool(done)) == ("2", True), name


NO_VERSIONS = [
    (9, "ranker has no version 9, or it was deleted; its versions are 1"),
    ("0_1", "version is 'ranker/0_1'; expected a version of a registered model"),
    ("+1", "version is 'ranker/"),
    (10**30, "version is 'ranker/10"),
    (True, "version is True; expected"),
    (None, "version is None; expected"),
    ("models:/other/1", "version is 'models:/other/1'; expected one of ranker"),
    ("models:/ranker@canary", "unknown alias of ranker 'canary'"),
]


@pytest.mark.usefixtures("ranker")
def test_a_version_that_is_none_is_refused():
    for version, message in NO_VERSIONS:
        with pytest.raises(InvalidInput) as caught:
            rkm.promote("ranker", version, measure="nDCG@10")
        assert message in str(caught.value), version


@pytest.mark.usefixtures("ranker")
def test_a_model_that_is_not_there_is_named_with_its_neighbour():
    with pytest.raises(UnknownName, match="unknown registered model 'rankr'; did you mean 'ranker'"):
        rkm.promote("rankr", 1, measure="nDCG@10")


def test_a_deleted_and_an_archived_version_are_refused(ranker, client, promotions):
    deleted, archived = ranker.add(0.1), ranker.add(0.1)
    client.delete_model_version("ranker", deleted)
    with pytest.raises(InvalidInput, match=r"no version 2, or it was deleted; its versions are 3, 1"):
        rkm.promote("ranker", deleted, measure="nDCG@10")
    with pytest.warns(FutureWarning):
        client.transition_model_version_stage("ranker", archived, "Archived")
    with pytest.raises(InvalidInput, match="version 3 of ranker is archived"):
        rkm.promote("ranker", archived, measure="nDCG@10")
    assert (ranker.holder(), promotions(client)) == ("1", [])


@pytest.mark.usefixtures("ranker")
def test_a_version_that_has_the_alias_is_answered_without_a_decision(client, promotions):
    done = rkm.promote("ranker", 1, measure="nDCG@10")
    assert (done.outcome, bool(done), done.moved, done.run_id) == ("in place", True, False, None)
    assert promotions(client) == []


def test_the_first_version_needs_a_word(ranker, client, tmp_path):
    """A misspelt alias must not go through without a test."""
    with pytest.raises(
        InvalidInput, match=r"no version of ranker has the alias 'champoin' \(ranker has the aliases cham"
    ):
        rkm.promote("ranker", 1, "champoin", "nDCG@10")
    done = rkm.promote("ranker", 1, "canary", "nDCG@10", first=True)
    assert (done.moved, done.alias_before, done.comparison) == (True, None, None)
    assert ranker.holder("canary") == "1"
    assert decision_of(client, done.run_id, tmp_path)["alias_before"] is None
    assert ranker.tags("1")["rankeval.promotion.canary"] == f"accepted over none in {done.run_id}"
    assert not rkm.promote("ranker", ranker.add(0.0), "canary", "nDCG@10", first=True), "somebody has it now"


def test_a_first_version_needs_an_evaluation_by_the_measure_too(ranker):
    with pytest.raises(InvalidInput, match="version 2 of ranker has no evaluation of role 'test'"):
        rkm.promote("ranker", ranker.add(role=None), "canary", "nDCG@10", first=True)
    with pytest.raises(UnknownName, match="unknown measure 'RR'"):
        rkm.promote("ranker", 1, "canary", "RR", first=True)


def test_a_dry_run_moves_and_tags_nothing_and_counts(ranker, client, promotions):
    """It shows the decision, so it is one; to promote the version then asks the same question."""
    ranker.add(0.1), ranker.add(0.0)
    before = [ranker.tags("2"), ranker.tags("3")]
    would, would_not = (rkm.promote("ranker", version, measure="nDCG@10", dry_run=True) for version in (2, 3))
    assert (would.outcome, bool(would), would.moved) == ("would move", True, False)
    assert (would_not.outcome, bool(would_not), would_not.decision.counted) == ("rejected", False, "decision 2 of 20")
    assert ([ranker.tags("2"), ranker.tags("3")], ranker.holder()) == (before, "1")
    outcomes = {run.info.run_id: run.data.tags["rankeval.promotion"] for run in promotions(client)}
    assert outcomes == {would.run_id: "dry run: would move", would_not.run_id: "dry run: rejected"}
    assert rkm.promote("ranker", 2, measure="nDCG@10", dry_run=True).run_id is None, "nothing new to record"
    moved = rkm.promote("ranker", 2, measure="nDCG@10")
    assert (moved.moved, moved.decision.is_new, moved.decision.remaining) == (True, False, 18)


def test_other_content_and_other_rules_are_refused_with_a_remedy(ranker, client, promotions):
    version = ranker.add(0.1, salt=1)
    with pytest.raises(ConventionMismatch, match=r"must not be compared.*log each with rankeval_mlflow.log\("):
        rkm.promote("ranker", version, measure="nDCG@10")
    assert (ranker.holder(), promotions(client)) == ("1", [])


def test_floors_hold_slice_by_slice(ranker, client, tmp_path):
    """A version that wins in the head and loses in the tail stays out."""
    kind = pd.Series(np.where(np.arange(200) % 4 == 0, "tail", "head"), name="kind")
    scores = np.random.default_rng(0).uniform(0.3, 0.7, 200) + np.where(kind == "tail", -0.1, 0.15)
    mixed = ranker.add(scores=scores + np.random.default_rng(3).normal(0, 0.1, 200))
    asked = {"measure": "nDCG@10", "alpha": 0.1, "budget": 4}
    assert rkm.promote("ranker", mixed, **asked, dry_run=True)
    done = rkm.promote("ranker", mixed, **asked, slices=kind, floors={"tail": 0.05})
    assert (done.outcome, ranker.holder()) == ("rejected", "1")
    assert "But a loss of its floor is not ruled out on slice 'tail'. This is decision 2 of 4" in done.reason
    assert done.floors["slice"].tolist() == ["tail"]
    (row,) = decision_of(client, done.run_id, tmp_path)["floors"]
    assert (row["slice"], row["passed"], row["n_queries"]) == ("tail", False, 50)
    both = rkm.promote("ranker", mixed, **asked, slices=kind, floors=0.05, dry_run=True)
    assert dict(zip(both.floors["slice"], both.floors["passed"], strict=True)) == {"head": True, "tail": False}
    last = rkm.promote("ranker", mixed, **asked, slices=kind, floors={"tail": 0.3, "head": 0.05})
    assert (last.moved, last.decision.counted) == (True, "decision 4 of 4"), "other floors are another question"


BAD_USE = [
    ({"floors": 0.05}, "floors", "0.05"),
    ({"slices": "relevant"}, "floors", "None"),
    ({"slices": "relevant", "floors": {}}, "floors", "{}"),
    ({"slices": "relevant", "floors": {1: 0.1, "1": 0.2}}, "floors", None),
    ({"slices": "relevant", "floors": -1}, "floors", "-1"),
    ({"slices": "relevant", "floors": {"1": "x"}}, "floors['1']", "'x'"),
    ({"slices": "relevant", "floors": {"7": 0.1}}, None, None),
    ({"slices": pd.Series(["a"] * 197 + ["b"] * 3), "floors": 0.1}, None, None),
    ({"measure": None}, "measure", None),
    ({"measure": "RR"}, None, None),
    ({"claim": "difference"}, "claim", "'difference'"),
    ({"claim": "not_worse"}, "margin", "0.0"),
    ({"margin": -1}, "margin", "-1"),
    ({"alpha": 0.5}, "alpha", "0.5"),
    ({"budget": 0}, "budget", "0"),
    ({"budget": 2.5}, "budget", "2.5"),
    ({"budget": 10**5}, "budget", "100000"),
    ({"test": "u"}, None, None),
    ({"alias": "v3"}, "alias", "'v3'"),
    ({"alias": "Latest"}, "alias", "'Latest'"),
    ({"role": "a/b"}, "role", "'a/b'"),
    ({"gate": "gate"}, "gate", "'gate'"),
    ({"candidate": [1]}, "candidate", None),
]


def test_bad_use_is_refused_before_anything_is_written(ranker, client, promotions):
    version = ranker.add(0.1)
    ranker.put("1", "canary")
    for options, argument, found in BAD_USE:
        with pytest.raises(InvalidInput) as caught:
            rkm.promote("ranker", version, **{"measure": "nDCG@10", "alias": "champion"} | options)
        assert (caught.value.argument, found or caught.value.found) == (argument, caught.value.found), options
        assert (ranker.holder(), promotions(client)) == ("1", []), options


def test_where_less_is_better_a_lower_mean_is_a_gain(client):
    """ARP is the mean rank of what is relevant."""
    client.create_registered_model("ranker")
    truth = {f"q{number}": {"a": 1, "b": 0} for number in range(40)}
    for rank in (0, 2):
        right = {q: {"a": 1, "b": 2 * (number % 4 >= rank)} for number, q in enumerate(truth)}
        version = client.create_model_version("ranker", "s3://models/ranker")
        rkm.log(rk.evaluate(truth, right, measures="ARP"), role="test", model_version=version)
    client.set_registered_model_alias("ranker", "champion", 1)
    kind = pd.Series([number % 8 < 4 for number in range(40)], index=list(truth), name="early")
    done = rkm.promote("ranker", 2, measure="ARP", slices=kind, floors=0.5, alpha=0.025, budget=1)
    assert done.moved
    assert done.comparison.table["difference"][0] == -0.5
    assert done.floors["gain"].tolist() == [0.5, 0.5]
    assert (done.floors["gain_low"] < done.floors["gain"]).all()


@pytest.mark.further
def test_the_record_lies_apart_from_the_candidates_and_has_the_data(ranker, client):
    """In an experiment by the name of the model, or in the one that is named."""
    mlflow.set_experiment("letor")
    better = ranker.add(0.1, data="letor-test")
    mlflow.set_experiment("Default")
    run = client.get_run(rkm.promote("ranker", better, measure="nDCG@10").run_id)
    letor, apart = client.get_experiment_by_name("letor"), client.get_experiment_by_name("ranker promotions")
    assert run.info.experiment_id == apart.experiment_id
    kinds = [one.data.tags["rankeval.kind"] for one in client.search_runs([letor.experiment_id])]
    assert kinds == ["evaluation"]
    (used,) = run.inputs.dataset_inputs
    assert used.dataset.name == "letor-test"
    assert run.info.run_name == "ranker v2 for champion: accepted"
    assert re.search(r"run `[0-9a-f]{32}`", run.data.tags["mlflow.note.content"])
    taken_back = client.get_run(rkm.rollback("ranker", reason="x").run_id)
    assert taken_back.info.experiment_id == apart.experiment_id
    other = client.get_run(rkm.promote("ranker", better, measure="nDCG@10", again=True, experiment="releases").run_id)
    assert client.get_experiment(other.info.experiment_id).name == "releases"


def test_what_comes_from_outside_shows_as_text(ranker):
    done = rkm.promote("ranker", ranker.add(0.1), measure="nDCG@10", dry_run=True)
    assert "<script>" not in replace(done, reason="<script>alert(1)</script>")._repr_html_()
    assert "&lt;script&gt;" in replace(done, reason="<script>alert(1)</script>")._repr_html_()


def test_another_store_is_asked_by_its_address(ranker, store):
    version = ranker.add(0.1)
    mlflow.set_tracking_uri("sqlite:////nowhere/at/all.db")
    assert rkm.promote("ranker", version, measure="nDCG@10", uri=store).moved
    assert mlflow.get_tracking_uri() == "sqlite:////nowhere/at/all.db"
