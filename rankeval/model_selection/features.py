"""The features of the rows in a form that an estimator takes, without the column of query ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput
from rankeval.model_selection import boosters, nesting
from rankeval.model_selection.query_ids import without_ids


def features_for(estimator: Any, X: Any) -> Any:
    """Return features as a pandas frame, a sparse matrix or an array.

    Parameters
    ----------
    estimator : object
        The estimator that gets them.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        The rows.

    Raises
    ------
    InvalidInput
        If X masks a value, has another number of dimensions, or no row or column.
    """
    check_rows(X=X)
    features = without_ids(X)
    if hasattr(features, "to_pandas"):
        # The boosters accept pandas frames, but no polars frames.
        features = features.to_pandas()
    elif hasattr(features, "tocsr") and boosters.library(nesting.last_of(estimator)):
        # They accept SciPy's sparse matrices, but no sparse arrays. The matrix shares the memory.
        from scipy.sparse import csr_matrix

        features = csr_matrix(features)
    elif not hasattr(features, "iloc") and not hasattr(features, "tocsr"):
        features = np.asarray(features)
    _check_shape(features.shape)
    return features


def _check_shape(shape: tuple[int, ...]) -> None:
    """Raise unless X is a table with rows and columns, in scikit-learn's words."""
    if len(shape) != 2:
        raise InvalidInput(
            f"Expected 2D array, got X of shape {shape}. Reshape your data with X.reshape(-1, 1) if it has a single "
            "feature, or X.reshape(1, -1) if it is a single row"
        )
    for size, what in zip(shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise InvalidInput(f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")
