"""The data of one upload to MLflow, as plain values that every later version can read.

A payload is a tree of nodes, one node for each run. `packing` makes it, `spool` writes it to disk,
and `sending` sends it from there.

`storable` makes a payload such that a store can take it: what is too long is cut or refused at once.
What a store would refuse for good must not be found out after a look at a test part, and not at
every resend again.

The file ``MLmodel`` of a saved model has no ids while it waits, and in the store the ids that the
store gave: they link predictions, traces and ``mlflow.models.evaluate`` to the logged model.

A tag says which pieces a run holds whole, and names their manifests: ``dev:3f2a9c1b7e01aa02
record(dev,test):60...`` has for each piece its label, and the first 16 digits of the SHA-256 of its
manifest. A piece has the evaluation of the role that it is called by. Roles in parentheses say
otherwise: ``record(dev,test):...`` holds two, ``final():...`` none; so do ``comparison`` and
``record`` without any. ``dev/step-3`` has the evaluation of the role dev at a step of training.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import yaml
from pydantic import ConfigDict

from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.run_names import (
    COMPLETE,
    MAX_NAME,
    MAX_TAG,
    ROLE,
    piece_tag,
    role_of,
    safe_name,
    sha256,
    short_digest,
    step_of,
)

MLMODEL = "MLmodel"


FORMAT = 2
# Not sealed: the same content may be logged again at another time, and drawn files change with a
# version.
_UNSEALED = ("started_ms", "ended_ms", "renderings", "columns", "mark", "revision", "best")
MAX_EXPERIMENT, MAX_DATASET, _MAX_SOURCE = 500, 500, 60_000
SHOWN = 16
_WITHOUT_EVALUATIONS = ("comparison", "record")
_PIECE = re.compile(r"(?P<label>[^\s():]+)(?:\((?P<roles>[^\s():]*)\))?:(?P<hash>[0-9a-f]{16})")


class _Exact:
    """Is read back from the spool with these fields and no others."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class SavedModel(_Exact):
    """A fitted model as files (``MLmodel`` at the root), which becomes a logged model of a run."""

    name: str  # Name of the model
    # The files of an MLflow model by path. The ``MLmodel`` has no ids; `identified` adds those of
    # the store.
    files: Mapping[str, bytes]
    # The parameters of the ranker, for the page of the model.
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)  # Tags of the model
    # The flavour: lightgbm, xgboost, catboost, sklearn or python_function
    flavor: str | None = None
    model_type: str | None = None  # "ranker"


def without_run_ids(content: bytes) -> bytes:
    """Return the content of an ``MLmodel`` without ids and time: equal for equal models."""
    values = yaml.safe_load(content)
    for name in ("model_uuid", "utc_time_created", "model_id", "run_id", "artifact_path"):
        values.pop(name, None)
    for flavour in values["flavors"].values():
        if isinstance(types := flavour.get("skops_trusted_types"), list):
            types.sort()  # MLflow writes a set
    return _yaml(values)


def identified(
    content: bytes, *, model_id: str, run_id: str, artifact_path: str, created_ms: int
) -> bytes:
    """Return the content of an ``MLmodel`` with the store's ids, as MLflow writes it.

    Examples
    --------
    >>> content = b"flavors: {python_function: {loader_module: mlflow.lightgbm}}"
    >>> ids = {"model_id": "m-1", "run_id": "r", "artifact_path": "mlflow-artifacts:/m-1"}
    >>> print(identified(content, **ids, created_ms=0).decode())
    artifact_path: mlflow-artifacts:/m-1
    flavors:
      python_function:
        loader_module: mlflow.lightgbm
    model_id: m-1
    model_uuid: m-1
    run_id: r
    utc_time_created: '1970-01-01 00:00:00'
    <BLANKLINE>
    """
    created = datetime.fromtimestamp(created_ms / 1000, UTC).replace(tzinfo=None)
    ids = {"model_id": model_id, "model_uuid": model_id, "run_id": run_id}
    made = {"artifact_path": artifact_path, "utc_time_created": str(created)}
    return _yaml({**yaml.safe_load(content), **ids, **made})


