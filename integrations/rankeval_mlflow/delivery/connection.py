"""MLflow as it is set up: connect with short time-outs and without its messages, read, say why a store refused.

By default MLflow retries a dead server for about four minutes, prints "View run ..." lines when a
run ends, logs the migrations of a new database to stderr, and shows progress bars. Settings of the
user in the environment win.

A refusal is *permanent* if the store understood the call and says no: a value too long, a deleted
run, missing rights. It is *passing* if the store is gone, busy or broken. A permanent one is not
worth another attempt before someone has changed something; a passing one is. One is worth it at
once: somebody else wrote the same row first (`is_overtaken`).
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import posixpath
import re
import socket
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Mapping
from http.client import responses
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import mlflow
import sqlalchemy
from mlflow import MlflowClient
from mlflow.entities import ViewType
from mlflow.exceptions import InvalidUrlException, MlflowException, RestException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from mlflow.store.db.db_types import DATABASE_ENGINES
from mlflow.tracking.context.registry import resolve_tags
from mlflow.tracking.registry import UnsupportedModelRegistryStoreURIException
from mlflow.utils.uri import add_databricks_profile_info_to_artifact_uri

from rankeval._secrets import bare, hidden
from rankeval.errors import InvalidInput, RankevalError, TrackingError
from rankeval_mlflow.delivery.addresses import absolute
from rankeval_mlflow.delivery.spool import alone
from rankeval_mlflow.run_names import name_hash
from rankeval_mlflow.versions import warn_of_breaks

T = TypeVar("T")

warn_of_breaks()

# Two retries ride out a hiccup; a server that is gone is reported after about three seconds.
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
}
# For the first request only, which shows if the server is there.
_KNOCK = {**_PATIENCE, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
# For a request that MLflow must not repeat, also if the user asks for retries.
_ONCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}

# The seconds that a driver waits for the server of a database, by the driver's own setting.
_PATIENCE_OF_DRIVERS = 10
_CONNECT_TIMEOUT = {
    **dict.fromkeys(("psycopg2", "psycopg", "pymysql", "mysqldb"), "connect_timeout"),
    "pyodbc": "timeout",
}
# MLflow makes the tables of a new database in about 10 s, on a busy machine in a minute.
_CREATION = 120.0
# A store that has just answered is not asked again whether it is there.
_FRESH = 30.0
_ANSWERED: dict[str, float] = {}
_QUIET = {
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
# urllib3 warns of every retry; the final error says enough.
_TALKATIVE = {
    "mlflow": logging.WARNING,
    "alembic": logging.WARNING,
    "urllib3.connectionpool": logging.ERROR,
}

# Answers between 400 and 499 that may be another one a moment later.
_PASSING = {408, 409, 423, 425, 429, 499}
# The answer of a proxy to these is a page of HTML.
_OF_A_PROXY = {401, 403, 408, 413, 429, 500, 502, 503, 504}
_STATUS = re.compile(r"too many (\d{3}) error responses|failed with error code (\d{3})")
# The first line of what SQLAlchemy says of a row that is there already: in SQLite and PostgreSQL,
# MySQL, SQL Server. And what MLflow says of a parameter: an upload that sees one of another value
# gives its own another name.
_TAKEN = re.compile(
    r"\([\w.]+\).*(unique constraint|duplicate entry|duplicate key)|changing param values is not allowed",
    re.IGNORECASE,
)
# Some messages repeat what was sent.
_LONGEST = 500
# A store's answers to an id that nothing has, and to a name that nothing has or can have.
GONE = {"RESOURCE_DOES_NOT_EXIST"}
NOT_THERE = {*GONE, "INVALID_PARAMETER_VALUE"}
# A router or a proxy may answer in place of the store. It is believed only when something is read:
# an upload to a run that does not exist would be dropped.
NOT_READ = {*NOT_THERE, "NOT_FOUND", "BAD_REQUEST"}
_NO_RIGHT = {"PERMISSION_DENIED", "UNAUTHENTICATED", "CUSTOMER_UNAUTHORIZED"}
DELETED_TOO: Any = ViewType.ALL
_FOR_GOOD = {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EINVAL}


@contextlib.contextmanager
def environment(settings: dict[str, str], *, overriding: bool = False) -> Iterator[None]:
    """Set environment variables, and put them back at the end."""
    before = {
        name: os.environ.get(name) for name in settings if overriding or name not in os.environ
    }
    os.environ.update({name: settings[name] for name in before})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def hushed(levels: Mapping[str, int]) -> Iterator[None]:
    """Raise the levels of loggers, and put them back at the end."""
    before = {name: logging.getLogger(name).level for name in levels}
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.getEffectiveLevel(), level))
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def store(uri: str | None) -> str:
    """Return the address of the tracking store, valid from any directory."""
    return absolute(mlflow.get_tracking_uri() if uri is None else uri)


@contextlib.contextmanager
def current_store(uri: str | None) -> Iterator[str]:
    """Make a store, if given, MLflow's current one until the end; yield the address."""
    with contextlib.ExitStack() as stack:
        if uri is not None:
            stack.callback(mlflow.set_tracking_uri, mlflow.get_tracking_uri())
            mlflow.set_tracking_uri(uri)
        yield store(uri)


