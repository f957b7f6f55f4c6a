"""One evaluation from evaluations of disjoint queries: what one part knows of a query does not depend on the others.

    part 1   q1 q4   0.5 0.0          merged   q1 q2 q3 q4   0.5 1.0 0.2 0.0
    part 2   q2 q3   1.0 0.2

Parts may come in any order, from other processes and other machines. The result is that of all rows at once, bit for
bit: aggregates are computed from the scores in ascending order of the ids, and digests from the hashes of the queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import few
from rankeval.errors import InvalidInput
from rankeval.evaluation.facts import READINGS, QueryFacts
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.storage import QUERY_COUNTS
from rankeval.io.columns import as_typed, comparable
from rankeval.join.flat import Floats, Ints


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
        If there is no part, a query stands in two parts, or parts differ in measures, convention, or in whether queries
        have weights.

    Examples
    --------
    >>> import rankeval as rk
    >>> odd, even = ([1, 0], [0.1, 0.7], [3, 3]), ([0, 1], [0.2, 0.8], [2, 2])
    >>> parts = [rk.evaluate(y, score, qid=qid, measures="RR") for y, score, qid in (odd, even)]
    >>> merged(parts).per_query["RR"].to_dict()
    {2: 1.0, 3: 0.5}
    """
    several = list(parts)
    if not several:
        raise InvalidInput("found none", argument="parts", remedy="give at least one evaluation")
    _refuse_unlike(several)
    queries, order = _ascending([part.queries for part in several], "twice")
    facts = _facts(several, order)
    judgments_digest, ranking_digest = facts.digests(queries)
    return replace(
        several[0],
        queries=queries,
        scores=_stacked([part.scores for part in several], order),
        query_counts={name: _stacked([part.query_counts[name] for part in several], order) for name in QUERY_COUNTS},
        rule_counts=_totals([part.rule_counts for part in several]),
        excluded=_excluded(several),
        undefined=_totals([part.undefined for part in several]),
        judgments_digest=judgments_digest,
        ranking_digest=ranking_digest,
        facts=facts,
        weights=_stacked([part.weights for part in several if part.weights is not None], order)
        if several[0].weights is not None
        else None,
        errors=_errors(several, order),
    )


def _refuse_unlike(parts: Sequence[Evaluation]) -> None:
    first = parts[0]
    for number, part in enumerate(parts):
        if part.whole is not None:
            raise InvalidInput(f"parts: part {number} is a subset of an evaluation; merge the evaluation itself")
        for what in ("measure_names", "measures", "convention"):
            if getattr(part, what) != getattr(first, what):
                name = what.replace("_", " ")
                raise InvalidInput(
                    f"parts: the {name} of part {number} are {getattr(part, what)}, those of part 0 are "
                    f"{getattr(first, what)}; evaluate all parts alike"
                )
        if (part.weights is None) != (first.weights is None):
            raise InvalidInput(
                f"part {number} and part 0 differ in whether queries have weights; give all or none", argument="parts"
            )


def _ascending(ids: Sequence[NDArray[Any]], fault: str) -> tuple[NDArray[Any], Ints]:
    """Return the ids of all parts in ascending order, and the place of each among the parts one after another."""
    kinds = {one.dtype.kind for one in ids if len(one)}
    if len(kinds - {"O", "U"}) > (not kinds & {"O", "U"}):
        raise InvalidInput("parts: ids of queries are texts in some parts and numbers in others; give them one type")
    queries = np.concatenate([one for one in ids if len(one)] or ids[:1])
    codes, _ = comparable(queries, "qid")
    order = np.argsort(codes, kind="stable")
    queries, codes = queries[order], codes[order]
    again = np.flatnonzero(codes[1:] == codes[:-1])
    if len(again):
        raise InvalidInput(
            f"{len(again)} queries stand {fault} ({few(queries[again].tolist())}); a query must be whole in one part",
            argument="parts",
        )
    return queries, order


def _stacked(columns: Sequence[NDArray[Any]], order: Ints) -> NDArray[Any]:
    return np.concatenate(columns)[order]


def _totals(counts: Sequence[Any]) -> dict[str, int]:
    """Return the sum of each count over parts; a rule that a part does not know affected nothing there."""
    names = dict.fromkeys(name for one in counts for name in one)
    return {name: sum(one.get(name, 0) for one in counts) for name in names}


def _facts(parts: Sequence[Evaluation], order: Ints) -> QueryFacts:
    facts = [part.facts for part in parts]
    rules = dict.fromkeys(rule for one in facts for rule in one.rule_counts)
    none = [np.zeros(part.n_queries, dtype=np.int64) for part in parts]
    columns = {
        column: _stacked([getattr(one, column) for one in facts], order)
        for column in ("undefined", "drawn", "judgments", "rankings")
    }
    return QueryFacts(
        rule_counts={
            rule: _stacked([one.rule_counts.get(rule, zeros) for one, zeros in zip(facts, none, strict=True)], order)
            for rule in rules
        },
        readings={
            reading: _stacked([part.reading(reading) for part in parts], order)
            for reading in READINGS
            if any(one.readings for one in facts)
        },
        **columns,
    )


def _excluded(parts: Sequence[Evaluation]) -> dict[str, tuple[Any, ...]]:
    """Return the queries left out by reason, ascending."""
    reasons = dict.fromkeys(reason for part in parts for reason in part.excluded)
    found = {}
    for reason in reasons:
        ids = [as_typed(list(part.excluded[reason]), "qid") for part in parts if reason in part.excluded]
        found[reason] = tuple(_ascending(ids, f"twice among those left out ({reason})")[0].tolist())
    return found


def _errors(parts: Sequence[Evaluation], order: Ints) -> Floats | None:
    """Return the standard errors of all scores, 0 where a part is exact; None if all are."""
    if all(part.errors is None for part in parts):
        return None
    return _stacked([np.zeros_like(part.scores) if part.errors is None else part.errors for part in parts], order)
