"""Send a pending upload. Every step can be repeated, so a broken upload goes on from where it stopped.

* Runs: the upload keeps the id of each new run. If the answer of the server was lost, the tag `rankeval.record` finds
  the run again.
* Metrics: they carry the time of the upload, and MLflow keeps one of two that agree in name, value, step and time.
* Parameters, tags, artifacts: a repetition writes the same values again. MLflow never changes a parameter: if the run
  has another value of that name, ours is called ``<label>/<name>``.
* Inputs: MLflow keeps each once.

The completeness tag comes last: a run that has it has everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelInput, Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from rankeval.errors import InvalidInput, RankevalError, TrackingError
from rankeval.tracking import TrackedRun
from rankeval_mlflow.delivery.completeness import with_piece
from rankeval_mlflow.delivery.connection import connected, masked, reason, where_to_look
from rankeval_mlflow.delivery.payload import DatasetUse, Node, Payload, Scores
from rankeval_mlflow.delivery.spool import PendingUpload, locked, put, read
from rankeval_mlflow.delivery.surroundings import now_ms
from rankeval_mlflow.layout import COMPLETE, NOTE, RECORD, ROLE
from rankeval_mlflow.names import safe_name, short_digest
from rankeval_mlflow.views.descriptions import merged

_PARENT = "mlflow.parentRunId"


def deliver(payload: Payload, *, aggregates: bool = True) -> TrackedRun:
    """Write a payload to the spool and send it.

    Parameters
    ----------
    payload : Payload
        The runs to log.
    aggregates : bool
        False: the caller logs the aggregates of the evaluations once this succeeds. If it fails, a resend logs them.

    Returns
    -------
    TrackedRun
        The run that holds it.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses; the message names the upload and how to send it again.
    InvalidInput
        If the target run cannot hold it. Nothing is logged, and nothing stays in the spool.
    """
    upload = put(payload)
    try:
        return send(upload, aggregates=aggregates)
    except InvalidInput:
        upload.remove()
        raise


def send(upload: PendingUpload, *, aggregates: bool = True) -> TrackedRun:
    """Send an upload, and delete it from the spool once the server has it.

    Parameters
    ----------
    upload : PendingUpload
        The upload.
    aggregates : bool
        Whether to log the aggregates of the evaluations; see `deliver`.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses; the upload stays.
    InvalidInput
        If the run holds other content under the same name; the upload stays.
    """
    with locked(upload) as ours:
        if not ours:
            raise TrackingError(f"another process is sending the upload {upload.id}; wait for it")
        if not upload.folder.is_dir():
            raise TrackingError(f"the upload {upload.id} is no longer in the spool: it was sent or discarded")
        payload = read(upload)
        try:
            with connected(payload.target.uri, payload.target.registry_uri) as client:
                tracked = _Sending(client, upload, payload, aggregates=aggregates).whole()
        except RankevalError:
            raise
        except Exception as error:  # stores and artifact repositories raise whatever their own clients raise
            raise TrackingError(_kept(upload, payload, error)) from error
        upload.remove()
        return tracked


def _kept(upload: PendingUpload, payload: Payload, error: Exception) -> str:
    """Write the message of a refusal: the reason, the place of the upload, the command that sends it again."""
    uri = masked(payload.target.uri)
    runs = upload.sent()["runs"]
    begun = f" after run {runs['0']} was begun" if "0" in runs else ""
    return (
        f"the tracking store {uri} refused{begun}: {reason(error).replace(payload.target.uri, uri)}\n"
        f"Nothing is lost: everything is kept in {upload.folder}\n"
        f"When the store is back, send it again with:  rankeval mlflow resend {upload.id}"
    )


class _Sending:
    """The sending of one upload through one client."""

    def __init__(self, client: Any, upload: PendingUpload, payload: Payload, *, aggregates: bool) -> None:
        self.client = client
        self.upload = upload
        self.payload = payload
        self.aggregates = aggregates
        self.state = upload.sent()
        self.began_ms = now_ms()

    def whole(self) -> TrackedRun:
        """Send the tree of runs, and the tags of a model version."""
        target = self.payload.target
        self._there()
        experiment_id = "" if target.run_id else self._experiment(target.experiment_name, target.experiment_id)
        return self._run("0", self.payload.root, experiment_id, parent=None)

    def _there(self) -> None:
        """Raise before anything is written if the run, experiment, model or version does not exist."""
        payload = self.payload
        named = (
            ("run", self.client.get_run, (payload.target.run_id,)),
            ("experiment with the id", self.client.get_experiment, (payload.target.experiment_id,)),
            ("logged model", self.client.get_logged_model, (payload.model_id,)),
            ("version of a registered model", self.client.get_model_version, payload.model_version or (None,)),
        )
        for what, ask, name in named:
            try:
                if None not in name:
                    ask(*name)
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                asked = " ".join(map(str, name))
                raise InvalidInput(f"there is no {what} {asked} in {masked(payload.target.uri)}") from error

    def _run(self, place: str, node: Node, experiment_id: str, parent: str | None) -> TrackedRun:
        """Send one run and its children."""
        given = self.payload.target.run_id if place == "0" else None
        run = self.client.get_run(given or self._new_run(place, node, experiment_id, parent))
        run_id, experiment_id = run.info.run_id, run.info.experiment_id
        complete = with_piece(run_id, run.data.tags, node)
        self._inputs(run_id, place, node)
        self.client.log_artifacts(run_id, str(self.upload.with_manifest(place, node)))
        self._batch(run, node, with_model=place == "0")
        children = tuple(
            self._run(f"{place}-{index}", child, experiment_id, run_id) for index, child in enumerate(node.children)
        )
        if place == "0" and self.payload.model_version:
            self._model_version(*self.payload.model_version, run_id, node)
        self.client.set_tag(run_id, COMPLETE, complete, synchronous=True)
        if not given:
            self.client.set_terminated(run_id, node.status, self._ended(node))
        return TrackedRun(run_id, children, where_to_look(self.payload.target.uri, experiment_id, run_id))

    def _started(self, node: Node) -> int:
        return self.payload.created_ms if node.started_ms is None else node.started_ms

    def _ended(self, node: Node) -> int:
        """Return when a run ended: after the time of its sending, but not after the time that an upload waited."""
        return node.ended_ms if node.ended_ms is not None else self._started(node) + now_ms() - self.began_ms

    def _experiment(self, name: str | None, experiment_id: str | None) -> str:
        """Return the id of the experiment; make the experiment if it does not exist."""
        if experiment_id is not None:
            return experiment_id
        found = self.client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self.client.create_experiment(name))
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
            found = self.client.get_experiment_by_name(name)  # another process has just made it
        refuse_deleted(found)
        return str(found.experiment_id)

    def _new_run(self, place: str, node: Node, experiment_id: str, parent: str | None) -> str:
        """Return the id of the run of a node; make the run unless an earlier attempt did."""
        if known := self.state["runs"].get(place):
            return str(known)
        mark = f"{self.upload.id}/{place}"
        run_id = self._found(experiment_id, mark) if place in self.state["asked"] else None
        if run_id is None:
            self.state["asked"].append(place)
            self.upload.remember(self.state)
            tags = {**self.payload.context, RECORD: mark, **({_PARENT: parent} if parent else {})}
            run = self.client.create_run(experiment_id, start_time=self._started(node), tags=tags, run_name=node.name)
            run_id = run.info.run_id
        self.state["runs"][place] = run_id
        self.upload.remember(self.state)
        return str(run_id)

    def _found(self, experiment_id: str, mark: str) -> str | None:
        """Find the run that an earlier attempt made without getting its id."""
        runs = self.client.search_runs([experiment_id], f"tags.`{RECORD}` = '{mark}'", max_results=1)
        return runs[0].info.run_id if runs else None

    def _inputs(self, run_id: str, place: str, node: Node) -> None:
        """Log the data sets and the evaluated model as inputs."""
        # MLflow keeps only the first of two roles of a data set in one run; our own tags keep all roles.
        datasets = [_dataset_input(use) for use in node.datasets]
        model_id = self.payload.model_id if place == "0" else None
        models = [LoggedModelInput(model_id)] if model_id else None
        if datasets or models:
            self.client.log_inputs(run_id, datasets=datasets, models=models)

    def _batch(self, run: Any, node: Node, *, with_model: bool) -> None:
        """Log metrics, parameters and tags in one batch, synchronously."""
        headline = run.data.tags.get(ROLE) or (node.scores[0].role if node.scores else None)
        metrics = [Metric(key, value, self.payload.created_ms, 0) for key, value in node.metrics.items()]
        metrics += [Metric(key, value, self.payload.created_ms, step) for key, value, step in node.steps]
        for scores in node.scores if self.aggregates else ():
            metrics += self._aggregates(scores, bare=scores.role == headline, with_model=with_model)
        tags = dict(node.tags)
        if headline:
            tags[ROLE] = headline
        if node.sections:
            tags[NOTE] = merged(run.data.tags.get(NOTE, ""), node.sections)
        self.client.log_batch(
            run.info.run_id,
            metrics=metrics,
            params=[Param(key, value) for key, value in _params(run.data.params, node).items()],
            tags=[RunTag(key, value) for key, value in tags.items()],
            synchronous=True,
        )

    def _aggregates(self, scores: Scores, *, bare: bool, with_model: bool) -> Iterable[Any]:
        """Yield the metrics of an evaluation, linked to its data set and to the model if there is one."""
        for key, value in scores.metrics.items():
            yield Metric(
                key if bare else f"{scores.role}/{key}",
                value,
                self.payload.created_ms,
                scores.step,
                model_id=self.payload.model_id if with_model else None,
                dataset_name=scores.dataset_name,
                dataset_digest=short_digest(scores.dataset_digest),
            )

    def _model_version(self, name: str, version: str, run_id: str, node: Node) -> None:
        """Tag the model version with the aggregates and the id of their run."""
        for scores in node.scores:
            tags = {f"rankeval.{scores.role}.{key}": repr(value) for key, value in scores.metrics.items()}
            for key, value in {**tags, f"rankeval.{scores.role}.run_id": run_id}.items():
                self.client.set_model_version_tag(name, version, key, value)


def refuse_deleted(experiment: Any | None) -> None:
    """Raise InvalidInput if an experiment was deleted; one that does not exist yet will be made."""
    if experiment is not None and experiment.lifecycle_stage == "deleted":
        raise InvalidInput(
            f"the experiment {experiment.name!r} was deleted; restore it (mlflow experiments restore -x "
            f"{experiment.experiment_id}) or log under another name"
        )


def _dataset_input(use: DatasetUse) -> Any:
    """Return a data set as MLflow's input: with the short digest, and the full one in a tag."""
    kind = "local" if use.source else "code"
    source: dict[str, Any] = {"uri": use.source} if use.source else {"tags": {}}
    dataset = Dataset(
        name=use.name,
        digest=short_digest(use.digest),
        source_type=kind,
        source=json.dumps(source),
        profile=json.dumps(dict(use.profile)),
    )
    tags = {"mlflow.data.context": use.role, "rankeval.role": use.role, "rankeval.digest": use.digest}
    return DatasetInput(dataset, [InputTag(key, value) for key, value in tags.items()])


def _params(before: Mapping[str, str], node: Node) -> dict[str, str]:
    """Return the parameters of a node; one that the run has with another value is called ``<label>/<name>``."""
    return {
        name if before.get(name, value) == value else safe_name(f"{node.label}/{name}"): value
        for name, value in node.params.items()
    }
