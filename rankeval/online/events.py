"""Events of a click log as a frame or a file gives them, checked and put in order.

Events come in two forms, and the second is brought to the first::

    a row per shown item                       a row per impression
    impression position docid clicked          impression shown         clicked
    i1         1        d4    0                i1         [d4, d9]      [d9]        or [0, 1]
    i1         2        d9    1

Everything is columns: ids become codes, and a fact of an impression is compared with the first row
of the impression. So a log of ten million items is checked without a loop. The trap is an event
that was sent twice: it is the same impression, and not new evidence. If 10 % of the events come
three times, an A/B test of equal arms finds a difference in 11 % of cases. Repeated events are
dropped, and counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval._checks import refuse, require, said, shown
from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.io.columns import (
    combined,
    id_column,
    is_number,
    is_text_type,
    numbers_of,
    value_column,
)
from rankeval.io.feature_tables import feature_numbers
from rankeval.io.formats import suffix_of
from rankeval.io.frames import SPELLINGS, alike
from rankeval.io.opening import Limits, as_path, checked_text, reading
from rankeval.io.tables import json_lines, open_table

Ints = NDArray[np.int64]

PARTS: dict[str, tuple[str, ...]] = {
    "impression": ("impression", "impression_id", "search_id", "serp_id", "request_id", "event_id"),
    "qid": (*(name for name in SPELLINGS["qid"] if name != "search_id"), "query", "topic"),
    "user": ("user", "user_id", "visitor_id", "client_id"),
    "session": ("session", "session_id"),
    "time": ("time", "timestamp", "datetime", "event_time"),
    "arm": ("arm", "variant", "bucket"),
    "count": ("count",),
    "shown": ("shown", "docids", "results", "ranking"),
    "position": ("position", "rank"),
    "docid": (*SPELLINGS["docid"], "item_id", "product_id", "url"),
    "clicked": ("clicked", "click", "clicks", "is_click"),
    "propensity": ("propensity", "propensity_score", "action_prob", "pscore"),
}
"""Part of a log -> its usual names, our own first."""
PART_OF = {name: part for part, names in PARTS.items() for name in names}
OF_ITEMS = ("position", "docid", "clicked", "propensity", "shown")
_NUMBERS: dict[str, tuple[float, float, type, str]] = {
    "position": (1, np.inf, np.int64, "a whole number, counted from 1"),
    "clicked": (0, 1, np.bool_, "0 or 1, or true or false"),
    "count": (1, np.inf, np.int64, "a whole number, 1 or greater"),
    "propensity": (np.nextafter(0, 1), 1, np.float64, "a probability above 0"),
}
NO_QUERY = ""
"""The query of a log that has none: no id is empty."""
LEFT_OUT = ("repeated events", "clicks on what was not shown", "impressions of an empty list")
REPEATED, NOT_SHOWN, EMPTY = LEFT_OUT
LATER = "later readings of times that come twice"
"""When clocks go back, an hour comes twice, and a time without a zone is taken as the earlier."""
_SKIP = "clicks='skip' leaves out such clicks, and counts them"
_TIMES = (
    "give times with a zone, or tz= to name it; numbers become times by pd.to_datetime(..., "
    'unit="s", utc=True), where the unit is "ms" of milliseconds'
)
_OWN_ID = "give each impression an id of its own"


def named_columns(
    names: Sequence[str], columns: Mapping[str, str], parts: Iterable[str] = PARTS
) -> dict[str, str]:
    """Return part -> column, of the parts that exist; refuse two columns that may be one part."""
    choices: dict[str, list[str]] = {}
    for part in parts:
        usual = alike(names, PARTS[part])
        choices[part] = [part] if part in names else usual
    for part, name in columns.items():
        choices[chosen("part of a click log", part, PARTS)] = [name]
    for part, own in choices.items():
        fits = len(own) < 2 and all(names.count(name) == 1 for name in own)
        expected = f"one column of {list(names)}: rename others, or give ClickLog {part}="
        require(fits, part, own, expected)
    return {part: own[0] for part, own in choices.items() if own}


def found_columns(
    names: Sequence[str], columns: Mapping[str, str], *, complete: bool
) -> dict[str, str]:
    """Return part -> column, of the parts that exist; refuse a frame that is in neither form."""
    parts = named_columns(names, columns)
    needed = ("shown",) if "shown" in parts else ("docid", "position", "impression")[: 2 + complete]
    lacking = [part for part in ("clicked", *needed) if part not in parts]
    problem = f"there is no column {', no '.join(lacking)} in {list(names)}"
    both = "shown" in parts and {"position", "docid", "propensity"} & parts.keys()
    remedy = "leave out one of the two forms; propensities are of items"
    refuse(
        (lacking, problem, "name each, such as docid='sku'"),
        (both, "the columns have lists and single items", remedy),
    )
    return parts


def read_click_columns(
    path: str | os.PathLike[str], columns: Mapping[str, str], *, complete: bool, limits: Limits
) -> dict[str, Any]:
    """Return the columns of a file by part, as `rankeval.online.ClickLog.read` describes them."""
    where, json = str(path), (".jsonl", ".ndjson")
    suffixes = (".csv", ".tsv", ".parquet", ".txt", *json)
    suffix = chosen("suffix of a click log", suffix_of(as_path(path)), suffixes)
    with reading(path, limits) as file:
        if suffix in json:
            text = checked_text(file, where, limits)
            frame = pd.DataFrame([row for _, row in json_lines(text, where)], dtype=object)
            parts = found_columns([*frame], columns, complete=complete)
            return {part: frame[name] for part, name in parts.items()}
        source = open_table(file, where, "csv" if suffix == ".txt" else suffix[1:], limits)
        parts = found_columns(source.names, columns, complete=complete)
        table = source.columns([*dict.fromkeys(parts.values())])
    values: dict[str, Any] = {part: table.column(name) for part, name in parts.items()}
    for part in _NUMBERS.keys() & values.keys() if source.delimiter else ():
        values[part] = feature_numbers(values[part], source)
        require(not isinstance(values[part], str), parts[part], values[part], "numbers")
    return values


def click_tables(
    columns: Mapping[str, Any], tz: str | None, clicks: str, *, complete: bool
) -> tuple[pd.DataFrame, pd.DataFrame, bool, dict[str, int]]:
    """Return the fields of a `rankeval.online.ClickLog` of columns by part."""
    chosen("value of clicks", clicks, ("error", "skip"))
    n, excluded = len(columns["clicked"]), dict.fromkeys(LEFT_OUT, 0)
    held = {part: _checked(part, columns[part], tz) for part in columns if part not in OF_ITEMS}
    if "shown" in columns:
        shown_ids, clicked, skip = columns["shown"], columns["clicked"], clicks == "skip"
        row, item, excluded[NOT_SHOWN] = _flat(shown_ids, clicked, skip=skip)
    else:
        row = np.arange(n)
        item = {part: _checked(part, columns[part], tz) for part in OF_ITEMS if part in columns}
    encoded = held.pop("impression", pa.array(np.arange(n))).dictionary_encode()
    refuse((not len(row), "the log has no shown item"))
    codes, ids = numbers_of(encoded.indices).astype(np.int64), encoded.dictionary
    impressions = _impressions(held, codes, ids)
    item["docid"] = _categories(item["docid"])
    items = pd.DataFrame({"impression": codes[row], **item}, copy=False)
    items, excluded[REPEATED] = _in_order(items, ids)
    _check_lists(items, ids, complete=complete)
    shows = np.bincount(items["impression"], minlength=len(ids)) > 0
    items["impression"] = (np.cumsum(shows) - 1)[items["impression"]]
    excluded[EMPTY] = int((~shows).sum())
    impressions = impressions[shows]
    if tz and "time" in impressions:
        local = impressions["time"].dt.tz_convert(tz).dt.tz_localize(None)
        excluded[LATER] = int(local.dt.tz_localize(tz, ambiguous="NaT").isna().sum())
    return impressions, items, complete, {why: n for why, n in excluded.items() if n}


def _checked(part: str, values: Any, tz: str | None = None) -> Any:
    """Return a column as an Arrow array of ids or of times in UTC, or as an array of numbers."""
    if part not in _NUMBERS:
        return _array(part, values, tz) if part == "time" else id_column(values, part)
    numbers, (least, most, kind, expected) = value_column(values, part), _NUMBERS[part]
    converted: NDArray[Any] = numbers.astype(kind, copy=False)
    fits = (converted == numbers) & (numbers >= least) & (numbers <= most)
    row = int(np.argmin(np.append(fits, False)))
    value, where = numbers[row : row + 1].tolist(), f"row {row} (counting from 0)"
    require(row == len(converted), part, value, expected, where)
    return converted


def _array(part: str, values: Any, tz: str | None = None) -> Any:
    """Return times in UTC as an Arrow array; or of lists the row of each cell, and the cells."""
    if part == "time" and getattr(values, "dtype", None) == np.dtype(object):
        # Arrow would take a time without a zone that follows one with a zone for UTC; as texts they
        # differ.
        values = values.map(str, na_action="ignore")
    try:
        is_arrow = hasattr(values, "null_count")
        array = combined(values if is_arrow else pa.array(values, from_pandas=True))
        row = pc.index(pc.is_null(array), True).as_py()
        require(row < 0, part, None, "a value in each row", f"row {row} (counting from 0)")
        if part == "time":
            return _utc(array, tz)
        return numbers_of(pc.list_parent_indices(array)).astype(np.int64), array.flatten()
    except pa.ArrowException as error:
        wanted = _TIMES if part == "time" else "give a list in each row"
        raise InvalidInput(
            "a row cannot be read", argument=part, remedy=f"{wanted} ({said(error)})"
        ) from error


def _utc(times: pa.Array, tz: str | None) -> pa.Array:
    if is_text_type(times.type):
        times = times.cast(pa.timestamp("ns", None if tz else "UTC"))
    fits = pa.types.is_timestamp(times.type) and (times.type.tz is None) == (tz is not None)
    refuse((not fits, f"found {times.type}", _TIMES), argument="time")
    if tz:
        times = pc.assume_timezone(times, tz, ambiguous="earliest")
    return times.cast(pa.timestamp("ns", "UTC"))


def _flat(shown: Any, clicked: Any, *, skip: bool) -> tuple[Ints, dict[str, Any], int]:
    """Return the list (row) and the parts of each item, and the number of clicks left out."""
    (row, cells), (at, clicks) = _array("shown", shown), _array("clicked", clicked)
    docids, pairs = id_column(cells, "shown"), np.array_equal(at, row)
    item = {"position": pd.Series(row).groupby(row).cumcount().to_numpy() + 1, "docid": docids}
    flags = pa.types.is_boolean(clicks.type)
    if is_number(clicks.type):
        # Of integers, 0 and 1 for each id shown are no ids: all lists would show 0 and 1 alone, and
        # all were clicked.
        flags = is_text_type(docids.type) or (pairs and np.isin(numbers_of(clicks), (0, 1)).all())
    if flags:
        expected = "ids that were clicked, or 0 or 1 for each id shown"
        require(pairs, "clicked", f"{len(at)} clicks", expected)
        return row, item | {"clicked": _checked("clicked", clicks)}, 0
    ids = id_column(clicks if len(clicks) else docids[:0], "clicked")
    expected = f"ids of the type of those shown, {docids.type}"
    require(ids.type == docids.type, "clicked", str(ids.type), expected)
    codes = numbers_of(pa.concat_arrays([docids, ids]).dictionary_encode().indices)
    keys = pd.Index(np.append(row, at) * len(codes) + codes)
    keys, clicked_keys = keys[: len(row)], keys[len(row) :]
    lost = np.flatnonzero(~clicked_keys.isin(keys))
    if len(lost) and not skip:
        first = int(lost[0])
        where = f"row {at[first]} (counting from 0) has a click on {ids[first].as_py()!r}"
        problem = f"{where}, which is not shown; {len(lost):,} such in all"
        raise InvalidInput(problem, argument="clicked", remedy=_SKIP)
    return row, item | {"clicked": keys.isin(clicked_keys)}, len(lost)


def _categories(ids: pa.Array) -> Any:
    """Return ids as categories in ascending order."""
    codes = ids.dictionary_encode().to_pandas().array
    return codes.reorder_categories(codes.categories.sort_values())


def _impressions(held: Mapping[str, Any], codes: Ints, ids: pa.Array) -> pd.DataFrame:
    """Return a row per impression; refuse an impression whose rows differ."""
    columns: dict[str, Any] = {"qid": pd.Categorical([NO_QUERY] * len(ids))}
    # Codes ascend where they appear.
    firsts = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
    for part, values in held.items():
        own = pa.array(values).take(pa.array(firsts))
        row = pc.index(pc.not_equal(values, own.take(pa.array(codes))), True).as_py()
        name = ids[codes[row]].as_py()
        problem = f"impression {name!r} has several values of {part}"
        refuse((row >= 0, problem, _OWN_ID))
        columns[part] = _categories(own) if part == "qid" else own.to_pandas()
    return pd.DataFrame(columns).set_axis(pd.Index(ids.to_pandas(), name="impression"))


def _in_order(items: pd.DataFrame, ids: pa.Array) -> tuple[pd.DataFrame, int]:
    """Sort items by impression and position, and drop those of repeated events."""
    place = ["impression", "position"]
    items = items.sort_values(place, ignore_index=True)
    if not (items[place].diff() == 0).all(axis=1).any():
        return items, 0
    # A list that was sent n times has each of its positions n times, and each time the same.
    rows = items.groupby([*items], observed=True, as_index=False).size()
    times = rows.groupby("impression")["size"]
    wrong = rows.duplicated(place) | (rows["size"] != times.transform("first"))
    name = ids[int(rows["impression"][wrong.argmax()])].as_py()
    problem = (
        f"impression {name!r} occurs several times, with other content or with a position twice"
    )
    refuse((wrong.any(), problem, _OWN_ID))
    return rows.drop(columns="size"), int((times.first() - 1).sum())


def _check_lists(items: pd.DataFrame, ids: pa.Array, *, complete: bool) -> None:
    """Refuse an impression that lacks a position, or shows a document twice."""
    gap = items["position"] > items.groupby("impression").cumcount() + 1
    at = items["impression"][gap.argmax()]
    positions = shown(items["position"][items["impression"] == at].tolist())
    problem = f"impression {ids[at].as_py()!r} has the positions {positions}: one is missing"
    remedy = "complete=False is for a log of single items of lists"
    refuse((complete and gap.any(), problem, remedy))
    names = items["docid"].cat.categories
    keys = np.sort(items["impression"] * len(names) + items["docid"].cat.codes)
    repeated = keys[1:][keys[1:] == keys[:-1]]
    if len(repeated):
        at, name = divmod(int(repeated[0]), len(names))
        twice = f"impression {ids[at].as_py()!r} shows {names[name]!r} twice"
        raise InvalidInput(twice, remedy="keep one place for each document")
