"""What cannot be computed is refused before anything is fitted."""

from __future__ import annotations

import pytest
from tables import each_row

import rankeval as rk
from rankeval.collection.convention import PRESETS, Convention
from rankeval.errors import InvalidInput, UnknownName
from rankeval.measures.family import FAMILIES
from rankeval.model_selection.checks import check_measures, signs


@each_row(
    ("measures", "convention", "message"),
    [
        ("ERR@10", "rankeval", "ERR@10 needs max_rel"),
        (["nDCG@10", "alpha_nDCG@10"], "rankeval", "alpha_nDCG@10 needs judgments by aspect"),
        ("AP(normalizer='k')", "rankeval", "divides by the cut-off"),
        ("nDCG(gain='square')", "rankeval", "unknown gain 'square'"),
        ("AvgJG(of='StRecall')", "rankeval", "StRecall"),
        ("Bpref", Convention("bounds", ties="best"), "is not a bound of it"),
    ],
)
def test_the_reason_is_given_in_one_line(measures, convention, message):
    for refuse in (check_measures, lambda measures, rules: rk.make_scorer(measures, convention=rules)):
        with pytest.raises(InvalidInput, match=message) as caught:
            refuse(measures, convention)
        assert "\n" not in str(caught.value)


def test_what_can_be_computed_is_returned_with_its_name():
    assert check_measures("ERR(max_rel=4)@10") == [("ERR(max_rel=4)@10", rk.measure("ERR(max_rel=4)@10"))]
    assert [label for label, _ in check_measures("ERR@10", "gdeval")] == ["ERR@10"]
    assert [label for label, _ in check_measures(["ndcg_cut_10", "P.5,10"])] == ["ndcg_cut_10", "P_5", "P_10"]
    with pytest.raises(UnknownName):
        check_measures("nDGC@10")


@each_row("convention", PRESETS)
def test_no_measure_without_open_parameters_is_refused_that_evaluate_computes(convention):
    """The two rows that measures are tried on stand for no data: whatever evaluate takes is taken here too."""
    for name, family in FAMILIES.items():
        try:
            rk.evaluate(
                [2, 1, 0], [3.0, 2.0, 1.0], qid=[1, 1, 1], docid=list("abc"), measures=name, convention=convention
            )
        except InvalidInput:
            continue
        assert check_measures(name, convention)[0][1].family is family


def test_the_sign_says_which_way_is_better():
    assert signs(check_measures(["ARP", "nDCG@10"])) == {"ARP": -1, "nDCG@10": 1}
