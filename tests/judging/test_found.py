"""Defects that a hostile tester found in `rankeval.judging`: each test fails until its defect is mended."""

from __future__ import annotations

import contextlib
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rankeval as rk
from rankeval.errors import RankevalError
from rankeval.judging.machine import two_phase


@pytest.mark.parametrize("do", ["adds", "order", "qrels"])
@pytest.mark.parametrize("other", [{1: {"d1": 1}}, {"q1": {1: 1}}], ids=["qid", "docid"])
def test_ids_of_another_kind_than_the_pools_are_an_error_of_rankeval(do, other):
    """Ids of another kind than the pool's are an InvalidInput, as `adds` says, and not the ValueError of a merge."""
    pool = rk.judging.pool({"a": {"q1": ["d1", "d2"]}})
    calls = {
        "adds": lambda: pool.adds(other),
        "order": lambda: pool.order(judged=other),
        "qrels": lambda: pool.qrels(other),
    }
    with pytest.raises(RankevalError):
        calls[do]()


def test_zero_is_no_number_above_zero():
    """Minutes of 0 and a width of 0 are refused, as both docstrings say."""
    with pytest.raises(RankevalError):
        rk.judging.pool({"a": {"q1": ["d1"]}}).cost(minutes=0)


def pilot(people, machine):
    """Return a calibration of one system."""
    return rk.judging.calibrate({"a": pd.DataFrame({"AP": people})}, {"a": pd.DataFrame({"AP": machine})})


RANDOM = np.random.default_rng(0).random(40)


def test_a_plan_of_width_zero_is_refused():
    """The docstring of `plan` refuses a width that is not above 0."""
    with pytest.raises(RankevalError):
        rk.judging.plan(pilot(RANDOM[:20], RANDOM[::-1]), width=0)


def test_a_plan_for_very_many_machine_queries_needs_no_memory():
    """A number of machine queries beyond memory is answered or refused, and no array of its size is made."""
    tracemalloc.start()
    with contextlib.suppress(RankevalError):
        rk.judging.plan(pilot(RANDOM[:20], RANDOM[::-1]), width=0.1, n_machine=3_000_000)
    assert tracemalloc.get_traced_memory()[1] < 30e6
    tracemalloc.stop()


def test_a_plan_with_a_machine_that_says_nothing_is_that_without_it():
    """If the machine's scores do not vary, `calibrate` takes people alone, and so n_human is n_without."""
    row = rk.judging.plan(pilot(RANDOM[:12], np.full(400, 0.3)), width=0.2).table.iloc[0]
    assert row.n_human == row.n_without


def test_a_plan_from_scores_that_do_not_vary_does_not_blame_the_machine():
    """If people's scores do not vary no width is known; the note does not say nan, nor ask for more machine queries."""
    notes = " ".join(rk.judging.plan(pilot(np.full(12, 0.5), RANDOM), width=0.1).notes)
    assert "nan" not in notes
    assert "machine must judge more" not in notes


def test_float_grades_need_memory_by_documents_and_not_by_grades_squared():
    """Agreement of 200 documents with real-valued scores of a model takes less than 100 MB."""
    rng = np.random.default_rng(0)
    one, two = ({f"q{q}": {f"d{d}": float(rng.random()) for d in range(20)} for q in range(10)} for _ in range(2))
    tracemalloc.start()
    rk.judging.agreement(one, two, level="interval")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_documents_that_nobody_judged_are_no_agreement():
    """Two judges who differ on all documents of a sample do not agree by the -1 of those that were left out."""
    part = rk.judging.pool({"a": {q: list("abcdefghij") for q in ("q", "r")}}).sample(0.2)
    one = {q: dict.fromkeys("abcdefghij", int(q == "q")) for q in ("q", "r")}
    two = {q: dict.fromkeys("abcdefghij", int(q == "r")) for q in ("q", "r")}
    assert rk.judging.agreement(part.qrels(one), part.qrels(two))["observed"] == 0


