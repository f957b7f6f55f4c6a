"""Draw learning curves by number of queries, which show if more judged queries would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import check_number, shown
from rankeval.collection.convention import Convention, rules_of_call
from rankeval.errors import InvalidInput
from rankeval.model_selection.checks import check_measures
from rankeval.model_selection.fitting import FoldScoring, Task, fold_table, run_folds
from rankeval.model_selection.query_split import Rows
from rankeval.model_selection.ranker import as_ranker
from rankeval.model_selection.rows import numbered
from rankeval.render.progress import Progress
from rankeval.significance.columns import FOLD
from rankeval.significance.declarations import seed_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from rankeval.measures import Measure


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """The scores of a ranker by the number of its training queries.

    Attributes
    ----------
    table : DataFrame of shape (n_sizes * n_folds, n_measures + 3)
        Index: the number of training queries and the fold. Columns: ``n_queries`` held out, each measure's aggregate,
        ``fit_seconds``, ``score_seconds``.
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
        if label not in self.labels:
            from rankeval._registry import unknown

            raise unknown("measure of the learning curve", label, self.labels)
        values = self.table[label].groupby(level="n_train_queries").agg(["mean", "min", "max"])
        return curve(values, xlabel="queries trained on", ylabel=label)

    def __repr__(self) -> str:
        sizes = self.table.index.get_level_values("n_train_queries").unique().tolist()
        return f"LearningCurve({', '.join(self.labels)} at {', '.join(map(str, sizes))} training queries)"

    def _repr_html_(self) -> str:
        return str(self.mean().to_html())


def learning_curve(
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
    sizes: Sequence[float] = (0.1, 0.325, 0.55, 0.775, 1.0),
    convention: str | Convention = "rankeval",
    ties: str | None = None,
    missing: str | None = None,
    no_relevant: str | None = None,
    judgments: str | None = None,
    n_jobs: int | None = None,
    rng: int = 0,
    progress: Progress | bool | None = None,
) -> LearningCurve:
    """Cross-validate a ranker on growing numbers of training queries.

    A smaller training part is a subset of every larger one, and all are scored on the same held-out queries.

    Parameters
    ----------
    estimator, X, y, qid, group, docid, groups, sample_weight, eval_set, eval_qid, measures, cv, convention
        As in `cross_validate`, for one estimator.
    n_jobs, progress
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
    LearningCurve(nDCG@10 at 5, 12, 24 training queries)
    """
    import pandas as pd

    rules = rules_of_call(convention, ties=ties, missing=missing, no_relevant=no_relevant, judgments=judgments)
    asked, ranker = check_measures(measures, rules), as_ranker(estimator)
    rows = {"qid": qid, "group": group, "docid": docid, "groups": groups, "sample_weight": sample_weight}
    task = Task.of([ranker], X, y, **rows, eval_set=eval_set, eval_qid=eval_qid, who="learning_curve")
    codes = numbered(task.data.qid)
    folds = task.folds(cv)
    generator = np.random.default_rng(seed_of(rng))
    drawn = [generator.permutation(np.unique(codes[train])) for train, _ in folds]
    counts = _counts(sizes, min(map(len, drawn)))
    jobs = [
        (ranker, _rows_of(queries[:count], train, codes), test)
        for count in counts
        for queries, (train, test) in zip(drawn, folds, strict=True)
    ]
    scoring = FoldScoring.of(task, asked, rules)
    done = run_folds(task, jobs, n_jobs=n_jobs, progress=progress)
    table = fold_table(scoring, [test for _, _, test in jobs], done)
    index = pd.MultiIndex.from_product([counts, range(len(folds))], names=["n_train_queries", FOLD])
    return LearningCurve(table.set_axis(index), tuple(name for name, _ in asked), rng)


def _counts(sizes: Any, largest: int) -> list[int]:
    """Return the distinct numbers of queries, ascending."""
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise InvalidInput(f"sizes is {shown(sizes)}; give shares of the training part or numbers of queries")
    counts = set()
    for size in sizes:
        check_number("each of sizes", size)
        share = isinstance(size, (float, np.floating))
        count = int(size * largest + 1e-9) if share else int(size)
        if (share and not 0 < size <= 1) or not 1 <= count <= largest:
            raise InvalidInput(
                f"size {size} is out of range: give shares above 0 and up to 1.0, or numbers of queries from 1 to "
                f"{largest}, those of the smallest training part"
            )
        counts.add(count)
    if not counts:
        raise InvalidInput("sizes is empty: give shares of the training part or numbers of queries")
    return sorted(counts)


def _rows_of(queries: NDArray[np.int64], train: Rows, codes: NDArray[np.int64]) -> Rows:
    return train[np.isin(codes[train], queries)]
