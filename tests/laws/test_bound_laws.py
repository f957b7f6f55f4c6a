"""Best and worst cases over tied rows and over unjudged ones are bounds, for every measure declared monotone."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.measures import measure
from rankeval.measures.family import FAMILIES

NEEDED = {"max_rel": 3, "collection_size": 1000, "cutoff": 2, "recall": 0.5, "p": 0.8, "multiple": 0.4}

HIGHEST = rk.Convention(unjudged="highest")

# By named grades, also 0 and grades of equal gain; a grade that is not named is its own gain.
WITH_GAINS = [
    f"{family}(gain={gains})@{cutoff}"
    for family in ("DCG", "nDCG", "NCG")
    for gains in ("{1: 1, 2: 5, 3: 20}", "{0: 1, 1: 1, 2: 4, 3: 4}", "{1: 0.5}")
    for cutoff in (2, 20)
]


def monotone(rule: tuple[str, ...]) -> list[str]:
    """Return measures declared so, with and without a cut-off, by what they need."""
    found = []
    for family in list(FAMILIES.values()):
        if family.monotone in rule:
            needed = {name: NEEDED[name] for name in family.defaults if name in NEEDED and name != "cutoff"}
            cutoffs = [{"cutoff": 2}, {"cutoff": 20}] if "cutoff" in family.defaults else [{}]
            found += [str(family.with_parameters(**{**needed, **cutoff})) for cutoff in cutoffs]
    return found


def values(y, score, qid, names, ties):
    return rk.evaluate(y, score, qid=qid, measures=names, ties=ties).per_query


def signs(names):
    return np.array([1 if measure(name).family.greater_is_better else -1 for name in names])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=6))
@settings(max_examples=examples(40), deadline=None)
def test_best_and_worst_are_the_extremes_over_all_orders_of_tied_rows(rows):
    """Worst <= expected <= best, and both are reached by some order of the tied rows."""
    y, score = (np.array(column) for column in zip(*rows, strict=True))
    names = [*monotone(("order", "grade")), *WITH_GAINS]
    one = np.zeros(len(y), dtype=int)
    sign = signs(names)
    best, worst, expected = (
        values(y, score, one, names, ties).iloc[0] * sign for ties in ("best", "worst", "expected")
    )
    assert (worst <= expected + 1e-12).all()
    assert (expected <= best + 1e-12).all()
    orders = np.array(list(permutations(range(len(y)))))
    qid = np.repeat(np.arange(len(orders)), len(y))
    every = values(y[orders].ravel(), score[orders].ravel(), qid, names, "stable") * sign
    np.testing.assert_allclose(every.max(), best, atol=1e-12)
    np.testing.assert_allclose(every.min(), worst, atol=1e-12)


@given(st.lists(st.sampled_from([0, 1, 3, None]), min_size=1, max_size=5))
@settings(max_examples=examples(30), deadline=None)
def test_lowest_and_highest_bound_whatever_the_unjudged_documents_are(grades):
    """Every way to judge what is unjudged gives a value between the two."""
    names = monotone(("grade",))
    run = {"q": {f"d{rank}": -float(rank) for rank in range(len(grades))}}
    judged = {f"d{rank}": grade for rank, grade in enumerate(grades) if grade is not None}
    unjudged = [f"d{rank}" for rank, grade in enumerate(grades) if grade is None]
    qrels = {"q": {**judged, "lost": 3}}
    low, high = (
        rk.evaluate(qrels, run, measures=names, convention=rk.Convention("c", unjudged=rule)).per_query.iloc[0]
        for rule in ("lowest", "highest")
    )
    for guess in product((0, 2, 3), repeat=len(unjudged)):
        full = {"q": {**qrels["q"], **dict(zip(unjudged, guess, strict=True))}}
        value = rk.evaluate(full, run, measures=names).per_query.iloc[0]
        assert (low <= value + 1e-12).all()
        assert (value <= high + 1e-12).all()


def test_bounds_are_refused_where_they_would_be_none():
    """A measure that is not monotone, or whose normaliser moves with the grades, has no such bound."""
    for name in ("INST(max_rel=3)", "AP(normalizer='hits')@5", "DCG(gain={1: 3, 2: 1})", "PairAccuracy"):
        with pytest.raises(InvalidInput, match="not monotone in the order of rows"):
            rk.evaluate([1, 0], [1, 1], qid=[1, 1], measures=name, ties="best")
    with pytest.raises(InvalidInput, match=r"unjudged='highest': DCG.* \(a map of gains\), so that is not a bound"):
        rk.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, measures="DCG(gain={1: 2})", convention=HIGHEST)
    with pytest.raises(InvalidInput, match="may fall when a document's grade rises"):
        rk.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, measures="AP", convention=HIGHEST)


def test_a_map_of_gains_has_bounds_if_gains_rise_with_the_grades_at_hand():
    """A grade that the map does not name is its own gain, so the grades at hand decide."""
    name = "nDCG(gain={1: 1, 2: 5, 3: 20})@10"
    best, worst = (
        rk.evaluate([3, 0], [1, 1], qid=[1, 1], measures=name, ties=ties).scores for ties in ("best", "worst")
    )
    assert best.item() == 1
    assert worst.item() == pytest.approx(1 / np.log2(3))
    assert rk.evaluate([21, 0], [1, 1], qid=[1, 1], measures=name, ties="best").scores.item() == 1
    said = r"not monotone in the order of rows \(grade 3 has gain 20 and grade 4 has gain 4\), so that is not a bound"
    for grades in ([4, 0], [4, 3]):
        with pytest.raises(InvalidInput, match=said):
            rk.evaluate(grades, [1, 1], qid=[1, 1], measures=name, ties="worst")
    with pytest.raises(InvalidInput, match="grade 0 has gain 3 and grade 1 has gain 2"):
        rk.evaluate([1, 0], [1, 1], qid=[1, 1], measures="DCG(gain={0: 3, 1: 2})", ties="worst")


def test_the_families_that_everybody_uses_have_bounds():
    """The list of bounded measures does not shrink unseen."""
    ordered, graded = ({measure(name).family.name for name in monotone(rule)} for rule in
                       (("order", "grade"), ("grade",)))  # fmt: skip
    assert {"P", "R", "F", "AP", "RR", "Rprec", "DCG", "nDCG", "Success", "ERR"} <= ordered
    assert {"P", "RR", "DCG", "Success", "ERR", "pFound", "SDCG", "INSQ", "RBP", "gRBP"} <= graded
