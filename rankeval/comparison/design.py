"""Which comparisons are made, and the table that reports them.

Scores come as a block of shape ``(n_rows, n_systems, n_measures)``, rows being queries or folds.
Differences are laid out as the columns of a matrix, one per measure and pair, the pairs of a
measure beside each other::

    measure      nDCG@10       AP
    pair         b-a  c-a      b-a  c-a
    family       0    0        0    0      "all": one family of four
                 0    0        1    1      "measure": two families of two

so that a family is always a run of neighbouring columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval._registry import chosen
from rankeval.measures import direction, greatest_loss
from rankeval.significance import PairedResult
from rankeval.significance.declarations import Floats
from rankeval.significance.effects import outcomes, standardised_effect
from rankeval.significance.pairs import Pairs

COLUMNS = (
    "measure", "baseline", "system", "n_queries", "mean_baseline", "mean_system", "difference", "ci_low", "ci_high",
    "p_value", "p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "effect_size", "wins", "ties", "losses",
    "detectable_difference",
)  # fmt: skip
CROSSED = ("measure", "baseline", "system", "statistic", "p_value", "p_adjusted")
"""Columns of the table of interactions."""
MEANS = ("measure", "system", "n_queries", "mean", "ci_low", "ci_high")
"""Columns of the table of means."""
BOUNDS = (
    "measure", "baseline", "system", "judged_baseline", "judged_system", "shares_differ", "difference", "all_relevant",
    "lower", "upper", "is_bound",
)  # fmt: skip
"""Columns of the table of what unjudged documents could change."""

TEXTS = ("measure", "baseline", "system")
COUNTS = ("n_queries", "wins", "ties", "losses")

FAMILIES = ("all", "measure")

COLLECTION = "collection"
"""The first column of comparisons over several collections."""

TOGETHER = "all"
"""Stands in that column, or in that of an attribute, in the rows over all queries."""


def table_without_rows() -> pd.DataFrame:
    """Return the table of a comparison that compares nothing, with all columns."""
    types: dict[str, Any] = dict.fromkeys(COLUMNS, np.float64)
    types |= dict.fromkeys(TEXTS, object) | dict.fromkeys(COUNTS, np.int64)
    return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types.items()})


@dataclass(frozen=True)
class Design:
    """The comparisons made: pairs of systems by each measure, in families corrected together."""

    systems: list[str]  # In the order of the scores
    measures: list[str]
    baseline: str | None  # The system that the others are compared with; None for all pairs
    family: str  # Whether all comparisons are one family, or those of each measure
    # Declared for columns that are not measures
    lower_is_better: Mapping[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chosen("family", self.family, FAMILIES)
        if self.baseline is not None:
            chosen("baseline", self.baseline, self.systems)

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Places of the baseline and of the system: a row for each pair."""
        n_systems = len(self.systems)
        if self.baseline is None:
            return np.column_stack(np.triu_indices(n_systems, k=1))
        first = self.systems.index(self.baseline)
        return np.array([(first, j) for j in range(n_systems) if j != first], dtype=np.int64)

    @property
    def size(self) -> int:
        """Number of comparisons in a family."""
        return len(self.pairs) * (len(self.measures) if self.family == "all" else 1)

    def columns(self, scores: Floats) -> Pairs:
        """Return a column of differences per measure and pair, in runs of one measure."""
        return Pairs.of_systems(scores, self.pairs)

    def differences(self, scores: Floats) -> Floats:
        """Return the differences of `columns`, all at once."""
        return self.columns(scores)[:]

    @property
    def directions(self) -> Floats:
        """Return a sign per column of `differences`: -1 if less is known to be better, else 1."""
        signs = [direction(measure, self.lower_is_better).sign or 1.0 for measure in self.measures]
        return np.repeat(signs, len(self.pairs))

    def greatest_losses(self, scores: Floats) -> Floats:
        """Return the most that a query can lose in each column of `differences`.

        It is the range of the measure; without one, the greatest score of the baseline, of either
        system if there is no baseline, or of any system if that is 0.
        """
        largest = np.abs(scores).max(axis=0)
        low, high = self.pairs.T
        sizes = largest[low]  # (n_pairs, n_measures)
        if not self.baseline:
            sizes = np.maximum(sizes, largest[high])
        of_any = np.maximum(largest.max(axis=0), np.finfo(np.float64).tiny)
        sizes = np.where(sizes > 0, sizes, of_any)
        ranges = np.array([greatest_loss(measure) for measure in self.measures])
        return np.where(np.isfinite(ranges), ranges, sizes).T.ravel()

    @property
    def names(self) -> dict[str, list[str]]:
        """The first columns of tables: rows in the order of the columns of `differences`."""
        low, high = ([self.systems[place] for place in places] for places in self.pairs.T)
        n_measures = len(self.measures)
        measures = [measure for measure in self.measures for _ in low]
        return {"measure": measures, "baseline": low * n_measures, "system": high * n_measures}

    def outcomes(self, scores: Floats) -> dict[str, NDArray[np.int64]]:
        """Return the wins, ties and losses of each row of `table`."""
        return self._turned(*self.columns(scores).summed(lambda d: astuple(outcomes(d))))

    def _turned(
        self, positive: NDArray[np.int64], ties: NDArray[np.int64], negative: NDArray[np.int64]
    ) -> dict[str, NDArray[np.int64]]:
        higher = self.directions > 0
        wins, losses = np.where(higher, positive, negative), np.where(higher, negative, positive)
        return {"wins": wins, "ties": ties, "losses": losses}

    def table(
        self,
        scores: Floats,
        n_queries: int,
        tested: PairedResult,
        adjusted: PairedResult,
        detectable: Floats,
    ) -> pd.DataFrame:
        """Return the table of a Comparison: rows in the order of the columns of `differences`."""
        low, high = self.pairs.T

        def of_block(d: Floats) -> tuple[Floats, ...]:
            return d.mean(axis=0), standardised_effect(d), *astuple(outcomes(d))

        difference, effect, *counts = self.columns(scores).summed(of_block)
        means = scores.mean(axis=0).T  # (n_measures, n_systems)
        columns: dict[str, Any] = {
            **self.names,
            "n_queries": n_queries,
            "mean_baseline": means[:, low].ravel(),
            "mean_system": means[:, high].ravel(),
            "difference": difference,
            "effect_size": effect,
            "detectable_difference": detectable,
        }
        columns |= self._turned(*counts)
        is_equal = columns["wins"] + columns["losses"] == 0
        for end, result in (("", tested), ("_adjusted", adjusted)):
            # Without ends an interval of equal systems would read as an unknown difference.
            no_interval = is_equal & np.isinf(result.ci_low) & np.isinf(result.ci_high)
            columns[f"ci_low{end}"] = np.where(no_interval, np.nan, result.ci_low)
            columns[f"ci_high{end}"] = np.where(no_interval, np.nan, result.ci_high)
        columns |= {"p_value": tested.p_value, "p_adjusted": adjusted.p_value}
        return pd.DataFrame(columns, columns=COLUMNS)


def without_adjusted(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of comparisons with nan for adjusted p-values and intervals."""
    return table.assign(p_adjusted=np.nan, ci_low_adjusted=np.nan, ci_high_adjusted=np.nan)
