"""URLs as messages show them: without user, password and query string, where keys of a store may stand.

The trap: a password may hold a slash, and a query string an @. So if the first name of a URL has a colon or an @, all
before the last @ is hidden, a host and a port with it; and all of the URL if a question mark stands before that @.
"""

from __future__ import annotations

import re

_URL = re.compile(r"(\w://)([^\s'\"]+)")


def masked(text: str) -> str:
    """Return a text in one line, with *** for what may be a secret in its URLs."""
    return _URL.sub(lambda found: found[1] + _masked(found[2]), " ".join(text.split()))


def _masked(rest: str) -> str:
    user, at, host = rest.rpartition("@")
    if at and {":", "@"} & set(rest.partition("/")[0]):
        if "?" in user:
            return "***"
        rest = f"***@{host}"
    path, mark, _ = rest.partition("?")
    return f"{path}?***" if mark else path


def name_of(path: str) -> str:
    """Return the last name of a path or URL, without its query string."""
    if "://" not in path:
        return path.rstrip("/").rpartition("/")[2]
    return masked(path).partition("?")[0].rstrip("/").rpartition("/")[2]
