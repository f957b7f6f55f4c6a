r"""The table of queries in a report: some rows as HTML, all rows as data for the page's script.

Without the script a reader sees the worst queries. The script (``templates/queries.js``) adds the
others, a search by id, and sorting by a click on a header. It draws few rows at a time, so that a
page of ten thousand queries opens at once. Data and first rows are made here of the same columns.

The data are in a ``script`` element, which ends at the first ``</script>``, whatever it contains. So
every "<" in them is written as ``\u003c``; ids may come from strangers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval._visible import visible
from rankeval.io.texts_by_id import as_texts
from rankeval.render.tables import number, signed

N_FIRST = 10
"""Rows that need no script."""

MOST_QUERIES = 10_000
MOST_BYTES = 1_200_000
"""A page has no more than either allows; the best queries are left out first."""

_DIGITS = 4
"""Digits of a score behind the point, shown and sorted by: equal rows are in the order of their ids."""

_WRITTEN: dict[str, Callable[[Any], str]] = {"score": number, "difference": signed, "count": str}
_LETTERS = 160
"""Letters of the text of a query; a longer one is cut."""

_ESCAPES = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&"}


@dataclass(frozen=True)
class TextTable:
    """A table for the template: headers, and rows of text."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_text: int = 1
    """Number of text columns from the left; the template aligns the others as numbers."""


@dataclass(frozen=True)
class QueryTable:
    """The table of queries for its template."""

    said: str  # What the table holds
    first: TextTable  # The rows that need no script
    # Kinds of the columns, the rows that the page holds by ascending id, and the order to begin
    # with; safe in HTML.
    json: str
    ids: Sequence[str] = ()  # Of the queries, those that are first by the order
    needs: Mapping[str, str] = field(default_factory=dict)  # The texts of queries by id


class QueryColumn(NamedTuple):
    """A column of the table: its header, its kind ("score", "difference" or "count"), a value for each query."""

    header: str
    kind: str
    values: NDArray[Any]


def query_table(
    queries: Any, columns: Sequence[QueryColumn], *, by: int, falls: bool, order: str
) -> QueryTable:
    """Lay out the queries, those that are first by a column first."""
    key = _rounded(columns[by].values)
    places = np.argsort(-key if falls else key, kind="stable")[:MOST_QUERIES].tolist()
    ids = [str(queries[place]) for place in places]
    texts, values = [ids[:N_FIRST]], [ids]
    for column in columns:
        texts.append([_WRITTEN[column.kind](column.values[place]) for place in places[:N_FIRST]])
        values.append(list(map(_plain, np.asarray(column.values)[places].tolist())))
    first = list(map(list, zip(*texts, strict=True)))
    lines = dict(zip(places, map(dumped, zip(*values, strict=True)), strict=True))
    sizes = accumulate(map(len, lines.values()))
    held = sorted(place for place, size in zip(places, sizes, strict=True) if size <= MOST_BYTES)
    kinds = [column.kind for column in columns]
    about = dumped({"columns": ["id", *kinds], "order": [by + 1, falls]})
    rows = ",\n".join(lines[place] for place in held)
    return QueryTable(
        _said(len(queries), len(held), order),
        TextTable(["Query", *(column.header for column in columns)], first),
        f'{about[:-1]},"rows":[\n{rows}]}}',
        ids,
    )


def needs_by_id(texts: Any, queries: Any) -> dict[str, str]:
    """Return the texts of queries by id for a page: each cut, and at most `MOST_BYTES` of them."""
    if texts is None:
        return {}
    known = {str(query): text for query, text in as_texts(texts, "needs", "qid").items()}
    needs, room = {}, MOST_BYTES
    for query in map(str, queries):
        if query in known:
            needs[query] = _shortened(known[query])
            room -= len(needs[query].encode())
        if room < 0:
            break
    return needs


def _shortened(text: str) -> str:
    return textwrap.shorten(visible(text, keep="\n\t"), _LETTERS, placeholder=" ...")


def _said(n: int, held: int, order: str) -> str:
    if held == n:
        return f"All {n:,} queries, {order}." if n > 1 else "The only query." if n else ""
    return f"{held:,} of {n:,} queries, {order}. The other {n - held:,} are left out of this page."


def _rounded(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers as `_plain` rounds them, each that occurs once; None becomes nan, and is last."""
    found, place = np.unique(values, return_inverse=True)
    return np.array([_plain(value) for value in found.tolist()], dtype=np.float64)[place]


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it, rounded as it is shown."""
    if not isinstance(value, float):
        return value
    return round(value, _DIGITS) if math.isfinite(value) else None


def dumped(value: Any) -> str:
    """Return a value as JSON that is safe within a ``script`` element."""
    # In JSON these characters stand in texts only, where an escape means the same.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


@cache
def script() -> str:
    """Return the script of the table."""
    return files("rankeval.report").joinpath("templates", "queries.js").read_text(encoding="utf-8")


def allowing(script: str) -> str:
    """Return the source that a Content-Security-Policy allows for a script, and for no other."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
