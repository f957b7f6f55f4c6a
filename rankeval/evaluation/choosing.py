"""Queries chosen by id or by mask, and values given by query: found by id, never by a position that means an id.

A mask or an attribute without an index goes by position, in the order of the evaluation's queries. With an index it
goes by id. The trap is a Series with the plain index 0, 1, 2, ... that is as long as there are queries: its maker may
have meant either. It is refused, unless these numbers are the ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import few, said, shown
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.join.flat import Ints

if TYPE_CHECKING:
    import pandas as pd

    Values = TypeVar("Values", pd.Series[Any], pd.DataFrame)


def places_of(asked: Any, queries: NDArray[Any], excluded: Mapping[str, tuple[Any, ...]]) -> Ints:
    """Return the places of the queries asked for, ascending.

    Parameters
    ----------
    asked : iterable of ids, or mask
        As in `Evaluation.subset`.
    queries : ndarray of shape (n_queries,)
        The ids of the evaluation.
    excluded : mapping of str to tuple
        Reason -> ids left out of the evaluation, for the message on one of them.

    Raises
    ------
    QueryIdError
        If an id is unknown, repeated or missing, or a mask does not fit.
    InvalidInput
        If nothing is asked for, or something else is given.
    """
    if isinstance(asked, (str, bytes, Mapping)) or hasattr(asked, "columns") or not isinstance(asked, Iterable):
        raise InvalidInput(
            f"queries: expected ids of queries or a mask with a bool for each, found a {type(asked).__name__}; give a "
            "list of ids, or the index of the rows that you want"
        )
    values = _listed(asked)
    bools = sum(isinstance(value, (bool, np.bool_)) for value in values)
    if bools:
        mask = _mask(asked, values, bools, queries)
        places = np.flatnonzero(mask)
    else:
        places = np.sort(_by_id(values, queries, excluded))
    if not len(places):
        raise InvalidInput("queries: expected at least one query, found none; an evaluation of no query has no scores")
    return places


def _listed(asked: Iterable[Any]) -> list[Any]:
    """Return the values as a list, for NumPy, pandas, polars and Arrow too."""
    if getattr(asked, "ndim", 1) != 1:
        raise InvalidInput(f"queries: expected one dimension, found an array of shape {getattr(asked, 'shape', '')}")
    as_list = getattr(asked, "to_pylist", None)  # Arrow's own values do not compare with plain ones
    return list(as_list() if callable(as_list) else asked)


def _mask(asked: Any, values: list[Any], bools: int, queries: NDArray[Any]) -> NDArray[np.bool_]:
    if bools < len(values):
        other = next(value for value in values if not isinstance(value, (bool, np.bool_)))
        raise QueryIdError(f"expected ids or a mask, found True or False beside {shown(other)}", argument="queries")
    if has_index(asked):
        found = by_query(asked, queries, "queries")
        lacking = queries[found.isna().to_numpy()].tolist()
        if lacking:
            raise QueryIdError(
                f"queries: the mask says nothing of {len(lacking)} of {len(queries)} queries: {few(lacking)}; give a "
                f"bool for each, or the ids alone"
            )
        by_position: NDArray[np.bool_] = found.to_numpy(dtype=bool)
        return by_position
    if len(values) != len(queries):
        raise QueryIdError(
            f"queries: expected a mask with a bool for each of {len(queries)} queries, in the order of `queries`, "
            f"found {len(values)}"
        )
    return np.array(values, dtype=bool)


def _by_id(values: list[Any], queries: NDArray[Any], excluded: Mapping[str, tuple[Any, ...]]) -> Ints:
    known, asked = id_index(queries), id_index(values)
    if asked.has_duplicates:
        again = list(dict.fromkeys(asked[asked.duplicated()].tolist()))
        raise QueryIdError(f"{few(again)} asked for more than once", argument="queries", remedy="name each once")
    places = np.asarray(known.get_indexer(asked), dtype=np.int64)
    if (places < 0).any():
        lacking = asked[places < 0].tolist()
        raise QueryIdError(
            f"queries: the evaluation has no query {few(lacking)} ({len(lacking)} of {len(values)} ids asked for)"
            f"{_why(lacking, known, excluded)}"
        )
    return places


def _why(lacking: list[Any], known: pd.Index[Any], excluded: Mapping[str, tuple[Any, ...]]) -> str:
    """Say why ids may be unknown: they were left out, or are of another type."""
    reasons = [reason for reason, ids in excluded.items() if not set(ids).isdisjoint(lacking)]
    if reasons:
        return f"; some were left out: {', '.join(reasons)}"
    return _type_hint(lacking, known) or f"; it has ids such as {few(known.tolist())}"


def _type_hint(asked: Iterable[Any], known: Iterable[Any]) -> str:
    """Return a hint if an id is known in another type, such as "7" for 7; else nothing."""
    by_text = {str(query): query for query in known}
    for one in asked:
        other = by_text.get(str(one))
        if other is not None and type(other) is not type(one):
            return f"; its ids are of type {type(other).__name__}, and {one!r} is not {other!r}"
    return ""


def by_query(values: Values, queries: NDArray[Any], what: str) -> Values:
    """Return the value of each query in a Series or frame indexed by query id; missing if it has none.

    Parameters
    ----------
    values : Series or DataFrame
        Indexed by query id. It may have more queries.
    queries : ndarray of shape (n_queries,)
        The ids of the evaluation.
    what : str
        The argument's name in messages.

    Raises
    ------
    QueryIdError
        If an id is repeated or missing, no id is common, or the index may be one of rows.
    """
    known = id_index(queries)
    index = values.index
    if index.hasnans:
        raise QueryIdError("the index has a row without a query id; index it by query", argument=what)
    if index.has_duplicates:
        again = index[index.duplicated()][0]
        raise QueryIdError(
            f"{what}: query {again!r} stands more than once in the index; give one row for each query, such as "
            "values.groupby(level=0).first()"
        )
    if _is_plain(index) and len(index) == len(known) and not index.equals(known):
        raise QueryIdError(
            f"{what}: its index is 0, 1, 2, ... and the query ids are not; give {what}.to_numpy() if the values stand "
            f"in the order of `queries`, else index it by query id"
        )
    if (index.get_indexer(known) < 0).all():
        raise QueryIdError(
            f"{what}: no id in common: the evaluation has {few(known.tolist())}, the index has {few(index.tolist())}"
            f"{_type_hint(index.tolist(), known)}"
        )
    return values.reindex(known)


def id_index(ids: Iterable[Any]) -> pd.Index[Any]:
    """Return ids as an index that looks them up; pandas would make tuples a hierarchy of their own."""
    import pandas as pd

    try:
        set(ids)  # an index is made of lists too, and fails later
        found: pd.Index[Any] = pd.Index(ids if isinstance(ids, np.ndarray) else list(ids), tupleize_cols=False)
    except (TypeError, ValueError) as error:
        raise QueryIdError(f"queries: these are no ids of queries: {said(error)}") from None
    return found


def has_index(values: Any) -> bool:
    """Say whether values come with a pandas index."""
    return hasattr(getattr(values, "index", None), "get_indexer")


def _is_plain(index: pd.Index[Any]) -> bool:
    """Say whether an index is the one that pandas gives to rows without names: 0, 1, 2, ..."""
    import pandas as pd

    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1
