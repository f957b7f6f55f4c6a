"""Fitting the folds of a cross-validation, in parallel, and timing them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray

from rankeval.collection.data import RankingData
from rankeval.evaluation import score_arrays
from rankeval.model_selection import boosters
from rankeval.model_selection.ranker import QueryRanker
from rankeval.model_selection.splitters import Rows
from rankeval.significance.paired import FOLD

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class FittedFold:
    """What one fold gave: a score per row held out, seconds, what a search chose, perhaps the fitted estimator."""

    score: NDArray[np.float64]
    fit_seconds: float
    score_seconds: float
    estimator: Any
    best_params: dict[str, Any] | None


def run_folds(
    data: RankingData,
    jobs: Sequence[tuple[QueryRanker, Rows, Rows]],
    *,
    n_jobs: int | None,
    progress: Progress | bool | None,
    keep: bool = False,
) -> list[FittedFold]:
    """Fit and predict in parallel; results come in the order of jobs.

    Parameters
    ----------
    data : RankingData
        All rows.
    jobs : sequence of (QueryRanker, ndarray, ndarray)
        What to fit to which rows, and which rows to predict.
    n_jobs, progress
        As of `cross_validate`.
    keep : bool
        Keep the fitted estimators.
    """
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    done = []
    with _Bar(progress, len(jobs)) as bar:
        for fold in parallel(
            joblib.delayed(_fit_fold)(ranker, data, train, test, keep) for ranker, train, test in jobs
        ):
            done.append(fold)
            bar.show(len(done))
    return done


def _fit_fold(ranker: QueryRanker, data: RankingData, train: Rows, test: Rows, keep: bool) -> FittedFold:
    fitted = boosters.twin(ranker)
    part = data.take(train)
    started = time.perf_counter()
    fitted.fit(part.X, part.y, qid=part.qid)
    between = time.perf_counter()
    score = fitted.predict(data.take(test).X)
    seconds = between - started, time.perf_counter() - between
    return FittedFold(score, *seconds, fitted if keep else None, getattr(fitted.estimator_, "best_params_", None))


def fold_table(
    data: RankingData, tests: Sequence[Rows], done: list[FittedFold], scoring: dict[str, Any]
) -> pd.DataFrame:
    """Return a row per fold: its queries, measures and seconds.

    Parameters
    ----------
    data : RankingData
        All rows.
    tests : sequence of ndarray
        The rows that each fold held out.
    done : list of FittedFold
        What the folds gave.
    scoring : dict
        Options of `score_arrays`.
    """
    import pandas as pd

    rows = []
    for test, fold in zip(tests, done, strict=True):
        started = time.perf_counter()
        evaluation = score_arrays(data.y[test], fold.score, data.qid[test], **scoring)
        seconds = fold.score_seconds + time.perf_counter() - started
        values = {str(label): float(value) for label, value in evaluation.aggregate().items()}
        rows.append(
            {"n_queries": evaluation.n_queries, **values, "fit_seconds": fold.fit_seconds, "score_seconds": seconds}
        )
    return pd.DataFrame(rows, index=pd.RangeIndex(len(rows), name=FOLD))


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
