"""Deliver an upload: keep it on disk, send it, and say what to do if the store refuses.

A refusal is passing or permanent (`connection`). After a passing one the upload waits for
``rankeval mlflow resend``. After a permanent one its runs end as FAILED, and it waits as
undeliverable: it is sent again only if it is named.

Uploads to one run take turns on this machine, since each reads what the run holds and then adds to
it. One from another machine may still be faster: then the run is read again.

An experiment tries the store first (`check_store`), so that no look at the test part is spent on
what cannot be logged.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankeval._secrets import bare, hidden
from rankeval.errors import InvalidInput, RankevalError, TrackingError, warn
from rankeval.ledger.discovery import place_of
from rankeval.ledger.folder import try_writing
from rankeval.tracking import TrackedRun
from rankeval_mlflow.delivery import spool
from rankeval_mlflow.delivery.addresses import absolute
from rankeval_mlflow.delivery.connection import (
    complete,
    connected,
    is_no_store,
    is_overtaken,
    is_permanent,
    no_such_host,
    reason,
    store,
)
from rankeval_mlflow.delivery.payload import Payload, checked_experiment, storable
from rankeval_mlflow.delivery.upload import Steps, refuse_deleted
from rankeval_mlflow.run_names import name_hash

# A report of many queries is drawn within seconds; a process that sends one for longer hangs.
_PATIENCE = 600.0
# How often others may be faster with a row: once for each kind of row that uploads have in common
# is plenty.
_OVERTAKEN = 5
# Seconds in which a store writes the rest of a batch: MLflow writes its parameters first, and our
# tag of the role last.
_REST_OF_A_BATCH = 0.2
# Seconds to wait for another upload to the same run, and the runs whose turn this thread has.
_LONGEST_TURN = 60.0
_TURNS = threading.local()


def deliver(payload: Payload, *, aggregates: bool = True) -> TrackedRun:
    """Write a payload to the spool and send it.

    If an upload of the same work waits (`spool.identity`), it is sent instead, and a warning says
    so: a caller that was told of a failure, or was killed, logs again. Equal payloads of which none
    waits are logged once each.
    """
    payload = storable(payload)
    with contextlib.ExitStack() as stack:
        if twin := _twin(payload, stack):
            return _sent(*twin, aggregates=aggregates)
        upload = _kept(payload, stack)
        try:
            return _sent(upload, payload, aggregates=aggregates, fresh=True)
        except InvalidInput:
            upload.remove()
            raise


def send(
    upload: spool.PendingUpload,
    *,
    uri: str | None = None,
    patience: float = _PATIENCE,
) -> TrackedRun | None:
    """Send a waiting upload, and delete it from the spool once the server has it."""
    with spool.locked_upload(upload, patience) as ours:
        if not ours:
            raise TrackingError(
                f"another process is sending the upload {upload.id}", remedy="wait for it"
            )
        if not upload.folder.is_dir():
            return None
        return _sent(upload, _addressed(spool.read_payload(upload), uri))


def _addressed(payload: Payload, uri: str | None) -> Payload:
    target = payload.target
    address = complete(target.uri) if uri is None else absolute(uri)
    registry = target.registry_uri
    if registry is not None:
        registry = address if registry == target.uri else complete(registry, uri)
    return replace(payload, target=replace(target, uri=address, registry_uri=registry))


def _twin(
    payload: Payload, stack: contextlib.ExitStack
) -> tuple[spool.PendingUpload, Payload] | None:
    """Return a waiting upload of the same work that nobody sends, locked, and its payload."""
    upload = spool.waiting_twin(payload)
    if upload is None:
        return None
    try:
        if not stack.enter_context(spool.locked_upload(upload)) or not upload.folder.is_dir():
            return None
        kept = spool.read_payload(upload)
    except RankevalError as error:
        warn(f"an upload of the same work waits, but cannot be sent: {error}")
        return None
    warn(
        f"the upload {upload.id} of the same work waited in {upload.folder.parent}: it is sent, and no second one"
    )
    target = replace(kept.target, uri=payload.target.uri, registry_uri=payload.target.registry_uri)
    return upload, replace(kept, target=target)


def _kept(payload: Payload, stack: contextlib.ExitStack) -> spool.PendingUpload:
    upload: spool.PendingUpload
    upload, problems = _in_a_folder(lambda folder: spool.put(payload, stack, folder))
    if problems:
        warn(
            f"{spool.unwritable(problems[0])}; until it is sent, an upload is kept in {upload.folder.parent}. "
            "Set RANKEVAL_SPOOL to a folder of your own"
        )
    return upload


def _in_a_folder(write: Callable[[Path], Any]) -> tuple[Any, list[OSError]]:
    """Write to the spool, or to the spare folder; return the result, and the spool's problems."""
    problems: list[OSError] = []
    for folder in spool.spool_directories():
        try:
            return write(folder), problems
        except OSError as error:
            problems.append(error)
    raise TrackingError(
        f"{spool.unwritable(problems[0])}, and no temporary folder",
        remedy="set RANKEVAL_SPOOL to a folder that can be written",
    )


