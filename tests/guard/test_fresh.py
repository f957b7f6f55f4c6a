"""Plans on fresh queries only: how many, what they can show, and what they expose."""

from __future__ import annotations

import numpy as np
import pytest
from guard.conftest import standing
from shown import whole

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.guard import Guard
from rankeval.significance.power import detectable_difference

MORE = rk.datasets.make_ranking(40, 10, 4, rng=99)


@pytest.fixture
def larger(team, test, data):
    """Return a collection of 140 queries, 100 of which were looked at."""
    team.opened(test, 1)
    X, y = np.vstack([data.X, MORE.X]), np.append(data.y, MORE.y)
    return team.guard.register("test", X, y, qid=np.append(data.qid, MORE.qid + 1000), supersedes=test)


def scores(X, *weights):
    return {f"s{weight}": X[:, 0] + weight * X[:, 1] for weight in weights}


def test_only_fresh_queries_are_scored_and_the_result_is_confirmatory(team, larger):
    plan = team.frozen(larger, 2, fresh=True, secondary="AP")
    result = team.guard.open(plan)
    assert standing(result) == "confirmatory"
    expected = {
        name: rk.evaluate(MORE.y, score, qid=MORE.qid + 1000, measures=["nDCG@10", "AP"])
        for name, score in scores(MORE.X, 0, 2).items()
    }
    for name, wanted in expected.items():
        found = result.evaluations[name]
        assert sorted(found.queries.tolist()) == sorted(wanted.queries.tolist())
        assert found.aggregate()["nDCG@10"] == pytest.approx(wanted.aggregate()["nDCG@10"], abs=1e-12)
    assert result.table["n_queries"].tolist() == [40, 40]
    assert plan.notes[0] in result.notes
    assert team.guard.looks(larger)["n_queries"].tolist() == [100, 40]


@pytest.mark.parametrize("n_fresh", [1, 2])
@pytest.mark.filterwarnings("ignore:RG003")
def test_two_fresh_queries_are_the_fewest(team, test, data, n_fresh):
    team.opened(test, 1)
    few = MORE.qid <= np.unique(MORE.qid)[n_fresh - 1]
    X, y = np.vstack([data.X, MORE.X[few]]), np.append(data.y, MORE.y[few])
    larger = team.guard.register("test", X, y, qid=np.append(data.qid, MORE.qid[few] + 1000), supersedes=test)
    if n_fresh == 2:
        assert team.frozen(larger, 1, fresh=True).queries is not None
    else:
        with pytest.raises(InvalidInput):
            team.frozen(larger, 1, fresh=True)


def test_number_and_detectable_difference_are_said_at_the_freeze(team, larger, data):
    plan = team.frozen(larger, 2, 3, fresh=True)
    opened = {
        name: rk.evaluate(data.y, score, qid=data.qid, measures="nDCG@10").scores[:, 0]
        for name, score in scores(data.X, 0, 1).items()
    }
    sd = float(np.std(opened["s1"] - opened["s0"], ddof=1))
    found = float(detectable_difference(40, sd, 0.025))
    (said,) = plan.notes
    assert said.startswith("tests on 40 of 140 queries, those not recognised as looked at; a difference of about ")
    assert f" {found:.3f} in nDCG@10 is found with a power of 80 % if differences have a standard deviation of" in said
    assert said.endswith(f"{sd:.2f} (as between the systems opened before)")
    assert plan.notes[0] in whole(plan)
    assert plan.notes[0] in plan._repr_html_()
    assert team.guard.plan(plan.id).notes == plan.notes


def test_without_opened_scores_the_deviation_is_assumed(team, test):
    plan = team.frozen(test, 1, fresh=True)
    assert "standard deviation of 0.20 (assumed, since no scores were opened)" in plan.notes[0]
    assert plan.queries is None, "all queries are fresh, so this is the plan without queries="
    assert plan.id == team.frozen(test, 1).id


def test_a_single_system_is_told_the_number_only(team, larger):
    plan = team.frozen(larger, 2, baseline=None, fresh=True)
    assert plan.notes == ("tests on 40 of 140 queries, those not recognised as looked at",)


