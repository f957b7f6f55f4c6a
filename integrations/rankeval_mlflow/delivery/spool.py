"""The spool: keep every upload on disk until the server has all of it.

An upload is written whole before the first byte goes to a server, so a crash or a dead server loses
nothing. Each one is a folder in ``$RANKEVAL_SPOOL`` or else in the user's data directory
(``~/.local/share/rankeval/spool`` on Linux)::

    <time>-<random>/record.json     the payload, with the hashes of its files; addresses without their secrets
                    files/<node>/   the artifacts of each run
                    models/<node>/  the fitted models of each run, in folders 0, 1, ...
                    sent.json       what a server has so far, and why it refused for good

A folder gets its name only when it is whole, so every folder without a leading dot can be sent. A
lock beside the folder keeps two processes from sending it at the same time. If the spool cannot be
written, an upload is kept in the directory of temporary files.

A lock ends with its process, so a crash leaves none behind; its file is removed. That is safe,
since whoever has locked a file checks that it is still the one of that name. Else two processes
could lock two files of one name: the first removes its file while the second waits for it, and a
third makes a new one.

Users may share a spool or have one that is another's. An upload is its owner's alone: others pass
it over, and whoever may not write into the spool keeps his uploads among the temporary files.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import TypeAdapter

from rankeval._checks import said
from rankeval._secrets import bare
from rankeval.errors import RankevalError, TrackingError
from rankeval.io.opening import replacing
from rankeval.ledger.folder import take
from rankeval.shelf.folder import checked_path
from rankeval_mlflow.delivery.payload import FORMAT, Payload, Target, contents, plain_node, walk
from rankeval_mlflow.run_names import sha256

# A draft or a remnant this old belongs to a process that is gone.
_STALE = 3600.0
# Seconds to wait for the lock of a new upload: `tidy` of another process may try it before its
# maker has it.
_BESIDE_TIDY = 10.0


def spool_directory() -> Path:
    """Return the folder of pending uploads: ``$RANKEVAL_SPOOL``, or one of the user's data."""
    if chosen := os.environ.get("RANKEVAL_SPOOL"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local"))
    elif sys.platform == "darwin":
        base = Path("~/Library/Application Support")
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share")
    return base.expanduser() / "rankeval" / "spool"


def spare_directory() -> Path | None:
    """Return this user's folder for uploads that the spool cannot take, if there can be one."""
    try:
        folder = Path(tempfile.gettempdir())
    except OSError:  # no directory can be written
        return None
    if sys.platform == "win32":  # each user has a directory of temporary files
        return folder / "rankeval" / "spool"
    folder /= f"rankeval-{os.getuid()}"  # not the user's name: `su` and `setuid` leave the old one in the environment
    is_others = os.path.lexists(folder) and folder.lstat().st_uid != os.getuid()
    return None if is_others else folder / "spool"


def spool_directories() -> list[Path]:
    """Return the folders in which uploads are kept, the spool first."""
    return [folder for folder in (spool_directory(), spare_directory()) if folder]


def unwritable(problem: OSError) -> str:
    """Say why the spool cannot be written, and to whom it belongs if that is the reason."""
    folder, why = spool_directory(), problem.strerror or str(problem)
    if isinstance(problem, PermissionError):
        nearest = next(path for path in (folder, *folder.parents) if os.access(path, os.F_OK))
        try:
            owner = nearest.owner()
        except (KeyError, NotImplementedError):  # a user without a name; Windows
            owner = f"the user {nearest.stat().st_uid}"
        why += f"; {'it' if nearest == folder else nearest} belongs to {owner}"
    return f"the spool {folder} cannot be written ({why})"


@dataclass(frozen=True)
class PendingUpload:
    """A payload in the spool."""

    folder: Path

    @property
    def id(self) -> str:
        """Return the name of the folder, which begins with the time."""
        return self.folder.name

    def files(self, place: str) -> Path:
        """Return the folder of a node's artifacts."""
        return self.folder / "files" / place

    def model(self, place: str, index: int) -> Path:
        """Return the folder of a model of a node."""
        return self.folder / "models" / place / str(index)

    def sent(self) -> dict[str, Any]:
        """Return the progress of earlier attempts: ``{"runs": {place: id}, "models": ...}``."""
        path = self.folder / "sent.json"
        state = _plain(path) if path.exists() else {}
        return {"runs": {}, "models": {}, **state}

    def remember(self, state: dict[str, Any]) -> None:
        """Write the progress to disk; if it is full, a later attempt finds runs by their marks."""
        with contextlib.suppress(OSError):
            _write(self.folder / "sent.json", json.dumps(state).encode())

    def refusal(self) -> str | None:
        """Return why no store takes the upload as it is; None if another attempt is worth it."""
        why = self.sent().get("refused")
        return None if why is None else str(why)

    def remove(self) -> None:
        """Delete the folder. It is renamed first, so that nobody sees half of it."""
        gone = self.folder.with_name(f".{self.id}.gone")
        self.folder.rename(gone)
        shutil.rmtree(gone)


def put(
    payload: Payload, stack: contextlib.ExitStack | None = None, spool: Path | None = None
) -> PendingUpload:
    """Write a payload to the spool, whole or not at all."""
    spool = spool or spool_directory()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(payload.created_ms / 1000))
    upload = PendingUpload(spool / f"{stamp}-{secrets.token_hex(4)}")
    draft = PendingUpload(upload.folder.with_name(f".{upload.id}.draft"))
    try:
        # For their owner only: test scores are private.
        spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.folder.mkdir(mode=0o700)
        for place, node in walk(payload.root):
            folders = [(draft.files(place), node.files)]
            folders += [
                (draft.model(place, index), model.files) for index, model in enumerate(node.models)
            ]
            for folder, files in folders:
                for path, content in files.items():
                    _write(folder / checked_path(path), content)
        _write(draft.folder / "record.json", json.dumps(_as_json(payload), indent=1).encode())
        if stack is not None:
            stack.enter_context(held(_lock_of(upload), _BESIDE_TIDY))
        draft.folder.rename(upload.folder)
    except BaseException:
        shutil.rmtree(draft.folder, ignore_errors=True)
        raise
    return upload


