"""Stores of MLflow: a copy of an empty database, and what a store holds after a call."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

TAGS_LEFT_OUT = {
    "mlflow.source.name",
    "mlflow.user",
    "mlflow.source.git.commit",
    "mlflow.source.type",
}


def make_database(path: str | Path) -> None:
    """Make the tables of MLflow, which takes seconds; each call copies the file.

    Parameters
    ----------
    path : Path
        The file.
    """
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{path}")
    mlflow.MlflowClient().search_experiments(max_results=1)


def new_store(empty: Path) -> str:
    """Give the call a store of its own; return its URI.

    Parameters
    ----------
    empty : Path
        The file of `make_database`.
    """
    import mlflow

    shutil.copy(empty, "mlflow.db")
    uri = f"sqlite:///{Path('mlflow.db').resolve()}"
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri(uri)
    location = Path("artifacts").resolve().as_uri()
    mlflow.MlflowClient().create_experiment("oracle", artifact_location=location)
    mlflow.set_experiment("oracle")
    return uri


def leave_stores() -> None:
    """End the runs of a call, and let MLflow forget its store."""
    import mlflow
    from mlflow.tracking import fluent

    with contextlib.suppress(Exception):
        while mlflow.active_run():
            mlflow.end_run()
    mlflow.set_tracking_uri(None)
    mlflow.set_registry_uri(None)
    fluent._active_experiment_id = None  # `set_experiment` is remembered here too


def contents(uri: str) -> list[dict[str, Any]]:
    """Return the runs of a store: status, parameters, metrics and tags.

    Parameters
    ----------
    uri : str
        The URI of `new_store`.
    """
    import mlflow

    client = mlflow.MlflowClient(uri)
    experiments = client.search_experiments()
    runs = client.search_runs(
        [found.experiment_id for found in experiments], order_by=["attributes.start_time ASC"]
    )
    found = [
        {
            "status": run.info.status,
            "parameters": dict(sorted(run.data.params.items())),
            "metrics": dict(sorted(run.data.metrics.items())),
            "tags": {
                name: text
                for name, text in sorted(run.data.tags.items())
                if name not in TAGS_LEFT_OUT
            },
            "data": sorted(
                (used.dataset.name, used.dataset.digest) for used in run.inputs.dataset_inputs
            ),
        }
        for run in runs
    ]
    return sorted(
        found,
        key=lambda run: (
            sorted(run["metrics"].items()),
            sorted(run["parameters"].items()),
            str(run),
        ),
    )
