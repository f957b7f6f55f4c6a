"""Save a fitted ranker in the MLflow flavour of its library, as files in memory.

==========================  ====================  ===============================================================
fitted estimator            flavour               in the file
==========================  ====================  ===============================================================
LightGBM's                  ``mlflow.lightgbm``   its booster, as text; MLflow refuses LGBMRanker as an unknown type
XGBoost's                   ``mlflow.xgboost``    the model
CatBoost's                  ``mlflow.catboost``   the model
scikit-learn's, Pipelines   ``mlflow.sklearn``    the estimator, by skops if skops can, else by cloudpickle
classifiers                 ``mlflow.pyfunc``     the classifier by ``mlflow.sklearn``, and a script that makes scores
==========================  ====================  ===============================================================

Early stopping is in all of them: LightGBM writes the trees up to the best iteration, XGBoost the number of the best
iteration, and CatBoost drops the others when training ends.

The trap: a flavour can lose a parameter that `predict` reads, as XGBoost's loses ``missing``. So a model is loaded
again before it is logged, and must give the same scores for rows of X, bit for bit.

`packed` makes one file of a saved ranker, so that an experiment keeps it beside a cached result: a ZIP archive of
``saved.json`` with the name of the flavour and the parameters, and the files of the MLflow model below ``model/``.
"""

from __future__ import annotations

import io
import json
import logging
import math
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
from mlflow.exceptions import MlflowException
from numpy.typing import NDArray

from rankeval import QueryRanker
from rankeval._checks import said
from rankeval.collection.data import RankingData, take_rows
from rankeval.errors import InvalidInput
from rankeval.evaluation.responses import responses
from rankeval.model_selection import boosters
from rankeval.model_selection.nesting import features_for
from rankeval.model_selection.query_ids import n_rows
from rankeval.model_selection.scorers import as_fitted
from rankeval_mlflow.flavours import mlmodel
from rankeval_mlflow.flavours.bare import bare, gives_classes, pinned, way_of
from rankeval_mlflow.flavours.mlmodel import SavedModel
from rankeval_mlflow.layout import param_text, safe_names

CHECKED_ROWS = 1000
"""Rows of X from which the signature is inferred, and for which the saved model must give the scores of the ranker."""

_LOADER = Path(__file__).with_name("scores_of_classes.py")  # it is copied into models, and never imported from here
_FACTS, _MODEL = "saved.json", "model/"
MODEL_TYPE = "ranker"
"""The type of all models that we log, as in ``mlflow.models.evaluate(model_type="ranker")``."""


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
    told = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f". MLflow has no type for whole numbers with missing values: give {told} as float64" if names else ""


def saved(ranker: Any, name: str = "ranker", *, X: Any = None) -> SavedModel:
    """Save a fitted ranker as an MLflow model that needs no rankeval.

    Parameters
    ----------
    ranker : object
        A fitted QueryRanker, ranker, regressor or classifier, or a Pipeline or search with one.
    name : str
        Name of the model.
    X : RankingData, array, sparse matrix or frame of shape (n_rows, n_features), optional
        Rows to rank, such as those of `fit`. The signature is inferred from the first of them, and the saved model is
        checked on them. A column "qid" is left out unless the ranker was fitted with it.

    Raises
    ------
    InvalidInput
        If the ranker is not fitted, needs rankeval to predict, or is refused by its flavour; or if the saved model
        gives other scores than the ranker for the rows of X.
    """
    X = X.X if isinstance(X, RankingData) else X
    inner = bare(ranker)
    # MLflow's inference reads each cell in Python: 5 seconds for a million.
    few = (
        None if X is None else features(inner, as_fitted(inner, take_rows(X, np.arange(min(CHECKED_ROWS, n_rows(X))))))
    )
    scores = None if few is None else responses(ranker, few)
    with tempfile.TemporaryDirectory() as folder, _quiet():
        path = Path(folder) / "model"
        flavor = _write(inner, path, signature(few, scores))
        if few is not None:
            _check(path, few, scores, ranker)
        files = {file.relative_to(path).as_posix(): file.read_bytes() for file in _files(path)}
    files[mlmodel.FILE] = mlmodel.without_ids(files[mlmodel.FILE])
    return SavedModel(name, files, parameters(ranker), flavor=flavor, model_type=MODEL_TYPE)


def parameters(ranker: Any) -> dict[str, str]:
    """Return the parameters of a fitted ranker, without those that are None or no plain values.

    Parameters
    ----------
    ranker : object
        A fitted ranker.
    """
    inner = bare(ranker)
    given = inner.get_params() if hasattr(inner, "get_params") else dict(getattr(inner, "params", {}))
    plain = {key: value for key, value in given.items() if isinstance(value, (str, bool, int, float))}
    plain = {key: value for key, value in plain.items() if not (isinstance(value, float) and math.isnan(value))}
    if getattr(ranker, "n_iterations_", None) is not None:
        plain["n_iterations"] = ranker.n_iterations_
    names = safe_names({"estimator": None, **plain})
    return {"estimator": type(inner).__name__} | {names[key]: param_text(value) for key, value in plain.items()}


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*")) if file.is_file() and "__pycache__" not in file.parts)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep MLflow from advice that we followed: on pickle, on integer columns, on requirements that are given."""
    loggers = [logging.getLogger(name) for name in ("mlflow.sklearn", "mlflow.pyfunc", "mlflow.models.model")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=UserWarning)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _write(inner: Any, path: Path, schema: Any) -> str:
    library = boosters.library(inner) if _predicts_by_its_library(inner) else None
    if gives_classes(inner):
        return _write_classifier(inner, path, schema)
    try:
        if library == "lightgbm":
            _native("lightgbm", getattr(inner, "booster_", inner), path, schema)
        elif library == "xgboost" and _keeps_all(inner):
            _native("xgboost", inner, path, schema)
        elif library == "catboost":
            _native("catboost", inner, path, schema)
        else:
            _write_estimator(inner, path, schema)
            return "sklearn"
    except MlflowException as error:
        raise InvalidInput(f"ranker cannot be saved: {said(error)}") from error
    return library


