"""Guess which column of a table holds what, say which columns are no features, and refuse those that look like answers.

A column is the query or the relevance only if its name *and* its content say so: ids that repeat, few small numbers. A
wrong guess would make every number of an experiment wrong, so of two candidates nobody but the user chooses. Any other
column of numbers is a feature, unless its name or its content says that no ranker may know it when it ranks. The names
stand in ``templates/columns.yaml``.

The trap is the order. A table is often sorted by the relevance, and tools write columns in any order, so neither may
decide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from numpy.typing import NDArray

from rankeval._registry import unknown
from rankeval.errors import ConfigError, InvalidInput
from rankeval.io.feature_tables import feature_numbers
from rankeval.io.letor import PART_OF
from rankeval.io.opening import DEFAULT, reading
from rankeval.io.tables import open_table

Ask = Callable[[str, Sequence[str]], str]
"""Asks the user which of some columns has a role, and returns it."""

_NAMES = yaml.safe_load(files(__package__).joinpath("templates/columns.yaml").read_text(encoding="utf-8"))
_GRADES, _HIGHEST = 20, 100
_EPOCHS = ((9e8, 4e9), (9e11, 4e12))  # seconds and milliseconds of the years 1998 to 2096
_SHOWN = 12  # columns in a message
_DECIDES, _CORRELATES = "its values decide the relevance", "it correlates with the relevance above .95"
_ANSWERS = {*_NAMES["answers"], _DECIDES, _CORRELATES}
_HIGH, _FEWEST, _MOST = 0.95, 10, 20_000  # of a correlation; rows that show one; rows that are looked at


@dataclass(frozen=True)
class Guess:
    """The columns of a table.

    Attributes
    ----------
    format : str
        The format of the file: parquet, csv or tsv.
    roles : dict of str to str
        The columns of ``qid`` and ``relevance``, perhaps of ``docid``, ``score`` and ``part``.
    features : list of str
        The columns that a ranker may know.
    left_out : dict of str to str
        The columns that are no features unless the user names them, and why.
    """

    format: str
    roles: dict[str, str]
    features: list[str]
    left_out: dict[str, str]


def guess(path: Path, named: Mapping[str, str], features: Sequence[str] | None = None, ask: Ask | None = None) -> Guess:
    """Guess the columns of a table.

    Parameters
    ----------
    path : Path
        A Parquet, CSV or TSV file.
    named : mapping of str to str
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
        reasons = {name: "lists" for name, kind in source.kinds.items() if pa.types.is_nested(kind)}
        cells = source.columns([name for name in source.kinds if name not in reasons])
    found = {name: feature_numbers(cells.column(name), source) for name in cells.column_names}
    reasons |= {name: one for name, one in found.items() if isinstance(one, str)}
    texts = {name: cells.column(name).to_pandas() for name in found if name in reasons}
    table = pd.DataFrame(found | texts).replace("", None)
    wanted = [one for name in features or () for one in ([name] if name in table else name.split(","))]
    for role, name in [*named.items(), *(("features", name) for name in wanted)]:
        if name not in table:
            raise unknown("column", name, found).having(argument=role, where=source.path)
    roles = dict(named)
    for role in [role for role in _NAMES["roles"] if role not in named]:
        free = sorted(found.keys() - {*roles.values(), *wanted})
        fit = [name for name in free if _fits(role, table[name], table, roles)]
        likely = _likely(role, fit, table)
        if len(likely) == 1:
            roles[role] = likely[0]
        elif role in ("qid", "relevance"):
            words = "|".join(_NAMES["roles"][role])
            free.sort(key=lambda name: (not _has_word(name, words), name not in fit))
            may_be = likely or [name for name in free if name in fit or _has_word(name, words)] or free
            if not may_be or ask is None:
                problem = "names and contents of the columns do not say which one it is"
                remedy = f"name the column; these may be it: {', '.join(map(repr, may_be[:_SHOWN])) or 'none'}"
                raise InvalidInput(problem, argument=role, where=source.path, remedy=remedy)
            roles[role] = ask(role, may_be)
    kept = [name for name in found if name in (wanted or found) and name not in roles.values()]
    if not wanted:
        reasons |= {name: _reason(name, table[name], table[roles["relevance"]]) for name in kept if name not in reasons}
        kept = [name for name in kept if not reasons[name]]
    if kept and "score" in roles.keys() - named.keys():
        reasons[roles.pop("score")] = "called like the score of a ranker"
    left_out = {name: reasons[name] for name in sorted(reasons.keys() - roles.values()) if reasons[name] and not wanted}
    return Guess({"": "parquet", ",": "csv", "\t": "tsv"}[source.delimiter], roles, kept, left_out)


