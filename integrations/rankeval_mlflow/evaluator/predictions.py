"""Scores of a ranking: predicted by the model, or already in the data set. One finite number a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import few
from rankeval._registry import unknown
from rankeval.collection.rows import index_of, same_rows
from rankeval.errors import InvalidInput
from rankeval.io import columns
from rankeval_mlflow.evaluator.rows import Rows

_HERE = "predictions"


def static_scores(dataset: Any) -> NDArray[Any]:
    """Return the predictions that the data set holds.

    Parameters
    ----------
    dataset : EvaluationDataset
        MLflow's data set.

    Raises
    ------
    InvalidInput
        If it has none, or one of them is no finite number.
    """
    if not dataset.has_predictions:
        raise InvalidInput(
            "there is neither a model nor predictions: give model=, or name the column of the scores "
            "(predictions=; for a Dataset: from_pandas(..., predictions=))"
        )
    return _checked(dataset.predictions_data, len(dataset.features_data))


def predicted_scores(model: Any, rows: Rows, column: str | None, *, pass_ids: bool) -> NDArray[Any]:
    """Return what the model predicts.

    Parameters
    ----------
    model : object with a method ``predict``
        MLflow's pyfunc model.
    rows : Rows
        The rows.
    column : str, optional
        The column of the scores, if the model predicts several.
    pass_ids : bool
        Whether the model gets ids that its signature does not name.

    Raises
    ------
    InvalidInput
        If the model does not predict one finite number a row.
    """
    features = rows.for_model(_signature(model), pass_ids=pass_ids)
    output = _one_column(model.predict(features), column)
    index = index_of(output)
    if index is not None and len(index) == len(features) and not _in_order(index, features):
        raise InvalidInput(
            f"{_HERE}: the model returned a Series whose index is not that of the data, in the same order; return an "
            "array in the order of the rows"
        )
    return _checked(output, len(features))


def _signature(model: Any) -> Iterable[str]:
    """Return the columns in the signature of a model; a Python function has none."""
    metadata = getattr(model, "metadata", None)
    schema = None if metadata is None else metadata.get_input_schema()
    return schema.input_names() if schema is not None and schema.has_input_names() else ()


def _one_column(output: Any, column: str | None) -> Any:
    """Return the column of the scores of what a model returned."""
    if isinstance(output, Mapping):
        names, chosen = list(output), column or next(iter(output), None)
    elif hasattr(output, "columns"):
        names, chosen = list(output.columns), column or next(iter(output.columns), None)
    elif column is not None and getattr(output, "name", None) != column:
        raise InvalidInput(
            f"predictions={column!r} names a column of the model's output, but the model returned a "
            f"{type(output).__name__} without columns; leave predictions= out"
        )
    else:
        return columns.as_column(output)
    if column is None and len(names) != 1:
        raise InvalidInput(
            f"{_HERE}: the model returned {len(names)} columns ({few(names)}); choose one with predictions="
        )
    if chosen not in names:
        raise unknown("column of the model's output (predictions=)", chosen, names)
    return output[chosen]


def _in_order(index: Any, features: Any) -> bool:
    """Return whether an index is that of the rows, or only counts them."""
    ours = getattr(features, "index", None)
    return (ours is not None and same_rows(index, ours)) or bool(np.array_equal(index, np.arange(len(index))))


def _checked(values: Any, n_rows: int) -> NDArray[Any]:
    """Return scores; raise unless they are one finite number for each row."""
    if not hasattr(values, "__len__"):
        raise InvalidInput(f"{_HERE}: expected one number a row, found a {type(values).__name__}")
    if len(values) != n_rows:
        raise InvalidInput(f"{_HERE}: {len(values)} values for {n_rows} rows of data; expected one number a row")
    scores = columns.scores(values, _HERE)
    columns.refuse_unbounded(scores, _HERE)
    return scores
