"""64-bit hashes of values, rows and ids, vectorised.

A row is hashed as a weighted sum over its columns, modulo 2^64::

    hash(row) = mixed( mixed(x_1) * key_1 + mixed(x_2) * key_2 + ... )

The keys are odd numbers, one per column, so the order of columns matters. Zero mixes to zero, with two consequences: a
sparse matrix, which stores no zeros, hashes like its dense form; and empty columns at the end, which some readers of
svmlight files add or leave out, make no difference. Values are taken as float32, so that data registered as float64 is
found again after a round trip through float32.

The hashes are meant against forgetful users, not against somebody who computes collisions. The trap: ledgers hold
them, so none of these functions may ever return another value (tests pin them).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.io.columns import as_column, labels, refuse_masked
from rankeval.join.matching import Hashes, mixed

_BLOCK = 1 << 18
"""Values per block: the temporaries of one block stay in the processor's cache."""


def keys(n: int, salt: int = 0) -> Hashes:
    """Return the keys of the first n columns: odd, so that multiplying by them loses no bit."""
    steps = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    return mixed(steps) | np.uint64(1)


def join(left: Hashes, right: Hashes) -> Hashes:
    """Return the hashes of ordered pairs of hashes, elementwise."""
    return mixed(left * np.uint64(0x9FB21C651E98DF25) + mixed(right + np.uint64(0x632BE59BD9B4E019)))


def number_hashes(values: Any, *, name: str) -> Hashes:
    """Return a hash per number; equal values have equal hashes, whatever their type. Raises as `as_numbers` does."""
    return mixed(_float_bits(as_numbers(values, name=name)))


def as_numbers(values: Any, *, name: str) -> NDArray[np.float64]:
    """Return a column of numbers as float64.

    Parameters
    ----------
    values : array of shape (n,)
        Numbers.
    name : str
        Name of the argument, for errors.

    Raises
    ------
    InvalidInput
        If they are not numbers, or not one-dimensional.
    """
    refuse_masked(values, name)
    return labels(as_column(values), name).astype(np.float64, copy=False)


def text_hashes(values: Any) -> Hashes:
    """Return a hash per id or text; 12 and "12" are the same id."""
    column = values.to_numpy(zero_copy_only=False) if hasattr(values, "combine_chunks") else np.asarray(values)
    if column.dtype.kind == "S":
        column = np.char.decode(column, "utf-8")
    hashes = np.empty(len(column), dtype=np.uint64)
    # A block of ids becomes a matrix of letters as wide as its longest id: one long id must not widen all others.
    for start in range(0, len(column), 1 << 14):
        words = np.ascontiguousarray(column[start : start + (1 << 14)].astype(np.str_))
        width = words.dtype.itemsize // 4
        letters = words.view(np.uint32).reshape(len(words), width).astype(np.uint64)
        hashes[start : start + len(words)] = mixed(mixed(letters) @ keys(width, salt=1))
    return hashes


def row_hashes(X: Any) -> Hashes:
    """Return a hash per row of a feature matrix; dense, sparse and DataFrame of equal values agree.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_rows, n_features)
        The features; their order matters. A column named ``qid`` is no feature.

    Raises
    ------
    InvalidInput
        If X is not a matrix of numbers.
    """
    if hasattr(X, "tocsr"):
        return _sparse_row_hashes(X.tocsr())
    sums = [mixed(_float_bits(block)) @ keys(block.shape[1]) for block in blocks(X)]
    return mixed(np.concatenate([np.empty(0, dtype=np.uint64), *sums]))


def blocks(X: Any) -> Iterator[NDArray[np.float32]]:
    """Yield blocks of rows of a feature matrix as float32, without a column named ``qid``.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_rows, n_features)
        The features.

    Raises
    ------
    InvalidInput
        If X is not a matrix of numbers.
    """
    shape = np.shape(X)
    if len(shape) != 2:
        raise InvalidInput(f"X must be a matrix of shape (n_rows, n_features), but its shape is {shape}")
    step = max(1, _BLOCK // max(1, shape[1]))
    is_frame, is_sparse = hasattr(X, "iloc"), hasattr(X, "tocsr")
    rows: Any = X.iloc if is_frame else X.tocsr() if is_sparse else np.asarray(X)
    for start in range(0, shape[0], step):
        block = rows[start : start + step]
        yield _as_float32(_frame_values(block) if is_frame else block.toarray() if is_sparse else block)


def _as_float32(block: NDArray[Any]) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # a value beyond float32 counts as infinite
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
        else:  # words and categories: a number in [0, 1) per word
            columns.append(text_hashes(column.to_numpy(dtype=object)) / 2.0**64)
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def _sparse_row_hashes(X: Any) -> Hashes:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    contributions = mixed(_float_bits(_as_float32(X.data))) * keys(X.shape[1])[X.indices]
    # Sums of rows as differences of running totals, which are exact modulo 2^64.
    totals = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(contributions, dtype=np.uint64)])
    return mixed(totals[X.indptr[1:]] - totals[X.indptr[:-1]])


def _float_bits(values: NDArray[Any]) -> Hashes:
    single = _as_float32(values)
    single += np.float32(0)  # -0.0 becomes 0.0
    missing = np.isnan(single)
    if missing.any():
        single[missing] = np.nan  # one NaN for all its bit patterns
    return single.view(np.uint32).astype(np.uint64)