def test_what_a_plan_on_fresh_queries_exposes_is_not_fresh_again(team, larger):
    first, second = (team.frozen(larger, weight, fresh=True) for weight in (2, 3))
    assert standing(team.guard.open(first)) == "confirmatory"
    with pytest.raises(InvalidInput, match=r"0 of 140 queries of 'test' were never looked at.*supersedes='test'"):
        team.frozen(larger, 4, fresh=True)
    result = team.guard.open(second)
    assert standing(result) == "confirmatory", "frozen before the first opening of these queries: one family"
    assert any("1 system of other plans frozen by then" in note for note in result.notes)
    assert standing(team.opened(larger, 5)) == "exploratory"


def test_a_plan_on_a_part_opens_in_another_process_and_row_order(team, larger):
    plan = team.frozen(larger, 2, fresh=True)
    here = team.guard.open(plan)
    data = larger.content
    order = np.random.default_rng(0).permutation(len(data.y))
    elsewhere = Guard("ours", ledger=team.guard.ledger)
    elsewhere.register("test", data.X[order], data.y[order], qid=[f"x{one}" for one in data.qid[order]])
    there = elsewhere.open(plan.id)
    assert there.table["difference"].tolist() == pytest.approx(here.table["difference"].tolist(), abs=1e-12)
    assert len(team.guard.looks(larger)) == 2


def test_judgments_have_fresh_queries_too(team):
    qrels = {f"q{q}": {f"d{q}-{d}": int((q * d) % 3 == 1) for d in range(12)} for q in range(60)}
    rng = np.random.default_rng(0)
    runs = [{q: {d: float(rng.random()) for d in docs} for q, docs in qrels.items()} for _ in range(2)]
    old = team.guard.register("topics", qrels=dict(list(qrels.items())[:30]))
    options = {"measure": "AP", "n_resamples": 99}
    team.guard.open(team.guard.freeze(old, systems={"a": runs[0], "b": runs[1]}, **options))
    new = team.guard.register("topics", qrels=qrels, supersedes=old)
    result = team.guard.open(team.guard.freeze(new, systems={"a": runs[0], "b": runs[1]}, fresh=True, **options))
    assert standing(result) == "confirmatory"
    assert set(result.evaluations["a"].queries) == {f"q{q}" for q in range(30, 60)}


def test_only_fresh_can_be_asked_for(team, test):
    with pytest.raises(InvalidInput) as caught:
        team.frozen(test, 1, fresh="new")
    assert (caught.value.argument, caught.value.found) == ("fresh", "'new'")


def scaled(data, share, seed=0):
    """Return standardised features, and labels of which a share is drawn again."""
    rng = np.random.default_rng(seed)
    X, y = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0), data.y.copy()
    drawn = rng.random(len(y)) < share
    y[drawn] = rng.permutation(y)[drawn]
    return X, y


@pytest.mark.filterwarnings("ignore:RG003")
@pytest.mark.parametrize("share", [0.05, 0.1])
@pytest.mark.parametrize("supersedes", [None, "test"])
def test_what_is_not_recognised_beside_what_is_recognised_is_not_known_to_be_fresh(team, test, data, share, supersedes):
    """With new ids, scaled features and other labels some queries are found, and the rest were looked at too."""
    team.opened(test, 1)
    X, y = scaled(data, share)
    again = team.guard.register("again", X, y, qid=data.qid + 1000, supersedes=supersedes)
    with pytest.raises(InvalidInput, match=r"0 of 100 queries of 'again' are known to be new.*may be among them"):
        team.frozen(again, 2, fresh=True)


@pytest.mark.filterwarnings("ignore:RG003")
def test_ids_that_were_kept_tell_which_queries_are_new(team, test, data):
    team.opened(test, 1)
    X, y = scaled(data, 0.05)
    X, y = np.vstack([X, MORE.X]), np.append(y, MORE.y)
    larger = team.guard.register("larger", X, y, qid=np.append(data.qid, MORE.qid + 1000))
    plan = team.frozen(larger, 2, fresh=True)
    assert plan.notes[0].startswith("tests on 40 of 140 queries")


@pytest.mark.filterwarnings("ignore:RG003")
def test_features_that_were_kept_tell_which_queries_are_new(team, test, data):
    """Half of the old queries come again, with new ids and other labels: rows would show the other half too."""
    team.opened(test, 1)
    half = data.qid <= 50
    X, y = np.vstack([data.X[half], MORE.X]), np.append(np.roll(data.y, 1)[half], MORE.y)
    other = team.guard.register("other", X, y, qid=np.append(data.qid[half] + 500, MORE.qid + 1000))
    assert team.frozen(other, 2, fresh=True).notes[0].startswith("tests on 40 of 90 queries")
