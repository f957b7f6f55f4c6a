"""A comparison as JSON, and back, numbers to the last bit.

Python writes a float by the shortest decimal that reads back to the same bits. JSON has neither nan nor infinity: these
are written as words, and turned back in columns of numbers.

The file has no checksum, since people and programs edit JSON: whoever changes a number gets that number. But each value
is of its kind, or the file is refused when it is read, and not when it is shown: `_KINDS` declares the kinds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from sys import float_info
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import few, refuse, require, said, whole_number
from rankeval.comparison.design import BOUNDS, COLUMNS, CROSSED, FAMILIES, MEANS, TEXTS, table_without_rows
from rankeval.comparison.record import Choice, ComparisonRecord, ComparisonSettings, FoldScores, Kept, kept
from rankeval.errors import InvalidInput
from rankeval.significance.strata import WEIGHTS

JSON_FORMAT = "rankeval.comparison/7"
_WORDS = ("nan", "inf", "-inf")
_PLACE, _REMEDY = "this is no whole comparison", "pass the output of to_json"
_FLAGS = ("shares_differ", "is_bound")

Test = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_name(value: Any) -> bool:
    return _is_text(value) and value != ""


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    number = whole_number(value)
    return number is not None and 0 <= number < 2**63


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value in _WORDS if isinstance(value, str) else is_real and abs(value) <= float_info.max


def _is_fact(value: Any) -> bool:
    return _is_text(value) or _is_count(value) or _is_flag(value) or value is None


def _or_null(kind: Test) -> Test:
    return lambda value: value is None or kind(value)


def _list_of(kind: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(kind, value))


def _object_of(kind: Test) -> Test:
    return lambda value: isinstance(value, dict) and all(map(kind, value.values()))


def _object(**kinds: Test) -> Test:
    return lambda value: (
        isinstance(value, dict) and value.keys() == kinds.keys() and all(kinds[key](value[key]) for key in kinds)
    )


def _column(name: str) -> Test:
    kinds = {_is_count: ("n_queries",), _is_flag: _FLAGS, _is_number: ()}
    of_name = next((kind for kind, names in kinds.items() if name in names), _is_number)
    return _list_of(_is_text if name in TEXTS else of_name)


def _frame_of(*names: str) -> Test:
    """Return a test of a table that may have the column of collections or slices too, which holds texts."""
    kinds = {name: _column(name) for name in names}

    def fits(value: Any) -> bool:
        if not isinstance(value, dict) or len({len(part) for part in value.values() if isinstance(part, list)}) > 1:
            return False
        return kinds.keys() <= value.keys() and all(
            kinds.get(name, _list_of(_is_fact))(part) for name, part in value.items()
        )

    return fits


_KINDS: dict[str, tuple[Test, str]] = {
    "table": (_frame_of(*COLUMNS), "a table"),
    "baseline": (_or_null(_is_text), "text or null"),
    "test": (_is_name, "text"),
    "correction": (_is_name, "text"),
    "family": (lambda value: value in FAMILIES, f"one of {', '.join(FAMILIES)}"),
    "confidence_level": (lambda value: isinstance(value, float) and 0.5 <= value < 1, "a level"),
    "rng": (_or_null(_is_count), "a seed or null"),
    "n_comparisons": (_is_count, "a whole number"),
    "notes": (_list_of(_is_text), "a list of texts"),
    "primary": (_or_null(_is_text), "text or null"),
    "alternative": (_is_text, "text"),
    "n_resamples": (_is_count, "a whole number"),
    "claim": (_is_text, "text"),
    "margin": (lambda value: _is_number(value) and not _is_text(value), "a number"),
    "unseen": (_is_count, "a whole number"),
    "choice": (
        _or_null(
            _object(
                **dict.fromkeys(("system", "measure"), _is_text),
                baseline=_or_null(_is_text),
                **dict.fromkeys(("estimate", "ci_low", "ci_high"), _is_number),
                n_candidates=_is_count,
                confidence_level=lambda value: isinstance(value, float) and 0 < value < 1,
                lower_is_better=_or_null(_is_flag),
            )
        ),
        "the best system or null",
    ),
    "folds": (
        _or_null(
            _object(
                systems=_list_of(_is_text),
                measures=_list_of(_is_text),
                scores=_list_of(_list_of(_list_of(_is_number))),
                ratio=_is_number,
            )
        ),
        "scores by fold or null",
    ),
    "grouped": (_is_text, "text"),
    "weights": (lambda value: value == "" or (_is_text(value) and value in WEIGHTS), "text"),
    "interaction": (_or_null(_frame_of(*CROSSED)), "a table or null"),
    "means": (_or_null(_frame_of(*MEANS)), "a table or null"),
    "bounds": (_or_null(_frame_of(*BOUNDS)), "a table or null"),
    "condensed": (_or_null(_frame_of(*COLUMNS)), "a table or null"),
    "first_two": (_or_null(_frame_of(*COLUMNS)), "a table or null"),
    "standing": (_is_text, "text"),
    "opening": (_or_null(_object_of(_is_fact)), "facts or null"),
    "lower_is_better": (_object_of(_is_flag), "true or false by column"),
    "unit": (_is_text, "text"),
}
"""Key of the JSON, in their order -> whether a value is of its kind, and words for it."""


def to_json(record: ComparisonRecord, headline: str, choice: Choice | None) -> str:
    """Write a comparison without its evaluations, with the headline for other readers."""
    asked = record.settings
    renamed = {"confidence_level": asked.confidence_level, "weights": asked.collection_weights, "choice": choice}
    known = {**vars(record), **vars(asked), **vars(kept(record)), **renamed}
    written = {"format": JSON_FORMAT, "headline": headline} | {key: known[key] for key in _KINDS}
    return json.dumps(written, indent=1, allow_nan=False, default=_plain_part)


def from_json(text: str) -> dict[str, Any]:
    """Return the fields of a `ComparisonRecord` that `to_json` wrote.

    Raises
    ------
    InvalidInput
        Text of another kind, or fields that are missing or unknown.
    """
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"this is no comparison: it is no JSON ({error}); pass the output of to_json") from error
    version = found.pop("format", None) if isinstance(found, dict) else None
    known = isinstance(version, str) and version.startswith(JSON_FORMAT.partition("/")[0] + "/")
    other = f"this is no comparison of this version: its format is {version!r} and not {JSON_FORMAT!r}"
    remedy = "another version wrote it: compare the systems again" if known else _REMEDY
    refuse((version != JSON_FORMAT, other, remedy))
    try:
        return _read(found)
    except InvalidInput:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"{_PLACE} ({type(error).__name__}: {said(error)})", remedy=_REMEDY) from error


def _read(found: dict[str, Any]) -> dict[str, Any]:
    found.pop("headline", None)  # it follows from the numbers
    unlike = sorted(found.keys() ^ _KINDS.keys())
    refuse((unlike, f"keys are missing or unknown: {few(unlike)}", _REMEDY))
    for key, (fits, words) in _KINDS.items():
        require(fits(found[key]), key, found[key], words, where=_PLACE)
    grouped = [found["grouped"]] if found["grouped"] else []
    rows = [*grouped, *COLUMNS]
    table = _frame(found["table"], rows, grouped)
    columns = {"interaction": CROSSED, "means": MEANS, "bounds": BOUNDS, "condensed": rows, "first_two": COLUMNS}
    measures, systems = {*table["measure"]}, {*table["baseline"], *table["system"]}
    for key, known in (("baseline", systems), ("primary", measures)) if len(table) else ():
        require(found[key] in {None, *known}, key, found[key], f"null or one of {few(sorted(known))}", where=_PLACE)
    frames = {name: found[name] and _frame(found[name], names, grouped) for name, names in columns.items()}
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
        "_kept": Kept(choice, folds, frames.pop("first_two")),
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
