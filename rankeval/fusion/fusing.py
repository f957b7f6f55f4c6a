"""Fuse runs by query and document; the arithmetic is in `fusion_methods`.

The rows of all runs are numbered by query and document, so that each pair has one column::

    run A   q1 d1 2.0, q1 d2 1.0          q1 d1   q1 d2   q1 d3
    run B   q1 d3 9.0, q1 d1 8.0     A    2.0     1.0     nan
                                     B    8.0     nan     9.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import check_number, count, few, refuse, require, said
from rankeval._registry import chosen
from rankeval.collection.run import Run, as_run
from rankeval.errors import InvalidInput
from rankeval.fusion.fusion_methods import METHODS, NORMS, Floats, Ints, fused
from rankeval.io.columns import comparable
from rankeval.join.repeats import refuse_repeats


@dataclass(frozen=True)
class Fuser:
    """A method of fusion with its settings, checked."""

    method: str
    norm: str
    k: float | None
    weights: tuple[float, ...] | None

    @classmethod
    def of(
        cls,
        method: str,
        systems: Sequence[str],
        *,
        norm: str | None = None,
        k: float | None = None,
        weights: Any = None,
    ) -> Fuser:
        """Check the settings of a fusion of these systems."""
        declared = METHODS[chosen("method of fusion", method, METHODS)]
        if norm is not None:
            chosen("norm", norm, NORMS)
        if k is not None:
            check_number("k", k, least=0)
        unread = (
            (norm is not None and declared.points, "norm", "reads ranks"),
            (k is not None and declared.k is None, "k", "has no k"),
            (weights is not None and not declared.weighted, "weights", "has no weights"),
        )
        for is_given, argument, reason in unread:
            if is_given:
                raise InvalidInput(f"{method} {reason}", argument=argument, remedy="leave it out")
        own = _weights(weights, systems) if declared.weighted else None
        return cls(method, "min-max" if norm is None else norm, k, own)

    @property
    def reads_queries(self) -> bool:
        """Whether the fused score of a row depends on the other rows of its query."""
        return self.norm != "none"

    def scores(self, scores: Floats, query: Ints) -> Floats:
        """Return the fused score of each row, by the scores of each system and the row's query."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return fused(scores, query, **vars(self))
        except ValueError as error:
            raise InvalidInput(said(error), argument="norm", remedy="choose another one") from error


def _weights(weights: Any, systems: Sequence[str]) -> tuple[float, ...]:
    names = [*map(str, systems)]
    expected = f"one weight for each of {', '.join(names)}"
    if isinstance(weights, Mapping):
        by_name = {str(system): weight for system, weight in weights.items()}
        require(by_name.keys() == set(names), "weights", weights, expected)
        weights = [by_name[name] for name in names]
    is_list = isinstance(weights, (list, tuple, np.ndarray))
    require(is_list and len(weights) == len(names), "weights", weights, expected)
    for weight in weights:
        check_number("each of weights", weight)
    return tuple(map(float, weights))


