"""64-bit hashes of values and rows, vectorised.

A row is hashed as a weighted sum over its columns, modulo 2^64::

    hash(row) = mixed( mixed(x_1) * key_1 + mixed(x_2) * key_2 + ... )

The keys are odd numbers, one per column, so the order of columns matters. Zero mixes to zero, with
two consequences: a sparse matrix, which stores no zeros, hashes like its dense form; and empty
columns at the end, which some readers of svmlight files add or leave out, make no difference.
Values are taken as float32, so that data registered as float64 is found again after a round trip
through float32.

`rounded_hashes` does the same over values of four significant digits, and mixes only the sum: that
takes a quarter of the time, and a value that was written as text and read again is found.

The hashes are meant against forgetful users, not against somebody who computes collisions. The
trap: ledgers hold them, so none of these functions may ever return another value (tests pin them).

64-bit hashes of ids and texts: the letters of each as a weighted sum. Equal letters hash alike in
every type of text.

    hash("d17") = mixed( mixed("d") * key_1 + mixed("1") * key_2 + mixed("7") * key_3 )

An id that is a number has the letters of its decimal digits. Numbers become Arrow strings, and a
column of these is read as the bytes that it is, where all are ASCII: several times as fast as
Python's strings (`bench_guard_large`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.io.columns import as_column, labels, refuse_masked
from rankeval.join.matching import Hashes, mixed

_TEXTS = 1 << 14
"""Ids hashed at a time."""

_SALT = 1

_ODD_BYTES = "surrogateescape"
"""How bytes are held that are no text, as those of a UUID: each as a letter that no text has."""


def keys(n: int, salt: int = 0) -> Hashes:
    """Return the keys of the first n columns: odd, so that multiplying by them loses no bit."""
    steps = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    return mixed(steps) | np.uint64(1)


def text_hashes(values: Any) -> Hashes:
    """Return a hash per id or text; 12, 12.0 and "12" are the same id."""
    column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if not _is_text(column):
        column = np.asarray(column)
        if column.dtype.kind == "V" or column.ndim != 1:
            raise InvalidInput(
                f"ids are texts or numbers, found an array of {column.dtype} and shape {column.shape}"
            )
        if column.dtype.kind == "S":
            column = np.char.decode(column, "utf-8", _ODD_BYTES)
        is_bounded = column.dtype.kind == "f" and (np.abs(column.astype(np.float64)) < 2**63).all()
        if is_bounded and (column == np.floor(column)).all():
            column = column.astype(np.int64)  # 12.0 is the same id too
        if column.dtype.kind in "iu":  # several times as fast as making Python's strings
            column = pa.array(column.astype(column.dtype.newbyteorder("="))).cast(pa.large_string())
    is_ascii = (
        _is_text(column)
        and not column.null_count
        and pc.all(pc.string_is_ascii(column)).as_py() is not False
    )
    column, hashed = (column, _ascii_hashes) if is_ascii else (np.asarray(column), _letter_hashes)
    # A block of ids becomes a matrix of letters as wide as its longest id: one long id must not
    # widen all others.
    parts = [hashed(column[start : start + _TEXTS]) for start in range(0, len(column), _TEXTS)]
    return np.concatenate([np.empty(0, dtype=np.uint64), *parts])


def _is_text(column: Any) -> bool:
    return isinstance(column, pa.Array) and column.type in (pa.string(), pa.large_string())


def _letter_hashes(block: NDArray[Any]) -> Hashes:
    try:
        words = np.ascontiguousarray(block.astype(np.str_))
    except UnicodeDecodeError:  # bytes beyond ASCII
        decoded = [
            name.decode("utf-8", _ODD_BYTES) if isinstance(name, bytes) else str(name)
            for name in block.tolist()
        ]
        words = np.array(decoded, dtype=np.str_)
    width = words.dtype.itemsize // 4
    letters = words.view(np.uint32).reshape(len(words), width).astype(np.uint64)
    return mixed(mixed(letters) @ keys(width, salt=_SALT))


def _ascii_hashes(block: pa.Array) -> Hashes:
    width = pc.max(pc.binary_length(block)).as_py()
    letters = np.frombuffer(pc.ascii_rpad(block, width, "\0").buffers()[2] or b"", dtype=np.uint8)
    total = np.zeros(len(block), dtype=np.uint64)
    for column, key in zip(
        letters.reshape(len(block), width).T, keys(width, salt=_SALT), strict=True
    ):
        total += _LETTERS[column] * key
    return mixed(total)


_LETTERS: Hashes = mixed(np.arange(128, dtype=np.uint64))


_BLOCK = 1 << 18
"""Values per block: the temporaries of one block stay in the processor's cache."""


def join(left: Hashes, right: Hashes) -> Hashes:
    """Return the hashes of ordered pairs of hashes, elementwise."""
    return mixed(
        left * np.uint64(0x9FB21C651E98DF25) + mixed(right + np.uint64(0x632BE59BD9B4E019))
    )


def number_hashes(values: Any, *, name: str) -> Hashes:
    """Return a hash per number; equal values have equal hashes, whatever their type. Raises as `as_numbers` does."""
    return mixed(_float_bits(as_numbers(values, name=name)))


def as_numbers(values: Any, *, name: str) -> NDArray[np.float64]:
    """Return a column of numbers as float64."""
    refuse_masked(values, name)
    return labels(as_column(values), name).astype(np.float64, copy=False)


def row_hashes(X: Any) -> Hashes:
    """Return a hash per row of a feature matrix; dense, sparse and DataFrame of equal values agree."""
    return _row_sums(X, lambda values: mixed(_float_bits(values)))


def rounded_hashes(X: Any) -> Hashes:
    """Return a hash per row over values of about four significant digits, as `row_hashes` does over exact ones."""
    return _row_sums(X, _rounded_bits)


