"""The digest of a result: a tree of plain JSON that two commits must agree on, and its hash.

::

    value -> Describer.of -> {"class": "Evaluation", "fields": {...}, "shows": {...}} -> digest ->
    sha256

A float stays a float, whose JSON is its shortest exact text, so one bit changes the hash. An array
has its dtype, its shape and its values; a frame its columns, index and dtypes. An object of ours is
described by its public fields and properties and by how it prints; an error also by its public
bases. Other objects are described by what they print. The trap: a property may cost seconds or
raise. An error of a property is a part of the description.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import hashlib
import inspect
import json
import math
import types
import warnings
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import numpy as np
from oracle.masks import Masks
from oracle.names import Names

LONGEST = 4000
"""Values of an array that are written out; of a longer one, the first, and the hash of all."""
OURS = ("rankeval", "rankeval_mlflow", "rankeval_pytest", "rankeval_spark")
SHOWN = ("__str__", "__repr__", "_repr_html_")


def canonical(tree: Any) -> str:
    """Return a tree as the text that is hashed: keys in order, floats exact."""
    return json.dumps(tree, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(tree: Any) -> str:
    """Return the hash of a tree."""
    return hashlib.sha256(canonical(tree).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_ours(kind: type) -> bool:
    """Return whether a class is of the packages that are compared."""
    return str(kind.__module__).partition(".")[0] in OURS


def public_bases(kind: type) -> list[str]:
    """Return the names of a class and of its public bases, in order of resolution."""
    return [
        base.__name__
        for base in kind.__mro__
        if not base.__name__.startswith("_") and base is not object
    ]


class Describer:
    """Describes values as trees.

    Parameters
    ----------
    masks : Masks
        What is hidden.
    names : Names
        Which names of fields and classes stand for older ones.
    """

    def __init__(self, masks: Masks, names: Names) -> None:
        self.masks, self.names = masks, names
        self.classes: set[str] = set()
        self._open: list[int] = []

    def of(self, value: Any) -> Any:
        """Return the tree of a value.

        Parameters
        ----------
        value : object
            Anything.
        """
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return {"enum": type(value).__name__, "value": self.of(value.value)}
        if type(value) is str:
            return self.masks.text(value)
        if type(value) in (int, float):
            return self._number(value)
        if id(value) in self._open or len(self._open) > 40:
            return "<above>"
        self._open.append(id(value))
        try:
            return self._compound(value)
        finally:
            self._open.pop()

    def _number(self, value: float) -> Any:
        if self.masks.is_now(value):
            return "<time>"
        return value if type(value) is int and abs(value) < 2**63 else {"float": repr(value)}

    def _compound(self, value: Any) -> Any:
        described = _describe(value, self)
        if described is not NotImplemented:
            return described
        library = type(value).__module__.partition(".")[0]
        if library in _LIBRARIES:
            described = _LIBRARIES[library](value, self)
            if described is not NotImplemented:
                return described
        if is_ours(type(value)):
            return self._own(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {"class": type(value).__name__, "fields": self._pairs(_fields(value))}
        return {"object": type(value).__name__, "shows": self.masks.text(_shown(value, "__repr__"))}

    def _own(self, value: Any) -> Any:
        kind = self.names.old_class(type(value).__name__)
        self.classes.add(kind)
        tree = {"class": kind, "fields": self._pairs(self._public(value))}
        shown = [name for name in SHOWN if is_ours(_owner(type(value), name))]
        if shown:
            tree["shows"] = {name: self.masks.text(_shown(value, name)) for name in shown}
        if isinstance(value, Mapping):
            tree["items"] = self._pairs(dict(value).items())
        return tree

    def _public(self, value: Any) -> Iterator[tuple[str, Any]]:
        """Yield public fields and properties of an object of ours, under the names of today."""
        kind = type(value).__name__
        own = dict(_fields(value))
        for name in sorted(set(own) | set(_properties(type(value)))):
            if name.startswith("_"):
                continue
            yield (
                self.names.old_field(kind, name, own),
                own[name] if name in own else _property(value, name),
            )

    def _pairs(self, pairs: Any) -> dict[str, Any]:
        """Return pairs as a mapping; the values of keys that are equal with masks are in order."""
        grouped: dict[str, list[Any]] = {}
        for name, value in pairs:
            tree = "<time>" if self.masks.hides(name) else self.of(value)
            grouped.setdefault(self.key(name), []).append(tree)
        return {
            key: trees[0] if len(trees) == 1 else {"several": sorted(trees, key=canonical)}
            for key, trees in grouped.items()
        }

    def key(self, name: Any) -> str:
        """Return the key of a mapping as text; keys that are no text are described."""
        return self.masks.text(name) if type(name) is str else canonical(self.of(name))

    def error(self, error: BaseException) -> Any:
        """Return the tree of an error: its class, its public bases, its fields and its message.

        Parameters
        ----------
        error : BaseException
            An error, of ours or of others.
        """
        kind = self.names.old_class(type(error).__name__)
        tree = {
            "error": kind,
            "bases": [self.names.old_class(base) for base in public_bases(type(error))],
        }
        if is_ours(type(error)):
            tree["fields"] = self._pairs(self._error_fields(error))
        return tree | {"message": self.masks.text(_shown(error, "__str__"))}

    def _error_fields(self, error: BaseException) -> Iterator[tuple[str, Any]]:
        own = vars(error)
        for name, value in own.items():
            if name[0] != "_":
                yield self.names.old_field(type(error).__name__, name, own), value


def _owner(kind: type, name: str) -> type:
    """Return the class that defines a method; methods that dataclasses write are nobody's."""
    owner = next((base for base in kind.__mro__ if name in vars(base)), object)
    made = getattr(vars(owner).get(name), "__qualname__", "")
    return object if made.startswith("__create_fn__") else owner


