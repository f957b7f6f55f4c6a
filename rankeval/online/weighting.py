"""Inverse propensities: how much positions are looked at, and the value of unseen rankings.

A position-based user clicks a document that is looked at and attracts: P(click) =
propensity(position) * relevance(query, document). So a click depends on position and document
alone. This fails if users stop after a click (cascade), or trust the top and click irrelevant
documents there: each log is tested, see ``dependence``. The rate of clicks at a position mixes both
factors, since rankers put good documents first. Each way to take them apart compares a document
with itself, or makes positions equal by a shuffle::

    shown and clicked       1        2        3        position
    (q1, d4)                80, 16   20, 2    -        d4 says something of 1 and 2, and nothing of 3
    (q1, d9)                -        50, 5    50, 4    d9 links 2 and 3
    lists of one length     rates of clicks, if each list was shuffled

The trap: an estimate for two positions without a shared document is a number without meaning. Such
logs are refused.

With propensities, each click is weighed by how rarely the log would have it::

    Propensities.weights   a click at position k   weighs 1 / propensity(k)           then a ranker learns from it
    counterfactual         a click at position k   weighs 1 / propensity(k)           then any DCG of any ranking
    policy_value           a click on item a       weighs target(a) / propensity(a)   then the mean

Where weights are large or clicks are rare, few clicks decide: the effective number says how many
clicks of equal weight would know as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components
from scipy.stats import t

from rankeval._arguments import explained
from rankeval._checks import check_count, check_share, count, few, refuse, require
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.comparison.recorded import LIMITS, Recorded
from rankeval.errors import warn
from rankeval.evaluation.front_door import evaluate
from rankeval.evaluation.result import Evaluation
from rankeval.io.columns import id_column, labels
from rankeval.measures import Measure
from rankeval.online.dependence import dependence
from rankeval.online.fitting import TINY, all_pairs, fit_factors, pairs_of
from rankeval.online.logs import ClickLog
from rankeval.render.tables import Table
from rankeval.significance.declarations import Floats, Rng, generator_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALONE = "and a click depends on position and document alone"
SHUFFLED = f"valid if each list of the log was shuffled uniformly, {ALONE}"
SAME = f"valid if the position of a document says nothing of its relevance to that user, {ALONE}"
UNITS = {"user": ("users", 50), "qid": ("queries", 50), "impression": ("impressions", 0)}
"""Columns of independent units, in words, and how many are enough to resample."""
ANY: tuple[float, float] = -np.finfo(np.float64).max, np.finfo(np.float64).max
_RANGES = {
    "click": ANY,
    "propensity": (TINY, 1.0),
    "target": (0.0, 1.0),
    "baseline[0]": ANY,
    "baseline[1]": ANY,
}
"""The least and the greatest number in each column of a policy's log."""
FEW = "the effective size is {:,.0f} of {:,} {} ({:.0f} %): a few large weights decide, and the interval is too short"
FEW_CLICKS = 100
"""Below so many clicks of equal weight, intervals are called too short.

They hold from some 25 on. But a log with more clicks than were due is called good too early: of
logs with 40 due, 7 % have 50 or more, and of these intervals 80 % hold.
"""
TOO_FEW = (
    f"the effective number of clicks is {{:,.0f}} of {{:,}}, below {FEW_CLICKS}: 95 % intervals covered the value in "
    "85 to 93 % of logs with 5 to 10 clicks; collect more"
)
NO_CLICKS = "nothing was clicked: the value is 0, and the interval of no width says nothing"


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Propensities(Recorded):
    """How much each position is looked at, relative to position 1.

    Attributes
    ----------
    table : DataFrame
        A row per position. Columns: position; propensity, relative to position 1; ci_low, ci_high,
        nan if no interval is known; impressions, the items shown there; clicks.
    how : str
        The way of estimation.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    dependence : DataFrame, optional
        Tests of the assumption that a click depends on position and document alone, a row each.
        Columns: check; due, the clicks that items got where the check looks, over those that
        position and document explain; t; p_fewer and p_more, the one-sided p-values, nan if the log
        says nothing; fails.
    log : ClickLog, optional
        The log that they are from. `counterfactual` tests it too, and knows the ranking to value.

    Examples
    --------
    >>> import pandas as pd
    >>> import rankeval as rk
    >>> table = pd.DataFrame({"position": [1, 2], "propensity": [1.0, 0.25], "impressions": 8, "clicks": [4, 1]})
    >>> shown = pd.DataFrame({"impression": "i1", "position": [1, 2, 3], "docid": list("abc"), "clicked": [0, 1, 0]})
    >>> rk.online.Propensities(table, "randomized").weights(rk.online.ClickLog.from_frame(shown)).tolist()
    [1.0, 4.0, 1.0]
    """

    _row_key = "position"
    _row_ends: ClassVar[Mapping[str, str]] = {"propensity": "", **LIMITS}

    table: pd.DataFrame
    how: str
    notes: tuple[str, ...] = ()
    dependence: pd.DataFrame | None = None
    log: ClickLog | None = None

    def weights(self, log: ClickLog) -> Floats:
        """Return the weight of each shown item in training: 1 / propensity if it was clicked, else 1.

        They are for a ranker that learns from the clicks: ``QueryRanker(LGBMRanker()).fit(X,
        clicked, qid=impression, sample_weight=weights)`` with X in the order of ``log.items``. A
        click at a position that is rarely looked at then counts for the clicks that were missed
        there (Joachims, Swaminathan and Schnabel, 2017).

        Parameters
        ----------
        log : ClickLog
            The log to learn from; it may be another one than the propensities are from.

        Returns
        -------
        ndarray of shape (n_items,)
            Weights in the order of ``log.items``; of a row with ``count`` n they are n times as
            large.

        Raises
        ------
        InvalidInput
            If an item was clicked at a position without a propensity.
        """
        weights = np.where(log.items["clicked"], clicks_by_propensity(log, self), 1.0)
        return weights * log.counts[log.items["impression"]]

    def plot(self) -> Figure:
        """Draw the propensity of each position with its interval, beside the rate of clicks relative to position 1.

        Rates that equal the propensities, such as those of shuffled lists of one length, are left
        out.

        Returns
        -------
        Figure
            Not registered with pyplot.
        """
        from rankeval.render import plots

        figure, axes = plots.one_panel(6, 3.6)
        table, rates = self.table, self.table["clicks"] / self.table["impressions"]
        if not np.allclose(rates := rates / rates.iloc[0], table["propensity"]):
            axes.plot(
                table["position"], rates, color=plots.SOFT, linestyle="--", label="rate of clicks"
            )
        axes.plot(
            table["position"],
            table["propensity"],
            color=plots.BETTER,
            marker="o",
            label="propensity",
        )
        axes.vlines(
            table["position"], table["ci_low"], table["ci_high"], color=plots.BETTER, linewidth=1
        )
        axes.set(
            xlabel="position",
            ylabel="relative to position 1",
            xticks=table["position"],
            ylim=(0, None),
        )
        axes.legend(frameon=False)
        return figure

    def _laid_out(self) -> Table:
        return Table(
            self.table, caption=f"Propensities of positions, how={self.how!r}", notes=self.notes
        )


