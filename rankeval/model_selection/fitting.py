"""Fitting the folds of a cross-validation, in parallel, and timing them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from rankeval.collection.convention import Convention
from rankeval.collection.data import RankingData
from rankeval.contamination.fingerprint import fingerprint
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation, Given, query_weights, score
from rankeval.evaluation.result import aggregates
from rankeval.join.flat import offsets_of
from rankeval.join.joined import Joined
from rankeval.measures import Measure
from rankeval.model_selection import boosters
from rankeval.model_selection.capabilities import stops_early, takes_weight, what_was_chosen
from rankeval.model_selection.folds import Folds, query_folds
from rankeval.model_selection.holdout import as_ranking_data
from rankeval.model_selection.known_queries import Watched
from rankeval.model_selection.query_ids import encode
from rankeval.model_selection.query_split import Rows
from rankeval.model_selection.ranker import QueryRanker
from rankeval.model_selection.rows import differing, row_groups, row_weights
from rankeval.model_selection.validation_part import validation_part
from rankeval.render.progress import Bar, Progress
from rankeval.significance.columns import FOLD

if TYPE_CHECKING:
    import pandas as pd


BY_ROW = "sample_weight differs within queries: it weighted rows in fitting, and the means are not weighted"
"""The note of a cross-validation whose rankers were fitted with weights by row."""


@dataclass(frozen=True, eq=False)
class Task:
    """Rows to be split into folds, and perhaps the group and the weight of each row.

    Attributes
    ----------
    data : RankingData
        All rows.
    groups : ndarray of shape (n_rows,), optional
        Units coarser than queries, which no split cuts.
    weight : ndarray of shape (n_rows,), optional
        Weights of rows, or of their queries.
    validation : RankingData, optional
        A validation part on which every fit that can stops early.
    """

    data: RankingData
    groups: NDArray[Any] | None = None
    weight: NDArray[np.float64] | None = None
    validation: RankingData | None = None

    @classmethod
    def of(
        cls,
        rankers: Sequence[QueryRanker],
        X: Any,
        y: Any,
        *,
        qid: Any,
        group: Any,
        docid: Any,
        groups: Any,
        sample_weight: Any,
        eval_set: Any,
        eval_qid: Any,
        who: str,
        action: str = "",
    ) -> Task:
        """Check all that is given beside the rankers, and ask the guard, before anything is fitted.

        Parameters
        ----------
        rankers : sequence of QueryRanker
            The rankers to fit.
        X, y, qid, group, docid, groups, sample_weight, eval_set, eval_qid
            As in `cross_validate`.
        who : str
            The caller, for messages.
        action : str
            What the caller does, for the guard's message, if it is not the caller's name.

        Raises
        ------
        QueryIdError
            If the query of each row is not known.
        InvalidInput
            If lengths or forms are wrong, groups cut queries, or there is a validation part and no ranker stops early.
        GuardRefusal
            If the rows, or those of the validation part, are registered test content.
        """
        beside = {"groups": groups, "sample_weight": sample_weight}
        data = as_ranking_data(X, y, who=who, qid=qid, group=group, docid=docid, **beside)
        check, action = ContaminationCheck.current(), action or who
        check.refuse(data.X, data.y, data.qid, action=action)
        part = validation_part(eval_set, eval_qid)
        if part is not None:
            if not any(stops_early(ranker) for ranker in rankers):
                raise InvalidInput(
                    "eval_set has rows to stop training on, and no ranker stops: give early_stopping_rounds too"
                )
            check.refuse(part.X, part.y, part.qid, action=f"{action} with this eval_set")
        return cls(data, row_groups(groups, data.qid), row_weights(sample_weight, len(data)), part)

    def folds(self, cv: Any) -> Folds:
        """Return the rows of each split; refuse a validation part that has queries of them."""
        folds = query_folds(cv, self.data, self.groups)
        if self.validation is not None:
            part, used = self.validation, self.data.take(np.unique(np.concatenate([*map(np.concatenate, folds)])))
            watched = Watched.of(part.X, part.y, part.qid)
            watched.refuse_in(fingerprint(used.X, used.y, used.qid), "the data to cross-validate on")
        return folds

    @cached_property
    def by_row(self) -> bool:
        """Whether weights differ within a query, so that they weigh rows in fitting, and queries nowhere."""
        return self.weight is not None and len(differing(self.weight, encode(self.data.qid)[0])) > 0

    def columns(self) -> dict[str, Any]:
        """Return what fits and predictions need, each column by itself, for `of_columns` in a worker.

        A backend of joblib recognises an array that it has sent before only if it is an argument. Dask would send a
        Task, with all rows inside, for each fold.
        """
        columns = {"X": self.data.X, "y": self.data.y, "qid": self.data.qid, "groups": self.groups}
        if self.validation is not None:
            columns |= {f"validation_{name}": getattr(self.validation, name) for name in ("X", "y", "qid")}
        return {**columns, "weight": self.weight}

    @classmethod
    def of_columns(
        cls,
        X: Any,
        y: NDArray[Any],
        qid: NDArray[Any],
        groups: NDArray[Any] | None,
        weight: NDArray[np.float64] | None,
        **validation: Any,
    ) -> Task:
        """Put the columns of a task together; they were checked before they were sent."""
        part = {name.removeprefix("validation_"): column for name, column in validation.items()}
        return cls(RankingData(X, y, qid), groups, weight, RankingData(**part) if part else None)

    def fit(self, ranker: QueryRanker, rows: Rows) -> QueryRanker:
        """Fit a copy of a ranker to these rows, with weights if it takes them."""
        part = self.data.take(rows)
        told: dict[str, Any] = {}
        if self.groups is not None:
            told["groups"] = self.groups[rows]
        if self.weight is not None and takes_weight(ranker):
            told["sample_weight"] = self.weight[rows]
        elif self.by_row:
            raise InvalidInput(
                f"sample_weight differs within a query, so it can only weigh rows in fitting, and {ranker!r} takes no "
                "weights: leave it out"
            )
        if self.validation is not None and stops_early(ranker):
            told["eval_set"] = self.validation
        fitted: QueryRanker = boosters.cloned(ranker).fit(part.X, part.y, qid=part.qid, **told)
        return fitted


@dataclass(frozen=True, eq=False)
class FoldScoring:
    """The measures by which folds are scored, and all rows, grouped by query once.

    Attributes
    ----------
    joined : Joined
        All rows with their labels; scores are put in fold by fold.
    asked : sequence of (str, Measure)
        The measures by name.
    weight : ndarray of shape (n_rows,), optional
        Weights of queries.
    """

    joined: Joined
    asked: Sequence[tuple[str, Measure]]
    weight: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, task: Task, asked: Sequence[tuple[str, Measure]], convention: Convention) -> FoldScoring:
        """Group the rows of a task."""
        data = task.data
        given = Given(data.y, np.zeros(len(data)), data.qid, data.docid)
        return cls(given.join(convention), asked, None if task.by_row else task.weight)

    def evaluate(self, rows: Rows, predicted: NDArray[np.float64], name: str | None = None) -> Evaluation:
        """Evaluate the scores of these rows, which are all rows of some queries."""
        joined = self._only(rows, predicted)
        return score(joined, self.asked, weights=query_weights(self.weight, joined), name=name)

    def _only(self, rows: Rows, predicted: NDArray[np.float64]) -> Joined:
        whole = self.joined
        values, inside = np.full(len(whole.score), np.nan), np.zeros(len(whole.score), dtype=bool)
        values[rows], inside[rows] = predicted, True
        order = np.arange(len(inside)) if whole.order is None else whole.order
        sizes, held_out = np.diff(whole.offsets), inside[order[whole.offsets[:-1]]]
        order = order[np.repeat(held_out, sizes)]
        all_judged = whole.judged is None or whole.judged[order].all()
        return replace(
            whole,
            queries=whole.queries[held_out],
            offsets=offsets_of(sizes[held_out]),
            order=order,
            score=values,
            judged=None if all_judged else whole.judged,
        )


@dataclass(frozen=True, eq=False)
class FittedFold:
    """The result of one fold: a score per held-out row, seconds, the choice of a search, perhaps the estimator."""

    score: NDArray[np.float64]
    fit_seconds: float
    score_seconds: float
    estimator: Any
    best_params: dict[str, Any] | None


def run_folds(
    task: Task,
    jobs: Sequence[tuple[QueryRanker, Rows, Rows]],
    *,
    n_jobs: int | None,
    progress: Progress | bool | None,
    keep: bool = False,
) -> list[FittedFold]:
    """Fit and predict in parallel; results come in the order of jobs.

    Parameters
    ----------
    task : Task
        All rows.
    jobs : sequence of (QueryRanker, ndarray, ndarray)
        For each fit: the ranker, the rows to train on, the rows to predict.
    n_jobs, progress
        As in `cross_validate`.
    keep : bool
        Keep the fitted estimators.
    """
    parallel, columns = _parallel(n_jobs), task.columns()
    done = []
    with Bar(progress, len(jobs), "cross-validation") as bar:
        for fold in parallel(delayed(_fit_fold)(ranker, train, test, keep, **columns) for ranker, train, test in jobs):
            done.append(fold)
            bar.show(len(done))
    return done


def _parallel(n_jobs: int | None) -> Parallel:
    """Return what runs folds; it sends scikit-learn's configuration along, such as the output of transformers."""
    try:
        return Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # of a backend that returns all results at once, such as "multiprocessing"
        return Parallel(n_jobs=n_jobs)


