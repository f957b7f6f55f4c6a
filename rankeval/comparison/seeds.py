"""Whether a difference is more than seeds alone move, for systems whose scores are means over seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from rankeval._checks import count
from rankeval.comparison.derived import has_scores, scores_by_row
from rankeval.comparison.record import ComparisonRecord, main_measure
from rankeval.comparison.shelved import evaluations_of
from rankeval.evaluation.lacking import listed
from rankeval.render.tables import Table, p_value
from rankeval.significance.seeds import over_queries_and_seeds

MOST_NOTED = 3
"""Notes on so many differences; the others are in the table."""

_SIDES = ("baseline", "system")
_OVER = (
    "scores of {systems} are means over seeds; p-values and intervals of the table are over {units} alone, and "
    "apply to these seeds"
)
_MOVED = (
    "{system} against {baseline}: {difference:+.3g} {measure} is {size} than what seeds alone move "
    "({reach_seeds:.3g}); over queries and seeds p = {p_value:.3g}, not corrected"
)
_NOTHING_MOVED = (
    "{system} against {baseline}: all seeds gave the same {measure}, so nothing is known of what another one moves; "
    "does the model draw anything by random_state?"
)
_CAPTION = (
    "What seeds move beside queries: standard errors of the difference from each, what seeds alone move at the level "
    "of the test, and interval and p over both, not corrected for the number of comparisons"
)


def seed_counts(record: ComparisonRecord) -> dict[str, int]:
    """Return the number of seeds of each system that has some."""
    held = evaluations_of(record).items()
    return {system: len(own.facts.seeds) for (system, _), own in held if own.facts.seeds}


def seed_table(record: ComparisonRecord) -> pd.DataFrame | None:
    """Return `rankeval.Comparison.seeds`."""
    counts, rows = seed_counts(record), []
    if not counts or not has_scores(record) or record.settings.n_effective:
        return None
    replicas = [_of_seed(record, place) for place in range(max(counts.values()))]
    for row, *others in zip(*map(scores_by_row, [record, *replicas]), strict=True):
        d, seeds = row.direction * row.gains, []
        cells: dict[str, float] = {}
        for side in _SIDES:
            means = pd.Series([getattr(other, side).mean() for other in others])
            own = means[: counts.get(row.names[side], 1)]
            cells |= {f"seeds_{side}": len(own), f"sd_{side}": own.std()}
            seeds.append(own.to_numpy())
        tested = over_queries_and_seeds(d, seeds, record.alpha)
        rows.append(row.names | cells | tested._asdict())
    table = pd.DataFrame(rows)
    table.attrs["caption"] = _CAPTION
    return table


def _of_seed(record: ComparisonRecord, place: int) -> ComparisonRecord:
    evaluations: dict[str, Any] = dict(record.evaluations)
    for system, n_seeds in seed_counts(record).items():
        seeds = [*evaluations[system].facts.seeds.values()]
        evaluations[system] = replace(evaluations[system], scores=seeds[place % n_seeds])
    return replace(record, evaluations=evaluations)


def seed_notes(record: ComparisonRecord) -> list[str]:
    """Say what the p-values contain, and whether differences are more than seeds alone move."""
    counts, table = seed_counts(record), seed_table(record)
    if not counts:
        return []
    notes = [_OVER.format(systems=listed([*counts]), units=record.settings.units)]
    if others := [name for name in record.evaluations if name not in counts]:
        notes.append(f"no seeds are known of {listed(others)}: what its seed moves is in no p")
    if table is None:
        return notes
    own = table[table["measure"] == main_measure(record)].head(MOST_NOTED)
    for row in own.to_dict("records"):
        size = "larger" if abs(row["difference"]) > row["reach_seeds"] else "not larger"
        words = _MOVED if row["reach_seeds"] > 0 else _NOTHING_MOVED
        notes.append(words.format_map(row | {"size": size}))
    if n_others := len(table) - len(own):
        notes.append(f"what seeds move is in `seeds` for {count(n_others, 'more difference')}")
    return notes


def seed_tables(record: ComparisonRecord) -> list[Table]:
    """Return the table of seeds as it is printed, if there is one."""
    if (table := seed_table(record)) is None:
        return []
    shown = table.set_axis(table.columns.str.replace("_", " "), axis="columns")
    return [Table(shown, {"p value": p_value}, caption=_CAPTION)]
