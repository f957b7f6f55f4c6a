"""Make objects of an experiment file: import estimators, load data, split it into dev and test.

An experiment file names code. `_check_loader` and `_check_estimator` look at an imported object before it is called:
``os:system`` as a loader would run the path, ``subprocess.Popen`` as an estimator would start a program. This catches
mistakes and no malice, because importing a module already runs its code.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, isclass, isfunction, ismethod, signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval.collection.data import RankingData
from rankeval.errors import ConfigError
from rankeval.experiment.config import DataConfig, ExperimentConfig, RankerConfig
from rankeval.io.limits import limits_of
from rankeval.tracking import LoggedData

EXTRAS = ("lightgbm", "xgboost", "catboost")
"""Packages that an extra of the same name installs."""


@dataclass(frozen=True)
class Parts:
    """The two parts of the data of an experiment, and their source."""

    dev: RankingData
    test: RankingData
    source: str

    def logged(self) -> tuple[LoggedData, LoggedData]:
        """Describe dev, then test, for a tracker."""
        return self._logged(self.dev, "dev"), self._logged(self.test, "test")

    def _logged(self, data: RankingData, role: str) -> LoggedData:
        return LoggedData(data.name or role, data_digest(data), role, len(data), data.n_queries, self.source)


def load_parts(config: ExperimentConfig) -> Parts:
    """Load the data of an experiment and split it into dev and test.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment.

    Raises
    ------
    ConfigError
        If the loader cannot be imported or called, or returns no `RankingData`.
    """
    source = config.data.path or config.data.loader
    if config.data.loader == "letor" and config.data.path is not None and Path(config.data.path).is_dir():
        return Parts(*_letor_folder(config.data), source)
    from rankeval.model_selection.holdout import dev_test_split

    split = dev_test_split(_load(config.data), test_size=config.split.test_size, salt=config.split.salt)
    return Parts(split.dev, split.test, source)


def import_object(path: str, *, key: str) -> Any:
    """Import ``package.module.Name`` or ``module:name``.

    Parameters
    ----------
    path : str
        The import path in the experiment file.
    key : str
        The key that holds it, for errors.

    Raises
    ------
    ConfigError
        If the module or the name does not exist; the message names the extra that installs the module.
    """
    module_path, _, name = path.rpartition(":") if ":" in path else path.rpartition(".")
    if not module_path:
        raise ConfigError(f"{key}: {path!r} is no import path; expected package.module.Name or module:name")
    if "" not in sys.path and "." not in sys.path:
        sys.path.append("")  # a loader of the user's own stands in the current directory, as with python -m
    try:
        module = import_module(module_path)
    except ImportError as error:
        missing = (error.name or module_path).partition(".")[0]
        hint = f'; install it: pip install "rankeval-mlflow[{missing}]"' if missing in EXTRAS else ""
        raise ConfigError(f"{key}: cannot import {path!r}: {error}{hint}") from error
    if not hasattr(module, name):
        raise ConfigError(f"{key}: the module {module_path!r} has no {name!r}")
    return getattr(module, name)


def make_estimator(config: RankerConfig, *, name: str, seed: int) -> Any:
    """Make the estimator of a ranker, with the seed of the experiment unless the file sets one.

    Parameters
    ----------
    config : RankerConfig
        Its class and fixed parameters.
    name : str
        The ranker's name, for errors.
    seed : int
        The experiment's seed.

    Raises
    ------
    ConfigError
        If the class cannot be imported or refuses a parameter.
    """
    from sklearn.base import clone

    cls = import_object(config.estimator, key=f"rankers.{name}.estimator")
    _check_estimator(cls, config.estimator, f"rankers.{name}.estimator")
    try:
        estimator = cls(**config.params)
        known = estimator.get_params()
        if "random_state" in known and "random_state" not in config.params:
            estimator.set_params(random_state=seed)
        # Where the parameters are known beforehand (not CatBoost's), a misspelt one is found before an hour of search.
        trial = clone(estimator)
        trial.set_params(**{parameter: values[0] for parameter, values in config.grid.items()})
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"rankers.{name}: {config.estimator} cannot be made: {' '.join(str(error).split())}"
        ) from error
    return estimator


def _check_estimator(found: Any, path: str, key: str) -> None:
    """Raise unless this is a class with fit and predict."""
    if not isclass(found):
        raise ConfigError(f"{key}: expected a class with fit and predict, found {path!r}, a {type(found).__name__}")
    if lacking := [method for method in ("fit", "predict") if not callable(getattr(found, method, None))]:
        raise ConfigError(f"{key}: expected a class with fit and predict; {path!r} has no {' and no '.join(lacking)}")


def _check_loader(found: Any, path: str) -> None:
    """Raise unless this is a function written in Python, outside of the standard library."""
    if not (isfunction(found) or ismethod(found)):
        raise ConfigError(f"data.loader: {path!r} is a {type(found).__name__}, expected a function of your own")
    if (found.__module__ or "").partition(".")[0] in sys.stdlib_module_names:
        raise ConfigError(
            f"data.loader: {path!r} belongs to Python's own library, where no function returns rankeval.RankingData"
        )
    kinds = [parameter.kind for parameter in signature(found).parameters.values()]
    if kinds and kinds[0] is Parameter.VAR_POSITIONAL:
        raise ConfigError(f"data.loader: {path!r} takes any arguments; name the one for data.path: def load(path)")


def data_digest(data: RankingData) -> str:
    """Return the SHA-256 of features, labels, query ids and document ids, in the order of the rows.

    Parameters
    ----------
    data : RankingData
        The rows.
    """
    digest = hashlib.sha256()
    for label, column in _columns(data):
        digest.update(f"{label}:{column.dtype}:{column.shape};".encode())
        if column.dtype.kind in "OUS":
            for value in column.ravel().tolist():
                text = str(value).encode()
                digest.update(f"{len(text)}:".encode() + text)
        else:
            digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()


def _columns(data: RankingData) -> list[tuple[str, NDArray[Any]]]:
    columns = [("y", data.y), ("qid", data.qid)]
    if data.docid is not None:
        columns.append(("docid", data.docid))
    features = data.X
    if isinstance(features, pd.DataFrame):
        columns += [(f"X.{name}", features.iloc[:, i].to_numpy()) for i, name in enumerate(features.columns)]
    elif hasattr(features, "tocsr"):
        rows = features.tocsr()
        columns += [("X.data", rows.data), ("X.indices", rows.indices), ("X.indptr", rows.indptr)]
    else:
        columns.append(("X", np.asarray(features)))
    return columns


def _load(config: DataConfig) -> RankingData:
    from rankeval import datasets

    shipped = {"digits": datasets.load_digits_retrieval, "letor": datasets.load_letor}
    if config.loader not in shipped and ":" not in config.loader and "." not in config.loader:
        raise ConfigError(f'data.loader: {config.loader!r} is none of "digits", "letor" or "module:function"')
    function = shipped.get(config.loader)
    if function is None:
        function = import_object(config.loader, key="data.loader")
        _check_loader(function, config.loader)
    loaded = _call(function, config)
    if not isinstance(loaded, RankingData):
        raise ConfigError(
            f"data.loader: {config.loader} returned {type(loaded).__name__}, expected rankeval.RankingData"
        )
    return loaded


def _letor_folder(config: DataConfig) -> tuple[RankingData, RankingData]:
    """Return the training and validation parts as one, and the test part."""
    from rankeval.datasets import load_letor_parts

    parts = _call(load_letor_parts, config)
    if "test" not in parts or len(parts) < 2:
        raise ConfigError(
            f"data.path: {config.path} has {' and '.join(parts) or 'no parts'}; expected test and at least one of "
            "train and vali"
        )
    dev = [data for part, data in parts.items() if part != "test"]
    return (dev[0] if len(dev) == 1 else _joined(dev)), parts["test"]


def _joined(parts: list[RankingData]) -> RankingData:
    features = [part.X for part in parts]
    if hasattr(features[0], "tocsr"):
        from scipy.sparse import vstack

        X = vstack(features, format="csr")
    else:
        X = np.vstack(features)
    docids = [part.docid for part in parts if part.docid is not None]
    return RankingData(
        X,
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.qid for part in parts]),
        docid=np.concatenate(docids) if len(docids) == len(parts) else None,
        feature_names=parts[0].feature_names,
        name="+".join(part.name or "" for part in parts),
    )


def _call(function: Any, config: DataConfig) -> Any:
    positional = () if config.path is None else (config.path,)
    arguments = dict(config.arguments)
    if config.limits:
        arguments["limits"] = limits_of(f"{name}={value}" for name, value in config.limits.items())
    try:
        signature(function).bind(*positional, **arguments)
    except TypeError as error:
        hint = ": set data.path" if config.path is None and "path" in str(error) else ""
        raise ConfigError(f"data: the loader {config.loader!r} cannot be called like this: {error}{hint}") from error
    return function(*positional, **arguments)
