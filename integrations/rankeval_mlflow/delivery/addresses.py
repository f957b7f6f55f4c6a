"""Addresses of stores: valid from any directory, without secrets on disk, in messages and links, complete for a call.

A secret is a password, the user of a web address, or a value of the query or after ``#``: of a web address all values
but those of a few names, of the address of a database those of names such as ``password``. If nobody can tell where a
password ends, since it has letters that an address does not allow, nothing of the address is shown.

People and the spool get the bare address: a browser that follows ``http://me:***@host`` would log in with a wrong
password. Whoever sends a record takes the secrets from an address that is the same but for them: one that is given, or
MLflow's present setting. MLflow's own variables (``MLFLOW_TRACKING_TOKEN`` ...) work as always.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

_HARMLESS = {"o", "workspace", "workflowtype"}  # names in the query of a web address
_SECRET = re.compile(
    r"token|pass|pwd|secret|api[_.-]?key|access[_.-]?key|signature|credential|odbc_connect|authorization|jwt|bearer"
    r"|cookie|session|^(?:x[_.-])?(?:auth|key|pw|sig|code)$",
    re.IGNORECASE,
)
# Addresses, and settings of addresses without a host, in the message of another library. The bounds keep a search
# linear in a text of any length.
_WITHIN = re.compile(r"\b[A-Za-z][\w+.\-]{0,30}://[^\s'\"<>]*")
_VALUE = re.compile(r"(?P<name>[?&;][\w.\-]{1,100})=[^\s&;#'\"]+")


def absolute(uri: str) -> str:
    """Return an address valid from any directory: the path of a SQLite file becomes absolute."""
    prefix = "sqlite:///"
    if not uri.startswith(prefix) or uri.startswith(f"{prefix}:memory:"):
        return uri
    path, question, query = unquote(uri.removeprefix(prefix)).partition("?")
    return f"{prefix}{Path(path).absolute()}{question}{query}" if path else uri


def bare(uri: str) -> str:
    """Return an address without its secrets; the user of a database stays, who says whose tables they are.

    Parameters
    ----------
    uri : str
        The whole address, and nothing else; `hidden` takes a text.
    """
    found = ""
    for shown, _ in _parts(uri):
        # The first setting of a query that is shown may have been a later one.
        found += f"?{shown[1:]}" if shown[:1] in {"&", ";"} and "?" not in found else shown
    return found


def hidden(text: str, uris: Iterable[str | None] = ()) -> str:
    """Return a text without the secrets of some addresses, and without those of the addresses that stand in it.

    Parameters
    ----------
    text : str
        A message of another library.
    uris : iterable of str
        The addresses that the call knew. Their secrets are hidden wherever they stand, as written and as meant.
    """
    secrets = [secret for uri in uris if uri for _, secret in _parts(uri)]
    for secret in sorted({*secrets, *map(unquote, secrets)}, key=len, reverse=True):
        text = text.replace(secret, "***") if len(secret) > 2 else text
    without = _WITHIN.sub(lambda found: bare(found[0]), text)
    return _VALUE.sub(lambda found: f"{found['name']}=***" if _SECRET.search(found["name"][1:]) else found[0], without)


def _parts(uri: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of an address from left to right: what is shown of each, and the secret in it."""
    scheme, mark, rest = uri.partition("://")
    yield scheme + mark, ""
    if not mark or not _is_clear(rest):
        yield ("***" if rest else ""), rest
        return
    web = _is_web(uri)
    place = re.split("[?#]", rest, maxsplit=1)[0]
    server, slash, path = place.partition("/")
    login, _, host = server.rpartition("@")
    user, colon, password = login.partition(":")
    yield (f"{user}@" if user and not web else ""), password if colon or not web else user  # a user alone is a token
    yield f"{host}{slash}{path}", ""
    parts = re.split("([?&;#])", rest[len(place) :])
    for before, part in zip(parts[1::2], parts[2::2], strict=True):
        name, equals, value = part.partition("=")
        if equals:
            secret = (web and name.lower() not in _HARMLESS) or _SECRET.search(name) is not None
        else:
            value, secret = part, web and part != "" and not part.startswith("/")  # "#/runs/1" is the route of a page
        yield ("", value) if secret else (f"{before}{part}", "")


def _is_clear(rest: str) -> bool:
    """Return whether it is known where the password of an address ends, given what follows its scheme.

    A password with a slash or a question mark ends in the path or the query, and what is before that looks like a host.
    """
    try:
        found = urlsplit(f"//{rest}")
        _ = found.port
    except ValueError:  # no host and port
        return "@" not in rest
    return "@" in found.netloc or not found.netloc or "@" not in found.path + found.fragment


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
        return f"{bare(uri).rstrip('/')}/#/experiments/{experiment_id}/runs/{run_id}?workflowType=machine_learning"
    if uri.startswith("databricks"):
        return f"run {run_id} of experiment {experiment_id} at {uri}"
    return f"mlflow ui --backend-store-uri {shlex.quote(bare(uri))}"


def _is_web(uri: str) -> bool:
    return uri.lower().startswith(("http://", "https://"))


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
