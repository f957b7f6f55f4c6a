"""The cost of a search: latencies, percentiles with intervals, throughput, index and cost.

Each query is searched several times, one query at a time, by the systems in turn::

    round    order of the queries, and for each of the systems, drawn anew
    warm-up  q2: b a    q1: a b    q3: b a    not counted
    1        q3: a b    q2: a b    q1: b a    so that load makes neither the last query slow,
    2        q1: b a    q3: b a    q2: a b    nor the last system
             latency of q1 for a = the median of its rounds

The percentiles are over the queries. Latencies have long tails, so no normal interval fits. The
interval of a percentile ends at two of the sorted latencies: for any distribution, the number of
queries below the true percentile is binomial.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import check_count, check_number, check_share, count, few, require
from rankeval._visible import escaping
from rankeval.comparison.recorded import LIMITS, Recorded
from rankeval.io.columns import labels
from rankeval.io.texts_by_id import as_texts
from rankeval.render.tables import Table
from rankeval.retrieval.searches import Search, asked, naming_query, search_of
from rankeval.significance.declarations import Floats, Rng, generator_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERCENTILES = (50, 90, 95, 99)
LATENCY, COST = "latency_ms", "cost"
"""The columns of ``Profile.per_query``."""
ALONE = "timed alone; to compare systems, time them in turn: profile({name: search, ...})"


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Profile(Recorded):
    """The cost of a search, with the latency of each query.

    Attributes
    ----------
    table : DataFrame
        Columns: quantity, value, ci_low, ci_high, coverage. Quantities: latency_p50_ms,
        latency_p90_ms, latency_p95_ms and latency_p99_ms, the least latency that so many percent of
        the queries do not exceed; queries_per_second, one query at a time; index_seconds,
        index_bytes and cost_per_query, as given. The interval of a percentile ends at two of the
        sorted latencies. Its coverage is the exact chance to include the percentile of the queries
        that these are a sample of, and at least the requested level; nan if there are too few
        queries for it.
    per_query : DataFrame
        A row per query, index ``qid``: latency_ms, the median of the repeats in milliseconds, and
        cost if it was given. `rankeval.compare` takes it as the scores of a system, and says "is
        faster than".
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

    _row_key = "quantity"
    _row_ends: ClassVar[Mapping[str, str]] = {"value": "", **LIMITS}

    table: pd.DataFrame
    per_query: pd.DataFrame
    name: str = ""
    repeats: int = 1
    notes: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """The system, and how many queries were searched how often, in one line."""
        of = f" of {self.name}" if self.name else ""
        n_queries = count(len(self.per_query), "query")
        return f"Cost{of}: {n_queries}, each searched {count(self.repeats, 'time')}"

    def plot(self) -> Figure:
        """Draw the latencies from the fastest to the slowest query, which is named, and their mean.

        Returns
        -------
        Figure
            Not registered with pyplot.
        """
        from rankeval.render import plots

        return plots.sorted_scores(self.per_query)

    def _laid_out(self) -> Table:
        return Table(self.table, caption=self.caption, notes=self.notes)


@overload
def profile(search: Mapping[str, Any], queries: Any, **options: Any) -> dict[str, Profile]: ...


@overload
def profile(search: Any, queries: Any, **options: Any) -> Profile: ...


