"""Checks of a click log, and its click rates: what a reader must know before he believes a number of it.

::

    impressions, items, counts -> rates  -> ClickRates   a row per position, arm, query, ..., with Wilson intervals
                               -> checks -> LogChecks    a row per check, and the users to look at

Nothing is mended here. A user with a thousand times the usual clicks may be a crawler, or the best customer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval._checks import count, few, refuse
from rankeval._registry import chosen
from rankeval.comparison.tables import WithTable
from rankeval.online.events import EMPTY, NOT_SHOWN, REPEATED
from rankeval.render.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Ints = NDArray[np.int64]

MOST_SHOWN = 30
OF_ITEM = ("position", "docid")
DEPENDENT = (
    "the intervals take {unit}s as independent; those of one user are not, so the intervals are too narrow: compare "
    "arms by user"
)


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
        from rankeval.render.plots import INK, SOFT, one_panel

        shown = self._shown()
        figure, axes = one_panel(6, 3.6)
        rate, places = shown[self.rate], np.arange(len(shown))
        ends = [rate - shown["ci_low"], shown["ci_high"] - rate]
        axes.errorbar(places, rate, yerr=ends, fmt="o", color=INK, markersize=4, capsize=2)
        axes.set_xticks(
            places, [" ".join(map(str, key)) for key in zip(*(shown[name] for name in self.by), strict=True)]
        )
        axes.set_ylim(bottom=0)
        axes.set_xlabel(", ".join(self.by), color=SOFT)
        axes.set_ylabel(self.rate.replace("_", " "), color=SOFT)
        return figure

    def _shown(self) -> pd.DataFrame:
        """Return the rows to show: of very many groups those with most impressions."""
        most = self.table.iloc[:, len(self.by)].rank(ascending=False, method="first") <= MOST_SHOWN
        return self.table[most]

    def _laid_out(self) -> Table:
        rest = len(self.table) - MOST_SHOWN
        cut = [f"the {MOST_SHOWN} groups with most impressions; .table has {rest} more"] if rest > 0 else []
        of = f" by {', '.join(self.by)}" if self.by else ""
        shown = self._shown().rename(columns=lambda name: name.replace("_", " "))
        return Table(shown, caption=f"{self.rate.replace('_', ' ').capitalize()}{of}", notes=(*cut, *self.notes))


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


def wilson(hits: Any, n: Any, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals of Wilson (1927) of shares ``hits / n``."""
    from scipy.stats import norm

    hits, n = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
    z2 = norm.ppf((1 + level) / 2) ** 2
    middle, half = hits + z2 / 2, np.sqrt(z2 * (hits * (n - hits) / n + z2 / 4))
    # Rounding could put an end of no clicks beyond 0.
    low, high = ((middle + sign * half) / (n + z2) for sign in (-1, 1))
    return np.where(hits == 0, 0.0, low), np.where(hits == n, 1.0, high)


def rates(
    impressions: pd.DataFrame,
    items: pd.DataFrame,
    counts: Ints,
    by: str | Sequence[str],
    *,
    of: str = "impression",
    abandoned: bool = False,
) -> ClickRates:
    """Return click rates or rates of abandonment; the methods of `rankeval.online.ClickLog` document the arguments."""
    names = [by] if isinstance(by, str) else [*by]
    for name in (*names, *(["session"] if of == "session" else [])):
        chosen("column of the log", name, [*impressions, *(() if abandoned else OF_ITEM)])
    row = items["impression"].to_numpy()
    clicked = items["clicked"].to_numpy()
    if set(names) & set(OF_ITEM):
        units = pd.DataFrame(
            {name: items[name] if name in OF_ITEM else impressions[name].take(row).array for name in names}
        )
        units = units.assign(n=counts[row], clicks=clicked * counts[row])
    else:
        units = impressions[names].assign(
            n=counts, clicks=np.bincount(row, clicked, len(impressions)).astype(int) * counts
        )
    if of == "session":
        units["session"] = impressions["session"]
        units = units.groupby([*dict.fromkeys((*names, "session"))], observed=True)[["clicks"]].sum().reset_index()
        units["n"] = 1
    hit = units["n"].where((units["clicks"] > 0) != abandoned, 0)
    units = units.assign(hit=hit)[[*names, "n", "hit", "clicks"]]
    table = units.groupby(names, observed=True).sum().reset_index() if names else units.sum().to_frame().T
    rate = "abandonment" if abandoned else "click_rate"
    table[rate] = table["hit"] / table["n"]
    table["ci_low"], table["ci_high"] = wilson(table["hit"], table["n"])
    table = table.rename(columns={"n": f"{of}s", "hit": "abandoned" if abandoned else "clicked"})
    return ClickRates(table, tuple(names), rate, (DEPENDENT.format(unit=of),))


