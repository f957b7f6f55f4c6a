"""retrieve: the ranking that a search gives for each query, as a `Run`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankeval._arguments import explained
from rankeval._checks import check_count, check_number, count, few, require, shown
from rankeval.collection.qrels import Qrels
from rankeval.collection.run import Run
from rankeval.errors import QueryIdError
from rankeval.io.columns import id_column
from rankeval.io.texts_by_id import as_texts
from rankeval.retrieval.asking import Asker
from rankeval.retrieval.kept import KeptAnswers
from rankeval.retrieval.searches import Answer, ranked, search_of, takes_depth

DEEPEST = 1000
"""Documents that are kept for each query by default."""

_LIMITS = 5
"""Limits that engines set themselves, such as 10 or 25 documents, are multiples of it."""


@explained
def retrieve(
    search: Any,
    queries: Any,
    *,
    k: int = DEEPEST,
    n_jobs: int = 1,
    timeout: float | None = None,
    retries: int = 3,
    cache: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> Run:
    """Ask a search each query, and return its ranking.

    Failures that may pass are tried again: timeouts, broken connections, the HTTP statuses 408,
    425, 429 and 5xx, and partial answers of Elasticsearch and OpenSearch. The wait before the
    next attempt is half a second and doubles each time, less a random part of up to one half.
    If the engine sends ``Retry-After``, no query is asked before that time. A query without an
    answer in the end is listed in ``Run.failed``, and the others arrive.
    Any other error, such as a TypeError in your function, is raised at once, with a note that names
    the query.

    Parameters
    ----------
    search : callable, or object with a method ``transform`` or ``search``
        A function of the text of a query, or of its id and its text. If it has a parameter ``k``,
        ``top_k``, ``topk``, ``size``, ``limit``, ``n``, ``n_results``, ``num_results``, ``num``,
        ``depth``, ``rows``, ``hits`` or ``count``, this gets ``k``; if it has none,
        and all answers have 10 or another usual number of documents, ``notes`` says so.
        ``transform`` is called as PyTerrier does, with a frame of one row, qid and query;
        ``search`` with a mapping of one id to its text, as that of `rankeval.text.BM25`. The answer
        may be ids or pairs of id and score, ``{docid: score}``, records, a frame, a Run, or the
        answer of Elasticsearch or OpenSearch. Documents without scores get -1, -2, ... in their
        order, and ``notes`` says so.
    queries : mapping, Series, frame, list of pairs, or path
        Texts by id; a file is read by `rankeval.text.read_texts`.
    k : int, default 1000
        Documents to keep for each query. Longer answers are cut, and ``notes`` counts them.
    n_jobs : int, default 1
        Queries to ask at a time, each in a thread of its own. With one and no timeout, the search
        runs in the thread of the caller.
    timeout : float, optional
        Seconds after which an attempt counts as failed. Python cannot end its thread: the call may
        go on beside the next ones, but nothing waits for it, not even the end of the program.
    retries : int, default 3
        Further attempts after a failure that may pass.
    cache : path, optional
        A folder that keeps each answer when it arrives. A later call with the same ``name`` and
        ``k`` asks only queries that have no answer yet, or another text. It cannot see that the
        engine has changed: give another ``name`` for each version of an engine and its index.
    name : str, optional
        The name of the run; needed with ``cache``.

    Returns
    -------
    Run
        The rows of a query are together, the best document first. ``seconds`` has the time of
        each answer, without waits and failed attempts, and ``failed`` the reason for each query
        that has none. `rankeval.evaluate` refuses a run with failed queries that are judged, unless
        ``missing="skip"`` leaves them out.

    Raises
    ------
    InvalidInput
        If there is no search or no query, an option is out of its range, an answer has no ranking
        of its query, or a document occurs twice in one. Errors of ``search`` that cannot pass are
        raised as they are.

    Examples
    --------
    >>> import rankeval as rk
    >>> index = {"new guinea": ["d3", "d1"], "economic development": [("d2", 4.5)]}
    >>> run = rk.retrieve(index.get, {"q1": "new guinea", "q2": "economic development"})
    >>> run.to_frame().values.tolist()
    [['q1', 'd3', -1.0], ['q1', 'd1', -2.0], ['q2', 'd2', 4.5]]
    >>> run.notes
    ('1 query by rank: scores are missing or do not descend',)
    """
    check_count("k", k)
    check_count("n_jobs", n_jobs)
    check_count("retries", retries, least=0)
    if timeout is not None:
        check_number("timeout", timeout, least=0)
        require(timeout > 0, "timeout", timeout, "seconds above 0, or None")
    expected = "the name of the system and its version, under which cache= keeps the answers"
    require(name or cache is None, "name", name, expected)
    ask = search_of(search, k)
    texts = as_texts(queries, "queries", "qid")
    require(texts, "queries", "none", "at least one query")
    id_column([*texts], "qid")  # ids of two types are refused before anything is asked
    kept = None if cache is None else KeptAnswers.at(cache, str(name), k)
    answers: dict[Any, Answer] = {} if kept is None else kept.read(texts)
    unanswered = {qid: text for qid, text in texts.items() if qid not in answers}
    limit = math.inf if timeout is None else timeout
    asker = Asker(ask, unanswered, n_jobs, limit, retries, name or "")
    for qid, answer, seconds in asker.answers():
        answers[qid] = ranked(qid, answer, k, seconds)
        if kept is not None:
            kept.write(qid, texts[qid], answers[qid])
    ordered = {qid: answers[qid] for qid in texts if qid in answers}
    several = [answer.rises for answer in ordered.values() if answer.n_found > 1]
    return replace(
        Run.from_dict({qid: answer.ranking for qid, answer in ordered.items()}, name=name),
        against_rank=bool(several) and all(several),
        queries=texts,
        notes=_notes([*ordered.values()], k, asker.failed, is_told=takes_depth(search)),
        seconds={qid: answer.seconds for qid, answer in ordered.items()},
        failed=asker.failed,
    )


def _notes(
    answers: Sequence[Answer], k: int, failed: Mapping[Any, str], *, is_told: bool
) -> tuple[str, ...]:
    by_rank = sum(_is_by_rank(answer.ranking) for answer in answers)
    cut = sum(answer.n_found > k for answer in answers)
    empty = sum(not answer.ranking for answer in answers)
    reasons = [f"{shown(qid)} by {reason}" for qid, reason in failed.items()]
    notes = (
        (by_rank, "by rank: scores are missing or do not descend"),
        (cut, f"with more than {k} documents, of which the best {k} are kept"),
        (empty, "without a document"),
        (len(failed), f"failed ({few([*failed])}): {''.join(reasons[:1])}"),
    )
    found = [f"{count(number, 'query')} {note}" for number, note in notes if number]
    sizes = {answer.n_found for answer in answers if answer.n_found}
    is_limit = len(sizes) == 1 and max(sizes) < k and max(sizes) % _LIMITS == 0
    if is_limit and not is_told and len(answers) > 1:
        size = count(max(sizes), "document")
        found.append(
            f"each answer has {size}, perhaps the search's own limit: it has no parameter for {k}"
        )
    return tuple(found)


def _is_by_rank(ranking: Sequence[Any]) -> bool:
    scores = [score for _, score in ranking]
    return bool(ranking) and scores == [-1.0 - place for place in range(len(scores))]


def searched(qrels: Qrels, search: Any, queries: Any, k: int | None, name: str | None) -> Run:
    """Return the run of a search for an evaluation, with a note on judged queries without a text."""
    require(queries is not None, "queries", None, "the texts of the queries, which search needs")
    texts = as_texts(queries, "queries", "qid")
    judged = qrels.qid.unique().to_pylist()
    lacking = [qid for qid in judged if qid not in texts]
    if len(lacking) == len(judged):
        problem = f"no judged query has a text: the qrels have {few(judged)}"
        raise QueryIdError(f"{problem}, the texts {few([*texts])}", argument="queries")
    run = retrieve(search, texts, k=DEEPEST if k is None else k, name=name)
    if not lacking:
        return run
    note = f"{count(len(lacking), 'judged query')} without a text, never searched: {few(lacking)}"
    return replace(run, notes=(*run.notes, note))
