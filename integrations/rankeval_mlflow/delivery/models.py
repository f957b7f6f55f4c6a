"""The models and the data sets of a run, as MLflow knows them.

Logged models are made first, so that metrics name them; their files are sent after the numbers.

MLflow keeps one input for each name and digest in a run, so dev and test of the same content would be one. The role
that came second has its name behind the digest. A tag has the digest whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelOutput, LoggedModelStatus
from mlflow.exceptions import MlflowException

from rankeval_mlflow.delivery.files import on_disk, send_from_memory
from rankeval_mlflow.delivery.payload import DatasetUse, Node
from rankeval_mlflow.delivery.spool import MemoryUpload, PendingUpload
from rankeval_mlflow.flavours import mlmodel
from rankeval_mlflow.flavours.mlmodel import SavedModel
from rankeval_mlflow.layout import RECORD
from rankeval_mlflow.names import short_digest

_MAX_DIGEST = 36
_CONTEXT = "mlflow.data.context"


class LoggedModels:
    """The logged models of one upload; ``state`` is the upload's memory of what was sent."""

    def __init__(self, client: Any, upload: PendingUpload | MemoryUpload, state: dict[str, Any]) -> None:
        self.client = client
        self.upload = upload
        self.state = state

    def made(self, place: str, node: Node, run_id: str, experiment_id: str) -> list[str]:
        """Return the ids of the models of a node; make those that no earlier attempt made."""
        return [
            self._id(f"{place}/{index}", model, run_id, experiment_id).model_id
            for index, model in enumerate(node.models)
        ]

    def sent(self, place: str, node: Node, run: Any, model_ids: Sequence[str]) -> None:
        """Send the files of the models, and link the models to their run, which MLflow takes only once."""
        for index, (model, model_id) in enumerate(zip(node.models, model_ids, strict=True)):
            logged = self.client.get_logged_model(model_id)
            if logged.status != LoggedModelStatus.READY:
                self._files(place, index, model, logged, run.info.run_id)
                self.client.finalize_logged_model(model_id, "READY")
        linked = {output.model_id for output in (run.outputs.model_outputs if run.outputs else ())}
        if missing := [LoggedModelOutput(model_id, 0) for model_id in model_ids if model_id not in linked]:
            self.client.log_outputs(run.info.run_id, missing)

    def _id(self, place: str, model: SavedModel, run_id: str, experiment_id: str) -> Any:
        known = self.state.setdefault("models", {})
        asked = self.state.setdefault("asked_models", [])
        found = self._begun(known.get(place), experiment_id, place) if place in asked else None
        if found is None:
            asked.append(place)
            self.upload.remember(self.state)
            found = self.client.create_logged_model(
                experiment_id,
                name=model.name,
                source_run_id=run_id,
                tags={**model.tags, RECORD: f"{self.upload.id}/{place}"},
                params=dict(model.params),
                model_type=model.model_type,
            )
        if known.get(place) != found.model_id:
            known[place] = found.model_id
            self.upload.remember(self.state)
        return found

    def _begun(self, known: str | None, experiment_id: str, place: str) -> Any | None:
        """Return the model that an earlier attempt made; None if it did not, or the model was deleted."""
        if known is not None:
            try:
                return self.client.get_logged_model(known)
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                return None
        marked = f"tags.`{RECORD}` = '{self.upload.id}/{place}'"
        found = self.client.search_logged_models([experiment_id], filter_string=marked, max_results=1)
        return found[0] if found else None

    def _files(self, place: str, index: int, model: SavedModel, logged: Any, run_id: str) -> None:
        """Send the files of a model; its ``MLmodel`` last, with the ids that the store gave."""
        with_ids = mlmodel.identified(
            model.files[mlmodel.FILE],
            model_id=logged.model_id,
            run_id=run_id,
            artifact_path=logged.artifact_location,
            created_ms=logged.creation_timestamp,
        )
        if isinstance(self.upload, MemoryUpload):
            files = {**model.files, mlmodel.FILE: with_ids}
            send_from_memory(self.client, logged.artifact_location, files)
            return
        self.client.log_model_artifacts(logged.model_id, str(self.upload.model(place, index)))
        beside = self.upload.identified(place, index)
        with on_disk(self.upload, beside, {mlmodel.FILE: with_ids}) as folder:
            if folder is None:
                send_from_memory(self.client, logged.artifact_location, {mlmodel.FILE: with_ids})
            else:
                self.client.log_model_artifact(logged.model_id, str(folder / mlmodel.FILE))


Digests = Mapping[tuple[str, str, str], str]
"""(name, full digest, role) -> the digest that MLflow shows."""


def shown_digests(run: Any, uses: Iterable[DatasetUse]) -> Digests:
    """Return the digest that MLflow shows of each data set.

    Parameters
    ----------
    run : mlflow.entities.Run
        The run, which may have inputs.
    uses : iterable of DatasetUse
        The data sets.
    """
    roles = {
        (each.dataset.name, each.dataset.digest): next((tag.value for tag in each.tags if tag.key == _CONTEXT), "")
        for each in (run.inputs.dataset_inputs if run.inputs else ())
    }
    chosen = {}
    for use in uses:
        digest = short_digest(use.digest)
        if roles.setdefault((use.name, digest), use.role) != use.role:
            digest = f"{digest}-{use.role}"[:_MAX_DIGEST]
        chosen[use.name, use.digest, use.role] = digest
    return chosen


def dataset_input(use: DatasetUse, digests: Digests) -> DatasetInput:
    """Return a data set as MLflow's input.

    Parameters
    ----------
    use : DatasetUse
        The data set.
    digests : mapping
        The `shown_digests`.
    """
    source: dict[str, Any] = {"uri": use.source} if use.source else {"tags": {}}
    dataset = Dataset(
        name=use.name,
        digest=digests[use.name, use.digest, use.role],
        source_type="local" if use.source else "code",
        source=json.dumps(source),
        profile=json.dumps(dict(use.profile)),
    )
    tags = {_CONTEXT: use.role, "rankeval.role": use.role, "rankeval.digest": use.digest}
    return DatasetInput(dataset, [InputTag(key, value) for key, value in tags.items()])
