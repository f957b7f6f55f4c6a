"""The spool: every record is whole on disk before the first byte goes to a server, and leaves when it has arrived.

One folder per record, in ``$RANKEVAL_SPOOL`` or else in the user's data directory (``~/.local/share/rankeval/spool``
on Linux)::

    <time>-<random>/record.json     the parcel, its files by hash
                    files/<node>/   the artifacts of each run, as they will lie there
                    sent.json       run ids, remembered as soon as they exist

A folder is written under a name with a leading dot and renamed when it is whole, so that a folder which can be seen
can be sent. A lock beside it keeps two processes from sending it at the same time.
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
from rankeval_mlflow.locks import take
from rankeval_mlflow.names import sha256
from rankeval_mlflow.parcel import FORMAT, DatasetUse, Node, Parcel, Scores, Target, contents, walk


def spool_directory() -> Path:
    """Return where records wait: ``$RANKEVAL_SPOOL``, or the user's data directory."""
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
class Record:
    """A parcel that lies in the spool."""

    folder: Path

    @property
    def id(self) -> str:
        """Return its name: sortable by time."""
        return self.folder.name

    def files(self, place: str) -> Path:
        """Return the folder of a node's artifacts."""
        return self.folder / "files" / place

    def sent(self) -> dict[str, Any]:
        """Return what is known of earlier sendings: ``{"runs": {place: run id}, "asked": [places]}``."""
        path = self.folder / "sent.json"
        state = _plain(path) if path.exists() else {}
        return {"runs": {}, "asked": [], **state}

    def remember(self, state: dict[str, Any]) -> None:
        """Keep what has been sent, before the next thing is."""
        _write(self.folder / "sent.json", json.dumps(state).encode())

    def remove(self) -> None:
        """Take the record off the disk: renamed first, so that half a folder is never seen."""
        gone = self.folder.with_name(f".{self.id}.gone")
        self.folder.rename(gone)
        shutil.rmtree(gone)


def put(parcel: Parcel) -> Record:
    """Write a parcel to the spool, whole or not at all.

    Parameters
    ----------
    parcel : Parcel
        What is to be sent.

    Returns
    -------
    Record
        Where it lies.

    Raises
    ------
    TrackingError
        When the disk does not take it.
    """
    spool = spool_directory()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(parcel.created_ms / 1000))
    record = Record(spool / f"{stamp}-{secrets.token_hex(4)}")
    draft = record.folder.with_name(f".{record.id}.draft")
    try:
        # Readable by their owner only: an address may hold a password, and test scores are nobody else's business.
        spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.mkdir(mode=0o700)
        for place, node in walk(parcel.root):
            for path, content in node.files.items():
                _write(draft / "files" / place / _inside(path), content)
        _write(draft / "record.json", json.dumps(_as_json(parcel), indent=1).encode())
        draft.rename(record.folder)
    except InvalidInput:
        shutil.rmtree(draft)
        raise
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise TrackingError(
            f"nothing was logged: the spool {spool} cannot be written ({error}); "
            "set RANKEVAL_SPOOL to a directory that can"
        ) from error
    return record


def waiting() -> list[Record]:
    """Return the records that lie in the spool, oldest first."""
    spool = spool_directory()
    if not spool.is_dir():
        return []
    return [
        Record(path) for path in sorted(spool.iterdir()) if (path / "record.json").is_file() and path.name[0] != "."
    ]


def read(record: Record) -> Parcel:
    """Return the parcel of a record, its files checked against their hashes.

    Raises
    ------
    TrackingError
        When it was altered, or was written by a version of another format.
    """
    path = record.folder / "record.json"
    plain = _plain(path)
    if plain.get("format") != FORMAT:
        raise TrackingError(
            f"the record {path} has format {plain.get('format')!r}, this version of rankeval reads {FORMAT}; "
            "send it with the version that wrote it"
        )
    try:
        version = plain["model_version"]
        return Parcel(
            target=Target(**plain["target"]),
            root=_node(record, plain["nodes"], "0"),
            created_ms=plain["created_ms"],
            context=plain["context"],
            model_id=plain["model_id"],
            model_version=(version[0], version[1]) if version else None,
        )
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        if isinstance(error, RankevalError):
            raise
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise TrackingError(f"{path} was altered: {why}; it will not be sent") from error


def _plain(path: Path) -> dict[str, Any]:
    """Return what a file of the spool says."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TrackingError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise TrackingError(f"{path} was altered: it holds no JSON object")
    return found


@contextlib.contextmanager
def locked(record: Record) -> Iterator[bool]:
    """Hold a record while it is sent; yields False when another process holds it.

    The lock goes with the process that holds it, so a crash leaves none behind.
    """
    path = record.folder.with_name(f".{record.id}.lock")
    with path.open("w") as handle:
        try:
            take(handle.fileno())
        except OSError:
            yield False
            return
        yield True
    if not record.folder.exists():
        path.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    """Write a file and have it on the disk before it gets its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(path)


def _inside(path: str) -> PurePosixPath:
    """Return an artifact's path, or refuse one that would lead out of its folder."""
    inside = PurePosixPath(path)
    if inside.is_absolute() or not inside.parts or ".." in inside.parts or "\\" in path:
        raise InvalidInput(f"the artifact path is {path!r}; a path such as 'plots/curve.png' is expected")
    return inside


def _as_json(parcel: Parcel) -> dict[str, Any]:
    """Return the parcel as plain values, files by hash."""
    return {
        "format": FORMAT,
        "created_ms": parcel.created_ms,
        "target": asdict(parcel.target),
        "context": dict(parcel.context),
        "model_id": parcel.model_id,
        "model_version": parcel.model_version,
        "nodes": {place: contents(node) for place, node in walk(parcel.root)},
    }


def _node(record: Record, nodes: dict[str, Any], place: str) -> Node:
    """Return one node of a record with the nodes under it."""
    plain = nodes[place]
    below: list[Node] = []
    while (child := f"{place}-{len(below)}") in nodes:
        below.append(_node(record, nodes, child))
    return Node(
        name=plain["name"],
        label=plain["label"],
        params=plain["params"],
        metrics=plain["metrics"],
        tags=plain["tags"],
        scores=tuple(Scores(**part) for part in plain["scores"]),
        datasets=tuple(DatasetUse(**use) for use in plain["datasets"]),
        files={path: _file(record, place, path, digest) for path, digest in plain["files"].items()},
        sections=plain["sections"],
        children=tuple(below),
    )


def _file(record: Record, place: str, path: str, digest: str) -> bytes:
    """Return an artifact's bytes, or say that they are not what was written."""
    content = (record.files(place) / _inside(path)).read_bytes()
    if sha256(content) != digest:
        raise TrackingError(f"{record.files(place) / path} is not what was written there; it will not be sent")
    return content
