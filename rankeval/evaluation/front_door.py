"""evaluate: refuse, join, score, wrap."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from numpy.typing import ArrayLike

from rankeval.collection.convention import Convention, rules_of_call
from rankeval.errors import InvalidInput
from rankeval.evaluation.given import Given
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import score as score_joined
from rankeval.evaluation.weights import query_weights
from rankeval.measures import Measure
from rankeval.measures import measures as parse_measures
from rankeval.render.progress import Progress

Specs = str | Measure | Iterable[str | Measure]

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR")


def evaluate(
    truth: Any,
    ranking: Any = None,
    *,
    qid: ArrayLike | str | None = None,
    relevance: str | None = None,
    score: str | None = None,
    group: ArrayLike | None = None,
    docid: ArrayLike | str | None = None,
    measures: Specs = DEFAULT_MEASURES,
    convention: str | Convention = "rankeval",
    ties: str | None = None,
    missing: str | None = None,
    no_relevant: str | None = None,
    judgments: str | None = None,
    weights: Any | None = None,
    name: str | None = None,
    memory: int | str | None = None,
    n_jobs: int = 1,
    scores: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Evaluation:
    """Score a ranking against judgments, query by query.

    Parameters
    ----------
    truth, ranking : array of shape (n_rows,), or Qrels and Run, dicts, frames, paths
        With ``qid=`` or ``group=``: the relevance and the score of each row, rows in any order. Without: the judgments
        of a collection and a run. Series in one call need equal indexes in the same order; others are refused, because
        the caller may have meant position or label. Scores are compared as 64-bit floats; whole numbers that these
        cannot hold are refused.

        With ``relevance=`` and ``score=``: ``truth`` is a Parquet data set and there is no ``ranking``. It is a file, a
        folder (also hive partitions, whose columns can be named), a list of files, a URL (``s3://``, ``gs://``,
        ``hdfs://``, ``file://``) or a ``pyarrow.dataset.Dataset``, and it is read in parts that fit into ``memory``.
    qid : array of shape (n_rows,), or str, optional
        The query of each row, ids of any type; the name of its column in a data set.
    relevance, score : str, optional
        The columns of a data set with the relevance and the score of each row.
    group : array of shape (n_queries,), optional
        Instead of ``qid``: the number of rows of each query, in row order.
    docid : array of shape (n_rows,), or str, optional
        The document of each row, or its column; only ``ties="docid"`` reads it.
    measures : str, Measure or iterable of them
        The measures to compute.
    convention : str or Convention
        The rules that join truth and ranking and decide which queries count: the name of a preset, or a `Convention`.
    ties, missing, no_relevant, judgments : str, optional
        Single rules that replace those of the convention. See `Convention`.
    weights : mapping or Series by query id, or array of shape (n_rows,), or str, optional
        Query weights; a row-wise array, or a column of a data set, must be constant within a query.
    name : str, optional
        Name of the system; by default the name of the run.
    memory : int or str, optional
        Bytes, or a text such as ``"1GB"``: what the call may take for reading and scoring a data set, all processes
        together; by default 512 MB for each process. The result comes on top, with about 200 bytes a query.
    n_jobs : int, default=1
        Number of processes that evaluate a data set; -1 for all cores. The result does not depend on it.
    scores : path, optional
        A folder of this machine, outside of the data set, for its scores by query. They are written while it is
        evaluated, as several Parquet files. If a call is ended, the same call goes on with the parts that are there.
    progress : callable or bool, optional
        For a data set: a function of the number of rows that are done and of all rows; True shows a bar.

    Returns
    -------
    Evaluation
        ``per_query`` has shape (n_queries, n_measures).

    Raises
    ------
    InvalidInput
        If the data cannot be evaluated. The message names the argument, the place and the remedy.
    UnknownName
        If a measure, convention or rule does not exist.
    GuardRefusal
        If the content is registered with a guard and this ranking was not opened.

    Examples
    --------
    >>> ev = evaluate([1, 0, 0, 1], [0.9, 0.2, 0.3, 0.1], qid=["a", "a", "b", "b"], measures=["RR", "P@1"])
    >>> ev.per_query["RR"].tolist()
    [1.0, 0.5]

    A data set on disk:

    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> log = pa.table({"query": ["a", "a", "b", "b"], "label": [1, 0, 0, 1], "score": [0.9, 0.2, 0.3, 0.1]})
    >>> path = f"{tempfile.mkdtemp()}/log.parquet"
    >>> pq.write_table(log, path)
    >>> evaluate(path, qid="query", relevance="label", score="score", measures="RR").per_query["RR"].tolist()
    [1.0, 0.5]
    """
    single = {"ties": ties, "missing": missing, "no_relevant": no_relevant, "judgments": judgments}
    if relevance is not None or score is not None:
        _refuse_mixed(ranking, group, weights, qid=qid, relevance=relevance, score=score, docid=docid)
        rules = rules_of_call(convention, True, **single)
        columns = {"qid": qid, "relevance": relevance, "score": score, "docid": docid}
        if isinstance(weights, str):
            columns["weights"] = weights
        from rankeval.evaluation.streaming import evaluate_dataset

        return evaluate_dataset(
            truth,
            {role: column for role, column in columns.items() if isinstance(column, str)},
            measures=parse_measures(measures, rules),
            convention=rules,
            weights=None if isinstance(weights, str) else weights,
            name=name,
            memory=memory,
            n_jobs=n_jobs,
            scores=scores,
            progress=progress,
        )
    _refuse_columns(truth, ranking, qid=qid, docid=docid, weights=weights)
    _refuse_settings(memory=memory, n_jobs=None if n_jobs == 1 else n_jobs, scores=scores, progress=progress)
    rows = qid is not None or group is not None
    rules = rules_of_call(convention, rows, **single)
    asked = parse_measures(measures, rules)  # a misspelt name is an error before anything is read
    given = Given.of(truth, ranking, qid=qid, group=group, docid=docid)
    joined = given.refuse_or_join(rules, action="evaluate")
    weight = None if weights is None else query_weights(weights, joined, given.columns)
    return score_joined(joined, asked, weights=weight, name=name or given.name)


def _refuse_mixed(ranking: Any, group: Any, weights: Any, **columns: Any) -> None:
    """Refuse arrays beside names of columns."""
    if ranking is not None or group is not None:
        found = "a ranking" if ranking is not None else "group="
        raise InvalidInput(
            f"relevance= and score= name columns of a Parquet data set, and {found} was given too: give the data set "
            "alone, with qid=, relevance= and score=, or arrays as truth and ranking, with qid= or group="
        )
    for role, column in columns.items():
        if not isinstance(column, str) and not (role == "docid" and column is None):
            found = "nothing" if column is None else f"a {type(column).__name__}"
            raise InvalidInput(f"expected the name of a column of the data set, found {found}", argument=role)
    if not (weights is None or isinstance(weights, str) or hasattr(weights, "items")):
        raise InvalidInput(
            f"expected the name of a column of the data set, or weights by query, found a {type(weights).__name__}",
            argument="weights",
        )


def _refuse_columns(truth: Any, ranking: Any, **columns: Any) -> None:
    """Refuse names of columns without those of relevance and score."""
    for role, column in columns.items():
        if isinstance(column, str):
            raise InvalidInput(
                f"{role}={column!r} is the name of a column, as of a Parquet data set: name those of relevance= and "
                f"score= too; beside arrays, {role} is an array"
            )
    if ranking is None:
        raise InvalidInput(
            f"ranking is missing beside truth ({type(truth).__name__}): give the scores of its rows, or a run; of a "
            "Parquet data set, name the columns by qid=, relevance= and score="
        )


def _refuse_settings(**settings: Any) -> None:
    """Refuse settings of streaming for data that is in memory."""
    for setting, value in settings.items():
        if value is not None:
            raise InvalidInput(
                f"{setting}={value!r} is for a Parquet data set (with relevance= and score=), which is read in parts; "
                "arrays and collections are in memory"
            )
