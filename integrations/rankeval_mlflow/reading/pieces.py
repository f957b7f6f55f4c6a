"""Read the pieces of a run: the manifest that the completeness tag names, and files held against their hashes."""

from __future__ import annotations

import posixpath
import tempfile
from pathlib import Path
from typing import Any

from mlflow.exceptions import MlflowException

from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.delivery.completeness import checked_manifest, pieces_by_role, pieces_of
from rankeval_mlflow.delivery.refusals import reason
from rankeval_mlflow.layout import COMPLETE, KIND, manifest_path
from rankeval_mlflow.names import sha256

_COMPARED = {"comparison": "a comparison", "experiment": "the comparison of an experiment"}


def labels_of(run: Any) -> tuple[str, ...]:
    """Return the labels of the whole pieces of a run.

    Raises
    ------
    InvalidInput
        If the run holds none: it is none of ours, or its upload broke off.
    """
    run_id = run.info.run_id
    if COMPLETE not in run.data.tags:
        raise InvalidInput(
            f"run {run_id} has no tag {COMPLETE}: it holds no whole evaluation. "
            "`rankeval mlflow list --waiting` shows pending uploads"
        )
    return tuple(pieces_of(run.data.tags))


def held_instead(run: Any) -> str:
    """Say what a run holds that lacks what was asked for, and how to read that.

    Parameters
    ----------
    run : Run
        The run.
    """
    kind = run.data.tags.get(KIND, "")
    roles = sorted(pieces_by_role(run.data.tags))
    held = [f"evaluations of the roles {', '.join(roles)}: load_evaluation(run, role)"] if roles else []
    if kind in _COMPARED:
        held.append(f"{_COMPARED[kind]}: load_comparison(run)")
    if kind == "experiment":
        held.append("the evaluations of its rankers in nested runs")
    return f"it is a run of kind {kind!r}, and holds {'; '.join(held) or 'neither evaluation nor comparison'}"


def manifest_of(client: Any, run: Any, label: str) -> dict[str, Any]:
    """Return the manifest of a piece.

    Raises
    ------
    InvalidInput
        If the artifact is gone.
    TrackingError
        If it was altered, or the store cannot be reached.
    """
    return checked_manifest(artifact(client, run, manifest_path(label)), label, run.data.tags)


def checked_file(client: Any, run: Any, manifest: dict[str, Any], path: str, what: str) -> bytes:
    """Return a file of a piece.

    Parameters
    ----------
    client : MlflowClient
        A client of the store.
    run : Run
        The run.
    manifest : dict
        The manifest of the piece.
    path : str
        The artifact path.
    what : str
        The file in words, for messages.

    Raises
    ------
    InvalidInput
        If the artifact is gone.
    TrackingError
        If it was altered, or the store cannot be reached.
    """
    content = artifact(client, run, path)
    found, expected = sha256(content), manifest["files"][path]
    if found != expected:
        raise TrackingError(
            f"{what} in run {run.info.run_id} was altered or replaced (SHA-256 {found[:12]} instead of {expected[:12]})"
        )
    return content


def artifact(client: Any, run: Any, path: str) -> bytes:
    """Return the bytes of an artifact.

    The place of the artifacts stands in the run, and MLflow's own call would ask for the run and its models again.

    Raises
    ------
    InvalidInput
        If it is gone; the message names what is there.
    TrackingError
        If the store of the artifacts cannot be reached.
    """
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
    from mlflow.utils.uri import add_databricks_profile_info_to_artifact_uri

    where = add_databricks_profile_info_to_artifact_uri(run.info.artifact_uri, client.tracking_uri)
    repository = get_artifact_repository(where, tracking_uri=client.tracking_uri)
    with tempfile.TemporaryDirectory() as folder:
        try:
            return Path(repository.download_artifacts(path, folder)).read_bytes()
        except Exception as error:  # the stores of artifacts raise whatever their own clients raise
            raise _not_read(repository, run.info.run_id, path, error) from error


def _not_read(repository: Any, run_id: str, path: str, error: Exception) -> Exception:
    """Tell an artifact that is gone from a store that does not answer: a store that answers lists what it has."""
    folder = posixpath.dirname(path)
    try:
        there = [found.path for found in repository.list_artifacts(folder)]
    except Exception:  # noqa: BLE001 - as above, and the first error says more
        there = [path]
    if path not in there:
        held = ", ".join(there) or "nothing"
        return InvalidInput(f"run {run_id} no longer has the artifact {path!r}: {folder} holds {held}")
    if isinstance(error, MlflowException):
        said: Exception = error
        return said  # `asking` says which store
    return TrackingError(f"the artifact {path!r} of run {run_id} cannot be read: {reason(error)}")