def waiting() -> list[PendingUpload]:
    """Return the pending uploads that this user may read, oldest first."""
    uploads = [
        PendingUpload(path)
        for path in _kept()
        if path.name[0] != "." and os.access(path / "record.json", os.R_OK)
    ]
    return sorted(uploads, key=lambda upload: upload.id)


def _kept() -> Iterator[Path]:
    """Yield what the folders of uploads contain, as far as this user may read them."""
    for spool in spool_directories():
        with contextlib.suppress(OSError):
            yield from list(spool.iterdir())


def identity(payload: Payload) -> str:
    """Return the hash of a work: of its target, and of its key or else its content."""
    what = payload.key or [contents(node) for _, node in walk(payload.root)]
    work = [asdict(_without_secrets(payload.target)), payload.model_id, payload.model_version, what]
    return sha256(json.dumps(work, sort_keys=True).encode())


def waiting_twin(payload: Payload) -> PendingUpload | None:
    """Return a pending upload of the same work that may be sent again, if any."""
    uploads = waiting()
    wanted = identity(payload) if uploads else ""
    for upload in uploads:
        with contextlib.suppress(TrackingError):  # a damaged record is reported when it is sent
            record = _plain(upload.folder / "record.json")
            if record.get("identity") == wanted and upload.refusal() is None:
                return upload
    return None


def tidy() -> None:
    """Remove what killed processes left: drafts, half-deleted uploads, locks."""
    for path in _kept():
        # Another process is faster, or at work; or it is another user's.
        with contextlib.suppress(OSError):
            if path.name[0] == "." and path.suffix == ".lock":
                with held(path, 0):
                    pass
            elif path.suffix in {".draft", ".gone"} and time.time() - path.stat().st_mtime > _STALE:
                shutil.rmtree(path)


