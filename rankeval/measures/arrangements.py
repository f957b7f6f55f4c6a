"""The distinct arrangements of a group of tied rows, from its first place as far down as they matter.

Rows that a measure cannot tell apart are of one kind: of 30 tied rows, 5 of them relevant, there are 142,506
arrangements, and 1,024 of their first ten places. These are not equally likely; each has its chance.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats

Kinds = NDArray[np.uint32]


def number_of_arrangements(counts: tuple[int, ...], places: int, most: int) -> int:
    """Return in how many distinct ways the first places of a group can be filled.

    Parameters
    ----------
    counts : tuple of int
        How many rows there are of each kind, the greatest number first.
    places : int
        How many places are filled, up to the number of rows.
    most : int
        Where there are more ways than this, any number above it may be returned.
    """
    others = sum(counts[1:])
    at_least = 0  # of ways to set the first kind apart from all others
    for number in range(max(0, places - counts[0]), min(others, places) + 1):
        at_least += _choose(places, number, most)
        if at_least > most:
            return at_least
    ways = [1] * (min(counts[0], places) + 1)  # by length, with the kinds so far
    for count in counts[1:]:
        longest = min(places, len(ways) - 1 + count)
        ways = [
            sum(comb(length, own) * ways[length - own] for own in _numbers(length, count, len(ways)))
            for length in range(longest + 1)
        ]
        if max(ways) > most:  # each can be continued to all places
            return max(ways)
    return ways[places]


def _numbers(length: int, count: int, known: int) -> range:
    return range(max(0, length - known + 1), min(count, length) + 1)


def _choose(n: int, k: int, most: int) -> int:
    """Return n over k, or a number above ``most`` where it is greater."""
    k = min(k, n - k)
    number = 1
    for one in range(1, k + 1):
        number = number * (n - k + one) // one
        if number > most:
            break
    return number


@lru_cache(maxsize=16)
def arrangements(counts: tuple[int, ...], places: int) -> tuple[Kinds, Floats]:
    """Return all distinct ways to fill the first places of a group, and the chance of each.

    Parameters
    ----------
    counts : tuple of int
        How many rows there are of each kind.
    places : int
        How many places are filled.

    Returns
    -------
    kinds : ndarray of shape (n_arrangements, places)
        Which kind stands where.
    chance : ndarray of shape (n_arrangements,)
        The share of all orders of the rows that begin so.
    """
    left, chance, size = np.array([counts]), np.ones(1), sum(counts)
    steps = []
    for place in range(places):
        came_from, kind = np.nonzero(left)
        chance = chance[came_from] * left[came_from, kind] / (size - place)
        left = left[came_from]
        left[np.arange(len(kind)), kind] -= 1
        steps.append((came_from, kind))
    kinds = np.empty((len(chance), places), dtype=np.uint32)
    at = np.arange(len(chance))
    for place, (came_from, kind) in reversed(list(enumerate(steps))):
        kinds[:, place] = kind[at]
        at = came_from[at]
    return kinds, chance
