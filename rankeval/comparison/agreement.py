"""How far orders of systems agree: the result, and the pairs of orders that it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import count, few
from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.measures import direction
from rankeval.render.tables import Table, number
from rankeval.significance.declarations import Floats
from rankeval.significance.orders import competition_ranks, swaps_and_ties, tau_ap_a, tau_ap_b, tau_b

Key = tuple[str, ...]
"""The label of an order: ``(name,)``, or ``(measure, collection)``."""


@dataclass(frozen=True, eq=False)
class OrderAgreement:
    """The agreement of each two orders of systems.

    Attributes
    ----------
    table : DataFrame
        A row for each two orders. Columns: measure (only if a and b are collections); a and b, the orders; n_systems,
        the systems that both have; tau_b, Kendall's tau-b; tau_ap, which weights the top of the orders more: the
        symmetric tau_AP,b of Urbano and Marrero (2017) if ``truth`` is None, else the directed tau_AP,a of b against
        the truth a, the mean over all ways to break ties; swaps, the pairs of systems in other order; ties, the pairs
        tied in a, in b or in both. Both taus are 1 for equal orders and -1 for reversed ones.
    means : DataFrame
        A row per system and a column per order: the means that the orders are made of. Columns are (measure,
        collection) if a and b are collections.
    truth : str or None
        The order that the others are compared with.
    notes : tuple of str
        Sentences that a reader of the numbers must see.

    Examples
    --------
    >>> import pandas as pd
    >>> import rankeval as rk
    >>> means = pd.DataFrame({"AP": [0.3, 0.2, 0.1], "RR": [0.5, 0.6, 0.4]}, index=["a", "b", "c"])
    >>> print(rk.order_agreement(means).to_markdown().splitlines()[4])
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
        if self.truth is None:
            return f"{about}; tau_AP is symmetric (tau_AP,b)"
        return f"{about} with that by {self.truth}; tau_AP is directed, the mean over tie breakings (tau_AP,a)"

    @property
    def ranks(self) -> pd.DataFrame:
        """The rank of each system in each order, the best one 1; tied systems share the best of their ranks.

        Returns
        -------
        DataFrame
            Shaped like ``means``; missing if an order lacks a system.
        """
        ranks = self.means.copy()
        for column in self.means:
            ranks.loc[self.means[column].notna(), column] = competition_ranks(_gains(self.means[column]))
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
            A row per pair: above_in_a, above_in_b (systems), difference_in_a, difference_in_b (the mean of the system
            that is above there less the mean of the other one).

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
        >>> rk.order_agreement(means).swaps("AP", "RR").round(2)
          above_in_a above_in_b  difference_in_a  difference_in_b
        0          a          b              0.1              0.1
        """
        one, other = _both(self.means, self._key(a, measure), self._key(b, measure))
        first, second = np.nonzero(swaps_and_ties(_gains(one), _gains(other))[0])
        return pd.DataFrame(
            {
                "above_in_a": one.index[first],
                "above_in_b": one.index[second],
                "difference_in_a": one.to_numpy()[first] - one.to_numpy()[second],
                "difference_in_b": other.to_numpy()[second] - other.to_numpy()[first],
            }
        )

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        return self._laid_out().to_markdown()

    def to_latex(self, *, label: str = "") -> str:
        r"""Return a LaTeX table (booktabs).

        Parameters
        ----------
        label : str, optional
            Name for ``\ref``.
        """
        return self._laid_out().to_latex(label=label)

    def __str__(self) -> str:
        return self._laid_out().to_text()

    def _repr_html_(self) -> str:
        return self._laid_out().to_html()

    def _laid_out(self) -> Table:
        shown = self.table.rename(columns={"n_systems": "systems", "tau_ap": "tau AP", "tau_b": "tau b"})
        return Table(shown, {"tau b": _three_digits, "tau AP": _three_digits}, caption=self.caption, notes=self.notes)

    def _key(self, order: str, measure: str | None) -> Key:
        keys = [_key(column) for column in self.means]
        chosen("order", order, [key[-1] for key in keys])
        if "measure" not in self.table:
            return (order,)
        measures = list(dict.fromkeys(key[0] for key in keys))
        if measure is None and len(measures) > 1:
            raise InvalidInput(f"the orders are by {len(measures)} measures; name one as measure=: {few(measures)}")
        return (measures[0] if measure is None else chosen("measure of the orders", measure, measures), order)


def compared_orders(means: pd.DataFrame, *, truth: str | None, notes: Sequence[str]) -> OrderAgreement:
    """Compare each two orders, or each with the true one.

    Parameters
    ----------
    means : DataFrame
        A row per system and a column per order. A column is named by its order, or by (measure, collection): then
        the orders of one measure are compared with each other. Missing if an order lacks a system.
    truth : str or None
        The name of an order, or of a collection.
    notes : sequence of str
        Notes on the means.

    Returns
    -------
    OrderAgreement
        With the notes on orders in which all systems are tied besides.

    Raises
    ------
    InvalidInput
        There is only one order, or two orders have fewer than two systems in common.
    UnknownName
        There is no such truth.
    """
    pairs = list(_pairs(means, truth))
    if not pairs:
        found = ", ".join(" on ".join(_key(column)) for column in means) or "none"
        raise InvalidInput(f"agreement takes two orders or more, found {found}; give more measures or collections")
    rows = [_row(means, one, other, directed=truth is not None) for one, other in pairs]
    constant = [" on ".join(_key(column)) for column in means if competition_ranks(_gains(means[column])).max() == 1]
    tied = [f"all systems are tied by {name}: there is no order to agree with" for name in constant]
    return OrderAgreement(pd.DataFrame(rows), means, truth, (*notes, *tied))


def _pairs(means: pd.DataFrame, truth: str | None) -> Iterator[tuple[Key, Key]]:
    """Yield the orders to compare: of one measure if they are those of collections, with the true one first."""
    keys = [_key(column) for column in means]
    if truth is not None:
        chosen("order to take as truth", truth, [key[-1] for key in keys])
    for one, other in combinations(keys, 2):
        if one[:-1] != other[:-1]:
            continue
        if truth is None or one[-1] == truth:
            yield one, other
        elif other[-1] == truth:
            yield other, one


def _row(means: pd.DataFrame, one: Key, other: Key, *, directed: bool) -> dict[str, Any]:
    first, second = _both(means, one, other)
    if len(first) < 2:
        raise InvalidInput(
            f"the orders {one[-1]!r} and {other[-1]!r} have {count(len(first), 'system')} in common; an order takes at "
            "least 2"
        )
    gains = _gains(first), _gains(second)
    swaps, ties = swaps_and_ties(*gains)
    of_measure = {"measure": one[0]} if len(one) > 1 else {}
    return of_measure | {
        "a": one[-1],
        "b": other[-1],
        "n_systems": len(first),
        "tau_b": tau_b(*gains),
        "tau_ap": tau_ap_a(*gains) if directed else tau_ap_b(*gains),
        "swaps": int(swaps.sum()),
        "ties": int(ties.sum()),
    }


def _both(means: pd.DataFrame, one: Key, other: Key) -> tuple[pd.Series[float], pd.Series[float]]:
    """Return two orders, of the systems that both have."""
    columns = {_key(column): means[column] for column in means}
    first, second = columns[one], columns[other]
    have = first.notna() & second.notna()
    return first[have], second[have]


def _gains(means: pd.Series[float]) -> Floats:
    """Return means so that the greater ones are better, of the systems that there are."""
    return np.asarray(direction(_key(means.name)[0]) * means.dropna(), dtype=np.float64)


def _key(column: Any) -> Key:
    return tuple(map(str, column)) if isinstance(column, tuple) else (str(column),)


def _three_digits(value: float) -> str:
    return number(value, digits=3)
