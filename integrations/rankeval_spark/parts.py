"""The work of an executor: a partition of whole queries becomes one part of an evaluation.

    partition                      part: one row
    qid relevance score            note                     evidence    part
     7      1      .5       ->     {"grades": ..., ...}     for guard   an Evaluation as Parquet
     3      0      .2
     ...

A part is one value of one row, so a task that fails and runs again replaces its part and adds
nothing. An error of the data is a note and not an exception: Spark would run the task three times
more, and bury the message in its own trace.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rankeval import __version__, errors
from rankeval.collection.convention import Convention
from rankeval.errors import RankevalError
from rankeval.evaluation import query_weights, to_bytes
from rankeval.evaluation.scoring import score_part
from rankeval.join.joined import join_arrays
from rankeval.measures import Measure
from rankeval.streaming.rows import join_arguments
from rankeval_spark.rows import Gap, gaps_of, unpacked

PART = "note string, evidence binary, part binary"
"""The columns of a part, as Spark declares them."""

_SCHEMA = pa.schema([("note", pa.string()), ("evidence", pa.binary()), ("part", pa.binary())])
_BATCH = 1 << 16


class Note(TypedDict, total=False):
    """What the driver must know of a part, in JSON."""

    gaps: dict[str, Gap]
    error: tuple[str, dict[str, str | None]]
    grades: list[float]
    weighs: bool
    version: str


@dataclass(frozen=True)
class PartScoring:
    """Scores partitions of whole queries, in the worker processes of Spark."""

    convention: Convention  # The rules
    measures: tuple[tuple[str, Measure], ...]  # The measures, under the names asked for
    name: str | None = None  # The name of the system
    needs_grades: bool = False  # Whether the driver must see the distinct grades of all rows
    watch: Any | None = None  # The registered content to look for; None if nothing is registered

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the part of one partition; nothing if it has no rows."""
        filled = unpacked(batches)
        if not filled:
            return
        note, evidence, part = self._noted(pa.Table.from_batches(filled))
        note["version"] = __version__
        row = {"note": json.dumps(note, default=str), "evidence": evidence, "part": part}
        yield pa.RecordBatch.from_pylist([row], schema=_SCHEMA)

    def _noted(self, table: pa.Table) -> tuple[Note, bytes | None, bytes | None]:
        if gaps := gaps_of(table):
            return {"gaps": gaps}, None, None
        try:
            return self._scored(table)
        except RankevalError as error:
            return {"error": (type(error).__name__, error.fields)}, None, None

    def _scored(self, table: pa.Table) -> tuple[Note, bytes | None, bytes]:
        arguments = join_arguments(table)
        joined = join_arrays(**arguments, convention=self.convention)
        column = table["query_weight"] if "query_weight" in table.column_names else None
        weights = query_weights(column, joined, all_queries=False)
        evaluation = score_part(joined, self.measures, weights=weights, name=self.name)
        grades = (
            np.unique(joined.relevance).astype(np.float64).tolist() if self.needs_grades else []
        )
        note: Note = {"weighs": weights is None or bool((weights > 0).any()), "grades": grades}
        evidence = None
        if self.watch is not None:
            rows = {role: arguments[role] for role in ("docid", "score")}
            evidence = self.watch.value.evidence(arguments["y"], arguments["qid"], **rows)
        return note, None if evidence is None else pickle.dumps(evidence), to_bytes(evaluation)


def as_raised(note: Note) -> RankevalError:
    """Return the error of a note as the driver raises it."""
    kind, fields = note["error"]
    # Numbers of rows in a message count from the first row of a partition.
    error: RankevalError = getattr(errors, kind)(**fields).having(where="in one partition of Spark")
    return error


def score_columns(names: Iterable[str], weighted: bool) -> dict[str, str]:
    """Return the columns of an evaluation's table for `scores_of`, and their names there."""
    from rankeval.evaluation.facts import QUERY_COUNTS

    columns = {"qid": "qid"} | {f"measure:{name}": name for name in names}
    columns |= {f"count:{name}": name for name in QUERY_COUNTS}
    return columns | ({"weight": "weight"} if weighted else {})


@dataclass(frozen=True)
class PartScores:
    """Turns parts into rows of scores, one a query, in the worker processes of Spark."""

    columns: dict[str, str]  # As `score_columns` gives them
    schema: pa.Schema  # Of the rows

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the scores of the queries of each part."""
        for batch in batches:
            for part in batch.column("part").to_pylist():
                table = pq.read_table(pa.BufferReader(part), columns=list(self.columns))
                yield from (
                    table.rename_columns(list(self.columns.values()))
                    .cast(self.schema)
                    .to_batches(_BATCH)
                )
