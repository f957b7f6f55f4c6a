"""Propensities: how much more the first position of a list is looked at than the others, from a click log.

A position-based user clicks a document that is looked at and attracts: P(click) = propensity(position) *
relevance(query, document). The rate of clicks at a position mixes both, since rankers put good documents first. Each
way to take them apart compares a document with itself, or makes positions equal by a shuffle::

    shown and clicked       1        2        3        position
    (q1, d4)                80, 16   20, 2    -        d4 says something of 1 and 2, and nothing of 3
    (q1, d9)                -        50, 5    50, 4    d9 links 2 and 3
    lists of one length     rates of clicks, if each list was shuffled

The trap: an estimate for two positions without a shared document is a number without meaning. Such logs are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from rankeval._checks import check_count, check_share, few, refuse, require
from rankeval._registry import chosen
from rankeval.comparison.tables import WithTable
from rankeval.errors import warn
from rankeval.online.fitting import TINY, fit_factors, pairs_of
from rankeval.online.logs import ClickLog
from rankeval.render.tables import Table
from rankeval.significance.declarations import Floats, Rng

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_LINK = 1e6
"""An estimate above it says that a sample does not link two positions."""


@dataclass(frozen=True, eq=False)
class Propensities(WithTable):
    """How much each position is looked at, relative to position 1.

    Attributes
    ----------
    table : DataFrame
        A row per position. Columns: position; propensity, relative to position 1; ci_low, ci_high, nan if no interval
        is known; impressions, the items shown there; clicks.
    how : str
        The way of estimation.
    notes : tuple of str
        Sentences that a reader of the numbers must see.

    Examples
    --------
    >>> import pandas as pd
    >>> import rankeval as rk
    >>> table = pd.DataFrame({"position": [1, 2], "propensity": [1.0, 0.25], "impressions": 8, "clicks": [4, 1]})
    >>> shown = pd.DataFrame({"impression": "i1", "position": [1, 2, 3], "docid": list("abc"), "clicked": [0, 1, 0]})
    >>> rk.online.Propensities(table, "randomized").weights(rk.online.ClickLog.from_frame(shown)).tolist()
    [1.0, 4.0, 1.0]
    """

    table: pd.DataFrame
    how: str
    notes: tuple[str, ...] = ()

    def weights(self, log: ClickLog) -> Floats:
        """Return the weight of each shown item in training: 1 / propensity if it was clicked, else 1.

        They are for a ranker that learns from the clicks: ``QueryRanker(LGBMRanker()).fit(X, clicked, qid=impression,
        sample_weight=weights)`` with X in the order of ``log.items``. A click at a position that is rarely looked at
        then counts for the clicks that were missed there (Joachims, Swaminathan and Schnabel, 2017).

        Parameters
        ----------
        log : ClickLog
            The log to learn from; it may be another one than the propensities are from.

        Returns
        -------
        ndarray of shape (n_items,)
            Weights in the order of ``log.items``; of a row with ``count`` n they are n times as large.

        Raises
        ------
        InvalidInput
            If an item was clicked at a position without a propensity.
        """
        weights = np.where(log.items["clicked"], clicks_by_propensity(log, self), 1.0)
        return weights * log.counts[log.items["impression"]]

    def plot(self) -> Figure:
        """Draw the propensity of each position with its interval, beside the rate of clicks relative to position 1.

        Returns
        -------
        Figure
            Not registered with pyplot.
        """
        from rankeval.render import plots

        figure, axes = plots.one_panel(6, 3.6)
        table, rates = self.table, self.table["clicks"] / self.table["impressions"]
        axes.plot(table["position"], rates / rates.iloc[0], color=plots.SOFT, linestyle="--", label="rate of clicks")
        axes.plot(table["position"], table["propensity"], color=plots.BETTER, marker="o", label="propensity")
        axes.vlines(table["position"], table["ci_low"], table["ci_high"], color=plots.BETTER, linewidth=1)
        axes.set(xlabel="position", ylabel="relative to position 1", xticks=table["position"], ylim=(0, None))
        axes.legend(frameon=False)
        return figure

    def _laid_out(self) -> Table:
        return Table(self.table, caption=f"Propensities of positions, how={self.how!r}", notes=self.notes)


def clicks_by_propensity(log: ClickLog, propensities: Any) -> Floats:
    """Return 1 / propensity of each item that was clicked, else 0, in the order of ``log.items``.

    Parameters
    ----------
    log : ClickLog
        The log.
    propensities : Propensities, or mapping or Series by position
        Propensities above 0.
    """
    if isinstance(propensities, Propensities):
        propensities = propensities.table.set_index("position")["propensity"]
    is_one_each = isinstance(propensities, Mapping | pd.Series) and pd.Index([*propensities.keys()]).is_unique
    require(is_one_each, "propensities", propensities, "Propensities, or one number for each position, as a mapping")
    position, clicked = log.items["position"], log.items["clicked"].to_numpy()
    chance = pd.Series(propensities, dtype=np.float64).reindex(position[clicked]).to_numpy()
    lacking = few(sorted(position[clicked][~((chance > 0) & (chance < np.inf))].unique().tolist()))
    problem = f"items were clicked at the positions {lacking}, which have no propensity above 0"
    refuse((lacking, problem, "estimate them too, or leave these items out of the log"), argument="propensities")
    gains = np.zeros(len(clicked))
    gains[clicked] = 1 / chance
    return gains


def propensities(
    log: ClickLog, *, how: str, depth: int = 10, clip: float | None = None, n_resamples: int = 200, rng: Rng = 0
) -> Propensities:
    """Estimate how much each position is looked at, relative to position 1, from clicks.

    Parameters
    ----------
    log : ClickLog
        The log.
    how : {"randomized", "swap", "all_pairs", "em"}
        "randomized": the ratio of the rates of clicks in lists of one length; each list of the log was shuffled
        uniformly. "swap": position k against position 1, by documents that were shown at both, as if they changed
        places at random. "all_pairs": all positions together, by documents that were shown at several of them, such as
        by several rankers. "em": the model PBM of `rankeval.online.ClickModel`, with one relevance for each query and
        document.
    depth : int, default 10
        Leave out items below this position.
    clip : float, optional
        Set lesser propensities to this one; intervals stay. Weights then vary less, and some are too small: a note
        counts their clicks.
    n_resamples : int, default 200
        Bootstrap samples for the intervals (95 %, percentiles); 0 for none. Units are users if the log has 50 or more,
        else queries if it has 50 or more, else impressions; a note says which. "em" has no intervals, and neither has
        a log of so few clicks that samples do not link the positions.
    rng : int, Generator or None, default 0
        Seed of the bootstrap.

    Returns
    -------
    Propensities
        A row per position, its picture and the weights to learn with.

    Raises
    ------
    InvalidInput
        If nothing was shown at position 1; if nothing was clicked at a position; if positions are not linked by clicked
        documents that were shown at several (for "randomized", by lists of one length): the message names the groups.
    UnknownName
        If there is no such way.

    Notes
    -----
    The probability of a click is propensity(position) * relevance(query, document). "swap" and "all_pairs" condition on
    the clicks of each query and document: a click fell on position k with a probability in proportion to (times shown
    at k) * propensity(k), so that relevance cancels. "randomized" does the same by the lengths of lists: within one
    length, it is the ratio of the rates of clicks. The estimate maximises this likelihood. It exists if and only if
    the positions are linked in both directions: from k to j if a document that was clicked at k was shown at j (Ford,
    1957). The interventions are those of Joachims, Swaminathan and Schnabel (2017, doi:10.1145/3018661.3018699) for
    "swap", and of Agarwal et al. (2019, doi:10.1145/3289600.3291017) for "all_pairs", who weigh each document by the
    inverse of its impressions; "em" is that of Wang et al. (2018, doi:10.1145/3159652.3159732) without features.

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
        found = [np.bincount(cell, one, shape[0] * shape[1]) for one in (weight, weight * clicked)]
        return np.reshape(found, (2, *shape)).astype(np.float64)

    shown, clicks = counted(log.counts)
    numbers = {"impressions": shown.sum(axis=0).astype(np.int64), "clicks": clicks.sum(axis=0).astype(np.int64)}
    empty = few(positions[numbers["clicks"] == 0].tolist())
    unknown = f"nothing was clicked at the positions {empty}, so nothing is known of their propensity"
    way = "collect more clicks, or leave out the last positions by depth="
    relative = "nothing was shown at position 1, which the others are relative to"
    refuse((1 not in positions, relative), (empty, unknown, way), argument="log")
    _refuse_unlinked(positions, shown, clicks, how)
    notes = [SHUFFLED, *_kept_order(log)] if how == "randomized" else [SAME]
    ends = np.full((2, len(positions)), np.nan)
    if n_resamples and how != "em":
        units, generator = log.impressions.assign(impression=range(len(log.impressions))), np.random.default_rng(rng)
        name = next(one for one, (_, least) in UNITS.items() if one in units and units[one].nunique() >= least)
        unit = pd.factorize(units[name])[0]
        size = log.counts if name == "impression" else np.ones(unit.max() + 1, dtype=np.int64)
        times = (generator.multinomial(size.sum(), size / size.sum()) / size for _ in range(n_resamples))
        drawn = [estimate(*counted(log.counts * one[unit])) for one in times]
        ends = np.quantile(drawn, [0.025, 0.975], axis=0)
        notes.append(f"intervals: 95 %, percentiles of {n_resamples:,} samples of {UNITS[name][0]}")
        if not (ends < NO_LINK).all():
            ends[:] = np.nan
            notes.append("no interval is known: in some samples, too few clicks link the positions with the first one")
    found = {"position": positions, "propensity": estimate(shown, clicks), "ci_low": ends[0], "ci_high": ends[1]}
    table = pd.DataFrame(found | numbers)
    if clip is not None:
        small = table["propensity"] < clip
        cut = f"{table['clicks'][small].sum():,} of {table['clicks'].sum():,} clicks"
        notes.append(f"propensities below {clip:g} are set to {clip:g}, and the weights of {cut} are too small")
        table["propensity"] = table["propensity"].clip(lower=clip)
    return Propensities(table, how, tuple(notes))


