"""Coefficients of agreement as functions of sums over items, so that a topic is left out by a subtraction.

Each is 1 - observed / expected disagreement, and they differ in what they count and in what they expect::

    of labels    counts (n_items, g)    how many labels of each grade an item has
    of judges    table (s, g, g)        items by the grades of two judges; the mean over all pairs of judges is taken

The axis s stacks the sums of all groups of items, of all but each group, and of each group. Expected disagreement is
compared with 0 up to rounding, since sums of thirds that are left out by subtraction do not end at 0.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rankeval.judging.labels import Floats, Ints

WEIGHTED = ("linear_kappa", "quadratic_kappa")
OF_JUDGES = ("scott_pi", "cohen_kappa", *WEIGHTED)
WORDS = {
    "observed": "observed agreement",
    "scott_pi": "Scott's pi",
    "cohen_kappa": "Cohen's kappa",
    "linear_kappa": "Cohen's kappa, linear weights",
    "quadratic_kappa": "Cohen's kappa, quadratic weights",
    "fleiss_kappa": "Fleiss' kappa",
    "krippendorff_alpha": "Krippendorff's alpha",
    "ac1": "Gwet's AC1",
    "pabak": "PABAK",
}
"""Each coefficient in words, in the order of the table."""


def of_labels(counts: Ints, group: Ints, places: Floats, level: str) -> tuple[dict[str, Floats], Floats]:
    """Return the coefficients of labels, of shape (s,) each, and Krippendorff's coincidences over all groups.

    Parameters
    ----------
    counts : array of shape (n_items, n_grades)
        How many labels of each grade an item has, two or more in all.
    group : array of shape (n_items,)
        Codes of the groups of items, ascending.
    places : array of shape (n_grades,)
        The grades as numbers.
    level : str
        "nominal", "ordinal" or "interval".
    """
    n_labels, n_grades = counts.sum(axis=1, keepdims=True), counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(n_grades, dtype=np.int64)
    agreed = np.einsum("igg->i", pairs)[:, None] / (n_labels * (n_labels - 1))
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    sums = (np.ones(n_labels.shape), agreed, counts / n_labels, pairs / (n_labels - 1)[:, :, None])
    n, agreed, shares, coincidences = (_stacked(np.add.reduceat(one, starts)) for one in sums)
    totals = coincidences.sum(axis=2)
    if level == "ordinal":  # grades lie as far apart as the labels between them are many, half of their own included
        places = totals.cumsum(axis=1) - totals / 2
    line = np.atleast_2d(places)
    apart = 1 - np.eye(n_grades)[None] if level == "nominal" else (line[:, :, None] - line[:, None, :]) ** 2
    # Chance draws two labels without putting the first back.
    expected = np.einsum("sg,sgh,sh->s", totals, np.broadcast_to(apart, coincidences.shape), totals)
    found, pairs_of_labels = (coincidences * apart).sum(axis=(1, 2)), totals.sum(axis=1) * (totals.sum(axis=1) - 1)
    widest = pairs_of_labels * apart.max(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        differ, shares, other = 1 - agreed[:, 0] / n[:, 0], shares / n, np.float64(n_grades - 1)
        unequal = (shares * (1 - shares)).sum(axis=1)
        values = {
            "observed": 1 - differ,
            "fleiss_kappa": _beyond(differ, unequal),
            "krippendorff_alpha": _beyond(found * (totals.sum(axis=1) - 1) / widest, expected / widest),
            "ac1": _beyond(differ, 1 - unequal / other),
            "pabak": _beyond(differ, other / n_grades),
        }
    return values, coincidences[0]


def of_judges(grades: NDArray[np.int64], group: Ints, places: Floats) -> tuple[dict[str, Floats], int]:
    """Return the means over all pairs of judges, of shape (s,) each, and the number of pairs that are undefined.

    Parameters
    ----------
    grades : array of shape (n_items, n_judges)
        The grade of each item by each judge as a code; -1 if there is none.
    group : array of shape (n_items,)
        Codes of the groups of items, ascending.
    places : array of shape (n_grades,)
        The grades as numbers, for the weighted forms.
    """
    n_grades, n_groups, undefined, found = len(places), int(group[-1]) + 1, 0, []
    far = np.abs(places[:, None] - places)
    unequal = 1 - np.eye(n_grades)
    for one, other in combinations(grades.T, 2):
        both = (one >= 0) & (other >= 0)
        cells = (group[both] * n_grades + one[both]) * n_grades + other[both]
        table = np.bincount(cells, minlength=n_groups * n_grades**2).reshape(n_groups, n_grades, n_grades)
        stack = _stacked(table.astype(np.float64))
        rows, columns, n = stack.sum(axis=2), stack.sum(axis=1), stack.sum(axis=(1, 2))
        pooled = (rows + columns) / 2
        forms = (pooled, unequal, pooled), (rows, unequal, columns), (rows, far, columns), (rows, far**2, columns)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = [
                _beyond((stack * apart).sum(axis=(1, 2)) / n, np.einsum("si,ij,sj->s", left, apart, right) / n**2)
                for left, apart, right in forms
            ]
        found.append(ratios)
        undefined += bool(np.isnan(ratios[1][0]))
    return dict(zip(OF_JUDGES, np.mean(found, axis=0), strict=True)), undefined


def _beyond(found: Floats, expected: Floats) -> Floats:
    return np.asarray(1 - found / np.where(expected > 1e-12, expected, np.nan))


def _stacked(groups: Floats) -> Floats:
    total = groups.sum(axis=0, keepdims=True)
    return np.concatenate([total, total - groups, groups])
