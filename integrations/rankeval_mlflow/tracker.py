"""The MLflow tracker: write run records to an experiment, or keep them on disk."""

from __future__ import annotations

import time

from rankeval.tracking import RunRecord, TrackedRun
from rankeval_mlflow.connection import absolute
from rankeval_mlflow.packing import record_node
from rankeval_mlflow.payload import Payload, Target
from rankeval_mlflow.sending import deliver


class MlflowTracker:
    """Writes a run record to MLflow as a run with nested runs."""

    def log(self, record: RunRecord, *, experiment: str, uri: str | None = None) -> TrackedRun:
        """Write a record and its children to new runs.

        Parameters
        ----------
        record : RunRecord
            The record.
        experiment : str
            Name of the experiment, which is made if it does not exist.
        uri : str, optional
            The tracking store; by default MLflow's own setting.

        Returns
        -------
        TrackedRun
            The ids of the run and its children, and a line that says how to look at them.

        Raises
        ------
        TrackingError
            If the store cannot be reached or refuses. Everything is kept on disk, and the message says how to send it
            again.
        InvalidInput
            If the experiment was deleted, or a role or the path of an artifact is not allowed.
        """
        target = Target(uri=store(uri), experiment_name=experiment)
        return deliver(Payload(target, record_node(record), now_ms(), run_context()))


def store(uri: str | None) -> str:
    """Return the address of the tracking store, valid from any directory."""
    if uri is None:
        import mlflow

        uri = mlflow.get_tracking_uri()
    return absolute(uri)


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def run_context() -> dict[str, str]:
    """Return the tags that MLflow gives a new run: user, source, commit."""
    from mlflow.tracking.context import registry

    return {key: str(value) for key, value in registry.resolve_tags().items() if value is not None}
