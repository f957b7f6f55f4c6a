"""Measures inside the training loops of LightGBM and XGBoost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.evaluation import Given, query_weights, score
from rankeval.evaluation.result import aggregates
from rankeval.measures import Measure
from rankeval.model_selection.checks import check_measures
from rankeval.model_selection.query_ids import from_sizes


@dataclass(frozen=True, repr=False)
class TrainingMetric:
    """Measures for a training loop; see `lightgbm_feval` and `xgboost_metric`."""

    measures: tuple[Measure, ...]
    convention: Convention
    _maker: ClassVar[str]

    def __repr__(self) -> str:
        names = [str(one) for one in self.measures]
        rules = "" if self.convention == get_convention("rankeval") else f", convention={self.convention.name!r}"
        return f"{self._maker}({(names[0] if len(names) == 1 else names)!r}{rules})"

    @property
    def maximize(self) -> bool:
        """Whether higher is better.

        Raises
        ------
        InvalidInput
            If that differs between the measures.
        """
        higher = {one.family.greater_is_better for one in self.measures}
        if len(higher) > 1:
            raise InvalidInput("more is better for some of these measures, less for others: stop by one of them")
        return higher.pop()

    def values(self, y: Any, predicted: Any, sizes: NDArray[np.int64], weight: Any) -> list[tuple[str, float]]:
        """Return (name, value) of each measure, queries weighted by the mean weight of their rows."""
        ids, weights = from_sizes(sizes, len(predicted)), None
        if weight is not None and len(weight):
            weights = np.asarray(weight, dtype=np.float64)
            if len(weights) != len(sizes):  # of rows, not of queries
                weights = np.bincount(ids, weights) / sizes
            weights = weights[ids]
        joined = Given(y, np.asarray(predicted, np.float64), ids).join(self.convention)
        asked = [(str(one), one) for one in self.measures]
        return list(aggregates(score(joined, asked, weights=query_weights(weights, joined))).items())


class LightGBMFeval(TrainingMetric):
    """Called by LightGBM as ``feval(scores, dataset)``, or as scikit-learn's ``eval_metric(y, scores, weight, group)``.

    LightGBM counts the parameters: its scikit-learn classes give all four of them to a function of four.
    """

    _maker = "lightgbm_feval"

    def __call__(
        self, score: Any, dataset: Any, weight: Any = None, group: Any = None
    ) -> list[tuple[str, float, bool]]:
        """Return (name, value, higher is better) of each measure."""
        if hasattr(dataset, "get_group"):
            y, weight, group = dataset.get_label(), dataset.get_weight(), dataset.get_group()
        else:
            y, score = score, dataset
        if group is None:
            raise QueryIdError("this lightgbm.Dataset has no queries: make it with group=, the sizes of the queries")
        values = self.values(y, score, np.asarray(group, dtype=np.int64), weight)
        return [
            (name, value, one.family.greater_is_better)
            for (name, value), one in zip(values, self.measures, strict=True)
        ]


class XGBoostMetric(TrainingMetric):
    """Called by XGBoost as ``custom_metric(scores, matrix)``."""

    _maker = __name__ = "xgboost_metric"
    """XGBoost's scikit-learn classes ask for it before they call."""

    def __call__(self, score: Any, matrix: Any, **_told: Any) -> list[tuple[str, float]]:
        """Return (name, value) of each measure."""
        if not hasattr(matrix, "get_uint_info"):
            raise InvalidInput(
                "xgboost_metric is for xgboost.train and xgboost.cv: XGBRanker tells its eval_metric no queries; use "
                "QueryRanker(XGBRanker(...), early_stopping_rounds=..., eval_measure=...)"
            )
        bounds = np.asarray(matrix.get_uint_info("group_ptr"), dtype=np.int64)
        if len(bounds) < 2:
            raise QueryIdError("this xgboost.DMatrix has no queries: make it with qid= (sorted) or group= (sizes)")
        return self.values(matrix.get_label(), score, np.diff(bounds), matrix.get_weight())


def lightgbm_feval(
    measures: str | Measure | Sequence[str | Measure], *, convention: str | Convention = "rankeval"
) -> LightGBMFeval:
    """Make an evaluation function of ranking measures for LightGBM.

    Parameters
    ----------
    measures : str, Measure, or list of them
        The measures to compute on each evaluation set. LightGBM learns for each whether higher is better.
    convention : str or Convention, default="rankeval"
        The rules by which rankings are scored.

    Returns
    -------
    LightGBMFeval
        For ``feval=``, or ``eval_metric=`` of ``LGBMRanker.fit``. Set ``params["metric"] = "None"`` to see no other
        measure. A query's weight is the mean of its rows' weights in the Dataset, as in LightGBM's own ndcg.

    Raises
    ------
    UnknownName
        If a measure does not exist.
    InvalidInput
        If a measure cannot be computed from rows.

    Examples
    --------
    >>> import lightgbm
    >>> import rankeval as rk
    >>> data, history = rk.datasets.make_ranking(20, 10, rng=0), {}
    >>> train = lightgbm.Dataset(data.X, data.y, group=[10] * 20)
    >>> params = {"objective": "lambdarank", "metric": "None", "num_threads": 1, "verbose": -1}
    >>> record = lightgbm.record_evaluation(history)
    >>> booster = lightgbm.train(
    ...     params, train, 2, valid_sets=[train], feval=lightgbm_feval(["nDCG@10", "AP"]), callbacks=[record]
    ... )
    >>> list(history["training"])
    ['nDCG@10', 'AP']
    """
    return LightGBMFeval(tuple(one for _, one in check_measures(measures, convention)), get_convention(convention))


def xgboost_metric(
    measures: str | Measure | Sequence[str | Measure], *, convention: str | Convention = "rankeval"
) -> XGBoostMetric:
    """Make an evaluation function of ranking measures for ``xgboost.train`` and ``xgboost.cv``.

    Parameters
    ----------
    measures : str, Measure, or list of them
        The measures to compute on each evaluation set.
    convention : str or Convention, default="rankeval"
        The rules by which rankings are scored.

    Returns
    -------
    XGBoostMetric
        For ``custom_metric=``. XGBoost assumes of every metric that less is better: to stop early, give
        ``maximize=metric.maximize`` too (True for most measures, False for some, such as ARP). Weights of the DMatrix
        are weights of queries.

    Raises
    ------
    UnknownName
        If a measure does not exist.
    InvalidInput
        If a measure cannot be computed from rows.

    Examples
    --------
    >>> import xgboost
    >>> import rankeval as rk
    >>> data, history = rk.datasets.make_ranking(20, 10, rng=0), {}
    >>> train = xgboost.DMatrix(data.X, data.y, group=[10] * 20)
    >>> params = {"objective": "rank:ndcg", "disable_default_eval_metric": True, "nthread": 1}
    >>> watched = {"evals": [(train, "train")], "evals_result": history, "verbose_eval": False}
    >>> booster = xgboost.train(params, train, 2, custom_metric=xgboost_metric("nDCG@10"), **watched)
    >>> list(history["train"])
    ['nDCG@10']
    """
    return XGBoostMetric(tuple(one for _, one in check_measures(measures, convention)), get_convention(convention))
