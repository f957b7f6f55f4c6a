"""Events of a click log as a frame or a file gives them, checked and put in order.

Events come in two forms, and the second is brought to the first::

    a row per shown item                       a row per impression
    impression position docid clicked          impression shown         clicked
    i1         1        d4    0                i1         [d4, d9]      [d9]        or [0, 1]
    i1         2        d9    1

Everything is columns of numbers: ids become codes, and a fact of an impression is compared with the first row of the
impression. So a log of ten million items is checked without a loop. The trap is an event that was sent twice: it is
the same impression, and not new evidence. If 10 % of the events come three times, an A/B test of equal arms finds a
difference in 11 % of cases. Repeated events are dropped, and counted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval._checks import refuse, require, said, shown
from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.io.columns import combined, id_column, is_number, is_text, numbers_of, value_column
from rankeval.io.feature_tables import feature_numbers
from rankeval.io.formats import suffix_of
from rankeval.io.frames import LAST, SPELLINGS
from rankeval.io.opening import Limits, as_path, checked_text, reading
from rankeval.io.tables import json_lines, open_table

Ints = NDArray[np.int64]

PARTS: dict[str, tuple[str, ...]] = {
    "impression": ("impression", "impression_id", "search_id", "serp_id", "request_id", "event_id"),
    "qid": (*SPELLINGS["qid"], *LAST["qid"]),
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

_NUMBERS = {
    "position": (1, np.inf, "a whole number, counted from 1"),
    "clicked": (0, 1, "0 or 1, or true or false"),
    "count": (1, np.inf, "a whole number, 1 or greater"),
    "propensity": (np.nextafter(0, 1), 1, "a probability above 0"),
}
_UTC = pa.timestamp("ns", "UTC")
NO_QUERY = ""
"""The query of a log that has none: no id is empty."""
REPEATED = "repeated events"
NOT_SHOWN = "clicks on what was not shown"
EMPTY = "impressions of an empty list"


def found_columns(names: Sequence[str], asked: Mapping[str, str], *, complete: bool) -> dict[str, str]:
    """Return part -> column, of the parts that are there; refuse a frame that is in neither form.

    Parameters
    ----------
    names : sequence of str
        The columns that there are.
    asked : mapping of str to str
        The columns that the caller named, by part.
    complete : bool
        Whether rows of items need an impression; of single items each row may be one.
    """
    parts: dict[str, str] = {}
    for part in (*asked, *PARTS):
        usual = PARTS[chosen("part of a click log", part, PARTS)]
        found = [asked[part]] if part in asked else [name for name in usual if name in names]
        found = found[:1] if part in found[:1] else found
        expected = f"one column of {list(names)}, named by {part}="
        require(len(found) < 2 and all(names.count(name) == 1 for name in found), part, found, expected)
        parts |= dict.fromkeys([part] * len(found), *found)
    needed = ["clicked", *(["shown"] if "shown" in parts else ["docid", "position", "impression"][: 2 + complete])]
    lacking = [part for part in needed if part not in parts]
    refuse(
        (lacking, f"no column is {' or '.join(lacking)}: there are {list(names)}", "name each, such as docid='sku'"),
        ({"shown", "docid"} <= parts.keys(), "the columns have lists and single items: leave out one of the two forms"),
    )
    return parts


def read_columns(
    path: str | os.PathLike[str], asked: Mapping[str, str], *, complete: bool, limits: Limits
) -> dict[str, Any]:
    """Return the columns of a file by part; `rankeval.online.ClickLog.read` documents the arguments."""
    where = as_path(path)
    suffix = chosen("suffix of a click log", suffix_of(where), (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson"))
    with reading(where, limits) as file:
        if suffix in (".jsonl", ".ndjson"):
            rows = [row for _, row in json_lines(checked_text(file, str(where), limits), str(where))]
            parts = found_columns([*dict.fromkeys(name for row in rows for name in row)], asked, complete=complete)
            return {part: [row.get(name) for row in rows] for part, name in parts.items()}
        source = open_table(file, str(where), suffix[1:], limits)
        parts = found_columns(source.names, asked, complete=complete)
        table = source.columns([*parts.values()])
    columns = {part: table.column(name) for part, name in parts.items()}
    for part in _NUMBERS.keys() & columns.keys() if source.delimiter else ():
        columns[part] = feature_numbers(columns[part], source)
        require(not isinstance(columns[part], str), parts[part], columns[part], "numbers")
    return columns


def arranged(
    columns: Mapping[str, Any], *, tz: str | None, clicks: str, complete: bool
) -> tuple[pd.DataFrame, pd.DataFrame, bool, dict[str, int]]:
    """Return the fields of the log of columns by part; `rankeval.online.ClickLog.from_frame` documents the options."""
    chosen("value of clicks", clicks, ("error", "skip"))
    held = {part: _checked(part, values, tz) for part, values in columns.items() if part not in ("shown", "clicked")}
    if "shown" in columns:
        refuse(("propensity" in held, "propensities are of items: give a row per shown item"))
        own, excluded = _flat(columns["shown"], columns["clicked"], skip=clicks == "skip")
    else:
        own, excluded = {part: held.pop(part) for part in ("position", "docid", "propensity") if part in held}, {}
        own |= {"clicked": _checked("clicked", columns["clicked"], tz), "row": np.arange(len(own["docid"]))}
    refuse((not len(own["docid"]), "the log has no shown item"))
    codes, ids = _factorized(held.pop("impression", pa.array(np.arange(len(columns["clicked"])))))
    impressions = _impressions(held, codes, ids)
    docs, names = _factorized(own["docid"])
    own["impression"] = codes[own.pop("row")]
    item, repeated = _in_order(own | {"docid": docs}, ids)
    _check_lists(item, ids, names, complete=complete)
    shows = np.bincount(item["impression"], minlength=len(ids)) > 0
    item |= {"docid": _categories(item["docid"], names), "clicked": item["clicked"] == 1}
    items = pd.DataFrame({"impression": (np.cumsum(shows) - 1)[item.pop("impression")], **item})
    excluded |= {REPEATED: repeated, EMPTY: int((~shows).sum())}
    return impressions[shows], items, complete, {why: n for why, n in excluded.items() if n}


def _checked(part: str, values: Any, tz: str | None) -> Any:
    """Return a column as an Arrow array of ids or of times in UTC, or as an array of numbers."""
    if part not in _NUMBERS:
        return _utc(values, tz) if part == "time" else id_column(values, part)
    numbers, (low, high, expected) = value_column(values, part), _NUMBERS[part]
    fits = (numbers >= low) & (numbers <= high) & ((numbers % 1 == 0) | (part == "propensity"))
    row = int(np.argmin(fits)) if len(fits) else 0
    require(fits.all(), part, numbers[row : row + 1].tolist(), expected, f"row {row} (counting from 0)")
    return numbers if part == "propensity" else numbers.astype(np.int64)


def _utc(values: Any, tz: str | None) -> pa.Array:
    """Return times in UTC; refuse those that have no zone, and a mixture."""
    if getattr(values, "dtype", "") == np.dtype(object):
        # Arrow would take a time without a zone that follows one with a zone for UTC.
        zones = {getattr(value, "tzinfo", None) is None for value in values}
        refuse((len(zones) > 1, "some times have a zone and others have none", "give all a zone"), argument="time")
    array, zone = _array(values, "time"), "times with a zone, or tz= to name it"
    try:
        array = array.cast(pa.timestamp("ns", None if tz else "UTC")) if is_text(array.type) else array
        fits = pa.types.is_timestamp(array.type) and (array.type.tz is None) == (tz is not None)
        require(fits, "time", str(array.type), f"{zone}; numbers become times by pd.to_datetime(..., utc=True)")
        return (pc.assume_timezone(array, tz) if tz else array).cast(_UTC)
    except pa.ArrowException as error:
        raise InvalidInput(said(error).rstrip("."), argument="time", remedy=f"give {zone}") from error


def _array(values: Any, part: str) -> pa.Array:
    """Return a column without missing cells as an Arrow array."""
    try:
        array = combined(values if hasattr(values, "null_count") else pa.array(values, from_pandas=True))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInput(said(error), argument=part) from error
    row = pc.index(pc.is_null(array), True).as_py()
    require(row < 0, part, None, "a value in each row", f"row {row} (counting from 0)")
    return array


def _flat(listed: Any, clicked: Any, *, skip: bool) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the items of lists as columns, with the row of the list; and how many clicks were left out."""
    lists, marks = _array(listed, "shown"), _array(clicked, "clicked")
    for part, kind in (("shown", lists.type), ("clicked", marks.type)):
        fits = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        require(fits, part, str(kind), "a list in each row, as JSON lines and frames have them")
    told, docids = marks.flatten(), id_column(lists.flatten(), "shown")
    row, at = (numbers_of(pc.list_parent_indices(array)).astype(np.int64) for array in (lists, marks))
    own = {"position": np.arange(len(row)) - _begins(row) + 1, "docid": docids, "row": row}
    pairs = len(at) == len(row) and (at == row).all()
    if pa.types.is_boolean(told.type) or (is_number(told.type) and is_text(docids.type)):
        require(pairs, "clicked", f"{len(at)} clicks", "ids that were clicked, or 0 or 1 for each id shown")
        return own | {"clicked": _checked("clicked", told, None)}, {}
    ids = id_column(told if len(told) else docids[:0], "clicked")
    require(ids.type == docids.type, "clicked", str(ids.type), f"ids of the type of those shown, {docids.type}")
    unclear = pairs and len(ids) and not is_text(ids.type) and np.isin(numbers_of(ids), (0, 1)).all()
    refuse((unclear, "0 and 1 may be ids, or say which ids were clicked", "give true and false"), argument="clicked")
    names = docids.unique()
    keys, clicks = (
        rows * (len(names) + 1) + numbers_of(pc.fill_null(pc.index_in(part, names), len(names)))
        for rows, part in ((row, docids), (at, ids))
    )
    lost = np.flatnonzero(~np.isin(clicks, keys))
    found = ids.take(pa.array(lost[:1])).to_pylist()
    wanted = "clicks on ids that the list shows; clicks='skip' leaves out others, and counts them"
    require(
        skip or not found,
        "clicked",
        found,
        wanted,
        f"row {next(iter(at[lost]), 0)} (counting from 0), {len(lost):,} in all",
    )
    return own | {"clicked": np.isin(keys, clicks).astype(np.int64)}, {NOT_SHOWN: len(lost)}


