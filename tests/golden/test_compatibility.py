"""Compatibility, against the program of its authors, and against sets of documents compared depth by depth."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest

import rankeval as rk

QRELS = {
    "q1": {"a": 3, "b": 1, "c": 2, "n": 0, "lost": 3},
    "q2": {"a": 1, "c": 2, "d": 0, "m": -1},
    "q3": {"a": 3, "b": 3, "c": 2, "n": 0},
    "q4": {"x": 1, "y": 0},
}
RUN = {
    "q1": {"n": 6.0, "a": 5.0, "x": 5.0, "c": 3.0, "o": 2.0, "b": 2.0},
    "q2": {"d": 4.0, "y": 3.0, "c": 3.0, "m": 2.0, "a": 1.0},
    "q3": {"c": 1.0, "b": 1.0, "a": 1.0},
    "q4": {"y": 2.0, "x": 1.0},
}

CLARKE = {
    "Compat(p=0.5)": (0.2349658742374186, 0.2301748757551084, 1.0, 0.2786524795555183),
    "Compat(p=0.8)": (0.4166547862925964, 0.4240850843417845, 1.0, 0.5029320523523106),
    "Compat": (0.5613203831511125, 0.6249763909871715, 1.0, 0.6828822093394317),
    "Compat(p=0.99)": (0.6346433862394825, 0.7513930256319578, 1.0, 0.7850240487883385),
    "Compat(p=0.8, normalize=False)": (
        0.3361451009922417,
        0.25645228955038346,
        0.7270784343255747,
        0.20235947810852495,
    ),
}
"""compatibility.py of github.com/claclark/Compatibility at commit bd47d75, Python 3.11: python compatibility.py -p P
QRELS RUN, with these judgments and this run as TREC text; NORMALIZE = False in its source for the last row."""


@pytest.mark.parametrize("name", CLARKE)
def test_values_are_those_of_the_authors_program(name):
    """Rows of equal score stand by ascending id there; one judged row is not retrieved, and one is below 0."""
    ours = rk.evaluate(QRELS, RUN, measures=name, ties="docid").per_query[name]
    assert ours.tolist() == pytest.approx(CLARKE[name], abs=1e-12)


def test_rows_that_are_not_judged_change_nothing_below_the_last_relevant_one():
    """Their program gives q4 the same value with 1,200 such rows. By the rule of ir_measures they raise it."""
    junk = {"q4": RUN["q4"] | {f"junk{i}": -float(i) for i in range(1200)}}
    names = ["Compat(p=0.8)", "Compat(p=0.8, depth=None)"]
    short, long = (
        rk.evaluate({"q4": QRELS["q4"]}, run, measures=names).aggregate() for run in ({"q4": RUN["q4"]}, junk)
    )
    assert short[names[0]] == pytest.approx(long[names[0]], abs=1e-15)
    assert short[names[1]] == pytest.approx(0.2857142857142857, abs=1e-15)
    assert long[names[1]] > 0.5


def by_sets(grades, ranking, p, depth):
    """Compare the sets of documents down to each depth, as the definition says."""
    place = {document: rank for rank, document in enumerate(ranking)}
    relevant = [document for document in grades if grades[document] > 0]
    ideal = sorted(relevant, key=lambda document: (-grades[document], place.get(document, len(ranking))))
    overlap, best = [], []
    for down_to in range(1, (depth or max(len(ranking), len(ideal))) + 1):
        top = set(ideal[:down_to])
        overlap.append(p ** (down_to - 1) * len(top & set(ranking[:down_to])) / down_to)
        best.append(p ** (down_to - 1) * len(top) / down_to)
    return fsum(overlap) / fsum(best)


@pytest.mark.parametrize("depth", [None, 1, 7, 40, 1000])
def test_values_are_those_of_sets_compared_depth_by_depth(depth):
    """Rankings and ideal orders that are shorter, and longer, than the depth."""
    rng = np.random.default_rng(5)
    qrels, run = {}, {}
    for query in range(40):
        pool = [f"d{i}" for i in rng.permutation(200)[: rng.integers(2, 60)]]
        qrels[f"q{query}"] = {document: int(rng.integers(-1, 4)) for document in pool} | {"sure": 1}
        rows = [document for document in pool if rng.random() < 0.7] + [f"x{i}" for i in range(rng.integers(1, 40))]
        run[f"q{query}"] = dict(zip(rows, rng.permutation(len(rows)).astype(float).tolist(), strict=True))
    name = f"Compat(p=0.9, depth={depth})"
    for query, value in rk.evaluate(qrels, run, measures=name).per_query[name].items():
        ranking = sorted(run[query], key=run[query].get, reverse=True)
        assert value == pytest.approx(by_sets(qrels[query], ranking, 0.9, depth), abs=1e-12), query