@contextlib.contextmanager
def locked_upload(upload: PendingUpload, patience: float = 0) -> Iterator[bool]:
    """Lock an upload while it is sent; yield False if another process keeps the lock."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(held(_lock_of(upload), patience))
        except TimeoutError:
            yield False
            return
        except OSError as error:
            raise TrackingError(
                f"the upload {upload.id} cannot be sent while {upload.folder.parent} cannot be written "
                f"({error.strerror or error})",
                remedy="let this user write there, or copy the upload to another folder and set RANKEVAL_SPOOL to it",
            ) from error
        yield True


def _lock_of(upload: PendingUpload) -> Path:
    return upload.folder.with_name(f".{upload.id}.lock")


def read_payload(upload: PendingUpload) -> Payload:
    """Read the payload of an upload and check its files against their hashes."""
    path = upload.folder / "record.json"
    record = _plain(path)
    if record.get("format") != FORMAT:
        raise TrackingError(
            f"the pending upload {path} has format {record.get('format')!r}, this version of rankeval reads {FORMAT}",
            remedy="send it with the version that wrote it",
        )
    try:
        fields = {name: record[name] for name in Payload.__dataclass_fields__ if name != "root"}
        fields["root"] = _node(upload, record["nodes"], "0")
        return TypeAdapter(Payload).validate_python(fields)
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        if isinstance(error, RankevalError):
            raise
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise TrackingError(f"{path} was altered: {why}; it is not sent") from error


def _plain(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TrackingError(f"{path} cannot be read: {said(error)}") from error
    if not isinstance(values, dict):
        raise TrackingError(f"{path} was altered: expected a JSON object")
    return values


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One name for all attempts: a killed one leaves nothing that would be sent as an artifact.
    with replacing(path, path.with_name(f".{path.name}.draft"), mode=0o600, lasting=True) as file:
        file.write(content)


def _without_secrets(target: Target) -> Target:
    registry = None if target.registry_uri is None else bare(target.registry_uri)
    return replace(target, uri=bare(target.uri), registry_uri=registry)


def _as_json(payload: Payload) -> dict[str, Any]:
    nodes = {place: plain_node(node) for place, node in walk(payload.root)}
    return {
        "format": FORMAT,
        "created_ms": payload.created_ms,
        "target": asdict(_without_secrets(payload.target)),
        "identity": identity(payload),
        "key": payload.key,
        "context": dict(payload.context),
        "model_id": payload.model_id,
        "model_version": payload.model_version,
        "nodes": nodes,
    }


def _node(upload: PendingUpload, nodes: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the plain values of a node with its files, its models and its children."""
    values = nodes[place]
    models = [
        {**model, "files": _files(upload.model(place, index), model["files"])}
        for index, model in enumerate(values["models"])
    ]
    places = takewhile(nodes.__contains__, (f"{place}-{index}" for index in count()))
    children = [_node(upload, nodes, child) for child in places]
    return {
        **values,
        "files": _files(upload.files(place), values["files"]),
        "models": models,
        "children": children,
    }


def _files(folder: Path, hashes: dict[str, str]) -> dict[str, bytes]:
    files = {path: (folder / checked_path(path)).read_bytes() for path in hashes}
    for path, content in files.items():
        if sha256(content) != hashes[path]:
            raise TrackingError(f"{folder / path} was altered; it is not sent")
    return files


@contextlib.contextmanager
def held(path: Path, patience: float) -> Iterator[None]:
    """Wait for a lock and hold it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    while (file := _locked(path)) is None:
        if time.monotonic() >= deadline:
            raise TimeoutError(f"another process has held {path} for {patience:.0f} s")
        time.sleep(0.05)
    try:
        yield
    finally:
        # Windows does not remove an open file; the next holder does.
        with contextlib.suppress(OSError):
            path.unlink()
        file.close()


def _locked(path: Path) -> BinaryIO | None:
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
    try:
        take(file)
        if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            return file
    except OSError:  # held by another, or gone since
        pass
    file.close()
    return None


@contextlib.contextmanager
def alone(name: str, patience: float) -> Iterator[None]:
    """Let one process of this machine at a time go on; without a writable folder, all."""
    with contextlib.ExitStack() as stack:
        for folder in spool_directories():
            try:
                stack.enter_context(held(folder / f".{name}.lock", patience))
                break
            except TimeoutError:
                raise
            except OSError:
                continue
        yield