def clicks_by_propensity(log: ClickLog, propensities: Any) -> Floats:
    """Return 1 / propensity of each item that was clicked, else 0, in the order of ``log.items``."""
    if isinstance(propensities, Propensities):
        propensities = propensities.table.set_index("position")["propensity"]
    is_one_each = (
        isinstance(propensities, Mapping | pd.Series)
        and pd.Index([0, *propensities.keys()]).is_unique
    )
    expected = "Propensities, or one number for each position from 1 on, as a mapping"
    require(is_one_each, "propensities", propensities, expected)
    position, clicked = log.items["position"], log.items["clicked"].to_numpy()
    known = labels(
        list(propensities.values() if isinstance(propensities, Mapping) else propensities),
        "propensities",
    )
    chance = (
        pd.Series(known, index=list(propensities.keys()), dtype=np.float64)
        .reindex(position[clicked])
        .to_numpy()
    )
    lacking = few(sorted(position[clicked][~((chance > 0) & (chance < np.inf))].unique().tolist()))
    problem = f"items were clicked at the positions {lacking}, which have no propensity above 0"
    way = "estimate them too (depth= of propensities), or read the log without the items of these positions"
    refuse((lacking, problem, way), argument="propensities")
    gains = np.zeros(len(clicked))
    gains[clicked] = 1 / chance
    return gains


