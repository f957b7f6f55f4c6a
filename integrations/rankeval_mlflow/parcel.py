"""What is sent to MLflow, as plain values: no evaluation, no client, nothing that a later version could not read.

A parcel is a tree of nodes, one for each run. It is made whole before anything is sent, written to disk by
`rankeval_mlflow.spool` and sent from there by `rankeval_mlflow.sending`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rankeval_mlflow.names import sha256

FORMAT = 1


@dataclass(frozen=True)
class Target:
    """Where a parcel goes: a store, and in it a run that exists, or an experiment by id or name."""

    uri: str
    registry_uri: str | None = None
    run_id: str | None = None
    experiment_id: str | None = None
    experiment_name: str | None = None


@dataclass(frozen=True)
class Scores:
    """The aggregates of one evaluation: under bare keys when its role is the run's first, else under role/key."""

    role: str
    metrics: Mapping[str, float]
    dataset_name: str
    dataset_digest: str
    evaluation_sha256: str


@dataclass(frozen=True)
class DatasetUse:
    """A data set that a run read, and as what."""

    name: str
    digest: str
    role: str
    source: str | None
    profile: Mapping[str, int]


@dataclass(frozen=True)
class Node:
    """One run: what it is called and all that is written to it.

    Parameters
    ----------
    name : str
        Name of the run, when it is a new one.
    label : str
        What this piece of writing is called in the run's completeness tag.
    params, metrics, tags : mapping
        Under names that MLflow takes; metrics finite.
    scores : tuple of Scores
        Aggregates of evaluations.
    datasets : tuple of DatasetUse
        Data set inputs.
    files : mapping of str to bytes
        Artifacts by path.
    sections : mapping of str to str
        Parts of the run's description, in Markdown, by key.
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
class Parcel:
    """A tree of runs with where it goes, when it was made and what the registry is told of it."""

    target: Target
    root: Node
    created_ms: int
    context: Mapping[str, str] = field(default_factory=dict)
    model_id: str | None = None
    model_version: tuple[str, str] | None = None


def walk(root: Node, path: str = "0") -> Iterator[tuple[str, Node]]:
    """Yield every node with its place in the tree ("0", "0-0", "0-1", ...), parents first."""
    yield path, root
    for index, child in enumerate(root.children):
        yield from walk(child, f"{path}-{index}")


def contents(node: Node) -> dict[str, Any]:
    """Return all that one node writes, files by their hash, as a plain mapping."""
    return {
        "name": node.name,
        "label": node.label,
        "params": dict(node.params),
        "metrics": dict(node.metrics),
        "tags": dict(node.tags),
        "scores": [
            {
                "role": part.role,
                "metrics": dict(part.metrics),
                "dataset_name": part.dataset_name,
                "dataset_digest": part.dataset_digest,
                "evaluation_sha256": part.evaluation_sha256,
            }
            for part in node.scores
        ],
        "datasets": [
            {
                "name": use.name,
                "digest": use.digest,
                "role": use.role,
                "source": use.source,
                "profile": dict(use.profile),
            }
            for use in node.datasets
        ],
        "files": {path: sha256(content) for path, content in sorted(node.files.items())},
        "sections": dict(node.sections),
    }


def seal(node: Node) -> tuple[int, str]:
    """Return how many things a node writes, and the hash of them: what the completeness tag says."""
    written = contents(node)
    things = ("params", "metrics", "tags", "datasets", "files", "sections")
    count = sum(len(written[thing]) for thing in things) + sum(len(part.metrics) for part in node.scores)
    return count, sha256(json.dumps(written, sort_keys=True).encode())
