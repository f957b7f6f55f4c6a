"""The result of a comparison in a few sentences; report, command line, notebook and tracker share them.

The first sentence names one pair: of the rows whose claim is shown, the one with the largest gain; if none is shown,
the largest gain of all. It gives the adjusted interval, which holds for all comparisons of the family at once. So it
may name a system whose gain was picked as the largest: the value of such a choice is `Comparison.best`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from rankeval._checks import count
from rankeval.comparison.design import COLLECTION, TOGETHER
from rankeval.comparison.record import ComparisonRecord
from rankeval.comparison.views.evidence import Row, detectable, evidence, parting
from rankeval.comparison.views.means import sentence
from rankeval.evaluation.slicing import UNNAMED
from rankeval.significance.claims import CLAIMS

_gain = attrgetter("gain")


def headline(record: ComparisonRecord) -> str:
    """Put the result of a comparison into a few sentences.

    They speak of the primary measure, or else of the first one, and of the rows over all queries if there are slices
    or several collections.

    Parameters
    ----------
    record : ComparisonRecord
        The comparison.
    """
    if not record.has_pairs:
        return sentence(record)
    rows = _rows(record)
    if all(math.isnan(row.p) for row in rows):
        said = [_not_confirmatory(record, rows)]
    elif not any(row.shown for row in rows):
        said = _nothing_shown(record, rows)
    else:
        said = _pairs_shown(record, rows) if _of_pairs(record, rows) else _shown(record, rows)
    # Names of systems may have line breaks, and a headline has none.
    return " ".join(" ".join([*said, *_scope(record)]).split())


def named_system(record: ComparisonRecord) -> str:
    """Return the system that the headline names first.

    Parameters
    ----------
    record : ComparisonRecord
        The comparison.
    """
    return _named(record, _rows(record)).system


def _named(record: ComparisonRecord, rows: Sequence[Row]) -> Row:
    """Return the largest gain shown, else the largest loss shown, else the row that is nearest to the claim."""
    claim, shown = CLAIMS[record.claim], [row for row in rows if row.shown]
    if not shown and claim.sides == 2:
        return min(rows, key=lambda row: abs(row.gain))
    if claim.sides == 2:
        return max(shown, key=lambda row: abs(row.gain))
    best = max(shown or rows, key=_gain)
    if shown and best.gain > 0 and _of_pairs(record, rows):
        return _nearest_beaten(record, [row for row in shown if row.gain > 0])
    is_worse = bool(shown) and best.gain < 0 and not claim.hypotheses
    return min(shown, key=_gain) if is_worse else best


def _nearest_beaten(record: ComparisonRecord, won: Sequence[Row]) -> Row:
    """Of the system that beats most others, return the win over the best of them."""
    wins, means = Counter(row.system for row in won), _means(record)
    best = max(wins, key=lambda name: (wins[name], means[name]))
    return min((row for row in won if row.system == best), key=_gain)


def _rows(record: ComparisonRecord) -> list[Row]:
    """Return the rows that the sentences speak of; all pairs are turned so that no gain is negative."""
    table = record.table
    facts = table.assign(gain=record.gains, shown=record.shown, parted=record.parted)[_spoken_of(record)]
    adjusted = ~facts[["ci_low_adjusted", "ci_high_adjusted"]].isna().any(axis=1)
    rows = [
        Row(
            system=row["system"],
            baseline=row["baseline"],
            measure=row["measure"],
            difference=row["difference"],
            gain=row["gain"],
            low=row["ci_low_adjusted" if of_family else "ci_low"],
            high=row["ci_high_adjusted" if of_family else "ci_high"],
            is_adjusted=of_family,
            p=row["p_adjusted"],
            shown=bool(row["shown"]),
            parted=bool(row["parted"]),
            n_queries=int(row["n_queries"]),
            n_decided=int(row["wins"] + row["losses"]),
            detectable=row["detectable_difference"],
        )
        for row, of_family in zip(facts.to_dict("records"), adjusted, strict=True)
    ]
    if _is_turned(record):
        return [row.turned() if row.gain < 0 else row for row in rows]
    return rows


def _spoken_of(record: ComparisonRecord) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows the sentences speak of: those of the main measure, over all collections and slices."""
    own = (record.table["measure"] == record.main_measure).to_numpy()
    return own & (record.table[record.grouped] == TOGETHER).to_numpy() if record.grouped else own


def _not_confirmatory(record: ComparisonRecord, rows: Sequence[Row]) -> str:
    row = _named(record, rows)
    pair = f"{_pair(row)}{_which(record, rows)}"
    return f"Not confirmatory: {pair}: {evidence(record, row)}. This difference has no adjusted p-value."


def _nothing_shown(record: ComparisonRecord, rows: Sequence[Row]) -> list[str]:
    row, elsewhere = _named(record, rows), int(record.shown.sum())
    # By another measure or in a slice something may have been shown: then it is not said that nothing was.
    lead = f"Nothing was shown by {row.measure}" if elsewhere else CLAIMS[record.claim].nothing
    side = "" if record.alternative == "two-sided" else f" in the direction tested ({record.alternative})"
    pair = f"{_pair(row)}{_which(record, rows)}"
    said = [f"{lead}{side}{_margin(record)}: {pair}: {evidence(record, row)}.", *parting(record, row)]
    if elsewhere:
        said.append(f"In {count(elsewhere, 'row')} of other measures or parts something was shown.")
    return [*said, *detectable(record, row)]


