"""The similarity of two rankings, without judgments: rank-biased overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from rankeval._arguments import explained
from rankeval._checks import check_share, count
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.collection.rows import Rows
from rankeval.collection.run import Run, as_run
from rankeval.errors import InvalidInput
from rankeval.render.tables import Table


@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Overlap(Displayed):
    """Rank-biased overlap of two runs, query by query.

    Attributes
    ----------
    per_query : DataFrame
        Index qid; columns rbo (extrapolated to infinite depth), rbo_min (the lower bound) and
        residual (the distance from there to the upper bound).
    p : float
        The persistence.
    only_in_one : tuple
        Queries that one of the runs lacks. They are not in the table.
    """

    per_query: pd.DataFrame
    p: float
    only_in_one: tuple[Any, ...]

    def mean(self) -> pd.Series[float]:
        """Return the means over queries."""
        return self.per_query.mean()

    def _view(self) -> View:
        queries = count(len(self.per_query), "query")
        sentence = f"Rank-biased overlap with p = {self.p:g}, means over {queries}"
        n_alone = len(self.only_in_one)
        notes = [f"{count(n_alone, 'query')} in one run only"] if n_alone else []
        return View([sentence], [Table(self.mean().to_frame().T)], notes)


@explained
def rank_biased_overlap(run: Any, other: Any, *, p: float = 0.9) -> Overlap:
    """Return the rank-biased overlap of two runs.

    Parameters
    ----------
    run, other : Run, dict, frame or path
        The rankings. Rows of equal score are ordered by document id, descending, as in trec_eval.
        Give runs without ties if that matters.
    p : float
        The chance to look at the next rank. 0.9 puts 86 % of the weight on the first ten ranks.

    Returns
    -------
    Overlap
        In [0, 1], 1 for equal lists; Webber, Moffat & Zobel 2010, equations 11, 30 and 32.

    Raises
    ------
    InvalidInput
        If p is not between 0 and 1, the ids of one run are numbers and those of the other texts, or
        the runs have no query in common.

    Examples
    --------
    >>> same = rank_biased_overlap({"q": {"a": 2, "b": 1}}, {"q": {"a": 9, "b": 3}})
    >>> float(same.per_query.at["q", "rbo"])
    1.0
    """
    check_share("p", p)
    runs = as_run(run), as_run(other)
    refuse_unlike(*runs)
    first, second = map(ranked_lists, runs)
    common = [query for query in first if query in second]
    if not common:
        raise InvalidInput(
            f"the runs have no query in common: {list(first)[:3]} ... and {list(second)[:3]} ..."
        )
    rows = {query: _overlap(first[query], second[query], p) for query in common}
    columns = ["rbo", "rbo_min", "residual"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("qid")
    return Overlap(table, p, tuple(query for query in {**first, **second} if query not in rows))


def refuse_unlike(rows: Rows, other: Rows) -> None:
    """Refuse to compare 1 with "1": nothing in common would look like a finding."""
    for name in ("qid", "docid"):
        columns = (getattr(rows, name), getattr(other, name))
        kind, other_kind = (
            "integer" if pa.types.is_integer(column.type) else "string" for column in columns
        )
        if len(rows) and len(other) and kind != other_kind:
            raise InvalidInput(
                f"{kind} ids are compared with {other_kind} ids, and 1 is not '1'; give both as "
                "one type",
                argument=name,
            )


def ranked_lists(run: Run) -> dict[Any, list[Any]]:
    """Return the documents of each query, best first; equal scores by id, descending."""
    rows = zip(run.qid.to_pylist(), (-run.score).tolist(), run.docid.to_pylist(), strict=True)
    lists: dict[Any, list[tuple[float, Any]]] = {}
    for query, score, document in rows:
        lists.setdefault(query, []).append((score, document))
    ordered = {}
    for query, pairs in lists.items():
        pairs.sort(key=lambda pair: str(pair[1]).encode(), reverse=True)
        pairs.sort(key=lambda pair: pair[0])
        ordered[query] = [document for _, document in pairs]
        if len(set(ordered[query])) < len(pairs):
            raise InvalidInput(
                f"a document occurs twice in query {query!r}",
                argument="run",
                remedy="rank each document once, in one run a system",
            )
    return ordered


def _overlap(first: list[Any], second: list[Any], p: float) -> tuple[float, float, float]:
    """Return the extrapolated overlap, its lower bound, and its residual to the upper bound."""
    short, long = sorted((first, second), key=len)
    s, n = len(short), len(long)
    place = {document: rank for rank, document in enumerate(short, start=1)}
    at = np.zeros(n + 1)  # documents that enter the overlap at each depth
    for rank, document in enumerate(long, start=1):
        if document in place:
            at[max(rank, place[document])] += 1
    depth = np.arange(1, n + 1)
    shared = np.cumsum(at)[1:]
    power = p**depth
    # The lower bound counts every depth up to n, and beyond n no new document (equation 11).
    seen = (1 - p) / p * float(((shared - shared[n - 1]) / depth * power).sum())
    least = seen - (1 - p) / p * shared[n - 1] * float(np.log1p(-p))
    # Beyond the end of the shorter list the agreement is taken to stay as it is at that end
    # (equation 32).
    agreed = shared / depth + np.where(depth > s, shared[s - 1] * (depth - s) / (s * depth), 0.0)
    at_end = (shared[n - 1] - shared[s - 1]) / n + shared[s - 1] / s
    extrapolated = (1 - p) / p * float((agreed * power).sum()) + at_end * p**n
    # The upper bound: every document that the lists may still share is shared (equation 30).
    overlap = 1.0 * shared[n - 1]
    whole = np.ceil(s + n - overlap)
    deep = np.arange(1, int(whole) + 1)
    terms = p**deep / deep
    beyond_short, beyond_long = s * float(terms[s:].sum()), n * float(terms[n:].sum())
    beyond_whole = overlap * (-float(np.log1p(-p)) - float(terms.sum()))
    residual = p**s + p**n - p**whole
    residual -= (1 - p) / p * (beyond_short + beyond_long + beyond_whole)
    return extrapolated, least, max(0.0, float(residual))
