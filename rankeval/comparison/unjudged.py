"""What unjudged documents could change in a comparison.

A document without a judgment counts as not relevant. A system that ranks documents which nobody
pooled therefore loses, whatever they are worth. Evaluations keep the share that is judged, and
their scores if the others were relevant or left out (`rankeval.evaluation.scoring`). Comparing
these in place of the scores gives all that a reader needs:

    shares judged, tested                          judged_baseline, judged_system, shares_differ
    the others relevant for both                   all_relevant
    for the baseline, the system, both, neither    lower and upper: the least and the greatest of the four differences
    the others left out                            the table of condensed lists

By a measure that never falls when a grade rises, lower and upper bound the difference under every
judgment of these documents, and are reached if the systems share none of them. Other measures, such
as nDCG and AP, divide by what could be found: there some of the documents may be worth more than
all, and a document that one system alone found lowers the other's score too. For them these are
extremes, not bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr

from rankeval._checks import count
from rankeval.comparison.design import BOUNDS
from rankeval.comparison.inputs import Systems
from rankeval.comparison.record import overall, with_notes
from rankeval.comparison.result import Comparison
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.result import by_name, reading_of
from rankeval.render.tables import telling

UNEQUAL = 0.05
"""Shares that differ by more than this are noted, if a test shows that they differ."""

LEVEL = 1e-4
"""Level of that test for all shares together: random ranks of one pool rarely get a note."""

MOST_NOTED = 3
"""Notes on so many comparisons; the others are counted."""


def with_reading(systems: Systems, name: str) -> dict[str, Any]:
    """Return systems with a with_reading of their unjudged documents in place of their scores.

    Only the measures that have it stay. ``name`` is one of ``rankeval.evaluation.facts.READINGS``.
    """
    readings: dict[str, Any] = {}
    for system, scores in systems.items():
        if isinstance(scores, Mapping):
            readings[system] = {part: _read(values, name) for part, values in scores.items()}
        else:
            readings[system] = _read(scores, name)
    return readings


def _read(scores: Any, name: str) -> Evaluation:
    values = reading_of(scores, name) if isinstance(scores, Evaluation) else np.empty((0, 0))
    known = [not np.isnan(column).all() for column in values.T]
    if not isinstance(scores, Evaluation) or not any(known):
        raise InvalidInput(
            "unjudged= needs evaluations of qrels and runs, by measures that read one grade a document; other "
            "scores do not know their unjudged documents"
        )
    names = tuple(compress(scores.measure_names, known))
    measures = tuple(compress(scores.measures, known))
    return replace(scores, scores=values[:, known], measure_names=names, measures=measures)


def with_bounds(
    compared: Comparison, systems: Systems, again: Callable[[Systems, list[str]], Comparison]
) -> Comparison:
    """Add the bounds, and notes where shares differ, if evaluations know their documents."""
    cells: list[Any] = []
    for scores in systems.values():
        cells += scores.values() if isinstance(scores, Mapping) else [scores]
    evaluations = [cell for cell in cells if isinstance(cell, Evaluation)]
    # Weights that follow the scores would follow the readings.
    is_weighed_by_scores = compared.settings.collection_weights == "inverse_variance"
    if len(evaluations) < len(cells) or is_weighed_by_scores:
        return compared
    rows = overall(compared).table
    measures = [name for name in rows["measure"].unique() if _has_bounds(evaluations, name)]
    rows = rows[rows["measure"].isin(measures)].reset_index(drop=True)
    if rows.empty:
        return compared
    bounds, relevant = (
        rows.assign(judged_baseline=1.0, judged_system=1.0, shares_differ=False),
        rows,
    )
    if any(evaluation.facts.readings for evaluation in evaluations):
        shares = overall(again(with_reading(systems, "judged"), measures)).table
        relevant = overall(again(with_reading(systems, "relevant"), measures)).table
        bounds["judged_baseline"] = shares["mean_baseline"]
        bounds["judged_system"] = shares["mean_system"]
        n = compared.settings.n_effective or shares["n_queries"]
        t = shares["effect_size"].abs() * np.sqrt(n)
        p = 2 * stdtr(n - 1, -t) * len(rows)
        bounds["shares_differ"] = (shares["difference"].abs() > UNEQUAL) & (p <= LEVEL)
    baseline = np.sort([rows["mean_baseline"], relevant["mean_baseline"]], axis=0)
    system = np.sort([rows["mean_system"], relevant["mean_system"]], axis=0)
    bounded = {name for name in measures if _is_bounded(evaluations, name)}
    bounds = bounds.assign(
        all_relevant=relevant["difference"],
        lower=system[0] - baseline[1],
        upper=system[1] - baseline[0],
        is_bound=rows["measure"].isin(bounded),
    )[list(BOUNDS)]
    return with_notes(replace(compared, bounds=bounds), *share_notes(bounds))


def _has_bounds(evaluations: Sequence[Evaluation], name: str) -> bool:
    """Say whether all evaluations know their scores if unjudged documents were relevant."""
    for evaluation in evaluations:
        values = reading_of(evaluation, "relevant")
        if not np.isfinite(values[:, evaluation.measure_names.index(name)]).all():
            return False
    return True


def _is_bounded(evaluations: Sequence[Evaluation], name: str) -> bool:
    """Say whether unjudged documents count as not relevant, and relevant ones never lower a score."""
    return all(
        by_name(evaluation)[name].monotone == "grade"
        and evaluation.convention.unjudged in ("zero", "lowest")
        for evaluation in evaluations
    )


def share_notes(bounds: pd.DataFrame | None) -> list[str]:
    """Return a note on each comparison whose shares of judged documents differ."""
    rows = [] if bounds is None else bounds[bounds["shares_differ"]].to_dict("records")
    notes = [_note(row) for row in rows[:MOST_NOTED]]
    if (left := len(rows) - MOST_NOTED) > 0:
        more = count(left, "more comparison")
        notes.append(f"shares of judged documents differ in {more}: see .bounds")
    return notes


def _note(row: Mapping[Any, Any]) -> str:
    names = ("lower", "upper", "all_relevant", "difference")
    low, high, both, now = (telling(row[name], sign=True) for name in names)
    own, other = f"{row['judged_system']:.2f}", f"{row['judged_baseline']:.2f}"
    share = f"{own} is judged for {row['system']} and {other} for {row['baseline']}"
    extent = "if all of a system's or none were, it would lie"
    if row["is_bound"]:
        extent = "whatever they are, it lies"
    return (
        f"of the documents that {row['measure']} looks at, a share of {share}; if all others were "
        f"relevant, the difference would be {both} and not {now}; {extent} between {low} and {high}"
    )