def _sizes(log: ClickLog) -> NDArray[np.int64]:
    """Return the length of the list of each shown item; of single items, all lists count as equally long."""
    position = log.items["position"]
    whole = log.items["impression"] if log.complete else np.zeros(len(position))
    return position.groupby(whole).transform("max").to_numpy()


def _kept_order(log: ClickLog) -> list[str]:
    """Warn if documents keep their positions, where each list should be shuffled anew."""
    size = _sizes(log)
    places = pd.DataFrame({"off": log.items["position"] - (size + 1) / 2, "var": (size**2 - 1) / 12})
    sums = places.mul(log.counts[log.items["impression"]], axis=0).groupby(pairs_of(log)[0]).sum()
    kept = float((sums["off"] ** 2).sum() / max(sums["var"].sum(), TINY))
    said = f"documents keep their positions {kept:.3g} times as much as in lists that are shuffled anew each time"
    if is_kept := kept > 1 + 10 * np.sqrt(2 / len(sums)):
        warn(f"{said}: the rates of clicks then mix position and relevance; use another how=")
    return [said] * int(is_kept)


def _refuse_unlinked(positions: NDArray[Any], shown: Floats, clicks: Floats, how: str) -> None:
    links = (clicks > 0).T.astype(np.float64) @ (shown > 0)
    if how == "swap":
        links[1:, 1:] = 0
    number, group = connected_components(links, directed=True, connection="strong")
    named = ", ".join(str(positions[group == one].tolist()) for one in dict.fromkeys(group.tolist()))
    problem = f"no clicked documents link the groups of positions {named}, so they cannot be compared"
    way = "show the same documents at several positions: rankers in turn, swaps of position 1, or shuffled lists"
    refuse((number > 1, problem, way), argument="log")


