"""Join a run with its qrels: label the retrieved documents, and keep judged ones not retrieved.

    qrels  q1 d1 2     run  q1 d7 3.1      rows of q1:         d7 unjudged, d1 = 2
           q1 d4 1          q1 d1 2.5      unretrieved of q1:  d4 = 1
           q2 d1 0          q3 d1 9.0      q2 is missing from the run, q3 has no judgments

Queries without judgments are always left out (`excluded`). The convention's `missing` decides about
queries that the run lacks. The order of rows does not matter here: ranking comes later, chunk by
chunk (`Joined`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval._checks import count, few
from rankeval._memory import keep_freed_memory
from rankeval.collection.convention import Convention
from rankeval.collection.rows import without_own
from rankeval.errors import InvalidInput
from rankeval.io.columns import numbers_of, row_numbers
from rankeval.join.aspects import JoinedAspects, fold_aspects
from rankeval.join.flat import Ints, ascend, offsets_of, order_of, rows_of
from rankeval.join.id_forms import unlike_ids
from rankeval.join.joined import Joined
from rankeval.join.matching import Hashes, Side, hash_ids, match_documents, mixed

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run

Numbers = NDArray[np.int32]
_MANY_ROWS = 2**17
"""Columns of so many rows are arrays that the C library gives back when they are freed."""

# Given a plain -1, Arrow makes a scalar and imports pandas.
_UNKNOWN = row_numbers(np.array([-1])).cast(pa.int32())[0]


def join_collection(qrels: Qrels, run: Run, *, convention: Convention) -> Joined:
    """Join a run with its judgments."""
    if convention.own_document == "keep":
        return _joined(qrels, run, convention)
    qrels, of_judgments = without_own(qrels)
    run, of_ranking = without_own(run)
    return _joined(qrels, run, convention).without(of_ranking, of_judgments)


def _joined(qrels: Qrels, run: Run, convention: Convention) -> Joined:
    if not len(qrels):
        empty = "the qrels are empty: no query can be scored"
        raise InvalidInput(empty, remedy="give a row for each judged document")
    qrels, table = (qrels, None) if qrels.aspect is None else fold_aspects(qrels)
    _same_types(qrels, run)
    convention = convention.resolved("qrels")
    if len(run) >= _MANY_ROWS:
        keep_freed_memory()
    excluded: dict[str, tuple[Any, ...]] = {}
    queries, of_truth, of_run = _numbered(qrels, run, excluded)
    truth = _side(qrels, of_truth, len(queries), "qrels", relevance=qrels.relevance)
    ranked = _side(run, of_run, len(queries), "run", score=run.score)
    truth_row, run_row = match_documents(truth, ranked)
    signs: dict[str, Any] = {}
    if (unlike := unlike_ids(truth, ranked, len(run_row), run.score)) is not None:
        signs["ids"] = unlike
    if run.against_rank:
        signs["rank"] = ()
    if notes := (*qrels.notes, *run.notes):
        signs["reading"] = notes
    relevance, truth_query = _narrow(qrels.relevance), of_truth.of_rows()
    label, is_judged = _labelled(relevance, truth_row, run_row, len(run), convention)
    is_unretrieved = relevance >= (0 if convention.negative == "unjudged" else -np.inf)
    is_unretrieved[truth_row] = False

    def by_query(rows: Ints | NDArray[np.bool_]) -> Ints:
        return np.bincount(truth_query[rows], minlength=len(queries))

    lengths = np.diff(ranked.offsets)
    rule_counts = {
        "missing": (lengths == 0).astype(np.int64),
        "unjudged": lengths - by_query(truth_row[is_judged[run_row]]),
        "judgments": by_query(is_unretrieved & (relevance > 0)),
    }

    rows, unretrieved = ranked.rows, truth.rows[is_unretrieved[truth.rows]]
    if convention.unjudged == "skip" and convention.depth is None:
        # With a depth they take up ranks until the cut.
        rows = rows[is_judged[rows]]
    counted = _counted(queries, lengths > 0, convention, excluded, run)
    numbers = np.flatnonzero(counted)
    if len(numbers) < len(queries):
        rows, unretrieved = (
            rows[counted[of_run.of_rows()[rows]]],
            unretrieved[counted[truth_query[unretrieved]]],
        )
    if convention.judgments == "rows":
        unretrieved, unretrieved_offsets = unretrieved[:0], None
    else:
        unretrieved_offsets = offsets_of(by_query(unretrieved)[numbers])
    aspects = None
    if table is not None:
        judgment = np.full(len(run), -1)
        judgment[run_row] = np.where(is_judged[run_row], truth_row, -1)
        aspects = JoinedAspects(table, judgment, unretrieved, _skips_below(convention))
    sizes = np.bincount(of_run.of_rows()[rows], minlength=len(queries))[numbers]
    offsets = ranked.offsets if rows is ranked.rows else offsets_of(sizes)
    order = None if len(rows) == len(run) and ascend(rows) else rows
    lacking = None if lengths.all() else lengths[numbers] == 0
    identity = _identity(qrels, truth, truth_query)[numbers]
    left_out = {rule: int(counts[~counted].sum()) for rule, counts in rule_counts.items()}
    kept_counts = {rule: counts[numbers] for rule, counts in rule_counts.items()}
    return Joined(
        _names(queries)[numbers],
        offsets,
        order,
        run.score,
        label,
        convention,
        is_judged,
        unretrieved=relevance[unretrieved],
        unretrieved_offsets=unretrieved_offsets,
        lacking=lacking,
        docid=run.docid,
        aspects=aspects,
        identity=identity,
        excluded=excluded,
        rule_counts=kept_counts,
        left_out_counts=left_out,
        signs=signs,
    )


def _skips_below(convention: Convention) -> float | None:
    if convention.unjudged != "skip":
        return None
    return 0.0 if convention.negative == "unjudged" else -np.inf


def _names(queries: pa.Array) -> NDArray[Any]:
    if pa.types.is_integer(queries.type):
        return numbers_of(queries)
    return np.array(queries.to_pylist(), dtype=object)


def _labelled(
    relevance: NDArray[Any], truth_row: Ints, run_row: Ints, n_rows: int, convention: Convention
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the label of each row of the run, 0 without a judgment, and which rows are judged."""
    label, is_judged = np.zeros(n_rows, dtype=relevance.dtype), np.zeros(n_rows, dtype=bool)
    label[run_row] = relevance[truth_row]
    is_judged[run_row] = True
    if convention.negative == "unjudged":  # a label below zero is no judgment
        is_judged &= label >= 0
    if convention.unjudged == "highest":
        label[~is_judged] = relevance.max(initial=0)
    return label, is_judged


