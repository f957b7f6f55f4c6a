"""Wrong inputs: one argument of a call is changed into something that should be refused.

The change is drawn from the seed of the call. It knows the form of the argument, so that what
arrives is nearly right: an array that lacks a row, a name with a letter too many, a frame without a
column, a file with damaged bytes. Numbers stay small, since a large one may ask for hours of work
in place of an error.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from fuzz.mutations import mutated

NO_NUMBERS = (-1, 0, 1.5, "many", None, True, float("nan"), -0.25, [1, 2])


def spoiled(value: Any, rng: random.Random) -> Any:
    """Return a value of nearly the same form that is probably wrong.

    Parameters
    ----------
    value : object
        An argument of a call.
    rng : random.Random
        The choices.
    """
    for kinds, spoil in _SPOILERS:
        if isinstance(value, kinds):
            return spoil(value, rng)
    return rng.choice((None, "not this", 7, [], object, {"a": 1}))


def _truth(value: bool, rng: random.Random) -> Any:
    return rng.choice((not value, "yes", None, 2))


def _number(value: float, rng: random.Random) -> Any:
    return rng.choice((*NO_NUMBERS, -value, str(value)))


def _text(value: str, rng: random.Random) -> Any:
    if len(value) < 200 and "\0" not in value and Path(value).is_file():
        return str(_path(Path(value), rng))
    at = rng.randrange(len(value) + 1)
    near = (value[:at] + "x" + value[at:], value[:at] + value[at + 1 :], value.upper(), f"{value} ")
    return rng.choice((*near, *near, "", "unknown", None, 3, [value, value]))


def _path(value: Path, rng: random.Random) -> Any:
    if not value.is_file() or rng.random() < 0.2:
        return value.with_name(f"no-{value.name}")
    value.write_bytes(mutated(value.read_bytes(), rng))
    return value


def _array(value: np.ndarray, rng: random.Random) -> Any:
    if not value.ndim or not len(value):
        return rng.choice((None, "abc"))
    form = rng.randrange(8)
    if form == 0:
        return value[:-1]
    if form == 1:
        return np.concatenate([value, value[:1]])
    if form == 2:
        return value.astype(str)
    if form == 3 and value.dtype.kind in "fi":
        odd = value.astype(np.float64)
        odd[rng.randrange(len(odd))] = rng.choice((np.nan, np.inf, -np.inf))
        return odd
    if form == 4:
        return value[:0]
    if form == 5:
        return np.stack([value, value])
    if form == 6:
        odd = value.astype(object)
        odd[rng.randrange(len(odd))] = None
        return odd
    return np.repeat(value[:1], len(value), axis=0)


def _frame(value: pd.DataFrame, rng: random.Random) -> Any:
    form = rng.randrange(6)
    if form == 0 and value.shape[1]:
        return value.drop(columns=value.columns[rng.randrange(value.shape[1])])
    if form == 1:
        return value.iloc[:0]
    if form == 2 and len(value):
        return pd.concat([value, value.iloc[:1]])
    if form == 3:
        return value.rename(columns=lambda name: f"{name}_")
    if form == 4:
        return value.astype(str)
    return value.iloc[:-1]


def _series(value: pd.Series, rng: random.Random) -> Any:
    form = rng.randrange(3)
    return (
        value.iloc[:-1]
        if form == 0
        else value.sample(frac=1, random_state=1)
        if form == 1
        else value.astype(str)
    )


def _mapping(value: Mapping[Any, Any], rng: random.Random) -> Any:
    if not value or rng.random() < 0.2:
        return rng.choice(({}, None, list(value)))
    name = rng.choice(list(value))
    form = rng.randrange(3)
    if form == 0:
        return {key: it for key, it in value.items() if key != name}
    if form == 1:
        return {**value, "another": spoiled(value[name], rng)}
    return {**value, name: spoiled(value[name], rng)}


def _sequence(value: list[Any] | tuple[Any, ...], rng: random.Random) -> Any:
    if not value or rng.random() < 0.2:
        return rng.choice(((), None, "x", 5))
    at = rng.randrange(len(value))
    form = rng.randrange(3)
    changed = (
        [*value[:at], *value[at + 1 :]]
        if form == 0
        else [*value, value[at]]
        if form == 1
        else list(value)
    )
    if form == 2:
        changed[at] = spoiled(value[at], rng)
    return type(value)(changed) if type(value) in (list, tuple) else changed


_SPOILERS = (
    (bool, _truth),
    ((int, float, np.integer, np.floating), _number),
    (str, _text),
    (Path, _path),
    (np.ndarray, _array),
    (pd.DataFrame, _frame),
    (pd.Series, _series),
    (Mapping, _mapping),
    ((list, tuple), _sequence),
)


def spoiled_call(
    args: tuple[Any, ...], options: dict[str, Any], rng: random.Random
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with one of them wrong, or with an unknown one.

    Parameters
    ----------
    args : tuple
        Positional arguments.
    options : dict
        Keyword arguments.
    rng : random.Random
        The choices.
    """
    places = [*range(len(args)), *options]
    if not places or rng.random() < 0.04:
        return args, {**options, "no_such_option": 1}
    place = rng.choice(places)
    if isinstance(place, int):
        changed = list(args)
        changed[place] = spoiled(args[place], rng)
        return tuple(changed), options
    return args, {**options, place: spoiled(options[place], rng)}


def spoiled_line(words: list[str], rng: random.Random) -> list[str]:
    """Return a command line with one word wrong, gone or added.

    Parameters
    ----------
    words : list of str
        A command and its arguments.
    rng : random.Random
        The choices.
    """
    form = rng.randrange(6)
    if len(words) < 2 or form == 0:
        return [*words, rng.choice(("--no-such-option", "extra", "--format", "-x"))]
    at = rng.randrange(1, len(words))
    if form == 1:
        return [*words[:at], *words[at + 1 :]]
    word = spoiled(words[at], rng)
    return [*words[:at], str(word), *words[at + 1 :]]
