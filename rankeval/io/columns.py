"""Columns of users and files as arrays of the same values: nothing wraps, no mask is ignored.

========  =============================================  =====================================
column    held as                                        refused, with row and value
========  =============================================  =====================================
ids       Arrow string (large_string over 2 GB), int64   missing, empty, mixed, other types
labels    NumPy int64 or float64                         missing, whole numbers beyond int64
scores    NumPy float64                                  missing, whole numbers that it rounds
========  =============================================  =====================================

The text 1 and the number 1 are different ids, because nobody but the user knows whether they are
the same query. Numbers with decimals are rounded to the nearest float64, as those of a text file
are. Whole numbers survive to the last unit, because rounding them makes ties that were not there.

Ids of rows in memory may be of any sortable type. `comparable` returns them as NumPy sorts them
quickly: NumPy compares text letter by letter, so text ids become numbers in the order of the names.
Arrow's dictionaries number them: a million strings take it 0.02 seconds, where sorting them takes a
second.

The trap: `numpy.asarray` breaks each of these rules in silence. It turns uint64 into negative
int64, -1 beside 2**63 into floats, and texts of digits into numbers, and drops masks. Of the list
``[1, "1"]`` it makes one id, of ``[2**53, 2**53 + 1]`` beside a float another, and it drops a NUL
at the end of a text. Lists of ids in which that could happen stay objects (`as_typed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import count, said, shown
from rankeval._checks import is_text as can_be_text
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io.opening import MASKED, WHOLE
from rankeval.io.words import Grades, graded, words_remedy

IDS: tuple[str, ...] = ("qid", "docid", "aspect", "subgroup")
"""The columns with ids, in the order in which they are checked."""

_MOST_BYTES = 2**31 - 1  # the largest text that 32-bit offsets can address


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows of (query, document, number) as a reader returns them, not yet checked.

    ``name`` is the run tag, ``aspect`` and ``subgroup`` belong to judgments, ``source`` is the file
    or the frame for messages. ``value_name`` is the name under which a table has the number, unless
    the caller named it, and ``parts`` has all its columns by part. ``rank`` is only compared with
    the scores, and may be anything. ``systems`` has the system of each row of a table with a column
    for it. ``notes`` are sentences on what was taken for something else, or left out. ``format`` is
    the format of a file if its reader found a narrower one; ``kept`` has the rows of the file if
    the reader left out some.
    """

    qid: Any
    docid: Any
    value: Any
    name: str | None = None
    aspect: Any = None
    subgroup: Any = None
    source: Any = None
    value_name: str | None = None
    rank: Any = None
    systems: Any = None
    parts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    format: str = ""
    kept: Sequence[int] | None = None

    def noting(self, note: str) -> Columns:
        """Return the same columns with one more note."""
        return replace(self, notes=(*self.notes, note))

    def graded(self, grades: Grades) -> Columns:
        """Return the same columns with the caller's grades, if there are any, for words."""
        return self if grades is None else replace(self, value=graded(as_list(self.value), grades))


