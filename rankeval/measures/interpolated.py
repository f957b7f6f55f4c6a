"""Precision at points of recall: interpolated, averaged over levels, and at multiples of R.

Programs differ in the number of relevant documents that a recall level needs (`RULES`). For level
0.3 of 4 documents: 2 by "exact" (1.2 rounded up), 2 by "trec_eval-9" (int(2.1)), 1 by
"trec_eval-10" (1.2 rounded).

Tied rows: the value is the greatest precision at a hit, from the hit on that reaches the recall
level. It is least in the worst order, in which the hits come last in each group; call that value L.
Above L,

    mean = L + integral over v > L of 1 - F(v),
    F(v) = prod over groups of P(all counted hits are below v).

The product holds because groups are ordered independently. F is a step function, with steps at the
precisions that a hit can have:

    F   1 |          ______      mean - L is the area above F, right of L
          |     ____|            each step of each group is one _Steps entry: its precision, and
          |  __|                 the factor by which F falls to the left of it
        0 +--L--------------> v

Each chance is that of a path of hits and misses that keeps below a boundary (the ballot problem,
`chance_of_places`): hit number h of the list is below precision v if its rank is above h / v. A
group whose best order does not exceed L cannot matter, which spares most groups. One pass over the
places serves all recall levels, since a level only says at which hit the boundary begins.

A group of n tied rows with r hits has C(n, r) orders, all equally likely. Read from the top, an
order is a path over states (t places passed, j hits found):

    hits
     2               o---o      a group of 4 rows with 2 hits; this path: miss hit hit miss
                   /
     1           o              from (t, j) the next place is a hit with chance (r - j) / (n - t),
               /                whatever the path was before
     0   o---o
         0   1   2   3   4      places

A pass from the last place to the first needs one value for each j, in place of one for each order.
All terms are chances, so nothing overflows and nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import chosen
from rankeval.join.flat import Floats, Ints, ratio
from rankeval.join.judged import Judged
from rankeval.measures.chances import CELLS, distinct_rows, place_of_hit
from rankeval.measures.family import family
from rankeval.measures.grammar import Chance, Levels, Positive, Spelling, fixing
from rankeval.measures.tie_enumeration import write_over_orders

ELEVEN = tuple(place / 10 for place in range(11))
"""The recall levels of the eleven-point average."""


def _exactly(level: float, n_relevant: Ints) -> Ints:
    """Return the least number of documents that is at least level * R, computed in integers."""
    # Fraction reads the level as written: the float 0.28 times 25 is above 7.
    share = Fraction(str(level))
    return -(-n_relevant * share.numerator // share.denominator)


def _nearly_up(level: float, n_relevant: Ints) -> Ints:
    # As in trec_eval 9; this is not always the ceiling.
    return (level * n_relevant + 0.9).astype(np.int64)


def _rounded(level: float, n_relevant: Ints) -> Ints:
    # Halves go up, as in trec_eval 10; recall may then be below the level.
    share = level * n_relevant
    whole = np.floor(share)
    needed: Ints = (whole + (share - whole >= 0.5)).astype(np.int64)
    return needed


RULES: dict[str, Callable[[float, Ints], Ints]] = {
    "exact": _exactly,
    "trec_eval-9": _nearly_up,
    "trec_eval-10": _rounded,
}
"""Number of relevant documents that a recall level needs, by name of the rule."""


def _by_version(*names: str) -> dict[str, tuple[Spelling, ...]]:
    versions = ("trec_eval-9", "trec_eval-10")
    return {version: fixing({"rule": version}, *names) for version in versions}


def _needed(judged: Judged, level: float, rule: str, rel: float) -> Ints:
    chosen("rule of interpolation", rule, RULES)
    return np.maximum(RULES[rule](level, judged.n_relevant(rel)), 1)


def _interpolated(judged: Judged, rank: Ints, needed: Ints, rel: float) -> Floats:
    """Return the greatest precision from the needed hit on; 0 if the query lacks that hit."""
    precision = judged.relevant(rel).hits / rank
    starts = judged.prefix(rel)[judged.offsets].astype(np.int64)
    reached = np.flatnonzero(np.diff(starts) >= needed)
    value = np.where(judged.n_relevant(rel) > 0, 0.0, np.nan)
    if len(reached):
        # reduceat takes pairs (needed hit, end of the query); the 0 appended makes the last end a
        # valid place.
        first = starts[reached] + needed[reached] - 1
        pairs = np.column_stack((first, starts[reached + 1])).ravel()
        value[reached] = np.maximum.reduceat(np.append(precision, 0.0), pairs)[::2]
    return value


class Mixed(NamedTuple):
    """Groups of tied rows with at least one hit and one miss.

    ``misses_above`` and ``hits_above`` count the rows of the query above the group. Rows that are
    neither a hit nor a miss (unjudged rows in bpref) are not counted anywhere.
    """

    query: Ints
    misses_above: Ints
    hits_above: Ints
    misses: Ints
    hits: Ints

    @property
    def above(self) -> Ints:
        """Number of rows above each group in its query."""
        return self.misses_above + self.hits_above

    def of(self, some: NDArray[np.bool_] | Ints) -> Mixed:
        """Return some of the groups."""
        return Mixed(*(part[some] for part in self))


def relevant_or_not(judged: Judged, rel: float) -> tuple[Mixed, NDArray[np.bool_]]:
    """Return the groups with relevant and other rows, and a mask of the relevant rows outside."""
    hit = judged.prefix(rel).astype(np.int64)
    start, end, query = judged.groups
    hits, begin = hit[end] - hit[start], judged.offsets[query]
    hits_above, misses = hit[start] - hit[begin], end - start - hits
    groups = Mixed(query, start - begin - hits_above, hits_above, misses, hits)
    groups = groups.of((hits > 0) & (misses > 0))
    # Hits are numbered through the chunk, so a group holds consecutive ones: mark its ends, and add
    # up.
    first = hit[judged.offsets[groups.query]] + groups.hits_above
    edges = np.zeros(int(hit[-1]) + 1, dtype=np.int64)
    edges[first] += 1
    edges[first + groups.hits] -= 1
    return groups, np.cumsum(edges[:-1]) == 0


def worst_ranks(judged: Judged, rel: float, groups: Mixed, alone: NDArray[np.bool_]) -> Ints:
    """Return the ranks of the relevant rows in the worst order, last in each group."""
    relevant = judged.relevant(rel)
    rank = relevant.rank.copy()
    misses = np.repeat(groups.misses_above + groups.misses, groups.hits)
    rank[~alone] = relevant.hits[~alone] + misses
    return rank


def chance_of_places(misses: int, allowed: Ints) -> Floats:
    """Return the chance that a hit and all behind it are at their first allowed place or below.

    ``allowed`` and the result have a row for each hit of a group and a column for each boundary.
    """
    hits, n_items = allowed.shape
    size = hits + misses
    # Row j, with j hits seen so far: the chance for the hits still to come.
    left = np.ones((hits + 1, n_items))
    total = np.zeros((hits, n_items))
    chance = place_of_hit(hits, misses)
    for place in range(size, 0, -1):
        # Hits low + 1 to high may have this place.
        low, high = max(place - misses, 1) - 1, min(hits, place)
        hit = left[low + 1 : high + 1] * (place >= allowed[low:high])
        total[low:high] += chance[place - 1, low:high, None] * hit
        goes_up = ((hits - np.arange(low, high)) / (size - place + 1))[:, None]
        left[low:high] *= 1 - goes_up
        left[low:high] += goes_up * hit
    return total


_MOST = 2**28
"""Most states of paths times boundaries in a query, those of 200 tied rows; else draw orders."""

_EXACT_TO = "200 tied rows, and more where few of them are relevant"
"""The queries with an exact mean, in words for users."""


class RecallLevels(NamedTuple):
    """Recall levels by query, (n_levels, n_queries)."""

    needed: Ints  # hits that a level needs
    worst: Floats  # value of the worst order


class _Steps(NamedTuple):
    """Steps of F."""

    job: Ints  # level * n_queries + query
    precision: Floats
    factor: Floats  # by which F falls below that precision


def order_matters(groups: Mixed, levels: RecallLevels) -> NDArray[np.bool_]:
    """Return a mask (n_levels, n_groups): at which levels the order of a group matters."""
    all_hits = groups.hits_above + groups.hits
    best = all_hits / (groups.above + groups.hits)
    return (levels.needed[:, groups.query] <= all_hits) & (best > levels.worst[:, groups.query])


def n_states(groups: Mixed, n_queries: int) -> Floats:
    """Return an upper bound of the number of states of each query, summed over its boundaries."""
    hits, misses = groups.hits.astype(np.float64), groups.misses
    # The lattice of a group has hits * (hits + misses) states, and there is a boundary for each
    # possible precision.
    states = hits * (hits + misses) * hits * misses
    return np.bincount(groups.query, states, n_queries).astype(np.float64, copy=False)


def mean_interpolated(groups: Mixed, levels: RecallLevels) -> Floats:
    """Return the mean of interpolated precision."""
    shapes = distinct_rows(np.column_stack((groups.hits, groups.misses)))
    steps: list[_Steps] = []
    for _, places in shapes:
        steps.extend(_steps_of_shape(groups.of(places), levels))
    if not steps:
        return levels.worst
    job, precision, factor = (np.concatenate(parts) for parts in zip(*steps, strict=True))
    order = np.lexsort((-precision, job))
    job, precision, factor = job[order], precision[order], factor[order]
    first = np.flatnonzero(np.diff(job, prepend=-1))
    last = np.append(first[1:], len(job))
    # F at each step is the product of all factors from the greatest precision down to it.
    chance = np.empty(len(job))
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        np.multiply.accumulate(factor[begin:end], out=chance[begin:end])
    value = levels.worst.ravel().copy()
    below = np.append(precision[1:], 0.0)
    below[last - 1] = value[job[first]]
    value += np.bincount(job, (precision - below) * (1 - chance), len(value))
    return value.reshape(levels.worst.shape)


def _steps_of_shape(groups: Mixed, levels: RecallLevels) -> Iterator[_Steps]:
    hits, misses = int(groups.hits[0]), int(groups.misses[0])
    at_once = max(1, CELLS // (hits * (misses + 1)))
    for begin in range(0, len(groups.query), at_once):
        some = groups.of(np.arange(begin, min(begin + at_once, len(groups.query))))
        matters = order_matters(some, levels)
        least = np.where(matters, levels.worst[:, some.query], np.inf).min(axis=0)
        group, precision = _precisions(some, least)
        at_least = np.clip(levels.needed[:, some.query] - some.hits_above, 1, hits) - 1
        chances = _chances(some, group, precision, at_least)
        ends = np.diff(group, append=-1) != 0
        for level, chance in enumerate(chances):
            query = some.query[group]
            kept = matters[level, group] & (precision > levels.worst[level, query])
            above = np.where(ends, 1.0, np.append(chance[1:], 1.0))[kept]
            job = level * levels.worst.shape[1] + query[kept]
            yield _Steps(job, precision[kept], chance[kept] / above)


def _precisions(groups: Mixed, least: Floats) -> tuple[Ints, Floats]:
    """Return group and value of each distinct precision of a hit above a bound, ascending."""
    hit = np.arange(1, int(groups.hits[0]) + 1)[:, None]
    place = hit + np.arange(int(groups.misses[0]) + 1)
    precision = (groups.hits_above[:, None, None] + hit) / (groups.above[:, None, None] + place)
    precision = np.sort(precision.reshape(len(groups.query), -1), axis=1)
    new = (precision > least[:, None]) & (np.diff(precision, axis=1, prepend=-1) > 0)
    return np.nonzero(new)[0], precision[new]


def _chances(groups: Mixed, group: Ints, precision: Floats, at_least: Ints) -> Floats:
    """Return the chance that all hits of a group that count at a level are below a precision."""
    hits, misses = int(groups.hits[0]), int(groups.misses[0])
    hit = np.arange(1, hits + 1)[:, None]
    chances = np.empty((len(at_least), len(group)))
    at_once = max(1, CELLS // (hits + 1))
    for begin in range(0, len(group), at_once):
        of = group[begin : begin + at_once]
        # Hit h reaches precision v = a / b at rank h / v = h b / a or before. That quotient is
        # whole or at least 1 / a from a whole number, which is more than the error of a float: so
        # 1e-7 rounds down safely.
        reach = (groups.hits_above[of] + hit) / precision[begin : begin + at_once]
        allowed = np.floor(reach + 1e-7).astype(np.int64) - groups.above[of] + 1
        chance = chance_of_places(misses, allowed)
        chances[:, begin : begin + at_once] = chance[at_least[:, of], np.arange(len(of))]
    return chances


def _expected_iprec(
    judged: Judged, *, recall: float, rule: str = "exact", rel: float = 1
) -> Floats:
    return _expected_average(judged, levels=(recall,), rule=rule, rel=rel)


def _expected_average(
    judged: Judged, *, levels: Levels = ELEVEN, rule: str = "exact", rel: float = 1
) -> Floats:
    groups, alone = relevant_or_not(judged, rel)
    rank = worst_ranks(judged, rel, groups, alone)
    needed = np.array([_needed(judged, level, rule, rel) for level in levels])
    worst = np.array([_interpolated(judged, rank, hits, rel) for hits in needed])
    recall_levels = RecallLevels(needed, worst)
    groups = groups.of(np.flatnonzero(order_matters(groups, recall_levels).any(axis=0)))
    too_many = n_states(groups, judged.n_queries) > _MOST
    by_level = mean_interpolated(groups.of(np.flatnonzero(~too_many[groups.query])), recall_levels)
    value: Floats = np.add.accumulate(by_level[::-1])[-1] / len(levels)
    parameters = {"levels": levels, "rule": rule, "rel": rel}
    return write_over_orders(value, too_many, eleven_point_average, judged, parameters, rel=rel)


@family(
    "IPrec",
    title="interpolated precision at a recall level",
    formula="max over ranks with recall >= level of precision",
    source="Salton & McGill 1983; Buckley & Voorhees, trec_eval",
    expected=_expected_iprec,
    exact_to=_EXACT_TO,
    monotone="order",
    spellings={
        **_by_version("iprec_at_recall_{recall}"),
        "trec_eval-8": (Spelling("ircl_prn_{recall}", {"rule": "trec_eval-9"}),),
        "ir_measures": ("IPrec@{recall}",),
    },
)
def interpolated_precision(
    judged: Judged, *, recall: Chance, rule: str = "exact", rel: float = 1
) -> Floats:
    """Greatest precision at any rank with at least the given recall.

    In [0, 1], higher is better; 0/0 without relevant documents. ``rule`` says when recall r of R
    documents is reached: "exact" at hits >= r * R, "trec_eval-9" at hits >= int(r * R + 0.9),
    "trec_eval-10" at hits >= round(r * R).
    """
    return _interpolated(judged, judged.relevant(rel).rank, _needed(judged, recall, rule, rel), rel)


@family(
    "IAP11",
    title="eleven-point average precision",
    formula="mean of IPrec over the recall levels 0, 0.1 ... 1",
    source="Salton & McGill 1983; Buckley & Voorhees, trec_eval",
    expected=_expected_average,
    exact_to=_EXACT_TO,
    monotone="order",
    spellings={
        **_by_version("11pt_avg", "11pt_avg_{levels}"),
        "trec_eval-8": (Spelling("11-pt_avg", {"rule": "trec_eval-9"}),),
    },
)
def eleven_point_average(
    judged: Judged, *, levels: Levels = ELEVEN, rule: str = "exact", rel: float = 1
) -> Floats:
    """Mean of the interpolated precisions at recall levels, eleven unless others are given.

    In [0, 1], higher is better; 0/0 without relevant documents. ``rule`` as of IPrec.
    """
    total = np.zeros(judged.n_queries)
    for level in reversed(levels):  # trec_eval adds from the greatest level down
        total += interpolated_precision(judged, recall=level, rule=rule, rel=rel)
    return total / len(levels)


@family(
    "RprecMult",
    title="precision at a multiple of R",
    formula="hits(k) / k at k = int(multiple * R + 0.9)",
    source="Buckley & Voorhees, trec_eval",
    linear=True,
    monotone="order",
    spellings={"trec_eval": ("Rprec_mult_{multiple}",)},
)
def rprec_multiple(judged: Judged, *, multiple: Positive, rel: float = 1) -> Floats:
    """Precision at a multiple of R: below 1, of the first ranks; above 1, of later ranks too.

    In [0, 1], higher is better; 0/0 without relevant documents.
    """
    n_relevant = judged.n_relevant(rel)
    cutoff = _nearly_up(multiple, n_relevant)
    share = ratio(judged.hits(rel, cutoff), cutoff, otherwise=0.0)
    share[n_relevant == 0] = np.nan
    return share