def _shown(record: ComparisonRecord, rows: Sequence[Row]) -> list[str]:
    """Name one row, then count the others."""
    row, claim = _named(record, rows), CLAIMS[record.claim]
    # Equal means are shown to differ only by a test that is not of the mean.
    lost = "is worse than" if row.gain < 0 else "differs from"
    verb = claim.verb if row.gain > 0 or claim.hypotheses else lost
    joint = " by " if verb == "beats" else ": "
    said = [
        f"{row.system} {verb} {row.baseline}{_margin(record)}{joint}{evidence(record, row)}.",
        *parting(record, row),
    ]
    if verb == "is worse than" and len(rows) > 1 and record.baseline is not None:
        said.insert(0, f"No system was shown better than {row.baseline}.")
    n_shown = sum(one.shown for one in rows)
    if claim.sides == 2 and n_shown > 1:
        said.append(f"Of the {n_shown} pairs shown {claim.adjective}, these two are the farthest apart.")
    return [*said, *_others(record, [one for one in rows if one is not row])]


def _pairs_shown(record: ComparisonRecord, rows: Sequence[Row]) -> list[str]:
    """Name the system that beats most others, and the nearest of those it beats."""
    shown, row = [row for row in rows if row.shown], _named(record, rows)
    pairs = f"{len(shown)} of {len(rows)} pairs {'was' if len(shown) == 1 else 'were'} shown to differ."
    if row.gain == 0:
        return [*_shown(record, [row]), pairs]
    n_beaten = sum(one.system == row.system and one.gain > 0 for one in shown)
    others = len(_means(record)) - 1
    of_others = f"all {others}" if n_beaten == others else f"{n_beaten} of the {others}"
    which = row.baseline if n_beaten == 1 else f"the nearest of them, {row.baseline},"
    verb = CLAIMS[record.claim].verb
    lead = f"{row.system} {verb} {of_others} other systems: {which} by {evidence(record, row)}."
    return [lead, *parting(record, row), pairs]


def _means(record: ComparisonRecord) -> dict[str, float]:
    """Return the mean of every system by the main measure, larger for better."""
    rows = record.table[_spoken_of(record)]
    direction = float(record.directions[_spoken_of(record)][0])
    means = dict(zip(rows["baseline"], direction * rows["mean_baseline"], strict=True))
    return means | dict(zip(rows["system"], direction * rows["mean_system"], strict=True))


def _others(record: ComparisonRecord, rows: Sequence[Row]) -> list[str]:
    """Count the rows besides the one named: shown, shown worse, undecided."""
    if not rows:
        return []
    claim, shown = CLAIMS[record.claim], [row for row in rows if row.shown]
    loses = [row for row in shown if row.gain < 0 and not claim.hypotheses]
    equal = [row for row in shown if row.gain == 0 and not claim.hypotheses]
    n_good = len(shown) - len(loses) - len(equal)
    counts = [
        (n_good, f"shown {claim.adjective}"),
        (len(loses), "shown worse"),
        (len(equal), "shown to differ, with equal means"),
        (len(rows) - len(shown), "undecided"),
    ]
    thing = "system" if record.baseline is not None else "pair"
    said = [(n, words) for n, words in counts if n]
    if len(rows) == 1:
        return [f"The other {thing} is {said[0][1]}."]
    if len(said) == 1:
        return [f"The other {len(rows)} {thing}s are {said[0][1]}."]
    listed = [f"{n} {'is' if n == 1 else 'are'} {words}" for n, words in said]
    return [f"Of the other {len(rows)} {thing}s {', '.join(listed[:-1])} and {listed[-1]}."]


def _scope(record: ComparisonRecord) -> list[str]:
    """Say which of several measures, collections or slices the sentences speak of."""
    said, part, measures = [], record.grouped, record.table["measure"].nunique()
    if measures > 1 and record.primary is None:
        said.append(f"{record.main_measure} is the first of {measures} measures.")
    if part == COLLECTION:
        names = [name for name in record.table[part].unique() if name != TOGETHER]
        several = f"This is over all {len(names)} collections together."
        said.append(several if len(names) > 1 else f"This is over the only collection, {names[0]}.")
    elif part:
        by = "" if part == UNNAMED else f" by {part}"
        said.append(f"This is over all queries; the table has the slices{by}.")
    return said


def _of_pairs(record: ComparisonRecord, rows: Sequence[Row]) -> bool:
    """Tell whether all pairs of three systems or more were compared for differences."""
    return _is_turned(record) and len(rows) > 1


def _is_turned(record: ComparisonRecord) -> bool:
    """Tell whether each pair is turned so that it shows a gain; a one-sided test has the side of the table."""
    two_sided = record.alternative == "two-sided" and not CLAIMS[record.claim].hypotheses
    return record.baseline is None and two_sided


def _pair(row: Row) -> str:
    return f"{row.system} against {row.baseline}"


def _which(record: ComparisonRecord, rows: Sequence[Row]) -> str:
    """Say how a row that is not shown was picked among several."""
    if len(rows) == 1:
        return ""
    if CLAIMS[record.claim].sides == 2:
        return f", the smallest of {len(rows)} differences"
    return f", the largest of {len(rows)} differences" if _of_pairs(record, rows) else f", the best of {len(rows)}"


def _margin(record: ComparisonRecord) -> str:
    return f" (margin {record.margin:g})" if record.margin else ""
