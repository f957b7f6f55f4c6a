"""Measures of users whose patience depends on their finds: the C/W/L framework of Moffat, Thomas & Scholer.

A user at rank i reads on with chance C(i). The attention W(i) of rank i is proportional to the product of C over the
ranks above, and the value is the gain per rank read:

    rank              1       2            3
    gain g            1       0            0.5
    read on, C        C(1)    C(2)         C(3)
    attention, W      1       C(1)         C(1) C(2)            value = sum W g / sum W

Lists end at ``depth`` ranks; shorter lists are filled up with rows without gain (cwl_eval does so at 1000).

For tied rows, BPM uses the distribution of the gain above a row, the NERR measures have a transform (below), and
INST scores orders.

The trap is BPM, whose users stop at a sum of gains of T. Whether a sum like 1/3 + 1/3 + 1/3 reaches 1 depends on
rounding, and rounding depends on the order: see `_stops_at`.

The mean of the NERR measures over the orders of tied rows.

A NERR value is gain per rank looked at: A / B with A = sum of W(i) g(i) and B = sum of W(i). The attention W(i) of rank
i is a patience that depends on the rank alone, times (1 - g) of every row above. So inside a group of tied rows it
depends on the rows above only by their number for each gain.

The mean of a quotient becomes an integral of means,

    mean of A / B = integral over t > 0 of the mean of A exp(-t B),

and the mean inside is found place by place, as in `chances` but with a state for each number of rows by gain:

    group   gains 1 1 0.5 0       states (n1, n0.5)   (0,0) (1,0) (2,0) (0,1) (1,1) (2,1)
    each state holds              plain = mean of exp(-t B)     gained = mean of A exp(-t B)     so far, for every t

Groups are independent: their exponentials multiply (see `_of_queries`). Over x = log t the integrand is analytic, and a
plain sum over steps of 0.28 is as exact as the arithmetic: the error of such a sum falls exponentially with 1 / step.

The trap is the left end, where t is small and the integrand falls too slowly. So mean(A) exp(-t b), for a b near B, is
subtracted from the integrand, and its integral mean(A) / b is added to the result. The rest falls like t^2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.join.flat import Floats, Ints, ratio
from rankeval.join.judged import Groups, Judged
from rankeval.measures.cascade import ranks
from rankeval.measures.chances import CELLS, EXACT_TO, Above, as_listed, by_composition, compositions, distinct_rows
from rankeval.measures.family import GainMap, family
from rankeval.measures.graded import gains_of, summable
from rankeval.measures.grammar import Chance, Depth, Positive, Share
from rankeval.measures.incomplete import persistence
from rankeval.measures.tie_enumeration import write_over_orders

DEPTH = 1000
"""Default number of ranks in measures without a cut-off: cwl_eval's value."""


def scaled_gains(judged: Judged, name: str, min_rel: float, max_rel: float) -> Floats:
    """Return the gain of each label, (rel - min_rel) / (max_rel - min_rel), 0 below min_rel.

    Parameters
    ----------
    judged : Judged
        The chunk.
    name : str
        The name of the measure, for messages.
    min_rel, max_rel : float
        Grades with gain 0 and gain 1.

    Raises
    ------
    InvalidInput
        If a label is above max_rel, or min_rel is not between 0 and max_rel.
    """
    level = np.asarray(judged.levels, dtype=np.float64)
    if not 0 <= min_rel < max_rel or level[-1] > max_rel:
        raise InvalidInput(
            f"{name}: expected 0 <= min_rel < max_rel and no grade above max_rel, since unjudged documents gain 0 "
            f"(found min_rel={min_rel}, max_rel={max_rel}, and a document of grade {level[-1]:g})"
        )
    return (np.maximum(level, min_rel) - min_rel) / (max_rel - min_rel)


