"""The assumption of propensities and their values: a note where clicks depend on more than position and document.

How often the note comes is in ``tests/calibration/click_rates.json``.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import RankevalWarning
from rankeval.online import ClickLog, counterfactual, propensities
from rankeval.online.dependence import CHECKS, LEVEL, RANKED, dependence

PLACES = np.arange(1, 11)


def users_of(kind, n=4000, *, shuffled=True, n_queries=50, rng=0):
    """Return a log of users and the relevance of each document: 10 documents a query, shuffled or in a fixed order."""
    generator = np.random.default_rng(rng)
    relevant = generator.random((n_queries, 10)) < 0.4
    query = generator.integers(n_queries, size=n)
    lists = np.argsort(generator.random((n, 10)) if shuffled else ~relevant[query], axis=1, kind="stable")
    found = np.take_along_axis(relevant[query], lists, axis=1)
    chance = np.where(found, 0.95, np.linspace(0.65, 0.25, 10)) if kind == "trust" else np.where(found, 0.8, 0.15)
    hits = generator.random((n, 10)) < chance
    if kind == "cascade":
        hits &= np.cumsum(hits, axis=1) == 1
    else:
        deep = generator.random((n, 1 if kind == "unequal depth" else 10))
        above = np.cumsum(found, axis=1) - found
        hits &= deep < (0.5 + np.minimum(above, 2) / 4 if kind == "encouraged" else 1) / PLACES
    ids = {"impression": np.repeat(np.arange(n), 10), "qid": np.repeat(query, 10), "position": np.tile(PLACES, n)}
    log = ClickLog.from_frame(pd.DataFrame({**ids, "docid": lists.ravel(), "clicked": hits.ravel()}))
    return log, dict(np.ndenumerate(relevant + 0.0))


def noted(call):
    """Return the result of a call, and what it warned of a click that depends on more."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = call()
    return result, [str(one.message) for one in told if "more than position and document" in str(one.message)]


@pytest.mark.world
@each_row(
    ("kind", "check", "meaning"),
    [
        ("cascade", "items below a click got", "Users stop after a click (cascade)"),
        ("cascade", "items below more attractive documents got", "Users stop after a click (cascade)"),
        ("encouraged", "items below more attractive documents got 1", "Clicks depend on the documents above"),
        ("trust", "attractive documents at the top, and others below, got", "trust in the top"),
    ],
)
def test_users_who_are_not_position_based_are_noted(kind, check, meaning):
    """In propensities and in values, as notes and as warnings, with what to do."""
    log, relevance = users_of(kind)
    found, told = noted(lambda: propensities(log, how="randomized", n_resamples=0))
    assert told == [found.notes[-1]]
    value, told = noted(lambda: counterfactual(log, relevance, found))
    (note,) = [one for one in value.notes if "more than position and document" in one]
    for said in (found.notes[-1], note, *told):
        assert check in said
        assert meaning in said
        assert "by interleaving or in an A/B test" in said
        assert ("perplexity of held-out lists: pbm 1." in said) == (kind != "trust")
    assert found.dependence["fails"].tolist()[0] == (kind == "cascade")


@each_row("kind", ["position", "unequal depth"])
def test_position_based_users_are_not(kind):
    """Nor are those who differ in how far they look: their clicks go together, and values are right."""
    log, relevance = users_of(kind)
    found, told = noted(lambda: propensities(log, how="randomized", n_resamples=0))
    value, more = noted(lambda: counterfactual(log, relevance, found))
    assert [*told, *more] == []
    assert not [one for one in (*found.notes, *value.notes) if "more than" in one]
    assert not found.dependence["fails"].any()
    assert (found.dependence["p_more"][0] < 1e-6) == (kind == "unequal depth")


def test_lists_of_a_fixed_order_show_a_cascade_and_no_more():
    """Each document stands at one position, so that the other checks have nothing to compare."""
    tables = [dependence(users_of(kind, shuffled=False)[0])[0] for kind in ("cascade", "trust", "position")]
    assert [table["fails"].tolist() for table in tables] == [[True, False, False], [False] * 3, [False] * 3]
    assert all(table["p_fewer"].isna().tolist() == [False, True, True] for table in tables)


