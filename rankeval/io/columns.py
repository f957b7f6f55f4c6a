"""One column that a user or a file gave, as an array that holds the same values: nothing wraps, no mask is ignored.

========  =============================================  =====================================
column    held as                                        refused, with row and value
========  =============================================  =====================================
ids       Arrow string (large_string over 2 GB), int64   missing, empty, mixed, other types
labels    NumPy int64 or float64                         missing, whole numbers beyond int64
scores    NumPy float64                                  missing, whole numbers that it rounds
========  =============================================  =====================================

The text 1 and the number 1 are different ids, because nobody but the user knows whether they are the same query.
Fractions are rounded to the nearest float64, as those of a text file are. Whole numbers survive to the last unit,
because rounding them makes ties that were not there. The trap: `numpy.asarray` breaks each of these rules in silence.
It turns uint64 into negative int64, -1 beside 2**63 into floats, and texts of digits into numbers, and drops masks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval._checks import count, said
from rankeval.errors import InvalidInput
from rankeval.io.text import WHOLE

_LEAST, _MOST = -(2**63), 2**63 - 1
_MOST_BYTES = 2**31 - 1  # the largest text that 32-bit offsets can address


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows of (query, document, number) as a reader returns them, not yet checked.

    ``name`` is the run tag, ``aspect`` and ``subgroup`` belong to judgments, ``source`` is the file for messages.
    ``value_name`` is the name under which a table has the number, unless the caller named it.
    """

    qid: Any
    docid: Any
    value: Any
    name: str | None = None
    aspect: Any = None
    subgroup: Any = None
    source: Any = None
    value_name: str | None = None


def id_column(values: Any, name: str) -> pa.Array:
    """Return ids as an Arrow array of string (large_string beyond 2 GB) or int64.

    Parameters
    ----------
    values : array, list, Series or Arrow array
        Strings or integers, not both.
    name : str
        The column's name for messages.

    Raises
    ------
    InvalidInput
        If an id is missing, empty, or neither text nor integer, or if types are mixed.
    """
    refuse_masked(values, f"column {name}")
    array = _as_arrow(values, name)
    if len(array) == 0 and not pa.types.is_integer(array.type):  # libraries give any type to an empty column
        return pa.array([], pa.string())
    if array.null_count:
        row = pc.index(pc.is_null(array), True).as_py()
        raise InvalidInput(
            f"column {name} has no id in row {row} (counting from 0), {count(array.null_count, 'row')} in all"
        )
    if pa.types.is_integer(array.type):
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"column {name} holds integers beyond 64 bits: give them as text") from error
    if pa.types.is_floating(array.type) or pa.types.is_boolean(array.type):
        raise InvalidInput(f"column {name} is of type {array.type}: ids are text or integers", remedy="cast it first")
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        try:
            array = combined(array.cast(pa.string()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInput(f"column {name} is of type {array.type}: ids are text or integers") from error
    length = numbers_of(pc.binary_length(array))
    if not length.min(initial=1):
        raise InvalidInput(f"column {name} has an empty id in row {int(length.argmin())} (counting from 0)")
    return array


def _as_arrow(values: Any, name: str) -> pa.Array:
    """Return one plain Arrow array: in one piece, without a dictionary, with pandas' NaN as null."""
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        try:
            values = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
                raise InvalidInput(
                    f"column {name}: expected one id for each row, found a {type(values).__name__}"
                ) from None
            kinds = sorted({type(value).__name__ for value in values})
            raise InvalidInput(
                f"column {name} holds {' and '.join(kinds)}: give all values of one column the same type"
            ) from error
    if pa.types.is_dictionary(values.type):
        # Each chunk may have a dictionary of its own.
        pieces = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        kind = combined(pieces[0].dictionary).type if pieces else pa.string()
        values = pa.chunked_array([combined(piece.dictionary).take(piece.indices) for piece in pieces], kind)
    return combined(values)


def without_view(kind: pa.DataType) -> pa.DataType:
    """Return the type of the same texts or bytes if these are held as views, of which Arrow takes no rows."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the column in one piece, text as string, or as large_string if string cannot hold it."""
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        fits = column.nbytes < _MOST_BYTES
        column = column.cast(pa.string() if fits else pa.large_string())
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def places_of(rows: NDArray[np.int64]) -> pa.Array:
    """Return row numbers as an Arrow array, copied only if they are strided; `pyarrow.array` would import pandas."""
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows, np.int64))])


