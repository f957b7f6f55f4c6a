"""Guess which column of a table holds what, and say which columns are no features, and why.

A column is the query or the relevance only if its name *and* its content say so: ids that repeat, few small numbers. A
wrong guess would make every number of an experiment wrong, so of two candidates nobody but the user chooses. Any other
column of numbers is a feature, unless its name or its content says that no ranker may know it when it ranks.

The trap is the order. A table is often sorted by the relevance, and tools write columns in any order, so neither may
decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from rankeval._registry import unknown
from rankeval.errors import InvalidInput
from rankeval.io.feature_tables import feature_numbers
from rankeval.io.letor import PART_OF
from rankeval.io.opening import DEFAULT, reading
from rankeval.io.tables import open_table

Ask = Callable[[str, Sequence[str]], str]
"""Asks the user which of some columns has a role, and returns it."""

_ID = r"(_?(id|ids|key|no|nr|num|number))?"
_ROLES = {
    "qid": (
        rf"qid|q_id|(query|topic|search|srch|question){_ID}",
        rf"(session|request|impression|group|user){_ID}",
        r".+_query",
    ),
    "relevance": (
        r"((true|graded|median|mean)_)?(relevance|rel|label|grade|judge?ment)(_?(label|grade|score))?|target|y",
    ),
    "docid": (rf"docno|did|pid|(doc|document|corpus|passage){_ID}", rf"id|(item|product|prod|hotel|page|listing){_ID}"),
    "score": (r"((y|model|final)_)?(score|similarity|sim|pred|prediction|predicted)(_score)?",),
    "part": (r"part|split|subset|partition|fold",),
}
"""Role -> patterns of names, the surest first. Names are in small letters, with _ between their words."""

_SELDOM = {"relevance": ("score", "rating", "stars", "click[a-z]*", "purchas[a-z]*", "book[a-z]*")}
"""Role -> names that are no guess, but that a user may mean."""

_WORDS = {
    "called like an id": r"id|ids|uid|uuid|guid|qid|did|pid|docno",
    "called like a label": r"relevance|rel|label|labels|grade|judge?ment|target",
    "called like the score of a ranker": r"^score$|pred|prediction|predicted",
    "called like a part or a fold": r"part|split|subset|partition|fold",
    "called like a position that a ranker chose": r"pos|position|rank|ranking|slot",
    "called like an act of a user after the ranking": r"(click|clk|book|purchas|conver|order)[a-z]*|ctr|bought|carts?"
    r"|dwell|watched|viewed|sales|sold|paid|revenue|gross",
    "called like something known later": r"future|next|later|after|outcome|final",
    "called like a time": r"(date|time)[a-z]*|ts|epoch|year|month|week|day|hour|created",
}
"""Reason -> words in the name of a column that is no feature."""

_GRADES, _HIGHEST = 20, 100
_SHOWN = 12  # columns in a message
_EPOCHS = ((9e8, 4e9), (9e11, 4e12))  # seconds and milliseconds of the years 1998 to 2096


@dataclass(frozen=True)
class Guess:
    """The columns of a table.

    Attributes
    ----------
    format : str
        The format of the file: parquet, csv or tsv.
    n_rows : int
        Number of rows.
    roles : dict of str to str
        The columns of ``qid`` and ``relevance``, perhaps of ``docid``, ``score`` and ``part``.
    features : list of str
        The columns that a ranker may know.
    left_out : dict of str to str
        All other columns, and why.
    has_gaps : bool
        Whether a feature has empty cells.
    """

    format: str
    n_rows: int
    roles: dict[str, str]
    features: list[str]
    left_out: dict[str, str]
    has_gaps: bool


@dataclass(frozen=True, eq=False)
class _Column:
    """The numbers of a column, or the reason why it has none; its cells as codes of their values, -1 if empty."""

    numbers: Any
    distinct: list[Any]
    codes: NDArray[np.intp]

    @property
    def is_number(self) -> bool:
        return not isinstance(self.numbers, str)

    @property
    def is_id(self) -> bool:
        is_whole = self.is_number and bool((np.floor(self.numbers) == self.numbers).all())
        return bool((self.codes >= 0).all()) and (is_whole or all(isinstance(one, str) for one in self.distinct))


def guess(
    path: Path, named: Mapping[str, str] | None = None, features: Sequence[str] | None = None, *, ask: Ask | None = None
) -> Guess:
    """Guess the columns of a table.

    Parameters
    ----------
    path : Path
        A Parquet, CSV or TSV file.
    named : mapping of str to str, optional
        Role -> column, as far as the user says it.
    features : sequence of str, optional
        The features, if the user says them.
    ask : callable, optional
        Asks the user for a role that the table leaves open.

    Raises
    ------
    InvalidInput
        If a column that is named does not exist, or a role is open and nobody can be asked.
    """
    with reading(path, DEFAULT) as file:
        source = open_table(file, str(path), None, DEFAULT)
        names = [name for name, kind in source.kinds.items() if not pa.types.is_nested(kind)]
        cells = source.columns(names)
        columns = {name: _column(cells.column(name), source) for name in sorted(names)}
    roles = dict(named or {})
    for role, name in [*roles.items(), *(("features", name) for name in features or ())]:
        if name not in columns:
            raise unknown("column", name, columns).having(argument=role, where=str(path))
    for role in _ROLES:
        if role not in roles:
            free = {name: one for name, one in columns.items() if name not in [*roles.values(), *(features or ())]}
            found = _named_and_fit(role, free, columns, roles)
            if len(found) != 1 and role in ("qid", "relevance"):
                found = [_asked(role, found or _may_be(role, free, columns, roles), str(path), ask)]
            if len(found) == 1:
                roles[role] = found[0]
    left_out = dict.fromkeys(source.kinds.keys() - columns.keys(), "lists")
    for name in columns.keys() - set(roles.values()):
        reason = _reason(name, columns[name], columns[roles["relevance"]])
        if features is not None:
            reason = "" if name in features else "not among those that you named"
        if reason:
            left_out[name] = reason
    kept = [name for name in names if name not in {*left_out, *roles.values()}]
    gaps = any(np.isnan(columns[name].numbers).any() for name in kept if columns[name].is_number)
    told = {"": "parquet", ",": "csv", "\t": "tsv"}[source.delimiter]
    return Guess(told, len(cells), roles, kept, {name: left_out[name] for name in sorted(left_out)}, gaps)


def _column(cells: pa.ChunkedArray, source: Any) -> _Column:
    written = cells.to_pandas()
    codes, values = pd.factorize(written.where(written != "") if source.delimiter else written)
    return _Column(feature_numbers(cells, source), list(values), codes)


def _words(name: str) -> str:
    return "_".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)).lower()


def _named_and_fit(
    role: str, free: Mapping[str, _Column], columns: Mapping[str, _Column], roles: Mapping[str, str]
) -> list[str]:
    fit = [name for name, one in free.items() if _fits(role, one, columns, roles)]
    for pattern in _ROLES[role]:
        found = [name for name in fit if re.fullmatch(pattern, _words(name))]
        if pattern.startswith("."):  # a number with such a name rather counts something of the query
            found = [name for name in found if not free[name].is_number]
        if role == "qid":  # a text beside its id: one query for each id, so either will do
            found.sort(key=lambda name: not re.search(r"id|no", _words(name)))
            found = [one for one in found if not np.array_equal(free[one].codes, free[found[0]].codes)] + found[:1]
        if found:
            return found
    return []


def _may_be(
    role: str, free: Mapping[str, _Column], columns: Mapping[str, _Column], roles: Mapping[str, str]
) -> list[str]:
    """Return the columns that a user may mean: by their name alone, then by their content alone."""
    words = "|".join([*_ROLES[role], *_SELDOM.get(role, ())])
    by_name = [name for name in free if re.search(rf"(?<![a-z])({words})(?![a-z])", _words(name))]
    return [*by_name, *(name for name, one in free.items() if name not in by_name and _fits(role, one, columns, roles))]


def _fits(role: str, one: _Column, columns: Mapping[str, _Column], roles: Mapping[str, str]) -> bool:
    n_rows, n_values = len(one.codes), len(one.distinct)
    is_full = one.is_number and not np.isnan(one.numbers).any()
    if role == "qid":
        return one.is_id and 2 <= n_values <= n_rows / 2
    if role == "relevance":
        return is_full and 2 <= n_values <= _GRADES and one.numbers.min() >= 0 and one.numbers.max() <= _HIGHEST
    if role == "score":
        return is_full and n_values > 1
    query = columns[roles["qid"]].codes
    pairs = np.unique(query.astype(np.int64) * (n_values + 1) + one.codes)
    if role == "docid":
        return one.is_id and len(pairs) == n_rows
    parts = [PART_OF.get(str(value).strip().casefold()) for value in one.distinct]
    return one.is_id and "test" in parts and None not in parts and len({*parts}) > 1 and len(pairs) == query.max() + 1


def _asked(role: str, candidates: Sequence[str], where: str, ask: Ask | None) -> str:
    if ask is not None and candidates:
        return ask(role, candidates)
    shown = ", ".join(map(repr, candidates[:_SHOWN])) or "none"
    raise InvalidInput(
        "the names and the contents of the columns do not say which one it is",
        argument=role,
        where=where,
        remedy=f"name the column; these may be it: {shown}",
    )


def _reason(name: str, one: _Column, relevance: _Column) -> str:
    """Return why no ranker may know a column; an empty text if it may."""
    if not one.is_number:
        return str(one.numbers)
    for reason, words in _WORDS.items():
        if re.search(rf"(?<![a-z])({words})(?![a-z])", _words(name)):
            return reason
    if np.isinf(one.numbers).any():
        return "infinite numbers"
    if len(one.distinct) < 2:
        return "one value in all rows"
    if one.is_id and len(one.distinct) == len(one.codes):
        return "another whole number in each row, as ids have"
    if one.is_id and any(low <= one.numbers.min() and one.numbers.max() <= high for low, high in _EPOCHS):
        return "numbers like times"
    grades = pd.Series(relevance.codes).groupby(one.codes).nunique()
    decides = len(grades) < len(one.codes) / 2 and len(relevance.distinct) > 1 and grades.max() == 1
    return "its values decide the relevance" if decides else ""
