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

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

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
from rankeval.io.formats import naming, suffix_of
from rankeval.io.frames import LAST, SPELLINGS
from rankeval.io.opening import ALWAYS, Limits, as_path, checked_text, reading
from rankeval.io.tables import json_lines, open_table, whole_parquet

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

OF_IMPRESSION = ("qid", "user", "session", "time", "arm", "count")
_NUMBERS = ("position", "clicked", "count", "propensity")
_UTC = pa.timestamp("ns", "UTC")
_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
NO_QUERY = ""
"""The query of a log that has none: no id is empty."""
REPEATED = "repeated events"
NOT_SHOWN = "clicks on what was not shown"
EMPTY = "impressions of an empty list"


class Arranged(NamedTuple):
    """The fields of a `rankeval.online.ClickLog`."""

    impressions: pd.DataFrame
    items: pd.DataFrame
    complete: bool
    excluded: dict[str, int]


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
    for part in asked:
        chosen("part of a click log", part, PARTS)
    for part, usual in PARTS.items():
        found = [asked[part]] if part in asked else [name for name in usual if name in names]
        found = found[:1] if part in found[:1] else found
        require(len(found) < 2, part, found, f"one column: name it by {part}=")
        if found:
            require(names.count(found[0]) == 1, part, found[0], f"one of the columns, once each: {list(names)}")
            parts[part] = found[0]
    own = ("impression", "position", "docid") if complete else ("position", "docid")
    needed = (*(("shown",) if "shown" in parts else own), "clicked")
    lacking = [part for part in needed if part not in parts]
    both = {"shown", "docid"} <= parts.keys()
    refuse(
        (lacking, f"no column for {' and '.join(lacking)}; the columns are {list(names)}", "name them: docid='item'"),
        (both, f"{parts.get('shown')!r} holds lists and {parts.get('docid')!r} one item: give one of the two forms"),
    )
    return parts


def read_columns(
    path: str | os.PathLike[str], asked: Mapping[str, str], *, complete: bool, limits: Limits
) -> dict[str, Any]:
    """Return the columns of a file by part; `rankeval.online.ClickLog.read` documents the arguments."""
    where = as_path(path)
    suffix = chosen("suffix of a click log", suffix_of(where), _SUFFIXES)
    with reading(where, limits) as file, naming(str(where)):
        if suffix in (".jsonl", ".ndjson"):
            rows = [row for _, row in json_lines(checked_text(file, str(where), limits), str(where))]
            parts = found_columns([*dict.fromkeys(name for row in rows for name in row)], asked, complete=complete)
            return {part: [row.get(name) for row in rows] for part, name in parts.items()}
        source = open_table(file, str(where), suffix[1:], limits)
        parts = found_columns(source.names, asked, complete=complete)
        names = [*dict.fromkeys(parts.values())]
        if any(pa.types.is_nested(source.kinds[name]) for name in names):
            table = _with_lists(file, str(where), names, limits)
        else:
            table = source.columns(names)
        columns = {part: table.column(name) for part, name in parts.items()}
        for part in {*_NUMBERS} & columns.keys() if source.delimiter else ():
            if part != "clicked" or "shown" not in parts:
                found = feature_numbers(columns[part], source)
                require(not isinstance(found, str), parts[part], found, "numbers")
                columns[part] = found
        return columns


def _with_lists(file: pa.NativeFile, where: str, names: list[str], limits: Limits) -> pa.Table:
    """Read a Parquet file with lists piece by piece, since its metadata do not bound their length."""
    import pyarrow.parquet as pq

    batches, size, most = [], 0, max(ALWAYS, limits.expansion * file.size())
    file.seek(0)
    with whole_parquet(where):
        for batch in pq.ParquetFile(file).iter_batches(1 << 12, columns=names, use_threads=False):
            size += batch.nbytes
            if size > most:
                raise limits.exceeded("expansion", where, f"more than {most:,} bytes in {file.size():,}")
            batches.append(batch)
        return pa.Table.from_batches(batches)


