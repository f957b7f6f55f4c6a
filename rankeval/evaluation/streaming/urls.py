"""URLs as messages show them: without user, password and query string, where keys of a store may stand."""

from __future__ import annotations

import re

_USER = re.compile(r"(\w://)[^/\s'\"]*@")
_QUERY = re.compile(r"(\w://[^\s?'\"]*\?)[^\s'\"]+")


def masked(text: str) -> str:
    """Return a text in one line, with *** for what may be a secret in its URLs."""
    return _QUERY.sub(r"\1***", _USER.sub(r"\1***@", " ".join(text.split())))
