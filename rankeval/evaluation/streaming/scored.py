"""Blocks of whole queries, joined and scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankeval._memory import keep_freed_memory
from rankeval.collection.convention import Convention
from rankeval.contamination.streamed import Evidence, StreamedCheck
from rankeval.evaluation.merging import merged
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import score_part
from rankeval.evaluation.streaming.faults import located
from rankeval.evaluation.streaming.queries import Block
from rankeval.evaluation.streaming.rows import as_columns
from rankeval.evaluation.streaming.source import Columns
from rankeval.evaluation.weights import part_weights, refuse_unusable
from rankeval.join.joined import Joined, join_arrays
from rankeval.measures import Measure


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
        If rows are at fault; the message names file and row group.
    """
    found = []
    for block in blocks:
        with located(block.places, request.columns):
            joined = join_arrays(**as_columns(block.rows), convention=request.convention)
            found.append(_evidence(joined, block, check))
    return found


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
        If rows are at fault; the message names file and row group.
    """
    keep_freed_memory()
    evaluations: list[Evaluation] = []
    grades: set[float] = set()
    for block in blocks:
        with located(block.places, request.columns):
            joined = join_arrays(**as_columns(block.rows), convention=request.convention)
            evaluations.append(_score(joined, block, request))
        if request.needs_grades:
            grades.update(np.unique(joined.relevance).tolist())
    evaluation = merged(evaluations) if evaluations else None
    return Scored(evaluation, tuple(sorted(grades)))


def _score(joined: Joined, block: Block, request: Request) -> Evaluation:
    by_row = "weights" in block.rows.schema.names
    given = block.rows["weights"] if by_row else request.weights
    weights = None if given is None else part_weights(given, joined)
    return score_part(joined, request.measures, weights=weights, name=request.name)


def _evidence(joined: Joined, block: Block, check: StreamedCheck) -> Evidence | None:
    given = as_columns(block.rows)
    qid = block.rows["qid"].combine_chunks()
    qid = qid.cast(qid.type.value_type) if hasattr(qid, "dictionary") else qid
    return check.evidence(joined.relevance, qid, docid=given["docid"], score=joined.score)


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
