"""The traces of streamed data that a verdict needs: of the queries that may be registered, and a hash of each other.

Data that comes in parts is judged as a whole, because evidence adds up over its queries. Which queries can matter is
seen in each part alone: those with the id of a registered query, that which has most documents of a registered one,
and all of them while they are no more than a registration has, since the labels of all may then be the evidence. So
the traces are as many as the ledger has queries, however long the data is::

    part 1   q1 q2 | q3 q4 q5      kept | a hash of the content of each other query
    part 2   q6    | q7
    all      q1 q6 | q2 q3 q4 q5 q7

What is dropped from a part could not be chosen from all rows either: the choice among all documents is a maximum, and
the pairs that lose against a pair of their own part lose in all data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import few
from rankeval.contamination.entries import Entries
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.label_counts import LabelCounts
from rankeval.contamination.register import RegisteredContent
from rankeval.contamination.shared_labels import SharedDocuments, same_ids
from rankeval.errors import InvalidInput
from rankeval.join.flat import group_rows
from rankeval.join.matching import Hashes


@dataclass(frozen=True, eq=False)
class KeptTraces:
    """The traces of some data without features, as far as they can be evidence. Kept queries come first.

    Attributes
    ----------
    names : ndarray of shape (n_kept,)
        The ids of the kept queries, ascending.
    ids : ndarray of uint64 of shape (n_kept,)
        A hash of each of them.
    label_counts : LabelCounts
        Their labels.
    document_entries : Entries, optional
        Their documents that registered queries have too; None if there are none.
    content : ndarray of uint64 of shape (n_queries,)
        The content of all queries, the kept ones first.
    ranked : mapping of str to ndarray of uint64 of shape (n_kept,)
        Kind of row -> hash of the ranking of each kept query; empty if no output was opened.
    rows, queries : tuple of str
        The kinds of content that rows and queries have.
    """

    names: NDArray[Any]
    ids: Hashes
    label_counts: LabelCounts
    document_entries: Entries | None
    content: Hashes
    ranked: Mapping[str, Hashes]
    rows: tuple[str, ...]
    queries: tuple[str, ...]

    X: None = None
    row_entries: None = None
    texts: None = None

    @property
    def n_queries(self) -> int:
        """Number of queries, kept or not."""
        return len(self.content)

    @property
    def n_kept(self) -> int:
        """Number of queries that are kept."""
        return len(self.names)

    def column_entries(self, wanted: NDArray[np.bool_]) -> None:  # noqa: ARG002 - there are no features
        """Return None: the data has no features."""
        return

    @classmethod
    def of(cls, data: Fingerprint, registered: Sequence[RegisteredContent], *, score: Any | None) -> KeptTraces:
        """Take the traces of one part.

        Parameters
        ----------
        data : Fingerprint
            A part of the data, without features.
        registered : sequence of RegisteredContent
            The collections that may be met.
        score : array of shape (n_rows,), optional
            The ranking to be scored.

        Raises
        ------
        InvalidInput
            If the scores are not one number a row.
        """
        if data.label_counts is None:
            raise InvalidInput("found none", argument="y", remedy="give the label of each row")
        kept, documents = _chosen(data, registered)
        opened = score is not None and any(one.opened for one in registered)
        ranked = data.outputs(score, kept) if opened else {}
        return cls(
            data.names[kept],
            data.ids[kept],
            data.label_counts.take(kept),
            _of_kept(data.document_entries if documents is not None else None, documents, kept),
            np.concatenate([data.content[kept], data.content[~kept]]),
            {kind: hashes[kept] for kind, hashes in ranked.items()},
            tuple(data.rows),
            tuple(data.queries),
        )

    @classmethod
    def together(cls, parts: Iterable[KeptTraces], registered: Sequence[RegisteredContent]) -> KeptTraces:
        """Return the traces of all parts, as `of` would take them from all rows at once.

        Parameters
        ----------
        parts : iterable of KeptTraces
            At least one; each query stands in one of them.
        registered : sequence of RegisteredContent
            The collections that may be met.

        Raises
        ------
        InvalidInput
            If a query stands in two parts, or some parts have documents and others none.
        """
        several = list(parts)
        if len({(part.rows, part.queries) for part in several}) > 1:
            raise InvalidInput("docid: some parts have documents and others none; give them for all parts or for none")
        names = np.concatenate([part.names for part in several])
        grouping = group_rows(names)
        if len(grouping.queries) < len(names):
            twice = grouping.queries[np.diff(grouping.offsets) > 1]
            raise InvalidInput(f"qid: queries stand in two parts ({few(twice.tolist())}); give each query in one part")
        order = np.arange(len(names)) if grouping.order is None else grouping.order
        content = [part.content[: part.n_kept] for part in several]
        rest = [part.content[part.n_kept :] for part in several]
        documents = _stacked(several)
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        kinds = several[0].ranked
        whole = cls(
            grouping.queries,
            np.concatenate([part.ids for part in several])[order],
            LabelCounts.together([part.label_counts for part in several]).take(order),
            None if documents is None else documents.renumbered(place),
            np.concatenate([np.concatenate(content)[order], *rest]),
            {kind: np.concatenate([part.ranked[kind] for part in several])[order] for kind in kinds},
            several[0].rows,
            several[0].queries,
        )
        return whole._without_others(registered)

    def _without_others(self, registered: Sequence[RegisteredContent]) -> KeptTraces:
        """Return the traces without those that the other parts have shown to be none."""
        kept, documents = _chosen(self, registered)
        of_kept = self.content[: self.n_kept]
        return replace(
            self,
            names=self.names[kept],
            ids=self.ids[kept],
            label_counts=self.label_counts.take(kept),
            document_entries=_of_kept(self.document_entries, documents, kept),
            content=np.concatenate([of_kept[kept], of_kept[~kept], self.content[self.n_kept :]]),
            ranked={kind: hashes[kept] for kind, hashes in self.ranked.items()},
        )


def _chosen(
    data: Fingerprint | KeptTraces, registered: Sequence[RegisteredContent]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return which queries may be evidence, and which of the documents; None if none."""
    # The labels of all queries are evidence only for a collection of as many queries or more.
    all_of_them = data.n_queries <= max((one.n_queries for one in registered), default=0)
    kept = np.full(len(data.names), all_of_them)
    documents: NDArray[np.bool_] | None = None
    for one in registered:
        by_id = same_ids(one.protected, data)
        kept[by_id[:, 0]] = True
        shared = SharedDocuments.of(one.protected, data, by_id)
        if shared is not None:
            kept[shared.found.places[shared.chosen, 0]] = True
            if documents is None:
                documents = np.zeros(len(data.document_entries or ()), dtype=bool)
            documents[shared.found.theirs[shared.common]] = True
    return kept, documents


def _of_kept(documents: Entries | None, chosen: NDArray[np.bool_] | None, kept: NDArray[np.bool_]) -> Entries | None:
    """Return the chosen documents, with the places of their queries among the kept ones."""
    if documents is None or chosen is None:
        return None
    found = documents.take(chosen)
    return replace(found, query=(np.cumsum(kept) - 1).astype(np.int32)[found.query])


def _stacked(parts: Sequence[KeptTraces]) -> Entries | None:
    """Return the documents of all parts, query by query."""
    first = np.cumsum([0, *(part.n_kept for part in parts)])
    found = [
        replace(part.document_entries, query=part.document_entries.query + np.int32(start))
        for part, start in zip(parts, first, strict=False)
        if part.document_entries is not None
    ]
    if not found:
        return None
    labels = [one.label for one in found if one.label is not None]
    return Entries(
        np.concatenate([one.query for one in found]),
        np.concatenate([one.value for one in found]),
        label=np.concatenate(labels),
    )
