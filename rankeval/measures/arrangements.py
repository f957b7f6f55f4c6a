"""Count and list the distinct arrangements of a group of tied rows, down to the last place that matters.

Rows that a measure cannot tell apart are of one kind. 30 tied rows, 5 of them relevant, have 142,506 arrangements; the
first ten of their places have only 638. Those are not equally likely, so each comes with its chance:

    counts (2, 1): rows a a b       places 2       kinds  a a   a b   b a        chance  1/3  1/3  1/3
    counts (3, 1): rows a a a b     places 2       kinds  a a   a b   b a        chance  1/2  1/4  1/4
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
        Number of rows of each kind, the greatest first.
    places : int
        Number of places to fill, at most the number of rows.
    most : int
        If there are more ways than this, any number above it may be returned.
    """
    # First a cheap lower bound, all other kinds taken as one: large groups end here.
    others = sum(counts[1:])
    at_least = 0
    for number in range(max(0, places - counts[0]), min(others, places) + 1):
        at_least += _choose(places, number, most)
        if at_least > most:
            return at_least
    ways = [1] * (min(counts[0], places) + 1)  # ways[n]: to fill n places with the kinds so far
    for count in counts[1:]:
        longest = min(places, len(ways) - 1 + count)
        ways = [
            sum(comb(length, own) * ways[length - own] for own in _numbers(length, count, len(ways)))
            for length in range(longest + 1)
        ]
        if max(ways) > most:  # each of them can be continued to all places
            return max(ways)
    return ways[places]


def _numbers(length: int, count: int, known: int) -> range:
    """Return how many of ``length`` places a new kind of ``count`` rows can take; the others fill < ``known``."""
    return range(max(0, length - known + 1), min(count, length) + 1)


def _choose(n: int, k: int, most: int) -> int:
    """Return n over k, or some number above ``most`` if it is greater than that."""
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
        Number of rows of each kind.
    places : int
        Number of places to fill.

    Returns
    -------
    kinds : ndarray of shape (n_arrangements, places)
        The kind at each place.
    chance : ndarray of shape (n_arrangements,)
        The share of all orders of the rows that begin with this arrangement.
    """
    # A tree, grown place by place: a branch for each kind that has rows left. `steps` keeps each branch's parent.
    left, chance, size = np.array([counts]), np.ones(1), sum(counts)
    steps = []
    for place in range(places):
        came_from, kind = np.nonzero(left)
        chance = chance[came_from] * left[came_from, kind] / (size - place)
        left = left[came_from]
        left[np.arange(len(kind)), kind] -= 1
        steps.append((came_from, kind))
    # Walk back from the leaves to the root and read the kinds.
    kinds = np.empty((len(chance), places), dtype=np.uint32)
    at = np.arange(len(chance))
    for place, (came_from, kind) in reversed(list(enumerate(steps))):
        kinds[:, place] = kind[at]
        at = came_from[at]
    return kinds, chance
