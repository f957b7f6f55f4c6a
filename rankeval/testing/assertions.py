"""Assert that no loss is shown, or that non-inferiority is.

Both make one-sided claims of `rankeval.compare` about the gain of the candidate, with a margin m::

    gain       ------------(-m)-----------0----------
    no regression   fails if  the upper limit is below -m       (claim: the baseline is better by more than m)
    not worse       fails unless  the lower limit is above -m   (claim: the candidate is not worse by m)

so a candidate between the two limits passes the first and fails the second. The interval that is
printed has both limits, each at the level 1 - alpha: it is the one of level 1 - 2 alpha, and agrees
with either check.

`assert_evaluations_equal` compares queries, measures, conventions, and scores within a tolerance.
The sides of all three assertions are evaluations, frames or saved files.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import check_number, check_share, count, few, refuse, require, shown
from rankeval.comparison import Comparison, compare
from rankeval.comparison.concluding import is_changed, is_tested
from rankeval.comparison.design import COLUMNS, TOGETHER, Design
from rankeval.comparison.groups import query_groups
from rankeval.comparison.inputs import (
    LowerIsBetter,
    Scores,
    SharedScores,
    per_query_frame,
    shared_scores,
    slices_by,
)
from rankeval.comparison.record import (
    directions,
    gains,
    parted,
    parted_notes,
    with_notes,
    with_settings,
)
from rankeval.errors import CheckFailed, InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.by_query import labels_of
from rankeval.evaluation.merging import differences as differences_of
from rankeval.join.flat import Ints
from rankeval.measures import Direction, Measure
from rankeval.render.tables import Table, signed
from rankeval.significance.columns import deviation, differences
from rankeval.significance.declarations import TESTS, Floats, Rng
from rankeval.significance.effects import outcomes
from rankeval.significance.multiple import holm
from rankeval.significance.power import power_of_no_harm
from rankeval.significance.weighted import effective_number, size_by_degrees, weighted_error
from rankeval.testing.check import CHECKS, SLICE, Check, Claim, label_of, record

_PARTED = "p steps down over the family (Holm), and the intervals do not: where the two disagree, p decides"


@explained
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
    lower_is_better: LowerIsBetter = None,
    groups: Any = None,
    by: Any = None,
) -> Check:
    """Fail if the candidate is shown to be worse than the baseline by more than a margin.

    An equal system fails with probability alpha or less, as nearly as the test keeps its level. A
    candidate passes if its loss is small, or if there are too few queries to show it: the message
    says which loss is found 80 % of the time.

    Parameters
    ----------
    candidate, baseline : Evaluation, DataFrame or path
        The systems: evaluations, frames (index of query ids, a column per measure), or paths of
        saved evaluations.
    measure : str, Measure or sequence of them, optional
        What to compare by; may be left out if both sides have one measure. Several measures are
        corrected by Holm, so that alpha is the chance of any false alarm.
    margin : float, default 0
        The loss that is accepted, 0 or more, in units of the measure. With 0 any loss counts once
        it is shown, on many queries a very small one too.
    alpha : float, default 0.05
        Level of the one-sided test, below .25.
    test, unpaired, n_resamples, rng, lower_is_better, groups
        As in `rankeval.compare`. With ``groups``, such as the conversations of the queries, the
        test is over groups, and the queries that lost most are still printed.
    by : Series, mapping, DataFrame, array or str, optional
        An attribute of the queries, such as their market, in the forms of `rankeval.compare`. Then
        a loss in any slice fails too. The whole and its slices are one family for Holm, together
        with the measures. A slice with fewer than 5 queries, or without a changed score, is listed
        and not tested.

    Returns
    -------
    Check
        The numbers, if the check passes.

    Raises
    ------
    CheckFailed
        If a loss is shown by any of the measures, in all queries or in a slice. It is an
        AssertionError. Its message begins with the slice that lost most, and has the numbers and
        the queries that lost most.
    ConventionMismatch, QueryIdError, InvalidInput, UnknownName
        If the two sides cannot be compared, as in `rankeval.compare`, or an argument is out of
        range.

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
    rankeval.errors.CheckFailed: AP: -0.1500, a loss is shown...

    A loss in one market fails, and the message begins with it:

    >>> market = pd.Series(["de", "fr"] * 10, name="market")
    >>> old = pd.DataFrame({"AP": [0.5, 0.6, 0.7, 0.8] * 5})
    >>> new = old.sub([0.0, 0.1, 0.0, 0.2] * 5, axis=0)
    >>> assert_no_regression(new, old, by=market)
    Traceback (most recent call last):
    rankeval.errors.CheckFailed: AP, market fr: -0.1500, a loss is shown; AP: -0.0750, a loss is shown...
    """
    __tracebackhide__ = True
    return _asserted(
        candidate,
        baseline,
        "no regression",
        measure,
        margin,
        alpha,
        lower_is_better,
        test=test,
        unpaired=unpaired,
        n_resamples=n_resamples,
        rng=rng,
        groups=groups,
        by=by,
    )


@explained
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
    lower_is_better: LowerIsBetter = None,
    groups: Any = None,
    by: Any = None,
) -> Check:
    """Fail unless the candidate is shown to be not worse than the baseline by a margin or more.

    This is non-inferiority: a candidate whose true loss is the margin or greater passes with
    probability alpha or less, as nearly as the test keeps its level. One more query is counted,
    with the greatest possible loss, since a change may break queries that are not here. So on few
    queries an equal system fails too: the message says how often one passes.

    Parameters
    ----------
    candidate, baseline : Evaluation, DataFrame or path
        The systems: evaluations, frames (index of query ids, a column per measure), or paths of
        saved evaluations.
    margin : float
        The smallest loss that must not pass, greater than 0, in units of the measure.
    measure : str, Measure or sequence of them, optional
        What to compare by; may be left out if both sides have one measure. With several measures,
        each must be shown, so none needs a correction: a candidate that loses the margin by any of
        them passes with probability alpha or less (Berger, 1982,
        doi:10.1080/00401706.1982.10487790).
    alpha : float, default 0.05
        Level of the one-sided test, below .25.
    test, unseen, unpaired, n_resamples, rng, lower_is_better, groups
        As in `rankeval.compare`. With ``groups``, such as the conversations of the queries, the
        test is over groups, one group is counted besides, and the queries that lost most are still
        printed.
    by : Series, mapping, DataFrame, array or str, optional
        An attribute of the queries, as in `assert_no_regression`. Then the loss must be ruled out
        in each slice too, besides a query that is not seen in each. For each measure, the whole and
        its slices are one family for Holm, so that each verdict can be read by itself. Small slices
        rarely pass: the message has the number of queries that they need.

    Returns
    -------
    Check
        The numbers, if the check passes.

    Raises
    ------
    CheckFailed
        If non-inferiority is not shown by one of the measures, or in a slice. It is an
        AssertionError. Its message begins with the slice that lost most, and has the numbers and
        the queries that lost most.
    ConventionMismatch, QueryIdError, InvalidInput, UnknownName
        If the two sides cannot be compared, as in `rankeval.compare`, or an argument is out of
        range.

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
    rankeval.errors.CheckFailed: AP: -0.0100, a loss of 0.03 is not ruled out...
    """
    __tracebackhide__ = True
    return _asserted(
        candidate,
        baseline,
        "not worse",
        measure,
        margin,
        alpha,
        lower_is_better,
        unseen,
        test=test,
        unpaired=unpaired,
        n_resamples=n_resamples,
        rng=rng,
        groups=groups,
        by=by,
    )


def _asserted(candidate: Given, baseline: Given, /, *settings: Any, **options: Any) -> Check:
    __tracebackhide__ = True
    try:
        check = _checked(
            loaded_scores(candidate), loaded_scores(baseline), _Settings(*settings), options
        )
    except InvalidInput as error:  # an argument is wrong, and none of our frames says which
        raise error.with_traceback(None) from error.__cause__
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
    lower_is_better: LowerIsBetter
    unseen: int = 0

    def __post_init__(self) -> None:
        check_number("margin", self.margin, least=0)
        require(self.margin < 1e150, "margin", self.margin, "a number whose square is one")
        fits = self.margin > 0 or self.claim != "not worse"
        require(fits, "margin", self.margin, "a loss above it: nothing shows equality")
        check_share("alpha", self.alpha)
        require(
            self.alpha < 0.25, "alpha", self.alpha, "a one-sided level below 0.25, such as 0.05"
        )


def _checked(
    candidate: Scores, baseline: Scores, settings: _Settings, options: Mapping[str, Any]
) -> Check:
    """Compare in both directions: one answers the claim, and each has one limit of the gain."""
    systems = {"candidate": candidate, "baseline": baseline}
    labels = measures_of(candidate, baseline, settings.measure)
    shared = shared_scores(systems, labels, unpaired=options["unpaired"], weighted=True)
    parts = _parts(shared, options["by"], options["groups"])
    # One false alarm by any measure stops a release; but each must be shown not worse, so measures
    # need no correction then.
    is_loss = settings.claim == "no regression"
    made = {name: getattr(settings, name) for name in ("unseen", "lower_is_better")}
    made["family"] = "all" if is_loss else "measure"
    n_parts = 1 + parts.n_slices(unchanged=not is_loss)
    share = settings.alpha / n_parts
    compared = partial(_compared, systems, parts, share, measures=labels, **made, **options)
    if is_loss:
        gain = compared(baseline="baseline")
        decisive = loss = compared(baseline="candidate", margin=settings.margin)
    else:
        decisive = gain = compared(baseline="baseline", claim="not_worse", margin=settings.margin)
        loss = compared(baseline="candidate")
    if is_loss:
        decisive = _without_unchanged(decisive, parts)
    decisive = _in_families(decisive, "baseline" if is_loss else "measure", settings.alpha)
    means = gain.table[["measure", "n_queries", "mean_baseline", "mean_system"]]
    table = means.set_axis(["measure", "n_queries", "baseline", "candidate"], axis=1)
    least, most = _least_gain(gain), -_least_gain(loss)
    # Equal scores leave the upper end open where the unseen query gives a lower one.
    most = np.where(np.isnan(most) & ~np.isnan(least), np.inf, most)
    table = table.assign(gain=gains(gain), ci_low=least, ci_high=most)
    table["margin"], table["p_value"] = settings.margin, decisive.table["p_adjusted"]
    table["sd"] = np.concatenate([*map(_deviations, parts.scores.values(), parts.weights.values())])
    design = Design([*systems], labels, "baseline", "all")
    losses = design.greatest_losses(parts.scores[TOGETHER])
    table["greatest_loss"] = np.tile(losses, len(parts.scores))
    table.insert(0, SLICE, np.repeat([*parts.places], len(labels)))
    table["rate"] = loss.table["detectable_difference"]
    if not is_loss:
        table["rate"] = [
            _pass_rate(row, share, settings, gain, parts) for row in table.to_dict("records")
        ]
    table["passed"] = (decisive.shown != is_loss) | decisive.table["p_value"].isna()
    if parts.name:
        is_whole = table[SLICE] == TOGETHER
        order = np.lexsort((table["gain"], is_whole, table["passed"]))
        table = table.iloc[order].reset_index(drop=True)
    worst = {}
    for row in table[~table["passed"]].to_dict("records"):
        rows, label = parts.places[row[SLICE]], label_of(row, parts.name)
        own = replace(shared, queries=shared.queries[rows], scores=shared.scores[rows])
        words = gain.settings.direction(row["measure"])
        worst[label] = worst_queries(own, row["measure"], words, label)
    if not parts.name:
        table = table.drop(columns=SLICE)
    notes = [*decisive.notes]
    notes += [_PARTED] if parted(decisive).any() else []
    return Check(
        settings.claim,
        table,
        decisive.settings.test,
        settings.alpha,
        worst,
        tuple(notes),
        settings.unseen,
        decisive.settings.sized(len(parts.scores[TOGETHER])),
        decisive.settings.units,
        parts.name,
        n_parts,
        effective_number(parts.weights[TOGETHER]) / len(parts.weights[TOGETHER]),
    )


@dataclass(frozen=True)
class _Parts:
    """All queries, and the slices of an attribute with this name."""

    name: str
    places: Mapping[str, Ints]  # Of the queries of each part
    scores: Mapping[str, Floats]  # What is tested of each: by query, or the means of groups
    weights: Mapping[str, Floats]  # The weights of what is tested, 1 by default

    def n_slices(self, *, unchanged: bool) -> int:
        """Return the number of slices that are tested, those without a changed score or not."""
        large = [part for part, own in self.weights.items() if part != TOGETHER and is_tested(own)]
        return sum(unchanged or is_changed(self.scores[part]) for part in large)


def _parts(shared: SharedScores, by: Any, groups: Any) -> _Parts:
    collections = "the sides have scores by collection"
    refuse((shared.places, collections, "check each collection by itself"))
    inputs = cast("Mapping[str, Scores]", shared.inputs)
    name, slices = ("", {}) if by is None else slices_by(by, shared.queries, inputs)
    places = {TOGETHER: np.arange(len(shared.queries)), **slices}
    tested, own, tested_places = shared.scores, shared.weights, places
    if groups is not None:
        grouped = query_groups(groups, shared.queries, systems=inputs)
        tested, own, tested_places = grouped.apart(shared.scores, places, shared.weights)
    own = np.ones(len(tested)) if own is None else own
    scores = {part: tested[rows] for part, rows in tested_places.items()}
    return _Parts(name, places, scores, {part: own[rows] for part, rows in tested_places.items()})


def _compared(
    systems: Mapping[str, Scores], parts: _Parts, share: float, *, by: Any, **options: Any
) -> Comparison:
    """Compare all queries, and those of each slice; each interval is at this share of alpha."""
    options = {"claim": "better"} | options
    made = partial(compare, systems, **options)
    whole = _without_parted_notes(made(alpha=share))
    if not parts.name:
        return whole
    n_slices = parts.n_slices(unchanged=options["claim"] != "better")
    sliced = _without_parted_notes(made(by=by, alpha=share * max(1, n_slices)))
    rows = sliced.table[sliced.table[parts.name] != TOGETHER]
    table = pd.concat([whole.table, rows[[*COLUMNS]]], ignore_index=True)
    return with_notes(replace(whole, table=table), *sliced.notes)


def _without_parted_notes(compared: Comparison) -> Comparison:
    """Leave out which rows part: their p-values are corrected again."""
    hidden = parted_notes(compared)
    return replace(compared, notes=tuple(note for note in compared.notes if note not in hidden))


def _without_unchanged(compared: Comparison, parts: _Parts) -> Comparison:
    """Leave slices without a changed score untested: they lost nothing."""
    # Holm stays exact: which slices changed tells nothing about the signs of a changed one, and the
    # slices share no query.
    changed = np.concatenate(
        [(scores[:, 0] != scores[:, 1]).any(axis=0) for scores in parts.scores.values()]
    )
    n_measures = len(changed) // len(parts.scores)
    changed[:n_measures] = True  # All queries
    p_values = compared.table["p_value"].where(changed)
    return replace(compared, table=compared.table.assign(p_value=p_values))


def _in_families(compared: Comparison, family: str, alpha: float) -> Comparison:
    """Correct by Holm all rows that have the same value in a column."""
    tested = compared.table.dropna(subset="p_value")
    adjusted = tested.groupby(family)["p_value"].transform(holm)
    corrected = replace(compared, table=compared.table.assign(p_adjusted=adjusted))
    return with_settings(corrected, alpha=alpha)


def _deviations(scores: Floats, weights: Floats) -> Floats:
    new, old = scores[:, 0], scores[:, 1]
    if len(scores) < 2:
        return np.full(new.shape[1], np.nan)
    d = differences(new, old)
    if np.ptp(weights) == 0:
        return deviation(d)
    return weighted_error(d, weights) * math.sqrt(effective_number(weights))


def _least_gain(compared: Comparison) -> Floats:
    """Return the lower limit of the gain in each row, as the adjusted p-value has it."""
    low, high = (compared.table[end].to_numpy() for end in ("ci_low_adjusted", "ci_high_adjusted"))
    return np.where(directions(compared) > 0, low, -high)


def _pass_rate(
    row: Mapping[Hashable, Any],
    level: float,
    settings: _Settings,
    compared: Comparison,
    parts: _Parts,
) -> float:
    """Return how often an equal candidate passes; nan where no test says it."""
    if not TESTS[compared.settings.test].power_of_t or np.isnan(row["p_value"]):
        return math.nan
    own = parts.weights[row[SLICE]]
    n = size_by_degrees(own)
    sd = row["sd"] * math.sqrt(n / effective_number(own))
    rule = {name: row[name] for name in ("margin", "greatest_loss")}
    return power_of_no_harm("not_worse", 0.0, sd, n, level, unseen=settings.unseen, **rule)


@explained
def assert_evaluations_equal(candidate: Given, baseline: Given, *, atol: float = 1e-9) -> None:
    """Fail if any query's score differs, or if queries, measures or conventions do.

    For changes that should not change a number: a refactoring, a faster index, another version of a
    library.

    Parameters
    ----------
    candidate, baseline : Evaluation, DataFrame or path
        The evaluations, in any order of rows and measures: evaluations, frames (index of query ids,
        a column per measure), or paths of saved evaluations. Frames have no conventions to compare.
    atol : float, default 1e-9
        The greatest difference of two scores that are taken for equal, 0 or more.

    Raises
    ------
    CheckFailed
        If they differ. It is an AssertionError, and its message names every kind of difference; for
        scores it counts them, names the first query and measure, and has a table of the greatest
        differences.
    InvalidInput
        If a side is neither of these, or ``atol`` is no such number.

    Examples
    --------
    >>> import pandas as pd
    >>> old = pd.DataFrame({"AP": [0.5, 0.6]}, index=["q1", "q2"])
    >>> assert_evaluations_equal(old + 1e-12, old)
    >>> assert_evaluations_equal(old.assign(AP=[0.5, 0.7]), old)
    Traceback (most recent call last):
    rankeval.errors.CheckFailed: 1 of 2 scores differs by more than 1e-09, first AP of query 'q2': 0.7, was 0.6...
    """
    __tracebackhide__ = True
    check_number("atol", atol, least=0)
    scores, baseline_scores = loaded_scores(candidate), loaded_scores(baseline)
    new, old = per_query_frame(scores), per_query_frame(baseline_scores)
    reasons = [*_structure(new, old), *_rules(scores, baseline_scores)]
    failure = (
        f"the evaluations differ: {'; '.join(reasons)}" if reasons else _scores(new, old, atol)
    )
    _record(new, old, failure)
    if failure:
        raise CheckFailed(failure)


def _structure(new: pd.DataFrame, old: pd.DataFrame) -> list[str]:
    reasons = []
    for things, one, other in (
        ("measure", new.columns, old.columns),
        ("query", new.index, old.index),
    ):
        for side, labels, others in (("candidate", one, other), ("baseline", other, one)):
            if not labels.is_unique:
                again = labels[labels.duplicated()].tolist()[0]
                raise InvalidInput(f"the {side} has the {things} {shown(again)} more than once")
            if extra := labels.difference(others, sort=False).tolist():
                reasons.append(f"only the {side} has {count(len(extra), things)} ({few(extra)})")
    return reasons


def _rules(first: Scores, second: Scores) -> list[str]:
    if not (isinstance(first, Evaluation) and isinstance(second, Evaluation)):
        return []
    reasons = differences_of(first, second)
    ours, theirs = (each.weights for each in (first, second))
    if (ours is None) != (theirs is None) or (
        ours is not None and not np.array_equal(ours, np.asarray(theirs))
    ):
        reasons.append("the weights of the queries differ")
    return reasons


def _scores(new: pd.DataFrame, old: pd.DataFrame, atol: float) -> str:
    """Say how many scores differ, the first of them and the greatest differences; "" if none."""
    ours = new.to_numpy(dtype=np.float64)
    theirs = old.loc[new.index, list(new.columns)].to_numpy(dtype=np.float64)
    apart = ~np.isclose(ours, theirs, rtol=0, atol=atol, equal_nan=True)
    if not apart.any():
        return ""
    rows, columns = np.nonzero(apart)
    first, label = new.index[rows[:1]].tolist()[0], new.columns[columns[0]]
    ours, theirs = ours[apart], theirs[apart]
    n = len(rows)
    differ = f"{n:,} of {count(apart.size, 'score')} differ{'s' if n == 1 else ''}"
    example = f"first {label} of query {shown(first)}: {ours[0]:g}, was {theirs[0]:g}"
    ids = {"qid": new.index[rows], "measure": new.columns[columns]}
    values = {"baseline": theirs, "candidate": ours, "difference": ours - theirs}
    greatest = np.argsort(-np.abs(values["difference"]), kind="stable")[:N_WORST]
    table = pd.DataFrame(ids | values).iloc[greatest]
    listed = differing_queries(table, "the greatest differences:")
    return f"{differ} by more than {atol:g}, {example}\n\n{listed}"


def _record(new: pd.DataFrame, old: pd.DataFrame, failure: str) -> None:
    shared = ", ".join(str(label) for label in new.columns if label in old.columns)
    verdict = "differs from the baseline" if failure else "equal to the baseline"
    row = {"measure": shared, "queries": f"{len(new):,}", "gain": "", "interval": ""}
    CHECKS.append({**row, "verdict": verdict, "failure": failure})


Given = Scores | str | os.PathLike[str]
Measures = str | Measure | Sequence[str | Measure]

N_WORST = 10
"""Queries in the table of those that lost most."""


def loaded_scores(given: Given) -> Scores:
    """Return scores as they are, or those of the Evaluation that was saved at a path."""
    if not isinstance(given, str | os.PathLike):
        return given
    try:
        return Evaluation.load(given)
    except InvalidInput as error:
        if not os.path.isfile(given):  # noqa: PTH113 - of what cannot be a name, Path raises
            raise
        raise InvalidInput(
            f"{error}", remedy="score a run first: rk.evaluate(qrels, run)"
        ) from error


def measures_of(candidate: Scores, baseline: Scores, wanted: Measures | None) -> list[str]:
    """Return the names of the measures to check: the wanted ones, or the only shared one."""
    ours, theirs = ([*map(str, per_query_frame(side))] for side in (candidate, baseline))
    shared = [label for label in ours if label in theirs]
    if wanted is not None:
        return labels_of(wanted, shared, "measure of both candidate and baseline")
    if len(shared) == 1:
        return shared
    found = f"candidate has {', '.join(ours)}; baseline has {', '.join(theirs)}"
    refuse((not shared, f"candidate and baseline share no measure: {found}"))
    raise InvalidInput(
        "both sides have several",
        argument="measure",
        remedy=f"name one or more: measure={shared!r}",
    )


def worst_queries(shared: SharedScores, measure: str, words: Direction, label: str) -> str:
    """Return a table of the queries that lost most by a measure, the greatest loss first."""
    new, old = shared.scores[:, :, shared.measures.index(measure)].T
    difference = differences(new, old)
    gains = words.sign * difference
    counts = outcomes(gains)
    n_lost = int(counts.losses)
    losses = f"{words.worse} on {n_lost} of {count(len(difference), 'query')}"
    others = f"equal on {int(counts.ties)}, {words.better} on {int(counts.wins)}"
    summary = f"by {label}{words.note} the candidate is {losses}, {others}"
    if not n_lost:
        return summary
    worst = np.argsort(gains, kind="stable")[: min(N_WORST, n_lost)]
    rows = pd.DataFrame({"qid": shared.queries, "baseline": old, "candidate": new})
    rows["difference"] = difference
    return differing_queries(rows.iloc[worst], f"{summary}; the greatest losses:")


def differing_queries(rows: pd.DataFrame, caption: str) -> str:
    """Return rows of qid, baseline, candidate and difference as text under a caption."""
    rows = rows.assign(qid=list(map(_id, rows["qid"])))
    return Table(rows, formats={"difference": signed}, caption=caption).to_text()


def _id(query: Any) -> str:
    text = str(query)
    return text if text.isprintable() and len(text) <= 60 else shown(query)
