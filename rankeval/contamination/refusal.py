"""The refusal: registered test content is not scored, fitted or searched over outside a frozen plan.

Stated limits: this protects people from their own haste. Who owns the labels can evaluate them elsewhere, and who owns
the ledger's file can delete it.
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rankeval.errors import GuardRefusal, GuardRefusalError, LedgerError, RankevalWarning
from rankeval.ledger import discovery

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run
    from rankeval.contamination.fingerprint import Fingerprint
    from rankeval.contamination.hashing import Hashes
    from rankeval.contamination.register import Match, Sealed

GENESIS = "0" * 64
_REMOTE_PATIENCE = 2.0
"""Seconds for which the head of a ledger on a server is taken as known."""


@dataclass(frozen=True)
class ContaminationCheck:
    """The ledgers that a piece of work must respect, with the head of each: small enough for every pickle.

    Parameters
    ----------
    ledgers : tuple of (url, head)
        A worker loads the registered content from there, once per head.
    """

    ledgers: tuple[tuple[str, str], ...] = ()

    _heads: ClassVar[dict[str, tuple[Any, str]]] = {}
    _registers: ClassVar[dict[str, tuple[str, tuple[Sealed, ...]]]] = {}

    @classmethod
    def current(cls) -> ContaminationCheck:
        """Return the seals of this process as they stand now; costs a file's look-up where there is no ledger."""
        urls = discovery.active_urls()
        if not urls:
            return _NONE
        heads = ((url, cls._head(url)) for url in urls)
        return cls(tuple((url, head) for url, head in heads if head != GENESIS))

    @property
    def active(self) -> bool:
        """Whether there is anything to respect."""
        return bool(self.up_to_date().ledgers)

    def up_to_date(self) -> ContaminationCheck:
        """Return these seals with what this process knows besides, at its present heads; none if switched off."""
        now = ContaminationCheck.current()
        if not self.ledgers or now.ledgers == self.ledgers or discovery.default_url() is None:
            return now
        return ContaminationCheck(tuple({**dict(self.ledgers), **dict(now.ledgers)}.items()))

    def __reduce__(self) -> tuple[type[ContaminationCheck], tuple[Any, ...]]:
        # A scorer may be older than the registration: what counts is what is known when it is sent to a worker.
        return ContaminationCheck, (self.up_to_date().ledgers,)

    def refuse(
        self,
        X: Any | None,
        y: Any | None,
        qid: Any,
        *,
        docid: Any | None = None,
        score: Any | None = None,
        action: str,
    ) -> None:
        """Refuse rows that are registered test content.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame, optional
            The features.
        y : array of shape (n_rows,), optional
            The labels.
        qid : array of shape (n_rows,)
            The query of each row.
        docid : array of shape (n_rows,), optional
            The document of each row.
        score : array of shape (n_rows,), optional
            The ranking that is to be scored; one that was opened already is let through.
        action : str
            What was about to be done, such as ``"evaluate"``.

        Raises
        ------
        GuardRefusal
            When the content is registered; its twin `GuardRefusalError` in a daemonic worker.
        """
        seals = self.up_to_date()
        if not seals.ledgers or qid is None or (X is None and y is None and docid is None):
            return
        from rankeval.contamination.fingerprint import fingerprint

        known = fingerprint(X, y, qid, docid=docid)
        only_labels = X is None and docid is None
        _stop(seals, known, action, only_labels, None if score is None else lambda: known.outputs(score))

    def refuse_collection(self, qrels: Qrels, run: Run | None = None, *, action: str) -> None:
        """Refuse judgments that are registered test content.

        Parameters
        ----------
        qrels : Qrels
            The judgments.
        run : Run, optional
            The ranking that is to be scored; one that was opened already is let through.
        action : str
            What was about to be done.

        Raises
        ------
        GuardRefusal
            When the content is registered; its twin `GuardRefusalError` in a daemonic worker.
        """
        seals = self.up_to_date()
        if not seals.ledgers:
            return
        from rankeval.contamination.fingerprint import fingerprint_qrels, run_outputs

        known = fingerprint_qrels(qrels)
        _stop(seals, known, action, False, None if run is None else lambda: run_outputs(known, run))

    def matches(self, known: Fingerprint) -> list[tuple[str, Match]]:
        """Return (ledger URL, match) for each registered collection that is not retired.

        Parameters
        ----------
        known : Fingerprint
            The content in question.
        """
        from rankeval.contamination.register import match

        return [
            (url, match(sealed, known))
            for url, head in self.ledgers
            for sealed in self._register(url, head)
            if sealed.retired is None
        ]

    @classmethod
    def _head(cls, url: str) -> str:
        stamp = _stamp(url)
        known = cls._heads.get(url)
        if known is not None and known[0] == stamp:
            return known[1]
        from rankeval.ledger.chain import Ledger

        try:
            head = Ledger(url).head()
        except LedgerError as error:
            if known is None:
                raise
            warnings.warn(f"{error}; going by its state of {known[1][:12]}", RankevalWarning, stacklevel=3)
            head = known[1]
        cls._heads[url] = (stamp, head)
        return head

    @classmethod
    def _register(cls, url: str, head: str) -> tuple[Sealed, ...]:
        known = cls._registers.get(url)
        if known is not None and known[0] == head:
            return known[1]
        from rankeval.contamination.register import read_register
        from rankeval.ledger.chain import Ledger

        ledger = Ledger(url)
        try:
            whole, register = ledger.holds(head), read_register(ledger)
        except LedgerError as error:
            if known is None:
                raise
            warnings.warn(f"{error}; going by its state of {known[0][:12]}", RankevalWarning, stacklevel=5)
            return known[1]
        if not whole:
            raise LedgerError(
                f"the ledger {ledger.shown} no longer has the entry {head[:12]} that this work began with: "
                "it was replaced or shortened; check it with Guard(...).verify()"
            )
        cls._registers[url] = (head, register)
        discovery.watch(url)  # in a worker: what this scorer respects, a plain evaluate beside it respects too
        return register


