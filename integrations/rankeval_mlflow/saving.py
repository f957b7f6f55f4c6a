"""Save a fitted ranker in the MLflow flavour of its library, as files in memory.

==========================  ====================  ===============================================================
fitted estimator            flavour               in the file
==========================  ====================  ===============================================================
LightGBM's                  ``mlflow.lightgbm``   its booster, as text; MLflow refuses LGBMRanker as an unknown type
XGBoost's                   ``mlflow.xgboost``    the model
CatBoost's                  ``mlflow.catboost``   the model
scikit-learn's, Pipelines   ``mlflow.sklearn``    the estimator, by skops if skops can, else by cloudpickle
classifiers                 ``mlflow.sklearn``    the classifier, and a script that makes scores for ``mlflow.pyfunc``
rankers by columns          ``mlflow.pyfunc``     their settings, and a script that reads the columns
==========================  ====================  ===============================================================

Early stopping is in all of them: LightGBM writes the trees up to the best iteration, XGBoost the
number of the best iteration, and CatBoost drops the others when training ends.

The trap: a flavour can lose a parameter that `predict` reads, as XGBoost's loses ``missing``. So a
model is loaded again before it is logged, and must give the same scores for rows of X, bit for bit.

The signature is that of `signing`. The script codes columns of categories by the categories of
training before the library sees them, from texts too, as JSON sends them, and makes floats of
numbers among which some are missing.

`packed_model` makes one file of a saved ranker, so that an experiment keeps it beside a cached result: a
ZIP archive of ``saved.json`` with the name of the flavour and the parameters, and the files of the
MLflow model below ``model/``.

First, `unwrapped` takes rankeval's classes out of the ranker, so that what is left can be loaded without
rankeval::

    QueryRanker(LGBMRanker())                        the fitted LGBMRanker
    QueryRanker(Pipeline([scale, LGBMRanker()]))     the fitted Pipeline
    Pipeline([scale, QueryRanker(LGBMRanker())])     a Pipeline of the same steps with the fitted LGBMRanker
    GridSearchCV(QueryRanker(Ridge()))               the fitted Ridge of the best parameters
    VotingRegressor([("a", QueryRanker(Ridge()))])   a VotingRegressor of the fitted Ridges

Nothing is fitted again and no array is copied. The parts that change are shallow copies; the ranker
stays as it is.

The packages that the estimator needs are read from its file, never guessed, and pinned to the
installed versions. MLflow would load the model in a new process and note every package that is
imported, which takes seconds and finds rankeval if the environment imports it.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import json
import logging
import math
import pickletools
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import cloudpickle
import mlflow
import mlflow.sklearn
import numpy as np
from mlflow.exceptions import MlflowException
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankeval import QueryRanker
from rankeval._checks import said, shown
from rankeval.collection.data import RankingData, take_rows
from rankeval.errors import InvalidInput
from rankeval.evaluation.responses import responses
from rankeval.fusion import fusion_methods
from rankeval.model_selection import boosters, category_columns
from rankeval.model_selection.libraries import Booster
from rankeval.model_selection.nesting import keeps_unknown
from rankeval.model_selection.parameters import shown_text
from rankeval.model_selection.query_ids import has_column, n_rows
from rankeval.model_selection.score_columns import ColumnRanker, Fusion, fuser_of, served_form
from rankeval_mlflow import served_columns, served_ranker
from rankeval_mlflow.delivery.connection import hushed
from rankeval_mlflow.delivery.payload import MLMODEL, SavedModel, without_run_ids
from rankeval_mlflow.run_names import param_text, safe_names
from rankeval_mlflow.served_ranker import as_floats, with_columns
from rankeval_mlflow.signing import (
    categories,
    check_gaps,
    numbers,
    refused_rows,
    rows_to_check,
    signature,
)

# Parameters that `predict` does not read. A fitted estimator keeps our splitters and scorers there.
_ONLY_FOR_FIT = frozenset({"cv", "scoring"})

_OURS = ("rankeval", "rankeval_mlflow")
# Import names whose package has another name; the others are asked for if they are not packages
# themselves.
_PACKAGES = {"sklearn": "scikit-learn"}


# The loader of models for which that of their flavour is not enough, and what it imports.
_SCRIPTS = [str(Path(served_ranker.__file__)), str(Path(category_columns.__file__))]
EXAMPLE_ROWS = 3
_FACTS, _MODEL = "saved.json", "model/"
# The type of all models that we log, as in ``mlflow.models.evaluate(model_type="ranker")``.
MODEL_TYPE = "ranker"


def unwrapped(ranker: Any) -> Any:
    """Return a fitted estimator that predicts as the ranker does and has no part of rankeval.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> unwrapped(QueryRanker(Ridge()).fit([[0.0], [1.0]], [0, 1], qid=["a", "a"]))
    Ridge()
    """
    if isinstance(ranker, type) or not hasattr(ranker, "predict"):
        raise InvalidInput(
            f"ranker is {shown(ranker)}; give a fitted estimator, such as QueryRanker(...).fit(...)"
        )
    if isinstance(ranker, QueryRanker):
        _check_fitted(ranker)
        return unwrapped(ranker.estimator_)
    if hasattr(ranker, "best_estimator_"):
        return unwrapped(ranker.best_estimator_)
    if (
        hasattr(ranker, "best_params_")
        or hasattr(ranker, "param_distributions")
        or hasattr(ranker, "param_grid")
    ):
        raise InvalidInput(
            f"ranker is a {type(ranker).__name__} without best_estimator_: fit it, with refit=True or the name of a "
            "measure"
        )
    if isinstance(ranker, Pipeline):
        pipeline = copy.copy(ranker)
        *head, (name, last) = ranker.steps
        pipeline.steps = [
            *((step, _without(member, "step")) for step, member in head),
            (name, unwrapped(last)),
        ]
        return pipeline
    if not hasattr(ranker, "get_params"):
        return ranker
    _check_fitted(ranker)
    return ranker if boosters.booster_of(ranker) else _without(ranker, "ranker")


def gives_classes(estimator: Any) -> bool:
    """Say whether `predict` gives labels, so that scores come from another method."""
    return hasattr(estimator, "classes_") and (
        hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
    )


def _check_fitted(estimator: Any) -> None:
    try:
        # CatBoost's estimators know it themselves, and nobody else does.
        fitted = (
            estimator.is_fitted()
            if hasattr(estimator, "is_fitted")
            else check_is_fitted(estimator) is None
        )
    except NotFittedError:
        fitted = False
    if not fitted:
        raise InvalidInput(f"ranker is {estimator!r}, which is not fitted: call fit first")


def _without(value: Any, name: str) -> Any:
    """Return a value in which fitted and unfitted QueryRankers are replaced by their estimators; itself if none is."""
    if isinstance(value, QueryRanker):
        return _member(value)
    if type(value) in (list, tuple):
        parts = [_without(part, name) for part in value]
        return value if _same(parts, value) else type(value)(parts)
    if isinstance(value, dict):  # also scikit-learn's Bunch
        changed = {key: _without(part, str(key)) for key, part in value.items()}
        if _same(changed.values(), value.values()):
            return value
        copied = copy.copy(value)
        copied.update(changed)
        return copied
    if name in _ONLY_FOR_FIT and type(value).__module__.partition(".")[0] == "rankeval":
        return None
    plain = not (hasattr(value, "get_params") and hasattr(value, "__dict__"))
    if isinstance(value, type) or plain or boosters.booster_of(value):
        return value
    state = {key: _without(part, key) for key, part in vars(value).items()}
    if _same(state.values(), vars(value).values()):
        return value
    changed_one = copy.copy(value)
    vars(changed_one).update(state)
    return changed_one


def _member(ranker: QueryRanker) -> Any:
    # The ensemble asks its members for `predict`.
    if not hasattr(ranker, "estimator_"):
        return _without(ranker.estimator, "estimator")
    inner = unwrapped(ranker.estimator_)
    if gives_classes(inner):
        raise InvalidInput(
            f"ranker has a member {ranker!r}, whose score is a probability, and {type(inner).__name__}.predict gives "
            "labels: it cannot be saved without rankeval; use a regressor or a ranker there"
        )
    return inner


def _same(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return all(left is right for left, right in zip(new, old, strict=True))


def way_of(estimator: Any) -> tuple[dict[str, Any], set[str]]:
    """Return how `mlflow.sklearn` is to write an estimator, and the modules that the file names.

    skops first: it loads no class that the model does not list. cloudpickle takes what skops
    cannot, such as functions and classes of a notebook.
    """
    by_skops = _by_skops(estimator)
    if by_skops is not None and "__main__" not in by_skops[1]:
        types, modules = by_skops
        options: dict[str, Any] = {"serialization_format": "skops", "skops_trusted_types": types}
    else:
        modules = _by_cloudpickle(estimator)
        options = {"serialization_format": "cloudpickle"}
    if ours := sorted(name for name in modules if name.partition(".")[0] in _OURS):
        raise InvalidInput(
            f"ranker cannot be saved without rankeval: it contains an object of {ours[0]}. Take that out, or log it by "
            "mlflow.sklearn.log_model(..., serialization_format='cloudpickle') and load it where rankeval is installed"
        )
    return options, modules


def pinned(packages: Iterable[str]) -> list[str]:
    """Return pip requirements with the installed versions; a module of no package or of Python's own is left out."""
    versions = {}
    for name in set(packages) - sys.stdlib_module_names:
        package = _PACKAGES.get(name, name)
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            for other in _distributions().get(name, [])[:1]:
                versions[other] = version(other)
    return [
        f"{package}=={number.partition('+')[0]}" for package, number in sorted(versions.items())
    ]


