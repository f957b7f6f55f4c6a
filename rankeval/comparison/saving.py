"""Comparisons as JSON: settings and table, numbers to the last bit.

Python writes a float by the shortest decimal that reads back to the same bits, so numbers survive. JSON has neither nan
nor infinity: these are written as words, and turned back in the columns of numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from rankeval.comparison.choice import Choice
from rankeval.comparison.design import COLUMNS
from rankeval.comparison.fold_scores import FoldScores
from rankeval.errors import InvalidInput

JSON_FORMAT = "rankeval.comparison/2"
Made = TypeVar("Made")
_TEXT = ("measure", "baseline", "system")


def to_json(settings: Mapping[str, Any], table: pd.DataFrame) -> str:
    """Write settings and table.

    Parameters
    ----------
    settings : mapping of str to value
        The fields of the Comparison, which have parts of their own: a `Choice`, `FoldScores`.
    table : DataFrame
        With the columns of `COLUMNS`.
    """
    columns = {name: [_to_plain(value) for value in table[name]] for name in COLUMNS}
    fields = {"format": JSON_FORMAT, **settings, "table": columns}
    return json.dumps(fields, indent=1, allow_nan=False, default=_fields_of)


def from_json(text: str, make: Callable[..., Made]) -> Made:
    """Make a Comparison of the fields that `to_json` wrote.

    Parameters
    ----------
    text : str
        JSON.
    make : callable
        Takes the settings, ``table`` and ``notes`` by keyword.

    Raises
    ------
    InvalidInput
        Text of another kind, or fields that are missing or unknown.
    """
    try:
        fields = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"this is no comparison: it is no JSON ({error}); pass the output of to_json") from error
    if not isinstance(fields, dict) or fields.pop("format", None) != JSON_FORMAT:
        raise InvalidInput(f"this is no comparison: its format is not {JSON_FORMAT!r}; pass the output of to_json")
    try:
        columns = {name: [_from_plain(value, name) for value in fields["table"][name]] for name in COLUMNS}
        choice = fields["choice"] and Choice(**fields["choice"])
        folds = fields["folds"] and FoldScores.from_plain(**fields["folds"])
        parts = {"table": pd.DataFrame(columns), "notes": tuple(fields["notes"]), "choice": choice, "folds": folds}
        return make(**{**fields, **parts})
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidInput(f"this is no whole comparison ({why}); pass the output of to_json") from error


def _fields_of(part: Any) -> Any:
    """Return the fields of a part of a Comparison, and arrays as lists."""
    return part.tolist() if isinstance(part, np.ndarray) else vars(part)


def _to_plain(value: Any) -> Any:
    """Turn a cell into a value that JSON can hold: numbers that are not finite become words."""
    plain = value.item() if isinstance(value, np.generic) else value
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain


def _from_plain(value: Any, column: str) -> Any:
    return float(value) if isinstance(value, str) and column not in _TEXT else value
