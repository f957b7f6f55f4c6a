"""Labels under the same ids that may be the registered ones, with grades mapped or rows of the lowest grade missing.

    registered grades   0   1   2   3   4      counts of a query   9   4   3   2   2
    label in the data   0   0   1   1   1      merged             13       7

An increasing map of grades, such as 2^y - 1 or y >= 2, merges neighbouring levels. If the data has m of L levels, there
are C(L - 1, m - 1) such maps. The counts of the shared queries choose one: for each level of the data, the registered
grade above which as many rows stand in most queries. The second question drops rows of the lowest level, as where
negatives were sampled: then the counts of all other levels are compared.

Each answer is weighed as `contamination.agreement` weighs plain counts, with the chances of the merged ones, and pays
for the choice: one bit, and log2 of twice the number of maps. So a Bayes factor that reaches 2^b by the best of all
answers still has a chance of at most 1.5 2^-b.

Rows that were dropped whatever their labels are no evidence: shorter lists with new clicks fit into longer ones too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.agreement import Chances, bayes_factor_bits, paid, ratios_of_counts
from rankeval.contamination.label_counts import LabelCounts

_LEAST_ALIKE = 0.1
"""Share of shared queries whose counts must be the same before a map is weighed at all."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """What the labels of shared queries say.

    Attributes
    ----------
    ratios : ndarray of float of shape (k, len(CHANGED))
        Natural logarithms of l_i(e), as `contamination.agreement` defines them.
    fits : ndarray of bool of shape (k,)
        Whether the sizes of the queries allow that they are the same.
    """

    ratios: NDArray[np.float64]
    fits: NDArray[np.bool_]

    @classmethod
    def best(cls, known: LabelCounts, chances: Chances, queries: NDArray[np.int64], theirs: LabelCounts) -> Agreement:
        """Return the agreement under the map of grades that is the strongest evidence, paid for; often there is none.

        Parameters
        ----------
        known : LabelCounts
            The labels of all registered queries.
        chances : Chances
            Their chances under H0.
        queries : ndarray of int of shape (k,)
            The shared queries among them.
        theirs : LabelCounts of shape (k,)
            The same queries in the data.
        """
        ours = known.take(queries)
        plain = cls(ratios_of_counts(ours, theirs, chances.take(queries)), ours.sizes == theirs.sizes)
        theirs = theirs.occurring()
        if not 2 <= len(theirs.levels) <= len(known.levels):
            return plain
        best, most = plain, max(0.0, bayes_factor_bits(plain.ratios))
        price = 2 + math.log2(math.comb(len(known.levels) - 1, len(theirs.levels) - 1))
        for mapped in _mapped(known, queries, theirs):
            bits = bayes_factor_bits(mapped.ratios) - price
            if bits > most:
                best, most = cls(paid(mapped.ratios, price), mapped.fits), bits
        return best


def _mapped(known: LabelCounts, queries: NDArray[np.int64], theirs: LabelCounts) -> Iterator[Agreement]:
    """Yield the agreement of merged labels, and that without some rows of the lowest level."""
    ours = known.take(queries)
    starts = _starts(ours, theirs)
    merged = ours.merged(starts, theirs.levels)
    if (merged.counts[:, 1:] == theirs.counts[:, 1:]).all(axis=1).mean() < _LEAST_ALIKE:
        return
    everywhere = known.merged(starts, theirs.levels)
    if not np.array_equal(known.levels, theirs.levels):  # otherwise these are the plain counts
        chances = Chances.of(everywhere).take(queries)
        yield Agreement(ratios_of_counts(merged, theirs, chances), merged.sizes == theirs.sizes)
    rest = merged.sizes - merged.counts[:, 0]
    fits = (theirs.sizes <= merged.sizes) & (rest <= theirs.sizes)
    if (fits & (theirs.sizes < merged.sizes)).any():
        counts = merged.counts.copy()
        counts[fits, 0] = (theirs.sizes - rest)[fits]
        left = LabelCounts(np.where(fits, theirs.sizes, merged.sizes), theirs.levels, counts)
        chances = Chances.of(left, alike=everywhere.alike(but=0)[queries])
        yield Agreement(ratios_of_counts(left, theirs, chances), fits)


def _starts(ours: LabelCounts, theirs: LabelCounts) -> list[int]:
    """Return the place of the registered level at which each level of the data begins."""
    above, wanted = _at_least(ours), _at_least(theirs)
    starts, n_levels = [0], len(theirs.levels)
    for level in range(1, n_levels):
        first, last = starts[-1] + 1, len(ours.levels) - (n_levels - level)
        agree = (above[:, first : last + 1] == wanted[:, [level]]).sum(axis=0)
        starts.append(first + int(agree.argmax()))
    return starts


def _at_least(labels: LabelCounts) -> NDArray[np.int64]:
    """Return how many rows of each query have each level or a higher one."""
    counts: NDArray[np.int64] = labels.counts[:, ::-1].cumsum(axis=1, dtype=np.int64)[:, ::-1]
    return counts