def _has_word(name: str, words: str) -> bool:
    return re.search(rf"(?<![a-z])({words})(?![a-z])", _in_words(name)) is not None


def _in_words(name: str) -> str:
    return "_".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)).lower()


def _likely(role: str, fit: list[str], table: pd.DataFrame) -> list[str]:
    for pattern in _NAMES["roles"][role]:
        found = [name for name in fit if re.fullmatch(pattern, _in_words(name))]
        if role == "qid":  # the text of the query beside its id: they group the rows alike, and the id is taken
            found.sort(key=lambda name: _has_word(name, "id|no|qid"))
            found = [*{pd.factorize(table[name])[0].tobytes(): name for name in found}.values()]
        if found:
            return found
    return []


def _is_id(column: pd.Series[Any]) -> bool:
    if pd.api.types.is_numeric_dtype(column):
        return bool((np.floor(column) == column).all())
    return all(isinstance(one, str) for one in column.unique())


def _fits(role: str, column: pd.Series[Any], table: pd.DataFrame, roles: Mapping[str, str]) -> bool:
    n_values = column.nunique()
    is_full = pd.api.types.is_numeric_dtype(column) and n_values > 1 and not column.isna().any()
    if role == "qid":
        return _is_id(column) and 2 <= n_values <= len(column) / 2
    if role == "relevance":
        return is_full and n_values <= _GRADES and column.min() >= 0 and column.max() <= _HIGHEST
    if role == "score":
        return is_full
    query = table[roles["qid"]]
    n_pairs = len(pd.DataFrame({"query": query, "column": column}).drop_duplicates())
    if role == "docid":
        return _is_id(column) and n_pairs == len(column)
    parts = {PART_OF.get(str(value).strip().casefold()) for value in column.unique()}
    return "test" in parts and None not in parts and len(parts) > 1 and n_pairs == query.nunique()


def refuse_answers(columns: Mapping[str, Any], relevance: NDArray[Any], where: str) -> None:
    """Raise if a column looks like an answer, and list the columns that a ranker may know.

    Parameters
    ----------
    columns : mapping of str to array or Series of shape (n_rows,)
        The features that nobody has named: numbers, or categories.
    relevance : array of shape (n_rows,)
        The labels.
    where : str
        The file.

    Raises
    ------
    ConfigError
        If so.
    """
    some = np.random.default_rng(0).permutation(len(relevance))[:_MOST]  # every tenth row may be the best of its query
    truth = pd.Series(relevance).iloc[some]
    reasons = {name: _reason(name, pd.Series(column).iloc[some], truth) for name, column in columns.items()}
    if answers := [f"{name!r} ({reason})" for name, reason in reasons.items() if reason in _ANSWERS]:
        clean = json.dumps([name for name, reason in reasons.items() if not reason], ensure_ascii=False)
        raise ConfigError(
            f"the key is missing, and columns look like answers: {', '.join(answers)}",
            argument="data.features",
            where=where,
            remedy=f"name the columns that a ranker may know, perhaps features: {clean}",
        )


def _reason(name: str, column: pd.Series[Any], relevance: pd.Series[Any]) -> str:
    """Return why no ranker may know a column of numbers or categories; an empty text if it may."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.codes
    n_values, is_id = column.nunique(), _is_id(column)
    reasons = {reason: _has_word(name, words) for reason, words in _NAMES["no_feature"].items()} | {
        "infinite numbers": np.isinf(column).any(),
        "one value in all rows": n_values < 2,
        "another whole number in each row, as ids have": is_id and n_values == len(column),
        "numbers like times": is_id and any(low <= column.min() and column.max() <= high for low, high in _EPOCHS),
        _DECIDES: n_values <= min(_GRADES, len(column) / 2) and relevance.groupby(column).nunique().max() == 1,
    }
    return next(
        (reason for reason, holds in reasons.items() if holds), _CORRELATES if _is_close(column, relevance) else ""
    )


def _is_close(column: pd.Series[Any], relevance: pd.Series[Any]) -> bool:
    """Return whether a column correlates with the relevance, itself or by its ranks.

    Equal labels limit the correlation of ranks, so it is a share of the highest one that their number allows. For two
    labels this is 2 AUC - 1.
    """
    if not pd.api.types.is_numeric_dtype(relevance):
        return False
    known = np.isfinite(column)
    x, y = column[known], relevance[known]
    if len(x) < _FEWEST or min(x.nunique(), y.nunique()) < 2:
        return False
    ranks = y.rank()
    linear = np.corrcoef(x, y)[0, 1]
    by_rank = np.cov(x.rank(), ranks)[0, 1] / np.cov(np.arange(len(x)), np.sort(ranks))[0, 1]
    return bool(max(abs(linear), abs(by_rank)) > _HIGH)
