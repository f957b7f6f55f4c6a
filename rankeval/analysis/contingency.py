"""The contingency table of retrieved and relevant documents, with micro and macro averages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rankeval._arguments import explained
from rankeval._checks import check_count, check_number, count, require
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput
from rankeval.evaluation import Given
from rankeval.measures.set_based import false_and_missed
from rankeval.render.tables import Table


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class ContingencyTable(Displayed):
    """Numbers of retrieved and of relevant documents, query by query.

    Attributes
    ----------
    per_query : DataFrame of shape (n_queries, 3) or (n_queries, 4)
        Index qid; columns true_positives, false_positives, false_negatives, and true_negatives if
        the size of the collection is known.

    Examples
    --------
    >>> import rankeval as rk
    >>> rk.analysis.contingency_table([1, 0, 1], [3, 2, 1], qid=["a", "a", "b"]).per_query.loc["a"].to_dict()
    {'true_positives': 1.0, 'false_positives': 1.0, 'false_negatives': 0.0}
    """

    per_query: pd.DataFrame

    def macro(self, *, beta: float = 1) -> pd.Series[float]:
        """Return the mean over queries of precision, recall, F and, with a size, accuracy.

        Parameters
        ----------
        beta : float
            Above 1 favours recall.

        Returns
        -------
        Series
            Every query weighs the same; 0/0 counts as 0.
        """
        return _rates(self.per_query, beta).mean().rename("macro")

    def micro(self, *, beta: float = 1) -> pd.Series[float]:
        """Return these rates of the sums over queries: every document weighs the same.

        Parameters
        ----------
        beta : float
            Above 1 favours recall.
        """
        return _rates(self.per_query.sum().to_frame().T, beta).iloc[0].rename("micro")

    def _view(self) -> View:
        rates = pd.DataFrame([self.macro(), self.micro()]).rename_axis("mean").reset_index()
        sentence = f"Retrieved and relevant documents of {count(len(self.per_query), 'query')}"
        return View([sentence], [Table(rates), Table(self.per_query.reset_index())])


def _rates(table: pd.DataFrame, beta: float) -> pd.DataFrame:
    check_number("beta", beta, least=0)
    require(beta < 1e150, "beta", beta, "a number whose square is one")
    hits, false, missed = (
        table[name] for name in ("true_positives", "false_positives", "false_negatives")
    )
    square = beta**2
    weighted = (1 + square) * hits
    rates = {
        "precision": hits / (hits + false),
        "recall": hits / (hits + missed),
        "F": weighted / (weighted + square * missed + false),
    }
    if "true_negatives" in table:
        rates["accuracy"] = (hits + table["true_negatives"]) / table.sum(axis=1)
    return pd.DataFrame(rates).fillna(0.0)


@explained
def contingency_table(
    truth: Any,
    ranking: Any,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    rel: float = 1,
    cutoff: int | None = None,
    collection_size: int | None = None,
    convention: str | Convention = "rankeval",
) -> ContingencyTable:
    """Count true and false positives and negatives of each query; positives are retrieved.

    Parameters
    ----------
    truth, ranking, qid, group
        As in `rankeval.evaluate`.
    rel : float
        Lowest relevant label.
    cutoff : int, optional
        Deepest rank that counts as retrieved.
    collection_size : int, optional
        Number of documents in the collection. Without it there are no true negatives and no
        accuracy.
    convention : str or Convention
        The rules. Under ties="expected", counts are means if the cut-off falls among tied rows.

    Returns
    -------
    ContingencyTable
        With ``micro`` and ``macro`` averages.

    Raises
    ------
    InvalidInput
        If a query shows more documents than the collection size.
    GuardRefusal
        If the content is registered with a guard and this ranking was not opened.

    Examples
    --------
    >>> table = contingency_table([1, 0, 1], [3, 2, 1], qid=["a", "a", "b"])
    >>> table.micro()["precision"].round(4), table.macro()["precision"]
    (np.float64(0.6667), np.float64(0.75))
    """
    check_number("rel", rel)
    for name, value in (("cutoff", cutoff), ("collection_size", collection_size)):
        if value is not None:
            check_count(name, value)
    data = Given.of(truth, ranking, qid=qid, group=group)
    joined = data.refuse_or_join(get_convention(convention), action="contingency_table")
    parts = []
    for queries, judged, _ in joined.chunks():
        size = collection_size if collection_size is not None else np.iinfo(np.int64).max
        false, missed = false_and_missed(judged, rel, cutoff, size)
        hits = judged.hits(rel, cutoff)
        columns = {"true_positives": hits, "false_positives": false, "false_negatives": missed}
        if collection_size is not None:
            columns["true_negatives"] = collection_size - (hits + false + missed)
        parts.append(pd.DataFrame(columns, index=pd.Index(joined.queries[queries], name="qid")))
    if not parts:
        raise InvalidInput("no query of the ranking is judged", argument="ranking")
    return ContingencyTable(pd.concat(parts))
