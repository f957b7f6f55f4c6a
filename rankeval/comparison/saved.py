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

JSON_FORMAT = "rankeval.comparison/9"
PLACE, REMEDY = "this is not a whole comparison", "pass the output of to_json"
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
    """Return the shape of a table, which may also have a column of collections or slices."""
    kinds: dict[str, Any] = dict.fromkeys(columns, float) | dict.fromkeys(TEXTS, str)
    kinds |= {"n_queries": int, "shares_differ": bool, "is_bound": bool}
    return {name: [kinds[name]] for name in columns} | {str: [(str, bool, float)]}


# An int is a count. A float may be one of `_WORDS`. A list has any number of values of its shape,
# and a tuple is one of several shapes. An object has all keys that its shape has, and under `str`
# those of any other name.
_ENDS = ("estimate", "ci_low", "ci_high")
_CHOICE: dict[Any, Any] = {
    **dict.fromkeys(("system", "measure"), str),
    "baseline": (str, None),
    **dict.fromkeys((*_ENDS, "confidence_level"), float),
    "n_candidates": int,
    "lower_is_better": (bool, None),
}
_FOLDS = {"systems": [str], "measures": [str], "scores": [[[float]]], "ratio": float}
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
}
_SHAPE |= {
    "primary": (str, None),
    "alternative": str,
    "n_resamples": int,
    "claim": str,
    "margin": float,
    "unseen": int,
    "choice": (_CHOICE, None),
    "folds": (_FOLDS, None),
    "grouped": str,
    "weights": str,
}
_SHAPE |= {name: (_table(columns), None) for name, columns in _TABLES.items()}
_SHAPE |= {
    "standing": str,
    "opening": ({str: (str, int, bool, None)}, None),
    "lower_is_better": {str: bool},
    "unit": str,
    "member": str,
    "n_members": int,
    "n_effective": float,
}
"""The keys of the JSON, in their order, and the shape of each value."""


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, tuple):
        return any(_fits(value, kind) for kind in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(part, shape[0]) for part in value)
    if isinstance(shape, dict):
        has_all = isinstance(value, dict) and shape.keys() - {str} <= value.keys()
        other = shape.get(str, ())
        return has_all and all(_fits(part, shape.get(key, other)) for key, part in value.items())
    if shape is str:
        return isinstance(value, str) and not _HALF.search(value)
    if shape is float and isinstance(value, str):
        return value in _WORDS
    if shape is float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and abs(value) <= float_info.max
    if shape is int:
        number = whole_number(value)
        return number is not None and 0 <= number < 2**63
    return value is None if shape is None else isinstance(value, shape)


def to_json(record: ComparisonRecord, headline: str, choice: Choice | None) -> str:
    """Write a comparison without its evaluations, with the headline for other readers."""
    settings = record.settings
    values = {**vars(record), **vars(settings), **vars(kept(record)), "choice": choice}
    values["confidence_level"] = settings.confidence_level
    values["weights"] = settings.collection_weights
    content = {"format": JSON_FORMAT, "headline": headline} | {key: values[key] for key in _SHAPE}
    return json.dumps(content, indent=1, allow_nan=False, default=_plain_part)


def from_json(text: str) -> dict[str, Any]:
    """Return the fields of a `ComparisonRecord` that `to_json` wrote."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"this is not a comparison: it is not JSON ({error}); pass the output of to_json"
        ) from error
    version = content.pop("format", None) if isinstance(content, dict) else None
    is_ours = isinstance(version, str) and version.startswith("rankeval.comparison/")
    other = f"this comparison is of another version: its format is {version!r}, not {JSON_FORMAT!r}"
    remedy = "another version wrote it: compare the systems again" if is_ours else REMEDY
    refuse((version != JSON_FORMAT, other, remedy))
    try:
        return _read(content)
    except InvalidInput:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"{PLACE} ({type(error).__name__}: {said(error)})", remedy=REMEDY
        ) from error


def _read(content: dict[str, Any]) -> dict[str, Any]:
    content.pop("headline", None)  # it follows from the numbers
    unlike = sorted(content.keys() ^ _SHAPE.keys())
    refuse((unlike, f"{PLACE}: keys are missing or unknown: {few(unlike)}", REMEDY))
    for key, shape in _SHAPE.items():
        fits = _fits(content[key], shape)
        require(fits, key, content[key], "a value such as to_json writes", where=PLACE)
    grouped = [content["grouped"]] if content["grouped"] else []
    rows = [*grouped, *COLUMNS]
    table = _frame(content["table"], rows, grouped)
    _check_names(content, table)
    frames = {
        name: content[name] and _frame(content[name], columns, grouped)
        for name, columns in (_TABLES | {"condensed": rows}).items()
    }
    choice, folds = content["choice"], content["folds"]
    if choice:
        choice = Choice(**choice | {name: float(choice[name]) for name in _ENDS})
    if folds:
        block = np.asarray(folds["scores"], dtype=np.float64)
        block = block.reshape(-1, len(folds["systems"]), len(folds["measures"]))
        folds = FoldScores(**folds | {"scores": block, "ratio": float(folds["ratio"])})
    return {
        "table": table_without_rows() if table.empty else table,
        "settings": _settings(content),
        "notes": tuple(content["notes"]),
        "_kept": KeptScores(choice, folds, first_two=frames.pop("first_two")),
        "standing": content["standing"],
        "opening": content["opening"],
        **frames,
    }


def _check_names(content: Mapping[str, Any], table: pd.DataFrame) -> None:
    known: dict[str, set[Any]] = {"weights": {"", *WEIGHTS}, "alternative": {"two-sided"}}
    if len(table):
        known["baseline"] = {None, *table["baseline"], *table["system"]}
        known["primary"] = {None, *table["measure"]}
    for key, names in known.items():
        value = content[key]
        require(value in names, key, value, f"one of {few([*names])}", where=PLACE)
    for key in ("test", "correction"):
        require(content[key], key, content[key], "a name", where=PLACE)


def _settings(content: Mapping[str, Any]) -> ComparisonSettings:
    names = {field.name for field in fields(ComparisonSettings)} & content.keys()
    return ComparisonSettings(
        **{name: content[name] for name in names},
        alpha=round(1 - content["confidence_level"], 12),  # 1 - .95 is a little more than .05
        collection_weights=content["weights"],
    )


def _plain_part(part: Any) -> Any:
    if isinstance(part, pd.DataFrame):
        return {name: [plain(value) for value in part[name]] for name in part}
    if isinstance(part, np.ndarray):
        return part.tolist()
    return {name: plain(value) for name, value in vars(part).items()}


def _frame(columns: Mapping[str, Any], names: Sequence[str], texts: Sequence[str]) -> pd.DataFrame:
    """Return the frame of plain columns; words in columns of numbers become nan and infinity."""
    frame = {name: columns[name] for name in names}
    for name in {*names} - {*TEXTS, *texts}:
        frame[name] = [float(value) if isinstance(value, str) else value for value in frame[name]]
    return pd.DataFrame(frame)


def plain(value: Any) -> Any:
    """Return a number as Python has it; one that is not finite becomes a word of `_WORDS`."""
    plain = value.item() if isinstance(value, np.generic) else value
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain
