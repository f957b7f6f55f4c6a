"""How the means of a comparison without pairs are read: one sentence, a table, a figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rankeval._checks import count
from rankeval.comparison.record import ComparisonRecord
from rankeval.errors import InvalidInput
from rankeval.measures import greater_is_better
from rankeval.render import comparisons
from rankeval.render.tables import DASH, Table, digits_for, number, telling

if TYPE_CHECKING:
    from rankeval.render.plots import Figure


def sentence(record: ComparisonRecord) -> str:
    """Write the mean of the main measure with its interval and the number of queries.

    Parameters
    ----------
    record : ComparisonRecord
        A comparison of one system.
    """
    row = _main(record)
    lower = "" if greater_is_better(row["measure"]) else " (less is better)"
    interval = f"{100 * record.confidence_level:g}% interval"
    if math.isnan(row["ci_low"]):
        ends = f"no {interval}"
    else:
        ends = f"{interval} {telling(row['ci_low'])} to {telling(row['ci_high'])}"
    value = f"{row['measure']} {telling(row['mean'])}{lower}"
    return " ".join(f"{row['system']}: {value} [{ends}], on {count(int(row['n_queries']), 'query')}.".split())


def table(record: ComparisonRecord, *, digits: int | None, **others: Any) -> Table:
    """Lay out a row per measure: system, mean and interval.

    Parameters
    ----------
    record : ComparisonRecord
        A comparison of one system.
    digits : int, optional
        Decimals; by default as many as the widest interval asks for.
    **others
        Arguments that a single system has no use for; they must be left out.

    Raises
    ------
    InvalidInput
        If one of them is given.
    """
    for name, value in others.items():
        if value:
            raise InvalidInput(f"{name}= needs two systems, and this comparison has one: leave it out")
    means = _means(record)
    places = digits_for((means["ci_high"] - means["ci_low"]) / 4) if digits is None else digits

    def written(column: str) -> list[str]:
        return [number(value, digits=places) for value in means[column]]

    ends = zip(written("ci_low"), written("ci_high"), means["ci_low"].notna(), strict=True)
    columns = {
        "measure": means["measure"],
        "system": means["system"],
        "queries": means["n_queries"].astype(str),
        "mean": written("mean"),
        f"{100 * record.confidence_level:g} % interval": [
            f"[{low}, {high}]" if known else DASH for low, high, known in ends
        ],
    }
    shown = pd.DataFrame(columns)
    return Table(shown, numeric=("queries", "mean"), caption=record.caption, notes=record.notes)


def figure(record: ComparisonRecord, measure: str | None) -> Figure:
    """Draw the means with their intervals.

    Parameters
    ----------
    record : ComparisonRecord
        A comparison of one system.
    measure : str, optional
        One measure; all by default.
    """
    means = _means(record)
    rows = means if measure is None else means[means["measure"] == measure]
    drawn = rows.assign(label=rows["system"], difference=rows["mean"], group=rows["measure"], better=True)
    level = f"{100 * record.confidence_level:g} % interval"
    return comparisons.intervals(drawn, xlabel=f"mean\nline: {level}", caption=record.caption)


def _means(record: ComparisonRecord) -> pd.DataFrame:
    if record.means is None or record.means.empty:
        raise InvalidInput("the comparison has neither pairs nor means: compare two systems, or open a plan of one")
    return record.means


def _main(record: ComparisonRecord) -> dict[Any, Any]:
    means = _means(record)
    of_main = np.flatnonzero((means["measure"] == record.main_measure).to_numpy())
    return dict(means.iloc[of_main[0]])
