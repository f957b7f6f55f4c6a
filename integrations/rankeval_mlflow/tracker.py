"""The tracker of `rankeval.tracking`: run records into an experiment, whole or kept on disk."""

from __future__ import annotations

import time

from rankeval.tracking import RunRecord, TrackedRun
from rankeval_mlflow.connection import absolute
from rankeval_mlflow.packing import record_node
from rankeval_mlflow.parcel import Parcel, Target
from rankeval_mlflow.sending import deliver


class MlflowTracker:
    """Writes run records to MLflow: a run, and nested runs under it."""

    def log(self, record: RunRecord, *, experiment: str, uri: str | None = None) -> TrackedRun:
        """Write a record and its children to new runs, and end them.

        Parameters
        ----------
        record : RunRecord
            What is to be logged.
        experiment : str
            Name of the experiment; it is made where there is none.
        uri : str, optional
            The tracking store; by default the one that MLflow is set to.

        Returns
        -------
        TrackedRun
            The run's id, those of its children, and a line that says where to look.

        Raises
        ------
        TrackingError
            When the store cannot be reached or refuses: everything is kept on disk, and the message says where and
            how to send it.
        InvalidInput
            When the experiment was deleted, or a role or an artifact's path cannot be one.
        """
        target = Target(uri=store(uri), experiment_name=experiment)
        return deliver(Parcel(target, record_node(record), now_ms(), run_context()))


def store(uri: str | None) -> str:
    """Return the address of the tracking store, so that it can be found again from any directory."""
    if uri is None:
        import mlflow

        uri = mlflow.get_tracking_uri()
    return absolute(uri)


def now_ms() -> int:
    """Return the time in milliseconds, as MLflow counts it."""
    return time.time_ns() // 1_000_000


def run_context() -> dict[str, str]:
    """Return the tags that MLflow itself gives a new run: user, source, commit."""
    from mlflow.tracking.context import registry

    return {key: str(value) for key, value in registry.resolve_tags().items() if value is not None}
