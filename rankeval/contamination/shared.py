"""Pairs of queries, one of some data and one that is registered, that have values in common.

Such queries have columns in common (`ColumnHits`), or the same id or documents (`SharedLabels`);
what the labels of the latter say, `contamination.evidence` weighs. They may be the registered
labels with grades mapped, or with rows of the lowest grade missing::

    registered grades   0   1   2   3   4      counts of a query   9   4   3   2   2
    label in the data   0   0   1   1   1      merged             13       7

An increasing map of grades, such as 2^y - 1 or y >= 2, merges neighbouring levels. If the data has
m of L levels, there are C(L - 1, m - 1) such maps. The counts of the shared queries choose one: for
each level of the data, the registered grade above which as many rows stand in most queries. The
second question leaves the lowest level open, as where negatives were sampled, or candidates added
that nobody judged: then the counts of all other levels are compared.

Each answer is weighed as `contamination.evidence` weighs plain counts, with the chances of the
merged ones, and pays for the choice: one bit, and log2 of twice the number of maps. So a Bayes
factor that reaches 2^b by the best of all answers still has a chance of at most 1.5 2^-b.

Rows that were dropped independently of their labels are no evidence: a shorter list with new clicks
fits a longer one.

**Rows of features that come back unchanged**, and whether that can be chance.

What a row is worth is learnt from the rows themselves, by two questions.

**One query.** x of the m rows of a query stand in one registered query. How likely is that, if each
row is drawn as rows recur between the registered queries (`evidence.Recurrence`)? So rows that
stood together and stand together again say it, even where each of them recurs, as with features of
documents alone. If queries of one side overlap as much among themselves, as searches for nearly the
same do, then only pairs that overlap more count.

**All queries.** Where lists are short, a query may have one row in common with a registered one,
and that alone says little. All of them together do. Take the rows that stand in exactly two
queries, of both sides together::

    both registered   both in the data   one of each
          2                  3                400        by chance about as many "one of each" as of the others

If queries of both sides were drawn from one source, a row that recurs would do so within a side as
often as between the sides. So no row needs to be known as rare: a catalogue shared by all users
shows in the first two columns. Where no row recurs at all, rows of half of the registered queries
are enough, however few these are.

The trap: rows recur together, as those of a query that was asked twice. So pairs of queries are
counted, not rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.evidence import (
    CHANGED,
    ENOUGH_BITS,
    IDENTIFIABLE_BITS,
    PERSISTENCE,
    SAME_GRADE,
    Recurrence,
    bayes_factor_bits,
    chances_of_labels,
    paid,
    rarity,
    ratios_of_counts,
    ratios_of_documents,
    ratios_of_positives,
    surprise,
)
from rankeval.contamination.query_values import LabelCounts, QueryValues, times_among
from rankeval.contamination.signature import NO_PAIRS, Pairs, Signature, Traces
from rankeval.join.matching import Hashes

_SHARE = 0.4
"""Share of a query's rows or documents that must be found; three quarters are where five of 20 were dropped."""


@dataclass(frozen=True, eq=False)
class SharedValues:
    """Pairs of queries that have values in common."""

    places: Pairs  # (n_pairs, 2): The pairs
    n: NDArray[
        np.int64
    ]  # (n_pairs,): How many values they have in common, and the evidence of these
    bits: NDArray[np.float64]
    recognised: NDArray[
        np.bool_
    ]  # (n_pairs,): Whether that is enough to take them for the same query
    # (n_common,): The pair of each common value, and the places of the value on both sides.
    pair: NDArray[np.int64]
    ours: NDArray[np.intp]
    theirs: NDArray[np.intp]

    @classmethod
    def of(cls, known: QueryValues, data: QueryValues, n_known: int) -> SharedValues:
        """Find the values that registered queries and queries of the data have in common."""
        places, pair, ours, theirs = known.found_in(data)
        n = np.bincount(pair, minlength=len(places))
        weights = np.ones(len(known)) if known.bits is None else known.bits
        bits = np.zeros(len(places))
        np.add.at(bits, pair, weights[ours])
        telling = known.per_query(n_known, weights > 0).astype(np.int64)[places[:, 1]]
        needed = np.maximum(np.minimum(2, telling), np.ceil(_SHARE * telling))
        return cls(places, n, bits, (bits >= IDENTIFIABLE_BITS) & (n >= needed), pair, ours, theirs)


