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
_TIMES = "give times with a zone, or tz= to name it; numbers become times by pd.to_datetime(..., utc=True)"
_OWN_ID = "give each impression an id of its own"


def named_columns(
    names: Sequence[str], asked: Mapping[str, str], parts: Iterable[str] = PARTS
) -> dict[str, str]:
    """Return part -> column, of the parts that are there; refuse two columns that may be the same part."""
    usual = {
        part: [part] if part in names else [name for name in PARTS[part] if name in names]
        for part in parts
    }
    found = usual | {
        chosen("part of a click log", part, PARTS): [name] for part, name in asked.items()
    }
    for part, columns in found.items():
        fits = len(columns) < 2 and all(names.count(name) == 1 for name in columns)
        require(
            fits,
            part,
            columns,
            f"one column of {list(names)}: rename others, or give ClickLog {part}=",
        )
    return {part: columns[0] for part, columns in found.items() if columns}


def found_columns(
    names: Sequence[str], asked: Mapping[str, str], *, complete: bool
) -> dict[str, str]:
    """Return part -> column, of the parts that are there; refuse a frame that is in neither form."""
    parts = named_columns(names, asked)
    needed = ("shown",) if "shown" in parts else ("docid", "position", "impression")[: 2 + complete]
    lacking = [part for part in ("clicked", *needed) if part not in parts]
    both = "shown" in parts and {"position", "docid", "propensity"} & parts.keys()
    refuse(
        (
            lacking,
            f"there is no column {', no '.join(lacking)} in {list(names)}",
            "name each, such as docid='sku'",
        ),
        (
            both,
            "the columns have lists and single items",
            "leave out one of the two forms; propensities are of items",
        ),
    )
    return parts


def read_click_columns(
    path: str | os.PathLike[str], asked: Mapping[str, str], *, complete: bool, limits: Limits
) -> dict[str, Any]:
    """Return the columns of a file by part; `rankeval.online.ClickLog.read` documents the arguments."""
    where, json = str(path), (".jsonl", ".ndjson")
    suffix = chosen(
        "suffix of a click log", suffix_of(as_path(path)), (".csv", ".tsv", ".parquet", *json)
    )
    with reading(path, limits) as file:
        if suffix in json:
            frame = pd.DataFrame(
                [row for _, row in json_lines(checked_text(file, where, limits), where)],
                dtype=object,
            )
            return {
                part: frame[name]
                for part, name in found_columns([*frame], asked, complete=complete).items()
            }
        source = open_table(file, where, suffix[1:], limits)
        parts = found_columns(source.names, asked, complete=complete)
        table = source.columns([*dict.fromkeys(parts.values())])
    columns = {part: table.column(name) for part, name in parts.items()}
    for part in _NUMBERS.keys() & columns.keys() if source.delimiter else ():
        columns[part] = feature_numbers(columns[part], source)
        require(not isinstance(columns[part], str), parts[part], columns[part], "numbers")
    return columns


def click_tables(
    columns: Mapping[str, Any], tz: str | None, clicks: str, *, complete: bool
) -> tuple[pd.DataFrame, pd.DataFrame, bool, dict[str, int]]:
    """Return the fields of the log of columns by part; `rankeval.online.ClickLog.from_frame` documents the options."""
    chosen("value of clicks", clicks, ("error", "skip"))
    n, excluded = len(columns["clicked"]), dict.fromkeys(LEFT_OUT, 0)
    held = {part: _checked(part, columns[part], tz) for part in columns if part not in OF_ITEMS}
    if "shown" in columns:
        row, item, excluded[NOT_SHOWN] = _flat(
            columns["shown"], columns["clicked"], skip=clicks == "skip"
        )
    else:
        row, item = (
            np.arange(n),
            {part: _checked(part, columns[part], tz) for part in OF_ITEMS if part in columns},
        )
    encoded = held.pop("impression", pa.array(np.arange(n))).dictionary_encode()
    refuse((not len(row), "the log has no shown item"))
    codes, ids = numbers_of(encoded.indices).astype(np.int64), encoded.dictionary
    impressions = _impressions(held, codes, ids)
    items = pd.DataFrame(
        {"impression": codes[row], **item, "docid": _categories(item["docid"])}, copy=False
    )
    items, excluded[REPEATED] = _in_order(items, ids)
    _check_lists(items, ids, complete=complete)
    shows = np.bincount(items["impression"], minlength=len(ids)) > 0
    items["impression"], excluded[EMPTY] = (
        (np.cumsum(shows) - 1)[items["impression"]],
        int((~shows).sum()),
    )
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
    held: NDArray[Any] = numbers.astype(kind, copy=False)
    row = int(
        np.argmin(np.append((held == numbers) & (numbers >= least) & (numbers <= most), False))
    )
    require(
        row == len(held),
        part,
        numbers[row : row + 1].tolist(),
        expected,
        f"row {row} (counting from 0)",
    )
    return held