def _stop(
    seals: ContaminationCheck,
    known: Fingerprint,
    action: str,
    only_labels: bool,
    outputs: Callable[[], Mapping[str, Hashes]] | None,
) -> None:
    """Refuse what matches a registered collection, unless it is ranked as an opened output has it."""
    from rankeval.contamination.register import was_opened

    ranked: Mapping[str, Hashes] | None = None
    for url, found in seals.matches(known):
        if found.by_content or found.by_labels:
            if outputs is not None and found.sealed.opened:
                ranked = outputs() if ranked is None else ranked
                if was_opened(found, ranked):
                    continue
            raise _refusal(refusal_message(url, found, action))
        if found.n_matched or (only_labels and found.same_labels):
            warnings.warn(warning_message(url, found, action), RankevalWarning, stacklevel=4)


def forget() -> None:
    """Forget ledger, heads and registers of this process, so that all is looked up anew: for tests."""
    discovery.reset()
    ContaminationCheck._heads.clear()  # noqa: SLF001 - the caches are this module's own
    ContaminationCheck._registers.clear()  # noqa: SLF001


def refusal_message(url: str, found: Match, action: str) -> str:
    """Return what is said when content is refused.

    Parameters
    ----------
    url : str
        The ledger.
    found : Match
        The evidence.
    action : str
        What was about to be done.
    """
    sealed = found.sealed
    guard = f"Guard({sealed.project!r})"
    return (
        f"{action} was refused: the data is the registered test collection {sealed.name!r} of project "
        f"{sealed.project!r} ({found.why}; ledger {_shown(url)}). "
        f"To score final systems on it: plan = {guard}.freeze(test, systems={{...}}), then {guard}.open(plan); "
        f"rankings opened that way may be evaluated again at will. To give it up as a test and use it for fitting, for "
        f"good: {guard}.retire({sealed.name!r}, reason)."
    )


def warning_message(url: str, found: Match, action: str) -> str:
    """Return what is said when there is too little evidence to refuse.

    Parameters
    ----------
    url : str
        The ledger.
    found : Match
        The evidence.
    action : str
        What was about to be done.
    """
    sealed = found.sealed
    return (
        f"{action}: the data may hold queries of the registered test collection {sealed.name!r} of project "
        f"{sealed.project!r} ({found.why}; ledger {_shown(url)}), which is too little to refuse it"
    )


def _refusal(message: str) -> BaseException:
    """Return the refusal that gets through: a BaseException would hang a pool of daemonic workers."""
    if multiprocessing.current_process().daemon:
        return GuardRefusalError(message)
    return GuardRefusal(message)


def _shown(url: str) -> str:
    path = discovery.sqlite_path(url)
    if path is not None:
        return path
    from rankeval.ledger.chain import Ledger

    return Ledger(url).shown


def _stamp(url: str) -> Any:
    """Return something that changes when the ledger does: SQLite counts its changes in bytes 24 to 27 of the file."""
    path = discovery.sqlite_path(url)
    if path is None:
        return int(time.monotonic() / _REMOTE_PATIENCE)
    try:
        with Path(path).open("rb") as file:
            return file.read(28)[24:28], Path(path).stat().st_size
    except OSError:
        return None


_NONE = ContaminationCheck()