@explained
def fuse(
    runs: Mapping[str, Any] | Sequence[Any],
    method: str = "rrf",
    *,
    norm: str | None = None,
    k: float | None = None,
    weights: Mapping[str, float] | Sequence[float] | None = None,
    name: str | None = None,
) -> Run:
    """Fuse the rankings of several systems into one.

    Documents of equal score in a run share the mean of their ranks, so the order of rows does not
    matter. A run that lacks a query retrieved nothing for it.

    Parameters
    ----------
    runs : mapping of str to run, or sequence of runs
        Two rankings or more, each a Run, a mapping, a frame, a path or another form that
        `rankeval.Run.from_any` reads.
    method : str, default="rrf"
        By ranks r: "rrf", the sum of 1 / (k + r); "isr"; "log_isr"; "bordafuse". By scores under
        ``norm``: "combsum", "combmnz", "combanz", "combmax", "combmin", "combmed"; and "weighted",
        the sum of weight times score. ``rankeval.fusion.METHODS`` has the formula and the source of
        each, and what counts for a document that a run did not retrieve.
    norm : str, optional
        The norm of the scores of a query in a run: "min-max" if not given, "max", "sum", "z-score",
        "rank", "borda" or "none". ``rankeval.fusion.NORMS`` has their formulas.
    k : float, optional
        The constant of "rrf", 60 if not given.
    weights : mapping of str to float, or sequence of float, optional
        The weight of each run, for "weighted". Tune weights on other queries than those that you
        test on: see `rankeval.Fusion`.
    name : str, optional
        The name of the fused run, by default that of the method.

    Returns
    -------
    Run
        A row for each document that any run retrieved, by ascending ids of query and document.

    Raises
    ------
    UnknownName
        If the method or the norm does not exist.
    InvalidInput
        If there are fewer than two runs, a run has a document twice in a query, an option does not
        belong to the method, or the weights do not fit the runs. It is also raised if the norm
        "max" meets negative scores only.

    Notes
    -----
    Reciprocal rank fusion is by Cormack, Clarke and Buettcher (2009), doi:10.1145/1571941.1572114.

    Examples
    --------
    >>> bm25 = {"q1": {"d1": 9.0, "d2": 7.0}}
    >>> dense = {"q1": {"d2": 0.8, "d3": 0.5}}
    >>> fuse({"bm25": bm25, "dense": dense}, "rrf", k=1).to_frame().values.tolist()
    [['q1', 'd1', 0.5], ['q1', 'd2', 0.8333333333333333], ['q1', 'd3', 0.3333333333333333]]
    """
    named = _named(runs)
    fuser = Fuser.of(method, [*named], norm=norm, k=k, weights=weights)
    systems = {system: as_run(run) for system, run in named.items()}
    for system, run in systems.items():
        failed = f"the search of {system!r} failed for {count(len(run.failed), 'query')}"
        refuse((run.failed, f"{failed}: {few([*run.failed])}", "ask them again by rk.retrieve"))
    query, queries, docid, scores = _aligned(systems)
    texts: dict[Any, str] = {}
    for run in systems.values():
        texts |= run.queries or {}
    return Run(
        queries[query],
        docid,
        fuser.scores(scores, query),
        name=method if name is None else name,
        against_rank=any(run.against_rank for run in systems.values()),
        queries=texts or None,
    )


def _named(runs: Any) -> dict[str, Any]:
    if not isinstance(runs, Mapping):
        is_list = isinstance(runs, (list, tuple))
        require(is_list, "runs", runs, "a mapping of names to runs, or a list of runs")
        runs = {str(place): run for place, run in enumerate(runs)}
    found = f"a fusion needs two runs or more, found {count(len(runs), 'run')}"
    refuse((len(runs) < 2, found))
    return {str(system): run for system, run in runs.items()}


def _coded(columns: Sequence[pa.Array], what: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return numbers of ids, in the ascending order of the distinct ones, and these."""
    if len({column.type for column in columns}) > 1:  # whole numbers here, texts there
        columns = [column.cast(pa.string()) for column in columns]
    codes, names = comparable(pa.chunked_array(columns), what)
    if names is None:
        names, codes = np.unique(codes, return_inverse=True)
    return codes.astype(np.int64), names


def _aligned(systems: Mapping[str, Run]) -> tuple[Ints, NDArray[Any], NDArray[Any], Floats]:
    """Return the query and the document of each pair, ascending, and the score of each system."""
    runs = [*systems.values()]
    query, queries = _coded([run.qid for run in runs], "qid")
    document, documents = _coded([run.docid for run in runs], "docid")
    n_documents = max(1, len(documents))
    pairs, place = np.unique(query * n_documents + document, return_inverse=True)
    scores = np.full((len(runs), len(pairs)), np.nan)
    start = 0
    for system, (name, run) in enumerate(systems.items()):
        rows = slice(start, start + len(run))
        scores[system, place[rows]] = run.score
        if np.count_nonzero(~np.isnan(scores[system])) < len(run):
            _refuse_repeats(name, run, query[rows], document[rows])
        start += len(run)
    return pairs // n_documents, queries, documents[pairs % n_documents], scores


def _refuse_repeats(
    name: str, run: Run, query: NDArray[np.int64], document: NDArray[np.int64]
) -> None:
    def problem(place: int) -> str:
        pair = f"document {run.docid[place].as_py()!r} twice in query {run.qid[place].as_py()!r}"
        return f"the run {name!r} has {pair}"

    refuse_repeats(query, document, np.arange(len(run)), problem, run.source, score=run.score)
