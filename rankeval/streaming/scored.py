"""Blocks of whole queries, joined and scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from rankeval._memory import keep_freed_memory
from rankeval.collection.convention import Convention
from rankeval.contamination.streamed import Evidence, StreamedCheck
from rankeval.evaluation.merging import merged
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import score_part
from rankeval.evaluation.weights import part_weights
from rankeval.join.joined import Joined, join_arrays
from rankeval.measures import Measure
from rankeval.streaming.queries import Block
from rankeval.streaming.rows import as_columns, of_queries
from rankeval.streaming.source import Columns


@dataclass(frozen=True)
class Request:
    """What is asked of a data set.

    Attributes
    ----------
    columns : Columns
        The columns to read.
    measures : tuple of (str, Measure)
        The measures under the names asked for.
    convention : Convention
        The rules.
    weights : mapping, optional
        Weights by query, if no column has them.
    name : str, optional
        The name of the system.
    """

    columns: Columns
    measures: tuple[tuple[str, Measure], ...]
    convention: Convention
    weights: Mapping[Any, float] | None
    name: str | None


def evidence_of(blocks: Iterable[Block], request: Request, check: StreamedCheck) -> list[Evidence | None]:
    """Return what blocks of whole queries show to the guard, without a score.

    Parameters
    ----------
    blocks : iterable of Block
        The rows.
    request : Request
        What is asked.
    check : StreamedCheck
        The guard's check.

    Raises
    ------
    InvalidInput
        If rows are at fault; the message names the row with file and row group, or the query.
    """
    evidence = partial(_evidence, request=request, check=check)
    return [of_queries(block.rows, block.places, request.columns, evidence) for block in blocks]


def scored(blocks: Iterable[Block], request: Request) -> Evaluation | None:
    """Score blocks of whole queries; None if there are none.

    Parameters
    ----------
    blocks : iterable of Block
        The rows.
    request : Request
        What is asked.

    Raises
    ------
    InvalidInput
        If rows are at fault; the message names the row with file and row group, or the query.
    """
    keep_freed_memory()
    evaluated = partial(_evaluated, request=request)
    evaluations = [of_queries(block.rows, block.places, request.columns, evaluated) for block in blocks]
    return merged(evaluations) if evaluations else None


def _joined(rows: pa.Table, request: Request) -> Joined:
    return join_arrays(**as_columns(rows), convention=request.convention)


def _evaluated(rows: pa.Table, request: Request) -> Evaluation:
    joined = _joined(rows, request)
    given = rows["query_weight"] if "query_weight" in rows.schema.names else request.weights
    weights = None if given is None else part_weights(given, joined)
    return score_part(joined, request.measures, weights=weights, name=request.name)


def _evidence(rows: pa.Table, request: Request, check: StreamedCheck) -> Evidence | None:
    joined = _joined(rows, request)
    qid = rows["qid"].combine_chunks()
    qid = qid.cast(qid.type.value_type) if hasattr(qid, "dictionary") else qid
    return check.evidence(joined.relevance, qid, docid=as_columns(rows)["docid"], score=joined.score)
