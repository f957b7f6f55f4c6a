"""The rows on which a saved ranker is checked, and the signature by which it is served.

MLflow converts each column of a request to its type in the signature before the ranker sees it. A
wrong type gives other scores, or refuses the rows of training. These are the types:

================================  ======  =========================================================================
column                            type    because
================================  ======  =========================================================================
categories                        any     MLflow has no type for them; the script of the model codes them
whole numbers                     any     a later value may be missing, and MLflow makes no doubles of 64 bits
the same, where none may be       long    a request has 64 bits, as pandas and JSON read whole numbers
truth values                      any     a later value may be missing, and MLflow's boolean reads null as false
unknown to MLflow, as uint64      any     otherwise MLflow forgets the names of all columns
others                            MLflow's own
================================  ======  =========================================================================

Numbers may be missing only if the ranker scores that, and gives floats the scores of whole numbers.
Both are tried. The script then makes floats of a column that arrives as objects.

The trap: the first rows of X may have no gap. A gap changes what MLflow infers and what an encoder
sees, so the first rows with a gap of each column are looked at too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.models import Model, ModelSignature, infer_signature
from mlflow.pyfunc import PyFuncModel
from mlflow.types.schema import AnyType, ColSpec, Schema
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from rankeval import QueryRanker
from rankeval._checks import said
from rankeval.collection.data import take_rows
from rankeval.errors import InvalidInput
from rankeval.evaluation.responses import responses
from rankeval.model_selection import category_columns
from rankeval.model_selection.nesting import features_for
from rankeval.model_selection.query_ids import n_rows
from rankeval.model_selection.score_columns import Fusion
from rankeval.model_selection.scorers import as_fitted
from rankeval_mlflow.delivery.payload import cut
from rankeval_mlflow.served_ranker import as_floats, with_columns

# Rows of X from which the signature is inferred, and for which the saved model must give the scores
# of the ranker; and as many with gaps. MLflow's inference reads each cell in Python: 5 seconds for
# a million.
CHECKED_ROWS = 1000

# JSON has these kinds of categories.
_SENT = {"string", "integer", "floating", "boolean", "empty"}
_SMALL = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
# Objects that are numbers or truth values; "floating" has None beside floats.
_NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal", "boolean"}


def rows_to_check(estimator: Any, X: Any) -> Any:
    """Return rows as the served model gets them: a pandas frame, a sparse matrix or an array.

    These are the first rows, and the first ones with a gap of each column that may hold something
    other than floats.
    """
    if hasattr(X, "columns") and hasattr(X, "to_pandas"):
        # Whole, since the type of a column depends on its gaps.
        X = X.to_pandas()
    elif hasattr(X, "tocsr"):  # MLflow has no signature of SciPy's sparse arrays
        X = csr_matrix(X)
    elif not hasattr(X, "columns"):
        X = features_for(estimator, X)
    # A fusion reads the queries, and is served with them.
    rows = X if isinstance(estimator, Fusion) else as_fitted(estimator, X)
    gaps = [column.isna().to_numpy().nonzero()[0] for column in _of_objects(rows)]
    most = CHECKED_ROWS // max(1, len(gaps)) or 1
    first = np.arange(min(CHECKED_ROWS, n_rows(rows)))
    return take_rows(rows, np.unique(np.concatenate([first, *(places[:most] for places in gaps)])))


def _of_objects(rows: Any) -> list[pd.Series]:
    """Return the columns that are not NumPy's own numbers: those of objects, texts, categories and nullable types."""
    table = _as_frame(rows)
    if table is None:
        return []
    return [
        column
        for _, column in table.items()
        if not isinstance(column.dtype, np.dtype) or column.dtype == object
    ]


def _as_frame(rows: Any) -> pd.DataFrame | None:
    """Return a frame of rows that may hold objects; None of an array of numbers and of a sparse matrix."""
    if isinstance(rows, np.ndarray) and rows.dtype == object:
        return pd.DataFrame(rows)
    return rows if hasattr(rows, "iloc") else None


