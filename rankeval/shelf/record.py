"""A result as plain numbers, tables, files and sentences, without the class that made them.

Every result has a method ``record()``, and its class a method ``from_record`` that makes the result
of it again. A folder, a run of a tracking server and a page are made of a record, and know no class
of results::

    result --record()--> Record --shelf.folder.write--> folder --read--> Record --from_record--> result

``metrics``, ``params`` and ``headline`` are for lists and trackers: no reader computes with them.
What `from_record` reads are the tables, the files and the facts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankeval._arguments import explained
from rankeval._checks import require
from rankeval._display import Displayed, View
from rankeval.tracking import LoggedData

if TYPE_CHECKING:
    import pandas as pd

INTERVAL_ENDS = ("_ci_low", "_ci_high")
"""The ends of the names of metrics that are ends of intervals."""

SEED_END = "_seed_sd"
"""The end of the names of metrics that are standard deviations over seeds."""

BESIDE_ENDS = (*INTERVAL_ENDS, SEED_END)
"""The ends of the names of all metrics that accompany that of a measure."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]{0,63}")


def checked_word(word: str, argument: str = "role") -> str:
    """Return a role or another plain word, which becomes part of names and paths."""
    example = " such as 'dev' or 'test'" if argument == "role" else ""
    expected = f"a plain word{example}: at most 64 letters, digits, _ and -, the first one a letter or digit"
    require(isinstance(word, str) and _WORD.fullmatch(word) is not None, argument, word, expected)
    return word


def digest_of(values: Mapping[str, Any]) -> str:
    """Return the start of the digest of plain values, in any order."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


@explained
@dataclass(frozen=True, eq=False, repr=False)
class Record(Displayed):
    """A result in plain values.

    Attributes
    ----------
    kind : str
        The kind of the result, such as "evaluation", "comparison" or "agreement".
    name : str
        Its name for people.
    headline : str
        One true sentence.
    params : mapping of str to str, float, bool or None
        The settings, without secrets.
    metrics : mapping of str to float
        The numbers by the names that they have in a run of their own, such as ``nDCG_at_10`` or
        ``difference/AP``. They may be nan or infinite.
    series : mapping of str to mapping of int to float
        Numbers by step, such as the fold.
    tables : mapping of str to DataFrame
        The tables; those in a folder are read when they are first used.
    files : mapping of str to bytes
        The files by path; those in a folder are read when they are first used.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    text : str
        The result in Markdown, for people.
    facts : mapping of str to object
        Values that JSON has, from which the result is made again.
    tags : mapping of str to str
        Short facts for lists, such as the standing of a comparison.
    data : tuple of LoggedData
        The data sets.
    parts : mapping of str to Record
        Records that belong to the same run, such as the evaluation of a cross-validation by its
        role.
    children : mapping of str to Record
        Records with runs of their own, such as folds, by name.
    status : {"FINISHED", "FAILED"}
        How the work ended.
    started, seconds : float, optional
        When the work began, in seconds since the epoch, and how long it took; only if the result
        knows it.

    Examples
    --------
    >>> Record("evaluation", "bm25", "nDCG@10 0.8155", metrics={"nDCG_at_10": 0.8155})
    Record('evaluation', 'bm25', 'nDCG@10 0.8155')
    """

    kind: str
    name: str = ""
    headline: str = ""
    params: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    series: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    text: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    data: tuple[LoggedData, ...] = ()
    parts: Mapping[str, Record] = field(default_factory=dict)
    children: Mapping[str, Record] = field(default_factory=dict)
    status: str = "FINISHED"
    started: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for field_name in ("kind", "name", "headline"):
            text = getattr(self, field_name)
            require(isinstance(text, str), field_name, text, "text")

    def _view(self) -> View:
        sentence = f"Record({self.kind!r}, {self.name!r}, {self.headline!r})"
        return View([sentence], notes=self.notes)
