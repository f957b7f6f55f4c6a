"""From raw p-values to a family: which comparisons are corrected for together, and what to say about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankeval.significance import draws_at_random, smallest_p_value
from rankeval.significance.multiple import JOINT_CORRECTIONS, adjust, family_level, max_t, tukey
from rankeval.significance.paired import Floats

TEST_WORDS = {
    "t": "paired t test",
    "randomization": "randomisation test (sign flips)",
    "bootstrap": "symmetric studentised bootstrap",
    "wilcoxon": "Wilcoxon signed-rank test",
    "sign": "sign test",
    "bootstrap_shift": "shift bootstrap",
    "bootstrap_percentile": "percentile bootstrap",
    "bootstrap_bca": "BCa bootstrap",
    "corrected_resampled_t": "corrected resampled t test of fold means",
}
CORRECTION_WORDS = {
    "holm": "Holm",
    "bonferroni": "Bonferroni",
    "bh": "Benjamini-Hochberg",
    "none": "no correction",
    "max_t": "max-T",
    "tukey": "randomised Tukey HSD",
}


def adjust_by_family(
    p: Floats,
    d: Floats,
    scores: Floats,
    pairs: Sequence[tuple[int, int]],
    correction: str,
    size: int,
    options: Mapping[str, Any],
) -> Floats:
    """Adjust within each family: all columns, or those of each measure.

    Parameters
    ----------
    p : ndarray of shape (n_measures * n_pairs,)
        Raw p-values, the pairs of a measure beside each other.
    d : ndarray of shape (n_queries, n_measures * n_pairs)
        Differences in the same order.
    scores : ndarray of shape (n_queries, n_systems, n_measures)
        What the differences were taken of.
    pairs : sequence of (int, int)
        Baseline and system of each pair.
    correction : str
        A key of `multiple.CORRECTIONS`.
    size : int
        Number of comparisons in one family.
    options : mapping
        alternative, n_resamples and rng.

    Returns
    -------
    ndarray of shape (n_measures * n_pairs,)
        Adjusted p-values, never below the raw ones (joint corrections have a test of their own).
    """
    n_measures = d.shape[1] // len(pairs)
    per_family = size // len(pairs)  # measures in one family
    parts = []
    for first in range(0, n_measures, per_family):
        columns = slice(first * len(pairs), (first + per_family) * len(pairs))
        if correction == "max_t":
            parts.append(max_t(d[:, columns], **options))
        elif correction == "tukey":
            cube = scores[:, :, first : first + per_family]
            joint = tukey(cube, pairs, n_resamples=options["n_resamples"], rng=options["rng"])
            parts.append(joint.T.ravel())
        else:
            parts.append(adjust(p[columns], correction))
    return np.maximum(np.concatenate(parts), p)


def family_notes(test: str, correction: str, size: int) -> list[str]:
    """Say what the correction does not promise."""
    notes = {
        "bh": "Benjamini-Hochberg controls the expected share of false claims, not the chance of any false claim",
        "tukey": (
            "randomised Tukey takes all systems as exchangeable: with near-identical systems beside unlike ones it is "
            "liberal (16 % family-wise errors measured where 5 % were asked)"
        ),
        "none": f"p-values are not corrected for the {size} comparisons",
    }
    if correction == "max_t" and test != "randomization":
        return [f"adjusted p-values are by sign flips joint over the family, raw ones by the {TEST_WORDS[test]}"]
    return [notes[correction]] if correction in notes and size > 1 else []


def resolution_notes(
    test: str, correction: str, size: int, n: int, n_resamples: int, alternative: str, alpha: float
) -> list[str]:
    """Say when no data could have led to a rejection."""
    joint = correction in JOINT_CORRECTIONS
    level = alpha if joint else family_level(alpha, correction, size)
    source = correction if joint and test in ("t", "randomization") else test
    floor = smallest_p_value(source, n, n_resamples=n_resamples, alternative=alternative)
    if floor <= level * (1 + 1e-9):
        return []
    needed = math.ceil(n_resamples * floor / level)
    remedy = f"ask for n_resamples={needed} or more" if draws_at_random(source, n) else "more queries are needed"
    note = (
        f"nothing can be significant here: the smallest p-value possible is {floor:.2g}, and the family of {size} "
        f"asks for {level:.2g}; {remedy}"
    )
    return [note]
