"""Expectation maximisation, and the models whose click probability is attraction times examination.

A step of EM says how often each parameter is expected to have come true, given the clicks. The new value of a parameter
is that share, with a prior counted in::

    value = (hits + prior clicks) / (trials + prior impressions)

In the position-based and the user browsing model an impression of an item falls into a *cell*: its pair of query and
document, and its slot, the position or the position with that of the last click. Items of a cell are alike, so EM goes
over cells with counts, and the length of the log does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from rankeval._checks import check_count, check_number, require
from rankeval.errors import warn
from rankeval.online.logs import Ints
from rankeval.significance.declarations import Floats

Prior = tuple[float, float]
"""Clicks and impressions that are added to the counts of each parameter."""
Counts = Floats | Ints
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
BLOCK = 1 << 18
"""So many numbers are looked at together."""
TINY = np.finfo(np.float64).tiny
"""Stands for a chance of 0 where one is divided by, or its logarithm taken."""
Step = Callable[[Floats], tuple[Counts, Counts, float]]
"""Takes values and returns the expected hits and trials of each parameter, and the log likelihood of the values."""
Fitted = tuple[Floats, Counts, Floats]
"""Values, the trials that each rests on, and the objective at the start of each iteration that stands."""


def log_binomial(hits: Any, trials: Any, values: Floats) -> float:
    """Return the log likelihood of so many hits in so many trials, with 0 log 0 = 0."""
    return float(xlogy(hits, values).sum() + xlog1py(trials - hits, -values).sum())


def maximised(step: Step, size: int, prior: Prior, tolerance: float, max_iter: int) -> Fitted:
    """Return the values that EM ends at, from one half on, with their trials and the objectives on the way.

    Parameters
    ----------
    step : callable
        The expectation step.
    size : int
        Number of parameters.
    prior : tuple of float
        Clicks and impressions added to each parameter. The maximum is that of the likelihood times Beta densities with
        the parameters clicks + 1 and impressions - clicks + 1.
    tolerance : float
        EM ends if no parameter moves by more. With 0 it takes ``max_iter`` iterations without jumps, and does not warn.
    max_iter : int
        The most iterations.
    """
    check_number("tolerance", tolerance, least=0.0)
    check_count("max_iter", max_iter)
    fits = np.shape(prior) == (2,) and 0 <= prior[0] <= prior[1] < np.inf
    require(fits, "prior", prior, "clicks and impressions, 0 <= clicks <= these")
    values, change = np.full(size, 0.5), np.inf
    trials: Counts = values
    path, objectives, behind = [values], list[float](), None
    for _ in range(max_iter):
        hits, trials, likelihood = step(values)
        objective = likelihood + log_binomial(*prior, values)
        if behind is not None and objective < objectives[-1]:
            values, path, behind = behind, [behind], None  # the jump went too far
            continue
        objectives.append(objective)
        moved = np.divide(hits + prior[0], trials + prior[1], out=values.copy(), where=trials + prior[1] > 0)
        change, values, behind = float(np.abs(moved - values).max()), moved, None
        path.append(values)
        if change <= tolerance:
            break
        if tolerance and len(path) == 3:
            # SQUAREM (Varadhan and Roland, 2008): two steps tell how steps shrink, and so where they lead. A value that
            # would leave (0, 1) stays.
            first, bend = path[1] - path[0], path[2] - 2 * path[1] + path[0]
            length = max(1.0, float(np.linalg.norm(first) / max(np.linalg.norm(bend), TINY)))
            jump = path[0] + 2 * length * first + length**2 * bend
            behind, values = values, np.where((jump > 0) & (jump < 1), jump, values)
            path = [values]
    if change > tolerance > 0:
        warn(
            f"EM has not converged: iteration {max_iter:,} moved a parameter by {change:.1g}, above the tolerance "
            f"{tolerance:.1g}; give more iterations (max_iter=) or a greater tolerance"
        )
    return values if behind is None else behind, trials, np.array(objectives)


def blocks(*arrays: Any) -> Iterator[Any]:
    """Yield the arrays in parts of rows, so that what is computed of them takes little memory."""
    return zip(*(np.array_split(array, 1 + arrays[0].size // BLOCK) for array in arrays), strict=True)


def slot_starts(depth: int, *, by_last: bool) -> Ints:
    """Return the slot of each place without a click above; ``by_last``, one for each place of a click above follows."""
    places = np.arange(depth)
    return places * (places + 1) // 2 if by_last else places


def cells(pairs: Codes, clicked: Mask, counts: Ints, *, n_pairs: int, by_last: bool) -> pd.DataFrame:
    """Return a row for each pair and slot: pair, slot, its position, shown (items) and hits (clicks).

    Parameters
    ----------
    pairs, clicked : array of shape (n_impressions, depth)
        The pair at each position as a code, ``n_pairs`` for none, and whether it was clicked.
    counts : array of shape (n_impressions,)
        How often the list was shown and clicked so.
    n_pairs : int
        Number of pairs.
    by_last : bool
        Whether slots are positions with that of the last click above; else they are positions.
    """
    depth, found = pairs.shape[1], []
    starts = slot_starts(depth + 1, by_last=by_last)
    for part, clicks, weights in blocks(pairs, clicked, counts):
        last = np.maximum.accumulate(clicks * np.arange(1, depth + 1), axis=1)[:, :-1]
        slots = starts[:-1] + by_last * np.pad(last, ((0, 0), (1, 0)))
        shown = part < n_pairs
        keys, each = (part * starts[-1] + slots)[shown], np.repeat(weights, shown.sum(axis=1))
        found.append(pd.DataFrame({"shown": each, "hits": each * clicks[shown]}).groupby(keys).sum())
    table = pd.concat(found).groupby(level=0).sum()
    pair, slot = np.divmod(table.index, starts[-1])
    return table.assign(pair=pair, slot=slot, position=np.searchsorted(starts, slot, side="right"))


def fit_factors(
    pair: Ints, slot: Ints, shown: Counts, hits: Counts, *, n_pairs: int, n_slots: int, **settings: Any
) -> Fitted:
    """Return attraction by pair, then examination by slot, as ``maximised`` returns them.

    Parameters
    ----------
    pair, slot, shown, hits : array of shape (n_cells,)
        The pair and slot of each cell as codes, how often it was shown, and how often clicked.
    n_pairs, n_slots : int
        Number of pairs and of slots.
    **settings
        Of ``maximised``: prior, tolerance, max_iter.
    """
    codes, size = np.stack([pair, n_pairs + slot]), n_pairs + n_slots
    trials = np.bincount(codes.ravel(), np.tile(shown, 2), size)

    def step(values: Floats) -> tuple[Counts, Counts, float]:
        factors = values[codes]
        chance = factors.prod(axis=0)
        # Of the items without a click, a share was attractive but not examined, or examined but not attractive: one
        # factor came true, and the other did not.
        skipped = (shown - hits) / np.maximum(1 - chance, TINY)
        expected = hits + skipped * (factors - chance)
        return np.bincount(codes.ravel(), expected.ravel(), size), trials, log_binomial(hits, shown, chance)

    return maximised(step, size, **settings)
