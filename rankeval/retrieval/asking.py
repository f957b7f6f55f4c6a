"""Ask a search all queries: several at a time, again after failures that pass, and never for ever.

::

    waiting   attempts by the time from which they may start, and the place of their query
    running   attempts and their deadlines: a thread each, or this thread
    done      what came back; an answer after the deadline of its attempt is dropped

An error is one of three kinds. It may pass (a timeout, a broken connection, HTTP 429 or 5xx), and
the query is asked again. It is the engine's answer (any other status), and the query has failed. Or
it is an error of the caller's code, and everything stops.

The trap is a thread that hangs: Python cannot end it. So nobody waits for a thread, here or when
the program ends, and a search without a timeout and one query at a time runs in the caller's
thread, as connections to SQLite and Java must.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from rankeval._checks import count, said
from rankeval._secrets import without_secrets
from rankeval.retrieval.searches import Search, asked, naming_query

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before the second attempt, doubled for each further one, and at most."""

LONGEST_PAUSE = 300.0
"""Seconds for which an engine may ask by ``Retry-After``; if it asks for more, the query fails."""

_LONGEST_SLEEP = 3600.0
_PASSING = frozenset({408, 425, 429})
_PASSING_NAMES = re.compile("Timeout|Connect|Network|Protocol|Incomplete|Chunked|URLError|gaierror")
"""Names of errors of clients of HTTP, of engines and of databases, which share no class."""


class Attempt(NamedTuple):
    """An attempt to ask a query."""

    start: float  # Not before this time
    place: int  # Of the query
    number: int  # From 1


class Returned(NamedTuple):
    """What an attempt came back with."""

    attempt: Attempt
    answer: Any = None
    seconds: float = 0.0
    error: BaseException | None = None


@dataclass
class Asker:
    """Asks a search, and keeps the pause that the engine wants."""

    search: Search
    texts: Mapping[Any, str]
    n_jobs: int
    timeout: float  # Seconds, perhaps infinite
    retries: int
    name: str = ""

    def __post_init__(self) -> None:
        self.queries: list[tuple[Any, str]] = [*self.texts.items()]
        self.waiting: list[Attempt] = [Attempt(0.0, place, 1) for place in range(len(self.queries))]
        self.running: dict[Attempt, float] = {}
        self.done: SimpleQueue[Returned] = SimpleQueue()
        self.failed: dict[Any, str] = {}
        self.rng: np.random.Generator = np.random.default_rng(0)
        self.paused_until: float = 0.0

    def answers(self) -> Iterator[tuple[Any, Any, float]]:
        """Yield each query with its answer and the seconds of this, as they come."""
        while self.waiting or self.running:
            while self._next_start() <= time.monotonic():
                self._start(heappop(self.waiting))
            for attempt, answer, seconds, error in self._returned():
                qid, _ = self.queries[attempt.place]
                if error is None:
                    yield qid, answer, seconds
                else:
                    self._fail(attempt, qid, error)

    def _next_start(self) -> float:
        if not self.waiting or len(self.running) >= self.n_jobs:
            return math.inf
        return max(self.waiting[0].start, self.paused_until)

    def _start(self, attempt: Attempt) -> None:
        self.running[attempt] = time.monotonic() + self.timeout
        if self.n_jobs == 1 and self.timeout == math.inf:
            self._run(attempt)
        else:
            Thread(target=self._run, args=(attempt,), daemon=True).start()

    def _run(self, attempt: Attempt) -> None:
        try:
            answer, seconds = asked(self.search, *self.queries[attempt.place])
            self.done.put(Returned(attempt, answer, seconds))
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for it
            self.done.put(Returned(attempt, error=error))

    def _returned(self) -> list[Returned]:
        """Wait for an attempt, a deadline or the time to start another one."""
        now = time.monotonic()
        until = min(self._next_start(), *self.running.values(), now + _LONGEST_SLEEP)
        try:
            returned = self.done.get(timeout=max(until - now, 0.0))
        except Empty:
            late = TimeoutError(f"no answer in {self.timeout:g} s")
            found = [
                Returned(attempt, error=late)
                for attempt, deadline in self.running.items()
                if deadline <= time.monotonic()
            ]
        else:
            found = [returned] if returned.attempt in self.running else []
        for attempt, *_ in found:
            del self.running[attempt]
        return found

    def _fail(self, attempt: Attempt, qid: Any, error: BaseException) -> None:
        """Ask again, or note that the query has failed; raise an error of the caller's code."""
        status = _status(error)
        passes = _may_pass(error) if status is None else status in _PASSING or status >= 500
        wait = _retry_after(error)
        is_soon = wait is None or wait <= LONGEST_PAUSE
        if passes and is_soon and attempt.number <= self.retries:
            self._ask_again(attempt, wait)
            return
        if status is None and not passes:
            with naming_query("retrieve", qid, self.name):
                raise error
        code = "" if status is None else f"HTTP {status}, "
        code += "" if is_soon else f"asked to wait {wait:.0f} s, "
        reason = without_secrets(f"{code}{type(error).__name__}: {said(error)}")
        self.failed[qid] = f"{reason} after {count(attempt.number, 'attempt')}"

    def _ask_again(self, attempt: Attempt, wait: float | None) -> None:
        now = time.monotonic()
        if wait is None:
            backoff = min(FIRST_WAIT * 2 ** (attempt.number - 1), LONGEST_WAIT)
            wait = backoff * self.rng.uniform(0.5, 1.0)
        else:
            self.paused_until = max(self.paused_until, now + wait)
        heappush(self.waiting, Attempt(now + wait, attempt.place, attempt.number + 1))


def _may_pass(error: BaseException) -> bool:
    is_builtin = isinstance(error, TimeoutError | ConnectionError)
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    return is_builtin or _PASSING_NAMES.search(names) is not None


def _holders(error: BaseException) -> list[Any]:
    """Return the objects that may have the status and the headers: of requests, Elasticsearch, urllib."""
    return [getattr(error, "response", None), getattr(error, "meta", None), error]


def _status(error: BaseException) -> int | None:
    for holder in _holders(error):
        for name in ("status_code", "status", "code"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and 400 <= status < 600:
                return status
    return None


def _retry_after(error: BaseException) -> float | None:
    """Return the seconds that an engine asks to wait, given as a number or as a date."""
    headers: Any = [getattr(holder, "headers", None) or {} for holder in _holders(error)]
    found = [str(known["Retry-After"]) for known in headers if "Retry-After" in known]
    for text in found:
        if re.fullmatch(r"[0-9]+(\.[0-9]*)?", text):
            return float(text)
        with suppress(ValueError):
            return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    return None
