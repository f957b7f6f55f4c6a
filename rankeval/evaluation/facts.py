"""Facts of each query, from which a subset and the union of parts get their counts and hashes.

    query    0/0 by measure    rows affected by rule    hashes of its judgments and its ranking
    q1       no   yes          ties 4, unjudged 7       9f3a...  27d0...
    q2       no   no           ties 0, unjudged 2       11c0...  8e41...
    all      0    1            ties 4, unjudged 9       digests: SHA-256 of ascending ids and hashes

A hash is that of its query alone: it does not depend on the queries beside it, on chunks, on the
order of the input or on the worker that computed it. So a subset, and the union of parts, have the
counts and the digests that their queries have when they are evaluated together.

The hash of a ranking adds up products, modulo 2^64. Whole labels from 0 to 255 are bytes, and eight
ranks are a word:

    labels      2 0 1 0 0 3 1 0 | 4 0 1
    words       mixed(word 0) * number(0) + mixed(word 1) * number(1)

Any other label is a zero byte there, and adds a number of its own times one of its rank. Zeros add
nothing, since all that they say is in the number of rows, which is mixed in. Numbers of open groups
of tied rows are added too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints, offsets_of
from rankeval.join.joined import Joined, digest_of_queries
from rankeval.join.judged import BELOW_ALL, Judged
from rankeval.join.matching import Hashes, mixed

Mask = NDArray[np.bool_]

QUERY_COUNTS = ("relevant", "retrieved", "tied", "judged")
"""Numbers of documents that are kept for each query."""

READINGS = ("judged", "relevant", "skipped")
"""Per query and measure: the share of documents within the cut-off that are judged; the score if
the others had the greatest grade of the collection; the score of the ranking without them."""

SEED = "seed "
"""The start of the names of the columns with the scores of a seed."""

_ARRAYS = ("undefined", "judgments", "rankings")
GRADES = ("least", "greatest")
"""The least and the greatest grade of a query; nan in files of older versions."""

KINDS = {"count": "query_counts", "rule": "rule_counts", "column": "columns"}
"""Facts that every query has a share of, and by their names in a file those that are mappings."""

_BYTES = 256
_STEP = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class QueryFacts:
    """What is known of each query of an evaluation, and of where the queries come from."""

    # (n_queries,): Numbers of documents: ``relevant``, ``retrieved``, and of the retrieved ones
    # ``tied`` and ``judged``.
    query_counts: Mapping[str, Ints]
    # (n_queries,): How many rows of the query each rule of the convention affected, or 1 if the
    # query itself was affected; under ``gain``, how many documents have a grade that a measure's
    # map of gains does not name; under ``constant``, 1 if all its rows have one score; under
    # ``fixed``, 1 if no ranking of its documents changes any of its scores.
    rule_counts: Mapping[str, Ints]
    undefined: Mask  # (n_queries, n_measures): Which values were 0/0
    # (n_queries,): A hash of the query's judgments, and of its ranking as the measures see it.
    judgments: Hashes
    rankings: Hashes
    # (n_queries,): The least and the greatest grade of the query's documents, with 0 for ranked
    # documents that are not judged; nan if it has no documents.
    least: Floats
    greatest: Floats
    # (n_queries, n_measures): What unjudged documents mean for the scores, by the names of
    # `READINGS`; empty if there are none.
    readings: Mapping[str, Floats] = field(default_factory=dict)
    # (n_queries,): A hash of the query's values in each column that a measure reads; the order of
    # rows does not matter.
    columns: Mapping[str, Hashes] = field(default_factory=dict)
    # (n_queries, n_measures): Which values are means over drawn orders of tied rows; None if all
    # are exact.
    drawn: Mask | None = None
    # (n_queries, n_measures): Standard errors of scores that are means over drawn orders, 0 for
    # exact scores; None if all are exact. They do not contain the uncertainty from the choice of
    # queries.
    errors: Floats | None = None
    # (n_queries, n_measures): The scores of each seed, if those of the evaluation are their mean.
    seeds: Mapping[int, Floats] = field(default_factory=dict)
    # How many rows or queries each rule affected of the queries that are left out.
    left_out: Mapping[str, int] = field(default_factory=dict)
    whole: int | None = None  # The number of queries of the evaluation that this is a subset of
    # Number of folds whose held-out queries are scored here, each by a model of its own; 0 if these
    # are not scores of a cross-validation. `rankeval.compare` notes that a test over several folds
    # is approximate.
    n_folds: int = 0
    # (n_rows,): The query of each evaluated row, as it was given: slices by row need it. It is not
    # saved.
    rows: Any = None
    # Signs of a mistake in the input. ``ids``: hardly a document is judged; an id of the run, one
    # of the qrels, and the likely cause or "". ``rank``: the scores run against a column of ranks.
    # ``clicks``: the gains are of clicks that depend on more than position and document; the
    # sentences. ``reading``: what was taken for something else, or left out, when the input was
    # read. ``sampled``: how many items were sampled for each list, and of how many.
    signs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "rows": None}

    def table(self) -> dict[str, NDArray[Any]]:
        """Return all that has a row for each query, by the names of the columns in a file."""
        table: dict[str, Any] = {name: getattr(self, name) for name in (*_ARRAYS, *GRADES)}
        for kind, field_name in KINDS.items():
            columns = getattr(self, field_name)
            table |= {f"{kind}:{name}": column for name, column in columns.items()}
        table |= self.readings
        table |= {f"{SEED}{seed}": scores for seed, scores in self.seeds.items()}
        if self.drawn is not None:
            table |= {"drawn": self.drawn, "error": self.errors}
        return table

    @classmethod
    def of(cls, table: Mapping[str, NDArray[Any]], **others: Any) -> QueryFacts:
        """Return facts from such a table, and others by their names."""
        fields: dict[str, Any] = {name: table[name] for name in _ARRAYS}
        fields |= {field_name: {} for field_name in KINDS.values()}
        for name, column in table.items():
            kind, _, key = name.partition(":")
            if kind in KINDS:
                fields[KINDS[kind]][key] = column
        unknown = np.full(len(table["judgments"]), np.nan)
        fields |= {name: table.get(name, unknown) for name in GRADES}
        fields["readings"] = {name: table[name] for name in READINGS if name in table}
        fields["seeds"] = {
            int(name.removeprefix(SEED)): scores
            for name, scores in table.items()
            if name.startswith(SEED)
        }
        return cls(**fields, drawn=table.get("drawn"), errors=table.get("error"), **others)

    def part(self, places: Ints | Mask | slice) -> QueryFacts:
        """Return the facts of some of the queries, without those of the others."""
        table = {name: column[places] for name, column in self.table().items()}
        if self.drawn is not None and not table["drawn"].any():
            del table["drawn"], table["error"]
        return QueryFacts.of(
            table, whole=self.whole, n_folds=self.n_folds, rows=self.rows, signs=self.signs
        )

    def totals(self) -> dict[str, int]:
        """Return how many rows or queries each rule affected, with those of left-out queries."""
        counts = self.rule_counts.items()
        return {rule: int(rows.sum()) + self.left_out.get(rule, 0) for rule, rows in counts}

    def with_totals(self, totals: Mapping[str, int]) -> QueryFacts:
        """Return these facts, with what the totals have more as the counts of left-out queries."""
        counts = self.rule_counts.items()
        others = {rule: totals[rule] - int(rows.sum()) for rule, rows in counts}
        return replace(self, left_out={rule: number for rule, number in others.items() if number})


def digest(queries: NDArray[Any], hashes: Hashes) -> str:
    """Return the SHA-256 of the ids of queries, ascending, and of their hashes."""
    checksum = digest_of_queries(queries)
    checksum.update(np.ascontiguousarray(hashes))
    return str(checksum.hexdigest())


def label_hashes(judged: Judged) -> Hashes:
    """Return a hash of each query's labels, in whatever order their documents stand.

    A sum over documents of a mixed label: sums of plain labels would be equal for {1, 1} and {2,
    0}.
    """
    label = np.asarray(judged.levels, dtype=np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        number = (label ^ _STEP) * np.uint64(0xFF51AFD7ED558CCD)
        number ^= number >> np.uint64(29)
        total: Hashes = judged.counts.view(np.uint64) @ (number * np.uint64(0xC4CEB9FE1A85EC53))
    return total


def column_hashes(column: Floats, joined: Joined) -> Hashes:
    """Return a hash of each query's values in a column; the order of rows does not matter."""
    # A sum of bits: it is there to show that two columns differ, and a better mixing takes longer
    # than the measure (bench_columns).
    rows = column if joined.order is None else column[joined.order]
    return np.add.reduceat(rows.view(np.uint64), joined.offsets[:-1])


