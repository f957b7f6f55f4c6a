"""Find the judgment of each retrieved document: matching by hash.

Both sides are rows grouped by query. Each row becomes one 64-bit key, and the keys of both sides are sorted together:

    63                                               0
    [ query | hash of the document id | place in block ]        truth's places come before the ranking's

Two neighbours that agree in query and hash are a match: the place of one is a row of the truth, that of the other a
row of the ranking. Hashing and sorting numbers is several times faster than numbering a million strings.

The trap: hashes collide, and a document may stand twice. Both show as neighbours of one side that agree. Then, and if
the ids of a match differ in any byte (all are compared), the ids are numbered exactly and matched by their numbers
(`_match_by_number`), which also says which document stands twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval.io.columns import numbers_of, places_of
from rankeval.join.flat import Ints, query_blocks
from rankeval.join.grouping import refuse_repeats

if TYPE_CHECKING:
    from rankeval.io.formats import Source

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_LAST = np.uint64(0xC4CEB9FE1A85EC53)
_MIX = np.uint64(33)
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(8)] + [2**64 - 1], dtype=np.uint64)

_WORD = 8
_BLOCK = 2**14
"""Ids hashed at a time."""
_ROWS = 2**16
"""Rows matched at a time, of whole queries: their keys stay in the processor's cache."""

Hashes = NDArray[np.uint64]


def mixed(value: Hashes) -> Hashes:
    """Return numbers in which each bit depends on all bits of the value (the finaliser of MurmurHash3)."""
    value = value ^ (value >> _MIX)
    value *= _SPREAD
    value ^= value >> _MIX
    value *= _LAST
    value ^= value >> _MIX
    return value


def hash_ids(ids: pa.Array) -> Hashes:
    """Return a 64-bit hash of each id: equal ids have equal hashes in every column.

    Parameters
    ----------
    ids : Arrow array of string or int64
        Ids without nulls.

    Returns
    -------
    ndarray of uint64 of shape (n_rows,)
    """
    if pa.types.is_integer(ids.type):
        return mixed(numbers_of(ids).astype(np.int64).view(np.uint64))
    width = np.int64 if pa.types.is_large_string(ids.type) else np.int32
    _, offset_buffer, data = ids.buffers()
    bounds = np.frombuffer(offset_buffer, dtype=width)[ids.offset : ids.offset + len(ids) + 1]
    text = np.frombuffer(data or b"", dtype=np.uint8)
    found = np.empty(len(ids), dtype=np.uint64)
    for start in range(0, len(ids), _BLOCK):
        part = bounds[start : start + _BLOCK + 1].astype(np.int64)
        # Zeros behind the last id let its last word be read whole.
        block = np.append(text[part[0] : part[-1]], np.zeros(_WORD, dtype=np.uint8))
        found[start : start + _BLOCK] = _hash_block(block, part[:-1] - part[0], np.diff(part))
    return found


def _hash_block(text: NDArray[np.uint8], begin: Ints, length: Ints) -> Hashes:
    """Return the hashes of a block of ids, which stays in the processor's cache."""
    # Overlapping words: words[i] is the eight bytes that begin at byte i, wherever an id begins.
    words = np.ndarray(shape=(len(text) - _WORD + 1,), dtype="<u8", buffer=text.data, strides=(1,))
    found = length.astype(np.uint64)
    found *= _GOLDEN
    most = int(length.max(initial=0))
    least = int(length.min(initial=most))
    for place in range(0, most, _WORD):
        # Ids of one length stand at even steps, which halves the time (bench_files).
        if least == most:
            word = words[begin[0] + place :: most][: len(begin)].copy()
            if most < place + _WORD:
                word &= _MASKS[most - place]
            _stir(word, found)
            found = word
            continue
        longer = slice(None) if place < least else np.flatnonzero(length > place)
        word = words[begin[longer] + place]
        if least < place + _WORD:  # some ids end within this word: the bytes behind them are not theirs
            word &= _MASKS[np.minimum(length[longer] - place, _WORD)]
        _stir(word, found[longer])
        found[longer] = word
    return mixed(found)


