"""The parameters of a run: what MLflow would cut stands whole among the artifacts."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from rankeval.model_selection.parameters import settings_of
from rankeval_mlflow.delivery.payload import Node
from rankeval_mlflow.run_names import folder, param_text, params_of


def with_params(node: Node, values: Mapping[str, Any]) -> Node:
    """Return a node with more parameters; what MLflow would cut stands whole in ``params.json``."""
    texts = {str(name): str(value) for name, value in values.items()}
    cut = {name: text for name, text in texts.items() if param_text(text) != text}
    whole = {f"{folder(node.label)}/params.json": json.dumps(cut, indent=1).encode()} if cut else {}
    params = {**params_of(texts), **node.params}
    return replace(node, params=params, files={**whole, **node.files})


def node_with_settings(node: Node, settings: Mapping[str, Any], changed: Collection[str]) -> Node:
    """Return a node with the parameters of an estimator; those that are no defaults become columns of the table."""
    if not settings:
        return node
    names = {
        name: f"estimator__{name}" if name in node.params and name != "estimator" else name
        for name in settings
    }
    columns = [names[name] for name in settings if name in changed]
    node = with_params(node, {names[name]: value for name, value in settings.items()})
    return replace(node, columns=("estimator", *columns))


def with_estimator(node: Node, estimator: Any) -> Node:
    """Return a node with the parameters of an estimator; None changes nothing."""
    settings = {} if estimator is None else settings_of(estimator)
    changed = [name for name, (_, is_changed) in settings.items() if is_changed]
    return node_with_settings(node, {name: text for name, (text, _) in settings.items()}, changed)