def id_column(values: Any, name: str) -> pa.Array:
    """Return ids as an Arrow array of string (large_string beyond 2 GB) or int64."""
    refuse_masked(values, f"column {name}")
    array = _as_arrow(values, name)
    is_integer = pa.types.is_integer(array.type)
    if len(array) == 0 and not is_integer:  # libraries give any type to an empty column
        return pa.array([], pa.string())
    if array.null_count:
        row = pc.index(pc.is_null(array), True).as_py()
        n_rows = count(array.null_count, "row")
        raise InvalidInput(
            f"column {name} has no id in row {row} (counting from 0), {n_rows} in all"
        )
    if is_integer:
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise _unheld(array.to_pylist(), name) from error
    if pa.types.is_floating(array.type) or pa.types.is_boolean(array.type):
        raise InvalidInput(
            f"column {name} is of type {array.type}: ids are text or integers",
            remedy="cast it first",
        )
    if not is_text_type(array.type):
        try:
            array = combined(array.cast(pa.string()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInput(
                f"column {name} is of type {array.type}: ids are text or integers"
            ) from error
    length = numbers_of(pc.binary_length(array))
    if not length.min(initial=1):
        raise InvalidInput(
            f"column {name} has an empty id in row {int(length.argmin())} (counting from 0)"
        )
    return array


def _as_arrow(values: Any, name: str) -> pa.Array:
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        try:
            values = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError) as error:
            problem = (
                f"column {name}: expected one id for each row, found a {type(values).__name__}"
            )
            if isinstance(values, Iterable) and not isinstance(values, (str, bytes)):
                raise _unheld(values, name) from error
            raise InvalidInput(problem) from error
    return combined(values)


def _unheld(ids: Iterable[Any], name: str) -> InvalidInput:
    """Make the error for ids of several types, beyond int64, or with half a character."""
    ids = list(ids)
    kinds = sorted({type(label).__name__ for label in ids})
    for row, label in enumerate(ids) if len(kinds) == 1 else ():
        found = f"column {name}: row {row} is {shown(label)}"
        if isinstance(label, int) and not -(2**63) <= label < 2**63:
            problem = f"{found}, and whole ids go from -2^63 to 2^63 - 1"
            return InvalidInput(problem, remedy="give ids of this column as text")
        if isinstance(label, str) and not can_be_text(label):
            problem = f"{found}, which has half a character that UTF-8 cannot write"
            return InvalidInput(problem, remedy="decode the text again, with errors='replace'")
    return InvalidInput(
        f"column {name} holds {' and '.join(kinds)}: give all values of one column the same type"
    )


def without_wide(column: Any) -> Any:
    """Return a column of integers of 128 bits, which neither NumPy nor Arrow has, as a list."""
    is_wide = str(getattr(column, "dtype", "")) in ("Int128", "UInt128")
    return column.to_list() if is_wide else column


def is_text_type(kind: pa.DataType) -> bool:
    """Say whether a type is one of texts, views apart."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(kind: pa.DataType) -> bool:
    """Say whether a type is one of numbers or booleans."""
    of_numbers = pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal
    return any(of_kind(kind) for of_kind in of_numbers)


def without_view(kind: pa.DataType) -> pa.DataType:
    """Return the same type without views, from which Arrow cannot take rows."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece: categories as values, texts beyond 2 GB as large_string."""
    if pa.types.is_dictionary(column.type):
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        column = combined(column.dictionary).take(column.indices)
    if is_text_type(kind := without_view(column.type)):
        column = column.cast(kind)  # of views Arrow 20 does not tell the bytes
        column = column.cast(pa.string() if column.nbytes < _MOST_BYTES else pa.large_string())
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def as_list(cells: Any) -> list[Any]:
    """Return the cells of a column as values of Python, if it is Arrow's."""
    return cells.to_pylist() if hasattr(cells, "to_pylist") else list(cells)


def distinct(cells: Any) -> list[Any]:
    """Return the distinct cells of a column, if there is one, in the order of the rows."""
    if cells is None:
        return []
    if isinstance(cells, (pa.Array, pa.ChunkedArray)):
        cells = pc.unique(combined(cells))
    return [*dict.fromkeys(as_list(cells))]


def unfit_row(ids: pa.Array | pa.ChunkedArray, pattern: str) -> int:
    """Return the first row whose id matches a pattern (RE2), or -1; integers match none."""
    if not is_text_type(ids.type):
        return -1
    # Arrow's own search: a Python string for each of a million ids would take longer than the
    # reading. `pc.index` would import pandas.
    rows = pc.indices_nonzero(pc.match_substring_regex(ids, pattern))
    return rows[0].as_py() if len(rows) else -1


def row_numbers(rows: NDArray[np.int64]) -> pa.Array:
    """Return row numbers as an Arrow array, copied only if they are strided."""
    # `pyarrow.array` would import pandas.
    content = pa.py_buffer(np.ascontiguousarray(rows, np.int64))
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, content])


def value_column(values: Any, name: str, role: str = "") -> NDArray[Any]:
    """Return finite numbers as int64 or float64, read by a function for the role."""
    read = {"score": scores, "relevance": relevances}.get(role, labels)
    numbers = read(values, f"column {name}")
    refuse_unbounded(numbers, f"column {name}")
    return numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64, copy=False)


