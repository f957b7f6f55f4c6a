"""Coefficients of agreement, each a function of sums over items, so that a topic is left out by a subtraction.

::

    of labels   agreed        (s,)        sum over items of the share of pairs of labels that are equal
                shares        (s, g)      sum over items of the share of labels with each grade
                coincidences  (s, g, g)   Krippendorff's: pairs of labels, each item with the weight of its labels
    of judges   table         (s, g, g)   items by the grades of two judges; the mean over pairs of judges is taken

The first axis stacks the sums of all topics, of all but each one, and of each one. Expected disagreement is compared
with 0 up to rounding, since sums of thirds that are left out by subtraction do not end at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.judging.labels import Floats, Ints

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Scale:
    """The grades as numbers, of shape (n_grades,), and how far apart they are taken to be."""

    values: Floats
    level: str

    def weights(self, power: int) -> Floats:
        """Return 1 for equal grades, 0 for the two ends, and between them by distance; power 0 is for equality."""
        if power == 0 or len(self.values) == 1:
            return np.eye(len(self.values))
        apart = np.abs(self.values[:, None] - self.values) / (self.values[-1] - self.values[0])
        return np.asarray(1 - apart**power)

    def distances(self, totals: Floats) -> Floats:
        """Return Krippendorff's squared distances, of shape (s or 1, g, g), given how often each grade is used."""
        if self.level == "nominal":
            return 1 - np.eye(len(self.values))[None]
        # Ordinal: grades lie as far apart as the labels between them are many, half of their own included.
        places = totals.cumsum(axis=1) - totals / 2 if self.level == "ordinal" else self.values[None]
        return np.asarray((places[:, :, None] - places[:, None, :]) ** 2)


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of the coefficients of labels; the module's essay draws the layout."""

    n_items: Floats
    agreed: Floats
    shares: Floats
    coincidences: Floats


def observed(sums: Sums, scale: Scale) -> Floats:  # noqa: ARG001 - coefficients have one signature
    """Return the mean share of pairs of labels that are equal."""
    return _ratio(sums.agreed, sums.n_items)


def fleiss_kappa(sums: Sums, scale: Scale) -> Floats:
    """Return Fleiss' kappa: chance is that of the pooled shares of the grades."""
    return _beyond(observed(sums, scale), (_shares(sums) ** 2).sum(axis=1))


def ac1(sums: Sums, scale: Scale) -> Floats:
    """Return Gwet's AC1: chance is high if the grades are used alike."""
    shares, n_others = _shares(sums), np.float64(len(scale.values) - 1)
    return _beyond(observed(sums, scale), _ratio((shares * (1 - shares)).sum(axis=1), n_others))


def pabak(sums: Sums, scale: Scale) -> Floats:
    """Return the kappa of grades that are all equally likely."""
    return _beyond(observed(sums, scale), np.float64(1 / len(scale.values)))


def krippendorff_alpha(sums: Sums, scale: Scale) -> Floats:
    """Return Krippendorff's alpha: one less observed by expected disagreement, drawn without replacement."""
    totals = sums.coincidences.sum(axis=2)
    n, apart = totals.sum(axis=1), scale.distances(totals)
    found = (sums.coincidences * apart).sum(axis=(1, 2))
    expected = (totals[:, :, None] * totals[:, None, :] * apart).sum(axis=(1, 2))
    widest = n**2 * apart.max(axis=(1, 2))
    return 1 - _ratio(found * (n - 1), np.where(expected > ROUNDING * widest, expected, 0))


def scott_pi(table: Floats, scale: Scale) -> Floats:
    """Return Scott's pi of two judges, whose grades are pooled."""
    pooled = (table.sum(axis=2) + table.sum(axis=1)) / 2
    return _kappa(table, pooled, pooled, scale.weights(0))


def cohen(power: int) -> Callable[[Floats, Scale], Floats]:
    """Return the function of Cohen's kappa of two judges, with weights of a power of the distance."""

    def kappa(table: Floats, scale: Scale) -> Floats:
        return _kappa(table, table.sum(axis=2), table.sum(axis=1), scale.weights(power))

    return kappa