def _odd(names: Sequence[Any], is_fine: Callable[[Sequence[Any]], bool]) -> list[Any]:
    """Return the names that are not fine alone, by halving: one call if all are fine."""
    if not names or is_fine(names):
        return []
    if len(names) == 1:
        return list(names)
    half = len(names) // 2
    return _odd(names[:half], is_fine) + _odd(names[half:], is_fine)


def _is_whole(column: pd.Series) -> bool:
    """Say whether a column has whole numbers or truth values, or objects that are numbers."""
    if column.dtype == object:
        return pd.api.types.infer_dtype(column, skipna=True) in _NUMBERS
    return column.dtype.kind in "biu"


def numbers(ranker: Any, rows: Any, scores: Any, known: Iterable[str]) -> list[Any]:
    """Return the columns of whole numbers that may be missing in a request."""
    if not hasattr(rows, "iloc"):
        return []
    whole = [name for name in rows if name not in known and _is_whole(rows[name])]

    def are_floats(names: Sequence[Any]) -> bool:
        floats = with_columns(rows, {name: as_floats(rows[name]) for name in names})
        try:
            responses(ranker, with_columns(floats.head(1), dict.fromkeys(names, math.nan)))
            return np.array_equal(responses(ranker, floats), scores)
        except Exception:  # noqa: BLE001 - a library raises whatever it likes of a missing value
            return False

    fixed = _odd(whole, are_floats)
    for name in fixed:
        if rows[name].isna().any():
            raise InvalidInput(
                argument="X",
                where=f"column {name!r}",
                found=f"of type {rows[name].dtype} with missing values, which MLflow cannot serve, and floats get "
                "other scores",
                remedy=_as_double(name),
            )
    return [name for name in whole if name not in fixed]


def _as_double(name: Any) -> str:
    return f'fit the ranker on X.astype({{{json.dumps(name)}: "float64"}})'


def signature(
    rows: Any,
    scores: NDArray[np.float64] | None,
    known: Iterable[str] = (),
    numeric: Iterable[Any] = (),
) -> Any:
    """Return MLflow's signature of rows and scores, or None if there are no rows."""
    if rows is None:
        return None
    if not hasattr(rows, "iloc"):
        return infer_signature(rows, scores)
    truths = [name for name in rows if rows[name].dtype.kind == "b"]
    free = {*known, *truths, *numeric}
    small = [name for name in rows if rows[name].dtype in _SMALL and name not in free]
    fixed = {name: rows[name].astype("int64") for name in small}
    plain = with_columns(rows, fixed | dict.fromkeys(free, 0.0))
    inferred = infer_signature(plain, scores)
    if not inferred.inputs.has_input_names():
        unknown = _odd(
            list(rows), lambda names: infer_signature(plain[names]).inputs.has_input_names()
        )
        free.update(unknown)
        inferred = infer_signature(with_columns(plain, dict.fromkeys(unknown, 0.0)), scores)
    columns = [
        ColSpec(AnyType(), column.name) if column.name in free else column
        for column in inferred.inputs.inputs
    ]
    return ModelSignature(Schema(columns), inferred.outputs)


def categories(ranker: Any, X: Any) -> dict[str, Any]:
    """Return the columns of categories with which a ranker was fitted, by name; refuse what JSON cannot send."""
    if hasattr(ranker, "best_estimator_"):
        return categories(ranker.best_estimator_, X)
    known: dict[str, Any] = (
        ranker.categories_ if isinstance(ranker, QueryRanker) else category_columns.categories_of(X)
    )
    booster: Any = ranker.get_booster() if known and hasattr(ranker, "get_booster") else None
    if hasattr(booster, "get_categories"):  # from XGBoost 3.1 on
        own = booster.get_categories(export_to_arrow=True).to_arrow()
        known = {
            name: pd.CategoricalDtype(values.to_pandas())
            for name, values in own
            if values is not None
        }
    if known and X is None:
        problem = f"the ranker was fitted with categories in {next(iter(known))!r}, and they are served by column names"
        raise InvalidInput(problem, argument="X", remedy="give X, some rows of fit")
    for name, kind in known.items():
        if not isinstance(name, str) or kind.categories.inferred_type not in _SENT:
            raise InvalidInput(
                argument="X",
                where=f"column {name!r}",
                found=f"categories of type {kind.categories.inferred_type}",
                expected="texts, numbers or truth values, and a name that is a text, since requests are JSON",
                remedy=f"fit the ranker on X[{name!r}].astype(str).astype('category')",
            )
    return known


