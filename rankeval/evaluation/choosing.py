"""Queries and measures chosen by name, and values given by query: found by id, never by a position that means an id.

A mask or an attribute without an index goes by position, in the order of the evaluation's queries. With an index it
goes by id. The trap is a Series with the plain index 0, 1, 2, ... that is as long as there are queries: its maker may
have meant either. It is refused, unless these numbers are the ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import few, said, shown
from rankeval._registry import chosen, unknown
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io.columns import refuse_masked
from rankeval.join.flat import Ints
from rankeval.measures import Measure, measure
from rankeval.measures import measures as find_measures

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


UNNAMED = "slice"
"""The name of an attribute that has none."""


def slices_of(by: Any, queries: NDArray[Any], counts: Mapping[str, Ints]) -> tuple[pd.Index[Any], list[Ints]]:
    """Return the values of an attribute, ascending, and the places of the queries with each of them.

    Parameters
    ----------
    by : str, Series, DataFrame, mapping or array
        As in `Evaluation.slices`.
    queries : ndarray of shape (n_queries,)
        The ids of the evaluation.
    counts : mapping of str to ndarray of shape (n_queries,)
        The numbers that a name stands for.

    Returns
    -------
    tuple
        Index of the values, nan last, and one array of places for each.

    Raises
    ------
    InvalidInput
        If the attribute is no column with a value for each query, or its ids do not fit.
    """
    attributes = _attributes(by, queries, counts)
    names = list(attributes.columns)
    try:
        groups = attributes.groupby(names if len(names) > 1 else names[0], dropna=False, sort=True, observed=True)
        number = groups.ngroup().to_numpy()
        values = groups.size().index
    except TypeError as error:
        told = said(error)
        raise InvalidInput(f"by: these values cannot be grouped ({told}); give numbers, texts or categories") from None
    order = np.argsort(number, kind="stable")
    return values, np.split(order, np.cumsum(np.bincount(number, minlength=len(values)))[:-1])


def _attributes(by: Any, queries: NDArray[Any], counts: Mapping[str, Ints]) -> pd.DataFrame:
    """Return the attributes as columns, a row per query in the order of the evaluation."""
    import pandas as pd

    if isinstance(by, str):
        return pd.DataFrame({by: counts[chosen("count of the queries", by, counts)]})
    if isinstance(by, Mapping):
        by = pd.Series(list(by.values()), index=id_index(by.keys()), dtype=None if by else object)
    if isinstance(by, pd.DataFrame):
        by = by.set_index("qid") if "qid" in by.columns else by
        if not by.columns.is_unique or not len(by.columns):
            raise InvalidInput("expected a DataFrame with one or more columns of different names", argument="by")
    elif has_index(by):
        by = by.to_frame(UNNAMED if by.name is None else by.name)
    if isinstance(by, pd.DataFrame):
        found: pd.DataFrame = by_query(by, queries, "by")
        return found
    return pd.DataFrame({UNNAMED: _by_position(by, len(queries))})


def _by_position(by: Any, n_queries: int) -> Any:
    refuse_masked(by, "by")
    shape = np.shape(by)
    if shape != (n_queries,):
        found = f"an array of shape {shape}" if shape else f"a {type(by).__name__}"
        raise QueryIdError(
            f"by: expected a value for each of {n_queries} queries, in the order of `queries`, found {found}; or give "
            "a Series or mapping by query id, or the name of a count"
        )
    return by


def labels_of(
    wanted: str | Measure | Iterable[str | Measure], labels: Sequence[str], kind: str = "measure"
) -> list[str]:
    """Find measures among the labels of columns, by name or by meaning ("ndcg_cut_10" for "nDCG@10").

    Parameters
    ----------
    wanted : str, Measure or iterable of them
        The measures asked for.
    labels : sequence of str
        Columns that there are; a frame's column need not be one of our measures.
    kind : str
        Noun for them in the error.

    Raises
    ------
    InvalidInput
        None is asked for.
    UnknownName
        One of them is not among the labels.
    """
    asked = [wanted] if isinstance(wanted, str | Measure) or not isinstance(wanted, Iterable) else list(wanted)
    if not asked:
        raise InvalidInput("measures is empty: name at least one, or leave it out for all that are shared")
    return list(dict.fromkeys(label for each in asked for label in _labels_meant(each, labels, kind)))


def _labels_meant(wanted: str | Measure, labels: Sequence[str], kind: str) -> list[str]:
    """Return the labels that a name stands for: one, but for names of several such as "P.5,10"."""
    if wanted in labels:
        return [str(wanted)]
    label_of: dict[Measure, str] = {}
    for label in labels:
        with suppress(InvalidInput):  # a frame's column need not be one of our measures
            label_of.setdefault(measure(label), label)
    try:
        return [label_of[meant] for _, meant in find_measures(wanted)]
    except (InvalidInput, KeyError):
        raise unknown(kind, str(wanted), labels) from None