@dataclass(frozen=True, eq=False)
class ColumnHits:
    """Queries with the labels of registered ones, and those of them that have columns in common."""

    pairs: Pairs  # (k, 2): Pairs with two columns in common or more
    # (k,): The evidence of the best column: columns of a query resemble each other, so their bits
    # do not add up.
    bits: NDArray[np.float64]
    # (n_registered,): How many queries of the data have the labels of each registered one that
    # keeps columns.
    candidates: NDArray[np.int64]

    @classmethod
    def of(cls, known: Signature, data: Traces, *, most_rows: int | None = None) -> ColumnHits:
        """Look for the columns that a registration keeps, in queries with the labels of registered ones.

        At first in so many rows of the queries whose labels are rarest, at all others only if these
        show anything.
        """
        none = cls(NO_PAIRS, np.zeros(0), np.zeros(known.n_queries, dtype=np.int64))
        kept, theirs = known.columns, data.label_counts
        if kept is None or not len(kept) or known.label_counts is None or theirs is None:
            return none
        keeps = kept.per_query(known.n_queries) > 0
        hashes, wanted_hashes = np.sort(theirs.hashes), known.label_counts.hashes
        n_with = np.searchsorted(hashes, wanted_hashes, side="right") - np.searchsorted(
            hashes, wanted_hashes
        )
        candidates = np.where(keeps, n_with, 0)
        wanted = np.isin(theirs.hashes, wanted_hashes[candidates > 0])
        looks = [wanted] if wanted.any() else []
        if most_rows is not None and int(theirs.sizes[wanted].sum()) > most_rows:
            place = np.flatnonzero(wanted)
            _, alike, times = np.unique(
                theirs.hashes[place], return_inverse=True, return_counts=True
            )
            place = place[np.argsort(times[alike], kind="stable")]
            looks.insert(0, np.zeros_like(wanted))
            looks[0][place[np.cumsum(theirs.sizes[place]) <= most_rows]] = looks[0][place[0]] = True
        hits = none
        for look in looks:
            columns = data.column_entries(look)
            if columns is None:
                return none
            found = SharedValues.of(kept, columns, known.n_queries)
            best = np.zeros(len(found.n))
            np.maximum.at(
                best, found.pair, np.zeros(0) if kept.bits is None else kept.bits[found.ours]
            )
            same = theirs.hashes[found.places[:, 0]] == wanted_hashes[found.places[:, 1]]
            two = (found.n >= 2) & same
            # Any column of the data may meet any that is kept.
            chances = (
                len(columns)
                / max(1, int(look.sum()))
                * kept.per_query(known.n_queries)[found.places[:, 1]]
            )
            hits = cls(found.places[two], (best - np.log2(np.maximum(chances, 1)))[two], candidates)
            if not len(hits.pairs) and look is not wanted:
                return none
        return hits

    def without(self, pairs: Pairs) -> ColumnHits:
        """Return the hits of other pairs."""
        other = ~_among(self.pairs, pairs)
        return ColumnHits(self.pairs[other], self.bits[other], self.candidates)


def _among(pairs: Pairs, others: Pairs) -> NDArray[np.bool_]:
    """Say which of these pairs stand among others too."""
    key = np.array([1 + max(pairs[:, 1].max(initial=0), others[:, 1].max(initial=0)), 1])
    return np.isin(pairs @ key, others @ key)


_LEAST_ALIKE = 0.1
"""Share of shared queries whose counts must be the same before a map is weighed at all."""


Agreement = tuple[NDArray[np.float64], NDArray[np.bool_]]
"""log l_i(e) of shared queries by their labels, and whether the sizes of the queries allow that they are the same."""


def _best(
    known: LabelCounts,
    chances: NDArray[np.float64],
    queries: NDArray[np.int64],
    theirs: LabelCounts,
) -> Agreement:
    """Return the best agreement over all maps of grades, minus the bits that the choice costs.

    Positives may be registered alone, and come back among rows of a lower level.
    """
    ours = known.take(queries)
    plain = ratios_of_counts(ours, theirs, chances[queries])
    best, most = (plain, ours.sizes == theirs.sizes), max(0.0, bayes_factor_bits(plain))
    theirs = theirs.occurring()
    if len(known.levels) and len(theirs.levels) and theirs.levels[0] < known.levels[0]:
        known = known.above(theirs.levels[0])
    if not 2 <= len(theirs.levels) <= len(known.levels):
        return best
    price = 2 + math.log2(math.comb(len(known.levels) - 1, len(theirs.levels) - 1))
    for ratios, fits in _mapped(known, queries, theirs):
        bits = bayes_factor_bits(ratios) - price
        if bits > most:
            best, most = (paid(ratios, price), fits), bits
    return best


