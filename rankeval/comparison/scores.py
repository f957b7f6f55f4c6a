"""The scores that are compared: as frames, under one convention."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from rankeval.errors import ConventionMismatch, InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.significance.columns import refuse_fold_scores

Scores = Evaluation | pd.DataFrame


def per_query_frame(scores: Scores) -> pd.DataFrame:
    """Return scores as a frame with query ids as index; frames of polars and Arrow are understood too.

    Raises
    ------
    InvalidInput
        Scores of folds, or neither an Evaluation nor a frame.
    """
    if isinstance(scores, Evaluation):
        return scores.per_query
    refuse_fold_scores(scores)
    to_pandas = getattr(scores, "to_pandas", None)  # polars, Arrow
    frame = to_pandas() if callable(to_pandas) else scores
    if isinstance(frame, pd.DataFrame):
        # Ids left in a column are no measure, and the row numbers beside them are no ids.
        return frame.set_index("qid") if "qid" in frame.columns else frame
    raise InvalidInput(f"systems are evaluations or DataFrames of per-query scores, found {type(scores).__name__}")


def refuse_other_conventions(evaluations: Mapping[str, Evaluation]) -> None:
    """Raise `ConventionMismatch` unless all evaluations have the conventions and judgments of the first."""
    names = list(evaluations)
    for name in names[1:]:
        if reasons := evaluations[names[0]].differs_from(evaluations[name]):
            raise ConventionMismatch(f"{names[0]!r} and {name!r} must not be compared: {'; '.join(reasons)}")
