"""A machine as judge: how many rankings it may judge if people judge a few.

::

    queries      q1 q2 q3 ... qN
    machine      m  m  m  ... m       judges all N queries
    people       h     h              judge n of them, drawn at random, and each of these completely

The machine's mean over all queries has little noise, and may be biased. The people's mean over
their queries has no bias, and much noise. The estimate moves the people's mean by as much as the
machine says that their queries are not those of all: ``mean_h + b * (mean_m of all - mean_m of the
judged)``, with b from the judged queries. A difference of two systems is the same, on the
differences by query.

A constant bias of the machine cancels, and a machine that is nonsense gets a b near 0. As b comes
from the judged queries, a bias of order 1/n may be left. The trap: people's scores need not lie
about a straight line in the machine's, with equal noise, and the machine's scores of the judged
queries need not reach as far as those of all. So the standard error has three parts (`two_phase`).
The guide "An LLM as judge" has the figures, measured by `tests/calibration/measure_machine.py`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy import stats

from rankeval._arguments import explained
from rankeval._checks import check_count, check_number, check_share, count, few, refuse, require
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.comparison.design import Design
from rankeval.comparison.inputs import Measures, Scores, shared_scores
from rankeval.comparison.recorded import ADJUSTED_LIMITS, Recorded
from rankeval.comparison.tables import WithTable
from rankeval.errors import QueryIdError
from rankeval.evaluation import Evaluation
from rankeval.evaluation.result import by_name, reading_of
from rankeval.io.columns import comparable
from rankeval.render.layouts import shown_interval
from rankeval.render.tables import Format, Table, number, p_value
from rankeval.significance.columns import deviation, two_phase
from rankeval.significance.declarations import (
    CORRECTIONS,
    TESTS,
    Floats,
    Rng,
    Settings,
    generator_of,
)
from rankeval.significance.running import adjust, run

if TYPE_CHECKING:
    from rankeval.render.plots import Figure

FEWEST, FEW, FEW_PILED, UNLIKE = 8, 50, 100, 0.01
"""Queries that people must judge; those below which a note has the measured coverage; and if half the scores are equal.

The last is the level of the test whether the judged queries are like the others.
"""
LITTLE, HEAVY = 1.2, 0.25
"""The gain below which people alone are advised; the share of a query in the machine's spread that is noted above."""