def _yaml(values: dict[str, Any]) -> bytes:
    return yaml.safe_dump(values, default_flow_style=False).encode()


@dataclass(frozen=True)
class Target(_Exact):
    """The destination of a payload: a store, and in it a run, or an experiment by id or name."""

    uri: str
    registry_uri: str | None = None
    run_id: str | None = None
    experiment_id: str | None = None
    experiment_name: str | None = None


@dataclass(frozen=True)
class Scores(_Exact):
    """The aggregates of one evaluation, under bare keys for the first role of a run."""

    role: str
    metrics: Mapping[str, float]
    dataset_name: str
    dataset_digest: str
    evaluation_sha256: str
    step: int = 0

    def keyed(self, *, bare: bool) -> dict[str, float]:
        """Return the metrics under their keys in a run: ``role/key`` unless they are bare."""
        return {key if bare else f"{self.role}/{key}": value for key, value in self.metrics.items()}


@dataclass(frozen=True)
class DatasetUse(_Exact):
    """A data set that a run read; ``given`` is what MLflow's own ``Dataset`` says of itself."""

    name: str
    digest: str
    role: str
    source: str | None
    profile: Mapping[str, int]
    given: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rendering(_Exact):
    """Files drawn from a primary file at each sending of a node: never part of the seal."""

    kind: str  # Which files: a name that `views.render` knows, such as ``"evaluation"`` or ``"comparison"``
    source: str  # The artifact path of the primary file of the same node
    # The folder among the artifacts to which the paths of the drawn files are relative; ``""`` for
    # the root.
    into: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)  # Plain values for the drawing
    tables: tuple[str, ...] = ()  # The drawn paths that MLflow shows as tables


@dataclass(frozen=True)
class Node(_Exact):
    """One run and its content."""

    name: str  # Name of the run if it is a new one
    label: str  # Name of this content in the completeness tag of the run
    # Values under names that MLflow accepts; metrics are finite.
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    scores: tuple[Scores, ...] = ()  # Aggregates of evaluations
    datasets: tuple[DatasetUse, ...] = ()  # Inputs of the run
    files: Mapping[str, bytes] = field(default_factory=dict)  # Artifacts by path
    # Sections of the run's description, in Markdown, by key.
    sections: Mapping[str, str] = field(default_factory=dict)
    children: tuple[Node, ...] = ()  # Nested runs
    # When the run began and ended. By default when the call that logs began, and when the sending
    # ends.
    started_ms: int | None = None
    ended_ms: int | None = None
    status: str = "FINISHED"  # The status of the ended run
    steps: tuple[tuple[str, float, int], ...] = ()  # Metrics with a step: folds, epochs
    renderings: tuple[Rendering, ...] = ()  # Files drawn from primary files when they are sent
    models: tuple[SavedModel, ...] = ()  # Fitted models of the run
    # Plain values for the manifest, by the name of what they describe: a role, a comparison,
    # ``"record"``.
    facts: Mapping[str, Any] = field(default_factory=dict)
    # Parameters that the saved view of the experiment shows beside the measures.
    columns: tuple[str, ...] = ()
    # Identity of the run beyond this upload: a later upload finds the run by it, and makes no second.
    mark: str = ""
    # The number of a piece that grows: a greater one replaces it, and a smaller one is not sent.
    revision: int | None = None
    best: tuple[str, ...] = ()  # The marks of the children that are the best


@dataclass(frozen=True)
class Payload(_Exact):
    """A tree of runs and its destination."""

    target: Target  # The destination
    root: Node  # The run and its children
    created_ms: int  # When the call that logs began
    context: Mapping[str, str] = field(default_factory=dict)  # Tags of every new run
    model_id: str | None = None  # The logged model that the evaluations are of
    # The version of a registered model that the evaluations are of.
    model_version: tuple[str, str] | None = None
    # Identity of the work, such as the digest of an experiment. By default two payloads of equal
    # content and target are the same work. A payload that still waits is sent instead of another
    # one of the same work.
    key: str | None = None


