"""Cross-validation that keeps every query's out-of-fold score, with metadata routing on or off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from rankeval._checks import shown
from rankeval.collection.convention import Convention, rules_of_call
from rankeval.collection.data import RankingData
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import InvalidInput
from rankeval.model_selection.checks import check_measures
from rankeval.model_selection.fitting import BY_ROW, FittedFold, FoldScoring, Progress, Task, fold_table, run_folds
from rankeval.model_selection.holdout import as_ranking_data
from rankeval.model_selection.query_ids import encode, partly_in
from rankeval.model_selection.query_split import QuerySplit, Rows
from rankeval.model_selection.ranker import QueryRanker, as_ranker, stops_early
from rankeval.model_selection.results import CrossValidation, CrossValidations, Split
from rankeval.model_selection.splitters import QueryKFold
from rankeval.model_selection.validation_part import validation_part
from rankeval.significance.columns import FOLD

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.measures import Measure

Folds = list[tuple[Rows, Rows]]


@overload
def cross_validate(
    estimator: Mapping[str, Any],
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group: Any = None,
    docid: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    eval_set: Any = None,
    eval_qid: Any = None,
    measures: str | Measure | Sequence[str | Measure] = ...,
    cv: Any = 5,
    convention: str | Convention = "rankeval",
    ties: str | None = None,
    missing: str | None = None,
    no_relevant: str | None = None,
    judgments: str | None = None,
    n_jobs: int | None = None,
    name: str | None = None,
    progress: Progress | bool | None = None,
    return_estimators: bool = False,
) -> CrossValidations: ...


@overload
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group: Any = None,
    docid: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    eval_set: Any = None,
    eval_qid: Any = None,
    measures: str | Measure | Sequence[str | Measure] = ...,
    cv: Any = 5,
    convention: str | Convention = "rankeval",
    ties: str | None = None,
    missing: str | None = None,
    no_relevant: str | None = None,
    judgments: str | None = None,
    n_jobs: int | None = None,
    name: str | None = None,
    progress: Progress | bool | None = None,
    return_estimators: bool = False,
) -> CrossValidation: ...


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group: Any = None,
    docid: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    eval_set: Any = None,
    eval_qid: Any = None,
    measures: str | Measure | Sequence[str | Measure] = ("nDCG@10", "AP", "RR"),
    cv: Any = 5,
    convention: str | Convention = "rankeval",
    ties: str | None = None,
    missing: str | None = None,
    no_relevant: str | None = None,
    judgments: str | None = None,
    n_jobs: int | None = None,
    name: str | None = None,
    progress: Progress | bool | None = None,
    return_estimators: bool = False,
) -> CrossValidation | CrossValidations:
    """Cross-validate rankers over queries and keep every query's out-of-fold score.

    No splitter cuts a query, nor do the folds inside a search, a stack or a LassoCV. Metadata routing may be on or off.

    Parameters
    ----------
    estimator : object
        A QueryRanker or any estimator that it takes. With a search, such as GridSearchCV over a QueryRanker, the
        cross-validation is nested. A mapping of names to estimators is cross-validated on the same folds.
    X : RankingData, array, sparse matrix or frame of shape (n_rows, n_features)
        The data, or its features; rows in any order.
    y : array-like of shape (n_rows,), optional
        The relevance of each row; that of the RankingData if X is one.
    qid : array-like of shape (n_rows,), optional
        The query of each row. It may also be a pandas index level or a column of X named "qid".
    group : array-like of int of shape (n_queries,), optional
        Sizes of consecutive queries, instead of ``qid``.
    docid : array-like of shape (n_rows,), optional
        The document of each row; only ``ties="docid"`` reads it.
    groups : array-like of shape (n_rows,), optional
        A unit coarser than the query, such as its author. Groups are kept whole in these folds, in the folds of a
        search, and when queries are held out for early stopping.
    sample_weight : array-like of shape (n_rows,), optional
        The weight of each row's query: in the aggregate of every measure, and in fitting if the estimator takes
        weights. Weights that differ within a query are used by row in fitting only; ``.notes`` of the result says so.
    eval_set : tuple of (Xv, yv), list of one such pair, or RankingData, optional
        A validation part beside the data, the same for every fit. Rankers that stop early stop on it; the others do not
        use it.
    eval_qid : array-like of shape (n_validation_rows,), optional
        The query of each of its rows, as in `QueryRanker`'s ``fit``.
    measures : str, Measure, or list of them
        The measures to compute from the one prediction of each fold.
    cv : int, splitter or iterable of (train, test), default=5
        Number of folds of `QueryKFold`; or a splitter, which is applied to queries; or the row numbers of each split.
    convention : str or Convention, default="rankeval"
        The rules by which rankings are scored.
    ties, missing, no_relevant, judgments : str, optional
        Single rules that replace those of the convention, as in `evaluate`.
    n_jobs : int, optional
        Number of folds fitted at once, as for joblib.
    name : str, optional
        Name of the system. A mapping has names already.
    progress : callable or bool, optional
        Called as ``progress(n_done, n_fits)`` after each fold of each estimator; True draws a bar.
    return_estimators : bool, default=False
        Keep the fitted estimators.

    Returns
    -------
    CrossValidation or CrossValidations
        With ``.evaluation``, ``.folds``, ``.predictions``, ``.compare``; for a mapping, a mapping of these.

    Raises
    ------
    QueryIdError
        If the query of each row is not known.
    InvalidInput
        If a split has rows of one query on both sides, there is no split, or a measure cannot be computed from rows.
    UnknownName
        If a measure, the convention or a rule does not exist.
    ValueError
        If scikit-learn's splitter refuses the number of queries.
    GuardRefusal
        If the data is registered test content. Nothing is fitted then.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> cross_validate(Ridge(), [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2], cv=2, measures="AP")
    CrossValidation(2 folds, 2 queries out of fold: AP=1.0000)
    """
    beside = {"groups": groups, "sample_weight": sample_weight}
    data = as_ranking_data(X, y, who="cross_validate", qid=qid, group=group, docid=docid, **beside)
    single = {"ties": ties, "missing": missing, "no_relevant": no_relevant, "judgments": judgments}
    rules = rules_of_call(convention, single)
    asked = check_measures(measures, rules)
    named = _named(estimator, name)
    rankers = [as_ranker(one) for one in named.values()]
    ContaminationCheck.current().refuse(data.X, data.y, data.qid, action="cross_validate")
    task = Task.of(data, groups, sample_weight, fixed_validation(rankers, eval_set, eval_qid, action="cross_validate"))
    folds = query_folds(cv, task)
    scoring = FoldScoring.of(task, asked, rules)
    jobs = [(ranker, train, test) for ranker in rankers for train, test in folds]
    done = run_folds(task, jobs, n_jobs=n_jobs, progress=progress, keep=return_estimators)
    splits = tuple(Split.of(data.qid[train], data.qid[test]) for train, test in folds)
    results = {}
    for place, system in enumerate(named):
        own = done[place * len(folds) : (place + 1) * len(folds)]
        results[system] = _collect(scoring, folds, own, splits, system, keep=return_estimators)
    if task.by_row:
        results = {system: replace(result, notes=(BY_ROW,)) for system, result in results.items()}
    if isinstance(estimator, Mapping):
        return CrossValidations({str(system): result for system, result in results.items()})
    return results[name]


def fixed_validation(
    rankers: Sequence[QueryRanker], eval_set: Any, eval_qid: Any, *, action: str
) -> RankingData | None:
    """Check a validation part for all fits before the first one, and return it.

    Parameters
    ----------
    rankers : sequence of QueryRanker
        The rankers to fit.
    eval_set, eval_qid
        As in `cross_validate`.
    action : str
        The caller, for the guard's message.

    Raises
    ------
    InvalidInput
        If its form or length is wrong, or no ranker stops early.
    QueryIdError
        If the query of each row is not known.
    GuardRefusal
        If it is registered test content.
    """
    part = validation_part(eval_set, eval_qid)
    if part is None:
        return None
    if not any(stops_early(ranker) for ranker in rankers):
        raise InvalidInput("eval_set has rows to stop training on, and no ranker stops: give early_stopping_rounds too")
    ContaminationCheck.current().refuse(part.X, part.y, part.qid, action=f"{action} with this eval_set")
    return part


def _named(estimator: Any, name: str | None) -> dict[str | None, Any]:
    if not isinstance(estimator, Mapping):
        return {name: estimator}
    if name is not None:
        raise InvalidInput(f"name is {name!r}, but the estimators are given as a mapping: its keys are their names")
    if not estimator:
        raise InvalidInput("the mapping of estimators is empty: give names and estimators")
    return {str(key): one for key, one in estimator.items()}


def _collect(
    scoring: FoldScoring,
    folds: Folds,
    done: list[FittedFold],
    splits: tuple[Split, ...],
    name: str | None,
    *,
    keep: bool,
) -> CrossValidation:
    """Put one estimator's folds together."""
    n_rows = len(scoring.joined.score)
    predictions, held_out = np.full(n_rows, np.nan), np.zeros(n_rows, dtype=bool)
    for (_, test), fold in reversed(list(zip(folds, done, strict=True))):  # the first repeat is written last and wins
        predictions[test], held_out[test] = fold.score, True
    evaluation = scoring.evaluate(np.flatnonzero(held_out), predictions[held_out], name)
    table = fold_table(scoring, [test for _, test in folds], done)
    estimators = tuple(fold.estimator for fold in done) if keep else None
    return CrossValidation(evaluation, table, predictions, estimators, splits, _chosen(done))


