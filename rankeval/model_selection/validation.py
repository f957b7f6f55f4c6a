"""Cross-validation that keeps every query's out-of-fold score, with metadata routing on or off."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray

from rankeval.collection.convention import Convention
from rankeval.collection.convention import convention as find_convention
from rankeval.collection.data import RankingData
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation, score_arrays
from rankeval.measures import measures as find_measures
from rankeval.model_selection import boosters
from rankeval.model_selection.holdout import as_ranking_data
from rankeval.model_selection.query_ids import encode
from rankeval.model_selection.ranker import QueryRanker
from rankeval.model_selection.splitters import QueryKFold, QuerySplit, Rows
from rankeval.seals.refusal import Seals

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.measures import Measure

Folds = list[tuple[Rows, Rows]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What cross-validation gave.

    Attributes
    ----------
    evaluation : Evaluation
        The out-of-fold scores of every query that was held out; of one held out several times, the first time counts.
        Its queries were ranked by as many models as there are folds.
    folds : DataFrame
        One row per fold: ``n_queries``, each measure's aggregate, ``fit_seconds``, ``score_seconds``.
    predictions : ndarray of shape (n_rows,)
        The out-of-fold score of each row, in row order; nan where a row was never held out.
    estimators : tuple of QueryRanker, optional
        The fitted estimators by fold, if they were asked for.
    """

    evaluation: Evaluation
    folds: pd.DataFrame
    predictions: NDArray[np.float64]
    estimators: tuple[QueryRanker, ...] | None = None

    @property
    def fit_seconds(self) -> float:
        """How long fitting took, all folds together."""
        return float(self.folds["fit_seconds"].sum())

    def __repr__(self) -> str:
        values = ", ".join(f"{label}={value:.4f}" for label, value in self.evaluation.aggregate().items())
        return f"CrossValidation({len(self.folds)} folds, {self.evaluation.n_queries} queries out of fold: {values})"

    def _repr_html_(self) -> str:
        return f"{self.evaluation._repr_html_()}{self.folds.to_html()}"


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group: Any = None,
    measures: str | Measure | Sequence[str | Measure] = ("nDCG@10", "AP", "RR"),
    cv: Any = 5,
    convention: str | Convention = "rankeval",
    n_jobs: int | None = None,
    name: str | None = None,
    progress: Progress | bool | None = None,
    return_estimators: bool = False,
) -> CrossValidation:
    """Cross-validate a ranker over queries and keep every query's out-of-fold score.

    A query is never cut, by whatever splitter. Metadata routing need not be on.

    Parameters
    ----------
    estimator : object
        Anything that `QueryRanker` takes, or a QueryRanker; a search over one makes this nested cross-validation.
    X : RankingData, array, sparse matrix or frame of shape (n_rows, n_features)
        The data, or its features; rows in any order.
    y : array-like of shape (n_rows,), optional
        The relevance of each row; that of the RankingData if X is one.
    qid, group : array-like, optional
        The query of each row, or sizes of consecutive queries; or an index level or a column of X named "qid".
    measures : str, Measure, or list of them
        What to compute from the one prediction of each fold.
    cv : int, splitter or iterable of (train, test), default=5
        Number of folds of `QueryKFold`; or a splitter, which is applied to queries; or rows of each split.
    convention : str or Convention, default="rankeval"
        How the ranking is held against the labels.
    n_jobs : int, optional
        Folds fitted at once, as joblib has it.
    name : str, optional
        What to call the system.
    progress : callable or bool, optional
        Called as ``progress(n_done, n_folds)`` after each fold; True draws a bar.
    return_estimators : bool, default=False
        Keep the fitted estimators.

    Returns
    -------
    CrossValidation
        With ``.evaluation``, ``.folds``, ``.predictions``.

    Raises
    ------
    QueryIdError
        When the query of each row is not known.
    InvalidInput
        When a split has rows of one query on both sides.
    GuardRefusal
        When the data is registered test content, before anything is fitted.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> cross_validate(Ridge(), [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2], cv=2, measures="AP")
    CrossValidation(2 folds, 2 queries out of fold: AP=1.0000)
    """
    data = as_ranking_data(X, y, who="cross_validate", qid=qid, group=group)
    find_measures(measures)
    rules = find_convention(convention)
    Seals.current().refuse(data.X, data.y, data.qid, action="cross_validate")
    folds = query_folds(cv, data)
    ranker = estimator if isinstance(estimator, QueryRanker) else QueryRanker(estimator)
    done = _run(ranker, data, folds, n_jobs, _Bar(progress, len(folds)), keep=return_estimators)

    predictions, held_out = np.full(len(data), np.nan), np.zeros(len(data), dtype=bool)
    for (_, test), fold in reversed(list(zip(folds, done, strict=True))):
        predictions[test], held_out[test] = fold.score, True
    scoring: dict[str, Any] = {"measures": measures, "convention": rules, "name": name}
    evaluation = score_arrays(data.y[held_out], predictions[held_out], data.qid[held_out], **scoring)
    table = _fold_table(data, folds, done, scoring)
    estimators = tuple(fold.estimator for fold in done) if return_estimators else None
    return CrossValidation(evaluation, table, predictions, estimators)


