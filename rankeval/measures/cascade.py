"""Cascade measures: a user reads down the list and may stop at each document, satisfied.

The value is the sum over ranks of

    discount(rank) * gain(row) * prod over rows above of (1 - stop(row)),

in which the product is the chance that no row above has stopped the user. Expected reciprocal rank
and pFound have this form. So has, aspect by aspect, every measure of novelty (see `diversity`).

Rows with neither gain nor chance to stop change nothing and are left out. The trap is a group of
tied rows: the product depends on which rows of the group come first. Its mean is an elementary
symmetric mean of the factors (see `_mean_products`). Rows below the group need no such care,
because the product over the whole group is the same in every order.
"""

from __future__ import annotations

import numpy as np

from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.join.flat import Floats, Ints
from rankeval.join.judged import Judged
from rankeval.measures.family import family
from rankeval.measures.graded import GREATEST_EXPONENT
from rankeval.measures.grammar import Chance

_GONE = 1e-25
"""A user who is still reading with a smaller chance adds less than a float can show."""


def cascade(
    judged: Judged, gain: Floats, stop: Floats, discount: Floats, cutoff: int | None = None
) -> Floats:
    """Return the discounted gain of a cascade; for tied rows its mean over orders.

    Parameters
    ----------
    judged : Judged
        The chunk.
    gain, stop : ndarray of shape (n_levels,)
        Gain of each label, and the chance that a user stops at it.
    discount : ndarray of shape (at least the longest list or the cut-off,)
        Discount of each rank.
    cutoff : int, optional
        Deepest rank that counts.

    Returns
    -------
    ndarray of shape (n_queries,)
    """
    row, query, rank = judged.rows_of((gain != 0) | (stop != 0))
    tied = np.isin(row, judged.tied_rows()[0])
    if cutoff is not None:
        within = (rank < cutoff) | tied  # another order may bring a tied row within the cut-off
        row, query, rank, tied = row[within], query[within], rank[within], tied[within]
    code = judged.code[row]
    adds = np.where(tied, 0.0, gain[code] * discount[rank])
    still = _still_there(judged, query, 1 - stop[code])
    total = judged.sums(query, adds * still)
    if len(judged.groups.start):
        total += _tied_part(judged, gain, stop, discount, cutoff, row, still)
    return total


def _still_there(judged: Judged, query: Ints, passes: Floats) -> Floats:
    """Return the chance that a user reads each of some rows, having passed all rows above it."""
    # Step by step down all queries at once; a query leaves when its rows end or nobody is left.
    first = np.searchsorted(query, np.arange(judged.n_queries + 1))
    still = np.zeros(len(query))
    at, left = first[:-1], np.diff(first)
    chance = np.ones(judged.n_queries)
    for step in range(int(left.max(initial=0))):
        on = (step < left) & (chance > _GONE)
        if not on.any():
            break
        at, left, chance = at[on], left[on], chance[on]
        still[at + step] = chance
        chance = chance * passes[at + step]
    return still


def _tied_part(
    judged: Judged,
    gain: Floats,
    stop: Floats,
    discount: Floats,
    cutoff: int | None,
    row: Ints,
    still: Floats,
) -> Floats:
    total = np.zeros(judged.n_queries)
    first = np.searchsorted(row, judged.groups.start)
    groups = (numbers.tolist() for numbers in (*judged.groups, first))
    for start, end, of_query, at in zip(*groups, strict=True):
        begin = start - int(judged.offsets[of_query])
        places = end - start if cutoff is None else min(end - start, cutoff - begin)
        if places <= 0 or at == len(row) or row[at] >= end or not still[at]:
            continue
        counts = np.bincount(judged.code[start:end], minlength=len(gain))
        mean = _mean_of_group(counts, gain, 1 - stop, places)
        total[of_query] += still[at] * float((discount[begin : begin + places] * mean).sum())
    return total


def _mean_of_group(counts: Ints, gain: Floats, passes: Floats, places: int) -> Floats:
    """Return the mean, at the first places of a group, of gain times chance to pass the rows above.

    A place has a row of label l with chance n_l / m. The rows above it are then a random choice of
    the others.
    """
    size = int(counts.sum())
    mean = np.zeros(places)
    for label in np.flatnonzero((counts > 0) & (gain != 0)):
        others = counts.copy()
        others[label] -= 1
        mean += gain[label] * counts[label] / size * _mean_products(others, passes, places)
    return mean


