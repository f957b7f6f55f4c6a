"""Queries in groups: turns of a conversation, paraphrases of one need, questions on one document.

Queries of a group are not independent: a test over queries takes one easy conversation for many
easy queries. So the unit of every test is the group. Its score is the mean over its queries, and
everything after that sees a row per group, as if groups were queries::

    query    q1   q2   q3   q4   q5         group    a     b     c
    group    a    a    b    b    c          score    .2    .5    .9
    score    .1   .3   .4   .6   .9         mean over groups .53, over queries .46

Each group counts once, whatever its size. So the printed mean is the mean of what is tested. A
permutation flips whole groups, and a bootstrap draws whole groups. If all groups have one size, the
mean over groups is the mean over queries.

The trap is a slice that cuts groups: its means are over those queries of a group that are in the
slice, and two such slices are not independent samples. The row of each slice is valid. A test that
two slices differ would not be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import count, few, plural, refuse, require
from rankeval.comparison.design import Design
from rankeval.comparison.inputs import SharedScores, values_by
from rankeval.errors import QueryIdError
from rankeval.evaluation.by_query import UNNAMED
from rankeval.join.flat import Ints
from rankeval.significance.catalogue import FEWEST_QUERIES
from rankeval.significance.columns import without_variance
from rankeval.significance.declarations import Floats, is_noun

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Groups:
    """The number of each query's group, and the nouns for a group and for a query."""

    noun: str
    member: str
    of: Ints

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a comparison over the groups."""
        return {"unit": self.noun, "member": self.member, "n_members": len(self.of)}

    @property
    def numbers(self) -> Ints:
        """The number of each query's group, from 0, in the order of the groups' first queries."""
        return pd.factorize(self.of)[0]

    @property
    def sizes(self) -> Ints:
        """The number of queries of each group, in the same order."""
        return np.bincount(self.numbers)

    def means(self, scores: Floats) -> Floats:
        """Return the mean scores of each group, in the order of their first queries."""
        return _means(scores, self.of)[0]

    def apart(
        self, scores: Floats, parts: Mapping[str, Ints], weights: Floats | None = None
    ) -> tuple[Floats, Floats | None, dict[str, Ints]]:
        """Return the means of groups within each part, their weights and places; without parts, of all.

        The weight of a group is the sum over its queries.
        """
        own = np.ones(len(scores)) if weights is None else weights
        # In the order of the queries: what is drawn for a group must not depend on names.
        ordered = sorted(parts, key=lambda part: int(parts[part][0]))
        rows_of_parts = [parts[part] for part in ordered] or [np.arange(len(scores))]
        found = [_means(scores[rows], self.of[rows], own[rows]) for rows in rows_of_parts]
        means, sums = zip(*found, strict=True)
        ends = np.cumsum([0, *map(len, means)])
        places = {part: np.arange(*ends[k : k + 2]) for k, part in enumerate(ordered)}
        by_part = {part: places[part] for part in parts}
        of_groups = None if weights is None else np.concatenate(sums)
        return np.concatenate(means), of_groups, by_part

    def cut(self, parts: Mapping[str, Ints]) -> str:
        """Say how many groups have queries in two or more of the parts; "" if none has."""
        numbers = np.bincount(np.concatenate([np.unique(self.of[rows]) for rows in parts.values()]))
        n_cut = int((numbers > 1).sum())
        of_all = f"{n_cut} of {count(len(self.sizes), self.noun)}"
        return f"{of_all} have {plural(self.member)} in several slices" if n_cut else ""

    def notes(self, shared: SharedScores, design: Design) -> list[str]:
        """Return notes on the sizes of the groups, and on how much their queries go together."""
        first = replace(design, measures=shared.measures[:1])
        columns = first.columns(shared.scores[:, :, :1])
        (shares,) = columns.summed(lambda d: (intraclass(d, self.of),))
        notes = [self._on_sizes(shared)]
        notes += self._on_correlation(shares[~np.isnan(shares)], shared.measures[0])
        n, many = len(self.sizes), plural(self.noun)
        if n < FEWEST_QUERIES:
            fewer = f"fewer than {FEWEST_QUERIES} {many} (here {n})"
            remedy = f"more {many} are needed, not more {plural(self.member)} of each"
            notes.append(f"no error rates were measured with {fewer}: {remedy}")
        return notes

    def _on_sizes(self, shared: SharedScores) -> str:
        low, high = int(self.sizes.min()), int(self.sizes.max())
        units, scores = plural(self.member), shared.scores[:, :, 0]
        over = f"tests and intervals are over {count(len(self.sizes), self.noun)} of"
        counts = f"wins, ties and losses count {units}"
        if low == high:
            return f"{over} {count(high, self.member)} each; {counts}"
        moved = float(np.abs(self.means(scores).mean(axis=0) - scores.mean(axis=0)).max())
        once = f"each {self.noun} counts once: the means are over {plural(self.noun)}"
        apart = f"those over {units} differ from them by up to {moved:.2g} {shared.measures[0]}"
        means = f"{once}, and {apart}"
        if shared.weights is not None:
            means = f"each {self.noun} has the sum of the weights of its {units}"
        return f"{over} {low} to {count(high, self.member)}, and {means}; {counts}"

    def _on_correlation(self, shares: Floats, measure: str) -> list[str]:
        if not len(shares):
            return []
        share, sizes, n = float(shares.max()), self.sizes, len(self.of)
        alike = n / (1 + (float(sizes @ sizes) / n - 1) * share)
        within = (
            f"the intraclass correlation of differences in {measure} within {plural(self.noun)}"
        )
        value = f"is {share:.2f}:" if len(shares) == 1 else f"is up to {share:.2f}, where"
        size = count(n, self.member)
        return [f"{within} {value} {size} are worth {alike:.0f} independent ones"]


def _means(scores: Floats, of: Ints, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the weighted mean and the weight of each group, in the order of their first queries."""
    own = np.ones(len(scores)) if weights is None else weights
    numbers, _ = pd.factorize(of)
    sizes, others = np.bincount(numbers), [1] * (scores.ndim - 1)
    weighed = scores * own.reshape(-1, *others)
    sums = np.add.reduceat(weighed[np.argsort(numbers, kind="stable")], np.cumsum(sizes) - sizes)
    wholes = np.bincount(numbers, own).astype(np.float64)
    return np.asarray(sums / wholes.reshape(-1, *others)), wholes


