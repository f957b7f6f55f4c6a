"""Long tables of comparisons laid out for reading: what goes into which column, and what is emphasised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval.render.tables import best_and_second, number, p_value, signed

if TYPE_CHECKING:
    import pandas as pd


def by_comparison(table: pd.DataFrame, *, level: float) -> dict[str, Any]:
    """Lay out a row per comparison with all its figures.

    Parameters
    ----------
    table : DataFrame
        With the columns of `rankeval.Comparison.table`.
    level : float
        Confidence level, for the header.

    Returns
    -------
    dict
        ``frame`` and ``formats`` for the renderers of `rankeval.render.tables`.
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
    return {"frame": frame, "formats": formats}


def by_system(table: pd.DataFrame, *, baseline: str, clear: pd.Series[bool]) -> dict[str, Any]:
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
    dict
        ``frame``, ``suffixes`` and ``emphasis`` for the renderers of `rankeval.render.tables`.
    """
    import pandas as pd

    measures, systems = list(dict.fromkeys(table["measure"])), list(dict.fromkeys(table["system"]))
    place_of = {(m, x): at for at, (m, x) in enumerate(zip(table["measure"], table["system"], strict=True))}
    mean, mean_baseline = table["mean_system"].to_numpy(), table["mean_baseline"].to_numpy()
    starred = clear.to_numpy()
    columns = {m: [mean[place_of[m, x]] for x in systems] for m in measures}
    index = [baseline, *systems]
    means = pd.DataFrame({m: [mean_baseline[place_of[m, systems[0]]], *columns[m]] for m in measures}, index=index)
    marks = {m: ["", *("*" if starred[place_of[m, x]] else "" for x in systems)] for m in measures}
    stars = pd.DataFrame(marks, index=index)

    def with_names(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.rename_axis("system").reset_index()

    return {
        "frame": with_names(means),
        "suffixes": with_names(stars).assign(system=""),
        "emphasis": with_names(best_and_second(means, measures)).assign(system=""),
    }
