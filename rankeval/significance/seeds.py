"""The variance of a difference over queries and over seeds.

Two systems were scored on the same queries, each with seeds of its own. The mean difference varies
with the queries drawn and with the seeds drawn::

    score of system i, seed s, query q    mean_i + query_q + seed_s(i) + what is left

    var(difference) = var_queries / n + var_seeds_A / S_A + var_seeds_B / S_B

var_queries is the variance over queries of the differences of means over seeds, and var_seeds that
of the means of single seeds. The degrees of freedom are Satterthwaite's. These are crossed random
effects (Brennan, Generalizability Theory, 2001, doi:10.1007/978-1-4757-3456-0); Miller (2024,
arXiv:2411.00640) has them for evaluations of language models, Bouthillier et al. (2021,
arXiv:2103.03098) for seeds.

What is left within a query and a seed is part of both variances, so it counts twice: where seeds
move single queries only, and not the mean, the test is too timid. The trap is the other direction:
a test over queries alone takes these seeds for all seeds, and its p shrinks with more queries
however few the seeds are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from rankeval.significance.columns import standard_error
from rankeval.significance.declarations import Floats


class SeedTest(NamedTuple):
    """A difference tested over queries and seeds."""

    difference: float
    se_queries: float  # Standard error of the difference from queries, and from seeds
    se_seeds: float
    reach_seeds: float  # Half the interval of a difference that seeds alone make
    df: float
    ci_low: float
    ci_high: float
    p_value: float  # Two-sided; nan if nothing varies


def over_queries_and_seeds(d: Floats, seeds: Sequence[Floats], alpha: float) -> SeedTest:
    """Test whether a mean difference is zero, over queries and over seeds.

    ``d`` are the differences by query. ``seeds`` have, for each system, the mean of each of its
    seeds; one mean alone adds no variance.

    Examples
    --------
    >>> found = over_queries_and_seeds(np.array([0.1, 0.2, 0.3]), [np.array([0.4, 0.6])], 0.05)
    >>> print(f"{found.se_queries:.3f}, {found.se_seeds:.3f}, {found.df:.2f}")
    0.058, 0.100, 1.68
    """
    parts = [d, *(means for means in seeds if len(means) > 1)]
    errors = np.array([standard_error(part) for part in parts])
    df = np.array([len(part) - 1 for part in parts])
    error, joint_df, reach = _joint(errors, df, alpha)
    se_seeds, _, reach_seeds = _joint(errors[1:], df[1:], alpha)
    mean = float(d.mean())
    p_value = 2 * stats.t.sf(abs(mean) / error, joint_df) if error else np.nan
    p_value = float(np.maximum(p_value, np.finfo(np.float64).tiny))
    ends = mean - reach, mean + reach
    return SeedTest(mean, float(errors[0]), se_seeds, reach_seeds, joint_df, *ends, p_value)


def _joint(errors: Floats, df: Floats, alpha: float) -> tuple[float, float, float]:
    """Return the standard error of a sum, its degrees of freedom, and half of an interval."""
    variances = errors**2
    if not variances.any():
        return 0.0, np.nan, 0.0
    joint_df = variances.sum() ** 2 / (variances**2 / df).sum()
    error = np.sqrt(variances.sum())
    return float(error), float(joint_df), float(stats.t.isf(alpha / 2, joint_df) * error)
