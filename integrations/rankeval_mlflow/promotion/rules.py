"""The rule by which a candidate takes the place of the version in use, and the decision on two evaluations.

No store is asked here: two evaluations go in, and a verdict comes out. The numbers are those of `rankeval.compare`:

* the claim, over all queries: "better" or "not worse" by the margin, one-sided at alpha;
* the floors, slice by slice: "not worse" by the floor of the slice, one-sided at alpha.

The candidate is accepted if all of them are shown. Nothing is corrected for their number, since each must be shown: a
candidate for which one of them is false is accepted with probability alpha or less, as nearly as the test holds its
level (intersection-union test: Berger, 1982, doi:10.1080/00401706.1982.10487790).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from rankeval._checks import check_number, check_share, few, shown
from rankeval.comparison import Comparison, compare
from rankeval.errors import InvalidInput
from rankeval_mlflow.promotion.floors import Floors, floors_by_slice, tested_floors

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.evaluation import Evaluation

OneSided = Literal["better", "not_worse"]

CLAIMS = ("better", "not_worse")
"""What a promotion can ask for: claims with one side."""


@dataclass(frozen=True)
class Rule:
    """What must be shown of a candidate.

    Attributes
    ----------
    measure : str
        The measure that decides.
    claim : {"better", "not_worse"}
        The claim over all queries.
    margin : float
        Of the claim, in units of the measure.
    alpha : float
        One-sided level of each test.
    test : str
        Name of the test, as in `rankeval.compare`.
    slices : Series, mapping, DataFrame, array or str, optional
        An attribute of the queries, as in `Evaluation.slices`.
    floors : float or mapping of value to float, optional
        The loss that must be ruled out on each slice, or on those named.
    """

    measure: str
    claim: OneSided = "better"
    margin: float = 0.0
    alpha: float = 0.025
    test: str = "t"
    slices: Any = None
    floors: Floors | None = None

    def __post_init__(self) -> None:
        if self.claim not in CLAIMS:
            raise InvalidInput(f"claim is {shown(self.claim)}; a promotion asks for {' or '.join(map(repr, CLAIMS))}")
        check_number("margin", self.margin)
        if self.margin < 0 or (self.claim == "not_worse" and self.margin == 0):
            least = "0 or more" if self.claim == "better" else "greater than 0: nothing shows equality"
            raise InvalidInput(f"margin is {shown(self.margin)}; expected a number in units of the measure, {least}")
        check_share("alpha", self.alpha)
        if self.alpha >= 0.25:
            raise InvalidInput(f"alpha is {shown(self.alpha)}; expected a one-sided level below 0.25, such as 0.025")
        _ = self.floors_by_slice  # raises for floors that are none

    @cached_property
    def floors_by_slice(self) -> dict[str, float]:
        """The floors by the text of their value; one for all slices stands under "all"."""
        return floors_by_slice(self.floors, self.slices)

    @property
    def options(self) -> dict[str, Any]:
        """The options of `rankeval.compare` that the claim and the floors share."""
        return {
            "measures": self.measure,
            "test": self.test,
            "correction": "none",
            "confidence_level": 1 - self.alpha,
        }


@dataclass(frozen=True, eq=False)
class Verdict:
    """What was decided on a candidate, and the numbers behind it.

    Attributes
    ----------
    accepted : bool
        Whether the claim, and all floors, were shown.
    comparison : Comparison
        The candidate against the version in use.
    floors : DataFrame or None
        A row per slice with a floor: slice, n_queries, mean_holder, mean_candidate, gain, gain_low (its one-sided
        lower limit), floor, p_value, passes_if_equal (the floor that an equal candidate passes four times in five; nan
        for tests whose power is not that of Student's t) and passed.
    claimed : bool
        Whether the claim over all queries was shown.
    """

    accepted: bool
    comparison: Comparison
    floors: pd.DataFrame | None
    claimed: bool

    @cached_property
    def reason(self) -> str:
        """The verdict in a sentence or two; a claim that is shown may still fail by a floor."""
        headline = self.comparison.headline
        failed = [] if self.floors is None else self.floors["slice"][~self.floors["passed"]].tolist()
        if not failed:
            return headline
        slices = f"slice {failed[0]!r}" if len(failed) == 1 else f"slices {few(failed)}"
        floor = "its floor" if len(failed) == 1 else "their floors"
        return f"{headline} {'But' if self.claimed else 'And'} a loss of {floor} is not ruled out on {slices}."


def decide(
    candidate: Evaluation, holder: Evaluation, rule: Rule, names: tuple[str, str] = ("candidate", "holder")
) -> Verdict:
    """Decide whether a candidate takes the place of the version in use.

    Parameters
    ----------
    candidate, holder : Evaluation
        The two versions on the same test content.
    rule : Rule
        What must be shown.
    names : tuple of str
        Their names, for tables and sentences.

    Returns
    -------
    Verdict

    Raises
    ------
    ConventionMismatch, QueryIdError
        If the two were not evaluated on the same content by the same rules.
    InvalidInput
        If slices do not fit, or a slice with a floor has too few queries.
    UnknownName
        If an evaluation lacks the measure, a floor is for no slice, or there is no such test.
    """
    systems = {names[1]: holder, names[0]: candidate}
    compared = compare(systems, baseline=names[1], claim=rule.claim, margin=rule.margin, **rule.options)
    if len(compared.table) > 1:
        several = ", ".join(compared.table["measure"])
        raise InvalidInput(f"measure is {str(rule.measure)!r}, which names several ({several}): one decides")
    claimed, floors = bool(compared.shown.all()), None
    if rule.floors_by_slice:
        floors = tested_floors(systems, names[1], rule.slices, rule.floors_by_slice, rule.options)
    accepted = claimed and (floors is None or bool(floors["passed"].all()))
    return Verdict(accepted, compared, floors, claimed)
