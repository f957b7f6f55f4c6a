"""A/B tests of rankers: who sees which ranker, and whether the users of the arms differ.

The user is the unit: the same users come back, so their impressions are not independent. Rows of a
frame are summed by user before anything is tested, and a ratio such as clicks by views is the ratio
of two means over users::

    user  arm  clicks  views          user  arm  clicks  views           arm  clicks / views
    u1    A    1       10       ->    u1    A    3       20        ->    A    3 / 20  \
    u1    A    2       10             u2    B    1       10              B    1 / 10  /  B less A, with its error
    u2    B    1       10

The statistics are those of tea-tasting (Welch's test, the delta method, CUPED). Numbers that it
takes without a word are refused or counted before it is called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

from rankeval._arguments import explained
from rankeval._checks import (
    check_alpha,
    check_number,
    check_share,
    count,
    few,
    plural,
    refuse,
    require,
    shown,
)
from rankeval._registry import chosen
from rankeval._source import install
from rankeval._visible import escaping
from rankeval.comparison.headline import p_words
from rankeval.comparison.recorded import LIMITS, Recorded
from rankeval.errors import InvalidInput
from rankeval.io.columns import id_column, value_column
from rankeval.io.frames import as_table, frame_columns, names_in
from rankeval.online.interleaving import checked_id, hashed
from rankeval.online.looks import LooksPlan, looks_plan
from rankeval.online.unequal import SKEWED, by_margins, by_random_arms, skewness_of_t
from rankeval.render.layouts import gain_in_percent
from rankeval.render.tables import Table, p_value, telling
from rankeval.significance.multiple import holm

if TYPE_CHECKING:
    from rankeval.render.plots import Figure

Metric = str | tuple[str, str]
"""A column, to compare its mean; or two, to divide their sums: a pair, or "clicks/views"."""

ARM = " arm"
"""The column of the arms in a frame of units: no name that a user gives."""

NUMBERS = [
    "mean_control",
    "mean_treatment",
    "estimate",
    "standard_error",
    "ci_low",
    "ci_high",
    "relative",
    "p_value",
]
"""The numbers of a row of the table."""

WELCH, EXACT, RANDOM_ARMS = "Welch", "exact", "random arms"
"""How a row is tested."""

MISMATCH = 0.001
"""Below this p-value of the sample ratio, no difference of the arms is reported."""

IN_BOTH = 0.01
"""The largest share of users in several arms that is left out; more are refused."""

FEW = 100
"""From so many effective users on, less than .06 of equal arms differ; at 33 .07, at 10 .1."""

FEW_DUE = 20
"""With fewer users of a metric other than 0 due in the smaller arm, random arms have no interval."""

ONE_ERROR = 1 - 2 * float(stats.norm.sf(1))
"""The level of the normal interval that reaches one standard error to each side."""

POWER = 0.8
"""The detectable difference would be found with this chance: four times in five."""


@explained
def assign(user: Any, salt: str, shares: Mapping[str, float]) -> str | None:
    """Return the arm of a user, always the same one; None for a user who is not in the test.

    Parameters
    ----------
    user : str or int
        The id of the user; 7 and "7" are the same user. Other types are refused: 7.0 would be
        another one.
    salt : str
        The name of the test. With another salt the users are divided anew, independently.
    shares : mapping of str to float
        Arm -> its share of all users, from .001 or less to 1. They add up to 1 or less; the others
        are not in the test.

    Returns
    -------
    str or None
        The arm.

    Raises
    ------
    InvalidInput
        If the id is neither a text nor an integer, a share is below 0, or they add up to more than
        1.

    Notes
    -----
    A hash of salt and user (BLAKE2b) is a point between 0 and 1. The first arm is taken from 0 upwards, the last one
    from 1 downwards, those between from the place that is theirs in proportion to the shares. So the order of the arms
    counts. If shares are raised, the users of the first and of the last arm stay in it; those of arms between stay if
    all shares are raised by the same factor. No rule keeps the users of three arms however their shares are raised.

    Examples
    --------
    >>> assign("u1", "exp7", {"A": 0.5, "B": 0.5}), assign("u1", "exp7", {"A": 0.001, "B": 0.001})
    ('A', None)
    """
    require(isinstance(salt, str), "salt", salt, "text")
    least, total = min(shares.values(), default=-1), math.fsum(shares.values())
    require(
        least >= 0 and 0 < total <= 1 + 1e-9,
        "shares",
        shares,
        "shares from 0 on that add up to 1 or less",
    )
    point = (int.from_bytes(hashed(str(checked_id(user, "user")), salt, 8)) >> 11) / 2**53
    starts = {
        arm: end / total
        for arm, end in zip(shares, accumulate(shares.values(), initial=0.0), strict=False)
    }
    if len(shares) > 1:
        starts[list(shares)[-1]] = 1 - list(shares.values())[-1]
    return next(
        (arm for arm, start in starts.items() if start <= point < start + shares[arm]), None
    )


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class ABTest(Recorded):
    """The difference of the arms of an A/B test, metric by metric.

    Attributes
    ----------
    table : DataFrame
        A row per metric and arm that is compared with the control. Columns: metric; arm; n_users,
        of both arms; mean_control and mean_treatment, means over users or ratios of them; estimate,
        their difference; standard_error; ci_low and ci_high (of p_value); relative, the estimate as
        a share of the control's mean; p_value; p_adjusted, which is missing in all rows if the
        sample ratio is wrong; detectable_difference, found with a chance of .8 at the family's
        level; method, "Welch", "exact" or "random arms". An interval is of its row alone. Each is
        nan if it is not known, and a note says why.
    arms : DataFrame
        A row per arm: users; expected, users by the shares; detectable_loss, the share of its users
        whose loss the sample ratio would show with a chance of one half.
    before : DataFrame
        A row per covariate and arm, with the columns of the table up to p_value: the arms before
        the test.
    control : str
        The arm that the others are compared with.
    sample_ratio : float
        The p-value of the numbers of users against the shares that were planned (chi-squared).
        Below .001 users were lost or moved: ``headline`` reports no difference, p_adjusted is nan,
        and a note says so.
    looks : LooksPlan
        The plan of looks, which has one look if none was given: p_value is valid at all its looks
        together, and so are intervals. A row claims a difference if its p_adjusted is at most
        ``looks.alpha``.
    look : int
        Which of its looks this is.
    notes : tuple of str
        Sentences that a reader of the numbers must see. The last one has the users of the arms.
    unit : str
        The unit that was assigned to arms, as a noun in the singular.

    Examples
    --------
    >>> frame = pd.DataFrame({"user": range(8), "arm": list("AB") * 4, "orders": [0, 1, 1, 2, 0, 3, 1, 2]})
    >>> print(ab_test(frame, metrics={"orders": "orders"}).headline)
    orders is higher in B than in A: +1.5000 [95% interval +0.2428 to +2.7572], +300.0 %, on 8 users, p = 0.0273.
    """

    _row_key = "metric"
    _row_ends: ClassVar[Mapping[str, str]] = {
        "estimate": "",
        "relative": "_relative",
        "p_adjusted": "_p_adjusted",
        **LIMITS,
    }

    table: pd.DataFrame
    arms: pd.DataFrame
    control: str
    sample_ratio: float
    looks: LooksPlan
    look: int
    notes: tuple[str, ...] = ()
    unit: str = "user"
    before: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def claims(self) -> pd.DataFrame:
        """The rows that claim a difference; none if the sample ratio does not fit the shares."""
        return self.table[self.table["p_adjusted"] <= self.looks.alpha]

    @property
    def headline(self) -> str:
        """The result in a few sentences: a wrong sample ratio, else the clearest claim, if any."""
        units = plural(self.unit)
        if self.sample_ratio < MISMATCH:
            sizes = []
            for arm, of_arm in self.arms.iterrows():
                due = f"{of_arm['expected']:,.0f} are due"
                sizes.append(f"{arm} {of_arm['users']:,.0f} where {due}")
            known = f"{', '.join(sizes)}; {p_words(self.sample_ratio)}"
            lost = f"the numbers of {units} do not fit the shares of the arms ({known})"
            return f"No result: {lost}. Find the cause before you read the table."
        if _differ_before(self.before):
            first = self.before.nsmallest(1, "p_value").iloc[0]
            pair = f"{first['arm']} against {self.control}"
            known = f"{first['metric']}, {pair}; {p_words(first['p_value'])}"
            problem = f"the arms differed before the test ({known})"
            return f"No result: {problem}. Find the cause before you read the table."
        family, claims = self.table.dropna(subset="p_adjusted"), self.claims
        if family.empty:
            return "Nothing was tested: the notes say why."
        row = family.nsmallest(1, "p_adjusted").to_dict("records")[0]
        side = "higher" if row["estimate"] > 0 else "lower"
        lead = f"{row['metric']} is {side} in {row['arm']} than in {self.control}"
        if claims.empty:
            lead = f"No difference was shown ({row['metric']}, {row['arm']} against {self.control})"
        names = ("estimate", "ci_low", "ci_high")
        size, low, high = (telling(row[name], sign=True) for name in names)
        level = f"{100 * (1 - self.looks.alpha):g}% interval"
        ends = f"no {level}" if math.isnan(row["ci_low"]) else f"{level} {low} to {high}"
        size = f"{size} [{ends}], {gain_in_percent(100 * row['relative'])}"
        evidence = f"{size}, on {row['n_users']:,} {units}, {p_words(row['p_adjusted'])}"
        sentences = [f"{lead}: {evidence}."]
        if claims.empty:
            reach = telling(row["detectable_difference"])
            sentences.append(f"A difference of {reach} would be found four times in five.")
        if len(family) > 1:
            shows = f"{len(claims)} show a difference (p adjusted by Holm)"
            sentences.append(f"Of {len(family)} comparisons {shows}.")
        if (n_looks := len(self.looks.bounds)) > 1:
            sentences.append(
                f"This is look {self.look} of {n_looks}; p is valid for all looks together."
            )
        return " ".join(sentences)

    def plot(self) -> Figure:
        """Draw the estimate of each row with its interval, a panel for each metric.

        Returns
        -------
        Figure
            Not registered with pyplot. A row is filled if it claims a difference. Green is higher
            and red is lower, whether that is good or not.
        """
        from rankeval.render.comparisons import intervals

        names = {"metric": "group", "arm": "label", "estimate": "difference"}
        drawn = self.table.rename(columns=names)
        drawn = drawn.assign(clear=drawn.index.isin(self.claims.index))
        return intervals(drawn, xlabel=f"difference from {self.control}", caption=self.headline)

    def _row_names(self) -> list[str]:
        names = super()._row_names()
        if len(self.arms) == 2:
            return names
        return [f"{arm}/{name}" for arm, name in zip(self.table["arm"], names, strict=True)]

    def _metrics(self) -> Iterator[tuple[str, Any]]:
        yield "sample_ratio", self.sample_ratio
        yield from ((f"{arm}/users", users) for arm, users in self.arms["users"].items())
        yield from super()._metrics()

    def _laid_out(self) -> Table:
        ends = {
            "mean_control": "control",
            "mean_treatment": "treatment",
            "ci_low": "low",
            "ci_high": "high",
        }
        names = ends | {"p_value": "p", "p_adjusted": "p adjusted"}
        formats: dict[str, Any] = dict.fromkeys(
            ["estimate", "low", "high"], lambda value: telling(value, sign=True)
        )
        formats |= {
            "relative": lambda share: gain_in_percent(100 * share),
            "p": p_value,
            "p adjusted": p_value,
        }
        shown = self.table.drop(
            columns=["n_users", "standard_error", "detectable_difference", "method"]
        )
        return Table(shown.rename(columns=names), formats, caption=self.headline, notes=self.notes)


@explained
def ab_test(
    frame: Any,
    *,
    unit: str = "user",
    arm: str = "arm",
    metrics: Mapping[str, Metric],
    covariates: Mapping[str, Metric] | None = None,
    control: str | None = None,
    primary: str | None = None,
    shares: Mapping[str, float] | None = None,
    looks: LooksPlan | None = None,
    look: int | None = None,
    alpha: float | None = None,
) -> ABTest:
    """Test whether the users of the arms of an experiment differ.

    Parameters
    ----------
    frame : frame
        A row per unit, or several that are summed: a row per impression, session or day. If each
        unit has one row, a note counts those that repeat it. A pandas or polars frame or an Arrow
        table.
    unit : str, default "user"
        The column of the units that were assigned to arms, such as users.
    arm : str, default "arm"
        The column of the arms. Leave out users who are not in the test, for whom `assign` returns
        None.
    metrics : mapping of str to str or to (str, str)
        Name -> a column, whose mean over units is compared; or a numerator and a denominator, whose
        means are divided: ``{"orders": "orders", "ctr": "clicks/views"}``, or ``("clicks",
        "views")``.
    covariates : mapping of str to str or to (str, str), optional
        Name of a metric -> the same of the time before the test, one value per unit: the metric is
        adjusted by it (CUPED). If it correlates by rho, the variance falls by the factor 1 - rho^2.
        Each pair of arms is adjusted on its own, so of three arms the control has two means. The
        arms are compared on each covariate, too: if p is below .001, they were not alike before the
        test, and no row is a result.
    control : str, optional
        The arm that the others are compared with; by default the first one by name, which a note
        names if there are more than two.
    primary : str, optional
        The metric that decides. By default all comparisons are one family, with p adjusted by Holm.
        With a primary metric only its comparisons are, and the other metrics have no adjusted p and
        make no claim.
    shares : mapping of str to float, optional
        Arm -> its share, as given to `assign`; by default equal ones. Users are counted against
        them.
    looks : LooksPlan, optional
        The plan, if the test is looked at more than once (`looks_plan`).
    look : int, optional
        With ``looks``: which of them this is, from 1.
    alpha : float, optional
        The level of the test; by default .05, or that of the plan.

    Returns
    -------
    ABTest
        A row per metric and arm; ``headline`` says it in words.

    Raises
    ------
    InvalidInput
        If tea-tasting is not installed; a value, unit or arm is missing or infinite; a denominator
        is negative, or 0 in a whole arm; there is one arm, or an arm has fewer than two units; more
        than 1 % of the units are in several arms (fewer are left out, and counted in a note); a
        covariate differs between the rows of a unit, or is a column of the metrics; shares do not
        fit the arms; or the look is not planned.
    UnknownName
        If there is no such control, primary metric, or metric of a covariate.

    Notes
    -----
    Means are compared by Welch's test, ratios of means with the variance of the delta method (Deng, Knoblich and Lu,
    KDD 2018), adjusted ones as CUPED does (Deng, Xu, Kohavi and Walker, WSDM 2013). With a plan of looks the test is by
    the normal distribution, intervals reach ``bound * standard_error`` to both sides, and p is that of
    `LooksPlan.p_value`.

    If one arm is smaller and the metric is skewed, Welch's test errs on one side: of equal arms
    with 9,900 and 100 users of whom 1 % buy, it claims a difference in 35 % of the tests. There a
    share of users, a metric of 0 and 1, is tested exactly (Fisher), and other metrics by the t of
    10,000 random divisions of the users (Janssen, 1997). Both keep the level if the arms are equal,
    whatever the metric. The intervals of the second need users: where fewer than 20 with a metric
    other than 0 are due in the smaller arm, there is none.

    The delta method needs many users. It claims too much if few users have most of a
    denominator: at the level .05, .07 of equal arms differed if an arm counted as 33 equal users,
    and .10 at 10. The number of equal users is (sum of denominators)^2 / sum of their squares
    (Kish, 1965). Where it is below 100 in an arm, a note says so.

    Examples
    --------
    >>> frame = pd.DataFrame({"user": range(8), "arm": list("AB") * 4, "clicks": [0, 1, 1, 2, 0, 3, 1, 2], "views": 4})
    >>> test = ab_test(frame, metrics={"ctr": ("clicks", "views")})
    >>> test.table[["mean_control", "mean_treatment", "estimate"]].to_numpy().tolist()
    [[0.125, 0.5, 0.375]]
    """
    require(
        looks is None or isinstance(looks, LooksPlan), "looks", looks, "the result of looks_plan"
    )
    look = 1 if looks is None and look is None else look
    looks = looks or looks_plan(1, alpha=0.05 if alpha is None else alpha)
    require(alpha in {None, looks.alpha}, "alpha", alpha, "none: the plan of looks has its own")
    look = looks.checked(look)
    metrics, before = _divided(metrics, frame), _divided(covariates or {}, frame)
    users, notes = _by_unit(frame, unit, arm, metrics, before)
    for name in (*before, *filter(None, [primary])):
        chosen("metric", name, metrics)
    sizes = users[ARM].value_counts().sort_index()
    names = list(sizes.index)
    fits = len(names) > 1 and sizes.min() > 1
    require(fits, arm, sizes.to_dict(), "two arms or more, each with at least two units")
    if control is None and len(names) > 2:
        notes.append(f"the control is {names[0]}, the first arm by name (control=)")
    control = names[0] if control is None else chosen("arm", control, names)
    arms, ratio = _arms(sizes, shares)
    parts = dict(iter(users.groupby(ARM)))
    pairs = [(other, (parts[control], parts[other])) for other in names if other != control]
    rows = []
    for (name, metric), (other, pair) in product(metrics.items(), pairs):
        columns = [*_columns(metric), *_columns(before.get(name))]
        row = {"metric": name, "arm": other, "n_users": int(sizes[control] + sizes[other])}
        rows.append(row | _row(pair, columns, looks, look))
        notes += _notes_of(rows[-1], pair, columns, (control, other), unit)
    once, of_before = looks_plan(1, alpha=looks.alpha), []
    for name, covariate in before.items():
        notes.append(
            f"the means of {name}, also {control}'s, are adjusted in each row anew (CUPED)"
        )
        columns = [*_columns(covariate), None, None]
        for other, pair in pairs:
            of_before.append({"metric": name, "arm": other, **_row(pair, columns, once, 1)})
    earlier = pd.DataFrame(of_before, columns=["metric", "arm", *NUMBERS, "method"])
    table = pd.DataFrame(rows).assign(p_adjusted=np.nan)
    family = table["p_value"].notna() & table["metric"].eq(primary or table["metric"])
    if ratio >= MISMATCH and not _differ_before(earlier):
        table.loc[family, "p_adjusted"] = holm(table.loc[family, "p_value"])
    level = looks.alpha / max(1, family.sum())
    of_family = looks_plan(looks.shares, spending=looks.spending, alpha=level)
    reach = of_family.bounds[look - 1] + stats.norm.ppf(POWER)
    table["detectable_difference"] = reach * table.pop("error_if_equal")
    table["method"] = table.pop("method")
    no_result = "no row is a result, and p_adjusted is missing"
    if ratio < MISMATCH:
        notes.append(f"the sample ratio is wrong: {no_result}")
    if _differ_before(earlier):
        notes.append(f"the arms differed before the test: {no_result}")
    notes.append(_balance(arms, ratio, earlier, unit))
    return ABTest(table, arms, control, ratio, looks, look, tuple(notes), unit, earlier)


@explained
def ab_power(
    frame: Any,
    *,
    unit: str = "user",
    metric: Metric,
    covariate: Metric | None = None,
    relative: float | Sequence[float] = (0.01, 0.02, 0.05),
    shares: Mapping[str, float],
    users_per_day: float | None = None,
    alpha: float = 0.05,
    power: float = POWER,
) -> pd.DataFrame:
    """Return the users and days that a test of two arms needs to find a change of a metric.

    Parameters
    ----------
    frame : frame
        Users of the past, over as many days as a user is to be in the test: rows as in `ab_test`,
        without arms.
    unit, metric, covariate
        As in `ab_test`, of one metric.
    relative : float or sequence of float, default (.01, .02, .05)
        The smallest changes that matter, as shares of the metric's mean.
    shares : mapping of str to float
        Arm -> its share of all users, the control first, as given to `assign`: .001 each, or .5.
    users_per_day : float, optional
        New users per day, before they are assigned. Users who come back are not new.
    alpha, power : float, default .05 and .8
        The level of the test, and the chance that it finds the change.

    Returns
    -------
    DataFrame
        A row per change: relative, difference, users (of both arms), and days if ``users_per_day``
        is given, rounded up. A test of whole weeks has each day of the week equally often.

    Raises
    ------
    InvalidInput
        If there are not two arms, the metric does not vary or its mean is 0, a number is out of its
        range, or the frame is refused as by `ab_test`.

    Examples
    --------
    >>> past = pd.DataFrame({"user": range(1000), "orders": [0, 0, 0, 1, 3] * 200})
    >>> shares = {"A": 0.01, "B": 0.01}
    >>> ab_power(past, metric="orders", relative=0.05, shares=shares, users_per_day=100_000)
       relative  difference  users  days
    0      0.05        0.04  26713    14
    """
    check_alpha(alpha)
    check_share("power", power)
    fits = len(shares) == 2 and min(shares.values()) > 0 and sum(shares.values()) <= 1 + 1e-9
    require(fits, "shares", shares, "two arms with shares above 0 that add up to 1 or less")
    metrics = _divided({"metric": metric}, frame)
    covariates = _divided({} if covariate is None else {"metric": covariate}, frame)
    users, _ = _by_unit(frame, unit, None, metrics, covariates)
    columns = [*_columns(metrics["metric"]), *_columns(covariates.get("metric"))]
    moments = _moments(users, columns)
    varies = _variance(moments, columns) > 0 and moments.mean(columns[0]) != 0
    expected = "a metric that varies between users, with a mean other than 0"
    require(varies, "metric", metric, expected)
    first, second = shares.values()
    names = {"rel_effect_size": "relative", "effect_size": "difference", "n_obs": "users"}
    changes = tuple(np.atleast_1d(relative).tolist())
    try:
        test = _metric(
            columns,
            use_t=False,
            alpha=alpha,
            power=power,
            ratio=second / first,
            rel_effect_size=changes,
        )
        solved = pd.DataFrame(list(test.solve_power_from_aggregates(moments, "n_obs")))
        needed = solved[[*names]].rename(columns=names)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        expected = "changes other than 0 for which three users or more are needed"
        raise InvalidInput(argument="relative", found=shown(relative), expected=expected) from error
    if users_per_day is not None:
        check_number("users_per_day", users_per_day, least=1)
        per_day = users_per_day * sum(shares.values())
        needed["days"] = np.ceil(needed["users"] / per_day).astype(int)
    return needed


def _divided(metrics: Any, frame: Any) -> Any:
    """Return the metrics with "clicks/views" as a pair, unless it is the name of a column."""
    if not isinstance(metrics, Mapping):
        return metrics  # refused where they are read
    known = {*names_in(as_table(frame))}

    def divided(metric: Metric) -> Metric:
        if not isinstance(metric, str) or metric in known or metric.count("/") != 1:
            return metric
        numerator, per = metric.split("/")
        return numerator, per

    return {name: divided(metric) for name, metric in metrics.items()}


def _arms(sizes: pd.Series, shares: Mapping[str, float] | None) -> tuple[pd.DataFrame, float]:
    """Return users, users due and the detectable loss of each arm, and p of the sample ratio."""
    names = [*sizes.index]
    due = pd.Series(shares or dict.fromkeys(names, 1.0), dtype=np.float64)
    fits = {*due.index} == {*names} and due.between(0, np.inf, inclusive="neither").all()
    require(fits, "shares", shares, f"a share above 0 of each arm: {few(names)}")
    share = due / due.sum()
    arms = pd.DataFrame({"users": sizes, "expected": share * sizes.sum()}).rename_axis("arm")
    # If an arm with the share s of n users loses the share d of its own, the mean of chi-squared
    # rises by n s (1 - s) d^2 / (1 - s d).
    freedom = len(names) - 1
    bound = stats.chi2.isf(MISMATCH, freedom)
    added = brentq(lambda mean: stats.ncx2.sf(bound, freedom, mean) - 0.5, 1e-3, 10 * bound)
    squared, linear = arms["expected"] * (1 - share), added * share
    loss = (np.sqrt(linear**2 + 4 * squared * added) - linear) / (2 * squared)
    arms["detectable_loss"] = loss.clip(upper=1.0)
    return arms, float(stats.chisquare(arms["users"], arms["expected"]).pvalue)


def _differ_before(before: pd.DataFrame) -> bool:
    """Return whether the arms were not alike before the test."""
    return bool((before["p_value"] < MISMATCH).any())


def _balance(arms: pd.DataFrame, ratio: float, before: pd.DataFrame, unit: str) -> str:
    """Return the note on the users of each arm, the sample ratio, and the arms before the test."""
    sizes, losses = [], []
    for arm, of_arm in arms.iterrows():
        sizes.append(f"{arm} {of_arm['users']:,.0f} ({of_arm['expected']:,.0f} due)")
        losses.append(f"{100 * of_arm['detectable_loss']:.2g} % of {arm}")
    seen = f"a loss of {' or '.join(losses)} would show in half of all tests, smaller ones rarely"
    parts = [f"{plural(unit)}: {', '.join(sizes)}; sample ratio {p_words(ratio)}; {seen}"]
    for row in before.dropna(subset="p_value").to_dict("records"):
        difference = f"{telling(row['estimate'], sign=True)}, {p_words(row['p_value'])}"
        name = f"{row['metric']} of {row['arm']}"
        parts.append(f"{name} before the test: a difference of {difference}")
    return "; ".join(parts)


def _columns(metric: Metric | None) -> tuple[str | None, ...]:
    """Return numerator and denominator; without a denominator each unit counts as 1."""
    return tuple(metric) if isinstance(metric, (tuple, list)) else (metric, None)


def _metric(columns: Sequence[str | None], **options: Any) -> Any:
    """Return the metric of tea-tasting; its global settings are not asked."""
    from tea_tasting import RatioOfMeans

    return RatioOfMeans(*columns, alternative="two-sided", equal_var=False, **options)


def _moments(users: pd.DataFrame, columns: Sequence[str | None]) -> Any:
    """Return number, means and covariances of the columns; tea-tasting is slow on frames."""
    try:
        from tea_tasting import aggr
    except ImportError as error:
        problem = "A/B tests need tea-tasting, which is not installed"
        raise InvalidInput(problem, remedy=install("online")) from error
    known = users[[*{name for name in columns if name is not None}]]
    both = {}
    for name, row in known.cov().to_dict().items():
        for other, value in row.items():
            both[name, other] = value
    return aggr.Aggregates(len(known), known.mean().to_dict(), known.var().to_dict(), both)


def _variance(moments: Any, columns: Sequence[str | None]) -> float:
    """Return the variance of a metric that its covariate leaves, or 0 if it comes from rounding."""
    mean, per = moments.mean(columns[0]), moments.mean(columns[1])
    other = moments.ratio_var(*columns[2:])
    explained_by = moments.ratio_cov(*columns) ** 2 / other if other else 0.0
    left = moments.ratio_var(*columns[:2]) - explained_by
    both = moments.var(columns[0]) + moments.var(columns[1]) * (mean / per) ** 2
    rounding = 1e-12 * both + (1e-14 * mean) ** 2
    return float(left) if left > rounding / per**2 else 0.0


def _compared(
    arms: Sequence[Any], columns: Sequence[str | None], plan: LooksPlan, look: int
) -> dict[str, float]:
    """Return the numbers of a row of the table; only the means if the metric does not vary."""
    if not any(_variance(arm, columns) for arm in arms):
        control, treatment = (arm.mean(columns[0]) / arm.mean(columns[1]) for arm in arms)
        difference = treatment - control
        return {"mean_control": control, "mean_treatment": treatment, "estimate": difference}
    by_normal = _metric(columns, use_t=False, confidence_level=ONE_ERROR)
    by_t = _metric(columns, use_t=True, confidence_level=1 - plan.alpha)
    try:
        normal, welch = by_normal.analyze_aggregates(*arms), by_t.analyze_aggregates(*arms)
        error = normal.effect_size_ci_upper - normal.effect_size
        reach, p = (welch.effect_size_ci_upper - welch.effect_size) / error, welch.pvalue
        if len(plan.bounds) > 1:
            reach, p = plan.bounds[look - 1], plan.p_value(normal.effect_size / error, look)
    except OverflowError as beyond:
        problem = f"the mean of {columns[0]} is so near 0 that its relative change has no end"
        remedy = "add a constant to it: the difference stays the same"
        raise InvalidInput(problem, remedy=remedy) from beyond
    control, treatment, effect = normal.control, normal.treatment, normal.effect_size
    ends = effect - reach * error, effect + reach * error
    relative = normal.rel_effect_size if min(control, treatment) > 0 else math.nan
    values = control, treatment, effect, error, *ends, relative, p
    return dict(zip(NUMBERS, map(float, values), strict=True))


def _of_each(users: pd.DataFrame, columns: Sequence[str | None]) -> NDArray[np.float64]:
    """Return the metric of each user less its covariate; means differ as the metric does."""
    value, other = (_linear(users, *columns[at : at + 2]) for at in (0, 2))
    spread = other.var()
    return value - other * (np.cov(value, other, ddof=0)[0, 1] / spread if spread else 0.0)


def _linear(users: pd.DataFrame, column: str | None, per: str | None) -> NDArray[np.float64]:
    """Return a column; a ratio as the delta method has it; 0 without a column."""
    values = np.zeros(len(users)) if column is None else users[column].to_numpy(np.float64)
    if per is None:
        return values
    others = users[per].to_numpy(np.float64)
    return np.asarray((values - values.sum() / others.sum() * others) / others.mean())


def _row(
    pair: tuple[pd.DataFrame, ...], columns: Sequence[str | None], plan: LooksPlan, look: int
) -> dict[str, Any]:
    """Return the numbers of a row of the table, by the method that holds for its arms."""
    row: dict[str, Any] = dict.fromkeys(NUMBERS, math.nan)
    row |= _compared([_moments(part, columns) for part in pair], columns, plan, look)
    row |= {"error_if_equal": row["standard_error"], "method": WELCH}
    sizes = len(pair[0]), len(pair[1])
    values = _of_each(pd.concat(pair), columns)
    is_tested = not math.isnan(row["p_value"])
    skewed = is_tested and abs(skewness_of_t(values, sizes)) > SKEWED
    is_share = columns[1:] == [None] * 3 and set(np.unique(values)) == {0.0, 1.0}
    tail = float(stats.norm.sf(plan.bounds[look - 1]))
    if is_share and (skewed or not is_tested):
        events = int(values[: sizes[0]].sum()), int(values[sizes[0] :].sum())
        result, method = by_margins(events, sizes, tail), EXACT
    elif skewed:
        estimate, error = row["estimate"], row["standard_error"]
        result, method = by_random_arms(values, sizes, estimate, error, tail), RANDOM_ARMS
    else:
        return row
    one_sided = min(result.below, result.above)
    p = min(1.0, 2 * one_sided)
    if len(plan.bounds) > 1:
        p = plan.p_value(float(stats.norm.isf(one_sided)), look)
    low, high = result.low, result.high
    if method == RANDOM_ARMS and _n_due(pair, columns) < FEW_DUE:
        low = high = math.nan
    equal = math.sqrt(values.var(ddof=1) * sum(1 / size for size in sizes))
    row |= {"p_value": p, "ci_low": low, "ci_high": high}
    return row | {"error_if_equal": equal, "method": method}


def _n_due(pair: tuple[pd.DataFrame, ...], columns: Sequence[str | None]) -> float:
    """Return how many users of the smaller arm are due whose metric is not 0."""
    sizes = [len(part) for part in pair]
    return float(sum((part[columns[0]] != 0).sum() for part in pair) * min(sizes) / sum(sizes))


def _notes_of(
    row: Mapping[str, Any],
    pair: tuple[pd.DataFrame, ...],
    columns: Sequence[str | None],
    arms: tuple[str, str],
    unit: str,
) -> list[str]:
    """Return what a reader of a row must know."""
    name, units, (control, other) = row["metric"], plural(unit), arms
    notes = []
    if math.isnan(row["p_value"]):
        arms_words = f"the {units} of {control} and {other}"
        notes.append(f"{name} does not vary between {arms_words}: there is no test")
    elif math.isnan(row["relative"]):
        why = "the means of both arms must be above 0"
        notes.append(f"{name} has no relative change of {other}: {why}")
    if row["method"] != WELCH:
        small = int(len(pair[1]) < len(pair[0]))
        n, due = int((pair[small][columns[0]] != 0).sum()), _n_due(pair, columns)
        test = "by Fisher's exact test" if row["method"] == EXACT else "by random arms"
        has = f"{n:,} {units} of {arms[small]} have a {name} other than 0"
        missing = "; too few for an interval" if math.isnan(row["ci_low"]) else ""
        why = f"since one arm is smaller: {has} where {due:,.0f} are due{missing}"
        notes.append(f"{name} of {other} is tested {test}, {why}")
    if columns[1] is not None and row["method"] == WELCH:
        both = [part[columns[1]] for part in pair]
        equal = min(float(per.sum() ** 2 / (per**2).sum()) for per in both)
        if equal < FEW:
            as_if = f"an arm counts as {equal:.0f} {units} with equal {columns[1]}"
            more = f"below {FEW} equal arms differ more often than alpha says"
            notes.append(f"for {name} of {other} {as_if}: {more}")
    return notes


def _by_unit(
    frame: Any,
    unit: str,
    arm: str | None,
    metrics: Mapping[str, Metric],
    covariates: Mapping[str, Metric],
) -> tuple[pd.DataFrame, list[str]]:
    """Return a row per unit, with its arm, sums and covariates, and notes on units left out."""
    expected = 'names with a column, or with two that differ: {"ctr": ("clicks", "views")}'
    for argument, declared in {"metrics": metrics, "covariates": covariates}.items():
        fits = isinstance(declared, Mapping)
        fits = fits and all(len({*_columns(metric)}) == 2 for metric in declared.values())
        require(fits and (declared or declared is covariates), argument, declared, expected)
    summed, before = (
        {*chain(*map(_columns, declared.values()))} - {None} for declared in (metrics, covariates)
    )
    refuse((summed & before, "a covariate is from before the test, and no column of a metric"))
    require(unit != arm, "arm", arm, "another column than that of the units")
    ids = {"unit": unit} if arm is None else {"unit": unit, "arm": arm}
    names = [str(name) for name in sorted(summed | before, key=str)]
    read = frame_columns(frame, {**ids, **{f"column {name}": name for name in names}})
    columns = {name: value_column(read[f"column {name}"], name) for name in names}
    values = pd.DataFrame(columns, dtype=np.float64)
    codes, _ = pd.factorize(id_column(read["unit"], unit).to_pandas())
    by, early = values.groupby(codes), values[[*before]].groupby(codes)
    differs = int((early.min() != early.max()).any(axis=1).sum())
    several_values = f"{count(differs, unit)} with several values"
    refuse((differs, f"{several_values}; a covariate is one value per {unit}"))
    users = by.agg(dict.fromkeys(summed, "sum") | dict.fromkeys(before, "first"))
    arms = pd.Series("", values.index)
    if arm is not None:
        arms = id_column(read["arm"], arm).cast("string").to_pandas()
    by_unit = arms.groupby(codes)
    users[ARM], several = by_unit.first(), by_unit.nunique().gt(1)
    left_out = f"{count(int(several.sum()), unit)} in several arms"
    most = f"at most 1 % of {count(len(users), unit)}: find out why, no arms are compared"
    require(not several.mean() > IN_BOTH, arm or "", left_out, most)
    users = users[~several]
    pairs = map(_columns, [*metrics.values(), *covariates.values()])
    per = [name for _, name in pairs if name is not None]
    sums = users.groupby(ARM)
    wrong = [name for name in per if values[name].min() < 0 or not sums[name].sum().min() > 0]
    problem = "a denominator is below 0, or 0 for all users of an arm"
    refuse((wrong, problem), argument=next(iter(wrong), None))
    again = int(pd.concat([values, pd.Series(codes), arms], axis=1).duplicated().sum())
    notes = [f"{left_out} left out"] if several.any() else []
    # Sessions of a user may be equal. Where each user has one row, a second one like it was logged
    # twice.
    if again > 0 and len(values) - again == codes.max() + 1:
        repeat = f"{again:,} of {len(values):,} rows repeat the only row of their {unit}"
        notes.append(f"{repeat}: leave out what was logged twice")
    return users.reset_index(drop=True), notes
