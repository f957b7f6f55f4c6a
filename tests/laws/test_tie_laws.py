"""Under ties="expected" a value is the mean over all orders of tied rows: for every measure, and to the last digits."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest
from circles import choose
from laws.test_aspect_laws import all_members as members_of_aspects
from laws.test_measure_laws import all_members, required
from tables import each_row

import rankeval as rk
from rankeval.evaluation import standard_errors
from rankeval.measures import measure
from rankeval.measures.family import FAMILIES

BROKEN = rk.Convention("as they stand", ties="stable", negative="unjudged")
OPEN = rk.Convention("expected", negative="unjudged")
EIGHT = [(0, 1, 2, 3, 4, -1, 0, 2), (3, 2, 1, 0, 5, 4, 6, 7)]
SHORT = {"depth": 12}
"""Measures to rank 1000 are asked to rank 12: the orders of many lists are scored."""


def at_cutoffs(cutoffs, *needs: str) -> list[str]:
    """Return every family that has a cut-off, at each of these."""
    return [
        str(family.with_parameters(**{**required(family), "cutoff": cutoff}))
        for family in list(FAMILIES.values())
        if "cutoff" in family.defaults and family.needs in (needs or ("grades", "groups"))
        for cutoff in cutoffs
    ]


def one_each(*needs: str) -> list[str]:
    """Return one measure of every family."""
    return [
        str(
            family.with_parameters(
                **required(family) | {name: SHORT[name] for name in SHORT if name in family.defaults}
            )
        )
        for family in list(FAMILIES.values())
        if family.needs in (needs or ("grades", "groups"))
    ]


def all_orders(score) -> list[list[int]]:
    """Return every order of rows that a stable sort by score can be given, tied rows permuted among each other."""
    groups = [np.flatnonzero(score == one) for one in np.unique(score)[::-1]]
    return [
        [row for group in one for row in group] for one in product(*(list(permutations(group)) for group in groups))
    ]


def mean_of(labels, names) -> np.ndarray:
    """Return the mean of every measure over lists, a row of labels each, in which nothing is tied."""
    n_lists, length = labels.shape
    qid, falling = np.repeat(np.arange(n_lists), length), np.tile(-np.arange(float(length)), n_lists)
    return rk.evaluate(labels.ravel(), falling, qid=qid, measures=names, convention=BROKEN).scores.mean(axis=0)


def assert_equal(found, wanted, names, tolerance=1e-12):
    """Name the measures that differ."""
    apart = np.abs(found - wanted) > tolerance * np.maximum(1, np.abs(wanted))
    assert not apart.any(), [(name, a, b) for name, a, b, odd in zip(names, found, wanted, apart, strict=True) if odd]


@pytest.mark.random
@each_row("seed", range(choose(default=16, full=40)))
def test_it_is_the_mean_over_all_permutations(seed):
    """Every measure, with every parameter changed in turn: some groups, labels 0 to 3 and -1 for a row not judged."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(3, 7))
    y, score = rng.integers(-1, 4, n_rows), rng.integers(0, 2 + seed % 2, n_rows).astype(float)
    names = list(dict.fromkeys([*all_members(), *at_cutoffs(range(1, n_rows + 2))]))
    ev = rk.evaluate(y, score, qid=np.zeros(n_rows, dtype=int), measures=names, convention=OPEN)
    assert ev.facts.errors is None
    assert_equal(ev.scores[0], mean_of(y[all_orders(score)], names), names)


@pytest.mark.random
@pytest.mark.worth("the longest tie whose orders are all gone through, by every measure")
@pytest.mark.parametrize("y", choose(default=EIGHT[:1], full=EIGHT))
def test_eight_tied_rows_are_always_gone_through(y):
    """All 40,320 permutations, whatever the labels; one row stands above them, so that they are not all there is."""
    names = [name for name in one_each("grades") if "max_rel" not in name]
    names += ["YAAP", "gm_AP@4", "AP(normalizer='hits')@4", "IPrec(recall=0.7)", "PrefsR"]
    names += [
        f"{name}(max_rel=7{extra})"
        for name, extra in {"INST": ", depth=12", "NERR10": ", depth=12", "NERR11": ", depth=12", "ERR": ""}.items()
    ]
    names += [f"{name}(max_rel=7)@5" for name in ("BPM", "NERR8", "NERR9")]
    names = list(dict.fromkeys(names))
    every = np.column_stack((np.ones(40320, dtype=int), list(permutations(y))))
    ev = rk.evaluate([1, *y], [2.0] + [1.0] * 8, qid=["q"] * 9, measures=names, convention=OPEN)
    assert ev.facts.errors is None
    assert_equal(ev.scores[0], mean_of(every, names), names)


