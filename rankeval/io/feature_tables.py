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
    as_list,
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
from rankeval.io.words import Grades, graded, words_remedy

if TYPE_CHECKING:
    import pandas as pd

_INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+|")
_SUSPECT = {*SPELLINGS["qid"], *LAST["qid"], *SPELLINGS["docid"], *SPELLINGS["relevance"]}
_SUSPECT -= {"rating"}  # of a product, a usual feature

Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """The columns of a table of features, one value a row in each."""

    qid: NDArray[Any]  # Integers or text
    label: NDArray[Any]  # Relevance
    docid: NDArray[Any] | None
    part: list[str | None] | None  # Cells of the column of parts; None where it is empty
    features: Mapping[str, Numbers | pd.Series[Any]]  # NaN where a cell is empty
    left_out: Mapping[str, str]  # Columns that are not features, and why
    beside: Mapping[
        str, pd.Series[Any]
    ]  # The columns that the caller wants as slices, or to rank by


def read_feature_table(
    path: str | os.PathLike[str],
    roles: Mapping[str, str],
    features: Sequence[str] | None,
    *,
    categories: Sequence[str] = (),
    slices: Sequence[str] = (),
    rankers: Sequence[str] = (),
    grades: Grades = None,
    format: str | None,  # noqa: A002 - as in `Qrels.read`
    limits: Limits,
) -> FeatureTable:
    """Read a table of features; ``roles`` names the columns of qid, label, docid, part and time."""
    with reading(path, limits) as file:
        source = open_table(file, str(path), format, limits)
        beside = {"slices": slices, "rankers": rankers}
        names = _candidates(source, roles, features, categories=categories, **beside)
        unfit = {} if features is not None else _left_out(source, names, categories)
        fit = [name for name in names if name not in unfit]
        table = source.columns([*dict.fromkeys([*roles.values(), *fit, *slices, *rankers])])
    columns: dict[str, Numbers | pd.Series[Any]] = {}
    left_out: dict[str, str] = {}
    for name in names:
        is_category = name in categories or pa.types.is_dictionary(source.kinds[name])
        read_as = _typed if is_category else feature_numbers
        values = unfit.get(name) or read_as(table.column(name), source)
        if not isinstance(values, str):
            columns[name] = values.astype("category") if is_category else values
        elif features is None:
            left_out[name] = values
        else:
            problem = f"the feature {name!r} is not a column of numbers ({values})"
            remedy = "leave it out, or name it in categories too"
            raise FileFormatError(problem, where=source.path, remedy=remedy)
    if not columns:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        problem = f"{source.path} has no column of numbers left for a feature"
        raise InvalidInput(f"{problem} ({reasons or 'no other column'})")
    with naming(source.path):
        qid = _ids(table, roles["qid"], source)
        label = _labels(table, roles["label"], source, grades)
        docid = _ids(table, roles["docid"], source) if "docid" in roles else None
        part = _texts(table.column(roles["part"])) if "part" in roles else None
        others = {name: _typed(table.column(name), source) for name in (*slices, *rankers)}
        return FeatureTable(qid, label, docid, part, columns, left_out, others)


def _candidates(
    source: TableSource,
    roles: Mapping[str, str],
    features: Sequence[str] | None,
    **more: Sequence[str],
) -> list[str]:
    """Return the columns that may be features; raise if a column that was named does not exist."""
    argument_of: dict[str, str] = {}
    wanted = [] if features is None else list(features)
    named = [*roles.items(), *(("features", name) for name in wanted)]
    for argument, names in more.items():
        named += [(argument, name) for name in names if name not in wanted]
    for argument, name in named:
        if name not in source.kinds:
            raise unknown("column", name, source.kinds).having(where=f"{source.path}, {argument}")
        if name in argument_of and argument not in ("slices", "rankers"):
            twice = f"{argument_of[name]} and again for {argument}"
            raise InvalidInput(f"{name!r} is named for {twice}: name each column once")
        argument_of.setdefault(name, argument)
    if features is None:
        features_by_default = (None, "categories", "rankers")
        return [name for name in source.kinds if argument_of.get(name) in features_by_default]
    if not wanted:
        raise InvalidInput(
            "features is empty: name columns, or leave it out to take all that are numbers"
        )
    return [name for name, role in argument_of.items() if role in ("features", "categories")]


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
    if pa.types.is_decimal(kind):
        return _with_nan(column.cast(pa.float64()))
    narrowest = {pa.bool_(): pa.uint8(), pa.float16(): pa.float32()}
    return _with_nan(column.cast(narrowest.get(kind, kind)))


def _with_nan(column: pa.ChunkedArray) -> Numbers:
    if column.null_count:
        if not pa.types.is_floating(column.type):
            column = column.cast(pa.float64(), safe=False)
        column = pc.fill_null(column, float("nan"))
    return numbers_of(column)


def _parsed(column: pa.ChunkedArray, source: TableSource) -> Numbers | str:
    """Return the numbers, or true and false, of texts; or the first text that is not a number."""
    numbers = _cast(column, pa.float64())
    if numbers is None:
        column = pc.utf8_trim_whitespace(column)
        numbers = _cast(column, pa.float64(), pa.bool_())
    if numbers is not None:
        return _with_nan(numbers.cast(pa.float64()))
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
    """Return a column as pandas would read it: whole numbers, else numbers, else texts."""
    column = _cast(column, pa.int64(), pa.float64(), pa.string()) if source.delimiter else column
    read: pd.Series[Any] = column.to_pandas()
    return read


def _ids(table: pa.Table, name: str, source: TableSource) -> NDArray[Any]:
    ids = id_column(table.column(name), name)
    unread = swallowed(source.delimiter)
    refuse_read(ids, unread, name, lambda row: f"{source.path}, {source.place(row)}")
    if pa.types.is_integer(ids.type):
        return numbers_of(ids)
    # Objects: NumPy's own texts would all take the width of the longest.
    return np.array(ids.to_pylist(), dtype=object)


def _labels(table: pa.Table, name: str, source: TableSource, of_words: Grades) -> NDArray[Any]:
    column = combined(table.column(name))
    if of_words is not None:
        return whole(value_column(graded(as_list(column), of_words), name, "relevance"))
    grades: Any = feature_numbers(column, source)
    if isinstance(grades, str):
        problem = f"the label {name!r} is not a column of numbers ({grades})"
        remedy = words_remedy(as_list(column))
        raise FileFormatError(problem, where=source.path, remedy=remedy)
    finite = np.isfinite(grades)
    if not finite.all():
        row = int(np.argmin(finite))
        problem = f"expected a label, a finite number, found {shown(column[row].as_py())}"
        raise FileFormatError(problem, where=f"{source.path}, {source.place(row)}, column {name}")
    if source.delimiter and (np.abs(grades) >= WHOLE).any():  # Arrow has rounded whole numbers
        grades = numbers_of_texts(pc.utf8_trim_whitespace(column).to_pylist())
    return whole(value_column(grades, name))


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [None if value is None else str(value) for value in combined(column).to_pylist()]
