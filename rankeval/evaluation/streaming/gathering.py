"""Whole queries from buckets, in bounded memory.

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
from numpy.typing import NDArray

from rankeval.evaluation.streaming.buckets import batches_of, hashes_of
from rankeval.evaluation.streaming.memory import Share
from rankeval.evaluation.streaming.queries import Block, refuse_great
from rankeval.join.flat import Floats, Ints

_BITS = 16
_BINS = 1 << _BITS

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
