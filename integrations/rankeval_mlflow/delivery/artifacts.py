"""The files, models and data sets of a run, as MLflow knows them.

Files are sent from a folder, or from memory if there is none. Those for people are drawn from those that hold the
numbers, when these are safe.

Logged models are made first, so that metrics name them; their files are sent after the numbers.

MLflow keeps one input for each name and digest in a run, so dev and test of the same content would be one. The role
that came second has its name behind the digest. A tag has the digest whole.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelOutput, LoggedModelStatus
from mlflow.exceptions import MlflowException

from rankeval.errors import RankevalWarning, TrackingError
from rankeval_mlflow.delivery.payload import DatasetUse, Node, Rendering
from rankeval_mlflow.delivery.spool import MemoryUpload, PendingUpload
from rankeval_mlflow.flavours import mlmodel
from rankeval_mlflow.flavours.mlmodel import SavedModel
from rankeval_mlflow.layout import RECORD, short_digest

# Drawing that ended two processes, as by too much memory, is not tried a third time.
_ATTEMPTS = 2


def send_files(client: Any, run: Any, files: Mapping[str, bytes], folder: Path | None) -> None:
    """Send the artifacts of a run.

    Parameters
    ----------
    client : MlflowClient
        The client.
    run : Run
        The run.
    files : mapping of str to bytes
        The artifacts by path.
    folder : Path or None
        A folder that has the same files.
    """
    if folder is not None:
        client.log_artifacts(run.info.run_id, str(folder))
    else:
        send_from_memory(client, run.info.artifact_uri, files)


@contextlib.contextmanager
def on_disk(upload: Any, folder: Path | None, files: Mapping[str, bytes]) -> Iterator[Path | None]:
    """Yield a folder that holds files while they are sent.

    Parameters
    ----------
    upload : PendingUpload or MemoryUpload
        The upload.
    folder : Path or None
        Where the spool is to hold them; None if nothing is kept on disk.
    files : mapping of str to bytes
        The files by path.

    Yields
    ------
    Path or None
        The folder, or a temporary one if the spool is full; None if that cannot be written either.
    """
    with contextlib.ExitStack() as stack:
        if folder is None:
            yield None
            return
        try:
            upload.write(folder, files)
        except OSError:
            folder = _temporary(upload, stack, files)
        yield folder


def _temporary(upload: Any, stack: contextlib.ExitStack, files: Mapping[str, bytes]) -> Path | None:
    try:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rankeval-")))
        upload.write(folder, files)
    except OSError:
        return None
    return folder


def send_from_memory(client: Any, artifact_uri: str, files: Mapping[str, bytes]) -> None:
    """Send artifacts through a tracking server. MLflow itself can only send files that are on disk.

    Parameters
    ----------
    client : MlflowClient
        The client.
    artifact_uri : str
        The place of the artifacts.
    files : mapping of str to bytes
        The artifacts by path.

    Raises
    ------
    TrackingError
        If the artifacts do not go through the server.
    """
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
    from mlflow.store.artifact.http_artifact_repo import HttpArtifactRepository
    from mlflow.utils.credentials import get_default_host_creds
    from mlflow.utils.rest_utils import augmented_raise_for_status, http_request

    repository = get_artifact_repository(artifact_uri, tracking_uri=client.tracking_uri)
    if not isinstance(repository, HttpArtifactRepository):
        raise TrackingError(
            f"no directory can be written, and the artifacts in {artifact_uri} take only files: set TMPDIR or "
            "RANKEVAL_SPOOL to a folder that can be written"
        )
    credentials = get_default_host_creds(repository.artifact_uri)
    for path, content in files.items():
        answer = http_request(credentials, posixpath.join("/", path), "PUT", data=content)
        augmented_raise_for_status(answer)


@dataclass(frozen=True)
class Drawn:
    """Drawn files by artifact path, the paths that MLflow shows as tables, and a sentence for each failure."""

    files: dict[str, bytes] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def drawn_files(node: Node, attempt: int) -> Drawn:
    """Draw the files of a node; one that cannot be drawn is a warning, and never a lost record.

    Parameters
    ----------
    node : Node
        The node, with its renderings.
    attempt : int
        How often the files of this node were begun to be drawn, this time included.
    """
    drawn = Drawn()
    for rendering in node.renderings:
        if attempt > _ATTEMPTS:
            drawn.failures.append(f"Not drawn from {rendering.source}: drawing it ended {attempt - 1} processes.")
            continue
        try:
            files = _drawn(node, rendering)
        except Exception as error:  # noqa: BLE001 - a drawing library may raise anything, and the scores are safe
            said = f"Not drawn from {rendering.source}: {type(error).__name__}: {' '.join(str(error).split())[:200]}."
            warnings.warn(said, RankevalWarning, stacklevel=2)
            drawn.failures.append(said)
            continue
        drawn.files.update(files)
        drawn.tables.extend(
            path for path in (posixpath.join(rendering.into, one) for one in rendering.tables) if path in files
        )
    return drawn


def promised_tables(node: Node) -> list[str]:
    """Return the artifact paths of the tables that a node is to have."""
    return [posixpath.join(rendering.into, path) for rendering in node.renderings for path in rendering.tables]


def _drawn(node: Node, rendering: Rendering) -> dict[str, bytes]:
    from rankeval_mlflow.views import render

    files = render(rendering.kind, node.files[rendering.source], rendering.options)
    return {posixpath.join(rendering.into, path): content for path, content in files.items()}


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
