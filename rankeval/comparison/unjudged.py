"""What unjudged documents could change in a comparison.

A document without a judgment counts as not relevant. A system that ranks documents which nobody pooled therefore loses,
whatever they are worth. Three things help a reader: the share of each system's documents that is judged; the difference
if the others were relevant, in both rankings or in one only; and the comparison without them (condensed lists).

    both not relevant      difference       the comparison itself
    both relevant          all_relevant
    the baseline's only    lower            each query by itself, and the lower of its two readings, where a measure may
    the system's only      upper            fall when a document becomes relevant

By a measure that never falls when a grade rises, lower and upper bound the difference under every judgment of these
documents. They are reached if the systems share none of them. Other measures, such as nDCG and AP, divide by what could
be found: a document that one system alone found lowers the other's score too. For them these are extremes, not bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.special import stdtr

from rankeval.comparison.collections import PooledScores
from rankeval.comparison.design import BOUNDS, Design
from rankeval.comparison.result import Comparison
from rankeval.comparison.scores import SharedScores, Systems
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.measures import Measure
from rankeval.render.tables import telling
from rankeval.significance.declarations import Floats

UNEQUAL = 0.05
"""Shares that differ by more than this are noted, if a test shows that they differ."""

LEVEL = 1e-4
"""Level of that test for all shares of a comparison: so a note on systems that rank one pool at random is rare."""

MOST_NOTED = 3
"""Notes on so many comparisons; the others are counted."""


def with_bounds(
    compared: Comparison, design: Design, shared: SharedScores, weights: Floats | None = None
) -> Comparison:
    """Add the bounds to a comparison over queries, and notes where shares differ; none if a share is not known.

    Parameters
    ----------
    compared : Comparison
        The comparison.
    design : Design
        Its comparisons.
    shared : SharedScores
        The scores of the systems.
    weights : ndarray of shape (n_queries,), optional
        Weights of the queries of several collections.
    """
    given = shared.given if isinstance(shared, PooledScores) else compared.evaluations
    parts = [cast("Mapping[str, Any]", each if isinstance(each, Mapping) else {"": each}) for each in given.values()]
    if not all(isinstance(one, Evaluation) for part in parts for one in part.values()):
        return compared
    judged = _aligned(shared, parts, "judged")
    if np.isnan(judged).any():
        return compared
    relevant = _aligned(shared, parts, "relevant")
    low, high = np.minimum(shared.scores, relevant), np.maximum(shared.scores, relevant)
    share, relevant, low, high = (
        (values if weights is None else values * weights[:, None, None]).mean(axis=0).T
        for values in (judged, relevant, low, high)
    )
    first, second = design.pairs.T
    known = {name: each for part in parts for one in part.values() for name, each in one.by_name.items()}
    rules = {one.convention.unjudged for part in parts for one in part.values()}
    bounded = [_is_bounded(known[name]) and rules <= {"zero", "lowest"} for name in design.measures]
    differ = np.abs(share[:, second] - share[:, first]).ravel() > UNEQUAL
    found = {
        **design.names,
        "judged_baseline": share[:, first].ravel(),
        "judged_system": share[:, second].ravel(),
        "shares_differ": differ & (_p_values(design, judged) * differ.size <= LEVEL) if differ.any() else differ,
        "difference": compared.table["difference"].to_numpy(),
        "all_relevant": (relevant[:, second] - relevant[:, first]).ravel(),
        "lower": (low[:, second] - high[:, first]).ravel(),
        "upper": (high[:, second] - low[:, first]).ravel(),
        "is_bound": np.repeat(bounded, len(design.pairs)),
    }
    bounds = pd.DataFrame(found, columns=BOUNDS)
    return replace(compared, bounds=bounds).with_notes(*share_notes(bounds))


def _aligned(shared: SharedScores, parts: Sequence[Mapping[str, Evaluation]], reading: str) -> Floats:
    """Return a reading of all systems on the queries compared, shaped as their scores."""
    places = shared.places if isinstance(shared, PooledScores) else {"": np.arange(len(shared.queries))}
    found = np.empty_like(shared.scores)
    for part, rows in places.items():
        queries = shared.queries[rows].get_level_values(-1)
        for number, system in enumerate(parts):
            own = system[part]
            columns = [own.measure_names.index(name) for name in shared.measures]
            at = pd.Index(own.queries).get_indexer(queries)
            found[rows, number] = own.reading(reading)[np.ix_(at, columns)]
    return found


def _is_bounded(one: Measure) -> bool:
    """Say whether a value never falls when the grade of a document rises."""
    return one.monotone == "grade" and one.family.greater_is_better


def _p_values(design: Design, judged: Floats) -> Floats:
    """Return the p-value of the paired t test for each difference of shares; 0 for the same difference everywhere."""
    n = len(judged)
    mean, sd = design.columns(judged).summed(lambda d: (d.mean(axis=0), d.std(axis=0, ddof=1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        p: Floats = stdtr(n - 1, -np.abs(mean) / (sd / np.sqrt(n)))
    return np.nan_to_num(2 * p, nan=1.0)


def share_notes(bounds: pd.DataFrame | None) -> list[str]:
    """Return a note on each comparison whose shares of judged documents differ.

    Parameters
    ----------
    bounds : DataFrame or None
        `rankeval.Comparison.bounds`.
    """
    if bounds is None:
        return []
    rows = bounds[bounds["shares_differ"]].to_dict("records")
    notes = [_note(row) for row in rows[:MOST_NOTED]]
    left = len(rows) - MOST_NOTED
    return [
        *notes,
        *([f"shares of judged documents differ in {left:,} more comparisons: see .bounds"] if left > 0 else []),
    ]


def _note(row: Mapping[Any, Any]) -> str:
    share = f"{row['judged_system']:.2f} is judged for {row['system']} and {row['judged_baseline']:.2f} for"
    said = f"of the documents that {row['measure']} looks at, a share of {share} {row['baseline']}"
    if np.isnan(row["all_relevant"]):
        return said
    low, high, both, now = (telling(row[name], sign=True) for name in ("lower", "upper", "all_relevant", "difference"))
    said = f"{said}; if all others were relevant, the difference would be {both} and not {now}"
    if row["is_bound"]:
        return f"{said}; whatever they are, it lies between {low} and {high}"
    return f"{said}; if those of one system only were relevant, {low} or {high}"


def condensed(systems: Systems) -> dict[str, Any]:
    """Return systems whose rankings lack their unjudged documents.

    Parameters
    ----------
    systems : mapping of str to Evaluation
        As in `rankeval.compare`.

    Raises
    ------
    InvalidInput
        If scores are no evaluation, or one that does not know them.
    """
    return {
        name: {part: _skipping(f"{name} on {part}", one) for part, one in each.items()}
        if isinstance(each, Mapping)
        else _skipping(str(name), each)
        for name, each in systems.items()
    }


def _skipping(name: str, scores: Any) -> Evaluation:
    if not isinstance(scores, Evaluation):
        raise InvalidInput(f'unjudged="skip": system {name!r} has scores without documents; give its evaluation')
    found = scores.reading("skipped")
    if np.isnan(found).all(axis=0).any():
        raise InvalidInput(
            f'unjudged="skip": the evaluation of {name!r} does not know its scores without unjudged documents by every '
            "measure; only those of qrels and runs do, by measures of one grade a document"
        )
    rules = scores.convention.with_rules(unjudged="skip")
    return replace(scores, scores=found, convention=rules, facts=replace(scores.facts, readings={}))
