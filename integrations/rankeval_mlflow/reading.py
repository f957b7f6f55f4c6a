"""Back from MLflow: the same Evaluation that was logged, or none."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlflow.exceptions import MlflowException

from rankeval._registry import unknown
from rankeval.errors import InvalidInput, TrackingError
from rankeval.tracking import TrackedRun
from rankeval_mlflow.connection import connected, masked, reason
from rankeval_mlflow.names import sha256
from rankeval_mlflow.packing import evaluation_path
from rankeval_mlflow.sending import COMPLETE, ROLE
from rankeval_mlflow.tracker import store

if TYPE_CHECKING:
    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation


@dataclass(frozen=True)
class LoggedRun:
    """A run that holds evaluations: their roles, and the aggregates of the first."""

    run_id: str
    name: str
    roles: tuple[str, ...]
    metrics: Mapping[str, float]


def load_evaluation(run_id: str | TrackedRun, role: str | None = None) -> Evaluation:
    """Load an evaluation that `log_evaluation` or an experiment wrote.

    Parameters
    ----------
    run_id : str or TrackedRun
        A run, what `log_evaluation` returned, or a registered model's version as ``"models:/ranker/7"`` or
        ``"models:/ranker@champion"``: then the run that made the version.
    role : str, optional
        Which evaluation; needed only where the run holds several.

    Returns
    -------
    Evaluation
        The same, bit for bit.

    Raises
    ------
    InvalidInput
        When there is no such run, or it holds no whole evaluation, none of this role, or several and none was named.
    TrackingError
        When the store cannot be reached, or the artifact is not what was logged.
    """
    from rankeval.evaluation import Evaluation

    run_id = run_id if isinstance(run_id, str) else run_id.run_id
    with _asking(store(None), f"run {run_id}") as client:
        run = client.get_run(_run_id(client, run_id))
        role, digest = _chosen(run, role)
        content = _artifact(client, run.info.run_id, evaluation_path(role))
    if sha256(content) != digest:
        raise TrackingError(
            f"the evaluation of role {role!r} in run {run.info.run_id} is not what was logged (SHA-256 "
            f"{sha256(content)[:12]} instead of {digest[:12]}); it was altered or replaced"
        )
    return Evaluation.from_bytes(content)


def compare_runs(
    runs: Iterable[str], *, role: str | None = None, baseline: str | None = None, **options: Any
) -> Comparison:
    """Compare the evaluations of some runs, paired by query.

    Parameters
    ----------
    runs : iterable of str
        Run ids, or registered models as in `load_evaluation`.
    role : str, optional
        Which evaluation of each run.
    baseline : str, optional
        A member of `runs`, or the name of its system; by default all pairs are compared.
    **options
        As in `rankeval.compare`.

    Returns
    -------
    Comparison
        The systems under the names of their evaluations, or the ids of their runs where names are missing or alike.

    Raises
    ------
    ConventionMismatch
        When conventions or judgments differ.
    InvalidInput
        As in `load_evaluation` and `rankeval.compare`.
    """
    from rankeval.comparison import compare

    loaded = {run: load_evaluation(run, role) for run in runs}
    names = [evaluation.name for evaluation in loaded.values()]
    called = {
        run: evaluation.name if evaluation.name and names.count(evaluation.name) == 1 else run
        for run, evaluation in loaded.items()
    }
    systems = {called[run]: evaluation for run, evaluation in loaded.items()}
    return compare(systems, baseline=called.get(baseline, baseline) if baseline else None, **options)


def logged_runs(experiment: str | None = None, uri: str | None = None) -> list[LoggedRun]:
    """Return the runs that hold whole evaluations, newest first.

    Parameters
    ----------
    experiment : str, optional
        Name of an experiment; by default all are searched.
    uri : str, optional
        The tracking store; by default the one that MLflow is set to.

    Raises
    ------
    InvalidInput
        When there is no such experiment.
    TrackingError
        When the store cannot be reached.
    """
    with _asking(store(uri), f"experiment {experiment}") as client:
        runs = _all(client.search_runs, _experiments(client, experiment), f"tags.`{COMPLETE}` LIKE '%'")
        found = [_logged_run(run) for run in runs]
    return [run for run in found if run.roles]


def evaluations_of(tags: Mapping[str, str]) -> dict[str, str]:
    """Return role -> SHA-256 of the whole evaluations that a run's tags tell of."""
    found: dict[str, str] = json.loads(tags.get(COMPLETE, "{}")).get("evaluations", {})
    return found


