"""What unjudged documents mean for scores: the share judged, and the scores in two other readings.

A run that nobody pooled has many documents without a judgment, which count as not relevant. So it may lose for having
found others, and two systems with unlike shares are not compared fairly. Whoever compares needs to know the share, and
the scores if these documents were relevant or were not there (`rankeval.join.readings`). Both follow from the ranked
chunk that is scored anyway, and cannot be had from scores later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankeval.evaluation.facts import READINGS
from rankeval.join.flat import Floats, Ints, offsets_of, ratio
from rankeval.join.joined import Joined
from rankeval.join.judged import Judged
from rankeval.join.readings import completed, condensed
from rankeval.measures import Measure


@dataclass(frozen=True, eq=False)
class Unread:
    """The scores of an evaluation in all readings of its unjudged documents, filled in chunk by chunk.

    Attributes
    ----------
    scores : ndarray of shape (3, n_queries, n_measures), or (1, n_queries, n_measures)
        The scores themselves; if unjudged documents are relevant; without them. The first alone if there are none.
    judged : ndarray of shape (n_queries, n_measures)
        The share of the documents within the cut-off that is judged.
    grade : float
        The greatest grade of the collection, at least 1.
    """

    scores: Floats
    judged: Floats
    grade: float

    @classmethod
    def of(cls, joined: Joined, n_measures: int) -> Unread:
        """Return the scores to fill; those of arrays, which have no documents but their rows, are not read."""
        is_read = joined.identity is not None and joined.convention.unjudged != "skip"
        if not is_read or not joined.rule_counts["unjudged"].any():
            return cls(np.empty((1, joined.n_queries, n_measures)), np.empty((0, 0)), 0.0)
        grades = (float(labels.max(initial=1)) for labels in (joined.relevance, joined.unretrieved))
        scores = np.empty((3, joined.n_queries, n_measures))
        return cls(scores, np.empty_like(scores[0]), max(grades))

    def read(self, queries: Ints, judged: Judged, measures: Mapping[int, Measure]) -> None:
        """Fill in the readings of a chunk by some measures, given by column."""
        if len(self.scores) == 1:
            return
        assert judged.judged is not None
        rest, before = condensed(judged), offsets_of(judged.judged)
        whole = {cutoff: completed(judged, cutoff, self.grade) for cutoff in {one.cutoff for one in measures.values()}}
        for column, one in measures.items():
            within = judged.mean_within(judged.ties, before, one.cutoff)
            self.judged[queries, column] = ratio(within, judged.depth(one.cutoff), otherwise=1.0)
            for place, chunk in (1, whole[one.cutoff]), (2, rest):
                self.scores[place, queries, column] = one.values(chunk) if one.family.needs == "grades" else 0.0

    def readings(self, measures: Sequence[Measure]) -> dict[str, Floats]:
        """Return the readings, nan by measures that read more than a grade a document."""
        if len(self.scores) == 1:
            return {}
        self.scores[1:, :, [one.family.needs != "grades" for one in measures]] = np.nan
        return dict(zip(READINGS, [self.judged, *self.scores[1:]], strict=True))
