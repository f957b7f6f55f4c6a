"""The numbers of a comparison and how they came about; what is said and drawn of them reads this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from rankeval._checks import count
from rankeval.comparison.choice import Choice
from rankeval.comparison.design import TOGETHER
from rankeval.comparison.fold_scores import FoldScores
from rankeval.comparison.scores import Systems
from rankeval.measures import direction
from rankeval.significance.declarations import CLAIMS, CORRECTIONS, TESTS, ClaimName, Floats, all_tests
from rankeval.significance.running import adjusted_level
from rankeval.significance.strata import STRATIFIED

MOST_LISTED = 5
"""Captions list so many collections or slices by name, and the range of their sizes beyond."""

WEIGHTED = {
    "collections": "collections of equal weight",
    "queries": "collections weighted by queries",
    "inverse_variance": "collections weighted by inverse variance",
}

PARTED = (
    "in rows marked with a dagger, the adjusted p-value and the adjusted interval disagree: one shows the claim, the "
    "other does not. The p-value steps down over the family or comes from another test than the interval; claims go by "
    "it"
)
"""Note on the rows of `ComparisonRecord.parted`."""


@dataclass(frozen=True, eq=False)
class ComparisonRecord:
    """The fields of a `rankeval.Comparison`, which documents them, and what follows from them row by row."""

    table: pd.DataFrame
    evaluations: Systems
    baseline: str | None
    test: str
    correction: str
    family: str
    confidence_level: float
    rng: int
    n_comparisons: int
    notes: tuple[str, ...] = ()
    primary: str | None = None
    alternative: str = "two-sided"
    n_resamples: int = 9999
    claim: ClaimName = "difference"
    margin: float = 0.0
    unseen: int = 0
    choice: Choice | None = None
    folds: FoldScores | None = None
    grouped: str = ""
    weights: str = ""
    interaction: pd.DataFrame | None = None
    means: pd.DataFrame | None = None
    bounds: pd.DataFrame | None = None
    condensed: pd.DataFrame | None = None
    first_two: pd.DataFrame | None = None
    standing: str = ""
    opening: Mapping[str, Any] | None = None

    @property
    def has_pairs(self) -> bool:
        """Whether systems were compared; a plan of one system has its mean only."""
        return len(self.table) > 0

    @property
    def caption(self) -> str:
        """The settings in one line: test, number of queries, family, level, seed."""
        if not self.has_pairs:
            return self._caption_of_means
        n = int(self.table["n_queries"].iloc[0])
        # A saved result may name a test that is not declared here: then its key stands for the words.
        test, correction = all_tests().get(self.test), CORRECTIONS.get(self.correction)
        own = test.words if test else self.test
        words = STRATIFIED if self.weights else own
        side = "" if self.alternative == "two-sided" else f", one-sided ({self.alternative})"
        claim = CLAIMS[self.claim]
        side += f", {claim.caption.format(margin=self.margin)}," if claim.caption else ""
        side += f" with {count(self.unseen, 'unseen query')}," if self.unseen else ""
        corrected = f"{self.correction_words} over"
        weighted = f", {WEIGHTED[self.weights]}" if self.weights else ""
        parts = f"; by {self.grouped}: {own} over {self._parts}; {corrected} {self.family_words(self.n_parts)}"
        tests = (TESTS["randomization"] if self.weights else test, test, correction)
        random = any(declared.is_random(n) for declared in tests if declared)
        resampled = f", {self.n_resamples:,} resamples, seed {self.rng}" if random else ""
        other = self.shown_level != self.interval_level
        adjusted = f", {100 * self.shown_level:g} % adjusted ones" if other else ""
        return (
            f"{words[0].upper()}{words[1:]}{side} over {count(n, 'query')}{weighted}; "
            f"{corrected} {self.family_words(1)}{parts if self.n_parts else ''}; "
            f"{100 * self.interval_level:g} % intervals{adjusted}{resampled}"
        )

    @property
    def _caption_of_means(self) -> str:
        sizes = "" if self.means is None else f" over {count(int(self.means['n_queries'].iloc[0]), 'query')}"
        return f"Means{sizes}; {100 * self.confidence_level:g} % intervals by Student's t; no comparison"

    @property
    def correction_words(self) -> str:
        """The correction by its name in sentences; its key, if it was saved and is not declared here."""
        correction = CORRECTIONS.get(self.correction)
        return correction.words if correction else self.correction

    @property
    def overall(self) -> Self:
        """The comparison over all queries alone, without the rows of collections or slices."""
        if not self.grouped:
            return self
        rows = self.table[self.table[self.grouped] == TOGETHER].drop(columns=self.grouped).reset_index(drop=True)
        return replace(self, table=rows, grouped="")

    @property
    def part_of_row(self) -> list[str]:
        """The collection or slice of each row; "" for rows over all queries."""
        if not self.grouped:
            return [""] * len(self.table)
        return ["" if part == TOGETHER else str(part) for part in self.table[self.grouped]]

    @property
    def n_parts(self) -> int:
        """Number of collections or slices that were tested each by itself."""
        return len(self._part_sizes())

    def _part_sizes(self) -> pd.Series[int]:
        """Return the number of queries of each part that was tested."""
        if not self.grouped:
            return pd.Series(dtype=int)
        rows = self.table[(self.table[self.grouped] != TOGETHER) & self.table["p_value"].notna()]
        return rows.groupby(self.grouped, sort=False)["n_queries"].first()

    @property
    def _parts(self) -> str:
        sizes = self._part_sizes()
        if len(sizes) > MOST_LISTED:
            return f"{sizes.min():,} to {sizes.max():,} queries in each of {len(sizes)}"
        return ", ".join(f"{count(size, 'query')} ({part})" for part, size in sizes.items())

    def family_words(self, n_parts: int) -> str:
        """Return the size of a family in words: that of the rows over all, or of those of so many parts."""
        family = count(self.n_comparisons * n_parts, "comparison")
        return f"{family} per measure" if self.family == "measure" else family

    @property
    def interval_level(self) -> float:
        """Level of the intervals of single comparisons: two ends that a claim tests leave out alpha each."""
        return round(1 - self.alpha * max(1, CLAIMS[self.claim].sides), 12)

    @property
    def adjusted_level(self) -> float:
        """Level of the adjusted intervals."""
        correction = CORRECTIONS.get(self.correction)
        if correction is None:
            return self.interval_level
        return adjusted_level(self.alpha, correction, CLAIMS[self.claim], self.n_comparisons)

    @property
    def shown_level(self) -> float:
        """Level of the intervals that tables show: the adjusted ones, if the correction has any."""
        bare = self.table[["ci_low_adjusted", "ci_high_adjusted"]].isna().all(axis=None)
        return self.interval_level if bare else self.adjusted_level

    @property
    def parted(self) -> pd.Series[bool]:
        """A mask of the rows: True where adjusted p-value and interval disagree, so that only one shows the claim."""
        sign = self.directions if CLAIMS[self.claim].hypotheses else np.ones(len(self.table))
        ends = self.table[["ci_low_adjusted", "ci_high_adjusted"]].to_numpy(np.float64) * sign[:, None]
        within = CLAIMS[self.claim].is_within(ends.min(axis=1), ends.max(axis=1), self.margin)
        # An interval without ends belongs to differences without variance: it says nothing.
        known = np.isfinite(ends).any(axis=1) & self.table["p_adjusted"].notna().to_numpy()
        by_p = (self.table["p_adjusted"] <= self.alpha).to_numpy()
        return pd.Series(known & (within != by_p), index=self.table.index)

    @property
    def alpha(self) -> float:
        """Level of the tests, 1 less the confidence level."""
        # Rounded, since 1 - .95 is a little more than .05.
        return round(1 - self.confidence_level, 12)

    @property
    def main_measure(self) -> str:
        """The measure that sentences speak of: the primary one, else the first."""
        return self.primary or str(self.table["measure"].iloc[0])

    @property
    def best_first(self) -> dict[str, float]:
        """The mean of every system by the main measure over all queries, turned so that more is better, best first."""
        rows, sign = self.overall.table, direction(self.main_measure)
        rows = rows[rows["measure"] == self.main_measure]
        means = dict(zip(rows["baseline"], sign * rows["mean_baseline"], strict=True))
        means |= dict(zip(rows["system"], sign * rows["mean_system"], strict=True))
        return dict(sorted(means.items(), key=lambda one: -one[1]))

    @property
    def shown(self) -> pd.Series[bool]:
        """A mask of the rows: True where the claim is shown, confirmatory and with an adjusted p of at most alpha."""
        within = self.table["p_adjusted"] <= self.alpha
        return within if self.primary is None else within & (self.table["measure"] == self.primary)

    @property
    def gains(self) -> pd.Series[float]:
        """The differences as gains: positive if the system is better, also if less is better by the measure."""
        gains: pd.Series[float] = self.table["difference"] * self.directions
        return gains

    @property
    def directions(self) -> Floats:
        """Return 1 or -1 for each row: -1 if less is better by its measure."""
        places, measures = pd.factorize(self.table["measure"])
        return np.array([direction(measure) for measure in measures], dtype=np.float64)[places]
