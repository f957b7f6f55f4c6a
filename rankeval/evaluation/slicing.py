"""The queries grouped by an attribute: for each value of it the places of the queries that have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import said
from rankeval._registry import chosen
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.evaluation.choosing import by_query, has_index, id_index
from rankeval.io.columns import refuse_masked
from rankeval.join.flat import Ints

if TYPE_CHECKING:
    import pandas as pd

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