# mypy wants **options here too; with these names a wrong one is refused.
@explained  # type: ignore[misc]
def profile(
    search: Any,
    queries: Any,
    *,
    k: int | None = None,
    repeats: int = 5,
    warmup: int = 1,
    name: str = "",
    index_seconds: float | Mapping[str, float] | None = None,
    index_bytes: float | Mapping[str, float] | None = None,
    cost: float | Mapping[Any, Any] | None = None,
    confidence_level: float = 0.95,
    rng: Rng = 0,
) -> Profile | dict[str, Profile]:
    """Search each query several times, one at a time, and say how long it takes.

    To compare systems, time them in one call, ``profile({"bm25": a, "dense": b}, queries)``: in
    each round each query goes to all of them, so that load on the machine hits all alike. Timed one
    after the other, the same system may seem to be faster than itself.

    Parameters
    ----------
    search : callable, object with a method ``search`` or ``transform``, or mapping of str to these
        Called for one query, as in `rankeval.retrieve`. A mapping has several systems by name.
    queries : mapping, Series, frame or path
        Queries by id. A mapping may have any values that ``search`` takes; a Series, frame or path
        has texts, as in ``VectorSpace.search``.
    k : int, optional
        Documents to ask for, of a search that takes their number, as in `rankeval.retrieve`; by
        default the search's own number.
    repeats : int, default 5
        Rounds that count. The latency of a query is the median of its rounds.
    warmup : int, default 1
        Rounds before them that do not count: they fill caches.
    name : str, optional
        The name of the system, if ``search`` is one.
    index_seconds, index_bytes : float or mapping of str to float, optional
        The time that indexing took, and the size of the index, as you measured them; of several
        systems by name.
    cost : float or mapping of query id to float, optional
        The cost of a query, in your unit of money: one number for all, or by query; of several
        systems a mapping of their names to these.
    confidence_level : float, default 0.95
        The least coverage of the intervals of percentiles.
    rng : int, Generator or None, default 0
        Seed of the order of queries and systems, which each round draws anew: a machine that
        becomes slower then makes no query or system look slower than another one.

    Returns
    -------
    Profile or dict of str to Profile
        Percentiles, throughput, and the latency of each query; of several systems by name.

    Raises
    ------
    InvalidInput
        If ``search`` is neither, or returns before it has run (a coroutine, an iterator), there is
        no query or an id is repeated, or a number is out of its range. Errors of ``search`` itself
        are raised as they are, with a note that names the query.

    Notes
    -----
    The interval of a percentile p of n queries ends at the order statistics r and s with binomial
    probabilities P(B < r) and P(B >= s) of at most half of 1 - confidence_level each (David and
    Nagaraja, Order Statistics, 2003, section 7.1). For p99 at .95 that takes 368 queries.

    Examples
    --------
    >>> import time
    >>> import rankeval as rk
    >>> def slow(seconds):
    ...     time.sleep(seconds + 0.05)
    >>> queries = {"q1": 0.001, "q2": 0.003, "q3": 0.03}
    >>> systems = {"slow": slow, "fast": time.sleep}
    >>> profiles = profile(systems, queries, repeats=1, cost={"slow": 0.002})
    >>> profiles["fast"].per_query.idxmax()["latency_ms"]
    'q3'
    >>> profiles["slow"].table.iloc[-1].tolist()[0]
    'cost_per_query'
    >>> per_query = {name: costs.per_query for name, costs in profiles.items()}
    >>> rk.compare(per_query, baseline="slow", measures="latency_ms").headline.partition(":")[0]
    'fast is faster than slow'
    """
    check_count("repeats", repeats)
    check_count("warmup", warmup, least=0)
    check_share("confidence_level", confidence_level)
    require(isinstance(name, str), "name", name, "text")
    several = isinstance(search, Mapping)
    systems = dict(search) if several else {name: search}
    are_named = not several or (search and not name)
    require(are_named, "search", search, "one system with name=, or systems by name")
    texts = dict(queries) if isinstance(queries, Mapping) else as_texts(queries, "queries", "qid")
    require(texts, "queries", "none", "at least one query")
    known: dict[str, Any] = {
        "index_seconds": index_seconds,
        "index_bytes": index_bytes,
        "cost": cost,
    }
    for key, value in known.items():
        known[key] = (value or {}) if several else {name: value}
        fits = isinstance(known[key], Mapping) and known[key].keys() <= systems.keys()
        require(fits, key, value, f"a mapping of names of systems: {few(list(systems))}")
    searches = {label: search_of(system, k) for label, system in systems.items()}
    ids = pd.Index(texts, name="qid", tupleize_cols=False)
    note = f"timed in turn: {few(list(systems))}" if several else ALONE
    timed = _timed(searches, texts, warmup + repeats, generator_of(rng))
    profiles = {}
    for label, seconds in zip(systems, timed, strict=True):
        own = {key: values[label] for key, values in known.items() if values.get(label) is not None}
        profiles[label] = _profiled(label, seconds[warmup:], ids, note, own, confidence_level)
    return profiles if several else profiles[name]


def _profiled(
    name: str, seconds: Floats, ids: pd.Index[Any], note: str, own: dict[str, Any], level: float
) -> Profile:
    """Return the profile of a system from its seconds: a row per round, a column per query."""
    per_query = pd.DataFrame({LATENCY: 1000 * np.median(seconds, axis=0)}, index=ids)
    ordered = np.sort(per_query[LATENCY].to_numpy())
    rows = [_percentile(ordered, percent, level) for percent in PERCENTILES]
    cost, plain = own.pop("cost", None), {"queries_per_second": seconds.size / seconds.sum(), **own}
    if cost is not None:
        per_query[COST] = labels(pd.Series(cost, index=ids), "cost").astype(np.float64)
        check_number("cost_per_query", per_query[COST].min(skipna=False), least=0)
        plain["cost_per_query"] = per_query[COST].mean()
    for quantity, value in plain.items():
        check_number(quantity, value, least=0)
        rows.append((quantity, value, np.nan, np.nan, np.nan))
    table = pd.DataFrame(rows, columns=["quantity", "value", "ci_low", "ci_high", "coverage"])
    lacking = table["quantity"][: len(PERCENTILES)][table["coverage"].isna()]
    rounds = (
        f"each latency is the median of {count(len(seconds), 'round')} in random order, one query "
        "at a time, on this machine under its load at that time"
    )
    notes = [rounds, note]
    few_queries = f"{100 * level:g} % interval with only {count(len(ids), 'query')}"
    notes += [f"{quantity} has no {few_queries}" for quantity in lacking]
    return Profile(table, per_query, name, len(seconds), tuple(notes))


def _timed(
    searches: Mapping[str, Search],
    texts: Mapping[Any, Any],
    n_rounds: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the seconds of each search, of shape (n_systems, n_rounds, n_queries)."""
    systems, queries = [*searches.items()], [*texts.items()]
    spent = np.empty((len(systems), n_rounds, len(queries)))
    for round_ in range(n_rounds):
        for place in rng.permutation(len(queries)):
            for system in rng.permutation(len(systems)):
                name, search = systems[system]
                qid, text = queries[place]
                with naming_query("profile", qid, name):
                    _, spent[system, round_, place] = asked(search, qid, text)
    return spent


def _percentile(ordered: Floats, percent: int, level: float) -> tuple[Any, ...]:
    """Return the row of a percentile of sorted latencies; nan if too few for an interval."""
    from scipy.stats import binom

    n = len(ordered)
    # At r: the chance of fewer than r below.
    below = binom(n, percent / 100).cdf(np.arange(-1, n + 1))
    low = int(np.searchsorted(below, (1 - level) / 2, side="right")) - 1
    high = int(np.searchsorted(below, (1 + level) / 2))
    ends = (np.nan, np.nan, np.nan)
    if low >= 1 and high <= n:
        ends = (ordered[low - 1], ordered[high - 1], below[high] - below[low])
    value = np.percentile(ordered, percent, method="inverted_cdf")
    return (f"latency_p{percent}_ms", value, *ends)
