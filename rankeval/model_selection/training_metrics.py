"""Our measures inside the training loops of LightGBM and XGBoost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.convention import Convention
from rankeval.errors import QueryIdError
from rankeval.evaluation import score_arrays
from rankeval.measures import measures as find_measures
from rankeval.model_selection.query_ids import from_sizes

if TYPE_CHECKING:
    from rankeval.measures import Measure


@dataclass(frozen=True)
class TrainingMetric:
    """Measures for a training loop; see `lightgbm_feval` and `xgboost_metric`."""

    measures: tuple[Any, ...]
    convention: str | Convention

    def values(self, y: Any, score: Any, ids: NDArray[np.int64]) -> list[tuple[str, float]]:
        """Return (name, value) of each measure."""
        evaluation = score_arrays(
            y, np.asarray(score, np.float64), ids, measures=self.measures, convention=self.convention
        )
        return [(str(name), float(value)) for name, value in evaluation.aggregate().items()]


class LightGBMFeval(TrainingMetric):
    """Called by LightGBM as ``feval(scores, dataset)``."""

    def __call__(self, score: Any, dataset: Any) -> list[tuple[str, float, bool]]:
        """Return (name, value, higher is better) of each measure."""
        sizes = dataset.get_group()
        if sizes is None:
            raise QueryIdError("this lightgbm.Dataset has no queries: make it with group=, the sizes of the queries")
        ids = from_sizes(np.asarray(sizes, dtype=np.int64), len(score))
        return [(name, value, True) for name, value in self.values(dataset.get_label(), score, ids)]


class XGBoostMetric(TrainingMetric):
    """Called by XGBoost as ``custom_metric(scores, matrix)``."""

    def __call__(self, score: Any, matrix: Any) -> list[tuple[str, float]]:
        """Return (name, value) of each measure."""
        bounds = np.asarray(matrix.get_uint_info("group_ptr"), dtype=np.int64)
        if len(bounds) < 2:
            raise QueryIdError("this xgboost.DMatrix has no queries: make it with qid= (sorted) or group= (sizes)")
        return self.values(matrix.get_label(), score, from_sizes(np.diff(bounds), len(score)))


def _training_metric(kind: type[Any], measures: Any, convention: str | Convention) -> Any:
    return kind(tuple(one for _, one in find_measures(measures, convention)), convention)


def lightgbm_feval(
    measures: str | Measure | Sequence[str | Measure], *, convention: str | Convention = "rankeval"
) -> LightGBMFeval:
    """Make an evaluation function of ranking measures for ``lightgbm.train`` and ``lightgbm.cv``.

    Parameters
    ----------
    measures : str, Measure, or list of them
        What to compute on each evaluation set; higher is better.
    convention : str or Convention, default="rankeval"
        How rankings are held against labels.

    Returns
    -------
    LightGBMFeval
        For ``feval=``; set ``params["metric"] = "None"`` to see no other measure.

    Raises
    ------
    UnknownName
        When a measure does not exist.
    """
    metric: LightGBMFeval = _training_metric(LightGBMFeval, measures, convention)
    return metric


def xgboost_metric(
    measures: str | Measure | Sequence[str | Measure], *, convention: str | Convention = "rankeval"
) -> XGBoostMetric:
    """Make an evaluation function of ranking measures for ``xgboost.train`` and ``xgboost.cv``.

    Parameters
    ----------
    measures : str, Measure, or list of them
        What to compute on each evaluation set; higher is better, which XGBoost is told by ``maximize=True``.
    convention : str or Convention, default="rankeval"
        How rankings are held against labels.

    Returns
    -------
    XGBoostMetric
        For ``custom_metric=``.

    Raises
    ------
    UnknownName
        When a measure does not exist.
    """
    metric: XGBoostMetric = _training_metric(XGBoostMetric, measures, convention)
    return metric
