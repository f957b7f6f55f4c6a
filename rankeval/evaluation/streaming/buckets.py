"""Rows in any order, put together by query on disk: rows whose query has the same hash go into the same bucket.

    part of the data  ->  one Arrow file of several runs; a run is rows by bucket, and a batch of it some buckets
                          [ 0 0 0 1 1 2 2 | 3 4 4 4 5 | ... ] [ 0 1 1 2 2 2 | 3 3 4 5 5 | ...

Rows keep their order, so that it decides among equal scores if the convention says so (``ties="stable"``). The number
of buckets follows from the number of rows alone. `gathering` reads them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval.evaluation.streaming.faults import located, refuse_bad_values
from rankeval.evaluation.streaming.kinds import is_text
from rankeval.evaluation.streaming.memory import Share
from rankeval.evaluation.streaming.plan import Part
from rankeval.evaluation.streaming.rows import BATCH, batches
from rankeval.evaluation.streaming.source import Columns
from rankeval.io.columns import numbers_of
from rankeval.join.flat import Ints
from rankeval.join.matching import Hashes, hash_ids, mixed

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
    half = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with pa.OSFile(str(half), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for rows in _runs(part, columns, _run_of(part, columns, share)):
                ordered, starts = by_bucket(rows, ranges[-1].stop)
                for one in ranges:
                    begins = starts[one.start : one.stop + 1]
                    piece = ordered.slice(begins[0], begins[-1] - begins[0])
                    writer.write_batch(piece, custom_metadata={_STARTS: (begins - begins[0]).tobytes()})
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


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
