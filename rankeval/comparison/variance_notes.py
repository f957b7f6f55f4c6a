"""Sentences that a reader of an analysis of variance must see."""

from __future__ import annotations

import numpy as np
from scipy import stats

from rankeval._checks import count
from rankeval.render.tables import p_value
from rankeval.significance.anova import TwoWay
from rankeval.significance.declarations import Floats

NOT_INTERCHANGEABLE = 0.01
"""Chance of so small an F of query x system, below which nested replicates get a note."""


def design_notes(block: Floats, queries: str, replicates: str) -> list[str]:
    """Return what is tested against what, and which queries the claims are about."""
    if block.shape[2] == 1:
        return [
            "one score for each query and system, so query x system is part of the error; replicates tell them apart"
        ]
    if queries == "fixed":
        return [f"all is tested against error: the claims are about these {count(len(block), 'query')} only"]
    rivals = "query and system are tested against query x system"
    if replicates == "crossed":
        rivals = (
            "system is tested against query x system, replicate against query x replicate, query against nothing, "
            "since no mean square is its rival"
        )
    note = (
        f"{rivals}: the claims are about queries like these; "
        'queries="fixed" tests against error, for claims about these queries'
    )
    return [note]


def nested_notes(found: TwoWay, replicates: str) -> list[str]:
    """Return a note if scores of a cell differ more than interchangeable ones do by chance."""
    rows = {row.source: row for row in found.sources}
    if replicates == "crossed" or "query x system" not in rows:
        return []
    both = rows["query x system"]
    if not stats.f.cdf(both.F, both.df, rows["error"].df) < NOT_INTERCHANGEABLE:
        return []
    note = (
        f"the replicates are not interchangeable: query x system has an F of {both.F:.2f}, which is too small; if all "
        'systems share them, as they share shards, take replicates="crossed"'
    )
    return [note]


def value_notes(found: TwoWay, epsilon: float, corrected: float) -> list[str]:
    """Return notes on negative variances, an F that is not given, and the corrected p of system."""
    notes = [
        f"the estimated variance of {name} is negative ({value:.2g}) and set to 0"
        for name, value in found.components.items()
        if value < 0
    ]
    system = next(row for row in found.sources if row.source == "system")
    if np.isnan(system.F):
        notes.append(f"no F is given against a mean square of 0, that of {system.against}")
    elif system.df > 1 and not np.isnan(corrected):
        notes.append(
            "the F of system assumes that the differences of all pairs of systems vary alike; corrected for how they "
            f"do vary (Greenhouse-Geisser epsilon {epsilon:.2f}), its p is {p_value(corrected)}"
        )
    return notes


def absent_notes(n_left_out: int) -> list[str]:
    """Return a note if queries were left out because some scores lack them."""
    return [f"queries that some scores lack were left out: {n_left_out}"] if n_left_out else []
