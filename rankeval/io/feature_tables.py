"""Tables of features: Parquet, CSV and TSV, whose columns have names of the user's own.

The caller says which columns hold query, label, document and part. The features are the columns
that the caller names, or all others that are numbers or categories. A named column of another kind
is refused; any other one is left out with a reason. A column of text or numbers holds categories if
the caller says so; the categories of Parquet stay what they are. The trap is a column that looks
like a feature: a label, an id or pandas' row number would tell a model what it must not know, so
columns that are called like ids or labels are features only if they are named.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval._checks import shown
from rankeval._registry import unknown
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.columns import (
    combined,
    id_column,
    is_number,
    is_text_type,
    numbers_of,
    value_column,
    whole,
    without_view,
)
from rankeval.io.formats import naming, refuse_read
from rankeval.io.frames import LAST, SPELLINGS
from rankeval.io.opening import WHOLE, Limits, numbers_of_texts, reading
from rankeval.io.tables import TableSource, open_table, swallowed

if TYPE_CHECKING:
    import pandas as pd

_INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+|")
_SUSPECT = {name for part in ("qid", "docid", "relevance") for name in SPELLINGS[part]} | set(
    LAST["qid"]
)

Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """The columns of a table of features."""

    qid: NDArray[Any]  # (n_rows,): Ids, integers or text; ``docid`` may be None
    label: NDArray[Any]  # (n_rows,): Relevance
    docid: NDArray[Any] | None
    # The value of the column of parts in each row, as text; None where it is missing.
    part: list[str | None] | None
    # (n_rows,): Numbers, or a Series of categories; NaN where a cell is empty.
    features: Mapping[str, Numbers | pd.Series[Any]]
    left_out: Mapping[str, str]  # Columns that are no features, and why
    beside: Mapping[str, pd.Series[Any]]  # (n_rows,): The columns that were asked for as slices


def read_feature_table(
    path: str | os.PathLike[str],
    roles: Mapping[str, str],
    features: Sequence[str] | None,
    *,
    categories: Sequence[str] = (),
    slices: Sequence[str] = (),
    format: str | None,  # noqa: A002 - as in `Qrels.read`
    limits: Limits,
) -> FeatureTable:
    """Read a table of features."""
    with reading(path, limits) as file:
        source = open_table(file, str(path), format, limits)
        names = _asked(source, roles, features, categories=categories, slices=slices)
        unfit = {} if features is not None else _left_out(source, names, categories)
        read = [*roles.values(), *(name for name in names if name not in unfit), *slices]
        table = source.columns([*dict.fromkeys(read)])
    columns: dict[str, Numbers | pd.Series[Any]] = {}
    left_out: dict[str, str] = {}
    for name in names:
        is_category = name in categories or pa.types.is_dictionary(source.kinds[name])
        read_as = _typed if is_category else feature_numbers
        found = unfit.get(name) or read_as(table.column(name), source)
        if not isinstance(found, str):
            columns[name] = found.astype("category") if is_category else found
        elif features is None:
            left_out[name] = found
        else:
            problem = f"the feature {name!r} is no column of numbers ({found})"
            raise FileFormatError(
                problem, where=source.path, remedy="leave it out, or name it in categories too"
            )
    if not columns:
        reasons = (
            "; ".join(f"{name}: {reason}" for name, reason in left_out.items()) or "no other column"
        )
        raise InvalidInput(f"{source.path} has no column of numbers left for a feature ({reasons})")
    with naming(source.path):
        return FeatureTable(
            qid=_ids(table, roles["qid"], source),
            label=_labels(table, roles["label"], source),
            docid=_ids(table, roles["docid"], source) if "docid" in roles else None,
            part=_texts(table.column(roles["part"])) if "part" in roles else None,
            features=columns,
            left_out=left_out,
            beside={name: _typed(table.column(name), source) for name in slices},
        )


def _asked(
    source: TableSource,
    roles: Mapping[str, str],
    features: Sequence[str] | None,
    **more: Sequence[str],
) -> list[str]:
    """Return the columns that may be features; raise if a column that was named does not exist."""
    asked: dict[str, str] = {}
    wanted = [] if features is None else list(features)
    named = [("features", name) for name in wanted]
    named += [(one, name) for one, names in more.items() for name in names if name not in wanted]
    for argument, name in (*roles.items(), *named):
        if name not in source.kinds:
            raise unknown("column", name, source.kinds).having(where=f"{source.path}, {argument}")
        if name in asked and argument != "slices":
            raise InvalidInput(
                f"{name!r} is named for {asked[name]} and again for {argument}: name each column once"
            )
        asked.setdefault(name, argument)
    if features is None:
        return [name for name in source.kinds if asked.get(name, "categories") == "categories"]
    if not wanted:
        raise InvalidInput(
            "features is empty: name columns, or leave it out to take all that are numbers"
        )
    return [name for name, argument in asked.items() if argument in ("features", "categories")]


def _left_out(
    source: TableSource, names: Sequence[str], categories: Sequence[str]
) -> dict[str, str]:
    reasons = {}
    for name in (name for name in names if name not in categories):
        kind = source.kinds[name]
        if _INDEX.fullmatch(name):
            reasons[name] = "row numbers that pandas wrote"
        elif name in _SUSPECT:
            reasons[name] = "called like an id or a label"
        elif not source.delimiter and not is_number(kind) and not pa.types.is_dictionary(kind):
            reasons[name] = _kind_words(kind)
    return reasons


def _kind_words(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return "categories"
    return "text" if is_text_type(without_view(kind)) else str(kind)


def feature_numbers(column: pa.ChunkedArray, source: TableSource) -> Numbers | str:
    """Return the numbers of a column, NaN for empty cells, or the reason why it has none."""
    if source.delimiter:
        return _parsed(column, source)
    kind = column.type
    if not is_number(kind):
        return _kind_words(kind)
    narrowest = {pa.bool_(): pa.uint8(), pa.float16(): pa.float32()}
    return _with_nan(
        column.cast(pa.float64() if pa.types.is_decimal(kind) else narrowest.get(kind, kind))
    )


def _with_nan(column: pa.ChunkedArray) -> Numbers:
    if column.null_count:
        if not pa.types.is_floating(column.type):
            column = column.cast(pa.float64(), safe=False)
        column = pc.fill_null(column, float("nan"))
    return numbers_of(column)


def _parsed(column: pa.ChunkedArray, source: TableSource) -> Numbers | str:
    """Return the numbers, or true and false, that texts stand for; or the first text that is none."""
    found = _cast(column, pa.float64())
    if found is None:
        column = pc.utf8_trim_whitespace(column)
        found = _cast(column, pa.float64(), pa.bool_())
    if found is not None:
        return _with_nan(found.cast(pa.float64()))
    row = bisect_left(
        range(len(column)), True, key=lambda last: _cast(column[: last + 1], pa.float64()) is None
    )
    return f"{source.place(row)} has {column[row].as_py()[:40]!r}"


def _cast(cells: pa.ChunkedArray, *kinds: pa.DataType) -> pa.ChunkedArray | None:
    """Return texts as the first of some types that holds all of them, empty ones as missing."""
    cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
    for kind in kinds:
        with suppress(pa.ArrowInvalid):
            return cells.cast(kind)
    return None


def _typed(column: pa.ChunkedArray, source: TableSource) -> pd.Series[Any]:
    """Return a column as pandas would read it: whole numbers, else numbers, else the texts as they are."""
    column = _cast(column, pa.int64(), pa.float64(), pa.string()) if source.delimiter else column
    read: pd.Series[Any] = column.to_pandas()
    return read


def _ids(table: pa.Table, name: str, source: TableSource) -> NDArray[Any]:
    ids = id_column(table.column(name), name)
    refuse_read(
        ids, swallowed(source.delimiter), name, lambda row: f"{source.path}, {source.place(row)}"
    )
    # Objects: NumPy's own texts would all take the width of the longest.
    return (
        numbers_of(ids)
        if pa.types.is_integer(ids.type)
        else np.array(ids.to_pylist(), dtype=object)
    )


def _labels(table: pa.Table, name: str, source: TableSource) -> NDArray[Any]:
    column = combined(table.column(name))
    found: Any = feature_numbers(column, source)
    if isinstance(found, str):
        raise FileFormatError(
            f"the label {name!r} is no column of numbers ({found})", where=source.path
        )
    finite = np.isfinite(found)
    if not finite.all():
        row = int(np.argmin(finite))
        place = f"{source.path}, {source.place(row)}, column {name}"
        raise FileFormatError(
            f"expected a label, a finite number, found {shown(column[row].as_py())}", where=place
        )
    if source.delimiter and (np.abs(found) >= WHOLE).any():  # whole numbers that Arrow has rounded
        found = numbers_of_texts(pc.utf8_trim_whitespace(column).to_pylist())
    return whole(value_column(found, name))


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [None if value is None else str(value) for value in combined(column).to_pylist()]