def complete(uri: str, whole_uri: str | None = None) -> str:
    """Return a bare address with the secrets that this process knows."""
    known = (whole_uri, mlflow.get_tracking_uri(), os.environ.get("MLFLOW_TRACKING_URI"))
    return next((full for full in known if full and bare(absolute(full)) == uri), uri)


def run_context() -> dict[str, str]:
    """Return the tags that MLflow gives a new run: user, source, commit."""
    return {key: str(value) for key, value in resolve_tags().items() if value is not None}


@contextlib.contextmanager
def connected(uri: str, registry_uri: str | None = None) -> Iterator[Any]:
    """Yield a client whose store answered lately; its calls are quiet and fail within seconds."""
    with hushed(_TALKATIVE):
        if time.monotonic() - _ANSWERED.get(uri, -_FRESH) >= _FRESH:
            with environment(_QUIET | _KNOCK):
                _knock(uri)
                # Two processes that create the tables of a database at once would fail. Behind a
                # server the server does that. Processes on several machines must not start with an
                # empty database.
                name = f"store-{name_hash(absolute(uri))}"
                with alone(name, _CREATION) if _is_database(uri) else contextlib.nullcontext():
                    # The client opens its store, and so makes the tables, when it is made.
                    MlflowClient(tracking_uri=uri, registry_uri=registry_uri).search_experiments(
                        max_results=1
                    )
            _ANSWERED[uri] = time.monotonic()
        with environment(_QUIET | _PATIENCE):
            yield MlflowClient(tracking_uri=uri, registry_uri=registry_uri)


def _knock(uri: str) -> None:
    # MLflow tries that ten times, for more than a minute and a half.
    if not _is_database(uri) or uri.startswith("sqlite"):
        return
    url = sqlalchemy.make_url(uri)
    setting = _CONNECT_TIMEOUT.get(url.get_driver_name())
    patience = {setting: _PATIENCE_OF_DRIVERS} if setting and setting not in url.query else {}
    engine = sqlalchemy.create_engine(
        url, poolclass=sqlalchemy.pool.NullPool, connect_args=patience
    )
    with engine.connect():
        pass


def _is_database(uri: str) -> bool:
    return urlsplit(uri).scheme.partition("+")[0] in DATABASE_ENGINES


def existing(ask: Callable[..., Any], *name: Any, codes: Container[str] = NOT_THERE) -> Any | None:
    """Return what a store has under a name; None if it answers with one of the codes."""
    try:
        return ask(*name)
    except MlflowException as error:
        if error.error_code not in codes:
            raise
        return None


def made_once(make: Callable[[], T], find: Callable[[], list[T]]) -> list[T]:
    """Make something once: without MLflow's repetition, and after a lost answer look first."""

    def once() -> list[T]:
        with environment(_ONCE, overriding=True):
            return [make()]

    try:
        return once()
    except Exception as error:
        if is_permanent(error):
            raise
        return find() or once()


@contextlib.contextmanager
def translating_errors(
    uri: str, to: str, *, gone: type[RankevalError] = TrackingError
) -> Iterator[None]:
    """Raise an error of ours for that of a store that was asked to do something."""
    try:
        yield
    except MlflowException as error:
        verb = "does not let this user" if error.error_code in _NO_RIGHT else "did not"
        kind = gone if error.error_code in GONE else TrackingError
        why = hidden(reason(error), [uri])
        raise kind(f"the tracking store {bare(uri)} {verb} {to}: {why}") from error


