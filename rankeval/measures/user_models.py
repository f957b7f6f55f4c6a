"""Measures of users whose patience depends on their finds: C/W/L of Moffat, Thomas & Scholer.

A user at rank i reads on with chance C(i). The attention W(i) of rank i is proportional to the
product of C over the ranks above, and the value is the gain per rank read:

    rank              1       2            3
    gain g            1       0            0.5
    read on, C        C(1)    C(2)         C(3)
    attention, W      1       C(1)         C(1) C(2)            value = sum W g / sum W

Lists end at ``depth`` ranks; shorter lists are filled up with rows without gain (cwl_eval does so
at 1000).

The value depends on the order of tied rows by all gains above each, so the mean goes through their
orders: all of them for few tied rows, else a sample (see `rankeval.measures.tie_enumeration`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rankeval.errors import InvalidInput
from rankeval.join.flat import Floats, ratio
from rankeval.join.judged import Judged
from rankeval.measures.cascade import ranks
from rankeval.measures.family import GainMap, family
from rankeval.measures.graded import gains_of
from rankeval.measures.grammar import Chance, Depth, Positive, Share
from rankeval.measures.incomplete import persistence

DEPTH = 1000
"""Default number of ranks in measures without a cut-off: cwl_eval's value."""


def scaled_gains(judged: Judged, name: str, min_rel: float, max_rel: float) -> Floats:
    """Return the gain of each label, (rel - min_rel) / (max_rel - min_rel), 0 below min_rel."""
    level = np.asarray(judged.levels, dtype=np.float64)
    if not 0 <= min_rel < max_rel or level[-1] > max_rel:
        raise InvalidInput(
            f"{name}: expected 0 <= min_rel < max_rel and no grade above max_rel, since unjudged "
            f"documents gain 0 (found min_rel={min_rel}, max_rel={max_rel}, and a document of "
            f"grade {level[-1]:g})"
        )
    return (np.maximum(level, min_rel) - min_rel) / (max_rel - min_rel)


@family(
    "SDCG",
    title="scaled discounted cumulative gain",
    formula="sum to k of g(rel) / log2(1 + rank) over sum to k of 1 / log2(1 + rank), "
    "g = max(0, rel - min_rel) / (max_rel - min_rel)",
    source="Moffat & Zobel 2008; cwl_eval",
    doi="10.1145/1416950.1416952",
    linear=True,
    monotone="grade",
    spellings={"ir_measures": ("SDCG@{cutoff}",)},
)
def sdcg(judged: Judged, *, max_rel: float, min_rel: float = 0, cutoff: int) -> Floats:
    """DCG divided by the DCG of k documents of grade max_rel, even if the query has fewer of them.

    In [0, 1], higher is better; 0 without documents of a grade above min_rel.
    """
    discount = 1 / np.log2(ranks(judged, cutoff) + 1)
    value = judged.discounted(scaled_gains(judged, "SDCG", min_rel, max_rel), discount, cutoff)
    share: Floats = value / discount[:cutoff].sum()
    return share


@family(
    "gRBP",
    title="rank-biased precision with graded gains",
    formula="(1 - p) sum over ranks of g(rel) p^(rank - 1), "
    "g = (rel - min_rel) / (max_rel - min_rel)",
    source="Moffat & Zobel 2008",
    doi="10.1145/1416950.1416952",
    linear=True,
    monotone="grade",
)
def graded_rbp(
    judged: Judged, *, p: Share, max_rel: float, min_rel: float = 0, cutoff: int | None = None
) -> Floats:
    """Gain per row of users who read the next row with chance p.

    In [0, 1], higher is better; 0 without relevant documents. A gain is a share of the scale's
    greatest grade. RBP with gain="scaled" divides by the greatest grade of each query instead, as
    trec_eval 10 does.
    """
    gain = scaled_gains(judged, "gRBP", min_rel, max_rel)
    return (1 - p) * judged.discounted(gain, persistence(judged, p), cutoff)


