"""Which measures an ideal ranking takes to exactly 1, which have bounds over ties, and why the others do not."""

from __future__ import annotations

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.test_measure_laws import all_members, required, values
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.measures import measure
from rankeval.measures.family import FAMILIES

LONGEST = 6

ENDLESS = "1 is for a list without end, or to the cut-off, of nothing but the greatest grade that is declared"
RETRIEVED = "divides by the cut-off or by all rows, those that are not relevant included"
BELOW_ONE = {
    "ERR": ENDLESS, "pFound": ENDLESS, "SDCG": ENDLESS, "gRBP": ENDLESS, "INSQ": ENDLESS, "INST": ENDLESS,
    "BPM": ENDLESS, "NERR8": ENDLESS, "NERR9": ENDLESS, "NERR10": ENDLESS, "NERR11": ENDLESS, "RBP": ENDLESS,
    "Compat(normalize=False)": "below the last relevant document the overlap falls; divided by its own it reaches 1",
    "P": RETRIEVED, "F": RETRIEVED, "SetAP": RETRIEVED, "Accuracy": RETRIEVED,
    "RprecMult(multiple=2)": "beyond R rows there is nothing relevant left to find",
    "infAP": "smoothed by 0.00001, so that it comes close",
    "PrefsR(rule='trec_eval')": "takes pairs of documents that are not relevant for preferences, as trec_eval's code",
}  # fmt: skip
"""Families, or members of them, that are declared up to 1 and do not reach it on every query, with the reason."""

STOPS = "a good document may make the user stop, or tire, before another one: the greatest grade first is not the best"
HOLES = "speaks of judged documents only: one not judged in between leaves the value, or lowers it"
STEPS = "its normaliser or penalty moves with the ranks at which grades stand"
ASPECTS = "a document may be good for one aspect and bad for another: no order of documents is the better one"
PAIRS = "looks at several groups of judges, which may want opposite orders"
COUNTS = "says how many, not how good"
NO_BOUNDS = {
    **dict.fromkeys(("INST", "BPM", "NERR8", "NERR9", "NERR10", "NERR11"), STOPS),
    **dict.fromkeys(("Judged", "Unj", "Bpref", "gm_Bpref", "infAP", "RBPResid", "NumNonrelJudgedRet"), HOLES),
    **dict.fromkeys(("nDCGrel", "RnDCG", "G", "binG", "Compat"), STEPS),
    **dict.fromkeys(
        ("alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "P_IA", "AP_IA", "StRecall"), ASPECTS
    ),
    **dict.fromkeys(("NumPrefs", "NumPrefsFul", "Prefs", "PrefsR", "AvgJG"), PAIRS),
    "IdealDCG": COUNTS,
    "Gain": "adds up a column, and tied rows stand by grade",
    "PairAccuracy": "with a cut-off, another pair comes into it when rows change places",
    "YAAP": "not declared: a function of AP without a use for bounds",
    "RelP": "not declared: P and R have bounds",
    "SetAP": "not declared: P and R have bounds",
    "Utility": "its weights may have any sign",
}
"""Families without bounds over ties, with the reason."""


def reaching() -> list[str]:
    """Return the members that an ideal order of up to six rows takes to 1."""
    return [
        name
        for name in all_members()
        if (one := measure(name)).family.bounds[1] == 1
        and one.family.greater_is_better
        and not {one.family.name, name} & set(BELOW_ONE)
        and (one.cutoff is None or one.cutoff >= LONGEST or one.family.name == "nDCG")
    ]


@st.composite
def labels(draw):
    """Draw grades of up to six documents in the ideal order: 2 (for measures of rel=2) and 0 (for pairs) among them."""
    return sorted([2, 0, *draw(st.lists(st.integers(0, 2), max_size=LONGEST - 2))], reverse=True)


@given(labels())
@settings(max_examples=examples(60), deadline=None)
def test_the_ideal_order_has_exactly_one_where_one_is_declared(grades):
    """To the last bit, whatever the grades."""
    falling = -np.arange(len(grades), dtype=float)
    table = values(np.array(grades), falling, np.zeros(len(grades), dtype=int), reaching()).iloc[0]
    assert table[table != 1].empty


def test_what_is_said_not_to_reach_one_does_not():
    """Each exception is one: there are grades with which its ideal order stays below 1."""
    grades = [2, 1, 0, 0, 0, 0]
    falling = -np.arange(len(grades), dtype=float)
    for name in BELOW_ONE:
        family = FAMILIES[name.partition("(")[0]]
        one = name if "(" in name else str(family.with_parameters(**required(family)))
        shown = values(np.array(grades), falling, np.zeros(len(grades), dtype=int), [one]).iloc[0, 0]
        assert shown < 1, one
    assert len(reaching()) > 40


def test_every_measure_has_bounds_over_ties_or_a_reason():
    """Worst <= expected <= best is tested for those declared monotone; all others stand above, and are refused."""
    known = {name: family for name, family in FAMILIES.items() if family.kernel.__module__.startswith("rankeval.")}
    assert {name for name, family in known.items() if not family.monotone} == set(NO_BOUNDS)


@each_row("name", NO_BOUNDS)
@each_row("ties", ["best", "worst"])
def test_bounds_that_are_none_are_refused(name, ties):
    """No number is given out for a bound that it is not."""
    family = FAMILIES[name]
    needed = {**required(family), **({"cutoff": 3} if "cutoff" in family.defaults else {})}
    with pytest.raises(InvalidInput, match="not monotone in the order of rows"):
        rk.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, measures=family.with_parameters(**needed), ties=ties)
