"""What tables and figures read from a comparison: its columns of means, its claims in both directions, its errors.

The table has a row per measure and pair; over several collections or slices, a first column names the collection.
Tables of papers turn this round, with a row per system and a column per measure::

    collection  measure  baseline  system  mean_baseline  mean_system
    cranfield   AP       bm25      rm3     .41            .43
    cisi        AP       bm25      rm3     .22            .25

                cranfield  cisi
    bm25        .41        .22
    rm3         .43        .25
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval.comparison.derived.query_scores import held_scores
from rankeval.comparison.record import ComparisonRecord
from rankeval.errors import InvalidInput
from rankeval.measures import greater_is_better
from rankeval.significance.columns import standard_error
from rankeval.significance.declarations import CLAIMS, Settings
from rankeval.significance.paired import t_interval


def clearest(table: pd.DataFrame, most: int) -> NDArray[np.bool_]:
    """Return which rows to show: all, or of more than so many those with the smallest p-values.

    Parameters
    ----------
    table : DataFrame
        Rows of the table of a comparison.
    most : int
        Number of rows to show at most.
    """
    chosen = np.zeros(len(table), dtype=np.bool_)
    # Rows without a p-value, such as those of small slices, come last; of equal ones the larger differences first.
    order = np.lexsort((-table["effect_size"].abs(), table["p_value"], table["p_adjusted"]))
    chosen[order[:most]] = True
    return chosen


def left_out(table: pd.DataFrame, most: int) -> list[str]:
    """Say how many rows `clearest` leaves out, if any."""
    if len(table) <= most:
        return []
    return [f"the {most:,} of {len(table):,} comparisons with the smallest p-values are shown; .table has all of them"]


def column_labels(record: ComparisonRecord) -> pd.Series[str]:
    """Return the column of the means of each row: its measure, its collection, or both if both vary."""
    table = record.table
    if not record.grouped:
        return table["measure"].astype(str)
    if len(table["measure"].unique()) == 1:
        return table[record.grouped].astype(str)
    return table[record.grouped].astype(str) + ": " + table["measure"].astype(str)


def column_measures(record: ComparisonRecord) -> dict[str, str]:
    """Return the measure of each column of means, those over all collections last."""
    table = record.table
    # Rows over all collections come first in the table, and averages last in papers.
    last = pd.Series([not part for part in record.part_of_row] if record.grouped else False, index=table.index)
    ordered = last.sort_values(kind="stable").index
    return dict(zip(column_labels(record)[ordered], table["measure"].astype(str)[ordered], strict=True))


def means(record: ComparisonRecord) -> pd.DataFrame:
    """Return the mean of each system in each column, the systems in the order of the comparison."""
    table, labels = record.table, column_labels(record)
    sides = [
        pd.DataFrame({"system": table[name], "column": labels, "mean": table[f"mean_{name}"]})
        for name in ("baseline", "system")
    ]
    # A row of one side, then of the other: so pairs (1, 2), (1, 3), (2, 3) give the order 1, 2, 3.
    each = pd.concat(sides).sort_index(kind="stable").drop_duplicates(["system", "column"])
    columns = {name: part.set_index("system")["mean"] for name, part in each.groupby("column", sort=False)}
    return pd.DataFrame(columns, index=each["system"].unique())[list(column_measures(record))]


def lower_columns(record: ComparisonRecord) -> list[str]:
    """Return the columns of means in which less is better."""
    return [label for label, measure in column_measures(record).items() if not greater_is_better(measure)]


def ordered_claims(record: ComparisonRecord) -> pd.DataFrame:
    """Return a row per ordered pair of systems and column: system, other, column, p, sign, shown, parted.

    A claim that holds in both directions, such as a difference, has a row for each. The sign is that of the gain; it is
    1 for the other claims, which are shown or not, and never shown of the worse system.
    """
    table = record.table
    claim = CLAIMS[record.claim]
    differs = not claim.hypotheses
    rows = pd.DataFrame(
        {
            "system": table["system"],
            "other": table["baseline"],
            "column": column_labels(record),
            "p": table["p_adjusted"],
            "sign": np.sign(record.gains) if differs else 1.0,
            "shown": record.shown,
            "parted": record.parted,
        }
    )
    if claim.sides == 1:
        return rows
    turned = rows.rename(columns={"system": "other", "other": "system"})
    return pd.concat([rows, turned.assign(sign=-rows["sign"] if differs else 1.0)], ignore_index=True)


def difference_errors(table: pd.DataFrame) -> pd.Series[float]:
    """Return the standard error of each difference; nan if it does not follow from the table."""
    # The effect size is mean / sd, so it holds the sd; of a difference of zero it says nothing.
    with np.errstate(divide="ignore", invalid="ignore"):
        errors: pd.Series[float] = (table["difference"] / table["effect_size"]).abs() / np.sqrt(table["n_queries"])
    return errors.where(np.isfinite(errors))


def mean_spreads(record: ComparisonRecord) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the standard error, and the ends of Student's interval, of each system's mean by each measure.

    Raises
    ------
    InvalidInput
        If there are no scores by query of a single collection.
    """
    if record.grouped:
        raise InvalidInput("spread= needs one collection: compare on each alone, and print each comparison's table")
    systems = list(means(record).index)
    if absent := [name for name in systems if name not in record.evaluations]:
        raise InvalidInput(
            f"spread= needs scores by query, and the comparison has none of {absent[0]!r} (from_json reads none)",
            remedy="compare again",
        )
    measures = list(record.table["measure"].unique())
    shared = held_scores(record, measures)
    settings = Settings("two-sided", record.alpha, 1, 0)
    error, low, high = (
        pd.DataFrame(part, index=shared.systems, columns=shared.measures).loc[systems]
        for part in (standard_error(shared.scores), *t_interval(shared.scores, settings))
    )
    return error, low, high
