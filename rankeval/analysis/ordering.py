"""Orders of systems: the ranks that are left to each, and how far two measures or two collections agree on the order.

An *order* is a column of means, a row per system. Means come in three forms::

    system -> scores                     an order by each measure, compared with one another
    system -> {collection: scores}       an order on each collection, compared measure by measure
    a frame of means, a row per system   an order by each column

Columns are compared as gains, so that for ARP, where less is better, the lowest mean leads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import count, few, refuse
from rankeval._registry import chosen
from rankeval._visible import PowerlessNote, escaping
from rankeval.comparison.comparing import compare
from rankeval.comparison.inputs import (
    Cells,
    LowerIsBetter,
    Measures,
    Scores,
    by_collection,
    cell_scores,
    check_number_of_systems,
    shared_scores,
)
from rankeval.comparison.recorded import Recorded
from rankeval.comparison.result import Comparison
from rankeval.errors import InvalidInput, NotedWarning, warn
from rankeval.evaluation.by_query import labels_of
from rankeval.measures import Measure, direction
from rankeval.render.tables import Table, number
from rankeval.significance.columns import UNPAIRED
from rankeval.significance.declarations import CORRECTIONS, TESTS, Floats, Rng
from rankeval.significance.orders import (
    competition_ranks,
    swaps_and_ties,
    tau_ap_a,
    tau_ap_b,
    tau_b,
)

Key = tuple[str, ...]
"""The label of an order: ``(name,)``, or ``(measure, collection)``."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class OrderAgreement(Recorded):
    """The agreement of each two orders of systems.

    Attributes
    ----------
    table : DataFrame
        A row for each two orders. Columns: measure (only if a and b are collections); a and b, the
        orders; n_systems, the systems that both have; tau_b, Kendall's tau-b; tau_ap, which weights
        the top of the orders more: the symmetric tau_AP,b of Urbano and Marrero (2017) if ``truth``
        is None, else the directed tau_AP,a of b against the truth a, the mean over all ways to
        break ties; swaps, the pairs of systems in other order; ties, the pairs tied in a, in b or
        in both. Both taus are 1 for equal orders and -1 for reversed ones.
    means : DataFrame
        A row per system and a column per order: the means that the orders are made of. Columns are
        (measure, collection) if a and b are collections.
    truth : str or None
        The order that the others are compared with.
    notes : tuple of str
        Sentences that a reader of the numbers must see.

    Examples
    --------
    >>> import pandas as pd
    >>> import rankeval as rk
    >>> means = pd.DataFrame({"AP": [0.3, 0.2, 0.1], "RR": [0.5, 0.6, 0.4]}, index=["a", "b", "c"])
    >>> print(rk.analysis.order_agreement(means).to_markdown().splitlines()[4])
    | AP | RR | 3 | 0.333 | 0.000 | 1 | 0 |
    """

    table: pd.DataFrame
    means: pd.DataFrame
    truth: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """The orders and the form of tau_AP in one line."""
        about = f"Agreement of {count(self.means.shape[1], 'order')} of {count(len(self.means), 'system')}"
        directed = f" with that by {self.truth}; tau_AP is directed, the mean over tie breakings (tau_AP,a)"
        return about + ("; tau_AP is symmetric (tau_AP,b)" if self.truth is None else directed)

    @property
    def ranks(self) -> pd.DataFrame:
        """The rank of each system in each order, the best one 1; ties share the best of their ranks.

        Returns
        -------
        DataFrame
            Shaped like ``means``; missing if an order lacks a system.
        """
        ranks = self.means.copy()
        for column in self.means:
            means = self.means[column]
            ranks.loc[means.notna(), column] = competition_ranks(_gains(means))
        return ranks.astype("Int64")

    def swaps(self, a: str, b: str, *, measure: str | None = None) -> pd.DataFrame:
        """List the pairs of systems that two orders have in other order.

        Parameters
        ----------
        a, b : str
            Two orders, as in the table.
        measure : str, optional
            If a and b are collections, the measure; by default the only one.

        Returns
        -------
        DataFrame
            A row per pair: above_in_a, above_in_b (systems), difference_in_a, difference_in_b (the
            mean of the system that is above there less the mean of the other one).

        Raises
        ------
        UnknownName
            If there is no such order or measure.
        InvalidInput
            If a and b are collections with orders by several measures, and none is named.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> means = pd.DataFrame({"AP": [0.3, 0.2, 0.1], "RR": [0.5, 0.6, 0.4]}, index=["a", "b", "c"])
        >>> rk.analysis.order_agreement(means).swaps("AP", "RR").round(2)
          above_in_a above_in_b  difference_in_a  difference_in_b
        0          a          b              0.1              0.1
        """
        in_a, in_b = _both(self.means, self._key(a, measure), self._key(b, measure))
        first, second = np.nonzero(swaps_and_ties(_gains(in_a), _gains(in_b))[0])
        columns = {
            "above_in_a": in_a.index[first],
            "above_in_b": in_a.index[second],
            "difference_in_a": in_a.to_numpy()[first] - in_a.to_numpy()[second],
            "difference_in_b": in_b.to_numpy()[second] - in_b.to_numpy()[first],
        }
        return pd.DataFrame(columns)

    def _laid_out(self) -> Table:
        shown = self.table.rename(
            columns={"n_systems": "systems", "tau_ap": "tau AP", "tau_b": "tau b"}
        )
        short = dict.fromkeys(["tau b", "tau AP"], partial(number, digits=3))
        return Table(shown, short, caption=self.caption, notes=self.notes)

    def _key(self, order: str, measure: str | None) -> Key:
        keys = [_key(column) for column in self.means]
        chosen("order", order, [key[-1] for key in keys])
        if "measure" not in self.table:
            return (order,)
        measures = list(dict.fromkeys(key[0] for key in keys))
        if measure is None and len(measures) > 1:
            raise InvalidInput(
                f"the orders are by {len(measures)} measures; name one as measure=: {few(measures)}"
            )
        name = measures[0] if measure is None else measure
        return chosen("measure of the orders", name, measures), order