def _mean_products(counts: Ints, passes: Floats, places: int) -> Floats:
    """Return the mean product of j factors drawn without replacement, for j = 0 to places - 1.

    These are elementary symmetric means, built up factor by factor: if j of n + 1 factors are
    drawn, a given factor is among them with chance j / (n + 1).
    """
    # Factors of 1 come first and at once: any number of them has the product 1.
    number = int(counts[passes == 1].sum())
    product = np.zeros(places)
    product[: number + 1] = 1.0
    drawn = np.arange(places)
    for label in np.flatnonzero((counts > 0) & (passes != 1)):
        for _ in range(int(counts[label])):
            number += 1
            inside = drawn / number
            shifted = np.concatenate(([0.0], product[:-1]))
            product = (1 - inside) * product + inside * passes[label] * shifted
            product[drawn > number] = 0.0
    return product


def stop_chances(judged: Judged, name: str, max_rel: float, gain: str) -> Floats:
    """Return the chance of each label to satisfy: (2^rel - 1) / 2^max_rel, or rel / max_rel."""
    chosen("gain", gain, ("exp", "linear"))
    level = np.maximum(np.asarray(judged.levels, dtype=np.float64), 0)
    if max_rel <= 0 or level[-1] > max_rel:
        raise InvalidInput(
            f"{name}: max_rel must be above 0 and the greatest grade of the scale (found "
            f"max_rel={max_rel}, and a document of grade {level[-1]:g})"
        )
    if gain == "linear":
        return level / max_rel
    if max_rel > GREATEST_EXPONENT:
        raise InvalidInput(
            f"{name}: max_rel is {max_rel:g}, and 2^{max_rel:g} is too large: give gain='linear'"
        )
    stop: Floats = (np.exp2(level) - 1) / np.exp2(max_rel)
    return stop


def ranks(judged: Judged, cutoff: int | None) -> Floats:
    """Return the ranks from 1 to the end of the longest list, or to a deeper cut-off."""
    return np.arange(1, max(judged.longest, cutoff or 0) + 1, dtype=np.float64)


@family(
    "ERR",
    title="expected reciprocal rank",
    formula="sum over ranks of (1/rank) s(rel) prod above of (1 - s(rel)), "
    "s(rel) = (2^rel - 1) / 2^max_rel",
    source="Chapelle, Metzler, Zhang & Grinspan 2009",
    doi="10.1145/1645953.1646033",
    expected="kernel",
    monotone="grade",
    spellings={"gdeval": ("err@{cutoff}",)},
    known_as={"expected reciprocal rank": ("expected_reciprocal_rank",)},
)
def expected_reciprocal_rank(
    judged: Judged, *, max_rel: float, gain: str = "exp", cutoff: int | None = None
) -> Floats:
    """Mean of one over the rank at which a user is satisfied, with a chance that grows by grade.

    In [0, 1), higher is better; 0 without relevant documents. ``max_rel``, the greatest grade of
    the scale, must be given: if it came from the data, one document could change every value.
    gdeval and ir_measures use 4.
    """
    stop = stop_chances(judged, "ERR", max_rel, gain)
    return cascade(judged, stop, stop, 1 / ranks(judged, cutoff), cutoff)


@family(
    "pFound",
    title="chance to find a relevant document",
    formula="sum over ranks of (1 - p_break)^(rank - 1) s(rel) prod above of (1 - s(rel))",
    source="Segalovich 2010; as CatBoost's PFound with max_rel=1, gain='linear'",
    expected="kernel",
    monotone="grade",
)
def p_found(
    judged: Judged,
    *,
    max_rel: float,
    p_break: Chance = 0.15,
    gain: str = "exp",
    cutoff: int | None = None,
) -> Floats:
    """Chance that a user, who gives up with chance p_break after each row, finds a document.

    In [0, 1], higher is better; 0 without relevant documents. ``max_rel`` and ``gain`` as of ERR.
    """
    stop = stop_chances(judged, "pFound", max_rel, gain)
    return cascade(judged, stop, stop, (1 - p_break) ** (ranks(judged, cutoff) - 1), cutoff)
