"""Write tables as MLflow shows them, beside the artifact tree and across runs: the layout of `mlflow.log_table`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval_mlflow.names import short_names

if TYPE_CHECKING:
    from rankeval.evaluation import Evaluation

MOST_QUERIES = 1000
"""Rows of a table of queries; the evaluation among the artifacts has all."""

_DIGITS = 6


def query_table(evaluation: Evaluation) -> bytes:
    """Return the queries that a ranking can change, with all scores, the worst first, at most `MOST_QUERIES`.

    Parameters
    ----------
    evaluation : Evaluation
        An evaluation with at least one query.
    """
    worst = evaluation.worst_first(evaluation.measure_names[0])[:MOST_QUERIES]
    ids = [str(query) for query in np.asarray(evaluation.queries, dtype=object)[worst]]
    columns: dict[str, Sequence[Any]] = {"query": list(short_names(dict.fromkeys(ids)).values())}
    for name, values in zip(evaluation.by_name, evaluation.scores.T, strict=True):
        columns[name] = values[worst].tolist()
    for name, counts in evaluation.query_counts.items():
        columns[name] = counts[worst].tolist()
    return log_table(columns)


def query_table_note(evaluation: Evaluation, path: str) -> str:
    """Return the sentences that say what a table of queries holds.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    path : str
        The table among the artifacts.
    """
    label = evaluation.measure_names[0]
    n_queries, left_out = len(evaluation.worst_first(label)), evaluation.left_out_of_worst(label)
    some = "The queries, the worst first" if n_queries <= MOST_QUERIES else f"The {MOST_QUERIES:,} worst queries"
    return f"{some}: {path} among the artifacts; evaluation.parquet beside it has all. {left_out}".strip()


def log_table(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return a table in the layout of `mlflow.log_table`: names of columns, and rows; nan and infinity as null.

    Parameters
    ----------
    columns : mapping of str to sequence
        Plain values by name.
    """
    rows = [[_plain(value) for value in row] for row in zip(*columns.values(), strict=True)]
    return json.dumps({"columns": list(columns), "data": rows}, allow_nan=False).encode()


def _plain(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return round(value, _DIGITS) if math.isfinite(value) else None