def intraclass(d: Floats, of: Ints) -> Floats:
    """Return the share of the variance of each column that lies between groups; nan without variance.

    By the analysis of variance, ``(MSB - MSW) / (MSB + (m - 1) MSW)``, and 0 if that is negative;
    Donner (1986), doi:10.2307/1403259.

    Examples
    --------
    >>> d = np.array([[0.0], [0.2], [0.8], [1.0]])  # between 2 * .64 / 4 * 2 = .64, within .02
    >>> intraclass(d, np.array([0, 0, 1, 1])).round(3).tolist()
    [0.939]
    """
    numbers, _ = pd.factorize(of)
    sizes, n = np.bincount(numbers), len(of)
    means, _ = _means(d, of)
    between = sizes @ (means - d.mean(axis=0)) ** 2 / (len(sizes) - 1)
    within = ((d - means[numbers]) ** 2).sum(axis=0) / max(n - len(sizes), 1)
    size = (n - sizes @ sizes / n) / (len(sizes) - 1)
    total = between + (size - 1) * within
    unknown = np.full(len(total), np.nan)
    share = np.divide(between - within, total, out=unknown, where=~without_variance(d))
    return np.asarray(np.maximum(share, 0.0))


def query_groups(
    groups: Any,
    queries: pd.Index[Any],
    unit: str = "query",
    *,
    systems: Mapping[str, Any] = _NONE,
    collections: Mapping[str, Ints] = _NONE,
) -> Groups:
    """Return the groups of queries; those of several collections are apart.

    ``collections`` has the places of the queries of each.
    """
    require(not isinstance(groups, str), "groups", groups, f"a Series or mapping by {unit} id")
    n, units = len(queries), plural(unit)
    values, places = values_by(groups, queries, systems, unit, "groups")
    of = np.empty(n, dtype=np.int64)
    for number, rows in enumerate(places):
        of[rows] = number
    is_missing = values.to_frame(index=False).isna().any(axis=1)
    without = np.isin(of, np.flatnonzero(is_missing))
    names = few(queries[without].tolist())
    lacking = f"{without.sum()} of {count(n, unit)} have no group: {names}"
    alone = f"give each {unit} a group; one without others gets a group of its own"
    refuse((without.any(), lacking, alone), kind=QueryIdError, argument="groups")
    for number, rows in enumerate(collections.values()):
        of[rows] += number * len(places)
    n_groups = len(np.unique(of))
    single = [part for part, rows in collections.items() if np.ptp(of[rows]) == 0]
    own = f"each of the {count(n, unit)} has a group of its own, so there is nothing to group"
    ids = (
        f"if these are {unit} ids, as in scikit-learn's groups=, pass them as qid= to rk.evaluate "
        "or rk.cross_validate"
    )
    same = f"all {count(n, unit)} are of one group, and a test needs 2 groups or more"
    same_there = f"all {units} of collection {few(single)} are of one group"
    refuse(
        (n_groups == n, own, f"{ids}; otherwise leave groups= out"),
        (n_groups < 2, same, "give the group of each, such as its conversation or its document"),
        (single, same_there, "leave it out"),
        argument="groups",
    )
    return Groups(_noun(values.names, unit), unit, of)


def _noun(names: Sequence[Any], unit: str) -> str:
    """Return the name of the groups if it is a noun: "conversation" for conversation_id."""
    noun = str(names[0]).removesuffix("_id").replace("_", " ") if len(names) == 1 else ""
    return noun if is_noun(noun) and noun not in (UNNAMED, unit) else "group"
