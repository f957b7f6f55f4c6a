"""The result of a comparison in a few sentences; report, command line, notebook and tracker share them.

The first sentence names one pair: of the rows whose claim is shown, the one with the largest gain; if none is shown,
the largest gain of all. It gives the adjusted interval, which holds for all comparisons of the family at once. So it
may name a system whose gain was picked as the largest: the value of such a choice is `Comparison.best`. Then every
other system is named with what was shown of it, and, since this is the choice that is left, whether the two systems
with the best means can be told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import count
from rankeval.comparison.design import COLLECTION, TOGETHER
from rankeval.comparison.record import MOST_LISTED, ComparisonRecord
from rankeval.comparison.views.evidence import Row, detectable, evidence, p_words, parting
from rankeval.comparison.views.means import sentence
from rankeval.evaluation.choosing import UNNAMED
from rankeval.render.tables import telling
from rankeval.significance.declarations import CLAIMS, unseen_share


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
    if rows["p_adjusted"].isna().all():
        said = [_not_confirmatory(record, rows)]
    elif not rows["shown"].any():
        said = _nothing_shown(record, rows)
    else:
        said = _pairs_shown(record, rows) if _of_pairs(record, rows) else _shown(record, rows)
    # Names of systems may have line breaks, and a headline has none.
    return " ".join(" ".join([*said, *_first_two(record, rows), *_unjudged(record, rows), *_scope(record)]).split())


def named_system(record: ComparisonRecord) -> str:
    """Return the system that the headline names first.

    Parameters
    ----------
    record : ComparisonRecord
        The comparison.
    """
    return _named(record, _rows(record)).system


def _named(record: ComparisonRecord, rows: pd.DataFrame) -> Row:
    """Return the largest gain shown, else the largest loss shown, else the row that is nearest to the claim."""
    claim, shown = CLAIMS[record.claim], rows[rows["shown"]]
    if claim.sides == 2:
        sizes = (shown if len(shown) else rows)["gain"].abs()
        return _row(rows, sizes.idxmax() if len(shown) else sizes.idxmin())
    known = shown if len(shown) else rows
    best = known["gain"].idxmax()
    largest = known["gain"].max()
    if len(shown) and largest > 0 and _of_pairs(record, rows):
        return _row(rows, _nearest_beaten(record, shown[shown["gain"] > 0]))
    is_worse = len(shown) and largest < 0 and not claim.hypotheses
    return _row(rows, shown["gain"].idxmin() if is_worse else best)


def _nearest_beaten(record: ComparisonRecord, won: pd.DataFrame) -> Any:
    """Of the system that beats most others, return the place of the win over the best of them."""
    wins, means = Counter(won["system"]), record.best_first
    best = max(wins, key=lambda name: (wins[name], means[name]))
    return won["gain"][won["system"] == best].idxmin()


def _rows(record: ComparisonRecord) -> pd.DataFrame:
    """Return the rows that the sentences speak of; all pairs are turned so that no gain is negative."""
    facts = record.table.assign(gain=record.gains, shown=record.shown, parted=record.parted)[_spoken_of(record)]
    facts = facts.reset_index(drop=True)
    adjusted = ~facts[["ci_low_adjusted", "ci_high_adjusted"]].isna().any(axis=1)
    low, high = (facts[f"{end}_adjusted"].where(adjusted, facts[end]) for end in ("ci_low", "ci_high"))
    facts = facts.assign(low=low, high=high, is_adjusted=adjusted, n_decided=facts["wins"] + facts["losses"])
    if not _is_turned(record):
        return facts
    back = facts["gain"] < 0
    return facts.assign(
        system=facts["system"].where(~back, facts["baseline"]),
        baseline=facts["baseline"].where(~back, facts["system"]),
        low=low.where(~back, -high),
        high=high.where(~back, -low),
        difference=facts["difference"].where(~back, -facts["difference"]),
        gain=facts["gain"].abs(),
    )


def _row(rows: pd.DataFrame, place: Any) -> Row:
    row = rows.loc[place]
    return Row(
        system=row["system"],
        baseline=row["baseline"],
        measure=row["measure"],
        difference=row["difference"],
        gain=row["gain"],
        low=row["low"],
        high=row["high"],
        is_adjusted=bool(row["is_adjusted"]),
        p=row["p_adjusted"],
        shown=bool(row["shown"]),
        parted=bool(row["parted"]),
        n_queries=int(row["n_queries"]),
        n_decided=int(row["n_decided"]),
        detectable=row["detectable_difference"],
    )


def _spoken_of(record: ComparisonRecord) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows the sentences speak of: those of the main measure, over all collections and slices."""
    own = (record.table["measure"] == record.main_measure).to_numpy()
    return own & (record.table[record.grouped] == TOGETHER).to_numpy() if record.grouped else own