@family(
    "SDCG",
    title="scaled discounted cumulative gain",
    formula="sum to k of g(rel) / log2(1 + rank) over sum to k of 1 / log2(1 + rank), "
    "g = max(0, rel - min_rel) / (max_rel - min_rel)",
    source="Moffat & Zobel 2008; cwl_eval",
    doi="10.1145/1416950.1416952",
    linear=True,
    monotone="grade",
    spellings={"ir_measures": ("SDCG@{cutoff}",)},
)
def sdcg(judged: Judged, *, max_rel: float, min_rel: float = 0, cutoff: int) -> Floats:
    """DCG divided by the DCG of k documents of grade max_rel, even if the query has fewer of them.

    In [0, 1], higher is better; 0 without documents of a grade above min_rel.
    """
    discount = 1 / np.log2(ranks(judged, cutoff) + 1)
    value = judged.discounted(scaled_gains(judged, "SDCG", min_rel, max_rel), discount, cutoff)
    share: Floats = value / discount[:cutoff].sum()
    return share


@family(
    "gRBP",
    title="rank-biased precision with graded gains",
    formula="(1 - p) sum over ranks of g(rel) p^(rank - 1), g = (rel - min_rel) / (max_rel - min_rel)",
    source="Moffat & Zobel 2008",
    doi="10.1145/1416950.1416952",
    linear=True,
    monotone="grade",
)
def graded_rbp(judged: Judged, *, p: Share, max_rel: float, min_rel: float = 0, cutoff: int | None = None) -> Floats:
    """Gain per row of users who read the next row with chance p; a gain is a share of the scale's greatest grade.

    In [0, 1], higher is better; 0 without relevant documents. RBP with gain="scaled" divides by the greatest grade of
    each query instead, as trec_eval 10 does.
    """
    weight = persistence(judged, p)
    return (1 - p) * judged.discounted(scaled_gains(judged, "gRBP", min_rel, max_rel), weight, cutoff)


@family(
    "INSQ",
    title="inverse squares",
    formula="sum over ranks of W g(rel), W proportional to 1 / (rank + 2T - 1)^2, up to rank depth",
    source="Moffat, Scholer & Thomas 2012",
    doi="10.1145/2407085.2407092",
    linear=True,
    monotone="grade",
    spellings={"ir_measures": ("INSQ",)},
)
def insq(judged: Judged, *, max_rel: float, min_rel: float = 0, T: Positive = 1, depth: Depth = DEPTH) -> Floats:
    """Gain per row of users who want T documents and grow more patient with depth.

    In [0, 1], higher is better; 0 without relevant documents. Ranks below ``depth`` have no weight, as in cwl_eval.
    """
    weight = 1 / (ranks(judged, depth) + 2 * T - 1) ** 2
    value = judged.discounted(scaled_gains(judged, "INSQ", min_rel, max_rel), weight, depth)
    share: Floats = value / weight[:depth].sum()
    return share


@family(
    "NCG",
    title="normalised cumulative gain",
    formula="sum to k of gain(rel) over that of the best order",
    source="Järvelin & Kekäläinen 2002",
    doi="10.1145/582415.582418",
    linear=True,
    monotone="order",
)
def ncg(judged: Judged, *, gain: str | GainMap = "linear", cutoff: int | None = None) -> Floats:
    """Undiscounted gain within the cut-off, as a share of the greatest possible.

    In [0, 1], higher is better; 0/0 without relevant documents. ``gain`` as of DCG.
    """
    gains, flat = gains_of(judged, gain), np.ones(max(judged.longest, cutoff or 0))
    ideal = judged.ideal(gains, flat, cutoff)
    value = judged.discounted(gains, flat, cutoff)
    return ratio(value, ideal)


Continuation = Callable[[Floats, Floats], Floats]

_CELLS = 2**19
"""Cells of a table of gains: a bound on memory."""


