"""Which judgment belongs to which retrieved document.

Documents are matched by hashes of their ids within their queries, and then every match is verified by comparing the
ids themselves, so that the result is exact; where hashes collide, which is next to never, all ids are numbered
instead. Hashing and sorting numbers is several times faster than numbering a million strings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval.collection.judged import Ints
from rankeval.collection.ranking import sort_within
from rankeval.errors import InvalidInput

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(8)] + [2**64 - 1], dtype=np.uint64)

_BLOCK = 2**15
"""Ids hashed at a time."""

Hashes = NDArray[np.uint64]


def mixed(value: Hashes) -> Hashes:
    """Return numbers in which each bit depends on all bits of the value (the finaliser of MurmurHash3)."""
    value = value ^ (value >> np.uint64(33))
    value *= _SPREAD
    value ^= value >> np.uint64(33)
    value *= np.uint64(0xC4CEB9FE1A85EC53)
    value ^= value >> np.uint64(33)
    return value


def hash_ids(ids: pa.Array) -> Hashes:
    """Return a 64-bit hash of each id: equal ids have equal hashes, whatever column they stand in.

    Parameters
    ----------
    ids : Arrow array of string or int64
        Ids without nulls.

    Returns
    -------
    ndarray of uint64 of shape (n_rows,)
    """
    if pa.types.is_integer(ids.type):
        return mixed(ids.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))
    width = np.int64 if pa.types.is_large_string(ids.type) else np.int32
    _, offset_buffer, data = ids.buffers()
    bounds = np.frombuffer(offset_buffer, dtype=width)[ids.offset : ids.offset + len(ids) + 1]
    # Eight bytes at a time, from wherever they begin; zeros behind, so that the last word may be read whole.
    text = np.empty(int(bounds[-1]) + 8, dtype=np.uint8)
    text[:-8] = np.frombuffer(data, dtype=np.uint8, count=int(bounds[-1])) if data is not None else 0
    text[-8:] = 0
    words = np.ndarray(shape=(len(text) - 7,), dtype="<u8", buffer=text.data, strides=(1,))
    found = np.empty(len(ids), dtype=np.uint64)
    for start in range(0, len(ids), _BLOCK):
        part = bounds[start : start + _BLOCK + 1].astype(np.int64)
        found[start : start + _BLOCK] = _hash_block(words, part[:-1], np.diff(part))
    return found


def _hash_block(words: Hashes, begin: Ints, length: Ints) -> Hashes:
    """Return the hashes of texts that begin and end here; a block stays in the processor's cache."""
    found = length.astype(np.uint64) * _GOLDEN
    for place in range(0, int(length.max(initial=0)), 8):
        left = length - place
        least = int(left.min())
        longer = slice(None) if least > 0 else np.flatnonzero(left > 0)
        word = words[begin[longer] + place]
        if least < 8:
            word &= _MASKS[np.minimum(left[longer], 8)]
        word ^= found[longer]
        word *= _SPREAD
        word ^= word >> np.uint64(32)
        found[longer] = word
    return mixed(found)


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a match: rows grouped by query, and the document id of each row.

    Attributes
    ----------
    rows : ndarray of int64
        The rows that take part, query after query.
    query : ndarray of int64
        Query number of each of them, ascending.
    docid : Arrow array
        Document ids of all rows of the side, in its own order.
    hashes : ndarray of uint64
        Hashes of those ids.
    qid : Arrow array
        Query ids of all rows, for messages.
    name : str
        What to call the side in messages.
    """

    rows: Ints
    query: Ints
    docid: pa.Array
    hashes: Hashes
    qid: pa.Array
    name: str

    def offsets(self, n_queries: int) -> Ints:
        """Return where each query begins among the rows."""
        return np.concatenate(([0], np.cumsum(np.bincount(self.query, minlength=n_queries))))


def match(truth: Side, ranked: Side, n_queries: int) -> tuple[Ints, Ints]:
    """Find the judgments of retrieved documents.

    Parameters
    ----------
    truth, ranked : Side
        Judgments and ranking.
    n_queries : int
        Number of queries.

    Returns
    -------
    tuple of ndarray of int64
        Rows of the truth, and the row of the ranking that each of them judges.

    Raises
    ------
    InvalidInput
        When a document stands twice in the judgments or in the ranking of a query.
    """
    offsets = truth.offsets(n_queries), ranked.offsets(n_queries)
    query_bits = max(n_queries - 1, 1).bit_length()
    place_bits = int(max(np.diff(one).max(initial=1) for one in offsets)).bit_length()
    judged, judged_at = _sorted_keys(truth, offsets[0], query_bits, place_bits)
    found, found_at = _sorted_keys(ranked, offsets[1], query_bits, place_bits)
    if not len(found) or not len(judged):
        none = np.empty(0, dtype=np.int64)
        return none, none
    at = np.minimum(np.searchsorted(found, judged), len(found) - 1)
    both = np.flatnonzero(found[at] == judged)
    truth_row, ranked_row = truth.rows[judged_at[both]], ranked.rows[found_at[at[both]]]
    suspect = bool((judged[1:] == judged[:-1]).any() or (found[1:] == found[:-1]).any())
    if suspect or not _same_ids(truth.docid, truth_row, ranked.docid, ranked_row):
        return _match_by_number(truth, ranked)
    return truth_row, ranked_row


def _sorted_keys(side: Side, offsets: Ints, query_bits: int, place_bits: int) -> tuple[Hashes, Ints]:
    """Return keys of query and document in order, and where among the side's rows each stands.

    A key is the query, as much of the hash as there is room for, and the row's place in its query, which is sorted
    along in the low bits and then cut off.
    """
    low = (1 << place_bits) - 1
    hashed = side.hashes[side.rows] >> np.uint64(max(query_bits, 1))  # no sign: they are sorted as signed numbers
    key = sort_within(hashed.view(np.int64) & ~np.int64(low), offsets, int(np.diff(offsets).max(initial=0)), shift=0)
    at = np.repeat(offsets[:-1], np.diff(offsets)) + (key & low)
    query = side.query.astype(np.uint64) << np.uint64(64 - max(query_bits, 1))
    return (key.view(np.uint64) | query) >> np.uint64(place_bits), at


def _same_ids(one: pa.Array, one_rows: Ints, other: pa.Array, other_rows: Ints) -> bool:
    """Say whether the ids of these rows are the same on both sides, byte for byte."""
    mine, theirs = one.take(pa.array(one_rows)), other.take(pa.array(other_rows))
    if mine.type != theirs.type:
        wide = pa.int64() if pa.types.is_integer(mine.type) else pa.large_string()
        mine, theirs = mine.cast(wide), theirs.cast(wide)
    return bool(mine.equals(theirs))


def _match_by_number(truth: Side, ranked: Side) -> tuple[Ints, Ints]:
    """Match by numbers given to the ids: exact without hashes, and able to say which document stands twice."""
    left, right = truth.docid, ranked.docid
    if left.type != right.type:
        wide = pa.int64() if pa.types.is_integer(left.type) else pa.large_string()
        left, right = left.cast(wide), right.cast(wide)
    coded = pa.chunked_array([left, right]).combine_chunks().dictionary_encode()
    number = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    n_documents = len(coded.dictionary)
    truth_key = truth.query * n_documents + number[: len(left)][truth.rows]
    ranked_key = ranked.query * n_documents + number[len(left) :][ranked.rows]
    _refuse_twice(truth, truth_key)
    _refuse_twice(ranked, ranked_key)
    _, at, where = np.intersect1d(truth_key, ranked_key, assume_unique=True, return_indices=True)
    return truth.rows[at], ranked.rows[where]


def _refuse_twice(side: Side, key: Ints) -> None:
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(key[order][1:] == key[order][:-1])
    if len(twice):
        row = int(side.rows[order[twice[0] + 1]])
        raise InvalidInput(
            f"{side.name}: document {side.docid[row].as_py()!r} stands twice in query {side.qid[row].as_py()!r} "
            f"({len(twice)} such rows in all); keep one row for each document of a query"
        )
