"""Measures of graded relevance: discounted cumulative gain, normalised, and at points of the list.

The experimental measures of trec_eval need running sums of gains along each list, retrieved and
ideal. Queries of similar length share a table, a query a row, padded on the right to the length of
the longest list, retrieved or ideal:

    query 4    gain    2  0  1        ideal    2  1  1        listed   T  T  T
    query 9    gain    1  0  0        ideal    1  1  0        listed   T  T  F

The trap: `GainTable.gain` is the mean gain of the tied group, so that running sums are means over
orders. That is enough for linear measures (RnDCG); for the others (nDCGrel, G, binG) orders of tied
rows are scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.join.flat import Floats, Ints, ratio
from rankeval.join.judged import Column, Judged
from rankeval.measures.family import GainMap, family, mapped_gains
from rankeval.measures.grammar import Base, Spelling, fixing

GREATEST_EXPONENT = 1000
"""The greatest grade for gains of 2^grade: the sum of such gains over a list is still a float."""

GREATEST_GAIN = 1e280
"""The greatest gain: sums over lists and queries, also weighted by rank, are still floats."""

GAINS: dict[str, Callable[[Floats], Floats]] = {
    "linear": lambda level: level,
    "exp": lambda level: np.exp2(level) - 1,
}
"""Gain of a label by name: the label itself, or 2^label - 1 (Burges et al. 2005)."""


def _log2(rank: Floats, base: float) -> Floats:
    # nDCG is the same for any base. np.log2 is exact at powers of two, a quotient of logarithms is
    # not.
    return 1 / np.log2(rank + 1) if base == 2 else np.log(base) / np.log(rank + 1)


def _log_rank(rank: Floats, base: float) -> Floats:
    """Return 1 before rank b, then 1/log_b(rank): Järvelin & Kekäläinen 2002, many lectures."""
    return np.where(rank < base, 1.0, np.log(base) / np.log(np.maximum(rank, base)))


DISCOUNTS: dict[str, Callable[[Floats, float], Floats]] = {
    "log2": _log2,
    "log_rank": _log_rank,
    "none": lambda rank, _: np.ones_like(rank),
}
"""Discount of a rank by name: 1/log_b(1 + rank); 1/log_b(rank), none before rank b; none."""


def gains_of(judged: Judged, gain: str | GainMap) -> Floats:
    """Return the gain of each label of a chunk."""
    level = np.asarray(judged.levels, dtype=np.float64)
    if isinstance(gain, str):
        chosen("gain", gain, GAINS)
        if gain == "exp" and level[-1] > GREATEST_EXPONENT:
            raise InvalidInput(
                f"gain='exp': a document has grade {level[-1]:g}, and 2^{level[-1]:g} is too large",
                remedy="give gain='linear', or a gain for each grade, such as gain={1: 1, 2: 3}",
            )
        # A label below zero means judged and not relevant.
        gains = GAINS[gain](np.maximum(level, 0))
        return gains if gain == "exp" else summable(gains)
    return summable(mapped_gains(level, gain))


def summable(gains: Floats) -> Floats:
    """Return the gains; refuse them if their sum over a list may be too large for a float."""
    greatest = float(np.abs(gains).max(initial=0.0))
    if not greatest <= GREATEST_GAIN:  # not >: nan is refused too
        raise InvalidInput(
            f"found a gain of {greatest:g}, and sums of gains above {GREATEST_GAIN:g} are too "
            "large for a float",
            remedy="divide them by a number",
        )
    return gains


def discounts_of(judged: Judged, discount: str, base: float, cutoff: int | None) -> Floats:
    """Return the discount of each rank, down to the longest list, retrieved or ideal."""
    chosen("discount", discount, DISCOUNTS)
    deepest = max(judged.longest, cutoff or 0)
    return _discounts(discount, base, max(deepest, 1).bit_length())[:deepest]


@lru_cache(maxsize=16)
def _discounts(discount: str, base: float, bits: int) -> Floats:
    # Chunks differ in length, so the discounts of powers of two are cached.
    factors = DISCOUNTS[discount](np.arange(1, 2**bits + 1, dtype=np.float64), base)
    factors.flags.writeable = False
    return factors


_DCG_ELSEWHERE = {
    "gains linear": ("dcg_score", "DCG:top", "DCG:type=Base:top"),
    "gains 2^rel - 1": fixing({"gain": "exp"}, "DCGMetric", "DCG:type=Exp:top"),
}
_DCG_OF_RANX: tuple[str | Spelling, ...] = (
    "dcg@{cutoff}",
    "dcg",
    *fixing({"gain": "exp"}, "dcg_burges@{cutoff}", "dcg_burges"),
)


@family(
    "DCG",
    title="discounted cumulative gain",
    formula="sum over ranks of gain(rel) * discount(rank)",
    source="Järvelin & Kekäläinen 2002; Burges et al. 2005",
    doi="10.1145/582415.582418",
    bounds=(0.0, np.inf),
    linear=True,
    monotone="grade",
    spellings={"trec_eval": ("dcg",), "ranx": _DCG_OF_RANX},
    known_as=_DCG_ELSEWHERE,
)
def dcg(
    judged: Judged,
    *,
    gain: str | GainMap = "linear",
    discount: str = "log2",
    base: Base = 2,
    cutoff: int | None = None,
) -> Floats:
    """Total gain of the ranked documents, discounted by rank.

    0 or greater, higher is better; 0 without relevant documents. ``gain`` is "linear", "exp" (2^rel
    - 1) or a map from label to gain; a label that the map does not name is its own gain, as in
    trec_eval, and a note counts such documents. ``discount`` is "log2" (1/log_b(1 + rank)),
    "log_rank" (1/log_b(rank), ranks before b undiscounted: the form rel_1 + sum rel_i/log2(i) of
    2002) or "none" (cumulated gain).
    """
    discounts = discounts_of(judged, discount, base, cutoff)
    return judged.discounted(gains_of(judged, gain), discounts, cutoff)


@family(
    "IdealDCG",
    title="discounted cumulative gain of the best order",
    formula="DCG(k) of the judged documents in descending order of gain",
    source="Järvelin & Kekäläinen 2002",
    doi="10.1145/582415.582418",
    bounds=(0.0, np.inf),
    linear=True,
    spellings={"trec_eval": ("ideal_dcg",)},
)
def ideal_dcg(
    judged: Judged,
    *,
    gain: str | GainMap = "linear",
    discount: str = "log2",
    base: Base = 2,
    cutoff: int | None = None,
) -> Floats:
    """DCG of the best order of the judged documents: a property of the query, not of the ranking.

    0 or greater; 0 without relevant documents. Parameters as of DCG.
    """
    discounts = discounts_of(judged, discount, base, cutoff)
    return judged.ideal(gains_of(judged, gain), discounts, cutoff)


_NDCG_SPELLINGS: dict[str, tuple[str | Spelling, ...]] = {
    "trec_eval": ("ndcg", "ndcg_cut_{cutoff}", "ndcg_{gain}"),
    "ir_measures": ("nDCG", "nDCG@{cutoff}", "NDCG", "NDCG@{cutoff}"),
    "ranx": (
        "ndcg@{cutoff}",
        "ndcg",
        *fixing({"gain": "exp"}, "ndcg_burges@{cutoff}", "ndcg_burges"),
    ),
}
_NDCG_ELSEWHERE = {
    "gains linear": (
        "ndcg_score",
        "normalized_discounted_cumulative_gain",
        "RetrievalNormalizedDCG",
        "retrieval_normalized_dcg",
        "normalized_dcg",
        "NDCG:top",
        "NDCG:type=Base:top",
    ),
    "gains 2^rel - 1": fixing({"gain": "exp"}, "NDCGMetric", "NDCG:type=Exp:top"),
}


@family(
    "nDCG",
    title="normalised discounted cumulative gain",
    formula="DCG(k) / DCG(k) of the best order of the judged documents",
    source="Järvelin & Kekäläinen 2002; Burges et al. 2005",
    doi="10.1145/582415.582418",
    linear=True,
    monotone="order",
    spellings=_NDCG_SPELLINGS,
    known_as=_NDCG_ELSEWHERE,
)
def ndcg(
    judged: Judged,
    *,
    gain: str | GainMap = "linear",
    discount: str = "log2",
    base: Base = 2,
    cutoff: int | None = None,
) -> Floats:
    """DCG as a share of that of the best order.

    In [0, 1], higher is better; 0/0 without relevant documents. Parameters as of DCG.
    """
    gains, discounts = gains_of(judged, gain), discounts_of(judged, discount, base, cutoff)
    ideal = judged.ideal(gains, discounts, cutoff)
    value = judged.discounted(gains, discounts, cutoff)
    return ratio(value, ideal)


@family(
    "Gain",
    title="sum of a column",
    formula="sum over ranks of column * discount(rank)",
    source="cumulated gain of Järvelin & Kekäläinen 2002, of any column",
    doi="10.1145/582415.582418",
    bounds=(-np.inf, np.inf),
    linear=True,
    spellings={"shops": ("Revenue", "Revenue@{cutoff}")},
)
def column_gain(
    judged: Judged,
    *,
    column: Column,
    rel: float | None = None,
    discount: str = "none",
    base: Base = 2,
    cutoff: int | None = None,
) -> Floats:
    """Sum of a column of the rows, such as their price, discounted by rank if asked for.

    Any number, higher is better; 0 without rows. All rows count, unless ``rel`` says from which
    grade on they do: then 0 without such rows. ``discount`` and ``base`` as of DCG, without a
    discount by default.
    """
    discounts = discounts_of(judged, discount, base, cutoff)
    return summable(judged.discounted_rows(column, discounts, cutoff, rel=rel))


_CELLS = 2**18
"""Most cells of a table: it stays in the processor's cache."""


