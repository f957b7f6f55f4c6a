"""Load evaluations from MLflow: the same that were logged, or an error."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlflow.exceptions import MlflowException

from rankeval._checks import shown
from rankeval._registry import unknown
from rankeval.errors import InvalidInput, TrackingError
from rankeval.tracking import TrackedRun
from rankeval_mlflow.delivery.addresses import masked
from rankeval_mlflow.delivery.completeness import checked_manifest, pieces_by_role, roles_of
from rankeval_mlflow.delivery.connection import connected
from rankeval_mlflow.delivery.refusals import reason
from rankeval_mlflow.delivery.surroundings import store
from rankeval_mlflow.layout import COMPLETE, evaluation_path, manifest_path
from rankeval_mlflow.names import sha256

if TYPE_CHECKING:
    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation


_HEAD = ".guard.head"
"""The end of the tags that hold the head of a ledger."""


@dataclass(frozen=True)
class LoggedRun:
    """A run with evaluations: their roles, and the aggregates of the first one."""

    run_id: str
    name: str
    roles: tuple[str, ...]
    metrics: Mapping[str, float]


def load_evaluation(run_id: str | TrackedRun, role: str | None = None) -> Evaluation:
    """Load an evaluation that `log_evaluation` or an experiment wrote.

    Parameters
    ----------
    run_id : str or TrackedRun
        A run by its id or as `log_evaluation` returned it. Or a version of a registered model, ``"models:/ranker/7"``
        or ``"models:/ranker@champion"``, which stands for the run that holds its evaluation.
    role : str, optional
        The role of the evaluation; needed only if the run has several.

    Returns
    -------
    Evaluation
        The logged evaluation, bit for bit.

    Raises
    ------
    InvalidInput
        If ``run_id`` is none or the run does not exist, has no whole evaluation of this role, or has several and
        ``role`` is missing.
    TrackingError
        If the store cannot be reached, or the artifact was altered.

    Examples
    --------
    >>> import rankeval as rk
    >>> from rankeval_mlflow import log_evaluation
    >>> ev = rk.evaluate([1, 0, 1], [0.3, 0.2, 0.1], qid=["a", "a", "b"], measures="RR")
    >>> run = log_evaluation(ev)
    >>> load_evaluation(run).per_query.equals(ev.per_query)
    True
    """
    from rankeval.evaluation import Evaluation

    if not isinstance(run_id, (str, TrackedRun)):
        raise InvalidInput(f"run_id is {shown(run_id)}; expected a run's id or the result of log_evaluation")
    run_id = run_id if isinstance(run_id, str) else run_id.run_id
    with _asking(store(None), f"run {run_id}") as client:
        run = client.get_run(_run_id(client, run_id))
        role, label = _chosen(run, role)
        manifest = checked_manifest(_artifact(client, run.info.run_id, manifest_path(label)), label, run.data.tags)
        content = _artifact(client, run.info.run_id, evaluation_path(role))
    digest = manifest["files"][evaluation_path(role)]
    if sha256(content) != digest:
        raise TrackingError(
            f"the evaluation of role {role!r} in run {run.info.run_id} was altered or replaced (SHA-256 "
            f"{sha256(content)[:12]} instead of {digest[:12]})"
        )
    return Evaluation.from_bytes(content)


def compare_runs(
    runs: Iterable[str], *, role: str | None = None, baseline: str | None = None, **options: Any
) -> Comparison:
    """Compare the evaluations of several runs, paired by query.

    Parameters
    ----------
    runs : iterable of str
        Ids of runs, or versions of registered models as in `load_evaluation`.
    role : str, optional
        The role of the evaluation in each run.
    baseline : str, optional
        A member of ``runs``, or the name of its evaluation; by default all pairs are compared.
    **options
        Options of `rankeval.compare`.

    Returns
    -------
    Comparison
        A system has the name of its evaluation, or the id of its run if names are missing or equal.

    Raises
    ------
    ConventionMismatch
        If conventions or judgments differ.
    InvalidInput
        If an evaluation cannot be loaded, or `rankeval.compare` refuses an option.
    UnknownName
        If the baseline, or a setting of `rankeval.compare`, does not exist.
    TrackingError
        If the store cannot be reached, or an artifact was altered.

    Examples
    --------
    >>> import rankeval as rk
    >>> from rankeval_mlflow import log_evaluation
    >>> labels, qid = [1, 0, 0, 1], ["a", "a", "b", "b"]
    >>> scores = {"bm25": [2, 1, 2, 1], "ltr": [2, 1, 1, 2]}
    >>> evaluations = [rk.evaluate(labels, one, qid=qid, measures="RR", name=name) for name, one in scores.items()]
    >>> runs = [log_evaluation(ev).run_id for ev in evaluations]
    >>> compare_runs(runs, baseline="bm25").table[["baseline", "system", "difference"]].values.tolist()
    [['bm25', 'ltr', 0.25]]
    """
    from rankeval.comparison import compare

    if isinstance(runs, str) or not isinstance(runs, Iterable):
        raise InvalidInput(f"runs is {shown(runs)}; expected the ids of several runs")
    loaded = {run: load_evaluation(run, role) for run in runs}
    names = [evaluation.name for evaluation in loaded.values()]
    called = {
        run: evaluation.name if evaluation.name and names.count(evaluation.name) == 1 else run
        for run, evaluation in loaded.items()
    }
    systems = {called[run]: evaluation for run, evaluation in loaded.items()}
    return compare(systems, baseline=called.get(baseline, baseline) if baseline else None, **options)


def logged_runs(experiment: str | None = None, uri: str | None = None) -> list[LoggedRun]:
    """Return the runs with whole evaluations, newest first.

    Parameters
    ----------
    experiment : str, optional
        Name of an experiment; by default all.
    uri : str, optional
        The tracking store; by default MLflow's own setting.

    Raises
    ------
    InvalidInput
        If the experiment does not exist.
    TrackingError
        If the store cannot be reached.
    """
    with _asking(store(uri), f"experiment {experiment}") as client:
        runs = _all(client.search_runs, _experiments(client, experiment), f"tags.`{COMPLETE}` LIKE '%'")
        found = [_logged_run(run) for run in runs]
    return [run for run in found if run.roles]


def noted_heads(run_id: str, uri: str | None = None) -> list[tuple[str, str]]:
    """Return the ledgers that a run names, each with the head that it had then.

    Parameters
    ----------
    run_id : str
        A run by its id, or a version of a registered model as in `load_evaluation`.
    uri : str, optional
        The tracking store; by default MLflow's own setting.

    Raises
    ------
    InvalidInput
        If there is no such run.
    TrackingError
        If the store cannot be reached.
    """
    with _asking(store(uri), f"run {run_id}") as client:
        tags = client.get_run(_run_id(client, run_id)).data.tags
    keys = [key for key, value in tags.items() if key.endswith(_HEAD) and key.startswith("rankeval.") and value]
    return [(tags.get(f"{key.removesuffix(_HEAD)}.guard.ledger", ""), tags[key]) for key in sorted(keys)]


@contextlib.contextmanager
def _asking(uri: str, what: str) -> Iterator[Any]:
    """Yield a client for reading that raises our errors."""
    import mlflow

    try:
        with connected(uri, mlflow.get_registry_uri()) as client:
            yield client
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            raise InvalidInput(f"there is no {what} in {masked(uri)}") from error
        raise TrackingError(f"the tracking store {masked(uri)} did not give {what}: {reason(error)}") from error


def _experiments(client: Any, name: str | None) -> list[str]:
    """Return the id of one experiment, or of all."""
    if name is None:
        return [experiment.experiment_id for experiment in _all(client.search_experiments)]
    found = client.get_experiment_by_name(name)
    if found is None:
        known = [experiment.name for experiment in _all(client.search_experiments)]
        raise unknown("experiment", name, known)
    return [found.experiment_id]


def _all(search: Any, *arguments: Any) -> Iterator[Any]:
    """Yield the results of a search of MLflow, page by page."""
    token = None
    while True:
        found = search(*arguments, page_token=token)
        yield from found
        token = found.token
        if not token:
            return


def _logged_run(run: Any) -> LoggedRun:
    """Describe a run; the role with bare metric names comes first."""
    tags = run.data.tags
    metrics = {key: value for key, value in run.data.metrics.items() if "/" not in key}
    return LoggedRun(run.info.run_id, run.info.run_name or "", roles_of(tags), metrics)


def _run_id(client: Any, name: str) -> str:
    """Return the id of a run, given itself or a version of a registered model."""
    if not name.startswith("models:/"):
        return name
    model, at, alias = name.removeprefix("models:/").partition("@")
    by_number = client.get_model_version
    version = client.get_model_version_by_alias(model, alias) if at else by_number(*model.rsplit("/", 1))
    logged = [value for key, value in version.tags.items() if key.startswith("rankeval.") and key.endswith(".run_id")]
    found = logged[0] if len(set(logged)) == 1 else version.run_id
    if not found:
        raise InvalidInput(f"no run of {name} is known; give the id of the run that holds its evaluation")
    return str(found)


def _chosen(run: Any, role: str | None) -> tuple[str, str]:
    """Return the role of the chosen evaluation, and the label of the piece that holds it."""
    run_id = run.info.run_id
    if COMPLETE not in run.data.tags:
        raise InvalidInput(
            f"run {run_id} has no tag {COMPLETE}: it holds no whole evaluation. "
            "`rankeval mlflow list --waiting` shows pending uploads"
        )
    held = pieces_by_role(run.data.tags)
    if not held or (role is not None and role not in held):
        what = f"no evaluation of role {role!r}" if role else "no evaluation"
        raise InvalidInput(f"run {run_id} holds {what}; it holds {sorted(held) or 'none'}")
    if role is None and len(held) > 1:
        raise InvalidInput(f"run {run_id} holds evaluations of the roles {sorted(held)}; choose one with role=")
    chosen = role or next(iter(held))
    return chosen, held[chosen]


def _artifact(client: Any, run_id: str, path: str) -> bytes:
    """Return the bytes of an artifact."""
    with tempfile.TemporaryDirectory() as folder:
        return Path(client.download_artifacts(run_id, path, folder)).read_bytes()
