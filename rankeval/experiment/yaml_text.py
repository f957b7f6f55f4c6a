"""Read YAML as an experiment file means it: 1e-3 is a number, a repeated key is refused, aliases do not multiply."""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

from rankeval.errors import ConfigError

_MOST_VALUES = 100_000


class _Loader(yaml.SafeLoader):
    """The safe loader. It reads 1e-3 as a number, as YAML 1.2 does, and refuses a repeated key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is repeated", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, [*"-+0123456789"])


def parse_yaml(text: str, source: str) -> Any:
    """Return the plain values of a text.

    Parameters
    ----------
    text : str
        The text.
    source : str
        Its name in messages.

    Raises
    ------
    ConfigError
        If it is no YAML, repeats a key, or aliases make too many values of it.
    """
    try:
        raw = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader, see above
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{source}{where}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: no YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigError(f"{source}: nested too deep for an experiment file") from None
    except (ValueError, TypeError) as error:  # a date of no calendar, a number of thousands of digits, a list as a key
        raise ConfigError(f"{source}: {' '.join(str(error).split())}") from None
    if _n_values(raw, {}) > _MOST_VALUES:
        raise ConfigError(f"{source}: aliases (*) make more than {_MOST_VALUES:,} values of it")
    return raw


def _n_values(value: Any, known: dict[int, float]) -> float:
    """Count the values, aliases expanded; infinite if an alias contains itself."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf
        inside = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_n_values(one, known) for one in inside)
    return known[id(value)]


def set_key(raw: dict[str, Any], override: str) -> None:
    """Set one ``key.sub=value``; the model checks later if the key exists.

    Parameters
    ----------
    raw : dict
        The content of an experiment file.
    override : str
        The key and its value, in YAML.

    Raises
    ------
    ConfigError
        If this is no ``key.sub=value``, or a key above holds a value.
    """
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
            raise ConfigError(f"--set {override!r}: {step!r} holds a value and no keys")
        place = below
    place[steps[-1]] = parse_yaml(text, f"--set {override!r}")
