"""A run held against qrels: every retrieved document gets its label, and what was not retrieved is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput
from rankeval.io.columns import numbers_of, places_of
from rankeval.join.aspects import JoinedAspects, fold_aspects
from rankeval.join.flat import Ints
from rankeval.join.grouping import order_of
from rankeval.join.joined import Joined
from rankeval.join.matching import Hashes, Side, hash_ids, match, mixed

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run

_SHOWN = 5


def join_collection(qrels: Qrels, run: Run, *, convention: Convention) -> Joined:
    """Join a run with its judgments.

    Parameters
    ----------
    qrels : Qrels
        The judgments.
    run : Run
        The ranking.
    convention : Convention
        The rules.

    Returns
    -------
    Joined

    Raises
    ------
    InvalidInput
        When there are no judgments, ids are of different types, a document stands twice in a ranking or in the
        judgments of a query, no query is common, or queries are missing that the convention does not let be missing.
    """
    if not len(qrels):
        raise InvalidInput("the qrels are empty: no query can be scored; give a row for each judged document")
    qrels, table = (qrels, None) if qrels.aspect is None else fold_aspects(qrels)
    _same_types(qrels, run)
    convention = convention.resolved("qrels")
    excluded: dict[str, tuple[Any, ...]] = {}
    queries, truth_query, run_query = _numbered(qrels, run, excluded)
    judged_topics = run_query >= 0
    rows = _by_query(run_query, np.flatnonzero(judged_topics))
    sizes = np.bincount(run_query[judged_topics], minlength=len(queries))
    truth_rows = _by_query(truth_query, np.arange(len(truth_query)))
    truth_sizes = np.bincount(truth_query, minlength=len(queries))
    hashes = hash_ids(qrels.docid)
    truth_row, run_row = match(
        Side(truth_rows, _offsets(truth_sizes), qrels.docid, hashes, qrels.qid, "qrels", qrels.source),
        Side(rows, _offsets(sizes), run.docid, hash_ids(run.docid), run.qid, "run", run.source),
    )
    known = np.zeros(len(run_query), dtype=bool)
    known[run_row] = True
    label = np.zeros(len(run_query), dtype=qrels.relevance.dtype)
    label[run_row] = qrels.relevance[truth_row]
    judged = known & (label >= 0) if convention.negative == "unjudged" else known

    retrieved = sizes > 0
    counted = _counted(queries, retrieved, convention, excluded)
    rule_counts = {"missing": int(len(queries) - retrieved.sum())}

    if convention.unjudged == "highest":
        label[~judged] = qrels.relevance.max(initial=0)
    rule_counts["unjudged"] = int(len(rows) - np.count_nonzero(judged))
    if convention.unjudged == "skip" and convention.depth is None:  # else they take up ranks until it is cut
        rows = rows[judged[rows]]
        sizes = np.bincount(run_query[rows], minlength=len(queries))

    rest = np.ones(len(truth_query), dtype=bool)
    rest[truth_row] = False
    if convention.negative == "unjudged":
        rest &= qrels.relevance >= 0  # the others were not retrieved, and are not judged either
    rule_counts["judgments"] = int((qrels.relevance[rest] > 0).sum())
    rest = truth_rows[rest[truth_rows]]
    rest_sizes = np.bincount(truth_query[rest], minlength=len(queries))

    numbers = np.flatnonzero(counted)
    if len(numbers) < len(queries):
        rows = rows[counted[run_query[rows]]]
        rest = rest[counted[truth_query[rest]]]
    by_rows = convention.judgments == "rows"
    rest_offsets = None if by_rows else _offsets(rest_sizes[numbers])
    aspects = None
    if table is not None:
        judgment = np.full(len(run_query), -1)
        judgment[run_row] = truth_row
        lowest = 0.0 if convention.negative == "unjudged" else -np.inf
        aspects = JoinedAspects(
            table,
            np.where(judged, judgment, -1),
            None if by_rows else rest,
            rest_offsets,
            skips_below=lowest if convention.unjudged == "skip" else None,
        )
    identity = _identity(qrels, hashes, truth_query, len(queries))[numbers]
    return Joined(
        queries=_numpy(queries)[numbers],
        offsets=_offsets(sizes[numbers]),
        order=None if len(rows) == len(run_query) and _ascend(rows) else rows,
        score=run.score,
        relevance=label,
        convention=convention,
        judged=judged,
        unretrieved=qrels.relevance[rest][:0] if by_rows else qrels.relevance[rest],
        unretrieved_offsets=rest_offsets,
        lacking=None if retrieved.all() else ~retrieved[numbers],
        docid=run.docid,
        aspects=aspects,
        identity=identity,
        excluded=excluded,
        rule_counts=rule_counts,
    )


def _numbered(qrels: Qrels, run: Run, excluded: dict[str, tuple[Any, ...]]) -> tuple[pa.Array, Ints, Ints]:
    """Return the judged queries, ascending, and the number of each row's query; -1, and excluded, where not judged."""
    queries = _ascending(pc.unique(qrels.qid))
    truth_query = _codes(qrels.qid, queries)
    run_query = _codes(run.qid, queries)
    judged_topics = run_query >= 0
    if not judged_topics.all():
        unknown = _ascending(pc.unique(run.qid.take(places_of(np.flatnonzero(~judged_topics)))))
        excluded["no judgments"] = tuple(unknown.to_pylist())
        if not judged_topics.any():
            raise InvalidInput(
                f"run and qrels have no query in common: the run has {_few(unknown.to_pylist())}, "
                f"the qrels have {_few(queries.to_pylist())}"
            )
    return queries, truth_query, run_query