# The file lists of all installed packages are read.
_distributions = cache(packages_distributions)


def _by_skops(estimator: Any) -> tuple[list[str], set[str]] | None:
    if "skops_trusted_types" not in inspect.signature(mlflow.sklearn.save_model).parameters:
        return None
    import skops.io

    try:
        content = skops.io.dumps(estimator)
        # The types that skops does not know itself. They are those of the user's own model.
        types = sorted(skops.io.get_untrusted_types(data=content))
        skops.io.loads(content, trusted=types)
    except Exception:  # noqa: BLE001 - skops raises whatever the state of a foreign class raises, RecursionError too
        return None
    modules: list[Any] = []
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        json.loads(
            archive.read("schema.json"),
            object_hook=lambda part: modules.append(part.get("__module__")),
        )
    return types, {module for module in modules if isinstance(module, str)}


def _by_cloudpickle(estimator: Any) -> set[str]:
    """Return the modules of a pickle: of its classes and functions, and those that its own functions import."""
    try:
        content = cloudpickle.dumps(estimator)
    except Exception as error:  # a foreign class raises whatever it likes
        raise InvalidInput(f"ranker cannot be saved: {type(error).__name__}: {error}") from error
    # A class is named by two texts, its module and its name; a module that a function uses is named
    # by one.
    texts = [str(arg) for _, arg, _ in pickletools.genops(content) if isinstance(arg, str)]
    return {text for text in texts if text in sys.modules}


