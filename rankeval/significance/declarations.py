"""The form in which a significance test and a correction are declared, and the settings that all of them take.

A test is a function of ``(d, settings)``: ``d`` is a matrix of shape ``(n_queries, n_pairs)``, one
column of per-query differences (system minus baseline) for each pair of systems. The function
returns a p-value and confidence limits for each column. Everything else that is said about the test
(its name in results, its notes, whether a seed matters, the smallest p-value it can give) is read
from its declaration. The declaration stands below the function, and is all that a new test takes.

What a comparison sets out to show, its claim, is declared here too. A claim other than "difference"
is about the *gain* of a system: its difference from the baseline, turned so that positive is
better. The claim is shown if each of its one-sided hypotheses is::

    claim         shown if                      hypotheses
    better        gain > margin                 gain is greater than margin
    not_worse     gain > -margin                gain is greater than -margin
    equivalent    -margin < gain < margin       gain is greater than -margin, gain is less than margin

so the p-value is the largest of theirs (intersection-union test, Berger 1982,
doi:10.1080/00401706.1982.10487790), and each finite end of the interval belongs to one of them, at
the level of the test. For "equivalent" that is the two one-sided tests procedure (TOST) of
Schuirmann (1987), doi:10.1007/BF01068419, and a 1 - 2 alpha interval.

Differences are moved by the margin before they are tested, so every paired test knows all claims.

**Absence of harm and queries that nobody saw.** A change that breaks one query in fifty leaves 36 %
of samples of 50 queries unbroken, and the differences of such a sample vary little or not at all:
Student's t and the sign flips then rule out any loss. So "not_worse" and "equivalent" are tested
over the n differences and one query more, which lost (for the other side of "equivalent": gained)
all that a query can. And no p-value is below the chance that n queries show nothing of a breakage
as large as the margin, ``(1 - margin / loss) ** n``: at small levels one query would not do.
`tests/calibration` has the error rates.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._arguments import explained
from rankeval._checks import check_alpha, check_count, check_number, plural, require
from rankeval._display import Displayed, View
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.errors import InvalidInput

Side = Literal["greater", "less"]


@explained
@dataclass(frozen=True, kw_only=True)
class Claim:
    """What is to be shown of a gain.

    Attributes
    ----------
    words : str
        What is shown, in help and headers.
    caption : str
        How it is shown, in captions; may name ``{margin}``. Empty for "difference".
    hypotheses : tuple of (side, int)
        What must be shown: on which side of which multiple of the margin the gain lies. Empty for
        "difference".
    margin : {"none", "optional", "required"}
        Whether a margin other than 0 may or must be given.
    harmless : bool
        Whether absence of harm is claimed, so that unseen queries count.
    verb, adjective, nothing : str
        Words of the headline: "a beats b"; "2 others are shown better"; "No difference was shown".
        The first two are formats of the ``Direction`` of a column, so that it may be "a is faster
        than b".
    """

    words: str
    caption: str = ""
    hypotheses: tuple[tuple[Side, int], ...] = ()
    margin: Literal["none", "optional", "required"] = "required"
    harmless: bool = False
    verb: str = "{0.verb}"
    adjective: str = "{0.better}"
    nothing: str = "No gain was shown"

    @property
    def description(self) -> str:
        """What is shown, by its hypotheses."""
        if not self.hypotheses:
            return "Shown if the difference is not zero."
        shown = [
            f"{side} than {'-margin' if factor < 0 else 'the margin'}" for side, factor in self
        ]
        return f"Shown if the gain is {' and '.join(shown)}."

    @property
    def sides(self) -> int:
        """Number of ends of the interval that are finite, at the level of the test each; 0 for "difference"."""
        return len(self.hypotheses)

    def is_within(
        self, low: NDArray[np.float64], high: NDArray[np.float64], margin: float
    ) -> NDArray[np.bool_]:
        """Return whether an interval of the gain shows the claim; of "difference", whether it excludes 0."""
        if not self.hypotheses:
            return np.asarray((low > 0) | (high < 0))
        shown = [
            low > factor * margin if side == "greater" else high < factor * margin
            for side, factor in self
        ]
        return np.asarray(np.logical_and.reduce(shown))

    def __iter__(self) -> Iterator[tuple[Side, int]]:
        return iter(self.hypotheses)


@dataclass(frozen=True)
class Unseen:
    """The queries that nobody saw, as a claim of no harm counts them."""

    count: int  # How many are added to those seen
    loss: NDArray[np.float64]  # (n_pairs,): What each of them lost, in each column of differences
    seen: NDArray[np.float64]  # (n_pairs,): Number of queries seen in each column

    def part(self, columns: slice | NDArray[np.int64]) -> Unseen:
        """Return those of some columns."""
        return replace(self, loss=self.loss[columns], seen=self.seen[columns])

    def least_p(self, margin: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return the chance that a breakage as large as the margin leaves every query seen whole."""
        return np.asarray(np.clip(1 - margin / self.loss, 0.0, 1.0) ** self.seen)

    def reach(self, alpha: float) -> NDArray[np.float64]:
        """Return the largest mean loss by a breakage that goes unseen with a chance above alpha."""
        return np.asarray(self.loss * (1 - alpha ** (1 / self.seen)))