def ranking_hashes(judged: Judged) -> Hashes:
    """Return a hash of each query's ranking: the label at each rank, and the open ties."""
    levels = np.asarray(judged.levels, dtype=np.float64)
    fits = (levels >= 0) & (levels < _BYTES) & (levels == np.floor(levels))
    # Chunks differ in length, so as many numbers as the next power of two are cached.
    number = _numbers(int(judged.n_retrieved.max(initial=0)).bit_length())
    total: Hashes = mixed(judged.n_retrieved.view(np.uint64))
    total += _sums_of_words(judged, np.where(fits, levels, 0).astype(np.uint8), number)
    others = ~fits & (levels > BELOW_ALL)  # a row without a judgment says no more than one judged 0
    if others.any():
        row, query, rank = judged.rows_of(others)
        of_label = mixed(levels.view(np.uint64) + _STEP)
        np.add.at(total, query, number[rank] * of_label[judged.code[row]])  # wraps, as a hash may
    start, end, of_group = judged.groups
    if len(start):
        begin = judged.offsets[of_group]
        tied = mixed(((start - begin) << 32 | (end - begin)).view(np.uint64) + _STEP)
        np.add.at(total, of_group, tied)
    return total


def _sums_of_words(judged: Judged, byte_of: NDArray[np.uint8], number: Hashes) -> Hashes:
    """Return the sum over each query's words of eight labels, times the number of each word."""
    lengths = judged.n_retrieved
    are_bytes = (byte_of == np.arange(len(byte_of), dtype=np.uint8)).all()
    if judged.by_rank is not None and are_bytes:
        # The zeros beyond the end of a list mix to zero (bench_arrays A, D).
        words = mixed(judged.by_rank.lists.view("<u8"))
        return words @ number[: words.shape[1]]
    code = judged.code
    if code.dtype != np.uint8 or not are_bytes:
        code = byte_of.take(code)
    n_words = -(-lengths // 8)
    padded = np.zeros(len(code) + 8, dtype=np.uint8)
    padded[: len(code)] = code
    at_each_row = np.ndarray(len(code), dtype="<u8", buffer=padded, strides=(1,))
    first = offsets_of(n_words)
    place = np.arange(first[-1]) - np.repeat(first[:-1], n_words)
    words = at_each_row[np.repeat(judged.offsets[:-1], n_words) + 8 * place]
    filled = n_words > 0
    last = first[1:][filled] - 1
    beyond = (8 * n_words - lengths)[filled].astype(np.uint64)  # bytes of the next query's rows
    words[last] &= np.uint64(2**64 - 1) >> np.uint64(8) * beyond
    sums = np.zeros(judged.n_queries, dtype=np.uint64)
    if len(words):
        sums[filled] = np.add.reduceat(mixed(words) * number[place], first[:-1][filled])
    return sums


@lru_cache(maxsize=32)
def _numbers(bits: int) -> Hashes:
    # Odd, so that a product loses no bit.
    numbers = mixed(np.arange(1, 2**bits + 1, dtype=np.uint64) * _STEP) | np.uint64(1)
    numbers.flags.writeable = False
    return numbers
