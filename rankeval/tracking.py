"""How another package offers itself to rankeval: as a host.

A host writes runs to an experiment server, or adds commands to the command line, or both. It
declares one `Host` under the entry-point group ``rankeval.hosts``; the name of the entry point is
the host's name. Installed hosts appear in ``rankeval doctor`` and the errors of experiment files,
and those with commands in ``rankeval --help``. Nothing else imports a host before it is asked for
by name::

    [project.entry-points."rankeval.hosts"]      # the package's pyproject.toml
    diary = "diary.host:HOST"

    HOST = Host("Runs in a text file", tracker=Diary)                  # its module diary/host.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

from rankeval._arguments import explained
from rankeval._display import Displayed, View
from rankeval._registry import chosen
from rankeval._secrets import hidden

GROUP = "rankeval.hosts"

SOURCES = "sources"
"""The fact of a promotion that has the ids of the runs of its version, with spaces between them."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

Observer = Callable[[Mapping[str, Any]], AbstractContextManager[Callable[[Any], None]]]
"""Called with the arguments of an observed function by name. The function runs inside the context manager, which gives
a function for its result; so an observer sees errors and refusals too."""

OBSERVERS: list[Observer] = []
"""Observers of `observed` functions, as a host's automatic logging; empty unless somebody switched one on."""


def observed(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let `OBSERVERS` watch the calls of a function."""
    spec = signature(function)

    @wraps(function)
    def watched(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with ExitStack() as stack:
            tell = [
                stack.enter_context(observer(spec.bind(*args, **kwargs).arguments))
                for observer in OBSERVERS
            ]
            result = function(*args, **kwargs)
            for tell_result in tell:
                tell_result(result)
        return result

    return watched


@explained
@dataclass(frozen=True, repr=False)
class LoggedData(Displayed):
    """A data set that a run used: its name, its full digest, its role and its source, without secrets of addresses."""

    name: str
    digest: str
    role: str
    n_rows: int
    n_queries: int
    source: str | None = None

    def _view(self) -> View:
        sizes = f"{self.n_queries:,} queries, {self.n_rows:,} rows"
        return View([f"LoggedData({self.name!r}, {self.role}, {sizes}, digest {self.digest[:12]})"])

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", hidden(self.name))
        object.__setattr__(self, "source", self.source and hidden(self.source))


@dataclass(frozen=True, repr=False)
class RunRecord(Displayed):
    """One run for a tracker, with its children."""

    name: str  # Name of the run
    # Plain values; metric names are the MLflow-safe keys of measures.
    params: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    # Evaluations by role ("dev", "test"). The tracker writes their aggregates, per-query scores and
    # cards.
    evaluations: Mapping[str, Any] = field(default_factory=dict)
    comparison: Any | None = None  # A comparison; the tracker writes its table
    data: tuple[LoggedData, ...] = ()  # The data sets that the run used
    artifacts: Mapping[str, bytes] = field(default_factory=dict)  # Files by path
    children: tuple[RunRecord, ...] = ()  # Nested runs
    # A sentence by role, for the page of the evaluation: such as what the guard says of the test
    # part.
    said: Mapping[str, str] = field(default_factory=dict)
    # When the work began, in seconds since the epoch; by default the run begins when it is logged.
    started: float | None = None
    # How long the work took by the clock on the wall; by default the run ends when it is logged.
    seconds: float | None = None
    # The fitted ranker that the evaluations are of, for a logged model; or the bytes to which the
    # host packed it.
    model: Any | None = None
    # (n_some_rows, n_features): Some rows of features, from which the tracker takes the names and
    # types of the columns that the model reads.
    rows: Any | None = None
    folds: Any | None = None  # The cross-validation on the dev part, whose folds are logged
    status: Literal["FINISHED", "FAILED"] = "FINISHED"  # How the work ended
    reason: str = ""  # Why it failed, for the description of the run
    # Identity of the work: a record of the same key that still waits to be sent is sent instead of
    # logging again.
    key: str | None = None

    def _view(self) -> View:
        sizes = f"{len(self.metrics)} metrics, {len(self.params)} params"
        return View([f"RunRecord({self.name!r}, {sizes}, {len(self.children)} children)"])


@dataclass(frozen=True, repr=False)
class TrackedRun(Displayed):
    """The ids of a logged run, of its children and of its models, and one line that says how to look at it."""

    run_id: str
    children: tuple[TrackedRun, ...]
    where: str
    models: tuple[str, ...] = ()

    def _view(self) -> View:
        sizes = f"{len(self.children)} children, {len(self.models)} models"
        return View([f"TrackedRun({self.run_id!r}, {sizes})", self.where])


class Tracker(Protocol):
    """Writes runs to an experiment server."""

    def log(self, record: RunRecord, *, experiment: str, uri: str | None = None) -> TrackedRun:
        """Write the record and its children. If the server refuses, keep them on disk and raise ``TrackingError``."""
        ...


@dataclass(frozen=True, repr=False)
class StoredRun(Displayed):
    """A run that a host has, to be read later."""

    name: str  # The id of the run, or the path of its folder: another one for each run
    # Returns the `rankeval.Record` of the run. It raises a RankevalError if the run is damaged or
    # not whole.
    read: Callable[[], Any]
    # When the run began, in seconds since the epoch; a record may know it better
    started: float | None = None
    # Pages for people on this machine: title -> path
    views: Mapping[str, Path] = field(default_factory=dict)

    def _view(self) -> View:
        return View([f"StoredRun({self.name!r})"])


@dataclass(frozen=True)
class Host:
    """What a host package offers."""

    title: str  # A few words for people, shown in help and by ``rankeval doctor``
    # Returns a `Tracker`, with no arguments. It imports what it needs when it is called.
    tracker: Callable[[], Tracker] | None = None
    # Returns a Typer application, with no arguments; ``rankeval NAME ...`` runs it.
    commands: Callable[[], Any] | None = None
    # The address that an experiment file means if it has no ``tracking.uri``
    default_uri: str | None = None
    # Called before an experiment loads data, with the name of the experiment on the server and the
    # address. It raises InvalidInput if a run can never be logged there, and returns a sentence if
    # it cannot be logged now, but would be kept for later; else None.
    check: Callable[[str, str | None], str | None] | None = None
    # Called with a fitted ranker and some rows of features; it returns the bytes of a model without
    # pickle. An experiment keeps them with the cached result, so that a later run logs the same
    # model without training.
    pack: Callable[[Any, Any], bytes] | None = None
    # The name for people, such as "MLflow"; by default the name of the entry point
    label: str | None = None
    # Called as ``push(record, name=, experiment=, uri=)`` with a `rankeval.Record` of any kind, the
    # name of its folder, the name of the experiment on the server, and the address or None; it
    # stores the record and returns a `TrackedRun`. It stores every file of the record unchanged, or
    # says that it keeps numbers only; it passes over parts of a kind that it does not know. If it
    # has other content under this name, it raises InvalidInput. With ``rankeval push --run``,
    # ``run=`` is given too: the id of a run to write to. ``rankeval push`` calls it, and
    # `rankeval.testing.check_host` tries it.
    push: Callable[..., TrackedRun] | None = None
    # Called as ``runs(experiment=, uri=)`` with the name of an experiment and the address or None;
    # it yields a `StoredRun` for each run of the experiment. ``rankeval site`` calls it.
    runs: Callable[..., Iterable[StoredRun]] | None = None


def host_names() -> list[str]:
    """Return the names of the installed hosts, without importing any."""
    return sorted(_entry_points())


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points  # slow to import

    return {point.name: point for point in entry_points(group=GROUP)}


@explained
def host(name: str) -> Host:
    """Import a host by its name."""
    points = _entry_points()
    found: Host = points[chosen("host", name, points)].load()
    return found


def shown_host(name: str) -> Host:
    """Return an installed host as the help shows it; of one that cannot be loaded, the title says why.

    One broken host must not break the help. It counts as one with commands, so that the help names
    it.
    """
    try:
        return host(name)
    except Exception as error:  # noqa: BLE001 - the code of another package may raise anything
        return Host(f"cannot be loaded: {type(error).__name__}: {error}", commands=lambda: None)
