"""An error of another library names the argument that does not fit its annotation; any other error passes."""

# ruff: noqa: ARG001 - what is called here reads nothing
from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from tables import each_row

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval._arguments import explained
from rankeval.errors import InvalidInput, UnknownName
from rankeval.experiment import run_experiment

if TYPE_CHECKING:
    from rankeval.online import ClickLog


@explained
def called(
    error: Any = None,
    *several: int,
    text: str = "",
    number: float = 0.5,
    count: int | None = None,
    flag: bool = False,
    path: str | Path = "",
    names: Iterable[str] = (),
    pair: tuple[str, float] = ("", 0.0),
    many: tuple[int, ...] = (),
    shares: Mapping[str, float] | None = None,
    column: ArrayLike = (0,),
    floats: Sequence[float] = (),
    side: Literal["left", "right"] = "left",
    make: Callable[[], int] = int,
    frame: pd.DataFrame | None = None,
    log: ClickLog | None = None,
    **rest: str,
) -> str:
    """Raise an error, if one is given."""
    if error is not None:
        raise error
    return "a value"


RAW = TypeError("unhashable type: 'list'")
MISFITS = (
    {"text": None}, {"text": b"a"}, {"text": "a\0b"}, {"text": "\ud800"}, {"number": "0.5"}, {"number": True},
    {"number": Fraction(1, 2)}, {"number": 1j}, {"count": 1.5}, {"count": True}, {"flag": 1}, {"path": 7},
    {"path": Path("a\0b")}, {"names": "ab"}, {"names": ["a", 1]}, {"names": {"a", None}}, {"names": np.array(["a"])[0]},
    {"pair": ("a",)}, {"pair": ("a", "b")}, {"pair": "ab"}, {"many": (1, "a")}, {"shares": {"a": "b"}},
    {"shares": {1: 0.5}},
    {"shares": [("a", 0.5)]}, {"column": 3}, {"column": [[1], [1, 2]]}, {"column": "abc"}, {"column": np.array(3)},
    {"column": {"a": 1}}, {"floats": [0.5, None]}, {"floats": pd.DataFrame({"a": [1]})}, {"side": "up"}, {"side": None},
    {"make": 7}, {"frame": [1]}, {"frame": pd.Series([1])}, {"log": pd.DataFrame()}, {"other": 7},
)  # fmt: skip
FITS = (
    {"text": "\x1b"}, {"number": 1}, {"number": np.float32(1)}, {"number": np.int8(1)}, {"count": np.int64(3)},
    {"count": None}, {"flag": np.True_}, {"path": Path("a")}, {"names": ["a"]}, {"names": iter([1])},
    {"names": np.array(["a"])},
    {"names": pd.Index(["a"])}, {"pair": ["a", 1]}, {"many": [1, 2]}, {"shares": {"a": 1}}, {"shares": {}},
    {"column": pd.Series([1])}, {"column": [1]}, {"floats": np.array([0.5])}, {"side": "right"}, {"make": lambda: 1},
    {"frame": pd.DataFrame()}, {"other": "a"},
)  # fmt: skip


@each_row("given", MISFITS)
def test_an_argument_that_does_not_fit_is_named(given):
    ((name, value),) = given.items()
    with pytest.raises(InvalidInput) as refused:
        called(RAW, **given)
    assert (refused.value.argument, refused.value.__cause__) == (name, RAW)
    assert refused.value.expected
    if not isinstance(value, pd.DataFrame | pd.Series):
        assert refused.value.found == repr(value)


@each_row("given", FITS)
def test_the_error_passes_if_all_arguments_fit(given):
    with pytest.raises(TypeError, match="unhashable") as raised:
        called(RAW, **given)
    assert raised.value is RAW


@each_row("given", MISFITS)
def test_nothing_is_checked_if_the_call_succeeds(given):
    assert called(**given) == "a value"


def test_an_error_of_ours_passes_and_so_does_a_call_that_cannot_be():
    ours = UnknownName("unknown test 7")
    with pytest.raises(UnknownName) as raised:
        called(ours, text=7)
    assert raised.value is ours
    with pytest.raises(TypeError, match="missing"):
        explained(lambda text: text)()
    with pytest.raises(InvalidInput, match="several is 'a'; expected a whole number"):
        called(RAW, 1, "a")


def test_the_outermost_call_names_its_own_argument():
    @explained
    def inner(specs: str) -> None:
        raise RAW

    @explained
    def outer(measures: str) -> None:
        inner(measures)

    @explained
    def other(measures: str) -> None:
        inner([])

    with pytest.raises(InvalidInput, match="measures is 3; expected text"):
        outer(3)
    with pytest.raises(InvalidInput, match=r"specs is \[\]; expected text"):
        other("AP")


def test_a_class_is_explained_by_its_public_methods():
    @explained
    @dataclass
    class Counter:
        size: int

        def __post_init__(self):
            self.size + 0

        @classmethod
        def of(cls, names: Sequence[str]) -> Counter:
            return cls(len(names))

        @staticmethod
        def half(number: float) -> float:
            return number / 2

        def _private(self, number: float) -> float:
            return number / 2

    for call, argument in (
        (lambda: Counter("a"), "size"),
        (lambda: Counter.of(7), "names"),
        (lambda: Counter.half("a"), "number"),
    ):
        with pytest.raises(InvalidInput) as refused:
            call()
        assert refused.value.argument == argument
    with pytest.raises(TypeError):
        Counter(1)._private("a")
    assert (Counter.of(["a"]).size, Counter.half(3)) == (1, 1.5)


