"""Orders of systems: the ranks that are left to each, and how far two measures or two collections agree on the order.

An *order* is a column of means, a row per system. Means come in three forms::

    system -> scores                     an order by each measure, compared with one another
    system -> {collection: scores}       an order on each collection, compared measure by measure
    a frame of means, a row per system   an order by each column

Columns are compared as gains, so that for ARP, where less is better, the lowest mean leads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import few
from rankeval._registry import chosen
from rankeval.comparison.agreement import OrderAgreement, compared_orders
from rankeval.comparison.collections import parts_of, refuse_unlike_collections
from rankeval.comparison.comparing import compare
from rankeval.comparison.result import Comparison
from rankeval.comparison.scores import Scores, check_number_of_systems, shared_scores
from rankeval.errors import InvalidInput, UnknownName, warn
from rankeval.evaluation.choosing import labels_of
from rankeval.measures import Measure
from rankeval.measures.names import meanings
from rankeval.significance.columns import UNPAIRED
from rankeval.significance.declarations import CORRECTIONS, TESTS, Rng
from rankeval.significance.running import NOTHING_POSSIBLE

UNSTEADY = 0.2
"""Resamples are too few if a p-value at alpha has a standard error above this share of alpha."""

Measures = str | Measure | Sequence[str | Measure]


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
) -> pd.DataFrame:
    """Rank systems by a measure, each with the range of ranks that comparing all pairs leaves.

    Parameters
    ----------
    systems : mapping of str to Evaluation or DataFrame
        As in `rankeval.compare`.
    measure : str or Measure, optional
        By default the only one that the systems share.
    test, correction : str, default "randomization" and "max_t"
        As in `rankeval.compare`. The correction must control the chance of any false claim: "max_t", "holm",
        "bonferroni", "tukey".
    alpha : float, default 0.05
        In about 1 - alpha of the samples of queries, or more, the ranges hold all true ranks at once. With fewer than
        50 queries and strong skew it is less: the guide to significance has the shares, and notes of `compare` too.
    unpaired : {"error", "skip"}, default "error"
        For queries that some systems lack, as in `rankeval.compare`.
    n_resamples : int, default 9999
        Number of resamples, of the test and for ``share_first``. If they are so few that the seed decides, there is a
        ``RankevalWarning``.
    rng : int, Generator or None, default 0
        Seed.

    Returns
    -------
    DataFrame
        As `Comparison.ranks`: a row per system, the best first, with measure, mean, rank, rank_low, rank_high, and
        share_first, which describes the sample and is no probability of being the best. The pairs and notes behind it
        are those of ``rk.compare(systems, test=test, correction=correction)``.

    Raises
    ------
    InvalidInput
        If the systems share several measures and none is named, the correction controls only the share of false
        claims, or the scores are refused by `rankeval.compare`.
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
    )
    measures = compared.table["measure"].unique().tolist()
    if len(measures) > 1:
        raise InvalidInput(f"systems are ranked by one measure, found {', '.join(measures)}; name one as measure=")
    ranks = compared.ranks
    _warn_of_few_resamples(compared)
    return ranks


def _warn_of_few_resamples(compared: Comparison) -> None:
    """Warn if the table would be another one with another seed, or if no range could be narrower than all ranks."""
    n, alpha, drawn = int(compared.table["n_queries"].max()), compared.alpha, compared.n_resamples
    for note in compared.notes:
        if note.startswith(NOTHING_POSSIBLE):
            warn(note)
    needed = math.ceil(alpha * (1 - alpha) / (alpha * UNSTEADY) ** 2)
    if drawn >= needed:
        return
    error = math.sqrt(alpha * (1 - alpha) / drawn)
    by_chance = TESTS[compared.test].is_random(n) or CORRECTIONS[compared.correction].is_random(n)
    ranges = f"a p-value near {alpha:g} has a standard error of {error:.2g}, so ranges change with the seed, and "
    warn(
        f"n_resamples={drawn}: {ranges if by_chance else ''}share_first has a standard error of up to "
        f"{0.5 / math.sqrt(drawn):.2g}; ask for n_resamples={needed} or more"
    )


