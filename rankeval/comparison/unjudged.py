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

from collections.abc import Callable, Mapping
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
"""Level of that test for all shares of a comparison: so a note on systems that rank one pool at random is rare."""

MOST_NOTED = 3
"""Notes on so many comparisons; the others are counted."""


def with_reading(systems: Systems, name: str) -> dict[str, Any]:
    """Return systems with a reading of their unjudged documents for their scores, by the measures that have one."""

    def own(scores: Any) -> Evaluation:
        found = reading_of(scores, name) if isinstance(scores, Evaluation) else np.empty((0, 0))
        known: list[bool] = [not np.isnan(column).all() for column in found.T]
        if not isinstance(scores, Evaluation) or not any(known):
            raise InvalidInput(
                "unjudged= needs evaluations of qrels and runs, by measures that read one grade a document; other "
                "scores do not know their unjudged documents"
            )
        names, measures = (
            tuple(compress(scores.measure_names, known)),
            tuple(compress(scores.measures, known)),
        )
        return replace(scores, scores=found[:, known], measure_names=names, measures=measures)

    return {
        system: {part: own(one) for part, one in each.items()}
        if isinstance(each, Mapping)
        else own(each)
        for system, each in systems.items()
    }


def with_bounds(
    compared: Comparison, systems: Systems, again: Callable[[Systems, list[str]], Comparison]
) -> Comparison:
    """Add the bounds, and notes where shares differ, to a comparison of evaluations that know their documents."""
    parts = [each.values() if isinstance(each, Mapping) else [each] for each in systems.values()]
    held = [one for each in parts for one in each if isinstance(one, Evaluation)]
    if (
        len(held) < sum(map(len, parts))
        or compared.settings.collection_weights == "inverse_variance"
    ):
        return compared  # weights that follow the scores would follow the readings
    rows = overall(compared).table
    measures = [
        name
        for name in rows["measure"].unique()
        if all(
            np.isfinite(reading_of(one, "relevant")[:, one.measure_names.index(name)]).all()
            for one in held
        )
    ]
    rows = rows[rows["measure"].isin(measures)].reset_index(drop=True)
    if rows.empty:
        return compared
    shares = relevant = rows
    if unread := any(one.facts.readings for one in held):
        shares, relevant = (
            overall(again(with_reading(systems, one), measures)).table
            for one in ("judged", "relevant")
        )
    t = shares["effect_size"].abs() * np.sqrt(shares["n_queries"])
    p = 2 * stdtr(shares["n_queries"] - 1, -t) * len(rows)
    ends = {
        side: np.sort([rows[f"mean_{side}"], relevant[f"mean_{side}"]], axis=0)
        for side in ("baseline", "system")
    }
    found = rows.assign(
        judged_baseline=shares["mean_baseline"] if unread else 1.0,
        judged_system=shares["mean_system"] if unread else 1.0,
        shares_differ=unread & (shares["difference"].abs() > UNEQUAL) & (p <= LEVEL),
        all_relevant=relevant["difference"],
        lower=ends["system"][0] - ends["baseline"][1],
        upper=ends["system"][1] - ends["baseline"][0],
        is_bound=rows["measure"].map(
            {name: all(_is_bounded(one, name) for one in held) for name in measures}
        ),
    )[list(BOUNDS)]
    return with_notes(replace(compared, bounds=found), *share_notes(found))


def _is_bounded(one: Evaluation, name: str) -> bool:
    """Say whether unjudged documents count as not relevant, and no score falls if they are relevant."""
    measure = by_name(one)[name]
    return measure.monotone == "grade" and one.convention.unjudged in ("zero", "lowest")


def share_notes(bounds: pd.DataFrame | None) -> list[str]:
    """Return a note on each comparison whose shares of judged documents differ."""
    rows = [] if bounds is None else bounds[bounds["shares_differ"]].to_dict("records")
    left = len(rows) - MOST_NOTED
    more = (
        [f"shares of judged documents differ in {count(left, 'more comparison')}: see .bounds"]
        if left > 0
        else []
    )
    return [*map(_note, rows[:MOST_NOTED]), *more]


def _note(row: Mapping[Any, Any]) -> str:
    names = ("lower", "upper", "all_relevant", "difference")
    low, high, both, now = (telling(row[name], sign=True) for name in names)
    share = f"{row['judged_system']:.2f} is judged for {row['system']} and {row['judged_baseline']:.2f} for"
    extent = (
        "whatever they are, it lies"
        if row["is_bound"]
        else "if all of a system's or none were, it would lie"
    )
    return (
        f"of the documents that {row['measure']} looks at, a share of {share} {row['baseline']}; if all others were "
        f"relevant, the difference would be {both} and not {now}; {extent} between {low} and {high}"
    )
