"""The result of a comparison in a few sentences, for reports, command line and notebooks.

The first sentence names one pair: of the rows whose claim is shown, the one with the largest gain;
if none is shown, the largest gain of all. It gives the adjusted interval, which holds for all
comparisons of the family at once. So it may name a system whose gain was picked as the largest: the
value of such a choice is `Comparison.best`. Then every other system is named with what was shown of
it, and, since this is the choice that is left, whether the two systems with the best means can be
told apart.

::

    _rows       the rows that the sentences speak of; pairs are turned so that no gain is negative
    _named      the row that the first sentence names
    _evidence   difference, interval, number of queries and p of a row
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import pandas as pd

from rankeval._checks import count, plural
from rankeval.comparison.design import COLLECTION, TOGETHER
from rankeval.comparison.inputs import POOLED_FOLDS
from rankeval.comparison.record import (
    MOST_LISTED,
    ComparisonRecord,
    best_first,
    gains,
    kept,
    known_means,
    main_measure,
    parted,
)
from rankeval.comparison.tables import printed_digits
from rankeval.evaluation.by_query import UNNAMED
from rankeval.measures import Direction
from rankeval.render.tables import p_value, telling
from rankeval.significance.columns import TIE_TOLERANCE
from rankeval.significance.declarations import (
    CLAIMS,
    CORRECTIONS,
    TESTS,
    all_tests,
    unseen_share,
)
from rankeval.significance.running import limited_by_resamples


class _Row(NamedTuple):
    """A row of the table, as sentences need it."""

    system: str
    baseline: str
    measure: str
    mean_system: float
    mean_baseline: float
    difference: float
    gain: float
    # The adjusted interval, or else the row's own
    low: float
    high: float
    is_adjusted: bool
    p_adjusted: float
    shown: bool
    parted: bool
    effect_size: float
    n_queries: int
    wins: int
    ties: int
    losses: int
    n_decided: int
    detectable_difference: float


_SIDES = (("system", "baseline"), ("mean_system", "mean_baseline"), ("wins", "losses"))
_TURNED = dict(_SIDES) | {other: own for own, other in _SIDES}
"""Column -> the column that it becomes if the two systems of a row change places."""


class KeyNumber(NamedTuple):
    """A number that a reader sees first, with its label and a line of detail."""

    value: str
    label: str
    detail: str = ""


def key_numbers(record: ComparisonRecord, standing: str = "") -> list[KeyNumber]:
    """Return the numbers of the pair that the headline names; none if the systems are equal.

    They are the difference with its interval, the relative change, the units won, tied and lost,
    and the standing with the adjusted p. Without pairs it is the mean with its interval.
    """
    if record.table.empty:
        return [_key_mean(record)]
    row = _named(record, _rows(record))
    if row.n_decided == 0:
        return []
    pair = f"{row.system} against {row.baseline}"
    least = _least(row)
    difference = _number(record, row.difference, least=least)
    label = f"difference in {row.measure}{_direction(record).note}"
    numbers = [KeyNumber(difference, label, _interval(record, row))]
    if row.mean_baseline > 0:
        change = f"{100 * row.difference / row.mean_baseline:+.1f}%"
        ends = f"from {telling(row.mean_baseline)} to {telling(row.mean_system)}"
        numbers.append(KeyNumber(change, "relative change", ends))
    outcomes = " / ".join(f"{n:,}" for n in (row.wins, row.ties, row.losses))
    numbers.append(KeyNumber(outcomes, f"{plural(_unit(record))} won, tied, lost", pair))
    claim = "shown" if row.shown else "not shown"
    detail = "no adjusted p-value"
    if not math.isnan(row.p_adjusted):
        detail = f"{p_words(row.p_adjusted)}: {claim} at the level {record.alpha:g}"
    return [*numbers, KeyNumber(standing or "not guarded", "standing", detail)]


def _key_mean(record: ComparisonRecord) -> KeyNumber:
    means = known_means(record)
    row = means[means["measure"] == main_measure(record)].iloc[0]
    low, high = map(telling, row[["ci_low", "ci_high"]])
    level = f"{100 * record.settings.confidence_level:g}% interval"
    ends = f"no {level}" if math.isnan(row["ci_low"]) else f"{level} {low} to {high}"
    return KeyNumber(telling(row["mean"]), f"{row['measure']} of {row['system']}", ends)


def headline(record: ComparisonRecord) -> str:
    """Put the result of a comparison into a few sentences.

    They speak of the primary measure, or else of the first one, and of the rows over all queries if
    there are slices or several collections.
    """
    if record.table.empty:
        return _one_system(record)
    rows = _rows(record)
    row = _named(record, rows)
    pair = _pair(record, rows, row)
    if rows["p_adjusted"].isna().all():
        sentences = [f"Not confirmatory: {pair}"]
        sentences += [] if _is_called_equal(row) else ["This difference has no adjusted p-value."]
    elif not rows["shown"].any():
        sentences = _nothing_shown(record, row, pair)
    elif _of_pairs(record, rows) and abs(row.gain) > 0:
        sentences = _pairs_shown(record, rows, row)
    else:
        sentences = _shown(record, rows, row)
    sentences += [*_first_two(record, rows, row), *_unjudged(record, row), *_scope(record)]
    if not _direction(record).sign:
        sentences.append(
            f"Whether more or less {row.measure} is wanted is not known: lower_is_better= says so."
        )
    # Names of systems may have line breaks, and a headline has none.
    return " ".join(" ".join(sentences).split())


def named_system(record: ComparisonRecord) -> str:
    """Return the system that the headline names first."""
    return _named(record, _rows(record)).system


def named_pair(record: ComparisonRecord) -> tuple[str, str, str]:
    """Return the system, the baseline and the measure that the headline names first."""
    row = _named(record, _rows(record))
    return row.system, row.baseline, row.measure


def _one_system(record: ComparisonRecord) -> str:
    means, settings = known_means(record), record.settings
    row = means[means["measure"] == main_measure(record)].iloc[0]
    interval = f"{100 * settings.confidence_level:g}% interval"
    low, high = map(telling, row[["ci_low", "ci_high"]])
    ends = f"no {interval}" if math.isnan(row["ci_low"]) else f"{interval} {low} to {high}"
    value = f"{row['measure']} {telling(row['mean'])}{_direction(record).note}"
    size = settings.sized(int(row["n_queries"]))
    return " ".join(f"{row['system']}: {value} [{ends}], on {size}.".split())


def _direction(record: ComparisonRecord) -> Direction:
    """Return the direction of the measure that the sentences speak of."""
    return record.settings.direction(main_measure(record))


def _number(record: ComparisonRecord, value: float, *, least: float = 0.0) -> str:
    digits = printed_digits(record)[main_measure(record)]
    return telling(value, sign=True, least=least, digits=digits)


def _rows(record: ComparisonRecord) -> pd.DataFrame:
    table = record.table.assign(gain=gains(record), shown=record.shown, parted=parted(record))
    is_row = table["measure"] == main_measure(record)
    if grouped := record.settings.grouped:
        is_row &= table[grouped] == TOGETHER
    rows = table[is_row].reset_index(drop=True)
    adjusted = rows[["ci_low_adjusted", "ci_high_adjusted"]].notna().all(axis=1)
    low = rows["ci_low_adjusted"].where(adjusted, rows["ci_low"])
    high = rows["ci_high_adjusted"].where(adjusted, rows["ci_high"])
    n_decided = rows["wins"] + rows["losses"]
    rows = rows.assign(low=low, high=high, is_adjusted=adjusted, n_decided=n_decided)
    if not _is_turned(record):
        return rows
    back = rows["gain"] < 0
    turned = rows.rename(columns=_TURNED)
    turned = turned.assign(low=-high, high=-low, difference=-rows["difference"], gain=-rows["gain"])
    return pd.concat([rows[~back], turned[back]]).sort_index()


def _is_turned(record: ComparisonRecord) -> bool:
    """Say whether each pair is turned to show a gain; one-sided tests keep their side."""
    settings = record.settings
    return settings.baseline is None and not CLAIMS[settings.claim].hypotheses


def _of_pairs(record: ComparisonRecord, rows: pd.DataFrame) -> bool:
    return _is_turned(record) and len(rows) > 1


def _named(record: ComparisonRecord, rows: pd.DataFrame) -> _Row:
    """Return the largest gain shown, else the largest loss, else the row nearest to the claim."""
    claim, shown = CLAIMS[record.settings.claim], rows[rows["shown"]]
    known = shown if len(shown) else rows
    sizes = known["difference"].abs()
    place: Any = known["gain"].fillna(sizes).idxmax()  # of an unknown direction, the largest
    largest = known["gain"].max()
    if claim.sides == 2:
        place = sizes.idxmax() if len(shown) else sizes.idxmin()
    elif len(shown) and largest > 0 and _of_pairs(record, rows):
        # Of the system that beats most others, the win over the best of them.
        won, means = shown[shown["gain"] > 0], best_first(record)
        wins = Counter(won["system"])
        best = max(wins, key=lambda name: (wins[name], means[name]))
        place = won["gain"][won["system"] == best].idxmin()
    elif len(shown) and largest < 0 and not claim.hypotheses:
        place = shown["gain"].idxmin()
    return _Row(*rows.loc[place, list(_Row._fields)])


def _pair(record: ComparisonRecord, rows: pd.DataFrame, row: _Row) -> str:
    """Say how far two systems differ; equal ones have no interval."""
    picked = _picked(record, rows)
    if not _is_called_equal(row):
        return f"{row.system} against {row.baseline}{picked}: {_evidence(record, row)}."
    return _equal(record, row, f"{picked}," if picked else "")


def _equal(record: ComparisonRecord, row: _Row, picked: str = "") -> str:
    both, unit = f"{row.system}{picked} and {row.baseline}", _unit(record)
    if row.mean_system == 0:
        see = ": see the notes" if record.notes else ""
        return f"{both} have {row.measure} 0 on every {unit}, so nothing is compared{see}."
    return f"{both} are equal on every {unit}."


def _is_called_equal(row: _Row) -> bool:
    return row.n_decided == 0 and _is_unbounded(row)


def _is_unbounded(row: _Row) -> bool:
    return not (math.isfinite(row.low) or math.isfinite(row.high))


def _picked(record: ComparisonRecord, rows: pd.DataFrame) -> str:
    if len(rows) == 1:
        return ""
    if CLAIMS[record.settings.claim].sides == 2:
        return f", the smallest of {len(rows)} differences"
    largest = _of_pairs(record, rows) or not _direction(record).sign
    return f", the largest of {len(rows)} differences" if largest else f", the best of {len(rows)}"


def _nothing_shown(record: ComparisonRecord, row: _Row, pair: str) -> list[str]:
    settings, elsewhere = record.settings, int(record.shown.sum())
    # By another measure or in a slice something may have been shown: then it is not said that
    # nothing was.
    lead = f"Nothing was shown by {row.measure}" if elsewhere else CLAIMS[settings.claim].nothing
    sentences = [f"{lead}{_margin(record)}: {pair}", *_parting(record, row)]
    if elsewhere:
        sentences.append(
            f"In {count(elsewhere, 'row')} of other measures or parts something was shown."
        )
    return [*sentences, *_detectable(record, row)]


def _shown(record: ComparisonRecord, rows: pd.DataFrame, row: _Row) -> list[str]:
    settings, words = record.settings, _direction(record)
    claim, n_shown = CLAIMS[settings.claim], int(rows["shown"].sum())
    verb = claim.verb.format(words)
    if row.gain <= 0 and not claim.hypotheses:
        # Equal means are shown to differ only by a test that is not of the mean.
        verb = f"is {words.worse} than" if row.gain < 0 else "differs from"
    joint = ": " if verb.startswith("is ") or not row.difference else " by "
    sentences = [
        f"{row.system} {verb} {row.baseline}{_margin(record)}{joint}{_evidence(record, row)}."
    ]
    sentences += _parting(record, row)
    if claim.harmless and not kept(record).folds:
        n = settings.n_effective or row.n_queries
        share = f"{100 * unseen_share(n, record.alpha):.2g} %"
        size = count(row.n_queries, settings.unit)
        whole = "weight" if settings.n_effective else settings.units
        sentences.append(f"On {size} a breakage of up to {share} of the {whole} can go unseen.")
    is_loss = row.gain < 0 and not claim.hypotheses
    if is_loss and len(rows) > 1 and settings.baseline is not None:
        sentences.insert(0, f"No system was shown {words.better} than {row.baseline}.")
    if claim.sides == 2 and n_shown > 1:
        adjective = claim.adjective.format(words)
        sentences.append(
            f"Of the {n_shown} pairs shown {adjective}, these two are the farthest apart."
        )
    return [*sentences, *_others(record, rows, row)]


def _pairs_shown(record: ComparisonRecord, rows: pd.DataFrame, row: _Row) -> list[str]:
    is_beaten = rows["shown"] & (rows["system"] == row.system) & (rows["gain"] > 0)
    n_beaten = int(is_beaten.sum())
    others = len(best_first(record)) - 1
    of_others = f"all {others}" if n_beaten == others else f"{n_beaten} of the {others}"
    which = row.baseline if n_beaten == 1 else f"the nearest of them, {row.baseline},"
    verb = CLAIMS[record.settings.claim].verb.format(_direction(record))
    lead = f"{row.system} {verb} {of_others} other systems: {which} by {_evidence(record, row)}."
    return [lead, *_parting(record, row), _counted(record, rows)]


def _counted(record: ComparisonRecord, rows: pd.DataFrame) -> str:
    n, claim = int(rows["shown"].sum()), CLAIMS[record.settings.claim]
    words = claim.adjective.format(_direction(record)) if claim.hypotheses else "to differ"
    verb = "was" if n == 1 else "were"
    return f"{n} of {len(rows)} pairs {verb} shown {words}."


def _others(record: ComparisonRecord, rows: pd.DataFrame, named: _Row) -> list[str]:
    """Say what was shown of the other systems, the best first; pairs are counted."""
    claim, base = CLAIMS[record.settings.claim], record.settings.baseline
    if base is None:
        return [_counted(record, rows)] if len(rows) > 1 else []
    known = _direction(record)
    adjective, joint = claim.adjective.format(known), "to" if claim.sides == 2 else "than"
    means = ", with equal means" if known.sign else ""
    words = {
        "good": f"shown {adjective} {joint} {base}",
        "worse": f"shown {known.worse} than {base}",
        "equal": f"shown to differ from {base}{means}",
        "same": f"equal to {base} on every {_unit(record)}",
        "open": "undecided",
    }
    names: dict[str, list[str]] = {state: [] for state in words}
    others = rows[rows["system"] != named.system]
    others = others.sort_values("gain", ascending=False, kind="stable")
    for values in others[list(_Row._fields)].itertuples(index=False):
        row = _Row(*values)
        state = "good" if row.gain > 0 or claim.hypotheses else "worse" if row.gain < 0 else "equal"
        unshown = "same" if _is_called_equal(row) else "open"
        is_mixed = row.shown and row.parted
        aside = " (by p, not by its interval)" if is_mixed else ""
        names[state if row.shown else unshown].append(f"{row.system}{aside}")
    sentences = []
    for state, several in names.items():
        rest = len(several) - MOST_LISTED + 1
        listed = [*several[:-rest], f"{rest} others"] if rest > 1 else several
        if len(listed) == 1:
            sentences.append(f"{listed[0]} is {words[state]}.")
        elif listed:
            *first, last = listed
            sentences.append(f"{', '.join(first)} and {last} are {words[state]}.")
    return sentences


def _first_two(record: ComparisonRecord, rows: pd.DataFrame, named: _Row) -> list[str]:
    pairs, alone = rows[:0], ""
    table = kept(record).first_two
    if record.settings.baseline is not None and table is not None:
        pairs, alone = table[table["measure"] == main_measure(record)], " for this pair alone"
    elif _of_pairs(record, rows):
        leaders = {*list(best_first(record))[:2]}
        if leaders != {named.system, named.baseline}:
            is_pair = rows["system"].isin(leaders) & rows["baseline"].isin(leaders)
            pairs = rows[is_pair].assign(p_value=rows["p_adjusted"])
    sentences = []
    for row in pairs.to_dict("records") if rows["shown"].any() else ():
        difference = _number(record, row["difference"])
        gap = f"{difference} {row['measure']}, {p_words(row['p_value'])}{alone}"
        first, second = row["system"], row["baseline"]
        if row["p_value"] > record.alpha:
            sentences.append(
                f"The first two by their means, {first} and {second}, cannot be told apart: {gap}."
            )
        else:
            verb = _direction(record).verb
            sentences.append(f"Of the first two by their means, {first} {verb} {second}: {gap}.")
    return sentences


def _unjudged(record: ComparisonRecord, named: _Row) -> list[str]:
    """Say which shares are judged, if they differ, and what the other documents could change."""
    if (bounds := record.bounds) is None:
        return []
    is_named = bounds["shares_differ"] & (bounds["measure"] == named.measure)
    for row in bounds[is_named].to_dict("records"):
        if {row["system"], row["baseline"]} != {named.system, named.baseline}:
            continue
        turn = 1 if row["system"] == named.system else -1
        sides, ends = ("system", "baseline")[::turn], ("lower", "upper")[::turn]
        shares = [f"{row[f'judged_{side}']:.2f} of those of {row[side]}" for side in sides]
        low, high = (telling(turn * row[end], sign=True) for end in ends)
        judged = f"Of the documents within the cut-off, {' and '.join(shares)} are judged"
        return [f"{judged}: the others could make the difference {low} to {high}."]
    return []


def _scope(record: ComparisonRecord) -> list[str]:
    sentences, part = [], record.settings.grouped
    measures = record.table["measure"].nunique()
    if measures > 1 and record.settings.primary is None:
        sentences.append(f"{main_measure(record)} is the first of {measures} measures.")
    if part == COLLECTION:
        names = [name for name in record.table[part].unique() if name != TOGETHER]
        several = f"This is over all {len(names)} collections together."
        sentences.append(
            several if len(names) > 1 else f"This is over the only collection, {names[0]}."
        )
    elif part:
        by = "" if part == UNNAMED else f" by {part}"
        sentences += _worst_slice(record, part)
        sentences.append(f"This is over all {record.settings.units}; the table has the slices{by}.")
    return sentences


def _worst_slice(record: ComparisonRecord, part: str) -> list[str]:
    tested = record.table["p_value"].notna() & (record.table[part] != TOGETHER)
    rows = record.table.assign(gain=gains(record))[tested].dropna(subset="gain")
    rows = rows[rows["measure"] == main_measure(record)]
    if rows.empty:
        return []
    row = rows.sort_values("gain").iloc[0]
    size = count(int(row["n_queries"]), record.settings.unit)
    pair = f"{row['system']} against {row['baseline']} {telling(row['difference'], sign=True)}"
    return [f"The worst slice is {row[part]}: {pair} {row['measure']} on {size}."]


def _margin(record: ComparisonRecord) -> str:
    return f" (margin {record.settings.margin:g})" if record.settings.margin else ""


def _evidence(record: ComparisonRecord, row: _Row) -> str:
    settings, folds = record.settings, kept(record).folds
    size = settings.sized(row.n_queries)
    over = f"over {count(len(folds.scores), 'fold')} of {size}" if folds else f"on {size}"
    # Without variance there is no interval, and p follows from the size alone.
    is_same = math.isinf(row.effect_size)
    difference = _number(record, row.difference, least=_least(row))
    measure = f"{row.measure}{_direction(record).note}"
    evidence = f"{difference} {measure} [{_interval(record, row)}], {over}"
    if math.isnan(row.p_adjusted) or (is_same and row.shown):
        return evidence
    uncorrected = settings.correction == "none" and settings.n_comparisons > 1
    many = f", not corrected for the {settings.n_comparisons} comparisons" if uncorrected else ""
    rows = plural(settings.row)
    is_pooled = POOLED_FOLDS.format(units=rows) in record.notes
    pooled = f" (approximate: {rows} of several folds)" if is_pooled else ""
    return f"{evidence}, {p_words(row.p_adjusted)}{pooled}{many}"


def _interval(record: ComparisonRecord, row: _Row) -> str:
    """Write the interval of a row, or the reason why it has none: both ends are infinite."""
    settings = record.settings
    level = settings.adjusted_level if row.is_adjusted else settings.interval_level
    interval = f"{100 * level:g}% interval"
    if math.isinf(row.effect_size):
        return f"the same difference on every {_unit(record)}"
    if _is_called_equal(row):
        return f"equal on every {_unit(record)}"
    if _is_unbounded(row):
        units = plural(_unit(record))
        lacking = f"{units} that differ"
        if math.isinf(row.detectable_difference):
            lacking = _lacking(record, row, units)
        return f"no {interval} with so few {lacking}"
    is_one = row.is_adjusted or settings.n_comparisons == 1
    if not is_one:
        interval += " of this pair alone"
    low, high = (_number(record, end, least=_least(row)) for end in (row.low, row.high))
    interval += f" {low} to {high}"
    if not is_one and not math.isnan(row.p_adjusted):
        interval += f"; none belongs to {settings.correction_words}"
    return interval


def _least(row: _Row) -> float:
    """Return the size below which a number is what rounding leaves of 0."""
    finite = [abs(value) for value in (row.difference, row.low, row.high) if math.isfinite(value)]
    return TIE_TOLERANCE * max(finite)


def _unit(record: ComparisonRecord) -> str:
    return "fold" if kept(record).folds else record.settings.unit


def p_words(value: float) -> str:
    """Write a p-value as a sentence has it: ``p = 0.0312``, ``p < 0.0001``."""
    p = p_value(value)
    return f"p {p if p.startswith('<') else f'= {p}'}"


def _parting(record: ComparisonRecord, row: _Row) -> list[str]:
    if not row.parted:
        return []
    shows, hides = "excludes 0", "includes 0"
    if CLAIMS[record.settings.claim].hypotheses:
        shows, hides = "shows the claim", "does not show the claim"
    if row.shown:
        gap = f"The adjusted p is at most {record.alpha:g}, but the interval {hides}"
    else:
        gap = f"The interval {shows}, but the adjusted p is above {record.alpha:g}"
    why = "p steps down over the family or comes from another test, and the claim goes by p"
    return [f"{gap}: {why}."]


def _detectable(record: ComparisonRecord, row: _Row) -> list[str]:
    """Say which difference so many queries would find, or why they find none."""
    unit, size = _unit(record), row.detectable_difference
    if row.n_decided == 0:
        return [] if _is_unbounded(row) else [_equal(record, row)]
    # A difference that is the same on every query has no variance, but for rounding, so none is too
    # small to be found.
    if record.settings.margin or not size > TIE_TOLERANCE * abs(row.difference):
        return []
    if math.isinf(size):
        return [f"With so few {_lacking(record, row, plural(unit))} no difference can be shown."]
    difference = _number(record, size)[1:]
    return [
        f"With this many {plural(unit)} a difference of {difference} would be found four times in five."
    ]


def _lacking(record: ComparisonRecord, row: _Row, units: str) -> str:
    settings = record.settings
    test = TESTS["randomization"] if settings.collection_weights else all_tests().get(settings.test)
    correction = CORRECTIONS.get(settings.correction)
    if test is None or correction is None:
        return f"{settings.units} or resamples"
    limited = limited_by_resamples(test, correction, row.n_queries, settings.of_resampling)
    return f"resamples ({settings.n_resamples:,})" if limited else units
