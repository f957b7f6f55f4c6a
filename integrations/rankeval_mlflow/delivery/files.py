"""Send files to the artifacts of a run or of a logged model: from a folder, or from memory if there is none."""

from __future__ import annotations

import contextlib
import posixpath
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankeval.errors import TrackingError


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