@pytest.mark.random
@pytest.mark.parametrize("seed", range(choose(default=3, full=12)))
def test_it_is_so_with_documents_that_nobody_judged_or_that_were_not_ranked(seed):
    """Collections: rows without a judgment tie with judged ones, and judged documents are missing from the run."""
    rng = np.random.default_rng(seed)
    documents = [f"d{number}" for number in range(8)]
    grades = {docid: int(rng.integers(0, 3)) for docid in documents if rng.random() < 0.7} or {"d0": 1}
    scores = {docid: float(rng.integers(0, 2)) for docid in documents[: int(rng.integers(3, 7))]}
    names = list(dict.fromkeys([*all_members(), *at_cutoffs((1, 2, 3, 5))]))
    found = rk.evaluate({"q": grades}, {"q": scores}, measures=names).scores[0]
    orders = list(permutations(scores))
    many = {f"q{number:03}": grades for number in range(len(orders))}
    ranked = {query: {docid: scores[docid] for docid in order} for query, order in zip(many, orders, strict=True)}
    every = rk.evaluate(many, ranked, measures=names, ties="stable").scores
    assert_equal(found, every.mean(axis=0), names)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_so_with_aspects_and_groups_of_judges(seed):
    """Measures of diversity and of preferences, over judgments by three aspects or judges."""
    rng = np.random.default_rng(seed)
    scores = {f"d{number}": float(rng.integers(0, 2)) for number in range(5)}
    rows = [(f"d{d}", a, int(rng.integers(0, 3))) for d in range(6) for a in "xyz" if rng.random() < 0.8]
    docid, aspect, grade = map(list, zip(*rows, strict=True))
    names = [*members_of_aspects(), *at_cutoffs((1, 2, 3, 6), "aspects"), *one_each("groups")]
    names += [f"AvgJG(of={of!r})" for of in ("YAAP", "gm_AP", "gm_Bpref", "IAP11")]
    names += ["AvgJG(of='AP')@2", "PrefsR(rule='trec_eval')", "PrefsR(count='retrieved')"]
    names = list(dict.fromkeys(names))
    orders = list(permutations(scores))
    many = [f"q{number:03}" for number in range(len(orders))]

    def judgments(queries):
        return rk.Qrels(
            np.repeat(queries, len(rows)).tolist(), *(column * len(queries) for column in (docid, grade, aspect))
        )

    found = rk.evaluate(judgments(["q"]), {"q": scores}, measures=names).scores[0]
    ranked = {query: {d: scores[d] for d in order} for query, order in zip(many, orders, strict=True)}
    every = rk.evaluate(judgments(many), ranked, measures=names, ties="stable").scores
    assert_equal(found, every.mean(axis=0), names)


def test_thirty_tied_rows_by_every_place_of_three_relevant_ones():
    """Of all measures of grades, with every parameter changed in turn: 4,060 places of the relevant rows."""
    names = [name for name in all_members() if measure(name).family.needs == "grades"]
    names = [name for name in names if measure(name).family.name not in ("INST", "INSQ", "NERR10", "NERR11")]
    names += [f"{name}(depth=12, max_rel=4)" for name in ("INST", "INSQ", "NERR10", "NERR11")]
    names = list(dict.fromkeys([*names, *at_cutoffs((5, 20, 31), "grades")]))
    y = np.repeat([1, 0], [3, 27])
    ev = rk.evaluate([0, 1, *y, 1], [9.0, 8.0] + [1.0] * 30 + [0.0], qid=["q"] * 33, measures=names)
    assert ev.facts.errors is None
    labels = np.zeros((4060, 33), dtype=int)
    for row, places in zip(labels, combinations(range(2, 32), 3), strict=True):
        row[[1, *places, 32]] = 1
    assert_equal(ev.scores[0], mean_of(labels, names), names)


