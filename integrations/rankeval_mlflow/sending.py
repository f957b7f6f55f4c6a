"""Sending a record: every step can be repeated, so that a record which broke off goes on where it was.

What makes a step repeatable: a run is found again by its id, kept in the record as soon as it exists, or by the tag
`rankeval.record` when the answer of its creation was lost; metrics carry the time of the record, and MLflow keeps one
of two that agree in name, value, step and time; parameters and tags are set to the same values; artifacts are
replaced by themselves; inputs are kept once. The completeness tag comes last: a reader who sees it has everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelInput, Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from rankeval.errors import InvalidInput, RankevalError, TrackingError
from rankeval.tracking import TrackedRun
from rankeval_mlflow.connection import connected, masked, reason, where_to_look
from rankeval_mlflow.descriptions import NOTE, merged
from rankeval_mlflow.names import sha256, short_digest
from rankeval_mlflow.parcel import DatasetUse, Node, Parcel, Scores, seal
from rankeval_mlflow.spool import Record, locked, put, read

COMPLETE = "rankeval.complete"
RECORD = "rankeval.record"
ROLE = "rankeval.role"
_PARENT = "mlflow.parentRunId"


def deliver(parcel: Parcel) -> TrackedRun:
    """Spool a parcel and send it.

    Parameters
    ----------
    parcel : Parcel
        What is to be logged.

    Returns
    -------
    TrackedRun
        Where it went.

    Raises
    ------
    TrackingError
        When the store cannot be reached or refuses; the message says where the record is kept and how to send it.
    InvalidInput
        When the run to be written to cannot take it; nothing was logged, and nothing is kept.
    """
    record = put(parcel)
    try:
        return send(record)
    except InvalidInput:
        record.remove()
        raise


def send(record: Record) -> TrackedRun:
    """Send what lies in the spool, and take it out when it has arrived.

    Raises
    ------
    TrackingError
        When the store cannot be reached or refuses; the record stays.
    InvalidInput
        When the run holds something else under the same name; the record stays.
    """
    with locked(record) as ours:
        if not ours:
            raise TrackingError(f"the record {record.id} is being sent by another process; wait for that one")
        if not record.folder.is_dir():
            raise TrackingError(f"the record {record.id} is not in the spool any more: it was sent or discarded")
        parcel = read(record)
        try:
            with connected(parcel.target.uri, parcel.target.registry_uri) as client:
                tracked = _Sending(client, record, parcel).whole()
        except RankevalError:
            raise
        except Exception as error:  # stores and artifact repositories raise whatever their own clients raise
            raise TrackingError(_kept(record, parcel, error)) from error
        record.remove()
        return tracked


def _kept(record: Record, parcel: Parcel, error: Exception) -> str:
    """Say what happened, where the record is and how to send it again."""
    uri = masked(parcel.target.uri)
    runs = record.sent()["runs"]
    begun = f" after run {runs['0']} was begun" if "0" in runs else ""
    return (
        f"the tracking store {uri} did not take it{begun}: {reason(error).replace(parcel.target.uri, uri)}\n"
        f"Nothing is lost: all of it is kept in {record.folder}\n"
        f"Send it again, when the store is there, with:  rankeval mlflow resend {record.id}"
    )


class _Sending:
    """One record on its way to one client."""

    def __init__(self, client: Any, record: Record, parcel: Parcel) -> None:
        self.client = client
        self.record = record
        self.parcel = parcel
        self.state = record.sent()

    def whole(self) -> TrackedRun:
        """Send the tree and the registry's tags."""
        target = self.parcel.target
        self._there()
        experiment_id = "" if target.run_id else self._experiment(target.experiment_name, target.experiment_id)
        return self._run("0", self.parcel.root, experiment_id, parent=None)

    def _there(self) -> None:
        """Refuse, before anything is written, what names a run, model or version that is not there."""
        parcel = self.parcel
        named = (
            ("run", self.client.get_run, (parcel.target.run_id,)),
            ("experiment with the id", self.client.get_experiment, (parcel.target.experiment_id,)),
            ("logged model", self.client.get_logged_model, (parcel.model_id,)),
            ("version of a registered model", self.client.get_model_version, parcel.model_version or (None,)),
        )
        for what, ask, name in named:
            try:
                if None not in name:
                    ask(*name)
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                asked = " ".join(map(str, name))
                raise InvalidInput(f"there is no {what} {asked} in {masked(parcel.target.uri)}") from error

    def _run(self, place: str, node: Node, experiment_id: str, parent: str | None) -> TrackedRun:
        """Send one run with those under it."""
        given = self.parcel.target.run_id if place == "0" else None
        run = self.client.get_run(given or self._new_run(place, node, experiment_id, parent))
        run_id, experiment_id = run.info.run_id, run.info.experiment_id
        complete = _complete(run, node)
        self._inputs(run_id, place, node)
        if node.files:
            self.client.log_artifacts(run_id, str(self.record.files(place)))
        self._batch(run, node, with_model=place == "0")
        children = tuple(
            self._run(f"{place}-{index}", child, experiment_id, run_id) for index, child in enumerate(node.children)
        )
        if place == "0" and self.parcel.model_version:
            self._model_version(*self.parcel.model_version, run_id, node)
        self.client.set_tag(run_id, COMPLETE, complete, synchronous=True)
        if not given:
            self.client.set_terminated(run_id, end_time=self.parcel.created_ms)
        return TrackedRun(run_id, children, where_to_look(self.parcel.target.uri, experiment_id, run_id))

    def _experiment(self, name: str | None, experiment_id: str | None) -> str:
        """Return the experiment's id, making the experiment where there is none of this name."""
        if experiment_id is not None:
            return experiment_id
        found = self.client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self.client.create_experiment(name))
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
            found = self.client.get_experiment_by_name(name)  # another process made it meanwhile
        if found.lifecycle_stage == "deleted":
            raise InvalidInput(
                f"the experiment {name!r} was deleted; restore it (mlflow experiments restore -x "
                f"{found.experiment_id}) or log under another name"
            )
        return str(found.experiment_id)

    def _new_run(self, place: str, node: Node, experiment_id: str, parent: str | None) -> str:
        """Return the id of this node's run, which is made only if no earlier sending made it."""
        if known := self.state["runs"].get(place):
            return str(known)
        mark = f"{self.record.id}/{place}"
        run_id = self._found(experiment_id, mark) if place in self.state["asked"] else None
        if run_id is None:
            self.state["asked"].append(place)
            self.record.remember(self.state)
            tags = {**self.parcel.context, RECORD: mark, **({_PARENT: parent} if parent else {})}
            run = self.client.create_run(
                experiment_id, start_time=self.parcel.created_ms, tags=tags, run_name=node.name
            )
            run_id = run.info.run_id
        self.state["runs"][place] = run_id
        self.record.remember(self.state)
        return str(run_id)

    def _found(self, experiment_id: str, mark: str) -> str | None:
        """Return the run that an earlier sending made without hearing of it."""
        runs = self.client.search_runs([experiment_id], f"tags.`{RECORD}` = '{mark}'", max_results=1)
        return runs[0].info.run_id if runs else None

    def _inputs(self, run_id: str, place: str, node: Node) -> None:
        """Log the data sets, and the model that was evaluated."""
        # MLflow keeps only the first of two uses of one data set in a run; the roles stand in our own tags as well.
        datasets = [_dataset_input(use) for use in node.datasets]
        model_id = self.parcel.model_id if place == "0" else None
        models = [LoggedModelInput(model_id)] if model_id else None
        if datasets or models:
            self.client.log_inputs(run_id, datasets=datasets, models=models)

    def _batch(self, run: Any, node: Node, *, with_model: bool) -> None:
        """Log metrics, parameters and tags in one batch, synchronously."""
        headline = run.data.tags.get(ROLE) or (node.scores[0].role if node.scores else None)
        metrics = [Metric(key, value, self.parcel.created_ms, 0) for key, value in node.metrics.items()]
        for scores in node.scores:
            metrics += self._aggregates(scores, bare=scores.role == headline, with_model=with_model)
        tags = dict(node.tags)
        if headline:
            tags[ROLE] = headline
        if node.sections:
            tags[NOTE] = merged(run.data.tags.get(NOTE, ""), node.sections)
        self.client.log_batch(
            run.info.run_id,
            metrics=metrics,
            params=[Param(key, value) for key, value in node.params.items()],
            tags=[RunTag(key, value) for key, value in tags.items()],
            synchronous=True,
        )

    def _aggregates(self, scores: Scores, *, bare: bool, with_model: bool) -> Iterable[Any]:
        """Yield the metrics of an evaluation, tied to its data set and, where one is given, to the model."""
        for key, value in scores.metrics.items():
            yield Metric(
                key if bare else f"{scores.role}/{key}",
                value,
                self.parcel.created_ms,
                0,
                model_id=self.parcel.model_id if with_model else None,
                dataset_name=scores.dataset_name,
                dataset_digest=short_digest(scores.dataset_digest),
            )

    def _model_version(self, name: str, version: str, run_id: str, node: Node) -> None:
        """Tell the registry: the aggregates as tags of the model's version, with the run they come from."""
        for scores in node.scores:
            tags = {f"rankeval.{scores.role}.{key}": repr(value) for key, value in scores.metrics.items()}
            for key, value in {**tags, f"rankeval.{scores.role}.run_id": run_id}.items():
                self.client.set_model_version_tag(name, version, key, value)


