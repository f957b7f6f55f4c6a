"""The scores of systems on the folds of a cross-validation, which a comparison of algorithms keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankeval.errors import InvalidInput
from rankeval.significance.declarations import Floats


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Means by fold, from which effects and posteriors are computed after the comparison.

    Attributes
    ----------
    systems, measures : tuple of str
        Names, in the order of the scores.
    scores : ndarray of shape (n_folds, n_systems, n_measures)
        The mean of each fold.
    ratio : float
        Queries in the test part by queries in the training part, the mean over folds.

    Raises
    ------
    InvalidInput
        Scores of another shape.
    """

    systems: tuple[str, ...]
    measures: tuple[str, ...]
    scores: Floats
    ratio: float

    def __post_init__(self) -> None:
        if self.scores.ndim != 3 or self.scores.shape[1:] != (len(self.systems), len(self.measures)):
            raise InvalidInput(
                f"scores of folds have shape (n_folds, {len(self.systems)}, {len(self.measures)}), found "
                f"{self.scores.shape}"
            )

    def of(self, system: str, measure: str) -> Floats:
        """Return the scores of a system, shape ``(n_folds,)``."""
        return np.asarray(self.scores[:, self.systems.index(system), self.measures.index(measure)])

    @classmethod
    def from_plain(cls, systems: list[str], measures: list[str], scores: list[Any], ratio: float) -> FoldScores:
        """Return the scores whose fields were written as lists."""
        return cls(tuple(systems), tuple(measures), np.asarray(scores, dtype=np.float64), float(ratio))