def _begins(codes: Ints) -> Ints:
    """Return for each row the first row of its run of equal codes."""
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    return np.repeat(starts, np.diff(np.append(starts, len(codes))))


def _factorized(values: Any) -> tuple[Ints, pa.Array]:
    """Return codes from 0 in order of appearance, and the values that they stand for."""
    encoded = pa.array(values).dictionary_encode()
    return numbers_of(encoded.indices).astype(np.int64), encoded.dictionary


def _categories(codes: Ints, ids: pa.Array) -> pd.Categorical:
    """Return ids as categories in ascending order."""
    names = pd.Index(ids.to_pandas())
    order = names.argsort()
    return pd.Categorical.from_codes(np.argsort(order)[codes], names[order])


def _impressions(held: Mapping[str, Any], codes: Ints, ids: pa.Array) -> pd.DataFrame:
    """Return a row per impression; refuse an impression whose rows differ."""
    columns: dict[str, Any] = {"qid": pd.Categorical([NO_QUERY]).take(np.zeros(len(ids), dtype=np.int64))}
    firsts = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))  # codes ascend where they appear
    for part, values in held.items():
        keys, names = _factorized(values)
        differs = keys != keys[firsts][codes]
        problem = f"impression {ids[codes[np.argmax(differs)]].as_py()!r} stands there with several values of {part}"
        refuse((differs.any(), problem, "give each impression an id of its own"))
        own = keys[firsts]
        columns[part] = _categories(own, names) if part == "qid" else names.take(pa.array(own)).to_pandas()
    return pd.DataFrame(columns).set_axis(pd.Index(ids.to_pandas(), name="impression"))


