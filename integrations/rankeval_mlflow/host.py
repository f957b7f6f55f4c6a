"""The host that this package offers to rankeval (entry point ``mlflow`` of the group ``rankeval.hosts``)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from rankeval.tracking import Host
from rankeval_mlflow.versions import note_on_newer


def _later(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module that is imported when it is called: MLflow takes seconds."""

    def called(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(f"rankeval_mlflow.{module}"), name)(*arguments, **options)

    return called


def _pack(ranker: Any, rows: Any) -> bytes:
    from rankeval_mlflow.saving import packed_model, saved

    return packed_model(saved(ranker, X=rows))


HOST = Host(
    f"MLflow: logged evaluations and pending uploads{note_on_newer()}",
    tracker=_later("recording", "MlflowTracker"),
    commands=lambda: import_module("rankeval_mlflow.commands").app,
    default_uri="sqlite:///mlflow.db",
    check=_later("delivery.sending", "check_store"),
    pack=_pack,
    label="MLflow",
    push=_later("recording", "push"),
    runs=_later("reading.stored", "stored_runs"),
)
