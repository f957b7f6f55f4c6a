"""Compatibility, against the program of its authors, and against sets of documents compared depth by depth.

Their program was run on the 300 random lists below as well, with p = .5, .8, .95 and .99: no value differs by 4e-14.
"""

from __future__ import annotations

from itertools import permutations, product
from math import fsum

import numpy as np
import pytest
from tables import each_row

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


@each_row("name", CLARKE)
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


def overlap(one, other, p, depth):
    """Add up, over all depths, the weighted share of documents that both heads of lists hold."""
    heads, terms = (set(), set()), []
    for place in range(depth):
        for head, listed in zip(heads, (one, other), strict=True):
            head.update(listed[place : place + 1])
        terms.append(p**place * len(heads[0] & heads[1]) / (place + 1))
    return fsum(terms)


def by_sets(grades, ranking, p, depth):
    """Return the overlap with the ideal order that is nearest to a ranking, over that of this order with itself."""
    place = {document: rank for rank, document in enumerate(ranking)}
    relevant = [document for document in grades if grades[document] > 0]
    ideal = sorted(relevant, key=lambda document: (-grades[document], place.get(document, len(ranking))))
    depth = depth or max(len(ranking), len(ideal))
    return overlap(ideal, ranking, p, depth) / overlap(ideal, ideal, p, depth)


def random_lists(n, seed):
    """Return judgments and scores: grades from -1 to 3, few or many equal scores, up to 1,200 unjudged rows."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for query in range(n):
        pool = [f"d{i}" for i in rng.permutation(3000)[: 2500 if query % 100 == 50 else rng.integers(2, 60)]]
        junk = [f"x{i}" for i in range((0, 1, 5, 20, 60, 1200)[query % 6] if query % 4 == 1 else query % 7)]
        rows = [document for document in pool if rng.random() < 0.7] + junk + pool[:1]
        scores = rng.integers(0, (3, 10, 10**6)[query % 3], len(rows)).astype(float).tolist()
        qrels[f"q{query}"] = {document: int(rng.integers(-1, 4)) for document in pool} | {pool[-1]: 1}
        run[f"q{query}"] = dict(zip(rows, scores, strict=True))
    return qrels, run


@pytest.mark.parametrize(("depth", "n"), [(1000, 300), (None, 60), (1, 60), (7, 60), (40, 60)])
@pytest.mark.parametrize("p", [0.8, 0.95])
def test_random_lists_have_the_value_of_the_definition(depth, n, p):
    """Equal scores stand by ascending id; rankings and ideal orders are shorter, and longer, than the depth."""
    qrels, run = random_lists(n, seed=5)
    name = f"Compat(p={p}, depth={depth})"
    values = rk.evaluate(qrels, run, measures=name, ties="docid").scores[:, 0].tolist()
    wanted = [
        by_sets(qrels[query], sorted(run[query], key=lambda one: (-run[query][one], one)), p, depth)
        for query in sorted(qrels)
    ]
    assert values == pytest.approx(wanted, abs=1e-12)


@each_row("depth", [None, 2, 3, 1000])
def test_equal_scores_have_the_mean_over_their_orders(depth):
    """Five rows in groups of two and three, in all twelve orders."""
    grades, groups = {"a": 2, "b": 0, "c": 1, "d": 2, "e": 0, "lost": 1}, (("a", "b"), ("c", "d", "e"))
    run = {document: -float(place) for place, group in enumerate(groups) for document in group}
    orders = [[*one, *other] for one, other in product(*map(permutations, groups))]
    ours = rk.evaluate({"q": grades}, {"q": run}, measures=f"Compat(p=0.8, depth={depth})").scores[0, 0]
    assert ours == pytest.approx(fsum(by_sets(grades, order, 0.8, depth) for order in orders) / 12, abs=1e-12)