class _Stretches(NamedTuple):
    """Stretches of rows of one query. Rows in any order: `start` and `size` are None, size is 1."""

    start: Ints | None
    size: Ints | None
    query: Numbers  # The number of the query, -1 if it is not judged

    def of_rows(self) -> Numbers:
        """Return the number of each row's query."""
        return self.query if self.size is None else np.repeat(self.query, self.size)


def _numbered(
    qrels: Qrels, run: Run, excluded: dict[str, tuple[Any, ...]]
) -> tuple[pa.Array, _Stretches, _Stretches]:
    ids, starts, sizes = zip(*map(_stretches, (qrels.qid, run.qid)), strict=True)
    queries = pc.unique(ids[0]).sort()
    places = [pc.index_in(column, value_set=queries) for column in ids]
    numbers = [numbers_of(pc.fill_null(place, _UNKNOWN)) for place in places]
    truth, ranked = map(_Stretches, starts, sizes, numbers)
    others = ranked.query < 0
    if others.any():
        unjudged = pc.unique(ids[1].take(row_numbers(np.flatnonzero(others)))).sort()
        unknown, known = unjudged.to_pylist(), queries.slice(0, 6).to_pylist()
        excluded["no judgments"] = tuple(unknown)
        if others.all():
            raise InvalidInput(
                f"run and qrels have no query in common: the run has {few(unknown)}, the qrels "
                f"have {few(known)}"
            )
    return queries, truth, ranked


