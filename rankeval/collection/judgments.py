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
from rankeval.collection.join import Joined
from rankeval.collection.judged import Ints
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

    truth_doc, run_doc = _document_codes(qrels.docid, run.docid)
    n_documents = int(max(truth_doc.max(initial=-1), run_doc.max(initial=-1))) + 1
    truth_key = truth_query * n_documents + truth_doc
    run_key = np.where(judged_topics, run_query, -1) * n_documents + run_doc
    by_key = np.argsort(truth_key)
    sorted_key = truth_key[by_key]
    _refuse_duplicates("qrels", sorted_key, by_key, qrels.qid, qrels.docid)
    rows = np.flatnonzero(judged_topics)
    rows = rows[np.argsort(run_query[rows], kind="stable")] if not _ascend(run_query[rows]) else rows
    _refuse_duplicates_in_run(run, run_key, rows)

    place = np.minimum(np.searchsorted(sorted_key, run_key), len(sorted_key) - 1)
    judged = sorted_key[place] == run_key
    label = np.where(judged, qrels.relevance[by_key[place]], qrels.relevance.dtype.type(0))

    retrieved = np.bincount(run_query[rows], minlength=len(queries)) > 0
    counted = _counted(queries, retrieved, convention, excluded)
    touched = {"missing": int(len(queries) - retrieved.sum())}

    if convention.unjudged == "skip":
        touched["unjudged"] = int(len(rows) - judged[rows].sum())
        rows = rows[judged[rows]]
    else:
        touched["unjudged"] = int(len(rows) - judged[rows].sum())

    hit = np.zeros(len(truth_key), dtype=bool)
    hit[by_key[place[rows[judged[rows]]]]] = True
    rest = np.flatnonzero(~hit)
    rest = rest[np.argsort(truth_query[rest], kind="stable")]
    touched["judgments"] = int((qrels.relevance[rest] > 0).sum())

    numbers = np.flatnonzero(counted)
    number_of = np.full(len(queries), -1)
    number_of[numbers] = np.arange(len(numbers))
    rows = rows[counted[run_query[rows]]]
    rest = rest[counted[truth_query[rest]]]
    by_rows = convention.judgments == "rows"
    identity = _identity(qrels, truth_query, len(queries))[numbers]
    return Joined(
        queries=_numpy(queries)[numbers],
        offsets=_offsets(number_of[run_query[rows]], len(numbers)),
        order=rows,
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
            np.where(judged, by_key[place], -1),
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


def _document_codes(truth: pa.Array, ranked: pa.Array) -> tuple[Ints, Ints]:
    """Give the documents of both sides numbers of one series."""
    if truth.type != ranked.type:
        wide = pa.int64() if pa.types.is_integer(truth.type) else pa.large_string()
        truth, ranked = truth.cast(wide), ranked.cast(wide)
    coded = pa.chunked_array([truth, ranked]).combine_chunks().dictionary_encode()
    code = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return code[: len(truth)], code[len(truth) :]


def _offsets(query: Ints, n_queries: int) -> Ints:
    return np.concatenate(([0], np.cumsum(np.bincount(query, minlength=n_queries)))).astype(np.int64)


def _numpy(values: pa.Array) -> NDArray[Any]:
    plain: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return plain


def _refuse_duplicates(what: str, sorted_key: Ints, order: Ints, qid: pa.Array, docid: pa.Array) -> None:
    twice = np.flatnonzero(sorted_key[1:] == sorted_key[:-1])
    if len(twice):
        row = int(order[twice[0] + 1])
        raise InvalidInput(
            f"{what}: document {docid[row].as_py()!r} stands twice in query {qid[row].as_py()!r} "
            f"({len(twice)} such rows in all); keep one row for each document of a query"
        )


def _refuse_duplicates_in_run(run: Run, key: Ints, rows: Ints) -> None:
    keys = np.sort(key[rows])
    if (keys[1:] == keys[:-1]).any():
        order = rows[np.argsort(key[rows], kind="stable")]
        _refuse_duplicates("run", key[order], order, run.qid, run.docid)


def _identity(qrels: Qrels, query: Ints, n_queries: int) -> NDArray[np.uint64]:
    """Return for each query a sum over hashes of its judged documents and labels: the same in every order of rows."""
    import pandas as pd

    names = qrels.docid.to_pandas().to_numpy()
    hashed = pd.util.hash_array(names if names.dtype.kind == "O" else names.astype(np.int64), categorize=False)
    label = np.asarray(qrels.relevance, dtype=np.float64).view(np.uint64)
    mixed = (hashed ^ (label * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xFF51AFD7ED558CCD)
    total = np.zeros(n_queries, dtype=np.uint64)
    np.add.at(total, query, mixed)
    return total


def _few(values: list[Any]) -> str:
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return shown if len(values) <= _SHOWN else f"{shown}, ..."
