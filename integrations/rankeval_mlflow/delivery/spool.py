"""The spool: keep every upload on disk until the server has all of it.

An upload is written whole before the first byte goes to a server, so a crash or a dead server loses nothing. Each one
is a folder in ``$RANKEVAL_SPOOL`` or else in the user's data directory (``~/.local/share/rankeval/spool``
on Linux)::

    <time>-<random>/record.json     the payload, with the hashes of its files
                    files/<node>/   the artifacts of each run
                    models/<node>/  the fitted models of each run, in folders 0, 1, ...
                    sent.json       ids of the runs that a server has made so far

A folder gets its name only when it is whole, so every folder without a leading dot can be sent. A lock beside the
folder keeps two processes from sending it at the same time.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rankeval.errors import InvalidInput, RankevalError, TrackingError
from rankeval_mlflow.delivery.locks import take
from rankeval_mlflow.delivery.payload import (
    FORMAT,
    DatasetUse,
    Node,
    Payload,
    Rendering,
    SavedModel,
    Scores,
    Target,
    manifest,
    plain,
    walk,
)
from rankeval_mlflow.layout import manifest_path
from rankeval_mlflow.names import sha256


def spool_directory() -> Path:
    """Return the folder of the pending uploads: ``$RANKEVAL_SPOOL``, or one in the user's data directory."""
    if chosen := os.environ.get("RANKEVAL_SPOOL"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local"))
    elif sys.platform == "darwin":
        base = Path("~/Library/Application Support")
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share")
    return base.expanduser() / "rankeval" / "spool"


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

    def with_manifest(self, place: str, node: Node) -> Path:
        """Write the manifest of a node to the folder of its artifacts, and return the folder."""
        _write(self.files(place) / manifest_path(node.label), manifest(node))
        return self.files(place)

    def model(self, place: str, index: int) -> Path:
        """Return the folder of a model of a node."""
        return self.folder / "models" / place / str(index)

    def sent(self) -> dict[str, Any]:
        """Return the progress of earlier attempts: ``{"runs": {place: run id}, "asked": [places]}``."""
        path = self.folder / "sent.json"
        state = _plain(path) if path.exists() else {}
        return {"runs": {}, "asked": [], **state}

    def remember(self, state: dict[str, Any]) -> None:
        """Write the progress to disk."""
        _write(self.folder / "sent.json", json.dumps(state).encode())

    def remove(self) -> None:
        """Delete the folder. It is renamed first, so that nobody sees half of it."""
        gone = self.folder.with_name(f".{self.id}.gone")
        self.folder.rename(gone)
        shutil.rmtree(gone)


def put(payload: Payload) -> PendingUpload:
    """Write a payload to the spool, whole or not at all.

    Parameters
    ----------
    payload : Payload
        The payload.

    Returns
    -------
    PendingUpload
        Its folder.

    Raises
    ------
    TrackingError
        If the spool cannot be written.
    """
    spool = spool_directory()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(payload.created_ms / 1000))
    upload = PendingUpload(spool / f"{stamp}-{secrets.token_hex(4)}")
    draft = upload.folder.with_name(f".{upload.id}.draft")
    try:
        # For their owner only: an address may hold a password, and test scores are private.
        spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.mkdir(mode=0o700)
        for place, node in walk(payload.root):
            for path, content in node.files.items():
                _write(draft / "files" / place / _inside(path), content)
            for index, model in enumerate(node.models):
                for path, content in model.files.items():
                    _write(draft / "models" / place / str(index) / _inside(path), content)
        _write(draft / "record.json", json.dumps(_as_json(payload), indent=1).encode())
        draft.rename(upload.folder)
    except InvalidInput:
        shutil.rmtree(draft)
        raise
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise TrackingError(
            f"nothing was logged: the spool {spool} cannot be written ({error}); "
            "set RANKEVAL_SPOOL to a directory that can be written"
        ) from error
    return upload