def _pairs(means: pd.DataFrame, truth: str | None) -> Iterator[tuple[Key, Key]]:
    """Yield the orders to compare, the true one first; those of collections are of one measure."""
    keys = [_key(column) for column in means]
    if truth is not None:
        chosen("order to take as truth", truth, [key[-1] for key in keys])
    for first, second in combinations(keys, 2):
        if first[:-1] != second[:-1]:
            continue
        if truth is None or first[-1] == truth:
            yield first, second
        elif second[-1] == truth:
            yield second, first


def _row(means: pd.DataFrame, a: Key, b: Key, *, directed: bool) -> dict[str, Any]:
    in_a, in_b = _both(means, a, b)
    n = len(in_a)
    common = f"the orders {a[-1]!r} and {b[-1]!r} have {count(n, 'system')} in common"
    refuse((n < 2, f"{common}; an order takes at least 2"))
    gains = _gains(in_a), _gains(in_b)
    swaps, ties = swaps_and_ties(*gains)
    tau_ap = tau_ap_a if directed else tau_ap_b
    row = {"measure": a[0]} if len(a) > 1 else {}
    return row | {
        "a": a[-1],
        "b": b[-1],
        "n_systems": n,
        "tau_b": tau_b(*gains),
        "tau_ap": tau_ap(*gains),
        "swaps": int(swaps.sum()),
        "ties": int(ties.sum()),
    }


def _both(means: pd.DataFrame, a: Key, b: Key) -> tuple[pd.Series[float], pd.Series[float]]:
    columns = {_key(column): means[column] for column in means}
    first, second = columns[a], columns[b]
    have = first.notna() & second.notna()
    return first[have], second[have]


def _gains(means: pd.Series[float]) -> Floats:
    """Return means so that the greater ones are better, of the systems that there are."""
    sign = direction(_key(means.name)[0]).sign or 1.0
    return np.asarray(sign * means.dropna(), dtype=np.float64)


def _key(column: Any) -> Key:
    return tuple(map(str, column)) if isinstance(column, tuple) else (str(column),)


