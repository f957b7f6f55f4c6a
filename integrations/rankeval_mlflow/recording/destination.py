"""Where what is logged goes: the run that was given, the active run, or a new one; and the data set that it read."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from rankeval._checks import shown
from rankeval.errors import InvalidInput
from rankeval.tracking import LoggedData, TrackedRun
from rankeval_mlflow.delivery.payload import Node, Payload, Target
from rankeval_mlflow.delivery.sending import deliver
from rankeval_mlflow.delivery.surroundings import now_ms, run_context, store
from rankeval_mlflow.packing.datasets import judged_data

if TYPE_CHECKING:
    from rankeval.collection.data import RankingData
    from rankeval.evaluation import Evaluation

_RUN_ID = re.compile(r"[A-Za-z0-9][\w-]{0,255}")
"""Ids that MLflow takes for runs."""


def send(
    node: Node,
    run_id: str | None,
    model_id: str | None = None,
    model_version: tuple[str, str] | None = None,
) -> TrackedRun:
    """Send one node to the given run, the active run, or a new run that is ended.

    Parameters
    ----------
    node : Node
        The run's content.
    run_id : str, optional
        The run to write to.
    model_id : str, optional
        The logged model that gets the aggregates.
    model_version : tuple of (name, version), optional
        The version of a registered model that gets them as tags.
    """
    import mlflow

    if run_id is not None and not (isinstance(run_id, str) and _RUN_ID.fullmatch(run_id)):
        raise InvalidInput(f"run_id is {shown(run_id)}; expected the id of a run, such as .run_id of a TrackedRun")
    active = mlflow.active_run()
    run_id = run_id or (active.info.run_id if active else None)
    experiment_id, experiment_name = (None, None) if run_id else _experiment()
    target = Target(
        uri=store(None),
        registry_uri=mlflow.get_registry_uri(),
        run_id=run_id,
        experiment_id=experiment_id,
        experiment_name=experiment_name,
    )
    context = {} if run_id else run_context()
    return deliver(Payload(target, node, now_ms(), context, model_id, model_version))


def _experiment() -> tuple[str | None, str | None]:
    """Return id or name of the experiment for new runs, without asking the server.

    `mlflow.set_experiment` writes the id to the environment, and a user may set an id or a name there too.
    """
    experiment_id, name = os.environ.get("MLFLOW_EXPERIMENT_ID"), os.environ.get("MLFLOW_EXPERIMENT_NAME")
    if experiment_id:
        return experiment_id, None
    return (None, name) if name else ("0", None)


def described(ev: Evaluation, role: str, data: LoggedData | RankingData | str | None) -> LoggedData | None:
    """Return the data set of an evaluation for the log; its role is that of the evaluation.

    Parameters
    ----------
    ev : Evaluation
        The evaluation.
    role : str
        The role of its data.
    data : LoggedData, RankingData or str, optional
        The data set, or its name. By default the digest of the judgments identifies it.
    """
    from rankeval.collection.data import RankingData

    if isinstance(data, LoggedData):
        if data.role != role:
            raise InvalidInput(f"the data set {data.name!r} has the role {data.role!r}, the evaluation {role!r}")
        return data
    if data is None or isinstance(data, str):
        return judged_data(ev, role, data)
    if not isinstance(data, RankingData):
        raise InvalidInput(
            f"data is of type {type(data).__name__}; expected the name of the data set, RankingData or LoggedData"
        )
    return LoggedData(data.name or "data", ev.judgments_digest, role, len(data), data.n_queries)