@explained
def propensities(
    log: ClickLog,
    *,
    how: str,
    depth: int = 10,
    clip: float | None = None,
    n_resamples: int = 200,
    rng: Rng = 0,
) -> Propensities:
    """Estimate how much each position is looked at, relative to position 1, from clicks.

    Parameters
    ----------
    log : ClickLog
        The log.
    how : {"randomized", "swap", "all_pairs", "em"}
        "randomized": the ratio of the rates of clicks in lists of one length; each list of the log
        was shuffled uniformly. "swap": position k against position 1, by documents that were shown
        at both, as if they changed places at random. "all_pairs": all positions together, by
        documents that were shown at several of them, such as by several rankers. "em": the model
        ``pbm`` of `rankeval.online.ClickModel`, with one relevance for each query and document.
    depth : int, default 10
        Leave out items below this position.
    clip : float, optional
        Set lesser propensities to this one; intervals stay. Weights then vary less, and some are
        too small: a note counts their clicks.
    n_resamples : int, default 200
        Bootstrap samples for the intervals (95 %, percentiles); 0 for none. Units are users if the
        log has 50 or more; otherwise queries if it has 50 or more; otherwise impressions. A note
        says which. "em" has no intervals, and neither has a log of so few clicks that samples do
        not link the positions.
    rng : int, Generator or None, default 0
        Seed of the bootstrap.

    Returns
    -------
    Propensities
        A row per position, its picture and the weights to learn with.

    Raises
    ------
    InvalidInput
        If nothing was shown at position 1; if nothing was clicked at a position; if positions are
        not linked by clicked documents that were shown at several (for "randomized", by lists of
        one length): the message names the groups.
    UnknownName
        If there is no such way.

    Warns
    -----
    RankevalWarning
        If a click depends on more than position and document; or if documents keep their positions
        in lists that should be shuffled.

    Notes
    -----
    The probability of a click is propensity(position) * relevance(query, document): it depends on position and document
    alone. If it depends on the documents above (cascade), or on trust in the top (clicks on
    irrelevant documents there), there are no such propensities. ``dependence`` has tests of this,
    at a level of 1 % together, and a note and a warning say if one fails. They need some thousand
    impressions to see trust in the top.

    "swap" and "all_pairs" condition on the clicks of each query and document: a click fell on
    position k with a probability in proportion to (times shown at k) * propensity(k), so that
    relevance cancels. "randomized" does the same by the lengths of lists: within one length, it is
    the ratio of the rates of clicks. The estimate maximises this likelihood. It exists if and only
    if the positions are linked in both directions: from k to j if a document that was clicked at k
    was shown at j (Ford, 1957). The interventions are those of Joachims, Swaminathan and Schnabel
    (2017, doi:10.1145/3018661.3018699) for "swap", and of Agarwal et al. (2019,
    doi:10.1145/3289600.3291017) for "all_pairs", who weigh each document by the inverse of its
    impressions; "em" is that of Wang et al. (2018, doi:10.1145/3159652.3159732) without features.

    Examples
    --------
    Document a is clicked in 4 of 8 impressions at position 1, and in 2 of 8 at position 2:

    >>> import pandas as pd
    >>> from rankeval.online import ClickLog, propensities
    >>> rows = [(f"i{n}", 1 + n % 2, "a", n in {0, 1, 2, 3, 4, 6}) for n in range(16)]
    >>> frame = pd.DataFrame(rows, columns=["impression", "position", "docid", "clicked"])
    >>> log = ClickLog.from_frame(frame, complete=False)
    >>> propensities(log, how="swap", n_resamples=0).table["propensity"].round(6).tolist()
    [1.0, 0.5]
    """
    estimate = WAYS[chosen("way to estimate propensities", how, WAYS)]
    require(isinstance(log, ClickLog), "log", log, "a ClickLog")
    check_count("depth", depth)
    check_count("n_resamples", n_resamples, least=0)
    check_share("clip", 0.5 if clip is None else clip)
    near = log.items["position"].to_numpy() <= depth
    part, alike = log.items[near], (_sizes(log) if how == "randomized" else pairs_of(log)[0])[near]
    impression, clicked = part["impression"].to_numpy(), part["clicked"].to_numpy()
    positions, place = np.unique(part["position"], return_inverse=True)
    cell, shape = alike * len(positions) + place, (alike.max(initial=-1) + 1, len(positions))

    def counted(counts: NDArray[Any]) -> Floats:
        weight = counts[impression]
        size = shape[0] * shape[1]
        tables = np.bincount(cell, weight, size), np.bincount(cell, weight * clicked, size)
        return np.reshape(tables, (2, *shape)).astype(np.float64)

    shown, clicks = counted(log.counts)
    numbers = {
        "impressions": shown.sum(axis=0).astype(np.int64),
        "clicks": clicks.sum(axis=0).astype(np.int64),
    }
    empty = few(positions[numbers["clicks"] == 0].tolist())
    unknown = (
        f"nothing was clicked at the positions {empty}, so nothing is known of their propensity"
    )
    remedy = "collect more clicks, or leave out the last positions by depth="
    relative = "nothing was shown at position 1, which the others are relative to"
    refuse((1 not in positions, relative), (empty, unknown, remedy), argument="log")
    _refuse_unlinked(positions, shown, clicks, how)
    notes = [SHUFFLED, *_kept_order(log)] if how == "randomized" else [SAME]
    low, high = np.full((2, len(positions)), np.nan)
    if n_resamples and how != "em":
        unit, size, name = _units(log)
        generator = generator_of(rng)
        drawn = []
        for _ in range(n_resamples):
            times = generator.multinomial(size.sum(), size / size.sum()) / size
            drawn.append(estimate(*counted(log.counts * times[unit])))
        ends = np.quantile(drawn, [0.025, 0.975], axis=0)
        # Greater ones are of samples that do not link two positions.
        if (ends < 1e6).all():
            low, high = ends
            notes.append(f"intervals: 95 %, percentiles of {n_resamples:,} samples of {name}")
        else:
            few_links = "too few clicks link the positions with the first one"
            notes.append(f"no interval is known: in some samples, {few_links}")
    columns = {"position": positions, "propensity": estimate(shown, clicks)}
    table = pd.DataFrame(columns | {"ci_low": low, "ci_high": high} | numbers)
    if clip is not None:
        small, n_clicks = table["propensity"] < clip, table["clicks"]
        cut = f"{n_clicks[small].sum():,} of {n_clicks.sum():,} clicks"
        notes.append(
            f"propensities below {clip:g} are set to {clip:g}, and the weights of {cut} are too small"
        )
        table["propensity"] = table["propensity"].clip(lower=clip)
    checks, broken = dependence(log)
    for note in broken:
        warn(note)
    return Propensities(table, how, (*notes, *broken), checks, log)