def _shown(value: Any, name: str) -> str:
    try:
        return str(getattr(value, name)())
    except Exception as error:  # noqa: BLE001 - how an object prints is a part of the result
        return f"<{type(error).__name__}: {error}>"


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(value):
        yield from (
            (part.name, getattr(value, part.name, None)) for part in dataclasses.fields(value)
        )
    elif hasattr(value, "__dict__"):
        yield from sorted(vars(value).items())


def _properties(kind: type) -> list[str]:
    properties = property, functools.cached_property
    return [
        name
        for base in kind.__mro__
        if is_ours(base)
        for name, it in vars(base).items()
        if isinstance(it, properties)
    ]


def _property(value: Any, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(value, name)
        except Exception as error:  # noqa: BLE001 - see the trap above
            return error


@functools.singledispatch
def _describe(value: Any, describer: Describer) -> Any:
    """Return the tree of a value of Python or NumPy; register a class to describe it."""
    if isinstance(value, Path):
        return {"path": describer.masks.text(str(value))}
    if isinstance(value, type):
        return {"type": value.__name__}
    if isinstance(value, types.ModuleType):
        return {"module": value.__name__}
    if inspect.isroutine(value) or isinstance(value, functools.partial):
        return {"function": getattr(value, "__name__", type(value).__name__)}
    return NotImplemented


@_describe.register
def _(value: BaseException, describer: Describer) -> Any:
    return describer.error(value)


@_describe.register(str)
def _(value: str, describer: Describer) -> Any:
    return {"text": type(value).__name__, "value": describer.masks.text(str(value))}


@_describe.register(int)
@_describe.register(decimal.Decimal)
@_describe.register(fractions.Fraction)
@_describe.register(dt.date)
@_describe.register(dt.timedelta)
@_describe.register(complex)
@_describe.register(range)
def _(value: Any, describer: Describer) -> Any:
    return {"value": type(value).__name__, "is": describer.masks.text(str(value))}


@_describe.register(bytes)
@_describe.register(bytearray)
def _(value: bytes, _: Describer) -> Any:
    return {"bytes": len(value), "hash": hashlib.sha256(value).hexdigest()[:32]}


@_describe.register(np.generic)
def _(value: np.generic, describer: Describer) -> Any:
    return {"scalar": value.dtype.str, "value": describer.of(value.item())}


@_describe.register
def _(value: np.ndarray, describer: Describer) -> Any:
    flat = value.ravel()
    tree = {
        "array": value.dtype.str,
        "shape": list(value.shape),
        "values": _values(flat.tolist(), describer),
    }
    return tree | (
        {"masked": np.ma.getmaskarray(value).ravel().tolist()}
        if isinstance(value, np.ma.MaskedArray)
        else {}
    )


def _values(values: list[Any], describer: Describer) -> Any:
    if len(values) <= LONGEST:
        return [describer.of(value) for value in values]
    return {
        "first": [describer.of(value) for value in values[:100]],
        "hash": digest([repr(value) for value in values]),
    }


@_describe.register(list)
@_describe.register(tuple)
def _(value: Any, describer: Describer) -> Any:
    if len(value) > 1 and describer.masks.hides(value[0]):  # the name of a time, and its values
        value = [value[0], *("<time>" for _ in value[1:])]
    items = [describer.of(item) for item in value]
    if hasattr(value, "_fields"):
        return {
            "class": type(value).__name__,
            "fields": dict(zip(value._fields, items, strict=True)),
        }
    return items if type(value) is list else {"tuple": items}


@_describe.register(dict)
@_describe.register(types.MappingProxyType)
def _(value: Any, describer: Describer) -> Any:
    return {"mapping": describer._pairs(_without_times(value, describer.masks).items())}


def _without_times(value: Any, masks: Masks) -> Any:
    """Return a table that is written as columns and rows without the columns of times."""
    if not (masks.timed and {"columns", "rows"} <= set(value) and isinstance(value["rows"], list)):
        return value
    kept = [place for place, name in enumerate(value["columns"]) if not masks.hides(name)]
    return {**value, "rows": [[row[place] for place in kept] for row in value["rows"]]}


@_describe.register(AbstractSet)
def _(value: Any, describer: Describer) -> Any:
    return {"set": sorted((describer.of(item) for item in value), key=canonical)}


@_describe.register(types.GeneratorType)
@_describe.register(zip)
@_describe.register(map)
def _(value: Any, describer: Describer) -> Any:
    return {"iterator": [describer.of(item) for item in value]}


def _pandas(value: Any, describer: Describer) -> Any:
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        columns = [describer.key(name) for name in value.columns]
        data = [
            "<time>"
            if describer.masks.hides(name)
            else describer.of(value.iloc[:, place].to_numpy())
            for place, name in enumerate(value.columns)
        ]
        tree = {
            "frame": columns,
            "index": describer.of(value.index),
            "data": dict(zip(columns, data, strict=False)),
        }
        return tree | {
            "dtypes": [str(dtype) for dtype in value.dtypes],
            "names": describer.of(value.columns.names),
        }
    if isinstance(value, pd.Series):
        values = describer.of(value.to_numpy())
        hidden = describer.masks.hides(value.name)
        tree = {
            "series": "<time>" if hidden else values,
            "name": describer.of(value.name),
            "dtype": str(value.dtype),
        }
        if not hidden and describer.masks.timed and isinstance(values, dict) and "values" in values:
            labels = [str(label) for label in value.index]
            values["values"] = [
                "<time>" if describer.masks.hides(label) else it
                for label, it in zip(labels, values["values"], strict=False)
            ]
        return tree | {"index": describer.of(value.index)}
    if isinstance(value, pd.Index):
        labels = _values(value.tolist(), describer)
        return {
            "labels": labels,
            "names": describer.of(list(value.names)),
            "dtype": str(getattr(value, "dtype", "")),
        }
    if (
        isinstance(value, (pd.Timestamp, pd.Timedelta, pd.Interval))
        or value is pd.NaT
        or value is pd.NA
    ):
        return {"value": type(value).__name__, "is": describer.masks.text(str(value))}
    if isinstance(value, pd.api.extensions.ExtensionArray):
        return {"extension": str(value.dtype), "values": _values(list(value), describer)}
    return NotImplemented


def _arrow(value: Any, describer: Describer) -> Any:
    import pyarrow as pa

    if isinstance(value, (pa.Table, pa.RecordBatch)):
        columns = {
            name: describer.of(value.column(name).to_pylist()) for name in value.schema.names
        }
        hidden = {name: "<time>" for name in columns if describer.masks.hides(name)}
        return {
            "table": [f"{part.name}: {part.type}" for part in value.schema],
            "data": columns | hidden,
        }
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        return {"column": str(value.type), "values": _values(value.to_pylist(), describer)}
    return NotImplemented


def _polars(value: Any, describer: Describer) -> Any:
    if hasattr(value, "to_arrow"):
        return {"polars": type(value).__name__, "is": describer.of(value.to_arrow())}
    return NotImplemented


def _scipy(value: Any, describer: Describer) -> Any:
    if hasattr(value, "toarray"):
        return {"sparse": type(value).__name__, "is": describer.of(value.toarray())}
    return NotImplemented


def _figure(value: Any, describer: Describer) -> Any:
    if not hasattr(value, "axes") or not hasattr(value, "savefig"):
        return NotImplemented
    axes = [
        {
            "words": [axis.get_title(), axis.get_xlabel(), axis.get_ylabel()],
            "ticks": [
                [label.get_text() for label in get()]
                for get in (axis.get_xticklabels, axis.get_yticklabels)
            ],
            "texts": [text.get_text() for text in axis.texts],
            "lines": [
                [list(map(float, line)) for line in drawn.get_xydata()] for drawn in axis.lines
            ],
            "patches": len(axis.patches),
        }
        for axis in value.axes
    ]
    return {"figure": describer.of(axes)}


def _estimator(value: Any, describer: Describer) -> Any:
    if not hasattr(value, "get_params") or isinstance(value, type):
        return NotImplemented
    return {
        "estimator": type(value).__name__,
        "parameters": describer.of(value.get_params(deep=False)),
    }


def _model(value: Any, _: Describer) -> Any:
    if hasattr(value, "get_params"):
        return {"estimator": type(value).__name__}
    return NotImplemented


_LIBRARIES = {
    "pandas": _pandas,
    "pyarrow": _arrow,
    "polars": _polars,
    "scipy": _scipy,
    "matplotlib": _figure,
    "sklearn": _estimator,
    "lightgbm": _model,
    "xgboost": _model,
    "catboost": _model,
}


def is_number(tree: Any) -> bool:
    """Return whether a tree is a number, and no truth value."""
    if isinstance(tree, dict):
        return set(tree) == {"float"}
    return isinstance(tree, (int, float)) and not isinstance(tree, bool)


def number_of(tree: Any) -> float:
    """Return the number of a tree."""
    return float(tree["float"]) if isinstance(tree, dict) else float(tree)


def are_close(number: float, other: float, tolerance: float = 1e-12) -> bool:
    """Return whether two numbers differ in their last bits at most."""
    if math.isnan(number) or math.isnan(other):
        return math.isnan(number) and math.isnan(other)
    largest = max(abs(number), abs(other), 1e-3)
    return number == other or abs(number - other) <= tolerance * largest
