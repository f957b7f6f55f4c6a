"""How another package offers itself to rankeval: as a host.

A host writes runs to an experiment server, or adds commands to the command line, or both. It declares one `Host` under
the entry-point group ``rankeval.hosts``; the name of the entry point is the host's name. Installed hosts appear in
``rankeval doctor`` and the errors of experiment files, and those with commands in ``rankeval --help``. Nothing else
imports a host before it is asked for by name::

    [project.entry-points."rankeval.hosts"]      # the package's pyproject.toml
    diary = "diary.host:HOST"

    HOST = Host("Runs in a text file", tracker=Diary)                  # its module diary/host.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import wraps
from importlib.metadata import entry_points
from inspect import signature
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

from rankeval._arguments import explained
from rankeval._registry import chosen
from rankeval._secrets import hidden

GROUP = "rankeval.hosts"

_P = ParamSpec("_P")
_R = TypeVar("_R")

Observer = Callable[[Mapping[str, Any]], AbstractContextManager[Callable[[Any], None]]]
"""Called with the arguments of an observed function by name. The function runs inside the context manager, which gives
a function for its result; so an observer sees errors and refusals too."""

OBSERVERS: list[Observer] = []
"""Observers of `observed` functions, as a host's automatic logging; empty unless somebody switched one on."""


def observed(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let `OBSERVERS` watch the calls of a function.

    Parameters
    ----------
    function : callable
        The function.
    """
    spec = signature(function)

    @wraps(function)
    def watched(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with ExitStack() as stack:
            tell = [stack.enter_context(one(spec.bind(*args, **kwargs).arguments)) for one in OBSERVERS]
            result = function(*args, **kwargs)
            for one in tell:
                one(result)
        return result

    return watched


@dataclass(frozen=True)
class LoggedData:
    """A data set that a run used: its name, its full digest, its role and its source, without secrets of addresses."""

    name: str
    digest: str
    role: str
    n_rows: int
    n_queries: int
    source: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", hidden(self.name))
        object.__setattr__(self, "source", self.source and hidden(self.source))


@dataclass(frozen=True)
class RunRecord:
    """One run for a tracker, with its children.

    Parameters
    ----------
    name : str
        Name of the run.
    params, metrics, tags : mapping
        Plain values; metric names are the MLflow-safe keys of measures.
    evaluations : mapping of str to Evaluation
        Evaluations by role ("dev", "test"). The tracker writes their aggregates, per-query scores and cards.
    comparison : Comparison, optional
        A comparison; the tracker writes its table.
    data : tuple of LoggedData
        The data sets that the run used.
    artifacts : mapping of str to bytes
        Files by path.
    children : tuple of RunRecord
        Nested runs.
    said : mapping of str to str
        A sentence by role, for the page of the evaluation: such as what the guard says of the test part.
    started : float, optional
        When the work began, in seconds since the epoch; by default the run begins when it is logged.
    seconds : float, optional
        How long the work took by the clock on the wall; by default the run ends when it is logged.
    model : object, optional
        The fitted ranker that the evaluations are of, for a logged model; or the bytes to which the host packed it.
    rows : array or frame of shape (n_some_rows, n_features), optional
        Some rows of features, from which the tracker takes the names and types of the columns that the model reads.
    folds : CrossValidation, optional
        The cross-validation on the dev part, whose folds are logged.
    status : {"FINISHED", "FAILED"}
        How the work ended.
    reason : str
        Why it failed, for the description of the run.
    key : str, optional
        Identity of the work: a record of the same key that still waits to be sent is sent instead of logging again.
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
    said: Mapping[str, str] = field(default_factory=dict)
    started: float | None = None
    seconds: float | None = None
    model: Any | None = None
    rows: Any | None = None
    folds: Any | None = None
    status: Literal["FINISHED", "FAILED"] = "FINISHED"
    reason: str = ""
    key: str | None = None


@dataclass(frozen=True)
class TrackedRun:
    """The ids of a logged run, of its children and of its models, and one line that says how to look at it."""

    run_id: str
    children: tuple[TrackedRun, ...]
    where: str
    models: tuple[str, ...] = ()


class Tracker(Protocol):
    """Writes runs to an experiment server."""

    def log(self, record: RunRecord, *, experiment: str, uri: str | None = None) -> TrackedRun:
        """Write the record and its children. If the server refuses, keep them on disk and raise ``TrackingError``."""
        ...


@dataclass(frozen=True)
class Host:
    """What a host package offers.

    Parameters
    ----------
    title : str
        A few words for people, shown in help and by ``rankeval doctor``.
    tracker : callable, optional
        Returns a `Tracker`, with no arguments. It imports what it needs when it is called.
    commands : callable, optional
        Returns a Typer application, with no arguments; ``rankeval NAME ...`` runs it.
    default_uri : str, optional
        The address that an experiment file means if it has no ``tracking.uri``.
    check : callable, optional
        Called before an experiment loads data, with the name of the experiment on the server and the address. It
        raises InvalidInput if a run can never be logged there, and returns a sentence if it cannot be logged now, but
        would be kept for later; else None.
    pack : callable, optional
        Called with a fitted ranker and some rows of features; it returns the bytes of a model without pickle. An
        experiment keeps them with the cached result, so that a later run logs the same model without training.
    label : str, optional
        The name for people, such as "MLflow"; by default the name of the entry point.
    push : callable, optional
        Called as ``push(record, name=, experiment=, uri=)`` with a `rankeval.Record` of any kind, the name of its
        folder, the name of the experiment on the server, and the address or None; it stores the record and returns a
        `TrackedRun`. It stores every file of the record unchanged, or says that it keeps numbers only; it passes over
        parts of a kind that it does not know. If it has other content under this name, it raises InvalidInput.
        With ``rankeval push --run``, ``run=`` is given too: the id of a run to write to.
        ``rankeval push`` calls it, and `rankeval.testing.check_host` tries it.
    """

    title: str
    tracker: Callable[[], Tracker] | None = None
    commands: Callable[[], Any] | None = None
    default_uri: str | None = None
    check: Callable[[str, str | None], str | None] | None = None
    pack: Callable[[Any, Any], bytes] | None = None
    label: str | None = None
    push: Callable[..., TrackedRun] | None = None


def host_names() -> list[str]:
    """Return the names of the installed hosts, without importing any."""
    return sorted({point.name for point in entry_points(group=GROUP)})


@explained
def host(name: str) -> Host:
    """Import a host by its name.

    Parameters
    ----------
    name : str
        Name of an entry point in the group ``rankeval.hosts``.

    Raises
    ------
    UnknownName
        If no installed package offers it.
    """
    points = {point.name: point for point in entry_points(group=GROUP)}
    found: Host = points[chosen("host", name, points)].load()
    return found


def shown_host(name: str) -> Host:
    """Return an installed host as the help shows it; of one that cannot be loaded, the title says why.

    One broken host must not break the help. It counts as one with commands, so that the help names it.

    Parameters
    ----------
    name : str
        One of `host_names`.
    """
    try:
        return host(name)
    except Exception as error:  # noqa: BLE001 - the code of another package may raise anything
        return Host(f"cannot be loaded: {type(error).__name__}: {error}", commands=lambda: None)
