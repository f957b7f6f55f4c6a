"""The tables of a comparison: all figures of each pair, or the means of the systems as papers print them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from string import ascii_lowercase

import numpy as np
import pandas as pd

from rankeval._checks import shown as as_shown
from rankeval._registry import chosen
from rankeval.comparison.record import PARTED, ComparisonRecord
from rankeval.comparison.views import reading
from rankeval.comparison.views.means import table as table_of_means
from rankeval.errors import InvalidInput
from rankeval.render import layouts
from rankeval.render.tables import MOST_DIGITS, Table, digits_for, number
from rankeval.significance.declarations import CLAIMS, Floats

LAYOUTS = ("comparisons", "systems")
SPREADS = ("se", "interval")
MOST_ROWS = 2000
"""A table of comparisons has no more rows; more are left out, and it says so."""

GAIN_NOTE = "gains in percent are of the baseline's mean: a low baseline makes them large"


def laid_out(
    record: ComparisonRecord,
    layout: str,
    *,
    against: str | Sequence[str] | None = None,
    spread: str | None = None,
    gain: bool = False,
    digits: int | None = None,
) -> Table:
    """Return the table of a comparison; `rankeval.Comparison.to_latex` documents the arguments.

    Raises
    ------
    InvalidInput
        An argument does not fit the comparison or the layout.
    UnknownName
        There is no such layout, spread or system.
    """
    chosen("layout", layout, LAYOUTS)
    if digits is not None and (isinstance(digits, bool) or digits not in range(MOST_DIGITS + 1)):
        raise InvalidInput(f"digits is {as_shown(digits)}; expected a whole number from 0 to {MOST_DIGITS}")
    if not record.has_pairs:
        return table_of_means(record, digits=digits, against=against, spread=spread, gain=gain)
    if layout == "systems":
        return _systems(record, against, spread, gain=gain, digits=digits)
    if against is not None or spread is not None:
        raise InvalidInput('against= and spread= belong to layout="systems"')
    return _comparisons(record, gain=gain, digits=digits)


def _comparisons(record: ComparisonRecord, *, gain: bool, digits: int | None) -> Table:
    table = record.table
    if digits is None:
        places = table["measure"].map(_digits_by_measure(record))
    else:
        places = pd.Series(digits, index=table.index)
    base = table["mean_baseline"].to_numpy(dtype=np.float64)
    gains = _percent(np.asarray(record.gains, dtype=np.float64), base) if gain else None
    drawn = reading.clearest(table, MOST_ROWS)
    shown = layouts.by_comparison(
        table[drawn],
        level=record.shown_level,
        parted=record.parted[drawn],
        gains=None if gains is None else gains[drawn],
        digits=places[drawn],
    )
    notes = (*reading.left_out(table, MOST_ROWS), *record.notes, *([GAIN_NOTE] if gain else []))
    return replace(shown, caption=record.caption, notes=notes)


def unjudged_tables(record: ComparisonRecord) -> list[Table]:
    """Return the tables on unjudged documents: of condensed lists, if they were asked for, and of unequal shares.

    Parameters
    ----------
    record : ComparisonRecord
        The comparison.
    """
    found = []
    if record.condensed is not None:
        second = _comparisons(replace(record, table=record.condensed, notes=()), gain=False, digits=4)
        found.append(replace(second, caption=f"Without unjudged documents: {second.caption}"))
    unequal = None if record.bounds is None else record.bounds[record.bounds["shares_differ"]].head(MOST_ROWS)
    if unequal is not None and len(unequal):
        caption = "What unjudged documents could change, where the shares judged within the cut-off differ"
        shown = unequal.drop(columns="shares_differ").rename(columns=lambda name: name.replace("_", " "))
        found.append(Table(shown, caption=caption))
    return found


def _systems(
    record: ComparisonRecord,
    against: str | Sequence[str] | None,
    spread: str | None,
    *,
    gain: bool,
    digits: int | None,
) -> Table:
    means = reading.means(record)
    others = _others(record, list(means.index), against)
    claims = reading.ordered_claims(record)
    letters = None if len(others) == 1 else layouts.letters_for(others)
    if letters is None:
        set_marks = _stars(record, claims[claims["other"] == others[0]], means)
    else:
        set_marks = layouts.letters(claims, means, letters)
    tails, errors = pd.DataFrame("", index=means.index, columns=means.columns), None
    if spread is not None:
        chosen("spread", spread, SPREADS)
        errors = reading.mean_spreads(record)
    places = _places(record, means, None if errors is None else errors[0], digits)
    if errors is not None:
        tails += _spread_texts(errors, spread == "interval", places)
    if gain:
        tails += _gain_texts(record, others, means)
    shown = layouts.by_system(
        means, digits=places, lower=reading.lower_columns(record), marks=set_marks, tails=tails, letters=letters
    )
    notes = [_legend(record, others, set_marks, letters), *_spread_notes(record, spread)]
    notes += [GAIN_NOTE] if gain else []
    # A dagger may be at a pair that this table leaves out: then the note on daggers is left out too.
    has_dagger = set_marks.apply(lambda column: column.str.contains(layouts.PARTED)).to_numpy().any()
    notes += [note for note in record.notes if note != PARTED or has_dagger]
    return replace(shown, caption=record.caption, notes=tuple(notes))


def _others(record: ComparisonRecord, systems: list[str], against: str | Sequence[str] | None) -> list[str]:
    """Return the systems that marks refer to: the baseline, those asked for, or all."""
    if record.baseline is not None:
        if against not in (None, record.baseline, [record.baseline]):
            raise InvalidInput(
                f"against is {as_shown(against)}, and the only comparisons are with {record.baseline!r}; compare all "
                "pairs (leave out baseline=) to mark differences from other systems"
            )
        return [record.baseline]
    wanted = systems if against is None else [against] if isinstance(against, str) else list(against)
    if not wanted:
        raise InvalidInput("against names no system", remedy="leave it out to mark differences from all of them")
    for name in wanted:
        chosen("system of the comparison", name, systems)
    return [name for name in systems if name in wanted]


def _stars(record: ComparisonRecord, claims: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """Return stars by level, and daggers where p and interval disagree."""
    stars = layouts.stars(claims, means, levels=layouts.levels_within(record.alpha))
    for row in claims[claims["parted"]].to_dict("records"):
        stars.loc[row["system"], row["column"]] += layouts.PARTED
    return stars


def _percent(gains: Floats, base: Floats) -> Floats:
    """Return gains in percent of the means they start from; nan where these are not positive."""
    return 100 * gains / np.where(base > 0, base, np.nan)


def _gain_texts(record: ComparisonRecord, others: list[str], means: pd.DataFrame) -> pd.DataFrame:
    if len(others) != 1:
        raise InvalidInput("gain=True needs one baseline: name it by against=, or compare with baseline=")
    values, lower = means.to_numpy(dtype=np.float64), reading.lower_columns(record)
    base = means.loc[[others[0]]].to_numpy(dtype=np.float64)
    signs = [-1.0 if column in lower else 1.0 for column in means]
    gains = _percent((values - base) * signs, base)
    texts = [["" if np.isnan(gain) else f" ({layouts.percent(gain)})" for gain in row] for row in gains]
    frame = pd.DataFrame(texts, index=means.index, columns=means.columns)
    frame.loc[others[0]] = ""
    return frame


def _places(
    record: ComparisonRecord, means: pd.DataFrame, errors: pd.DataFrame | None, digits: int | None
) -> dict[str, int]:
    """Return the decimals of each column: as asked for, by the errors shown, or by those of the differences."""
    if digits is not None:
        return dict.fromkeys(map(str, means), digits)
    if errors is not None:
        return {column: digits_for(errors[column]) for column in map(str, means)}
    by_measure = _digits_by_measure(record)
    return {column: by_measure[measure] for column, measure in reading.column_measures(record).items()}


def _digits_by_measure(record: ComparisonRecord) -> dict[str, int]:
    """Return the decimals of each measure by the standard errors of its differences, on all collections."""
    errors = reading.difference_errors(record.table)
    return {str(measure): digits_for(part) for measure, part in errors.groupby(record.table["measure"])}


def _spread_texts(
    errors: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame], is_interval: bool, places: dict[str, int]
) -> pd.DataFrame:
    error, low, high = errors

    def written(frame: pd.DataFrame) -> pd.DataFrame:
        texts = {name: [number(value, digits=digits) for value in frame[name]] for name, digits in places.items()}
        return pd.DataFrame(texts, index=frame.index)

    return " [" + written(low) + ", " + written(high) + "]" if is_interval else " ± " + written(error)


def _spread_notes(record: ComparisonRecord, spread: str | None) -> list[str]:
    if spread is None:
        return []
    what = {
        "se": "±: standard error of the mean",
        "interval": f"in brackets: {100 * record.confidence_level:g} % interval of the mean by Student's t",
    }
    return [f"{what[spread]}, each system alone; the marks come from paired differences, which vary less"]


def _legend(
    record: ComparisonRecord, others: list[str], set_marks: pd.DataFrame, letters: dict[str, str] | None
) -> str:
    """Explain the marks in one sentence."""
    levels, verb = layouts.levels_within(record.alpha), CLAIMS[record.claim].verb
    only = record.primary if record.primary is not None and len(set(record.table["measure"])) > 1 else None
    confirmatory = "" if only is None else f"; marks only for {only}, the confirmatory measure"
    if letters is not None:
        many = "" if len(letters) <= len(ascii_lowercase) else '; of so many systems, plot("matrix") is easier to read'
        return f"letters: the system {verb} those with these letters, adjusted p ≤ {levels[0]:g}{confirmatory}{many}"
    stars = ", ".join(f"{'*' * (place + 1)} ≤ {level:g}" for place, level in enumerate(levels))
    has_worse = set_marks.apply(lambda column: column.str.startswith(layouts.WORSE)).to_numpy().any()
    worse = f" ({layouts.WORSE}: is worse)" if has_worse else ""
    return f"stars: the system {verb} {others[0]}{worse}, adjusted p {stars}{confirmatory}"
