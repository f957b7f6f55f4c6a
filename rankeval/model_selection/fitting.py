"""Fitting the folds of a cross-validation, in parallel, and timing them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from rankeval._checks import check_jobs, refuse
from rankeval.collection.convention import Convention, get_convention
from rankeval.collection.data import RankingData, shares_of_empty
from rankeval.contamination.fingerprint import fingerprint
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import RankevalError
from rankeval.evaluation import Evaluation, Given, query_weights, score
from rankeval.evaluation.front_door import columns_by_name
from rankeval.evaluation.result import aggregates
from rankeval.evaluation.scoring import score_part
from rankeval.join.flat import offsets_of
from rankeval.join.joined import Joined
from rankeval.measures import Measure
from rankeval.model_selection import boosters
from rankeval.model_selection.edges import EdgeGains, edge_gains
from rankeval.model_selection.holdout import as_ranking_data, validation_part
from rankeval.model_selection.inside_searches import Watched
from rankeval.model_selection.query_ids import read_columns
from rankeval.model_selection.query_split import Rows
from rankeval.model_selection.ranker import (
    QueryRanker,
    refuse_unusable,
    search_inside,
    stops_early,
    what_was_chosen,
)
from rankeval.model_selection.rows import query_weight_of_rows, row_columns
from rankeval.model_selection.splitters import Folds, query_folds
from rankeval.render.progress import Bar, Progress
from rankeval.significance.columns import FOLD

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Task:
    """Rows to be split into folds, and perhaps the group and the weights of each row."""

    data: RankingData  # All rows
    # (n_rows,): What is given for each row, by its name in `QueryRanker.fit`: ``groups``, which
    # no split cuts, ``sample_weight``, ``query_weight`` (that of the row's query) and ``position``.
    beside: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    # A validation part on which every fit that can stops early
    validation: RankingData | None = None

    @classmethod
    def of(
        cls,
        rankers: Sequence[QueryRanker],
        arguments: Mapping[str, Any],
        *,
        who: str,
        action: str = "",
    ) -> Task:
        """Check the rows among the arguments of `cross_validate`, and ask the guard, before anything is fitted."""
        X, y, qid = arguments["X"], arguments["y"], arguments["qid"]
        columns = {name: arguments[name] for name in ("groups", "sample_weight", "position")}
        ids = {name: arguments[name] for name in ("qid", "group", "docid")}
        data = as_ranking_data(X, y, who=who, **ids, **columns)
        check, action = ContaminationCheck.current(), action or who
        check.refuse(data.X, data.y, data.qid, docid=data.docid, action=action)
        part = validation_part(arguments["eval_set"], arguments["eval_qid"])
        if part is not None:
            useless = "eval_set has rows to stop training on, and no ranker stops: give early_stopping_rounds too"
            refuse((not any(stops_early(ranker) for ranker in rankers), useless))
            check.refuse(
                part.X, part.y, part.qid, docid=part.docid, action=f"{action} with this eval_set"
            )
        beside = row_columns(data.qid, **columns)
        means = query_weight_of_rows(arguments["query_weight"], data.qid, X=X, y=y, qid=qid)
        return cls(data, beside if means is None else {**beside, "query_weight": means}, part)

    def refuse_unusable(self, ranker: QueryRanker) -> None:
        """Raise if the booster of a ranker refuses one of these rows, of whatever fold."""
        refuse_unusable(ranker, self.data.X, self.data.y, self.data.qid)
        if self.validation is not None and stops_early(ranker):
            part = self.validation
            refuse_unusable(ranker, part.X, part.y, part.qid, where="eval_set")

    def folds(self, cv: Any) -> Folds:
        """Return the rows of each split; refuse a validation part that has queries of them."""
        folds = query_folds(cv, self.data, self.beside.get("groups"))
        if self.validation is not None:
            part = self.validation
            rows = np.concatenate([side for fold in folds for side in fold])
            used = self.data.take(np.unique(rows))
            known = fingerprint(used.X, used.y, used.qid)
            watched = Watched.of(part.X, part.y, part.qid)
            watched.refuse_in(known, "the data to cross-validate on")
        return folds

    def columns(self) -> dict[str, Any]:
        """Return what fits and predictions need, each column by itself, for `of_columns` in a worker.

        A backend of joblib recognises an array that it has sent before only if it is an argument.
        Dask would send a Task, with all rows inside, for each fold.
        """
        columns = {name: getattr(self.data, name) for name in ("X", "y", "qid")}
        if self.validation is not None:
            columns |= {f"eval_{name}": getattr(self.validation, name) for name in columns}
        return {**columns, **self.beside}

    @classmethod
    def of_columns(cls, X: Any, y: NDArray[Any], qid: NDArray[Any], **beside: Any) -> Task:
        """Put the columns of a task together; they were checked before they were sent."""
        names = ("eval_X", "eval_y", "eval_qid")
        part = RankingData(*map(beside.pop, names)) if "eval_X" in beside else None
        return cls(RankingData(X, y, qid), beside, part)

    def fit(self, ranker: QueryRanker, rows: Rows) -> QueryRanker:
        """Fit a copy of a ranker to these rows."""
        part = self.data.take(rows)
        arguments: dict[str, Any] = {name: column[rows] for name, column in self.beside.items()}
        if self.validation is not None and stops_early(ranker):
            arguments["eval_set"] = self.validation
        copy = boosters.cloned(ranker)
        try:
            fitted: QueryRanker = copy.fit(part.X, part.y, qid=part.qid, **arguments)
        except RankevalError:
            raise
        except ValueError as error:
            if empty := shares_of_empty(part):
                error.add_note(f"X has empty cells ({'; '.join(empty)}): impute or drop them")
            raise
        return fitted


@dataclass(frozen=True, eq=False)
class FoldScoring:
    """The measures by which folds are scored, and all rows, grouped by query once."""

    joined: Joined  # All rows with their labels; scores are put in fold by fold
    labelled: Sequence[tuple[str, Measure]]  # The measures by name
    weight: NDArray[np.float64] | None = None  # (n_rows,): The weight of each row's query
    qid: NDArray[Any] | None = None  # (n_rows,): The query of each row

    @classmethod
    def of(
        cls,
        task: Task,
        labelled: Sequence[tuple[str, Measure]],
        convention: str | Convention,
        columns: Any = None,
    ) -> FoldScoring:
        """Group the rows of a task, with the columns of `cross_validate` that the measures read."""
        data = task.data
        read = read_columns(
            data.X, data.y, (measure for _, measure in labelled), columns_by_name(columns)
        )
        given = Given(
            data.y,
            np.zeros(len(data)),
            data.qid,
            data.docid,
            read=read,
            arguments=("y", "estimator"),
        )
        rules = get_convention(convention)
        joined = given.join(rules)
        if rules.no_relevant == "skip" and len(labelled) > 1:
            score_part(
                joined, labelled
            )  # refuses measures that leave out different queries before anything is trained
        return cls(joined, labelled, task.beside.get("query_weight"), data.qid)

    def evaluate(
        self, rows: Rows, predicted: NDArray[np.float64], name: str | None = None
    ) -> Evaluation:
        """Evaluate the scores of these rows, which are all rows of some queries."""
        whole = self.joined
        values, inside = np.full(len(whole.score), np.nan), np.zeros(len(whole.score), dtype=bool)
        values[rows], inside[rows] = predicted, True
        order = np.arange(len(inside)) if whole.order is None else whole.order
        sizes, held_out = np.diff(whole.offsets), inside[order[whole.offsets[:-1]]]
        order = order[np.repeat(held_out, sizes)]
        all_judged = whole.judged is None or whole.judged[order].all()
        joined = replace(
            whole,
            queries=whole.queries[held_out],
            offsets=offsets_of(sizes[held_out]),
            order=order,
            score=values,
            judged=None if all_judged else whole.judged,
        )
        weights = query_weights(self.weight, joined)
        return score(joined, self.labelled, weights=weights, name=name, rows=self.qid)


@dataclass(frozen=True, eq=False)
class FittedFold:
    """The result of one fold: a score per held-out row, seconds, the choice of a search, perhaps the estimator."""

    score: NDArray[np.float64]
    fit_seconds: float
    score_seconds: float
    estimator: Any
    best_params: dict[str, Any] | None
    edges: EdgeGains  # Of a search


@dataclass(frozen=True, eq=False)
class FitInputs:
    """What a cross-validation was made of, for the checks of its fit; never pickled or saved."""

    task: Task
    folds: Folds
    scoring: FoldScoring
    # The fitted estimator of each fold; None where another process fitted it and did not send it
    fitted: tuple[Any, ...]
    searches: tuple[EdgeGains, ...]  # Of each search; empty mappings if there is none

    def trained(self) -> NDArray[np.float64]:
        """Return a score of each row by a model that was fitted to it, of shape (n_rows,); nan if there is none.

        The model of a fold scores the rows that the fold before held out, so each row is scored once.
        """
        scores = np.full(len(self.task.data), np.nan)
        held_out_before = [self.folds[-1][1], *(test for _, test in self.folds)]
        for (train, _), before, fitted in zip(
            self.folds, held_out_before, self.fitted, strict=False
        ):
            rows = np.intersect1d(train, before)
            if len(rows) and fitted is not None:
                held_out = self.task.data.take(rows)
                scores[rows] = fitted.predict(held_out.X, qid=held_out.qid)
        return scores


def run_folds(
    task: Task,
    jobs: Sequence[tuple[QueryRanker, Rows, Rows]],
    *,
    n_jobs: int | None,
    progress: Progress | bool | None,
    keep: bool = False,
    keep_here: bool = False,
) -> list[FittedFold]:
    """Fit and predict in parallel; results come in the order of jobs.

    Fitted estimators are kept wherever they were fitted, or only those of this process.
    """
    if n_jobs is not None:
        check_jobs(n_jobs)  # joblib waits for ever for an array of one number
        n_jobs = min(int(n_jobs), len(jobs))  # and starts all processes at once
    # scikit-learn's Parallel sends its configuration along, such as the output of transformers.
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # of a backend that returns all results at once, such as "multiprocessing"
        parallel = Parallel(n_jobs=n_jobs)
    columns, done = task.columns(), []
    home = os.getpid() if keep_here else None
    with Bar(progress, len(jobs), "cross-validation") as bar:
        for fold in parallel(delayed(_fit_fold)(*job, keep, home, **columns) for job in jobs):
            done.append(fold)
            bar.show(len(done))
    return done


def _fit_fold(
    ranker: QueryRanker, train: Rows, test: Rows, keep: bool, home: int | None, **columns: Any
) -> FittedFold:
    task = Task.of_columns(**columns)
    started = time.perf_counter()
    fitted = task.fit(ranker, train)
    between = time.perf_counter()
    held_out = task.data.take(test)
    score = fitted.predict(held_out.X, qid=held_out.qid)
    seconds = between - started, time.perf_counter() - between
    edges = edge_gains(search_inside(fitted))
    kept = fitted if keep or home == os.getpid() else None
    return FittedFold(score, *seconds, kept, what_was_chosen(fitted), edges)


def fold_table(scoring: FoldScoring, tests: Sequence[Rows], done: list[FittedFold]) -> pd.DataFrame:
    """Return a row per fold: its queries, measures and seconds."""
    import pandas as pd

    table = []
    for test, fold in zip(tests, done, strict=True):
        started = time.perf_counter()
        evaluation = scoring.evaluate(test, fold.score)
        row = {
            "n_queries": evaluation.n_queries,
            **aggregates(evaluation),
            "fit_seconds": fold.fit_seconds,
        }
        table.append(row | {"score_seconds": fold.score_seconds + time.perf_counter() - started})
    return pd.DataFrame(table, index=pd.RangeIndex(len(table), name=FOLD))
