"""The packages that a saved estimator needs: read from its file, never guessed, and pinned to the installed versions.

MLflow would load the model in a new process and note every package that is imported, which takes seconds and finds
rankeval if the environment imports it.
"""

from __future__ import annotations

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

from rankeval.errors import InvalidInput

_OURS = ("rankeval", "rankeval_mlflow")

# Import names whose package has another name; the others are asked for if they are not packages themselves.
_PACKAGES = {"sklearn": "scikit-learn"}


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