def _units(log: ClickLog) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Return the unit of each impression as a code, how often each counts, and their noun."""
    facts = log.impressions.assign(impression=range(len(log.impressions)))
    known = [name for name in UNITS if name in facts]
    name = next(name for name in known if facts[name].nunique() >= UNITS[name][1])
    unit = pd.factorize(facts[name])[0]
    size = log.counts if name == "impression" else np.ones(unit.max() + 1, dtype=np.int64)
    return unit, size, UNITS[name][0]


def _sizes(log: ClickLog) -> NDArray[np.int64]:
    """Return the length of the list of each shown item; lists of single items are equally long."""
    position = log.items["position"]
    whole = log.items["impression"] if log.complete else np.zeros(len(position))
    return position.groupby(whole).transform("max").to_numpy()


def _kept_order(log: ClickLog) -> list[str]:
    """Warn if documents keep their positions, where each list should be shuffled anew."""
    size = _sizes(log)
    off, variance = log.items["position"] - (size + 1) / 2, (size**2 - 1) / 12
    places = pd.DataFrame({"off": off, "var": variance})
    sums = places.mul(log.counts[log.items["impression"]], axis=0).groupby(pairs_of(log)[0]).sum()
    kept = float((sums["off"] ** 2).sum() / max(sums["var"].sum(), TINY))
    if not kept > 1 + 10 * np.sqrt(2 / len(sums)):
        return []
    note = f"documents keep their positions {kept:.3g} times as much as in lists that are shuffled anew each time"
    warn(f"{note}: the rates of clicks then mix position and relevance; use another how=")
    return [note]


def _refuse_unlinked(positions: NDArray[Any], shown: Floats, clicks: Floats, how: str) -> None:
    links = (clicks > 0).T.astype(np.float64) @ (shown > 0)
    if how == "swap":
        links[1:, 1:] = 0
    number, group = connected_components(links, directed=True, connection="strong")
    groups = [str(positions[group == code].tolist()) for code in dict.fromkeys(group.tolist())]
    names = ", ".join(groups)
    problem = (
        f"no clicked documents link the groups of positions {names}, so they cannot be compared"
    )
    remedy = "show the same documents at several positions: rankers in turn, swaps of position 1, or shuffled lists"
    refuse((number > 1, problem, remedy), argument="log")


def _swap(shown: Floats, clicks: Floats) -> Floats:
    """Compare each position with the first alone."""
    later = range(1, shown.shape[1])
    return np.array([1.0, *(all_pairs(shown[:, [0, k]], clicks[:, [0, k]])[1] for k in later)])


def _em(shown: Floats, clicks: Floats) -> Floats:
    (n_pairs, n_slots), (pair, slot) = shown.shape, np.indices(shown.shape).reshape(2, -1)
    settings: dict[str, Any] = {"prior": (0.0, 0.0), "tolerance": 1e-6, "max_iter": 10_000}
    values = fit_factors(
        pair, slot, shown.ravel(), clicks.ravel(), n_pairs=n_pairs, n_slots=n_slots, **settings
    )[0]
    return np.asarray(values[n_pairs:] / values[n_pairs])


WAYS = {"randomized": all_pairs, "swap": _swap, "all_pairs": all_pairs, "em": _em}
"""Ways to estimate from tables of rows that are alike by positions, shown and clicked."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class PolicyValue(Recorded):
    """The clicks that another policy would have got.

    Attributes
    ----------
    table : DataFrame
        One row. Columns: how; value, the clicks for each shown item; ci_low, ci_high; n, the shown
        items; effective_size, (sum of weights)^2 / sum of weights^2 (Kish, 1965); effective_share,
        the same over n; effective_clicks, the same of weight times click; mean_weight, near 1 if
        propensities and target are right; largest_weight; clipped_share, of the shown items.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    """

    _row_key = "how"
    _row_ends: ClassVar[Mapping[str, str]] = {
        "value": "",
        "effective_share": "_effective_share",
        "effective_clicks": "_effective_clicks",
        **LIMITS,
    }

    table: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The estimated clicks for each shown item."""
        return float(self.table["value"].iloc[0])

    def _laid_out(self) -> Table:
        caption = "Value of a policy, with its 95 % interval"
        return Table(self.table, caption=caption, notes=self.notes)


@explained
def counterfactual(
    log: ClickLog,
    scores: Any,
    propensities: Any,
    *,
    measure: str | Measure = "DCG@10",
    name: str | None = None,
) -> Evaluation:
    """Score a ranking that was not shown, by the clicks on the lists that were.

    A click at a position with propensity p counts as a gain of 1 / p. If a click depends on
    position and document alone, this is on average over users the relevance of the item, wherever
    it was shown, and the value is unbiased: the sum of the gains by the discounts of the new ranks,
    in units of clicks at position 1. It is biased if a click depends on the documents above
    (cascade) or on trust in the top (clicks on irrelevant documents there): both are tested, as in
    `propensities` but at a level of 2 %, and a note says if a test fails. Lists of a fixed order
    show a cascade, but no trust: then the note comes from the log of the propensities. Each
    impression is a query of the result; those without clicks count as 0. Intervals take the
    propensities as known.

    Parameters
    ----------
    log : ClickLog
        The log, with a row for each impression, also for those without clicks.
    scores : array of shape (n_items,), mapping or Series by (qid, docid), or callable
        The scores of the ranking to value: in the order of ``log.items``; by query and document; or
        a function of a frame with a row per item (impression, qid, docid, position) that returns
        them. Items are ranked within their impression.
    propensities : Propensities, or mapping or Series by position
        How much each position is looked at, from position 1 on. Values are above 0, and relative:
        users who look at position 2 more than at position 1, as in a grid, have one above 1.
    measure : str or Measure, default ``"DCG@10"``
        A measure that is linear in the gains, such as DCG with any discount.
    name : str, optional
        Name of the system.

    Returns
    -------
    Evaluation
        A row per impression: its queries are impressions, and those "without a relevant document"
        are those without a click. Impressions of a user depend on each other, so compare two
        results user by user, with `rankeval.compare` (``unit="user"``) of
        ``ev.per_query.groupby(log.impressions["user"]).mean()``.

    Raises
    ------
    InvalidInput
        If the measure is not linear in the gains, as nDCG, AP and RR: an unbiased gain then gives a
        biased measure. It is also raised if a score is missing, an item was clicked at a position
        without a propensity, or the log has counts.

    Warns
    -----
    RankevalWarning
        If a click depends on more than position and document, in this log or in that of the
        propensities; it is in the notes too. If the effective number of clicks is below 100 or 20 %
        of the clicks, or nothing was clicked: intervals are then too short. If each impression has
        a click: it seems that the others were left out, and values are then too high.

    Notes
    -----
    Inverse propensity scoring of Joachims, Swaminathan and Schnabel (2017, doi:10.1145/3018661.3018699).

    Examples
    --------
    In every second impression, the click at position 2 with propensity 1/2 is a gain of 2, which the new ranking has at
    rank 1:

    >>> import pandas as pd
    >>> from rankeval.online import ClickLog, counterfactual
    >>> rows = {"qid": "q", "shown": [["a", "b"]] * 100, "clicked": [["b"], []] * 50}
    >>> log = ClickLog.from_frame(pd.DataFrame(rows))
    >>> counterfactual(log, {("q", "a"): 0.1, ("q", "b"): 0.9}, {1: 1.0, 2: 0.5}).aggregate()["DCG@10"].item()
    1.0
    """
    require(isinstance(log, ClickLog), "log", log, "a ClickLog")
    _refuse_not_linear(measure)
    problem = "rows with counts mean several impressions, and intervals would count each as one"
    has_counts = (log.counts != 1).any()
    refuse((has_counts, problem, "read the log without aggregating it"), argument="log")
    gain = clicks_by_propensity(log, propensities)
    of_item = log.items["impression"].to_numpy()
    frame = log.items[["position", "docid"]].assign(qid=log.impressions["qid"].array[of_item])
    frame["impression"] = log.impressions.index.to_numpy()[of_item]
    if callable(scores):
        scores = scores(frame)
    elif isinstance(scores, Mapping) or (
        isinstance(scores, pd.Series) and scores.index.nlevels == 2
    ):
        scores = _by_pair(scores, frame)
    scores = labels(scores, "scores")
    shape = np.shape(scores)
    expected = f"{gain.shape}, a score for each shown item"
    require(shape == gain.shape, "scores", shape, expected)
    _warned(gain[gain > 0], "clicks", gain)
    if len(log.impressions) > 1 and np.bincount(of_item, gain > 0).all():
        warn(
            "each impression has a click: if those without were left out of the log, values are too high"
        )
    frame = frame.assign(gain=gain, score=scores)
    checks, broken = dependence(log, scores)
    source = propensities.log if isinstance(propensities, Propensities) else None
    if not broken and source not in (None, log):
        # Lists of a fixed order say nothing of trust, and then the ranking helps to see it in the
        # other log.
        fixed = checks["p_fewer"].isna().iloc[-1]
        _, broken = dependence(source, _scores_in(source, log, scores) if fixed else None)
        broken = tuple(f"in the log of the propensities, {note}" for note in broken)
    for note in broken:
        warn(note)
    evaluation = evaluate(
        frame, qid="impression", relevance="gain", score="score", measures=measure, name=name
    )
    if not broken:
        return evaluation
    facts = evaluation.facts
    signs = {**facts.signs, "clicks": broken}
    return replace(evaluation, facts=replace(facts, signs=signs))


def _by_pair(scores: Any, items: pd.DataFrame) -> pd.Series[float]:
    """Return the score of each item, of scores by query and document."""
    by_pair = pd.Series(scores)
    by_pair = pd.Series(labels(by_pair, "scores"), index=by_pair.index, dtype=np.float64)
    index = by_pair.index
    expected = "pairs of a query and a document"
    require(index.nlevels == 2, "scores", few(list(index)), expected)
    expected = "one score for each query and document"
    require(index.is_unique, "scores", "a pair given twice", expected)
    of_items = by_pair.reindex(pd.MultiIndex.from_frame(items[["qid", "docid"]]))
    lacking = of_items.index[of_items.isna()].unique().tolist()
    expected = "a score for each query and document of the log"
    require(not lacking, "scores", f"none for {few(lacking)}", expected)
    return of_items


def _scores_in(other: ClickLog, log: ClickLog, scores: Floats) -> Floats:
    """Return the scores of the items of another log, the lowest where their pair is unknown."""
    by_pair = pd.Series(scores, _pairs(log)).groupby(level=[0, 1]).mean()
    return np.asarray(by_pair.reindex(_pairs(other)).fillna(by_pair.min()), dtype=np.float64)


def _pairs(log: ClickLog) -> pd.MultiIndex:
    columns = log.to_frame().reindex(columns=["qid", "docid"])
    return pd.MultiIndex.from_frame(columns.astype(object))


def _refuse_not_linear(measure: str | Measure) -> None:
    """Try a measure on gains, on half of them, on others and on their sum."""
    ids = np.repeat(["a", "b"], 3)
    gains, others = np.array([1.5, 0, 0.4, 0, 3, 0]), np.array([0.7, 2, 0, 0.6, 0.2, 5])

    def value(gains: Floats) -> Floats:
        return evaluate(gains, [3, 2, 1, 2, 3, 1], qid=ids, measures=measure).per_query.to_numpy()

    own = value(gains)
    linear = np.allclose([own / 2, value(gains + others)], [value(gains / 2), own + value(others)])
    problem = f"{measure} is not linear in the gains: with an unbiased estimate of each gain it is biased all the same"
    # A threshold above all of these gains makes all values 0.
    fits = linear and own.any()
    refuse((not fits, problem, "take DCG, such as 'DCG@10'"), argument="measure")


def effective_size(weights: Floats) -> float:
    """Return how many equal weights would know as much (Kish, 1965)."""
    return float(np.abs(weights).sum() ** 2 / np.maximum((weights**2).sum(), TINY))


def _warned(weights: Floats, things: str, gains: Floats) -> list[str]:
    """Return, and warn of, what makes the interval of the mean of weighed clicks too short."""
    size, clicks, n = effective_size(weights), effective_size(gains), len(weights)
    notes = []
    if size < 0.2 * n:
        notes.append(FEW.format(size, n, things, 100 * size / max(n, 1)))
    if 0 < clicks < FEW_CLICKS - 1e-6:
        notes.append(TOO_FEW.format(clicks, np.count_nonzero(gains)))
    if not clicks:
        notes.append(NO_CLICKS)
    for note in notes:
        warn(note)
    return notes


@explained
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
        "ips": inverse propensity scoring, unbiased. "snips": self-normalised, a little biased and
        often less variable (Swaminathan and Joachims, 2015). "clipped": ips with weights of at most
        ``clip``. "dr": doubly robust, by the predictions of a model (Dudik, Langford and Li, 2011);
        unbiased however bad the model is.
    clip : float, optional
        The greatest weight, for "clipped".
    baseline : tuple of two arrays of shape (n_items,), optional
        For "dr": the clicks that a model predicts of the shown item, and those that it predicts on
        average of an item from the target policy in the same place. The model must be fitted to
        other data.
    unit : array of shape (n_items,), optional
        The user of each item. The interval then is for independent users, and otherwise for
        independent items.

    Returns
    -------
    PolicyValue
        The value with its interval (95 %, delta method and Student's t), the effective size and the
        largest weight.

    Raises
    ------
    InvalidInput
        If lengths differ, a number is missing, or a propensity is not in (0, 1]: the message names
        the row. It is also raised if an item has no unit, or there is only one unit.
    UnknownName
        If there is no such estimate.

    Warns
    -----
    RankevalWarning
        If the effective number of clicks is below 100, the effective size is below 20 % of the
        items, or nothing was clicked: intervals are then too short.

    Notes
    -----
    With w = target / propensity, ips = mean(w * click), snips = sum(w * click) / sum(w), dr = mean(predicted of the
    target + w * (click - predicted)).

    Examples
    --------
    Item a was shown in 3 of 4 places, 50 times over; the target shows a and b equally often:

    >>> from rankeval.online import policy_value
    >>> round(policy_value([1, 0, 0, 1] * 50, [0.75, 0.75, 0.75, 0.25] * 50, 0.5).value, 6)
    0.666667
    """
    chosen("estimate of a policy's value", how, ("ips", "snips", "clipped", "dr"))
    has_clip = clip is not None and 0 < clip < np.inf
    fits = has_clip if how == "clipped" else clip is None
    require(fits, "clip", clip, 'above 0 with how="clipped", else none')
    has_two = baseline is not None and len(baseline) == 2
    fits = has_two if how == "dr" else baseline is None
    require(fits, "baseline", baseline, 'two arrays with how="dr", else none')
    n, inputs = np.size(click), (click, propensity, target, *(baseline or (0.0, 0.0)))
    require(n > 1, "click", click, "two items or more")
    rows = {}
    for (name, (low, high)), values in zip(_RANGES.items(), inputs, strict=True):
        array = values if np.ndim(values) else np.full(n, values)
        rows[name] = column = labels(array, name).astype(np.float64)
        require(len(column) == n, name, count(len(column), "number"), f"{n:,}, as many as clicks")
        row = int(np.argmin((column >= low) & (column <= high)))
        value, expected = column[row], f"a number from {low:.3g} to {high:.3g}"
        require(low <= value <= high, name, value, expected, f"row {row}")
    weight = rows["target"] / rows["propensity"]
    none, expected = f"none of {count(n, 'item')}", "items that the target policy shows too"
    require(weight.any(), "target", none, expected)
    units = np.arange(n) if unit is None else pd.factorize(id_column(unit, "unit").to_pandas())[0]
    fits = len(units) == n and 0 <= units.min() < units.max()
    require(fits, "unit", unit, "a user for each item, two or more users")
    used = np.minimum(weight, np.inf if clip is None else clip)
    terms = rows["baseline[1]"] + used * (rows["click"] - rows["baseline[0]"])
    bottom = used if how == "snips" else np.ones(n)
    value = terms.sum() / bottom.sum()
    sums = np.bincount(units, (terms - value * bottom) / bottom.mean())
    n_units = len(sums)
    spread = np.sqrt(n_units / (n_units - 1) * (sums**2).sum())
    half = t.ppf(0.975, n_units - 1) * spread / n
    notes = _warned(used, "items", used * rows["click"])
    is_cut, mean = used < weight, weight.mean()
    if clip is not None:
        cut = f"{is_cut.sum():,} weights above {clip:g}"
        notes.append(f"{cut} are set to {clip:g}: the value is too low")
    if abs(mean - 1) > 3 * weight.std() / np.sqrt(n) + 1e-9:
        why = "propensities are wrong, or the target policy shows items that this log never shows"
        notes.append(f"weights have the mean {mean:.3g} and not 1: {why}")
    numbers: dict[str, Any] = {
        "how": how,
        "value": value,
        "ci_low": value - half,
        "ci_high": value + half,
        "n": n,
    }
    size, n_clicks = effective_size(used), effective_size(used * rows["click"])
    numbers |= {"effective_size": size, "effective_share": size / n, "effective_clicks": n_clicks}
    numbers |= {"mean_weight": mean, "largest_weight": weight.max(), "clipped_share": is_cut.mean()}
    return PolicyValue(pd.DataFrame([numbers]), tuple(notes))
