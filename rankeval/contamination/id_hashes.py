"""64-bit hashes of ids and texts: the letters of each as a weighted sum, whatever type holds them.

    hash("d17") = mixed( mixed("d") * key_1 + mixed("1") * key_2 + mixed("7") * key_3 )

An id that is a number has the letters of its decimal digits. The sum needs no string of them: it is looked up in
tables, three digits at a time. A column of Arrow strings is read as the bytes that it is, where all of these are ASCII.
Both are several times faster than making strings, which takes any text (`bench_guard_large`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval.join.matching import Hashes, mixed

_TEXTS = 1 << 14
"""Ids hashed at a time."""

_SALT = 1
_GROUP = 3
"""Digits looked up at a time."""
_MOST_DIGITS = 18
"""Digits of a number that the tables hold; longer ones are hashed as text."""

_ODD_BYTES = "surrogateescape"
"""How bytes are held that are no text, as those of a UUID: each as a letter that no text has."""


def keys(n: int, salt: int = 0) -> Hashes:
    """Return the keys of the first n columns: odd, so that multiplying by them loses no bit."""
    steps = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    return mixed(steps) | np.uint64(1)


def text_hashes(values: Any) -> Hashes:
    """Return a hash per id or text; 12, 12.0 and "12" are the same id."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        found = _ascii_hashes(values) if _is_text(values.type) and not values.null_count else None
        if found is not None:
            return found
        values = values.to_numpy(zero_copy_only=False)
    column = np.asarray(values)
    if column.dtype.kind == "S":
        column = np.char.decode(column, "utf-8", _ODD_BYTES)
    if column.dtype.kind == "f" and (np.abs(column.astype(np.float64)) < 2**63).all():
        column = column.astype(np.int64) if (column == np.floor(column)).all() else column  # 12.0 is the same id too
    hashes = np.empty(len(column), dtype=np.uint64)
    # A block of ids becomes a matrix of letters as wide as its longest id: one long id must not widen all others.
    for start in range(0, len(column), _TEXTS):
        block = column[start : start + _TEXTS]
        short = block.dtype.kind in "iu" and int(block.min()) >= 0 and int(block.max()) < 10**_MOST_DIGITS
        hashes[start : start + len(block)] = _number_hashes(block.astype(np.uint64)) if short else _letter_hashes(block)
    return hashes


def _letter_hashes(block: NDArray[Any]) -> Hashes:
    try:
        words = np.ascontiguousarray(block.astype(np.str_))
    except UnicodeDecodeError:  # bytes beyond ASCII
        decoded = [one.decode("utf-8", _ODD_BYTES) if isinstance(one, bytes) else str(one) for one in block.tolist()]
        words = np.array(decoded, dtype=np.str_)
    width = words.dtype.itemsize // 4
    letters = words.view(np.uint32).reshape(len(words), width).astype(np.uint64)
    return mixed(mixed(letters) @ keys(width, salt=_SALT))


def _number_hashes(block: NDArray[np.uint64]) -> Hashes:
    """Return the hashes of numbers by their digits, moved left until all have as many.

    What the zeros behind a shorter number add is taken away again.
    """
    n_digits = np.maximum(np.searchsorted(_POWERS, block, side="right"), 1)
    n_groups = -(-int(n_digits.max()) // _GROUP)
    width = n_groups * _GROUP
    left = block * _POWERS[width - n_digits]
    total = np.negative(_zeros_behind(width))[n_digits]
    for place in range(n_groups - 1, -1, -1):
        left, digits = np.divmod(left, _POWERS[_GROUP])
        total += _table(place)[digits]
    return mixed(total)


_POWERS = np.array([10**power for power in range(_MOST_DIGITS + 1)], dtype=np.uint64)

_DIGITS: Hashes = mixed(np.arange(ord("0"), ord("9") + 1, dtype=np.uint64))


@cache
def _table(place: int) -> Hashes:
    """Return what each number of three digits adds, if these are the letters from ``3 * place`` on."""
    digits = np.arange(10**_GROUP)[:, None] // 10 ** np.arange(_GROUP - 1, -1, -1) % 10
    return _DIGITS[digits] @ keys(_GROUP * (place + 1), salt=_SALT)[_GROUP * place :]


@cache
def _zeros_behind(width: int) -> Hashes:
    """Return what zeros add from each place on, up to a width."""
    added = np.append(_DIGITS[0] * keys(width, salt=_SALT), np.uint64(0))
    return np.cumsum(added[::-1], dtype=np.uint64)[::-1].copy()


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _ascii_hashes(column: pa.Array) -> Hashes | None:
    """Return the hashes of strings by their bytes; None if some are not ASCII."""
    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    _, offsets, data = column.buffers()
    if offsets is None or not len(column):
        return np.zeros(0, dtype=np.uint64)
    bounds = np.frombuffer(offsets, dtype=width)[column.offset : column.offset + len(column) + 1]
    text = np.frombuffer(data or b"", dtype=np.uint8)[bounds[0] : bounds[-1]]
    if (text > 127).any():
        return None
    hashes = np.empty(len(column), dtype=np.uint64)
    for start in range(0, len(column), _TEXTS):
        part = bounds[start : start + _TEXTS + 1].astype(np.int64) - int(bounds[0])
        size = np.diff(part)
        letters = np.zeros((len(size), int(size.max())), dtype=np.uint8)
        letters[np.arange(letters.shape[1]) < size[:, None]] = text[part[0] : part[-1]]
        total = np.zeros(len(size), dtype=np.uint64)
        for column_of_letters, key in zip(letters.T, keys(letters.shape[1], salt=_SALT), strict=True):
            total += _LETTERS[column_of_letters] * key
        hashes[start : start + len(size)] = mixed(total)
    return hashes


_LETTERS: Hashes = mixed(np.arange(128, dtype=np.uint64))
