"""The form in which a significance test and a correction are declared, and the settings that all of them take.

A test is a function of ``(d, settings)``: ``d`` is a matrix of shape ``(n_queries, n_pairs)``, one column of per-query
differences (system minus baseline) for each pair of systems. The function returns a p-value and confidence limits for
each column. Everything else that is said about the test (its name in results, its notes, whether a seed matters, the
smallest p-value it can give) is read from its declaration. `registry` holds the declarations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import check_alpha, check_count, check_number, shown
from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.significance.claims import CLAIMS
from rankeval.significance.rates import rates_of

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Rng = int | np.random.Generator | None
Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES = ("two-sided", "greater", "less")
ClaimName = Literal["difference", "better", "not_worse", "equivalent"]

_MOST_RESAMPLES = 100_000_000
"""Hours of work; more would not end."""


@dataclass(frozen=True)
class Settings:
    """The options of a test or a correction.

    Attributes
    ----------
    alternative : {"two-sided", "greater", "less"}
        "greater": the system has the greater mean.
    alpha : float
        Level of the tests; the intervals have the level 1 - alpha.
    n_resamples : int
        For tests that draw resamples.
    rng : int, Generator or None
        Source of the resamples.
    claim : {"difference", "better", "not_worse", "equivalent"}
        What is to be shown, a key of ``claims.CLAIMS``. Claims other than "difference" read the columns as gains,
        positive if the system is better, and set the side of the test themselves.
    margin : float
        Of the claim, in units of the measure.
    unseen : int
        Number of queries that claims of no harm add to those seen; they lost all that a query can lose.
    family_alpha : float, optional
        1 less the level of a second interval of each column, which belongs to adjusted p-values.

    Raises
    ------
    InvalidInput
        An alpha outside (0, .5], a number of resamples that is not a whole number of 1 or more, a margin
        that does not go with the claim, or a one-sided alternative besides a claim.
    UnknownName
        There is no such alternative or claim.
    """

    alternative: Alternative = "two-sided"
    alpha: float = 0.05
    n_resamples: int = 9999
    rng: Rng = None
    claim: ClaimName = "difference"
    margin: float = 0.0
    unseen: int = 0
    family_alpha: float | None = None

    def __post_init__(self) -> None:
        check_count("unseen", self.unseen, least=0)
        check_alternative(self.alternative)
        check_claim(self.claim, self.margin, self.alternative)
        check_alpha(self.alpha)
        object.__setattr__(self, "alpha", float(self.alpha))  # SciPy takes no Fraction
        _check_resamples(self.n_resamples)

    @property
    def confidence_level(self) -> float:
        """Level of the interval, 1 less alpha."""
        return 1 - self.alpha

    @property
    def of_family(self) -> Settings | None:
        """The settings of the second interval, if one is asked for."""
        if self.family_alpha is None:
            return None
        return replace(self, alpha=self.family_alpha, family_alpha=None)

    @property
    def sides(self) -> int:
        """Number of tails that speak against the null: 2 or 1."""
        return 2 if self.alternative == "two-sided" else 1

    @property
    def tail(self) -> float:
        """Probability left outside the interval at each of its finite ends."""
        return (1 - self.confidence_level) / self.sides

    @property
    def n_unseen(self) -> int:
        """Number of unseen queries that the claim counts."""
        return self.unseen if CLAIMS[self.claim].harmless else 0

    def of_side(self, side: Alternative) -> Settings:
        """Return the settings of one hypothesis of the claim; a seed is drawn, so that all share their resamples."""
        return replace(self, alternative=side, claim="difference", margin=0.0, rng=seed_of(self.rng))

    def evidence(self, statistic: Floats) -> Floats:
        """Return a statistic, its negative or its absolute value: larger then speaks for the alternative."""
        if self.alternative == "two-sided":
            return np.abs(statistic)
        return statistic if self.alternative == "greater" else -statistic

    def p_of_tails(self, greater: ArrayLike, less: ArrayLike) -> Floats:
        """Choose between the p-values of the two one-sided tests; two-sided, double the smaller one."""
        if self.alternative == "two-sided":
            return np.asarray(np.minimum(2 * np.minimum(greater, less), 1.0))
        return np.asarray(greater if self.alternative == "greater" else less)


def most_reaching(alpha: float, total: int) -> int:
    """Return how many of all resamples may reach the observed value where p is at most alpha."""
    return int(alpha * total + 1e-9)  # 499.99999999999994 means 500


@dataclass(frozen=True)
class PairedResult:
    """P-values and intervals: numbers for one column of differences, arrays of shape ``(n_pairs,)`` for a matrix.

    Attributes
    ----------
    p_value : float or ndarray of shape (n_pairs,)
        In (0, 1], never 0.
    ci_low, ci_high : float or ndarray of shape (n_pairs,)
        Confidence interval of the mean difference; one-sided alternatives leave one end infinite.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    family : tuple of (float or ndarray), optional
        The ends of the second interval, if the settings ask for one. A test may leave it out: it is then asked again.
    """

    p_value: Any
    ci_low: Any
    ci_high: Any
    notes: tuple[str, ...] = ()
    family: tuple[Any, Any] | None = None

    @classmethod
    def with_ends(
        cls, p_value: Floats, ends: Callable[[Settings], tuple[Floats, Floats]], settings: Settings
    ) -> PairedResult:
        """Return p-values with their interval, and with the second one if it is asked for.

        Parameters
        ----------
        p_value : ndarray of shape (n_pairs,)
            P-values.
        ends : callable
            Returns the ends of the intervals at the level of some settings.
        settings : Settings
            The settings of the test.
        """
        family = ends(settings.of_family) if settings.of_family else None
        return cls(p_value, *ends(settings), family=family)


def joined(parts: Sequence[PairedResult]) -> PairedResult:
    """Join the results of blocks of columns; the notes are those of the first."""
    p_value, low, high = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("p_value", "ci_low", "ci_high")
    )
    ends = [part.family for part in parts if part.family is not None]
    family = (
        None if not ends else (np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends]))
    )
    return PairedResult(p_value, low, high, parts[0].notes, family)


def no_floor(n: int, settings: Settings) -> float:
    """Return 0: no p-value is too small to be possible."""
    del n, settings
    return 0.0


def one_pattern(n: int, settings: Settings) -> float:
    """Return the p-value of one sign pattern among all 2^n, once per side."""
    return float(settings.sides * 0.5**n)


def one_resample(n: int, settings: Settings) -> float:
    """Return the p-value if no resample reaches the observed value."""
    del n
    return 1 / (settings.n_resamples + 1)


@dataclass(frozen=True, kw_only=True)
class _Declaration:
    """The fields that tests and corrections share.

    Attributes
    ----------
    words : str
        Name in captions and notes.
    random_beyond : float
        The seed matters for more queries than this: 0 if resamples are always drawn, infinite if never.
    floor : callable
        ``floor(n_queries, settings)``: the smallest p-value that any data can lead to.
    note : str
        A warning that belongs to every result; may name ``{size}``, the number of comparisons in a family.
    takes_pairs : bool
        Whether the function takes `pairs.Pairs` too, of which it makes differences some at a time. A test that does not
        is called with a block of columns at a time; a correction, with all differences of the family.
    """

    words: str
    random_beyond: float = math.inf
    floor: Callable[[int, Settings], float] = no_floor
    note: str = ""
    takes_pairs: bool = False

    @property
    def resamples(self) -> bool:
        """Whether ``n_resamples`` and ``rng`` have a part in the result."""
        return self.random_beyond < math.inf

    @property
    def rates(self) -> pd.DataFrame:
        """The measured error rates, one a row; no rows if it was not measured."""
        return rates_of(self.words)

    def is_random(self, n_queries: int) -> bool:
        """Whether the result depends on the seed, for so many queries."""
        return n_queries > self.random_beyond


@dataclass(frozen=True, kw_only=True)
class SignificanceTest(_Declaration):
    """A paired significance test: one of these in ``registry.TESTS`` is all that a new test takes.

    Attributes
    ----------
    function : callable
        ``function(d, settings)``, d of shape (n_queries, n_pairs); returns a `PairedResult` of arrays. The open
        end of a one-sided interval may have any value: ``running.run`` makes it infinite.
    needs_variance : bool
        The function is not defined for differences that are the same on every query: such columns are replaced
        before it is called, and get the p-value of the sign flips.
    power_of_t : bool
        Whether its power is that of Student's t within .01, so that a detectable difference can be told from it. Of
        other tests none is: for those of ranks or signs it depends on more than the mean difference.
    liberal : str
        Rates of false claims on few queries, if they are far above the level: they become a note and a warning.
    """

    function: Callable[..., PairedResult]
    needs_variance: bool = False
    power_of_t: bool = False
    liberal: str = ""


@dataclass(frozen=True, kw_only=True)
class Correction(_Declaration):
    """A correction for many comparisons: one of these in ``registry.CORRECTIONS`` is all that a new one takes.

    Attributes
    ----------
    function : callable
        Returns adjusted p-values, from the data that ``needs`` names.
    needs : {"p_values", "differences", "scores"}
        The arguments of the function. "p_values": ``(p)``. "differences": ``(d, settings)``, the differences of the
        family. "scores": ``(scores, pairs, settings)``, the scores of shape (n_queries, n_systems, n_measures) and
        the places of baseline and system in each pair; returns p-values of shape (n_pairs, n_measures).
    familywise : bool
        Whether the chance of *any* false claim in the family is controlled: its hardest comparison is then tested at
        the level divided by the size of the family, or at that level at least.
    all_pairs_only : bool
        Whether it takes neither a baseline, nor a one-sided alternative, nor a claim but "difference".
    own_test : str
        Name of the test that the adjusted p-values come from, if they are not made of the raw ones.
    interval_level : callable, optional
        ``interval_level(alpha, size)``: the adjusted interval of each comparison is the test's at this level.
    limits : callable, optional
        For joint corrections, instead: takes the arguments of the function, and returns lower and upper ends in the
        shape of its p-values. Without either, the correction has no adjusted intervals: their ends are nan.
    draw : callable, optional
        ``draw(scores, settings)``: for corrections of scores, the resamples that function and limits both read, as
        ``drawn=``.
    """

    function: Callable[..., Floats]
    needs: Literal["p_values", "differences", "scores"] = "p_values"
    familywise: bool = True
    all_pairs_only: bool = False
    own_test: str = ""
    interval_level: Callable[[float, int], float] | None = None
    limits: Callable[..., tuple[Floats, Floats]] | None = None
    draw: Callable[[Floats, Settings], Floats] | None = None

    @property
    def is_joint(self) -> bool:
        """Whether p-values are computed for the whole family from the data, not from raw p-values."""
        return self.needs != "p_values"


def check_alternative(alternative: str) -> Alternative:
    """Return the alternative, or raise `UnknownName` unless it is one of `ALTERNATIVES`."""
    return cast("Alternative", chosen("alternative", alternative, ALTERNATIVES))


def check_claim(claim: str, margin: float, alternative: str = "two-sided") -> ClaimName:
    """Return the claim; raise unless there is such a one, and margin and alternative go with it.

    Parameters
    ----------
    claim : str
        A key of ``claims.CLAIMS``.
    margin : float
        0 or more.
    alternative : str, default "two-sided"
        The only one that goes with a claim other than "difference".

    Raises
    ------
    InvalidInput
        If they do not go together.
    UnknownName
        If there is no such claim.
    """
    declared = CLAIMS[chosen("claim", claim, CLAIMS)]
    check_number("margin", margin)
    if declared.margin == "none" and margin != 0:
        raise InvalidInput(
            f'margin is {margin} for claim="{claim}", which has none; use claim="better", "not_worse" or "equivalent"'
        )
    if margin < 0 or (margin == 0 and declared.margin == "required"):
        least = "above 0" if declared.margin == "required" else "0 or more"
        raise InvalidInput(f'margin is {margin}; claim="{claim}" takes a margin {least}, in units of the measure')
    if declared.hypotheses and alternative != "two-sided":
        raise InvalidInput(
            f'alternative={alternative!r} does not go with claim="{claim}", which sets the side of the test itself',
            remedy="leave alternative out",
        )
    return cast("ClaimName", claim)


def _check_resamples(n_resamples: Any) -> None:
    """Raise `InvalidInput` unless the number of resamples is a whole number from 1 to 100 million."""
    if not isinstance(n_resamples, (int, np.integer)) or isinstance(n_resamples, bool):
        raise InvalidInput(argument="n_resamples", found=shown(n_resamples), expected="a whole number, such as 9999")
    if n_resamples < 1:
        expected = "at least 1, or 9999 to resolve p = 0.0001"
        raise InvalidInput(argument="n_resamples", found=f"{n_resamples}", expected=expected)
    if n_resamples > _MOST_RESAMPLES:
        expected = f"{_MOST_RESAMPLES:,} at most"
        raise InvalidInput(argument="n_resamples", found=shown(n_resamples), expected=expected)


def seed_of(rng: Any) -> int:
    """Return a whole number as it is; draw a seed from a generator, or from the system's entropy for None.

    Parameters
    ----------
    rng : int, Generator or None
        As callers give it.

    Raises
    ------
    InvalidInput
        For anything else.
    """
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return int(rng)
    if rng is not None and not isinstance(rng, np.random.Generator):
        expected = "a seed (a whole number, 0 or greater), a Generator or None"
        raise InvalidInput(argument="rng", found=shown(rng), expected=expected)
    return int(np.random.default_rng(rng).integers(2**31))
