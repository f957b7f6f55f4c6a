"""Several evaluations: why two must not be compared, and one evaluation from parts of disjoint queries.

A part is merged as it is, since what it knows of a query does not depend on the others:

    part 1   q1 q4   0.5 0.0          merged   q1 q2 q3 q4   0.5 1.0 0.2 0.0
    part 2   q2 q3   1.0 0.2

Parts may come in any order, from other processes and other machines. The result is that of all rows
at once, bit for bit: aggregates are computed from the scores in ascending order of the ids, and
digests from the hashes of the queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import few, refuse
from rankeval.collection.convention import CHOICES
from rankeval.evaluation.facts import READINGS, QueryFacts
from rankeval.evaluation.result import Evaluation, by_name, reading_of, size_of
from rankeval.io.columns import as_typed, comparable
from rankeval.join.flat import Ints


def merged(parts: Iterable[Evaluation]) -> Evaluation:
    """Return the evaluation of all queries of several evaluations.

    Parameters
    ----------
    parts : iterable of Evaluation
        Of disjoint queries, at least one; same measures and convention. None may be a subset.

    Returns
    -------
    Evaluation
        Queries ascending, with the name of the first part.

    Raises
    ------
    InvalidInput
        If there is no part, a query stands in two parts, or parts differ in measures, convention,
        or in whether queries have weights.

    Examples
    --------
    >>> import rankeval as rk
    >>> odd, even = ([1, 0], [0.1, 0.7], [3, 3]), ([0, 1], [0.2, 0.8], [2, 2])
    >>> parts = [rk.evaluate(y, score, qid=qid, measures="RR") for y, score, qid in (odd, even)]
    >>> merged(parts).per_query["RR"].to_dict()
    {2: 1.0, 3: 0.5}
    """
    several = list(parts)
    refuse((not several, "found none", "give at least one evaluation"), argument="parts")
    first, way = several[0], "evaluate all parts alike, and merge them whole"
    for number, part in enumerate(several):
        unlike = f"part {number} and part 0 differ in measures, in the convention, or in that queries have weights"
        refuse(
            (_made(part) != _made(first), unlike, way),
            (part.facts.whole is not None, f"part {number} is a subset of an evaluation", way),
            argument="parts",
        )
    queries, order = _ascending([part.queries for part in several], "twice")
    return replace(
        first,
        queries=queries,
        scores=_stacked([part.scores for part in several], order),
        excluded=_excluded(several),
        undefined={
            name: sum(part.undefined[name] for part in several) for name in first.measure_names
        },
        facts=_facts(several, order),
        weights=None
        if first.weights is None
        else _stacked([part.weights for part in several], order),
    )


def _made(part: Evaluation) -> tuple[object, ...]:
    return part.measure_names, part.measures, part.convention, part.weights is not None


def _ascending(ids: Sequence[NDArray[Any]], fault: str) -> tuple[NDArray[Any], Ints]:
    """Return the ids of all parts in ascending order, and the place of each among the parts one after another."""
    kinds = {one.dtype.kind for one in ids if len(one)}
    mixed = len(kinds - {"O", "U"}) > (not kinds & {"O", "U"})
    unlike = "ids of queries are texts in some parts and numbers in others"
    refuse((mixed, unlike, "give them one type"), argument="parts")
    queries = np.concatenate([one for one in ids if len(one)] or ids[:1])
    codes, _ = comparable(queries, "qid")
    order = np.argsort(codes, kind="stable")
    queries, codes = queries[order], codes[order]
    again = queries[1:][codes[1:] == codes[:-1]].tolist()
    twice = f"{len(again)} queries stand {fault} ({few(again)}); a query must be whole in one part"
    refuse((again, twice), argument="parts")
    return queries, order


def _stacked(columns: Sequence[Any], order: Ints) -> NDArray[Any]:
    return np.concatenate(columns)[order]


def _facts(parts: Sequence[Evaluation], order: Ints) -> QueryFacts:
    tables = [part.facts.table() for part in parts]
    known = {name: of for table in tables for name, of in table.items()}

    def of_part(name: str, part: Evaluation, table: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        if name in READINGS:
            return reading_of(part, name)
        # A rule that a part does not know affected nothing there, and a part without errors is
        # exact.
        lacking = np.zeros((part.n_queries, *known[name].shape[1:]), known[name].dtype)
        return table.get(name, lacking)

    joint = {name: _stacked([*map(partial(of_part, name), parts, tables)], order) for name in known}
    left_out = dict(sum((Counter(part.facts.left_out) for part in parts), Counter()))
    first, *others = (part.facts for part in parts)
    signs = {
        sign: words
        for sign, words in first.signs.items()
        if all(sign in one.signs for one in others)
    }
    return QueryFacts.of(
        joint, n_folds=first.n_folds, rows=first.rows, left_out=left_out, signs=signs
    )


def _excluded(parts: Sequence[Evaluation]) -> dict[str, tuple[Any, ...]]:
    reasons = dict.fromkeys(reason for part in parts for reason in part.excluded)
    found = {}
    for reason in reasons:
        ids = [
            as_typed(list(part.excluded[reason]), "qid")
            for part in parts
            if reason in part.excluded
        ]
        found[reason] = tuple(_ascending(ids, f"twice among those left out ({reason})")[0].tolist())
    return found


def differences(mine: Evaluation, other: Evaluation) -> list[str]:
    """Return a sentence for each rule, measure and set of judgments in which two evaluations differ.

    Parameters
    ----------
    mine, other : Evaluation
        The evaluations, "one" and "the other" in the sentences.

    Returns
    -------
    list of str
        Empty if the numbers may be compared. A rule that affected no row of either evaluation does
        not differ.

    Examples
    --------
    >>> import rankeval as rk
    >>> labels, tied = [1, 0], [0.5, 0.5]
    >>> one, other = (rk.evaluate(labels, tied, qid=[1, 1], measures="RR", ties=ties) for ties in ("best", "worst"))
    >>> differences(one, other)
    ["ties is 'best' in one and 'worst' in the other"]
    """
    found = rule_differences(mine, other)
    read = [
        {name for one in each.measures for name in one.columns.values()} for each in (mine, other)
    ]
    found += [
        f"the column {name!r}, which measures read, has other values in one than in the other"
        for name in sorted(read[0] & read[1])
        if not np.array_equal(mine.facts.columns[name], other.facts.columns[name])
    ]
    if mine.judgments_digest != other.judgments_digest:
        digests = [
            f"digest {each.judgments_digest[:12]} over {size_of(each)}" for each in (mine, other)
        ]
        found.append(
            f"the judgments differ ({digests[0]} in one, {digests[1]} in the other); compare systems with the same "
            "judgments, the same subset of both, or several collections by {system: {collection: evaluation}}"
        )
    return found


def rule_differences(mine: Evaluation, other: Evaluation) -> list[str]:
    """Return a sentence for each rule and measure in which two evaluations differ, on whatever judgments."""
    found = []
    counts = [each.facts.totals() for each in (mine, other)]
    for rule in [*CHOICES, "depth"]:
        first, second = getattr(mine.convention, rule), getattr(other.convention, rule)
        affected = sum(one.get(rule, 0) for one in counts)
        if first != second and affected:
            found.append(f"{rule} is {first!r} in one and {second!r} in the other")
    mine_by_name = by_name(mine)
    for label, bound in by_name(other).items():
        own = mine_by_name.get(label, bound)
        if own != bound:
            said = [str(own), str(bound)]
            if own.semantics != bound.semantics:
                said = [f"{one} of definition {one.semantics}" for one in (own, bound)]
            found.append(f"{label} means {said[0]} in one and {said[1]} in the other")
    return found