def _mapped(
    known: LabelCounts, queries: NDArray[np.int64], theirs: LabelCounts
) -> Iterator[Agreement]:
    """Yield the agreement of merged labels, and that with fewer or more rows of the lowest level."""
    ours = known.take(queries)
    starts = _starts(ours, theirs)
    merged = ours.merged(starts, theirs.levels)
    if (merged.counts[:, 1:] == theirs.counts[:, 1:]).all(axis=1).mean() < _LEAST_ALIKE:
        return
    everywhere = known.merged(starts, theirs.levels)
    if not np.array_equal(known.levels, theirs.levels):  # otherwise these are the plain counts
        chances = chances_of_labels(everywhere)[queries]
        yield ratios_of_counts(merged, theirs, chances), merged.sizes == theirs.sizes
    rest = merged.sizes - merged.counts[:, 0]
    fits = rest <= theirs.sizes
    if (fits & (theirs.sizes != merged.sizes)).any():
        counts = merged.counts.copy()
        counts[fits, 0] = (theirs.sizes - rest)[fits]
        left = LabelCounts(np.where(fits, theirs.sizes, merged.sizes), theirs.levels, counts)
        chances = chances_of_labels(left, alike=everywhere.alike(but=0)[queries])
        yield ratios_of_counts(left, theirs, chances), fits


def _starts(ours: LabelCounts, theirs: LabelCounts) -> list[int]:
    """Return the place of the registered level at which each level of the data begins."""
    above, wanted = (
        side.counts[:, ::-1].cumsum(axis=1, dtype=np.int64)[:, ::-1] for side in (ours, theirs)
    )
    starts, n_levels = [0], len(theirs.levels)
    for level in range(1, n_levels):
        first, last = starts[-1] + 1, len(ours.levels) - (n_levels - level)
        agree = (above[:, first : last + 1] == wanted[:, [level]]).sum(axis=0)
        starts.append(first + int(agree.argmax()))
    return starts


@dataclass(frozen=True, eq=False)
class SharedLabels:
    """Queries with the same id or the same documents, and what their labels say."""

    pairs: Pairs  # (k, 2): The pairs, each registered query once
    # (k, len(CHANGED): Natural logarithms of l_i(e), as `contamination.evidence` defines them.
    ratios: NDArray[np.float64]
    # (k,): Whether the queries are the same if the labels are: by their size or their documents.
    fits: NDArray[np.bool_]
    by_documents: NDArray[np.bool_]  # (k,): Whether the documents tell the query from others
    # Whether all registered queries are told by their documents, and no label differs
    complete: bool
    # Whether queries with the same id have other relevant documents. Then their labels are no
    # evidence.
    other_documents: bool = False

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
    def of(
        cls,
        known: Signature,
        data: Traces,
        by_name: Pairs | None = None,
        *,
        for_looks: bool = False,
    ) -> SharedLabels:
        """Pair queries by their ids, or by another name, and by their documents, and weigh their labels.

        For looks the same queries with other grades are the same; to be refused they are other
        data.
        """
        ours, theirs, chances = known.label_counts, data.label_counts, known.chances
        by_id = same_ids(known, data) if by_name is None else by_name
        if ours is None or theirs is None or chances is None:
            return cls.none()
        shared = _same_documents(known, data, by_id, for_looks=for_looks)
        is_there = Positives.of(known, data, by_id).theirs >= 0
        other_documents = bool(len(is_there)) and float(is_there.mean()) < _SHARE
        alone = NO_PAIRS if other_documents else by_id[~np.isin(by_id[:, 1], shared.pairs[:, 1])]
        ratios, fits = _best(ours, chances, alone[:, 1], theirs.take(alone[:, 0]))
        all_told = int(shared.by_documents.sum()) == len(known.ids_in_order[0]) > 0
        none_differs = bool(np.isfinite(shared.ratios[:, 0]).all())
        return cls(
            np.concatenate([shared.pairs, alone]),
            np.concatenate([shared.ratios, ratios]),
            np.append(shared.fits, fits),
            np.append(shared.by_documents, np.zeros(len(alone), dtype=bool)),
            all_told and none_differs,
            other_documents,
        )

    @classmethod
    def none(cls) -> SharedLabels:
        """Return no pairs."""
        none = np.zeros(0, dtype=bool)
        return cls(NO_PAIRS, np.zeros((0, len(CHANGED))), none, none, complete=False)