def whole(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers as int64 if none has a fraction, else as they are."""
    if numbers.dtype == np.float16:  # it cannot hold the bound
        numbers = numbers.astype(np.float32)
    if numbers.dtype.kind != "f" or not (np.abs(numbers) < WHOLE).all():
        return numbers
    has_fraction = (numbers != np.floor(numbers)).any()
    return numbers if has_fraction else numbers.astype(np.int64)


def refuse_masked(values: Any, name: str, error: type[InvalidInput] = InvalidInput) -> None:
    """Refuse an array with masked rows, which are missing values, and a lazy frame of polars."""
    if hasattr(values, "collect_schema") and not hasattr(values, "shape"):
        raise error(
            argument=name, found="a lazy frame", expected="rows", remedy="call its .collect() first"
        )
    # Most columns have no mask, and NumPy imports `np.ma` late.
    if not hasattr(values, "mask") or not isinstance(values, np.ma.MaskedArray):
        return
    if np.ma.is_masked(values):
        rows = np.unique(np.argwhere(np.atleast_1d(np.ma.getmaskarray(values)))[:, 0])
        problem = f"row {rows[0]} is masked ({len(rows)} such in all)"
        raise error(problem, argument=name, remedy="drop these rows, or fill them by .filled(...)")


def labels(values: Any, name: str) -> NDArray[Any]:
    """Return grades or weights as whole numbers within int64, or as floats of at most 64 bits."""
    # NaN and infinity pass here and in `scores`; `refuse_unbounded` refuses them.
    column = _numbers(values, name)
    if column.dtype.kind != "u" or column.dtype.itemsize < 8:
        return column
    wrapped = column.astype(np.int64)
    if len(beyond := np.flatnonzero(wrapped < 0)):
        _refuse_beyond(name, int(beyond[0]), column[beyond[0]], "a 64-bit whole number")
    return wrapped


def relevances(values: Any, name: str, grades: Grades = None) -> NDArray[Any]:
    """Return `labels`, words by the caller's grades; the error on words writes grades for them."""
    values = values if grades is None else graded(as_list(values), grades)
    try:
        return labels(values, name)
    except InvalidInput as error:
        if not isinstance(values, Iterable):
            raise
        raise error.having(remedy=words_remedy(as_list(values)) or error.remedy) from error


def scores(values: Any, name: str) -> NDArray[Any]:
    """Return scores as whole numbers or floats, none of which float64 would round to another."""
    column = _numbers(values, name)
    if column.dtype.kind not in "iu" or column.dtype.itemsize < 8 or not len(column):
        return column
    if int(column.min()) >= -WHOLE and int(column.max()) <= WHOLE:
        return column
    # Every second whole number beyond 2**53 is a float64: only those that change are refused.
    rounded = column.astype(np.float64)
    for row in np.flatnonzero(np.abs(rounded) >= WHOLE).tolist():
        if int(rounded[row]) != int(column[row]):
            holder = "a 64-bit float, as which scores are compared,"
            _refuse_beyond(name, row, column[row], holder)
    return rounded


def refuse_ragged(values: Any, name: str) -> None:
    """Refuse lists of different lengths where an array is expected."""
    try:
        np.shape(values if isinstance(values, (list, tuple)) else ())
    except ValueError as error:
        raise InvalidInput(
            argument=name, found=shown(values), expected="rows of one length"
        ) from error


def as_column(values: Any) -> Any:
    """Return a matrix of one column, as some models predict it, as that column; else the values."""
    if isinstance(values, (list, tuple)):
        is_matrix = values and all(isinstance(row, list) and len(row) == 1 for row in values)
        return [row[0] for row in values] if is_matrix else values
    is_matrix = getattr(values, "ndim", 1) == 2 and values.shape[1] == 1
    return np.asarray(values)[:, 0] if is_matrix else values


def runs_against(rank: Any, query: NDArray[Any], score: NDArray[Any]) -> bool:
    """Say whether scores rise with the ranks: in some query, and in none otherwise."""
    # ``rank`` may hold anything; only numbers can run against the scores.
    try:
        ranks = _as_arrow(rank, "rank").cast(pa.float64())
    except (InvalidInput, pa.ArrowException):
        return False
    if ranks.null_count or len(ranks) != len(score):
        return False
    columns = query, numbers_of(ranks), np.asarray(score)
    # Nearly all ranks follow the scores, which neighbouring rows show without a sort.
    if _rises(*columns) is None:
        return False
    order = np.lexsort(columns[::-1])
    return bool(_rises(*(column[order] for column in columns)))


def _rises(query: NDArray[Any], rank: NDArray[Any], score: NDArray[Any]) -> int | None:
    """Count the rows where rank and score rise within a query; None if only one of them does."""
    is_next = query[1:] == query[:-1]
    below, lower = (np.sign(np.diff(column)[is_next]) for column in (rank, score))
    return None if (below * lower < 0).any() else int(np.count_nonzero(below * lower))


def refuse_unbounded(column: NDArray[Any], name: str) -> None:
    """Refuse NaN and infinity in a column of `labels` or `scores`, naming the first such row."""
    if column.dtype.kind != "f":
        return
    # A sum is finite only if every part is, so that clean columns need no second array.
    with np.errstate(over="ignore", invalid="ignore"):
        total = column.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        problem = f"row {row} is {column[row]}; expected finite numbers, mend or drop the row"
        remedy = MASKED if column[row] == -np.inf else None
        raise InvalidInput(problem, argument=name, remedy=remedy)


def numbers_of(values: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return an Arrow column of numbers or booleans, without nulls, as an array."""
    # `to_numpy` would import pandas.
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_boolean(values.type):
        return np.from_dlpack(values.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(values)


def bytes_of(texts: pa.Array) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Return the bytes of an Arrow column of texts, and the bounds of each text among them."""
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=width)[texts.offset : texts.offset + len(texts) + 1]
    return bounds, np.frombuffer(data or b"", dtype=np.uint8)


def _numbers(values: Any, name: str) -> NDArray[Any]:
    """Return one number a row as an array of bool, whole numbers or floats of at most 64 bits."""
    column = _as_array(values, name)
    if column.ndim != 1:
        found = f"an array of shape {column.shape}" if column.ndim else f"a {type(values).__name__}"
        remedy = None
        if hasattr(values, "toarray"):
            remedy = "give its toarray().ravel(), and the query of each number"
        elif column.ndim == 2:
            remedy = "give its ravel(), and the query of each number"
        elif hasattr(values, "__next__"):
            remedy = "give a list of its values"
        raise InvalidInput(
            f"expected one number a row, found {found}", argument=name, remedy=remedy
        )
    is_list = isinstance(values, (list, tuple))
    may_be_rounded = False
    if column.dtype.kind == "f":
        # NumPy makes floats of a list with one float, also of whole numbers beyond 2**53.
        is_rounded = is_list and (np.abs(column) >= WHOLE).any()
        may_be_rounded = is_rounded or column.dtype.itemsize > 8
    if column.dtype.kind in "OUS" or may_be_rounded:
        column = _from_objects(values if is_list else column.tolist(), name)
    if column.dtype.kind not in "biuf":
        # scikit-learn's checks of estimators look for these words.
        hint = ". Complex data not supported" if column.dtype.kind == "c" else ""
        raise InvalidInput(f"expected numbers, found {column.dtype}{hint}", argument=name)
    return column


def _as_array(values: Any, name: str) -> NDArray[Any]:
    if type(values) is np.ndarray:
        return values
    values = without_wide(values)
    refuse_masked(values, name)
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        try:
            return np.asarray(values)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            problem = f"expected one number a row, found a {type(values).__name__} ({said(error)})"
            raise InvalidInput(problem, argument=name) from None
    # NumPy would turn nulls into NaN.
    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py()
        raise InvalidInput(
            f"row {row} has no number (found null)",
            argument=name,
            remedy="drop such rows or fill them",
        )
    values = combined(values)
    if len(values) and not is_number(values.type):
        raise InvalidInput(
            f"expected numbers, found {values[0].as_py()!r} of type {values.type}", argument=name
        )
    # Decimals as objects, so that each is rounded once, and whole ones are refused if they change.
    # Libraries give any type to an empty column.
    is_held = is_number(values.type) and not pa.types.is_decimal(values.type)
    return numbers_of(values) if is_held else np.array(values.to_pylist(), dtype=object)


def _from_objects(cells: Any, name: str) -> NDArray[Any]:
    if set(map(type, cells)) == {float}:
        return np.array(cells, dtype=np.float64)
    numbers = [_number(cell, row, name) for row, cell in enumerate(cells)]
    # The narrowest type that holds each number: int64, else uint64, else float64.
    for kind in (np.int64, np.uint64) if set(map(type, numbers)) <= {int} else ():
        with suppress(OverflowError):
            return np.array(numbers, dtype=kind)
    for row, number in enumerate(numbers):
        # Below 2**1023, because float() raises beyond the largest float.
        if type(number) is int and not (abs(number) < 2**1023 and int(float(number)) == number):
            _refuse_beyond(name, row, number, "a 64-bit float")
    return np.array(numbers, dtype=np.float64)


def _number(cell: Any, row: int, name: str) -> int | float:
    # A whole number stays an int, so that float64 cannot round it unseen.
    if isinstance(cell, (int, np.bool_, np.integer)):
        return int(cell)
    if isinstance(cell, (float, np.float32, np.float16)):
        return float(cell)
    if cell is None or cell is np.ma.masked or type(cell).__name__ in ("NAType", "NaTType"):
        raise InvalidInput(
            f"row {row} has no number (found {cell!r}); drop such rows or fill them", argument=name
        )
    if not isinstance(cell, Decimal):
        problem = f"expected numbers, found {cell!r} in row {row}"[:200]
        raise InvalidInput(
            problem, argument=name, remedy="give whole numbers, floats of 64 bits or Decimals"
        )
    nearest = np.inf if cell.is_snan() else float(cell)
    if abs(nearest) == np.inf:
        _refuse_beyond(name, row, cell, "a 64-bit float")
    return int(cell) if abs(nearest) >= WHOLE and cell == int(cell) else nearest


def _refuse_beyond(name: str, row: int, value: Any, holder: str) -> None:
    text = str(value)
    if len(text) > 40:
        text = f"{text[:37]}..."
    problem = f"row {row} is {text}, which {holder} cannot represent"
    remedy = "subtract or divide by the same number everywhere"
    raise InvalidInput(problem, argument=name, remedy=remedy)


_NOUNS = {"qid": "query", "docid": "document"}


def comparable(column: Any, what: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return ids that sort quickly, and None; or their numbers, and the names in order."""
    if isinstance(column, (list, tuple, np.ndarray)):
        column = as_typed(column, what)  # Arrow imports pandas to read a list
    is_column = isinstance(column, np.ndarray) and column.ndim == 1 and column.nbytes > 0
    if is_column and column.dtype.kind == "U":
        # Arrow hashes NumPy's texts where they lie: converting them takes twice as long
        # (bench_scorer, strings).
        fixed = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("="))
        width, content = pa.binary(fixed.dtype.itemsize), pa.py_buffer(fixed)
        texts = pa.FixedSizeBinaryArray.from_buffers(width, len(fixed), [None, content])
        coded = texts.dictionary_encode()
        distinct = coded.dictionary
        names = np.frombuffer(distinct.buffers()[1], dtype=fixed.dtype, count=len(distinct))
        order = np.argsort(names, kind="stable")
    elif (coded := _coded_texts(column, what)) is not None:
        distinct = coded.dictionary
        names = np.array(distinct.to_pylist(), dtype=object)
        is_sorted = pc.all(pc.less(distinct[:-1], distinct[1:])).as_py()
        if is_sorted:
            return numbers_of(coded.indices).astype(np.int64), names
        order = numbers_of(pc.sort_indices(distinct))
    else:
        return _plain(column, what)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    return number[numbers_of(coded.indices)], names[order]


def _plain(column: Any, what: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return ids that are no texts: as they are, or objects of one type by their numbers."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        is_held = is_number and not column.null_count
        # `to_numpy` imports pandas, which takes a worker half a second.
        column = numbers_of(column) if is_held else column.to_numpy(zero_copy_only=False)
    ids = as_typed(column, what)
    if ids.ndim != 1:
        raise _wrong(what, f"expected one id for each row, found an array of shape {ids.shape}")
    refuse_missing(ids, what)
    if ids.dtype.kind != "O":
        return ids, None
    kinds = list(dict.fromkeys(map(type, ids.tolist())))
    if len(kinds) > 1:
        row = [*map(type, ids.tolist())].index(kinds[1])
        mixed = ", ".join(sorted(kind.__name__ for kind in kinds))
        rows = f"row 0 has {ids[0]!r}, row {row} has {ids[row]!r}"
        raise _wrong(
            what, f"ids of several types are mixed ({mixed}): {rows}; make them all strings"
        )
    try:
        names, number = np.unique(ids, return_inverse=True)
    except TypeError as error:
        raise _wrong(
            what, f"ids are of type {kinds[0].__name__}, which cannot be sorted: {error}"
        ) from None
    return number, names


def _coded_texts(ids: Any, what: str) -> pa.DictionaryArray | None:
    if not isinstance(ids, (pa.Array, pa.ChunkedArray)):
        kind = getattr(getattr(ids, "dtype", None), "kind", "O")
        if kind not in "OT" or getattr(ids, "ndim", 1) != 1:
            return None
        cells = ids.tolist() if kind == "T" else ids
        # Refused: other objects, no column, half a surrogate pair.
        try:
            ids = pa.array(cells, type=pa.large_string(), from_pandas=True)
        except (pa.ArrowException, TypeError, UnicodeError):
            return None
    is_coded = pa.types.is_dictionary(ids.type)
    if not is_text_type(ids.type.value_type if is_coded else ids.type) or ids.null_count == len(
        ids
    ):
        return None
    ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    if is_coded and not ids.null_count and not ids.dictionary.null_count:
        # Texts that are numbered already stay so, unless a text has two numbers (bench_streaming).
        distinct = ids.dictionary.dictionary_encode()
        if len(distinct.dictionary) == len(ids.dictionary):
            return ids
        numbers = distinct.indices.take(ids.indices)
        return pa.DictionaryArray.from_arrays(numbers, distinct.dictionary)
    ids = ids.cast(ids.type.value_type) if is_coded else ids
    if ids.null_count:
        row = pc.index(ids.is_null(), True).as_py()
        raise _wrong(what, f"row {row} has no {_NOUNS[what]} id (found None)")
    return ids.dictionary_encode()


def as_typed(ids: ArrayLike, what: str = "qid") -> NDArray[Any]:
    """Return ids as an array, and as objects where NumPy would change one."""
    refuse_masked(ids, what, QueryIdError if what == "qid" else InvalidInput)
    ids = without_wide(ids)
    try:
        column = np.asarray(ids)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _wrong(
            what, f"expected one id for each row, found a {type(ids).__name__} ({said(error)})"
        ) from None
    if column.dtype.kind == "V":
        raise _wrong(what, f"expected one id for each row, found {column.dtype}")
    if not column.ndim:
        raise _wrong(what, f"expected one id for each row, found a {type(ids).__name__}")
    if not isinstance(ids, (list, tuple)) or column.ndim != 1:
        return column
    # NumPy writes 1 beside "1" as text, rounds whole numbers beyond 2**53 beside a float, drops
    # NULs at a text's end.
    if column.dtype.kind in "US":
        is_mixed = len({isinstance(label, str) for label in ids}) > 1
        is_changed = is_mixed or any(label[-1:] in ("\0", b"\0") for label in ids)
    else:
        is_changed = column.dtype.kind == "f" and bool((np.abs(column) >= WHOLE).any())
    return np.fromiter(ids, dtype=object, count=len(ids)) if is_changed else column


def _wrong(what: str, problem: str) -> InvalidInput:
    return (QueryIdError if what == "qid" else InvalidInput)(problem, argument=what)


def refuse_missing(ids: NDArray[Any], what: str) -> None:
    """Raise if an id is None, NaN or the like."""
    if ids.dtype.kind not in "fcmMO":
        return
    if ids.dtype.kind in "fc":
        missing = np.isnan(ids)
    else:
        import pandas as pd

        missing = pd.isna(ids)
    if missing.any():
        row = int(np.argmax(missing))
        raise _wrong(
            what, f"row {row} has no {_NOUNS[what]} id (found {ids[row : row + 1].tolist()[0]!r})"
        )
