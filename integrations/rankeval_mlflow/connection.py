"""How MLflow is spoken to: in seconds rather than minutes, and without its chatter.

Out of the box MLflow tries a dead server for about four minutes, prints "View run ..." lines when a run ends, logs
the steps of a fresh database to stderr and shows progress bars. Settings that a user made in the environment stand.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from rankeval_mlflow.locks import held
from rankeval_mlflow.spool import spool_directory

# Two retries ride out a hiccup; a server that is gone is reported after about three seconds.
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
}
# For the first question only: whether anybody is there.
_KNOCK = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
# MLflow makes its tables in some 10 s, on a busy machine in a minute.
_CREATION = 120.0
_QUIET = {
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIQUERY_COUNTS_PROGRESS_BAR": "false",
}
# urllib3 warns of every retry; what came of them stands in the error.
_TALKATIVE = {"mlflow": logging.WARNING, "alembic": logging.WARNING, "urllib3.connectionpool": logging.ERROR}


@contextlib.contextmanager
def environment(settings: dict[str, str]) -> Iterator[None]:
    """Set environment variables that nobody has set, and take them back.

    Parameters
    ----------
    settings : dict
        Variable -> value.
    """
    ours = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Keep what MLflow tells of its doings, its database migrations and its retries off stderr."""
    before = {name: logging.getLogger(name).level for name in _TALKATIVE}
    for name, level in _TALKATIVE.items():
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.getEffectiveLevel(), level))
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextlib.contextmanager
def connected(uri: str, registry_uri: str | None = None) -> Iterator[Any]:
    """Give a client whose store has answered once, for calls that are quiet and end in seconds.

    Parameters
    ----------
    uri : str
        The tracking store.
    registry_uri : str, optional
        The model registry, where it is another one.

    Yields
    ------
    mlflow.MlflowClient
        The client.
    """
    from mlflow import MlflowClient  # sets its loggers up when first imported, so before they are hushed

    with environment(_QUIET), environment(_PATIENCE), _hushed():
        client = MlflowClient(tracking_uri=uri, registry_uri=registry_uri)
        with _replaced(_KNOCK), _alone(uri):
            client.search_experiments(max_results=1)
        yield client


@contextlib.contextmanager
def _alone(uri: str) -> Iterator[None]:
    """Let one process at a time open a local SQLite store: the first makes its tables, and two at once would fail."""
    if not absolute(uri).startswith("sqlite:///"):
        yield
        return
    name = hashlib.sha256(absolute(uri).encode()).hexdigest()[:16]
    with held(spool_directory() / f".store-{name}.lock", _CREATION):
        yield


@contextlib.contextmanager
def _replaced(settings: dict[str, str]) -> Iterator[None]:
    """Shorten what `_PATIENCE` set, where it was us who set it."""
    before = {name: os.environ[name] for name in settings if os.environ.get(name) == _PATIENCE[name]}
    os.environ.update({name: settings[name] for name in before})
    try:
        yield
    finally:
        os.environ.update(before)


def absolute(uri: str) -> str:
    """Return the address so that it means the same from any directory: relative SQLite files are made absolute."""
    prefix = "sqlite:///"
    if not uri.startswith(prefix) or uri.startswith(f"{prefix}:memory:"):
        return uri
    path, question, query = unquote(uri.removeprefix(prefix)).partition("?")
    return f"{prefix}{Path(path).absolute()}{question}{query}" if path else uri


def masked(uri: str) -> str:
    """Return the address without its password, for messages."""
    parts = urlsplit(uri)
    if parts.password is None:
        return uri
    return urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", ":***@")))


def where_to_look(uri: str, experiment_id: str, run_id: str) -> str:
    """Return a line that leads to a run: its address on a server, else the command that serves the store."""
    if urlsplit(uri).scheme in {"http", "https"}:
        return f"{masked(uri).rstrip('/')}/#/experiments/{experiment_id}/runs/{run_id}"
    if uri.startswith("databricks"):
        return f"run {run_id} of experiment {experiment_id} at {uri}"
    return f"mlflow ui --backend-store-uri {shlex.quote(masked(uri))}"


def reason(error: BaseException) -> str:
    """Return in one line why a call failed: the system's own word where the network is to blame."""
    innermost = error
    while deeper := innermost.__cause__ or innermost.__context__:
        innermost = deeper
    if isinstance(innermost, ConnectionError | TimeoutError | socket.gaierror):
        return innermost.strerror or str(innermost) or type(innermost).__name__
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