def arranged(columns: Mapping[str, Any], *, tz: str | None, clicks: str, complete: bool) -> Arranged:
    """Check the columns of a log and put them in order; `rankeval.online.ClickLog.from_frame` documents the options.

    Parameters
    ----------
    columns : mapping of str to column
        Columns by part.
    tz : str or None
        The zone of times without one.
    clicks : {"error", "skip"}
        For clicks on what was not shown.
    complete : bool
        Whether each impression has all its positions.
    """
    chosen("value of clicks", clicks, ("error", "skip"))
    held = {part: _checked(part, values, tz) for part, values in columns.items() if part not in ("shown", "clicked")}
    excluded: dict[str, int] = {}
    if lists := "shown" in columns:
        refuse(("propensity" in held, "propensities are of items: give a row per shown item"))
        own, excluded = _flat(columns["shown"], columns["clicked"], skip=clicks == "skip")
    else:
        own = {part: held[part] for part in ("position", "docid", "propensity") if part in held}
        own |= {"clicked": _checked("clicked", columns["clicked"], tz), "row": np.arange(len(held["docid"]))}
    refuse((not len(own["position"]), "the log has no shown item"))
    ids = held.get("impression", pa.array(np.arange(len(columns["clicked"]))))
    codes, ids = _factorized(ids)
    firsts = np.unique(codes, return_index=True)[1]
    impressions = _impressions({part: held[part] for part in OF_IMPRESSION if part in held}, codes, firsts, ids)
    docs, names = _factorized(own["docid"])
    item = {"impression": codes[own["row"]], "position": own["position"], "docid": docs, "clicked": own["clicked"]}
    item |= {"propensity": own["propensity"]} if "propensity" in own else {}
    item, repeated = _in_order(item, ids, np.bincount(codes) if lists else None)
    excluded |= {REPEATED: repeated} if repeated else {}
    _check_lists(item, ids, names, complete=complete)
    shows: Any = np.bincount(item["impression"], minlength=len(ids)) > 0
    if not shows.all():
        excluded[EMPTY] = int((~shows).sum())
        impressions, item["impression"] = impressions[shows], (np.cumsum(shows) - 1)[item["impression"]]
    items = pd.DataFrame(item | {"docid": _categories(item["docid"], names), "clicked": item["clicked"].astype(bool)})
    return Arranged(impressions, items, complete, excluded)


def _checked(part: str, values: Any, tz: str | None) -> Any:
    """Return a column as an Arrow array of ids or of times in UTC, or as an array of numbers."""
    if part == "time":
        return _utc(values, tz)
    if part not in _NUMBERS:
        return id_column(values, part)
    numbers = value_column(values, part)
    if part == "propensity":
        fits, expected = (numbers > 0) & (numbers <= 1), "a probability above 0"
    elif part == "clicked":
        fits, expected = np.isin(numbers, (0, 1)), "0 or 1, or true or false"
    else:
        fits, expected = (numbers >= 1) & (numbers % 1 == 0), "a whole number, counted from 1"
    row = int(np.argmin(fits)) if len(fits) else 0
    require(fits.all(), part, numbers[row : row + 1].tolist(), expected, f"row {row} (counting from 0)")
    return numbers if part == "propensity" else numbers.astype(np.int64)


def _utc(values: Any, tz: str | None) -> pa.Array:
    """Return times in UTC; refuse those that have no zone, and a mixture."""
    if isinstance(values, list) or getattr(values, "dtype", "") == np.dtype(object):
        # Arrow would take a time without a zone that follows one with a zone for UTC.
        zones = {getattr(value, "tzinfo", None) is not None for value in values}
        refuse((len(zones) > 1, "some times have a zone and others have none", "give all a zone"), argument="time")
    try:
        array = _array(values, "time")
        if is_text(array.type):
            with suppress(pa.ArrowInvalid):
                array = array.cast(pa.timestamp("ns"))
            array = array.cast(pa.timestamp("ns", "UTC")) if is_text(array.type) else array
        wanted = "times, such as 2024-05-01T12:00:00+02:00 or pd.to_datetime(numbers, unit='s', utc=True)"
        require(pa.types.is_timestamp(array.type), "time", str(array.type), wanted)
        refuse(
            (array.type.tz is None and tz is None, "the times have no zone", "name it, such as tz='Europe/Berlin'"),
            (array.type.tz is not None and tz is not None, "tz= is for times without a zone, and these have one"),
            argument="time",
        )
        return pc.assume_timezone(array, tz).cast(_UTC) if tz else array.cast(_UTC)
    except pa.ArrowException as error:
        raise InvalidInput(said(error), argument="time") from error


