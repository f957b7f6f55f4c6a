"""Values of what was not shown: another ranking, or another choice of items, from the clicks on those that were.

Both weigh each click by how rarely the log would have it::

    counterfactual   a click at position k   weighs 1 / propensity(k)               then any DCG of any ranking
    policy_value     a click on item a       weighs target(a) / propensity(a)       then the mean

Where weights are large, few clicks decide: the effective sample size says how many equal ones would know as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t

from rankeval._checks import count, few, refuse, require
from rankeval._registry import chosen
from rankeval.comparison.tables import WithTable
from rankeval.errors import warn
from rankeval.evaluation.front_door import evaluate
from rankeval.evaluation.result import Evaluation
from rankeval.io.columns import labels
from rankeval.measures import Measure
from rankeval.online.fitting import TINY
from rankeval.online.logs import ClickLog
from rankeval.online.positions import clicks_by_propensity
from rankeval.render.tables import Table
from rankeval.significance.declarations import Floats

LEAST_SHARE = 0.2
"""Of the sample size that is effective; below it intervals at 95 % held .89 of the true values."""
HOW = ("ips", "snips", "clipped", "dr")
ANY: tuple[float, float] = -np.finfo(np.float64).max, np.finfo(np.float64).max
_RANGES = {"click": ANY, "propensity": (TINY, 1.0), "target": (0.0, 1.0), "baseline[0]": ANY, "baseline[1]": ANY}
"""The least and the greatest number in each column of a policy's log."""
FEW = "the effective size is {:,.0f} of {:,} {} ({:.0f} %): a few large weights decide, and the interval is too short"
NO_CLICKS = "nothing was clicked: the value is 0, and the interval of no width says nothing"


