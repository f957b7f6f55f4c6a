"""What MLflow knows of this process: the store that it logs to, and the tags of a new run."""

from __future__ import annotations

import time

from rankeval_mlflow.delivery.addresses import absolute


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
