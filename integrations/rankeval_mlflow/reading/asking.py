"""Ask a tracking store: one client for all questions of a call, and errors of our own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from mlflow.exceptions import MlflowException

from rankeval._registry import unknown
from rankeval.errors import TrackingError
from rankeval_mlflow.delivery.addresses import hidden, masked, store
from rankeval_mlflow.delivery.connection import connected, reason

_NOT_THERE = {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "NOT_FOUND", "BAD_REQUEST"}


@contextlib.contextmanager
def asking(uri: str | None, what: str) -> Iterator[Any]:
    """Yield a client for reading; whatever the store raises becomes an error of ours.

    Parameters
    ----------
    uri : str or None
        The tracking store; None is MLflow's own setting.
    what : str
        What is asked for, for the message.

    Yields
    ------
    mlflow.MlflowClient
        The client.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses.
    """
    import mlflow

    address = store(uri)
    try:
        with connected(address, mlflow.get_registry_uri() if uri is None else None) as client:
            yield client
    except MlflowException as error:
        said = hidden(reason(error), [address])
        raise TrackingError(f"the tracking store {masked(address)} did not give {what}: {said}") from error


def is_not_there(error: MlflowException) -> bool:
    """Return whether a store says that a name is wrong: nothing has it, or nothing can have it."""
    return error.error_code in _NOT_THERE


def pages(search: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
    """Yield the results of a search of MLflow, page by page."""
    token = None
    while True:
        found = search(*arguments, page_token=token, **options)
        yield from found
        token = found.token
        if not token:
            return


def experiment_ids(client: Any, name: str | None) -> list[str]:
    """Return the id of one experiment, or of all.

    Raises
    ------
    UnknownName
        If there is no such experiment.
    """
    if name is None:
        return [experiment.experiment_id for experiment in pages(client.search_experiments)]
    found = client.get_experiment_by_name(name)
    if found is None:
        raise unknown("experiment", name, [experiment.name for experiment in pages(client.search_experiments)])
    return [found.experiment_id]
