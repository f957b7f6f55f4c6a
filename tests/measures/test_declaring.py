"""A new measure is one decorated function; everything else follows from it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.measures import family
from rankeval.measures.family import FAMILIES


def share_above(judged, *, rel=1, cutoff=2):
    """Share of the first rows that are relevant."""
    return judged.hits(rel, cutoff) / cutoff


@pytest.fixture
def declared():
    """Declare a measure for one test."""
    family("ShareAbove", title="share above", formula="hits/k", source="a test", linear=True)(share_above)
    yield
    del FAMILIES["ShareAbove"]


@pytest.mark.usefixtures("declared")
class TestDeclared:
    """One declaration brings documentation, grammar, key, pickling, scoring and the laws."""

    def test_it_is_listed(self):
        row = rk.list_measures().loc["ShareAbove"]
        assert row["parameters"] == "rel=1, cutoff=2"
        assert row["description"] == "Share of the first rows that are relevant."

    def test_it_has_a_grammar_and_a_key(self):
        one = rk.measure("shareabove(rel=2)@3")
        assert str(one) == "ShareAbove(rel=2)@3"
        assert rk.measure_from_key(one.key) == one

    def test_it_travels(self):
        one = rk.measure("ShareAbove@3")
        assert pickle.loads(pickle.dumps(one)) == one

    def test_it_scores(self):
        assert rk.evaluate([1, 0, 1], [3, 2, 1], qid=[1, 1, 1], measures="ShareAbove@3").scores[0, 0] == 2 / 3

    def test_it_makes_a_scorer(self):
        from sklearn.dummy import DummyRegressor

        X, y, qid = np.zeros((4, 1)), np.array([1, 0, 1, 0]), np.array([1, 1, 2, 2])
        scorer = rk.make_scorer("ShareAbove@1")
        assert scorer(DummyRegressor().fit(X, y), X, y, qid=qid) == 0.5

    def test_the_laws_find_it(self):
        # The law tests take their cases from the registry.
        import importlib.util
        from pathlib import Path

        path = Path(__file__).parents[1] / "laws" / "test_measure_laws.py"
        spec = importlib.util.spec_from_file_location("laws_for_declaring", path)
        laws = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(laws)
        assert any(name.startswith("ShareAbove") for name in laws.all_members())


def test_the_decorator_gives_the_function_back():
    """A decorated kernel is still the function of its module, so that it pickles."""
    from rankeval.measures.ranked import average_precision

    assert pickle.loads(pickle.dumps(average_precision)) is average_precision


def test_a_measure_must_say_what_ties_do_to_it():
    """Neither linear nor expected: refused, since a tie would be scored by accident."""
    with pytest.raises(InvalidInput, match="linear=True"):
        family("Careless", title="", formula="", source="")


def test_a_name_is_declared_once():
    """Two functions cannot share a name."""
    with pytest.raises(InvalidInput, match="already declared"):
        family("AP", title="", formula="", source="", linear=True)(share_above)


def test_every_measure_is_documented():
    """Title, formula, source, bounds and a description with range and value without relevant documents."""
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


@pytest.mark.parametrize(
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