def unseen_share(n: float, alpha: float) -> float:
    """Return the share of broken queries up to which n queries may well show none: ``1 - alpha ** (1 / n)``.

    If a larger share were broken, n queries drawn at random would all be whole with a chance below
    alpha.
    """
    return float(1 - alpha ** (1 / n))


CLAIMS: dict[str, Claim] = {
    "difference": Claim(words="a difference", margin="none", nothing="No difference was shown"),
    "better": Claim(
        words="a gain above the margin",
        caption="one-sided, to show a gain above {margin:g}",
        hypotheses=(("greater", 1),),
        margin="optional",
    ),
    "not_worse": Claim(
        words="a gain, or a loss smaller than the margin",
        caption="one-sided, to show that no loss reaches {margin:g}",
        hypotheses=(("greater", -1),),
        harmless=True,
        verb="is not {0.worse} than",
        adjective="not {0.worse}",
        nothing="Non-inferiority was not shown",
    ),
    "equivalent": Claim(
        words="neither a gain nor a loss as large as the margin",
        caption="two one-sided tests, to show that neither gain nor loss reaches {margin:g}",
        hypotheses=(("greater", -1), ("less", 1)),
        harmless=True,
        verb="is equivalent to",
        adjective="equivalent",
        nothing="Equivalence was not shown",
    ),
}
"""Name -> claim."""


def refuse_undirected(claim: str, baseline: str | None) -> None:
    """Raise `InvalidInput` for a claim that has a direction, if all pairs are compared."""
    if baseline is None and CLAIMS[claim].sides == 1:
        raise InvalidInput(
            f'claim="{claim}" has a direction, and a pair without a baseline has none: name the system that the others '
            "are compared with by baseline= (--baseline on the command line)"
        )


Floats = NDArray[np.float64]
Rng = int | np.random.Generator | None
Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES = ("two-sided", "greater", "less")
ClaimName = Literal["difference", "better", "not_worse", "equivalent"]

_MOST_RESAMPLES = 100_000_000
"""Hours of work; more would not end."""

_UNIT = re.compile(
    r"(?=.{1,30}$)[^\W\d_]+([ -][^\W\d_]+)*(?<![^sui]s)"
)  # "users" and "queries" are plurals
_NOUN = (
    "a noun in the singular, such as 'user' or 'page view': letters, blanks and hyphens, 30 at most"
)


def is_noun(text: Any) -> bool:
    """Say whether sentences can name a unit by a text."""
    return isinstance(text, str) and _UNIT.fullmatch(text) is not None


@explained
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
        What is to be shown, a key of ``claims.CLAIMS``. Claims other than "difference" read the
        columns as gains, positive if the system is better, and set the side of the test themselves.
    margin : float
        Of the claim, in units of the measure.
    unseen : int
        Number of queries that claims of no harm add to those seen; they lost all that a query can
        lose.
    family_alpha : float, optional
        1 less the level of a second interval of each column, which belongs to adjusted p-values.
    unit : str
        The noun, in the singular, for a row of differences in notes and sentences.

    Raises
    ------
    InvalidInput
        An alpha outside (0, .5], a number of resamples that is not a whole number of 1 or more, a
        margin that does not go with the claim, a one-sided alternative besides a claim, or a unit
        that is no such noun.
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
    unit: str = "query"

    def __post_init__(self) -> None:
        check_count("unseen", self.unseen, least=0)
        check_claim(self.claim, self.margin, self.alternative)
        check_alpha(self.alpha)
        object.__setattr__(self, "alpha", float(self.alpha))  # SciPy takes no Fraction
        check_count("n_resamples", self.n_resamples)
        require(
            self.n_resamples <= _MOST_RESAMPLES,
            "n_resamples",
            self.n_resamples,
            f"{_MOST_RESAMPLES:,} at most",
        )
        require(is_noun(self.unit), "unit", self.unit, _NOUN)

    @property
    def units(self) -> str:
        """The plural of the unit."""
        return plural(self.unit)

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
        return replace(
            self, alternative=side, claim="difference", margin=0.0, rng=seed_of(self.rng)
        )

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


