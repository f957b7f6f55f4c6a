"""Find the judgment of each retrieved document: matching by hash.

Both sides are rows grouped by query. Each row becomes one 64-bit key, and the keys of both sides
are sorted together:

    63                                               0
    [ query | hash of the document id | place in block ]     truth's places come first

Only keys whose highest bits another key has too are sorted: a third of the rows, which a table of
slots finds (bench_files). Two neighbours that agree in query and hash are a match: the place of one
is a row of the truth, that of the other a row of the ranking. Hashing and sorting numbers is
several times faster than numbering a million strings.

The trap: hashes collide, and a document may stand twice. Both show as neighbours of one side that
agree. Then, and if the ids of a match differ in any byte (all are compared), the ids are numbered
exactly and matched by their numbers (`_match_by_number`), which also says which document stands
twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval.io.columns import bytes_of, numbers_of, row_numbers
from rankeval.join.flat import NO_ROWS, Ints, offsets_of, query_blocks
from rankeval.join.repeats import refuse_repeats

if TYPE_CHECKING:
    from rankeval.collection.rows import RowSource

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_LAST = np.uint64(0xC4CEB9FE1A85EC53)
_MIX = np.uint64(33)
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(8)] + [2**64 - 1], dtype=np.uint64)

_WORD = 8
_BLOCK = 2**14
"""Ids hashed at a time."""
_ROWS = 2**15
"""Rows matched at a time, of whole queries: their keys stay in the processor's cache."""

_SLOT_BITS = 3
"""Bits of the slots of a key, beyond those that number the rows: few rows share one by chance."""

Hashes = NDArray[np.uint64]


def mixed(value: Hashes) -> Hashes:
    """Return numbers whose bits each depend on all bits of the value: MurmurHash3's finaliser."""
    value = value ^ (value >> _MIX)
    value *= _SPREAD
    value ^= value >> _MIX
    value *= _LAST
    value ^= value >> _MIX
    return value


def hash_ids(ids: pa.Array) -> Hashes:
    """Return a 64-bit hash of each id: equal ids have equal hashes in every column."""
    if pa.types.is_integer(ids.type):
        return mixed(numbers_of(ids).astype(np.int64).view(np.uint64))
    bounds, text = bytes_of(ids)
    hashes = np.empty(len(ids), dtype=np.uint64)
    for start in range(0, len(ids), _BLOCK):
        part = bounds[start : start + _BLOCK + 1]
        upto = int(part[-1]) + _WORD  # the last id's last word is read whole
        block = text[part[0] : upto]
        if upto > len(text):
            block = np.append(block, np.zeros(_WORD, np.uint8))
        sizes = np.diff(part)
        if (size := int(sizes[0])) and (sizes == size).all():
            hashes[start : start + _BLOCK] = _hash_even(block, size, len(sizes))
        else:
            sizes = sizes.astype(np.int64)
            hashes[start : start + _BLOCK] = _hash_block(block, offsets_of(sizes)[:-1], sizes)
    return hashes


def _hash_even(text: NDArray[np.uint8], size: int, n_ids: int) -> Hashes:
    # Ids of one length stand at even steps, which halves the time (bench_files).
    words = _words(text)
    hashes: Any = np.uint64(size * int(GOLDEN) % 2**64)
    for place in range(0, size, _WORD):
        word = words[place::size][:n_ids]
        if size < place + _WORD:
            word = word & _MASKS[size - place]
        hashes = _stirred(word, hashes)
    return mixed(hashes)


def _hash_block(text: NDArray[np.uint8], begin: Ints, length: Ints) -> Hashes:
    """Return the hashes of a block of ids, which stays in the processor's cache."""
    words = _words(text)
    hashes = length.astype(np.uint64)
    hashes *= GOLDEN
    least = int(length.min())
    for place in range(0, int(length.max()), _WORD):
        longer = slice(None) if place < least else np.flatnonzero(length > place)
        word = words[begin[longer] + place]
        if least < place + _WORD:  # some ids end within this word: the bytes behind are others'
            word &= _MASKS[np.minimum(length[longer] - place, _WORD)]
        hashes[longer] = _stirred(word, hashes[longer])
    return mixed(hashes)


def _words(text: NDArray[np.uint8]) -> Hashes:
    # Word i is the eight bytes that begin at byte i, wherever an id begins: they overlap.
    return np.ndarray(shape=(len(text) - _WORD + 1,), dtype="<u8", buffer=text.data, strides=(1,))


