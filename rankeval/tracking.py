"""What a host package may offer, and how it is found.

A host (an experiment server, say) registers one object under the entry-point group ``rankeval.hosts``; the object
offers any of the protocols below. The library imports it only when it is asked for by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Protocol

from rankeval._registry import unknown


@dataclass(frozen=True)
class LoggedData:
    """A data set that a run used: its name, full digest, role and where it came from."""

    name: str
    digest: str
    role: str
    n_rows: int
    n_queries: int
    source: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """One run to be written to a tracker, whole, with its children.

    Parameters
    ----------
    name : str
        Name of the run.
    params, metrics, tags : mapping
        Plain values; metric names are the MLflow-safe keys of measures.
    evaluations : mapping of str to Evaluation
        By role ("dev", "test"); the tracker writes their aggregates, per-query scores and cards.
    comparison : Comparison, optional
        Written as a table.
    data : tuple of LoggedData
        What the run was fed with.
    artifacts : mapping of str to bytes
        Files by path.
    children : tuple of RunRecord
        Nested runs.
    """

    name: str
    params: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    evaluations: Mapping[str, Any] = field(default_factory=dict)
    comparison: Any | None = None
    data: tuple[LoggedData, ...] = ()
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    children: tuple[RunRecord, ...] = ()


@dataclass(frozen=True)
class TrackedRun:
    """Where a record went: the run's id, those of its children, and a line that says how to look at it."""

    run_id: str
    children: tuple[TrackedRun, ...]
    where: str


class Tracker(Protocol):
    """Writes runs to an experiment server."""

    def log(self, record: RunRecord, *, experiment: str, uri: str | None = None) -> TrackedRun:
        """Write the record and its children; keep it on disk and raise `TrackingError` where the server refuses."""
        ...


class Commands(Protocol):
    """Adds a group of commands to the command line."""

    def commands(self) -> Any:
        """Return a Typer application."""
        ...


@dataclass(frozen=True)
class Host:
    """A host's offers; each is a function that imports what it needs, or None."""

    name: str
    tracker: Any | None = None
    commands: Any | None = None


GROUP = "rankeval.hosts"


def host_names() -> list[str]:
    """Return the names of the installed hosts, without importing any."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def host(name: str) -> Host:
    """Import the host of this name.

    Parameters
    ----------
    name : str
        Name of an entry point in the group ``rankeval.hosts``.

    Raises
    ------
    UnknownName
        When no installed package offers it.
    """
    for point in entry_points(group=GROUP):
        if point.name == name:
            found: Host = point.load()
            return found
    raise unknown("host", name, host_names())
