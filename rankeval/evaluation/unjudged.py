"""What unjudged documents mean for scores: the share judged, and the scores in two other readings.

A run that nobody pooled has many documents without a judgment, which count as not relevant. So it may lose for having
found others, and two systems with unlike shares are not compared fairly. Whoever compares needs to know the share, and
the scores if these documents were relevant or were not there (`rankeval.join.unjudged`). Both follow from the ranked
chunk that is scored anyway, and cannot be had from scores later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from rankeval.evaluation.facts import READINGS
from rankeval.join.flat import Floats, Ints
from rankeval.join.joined import Joined
from rankeval.join.judged import Judged
from rankeval.join.unjudged import completed, condensed
from rankeval.measures import Measure
from rankeval.measures.family import FAMILIES


@dataclass(frozen=True)
class Readings:
    """The readings of an evaluation, filled in chunk by chunk.

    Attributes
    ----------
    values : dict of str to ndarray of shape (n_queries, n_measures)
        By the names of `READINGS`; empty if no ranking has an unjudged document.
    grade : float
        The greatest grade of the collection, at least 1.
    """

    values: dict[str, Floats]
    grade: float = 1.0

    @classmethod
    def of(cls, joined: Joined, n_measures: int) -> Readings:
        """Return the readings to fill; none for arrays, whose rows are all there is.

        Parameters
        ----------
        joined : Joined
            Truth and ranking.
        n_measures : int
            The number of measures.
        """
        skipped = joined.convention.unjudged == "skip"
        if joined.identity is None or skipped or not joined.rule_counts["unjudged"].any():
            return cls({})
        values = {reading: np.empty((joined.n_queries, n_measures)) for reading in READINGS}
        grades = (float(labels.max(initial=1)) for labels in (joined.relevance, joined.unretrieved))
        return cls(values, max(grades))

    def fill(self, queries: Ints, judged: Judged, measures: Mapping[int, Measure], scores: Floats) -> None:
        """Read a chunk.

        Parameters
        ----------
        queries : ndarray of int
            The queries of the chunk.
        judged : Judged
            The chunk.
        measures : mapping of int to Measure
            The measures to fill in, by column.
        scores : ndarray of shape (n_queries, n_measures)
            The scores, which are those of every reading where all documents are judged.
        """
        if not self.values:
            return
        share, relevant, skipped = (self.values[reading] for reading in READINGS)
        rest = condensed(judged)
        by_cutoff = sorted(measures.items(), key=lambda item: item[1].cutoff or 0)
        for _, some in groupby(by_cutoff, key=lambda item: item[1].cutoff):
            group = dict(some)
            cutoff = next(iter(group.values())).cutoff
            whole = completed(judged, cutoff, self.grade)
            known = FAMILIES["Judged"].kernel(judged, cutoff=cutoff)
            for column, one in group.items():
                share[queries, column] = np.where(np.isnan(known), 1.0, known)
                if whole is None or one.family.needs != "grades":
                    relevant[queries, column] = skipped[queries, column] = scores[queries, column]
                else:
                    relevant[queries, column], skipped[queries, column] = one.values(whole), one.values(rest)

    @property
    def scores(self) -> list[Floats]:
        """The readings that are scores."""
        return [values for reading, values in self.values.items() if reading != "judged"]

    def known(self, measures: Sequence[Measure]) -> dict[str, Floats]:
        """Return the readings, nan by measures that read more than a grade a document."""
        beyond = [column for column, one in enumerate(measures) if one.family.needs != "grades"]
        for values in self.scores:
            values[:, beyond] = np.nan
        return self.values
