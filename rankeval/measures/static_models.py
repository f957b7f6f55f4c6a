"""Measures of users whose attention depends on the rank alone: sums of a weight for each rank times the gain there."""

from __future__ import annotations

import numpy as np

from rankeval.errors import InvalidInput
from rankeval.join.flat import Floats, ratio
from rankeval.join.judged import Judged
from rankeval.measures.cascade import ranks
from rankeval.measures.family import family
from rankeval.measures.gain_maps import GainMap
from rankeval.measures.graded import gains_of
from rankeval.measures.grammar import Count
from rankeval.measures.incomplete import persistence

DEPTH = 1000
"""Default number of ranks in measures without a cut-off: cwl_eval's value."""


def scaled_gains(judged: Judged, name: str, min_rel: float, max_rel: float) -> Floats:
    """Return the gain of each label, (rel - min_rel) / (max_rel - min_rel), 0 below min_rel.

    Parameters
    ----------
    judged : Judged
        The chunk.
    name : str
        The name of the measure, for messages.
    min_rel, max_rel : float
        Grades with gain 0 and gain 1.

    Raises
    ------
    InvalidInput
        If a label is above max_rel, or min_rel is not between 0 and max_rel.
    """
    level = np.asarray(judged.levels, dtype=np.float64)
    if not 0 <= min_rel < max_rel or level[-1] > max_rel:
        raise InvalidInput(
            f"{name}: expected 0 <= min_rel < max_rel and no grade above max_rel, since unjudged documents gain 0 "
            f"(found min_rel={min_rel}, max_rel={max_rel}, and a document of grade {level[-1]:g})"
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
    formula="(1 - p) sum over ranks of g(rel) p^(rank - 1), g = (rel - min_rel) / (max_rel - min_rel)",
    source="Moffat & Zobel 2008",
    doi="10.1145/1416950.1416952",
    linear=True,
    monotone="grade",
)
def graded_rbp(judged: Judged, *, p: float, max_rel: float, min_rel: float = 0, cutoff: int | None = None) -> Floats:
    """Gain per row of users who read the next row with chance p; a gain is a share of the scale's greatest grade.

    In [0, 1], higher is better; 0 without relevant documents. RBP with gain="scaled" divides by the greatest grade of
    each query instead, as trec_eval 10 does.
    """
    weight = persistence(judged, p)
    return (1 - p) * judged.discounted(scaled_gains(judged, "gRBP", min_rel, max_rel), weight, cutoff)


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
def insq(judged: Judged, *, max_rel: float, min_rel: float = 0, T: float = 1, depth: Count = DEPTH) -> Floats:
    """Gain per row of users who want T documents and grow more patient with depth.

    In [0, 1], higher is better; 0 without relevant documents. Ranks below ``depth`` have no weight, as in cwl_eval.
    """
    if T <= 0:
        raise InvalidInput(f"INSQ: T, the gain wanted, must be above 0 (found {T})")
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