@explained
@escaping
@dataclass(frozen=True, repr=False)
class PairedResult(Displayed):
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
        The ends of the second interval, if the settings ask for one. A test may leave it out: it is
        then asked again.
    """

    p_value: Any
    ci_low: Any
    ci_high: Any
    notes: tuple[str, ...] = ()
    family: tuple[Any, Any] | None = None

    def _view(self) -> View:
        columns = map(np.atleast_1d, (self.p_value, self.ci_low, self.ci_high))
        rows = list(zip(*columns, strict=True))
        pairs = [f"p = {p:.4g}, interval {low:.4g} to {high:.4g}" for p, low, high in rows[:10]]
        more = [f"... {len(rows) - 10} more pairs"] if len(rows) > 10 else []
        return View([*pairs, *more], notes=self.notes)

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


def joined(
    parts: Sequence[PairedResult], join: Callable[..., Floats] = np.concatenate
) -> PairedResult:
    """Join the results of blocks of columns, array by array; the notes are those of the first."""
    arrays = [(part.p_value, part.ci_low, part.ci_high, *(part.family or ())) for part in parts]
    p_value, low, high, *ends = map(join, zip(*arrays, strict=True))
    family = (ends[0], ends[1]) if ends else None
    return PairedResult(p_value, low, high, parts[0].notes, family)


def one_pattern(n: int, settings: Settings) -> float:
    """Return the p-value of one sign pattern among all 2^n, once per side."""
    return float(settings.sides * 0.5**n)


def one_resample(_n: int, settings: Settings) -> float:
    """Return the p-value if no resample reaches the observed value."""
    return 1 / (settings.n_resamples + 1)


@explained
@dataclass(frozen=True, kw_only=True)
class _Declaration:
    """The fields that tests and corrections share."""

    words: str  # Name in captions and notes
    function: Callable[..., Any]  # Computes it; its docstring is the documentation
    # The seed matters for more queries than this: 0 if resamples are always drawn, infinite if
    # never.
    random_beyond: float = math.inf
    # ``floor(n_queries, settings)``: the smallest p-value that any data can lead to.
    floor: Callable[[int, Settings], float] = lambda *_: 0.0
    # A warning that belongs to every result; may name ``{size}``, the number of comparisons in a
    # family.
    note: str = ""
    # Whether the function takes `pairs.Pairs` too, of which it makes differences some at a time. A
    # test that does not is called with a block of columns at a time; a correction, with all
    # differences of the family.
    takes_pairs: bool = False

    @property
    def resamples(self) -> bool:
        """Whether ``n_resamples`` and ``rng`` have a part in the result."""
        return self.random_beyond < math.inf

    @property
    def description(self) -> str:
        """The docstring of the function."""
        return inspect.getdoc(self.function) or ""

    def is_random(self, n_queries: int) -> bool:
        """Whether the result depends on the seed, for so many queries."""
        return n_queries > self.random_beyond


@explained
@dataclass(frozen=True, kw_only=True)
class SignificanceTest(_Declaration):
    """A paired significance test: one of these in ``TESTS`` is all that a new test takes.

    Attributes
    ----------
    function : callable
        ``function(d, settings)``, d of shape (n_queries, n_pairs); returns a `PairedResult` of
        arrays. The open end of a one-sided interval may have any value: ``running.run`` makes it
        infinite.
    needs_variance : bool
        The function is not defined for differences that are the same on every query: such columns
        are replaced before it is called, and get the p-value of the sign flips.
    power_of_t : bool
        Whether its power is that of Student's t within .01, so that a detectable difference can be
        computed. For other tests none is given: with ranks or signs it depends on more than the
        mean difference.
    weighted : callable, optional
        ``weighted(d, settings, weights)``: the same test of the weighted mean, weights of shape
        (n_queries,) above 0. Without it, weighted queries are refused.
    liberal : str
        Rates of false claims on few queries, if they are far above the level: they become a note
        and a warning. May name ``{units}``, the noun for the rows of differences.
    """

    function: Callable[..., PairedResult]
    weighted: Callable[..., PairedResult] | None = None
    needs_variance: bool = False
    power_of_t: bool = False
    liberal: str = ""


@explained
@dataclass(frozen=True, kw_only=True)
class Correction(_Declaration):
    """A correction for many comparisons: one of these in ``CORRECTIONS`` is all that a new one takes.

    Attributes
    ----------
    function : callable
        Returns adjusted p-values, from the data that ``needs`` names.
    needs : {"p_values", "differences", "scores"}
        The arguments of the function. "p_values": ``(p)``. "differences": ``(d, settings)``, the
        differences of the family. "scores": ``(scores, pairs, settings)``, the scores of shape
        (n_queries, n_systems, n_measures) and the places of baseline and system in each pair;
        returns a `PairedResult` of arrays (n_pairs, n_measures).
    familywise : bool
        Whether the chance of *any* false claim in the family is controlled: its hardest comparison
        is then tested at the level divided by the size of the family, or at that level at least.
    all_pairs_only : bool
        Whether it takes neither a baseline, nor a one-sided alternative, nor a claim but
        "difference".
    own_test : str
        Name of the test that the adjusted p-values come from, if they are not made of the raw ones.
    interval_level : callable, optional
        ``interval_level(alpha, size)``: the adjusted interval of each comparison is the test's at
        this level.
    limits : callable, optional
        For corrections of differences, instead: takes the arguments of the function, and returns
        lower and upper ends. Without either, a correction of p-values or differences has no
        adjusted intervals: their ends are nan.
    """

    needs: Literal["p_values", "differences", "scores"] = "p_values"
    familywise: bool = True
    all_pairs_only: bool = False
    own_test: str = ""
    interval_level: Callable[[float, int], float] | None = None
    limits: Callable[..., tuple[Floats, Floats]] | None = None

    @property
    def is_joint(self) -> bool:
        """Whether p-values are computed for the whole family from the data, not from raw p-values."""
        return self.needs != "p_values"


TESTS: dict[str, SignificanceTest] = {}
"""Name -> paired test over queries; each is declared below its function."""

FOLD_TESTS: dict[str, SignificanceTest] = {}
"""Name -> test over folds, run on the differences that `paired.widened` returns."""

CORRECTIONS: dict[str, Correction] = {}
"""Name -> correction for many comparisons; each is declared below its function."""


def all_tests() -> dict[str, SignificanceTest]:
    """Return the tests over queries and those over folds."""
    return TESTS | FOLD_TESTS


def corrections_of_p_values() -> dict[str, Correction]:
    """Return the corrections that need nothing but p-values."""
    return {name: correction for name, correction in CORRECTIONS.items() if not correction.is_joint}


def check_claim(claim: str, margin: float, alternative: str = "two-sided") -> None:
    """Raise unless there are such a claim and such an alternative, and the margin goes with them."""
    chosen("alternative", alternative, ALTERNATIVES)
    declared = CLAIMS[chosen("claim", claim, CLAIMS)]
    check_number("margin", margin)
    fits, expected = {
        "none": (margin == 0, 'no margin: use claim="better", "not_worse" or "equivalent"'),
        "optional": (margin >= 0, "0 or more, in units of the measure"),
        "required": (margin > 0, "a margin above 0, in units of the measure"),
    }[declared.margin]
    if not fits:
        raise InvalidInput(
            argument="margin", found=f'{margin} for claim="{claim}"', expected=expected
        )
    if declared.hypotheses and alternative != "two-sided":
        raise InvalidInput(
            f'alternative={alternative!r} does not go with claim="{claim}", which sets the side of the test itself',
            remedy="leave alternative out",
        )


def seed_of(rng: Any) -> int:
    """Return a whole number as it is; draw a seed from a generator, or from the system's entropy for None."""
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return int(rng)
    expected = "a seed (a whole number, 0 or greater), a Generator or None"
    require(rng is None or isinstance(rng, np.random.Generator), "rng", rng, expected)
    return int(np.random.default_rng(rng).integers(2**31))


def generator_of(rng: Any) -> np.random.Generator:
    """Return a generator as it is, and make one of a seed; raises as `seed_of` does."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(seed_of(rng))
