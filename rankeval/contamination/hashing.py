"""64-bit hashes of values, rows and ids, vectorised.

The scheme is a sum: a row hashes to the sum over its columns of ``mix(value) * key[column]`` modulo 2^64, mixed once
more. Zero mixes to zero, so a sparse matrix, which stores no zeros, hashes like its dense form, and empty columns at
the end (which some readers of svmlight files add or leave out) make no difference. Values are taken as float32: what
was registered as float64 is found again after a round trip through float32. The hashes are meant against forgetful
users, not against somebody who computes collisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.io.columns import as_column, labels, refuse_masked

Hashes = NDArray[np.uint64]

_BLOCK = 1 << 18
"""Values per block: the temporaries of one block stay in the processor's cache."""


def mix(bits: Hashes) -> Hashes:
    """Spread every input bit over all output bits, in place (the finaliser of MurmurHash3; zero stays zero).

    Parameters
    ----------
    bits : ndarray of uint64
        What to mix; overwritten.
    """
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xFF51AFD7ED558CCD)
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xC4CEB9FE1A85EC53)
    bits ^= bits >> np.uint64(33)
    return bits


def keys(n: int, salt: int = 0) -> Hashes:
    """Return the odd multipliers of the first n columns.

    Parameters
    ----------
    n : int
        How many.
    salt : int
        Another salt gives other keys.
    """
    steps = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    return mix(steps) | np.uint64(1)


def join(left: Hashes, right: Hashes | int) -> Hashes:
    """Return the hash of an ordered pair of hashes, elementwise.

    Parameters
    ----------
    left, right : ndarray of uint64
        The parts; their order matters.
    """
    other = np.asarray(right, dtype=np.uint64)
    return mix(left * np.uint64(0x9FB21C651E98DF25) + mix(other + np.uint64(0x632BE59BD9B4E019)))


def number_hashes(values: Any, *, name: str) -> Hashes:
    """Return a hash per number; equal values hash equally whatever their type.

    Parameters
    ----------
    values : array of shape (n,)
        Numbers, such as labels.
    name : str
        What to call them in an error.

    Raises
    ------
    InvalidInput
        When they are no numbers or not one-dimensional.
    """
    return mix(_float_bits(as_numbers(values, name=name)))


def as_numbers(values: Any, *, name: str) -> NDArray[np.float64]:
    """Return a column of numbers as float64.

    Parameters
    ----------
    values : array of shape (n,)
        Numbers.
    name : str
        What to call them in an error.

    Raises
    ------
    InvalidInput
        When they are no numbers or not one-dimensional.
    """
    refuse_masked(values, name)
    return labels(as_column(values), name).astype(np.float64, copy=False)


def text_hashes(values: Any) -> Hashes:
    """Return a hash per id; 12 and "12" are the same id.

    Parameters
    ----------
    values : array of shape (n,)
        Ids of any type, or texts.
    """
    column = values.to_numpy(zero_copy_only=False) if hasattr(values, "combine_chunks") else np.asarray(values)
    if column.dtype.kind == "S":
        column = np.char.decode(column, "utf-8")
    hashes = np.empty(len(column), dtype=np.uint64)
    for start in range(0, len(column), 1 << 14):
        words = np.ascontiguousarray(column[start : start + (1 << 14)].astype(np.str_))
        width = words.dtype.itemsize // 4
        letters = words.view(np.uint32).reshape(len(words), width).astype(np.uint64)
        hashes[start : start + len(words)] = mix(mix(letters) @ keys(width, salt=1))
    return hashes


def row_hashes(X: Any) -> Hashes:
    """Return a hash per row of a feature matrix, the same for dense, sparse and DataFrame of equal values.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_rows, n_features)
        The features; their order matters. A column named ``qid`` is no feature.

    Raises
    ------
    InvalidInput
        When X is not a matrix.
    """
    if hasattr(X, "tocsr"):
        return _sparse_row_hashes(X.tocsr())
    n_rows, n_columns = matrix_shape(X)
    key = keys(n_columns)
    hashes = np.empty(n_rows, dtype=np.uint64)
    for start, block in blocks(X):
        hashes[start : start + len(block)] = mix(_float_bits(block)) @ key
    return mix(hashes)


def matrix_shape(X: Any) -> tuple[int, int]:
    """Return (n_rows, n_features) of a feature matrix, without a column named ``qid``.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame
        The features.

    Raises
    ------
    InvalidInput
        When X is not two-dimensional.
    """
    shape = np.shape(X)
    if len(shape) != 2:
        raise InvalidInput(f"X must be a matrix of shape (n_rows, n_features), but its shape is {shape}")
    has_ids = hasattr(X, "columns") and "qid" in set(X.columns)
    return int(shape[0]), int(shape[1]) - int(has_ids)


def blocks(X: Any) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield (first row, block of rows as float32) over a feature matrix.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame
        The features.
    """
    n_rows, n_columns = matrix_shape(X)
    frame = X if hasattr(X, "iloc") else None
    rows = None if frame is not None or hasattr(X, "tocsr") else np.asarray(X)
    step = max(1, _BLOCK // max(1, n_columns))
    for start in range(0, n_rows, step):
        if frame is not None:
            block = _frame_values(frame.iloc[start : start + step])
        elif rows is None:
            block = X.tocsr()[start : start + step].toarray()
        else:
            block = rows[start : start + step]
        yield start, _as_float32(block)


def _as_float32(block: NDArray[Any]) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # beyond float32 is as good as infinite here
            return block.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"X must be numbers, or a DataFrame with one type a column: {error}") from error


def _frame_values(frame: Any) -> NDArray[np.float64]:
    columns = []
    for position, name in enumerate(frame.columns):
        if name == "qid":
            continue
        column = frame.iloc[:, position]
        if getattr(column.dtype, "kind", "O") in "biuf":
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
        elif getattr(column.dtype, "kind", "O") in "mM":
            columns.append(column.to_numpy().astype(np.int64).astype(np.float64))
        else:  # words and categories: any number in [0, 1) that stands for the word
            columns.append(text_hashes(column.to_numpy(dtype=object)) / 2.0**64)
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def _sparse_row_hashes(X: Any) -> Hashes:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    contributions = mix(_float_bits(_as_float32(X.data))) * keys(X.shape[1])[X.indices]
    totals = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(contributions, dtype=np.uint64)])
    return mix(totals[X.indptr[1:]] - totals[X.indptr[:-1]])


def _float_bits(values: NDArray[Any]) -> Hashes:
    single = _as_float32(values)
    single += np.float32(0)  # -0.0 becomes 0.0
    missing = np.isnan(single)
    if missing.any():
        single[missing] = np.nan  # one NaN for all its bit patterns
    return single.view(np.uint32).astype(np.uint64)
