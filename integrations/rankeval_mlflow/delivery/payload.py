"""The data of one upload to MLflow, as plain values that every later version can read.

A payload is a tree of nodes, one node for each run. `packing` makes it, `spool` writes it to disk, and `sending` sends
it from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rankeval_mlflow.names import sha256

FORMAT = 1


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


@dataclass(frozen=True)
class DatasetUse:
    """A data set that a run read, with its role."""

    name: str
    digest: str
    role: str
    source: str | None
    profile: Mapping[str, int]


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


@dataclass(frozen=True)
class Payload:
    """A tree of runs, its destination, the time it was made, and the model that the registry links to it."""

    target: Target
    root: Node
    created_ms: int
    context: Mapping[str, str] = field(default_factory=dict)
    model_id: str | None = None
    model_version: tuple[str, str] | None = None


def walk(root: Node, path: str = "0") -> Iterator[tuple[str, Node]]:
    """Yield every node and its place in the tree ("0", "0-0", "0-1", ...), parents first."""
    yield path, root
    for index, child in enumerate(root.children):
        yield from walk(child, f"{path}-{index}")


def contents(node: Node) -> dict[str, Any]:
    """Return everything that one node writes as plain values; a file is its hash."""
    plain = asdict(replace(node, files={}, children=()))
    del plain["children"]
    return {**plain, "files": {path: sha256(content) for path, content in sorted(node.files.items())}}


def seal(node: Node) -> tuple[int, str]:
    """Return the number of things that a node writes, and their hash, for the completeness tag."""
    written = contents(node)
    things = ("params", "metrics", "tags", "datasets", "files", "sections")
    count = sum(len(written[thing]) for thing in things) + sum(len(part.metrics) for part in node.scores)
    return count, sha256(json.dumps(written, sort_keys=True).encode())
