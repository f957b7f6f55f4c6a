"""The two sides of a check: scores from evaluations, frames or saved files, and the queries that lost most."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import count, shown
from rankeval.comparison.inputs import Scores, SharedScores, per_query_frame
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.labels import labels_of
from rankeval.measures import Measure, direction, greater_is_better
from rankeval.render.tables import Table, signed
from rankeval.significance.columns import differences
from rankeval.significance.effects import outcomes

Given = Scores | str | os.PathLike[str]
Measures = str | Measure | Sequence[str | Measure]

N_WORST = 10
"""Queries in the table of those that lost most."""


def scores_of(given: Given) -> Scores:
    """Return scores as they are, or those of the Evaluation that was saved at a path.

    Raises
    ------
    InvalidInput
        If there is no such file, or it is another one, such as a run.
    """
    if not isinstance(given, str | os.PathLike):
        return given
    path = Path(given)
    try:
        return Evaluation.load(path)
    except InvalidInput as error:
        if not path.is_file():
            raise
        raise InvalidInput(f"{error}", remedy="score a run first: rk.evaluate(qrels, run)") from error


def measures_of(candidate: Scores, baseline: Scores, wanted: Measures | None) -> list[str]:
    """Return the names of the measures to check: those asked for, or the only one that both sides have.

    Raises
    ------
    InvalidInput
        If none is named, and the two sides share several or none.
    UnknownName
        If one side lacks a measure.
    """
    one, other = ([str(label) for label in per_query_frame(side)] for side in (candidate, baseline))
    shared = [label for label in one if label in other]
    if wanted is not None:
        return labels_of(wanted, shared, "measure of both candidate and baseline")
    if len(shared) == 1:
        return shared
    if not shared:
        raise InvalidInput(
            f"candidate and baseline share no measure: candidate has {', '.join(one)}; baseline has {', '.join(other)}"
        )
    raise InvalidInput(f"measure= is needed, since there are several: name one or a list of {', '.join(shared)}")


def worst_queries(shared: SharedScores, measure: str) -> str:
    """Return a table of the queries that lost most by a measure, the greatest loss first.

    Parameters
    ----------
    shared : SharedScores
        Of the candidate and the baseline, in this order.
    measure : str
        Its name. If less is better by it, a query loses where the candidate's score is the greater one.
    """
    new, old = shared.scores[:, :, shared.measures.index(measure)].T
    d = differences(new, old)
    gains = direction(measure) * d
    counts = outcomes(gains)
    lost = np.argsort(gains, kind="stable")[: min(N_WORST, int(counts.losses))]
    turned = "" if greater_is_better(measure) else " (less is better)"
    said = (
        f"by {measure}{turned} the candidate is worse on {int(counts.losses)} of "
        f"{count(len(d), 'query')}, equal on {int(counts.ties)}, better on {int(counts.wins)}"
    )
    rows = pd.DataFrame({"qid": shared.queries, "baseline": old, "candidate": new, "difference": d})
    return query_table(rows.iloc[lost], f"{said}; the greatest losses:") if len(lost) else said


def query_table(rows: pd.DataFrame, caption: str) -> str:
    """Return rows of qid, baseline, candidate and difference as text under a caption."""
    shown_rows = rows.assign(qid=[_id(query) for query in rows["qid"]])
    return Table(shown_rows, formats={"difference": signed}, caption=caption).to_text()


def _id(query: Any) -> str:
    """Write a query id in one line of moderate length."""
    text = str(query)
    return text if text.isprintable() and len(text) <= 60 else shown(query)
