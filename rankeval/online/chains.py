"""The models of a user who goes down the list and may stop: cascade, DCM, SDBN and DBN as one chain.

The user examines position 1. An examined item is clicked with its attraction. After a click the user stops with a
probability (1 in the cascade model, of the position in DCM, of the pair in SDBN and DBN). Who has not stopped goes on
to the next position with the probability gamma (1 in all but DBN).

All positions down to the last click were examined, and after each click but the last the user went on: those are
counts. Only the *tail*, the items below the last click, is uncertain, and EM goes over the distinct tails::

    list    a b c d e        tail
    clicks  . x . x .   ->   e, after a click on d at position 4
    clicks  . . . . .   ->   a b c d e, after no click

In the cascade model nothing follows a click: its tail is empty. The parameters are one array, the attraction of each
pair, then the probabilities to stop, then gamma if it is one; a code says the place in it, and the code behind all
stands for "none", with probability 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankeval.online.factors import TINY, Codes, Counts, Fitted, Mask, blocks, log_binomial, maximised
from rankeval.online.logs import Ints
from rankeval.significance.declarations import Floats


def distinct(rows: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Return the distinct rows and the sum of the weights of each."""
    found, at = np.unique(rows, axis=0, return_inverse=True)
    return found, np.bincount(at.ravel(), weights).astype(np.float64)


def counted(codes: Codes | Ints, mask: Mask, weights: Ints, size: int) -> Counts:
    """Return how often each code stands where the mask is true, in rows with weights."""
    return np.bincount(codes[mask], np.broadcast_to(weights[:, None], mask.shape)[mask], size)


def fit_chain(
    pairs: Codes, clicked: Mask, counts: Ints, *, n_pairs: int, stops: str, leaves: bool, **settings: Any
) -> Fitted:
    """Return attraction by pair, the probabilities to stop after a click, and gamma, as ``maximised`` returns them.

    Parameters
    ----------
    pairs : array of shape (n_impressions, depth)
        The pair at each position as a code; ``n_pairs`` below the end of the list.
    clicked : array of shape (n_impressions, depth)
        Whether it was clicked.
    counts : array of shape (n_impressions,)
        How often the list was shown and clicked so.
    n_pairs : int
        Number of pairs.
    stops : {"always", "position", "pair"}
        On which the probability to stop depends. Stops by position are those of all positions but the last.
    leaves : bool
        Whether gamma is a parameter; else it is 1.
    **settings
        Of ``maximised`` in ``rankeval.online.factors``: prior, tolerance, max_iter.
    """
    depth = pairs.shape[1]
    none = n_pairs + {"always": 0, "position": depth - 1, "pair": n_pairs}[stops] + leaves
    places, found = np.arange(depth), []
    hits, trials = np.zeros((2, none))
    for part, clicks, weights in blocks(pairs, clicked, counts):
        last = np.where(clicks, places + 1, 0).max(axis=1)
        stop = n_pairs + (part if stops == "pair" else np.broadcast_to(places, part.shape))
        hits += counted(part, clicks, weights, none)
        trials += counted(part, places < last[:, None], weights, none)
        trials += counted(stop, clicks & (places < last[:, None] - 1), weights, none)
        hits[-1], trials[-1] = np.array([hits[-1], trials[-1]]) + leaves * (weights @ np.maximum(last - 1, 0))
        padded = np.pad(np.where(part < n_pairs, part, none), ((0, 0), (0, depth)), constant_values=none)
        tail = np.take_along_axis(padded, last[:, None] + places, axis=1)
        tail[(stops == "always") & (last > 0)] = none
        # Whether the user stopped is open after a click that is not on the last item of the list.
        at_last = np.where((last > 0) & (tail[:, 0] < none), stop[np.arange(len(last)), last - 1], none)
        found.append(distinct(np.column_stack([at_last, tail]), weights))
    rows, weight = distinct(*map(np.concatenate, zip(*found, strict=True)))
    codes = np.ascontiguousarray(rows.T)
    after, there = codes[0] < none, codes[1:] < none

    def step(values: Floats) -> tuple[Counts, Counts, float]:
        (stop, *attraction), gamma = np.append(values, 0.0)[codes], values[-1] if leaves else 1.0
        # The chance of no click from each place of the tail on, if it is examined; and just before that is known.
        silent, onward = np.ones((2, depth + 1, len(weight)))
        for place in reversed(range(depth)):
            silent[place] = (1 - attraction[place]) * onward[place + 1]
            onward[place] = 1 - gamma + gamma * silent[place]
        chance = np.where(after, stop + (1 - stop) * onward[0], silent[0])
        share = weight / np.maximum(chance, TINY)
        reached = np.zeros((depth, len(weight)))
        reached[0] = np.where(after, share * (1 - stop) * gamma * silent[0], weight) * there[0]
        for place in range(1, depth):
            reached[place] = reached[place - 1] * there[place] * gamma * silent[place] / np.maximum(onward[place], TINY)
        hit = np.bincount(codes[0], share * stop, none + 1)[:-1]
        tried = np.bincount(codes.ravel(), np.vstack([weight, reached]).ravel(), none + 1)[:-1]
        if leaves:
            hit[-1] = reached[0, after].sum() + reached[1:].sum()
            tried[-1] = (share * (1 - stop) * onward[0])[after].sum() + (reached[:-1] * there[1:]).sum()
        likelihood = log_binomial(hits, trials, values) + float(weight @ np.log(np.maximum(chance, TINY)))
        return hits + hit, trials + tried, likelihood

    return maximised(step, none, **settings)
