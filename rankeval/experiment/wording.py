"""Say in one line, in our words, what pydantic found wrong in an experiment file."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from inspect import isclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

_EXPECTED = {
    "string_type": "text (put it in quotes)",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
    "literal_error": "{expected}",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "too_short": "a list with at least {min_length} of them",
}
"""Type of pydantic's error -> the value that was expected."""


def one_line(error: ValidationError, model: type[BaseModel]) -> str:
    """Describe the first problem, and count the others.

    Parameters
    ----------
    error : ValidationError
        What pydantic raised.
    model : type
        The model of the whole file, whose keys are the near misses.
    """
    problems = error.errors(include_url=False)
    # Show an unknown key first: the key that it was meant to be is then missing too.
    first = min(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    steps = [str(step) for step in first["loc"]]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if first["type"] == "extra_forbidden":
        known = _keys_at(model, steps[:-1])
        near = difflib.get_close_matches(steps[-1], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
        return f"unknown key {'.'.join(steps)!r}; {hint}{more}"
    if first["type"] == "missing":
        return f"the key {'.'.join(steps)!r} is missing{more}"
    where = f"{'.'.join(steps)}: " if steps else ""
    return f"{where}{_said(first)}{more}"


def _said(problem: Any) -> str:
    kind = problem["type"]
    if kind == "value_error":
        said: str = problem["msg"].removeprefix("Value error, ")
        return said
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind].format(**problem.get('ctx', {}))}, found {problem['input']!r}"
    message = problem["msg"]
    return f"{message[:1].lower()}{message[1:]}, found {problem['input']!r}"


def _keys_at(model: type[BaseModel], steps: list[str]) -> list[str]:
    """Return the keys of the section at this place; names of rankers and numbers of steps are no keys."""
    for step in steps:
        field = model.model_fields.get(step)
        inner = next(sections_in(field.annotation), None) if field is not None else None
        model = inner or model
    return list(model.model_fields)


def sections_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation, such as that of ``dict[str, Model]`` or ``Model | None``.

    Parameters
    ----------
    annotation : type
        The annotation of a field.
    """
    if isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from sections_in(part)
