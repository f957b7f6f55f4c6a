"""Refuse registered test content that is evaluated part by part, by the verdict on all parts together.

    check = StreamedCheck.current()
    evidence = check.evidence(y, qid, docid=docid, score=score)     for each part, in any process
    check.add(evidence)                                             in the process that began, in any order
    check.refuse(action="evaluate")                                 before any score is shown

The verdict is that of `ContaminationCheck.refuse` on all rows at once. Data that comes in parts is
judged as a whole, because evidence adds up over its queries. The id, the documents and the counts
of labels of a query are kept if it can matter: if it has the id or enough documents of a registered
query. While there are no more queries than a registration has, all are kept, since the labels of
all may then be the evidence. So the traces are about as many as the ledger has queries, however
long the data is::

    part 1   q1 q2 | q3 q4 q5      kept | a hash of the content of each other query
    part 2   q6    | q7
    all      q1 q6 | q2 q3 q4 q5 q7
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import few
from rankeval.contamination.fingerprint import Fingerprint, fingerprint
from rankeval.contamination.refusal import ContaminationCheck, refuse_matches
from rankeval.contamination.registered import RegisteredContent
from rankeval.contamination.shared import SharedValues, same_ids
from rankeval.contamination.signature import KeptTraces
from rankeval.errors import InvalidInput
from rankeval.join.flat import group_rows

_LEAST_JOINED = 1 << 16
"""Kept queries for which it pays to put parts together."""


@dataclass(frozen=True)
class Evidence:
    """What one part of some data shows; small enough to be sent between processes and kept in a file."""

    key: str  # The `StreamedCheck.key` for which it was collected
    traces: KeptTraces  # The traces
    is_ranked: bool  # Whether a ranking was given


@dataclass(frozen=True)
class SoughtContent:
    """The registered content that a `StreamedCheck` looks for. It needs no ledger, and can be pickled."""

    key: str  # The `StreamedCheck.key`
    registered: tuple[RegisteredContent, ...]  # The content

    def evidence(
        self, y: Any, qid: Any, *, docid: Any | None = None, score: Any | None = None
    ) -> Evidence | None:
        """Return what one part shows: changes nothing."""
        if not self.registered or not len(y):
            return None
        data = fingerprint(None, y, qid, docid=docid)
        return Evidence(
            self.key, kept_traces(data, self.registered, score=score), is_ranked=score is not None
        )


@dataclass
class StreamedCheck:
    """The check of data that comes in parts, each of whole queries.

    A registration that is made while the data is read counts from the next call on. It can be
    pickled, for workers.

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
        ids = (content.id for _, content in check.contents() if content.retired is None)
        return cls(check, frozenset(ids))

    @property
    def is_needed(self) -> bool:
        """Whether anything is registered. If not, no part needs to be looked at."""
        return bool(self.registrations)

    @cached_property
    def key(self) -> str:
        """A text that changes with the registrations: evidence that was kept in a file holds for one key."""
        return hashlib.sha256(" ".join(sorted(self.registrations)).encode()).hexdigest()

    def evidence(
        self, y: Any, qid: Any, *, docid: Any | None = None, score: Any | None = None
    ) -> Evidence | None:
        """Return what one part shows: changes nothing, and may be called in a worker."""
        return self.snapshot().evidence(y, qid, docid=docid, score=score)

    def snapshot(self) -> SoughtContent:
        """Return the registered content that is looked for, to be sent to machines that see no ledger."""
        return SoughtContent(self.key, tuple(self._registered))

    def add(self, evidence: Evidence | None) -> None:
        """Add what a part showed. Parts may come in any order."""
        if evidence is None:
            return
        if evidence.key != self.key:
            raise InvalidInput(
                "evidence: it was collected for other registrations; collect it again from the rows"
            )
        self._parts.append(evidence)
        # Put together when the new parts keep as much as the old ones: then each query is sorted a
        # few times at most.
        first, *new = (len(part.traces.names) for part in self._parts)
        if sum(new) >= max(_LEAST_JOINED, first):
            self._parts = [self._together()]

    def refuse(self, *, action: str) -> None:
        """Refuse the data if all parts together are registered test content."""
        if not self._parts:
            return
        whole = self._together()
        traces = whole.traces
        later = [
            content.id
            for _, content in self.check.contents()
            if content.id not in self.registrations
        ]
        outputs = (lambda: traces.ranked) if whole.is_ranked else None
        refuse_matches(self.check, traces, action, outputs, but=later)

    @property
    def _registered(self) -> list[RegisteredContent]:
        return [content for _, content in self.check.contents() if content.id in self.registrations]

    def _together(self) -> Evidence:
        if len({part.is_ranked for part in self._parts}) > 1:
            raise InvalidInput(
                "score: some parts have scores and others none; give them for all parts or for none"
            )
        traces = joined_traces([part.traces for part in self._parts], self._registered)
        return Evidence(self.key, traces, self._parts[0].is_ranked)


def kept_traces(
    data: Fingerprint, registered: Sequence[RegisteredContent], *, score: Any | None
) -> KeptTraces:
    """Take the traces of one part."""
    kept = _may_be_registered(data, registered)
    opened = score is not None and any(content.opened for content in registered)
    return KeptTraces.of(data, data.outputs(score, kept) if opened else {}).take(
        np.flatnonzero(kept)
    )


def joined_traces(
    parts: Sequence[KeptTraces], registered: Sequence[RegisteredContent]
) -> KeptTraces:
    """Return the traces of all parts, as they would be taken from all rows at once."""
    if len({part.knows_documents for part in parts}) > 1:
        raise InvalidInput(
            "docid: some parts have documents and others none; give them for all parts or for none"
        )
    whole = KeptTraces.together(parts)
    grouping = group_rows(whole.names)
    if len(grouping.queries) < len(whole.names):
        twice = grouping.queries[np.diff(grouping.offsets) > 1]
        raise InvalidInput(
            f"qid: queries occur in two parts ({few(twice.tolist())}); give each query in one part"
        )
    order = np.arange(len(whole.names)) if grouping.order is None else grouping.order
    # Together they may have more queries than a registration has.
    return whole.take(order[_may_be_registered(whole, registered)[order]])


def _may_be_registered(
    data: Fingerprint | KeptTraces, registered: Sequence[RegisteredContent]
) -> NDArray[np.bool_]:
    """Return which queries may be evidence: by their ids, by their documents, or while they are few all of them."""
    # The labels of all queries are evidence only for a collection of as many queries or more.
    few_enough = data.n_queries <= max((content.n_queries for content in registered), default=0)
    kept = np.full(len(data.names), few_enough)
    for known in (content.protected for content in registered):
        kept[same_ids(known, data)[:, 0]] = True
        if known.document_entries is not None and data.document_entries is not None:
            shared = SharedValues.of(known.document_entries, data.document_entries, known.n_queries)
            kept[shared.places[shared.recognised, 0]] = True
    return kept
