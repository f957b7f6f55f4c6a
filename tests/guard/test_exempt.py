"""An exemption is on record, holds everywhere, and makes queries count as exposed."""

from __future__ import annotations

import numpy as np
import pytest
from guard.conftest import standing
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.errors import GuardRefusal, InvalidInput, LedgerError


def part(data, n):
    return data.take(np.isin(data.qid, np.unique(data.qid)[:n]))


@pytest.mark.usefixtures("test")
def test_status_masks_the_rows_and_names_the_queries(team, data):
    other = rk.datasets.make_ranking(30, 10, 4, rng=9)
    few = part(data, 12)
    X, y = np.vstack([other.X, few.X]), np.append(other.y, few.y)
    qid = np.append([f"dev {one}" for one in other.qid], few.qid.astype(str))
    status = team.guard.status(X, y, qid=qid)
    assert status.refused
    assert status.rows.tolist() == [False] * 300 + [True] * 120
    assert sorted(status.queries) == sorted(set(few.qid.astype(str).tolist()))
    assert not team.guard.status(X[~status.rows], y[~status.rows], qid=qid[~status.rows])
    assert "12 queries of the data" in status.words
    assert "~status.rows marks the rest" in status._repr_html_()
    assert team.guard.status(other).queries == []
    assert not team.guard.status(other).rows.any()


def test_what_is_exempt_is_not_refused_any_more(team, test, data, monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER", team.guard.ledger)
    few = part(data, 12)
    with pytest.raises(GuardRefusal):
        rk.cross_validate(Ridge(), few.X, few.y, qid=few.qid, measures="nDCG@10", cv=2)
    assert team.guard.exempt(test, team.guard.status(few), "another split of the same data") == 12
    assert not team.guard.status(few)
    rk.cross_validate(Ridge(), few.X, few.y, qid=few.qid, measures="nDCG@10", cv=2)
    assert team.guard.status(data).refused, "the rest is still registered"
    (entry,) = [entry for entry in team.guard._ledger.read().entries if entry.kind == "exempt"]
    assert entry.body["reason"] == "another split of the same data"
    assert team.guard.exempt("test", team.guard.status(data), "again") == 88


@pytest.mark.usefixtures("test")
def test_queries_are_named_by_their_registered_ids_without_data(team, theirs, data):
    ids = np.unique(data.qid)[:12].tolist()
    assert theirs.guard.exempt("ours/test", ids, "shared head queries") == 12
    assert theirs.guard.exempt("test", [str(one) for one in ids], "again, as texts") == 0
    assert not team.guard.status(part(data, 12))
    assert len([entry for entry in team.guard._ledger.read().entries if entry.kind == "exempt"]) == 1


@pytest.mark.usefixtures("test")
@pytest.mark.filterwarnings("ignore:RG003")
def test_an_exemption_holds_in_every_registration_of_the_queries_before_and_after(team, theirs, data):
    theirs.guard.register("mine", np.column_stack([data.X, data.X[:, 0] ** 2]), data.y, qid=data.qid)
    few = part(data, 12)
    team.guard.exempt("ours/test", team.guard.status(few), "overlap")
    assert not team.guard.status(few)
    assert not theirs.guard.status(np.column_stack([few.X, few.X[:, 0] ** 2]), few.y, qid=few.qid)
    team.guard.register("later", data.X + 1, data.y, qid=data.qid)
    assert not team.guard.status(few)
    assert not team.guard.status(few.X + 1, few.y, qid=few.qid)


def test_exempted_queries_count_as_exposed_for_later_plans(team, test, data):
    before = team.frozen(test, 1)
    team.guard.exempt(test, team.guard.status(part(data, 12)), "overlap")
    assert standing(team.guard.open(before)) == "confirmatory"
    result = team.opened(test, 3)
    assert standing(result) == "exploratory"
    assert any(note.startswith("12 of 100 queries had been exempted or retired") for note in result.notes)


def test_without_looks_the_rest_is_still_confirmatory(team, test, data):
    team.guard.exempt(test, team.guard.status(part(data, 12)), "overlap")
    plan = team.frozen(test, 1, fresh=True)
    assert "tests on 88 of 100 queries" in plan.notes[0]
    assert standing(team.guard.open(plan)) == "confirmatory"
    assert standing(team.opened(test, 1, 2)) == "exploratory"


@pytest.mark.filterwarnings("ignore:RG003")
def test_what_cannot_be_exempted_is_said(team, theirs, test, data):
    for queries, message in (
        ([], "queries is empty"),
        (["nowhere", 5], r"1 id in queries= is not in 'test': 'nowhere'"),
        ("test", "^queries is 'test'; expected "),
        (team.guard.status(rk.datasets.make_ranking(30, 10, 4, rng=9)), "found no query of 'test'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            team.guard.exempt(test, queries, "why")
    with pytest.raises(InvalidInput) as said:
        team.guard.exempt(test, [5], " ")
    assert said.value.argument == "reason"
    with pytest.raises(LedgerError, match=r"no collections are called 'tset'.*ours/test"):
        theirs.guard.exempt("tset", [5], "why")
    with pytest.raises(InvalidInput, match=r"^collection is 7; expected"):
        theirs.guard.exempt(7, [5], "why")
    third = rk.Guard("third", ledger=team.guard.ledger)
    theirs.guard.register("test", data)
    with pytest.raises(LedgerError, match=r"2 collections are called 'test'.*ours/test, theirs/test"):
        third.exempt("test", [5], "why")