UNSTEADY = 0.2
"""Resamples are too few if a p-value at alpha has a standard error above this share of alpha."""


@explained
def rank_intervals(
    systems: Mapping[str, Scores],
    *,
    measure: str | Measure | None = None,
    test: str = "randomization",
    correction: str = "max_t",
    alpha: float = 0.05,
    unpaired: str = "error",
    n_resamples: int = 9999,
    rng: Rng = 0,
    lower_is_better: LowerIsBetter = None,
    groups: Any = None,
) -> pd.DataFrame:
    """Rank systems by a measure, each with the range of ranks that comparing all pairs leaves.

    Parameters
    ----------
    systems : mapping of str to Evaluation or DataFrame
        As in `rankeval.compare`.
    measure : str or Measure, optional
        By default the only one that the systems share.
    test, correction : str, default "randomization" and "max_t"
        As in `rankeval.compare`, which has other defaults: all pairs are one family here, and max-T
        uses how their scores go together. The correction must control the chance of any false
        claim: "max_t", "holm", "bonferroni", "tukey".
    alpha : float, default 0.05
        In about 1 - alpha of the samples of queries, or more, the ranges contain all true ranks at
        once. With fewer than 50 queries and strong skew it is less: the guide to significance has
        the shares, and notes of `compare` too.
    unpaired : {"error", "skip"}, default "error"
        For queries that some systems lack, as in `rankeval.compare`.
    n_resamples : int, default 9999
        Number of resamples, of the test and for ``share_first``. If they are so few that the seed
        decides, there is a ``RankevalWarning``.
    rng : int, Generator or None, default 0
        Seed.
    lower_is_better : str, sequence of str, or mapping of str to bool, optional
        As in `rankeval.compare`.
    groups : Series or mapping by query id, DataFrame or array, optional
        The group of each query, as in `rankeval.compare`: ranges, means and ``share_first`` are
        then over groups.

    Returns
    -------
    DataFrame
        As `Comparison.ranks`: a row per system, the best first, with measure, mean, rank, rank_low,
        rank_high, and share_first, which describes the sample and is not the probability of being
        the best. ``attrs["caption"]`` names the test. The pairs and notes behind it are those of
        ``rk.compare(systems, test=test, correction=correction, groups=groups)``.

    Raises
    ------
    InvalidInput
        If the systems share several measures and none is named, the correction controls only the
        share of false claims, or the scores are refused by `rankeval.compare`.
    ConventionMismatch, QueryIdError, UnknownName
        As in `rankeval.compare`.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = {"a": [0.1, 0.2] * 4, "b": [0.5, 0.6] * 4, "c": [0.6, 0.5] * 4}
    >>> systems = {name: pd.DataFrame({"AP": values}) for name, values in scores.items()}
    >>> rank_intervals(systems)[["system", "rank", "rank_low", "rank_high"]]
      system  rank  rank_low  rank_high
    0      b     1         1          2
    1      c     1         1          2
    2      a     3         3          3
    """
    compared = compare(
        systems,
        measures=measure,
        test=test,
        correction=correction,
        alpha=alpha,
        unpaired=unpaired,
        n_resamples=n_resamples,
        rng=rng,
        lower_is_better=lower_is_better,
        groups=groups,
    )
    measures = compared.table["measure"].unique().tolist()
    found = ", ".join(measures)
    several = f"systems are ranked by one measure, found {found}; name one as measure="
    refuse((len(measures) > 1, several))
    ranks = compared.ranks
    _warn_of_few_resamples(compared)
    return ranks