def _in_order(item: dict[str, Any], ids: pa.Array) -> tuple[dict[str, Any], int]:
    """Sort items by impression and position, and drop those of repeated events."""
    step = np.diff(item["impression"])
    if not ((step > 0) | ((step == 0) & (np.diff(item["position"]) > 0))).all():
        order = np.lexsort((item["position"], item["impression"]))
        item = {part: values[order] for part, values in item.items()}
    same = {part: values[1:] == values[:-1] for part, values in item.items()}
    again = same["impression"] & same["position"]
    if not again.any():
        return item, 0
    starts = np.flatnonzero(np.append(True, ~again))
    often = np.diff(np.append(starts, len(again) + 1))
    unlike = again & ~np.logical_and.reduce([*same.values()])
    # The same list has each of its positions as often as the first one.
    item, code = {part: values[starts] for part, values in item.items()}, item["impression"]
    first = _begins(item["impression"])
    wrong = np.append(starts[often != often[first]], np.flatnonzero(unlike))
    name = ids[code[wrong[0]]].as_py() if len(wrong) else None
    problem = f"impression {name!r} stands there several times, with other content or with a position twice"
    refuse((len(wrong), problem, "give each impression an id of its own"))
    return item, int((often - 1)[np.unique(first)].sum())


def _check_lists(item: Mapping[str, Any], ids: pa.Array, names: pa.Array, *, complete: bool) -> None:
    """Refuse an impression that lacks a position, or shows a document twice."""
    codes, position = item["impression"], item["position"]
    place = np.arange(len(codes)) - _begins(codes) + 1
    at = int(np.argmax(position != place))
    found = shown(position[codes == codes[at]].tolist())
    problem = f"impression {ids[codes[at]].as_py()!r} has the positions {found}: one is missing"
    refuse((complete and position[at] != place[at], problem, "complete=False is for a log of single items of lists"))
    keys = np.sort(codes * len(names) + item["docid"])
    code, name = divmod(int(keys[np.argmax(keys[1:] == keys[:-1])]) if len(keys) > 1 else 0, len(names))
    problem = f"impression {ids[code].as_py()!r} shows {names[name].as_py()!r} twice"
    refuse(((keys[1:] == keys[:-1]).any(), problem, "keep one place for each document"))
