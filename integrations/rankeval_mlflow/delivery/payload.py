"""The data of one upload to MLflow, as plain values that every later version can read.

A payload is a tree of nodes, one node for each run. `packing` makes it, `spool` writes it to disk, and `sending` sends
it from there.

`fitted` makes a payload such that a store can take it: what is too long is cut or refused at once. What a store would
refuse for good must not be found out after a look at a test part, and not at every resend again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rankeval.errors import InvalidInput
from rankeval_mlflow.flavours.mlmodel import SavedModel
from rankeval_mlflow.layout import MAX_NAME, MAX_TAG, safe_name, sha256

FORMAT = 2

# Not sealed: the same content may be logged again at another time, and drawn files change with a version.
_UNSEALED = ("started_ms", "ended_ms", "renderings")
MAX_EXPERIMENT, MAX_DATASET, _MAX_SOURCE = 500, 500, 60_000


@dataclass(frozen=True)
class Target:
    """The destination of a payload: a store, and in it an existing run, or an experiment by id or name."""

    uri: str
    registry_uri: str | None = None
    run_id: str | None = None
    experiment_id: str | None = None
    experiment_name: str | None = None


@dataclass(frozen=True)
class Scores:
    """The aggregates of one evaluation. The first role of a run has bare keys, every other role has ``role/key``."""

    role: str
    metrics: Mapping[str, float]
    dataset_name: str
    dataset_digest: str
    evaluation_sha256: str
    step: int = 0


@dataclass(frozen=True)
class DatasetUse:
    """A data set that a run read, with its role."""

    name: str
    digest: str
    role: str
    source: str | None
    profile: Mapping[str, int]


@dataclass(frozen=True)
class Rendering:
    """Files that are drawn from a primary file when a node is sent, and again at a resend: never part of the seal.

    Parameters
    ----------
    kind : str
        Which files: a name that `views.render` knows, such as ``"evaluation"`` or ``"comparison"``.
    source : str
        The artifact path of the primary file of the same node.
    into : str
        The folder among the artifacts to which the paths of the drawn files are relative; ``""`` for the root.
    options : mapping
        Plain values for the drawing.
    tables : tuple of str
        The drawn paths that MLflow shows as tables.
    """

    kind: str
    source: str
    into: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Node:
    """One run and its content.

    Parameters
    ----------
    name : str
        Name of the run if it is a new one.
    label : str
        Name of this content in the completeness tag of the run.
    params, metrics, tags : mapping
        Values under names that MLflow accepts; metrics are finite.
    scores : tuple of Scores
        Aggregates of evaluations.
    datasets : tuple of DatasetUse
        Inputs of the run.
    files : mapping of str to bytes
        Artifacts by path.
    sections : mapping of str to str
        Sections of the run's description, in Markdown, by key.
    children : tuple of Node
        Nested runs.
    started_ms, ended_ms : int, optional
        When the run began and ended. By default when the call that logs began, and when the sending ends.
    status : str
        The status of the ended run.
    steps : tuple of (key, value, step)
        Metrics with a step: folds, epochs.
    renderings : tuple of Rendering
        Files drawn from primary files when they are sent.
    models : tuple of SavedModel
        Fitted models of the run.
    facts : mapping of str to mapping
        Plain values for the manifest, by the name of what they describe: a role, a comparison, ``"record"``.
    """

    name: str
    label: str
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    scores: tuple[Scores, ...] = ()
    datasets: tuple[DatasetUse, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)
    children: tuple[Node, ...] = ()
    started_ms: int | None = None
    ended_ms: int | None = None
    status: str = "FINISHED"
    steps: tuple[tuple[str, float, int], ...] = ()
    renderings: tuple[Rendering, ...] = ()
    models: tuple[SavedModel, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Payload:
    """A tree of runs and its destination.

    Parameters
    ----------
    target : Target
        The destination.
    root : Node
        The run and its children.
    created_ms : int
        When the call that logs began.
    context : mapping of str to str
        Tags of every new run.
    model_id : str, optional
        The logged model that the evaluations are of.
    model_version : (name, version), optional
        The version of a registered model that gets the aggregates as tags.
    key : str, optional
        Identity of the work, such as the digest of an experiment. By default two payloads of equal content and target
        are the same work. A payload that still waits is sent instead of another one of the same work.
    """

    target: Target
    root: Node
    created_ms: int
    context: Mapping[str, str] = field(default_factory=dict)
    model_id: str | None = None
    model_version: tuple[str, str] | None = None
    key: str | None = None


def walk(root: Node, path: str = "0") -> Iterator[tuple[str, Node]]:
    """Yield every node and its place in the tree ("0", "0-0", "0-1", ...), parents first."""
    yield path, root
    for index, child in enumerate(root.children):
        yield from walk(child, f"{path}-{index}")


def plain(node: Node) -> dict[str, Any]:
    """Return a node without its children as plain values; a file is its hash."""
    bare = replace(node, files={}, children=(), models=tuple(replace(model, files={}) for model in node.models))
    values = asdict(bare)
    del values["children"]
    for values_of, model in zip(values["models"], node.models, strict=True):
        values_of["files"] = _hashes(model.files)
    return {**values, "files": _hashes(node.files)}


def contents(node: Node) -> dict[str, Any]:
    """Return everything that one node writes as plain values: the content of its manifest."""
    return {key: value for key, value in plain(node).items() if key not in _UNSEALED}


def manifest(node: Node) -> bytes:
    """Return the manifest of a node: `contents` as JSON, equal for equal content."""
    written = contents(node)
    facts = written.pop("facts")  # keep their order: the first measure is the one that counts
    ordered = json.loads(json.dumps(written, sort_keys=True))
    return json.dumps({**ordered, "facts": facts}, indent=1).encode()


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: sha256(content) for path, content in sorted(files.items())}


def checked_experiment(name: str) -> str:
    """Return the name of an experiment; raise if MLflow does not take it.

    Parameters
    ----------
    name : str
        The name.

    Raises
    ------
    InvalidInput
        If it is empty, has more than 500 characters, or has some that cannot be shown.
    """
    if not name.strip() or not name.isprintable():
        raise InvalidInput(f"the name of the experiment is {name!r}; expected a name of characters that can be shown")
    if len(name) > MAX_EXPERIMENT:
        raise InvalidInput(
            f"the name of the experiment has {len(name)} characters: {name[:40]!r}...; "
            f"MLflow takes at most {MAX_EXPERIMENT}"
        )
    return name


def fitted(payload: Payload) -> Payload:
    """Return a payload that a store can take: long names of runs and data sets are cut, with a hash at the end.

    Parameters
    ----------
    payload : Payload
        The payload.

    Raises
    ------
    InvalidInput
        If MLflow does not take the name of the experiment, of a metric, of a parameter or of a tag.
    """
    if payload.target.experiment_name is not None:
        checked_experiment(payload.target.experiment_name)
    return replace(payload, root=_fitted(payload.root))


def cut(name: str, longest: int) -> str:
    """Return a name of at most so many characters, in one line; names that differ stay different."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    return shown if len(shown) <= longest else f"{shown[: longest - 11]}...{sha256(name.encode())[:8]}"


def _fitted(node: Node) -> Node:
    for keys in (node.metrics, node.params, node.tags, [key for key, _, _ in node.steps]):
        _check_keys(keys)
    return replace(
        node,
        name=cut(node.name, MAX_NAME),
        tags={
            key: value if len(value) <= MAX_TAG else f"{value[: MAX_TAG - 12]}... (cut)"
            for key, value in node.tags.items()
        },
        scores=tuple(_scores(scores) for scores in node.scores),
        datasets=tuple(_dataset(use) for use in node.datasets),
        children=tuple(_fitted(child) for child in node.children),
    )


def _check_keys(keys: Iterable[str]) -> None:
    for key in keys:
        if safe_name(key) != key:
            raise InvalidInput(f"MLflow does not take the name {cut(key, 80)!r}; it takes {safe_name(key)[:80]!r}")


def _scores(scores: Scores) -> Scores:
    _check_keys(scores.metrics)
    return replace(scores, dataset_name=cut(scores.dataset_name, MAX_DATASET))


def _dataset(use: DatasetUse) -> DatasetUse:
    return replace(use, name=cut(use.name, MAX_DATASET), source=use.source and use.source[:_MAX_SOURCE])