def _counted(
    queries: pa.Array,
    retrieved: NDArray[np.bool_],
    convention: Convention,
    excluded: dict[str, tuple[Any, ...]],
    run: Run,
) -> NDArray[np.bool_]:
    failed = [query for query in queries.to_pylist() if query in run.failed] if run.failed else []
    _refuse_failed(failed, run, convention)
    if retrieved.all() or convention.missing in ("empty", "zero"):
        return np.ones(len(queries), dtype=bool)
    missing = queries.take(row_numbers(np.flatnonzero(~retrieved))).to_pylist()
    if convention.missing == "error":
        raise InvalidInput(
            f"the run lacks {len(missing)} of {len(queries)} judged queries ({few(missing)}), "
            f"which the convention {convention.name!r} refuses",
            remedy="missing='empty' scores empty rankings there, missing='skip' leaves them out",
            argument="missing",
        )
    reasons = {"missing from the run": set(missing) - set(failed), "the search failed": failed}
    for reason, left_out in reasons.items():
        if left_out:
            excluded[reason] = tuple(query for query in missing if query in left_out)
    return retrieved


def _refuse_failed(failed: list[Any], run: Run, convention: Convention) -> None:
    """Refuse queries whose search failed: scored as 0 or left out unasked, the mean would be wrong."""
    # Searches fail more often at long and hard queries, so a mean without these is too high.
    if failed and convention.missing != "skip":
        problem = f"the search failed for {count(len(failed), 'judged query')} ({few(failed)})"
        raise InvalidInput(
            f"{problem}: {failed[0]!r} by {run.failed[failed[0]]}",
            argument="ranking",
            remedy="ask these again, rk.retrieve(search, queries, cache=folder, name=name), "
            "or leave them out by missing='skip'",
        )


def _same_types(qrels: Qrels, run: Run) -> None:
    for name in ("qid", "docid"):
        truth, ranked = getattr(qrels, name).type, getattr(run, name).type
        if pa.types.is_integer(truth) != pa.types.is_integer(ranked):
            raise InvalidInput(
                f"ids are {truth} in the qrels and {ranked} in the run",
                remedy="1 is not '1': give both as one type",
                argument=name,
            )


def _stretches(ids: pa.Array) -> tuple[pa.Array, Ints | None, Ints | None]:
    """Return the id of each stretch of equal ids, its start and its size, as in `_Stretches`.

    Files have the rows of a query together: each stretch is looked up once (bench_files).
    """
    changes = numbers_of(pc.not_equal(ids.slice(1), ids.slice(0, max(len(ids) - 1, 0))))
    start = np.append(0, np.flatnonzero(changes) + 1)[: len(ids)]
    if len(start) * 8 > len(ids):
        return ids, None, None
    return ids.take(row_numbers(start)), start, np.diff(start, append=len(ids))


def _side(
    table: Qrels | Run, of: _Stretches, n_queries: int, name: str, **values: NDArray[Any]
) -> Side:
    """Group the rows of judged queries, those of a query in their own order."""
    kept = np.flatnonzero(of.query >= 0)
    query = of.query if len(kept) == len(of.query) else of.query[kept]
    sizes = np.bincount(query, None if of.size is None else of.size[kept], minlength=n_queries)
    if not ascend(query):
        kept = kept[order_of(query)]
    rows = kept if of.start is None or of.size is None else rows_of(of.start[kept], of.size[kept])
    offsets, hashes = offsets_of(sizes.astype(np.int64, copy=False)), hash_ids(table.docid)
    return Side(rows, offsets, table.docid, hashes, table.qid, name, table.source, values)


def _narrow(labels: NDArray[Any]) -> NDArray[Any]:
    # Nearly all files have labels that fit a byte; an eighth of the memory is moved then.
    if labels.dtype.kind == "f" or not -128 <= labels.min() <= labels.max() <= 127:
        return labels
    return labels.astype(np.int8)


def _identity(qrels: Qrels, truth: Side, query: Numbers) -> Hashes:
    """Return a sum over hashes of each query's judged documents and labels, whatever the order."""
    label = np.asarray(qrels.relevance, dtype=np.float64).view(np.uint64)
    # A sum does not depend on the order of its terms; modulo 2**64 it cannot overflow.
    total = np.zeros(len(truth.offsets) - 1, dtype=np.uint64)
    np.add.at(total, query, mixed(truth.hashes ^ mixed(label)))
    return total
