"""The parameters of a run: what MLflow would cut stands whole among the artifacts."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from rankeval.model_selection.parameters import settings_of
from rankeval_mlflow.delivery.payload import Node
from rankeval_mlflow.run_names import folder, param_text, safe_names


def with_params(node: Node, values: Mapping[str, Any]) -> Node:
    """Return a node with more parameters; what MLflow would cut stands whole in ``params.json``."""
    safe = safe_names(str(name) for name in values)
    texts = {safe[str(name)]: (str(name), str(value)) for name, value in values.items()}
    cut = {name: text for name, text in texts.values() if param_text(text) != text}
    whole = {f"{folder(node.label)}/params.json": json.dumps(cut, indent=1).encode()} if cut else {}
    params = {name: param_text(text) for name, (_, text) in texts.items()}
    return replace(node, params={**params, **node.params}, files={**whole, **node.files})


def node_with_settings(node: Node, settings: Mapping[str, Any], changed: Collection[str]) -> Node:
    """Return a node with the parameters of an estimator; those that are no defaults become columns of the table."""
    if not settings:
        return node
    names = {
        name: f"estimator__{name}" if name in node.params and name != "estimator" else name
        for name in settings
    }
    told = with_params(node, {names[name]: value for name, value in settings.items()})
    return replace(
        told, columns=("estimator", *(names[name] for name in settings if name in changed))
    )


def with_estimator(node: Node, estimator: Any) -> Node:
    """Return a node with the parameters of an estimator; None changes nothing."""
    found = {} if estimator is None else settings_of(estimator)
    changed = [name for name, (_, is_changed) in found.items() if is_changed]
    return node_with_settings(node, {name: text for name, (text, _) in found.items()}, changed)
