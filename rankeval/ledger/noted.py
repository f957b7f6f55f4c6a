"""Find the heads of ledgers that reports, logs and records of runs name.

Only such a head shows that the newest entries of a ledger were deleted or rewritten: what is left of it is whole.
"""

from __future__ import annotations

import html
import os
import re
from pathlib import Path

from rankeval.errors import InvalidInput
from rankeval.ledger.entry import GENESIS

_ONE = "[0-9a-f]{12,64}"
_WHOLE = rf"{_ONE}(?:\+{_ONE})*"
_HEAD = re.compile(
    # "ledger /path at 0123456789ab", as notes have it; "as of head ...", "head: ...", "rankeval.guard.head": "..."
    rf"""(?:\bledger\b[^\n]*?\bat\s+|\bhead\b["'\s:=|]*)(?P<head>{_WHOLE})(?![0-9a-z])"""
)
_NOTHING_ELSE = re.compile(rf"\ufeff?\s*{_WHOLE}(?:\s+{_WHOLE})*\s*")
_TAG = re.compile(r"<[^<>]*>")


def heads_in(path: str | os.PathLike[str], *, ledger: str | None = None) -> list[str]:
    """Return the heads of ledgers that a file names, in order, each once.

    Parameters
    ----------
    path : str or path
        A report (HTML), a record of a run (JSON) or any text. A head stands behind the word "head", or behind "ledger
        ... at", or the file holds nothing but heads; it has 12 to 64 hexadecimal digits, and several heads are joined
        by a plus sign.
    ledger : str, optional
        A ledger as `Ledger.where` names it: the file is passed over unless a report wrote this name into it.

    Returns
    -------
    list of str
        As `Ledger.problems` takes them; empty if the file names none.

    Raises
    ------
    InvalidInput
        If the file cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidInput(f"{os.fspath(path)} cannot be read: {error.strerror or error}") from error
    if _NOTHING_ELSE.fullmatch(text):
        found = text.removeprefix("\ufeff").split()
    else:
        text = html.unescape(_TAG.sub(" ", text))
        found = [match["head"] for match in _HEAD.finditer(text)]
    if ledger is not None and not re.search(rf"\bledger {re.escape(ledger)}(?: as of head |\.\s)", text):
        return []
    return [head for head in dict.fromkeys(found) if not GENESIS.startswith(head)]
