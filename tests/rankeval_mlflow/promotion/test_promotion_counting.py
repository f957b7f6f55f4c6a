"""Promotions on the same queries are counted by their records, and share one level."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.contamination import refusal
from rankeval.errors import InvalidInput, LedgerError, TrackingError
from rankeval.guard.journal import SERVICES
from rankeval.ledger.discovery import ledger_url
from rankeval.ledger.ledger import Ledger
from rankeval_mlflow.run_names import DECISION

ASKED = {"measure": "nDCG@10"}


def logged(ranker, ids, gain=0.0, *, label=1, seed=None):
    """Log an evaluation of a new version on some queries; return its number."""
    made = ranker.client.create_model_version(ranker.name, "s3://models/ranker")
    qid = np.repeat(np.asarray(ids), 2)
    empty = rk.evaluate(np.tile([label, 0], len(ids)), np.zeros(len(qid)), qid=qid, measures="nDCG@10")
    noise = np.random.default_rng(int(made.version) if seed is None else seed).normal(gain, 0.1, len(ids))
    rkm.log(replace(empty, scores=0.5 + noise[:, None]), role="test", model_version=made)
    return str(made.version)


def promoted(ranker, ids, gain=0.0, *, label=1, alias="champion", **options):
    """Promote a new version over another new one, both evaluated on some queries."""
    ranker.put(logged(ranker, ids, label=label), alias)
    return rkm.promote("ranker", logged(ranker, ids, gain, label=label), alias, **ASKED, **options)


def record(client, run_id, tmp_path):
    return json.loads(Path(client.download_artifacts(run_id, DECISION, str(tmp_path))).read_text("utf-8"))


def altered(client, run_id, change):
    """Change the record of a run in its folder; None deletes it."""
    path = Path(client.get_run(run_id).info.artifact_uri.removeprefix("file://")) / DECISION
    path.unlink() if change is None else path.write_text(change(path.read_text("utf-8")), "utf-8")


def test_each_decision_has_its_share_and_says_which_one_it_is(ranker, client, tmp_path):
    first, second = (rkm.promote("ranker", ranker.add(0.0), **ASKED) for _ in "ab")
    assert "This is decision 1 of 20 on these queries, tested at 0.0025." in first.reason
    assert (second.decision.counted, second.decision.remaining, second.decision.is_new) == (
        "decision 2 of 20",
        18,
        True,
    )
    assert second.comparison.settings.alpha == 0.0025
    said = record(client, second.run_id, tmp_path)
    unknown = said["budget"].pop("not_known")
    assert unknown == (
        "Counted are the recorded promotions to ranker@champion in this store: decisions on other servers, in erased "
        "runs or by other tools are not known."
    )
    for told in (second.reason, client.get_run(second.run_id).data.tags["mlflow.note.content"]):
        assert unknown in told
    assert said["budget"] == {"counted": "decision 2 of 20", "remaining": 18, "budget": 20, "is_new": True}
    assert (said["rule"]["alpha"], said["rule"]["budget"], said["rule"]["level"]) == (0.05, 20, 0.0025)
    run = client.get_run(second.run_id)
    assert run.data.params["counted"] == "decision 2 of 20"
    assert "decision 2 of 20" in run.data.tags["rankeval.headline"]


def test_the_same_question_has_the_recorded_answer_for_free(ranker, client):
    """Also after a rollback; another measure, claim or margin is another question."""
    better = ranker.add(0.1)
    done = rkm.promote("ranker", better, **ASKED)
    rkm.rollback("ranker", reason="empty pages")
    again = rkm.promote("ranker", better, **ASKED, again=True)
    assert (done.moved, again.moved, again.decision.is_new, again.decision.remaining) == (True, True, False, 19)
    assert again.reason.startswith(f"Decided before, so it is free (19 of 20 decisions left), in run {done.run_id}: ")
    ranker.put("1")
    other = rkm.promote("ranker", better, **ASKED, margin=0.01)
    assert (other.decision.is_new, other.decision.remaining) == (True, 18)
    altered(client, done.run_id, lambda text: text.replace('"decision": "accepted"', '"decision": "rejected"'))
    ranker.put("1")
    assert rkm.promote("ranker", better, **ASKED).outcome == "rejected", "the answer is the recorded one"


def test_an_answer_of_another_version_with_the_same_scores_names_it(ranker, scores_of):
    """So that nobody wonders why the decision on version 3 speaks of version 2."""
    for _ in range(2):
        done = rkm.promote("ranker", ranker.add(scores=scores_of(0.0)), **ASKED)
    assert (done.version, done.decision.is_new) == ("3", False)
    assert done.reason.startswith("Decided before on ranker v2, which has the same scores by query, so it is free (")


@pytest.mark.further
def test_first_versions_and_rollbacks_are_no_decisions(ranker):
    rkm.promote("ranker", 1, "canary", **ASKED, first=True)
    assert rkm.promote("ranker", ranker.add(0.1), "canary", **ASKED).decision.counted == "decision 1 of 20"
    rkm.rollback("ranker", "canary", reason="empty pages")
    assert rkm.promote("ranker", ranker.add(0.0), "canary", **ASKED).decision.counted == "decision 2 of 20"


@pytest.mark.further
def test_other_aliases_and_models_have_decisions_of_their_own(ranker, ranker_of, client):
    rkm.promote("ranker", ranker.add(0.0), **ASKED)
    ranker.put("1", "canary")
    assert rkm.promote("ranker", ranker.add(0.0), "canary", **ASKED).decision.remaining == 19
    other = ranker_of(client, "reranker")
    assert rkm.promote("reranker", other.add(0.0), **ASKED).decision.remaining == 19


@pytest.mark.further
def test_parts_more_and_relabelled_judgments_of_the_same_queries_count(ranker):
    names = [f"q{number}" for number in range(80)]
    assert promoted(ranker, names[:40]).decision.remaining == 19
    assert promoted(ranker, names[:20]).decision.remaining == 18, "a part"
    assert promoted(ranker, names).decision.remaining == 17, "more queries"
    assert promoted(ranker, names[:40], label=2).decision.remaining == 16, "other judgments"


def test_fresh_queries_do_not_count_and_ids_are_texts(ranker):
    names = [f"q{number}" for number in range(80)]
    assert promoted(ranker, names).decision.remaining == 19
    assert promoted(ranker, [f"r{number}" for number in range(80)]).decision.remaining == 19, "fresh queries"
    assert promoted(ranker, names[78:] + [f"s{number}" for number in range(78)]).decision.remaining == 19, "few shared"
    assert promoted(ranker, range(100)).decision.remaining == 19
    assert promoted(ranker, [str(number) for number in range(100)]).decision.remaining == 18, "7 and '7' are one id"


@pytest.mark.further
def test_decisions_whose_evaluation_is_gone_count(ranker, client):
    """Nobody knows of which queries they were."""
    done = promoted(ranker, [f"q{number}" for number in range(40)])
    assert promoted(ranker, [f"r{number}" for number in range(40)]).decision.remaining == 19
    gone = json.loads(Path(client.download_artifacts(done.run_id, DECISION)).read_text("utf-8"))["candidate_run"]
    client.delete_run(gone)
    assert promoted(ranker, [f"s{number}" for number in range(40)]).decision.remaining == 19, "it can still be read"
    shutil.rmtree(client.get_run(gone).info.artifact_uri.removeprefix("file://"))
    assert promoted(ranker, [f"t{number}" for number in range(40)]).decision.remaining == 18


@pytest.mark.further
def test_deleted_records_and_those_of_other_experiments_count(ranker, client):
    """Such as those of before, which lie among the candidates."""
    names = [f"q{number}" for number in range(40)]
    client.delete_run(promoted(ranker, names, experiment="old").run_id)
    assert promoted(ranker, names, experiment="Default").decision.remaining == 18
    client.delete_experiment(client.get_experiment_by_name("old").experiment_id)
    assert promoted(ranker, names).decision.remaining == 17


def test_a_spent_budget_is_refused_with_the_ways_on(ranker, client, promotions):
    names = [f"q{number}" for number in range(40)]
    done = promoted(ranker, names, budget=1)
    assert "This is decision 1 of 1, a single release on these queries, tested at 0.05." in done.reason
    with pytest.raises(LedgerError, match="has made its 1 decision on these queries, and decides no more") as spent:
        promoted(ranker, names, 0.2, budget=1)
    assert (spent.value.argument, spent.value.found) == ("budget", "1")
    assert "fresh queries" in spent.value.remedy
    assert "gate of the guard" in spent.value.remedy
    assert len(promotions(client)) == 1
    ranker.put(str(int(done.version) - 1))
    assert rkm.promote("ranker", done.version, **ASKED, budget=1).outcome == "rejected", "a free repetition still is"
    assert promoted(ranker, [f"r{number}" for number in range(40)], 0.2, budget=1).moved


OTHER_TERMS = [
    ({"budget": 100}, ("budget", "100", "20")),
    ({"budget": 1}, ("budget", "1", "20")),
    ({"alpha": 0.2}, ("alpha", "0.2", "0.05")),
    ({"alpha": 0.2, "budget": 80}, ("alpha", "0.2", "0.05")),
]


@pytest.mark.further
def test_terms_do_not_change_on_the_same_queries(ranker, client, promotions):
    rejected = rkm.promote("ranker", ranker.add(0.0), **ASKED)
    for version in (rejected.version, ranker.add(0.1)):
        for options, expected in OTHER_TERMS:
            with pytest.raises(LedgerError, match=r"by other terms \(alpha 0.05 over a budget of 20\)") as caught:
                rkm.promote("ranker", version, **ASKED, **options)
            error = caught.value
            assert (error.argument, error.found, error.expected) == expected, options
    assert len(promotions(client)) == 1


@pytest.mark.parametrize(
    "change",
    [
        None,
        lambda text: text.replace('"judgments"', '"judgment"'),
        pytest.param(lambda text: text[:50], marks=pytest.mark.rest),
        pytest.param(lambda _: "[]", marks=pytest.mark.rest),
    ],
)
def test_a_record_that_cannot_be_read_does_not_count_as_none(ranker, client, change):
    done = rkm.promote("ranker", ranker.add(0.0), **ASKED)
    altered(client, done.run_id, change)
    better = ranker.add(0.1)
    with pytest.raises(TrackingError, match="cannot be read, so nobody knows") as caught:
        rkm.promote("ranker", better, **ASKED)
    assert caught.value.where == done.run_id
    assert ranker.holder() == "1"
    ranker.put("1", "canary")
    assert rkm.promote("ranker", better, "canary", **ASKED).moved, "another alias has records of its own"


@pytest.mark.further
def test_a_record_from_before_counts_by_its_judgments(ranker, client):
    """It has no question and no budget."""

    def old(text):
        said = json.loads(text)
        for name in ("question", "budget"):
            del said[name]
        del said["rule"]["budget"], said["rule"]["level"]
        return json.dumps(said | {"rule": said["rule"] | {"alpha": 0.025}})

    altered(client, rkm.promote("ranker", ranker.add(0.0), **ASKED).run_id, old)
    assert rkm.promote("ranker", ranker.add(0.0), **ASKED).decision.counted == "decision 2 of 20"
    assert promoted(ranker, [f"q{number}" for number in range(40)]).decision.counted == "decision 1 of 20"


@pytest.mark.further
def test_a_champion_that_was_chosen_on_these_queries_is_noted(ranker):
    first = rkm.promote("ranker", ranker.add(0.1), **ASKED)
    assert "itself accepted" not in first.reason
    second = rkm.promote("ranker", ranker.add(0.0), **ASKED)
    assert "Version 2 of ranker was itself accepted on these queries, so its mean here is too high" in second.reason
    names = [f"q{number}" for number in range(40)]
    assert "itself accepted" not in promoted(ranker, names).reason


@pytest.mark.further
def test_a_gate_counts_its_own_decisions_and_says_how_many_were_made_without_it(ranker, tmp_path):
    """The ids are those of the evaluations, so the queries are the same."""
    data = rk.datasets.make_ranking(200, 10, 4, rng=3)
    ids = np.unique(data.qid)
    guard = rk.Guard("shop", ledger=str(tmp_path / "ledger"))
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=10)
    rejected = rkm.promote("ranker", ranker.add(role=None), gate=gate, candidate=-data.y, holder=data.X[:, 3])
    assert rejected.reason.startswith("Gate 'gate' on 'shop-test' does not accept it; decision 1 of 10.")
    assert "Without a gate" not in rejected.reason
    assert promoted(ranker, ids).decision.counted == "decision 1 of 20"
    done = rkm.promote("ranker", ranker.add(role=None), gate=gate, candidate=data.y, holder=data.X[:, 3])
    assert done.decision.counted == "decision 2 of 10"
    assert "Without a gate, 1 decision for ranker@champion used these queries, so the levels add up" in done.reason
    shutil.rmtree(tmp_path / "ledger")


def test_a_gate_decides_though_a_record_cannot_be_read(ranker, client, tmp_path):
    altered(client, rkm.promote("ranker", ranker.add(0.0), **ASKED).run_id, None)
    data = rk.datasets.make_ranking(60, 10, 4, rng=3)
    guard = rk.Guard("shop", ledger=str(tmp_path / "ledger"))
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=3)
    done = rkm.promote("ranker", ranker.add(role=None), gate=gate, candidate=data.y, holder=data.X[:, 3])
    assert done.moved
    assert "Whether other decisions were made on these queries is not known" in done.reason


@pytest.mark.further
def test_two_machines_may_both_make_the_third_decision_and_both_count(ranker, monkeypatch):
    """Neither sees the record of the other; who comes after sees both."""
    first, second, third = (ranker.add(0.0) for _ in "abc")
    monkeypatch.setattr("rankeval_mlflow.promotion.deciding.made_on", lambda *_: [])
    assert [rkm.promote("ranker", one, **ASKED).decision.remaining for one in (first, second)] == [19, 19]
    monkeypatch.undo()
    assert rkm.promote("ranker", third, **ASKED).decision.remaining == 17


def test_bad_terms_are_refused_before_the_store_is_asked(ranker):
    for options in ({"budget": 0}, {"budget": True}, {"alpha": 0.0}):
        with pytest.raises(InvalidInput) as caught:
            rkm.promote("ranker", 1, **ASKED, **options)
        assert caught.value.argument == next(iter(options))
    assert ranker.holder() == "1"


def in_a_ledger(tmp_path, monkeypatch):
    """Return a ledger that is the project's own, with something in it."""
    place = tmp_path / "rankeval-ledger"
    refusal.forget()  # ledgers of other tests of this process
    monkeypatch.setenv("RANKEVAL_LEDGER", str(place))
    for variable in " ".join(SERVICES).split():
        monkeypatch.delenv(variable, raising=False)
    rk.Guard("shop").register("other", qrels={f"o{number}": {"a": 1, "b": 0} for number in range(20)})
    return Ledger(ledger_url(place))


@pytest.mark.further
def test_no_decision_by_evaluations_is_an_entry_of_a_ledger(ranker, tmp_path, monkeypatch):
    """The guard's ledger has what the guard did; promotions are counted by their records in MLflow."""
    ledger = in_a_ledger(tmp_path, monkeypatch)
    names = [f"q{number}" for number in range(40)]
    assert [promoted(ranker, names).decision.remaining for _ in "ab"] == [19, 18]
    assert [one.kind for one in ledger.read().entries] == ["register"]


def test_entries_of_promotions_in_older_ledgers_are_read(ranker, tmp_path, monkeypatch):
    """They are no error and no look, and no longer counted."""
    ledger = in_a_ledger(tmp_path, monkeypatch)
    body = {"model": "ranker", "alias": "champion", "version": "2", "decision": "accepted", "judgments": "x"}
    ledger.append("ranker", ("promote", body))
    guard = rk.Guard("shop")
    assert guard.verify()
    assert promoted(ranker, [f"q{number}" for number in range(40)]).decision.counted == "decision 1 of 20"
    data = rk.datasets.make_ranking(60, 10, 4, rng=3)
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=3)
    assert gate.decide("ideal", data.y).n_exposed == 0
