"""Ids of queries and documents as columns that NumPy compares quickly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io.columns import numbers_of, refuse_masked

Ints = NDArray[np.int64]


def comparable(column: ArrayLike, what: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return ids as an array that NumPy compares quickly; for texts and objects, numbers in the order of the names.

    Parameters
    ----------
    column : array of shape (n_rows,)
        Ids of any one sortable type.
    what : {"qid", "docid"}
        What messages call them.

    Returns
    -------
    tuple of ndarray
        The ids or their numbers, and the distinct ids that the numbers stand for, or None.

    Raises
    ------
    InvalidInput
        When an id is missing, or ids of several types are mixed; a `QueryIdError` for those of queries.
    """
    refuse_masked(column, what, QueryIdError if what == "qid" else InvalidInput)
    shared = _shared(column)
    if shared is not None:
        rank, names = comparable(shared[1], what)
        return rank[shared[0]], names
    strings = _strings(column, what)
    if strings is not None:
        coded = strings.dictionary_encode()
        order = numbers_of(pc.sort_indices(coded.dictionary))
        rank = _ranks(order)
        names = np.asarray(coded.dictionary.to_pylist(), dtype=object)[order]
        return rank[numbers_of(coded.indices)], names
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = column.to_numpy(zero_copy_only=False)
    ids = as_typed(column, what)
    if ids.ndim != 1:
        raise _wrong(what, f"expected one id for each row, found an array of shape {ids.shape}")
    refuse_missing(ids, what)
    if ids.dtype.kind == "U" and ids.dtype.isnative and ids.dtype.itemsize and len(ids):
        return _numbered_texts(ids)
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
        distinct = sorted(set(ids.tolist()))
    except TypeError as error:
        raise _wrong(what, f"ids are of type {kinds[0].__name__}, which cannot be sorted: {error}") from None
    names = np.empty(len(distinct), dtype=object)
    names[:] = distinct
    number = {name: place for place, name in enumerate(distinct)}
    return np.fromiter((number[name] for name in ids.tolist()), dtype=np.int64, count=len(ids)), names


def as_typed(ids: ArrayLike, what: str = "qid") -> NDArray[Any]:
    """Return ids as an array, those of a list of texts and others as objects: NumPy would make 1 and nan texts too.

    Parameters
    ----------
    ids : array-like of shape (n_rows,)
        Ids of any type.
    what : {"qid", "docid"}
        What messages call them.

    Raises
    ------
    InvalidInput
        When they are masked or no array; a `QueryIdError` for those of queries.
    """
    refuse_masked(ids, what, QueryIdError if what == "qid" else InvalidInput)
    try:
        column = np.asarray(ids)
    except (TypeError, ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())
        raise _wrong(what, f"expected one id for each row, found a {type(ids).__name__} ({said})") from None
    if not isinstance(ids, (list, tuple)) or column.ndim != 1:
        return column
    # NumPy would also make one float of two great whole numbers, and drops the zeros at the end of a text.
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


