"""Find the rows that moved in the query on which a ranker lost most.

The effect of a row's move is the score of the ranker, less its score if this row alone were back at its rank by the
baseline. So it holds for every measure. The effects need not add up to the loss: rows make room for each other.

Rows of equal score share the mean of their ranks. Among the other rows, with ranks from 1, a row goes back to rank r
at the value r - 1/2: behind the r - 1 rows above it, and before the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from rankeval.collection.convention import Convention
from rankeval.collection.data import RankingData
from rankeval.comparison import Comparison
from rankeval.comparison.headline import named_system
from rankeval.evaluation import Evaluation, Given, score
from rankeval.join.flat import Floats
from rankeval.measures import direction
from rankeval.measures import measures as parse_measures
from rankeval.render.tables import signed
from rankeval.report import MovedRows
from rankeval.significance.columns import TIE_TOLERANCE

SHOWN = 10
"""Rows of the table."""

TRIED = 200
"""Rows whose effect is computed: those whose discount 1 / log2(1 + rank) changed most."""


def moved_rows(
    comparison: Comparison,
    evaluations: Mapping[str, Evaluation],
    scores: Mapping[str, NDArray[np.float64]],
    test: RankingData,
) -> MovedRows | None:
    """Return the rows that moved in the query on which the system of the headline lost most.

    Parameters
    ----------
    comparison : Comparison
        The systems against a baseline.
    evaluations : mapping of str to Evaluation
        Their scores by query; the first measure counts.
    scores : mapping of str to ndarray of shape (n_rows,)
        Their scores of the rows.
    test : RankingData
        The rows.

    Returns
    -------
    MovedRows or None
        None without a baseline, and if no query lost.
    """
    baseline = comparison.settings.baseline
    if baseline is None or comparison.table.empty:
        return None
    system = named_system(comparison)
    before, after = (evaluations[name] for name in (baseline, system))
    label = after.measure_names[0]
    gains = direction(label) * (after.scores[:, 0] - before.scores[:, 0])
    worst = int(np.argmin(gains))
    if not gains[worst] < -TIE_TOLERANCE:
        return None
    query = after.queries[worst]
    rows = np.flatnonzero([one == query for one in test.qid.tolist()])
    old, new = (rankdata(-scores[name][rows]) for name in (baseline, system))
    effect = _effects(label, test.y[rows], old, new, after.convention)
    first = sorted(effect, key=lambda row: -abs(effect[row]))[:SHOWN]
    ids = rows if test.docid is None else test.docid[rows]
    table = pd.DataFrame(
        {
            "row" if test.docid is None else "document": str(ids[row]),
            "label": f"{test.y[rows[row]]:g}",
            f"rank by {baseline}": f"{old[row]:g}",
            f"rank by {system}": f"{new[row]:g}",
            "moved": f"{'up' if new[row] < old[row] else 'down'} {abs(new[row] - old[row]):g}",
            f"effect on {label}": signed(effect[row]),
        }
        for row in first
    )
    return MovedRows(query, float(before.scores[worst, 0]), float(after.scores[worst, 0]), table)


def _effects(label: str, y: NDArray[np.float64], old: Floats, new: Floats, rules: Convention) -> dict[int, float]:
    discounts = np.abs(1 / np.log2(1 + new) - 1 / np.log2(1 + old))
    tried = np.argsort(-discounts, kind="stable")[:TRIED]
    rankings = [new]
    for row in tried:
        others = rankdata(np.delete(new, row))
        rankings.append(np.insert(others, row, old[row] - 0.5))
    places = np.repeat(np.arange(len(rankings)), len(y))
    given = Given(np.tile(y, len(rankings)), -np.concatenate(rankings), places)
    now, *back = score(given.join(rules), parse_measures([label], rules)).scores[:, 0]
    return {int(row): float(now - one) for row, one in zip(tried, back, strict=True) if new[row] != old[row]}
