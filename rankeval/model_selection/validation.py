"""Cross-validation that keeps every query's out-of-fold score, with metadata routing on or off.

Learning curves by number of training queries show if more judged queries would help. They are
fitted by the same folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from rankeval._arguments import explained
from rankeval._checks import check_number, refuse, shown
from rankeval._display import Displayed, View
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.collection.convention import Convention
from rankeval.model_selection.checks import check_measures
from rankeval.model_selection.fitting import (
    FitInputs,
    FittedFold,
    FoldScoring,
    Task,
    fold_table,
    run_folds,
)
from rankeval.model_selection.parameters import SHOWN, shown_choices
from rankeval.model_selection.query_ids import by_id
from rankeval.model_selection.ranker import as_ranker
from rankeval.model_selection.results import CrossValidation, CrossValidations
from rankeval.model_selection.seeds import over_seeds, seeded, seeds_of
from rankeval.model_selection.shelved import Split
from rankeval.model_selection.splitters import Folds
from rankeval.render.progress import Progress
from rankeval.render.tables import Table
from rankeval.significance.columns import FOLD
from rankeval.significance.declarations import seed_of
from rankeval.tracking import observed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from rankeval.measures import Measure


class _Options(TypedDict, total=False):
    """The options of `cross_validate`, for type checkers."""

    qid: Any
    group: Any
    docid: Any
    columns: Any
    groups: Any
    sample_weight: Any
    query_weight: Any
    position: Any
    eval_set: Any
    eval_qid: Any
    measures: str | Measure | Sequence[str | Measure]
    cv: Any
    convention: str | Convention
    n_jobs: int | None
    name: str | None
    progress: Progress | bool | None
    return_estimators: bool
    seeds: int | Sequence[int] | None


@overload
def cross_validate(
    estimator: Mapping[str, Any], X: Any, y: Any = None, **options: Unpack[_Options]
) -> CrossValidations: ...


@overload
def cross_validate(
    estimator: Any, X: Any, y: Any = None, **options: Unpack[_Options]
) -> CrossValidation: ...


@explained
@observed
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group: Any = None,
    docid: Any = None,
    columns: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    position: Any = None,
    eval_set: Any = None,
    eval_qid: Any = None,
    measures: str | Measure | Sequence[str | Measure] = ("nDCG@10", "AP", "RR"),
    cv: Any = 5,
    convention: str | Convention = "rankeval",
    n_jobs: int | None = None,
    name: str | None = None,
    progress: Progress | bool | None = None,
    return_estimators: bool = False,
    seeds: int | Sequence[int] | None = None,
) -> CrossValidation | CrossValidations:
    """Cross-validate rankers over queries and keep every query's out-of-fold score.

    No splitter cuts a query, nor do the folds of an estimator that is a search, a stack or a
    LassoCV itself. Such an estimator inside another one keeps queries whole if it is wrapped in a
    QueryRanker. Metadata routing may be on or off.

    Parameters
    ----------
    estimator : object
        A QueryRanker or any estimator that it takes. With a search, such as GridSearchCV over a
        QueryRanker, the cross-validation is nested. A mapping of names to estimators is
        cross-validated on the same folds.
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
    columns : mapping of str to array-like of shape (n_rows,), or to str, optional
        Columns of the rows that measures read, such as ``{"price": price}`` for
        ``"Revenue@5(column='price')"``, or names of columns of X. By default the columns of X with
        the names that the measures give.
    groups : array-like of shape (n_rows,), optional
        A unit coarser than the query, such as its author. Groups are kept whole in these folds, in
        the folds of a search, and when queries are held out for early stopping.
    sample_weight : array-like of shape (n_rows,), optional
        The weight of each row in fitting, as in `QueryRanker`'s ``fit``.
    query_weight : mapping or Series by query id, or array-like of shape (n_rows,), optional
        The weight of each query in the aggregate of every measure, and in the means by which a
        search chooses.
    position : array-like of int of shape (n_rows,), optional
        The rank at which each row was shown, as in `QueryRanker`'s ``fit``.
    eval_set : tuple of (Xv, yv), list of one such pair, or RankingData, optional
        A validation part beside the data, the same for every fit. Rankers that stop early stop on
        it; the others do not use it.
    eval_qid : array-like of shape (n_validation_rows,), optional
        The query of each of its rows, as in `QueryRanker`'s ``fit``.
    measures : str, Measure, or list of them
        The measures to compute from the one prediction of each fold.
    cv : int, splitter or iterable of (train, test), default=5
        Number of folds of `QueryKFold`; or a splitter, which is applied to queries; or the row
        numbers of each split.
    convention : str or Convention, default="rankeval"
        The rules by which rankings are scored: the name of a preset, or a `Convention`, such as
        ``rk.Convention.with_rules(ties="docid")``.
    n_jobs : int, optional
        Number of folds fitted at once, as for joblib. An enclosing ``joblib.parallel_config``
        chooses the backend, such as a cluster of Dask.
    name : str, optional
        Name of the system. A mapping has names already.
    progress : callable or bool, optional
        Called as ``progress(n_done, n_fits)`` after each fold of each estimator; True draws a bar.
    return_estimators : bool, default=False
        Keep the fitted estimators.
    seeds : int or sequence of int, optional
        Fit every fold once with each of these seeds; 5 means the seeds 0 to 4. All parameters
        of the estimator and of those in it whose names end in random_state, random_seed or seed
        get the seed. Folds do not change. ``.evaluation`` has the mean over seeds of each query's
        score, ``.seeds`` the aggregates of each seed, and `rankeval.compare` says whether a
        difference is larger than seeds alone would cause.

    Returns
    -------
    CrossValidation or CrossValidations
        With ``.evaluation``, ``.folds``, ``.predictions``, ``.compare``; for a mapping, a mapping
        of these. With seeds also ``.seeds``.

    Raises
    ------
    QueryIdError
        If the query of each row is not known.
    InvalidInput
        If a split has rows of one query on both sides, there is no split, or a measure cannot be
        computed from rows; or if seeds are given for an estimator without a parameter for them, or
        there are fewer than two.
    UnknownName
        If a measure, the convention or a rule does not exist.
    ValueError
        If scikit-learn's splitter refuses the number of queries.
    SharedQueriesError
        If ``eval_set`` has queries that a fold trains on or holds out, by their ids or by their
        rows and labels.
    GuardRefusal
        If the data is registered test content. Nothing is fitted then.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> cross_validate(Ridge(), [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2], cv=2, measures="AP")
    2 folds; over all 2 queries out of fold
    <BLANKLINE>
    measure    value
    ────────────────
    AP        1.0000
    <BLANKLINE>
    By fold...
    """
    arguments = locals()  # `Task.of` reads those that give rows by their names
    labelled = check_measures(measures, convention)
    named = _named(estimator, name)
    rankers = [as_ranker(candidate) for candidate in named.values()]
    numbers = seeds_of(seeds)
    variants = [seeded(ranker, seed) for ranker in rankers for seed in numbers]
    task = Task.of(rankers, arguments, who="cross_validate")
    for ranker in rankers:
        task.refuse_unusable(ranker)
    folds = task.folds(cv)
    scoring = FoldScoring.of(task, labelled, convention, columns)
    jobs = [(variant, train, test) for variant in variants for train, test in folds]
    options: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
    done = run_folds(task, jobs, keep=return_estimators, keep_here=True, **options)
    splits = tuple(Split.of(task.data.qid[train], task.data.qid[test]) for train, test in folds)
    results = {}
    for system, ranker in zip(named, rankers, strict=True):
        first = done[: len(folds)]  # of several seeds, those of the first
        fitted, searches = zip(*((fold.estimator, fold.edges) for fold in first), strict=True)
        by_seed = {}
        for seed in numbers:
            own, done = done[: len(folds)], done[len(folds) :]
            by_seed[seed] = _collect(scoring, folds, own, system)
        result = by_seed.get(None) or over_seeds(by_seed)
        if (chosen := result.best_params) is not None:
            chosen.attrs[SHOWN] = shown_choices(ranker, chosen)
        inputs = FitInputs(task, folds, scoring, fitted, searches)
        estimators = result.estimators if return_estimators else None
        result = replace(result, splits=splits, ranker=ranker, inputs=inputs)
        results[system] = replace(result, estimators=estimators)
    if isinstance(estimator, Mapping):
        return CrossValidations({str(system): result for system, result in results.items()})
    return results[name]


def _named(estimator: Any, name: str | None) -> dict[str | None, Any]:
    if not isinstance(estimator, Mapping):
        return {name: estimator}
    refuse(
        (
            name is not None,
            f"name is {name!r}, but the estimators are given as a mapping: its keys are their names",
        ),
        (not estimator, "the mapping of estimators is empty: give names and estimators"),
    )
    return {str(key): candidate for key, candidate in estimator.items()}


def _collect(
    scoring: FoldScoring, folds: Folds, done: list[FittedFold], name: str | None
) -> CrossValidation:
    import pandas as pd

    n_rows = len(scoring.joined.score)
    predictions, held_out = np.full(n_rows, np.nan), np.zeros(n_rows, dtype=bool)
    for (_, test), fold in reversed(
        list(zip(folds, done, strict=True))
    ):  # the first repeat is written last and wins
        predictions[test], held_out[test] = fold.score, True
    evaluation = scoring.evaluate(np.flatnonzero(held_out), predictions[held_out], name)
    evaluation = replace(evaluation, facts=replace(evaluation.facts, n_folds=len(folds)))
    table = fold_table(scoring, [test for _, test in folds], done)
    estimators = tuple(fold.estimator for fold in done if fold.estimator is not None) or None
    chosen = [fold.best_params for fold in done]
    by_fold = None if None in chosen else pd.DataFrame(chosen, index=table.index)
    return CrossValidation(evaluation, table, predictions, estimators, best_params=by_fold)


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(Displayed):
    """The scores of a ranker by the number of its training queries.

    Attributes
    ----------
    table : DataFrame of shape (n_sizes * n_folds, n_measures + 3)
        Index: the number of training queries and the fold. Columns: ``n_queries`` held out, each
        measure's aggregate, ``fit_seconds``, ``score_seconds``.
    labels : tuple of str
        The measures.
    rng : int
        The seed that drew the training queries.

    Examples
    --------
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> curve = rk.learning_curve(Ridge(), rk.datasets.make_ranking(30), sizes=[5, 20], measures="AP", cv=3)
    >>> curve.mean().index.tolist()
    [5, 20]
    """

    table: pd.DataFrame
    labels: tuple[str, ...]
    rng: int

    def mean(self) -> pd.DataFrame:
        """Return the mean over folds, one row per number of training queries."""
        return self.table.groupby(level="n_train_queries").mean()

    def plot(self, measure: str | None = None) -> Figure:
        """Plot a measure by the number of training queries: the mean, and the range of the folds.

        Parameters
        ----------
        measure : str, optional
            Its name; by default the first one.

        Raises
        ------
        UnknownName
            If the curve has no such measure.
        """
        from rankeval.render.plots import curve

        label = self.labels[0] if measure is None else str(measure)
        chosen("measure of the learning curve", label, self.labels)
        values = self.table[label].groupby(level="n_train_queries").agg(["mean", "min", "max"])
        return curve(values, xlabel="queries trained on", ylabel=label)

    def _view(self) -> View:
        sentence = f"{', '.join(self.labels)} by the number of training queries, means over folds"
        return View([sentence], [Table(self.mean().reset_index())])


@explained
def learning_curve(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group: Any = None,
    docid: Any = None,
    columns: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    position: Any = None,
    eval_set: Any = None,
    eval_qid: Any = None,
    measures: str | Measure | Sequence[str | Measure] = ("nDCG@10", "AP", "RR"),
    cv: Any = 5,
    sizes: Sequence[float] = (0.1, 0.325, 0.55, 0.775, 1.0),
    convention: str | Convention = "rankeval",
    n_jobs: int | None = None,
    rng: int = 0,
    progress: Progress | bool | None = None,
) -> LearningCurve:
    """Cross-validate a ranker on growing numbers of training queries.

    A smaller training part is a subset of every larger one, and all are scored on the same held-out
    queries.

    Parameters
    ----------
    estimator, X, y, qid, group, docid, columns, groups, sample_weight, query_weight, position, eval_set, eval_qid
        As in `cross_validate`, for one estimator.
    measures, cv, convention, n_jobs, progress
        As in `cross_validate`.
    sizes : sequence of float or int
        Shares of the smallest training part, or numbers of queries.
    rng : int, default=0
        Draws the training queries.

    Returns
    -------
    LearningCurve
        With ``.table``, ``.mean()``, ``.plot()``.

    Raises
    ------
    QueryIdError
        If the query of each row is not known.
    InvalidInput
        If a size is out of range, or `cross_validate` would refuse an argument.
    UnknownName
        If a measure, the convention or a rule does not exist.
    GuardRefusal
        If the data is registered test content. Nothing is fitted then.

    Examples
    --------
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> learning_curve(Ridge(), rk.datasets.make_ranking(30), sizes=[5, 0.5, 1.0], measures="nDCG@10")
    nDCG@10 by the number of training queries, means over folds
    ...
    """
    arguments = locals()
    import pandas as pd

    labelled, ranker = check_measures(measures, convention), as_ranker(estimator)
    task = Task.of([ranker], arguments, who="learning_curve")
    task.refuse_unusable(ranker)
    codes, _ = by_id(task.data.qid)
    folds = task.folds(cv)
    seed = seed_of(rng)
    generator = np.random.default_rng(seed)
    drawn = [generator.permutation(np.unique(codes[train])) for train, _ in folds]
    counts = _counts(sizes, min(map(len, drawn)))
    jobs = [
        (ranker, train[np.isin(codes[train], queries[:count])], test)
        for count in counts
        for queries, (train, test) in zip(drawn, folds, strict=True)
    ]
    scoring = FoldScoring.of(task, labelled, convention, columns)
    done = run_folds(task, jobs, n_jobs=n_jobs, progress=progress)
    table = fold_table(scoring, [test for _, _, test in jobs], done)
    index = pd.MultiIndex.from_product([counts, range(len(folds))], names=["n_train_queries", FOLD])
    return LearningCurve(table.set_axis(index), tuple(name for name, _ in labelled), seed)


def _counts(sizes: Any, largest: int) -> list[int]:
    way = "give shares of the training part or numbers of queries"
    refuse(
        (
            isinstance(sizes, str) or not isinstance(sizes, Iterable),
            f"sizes is {shown(sizes)}; {way}",
        )
    )
    counts = set()
    for size in sizes:
        check_number("each of sizes", size)
        share = isinstance(size, (float, np.floating))
        count = int(size * largest + 1e-9) if share else int(size)
        ends = f"shares above 0 and up to 1.0, or numbers from 1 to {largest}, those of the smallest training part"
        out = (share and not 0 < size <= 1) or not 1 <= count <= largest
        refuse((bool(out), f"size {size} is out of range: give {ends}"))
        counts.add(count)
    refuse((not counts, f"sizes is empty: {way}"))
    return sorted(counts)
