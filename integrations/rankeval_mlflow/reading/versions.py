"""Find the evaluation that was logged for a version of a registered model, for a decision on it: nothing is guessed.

Loading may take the run that a version was made in for the run of its evaluation. A decision may not: that run can hold
the evaluation of another system. Only these name the version, and their values must be those of the evaluation:

* its tags ``rankeval.<role>.run_id`` and ``rankeval.<role>.<metric>``, which `log_evaluation` with ``model_version=``
  wrote;
* the metrics on a data set that are linked to the logged model behind it, which `log_evaluation` with ``model_id=``
  wrote.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankeval.errors import InvalidInput
from rankeval_mlflow.layout import ROLE
from rankeval_mlflow.packing.evaluation import CLOSE, aggregates
from rankeval_mlflow.reading.evaluations import evaluation_of
from rankeval_mlflow.reading.where import model_behind, run_of_model, run_with

if TYPE_CHECKING:
    from rankeval.evaluation import Evaluation


def logged_for(client: Any, version: Any, role: str) -> tuple[Any, Evaluation]:
    """Return the run and the evaluation of a role that were logged for a version or for its logged model.

    Parameters
    ----------
    client : MlflowClient
        A client of the store.
    version : ModelVersion
        The version.
    role : str
        The role of the evaluation.

    Raises
    ------
    InvalidInput
        If there is none, its run was deleted, or its values are not those that the version or the model has.
    TrackingError
        If an artifact was altered.
    """
    called, model_id = f"models:/{version.name}/{version.version}", model_behind(version)
    if run_id := version.tags.get(f"rankeval.{role}.run_id"):
        run = run_with(client, run_id)
        said = _values_of_tags(version.tags, role)
    elif model_id:
        run, said = _of_model(client, model_id, role)
    else:
        raise InvalidInput(f"no evaluation of this role was logged for {called}")
    evaluation = evaluation_of(client, run, role)
    if not _agree(said, aggregates(evaluation)):
        raise InvalidInput(
            f"the evaluation in run {run.info.run_id} is not the one that was logged for {called}: the values differ"
        )
    return run, evaluation


def _values_of_tags(tags: Mapping[str, str], role: str) -> dict[str, float]:
    """Return the aggregates that the tags of a version hold."""
    before, found = f"rankeval.{role}.", {}
    for key, text in tags.items():
        if key.startswith(before) and key != f"{before}run_id":
            try:
                found[key.removeprefix(before)] = float(text)
            except ValueError:
                continue  # a tag of somebody else's
    return found


def _of_model(client: Any, model_id: str, role: str) -> tuple[Any, dict[str, float]]:
    """Return the run whose evaluation of a role was logged for a model, and the aggregates that the model has."""
    linked: dict[str, dict[str, float]] = {}
    for metric in client.get_logged_model(model_id).metrics or ():
        if metric.dataset_digest and metric.run_id:  # others are no aggregates of evaluations
            linked.setdefault(metric.run_id, {})[metric.key] = metric.value
    values = {}
    for run_id, metrics in linked.items():
        bare = client.get_run(run_id).data.tags.get(ROLE) == role
        before = "" if bare else f"{role}/"
        values[run_id] = {
            key.removeprefix(before): value
            for key, value in metrics.items()
            if ("/" not in key if bare else key.startswith(before))
        }
    run = run_of_model(client, model_id, role, [run_id for run_id, found in values.items() if found])
    return run, values[run.info.run_id]


def _agree(said: Mapping[str, float], held: Mapping[str, float]) -> bool:
    """Return whether there is a value of each finite measure, and all are those of the evaluation."""
    finite = {key: value for key, value in held.items() if math.isfinite(value)}
    return bool(finite) and all(
        key in said and math.isclose(said[key], value, rel_tol=CLOSE, abs_tol=CLOSE) for key, value in finite.items()
    )
