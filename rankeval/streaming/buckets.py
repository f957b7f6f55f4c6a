"""Rows in any order, put together by query on disk: rows whose query has the same hash go into the same bucket.

    part of the data  ->  one Arrow file of several runs; a run is rows by bucket, and a batch of it some buckets
                          [ 0 0 0 1 1 2 2 | 3 4 4 4 5 | ... ] [ 0 1 1 2 2 2 | 3 3 4 5 5 | ...

Rows keep their order, so that it decides among equal scores if the convention says so (``ties="stable"``). The number
of buckets follows from the number of rows alone.

Whole queries are gathered from them in bounded memory:

    buckets of a range that fit        ->  read at once, a block of each
    buckets that do not fit            ->  read again for each lot of buckets that fits
    a bucket that does not fit alone   ->  read again for each lot of its hashes that fits, by 16 bits of them at a time

A query that does not fit is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval.io.columns import numbers_of
from rankeval.io.opening import draft_of, replacing
from rankeval.join.flat import Floats, Ints
from rankeval.join.matching import Hashes, hash_ids, mixed
from rankeval.streaming.queries import Block, Part, refuse_great
from rankeval.streaming.rows import BATCH, Share, batches, located, refuse_bad_values
from rankeval.streaming.source import Columns, is_text

RUN = 1 << 20
"""Rows that are put in order of their buckets at a time."""

_MOST_BUCKETS = 1 << 16
_BLOCK = 1 << 14
"""Rows hashed at a time, so that they stay in the processor's cache (bench_streaming)."""
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_STARTS = b"rankeval.starts"
_PEEK = 1 << 10
_COPIES = 5
"""Times that a run is in memory while it is written (bench_streaming)."""
_HALF = np.uint64(32)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio

_BITS = 16
_BINS = 1 << _BITS


