"""Scores given as judgments: refused where the values show it, because the result would be a number like any other.

Values tell the two apart only where they differ in kind. Scores of a model are real numbers, hardly one of them twice
or on a grid; judgments are few whole numbers, and many documents of a query share one. Judgments with fractions are
never scores by that alone: means of several judges lie on a grid, such as thirds, and gains from clicks have zeros. Nor
are whole scores labels by that alone: ranks have no ties within a query, and rounded scores have many levels. So both
sides must look like the other. The trap is a false alarm. A gain of any real number, never zero, beside a ranker that
knows a few whole scores looks just like a swap: such judgments are given as `Qrels`, or as a named column of a frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.io.columns import comparable

_SAMPLE = 512
"""Values that are looked at first: whole labels of any number cost microseconds."""

_LEAST = 8
"""Distinct real numbers below which there is no evidence."""

_GRIDS = np.array([*range(1, 13), 100.0])
"""Parts of a grade that means of judges and rounded numbers have."""

_MOST_LEVELS, _LOWEST, _HIGHEST = 6, -2, 10
"""Grades of judgments: -2 is spam in TREC's web tracks."""


def refuse_swapped(relevance: NDArray[Any], score: NDArray[Any], qid: Any) -> None:
    """Refuse judgments that look like scores beside scores that look like judgments.

    Parameters
    ----------
    relevance, score : ndarray
        All judgments, and the score of each row of the ranking.
    qid : array of shape (n_rows,)
        The query of each row of the ranking.

    Raises
    ------
    InvalidInput
        If both look like the other.
    """
    if relevance.dtype.kind != "f" or not _real(relevance[:: len(relevance) // _SAMPLE + 1]) or not len(score):
        return
    some = score[:: len(score) // _SAMPLE + 1]
    if (some != np.floor(some)).any() or not _labels(score, qid):
        return
    raise InvalidInput(
        argument="truth",
        found=f"real numbers, as scores are ({relevance[0]:.6g}, ...), beside a ranking by few whole numbers",
        expected="the judgments first, then the ranking",
        remedy="swap the two; if these are the judgments, give rk.Qrels, or a frame with relevance= and score=",
    )


def _real(values: NDArray[Any]) -> bool:
    values = values.astype(np.float64, copy=False)
    if (values == np.floor(values)).mean() > 1 / 3 or (values == 0).mean() > 0.05:  # gains from clicks have zeros
        return False
    near = np.abs(values[:, None] - np.rint(values[:, None] * _GRIDS) / _GRIDS).min(axis=1)
    free = near > np.minimum(5e-4, 5e-3 * np.abs(values))  # of a third that was rounded to three digits
    return bool(free.mean() > 0.6) and len(np.unique(values[free])) >= _LEAST  # about .86 by chance


def _labels(score: NDArray[Any], qid: Any) -> bool:
    levels = np.unique(score)
    if len(levels) > _MOST_LEVELS or levels[0] < _LOWEST or levels[-1] > _HIGHEST or (levels != np.floor(levels)).any():
        return False
    if len(levels) == 1:
        return bool(levels[0] == 1)  # judgments of relevant documents alone
    query, _ = comparable(qid, "qid")
    order = np.lexsort((score, query))
    query, score = query[order], score[order]
    return bool(((query[1:] == query[:-1]) & (score[1:] == score[:-1])).any())
