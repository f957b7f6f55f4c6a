"""Unjudged documents in other readings: taken out of the ranking, or judged and relevant.

    rank         1        2        3        4        d9 and d5 have no judgment
    ranked       d9 ?     d1 1     d5 ?     d3 0
    condensed    d1 1     d3 0                       the ranking of the convention's rule unjudged="skip"
    completed    d9 2     d1 1     d5 2     d3 0     d9 and d5 are judged, with the greatest grade of the collection

Completed documents are judged like all others: they count in the ideal list and among the relevant documents. A measure
with a cut-off asks about the documents within it only, since the documents below would only raise its ideal.
"""

from __future__ import annotations

import numpy as np

from rankeval.join.flat import offsets_of
from rankeval.join.judged import Groups, Judged, with_unlike_labels


def condensed(judged: Judged) -> Judged:
    """Return a chunk without its unjudged rows.

    Parameters
    ----------
    judged : Judged
        A chunk that knows which rows are judged. Its aspects are left behind.
    """
    kept = judged.judged
    assert kept is not None
    before, code = offsets_of(kept), judged.code[kept]
    ties = Groups(before[judged.ties.start], before[judged.ties.end], judged.ties.query)
    ties = ties.of(ties.end - ties.start > 1)
    return Judged(
        offsets=before[judged.offsets],
        levels=judged.levels,
        flat=code,
        counts=judged.counts,
        groups=with_unlike_labels(ties, code),
        judged=kept[kept],
        ties=ties,
        queries=judged.queries,
    )


def completed(judged: Judged, cutoff: int | None, grade: float) -> Judged:
    """Return a chunk whose unjudged rows within the cut-off are judged.

    Parameters
    ----------
    judged : Judged
        A chunk that knows which rows are judged. Its aspects are left behind.
    cutoff : int or None
        Deepest rank that counts. Tied rows that may stand within it are all completed.
    grade : float
        The grade that they get, at least that of every judged row.
    """
    assert judged.judged is not None
    found = ~judged.judged
    if cutoff is not None:
        stop = judged.offsets[:-1] + judged.depth(cutoff)
        divided = judged.ties.of(judged.ties.divided(stop))
        stop[divided.query] = divided.end
        found &= np.arange(len(found)) < np.repeat(stop, judged.n_retrieved)
    if not found.any():
        return judged
    levels = judged.levels if judged.levels[-1] >= grade else np.append(judged.levels, grade)
    last = len(levels) - 1
    code, marked = judged.code.copy(), judged.judged | found
    code[found] = last
    counts = np.pad(judged.counts, ((0, 0), (0, len(levels) - judged.counts.shape[1])))
    counts[:, last] += np.diff(offsets_of(found)[judged.offsets])
    row, group = judged.ties.rows()  # tied rows stand by label
    order = row[np.lexsort((code[row], group))]
    code[row], marked[row] = code[order], marked[order]
    return Judged(
        offsets=judged.offsets,
        levels=levels,
        flat=code,
        counts=counts,
        groups=with_unlike_labels(judged.ties, code),
        judged=marked,
        ties=judged.ties,
        queries=judged.queries,
    )
