"""What the headline says of one row: difference, interval and p, and what could have been found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from rankeval._checks import count
from rankeval.comparison.record import ComparisonRecord
from rankeval.comparison.scores import POOLED_FOLDS
from rankeval.measures import greater_is_better
from rankeval.render.tables import p_value, telling
from rankeval.significance.columns import TIE_TOLERANCE
from rankeval.significance.declarations import CLAIMS, CORRECTIONS, TESTS, Alternative, Settings, all_tests
from rankeval.significance.running import limited_by_resamples


@dataclass(frozen=True)
class Row:
    """A row of the table, as sentences need it. ``low, high`` is the adjusted interval, or else the row's own."""

    system: str
    baseline: str
    measure: str
    difference: float
    gain: float
    low: float
    high: float
    is_adjusted: bool
    p: float
    shown: bool
    parted: bool
    n_queries: int
    n_decided: int
    detectable: float


def evidence(record: ComparisonRecord, row: Row) -> str:
    """Write difference, interval, number of queries and p."""
    finite = [abs(value) for value in (row.difference, row.low, row.high) if math.isfinite(value)]
    least = TIE_TOLERANCE * max(finite)  # below it is what rounding leaves of 0
    difference, low, high = (telling(one, sign=True, least=least) for one in (row.difference, row.low, row.high))
    ends = f"{low} to {high}"
    interval = f"{100 * (record.adjusted_level if row.is_adjusted else record.interval_level):g}% interval"
    if row.is_adjusted or record.n_comparisons == 1:
        interval = f"{interval} {ends}"
    elif math.isnan(row.p):
        interval = f"{interval} of this pair alone {ends}"
    else:
        interval = f"{interval} of this pair alone {ends}; none belongs to {record.correction_words}"
    lower = "" if greater_is_better(row.measure) else " (less is better)"
    size = count(row.n_queries, "query")
    over = f"over {count(len(record.folds.scores), 'fold')} of {size}" if record.folds else f"on {size}"
    said = f"{difference} {row.measure}{lower} [{interval}], {over}"
    if math.isnan(row.p):
        return said
    uncorrected = record.correction == "none" and record.n_comparisons > 1
    many = f", not corrected for the {record.n_comparisons} comparisons" if uncorrected else ""
    pooled = " (approximate: queries of several folds)" if POOLED_FOLDS in record.notes else ""
    return f"{said}, {p_words(row.p)}{pooled}{many}"


def p_words(value: float) -> str:
    """Write a p-value as sentences do."""
    p = p_value(value)
    return f"p {p if p.startswith('<') else f'= {p}'}"


def parting(record: ComparisonRecord, row: Row) -> list[str]:
    """Say so if the adjusted p and the adjusted interval do not agree."""
    if not row.parted:
        return []
    is_plain = not CLAIMS[record.claim].hypotheses
    shows, hides = ("excludes 0", "includes 0") if is_plain else ("shows the claim", "does not show the claim")
    if row.shown:
        said = f"The adjusted p is at most {record.alpha:g}, but the interval {hides}"
    else:
        said = f"The interval {shows}, but the adjusted p is above {record.alpha:g}"
    return [f"{said}: p steps down over the family or comes from another test, and the claim goes by p."]


def detectable(record: ComparisonRecord, row: Row) -> list[str]:
    """Say which difference so many queries would find, or why they find none."""
    if row.n_decided == 0:
        return [f"{row.system} and {row.baseline} are equal on every {'fold' if record.folds else 'query'}."]
    # A difference that is the same on every query has no variance, but for rounding, so none is too small to be found.
    if record.margin or not row.detectable > TIE_TOLERANCE * abs(row.difference):
        return []
    if math.isinf(row.detectable):
        return [f"With so few {_lacking(record, row)} no difference can be shown."]
    unit, size = "folds" if record.folds else "queries", telling(row.detectable)
    return [f"With this many {unit} a difference of {size} would be found four times in five."]


def _lacking(record: ComparisonRecord, row: Row) -> str:
    """Return what is too few for any data to show a difference."""
    test = TESTS["randomization"] if record.weights else all_tests().get(record.test)
    correction = CORRECTIONS.get(record.correction)
    if test is None or correction is None:
        return "queries or resamples"
    alternative = cast("Alternative", record.alternative)
    settings = Settings(alternative, record.alpha, record.n_resamples, record.rng)
    if limited_by_resamples(test, correction, row.n_queries, settings):
        return f"resamples ({record.n_resamples:,})"
    return "folds" if record.folds else "queries"
