"""The scores that are compared: as frames, under one convention, by the measures asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import pandas as pd

from rankeval._registry import unknown
from rankeval.errors import ConventionMismatch, InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.measures import Measure, measure
from rankeval.measures import measures as find_measures
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


def labels_of(
    wanted: str | Measure | Iterable[str | Measure], labels: Sequence[str], kind: str = "measure"
) -> list[str]:
    """Find measures among the labels of columns, by name or by meaning ("ndcg_cut_10" for "nDCG@10").

    Parameters
    ----------
    wanted : str, Measure or iterable of them
        The measures asked for.
    labels : sequence of str
        Columns that there are; a frame's column need not be one of our measures.
    kind : str
        Noun for them in the error.

    Raises
    ------
    InvalidInput
        None is asked for.
    UnknownName
        One of them is not among the labels.
    """
    asked = [wanted] if isinstance(wanted, str | Measure) or not isinstance(wanted, Iterable) else list(wanted)
    if not asked:
        raise InvalidInput("measures is empty: name at least one, or leave it out for all that are shared")
    return list(dict.fromkeys(label for each in asked for label in _labels_meant(each, labels, kind)))


def _labels_meant(wanted: str | Measure, labels: Sequence[str], kind: str) -> list[str]:
    """Return the labels that a name stands for: one, but for names of several such as "P.5,10"."""
    if wanted in labels:
        return [str(wanted)]
    label_of: dict[Measure, str] = {}
    for label in labels:
        with suppress(InvalidInput):  # a frame's column need not be one of our measures
            label_of.setdefault(measure(label), label)
    try:
        return [label_of[meant] for _, meant in find_measures(wanted)]
    except (InvalidInput, KeyError):
        raise unknown(kind, str(wanted), labels) from None
