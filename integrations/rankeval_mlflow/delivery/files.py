"""Send files to the artifacts of a run or of a logged model: from a folder, or from memory if there is none.

Files for people are drawn from those that hold the numbers, when these are safe.
"""

from __future__ import annotations

import contextlib
import posixpath
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankeval.errors import RankevalWarning, TrackingError
from rankeval_mlflow.delivery.payload import Node, Rendering

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
    """Return the files of one rendering by artifact path."""
    from rankeval_mlflow.views.rendering import render

    files = render(rendering.kind, node.files[rendering.source], rendering.options)
    return {posixpath.join(rendering.into, path): content for path, content in files.items()}
