"""A comparison as JSON, and back, numbers to the last bit.

Python writes a float by the shortest decimal that reads back to the same bits. JSON has neither nan
nor infinity: these are written as words, and turned back in columns of numbers.

The file has no checksum, since people and programs edit JSON: anyone who changes a number gets that
number. But a value of another kind is refused when the file is read, and not when it is shown:
`_SHAPE` declares the kinds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from sys import float_info
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import few, refuse, require, said, whole_number
from rankeval.comparison.design import BOUNDS, COLUMNS, CROSSED, MEANS, TEXTS, table_without_rows
from rankeval.comparison.record import (
    Choice,
    ComparisonRecord,
    ComparisonSettings,
    FoldScores,
    KeptScores,
    kept,
)
from rankeval.errors import InvalidInput
from rankeval.significance.strata import WEIGHTS

JSON_FORMAT = "rankeval.comparison/8"
PLACE, REMEDY = "this is no whole comparison", "pass the output of to_json"
_WORDS = ("nan", "inf", "-inf")
_HALF = re.compile("[\ud800-\udfff]")  # half a character, which no table can be written with
_TABLES = {
    "interaction": CROSSED,
    "means": MEANS,
    "bounds": BOUNDS,
    "condensed": COLUMNS,
    "first_two": COLUMNS,
}


def _table(columns: Sequence[str]) -> dict[Any, Any]:
    """Return the shape of a table; the column of collections or slices may stand there too."""
    kinds: dict[str, Any] = dict.fromkeys(columns, float) | dict.fromkeys(TEXTS, str)
    kinds |= {"n_queries": int, "shares_differ": bool, "is_bound": bool}
    return {name: [kinds[name]] for name in columns} | {str: [(str, bool, float)]}


# An int is a count. A float may be one of `_WORDS`. A list has any number of values of its shape,
# and a tuple is one of several shapes. An object has all keys that its shape has, and under `str`
# those of any other name.
_SHAPE: dict[Any, Any] = {
    "table": _table(COLUMNS),
    "baseline": (str, None),
    "test": str,
    "correction": str,
    "family": str,
    "confidence_level": float,
    "rng": (int, None),
    "n_comparisons": int,
    "notes": [str],
    "primary": (str, None),
    "alternative": str,
    "n_resamples": int,
    "claim": str,
    "margin": float,
    "unseen": int,
    "choice": (
        {
            **dict.fromkeys(("system", "measure"), str),
            "baseline": (str, None),
            **dict.fromkeys(("estimate", "ci_low", "ci_high", "confidence_level"), float),
            "n_candidates": int,
            "lower_is_better": (bool, None),
        },
        None,
    ),
    "folds": ({"systems": [str], "measures": [str], "scores": [[[float]]], "ratio": float}, None),
    "grouped": str,
    "weights": str,
    **{name: (_table(columns), None) for name, columns in _TABLES.items()},
    "standing": str,
    "opening": ({str: (str, int, bool, None)}, None),
    "lower_is_better": {str: bool},
    "unit": str,
    "member": str,
    "n_members": int,
}
"""The keys of the JSON, in their order, and the shape of each value."""


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, tuple):
        return any(_fits(value, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(one, shape[0]) for one in value)
    if isinstance(shape, dict):
        has_all = isinstance(value, dict) and shape.keys() - {str} <= value.keys()
        return has_all and all(
            _fits(one, shape.get(key, shape.get(str, ()))) for key, one in value.items()
        )
    if shape is str:
        return isinstance(value, str) and not _HALF.search(value)
    if shape is float and isinstance(value, str):
        return value in _WORDS
    if shape is float:
        return (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and abs(value) <= float_info.max
        )
    if shape is int:
        number = whole_number(value)
        return number is not None and 0 <= number < 2**63
    return value is None if shape is None else isinstance(value, shape)


def to_json(record: ComparisonRecord, headline: str, choice: Choice | None) -> str:
    """Write a comparison without its evaluations, with the headline for other readers."""
    asked = record.settings
    renamed = {
        "confidence_level": asked.confidence_level,
        "weights": asked.collection_weights,
        "choice": choice,
    }
    known = {**vars(record), **vars(asked), **vars(kept(record)), **renamed}
    written = {"format": JSON_FORMAT, "headline": headline} | {key: known[key] for key in _SHAPE}
    return json.dumps(written, indent=1, allow_nan=False, default=_plain_part)


def from_json(text: str) -> dict[str, Any]:
    """Return the fields of a `ComparisonRecord` that `to_json` wrote."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"this is no comparison: it is no JSON ({error}); pass the output of to_json"
        ) from error
    version = found.pop("format", None) if isinstance(found, dict) else None
    known = isinstance(version, str) and version.startswith(JSON_FORMAT.partition("/")[0] + "/")
    other = (
        f"this is no comparison of this version: its format is {version!r} and not {JSON_FORMAT!r}"
    )
    remedy = "another version wrote it: compare the systems again" if known else REMEDY
    refuse((version != JSON_FORMAT, other, remedy))
    try:
        return _read(found)
    except InvalidInput:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"{PLACE} ({type(error).__name__}: {said(error)})", remedy=REMEDY
        ) from error