def _warn_of_few_resamples(compared: Comparison) -> None:
    """Warn if the table would be another one with another seed, or if no range could be narrower than all ranks."""
    n, alpha, drawn = (
        int(compared.table["n_queries"].max()),
        compared.alpha,
        compared.settings.n_resamples,
    )
    for note in compared.notes:
        if isinstance(note, PowerlessNote):
            warn(note, NotedWarning)
    needed = math.ceil(alpha * (1 - alpha) / (alpha * UNSTEADY) ** 2)
    if drawn >= needed:
        return
    error = math.sqrt(alpha * (1 - alpha) / drawn)
    by_chance = TESTS[compared.settings.test].is_random(n) or CORRECTIONS[
        compared.settings.correction
    ].is_random(n)
    ranges = f"a p-value near {alpha:g} has a standard error of {error:.2g}, so ranges change with the seed, and "
    warn(
        f"n_resamples={drawn}: {ranges if by_chance else ''}share_first has a standard error of up to "
        f"{0.5 / math.sqrt(drawn):.2g}; ask for n_resamples={needed} or more"
    )


@explained
def order_agreement(
    systems: Any,
    *,
    measures: Measures | None = None,
    truth: str | None = None,
    unpaired: str = "error",
) -> OrderAgreement:
    """Say how far the orders of systems by several measures, or on several collections, agree.

    Parameters
    ----------
    systems : mapping or DataFrame
        System -> scores as in `rankeval.compare`: orders by measures. System -> {collection:
        scores}: orders on collections, for each measure. A frame of means, a row per system (the
        index, or a column ``system``), such as ``pd.DataFrame({name: ev.mean() for name, ev in
        evaluations.items()}).T``: orders by its columns. If a column is not a measure, greater
        values are better, unless its name says otherwise ("latency_ms"). Columns of
        offline means and of online results, such as each system's share of wins in interleaving,
        say how far a measure orders the systems as users do.
    measures : str, Measure or sequence of them, optional
        By default all means and geometric means that the systems share, or all columns of a frame
        of means.
    truth : str, optional
        The measure, collection or column whose order is taken as true. The others are compared with
        it alone, and ``tau_ap`` is then directed. By default all orders are compared with one
        another.
    unpaired : {"error", "skip"}, default "error"
        If a system lacks a query, a collection or a mean: refuse; or keep the queries common to all
        systems and, for each two orders, the systems that both have.

    Returns
    -------
    OrderAgreement
        Its table has a row for each two orders.

    Raises
    ------
    InvalidInput
        If there is only one order, an order of fewer than two systems, or scores are refused by
        `rankeval.compare`.
    ConventionMismatch
        If conventions or judgments differ within a collection.
    QueryIdError
        If queries are not the same in all systems.
    UnknownName
        If there is no such measure or truth.

    Notes
    -----
    Agreement describes: there is no test and no interval. Resampled queries add noise to both orders, so resampled
    values lie below the one observed: on 16 runs of TREC-COVID, tau-b of ``nDCG@10`` and RR is .90, and 95 % of its
    resampled values lie in [.68, .88]. To see which differences between systems are shown,
    use `rankeval.rank_intervals`.

    Examples
    --------
    >>> import pandas as pd
    >>> means = pd.DataFrame({"AP": [0.3, 0.2, 0.1], "RR": [0.5, 0.6, 0.4]}, index=["a", "b", "c"])
    >>> order_agreement(means).table.round(2)
        a   b  n_systems  tau_b  tau_ap  swaps  ties
    0  AP  RR          3   0.33     0.0      1     0
    >>> both = pd.DataFrame({"nDCG@10": [0.4, 0.5, 0.6], "win share": [0.4, 0.5, 0.7]}, index=["a", "b", "c"])
    >>> float(order_agreement(both, truth="win share").table["tau_b"].iloc[0])
    1.0
    """
    chosen("value of unpaired", unpaired, UNPAIRED)
    means, notes = _means(systems, measures, unpaired)
    if unpaired == "error" and means.isna().to_numpy().any():
        row, place = np.argwhere(means.isna().to_numpy())[0]
        raise InvalidInput(
            f"the order by {means.columns[place]!r} lacks system {means.index[row]!r}; give all orders the same "
            'systems, or pass unpaired="skip" to compare each two orders on the systems that both have'
        )
    names = [" on ".join(_key(column)) for column in means]
    rows = [_row(means, a, b, directed=truth is not None) for a, b in _pairs(means, truth)]
    found = f"found {', '.join(names) or 'none'}; give more measures or collections"
    refuse((not rows, f"agreement takes two orders or more, {found}"))
    for name, column in zip(names, means, strict=True):
        if competition_ranks(_gains(means[column])).max() == 1:
            notes.append(f"all systems are tied by {name}: there is no order to agree with")
    if unknown := [
        name for name, column in zip(names, means, strict=True) if not _is_known(_key(column)[0])
    ]:
        notes.append(
            f"no measures, so their greater values are taken to lead: {', '.join(unknown)}"
        )
    return OrderAgreement(pd.DataFrame(rows), means, truth, tuple(notes))


