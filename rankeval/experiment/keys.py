"""The reference of the keys of an experiment file, made from its model: path, type, default and meaning."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rankeval.experiment.config import ExperimentConfig, sections_in

_SCALARS = {str: "text", bool: "true or false", int: "whole number", float: "number", Any: "any"}
_BOUNDS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
_WIDTH = 100


@dataclass(frozen=True)
class Key:
    """One key of an experiment file.

    Attributes
    ----------
    path : str
        Its place, such as ``cv.n_splits``; NAME stands for the name of a ranker, and [] for each item of a list.
    kind : str
        The type of its value in words.
    default : str
        Its default as YAML; "required", or empty if there is none.
    meaning : str
        Its description.
    """

    path: str
    kind: str
    default: str
    meaning: str


def list_keys() -> list[Key]:
    """Return all keys in the order of the model, each section before its keys.

    Examples
    --------
    >>> [key.path for key in list_keys()][:3]
    ['name', 'data', 'data.loader']
    """
    return list(_keys(ExperimentConfig, ""))


def keys_markdown() -> str:
    """Return the keys as a table in Markdown."""
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key in list_keys():
        default = f"`{key.default}`" if key.default not in ("", "required") else key.default
        cells = (f"`{key.path}`", key.kind, default, key.meaning)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, ""])


def keys_text() -> str:
    """Return the keys as text for a terminal."""
    said = ["NAME stands for the name of a ranker, and [] for each item of a list.\n"]
    for key in list_keys():
        default = key.default if key.default in ("", "required") else f"default {key.default}"
        head = f"{key.path}: {', '.join(filter(None, (key.kind, default)))}"
        said.append(f"{head}\n{textwrap.indent(textwrap.fill(key.meaning, _WIDTH - 4), '    ')}")
    return "\n".join(said)


def _keys(model: type[BaseModel], prefix: str) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        section = next(sections_in(field.annotation), None)
        if section is None:
            yield Key(path, _kind(field.annotation, field.metadata), _default(field), field.description or "")
            continue
        many, below = _many(field.annotation)
        about = inspect.cleandoc(section.__doc__ or "")
        meaning = f"{field.description}. {about}" if many else about
        yield Key(path, f"{many} of sections" if many else "section", _default(field), " ".join(meaning.split()))
        yield from _keys(section, f"{path}{below}.")


def _many(annotation: Any) -> tuple[str, str]:
    """Return how many sections a key holds, and how their keys are written below it."""
    kinds = {get_origin(part) or part for part in (annotation, *get_args(annotation))}
    if dict in kinds:
        return "mapping", ".NAME"
    return ("list", "[]") if list in kinds else ("", "")


def _kind(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(parts[0], (*parts[1:], *metadata))
    if origin in (Union, UnionType):
        return " or ".join(_kind(part, metadata) for part in parts if part is not NoneType)
    if origin is Literal:
        return " or ".join(parts)
    if origin is list:
        return f"list of {_plural(_kind(parts[0]))}"
    if origin is dict:
        inner, *_ = _kind(parts[1]).split(" of ")  # a mapping of lists, of whatever these are
        return "mapping" if inner == "any" else f"mapping of {_plural(inner)}"
    limits = [each for one in metadata for each in (one.metadata if isinstance(one, FieldInfo) else [one])]
    bounds = [
        f"{word} {getattr(one, name):.10g}" for name, word in _BOUNDS.items() for one in limits if hasattr(one, name)
    ]
    return f"{_SCALARS[annotation]} {' and '.join(bounds)}".strip()


def _plural(kind: str) -> str:
    return kind if kind == "text" else f"{kind}s"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, (BaseModel, Mapping)):
        return ""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return value if value and isinstance(value, str) else json.dumps(value)
