"""Try a tracking store before an experiment: what can never be logged there must not cost a look at the test part."""

from __future__ import annotations

import contextlib
import tempfile

from mlflow.tracking.registry import UnsupportedModelRegistryStoreURIException

from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.delivery.connection import connected, masked, no_such_host, reason
from rankeval_mlflow.delivery.sending import refuse_deleted
from rankeval_mlflow.delivery.spool import spool_directory
from rankeval_mlflow.delivery.surroundings import store


def check_store(experiment: str, uri: str | None = None) -> str | None:
    """Find out whether an experiment can be logged.

    Parameters
    ----------
    experiment : str
        Its name on the store.
    uri : str, optional
        The tracking store; by default MLflow's own setting.

    Returns
    -------
    str, optional
        A sentence if the store cannot be reached now. The run would be kept on disk, to be sent later.

    Raises
    ------
    InvalidInput
        If MLflow knows no such kind of store, its host name does not resolve, or the experiment was deleted there.
    TrackingError
        If nothing can be kept on disk.
    """
    where = store(uri)
    _check_spool()
    try:
        with connected(where) as client:
            refuse_deleted(client.get_experiment_by_name(experiment))
    except InvalidInput:
        raise
    except UnsupportedModelRegistryStoreURIException as error:
        raise InvalidInput(f"MLflow knows no kind of tracking store that is written {masked(where)}") from error
    except Exception as error:
        if no_such_host(error):
            raise InvalidInput(
                f"the tracking store {masked(where)} cannot be found ({reason(error)}): correct its address"
            ) from error
        return (
            f"the tracking store {masked(where)} cannot be reached now ({reason(error)}); the run will be kept on disk "
            "to be sent later"
        )
    return None


def _check_spool() -> None:
    folder = spool_directory()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(tempfile.TemporaryFile(dir=folder)):
            pass
    except OSError as error:
        raise TrackingError(f"the folder of pending uploads {folder} cannot be written: {error.strerror}") from error
