"""Logarithms of AP and bpref: measures whose mean over queries is a geometric mean, or a mean of log odds.

The logarithm of a sum has no simple mean over the orders of tied rows, so their orders are scored (`tie_enumeration`).
"""

from __future__ import annotations

import numpy as np

from rankeval.join.flat import Floats
from rankeval.join.judged import Judged
from rankeval.measures.family import family
from rankeval.measures.incomplete import EPSILON, bpref
from rankeval.measures.ranked import LEAST_AP, average_precision


@family(
    "gm_AP",
    title="average precision, for the geometric mean",
    formula="log(max(AP, 0.00001)); the aggregate is exp of the mean",
    source="Robertson 2006",
    doi="10.1145/1183614.1183630",
    bounds=(float(np.log(LEAST_AP)), 0.0),
    aggregate="gmean",
    expected="orders of hits",
    monotone="order",
    spellings={"trec_eval": ("gm_map", "gm_ap"), "ir_measures": ("GMAP",)},
)
def gm_average_precision(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Logarithm of AP, bounded below: its mean over queries is the logarithm of a geometric mean.

    In [log 0.00001, 0], higher is better; the least value without relevant documents.
    """
    return np.log(np.maximum(np.nan_to_num(average_precision(judged, rel=rel, cutoff=cutoff)), LEAST_AP))


@family(
    "YAAP",
    title="yet another average precision",
    formula="log((1 + R * AP) / (1 + R - R * AP))",
    source="Robertson 2012",
    doi="10.1007/978-3-642-28997-2_14",
    bounds=(-np.inf, np.inf),
    expected="orders of hits",
    spellings={"trec_eval": ("yaap",)},
)
def yet_another_average_precision(judged: Judged, *, rel: float = 1) -> Floats:
    """Log odds of AP, smoothed by the number of relevant documents: values on a scale made for means over queries.

    Higher is better; 0 without relevant documents.
    """
    # Added one after the other, as trec_eval does.
    found = judged.relevant(rel)
    total = judged.sums(found.query, found.hits / found.rank)
    return np.log((1 + total) / (1 + judged.n_relevant(rel) - total))


@family(
    "gm_Bpref",
    title="binary preference, for the geometric mean",
    formula="log(max(Bpref, 0.00001)); the aggregate is exp of the mean",
    source="Buckley & Voorhees, trec_eval; Robertson 2006",
    doi="10.1145/1183614.1183630",
    bounds=(float(np.log(EPSILON)), 0.0),
    aggregate="gmean",
    expected="orders",
    spellings={"trec_eval": ("gm_bpref",)},
)
def gm_bpref(judged: Judged, *, rel: float = 1) -> Floats:
    """Logarithm of Bpref, bounded below: its mean over queries is the logarithm of a geometric mean.

    In [log 0.00001, 0], higher is better; the least value without relevant documents.
    """
    return np.log(np.maximum(np.nan_to_num(bpref(judged, rel=rel)), EPSILON))
