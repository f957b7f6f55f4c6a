"""Trade-offs: the differences of systems by two measures at once, and which systems are dominated.

A gain in one measure often costs something of another. Two separate intervals do not show how the
two differences go together over queries, so the pair of differences has a region::

    y  |      .--.
       |    /  o  /     o  both differences, with a joint region: an ellipse from their
       |    '--'           covariance over queries (Hotelling)
    ---+------------ x
       |                +  the baseline

The other question is which systems can be left out of the choice. A system is dominated if another
is better by x, and by y better too, or not worse by a margin. Each part must be shown, so the
p-value of a pair is the larger of the two (an intersection-union test, Berger 1982), and Holm
corrects over all ordered pairs of systems. The trap: systems that are not shown to be dominated are
not shown to be good; with few queries nothing is dominated.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from rankeval._checks import count, refuse
from rankeval._registry import chosen
from rankeval.comparison.derived import tested_scores
from rankeval.comparison.inputs import SharedScores
from rankeval.comparison.record import ComparisonRecord
from rankeval.measures import greatest_loss
from rankeval.render import comparisons
from rankeval.significance import paired_test
from rankeval.significance.columns import differences, without_variance
from rankeval.significance.declarations import FOLD_TESTS, Floats, all_tests
from rankeval.significance.multiple import holm

if TYPE_CHECKING:
    from rankeval.render.plots import Figure


def tradeoff_table(
    record: ComparisonRecord, x: str, y: str, *, baseline: str | None, margin: float
) -> pd.DataFrame:
    """Return the table of a trade-off, as `rankeval.Comparison.tradeoff` documents it."""
    settings, known = record.settings, record.table["measure"].tolist()
    for name in (x, y):
        chosen("measure of the comparison", name, known)
    baseline = baseline or settings.baseline
    folds = "joint regions are over queries, and this comparison is one of folds"
    alone = "a trade-off is of differences from one system, and all pairs were compared"
    weighted = f"joint regions count every {settings.unit} once, and these are weighted"
    refuse(
        (settings.n_effective, weighted, "evaluate without query_weight="),
        (settings.test in FOLD_TESTS, folds, 'compare with question="models"'),
        (not baseline, alone, "name the system with baseline="),
    )
    settings.must_know_directions([x, y], "a system is dominated by a better one")
    shared = tested_scores(record, [x, y])
    n, n_systems, _ = shared.scores.shape
    refuse((n < 3, f"a joint region needs at least 3 {settings.units}, found {n}"))
    origin = shared.systems.index(chosen("baseline", baseline, shared.systems))
    d = shared.scores - shared.scores[:, [origin]]
    difference = d.mean(axis=0)
    half, correlation = _joint_regions(d, record.alpha / (n_systems - 1))
    table = pd.DataFrame({"system": shared.systems})
    table[["difference_x", "difference_y"]] = difference
    table[["low_x", "low_y"]] = difference - half
    table[["high_x", "high_y"]] = difference + half
    table = table.assign(correlation=correlation, p_dominated=np.nan, dominated_by="")
    words = f"no system is called dominated, since {x} and {y} are not both confirmatory"
    if settings.primary is None and record.table["p_adjusted"].notna().any():
        table["p_dominated"], table["dominated_by"] = _dominated(record, shared, margin)
        by_y = f"not worse by {margin:g}" if margin else "better"
        test = f"{all_tests()[settings.test].words}, Holm over all ordered pairs"
        words = f"dominated: another system is shown better by {x} and {by_y} by {y} ({test})"
    level = f"Joint {100 * settings.confidence_level:g} % regions of differences from {baseline}"
    systems = count(n_systems - 1, "system")
    by = f"Hotelling's T2 over {settings.sized(n)}, Bonferroni over {systems}"
    table.attrs["caption"] = f"{level} ({by}); {words}"
    return table


def _joint_regions(d: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return half the width and height of each system's ellipse, and the correlation of its differences.

    ``d`` are differences, of shape (n_queries, n_systems, 2). The region of Hotelling (1931),
    doi:10.1214/aoms/1177732979, has all (a, b) with ``n (mean - (a, b))' S^-1 (mean - (a, b))`` of
    at most ``2 (n - 1) / (n - 2) F``.
    """
    n = len(d)
    # Differences that are all the same tell no width.
    variance = np.where(without_variance(d), np.nan, d.var(axis=0, ddof=1))
    covariance = (d - d.mean(axis=0)).prod(axis=2).sum(axis=0) / (n - 1)
    reach = 2 * (n - 1) / (n - 2) * stats.f.isf(alpha, 2, n - 2)
    return np.sqrt(reach * variance / n), covariance / np.sqrt(variance.prod(axis=1))


def _dominated(
    record: ComparisonRecord, shared: SharedScores, margin: float
) -> tuple[Floats, list[str]]:
    """Return the smallest adjusted p of each system against all others, and the other if it is shown."""
    settings, names = record.settings, np.array(shared.systems)
    worse, better = np.array([*permutations(range(len(names)), 2)]).T
    largest = np.zeros(len(worse))
    for place, own_margin in enumerate((0.0, margin)):
        measure, scores = shared.measures[place], shared.scores[:, :, place]
        loss = greatest_loss(measure)
        found = paired_test(
            settings.test,
            settings.direction(measure).sign * differences(scores[:, better], scores[:, worse]),
            claim="not_worse" if own_margin else "better",
            margin=own_margin,
            unseen=1,
            greatest_loss=loss if np.isfinite(loss) else np.abs(scores).max(),
            alpha=settings.alpha,
            n_resamples=settings.n_resamples,
            rng=settings.rng,
        )
        largest = np.maximum(largest, found.p_value)
    adjusted = np.ones((len(names), len(names)))
    adjusted[worse, better] = holm(largest)
    least = adjusted.min(axis=1)
    others = names[adjusted.argmin(axis=1)]
    return least, np.where(least <= record.alpha, others, "").tolist()


def tradeoff_figure(
    record: ComparisonRecord, x: str, y: str, *, baseline: str | None, margin: float
) -> Figure:
    """Draw the table of a trade-off."""
    table = tradeoff_table(record, x, y, baseline=baseline, margin=margin)
    labels = []
    for measure in (x, y):
        less = " (less is better)" if record.settings.direction(measure).sign < 0 else ""
        labels.append(f"difference in {measure}{less}")
    return comparisons.regions(table, labels, f"{table.attrs['caption']}. Hollow: dominated.")
