"""The labels of several judges as codes: one item is a document of a query, and a label is a judge's grade of it.

::

    item    0  0  1  2  2        items are sorted by query and document, labels by item and judge
    judge   0  1  0  0  1        codes of `judges`
    grade   1  1  0  2  1        codes of `grades`, the distinct grades in ascending order

An item that a judge left out has no row of that judge, so missing labels need no mark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval.collection.qrels import Qrels, as_qrels
from rankeval.errors import InvalidInput

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of several judges; the module's essay draws the layout."""

    judges: tuple[Any, ...]
    grades: NDArray[Any]
    items: pd.DataFrame
    """Columns qid, docid and query (the code of the query), a row an item."""
    item: Ints
    judge: Ints
    grade: Ints

    @classmethod
    def of(cls, judgments: Any) -> Labels:
        """Return the labels of judgments whose aspect is the judge, or of a mapping of judge to judgments.

        Raises
        ------
        InvalidInput
            If there are no judges or no rows, or a judge labels a document twice.
        """
        frame = _frame(judgments)
        for column in ("qid", "docid", "judge"):  # one kind of id each, so that all can be sorted
            if len(set(map(type, frame[column]))) > 1:
                raise InvalidInput(f"{column} mixes texts and numbers: 1 is not '1'", argument="judgments")
        twice = frame.duplicated(["qid", "docid", "judge"])
        if twice.any():
            row = frame[twice].iloc[0]
            problem = f"judge {row['judge']!r} labels document {row['docid']!r} of query {row['qid']!r} twice"
            raise InvalidInput(problem, argument="judgments", remedy="keep one label")
        frame = frame.sort_values(["qid", "docid", "judge"], ignore_index=True)
        item = np.asarray(frame.groupby(["qid", "docid"], sort=False).ngroup(), dtype=np.int64)
        items = frame.loc[~frame.duplicated(["qid", "docid"]), ["qid", "docid"]].reset_index(drop=True)
        codes, judges = pd.factorize(frame["judge"])
        grades, grade = np.unique(frame["relevance"].to_numpy(), return_inverse=True)
        items["query"] = pd.factorize(items["qid"])[0]
        judge = np.asarray(codes, dtype=np.int64)
        return cls(tuple(judges), grades, items, item, judge, grade.astype(np.int64))

    def counts(self) -> Ints:
        """Return how many judges gave each grade to each item, of shape (n_items, n_grades)."""
        cells = np.bincount(self.item * len(self.grades) + self.grade, minlength=len(self.items) * len(self.grades))
        return cells.reshape(len(self.items), len(self.grades)).astype(np.int64)


def by_judge(judgments: Any) -> dict[Any, Qrels]:
    """Return the judgments of each judge, in the order in which the judges are first named.

    Parameters
    ----------
    judgments : Qrels with an aspect, frame, records or path of such, or mapping of judge to judgments
        A mapping has a Qrels, a frame, a path or ``{qid: {docid: relevance}}`` for each judge.

    Raises
    ------
    InvalidInput
        If no judge is named.
    """
    if isinstance(judgments, Mapping):
        return {judge: as_qrels(given) for judge, given in judgments.items()}
    frame = _with_judges(judgments).to_frame()
    return {judge: Qrels.from_frame(rows.drop(columns="aspect")) for judge, rows in frame.groupby("aspect", sort=False)}


def _with_judges(judgments: Any) -> Qrels:
    qrels = as_qrels(judgments)
    if qrels.aspect is None:
        problem = "the judgments name no judge"
        remedy = 'give the judge as aspect=, or a mapping: {"ann": qrels, "llm": qrels}'
        raise InvalidInput(problem, argument="judgments", remedy=remedy)
    return qrels


def _frame(judgments: Any) -> pd.DataFrame:
    """Return the columns qid, docid, relevance and judge; a crowd is not cut into judges, which would take seconds."""
    if isinstance(judgments, Mapping):
        judges = by_judge(judgments)
        parts = [one.to_frame()[["qid", "docid", "relevance"]].assign(judge=judge) for judge, one in judges.items()]
        frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["qid"])
    else:
        frame = _with_judges(judgments).to_frame().rename(columns={"aspect": "judge"})
    if frame.empty:
        raise InvalidInput("there is no label", argument="judgments")
    return frame
