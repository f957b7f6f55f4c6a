"""Take rankeval's classes out of a fitted ranker, so that what is left can be loaded without rankeval.

::

    QueryRanker(LGBMRanker())                        the fitted LGBMRanker
    QueryRanker(Pipeline([scale, LGBMRanker()]))     the fitted Pipeline
    Pipeline([scale, QueryRanker(LGBMRanker())])     a Pipeline of the same steps with the fitted LGBMRanker
    GridSearchCV(QueryRanker(Ridge()))               the fitted Ridge of the best parameters
    VotingRegressor([("a", QueryRanker(Ridge()))])   a VotingRegressor of the fitted Ridges

Nothing is fitted again and no array is copied. The parts that change are shallow copies; the ranker stays as it is.

The packages that the estimator needs are read from its file, never guessed, and pinned to the installed versions.
MLflow would load the model in a new process and note every package that is imported, which takes seconds and finds
rankeval if the environment imports it.
"""

from __future__ import annotations

import copy
import io
import json
import pickletools
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from inspect import signature
from typing import Any

import cloudpickle
import mlflow.sklearn
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankeval import QueryRanker
from rankeval.errors import InvalidInput
from rankeval.model_selection import boosters

_ONLY_FOR_FIT = frozenset({"cv", "scoring"})
"""Parameters that `predict` does not read. A fitted estimator keeps our splitters and scorers there."""

_OURS = ("rankeval", "rankeval_mlflow")
# Import names whose package has another name; the others are asked for if they are not packages themselves.
_PACKAGES = {"sklearn": "scikit-learn"}


def bare(ranker: Any) -> Any:
    """Return a fitted estimator that predicts as the ranker does and has no part of rankeval.

    Parameters
    ----------
    ranker : object
        A fitted QueryRanker, a Pipeline or search around one, or any other fitted estimator.

    Raises
    ------
    InvalidInput
        If it is no fitted estimator, or a QueryRanker of a classifier is a member of an ensemble.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> bare(QueryRanker(Ridge()).fit([[0.0], [1.0]], [0, 1], qid=["a", "a"]))
    Ridge()
    """
    if isinstance(ranker, type) or not hasattr(ranker, "predict"):
        raise InvalidInput(f"ranker is {ranker!r}; give a fitted estimator, such as QueryRanker(...).fit(...)")
    if isinstance(ranker, QueryRanker):
        _check_fitted(ranker)
        return bare(ranker.estimator_)
    if hasattr(ranker, "best_estimator_"):
        return bare(ranker.best_estimator_)
    if hasattr(ranker, "best_params_") or hasattr(ranker, "param_distributions") or hasattr(ranker, "param_grid"):
        raise InvalidInput(
            f"ranker is a {type(ranker).__name__} without best_estimator_: fit it, with refit=True or the name of a "
            "measure"
        )
    if isinstance(ranker, Pipeline):
        pipeline = copy.copy(ranker)
        *head, (name, last) = ranker.steps
        pipeline.steps = [*((step, _without(one, "step")) for step, one in head), (name, bare(last))]
        return pipeline
    if not hasattr(ranker, "get_params"):
        return ranker
    _check_fitted(ranker)
    return ranker if boosters.library(ranker) else _without(ranker, "ranker")


def gives_classes(estimator: Any) -> bool:
    """Say whether `predict` gives labels, so that scores come from another method.

    Parameters
    ----------
    estimator : object
        A fitted estimator. CatBoost's rankers have an empty ``classes_``, and only `predict`.
    """
    return hasattr(estimator, "classes_") and (
        hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
    )


def _check_fitted(estimator: Any) -> None:
    try:
        # CatBoost's estimators know it themselves, and nobody else does.
        fitted = estimator.is_fitted() if hasattr(estimator, "is_fitted") else check_is_fitted(estimator) is None
    except NotFittedError:
        fitted = False
    if not fitted:
        raise InvalidInput(f"ranker is {estimator!r}, which is not fitted: call fit first")


def _without(value: Any, name: str) -> Any:
    """Return a value in which fitted and unfitted QueryRankers are replaced by their estimators; itself if none is."""
    if isinstance(value, QueryRanker):
        return _member(value)
    if type(value) in (list, tuple):
        parts = [_without(one, name) for one in value]
        return value if _same(parts, value) else type(value)(parts)
    if isinstance(value, dict):  # also scikit-learn's Bunch
        changed = {key: _without(one, str(key)) for key, one in value.items()}
        if _same(changed.values(), value.values()):
            return value
        copied = copy.copy(value)
        copied.update(changed)
        return copied
    if name in _ONLY_FOR_FIT and type(value).__module__.partition(".")[0] == "rankeval":
        return None
    if isinstance(value, type) or not (hasattr(value, "get_params") and hasattr(value, "__dict__")):
        return value
    if boosters.library(value):
        return value
    state = {key: _without(one, key) for key, one in vars(value).items()}
    if _same(state.values(), vars(value).values()):
        return value
    changed_one = copy.copy(value)
    vars(changed_one).update(state)
    return changed_one