def _stirred(word: Hashes, hashes: Any) -> Hashes:
    # The hash so far goes into the next word, so that the order of words counts.
    word = word ^ hashes
    word *= _SPREAD
    word ^= word >> np.uint64(32)
    return word


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a match: the judgments or the ranking, rows grouped by query."""

    rows: Ints  # The rows that take part, query after query
    offsets: Ints  # (n_queries + 1,): Where each query begins among them
    docid: pa.Array  # Document ids of all rows of the side, in its own order
    hashes: Hashes  # Hashes of those ids
    qid: pa.Array  # Query ids of all rows, for messages
    name: str  # The side's name in messages
    source: RowSource | None = None  # The file or frame of the rows, for messages
    # The number of each row by its name, for messages
    values: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def part(self, queries: slice) -> slice:
        """Return where the rows of these queries stand among those that take part."""
        return slice(int(self.offsets[queries.start]), int(self.offsets[queries.stop]))

    def sizes(self, queries: slice) -> Ints:
        """Return the number of rows of each of these queries."""
        return np.diff(self.offsets[queries.start : queries.stop + 1])

    def problem(self, place: int) -> str:
        """Return a sentence on a document that is there twice, by the place of a row."""
        row = int(self.rows[place])
        docid, qid = self.docid[row].as_py(), self.qid[row].as_py()
        return f"{self.name}: document {docid!r} occurs twice in query {qid!r}"


def match_documents(truth: Side, ranked: Side) -> tuple[Ints, Ints]:
    """Find the judgments of retrieved documents: rows of the truth, and of the ranking."""
    blocks = [(NO_ROWS, NO_ROWS)]
    for queries in query_blocks(truth.offsets + ranked.offsets, _ROWS):
        pairs = _match_block(truth, ranked, queries)
        if pairs is None:
            return _match_by_number(truth, ranked)
        blocks.append(pairs)
    truth_row, ranked_row = (np.concatenate(side) for side in zip(*blocks, strict=True))
    judged, retrieved = _of_one_type(
        truth.docid.take(row_numbers(truth_row)), ranked.docid.take(row_numbers(ranked_row))
    )
    if judged.equals(retrieved):
        return truth_row, ranked_row
    return _match_by_number(truth, ranked)


def _match_block(truth: Side, ranked: Side, queries: slice) -> tuple[Ints, Ints] | None:
    """Return the rows of both sides with equal hashes in a query; None if two of one side agree."""
    of_truth, of_ranked = truth.rows[truth.part(queries)], ranked.rows[ranked.part(queries)]
    n_truth, n_rows = len(of_truth), len(of_truth) + len(of_ranked)
    n_queries = queries.stop - queries.start
    place_bits, query_bits = n_rows.bit_length(), (n_queries - 1).bit_length()
    place = np.uint64((1 << place_bits) - 1)
    key = np.empty(n_rows, dtype=np.uint64)
    # Rows are valid: other modes than "clip" copy the result once more.
    truth.hashes.take(of_truth, out=key[:n_truth], mode="clip")
    ranked.hashes.take(of_ranked, out=key[n_truth:], mode="clip")
    key >>= np.uint64(query_bits)
    if query_bits:  # a shift by all 64 bits is undefined: with one query there are no bits for it
        upper = np.arange(n_queries, dtype=np.uint64) << np.uint64(64 - query_bits)
        key[:n_truth] |= np.repeat(upper, truth.sizes(queries))
        key[n_truth:] |= np.repeat(upper, ranked.sizes(queries))
    key &= ~place
    key |= np.arange(n_rows, dtype=np.uint64)
    if n_rows <= 2 * _ROWS:  # of one long list, the slots would not stay in the cache
        key = _sharing(key, place_bits + _SLOT_BITS)
    key.sort()
    equal = np.flatnonzero(key[1:] ^ key[:-1] <= place)
    first, second = (key[equal] & place).view(np.int64), (key[equal + 1] & place).view(np.int64)
    # A true match is one place of the truth above one of the ranking; two of one side are a repeat
    # or a collision.
    if (first >= n_truth).any() or (second < n_truth).any():
        return None
    return of_truth[first], of_ranked[second - n_truth]


def _sharing(key: Hashes, slot_bits: int) -> Hashes:
    """Return the keys whose highest bits another key has too; all keys that agree are among them."""
    slot = (key >> np.uint64(64 - slot_bits)).view(np.int64)
    number = np.arange(len(key), dtype=np.int32)
    last = np.empty(1 << slot_bits, dtype=np.int32)
    last[slot] = number
    last_there = last[slot]
    is_shared = last_there != number
    is_shared[last_there[is_shared]] = True
    shared: Hashes = key[is_shared]
    return shared


def _of_one_type(truth: pa.Array, ranked: pa.Array) -> tuple[pa.Array, pa.Array]:
    if truth.type == ranked.type:
        return truth, ranked
    return truth.cast(pa.large_string()), ranked.cast(pa.large_string())


def _match_by_number(truth: Side, ranked: Side) -> tuple[Ints, Ints]:
    """Match by numbers of the ids: exact without hashes, and able to name a repeated document."""
    both = pa.chunked_array(_of_one_type(truth.docid, ranked.docid)).combine_chunks()
    both = both.dictionary_encode()
    number = numbers_of(both.indices).astype(np.int64)
    n_judged = len(truth.docid)
    keys = []
    for side, numbers in ((truth, number[:n_judged]), (ranked, number[n_judged:])):
        query = np.repeat(np.arange(len(side.offsets) - 1), np.diff(side.offsets))
        ids = numbers[side.rows]
        refuse_repeats(query, ids, side.rows, side.problem, side.source, **side.values)
        keys.append(query * len(both.dictionary) + ids)
    _, at, where = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return truth.rows[at], ranked.rows[where]
