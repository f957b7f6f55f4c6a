"""The signature of a saved ranker: the columns that a request must have, and one score per row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.model_selection.features import features_for


def features(estimator: Any, X: Any) -> Any:
    """Return rows as the served model gets them: a pandas frame, a sparse matrix or an array.

    Parameters
    ----------
    estimator : object
        The fitted estimator.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        The rows.
    """
    if hasattr(X, "columns") and hasattr(X, "to_pandas"):
        return X.to_pandas()
    return X if hasattr(X, "iloc") else features_for(estimator, X)


def signature(X: Any, scores: NDArray[np.float64] | None) -> Any:
    """Return MLflow's signature of rows and scores, or None if there are no rows or MLflow cannot describe them.

    MLflow has no type for pandas' categories, and turns them into texts wherever a signature has another type for them.
    Rows with such a column have no signature; a request must then have the columns of `fit`, in their order: LightGBM
    and CatBoost take them by place, and give other scores without an error if the order differs.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features), or None
        The rows.
    scores : ndarray of shape (n_rows,)
        Their scores.
    """
    import pandas as pd
    from mlflow.models import infer_signature

    if X is None:
        return None
    if hasattr(X, "iloc") and any(isinstance(kind, pd.CategoricalDtype) for kind in X.dtypes):
        return None
    return infer_signature(X, scores)


def gaps(X: Any) -> str:
    """Return what to do about whole numbers with missing values, for which MLflow has no type; "" if there are none.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        The rows.
    """
    import pandas as pd

    if not hasattr(X, "iloc"):
        return ""
    whole = [
        name for name in X.columns if pd.api.types.is_integer_dtype(X[name]) or pd.api.types.is_bool_dtype(X[name])
    ]
    names = [str(name) for name in whole if X[name].isna().any()]
    said = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f". MLflow has no type for whole numbers with missing values: give {said} as float64" if names else ""
