"""The rule by which a candidate takes the place of the version in use, and the decision on two evaluations.

No store is asked here: two evaluations go in, and a verdict comes out. The numbers are those of `rankeval.compare`:

* the claim, over all queries: "better" or "not worse" by the margin, one-sided at alpha;
* the floors, slice by slice: "not worse" by the floor of the slice, one-sided at alpha. A candidate that wins on the
  head queries may lose on the tail. Small slices show little: the table has the floor that an equal candidate passes
  four times in five.

The candidate is accepted if all of them are shown. Nothing is corrected for their number, since each must be shown: a
candidate for which one of them is false is accepted with probability alpha or less, as nearly as the test holds its
level (intersection-union test: Berger, 1982, doi:10.1080/00401706.1982.10487790).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from rankeval._checks import check_number, check_share, few, shown
from rankeval._registry import chosen
from rankeval.comparison import Comparison, compare
from rankeval.comparison.design import LEAST_QUERIES, TOGETHER
from rankeval.comparison.record import directions, gains, part_of_row
from rankeval.errors import InvalidInput

if TYPE_CHECKING:
    from rankeval.evaluation import Evaluation


Floors = float | Mapping[Any, float]

CLAIMS = ("better", "not_worse")
"""What a promotion can ask for: claims with one side."""


def floors_by_slice(floors: Floors | None, slices: Any) -> dict[str, float]:
    """Return the floors by the text of their value; one for all slices stands under "all".

    Parameters
    ----------
    floors : float or mapping of value to float, optional
        The floors.
    slices : object, optional
        The attribute of the queries, which is only asked whether it is there.

    Raises
    ------
    InvalidInput
        If one of the two is missing, or a floor is no number above 0.
    """
    if (slices is None) != (floors is None):
        found, lacking = ("floors", "slices") if slices is None else ("slices", "floors")
        raise InvalidInput(
            f"{found} is given without {lacking}: floors are the losses to rule out on slices of the queries, as in "
            'slices=kind_by_qid, floors={"tail": 0.05}'
        )
    if floors is None:
        return {}
    given = (
        {str(value): floor for value, floor in floors.items()} if isinstance(floors, Mapping) else {TOGETHER: floors}
    )
    if isinstance(floors, Mapping) and len(given) < len(floors):
        raise InvalidInput(f"floors names a slice twice: {list(floors)} are the same as text")
    if not given:
        raise InvalidInput(
            "floors is empty; give a loss for each slice that has a floor, or leave out slices and floors"
        )
    if isinstance(floors, Mapping) and TOGETHER in given:
        raise InvalidInput(f"floors has {TOGETHER!r}, which is no slice: claim= and margin= are about all queries")
    for value, floor in given.items():
        name = f"floors[{value!r}]" if isinstance(floors, Mapping) else "floors"
        check_number(name, floor)
        if floor <= 0:
            raise InvalidInput(argument=name, found=f"{floor}", expected="the smallest loss to rule out, above 0")
    return given


def tested_floors(
    systems: Mapping[str, Evaluation],
    baseline: str,
    slices: Any,
    floors: Mapping[str, float],
    options: Mapping[str, Any],
) -> pd.DataFrame:
    """Test "not worse" on each slice that has a floor: one comparison for all floors of the same size.

    Parameters
    ----------
    systems : mapping of str to Evaluation
        The candidate and the version in use.
    baseline : str
        Which of them is in use.
    slices : object
        The attribute of the queries.
    floors : mapping of str to float
        The result of `floors_by_slice`.
    options : mapping
        Options of `rankeval.compare`.

    Returns
    -------
    DataFrame
        As `Verdict.floors` describes it.
    """
    tables = []
    for floor in dict.fromkeys(floors.values()):
        compared = compare(systems, baseline=baseline, by=slices, claim="not_worse", margin=floor, **options)
        rows = _slice_rows(compared, floor)
        parts = rows["slice"].tolist()
        named = parts if TOGETHER in floors else [chosen("slice", one, parts) for one in floors if floors[one] == floor]
        tables.append(rows[rows["slice"].isin(named)])
    table = pd.concat(tables, ignore_index=True)
    _refuse_small(table)
    return table


def _slice_rows(compared: Comparison, floor: float) -> pd.DataFrame:
    table = compared.table
    low = np.where(directions(compared) > 0, table["ci_low"], -table["ci_high"])
    columns = {
        "slice": part_of_row(compared),
        "n_queries": table["n_queries"],
        "mean_holder": table["mean_baseline"],
        "mean_candidate": table["mean_system"],
        "gain": gains(compared),
        "gain_low": low,
        "floor": floor,
        "p_value": table["p_value"],
        "passes_if_equal": table["detectable_difference"],
        "passed": compared.shown,
    }
    return pd.DataFrame(columns)[(table[compared.settings.grouped] != TOGETHER).to_numpy()]


def _refuse_small(table: pd.DataFrame) -> None:
    small = table[table["n_queries"] < LEAST_QUERIES]
    if len(small):
        found = ", ".join(f"{name!r} ({n})" for name, n in zip(small["slice"], small["n_queries"], strict=True))
        raise InvalidInput(
            f"slices with a floor need {LEAST_QUERIES} queries or more, found {found}: make larger slices, or name "
            'those that have a floor, as in floors={"tail": 0.05}'
        )


OneSided = Literal["better", "not_worse"]


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
            raise InvalidInput(argument="claim", found=shown(self.claim), expected=" or ".join(map(repr, CLAIMS)))
        check_number("margin", self.margin)
        if self.margin < 0 or (self.claim == "not_worse" and self.margin == 0):
            least = "0 or more" if self.claim == "better" else "greater than 0: nothing shows equality"
            expected = f"a number in units of the measure, {least}"
            raise InvalidInput(argument="margin", found=shown(self.margin), expected=expected)
        check_share("alpha", self.alpha)
        if self.alpha >= 0.25:
            expected = "a one-sided level below 0.25, such as 0.025"
            raise InvalidInput(argument="alpha", found=shown(self.alpha), expected=expected)
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
            "alpha": self.alpha,
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
