"""What stands above a row of a group of tied rows: the distribution of the gain drawn before it.

A row at place t of a group of n tied rows has t - 1 of the others above it, any of them with equal chance. How many of
these have a gain is hypergeometric; given that, the sum of their gains is that of a random subset of the rows with a
gain, built up one kind (rows of one gain) after the other, subsets of one size and one sum taken together. A measure
that asks of what is above a row only for its gain has the mean

    sum over kinds of rows(kind) / n * sum over places, sums of chance(sum above | place, kind) * f(kind, place, sum).

For gains that are whole numbers the sums are few; for others there may be as many as subsets by kind, and those beyond
`MOST` are left to drawn orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rankeval.join.flat import Floats, Ints, spread
from rankeval.join.judged import Groups, Judged
from rankeval.measures.lattice import CELLS, alike, drawn

MOST = 2**19
"""Subsets of a group by size and sum, or its places by sums above, beyond which orders are drawn instead: a fifth of a
second for 300 tied rows of four grades."""

EXACT_TO = "some hundred tied rows with whole gains, fewer if sums of gains differ by a fraction"
"""What is exact, for people."""


class Above(NamedTuple):
    """Of one kind of row in a group: its gain, its share, and the chances of sums above by place.

    Parameters
    ----------
    gain : float
        Gain of the kind.
    share : float
        Share of the rows of the group that are of the kind.
    sums : ndarray of shape (n_sums,)
        Gains that the rows of the group above it may have together.
    chance : ndarray of shape (n_places, n_sums)
        Chance of each, given the place.
    """

    gain: float
    share: float
    sums: Floats
    chance: Floats

    def mean(self, n_groups: int, value: Callable[[slice, Ints, Floats], Floats]) -> Floats:
        """Return the sum over places of the mean of a value, weighed by the share of the group that is of this kind.

        Parameters
        ----------
        n_groups : int
            Groups of this composition.
        value : callable
            ``value(groups, place, sums)`` for some groups, and for all pairs of a place (from 0) and a sum that may
            stand above it; of shape (n_groups, n_pairs).

        Returns
        -------
        ndarray of shape (n_groups,)
        """
        place, possible = np.nonzero(self.chance)
        chance, sums = self.chance[place, possible] * self.share, self.sums[possible]
        step = max(1, CELLS // len(sums))
        parts = [slice(first, min(first + step, n_groups)) for first in range(0, n_groups, step)]
        # In rows, so that a group's sum is added up in one order, whichever groups are beside it.
        weighed = (np.ascontiguousarray(value(some, place, sums) * chance) for some in parts)
        return np.concatenate([one.sum(axis=1) for one in weighed])


def by_composition(
    judged: Judged, groups: Groups, gain: Floats, places: Ints
) -> Iterator[tuple[tuple[Above, ...] | None, Ints]]:
    """Yield the kinds of groups, None where there are too many sums, and the groups that consist of these."""
    for present, seen, at in compositions(judged, groups, gain, places):
        yield kinds_of(present, seen), at


def compositions(
    judged: Judged, groups: Groups, gain: Floats, places: Ints
) -> Iterator[tuple[tuple[tuple[float, int], ...], int, Ints]]:
    """Yield gains with their numbers of rows, places that count, and the groups that have these."""
    kinds, kind_of = np.unique(gain, return_inverse=True)
    size = groups.end - groups.start
    step = max(1, CELLS // len(kinds))  # labels may be many
    for first in range(0, len(size), step):
        some = slice(first, first + step)
        row, group = spread(groups.start[some], size[some])
        counts = np.bincount(group * len(kinds) + kind_of[judged.code[row]], minlength=len(size[some]) * len(kinds))
        table = np.column_stack((places[some], counts.reshape(-1, len(kinds))))
        for (seen, *rows), at in alike(table):
            present = tuple((one, number) for one, number in zip(kinds.tolist(), rows, strict=True) if number)
            yield present, seen, first + at


def kinds_of(rows: tuple[tuple[float, int], ...], places: int) -> tuple[Above, ...] | None:
    """Return the kinds of a group, from gains and numbers of rows, or None where there are too many sums."""
    found = []
    for at, (gain, number) in enumerate(rows):
        others = [(one, rows_of - (place == at)) for place, (one, rows_of) in enumerate(rows)]
        without = sum(rows_of for one, rows_of in others if one == 0)
        above = _above(without, [one for one in others if one[0] and one[1]], places)
        if above is None:
            return None
        found.append(Above(gain, number / sum(number for _, number in rows), *above))
    return tuple(found)


def _above(without: int, rows: list[tuple[float, int]], places: int) -> tuple[Floats, Floats] | None:
    """Return sums of gains, and the chance of each among the first 0 ... places - 1 of these rows and those without."""
    # Of subsets of the rows so far: their size, their sum, and the chance of that among those of this size.
    subset, total, chance = np.zeros(1, dtype=np.int64), np.zeros(1), np.ones(1)
    so_far = 0
    for gain, number in rows:
        more = np.arange(min(number, places - 1) + 1)
        if max(len(subset), min(so_far + number + 1, places)) * len(more) > MOST:
            return None
        before, more = (part.ravel() for part in np.broadcast_arrays(np.arange(len(subset))[:, None], more))
        fits = subset[before] + more < places
        before, more = before[fits], more[fits]
        size, sums = subset[before] + more, total[before] + more * gain
        # Of a subset of both, the chance that so many are of this kind.
        share = chance[before] * drawn(number, so_far, places - 1)[size, more]
        order = np.lexsort((sums, size))
        first = np.flatnonzero((np.diff(size[order], prepend=-1) != 0) | (np.diff(sums[order], prepend=-1) != 0))
        subset, total = size[order][first], sums[order][first]
        chance = np.add.reduceat(share[order], first)
        so_far += number
    sums, at = np.unique(total, return_inverse=True)
    if places * max(len(sums), min(so_far + 1, places)) > MOST:
        return None
    by_size = np.zeros((min(so_far, places - 1) + 1, len(sums)))
    by_size[subset, at] = chance
    return sums, drawn(so_far, without, places - 1) @ by_size
