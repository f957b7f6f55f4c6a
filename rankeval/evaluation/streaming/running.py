"""Evaluate a data set part by part: plan, score the parts on all cores, put the evaluations together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from rankeval._checks import shown
from rankeval.collection.convention import Convention
from rankeval.contamination.streamed import StreamedCheck
from rankeval.errors import InvalidInput, Refusal
from rankeval.evaluation.merging import merged
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import bound_measures, warned_if_empty
from rankeval.evaluation.streaming import buckets, folder, plan
from rankeval.evaluation.streaming.folder import Folder
from rankeval.evaluation.streaming.memory import Share, share_of
from rankeval.evaluation.streaming.plan import Part
from rankeval.evaluation.streaming.queries import Block, Unsorted, whole_queries
from rankeval.evaluation.streaming.scored import Request, Scored, refuse_all, scored
from rankeval.evaluation.streaming.source import Source
from rankeval.measures import Measure
from rankeval.render.progress import Bar, Progress

_OF_A_PART = 16
"""Buckets that are scored together."""


def evaluate_dataset(
    data: Any,
    names: Mapping[str, str],
    *,
    measures: Iterable[tuple[str, Measure]],
    convention: Convention,
    weights: Mapping[Any, float] | None = None,
    name: str | None = None,
    memory: int | str | None = None,
    n_jobs: int = 1,
    scores: Any | None = None,
    progress: Progress | bool | None = None,
) -> Evaluation:
    """Score a Parquet data set, query by query, in bounded memory.

    Parameters
    ----------
    data : path, URL, list of paths, or pyarrow Dataset
        The data set.
    names : mapping of str to str
        The names of its columns by what they are: ``qid``, ``relevance``, ``score``, and if needed ``docid`` and
        ``weights``.
    measures : iterable of (str, Measure)
        The measures under the names asked for.
    convention : Convention
        The rules.
    weights : mapping, optional
        Weights by query, if no column has them.
    name : str, optional
        The name of the system.
    memory, n_jobs, scores, progress
        As in `rankeval.evaluate`.

    Returns
    -------
    Evaluation
        Equal, bit for bit, to that of all rows at once.

    Raises
    ------
    InvalidInput
        If the data cannot be evaluated, or not in so much memory.
    GuardRefusal
        If the content is registered with a guard and this ranking was not opened.
    """
    workers = _workers(n_jobs)
    share = share_of(memory, workers)
    asked = tuple(measures)
    bound_measures((one for _, one in asked), convention)  # what cannot be computed is an error before anything is read
    source = Source.of(data, names)
    request = Request(source.columns, asked, convention, weights, name, StreamedCheck.current())
    with folder.opened(scores, _card(source, request)) as kept, Bar(progress, source.n_rows, "evaluate") as bar:
        call = _Call(source, request, kept, share, workers, bar)
        try:
            results = call.by_interval()
        except Unsorted:
            results = call.by_bucket()
        evaluation = merged(one.evaluation for one in results if one.evaluation is not None)
        refuse_all(evaluation, {grade for one in results for grade in one.grades})
        try:
            for one in results:
                for evidence in one.evidence:
                    request.check.add(evidence)
            request.check.refuse(action="evaluate")
        except Refusal:
            kept.clear()
            raise
        kept.end()
    return warned_if_empty(evaluation)


@dataclass
class _Call:
    """One call: the data set, what is asked, and where and with what it is done."""

    source: Source
    request: Request
    kept: Folder
    share: Share
    workers: int
    bar: Bar

    def by_interval(self) -> list[Scored]:
        """Score a data set that is sorted by query."""
        parts = plan.sorted_parts(self.source, keep_order=self.request.convention.ties == "stable")
        if parts is None or self.kept.state.get("plan", {}).get("order") == "any":  # what a call before this one found
            raise Unsorted
        self.kept.begin({"order": "by query", "parts": [part.n_rows for part in parts]})
        tasks = [partial(whole_queries, part, self.source.columns, self.share.most_rows) for part in parts]
        return self._score(tasks, [part.n_rows for part in parts])

    def by_bucket(self) -> list[Scored]:
        """Score a data set in any order: write its rows by bucket, then score the buckets."""
        number, most = buckets.n_buckets(self.source.n_rows), self.share.most_rows
        ranges = [range(start, min(start + _OF_A_PART, number)) for start in range(0, number, _OF_A_PART)]
        parts = plan.row_parts(self.source)
        cut = {"rows": [part.n_rows for part in parts], "buckets": [len(one) for one in ranges]}
        self.kept.begin({"order": "any", **cut})
        paths = [self.kept.buckets / f"rows-{part.number:05}.arrow" for part in parts]
        if self.request.check.is_needed or any(self.kept.read(place) is None for place in range(len(ranges))):
            self.bar.total += self.source.n_rows
            self._write_buckets(parts, paths, ranges)
        sizes = [self.source.n_rows // len(ranges)] * len(ranges)
        return self._score(
            [partial(buckets.blocks_of, paths, ranges, place, most) for place in range(len(ranges))], sizes
        )

    def _write_buckets(self, parts: list[Part], paths: list[Path], ranges: list[range]) -> None:
        self.kept.make_buckets(self.source.n_rows * self.source.columns.row_bytes)
        run = min(buckets.RUN, self.share.most_rows)
        left = [(part, path) for part, path in zip(parts, paths, strict=True) if not path.exists()]
        self.bar.add(sum(part.n_rows for part in parts) - sum(part.n_rows for part, _ in left))
        write = partial(buckets.write_buckets, columns=self.source.columns, ranges=ranges, run=run)
        for place, _ in self._each([partial(write, part, path=path) for part, path in left]):
            self.bar.add(left[place][0].n_rows)

    def _score(self, blocks: Sequence[Callable[[], Iterator[Block]]], sizes: list[int]) -> list[Scored]:
        """Score the parts that are not there yet; the guard needs the rows of the others too."""
        found = {place: there for place in range(len(blocks)) if (there := self.kept.read(place)) is not None}
        left = [place for place in range(len(blocks)) if place not in found or self.request.check.is_needed]
        self.bar.add(sum(sizes[place] for place in found if place not in left))
        tasks = [
            partial(_score_part, blocks[place], self.request, self.kept, place, for_guard=place in found)
            for place in left
        ]
        for number, result in self._each(tasks):
            place = left[number]
            found[place] = replace(found[place], evidence=result.evidence) if place in found else result
            self.bar.add(sizes[place])
        return [found[place] for place in sorted(found)]

    def _each(self, tasks: Sequence[Callable[[], Any]]) -> Iterator[tuple[int, Any]]:
        """Do tasks, in this process or in several, and yield the place and the result of each as it comes."""
        if self.workers == 1 or len(tasks) < 2:
            yield from ((place, task()) for place, task in enumerate(tasks))
            return
        import joblib

        run = joblib.Parallel(self.workers, prefer="processes", return_as="generator_unordered", batch_size=1)
        yield from run(joblib.delayed(_placed)(place, task) for place, task in enumerate(tasks))


def _placed(place: int, task: Callable[[], Any]) -> tuple[int, Any]:
    return place, task()


def _score_part(
    blocks: Callable[[], Iterator[Block]], request: Request, kept: Folder, place: int, *, for_guard: bool
) -> Scored:
    """Score a part, and keep it if parts are kept."""
    result = scored(blocks(), request, for_guard=for_guard)
    if not for_guard:
        kept.write(place, result)
    return result


def _workers(n_jobs: int) -> int:
    """Return the number of processes."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise InvalidInput(f"n_jobs is {shown(n_jobs)}; expected a number of processes, or -1 for all cores")
    if n_jobs == 1:
        return 1
    import joblib

    return int(joblib.effective_n_jobs(n_jobs))


def _card(source: Source, request: Request) -> dict[str, Any]:
    """Return what makes the scores what they are, as JSON: a call goes on with the parts of one with the same card."""
    from rankeval import __version__

    weights = request.weights
    return {
        "rankeval": __version__,
        "data": source.card(),
        "columns": dict(request.columns.names),
        "measures": {label: str(one) for label, one in request.measures},
        "convention": request.convention.card(),
        "weights": None if weights is None else sha256(repr(sorted(weights.items(), key=repr)).encode()).hexdigest(),
        "name": request.name,
    }
