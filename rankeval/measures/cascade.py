"""Cascade measures: a user goes down the list and may stop at each document, satisfied.

What a row adds is its gain, times the discount of its rank, times the chance that no row above has stopped the user:
the sum over ranks of discount(rank) gain(row) prod over rows above of (1 - stop(row)). Expected reciprocal rank and
pFound are such sums, and so is, aspect by aspect, every measure of novelty (see `diversity`).
"""

from __future__ import annotations

import numpy as np

from rankeval._registry import unknown
from rankeval.errors import InvalidInput
from rankeval.join.flat import Floats, Ints
from rankeval.join.judged import Judged
from rankeval.measures.family import family
from rankeval.measures.graded import GREATEST

_GONE = 1e-25
"""Below this chance that a user is still there, nothing is added that a float could show."""


def cascade(judged: Judged, gain: Floats, stop: Floats, discount: Floats, cutoff: int | None = None) -> Floats:
    """Return the discounted gain of the users who come so far; its mean over orders where rows are tied.

    Parameters
    ----------
    judged : Judged
        The chunk.
    gain, stop : ndarray of shape (n_levels,)
        Gain of each label, and the chance that a user stops there.
    discount : ndarray of shape (at least the longest list or the cut-off,)
        Factor of each rank.
    cutoff : int, optional
        Deepest rank that counts.

    Returns
    -------
    ndarray of shape (n_queries,)
    """
    row = np.flatnonzero(((gain != 0) | (stop != 0))[judged.code])
    query = np.searchsorted(judged.offsets, row, side="right") - 1
    rank = row - judged.offsets[query]
    tied = np.zeros(len(row), dtype=bool)
    if len(judged.groups.start):
        tied = np.isin(row, judged.tied_rows()[0])
    if cutoff is not None:
        within = (rank < cutoff) | tied  # a row that is tied may come within the cut-off
        row, query, rank, tied = row[within], query[within], rank[within], tied[within]
    code = judged.code[row]
    adds = np.where(tied, 0.0, gain[code] * discount[rank])
    still = _still_there(judged, query, 1 - stop[code])
    total = judged.sums(query, adds * still)
    if len(judged.groups.start):
        total += _tied_part(judged, gain, stop, discount, cutoff, row, still)
    return total


def _still_there(judged: Judged, query: Ints, passes: Floats) -> Floats:
    """Return the chance, before each of the rows given, that a user has passed all rows above it in its query."""
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
    """Return what tied rows add to each query, on average over their orders."""
    total = np.zeros(judged.n_queries)
    first = np.searchsorted(row, judged.groups.start)
    for start, end, at, of_query in zip(
        judged.groups.start.tolist(), judged.groups.end.tolist(), first.tolist(), judged.groups.query.tolist(),
        strict=True,
    ):  # fmt: skip
        begin = start - int(judged.offsets[of_query])
        places = end - start if cutoff is None else min(end - start, cutoff - begin)
        if places <= 0 or at == len(row) or row[at] >= end or not still[at]:
            continue
        counts = np.bincount(judged.code[start:end], minlength=len(gain))
        mean = _mean_of_group(counts, gain, 1 - stop, places)
        total[of_query] += still[at] * float((discount[begin : begin + places] * mean).sum())
    return total


def _mean_of_group(counts: Ints, gain: Floats, passes: Floats, places: int) -> Floats:
    """Return, for the first places of a group in random order, the mean gain of a place times passing those above.

    A place has a row of label l with chance n_l / m, and above it then stand random rows out of the others.
    """
    size = int(counts.sum())
    mean = np.zeros(places)
    for label in np.flatnonzero((counts > 0) & (gain != 0)):
        others = counts.copy()
        others[label] -= 1
        mean += gain[label] * counts[label] / size * _mean_products(others, passes, places)
    return mean


