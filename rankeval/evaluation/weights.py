"""Weights of queries: by query from a mapping or a Series, by row from anything else, and never by a guess."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.alignment import check_rows, index_of, same_rows
from rankeval.errors import InvalidInput
from rankeval.io import columns
from rankeval.join.joined import Joined

Floats = NDArray[np.float64]


def query_weights(weights: Any | None, joined: Joined, rows: Mapping[str, Any] | None) -> Floats | None:
    """Return one weight a query, from a mapping or Series by query, or from one a row.

    Parameters
    ----------
    weights : mapping, Series or array-like, optional
        As of `rankeval.evaluate`.
    joined : Joined
        What is weighed.
    rows : mapping of str to array-like, optional
        The columns of the call by name, beside which weights may stand; None of a collection.

    Raises
    ------
    InvalidInput
        When a query has none or several, some are no weights, or it is open whether they are by row or by query.
    """
    if weights is None:
        return None
    columns.refuse_masked(weights, "weights")
    # A Series as long as the rows may have their index, or that of queries, or one that could be either.
    long = rows is not None and index_of(weights) is not None and len(weights) == len(joined.score)
    if not hasattr(weights, "items") or (long and _is_by_row(weights, joined, rows or {})):
        values = _weights_of_rows(weights, joined)
    else:
        values = _weights_of_queries(weights, joined)
        if long and _may_be_by_row(weights, joined) and not np.array_equal(values, _weights_of_rows(weights, joined)):
            raise InvalidInput(
                "weights: this Series may be by row or by query, and the two differ; give weights.to_numpy() for one "
                "weight a row, weights.to_dict() for one a query"
            )
    if not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        raise InvalidInput("weights: expected finite numbers, none below 0 and not all 0")
    return values


def _is_by_row(weights: Any, joined: Joined, rows: Mapping[str, Any]) -> bool:
    """Say whether a Series as long as the rows has their index, or one that is not of queries."""
    index = next((found for found in map(index_of, rows.values()) if found is not None), None)
    if index is not None and same_rows(index, weights.index) and joined.n_queries != len(weights):
        return True
    if set(joined.queries.tolist()) <= set(weights.index.tolist()):
        return False
    check_rows(**rows, weights=weights)
    return True


def _may_be_by_row(weights: Any, joined: Joined) -> bool:
    """Say whether labels that hold all queries may be of rows: numbers may, names that are just the queries may not."""
    return weights.index.inferred_type == "integer" or set(weights.index) != set(joined.queries.tolist())


def _weights_of_queries(weights: Any, joined: Joined) -> Floats:
    """Return the weights that a mapping or Series has for the queries."""
    known: dict[Any, Any] = {}
    for query, weight in weights.items():
        first = known.setdefault(query, weight)
        if first is not weight and first != weight:
            raise InvalidInput(f"weights: query {query!r} has several; a query has one weight")
    queries = joined.queries.tolist()
    lacking = [query for query in queries if query not in known]
    if lacking:
        raise InvalidInput(f"weights: query {lacking[0]!r} has none ({len(lacking)} such in all)")
    return columns.labels([known[query] for query in queries], "weights").astype(np.float64)


def _weights_of_rows(weights: Any, joined: Joined) -> Floats:
    """Return the one weight that the rows of each query share."""
    rows = columns.labels(weights, "weights").astype(np.float64)
    if len(rows) != len(joined.score):
        raise InvalidInput(
            f"weights: expected one a row ({len(joined.score)}) or a mapping by query, found {len(rows)}"
        )
    rows = rows if joined.order is None else rows[joined.order]
    filled = joined.offsets[:-1][np.diff(joined.offsets) > 0]
    values = rows[filled]
    if (np.maximum.reduceat(rows, filled) != np.minimum.reduceat(rows, filled)).any():
        raise InvalidInput("weights: found several within one query; a query has one weight, repeated on its rows")
    return values
