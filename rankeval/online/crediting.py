"""Crediting: the clicks on interleaved lists, credited to the rankings and compared by users.

::

    credits   i1  u7  [d4, d9]  A: [1, 0]  B: [0, 1]        clicks   i1  d9
    credits   i2  u7  [d4, d9]  A: [0, 1]  B: [1, 0]        clicks   i2  d9
                                                     |
              u7  A: (0 + 1) / 2   B: (1 + 0) / 2    a row of each system's frame, for `rankeval.compare`

All impressions that were served count, those without a click as 0 for each ranking. So the credits lead, and the clicks
are looked up.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, Literal

import numpy as np
import pandas as pd

from rankeval._checks import count, few, refuse, require
from rankeval._registry import chosen
from rankeval.comparison import Comparison, compare
from rankeval.comparison.record import with_notes
from rankeval.io.columns import as_list, id_column
from rankeval.io.frames import as_table, frame_columns, is_frame, names_in
from rankeval.io.opening import read_text
from rankeval.io.tables import json_lines
from rankeval.online.interleaving import Id, Interleaved
from rankeval.online.logs import ClickLog

UNITS = {"user": "user", "query": "qid", "impression": "impression"}
"""The field of a record that names the unit."""

CREDIT = "credit"
BY_IMPRESSION = (
    "impressions of a user depend on each other: .31 of such tests found a difference of equal rankings, not .05"
)
BALANCED = "balanced interleaving is biased for some pairs of rankings: see rankeval.online.interleaving_bias"


def compare_interleaved(
    credits: Any,  # noqa: A002 - the field's noun for these records
    clicks: Any,
    *,
    unit: Literal["user", "query", "impression"] = "user",
    test: str = "t",
    unshown: Literal["error", "skip"] = "error",
    salt: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare rankings by the clicks on their interleaved lists.

    An impression gives each ranking the mean credit of its clicks, and 0 without a click::

        credit(ranking, impression) = (sum of its credits over the documents clicked) / max(1, documents clicked)
        credit(ranking, unit)       = mean over all impressions of the unit

    The mean makes an impression with many clicks count as much as one with a single click, and a user with many
    impressions as much as any other. It is linear in the credits, so random clicks favour no ranking if the scheme has
    no bias; a share of the credit, or a count of wins, would not have this property for "optimized".

    Parameters
    ----------
    credits : iterable, path or frame
        The records of all lists that were shown, with and without clicks: results of `rankeval.online.Interleaver`,
        their JSON, or the objects read from it; the path of a file with a record a line; or a frame whose column
        ``record`` has their JSON.
    clicks : mapping, frame or ClickLog
        Impression -> ids of the documents clicked; or a frame with a row per click, columns impression and docid, and
        perhaps user; or a log of the impressions. A document that is clicked twice in an impression counts once.
    unit : {"user", "query", "impression"}, default "user"
        The unit that is sampled, a row of the test. Impressions of one user depend on each other, so that a test by
        impressions claims differences that are not there; the result says so.
    test : str, default "t"
        As in `rankeval.compare`.
    unshown : {"error", "skip"}, default "error"
        Refuse clicks that no record explains: of an impression without a record, on a document that was not shown, by
        another user than the one to whom it was shown. Or leave them out; the notes count them.
    salt : str, optional
        The salt of the interleaver: records that do not fit their seal are then refused.
    **options
        As in `rankeval.compare`, such as ``baseline``, ``claim``, ``alpha`` and ``by``. Without a baseline, all pairs
        are compared.

    Returns
    -------
    Comparison
        Of the column ``credit``, of which more is better. The notes have the numbers of impressions, with and without
        clicks, and of all that was left out.

    Raises
    ------
    InvalidInput
        If a record is none, was changed, or stands there again with another list; if records are of several schemes or
        have other rankings; if a record has no user; or if a click is refused.

    Examples
    --------
    >>> import rankeval as rk
    >>> il = rk.online.Interleaver("team_draft")
    >>> lists = [il.show({"A": ["a", "b"], "B": ["c", "d"]}, impression=f"i{n}", user=f"u{n % 9}") for n in range(90)]
    >>> compared = rk.online.compare_interleaved(lists, {one.impression: ["a"] for one in lists})
    >>> compared.table[["baseline", "system", "mean_baseline", "mean_system"]]
      baseline system  mean_baseline  mean_system
    0        A      B            1.0          0.0
    """
    chosen("unit", unit, UNITS)
    chosen("value of unshown", unshown, ("error", "skip"))
    records, repeated = _records(credits, salt)
    without = [one.impression for one in records.values() if getattr(one, UNITS[unit]) is None]
    problem = f"no {unit} in {count(len(without), 'record')}, of the impressions {few(without)}"
    remedy = f"give {UNITS[unit]}= when lists are shown, or compare by another unit"
    refuse((without, problem, remedy), argument="credits")
    clicked: dict[Id, Counter[Id]] = defaultdict(Counter)
    left_out: dict[str, list[tuple[Id, Id]]] = defaultdict(list)
    for impression, document, user in _clicks(clicks):
        if (record := records.get(impression)) is None:
            left_out["of impressions without a record"].append((impression, document))
        elif document not in record.ids:
            left_out["on documents that were not shown"].append((impression, document))
        elif user is not None and record.user not in (None, user):
            left_out["by another user than the record has"].append((impression, document))
        else:
            clicked[impression][document] += 1
    for words, found in left_out.items():
        problem = f"{count(len(found), 'click')} {words}: {few(found)}"
        refuse((unshown == "error", problem, 'unshown="skip" leaves them out'), argument="clicks")
    units = pd.Index([getattr(record, UNITS[unit]) for record in records.values()], name=unit)
    sums = pd.DataFrame([one.credited(clicked.get(one.impression, ())) for one in records.values()], units)
    n_clicks = np.array([len(clicked.get(impression, ())) for impression in records])
    means = (sums.astype(float) / np.maximum(1, n_clicks)[:, np.newaxis]).groupby(level=unit, sort=False).mean()
    systems = {str(name): means[[name]].set_axis([CREDIT], axis=1) for name in means}
    compared = compare(systems, test=test, unit=unit, **{"lower_is_better": {CREDIT: False}} | options)
    again = sum(n - 1 for found in clicked.values() for n in found.values())
    shown = f"{count(len(records), 'impression')} of {count(len(means), unit)}"
    counted = {
        f"{shown}, {len(records) - len(clicked):,} of them without a click": True,
        f"{count(repeated, 'repeated record')} dropped": repeated,
        f"{count(again, 'repeated click')} on a document of the same impression dropped": again,
        **{f"left out: {count(len(found), 'click')} {words}": True for words, found in left_out.items()},
        BALANCED: any(record.scheme == "balanced" for record in records.values()),
        BY_IMPRESSION: unit == "impression",
    }
    return with_notes(compared, *(note for note, holds in counted.items() if holds))


