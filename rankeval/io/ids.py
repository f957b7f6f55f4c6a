"""Ids of queries and documents, as columns that NumPy sorts quickly.

NumPy compares text letter by letter, so text ids become numbers in the order of the names. Arrow's dictionaries number
them: a million strings take it 0.02 seconds, where sorting them takes a second.

The trap is `numpy.asarray`: of the list ``[1, "1"]`` it makes one id, of ``[2**53, 2**53 + 1]`` beside a float
another, and it drops a NUL at the end of a text. Lists in which that could happen stay objects (`as_typed`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import said
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io.columns import numbers_of, refuse_masked

_NOUNS = {"qid": "query", "docid": "document"}


def comparable(column: ArrayLike, what: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return ids as an array that NumPy sorts quickly: numbers in the order of the names for texts and objects.

    Parameters
    ----------
    column : array of shape (n_rows,)
        Ids of any one sortable type.
    what : {"qid", "docid"}
        The column's name in messages.

    Returns
    -------
    tuple of ndarray
        The ids, and None; or their numbers, and the distinct ids that the numbers stand for.

    Raises
    ------
    InvalidInput
        If an id is missing, or ids of several types are mixed; a `QueryIdError` for ids of queries.
    """
    refuse_masked(column, what, QueryIdError if what == "qid" else InvalidInput)
    if isinstance(column, (list, tuple)):
        column = as_typed(column, what)  # Arrow imports pandas to read a list
    if isinstance(column, np.ndarray) and column.dtype.kind == "U" and column.ndim == 1 and column.nbytes:
        # Arrow hashes NumPy's texts where they lie: converting them takes twice as long (bench_scorer, strings).
        fixed = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("="))
        width, content = pa.binary(fixed.dtype.itemsize), pa.py_buffer(fixed)
        coded = pa.FixedSizeBinaryArray.from_buffers(width, len(fixed), [None, content]).dictionary_encode()
        names = np.frombuffer(coded.dictionary.buffers()[1], dtype=fixed.dtype, count=len(coded.dictionary))
        order = np.argsort(names, kind="stable")
    elif (coded := _coded_texts(column, what)) is not None:
        names = np.array(coded.dictionary.to_pylist(), dtype=object)
        if pc.all(pc.less(coded.dictionary[:-1], coded.dictionary[1:])).as_py():  # as of rows that are sorted
            return numbers_of(coded.indices).astype(np.int64), names
        order = numbers_of(pc.sort_indices(coded.dictionary))
    else:
        return _plain(column, what)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    return number[numbers_of(coded.indices)], names[order]