def same_ids(known: Signature, data: Traces) -> Pairs:
    """Return the pairs of queries with the same id."""
    return _same(*known.ids_in_order, data.ids)


def same_texts(known: Signature, data: Traces, *, for_looks: bool = False) -> Pairs:
    """Return the pairs of queries with the same text, unless they recur with new labels, as those of a next month.

    No two registered queries have one text. For looks, the same text is the same query, whatever
    its labels.
    """
    if known.texts is None or data.texts is None:
        return NO_PAIRS
    order = np.argsort(known.texts)
    pairs = _same(order, known.texts[order], data.texts)
    return NO_PAIRS if len(pairs) and not for_looks and _recur(known, data, pairs) else pairs


def _recur(known: Signature, data: Traces, pairs: Pairs) -> bool:
    """Say whether the relevant documents of paired queries are evidence against; if none is the same, their labels.

    Documents may have other ids, or none. Then the labels of queries with as many rows as before
    speak.
    """
    pairs = pairs[np.unique(pairs[:, 1], return_index=True)[1]]
    found, ours, theirs = Positives.of(known, data, pairs), known.label_counts, data.label_counts
    kept = known.document_entries
    if kept is not None and (found.theirs >= 0).any():
        return bayes_factor_bits(_weighed(known, kept, data, found)[1]) < 0
    if ours is None or theirs is None:
        return False
    alike = ours.sizes[pairs[:, 1]] == theirs.sizes[pairs[:, 0]]
    return bayes_factor_bits(SharedLabels.of(known, data, pairs[alike]).ratios) < 0


def _same(order: NDArray[np.intp], hashes: Hashes, theirs: Hashes) -> Pairs:
    if not len(hashes):
        return NO_PAIRS
    place = np.minimum(np.searchsorted(hashes, theirs), len(hashes) - 1)
    same = np.flatnonzero(
        (hashes[place] == theirs) & (theirs != 0)
    )  # 0 for no text, or for several queries' text
    return np.stack([same, order[place[same]]], axis=1)


def shared_documents(known: Signature, data: Traces, by_id: Pairs) -> SharedValues | None:
    """Choose for each registered query the query of the data that has most of its documents.

    One common document is enough for pairs with the same id.
    """
    kept = known.document_entries
    documents = (
        None if kept is None else data.document_entries
    )  # which a fingerprint makes when it is asked
    if kept is None or documents is None:
        return None
    found = SharedValues.of(kept, documents, known.n_queries)
    order = np.flatnonzero(found.recognised | _among(found.places, by_id))
    order = order[np.lexsort((-found.n[order], found.places[order, 1]))]
    order = order[np.unique(found.places[order, 1], return_index=True)[1]]
    place = np.full(len(found.n), -1)
    place[order] = np.arange(len(order))
    common = np.flatnonzero(place[found.pair] >= 0)
    pairs = {name: getattr(found, name)[order] for name in ("places", "n", "bits", "recognised")}
    return SharedValues(
        **pairs,
        pair=place[found.pair][common],
        ours=found.ours[common],
        theirs=found.theirs[common],
    )


def _persistence(known: Signature, data: Traces) -> float:
    """Return the chance that a relevant document is relevant again, at most: clicks persist, and other grades do not.

    Where all relevant documents of both sides have one and the same label, it may be a click.
    """
    labels = [side.label_counts.levels for side in (known, data) if side.label_counts is not None]
    grades = np.unique(np.concatenate(labels))
    return PERSISTENCE if (grades > 0).sum() == 1 else SAME_GRADE


