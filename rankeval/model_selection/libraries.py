"""Boosters: one declaration for each library, with all that is particular to it.

LightGBM, XGBoost and CatBoost are declared in `with_lightgbm`, `with_xgboost` and `with_catboost`.
Fits, checks of rows and parameters, threads, the MLflow flavour, extras and the shown versions read
the declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.model_selection.rows import EarlyStopping, TrainingRows
from rankeval.model_selection.training_metrics import TrainingMetric


class Labels(NamedTuple):
    """The labels and the sizes of queries that a booster takes, and what to do with others."""

    words: str
    least: float = 0
    greatest: float = np.inf
    slack: float = np.inf  # How far labels may lie above whole numbers
    remedy: str = "grade the labels, or choose another objective"
    must_differ: bool = False
    most_rows: float = np.inf


SHARES, COUNTS = Labels("labels from 0 to 1", 0, 1), Labels("no label below 0")


def _set_n_jobs(estimator: Any, threads: int | None) -> None:
    estimator.n_jobs = threads


@dataclass(frozen=True, kw_only=True)
class Booster:
    """A library of boosters, declared once."""

    name: str  # The import name; the extra, the package and the MLflow flavour have it too
    words: str  # The name in sentences
    # Parameters of ``fit`` that take the queries -> the column of the rows. The first that ``fit``
    # has is used.
    queries: Mapping[str, str]
    # Fits until the measure that is watched gets no better, and returns the number of iterations.
    # The last argument has what else to tell ``fit``.
    stopped_fit: Callable[[Any, TrainingRows, EarlyStopping, dict[str, Any]], int]
    # The patience of early stopping that the parameters of an estimator ask for.
    own_rounds: Callable[[Any], int | None]
    # Parameters by which later iterations change earlier ones: names, values, and a value with
    # which they do not.
    changes_earlier: tuple[tuple[str, ...], tuple[str, ...], str] = ((), (), "")

    # Takes a weight for each row, equal within a query, and the rows; returns the arguments of
    # ``fit`` of a ranker. None if rankers take a weight per row.
    query_weight: Callable[[NDArray[Any], TrainingRows], dict[str, Any]] | None = None
    # Whether a ranker with such arguments learns from weights of rows after all.
    weighs_rows: Callable[[Any], bool] = lambda _: False
    row_weighers: str = ""  # What takes a weight per row, in words
    # The arguments of ``fit`` for positions; None if the estimator learns nothing from them.
    positions: Callable[[Any, NDArray[np.int32]], dict[str, Any] | None] = lambda *_: None
    # Tells an estimator the columns of categories, unless the library looks for them itself.
    take_categories: Callable[[Any, list[Any]], object] = lambda *_: None
    # Whether a fitted estimator takes an unknown category for a known one.
    mistakes_unknown: Callable[[Any], bool] | None = None

    objective: tuple[str, ...]  # Names of the parameter; the first that is given wins
    # Takes an estimator, its objective, the labels and whether these are only watched; returns the
    # labels that the estimator takes, or None if it takes all.
    labels: Callable[[Any, Any, NDArray[np.float32], bool], Labels | None]
    decides: tuple[str, ...] = ()  # Other parameters by which it takes other labels
    column_name: Callable[[str], str] = str  # The library's own form of the name of a column
    unfit_name: str = r"(?!)"  # Regular expression for names of columns that it refuses
    unfit_words: str = ""  # Characters of these, in words
    takes_objects: bool = False  # Columns of type object, if they hold numbers
    takes_missing_categories: bool = True
    takes_float_categories: bool = False

    seed: str = ""  # Name of the parameter, if `get_params` has it only once it is given
    takes_any_parameter: bool = False  # In silence, when a copy is made
    threads: tuple[str, ...] = ()  # Names of the parameter
    set_threads: Callable[[Any, int | None], None] = _set_n_jobs
    reads_omp: bool = True  # Whether its classes read OMP_NUM_THREADS
    importances: Callable[[Any], Any] = attrgetter("feature_importances_")
    copied: Callable[[Any], Any] | None = None  # By default scikit-learn's clone
    # What the MLflow flavour saves of a fitted estimator; None if its file would lose something.
    saved: Callable[[Any], Any] = lambda estimator: estimator
    feval: type[TrainingMetric] | None = None  # Measures for its own training loop

    def __bool__(self) -> bool:
        return bool(self.name)


BOOSTERS: dict[str, Booster] = {}
"""All boosters by name."""


def in_words() -> str:
    """Return the libraries as a sentence lists them."""
    *names, last = (booster.words for booster in BOOSTERS.values())
    return f"{', '.join(names)} and {last}"


def _refuse_to_stop(estimator: Any, *_: Any) -> int:
    kind = type(estimator).__name__
    raise InvalidInput(
        f"only {in_words()} can stop early, found {kind}: leave early_stopping_rounds out"
    )


OTHER = Booster(
    name="",
    words="",
    queries={"qid": "qid", "group": "sizes"},
    stopped_fit=_refuse_to_stop,
    own_rounds=lambda _: None,
    objective=(),
    labels=lambda *_: None,
)
"""What is known of an estimator of no declared library. It is false."""


def add_booster(declared: Booster) -> Booster:
    """Add a booster, or replace the one of this name."""
    BOOSTERS[declared.name] = declared
    return declared
