"""What a search costs: the latency of each query, percentiles with intervals, throughput, index and cost.

Each query is searched several times, one query at a time::

    round    order of the queries, drawn anew
    warm-up  q2 q1 q3    not counted
    1        q3 q2 q1    so that a machine that becomes slower does not make the last query slow
    2        q1 q3 q2
             latency of q1 = the median of its rounds

The percentiles are over the queries. Latencies have long tails, so no normal interval fits. The interval of a
percentile ends at two of the sorted latencies: how many of n queries lie below the true percentile p is binomial,
whatever the distribution is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rankeval._checks import check_count, check_number, check_share, count, require
from rankeval.comparison.tables import WithTable
from rankeval.render.tables import Table
from rankeval.significance.declarations import Floats, Rng
from rankeval.text.terms import as_texts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERCENTILES = (50, 90, 95, 99)
LATENCY = "Latency (ms)"
"""The column of ``Profile.per_query``."""


@dataclass(frozen=True, eq=False)
class Profile(WithTable):
    """The cost of a search, with the latency of each query.

    Attributes
    ----------
    table : DataFrame
        Columns: quantity, value, ci_low, ci_high, coverage. Quantities: latency_p50_ms, latency_p90_ms, latency_p95_ms
        and latency_p99_ms, the least latency that so many percent of the queries do not exceed; queries_per_second, one
        query at a time; index_seconds, index_bytes and cost_per_query, as given. The interval of a percentile ends at
        two of the sorted latencies. Its coverage is the exact chance to hold the percentile of the queries that these
        are a sample of, and at least the level asked for; nan if there are too few queries for it.
    per_query : DataFrame
        A row per query, index ``qid``: "Latency (ms)", the median of the repeats in milliseconds, and "Cost" if it was
        given. `rankeval.compare` takes it as the scores of a system, and says "is faster than".
    name : str
        The name of the system; "" without one.
    repeats : int
        Times that each query was counted.
    notes : tuple of str
        Sentences that a reader of the numbers must see.

    Examples
    --------
    >>> import rankeval as rk
    >>> found = rk.profile(str.split, {"q1": "new guinea", "q2": "economic development"}, repeats=3)
    >>> found.per_query.index.tolist(), found.table["quantity"].tolist()[:2]
    (['q1', 'q2'], ['latency_p50_ms', 'latency_p90_ms'])
    """

    table: pd.DataFrame
    per_query: pd.DataFrame
    name: str = ""
    repeats: int = 1
    notes: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """What was measured, in one line."""
        of = f" of {self.name}" if self.name else ""
        return f"Cost{of}: {count(len(self.per_query), 'query')}, each searched {count(self.repeats, 'time')}"

    def plot(self) -> Figure:
        """Draw the latencies from the fastest query to the slowest, with their mean, and name the slowest.

        Returns
        -------
        Figure
            Not registered with pyplot.
        """
        from rankeval.render import plots

        return plots.sorted_scores(self.per_query)

    def _laid_out(self) -> Table:
        return Table(self.table, caption=self.caption, notes=self.notes)


def profile(
    search: Any,
    queries: Any,
    *,
    repeats: int = 5,
    warmup: int = 1,
    name: str = "",
    index_seconds: float | None = None,
    index_bytes: float | None = None,
    cost: float | Mapping[Any, float] | None = None,
    confidence_level: float = 0.95,
    rng: Rng = 0,
) -> Profile:
    """Search each query several times, one at a time, and say how long it takes.

    Parameters
    ----------
    search : callable or object with a method ``search``
        Called with one query; or its method is called with a mapping of one query id to its query, as that of
        `rankeval.text.VectorSpace`.
    queries : mapping, Series, frame or path
        Queries by id. Values of a mapping or Series may be whatever ``search`` takes; frames and paths have texts, as
        in ``VectorSpace.search``.
    repeats : int, default 5
        Rounds that count. The latency of a query is the median of its rounds.
    warmup : int, default 1
        Rounds before them that do not count: they fill caches.
    name : str, optional
        The name of the system.
    index_seconds, index_bytes : float, optional
        The time that indexing took, and the size of the index, as you measured them.
    cost : float or mapping of query id to float, optional
        The cost of a query, in your unit of money: one number for all, or by query.
    confidence_level : float, default 0.95
        The least coverage of the intervals of percentiles.
    rng : int, Generator or None, default 0
        Seed of the order of the queries, which each round draws anew: a machine that becomes slower then makes no
        query look slower than another one.

    Returns
    -------
    Profile
        Percentiles, throughput, and the latency of each query.

    Raises
    ------
    InvalidInput
        If ``search`` is neither, there is no query, or a number is out of its range. Errors of ``search`` itself are
        raised as they are, with a note that names the query.

    Notes
    -----
    The interval of a percentile p of n queries ends at the order statistics r and s with binomial probabilities
    P(B < r) and P(B >= s) of at most half of 1 - confidence_level each (David and Nagaraja, Order Statistics, 2003,
    section 7.1). For p99 at .95 that takes 368 queries.

    Examples
    --------
    >>> import time
    >>> found = profile(time.sleep, {"short": 0.001, "long": 0.03}, repeats=1, cost=0.002)
    >>> found.per_query.idxmax()["Latency (ms)"], found.table.iloc[-1].tolist()[0]
    ('long', 'cost_per_query')
    """
    check_count("repeats", repeats)
    check_count("warmup", warmup, least=0)
    check_share("confidence_level", confidence_level)
    asked = dict(queries.items() if isinstance(queries, Mapping | pd.Series) else as_texts(queries, "queries", "qid"))
    require(asked, "queries", "none", "at least one query")
    method = search if callable(search) else getattr(search, "search", search)
    require(callable(method), "search", type(search), "a function of one query, or an object with a method search")
    calls = {qid: partial(method, query if method is search else {qid: query}) for qid, query in asked.items()}
    seconds = _timed(calls, warmup + repeats, np.random.default_rng(rng))[warmup:]
    ids = pd.Index(asked, name="qid", tupleize_cols=False)
    per_query = pd.DataFrame({LATENCY: 1000 * np.median(seconds, axis=0)}, index=ids)
    rows = [_percentile(np.sort(per_query[LATENCY].to_numpy()), percent, confidence_level) for percent in PERCENTILES]
    plain = {"queries_per_second": seconds.size / seconds.sum(), "index_seconds": index_seconds}
    plain |= {"index_bytes": index_bytes, "cost_per_query": None}
    if cost is not None:
        per_query["Cost"] = pd.Series(cost, index=ids, dtype=np.float64)
        plain["cost_per_query"] = per_query["Cost"].mean(skipna=False)
    for quantity, value in plain.items():
        if value is not None:
            check_number(quantity, value, least=0)
            rows.append((quantity, value, np.nan, np.nan, np.nan))
    table = pd.DataFrame(rows, columns=["quantity", "value", "ci_low", "ci_high", "coverage"])
    lacking = table["quantity"][: len(PERCENTILES)][table["coverage"].isna()]
    level = f"{100 * confidence_level:g} % interval: {count(len(asked), 'query')} are too few"
    of_rounds = f"each latency is the median of {count(repeats, 'round')} in random order, one query at a time"
    notes = [of_rounds, "other load on this machine is in the numbers", *(f"{one} has no {level}" for one in lacking)]
    return Profile(table, per_query, name, repeats, tuple(notes))


def _timed(calls: Mapping[Any, Callable[[], Any]], n_rounds: int, rng: np.random.Generator) -> Floats:
    """Return the seconds of each call: a row per round, a column per query."""
    spent, listed = np.empty((n_rounds, len(calls))), list(calls.items())
    for seconds in spent:
        for place in rng.permutation(len(listed)):
            qid, call = listed[place]
            started = perf_counter()
            try:
                call()
            except Exception as error:
                error.add_note(f"rankeval.profile searched the query {qid!r}")
                raise
            seconds[place] = perf_counter() - started
    return spent


def _percentile(ordered: Floats, percent: int, level: float) -> tuple[Any, ...]:
    """Return the row of a percentile of sorted latencies; nan for the interval that so few have not."""
    from scipy.stats import binom

    n = len(ordered)
    below = binom(n, percent / 100).cdf(np.arange(-1, n + 1))  # at r: the chance of fewer than r below
    low = int(np.searchsorted(below, (1 - level) / 2, side="right")) - 1
    high = int(np.searchsorted(below, (1 + level) / 2))
    known = low >= 1 and high <= n
    ends = (ordered[low - 1], ordered[high - 1], below[high] - below[low]) if known else (np.nan, np.nan, np.nan)
    return (f"latency_p{percent}_ms", np.percentile(ordered, percent, method="inverted_cdf"), *ends)
