"""The tag that says which pieces a run holds whole, and the manifests that it names.

The tag reads ``dev:3f2a9c1b7e01aa02 comparison:60303ae22b998861``: for each piece its label, and the first 16 digits of
the SHA-256 of its manifest. A piece has the evaluation of the role that it is called by. Roles in parentheses say
otherwise: ``record(dev,test):...`` holds two, ``final():...`` none; so do ``comparison`` and ``record`` without any.
``dev/step-3`` has the evaluation of the role dev at a step of training.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.delivery.payload import Node, manifest
from rankeval_mlflow.layout import COMPLETE, MAX_TAG, ROLE, role_of, sha256, short_digest, step_of

SHOWN = 16

_WITHOUT_EVALUATIONS = ("comparison", "record")
_PIECE = re.compile(r"(?P<label>[^\s():]+)(?:\((?P<roles>[^\s():]*)\))?:(?P<hash>[0-9a-f]{16})")


def pieces_of(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the start of the hash of the manifest of every whole piece of a run, by label.

    Parameters
    ----------
    tags : mapping of str to str
        The tags of the run.
    """
    return {found["label"]: found["hash"] for found in _PIECE.finditer(tags.get(COMPLETE, ""))}


def pieces_by_role(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the label of the piece that holds the evaluation of a role, by role; the role with bare names first.

    A role that was logged at several steps has the piece of the greatest step, as MLflow shows its metrics.

    Parameters
    ----------
    tags : mapping of str to str
        The tags of the run.
    """
    labels: dict[str, str] = {}
    for found in _PIECE.finditer(tags.get(COMPLETE, "")):
        for role in _roles(found["label"], found["roles"]):
            if role not in labels or step_of(labels[role]) < step_of(found["label"]):
                labels[role] = found["label"]
    first = tags.get(ROLE)
    return {role: labels[role] for role in sorted(labels, key=lambda role: role != first)}


def roles_of(tags: Mapping[str, str]) -> tuple[str, ...]:
    """Return the roles of the whole evaluations of a run; the role with bare metric names first.

    Parameters
    ----------
    tags : mapping of str to str
        The tags of the run.
    """
    return tuple(pieces_by_role(tags))


def checked_manifest(content: bytes, label: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest of a piece, held against the tag of its run.

    Parameters
    ----------
    content : bytes
        The artifact at `layout.manifest_path(label)`.
    label : str
        The piece.
    tags : mapping of str to str
        The tags of the run.

    Raises
    ------
    TrackingError
        If the manifest was altered.
    """
    found, expected = sha256(content)[:SHOWN], pieces_of(tags).get(label)
    if found != expected:
        raise TrackingError(
            f"the manifest of {label!r} was altered or replaced (SHA-256 {found} instead of {expected})"
        )
    parsed: dict[str, Any] = json.loads(content)
    return parsed


def is_held(tags: Mapping[str, str], node: Node) -> bool:
    """Return whether a run holds a piece whole already, with the same content."""
    return pieces_of(tags).get(node.label) == _shown_hash(node)


def with_piece(run: Any, node: Node) -> str:
    """Return the tag with one more piece; an earlier piece loses nothing if this one breaks off.

    Parameters
    ----------
    run : mlflow.entities.Run
        The run.
    node : Node
        The piece.

    Raises
    ------
    InvalidInput
        If the run holds other content under the same name, the role on other data, or a step of a role that has none.
        The same content may be sent again.
    """
    run_id, tags = run.info.run_id, run.data.tags
    before = pieces_of(tags)
    roles = [scores.role for scores in node.scores]
    if is_held(tags, node):
        return str(tags[COMPLETE])
    held = pieces_by_role(tags)
    for role in sorted({*roles} & {*held}):
        _refuse_mixed(run, node, role, held[role])
    taken = [role for role in roles if role in held and node.label == role_of(node.label)]
    if taken or node.label in before:
        what = f"an evaluation of role {taken[0]!r}" if taken else f"a piece called {node.label!r}"
        raise InvalidInput(
            f"run {run_id} already holds {what} with other content",
            remedy="log this one to a run of its own or under another name",
        )
    tag = f"{tags.get(COMPLETE, '')} {_spelt(node.label, roles)}:{_shown_hash(node)}".lstrip()
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
    """Refuse steps of a role that are not of one kind: its metrics are one curve, and its data is named once."""
    run_id, remedy = run.info.run_id, "log it with another role=, or to a run of its own"
    if (step_of(held) < 0) != (step_of(node.label) < 0):
        has, this = ("no step", "one") if step_of(held) < 0 else ("steps", "none")
        raise InvalidInput(
            f"the evaluation of role {role!r} in run {run_id} has {has}, and this one has {this}: MLflow would show "
            f"the metrics of one as those of the other; {remedy}"
        )
    used = _digests([(tag.key, tag.value) for tag in each.tags] for each in run.inputs.dataset_inputs)
    given = {use.digest for use in node.datasets if use.role == role}
    if role in used and not given & used[role]:
        raise InvalidInput(
            f"the evaluation of role {role!r} in run {run_id} is on other data "
            f"({', '.join(map(short_digest, sorted(used[role])))} instead of "
            f"{', '.join(map(short_digest, sorted(given)))}); {remedy}"
        )


def _digests(inputs: Iterable[Iterable[tuple[str, str]]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for tags in map(dict, inputs):
        if "rankeval.digest" in tags:
            found.setdefault(tags.get("rankeval.role", ""), set()).add(tags["rankeval.digest"])
    return found


def _spelt(label: str, roles: list[str]) -> str:
    """Return a label, with its roles unless the label says them."""
    return label if _roles(label, None) == tuple(roles) else f"{label}({','.join(roles)})"
