"""Measures per query for the training loop of a booster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput
from rankeval.evaluation import Given, query_weights, score
from rankeval.evaluation.result import aggregates
from rankeval.join.flat import sizes_to_ids
from rankeval.measures import Measure


@dataclass(frozen=True, repr=False)
class TrainingMetric:
    """Measures for a training loop; see `lightgbm_feval` and `xgboost_metric`."""

    measures: tuple[Measure, ...]
    convention: Convention
    _maker: ClassVar[str]

    def __repr__(self) -> str:
        names = list(map(str, self.measures))
        is_default = self.convention == get_convention("rankeval")
        rules = "" if is_default else f", convention={self.convention.name!r}"
        return f"{self._maker}({(names[0] if len(names) == 1 else names)!r}{rules})"

    @property
    def maximize(self) -> bool:
        """Whether higher is better."""
        higher = {measure.family.greater_is_better for measure in self.measures}
        if len(higher) > 1:
            raise InvalidInput(
                "more is better for some of these measures, less for others: stop by one of them"
            )
        return higher.pop()

    def values(
        self, y: Any, predicted: Any, sizes: NDArray[np.int64], weight: Any
    ) -> list[tuple[str, float]]:
        """Return (name, value) of each measure, queries weighted by the mean weight of their rows."""
        ids, weights = sizes_to_ids(sizes, len(predicted)), None
        if weight is not None and len(weight):
            weights = np.asarray(weight, dtype=np.float64)
            if len(weights) != len(sizes):  # of rows, not of queries
                weights = np.bincount(ids, weights) / sizes
            weights = weights[ids]
        given = Given(y, np.asarray(predicted, np.float64), ids, arguments=("y", "score"))
        joined = given.join(self.convention)
        labelled = [(str(measure), measure) for measure in self.measures]
        evaluation = score(joined, labelled, weights=query_weights(weights, joined))
        return list(aggregates(evaluation).items())