def n_buckets(n_rows: int) -> int:
    """Return the number of buckets for a number of rows: about a batch of rows each."""
    return min(-(-n_rows // BATCH), _MOST_BUCKETS)


def write_buckets(part: Part, columns: Columns, ranges: Sequence[range], path: Path, share: Share) -> None:
    """Write the rows of a part by bucket to one file, which is whole or not there.

    Parameters
    ----------
    part : Part
        Row groups.
    columns : Columns
        The columns.
    ranges : sequence of range
        All buckets, by those that are scored together.
    path : Path
        The file.
    share : Share
        The memory of this process.

    Raises
    ------
    InvalidInput
        If rows are at fault; the message names file and row group.
    """
    schema = pa.schema([(role, columns.types[role]) for role in columns.names])
    with replacing(path, draft_of(path)) as sink, pa.ipc.new_file(sink, schema) as writer:
        for rows in _runs(part, columns, _run_of(part, columns, share)):
            ordered, starts = by_bucket(rows, ranges[-1].stop)
            for one in ranges:
                begins = starts[one.start : one.stop + 1]
                piece = ordered.slice(begins[0], begins[-1] - begins[0])
                writer.write_batch(piece, custom_metadata={_STARTS: (begins - begins[0]).tobytes()})


def batches_of(path: Path, n_ranges: int, place: int) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """Yield what `write_buckets` has written of some buckets: a batch of each run, and where each bucket begins in it.

    The trap: mapped files count as memory of the process, with many pages around each slice. So batches are read.

    Parameters
    ----------
    path : Path
        The file.
    n_ranges : int
        The number of ranges of buckets.
    place : int
        Which of them.
    """
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
        for number in range(place, reader.num_record_batches, n_ranges):
            rows, metadata = reader.get_batch_with_custom_metadata(number)
            yield rows, np.frombuffer(metadata[_STARTS], dtype=np.int64)


def _run_of(part: Part, columns: Columns, share: Share) -> int:
    """Return the rows to put in order at a time, by the size of the first ones."""
    first, _ = next(batches(part.files, columns, coded=False, most=_PEEK))
    row_bytes = max(int(first.nbytes) // int(first.num_rows), 1)
    return max(min(RUN, share.n_bytes // (_COPIES * row_bytes)), 1)


def _runs(part: Part, columns: Columns, run: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part in runs, checked, with texts as texts."""
    held: list[pa.RecordBatch] = []
    n_held = 0
    for rows, place in batches(part.files, columns, coded=False, most=run):
        with located(place, columns):
            refuse_bad_values(rows)
        if n_held + rows.num_rows > run:
            yield _together(held)
            held, n_held = [], 0
        held.append(rows)
        n_held += rows.num_rows
    if held:
        yield _together(held)


def _together(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(held) if len(held) > 1 else held[0]


def by_bucket(rows: pa.RecordBatch, number: int) -> tuple[pa.RecordBatch, Ints]:
    """Return rows in order of their buckets, and where each bucket begins.

    Parameters
    ----------
    rows : RecordBatch
        At least one row; the column ``qid`` has no nulls.
    number : int
        The number of buckets.
    """
    bits = (rows.num_rows - 1).bit_length()
    # The bucket above, the row below: NumPy sorts such keys in a third of the time of a stable order of the buckets.
    kind = np.uint32 if (number - 1).bit_length() + bits <= 32 else np.uint64
    keys = _keys(rows["qid"], number, bits, kind)
    keys.sort()
    ends = np.searchsorted(keys, np.arange(1, number, dtype=kind) << bits)
    starts = np.concatenate(([0], ends, [len(keys)]))
    keys &= (1 << bits) - 1
    ordered = rows.take(pa.Array.from_buffers(pa.from_numpy_dtype(kind), len(keys), [None, pa.py_buffer(keys)]))
    return ordered, starts


def _keys(ids: pa.Array, number: int, bits: int, kind: type[np.uint32 | np.uint64]) -> NDArray[Any]:
    """Return of each row the bucket, by the upper half of a hash, above its place in so many bits."""
    is_whole = pa.types.is_integer(ids.type)
    found = numbers_of(ids) if is_whole else hashes_of(ids)
    keys: NDArray[Any] = np.arange(len(found), dtype=kind)
    for start in range(0, len(found), _BLOCK):
        hashes = found[start : start + _BLOCK].astype(np.uint64)
        if is_whole:
            hashes *= _GOLDEN  # of numbers a product is hash enough
        hashes >>= _HALF
        hashes *= np.uint64(number)
        hashes >>= _HALF
        bucket: NDArray[Any] = hashes.astype(kind)
        keys[start : start + _BLOCK] |= bucket << bits
    return keys


def hashes_of(ids: pa.Array) -> Hashes:
    """Return a hash of each id; equal ids have equal hashes.

    Parameters
    ----------
    ids : Arrow array
        Ids of any type, without nulls.
    """
    ids = getattr(ids, "storage", ids)  # of a type that extends another, as uuid does
    kind = ids.type
    if pa.types.is_integer(kind) or is_text(kind):
        return hash_ids(ids)
    if pa.types.is_floating(kind):
        return mixed((numbers_of(ids).astype(np.float64) + 0.0).view(np.uint64))  # 0.0 and -0.0 are one id
    coded = ids if pa.types.is_dictionary(kind) else ids.dictionary_encode()
    names = coded.dictionary
    if any(is_kind(names.type) for is_kind in _BYTES):
        names = names.cast(pa.large_binary()).view(pa.large_string())  # bytes need not be a text
    names = names if is_text(names.type) else pc.cast(names, pa.string())
    found: Hashes = hash_ids(names)[numbers_of(coded.indices)]
    return found


Runs = Iterator[tuple[pa.RecordBatch, Ints]]


def blocks_of(paths: Sequence[Path], ranges: Sequence[range], place: int, share: Share) -> Iterator[Block]:
    """Yield the rows of some buckets as blocks of whole queries.

    Parameters
    ----------
    paths : sequence of Path
        The files of all parts of the data, in its order.
    ranges : sequence of range
        All buckets, by those that are scored together.
    place : int
        Which of the ranges.
    share : Share
        The memory of this process.

    Raises
    ------
    InvalidInput
        If a query has more rows than fit.
    """

    def read() -> Runs:
        return (run for path in paths for run in batches_of(path, len(ranges), place))

    held: list[tuple[pa.RecordBatch, Ints]] = []
    n_bytes, sizes = 0, np.zeros(len(ranges[place]), dtype=np.int64)
    for rows, starts in read():
        n_bytes += rows.nbytes
        sizes += np.diff(starts)
        if not share.holds(n_bytes, int(sizes.max())):
            held.clear()
            yield from _by_lot(read, len(sizes), share)
            return
        held.append((rows, starts))
    yield from _by_bucket(held, len(sizes))


def _by_bucket(held: list[tuple[pa.RecordBatch, Ints]], number: int) -> Iterator[Block]:
    begins = [starts.tolist() for _, starts in held]
    for bucket in range(number):
        slices = [
            rows.slice(one[bucket], one[bucket + 1] - one[bucket])
            for (rows, _), one in zip(held, begins, strict=True)
            if one[bucket] < one[bucket + 1]
        ]
        if slices:
            yield Block(pa.Table.from_batches(slices), [])


def _by_lot(read: Callable[[], Runs], number: int, share: Share) -> Iterator[Block]:
    """Yield the rows of buckets that do not fit together: all are read once for each lot of those that do."""
    sizes, n_bytes = _sizes(((rows, np.diff(starts)) for rows, starts in read()), number)
    for lot in _lots(sizes, n_bytes, share, max):
        if share.holds(n_bytes[lot].sum(), sizes[lot].max()):
            begins = slice(lot.start, lot.stop + 1)
            held = [_copied(rows, starts[begins]) for rows, starts in read()]
            yield from _by_bucket(held, lot.stop - lot.start)
        else:
            yield from _divided(partial(_bucket, read, lot.start), share)


def _bucket(read: Callable[[], Runs], bucket: int) -> Iterator[pa.RecordBatch]:
    for rows, starts in read():
        begin, end = starts[bucket : bucket + 2].tolist()
        if begin < end:
            yield rows.slice(begin, end - begin)


def _divided(read: Callable[[], Iterator[pa.RecordBatch]], share: Share, shift: int = _BITS) -> Iterator[Block]:
    """Yield the rows of a bucket that does not fit, by some bits of the lower half of the hash."""
    counted = ((rows, np.bincount(_bins(rows, shift), minlength=_BINS)) for rows in read())
    sizes, n_bytes = _sizes(counted, _BINS)
    for lot in _lots(sizes, n_bytes, share, operator.add):
        some = partial(_of_lot, read, shift, lot)
        n_rows = int(sizes[lot].sum())
        fits = share.holds(n_bytes[lot].sum(), n_rows)
        if shift and not fits:
            yield from _divided(some, share, shift - _BITS)
        elif n_rows:
            if not fits:  # all bits are used: it is one query
                refuse_great(next(some())["qid"][0].as_py(), n_rows, share.most_rows)
            yield Block(pa.Table.from_batches(list(some())), [])


def _of_lot(read: Callable[[], Iterator[pa.RecordBatch]], shift: int, lot: slice) -> Iterator[pa.RecordBatch]:
    for rows in read():
        bins = _bins(rows, shift)
        (places,) = ((bins >= lot.start) & (bins < lot.stop)).nonzero()
        if len(places):
            yield rows.take(pa.array(places))


def _bins(rows: pa.RecordBatch, shift: int) -> NDArray[Any]:
    bins: NDArray[Any] = (hashes_of(rows["qid"]) >> np.uint64(shift)).astype(np.uint16).astype(np.intp)
    return bins


def _sizes(counted: Iterator[tuple[pa.RecordBatch, Ints]], number: int) -> tuple[Ints, Floats]:
    """Return the rows of each bucket, or of each bin of hashes, and about how many bytes they are."""
    sizes, n_bytes = np.zeros(number, dtype=np.int64), np.zeros(number)
    for rows, counts in counted:
        sizes += counts
        n_bytes += counts * (rows.nbytes / max(rows.num_rows, 1))
    return sizes, n_bytes


def _lots(sizes: Ints, n_bytes: Floats, share: Share, together: Callable[[int, int], int]) -> Iterator[slice]:
    """Yield neighbours that fit together, or one that does not fit alone."""
    begin, n_held, n_rows = 0, 0.0, 0
    for place, (size, more) in enumerate(zip(sizes.tolist(), n_bytes.tolist(), strict=True)):
        if begin < place and not share.holds(n_held + more, together(n_rows, size)):
            yield slice(begin, place)
            begin, n_held, n_rows = place, 0.0, 0
        n_held, n_rows = n_held + more, together(n_rows, size)
    yield slice(begin, len(sizes))


def _copied(rows: pa.RecordBatch, begins: Ints) -> tuple[pa.RecordBatch, Ints]:
    """Return some buckets of a batch, which a slice would hold as a whole."""
    return rows.take(pa.array(np.arange(begins[0], begins[-1]))), begins - begins[0]