@dataclass(frozen=True, eq=False)
class Positives:
    """The relevant documents of paired queries."""

    # (n,): The places of the registered ones, and of the same in the query of the data; -1 for one
    # that is not relevant there, or not there.
    ours: NDArray[np.intp]
    theirs: NDArray[np.intp]
    added: NDArray[np.intp]  # (n_added,): The places of the others in the data
    query: NDArray[np.intp]  # (n_added,): The registered query of each of these
    # The share of relevant documents among those of the data; 0 if either side has relevant
    # documents only.
    prevalence: float = 0.0

    @classmethod
    def of(cls, known: Signature, data: Traces, pairs: Pairs) -> Positives:
        """Find them; of pairs of a query of the data and a registered one, each of the latter stands in one."""
        kept, documents, none = (
            known.document_entries,
            data.document_entries,
            np.zeros(0, dtype=np.intp),
        )
        if (
            kept is None
            or known.label_counts is None
            or not data.knows_documents
            or data.label_counts is None
        ):
            return cls(none, none, none, none)
        query = np.full(known.n_queries, -1)
        query[pairs[:, 1]] = pairs[:, 0]
        ours = np.flatnonzero(kept.positive(known.label_counts) & (query[kept.query] >= 0))
        if not documents:
            return cls(ours, np.full(len(ours), -1), none, none)
        relevant = documents.positive(data.label_counts)
        prevalence = 0.0 if known.has_positives_only else float(relevant.mean()) % 1
        theirs = documents.find(query[kept.query[ours]], kept.value[ours])
        theirs = np.where(relevant[theirs], theirs, -1)
        relevant[theirs[theirs >= 0]] = False
        registered = np.full(data.n_queries, -1)
        registered[pairs[:, 0]] = pairs[:, 1]
        added = np.flatnonzero(relevant & (registered[documents.query] >= 0))
        of_added = registered[documents.query[added]]
        known_up_to = known.greatest_documents[
            of_added
        ]  # of a sketch: others may be registered too
        near = documents.value[added] <= known_up_to
        return cls(ours, theirs, added[near], of_added[near], prevalence)


def _same_documents(
    known: Signature, data: Traces, by_id: Pairs, *, for_looks: bool
) -> SharedLabels:
    """Return the pairs with the same documents, and what their labels say.

    Judgments may hold positives only, here or there. So the relevant documents are also looked for
    alone, at the price of one bit, unless the labels of common documents contradict each other.
    Queries with the same id and no common document count then too: they have lost their positives.
    """
    plain = _same_labels(known, data, by_id)
    kept = known.document_entries
    pairs = np.concatenate([plain.pairs, by_id[~np.isin(by_id[:, 1], plain.pairs[:, 1])]])
    found, plain_bits = Positives.of(known, data, pairs), bayes_factor_bits(plain.ratios)
    contradicted = plain_bits < -math.log2(len(CHANGED)) and not for_looks
    if kept is None or not len(found.ours) or contradicted:
        return plain
    queries, ratios, kept_theirs = _weighed(known, kept, data, found, for_looks=for_looks)
    if bayes_factor_bits(ratios) - 1 <= max(0.0, plain_bits):
        return plain
    here = np.isin(pairs[:, 1], queries)
    pairs, recognised = (
        pairs[here],
        np.append(plain.by_documents, np.zeros(len(pairs) - len(plain.pairs), dtype=bool))[here],
    )
    ratios = paid(ratios, 1)[np.searchsorted(queries, pairs[:, 1])]
    return SharedLabels(
        pairs, ratios, np.isin(pairs[:, 1], kept_theirs), recognised, complete=False
    )


def _weighed(
    known: Signature, kept: QueryValues, data: Traces, found: Positives, *, for_looks: bool = False
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any]]:
    """Return registered queries, what their relevant documents say, and the queries that kept one."""
    query, value, is_there = kept.query[found.ours], kept.value[found.ours], found.theirs >= 0
    popularity = np.maximum(times_among(value, kept.value) / known.n_queries, found.prevalence)
    persistence = PERSISTENCE
    if for_looks:  # a query that has more relevant documents now is the same
        persistence = _persistence(known, data)
    else:
        none = np.zeros(len(found.added))
        query, is_there = np.append(query, found.query), np.append(is_there, none > 0)
        popularity = np.append(popularity, none)
    queries, ratios = ratios_of_positives(query, is_there, popularity, persistence)
    return queries, ratios, query[is_there]


