"""The columns of a DataFrame for an evaluation: found by name, of types of the kernel, no gaps.

Names and types are checked at the driver before Spark starts a job. Gaps (null, nan, infinite) show
in the rows only: each executor counts those of its rows, and the driver adds the counts up and
names the column.

On their way through Spark's shuffle rows are packed by partition, so that the JVM moves a few
blocks and no rows:

    rows of a task of the input        packed: one row a run and partition        rows of a partition
    qid relevance score                place   rows
     7      1      .5             ->     0     Arrow stream: 3, 3, 9         ->   3 3 9 | 9 3 ...
     3      0      .2                    1     Arrow stream: 7, 7, 4

Spark's own shuffle writes, sorts and reads each row by itself, and then copies it value by value
into Arrow's columns for Python. Packed before the shuffle, the values are copied once, and the rest
is NumPy (bench_spark).

The trap is a query in two partitions: equal ids must find the same partition in each task, so the
hash looks at the value alone, and the type of a column is the same in all tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from rankeval._checks import count
from rankeval._registry import chosen
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.streaming.queries import RUN, by_bucket

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_OPTIONAL = ("docid", "query_weight")
_WHOLE = ("byte", "short", "integer", "long")
_IDS = ("string", *_WHOLE)
_NUMBERS = (*_WHOLE, "float", "double", "decimal", "boolean")

_PACKED = pa.schema([("place", pa.int32()), ("rows", pa.binary())])


class Gap(TypedDict):
    """Rows of one column without a usable value."""

    kinds: dict[str, int]
    query: Any


def chosen_columns(df: DataFrame, names: Mapping[str, str | None]) -> DataFrame:
    """Return the columns of a DataFrame for an evaluation, by the names of its arguments."""
    from pyspark.sql import functions

    wanted = {
        role: name for role, name in names.items() if name is not None or role not in _OPTIONAL
    }
    checked = {role: _checked(df, role, name) for role, name in wanted.items()}
    quoted = {role: f"`{name.replace('`', '``')}`" for role, name in checked.items()}
    return df.select(*(functions.col(name).alias(role) for role, name in quoted.items()))


def _checked(df: DataFrame, role: str, name: str | None) -> str:
    name = chosen(f"column {role}=", name, df.columns)
    if df.columns.count(name) > 1:
        raise InvalidInput(
            f"the DataFrame has the column {name!r} twice",
            argument=role,
            remedy="rename one of them",
        )
    alike = [column for column in df.columns if column.lower() == name.lower() and column != name]
    if alike and df.sparkSession.conf.get("spark.sql.caseSensitive").lower() != "true":
        raise InvalidInput(
            f"{role}: Spark cannot distinguish the columns {name!r} and {alike[0]!r}; rename one of them, or set "
            "spark.sql.caseSensitive to true"
        )
    kind = df.schema[name].dataType.typeName()
    known, words = (
        (_IDS, "text or whole numbers") if role in ("qid", "docid") else (_NUMBERS, "numbers")
    )
    if kind not in known:
        wrong = QueryIdError if role == "qid" else InvalidInput
        raise wrong(
            f"{role}: the column {name!r} is of type {kind}; expected {words}, so cast it first"
        )
    return name


def gaps_of(table: pa.Table) -> dict[str, Gap]:
    """Return the columns with gaps: how many by kind, and a query in which there is one."""
    gaps = {role: _gap(table, role) for role in table.column_names}
    return {role: gap for role, gap in gaps.items() if gap["kinds"]}


def _gap(table: pa.Table, role: str) -> Gap:
    column = table[role]
    masks = {"null": pc.is_null(column)} if column.null_count else {}
    if pa.types.is_floating(column.type):
        total = pc.sum(column).as_py()  # finite only if all are: clean columns need no mask
        if total is not None and not -float("inf") < total < float("inf"):
            masks |= {"nan": pc.is_nan(column), "infinite": pc.is_inf(column)}
    masks = {kind: pc.fill_null(mask, False) for kind, mask in masks.items()}
    kinds = {kind: pc.sum(mask).as_py() for kind, mask in masks.items()}
    kinds = {kind: number for kind, number in kinds.items() if number}
    if not kinds:
        return {"kinds": kinds, "query": None}
    row = pc.index(masks[next(iter(kinds))], True).as_py()
    return {"kinds": kinds, "query": table["qid"][row].as_py()}


def refuse_gaps(tables: Iterable[Mapping[str, Gap]], names: Mapping[str, str | None]) -> None:
    """Raise for the first column with gaps."""
    parts = list(tables)
    for role, name in names.items():
        gaps = [part[role] for part in parts if role in part]
        if not gaps:
            continue
        kinds: dict[str, int] = {}
        for gap in gaps:
            for kind, number in gap["kinds"].items():
                kinds[kind] = kinds.get(kind, 0) + number
        listed = " and ".join(f"{number:,} {kind}" for kind, number in kinds.items())
        example = "" if role == "qid" else f", for example in query {gaps[0]['query']!r}"
        rows = f"{count(sum(kinds.values()), 'row')} without a value ({listed}{example})"
        remedy = f"mend these rows, or drop them by {_dropping(str(name), 'infinite' in kinds)}"
        error = QueryIdError if role == "qid" else InvalidInput
        raise error(f"{role}: the column {name!r} has {rows}; {remedy}")


def _dropping(name: str, is_infinite: bool) -> str:
    """Return a call that drops rows without a value; `na.drop` keeps infinite ones."""
    quoted = name.replace("`", "``")
    return (
        f"""df.where("abs(`{quoted}`) < double('inf')")"""
        if is_infinite
        else f"df.na.drop(subset=[{name!r}])"
    )


def partitioned_by_query(rows: DataFrame, partitions: int) -> DataFrame:
    """Return packed rows in partitions of whole queries; `unpacked` reads them."""
    places = _places(rows.sparkSession, partitions)
    return rows.mapInArrow(Packing(places).packed, "place int, rows binary").repartition(
        partitions, "place"
    )


def _places(session: SparkSession, partitions: int) -> tuple[int, ...]:
    """Return a number for each partition that Spark's hash sends there, so that all get a fair share.

    The hash is asked of Spark; a partition that no number was found for in time is left to chance.
    """
    tried = math.ceil(partitions * (math.log(partitions) + 10))
    row = session.sql(
        f"SELECT transform(sequence(0, {tried}), x -> pmod(hash(x), {partitions})) AS at"
    ).first()
    first = {at: number for number, at in reversed(list(enumerate(row["at"] if row else ())))}
    return tuple(first.get(at, at) for at in range(partitions))


@dataclass(frozen=True)
class Packing:
    """Packs rows by the partition of their query, in the worker processes of Spark."""

    places: tuple[int, ...]  # The number that stands for each partition
    run: int = RUN  # Rows to pack at a time

    def packed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows with a place and an Arrow stream each."""
        for rows in _runs(batches, self.run):
            places: list[int] = []
            streams: list[bytes] = []
            if rows["qid"].null_count:
                places.append(self.places[0])
                streams.append(_stream_of(rows.filter(pc.is_null(rows["qid"]))))
                rows = rows.filter(pc.is_valid(rows["qid"]))  # noqa: PLW2901
            if rows.num_rows:
                ordered, starts = by_bucket(rows, len(self.places))
                for place, (start, stop) in zip(
                    self.places, pairwise(starts.tolist()), strict=True
                ):
                    if stop > start:
                        places.append(place)
                        streams.append(_stream_of(ordered.slice(start, stop - start)))
            columns = [pa.array(places, pa.int32()), pa.array(streams, pa.binary())]
            yield pa.record_batch(columns, schema=_PACKED)


def _runs(batches: Iterable[pa.RecordBatch], run: int) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(rows.num_rows for rows in held) >= run:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


def _stream_of(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def unpacked(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the rows of packed ones, without a copy."""
    streams = (stream.as_buffer() for batch in batches for stream in batch["rows"])
    return [rows for stream in streams for rows in pa.ipc.open_stream(stream)]