class _Echo:
    """A model that returns what MLflow hands it."""

    def predict(self, rows: Any, params: Any = None) -> Any:  # noqa: ARG002 - MLflow's signature
        return rows


def refused_rows(schema: Schema, rows: Any, error: Exception) -> InvalidInput:
    """Return our error for rows that a saved model refuses, with the column at fault."""

    def are_taken(names: Sequence[Any]) -> bool:
        model = Model(
            signature=ModelSignature(Schema([schema.input_dict()[name] for name in names]))
        )
        model.add_flavor(mlflow.pyfunc.FLAVOR_NAME, loader_module=__name__)
        try:
            PyFuncModel(model_meta=model, model_impl=_Echo()).predict(rows[list(names)])
        except MlflowException:
            return False
        return True

    names = (
        [] if schema.is_tensor_spec() or not hasattr(rows, "iloc") else _odd(list(rows), are_taken)
    )
    if not names:  # MLflow's own message repeats the rows; the error that it handled does not
        why = cut(said(error.__cause__ or error.__context__ or error), 300)
        return InvalidInput(f"X is refused by the saved model: {why}")
    column = rows[names[0]]
    convert = _as_double(names[0]) if _is_whole(column) else "convert it before you fit the ranker"
    return InvalidInput(
        argument="X",
        where=f"column {names[0]!r}",
        found=f"of type {column.dtype}, which MLflow cannot hand to a model",
        expected="numbers, texts, truth values, categories, or times without a time zone",
        remedy=convert,
    )


def check_gaps(gives_scores: Callable[[Any], bool], rows: Any, known: Iterable[Any]) -> None:
    """Refuse a ranker that tells None from NaN in a column of texts: null in JSON is the one or the other."""
    texts = {
        column.name: column
        for column in _of_objects(rows)
        if column.name not in known and column.dtype.kind in "OSU" and column.isna().any()
    }

    def are_alike(names: Sequence[Any]) -> bool:
        return all(
            gives_scores(_filled(rows, {name: texts[name] for name in names}, gap))
            for gap in (None, math.nan)
        )

    if names := _odd(list(texts), are_alike):
        raise InvalidInput(
            argument="X",
            where=f"column {names[0]!r}",
            found="missing texts, which a request sends as null, read as None or as NaN",
            expected="one score for both",
            remedy=f"fit the ranker on X[{names[0]!r}].fillna(''), or on .astype('category'), in a pandas frame",
        )


def _filled(rows: Any, columns: dict[Any, pd.Series], gap: float | None) -> Any:
    """Return rows whose gaps in some columns are None, or NaN."""
    cells = {
        name: [
            gap if missing else cell for cell, missing in zip(column, column.isna(), strict=True)
        ]
        for name, column in columns.items()
    }
    table: Any = _as_frame(rows)
    filled = with_columns(
        table, {name: pd.Series(cells[name], table.index, dtype=object) for name in cells}
    )
    return filled if hasattr(rows, "iloc") else filled.to_numpy(object)


def predicted_by(uri: str, X: Any) -> Any:
    """Return what a logged model predicts for rows; its signature names the features."""
    model = mlflow.pyfunc.load_model(uri)
    schema = model.metadata.get_input_schema()
    names = schema.input_names() if schema is not None and schema.has_input_names() else None
    if hasattr(X, "columns"):  # a column of query ids is no feature
        X = X[names] if names else X.drop(columns="qid", errors="ignore")
    elif schema is not None and not schema.is_tensor_spec():
        X = pd.DataFrame(X, columns=names)
    return model.predict(X)