def _read(found: dict[str, Any]) -> dict[str, Any]:
    found.pop("headline", None)  # it follows from the numbers
    unlike = sorted(found.keys() ^ _SHAPE.keys())
    refuse((unlike, f"{PLACE}: keys are missing or unknown: {few(unlike)}", REMEDY))
    for key, shape in _SHAPE.items():
        require(
            _fits(found[key], shape), key, found[key], "a value such as to_json writes", where=PLACE
        )
    grouped = [found["grouped"]] if found["grouped"] else []
    rows = [*grouped, *COLUMNS]
    table = _frame(found["table"], rows, grouped)
    known: dict[str, set[Any]] = {"weights": {"", *WEIGHTS}, "alternative": {"two-sided"}}
    if len(table):
        known |= {
            "baseline": {None, *table["baseline"], *table["system"]},
            "primary": {None, *table["measure"]},
        }
    for key, names in known.items():
        require(found[key] in names, key, found[key], f"one of {few([*names])}", where=PLACE)
    for key in ("test", "correction"):
        require(found[key], key, found[key], "a name", where=PLACE)
    columns = _TABLES | {"condensed": rows}
    frames = {
        name: found[name] and _frame(found[name], names, grouped) for name, names in columns.items()
    }
    choice, folds = found["choice"], found["folds"]
    if choice:
        ends = {name: float(choice[name]) for name in ("estimate", "ci_low", "ci_high")}
        choice = Choice(**choice | ends)
    if folds:
        block = np.asarray(folds["scores"], dtype=np.float64)
        block = block.reshape(-1, len(folds["systems"]), len(folds["measures"]))
        folds = FoldScores(**folds | {"scores": block, "ratio": float(folds["ratio"])})
    names = {one.name for one in fields(ComparisonSettings)} & found.keys()
    asked = ComparisonSettings(
        **{name: found[name] for name in names},
        alpha=round(1 - found["confidence_level"], 12),  # 1 - .95 is a little more than .05
        collection_weights=found["weights"],
    )
    return {
        "table": table if len(table) else table_without_rows(),
        "settings": asked,
        "notes": tuple(found["notes"]),
        "_kept": KeptScores(choice, folds, first_two=frames.pop("first_two")),
        "standing": found["standing"],
        "opening": found["opening"],
        **frames,
    }


def _plain_part(part: Any) -> Any:
    if isinstance(part, pd.DataFrame):
        return {name: [_plain(value) for value in part[name]] for name in part}
    if isinstance(part, np.ndarray):
        return part.tolist()
    return {name: _plain(value) for name, value in vars(part).items()}


def _frame(columns: Mapping[str, Any], names: Sequence[str], texts: Sequence[str]) -> pd.DataFrame:
    """Return the frame of plain columns; in columns of numbers, words are those of nan and infinity."""
    return pd.DataFrame(
        {
            name: columns[name]
            if name in TEXTS or name in texts
            else [float(value) if isinstance(value, str) else value for value in columns[name]]
            for name in names
        }
    )


def _plain(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain
