"""The reference of the keys of an experiment file, made from the schema of its model: path, type, default, meaning."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rankeval.experiment.sections import ExperimentConfig

_WORDS = {"string": "text", "boolean": "true or false", "integer": "whole number", "number": "number", "": "any"}
_BOUNDS = {"exclusiveMinimum": "above", "minimum": "at least", "exclusiveMaximum": "below", "maximum": "at most"}
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
    schema = ExperimentConfig.model_json_schema()
    return list(_keys(schema, schema["$defs"], ""))


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


def _keys(section: Mapping[str, Any], sections: Mapping[str, Any], prefix: str) -> Iterator[Key]:
    for name, schema in section["properties"].items():
        path, meaning = f"{prefix}{name}", " ".join(schema["description"].split())
        default = "required" if name in section.get("required", ()) else _default(schema.get("default"))
        kinds = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
        inner, kind, below = kinds[0], "section", ""
        if "patternProperties" in inner:
            (inner,), kind, below = inner["patternProperties"].values(), "mapping of sections", ".NAME"
        elif "$ref" in inner.get("items", ()):
            inner, kind, below = inner["items"], "list of sections", "[]"
        if "$ref" not in inner:
            yield Key(path, " or ".join(map(_kind, kinds)), default, meaning)
            continue
        found = sections[inner["$ref"].rpartition("/")[2]]
        about = f"{meaning}. {found['description']}" if below else found["description"]
        yield Key(path, kind, default, " ".join(about.split()))
        yield from _keys(found, sections, f"{path}{below}.")


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_plural(_kind(schema['items']))}"
    if schema.get("type") == "object":
        if schema["additionalProperties"] is True:
            return "mapping"
        return f"mapping of {_plural(_kind(schema['additionalProperties']).partition(' of ')[0])}"
    bounds = [f"{word} {schema[bound]:.10g}" for bound, word in _BOUNDS.items() if bound in schema]
    return f"{_WORDS[schema.get('type', '')]} {' and '.join(bounds)}".strip()


def _plural(kind: str) -> str:
    return kind if kind == "text" else f"{kind}s"


def _default(value: Any) -> str:
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return value if value and isinstance(value, str) else json.dumps(value)
