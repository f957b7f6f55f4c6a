"""The host that this package offers to rankeval (entry point ``mlflow`` of the group ``rankeval.hosts``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval.tracking import Host

if TYPE_CHECKING:
    import typer

    from rankeval_mlflow.recording import MlflowTracker


def _tracker() -> MlflowTracker:
    """Return the tracker, importing it only now."""
    from rankeval_mlflow.recording import MlflowTracker

    return MlflowTracker()


def _commands() -> typer.Typer:
    """Return the commands of ``rankeval mlflow``, importing them only now."""
    from rankeval_mlflow.commands import app

    return app


def _check(experiment: str, uri: str | None) -> str | None:
    """Try the store before an experiment, importing MLflow only now."""
    from rankeval_mlflow.delivery.sending import check_store

    return check_store(experiment, uri)


def _pack(ranker: Any, rows: Any) -> bytes:
    """Save a fitted ranker in its library's MLflow flavour, importing MLflow only now."""
    from rankeval_mlflow.flavours.saving import packed, saved

    return packed(saved(ranker, X=rows))


HOST = Host(
    "MLflow: logged evaluations and pending uploads",
    tracker=_tracker,
    commands=_commands,
    default_uri="sqlite:///mlflow.db",
    check=_check,
    pack=_pack,
)
