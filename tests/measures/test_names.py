"""One grammar, the spellings of other tools, errors that help."""

from __future__ import annotations

import pytest

import rankeval as rk
from rankeval.errors import AmbiguousName, InvalidInput, UnknownName


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("NDCG@10", "nDCG@10"),
        ("ndcg", "nDCG"),
        ("map", "AP"),
        ("MAP@100", "AP@100"),
        ("map_cut_5", "AP@5"),
        ("gm_ap", "gm_AP"),
        ("gm_map", "gm_AP"),
        ("R-prec", "Rprec"),
        ("P5", "P@5"),
        ("P_5", "P@5"),
        ("recall_100", "R@100"),
        ("recip_rank", "RR"),
        ("mrr@10", "RR@10"),
        ("hit_rate@5", "Success@5"),
        ("num_rel_ret", "NumRelRet"),
        ("set_F", "F"),
        ("P(rel=1)@5", "P@5"),
        (" P( rel = 2 ) @5", "P(rel=2)@5"),
        ("nDCG(gain='exp')@10", "nDCG(gain='exp')@10"),
        ("nDCG(gain={2: 3, 1: 1.0})", "nDCG(gain={1: 1, 2: 3})"),
    ],
)
def test_every_spelling_is_one_value(spelling, canonical):
    """A measure is found under each tool's name and prints in one way."""
    assert str(rk.measure(spelling)) == canonical
    assert rk.measure(spelling) == rk.measure(canonical)
    assert hash(rk.measure(spelling)) == hash(rk.measure(canonical))


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ("nDGC@10", UnknownName, r"did you mean 'nDCG@10'"),
        ("precison@5", UnknownName, "did you mean"),
        ("P(rell=2)@5", UnknownName, "did you mean 'rel'"),
        ("official", AmbiguousName, "several measures"),
        ("P.5,10", AmbiguousName, "several measures"),
        ("P@0", InvalidInput, "1 or greater"),
        ("Rprec@5", InvalidInput, "no cut-off"),
        ("P(2)@5", InvalidInput, "name=value"),
        ("P(rel=open('x'))@5", InvalidInput, "plain values"),
        ("P@5@6", InvalidInput, "no measure"),
        (7, InvalidInput, "named by a string"),
    ],
)
def test_wrong_names_are_refused_with_help(wrong, error, says):
    """What cannot be meant is said, with what could."""
    with pytest.raises(error, match=says):
        rk.measure(wrong)


def test_asking_twice_for_one_measure_is_an_error():
    """Two names of one measure would be two equal columns."""
    with pytest.raises(InvalidInput, match="the same measure"):
        rk.evaluate([1, 0], [1, 0], qid=[1, 1], measures=["nDCG@10", "ndcg_cut_10"])


def test_columns_keep_the_name_asked_for():
    """per_query has the measures under the names that were asked for."""
    ev = rk.evaluate([1, 0], [1, 0], qid=[1, 1], measures=["ndcg_cut_10", "map"])
    assert list(ev.per_query) == ["ndcg_cut_10", "map"]


def test_a_convention_binds_what_a_name_leaves_open():
    """A bound parameter holds for nDCG@10; one that the name gives stays."""
    exponential = rk.Convention("mine", bind={"nDCG": {"gain": "exp"}})
    ev = rk.evaluate(
        [1, 3, 0], [3, 2, 1], qid=[1, 1, 1], measures=["nDCG@10", "nDCG(gain={1: 1, 3: 3})@10"], convention=exponential
    )
    assert [str(one) for one in ev.measures] == ["nDCG(gain='exp')@10", "nDCG(gain={1: 1, 3: 3})@10"]
    assert ev.scores[0, 0] != ev.scores[0, 1]
