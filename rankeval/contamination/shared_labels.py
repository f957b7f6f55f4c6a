"""Queries with the same id or the same documents, and what their labels say (`contamination.agreement`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.agreement import CHANGED, bayes_factor_bits, paid, ratios_of_documents
from rankeval.contamination.mapped_labels import Agreement
from rankeval.contamination.pairing import Pairs, SharedValues, Traces
from rankeval.contamination.signature import Signature


@dataclass(frozen=True, eq=False)
class SharedLabels:
    """Queries with the same id or the same documents, and what their labels say.

    Attributes
    ----------
    pairs : ndarray of int of shape (k, 2)
        The pairs, each registered query once.
    ratios : ndarray of float of shape (k, len(CHANGED))
        As `agreement` defines them.
    fits : ndarray of bool of shape (k,)
        Whether the queries are the same if the labels are: by their size or their documents.
    by_documents : ndarray of bool of shape (k,)
        Whether the documents tell the query from others.
    complete : bool
        Whether all registered queries are told by their documents, and no label differs.
    """

    pairs: Pairs
    ratios: NDArray[np.float64]
    fits: NDArray[np.bool_]
    by_documents: NDArray[np.bool_]
    complete: bool

    @property
    def agrees(self) -> NDArray[np.bool_]:
        """Whether the labels of each pair are evidence for."""
        best: NDArray[np.float64] = self.ratios.max(axis=1, initial=-np.inf)
        return best > 0

    @property
    def refuted(self) -> Pairs:
        """The pairs, if their labels are evidence against: then they are queries that recur with new labels.

        The values of their features and some of their labels recur too, and are no evidence.
        """
        return self.pairs if bayes_factor_bits(self.ratios) < 0 else self.pairs[:0]

    @classmethod
    def of(cls, known: Signature, data: Traces) -> SharedLabels:
        """Pair queries by their ids and documents, and weigh their labels.

        Parameters
        ----------
        known : Signature
            The registration.
        data : Fingerprint or Signature
            The data.
        """
        ours, theirs, chances = known.labels, data.label_counts, known.chances
        by_id = same_ids(known, data)
        if ours is None or theirs is None or chances is None:
            return cls.none()
        shared = _same_documents(known, data, by_id)
        alone = by_id[~np.isin(by_id[:, 1], shared.pairs[:, 1])]
        of_counts = Agreement.best(ours, chances, alone[:, 1], theirs.take(alone[:, 0]))
        return cls(
            np.concatenate([shared.pairs, alone]),
            np.concatenate([shared.ratios, of_counts.ratios]),
            np.append(shared.fits, of_counts.fits),
            np.append(shared.by_documents, np.zeros(len(alone), dtype=bool)),
            int(shared.by_documents.sum()) == len(known.ids_in_order[0]) > 0
            and bool(np.isfinite(shared.ratios[:, 0]).all()),
        )

    @classmethod
    def none(cls) -> SharedLabels:
        """Return no pairs."""
        none = np.zeros(0, dtype=bool)
        return cls(np.zeros((0, 2), dtype=np.int64), np.zeros((0, len(CHANGED))), none, none, complete=False)


def same_ids(known: Signature, data: Traces) -> Pairs:
    """Return the pairs of queries with the same id.

    Parameters
    ----------
    known : Signature
        The registration.
    data : Fingerprint or Signature
        The data.
    """
    order, ids = known.ids_in_order
    if not len(ids):
        return np.zeros((0, 2), dtype=np.int64)
    place = np.minimum(np.searchsorted(ids, data.ids), len(ids) - 1)
    same = np.flatnonzero(ids[place] == data.ids)
    return np.stack([same, order[place[same]]], axis=1)


@dataclass(frozen=True, eq=False)
class SharedDocuments:
    """For each registered query the query of the data that has most of its documents.

    Attributes
    ----------
    found : SharedValues
        All pairs that have documents in common.
    chosen : ndarray of int of shape (k,)
        The pairs among them that count, each registered query once, ascending.
    common : ndarray of int of shape (n_common,)
        The common documents of these pairs, as places in ``found.pair``.
    labels : tuple of ndarray of uint8 of shape (n_common,)
        The label of each of them, registered and in the data.
    """

    found: SharedValues
    chosen: NDArray[np.intp]
    common: NDArray[np.intp]
    labels: tuple[NDArray[np.uint8], NDArray[np.uint8]]

    @classmethod
    def of(cls, known: Signature, data: Traces, by_id: Pairs) -> SharedDocuments | None:
        """Choose the pairs: None if either side knows no documents with labels, or no pair counts.

        Parameters
        ----------
        known : Signature
            The registration.
        data : Fingerprint or Signature
            The data.
        by_id : ndarray of int of shape (n, 2)
            The pairs with the same id, which one common document is enough for.
        """
        kept = known.documents
        if kept is None or kept.label is None or known.labels is None:
            return None
        documents = data.document_entries  # which a fingerprint makes when it is asked
        if documents is None or documents.label is None:
            return None
        n = known.n_queries
        found = SharedValues.of(kept, documents, n)
        one = found.recognised | np.isin(found.places[:, 0] * n + found.places[:, 1], by_id[:, 0] * n + by_id[:, 1])
        # A registered query counts once: with the query that has most of its documents.
        order = np.flatnonzero(one)
        order = order[np.lexsort((-found.n[order], found.places[order, 1]))]
        order = order[np.unique(found.places[order, 1], return_index=True)[1]]
        chosen = np.zeros(len(one), dtype=bool)
        chosen[order] = True
        common = np.flatnonzero(chosen[found.pair])
        if not len(common):
            return None
        return cls(found, order, common, (kept.label[found.ours[common]], documents.label[found.theirs[common]]))


def _same_documents(known: Signature, data: Traces, by_id: Pairs) -> SharedLabels:
    """Return the pairs with the same documents, and what their labels say.

    Judgments may hold positives only. So documents that are missing are also taken for ones of the lowest label, at the
    price of one bit. Queries with the same id and no common document count then too: they have lost their positives.
    """
    shared, labels, kept = SharedDocuments.of(known, data, by_id), known.labels, known.documents
    if shared is None or labels is None or kept is None or kept.label is None or kept.bits is None:
        return SharedLabels.none()
    found, common, levels = shared.found, shared.found.ours[shared.common], labels.level_bytes
    usual = int(levels[labels.most_frequent]) if len(levels) else -1
    _, ratios = ratios_of_documents(kept.query[common], *shared.labels, usual=usual)
    pairs, told = found.places[shared.chosen], found.recognised[shared.chosen]
    plain = SharedLabels(pairs, ratios, np.ones(len(pairs), dtype=bool), told, complete=False)
    if len(levels) != 2 and usual not in levels[:1]:
        return plain
    theirs = np.full(len(kept), levels[0])
    theirs[common] = shared.labels[1]
    alone = by_id[~np.isin(by_id[:, 1], pairs[:, 1])]
    pairs = np.concatenate([pairs, alone])
    some = np.isin(kept.query, pairs[:, 1]) & (kept.bits > 0)
    queries, ratios = ratios_of_documents(kept.query[some], kept.label[some], theirs[some], usual=int(levels[0]))
    if bayes_factor_bits(ratios) - 1 <= max(0.0, bayes_factor_bits(plain.ratios)):
        return plain
    there = np.isin(pairs[:, 1], queries)
    pairs, ratios = pairs[there], paid(ratios, 1)[np.searchsorted(queries, pairs[there, 1])]
    fits, told = (np.append(one, np.zeros(len(alone), dtype=bool))[there] for one in (plain.fits, told))
    return SharedLabels(pairs, ratios, fits, told, complete=False)