def saved(ranker: Any, name: str = "ranker", *, X: Any = None) -> SavedModel:
    """Save a fitted ranker as an MLflow model that needs no rankeval."""
    X, qid = (X.X, X.qid) if isinstance(X, RankingData) else (X, None)
    inner = unwrapped(ranker)
    if isinstance(inner, (ColumnRanker, Fusion)):
        inner, X = served_form(inner, X, qid)
        ranker = inner
    # Advice that we followed: on pickle, on integer columns, on requirements that are given, and on
    # MLflow's own code.
    loggers = ("mlflow.sklearn", "mlflow.pyfunc", "mlflow.models.model", "mlflow.models.signature")
    quiet = hushed(dict.fromkeys(loggers, logging.ERROR))
    with tempfile.TemporaryDirectory() as folder, quiet, warnings.catch_warnings(action="ignore"):
        rows: Any = None if X is None else rows_to_check(inner, X)
        scores: Any = None if rows is None else responses(ranker, rows)
        known = categories(ranker, rows)
        numeric = numbers(ranker, rows, scores, known)
        free = [*known, "qid"] if isinstance(inner, Fusion) and has_column(rows) else [*known]
        # As JSON sends them, in another order of the columns.
        sent = rows.astype(dict.fromkeys(known, object))[rows.columns[::-1]] if known else rows
        coded = {"categories": known, "numbers": numeric}
        beside = {
            "signature": signature(rows, scores, free, numeric),
            "input_example": _example(sent, numeric),
        }
        path = Path(folder) / "model"
        flavor = _write(inner, path, coded, beside)
        if rows is not None:
            _check(path, sent, scores, ranker, coded)
        kept = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        ]
        files = {file.relative_to(path).as_posix(): file.read_bytes() for file in kept}
    files[MLMODEL] = without_run_ids(files[MLMODEL])
    return SavedModel(name, files, parameters(ranker), flavor=flavor, model_type=MODEL_TYPE)


