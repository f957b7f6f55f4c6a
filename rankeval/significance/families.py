"""Families of comparisons: which p-values are corrected together, and notes on their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rankeval.significance.declarations import Floats, Settings, SignificanceTest
from rankeval.significance.registry import CORRECTIONS, TESTS


def adjust_by_family(
    correction: str,
    p: Floats,
    d: Floats,
    scores: Floats,
    pairs: Sequence[tuple[int, int]],
    size: int,
    settings: Settings,
) -> Floats:
    """Adjust within each family: all columns, or those of each measure.

    Parameters
    ----------
    correction : str
        A key of `CORRECTIONS`.
    p : ndarray of shape (n_measures * n_pairs,)
        Raw p-values, the pairs of a measure beside each other.
    d : ndarray of shape (n_queries, n_measures * n_pairs)
        Differences in the same order.
    scores : ndarray of shape (n_queries, n_systems, n_measures)
        The scores that the differences were taken of.
    pairs : sequence of (int, int)
        Baseline and system of each pair.
    size : int
        Number of comparisons in one family.
    settings : Settings
        Alternative and resamples, for joint corrections.

    Returns
    -------
    ndarray of shape (n_measures * n_pairs,)
        Adjusted p-values, never below the raw ones (joint corrections have a test of their own).
    """
    declared = CORRECTIONS[correction]
    parts = []
    for start in range(0, len(p), size):
        family = slice(start, start + size)
        if declared.needs == "differences":
            parts.append(declared.function(d[:, family], settings))
        elif declared.needs == "scores":
            measures = slice(start // len(pairs), (start + size) // len(pairs))
            parts.append(declared.function(scores[:, :, measures], pairs, settings).T.ravel())
        else:
            parts.append(declared.function(p[family]))
    return np.maximum(np.concatenate(parts), p)


def family_level(alpha: float, correction: str, size: int) -> float:
    """Return the level at which the hardest comparison of a family is tested.

    Parameters
    ----------
    alpha : float
        Level of the family.
    correction : str
        A key of `CORRECTIONS`.
    size : int
        Number of comparisons.

    Returns
    -------
    float
        ``alpha / size`` if any false claim is controlled (a lower bound for joint corrections), else alpha.
    """
    return alpha / size if CORRECTIONS[correction].familywise else alpha


def family_notes(test: SignificanceTest, correction: str, size: int) -> list[str]:
    """Return notes on the limits of the correction, and on the test that its p-values come from."""
    declared = CORRECTIONS[correction]
    notes = [declared.note.format(size=size)] if declared.note and size > 1 else []
    own_test = TESTS.get(declared.own_test, test)
    if own_test is not test:
        notes.append(
            f"adjusted p-values come from the {own_test.words}, joint over the family; raw ones from the {test.words}"
        )
    return notes


def resolution_notes(test: SignificanceTest, correction: str, size: int, n: int, settings: Settings) -> list[str]:
    """Return a note if no data could have led to a rejection."""
    joint = CORRECTIONS[correction].is_joint
    level = settings.alpha if joint else family_level(settings.alpha, correction, size)
    # A joint correction has a smallest p-value of its own, and no adjusted p-value is below its raw one.
    floor, at_random = max((one.floor(n, settings), one.is_random(n)) for one in (test, CORRECTIONS[correction]))
    if floor <= level * (1 + 1e-9):
        return []
    needed = math.ceil(settings.n_resamples * floor / level)
    remedy = f"ask for n_resamples={needed} or more" if at_random else "more queries are needed"
    possible = f"the smallest p-value possible is {floor:.2g}, and the family of {size} asks for {level:.2g}"
    return [f"nothing can be significant here: {possible}; {remedy}"]
