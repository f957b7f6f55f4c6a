"""Long tables of comparisons laid out for reading: the columns, and which values are emphasised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval.render.tables import Table, best_and_second, number, p_value, signed

if TYPE_CHECKING:
    import pandas as pd


def by_comparison(table: pd.DataFrame, *, level: float) -> Table:
    """Lay out a row per comparison with all its figures.

    Parameters
    ----------
    table : DataFrame
        With the columns of `rankeval.Comparison.table`.
    level : float
        Confidence level, for the header.

    Returns
    -------
    Table
        Without caption and notes.
    """
    import pandas as pd

    ends = zip(table["ci_low"], table["ci_high"], strict=True)
    counts = zip(table["wins"], table["ties"], table["losses"], strict=True)
    frame = pd.DataFrame(
        {
            "measure": table["measure"],
            "system": table["system"],
            "mean": table["mean_system"],
            "against": table["baseline"],
            "its mean": table["mean_baseline"],
            "difference": table["difference"],
            f"{100 * level:g} % interval": [f"[{signed(low)}, {signed(high)}]" for low, high in ends],
            "p": table["p_value"],
            "p adjusted": table["p_adjusted"],
            "effect": table["effect_size"],
            "won/tied/lost": ["/".join(map(str, three)) for three in counts],
            "detectable": table["detectable_difference"],
        }
    )
    formats = {
        "difference": signed,
        "p": p_value,
        "p adjusted": p_value,
        "effect": lambda value: number(value, digits=2, sign=True),
    }
    return Table(frame, formats)


def by_system(table: pd.DataFrame, *, baseline: str, clear: pd.Series[bool]) -> Table:
    """Lay out a row per system and a column per measure: means, best and second, stars.

    Parameters
    ----------
    table : DataFrame
        With the columns of `rankeval.Comparison.table`, every row against the same baseline.
    baseline : str
        That baseline; it gets the first row.
    clear : Series of bool
        Rows of the table whose system gets a star.

    Returns
    -------
    Table
        Without caption and notes.
    """
    import pandas as pd

    measures, systems = table["measure"].unique(), table["system"].unique()
    rows = table.assign(star=clear.map({True: "*", False: ""})).set_index(["measure", "system"])

    def wide(column: str, first: pd.Series[Any]) -> pd.DataFrame:
        """Spread a column over systems and measures, below the baseline's values."""
        values = {name: [first[name], *rows.loc[name].loc[systems, column]] for name in measures}
        return pd.DataFrame(values, index=pd.Index([baseline, *systems], name="system"))

    means = wide("mean_system", rows["mean_baseline"].groupby(level="measure").first())
    stars = wide("star", pd.Series("", index=measures))
    emphasis = best_and_second(means, list(measures))
    frame, stars, emphasis = (part.reset_index() for part in (means, stars, emphasis))
    return Table(frame, suffixes=stars.assign(system=""), emphasis=emphasis.assign(system=""))