def _means(
    systems: Any, measures: Measures | None, unpaired: str
) -> tuple[pd.DataFrame, list[str]]:
    """Return a column per order, and notes on what was left out."""
    to_pandas = getattr(systems, "to_pandas", None)  # polars, Arrow
    frame = to_pandas() if callable(to_pandas) else systems
    if isinstance(frame, pd.DataFrame):
        return _given_means(frame, measures), []
    check_number_of_systems(systems)
    cells = by_collection(systems)
    if all(None not in parts for parts in cells.values()):
        return _means_on_collections(cells, measures, unpaired)
    return _shared_means(systems, measures, unpaired)


def _shared_means(
    systems: Any, measures: Measures | None, unpaired: str
) -> tuple[pd.DataFrame, list[str]]:
    shared = shared_scores(systems, measures, unpaired=unpaired)
    means = shared.scores.mean(axis=0)
    return pd.DataFrame(means, index=shared.systems, columns=shared.measures), shared.notes


_FORM = "a frame of means has a row per system and a column per order, with one name each"


def _is_known(label: Any) -> bool:
    return direction(str(label)).sign != 0


def _given_means(frame: pd.DataFrame, measures: Measures | None) -> pd.DataFrame:
    means = frame.set_index("system") if "system" in frame else frame
    for labels, what in ((means.index, "system"), (means.columns, "order")):
        refuse((labels.nlevels > 1, f"{_FORM}; found {what}s {labels[:4].tolist()}"))
        if not labels.is_unique:
            name = labels[labels.duplicated()][0]
            raise InvalidInput(f"{_FORM}; found the {what} {name!r} {(labels == name).sum()} times")
    has_measures = len(means) and all(map(_is_known, means.index))
    is_turned = has_measures and not any(map(_is_known, means.columns))
    rows = few(means.index.tolist())
    refuse((is_turned, f"{_FORM}; here the rows are measures ({rows}): turn it by .T"))
    means = means.rename(index=str, columns=str)
    if measures is not None:
        means = means[labels_of(measures, means.columns.tolist(), "order")]
    if other := [name for name in means if not pd.api.types.is_numeric_dtype(means[name])]:
        raise InvalidInput(
            f"means are numbers, found {means[other[0]].dtype} in the column {other[0]!r}; leave it out"
        )
    return means.astype(np.float64)


def _means_on_collections(
    cells: Cells, measures: Measures | None, unpaired: str
) -> tuple[pd.DataFrame, list[str]]:
    # Collections may differ in their systems; whatever is unlike is refused before any is scored.
    cell_scores(cells)
    collections = list(dict.fromkeys(name for parts in cells.values() for name in parts))
    orders, notes = {}, []
    for collection in collections:
        part = {name: own[collection] for name, own in cells.items() if collection in own}
        found = f"found {list(part)} on {collection!r}; leave it out"
        refuse((len(part) < 2, f"an order takes 2 systems or more, {found}"))
        orders[collection], own_notes = _shared_means(part, measures, unpaired)
        notes += [f"{collection}: {note}" for note in own_notes]
    labels = orders[collections[0]]
    everywhere = [label for label in labels if all(label in order for order in orders.values())]
    none = f"no measure is shared by the systems on all of {', '.join(collections)}"
    refuse((not everywhere, none, "name one"))
    by_measure = {}
    for label in everywhere:
        columns = {collection: order[label] for collection, order in orders.items()}
        by_measure[label] = pd.concat(columns, axis=1)
    means = pd.concat(by_measure, axis=1, names=["measure", "collection"])
    return means.reindex(list(cells)), notes