def _all_pairs(shown: Floats, clicks: Floats) -> Floats:
    """Maximise the likelihood of positions given the clicks of each row, by Newton's steps in log propensities.

    A row is a document; of shuffled lists, it is a length, since the documents of long lists are others.
    """
    if not clicks[:, 0].any():  # of a bootstrap sample
        return np.full(shown.shape[1], np.nan)
    clicked = clicks.sum(axis=1) > 0
    shown, clicks, logs = shown[clicked], clicks[clicked], np.zeros(shown.shape[1])
    total, flat = clicks.sum(axis=1), 1e-12 * clicks.sum() * np.eye(len(logs) - 1)
    for _ in range(100):  # steps of at most 1: a position without clicks in a bootstrap sample goes to 0
        share = shown * np.exp(logs)
        share /= share.sum(axis=1, keepdims=True)
        curved = np.diag(total @ share) - (share * total[:, None]).T @ share
        step = np.linalg.solve(curved[1:, 1:] + flat, (clicks.sum(axis=0) - total @ share)[1:])
        logs[1:] += np.clip(step, -1, 1)
        if np.abs(step).max(initial=0) < 1e-10:
            break
    return np.asarray(np.exp(logs))


def _swap(shown: Floats, clicks: Floats) -> Floats:
    """Compare each position with the first alone."""
    return np.array([1.0, *(_all_pairs(shown[:, [0, k]], clicks[:, [0, k]])[1] for k in range(1, shown.shape[1]))])


def _em(shown: Floats, clicks: Floats) -> Floats:
    (n_pairs, n_slots), (pair, slot) = shown.shape, np.indices(shown.shape).reshape(2, -1)
    settings: dict[str, Any] = {"prior": (0.0, 0.0), "tolerance": 1e-6, "max_iter": 10_000}
    values = fit_factors(pair, slot, shown.ravel(), clicks.ravel(), n_pairs=n_pairs, n_slots=n_slots, **settings)[0]
    return np.asarray(values[n_pairs:] / values[n_pairs])


Way = Callable[[Floats, Floats], Floats]
WAYS: dict[str, Way] = {"randomized": _all_pairs, "swap": _swap, "all_pairs": _all_pairs, "em": _em}
"""Ways to estimate from tables of rows that are alike by positions, shown and clicked."""
SHUFFLED = "valid if each list of the log was shuffled uniformly"
SAME = "valid if the position of a document says nothing of its relevance to that user"
UNITS = {"user": ("users", 50), "qid": ("queries", 50), "impression": ("impressions", 0)}
"""Columns of independent units, in words, and how many are enough to resample."""
