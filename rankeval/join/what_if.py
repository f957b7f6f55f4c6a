"""A chunk in other readings: without unjudged documents, with them as relevant, by aspect.

    rank         1        2        3        4        d9 and d5 have no judgment
    ranked       d9 ?     d1 1     d5 ?     d3 0
    condensed    d1 1     d3 0                       by the convention's rule unjudged="skip"
    completed    d9 2     d1 1     d5 2     d3 0     d9 and d5 have the greatest grade of all

Completed documents are judged like all others: they count in the ideal list and among the relevant
documents. A measure with a cut-off asks about the documents within it only, since the documents
below would only raise its ideal.

With every aspect as a query of its own, any measure has its intent-aware form. A query of three
aspects becomes three, over the same ranking, each with the labels for its own aspect:

    ranking      d4  d1  d7      judged     aspect 1: d1 = 2, d4 = 0     aspect 2: d7 = 1
    q, aspect 1   0   2   0
    q, aspect 2   0   0   1

A subtopic that a document was not judged for is one that it does not answer. A group of judges that
has not judged a document does not know it: where the convention skips unjudged documents, that
group's query lacks it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankeval.errors import InvalidInput
from rankeval.join.flat import Ints, offsets_of, spread
from rankeval.join.judged import Judged, TiedGroups


def condensed(chunk: Judged) -> Judged:
    """Return a chunk without its unjudged rows and its aspects."""
    assert chunk.judged is not None
    return chunk.kept(chunk.judged)


def completed(chunk: Judged, cutoff: int | None, grade: float) -> Judged:
    """Return a chunk whose unjudged rows within the cut-off have a grade, the greatest one."""
    assert chunk.judged is not None
    unjudged = ~chunk.judged
    if cutoff is not None:
        stop = chunk.offsets[:-1] + chunk.depth(cutoff)
        divided = chunk.ties.of(chunk.ties.divided(stop))
        stop[divided.query] = divided.end
        unjudged &= np.arange(len(unjudged)) < np.repeat(stop, chunk.n_retrieved)
    if not unjudged.any():
        return chunk
    levels = chunk.levels if chunk.levels[-1] >= grade else np.append(chunk.levels, grade)
    last = len(levels) - 1
    code, is_judged = chunk.code.copy(), chunk.judged | unjudged
    code[unjudged] = last
    counts = np.pad(chunk.counts, ((0, 0), (0, len(levels) - chunk.counts.shape[1])))
    counts[:, last] += np.diff(offsets_of(unjudged)[chunk.offsets])
    row, group = chunk.ties.rows()  # tied rows stand by label
    order = row[np.lexsort((code[row], group))]
    code[row], is_judged[row] = code[order], is_judged[order]
    return chunk.relabelled(code, chunk.ties, levels=levels, counts=counts, judged=is_judged)


class AspectParts(NamedTuple):
    """Every aspect of every query as a query of its own, and the query that each belongs to."""

    judged: Judged
    query: Ints


def by_aspect(whole: Judged) -> AspectParts:
    """Return the aspects of a chunk as queries."""
    return whole.once("aspects", lambda: _parts(whole, None))


def by_group(whole: Judged) -> AspectParts:
    """Return the groups of judgments as queries, each without the documents that it skips."""
    assert whole.aspects is not None
    skips_below = whole.aspects.skips_below
    return whole.once("groups", lambda: _parts(whole, skips_below))


def _parts(whole: Judged, skips_below: float | None) -> AspectParts:
    block = whole.aspects
    assert block is not None
    if block.table.group is not None:
        problem = "only Prefs, PrefsR, NumPrefs and NumPrefsFul read judgments by sub-group"
        raise InvalidInput(problem, remedy="give Qrels without subgroup= for others")
    of, known = block.table.entries(block.known)
    n_aspects = int(block.table.aspect.max(initial=0)) + 1
    pair, part = np.unique(block.known_query[of] * n_aspects + known.aspect, return_inverse=True)
    query = pair // n_aspects
    # Zero is always a level: documents without a judgment for an aspect have it.
    levels, code = np.unique(np.append(known.grade, known.grade.dtype.type(0)), return_inverse=True)
    counts = np.bincount(part * len(levels) + code[:-1], minlength=len(pair) * len(levels))

    # Each part has a copy of its query's ranking; `place` is where a judged row's copy stands.
    offsets = offsets_of(whole.n_retrieved[query])
    row = np.flatnonzero(block.document >= 0)
    of_row, ranked = block.table.entries(block.document[row])
    row = row[of_row]
    its_query = np.searchsorted(whole.offsets, row, side="right") - 1
    part_of_row = np.searchsorted(pair, its_query * n_aspects + ranked.aspect)
    place = offsets[part_of_row] + row - whole.offsets[its_query]
    labels = np.full(int(offsets[-1]), np.searchsorted(levels, 0))
    labels[place] = np.searchsorted(levels, ranked.grade)
    queries = None if whole.queries is None else whole.queries[query]
    seen = np.zeros(len(labels), dtype=bool)
    seen[place] = skips_below is None or ranked.grade >= skips_below
    judged = whole.relabelled(
        labels,
        _repeated(whole, query, offsets),
        offsets=offsets,
        levels=levels,
        counts=counts.reshape(len(pair), len(levels)),
        judged=seen,
        queries=queries,
    )
    return AspectParts(judged if skips_below is None else condensed(judged), query)


def _repeated(whole: Judged, query: Ints, offsets: Ints) -> TiedGroups:
    """Return the tie groups of each query once for each of its parts."""
    ties = whole.ties
    first = np.searchsorted(ties.query, np.arange(whole.n_queries + 1))
    group, part = spread(first[query], np.diff(first)[query])
    shift = offsets[part] - whole.offsets[query[part]]
    return TiedGroups(ties.start[group] + shift, ties.end[group] + shift, part)