def sign_hashes(X: Any) -> Hashes:
    """Return a hash per row over which columns are less than the next: neither rounding nor the row's length counts."""
    signs = [(block[:, 1:] > block[:, :-1]).astype(np.uint64) for block in feature_blocks(X)]
    sums = [block @ keys(block.shape[1], salt=4) for block in signs]
    return mixed(np.concatenate([np.empty(0, dtype=np.uint64), *sums]))


def are_embeddings(X: Any) -> bool:
    """Return whether rows are told by the signs of the differences of their columns, as those of embeddings are."""
    if hasattr(X, "tocsr") or n_features(X) < _LEAST_SIGNS:
        return False
    some = next(feature_blocks(X), None)
    if some is None:
        return False
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite and of very large values
        steps = np.diff(some[:_ROWS_LOOKED_AT])
    n_patterns, n_rows = (len(np.unique(each, axis=0)) for each in (steps > 0, steps))
    return bool((steps != 0).mean() > 0.99 and n_patterns > 0.99 * n_rows)


_LEAST_SIGNS = 32
"""Columns from which signs may tell rows."""

_ROWS_LOOKED_AT = 1000


def _row_sums(X: Any, hashed: Callable[[NDArray[Any]], NDArray[Any]]) -> Hashes:
    if not hasattr(X, "tocsr"):
        sums = [
            hashed(block).astype(np.uint64) @ keys(block.shape[1]) for block in feature_blocks(X)
        ]
        return mixed(np.concatenate([np.empty(0, dtype=np.uint64), *sums]))
    X = as_matrix(X)
    contributions = hashed(X.data).astype(np.uint64) * keys(X.shape[1])[X.indices]
    # Sums of rows as differences of running totals, which are exact modulo 2^64.
    totals = np.concatenate(
        [np.zeros(1, dtype=np.uint64), np.cumsum(contributions, dtype=np.uint64)]
    )
    return mixed(totals[X.indptr[1:]] - totals[X.indptr[:-1]])


def as_matrix(X: Any) -> Any:
    """Return features in a form whose rows can be taken: a frame, a CSR matrix or an array of numbers."""
    shape = np.shape(X)
    if len(shape) != 2:
        raise InvalidInput(
            f"X must be a matrix of shape (n_rows, n_features), but its shape is {shape}"
        )
    if hasattr(X, "iloc"):
        return X
    if hasattr(
        X, "to_pandas"
    ):  # of polars and Arrow: words and missing values are those of a pandas frame
        return X.to_pandas()
    if hasattr(X, "tocsr"):
        matrix = X.tocsr()
        return (
            matrix if matrix.has_canonical_format else matrix.tocoo().tocsr()
        )  # which sums duplicates
    array = np.asarray(X)
    return array if array.dtype.kind in "biuf" else _as_float32(array)


def n_features(X: Any) -> int:
    """Return the number of columns of a matrix from `as_matrix`, without one named ``qid``."""
    return int(X.shape[1]) - (list(X.columns).count("qid") if hasattr(X, "iloc") else 0)


def taken(X: Any, rows: Any) -> NDArray[np.float32]:
    """Return rows of a matrix from `as_matrix` as float32, without a column named ``qid``."""
    if hasattr(X, "iloc"):
        return _as_float32(_frame_values(X.iloc[rows]))
    return _as_float32(X[rows].toarray() if hasattr(X, "tocsr") else X[rows])


def feature_blocks(X: Any) -> Iterator[NDArray[np.float32]]:
    """Yield blocks of rows of a feature matrix as float32, without a column named ``qid``."""
    matrix = as_matrix(X)
    step = max(1, _BLOCK // max(1, matrix.shape[1]))
    for start in range(0, matrix.shape[0], step):
        yield taken(matrix, slice(start, start + step))


def _as_float32(block: NDArray[Any]) -> NDArray[np.float32]:
    if np.iscomplexobj(block):
        raise InvalidInput(
            "X has complex numbers: give their real and imaginary parts as two columns"
        )
    try:
        with np.errstate(over="ignore"):  # a value beyond float32 counts as infinite
            return block.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"X must be numbers, or a DataFrame with one type a column: {error}"
        ) from error


def _frame_values(frame: Any) -> NDArray[np.float64]:
    columns = []
    for position, name in enumerate(frame.columns):
        if name == "qid":
            continue
        column = frame.iloc[:, position]
        kind = getattr(column.dtype, "kind", "O")
        if kind in "biufc":  # `_as_float32` says what to do with complex numbers
            columns.append(
                column.to_numpy(dtype=np.complex128 if kind == "c" else np.float64, na_value=np.nan)
            )
        elif kind in "mM":
            columns.append(column.to_numpy().astype(np.int64).astype(np.float64))
        else:  # words and categories: a number in [0, 1) per word
            columns.append(text_hashes(column.to_numpy(dtype=object)) / 2.0**64)
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def ordered_bits(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return unsigned integers that stand in the order of the values; missing values come last."""
    bits = _single_bits(values)
    return np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))


def _rounded_bits(values: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the bits of values with a mantissa of 13 bits, about four digits; 0 for zero."""
    return (_single_bits(values) + np.uint32(1 << 9)) >> np.uint32(10)


def _float_bits(values: NDArray[Any]) -> Hashes:
    return _single_bits(values).astype(np.uint64)


def _single_bits(values: NDArray[Any]) -> NDArray[np.uint32]:
    single = _as_float32(values)
    single += np.float32(0)  # -0.0 becomes 0.0
    missing = np.isnan(single)
    if missing.any():
        single[missing] = np.nan  # one NaN for all its bit patterns
    return single.view(np.uint32)