def _not_confirmatory(record: ComparisonRecord, rows: pd.DataFrame) -> str:
    row = _named(record, rows)
    pair = f"{_pair(row)}{_which(record, rows)}"
    return f"Not confirmatory: {pair}: {evidence(record, row)}. This difference has no adjusted p-value."


def _nothing_shown(record: ComparisonRecord, rows: pd.DataFrame) -> list[str]:
    row, elsewhere = _named(record, rows), int(record.shown.sum())
    # By another measure or in a slice something may have been shown: then it is not said that nothing was.
    lead = f"Nothing was shown by {row.measure}" if elsewhere else CLAIMS[record.claim].nothing
    side = "" if record.alternative == "two-sided" else f" in the direction tested ({record.alternative})"
    pair = f"{_pair(row)}{_which(record, rows)}"
    said = [f"{lead}{side}{_margin(record)}: {pair}: {evidence(record, row)}.", *parting(record, row)]
    if elsewhere:
        said.append(f"In {count(elsewhere, 'row')} of other measures or parts something was shown.")
    return [*said, *detectable(record, row)]


def _shown(record: ComparisonRecord, rows: pd.DataFrame) -> list[str]:
    """Name one row, then the others."""
    row, claim = _named(record, rows), CLAIMS[record.claim]
    # Equal means are shown to differ only by a test that is not of the mean.
    lost = "is worse than" if row.gain < 0 else "differs from"
    verb = claim.verb if row.gain > 0 or claim.hypotheses else lost
    joint = " by " if verb == "beats" else ": "
    said = [
        f"{row.system} {verb} {row.baseline}{_margin(record)}{joint}{evidence(record, row)}.",
        *parting(record, row),
    ]
    if claim.harmless and not record.folds:
        n = int(row.n_queries)
        share = f"{100 * unseen_share(n, record.alpha):.2g} %"
        said.append(f"On {count(n, 'query')} a breakage of up to {share} of the queries can go unseen.")
    if verb == "is worse than" and len(rows) > 1 and record.baseline is not None:
        said.insert(0, f"No system was shown better than {row.baseline}.")
    n_shown = int(rows["shown"].sum())
    if claim.sides == 2 and n_shown > 1:
        said.append(f"Of the {n_shown} pairs shown {claim.adjective}, these two are the farthest apart.")
    return [*said, *_others(record, rows, row)]


def _pairs_shown(record: ComparisonRecord, rows: pd.DataFrame) -> list[str]:
    """Name the system that beats most others, and the nearest of those it beats."""
    shown, row = rows[rows["shown"]], _named(record, rows)
    if row.gain == 0:
        return _shown(record, rows)
    n_beaten = int(((shown["system"] == row.system) & (shown["gain"] > 0)).sum())
    others = len(record.best_first) - 1
    of_others = f"all {others}" if n_beaten == others else f"{n_beaten} of the {others}"
    which = row.baseline if n_beaten == 1 else f"the nearest of them, {row.baseline},"
    verb = CLAIMS[record.claim].verb
    lead = f"{row.system} {verb} {of_others} other systems: {which} by {evidence(record, row)}."
    return [lead, *parting(record, row), _counted(record, rows)]


def _counted(record: ComparisonRecord, rows: pd.DataFrame) -> str:
    n = int(rows["shown"].sum())
    words = CLAIMS[record.claim].adjective if CLAIMS[record.claim].hypotheses else "to differ"
    return f"{n} of {len(rows)} pairs {'was' if n == 1 else 'were'} shown {words}."


