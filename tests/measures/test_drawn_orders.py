"""Orders of tied rows that are drawn: right on average over queries, with the error that is said, by the query's id."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from circles import choose
from laws.test_measure_laws import required
from tables import each_row

import rankeval as rk
from rankeval.evaluation import aggregate_errors, standard_errors
from rankeval.measures import measure
from rankeval.measures.family import FAMILIES
from rankeval.measures.tie_enumeration import DRAWS

pytestmark = pytest.mark.usefixtures("without_formula")

N_ROWS, N_RELEVANT, N_QUERIES = 24, 5, 500
"""24 tied rows, 5 of them relevant: 42,504 orders, too many to be gone through for each of 500 queries."""

BINARY = {"max_rel": 1, "depth": 24, "recall": 0.5}


def drawn_measures() -> list[str]:
    """Return a measure of each family that says it may be drawn."""
    known = [family for family in list(FAMILIES.values()) if family.exact_to and family.needs == "grades"]
    return [
        str(
            family.with_parameters(
                **{**required(family), **{name: BINARY[name] for name in BINARY if name in family.defaults}}
            )
        )
        for family in known
    ]


@cache
def true_values() -> dict[str, tuple[float, float]]:
    """Return the mean and the standard deviation over all places of the relevant rows."""
    places = np.array(list(combinations(range(N_ROWS), N_RELEVANT)))
    labels = np.zeros((len(places), N_ROWS), dtype=int)
    np.put_along_axis(labels, places, 1, axis=1)
    qid, falling = np.repeat(np.arange(len(labels)), N_ROWS), np.tile(-np.arange(float(N_ROWS)), len(labels))
    ev = rk.evaluate(labels.ravel(), falling, qid=qid, measures=drawn_measures())
    return {name: (column.mean(), column.std()) for name, column in ev.per_query.items()}


def one_pattern(queries, names) -> rk.Evaluation:
    """Score queries of one pattern of ties."""
    y = np.tile(np.repeat([1, 0], [N_RELEVANT, N_ROWS - N_RELEVANT]), len(queries))
    return rk.evaluate(y, np.zeros(len(y)), qid=np.repeat(queries, N_ROWS), measures=names)


@pytest.mark.random
@pytest.mark.further
def test_the_error_averages_out_over_queries():
    """500 queries of one pattern for each set of ids: the mean is within 3 of its standard errors of the truth.

    The errors that are said are those that are made: over all queries they have the scatter of the values. What is
    not drawn here equals the truth.
    """
    truth = true_values()
    first = standard_errors(one_pattern(["one"], list(truth))).iloc[0]
    for name in first.index[first == 0]:
        assert one_pattern(["one"], name).scores[0, 0] == pytest.approx(truth[name][0], rel=1e-11)
    names = list(first.index[first > 0])
    assert {"SquaredAP", "INST"} <= {measure(name).family.name for name in names}
    off, said, values = [], [], []
    for seed in range(choose(default=2, full=8)):
        ev = one_pattern([f"set {seed} query {number}" for number in range(N_QUERIES)], names)
        mean = np.array([truth[name][0] for name in names])
        error = np.sqrt((ev.facts.errors**2).sum(axis=0)) / N_QUERIES
        off.append((ev.scores.mean(axis=0) - mean) / error)
        said.append(ev.facts.errors)
        values.append(ev.scores)
        of_means = [name for name in names if measure(name).family.aggregate == "mean"]
        np.testing.assert_allclose(aggregate_errors(ev)[of_means], error[[names.index(name) for name in of_means]])
    assert np.abs(off).max() < 3
    scatter = np.concatenate(values).std(axis=0, ddof=1)
    np.testing.assert_allclose(np.sqrt((np.concatenate(said) ** 2).mean(axis=0)), scatter, rtol=0.05)
    # Each other order is the one before turned round: the error is no greater than that of as many orders apart.
    assert (scatter < 1.05 * np.array([truth[name][1] for name in names]) / np.sqrt(DRAWS)).all()


def test_draws_depend_on_the_query_alone(monkeypatch):
    """Values are those of the query by itself, whatever stands beside it, in whatever order, in chunks of any size."""
    rng = np.random.default_rng(0)
    qid = np.repeat([f"q{number}" for number in range(12)], 25)
    y, score = rng.integers(0, 3, len(qid)), rng.integers(0, 2, len(qid)).astype(float)
    names = ["SquaredAP", "SquaredAP@20", "SquaredAP(rel=2)"]
    whole = rk.evaluate(y, score, qid=qid, measures=names)
    assert (standard_errors(whole) > 0).any().all()
    order = rng.permutation(len(qid))
    shuffled = rk.evaluate(y[order], score[order], qid=qid[order], measures=names)
    some = np.isin(qid, ["q3", "q11"])
    part = rk.evaluate(y[some], score[some], qid=qid[some], measures=names)
    monkeypatch.setattr("rankeval.join.joined.CHUNK", 60)
    monkeypatch.setattr("rankeval.measures.tie_enumeration._BATCH", 3000)
    chunked = rk.evaluate(y, score, qid=qid, measures=names)
    for other in (shuffled, chunked):
        np.testing.assert_array_equal(other.scores, whole.scores)
        np.testing.assert_array_equal(other.facts.errors, whole.facts.errors)
    np.testing.assert_array_equal(part.scores, whole.per_query.loc[["q11", "q3"]])


@each_row("same", [[5, "5"], [np.int64(5), np.int32(5)], [np.uint8(5), 5]])
def test_ids_are_one_by_their_text(same):
    """An id has the same draws whether it is read as a number or as text, or from an array of another width."""
    first, second = (one_pattern([one], "SquaredAP") for one in same)
    assert first.scores[0, 0] == second.scores[0, 0]
    assert first.scores[0, 0] != one_pattern([6], "SquaredAP").scores[0, 0]


def test_files_and_arrays_are_drawn_alike():
    """A collection has the draws of its rows as arrays."""
    docs = [f"d{number}" for number in range(N_ROWS)]
    grades = {"7": {docid: int(number < N_RELEVANT) for number, docid in enumerate(docs)}}
    ev = rk.evaluate(grades, {"7": dict.fromkeys(docs, 1.0)}, measures="SquaredAP")
    assert ev.scores[0, 0] == one_pattern([7], "SquaredAP").scores[0, 0]


def test_judges_of_one_query_are_drawn_apart():
    """Two judges who agree have draws of their own, so that the error of their mean is as small as it is said to be."""
    docs = [f"d{number}" for number in range(N_ROWS)]
    queries = [f"q{number}" for number in range(300)]
    rows = [(q, d, int(n < N_RELEVANT), who) for q in queries for who in ("ann", "bob") for n, d in enumerate(docs)]
    qrels = rk.Qrels(*map(list, zip(*rows, strict=True)))
    ev = rk.evaluate(qrels, {q: dict.fromkeys(docs, 1.0) for q in queries}, measures="AvgJG(of='SquaredAP')")
    assert np.sqrt((ev.facts.errors**2).mean()) == pytest.approx(ev.scores.std(), rel=0.15)
    alone = one_pattern(queries, "SquaredAP")
    assert ev.facts.errors.mean() == pytest.approx(alone.facts.errors.mean() / np.sqrt(2), rel=0.05)
