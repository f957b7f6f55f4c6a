"""Evaluate a data set part by part: plan, score parts on all cores, merge the evaluations.

Where a guard has registered content, all rows are shown to it before the first one is scored: a
part that is kept, or a call that is ended halfway, must not tell what the whole would be refused
for. That is a second reading of the rows.

Tasks are done in this process, or in several that end with it.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from rankeval._arguments import explained
from rankeval._checks import check_jobs
from rankeval._memory import keep_freed_memory
from rankeval.collection.convention import Convention, get_convention
from rankeval.contamination.streamed import Evidence, StreamedCheck
from rankeval.errors import InvalidInput, Refusal
from rankeval.evaluation.by_query import query_weights, refuse_weights
from rankeval.evaluation.front_door import DEFAULT_MEASURES, Specs, columns_read, refuse_unnamed
from rankeval.evaluation.merging import merged
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import score_part, warned_if_empty
from rankeval.join.joined import Joined, column_role, join_arrays
from rankeval.measures import Measure
from rankeval.measures import measures as parse_measures
from rankeval.measures.family import hash_of_code
from rankeval.render.progress import Bar, Progress
from rankeval.streaming import queries
from rankeval.streaming.folder import Folder, opened
from rankeval.streaming.queries import Part, QueryBlock, Unsorted, whole_queries
from rankeval.streaming.rows import Share, join_arguments, of_queries, share_of
from rankeval.streaming.source import ParquetSource, ReadColumns


@dataclass(frozen=True)
class Request:
    """What is asked of a data set."""

    columns: ReadColumns  # The columns to read
    measures: tuple[tuple[str, Measure], ...]  # The measures under the names asked for
    convention: Convention  # The rules
    weights: Mapping[Any, float] | None  # Weights by query, if no column has them
    name: str | None  # The name of the system


def _joined(rows: pa.Table, request: Request) -> Joined:
    return join_arrays(**join_arguments(rows), convention=request.convention)


def _evaluated(rows: pa.Table, request: Request) -> Evaluation:
    joined = _joined(rows, request)
    by_query = rows["query_weight"] if "query_weight" in rows.schema.names else request.weights
    weights = query_weights(by_query, joined, all_queries=False)
    return score_part(joined, request.measures, weights=weights, name=request.name)


def _evidence(rows: pa.Table, request: Request, check: StreamedCheck) -> Evidence | None:
    joined = _joined(rows, request)
    qid = rows["qid"].combine_chunks()
    qid = qid.cast(qid.type.value_type) if hasattr(qid, "dictionary") else qid
    return check.evidence(
        joined.relevance, qid, docid=join_arguments(rows)["docid"], score=joined.score
    )


_LOOK = 0.5
"""Seconds after which a process looks again whether its caller is there."""

_OF_A_PART = 16
"""Buckets that are scored together."""


def number_of_workers(n_jobs: int) -> int:
    """Return the number of processes."""
    check_jobs(n_jobs)
    if n_jobs == 1:
        return 1
    import joblib

    return int(joblib.effective_n_jobs(int(n_jobs)))


def each_done(
    tasks: Sequence[Callable[[], Any]], workers: int, *, goes_on: str
) -> Iterator[tuple[int, Any]]:
    """Do tasks, in this process or in several, and yield place and result of each as it comes.

    A result comes in a file, and only its place through the pipe, in one piece: if a process were
    killed while it writes a longer message, loky would wait for the rest for ever.
    """
    if workers == 1 or len(tasks) < 2:
        yield from ((place, task()) for place, task in enumerate(tasks))
        return
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    run = joblib.Parallel(
        workers, prefer="processes", return_as="generator_unordered", batch_size=1
    )
    caller = os.getpid()
    try:
        with TemporaryDirectory(prefix="rankeval-results-") as folder:
            results = [Path(folder, str(place)) for place in range(len(tasks))]
            numbered = enumerate(zip(tasks, results, strict=True))
            for place in run(joblib.delayed(_done)(caller, *item) for item in numbered):
                yield place, pickle.loads(results[place].read_bytes())  # noqa: S301 - a process of this call wrote it
                results[place].unlink()
    except TerminatedWorkerError as error:
        raise InvalidInput(
            f"a process of n_jobs={workers} was ended from outside, perhaps for lack of memory: give a smaller memory= "
            f"or fewer processes; {goes_on}"
        ) from error


def _done(caller: int, place: int, work: tuple[Callable[[], Any], Path]) -> int:
    end_with(caller)
    from joblib.externals.loky.backend.reduction import (
        dumps,
    )  # as loky does: a measure may be a function of the caller's script

    task, path = work
    path.write_bytes(dumps(task()))
    return place


@cache
def end_with(caller: int) -> None:
    """End this process when the one that started it is gone: workers of loky would wait for it."""
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid == caller:
        threading.Thread(target=_wait_for_end, args=(caller,), daemon=True).start()


def _wait_for_end(caller: int) -> None:
    while os.getppid() == caller:
        time.sleep(_LOOK)
    os._exit(1)


@explained
def evaluate_dataset(
    data: Any,
    *,
    qid: str,
    relevance: str,
    score: str,
    docid: str | None = None,
    columns: Mapping[str, str] | Sequence[str] | str | None = None,
    measures: Specs = DEFAULT_MEASURES,
    convention: str | Convention = "rankeval",
    query_weight: Any | None = None,
    name: str | None = None,
    memory: int | str | None = None,
    n_jobs: int = 1,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Evaluation:
    """Score a Parquet data set that may be larger than memory, query by query.

    Parameters
    ----------
    data : path, URL, list of paths, or pyarrow Dataset
        Parquet with a row for each ranked document: a file, a folder (also hive partitions, whose
        columns can be named), a list of files, a URL (``s3://``, ``gs://``, ``hdfs://``,
        ``file://``) or a ``pyarrow.dataset.Dataset``. It is read in parts that fit into ``memory``.
    qid, relevance, score : str
        The columns with the query, the relevance and the score of each row.
    docid : str, optional
        The column with the document of each row; only ``ties="docid"`` reads it.
    columns : list of str, mapping of str to str, or str, optional
        Columns that measures read, such as ``["price"]`` for ``"Revenue@5(column='price')"``, or
        ``{"price": "price_usd"}`` to give one another name.
    measures, convention, name
        As in `rankeval.evaluate`.
    query_weight : str, or mapping or Series by query id, optional
        The weight of each query in the means, or a column of them, which must be constant within a
        query.
    memory : int or str, optional
        Bytes, or a text such as ``"1GB"``: what the call may take for reading and scoring, all
        processes together; by default 512 MB for each process. The result comes on top, with about
        200 bytes a query.
    n_jobs : int, default=1
        Number of processes; -1 for all cores. The result does not depend on it.
    folder : path, optional
        A folder of this machine, outside of the data set, for the scores by query. They are written
        while the data is evaluated, as several Parquet files. If a call is ended, the same call
        goes on with the parts that are there.
    progress : callable or bool, optional
        A function of the number of rows that are done and of all rows; True shows a bar.

    Returns
    -------
    Evaluation
        Equal, bit for bit, to that of all rows at once.

    Raises
    ------
    InvalidInput
        If the data cannot be evaluated, or not in so much memory.
    UnknownName
        If a measure, convention or rule does not exist.
    GuardRefusal
        If the content is registered with a guard and this ranking was not opened.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> log = pa.table({"query": ["a", "a", "b", "b"], "label": [1, 0, 0, 1], "score": [0.9, 0.2, 0.3, 0.1]})
    >>> path = f"{tempfile.mkdtemp()}/log.parquet"
    >>> pq.write_table(log, path)
    >>> evaluate_dataset(path, qid="query", relevance="label", score="score", measures="RR").per_query["RR"].tolist()
    [1.0, 0.5]
    """
    names: dict[str, Any] = {"qid": qid, "relevance": relevance, "score": score}
    names |= {} if docid is None else {"docid": docid}
    by_query = None if isinstance(query_weight, str) else query_weight
    names |= (
        {} if query_weight is None or hasattr(by_query, "items") else {"query_weight": query_weight}
    )
    rules = get_convention(convention)
    labelled = tuple(parse_measures(measures, rules))
    read = columns_read(
        columns, labelled, rules
    )  # what cannot be computed is an error before anything is read
    names |= {column_role(column): name for column, name in read.items()}
    refuse_unnamed(names, "the data set")
    n_workers = number_of_workers(n_jobs)
    share = share_of(memory, n_workers, len(read))
    source = ParquetSource.of(data, names)
    request = Request(source.columns, labelled, rules, by_query, name)
    with (
        opened(folder, _card(source, request), data) as kept,
        Bar(progress, source.n_rows, "evaluate") as bar,
    ):
        call = _Call(source, request, StreamedCheck.current(), kept, share, n_workers, bar)
        try:
            results = call.by_interval()
        except Unsorted:
            results = call.by_bucket()
        evaluation = merged(part for part in results if part is not None)
        if evaluation.weights is not None and evaluation.n_queries:
            refuse_weights(evaluation.weights)  # all 0: only all parts together show it
        kept.end()
    return warned_if_empty(evaluation)


@dataclass
class _Call:
    """One call: the data set, what is asked, and where and with what it is done."""

    source: ParquetSource
    request: Request
    check: StreamedCheck
    kept: Folder
    share: Share
    workers: int
    bar: Bar

    def by_interval(self) -> list[Evaluation | None]:
        """Score a data set that is sorted by query."""
        parts = queries.sorted_parts(
            self.source, keep_order=self.request.convention.ties == "stable"
        )
        if (
            parts is None or self.kept.state.get("plan", {}).get("order") == "any"
        ):  # what a call before this one found
            raise Unsorted
        sizes = [part.n_rows for part in parts]
        self.kept.begin({"order": "by query", "parts": sizes})
        tasks = [
            partial(whole_queries, part, self.source.columns, self.share.most_rows)
            for part in parts
        ]
        return self._score(tasks, sizes, self.kept.read_all(len(parts)))

    def by_bucket(self) -> list[Evaluation | None]:
        """Score a data set in any order: write its rows by bucket, then score the buckets."""
        number = queries.n_buckets(self.source.n_rows)
        ranges = [
            range(start, min(start + _OF_A_PART, number)) for start in range(0, number, _OF_A_PART)
        ]
        parts = queries.row_parts(self.source)
        cut = {
            "rows": [part.n_rows for part in parts],
            "buckets": [len(buckets) for buckets in ranges],
        }
        self.kept.begin({"order": "any", **cut})
        paths = [self.kept.buckets / f"rows-{part.number:05}.arrow" for part in parts]
        kept = self.kept.read_all(len(ranges))
        self.bar.total = (
            self.bar.n_done + self.source.n_rows
        )  # rows out of order may have been found late
        if self.check.is_needed or len(kept) < len(ranges):
            self.bar.total += self.source.n_rows
            self._write_buckets(parts, paths, ranges)
        tasks = [
            partial(queries.blocks_of, paths, ranges, place, self.share)
            for place in range(len(ranges))
        ]
        even, more = divmod(self.source.n_rows, len(ranges))  # a bar needs no more
        return self._score(tasks, [even + (place < more) for place in range(len(ranges))], kept)

    def _write_buckets(self, parts: list[Part], paths: list[Path], ranges: list[range]) -> None:
        self.kept.make_buckets(self.source.n_rows * self.source.columns.row_bytes)
        left = [(part, path) for part, path in zip(parts, paths, strict=True) if not path.exists()]
        self.bar.add(sum(part.n_rows for part in parts) - sum(part.n_rows for part, _ in left))
        write = partial(
            queries.write_buckets, columns=self.source.columns, ranges=ranges, share=self.share
        )
        for place, _ in self._each([partial(write, part, path=path) for part, path in left]):
            self.bar.add(left[place][0].n_rows)

    def _score(
        self,
        blocks: Sequence[Callable[[], Iterator[QueryBlock]]],
        sizes: list[int],
        scored: dict[int, Evaluation | None],
    ) -> list[Evaluation | None]:
        if self.check.is_needed:
            self._ask_guard(blocks, sizes)
        left = [place for place in range(len(blocks)) if place not in scored]
        self.bar.add(sum(sizes[place] for place in scored))
        tasks = [
            partial(_score_part, blocks[place], self.request, self.kept, place) for place in left
        ]
        for number, result in self._each(tasks):
            scored[left[number]] = result
            self.bar.add(sizes[left[number]])
        return [scored[place] for place in sorted(scored)]

    def _ask_guard(
        self, blocks: Sequence[Callable[[], Iterator[QueryBlock]]], sizes: list[int]
    ) -> None:
        # Scores that an earlier call has kept must not tell what the guard refuses.
        self.bar.total += sum(sizes)
        shown_rows = []
        for place, evidence in self._each(
            [partial(_evidence_of, part, self.request, self.check) for part in blocks]
        ):
            shown_rows += evidence
            self.bar.add(sizes[place])
        try:
            # Only now: rows out of order end the pass, and then all are shown again.
            for evidence in shown_rows:
                self.check.add(evidence)
            self.check.refuse(action="evaluate")
        except Refusal:
            self.kept.clear()
            raise

    def _each(self, tasks: Sequence[Callable[[], Any]]) -> Iterator[tuple[int, Any]]:
        goes_on = (
            "the same call goes on from there"
            if self.kept.keeps
            else "with folder= such a call can go on"
        )
        return each_done(tasks, self.workers, goes_on=goes_on)


def _evidence_of(
    blocks: Callable[[], Iterator[QueryBlock]], request: Request, check: StreamedCheck
) -> list[Evidence | None]:
    evidence = partial(_evidence, request=request, check=check)
    return [of_queries(block.rows, block.places, request.columns, evidence) for block in blocks()]


def _score_part(
    blocks: Callable[[], Iterator[QueryBlock]], request: Request, kept: Folder, place: int
) -> Evaluation | None:
    keep_freed_memory()
    work = partial(_evaluated, request=request)
    evaluations = [
        of_queries(block.rows, block.places, request.columns, work) for block in blocks()
    ]
    result = merged(evaluations) if evaluations else None
    kept.write(place, result)
    return result


def codes_of(measure: Measure) -> list[str]:
    """Return a hash of the code of each measure of the user's own that a measure is made of."""
    family = measure.family
    codes = []
    if not family.kernel.__module__.startswith("rankeval."):
        own = (family.kernel, family.expected)
        codes = [hash_of_code(function) for function in own if callable(function)]
    for _, value in measure.parameters:
        if isinstance(value, Measure):
            codes += codes_of(value)
    return codes


def _card(source: ParquetSource, request: Request) -> dict[str, Any]:
    """Return what a call depends on: it goes on with the parts of one with the same card."""
    from rankeval import __version__

    weights = None
    if request.weights is not None:
        pairs = repr(sorted(request.weights.items(), key=repr))
        weights = sha256(pairs.encode()).hexdigest()
    labelled = request.measures
    measures = {label: [str(measure), *codes_of(measure)] for label, measure in labelled}
    return {
        "rankeval": __version__,
        "data": source.card(),
        "columns": dict(request.columns.names),
        "measures": measures,
        "convention": request.convention.card(),
        "weights": weights,
        "name": request.name,
    }
