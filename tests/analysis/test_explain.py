"""The difference between two tools' numbers is found by the rules that make it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rankeval as rk
from rankeval.errors import AmbiguousName, InvalidInput


def collection():
    rng = np.random.default_rng(6)
    qrels = {f"q{q}": {f"d{d}": int(rng.integers(0, 4)) for d in range(12)} for q in range(9)}
    qrels["barren"] = {"d1": 0, "d2": 0}
    run = {q: {f"d{d}": float(rng.integers(0, 5)) for d in range(4, 18)} for q in qrels}
    qrels |= {"lost": {"d1": 1}, "forgotten": {"d1": 1}}
    return qrels, run


@pytest.mark.parametrize(
    ("one", "two", "rule"),
    [
        ({}, {"ties": "docid"}, "ties='expected' in one and 'docid' in the other"),
        ({}, {"missing": "skip"}, "missing='empty' in one and 'skip' in the other"),
        ({}, {"judgments": "rows"}, "judgments='qrels' in one and 'rows' in the other"),
        (
            {"ties": "docid"},
            {"ties": "docid", "no_relevant": "one"},
            "no_relevant='zero' in one and 'one' in the other",
        ),
    ],
)
def test_the_rule_that_differs_is_named(one, two, rule):
    """Two evaluations that differ in one rule: that rule is found, from the printed digits."""
    truth, ranking = collection()
    values = tuple(
        round(rk.evaluate(truth, ranking, measures="nDCG@10", **rules).mean().iloc[0], 6) for rules in (one, two)
    )
    why = rk.explain_difference(truth, ranking, measure="nDCG@10", values=values)
    assert why.differences == (rule,)
    assert rule in why.sentence
    assert {"a", "b"} <= set(why.table["matches"])


def test_queries_filled_with_0_are_told_from_empty_rankings():
    """Where an empty ranking is not worth 0, as by YAAP; elsewhere the two are one, and not both tried."""
    truth, ranking = collection()
    values = tuple(
        rk.evaluate(truth, ranking, measures="YAAP", missing=rule).mean().iloc[0] for rule in ("empty", "zero")
    )
    why = rk.explain_difference(truth, ranking, measure="YAAP", values=values)
    assert why.differences == ("missing='empty' in one and 'zero' in the other",)
    assert "zero" not in set(rk.explain_difference(truth, ranking, measure="AP", values=(0.1, 0.2)).table["missing"])


@pytest.mark.further
def test_parameters_are_found_as_well():
    """The gain of nDCG, the normaliser of AP, and both a gain and a rule at once."""
    truth, ranking = collection()

    def value(name, **rules):
        return round(rk.evaluate(truth, ranking, measures=name, **rules).mean().iloc[0], 6)

    pairs = {
        "nDCG@5": (value("nDCG@5"), value("nDCG(gain='exp')@5")),
        "AP@5": (value("AP@5"), value("AP(normalizer='min')@5")),
        "ERR@5": (value("ERR(max_rel=3)@5"), value("ERR(max_rel=4)@5")),
    }
    for name, expected in (("nDCG@5", "gain"), ("AP@5", "normalizer"), ("ERR@5", "max_rel")):
        why = rk.explain_difference(truth, ranking, measure=name, values=pairs[name])
        assert [difference.partition("=")[0] for difference in why.differences] == [expected]
    both = (value("nDCG@5"), value("nDCG(gain='exp')@5", missing="skip"))
    why = rk.explain_difference(truth, ranking, measure="nDCG@5", values=both)
    assert {difference.partition("=")[0] for difference in why.differences} == {"gain", "missing"}
    # A parameter that the name gives stays.
    assert "gain" not in rk.explain_difference(truth, ranking, measure="nDCG(gain='exp')@5", values=both).table


@pytest.mark.further
def test_a_default_is_tried_that_only_this_measure_has():
    """RBP's binary gain against ranx' labels and trec_eval's shares; F by beta, where no alpha is the default."""
    truth, ranking = collection()

    def value(name):
        return round(rk.evaluate(truth, ranking, measures=name).mean().iloc[0], 6)

    for name, other, difference in (
        ("RBP(p=0.8)", "rbp.8", "gain='binary' in one and 'linear' in the other"),
        ("RBP(p=0.8)", "RBP(gain='scaled', p=0.8)", "gain='binary' in one and 'scaled' in the other"),
        ("F@5", "F(beta=0.5)@5", "beta=1 in one and 0.5 in the other"),
    ):
        why = rk.explain_difference(truth, ranking, measure=name, values=(value(name), value(other)))
        assert why.differences == (difference,)


