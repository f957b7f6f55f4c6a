"""Addresses of stores: valid from any directory, without secrets on disk and in messages, complete for a call.

A secret is a password, the user of a web address, or a value of the query or after ``#``: of a web address all values
but those of a few names, of the address of a database those of names such as ``password``. If a password has letters
that an address does not allow, and nobody can tell where it ends, nothing of the address is shown.

A record in the spool keeps the bare address. Whoever sends it takes the secrets from an address that is the same but
for them: one that is given, or MLflow's present setting. MLflow's own variables (``MLFLOW_TRACKING_TOKEN`` ...) work as
always.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

_HARMLESS = {"o", "workspace", "workflowtype"}  # names in the query of a web address
_SECRET = re.compile(
    r"token|pass|pwd|secret|api[_.-]?key|access[_.-]?key|signature|credential|odbc_connect|authorization|jwt|bearer"
    r"|cookie|session|^(?:x[_.-])?(?:auth|key|pw|sig|code)$",
    re.IGNORECASE,
)
# The bounds keep a search linear in a text of any length.
_SCHEME = r"[A-Za-z][\w+.\-]{0,30}://"
_WHOLE = re.compile(rf"(?P<scheme>{_SCHEME})(?P<rest>.*)", re.DOTALL)
_WITHIN = re.compile(rf"\b{_SCHEME}[^\s'\"<>]*")
_VALUE = re.compile(r"(?P<name>[?&;][\w.\-]{1,100})=[^\s&;#'\"]+")
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::\d*)?")


class _Address(NamedTuple):
    scheme: str
    user: str
    password: str | None
    place: str
    query: tuple[tuple[str, str, str | None], ...]
    """What stands before a setting, its name with ``=``, and its value if that is a secret."""
    unclear: str = ""
    """All behind the scheme, if nobody can tell where a password ends."""

    @property
    def secret_user(self) -> bool:
        """Whether the user is a token."""
        return bool(self.user) and self.password is None and _is_web(self.scheme)


def absolute(uri: str) -> str:
    """Return an address valid from any directory: the path of a SQLite file becomes absolute."""
    prefix = "sqlite:///"
    if not uri.startswith(prefix) or uri.startswith(f"{prefix}:memory:"):
        return uri
    path, question, query = unquote(uri.removeprefix(prefix)).partition("?")
    return f"{prefix}{Path(path).absolute()}{question}{query}" if path else uri


def masked(uri: str) -> str:
    """Return an address with every secret replaced by ``***``.

    Parameters
    ----------
    uri : str
        The whole address, and nothing else; `hidden` takes a text.
    """
    found = _parsed(uri)
    if found is None or found.unclear:
        return uri if found is None else f"{found.scheme}***"
    user = "***" if found.secret_user else found.user
    login = "" if not user and found.password is None else f"{user}{'' if found.password is None else ':***'}@"
    query = "".join(f"{before}{name}{'' if secret is None else '***'}" for before, name, secret in found.query)
    return f"{found.scheme}{login}{found.place}{query}"


def hidden(text: str, uris: Iterable[str | None] = ()) -> str:
    """Return a text without the secrets of some addresses, and without those of the addresses that stand in it.

    Parameters
    ----------
    text : str
        A message of another library.
    uris : iterable of str
        The addresses that the call knew. Their secrets are hidden wherever they stand.
    """
    for secret in sorted({one for uri in uris if uri for one in _secrets(uri)}, key=len, reverse=True):
        text = text.replace(secret, "***")
    without = _WITHIN.sub(lambda found: masked(found[0]), text)
    return _VALUE.sub(lambda found: f"{found['name']}=***" if _SECRET.search(found["name"][1:]) else found[0], without)


def bare(uri: str) -> str:
    """Return an address without its secrets, to be kept on disk; the user of a database says whose tables they are."""
    found = _parsed(uri)
    if found is None or found.unclear:
        return masked(uri)
    login = "" if not found.user or _is_web(found.scheme) else f"{found.user}@"
    query = ""
    for before, name, secret in found.query:
        if secret is None:
            query += ("?" if before in "&;" and "?" not in query else before) + name
    return f"{found.scheme}{login}{found.place}{query}"


def complete(uri: str, given: str | None = None) -> str:
    """Return a bare address with the secrets that this process knows.

    Parameters
    ----------
    uri : str
        An address as the spool keeps it.
    given : str, optional
        An address that the caller gave. MLflow's present setting counts too.
    """
    import mlflow

    known = (given, mlflow.get_tracking_uri(), os.environ.get("MLFLOW_TRACKING_URI"))
    return next((one for one in known if one and bare(absolute(one)) == uri), uri)


def where_to_look(uri: str, experiment_id: str, run_id: str) -> str:
    """Return the address of a run on a server, or the command that serves a local store.

    MLflow opens in its mode for language models unless the address asks for the one that trains models.
    """
    if _is_web(uri):
        return f"{masked(uri).rstrip('/')}/#/experiments/{experiment_id}/runs/{run_id}?workflowType=machine_learning"
    if uri.startswith("databricks"):
        return f"run {run_id} of experiment {experiment_id} at {uri}"
    return f"mlflow ui --backend-store-uri {shlex.quote(masked(uri))}"


def _is_web(uri: str) -> bool:
    return uri.lower().startswith(("http://", "https://"))


def _parsed(uri: str) -> _Address | None:
    whole = _WHOLE.fullmatch(uri)
    if whole is None:
        return None
    scheme, rest, web = whole["scheme"], whole["rest"], _is_web(uri)
    place = re.split("[?#]", rest, maxsplit=1)[0]
    server, slash, path = place.partition("/")
    login, at, host = server.rpartition("@")
    # A password with a slash or a question mark ends in the path or the query, and what is before that looks like a
    # host: nothing of such an address can be shown.
    behind = rest if not _HOST.fullmatch(server) else path if web or ":" in server else ""
    if server and not at and "@" in behind:
        return _Address(scheme, "", None, "", (), rest)
    user, colon, password = login.partition(":")
    query = tuple(_settings(rest[len(place) :], web=web))
    return _Address(scheme, user, password if colon else None, f"{host}{slash}{path}", query)


def _settings(query: str, *, web: bool) -> Iterator[tuple[str, str, str | None]]:
    """Yield the settings of a query; the route of a page, as in ``#/runs/...``, is no secret."""
    parts = re.split("([?&;#])", query)
    for before, part in zip(parts[1::2], parts[2::2], strict=True):
        name, equals, value = part.partition("=")
        if not equals:
            yield (before, "", part) if web and part and not part.startswith("/") else (before, part, None)
        elif (web and name.lower() not in _HARMLESS) or _SECRET.search(name):
            yield before, f"{name}=", value
        else:
            yield before, part, None


def _secrets(uri: str) -> Iterable[str]:
    """Yield the secrets of an address as they are written, and as they are meant."""
    found = _parsed(uri)
    if found is None:
        return
    values = [found.password, found.user if found.secret_user else None, found.unclear]
    for value in (*values, *(secret for _, _, secret in found.query)):
        yield from (one for one in (value, unquote(value or "")) if one and len(one) > 2)


def store(uri: str | None) -> str:
    """Return the address of the tracking store, valid from any directory."""
    if uri is None:
        import mlflow

        uri = mlflow.get_tracking_uri()
    return absolute(uri)


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def run_context() -> dict[str, str]:
    """Return the tags that MLflow gives a new run: user, source, commit."""
    from mlflow.tracking.context import registry

    return {key: str(value) for key, value in registry.resolve_tags().items() if value is not None}