def _kappa(table: Floats, rows: Floats, columns: Floats, weights: Floats) -> Floats:
    n = table.sum(axis=(1, 2))
    chance = np.einsum("si,ij,sj->s", rows, weights, columns)
    return _beyond(_ratio((table * weights).sum(axis=(1, 2)), n), _ratio(chance, n**2))


def _shares(sums: Sums) -> Floats:
    return _ratio(sums.shares, sums.n_items[:, None])


def _beyond(found: Floats, chance: Any) -> Floats:
    room = 1 - chance
    return _ratio(found - chance, np.where(room > ROUNDING, room, 0))


def _ratio(over: Floats, under: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(under != 0, over / under, np.nan)


@dataclass(frozen=True)
class Coefficient:
    """A coefficient: its name in words, its function, and whether it is of two judges or needs ordered grades."""

    words: str
    value: Callable[[Any, Scale], Floats]
    of_judges: bool = False
    ordered: bool = False


COEFFICIENTS = {
    "observed": Coefficient("observed agreement", observed),
    "scott_pi": Coefficient("Scott's pi", scott_pi, of_judges=True),
    "cohen_kappa": Coefficient("Cohen's kappa", cohen(0), of_judges=True),
    "linear_kappa": Coefficient("Cohen's kappa, linear weights", cohen(1), of_judges=True, ordered=True),
    "quadratic_kappa": Coefficient("Cohen's kappa, quadratic weights", cohen(2), of_judges=True, ordered=True),
    "fleiss_kappa": Coefficient("Fleiss' kappa", fleiss_kappa),
    "krippendorff_alpha": Coefficient("Krippendorff's alpha", krippendorff_alpha),
    "ac1": Coefficient("Gwet's AC1", ac1),
    "pabak": Coefficient("PABAK", pabak),
}


def stacked(counts: Ints, group: Ints) -> Sums:
    """Return the sums of labels: of all groups, of all but each, and of each.

    Parameters
    ----------
    counts : array of shape (n_items, n_grades)
        How many labels of each grade an item has, two or more in all.
    group : array of shape (n_items,)
        Codes of the groups of items, ascending.
    """
    labels = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1], dtype=np.int64)
    agreed = np.einsum("igg->i", pairs) / (labels * (labels - 1))
    parts = np.ones(len(counts)), agreed, counts / labels[:, None], pairs / (labels - 1)[:, None, None]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    return Sums(*(_with_left_out(np.add.reduceat(part, starts, axis=0)) for part in parts))


def mean_over_judges(
    functions: list[Callable[[Any, Scale], Floats]], grades: NDArray[np.int64], group: Ints, scale: Scale
) -> tuple[Floats, int]:
    """Return the mean of coefficients of two judges over all pairs of judges, and the number of undefined pairs.

    Parameters
    ----------
    functions : list of functions
        The coefficients.
    grades : array of shape (n_items, n_judges)
        The grade of each item by each judge as a code; -1 if there is none.
    group : array of shape (n_items,)
        Codes of the groups of items, ascending.
    scale : Scale
        The grades.

    Returns
    -------
    array of shape (n_functions, s), int
        As in the module's essay; nan if any pair of judges is undefined.
    """
    n_grades, n_groups = len(scale.values), int(group[-1]) + 1
    total, undefined, n_pairs = np.zeros((len(functions), 2 * n_groups + 1)), 0, 0
    for one, other in combinations(grades.T, 2):
        both = (one >= 0) & (other >= 0)
        cells = (group[both] * n_grades + one[both]) * n_grades + other[both]
        tables = np.bincount(cells, minlength=n_groups * n_grades**2).reshape(n_groups, n_grades, n_grades)
        stack = _with_left_out(tables.astype(np.float64))
        values = np.array([function(stack, scale) for function in functions])
        total, undefined, n_pairs = total + values, undefined + bool(np.isnan(values[:, 0]).any()), n_pairs + 1
    return total / n_pairs, undefined


def _with_left_out(groups: Floats) -> Floats:
    total = groups.sum(axis=0)[None]
    return np.concatenate([total, total - groups, groups])
