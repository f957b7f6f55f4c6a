"""By query or by row: queries and measures chosen by name, values and weights of queries, found by id.

A mask or an attribute without an index goes by position, in the order of the evaluation's queries.
With an index it goes by id, also by row if the rows of a query agree. The trap is a Series with the
plain index 0, 1, 2, ... that is as long as there are queries or rows: its index may number these.
It is refused, unless these numbers are the ids.

Weights go the same way: a mapping or a Series gives them by query, anything else by row. A Series
as long as the rows is taken by query if its index holds every query, unless the columns beside it
have the same index; if both readings are possible and differ, it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import few, refuse, said
from rankeval._registry import chosen, unknown
from rankeval.collection.rows import check_rows, index_of, may_number_rows, same_rows
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io import columns
from rankeval.io.columns import as_list, refuse_masked, refuse_ragged
from rankeval.join.flat import Floats, Ints
from rankeval.join.joined import Joined
from rankeval.measures import Measure, measure
from rankeval.measures import measures as parse_measures

if TYPE_CHECKING:
    import pandas as pd

    Values = TypeVar("Values", pd.Series[Any], pd.DataFrame)


def query_places(
    choice: Any, queries: NDArray[Any], excluded: Mapping[str, tuple[Any, ...]]
) -> Ints:
    """Return the places of the chosen queries, in that order; those of a mask ascend."""
    is_other = isinstance(choice, (str, bytes, Mapping)) or not isinstance(choice, Iterable)
    if is_other or hasattr(choice, "columns") or getattr(choice, "ndim", 1) == 0:
        expected = "expected ids of queries or a mask with a bool for each"
        raise InvalidInput(
            f"{expected}, found a {type(choice).__name__}",
            argument="queries",
            remedy="give a list of ids, or the index of the rows that you want",
        )
    values = as_list(choice)  # values of Arrow do not compare with plain ones
    if any(isinstance(value, (bool, np.bool_)) for value in values):
        places = np.flatnonzero(_mask(choice, values, queries))
    else:
        places = _by_id(values, queries, excluded)
    if not len(places):
        raise InvalidInput("expected at least one query, found none", argument="queries")
    return places


def _mask(mask: Any, values: list[Any], queries: NDArray[Any]) -> NDArray[np.bool_]:
    others = [value for value in values if not isinstance(value, (bool, np.bool_))]
    by_position = index_of(mask) is None
    expected = f"a mask with a bool for each of {len(queries)} queries, in the order of `queries`"
    refuse(
        (others, f"expected ids or a mask, found True or False beside {few(others[:1])}"),
        (by_position and len(values) != len(queries), f"expected {expected}, found {len(values)}"),
        kind=QueryIdError,
        argument="queries",
    )
    if by_position:
        return np.array(values, dtype=bool)
    flags = values_by_query(mask, queries, "queries")
    lacking = queries[flags.isna().to_numpy()].tolist()
    if lacking:
        share = f"{len(lacking)} of {len(queries)} queries: {few(lacking)}"
        raise QueryIdError(
            f"the mask says nothing of {share}",
            argument="queries",
            remedy="give a bool for each, or the ids alone",
        )
    return np.asarray(flags, dtype=bool)


def _by_id(
    values: list[Any], queries: NDArray[Any], excluded: Mapping[str, tuple[Any, ...]]
) -> Ints:
    known, chosen_ids = id_index(queries), id_index(values)
    again = chosen_ids[chosen_ids.duplicated()].unique().tolist()
    if again:
        problem = f"{few(again)} asked for more than once"
        raise QueryIdError(problem, argument="queries", remedy="name each once")
    places = np.asarray(known.get_indexer(chosen_ids), dtype=np.int64)
    if lacking := chosen_ids[places < 0].tolist():
        share = f"{len(lacking)} of {len(values)} ids asked for"
        problem = f"the evaluation has no query {few(lacking)} ({share})"
        reasons = [reason for reason, ids in excluded.items() if not set(ids).isdisjoint(lacking)]
        remedy = _type_hint(lacking, known) or f"it has ids such as {few(known.tolist())}"
        if reasons:
            remedy = f"some were left out: {', '.join(reasons)}"
        raise QueryIdError(problem, argument="queries", remedy=remedy)
    return places


def _type_hint(ids: Iterable[Any], known: Iterable[Any]) -> str:
    by_text = {str(query): query for query in known}
    for query in ids:
        other = by_text.get(str(query))
        if other is not None and type(other) is not type(query):
            return f"its ids are of type {type(other).__name__}, and {query!r} is not {other!r}"
    return ""


def values_by_query(values: Values, queries: NDArray[Any], what: str) -> Values:
    """Return the value of each query in a Series or frame that is indexed by query id."""
    known = id_index(queries)
    index = values.index
    by_position = f"give {what}.to_numpy() in the order of `queries`"
    remedy = f"{by_position}, else {what}.set_axis(qid) by the queries; name ids"
    is_numbered = may_number_rows(index, known)
    refuse(
        (index.hasnans, "the index has a row without a query id", "index it by query"),
        (is_numbered, "its index is 0, 1, 2, ... and the query ids are not", remedy),
        kind=QueryIdError,
        argument=what,
    )
    if index.has_duplicates:  # a value for each row
        uneven = _uneven(values)
        if uneven:
            problem = f"query {few(uneven)} has several values"
            raise QueryIdError(problem, argument=what, remedy="give one value for each query")
        values = values[~index.duplicated()]
    if (values.index.get_indexer(known) < 0).all():
        ids = f"the evaluation has {few(known.tolist())}, the index has {few(index.tolist())}"
        hint = _type_hint(index.tolist(), known)
        raise QueryIdError(f"no id in common: {ids}", argument=what, remedy=hint)
    return values.reindex(known)


def id_index(ids: Iterable[Any]) -> pd.Index[Any]:
    """Return ids as an index that looks them up, tuples too, of which pandas makes a hierarchy."""
    import pandas as pd

    try:
        set(ids)  # an index is made of lists too, and fails later
        values = ids if isinstance(ids, np.ndarray) else list(ids)
        index: pd.Index[Any] = pd.Index(values, tupleize_cols=False)
    except (TypeError, ValueError) as error:
        problem = f"these are not query ids: {said(error)}"
        raise QueryIdError(problem, argument="queries") from None
    return index


LEAST_QUERIES = 5
"""Collections and slices with fewer queries are listed, and not tested by themselves."""

UNNAMED = "slice"
"""The name of an attribute that has none."""


def slices_of(
    by: Any, queries: NDArray[Any], counts: Mapping[str, Ints], rows: Any = None, what: str = "by"
) -> tuple[pd.Index[Any], list[Ints]]:
    """Return the values of an attribute, ascending, and the places of the queries of each."""
    import pandas as pd

    refuse_ragged(by, what)
    if rows is not None and len(queries) < len(rows) and np.shape(by)[:1] == (len(rows),):
        by = _by_row(by, rows)
    if isinstance(by, Mapping):
        by = pd.Series(list(by.values()), index=id_index(by.keys()), dtype=None if by else object)
    if isinstance(by, pd.DataFrame):
        by = by.set_index("qid") if "qid" in by.columns else by
        if not by.columns.is_unique or not len(by.columns):
            problem = "expected a DataFrame with one or more columns of different names"
            raise InvalidInput(problem, argument=what)
        attributes = values_by_query(by, queries, what)
    elif isinstance(by, str):
        attributes = pd.DataFrame({by: counts[chosen("count of the queries", by, counts)]})
    elif index_of(by) is not None:
        attributes = values_by_query(
            by.to_frame(UNNAMED if by.name is None else by.name), queries, what
        )
    else:
        refuse_masked(by, what)
        shape = np.shape(by)
        if shape != (len(queries),):
            found = f"an array of shape {shape}" if shape else f"a {type(by).__name__}"
            expected = f"a value for each of {len(queries)} queries, in the order of `queries`"
            raise QueryIdError(
                f"expected {expected}, found {found}",
                argument=what,
                remedy="or give a Series or mapping by query id, or the name of a count",
            )
        attributes = pd.DataFrame({UNNAMED: by})
    names = list(attributes.columns)
    keys = names if len(names) > 1 else names[0]
    try:
        groups = attributes.groupby(keys, dropna=False, sort=True, observed=True)
        number = groups.ngroup().to_numpy()
        values = groups.size().index
    except TypeError as error:
        problem = f"these values cannot be grouped ({said(error)})"
        remedy = "give numbers, texts or categories"
        raise InvalidInput(problem, argument=what, remedy=remedy) from None
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=len(values)))
    return values, np.split(order, ends[:-1])


def _by_row(by: Any, rows: Any) -> Any:
    """Index an attribute by the queries of the rows, unless its own index is one of queries."""
    import pandas as pd

    if getattr(by, "ndim", 1) == 2 and "qid" in by:
        return by
    values = by if index_of(by) is not None else pd.Series(list(by), name=getattr(by, "name", None))
    moved = values.set_axis(id_index(rows.to_pylist() if hasattr(rows, "to_pylist") else rows))
    # An index of numbers may be of rows or of queries; by row, the rows of each query agree.
    is_plain = values.index.equals(pd.RangeIndex(len(values)))
    return moved if is_plain or not _uneven(moved) else by


def _uneven(values: Values) -> list[Any]:
    """Return a list with the first query whose rows differ; empty if there is none."""
    counts = values.groupby(level=0, sort=False).nunique(dropna=False)
    differ = np.any(counts.to_numpy().reshape(len(counts), -1) > 1, axis=1)
    return counts.index[differ].tolist()[:1]


def labels_of(
    wanted: str | Measure | Iterable[str | Measure], labels: Sequence[str], kind: str = "measure"
) -> list[str]:
    """Find measures among labels, by name or by meaning ("ndcg_cut_10" for "nDCG@10")."""
    if isinstance(wanted, str | Measure) or not isinstance(wanted, Iterable):
        wanted = [wanted]
    names = list(wanted)
    if not names:
        raise InvalidInput(
            "measures is empty: name at least one, or leave it out for all that are shared"
        )
    return list(
        dict.fromkeys(label for name in names for label in _labels_meant(name, labels, kind))
    )


def _labels_meant(wanted: str | Measure, labels: Sequence[str], kind: str) -> list[str]:
    if wanted in labels:
        return [str(wanted)]
    label_of: dict[Measure, str] = {}
    for label in labels:
        with suppress(InvalidInput):  # a frame's column need not be one of our measures
            label_of.setdefault(measure(label), label)
    try:
        return [label_of[meant] for _, meant in parse_measures(wanted)]
    except (InvalidInput, KeyError):
        raise unknown(kind, str(wanted), labels) from None


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
    has_index = index_of(weights) is not None
    is_long = bool(beside) and has_index and len(weights) == len(joined.score)
    if not hasattr(weights, "items") or (is_long and _is_by_row(weights, joined, beside)):
        values = _weights_of_rows(weights, joined)
    else:
        by_index = all_queries and not is_long and has_index
        if by_index and may_number_rows(weights.index, joined.queries):
            raise InvalidInput(
                "its index is 0, 1, 2, ... and the query ids are not",
                argument="query_weight",
                remedy="give the weights of these rows, or .set_axis(qid); "
                "if these are query ids, name the index",
            )
        values = _weights_of_queries(weights, joined)
        # An index that holds all queries may also be one of rows, unless it is exactly their names.
        may_be_by_row = is_long and (
            weights.index.inferred_type == "integer" or len(set(weights.index)) > joined.n_queries
        )
        if may_be_by_row and not np.array_equal(values, _weights_of_rows(weights, joined)):
            raise InvalidInput(
                "this Series may be by row or by query, and the two differ",
                argument="query_weight",
                remedy="give .to_numpy() for one weight per row, .to_dict() for one per query",
            )
    refuse_weights(values, all_queries=all_queries)
    return values


def refuse_weights(values: Floats, *, all_queries: bool = True) -> None:
    """Refuse weights with which no mean can be computed."""
    is_usable = np.isfinite(values).all() and not (values < 0).any()
    if not is_usable or (all_queries and not values.sum() > 0):
        problem = "expected finite numbers, none below 0 and not all 0"
        raise InvalidInput(problem, argument="query_weight")


def _is_by_row(weights: Any, joined: Joined, beside: Mapping[str, Any]) -> bool:
    indexes = map(index_of, beside.values())
    index = next((index for index in indexes if index is not None), None)
    if index is not None and same_rows(index, weights.index) and joined.n_queries != len(weights):
        return True
    if set(joined.queries.tolist()) <= set(weights.index.tolist()):
        return False
    check_rows(**beside, query_weight=weights)
    return True


def _weights_of_queries(weights: Any, joined: Joined) -> Floats:
    if hasattr(weights, "columns"):
        problem = "expected one weight for each query, found a frame"
        raise InvalidInput(problem, argument="query_weight")
    known: dict[Any, Any] = {}
    for query, weight in weights.items():
        first = known.setdefault(query, weight)
        if first is not weight and first != weight:
            problem = f"query {query!r} has several; a query has one weight"
            raise InvalidInput(problem, argument="query_weight")
    queries = joined.queries.tolist()
    lacking = [query for query in queries if query not in known]
    if lacking:
        others = f" ({len(lacking)} such in all)" if len(lacking) > 1 else ""
        problem = f"query {few(lacking[:1])} has none{others}"
        raise InvalidInput(problem, argument="query_weight")
    return columns.labels([known[query] for query in queries], "query_weight").astype(np.float64)


def _weights_of_rows(weights: Any, joined: Joined) -> Floats:
    """Return the one weight that the rows of each query share."""
    rows = columns.labels(weights, "query_weight").astype(np.float64)
    if len(rows) != len(joined.score):
        expected = f"one per row ({len(joined.score)}) or a mapping by query"
        raise InvalidInput(f"expected {expected}, found {len(rows)}", argument="query_weight")
    rows = rows if joined.order is None else rows[joined.order]
    filled = joined.offsets[:-1][np.diff(joined.offsets) > 0]
    values = rows[filled]
    if (np.maximum.reduceat(rows, filled) != np.minimum.reduceat(rows, filled)).any():
        problem = "found several within one query; a query has one weight, repeated on its rows"
        raise InvalidInput(problem, argument="query_weight")
    return values
