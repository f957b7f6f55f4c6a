"""Whether a difference is more than seeds alone move, for systems whose scores are means over seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from rankeval.comparison.derived import has_scores, held_scores, scores_by_row
from rankeval.comparison.record import ComparisonRecord, kept, main_measure
from rankeval.comparison.shelved import evaluations_of
from rankeval.evaluation import Evaluation
from rankeval.render.tables import Table, p_value, telling
from rankeval.significance.declarations import Floats
from rankeval.significance.seeds import over_queries_and_seeds

MOST_NOTED = 3
"""Notes on so many differences; the others are in the table."""

_SIDES = ("baseline", "system")
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
    if not seed_counts(record) or not has_scores(record):
        return None
    means, rows = _means_by_seed(record), []
    for row in scores_by_row(record):
        measure = row.names["measure"]
        seeds = [means[row.names[side]][measure].to_numpy() for side in _SIDES]
        d = row.direction * row.gains
        cells: dict[str, float] = {"difference": float(d.mean())}
        for side, own in zip(_SIDES, seeds, strict=True):
            cells[f"seeds_{side}"] = len(own)
            cells[f"sd_{side}"] = float(own.std(ddof=1)) if len(own) > 1 else np.nan
        tested = over_queries_and_seeds(d, seeds, record.alpha)
        rows.append(row.names | cells | tested._asdict())
    return pd.DataFrame(rows)


def _means_by_seed(record: ComparisonRecord) -> dict[str, pd.DataFrame]:
    """Return the mean of each system by each measure, a row for each of its seeds."""
    shared = held_scores(record, record.table["measure"].unique())
    groups, means = kept(record).groups, {}
    for place, system in enumerate(shared.systems):
        scores = record.evaluations[system]
        blocks: list[Floats] = [shared.scores[:, place]]
        if isinstance(scores, Evaluation) and scores.facts.seeds:
            frames = [replace(scores, scores=own).per_query for own in scores.facts.seeds.values()]
            blocks = [frame.loc[shared.queries, shared.measures].to_numpy() for frame in frames]
        if groups is not None:
            blocks = [groups.means(block) for block in blocks]
        by_seed = [block.mean(axis=0) for block in blocks]
        means[system] = pd.DataFrame(by_seed, columns=shared.measures)
    return means


def seed_notes(record: ComparisonRecord) -> list[str]:
    """Say what the p-values contain, and whether differences are more than seeds alone move."""
    counts = seed_counts(record)
    if not counts:
        return []
    sizes = ", ".join(f"{system} {n}" for system, n in counts.items())
    means = f"scores are means over seeds ({sizes})"
    over = f"p-values and intervals of the table are over {record.settings.units} alone"
    table = seed_table(record)
    if table is None:
        return [f"{means}; {over}, and do not contain what other seeds would move"]
    notes = [f"{means}; {over}, and hold for these seeds; .seeds has both together"]
    table = table[table["measure"] == main_measure(record)]
    others = [name for name in record.evaluations if name not in counts]
    if others:
        notes.append(f"no seeds are known of {', '.join(others)}: what its seed moves is in no p")
    for row in table.head(MOST_NOTED).to_dict("records"):
        size = "larger" if abs(row["difference"]) > row["reach_seeds"] else "not larger"
        difference = f"{telling(row['difference'], sign=True)} {row['measure']}"
        moved = f"what seeds alone move ({telling(row['reach_seeds'])})"
        notes.append(
            f"the difference of {difference} between {row['system']} and {row['baseline']} is {size} than {moved}; "
            f"over queries and seeds, p is {p_value(row['p_value'])}"
        )
    return notes


def seed_tables(record: ComparisonRecord) -> list[Table]:
    """Return the table of seeds as it is printed, if there is one."""
    if (table := seed_table(record)) is None:
        return []
    shown = table.rename(columns=lambda name: name.replace("_", " "))
    return [Table(shown, {"p value": p_value}, caption=_CAPTION)]
