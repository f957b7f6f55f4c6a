"""Significance: arrays in, numbers out. The query is the unit of everything here."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike

from rankeval._registry import chosen
from rankeval.significance.bootstrap import bootstrap_bca, bootstrap_percentile, bootstrap_shift, bootstrap_t
from rankeval.significance.paired import PairedTest, paired_t, sign, wilcoxon
from rankeval.significance.resampling import EXACT_UP_TO, Rng, sign_flip

__all__ = ["RESAMPLING_TESTS", "TESTS", "PairedTest", "draws_at_random", "paired_test", "smallest_p_value"]

TESTS: dict[str, Callable[..., PairedTest]] = {
    "t": paired_t,
    "randomization": sign_flip,
    "bootstrap": bootstrap_t,
    "wilcoxon": wilcoxon,
    "sign": sign,
    "bootstrap_shift": bootstrap_shift,
    "bootstrap_percentile": bootstrap_percentile,
    "bootstrap_bca": bootstrap_bca,
}
"""Name -> test. All take differences, `alternative` and `confidence_level`."""

RESAMPLING_TESTS = frozenset(
    {"randomization", "bootstrap", "bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"},
)
"""Those that take `n_resamples` and `rng` besides."""


def paired_test(
    name: str,
    d: ArrayLike,
    *,
    alternative: str = "two-sided",
    confidence_level: float = 0.95,
    n_resamples: int = 9999,
    rng: Rng = None,
) -> PairedTest:
    """Run a test by its name.

    Parameters
    ----------
    name : str
        A key of `TESTS`.
    d : array_like of shape (n_queries,) or (n_queries, n_pairs)
        Per-query differences.
    alternative, confidence_level, n_resamples, rng
        Passed on, the last two only to tests that resample.

    Returns
    -------
    PairedTest
        P-values and intervals.

    Raises
    ------
    UnknownName
        There is no such test.
    """
    chosen("test", name, TESTS)
    options = {"n_resamples": n_resamples, "rng": rng} if name in RESAMPLING_TESTS else {}
    return TESTS[name](d, alternative=alternative, confidence_level=confidence_level, **options)


def draws_at_random(name: str, n_queries: int) -> bool:
    """Return whether a test or correction depends on the seed: sign flips of few queries are counted out."""
    if name in ("randomization", "max_t"):
        return n_queries > EXACT_UP_TO
    return name == "tukey" or name in RESAMPLING_TESTS


def smallest_p_value(name: str, n_queries: int, *, n_resamples: int = 9999, alternative: str = "two-sided") -> float:
    """Return the smallest p-value a test can give, whatever the differences: 0 where it has no such floor.

    Parameters
    ----------
    name : str
        A key of `TESTS`, or "max_t" or "tukey".
    n_queries, n_resamples, alternative
        As the test gets them.

    Returns
    -------
    float
        A family larger than ``alpha`` divided by this cannot show anything after Bonferroni or Holm.
    """
    sides = 2 if alternative == "two-sided" else 1
    if name in ("sign", "wilcoxon") or (name in ("randomization", "max_t") and n_queries <= EXACT_UP_TO):
        return float(sides * 0.5**n_queries)
    if name == "bootstrap_percentile":
        return sides / (n_resamples + 1)
    if name == "bootstrap":
        return sides / 2 / (n_resamples + 1)
    return 1 / (n_resamples + 1) if name in ("randomization", "bootstrap_shift", "max_t", "tukey") else 0.0
