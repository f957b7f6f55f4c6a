"""Rows of Parquet files as record batches, under the names of what they are.

Texts of queries are read as dictionaries, which takes half the time. The trap: a dictionary may
hold a value twice; Arrow drops the second and keeps the places, so that rows change their query. A
place beyond the end shows that.

Memory bounds the rows of one query, by the share of each process:

memory   =   the program itself, once a process   +   rows that are being scored   +   the result

Errors in rows are told by file, row group, row and column, as the caller knows them, or by the
query. Rows are checked where they are joined, many row groups together. If that fails, the row
groups are read again, one at a time, to find the one at fault; if no row is at fault alone, the
queries are tried by halves. So nothing is spent on places while all is well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rankeval._checks import require, said, shown, whole_number
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io import columns as io_columns
from rankeval.io.columns import comparable, is_text_type, numbers_of
from rankeval.join.joined import columns_of_roles, number_column
from rankeval.streaming.source import File, ReadColumns, RowGroup

BATCH = 15 << 14
"""Rows of a batch: twice as many are no quicker, and take twice the memory (bench_streaming)."""

_BUFFER = 1 << 20
"""Bytes read at a time of each column, so that a row group of any size takes little memory."""

_PROGRAM = 256 << 20
"""Bytes of a process with the library, and of a batch while it is scored (bench_streaming)."""

_ROW = 128
"""Bytes of a row while it is scored, with all copies (bench_streaming)."""

_COLUMN = 24
"""Bytes of a number of a column that measures read, with all copies."""

_READ = 16
"""Bytes of a row as it is read, at least."""

_UNITS = {"": 1, "B": 1, **{f"{unit}B": 1000**power for power, unit in enumerate("KMGT", 1)}}
_UNITS |= {f"{unit}IB": 1024**power for power, unit in enumerate("KMGT", 1)}


@dataclass(frozen=True, eq=False)
class Place:
    """A row group of a file."""

    file: File
    group: RowGroup

    def __str__(self) -> str:
        return f"{self.file.path}, row group {self.group.number}"


class RowBatch(NamedTuple):
    """Some rows of a row group, and where they stand."""

    rows: pa.RecordBatch
    place: Place


def batches(
    files: Sequence[File], columns: ReadColumns, *, coded: bool = True, most: int | None = None
) -> Iterator[RowBatch]:
    """Yield the rows of files, under the names ``qid``, ``relevance`` and so on."""
    kinds = _kinds(columns, coded=coded)
    for file in files:
        place = Place(file, file.row_groups[0])
        try:
            with _opened(file, columns, coded=coded) as parquet:
                for group in file.row_groups:
                    place = Place(file, group)
                    yield from _of_group(parquet, place, columns, most or BATCH, kinds)
        except (pa.ArrowException, OSError) as error:
            raise FileFormatError(f"cannot be read ({said(error)})", where=f"{place}") from error


def _opened(file: File, columns: ReadColumns, *, coded: bool) -> pq.ParquetFile:
    remote = file.filesystem.type_name != "local"
    coded = coded and all(group.reads_coded for group in file.row_groups)
    return pq.ParquetFile(
        file.filesystem.open_input_file(file.path),
        read_dictionary=[columns.names["qid"]] if coded else None,
        pre_buffer=remote,  # joins many small requests into a few
        buffer_size=0 if remote else _BUFFER,
    )


def _of_group(
    parquet: pq.ParquetFile,
    place: Place,
    columns: ReadColumns,
    most: int,
    kinds: Mapping[str, pa.DataType],
) -> Iterator[RowBatch]:
    keys = place.file.keys
    # If all columns stand in the names of folders, another one is read to count the rows.
    wanted = [name for name in dict.fromkeys(columns.names.values()) if name not in keys]
    wanted = wanted or parquet.schema_arrow.names[:1]
    for batch in parquet.iter_batches(most, [place.group.number], wanted, use_threads=False):
        arrays = []
        for role, name in columns.names.items():
            if name in keys:
                column = pa.repeat(pa.scalar(keys[name], columns.types[role]), batch.num_rows)
            else:
                column = batch.column(name)
            arrays.append(_as_type(column, kinds[role], f"{place}: {role}={name!r}"))
        yield RowBatch(pa.RecordBatch.from_arrays(arrays, list(columns.names)), place)


def _kinds(columns: ReadColumns, *, coded: bool) -> dict[str, pa.DataType]:
    kinds = dict(columns.types)
    if coded and is_text_type(kinds["qid"]):
        kinds["qid"] = pa.dictionary(pa.int32(), kinds["qid"])
    return kinds


def _as_type(column: pa.Array, kind: pa.DataType, what: str) -> pa.Array:
    """Return a column in the type of all batches; a file may have a dictionary or another width."""
    held = column.type
    is_coded = pa.types.is_dictionary(held)
    if is_coded and _lacks_values(column):
        raise FileFormatError(
            "its dictionary has a value twice", where=what, remedy="write the file again"
        )
    if held == kind:
        return column
    try:
        if not pa.types.is_dictionary(kind):
            return (column.dictionary_decode() if is_coded else column).cast(kind)
        coded = column if is_coded else column.dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            coded.indices.cast(kind.index_type), coded.dictionary.cast(kind.value_type)
        )
    except pa.ArrowInvalid as error:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        raise InvalidInput(
            f"{what}: {said(error)}; the data set has this column as {kind}"
        ) from None


def _lacks_values(coded: pa.DictionaryArray) -> bool:
    is_full = len(coded) and not coded.null_count
    return bool(is_full and int(numbers_of(coded.indices).max()) >= len(coded.dictionary))


def join_arguments(rows: Any) -> dict[str, Any]:
    """Return the columns of rows as arguments of `join_arrays`; ``docid`` may be None."""
    names = {"y": "relevance", "score": "score", "qid": "qid", "docid": "docid"}
    roles = rows.schema.names
    arguments = {name: rows[role] if role in roles else None for name, role in names.items()}
    return arguments | {
        "read": {name: rows[role] for name, role in columns_of_roles(roles).items()}
    }


@dataclass(frozen=True)
class Share:
    """What each process may have."""

    n_bytes: int  # Bytes for rows

    @property
    def most_rows(self) -> int:
        """Rows that may be scored together."""
        return self.n_bytes // _ROW

    def holds(self, n_bytes: float, n_rows: int) -> bool:
        """Say whether rows of so many bytes may be held while so many of them are scored."""
        return n_bytes + n_rows * (_ROW - _READ) <= self.n_bytes


def share_of(memory: int | str | None, n_jobs: int, n_columns: int = 0) -> Share:
    """Return what each process may have of the memory of a call."""
    programs = (n_jobs + (n_jobs > 1)) * _PROGRAM  # the caller's own process waits for the others
    least = programs + n_jobs * 2 * BATCH * _ROW
    total = max(n_jobs * 512_000_000, least) if memory is None else bytes_of(memory)
    needed = f"{-(-least // 1_000_000)}MB for n_jobs={n_jobs}" + (
        ", or fewer processes" if n_jobs > 1 else ""
    )
    require(total >= least, "memory", memory, needed)
    return Share((total - programs) // n_jobs * _ROW // (_ROW + n_columns * _COLUMN))


def bytes_of(memory: int | str) -> int:
    """Return an amount of memory in bytes.

    Examples
    --------
    >>> bytes_of("1.5GB"), bytes_of("2 MiB")
    (1500000000, 2097152)
    """
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", memory)
        amount = float(match[1]) * _UNITS.get(match[2].upper(), 0) if match else 0.0
        if 0 < amount < 2**63:
            return int(amount)
    elif (n_bytes := whole_number(memory)) is not None and n_bytes > 0:
        return n_bytes
    raise InvalidInput(
        argument="memory",
        found=shown(memory),
        expected="bytes, or a text such as '1GB' or '512MiB'",
    )


_Made = TypeVar("_Made")


@contextmanager
def located(place: Place, columns: ReadColumns) -> Iterator[None]:
    """Raise errors in rows again with the place of the rows."""
    try:
        yield
    except InvalidInput as error:
        _refuse_bad_rows(place, columns)
        raise _by_name(error, columns).having(where=str(place)) from error


def of_queries(
    rows: pa.Table, places: Sequence[Place], columns: ReadColumns, work: Callable[[pa.Table], _Made]
) -> _Made:
    """Apply a function to the rows of whole queries; an error names the row, or else the query."""
    try:
        return work(rows)
    except InvalidInput as error:
        for place in places:
            _refuse_bad_rows(place, columns)
        fault = _query_at_fault(rows, work)
        if fault is None:
            raise _by_name(error, columns) from error
        query, alone = fault
        where = f"query {shown(query)}{_where(query, places)}"
        raise _by_name(alone, columns).having(where=where) from error


def _query_at_fault(
    rows: pa.Table, work: Callable[[pa.Table], object]
) -> tuple[object, InvalidInput] | None:
    # By halves: a look at each query alone would take minutes where they are many.
    numbers, _ = comparable(rows["qid"], "qid")
    left = np.unique(numbers)
    while len(left):
        half = left[: (len(left) + 1) // 2]
        try:
            work(rows.filter(pa.array((numbers >= half[0]) & (numbers <= half[-1]))))
            left = left[len(half) :]
        except InvalidInput as error:
            if len(half) == 1:
                return rows["qid"][int(np.argmax(numbers == half))].as_py(), error
            left = half
    return None


def _where(query: Any, places: Sequence[Place]) -> str:
    """Return the row groups that may have rows of a query, as the end of a phrase."""
    known = [
        place
        for place in places
        if place.group.ends is None or place.group.ends[0] <= query <= place.group.ends[1]
    ]
    return (
        f" in {', '.join(map(str, known[:3]))}{', ...' if len(known) > 3 else ''}" if known else ""
    )


def refuse_bad_values(rows: pa.RecordBatch | pa.Table) -> None:
    """Refuse rows without an id, without a finite number, or with a weight below 0."""
    arguments = join_arguments(rows)
    io_columns.refuse_unbounded(io_columns.labels(arguments["y"], "relevance"), "relevance")
    io_columns.refuse_unbounded(io_columns.scores(arguments["score"], "score"), "score")
    for name, column in arguments["read"].items():
        number_column(column, name)
    for role in ("qid", "docid"):
        ids = arguments[role]
        if ids is not None and (
            ids.null_count or pa.types.is_floating(ids.type)
        ):  # to group by texts is dear
            comparable(ids, role)
    if "query_weight" in rows.schema.names:
        weights = io_columns.labels(rows["query_weight"], "query_weight")
        io_columns.refuse_unbounded(weights, "query_weight")
        if len(weights) and weights.min() < 0:
            row = int(np.argmax(weights < 0))
            raise InvalidInput(
                f"row {row} is {weights[row]}; expected numbers, none below 0",
                argument="query_weight",
            )


def _refuse_bad_rows(place: Place, columns: ReadColumns) -> None:
    first = 0
    for batch in batches([replace(place.file, row_groups=(place.group,))], columns):
        try:
            refuse_bad_values(batch.rows)
        except InvalidInput as error:
            where = f"{place}, counting from row {first}" if first else str(place)
            raise _by_name(error, columns).having(where=where) from error
        first += batch.rows.num_rows


def _by_name(error: InvalidInput, columns: ReadColumns) -> InvalidInput:
    # The join knows a column by the name of its argument, the caller by its own.
    role = error.argument or ""
    return error.having(
        argument=f"{role}={columns.names[role]!r}" if role in columns.names else error.argument
    )
