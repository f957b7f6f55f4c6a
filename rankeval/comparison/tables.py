"""The tables of a comparison: all figures of each pair, or means as papers print them.

The table of a comparison has a row per measure and pair; over several collections or slices, a
first column names the collection. Tables of papers turn this round, with a row per system and a
column per measure::

    collection  measure  baseline  system  mean_baseline  mean_system
    cranfield   AP       bm25      rm3     .41            .43
    cisi        AP       bm25      rm3     .22            .25

                cranfield  cisi
    bm25        .41        .22
    rm3         .43        .25

Figures read the same columns, claims and errors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import refuse, require
from rankeval._display import Displayed, View
from rankeval._registry import chosen
from rankeval.comparison.derived import tested_scores
from rankeval.comparison.record import (
    ComparisonRecord,
    gains,
    known_means,
    part_of_row,
    parted,
    parted_notes,
    shown_level,
)
from rankeval.measures import Direction
from rankeval.render import layouts
from rankeval.render.tables import DASH, MOST_DIGITS, Table, decimals, digits_for, interval, number
from rankeval.significance.columns import standard_error
from rankeval.significance.declarations import CLAIMS, Floats
from rankeval.significance.paired import t_interval

LAYOUTS = ("comparisons", "systems")
SPREADS = ("se", "interval")
MOST_ROWS = 2000
"""A table of comparisons has no more rows; more are left out, and it says so."""

GAIN_NOTE = "gains in percent are of the baseline's mean: a low baseline makes them large"


@explained
class WithTable(Displayed):
    """Base of results with one table."""

    @abstractmethod
    def _laid_out(self) -> Table: ...

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        return self._laid_out().to_markdown()

    def to_latex(self, *, label: str = "") -> str:
        r"""Return a LaTeX table (booktabs).

        Parameters
        ----------
        label : str, optional
            Name for ``\ref``.
        """
        return self._laid_out().to_latex(label=label)

    def _view(self) -> View:
        return View(tables=[self._laid_out()])


def caption_of(result: Any) -> str:
    """Return the caption of any result with a table: its own, or else that of the table."""
    return str(getattr(result, "caption", "") or result._laid_out().caption)  # noqa: SLF001 - of the class above


def laid_out(
    record: ComparisonRecord,
    layout: str,
    *,
    against: str | Sequence[str] | None = None,
    spread: str | None = None,
    gain: bool = False,
    digits: int | None = None,
) -> Table:
    """Return the table of a comparison; `rankeval.Comparison.to_latex` documents the arguments."""
    chosen("layout", layout, LAYOUTS)
    fits = digits is None or (not isinstance(digits, bool) and digits in range(MOST_DIGITS + 1))
    require(fits, "digits", digits, f"a whole number from 0 to {MOST_DIGITS}")
    if record.table.empty:
        return _means(record, digits, {"against": against, "spread": spread, "gain": gain})
    if layout == "systems":
        return _systems(record, against, spread, gain=gain, digits=digits)
    is_other = against is not None or spread is not None
    refuse((is_other, 'against= and spread= belong to layout="systems"'))
    return _comparisons(record, gain=gain, digits=_digits_by_measure(record, digits))


def _means(record: ComparisonRecord, digits: int | None, options: Mapping[str, Any]) -> Table:
    """Lay out a row per measure with the mean of the only system; options need two systems."""
    problem = "needs two systems, and this comparison has one"
    for name, value in options.items():
        refuse((value, problem, "leave it out"), argument=name)
    means, units = known_means(record), record.settings.units
    lows, highs = means["ci_low"], means["ci_high"]
    places = digits_for((highs - lows) / 4) if digits is None else digits
    ends = zip(lows, highs, strict=True)
    shown = means[["measure", "system"]].assign(**{units: means["n_queries"].astype(str)})
    shown["mean"] = [number(mean, digits=places) for mean in means["mean"]]
    level = f"{100 * record.settings.confidence_level:g} % interval"
    shown[level] = [interval(low, high, digits=places) for low, high in ends]
    return Table(shown, numeric=(units, "mean"), caption=record.caption, notes=record.notes)


def _comparisons(record: ComparisonRecord, *, gain: bool, digits: Mapping[str, int]) -> Table:
    table = record.table
    places = table["measure"].map(digits)
    base = table["mean_baseline"].to_numpy(dtype=np.float64)
    gained = gains(record)
    drawn = clearest(table, MOST_ROWS)
    notes = [*rows_left_out(table, MOST_ROWS), *record.notes]
    percents = None
    if gain:
        percents = _percent(np.asarray(gained, dtype=np.float64), base)[drawn]
        notes.append(GAIN_NOTE)
    shown = layouts.by_comparison(
        table[drawn],
        level=shown_level(record),
        parted=parted(record)[drawn],
        gains=percents,
        digits=places[drawn],
    )
    shown.frame["won/tied/lost"] = shown.frame["won/tied/lost"].where(gained[drawn].notna(), DASH)
    return replace(shown, caption=record.caption, notes=tuple(notes))


def printed(record: ComparisonRecord) -> Table:
    """Return the printed table of a comparison: of all columns, those that a decision needs."""
    if record.table.empty:
        return laid_out(record, "comparisons", digits=4)
    whole = _comparisons(record, gain=False, digits=printed_digits(record))
    return layouts.for_decisions(whole, record.settings.baseline)


def unjudged_tables(record: ComparisonRecord) -> list[Table]:
    """Return the tables on unjudged documents: of condensed lists, and of unequal shares judged."""
    tables = []
    if record.condensed is not None:
        second = printed(replace(record, table=record.condensed, notes=()))
        tables.append(replace(second, caption=f"Without unjudged documents: {second.caption}"))
    if record.bounds is not None and record.bounds["shares_differ"].any():
        unequal = record.bounds[record.bounds["shares_differ"]].head(MOST_ROWS)
        caption = "What unjudged documents could change, where the shares judged within the cut-off differ"
        shown = unequal.drop(columns="shares_differ")
        shown.columns = shown.columns.str.replace("_", " ")
        tables.append(Table(shown, caption=caption))
    return tables


def _systems(
    record: ComparisonRecord,
    against: str | Sequence[str] | None,
    spread: str | None,
    *,
    gain: bool,
    digits: int | None,
) -> Table:
    means = mean_table(record)
    others = _others(record, list(means.index), against)
    claims = ordered_claims(record)
    letters = None if len(others) == 1 else layouts.letters_for(others)
    if letters is None:
        claims = claims[claims["other"] == others[0]]
        levels = layouts.levels_within(record.alpha)
        set_marks = layouts.stars(claims, means, levels=levels)
        for row in claims[claims["parted"]].to_dict("records"):
            set_marks.loc[row["system"], row["column"]] += layouts.PARTED
    else:
        set_marks = layouts.letters(claims, means, letters)
    tails = pd.DataFrame("", index=means.index, columns=means.columns)
    places, notes = _places(record, digits), []
    if spread is not None:
        chosen("spread", spread, SPREADS)
        texts, places = _spread_texts(record, list(means.index), spread, digits)
        tails += texts
        what = "±: standard error of the mean"
        if spread == "interval":
            level = f"{100 * record.settings.confidence_level:g} %"
            what = f"in brackets: {level} interval of the mean by Student's t"
        why = "the marks come from paired differences, which vary less"
        notes.append(f"{what}, each system alone; {why}")
    if gain:
        tails += _gain_texts(record, others, means)
        notes.append(GAIN_NOTE)
    signs = {column: words.sign for column, words in column_directions(record).items()}
    shown = layouts.by_system(
        means, digits=places, signs=signs, marks=set_marks, tails=tails, letters=letters
    )
    notes.insert(0, _legend(record, others, set_marks, letters))
    # A dagger may be at a pair that this table leaves out: then the note on daggers is left out
    # too.
    has_dagger = any(set_marks[column].str.contains(layouts.PARTED).any() for column in set_marks)
    hidden = [] if has_dagger else parted_notes(record)
    notes += [note for note in record.notes if note not in hidden]
    return replace(shown, caption=record.caption, notes=tuple(notes))


def _others(
    record: ComparisonRecord, systems: list[str], against: str | Sequence[str] | None
) -> list[str]:
    """Return the systems that marks refer to: the baseline, those of ``against``, or all."""
    names = [against] if isinstance(against, str) else against
    if (baseline := record.settings.baseline) is not None:
        other = f"the baseline {baseline!r}, with which all comparisons are; leave out baseline= to compare all pairs"
        require(names is None or list(names) == [baseline], "against", against, other)
        return [baseline]
    wanted = systems if names is None else list(names)
    remedy = "leave it out to mark differences from all of them"
    refuse((not wanted, "against names no system", remedy))
    for name in wanted:
        chosen("system of the comparison", name, systems)
    return [name for name in systems if name in wanted]


def _percent(gains: Floats, base: Floats) -> Floats:
    """Return gains in percent of the means they start from; nan where these are not positive."""
    return 100 * gains / np.where(base > 0, base, np.nan)


def _gain_texts(record: ComparisonRecord, others: list[str], means: pd.DataFrame) -> pd.DataFrame:
    problem = "gain=True needs one baseline: name it by against=, or compare with baseline="
    refuse((len(others) != 1, problem))
    texts = pd.DataFrame("", index=means.index, columns=means.columns)
    for column, known in column_directions(record).items():
        values = means[column].to_numpy(dtype=np.float64)
        base = means.loc[[others[0]], column].to_numpy(dtype=np.float64)
        gains = _percent((values - base) * (known.sign or np.nan), base)
        texts[column] = [
            "" if np.isnan(gain) else f" ({layouts.gain_in_percent(gain)})" for gain in gains
        ]
    texts.loc[others[0]] = ""
    return texts


def _places(record: ComparisonRecord, digits: int | None) -> dict[str, int]:
    by_measure = _digits_by_measure(record, digits)
    return {column: by_measure[measure] for column, measure in column_measures(record).items()}


def printed_digits(record: ComparisonRecord) -> dict[str, int]:
    """Return the decimals of each measure in sentences and on the screen, by its largest mean."""
    means = record.table[["mean_baseline", "mean_system"]].abs().max(axis=1)
    largest = means.groupby(record.table["measure"]).max()
    return {str(measure): decimals(mean) for measure, mean in largest.items()}


def _digits_by_measure(record: ComparisonRecord, digits: int | None) -> dict[str, int]:
    errors = difference_errors(record.table).groupby(record.table["measure"])
    return {
        str(measure): digits_for(part) if digits is None else digits for measure, part in errors
    }


def _spread_texts(
    record: ComparisonRecord, systems: list[str], spread: str, digits: int | None
) -> tuple[pd.DataFrame, dict[str, int]]:
    alone = "spread= needs one collection: compare on each alone, and print each comparison's table"
    refuse((record.settings.grouped, alone))
    shared = tested_scores(record, list(record.table["measure"].unique()))
    errors = standard_error(shared.scores)
    lows, highs = t_interval(shared.scores, record.settings.of_resampling)
    texts = pd.DataFrame("", index=shared.systems, columns=shared.measures)
    places = {}
    for at, measure in enumerate(shared.measures):
        n = places[measure] = digits_for(errors[:, at]) if digits is None else digits
        if spread == "interval":
            ends = zip(lows[:, at], highs[:, at], strict=True)
            column = [f" [{number(low, digits=n)}, {number(high, digits=n)}]" for low, high in ends]
        else:
            column = [f" ± {number(error, digits=n)}" for error in errors[:, at]]
        texts[measure] = column
    return texts.loc[systems], places


def _legend(
    record: ComparisonRecord,
    others: list[str],
    set_marks: pd.DataFrame,
    letters: dict[str, str] | None,
) -> str:
    levels, known, confirmatory = layouts.levels_within(record.alpha), column_directions(record), ""
    verbs: dict[str, list[str]] = {}
    for column, words in known.items():
        verbs.setdefault(CLAIMS[record.settings.claim].verb.format(words), []).append(column)
    than = others[0] if letters is None else "those with these letters"
    if len(verbs) > 1:
        claims = [f"{verb} {than} ({', '.join(columns)})" for verb, columns in verbs.items()]
    else:
        claims = [f"{verb} {than}" for verb in verbs]
    claimed = ", ".join(claims)
    if record.settings.primary is not None and len(record.table["measure"].unique()) > 1:
        confirmatory = f"; marks only for {record.settings.primary}, the confirmatory measure"
    if letters is not None:
        many = ""
        if len(letters) > len(ascii_lowercase):
            many = '; of so many systems, plot("matrix") is easier to read'
        return f"letters: the system {claimed}, adjusted p ≤ {levels[0]:g}{confirmatory}{many}"
    stars = ", ".join(f"{'*' * n} ≤ {level:g}" for n, level in enumerate(levels, 1))
    is_worse = {column: set_marks[column].str.startswith(layouts.WORSE).any() for column in known}
    worse = {words.worse for column, words in known.items() if is_worse[column]}
    lost = f" ({layouts.WORSE}: is {' or '.join(sorted(worse))})" if worse else ""
    return f"stars: the system {claimed}{lost}, adjusted p {stars}{confirmatory}"


def clearest(table: pd.DataFrame, most: int) -> NDArray[np.bool_]:
    """Return which rows to show: all, or of more than so many those with the smallest p-values."""
    chosen = np.zeros(len(table), dtype=np.bool_)
    # Rows without a p-value, such as those of small slices, come last; of equal ones the larger
    # differences first.
    order = np.lexsort((-table["effect_size"].abs(), table["p_value"], table["p_adjusted"]))
    chosen[order[:most]] = True
    return chosen


def rows_left_out(table: pd.DataFrame, most: int) -> list[str]:
    """Say how many rows `clearest` leaves out, if any."""
    if len(table) <= most:
        return []
    shown = f"the {most:,} of {len(table):,} comparisons with the smallest p-values are shown"
    return [f"{shown}; .table has all of them"]


def column_labels(record: ComparisonRecord) -> pd.Series[str]:
    """Return the column of each row's means: its measure, its collection, or both if both vary."""
    measures, grouped = record.table["measure"].astype(str), record.settings.grouped
    if not grouped:
        return measures
    parts = record.table[grouped].astype(str)
    return parts if len(measures.unique()) == 1 else parts + ": " + measures