@dataclass(frozen=True, eq=False)
class PolicyValue(WithTable):
    """The clicks that another policy would have got.

    Attributes
    ----------
    table : DataFrame
        One row. Columns: how; value, the clicks for each shown item; ci_low, ci_high; n, the shown items;
        effective_size, (sum of weights)^2 / sum of weights^2 (Kish, 1965); effective_share, the same over n;
        mean_weight, near 1 if propensities and target are right; largest_weight; clipped_share, of the shown items.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    """

    table: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The estimated clicks for each shown item."""
        return float(self.table["value"].iloc[0])

    def _laid_out(self) -> Table:
        return Table(self.table, caption="Value of a policy, with its 95 % interval", notes=self.notes)


def counterfactual(
    log: ClickLog, scores: Any, propensities: Any, *, measure: str | Measure = "DCG@10", name: str | None = None
) -> Evaluation:
    """Score a ranking that was not shown, by the clicks on the lists that were.

    A click at a position with propensity p counts as a gain of 1 / p. On average over users this is the relevance of
    the item, wherever it was shown, so the value is unbiased: the sum of the gains by the discounts of the new ranks,
    in units of clicks at position 1. Each impression is a query of the result; those without clicks count as 0.
    Intervals take the propensities as known.

    Parameters
    ----------
    log : ClickLog
        The log, with a row for each impression, also for those without clicks.
    scores : array of shape (n_items,), mapping or Series by (qid, docid), or callable
        The scores of the ranking to value: in the order of ``log.items``; by query and document; or a function of a
        frame with a row per item (impression, qid, docid, position) that returns them. Items are ranked within their
        impression.
    propensities : Propensities, or mapping or Series by position
        How much each position is looked at.
    measure : str or Measure, default ``"DCG@10"``
        A measure that is linear in the gains, such as DCG with any discount.
    name : str, optional
        Name of the system.

    Returns
    -------
    Evaluation
        A row per impression. Two of them are compared by `rankeval.compare`: impression by impression, or after
        ``ev.per_query.groupby(log.impressions["user"]).mean()`` user by user.

    Raises
    ------
    InvalidInput
        If the measure is not linear in the gains, as nDCG, AP and RR: an unbiased gain then gives a biased measure.
        Also if a score is missing, an item was clicked at a position without a propensity, or the log has counts.

    Warns
    -----
    RankevalWarning
        If the effective number of clicks is below 20 % of their number, or nothing was clicked: intervals are then too
        short. If each impression has a click: it seems that the others were left out, and values are then too high.

    Notes
    -----
    Inverse propensity scoring of Joachims, Swaminathan and Schnabel (2017, doi:10.1145/3018661.3018699).

    Examples
    --------
    The click at position 2 with propensity 1/2 is a gain of 2, which the new ranking has at rank 1:

    >>> import pandas as pd
    >>> from rankeval.online import ClickLog, counterfactual
    >>> rows = {"impression": "i1", "qid": "q", "position": [1, 2], "docid": ["a", "b"], "clicked": [False, True]}
    >>> log = ClickLog.from_frame(pd.DataFrame(rows))
    >>> counterfactual(log, {("q", "a"): 0.1, ("q", "b"): 0.9}, {1: 1.0, 2: 0.5}).per_query["DCG@10"].tolist()
    [2.0]
    """
    require(isinstance(log, ClickLog), "log", log, "a ClickLog")
    _refuse_not_linear(measure)
    problem = "rows with counts stand for several impressions, and intervals would take each for one"
    refuse(((log.counts != 1).any(), problem, "read the log without aggregating it"), argument="log")
    gain = clicks_by_propensity(log, propensities)
    of_item = log.items["impression"].to_numpy()
    frame = log.items[["position", "docid"]].assign(qid=log.impressions["qid"].array[of_item])
    frame["impression"] = log.impressions.index.to_numpy()[of_item]
    if callable(scores):
        scores = scores(frame)
    elif isinstance(scores, Mapping) or (isinstance(scores, pd.Series) and scores.index.nlevels == 2):
        scores = pd.Series(scores, dtype=np.float64)
        require(scores.index.is_unique, "scores", "a pair given twice", "one score for each query and document")
        scores = scores.reindex(pd.MultiIndex.from_frame(frame[["qid", "docid"]]))
        lacking = scores.index[scores.isna()].unique().tolist()
        require(not lacking, "scores", f"none for {few(lacking)}", "a score for each query and document of the log")
    require(np.shape(scores) == gain.shape, "scores", np.shape(scores), f"{gain.shape}, a score for each shown item")
    _warned(gain[gain > 0], "clicks", clicked=gain.any())
    if len(log.impressions) > 1 and np.bincount(of_item, gain > 0).all():
        warn("each impression has a click: if those without were left out of the log, values are too high")
    frame = frame.assign(gain=gain, score=np.asarray(scores))
    return evaluate(frame, qid="impression", relevance="gain", score="score", measures=measure, name=name)


def _refuse_not_linear(measure: str | Measure) -> None:
    """Try a measure on gains, on half of them, on others and on their sum."""
    ids, one, other = np.repeat(["a", "b"], 3), np.array([1.5, 0, 0.4, 0, 3, 0]), np.array([0.7, 2, 0, 0.6, 0.2, 5])

    def value(gains: Floats) -> Floats:
        return evaluate(gains, [3, 2, 1, 2, 3, 1], qid=ids, measures=measure).per_query.to_numpy()

    linear = np.allclose([value(one) / 2, value(one + other)], [value(one / 2), value(one) + value(other)])
    problem = f"{measure} is not linear in the gains: with an unbiased estimate of each gain it is biased all the same"
    # A threshold above all of these gains makes all values 0.
    refuse((not (linear and value(one).any()), problem, "take DCG, such as 'DCG@10'"), argument="measure")


def _warned(weights: Floats, things: str, *, clicked: object) -> tuple[float, list[str]]:
    """Return the effective size of weights, and warn of what makes intervals too short."""
    size, n = float(weights.sum() ** 2 / np.maximum((weights**2).sum(), TINY)), len(weights)
    told = {FEW.format(size, n, things, 100 * size / max(n, 1)): size < LEAST_SHARE * n, NO_CLICKS: not clicked}
    notes = [said for said, holds in told.items() if holds]
    for said in notes:
        warn(said)
    return size, notes


def policy_value(
    click: ArrayLike,
    propensity: ArrayLike,
    target: ArrayLike,
    *,
    how: str = "ips",
    clip: float | None = None,
    baseline: tuple[ArrayLike, ArrayLike] | None = None,
    unit: ArrayLike | None = None,
) -> PolicyValue:
    """Estimate the clicks for each item that another policy would have got, from a log of single items.

    Parameters
    ----------
    click : array of shape (n_items,)
        The clicks, or another reward, of the shown items.
    propensity : array of shape (n_items,)
        The probability with which the policy of the log showed each of them, in (0, 1].
    target : array of shape (n_items,), or float
        The probability with which the policy to value shows the same item in the same place.
    how : {"ips", "snips", "clipped", "dr"}
        "ips": inverse propensity scoring, unbiased. "snips": self-normalised, a little biased and often less variable
        (Swaminathan and Joachims, 2015). "clipped": ips with weights of at most ``clip``. "dr": doubly robust, by the
        predictions of a model (Dudik, Langford and Li, 2011); unbiased however bad the model is.
    clip : float, optional
        The greatest weight, for "clipped".
    baseline : tuple of two arrays of shape (n_items,), optional
        For "dr": the clicks that a model predicts of the shown item, and those that it predicts on average of an item
        from the target policy in the same place. The model must be fitted to other data.
    unit : array of shape (n_items,), optional
        The user of each item. The interval then is for independent users, else for independent items.

    Returns
    -------
    PolicyValue
        The value with its interval (95 %, delta method and Student's t), the effective size and the largest weight.

    Raises
    ------
    InvalidInput
        If lengths differ, a number is missing, or a propensity is not in (0, 1]: the message names the row. Also if an
        item has no unit, or there is one unit alone.
    UnknownName
        If there is no such estimate.

    Warns
    -----
    RankevalWarning
        If the effective size is below 20 % of the items, or nothing was clicked: intervals are then too short.

    Notes
    -----
    With w = target / propensity, ips = mean(w * click), snips = sum(w * click) / sum(w), dr = mean(predicted of the
    target + w * (click - predicted)).

    Examples
    --------
    Item a was shown in 3 of 4 places; the target shows a and b equally often:

    >>> from rankeval.online import policy_value
    >>> round(policy_value([1, 0, 0, 1], [0.75, 0.75, 0.75, 0.25], 0.5).value, 6)
    0.666667
    """
    chosen("estimate of a policy's value", how, HOW)
    has_clip, two = clip is not None and 0 < clip < np.inf, baseline is not None and len(baseline) == 2
    require(has_clip if how == "clipped" else clip is None, "clip", clip, 'above 0 with how="clipped", else none')
    require(two if how == "dr" else baseline is None, "baseline", baseline, 'two arrays with how="dr", else none')
    n, given = np.size(click), (click, propensity, target, *(baseline or (0.0, 0.0)))
    require(n > 1, "click", click, "two items or more")
    rows = {}
    for (name, (low, high)), values in zip(_RANGES.items(), given, strict=True):
        rows[name] = column = labels(values if np.ndim(values) else np.full(n, values), name).astype(np.float64)
        require(len(column) == n, name, count(len(column), "number"), f"{n:,}, as many as clicks")
        row = int(np.argmin((column >= low) & (column <= high)))
        require(low <= column[row] <= high, name, column[row], f"a number from {low:.3g} to {high:.3g}", f"row {row}")
    weight = rows["target"] / rows["propensity"]
    require(weight.any(), "target", f"none of {count(n, 'item')}", "items that the target policy shows too")
    units = pd.factorize(np.arange(n) if unit is None else np.asarray(unit))[0]
    require(len(units) == n and 0 <= units.min() < units.max(), "unit", unit, "a user for each item, two or more users")
    used = np.minimum(weight, np.inf if clip is None else clip)
    terms = rows["baseline[1]"] + used * (rows["click"] - rows["baseline[0]"])
    bottom = used if how == "snips" else np.ones(n)
    value = terms.sum() / bottom.sum()
    sums = np.bincount(units, (terms - value * bottom) / bottom.mean())
    half = t.ppf(0.975, len(sums) - 1) * np.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / n
    size, notes = _warned(used, "items", clicked=rows["click"].any())
    if clip is not None:
        notes.append(f"{(used < weight).sum():,} weights above {clip:g} are set to {clip:g}: the value is too low")
    if abs(weight.mean() - 1) > 3 * weight.std() / np.sqrt(n) + 1e-9:
        why = "propensities are wrong, or the target policy shows items that this log never shows"
        notes.append(f"weights have the mean {weight.mean():.3g} and not 1: {why}")
    found = {"how": how, "value": value, "ci_low": value - half, "ci_high": value + half, "n": n}
    found |= {"effective_size": size, "effective_share": size / n, "mean_weight": weight.mean()}
    found |= {"largest_weight": weight.max(), "clipped_share": (used < weight).mean()}
    return PolicyValue(pd.DataFrame([found]), tuple(notes))
