"""Weights of queries. A mapping or a Series gives them by query, anything else by row.

The trap: a Series as long as the rows may be indexed by row or by query. It is taken by query if
its index holds every query, unless the columns beside it have the same index; if both readings are
possible and differ, it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from rankeval._checks import few, refuse
from rankeval.collection.rows import check_rows, index_of, may_number_rows, same_rows
from rankeval.errors import InvalidInput
from rankeval.io import columns
from rankeval.join.flat import Floats
from rankeval.join.joined import Joined


def query_weights(
    weights: Any | None,
    joined: Joined,
    beside: Mapping[str, Any] = MappingProxyType({}),
    *,
    all_queries: bool = True,
) -> Floats | None:
    """Return one weight a query.

    Parameters
    ----------
    weights : mapping, Series or array-like, optional
        As in `rankeval.evaluate`.
    joined : Joined
        The weighted queries and their rows.
    beside : mapping of str to array-like
        The columns of the same call by argument name. Without them a Series is taken by query.
    all_queries : bool
        Whether there are no other queries. The weights of a part may all be 0, and a mapping may
        have more queries.

    Returns
    -------
    ndarray of shape (n_queries,), or None

    Raises
    ------
    InvalidInput
        If a query has no weight or several, a weight is negative or not finite, or a Series may be
        by row or by query.
    """
    if weights is None:
        return None
    columns.refuse_masked(weights, "query_weight")
    long = bool(beside) and index_of(weights) is not None and len(weights) == len(joined.score)
    if not hasattr(weights, "items") or (long and _is_by_row(weights, joined, beside)):
        values = _weights_of_rows(weights, joined)
    else:
        by_index = all_queries and not long and index_of(weights) is not None
        numbered = by_index and may_number_rows(weights.index, joined.queries)
        way = "give the weights of these rows, or .set_axis(qid); if these are query ids, name the index"
        refuse(
            (numbered, "its index is 0, 1, 2, ... and the query ids are not", way),
            argument="query_weight",
        )
        values = _weights_of_queries(weights, joined)
        # An index that holds all queries may also be one of rows, unless it is exactly their names.
        may_be_by_row = long and (
            weights.index.inferred_type == "integer" or len(set(weights.index)) > joined.n_queries
        )
        unlike = may_be_by_row and not np.array_equal(values, _weights_of_rows(weights, joined))
        way = "give .to_numpy() for one weight per row, .to_dict() for one per query"
        refuse(
            (unlike, "this Series may be by row or by query, and the two differ", way),
            argument="query_weight",
        )
    refuse_weights(values, all_queries=all_queries)
    return values


def refuse_weights(values: Floats, *, all_queries: bool = True) -> None:
    """Refuse weights with which no mean can be computed."""
    bad = (
        not np.isfinite(values).all()
        or (values < 0).any()
        or (all_queries and not values.sum() > 0)
    )
    refuse((bad, "expected finite numbers, none below 0 and not all 0"), argument="query_weight")


def _is_by_row(weights: Any, joined: Joined, beside: Mapping[str, Any]) -> bool:
    index = next((found for found in map(index_of, beside.values()) if found is not None), None)
    if index is not None and same_rows(index, weights.index) and joined.n_queries != len(weights):
        return True
    if set(joined.queries.tolist()) <= set(weights.index.tolist()):
        return False
    check_rows(**beside, query_weight=weights)
    return True


def _weights_of_queries(weights: Any, joined: Joined) -> Floats:
    refuse(
        (hasattr(weights, "columns"), "expected one weight for each query, found a frame"),
        argument="query_weight",
    )
    known: dict[Any, Any] = {}
    for query, weight in weights.items():
        first = known.setdefault(query, weight)
        if first is not weight and first != weight:
            raise InvalidInput(
                f"query {query!r} has several; a query has one weight", argument="query_weight"
            )
    queries = joined.queries.tolist()
    lacking = [query for query in queries if query not in known]
    others = f" ({len(lacking)} such in all)" if len(lacking) > 1 else ""
    refuse((lacking, f"query {few(lacking[:1])} has none{others}"), argument="query_weight")
    return columns.labels([known[query] for query in queries], "query_weight").astype(np.float64)


def _weights_of_rows(weights: Any, joined: Joined) -> Floats:
    """Return the one weight that the rows of each query share."""
    rows = columns.labels(weights, "query_weight").astype(np.float64)
    unlike = f"expected one per row ({len(joined.score)}) or a mapping by query, found {len(rows)}"
    refuse((len(rows) != len(joined.score), unlike), argument="query_weight")
    rows = rows if joined.order is None else rows[joined.order]
    filled = joined.offsets[:-1][np.diff(joined.offsets) > 0]
    values = rows[filled]
    uneven = (np.maximum.reduceat(rows, filled) != np.minimum.reduceat(rows, filled)).any()
    several = "found several within one query; a query has one weight, repeated on its rows"
    refuse((uneven, several), argument="query_weight")
    return values
