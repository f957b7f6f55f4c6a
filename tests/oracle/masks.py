"""Masks: what differs between two runs of the same commit is replaced by a word in angle brackets.

A mask hides as little as it can. A date is masked only if it is within two days of today, so that
the dates that recipes draw (in 2024) stay; a number is a time only if it is now in seconds or
milliseconds. Two masks are wider, and a recipe asks for them by name: ``hashes`` hides every
hexadecimal digest, since the entries of a ledger are chained by hashes over their times; ``timed``
hides durations.
"""

from __future__ import annotations

import contextlib
import getpass
import re
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property

_DATE = re.compile(
    r"(?P<date>20\d\d-\d\d-\d\d)"
    r"(?:[T _]\d\d[:.-]?\d\d(?:[:.-]?\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d| UTC)?)?"
)
_COMPACT = re.compile(r"\b20\d{6}T\d{6}(?=\D)")
_TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
_ROW = re.compile(r"<tr.*?</tr>", re.DOTALL)
_CELL = re.compile(r"(<t[dh][^>]*>)(.*?)(</t[dh]>)", re.DOTALL)
_PIPES = re.compile(r"(?:^\|.*\|$\n?){3,}", re.MULTILINE)
_STAMP = re.compile(r"(?<![\d.])\d{10}(?:\d{3}|\.\d+)?(?![\d.])")
_UUID = re.compile(
    r"(?<![0-9a-f])(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9a-f])"
)
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_STYLE = re.compile(r"\bT_[0-9a-f]{5}(?=[_\"\s.#])")  # pandas draws the ids of a styled table
_TEMPORARY = re.compile(r"/tmp/(?:tmp|oracle-)[\w.-]+")  # noqa: S108 - found in texts
_VERSION = re.compile(r"\b(rankeval(?:[-_]mlflow)?[ =/:'\"]+v?)\d+\.\d+\.\d+\S*")
_PROCESS = re.compile(r"\b(pid|process)[ =:]+\d+")
_DURATION = re.compile(
    r"(?<![\w.])\d+(?:[.,]\d+)*(?:e-?\d+)? ?(?:s|ms|µs|us|min|seconds?|minutes?)\b"
)
_HASH = re.compile(
    r"(?<![0-9a-z_.])(?=[0-9a-f]*\d)"
    r"(?:[0-9a-f]{8,128}|(?=[0-9a-f]*[a-f])[0-9a-f]{7})(?![0-9a-z_])"
)
_RUN_NAME = re.compile(r"\b[a-z]+-[a-z]+-\d{1,4}\b")
TIMES = re.compile(
    r"seconds|duration|started|ended|_time\b|^time$|_ms\b|latency|created|updated|timestamp"
    r"|throughput"
)
"""Names of fields, keys and columns whose values are times, in the recipes that are ``timed``."""

FILE_HASHES = {"sha256"}
"""Keys whose values are hashes of whole files, which have times in them."""


@dataclass
class Masks:
    """The masks of a worker, and of the recipe that runs.

    Parameters
    ----------
    folders : dict of str to str
        Folders of this run, and the word for each.
    hashes, timed : bool
        Whether digests and durations are masked too.
    renamed : dict of str to str
        New words and the old words that stand for them, see `oracle.names`.
    """

    folders: dict[str, str] = field(default_factory=dict)
    hashes: bool = False
    timed: bool = False
    renamed: dict[str, str] = field(default_factory=dict)

    @cached_property
    def machine(self) -> re.Pattern[str]:
        """The names of this machine and of its user."""
        names = {socket.gethostname()}
        with contextlib.suppress(KeyError, OSError):
            names.add(getpass.getuser())
        return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(names)))})(?![\w-])")

    @cached_property
    def days(self) -> frozenset[str]:
        """Today, and the two days before and after it."""
        today = datetime.now(UTC).date()
        return frozenset(str(today + timedelta(days=days)) for days in range(-2, 3))

    def text(self, text: str) -> str:
        """Return a text with its masks.

        Parameters
        ----------
        text : str
            Any text.
        """
        if len(text) < 4:
            return text
        for folder, word in self.folders.items():
            text = text.replace(folder, word)
        for new, old in self.renamed.items():
            text = text.replace(new, old)
        text = _TEMPORARY.sub("<temporary>", text)
        text = _DATE.sub(lambda found: "<time>" if found["date"] in self.days else found[0], text)
        text = _COMPACT.sub("<time>", text)
        text = _STAMP.sub(
            lambda found: "<time>" if self.is_now(float(found[0])) else found[0], text
        )
        text = _UUID.sub("<id>", text)
        text = _STYLE.sub("<style>", text)
        text = _ADDRESS.sub("<address>", text)
        text = _VERSION.sub(r"\1<version>", text)
        text = _PROCESS.sub(r"\1 <process>", text)
        text = self.machine.sub("<machine>", text)
        if self.hashes:
            text = _HASH.sub("<hash>", text)
        if self.timed:
            text = _TABLE.sub(lambda found: self._without_times(found[0]), text)
            text = _PIPES.sub(lambda found: self._without_times_in_pipes(found[0]), text)
            text = _DURATION.sub("<duration>", _RUN_NAME.sub("<run name>", text))
        return text

    def _without_times(self, table: str) -> str:
        """Mask the columns of a table of HTML whose heads are those of times."""
        rows = _ROW.findall(table)
        heads = [re.sub("<.*?>", "", found[1]) for found in _CELL.findall(rows[0])] if rows else []
        hidden = {place for place, head in enumerate(heads) if TIMES.search(head.strip().lower())}
        if not hidden:
            return table
        for row in rows[1:]:
            cells = _CELL.findall(row)
            masked = [
                start + ("<time>" if place in hidden else content) + end
                for place, (start, content, end) in enumerate(cells)
            ]
            table = table.replace(row, f"<tr>{''.join(masked)}</tr>", 1)
        return table

    @staticmethod
    def _without_times_in_pipes(table: str) -> str:
        """Mask the columns of a table of Markdown whose heads are those of times."""
        rows = [line.split("|") for line in table.splitlines()]
        hidden = {place for place, head in enumerate(rows[0]) if TIMES.search(head.strip().lower())}
        masked = [
            [" <time> " if place in hidden else cell for place, cell in enumerate(row)]
            for row in rows[2:]
        ]
        return "\n".join("|".join(row) for row in [*rows[:2], *masked]) + "\n"

    def hides(self, name: object) -> bool:
        """Return whether the values under this name are times of the run.

        Parameters
        ----------
        name : object
            The name of a field, a key or a column.
        """
        if not isinstance(name, str):
            return False
        return name in FILE_HASHES or (self.timed and TIMES.search(name) is not None)

    @staticmethod
    def is_now(number: float) -> bool:
        """Return whether a number is a time of today, in seconds or milliseconds since 1970."""
        if not 1e9 < number < 1e13:
            return False
        now = time.time()
        return any(abs(number / unit - now) < 2 * 86400 for unit in (1, 1e3))

    def lines(self, texts: Iterable[str]) -> list[str]:
        """Return texts with their masks."""
        return [self.text(text) for text in texts]