def _same_labels(known: Signature, data: Traces, by_id: Pairs) -> SharedLabels:
    """Return the pairs that have documents in common, and what the labels of these say."""
    shared, labels, kept = (
        shared_documents(known, data, by_id),
        known.label_counts,
        known.document_entries,
    )
    documents = None if shared is None or not len(shared.places) else data.document_entries
    if shared is None or labels is None or documents is None or documents.label is None:
        return SharedLabels.none()
    if kept is None or kept.label is None:
        return SharedLabels.none()
    common, levels, other = shared.ours, labels.level_bytes, documents.label[shared.theirs]
    usual = int(levels[labels.most_frequent]) if len(levels) else -1
    _, ratios = ratios_of_documents(kept.query[common], kept.label[common], other, usual=usual)
    return SharedLabels(
        shared.places,
        ratios,
        np.ones(len(shared.places), dtype=bool),
        shared.recognised,
        complete=False,
    )


_BY_CHANCE = 0.25
"""Share of the pairs that may be chance, if all of them are to be named."""

_NEARER = 0.25
"""A pair is told by its overlap alone if it lacks less than this part of what the most alike of one side lack."""

_SOME, _OF_SEVERAL = 3, 6.0
"""So many pairs are told by so many bits each, beyond log2 of the number of all pairs."""

_LEAST = 10.0
"""Bits of a pair that is looked at."""

_AT_ONCE = 1 << 16
"""Rows of the data looked up at once."""

_LOOKED_AT = 100
"""Queries of the data that are compared with each other, or as many as are registered, if that is more."""


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Pairs of queries, one of the data and one that is registered, with unchanged rows in common."""

    together: Pairs  # (k, 2): Pairs that are told by their rows
    alone: Pairs  # (l, 2): Pairs that only all queries together tell

    @classmethod
    def of(cls, known: Signature, data: Traces) -> SharedRows:
        """Find the pairs."""
        rows, theirs, learnt = (
            known.row_entries,
            data.rows_told(by_signs=known.by_signs),
            known.recurrence,
        )
        if rows is None or theirs is None or learnt is None:
            return cls(NO_PAIRS, NO_PAIRS)
        found = Overlaps.of(rows, learnt, theirs)
        if not len(found.places) and not len(found.single):
            return cls(NO_PAIRS, NO_PAIRS)
        # Each of several pairs needs less than a single one: by chance, one in 64 data sets has one
        # pair.
        least = min(IDENTIFIABLE_BITS, _OF_SEVERAL + np.log2(known.n_queries * data.n_queries))
        several = found.take((found.bits >= least) & (found.share >= _SHARE))
        if _n_of_both(several.places) < _SOME:
            least = IDENTIFIABLE_BITS
        together = found.take(found.bits >= least)
        if len(together.places):
            together = together.take(
                together.share >= _least_overlap(together, known, rows, theirs)
            )
        sizes = rows.per_query(known.n_queries, learnt.times > 0), theirs.per_query(data.n_queries)
        of_two = np.bincount(found.row)[found.row] == 1
        alone = _is_more(
            found.single[of_two], (_n_pairs(rows, theirs), _n_pairs(theirs, rows)), sizes
        )
        if not alone and not rows.recur and not theirs.recur:
            alone = _n_of_both(found.single[of_two]) >= max(_SOME, known.n_queries / 2)
        return cls(together.places, np.unique(found.single, axis=0) if alone else NO_PAIRS)


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Pairs of queries that have rows in common."""

    places: Pairs  # (n_pairs, 2): Query of the data, known query: the pairs that may be told
    # (n_pairs,): The evidence of their common rows, and their share of the shorter query.
    bits: NDArray[np.float64]
    share: NDArray[np.float64]
    single: Pairs  # (n_single, 2): The pair of each common row that stands in no other known query
    row: NDArray[np.intp]  # (n_single,): Its place among the known rows

    @classmethod
    def of(cls, rows: QueryValues, learnt: Recurrence, theirs: QueryValues) -> Overlaps:
        """Find them, for some queries of the data at a time: a catalogue gives each row many pairs."""
        edges = {0, *np.searchsorted(theirs.query, theirs.query[::_AT_ONCE]).tolist(), len(theirs)}
        parts = [
            cls._of(rows, learnt, theirs.take(slice(*ends)))
            for ends in pairwise([*sorted(edges), len(theirs)])
        ]
        return cls(
            *(
                np.concatenate([getattr(part, column.name) for part in parts])
                for column in fields(cls)
            )
        )

    @classmethod
    def _of(cls, rows: QueryValues, learnt: Recurrence, theirs: QueryValues) -> Overlaps:
        places, pair, ours, _ = rows.found_in(theirs)
        n, n_known = np.bincount(pair, minlength=len(places)), int(rows.query.max(initial=0)) + 1
        first, last = (
            np.searchsorted(theirs.query, places[:, 0], side=side) for side in ("left", "right")
        )
        m = last - first
        bits = surprise(m, n, rows.per_query(n_known, learnt.chance)[places[:, 1]])
        once = learnt.times[ours] == 1
        share = n / np.minimum(m, rows.per_query(n_known, learnt.times > 0)[places[:, 1]])
        found = cls(places, bits, share, places[pair[once]], ours[once])
        return found.take(bits >= _LEAST)

    def take(self, some: NDArray[np.bool_]) -> Overlaps:
        """Return some of the pairs."""
        chosen = {name: getattr(self, name)[some] for name in ("places", "bits", "share")}
        return replace(self, **chosen)


