"""The query of each row, found in one way for scorers, splitters and `QueryRanker`.

scikit-learn hands X and y around and slices them; a third column travels only if metadata routing
is on. So ids may come from several places, the strongest first:

    the argument ``qid`` > ``group`` (sizes of consecutive queries) > ids bound to the scorer
    > a pandas index level named "qid", of X and of y > a column "qid" of X

All ids that are there must define the same grouping; the strongest give the names.

Ids bound to a scorer are those of all rows. `BoundIds` matches them to the rows of a call by their
index labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from rankeval._checks import refuse, shown
from rankeval.collection.rows import check_rows, column_names, index_of, same_rows
from rankeval.errors import InvalidInput, QueryIdError, UnusableQueryIdsError
from rankeval.io.columns import as_typed, refuse_masked
from rankeval.join.flat import sizes_to_ids
from rankeval.join.joined import column_role, number_column
from rankeval.measures import Measure

NAME = "qid"
"""The argument, the index level and the column with query ids."""


DOCID = "docid"
"""The index level with document ids."""


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a frame, a sparse matrix, an Arrow table or a list."""
    shape = X.shape if hasattr(X, "shape") else np.asarray(X, dtype=object).shape
    if not shape:
        expected = "an array or a frame with one row for each document"
        raise InvalidInput(argument="X", found=shown(X), expected=expected)
    return int(shape[0])


def has_column(X: Any) -> bool:
    """Say whether X is a frame with a column of query ids."""
    return any(isinstance(name, str) and name == NAME for name in column_names(X))


def without_ids(X: Any) -> Any:
    """Return X without its column of query ids, which is no feature; X itself if it has none."""
    if not has_column(X):
        return X
    if hasattr(X, "drop_columns"):  # Arrow's
        return X.drop_columns([NAME])
    return X.drop(columns=NAME) if hasattr(X, "iloc") else X.drop(NAME)


def id_array(ids: Any, rows: int, source: str) -> NDArray[Any]:
    """Check ids of any type and return them as an array."""
    import pandas as pd

    if isinstance(ids, str):
        raise UnusableQueryIdsError(
            f"{source} is the text {ids!r}: give the ids themselves; if it names a column, {source}=X[{ids!r}], and X "
            "without it"
        )
    refuse_masked(ids, source, UnusableQueryIdsError)
    column = as_typed(ids)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    unlike = f"{source} has shape {column.shape}, but there are {rows} rows: give the query id of each row"
    refuse((column.shape != (rows,), unlike), kind=UnusableQueryIdsError)
    if column.dtype.kind == "O" and pd.api.types.infer_dtype(column, skipna=False) == "string":
        return column  # five times faster than a search for missing ids
    missing = pd.isna(column)
    if missing.any():
        raise UnusableQueryIdsError(
            f"{source} is missing in row {int(np.argmax(missing))}: every row needs a query id"
        )
    return column


