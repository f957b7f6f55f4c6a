"""Measures that rows with labels can be scored by, told before anything is fitted.

Inside a search an error comes late, and as a column of nan. So measures are tried on two rows when a scorer, an
objective or a metric is made: parameters that are missing or cannot be, rules of the convention that the measure does
not allow, judgments by aspect that rows do not have.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput
from rankeval.evaluation import score_arrays
from rankeval.measures import LabelledMeasure, Measure
from rankeval.measures import measures as find_measures

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_measures(
    measures: str | Measure | Sequence[str | Measure], convention: str | Convention = "rankeval"
) -> list[LabelledMeasure]:
    """Return (the name asked for, the measure) for one or several names, if rows can be scored by them.

    Parameters
    ----------
    measures : str, Measure, or list of them
        What to compute.
    convention : str or Convention, default="rankeval"
        How rankings are held against labels.

    Raises
    ------
    UnknownName
        When a measure does not exist.
    InvalidInput
        When one cannot be computed from rows with labels: a parameter is missing or cannot be, or it needs judgments
        by aspect.
    """
    found = find_measures(measures, convention)
    for _, one in found:
        if one.family.needs == "aspects":
            raise InvalidInput(
                f"{one} needs judgments by aspect (subtopic), and y holds one grade a row: choose another measure, or "
                "compute it by rankeval.evaluate(qrels, run)"
            )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # what two rows without a relevant one give is of no interest
        score_arrays(
            [0, 0], [1.0, 0.0], [0, 0], measures=[one for _, one in found], convention=convention, docid=["a", "b"]
        )
    return found


def signs(found: Iterable[tuple[str, Measure]]) -> dict[str, int]:
    """Return 1 for each name of a measure whose greater values are better, -1 for others.

    Parameters
    ----------
    found : iterable of (str, Measure)
        As `check_measures` returns them.
    """
    return {label: 1 if one.family.greater_is_better else -1 for label, one in found}
