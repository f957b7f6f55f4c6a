"""Click rates and checks of a click log, as results.

::

    a row per unit: its group, n, clicks -> rates -> ClickRates   a row per group, with Wilson intervals
    facts of a log, and its users ------------------> LogChecks    a row per check, and the users to look at

Nothing is mended here. A user with a thousand times the usual clicks may be a robot, or the best customer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval.comparison.tables import WithTable
from rankeval.render.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SHOWN = 30
RATES = {"click_rate": "clicked", "abandonment": "abandoned"}
"""Rate -> the column of those that are counted for it."""
DEPENDENT = "intervals take each {unit} as independent; those of one user are not, so compare arms by user"


@dataclass(frozen=True, eq=False)
class ClickRates(WithTable):
    """Click rates, or rates of abandonment, with Wilson intervals.

    Attributes
    ----------
    table : DataFrame
        A row per group. Columns: those of ``by``; impressions, those that show the position or document, or all of the
        group (sessions, if the rate is of sessions); clicked, those with a click on it, or with any click (abandoned,
        those without); clicks, all of them; rate, clicked or abandoned by impressions; ci_low, ci_high.
    by : tuple of str
        The columns that make the groups.
    rate : str
        "click_rate" or "abandonment", the column of the rate.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    """

    table: pd.DataFrame
    by: tuple[str, ...] = ()
    rate: str = "click_rate"
    notes: tuple[str, ...] = ()

    def plot(self) -> Figure:
        """Draw the rate of each group with its interval.

        Returns
        -------
        Figure
            Not registered with pyplot.
        """
        from rankeval.render.plots import INK, one_panel

        figure, axes = one_panel(6, 3.6)
        shown = self._shown()
        axes.plot(shown[self.rate].array, "o", color=INK, markersize=4)
        axes.vlines(range(len(shown)), shown["ci_low"], shown["ci_high"], color=INK, linewidth=1)
        labels = shown[[*self.by]].astype(str).agg(" ".join, axis=1) if self.by else ["all"]
        axes.set_xticks(range(len(shown)), labels)
        axes.set(xlabel=", ".join(self.by), ylabel=self.rate.replace("_", " "), ylim=(0, None))
        return figure

    def _shown(self) -> pd.DataFrame:
        """Return the groups to show: of very many those with most impressions."""
        return self.table.nlargest(MOST_SHOWN, self.table.columns[len(self.by)]).sort_index()

    def _laid_out(self) -> Table:
        rest = len(self.table) - MOST_SHOWN
        cut = [f"the {MOST_SHOWN} largest groups are shown; .table has {rest} more"] if rest > 0 else []
        shown = self._shown().rename(columns=lambda name: name.replace("_", " "))
        caption = " by ".join([self.rate.replace("_", " ").capitalize(), ", ".join(self.by)][: 1 + bool(self.by)])
        return Table(shown, caption=caption, notes=(*cut, *self.notes))


@dataclass(frozen=True, eq=False)
class LogChecks(WithTable):
    """The checks of a click log.

    Attributes
    ----------
    table : DataFrame
        A row per check: check; found, how many; of, among how many.
    users : DataFrame
        The users to look at, those with most impressions first: user, impressions, clicks; times_usual, the larger of
        impressions and clicks as multiples of the usual number; arms, in how many the user is, if the log has arms.
    notes : tuple of str
        Sentences that a reader of the log must see.
    """

    table: pd.DataFrame
    users: pd.DataFrame
    notes: tuple[str, ...] = ()

    def _laid_out(self) -> Table:
        return Table(self.table, caption="Checks of the click log", notes=self.notes)


def wilson(hits: Any, n: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals of Wilson (1927) of the shares ``hits / n``, at 95 %."""
    from scipy.stats import norm

    hits, n = np.asarray(hits), np.asarray(n)
    z2 = norm.ppf(0.975) ** 2
    middle, half = hits + z2 / 2, np.sqrt(z2 * (hits * (n - hits) / n + z2 / 4))
    # Rounding could put an end of no clicks beyond 0.
    low, high = ((middle + sign * half) / (n + z2) for sign in (-1, 1))
    return np.where(hits == 0, 0.0, low), np.where(hits == n, 1.0, high)


def rates(units: pd.DataFrame, rate: str, names: list[str], unit: str) -> ClickRates:
    """Return the rates of groups of units, which are rows with the columns n and clicks."""
    hits = RATES[rate]
    hit = (units["clicks"] == 0) == (rate == "abandonment")
    units = units.assign(**{hits: units["n"].where(hit, 0)})
    sums = units.groupby(names or np.zeros(len(units)), observed=True)[["n", hits, "clicks"]].sum()
    table = sums.rename(columns={"n": f"{unit}s"}).reset_index(drop=not names)
    table[rate] = sums[hits].array / sums["n"].array
    table["ci_low"], table["ci_high"] = wilson(sums[hits], sums["n"])
    return ClickRates(table, tuple(names), rate, (DEPENDENT.format(unit=unit),))
