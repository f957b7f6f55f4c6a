"""The queries of a comparison by an attribute: their names and their places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import count, few
from rankeval.comparison.design import COLUMNS, LEAST_QUERIES, TOGETHER
from rankeval.comparison.scores import Scores
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.choosing import has_index, slices_of
from rankeval.join.flat import Ints


def slices_by(by: Any, queries: pd.Index[Any], systems: Mapping[str, Scores]) -> tuple[str, dict[str, Ints]]:
    """Return the name of an attribute, and the places of the queries of each of its values.

    Parameters
    ----------
    by : str, Series, DataFrame, mapping or array
        As in `Evaluation.slices`. An array goes by position, and a name stands for a count of the queries; both need
        evaluations.
    queries : Index
        The compared queries, ascending.
    systems : mapping of str to Evaluation or DataFrame
        The compared systems.

    Returns
    -------
    tuple
        The name of the attribute, or of several joined by " x ", and value as text -> places.

    Raises
    ------
    InvalidInput
        If the attribute does not fit, no slice has enough queries to be tested, or its name or a value is taken by a
        column or row of the table.
    """
    evaluations = {name: each for name, each in systems.items() if isinstance(each, Evaluation)}
    ids = np.empty(len(queries), dtype=object)
    ids[:] = queries
    if isinstance(by, str):
        values, places = slices_of(by, ids, _common_counts(by, evaluations, queries))
    else:
        _refuse_position(by, evaluations, queries)
        values, places = slices_of(by, ids, {})
    if max(map(len, places)) < LEAST_QUERIES:
        raise InvalidInput(
            f"by: no slice has {LEAST_QUERIES} queries or more, so none could be tested: found {len(places)} slices of "
            f"{count(len(queries), 'query')}; give an attribute with fewer values, such as ranges of a number "
            "(pandas.qcut)"
        )
    name = " x ".join(map(str, values.names))
    if name in COLUMNS:
        raise InvalidInput(f"by: the attribute is named {name!r}, as a column of the table is; give it another name")
    said = [_said(value) for value in values]
    if len(set(said)) < len(said) or TOGETHER in said:
        raise InvalidInput(
            f"by: slices need different names, and {TOGETHER!r} stands for all queries; found {few(said)}; rename them"
        )
    return name, dict(zip(said, places, strict=True))


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_said, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _common_counts(by: str, evaluations: Mapping[str, Evaluation], queries: pd.Index[Any]) -> dict[str, Ints]:
    """Return the counts of the queries, if they are the same for all systems."""
    if not evaluations:
        raise InvalidInput(
            f"by={by!r} names a count of an evaluation, and the systems are frames", remedy="give a Series by qid"
        )
    counts: dict[str, Ints] = {}
    for name, each in evaluations.items():
        rows = pd.Index(each.queries, tupleize_cols=False).get_indexer(queries)
        for key, numbers in each.facts.query_counts.items():
            if key == by and not np.array_equal(counts.get(key, numbers[rows]), numbers[rows]):
                raise InvalidInput(
                    f"by={by!r} differs between {next(iter(evaluations))!r} and {name!r}; a slice is an attribute of "
                    "the queries, the same for all systems"
                )
            counts.setdefault(key, numbers[rows])
    return counts


def _refuse_position(by: Any, evaluations: Mapping[str, Evaluation], queries: pd.Index[Any]) -> None:
    """Raise for an array without ids, unless the order of its values can only be that of the evaluations."""
    if isinstance(by, Mapping) or has_index(by):
        return
    if not any(each.queries.tolist() == queries.tolist() for each in evaluations.values()):
        raise InvalidInput(
            "by: values without query ids go by position, and these systems have no common order of queries; give a "
            "Series or mapping by query id"
        )
