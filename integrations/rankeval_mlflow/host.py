"""The host that this package offers to rankeval (entry point ``mlflow`` of the group ``rankeval.hosts``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval.tracking import Host
from rankeval_mlflow.versions import note_on_newer

if TYPE_CHECKING:
    import typer

    from rankeval_mlflow.recording import MlflowTracker


# Each function imports MLflow, which takes seconds, only when it is called.
def _tracker() -> MlflowTracker:
    from rankeval_mlflow.recording import MlflowTracker

    return MlflowTracker()


def _commands() -> typer.Typer:
    from rankeval_mlflow.commands import app

    return app


def _check(experiment: str, uri: str | None) -> str | None:
    from rankeval_mlflow.delivery.sending import check_store

    return check_store(experiment, uri)


def _pack(ranker: Any, rows: Any) -> bytes:
    from rankeval_mlflow.saving import packed, saved

    return packed(saved(ranker, X=rows))


HOST = Host(
    f"MLflow: logged evaluations and pending uploads{note_on_newer()}",
    tracker=_tracker,
    commands=_commands,
    default_uri="sqlite:///mlflow.db",
    check=_check,
    pack=_pack,
)
