"""An error's message is made of its fields, and follows them."""

from __future__ import annotations

import copyreg
import pickle
import re
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from tables import each_row

import rankeval as rk
from rankeval._checks import refuse, require
from rankeval.errors import FileFormatError, GuardRefusal, InvalidInput, LedgerError, RankevalError, Refusal


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


class _Model:
    def __init__(self, predicted):
        self.predicted = predicted

    def predict(self, X):
        return np.asarray(self.predicted)[: len(X)]


Y, QID = np.tile([0, 1], 10), np.repeat(np.arange(5), 4)
ROWS = {"truth": Y, "ranking": np.arange(20.0), "qid": QID}
TABLE = pd.DataFrame({"q": QID, "y": Y, "s": ROWS["ranking"], "d": np.arange(20)})
SCORER = rk.make_scorer("AP", convention="sklearn")
CALLS = {
    "evaluate": (rk.evaluate, {**ROWS, "measures": "AP", "docid": np.arange(20), "convention": "sklearn"}),
    "evaluate, a frame": (
        rk.evaluate,
        {"truth": TABLE, "qid": "q", "relevance": "y", "score": "s", "docid": "d", "measures": "AP"},
    ),
    "explain_difference": (rk.explain_difference, {**ROWS, "measure": "AP", "values": (0.5, 0.6)}),
    "contingency_table": (rk.analysis.contingency_table, {**ROWS, "cutoff": 3, "rel": 1, "convention": "sklearn"}),
    "a scorer": (SCORER.evaluate, {"estimator": _Model(ROWS["ranking"]), "X": TABLE[["s"]], "y": Y, "qid": QID}),
    "cross_validate": (rk.cross_validate, {"estimator": Ridge(), "X": TABLE[["s"]], "y": Y, "qid": QID, "cv": 2}),
    "topics_needed": (rk.topics_needed, {"difference": 0.1, "sd": 0.1}),
    "RankingData": (rk.RankingData, {"X": TABLE[["s"]], "y": Y, "qid": QID, "docid": np.arange(20)}),
    "dev_test_split": (rk.dev_test_split, {"X": TABLE[["s"]], "y": Y, "qid": QID, "test_size": 0.4}),
}  # fmt: skip
GAPS = np.where(np.arange(20) == 3, np.nan, ROWS["ranking"])
BAD = [
    None, "x", -1, 0, float("nan"), [], {}, np.array([1, 2]), GAPS, np.zeros((20, 2)), list("ab") * 10, Y[:5], -Y,
    pd.Series(ROWS["ranking"], index=range(5, 25)), np.ma.array(Y, mask=np.arange(20) == 0), _Model(GAPS),
    _Model(Y[:5]), _Model(np.zeros((20, 3))),
]  # fmt: skip


@each_row("call", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_an_error_names_an_argument_of_the_function_that_was_called(call):
    """Whatever is given for any argument; other libraries' errors are the matter of tests/fuzz."""
    function, good = CALLS[call]
    errors = [_error(function, good | {argument: value}) for argument in good for value in BAD]
    named = {(error.argument or "").partition("[")[0]: str(error) for error in errors if error is not None}
    known = {"", "predict", *signature(function).parameters}  # a scorer names the method that predicts
    assert {name: said for name, said in named.items() if name not in known} == {}
    assert not [said for said in named.values() if re.search(r"\by_(true|score)\b", said)]


def _error(function, given):
    try:
        function(**given)
    except (RankevalError, Refusal) as error:
        return error
    except Exception:  # noqa: BLE001 - see tests/fuzz
        return None


def test_unequal_lengths_are_told_by_the_names_of_the_signature():
    """Of rows, of a frame's columns, and of a scorer."""
    with pytest.raises(InvalidInput, match="truth has 5, ranking has 20, qid has 20"):
        rk.evaluate(Y[:5], Y, qid=QID, measures="AP")
    with pytest.raises(InvalidInput, match="y has 20, estimator has 5, qid has 20"):
        SCORER(_Model(Y[:5]), TABLE[["s"]], Y, qid=QID)
    with pytest.raises(InvalidInput) as caught:
        rk.evaluate(TABLE.assign(s=GAPS), qid="q", relevance="y", score="s", measures="AP")
    assert caught.value.argument == "score"
    with pytest.raises(InvalidInput) as caught:
        rk.analysis.contingency_table(-Y, Y, qid=QID, convention="sklearn")
    assert caught.value.argument == "truth"
