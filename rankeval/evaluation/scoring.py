"""evaluate: refuse, join, score, wrap."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._registry import unknown
from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput, QueryIdError, RankevalWarning
from rankeval.evaluation.drawing import note_on_draws
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.storage import QUERY_COUNTS
from rankeval.evaluation.weights import query_weights
from rankeval.io import columns
from rankeval.io.frames import is_records
from rankeval.io.ids import as_typed
from rankeval.join.grouping import sizes_to_ids
from rankeval.join.joined import Joined, join_arrays
from rankeval.join.judged import Groups, Judged
from rankeval.measures import Measure
from rankeval.measures import measures as parse_measures
from rankeval.measures.family import FAMILIES

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run

Floats = NDArray[np.float64]
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
        Relevance and score of each row, with ``qid=`` or ``group=``, rows in any order; or a collection's judgments
        and a run, without. Series have equal indexes in the same order, beside each other and beside those below: what
        is in another order is refused, since neither position nor label is sure to be meant. Scores are compared as
        64-bit floats, so that whole numbers which these cannot hold are refused too.
    qid : array of shape (n_rows,), optional
        The query of each row, ids of any type.
    group : array of shape (n_queries,), optional
        Instead of ``qid``: the number of rows of each query, in row order.
    docid : array of shape (n_rows,), optional
        The document of each row; only ``ties="docid"`` reads it.
    measures : str, Measure or iterable of them
        What to compute.
    convention : str or Convention
        The rules by which truth and ranking are joined and queries count: a preset's name or your own.
    ties, missing, no_relevant, judgments : str, optional
        Single rules; None leaves them as the convention says. See `Convention`.
    weights : mapping or Series by query id, or array of shape (n_rows,), optional
        Query weights; a row-wise array must be constant within a query.
    name : str, optional
        Name of the system; a run's own name if it has one.

    Returns
    -------
    Evaluation

    Raises
    ------
    InvalidInput
        When the data cannot be evaluated: the message says what, where and what to do.
    UnknownName
        For a measure, convention or rule that does not exist.
    GuardRefusal
        When the content is registered with a guard and this ranking was not opened.

    Examples
    --------
    >>> ev = evaluate([1, 0, 0, 1], [0.9, 0.2, 0.3, 0.1], qid=["a", "a", "b", "b"], measures=["RR", "P@1"])
    >>> ev.per_query["RR"].tolist()
    [1.0, 0.5]
    """
    from rankeval.contamination.refusal import ContaminationCheck

    rules = get_convention(convention).with_rules(
        ties=ties, missing=missing, no_relevant=no_relevant, judgments=judgments
    )
    if isinstance(measures, Iterator):  # they are read twice
        measures = list(measures)
    if qid is not None or group is not None:
        if judgments == "qrels":
            raise InvalidInput("judgments='qrels' needs a collection (qrels and run); arrays hold the ranked rows only")
        ids = ids_of_rows(qid, group, ranking)
        parse_measures(measures, rules)  # a misspelt name is said before anything is read or hashed
        joined = join_arrays(truth, ranking, ids, docid=docid, convention=rules)  # checks what the guard reads
        ContaminationCheck.current().refuse(None, truth, ids, docid=docid, score=ranking, action="evaluate")
        rows = {"y_true": truth, "y_score": ranking, "qid": ids, "docid": docid}
        return _score_rows(joined, rows, measures, weights, name)
    from rankeval.collection.qrels import as_qrels
    from rankeval.collection.run import as_run

    if not _is_collection(truth):
        raise QueryIdError(
            "qid= is missing: arrays need the query of each row (qid=) or the group sizes (group=); "
            "a collection is given as Qrels and Run, dicts, frames or paths"
        )
    parse_measures(measures, rules)
    qrels, run = as_qrels(truth), as_run(ranking)
    ContaminationCheck.current().refuse_collection(qrels, run, action="evaluate")
    return score_collection(qrels, run, measures=measures, convention=rules, weights=weights, name=name)


def _is_collection(truth: Any) -> bool:
    if isinstance(truth, (str, os.PathLike, Mapping)) or hasattr(truth, "relevance") or is_records(truth):
        return True
    if hasattr(truth, "collect_schema"):  # of polars: asking a lazy frame for its columns would warn
        return True
    return getattr(truth, "ndim", 2) == 2 and (hasattr(truth, "columns") or hasattr(truth, "__arrow_c_stream__"))


