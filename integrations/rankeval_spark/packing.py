"""Rows on their way through Spark's shuffle: packed by partition, so that the JVM moves a few blocks and no rows.

    rows of a task of the input        packed: one row a run and partition        rows of a partition
    qid relevance score                place   rows
     7      1      .5             ->     0     Arrow stream: 3, 3, 9         ->   3 3 9 | 9 3 ...
     3      0      .2                    1     Arrow stream: 7, 7, 4

Spark's own shuffle writes, sorts and reads each row by itself, and then copies it value by value into Arrow's columns
for Python. Packed before the shuffle, the values are copied once, and the rest is NumPy (bench_spark).

The trap is a query in two partitions: equal ids must find the same partition in each task, so the hash looks at the
value alone, and the type of a column is the same in all tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval.evaluation.streaming.buckets import RUN, by_bucket

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PACKED = pa.schema([("place", pa.int32()), ("rows", pa.binary())])


def by_query(rows: DataFrame, partitions: int) -> DataFrame:
    """Return packed rows in so many partitions, all rows of a query in one of them; `unpacked` reads them.

    Parameters
    ----------
    rows : DataFrame
        Rows with a column ``qid``.
    partitions : int
        The number of partitions.
    """
    places = _places(rows.sparkSession, partitions)
    return rows.mapInArrow(Packing(places).packed, "place int, rows binary").repartition(partitions, "place")


def _places(session: SparkSession, partitions: int) -> tuple[int, ...]:
    """Return one number for each partition that Spark's hash sends there, so that all get the same share.

    The hash is asked of Spark; a partition that no number was found for in time is left to chance.
    """
    tried = math.ceil(partitions * (math.log(partitions) + 10))
    found = session.sql(f"SELECT transform(sequence(0, {tried}), x -> pmod(hash(x), {partitions})) AS at").first()
    first = {at: number for number, at in reversed(list(enumerate(found["at"] if found else ())))}
    return tuple(first.get(at, at) for at in range(partitions))


@dataclass(frozen=True)
class Packing:
    """Packs rows by the partition of their query, in the worker processes of Spark.

    Attributes
    ----------
    places : tuple of int
        The number that stands for each partition.
    run : int
        Rows to pack at a time.
    """

    places: tuple[int, ...]
    run: int = RUN

    def packed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows with a place and an Arrow stream each.

        Parameters
        ----------
        batches : iterable of RecordBatch
            Rows with a column ``qid``. Those without an id go to the first partition, which refuses them.
        """
        for rows in _runs(batches, self.run):
            known = rows.filter(pc.is_valid(rows["qid"])) if rows["qid"].null_count else rows
            pieces = [(0, rows.filter(pc.is_null(rows["qid"])))] if known is not rows else []
            if known.num_rows:
                ordered, starts = by_bucket(known, len(self.places))
                pieces += [
                    (at, ordered.slice(start, stop - start))
                    for at, (start, stop) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
                    if stop > start
                ]
            yield pa.record_batch(
                [
                    pa.array([self.places[at] for at, _ in pieces], pa.int32()),
                    pa.array([_stream_of(piece) for _, piece in pieces], pa.binary()),
                ],
                schema=_PACKED,
            )


def _runs(batches: Iterable[pa.RecordBatch], run: int) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(one.num_rows for one in held) >= run:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


def _stream_of(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpacked(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the rows of packed ones, without a copy.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Rows as `Packing.packed` yields them.
    """
    streams = (stream.as_buffer() for batch in batches for stream in batch["rows"])
    return [rows for stream in streams for rows in pa.ipc.open_stream(stream)]