def _gain_per_rank(judged: Judged, gain: Floats, depth: int, goes_on: Continuation) -> Floats:
    """Return the gain per rank read. ``goes_on`` gives C from the gains, (n_queries, depth), and the ranks."""
    value = np.empty(judged.n_queries)
    rank = np.arange(1, depth + 1, dtype=np.float64)
    step = max(1, _CELLS // depth)
    for first in range(0, judged.n_queries, step):
        begin, end = judged.offsets[:-1][first : first + step], judged.offsets[1:][first : first + step]
        row = begin[:, None] + np.arange(depth)
        beyond = row >= end[:, None]
        row[beyond] = 0
        gains = gain[judged.code[row]] if len(judged.code) else np.zeros(row.shape)
        gains[beyond] = 0
        weight = np.ones_like(gains)
        np.cumprod(goes_on(gains, rank)[:, :-1], axis=1, out=weight[:, 1:])
        value[first : first + step] = np.cumsum(weight * gains, axis=1)[:, -1] / np.cumsum(weight, axis=1)[:, -1]
    return value


@family(
    "INST",
    title="INST, the adaptive form of INSQ",
    formula="C(i) = ((i + T + T_i - 1) / (i + T + T_i))^2, T_i = T - gain so far",
    source="Bailey, Moffat, Scholer & Thomas 2015",
    doi="10.1145/2766462.2767728",
    expected="orders",
    spellings={"ir_measures": ("INST",)},
)
def inst(judged: Judged, *, max_rel: float, min_rel: float = 0, T: Positive = 1, depth: Depth = DEPTH) -> Floats:
    """Gain per rank read by users who want T documents and lose patience as they find them.

    In [0, 1], higher is better; 0 without relevant documents.
    """

    def goes_on(gains: Floats, rank: Floats) -> Floats:
        ahead = rank + 2 * T - np.cumsum(gains, axis=1)
        return ((ahead - 1) / ahead) ** 2

    return _gain_per_rank(judged, scaled_gains(judged, "INST", min_rel, max_rel), depth, goes_on)


_HAIR = 1e-9
"""A distance from T that exceeds all rounding errors of running sums of gains."""

_WAYS = 5000
"""The greatest number of ways to add up to T that are examined."""


@lru_cache(maxsize=256)
def _stops_at(goal: float, gains: tuple[float, ...]) -> bool | None:
    """Return whether gains with the sum T reach T in floats; None if that depends on the gains or their order.

    In floats, as in cwl_eval, three times 2/3 is 2, but six times 1/3 is slightly less. Take all numbers of rows by
    gain with a sum up to T. The least and the greatest sum over their orders follow from those of one row less,
    because rounding is monotone.
    """
    if all((gain * 2**20).is_integer() for gain in gains):
        return True  # multiples of 2**-20 add up without rounding
    kinds = [gain for gain in gains if 0 < gain < goal + _HAIR]
    sums = {(0,) * len(kinds): (0.0, 0.0)}
    reached: list[bool] = []
    ways = 0
    while sums and (ways := ways + len(sums)) < _WAYS:
        more: dict[tuple[int, ...], tuple[float, float]] = {}
        for rows, (least, greatest) in sums.items():
            for at, gain in enumerate(kinds):
                if greatest + gain < goal + _HAIR:
                    new = (*rows[:at], rows[at] + 1, *rows[at + 1 :])
                    low, high = more.get(new, (np.inf, 0.0))
                    more[new] = min(low, least + gain), max(high, greatest + gain)
        full = [more.pop(rows) for rows, (_, greatest) in list(more.items()) if greatest > goal - _HAIR]
        reached += [one >= goal for pair in full for one in pair]
        sums = more
    return None if sums or len(set(reached)) > 1 else all(reached)


def _goals(judged: Judged, gains: Floats, T: float) -> Floats:
    """Return the gain at which each query's users stop, moved off T so that rounding cannot matter; nan if unknown."""
    kinds, kind_of = np.unique(gains, return_inverse=True)
    query = np.repeat(np.arange(judged.n_queries), judged.n_retrieved)
    rows = np.bincount(query * len(kinds) + kind_of[judged.code], minlength=judged.n_queries * len(kinds))
    goal = np.empty(judged.n_queries)
    for there, queries in distinct_rows((rows > 0).astype(np.int64).reshape(judged.n_queries, -1)):
        stops = _stops_at(T, tuple(kinds[np.flatnonzero(there)].tolist()))
        goal[queries] = np.nan if stops is None else T - _HAIR if stops else T + _HAIR
    return goal


def _expected_bpm(judged: Judged, *, max_rel: float, min_rel: float = 0, T: Positive = 1, cutoff: int) -> Floats:
    """Return the mean of BPM over the orders of tied rows.

    The order matters only in the group in which users stop. They stop at rank i if they have less than T above it, and
    either have T with it or i is k.
    """
    parameters = {"max_rel": max_rel, "min_rel": min_rel, "T": T, "cutoff": cutoff}
    value = bpm(as_listed(judged), **parameters)
    span = max_rel - min_rel
    goals = _goals(judged, scaled_gains(judged, "BPM", min_rel, max_rel), T)
    grade = summable(np.maximum(np.asarray(judged.levels, dtype=np.float64) - min_rel, 0))
    total = np.concatenate(([0.0], np.cumsum(grade[judged.code])))  # unscaled grades: whole numbers add up exactly
    start, end, query = judged.groups
    goal = goals[query] * span
    begin = judged.offsets[query]
    rank, seen, with_it = start - begin, total[start] - total[begin], total[end] - total[begin]
    inside = (seen < goal) & (rank < cutoff) & ((with_it >= goal) | (end - begin >= cutoff))
    groups = judged.groups.of(inside)
    rank, seen, goal = rank[inside], seen[inside], goal[inside]
    value[groups.query] = 0
    too_many = np.zeros(judged.n_queries, dtype=bool)
    too_many[query] = np.isnan(goals[query])
    for kinds, at in by_composition(judged, groups, grade, np.minimum(groups.end - groups.start, cutoff - rank)):
        too_many[groups.query[at]] |= kinds is None
        for kind in kinds or ():

            def gain_at_stop(some: slice, place: Ints, sums: Floats, kind: Above = kind, at: Ints = at) -> Floats:
                here = rank[at[some], None] + place + 1
                before = seen[at[some], None] + sums
                behind = before + kind.gain
                wanted = goal[at[some], None]
                stops = (before < wanted) & ((behind >= wanted) | (here == cutoff)) & (here <= cutoff)
                return np.where(stops, behind / here, 0.0)

            value[groups.query[at]] += kind.mean(len(at), gain_at_stop) / span
    return write_over_orders(value, too_many, bpm, judged, parameters)


@family(
    "BPM",
    title="Bejeweled player model",
    formula="C(i) = 1 while the gain so far is below T and i < k, else 0",
    source="Zhang, Liu, Li, Zhang, Xu & Ma 2017, static form",
    doi="10.1145/3077136.3080841",
    expected=_expected_bpm,
    exact_to=f"{EXACT_TO}, and if gains that add up to T do so in floats",
    spellings={"ir_measures": ("BPM@{cutoff}",)},
)
def bpm(judged: Judged, *, max_rel: float, min_rel: float = 0, T: Positive = 1, cutoff: int) -> Floats:
    """Gain per rank read by users who stop when they have the gain T, or at rank k.

    In [0, 1], higher is better; 0 without relevant documents.
    """

    def goes_on(gains: Floats, rank: Floats) -> Floats:
        return ((np.cumsum(gains, axis=1) < T) & (rank < cutoff)).astype(np.float64)

    return _gain_per_rank(judged, scaled_gains(judged, "BPM", min_rel, max_rel), cutoff, goes_on)


_STEP = 0.28
_T = np.concatenate(([0.0], np.exp(np.arange(-21.0, 3.8, _STEP))))
"""Nodes of the integral: 0 for the mean of A itself, then up to a t where exp(-t B) vanishes, since B is at least 1."""

_MOST = 2**17
"""States times places of a group, beyond which orders are drawn."""


class _Sums(NamedTuple):
    """Means of exp(-t B) and of A exp(-t B), each of shape (n, n_nodes)."""

    plain: Floats
    gained: Floats


def _write_expected(judged: Judged, gain: Floats, patience: Floats, value: Floats) -> NDArray[np.bool_]:
    """Write the mean over orders into ``value``, and return a mask of the queries that have too many states.

    Parameters
    ----------
    judged : Judged
        The chunk.
    gain : ndarray of shape (n_levels,)
        Gain of each label, in [0, 1].
    patience : ndarray of shape (depth,)
        Attention of each rank if nothing was found above it; 1 for the first rank.
    value : ndarray of shape (n_queries,)
        The values. Those of queries without tied rows stay.
    """
    groups = judged.groups.of(judged.groups.start - judged.offsets[judged.groups.query] < len(patience))
    too_many = np.zeros(judged.n_queries, dtype=bool)
    queries = np.unique(groups.query)
    step = max(1, min(CELLS // len(patience), 1024))
    for first in range(0, len(queries), step):
        some = queries[first : first + step]
        low, high = np.searchsorted(groups.query, (some[0], some[-1] + 1))
        value[some], too_many[some] = _of_queries(judged, groups.of(slice(low, high)), gain, patience, some)
    return too_many


def _of_queries(
    judged: Judged, groups: Groups, gain: Floats, patience: Floats, queries: Ints
) -> tuple[Floats, NDArray[np.bool_]]:
    begin, end = judged.offsets[queries], judged.offsets[queries + 1]
    row = begin[:, None] + np.arange(len(patience))
    beyond = row >= end[:, None]
    row[beyond] = 0
    gains = np.where(beyond, 0.0, gain[judged.code[row]])
    passes = np.ones((len(row), len(patience) + 1))
    np.cumprod(1 - gains, axis=1, out=passes[:, 1:])
    weight = patience * passes[:, :-1]
    centre = np.cumsum(weight, axis=1)[:, -1]
    # Rows outside of groups have a fixed weight: their part of B and of A is known. Mark groups by their ends.
    query = np.searchsorted(queries, groups.query)
    rank = groups.start - begin[query]
    size = np.minimum(groups.end - groups.start, len(patience) - rank)
    edges = np.zeros((len(row), len(patience) + 1), dtype=np.int64)
    edges[query, rank] += 1
    edges[query, rank + size] -= 1
    alone = np.where(np.cumsum(edges, axis=1)[:, :-1] > 0, 0.0, weight)
    plain = np.exp(-np.cumsum(alone, axis=1)[:, -1:] * _T)
    sums = _Sums(plain, plain * np.cumsum(alone * gains, axis=1)[:, -1:])
    too_many = np.zeros(len(queries), dtype=bool)
    by_group = _Sums(np.ones((len(query), len(_T))), np.zeros((len(query), len(_T))))
    for kinds, places, at in compositions(judged, groups, gain, size):
        states = int(np.prod([min(rows, places) + 1 for one, rows in kinds if one])) * places
        if states > _MOST:
            too_many[query[at]] = True
            continue
        step = max(1, CELLS * places // (states * len(_T)))
        for begins in range(0, len(at), step):
            some = at[begins : begins + step]
            attention = patience[rank[some, None] + np.arange(places)] * passes[query[some], rank[some], None]
            by_group.plain[some], by_group.gained[some] = _of_groups(kinds, attention)
    # Combine the groups of each query, first group first: B adds up, so exp(-t B) multiplies and A follows by product
    # rule. Groups of one number belong to different queries, so each turn is one vector operation.
    number = np.arange(len(query)) - np.searchsorted(query, query)
    for turn in range(int(number.max(initial=-1)) + 1):
        at = np.flatnonzero(number == turn)
        of, plain, gained = query[at], by_group.plain[at], by_group.gained[at]
        sums.gained[of] = sums.gained[of] * plain + sums.plain[of] * gained
        sums.plain[of] *= plain
    mean = sums.gained[:, :1]
    rest = sums.gained[:, 1:] - mean * np.exp(-_T[1:] * centre[:, None])
    return mean[:, 0] / centre + _STEP * (_T[1:] * rest).sum(axis=1), too_many


def _of_groups(kinds: tuple[tuple[float, int], ...], attention: Floats) -> _Sums:
    """Return the sums of groups of one composition, given the attention of each place if the group had no gain."""
    size = sum(rows for _, rows in kinds)
    found = [(one, rows) for one, rows in kinds if one]
    numbers = [min(rows, attention.shape[1]) + 1 for _, rows in found]
    # Axes of the tables: one for each gain (rows of it so far), then group, then node t.
    so_far = np.indices(numbers).reshape(len(found), *numbers, 1, 1)
    passed = np.prod([(1 - one) ** number for (one, _), number in zip(found, so_far, strict=True)], axis=0)
    shape = (*numbers, len(attention), len(_T))
    plain, gained = np.zeros(shape), np.zeros(shape)
    plain[(0,) * len(found)] = 1
    without = size - sum(rows for _, rows in found)
    for place in range(attention.shape[1]):
        weight = attention[:, place, None] * passed
        looked = np.exp(-weight * _T)
        plain *= looked
        gained *= looked
        # The next row has no gain with chance `left`. Else it has one of the gains, and the state moves along its axis.
        left = np.clip(without - (place - so_far.sum(axis=0)), 0, None) / (size - place)
        plain_next, gained_next = left * plain, left * gained
        for axis, (one, rows) in enumerate(found):
            here, there = (slice(None),) * axis + (slice(0, -1),), (slice(None),) * axis + (slice(1, None),)
            chance = (rows - so_far[axis][here]) / (size - place)
            plain_next[there] += chance * plain[here]
            gained_next[there] += chance * (gained[here] + weight[here] * one * plain[here])
        plain, gained = plain_next, gained_next
    axes = tuple(range(len(found)))
    return _Sums(plain.sum(axis=axes), gained.sum(axis=axes))


def _nerr(
    judged: Judged, name: str, patience: Callable[[Floats], Floats], min_rel: float, max_rel: float, depth: int
) -> Floats:
    """Return a NERR measure; for tied rows its mean over orders.

    ``patience`` gives the chance to read on after each rank without gain. A gain g multiplies that chance by 1 - g.
    """
    gain = scaled_gains(judged, name, min_rel, max_rel)

    def as_listed_to(judged: Judged, depth: int) -> Floats:
        return _gain_per_rank(judged, gain, depth, lambda gains, rank: patience(rank) * (1 - gains))

    value = as_listed_to(judged, depth)
    rank = np.arange(1, depth, dtype=np.float64)
    attention = np.concatenate(([1.0], np.cumprod(patience(rank))))
    too_many = _write_expected(judged, gain, attention, value)
    return write_over_orders(value, too_many, as_listed_to, judged, {"depth": depth})


_nearly_expected = partial(
    family,
    source="Azzopardi, Mackenzie & Moffat 2021",
    doi="10.1145/3471158.3472239",
    expected="kernel",
    exact_to="some hundred tied rows of one grade above 0, and 30 of four",
)


@_nearly_expected(
    "NERR8",
    title="nearly expected reciprocal rank, equation 8",
    formula="C(i) = 1 - g(i), to rank k",
    spellings={"ir_measures": ("NERR8@{cutoff}",)},
)
def nerr8(judged: Judged, *, max_rel: float, min_rel: float = 0, cutoff: int) -> Floats:
    """Gain per rank read by users who stop with a chance equal to the gain.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    return _nerr(judged, "NERR8", np.ones_like, min_rel, max_rel, cutoff)


@_nearly_expected(
    "NERR9",
    title="nearly expected reciprocal rank, equation 9",
    formula="C(i) = i / (i + 1) * (1 - g(i)), to rank k",
    spellings={"ir_measures": ("NERR9@{cutoff}",)},
)
def nerr9(judged: Judged, *, max_rel: float, min_rel: float = 0, cutoff: int) -> Floats:
    """Gain per rank read by users who stop with a chance equal to the gain, and else read on with chance i / (i + 1).

    In [0, 1], higher is better; 0 without relevant documents.
    """
    return _nerr(judged, "NERR9", lambda rank: rank / (rank + 1), min_rel, max_rel, cutoff)


@_nearly_expected(
    "NERR10",
    title="nearly expected reciprocal rank, equation 10",
    formula="C(i) = p (1 - g(i))",
    spellings={"ir_measures": ("NERR10",)},
)
def nerr10(judged: Judged, *, max_rel: float, min_rel: float = 0, p: Chance = 0.9, depth: Depth = DEPTH) -> Floats:
    """Gain per rank read by users who stop with a chance equal to the gain, and else read on with chance p.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    return _nerr(judged, "NERR10", lambda rank: np.full_like(rank, p), min_rel, max_rel, depth)


@_nearly_expected(
    "NERR11",
    title="nearly expected reciprocal rank, equation 11",
    formula="C(i) = ((i + 2T - 1) / (i + 2T))^2 (1 - g(i))",
    spellings={"ir_measures": ("NERR11",)},
)
def nerr11(judged: Judged, *, max_rel: float, min_rel: float = 0, T: Positive = 1, depth: Depth = DEPTH) -> Floats:
    """Gain per rank read by users who stop with a chance equal to the gain, and else have the patience of INSQ.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    return _nerr(judged, "NERR11", lambda rank: ((rank + 2 * T - 1) / (rank + 2 * T)) ** 2, min_rel, max_rel, depth)
