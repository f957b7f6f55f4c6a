"""log_evaluation and log_comparison: into the active run, a run given, or a new one that is ended."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from rankeval.errors import InvalidInput
from rankeval.tracking import LoggedData, TrackedRun
from rankeval_mlflow.packing import comparison_node, evaluation_node, judged_data
from rankeval_mlflow.parcel import Node, Parcel, Target
from rankeval_mlflow.sending import deliver
from rankeval_mlflow.tracker import now_ms, run_context, store

if TYPE_CHECKING:
    from rankeval.collection.data import RankingData
    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation

_VERSION = re.compile(r"(?:models:/)?(?P<name>[^@]+)/(?P<version>\d+)")


def log_evaluation(
    ev: Evaluation,
    role: str = "dev",
    run_id: str | None = None,
    model_id: str | None = None,
    model_version: Any | None = None,
    *,
    data: LoggedData | RankingData | str | None = None,
) -> TrackedRun:
    """Log an evaluation to MLflow, synchronously and whole.

    The aggregates go out in one batch under the keys of their measures (``nDCG_at_10``), with the convention, the
    digests and the role in tags; every query's scores as one Parquet file, from which `load_evaluation` gives the
    same evaluation back; the data set as an input with the role as its context; a report as HTML and a short
    description. The tag ``rankeval.complete`` comes last. An evaluation of a second role in the same run has its
    metrics under ``<role>/<key>``.

    Parameters
    ----------
    ev : Evaluation
        What was measured.
    role : str, default "dev"
        What the data was used as: "train", "dev", "test" or another plain word.
    run_id : str, optional
        The run to write to. By default the active run, else a new one that is ended.
    model_id : str, optional
        A logged model that gets the metrics too. By default the active model, where one is set.
    model_version : str or ModelVersion, optional
        A registered model's version (``"ranker/7"`` or ``"models:/ranker/7"``) that gets the aggregates as tags.
    data : LoggedData, RankingData or str, optional
        The data set, or its name. By default it is known by the digest of its judgments.

    Returns
    -------
    TrackedRun
        The run's id, and a line that says where to look.

    Raises
    ------
    TrackingError
        When the store cannot be reached or refuses: everything is kept on disk, and the message says how to send it.
    InvalidInput
        When the role is no plain word, or the run holds another evaluation of this role.
    """
    import mlflow

    if not hasattr(ev, "judgments_digest"):
        raise InvalidInput(f"ev is a {type(ev).__name__}; expected the Evaluation that rankeval.evaluate returned")
    node = evaluation_node(ev, role, _data(ev, role, data))
    version = _version(model_version)
    return _deliver(node, run_id, model_id or mlflow.get_active_model_id(), version)


def log_comparison(cmp: Comparison, run_id: str | None = None, *, name: str = "comparison") -> TrackedRun:
    """Log a comparison to MLflow: its table, its evaluations, its notes and the differences as metrics.

    Parameters
    ----------
    cmp : Comparison
        What was compared.
    run_id : str, optional
        The run to write to. By default the active run, else a new one that is ended.
    name : str, default "comparison"
        The folder among the artifacts; another one for a second comparison in the same run.

    Returns
    -------
    TrackedRun
        The run's id, and a line that says where to look.

    Raises
    ------
    TrackingError
        When the store cannot be reached or refuses: everything is kept on disk, and the message says how to send it.
    InvalidInput
        When the run holds another comparison of this name.
    """
    return _deliver(comparison_node(cmp, name), run_id, None, None)


def _deliver(node: Node, run_id: str | None, model_id: str | None, model_version: tuple[str, str] | None) -> TrackedRun:
    """Send one node to the run that is meant."""
    import mlflow

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
    return deliver(Parcel(target, node, now_ms(), context, model_id, model_version))


def _experiment() -> tuple[str | None, str | None]:
    """Return id or name of the experiment that new runs go to, without asking the server.

    `mlflow.set_experiment` leaves its id in the environment, where a user may also have put an id or a name.
    """
    experiment_id, name = os.environ.get("MLFLOW_EXPERIMENT_ID"), os.environ.get("MLFLOW_EXPERIMENT_NAME")
    if experiment_id:
        return experiment_id, None
    return (None, name) if name else ("0", None)


def _data(ev: Evaluation, role: str, data: LoggedData | RankingData | str | None) -> LoggedData | None:
    """Return the data set of an evaluation in the form that is logged."""
    if isinstance(data, LoggedData):
        if data.role != role:
            raise InvalidInput(f"the data set {data.name!r} has the role {data.role!r}, the evaluation {role!r}")
        return data
    if data is None or isinstance(data, str):
        return judged_data(ev, role, data)
    return LoggedData(data.name or "data", ev.judgments_digest, role, len(data), data.n_queries)


def _version(model_version: Any | None) -> tuple[str, str] | None:
    """Return name and version of a registered model."""
    if model_version is None:
        return None
    if hasattr(model_version, "name") and hasattr(model_version, "version"):
        return str(model_version.name), str(model_version.version)
    found = _VERSION.fullmatch(str(model_version))
    if found is None:
        raise InvalidInput(f"model_version is {model_version!r}; expected a name and a version, such as 'ranker/7'")
    return found["name"], found["version"]