def _mean_products(counts: Ints, passes: Floats, places: int) -> Floats:
    """Return the mean product of j factors drawn without replacement, for j = 0 ... places - 1.

    Elementary symmetric means, built up factor by factor: of n + 1 factors, one given factor is among j drawn ones
    with chance j / (n + 1).
    """
    ones = int(counts[passes == 1].sum())
    product = np.zeros(places)
    product[: ones + 1] = 1.0
    number = ones
    drawn = np.arange(places)
    for label in np.flatnonzero((counts > 0) & (passes != 1)):
        for _ in range(int(counts[label])):
            number += 1
            inside = drawn / number
            shifted = np.concatenate(([0.0], product[:-1]))
            product = np.where(drawn <= number, (1 - inside) * product + inside * passes[label] * shifted, 0.0)
    return product


def chances(judged: Judged, name: str, max_rel: float, gain: str) -> Floats:
    """Return the chance that a document of each label satisfies the user, by its grade and the greatest one.

    Parameters
    ----------
    judged : Judged
        The chunk.
    name : str
        The measure, for messages.
    max_rel : float
        The greatest grade that a document can have.
    gain : {"exp", "linear"}
        (2^rel - 1) / 2^max_rel, or rel / max_rel.

    Raises
    ------
    InvalidInput
        When a label is greater than that.
    UnknownName
        For another gain.
    """
    level = np.maximum(np.asarray(judged.levels, dtype=np.float64), 0)
    if max_rel <= 0 or level[-1] > max_rel:
        raise InvalidInput(
            f"{name}: max_rel is the greatest grade of the scale, above 0 (found max_rel={max_rel}, and a document of "
            f"grade {level[-1]:g})"
        )
    if gain == "exp":
        if max_rel > GREATEST:
            raise InvalidInput(
                f"{name}: max_rel is {max_rel:g}, and 2^{max_rel:g} cannot be computed: gain='linear' can"
            )
        stop: Floats = (np.exp2(level) - 1) / np.exp2(max_rel)
        return stop
    if gain == "linear":
        share: Floats = level / max_rel
        return share
    raise unknown("gain", str(gain), ("exp", "linear"))


def ranks(judged: Judged, cutoff: int | None) -> Floats:
    """Return the ranks from 1 to the deepest that any list has."""
    return np.arange(1, max(judged.longest, cutoff or 0) + 1, dtype=np.float64)


@family(
    "ERR",
    title="expected reciprocal rank",
    formula="sum over ranks of (1/rank) s(rel) prod above of (1 - s(rel)), s(rel) = (2^rel - 1) / 2^max_rel",
    source="Chapelle, Metzler, Zhang & Grinspan 2009",
    doi="10.1145/1645953.1646033",
    linear=True,
    monotone="grade",
    spellings={"gdeval": ("err@{cutoff}",)},
)
def expected_reciprocal_rank(judged: Judged, *, max_rel: float, gain: str = "exp", cutoff: int | None = None) -> Floats:
    """Mean of one over the rank at which a user, stopping with a chance that grows with the grade, is satisfied.

    In [0, 1), higher is better; 0 without relevant documents. ``max_rel``, the greatest grade of the scale, must be
    given: taken from the data, one document would move every value. gdeval and ir_measures use 4. Tied rows: exact.
    """
    stop = chances(judged, "ERR", max_rel, gain)
    return cascade(judged, stop, stop, 1 / ranks(judged, cutoff), cutoff)


@family(
    "pFound",
    title="chance to find something relevant",
    formula="sum over ranks of (1 - p_break)^(rank - 1) s(rel) prod above of (1 - s(rel))",
    source="Segalovich 2010; as CatBoost's PFound with max_rel=1, gain='linear'",
    linear=True,
    monotone="grade",
)
def p_found(
    judged: Judged, *, max_rel: float, p_break: float = 0.15, gain: str = "exp", cutoff: int | None = None
) -> Floats:
    """Chance that a user finds something relevant, leaving at each row for another reason with chance p_break.

    In [0, 1], higher is better; 0 without relevant documents. ``max_rel`` and ``gain`` as of ERR. Tied rows: exact.
    """
    if not 0 <= p_break <= 1:
        raise InvalidInput(f"pFound: p_break is a chance, in [0, 1] (found {p_break})")
    stop = chances(judged, "pFound", max_rel, gain)
    return cascade(judged, stop, stop, (1 - p_break) ** (ranks(judged, cutoff) - 1), cutoff)