def column_measures(record: ComparisonRecord) -> dict[str, str]:
    """Return the measure of each column of means, those over all collections last."""
    # Rows over all collections come first in the table, and averages last in papers.
    ordered = pd.Series([not part for part in part_of_row(record)]).sort_values(kind="stable").index
    measures = record.table["measure"].astype(str)
    return dict(zip(column_labels(record).iloc[ordered], measures.iloc[ordered], strict=True))


def mean_table(record: ComparisonRecord) -> pd.DataFrame:
    """Return the mean of each system in each column, the systems in the order of the comparison."""
    table, labels = record.table, column_labels(record)
    sides = [
        pd.DataFrame({"system": table[name], "column": labels, "mean": table[f"mean_{name}"]})
        for name in ("baseline", "system")
    ]
    # A row of one side, then of the other: so pairs (1, 2), (1, 3), (2, 3) give the order 1, 2, 3.
    rows = pd.concat(sides).sort_index(kind="stable").drop_duplicates(["system", "column"])
    by_column = rows.groupby("column", sort=False)
    columns = {name: part.set_index("system")["mean"] for name, part in by_column}
    return pd.DataFrame(columns, index=rows["system"].unique())[list(column_measures(record))]


def column_directions(record: ComparisonRecord) -> dict[str, Direction]:
    """Return which values are better in each column of means."""
    measures = column_measures(record)
    return {label: record.settings.direction(measure) for label, measure in measures.items()}


