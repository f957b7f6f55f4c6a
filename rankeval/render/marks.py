"""Marks at the means of systems: best and second, stars against one system, letters against several.

Papers mark in two ways. Against one baseline a star says how small the adjusted p is, and an arrow says that the system
is worse. If all pairs were compared, each system has a letter, and a mean carries the letters of the systems below it::

    bm25 a   .412          bm25   .412
    rm3  b   .431 a        rm3    .431 *
    tf   c   .398          tf     .398 ↓**

Both take claims: a frame with a row per system and the one that it is measured against, with the columns "system",
"other", "column" (of the table), "p" (adjusted), "sign" (1 if better, -1 if worse), "shown" and "parted" (p and
interval disagree). If all pairs were compared, both directions of a pair have a row.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

PARTED = "†"
"""At a claim whose adjusted p parts from the adjusted interval; a note of the comparison explains it."""

LEVELS = (0.05, 0.01, 0.001)
WORSE = "↓"
"""In front of the stars of a system that is worse than the baseline."""


def levels_within(alpha: float) -> list[float]:
    """Return the levels of one, two and three stars: alpha, and the usual ones below it.

    Examples
    --------
    >>> levels_within(0.05), levels_within(0.01), levels_within(0.1)
    ([0.05, 0.01, 0.001], [0.01, 0.001], [0.1, 0.05, 0.01, 0.001])
    """
    return [alpha, *(level for level in LEVELS if level < alpha)]


def best_and_second(
    frame: pd.DataFrame, *, lower: Collection[str] = (), digits: Mapping[str, int] | None = None
) -> pd.DataFrame:
    """Mark the best value of each column as "best" and the next distinct one as "second".

    Parameters
    ----------
    frame : DataFrame
        Numbers, a row per system.
    lower : collection of str
        Columns whose lowest value is the best.
    digits : mapping of str to int, optional
        Decimals shown: values that look equal are marked equally.

    Returns
    -------
    DataFrame
        Shaped like `frame`, of "best", "second" and "". With two systems only the best is marked.
    """
    import pandas as pd

    marks = pd.DataFrame("", index=frame.index, columns=frame.columns)
    places = {1: "best", 2: "second"} if len(frame) > 2 else {1: "best"}
    for column in frame:
        shown = frame[column].astype(float)
        if digits is not None:
            shown = shown.map(lambda value, column=column: float(f"{value:.{digits[column]}f}"))
        marks[column] = shown.rank(method="dense", ascending=column in lower).map(places).fillna("")
    return marks


def stars(claims: pd.DataFrame, frame: pd.DataFrame, *, levels: Sequence[float], arrows: bool = True) -> pd.DataFrame:
    """Return a star per level that the adjusted p of a shown claim does not exceed.

    Parameters
    ----------
    claims : DataFrame
        Rows against one system.
    frame : DataFrame
        The means that get the marks.
    levels : sequence of float
        The levels, as `levels_within` returns them.
    arrows : bool, default True
        Put an arrow in front of the stars of worse systems.
    """
    marks = _blank(frame)
    for row in claims[claims["shown"]].to_dict("records"):
        worse = arrows and row["sign"] < 0
        marks.loc[row["system"], row["column"]] = WORSE * worse + "*" * sum(row["p"] <= level for level in levels)
    return marks


def letters(claims: pd.DataFrame, frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Return the letters of the systems against which a claim is shown, with a dagger where p and interval disagree.

    Parameters
    ----------
    claims : DataFrame
        Rows of all pairs; those with a negative sign give no letter.
    frame : DataFrame
        The means that get the marks.
    names : mapping of str to str
        System -> letter, as `letters_for` returns them. Claims against other systems are left out.
    """
    marks = _blank(frame)
    between = "," if any(len(letter) > 1 for letter in names.values()) else ""
    counted = claims[claims["shown"] & (claims["sign"] > 0) & claims["other"].isin(list(names))]
    for (system, column), part in counted.groupby(["system", "column"]):
        daggers = {
            other: PARTED * bool(is_parted) for other, is_parted in zip(part["other"], part["parted"], strict=True)
        }
        found = [letter + daggers[name] for name, letter in names.items() if name in daggers]
        marks.loc[system, column] = between.join(found)
    return marks


def letters_for(systems: Sequence[str]) -> dict[str, str]:
    """Return a letter for each system; of more than 26 systems, pairs of letters.

    Examples
    --------
    >>> letters_for(["bm25", "rm3"])
    {'bm25': 'a', 'rm3': 'b'}
    """
    width = 1 if len(systems) <= len(ascii_lowercase) else math.ceil(math.log(len(systems), 26))
    return {name: _spelled(place, width) for place, name in enumerate(systems)}


def _spelled(place: int, width: int) -> str:
    """Write a number in base 26, with letters as digits."""
    return "".join(ascii_lowercase[place // 26**power % 26] for power in reversed(range(width)))


def _blank(frame: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame("", index=frame.index, columns=frame.columns)
