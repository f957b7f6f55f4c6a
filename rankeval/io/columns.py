"""A column that a user gave, as a NumPy array that holds the same values: nothing wraps, nothing ignores a mask.

Labels are held as int64 or float64, scores are compared as float64. What these cannot hold is refused by row and
value: whole numbers must survive to the last unit, since rounding them makes ties, or a rank, that were not there;
fractions are rounded to the nearest float64, as those of a text file are. `numpy.asarray` says nothing of any of this:
it turns uint64 into negative int64, -1 beside 2**63 into floats, texts of digits into numbers, and drops masks.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval.errors import InvalidInput

_WHOLE = 2**53
"""Up to here float64 holds every whole number."""

_LEAST, _MOST = -(2**63), 2**63 - 1


def refuse_masked(values: Any, name: str, error: type[InvalidInput] = InvalidInput) -> None:
    """Refuse a masked array that masks anything, as a missing value is refused.

    Parameters
    ----------
    values : object
        Whatever was given.
    name : str
        What messages call it.
    error : type, optional
        What is raised.

    Raises
    ------
    InvalidInput
        With the first row that is masked.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        mask = np.ma.getmaskarray(values)
        rows = mask.reshape(len(mask), -1).any(axis=1) if mask.ndim else mask.reshape(1)
        raise error(
            f"{name}: row {int(np.argmax(rows))} is masked ({int(rows.sum())} such in all); drop these rows, or fill "
            "them by .filled(...)"
        )


def labels(values: Any, name: str) -> NDArray[Any]:
    """Return grades or weights as a NumPy array of whole numbers within int64, or of float64 or less.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        Numbers of any make; NaN and infinity are left for the caller to refuse.
    name : str
        What messages call them.

    Raises
    ------
    InvalidInput
        For what is no number, missing, masked, not one a row or beyond int64, naming the row.
    """
    column = _numbers(values, name)
    if column.dtype.kind == "u" and column.dtype.itemsize == 8:
        beyond = column > np.uint64(_MOST)
        if beyond.any():
            _refuse_beyond(name, int(np.argmax(beyond)), column[np.argmax(beyond)], "a 64-bit whole number")
        return column.astype(np.int64)
    return column


def scores(values: Any, name: str) -> NDArray[Any]:
    """Return numbers that float64 holds: whole numbers as they are or as float64, fractions to the nearest.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        Numbers of any make; NaN and infinity are left for the caller to refuse.
    name : str
        What messages call them.

    Raises
    ------
    InvalidInput
        For what is no number, missing, masked, not one a row or beyond float64, naming the row.
    """
    column = _numbers(values, name)
    if column.dtype.kind not in "iu" or column.dtype.itemsize < 8 or not len(column):
        return column
    if int(column.min()) >= -_WHOLE and int(column.max()) <= _WHOLE:
        return column
    rounded = column.astype(np.float64)
    odd = [row for row in np.flatnonzero(np.abs(rounded) >= _WHOLE).tolist() if int(rounded[row]) != int(column[row])]
    if odd:
        _refuse_beyond(name, odd[0], column[odd[0]], "a 64-bit float, as which scores are compared,")
    return rounded


def as_column(values: Any) -> Any:
    """Return a matrix of one column as that column, anything else as it is.

    Parameters
    ----------
    values : array or frame
        As models predict it, perhaps.
    """
    if isinstance(values, (list, tuple)) and values and all(isinstance(row, list) and len(row) == 1 for row in values):
        return [row[0] for row in values]
    return np.asarray(values)[:, 0] if getattr(values, "ndim", 1) == 2 and values.shape[1] == 1 else values


def refuse_unbounded(column: NDArray[Any], name: str) -> None:
    """Refuse NaN and infinity.

    Parameters
    ----------
    column : ndarray of shape (n_rows,)
        As `labels` and `scores` return it.
    name : str
        What messages call it.

    Raises
    ------
    InvalidInput
        With the first such row.
    """
    if column.dtype.kind != "f":
        return
    # A sum is finite if every part is; only when it is not do we look closer.
    with np.errstate(over="ignore", invalid="ignore"):
        total = column.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise InvalidInput(f"{name}: row {row} is {column[row]}; expected finite numbers, mend or drop the row")


def _numbers(values: Any, name: str) -> NDArray[Any]:
    """Return one number a row as an array of bool, whole numbers or floats of at most 64 bits."""
    column = _array(values, name)
    if column.ndim != 1:
        raise InvalidInput(f"{name}: expected one number a row, found an array of shape {column.shape}")
    if column.dtype.kind in "OUS" or _may_be_rounded(values, column):
        column = _from_objects(values if isinstance(values, (list, tuple)) else column.tolist(), name)
    if column.dtype.kind not in "biuf":
        # In the words that scikit-learn's checks of estimators look for.
        said = ". Complex data not supported" if column.dtype.kind == "c" else ""
        raise InvalidInput(f"{name}: expected numbers, found {column.dtype}{said}")
    if column.dtype.kind == "f" and column.dtype.itemsize > 8:
        column = _narrowed(column, name)
    return column


