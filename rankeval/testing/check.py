"""What a check found: a row of numbers per measure, and the words for them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pandas as pd

from rankeval._arguments import explained
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.comparison.design import TOGETHER
from rankeval.evaluation.by_query import LEAST_QUERIES
from rankeval.render.tables import Table, interval, number, p_value, signed
from rankeval.significance.declarations import TESTS
from rankeval.significance.power import topics_needed

Claim = Literal["no regression", "not worse"]

CHECKS: deque[Mapping[str, str]] = deque(maxlen=1000)
"""What was checked in this process, the latest last: the texts of `Check.rows`."""

_interval = partial(interval, sign=True)

SLICE = "slice"
"""The first column of tables that have slices."""

RELIABLE = 0.8
"""A check of non-inferiority that an equal system passes less often than this gets advice."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Check(Displayed):
    """The numbers of one call of `assert_no_regression` or `assert_not_worse`.

    Attributes
    ----------
    claim : {"no regression", "not worse"}
        Which of the two.
    table : DataFrame of shape (n_measures, 13)
        A row per measure, and per slice. With slices the first column is slice ("all" for all
        queries), and failed rows come first, the greatest loss at the top.
        Columns: measure, n_queries (of groups: their number), baseline and
        candidate (means), gain (of the candidate; positive is better, also for measures by which
        less is better), ci_low and ci_high (the two one-sided limits of the gain, each at the level
        1 - alpha, with alpha divided by the number of rows that are corrected together), margin,
        p_value (of the loss beyond the margin, or of non-inferiority; corrected by Holm for a loss
        by several measures, and for slices), sd (of the differences),
        greatest_loss (of a query), rate, and passed. A slice with fewer than 5 queries has neither
        interval nor p_value, and passes; so does a slice that is equal on every query, by
        "no regression".
        The rate of "no regression" is the true loss that the check finds in 80 of 100 data sets,
        that of "not worse" is the chance that a candidate with the baseline's mean passes; nan for
        tests whose power is not that of Student's t.
    test : str
        Name of the test.
    alpha : float
        Its one-sided level.
    worst : mapping of str to str
        Measure that failed, such as ``nDCG@10`` or ``nDCG@10, market fr`` -> table of the queries
        that lost most.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    unseen : int
        Number of unseen queries that "not worse" counts.
    over : str
        What was tested, in words: "50 queries", or "20 conversations of 100 queries".
    units : str
        The noun for it, in the plural.
    by : str
        Name of the attribute of the slices; empty if there are none.
    n_parts : int
        Number of parts that were tested: all queries, and the slices.
    effective_share : float
        Effective number of weighted queries, by their number; 1 without weights.
    """

    claim: Claim
    table: pd.DataFrame
    test: str
    alpha: float
    worst: Mapping[str, str]
    notes: tuple[str, ...] = ()
    unseen: int = 0
    over: str = ""
    units: str = "queries"
    by: str = ""
    n_parts: int = 1
    effective_share: float = 1.0

    @property
    def passed(self) -> bool:
        """Whether the check passes by every measure and in every slice."""
        return bool(self.table["passed"].all())

    @property
    def verdicts(self) -> list[str]:
        """One sentence per row of the table."""
        return [self._verdict(row) for row in self._records()]

    def failure(self) -> str:
        """Return the message of a failing check: verdicts, numbers, and the worst queries."""
        rows = [row for row in self._records() if not row["passed"]]
        failed = [
            f"{label_of(row, self.by)}: {signed(row['gain'])}, {self._verdict(row)}" for row in rows
        ]
        return "\n\n".join(["; ".join(failed), self._laid_out().to_text(), *self.worst.values()])

    def rows(self) -> list[dict[str, str]]:
        """Return measure, queries, gain, interval, verdict and failure of each row, in words.

        The measure of a slice is such as ``nDCG@10, market fr``.
        The failure is the table of the queries that lost most; it is empty if the check passes by
        this measure.
        """
        return [self._in_words(row) for row in self._records()]

    def _in_words(self, row: Mapping[Hashable, Any]) -> dict[str, str]:
        label, limits = label_of(row, self.by), _interval(row["ci_low"], row["ci_high"])
        if not math.isnan(row["ci_low"]):
            limits += f" ({self._level})"
        return {
            "measure": label,
            "queries": f"{row['n_queries']:,}",
            "gain": signed(row["gain"]),
            "interval": limits,
            "verdict": self._verdict(row) + self._aside(row["rate"]),
            "failure": self.worst.get(label, ""),
        }

    def _view(self) -> View:
        return View(tables=[self._laid_out()])

    def _records(self) -> list[dict[Hashable, Any]]:
        return self.table.to_dict("records")

    def _verdict(self, row: Mapping[Hashable, Any]) -> str:
        if math.isnan(row["p_value"]):
            if row["n_queries"] < LEAST_QUERIES:
                return f"not tested, with fewer than {LEAST_QUERIES} {self.units}"
            is_unchanged = row["gain"] == 0 and row["sd"] == 0
            return (
                "equal on every query" if is_unchanged else "not tested: one query weighs too much"
            )
        margin = row["margin"]
        beyond = f" of more than {margin:g}" if margin else ""
        verdict = _VERDICTS[self.claim, bool(row["passed"])]
        return verdict.format(margin=f"{margin:g}", beyond=beyond)

    def _aside(self, rate: float) -> str:
        if math.isnan(rate):
            return ""
        if self.claim == "not worse":
            return f" (an equal system passes {_percent(rate)} of the time)"
        return f" (a true loss of {number(rate)} is shown 80 % of the time)"

    def _laid_out(self) -> Table:
        rate, table = _RATES[self.claim], self.table
        limits = map(_interval, table["ci_low"], table["ci_high"])
        sized = [SLICE, "n_queries"] if self.by else []
        frame = table[["measure", *sized, "baseline", "candidate", "gain"]].copy()
        frame = frame.rename(columns={"n_queries": self.units})
        frame[f"{self._level} interval"] = list(limits)
        for title, column in (("margin", "margin"), ("p", "p_value"), (rate, "rate")):
            frame[title] = table[column]
        formats: dict[str, Any] = {"gain": signed, "margin": "g", "p": p_value}
        formats[rate] = _percent if self.claim == "not worse" else number
        words = TESTS[self.test].words
        test = f"{words[0].upper()}{words[1:]}, one-sided"
        family = f", by {self.by} (Holm over {self._n_corrected()} parts)" if self.by else ""
        caption = f"{test}, over {self.over}{family}, alpha {self.alpha:g}"
        notes = (_MEANINGS[self.claim], *self._advice(), *self._unseen_losses(), *self.notes)
        return Table(frame, formats=formats, caption=caption, notes=notes)

    @property
    def _level(self) -> str:
        """The level of the intervals: losses by several measures are one family."""
        is_family = self.claim == "no regression"
        n_rows = self.n_parts * (self.table["measure"].nunique() if is_family else 1)
        return f"{100 * (1 - 2 * self.alpha / n_rows):.4g} %"

    def _n_corrected(self) -> int:
        return self.table.loc[self.table["p_value"].notna(), SLICE].nunique()

    def _advice(self) -> list[str]:
        advice: list[str] = []
        for row in self._records() if self.claim == "not worse" else ():
            if row["rate"] < RELIABLE and (row["sd"] > 0 or self.unseen):
                passes = f"an equal system passes only {_percent(row['rate'])} of the time"
                needed = f"for 80 % take {self._needed(row):,} {self.units} or a wider margin"
                advice.append(f"{label_of(row, self.by)}: {passes}; {needed}")
        return advice

    def _unseen_losses(self) -> list[str]:
        """Say which loss would not be found in slices that show less than half of what all queries do."""
        if not self.by or self.claim == "not worse":
            return []
        whole = self.table[self.table[SLICE] == TOGETHER].set_index("measure")["rate"]
        small = self.table[self.table["rate"] > 2 * self.table["measure"].map(whole)]
        return [
            f"a loss under {row['rate']:.2g} {row['measure']} in {row[SLICE]} "
            f"({row['n_queries']:,} {self.units}) would not be found reliably"
            for row in small.to_dict("records")
        ]

    def _needed(self, row: Mapping[Hashable, Any]) -> int:
        rule = {"margin": row["margin"], "greatest_loss": row["greatest_loss"]}
        sd, claim, unseen = row["sd"], "not_worse", self.unseen
        level = self.alpha / self.n_parts
        equal = topics_needed(0.0, sd, level, RELIABLE, claim=claim, unseen=unseen, **rule)
        return math.ceil(equal / self.effective_share)


def label_of(row: Mapping[Hashable, Any], by: str) -> str:
    """Return the measure of a row, with its slice: "nDCG@10, market fr"."""
    part = row.get(SLICE, TOGETHER)
    return str(row["measure"]) if part == TOGETHER else f"{row['measure']}, {by} {part}"


def record(check: Check) -> None:
    """Keep what a check found in `CHECKS`."""
    CHECKS.extend(check.rows())


def _percent(share: float) -> str:
    """Write a share in percent, never 100 for less; nan as a dash."""
    if math.isnan(share):
        return number(share)
    return "> 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


_RATES = {"no regression": "loss found", "not worse": "equal passes"}
_VERDICTS = {
    ("no regression", True): "no loss{beyond} is shown",
    ("no regression", False): "a loss{beyond} is shown",
    ("not worse", True): "a loss of {margin} is ruled out",
    ("not worse", False): "a loss of {margin} is not ruled out",
}
_MEANINGS = {
    "no regression": "fails if p, for a loss beyond the margin, is at most alpha; "
    "loss found: the true loss that fails 80 % of the time",
    "not worse": "fails if p, for a loss smaller than the margin, is above alpha; "
    "equal passes: how often a candidate with the baseline's true mean passes",
}
