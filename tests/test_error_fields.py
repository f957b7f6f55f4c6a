"""An error's message is made of its fields, and follows them."""

from __future__ import annotations

import copyreg
import pickle

import pytest

import rankeval as rk
from rankeval._checks import refuse, require
from rankeval.errors import FileFormatError, GuardRefusal, InvalidInput, LedgerError


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"argument": "k", "found": "0", "expected": "1 or greater"}, "k is 0; expected 1 or greater"),
        (
            {"argument": "ranker", "found": "a list", "remedy": "give an estimator"},
            "ranker is a list; give an estimator",
        ),
        ({"problem": "has no rows", "argument": "y"}, "y: has no rows"),
        (
            {"problem": "no columns", "where": "a.tsv, line 3", "remedy": "add them"},
            "a.tsv, line 3: no columns; add them",
        ),
    ],
)
def test_a_message_is_made_of_the_fields(fields, message):
    assert str(InvalidInput(**fields)) == message


def test_an_error_with_other_fields_has_another_message_and_the_same_class():
    error = FileFormatError("no columns", where="a.tsv", argument="docid")
    other = error.having(where="b.tsv, line 2")
    assert (type(other), str(other), other.argument) == (FileFormatError, "b.tsv, line 2: docid: no columns", "docid")
    assert str(error) == "a.tsv: docid: no columns"


def test_fields_travel_to_other_processes():
    for error in (
        InvalidInput(argument="k", found="0", expected="1 or greater", where="here", remedy="raise it"),
        GuardRefusal("it is registered; leave it", found="it is registered", collection="c", queries=(1, "a")),
    ):
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_a_wrong_argument_is_named_in_a_field():
    evaluation = rk.evaluate([1, 0, 1, 0], [0.3, 0.2, 0.1, 0.4], qid=[1, 1, 2, 2], measures="nDCG@10")
    with pytest.raises(InvalidInput) as caught:
        evaluation.worst(0)
    assert (caught.value.argument, caught.value.found) == ("n", "0")


def test_a_table_of_refusals_raises_the_first_case_that_holds_with_its_remedy():
    """Cases that do not hold say nothing, and the class is the caller's choice."""
    refuse((False, "no"), (0, "nor this"))
    with pytest.raises(LedgerError) as caught:
        refuse((False, "no"), (True, "it is spent", "take another"), (True, "too late"), kind=LedgerError)
    assert (caught.value.problem, caught.value.remedy) == ("it is spent", "take another")


def test_an_argument_that_does_not_fit_is_refused_by_its_fields():
    """A value that fits passes; the refusal of another has the argument, the value and what would fit."""
    require("a", "key", "a", "text")
    with pytest.raises(InvalidInput) as caught:
        require(isinstance(7, str), "key", 7, "text", "a.yaml")
    assert str(caught.value) == "a.yaml: key is 7; expected text"
    assert (caught.value.argument, caught.value.found, caught.value.expected) == ("key", "7", "text")


def test_fields_are_not_shared_where_tblib_copies_exceptions(monkeypatch):
    """As dask and skops install it: what `copy` makes of an exception shares its fields with the first one."""
    monkeypatch.setitem(copyreg.dispatch_table, InvalidInput, lambda one: (lambda: one, ()))
    error = InvalidInput("is wrong", argument="a", where="here")
    other = error.having(where="there")
    assert (error.where, other.where, str(other)) == ("here", "there", "there: a: is wrong")