def _array(values: Any, part: str) -> pa.Array:
    """Return a column without missing cells as an Arrow array."""
    try:
        is_arrow = isinstance(values, pa.Array | pa.ChunkedArray)
        array = combined(values if is_arrow else pa.array(values, from_pandas=True))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInput(said(error), argument=part) from error
    row = pc.index(pc.is_null(array), True).as_py()
    require(row < 0, part, None, "a value in each row", f"row {row} (counting from 0)")
    return array


def _lists(values: Any, part: str) -> pa.Array:
    """Return a column of lists; text holds them as JSON."""
    array, wanted = _array(values, part), 'a list in each row; in text as JSON, such as ["d1", "d2"]'
    if is_text(array.type):
        try:
            array = _array([json.loads(cell) for cell in array.to_pylist()], part)
        except ValueError as error:
            raise InvalidInput(f"expected {wanted}: {said(error)}", argument=part) from error
    require(pa.types.is_list(array.type) or pa.types.is_large_list(array.type), part, str(array.type), wanted)
    return array


def _flat(shown: Any, clicked: Any, *, skip: bool) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the items of lists as columns, with the row of the list; and how many clicks were left out."""
    lists, marks = _lists(shown, "shown"), _lists(clicked, "clicked")
    require(len(lists) == len(marks), "clicked", len(marks), f"{len(lists)} lists, as many as of what was shown")
    docids, row, at = id_column(lists.flatten(), "shown"), _parents(lists), _parents(marks)
    own = {"docid": docids, "row": row, "position": np.arange(len(row)) - np.searchsorted(row, row) + 1}
    told = marks.flatten()
    found: dict[str, NDArray[Any]] = {}
    if is_number(told.type) and len(at) == len(row) and (at == row).all():
        flags = value_column(told, "clicked")
        found |= {"flags": flags} if np.isin(flags, (0, 1)).all() else {}
    lost = np.zeros(len(at), dtype=bool)
    if not len(told) or (is_text(docids.type) == is_text(told.type) and not pa.types.is_boolean(told.type)):
        names, width = docids.unique(), len(docids) + 1
        clicks = id_column(told, "clicked").cast(docids.type)
        here, there = (
            numbers_of(pc.fill_null(pc.index_in(ids, value_set=names), len(names))) for ids in (docids, clicks)
        )
        keys, clicked_keys = row * width + here, at * width + there
        lost = ~np.isin(clicked_keys, keys)
        # Numbers that are no ids of the list can only be 0 and 1.
        found |= {} if "flags" in found and lost.any() else {"ids": np.isin(keys, clicked_keys)}
    form = "the ids that were clicked, of the type of those shown, or 0 or 1 for each id shown"
    require(found, "clicked", str(told.type), form)
    unclear = len(found) > 1 and len(told)
    refuse((unclear, "0 and 1 may be ids, or say which ids were clicked", "give true and false"), argument="clicked")
    lost = lost if "ids" in found else lost[:0]
    if lost.any() and not skip:
        first = int(np.argmax(lost))
        problem = f"row {at[first]} (counting from 0) has a click on {told[first].as_py()!r}, which it does not show"
        remedy = f"clicks='skip' leaves out such clicks and counts them; there are {lost.sum():,}"
        raise InvalidInput(problem, argument="clicked", remedy=remedy)
    return own | {"clicked": found.popitem()[1].astype(np.int64)}, {NOT_SHOWN: int(lost.sum())} if lost.any() else {}


def _parents(lists: pa.Array) -> Ints:
    return numbers_of(pc.list_parent_indices(lists)).astype(np.int64)


def _factorized(ids: pa.Array) -> tuple[Ints, pa.Array]:
    """Return codes from 0 in order of appearance, and the ids that they stand for."""
    encoded = ids.dictionary_encode()
    return numbers_of(encoded.indices).astype(np.int64), encoded.dictionary


def _categories(codes: Ints, ids: pa.Array) -> pd.Categorical:
    """Return ids as categories in ascending order."""
    names = pd.Index(ids.to_pandas())
    order = names.argsort()
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return pd.Categorical.from_codes(places[codes], names[order])


def _impressions(held: Mapping[str, Any], codes: Ints, firsts: Ints, ids: pa.Array) -> pd.DataFrame:
    """Return a row per impression; refuse an impression whose rows differ."""
    columns: dict[str, Any] = {}
    for part, values in held.items():
        if part == "count":
            keys, columns[part] = values, values[firsts]
        elif part == "time":
            keys, columns[part] = numbers_of(values.cast(pa.int64())), values.take(pa.array(firsts)).to_pandas()
        else:
            keys, names = _factorized(values)
            is_text_of_few = part == "qid"
            columns[part] = (
                _categories(keys[firsts], names) if is_text_of_few else names.take(pa.array(keys[firsts])).to_pandas()
            )
        differs = keys != keys[firsts][codes]
        row = int(np.argmax(differs))
        problem = f"impression {ids[codes[row]].as_py()!r} has several values of {part}"
        refuse((differs.any(), problem, "an impression is one list, shown once to one user"))
    if "qid" not in columns:
        columns["qid"] = pd.Categorical([NO_QUERY]).take(np.zeros(len(ids), dtype=np.int64))
    return pd.DataFrame(columns).set_axis(pd.Index(ids.to_pandas(), name="impression"))


def _in_order(item: dict[str, Any], ids: pa.Array, times: Ints | None) -> tuple[dict[str, Any], int]:
    """Sort items by impression and position, and drop those of repeated events.

    ``times`` has the events of each impression, if an event is a whole list.
    """
    codes, position = item["impression"], item["position"]
    step = np.diff(codes)
    if not ((step > 0) | ((step == 0) & (np.diff(position) > 0))).all():
        order = np.lexsort((position, codes))
        item = {part: values[order] for part, values in item.items()}
        codes, position = item["impression"], item["position"]
    again = (codes[1:] == codes[:-1]) & (position[1:] == position[:-1])
    if not again.any():
        return item, 0
    unlike = np.flatnonzero(again & np.any([values[1:] != values[:-1] for values in item.values()], axis=0))
    kept = np.concatenate(([True], ~again))
    often = np.diff(np.append(np.flatnonzero(kept), len(kept)))
    item = {part: values[kept] for part, values in item.items()}
    if times is not None and not len(unlike):
        unlike = np.flatnonzero(kept)[often != times[item["impression"]]]
    first = ids[codes[unlike[0]]].as_py() if len(unlike) else ""
    place = position[unlike[0]] if len(unlike) else 0
    problem = f"impression {first!r} stands there several times, and not with the same content at position {place}"
    refuse((len(unlike), problem, "give each impression an id of its own"))
    most = np.zeros(len(ids), dtype=np.int64)
    np.maximum.at(most, item["impression"], often)
    return item, int((most - 1).clip(0).sum())


def _check_lists(item: Mapping[str, Any], ids: pa.Array, names: pa.Array, *, complete: bool) -> None:
    """Refuse an impression that lacks a position, or shows a document twice."""
    codes, position = item["impression"], item["position"]
    place = np.arange(len(codes)) - np.searchsorted(codes, codes) + 1
    gap = int(np.argmax(position != place)) if complete and (position != place).any() else None
    if gap is not None:
        found = position[codes == codes[gap]]
        problem = (
            f"impression {ids[codes[gap]].as_py()!r} has the positions {shown(found.tolist())}, not 1 to {len(found)}"
        )
        raise InvalidInput(problem, argument="position", remedy="complete=False is for a log of single items of lists")
    keys = np.sort(codes * len(names) + item["docid"])
    twice = keys[1:][keys[1:] == keys[:-1]]
    if len(twice):
        code, name = divmod(int(twice[0]), len(names))
        raise InvalidInput(f"impression {ids[code].as_py()!r} shows {names[name].as_py()!r} twice", argument="docid")
