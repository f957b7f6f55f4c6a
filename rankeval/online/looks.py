"""Look at an A/B test several times: bounds for planned looks, intervals for looks at any time.

Whoever tests at .05 at each of 20 looks claims a difference between equal arms in about a quarter
of the tests. Two ways keep the promised rate. A plan of looks spends alpha over the looks, little
at first: nearly the power of one look at the end. A confidence sequence is valid at each look,
planned or not, and is wider.

::

    share of the users    .2     .4     .6     .8     1
    alpha spent           .0000  .0008  .0076  .0244  .0500     Lan-DeMets, O'Brien-Fleming's form
    bound of abs(z)       4.877  3.357  2.680  2.290  2.031

The bounds follow from a recursion: the score at a look is the score at the look before, if it
stayed within its bound, plus an independent normal increment. The density of the scores within the
bound is kept at the nodes of a Gaussian quadrature. The trap: nodes have to stand closer than the
standard deviation of the increments, also of the next one, which is small if two looks are close.
So there are as many panels of 32 nodes as that takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from rankeval._arguments import explained
from rankeval._checks import check_alpha, check_count, check_number, count, require, whole_number
from rankeval._display import Displayed, View
from rankeval._registry import chosen
from rankeval.io.columns import labels
from rankeval.render.tables import Table

Floats = NDArray[np.float64]

SPENDING: dict[str, Callable[[Floats, float], Floats]] = {
    "obrien_fleming": lambda share, alpha: 4 * ndtr(ndtri(alpha / 4) / np.sqrt(share)),
    "pocock": lambda share, alpha: alpha * np.log1p((math.e - 1) * share),
}
"""Name -> the alpha that is spent up to a share of the users."""

FARTHEST = 12.0
"""Standard deviations from 0 beyond which no density is left to keep."""

MOST_LOOKS = 1000
"""The recursion over so many takes seconds, and over more, minutes."""

_MOST_STEPS = 30_000_000
"""From each node of a look to each of the next, in memory."""

LEAST_P, MOST_P = 1e-12, 0.999
"""Between these a p-value over looks is solved for; above, it is 1."""


@explained
@dataclass(frozen=True, eq=False, repr=False)
class LooksPlan(Displayed):
    """The looks at a test: when, and how far z has to be from 0 for a claim.

    Attributes
    ----------
    shares : tuple of float
        The share of all planned users that has arrived at each look; the last is 1.
    bounds : ndarray of float, shape (n_looks,)
        The bound of abs(z) at each look.
    spending : {"obrien_fleming", "pocock"}
        How alpha is spent over the looks.
    alpha : float
        The chance to pass any bound if there is no difference.
    """

    shares: tuple[float, ...]
    bounds: Floats
    spending: str
    alpha: float

    def _view(self) -> View:
        looks = count(len(self.shares), "look")
        sentence = f"{looks} at alpha {self.alpha:g}, spent as {self.spending}"
        rows = enumerate(zip(self.shares, self.bounds, strict=True), start=1)
        cells = [(str(look), share, bound) for look, (share, bound) in rows]
        frame = pd.DataFrame(cells, columns=["look", "share", "bound"])
        return View([sentence], [Table(frame, numeric=["look"])])

    def p_value(self, z: float, look: int) -> float:
        """Return the least alpha at which this plan claims a difference at a look, for a z-value there.

        It is valid at all looks at once: at equal arms the chance that it is ever at most alpha is
        alpha (the repeated p-value of Jennison and Turnbull, 1999, chapter 9).

        Parameters
        ----------
        z : float
            The estimate divided by its standard error.
        look : int
            The look, from 1.

        Raises
        ------
        InvalidInput
            If the plan has no such look.

        Examples
        --------
        >>> round(looks_plan(5).p_value(2.6803, look=3), 4)
        0.05
        """
        look = self.checked(look)
        require(not math.isnan(z := float(labels([z], "z")[0])), "z", z, "a number")

        def room(log_alpha: float) -> float:
            return float(_bounds(self.shares[:look], self.spending, math.exp(log_alpha))[-1]) - abs(
                z
            )

        least, most = math.log(LEAST_P), math.log(MOST_P)
        if room(least) <= 0 or room(most) >= 0:
            return LEAST_P if room(least) <= 0 else 1.0
        return math.exp(brentq(room, least, most, xtol=1e-6))

    def checked(self, look: Any) -> int:
        """Return a look; refuse one that was not planned."""
        check_count("look", look)
        planned = f"a look from 1 to {len(self.shares)}: no more were planned, and more would make more false claims"
        require(look <= len(self.shares), "look", look, planned)
        return int(look)


@explained
def looks_plan(
    shares: int | Sequence[float], *, spending: str = "obrien_fleming", alpha: float = 0.05
) -> LooksPlan:
    """Plan the looks at an A/B test, and return the bound of abs(z) at each.

    Parameters
    ----------
    shares : int or sequence of float
        The number of equally spaced looks, up to 1,000; or the share of all planned users at each
        look, ascending, the last one 1. If the looks come at other shares than planned, make the
        plan anew with the shares so far and those to come: the bounds of past looks do not depend
        on later ones. Looks by days may be planned as equally spaced ones, whenever the users come.
    spending : {"obrien_fleming", "pocock"}, default "obrien_fleming"
        "obrien_fleming": at first claims are nearly impossible, and the last bound is near that of
        a single look. "pocock": about equal bounds at all looks, for tests that should end early.
    alpha : float, default 0.05
        The chance of a claim at any look if there is no difference.

    Returns
    -------
    LooksPlan
        Its ``bounds`` are for two-sided tests. Give it to `ab_test` as ``looks=``.

    Raises
    ------
    InvalidInput
        If shares do not ascend to 1, there are more looks or closer ones than can be computed, or
        alpha is not a level.
    UnknownName
        If there is no such spending.

    Notes
    -----
    Alpha spent up to the share t is ``4 - 4 Phi(z(alpha / 4) / sqrt(t))`` in the form of O'Brien and Fleming, with z(p)
    the upper p-quantile of the normal distribution, and ``alpha log(1 + (e - 1) t)`` in that of Pocock (Lan and DeMets,
    Biometrika 1983). This is the two-sided form: some programs spend alpha / 2 on each side and have slightly other
    bounds. The chance to stay within the bounds follows by the recursion of Armitage, McPherson and Rowe (1969).

    Examples
    --------
    >>> looks_plan(5).bounds.round(4).tolist()
    [4.8769, 3.357, 2.6803, 2.2898, 2.031]
    >>> looks_plan([0.5, 1], spending="pocock").bounds.round(3).tolist()
    [2.157, 2.201]
    """
    check_alpha(alpha)
    chosen("spending", spending, SPENDING)
    number = whole_number(shares)
    expected = f"a number of looks up to {MOST_LOOKS:,}, or shares above 0 that ascend to 1"
    require(number is None or 1 <= number <= MOST_LOOKS, "shares", shares, expected)
    places: Any = shares
    if number is not None:
        places = [look / number for look in range(1, number + 1)]
    try:
        at = np.array(places, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        at = np.empty(0)
    is_row = at.ndim == 1 and 0 < at.size <= MOST_LOOKS
    fits = is_row and at[0] > 0 and abs(at[-1] - 1) < 1e-9 and (np.diff(at) > 0).all()
    require(fits, "shares", shares, expected)
    at /= at[-1]
    return LooksPlan(tuple(at.tolist()), _bounds(at, spending, alpha), spending, alpha)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def _missing(score: float, places: Floats, masses: Floats, deviation: float, spend: float) -> float:
    """Return the logarithm of the chance to go beyond a score, less that of the alpha to spend."""
    beyond = 2 * masses @ ndtr((places - score) / deviation)
    return math.log(beyond + 1e-307) - math.log(spend)


def _bounds(shares: Sequence[float] | Floats, spending: str, alpha: float) -> Floats:
    """Return the bounds that spend alpha; the recursion goes on with the scores within."""
    at = np.asarray(shares, dtype=np.float64)
    # Of tiny shares nothing can be spent: 1e-300 is the least that a bound can be solved for, about
    # 37.
    spends = np.maximum(np.diff(SPENDING[spending](at, alpha), prepend=0.0), 1e-300)
    deviations = np.sqrt(np.diff(at, prepend=0.0))
    # After the last look nothing goes on.
    finest = np.append(np.minimum(deviations[:-1], deviations[1:]), np.inf)
    places, masses, bounds = np.zeros(1), np.ones(1), np.empty(len(at))
    for look, (spend, deviation) in enumerate(zip(spends, deviations, strict=True)):
        root = math.sqrt(at[look])
        args = (places, masses, deviation, spend)
        bounds[look] = brentq(_missing, 0.0, 40.0 * root, args=args, xtol=1e-13) / root
        reach = min(bounds[look], FARTHEST) * root
        panels = 1 + int(reach / finest[look] / 4)
        n_steps = len(_NODES) * panels * len(places)
        apart = "looks that are not so close to each other"
        require(n_steps <= _MOST_STEPS, "shares", at.tolist(), apart)
        nodes = reach / panels * np.add.outer(2 * np.arange(panels) + 1 - panels, _NODES).ravel()
        steps = (nodes[:, None] - places) / deviation
        masses = np.exp(-(steps**2) / 2) @ masses / (deviation * math.sqrt(2 * math.pi))
        masses, places = masses * np.tile(_WEIGHTS, panels) * reach / panels, nodes
    return bounds


@explained
def confidence_sequence(
    estimate: ArrayLike,
    standard_error: ArrayLike,
    n: ArrayLike,
    *,
    best_at: float,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Return intervals that are valid at all looks together, planned or not.

    Parameters
    ----------
    estimate, standard_error : array-like of float, shape (n_looks,)
        The difference of the arms at each look, and its standard error: columns of
        ``ab_test(...).table``.
    n : array-like of int, shape (n_looks,)
        The users up to each look.
    best_at : float
        The number of users at which the interval is to be narrow, chosen before the test: usually
        that of its end.
    alpha : float, default 0.05
        The chance that any of the intervals, at however many looks, misses the true value.

    Returns
    -------
    DataFrame
        Columns n, estimate, ci_low, ci_high and p_value: the least alpha at which the interval
        excludes 0.

    Raises
    ------
    InvalidInput
        If there is no look, numbers of looks differ, a number is not finite, a number of users, a
        standard error or ``best_at`` is not above 0, or alpha is not a level.

    Notes
    -----
    The half width is ``se sqrt((1 + 1 / m) log((m + 1) / alpha^2))`` with ``m = n rho^2``: the normal mixture of
    Robbins (1970), as an asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Annals of
    Statistics 2024, section 2; Howard, Ramdas, McAuliffe and Sekhon, Annals of Statistics 2021). The constant
    ``rho^2 = (log(1 / alpha^2) + log(1 + log(1 / alpha^2))) / best_at`` makes it narrowest at about ``best_at``.

    Asymptotic means: the error is estimated, and the mean is only nearly normal. So the guarantee
    is better the more users the first look has, and void for a few users. It covers means, ratios
    of means and CUPED, as long as the shares of the arms stay the same.

    Examples
    --------
    >>> looks = confidence_sequence([0.2, 0.2], [0.1, 0.05], [1000, 4000], best_at=4000)
    >>> looks.round(3)
          n  estimate  ci_low  ci_high  p_value
    0  1000       0.2  -0.126    0.526    0.457
    1  4000       0.2   0.048    0.352    0.002
    """
    check_alpha(alpha)
    columns = {"estimate": estimate, "standard_error": standard_error, "n": n, "best_at": best_at}
    check_number("best_at", best_at)
    columns |= {"best_at": [best_at]}
    numbers = {name: labels(values, name).astype(np.float64) for name, values in columns.items()}
    middle, error, users, end = numbers.values()
    expected = "finite numbers, one a look, and above 0 but for estimates"
    for name, values in numbers.items():
        fits = np.isfinite(values).all() and (name == "estimate" or (values > 0).all())
        n_looks = 1 if name == "best_at" else max(1, middle.size)
        require(fits and values.shape == (n_looks,), name, values.tolist(), expected)
    surprise = -2 * math.log(alpha)
    mixed = users * (surprise + math.log1p(surprise)) / end
    half = error * np.sqrt((1 + 1 / mixed) * (np.log1p(mixed) + surprise))
    exponent = -((middle / error) ** 2) * mixed / (2 * (mixed + 1))
    p_value = np.sqrt(mixed + 1) * np.exp(exponent)
    ends = {"estimate": middle, "ci_low": middle - half, "ci_high": middle + half}
    return pd.DataFrame({"n": np.asarray(n), **ends, "p_value": np.minimum(p_value, 1.0)})