def _chosen(done: list[FittedFold]) -> pd.DataFrame | None:
    """Return the parameters that searches chose, if the estimator is a search."""
    import pandas as pd

    if any(fold.best_params is None for fold in done):
        return None
    return pd.DataFrame([fold.best_params for fold in done], index=pd.RangeIndex(len(done), name=FOLD))


def query_folds(cv: Any, task: Task) -> Folds:
    """Return the rows of each split, none of which cuts a query.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        As in `cross_validate`.
    task : Task
        The rows to split.

    Raises
    ------
    InvalidInput
        If there is no split, one has an empty side, or given splits cut a query.
    """
    data = task.data
    if cv is None or isinstance(cv, Integral):
        cv = QueryKFold(5 if cv is None else int(cv))
    if isinstance(cv, (str, bytes)) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise InvalidInput(f"cv is {cv!r}; give a number of folds, a splitter, or pairs of training and test rows")
    if hasattr(cv, "split"):
        cv = cv if isinstance(cv, QuerySplit) else QuerySplit(cv)
        folds = list(cv.split(data.X, data.y, task.groups, qid=data.qid))
    elif task.groups is not None:
        raise InvalidInput("groups are split by a splitter, and cv gives the rows of each split: leave one of them out")
    else:
        folds = [tuple(_positions(rows, len(data)) for rows in _pair(split)) for split in cv]
        _refuse_cuts(folds, data)
    if not folds:
        raise InvalidInput("cv has no splits; an iterator that was used up gives none again: pass a list or a splitter")
    for number, sides in enumerate(folds):
        for side, rows in zip(("trains on", "holds out"), sides, strict=True):
            if not len(rows):
                raise InvalidInput(f"split {number} of cv {side} no rows: give both sides at least one query")
    return folds


def _refuse_cuts(folds: Folds, data: RankingData) -> None:
    codes, queries = encode(data.qid)
    for number, (train, test) in enumerate(folds):
        on_both_sides = np.intersect1d(codes[train], codes[test])
        cut = partly_in(codes, test)
        cut[on_both_sides] = True
        if cut.any():
            raise InvalidInput(
                f"split {number} of cv cuts query {queries.tolist()[np.argmax(cut)]!r}: hold out all of its rows, or "
                "none; a splitter given as cv is applied to queries"
            )


def _pair(split: Any) -> Any:
    if not isinstance(split, Sequence) or isinstance(split, (str, bytes)) or len(split) != 2:
        raise InvalidInput(f"cv: each split is a pair of training and test rows, found {shown(split)}")
    return split


def _positions(rows: Any, n_rows: int) -> Rows:
    chosen = np.asarray(rows)
    # NumPy makes floats of an empty list, and floats are no positions.
    return np.flatnonzero(chosen) if chosen.dtype == bool or not len(chosen) else np.arange(n_rows)[chosen]