def test_the_log_of_the_propensities_is_tested_too():
    """Trust is seen where lists were shuffled; the log to value has a fixed order. A mapping has no log."""
    with pytest.warns(RankevalWarning, match="trust in the top"):
        found = propensities(users_of("trust")[0], how="randomized", n_resamples=0)
    log, relevance = users_of("trust", shuffled=False, rng=0)
    with pytest.warns(RankevalWarning, match="in the log of the propensities, a click depends"):
        value = counterfactual(log, relevance, found)
    assert "in the log of the propensities" in str(value.notes)
    bare, told = noted(lambda: counterfactual(log, relevance, dict(zip(PLACES, 1 / PLACES, strict=True))))
    assert (told, "more than" in str(bare.notes)) == ([], False)


def test_the_ranking_to_value_helps_to_see_trust_in_the_log_of_the_propensities():
    """1,000 impressions of 150 queries are too few for propensities; of position-based users, there is no note."""
    for kind, several in {"trust": True, "position": False}.items():
        shuffled, relevance = users_of(kind, 1000, n_queries=150)
        found, told = noted(lambda shuffled=shuffled: propensities(shuffled, how="randomized", n_resamples=0))
        log = users_of(kind, 1000, n_queries=150, shuffled=False)[0]
        _, more = noted(lambda log=log, found=found, best=relevance: counterfactual(log, best, found))
        assert (told, len(more)) == ([], several)


def test_a_ranking_that_learned_from_the_clicks_is_noted():
    """Documents by their own clicks, in a small log: worth more than the best order, which has no note."""
    log, relevance = users_of("position", 1500, n_queries=150)
    chance = dict(zip(PLACES, 1 / PLACES, strict=True))
    rows = log.to_frame()
    learned = (rows["clicked"] * rows["position"]).groupby([rows["qid"], rows["docid"]], observed=True).mean()
    value, told = noted(lambda: counterfactual(log, learned.to_dict(), chance))
    best, silent = noted(lambda: counterfactual(log, relevance, chance))
    assert (len(told), silent) == (1, [])
    assert "or the scores have learned from these clicks" in told[0]
    assert value.aggregate()["DCG@10"] > best.aggregate()["DCG@10"]


def test_the_note_stays_with_a_saved_value_and_in_comparisons(tmp_path):
    """It is a fault of the numbers, wherever they go."""
    log, relevance = users_of("cascade")
    chance = dict(zip(PLACES, 1 / PLACES, strict=True))
    values = {}
    for name, sign in {"best": 1, "worst": -1}.items():
        scores = {pair: sign * one for pair, one in relevance.items()}
        values[name] = noted(lambda scores=scores: counterfactual(log, scores, chance))[0]
    values["best"].save(tmp_path / "best.npz")
    assert rk.Evaluation.load(tmp_path / "best.npz").notes == values["best"].notes
    assert "more than position and document" in str(rk.compare(values, baseline="worst").notes)


def test_the_checks_have_a_level():
    """The sum of the levels of the checks, as the documentation says, and the result has all of them."""
    assert pytest.approx(0.01) == LEVEL == RANKED
    assert "at a level of 1 %" in propensities.__doc__
    assert "at a level of 2 %" in counterfactual.__doc__
    table, notes = dependence(users_of("position", 200)[0])
    assert (table["check"].tolist(), notes) == ([*CHECKS], ())


def test_rows_with_counts_stand_for_impressions():
    """A cascade is seen in a log of rows with counts, and position-based users have no note."""
    for kind, fails in {"cascade": True, "position": False}.items():
        rows = users_of(kind, 4000, n_queries=3)[0].to_frame()
        near = rows[rows["position"] <= 2].astype({"qid": int, "docid": int}).groupby("impression")
        lists = near.agg({"qid": "first", "docid": tuple, "clicked": tuple}).value_counts().rename("count")
        log = ClickLog.from_frame(lists.reset_index().rename(columns={"docid": "shown"}))
        assert log.counts.max() > 5
        assert dependence(log)[0]["fails"].any() == fails


def test_logs_that_say_nothing_have_no_note():
    """Without a click, with one impression, and of single items."""
    one = pd.DataFrame({"impression": ["i"] * 2, "position": [1, 2], "docid": ["a", "b"], "clicked": [0, 1]})
    for frame in (one, one.assign(clicked=0), one[one["clicked"] == 1]):
        table, notes = dependence(ClickLog.from_frame(frame, complete=False))
        assert (table["p_fewer"].isna().all(), table["fails"].any(), notes) == (True, False, ())