def ids_of_rows(qid: ArrayLike | None, group: ArrayLike | None, ranking: Any) -> Any:
    """Return the query of each row, from ids or from sizes of consecutive queries.

    Parameters
    ----------
    qid, group, ranking
        As of `evaluate`; one of the first two at least.

    Raises
    ------
    QueryIdError
        When both are given and disagree, or the sizes do not add up to the rows.
    """
    if group is None:
        return qid
    n_rows = len(columns.scores(ranking, "y_score"))
    sizes = sizes_to_ids(group, n_rows)
    if qid is None:
        return sizes
    given = as_typed(qid)
    if len(given) != n_rows or not _same_partition(given, sizes):
        raise QueryIdError("qid= and group= cut the rows into different queries; give one of them")
    return qid


def _same_partition(ids: NDArray[Any], sizes: NDArray[np.int64]) -> bool:
    return bool(((ids[1:] != ids[:-1]) == (sizes[1:] != sizes[:-1])).all())


def score_arrays(
    y: ArrayLike,
    score: ArrayLike,
    qid: ArrayLike,
    *,
    measures: Specs = DEFAULT_MEASURES,
    convention: str | Convention = "rankeval",
    docid: ArrayLike | None = None,
    weights: Any | None = None,
    name: str | None = None,
) -> Evaluation:
    """Score arrays without asking the guard: for callers that have asked.

    Parameters
    ----------
    y, score, qid, measures, convention, docid, weights, name
        As of `evaluate`.

    Returns
    -------
    Evaluation
    """
    joined = join_arrays(y, score, qid, docid=docid, convention=get_convention(convention))
    return _score_rows(joined, {"y_true": y, "y_score": score, "qid": qid, "docid": docid}, measures, weights, name)


def _score_rows(joined: Joined, rows: Mapping[str, Any], measures: Specs, weights: Any, name: str | None) -> Evaluation:
    """Score rows that are joined; `rows` are the columns as they were given, beside which weights may stand."""
    return score_joined(joined, measures, weights=query_weights(weights, joined, rows), name=name)


def score_collection(
    qrels: Qrels,
    run: Run,
    *,
    measures: Specs = DEFAULT_MEASURES,
    convention: str | Convention = "rankeval",
    weights: Any | None = None,
    name: str | None = None,
) -> Evaluation:
    """Score a run without asking the guard: for callers that have asked.

    Parameters
    ----------
    qrels : Qrels
        The judgments.
    run : Run
        The ranking.
    measures, convention, weights, name
        As of `evaluate`.

    Returns
    -------
    Evaluation
    """
    from rankeval.join.collections import join_collection

    joined = join_collection(qrels, run, convention=get_convention(convention))
    return score_joined(joined, measures, weights=query_weights(weights, joined, None), name=name or run.name)


def score_joined(joined: Joined, specs: Specs, *, weights: Floats | None = None, name: str | None = None) -> Evaluation:
    """Score every chunk and wrap the result: for callers that have joined, and asked the guard.

    Parameters
    ----------
    joined : Joined
        Truth and ranking, by a convention.
    specs : str, Measure or iterable of them
        What to compute.
    weights : ndarray of shape (n_queries,), optional
        Query weights.
    name : str, optional
        Name of the system.

    Returns
    -------
    Evaluation
    """
    asked = parse_measures(specs, joined.convention)
    for family in joined.convention.bind:
        if family not in FAMILIES:
            raise unknown("family that the convention binds", family, FAMILIES)
    bound = [one.bound(joined.convention.bind) for _, one in asked]
    for one in bound:
        one.refuse_bounds(joined.convention.ties, joined.convention.unjudged)
    if any(map(_values_zero, bound)):
        joined = replace(joined, separate_unjudged=True)
    scores = np.empty((joined.n_queries, len(bound)))
    # Not zeros_like, which writes each of the zeros.
    errors, drawn = np.zeros(scores.shape), np.zeros(scores.shape, dtype=bool)
    query_counts = {fact: np.zeros(joined.n_queries, dtype=np.int64) for fact in QUERY_COUNTS}
    identity = np.zeros(joined.n_queries, dtype=np.uint64)
    ranked = joined.digest_of_queries()
    turned = [column for column, one in enumerate(bound) if one.family.ascending and joined.convention.ties == "docid"]
    for queries, judged, ties in joined.chunks():
        for column, one in enumerate(bound):
            if column in turned:
                continue
            judged.drawn.clear()
            scores[queries, column] = one.values(judged)
            for query, error in judged.drawn.items():
                errors[queries.start + query, column], drawn[queries.start + query, column] = error, True
        _count_documents(query_counts, queries, judged, ties)
        identity[queries] = _label_sums(judged)
        ranked.update(judged.offsets.tobytes())
        ranked.update(np.asarray(judged.levels, dtype=np.float64).tobytes())
        ranked.update(judged.code)
        for part in judged.groups:
            ranked.update(part.tobytes())
    if turned:
        for queries, judged, _ in replace(joined, ascending=True, rule_counts={}).chunks():
            for column in turned:
                scores[queries, column] = bound[column].values(judged)
    if joined.lacking is not None and joined.convention.missing == "zero":
        # Nothing is added to a mean; a geometric mean has its floor for an empty list, and counts of judgments stay.
        means = np.array([one.family.aggregate == "mean" for one in bound])
        scores[np.ix_(joined.lacking, means)] = 0.0
    judgments = joined.digest_of_queries()
    judgments.update(identity if joined.identity is None else joined.identity)

    evaluation = Evaluation(
        queries=joined.queries,
        measure_names=tuple(label for label, _ in asked),
        measures=tuple(bound),
        scores=scores,
        convention=joined.convention,
        query_counts=query_counts,
        rule_counts=dict(joined.rule_counts),
        excluded=joined.excluded,
        undefined={},
        judgments_digest=judgments.hexdigest(),
        ranking_digest=ranked.hexdigest(),
        weights=weights,
        name=name,
        errors=errors if drawn.any() else None,
    )
    settled = _settle_undefined(evaluation)
    if settled.errors is not None:
        settled = replace(settled, info=note_on_draws(settled, drawn[np.isin(evaluation.queries, settled.queries)]))
    if not settled.n_queries:
        reasons = "; ".join(f"{len(ids)} by {reason!r}" for reason, ids in settled.excluded.items())
        warnings.warn(
            f"no query is left ({reasons}), so every mean is nan: the convention's rules missing= and no_relevant= say "
            "which queries are left out",
            RankevalWarning,
            stacklevel=4,  # the caller of evaluate
        )
    return settled


