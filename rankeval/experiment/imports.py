"""Import what an experiment file names, and look at it before it is called.

``os:system`` as a loader would run the path, ``subprocess.Popen`` as an estimator would start a program. The checks
catch mistakes and no malice, because importing a module already runs its code.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import Parameter, isclass, isfunction, ismethod, signature
from typing import Any

from rankeval.errors import ConfigError

EXTRAS = ("lightgbm", "xgboost", "catboost")
"""Packages that an extra of the same name installs."""


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


def check_class(found: Any, path: str, key: str, methods: tuple[str, ...]) -> None:
    """Raise unless this is a class with these methods.

    Parameters
    ----------
    found : object
        What was imported.
    path, key : str
        Its import path, and the key that holds it.
    methods : tuple of str
        Names of methods.

    Raises
    ------
    ConfigError
        If it is no class, or a method is missing.
    """
    wanted = f"expected a class with {' and '.join(methods)}"
    if not isclass(found):
        raise ConfigError(f"{key}: {wanted}, found {path!r}, a {type(found).__name__}")
    if lacking := [method for method in methods if not callable(getattr(found, method, None))]:
        raise ConfigError(f"{key}: {wanted}; {path!r} has no {' and no '.join(lacking)}")


def check_loader(found: Any, path: str) -> None:
    """Raise unless this is a function written in Python, outside of the standard library.

    Parameters
    ----------
    found : object
        What was imported.
    path : str
        Its import path.

    Raises
    ------
    ConfigError
        If it can be no loader.
    """
    if not (isfunction(found) or ismethod(found)):
        raise ConfigError(f"data.loader: {path!r} is a {type(found).__name__}, expected a function of your own")
    if (found.__module__ or "").partition(".")[0] in sys.stdlib_module_names:
        raise ConfigError(
            f"data.loader: {path!r} belongs to Python's own library, where no function returns rankeval.RankingData"
        )
    kinds = [parameter.kind for parameter in signature(found).parameters.values()]
    if kinds and kinds[0] is Parameter.VAR_POSITIONAL:
        raise ConfigError(f"data.loader: {path!r} takes any arguments; name the one for data.path: def load(path)")