def ordered_claims(record: ComparisonRecord) -> pd.DataFrame:
    """Return a row per ordered pair of systems and column of means, with its claim.

    Columns: system, other, column, p, sign, shown, parted.

    A claim that holds in both directions, such as a difference, has a row for each. The sign is
    that of the gain; it is 1 for the other claims, which are shown or not, and never shown of the
    worse system, and for differences by a column whose direction is not known.
    """
    table, claim = record.table, CLAIMS[record.settings.claim]
    sign = gains(record).apply(np.sign) * (np.nan if claim.hypotheses else 1)
    rows = pd.DataFrame(
        {
            "system": table["system"],
            "other": table["baseline"],
            "column": column_labels(record),
            "p": table["p_adjusted"],
            "sign": sign.fillna(1.0),
            "shown": record.shown,
            "parted": parted(record),
        }
    )
    if claim.sides == 1:
        return rows
    turned = rows.rename(columns={"system": "other", "other": "system"})
    return pd.concat([rows, turned.assign(sign=(-sign).fillna(1.0))], ignore_index=True)


def difference_errors(table: pd.DataFrame) -> pd.Series[float]:
    """Return the standard error of each difference; nan if it does not follow from the table."""
    # The effect size is mean / sd, so it holds the sd; of a difference of zero it says nothing.
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = (table["difference"] / table["effect_size"]).abs()
        errors: pd.Series[float] = deviations / np.sqrt(table["n_queries"])
    return errors.where(np.isfinite(errors))