def _values_zero(one: Measure) -> bool:
    """Whether a document judged 0 is worth something to a measure, where an unjudged one is not."""
    given = {**one.family.defaults, **dict(one.parameters)}
    gain = given.get("gain")
    return (
        (given.get("rel") is not None and given["rel"] <= 0)
        or (isinstance(gain, tuple) and any(level == 0 and value != 0 for level, value in gain))
        or any(isinstance(value, Measure) and _values_zero(value) for value in given.values())
    )


def _count_documents(query_counts: dict[str, NDArray[np.int64]], queries: slice, judged: Judged, ties: Groups) -> None:
    query_counts["relevant"][queries] = judged.counts @ (judged.levels > 0).astype(np.int64)
    query_counts["retrieved"][queries] = judged.n_retrieved
    tied = np.bincount(ties.query, weights=ties.end - ties.start, minlength=judged.n_queries)
    query_counts["tied"][queries] = tied.astype(np.int64)
    if judged.judged is None:
        query_counts["judged"][queries] = judged.n_retrieved
    else:
        sums = np.concatenate(([0], np.cumsum(judged.judged)))
        query_counts["judged"][queries] = sums[judged.offsets[1:]] - sums[judged.offsets[:-1]]


def _label_sums(judged: Judged) -> NDArray[np.uint64]:
    """Return a number for each query's labels that does not depend on the order of rows or on the chunk."""
    label = np.asarray(judged.levels, dtype=np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (label ^ np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(29)
        total: NDArray[np.uint64] = judged.counts.view(np.uint64) @ (mixed * np.uint64(0xC4CEB9FE1A85EC53))
    return total


def _settle_undefined(evaluation: Evaluation) -> Evaluation:
    """Give 0/0 the value that the convention says, count it, and leave out queries where it says so."""
    rule = evaluation.convention.no_relevant
    barren = evaluation.query_counts["relevant"] == 0
    if evaluation.convention.judgments == "rows":  # no row says nothing about what there was to find
        barren &= evaluation.query_counts["retrieved"] > 0
    nothing = np.isnan(evaluation.scores)
    undefined = dict(zip(evaluation.measure_names, nothing.sum(axis=0).tolist(), strict=True))
    if nothing.any():
        evaluation.scores[nothing] = 0.0
        if rule == "one":
            evaluation.scores[nothing & barren[:, None]] = 1.0
    rule_counts = {**evaluation.rule_counts, "no_relevant": int(barren.sum())}
    settled = replace(evaluation, undefined=undefined, rule_counts=rule_counts)
    if rule != "skip" or not barren.any():
        return settled
    keep = ~barren
    return replace(
        settled,
        queries=settled.queries[keep],
        scores=settled.scores[keep],
        errors=None if settled.errors is None else settled.errors[keep],
        query_counts={fact: values[keep] for fact, values in settled.query_counts.items()},
        weights=None if settled.weights is None else settled.weights[keep],
        excluded={**settled.excluded, "no relevant document": tuple(settled.queries[barren].tolist())},
    )