@contextlib.contextmanager
def _asking(uri: str, what: str) -> Iterator[Any]:
    """Give a client for reading, whose errors are ours."""
    import mlflow

    try:
        with connected(uri, mlflow.get_registry_uri()) as client:
            yield client
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            raise InvalidInput(f"there is no {what} in {masked(uri)}") from error
        raise TrackingError(f"the tracking store {masked(uri)} did not give {what}: {reason(error)}") from error


def _experiments(client: Any, name: str | None) -> list[str]:
    """Return the ids of the experiments that are meant."""
    if name is None:
        return [experiment.experiment_id for experiment in _all(client.search_experiments)]
    found = client.get_experiment_by_name(name)
    if found is None:
        known = [experiment.name for experiment in _all(client.search_experiments)]
        raise unknown("experiment", name, known)
    return [found.experiment_id]


def _all(search: Any, *arguments: Any) -> Iterator[Any]:
    """Yield what a search of MLflow finds, page by page."""
    token = None
    while True:
        found = search(*arguments, page_token=token)
        yield from found
        token = found.token
        if not token:
            return


def _logged_run(run: Any) -> LoggedRun:
    """Return what is shown of a run; the role whose metrics have bare names comes first."""
    tags = run.data.tags
    first = tags.get(ROLE, "")
    roles = sorted(evaluations_of(tags))
    keys = json.loads(tags.get(f"rankeval.{first}.measures", "{}"))
    metrics = {key: run.data.metrics[key] for key in keys if key in run.data.metrics}
    ordered = [role for role in roles if role == first] + [role for role in roles if role != first]
    return LoggedRun(run.info.run_id, run.info.run_name or "", tuple(ordered), metrics)


def _run_id(client: Any, name: str) -> str:
    """Return the run that is meant: itself, or the one that made a registered model's version."""
    if not name.startswith("models:/"):
        return name
    model, at, alias = name.removeprefix("models:/").partition("@")
    by_number = client.get_model_version
    version = client.get_model_version_by_alias(model, alias) if at else by_number(*model.rsplit("/", 1))
    logged = [value for key, value in version.tags.items() if key.startswith("rankeval.") and key.endswith(".run_id")]
    found = logged[0] if len(set(logged)) == 1 else version.run_id
    if not found:
        raise InvalidInput(f"{name} was made by no run that is known; give the id of the run that holds its evaluation")
    return str(found)


def _chosen(run: Any, role: str | None) -> tuple[str, str]:
    """Return role and hash of the evaluation that is meant, or say why there is none."""
    run_id = run.info.run_id
    if COMPLETE not in run.data.tags:
        raise InvalidInput(
            f"run {run_id} has no tag {COMPLETE}: no evaluation was logged to it whole. "
            "What was held up on its way is listed by `rankeval mlflow list --waiting`"
        )
    held = evaluations_of(run.data.tags)
    if not held or (role is not None and role not in held):
        what = f"no evaluation of role {role!r}" if role else "no evaluation"
        raise InvalidInput(f"run {run_id} holds {what}; it holds {sorted(held) or 'none'}")
    if role is None and len(held) > 1:
        raise InvalidInput(f"run {run_id} holds evaluations of the roles {sorted(held)}; say which with role=")
    chosen = role or next(iter(held))
    return chosen, held[chosen]


def _artifact(client: Any, run_id: str, path: str) -> bytes:
    """Return the bytes of an artifact."""
    with tempfile.TemporaryDirectory() as folder:
        return Path(client.download_artifacts(run_id, path, folder)).read_bytes()
