"""Try a tracking store before an experiment: what can never be logged there must not cost a look at the test part."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from pathlib import Path

from mlflow.tracking.registry import UnsupportedModelRegistryStoreURIException

from rankeval.errors import InvalidInput, TrackingError
from rankeval.ledger.discovery import sqlite_path
from rankeval_mlflow.delivery.addresses import hidden, masked, store
from rankeval_mlflow.delivery.connection import connected, is_permanent, no_such_host, reason
from rankeval_mlflow.delivery.payload import checked_experiment
from rankeval_mlflow.delivery.spool import spool_directories, spool_directory
from rankeval_mlflow.delivery.steps import refuse_deleted


def check_store(experiment: str, uri: str | None = None) -> str | None:
    """Find out whether an experiment can be logged.

    Parameters
    ----------
    experiment : str
        Its name on the store.
    uri : str, optional
        The tracking store; by default MLflow's own setting.

    Returns
    -------
    str, optional
        A sentence if the store cannot be reached now, so that the run would be kept on disk to be sent later; or if
        nothing can be kept on disk.

    Raises
    ------
    InvalidInput
        If MLflow knows no such kind of store, its host name does not resolve, it does not take the name of the
        experiment, or the experiment was deleted there.
    TrackingError
        If the store refuses for good, its file of SQLite cannot be written, or it cannot be reached and nothing can be
        kept on disk.
    """
    where = store(uri)
    checked_experiment(experiment)
    kept = _what_keeps()
    _refuse_no_database(where)
    try:
        with connected(where) as client:
            refuse_deleted(client.get_experiment_by_name(experiment))
    except InvalidInput:
        raise
    except UnsupportedModelRegistryStoreURIException as error:
        raise InvalidInput(f"MLflow knows no kind of tracking store that is written {masked(where)}") from error
    except Exception as error:
        why = hidden(reason(error), [where])
        if no_such_host(error):
            raise InvalidInput(
                f"the tracking store {masked(where)} cannot be found ({why}): correct its address"
            ) from error
        if is_permanent(error):
            raise TrackingError(f"the tracking store {masked(where)} refuses: {why}") from error
        if kept:
            raise TrackingError(
                f"the tracking store {masked(where)} cannot be reached now ({why}), and {kept}"
            ) from error
        return (
            f"the tracking store {masked(where)} cannot be reached now ({why}); the run will be kept on disk "
            "to be sent later"
        )
    return kept


def _refuse_no_database(where: str) -> None:
    """Refuse a file of SQLite that cannot be written: it is no server that may be back later."""
    path = sqlite_path(where)
    if not path or path.startswith((":memory:", "file:")):
        return
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)  # as MLflow does
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    except (OSError, sqlite3.Error) as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
            raise TrackingError(f"the tracking store {masked(where)} refuses: {error}") from error


def _what_keeps() -> str | None:
    """Return a sentence if nothing can be kept on disk."""
    why = ""
    for folder in spool_directories():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.closing(tempfile.TemporaryFile(dir=folder)):
                return None
        except OSError as error:
            why = why or str(error.strerror)
    return f"the folder of pending uploads {spool_directory()} cannot be written: {why}"