def _sent(
    upload: spool.PendingUpload, payload: Payload, *, aggregates: bool = True, fresh: bool = False
) -> TrackedRun:
    try:
        with connected(payload.target.uri, payload.target.registry_uri) as client:
            steps = Steps(client, upload, payload, aggregates=aggregates, fresh=fresh)
            try:
                tracked = _whole(steps)
            except Exception as error:
                if _for_good(error):
                    steps.end_failed()
                raise
    except Exception as error:
        # Stores and artifact repositories raise whatever their own clients raise.
        why = hidden(reason(error), (payload.target.uri, payload.target.registry_uri))
        if _for_good(error):
            upload.remember({**upload.sent(), "refused": why})
        if isinstance(error, RankevalError):
            raise
        raise TrackingError(_message(upload, payload, why, for_good=_for_good(error))) from error
    upload.remove()
    spool.tidy()
    return tracked


def _whole(steps: Steps) -> TrackedRun:
    with _turn(steps.payload.target.run_id or steps.payload.root.mark):
        # Another process may be faster with a row that uploads share: that of a data set, or a
        # parameter of the run.
        for _ in range(_OVERTAKEN):
            try:
                return steps.whole()
            except Exception as error:
                if not is_overtaken(error):
                    raise
            time.sleep(_REST_OF_A_BATCH)
        return steps.whole()


@contextlib.contextmanager
def _turn(run_id: str) -> Iterator[None]:
    """Let uploads to a run, by its id or mark, take turns; one that waits for too long goes on."""
    mine = vars(_TURNS).setdefault("runs", set())
    if not run_id or run_id in mine:
        yield
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(TimeoutError):
            stack.enter_context(spool.alone(f"run-{name_hash(run_id)}", _LONGEST_TURN))
        mine.add(run_id)
        stack.callback(mine.discard, run_id)
        yield


def _for_good(error: Exception) -> bool:
    return isinstance(error, InvalidInput) or (
        not isinstance(error, RankevalError) and is_permanent(error)
    )


def _message(upload: spool.PendingUpload, payload: Payload, why: str, *, for_good: bool) -> str:
    run_id = upload.sent()["runs"].get("0")
    begun = "" if run_id is None else f" after run {run_id} was begun"
    first = f"the tracking store {bare(payload.target.uri)} refused{begun}: {why}"
    again = f"rankeval mlflow resend {upload.id}"
    kept = f"{first}\nNothing is lost: everything is kept in {upload.folder}\n"
    if not for_good:
        return f"{kept}When the store is back, send it again with:  {again}"
    return (
        f"{kept}The store would refuse it again as it is. Once the cause is gone, send it with:  {again}\n"
        f"or to another address with:  {again} --uri ADDRESS"
    )


def check_store(experiment: str, uri: str | None = None) -> str | None:
    """Find out whether an experiment can be logged; a database that does not exist is not made."""
    where = store(uri)
    checked_experiment(experiment)
    _in_a_folder(try_writing)
    if _will_be_made(where):
        return None
    try:
        with connected(where) as client:
            refuse_deleted(client.get_experiment_by_name(experiment))
    except InvalidInput:
        raise
    except Exception as error:
        if is_no_store(error):
            raise InvalidInput(
                f"MLflow knows no kind of tracking store that is written {bare(where)}"
            ) from error
        why = hidden(reason(error), [where])
        if no_such_host(error):
            raise InvalidInput(
                f"the tracking store {bare(where)} cannot be found ({why}): correct its address"
            ) from error
        if is_permanent(error):
            raise TrackingError(f"the tracking store {bare(where)} refuses: {why}") from error
        return (
            f"the tracking store {bare(where)} cannot be reached now ({why}); the run will be kept on disk "
            "to be sent later"
        )
    return None


def _will_be_made(where: str) -> bool:
    """Return whether the store is a new file of SQLite; raise if it cannot be written."""
    # A file is no server that may be back later.
    kind, path = place_of(where)
    if kind != "sqlite" or not path or path.startswith((":memory:", "file:")):
        return False
    try:
        is_new = not Path(path).exists()
        if is_new:
            try_writing(Path(path).parent)
        else:
            with contextlib.closing(sqlite3.connect(path)) as connection:
                connection.execute("BEGIN IMMEDIATE")
    except (OSError, sqlite3.Error) as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
            raise TrackingError(f"the tracking store {bare(where)} refuses: {error}") from error
    return is_new
