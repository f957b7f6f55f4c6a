"""The host `files`: records as folders on a shared disk, ``<address>/<experiment>/<name>``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rankeval.tracking import Host, StoredRun, TrackedRun

if TYPE_CHECKING:
    from rankeval.shelf.record import Record

DEFAULT = "results"
_NAME = "record.json"  # `folder.NAME`, without its imports
_VIEWS = {"report": "report.html", "queries": "queries.html"}
"""Titles and files of the pages that may stand beside a record."""


def _push(record: Record, *, name: str, experiment: str, uri: str | None = None) -> TrackedRun:
    from rankeval.shelf import folder  # help names the host, and must not import Arrow

    place = folder.file_names([name])[0]
    where = _folder(experiment, uri) / place
    seal = folder.write(record, where)
    return TrackedRun(seal, (), f"rankeval.load({str(where)!r})")


def _folder(experiment: str, uri: str | None) -> Path:
    from rankeval.shelf import folder

    return Path(uri or DEFAULT, folder.file_names([experiment])[0])


def _runs(*, experiment: str, uri: str | None = None) -> Iterator[StoredRun]:
    return stored_in(_folder(experiment, uri))


def stored_in(folder: Path) -> Iterator[StoredRun]:
    """Yield the records in a folder at any depth, by path; drafts and links to folders are left out."""
    unread: list[OSError] = []
    for where, folders, files in os.walk(folder, onerror=unread.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if _NAME in files:
            folders.clear()  # parts and children are read with it
            yield _stored(Path(where), folder)
    for error in unread:
        place = Path(error.filename)
        yield StoredRun(place.relative_to(folder).as_posix(), partial(_raise, error))


def _raise(error: OSError) -> Record:
    raise error


def _stored(place: Path, folder: Path) -> StoredRun:
    views = {title: place / file for title, file in _VIEWS.items() if (place / file).is_file()}
    written = (place / _NAME).lstat().st_mtime
    name = place.relative_to(folder).as_posix()
    return StoredRun(name, partial(_read, place), written, views)


def _read(place: Path) -> Record:
    """Read a record, and hold its files against their hashes: a reader of lists must not show altered ones."""
    from rankeval.shelf import folder

    return folder.with_hashes_checked(folder.read(place))


HOST = Host("Results as folders", push=_push, default_uri=DEFAULT, runs=_runs)
