"""The MLflow tracker: write run records to an experiment, or keep them on disk."""

from __future__ import annotations

from rankeval.tracking import RunRecord, TrackedRun
from rankeval_mlflow.delivery.addresses import now_ms, run_context, store
from rankeval_mlflow.delivery.payload import Payload, Target
from rankeval_mlflow.delivery.sending import deliver
from rankeval_mlflow.packing.record import record_node


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
        return deliver(Payload(target, record_node(record), now_ms(), run_context(), key=record.key))
