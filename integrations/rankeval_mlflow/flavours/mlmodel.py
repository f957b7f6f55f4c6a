"""The file ``MLmodel`` of a saved model: without ids while it waits to be sent, and with them in the store.

The ids link predictions, traces and ``mlflow.models.evaluate`` to the logged model, whose id the store gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import yaml

FILE = "MLmodel"


@dataclass(frozen=True)
class SavedModel:
    """A fitted model as files (``MLmodel`` at the root), which becomes a logged model of a run.

    Attributes
    ----------
    name : str
        Name of the model.
    files : mapping of str to bytes
        The files of an MLflow model by path. The ``MLmodel`` has no ids; `identified` adds those of the store.
    params : mapping of str to str
        The parameters of the ranker, for the page of the model.
    tags : mapping of str to str
        Tags of the model.
    flavor : str, optional
        The flavour: lightgbm, xgboost, catboost, sklearn or python_function.
    model_type : str, optional
        "ranker".
    """

    name: str
    files: Mapping[str, bytes]
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    flavor: str | None = None
    model_type: str | None = None


def without_ids(content: bytes) -> bytes:
    """Return the content of an ``MLmodel`` without ids and time: equal for equal models.

    Parameters
    ----------
    content : bytes
        YAML, as MLflow wrote it.
    """
    found = yaml.safe_load(content)
    for name in ("model_uuid", "utc_time_created", "model_id", "run_id", "artifact_path"):
        found.pop(name, None)
    for flavour in found["flavors"].values():
        if isinstance(types := flavour.get("skops_trusted_types"), list):
            types.sort()  # MLflow writes a set
    return _written(found)


def identified(content: bytes, *, model_id: str, run_id: str | None, artifact_path: str, created_ms: int) -> bytes:
    """Return the content of an ``MLmodel`` with the ids that the store gave, as `mlflow.*.log_model` writes it.

    Parameters
    ----------
    content : bytes
        From `without_ids`.
    model_id : str
        The id of the logged model.
    run_id : str or None
        The run that logs it.
    artifact_path : str
        The location of its artifacts.
    created_ms : int
        When it was logged, in milliseconds since 1970.

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
    ids = {"model_id": model_id, "model_uuid": model_id, "artifact_path": artifact_path}
    run = {} if run_id is None else {"run_id": run_id}
    return _written({**yaml.safe_load(content), **ids, **run, "utc_time_created": str(created)})


def _written(values: dict[str, Any]) -> bytes:
    return yaml.safe_dump(values, default_flow_style=False).encode()
