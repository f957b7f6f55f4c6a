"""Blocks of whole queries, joined and scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rankeval._memory import keep_freed_memory
from rankeval.collection.convention import Convention
from rankeval.contamination.streamed import Evidence, StreamedCheck
from rankeval.evaluation.merging import merged
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import score_part
from rankeval.evaluation.weights import part_weights, refuse_unusable
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

    @property
    def needs_grades(self) -> bool:
        """Whether a refusal depends on the grades of all rows: the best and worst case of measures with gains."""
        return self.convention.ties in ("best", "worst") and any(one.gain_map for _, one in self.measures)


@dataclass(frozen=True)
class Scored:
    """What a part has given.

    Attributes
    ----------
    evaluation : Evaluation, optional
        The evaluation of its queries; None if it has none.
    grades : tuple of float
        The distinct grades of its rows, if they are needed.
    """

    evaluation: Evaluation | None
    grades: tuple[float, ...] = ()


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


def scored(blocks: Iterable[Block], request: Request) -> Scored:
    """Score blocks of whole queries.

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
    evaluations: list[Evaluation] = []
    grades: set[float] = set()
    evaluated = partial(_evaluated, request=request)
    for block in blocks:
        joined, evaluation = of_queries(block.rows, block.places, request.columns, evaluated)
        evaluations.append(evaluation)
        if request.needs_grades:
            grades.update(np.unique(joined.relevance).tolist())
    return Scored(merged(evaluations) if evaluations else None, tuple(sorted(grades)))


def _joined(rows: pa.Table, request: Request) -> Joined:
    return join_arrays(**as_columns(rows), convention=request.convention)


def _evaluated(rows: pa.Table, request: Request) -> tuple[Joined, Evaluation]:
    joined = _joined(rows, request)
    given = rows["query_weight"] if "query_weight" in rows.schema.names else request.weights
    weights = None if given is None else part_weights(given, joined)
    return joined, score_part(joined, request.measures, weights=weights, name=request.name)


def _evidence(rows: pa.Table, request: Request, check: StreamedCheck) -> Evidence | None:
    joined = _joined(rows, request)
    qid = rows["qid"].combine_chunks()
    qid = qid.cast(qid.type.value_type) if hasattr(qid, "dictionary") else qid
    return check.evidence(joined.relevance, qid, docid=as_columns(rows)["docid"], score=joined.score)


def refuse_all(evaluation: Evaluation, grades: Iterable[float]) -> None:
    """Refuse what only all rows together show: weights that are all 0, and gains that fall as grades rise.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation of all queries.
    grades : iterable of float
        The grades of all rows, if they are needed.

    Raises
    ------
    InvalidInput
        As for arrays.
    """
    if evaluation.weights is not None and evaluation.n_queries:
        refuse_unusable(evaluation.weights)
    known = np.unique(np.array(list(grades), dtype=np.float64))
    for one in evaluation.measures:
        one.refuse_falling_gains(evaluation.convention.ties, known)