def _member(ranker: QueryRanker) -> Any:
    """Return the estimator of a QueryRanker inside an ensemble; the ensemble asks it for `predict`."""
    if not hasattr(ranker, "estimator_"):
        return _without(ranker.estimator, "estimator")
    inner = bare(ranker.estimator_)
    if gives_classes(inner):
        raise InvalidInput(
            f"ranker has a member {ranker!r}, whose score is a probability, and {type(inner).__name__}.predict gives "
            "labels: it cannot be saved without rankeval; use a regressor or a ranker there"
        )
    return inner


def _same(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return all(one is other for one, other in zip(new, old, strict=True))


def way_of(estimator: Any) -> tuple[dict[str, Any], set[str]]:
    """Return how `mlflow.sklearn` is to write an estimator, and the modules that the file names.

    skops first: it loads no class that the model does not list. cloudpickle takes what skops cannot, such as functions
    and classes of a notebook.

    Parameters
    ----------
    estimator : object
        A fitted estimator.

    Raises
    ------
    InvalidInput
        If the file would need rankeval, or neither can write it.
    """
    by_skops = _by_skops(estimator)
    if by_skops is not None and "__main__" not in by_skops[1]:
        types, modules = by_skops
        way: dict[str, Any] = {"serialization_format": "skops", "skops_trusted_types": types}
    else:
        modules, way = _by_cloudpickle(estimator), {"serialization_format": "cloudpickle"}
    if ours := sorted(name for name in modules if name.partition(".")[0] in _OURS):
        raise InvalidInput(
            f"ranker cannot be saved without rankeval: it holds something of {ours[0]}. Take that out, or log it by "
            "mlflow.sklearn.log_model(..., serialization_format='cloudpickle') and load it where rankeval is installed"
        )
    return way, modules


def pinned(packages: Iterable[str]) -> list[str]:
    """Return pip requirements with the installed versions; a module of no package or of Python's own is left out.

    Parameters
    ----------
    packages : iterable of str
        Import names of packages.
    """
    found = {}
    for name in set(packages) - sys.stdlib_module_names:
        package = _PACKAGES.get(name, name)
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            for other in _distributions().get(name, [])[:1]:
                found[other] = version(other)
    return [f"{package}=={number.partition('+')[0]}" for package, number in sorted(found.items())]


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Map top-level modules to packages; cached, since the file lists of all installed packages are read."""
    return packages_distributions()


def _by_skops(estimator: Any) -> tuple[list[str], set[str]] | None:
    """Return the types and modules of a file of skops, or None if skops or this MLflow cannot write it."""
    if "skops_trusted_types" not in signature(mlflow.sklearn.save_model).parameters:
        return None
    import skops.io

    try:
        content = skops.io.dumps(estimator)
        # The types that skops does not know itself. They are those of the user's own model.
        types = sorted(skops.io.get_untrusted_types(data=content))
        skops.io.loads(content, trusted=types)
    except Exception:  # noqa: BLE001 - skops raises whatever the state of a foreign class raises, RecursionError too
        return None
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return types, set(_modules(json.loads(archive.read("schema.json"))))


def _modules(node: Any) -> Iterator[str]:
    """Yield the modules that a schema of skops names."""
    if isinstance(node, dict):
        if isinstance(node.get("__module__"), str):
            yield node["__module__"]
        for part in node.values():
            yield from _modules(part)
    elif isinstance(node, list):
        for part in node:
            yield from _modules(part)


def _by_cloudpickle(estimator: Any) -> set[str]:
    """Return the modules of a pickle: of its classes and functions, and those that its own functions import."""
    try:
        content = cloudpickle.dumps(estimator)
    except Exception as error:  # a foreign class raises whatever it likes
        raise InvalidInput(f"ranker cannot be saved: {type(error).__name__}: {error}") from error
    # A class is named by two texts, its module and its name; a module that a function uses is named by one.
    texts = [str(arg) for _, arg, _ in pickletools.genops(content) if isinstance(arg, str)]
    return {text for text in texts if text in sys.modules}