def query_folds(cv: Any, data: RankingData) -> Folds:
    """Return the rows of each split, none of which cuts a query.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        As of `cross_validate`.
    data : RankingData
        What to split.

    Raises
    ------
    InvalidInput
        When rows that were given as splits cut a query, or hold out a part of one.
    """
    if isinstance(cv, int):
        cv = QueryKFold(cv)
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise InvalidInput(f"cv is {cv!r}; give a number of folds, a splitter, or pairs of training and test rows")
    if hasattr(cv, "split"):
        cv = cv if isinstance(cv, QuerySplit) else QuerySplit(cv)
        return list(cv.split(data.X, data.y, qid=data.qid))
    folds = [(_positions(train, len(data)), _positions(test, len(data))) for train, test in cv]
    codes, queries = encode(data.qid)
    sizes = np.bincount(codes)
    for number, (train, test) in enumerate(folds):
        inside = np.bincount(codes[test], minlength=len(queries))
        cut = (inside > 0) & (inside < sizes)
        cut |= (inside > 0) & (np.bincount(codes[train], minlength=len(queries)) > 0)
        if cut.any():
            raise InvalidInput(
                f"split {number} of cv cuts query {queries[np.argmax(cut)]!r}: hold out all of its rows, or none; a "
                "splitter given as cv is applied to queries"
            )
    return folds


def _positions(rows: Any, n_rows: int) -> Rows:
    chosen = np.asarray(rows)
    return np.flatnonzero(chosen) if chosen.dtype == bool else np.arange(n_rows)[chosen]


@dataclass(frozen=True, eq=False)
class _Fold:
    """What one fold gave."""

    score: NDArray[np.float64]
    fit_seconds: float
    score_seconds: float
    estimator: Any


def _run(
    ranker: QueryRanker, data: RankingData, folds: Folds, n_jobs: int | None, bar: _Bar, *, keep: bool
) -> list[_Fold]:
    """Fit and predict each fold, in parallel; results come in the order of folds."""
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    jobs = (joblib.delayed(_fit_fold)(ranker, data, train, test, keep) for train, test in folds)
    done = []
    with bar:
        for fold in parallel(jobs):
            done.append(fold)
            bar.show(len(done))
    return done


def _fit_fold(ranker: QueryRanker, data: RankingData, train: Rows, test: Rows, keep: bool) -> _Fold:
    fitted = boosters.twin(ranker)
    part = data.take(train)
    started = time.perf_counter()
    fitted.fit(part.X, part.y, qid=part.qid)
    between = time.perf_counter()
    score = fitted.predict(data.take(test).X)
    return _Fold(score, between - started, time.perf_counter() - between, fitted if keep else None)


def _fold_table(data: RankingData, folds: Folds, done: list[_Fold], scoring: dict[str, Any]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for (_, test), fold in zip(folds, done, strict=True):
        started = time.perf_counter()
        evaluation = score_arrays(data.y[test], fold.score, data.qid[test], **scoring)
        seconds = fold.score_seconds + time.perf_counter() - started
        values = {str(label): float(value) for label, value in evaluation.aggregate().items()}
        rows.append(
            {"n_queries": evaluation.n_queries, **values, "fit_seconds": fold.fit_seconds, "score_seconds": seconds}
        )
    return pd.DataFrame(rows, index=pd.RangeIndex(len(rows), name="fold"))


class _Bar:
    """A progress bar, a caller's function, or nothing."""

    def __init__(self, progress: Progress | bool | None, n_folds: int) -> None:
        self.n_folds = n_folds
        self._call = progress if callable(progress) else None
        self._rich: Any = None
        if progress is True:
            from rich.progress import Progress as Rich

            self._rich = Rich(transient=True)
            self._task = self._rich.add_task("cross-validation", total=n_folds)

    def __enter__(self) -> Self:
        if self._rich is not None:
            self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._rich is not None:
            self._rich.stop()

    def show(self, n_done: int) -> None:
        """Show how many folds are done."""
        if self._call is not None:
            self._call(n_done, self.n_folds)
        if self._rich is not None:
            self._rich.update(self._task, completed=n_done)
