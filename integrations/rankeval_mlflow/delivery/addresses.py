"""Addresses of stores: valid from any directory, without secrets on disk and in messages, complete for a call.

A secret is a password, the user of a web address, or a value of the query such as ``token=``. A record in the spool
keeps the bare address. Whoever sends it takes the secrets from an address that is the same but for them: one that is
given, or MLflow's present setting. MLflow's own variables (``MLFLOW_TRACKING_TOKEN`` ...) work as always.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

_WEB = {"http", "https"}
_NAMES = r"[\w.\-]*(?:token|passw|pwd|secret|api_?key|access_?key|signature|credential|odbc_connect)[\w.\-]*|sig|key"
# The user, and the password if there is one, of any address within a text.
_USER = re.compile(r"(?P<scheme>[A-Za-z][\w+.\-]*)://(?P<user>[^\s/?#:@'\"]*)(?P<password>:[^\s/?#'\"]*)?@")
_QUERY = re.compile(rf"(?P<before>[?&;])(?P<name>{_NAMES})=(?P<value>[^\s&;#'\"]*)", re.IGNORECASE)


def absolute(uri: str) -> str:
    """Return an address valid from any directory: the path of a SQLite file becomes absolute."""
    prefix = "sqlite:///"
    if not uri.startswith(prefix) or uri.startswith(f"{prefix}:memory:"):
        return uri
    path, question, query = unquote(uri.removeprefix(prefix)).partition("?")
    return f"{prefix}{Path(path).absolute()}{question}{query}" if path else uri


def masked(text: str) -> str:
    """Return an address, or a text with addresses, with every secret replaced by ``***``."""
    return _QUERY.sub(r"\g<before>\g<name>=***", _USER.sub(_masked_user, text))


def hidden(text: str, uris: Iterable[str | None]) -> str:
    """Return a text without the secrets of some addresses, wherever they stand in it.

    Parameters
    ----------
    text : str
        A message of another library.
    uris : iterable of str
        The addresses that the call knew.
    """
    for secret in sorted({one for uri in uris if uri for one in _secrets(uri)}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return masked(text)


def bare(uri: str) -> str:
    """Return an address without its secrets, to be kept on disk."""
    without = _QUERY.sub(lambda found: found["before"] if found["before"] == "?" else "", _USER.sub(_bare_user, uri))
    return re.sub(r"\?(?:[&;]|$)", lambda found: "?" if found[0][1:] else "", without)


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
    if urlsplit(uri).scheme in _WEB:
        return f"{masked(uri).rstrip('/')}/#/experiments/{experiment_id}/runs/{run_id}?workflowType=machine_learning"
    if uri.startswith("databricks"):
        return f"run {run_id} of experiment {experiment_id} at {uri}"
    return f"mlflow ui --backend-store-uri {shlex.quote(masked(uri))}"


def _masked_user(found: re.Match[str]) -> str:
    user = "***" if found["scheme"].lower() in _WEB and not found["password"] else found["user"]
    return f"{found['scheme']}://{user}{':***' if found['password'] else ''}@"


def _bare_user(found: re.Match[str]) -> str:
    """Keep the user of a database: it says whose tables they are."""
    user = "" if found["scheme"].lower() in _WEB else f"{found['user']}@"
    return f"{found['scheme']}://{user}"


def _secrets(uri: str) -> Iterable[str]:
    """Yield the secrets of an address as they are written, and as they are meant."""
    found = [value for one in _USER.finditer(uri) if one["password"] for value in [one["password"][1:]]]
    found += [one["user"] for one in _USER.finditer(uri) if one["scheme"].lower() in _WEB and not one["password"]]
    found += [one["value"] for one in _QUERY.finditer(uri)]
    for value in found:
        yield from (one for one in (value, unquote(value)) if len(one) > 2)