def _plain(column: Any, what: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return ids that are no texts: as they are, or objects of one type by their numbers."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        # Arrow's own way imports pandas, which takes a worker half a second.
        column = numbers_of(column) if is_number and not column.null_count else column.to_numpy(zero_copy_only=False)
    ids = as_typed(column, what)
    if ids.ndim != 1:
        raise _wrong(what, f"expected one id for each row, found an array of shape {ids.shape}")
    refuse_missing(ids, what)
    if ids.dtype.kind != "O":
        return ids, None
    kinds = list(dict.fromkeys(map(type, ids.tolist())))
    if len(kinds) > 1:
        row = next(row for row, one in enumerate(ids.tolist()) if type(one) is kinds[1])
        raise _wrong(
            what,
            f"ids of several types are mixed ({', '.join(sorted(kind.__name__ for kind in kinds))}): row 0 has "
            f"{ids[0]!r}, row {row} has {ids[row]!r}; make them all strings",
        )
    try:
        names, number = np.unique(ids, return_inverse=True)
    except TypeError as error:
        raise _wrong(what, f"ids are of type {kinds[0].__name__}, which cannot be sorted: {error}") from None
    return number, names


def _coded_texts(ids: Any, what: str) -> pa.DictionaryArray | None:
    """Return the ids as numbers of distinct texts if all of them are texts, else None."""
    coded = ids
    if isinstance(coded, pa.ChunkedArray) and pa.types.is_dictionary(coded.type):
        coded = coded.combine_chunks()
    if not isinstance(coded, pa.DictionaryArray) or coded.null_count or coded.dictionary.null_count:
        texts = _texts(ids, what)
        return None if texts is None else texts.dictionary_encode()
    if not (pa.types.is_string(coded.dictionary.type) or pa.types.is_large_string(coded.dictionary.type)):
        return None
    # Texts that are numbered already stay so, unless a text has two numbers (bench_streaming).
    distinct = coded.dictionary.dictionary_encode()
    if len(distinct.dictionary) == len(coded.dictionary):
        return coded
    return pa.DictionaryArray.from_arrays(distinct.indices.take(coded.indices), distinct.dictionary)


def _texts(ids: Any, what: str) -> pa.Array | None:
    """Return the ids as an Arrow array if all of them are texts, else None."""
    if not isinstance(ids, (pa.Array, pa.ChunkedArray)):
        kind = getattr(getattr(ids, "dtype", None), "kind", "O")
        if kind not in "OT" or getattr(ids, "ndim", 1) != 1:
            return None
        try:
            ids = pa.array(ids.tolist() if kind == "T" else ids, type=pa.large_string(), from_pandas=True)
        except (pa.ArrowException, TypeError, UnicodeError):  # other objects, no column, half a surrogate pair
            return None
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    if not (pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)) or ids.null_count == len(ids):
        return None
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    if ids.null_count:
        row = pc.index(ids.is_null(), True).as_py()
        raise _wrong(what, f"row {row} has no {_NOUNS[what]} id (found None)")
    return ids


def as_typed(ids: ArrayLike, what: str = "qid") -> NDArray[Any]:
    """Return ids as an array, and as objects where NumPy would change one.

    Parameters
    ----------
    ids : array-like of shape (n_rows,)
        Ids of any type.
    what : {"qid", "docid"}
        The column's name in messages.

    Raises
    ------
    InvalidInput
        If the ids are masked or are no array; a `QueryIdError` for ids of queries.
    """
    refuse_masked(ids, what, QueryIdError if what == "qid" else InvalidInput)
    try:
        column = np.asarray(ids)
    except (TypeError, ValueError, RuntimeError) as error:
        told = said(error)
        raise _wrong(what, f"expected one id for each row, found a {type(ids).__name__} ({told})") from None
    if not isinstance(ids, (list, tuple)) or column.ndim != 1:
        return column
    # NumPy writes 1 beside "1" as text, rounds whole numbers beyond 2**53 beside a float, drops NULs at a text's end.
    changed = (
        (column.dtype.kind in "US" and len({isinstance(one, str) for one in ids}) > 1)
        or (column.dtype.kind in "US" and any(one[-1:] in ("\0", b"\0") for one in ids))
        or (column.dtype.kind == "f" and bool((np.abs(column) >= 2**53).any()))
    )
    if not changed:
        return column
    objects = np.empty(len(ids), dtype=object)
    objects[:] = ids
    return objects


def _wrong(what: str, message: str) -> InvalidInput:
    return (QueryIdError if what == "qid" else InvalidInput)(message, argument=what)


def refuse_missing(ids: NDArray[Any], what: str) -> None:
    """Raise if an id is None, NaN or the like.

    Parameters
    ----------
    ids : ndarray of shape (n_rows,)
        Ids of any type.
    what : {"qid", "docid"}
        The column's name in messages.

    Raises
    ------
    InvalidInput
        If a row has no id, naming the first; a `QueryIdError` for ids of queries.
    """
    if ids.dtype.kind not in "fcmMO":
        return
    if ids.dtype.kind in "fc":
        missing = np.isnan(ids)
    else:
        import pandas as pd

        missing = pd.isna(ids)
    if missing.any():
        row = int(np.argmax(missing))
        raise _wrong(what, f"row {row} has no {_NOUNS[what]} id (found {ids[row : row + 1].tolist()[0]!r})")