def _array(part: str, values: Any, tz: str | None = None) -> Any:
    """Return times in UTC as an Arrow array; or of lists the row of each cell, and the cells."""
    if part == "time" and getattr(values, "dtype", None) == np.dtype(object):
        # Arrow would take a time without a zone that follows one with a zone for UTC; as texts they
        # differ.
        values = values.map(str, na_action="ignore")
    try:
        array = combined(
            values if hasattr(values, "null_count") else pa.array(values, from_pandas=True)
        )
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
    times = (
        times.cast(pa.timestamp("ns", None if tz else "UTC")) if is_text_type(times.type) else times
    )
    fits = pa.types.is_timestamp(times.type) and (times.type.tz is None) == (tz is not None)
    refuse((not fits, f"found {times.type}", _TIMES), argument="time")
    return (pc.assume_timezone(times, tz, ambiguous="earliest") if tz else times).cast(
        pa.timestamp("ns", "UTC")
    )


def _flat(shown: Any, clicked: Any, *, skip: bool) -> tuple[Ints, dict[str, Any], int]:
    """Return for each item the row of its list, and its parts; and how many clicks were left out."""
    (row, cells), (at, told) = _array("shown", shown), _array("clicked", clicked)
    docids, pairs = id_column(cells, "shown"), np.array_equal(at, row)
    item = {"position": pd.Series(row).groupby(row).cumcount().to_numpy() + 1, "docid": docids}
    # Of integers, 0 and 1 for each id shown are no ids: all lists would show 0 and 1 alone, and all
    # were clicked.
    flags = is_number(told.type) and (
        is_text_type(docids.type) or (pairs and np.isin(numbers_of(told), (0, 1)).all())
    )
    if flags or pa.types.is_boolean(told.type):
        require(
            pairs,
            "clicked",
            f"{len(at)} clicks",
            "ids that were clicked, or 0 or 1 for each id shown",
        )
        return row, item | {"clicked": _checked("clicked", told)}, 0
    ids = id_column(told if len(told) else docids[:0], "clicked")
    require(
        ids.type == docids.type,
        "clicked",
        str(ids.type),
        f"ids of the type of those shown, {docids.type}",
    )
    codes = numbers_of(pa.concat_arrays([docids, ids]).dictionary_encode().indices)
    keys, clicks = (
        pd.Index(part) for part in np.split(np.append(row, at) * len(codes) + codes, [len(row)])
    )
    lost = np.flatnonzero(~clicks.isin(keys))
    where = next(
        (f"row {at[one]} (counting from 0) has a click on {ids[one].as_py()!r}" for one in lost),
        None,
    )
    refuse(
        (where and not skip, f"{where}, which is not shown; {len(lost):,} such in all", _SKIP),
        argument="clicked",
    )
    return row, item | {"clicked": keys.isin(clicks)}, len(lost)


def _categories(ids: pa.Array) -> Any:
    """Return ids as categories in ascending order."""
    found = ids.dictionary_encode().to_pandas().array
    return found.reorder_categories(found.categories.sort_values())


def _impressions(held: Mapping[str, Any], codes: Ints, ids: pa.Array) -> pd.DataFrame:
    """Return a row per impression; refuse an impression whose rows differ."""
    columns: dict[str, Any] = {"qid": pd.Categorical([NO_QUERY] * len(ids))}
    firsts = np.flatnonzero(
        np.diff(np.maximum.accumulate(codes), prepend=-1)
    )  # codes ascend where they appear
    for part, values in held.items():
        own = pa.array(values).take(pa.array(firsts))
        row = pc.index(pc.not_equal(values, own.take(pa.array(codes))), True).as_py()
        problem = (
            f"impression {ids[codes[row]].as_py()!r} stands there with several values of {part}"
        )
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
    problem = f"impression {name!r} stands there several times, with other content or with a position twice"
    refuse((wrong.any(), problem, _OWN_ID))
    return rows.drop(columns="size"), int((times.first() - 1).sum())


def _check_lists(items: pd.DataFrame, ids: pa.Array, *, complete: bool) -> None:
    """Refuse an impression that lacks a position, or shows a document twice."""
    gap = items["position"] > items.groupby("impression").cumcount() + 1
    at = items["impression"][gap.argmax()]
    found = shown(items["position"][items["impression"] == at].tolist())
    problem = f"impression {ids[at].as_py()!r} has the positions {found}: one is missing"
    refuse(
        (complete and gap.any(), problem, "complete=False is for a log of single items of lists")
    )
    names = items["docid"].cat.categories
    keys = np.sort(items["impression"] * len(names) + items["docid"].cat.codes)
    at, name = divmod(int(next(iter(keys[1:][keys[1:] == keys[:-1]]), -1)), len(names))
    refuse(
        (
            at >= 0,
            f"impression {ids[at].as_py()!r} shows {names[name]!r} twice",
            "keep one place for each document",
        )
    )
