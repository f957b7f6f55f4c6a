"""Refuse registered test content that is evaluated part by part, by the verdict on all parts together.

    check = StreamedCheck.current()
    evidence = check.evidence(y, qid, docid=docid, score=score)     for each part, in any process
    check.add(evidence)                                             in the process that began, in any order
    check.refuse(action="evaluate")                                 before any score is shown

The verdict is that of `ContaminationCheck.refuse` on all rows at once (`contamination.kept_traces` says why).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rankeval.contamination.fingerprint import fingerprint
from rankeval.contamination.kept_traces import KeptTraces
from rankeval.contamination.refusal import ContaminationCheck, refuse_matches
from rankeval.contamination.register import RegisteredContent
from rankeval.errors import InvalidInput

_LEAST_JOINED = 1 << 16
"""Kept queries for which it pays to put parts together."""


@dataclass(frozen=True)
class Evidence:
    """What one part of some data shows; small enough to be sent between processes and kept in a file.

    Attributes
    ----------
    key : str
        The `StreamedCheck.key` for which it was collected.
    traces : KeptTraces
        The traces.
    is_ranked : bool
        Whether a ranking was given.
    """

    key: str
    traces: KeptTraces
    is_ranked: bool


@dataclass(frozen=True)
class Snapshot:
    """The registered content that a `StreamedCheck` looks for. It needs no ledger, and can be pickled.

    Attributes
    ----------
    key : str
        The `StreamedCheck.key`.
    registered : tuple of RegisteredContent
        The content.
    """

    key: str
    registered: tuple[RegisteredContent, ...]

    def evidence(self, y: Any, qid: Any, *, docid: Any | None = None, score: Any | None = None) -> Evidence | None:
        """Return what one part shows: changes nothing.

        Parameters
        ----------
        y : array of shape (n_rows,)
            The labels.
        qid : array of shape (n_rows,)
            The query of each row. All rows of a query are in this part.
        docid : array of shape (n_rows,), optional
            The document of each row.
        score : array of shape (n_rows,), optional
            The ranking to be scored; one that was already opened is accepted.

        Returns
        -------
        Evidence or None
            None if there is nothing to look for, or no row.

        Raises
        ------
        InvalidInput
            If the columns differ in length or hold wrong values.
        """
        if not self.registered or not len(y):
            return None
        data = fingerprint(None, y, qid, docid=docid)
        return Evidence(self.key, KeptTraces.of(data, self.registered, score=score), is_ranked=score is not None)


@dataclass
class StreamedCheck:
    """The check of data that comes in parts, each of whole queries.

    A registration that is made while the data is read counts from the next call on. It can be pickled, for workers.

    Parameters
    ----------
    check : ContaminationCheck
        The ledgers that the work must respect.
    registrations : frozenset of str
        The ids of the registrations that are looked for.

    Examples
    --------
    Without a ledger there is nothing to look for:

    >>> check = StreamedCheck(ContaminationCheck())
    >>> check.is_needed, check.evidence([1, 0], [7, 7], score=[0.2, 0.1])
    (False, None)
    >>> check.add(None)
    >>> check.refuse(action="evaluate")
    """

    check: ContaminationCheck
    registrations: frozenset[str] = frozenset()
    _parts: list[Evidence] = field(default_factory=list)

    @classmethod
    def current(cls) -> StreamedCheck:
        """Return the check against the ledgers of this process as they are now; cheap if there are none."""
        check = ContaminationCheck.current()
        ids = (one.id for _, one in check.contents() if one.retired is None)
        return cls(check, frozenset(ids))

    @property
    def is_needed(self) -> bool:
        """Whether anything is registered. If not, no part needs to be looked at."""
        return bool(self.registrations)

    @cached_property
    def key(self) -> str:
        """A text that changes with the registrations: evidence that was kept in a file holds for one key."""
        return hashlib.sha256(" ".join(sorted(self.registrations)).encode()).hexdigest()

    def evidence(self, y: Any, qid: Any, *, docid: Any | None = None, score: Any | None = None) -> Evidence | None:
        """Return what one part shows: changes nothing, and may be called in a worker.

        Parameters
        ----------
        y : array of shape (n_rows,)
            The labels.
        qid : array of shape (n_rows,)
            The query of each row. All rows of a query are in this part.
        docid : array of shape (n_rows,), optional
            The document of each row.
        score : array of shape (n_rows,), optional
            The ranking to be scored; one that was already opened is accepted.

        Returns
        -------
        Evidence or None
            None if there is nothing to look for, or no row.

        Raises
        ------
        InvalidInput
            If the columns differ in length or hold wrong values.
        """
        return self.snapshot().evidence(y, qid, docid=docid, score=score)

    def snapshot(self) -> Snapshot:
        """Return the registered content that is looked for, to be sent to machines that see no ledger."""
        return Snapshot(self.key, tuple(self._registered))

    def add(self, evidence: Evidence | None) -> None:
        """Add what a part showed. Parts may come in any order.

        Parameters
        ----------
        evidence : Evidence or None
            The result of `evidence`, also of another process.

        Raises
        ------
        InvalidInput
            If it was collected for other registrations, or the part holds queries of another part.
        """
        if evidence is None:
            return
        if evidence.key != self.key:
            raise InvalidInput("evidence: it was collected for other registrations; collect it again from the rows")
        self._parts.append(evidence)
        # Put together when the new parts keep as much as the old ones: then each query is sorted a few times at most.
        new = sum(part.traces.n_kept for part in self._parts[1:])
        if new >= max(_LEAST_JOINED, self._parts[0].traces.n_kept):
            self._parts = [self._together()]

    def refuse(self, *, action: str) -> None:
        """Refuse the data if all parts together are registered test content.

        Parameters
        ----------
        action : str
            The action to be refused, such as ``"evaluate"``.

        Raises
        ------
        GuardRefusal
            If the content is registered; its twin `GuardRefusalError` where it would hang a pool.
        """
        if not self._parts:
            return
        whole = self._together()
        traces = whole.traces
        later = [one.id for _, one in self.check.contents() if one.id not in self.registrations]
        outputs = (lambda: traces.ranked) if whole.is_ranked else None
        refuse_matches(self.check, traces, action, outputs, only_labels="documents" not in traces.rows, but=later)

    @property
    def _registered(self) -> list[RegisteredContent]:
        return [one for _, one in self.check.contents() if one.id in self.registrations]

    def _together(self) -> Evidence:
        if len({part.is_ranked for part in self._parts}) > 1:
            raise InvalidInput("score: some parts have scores and others none; give them for all parts or for none")
        traces = KeptTraces.together([part.traces for part in self._parts], self._registered)
        return Evidence(self.key, traces, self._parts[0].is_ranked)