def _array(values: Any, name: str) -> NDArray[Any]:
    if type(values) is np.ndarray:
        return values
    refuse_masked(values, name)
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(values, name)
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        said = " ".join(str(error).split())
        raise InvalidInput(f"{name}: expected one number a row, found a {type(values).__name__} ({said})") from None


def _from_arrow(values: pa.Array | pa.ChunkedArray, name: str) -> NDArray[Any]:
    """Return an Arrow column of numbers as an array; refuse nulls, which NumPy would turn into NaN."""
    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py()
        raise InvalidInput(f"{name}: row {row} has no number (found null); drop such rows or fill them")
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_boolean(values.type) or pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return numbers_of(values)
    if pa.types.is_decimal(values.type):
        column = np.empty(len(values), dtype=object)
        column[:] = values.to_pylist()
        return column
    if not len(values):  # whatever type a library gives to nothing
        return np.empty(0, dtype=np.int64)
    raise InvalidInput(f"{name}: expected numbers, found {values[0].as_py()!r} of type {values.type}")


def numbers_of(values: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return an Arrow column of numbers or booleans, without nulls, as an array; `to_numpy` would import pandas.

    Parameters
    ----------
    values : Arrow array
        Not copied if it is one piece of numbers.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_boolean(values.type):
        return np.from_dlpack(values.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(values)


def _may_be_rounded(values: Any, column: NDArray[Any]) -> bool:
    """Say whether NumPy may have made floats of whole numbers in a list that floats cannot hold."""
    if column.dtype.kind != "f" or not isinstance(values, (list, tuple)):
        return False
    with np.errstate(invalid="ignore"):
        return bool((np.abs(column) >= _WHOLE).any())


def _from_objects(cells: Any, name: str) -> NDArray[Any]:
    """Return Python's own numbers as the narrowest of bool, int64, uint64 and float64 that holds each of them."""
    kinds = set(map(type, cells))
    if kinds == {float}:
        return np.array(cells, dtype=np.float64)
    found = [_number(cell, row, name) for row, cell in enumerate(cells)]
    if all(type(one) is int for one in found):
        least, most = min(found, default=0), max(found, default=0)
        if least >= _LEAST and most <= _MOST:
            return np.array(found, dtype=np.int64)
        if least >= 0 and most < 2**64:
            return np.array(found, dtype=np.uint64)
    for row, one in enumerate(found):
        if type(one) is int and not (abs(one) < 2**1023 and int(float(one)) == one):
            _refuse_beyond(name, row, one, "a 64-bit float")
    return np.array(found, dtype=np.float64)


def _number(cell: Any, row: int, name: str) -> int | float:
    """Return a whole number as int, another as the nearest float."""
    if isinstance(cell, (bool, int, np.bool_, np.integer)):
        return int(cell)
    if isinstance(cell, (float, np.floating)):
        return float(cell)
    if cell is None or cell is np.ma.masked or type(cell).__name__ in ("NAType", "NaTType"):
        raise InvalidInput(f"{name}: row {row} has no number (found {cell!r}); drop such rows or fill them")
    if not isinstance(cell, (Decimal, Fraction)):
        raise InvalidInput(f"{name}: expected numbers, found {cell!r} in row {row}"[:200])
    try:
        nearest = float(cell)
    except (OverflowError, ValueError):  # a great fraction, a signalling NaN
        nearest = float("inf")
    if abs(nearest) == float("inf"):
        _refuse_beyond(name, row, cell, "a 64-bit float")
    return int(cell) if abs(nearest) >= _WHOLE and cell == int(cell) else nearest


def _narrowed(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return floats wider than 64 bits as float64."""
    with np.errstate(over="ignore"):
        narrow = column.astype(np.float64)
    whole = column == np.floor(column)
    odd = np.isfinite(column) & (np.isinf(narrow) | (whole & (narrow != column)))
    if odd.any():
        _refuse_beyond(name, int(np.argmax(odd)), column[np.argmax(odd)], "a 64-bit float")
    return narrow


def _refuse_beyond(name: str, row: int, value: Any, holder: str) -> None:
    shown = str(value)
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    raise InvalidInput(
        f"{name}: row {row} is {shown}, which {holder} cannot hold; subtract or divide by the same number everywhere"
    )
