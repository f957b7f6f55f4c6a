"""The scores that are compared: as frames, under one convention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rankeval.errors import ConventionMismatch, InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.io.names import spelled
from rankeval.significance.columns import refuse_fold_scores

Scores = Evaluation | pd.DataFrame | Mapping[Any, Mapping[str, float]]


def per_query_frame(scores: Scores) -> pd.DataFrame:
    """Return scores as a frame with query ids as index; frames of polars and Arrow and dicts are understood too.

    Raises
    ------
    InvalidInput
        Scores of folds, or neither an Evaluation nor a frame.
    """
    if isinstance(scores, Evaluation):
        return scores.per_query
    if isinstance(scores, Mapping) and all(isinstance(one, Mapping) for one in scores.values()):
        scores = pd.DataFrame.from_dict(dict(scores), orient="index")
    refuse_fold_scores(scores)
    to_pandas = getattr(scores, "to_pandas", None)  # polars, Arrow
    frame = to_pandas() if callable(to_pandas) else scores
    if isinstance(frame, pd.DataFrame):
        # Ids left in a column are no measure, and the row numbers beside them are no ids.
        ids = spelled(frame.columns, "qid")
        return frame.set_index(ids[0]) if len(ids) == 1 else frame
    raise InvalidInput(
        f"systems are evaluations, DataFrames of per-query scores or {{qid: {{measure: score}}}}, found "
        f"{type(scores).__name__}"
    )


def refuse_other_conventions(evaluations: Mapping[str, Evaluation]) -> None:
    """Raise `ConventionMismatch` unless all evaluations have the conventions and judgments of the first."""
    names = list(evaluations)
    for name in names[1:]:
        if reasons := evaluations[names[0]].differs_from(evaluations[name]):
            raise ConventionMismatch(f"{names[0]!r} and {name!r} must not be compared: {'; '.join(reasons)}")
