"""Floors: the loss that must be ruled out on a slice of the queries, tested slice by slice.

A candidate that wins on the head queries may lose on the tail. A floor of .05 on the tail asks for the claim "not worse
by .05" there. Small slices show little: the table has the floor that an equal candidate passes four times in five.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rankeval._checks import check_number
from rankeval._registry import chosen
from rankeval.comparison import Comparison, compare
from rankeval.comparison.design import LEAST_QUERIES, TOGETHER
from rankeval.errors import InvalidInput

if TYPE_CHECKING:
    from rankeval.evaluation import Evaluation

Floors = float | Mapping[Any, float]


def floors_by_slice(floors: Floors | None, slices: Any) -> dict[str, float]:
    """Return the floors by the text of their value; one for all slices stands under "all".

    Parameters
    ----------
    floors : float or mapping of value to float, optional
        The floors.
    slices : object, optional
        The attribute of the queries, which is only asked whether it is there.

    Raises
    ------
    InvalidInput
        If one of the two is missing, or a floor is no number above 0.
    """
    if (slices is None) != (floors is None):
        found, lacking = ("floors", "slices") if slices is None else ("slices", "floors")
        raise InvalidInput(
            f"{found} is given without {lacking}: floors are the losses to rule out on slices of the queries, as in "
            'slices=kind_by_qid, floors={"tail": 0.05}'
        )
    if floors is None:
        return {}
    given = (
        {str(value): floor for value, floor in floors.items()} if isinstance(floors, Mapping) else {TOGETHER: floors}
    )
    if isinstance(floors, Mapping) and len(given) < len(floors):
        raise InvalidInput(f"floors names a slice twice: {list(floors)} are the same as text")
    if not given:
        raise InvalidInput(
            "floors is empty; give a loss for each slice that has a floor, or leave out slices and floors"
        )
    if isinstance(floors, Mapping) and TOGETHER in given:
        raise InvalidInput(f"floors has {TOGETHER!r}, which is no slice: claim= and margin= are about all queries")
    for value, floor in given.items():
        name = f"floors[{value!r}]" if isinstance(floors, Mapping) else "floors"
        check_number(name, floor)
        if floor <= 0:
            raise InvalidInput(f"{name} is {floor}; expected the smallest loss to rule out, above 0")
    return given


def tested_floors(
    systems: Mapping[str, Evaluation],
    baseline: str,
    slices: Any,
    floors: Mapping[str, float],
    options: Mapping[str, Any],
) -> pd.DataFrame:
    """Test "not worse" on each slice that has a floor: one comparison for all floors of the same size.

    Parameters
    ----------
    systems : mapping of str to Evaluation
        The candidate and the version in use.
    baseline : str
        Which of them is in use.
    slices : object
        The attribute of the queries.
    floors : mapping of str to float
        The result of `floors_by_slice`.
    options : mapping
        Options of `rankeval.compare`.

    Returns
    -------
    DataFrame
        As `Verdict.floors` describes it.
    """
    tables = []
    for floor in dict.fromkeys(floors.values()):
        compared = compare(systems, baseline=baseline, by=slices, claim="not_worse", margin=floor, **options)
        rows = _slice_rows(compared, floor)
        parts = rows["slice"].tolist()
        named = parts if TOGETHER in floors else [chosen("slice", one, parts) for one in floors if floors[one] == floor]
        tables.append(rows[rows["slice"].isin(named)])
    table = pd.concat(tables, ignore_index=True)
    _refuse_small(table)
    return table


def _slice_rows(compared: Comparison, floor: float) -> pd.DataFrame:
    """Return the rows of the slices, with gains instead of differences."""
    table = compared.table
    low = np.where(compared.directions > 0, table["ci_low"], -table["ci_high"])
    columns = {
        "slice": compared.part_of_row,
        "n_queries": table["n_queries"],
        "mean_holder": table["mean_baseline"],
        "mean_candidate": table["mean_system"],
        "gain": compared.gains,
        "gain_low": low,
        "floor": floor,
        "p_value": table["p_value"],
        "passes_if_equal": table["detectable_difference"],
        "passed": compared.shown,
    }
    return pd.DataFrame(columns)[(table[compared.grouped] != TOGETHER).to_numpy()]


def _refuse_small(table: pd.DataFrame) -> None:
    small = table[table["n_queries"] < LEAST_QUERIES]
    if len(small):
        found = ", ".join(f"{name!r} ({n})" for name, n in zip(small["slice"], small["n_queries"], strict=True))
        raise InvalidInput(
            f"slices with a floor need {LEAST_QUERIES} queries or more, found {found}: make larger slices, or name "
            'those that have a floor, as in floors={"tail": 0.05}'
        )