def _records(given: Any, salt: str | None) -> tuple[dict[Id, Interleaved], int]:
    """Return the record of each impression, and how many stood there again."""
    if isinstance(given, (str, os.PathLike)):
        given = [row for _, row in json_lines(read_text(given), os.fspath(given))]
    elif is_frame(given):
        given = as_list(frame_columns(given, {"credits": "record"})["credits"])
    require(isinstance(given, Iterable), "credits", given, "records, a path or a frame")
    found: dict[Id, Interleaved] = {}
    n = 0
    for n, one in enumerate(given, start=1):  # noqa: B007 - their number, also of an iterator
        made = isinstance(one, Interleaved)
        record = one if made and salt is None else Interleaved.from_json(one.to_json() if made else one, salt=salt)
        known, first = found.setdefault(record.impression, record), next(iter(found.values()))
        same = (record.scheme, {*record.credits}) == (first.scheme, {*first.credits})
        about = f"impression {record.impression!r} has"
        refuse((record != known, f"{about} two records that differ"), argument="credits")
        refuse((not same, f"{about} another scheme or other rankings than the first one"), argument="credits")
    refuse((not found, "there is no record"), argument="credits")
    return found, n - len(found)


def _clicks(clicks: Any) -> Iterator[tuple[Id, Id, Id | None]]:
    """Yield impression, document and user, if it is known, of each click."""
    if isinstance(clicks, ClickLog):
        hits = clicks.items[clicks.items["clicked"]]
        about = clicks.impressions.reset_index().iloc[hits["impression"]]
        clicks = about.assign(docid=hits["docid"].astype(object).to_numpy()).filter(["impression", "docid", "user"])
    if is_frame(clicks):
        table = as_table(clicks)
        names = [name for name in ("impression", "docid", "user") if name != "user" or name in names_in(table)]
        columns = frame_columns(table, {name: name for name in names})
        ids = [id_column(column, name).to_pylist() for name, column in columns.items()]
        yield from zip(*ids, *([repeat(None)] if len(ids) < 3 else []), strict=False)
        return
    require(isinstance(clicks, Mapping), "clicks", clicks, "a mapping of impressions to clicked ids, or a frame")
    for impression, documents in clicks.items():
        listed = isinstance(documents, Iterable) and not isinstance(documents, (str, bytes, Mapping))
        require(listed, f"clicks[{impression!r}]", documents, "a list of document ids")
        yield from ((impression, document, None) for document in documents)
