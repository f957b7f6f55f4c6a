"""What a table offers an experiment beside its features: categories, slices, its newest queries, the score of today.

::

    brand        a text with few values that differ within queries     categories
    market       a text with few values, one a query                   slices
    timestamp    a time, one a query but for a day                      the newest queries are the test part
    first_stage  a number called like the score of today               a baseline

The trap is a query id that comes again: its rows are of many days, so the newest queries would be
mostly old rows. No time is offered then.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rankeval._checks import count
from rankeval.errors import InvalidInput
from rankeval.experiment.loading import EPOCHS, NAMES, Guess, has_word, names_like, reason_against

_MOST_CATEGORIES, _MOST_SLICES = 50, 20  # values of a text
_PER_SLICE = 10  # queries for each value of a slice
_NEWEST, _LEAST = 0.3, 0.15  # share of the queries in the test part, and the least by whole days


@dataclass(frozen=True)
class Newest:
    """The test part as the newest queries."""

    column: str
    test_from: str | float
    n_queries: int
    n_rows: int

    @property
    def words(self) -> str:
        """Its size."""
        return f"{count(self.n_queries, 'query')}, {count(self.n_rows, 'row')}"


@dataclass(frozen=True)
class Proposals:
    """What a table offers beside its features."""

    categories: list[str]
    slices: list[str]
    past: list[str]  # Features that are called like rates of the past
    newest: Newest | None
    production: str | None  # The score by which the rows are ranked today
    left_out: dict[str, str]  # The columns that nothing uses, and why


def propose(guess: Guess) -> Proposals:
    """Return what a table offers beside its features."""
    cells, query = guess.cells, guess.cells[guess.roles["qid"]]
    relevance = cells[guess.roles["relevance"]]
    names = [*map(str, cells)]
    free = [name for name in names if name not in (*guess.roles.values(), *guess.features)]
    few = [name for name in free if _is_few_texts(name, cells[name], relevance)]
    one_a_query = [name for name in few if _is_one_a_query(cells[name], query)]
    most = min(_MOST_SLICES, query.nunique() // _PER_SLICE)
    slices = [name for name in one_a_query if cells[name].nunique() <= most]
    categories = [name for name in few if name not in one_a_query and name in guess.left_out]
    newest = _newest(cells[free], query)
    used = {*categories, *slices, newest and newest.column}
    scores = [name for name in names if _is_full_of_numbers(cells[name])]
    return Proposals(
        categories,
        slices,
        [name for name in guess.features if has_word(name, NAMES["past"])],
        newest,
        next(iter(names_like(NAMES["production"], scores)), None),
        {name: reason for name, reason in guess.left_out.items() if name not in used},
    )


def _is_few_texts(name: str, column: pd.Series[Any], relevance: pd.Series[Any]) -> bool:
    is_text = pd.api.types.infer_dtype(column, skipna=True) == "string"
    if not is_text or not 2 <= column.nunique() <= _MOST_CATEGORIES:
        return False
    return not reason_against(name, column.astype("category"), relevance)


def _is_one_a_query(column: pd.Series[Any], query: pd.Series[Any]) -> bool:
    return bool(column.groupby(query).nunique(dropna=False).max() == 1)


def _is_full_of_numbers(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not column.isna().any()


def _newest(columns: pd.DataFrame, query: pd.Series[Any]) -> Newest | None:
    found = {}
    for name, column in columns.items():
        times, day = _times(column)
        if times is not None:
            rows = times.groupby(query)
            latest, span = rows.max(), (rows.max() - rows.min()).max()
            if span <= day and latest.min() < latest.max():
                found[str(name)] = latest
    if len(found) != 1:
        return None
    ((name, latest),) = found.items()
    cut = latest.sort_values().iloc[int((1 - _NEWEST) * len(latest))]
    if latest.dtype.kind != "M":
        test_from = cut = float(cut)
    elif (latest >= cut.ceil("D")).mean() >= _LEAST:
        cut = cut.ceil("D")
        test_from = cut.date().isoformat()
    else:
        test_from = cut.isoformat()
    in_test = latest >= cut
    return Newest(name, test_from, int(in_test.sum()), int(query.map(in_test).sum()))


def _times(column: pd.Series[Any]) -> tuple[pd.Series[Any] | None, Any]:
    """Return the times of a column and the length of a day; None if it has others or an empty cell."""
    from rankeval.model_selection.splitters import moments

    if pd.api.types.is_numeric_dtype(column):
        for day, epoch in zip((86_400, 86_400_000), EPOCHS, strict=True):
            if column.between(*epoch).all():
                return column, day
        return None, None
    with suppress(InvalidInput):
        return pd.Series(moments(column, "times"), column.index), pd.Timedelta(days=1)
    return None, None
