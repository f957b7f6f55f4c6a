"""Why two evaluations must not be compared, and one evaluation from parts of disjoint queries.

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
from rankeval.errors import InvalidInput
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
        seeds, or in whether queries have weights.

    Examples
    --------
    >>> import rankeval as rk
    >>> odd, even = ([1, 0], [0.1, 0.7], [3, 3]), ([0, 1], [0.2, 0.8], [2, 2])
    >>> parts = [rk.evaluate(y, score, qid=qid, measures="RR") for y, score, qid in (odd, even)]
    >>> merged(parts).per_query["RR"].to_dict()
    {2: 1.0, 3: 0.5}
    """
    parts = list(parts)
    if not parts:
        raise InvalidInput("found none", argument="parts", remedy="give at least one evaluation")
    first, remedy = parts[0], "evaluate all parts alike, and merge them whole"
    for number, part in enumerate(parts):
        differ = "differ in measures, in the convention, in seeds, or in that queries have weights"
        is_subset = part.facts.whole is not None
        refuse(
            (_made(part) != _made(first), f"part {number} and part 0 {differ}", remedy),
            (is_subset, f"part {number} is a subset of an evaluation", remedy),
            argument="parts",
        )
    queries, order = _ascending([part.queries for part in parts], "twice")
    weights = None
    if first.weights is not None:
        weights = _stacked([part.weights for part in parts], order)
    names = first.measure_names
    undefined = {name: sum(part.undefined[name] for part in parts) for name in names}
    return replace(
        first,
        queries=queries,
        scores=_stacked([part.scores for part in parts], order),
        excluded=_excluded(parts),
        undefined=undefined,
        facts=_facts(parts, order),
        weights=weights,
    )


def _made(part: Evaluation) -> tuple[object, ...]:
    seeds = tuple(part.facts.seeds)
    return part.measure_names, part.measures, part.convention, seeds, part.weights is not None


def _ascending(ids: Sequence[NDArray[Any]], fault: str) -> tuple[NDArray[Any], Ints]:
    """Return the ids of all parts, ascending, and the order that sorts the concatenated parts."""
    filled = [labels for labels in ids if len(labels)]
    kinds = {labels.dtype.kind for labels in filled}
    if len(kinds - {"O", "U"}) > (not kinds & {"O", "U"}):
        problem = "ids of queries are texts in some parts and numbers in others"
        raise InvalidInput(problem, argument="parts", remedy="give them one type")
    queries = np.concatenate(filled or ids[:1])
    codes, _ = comparable(queries, "qid")
    order = np.argsort(codes, kind="stable")
    queries, codes = queries[order], codes[order]
    again = queries[1:][codes[1:] == codes[:-1]].tolist()
    if again:
        problem = f"{len(again)} queries are {fault} ({few(again)})"
        raise InvalidInput(f"{problem}; a query must be whole in one part", argument="parts")
    return queries, order


def _stacked(columns: Sequence[Any], order: Ints) -> NDArray[Any]:
    return np.concatenate(columns)[order]


def _facts(parts: Sequence[Evaluation], order: Ints) -> QueryFacts:
    tables = [part.facts.table() for part in parts]
    known = {name: column for table in tables for name, column in table.items()}

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
    shared = set(first.signs).intersection(*(facts.signs for facts in others))
    signs = {sign: words for sign, words in first.signs.items() if sign in shared}
    return QueryFacts.of(
        joint, n_folds=first.n_folds, rows=first.rows, left_out=left_out, signs=signs
    )


def averaged(by_seed: Mapping[int, Evaluation]) -> Evaluation:
    """Return the mean over seeds of each query's score, with the scores of each seed in its facts.

    The evaluations are of the same rows, so counts and judgments agree. Where rankings make a
    difference, the largest count of ties, and the largest standard error of drawn ones, stand for
    all seeds.
    """
    parts = [*by_seed.values()]
    first, reduced = parts[0], dict.fromkeys(READINGS, np.mean) | {"rankings": np.sum}
    stacked = _facts(parts, np.arange(len(parts) * first.n_queries)).table()
    table = {}
    for name, column in stacked.items():
        table[name] = reduced.get(name, np.max)(np.split(column, len(parts)), axis=0)
    known = {name: getattr(first.facts, name) for name in ("n_folds", "rows", "left_out", "signs")}
    facts = QueryFacts.of(table, **known)
    scores = {seed: part.scores for seed, part in by_seed.items()}
    mean = np.mean([*scores.values()], axis=0)
    return replace(first, scores=mean, facts=replace(facts, seeds=scores))


def _excluded(parts: Sequence[Evaluation]) -> dict[str, tuple[Any, ...]]:
    reasons = dict.fromkeys(reason for part in parts for reason in part.excluded)
    excluded = {}
    for reason in reasons:
        lists = [part.excluded[reason] for part in parts if reason in part.excluded]
        ids = [as_typed(list(queries), "qid") for queries in lists]
        queries, _ = _ascending(ids, f"twice among those left out ({reason})")
        excluded[reason] = tuple(queries.tolist())
    return excluded


def differences(mine: Evaluation, other: Evaluation) -> list[str]:
    """Return a sentence for each rule, measure and set of judgments in which two results differ.

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
    >>> def rated(ties):
    ...     return rk.evaluate([1, 0], [0.5, 0.5], qid=[1, 1], measures="RR", ties=ties)
    >>> differences(rated("best"), rated("worst"))
    ["ties is 'best' in one and 'worst' in the other"]
    """
    sentences = rule_differences(mine, other)
    for name in sorted(_columns_read(mine) & _columns_read(other)):
        if not np.array_equal(mine.facts.columns[name], other.facts.columns[name]):
            differ = "has other values in one than in the other"
            sentences.append(f"the column {name!r}, which measures read, {differ}")
    if mine.judgments_digest != other.judgments_digest:
        digests = [
            f"digest {evaluation.judgments_digest[:12]} over {size_of(evaluation)}"
            for evaluation in (mine, other)
        ]
        sentences.append(
            f"the judgments differ ({digests[0]} in one, {digests[1]} in the other); "
            "compare systems with the same judgments, the same subset of both, or several "
            "collections by {system: {collection: evaluation}}"
        )
    return sentences


def _columns_read(evaluation: Evaluation) -> set[str]:
    return {name for measure in evaluation.measures for name in measure.columns.values()}


def rule_differences(mine: Evaluation, other: Evaluation) -> list[str]:
    """Return a sentence for each rule and measure in which two evaluations differ."""
    sentences = []
    counts = Counter(mine.facts.totals()) + Counter(other.facts.totals())
    for rule in [*CHOICES, "depth"]:
        first, second = getattr(mine.convention, rule), getattr(other.convention, rule)
        if first != second and counts[rule]:
            sentences.append(f"{rule} is {first!r} in one and {second!r} in the other")
    mine_has, other_has = (
        " sampled of ".join(evaluation.facts.signs.get("sampled", ["all"]))
        for evaluation in (mine, other)
    )
    if mine_has != other_has:
        sentences.append(f"lists have {mine_has} items in one and {other_has} items in the other")
    mine_by_name = by_name(mine)
    for label, bound in by_name(other).items():
        own = mine_by_name.get(label, bound)
        if own != bound:
            meanings = [str(own), str(bound)]
            if own.semantics != bound.semantics:
                meanings = [f"{each} of definition {each.semantics}" for each in (own, bound)]
            sentences.append(f"{label} means {meanings[0]} in one and {meanings[1]} in the other")
    return sentences