def parameters(ranker: Any) -> dict[str, str]:
    """Return the parameters of a fitted ranker, without those that are None or not plain values."""
    inner = unwrapped(ranker)
    settings = (
        inner.get_params() if hasattr(inner, "get_params") else dict(getattr(inner, "params", {}))
    )
    plain = {key: value for key, value in settings.items() if _is_plain(value)}
    if getattr(ranker, "n_iterations_", None) is not None:
        plain["n_iterations"] = ranker.n_iterations_
    names = safe_names({"estimator": None, **plain})
    return {"estimator": type(inner).__name__} | {
        names[key]: param_text(shown_text(key, value)) for key, value in plain.items()
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    is_missing = isinstance(value, float) and math.isnan(value)
    return isinstance(value, (str, bool, int, float)) and not is_missing


def _example(rows: Any, numeric: Iterable[str]) -> Any:
    if rows is None:
        return None
    few = take_rows(rows, np.arange(min(EXAMPLE_ROWS, n_rows(rows))))
    if not hasattr(few, "iloc"):
        return few
    # JSON has neither pandas.NA nor decimals.
    odd = [name for name in numeric if few[name].dtype == object or few[name].isna().any()]
    texts = few.select_dtypes("string")
    gaps = {name: texts[name].astype(object).where(texts[name].notna(), None) for name in texts}
    return with_columns(few, gaps | {name: as_floats(few[name]) for name in odd})


def _write(inner: Any, path: Path, coded: Mapping[str, Any], beside: dict[str, Any]) -> str:
    if isinstance(inner, Fusion):
        return _write_columns(inner, path, beside)
    booster = boosters.booster_of(inner)
    is_plain = bool(booster) and not gives_classes(inner) and _predicts_by(booster, inner)
    model = booster.saved(inner) if is_plain else None
    flavor = "sklearn" if model is None else booster.name
    if scripted := any(coded.values()) or gives_classes(inner):
        beside = {**beside, "code_paths": _SCRIPTS}
    try:
        if model is not None:
            requirements = pinned([flavor, "pandas"])
            module = importlib.import_module(f"mlflow.{flavor}")
            module.save_model(model, str(path), pip_requirements=requirements, **beside)
        else:
            _write_estimator(inner, path, beside)
    except MlflowException as error:
        raise InvalidInput(f"ranker cannot be saved: {said(error)}") from error
    if scripted:
        _name_loader(inner, path, flavor, coded)
    return flavor


def _write_columns(ranker: Fusion, path: Path, beside: dict[str, Any]) -> str:
    fuser = fuser_of(ranker)
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "settings.json"
        plain = {"columns": ranker.columns, "reads_queries": fuser.reads_queries}
        settings.write_text(json.dumps({**plain, "fusion": vars(fuser)}, indent=1))
        mlflow.pyfunc.save_model(
            str(path),
            loader_module=served_columns.__name__.rpartition(".")[2],
            data_path=str(settings),
            code_paths=[str(served_columns.__file__), str(fusion_methods.__file__)],
            pip_requirements=pinned(["numpy", "pandas"]),
            **beside,
        )
    return str(mlflow.pyfunc.FLAVOR_NAME)


def _name_loader(inner: Any, path: Path, flavor: str, coded: Mapping[str, Any]) -> None:
    settings = {
        "flavor": flavor,
        "gives_classes": gives_classes(inner),
        "keep_unknown": keeps_unknown(inner),
        "categories": {name: _plain(kind) for name, kind in coded["categories"].items()},
        "numbers": coded["numbers"],
    }
    (path / served_ranker.SETTINGS).write_text(json.dumps(settings, indent=1))
    model = mlflow.models.Model.load(str(path))
    model.flavors["python_function"]["loader_module"] = served_ranker.__name__.rpartition(".")[2]
    model.save(str(path / MLMODEL))


def _plain(kind: Any) -> dict[str, Any]:
    """Return a type of categories as JSON holds it."""
    values = kind.categories
    # XGBoost asks for whole numbers of the same width.
    dtype = None if values.inferred_type == "string" else str(values.dtype)
    return {"categories": values.tolist(), "dtype": dtype, "ordered": kind.ordered}


def _predicts_by(booster: Booster, inner: Any) -> bool:
    # The file of a booster loses a `predict` that a subclass has of its own.
    predict = getattr(type(inner), "predict", None)
    return getattr(predict, "__module__", "").partition(".")[0] == booster.name


def _write_estimator(inner: Any, path: Path, beside: dict[str, Any]) -> None:
    """Save by `mlflow.sklearn`; the requirements are the packages whose classes the file names."""
    if not hasattr(inner, "get_params"):
        raise InvalidInput(
            f"ranker is a {type(inner).__name__}; give a QueryRanker, an estimator of LightGBM, XGBoost, CatBoost or "
            "scikit-learn, or a Pipeline"
        )
    options, modules = way_of(inner)
    packages = sorted(
        {module.partition(".")[0] for module in modules}
        | {"sklearn", "pandas", options["serialization_format"]}
    )
    mlflow.sklearn.save_model(
        inner, str(path), pip_requirements=pinned(packages), **options, **beside
    )


def _check(
    path: Path, rows: Any, scores: NDArray[np.float64], ranker: Any, coded: Mapping[str, Any]
) -> None:
    """Refuse a saved model that gives rows other scores than the ranker does."""
    paths = list(sys.path)  # MLflow adds the code of a model, and this folder will be gone
    try:
        model = mlflow.pyfunc.load_model(str(path), suppress_warnings=True)
        kind = type(ranker.estimator_ if isinstance(ranker, QueryRanker) else ranker).__name__
        try:
            odd = _differing(model, rows, scores)
        except MlflowException as error:
            raise refused_rows(model.metadata.get_input_schema(), rows, error) from error
        if odd is None or len(odd):
            where = "another number of scores" if odd is None else f"another score in row {odd[0]}"
            raise InvalidInput(
                f"ranker cannot be saved: the saved {kind} gives {where}, of {len(scores)} rows tried"
            )
        check_gaps(partial(_gives, model, scores), rows, {*coded["categories"], *coded["numbers"]})
    finally:
        sys.path[:] = paths


def _differing(model: Any, rows: Any, scores: NDArray[np.float64]) -> NDArray[np.intp] | None:
    """Return the rows that get another score; None if there is another number of scores."""
    # MLflow up to 3.12 aligns columns of any type by the index, in which ids of queries repeat.
    table = rows.reset_index(drop=True) if hasattr(rows, "reset_index") else rows
    predicted = np.asarray(model.predict(table), dtype=np.float64)
    if predicted.size != len(scores):
        return None
    # A sum of products depends in its last bits on how the rows lie in memory, and MLflow makes a
    # frame of its own.
    return np.flatnonzero(~np.isclose(predicted.reshape(-1), scores, rtol=1e-9, atol=1e-12))


def _gives(model: Any, scores: NDArray[np.float64], rows: Any) -> bool:
    try:
        odd = _differing(model, rows, scores)
    except Exception:  # noqa: BLE001 - an encoder raises whatever it likes of a gap
        return False
    return odd is not None and not len(odd)


def packed_model(model: SavedModel) -> bytes:
    """Return a saved ranker as the bytes of one file."""
    facts = {"params": model.params, "flavor": model.flavor, "tags": model.tags}
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_FACTS, json.dumps(facts))
        for path, content in model.files.items():
            archive.writestr(f"{_MODEL}{path}", content)
    return sink.getvalue()


def unpacked_model(content: bytes, name: str) -> SavedModel:
    """Return the saved ranker that `packed_model` wrote.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from rankeval import QueryRanker
    >>> from rankeval_mlflow.saving import saved
    >>> ranker = QueryRanker(Ridge()).fit([[0.0], [1.0]], [0, 1], qid=["a", "a"])
    >>> model = unpacked_model(packed_model(saved(ranker)), "ridge")
    >>> model.name, model.flavor, "MLmodel" in model.files
    ('ridge', 'sklearn', True)
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            facts = json.loads(archive.read(_FACTS))
            files = {
                path.removeprefix(_MODEL): archive.read(path)
                for path in archive.namelist()
                if path.startswith(_MODEL)
            }
        return SavedModel(
            name, files, dict(facts["params"]), dict(facts["tags"]), facts["flavor"], MODEL_TYPE
        )
    except (zipfile.BadZipFile, LookupError, ValueError, TypeError, NotImplementedError) as error:
        raise InvalidInput(
            f"the packed model is damaged: {type(error).__name__}: {error}"
        ) from error