@family(
    "INSQ",
    title="inverse squares",
    formula="sum over ranks of W g(rel), W proportional to 1 / (rank + 2T - 1)^2, up to rank depth",
    source="Moffat, Scholer & Thomas 2012",
    doi="10.1145/2407085.2407092",
    linear=True,
    monotone="grade",
    spellings={"ir_measures": ("INSQ",)},
)
def insq(
    judged: Judged, *, max_rel: float, min_rel: float = 0, T: Positive = 1, depth: Depth = DEPTH
) -> Floats:
    """Gain per row of users who want T documents and grow more patient with depth.

    In [0, 1], higher is better; 0 without relevant documents. Ranks below ``depth`` have no weight,
    as in cwl_eval.
    """
    weight = 1 / (ranks(judged, depth) + 2 * T - 1) ** 2
    value = judged.discounted(scaled_gains(judged, "INSQ", min_rel, max_rel), weight, depth)
    share: Floats = value / weight[:depth].sum()
    return share


@family(
    "NCG",
    title="normalised cumulative gain",
    formula="sum to k of gain(rel) over that of the best order",
    source="Järvelin & Kekäläinen 2002",
    doi="10.1145/582415.582418",
    linear=True,
    monotone="order",
)
def ncg(judged: Judged, *, gain: str | GainMap = "linear", cutoff: int | None = None) -> Floats:
    """Undiscounted gain within the cut-off, as a share of the greatest possible.

    In [0, 1], higher is better; 0/0 without relevant documents. ``gain`` as of DCG.
    """
    gains, flat = gains_of(judged, gain), np.ones(max(judged.longest, cutoff or 0))
    ideal = judged.ideal(gains, flat, cutoff)
    value = judged.discounted(gains, flat, cutoff)
    return ratio(value, ideal)


Continuation = Callable[[Floats, Floats], Floats]

_CELLS = 2**19
"""Cells of a table of gains: a bound on memory."""


