"""Comparisons laid out for reading: a row per comparison with all its figures, or a row per system with its means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval.render.marks import PARTED, best_and_second
from rankeval.render.tables import Table, number, p_value

if TYPE_CHECKING:
    import pandas as pd


def by_comparison(
    table: pd.DataFrame,
    *,
    level: float,
    parted: pd.Series[bool],
    gains: Iterable[float] | None = None,
    digits: pd.Series[int] | None = None,
) -> Table:
    """Lay out a row per comparison with all its figures.

    Parameters
    ----------
    table : DataFrame
        With the columns of `rankeval.Comparison.table`.
    level : float
        Confidence level, for the header.
    parted : Series of bool
        Rows whose adjusted p gets a dagger, since p and interval disagree.
    gains : iterable of float, optional
        The gain in percent of each row, as a further column.
    digits : Series of int, optional
        Decimals of each row; 4 by default.

    Returns
    -------
    Table
        Without caption and notes. The interval is the adjusted one if the table has any, and its header says so;
        a row that has none of its own shows the unadjusted one, and says so.
    """
    import pandas as pd

    places = [4] * len(table) if digits is None else list(digits)

    def written(column: str, *, sign: bool = False) -> list[str]:
        return [number(v, digits=d, sign=sign) for v, d in zip(table[column], places, strict=True)]

    low, high, _ = shown_interval(table)
    # Rows outside the family have their own interval only.
    alone = table[[low, high]].isna().any(axis=1) & table[["ci_low", "ci_high"]].notna().all(axis=1)
    ends = [written(end, sign=True) for end in (low, high, "ci_low", "ci_high")]
    counts = zip(table["wins"], table["ties"], table["losses"], strict=True)
    columns: dict[str, Any] = {
        **{str(name): table[name].astype(str) for name in table.columns[: table.columns.get_loc("measure")]},
        "measure": table["measure"],
        "system": table["system"],
        "mean": written("mean_system"),
        "against": table["baseline"],
        "its mean": written("mean_baseline"),
        "difference": written("difference", sign=True),
        **({} if gains is None else {"gain": [percent(gain) for gain in gains]}),
        interval_name(table, level): [
            f"[{own[0]}, {own[1]}] unadjusted" if is_alone else f"[{start}, {end}]"
            for start, end, *own, is_alone in zip(*ends, alone, strict=True)
        ],
        "p": table["p_value"].map(p_value),
        "p adjusted": table["p_adjusted"].map(p_value),
        "effect": [number(effect, digits=2, sign=True) for effect in table["effect_size"]],
        "won/tied/lost": ["/".join(map(str, three)) for three in counts],
        "detectable": written("detectable_difference"),
    }
    frame = pd.DataFrame(columns)
    marks = pd.DataFrame("", index=frame.index, columns=frame.columns)
    marks["p adjusted"] = np.where(parted, PARTED, "")
    numeric = ("mean", "its mean", "difference", "gain", "p", "p adjusted", "effect", "detectable")
    return Table(frame, marks=marks, numeric=numeric)


def interval_name(table: pd.DataFrame, level: float) -> str:
    """Return the header of the interval in `by_comparison`."""
    return f"{100 * level:g} % interval{shown_interval(table)[2]}"


def shown_interval(table: pd.DataFrame) -> tuple[str, str, str]:
    """Return the columns of the interval that readers should see, and the words that tell which it is.

    The adjusted interval holds for all comparisons at once, and belongs to the adjusted p. Some corrections have none.
    """
    adjusted = table[["ci_low_adjusted", "ci_high_adjusted"]]
    if adjusted.isna().to_numpy().all():
        return "ci_low", "ci_high", " (unadjusted)" if len(table) > 1 else ""
    # Of a single comparison nothing is adjusted, though the two may differ a little: max-T has flips of its own.
    same = np.array_equal(adjusted.to_numpy(), table[["ci_low", "ci_high"]].to_numpy(), equal_nan=True)
    return "ci_low_adjusted", "ci_high_adjusted", "" if same or len(table) == 1 else " (adjusted)"


def by_system(
    means: pd.DataFrame,
    *,
    digits: Mapping[str, int],
    lower: Collection[str] = (),
    marks: pd.DataFrame | None = None,
    tails: pd.DataFrame | None = None,
    letters: Mapping[str, str] | None = None,
) -> Table:
    """Lay out a row per system and a column per measure: means, best and second, marks.

    Parameters
    ----------
    means : DataFrame
        Systems as index.
    digits : mapping of str to int
        Decimals of each column.
    lower : collection of str
        Columns whose lowest value is the best.
    marks, tails : DataFrame, optional
        Shaped like `means`: text high behind a mean, and behind it.
    letters : mapping of str to str, optional
        System -> letter, shown in a column of its own.

    Returns
    -------
    Table
        Without caption and notes.
    """
    names: dict[str, Any] = {"system": list(means.index)}
    if letters is not None:
        names[" "] = [letters.get(str(name), "") for name in means.index]
    blank = dict.fromkeys(names, "")
    best = best_and_second(means, lower=lower, digits=digits)
    formats = {name: _fixed(places) for name, places in digits.items()}
    emphasis, marks, tails = (part if part is None else _beside(blank, part) for part in (best, marks, tails))
    return Table(_beside(names, means), formats, emphasis=emphasis, marks=marks, tails=tails)


def percent(gain: float) -> str:
    """Write a gain in percent with one decimal; nan as a dash.

    Examples
    --------
    >>> percent(12.34)
    '+12.3 %'
    """
    text = number(gain, digits=1, sign=True)
    return text if np.isnan(gain) else f"{text} %"


def _beside(columns: Mapping[str, Any], frame: pd.DataFrame) -> pd.DataFrame:
    """Put columns in front of a frame."""
    import pandas as pd

    return pd.concat([pd.DataFrame(columns, index=frame.index), frame], axis=1)


def _fixed(places: int) -> Any:
    return lambda value: number(value, digits=places)
