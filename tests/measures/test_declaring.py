"""A declaration is complete, or it is refused. The drill shows everything that follows from one."""

from __future__ import annotations

import pickle

import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.measures import family
from rankeval.measures.family import FAMILIES
from rankeval.measures.grammar import canonical_value, kinds


def share_above(judged, *, rel=1, cutoff=2):
    """Share of the first rows that are relevant."""
    return judged.hits(rel, cutoff) / cutoff


def test_the_decorator_gives_the_function_back():
    """A decorated kernel is still the function of its module, so that it pickles."""
    from rankeval.measures.ranked import average_precision

    assert pickle.loads(pickle.dumps(average_precision)) is average_precision


def test_a_measure_must_say_what_ties_do_to_it():
    """A measure that is neither linear nor has an expected form is refused: ties would be scored by accident."""
    with pytest.raises(InvalidInput, match="linear=True"):
        family("Careless", title="", formula="", source="")


def test_spellings_that_are_a_string_are_refused():
    """A forgotten comma would make a name of each letter."""
    with pytest.raises(InvalidInput, match=r"the spellings of hound are a tuple, such as \('"):
        family("OwnHit", title="", formula="", source="", linear=True, spellings={"hound": ("own_hit")})


def test_a_name_is_declared_once():
    """Two functions cannot share a name."""
    with pytest.raises(InvalidInput, match="already declared"):
        family("AP", title="", formula="", source="", linear=True)(share_above)


def test_every_measure_is_documented():
    """Every measure has a title, a formula, a source and a description."""
    table = rk.list_measures()
    assert (table[["title", "formula", "source", "description"]] != "").all().all()
    assert {
        "P",
        "R",
        "F",
        "Success",
        "AP",
        "RR",
        "Rprec",
        "nDCG",
        "DCG",
        "NumQ",
        "NumRel",
        "NumRet",
        "NumRelRet",
    } <= set(table.index)


@each_row(
    ("wrong", "says"),
    [
        ({"aggregate": "avg"}, "aggregate"),
        ({"needs": "grade"}, "grades"),
        ({"monotone": "labels"}, "value of monotone"),
        ({"linear": False, "expected": "order"}, "orders"),
    ],
)
def test_a_word_that_a_declaration_does_not_know_is_refused_before_anything_is_declared(wrong, says):
    given = {"title": "", "formula": "", "source": "", "linear": True} | wrong
    with pytest.raises(UnknownName, match=says):
        family("Misspelt", **given)(share_above)
    assert "Misspelt" not in FAMILIES


def test_two_measures_of_one_name_are_refused_and_the_same_one_again_is_not():
    """A notebook cell that is run twice declares its measure twice."""
    words = {"title": "", "formula": "", "source": "", "linear": True}
    with pytest.raises(InvalidInput, match=r"a measure 'AP' is already declared, in rankeval\.measures"):
        family("AP", **words)(share_above)
    try:
        for _ in range(2):
            assert family("ShareAbove", **words)(share_above) is share_above
    finally:
        del FAMILIES["ShareAbove"]


def test_no_cutoff_is_one_only_where_it_is_the_default():
    """All rows count in a measure that says so: cutoff=None. Elsewhere None would be given to arithmetic."""

    def to_any_rank(judged, *, cutoff=None):
        """Have no annotation, as in a notebook."""

    assert canonical_value("ToAnyRank", "cutoff", kinds(to_any_rank)["cutoff"], None) is None
    with pytest.raises(InvalidInput):
        canonical_value("ShareAbove", "cutoff", kinds(share_above)["cutoff"], None)
