"""The host `files`: records as folders on a shared disk, ``<address>/<experiment>/<name>``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankeval.tracking import Host, TrackedRun

if TYPE_CHECKING:
    from rankeval.shelf.record import Record


def _push(record: Record, *, name: str, experiment: str, uri: str | None = None) -> TrackedRun:
    from rankeval.shelf import folder  # help names the host, and must not import Arrow

    places = folder.file_names([experiment])[0], folder.file_names([name])[0]
    where = Path(uri or "results", *places)
    seal = folder.write(record, where)
    return TrackedRun(seal, (), f"rankeval.load({str(where)!r})")


HOST = Host("Results as folders", push=_push, default_uri="results")
