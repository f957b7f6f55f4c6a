"""The models of a user who goes down the list and may stop: cascade, DCM, SDBN and DBN as one chain.

The user examines position 1. An examined item is clicked with its attraction. After a click the user stops with a
probability (1 in the cascade model, of the position in DCM, of the pair in SDBN and DBN). Who has not stopped goes on
to the next position with the probability gamma (1 in all but DBN).

All positions down to the last click were examined, and after each click but the last the user went on: those are
counts. Only the *tail*, the items below the last click, is uncertain, and EM goes over the distinct tails::

    list    a b c d e        tail
    clicks  . x . x .   ->   e, after a click on d at position 4
    clicks  . . . . .   ->   a b c d e, after no click
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankeval.online.factors import TINY, Codes, Mask, blocks, log_binomial, maximised
from rankeval.online.logs import Ints
from rankeval.significance.declarations import Floats


def distinct(rows: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Return the distinct rows and the sum of the weights of each."""
    found, at = np.unique(rows, axis=0, return_inverse=True)
    return found, np.bincount(at.ravel(), weights).astype(np.float64)


def fit_chain(
    pairs: Codes, clicked: Mask, counts: Ints, *, n_pairs: int, stops: str, leaves: bool, **settings: Any
) -> tuple[Floats, Floats, float, Floats]:
    """Return attraction by pair, the probabilities to stop after a click, gamma, and the objectives of EM.

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
        Of ``maximised`` in `rankeval.online.factors`: prior, tolerance, max_iter.
    """
    depth = pairs.shape[1]
    n_stops = {"always": 0, "position": depth, "pair": n_pairs}[stops]
    places, found = np.arange(depth), []
    hits, trials = np.zeros((2, n_pairs + n_stops + 1))

    def counted(part: Codes, weights: Ints, on_pairs: Mask, on_stops: Mask, onward: Ints) -> Floats:
        stopping = part if stops == "pair" else np.broadcast_to(places, part.shape)
        each, on_stops = np.broadcast_to(weights[:, None], part.shape), on_stops & (n_stops > 0)
        attracted = np.bincount(part[on_pairs], each[on_pairs], n_pairs)
        return np.concatenate([attracted, np.bincount(stopping[on_stops], each[on_stops], n_stops), [weights @ onward]])

    for part, clicks, weights in blocks(pairs, clicked, counts):
        last = np.where(clicks, places + 1, 0).max(axis=1)
        above, onward = places < last[:, None], leaves * np.maximum(last - 1, 0)
        hits += counted(part, weights, clicks, np.zeros_like(clicks), onward)
        trials += counted(part, weights, above, clicks & (places < last[:, None] - 1), onward)
        # Column 0 is the pair that was clicked last, if any, and the tail follows.
        padded = np.pad(part, ((0, 0), (1, depth)), constant_values=n_pairs)
        tail = np.take_along_axis(padded, last[:, None] + np.arange(depth + 1), axis=1)
        found.append(distinct(np.column_stack([last, tail]), weights))
    rows, weight = distinct(*map(np.concatenate, zip(*found, strict=True)))
    last, tails = rows[:, 0], np.ascontiguousarray(rows[:, 2:].T)
    there, after = tails < n_pairs, last > 0
    # A click on the last item of a list says nothing about going on.
    open_ended = np.flatnonzero(after & there[0] & (n_stops > 0))
    at = rows[open_ended, 1] if stops == "pair" else last[open_ended] - 1
    tail_trials = np.bincount(at, weight[open_ended], n_stops)

    def step(values: Floats) -> tuple[Floats, Floats, float]:
        attraction, gamma = np.append(values[:n_pairs], 0.0)[tails], values[-1] if leaves else 1.0
        quits = np.where(after & (n_stops == 0), 1.0, 0.0)
        quits[open_ended] = values[n_pairs + at]
        # The chance of no click from each place of the tail on, if it is examined; and just before that is known.
        silent, onward = np.ones((depth + 1, len(weight))), np.ones((depth + 1, len(weight)))
        for place in reversed(range(depth)):
            silent[place] = (1 - attraction[place]) * onward[place + 1]
            onward[place] = 1 - gamma + gamma * silent[place]
        chance = np.where(after, quits + (1 - quits) * onward[0], silent[0])
        share = weight / np.maximum(chance, TINY)
        reached = np.zeros((depth, len(weight)))
        reached[0] = np.where(after, share * (1 - quits) * gamma * silent[0], weight) * there[0]
        for place in range(1, depth):
            reached[place] = reached[place - 1] * there[place] * gamma * silent[place] / np.maximum(onward[place], TINY)
        stayed = (share * (1 - quits) * onward[0])[open_ended].sum() + (reached[:-1] * there[1:]).sum()
        went = reached[0, open_ended].sum() + reached[1:].sum()
        tail_hits = np.bincount(at, (share * quits)[open_ended], n_stops)
        examined = np.bincount(tails.ravel(), reached.ravel(), n_pairs + 1)[:n_pairs]
        likelihood = log_binomial(hits, trials, values) + float(weight @ np.log(np.maximum(chance, TINY)))
        return (
            hits + np.concatenate([np.zeros(n_pairs), tail_hits, [leaves * went]]),
            trials + np.concatenate([examined, tail_trials, [leaves * stayed]]),
            likelihood,
        )

    values, objectives = maximised(step, n_pairs + n_stops + 1, **settings)
    attraction, stopping, gamma = np.split(values, [n_pairs, n_pairs + n_stops])
    return attraction, stopping, float(gamma[0]) if leaves else 1.0, objectives