def waiting() -> list[PendingUpload]:
    """Return the pending uploads, oldest first."""
    spool = spool_directory()
    if not spool.is_dir():
        return []
    return [
        PendingUpload(path)
        for path in sorted(spool.iterdir())
        if (path / "record.json").is_file() and path.name[0] != "."
    ]


def read(upload: PendingUpload) -> Payload:
    """Read the payload of an upload and check its files against their hashes.

    Raises
    ------
    TrackingError
        If a file was altered, or another version wrote a format that this one cannot read.
    """
    path = upload.folder / "record.json"
    found = _plain(path)
    if found.get("format") != FORMAT:
        raise TrackingError(
            f"the pending upload {path} has format {found.get('format')!r}, this version of rankeval reads {FORMAT}; "
            "send it with the version that wrote it"
        )
    try:
        version = found["model_version"]
        return Payload(
            target=Target(**found["target"]),
            root=_node(upload, found["nodes"], "0"),
            created_ms=found["created_ms"],
            context=found["context"],
            model_id=found["model_id"],
            model_version=(version[0], version[1]) if version else None,
        )
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        if isinstance(error, RankevalError):
            raise
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise TrackingError(f"{path} was altered: {why}; it is not sent") from error


def _plain(path: Path) -> dict[str, Any]:
    """Read a JSON file of the spool."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TrackingError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise TrackingError(f"{path} was altered: expected a JSON object")
    return found


@contextlib.contextmanager
def locked(upload: PendingUpload) -> Iterator[bool]:
    """Lock an upload while it is sent; yield False if another process holds the lock.

    The lock ends with its process, so a crash leaves none behind.
    """
    path = upload.folder.with_name(f".{upload.id}.lock")
    with path.open("w") as handle:
        try:
            take(handle.fileno())
        except OSError:
            yield False
            return
        yield True
    if not upload.folder.exists():
        path.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    """Write a file; it gets its name when it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(path)


def _inside(path: str) -> PurePosixPath:
    """Return the path of an artifact; raise if it leads out of the folder."""
    inside = PurePosixPath(path)
    if inside.is_absolute() or not inside.parts or ".." in inside.parts or "\\" in path:
        raise InvalidInput(f"the path of an artifact is {path!r}; expected a path such as 'plots/curve.png'")
    return inside


def _as_json(payload: Payload) -> dict[str, Any]:
    """Return the payload as plain values; a file is its hash."""
    return {
        "format": FORMAT,
        "created_ms": payload.created_ms,
        "target": asdict(payload.target),
        "context": dict(payload.context),
        "model_id": payload.model_id,
        "model_version": payload.model_version,
        "nodes": {place: plain(node) for place, node in walk(payload.root)},
    }


def _node(upload: PendingUpload, nodes: dict[str, Any], place: str) -> Node:
    """Return one node of an upload with its children."""
    values = nodes[place]
    below: list[Node] = []
    while (child := f"{place}-{len(below)}") in nodes:
        below.append(_node(upload, nodes, child))
    rebuilt = {
        "scores": tuple(Scores(**part) for part in values["scores"]),
        "datasets": tuple(DatasetUse(**use) for use in values["datasets"]),
        "files": _files(upload.files(place), values["files"]),
        "steps": tuple((key, value, step) for key, value, step in values["steps"]),
        "renderings": tuple(Rendering(**{**part, "tables": tuple(part["tables"])}) for part in values["renderings"]),
        "models": tuple(
            SavedModel(**{**model, "files": _files(upload.model(place, index), model["files"])})
            for index, model in enumerate(values["models"])
        ),
        "children": tuple(below),
    }
    return Node(**{**values, **rebuilt})


def _files(folder: Path, hashes: dict[str, str]) -> dict[str, bytes]:
    """Return the bytes of files by path; raise if a hash changed."""
    found = {path: (folder / _inside(path)).read_bytes() for path in hashes}
    for path, content in found.items():
        if sha256(content) != hashes[path]:
            raise TrackingError(f"{folder / path} was altered; it is not sent")
    return found
