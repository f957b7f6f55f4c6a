"""Send the function of a measure of one's own to another process, with its code if nothing else will do.

A function is pickled by the name of its module, which the other process imports. A module that is on no path, such as
a test module of pytest's importlib mode, cannot be imported there, so the code of the function travels. cloudpickle
does so for a script and a notebook by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.machinery import ModuleSpec
from types import FunctionType
from typing import Any


@dataclass(frozen=True)
class Code:
    """A function by its code."""

    content: bytes


def packed(value: Any) -> Any:
    """Return a value, or `Code` if it is a function whose module no other process can import.

    Parameters
    ----------
    value : object
        An attribute of a `Family`.
    """
    module = sys.modules.get(value.__module__) if isinstance(value, FunctionType) else None
    if module is None or value.__module__ == "__main__" or _is_importable(value.__module__, module):
        return value
    return Code(_code_of(value, module))


def hash_of_code(function: Callable[..., Any]) -> str:
    """Return a SHA-256 of a function's code and of what it refers to in its module.

    Parameters
    ----------
    function : callable
        The kernel of a measure of one's own.
    """
    return sha256(_code_of(function, sys.modules[function.__module__])).hexdigest()


def _code_of(function: Any, module: Any) -> bytes:
    import cloudpickle

    with _by_value(module):
        return bytes(cloudpickle.dumps(function))


@contextmanager
def _by_value(module: Any) -> Iterator[None]:
    """Let cloudpickle take the functions of a module by their code."""
    import cloudpickle

    if module.__name__ in cloudpickle.list_registry_pickle_by_value():  # by the user, who keeps it
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def unpacked(value: Any) -> Any:
    """Return the value that `packed` was given.

    Parameters
    ----------
    value : object
        The result of `packed`.
    """
    if not isinstance(value, Code):
        return value
    import cloudpickle

    return cloudpickle.loads(value.content)


def _is_importable(name: str, module: Any) -> bool:
    """Say whether an import by this name, on the same paths, gives this module."""
    spec: ModuleSpec | None = None
    steps = name.split(".")
    for number in range(len(steps)):
        path = None if spec is None else spec.submodule_search_locations
        if number and path is None:
            return False
        found = (finder.find_spec(".".join(steps[: number + 1]), path) for finder in sys.meta_path)
        spec = next((one for one in found if one is not None), None)
        if spec is None:
            return False
    return spec is not None and spec.origin == getattr(module, "__file__", None)
