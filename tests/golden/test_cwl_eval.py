"""Measures of users, against cwl_eval: the program of those who proposed most of them."""

from __future__ import annotations

import pytest
from tables import each_row

import rankeval as rk

QRELS = {
    "q1": {"a": 3, "b": 1, "c": 2, "n": 0, "lost": 3},
    "q2": {"a": 1, "c": 2, "d": 0, "e": 0},
    "q3": {"a": 3, "b": 3, "c": 2, "n": 0},
}
RUN = {
    "q1": {"n": 6.0, "a": 5.0, "x": 4.0, "c": 3.0, "o": 2.0, "b": 1.0},
    "q2": {"d": 4.0, "y": 3.0, "c": 2.5, "e": 2.0, "a": 1.0},
    "q3": {"a": 3.0, "b": 2.0, "c": 1.0},
}

CWL = {
    "RBP(p=0.8)": (0.327936, 0.20992, 0.488),
    "RBP(p=0.8, rel=2)": (0.2624, 0.128, 0.488),
    "INST(T=1, max_rel=3)": (0.258995422476451, 0.083695774329113, 0.941707613601947),
    "INST(T=2, max_rel=3)": (0.240354805003844, 0.090131040488171, 0.636226775091896),
    "INST(T=0.5, max_rel=3)": (0.195063313553208, 0.054320528392756, 1.0),
    "INST(T=2, max_rel=3, min_rel=1)": (0.208245892331659, 0.051599865770695, 0.606076262076648),
    "INSQ(T=1, max_rel=3)": (0.224526345174053, 0.079085437610319, 0.62549391564525),
    "INSQ(T=2.5, max_rel=3)": (0.188482100076961, 0.080428787550821, 0.369373971565743),
    "BPM(T=1, max_rel=3)@4": (0.5, 0.166666666666667, 1.0),
    "BPM(T=2, max_rel=3)@10": (0.2, 0.1, 1.0),
    "BPM(T=0.5, max_rel=4)@3": (0.375, 0.166666666666667, 0.75),
    "SDCG(max_rel=3)@3": (0.296081910965865, 0.156426242007586, 0.921786878996207),
    "SDCG(max_rel=3)@10": (0.228187443112813, 0.101744961313234, 0.432318132270995),
    "SDCG(max_rel=3, min_rel=1)@10": (0.18625662605833, 0.05502294157452, 0.413977151746155),
    "NERR8(max_rel=3)@4": (0.5, 0.2, 1.0),
    "NERR8(max_rel=4)@10": (0.29, 0.106382978723404, 0.63265306122449),
    "NERR9(max_rel=3)@4": (0.333333333333333, 0.115942028985507, 1.0),
    "NERR9(max_rel=4)@10": (0.236937380835065, 0.083317161524031, 0.723825937096079),
    "NERR10(max_rel=3)": (0.473684210526316, 0.136689043020585, 1.0),
    "NERR10(max_rel=4, p=0.7)": (0.28713260982663, 0.10217293376244, 0.722245531593522),
    "NERR11(max_rel=3)": (0.307692307692308, 0.093215600992036, 1.0),
    "NERR11(T=2.5, max_rel=4)": (0.261277402110082, 0.083175300236789, 0.68474719148666),
    "gRBP(p=0.8, max_rel=3)": (0.250112, 0.11264, 0.445333333333333),
    "gRBP(p=0.5, max_rel=4, min_rel=1)": (0.1875, 0.041666666666667, 0.541666666666667),
}
"""cwl_eval 1.0.12 through the provider of that name of ir_measures 0.4.3 with NumPy 2.4: provider.evaluator(measures,
QRELS).iter_calc(RUN), the measures named as here; RBP with rel=1 where none is given. gRBP, which ir_measures lacks, is
cwl_eval's RBPCWLMetric on gains scaled as for the others. Lists are filled up to 1000 ranks there. A label above
max_rel counts as max_rel there and is an error here."""


@each_row("name", CWL)
def test_values_are_those_of_cwl_eval(name):
    """Unjudged rows, a relevant document not retrieved, goals reached and not reached, lists that end early."""
    ours = rk.evaluate(QRELS, RUN, measures=name).per_query[name]
    assert ours.tolist() == pytest.approx(CWL[name], abs=1e-12)