FEW_NOTE = (
    "people judged only {n} queries: the gain may be far off, and 95 % intervals covered the "
    "value in 90 to 100 % of trials with 10 queries, in 91 to 98 % with 25, least where most scores are the greatest "
    "or the least value (there people alone in 88 to 93 %, so they are no better): let people judge 50"
)
LOST_NOTE = (
    "people alone, as a judge's scores of their queries do not vary, or in one query alone: {rows}"
)
LITTLE_NOTE = (
    f"gain below {LITTLE:g}, the machine adds little or only noise: take people alone (ci_low_human, ci_high_human) "
    "for {rows}"
)
HEAVY_NOTE = (
    "one query has up to {most:.0%} of the machine's spread, and decides how far it is believed: compare people alone "
    "(ci_low_human, ci_high_human) for {rows}"
)
UNLIKE_NOTE = "by the machine's scores the judged queries may be no random sample (Kolmogorov-Smirnov, p-value {p})"
DEEPER_NOTE = (
    "in {queries} the machine judged documents that people did not, below the ranks that the measures read: an ideal "
    "ranking (nDCG) and a number of relevant documents (recall) are those of the documents that people judged"
)
REMEDY = (
    "let people judge whole queries, drawn by rk.judging.draw, in every system and as deep as the measures read, with "
    "all documents that tie there; or take measures that read no deeper than people judged"
)
ROW = ["measure", "baseline", "system"]
"""The columns that name a row."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Recorded):
    """The estimates from people's judgments of some queries and a machine's of all.

    Attributes
    ----------
    table : DataFrame
        A row per measure and pair of systems. Columns: measure, baseline, system; n_human and
        n_machine, the queries that people and the machine judged; mean_human and mean_machine, the
        mean difference (system minus baseline) by people over theirs and by the machine over all;
        estimate, p_value, ci_low, ci_high, of the difference; p_adjusted, ci_low_adjusted,
        ci_high_adjusted, corrected for all rows; correlation, of the two judges' differences over
        the judged queries; gain, the variance of the people's mean divided by that of the estimate:
        2 is as if people had judged twice as many queries, below 1 the machine does harm, and with
        fewer than 50 judged queries it may be far off; std_error and degrees, of the estimate and
        of its t. Then ci_low_human, ci_high_human, p_human, sd_human, ci_low_machine,
        ci_high_machine, p_machine, sd_machine, by Student's t: of the people alone, and of the
        machine alone, if it were believed. Then slope and sd_residual, of and about the regression
        line; leverage, the largest share of one judged query in the spread of the machine's scores;
        and inflation, the squared error from the people's queries divided by that of even scatter,
        1 or more. For one system there is a row per measure: its mean.
    means : DataFrame
        A row per measure and system: the same columns for its mean; baseline is empty, and no
        p-value is given. The estimate of a difference is not that of the means: it has a regression
        of its own.
    correction : str
        The correction for many comparisons.
    alpha : float
        1 less the level of the intervals.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    bias : DataFrame
        How far the machine is off, over the n_human queries that both judged. A row per measure and
        system (baseline is empty), then one per row of ``table`` if that has pairs. Columns:
        measure, baseline, system, n_human; bias, the mean of the machine's score less people's;
        ci_low, ci_high and p_value by Student's t, not corrected. The bias of a pair is that of the
        system less that of the baseline: above 0 the machine favours the system.
    """

    _row_key = "measure"
    _row_ends: ClassVar[Mapping[str, str]] = {
        "estimate": "",
        "gain": "_gain",
        "p_adjusted": "_p_adjusted",
        **ADJUSTED_LIMITS,
    }

    table: pd.DataFrame
    means: pd.DataFrame
    correction: str
    alpha: float
    notes: tuple[str, ...] = ()
    bias: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def caption(self) -> str:
        """The test, which intervals are shown, and who judged how many queries, in one line."""
        first, kind = self.table.iloc[0], shown_interval(self.table)[2]
        family = (
            f", {CORRECTIONS[self.correction].words} over {len(self.table)}"
            if len(self.table) > 1
            else ""
        )
        judged = f"People judged {first.n_human:,} of the {first.n_machine:,} queries that the machine judged"
        return f"Regression t test{family}; {100 * (1 - self.alpha):g} % intervals{kind}. {judged}"

    def plot(self) -> Figure:
        """Draw each estimate with its interval beside those of the people alone and of the machine alone."""
        from rankeval.judging.figures import estimates

        return estimates(self.table, alpha=self.alpha, caption=self.caption)

    def _laid_out(self) -> Table:
        low, high, _ = shown_interval(self.table)
        names = {"mean_human": "people", "mean_machine": "machine", "estimate": "estimate"}
        names |= {low: "low", high: "high", "p_adjusted": "p", "correlation": "r", "gain": "gain"}
        formats: dict[str, Format] = dict.fromkeys(names.values(), partial(number, digits=3))
        formats |= {"p": p_value, "gain": ".2f"}
        frame = self.table[[*ROW, *names]].rename(columns=names)
        return Table(frame, formats, caption=self.caption, notes=self.notes)


@explained
def calibrate(
    human: Mapping[str, Scores],
    machine: Mapping[str, Scores],
    *,
    baseline: str | None = None,
    measures: Measures | None = None,
    correction: str = "holm",
    alpha: float = 0.05,
) -> Calibration:
    """Estimate means and differences of systems from people's judgments of some queries and a machine's of all.

    People must have judged a random sample of the queries, and each of these completely: `draw`
    draws them. The machine may be biased, or know nothing.

    Parameters
    ----------
    human : mapping of str to Evaluation or DataFrame
        Name -> scores of each system by people's judgments, as in `rankeval.compare`: n queries, 8
        or more.
    machine : mapping of str to Evaluation or DataFrame
        Name -> scores of the same systems by the machine's judgments: all N queries, also those
        that people judged.
    baseline : str, optional
        The system that the others are compared with. By default all pairs are compared.
    measures : str, Measure or sequence of them, optional
        By default all means and geometric means that all scores share.
    correction : str, default "holm"
        "holm", "bonferroni", "bh", "by" or "none"; all rows are one family. The first two and the
        last have adjusted intervals too.
    alpha : float, default 0.05
        1 less the level of the intervals.

    Returns
    -------
    Calibration
        Its notes warn if people judged few queries, if the machine scores the judged queries unlike
        the others (a Kolmogorov-Smirnov test at .01 over all scores), if one query decides, or if
        the machine hardly helps.

    Raises
    ------
    ConventionMismatch
        If conventions differ, or judgments of the same judge.
    QueryIdError
        If people judged a query that the machine did not, or queries are not the same in all
        systems.
    InvalidInput
        If people judged fewer than 8 queries, or a query in part; if the two mappings have other
        systems, or scores are refused by `rankeval.compare`; scores of several collections are.
    UnknownName
        If a baseline, measure or correction does not exist.

    Notes
    -----
    The two-phase regression estimate over queries (Cochran 1977, Sampling Techniques, chapter 12): ``theta = mean_h +
    b (mean_m of all - mean_m of the judged)`` with b by least squares on the n judged queries, and t with n - 2 degrees
    of freedom. ``se^2 = max(s^2 (1/n + (mean_m of all - mean_m of the judged)^2 / Sxx), HC3) + beyond^2 + b^2 s_m^2 /
    N``: HC3 (MacKinnon and White 1985, doi:10.1016/0304-4076(85)90158-7) is the error of the line if people's scores
    scatter unevenly about it, and beyond is twice the part of the estimate that rests on machine scores outside the
    range of the judged queries. If a judge's scores of the judged queries do not vary, or vary in one query alone, the
    row is the people's alone. The estimate has a bias of order 1/n unless people's scores lie about a line in the
    machine's.

    Two evaluations are checked for queries judged in part by their counts: within the cut-off of
    each measure, and among the documents that tie there, people must have judged as many documents
    of each ranking as the machine. A measure without a cut-off reads the whole ranking. So does any
    measure if the evaluations have rankings of unlike lengths, or leave out documents without a
    judgment. Documents that neither judged are not counted. The labels behind an ideal ranking
    (nDCG) or a number of relevant documents are not kept: a pool of people that is as deep as the
    measures read is accepted, the ideal is that of its documents, and a note counts the queries in
    which the machine judged more. DataFrames of scores cannot be checked.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"P@5": [0.2, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8, 1.0]}, index=range(8))
    >>> model = pd.DataFrame({"P@5": [0.4, 0.4, 0.6, 0.6, 0.8, 0.8, 1.0, 1.0, 0.8, 0.6] * 4}, index=range(40))
    >>> row = calibrate({"bm25": people}, {"bm25": model}).table.iloc[0]
    >>> print(f"people {row.mean_human:.2f}, machine {row.mean_machine:.2f}, estimate {row.estimate:.2f}")
    people 0.60, machine 0.70, estimate 0.60
    """
    systems, others = (
        list(labels) if isinstance(labels, Mapping) else [] for labels in (human, machine)
    )
    problem = (
        f"people judged {few(systems) or 'no system'}, and the machine {few(others) or 'no system'}"
    )
    refuse((set(systems) != set(others), problem))
    # The judges stand where collections do: the same rules within each, and judgments of its own.
    both = {name: {"people": human[name], "the machine": machine[name]} for name in systems}
    shared = shared_scores(both, measures, unpaired="error", baseline=baseline, fewest=1)
    chosen("correction", correction, CORRECTIONS)
    judged, every = shared.places["people"], shared.places["the machine"]
    n, rows = len(judged), shared.queries[every].get_indexer(shared.queries[judged])
    refuse(
        (
            n < FEWEST,
            f"people judged {count(n, 'query')}: at least {FEWEST} are needed, so draw and judge more",
        )
    )
    lacked = shared.queries[judged][rows < 0].tolist()
    problem = f"the machine's scores lack {len(lacked)} of the {n} queries that people judged: {few(lacked)}"
    refuse((bool(lacked), problem), kind=QueryIdError)
    deeper = _refuse_partly_judged(human, machine, shared.measures)
    blocks = [shared.scores[places] for places in (judged, every[rows], every)]
    design = Design(shared.systems, shared.measures, baseline, "all")
    settings = Settings(alpha=alpha)
    # The systems of a measure beside each other, as the differences are.
    flat = [np.moveaxis(scores, 2, 1).reshape(len(scores), -1) for scores in blocks]
    names = [(measure, "", system) for measure in design.measures for system in design.systems]
    means = _estimated(pd.DataFrame(names, columns=ROW), flat, settings, correction)
    means = table = means.assign(
        p_value=np.nan, p_adjusted=np.nan, p_human=np.nan, p_machine=np.nan
    )
    bias = _bias(means[ROW], flat, settings)
    if len(design.systems) > 1:
        differences = list(map(design.differences, blocks))
        table = _estimated(pd.DataFrame(design.names), differences, settings, correction)
        bias = pd.concat([bias, _bias(table[ROW], differences, settings)], ignore_index=True)
    notes = [*shared.notes, *_notes(table, flat, rows)]
    if deeper:
        notes.append(DEEPER_NOTE.format(queries=count(deeper, "query")))
    if len(table) > 1 and (note := CORRECTIONS[correction].note):
        notes.append(note.format(size=len(table)))
    return Calibration(table, means, correction, settings.alpha, tuple(notes), bias)


def _bias(names: pd.DataFrame, blocks: Sequence[Floats], settings: Settings) -> pd.DataFrame:
    """Return the table of biases from people's scores, the machine's of the same, and of all queries."""
    human, judged, _ = blocks
    off = run(TESTS["t"], judged - human, settings)
    bias = names.assign(n_human=len(human), bias=(judged - human).mean(axis=0))
    return bias.assign(ci_low=off.ci_low, ci_high=off.ci_high, p_value=off.p_value)


def _estimated(
    names: pd.DataFrame, blocks: Sequence[Floats], settings: Settings, correction: str
) -> pd.DataFrame:
    """Return the table from people's scores, the machine's of the same, and of all queries."""
    human, _, machine = blocks
    estimates, level = two_phase(*blocks), CORRECTIONS[correction].interval_level
    estimate, error, degrees = (estimates[name] for name in ("estimate", "std_error", "degrees"))
    p = np.maximum(2 * stats.t.sf(estimate.abs() / error, degrees), np.finfo(float).tiny)
    table = names.assign(n_human=len(human), n_machine=len(machine), mean_human=human.mean(axis=0))
    table = table.assign(mean_machine=machine.mean(axis=0), estimate=estimate)
    table["p_value"], table["p_adjusted"] = p, adjust(p, correction)
    adjusted = level(settings.alpha, len(names)) if level else np.nan
    for kind, alpha in (("", settings.alpha), ("_adjusted", adjusted)):
        reach = stats.t.isf(alpha / 2, degrees) * error
        table[f"ci_low{kind}"], table[f"ci_high{kind}"] = estimate - reach, estimate + reach
    for judge, scores in (("human", human), ("machine", machine)):
        alone = run(TESTS["t"], scores, settings)
        table[f"ci_low_{judge}"], table[f"ci_high_{judge}"] = alone.ci_low, alone.ci_high
        table[f"p_{judge}"], table[f"sd_{judge}"] = alone.p_value, deviation(scores)
    return table.join(estimates.drop(columns="estimate"))


def row_names(table: pd.DataFrame) -> pd.Series[str]:
    """Return "system - baseline by measure" for each row, or "system by measure" without a baseline."""
    pairs = table["system"] + " - " + table["baseline"]
    return pairs.where(table["baseline"] != "", table["system"]) + " by " + table["measure"]


def _notes(table: pd.DataFrame, scores: Sequence[Floats], rows: Any) -> list[str]:
    """Return notes on few queries, a machine that hardly helps, and unlike judged queries."""
    people, judged, others = scores[0], scores[1], np.delete(scores[2], rows, axis=0)
    n, used = len(people), len(others) > 0
    piled = max((people == end(axis=0)).mean(axis=0).max() for end in (people.max, people.min))
    names, lost = row_names(table), table["correlation"].isna()
    lost_names = names[lost].tolist()
    notes = []
    if n < FEW or (n < FEW_PILED and piled >= 0.5):
        notes.append(FEW_NOTE.format(n=n))
    if not used:
        notes.append("people judged all queries, so the machine adds nothing")
    if lost_names:
        notes.append(LOST_NOTE.format(rows=few(lost_names)))
    if not used:
        return notes
    if little := names[(table["gain"] < LITTLE) & ~lost].tolist():
        notes.append(LITTLE_NOTE.format(rows=few(little)))
    if heavy := names[table["leverage"] > HEAVY].tolist():
        notes.append(HEAVY_NOTE.format(most=table["leverage"].max(), rows=few(heavy)))
    p = stats.ks_2samp(judged, others, method="asymp").pvalue.min() * judged.shape[1]
    if p < UNLIKE:
        notes.append(UNLIKE_NOTE.format(p=p_value(p)))
    return notes


def _refuse_partly_judged(
    human: Mapping[str, Scores], machine: Mapping[str, Scores], measures: Sequence[str]
) -> int:
    """Refuse queries in which people did not judge what a measure reads and the machine judged.

    Return in how many queries the machine judged more below that.
    """
    partly: dict[Any, str] = {}
    deeper: set[Any] = set()
    for name, people in human.items():
        whole = machine[name]
        if not (isinstance(people, Evaluation) and isinstance(whole, Evaluation)):
            continue
        whole = whole.subset(people.queries)
        queries = people.queries.tolist()
        deeper |= {*compress(queries, _lacking(people, whole) > 0)}
        for measure in measures:
            for query, lacks in zip(queries, _lacking(people, whole, measure), strict=True):
                if lacks > 0:
                    reads = f"that {measure} reads of query {query!r} in {name!r}"
                    partly.setdefault(query, f"{count(math.ceil(lacks), 'document')} {reads}")
    first, size = next(iter(partly.values()), ""), count(len(partly), "query")
    problem = f"people judged {size} in part: they left out {first}, which the machine judged"
    refuse((partly, problem, REMEDY), argument="human")
    return len(deeper)


def _lacking(people: Evaluation, whole: Evaluation, measure: str | None = None) -> Floats:
    """Return how many documents of each ranking the machine judged and people did not.

    Only those that a measure reads count, if one is named and it is known which it reads.
    """
    counts, all_counts = people.facts.query_counts, whole.facts.query_counts
    more = np.asarray(all_counts["judged"] - counts["judged"], dtype=np.float64)
    if measure is None:
        return more
    has, of = (
        reading_of(evaluation, "judged")[:, evaluation.measure_names.index(measure)]
        for evaluation in (people, whole)
    )
    cutoff = by_name(people)[measure].cutoff
    depth = np.minimum(counts["retrieved"], np.inf if cutoff is None else cutoff)
    within = np.round((of - has) * depth, 9)  # tied rows count by their share
    is_known = (counts["retrieved"] == all_counts["retrieved"]) & np.isfinite(within)
    return np.where(is_known, within, more)


@explained
def draw(queries: Iterable[Any], n: int, rng: Rng = 0) -> list[Any]:
    """Draw the queries that people judge: a random sample, the same for the same seed.

    Parameters
    ----------
    queries : iterable
        Query ids of one type, in any order and any number of times, such as ``evaluation.queries``.
    n : int
        How many to draw. A larger n with the same seed draws these and more: a sample can be
        extended.
    rng : int, Generator or None, default 0
        Seed.

    Returns
    -------
    list
        The ids in ascending order.

    Raises
    ------
    InvalidInput
        If there are fewer than n queries, n is not a whole number of 1 or more, or queries are a
        text.
    QueryIdError
        If an id is missing, or ids are of several types.

    Examples
    --------
    >>> draw(range(100), 5), draw(range(100), 6)
    ([5, 20, 36, 82, 93], [5, 16, 20, 36, 82, 93])
    """
    check_count("n", n)
    require(not isinstance(queries, (str, bytes)), "queries", queries, "a collection of query ids")
    column, names = comparable(list(queries), "qid")
    ids = pd.Index(np.unique(column if names is None else names))
    refuse((n > len(ids), f"n is {n}, and there are only {count(len(ids), 'query')}"))
    return list(ids[np.sort(generator_of(rng).permutation(len(ids))[:n])])


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Plan(WithTable):
    """How many queries people must judge for intervals of a wanted width.

    Attributes
    ----------
    table : DataFrame
        A row for each of the pilot's. Columns: measure, baseline, system; n_human, the queries that
        people must judge beside the machine (missing if no number reaches the width); n_without,
        those that they must judge without it; n_machine, the queries of the machine; least_width,
        that of the interval if people judge all of these. About half of the intervals of n_human
        queries are wider.
    width : float
        Of the interval, from end to end.
    confidence_level : float
        Of the interval.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    """

    table: pd.DataFrame
    width: float
    confidence_level: float
    notes: tuple[str, ...] = ()

    def _laid_out(self) -> Table:
        intervals = f"{100 * self.confidence_level:g} % intervals, unadjusted"
        caption = f"Queries that people judge: {intervals}, mean width {self.width:g}"
        return Table(
            self.table,
            {"least_width": partial(number, digits=3)},
            caption=caption,
            notes=self.notes,
        )


@explained
def plan(
    pilot: Calibration,
    *,
    width: float,
    n_machine: int | None = None,
    confidence_level: float = 0.95,
) -> Plan:
    """Say how many queries people must judge for intervals of a wanted width, with the machine and without.

    Parameters
    ----------
    pilot : Calibration
        A first, small one, whose spreads are taken for the true ones.
    width : float
        Expected width of the interval of each row alone, from end to end. Intervals adjusted for
        several rows are wider: for Holm or Bonferroni give the level 1 - alpha / rows.
    n_machine : int, optional
        Queries that the machine will judge; by default as many as in the pilot.
    confidence_level : float, default 0.95
        Of the interval.

    Returns
    -------
    Plan
        Its notes have the rows whose width cannot be reached, and why.

    Raises
    ------
    InvalidInput
        If the width is not above 0, or the level or n_machine is out of range.

    Notes
    -----
    The expected squared error of the estimate of n queries out of N is about ``f s^2 / n * (1 + (1 - n / N) / (n - 3))
    + b^2 s_m^2 / N``, with f the pilot's inflation, or 1 + 3 / n if that is more: HC3 adds so much in even scatter.
    The second term does not fall with n: only more queries for the machine lower it. If a judge's scores of the pilot
    do not vary, people are planned alone, as `calibrate` takes them.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"P@5": [0.2, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8, 1.0]}, index=range(8))
    >>> model = pd.DataFrame({"P@5": [0.4, 0.4, 0.6, 0.6, 0.8, 0.8, 1.0, 1.0, 0.8, 0.6] * 40}, index=range(400))
    >>> plan(calibrate({"bm25": people}, {"bm25": model}), width=0.1).table[["n_human", "n_without"]].values.tolist()
    [[39, 108]]
    """
    n_pilot, of_pilot = (int(pilot.table[name].iloc[0]) for name in ("n_human", "n_machine"))
    n_all = of_pilot if n_machine is None else n_machine
    check_number("width", width, least=0)
    require(width > 0, "width", width, "a number above 0")
    width = float(width)
    check_share("confidence_level", confidence_level)
    check_count("n_machine", n_all, least=FEWEST)
    rows, notes, tail = [], [], (1 - confidence_level) / 2
    for name, row in zip(row_names(pilot.table), pilot.table.to_dict("records"), strict=True):
        least, at_all = _fewest(row, tail, width, n_all), _width(row, tail, n_all, n_all)
        rows.append([least, _fewest(row, tail, width, None), n_all, at_all])
        more = f"it is {at_all:.3g} if people judge all {n_all:,}: the machine must judge more (n_machine=)"
        why = (
            more
            if row["sd_human"]
            else "people's scores of the pilot do not vary, so their spread is not known"
        )
        if least is None:
            notes.append(f"{name}: a width of {width:g} cannot be reached; {why}")
    notes.append(
        f"numbers from a pilot of {n_pilot:,} queries are off by {math.sqrt(2 / (n_pilot - 1)):.0%} or so"
    )
    numbers = pd.DataFrame(rows, columns=["n_human", "n_without", "n_machine", "least_width"])
    table = pilot.table[ROW].join(numbers.astype({"n_human": "Int64", "n_without": "Int64"}))
    return Plan(table, width, confidence_level, tuple(notes))


def _width(row: Mapping[Any, Any], tail: float, n: int, n_all: int | None) -> float:
    """Return the expected width of a row's interval if people judge n queries, n_all the machine."""
    if n_all is None or math.isnan(row["correlation"]):  # as `two_phase` takes people alone
        return float(2 * stats.t.isf(tail, n - 1) * (row["sd_human"] or math.nan) / math.sqrt(n))
    sampled = 1 + (1 - n / n_all) / (n - 3)
    own = row["sd_residual"] ** 2 / n * sampled * max(row["inflation"], 1 + 3 / n)
    of_machine = (row["slope"] * row["sd_machine"]) ** 2 / n_all
    return float(2 * stats.t.isf(tail, n - 2) * math.sqrt(own + of_machine))


def _fewest(row: Mapping[Any, Any], tail: float, width: float, n_all: int | None) -> int | None:
    """Return the least number of queries that people must judge for a width."""
    numbers = range(FEWEST, (n_all or 2**62) + 1)
    place = bisect_left(numbers, True, key=lambda n: _width(row, tail, n, n_all) <= width)
    return next(iter(numbers[place:]), None)
