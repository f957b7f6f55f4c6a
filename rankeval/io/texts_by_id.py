"""Texts by id, as callers hold them: a mapping, a Series, a frame, pairs, or the path of a file."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import pandas as pd

from rankeval._checks import few, require, shown
from rankeval.errors import InvalidInput
from rankeval.io.frames import SPELLINGS
from rankeval.io.texts import read_texts


def as_texts(data: Any, argument: str, part: str) -> dict[Any, str]:
    """Return texts by id; ``part`` says of which, "docid" or "qid".

    A frame has the ids in a column, or in an index that is more than the numbers of its rows. A
    column ``title`` comes before the text, in a line of its own, and may have gaps.
    """
    if isinstance(data, str | PathLike):
        return read_texts(data)
    if isinstance(data, list | tuple):
        data = _of_pairs(data, argument)
    titles: dict[Any, str] = {}
    data = data.to_pandas() if callable(getattr(data, "to_pandas", None)) else data
    if isinstance(data, pd.DataFrame):
        data, titles = _columns_of_texts(data, argument, part)
    expected = "texts by id: a mapping, a Series, a frame, pairs or a path"
    require(isinstance(data, Mapping | pd.Series), argument, type(data).__name__, expected)
    texts: dict[Any, str] = dict(data.items())
    if isinstance(data, pd.Series):
        twice = few(list(data.index[data.index.duplicated()].unique()))
        if twice:
            raise InvalidInput(f"{twice} is given more than once", argument=argument)
        missing = few(list(data.index[data.isna()].unique()))
        if missing:
            remedy = '.fillna("") makes it an empty document'
            raise InvalidInput(f"{missing} has no text", argument=argument, remedy=remedy)
    for name, text in texts.items():
        require(isinstance(text, str), f"{argument}[{shown(name)}]", text, "a text")
    return {name: "\n".join(filter(None, (titles.get(name), text))) for name, text in texts.items()}


def _of_pairs(pairs: Any, argument: str) -> pd.Series:
    are_pairs = all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs)
    require(are_pairs, argument, pairs, "pairs of an id and a text")
    ids, texts = zip(*pairs, strict=True) if pairs else ((), ())
    return pd.Series(texts, pd.Index(ids, tupleize_cols=False), object)


def _columns_of_texts(
    frame: pd.DataFrame, argument: str, part: str
) -> tuple[pd.Series, dict[Any, str]]:
    """Return the column of texts of a frame, and its titles, both by id."""
    ids, column = (
        next((name for name in known[part] if name in frame), None) for known in (_IDS, _TEXTS)
    )
    require(column, argument, list(frame), "a frame with a column 'text'")
    # Filtering leaves numbers of rows that are no range: beside other columns they are hardly ids.
    is_numbered = isinstance(frame.index, pd.RangeIndex) or not {*frame} <= {*_TEXTS[part]}
    is_numbered &= frame.index.name is None and frame.index.inferred_type == "integer"
    if not ids and is_numbered:
        known_names = ", ".join(sorted({*_IDS[part]}))
        raise InvalidInput(
            f"no column of ids among {few(list(frame))}; known names are {known_names}",
            argument=argument,
            remedy="rename the column of ids, or set the index",
        )
    frame = frame.set_index(ids) if ids else frame
    titles = frame.drop(columns=column).get("title", pd.Series()).dropna().map(str)
    return frame[column], titles.to_dict()


# The better name first: beside ``docno``, PyTerrier's ``docid`` is a number.
_IDS = {
    "docid": ("docno", *SPELLINGS["docid"], "_id", "id"),
    "qid": (*SPELLINGS["qid"], "_id", "id"),
}
_TEXTS = {
    "docid": ("text", "contents", "body", "title"),
    "qid": ("query", "text", "contents", "body", "title"),
}
