"""Expectation maximisation (EM): one loop, and the steps of the two kinds of click models.

A step says how often each parameter is expected to have come true, given the clicks. The new value
of a parameter is that share, with a prior counted in::

    value = (hits + prior clicks) / (trials + prior impressions)

*Factors*, the position-based and the user browsing model: a click has the chance attraction times
examination. An impression of an item falls into a *cell*: its pair of query and document, and its
slot, the position or the position with that of the last click. Items of a cell are alike, so EM
goes over cells with counts, and the length of the log does not matter.

*Chains*, the models of a user who goes down the list and may stop: cascade, DCM, SDBN and DBN. The
user examines position 1. An examined item is clicked with its attraction. After a click the user
stops with a probability (1 in the cascade model, of the position in DCM, of the pair in SDBN and
DBN). Who has not stopped goes on to the next position with the probability gamma (1 in all but
DBN). All positions down to the last click were examined, and after each click but the last the user
went on: those are counts. Only the *tail*, the items below the last click, is uncertain, and EM
goes over the distinct tails::

    list    a b c d e        tail
    clicks  . x . x .   ->   e, after a click on d at position 4
    clicks  . . . . .   ->   a b c d e, after no click

In the cascade model nothing follows a click: its tail is empty. The parameters of both kinds are
one array: the attraction of each pair, then the others. The code of a parameter is its place there;
of chains, the code behind all stands for "none", with probability 0.

Positions alone need no EM: given the clicks of a document, the places where they fell depend on
propensities only (`all_pairs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from rankeval._checks import check_count, check_number, require
from rankeval.errors import warn
from rankeval.online.logs import ClickLog, Ints
from rankeval.significance.declarations import Floats

PAIR = "qid", "docid"
Prior = tuple[float, float]
"""Clicks and impressions that are added to the counts of each parameter."""
Counts = Floats | Ints
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
BLOCK = 1 << 18
"""So many numbers are looked at together."""
TINY = np.finfo(np.float64).tiny
"""Stands for a chance of 0 where one is divided by, or its logarithm taken."""
Step = Callable[[Floats], tuple[Counts, Counts, float]]
"""Values -> the expected hits and trials of each parameter, and the log likelihood."""
Fitted = tuple[Floats, Counts, Floats]
"""Values, the trials that each rests on, and the objective at the start of each iteration."""


def log_binomial(hits: Any, trials: Any, values: Floats) -> float:
    """Return the log likelihood of so many hits in so many trials, with 0 log 0 = 0."""
    return float(xlogy(hits, values).sum() + xlog1py(trials - hits, -values).sum())


def maximised(step: Step, size: int, prior: Prior, tolerance: float, max_iter: int) -> Fitted:
    """Return the values that EM ends at, from one half on, with trials and objectives."""
    check_number("tolerance", tolerance, least=0.0)
    check_count("max_iter", max_iter)
    fits = np.shape(prior) == (2,) and 0 <= prior[0] <= prior[1] < np.inf
    require(fits, "prior", prior, "clicks and impressions, 0 <= clicks <= these")
    values, change, objectives = np.full(size, 0.5), np.inf, list[float]()
    for _ in range(max_iter):
        hits, trials, likelihood = step(values)
        objectives.append(likelihood + log_binomial(*prior, values))
        n = trials + prior[1]
        moved = np.divide(hits + prior[0], n, out=values.copy(), where=n > 0)
        change, values = float(np.abs(moved - values).max()), moved
        if change <= tolerance:
            break
    if change > tolerance > 0:
        moved_by = f"iteration {max_iter:,} moved a parameter by {change:.1g}"
        above = f"above the tolerance {tolerance:.1g}"
        remedy = "give more iterations (max_iter=) or a greater tolerance"
        warn(f"EM has not converged: {moved_by}, {above}; {remedy}")
    return values, trials, np.array(objectives)


def pairs_of(log: ClickLog) -> tuple[Codes, pd.MultiIndex]:
    """Return the pair of query and document of each shown item as a code, and the pairs."""
    require(isinstance(log, ClickLog) and len(log.items), "log", log, "a ClickLog with shown items")
    qids, docids = log.impressions["qid"].cat, log.items["docid"].cat
    query = qids.codes.to_numpy(np.int64) * len(docids.categories)
    parts = blocks(log.items["impression"].to_numpy(), docids.codes.to_numpy())
    keys = [query[rows] + documents for rows, documents in parts]
    pairs = np.unique(np.concatenate([pd.unique(part) for part in keys]))
    codes = np.concatenate([np.searchsorted(pairs, part).astype(np.int32) for part in keys])
    query, document = np.divmod(pairs, len(docids.categories))
    ids = [qids.categories[query], docids.categories[document]]
    return codes, pd.MultiIndex.from_arrays(ids, names=PAIR)


def blocks(*arrays: Any) -> Iterator[Any]:
    """Yield the arrays in parts of rows, so that computing on them takes little memory."""
    n = 1 + arrays[0].size // BLOCK
    return zip(*(np.array_split(array, n) for array in arrays), strict=True)


def slot_starts(depth: int, *, by_last: bool) -> Ints:
    """Return the slot of each place without a click above.

    With ``by_last``, a slot for each place of the last click above follows.
    """
    places = np.arange(depth)
    return places * (places + 1) // 2 if by_last else places


def cells(
    pairs: Codes, clicked: Mask, counts: Ints, *, n_pairs: int, by_last: bool
) -> pd.DataFrame:
    """Return a row per pair and slot: pair, slot, position, shown (items) and hits (clicks)."""
    depth, parts = pairs.shape[1], []
    starts = slot_starts(depth + 1, by_last=by_last)
    for part, clicks, weights in blocks(pairs, clicked, counts):
        last = np.maximum.accumulate(clicks * np.arange(1, depth + 1), axis=1)[:, :-1]
        slots = starts[:-1] + by_last * np.pad(last, ((0, 0), (1, 0)))
        shown = part < n_pairs
        keys, times = (part * starts[-1] + slots)[shown], np.repeat(weights, shown.sum(axis=1))
        items = pd.DataFrame({"shown": times, "hits": times * clicks[shown]})
        parts.append(items.groupby(keys).sum())
    table = pd.concat(parts).groupby(level=0).sum()
    pair, slot = np.divmod(table.index, starts[-1])
    return table.assign(pair=pair, slot=slot, position=np.searchsorted(starts, slot, side="right"))


def fit_factors(
    pair: Ints,
    slot: Ints,
    shown: Counts,
    hits: Counts,
    *,
    n_pairs: int,
    n_slots: int,
    **settings: Any,
) -> Fitted:
    """Return attraction by pair, then examination by slot, as ``maximised`` returns them."""
    codes, size = np.stack([pair, n_pairs + slot]), n_pairs + n_slots
    trials = np.bincount(codes.ravel(), np.tile(shown, 2), size)

    def step(values: Floats) -> tuple[Counts, Counts, float]:
        factors = values[codes]
        chance = factors.prod(axis=0)
        # Of the items without a click, a share was attractive but not examined, or examined but not
        # attractive: one factor came true, and the other did not.
        skipped = (shown - hits) / np.maximum(1 - chance, TINY)
        expected = hits + skipped * (factors - chance)
        of_factors = np.bincount(codes.ravel(), expected.ravel(), size)
        return of_factors, trials, log_binomial(hits, shown, chance)

    return maximised(step, size, **settings)


def all_pairs(shown: Floats, clicks: Floats) -> Floats:
    """Maximise the likelihood of positions given the clicks of each row, by Newton's steps.

    A row is a document; of shuffled lists, it is a length, since the documents of long lists are
    others.
    """
    if not clicks[:, 0].any():  # of a bootstrap sample
        return np.full(shown.shape[1], np.nan)
    clicked = clicks.sum(axis=1) > 0
    shown, clicks, logs = shown[clicked], clicks[clicked], np.zeros(shown.shape[1])
    total, flat = clicks.sum(axis=1), 1e-12 * clicks.sum() * np.eye(len(logs) - 1)
    # Steps of at most 1: a position without clicks in a bootstrap sample goes to 0.
    for _ in range(100):
        share = shown * np.exp(logs)
        share /= share.sum(axis=1, keepdims=True)
        gradient = (clicks.sum(axis=0) - total @ share)[1:]
        step = np.linalg.solve(curvature(share, total)[1:, 1:] + flat, gradient)
        logs[1:] += np.clip(step, -1, 1)
        if np.abs(step).max(initial=0) < 1e-10:
            break
    return np.asarray(np.exp(logs))


def curvature(share: Floats, total: Counts) -> Floats:
    """Return the information on log propensities, from the shares and the clicks of each row."""
    return np.asarray(np.diag(total @ share) - (share * total[:, None]).T @ share)


def distinct(rows: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Return the distinct rows and the sum of the weights of each."""
    different, at = np.unique(rows, axis=0, return_inverse=True)
    return different, np.bincount(at.ravel(), weights).astype(np.float64)