@each_row("labels", [(2, 1), (1, -1)])
def test_thirty_tied_rows_by_every_place_of_two_unlike_ones(labels):
    """All measures, preferences too: 28 rows of grade 0, two of others, or one not judged; 870 orders of them."""
    names = list(dict.fromkeys([*one_each(), *at_cutoffs((5, 20)), "PrefsR(rule='trec_eval')"]))
    y = np.append(labels, np.zeros(28, dtype=int))
    ev = rk.evaluate(y, np.zeros(30), qid=["q"] * 30, measures=names, convention=OPEN)
    assert ev.facts.errors is None
    lists = np.zeros((870, 30), dtype=int)
    np.put_along_axis(lists, np.array(list(permutations(range(30), 2))), np.array([labels]), axis=1)
    assert_equal(ev.scores[0], mean_of(lists, names), names)


def test_thirty_tied_documents_by_every_place_of_two_that_answer_aspects():
    """All measures of diversity: one document answers two aspects, another one of them; 870 orders of them."""
    names = list(dict.fromkeys([*members_of_aspects(), *at_cutoffs((5, 20), "aspects")]))
    docs = ["both", "one", *(f"d{number:02}" for number in range(28))]
    judged = [("both", "x"), ("both", "y"), ("one", "y")]

    def judgments(queries):
        rows = [(query, docid, 1, aspect) for query in queries for docid, aspect in judged]
        return rk.Qrels(*map(list, zip(*rows, strict=True)))

    found = rk.evaluate(judgments(["q"]), {"q": dict.fromkeys(docs, 1.0)}, measures=names)
    assert found.facts.errors is None
    ranked = {}
    for first, second in permutations(range(30), 2):
        order = np.array(["d00"] * 30, dtype=object)
        order[[first, second]] = docs[:2]
        order[np.setdiff1d(range(30), (first, second))] = docs[2:]
        ranked[f"q{first:02}{second:02}"] = dict.fromkeys(order.tolist(), 1.0)
    every = rk.evaluate(judgments(list(ranked)), ranked, measures=names, ties="stable")
    assert_equal(found.scores[0], every.scores.mean(axis=0), names)


def test_at_the_first_place_it_is_the_plain_mean_over_rows():
    """200 tied rows of all grades, some not judged: every measure with a cut-off, or a depth, is exact at 1."""
    y = np.random.default_rng(0).integers(-1, 5, 200)
    names = [*at_cutoffs((1,)), *(f"{name}(depth=1, max_rel=4)" for name in ("INST", "INSQ", "NERR10", "NERR11"))]
    ev = rk.evaluate(y, np.zeros(200), qid=["q"] * 200, measures=names, convention=OPEN)
    assert ev.facts.errors is None
    assert_equal(ev.scores[0], mean_of(np.array([np.roll(y, place) for place in range(200)]), names), names)


def test_at_the_first_place_it_is_so_of_aspects_too():
    """200 tied documents with grades for three aspects."""
    rng = np.random.default_rng(0)
    docs = [f"d{number}" for number in range(200)]
    grade = rng.integers(0, 3, 600).tolist()
    qrels = rk.Qrels(["q"] * 600, docs * 3, grade, aspect=["x"] * 200 + ["y"] * 200 + ["z"] * 200)
    names = at_cutoffs((1,), "aspects")
    found = rk.evaluate(qrels, {"q": dict.fromkeys(docs, 1.0)}, measures=names).scores[0]
    each = [
        rk.evaluate(qrels, {"q": {docid: 2.0, **dict.fromkeys(set(docs) - {docid}, 1.0)}}, measures=names)
        for docid in docs
    ]
    assert_equal(found, np.mean([ev.scores[0] for ev in each], axis=0), names)


def test_what_is_declared_exact_is_never_drawn():
    """60 rows of six labels in three groups: a measure that draws says so in its declaration."""
    rng = np.random.default_rng(0)
    y, score = rng.integers(-1, 5, 60), rng.integers(0, 3, 60).astype(float)
    names = list(dict.fromkeys([*all_members(), *at_cutoffs((1, 7, 10, 45, 70))]))
    names = [name for name in names if "max_rel=4" in name or "max_rel" not in name]
    errors = standard_errors(rk.evaluate(y, score, qid=["q"] * 60, measures=names, convention=OPEN)).loc["q"]
    drawn = {measure(name).family.name for name in names if errors[name] > 0}
    assert drawn
    assert drawn <= {name for name, said in rk.list_measures()["ties"].items() if said != "exact"}
