"""Columns of pandas' type ``category``: a later frame, or texts from JSON, get the categories of training.

This file is copied into models of MLflow and runs there without rankeval, so it imports none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def categories_of(X: Any) -> dict[str, Any]:
    """Return the type of each column of categories of a pandas frame, by name; none of other rows."""
    return (
        {name: kind for name, kind in X.dtypes.items() if hasattr(kind, "categories")}
        if hasattr(X, "iloc")
        else {}
    )


def coded(X: Any, known: Mapping[str, Any], *, keep_unknown: bool) -> Any:
    """Return a pandas frame whose columns of categories have the categories of training, in their order.

    LightGBM and XGBoost refuse texts, and XGBoost refuses whole numbers of another width.
    """
    if not known or not hasattr(X, "iloc"):
        return X
    frame = X.copy(deep=False)
    for name, kind in known.items():
        frame[name] = _coded(X[name], kind, keep_unknown)
    return frame


def _coded(column: Any, kind: Any, keep_unknown: bool) -> Any:
    import pandas as pd

    # Types are equal if the categories have another order or width.
    if column.dtype == kind and column.dtype.categories.identical(kind.categories):
        return column
    values, categories = column.astype(object), kind.categories
    if categories.inferred_type == "string":
        values = values.where(values.isna(), values.map(str))
    elif categories.inferred_type in {"integer", "floating"}:
        values = pd.to_numeric(
            values, errors="coerce"
        )  # a column with a missing value comes as floats
    others = pd.Index(values[values.notna() & ~values.isin(categories)].unique())
    if len(others) and keep_unknown:  # nothing would change the type of whole numbers
        categories = categories.append(others)
    codes = categories.get_indexer(pd.Index(values))
    return pd.Series(
        pd.Categorical.from_codes(codes, categories, ordered=kind.ordered), index=column.index
    )
