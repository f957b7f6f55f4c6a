"""Make a payload such that a store can take it: names have lengths, and what is too long is cut or refused at once.

What a store would refuse for good must not be found out after a look at a test part, and not at every resend again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rankeval.errors import InvalidInput
from rankeval_mlflow.delivery.payload import DatasetUse, Node, Payload, Scores
from rankeval_mlflow.names import MAX_NAME, MAX_TAG, safe_name, sha256

MAX_EXPERIMENT, MAX_DATASET, _MAX_SOURCE = 500, 500, 60_000


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
