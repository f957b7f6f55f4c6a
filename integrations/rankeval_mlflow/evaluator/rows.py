"""Rows of an evaluation, from MLflow's data set: ids, labels and scores for the measures, features for the model.

The trap: MLflow leaves the columns of ids among the features, and a model would take them for features.

Scores are predicted by the model, or are in the data set already. There is one finite number a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import few
from rankeval._registry import unknown
from rankeval.collection.rows import check_rows, index_of, same_rows
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io import columns

if TYPE_CHECKING:
    from rankeval_mlflow.evaluator.settings import Settings

_HERE = "predictions"


@dataclass(frozen=True)
class Rows:
    """The columns of an evaluation, one value a row.

    Parameters
    ----------
    features : DataFrame or ndarray of shape (n_rows, n_columns)
        Everything but targets and predictions, ids included.
    ids : tuple of str
        The columns of the features that hold ids or weights.
    qid, docid, weights, relevance : array of shape (n_rows,), optional
        The columns. Weights may also be a mapping by query.
    """

    features: Any
    ids: tuple[str, ...]
    qid: Any
    docid: Any = None
    weights: Any = None
    relevance: Any = None

    @classmethod
    def of(cls, dataset: Any, settings: Settings) -> Rows:
        """Take the columns that the settings name.

        Parameters
        ----------
        dataset : EvaluationDataset
            MLflow's data set.
        settings : Settings
            The settings.

        Raises
        ------
        InvalidInput
            If a column is missing, or its length or a value is wrong.
        """
        features = dataset.features_data
        keys = {"qid": settings.qid, "docid": settings.docid, "weights": settings.weights}
        taken = {key: _column(features, key, given) for key, given in keys.items()}
        ids = tuple(given for given in keys.values() if isinstance(given, str) and given in _names(features))
        if settings.qrels is not None:
            _refuse_two_truths(dataset, settings)
            return cls(features, ids, **taken)
        if not dataset.has_targets:
            raise InvalidInput(
                "targets is missing: name the column with the relevance (for a Dataset: from_pandas(..., targets=)), "
                "or give the judgments of a collection as the key 'qrels' of evaluator_config"
            )
        relevance = columns.labels(dataset.labels_data, "targets")
        columns.refuse_unbounded(relevance, "targets")
        return cls(features, ids, **taken, relevance=relevance)

    def for_model(self, named: Iterable[str], *, pass_ids: bool) -> Any:
        """Return the features for the model.

        Parameters
        ----------
        named : iterable of str
            The columns in the signature of the model.
        pass_ids : bool
            Whether the model gets ids and weights that its signature does not name, too.
        """
        dropped = [] if pass_ids else [name for name in self.ids if name not in set(named)]
        return self.features.drop(columns=dropped) if dropped else self.features

    def for_guard(self) -> Any | None:
        """Return the features that are numbers, by which registered content is recognised; None without any."""
        bare = self.for_model((), pass_ids=False)
        if hasattr(bare, "select_dtypes"):
            bare = bare.select_dtypes(["number", "bool"])
        elif np.asarray(bare).dtype.kind not in "biuf":
            return None
        return bare if bare.shape[1] else None


def _column(features: Any, key: str, given: Any) -> Any:
    """Return a column by its name, or the array that was given instead."""
    if isinstance(given, str):
        return _named(features, key, given)
    if given is None:
        if key == "qid":
            raise QueryIdError("qid is None; name the column with the query of each row", argument="evaluator_config")
        return None
    if hasattr(given, "items") and key == "weights":
        return given  # by query
    n_rows = len(features)
    if not hasattr(given, "__len__") or len(given) != n_rows:
        found = f"{len(given)} values" if hasattr(given, "__len__") else f"a {type(given).__name__}"
        raise InvalidInput(f"evaluator_config: {key} has {found} for {n_rows} rows of data; give one value a row")
    check_rows(data=features, **{key: given})
    return given.to_numpy() if hasattr(given, "to_numpy") else given


def _named(features: Any, key: str, name: str) -> Any:
    """Return a column of the features, or a level of their index."""
    if name in _names(features):
        return features[name].to_numpy()
    index = getattr(features, "index", None)
    if index is not None and name in index.names:
        return index.get_level_values(name).to_numpy()
    wrong = unknown(f"column (evaluator_config: {key})", name, _names(features), summary="it is not in the data")
    raise type(wrong)(f"{wrong}. Give {key} as an array if the column is not among the features that MLflow has")


def _names(features: Any) -> list[Any]:
    return list(getattr(features, "columns", ()))


def _refuse_two_truths(dataset: Any, settings: Settings) -> None:
    """Raise unless the judgments come from one place, and the rows say which documents they rank."""
    if dataset.has_targets:
        raise InvalidInput(
            "targets and the key 'qrels' of evaluator_config both give judgments",
            remedy="leave one of them out: the targets hold no documents that the ranking lacks, qrels does",
        )
    if settings.docid is None:
        raise InvalidInput("qrels needs docid, the column with the document of each row", argument="evaluator_config")
    if settings.weights is not None and not hasattr(settings.weights, "items"):
        raise InvalidInput("evaluator_config: with qrels, weights must be a mapping by query: some have no row")


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
            f"{_HERE}: the model returned {len(names)} columns ({few(names)})", remedy="choose one with predictions="
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
