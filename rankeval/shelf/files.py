"""The host `files`: records as folders on a disk, without a server.

::

    <address>/<experiment>/<name>/                         what `rankeval push` sends
                           <name>-<time>-<key>/            a run of `rankeval run`
                           metrics.json, params.yaml       numbers of its last whole run, as DVC reads them

The folders of runs are never changed. The two files of DVC are replaced, because DVC compares them
under one name over commits.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankeval._checks import refuse, shown
from rankeval.tracking import Host, RunRecord, StoredRun, TrackedRun

if TYPE_CHECKING:
    from rankeval.shelf.record import Record

DEFAULT = "results"
_NAME = "record.json"  # `folder.NAME`, without its imports
_VIEWS = {"report": "report.html", "queries": "queries.html"}
"""Titles and files of the pages that may accompany a record."""


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
    name = place.relative_to(folder).as_posix()
    return StoredRun(name, partial(_read, place), views=views)


def _read(place: Path) -> Record:
    """Read a record, and hold its files against their hashes: a reader of lists must not show altered ones."""
    from rankeval.shelf import folder

    return folder.with_hashes_checked(folder.read(place))


class FileTracker:
    """Writes each run to a folder of its own, and its numbers beside it for DVC."""

    def log(self, record: RunRecord, *, experiment: str, uri: str | None = None) -> TrackedRun:
        """Write a run and its children to a folder."""
        made = record_of(record)
        moment = time.gmtime(record.started)
        name = f"{record.name}-{time.strftime('%Y%m%d-%H%M%S', moment)}-{(record.key or '')[:8]}"
        run = _push(made, name=name.strip("-"), experiment=experiment, uri=uri)
        if record.status == "FINISHED":
            _write_for_dvc(made, _folder(experiment, uri))
        where = run.where.replace("rankeval.load", "rankeval.read_record")
        return TrackedRun(run.run_id, (), where)


def record_of(run: RunRecord) -> Record:
    """Return a run as a record: what a folder of it has."""
    from rankeval.shelf.record import Record

    data = {used.role: used for used in reversed(run.data)}
    parts = {}
    for role, evaluation in run.evaluations.items():
        note = run.said.get(role, "")
        parts[role] = evaluation.record(role=role, data=data.get(role), note=note)
    if run.folds is not None:
        parts["dev"] = run.folds.record(predictions=False)  # with the evaluation
    if run.comparison is not None:
        parts["comparison"] = run.comparison.record()
    unsaved = "the fitted ranker is not stored" if run.model is not None else ""
    return Record(
        run.tags.get("rankeval.kind", "run"),
        run.name,
        run.tags.get("rankeval.headline", ""),
        params=run.params,
        metrics=run.metrics,
        files=run.artifacts,
        notes=tuple(filter(None, (run.reason, unsaved))),
        tags=run.tags,
        data=run.data,
        parts=parts,
        children={child.name: record_of(child) for child in run.children},
        status=run.status,
        started=run.started,
        seconds=run.seconds,
    )


def _write_for_dvc(record: Record, folder: Path) -> None:
    import yaml

    from rankeval.io.opening import write_atomically

    content = json.dumps(_metrics(record), indent=1, allow_nan=False)
    write_atomically(folder / "metrics.json", [content.encode()])
    params = yaml.safe_dump(_params(record), allow_unicode=True)
    write_atomically(folder / "params.yaml", [params.encode()])


def _metrics(record: Record) -> dict[str, Any]:
    metrics: dict[str, Any] = _numbers(record)
    for role, part in record.parts.items():
        metrics[role] = _numbers(part)
        for inner in part.parts.values():  # those of a cross-validation beside their deviations
            metrics[role] |= _numbers(inner)
    return metrics | {name: _metrics(child) for name, child in record.children.items()}


def _numbers(record: Record) -> dict[str, float]:
    metrics = {name: float(value) for name, value in record.metrics.items()}
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def _params(record: Record) -> dict[str, Any]:
    return dict(record.params) | {name: _params(child) for name, child in record.children.items()}


def _check(_experiment: str, uri: str | None) -> None:
    where = uri or DEFAULT
    folder = "give a folder, such as --set tracking.uri=results"
    refuse(
        ("://" in where, f"{shown(where)} is not a folder", folder),
        (Path(where).is_file(), f"{shown(where)} is a file", folder),
    )


HOST = Host(
    "Results as folders",
    tracker=FileTracker,
    push=_push,
    default_uri=DEFAULT,
    check=_check,
    label="Folder",
    runs=_runs,
)