def walk(root: Node, path: str = "0") -> Iterator[tuple[str, Node]]:
    """Yield every node and its place in the tree ("0", "0-0", "0-1", ...), parents first."""
    yield path, root
    for index, child in enumerate(root.children):
        yield from walk(child, f"{path}-{index}")


def plain_node(node: Node) -> dict[str, Any]:
    """Return a node without its children as plain values; a file is its hash."""
    values = asdict(replace(node, children=()))
    del values["children"]
    for part in (values, *values["models"]):
        part["files"] = _hashes(part["files"])
    return values


def contents(node: Node) -> dict[str, Any]:
    """Return everything that one node writes as plain values: the content of its manifest."""
    return {key: value for key, value in plain_node(node).items() if key not in _UNSEALED}


def manifest(node: Node) -> bytes:
    """Return the manifest of a node: `contents` as JSON, equal for equal content."""
    written = contents(node)
    facts = written.pop("facts")  # keep their order: the first measure is the one that counts
    ordered = json.loads(json.dumps(written, sort_keys=True))
    return json.dumps({**ordered, "facts": facts}, indent=1).encode()


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: sha256(content) for path, content in sorted(files.items())}


def checked_experiment(name: str) -> str:
    """Return the name of an experiment; raise if MLflow does not take it."""
    if not name.strip() or not name.isprintable():
        raise InvalidInput(
            f"the name of the experiment is {name!r}; expected a name whose characters can be shown"
        )
    if len(name) > MAX_EXPERIMENT:
        raise InvalidInput(
            f"the name of the experiment has {len(name)} characters: {name[:40]!r}...; "
            f"MLflow takes at most {MAX_EXPERIMENT}"
        )
    return name


def storable(payload: Payload) -> Payload:
    """Return a payload that a store can take: long names are cut, with a hash at the end."""
    if payload.target.experiment_name is not None:
        checked_experiment(payload.target.experiment_name)
    return replace(payload, root=_fitted(payload.root))


def cut(name: str, longest: int) -> str:
    """Return a name in one line of limited length; names that differ stay different."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    return (
        shown if len(shown) <= longest else f"{shown[: longest - 11]}...{sha256(name.encode())[:8]}"
    )


def _fitted(node: Node) -> Node:
    keys = [*node.metrics, *node.params, *node.tags, *(key for key, _, _ in node.steps)]
    keys += [key for scores in node.scores for key in scores.metrics]
    for key in keys:
        if safe_name(key) != key:
            raise InvalidInput(
                f"MLflow does not take the name {cut(key, 80)!r}; it takes {safe_name(key)[:80]!r}"
            )
    tags = {
        key: value if len(value) <= MAX_TAG else f"{value[: MAX_TAG - 12]}... (cut)"
        for key, value in node.tags.items()
    }
    scores = tuple(
        replace(scores, dataset_name=cut(scores.dataset_name, MAX_DATASET))
        for scores in node.scores
    )
    datasets = tuple(
        replace(
            use, name=cut(use.name, MAX_DATASET), source=use.source and use.source[:_MAX_SOURCE]
        )
        for use in node.datasets
    )
    return replace(
        node,
        name=cut(node.name, MAX_NAME),
        tags=tags,
        scores=scores,
        datasets=datasets,
        children=tuple(map(_fitted, node.children)),
    )


def pieces_of(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the start of the hash of the manifest of every whole piece of a run, by label."""
    return {piece["label"]: piece["hash"] for piece in _PIECE.finditer(tags.get(COMPLETE, ""))}