def counted(codes: Codes | Ints, mask: Mask, weights: Ints, size: int) -> Counts:
    """Return how often each code stands where the mask is true, in rows with weights."""
    return np.bincount(codes[mask], np.broadcast_to(weights[:, None], mask.shape)[mask], size)


def fit_chain(
    pairs: Codes,
    clicked: Mask,
    counts: Ints,
    *,
    n_pairs: int,
    stops: str,
    leaves: bool,
    **settings: Any,
) -> Fitted:
    """Return attraction by pair, chances to stop after a click, and gamma, as ``maximised``."""
    depth = pairs.shape[1]
    none = n_pairs + {"always": 0, "position": depth - 1, "pair": n_pairs}[stops] + leaves
    places, ends = np.arange(depth), []
    hits, trials = np.zeros((2, none))
    for part, clicks, weights in blocks(pairs, clicked, counts):
        last = np.where(clicks, places + 1, 0).max(axis=1)
        stop = n_pairs + (part if stops == "pair" else np.broadcast_to(places, part.shape))
        hits += counted(part, clicks, weights, none)
        trials += counted(part, places < last[:, None], weights, none)
        trials += counted(stop, clicks & (places < last[:, None] - 1), weights, none)
        if leaves:
            n_onward = weights @ np.maximum(last - 1, 0)
            hits[-1], trials[-1] = hits[-1] + n_onward, trials[-1] + n_onward
        known = np.where(part < n_pairs, part, none)
        padded = np.pad(known, ((0, 0), (0, depth)), constant_values=none)
        tail = np.take_along_axis(padded, last[:, None] + places, axis=1)
        tail[(stops == "always") & (last > 0)] = none
        # Whether the user stopped is open after a click that is not on the last item of the list.
        is_open = (last > 0) & (tail[:, 0] < none)
        at_last = np.where(is_open, stop[np.arange(len(last)), last - 1], none)
        ends.append(distinct(np.column_stack([at_last, tail]), weights))
    rows, weight = distinct(*map(np.concatenate, zip(*ends, strict=True)))
    codes = np.ascontiguousarray(rows.T)
    after, there = codes[0] < none, codes[1:] < none

    def step(values: Floats) -> tuple[Counts, Counts, float]:
        (stop, *attraction), gamma = np.append(values, 0.0)[codes], values[-1] if leaves else 1.0
        # The chance of no click from each place of the tail on, if it is examined; and just before
        # that is known.
        silent, onward = np.ones((2, depth + 1, len(weight)))
        for place in reversed(range(depth)):
            silent[place] = (1 - attraction[place]) * onward[place + 1]
            onward[place] = 1 - gamma + gamma * silent[place]
        chance = np.where(after, stop + (1 - stop) * onward[0], silent[0])
        share = weight / np.maximum(chance, TINY)
        reached = np.zeros((depth, len(weight)))
        reached[0] = np.where(after, share * (1 - stop) * gamma * silent[0], weight) * there[0]
        for place in range(1, depth):
            onto = reached[place - 1] * there[place] * gamma
            reached[place] = onto * silent[place] / np.maximum(onward[place], TINY)
        hit = np.bincount(codes[0], share * stop, none + 1)[:-1]
        tried = np.bincount(codes.ravel(), np.vstack([weight, reached]).ravel(), none + 1)[:-1]
        if leaves:
            hit[-1] = reached[0, after].sum() + reached[1:].sum()
            at_end = (share * (1 - stop) * onward[0])[after].sum()
            tried[-1] = at_end + (reached[:-1] * there[1:]).sum()
        of_tails = float(weight @ np.log(np.maximum(chance, TINY)))
        likelihood = log_binomial(hits, trials, values) + of_tails
        return hits + hit, trials + tried, likelihood

    return maximised(step, none, **settings)