def order_agreement(
    systems: Any, *, measures: Measures | None = None, truth: str | None = None, unpaired: str = "error"
) -> OrderAgreement:
    """Say how far the orders of systems by several measures, or on several collections, agree.

    Parameters
    ----------
    systems : mapping or DataFrame
        System -> scores as in `rankeval.compare`: orders by measures. System -> {collection: scores}: orders on
        collections, for each measure. A frame of means, a row per system (the index, or a column ``system``), such as
        ``pd.DataFrame({name: ev.mean() for name, ev in evaluations.items()}).T``: orders by its columns; if a column is
        no measure, its greater values are taken as better.
    measures : str, Measure or sequence of them, optional
        By default all means and geometric means that the systems share, or all columns of a frame of means.
    truth : str, optional
        The measure, collection or column whose order is taken as true. The others are compared with it alone, and
        ``tau_ap`` is then directed. By default all orders are compared with one another.
    unpaired : {"error", "skip"}, default "error"
        If a system lacks a query, a collection or a mean: refuse; or keep the queries common to all systems and, for
        each two orders, the systems that both have.

    Returns
    -------
    OrderAgreement
        Its table has a row for each two orders.

    Raises
    ------
    InvalidInput
        If there is only one order, an order of fewer than two systems, or scores are refused by `rankeval.compare`.
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
    resampled values lie in [.68, .88]. To see which differences between systems are shown, use `rank_intervals`.

    Examples
    --------
    >>> import pandas as pd
    >>> means = pd.DataFrame({"AP": [0.3, 0.2, 0.1], "RR": [0.5, 0.6, 0.4]}, index=["a", "b", "c"])
    >>> order_agreement(means).table.round(2)
        a   b  n_systems  tau_b  tau_ap  swaps  ties
    0  AP  RR          3   0.33     0.0      1     0
    """
    chosen("value of unpaired", unpaired, UNPAIRED)
    means, notes = _means(systems, measures, unpaired)
    if unpaired == "error" and means.isna().to_numpy().any():
        row, place = np.argwhere(means.isna().to_numpy())[0]
        raise InvalidInput(
            f"the order by {means.columns[place]!r} lacks system {means.index[row]!r}; give all orders the same "
            'systems, or pass unpaired="skip" to compare each two orders on the systems that both have'
        )
    return compared_orders(means, truth=truth, notes=notes)


def _means(systems: Any, measures: Measures | None, unpaired: str) -> tuple[pd.DataFrame, list[str]]:
    """Return a column per order, and notes on what was left out."""
    to_pandas = getattr(systems, "to_pandas", None)  # polars, Arrow
    frame = to_pandas() if callable(to_pandas) else systems
    if isinstance(frame, pd.DataFrame):
        return _given_means(frame, measures), []
    check_number_of_systems(systems)
    by_collection = {str(name): parts_of(scores) for name, scores in systems.items()}
    if any(parts is not None for parts in by_collection.values()):
        return _means_on_collections(by_collection, measures, unpaired)
    shared = shared_scores(systems, measures, unpaired=unpaired)
    return pd.DataFrame(shared.scores.mean(axis=0), index=shared.systems, columns=shared.measures), shared.notes


_FORM = "a frame of means has a row per system and a column per order, with one name each"


def _is_measure(label: Any) -> bool:
    """Say whether a label is that of a measure."""
    try:
        meanings(str(label))
    except UnknownName:
        return False
    except InvalidInput:  # of several meanings, or without a parameter that it needs
        return True
    return True


def _given_means(frame: pd.DataFrame, measures: Measures | None) -> pd.DataFrame:
    means = frame.set_index("system") if "system" in frame else frame
    for labels, what in ((means.index, "system"), (means.columns, "order")):
        if labels.nlevels > 1:
            raise InvalidInput(f"{_FORM}; found {what}s {labels[:4].tolist()}")
        if not labels.is_unique:
            name = labels[labels.duplicated()][0]
            raise InvalidInput(f"{_FORM}; found the {what} {name!r} {(labels == name).sum()} times")
    if len(means) and all(map(_is_measure, means.index)) and not any(map(_is_measure, means.columns)):
        raise InvalidInput(f"{_FORM}; here the rows are measures ({few(means.index.tolist())}): turn it by .T")
    means = means.rename(index=str, columns=str)
    if measures is not None:
        means = means[labels_of(measures, means.columns.tolist(), "order")]
    if other := [name for name in means if not pd.api.types.is_numeric_dtype(means[name])]:
        raise InvalidInput(f"means are numbers, found {means[other[0]].dtype} in the column {other[0]!r}; leave it out")
    return means.astype(np.float64)


def _means_on_collections(
    systems: Mapping[str, Mapping[str, Scores] | None], measures: Measures | None, unpaired: str
) -> tuple[pd.DataFrame, list[str]]:
    given = {name: parts for name, parts in systems.items() if parts is not None}
    if plain := [name for name in systems if name not in given]:
        raise InvalidInput(
            f"system {plain[0]!r} has no scores by collection, and others have; give each as {{collection: scores}}"
        )
    refuse_unlike_collections(given)
    collections = list(dict.fromkeys(str(collection) for each in given.values() for collection in each))
    orders, notes = {}, []
    for collection in collections:
        part = {name: each[collection] for name, each in given.items() if collection in each}
        if len(part) < 2:
            raise InvalidInput(f"an order takes 2 systems or more, found {list(part)} on {collection!r}; leave it out")
        shared = shared_scores(part, measures, unpaired=unpaired)
        orders[collection] = pd.DataFrame(shared.scores.mean(axis=0), index=shared.systems, columns=shared.measures)
        notes += [f"{collection}: {note}" for note in shared.notes]
    everywhere = [label for label in orders[collections[0]] if all(label in order for order in orders.values())]
    if not everywhere:
        raise InvalidInput(f"no measure is shared by the systems on all of {', '.join(collections)}", remedy="name one")
    means = pd.concat(
        {label: pd.concat({name: order[label] for name, order in orders.items()}, axis=1) for label in everywhere},
        axis=1,
        names=["measure", "collection"],
    )
    return means.reindex(list(given)), notes
