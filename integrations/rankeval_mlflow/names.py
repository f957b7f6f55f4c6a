"""Names and values that every MLflow store takes.

MLflow refuses most punctuation in the names of metrics, parameters and tags, and cuts long values. Logged
asynchronously, a refused name loses the data without a word. So whatever goes out passes through here first.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from rankeval.errors import InvalidInput

MAX_NAME = 250
MAX_PARAM = 6000
MAX_TAG = 8000
# MLflow takes 36; sixteen tell data sets apart and can be read in its lists.
SHOWN_DIGEST = 16

# Narrower than what MLflow takes on Linux: the colon is refused on Windows, and letters beyond ASCII sort oddly.
_REFUSED = re.compile(r"[^A-Za-z0-9_.\- /]")
_ROLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]{0,63}")


def safe_name(name: str) -> str:
    """Return a name that MLflow takes: the same where it can, else with its punctuation spelt or replaced.

    Parameters
    ----------
    name : str
        Any name.
    """
    safe = _REFUSED.sub("_", name.replace("@", "_at_"))
    # A name must not resolve to another one when it is read as a path: no "..", no "//", no slash at either end.
    safe = "/".join(step for step in safe.split("/") if step.strip(". "))
    if len(safe) > MAX_NAME:
        safe = f"{safe[: MAX_NAME - 9]}_{sha256(name.encode())[:8]}"
    return safe or "_"


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """Return name -> safe name, no two alike; names that are safe already keep theirs.

    Parameters
    ----------
    names : iterable of str
        Any names, each once.
    """
    wanted = {name: safe_name(name) for name in names}
    taken = {name for name, safe in wanted.items() if name == safe}
    chosen = {}
    for name, safe in wanted.items():
        free = safe
        if name != safe and safe in taken:
            free = f"{safe[: MAX_NAME - 9]}_{sha256(name.encode())[:8]}"
        taken.add(free)
        chosen[name] = free
    return chosen


def checked_role(role: str) -> str:
    """Return the role, or say why it cannot be one: it becomes part of tag names and of paths.

    Parameters
    ----------
    role : str
        What the data was used as, such as ``"dev"`` or ``"test"``.

    Raises
    ------
    InvalidInput
        When it is not a plain word.
    """
    if not isinstance(role, str) or not _ROLE.fullmatch(role):
        raise InvalidInput(
            f"role is {role!r}; a role is a plain word such as 'dev' or 'test': "
            "letters, digits, _ and -, starting with a letter or digit, at most 64"
        )
    return role


def param_text(value: Any) -> str:
    """Return a parameter's value as text, cut where MLflow would cut it, and seen to be cut."""
    text = str(value)
    return text if len(text) <= MAX_PARAM else f"{text[: MAX_PARAM - 40]}... (cut, {len(text)} characters)"


def tag_json(entries: dict[str, Any]) -> str:
    """Return a mapping as JSON that fits into one tag, leaving out last entries that do not fit and saying so."""
    text = json.dumps(entries)
    kept = dict(entries)
    while len(text) > MAX_TAG:
        kept.popitem()
        text = json.dumps({**kept, "...": f"{len(entries) - len(kept)} more, see the artifacts"})
    return text


def short_digest(digest: str) -> str:
    """Return the part of a digest that fits into a data set of MLflow; the whole goes into a tag beside it."""
    return digest.removeprefix("sha256:")[:SHOWN_DIGEST]


def sha256(content: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
