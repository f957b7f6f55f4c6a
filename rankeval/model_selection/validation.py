"""Cross-validation that keeps every query's out-of-fold score, with metadata routing on or off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from rankeval.collection.convention import Convention, rules_of_call
from rankeval.errors import InvalidInput
from rankeval.model_selection.checks import check_measures
from rankeval.model_selection.fitting import BY_ROW, FittedFold, FoldScoring, Task, fold_table, run_folds
from rankeval.model_selection.folds import Folds
from rankeval.model_selection.ranker import as_ranker
from rankeval.model_selection.results import CrossValidation, CrossValidations, Split
from rankeval.render.progress import Progress
from rankeval.significance.columns import FOLD
from rankeval.tracking import observed

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.measures import Measure


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


@observed
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

    No splitter cuts a query, nor do the folds of an estimator that is a search, a stack or a LassoCV itself. One that
    stands inside another estimator keeps queries whole if it is wrapped in a QueryRanker. Metadata routing may be on
    or off.

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
        Number of folds fitted at once, as for joblib. An enclosing ``joblib.parallel_config`` chooses the backend, such
        as a cluster of Dask.
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
    SharedQueriesError
        If ``eval_set`` has queries that a fold trains on or holds out, by their ids or by their rows and labels.
    GuardRefusal
        If the data is registered test content. Nothing is fitted then.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> cross_validate(Ridge(), [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2], cv=2, measures="AP")
    CrossValidation(2 folds, 2 queries out of fold: AP=1.0000)
    """
    rules = rules_of_call(convention, ties=ties, missing=missing, no_relevant=no_relevant, judgments=judgments)
    asked = check_measures(measures, rules)
    named = _named(estimator, name)
    rankers = [as_ranker(one) for one in named.values()]
    rows = {"qid": qid, "group": group, "docid": docid, "groups": groups, "sample_weight": sample_weight}
    task = Task.of(rankers, X, y, **rows, eval_set=eval_set, eval_qid=eval_qid, who="cross_validate")
    folds = task.folds(cv)
    scoring = FoldScoring.of(task, asked, rules)
    jobs = [(ranker, train, test) for ranker in rankers for train, test in folds]
    done = run_folds(task, jobs, n_jobs=n_jobs, progress=progress, keep=return_estimators)
    splits = tuple(Split.of(task.data.qid[train], task.data.qid[test]) for train, test in folds)
    results = {}
    for place, system in enumerate(named):
        own = done[place * len(folds) : (place + 1) * len(folds)]
        results[system] = _collect(scoring, folds, own, splits, system, keep=return_estimators)
    if task.by_row:
        results = {system: replace(result, notes=(BY_ROW,)) for system, result in results.items()}
    if isinstance(estimator, Mapping):
        return CrossValidations({str(system): result for system, result in results.items()})
    return results[name]


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
    evaluation = replace(evaluation, facts=replace(evaluation.facts, n_folds=len(folds)))
    table = fold_table(scoring, [test for _, test in folds], done)
    estimators = tuple(fold.estimator for fold in done) if keep else None
    return CrossValidation(evaluation, table, predictions, estimators, splits, _chosen(done))


def _chosen(done: list[FittedFold]) -> pd.DataFrame | None:
    """Return the parameters that searches chose, if the estimator is a search."""
    import pandas as pd

    if any(fold.best_params is None for fold in done):
        return None
    return pd.DataFrame([fold.best_params for fold in done], index=pd.RangeIndex(len(done), name=FOLD))
