"""Read an experiment file, and list its keys.

`load_config` reads the YAML, in which aliases do not multiply. It applies ``--set key.sub=value``,
and lets `ExperimentConfig` check the result; a problem that pydantic finds becomes one line in our
words.

The reference of the keys is made from the schema of the model: path, type, default, meaning.

Trust a file as you would a script: it names code that is imported and called (see `estimators` and
`loading`).
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from rankeval._arguments import explained
from rankeval._checks import said, shown
from rankeval._registry import chosen, unknown
from rankeval.errors import ConfigError, RankevalError
from rankeval.experiment.schema import ExperimentConfig, Loader
from rankeval.io.opening import read_text

_MOST_VALUES = 100_000
_WORDS = {
    "string": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "": "any",
}
_BOUNDS = {
    "exclusiveMinimum": "above",
    "minimum": "at least",
    "exclusiveMaximum": "below",
    "maximum": "at most",
}
_WIDTH = 80
# PyYAML lets the errors of its constructors out: a date of no calendar, a list as a key,
# `!!timestamp` of a word.
_CONSTRUCTING = RecursionError, ValueError, TypeError, LookupError, AttributeError
_YAML_ERRORS = (yaml.YAMLError, *_CONSTRUCTING)


def parse_yaml(text: str, source: str) -> Any:
    """Return the plain values of a text."""
    try:
        raw = yaml.load(text, Loader=Loader)  # noqa: S506 - a SafeLoader, see above
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{source}, line {mark.line + 1}, column {mark.column + 1}" if mark else source
        raise ConfigError(f"{error.problem}", where=place) from None
    except _YAML_ERRORS as error:
        raise ConfigError(f"no YAML for an experiment file: {said(error)}", where=source) from None
    if _n_values(raw, {}) > _MOST_VALUES:
        raise ConfigError(f"aliases (*) make more than {_MOST_VALUES:,} values of it", where=source)
    return raw


def _n_values(value: Any, known: dict[int, float]) -> float:
    """Count the values, aliases expanded; infinite if an alias contains itself."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf
        inside = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_n_values(item, known) for item in inside)
    return known[id(value)]


@contextmanager
def blaming(key: str, problem: str = "") -> Iterator[None]:
    """Raise an error of a library as one of a key of the experiment file."""
    try:
        yield
    except RankevalError as error:
        below = ".".join(filter(None, (key, error.argument)))
        raise ConfigError(**error.fields | {"argument": below or None}) from error
    except Exception as error:
        if not problem:
            raise
        reason = f"{type(error).__name__}: {said(error)}"
        raise ConfigError(f"{problem}: {reason}", argument=key) from error


def set_key(raw: dict[str, Any], override: str) -> None:
    """Set one ``key.sub=value``; the model checks later if the key exists."""
    key, equals, text = override.partition("=")
    steps = key.strip().split(".")
    if not equals or not all(steps):
        raise ConfigError(f"--set {override!r}: expected key.sub=value")
    place: Any = raw
    for step in steps[:-1]:
        below = place.get(step)
        if below in (None, False, "off"):
            below = place[step] = {}
        if not isinstance(below, dict):
            raise ConfigError(f"--set {override!r}: {step!r} has a value and no keys")
        place = below
    place[steps[-1]] = parse_yaml(text, f"--set {override!r}")


def key_error(error: ValidationError, source: str, settings: Iterable[str] = ()) -> ConfigError:
    """Return the error for the first problem that pydantic found; it counts the others."""
    problems = error.errors(include_url=False)
    keys = {key.path: key.kind for key in list_keys()}
    # Show an unknown key first: the key that it was meant to be is then missing too.
    first = min(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    steps = _steps(first, keys)
    path = ".".join(map(str, steps))
    others = len({tuple(_steps(problem, keys)) for problem in problems}) - 1
    more = f" (and {others} more)" if others else ""
    set_keys = [setting.partition("=")[0].strip() for setting in settings]
    blamed = [key for key in set_keys if _overlap(key, path)]
    remedy = f"correct the setting of {blamed[-1]}" if blamed else None
    problem = f"{_problem(first, steps, keys)}{more}"
    return ConfigError(problem, argument=path or None, where=source, remedy=remedy)


def _steps(problem: Any, keys: Mapping[str, str]) -> list[int | str]:
    """Return the steps to a key; pydantic adds a step for each type that it tried."""
    steps = list(problem["loc"])
    has_types = " or " in keys.get(_place(steps[:-1]), "")
    return steps[:-1] if has_types else steps


def _problem(first: Any, steps: list[int | str], keys: Mapping[str, str]) -> str:
    """Say what is wrong with the value of a key, in the words of the reference of keys."""
    kind, below = first["type"], _keys_at(steps)
    if kind == "extra_forbidden":
        return str(unknown("key", str(steps[-1]), _keys_at(steps[:-1])))
    if kind == "missing":
        return "the key is missing"
    if raised := first.get("ctx", {}).get("error"):
        return str(raised)
    # Pydantic begins each sentence with a capital, does not say the value, and calls a section by
    # its class.
    expected = f"a section with the keys {', '.join(below)}" if below else keys.get(_place(steps))
    if expected is not None and kind.endswith(("_type", "_parsing")):
        problem = f"expected {expected}"
    else:
        problem = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    value = first["input"]
    return f"{problem}, found {value if isinstance(value, date) else shown(value)}"


def _overlap(key: str, other: str) -> bool:
    """Return whether one key is the other or a section of it."""
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def _place(steps: list[int | str]) -> str:
    """Return the place of a key as the reference writes it; the name of a ranker may have dots."""
    if len(steps) > 1 and steps[0] == "rankers":
        steps = ["rankers", "NAME", *steps[2:]]
    return re.sub(r"\.\d+(?=\.|$)", "[]", ".".join(map(str, steps)))


def _keys_at(steps: list[int | str]) -> list[str]:
    """Return the keys of the section at this place."""
    place = f"{_place(steps)}." if steps else ""
    below = [key.path.removeprefix(place) for key in list_keys() if key.path.startswith(place)]
    return [name for name in below if "." not in name]


@explained
def load_config(path_or_name: str | Path, overrides: Iterable[str] = ()) -> ExperimentConfig:
    """Read an experiment file, or a shipped one by its bare name.

    Parameters
    ----------
    path_or_name : str or Path
        A YAML file, or the name of a shipped experiment such as ``"quickstart"``.
    overrides : iterable of str
        ``"key.sub=value"``, the value in YAML; each replaces a value of the file.

    Returns
    -------
    ExperimentConfig
        The checked experiment.

    Raises
    ------
    ConfigError
        If the file does not exist or is not YAML, or a key or value is wrong. The message is one
        line.
    """
    path, shipped = Path(path_or_name), shipped_configs()
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:  # such as of a name that is too long
        problem = f"there is no experiment file {shown(str(path))}"
        raise ConfigError(f"{problem}: {error.strerror}") from error
    if is_folder:
        raise ConfigError(f"the experiment file {str(path)!r} is a folder")
    if not is_file:
        with blaming(""):
            path = shipped[chosen("file or shipped experiment", str(path_or_name), shipped)]
    with blaming("", f"{path}: no UTF-8 text"):
        text = read_text(path).decode()
    raw = parse_yaml(text, str(path))
    if not isinstance(raw, dict):
        expected = "an experiment file is a mapping of sections"
        raise ConfigError(f"{path}: {expected}, found {type(raw).__name__}")
    overrides = list(overrides)
    for override in overrides:
        set_key(raw, override)
    return check_config(raw, source=str(path), settings=overrides)


@explained
def check_config(
    raw: Mapping[str, Any], *, source: str = "config", settings: Iterable[str] = ()
) -> ExperimentConfig:
    """Check plain values as an experiment.

    Parameters
    ----------
    raw : mapping
        The content of an experiment file.
    source : str
        The name of the source in errors.
    settings : iterable of str
        The ``key.sub=value`` that replaced values of the source, for errors.

    Raises
    ------
    ConfigError
        If a key or value is wrong. One line names the first one and the number of others.
    """
    try:
        return ExperimentConfig.model_validate(raw)
    except ValidationError as error:
        raise key_error(error, source, settings) from None


def shipped_configs() -> dict[str, Path]:
    """Return the experiment files that come with the library, by name."""
    package = Path(str(files("rankeval")))
    # A wheel holds them inside the package, a checkout (editable install) beside it.
    folders = (package / "configs", package.parent / "configs")
    paths = (sorted(folder.glob("*.yaml")) for folder in folders)
    return {path.stem: path for path in next(filter(None, paths), ())}


@dataclass(frozen=True)
class Key:
    """One key of an experiment file."""

    path: str  # Such as ``cv.n_splits``; NAME is the name of a ranker, and [] each item of a list
    kind: str  # The type of its value in words
    default: str  # As YAML; "required", or empty if there is none
    meaning: str


def list_keys() -> list[Key]:
    """Return all keys in the order of the model, each section before its keys.

    Examples
    --------
    >>> [key.path for key in list_keys()][:3]
    ['name', 'data', 'data.loader']
    """
    return list(_all_keys())


@cache
def _all_keys() -> tuple[Key, ...]:
    schema = ExperimentConfig.model_json_schema()
    return tuple(_keys(schema, schema["$defs"], ""))


def keys_markdown() -> str:
    """Return the keys as a table in Markdown."""
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key in list_keys():
        default = f"`{key.default}`" if key.default not in ("", "required") else key.default
        cells = (f"`{key.path}`", key.kind, default, key.meaning)
        escaped = [cell.replace("|", r"\|") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join([*lines, ""])


def keys_text() -> str:
    """Return the keys as text for a terminal."""
    parts = ["NAME means the name of a ranker, and [] each item of a list.\n"]
    for key in list_keys():
        default = key.default if key.default in ("", "required") else f"default {key.default}"
        head = f"{key.path}: {', '.join(filter(None, (key.kind, default)))}"
        meaning = textwrap.indent(textwrap.fill(key.meaning, _WIDTH - 4), "    ")
        parts.append(f"{head}\n{meaning}")
    return "\n".join(parts)


def _keys(section: Mapping[str, Any], sections: Mapping[str, Any], prefix: str) -> Iterator[Key]:
    for name, schema in section["properties"].items():
        path, meaning = f"{prefix}{name}", " ".join(schema["description"].split())
        is_required = name in section.get("required", ())
        default = "required" if is_required else _default(schema.get("default"))
        kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
        inner, kind, below = kinds[0], "section", ""
        if "patternProperties" in inner:
            (inner,) = inner["patternProperties"].values()
            kind, below = "mapping of sections", ".NAME"
        elif "$ref" in inner.get("items", ()):
            inner, kind, below = inner["items"], "list of sections", "[]"
        if "$ref" not in inner:
            yield Key(path, " or ".join(map(_kind, kinds)), default, meaning)
            continue
        subsection = sections[inner["$ref"].rpartition("/")[2]]
        description = subsection["description"]
        about = f"{meaning}. {description}" if below else description
        yield Key(path, kind, default, " ".join(about.split()))
        yield from _keys(subsection, sections, f"{path}{below}.")


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