@contextlib.contextmanager
def asking(uri: str | None, what: str) -> Iterator[Any]:
    """Yield a client for reading; whatever the store raises becomes an error of ours."""
    address = store(uri)
    with (
        translating_errors(address, f"give {what}"),
        connected(address, mlflow.get_registry_uri() if uri is None else None) as client,
    ):
        yield client


def artifact(client: Any, run: Any, path: str) -> bytes:
    """Return the bytes of an artifact."""
    # The run names the place of its artifacts; MLflow's own call would ask for the run and its
    # models again.
    where = add_databricks_profile_info_to_artifact_uri(run.info.artifact_uri, client.tracking_uri)
    repository = get_artifact_repository(where, tracking_uri=client.tracking_uri)
    with tempfile.TemporaryDirectory() as folder:
        try:
            return Path(repository.download_artifacts(path, folder)).read_bytes()
        except Exception as error:  # the stores of artifacts raise whatever their own clients raise
            raise _not_read(repository, run.info.run_id, path, error) from error


def _not_read(repository: Any, run_id: str, path: str, error: Exception) -> Exception:
    # A store that answers lists what it has: so what is gone is told from a store that does not
    # answer.
    folder = posixpath.dirname(path)
    try:
        paths = [entry.path for entry in repository.list_artifacts(folder)]
    except Exception:  # noqa: BLE001 - as above, and the first error says more
        paths = [path]
    if path not in paths:
        held = ", ".join(paths) or "nothing"
        return InvalidInput(
            f"run {run_id} no longer has the artifact {path!r}: {folder} holds {held}"
        )
    return TrackingError(
        f"the artifact {path!r} of run {run_id} cannot be read: {hidden(reason(error))}"
    )


def is_permanent(error: BaseException) -> bool:
    """Return whether another attempt would be refused for the same reason."""
    status = _status(error)
    if status is not None:
        return 400 <= status < 500 and status not in _PASSING and not is_overtaken(error)
    if _of_the_network(error):
        return False
    return any(isinstance(cause, OSError) and cause.errno in _FOR_GOOD for cause in _chain(error))


def is_overtaken(error: BaseException) -> bool:
    """Return whether somebody else wrote a row after MLflow looked and before it wrote.

    MLflow finds the row if it is asked again.
    """
    return isinstance(error, MlflowException) and _TAKEN.match(_own_words(error)) is not None


def reason(error: BaseException) -> str:
    """Return why a call failed in a short line; for a network, what the system says."""
    if innermost := _of_the_network(error):
        return innermost.strerror or str(innermost) or type(innermost).__name__
    status = _status(error)
    if status in _OF_A_PROXY and not isinstance(error, RestException):
        return f"{responses[status]} (HTTP {status})"
    lines = _own_words(error).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def no_such_host(error: BaseException) -> bool:
    """Return whether a host's name does not resolve, or an address is not a URL."""
    return isinstance(error, InvalidUrlException) or isinstance(
        _innermost(error), socket.gaierror | UnicodeError
    )


def is_no_store(error: BaseException) -> bool:
    """Return whether MLflow knows no kind of store that is written as the address is."""
    return isinstance(error, UnsupportedModelRegistryStoreURIException)


def _chain(error: BaseException) -> Iterator[BaseException]:
    deeper: BaseException | None = error
    while deeper is not None:
        yield deeper
        deeper = deeper.__cause__ or deeper.__context__


def _innermost(error: BaseException) -> BaseException:
    return list(_chain(error))[-1]


def _of_the_network(error: BaseException) -> OSError | None:
    cause = _innermost(error)
    return cause if isinstance(cause, ConnectionError | TimeoutError | socket.gaierror) else None


def _own_words(error: BaseException) -> str:
    # Without the code that MLflow puts before what its server says.
    answer = getattr(error, "json", None)
    message = answer.get("message") if isinstance(answer, dict) else None
    return str(message or error)


def _status(error: BaseException) -> int | None:
    """Return the HTTP status by which a store refused, if it answered."""
    for cause in _chain(error):
        if status := getattr(getattr(cause, "response", None), "status_code", None):
            return int(status)
        if match := _STATUS.search(str(cause)):
            return int(match[1] or match[2])
    if isinstance(error, MlflowException) and error.error_code != "INTERNAL_ERROR":
        return int(error.get_http_status_code())
    return None
