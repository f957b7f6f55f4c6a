"""Assert that no loss is shown, or that non-inferiority is.

Both make one-sided claims of `rankeval.compare` about the gain of the candidate, with a margin m::

    gain       ------------(-m)-----------0----------
    no regression   fails if  the upper limit is below -m       (claim: the baseline is better by more than m)
    not worse       fails unless  the lower limit is above -m   (claim: the candidate is not worse by m)

so a candidate between the two limits passes the first and fails the second. The interval that is printed has both
limits, each at the level 1 - alpha: it is the one of level 1 - 2 alpha, and agrees with either check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankeval._checks import check_number, check_share, shown
from rankeval.comparison import Comparison, compare
from rankeval.comparison.design import Design
from rankeval.comparison.inputs import Scores, shared_scores
from rankeval.comparison.record import PARTED, gains
from rankeval.errors import CheckFailed, InvalidInput
from rankeval.measures import greater_is_better
from rankeval.significance.columns import deviation, differences
from rankeval.significance.declarations import ClaimName, Floats, Rng
from rankeval.significance.power import power_of_no_harm
from rankeval.significance.registry import TESTS
from rankeval.testing.check import Check, Claim, record
from rankeval.testing.scores import Given, Measures, measures_of, scores_of, worst_queries

_PARTED = "p steps down over the measures (Holm), and the intervals do not: where the two disagree, p decides"


def assert_no_regression(
    candidate: Given,
    baseline: Given,
    *,
    measure: Measures | None = None,
    margin: float = 0.0,
    alpha: float = 0.05,
    test: str = "t",
    unpaired: str = "error",
    n_resamples: int = 9999,
    rng: Rng = 0,
) -> Check:
    """Fail if the candidate is shown to be worse than the baseline by more than a margin.

    An equal system fails with probability alpha or less, as nearly as the test holds its level. A candidate passes if
    its loss is small, or if there are too few queries to show it: the message says which loss is found 80 % of the
    time.

    Parameters
    ----------
    candidate, baseline : Evaluation, DataFrame or path
        The systems: evaluations, frames (index of query ids, a column per measure), or paths of saved evaluations.
    measure : str, Measure or sequence of them, optional
        What to compare by; may be left out if both sides have one measure. Several measures are corrected by Holm, so
        that alpha is the chance of any false alarm.
    margin : float, default 0
        The loss that is accepted, 0 or more, in units of the measure. With 0 any loss counts once it is shown, on many
        queries a very small one too.
    alpha : float, default 0.05
        Level of the one-sided test, below .25.
    test, unpaired, n_resamples, rng
        As in `rankeval.compare`.

    Returns
    -------
    Check
        The numbers, if the check passes.

    Raises
    ------
    CheckFailed
        If a loss is shown by any of the measures. It is an AssertionError, and its message has the numbers and the
        queries that lost most.
    ConventionMismatch, QueryIdError, InvalidInput, UnknownName
        If the two sides cannot be compared, as in `rankeval.compare`, or an argument is out of range.

    Examples
    --------
    >>> import pandas as pd
    >>> old = pd.DataFrame({"AP": [0.5, 0.6, 0.7, 0.8]}, index=["q1", "q2", "q3", "q4"])
    >>> new = old - pd.DataFrame({"AP": [0.1, 0.2, 0.1, 0.2]}, index=old.index)
    >>> check = assert_no_regression(new, old, margin=0.1)  # the loss is .15, and .10 are accepted
    >>> print(f"{check.table.gain[0]:.2f} [{check.table.ci_low[0]:.2f}, {check.table.ci_high[0]:.2f}]")
    -0.15 [-0.22, -0.08]
    >>> assert_no_regression(new, old)
    Traceback (most recent call last):
    rankeval.errors.CheckFailed: AP: a loss is shown...
    """
    __tracebackhide__ = True
    settings = _Settings("no regression", measure, margin, alpha)
    options = {"test": test, "unpaired": unpaired, "n_resamples": n_resamples, "rng": rng}
    return _passed(_checked(scores_of(candidate), scores_of(baseline), settings, options))


def assert_not_worse(
    candidate: Given,
    baseline: Given,
    *,
    margin: float,
    measure: Measures | None = None,
    alpha: float = 0.05,
    test: str = "t",
    unseen: int = 1,
    unpaired: str = "error",
    n_resamples: int = 9999,
    rng: Rng = 0,
) -> Check:
    """Fail unless the candidate is shown to be not worse than the baseline by a margin or more.

    This is non-inferiority: a candidate whose true loss is the margin or greater passes with probability alpha or less,
    as nearly as the test holds its level. One query is counted besides that lost all it could, since a change may break
    queries that are not here. So on few queries an equal system fails too: the message says how often one passes.

    Parameters
    ----------
    candidate, baseline : Evaluation, DataFrame or path
        The systems: evaluations, frames (index of query ids, a column per measure), or paths of saved evaluations.
    margin : float
        The smallest loss that must not pass, greater than 0, in units of the measure.
    measure : str, Measure or sequence of them, optional
        What to compare by; may be left out if both sides have one measure. Of several measures each must be shown, so
        none needs a correction: a candidate that loses the margin by any of them passes with probability alpha or less
        (Berger, 1982, doi:10.1080/00401706.1982.10487790).
    alpha : float, default 0.05
        Level of the one-sided test, below .25.
    test, unseen, unpaired, n_resamples, rng
        As in `rankeval.compare`.

    Returns
    -------
    Check
        The numbers, if the check passes.

    Raises
    ------
    CheckFailed
        If non-inferiority is not shown by one of the measures. It is an AssertionError, and its message has the numbers
        and the queries that lost most.
    ConventionMismatch, QueryIdError, InvalidInput, UnknownName
        If the two sides cannot be compared, as in `rankeval.compare`, or an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> old = pd.DataFrame({"AP": np.linspace(0.2, 0.9, 100)})
    >>> new = old - np.resize([0.0, 0.02], (100, 1))  # every other query loses a little
    >>> assert_not_worse(new, old, margin=0.05).passed  # the lower limit is -.036
    True
    >>> assert_not_worse(new, old, margin=0.03)
    Traceback (most recent call last):
    rankeval.errors.CheckFailed: AP: a loss of 0.03 is not ruled out...
    """
    __tracebackhide__ = True
    settings = _Settings("not worse", measure, margin, alpha, unseen)
    options = {"test": test, "unpaired": unpaired, "n_resamples": n_resamples, "rng": rng}
    return _passed(_checked(scores_of(candidate), scores_of(baseline), settings, options))


def _passed(check: Check) -> Check:
    """Return a check, or raise its failure."""
    __tracebackhide__ = True
    record(check)
    if not check.passed:
        raise CheckFailed(check.failure())
    return check


@dataclass(frozen=True)
class _Settings:
    """What is claimed, by which measures, with which margin and level."""

    claim: Claim
    measure: Measures | None
    margin: float
    alpha: float
    unseen: int = 0

    def __post_init__(self) -> None:
        check_number("margin", self.margin)
        if self.margin < 0 or (self.margin == 0 and self.claim == "not worse"):
            least = "0 or more" if self.claim == "no regression" else "greater than 0: nothing shows equality"
            raise InvalidInput(f"margin is {self.margin}; expected a loss in units of the measure, {least}")
        check_share("alpha", self.alpha)
        if self.alpha >= 0.25:
            raise InvalidInput(f"alpha is {shown(self.alpha)}; expected a one-sided level below 0.25, such as 0.05")


def _checked(candidate: Scores, baseline: Scores, settings: _Settings, options: Mapping[str, Any]) -> Check:
    """Compare in both directions: one answers the claim, and each has one of the two limits of the gain."""
    systems, labels = {"candidate": candidate, "baseline": baseline}, measures_of(candidate, baseline, settings.measure)
    shared = shared_scores(systems, labels, unpaired=options["unpaired"])

    def compared(with_: str, claim: ClaimName = "better", margin: float = 0.0) -> Comparison:
        # One false alarm by any measure stops a release; but each must be shown not worse, so none needs a correction.
        family = "all" if settings.claim == "no regression" else "measure"
        made = {"measures": labels, "family": family, "alpha": settings.alpha, "unseen": settings.unseen, **options}
        return compare(systems, baseline=with_, claim=claim, margin=margin, **made)

    n, deviations = len(shared.scores), deviation(differences(shared.scores[:, 0], shared.scores[:, 1]))
    losses = Design([*systems], labels, "baseline", "all").greatest_losses(shared.scores)
    if settings.claim == "no regression":
        gain, loss = compared("baseline"), compared("candidate", margin=settings.margin)
        decisive, passed, rates = loss, ~loss.shown, loss.table["detectable_difference"].tolist()
    else:
        gain, loss = compared("baseline", "not_worse", settings.margin), compared("candidate")
        decisive, passed = gain, gain.shown
        rates = [_pass_rate(settings, gain, n, *each) for each in zip(deviations, losses, strict=True)]
    table = gain.table[["measure", "n_queries"]].assign(
        baseline=gain.table["mean_baseline"],
        candidate=gain.table["mean_system"],
        gain=gains(gain),
        ci_low=_least_gain(gain),
        ci_high=-_least_gain(loss),
        margin=settings.margin,
        p_value=decisive.table["p_adjusted"],
        sd=deviations,
        greatest_loss=losses,
        rate=rates,
        passed=passed,
    )
    worst = {label: worst_queries(shared, label) for label in table["measure"][~table["passed"]]}
    notes = tuple(_PARTED if note == PARTED else note for note in decisive.notes)
    return Check(settings.claim, table, decisive.settings.test, settings.alpha, worst, notes, settings.unseen)


def _least_gain(compared: Comparison) -> Floats:
    """Return the lower limit of the gain in each row, the one that belongs to the adjusted p-value of the claim."""
    low, high = (compared.table[end].to_numpy() for end in ("ci_low_adjusted", "ci_high_adjusted"))
    return np.array(
        [a if greater_is_better(name) else -b for name, a, b in zip(compared.table["measure"], low, high, strict=True)]
    )


def _pass_rate(settings: _Settings, compared: Comparison, n: int, sd: float, loss: float) -> float:
    """Return how often an equal system passes; nan for tests whose power is not that of Student's t."""
    if not TESTS[compared.settings.test].power_of_t:
        return math.nan
    alpha, margin, unseen = settings.alpha, settings.margin, settings.unseen
    return power_of_no_harm("not_worse", 0.0, sd, n, alpha, margin=margin, unseen=unseen, greatest_loss=loss)
