"""Click logs: a row per impression, and a row per shown item.

An *impression* is one list that was shown once. Items stand in order of impression and position, so
that the items of an impression are a slice of the columns. Ids are codes: a log has few queries and
documents and many rows.

::

    impressions   qid  user  session  time  arm  count        items   impression  position  docid  clicked  propensity
    i1            q1   u7    s1       ...   A    1                    0           1         d4     False
    i2            q1   u8    s2       ...   B    1                    0           2         d9     True
                                                                      1           1         d9     False
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rankeval._arguments import explained
from rankeval._checks import check_number, count, few, require
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.comparison.recorded import LIMITS, Recorded
from rankeval.comparison.tables import WithTable
from rankeval.io.formats import naming
from rankeval.io.frames import as_table, names_in
from rankeval.io.opening import DEFAULT, Limits, as_path
from rankeval.online.events import (
    LEFT_OUT,
    NO_QUERY,
    NOT_SHOWN,
    PART_OF,
    click_tables,
    found_columns,
    read_click_columns,
)
from rankeval.render.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Ints = NDArray[np.int64]
MOST_SHOWN = 30
DEPENDENT = (
    "intervals take each {unit} as independent; those of one user are not, so compare arms by user"
)
USERS = "impressions of users left out"
LISTED = "{} may be robots (usual: {impressions:g} impressions, {clicks:g} clicks); kept until log.without(users=...)"


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class ClickLog(WithTable):
    """Lists that were shown to users, and their clicks.

    Attributes
    ----------
    impressions : DataFrame
        A row per impression, with its id as the index ``impression``. Column ``qid`` always
        (categorical); ``user``, ``session``, ``time`` (in UTC), ``arm`` and ``count`` if the log
        has them. A row with ``count`` n means n impressions of the same list with the same clicks.
    items : DataFrame
        A row per shown item, in order of impression and position. Columns: impression, the row in
        ``impressions``; position, from 1; docid (categorical); clicked; and ``propensity`` if the
        log has it, the probability with which the policy that was logged showed this item here.
    complete : bool
        Whether each impression has all its positions, 1 to n. In the log of a policy that records
        one item at a time it has not: models that follow a user down the list refuse such a log.
    excluded : mapping of str to int
        What was left out, such as ``"repeated events"``, and how often.

    Examples
    --------
    >>> import pandas as pd
    >>> from rankeval.online import ClickLog
    >>> rows = {"impression": ["i1", "i2"], "qid": ["q", "q"], "shown": [["d4", "d9"], ["d9"]], "clicked": [["d9"], []]}
    >>> log = ClickLog.from_frame(pd.DataFrame(rows))
    >>> log
    ClickLog(2 impressions, 3 items, 1 click)
    position   impressions   clicks   click rate   ci low   ci high
    ───────────────────────────────────────────────────────────────
           1             2        0       0.0000   0.0000    0.6576
           2             1        1       1.0000   0.2065    1.0000
    >>> log.items[["impression", "position", "docid", "clicked"]]
       impression  position docid  clicked
    0           0         1    d4    False
    1           0         2    d9     True
    2           1         1    d9    False
    """

    impressions: pd.DataFrame
    items: pd.DataFrame
    complete: bool = True
    excluded: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        tz: str | None = None,
        clicks: str = "error",
        complete: bool = True,
        limits: Limits = DEFAULT,
        **columns: str,
    ) -> ClickLog:
        r"""Read a log from a file.

        Parameters
        ----------
        path : path
            CSV or TSV with a header, Parquet, or JSON lines (``.jsonl``, ``.ndjson``); also as
            ``.gz`` or ``.zst``. Ids of CSV are text. Rows of lists are read from JSON lines; of
            Parquet with lists take the frame, as in ``ClickLog.from_frame(pd.read_parquet(path))``.
        tz, clicks, complete, **columns
            As of `from_frame`.
        limits : Limits
            How far the file may expand, and how long a line may be.

        Returns
        -------
        ClickLog
            The log.

        Raises
        ------
        InvalidInput
            If there is no such file, or `from_frame` refuses the content; then it is a
            ``FileFormatError``.
        UnknownName
            If the suffix is none of these.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from rankeval.online import ClickLog
        >>> rows = "i1,1,d4,0,2026-05-01 12:00", "i1,2,d9,1,2026-05-01 12:00"
        >>> path = Path(mkdtemp()) / "log.csv"
        >>> _ = path.write_text("\n".join(["search_id,rank,sku,click,time", *rows]))
        >>> log = ClickLog.read(path, docid="sku", tz="Europe/Berlin")
        >>> log
        ClickLog(1 impression, 2 items, 1 click)
        position   impressions   clicks   click rate   ci low   ci high
        ───────────────────────────────────────────────────────────────
               1             1        0       0.0000   0.0000    0.7935
               2             1        1       1.0000   0.2065    1.0000
        >>> log.impressions["time"].astype(str).tolist()
        ['2026-05-01 10:00:00+00:00']
        """
        with naming(str(as_path(path))):
            found = read_click_columns(path, columns, complete=complete, limits=limits)
            return cls(*click_tables(found, tz, clicks, complete=complete))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        tz: str | None = None,
        clicks: str = "error",
        complete: bool = True,
        **columns: str,
    ) -> ClickLog:
        """Return the log of a frame, in one of two forms.

        Parameters
        ----------
        frame : frame
            Of pandas, polars or Arrow. Either a row per shown item: impression, position (from 1),
            docid, clicked (0 or 1), and perhaps propensity. Or a row per impression: shown, a list
            of ids from the top; clicked, a list of the clicked ids, or of 0 or 1 for each id shown.
            A document that is clicked twice is clicked. Both forms have, as far as known, qid,
            user, session, time, arm and count, which do not vary within an impression. Rows of
            lists may lack the column impression: then repeated events cannot be recognised here,
            and `checks` looks for them.
        tz : str, optional
            The zone of times that have none, such as ``"Europe/Berlin"``. Times are stored in UTC.
            The hour that comes twice when clocks go back is taken as the earlier one, and its times
            are counted in ``excluded``.
        clicks : {"error", "skip"}, default "error"
            Refuse a click on an id that the list did not show; or leave it out, and count it in
            ``excluded``.
        complete : bool, default True
            Whether each impression must have all its positions, 1 to n. False is for the log of
            single items of lists.
        **columns : str, optional
            The name of the column of a part, such as ``docid="sku"``. Without it usual names are
            found, such as ``query_id``, ``search_id``, ``rank``, ``item_id``, ``click``,
            ``timestamp`` and ``user_id``.

        Returns
        -------
        ClickLog
            Impressions in the order of their first rows. An event that occurs again, with the same
            id and the same content, is dropped and counted in ``excluded``, as are impressions
            of an empty list.

        Raises
        ------
        InvalidInput
            If a column is missing, or two could be meant; an id is missing; a click is neither 0
            nor 1; an impression has a gap in its positions, shows a document twice, or occurs again
            with other content; a time has no zone and ``tz`` is not given.

        Examples
        --------
        >>> import pandas as pd
        >>> from rankeval.online import ClickLog
        >>> rows = {"search_id": ["i1"] * 4, "rank": [1, 2, 1, 2], "docid": ["a", "b"] * 2, "click": [0, 1] * 2}
        >>> ClickLog.from_frame(pd.DataFrame(rows)).excluded
        {'repeated events': 1}
        """
        table = as_table(frame)
        parts = found_columns(names_in(table), columns, complete=complete)
        return cls(
            *click_tables(
                {part: table[name] for part, name in parts.items()}, tz, clicks, complete=complete
            )
        )

    @classmethod
    def from_open_bandit(cls, source: Any) -> ClickLog:
        """Return the log of a policy of the Open Bandit data, in which each row is one shown item.

        Parameters
        ----------
        source : path or frame
            A file such as ``random/men/men.csv``, or a frame of it.

        Returns
        -------
        ClickLog
            An impression a row, with the number of the row as its id, time, and the propensity of
            the item at its position. There is no user and no query, and ``complete`` is False: the
            data do not say which three items were shown together.

        Raises
        ------
        InvalidInput
            As of `read` and `from_frame`.

        Notes
        -----
        Saito, Aihara, Matsutani and Narita (2021), Open Bandit Dataset and Pipeline, arXiv:2008.07146.
        """
        is_path = isinstance(source, str | os.PathLike)
        return (
            cls.read(source, complete=False) if is_path else cls.from_frame(source, complete=False)
        )

    @property
    def counts(self) -> Ints:
        """The number of impressions of each row, of shape (n_impressions,): ones without a column ``count``."""
        return np.ones(len(self.impressions), np.int64) * np.asarray(
            self.impressions.get("count", 1), np.int64
        )

    def subset(self, keep: ArrayLike) -> ClickLog:
        """Return the log of some impressions.

        Parameters
        ----------
        keep : array-like of bool of shape (n_impressions,)
            Such as ``log.impressions["arm"] == "A"``. It is your choice, so it is not counted in
            ``excluded``.

        Raises
        ------
        InvalidInput
            If it has another shape or type, or keeps nothing.
        """
        mask = np.asarray(keep)
        fits = mask.dtype == np.bool_ and mask.shape == (len(self.impressions),) and mask.any()
        require(
            fits,
            "keep",
            keep,
            f"true or false for each of {len(self.impressions)} impressions, and some true",
        )
        rows = self.items["impression"].to_numpy()
        items = self.items[mask[rows]].assign(impression=(np.cumsum(mask) - 1)[rows[mask[rows]]])
        return replace(self, impressions=self.impressions[mask], items=items.reset_index(drop=True))

    def without(self, *, users: Iterable[str | int]) -> ClickLog:
        """Return the log without some users, whose impressions are counted in ``excluded``.

        Parameters
        ----------
        users : iterable
            Such as ``log.checks().users["user"]``, who are far above the usual.

        Raises
        ------
        InvalidInput
            If the log has no such user, or no other one.
        """
        dropped, known = {*users}, self._known("user")["user"]
        unknown, kept = dropped.difference(known), ~known.isin(dropped)
        require(
            not unknown and kept.any(),
            "users",
            unknown or dropped,
            "users of the log, and not all of them",
        )
        n = int(self.counts[~kept].sum()) + self.excluded.get(USERS, 0)
        return replace(self.subset(kept), excluded={**self.excluded, USERS: n})

    def sessions(self, gap: str = "30min") -> ClickLog:
        """Return the log with a column ``session``, which replaces one that there is.

        A session is of one user, and ends if there is no impression for longer than the gap.

        Parameters
        ----------
        gap : str, default "30min"
            A time, as pandas writes it.

        Raises
        ------
        InvalidInput
            If the gap is no such time.
        UnknownName
            If the log has no user or no time.

        Examples
        --------
        >>> import pandas as pd
        >>> from rankeval.online import ClickLog
        >>> times = ["2024-05-01 12:00", "2024-05-01 12:30", "2024-05-01 13:01"]
        >>> rows = {"user": "u", "time": times, "shown": [["a"], ["b"], ["a"]], "clicked": [["a"], [], []]}
        >>> log = ClickLog.from_frame(pd.DataFrame(rows), tz="UTC").sessions("30min")
        >>> log.impressions["session"].tolist()
        [1, 1, 2]
        >>> log.abandonment(of="session").table["abandonment"].tolist()
        [0.5]
        """
        span = pd.to_timedelta(str(gap), errors="coerce")
        require(
            span >= pd.Timedelta("1ms"),
            "gap",
            gap,
            "a millisecond or longer, with a unit, such as '30min'",
        )
        known = self._known("user", "time").sort_values(["user", "time"])
        begins = (known["user"] != known["user"].shift()) | (known["time"].diff() > span)
        return replace(self, impressions=self.impressions.assign(session=begins.cumsum()))

    def click_rates(self, by: str | Sequence[str] = "position") -> ClickRates:
        """Return click rates with 95 % intervals.

        Parameters
        ----------
        by : str or sequence of str, default "position"
            Groups: "position", "docid", "qid", "user", "session", "time" or "arm", or several of
            them; ``()`` for one rate of the whole log. Usual names, such as "query" or "rank", are
            known too. By position or document, the rate is clicks by times that it was shown. Else
            it is the share of impressions with a click.

        Returns
        -------
        ClickRates
            A row per group. Its ``plot`` draws them.

        Raises
        ------
        UnknownName
            If the log has no such column.

        Notes
        -----
        The interval is that of Wilson (1927), for impressions that are independent.

        Examples
        --------
        >>> import pandas as pd
        >>> from rankeval.online import ClickLog
        >>> rows = {"qid": "q", "shown": [["a", "b"]] * 4, "clicked": [["a"], ["a", "b"], [], []]}
        >>> ClickLog.from_frame(pd.DataFrame(rows)).click_rates("position").table.round(3)
           position  impressions  clicked  clicks  click_rate  ci_low  ci_high
        0         1            4        2       2        0.50   0.150    0.850
        1         2            4        1       1        0.25   0.046    0.699
        """
        return self._rates("click_rate", by, "impression")

    def abandonment(self, by: str | Sequence[str] = (), *, of: str = "impression") -> ClickRates:
        """Return the share of impressions, or of sessions, without a click, with 95 % intervals.

        Parameters
        ----------
        by : str or sequence of str, optional
            Groups, such as "arm". A session that is in several groups counts in each with its
            impressions there.
        of : {"impression", "session"}, default "impression"
            The unit. Sessions are those of the log, or of `sessions`.

        Raises
        ------
        UnknownName
            If the log has no such column.
        """
        return self._rates(
            "abandonment", by, chosen("unit of abandonment", of, ("impression", "session"))
        )

    def _rates(self, rate: str, by: str | Sequence[str], unit: str) -> ClickRates:
        hits, more = "abandoned", []
        if rate == "click_rate":
            hits, more = "clicked", ["position", "docid"]
        wanted = [PART_OF.get(name, name) for name in ([by] if isinstance(by, str) else by)]
        known = [*self.impressions, *more]
        names = [chosen("group of rates", name, known) for name in dict.fromkeys(wanted)]
        # Sessions may be counted anew for each user.
        session = []
        if unit == "session":
            session = ["session", *self.impressions.columns.intersection(["user"])]
        groups = [name for name in dict.fromkeys([*names, *session]) if name not in more]
        n = f"{unit}s"
        units = self._known(*groups).assign(**{n: self.counts, "clicks": self._clicks()})
        if {*names}.intersection(more):
            units = self._of_items(units)
            units["clicks"] = units[n] * units["clicked"]
        if session:
            clicks = units.groupby(groups, observed=True)["clicks"].sum()
            units = clicks.reset_index().assign(sessions=1)
        units[hits] = units[n].where((units["clicks"] == 0) == (rate == "abandonment"), 0)
        by_group = units.groupby(names or np.zeros(len(units)), observed=True)
        table = by_group[[n, hits, "clicks"]].sum().reset_index(drop=not names)
        table[rate] = table[hits] / table[n]
        table["ci_low"], table["ci_high"] = wilson(table[hits], table[n])
        return ClickRates(table, tuple(names), rate, (DEPENDENT.format(unit=unit),))

    def checks(self, *, times_usual: float = 20) -> LogChecks:
        """Look for faults of the log: nothing is dropped.

        Checks: events that were repeated, clicks on what was not shown and empty lists, which reading left out;
        impressions without a click; positions never clicked; users with many times
        the usual number of impressions or clicks, who may be robots; users in several arms; times that go back from row
        to row, and times in the future; impressions of the same user, query and time, which may be one event.

        Parameters
        ----------
        times_usual : float, default 20
            List users above so many times the median of all users: of their impressions, or of the
            clicks of those who click.

        Returns
        -------
        LogChecks
            A row per check, and the users to look at: in ``users`` those far above the usual, and
            in ``several_arms`` those in several arms.

        Examples
        --------
        >>> import pandas as pd
        >>> from rankeval.online import ClickLog
        >>> users = ["u1", "u2", "u3"] + ["bot"] * 30
        >>> rows = {"user": users, "shown": [["a", "b"]] * 33, "clicked": [["a"]] * 33}
        >>> log = ClickLog.from_frame(pd.DataFrame(rows))
        >>> log.checks().users["user"].tolist()
        ['bot']
        >>> log.without(users=log.checks().users["user"]).excluded
        {'impressions of users left out': 30}
        """
        check_number("times_usual", times_usual, least=1)
        counts, clicks, log = self.counts, self._clicks(), self.impressions
        lacking = [name for name in ("user", "time", "arm") if name not in log]
        # A column that the log lacks is missing as a whole: its checks have no rows to look at.
        log = log.reindex(columns=["user", "session", "qid", "time", "arm"])
        times = pd.to_datetime(log["time"], utc=True)
        users, usual = _users(log.assign(impressions=counts, clicks=clicks))
        above, several = users["times_usual"] > times_usual, users["arms"] > 1
        again, who = log.drop(columns="arm").duplicated(), log[["user", "session"]].notna()
        is_known = times.notna() & who.any(axis=1)
        never = ~self.items.groupby("position")["clicked"].any()
        # Check, which are found, and how much each row counts
        masks: list[tuple[str, Any, Any]] = [
            ("impressions without a click", clicks == 0, counts),
            ("positions never clicked", never, 1),
            (f"users above {times_usual:g} times the usual", above, 1),
            ("users in several arms", several, users["arms"] > 0),
        ]
        masks += [
            ("times before that of the row above", times.diff() < pd.Timedelta(0), times.notna()),
            ("times in the future", times > pd.Timestamp.now("UTC"), times.notna()),
            ("same user, query and time again", again, is_known),
        ]
        rows = []
        for what, n in (dict.fromkeys(LEFT_OUT, 0) | {**self.excluded}).items():
            held = clicks if what == NOT_SHOWN else counts
            rows.append((f"{what}, left out", n, n + held.sum()))
        for check, mask, n in masks:
            rows.append((check, (mask * n).sum(), (np.ones(len(mask), int) * n).sum()))
        table = pd.DataFrame(rows, columns=["check", "found", "of"])
        table = table.query("of > 0").reset_index(drop=True)
        robots, mixed = users[above].reset_index(), users[several].reset_index()
        notes = []
        if len(robots):
            notes.append(LISTED.format(few([*robots["user"]]), **usual))
        if len(mixed):
            names = few([*mixed["user"]])
            notes.append(
                f"in several arms: {names}; a fault of an A/B test, not of rankers in turn"
            )
        if clicks.all():
            notes.append("each impression has a click: perhaps those without one were not logged")
        if lacking:
            columns = " and no ".join(lacking)
            notes.append(f"the log has no {columns}: checks of them are left out")
        return LogChecks(table, robots, mixed, tuple(notes))

    def _known(self, *names: str) -> pd.DataFrame:
        known = [*self.impressions]
        return self.impressions[
            [chosen("column of the impressions", name, known) for name in names]
        ]

    def _clicks(self) -> Ints:
        """Return the clicks of each row of the impressions, of shape (n_impressions,)."""
        clicked = self.items["impression"][self.items["clicked"]]
        return np.bincount(clicked, minlength=len(self.impressions)) * self.counts

    def to_frame(self) -> pd.DataFrame:
        """Return a row per shown item, with its impression's facts; `from_frame` reads it back."""
        queries = ["qid"] if list(self.impressions["qid"].cat.categories) == [NO_QUERY] else []
        return self._of_items(self.impressions.drop(columns=queries).reset_index())

    def _of_items(self, facts: pd.DataFrame) -> pd.DataFrame:
        """Return a row per shown item: some facts of its impression, and its own."""
        facts = facts.take(self.items["impression"].to_numpy()).set_axis(self.items.index)
        return pd.concat([facts, self.items.drop(columns="impression")], axis=1)

    def _sizes(self) -> str:
        sizes = {
            "impression": self.counts,
            "item": self.counts[self.items["impression"]],
            "click": self._clicks(),
        }
        numbers = [count(int(values.sum()), name) for name, values in sizes.items()]
        return f"ClickLog({', '.join(numbers)})"

    def _laid_out(self) -> Table:
        table = self.click_rates().table.drop(columns="clicked")
        table.columns = table.columns.str.replace("_", " ")
        notes = [f"left out: {n:,} {what}" for what, n in self.excluded.items()]
        return Table(table, caption=self._sizes(), notes=notes)


