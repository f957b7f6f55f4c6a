"""Measures that tell judged from unjudged documents: by hand, and over every order of tied rows."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk

NAMES = ["Bpref", "infAP", "Unj@2", "Unj", "RBPResid(p=0.8)", "NumNonrelJudgedRet", "RBP(gain='scaled', p=0.5)"]


def scored(labels, scores, names=NAMES, beyond=(), **options):
    """Score one query; a label of None is a document without a judgment, ``beyond`` are judged ones not retrieved."""
    qrels = {"q": {f"d{row}": label for row, label in enumerate(labels) if label is not None}}
    qrels["q"] |= {f"e{row}": label for row, label in enumerate(beyond)}
    run = rk.Run.from_dict({"q": {f"d{row}": score for row, score in enumerate(scores)}})
    return rk.evaluate(rk.Qrels.from_dict(qrels), run, measures=names, **options).per_query.iloc[0]


labels = st.sampled_from([None, -1, 0, 1, 2])


@given(
    st.lists(st.tuples(labels, st.integers(0, 1)), min_size=1, max_size=4), st.lists(labels.filter(bool), max_size=2)
)
@pytest.mark.parametrize("negative", ["zero", "unjudged"])
@settings(max_examples=examples(30), deadline=None)
def test_expected_is_the_mean_over_orders_of_judged_and_unjudged_rows(negative, rows, beyond):
    """Ties between a document judged 0 and an unjudged one matter here, although their labels are alike."""
    beyond = [1, *beyond]
    ours = scored(*zip(*rows, strict=True), beyond=beyond, convention=rk.Convention("open", negative=negative))
    stable = rk.Convention("stable", ties="stable", negative=negative)
    orders = list(permutations(rows))
    mean = np.mean([scored(*zip(*order, strict=True), beyond=beyond, convention=stable) for order in orders], axis=0)
    np.testing.assert_allclose(ours, mean, atol=1e-12)


def test_bpref_by_hand():
    """Of three relevant documents one has no, one has one of the two judged others above it, one is not retrieved."""
    value = scored([1, None, 0, 1, None, 0], [6, 5, 4, 3, 2, 1], ["Bpref"], beyond=[1])["Bpref"]
    assert value == pytest.approx((1 + (1 - 1 / 2) + 0) / 3)


def test_inf_ap_by_hand():
    """One relevant at rank 3 below an unjudged document and one that is not relevant."""
    value = scored([None, 0, 1], [3, 2, 1], ["infAP"])["infAP"]
    assert value == pytest.approx(1 / 3 + (2 / 3) * (1 / 2) * (1e-5 / (1 + 2e-5)))


def test_the_residual_is_what_is_missing_to_the_best_that_may_be():
    """RBP plus its residual is RBP with everything unknown relevant, in the list and beyond it."""
    known = scored([1, None, 0], [3, 2, 1], ["RBP(p=0.5)", "RBPResid(p=0.5)"])
    best = 0.5 * (1 + 0.5) + 0.5**3
    assert known.sum() == pytest.approx(best)
    judged = scored([1, 0], [2, 1], ["RBPResid(p=0.5)", "RBPResid(p=0.5, rule='trec_eval-10')"])
    assert judged.tolist() == [0.25, 0]


def test_a_label_below_zero_is_a_judgment_or_a_mark_as_the_convention_says():
    """For trec_eval -1 means pooled but not judged; for our own convention judged and of no use."""
    ours = scored([-1, 1], [2, 1], ["Bpref", "Unj@1", "NumNonrelJudgedRet"])
    theirs = scored([-1, 1], [2, 1], ["Bpref", "Unj@1", "NumNonrelJudgedRet"], convention="trec_eval-9.0.8")
    assert ours.tolist() == [0, 0, 1]
    assert theirs.tolist() == [1, 1, 0]
    marks = rk.Convention("marks", ties="stable", negative="unjudged")
    arrays = rk.evaluate([-1, 1], [2, 1], qid=[1, 1], measures=["Bpref", "Unj@1"], convention=marks)
    assert arrays.per_query.iloc[0].tolist() == [1, 1]


@each_row("rule", ["trec_eval-9", "trec_eval-10", "exact"])
def test_recall_levels_are_reached_as_each_rule_says(rule):
    """At recall .1 of 12 documents: 1.2 is cut to 2 by int(x + .9), rounded to 1, and exactly reached by 2."""
    labels = [1, 0, 1] + [0] * 3
    value = scored(labels, range(6, 0, -1), [f"IPrec(recall=0.1, rule={rule!r})"], beyond=[1] * 10).iloc[0]
    assert value == {"trec_eval-9": 2 / 3, "trec_eval-10": 1.0, "exact": 2 / 3}[rule]


def test_exact_levels_are_compared_in_integers():
    """0.7 of 10 documents are 7, although 0.7 * 10 in floats, divided otherwise, need not be."""
    value = scored([1] * 7, range(7, 0, -1), ["IPrec(recall=0.7)", "IPrec(recall=0.71)"], beyond=[1] * 3)
    assert value.tolist() == [1.0, 0.0]


def test_inf_ap_of_thousands_of_tied_rows_is_a_number_without_a_warning():
    """Half of the tied rows are relevant: 1/rank for the row itself, and of those above it 599 in 1,199."""
    labels = np.arange(1200) % 2
    value = rk.evaluate(labels, np.zeros(1200), group=[1200], measures="infAP").scores.item()
    harmonic = np.sum(1 / np.arange(1, 1201)) / 1200
    assert value == pytest.approx(harmonic + (1 - harmonic) * 599 / 1199, abs=1e-6)