def _numbered_texts(ids: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return numbers in the order of the names for NumPy's texts, whose bytes Arrow hashes where they are."""
    packed = _as_bytes(np.ascontiguousarray(ids))
    width = pa.binary(packed.dtype.itemsize)
    coded = pa.FixedSizeBinaryArray.from_buffers(width, len(packed), [None, pa.py_buffer(packed)]).dictionary_encode()
    names = np.frombuffer(coded.dictionary.buffers()[1], dtype=packed.dtype, count=len(coded.dictionary))
    order = np.argsort(names, kind="stable")
    rank = _ranks(order)
    return rank[numbers_of(coded.indices)], names[order].astype(ids.dtype)


def _ranks(order: Ints) -> NDArray[Any]:
    """Return the place of each number in an order, in as few bytes as hold it: all rows are about to have one."""
    rank = np.empty(len(order), dtype=np.uint16 if len(order) <= 2**16 else np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _as_bytes(texts: NDArray[Any]) -> NDArray[Any]:
    """Return texts of ASCII letters with one byte a letter, in as many as the longest has; others as they are."""
    letters = texts.view(np.uint32).reshape(len(texts), -1)
    if letters.max() >= 128:
        return texts
    # The greatest letter at each place: 64 rows side by side, since NumPy is slow along short rows.
    whole = len(letters) // 64 * 64
    side_by_side = letters[:whole].reshape(-1, 64 * letters.shape[1]).max(axis=0, initial=0)
    greatest = np.maximum(side_by_side.reshape(64, -1).max(axis=0), letters[whole:].max(axis=0, initial=0))
    width = int(np.flatnonzero(greatest).max(initial=0)) + 1
    packed: NDArray[Any] = letters[:, :width].astype(np.uint8).view(f"S{width}")[:, 0]
    return packed


_NOUNS = {"qid": "query", "docid": "document"}


def _wrong(what: str, message: str) -> InvalidInput:
    return (QueryIdError if what == "qid" else InvalidInput)(f"{what}: {message}")


_SAMPLE = 4096
"""How many rows are looked at to see whether they share their strings."""


def _shared(column: Any) -> tuple[Ints, list[str]] | None:
    """Return the number of each row's string, and the strings, if rows share them as a category's or np.repeat's do.

    Addresses are hashed much faster than strings are read. Equal strings may be several objects: what they say is left
    to be compared.
    """
    kind = getattr(getattr(column, "dtype", None), "name", "")
    if kind not in {"object", "category"} or getattr(column, "ndim", 1) != 1 or len(column) < _SAMPLE:
        return None
    if kind == "category":
        coded = getattr(column, "cat", column)
        number, objects = np.asarray(coded.codes, dtype=np.int64), np.asarray(coded.categories, dtype=object)
        if (number < 0).any():
            return None
        used = np.bincount(number, minlength=len(objects)) > 0
        number, objects = (np.cumsum(used) - 1)[number], objects[used]
    else:
        ids = np.ascontiguousarray(np.asarray(column))
        address: Ints = np.ndarray(ids.shape, dtype=np.intp, buffer=ids)
        some = np.concatenate((address[: _SAMPLE // 2], address[:: len(address) // (_SAMPLE // 2)]))
        if len(np.unique(some)) > 0.98 * len(some):
            return None
        hashed = pa.Array.from_buffers(pa.int64(), len(address), [None, pa.py_buffer(address)]).dictionary_encode()
        number = numbers_of(hashed.indices)
        row = np.empty(len(hashed.dictionary), dtype=np.int64)
        row[number] = np.arange(len(number))
        objects = ids[row]
    strings = objects.tolist()
    return (number, strings) if all(type(one) is str for one in strings) else None


def _strings(qid: Any, what: str) -> pa.Array | None:
    """Return the ids as an Arrow array if all of them are strings, without making a Python object of each."""
    if isinstance(qid, pa.ChunkedArray):
        qid = qid.combine_chunks()
    if not isinstance(qid, pa.Array):
        kind = getattr(getattr(qid, "dtype", None), "kind", "O")
        if kind not in "OT" or getattr(qid, "ndim", 1) != 1 or not len(qid):
            return None
        try:
            qid = pa.array(qid, type=pa.large_string(), from_pandas=True)
        except (pa.ArrowTypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if isinstance(qid, pa.ChunkedArray):
            qid = qid.combine_chunks()
    if not (pa.types.is_string(qid.type) or pa.types.is_large_string(qid.type)) or qid.null_count == len(qid):
        return None
    if qid.null_count:
        row = pc.index(qid.is_null(), True).as_py()
        raise _wrong(what, f"row {row} has no {_NOUNS[what]} id (found None)")
    return qid


def refuse_missing(ids: NDArray[Any], what: str) -> None:
    """Refuse ids that are None, NaN or the like.

    Parameters
    ----------
    ids : ndarray of shape (n_rows,)
        Ids of any type.
    what : {"qid", "docid"}
        What messages call them.

    Raises
    ------
    InvalidInput
        With the first row that has none; a `QueryIdError` for ids of queries.
    """
    if ids.dtype.kind not in "fcmMO":
        return
    import pandas as pd

    missing = pd.isna(ids)
    if missing.any():
        row = int(np.argmax(missing))
        raise _wrong(what, f"row {row} has no {_NOUNS[what]} id (found {ids[row]!r})")