def test_a_label_beats_not_judged_in_a_consensus():
    """-1 is no label, as `Pool.order` says, so one judge's 1 and another one's "not judged" make 1."""
    found = rk.judging.consensus({"ann": {"q": {"d": 1}}, "bo": {"q": {"d": -1}}})
    assert found.qrels.to_frame()["relevance"].tolist() == [1]


@pytest.mark.filterwarnings("ignore")
def test_a_query_whose_judgments_all_go_with_a_group_still_counts():
    """The mean by all judgments is that of `evaluate`, also if a query loses all its judgments with a group."""
    runs = {"one": {"q1": ["d1"], "q2": ["d3"], "q3": ["d1"]}, "two": {"q1": ["d1"], "q2": ["d4"], "q3": ["d1"]}}
    qrels = {"q1": {"d1": 1}, "q2": {"d4": 1}, "q3": {"d1": 1}}
    row = rk.judging.reusability(qrels, runs, depth=1, measure="P@1").table.set_index("system").loc["two"]
    assert row["mean"] == rk.evaluate(qrels, runs["two"], measures=["P@1"]).mean()["P@1"] == 1
    assert row["mean_without"] == pytest.approx(2 / 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("groups", [None, {1: 7, 2: 8}], ids=["runs", "groups"])
def test_numbers_may_name_runs_and_groups(groups):
    """Runs and groups that are named by numbers give a table, as in `pool` and `disagreement`."""
    runs = {1: {"q1": ["d1"], "q2": ["d3"]}, 2: {"q1": ["d2"], "q2": ["d4"]}}
    qrels = {"q1": {"d1": 1, "d9": 1}, "q2": {"d4": 1, "d9": 1}}
    assert len(rk.judging.reusability(qrels, runs, depth=1, measure="P@1", groups=groups).table) == 2


RUNS = {"x": {"q1": ["d1"], "q2": ["d1"]}, "y": {"q1": ["d2"], "q2": ["d1"]}}
JUDGES = {"ann": {"q1": {"d1": 1}, "q2": {"d1": 1}}, "bo": {"q1": {"d1": 1}, "q2": {"d1": 0}}}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_draws", [0, -1, 1.5])
def test_a_number_of_draws_that_is_none_is_named(n_draws):
    """A number of draws that is no whole number from 1 on is refused by its name."""
    with pytest.raises(RankevalError, match="n_draws"):
        rk.judging.disagreement(JUDGES, RUNS, measure="P@1", n_draws=n_draws)


def test_judges_without_a_common_query_are_named():
    """Judges with no query in common are refused as such, and not as empty qrels."""
    judges = {"ann": {"q1": {"d1": 1}}, "bo": {"q2": {"d1": 1}}}
    with pytest.raises(RankevalError, match=r"quer(y|ies) .*all|all .*quer(y|ies)|common"):
        rk.judging.disagreement(judges, RUNS, measure="P@1")


def test_ids_of_two_kinds_are_an_error_of_rankeval_when_drawn():
    """Query ids of two kinds are an InvalidInput of `draw`."""
    with pytest.raises(RankevalError):
        rk.judging.draw([1, "a"], 1)


def test_a_text_is_no_collection_of_queries():
    """A text given as queries is refused, and is not drawn from letter by letter."""
    with pytest.raises(RankevalError):
        rk.judging.draw("abc", 1)


def test_intervals_hold_if_the_noise_grows_with_the_machines_score():
    """If nothing is assumed of the machine, 95 % intervals hold in .9 of trials also where the noise is unequal."""
    rng = np.random.default_rng(9)
    n, n_all, trials = 10, 300, 2000
    machine = rng.beta(0.5, 3, (n_all, trials))
    human = 0.3 + 0.9 * machine[:n] * rng.normal(size=(n, trials)) + 0.05 * rng.normal(size=(n, trials))
    found = two_phase(human, machine[:n], machine)
    reach = stats.t.isf(0.025, found["degrees"]) * found["std_error"]
    assert ((found["estimate"] - 0.3).abs() <= reach).mean() > 0.9
