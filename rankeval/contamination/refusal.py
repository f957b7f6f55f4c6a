"""Refuse registered test content before it is scored, fitted or searched over.

Every way into the library asks a `ContaminationCheck`, which holds the ledgers to respect and the
head of each; an evaluation asks none if the process has no ledger. The check is small enough for
every pickle: a worker reads the registered content from the ledger itself, once per change.

Stated limits: this protects people from their own haste. The owner of the labels can evaluate them
elsewhere, and the owner of the ledger can delete it. Features that were rotated (PCA), or rows
dropped and features rescaled, are not recognised if the query ids are new too.

**Scored before.** Data that showed nothing of a registered collection needs no second look: a
search scores the same folds many times. What is remembered is a SHA-256 over the features, labels
and query ids as they were given, and the registration. A registration never changes; exemptions
only take evidence away. Where data was refused or warned about, nothing is remembered; and where it
showed a trace, that holds only as long as no other call shows more of the registration.

**Folds.** While a plan over folds is frozen, the folds of a registered benchmark may be fitted
(`allowed`). The allowance holds for this process, all its threads included, and for its workers: it
is pickled with every unfitted ranker and every scorer that the process sends out. A worker may
outlive the freeze, so an allowance is good for nothing once the temporary file that stands for it
is gone. A worker on another machine never sees the file, and refuses.

**Callers that hang.** `multiprocessing.Pool`, `ThreadPool` and a client of Dask wait for ever for a
call that ended in a BaseException: they catch Exceptions only. joblib wraps each call, on all of
its backends, and executors of `concurrent.futures` send a BaseException back as they send an
Exception. So the stack tells what must be raised::

    thread of Pool     multiprocessing.pool.worker -> your function -> rankeval                             hangs
    thread of joblib   multiprocessing.pool.worker -> joblib -> scikit-learn -> rankeval                    gets through
    submitted to Dask  distributed.worker._run_task_simple -> dask -> your function -> rankeval             hangs
    joblib on Dask     distributed.worker._run_task_simple -> dask -> joblib -> scikit-learn -> rankeval    gets through

The trap: `multiprocessing.current_process().daemon` is true in all of these workers. A search on
Dask that gets an Exception for that turns it into nan, and goes on.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval._checks import count, few
from rankeval.contamination.fingerprint import (
    Fingerprint,
    fingerprint,
    fingerprint_qrels,
    run_outputs,
)
from rankeval.contamination.matching import Match, Shown, match_content, was_opened
from rankeval.contamination.registered import REGISTERS, RegisteredContent, read_register
from rankeval.contamination.signature import KeptTraces, Traces
from rankeval.errors import GuardRefusal, GuardRefusalError, warn
from rankeval.join.matching import Hashes
from rankeval.ledger import discovery
from rankeval.ledger.entry import GENESIS
from rankeval.ledger.ledger import Ledger

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run

_VALUES_OF_A_SCORER = 400_000
"""Values of features whose columns a scorer looks at first, which takes about 15 ms."""

_MANY = 4
"""With so many registrations it pays to remember which data showed nothing of them."""


MEMORY: dict[str, Shown] = {}
"""Hash of the entry of a registration -> what was shown of it."""


@lru_cache(1024)
def _shows_nothing(digest: bytes) -> dict[str, Hashable]:  # noqa: ARG001 - the cache is the table
    """Cache: digest of data -> registrations that it did not match, each with the traces shown by then."""
    return {}


@dataclass(frozen=True)
class ContaminationCheck:
    """The ledgers that a piece of work must respect.

    Parameters
    ----------
    ledgers : tuple of (url, head)
        The work began when each ledger had this head, so each must still hold it.
    from_parent : bool
        Whether the parent of this process sent the check along with work. A worker that lives
        longer than one piece of work has the environment of an earlier one: its
        ``RANKEVAL_LEDGER=off`` does not count then.
    """

    ledgers: tuple[tuple[str, str], ...] = ()
    from_parent: bool = False

    @classmethod
    def current(cls) -> ContaminationCheck:
        """Return the check against the ledgers of this process as they are now; cheap if there are none."""
        heads = [(url, read_register(url).snapshot.head) for url in discovery.active_urls()]
        return cls(tuple((url, head) for url, head in heads if head != GENESIS))

    def up_to_date(self) -> ContaminationCheck:
        """Return this check with the ledgers and heads that the process knows now; empty if ledgers are off."""
        now = ContaminationCheck.current()
        if not self.ledgers or (discovery.default_url() is None and not self.from_parent):
            return now
        ledgers = tuple({**dict(self.ledgers), **dict(now.ledgers)}.items())
        return ContaminationCheck(ledgers, self.from_parent)

    def __reduce__(self) -> tuple[Callable[..., ContaminationCheck], tuple[Any, ...]]:
        # A scorer may be older than the registration: the ledgers known when it is sent to a worker
        # count.
        return _received, (self.up_to_date().ledgers, os.getpid(), Allowance())

    def refuse(
        self,
        X: Any | None,
        y: Any | None,
        qid: Any,
        *,
        docid: Any | None = None,
        queries: Mapping[Any, str] | None = None,
        score: Any | None = None,
        action: str,
    ) -> None:
        """Refuse rows that are registered test content; a ranking that was already opened is accepted."""
        check = self.up_to_date()
        if not check.ledgers or qid is None or (X is None and y is None and docid is None):
            return
        data = fingerprint(X, y, qid, docid=docid, queries=queries)
        outputs = None if score is None else lambda: data.outputs(score)
        refuse_matches(check, data, action, outputs)

    def refuse_collection(
        self,
        qrels: Qrels,
        run: Run | None = None,
        *,
        queries: Mapping[Any, str] | None = None,
        action: str,
    ) -> None:
        """Refuse judgments that are registered test content; a run that was already opened is accepted."""
        check = self.up_to_date()
        if not check.ledgers:
            return
        data = fingerprint_qrels(qrels, queries=queries)
        refuse_matches(check, data, action, None if run is None else lambda: run_outputs(data, run))

    def contents(self) -> list[tuple[str, RegisteredContent]]:
        """Return (ledger URL, collection) for all registered collections, retired ones too."""
        return [
            (url, content)
            for url, head in self.ledgers
            for content in read_register(url, head).contents
        ]

    def matches(
        self, data: Traces, *, most_rows: int | None = None, but: Collection[str] = ()
    ) -> list[tuple[str, Match]]:
        """Return (ledger URL, match) for each registered collection that is not retired, nor allowed at the moment."""
        return [
            (url, match_content(registered, data, MEMORY.get(registered.id), most_rows=most_rows))
            for url, registered in self.contents()
            if registered.retired is None
            and registered.id not in but
            and not is_allowed(registered.id)
        ]


def _received(
    ledgers: tuple[tuple[str, str], ...], sender: int, _allowance: Allowance
) -> ContaminationCheck:
    """Return a check that another process may have sent, given the id of that process; its allowances came with it."""
    return ContaminationCheck(ledgers, from_parent=os.getppid() == sender)


def forget() -> None:
    """Forget the ledgers of this process, their content, and what was shown of it: for tests."""
    discovery.reset()
    REGISTERS.clear()
    MEMORY.clear()
    _shows_nothing.cache_clear()


def refusal_message(url: str, found: Match, data: Fingerprint | KeptTraces, action: str) -> str:
    """Return the message of a refusal: what was found, why that matters, what to do."""
    name = found.registered.name
    by_shared_labels = found.bits > 0 and not found.by_labels
    such = ", such as a later month of a log whose clicks persist" if by_shared_labels else ""
    # One guard throughout: another one would not have the collection at hand when the plan is
    # opened.
    return (
        f"{_found(url, found, data, action)} With {_guard(url, found)}: to go on without these queries, {_rest(data)}. "
        "To score final systems, once: test = "
        f"guard.register({name!r}, ...) with the same data, plan = guard.freeze(test, systems={{...}}), "
        "guard.open(plan); rankings opened that way may be evaluated again freely. To decide on releases, one after "
        f"the other: guard.gate(test, ...). To release some queries for a good reason{such}, on record: "
        f"guard.exempt({name!r}, queries, reason). To give the collection up as a test and "
        f"fit on it, for good: guard.retire({name!r}, reason)."
    )


def _found(url: str, found: Match, data: Fingerprint | KeptTraces, action: str) -> str:
    return (
        f"{action} was refused: the data contains queries of {_collection(url, found)}. {_queries(found, data)} "
        f"{_unseen(found)}A test score that guides your choices no longer shows how good a system is on new queries."
    )


def warning_message(url: str, found: Match, data: Fingerprint | KeptTraces, action: str) -> str:
    """Return the warning for a match that is too weak to refuse the data."""
    return (
        f"{action} goes on, but the data may contain queries of {_collection(url, found)}. "
        f"{_queries(found, data)} That "
        f"is too little to refuse it. If they are test queries, take them out before you go on: {_guard(url, found)}, "
        f"{_rest(data)}"
    )


def refuse_matches(
    check: ContaminationCheck,
    data: Fingerprint | KeptTraces,
    action: str,
    outputs: Callable[[], Mapping[str, Hashes]] | None,
    *,
    but: Collection[str] = (),
) -> None:
    """Refuse data that matches a registered collection, unless an opened output ranks it in the same way."""
    # Two projects may have registered the same content: the ranking is hashed once.
    ranked = None if outputs is None else cache(outputs)
    # A scorer is called for every fold and candidate, and must not cost more than the measure: see
    # bench_guard.
    most_rows = (
        None
        if data.X is None or outputs is None
        else _VALUES_OF_A_SCORER // max(1, data.X.shape[1])
    )
    nothing = {}
    if isinstance(data, Fingerprint) and len(check.contents()) >= _MANY:
        nothing = _known_nothing(data, most_rows)
    known = [*but, *(name for name, then in nothing.items() if then == _traces(name))]
    matches = check.matches(data, most_rows=most_rows, but=known)
    for url, found in sorted(matches, key=lambda match: match[1].strength, reverse=True):
        if (
            ranked is not None
            and found.registered.opened
            and found.suspects.any()
            and was_opened(found, ranked())
        ):
            continue
        if found.refused:
            raise _refusal(url, found, data, action)
        if found.shown is not None:
            MEMORY[found.registered.id] = found.shown
        if not found.warned and not found.same_labels:
            nothing[found.registered.id] = _traces(found.registered.id)
        if found.warned or (found.same_labels and data.X is None and not data.knows_documents):
            warn(warning_message(url, found, data, action))


def _known_nothing(data: Fingerprint, most_rows: int | None) -> dict[str, Hashable]:
    """Return the registrations that the data is known not to match enough, with the traces of each; add new ones."""
    X = data.X
    if not isinstance(X, np.ndarray) or not X.flags.c_contiguous or data.knows_documents:
        return {}
    digest = hashlib.sha256(f"{X.dtype} {X.shape} {most_rows} {data.y is None}".encode())
    for part in (X, data.codes, data.ids, *(() if data.y is None else (data.y,))):
        digest.update(np.ascontiguousarray(part).data)
    return _shows_nothing(digest.digest())


def _traces(registration: str) -> Hashable:
    """Return a value that changes when more is shown of a registration; the same data again changes nothing."""
    shown = MEMORY.get(registration)
    return shown and hash(
        (shown.content.tobytes(), shown.columns.tobytes(), shown.ratios.tobytes())
    )


def _collection(url: str, found: Match) -> str:
    registered = found.registered
    return (
        f"the registered test collection {registered.name!r} of project {registered.project!r} ({found.why}; "
        f"registered by {registered.who} on {registered.time[:10]}; ledger {Ledger(url).where})"
    )


def _queries(found: Match, data: Fingerprint | KeptTraces) -> str:
    names = _names(found, data)
    evidence = "No query shows it by itself."
    if names:
        evidence = f"In the data, {count(len(names), 'query')}: {few(names)}."
    if found.n_before:
        evidence += " Earlier calls of this process showed the others: ask guard.status about all of the data at once."
    return evidence


def _names(found: Match, data: Fingerprint | KeptTraces) -> list[Any]:
    # The mask may be longer: traces keep the names of their first queries only.
    names: list[Any] = data.names[np.flatnonzero(found.queries)].tolist()
    return names


def _unseen(found: Match) -> str:
    if not found.n_unseen or found.queries.all():
        return ""
    return (
        f"These were recognised by their values together, and the other {found.n_unseen} of the collection may be "
        "in the data too: leave them out by their ids in the source of this data, or drop that source, not only these "
        "rows. "
    )


def _guard(url: str, found: Match) -> str:
    elsewhere = _elsewhere(url)
    ledger = f", ledger={elsewhere!r}" if elsewhere else ""
    return f"guard = Guard({found.registered.project!r}{ledger})"


def _elsewhere(url: str) -> str | None:
    """Return the place of a ledger; None for the one that this process finds by itself."""
    return None if url == discovery.default_url() else Ledger(url).where


def _rest(data: Fingerprint | KeptTraces) -> str:
    if isinstance(data, KeptTraces):
        return "filter the queries that the refusal names (.queries) out of the data set"
    if "documents" in data.queries:  # judgments; rows are never known by their documents alone
        return "mask = guard.status(qrels=qrels).rows, then qrels.to_frame()[~mask]"
    arguments, features = ("X, y", "X[~mask], ") if data.X is not None else ("y=y", "")
    documents = ", docid=docid" if data.knows_documents else ""
    return f"mask = guard.status({arguments}, qid=qid{documents}).rows, then {features}y[~mask], qid[~mask]"


def _refusal(url: str, found: Match, data: Fingerprint | KeptTraces, action: str) -> BaseException:
    # A BaseException would hang some callers (`hangs_on_refusals`).
    kind = GuardRefusalError if hangs_on_refusals() else GuardRefusal
    return kind(
        refusal_message(url, found, data, action),
        found=_found(url, found, data, action),
        collection=found.registered.name,
        project=found.registered.project,
        queries=tuple(_names(found, data)),
        ledger=_elsewhere(url),
    )


_GRANTED: dict[str, frozenset[str]] = {}
"""Path of the temporary file -> ids of the registrations whose folds may be fitted."""


@contextmanager
def allowed(registrations: Iterable[str]) -> Iterator[None]:
    """Fit on parts of registered collections inside this context without a refusal.

    Examples
    --------
    >>> with allowed(["1f3a"]):
    ...     is_allowed("1f3a"), is_allowed("77c0")
    (True, False)
    >>> is_allowed("1f3a")
    False
    """
    with tempfile.NamedTemporaryFile(prefix="rankeval-folds-") as token:
        _GRANTED[token.name] = frozenset(registrations)
        try:
            yield
        finally:
            del _GRANTED[token.name]


def is_allowed(registration: str) -> bool:
    """Return whether the folds of a registration may be fitted now."""
    return any(registration in names and os.path.exists(token) for token, names in _GRANTED.items())  # noqa: PTH110 - asked for every score


def granted() -> dict[str, frozenset[str]]:
    """Return the allowances in force, for `receive` in a worker."""
    return {token: names for token, names in _GRANTED.items() if os.path.exists(token)}  # noqa: PTH110 - as above


class Allowance:
    """The allowances in force, as they travel with work: made again where they are unpickled."""

    def __reduce__(self) -> tuple[type[Allowance], tuple[()], dict[str, frozenset[str]]]:
        return Allowance, (), granted()

    def __setstate__(self, allowances: dict[str, frozenset[str]]) -> None:
        for token in set(_GRANTED) - set(granted()):  # those that ended
            del _GRANTED[token]
        _GRANTED.update(allowances)


_RUNNERS = {
    "multiprocessing.pool": ("worker",),
    "multiprocess.pool": ("worker",),  # the pool of pathos
    "distributed.worker": (
        "_run_task_simple",
        "_run_task_async",
        "apply_function_simple",
        "apply_function_async",
    ),
}
"""The functions that run a call in a worker, by module; those of Dask have two names each, by release."""

_OF_RUNNERS = ("multiprocessing.", "multiprocess.", "dask.", "distributed.")
"""Modules that are no part of the call that a runner was given."""


def hangs_on_refusals() -> bool:
    """Return whether a BaseException raised here would hang a caller, so that an Exception must be raised instead."""
    if threading.current_thread() is threading.main_thread():
        return _is_lost(sys._getframe())  # noqa: SLF001 - inspect.stack reads the source of every frame
    # A call in a worker may start threads, whose errors are raised again in the worker's own.
    return any(map(_is_lost, sys._current_frames().values()))  # noqa: SLF001 - no other way to the stack of a thread


def _is_lost(frame: FrameType | None) -> bool:
    """Return whether a runner runs this frame, and the call that it was given is not joblib's."""
    called = ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if frame.f_code.co_name in _RUNNERS.get(module, ()):
            return bool(called) and not called.startswith("joblib.")  # no call: the worker is idle
        if not module.startswith(_OF_RUNNERS):
            called = module
        frame = frame.f_back
    return False
