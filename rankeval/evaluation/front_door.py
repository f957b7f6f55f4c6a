"""evaluate: refuse, join, score, wrap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import ArrayLike

from rankeval.collection.convention import Convention, rules_of_call
from rankeval.evaluation.given import Given
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import score
from rankeval.evaluation.weights import query_weights
from rankeval.measures import Measure
from rankeval.measures import measures as parse_measures

Specs = str | Measure | Iterable[str | Measure]

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR")


def evaluate(
    truth: Any,
    ranking: Any,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    measures: Specs = DEFAULT_MEASURES,
    convention: str | Convention = "rankeval",
    ties: str | None = None,
    missing: str | None = None,
    no_relevant: str | None = None,
    judgments: str | None = None,
    weights: Any | None = None,
    name: str | None = None,
) -> Evaluation:
    """Score a ranking against judgments, query by query.

    Parameters
    ----------
    truth, ranking : array of shape (n_rows,), or Qrels and Run, dicts, frames, paths
        With ``qid=`` or ``group=``: the relevance and the score of each row, rows in any order. Without: the judgments
        of a collection and a run. Series in one call need equal indexes in the same order; others are refused, because
        the caller may have meant position or label. Scores are compared as 64-bit floats; whole numbers that these
        cannot hold are refused.
    qid : array of shape (n_rows,), optional
        The query of each row, ids of any type.
    group : array of shape (n_queries,), optional
        Instead of ``qid``: the number of rows of each query, in row order.
    docid : array of shape (n_rows,), optional
        The document of each row; only ``ties="docid"`` reads it.
    measures : str, Measure or iterable of them
        The measures to compute.
    convention : str or Convention
        The rules that join truth and ranking and decide which queries count: the name of a preset, or a `Convention`.
    ties, missing, no_relevant, judgments : str, optional
        Single rules that replace those of the convention. See `Convention`.
    weights : mapping or Series by query id, or array of shape (n_rows,), optional
        Query weights; a row-wise array must be constant within a query.
    name : str, optional
        Name of the system; by default the name of the run.

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
    """
    rows = qid is not None or group is not None
    single = {"ties": ties, "missing": missing, "no_relevant": no_relevant, "judgments": judgments}
    rules = rules_of_call(convention, rows, **single)
    asked = parse_measures(measures, rules)  # a misspelt name is an error before anything is read
    given = Given.of(truth, ranking, qid=qid, group=group, docid=docid)
    joined = given.refuse_or_join(rules, action="evaluate")
    weight = None if weights is None else query_weights(weights, joined, given.columns)
    return score(joined, asked, weights=weight, name=name or given.name)