def checks(
    impressions: pd.DataFrame,
    items: pd.DataFrame,
    counts: Ints,
    excluded: Mapping[str, int],
    *,
    times_usual: float,
) -> LogChecks:
    """Return the checks of a log; `rankeval.online.ClickLog.checks` documents them."""
    row, clicked = items["impression"].to_numpy(), items["clicked"].to_numpy()
    clicks = np.bincount(row, clicked, len(impressions)).astype(np.int64) * counts
    n, notes = int(counts.sum()), []
    found = [
        (
            f"{what}, left out",
            excluded.get(what, 0),
            (int(clicks.sum()) if what == NOT_SHOWN else n) + excluded.get(what, 0),
        )
        for what in dict.fromkeys((REPEATED, NOT_SHOWN, EMPTY, *excluded))
    ]
    lengths = np.bincount(row, minlength=len(impressions))
    deepest = items.groupby("impression")["position"].max().to_numpy()
    found.append(("impressions that lack a position", int(counts[deepest > lengths].sum()), n))
    found.append(("impressions without a click", int(counts[clicks == 0].sum()), n))
    never = items.groupby("position")["clicked"].any()
    found.append(("positions never clicked", int((~never).sum()), len(never)))
    if not never.all():
        notes.append(f"never clicked: position {few(never.index[~never].tolist())}")
    users = pd.DataFrame(columns=["user", "impressions", "clicks", "times_usual"])
    if "user" in impressions:
        users, usual = _users(impressions, counts, clicks)
        many = users["times_usual"] > times_usual
        found.append((f"users above {times_usual:g} times the usual", int(many.sum()), len(users)))
        found.append(("impressions of these users", int(users.loc[many, "impressions"].sum()), n))
        if many.any():
            notes.append(
                f"{count(int(many.sum()), 'user')} with more than {times_usual:g} times the usual {usual}: robots? "
                "They are kept; .users lists them, and log.without(users=...) drops them"
            )
        if "arms" in users:
            several = users["arms"] > 1
            found.append(("users in several arms", int(several.sum()), len(users)))
            many |= several
        users = users[many].sort_values("impressions", ascending=False, kind="stable", ignore_index=True)
    if "time" in impressions:
        times = impressions["time"]
        found.append(
            ("times before the time of the row above", int((times.diff() < pd.Timedelta(0)).sum()), len(times))
        )
        found.append(("times in the future", int((times > pd.Timestamp.now("UTC")).sum()), len(times)))
        if who := [name for name in ("user", "session") if name in impressions]:
            again = int(impressions.duplicated([*who, "qid", "time"]).sum())
            found.append((f"the same {', '.join(who)}, query and time again", again, len(times)))
            if again:
                notes.append(f"{count(again, 'impression')} may be events that were sent again under another id")
    lacking = [name for name in ("user", "time", "arm") if name not in impressions]
    notes += [f"not checked, since the log has no {' and no '.join(lacking)}: the rest"] if lacking else []
    return LogChecks(pd.DataFrame(found, columns=["check", "found", "of"]), users, tuple(notes))


def _users(impressions: pd.DataFrame, counts: Ints, clicks: Ints) -> tuple[pd.DataFrame, str]:
    """Return impressions and clicks of each user, and the usual numbers in words."""
    grouped = impressions[["user"]].assign(impressions=counts, clicks=clicks).groupby("user", observed=True)
    users = grouped.sum()
    # Most users may have no click: usual is the number of those who have.
    usual = users["impressions"].median(), users["clicks"].where(users["clicks"] > 0).median()
    users["times_usual"] = np.fmax(users["impressions"] / usual[0], users["clicks"] / usual[1])
    if "arm" in impressions:
        users["arms"] = impressions.groupby("user", observed=True)["arm"].nunique()
    return users.reset_index(), f"{usual[0]:g} impressions or {usual[1]:g} clicks"


def session_numbers(impressions: pd.DataFrame, gap: str) -> Ints:
    """Return the number of each impression's session, from 1, in order of user and time."""
    lacking = [name for name in ("user", "time") if name not in impressions]
    refuse((lacking, f"sessions are made of user and time, and the log has no {' and no '.join(lacking)}"))
    codes = pd.factorize(impressions["user"])[0]
    order = np.lexsort((impressions["time"].to_numpy(), codes))
    times = impressions["time"].iloc[order]
    begins = (np.diff(codes[order], prepend=-1) != 0) | (times.diff() > pd.Timedelta(gap)).to_numpy()
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(begins)
    return numbers