def _dataset_input(use: DatasetUse) -> Any:
    """Return MLflow's form of a data set that a run read: the short digest as its own, the full one in a tag."""
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


def _complete(run: Any, node: Node) -> str:
    """Return what the completeness tag will say, or refuse to write over something else of the same name.

    The tag adds up all that was logged to the run, piece by piece, so that a piece that breaks off later takes
    nothing from those that are whole.
    """
    before = json.loads(run.data.tags.get(COMPLETE, "{}"))
    pieces: dict[str, list[Any]] = before.get("pieces", {})
    evaluations: dict[str, str] = before.get("evaluations", {})
    piece = list(seal(node))
    for scores in node.scores:
        _same(run, f"an evaluation of role {scores.role!r}", evaluations.get(scores.role), scores.evaluation_sha256)
    _same(run, f"a piece called {node.label!r}", pieces.get(node.label), piece)
    pieces[node.label] = piece
    evaluations |= {scores.role: scores.evaluation_sha256 for scores in node.scores}
    return json.dumps(
        {
            "count": sum(count for count, _ in pieces.values()),
            "sha256": sha256(json.dumps(pieces, sort_keys=True).encode()),
            "evaluations": evaluations,
            "pieces": pieces,
        }
    )


def _same(run: Any, what: str, before: Any, now: Any) -> None:
    """Refuse when the run holds something else already; what is the same may be sent again."""
    if before is not None and before != now:
        raise InvalidInput(
            f"run {run.info.run_id} holds {what} already, and it is another one; "
            "log this one in a run of its own or under another name"
        )
