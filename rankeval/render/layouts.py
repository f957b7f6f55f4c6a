"""Marks at the means of systems: best and second, stars against one system, letters against several.

Papers mark in two ways. Against one baseline a star says how small the adjusted p is, and an arrow
says that the system is worse. If all pairs were compared, each system has a letter, and a mean
carries the letters of the systems below it::

    bm25 a   .412          bm25   .412
    rm3  b   .431 a        rm3    .431 *
    tf   c   .398          tf     .398 ↓**

Both take claims: a frame with a row per system and the one that it is measured against, with the
columns "system", "other", "column" (of the table), "p" (adjusted), "sign" (1 if better, -1 if
worse), "shown" and "parted" (p and interval disagree). If all pairs were compared, both directions
of a pair have a row.

Comparisons laid out for reading: a row per comparison with all its figures, or a row per system
with its means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval.render.tables import DASH, Table, interval, number, p_value

if TYPE_CHECKING:
    import pandas as pd

PARTED = "†"
"""Marks a claim whose adjusted p and interval disagree; a note of the comparison explains it."""

LEVELS = (0.05, 0.01, 0.001)
WORSE = "↓"
"""In front of the stars of a system that is worse than the baseline."""


NOT_DECISIVE = ("its mean", "p", "effect", "detectable")
"""Columns that a table for decisions leaves out; tables for papers have them."""


def levels_within(alpha: float) -> list[float]:
    """Return the levels of one, two and three stars: alpha, and the usual ones below it.

    Examples
    --------
    >>> levels_within(0.05), levels_within(0.01), levels_within(0.1)
    ([0.05, 0.01, 0.001], [0.01, 0.001], [0.1, 0.05, 0.01, 0.001])
    """
    return [alpha, *(level for level in LEVELS if level < alpha)]


def best_and_second(
    frame: pd.DataFrame,
    *,
    signs: Mapping[str, float] | None = None,
    digits: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """Mark the best value of each column as "best" and the next distinct one as "second".

    Values that look equal with their decimals are marked equally. Of two systems only the best is
    marked. The sign of a column is -1 if its lowest value is the best, and 0 if none is.
    """
    marks = _blank(frame)
    places: dict[float, str] = {1: "best", 2: "second"} if len(frame) > 2 else {1: "best"}
    for column in frame:
        shown, sign = frame[column].astype(float), 1.0 if signs is None else signs[str(column)]
        if digits is not None:
            shown = shown.map(lambda value, column=column: float(f"{value:.{digits[column]}f}"))
        ranks = shown.rank(method="dense", ascending=sign < 0)
        marks[column] = [places.get(rank, "") if sign else "" for rank in ranks]
    return marks


def stars(claims: pd.DataFrame, frame: pd.DataFrame, *, levels: Sequence[float]) -> pd.DataFrame:
    """Return a star per level that the adjusted p does not exceed, after an arrow if worse."""
    marks = _blank(frame)
    for row in claims[claims["shown"]].to_dict("records"):
        worse = WORSE if row["sign"] < 0 else ""
        n = sum(row["p"] <= level for level in levels)
        marks.loc[row["system"], row["column"]] = worse + "*" * n
    return marks


def letters(claims: pd.DataFrame, frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Return the letters of the systems against which a claim is shown, with daggers."""
    marks = _blank(frame)
    between = "," if any(len(letter) > 1 for letter in names.values()) else ""
    counted = claims[claims["shown"] & (claims["sign"] > 0) & claims["other"].isin(list(names))]
    for (system, column), part in counted.groupby(["system", "column"]):
        daggers = dict(zip(part["other"], np.where(part["parted"], PARTED, ""), strict=True))
        own = [letter + daggers[name] for name, letter in names.items() if name in daggers]
        marks.loc[system, column] = between.join(own)
    return marks


def letters_for(systems: Sequence[str]) -> dict[str, str]:
    """Return a letter for each system; of more than 26 systems, pairs of letters.

    Examples
    --------
    >>> letters_for(["bm25", "rm3"])
    {'bm25': 'a', 'rm3': 'b'}
    """
    width = 1 if len(systems) <= len(ascii_lowercase) else math.ceil(math.log(len(systems), 26))
    return dict(zip(systems, map("".join, product(ascii_lowercase, repeat=width)), strict=False))


