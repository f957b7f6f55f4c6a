"""A run held against qrels: every retrieved document gets its label, and what was not retrieved is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval.collection.aspects import JoinedAspects, fold_aspects
from rankeval.collection.convention import Convention
from rankeval.collection.grouping import order_of
from rankeval.collection.join import Joined
from rankeval.collection.judged import Ints
from rankeval.collection.matching import Hashes, Side, hash_ids, match, mixed
from rankeval.errors import InvalidInput

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
        When ids are of different types, a document stands twice in a ranking or in the judgments of a query, no
        query is common, or queries are missing that the convention does not let be missing.
    """
    qrels, table = (qrels, None) if qrels.aspect is None else fold_aspects(qrels)
    _same_types(qrels, run)
    convention = replace(convention, judgments="qrels") if convention.judgments == "given" else convention
    queries = _ascending(pc.unique(qrels.qid))
    truth_query = _codes(qrels.qid, queries)
    run_query = _codes(run.qid, queries)
    excluded: dict[str, tuple[Any, ...]] = {}

    judged_topics = run_query >= 0
    if not judged_topics.all():
        unknown = _ascending(pc.unique(run.qid.filter(pa.array(~judged_topics))))
        excluded["no judgments"] = tuple(unknown.to_pylist())
        if not judged_topics.any():
            raise InvalidInput(
                f"run and qrels have no query in common: the run has {_few(unknown.to_pylist())}, "
                f"the qrels have {_few(queries.to_pylist())}"
            )

    rows = _by_query(run_query, np.flatnonzero(judged_topics))
    truth_rows = _by_query(truth_query, np.arange(len(truth_query)))
    hashes = hash_ids(qrels.docid)
    truth_row, run_row = match(
        Side(truth_rows, truth_query[truth_rows], qrels.docid, hashes, qrels.qid, "qrels"),
        Side(rows, run_query[rows], run.docid, hash_ids(run.docid), run.qid, "run"),
        len(queries),
    )
    judgment = np.full(len(run_query), -1)
    judgment[run_row] = truth_row
    known = judgment >= 0
    label = np.where(known, qrels.relevance[judgment], qrels.relevance.dtype.type(0))
    judged = known & (label >= 0) if convention.negative == "unjudged" else known

    retrieved = np.bincount(run_query[rows], minlength=len(queries)) > 0
    counted = _counted(queries, retrieved, convention, excluded)
    touched = {"missing": int(len(queries) - retrieved.sum())}

    if convention.unjudged == "highest":
        label[~judged] = qrels.relevance.max(initial=0)
    touched["unjudged"] = int(len(rows) - judged[rows].sum())
    if convention.unjudged == "skip" and convention.depth is None:  # else they take up ranks until it is cut
        rows = rows[judged[rows]]

    hit = np.zeros(len(truth_query), dtype=bool)
    hit[truth_row] = True
    if convention.negative == "unjudged":
        hit |= qrels.relevance < 0  # not retrieved, and not judged either
    rest = np.flatnonzero(~hit)
    rest = rest[np.argsort(truth_query[rest], kind="stable")]
    touched["judgments"] = int((qrels.relevance[rest] > 0).sum())

    numbers = np.flatnonzero(counted)
    number_of = np.full(len(queries), -1)
    number_of[numbers] = np.arange(len(numbers))
    rows = rows[counted[run_query[rows]]]
    rest = rest[counted[truth_query[rest]]]
    by_rows = convention.judgments == "rows"
    identity = _identity(qrels, hashes, truth_query, len(queries))[numbers]
    return Joined(
        queries=_numpy(queries)[numbers],
        offsets=_offsets(number_of[run_query[rows]], len(numbers)),
        order=None if len(rows) == len(run_query) and _ascend(rows) else rows,
        score=run.score,
        relevance=label,
        convention=convention,
        judged=judged,
        unretrieved=qrels.relevance[rest][:0] if by_rows else qrels.relevance[rest],
        unretrieved_offsets=None if by_rows else _offsets(number_of[truth_query[rest]], len(numbers)),
        docid=run.docid,
        aspects=None
        if table is None
        else JoinedAspects(
            table,
            np.where(judged, judgment, -1),
            None if by_rows else rest,
            None if by_rows else _offsets(number_of[truth_query[rest]], len(numbers)),
        ),
        identity=identity,
        excluded=excluded,
        touched=touched,
    )


def _counted(
    queries: pa.Array, retrieved: NDArray[np.bool_], convention: Convention, excluded: dict[str, tuple[Any, ...]]
) -> NDArray[np.bool_]:
    """Say which queries count, by the rule on missing ones."""
    if retrieved.all() or convention.missing == "zero":
        return np.ones(len(queries), dtype=bool)
    missing = queries.filter(pa.array(~retrieved)).to_pylist()
    if convention.missing == "error":
        raise InvalidInput(
            f"the run lacks {len(missing)} of {len(queries)} judged queries ({_few(missing)}), which the convention "
            f"{convention.name!r} refuses; missing='zero' counts them as 0, missing='skip' leaves them out"
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
    found: Ints = pc.index_in(values, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _by_query(query: Ints, rows: Ints) -> Ints:
    """Return the rows query after query, those of a query in their own order."""
    wanted = query[rows]
    return rows if _ascend(wanted) else rows[order_of(wanted)]


def _offsets(query: Ints, n_queries: int) -> Ints:
    return np.concatenate(([0], np.cumsum(np.bincount(query, minlength=n_queries)))).astype(np.int64)


def _numpy(values: pa.Array) -> NDArray[Any]:
    plain: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return plain


def _identity(qrels: Qrels, hashes: Hashes, query: Ints, n_queries: int) -> Hashes:
    """Return for each query a sum over hashes of its judged documents and labels: the same in every order of rows."""
    label = np.asarray(qrels.relevance, dtype=np.float64).view(np.uint64)
    total = np.zeros(n_queries, dtype=np.uint64)
    np.add.at(total, query, mixed(hashes ^ mixed(label)))
    return total


def _few(values: list[Any]) -> str:
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return shown if len(values) <= _SHOWN else f"{shown}, ..."