def _stir(word: Hashes, found: Hashes) -> None:
    """Mix the hash of the words before into the next word, in place."""
    word ^= found
    word *= _SPREAD
    word ^= word >> np.uint64(32)


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a match: the judgments or the ranking, rows grouped by query.

    Attributes
    ----------
    rows : ndarray of int64
        The rows that take part, query after query.
    offsets : ndarray of int64 of shape (n_queries + 1,)
        Where each query begins among them.
    docid : Arrow array
        Document ids of all rows of the side, in its own order.
    hashes : ndarray of uint64
        Hashes of those ids.
    qid : Arrow array
        Query ids of all rows, for messages.
    name : str
        The side's name in messages.
    source : Source, optional
        The file that the rows were read from, for messages.
    """

    rows: Ints
    offsets: Ints
    docid: pa.Array
    hashes: Hashes
    qid: pa.Array
    name: str
    source: Source | None = None

    def part(self, queries: slice) -> tuple[Ints, Ints, Hashes]:
        """Return the rows of these queries, the query of each (0 for the first of them), and their hashes."""
        upto = self.offsets[queries.start : queries.stop + 1]
        rows = self.rows[upto[0] : upto[-1]]
        return rows, np.repeat(np.arange(len(upto) - 1), np.diff(upto)), self.hashes[rows]

    def says(self, place: int) -> str:
        """Say that the document of a row that takes part stands twice."""
        row = int(self.rows[place])
        return f"{self.name}: document {self.docid[row].as_py()!r} stands twice in query {self.qid[row].as_py()!r}"


def match(truth: Side, ranked: Side) -> tuple[Ints, Ints]:
    """Find the judgments of retrieved documents.

    Parameters
    ----------
    truth, ranked : Side
        Judgments and ranking, over the same queries.

    Returns
    -------
    tuple of ndarray of int64
        Rows of the truth, and for each the row of the ranking that it judges.

    Raises
    ------
    InvalidInput
        If a document stands twice in the judgments or in the ranking of a query.
    """
    none = np.empty(0, dtype=np.int64)
    found = [(none, none)]
    for queries in query_blocks(truth.offsets + ranked.offsets, _ROWS):
        pairs = _match_block(truth, ranked, queries)
        if pairs is None:
            return _match_by_number(truth, ranked)
        found.append(pairs)
    truth_row, ranked_row = (np.concatenate(side) for side in zip(*found, strict=True))
    if not _same_ids(truth.docid, truth_row, ranked.docid, ranked_row):
        return _match_by_number(truth, ranked)
    return truth_row, ranked_row


def _match_block(truth: Side, ranked: Side, queries: slice) -> tuple[Ints, Ints] | None:
    """Return the rows of both sides whose hashes agree within these queries; None if two of one side agree."""
    of_truth, of_ranked = truth.part(queries), ranked.part(queries)
    rows, query, hashes = (np.concatenate(both) for both in zip(of_truth, of_ranked, strict=True))
    place_bits = np.uint64(len(rows).bit_length())
    query_bits = np.uint64((queries.stop - queries.start - 1).bit_length())
    place = np.uint64((1 << int(place_bits)) - 1)
    # A shift by all 64 bits is undefined: with one query there are no bits for it.
    key = query.astype(np.uint64) << (np.uint64(64) - query_bits) if query_bits else np.uint64(0)
    key = (key | hashes >> query_bits) & ~place | np.arange(len(rows), dtype=np.uint64)
    key.sort()
    same = np.flatnonzero(key[1:] ^ key[:-1] <= place)
    upper, lower = (key[same] & place).view(np.int64), (key[same + 1] & place).view(np.int64)
    # A true match is one place of the truth above one of the ranking; two of one side are a repeat or a collision.
    n_truth = len(of_truth[0])
    if (upper >= n_truth).any() or (lower < n_truth).any():
        return None
    return rows[upper], rows[lower]


def _same_ids(one: pa.Array, one_rows: Ints, other: pa.Array, other_rows: Ints) -> bool:
    """Say whether the ids of these rows are the same on both sides, byte for byte."""
    mine, theirs = _of_one_type(one.take(places_of(one_rows)), other.take(places_of(other_rows)))
    return bool(mine.equals(theirs))


def _of_one_type(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return both columns of text as large_string if one of them is."""
    return (one, other) if one.type == other.type else (one.cast(pa.large_string()), other.cast(pa.large_string()))


def _match_by_number(truth: Side, ranked: Side) -> tuple[Ints, Ints]:
    """Match by numbers given to the ids: exact without hashes, and able to say which document stands twice."""
    both = pa.chunked_array(_of_one_type(truth.docid, ranked.docid)).combine_chunks().dictionary_encode()
    number = numbers_of(both.indices).astype(np.int64)
    keys = []
    for side, numbers in ((truth, number[: len(truth.docid)]), (ranked, number[len(truth.docid) :])):
        rows, query, _ = side.part(slice(0, len(side.offsets) - 1))
        refuse_repeats(query, numbers[rows], rows, side.says, side.source)
        keys.append(query * len(both.dictionary) + numbers[rows])
    _, at, where = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return truth.rows[at], ranked.rows[where]
