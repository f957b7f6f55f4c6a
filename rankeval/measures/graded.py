"""Measures of graded relevance: discounted cumulative gain and its normalised form."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.join.flat import Floats, ratio
from rankeval.join.judged import Judged
from rankeval.measures.family import GainMap, family, mapped_gains
from rankeval.measures.grammar import Spelling

GREATEST_EXPONENT = 1000
"""The greatest grade for gains of 2^grade: the sum of such gains over a list is still a float."""

GAINS: dict[str, Callable[[Floats], Floats]] = {
    "linear": lambda level: level,
    "exp": lambda level: np.exp2(level) - 1,
}
"""Gain of a label by name: the label itself, or 2^label - 1 (Burges et al. 2005)."""


def _log2(rank: Floats, base: float) -> Floats:
    """Return 1/log_b(1 + rank), the discount of trec_eval, LightGBM and scikit-learn; nDCG is the same for any base."""
    # np.log2 is exact at powers of two, a quotient of logarithms is not.
    return 1 / np.log2(rank + 1) if base == 2 else np.log(base) / np.log(rank + 1)


def _log_rank(rank: Floats, base: float) -> Floats:
    """Return 1 before rank b, and 1/log_b(rank) from there (Järvelin & Kekäläinen 2002): the form of many lectures."""
    return np.where(rank < base, 1.0, np.log(base) / np.log(np.maximum(rank, base)))


DISCOUNTS: dict[str, Callable[[Floats, float], Floats]] = {"log2": _log2, "log_rank": _log_rank}
"""Discount of a rank by name: 1/log_b(1 + rank), or 1/log_b(rank) with no discount before rank b."""


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
        return GAINS[gain](np.maximum(level, 0))  # a label below zero means judged and not relevant
    return mapped_gains(level, gain)


def discounts_of(judged: Judged, discount: str, base: float, cutoff: int | None) -> Floats:
    """Return the discount of each rank down to the longest list of the chunk, retrieved or ideal."""
    chosen("discount", discount, DISCOUNTS)
    if base <= 1:
        raise InvalidInput(f"the base of the logarithm must be greater than 1 (found {base})")
    deepest = max(judged.longest, cutoff or 0)
    return _discounts(discount, base, max(deepest, 1).bit_length())[:deepest]


@lru_cache(maxsize=16)
def _discounts(discount: str, base: float, bits: int) -> Floats:
    """Return the discounts of the first 2^bits ranks. Chunks differ in length, so powers of two are cached."""
    factors = DISCOUNTS[discount](np.arange(1, 2**bits + 1, dtype=np.float64), base)
    factors.flags.writeable = False
    return factors


@family(
    "DCG",
    title="discounted cumulative gain",
    formula="sum over ranks of gain(rel) * discount(rank)",
    source="Järvelin & Kekäläinen 2002; Burges et al. 2005",
    doi="10.1145/582415.582418",
    bounds=(0.0, np.inf),
    linear=True,
    monotone="grade",
    spellings={
        "trec_eval": ("dcg",),
        "ranx": (
            "dcg@{cutoff}",
            "dcg",
            Spelling("dcg_burges@{cutoff}", {"gain": "exp"}),
            Spelling("dcg_burges", {"gain": "exp"}),
        ),
    },
)
def dcg(
    judged: Judged,
    *,
    gain: str | GainMap = "linear",
    discount: str = "log2",
    base: float = 2,
    cutoff: int | None = None,
) -> Floats:
    """Total gain of the ranked documents, discounted by rank.

    0 or greater, higher is better; 0 without relevant documents. ``gain`` is "linear", "exp" (2^rel - 1) or a map
    from label to gain; a label that the map does not name is its own gain, as in trec_eval, and a note counts such
    documents. ``discount`` is "log2" (1/log_b(1 + rank)) or "log_rank" (1/log_b(rank), ranks before b undiscounted: the
    form rel_1 + sum rel_i/log2(i) of 2002).
    """
    return judged.discounted(gains_of(judged, gain), discounts_of(judged, discount, base, cutoff), cutoff)


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
    base: float = 2,
    cutoff: int | None = None,
) -> Floats:
    """DCG of the best order of the judged documents: a property of the query, not of the ranking.

    0 or greater; 0 without relevant documents. Parameters as of DCG.
    """
    return judged.ideal(gains_of(judged, gain), discounts_of(judged, discount, base, cutoff), cutoff)


@family(
    "nDCG",
    title="normalised discounted cumulative gain",
    formula="DCG(k) / DCG(k) of the best order of the judged documents",
    source="Järvelin & Kekäläinen 2002; Burges et al. 2005",
    doi="10.1145/582415.582418",
    linear=True,
    monotone="order",
    spellings={
        "trec_eval": ("ndcg", "ndcg_cut_{cutoff}", "ndcg_{gain}"),
        "ir_measures": ("nDCG", "nDCG@{cutoff}", "NDCG", "NDCG@{cutoff}"),
        "ranx": (
            "ndcg@{cutoff}",
            "ndcg",
            Spelling("ndcg_burges@{cutoff}", {"gain": "exp"}),
            Spelling("ndcg_burges", {"gain": "exp"}),
        ),
    },
)
def ndcg(
    judged: Judged,
    *,
    gain: str | GainMap = "linear",
    discount: str = "log2",
    base: float = 2,
    cutoff: int | None = None,
) -> Floats:
    """DCG as a share of that of the best order.

    In [0, 1], higher is better; 0/0 without relevant documents. Parameters as of DCG.
    """
    gains, discounts = gains_of(judged, gain), discounts_of(judged, discount, base, cutoff)
    ideal = judged.ideal(gains, discounts, cutoff)
    value = judged.discounted(gains, discounts, cutoff)
    return ratio(value, ideal)