def _fit_fold(ranker: QueryRanker, train: Rows, test: Rows, keep: bool, **columns: Any) -> FittedFold:
    task = Task.of_columns(**columns)
    started = time.perf_counter()
    fitted = task.fit(ranker, train)
    between = time.perf_counter()
    score = fitted.predict(task.data.take(test).X)
    seconds = between - started, time.perf_counter() - between
    return FittedFold(score, *seconds, fitted if keep else None, what_was_chosen(fitted))


def fold_table(scoring: FoldScoring, tests: Sequence[Rows], done: list[FittedFold]) -> pd.DataFrame:
    """Return a row per fold: its queries, measures and seconds.

    Parameters
    ----------
    scoring : FoldScoring
        All rows, and the measures.
    tests : sequence of ndarray
        The held-out rows of each fold.
    done : list of FittedFold
        The fitted folds.
    """
    import pandas as pd

    table = []
    for test, fold in zip(tests, done, strict=True):
        started = time.perf_counter()
        evaluation = scoring.evaluate(test, fold.score)
        table.append(
            {
                "n_queries": evaluation.n_queries,
                **aggregates(evaluation),
                "fit_seconds": fold.fit_seconds,
                "score_seconds": fold.score_seconds + time.perf_counter() - started,
            }
        )
    return pd.DataFrame(table, index=pd.RangeIndex(len(table), name=FOLD))
