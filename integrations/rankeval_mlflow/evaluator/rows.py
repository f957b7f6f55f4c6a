"""Rows of an evaluation, taken from MLflow's data set: ids and labels for the measures, features for the model.

The trap: MLflow leaves the columns of ids among the features, and a model would take them for features.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval._registry import unknown
from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io import columns

if TYPE_CHECKING:
    from rankeval_mlflow.evaluator.settings import Settings


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
            raise QueryIdError("evaluator_config: qid is None; name the column with the query of each row")
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
            "targets and the key 'qrels' of evaluator_config both give judgments; leave one of them out: the targets "
            "hold no documents that the ranking lacks, qrels does"
        )
    if settings.docid is None:
        raise InvalidInput("evaluator_config: qrels needs docid, the column with the document of each row")
    if settings.weights is not None and not hasattr(settings.weights, "items"):
        raise InvalidInput("evaluator_config: with qrels, weights must be a mapping by query: some have no row")