@dataclass(frozen=True, eq=False)
class GainTable:
    """Some queries by rank, a query a row."""

    query: Ints  # (n,): The numbers of the queries
    row: Ints  # (n, n_ranks): The row of the chunk at each rank; 0 beyond the end of the list
    listed: NDArray[np.bool_]  # (n, n_ranks): Whether the list has this rank
    gain: Floats  # (n, n_ranks): Gain at each rank; for tied rows the mean of their group
    ideal: Floats  # (n, n_ranks): Gain at each rank of the best order

    @cached_property
    def running(self) -> tuple[Floats, Floats]:
        """DCG and ideal DCG at each rank."""
        weight = DISCOUNTS["log2"](np.arange(1.0, self.gain.shape[1] + 1), 2)
        dcg, ideal = (np.cumsum(part * weight, axis=1) for part in (self.gain, self.ideal))
        return dcg, ideal

    def listed_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of the row at each rank, 0 beyond the end of the list."""
        if not len(values):
            return np.zeros(self.row.shape)
        return np.where(self.listed, values[self.row], values.dtype.type(0))


def _gain_tables(judged: Judged, gain: Floats) -> list[GainTable]:
    key = ("tables", gain.tobytes())
    tables: list[GainTable] = judged.once(key, lambda: list(_laid_out(judged, gain)))
    return tables


def _laid_out(judged: Judged, gain: Floats) -> Iterator[GainTable]:
    best_first = np.argsort(-gain, kind="stable")
    best_first = best_first[gain[best_first] > 0]
    upto = np.cumsum(judged.counts[:, best_first], axis=1)
    falling = np.append(gain[best_first], 0.0)
    gains = judged.groups.averaged(gain[judged.code])
    n_ranks = np.maximum(judged.n_retrieved, upto[:, -1] if upto.shape[1] else 0)
    shortest_first = np.argsort(n_ranks, kind="stable")
    for query in _of_similar_length(shortest_first, n_ranks[shortest_first]):
        rank = np.arange(int(n_ranks[query[-1]]))
        listed = rank < judged.n_retrieved[query, None]
        row = np.where(listed, judged.offsets[query, None] + rank, 0)
        # The gain at a rank of the best order: as many steps down `falling` as gains are used up
        # before the rank.
        place = np.zeros(row.shape, dtype=np.uint8 if len(falling) < 256 else np.int64)
        for used_up in upto[query].astype(np.int32).T:
            place += used_up[:, None] <= rank.astype(np.int32)
        table = GainTable(query, row, listed, np.zeros(row.shape), falling.take(place))
        yield replace(table, gain=table.listed_of(gains))


def _of_similar_length(queries: Ints, n_ranks: Ints) -> Iterator[Ints]:
    # n_ranks ascend, so the last query of a part sets the width of its table.
    first = 0
    while first < len(queries):
        last = first + 1
        while last < len(queries) and n_ranks[last] * (last + 1 - first) <= _CELLS:
            last += 1
        yield queries[first:last]
        first = last


def _in_order(values: Floats) -> Floats:
    # Added from the left: padding with zeros then does not change the last bit.
    return np.cumsum(values, axis=1)[:, -1] if values.shape[1] else np.zeros(len(values))


@family(
    "nDCGrel",
    title="nDCG averaged over relevant documents",
    formula="mean, over the documents with a gain, of nDCG at their rank; at the end of the list "
    "if not retrieved",
    source="Buckley, trec_eval",
    expected="orders",
    spellings={"trec_eval": ("ndcg_rel", "ndcg_rel_{gain}")},
)
def ndcg_rel(judged: Judged, *, gain: str | GainMap = "linear") -> Floats:
    """Mean of nDCG at the ranks of the documents with a gain above 0.

    In [0, 1], higher is better; 0/0 without such documents. ``gain`` as of DCG.
    """
    gains = gains_of(judged, gain)
    positive = (gains > 0)[judged.code]
    value = np.full(judged.n_queries, np.nan)
    for table in _gain_tables(judged, gains):
        if table.gain.shape[1] == 0:
            continue
        dcg, ideal = table.running
        counted = table.listed_of(positive)
        n_positive = (table.ideal > 0).sum(axis=1)
        some = n_positive > 0
        share = ratio(np.where(counted, dcg, 0.0), ideal, otherwise=0.0)
        last = ratio(dcg[:, -1], ideal[:, -1], otherwise=0.0)
        total = _in_order(share) + (n_positive - counted.sum(axis=1)) * last
        value[table.query[some]] = total[some] / n_positive[some]
    return value


@family(
    "RnDCG",
    title="nDCG averaged over the levels of gain",
    formula="mean of nDCG at the ranks where the best order falls to a lower gain, and at the end "
    "of a longer list",
    source="Buckley, trec_eval",
    linear=True,
    spellings={"trec_eval": ("Rndcg", "Rndcg_{gain}")},
)
def r_ndcg(judged: Judged, *, gain: str | GainMap = "linear", rel: float = 1) -> Floats:
    """Mean of nDCG at the last rank of each level of gain in the best order.

    In [0, 1], higher is better; 0/0 without documents with a label of at least ``rel``. The end of
    the list counts, too, if it is at least two ranks below the last gain of the best order.
    """
    gains = gains_of(judged, gain)
    steps = np.unique(gains[gains > 0])[::-1]
    columns = [judged.counts[:, gains == step].sum(axis=1) for step in steps]
    counted = np.column_stack(columns or [judged.n_queries * [0]])
    upto = np.cumsum(counted, axis=1)
    value = np.full(judged.n_queries, np.nan)
    for table in _gain_tables(judged, gains):
        query, n_ranks = table.query, table.gain.shape[1]
        some = (judged.n_relevant(rel)[query] > 0) & (upto[query, -1] > 0)
        if n_ranks == 0 or not some.any():
            continue
        dcg, ideal = table.running
        total, points = np.zeros(len(dcg)), np.zeros(len(dcg))
        ends = [(upto[query, step], counted[query, step] > 0) for step in range(len(steps))]
        # trec_eval counts the end of the list only if it is two ranks or more beyond the last gain.
        is_longer = judged.n_retrieved[query] >= upto[query, -1] + 2
        ends.append((np.full(len(dcg), n_ranks), is_longer))
        for rank, counts in ends:
            at = np.maximum(rank - 1, 0)[:, None]
            value_at, best_at = (
                np.take_along_axis(sums, at, axis=1)[:, 0] for sums in (dcg, ideal)
            )
            total += counts * ratio(value_at, best_at, otherwise=0.0)
            points += counts
        value[query[some]] = total[some] / points[some]
    return value


@family(
    "G",
    title="normalised gain",
    formula="sum of gain / log2(2 + cost - gain so far) / sum of all gains; cost adds "
    "max(ideal gain, 1) at each rank",
    source="Buckley, trec_eval",
    expected="orders",
    spellings={"trec_eval": ("G", "G_{gain}")},
)
def normalised_gain(judged: Judged, *, gain: str | GainMap = "linear") -> Floats:
    """Gain of the documents, discounted by the gain missed above them: between AP and nDCG.

    In [0, 1], higher is better; 0/0 without documents of a gain above 0. ``gain`` as of DCG.
    """
    gains = gains_of(judged, gain)
    value = np.full(judged.n_queries, np.nan)
    for table in _gain_tables(judged, gains):
        # The best order gains at least 1 at each rank.
        cost = np.cumsum(np.maximum(table.ideal, 1.0), axis=1) - np.cumsum(table.gain, axis=1)
        total = _in_order(ratio(table.gain, np.log2(2 + cost), otherwise=0.0))
        best = _in_order(table.ideal)
        some = best > 0
        value[table.query[some]] = total[some] / best[some]
    return value


@family(
    "binG",
    title="normalised gain, binary",
    formula="(1/R) sum over relevant rows of 1 / log2(2 + number of rows above that are not "
    "relevant)",
    source="Buckley, trec_eval",
    expected="orders of hits",
    spellings={"trec_eval": ("binG",)},
)
def binary_g(judged: Judged, *, rel: float = 1) -> Floats:
    """Gain of relevant documents, discounted by other rows above them: between AP and nDCG.

    In [0, 1], higher is better; 0/0 without relevant documents.
    """
    relevant = judged.relevant(rel)
    terms = 1 / np.log2(2 + relevant.rank - relevant.hits)
    return ratio(judged.sums(relevant.query, terms), judged.n_relevant(rel))
