"""Crediting: the clicks on interleaved lists, credited to the rankings and compared by users.

::

    credits   i1  u7  [d4, d9]  A: [1, 0]  B: [0, 1]        clicks   i1  d9
    credits   i2  u7  [d4, d9]  A: [0, 1]  B: [1, 0]        clicks   i2  d9
                                                     |
              u7  A: (0 + 1) / 2   B: (1 + 0) / 2    a row of each system's frame, for `rankeval.compare`

The clicks of an impression share one vote, or each of them has one (``credit=``).

All impressions that were served count, those without a click as 0 for each ranking. So the credits
lead, and the clicks are looked up.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import count, few, refuse, require
from rankeval._registry import chosen
from rankeval.comparison import Comparison, compare
from rankeval.comparison.record import with_notes
from rankeval.io.columns import as_list, id_column
from rankeval.io.frames import as_table, frame_columns, is_frame, names_in
from rankeval.io.opening import read_text
from rankeval.io.tables import json_lines
from rankeval.online.events import named_columns
from rankeval.online.interleaving import Id, Interleaved
from rankeval.online.logs import ClickLog

UNITS = {"user": "user", "query": "qid", "impression": "impression"}
"""The field of a record that names the unit."""

NO_USERS = "impressions of a user depend on each other; in a simulation, .31 of tests by impressions found a difference"
CLICKED_ONLY = "each record has a click: records without a click may be missing, and they count too"
SUM = "each click counts: an impression with many clicks counts more than one with a single click"
BALANCED = "balanced interleaving is biased for some pairs of rankings: see rankeval.online.interleaving_bias"


@explained
def compare_interleaved(
    credits: Any,
    clicks: Any,
    *,
    unit: str = "user",
    credit: str = "share",
    unshown: str = "error",
    salt: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare rankings by the clicks on their interleaved lists.

    An impression gives each ranking credit for its clicks, and 0 without a click::

        credit="share"          (sum of its credits over the documents clicked) / max(1, documents clicked)
        credit="sum"            sum of its credits over the documents clicked
        credit(ranking, unit) = mean over all impressions of the unit

    With "share", an impression with many clicks counts as much as one with a single click: the
    ranking wins that is preferred in more impressions. With "sum", each click counts as much as any
    other: the ranking wins that gets more clicks, as in an A/B test of clicks. They disagree if one
    ranking is better where users click much, and the other one where they click little. Both are
    linear in the credits, so random clicks favour no ranking if the scheme has no bias; a ratio of
    the two credits, or a count of wins, would not have this property for "optimized".

    Parameters
    ----------
    credits : iterable, path or frame
        The records of all lists that were shown, with and without clicks: results of
        `rankeval.online.Interleaver`, their JSON, or the objects read from it; the path of a file
        with a record a line; or a frame whose column ``record`` has their JSON.
    clicks : mapping, frame or ClickLog
        Impression -> ids of the documents clicked; or a frame with a row per click, columns
        impression and docid, and perhaps user, or as `rankeval.online.ClickLog` finds them; or a
        log of the impressions, without ``count``. A document that is clicked twice in an impression
        counts once. Text such as ``"7"`` is the id 7 of a record.
    unit : {"user", "query", "impression"}, default "user"
        The unit that is sampled, a row of the test. Impressions of one user depend on each other,
        so that a test by impressions, or by queries, claims differences that are not there; the
        result says so.
    credit : {"share", "sum"}, default "share"
        Whether the clicks of an impression share one vote, or have a vote each.
    unshown : {"error", "skip"}, default "error"
        Refuse clicks that no record explains: of an impression without a record, on a document that
        was not shown, by another user than the one to whom it was shown. Or leave them out; the
        notes count them.
    salt : str, optional
        The salt of the interleaver: records that do not fit their seal are then refused.
    **options
        As in `rankeval.compare`, such as ``test``, ``baseline``, ``claim``, ``alpha`` and ``by``.
        Without a baseline, all pairs are compared.

    Returns
    -------
    Comparison
        Its column is ``credit``; more is better. The notes have the numbers of impressions, with
        and without clicks, and of the clicks and records left out.

    Raises
    ------
    InvalidInput
        If a record is invalid, was changed, or occurs again with another list; if records are of
        several schemes or have other rankings; if a record has no user, or users are text and
        integers; if a click is refused, or ids of clicks are integers and those of records are
        text; or if no click is left.
    UnknownName
        If there is no such unit, credit or value of ``unshown``.

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
    chosen("credit", credit, ("share", "sum"))
    chosen("value of unshown", unshown, ("error", "skip"))
    shown, repeated = _records(credits, salt)
    field = UNITS[unit]
    units = {name: getattr(record, field) for name, record in shown.items()}
    without = [name for name, value in units.items() if value is None]
    lacking = f"no {unit} in {count(len(without), 'record')}: {few(without)}"
    remedy = f"give {field}= when lists are shown, or compare by another unit"
    refuse((without, lacking, remedy), argument="credits")
    clicked: dict[Id, list[Id]] = defaultdict(list)
    left_out: dict[str, list[tuple[Id, Id]]] = defaultdict(list)
    for impression, document, *user in _clicks(clicks, shown):
        if (record := shown.get(impression)) is None:
            left_out["of impressions without a record"].append((impression, document))
        elif document not in record.ids:
            left_out["on documents that were not shown"].append((impression, document))
        elif user and record.user not in (None, *user):
            left_out["by another user than the record has"].append((impression, document))
        else:
            clicked[impression].append(document)
    skipped = {f"{count(len(lost), 'click')} {words}": lost for words, lost in left_out.items()}
    skip = 'unshown="skip" leaves them out'
    for words, lost in skipped.items():
        refuse((unshown == "error", f"{words}: {few(lost)}", skip), argument="clicks")
    none = "; ".join(["no impression has a click", *skipped])
    refuse((not any(clicked.values()), none), argument="clicks")
    index = pd.Index(as_list(id_column([*units.values()], unit)), name=unit)
    credits_of = _credits(shown, clicked, index, shared=credit == "share")
    means = credits_of.groupby(level=unit, sort=False).mean()
    systems = {str(name): means[[name]].set_axis(["credit"], axis=1) for name in means}
    compared = compare(systems, unit=unit, **{"lower_is_better": {"credit": False}} | options)
    again = sum(len(documents) - len({*documents}) for documents in clicked.values())
    n_without = sum(not documents for documents in clicked.values())
    shows = count(len(shown), "impression")
    if unit != "impression":
        shows += f" of {count(len(means), unit)}"
    notes = [f"{shows}, {n_without:,} of them without a click"]
    if repeated:
        notes.append(f"{count(repeated, 'repeated record')} dropped")
    if again:
        notes.append(
            f"{count(again, 'repeated click')} on a document of the same impression dropped"
        )
    notes += [f"left out: {words}" for words in skipped]
    if credit == "sum":
        notes.append(SUM)
    if {record.scheme for record in shown.values()} == {"balanced"}:
        notes.append(BALANCED)
    if unit != "user":
        notes.append(f"the unit is the {unit}: {NO_USERS}")
    if all(clicked.values()):
        notes.append(CLICKED_ONLY)
    return with_notes(compared, *notes)


def _records(credits: Any, salt: str | None) -> tuple[dict[Id, Interleaved], int]:
    """Return the record of each impression, of records in any form, and how many are repeated."""
    if isinstance(credits, (str, os.PathLike)):
        credits = [row for _, row in json_lines(read_text(credits), os.fspath(credits))]
    elif is_frame(credits):
        credits = as_list(frame_columns(credits, {"credits": "record"})["credits"])
    is_list = isinstance(credits, Iterable) and getattr(credits, "ndim", 1) > 0
    require(is_list, "credits", credits, "records, a path or a frame")
    records = [_record(record, salt) for record in credits]
    shown = {record.impression: record for record in records}
    differing = [record.impression for record in records if shown[record.impression] != record]
    kinds = {(record.scheme, *sorted(record.credits)) for record in records}
    refuse(
        (not records, "there is no record"),
        (differing, f"two records of an impression differ: {few(differing)}"),
        (len(kinds) > 1, f"records are of several schemes or rankings: {few(sorted(kinds))}"),
        argument="credits",
    )
    return shown, len(records) - len(shown)


def _credits(
    shown: Mapping[Id, Interleaved],
    clicked: Mapping[Id, list[Id]],
    units: pd.Index[Any],
    *,
    shared: bool,
) -> pd.DataFrame:
    """Return the credits of each ranking (columns) in each impression (rows)."""
    rows = [record.credited(clicked[name]) for name, record in shown.items()]
    credited = pd.DataFrame(rows, units).astype(float)
    if shared:
        credited = credited.div([len({*clicked[name]}) or 1 for name in shown], axis=0)
    return credited


def _record(record: Any, salt: str | None) -> Interleaved:
    if isinstance(record, Interleaved):
        if salt is None:
            return record
        record = record.to_json()  # so that its seal is checked
    return Interleaved.from_json(record, salt=salt)


def _clicks(clicks: Any, shown: Mapping[Id, Interleaved]) -> Iterable[tuple[Id, ...]]:
    """Return impression, document and, if known, user of each click, in each form that there is."""
    if isinstance(clicks, ClickLog):
        by_row = "count" not in clicks.impressions
        require(by_row, "clicks", clicks, "a log with a row per impression, without count")
        clicks = clicks.to_frame().query("clicked")
    elif isinstance(clicks, (Mapping, pd.Series)):
        rows = []
        for impression, documents in clicks.items():
            is_list = isinstance(documents, Iterable) and not isinstance(documents, (str, bytes))
            require(is_list, "clicks", [documents], "a list of document ids for each impression")
            rows += [(impression, document) for document in documents]
        clicks = pd.DataFrame(rows, columns=["impression", "docid"])
    forms = "a mapping of impressions to clicked ids, a frame or a ClickLog"
    require(is_frame(clicks), "clicks", clicks, forms)
    table = as_table(clicks)
    names = named_columns(names_in(table), {}, ("impression", "docid", "user", "clicked"))
    columns = frame_columns(table, {"impression": "impression", "docid": "docid"} | names)
    flags = {*map(str, as_list(columns.pop("clicked", ())))}
    problem = "it has rows that are not clicks"
    is_log = flags & {"0", "0.0", "False", "false"}
    refuse((is_log, problem, "give ClickLog.from_frame(...)"), argument="clicks")
    records = shown.values()
    known: tuple[set[Any], ...] = (
        {record.impression for record in records},
        {*chain(*(record.ids for record in records))},
        {record.user for record in records} - {None},
    )
    parts = [
        _ids(as_list(id_column(column, part)), own, part)
        for (part, column), own in zip(columns.items(), known, strict=False)
    ]
    return zip(*parts, strict=True)


def _ids(ids: list[Id], own: set[Any], part: str) -> list[Id]:
    """Return ids of clicks, with text such as "7" as the id 7 of a record."""
    lost = {int} == {*map(type, ids)} and {str} == {*map(type, own)}
    problem = "ids are integers, those of the records are text"
    refuse((lost, problem, "read them as text: dtype=str"), argument=part)
    numbers: dict[Any, Any] = {
        str(name): name for name in own if isinstance(name, int) and str(name) not in own
    }
    return [numbers.get(name, name) for name in ids]
