"""Blocks of whole queries, from rows sorted by query, or in any order by way of buckets on disk.

    batches   q1 q1 q2 | q2 q2 q3 | q3 q4        blocks   q1 | q2 q2 q2 | q3 q3 | q4

The last query of a batch may go on in the next one, in the next row group or in the next file. So
it is held back.

A data set that is sorted by query is cut into parts, intervals of query ids, each with the row
groups that reach into it:

    row groups by their least query   [1 .. 7] [7 .. 7] [7 .. 12] [13 .. 20] [20 .. 31]
    parts                             (  .. 7]                    (7 .. 20]             (20 .. ]

A query that is cut across row groups belongs to the part in which it begins: that part reads the
heads of the row groups behind it as far as the query goes. The statistics of the files are believed
only until the rows are read: rows out of order show then, and the data set is shuffled into buckets
instead.

Buckets: rows in any order are put together by query on disk. Rows whose query has the same hash go
into the same one.

    part of the data  ->  one Arrow file of several runs; a run is rows by bucket, and a batch of it some buckets
                          [ 0 0 0 1 1 2 2 | 3 4 4 4 5 | ... ] [ 0 1 1 2 2 2 | 3 3 4 5 5 | ...

Rows keep their order, so that it decides among equal scores if the convention says so
(``ties="stable"``). The number of buckets follows from the number of rows alone.

Whole queries are gathered from them in bounded memory:

    buckets of a range that fit        ->  read at once, a block of each
    buckets that do not fit            ->  read again for each lot of buckets that fits
    a bucket that does not fit alone   ->  read again for each lot of its hashes that fits, by 16 bits of them at a time

A query that does not fit is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval._checks import shown
from rankeval.errors import InvalidInput
from rankeval.io.columns import comparable, is_text_type, numbers_of
from rankeval.io.opening import draft_of, replacing
from rankeval.join.flat import Floats, Ints
from rankeval.join.matching import GOLDEN, Hashes, hash_ids, mixed
from rankeval.streaming.rows import (
    BATCH,
    Place,
    RowBatch,
    Share,
    batches,
    located,
    refuse_bad_values,
)
from rankeval.streaming.source import File, ParquetSource, ReadColumns

PART = 1 << 22
"""Rows in a part, of whole row groups, for any memory and workers, which may change in between."""

_LEAST = BATCH // 2
"""Rows of a block, at least: each costs a few calls."""


@dataclass(frozen=True)
class Part:
    """Some of the data set, read by one worker."""

    number: int  # Its place among the parts
    files: tuple[File, ...]  # The row groups to read, in order of their queries
    n_rows: int  # About how many rows it has, for the progress
    # The queries that belong to it: those beyond ``above``, up to and with ``upto``. None is no
    # limit.
    above: Any = None
    upto: Any = None


class _Piece(NamedTuple):
    """A row group: the queries at its ends, and its place in the data set."""

    begin: Any
    upto: Any
    place: int
    file: File


def sorted_parts(source: ParquetSource, *, keep_order: bool) -> list[Part] | None:
    """Return the parts of a data set sorted by query, by the statistics of its row groups."""
    groups = _groups(source)
    known = ((place, file, file.row_groups[0].ends) for place, file in enumerate(groups))
    pieces = [_Piece(*ends, place, file) for place, file, ends in known if ends is not None]
    if len(pieces) < len(groups):
        return None
    pieces.sort(key=lambda piece: piece[:3])
    for piece, behind in pairwise(pieces):
        if piece.upto > behind.begin or (
            keep_order and piece.upto == behind.begin and piece.place > behind.place
        ):
            return None
    return _parts(pieces)


def _parts(pieces: list[_Piece]) -> list[Part]:
    parts: list[Part] = []
    first, above = 0, None
    while first < len(pieces):
        last, n_rows = first, 0
        # Row groups of the last query alone are read here; of the one behind them only its head.
        while last < len(pieces) and (n_rows < PART or pieces[last].upto == pieces[last - 1].upto):
            n_rows += pieces[last].file.n_rows
            last += 1
        upto = pieces[last - 1].upto
        more = last < len(pieces) and pieces[last].begin == upto
        files = tuple(piece.file for piece in pieces[first : last + more])
        parts.append(Part(len(parts), files, n_rows, above, None if last == len(pieces) else upto))
        first, above = last, upto
    return parts


def row_parts(source: ParquetSource) -> list[Part]:
    """Return parts of consecutive row groups, whatever queries they hold."""
    parts: list[Part] = []
    held: list[File] = []
    groups = _groups(source)
    for file in groups:
        held.append(file)
        n_rows = sum(file.n_rows for file in held)
        if n_rows >= PART or file is groups[-1]:
            parts.append(Part(len(parts), tuple(held), n_rows))
            held = []
    return parts


def _groups(source: ParquetSource) -> list[File]:
    """Return the row groups of a data set, each as a file of its own."""
    return [
        replace(file, row_groups=(group,)) for file in source.files for group in file.row_groups
    ]


class Unsorted(Exception):
    """The rows are not sorted by query, whatever the statistics of the files say."""


class QueryBlock(NamedTuple):
    """Rows of whole queries, and the row groups that they come from."""

    rows: pa.Table
    places: list[Place]


@dataclass(frozen=True, eq=False)
class _Ids:
    """The queries of a batch: numbers, and for texts the names that these stand for."""

    numbers: NDArray[Any]
    names: NDArray[Any] | None

    @classmethod
    def of(cls, batch: RowBatch, columns: ReadColumns) -> _Ids:
        with located(batch.place, columns):
            return cls(*comparable(batch.rows["qid"], "qid"))

    def __getitem__(self, row: int) -> Any:
        number = self.numbers[row]
        return number if self.names is None else self.names[number]

    def beyond(self, ends: tuple[Any, Any] | None) -> bool:
        """Say whether rows are outside of the range of their row group, and so in another part."""
        return ends is not None and bool(self[0] < ends[0] or self[-1] > ends[1])

    @property
    def ascend(self) -> bool:
        return bool((self.numbers[1:] >= self.numbers[:-1]).all())

    def behind(self, query: Any) -> int:
        """Return the number of rows up to and with a query."""
        if self.names is not None:
            return int(
                np.searchsorted(self.numbers, np.searchsorted(self.names, query, side="right"))
            )
        # NumPy compares unsigned numbers and Python's own as floats, which makes neighbours beyond
        # 2**53 one.
        return int(
            np.searchsorted(self.numbers, np.asarray(query, dtype=self.numbers.dtype), side="right")
        )


def whole_queries(part: Part, columns: ReadColumns, most: int) -> Iterator[QueryBlock]:
    """Yield blocks of whole queries of a part that is sorted by query."""
    held: list[RowBatch] = []
    before: Any
    last: Any
    before = last = None  # the last query that was read, and that which is held back
    n_held = n_last = 0
    for batch in batches(part.files, columns):
        ids = _Ids.of(batch, columns)
        if (
            not ids.ascend
            or (before is not None and ids[0] < before)
            or ids.beyond(batch.place.group.ends)
        ):
            raise Unsorted
        before = ids[-1]
        begin = 0 if part.above is None else ids.behind(part.above)
        end = batch.rows.num_rows if part.upto is None else ids.behind(part.upto)
        if begin < end:
            cut = max(
                int(np.searchsorted(ids.numbers, ids.numbers[end - 1])), begin
            )  # where the last query begins
            goes_on = cut == begin and bool(held) and ids[begin] == last
            if not goes_on and n_held + cut - begin >= _LEAST:
                yield _block([*held, _part_of(batch, begin, cut)])
                held = []
                n_held = 0
                begin = cut
            held.append(_part_of(batch, begin, end))
            n_held += end - begin
            last = ids[end - 1]
            n_last = end - cut + (n_last if goes_on else 0)
            refuse_great(last, n_last, most)
        if end < batch.rows.num_rows:
            break
    if held:
        yield _block(held)


def refuse_great(query: Any, n_rows: int, most: int) -> None:
    """Refuse a query that has more rows than fit into memory."""
    if n_rows > most:
        query = query.item() if isinstance(query, np.generic) else query
        raise InvalidInput(
            f"memory: query {shown(query)} has more than {most:,} rows, which is what fits into the memory of one "
            "process; raise memory=, or lower n_jobs="
        )


def _part_of(batch: RowBatch, begin: int, end: int) -> RowBatch:
    return RowBatch(batch.rows.slice(begin, end - begin), batch.place)


def _block(held: list[RowBatch]) -> QueryBlock:
    rows = pa.Table.from_batches([batch.rows for batch in held if batch.rows.num_rows])
    return QueryBlock(rows, list(dict.fromkeys(batch.place for batch in held)))


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

_BITS = 16
_BINS = 1 << _BITS


def n_buckets(n_rows: int) -> int:
    """Return the number of buckets for a number of rows: about a batch of rows each."""
    return min(-(-n_rows // BATCH), _MOST_BUCKETS)


def write_buckets(
    part: Part, columns: ReadColumns, ranges: Sequence[range], path: Path, share: Share
) -> None:
    """Write the rows of a part by bucket to one file, which is whole or not there."""
    schema = pa.schema([(role, columns.types[role]) for role in columns.names])
    with replacing(path, draft_of(path)) as sink, pa.ipc.new_file(sink, schema) as writer:
        for rows in _runs(part, columns, _run_of(part, columns, share)):
            ordered, starts = by_bucket(rows, ranges[-1].stop)
            for buckets in ranges:
                begins = starts[buckets.start : buckets.stop + 1]
                piece = ordered.slice(begins[0], begins[-1] - begins[0])
                writer.write_batch(piece, custom_metadata={_STARTS: (begins - begins[0]).tobytes()})


def batches_of(path: Path, n_ranges: int, place: int) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """Yield what `write_buckets` has written of some buckets: a batch of each run, and where each bucket begins in it.

    The trap: mapped files count as memory of the process, with many pages around each slice. So
    batches are read.
    """
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
        for number in range(place, reader.num_record_batches, n_ranges):
            rows, metadata = reader.get_batch_with_custom_metadata(number)
            yield rows, np.frombuffer(metadata[_STARTS], dtype=np.int64)


def _run_of(part: Part, columns: ReadColumns, share: Share) -> int:
    first, _ = next(batches(part.files, columns, coded=False, most=_PEEK))
    row_bytes = max(int(first.nbytes) // int(first.num_rows), 1)
    return max(min(RUN, share.n_bytes // (_COPIES * row_bytes)), 1)


def _runs(part: Part, columns: ReadColumns, run: int) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    n_held = 0
    for rows, place in batches(part.files, columns, coded=False, most=run):
        with located(place, columns):
            refuse_bad_values(rows)
        if n_held + rows.num_rows > run:
            yield _together(held)
            held = []
            n_held = 0
        held.append(rows)
        n_held += rows.num_rows
    if held:
        yield _together(held)


def _together(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(held) if len(held) > 1 else held[0]


def by_bucket(rows: pa.RecordBatch, number: int) -> tuple[pa.RecordBatch, Ints]:
    """Return rows in order of their buckets, and where each bucket begins."""
    bits = (rows.num_rows - 1).bit_length()
    # The bucket above, the row below: NumPy sorts such keys in a third of the time of a stable
    # order of the buckets.
    kind = np.uint32 if (number - 1).bit_length() + bits <= 32 else np.uint64
    keys = _keys(rows["qid"], number, bits, kind)
    keys.sort()
    ends = np.searchsorted(keys, np.arange(1, number, dtype=kind) << bits)
    starts = np.concatenate(([0], ends, [len(keys)]))
    keys &= (1 << bits) - 1
    ordered = rows.take(
        pa.Array.from_buffers(pa.from_numpy_dtype(kind), len(keys), [None, pa.py_buffer(keys)])
    )
    return ordered, starts


def _keys(ids: pa.Array, number: int, bits: int, kind: type[np.uint32 | np.uint64]) -> NDArray[Any]:
    # The bucket, by the upper half of a hash, stands above the row in one number: plain numbers are
    # sorted.
    is_whole = pa.types.is_integer(ids.type)
    numbers = numbers_of(ids) if is_whole else hashes_of(ids)
    keys: NDArray[Any] = np.arange(len(numbers), dtype=kind)
    for start in range(0, len(numbers), _BLOCK):
        hashes = numbers[start : start + _BLOCK].astype(np.uint64)
        if is_whole:
            hashes *= GOLDEN  # of numbers a product is hash enough
        hashes >>= _HALF
        hashes *= np.uint64(number)
        hashes >>= _HALF
        bucket: NDArray[Any] = hashes.astype(kind)
        keys[start : start + _BLOCK] |= bucket << bits
    return keys


def hashes_of(ids: pa.Array) -> Hashes:
    """Return a hash of each id; equal ids have equal hashes."""
    ids = getattr(ids, "storage", ids)  # of a type that extends another, as uuid does
    kind = ids.type
    if pa.types.is_integer(kind) or is_text_type(kind):
        return hash_ids(ids)
    if pa.types.is_floating(kind):
        return mixed(
            (numbers_of(ids).astype(np.float64) + 0.0).view(np.uint64)
        )  # 0.0 and -0.0 are one id
    coded = ids if pa.types.is_dictionary(kind) else ids.dictionary_encode()
    names = coded.dictionary
    if any(is_kind(names.type) for is_kind in _BYTES):
        names = names.cast(pa.large_binary()).view(pa.large_string())  # bytes need not be a text
    names = names if is_text_type(names.type) else pc.cast(names, pa.string())
    hashes: Hashes = hash_ids(names)[numbers_of(coded.indices)]
    return hashes


Runs = Iterator[tuple[pa.RecordBatch, Ints]]


def blocks_of(
    paths: Sequence[Path], ranges: Sequence[range], place: int, share: Share
) -> Iterator[QueryBlock]:
    """Yield the rows of some buckets as blocks of whole queries."""

    def read() -> Runs:
        return (run for path in paths for run in batches_of(path, len(ranges), place))

    held: list[tuple[pa.RecordBatch, Ints]] = []
    n_bytes = 0
    sizes = np.zeros(len(ranges[place]), dtype=np.int64)
    for rows, starts in read():
        n_bytes += rows.nbytes
        sizes += np.diff(starts)
        if not share.holds(n_bytes, int(sizes.max())):
            held.clear()
            yield from _by_lot(read, len(sizes), share)
            return
        held.append((rows, starts))
    yield from _by_bucket(held, len(sizes))


def _by_bucket(held: list[tuple[pa.RecordBatch, Ints]], number: int) -> Iterator[QueryBlock]:
    begins = [starts.tolist() for _, starts in held]
    for bucket in range(number):
        slices = [
            rows.slice(starts[bucket], starts[bucket + 1] - starts[bucket])
            for (rows, _), starts in zip(held, begins, strict=True)
            if starts[bucket] < starts[bucket + 1]
        ]
        if slices:
            yield QueryBlock(pa.Table.from_batches(slices), [])


def _by_lot(read: Callable[[], Runs], number: int, share: Share) -> Iterator[QueryBlock]:
    # Buckets that do not fit together are read once for each lot of those that do.
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


def _divided(
    read: Callable[[], Iterator[pa.RecordBatch]], share: Share, shift: int = _BITS
) -> Iterator[QueryBlock]:
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
            yield QueryBlock(pa.Table.from_batches(list(some())), [])


def _of_lot(
    read: Callable[[], Iterator[pa.RecordBatch]], shift: int, lot: slice
) -> Iterator[pa.RecordBatch]:
    for rows in read():
        bins = _bins(rows, shift)
        (places,) = ((bins >= lot.start) & (bins < lot.stop)).nonzero()
        if len(places):
            yield rows.take(pa.array(places))


def _bins(rows: pa.RecordBatch, shift: int) -> NDArray[Any]:
    bins: NDArray[Any] = (
        (hashes_of(rows["qid"]) >> np.uint64(shift)).astype(np.uint16).astype(np.intp)
    )
    return bins


def _sizes(counted: Iterator[tuple[pa.RecordBatch, Ints]], number: int) -> tuple[Ints, Floats]:
    sizes = np.zeros(number, dtype=np.int64)
    n_bytes = np.zeros(number)
    for rows, counts in counted:
        sizes += counts
        n_bytes += counts * (rows.nbytes / max(rows.num_rows, 1))
    return sizes, n_bytes


def _lots(
    sizes: Ints, n_bytes: Floats, share: Share, together: Callable[[int, int], int]
) -> Iterator[slice]:
    """Yield neighbours that fit together, or one that does not fit alone."""
    begin, n_held, n_rows = 0, 0.0, 0
    for place, (size, more) in enumerate(zip(sizes.tolist(), n_bytes.tolist(), strict=True)):
        if begin < place and not share.holds(n_held + more, together(n_rows, size)):
            yield slice(begin, place)
            begin, n_held, n_rows = place, 0.0, 0
        n_held = n_held + more
        n_rows = together(n_rows, size)
    yield slice(begin, len(sizes))


def _copied(rows: pa.RecordBatch, begins: Ints) -> tuple[pa.RecordBatch, Ints]:
    # A slice would hold the whole batch in memory.
    return rows.take(pa.array(np.arange(begins[0], begins[-1]))), begins - begins[0]
