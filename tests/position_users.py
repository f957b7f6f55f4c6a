"""Logs of position-based users: P(click) = examination(position) * relevance(query, document)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rankeval.online import ClickLog

DEPTH = 10


def simulated(relevance, n, shown, examination, *, rankers_rng, rng):
    """Return the log of n lists of 10, and the three rankings of each query that its lists are made of.

    Lists are "shuffled", "swapped" (position 1 with another one), of one ranker, or of the three "rankers" in turn.
    Relevance has a row per query and a column per document.
    """
    noise = rankers_rng.normal(0, 0.3, (3, *relevance.shape))
    rankers = np.argsort(-(relevance + noise), axis=2)[:, :, :DEPTH]
    query, each = rng.integers(len(relevance), size=n), np.arange(n)
    lists = rankers[rng.integers(3, size=n) if shown == "rankers" else 0, query]
    if shown == "shuffled":
        lists = rng.permuted(lists, axis=1)
    if shown == "swapped":
        other = rng.integers(DEPTH, size=n)
        lists[each, 0], lists[each, other] = lists[each, other].copy(), lists[each, 0].copy()
    clicked = rng.random((n, DEPTH)) < examination * relevance[query[:, None], lists]
    place = np.tile(np.arange(1, DEPTH + 1), n)
    ids = {"impression": np.repeat(each, DEPTH), "qid": np.repeat(query, DEPTH), "position": place}
    return ClickLog.from_frame(pd.DataFrame({**ids, "docid": lists.ravel(), "clicked": clicked.ravel()})), rankers