def _least_overlap(
    overlaps: Overlaps, known: Signature, rows: QueryValues, theirs: QueryValues
) -> float:
    """Return the least overlap that tells a pair: all do if no two queries of one side overlap as much."""
    n_queries, n_known = int(theirs.query.max()) + 1, known.n_queries
    step = max(1, n_queries // max(n_known, _LOOKED_AT))
    some = theirs.take(theirs.query % step == 0)
    sides = (
        _within(rows, n_known, known.content),
        _within(rarity(some, some, n_queries // step), n_queries // step),
    )
    greatest = max(side.max(initial=0) for side in sides)
    sizes = np.ones(n_known), np.ones(n_queries)
    for level in np.unique(overlaps.share) if greatest else [0.0]:
        within = int((sides[0] >= level).sum()), int((sides[1] >= level).sum()) * step**2
        alike = overlaps.places[overlaps.share >= level]
        if not greatest or 1 - level < _NEARER * (1 - greatest) or _is_more(alike, within, sizes):
            return float(level)
    return np.inf


def _within(
    rows: QueryValues, n_queries: int, content: Hashes | None = None
) -> NDArray[np.float64]:
    """Return the overlaps of pairs of queries of one side that may be told, but for copies."""
    found = Overlaps.of(rows, Recurrence.of(rows, n_queries), rows)
    first, second = found.places.T
    is_copy = first == second if content is None else content[first] == content[second]
    return found.take((first <= second) & ~is_copy).share


def _is_more(
    between: Pairs, within: tuple[int, int], sizes: tuple[NDArray[Any], NDArray[Any]]
) -> bool:
    """Test whether more pairs of queries share rows across the sides than chance explains.

    A query counts once, and at most a quarter of the pairs may be chance.

    If both sides are drawn from one source, pairs within and between them stand as p^2 : 2 p (1 -
    p) : (1 - p)^2, like genotypes (Hardy and Weinberg). Rows of other sources may stand beside: so
    p is at least the registered share.
    """
    found = np.array([within[0], _n_of_both(between), within[1]], dtype=float)
    if not found[1]:
        return False
    n, m = (float(side.sum()) for side in sizes)
    p = max((found[0] + found[1] / 2) / found.sum(), n / (n + m))
    apart = [1 - float((side.astype(float) ** 2).sum()) / float(side.sum()) ** 2 for side in sizes]
    expected = np.array([p**2 * apart[0], 2 * p * (1 - p), (1 - p) ** 2 * apart[1]])
    expected = np.maximum(expected * found.sum() / expected.sum(), 1e-300)
    bits = float((found * np.log2(np.maximum(found, 1e-300) / expected)).sum())
    by_chance = 2 * np.sqrt(found[0] * found[2])
    return bool(
        bits >= ENOUGH_BITS and found[1] > expected[1] and by_chance <= _BY_CHANCE * found[1]
    )


def _n_of_both(pairs: Pairs) -> int:
    return min(len(np.unique(side)) for side in pairs.T)


def _n_pairs(rows: QueryValues, others: QueryValues) -> int:
    """Return how many pairs of queries of one side share a row that no third query of either side has."""
    values, queries = rows.of_two_queries
    return len(np.unique(queries[times_among(values, others.value) == 0], axis=0))