def _gain_per_rank(judged: Judged, gain: Floats, depth: int, goes_on: Continuation) -> Floats:
    """Return the gain per rank read; ``goes_on`` takes gains, (n_queries, depth), and ranks."""
    value = np.empty(judged.n_queries)
    rank = np.arange(1, depth + 1, dtype=np.float64)
    step = max(1, _CELLS // depth)
    for first in range(0, judged.n_queries, step):
        some = slice(first, first + step)
        row = judged.offsets[:-1][some, None] + np.arange(depth)
        beyond = row >= judged.offsets[1:][some, None]
        row[beyond] = 0
        gains = gain[judged.code[row]] if len(judged.code) else np.zeros(row.shape)
        gains[beyond] = 0
        weight = np.ones_like(gains)
        np.cumprod(goes_on(gains, rank)[:, :-1], axis=1, out=weight[:, 1:])
        total = np.cumsum(weight * gains, axis=1)[:, -1]
        value[some] = total / np.cumsum(weight, axis=1)[:, -1]
    return value


@family(
    "INST",
    title="INST, the adaptive form of INSQ",
    formula="C(i) = ((i + T + T_i - 1) / (i + T + T_i))^2, T_i = T - gain so far",
    source="Bailey, Moffat, Scholer & Thomas 2015",
    doi="10.1145/2766462.2767728",
    expected="orders",
    spellings={"ir_measures": ("INST",)},
)
def inst(
    judged: Judged, *, max_rel: float, min_rel: float = 0, T: Positive = 1, depth: Depth = DEPTH
) -> Floats:
    """Gain per rank read by users who want T documents and lose patience as they find them.

    In [0, 1], higher is better; 0 without relevant documents.
    """

    def goes_on(gains: Floats, rank: Floats) -> Floats:
        ahead = rank + 2 * T - np.cumsum(gains, axis=1)
        return ((ahead - 1) / ahead) ** 2

    return _gain_per_rank(judged, scaled_gains(judged, "INST", min_rel, max_rel), depth, goes_on)


@family(
    "BPM",
    title="Bejeweled player model",
    formula="C(i) = 1 while the gain so far is below T and i < k, else 0",
    source="Zhang, Liu, Li, Zhang, Xu & Ma 2017, static form",
    doi="10.1145/3077136.3080841",
    expected="orders",
    spellings={"ir_measures": ("BPM@{cutoff}",)},
)
def bpm(
    judged: Judged, *, max_rel: float, min_rel: float = 0, T: Positive = 1, cutoff: int
) -> Floats:
    """Gain per rank read by users who stop when they have the gain T, or at rank k.

    In [0, 1], higher is better; 0 without relevant documents.
    """

    def goes_on(gains: Floats, rank: Floats) -> Floats:
        return ((np.cumsum(gains, axis=1) < T) & (rank < cutoff)).astype(np.float64)

    return _gain_per_rank(judged, scaled_gains(judged, "BPM", min_rel, max_rel), cutoff, goes_on)


def _nerr(
    judged: Judged,
    name: str,
    patience: Callable[[Floats], Floats],
    min_rel: float,
    max_rel: float,
    depth: int,
) -> Floats:
    """Return a NERR measure, where a gain g multiplies the chance to read on by 1 - g.

    ``patience`` gives the chance to read on after each rank without gain.
    """
    gain = scaled_gains(judged, name, min_rel, max_rel)
    return _gain_per_rank(judged, gain, depth, lambda gains, rank: patience(rank) * (1 - gains))


_nearly_expected = partial(
    family,
    source="Azzopardi, Mackenzie & Moffat 2021",
    doi="10.1145/3471158.3472239",
    expected="orders",
)


@_nearly_expected(
    "NERR8",
    title="nearly expected reciprocal rank, equation 8",
    formula="C(i) = 1 - g(i), to rank k",
    spellings={"ir_measures": ("NERR8@{cutoff}",)},
)
def nerr8(judged: Judged, *, max_rel: float, min_rel: float = 0, cutoff: int) -> Floats:
    """Gain per rank read by users who stop with a chance equal to the gain.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    return _nerr(judged, "NERR8", np.ones_like, min_rel, max_rel, cutoff)


@_nearly_expected(
    "NERR9",
    title="nearly expected reciprocal rank, equation 9",
    formula="C(i) = i / (i + 1) * (1 - g(i)), to rank k",
    spellings={"ir_measures": ("NERR9@{cutoff}",)},
)
def nerr9(judged: Judged, *, max_rel: float, min_rel: float = 0, cutoff: int) -> Floats:
    """Gain per rank of users who stop with a chance equal to the gain, or 1 / (i + 1) without it.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    return _nerr(judged, "NERR9", lambda rank: rank / (rank + 1), min_rel, max_rel, cutoff)


@_nearly_expected(
    "NERR10",
    title="nearly expected reciprocal rank, equation 10",
    formula="C(i) = p (1 - g(i))",
    spellings={"ir_measures": ("NERR10",)},
)
def nerr10(
    judged: Judged, *, max_rel: float, min_rel: float = 0, p: Chance = 0.9, depth: Depth = DEPTH
) -> Floats:
    """Gain per rank of users who stop with a chance equal to the gain, else read on with chance p.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    return _nerr(judged, "NERR10", lambda rank: np.full_like(rank, p), min_rel, max_rel, depth)


@_nearly_expected(
    "NERR11",
    title="nearly expected reciprocal rank, equation 11",
    formula="C(i) = ((i + 2T - 1) / (i + 2T))^2 (1 - g(i))",
    spellings={"ir_measures": ("NERR11",)},
)
def nerr11(
    judged: Judged, *, max_rel: float, min_rel: float = 0, T: Positive = 1, depth: Depth = DEPTH
) -> Floats:
    """Gain per rank of users who stop with a chance equal to the gain, with INSQ's patience.

    In [0, 1], higher is better; 0 without relevant documents.
    """

    def patience(rank: Floats) -> Floats:
        return ((rank + 2 * T - 1) / (rank + 2 * T)) ** 2

    return _nerr(judged, "NERR11", patience, min_rel, max_rel, depth)
