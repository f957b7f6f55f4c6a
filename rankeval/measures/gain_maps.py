"""Gains by grade: a map names the gains of some grades, and another grade is its own gain, as in trec_eval."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats

GainMap = tuple[tuple[float, float], ...]
"""Pairs of grade and gain."""


def mapped_gains(grades: NDArray[Any], gain: GainMap) -> Floats:
    """Return the gain of each grade; a grade below 0 has none.

    Parameters
    ----------
    grades : ndarray of shape (n,)
        Grades.
    gain : GainMap
        Gains by grade. A grade that it does not name is its own gain, as in trec_eval's ``-m ndcg.1=3.5``.
    """
    given = dict(gain)
    return np.array([given.get(one, one) if one >= 0 else 0.0 for one in grades.tolist()], dtype=np.float64)


def are_unnamed(grades: NDArray[Any], gain: GainMap) -> NDArray[np.bool_]:
    """Say which grades above 0 a map does not name.

    Parameters
    ----------
    grades : ndarray of shape (n,)
        Grades.
    gain : GainMap
        Gains by grade.
    """
    return (grades > 0) & ~np.isin(grades, [grade for grade, _ in gain])


def first_fall(grades: NDArray[Any], gain: GainMap) -> str:
    """Describe the lowest grade with a smaller gain than the next lower one, or return "" if gains rise with grades.

    Parameters
    ----------
    grades : ndarray of shape (n,)
        Grades. Those that the map names are added.
    gain : GainMap
        Gains by grade.
    """
    ordered = np.unique(np.append(grades, [grade for grade, _ in gain]).astype(np.float64))
    gains = mapped_gains(ordered, gain)
    falls = np.flatnonzero(np.diff(gains) < 0)
    if not len(falls):
        return ""
    low, high = falls[0], falls[0] + 1
    return f"grade {ordered[low]:g} has gain {gains[low]:g} and grade {ordered[high]:g} has gain {gains[high]:g}"
