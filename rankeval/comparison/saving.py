"""Comparisons as JSON: settings and table, numbers to the last bit.

Python writes a float by the shortest decimal that reads back to the same bits, so numbers survive. JSON has neither nan
nor infinity: these are written as words, and turned back in the columns of numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from rankeval.comparison.choice import Choice
from rankeval.comparison.design import BOUNDS, COLUMNS, CROSSED, MEANS, TEXTS, table_without_rows
from rankeval.comparison.fold_scores import FoldScores
from rankeval.errors import InvalidInput

JSON_FORMAT = "rankeval.comparison/5"
ENDS = ("estimate", "ci_low", "ci_high")
"""Fields of a `Choice` that may be infinite; its names are text, also the name "inf"."""

Made = TypeVar("Made")


def to_json(fields: Mapping[str, Any]) -> str:
    """Write the fields of a Comparison.

    Parameters
    ----------
    fields : mapping of str to value
        All but the evaluations, and the headline for other readers. Frames have the columns of `COLUMNS`, after that of
        ``grouped``, of `CROSSED`, `MEANS` and `BOUNDS`.
    """
    fields = {"format": JSON_FORMAT, **fields}
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
    found = fields.pop("format", None) if isinstance(fields, dict) else None
    if found != JSON_FORMAT:
        raise InvalidInput(f"this is no comparison of this version: {_other_format(found)}")
    # The headline follows from the numbers.
    fields.pop("headline", None)
    try:
        grouped = [fields["grouped"]] if fields["grouped"] else []
        table = _frame(fields["table"], [*grouped, *COLUMNS], grouped)
        table = table if len(table) else table_without_rows()
        frames = {
            "interaction": CROSSED,
            "means": MEANS,
            "bounds": BOUNDS,
            "condensed": [*grouped, *COLUMNS],
            "first_two": COLUMNS,
        }
        beside = {name: fields[name] and _frame(fields[name], names, grouped) for name, names in frames.items()}
        choice = fields["choice"] and Choice(
            **{name: _from_plain(value) if name in ENDS else value for name, value in fields["choice"].items()}
        )
        folds = fields["folds"] and FoldScores.from_plain(**fields["folds"])
        parts = {
            "table": table,
            **beside,
            "notes": tuple(fields["notes"]),
            "choice": choice,
            "folds": folds,
        }
        return make(**{**fields, **parts})
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidInput(f"this is no whole comparison ({why})", remedy="pass the output of to_json") from error


def _other_format(found: Any) -> str:
    """Say which format was found, and what to do."""
    if isinstance(found, str) and found.startswith(JSON_FORMAT.partition("/")[0] + "/"):
        return f"its format is {found!r} and not {JSON_FORMAT!r}; another version wrote it: compare the systems again"
    return f"it does not have the format {JSON_FORMAT!r}; pass the output of to_json"


def _fields_of(part: Any) -> Any:
    """Return the fields of a part of a Comparison, columns of frames, and arrays as lists."""
    if isinstance(part, pd.DataFrame):
        return {name: [_to_plain(value) for value in part[name]] for name in part}
    if isinstance(part, np.ndarray):
        return part.tolist()
    return {name: _to_plain(value) for name, value in vars(part).items()}


def _frame(columns: Mapping[str, Any], names: Sequence[str], text: Sequence[str]) -> pd.DataFrame:
    """Return the frame of plain columns, words turned back into numbers but in columns of text."""
    texts = {*TEXTS, *text}
    return pd.DataFrame(
        {name: [_from_plain(value) if name not in texts else value for value in columns[name]] for name in names}
    )


def _to_plain(value: Any) -> Any:
    """Turn a cell into a value that JSON can hold: numbers that are not finite become words."""
    plain = value.item() if isinstance(value, np.generic) else value
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain


def _from_plain(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value
