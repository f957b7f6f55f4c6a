"""Curves over a ranking: precision by recall, and the ROC, query by query.

Under ``ties="expected"``, the default, rows of equal score have no order: they make one point, at
the end of their group. Under a convention that breaks ties every rank has a point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rankeval._arguments import explained
from rankeval._checks import check_count, check_number, count
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput
from rankeval.evaluation import Given
from rankeval.join.flat import Floats
from rankeval.join.joined import Joined
from rankeval.join.judged import Judged
from rankeval.render import tables

__all__ = ["LEVELS", "ROC", "PrecisionRecall", "precision_recall", "roc"]

LEVELS = tuple(level / 10 for level in range(11))
"""The eleven standard levels of recall."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class PrecisionRecall(Displayed):
    """Precision by recall, for every query and on average.

    Attributes
    ----------
    points : DataFrame
        Columns qid, rank, recall, precision, interpolated (the greatest precision at this recall or
        a higher one).
    eleven_points : DataFrame
        Interpolated precision at the eleven levels of recall: index qid, a column per level.
    area : Series
        Area under the interpolated curve of each query, a step function.
    undefined : mapping
        Query -> the reason why it has no curve.
    """

    points: pd.DataFrame
    eleven_points: pd.DataFrame
    area: pd.Series[float]
    undefined: Mapping[Any, str]

    @property
    def average(self) -> pd.Series[float]:
        """Mean over queries of interpolated precision at each level: the 11-point curve."""
        return self.eleven_points.mean()

    @property
    def eleven_point_average(self) -> pd.Series[float]:
        """Mean over the eleven levels, of each query."""
        return self.eleven_points.mean(axis=1)

    def _view(self) -> View:
        average = self.average.rename("interpolated precision").rename_axis("recall")
        sentence = f"Precision by recall, mean over {count(len(self.eleven_points), 'query')}"
        table = tables.Table(average.reset_index(), {"recall": ".1f"})
        return View([sentence], [table], _without_curve(self.undefined))


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class ROC(Displayed):
    """The share of relevant documents found by the share of others found, for every query.

    Attributes
    ----------
    points : DataFrame
        Columns qid, rank, fpr, tpr; from (0, 0) to (1, 1).
    auc : Series
        Area under the curve of each query: the chance that a relevant document ranks above another
        one. A tied pair counts half.
    undefined : mapping
        Query -> the reason why it has no curve. No average includes such queries.
    """

    points: pd.DataFrame
    auc: pd.Series[float]
    undefined: Mapping[Any, str]

    def _view(self) -> View:
        sentence = f"Mean AUC {tables.number(self.auc.mean())} over {count(len(self.auc), 'query')}"
        table = tables.Table(self.auc.rename("AUC").rename_axis("qid").reset_index())
        return View([sentence], [table], _without_curve(self.undefined))


def _without_curve(undefined: Mapping[Any, str]) -> list[str]:
    """Return the number of queries without a curve by the reason."""
    reasons = Counter(undefined.values())
    return [f"{count(n, 'query')} without a curve: {reason}" for reason, n in reasons.items()]


@explained
def precision_recall(
    truth: Any,
    ranking: Any,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    rel: float = 1,
    convention: str | Convention = "rankeval",
) -> PrecisionRecall:
    """Return precision by recall, query by query.

    Parameters
    ----------
    truth, ranking, qid, group
        As in `rankeval.evaluate`.
    rel : float
        Lowest relevant label.
    convention : str or Convention
        The rules.

    Returns
    -------
    PrecisionRecall
        The interpolated precision at a level is the greatest precision at that recall or more.
        Recall is compared exactly, in integers. The measures IPrec and IAP11 have the two roundings
        of trec_eval instead.

    Raises
    ------
    InvalidInput
        If truth and ranking cannot be joined.
    GuardRefusal
        If the content is registered with a guard and this ranking was not opened.

    Examples
    --------
    >>> curve = precision_recall([1, 1, 0, 1, 0, 0], [6, 5, 4, 3, 2, 1], qid=[0] * 6)
    >>> round(float(curve.eleven_point_average.iloc[0]), 4)
    0.9091
    """
    check_number("rel", rel)
    data = Given.of(truth, ranking, qid=qid, group=group)
    joined = data.refuse_or_join(get_convention(convention), action="curve")
    rows, levels, areas, undefined = [], {}, {}, {}
    for query, judged, number in _queries(joined):
        relevant = int(judged.n_relevant(rel)[number])
        if relevant == 0:
            undefined[query] = "no relevant document"
            continue
        rank, hits = _points(judged, number, rel)
        precision = hits / rank
        best = np.maximum.accumulate(precision[::-1])[::-1]
        points = {
            "qid": query,
            "rank": rank,
            "recall": hits / relevant,
            "precision": precision,
            "interpolated": best,
        }
        rows.append(pd.DataFrame(points))
        levels[query] = [
            best[10 * hits >= tenth * relevant].max(initial=0.0) for tenth in range(11)
        ]
        areas[query] = float((np.diff(hits, prepend=0.0) * best).sum() / relevant)
    eleven = pd.DataFrame.from_dict(levels, orient="index", columns=list(LEVELS))
    return PrecisionRecall(
        points=_table(rows, ["qid", "rank", "recall", "precision", "interpolated"]),
        eleven_points=eleven.rename_axis("qid"),
        area=pd.Series(areas, name="area", dtype=np.float64).rename_axis("qid"),
        undefined=undefined,
    )


@explained
def roc(
    truth: Any,
    ranking: Any,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    rel: float = 1,
    collection_size: int | None = None,
    convention: str | Convention = "rankeval",
) -> ROC:
    """Return the receiver operating characteristic and the area under it, query by query.

    Parameters
    ----------
    truth, ranking, qid, group
        As in `rankeval.evaluate`. Arrays must have all documents.
    rel : float
        Lowest relevant label.
    collection_size : int, optional
        Number of documents in the collection. Qrels and a run need it: the documents that were not
        retrieved are one tied block at the end.
    convention : str or Convention
        The rules.

    Returns
    -------
    ROC

    Raises
    ------
    InvalidInput
        If the collection's size is missing, or a query shows more documents than that.
    GuardRefusal
        If the content is registered with a guard and this ranking was not opened.

    Examples
    --------
    >>> float(roc([0, 1, 0, 0, 1, 0], [6, 5, 4, 3, 2, 1], qid=[0] * 6).auc.iloc[0])
    0.5
    """
    check_number("rel", rel)
    if collection_size is not None:
        check_count("collection_size", collection_size)
    data = Given.of(truth, ranking, qid=qid, group=group)
    joined = data.refuse_or_join(get_convention(convention), action="curve")
    if joined.unretrieved_offsets is not None and collection_size is None:
        raise InvalidInput(
            "collection_size is missing: the area under a run's curve needs the number of "
            "documents of the collection, those that were not retrieved included; "
            "judgments='rows' in the convention asks about retrieved rows only"
        )
    rows, areas, undefined = [], {}, {}
    for query, judged, number in _queries(joined):
        rank, hits = _points(judged, number, rel)
        retrieved, relevant = int(judged.n_retrieved[number]), int(judged.n_relevant(rel)[number])
        size = retrieved if collection_size is None else collection_size
        others = size - relevant
        n_known = retrieved + relevant - int(hits[-1] if len(hits) else 0)
        if size < n_known:
            raise InvalidInput(
                f"collection_size is {collection_size}, but query {query!r} has {n_known} "
                "documents that are retrieved or relevant"
            )
        if relevant == 0:
            undefined[query] = "no relevant document"
            continue
        if others == 0:
            undefined[query] = "no document that is not relevant"
            continue
        if size > retrieved:
            rank, hits = np.append(rank, size), np.append(hits, relevant)
        tpr = np.concatenate(([0.0], hits / relevant))
        fpr = np.concatenate(([0.0], (rank - hits) / others))
        points = {"qid": query, "rank": np.append(0, rank), "fpr": fpr, "tpr": tpr}
        rows.append(pd.DataFrame(points))
        hit_steps, miss_steps = np.diff(hits, prepend=0.0), np.diff(rank - hits, prepend=0.0)
        # Pairs are whole and half numbers: exact until the one division.
        pairs = (miss_steps * (hits - hit_steps / 2)).sum()
        areas[query] = float(pairs / (relevant * others))
    return ROC(
        points=_table(rows, ["qid", "rank", "fpr", "tpr"]),
        auc=pd.Series(areas, name="auc", dtype=np.float64).rename_axis("qid"),
        undefined=undefined,
    )


def __dir__() -> list[str]:
    return sorted(__all__)


def _table(rows: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=columns)


def _queries(joined: Joined) -> list[tuple[Any, Judged, int]]:
    parts = ((joined.queries[part].tolist(), judged) for part, judged, _ in joined.chunks())
    return [
        (query, judged, number) for queries, judged in parts for number, query in enumerate(queries)
    ]


def _points(judged: Judged, number: int, rel: float) -> tuple[Floats, Floats]:
    """Return the ranks at which the curve of a query has a point, and the hits up to each."""
    begin, end = judged.offsets[number : number + 2].tolist()
    prefix = judged.prefix(rel)
    rank = np.arange(1, end - begin + 1)
    first, last = np.searchsorted(judged.ties.query, [number, number + 1])
    keep = np.ones(len(rank), dtype=bool)
    ties = judged.ties.of(slice(first, last))
    for start, stop in zip(ties.start.tolist(), ties.end.tolist(), strict=True):
        keep[start - begin : stop - begin - 1] = False
    hits = (prefix[begin + 1 : end + 1] - prefix[begin]).astype(np.float64)
    return rank[keep].astype(np.float64), hits[keep]