def test_public_functions_are_what_they_were():
    assert pickle.loads(pickle.dumps(rk.evaluate)) is rk.evaluate
    assert "measures" in signature(rk.evaluate).parameters
    assert rk.evaluate.__module__ == "rankeval.evaluation.front_door"


class Broken(BaseEstimator):
    """An estimator whose error is the user's own."""

    def fit(self, X, y):
        raise KeyError("mine")

    def predict(self, X):
        raise KeyError("mine")


def test_the_error_of_an_estimator_is_its_own():
    rows = rk.datasets.make_ranking(6, 4, 2, rng=0)
    with pytest.raises(KeyError, match="mine"):
        rk.cross_validate(Broken(), rows, cv=2)


EV = rk.evaluate([1, 0], [0.5, 0.1], qid=["a", "a"], measures="RR")
LOG = pd.DataFrame({"search_id": [1, 1], "position": [1, 2], "docid": ["a", "b"], "clicked": [1, 0], "qid": ["q", "q"]})
KNOWN = {1: 1.0, 2: 0.5}


def valued(scores, propensities=KNOWN):
    """Value a ranking on the log."""
    return rk.online.counterfactual(rk.online.ClickLog.from_frame(LOG), scores, propensities)


USERS = pd.DataFrame({"user": list("abcdefgh"), "orders": [1, 2, 3, 1, 0, 2, 1, 5]})


def written(name, text):
    """Write a file, and return its path."""
    Path(name).write_text(text)
    return Path(name)


CALLS = {
    "evaluation": lambda: rk.report.report_for_evaluation(None),
    "config": lambda: run_experiment([1]),
    "path": lambda: EV.save(""),
    "ledger": lambda: rk.Guard("p", ledger="a\0b").register("t", qrels={"q": {"d": 1}}),
    "measures": lambda: rk.evaluate([1], [1], qid=[1], measures=np.array(3)),
    "name": lambda: rk.evaluate([1], [1], qid=[1], name=pd.DataFrame()),
    "shares": lambda: rk.online.assign("u", "s", None),
    "scores": lambda: valued({"q": {"a": 1.0}}),
    "propensities": lambda: valued([1.0, 2.0], {1: {}, 2: 0.5}),
    "salt": lambda: rk.online.assign("u", None, {"a": 1.0}),
    "user": lambda: rk.online.assign(1.5, "s", {"a": 1.0}),
    "fields": lambda: rk.text.read_texts(written("t.tsv", "a\tb\n"), fields=7),
    "relative": lambda: rk.online.ab_power(USERS, metric="orders", relative=10**400, shares={"A": 0.5, "B": 0.5}),
    "stop": lambda: rk.text.BM25(stop=7).fit({"a": "b"}),
    "stem": lambda: rk.text.BM25(stem=[]).fit({"a": "b"}),
    "results": lambda: rk.model_selection.CrossValidations({}).folds,
    "rng": lambda: rk.judging.draw(["a", "b"], 1, rng=-1),
    "n_jobs": lambda: rk.cross_validate(Broken(), rk.datasets.make_ranking(6, 4, 2, rng=0), cv=2, n_jobs=0),
    "p": lambda: rk.significance.adjust(np.array([b"a"])),
    "score": lambda: rk.evaluate([1], [1], qid=[1], score=object()),
}


@each_row("argument, call", CALLS.items())
def test_what_was_a_raw_error_or_silence_names_its_argument(argument, call):
    with pytest.raises(InvalidInput) as refused:
        call()
    assert refused.value.argument == argument


@each_row("call", [lambda: EV.save("a\0b"), lambda: EV.save("\ud800"), lambda: EV.save(Path("a\0b"))])
def test_a_path_that_cannot_be_is_refused(call):
    with pytest.raises(InvalidInput, match=r"path is .*; expected the path of a file"):
        call()


def test_a_surrogate_in_a_name_is_refused_before_a_server_is_asked():
    with pytest.raises(InvalidInput, match=r"name is .*; expected text that UTF-8 can write"):
        rkm.rollback("\ud800", reason="worse")


@explained
def renamed(
    groups: Any = None, convention: str = "", collection: Any = None, claim: str = "", confidence_level: float = 0.95
) -> str:
    """Know the arguments of now."""
    return "a value"


@each_row(
    "old, new",
    [
        ("unit", "groups="),
        ("ties", "convention=rk.Convention.with_rules(ties=...)"),
        ("test", "collection="),
        ("level", "confidence_level="),
        ("alternative", 'claim="better"'),
    ],
)
def test_an_argument_that_was_taken_out_is_answered_by_the_new_one(old, new):
    with pytest.raises(InvalidInput) as refused:
        renamed(**{old: "docid"})
    assert refused.value.argument == old
    assert new in refused.value.remedy
    with pytest.raises(TypeError):  # a call that never had it
        explained(lambda text="": text)(**{old: "docid"})