def value_column(values: Any, name: str, role: str = "relevance") -> NDArray[Any]:
    """Return finite numbers as int64 or float64; ``role`` says whether `labels` or `scores` must hold them exactly."""
    numbers = (scores if role == "score" else labels)(values, f"column {name}")
    refuse_unbounded(numbers, f"column {name}")
    return numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64, copy=False)


def whole(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers as int64 if none has a fraction, else as they are."""
    if numbers.dtype == np.float16:  # it cannot hold the bound
        numbers = numbers.astype(np.float32)
    if numbers.dtype.kind == "f" and (np.abs(numbers) < WHOLE).all() and (numbers == np.floor(numbers)).all():
        return numbers.astype(np.int64)
    return numbers


def refuse_masked(values: Any, name: str, error: type[InvalidInput] = InvalidInput) -> None:
    """Refuse a masked array that masks a row, because a masked value is a missing one."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        mask = np.ma.getmaskarray(values)
        rows = mask.reshape(len(mask), -1).any(axis=1) if mask.ndim else mask.reshape(1)
        raise error(
            f"{name}: row {int(np.argmax(rows))} is masked ({int(rows.sum())} such in all); drop these rows, or fill "
            "them by .filled(...)"
        )


def labels(values: Any, name: str) -> NDArray[Any]:
    """Return grades or weights as an array of whole numbers within int64, or of floats of at most 64 bits.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        Numbers of any make. NaN and infinity pass; `refuse_unbounded` refuses them.
    name : str
        The column's name for messages.

    Raises
    ------
    InvalidInput
        If a value is missing, masked, no number or beyond int64, or if the array is not one-dimensional.
    """
    column = _numbers(values, name)
    if column.dtype.kind == "u" and column.dtype.itemsize == 8:
        beyond = column > np.uint64(_MOST)
        if beyond.any():
            _refuse_beyond(name, int(np.argmax(beyond)), column[np.argmax(beyond)], "a 64-bit whole number")
        return column.astype(np.int64)
    return column


def scores(values: Any, name: str) -> NDArray[Any]:
    """Return numbers that float64 holds: whole numbers as they are or as float64, fractions rounded to the nearest.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        Numbers of any make. NaN and infinity pass; `refuse_unbounded` refuses them.
    name : str
        The column's name for messages.

    Raises
    ------
    InvalidInput
        If a value is missing, masked, no number or beyond float64, or if the array is not one-dimensional.
    """
    column = _numbers(values, name)
    if column.dtype.kind not in "iu" or column.dtype.itemsize < 8 or not len(column):
        return column
    if int(column.min()) >= -WHOLE and int(column.max()) <= WHOLE:
        return column
    # Every second whole number beyond 2**53 is a float64: only those that change are refused.
    rounded = column.astype(np.float64)
    odd = [row for row in np.flatnonzero(np.abs(rounded) >= WHOLE).tolist() if int(rounded[row]) != int(column[row])]
    if odd:
        _refuse_beyond(name, odd[0], column[odd[0]], "a 64-bit float, as which scores are compared,")
    return rounded


def as_column(values: Any) -> Any:
    """Return a matrix of one column, as some models predict it, as that column; return anything else as it is."""
    if isinstance(values, (list, tuple)) and values and all(isinstance(row, list) and len(row) == 1 for row in values):
        return [row[0] for row in values]
    return np.asarray(values)[:, 0] if getattr(values, "ndim", 1) == 2 and values.shape[1] == 1 else values


def refuse_unbounded(column: NDArray[Any], name: str) -> None:
    """Refuse NaN and infinity in a column that `labels` or `scores` returned, naming the first such row."""
    if column.dtype.kind != "f":
        return
    # A sum is finite only if every part is, so that clean columns need no second array.
    with np.errstate(over="ignore", invalid="ignore"):
        total = column.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise InvalidInput(f"row {row} is {column[row]}; expected finite numbers, mend or drop the row", argument=name)


def numbers_of(values: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return an Arrow column of numbers or booleans, without nulls, as an array; `to_numpy` would import pandas."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_boolean(values.type):
        return np.from_dlpack(values.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(values)


def _numbers(values: Any, name: str) -> NDArray[Any]:
    """Return one number a row as an array of bool, whole numbers or floats of at most 64 bits."""
    column = _as_array(values, name)
    if column.ndim != 1:
        raise InvalidInput(f"expected one number a row, found an array of shape {column.shape}", argument=name)
    is_wide = column.dtype.kind == "f" and column.dtype.itemsize > 8
    if column.dtype.kind in "OUS" or is_wide or _may_be_rounded(values, column):
        column = _from_objects(values if isinstance(values, (list, tuple)) else column.tolist(), name)
    if column.dtype.kind not in "biuf":
        # scikit-learn's checks of estimators look for these words.
        told = ". Complex data not supported" if column.dtype.kind == "c" else ""
        raise InvalidInput(f"expected numbers, found {column.dtype}{told}", argument=name)
    return column


def _as_array(values: Any, name: str) -> NDArray[Any]:
    if type(values) is np.ndarray:
        return values
    refuse_masked(values, name)
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(values, name)
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        told = said(error)
        raise InvalidInput(f"{name}: expected one number a row, found a {type(values).__name__} ({told})") from None


def _from_arrow(values: pa.Array | pa.ChunkedArray, name: str) -> NDArray[Any]:
    """Return an Arrow column of numbers as an array; refuse nulls, which NumPy would turn into NaN."""
    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py()
        raise InvalidInput(f"row {row} has no number (found null)", argument=name, remedy="drop such rows or fill them")
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_boolean(values.type) or pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return numbers_of(values)
    if pa.types.is_decimal(values.type):
        # As objects, so that each is rounded once, and whole ones are refused if they change.
        column = np.empty(len(values), dtype=object)
        column[:] = values.to_pylist()
        return column
    if not len(values):  # libraries give any type to an empty column
        return np.empty(0, dtype=np.int64)
    raise InvalidInput(f"expected numbers, found {values[0].as_py()!r} of type {values.type}", argument=name)


def _may_be_rounded(values: Any, column: NDArray[Any]) -> bool:
    """Say whether NumPy may have made floats of whole numbers in a list that floats cannot hold."""
    if column.dtype.kind != "f" or not isinstance(values, (list, tuple)):
        return False
    with np.errstate(invalid="ignore"):
        return bool((np.abs(column) >= WHOLE).any())


def _from_objects(cells: Any, name: str) -> NDArray[Any]:
    """Return Python's own numbers as the narrowest of int64, uint64 and float64 that holds each of them."""
    if set(map(type, cells)) == {float}:
        return np.array(cells, dtype=np.float64)
    found = [_number(cell, row, name) for row, cell in enumerate(cells)]
    if all(type(one) is int for one in found):
        least, most = min(found, default=0), max(found, default=0)
        if least >= _LEAST and most <= _MOST:
            return np.array(found, dtype=np.int64)
        if least >= 0 and most < 2**64:
            return np.array(found, dtype=np.uint64)
    # Below 2**1023, because float() raises beyond the largest float.
    for row, one in enumerate(found):
        if type(one) is int and not (abs(one) < 2**1023 and int(float(one)) == one):
            _refuse_beyond(name, row, one, "a 64-bit float")
    return np.array(found, dtype=np.float64)


def _number(cell: Any, row: int, name: str) -> int | float:
    """Return a whole number as int, another number as the nearest float."""
    if isinstance(cell, (bool, int, np.bool_, np.integer)):
        return int(cell)
    if isinstance(cell, (float, np.floating)) and (type(cell) is not np.longdouble or not np.isfinite(cell)):
        return float(cell)
    if cell is None or cell is np.ma.masked or type(cell).__name__ in ("NAType", "NaTType"):
        raise InvalidInput(f"row {row} has no number (found {cell!r}); drop such rows or fill them", argument=name)
    if not isinstance(cell, (Decimal, Fraction, np.longdouble)):
        raise InvalidInput(f"expected numbers, found {cell!r} in row {row}"[:200], argument=name)
    try:
        nearest = float(cell)
    except (OverflowError, ValueError):  # a great fraction, a signalling NaN
        nearest = float("inf")
    if abs(nearest) == float("inf"):
        _refuse_beyond(name, row, cell, "a 64-bit float")
    return int(cell) if abs(nearest) >= WHOLE and cell == int(cell) else nearest


def _refuse_beyond(name: str, row: int, value: Any, holder: str) -> None:
    shown = str(value)
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    raise InvalidInput(
        f"row {row} is {shown}, which {holder} cannot hold",
        argument=name,
        remedy="subtract or divide by the same number everywhere",
    )
