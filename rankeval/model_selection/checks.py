"""Checks of measures before anything is fitted.

Inside a search an error comes late, and as a column of nan. So a scorer, an objective or a metric checks its measures
when it is made: what they need of the judgments, the parameters that a convention must bind, the bounds that it asks
for, and the ranges of parameters. Each kernel checks its own ranges; so it is called on one query of two rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput
from rankeval.evaluation.scoring import bound_measures
from rankeval.join.judged import NO_GROUPS, Judged
from rankeval.measures import LabelledMeasure, Measure
from rankeval.measures import measures as parse_measures


def check_measures(
    measures: str | Measure | Sequence[str | Measure], convention: str | Convention = "rankeval"
) -> list[LabelledMeasure]:
    """Return (name asked for, measure) for each measure, if rows with labels can be scored by all of them.

    Parameters
    ----------
    measures : str, Measure, or list of them
        The measures to compute.
    convention : str or Convention, default="rankeval"
        The rules by which rankings are scored.

    Raises
    ------
    UnknownName
        If a measure does not exist.
    InvalidInput
        If a measure cannot be computed from rows with labels: a parameter is missing or out of range, or the measure
        needs judgments by aspect.
    """
    rules = get_convention(convention)
    found = parse_measures(measures, rules)
    for _, one in found:
        if one.family.needs == "aspects":
            raise InvalidInput(
                f"{one} needs judgments by aspect (subtopic), and y holds one grade a row: choose another measure, or "
                "compute it by rankeval.evaluate(qrels, run)"
            )
    with np.errstate(all="ignore"):  # two rows without a relevant one give 0/0
        for one in bound_measures([one for _, one in found], rules):
            one.values(_two_rows())
    return found


def for_other_processes(measure: Any, convention: str | Convention) -> Any:
    """Return a measure in the form in which another process can read it.

    A worker does not know the name of a measure that a notebook declared. So a name is replaced by the measure itself,
    which travels with its function.

    Parameters
    ----------
    measure : object
        A parameter of an estimator: a name, a Measure or None. A name that does not exist is left to `check_measures`.
    convention : str or Convention
        The rules under which a name is read.
    """
    if not isinstance(measure, str):
        return measure
    try:
        found = parse_measures(measure, get_convention(convention))
    except InvalidInput:
        return measure
    return measure if all(one.family.is_known_everywhere for _, one in found) else found[0][1]


def _two_rows() -> Judged:
    """Return a query of two rows that are not relevant: the least that a kernel can be called with."""
    zeros = np.zeros(2, dtype=np.int64)
    return Judged(np.array([0, 2]), np.array([0]), zeros, np.array([[2]]), NO_GROUPS, queries=zeros[:1])


def signs(found: Iterable[tuple[str, Measure]]) -> dict[str, int]:
    """Return 1 for the name of each measure whose greater values are better, -1 for the others.

    Parameters
    ----------
    found : iterable of (str, Measure)
        The measures by name.
    """
    return {name: 1 if one.family.greater_is_better else -1 for name, one in found}