def _native(library: str, model: Any, path: Path, schema: Any) -> None:
    import importlib

    flavour = importlib.import_module(f"mlflow.{library}")
    flavour.save_model(model, str(path), signature=schema, pip_requirements=pinned([library, "pandas"]))


def _predicts_by_its_library(inner: Any) -> bool:
    """Say whether `predict` is the library's: the file of a booster loses one that a subclass has of its own."""
    predict = getattr(type(inner), "predict", None)
    return getattr(predict, "__module__", "").partition(".")[0] == boosters.library(inner)


def _keeps_all(inner: Any) -> bool:
    """Say whether the file of an XGBoost model holds all that `predict` reads: it has no ``missing``."""
    missing = inner.get_params(deep=False).get("missing")
    own = type(inner).__module__.partition(".")[0] == "xgboost"
    return own and (missing is None or (isinstance(missing, float) and math.isnan(missing)))


def _write_estimator(inner: Any, path: Path, schema: Any) -> None:
    """Save by `mlflow.sklearn`; the requirements are the packages whose classes the file names."""
    if not hasattr(inner, "get_params"):
        raise InvalidInput(
            f"ranker is a {type(inner).__name__}; give a QueryRanker, an estimator of LightGBM, XGBoost, CatBoost or "
            "scikit-learn, or a Pipeline"
        )
    way, modules = way_of(inner)
    packages = sorted(
        {module.partition(".")[0] for module in modules} | {"sklearn", "pandas", way["serialization_format"]}
    )
    mlflow.sklearn.save_model(inner, str(path), signature=schema, pip_requirements=pinned(packages), **way)


def _write_classifier(inner: Any, path: Path, schema: Any) -> str:
    """Save a classifier beside a script that turns its probabilities into scores."""
    with tempfile.TemporaryDirectory() as folder:
        classifier = Path(folder) / "classifier"
        _write_estimator(inner, classifier, None)
        lines = (classifier / "requirements.txt").read_text().splitlines()
        mlflow.pyfunc.save_model(
            str(path),
            loader_module=_LOADER.stem,
            data_path=str(classifier),
            code_paths=[str(_LOADER)],
            signature=schema,
            pip_requirements=[line for line in lines if not line.startswith("mlflow")],
        )
    return "python_function"


def _check(path: Path, rows: Any, scores: Any, ranker: Any) -> None:
    paths = list(sys.path)  # MLflow adds the code of a model, and this folder will be gone
    try:
        found = np.asarray(mlflow.pyfunc.load_model(str(path), suppress_warnings=True).predict(rows), dtype=np.float64)
    except MlflowException as error:
        raise InvalidInput(f"X is refused by the saved model: {said(error)}{gaps(rows)}") from error
    finally:
        sys.path[:] = paths
    odd = np.flatnonzero(found.reshape(-1) != scores) if found.size == len(scores) else None
    if odd is None or len(odd):
        kind = type(ranker.estimator_ if isinstance(ranker, QueryRanker) else ranker).__name__
        where = "another number of scores" if odd is None else f"another score in row {odd[0]} of X"
        raise InvalidInput(f"ranker cannot be saved: the saved {kind} gives {where}, of {len(scores)} rows tried")


def packed(model: SavedModel) -> bytes:
    """Return a saved ranker as the bytes of one file.

    Parameters
    ----------
    model : SavedModel
        From `saved`. Its name is not kept.
    """
    facts = {"params": model.params, "flavor": model.flavor, "tags": model.tags}
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_FACTS, json.dumps(facts))
        for path, content in model.files.items():
            archive.writestr(f"{_MODEL}{path}", content)
    return sink.getvalue()


def unpacked(content: bytes, name: str) -> SavedModel:
    """Return the saved ranker that `packed` wrote.

    Parameters
    ----------
    content : bytes
        What `packed` returned.
    name : str
        Name of the model.

    Raises
    ------
    InvalidInput
        If these are other bytes.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from rankeval import QueryRanker
    >>> from rankeval_mlflow.flavours.saving import saved
    >>> ranker = QueryRanker(Ridge()).fit([[0.0], [1.0]], [0, 1], qid=["a", "a"])
    >>> model = unpacked(packed(saved(ranker)), "ridge")
    >>> model.name, model.flavor, "MLmodel" in model.files
    ('ridge', 'sklearn', True)
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            facts = json.loads(archive.read(_FACTS))
            files = {path: archive.read(path) for path in archive.namelist() if path.startswith(_MODEL)}
        paths = {path.removeprefix(_MODEL): content for path, content in files.items()}
        return SavedModel(name, paths, dict(facts["params"]), dict(facts["tags"]), facts["flavor"], MODEL_TYPE)
    except (zipfile.BadZipFile, LookupError, ValueError, TypeError, NotImplementedError) as error:
        raise InvalidInput(f"the packed model is damaged: {type(error).__name__}: {error}") from error