def _counted(
    queries: pa.Array, retrieved: NDArray[np.bool_], convention: Convention, excluded: dict[str, tuple[Any, ...]]
) -> NDArray[np.bool_]:
    """Say which queries count, by the rule on missing ones."""
    if retrieved.all() or convention.missing in ("empty", "zero"):
        return np.ones(len(queries), dtype=bool)
    missing = queries.take(places_of(np.flatnonzero(~retrieved))).to_pylist()
    if convention.missing == "error":
        raise InvalidInput(
            f"the run lacks {len(missing)} of {len(queries)} judged queries ({_few(missing)}), which the convention "
            f"{convention.name!r} refuses; missing='empty' scores empty rankings there, missing='skip' leaves them out"
        )
    excluded["missing from the run"] = tuple(missing)
    return retrieved


def _same_types(qrels: Qrels, run: Run) -> None:
    for name in ("qid", "docid"):
        truth, ranked = getattr(qrels, name).type, getattr(run, name).type
        if pa.types.is_integer(truth) != pa.types.is_integer(ranked):
            raise InvalidInput(
                f"{name}: the qrels have {_kind(truth)} ids, the run has {_kind(ranked)} ids, and 1 is not '1'; "
                "give both as one type"
            )


def _kind(kind: pa.DataType) -> str:
    return "integer" if pa.types.is_integer(kind) else "string"


def _ascending(values: pa.Array) -> pa.Array:
    return values.take(pc.sort_indices(values))


def _ascend(values: Ints) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _codes(values: pa.Array, known: pa.Array) -> Ints:
    """Return the place of each value among the known ones, -1 where it is none of them."""
    found = pc.index_in(values, value_set=known)
    place = np.frombuffer(found.buffers()[1], np.int32, count=len(found)).astype(np.int64)
    if found.null_count:
        place[~numbers_of(found.is_valid())] = -1
    return place


def _by_query(query: Ints, rows: Ints) -> Ints:
    """Return the rows query after query, those of a query in their own order."""
    wanted = query[rows]
    return rows if _ascend(wanted) else rows[order_of(wanted)]


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _numpy(values: pa.Array) -> NDArray[Any]:
    return numbers_of(values) if pa.types.is_integer(values.type) else np.array(values.to_pylist(), dtype=object)


def _identity(qrels: Qrels, hashes: Hashes, query: Ints, n_queries: int) -> Hashes:
    """Return for each query a sum over hashes of its judged documents and labels: the same in every order of rows."""
    label = np.asarray(qrels.relevance, dtype=np.float64).view(np.uint64)
    total = np.zeros(n_queries, dtype=np.uint64)
    np.add.at(total, query, mixed(hashes ^ mixed(label)))
    return total


def _few(values: list[Any]) -> str:
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return shown if len(values) <= _SHOWN else f"{shown}, ..."