def encode(ids: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return numbers for distinct ids, in the order in which they first appear."""
    import pandas as pd

    codes, _ = pd.factorize(ids)
    return codes.astype(np.int64), ids[first_rows(codes)]


def first_rows(codes: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Return the first row of each query, by the numbers of the rows' queries."""
    first = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last one written is the first
    return first


def by_id(ids: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return numbers for distinct ids in their ascending order, and the ids by number."""
    codes, queries = encode(ids)
    try:
        order = np.argsort(queries, kind="stable")
    except TypeError:
        # Ids of several types have no order of their own; their spelling has.
        spelled = [f"{type(query).__name__} {query}" for query in queries.tolist()]
        order = np.argsort(np.array(spelled), kind="stable")
    place = np.empty(len(queries), dtype=np.int64)
    place[order] = np.arange(len(queries))
    return place[codes], queries[order]


def same_queries(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Say whether two columns of ids define the same grouping of rows."""
    if left is right or (left.dtype == right.dtype and np.array_equal(left, right)):
        return True
    return np.array_equal(encode(left)[0], encode(right)[0])


def differing(values: NDArray[Any], codes: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the rows whose value is not that of their query's first row; none if values are those of queries."""
    return np.flatnonzero(values != values[first_rows(codes)[codes]])


def per_query(values: Any, codes: NDArray[np.int64], what: str) -> NDArray[Any]:
    """Return the one value that each query's rows share."""
    column = np.asarray(values)
    if column.shape != codes.shape:
        raise InvalidInput(
            f"{what} has shape {column.shape}, but there are {len(codes)} rows: give one per row"
        )
    odd = differing(column, codes)
    if len(odd):
        raise InvalidInput(
            f"{what} differs within the query of row {odd[0]}: it belongs to the query, not to the row"
        )
    return column[first_rows(codes)]


@dataclass(frozen=True, eq=False)
class BoundIds:
    """Query ids of all rows, or another column of them, looked up by the index labels of the rows in a call.

    Index labels prove little: after ``reset_index`` they still resolve, to the wrong queries. So
    the relevance that was bound beside the ids must equal y. Without it, rows in another order
    cannot be detected if they have no index, or the index 0, 1, 2, ... of ``reset_index``: such
    calls are refused.
    """

    ids: Any  # The query of each row of the whole data
    y: Any | None = None  # The relevance of the same rows
    name: str = NAME  # The column, for messages

    def __post_init__(self) -> None:
        for name, column in {self.name: self.ids, "y": self.y}.items():
            is_one = column is not None and not np.ndim(np.asarray(column, dtype=object))
            refuse((is_one, f"{name} is {shown(column)}; give one value a row"), kind=QueryIdError)
        if self.y is not None and len(self.y) != len(self.ids):
            raise QueryIdError(
                f"bound are {len(self.ids)} values of {self.name} and {len(self.y)} labels: give one of each a row"
            )
        check_rows(**{self.name: self.ids, "y": self.y})

    def at(self, X: Any, y: Any) -> NDArray[Any]:
        """Return the ids of the rows of X and y."""
        positions = self._positions(X, y)
        ids = id_array(self.ids, len(self.ids), f"bound {self.name}")[positions]
        if self.y is not None and not np.array_equal(
            column_or_1d(self.y)[positions], column_or_1d(y)
        ):
            raise UnusableQueryIdsError(
                f"the bound {self.name} does not belong to these rows: their y is not the y bound with it (was the "
                f"index reset, or were the rows put in another order?); pass {self.name} with the call"
            )
        return ids

    def _positions(self, X: Any, y: Any) -> NDArray[np.intp]:
        rows, known = n_rows(X), index_of(self.ids)
        labels = next((index for index in map(index_of, (y, X)) if index is not None), None)
        if known is None or labels is None:
            unlike = (
                f"{len(self.ids)} values of {self.name} are bound, and no index matches them to {rows} rows: bind a "
                "Series on that of X"
            )
            refuse((rows != len(self.ids), unlike), kind=UnusableQueryIdsError)
            doubt = "there is no index"
        elif known.inferred_type == labels.inferred_type == "integer" and np.array_equal(
            labels, np.arange(rows)
        ):
            doubt = f"the labels 0 to {rows - 1} may come from reset_index"
        else:
            doubt = ""
        if doubt and self.y is None:
            way = f"bind y with it to have that checked, make_scorer(..., y=y), or pass {self.name} with the call"
            raise UnusableQueryIdsError(
                f"{doubt}, so that the bound {self.name} may be that of other rows: {way}"
            )
        if known is None or labels is None or same_rows(known, labels):
            return np.arange(rows)
        again = (
            f"the index of the bound {self.name} has duplicates, so that rows cannot be found in it"
        )
        refuse((not known.is_unique, again), kind=UnusableQueryIdsError)
        positions: NDArray[np.intp] = known.get_indexer(labels)
        if lost := labels[positions < 0].tolist():
            raise UnusableQueryIdsError(
                f"the bound {self.name} has no row {lost[0]!r}, which is in the index of the data"
            )
        return positions


def read_columns(
    X: Any, y: Any, measures: Iterable[Measure], given: Mapping[str, Any]
) -> dict[str, NDArray[np.float64]]:
    """Return the columns of rows that measures read: those that are given, else those of X with their names.

    The columns of a frame travel with its rows wherever scikit-learn cuts them, with metadata
    routing on or off.
    """
    asked, frame = list(measures), {str(name) for name in column_names(X)}
    found = {}
    for name in dict.fromkeys(name for measure in asked for name in measure.columns.values()):
        column = given.get(name, name)
        if isinstance(column, BoundIds):
            column = column.at(X, y)
        if not isinstance(column, str) or column in frame:
            found[name] = X[column] if isinstance(column, str) else column
    for measure in asked:
        measure.refuse_lacking(found)
    check_rows(X=X, **{column_role(name): column for name, column in found.items()})
    return {name: number_column(column, name) for name, column in found.items()}


def documents_of_rows(X: Any, y: Any, docid: Any) -> Any:
    """Return the documents that are given, or those of an index level named "docid"; None without either."""
    return (
        next((column for _, column in index_levels(X, y, DOCID)), None) if docid is None else docid
    )


def index_levels(X: Any, y: Any, level: str) -> Iterator[tuple[str, Any]]:
    """Find a pandas index level by name, in X and in y; yield (name of the table, the level's values)."""
    for name, table in (("X", X), ("y", y)):
        if level in getattr(index_of(table), "names", ()):
            yield name, table.index.get_level_values(level)


def _sources(
    X: Any, y: Any, qid: Any, group: Any, bound: BoundIds | None
) -> Iterator[tuple[str, NDArray[Any]]]:
    rows = n_rows(X)
    if qid is not None:
        yield "the argument qid", id_array(qid, rows, "qid")
    if group is not None:
        yield "the argument group", sizes_to_ids(group, rows)
    if bound is not None:
        yield "the bound qid", bound.at(X, y)
    for name, level in index_levels(X, y, NAME):
        source = f"the index level 'qid' of {name}"
        yield source, id_array(level, rows, source)
    if has_column(X):
        yield "the column 'qid' of X", id_array(X[NAME], rows, "the column 'qid' of X")


def find(
    X: Any, y: Any = None, *, qid: Any = None, group: Any = None, bound: BoundIds | None = None
) -> NDArray[Any] | None:
    """Return the query of each row, or None if there are no ids."""
    check_rows(X=X, y=y, qid=qid)
    found = list(_sources(X, y, qid, group, bound))
    if not found:
        return None
    first, ids = found[0]
    for other, others in found[1:]:
        if not same_queries(ids, others):
            raise QueryIdError(
                f"{first} and {other} put rows into different queries: drop one of them"
            )
    return ids


WAYS = (
    "qid= (or group= sizes) with the call; a pandas index level named 'qid', the same on X and y if both are pandas: "
    "y = pd.Series(np.asarray(y), index=pd.Index(qid, name='qid')) and X = X.set_axis(y.index); a column 'qid' of X, "
    "unless a step of a Pipeline drops it. "
    "VotingRegressor, StackingRegressor and RFECV drop an index of y, RFECV that of X too: with them qid= under "
    "metadata routing, sklearn.set_config(enable_metadata_routing=True). StackingRegressor then passes "
    "its cv only what its members request: wrap each of them in rankeval.QueryRanker"
)
"""Ways to give ids, for messages; ``asarray``, because pandas looks a Series with a new index up by label."""


def required_ids(
    X: Any, y: Any = None, *, who: str, ways: str = WAYS, **sources: Any
) -> NDArray[Any]:
    """Return the query of each row; the error of a missing one lists the ways to give it."""
    ids = find(X, y, **sources)
    if ids is None:
        raise UnusableQueryIdsError(
            f"{who} needs the query id of each row: {_other_levels(X)}give {ways}"
        )
    return ids


def _other_levels(X: Any) -> str:
    """Return how to name an index level 'qid', if the index of X has levels of other names."""
    names = [name for name in getattr(index_of(X), "names", ()) if name is not None]
    if not names:
        return ""
    levels = " and ".join(map(repr, names))
    return f"X has the index levels {levels}; X.rename_axis(index={{{names[0]!r}: 'qid'}}) names one, or "