def test_what_is_not_found_is_said():
    """A number that no setting gives: the sentence says so, with the nearest."""
    truth, ranking = collection()
    value = round(rk.evaluate(truth, ranking, measures="RR").mean().iloc[0], 6)
    why = rk.explain_difference(truth, ranking, measure="RR", values=(value, 0.123456))
    assert why.differences == ()
    assert "nothing that was tried gives 0.123456 (nearest: " in why.sentence
    with pytest.raises(InvalidInput, match="expected the two numbers"):
        rk.explain_difference(truth, ranking, measure="RR", values=(0.1,))


def test_the_digits_given_say_how_near_is_near():
    """9.605118 is printed as 9.61; of values that agree with few digits the nearest ones are taken."""
    y, score, qid = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0], list(range(10, 0, -1)), [1] * 10
    for values in ((9.61, 8.32), ("9.61", "8.32"), (9.6051, 8.3188)):
        why = rk.explain_difference(y, score, qid=qid, measure="DCG@10", values=values)
        assert why.differences == ("discount='log_rank' in one and 'log2' in the other",)
    tens = rk.explain_difference(y, score, qid=qid, measure="DCG@10", values=(16.0, 8.32))
    assert tens.differences[-1] == "base=10 in one and 2 in the other"
    with pytest.raises(InvalidInput, match="expected the two numbers"):
        rk.explain_difference(y, score, qid=qid, measure="DCG@10", values=("9.61", "many"))
    # With three digits many rules come near: those of presets go first.
    truth, ranking = collection()
    names = ("rankeval", "trec_eval-9.0.8")
    values = tuple(
        round(rk.evaluate(truth, ranking, measures="AP", convention=name).mean().iloc[0], 3) for name in names
    )
    why = rk.explain_difference(truth, ranking, measure="AP", values=values)
    assert [one.partition("=")[0] for one in why.differences] == ["ties", "missing"]


def test_all_that_fits_is_said():
    """Two rules that give the same number are both named, and the presets that give each."""
    qrels = {"a": {"d": 1}, "b": {"d": 0}, "c": {"d": 1}}
    run = {"a": {"d": 1.0}, "b": {"d": 1.0}}
    # 1/3 with all queries; 1/2 without the one that is missing, or without the barren one.
    why = rk.explain_difference(qrels, run, measure="RR", values=(1 / 3, 0.5))
    ways = {why.differences, *why.alternatives}
    assert ways == {
        ("missing='empty' in one and 'skip' in the other",),
        ("no_relevant='zero' in one and 'skip' in the other",),
    }
    assert why.differences == ("missing='empty' in one and 'skip' in the other",)  # trec_eval's rule
    assert "or as well: no_relevant='zero' in one and 'skip' in the other" in why.sentence
    assert "0.5 is what trec_eval-9.0.8, trec_eval-9.0.8-float32 give" in why.sentence


@pytest.mark.rest
@pytest.mark.parametrize(
    ("name", "one", "two", "difference"),
    [
        ("RBP", "RBP(p=0.8)", "RBP(p=0.95)", "p=0.8 in one and 0.95 in the other"),
        (
            "11pt_avg",
            "IAP11(rule='trec_eval-9')",
            "IAP11(rule='trec_eval-10')",
            "rule='trec_eval-9' in one and 'trec_eval-10' in the other",
        ),
    ],
)
def test_a_name_of_several_meanings_is_tried_in_all(name, one, two, difference):
    """Which of them it is, is the question."""
    truth, ranking = collection()
    values = tuple(rk.evaluate(truth, ranking, measures=[one, two]).mean())
    why = rk.explain_difference(truth, ranking, measure=name, values=values)
    assert (difference,) in (why.differences, *why.alternatives)
    with pytest.raises(AmbiguousName):
        rk.explain_difference(truth, ranking, measure="official", values=values)


@pytest.mark.shared
def test_scores_narrowed_to_32_bits_are_found(shared: Path):
    """The official TREC-COVID figures that come from 32-bit scores: the rule is named."""
    narrow = json.loads((shared / "golden" / "float32_score_ties.json").read_text())["runs"]
    assert "trec_covid_r5/udel_fang_ltr_split" in narrow
    qrels = rk.Qrels.read(shared / "trec_covid_r5" / "qrels.residual.txt.gz")
    folder = shared / "trec_covid_r5" / "runs"
    run = rk.Run.read(next(path for path in folder.iterdir() if path.name.startswith("udel_fang_ltr_split")))
    rules = rk.Convention("c", ties="docid", judgments="qrels", negative="zero")
    values = tuple(
        round(rk.evaluate(qrels, run, measures="AP", convention=rules.with_rules(score_dtype=dtype)).mean().iloc[0], 6)
        for dtype in ("float64", "float32")
    )
    assert values[0] != values[1]
    why = rk.explain_difference(qrels, run, measure="AP", values=values, convention=rules)
    assert why.differences == ("score_dtype='float64' in one and 'float32' in the other",)