def _users(log: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Return a row per user, those with most impressions first, and the usual numbers of a user."""
    by_user = log.groupby("user")
    users = by_user[["impressions", "clicks"]].sum()
    users = users.sort_values("impressions", ascending=False, kind="stable")
    # Most users may have no click: usual is the number of those who have.
    usual = users.where(users > 0).median().fillna(0)
    users["times_usual"] = (users / usual).max(axis=1)
    users["arms"] = by_user["arm"].nunique()
    return users, usual


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class ClickRates(Recorded):
    """Click rates, or rates of abandonment, with Wilson intervals.

    Attributes
    ----------
    table : DataFrame
        A row per group. Columns: those of ``by``; impressions, those that show the position or
        document, or all of the group (sessions, if the rate is of sessions); clicked, those with a
        click on it, or with any click (abandoned, those without); clicks, all of them; rate,
        clicked or abandoned by impressions; ci_low, ci_high.
    by : tuple of str
        The columns that make the groups.
    rate : str
        "click_rate" or "abandonment", the column of the rate.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    """

    _row_ends: ClassVar[Mapping[str, str]] = {"click_rate": "", "abandonment": "", **LIMITS}

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
        from rankeval.render.plots import INK, one_panel, shown_name, write_caption

        figure, axes = one_panel(6, 3.6)
        shown = self._shown()
        axes.plot(shown[self.rate].array, "o", color=INK, markersize=4)
        axes.vlines(range(len(shown)), shown["ci_low"], shown["ci_high"], color=INK, linewidth=1)
        labels = ["all"]
        if self.by:
            groups = shown[[*self.by]].to_numpy()
            labels = [" ".join(map(shown_name, group)) for group in groups]
        rotation = 90 if len("".join(labels)) > 60 else 0
        axes.set_xticks(range(len(shown)), labels, parse_math=False, rotation=rotation)
        axes.set(xlabel=", ".join(self.by), ylabel=self.rate.replace("_", " "), ylim=(0, None))
        write_caption(figure, "; ".join(self._laid_out().notes))
        return figure

    def _row_columns(self) -> list[str]:
        return [*self.by]

    def _shown(self) -> pd.DataFrame:
        """Return the groups to show: of very many those with most impressions."""
        return self.table.nlargest(MOST_SHOWN, self.table.columns[len(self.by)]).sort_index()

    def _laid_out(self) -> Table:
        notes, rest = [*self.notes], len(self.table) - MOST_SHOWN
        if rest > 0:
            notes.insert(0, f"the {MOST_SHOWN} largest groups are shown; .table has {rest} more")
        shown = self._shown().rename(columns=lambda name: name.replace("_", " "))
        caption = self.rate.replace("_", " ").capitalize()
        if self.by:
            caption += f" by {', '.join(self.by)}"
        return Table(shown, caption=caption, notes=tuple(notes))


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class LogChecks(Recorded):
    """The checks of a click log.

    Attributes
    ----------
    table : DataFrame
        A row per check: check; found, how many; of, among how many.
    users : DataFrame
        Users far above the usual, who may be robots, those with most impressions first: user,
        impressions, clicks; times_usual, the larger of impressions and clicks as multiples of the
        usual number; arms, in how many the user is, 0 if the log has none.
    several_arms : DataFrame
        Users in several arms, with the same columns.
    notes : tuple of str
        Sentences that a reader of the log must see.
    """

    _row_key = "check"
    _row_ends: ClassVar[Mapping[str, str]] = {"found": ""}

    table: pd.DataFrame
    users: pd.DataFrame
    several_arms: pd.DataFrame
    notes: tuple[str, ...] = ()

    def _row_names(self) -> list[str]:
        return [name.replace(",", "") for name in super()._row_names()]

    def _laid_out(self) -> Table:
        return Table(self.table, caption="Checks of the click log", notes=self.notes)


def wilson(hits: Any, n: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals of Wilson (1927) of the shares ``hits / n``, at 95 %."""
    z2 = 3.841458820694124  # the square of the normal quantile .975
    middle, half = hits + z2 / 2, np.sqrt(z2 * (hits * (n - hits) / n + z2 / 4))
    # Rounding could put an end of no clicks beyond 0.
    low, high = ((middle + sign * half) / (n + z2) for sign in (-1, 1))
    return np.where(hits == 0, 0.0, low), np.where(hits == n, 1.0, high)