def _others(record: ComparisonRecord, rows: pd.DataFrame, named: Row) -> list[str]:
    """Say what was shown of the systems besides the one named, the best first; pairs are counted."""
    if record.baseline is None:
        return [_counted(record, rows)] if len(rows) > 1 else []
    claim, base = CLAIMS[record.claim], record.baseline
    words = {
        "good": f"shown {claim.adjective} {'to' if claim.sides == 2 else 'than'} {base}",
        "worse": f"shown worse than {base}",
        "equal": f"shown to differ from {base}, with equal means",
        "open": "undecided",
    }
    said: dict[str, list[str]] = {state: [] for state in words}
    others = rows[rows["system"] != named.system].sort_values("gain", ascending=False, kind="stable")
    for name, gain, is_shown in zip(others["system"], others["gain"], others["shown"], strict=True):
        state = "good" if gain > 0 or claim.hypotheses else "worse" if gain < 0 else "equal"
        said[state if is_shown else "open"].append(name)
    states = {words[state]: names for state, names in said.items() if names}
    return [f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {state}." for state, names in states.items()]


def _listed(names: list[str]) -> str:
    """List names, and count those beyond the first few."""
    rest = len(names) - MOST_LISTED + 1
    shown = [*names[:-rest], f"{rest} others"] if rest > 1 else names
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _first_two(record: ComparisonRecord, rows: pd.DataFrame) -> list[str]:
    """Say whether the two systems with the best means can be told apart, if something was shown of others."""
    if not rows["shown"].any():
        return []
    if record.baseline is not None:
        table = record.first_two
        found = rows[:0] if table is None else table[table["measure"] == record.main_measure]
    elif _of_pairs(record, rows):
        named, both = _named(record, rows), {*list(record.best_first)[:2]}
        pairs = [{*pair} for pair in zip(rows["system"], rows["baseline"], strict=True)]
        rows = rows.assign(p_value=rows["p_adjusted"])
        found = rows[[pair == both != {named.system, named.baseline} for pair in pairs]]
    else:
        found = rows[:0]
    alone = " for this pair alone" if record.baseline is not None else ""
    return [_told_apart(row, record.alpha, alone) for row in found.to_dict("records")]


def _told_apart(row: Mapping[Any, Any], alpha: float, alone: str) -> str:
    one, other = row["system"], row["baseline"]
    said = f"{telling(row['difference'], sign=True)} {row['measure']}, {p_words(row['p_value'])}{alone}"
    if row["p_value"] > alpha:
        return f"The first two by their means, {one} and {other}, cannot be told apart: {said}."
    return f"Of the first two by their means, {one} beats {other}: {said}."


def _unjudged(record: ComparisonRecord, rows: pd.DataFrame) -> list[str]:
    """Say what share is judged of each of the systems named, if the shares differ, and what the rest could change."""
    named = _named(record, rows)
    for row in [] if record.bounds is None else record.bounds[record.bounds["shares_differ"]].to_dict("records"):
        if row["measure"] == named.measure and {row["system"], row["baseline"]} == {named.system, named.baseline}:
            turn = 1 if row["system"] == named.system else -1
            sides = ("system", "baseline")[::turn]
            shares = " and ".join(f"{row[f'judged_{side}']:.2f} of those of {row[side]}" for side in sides)
            ends = " to ".join(telling(turn * row[end], sign=True) for end in ("lower", "upper")[::turn])
            judged = f"Of the documents within the cut-off, {shares} are judged"
            return [f"{judged}: the others could make the difference {ends}."]
    return []


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


def _of_pairs(record: ComparisonRecord, rows: pd.DataFrame) -> bool:
    """Tell whether all pairs of three systems or more were compared for differences."""
    return _is_turned(record) and len(rows) > 1


def _is_turned(record: ComparisonRecord) -> bool:
    """Tell whether each pair is turned so that it shows a gain; a one-sided test has the side of the table."""
    two_sided = record.alternative == "two-sided" and not CLAIMS[record.claim].hypotheses
    return record.baseline is None and two_sided


def _pair(row: Row) -> str:
    return f"{row.system} against {row.baseline}"


def _which(record: ComparisonRecord, rows: pd.DataFrame) -> str:
    """Say how a row that is not shown was picked among several."""
    if len(rows) == 1:
        return ""
    if CLAIMS[record.claim].sides == 2:
        return f", the smallest of {len(rows)} differences"
    return f", the largest of {len(rows)} differences" if _of_pairs(record, rows) else f", the best of {len(rows)}"


def _margin(record: ComparisonRecord) -> str:
    return f" (margin {record.margin:g})" if record.margin else ""
