"""A result with a table as a record, and back.

Its frames are tables, results within it are parts, and its other fields are facts.
Metrics are the rows of its table. Suppose that the rows of an Agreement are named by their
``coefficient``, and that ``value``, ``ci_low`` and ``ci_high`` are numbers of a row. Then they are
``agreement/krippendorff_alpha`` and the same with ``_ci_low`` and ``_ci_high`` at the end. Of
several rows with one name none is a metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_origin, get_type_hints

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import TypeAdapter

from rankeval._arguments import explained
from rankeval.comparison.saved import plain
from rankeval.comparison.tables import WithTable, caption_of
from rankeval.shelf.kinds import result_of
from rankeval.shelf.record import INTERVAL_ENDS, Record

LIMITS = dict(zip(("ci_low", "ci_high"), INTERVAL_ENDS, strict=True))
"""The columns with the ends of an interval, and the ends of the names of their metrics."""

ADJUSTED_LIMITS = dict(zip(("ci_low_adjusted", "ci_high_adjusted"), INTERVAL_ENDS, strict=True))
"""The same of adjusted intervals."""

_MOST_ROWS = 100
"""A table of more rows, such as the rate of each document, has no metrics."""

_SHARED = ("n_items", "baseline", "system", "n_human", "n_machine")
"""Columns that are parameters if all rows have one value."""


@explained
class Recorded(WithTable):
    """Base of results with one table that can be saved; subclasses name the metrics."""

    _row_key: ClassVar[str] = ""
    _row_ends: ClassVar[Mapping[str, str]] = {}
    if TYPE_CHECKING:
        table: pd.DataFrame

    def record(self) -> Record:
        """Return the result in plain values, from which folders, runs and pages are made.

        Returns
        -------
        Record
            Its frames are tables, and ``metrics`` are the rows of its table.
        """
        kind = record_kind(self)
        names = [field.name for field in fields(self)]  # type: ignore[arg-type] # of subclasses
        values = {name: getattr(self, name) for name in names}
        frames = {name: value for name, value in values.items() if isinstance(value, pd.DataFrame)}
        results = {name: value for name, value in values.items() if isinstance(value, Recorded)}
        parts = {name: result.record() for name, result in results.items()}
        metrics = {f"{kind}/{name}": float(value) for name, value in self._metrics()}
        params = dict(self._params(kind, values))
        facts = {name: _fact(value) for name, value in values.items() if _is_plain(value)}
        return Record(
            kind=kind,
            name=values.get("name") or kind,
            headline=caption_of(self),
            params=params,
            metrics=metrics,
            tables=frames,
            notes=tuple(values["notes"]),
            text=self.to_markdown(),
            facts=facts,
            parts=parts,
        )

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Return the result of a record; a field that no record has keeps its default."""
        hints = _hints(cls)
        parts = {name: result_of(part) for name, part in record.parts.items()}
        facts = {name: _restored(hints[name], value) for name, value in record.facts.items()}
        return cls(**record.tables, **parts, **facts)

    def _row_columns(self) -> list[str]:
        """Return the columns that name the rows; a number gets the name of its column in front."""
        return [self._row_key]

    def _row_names(self) -> list[str]:
        names = []
        for row in self.table.to_dict("records"):
            parts = [_named(column, row[column]) for column in self._row_columns()]
            names.append("_".join(parts) or "all")
        return names

    def _metrics(self) -> Iterator[tuple[str, Any]]:
        rows = self.table.to_dict("records")
        names = self._row_names() if self._row_ends and len(rows) <= _MOST_ROWS else []
        for name, row in zip(names, rows, strict=False):
            if names.count(name) > 1:
                continue
            for column, end in self._row_ends.items():
                if column in row:
                    yield f"{name}{end}", row[column]

    def _params(self, kind: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        shared = {name: set(self.table[name]) for name in _SHARED if name in self.table}
        yield from ((name, str(*texts)) for name, texts in shared.items() if len(texts) == 1)
        for name, value in values.items():
            if isinstance(value, str) and value and name not in {"caption", "rate"}:
                yield f"{kind}/system" if name == "name" else name, value


def record_kind(result: Any) -> str:
    """Return the kind of a result in snake case; of rates it is the rate, such as "abandonment"."""
    name = re.sub("(?<=.)(?=[A-Z][a-z])", "_", type(result).__name__).lower()
    return str(getattr(result, "rate", name))


def _named(column: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{column}_{value}"


def _is_plain(value: Any) -> bool:
    is_settings = is_dataclass(value) and not isinstance(value, WithTable)
    return is_settings or isinstance(value, str | float | int | tuple | np.generic)


def _fact(value: Any) -> Any:
    """Return a value as JSON has it; a dataclass becomes a mapping, an array a list."""
    if is_dataclass(value):
        return {field.name: _fact(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple | np.ndarray):
        return [_fact(part) for part in value]
    return plain(value)


def _hints(kind: type) -> dict[str, Any]:
    # pandas and NumPy may be imported for type checkers only.
    return get_type_hints(kind, localns={"pd": pd, "np": np})


def _restored(hint: Any, value: Any) -> Any:
    if is_dataclass(hint) and isinstance(hint, type):
        hints = _hints(hint)
        return hint(**{name: _restored(hints[name], part) for name, part in value.items()})
    # NDArray is an alias of its own from NumPy 2.5 on.
    if get_origin(hint) in (np.ndarray, NDArray):
        return np.asarray(value, dtype=np.float64)
    return TypeAdapter(hint).validate_python(value)