def pieces_by_role(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the label of the piece with the evaluation of each role; the bare role first.

    A role that was logged at several steps has the piece of the greatest step, as MLflow shows its
    metrics.
    """
    labels: dict[str, str] = {}
    for piece in _PIECE.finditer(tags.get(COMPLETE, "")):
        label = piece["label"]
        for role in _roles(label, piece["roles"]):
            if role not in labels or step_of(labels[role]) < step_of(label):
                labels[role] = label
    first = tags.get(ROLE)
    return {role: labels[role] for role in sorted(labels, key=lambda role: role != first)}


def roles_of(tags: Mapping[str, str]) -> tuple[str, ...]:
    """Return the roles of the whole evaluations of a run; the role with bare metric names first."""
    return tuple(pieces_by_role(tags))


def checked_manifest(content: bytes, label: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest of a piece, held against the tag of its run."""
    refuse_altered(content, pieces_of(tags).get(label), f"the manifest of {label!r}")
    parsed: dict[str, Any] = json.loads(content)
    return parsed


def refuse_altered(content: bytes, expected: str | None, what: str) -> None:
    """Raise TrackingError if the SHA-256 of some bytes does not begin as expected."""
    digest = sha256(content)
    if expected is None or not digest.startswith(expected):
        raise TrackingError(
            f"{what} was altered or replaced (SHA-256 {digest[:SHOWN]} instead of {expected})"
        )


def is_held(tags: Mapping[str, str], node: Node) -> bool:
    """Return whether a run holds a piece whole already, with the same content."""
    return pieces_of(tags).get(node.label) == _shown_hash(node)


def held_revision(tags: Mapping[str, str], node: Node) -> int | None:
    """Return the number of a piece that a run holds of the same growing work; None if it has none."""
    mark, _, number = tags.get(piece_tag(node.label, "revision"), "").rpartition(" ")
    return int(number) if node.revision is not None and number and mark == node.mark else None


def with_piece(run: Any, node: Node) -> str:
    """Return the tag with one more piece; an earlier piece loses nothing if this one breaks off."""
    run_id, tags = run.info.run_id, run.data.tags
    if is_held(tags, node):
        return str(tags[COMPLETE])
    before, held = pieces_of(tags), pieces_by_role(tags)
    roles = [scores.role for scores in node.scores]
    for role in sorted({*roles} & {*held}):
        _refuse_mixed(run, node, role, held[role])
    taken = [role for role in roles if role in held and node.label == role_of(node.label)]
    others = str(tags.get(COMPLETE, ""))
    if held_revision(tags, node) is not None:
        others = _PIECE.sub(lambda piece: "" if piece["label"] == node.label else piece[0], others)
    elif taken or node.label in before:
        what = f"an evaluation of role {taken[0]!r}" if taken else f"a piece called {node.label!r}"
        raise InvalidInput(
            f"run {run_id} already has {what} with other content",
            remedy="log this one to a run of its own or under another name",
        )
    piece = node.label
    if _roles(piece, None) != tuple(roles):
        piece += f"({','.join(roles)})"
    tag = " ".join([*others.split(), f"{piece}:{_shown_hash(node)}"])
    if len(tag) > MAX_TAG:
        raise InvalidInput(
            f"run {run_id} holds {len(before)} pieces, and MLflow has no room for more names; log to a run of its own"
        )
    return tag


def _shown_hash(node: Node) -> str:
    return sha256(manifest(node))[:SHOWN]


def _roles(label: str, roles: str | None) -> tuple[str, ...]:
    if roles is None:
        return () if label in _WITHOUT_EVALUATIONS else (role_of(label),)
    return tuple(role for role in roles.split(",") if role)


def _refuse_mixed(run: Any, node: Node, role: str, held: str) -> None:
    # The metrics of a role are one curve, and its data is named once.
    run_id, remedy = run.info.run_id, "log it with another role=, or to a run of its own"
    has_steps = step_of(held) >= 0
    if has_steps != (step_of(node.label) >= 0):
        has, this = ("steps", "none") if has_steps else ("no step", "one")
        raise InvalidInput(
            f"the evaluation of role {role!r} in run {run_id} has {has}, and this one has {this}: MLflow would show "
            f"the metrics of one as those of the other; {remedy}"
        )
    inputs = [{tag.key: tag.value for tag in data.tags} for data in run.inputs.dataset_inputs]
    used = {tags["rankeval.digest"] for tags in inputs if tags.get("rankeval.role") == role}
    own = {use.digest for use in node.datasets if use.role == role}
    if used and not own & used:
        old, new = (", ".join(map(short_digest, sorted(digests))) for digests in (used, own))
        raise InvalidInput(
            f"the evaluation of role {role!r} in run {run_id} is on other data ({old} instead of {new}); {remedy}"
        )
