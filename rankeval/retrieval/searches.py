"""How a search is called for one query, and the ranking in its answer.

::

    a function                 search(text), search(qid, text), search(text, k=k)
    an object with transform   search.transform(frame of qid and query)      as in PyTerrier
    an object with search      search.search({qid: text})                    as rk.text.BM25

    ids, pairs, {docid: score}, records, a frame, a Run, an engine's answer -> Answer

The trap is a function of two arguments: ``search(qid, text)`` and ``search(text, size)`` look
alike, and only their names tell them apart.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import Parameter, signature
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from rankeval._checks import few, refuse, require, shown
from rankeval.collection.run import Run
from rankeval.errors import InvalidInput
from rankeval.io.columns import as_list
from rankeval.io.frames import SPELLINGS, as_table, is_frame, is_records, names_in, spelled
from rankeval.io.json_formats import content_columns, fault_of
from rankeval.io.words import plain

DEPTHS = (
    *("k", "top_k", "topk", "size", "limit", "n", "n_results", "num_results", "num", "depth"),
    *("rows", "hits", "count"),
)
"""Names of a parameter of a function that says how many documents to return."""

_TEXTS = frozenset({"text", "query", "querytext", "question"})

Search = Callable[[Any, Any], Any]
"""Called with the id and the text of a query; returns the answer, whatever its form."""


class IncompleteAnswerError(ConnectionError):
    """An engine answered with a part of a ranking or an error, and may give the whole one next time."""


class Answer(NamedTuple):
    """The ranking of one query, and what is known of it."""

    ranking: list[Any]  # Pairs of a document and its score, the best first
    n_found: int  # Documents before the cut at k
    rises: bool  # Whether the scores rise in the order of the answer, as distances do
    seconds: float


def is_search(thing: Any) -> bool:
    """Say whether something is a search rather than rows."""
    if isinstance(thing, type) or is_frame(thing) or hasattr(thing, "__array__"):
        return False
    return callable(thing) or any(hasattr(thing, method) for method in ("transform", "search"))


def search_of(system: Any, k: int | None = None) -> Search:
    """Return the call of a system for one query; ``k`` goes to a system that takes it."""
    if hasattr(system, "transform"):
        return partial(_transformed, system.transform)
    function: Any = system if callable(system) else getattr(system, "search", None)
    expected = "a function of one query, or an object with a method search or transform"
    require(callable(function), "search", type(system), expected)
    needed, depth = _parameters(function, k)
    if not callable(system):
        return lambda qid, text: function({qid: text}, **depth)
    takes_text_first = len(needed) == 2 and plain(needed[0]) in _TEXTS
    remedy = f"call the number of documents one of {few(DEPTHS)}, or give it a default"
    unknown = f"search takes {' and '.join(needed)}, and not the id and the text of a query"
    refuse((takes_text_first, unknown, remedy), argument="search")
    if len(needed) == 2:
        return lambda qid, text: function(qid, text, **depth)
    return lambda _qid, text: function(text, **depth)


def _transformed(transform: Callable[[Any], Any], qid: Any, text: Any) -> Any:
    import pandas as pd

    return transform(pd.DataFrame({"qid": [qid], "query": [text]}))


def _parameters(function: Any, k: int | None) -> tuple[list[str], dict[str, int]]:
    """Return the parameters that a call must give by place, and ``k`` under its name."""
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):  # a compiled function has no signature
        return [], {}
    by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [
        name
        for name, parameter in parameters.items()
        if parameter.default is Parameter.empty and parameter.kind in by_place
    ]
    depths = [name for name in DEPTHS if name in parameters]
    lacking = f"search needs {few(depths)}, and no number of documents is given"
    refuse((k is None and {*depths} & {*needed}, lacking, "give k="))
    given = depths[:1] if k is not None else []
    return [name for name in needed if name not in DEPTHS], dict.fromkeys(given, k or 0)


def takes_depth(system: Any) -> bool:
    """Say whether a search can be told how many documents to return."""
    function: Any = system if callable(system) else getattr(system, "search", None)
    return not hasattr(system, "transform") and bool(_parameters(function, 1)[1])


def asked(search: Search, qid: Any, text: Any) -> tuple[Any, float]:
    """Ask a query; return the answer, and how many seconds it took."""
    started = perf_counter()
    answer = search(qid, text)
    seconds = perf_counter() - started
    if fault := fault_of(answer):
        raise IncompleteAnswerError(f"the answer {fault}")
    has_run = not isinstance(answer, Awaitable | AsyncIterable | Iterator)
    require(has_run, "search", type(answer), "a search that returns its results")
    return answer, seconds


@contextmanager
def naming_query(caller: str, qid: Any, name: str) -> Iterator[None]:
    """Add the query and the system to an error of a search."""
    try:
        yield
    except Exception as error:
        by = f" by {name}" if name else ""
        error.add_note(f"rankeval.{caller} searched the query {qid!r}{by}")
        raise


def ranked(qid: Any, answer: Any, k: int, seconds: float) -> Answer:
    """Return the ranking in an answer, cut at ``k``.

    Raises
    ------
    InvalidInput
        If it has no ranking of this query, or has a document twice.
    """
    try:
        run = _run_of(qid, answer)
    except InvalidInput as error:
        where = error.where or f"the answer to query {shown(qid)}"
        raise error.having(where=where) from error
    rises = len(run) > 1 and not isinstance(answer, Mapping) and np.all(np.diff(run.score) > 0)
    order = np.argsort(-run.score, kind="stable")[:k]
    documents, scores = run.docid.to_pylist(), run.score.tolist()
    best = [(documents[place], scores[place]) for place in order]
    return Answer(best, len(run), bool(rises), seconds)


def _run_of(qid: Any, answer: Any) -> Run:
    if isinstance(answer, Mapping):
        if "hits" not in answer:
            content_columns(answer, "score")  # refuses an engine's answer whose ids nobody knows
        return Run.from_any({qid: answer})
    if isinstance(answer, Run):
        answer = answer.to_frame()
    if is_frame(answer) and getattr(answer, "ndim", 2) == 2:
        table = as_table(answer)
        answer = _pairs(qid, {name: as_list(table[name]) for name in names_in(table)})
    elif is_records(answer):
        answer = _pairs(qid, _cells([*answer]))
    return Run.from_dict({qid: answer})


def _cells(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the columns of mappings, or of objects with attributes, such as hits of Pyserini."""
    if isinstance(rows[0], Mapping):
        return {name: [row.get(name) for row in rows] for name in rows[0]}
    known = (*SPELLINGS["docid"], *SPELLINGS["score"])
    return {name: [getattr(row, name) for row in rows] for name in known if hasattr(rows[0], name)}


def _pairs(qid: Any, columns: Mapping[str, Sequence[Any]]) -> list[Any]:
    """Return the documents of one query, with their scores if all have one, else in their order."""
    ids = spelled(columns, "docid") or [name for name in ("_id", "id") if name in columns]
    require(len(ids) == 1, "search", [*columns], "rows with one column of ids, such as 'docid'")
    others = [other for other in columns.get("qid", ()) if str(other) != str(qid)]
    refuse((others, f"it has rows of other queries: {few(others)}"))
    documents = columns[ids[0]]
    for name in (*spelled(columns, "score"), "_score"):
        if None not in columns.get(name, [None]):
            return [*zip(documents, columns[name], strict=True)]
    ranks = columns.get("rank", range(len(documents)))
    return [documents[place] for place in np.argsort(ranks, kind="stable")]