def _blank(frame: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame("", index=frame.index, columns=frame.columns)


def by_comparison(
    table: pd.DataFrame,
    *,
    level: float,
    parted: pd.Series[bool],
    gains: Iterable[float] | None = None,
    digits: pd.Series[int] | None = None,
) -> Table:
    """Lay out a row per comparison with all its figures."""
    import pandas as pd

    places = [4] * len(table) if digits is None else list(digits)

    def written(column: str, *, sign: bool = False) -> list[str]:
        return [number(v, digits=d, sign=sign) for v, d in zip(table[column], places, strict=True)]

    low, high, kind = shown_interval(table)
    # Rows outside the family have their own interval only.
    alone = table[[low, high]].isna().any(axis=1) & table[["ci_low", "ci_high"]].notna().all(axis=1)
    lows = table[low].where(~alone, table["ci_low"])
    highs = table[high].where(~alone, table["ci_high"])
    intervals = []
    for start, end, digit, is_alone in zip(lows, highs, places, alone, strict=True):
        text = interval(start, end, digits=digit, sign=True)
        intervals.append(f"{text} unadjusted" if is_alone and text != DASH else text)
    counts = zip(table["wins"], table["ties"], table["losses"], strict=True)
    columns: dict[str, Any] = {
        "measure": table["measure"],
        "system": table["system"],
        "mean": written("mean_system"),
        "against": table["baseline"],
        "its mean": written("mean_baseline"),
        "difference": written("difference", sign=True),
    }
    if gains is not None:
        columns["gain"] = [gain_in_percent(gain) for gain in gains]
    columns[f"{100 * level:g} % interval{kind}"] = intervals
    columns["p"] = table["p_value"].map(p_value)
    columns["p adjusted"] = table["p_adjusted"].map(p_value)
    columns["effect"] = [number(effect, digits=2, sign=True) for effect in table["effect_size"]]
    columns["won/tied/lost"] = ["/".join(map(str, three)) for three in counts]
    columns["detectable"] = written("detectable_difference")
    # The name of a column of collections or slices is the reader's.
    names = list(table)
    first = table[names[: names.index("measure")]].astype(str)
    parts = {f"by {name}" if name in columns else name: first[name] for name in first}
    frame = pd.DataFrame(parts | columns)
    marks = _blank(frame)
    marks["p adjusted"] = np.where(parted, PARTED, "")
    numeric = ("mean", "its mean", "difference", "gain", "p", "p adjusted", "effect", "detectable")
    return Table(frame, marks=marks, numeric=numeric)


def for_decisions(whole: Table, baseline: str | None) -> Table:
    """Keep what a decision needs of a table by `by_comparison`, and write each mean once."""
    import pandas as pd

    frame, columns = whole.frame.reset_index(drop=True), list(whole.frame.columns)
    keys, measures = columns[: columns.index("measure") + 1], frame["measure"].unique()
    # Each mean of a baseline has a row of its own, above the systems that are compared with it.
    first = frame.loc[~frame.duplicated(keys), [*keys, "against", "its mean"]]
    first = first.rename(columns={"against": "system", "its mean": "mean"})
    first.index = first.index - 0.5
    first["difference"] = "" if baseline is None else "baseline"
    rows = pd.concat([first, frame]).sort_index().fillna("")
    marks = pd.DataFrame(whole.marks).reset_index(drop=True).reindex(rows.index, fill_value="")
    left = {*NOT_DECISIVE} if baseline is None else {*NOT_DECISIVE, "against"}
    mean = "mean"
    if len(measures) == 1:
        left.add("measure")
        mean = f"mean {measures[0]}"
    names = {name: name for name in columns if name not in left} | {"mean": mean}
    rows, marks = (part[list(names)].rename(columns=names) for part in (rows, marks))
    spare = ("won/tied/lost",)
    return replace(whole, frame=rows, marks=marks, numeric=(*whole.numeric, mean), spare=spare)


def shown_interval(table: pd.DataFrame) -> tuple[str, str, str]:
    """Return the columns of the interval that readers should see, and words for which it is.

    The adjusted interval holds for all comparisons at once, and belongs to the adjusted p. Some
    corrections have none.
    """
    adjusted = table[["ci_low_adjusted", "ci_high_adjusted"]]
    if adjusted.isna().to_numpy().all():
        return "ci_low", "ci_high", " (unadjusted)" if len(table) > 1 else ""
    # Of a single comparison nothing is adjusted, though the two may differ a little: max-T has
    # flips of its own.
    own = table[["ci_low", "ci_high"]].to_numpy()
    is_same = len(table) == 1 or np.array_equal(adjusted.to_numpy(), own, equal_nan=True)
    return "ci_low_adjusted", "ci_high_adjusted", "" if is_same else " (adjusted)"


def by_system(
    means: pd.DataFrame,
    *,
    digits: Mapping[str, int],
    signs: Mapping[str, float] | None = None,
    marks: pd.DataFrame | None = None,
    tails: pd.DataFrame | None = None,
    letters: Mapping[str, str] | None = None,
) -> Table:
    """Lay out a row per system and a column per measure: means, best and second, marks."""
    names: dict[str, Any] = {"system": list(means.index)}
    if letters is not None:
        names[" "] = [letters.get(str(name), "") for name in means.index]
    blank = dict.fromkeys(names, "")
    best = best_and_second(means, signs=signs, digits=digits)
    formats = {name: partial(number, digits=places) for name, places in digits.items()}
    emphasis = _beside(blank, best)
    marks, tails = (part if part is None else _beside(blank, part) for part in (marks, tails))
    return Table(_beside(names, means), formats, emphasis=emphasis, marks=marks, tails=tails)


def gain_in_percent(gain: float) -> str:
    """Write a gain in percent with one decimal; nan as a dash.

    Examples
    --------
    >>> gain_in_percent(12.34)
    '+12.3 %'
    """
    text = number(gain, digits=1, sign=True)
    return text if np.isnan(gain) else f"{text} %"


def _beside(columns: Mapping[str, Any], frame: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.concat([pd.DataFrame(columns, index=frame.index), frame], axis=1)
