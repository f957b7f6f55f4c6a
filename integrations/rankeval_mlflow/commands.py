"""The commands of ``rankeval mlflow``: parse, call, print. What takes long to import is imported by the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rankeval._registry import unknown
from rankeval.cli.net import OwnAnswers
from rankeval.cli.terminal import tell, visible
from rankeval.errors import InvalidInput, RankevalError
from rankeval_mlflow.spool import Record, read, spool_directory, waiting

if TYPE_CHECKING:
    from rankeval_mlflow.reading import LoggedRun

app = typer.Typer(
    cls=OwnAnswers,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Evaluations in MLflow, and records that wait to be sent there.",
)

Store = Annotated[str | None, typer.Option(help="The tracking store; by default the one MLflow is set to.")]


@app.command()
def resend(
    records: Annotated[
        list[str] | None, typer.Argument(help="Records by id; all that wait when none is named.")
    ] = None,
) -> None:
    """Send what a tracking store did not take to where it was meant to go; nothing is logged twice."""
    from rankeval_mlflow.sending import send

    chosen = _chosen(records or [])
    if not chosen:
        tell(f"nothing waits in {spool_directory()}")
    failed = False
    for record in chosen:
        try:
            tracked = send(record)
        except RankevalError as error:
            failed = True
            tell(f"{record.id}: {error}", to_stderr=True)
        else:
            tell(f"{record.id}: sent to run {tracked.run_id}; see {tracked.where}")
    if failed:
        raise typer.Exit(2)


@app.command()
def discard(records: Annotated[list[str], typer.Argument(help="Records by id.")]) -> None:
    """Throw away records that shall never be sent."""
    for record in _chosen(records):
        record.remove()
        tell(f"{record.id}: discarded")


@app.command("list")
def list_all(
    experiment: Annotated[str | None, typer.Option(help="Only runs of this experiment.")] = None,
    uri: Store = None,
    *,
    wait: Annotated[bool, typer.Option("--waiting", help="List the records that wait to be sent.")] = False,
) -> None:
    """List the runs that hold evaluations, newest first."""
    if wait:
        rows = [_waiting_row(record) for record in waiting()]
        _print(["record", "name", "goes to"], rows, f"nothing waits in {spool_directory()}")
        return
    from rankeval_mlflow.reading import logged_runs

    rows = [_run_row(run) for run in logged_runs(experiment, uri)]
    _print(["run", "name", "role", "metrics"], rows, "no run holds an evaluation")
    if held_up := waiting():
        tell(f"{len(held_up)} more wait to be sent: rankeval mlflow list --waiting", to_stderr=True)


def _chosen(ids: list[str]) -> list[Record]:
    """Return the records of these ids, or all that wait."""
    there = {record.id: record for record in waiting()}
    for name in ids:
        if not there:
            raise InvalidInput(f"there is no record {name!r}: nothing waits in {spool_directory()}")
        if name not in there:
            raise unknown("record", name, there)
    return [there[name] for name in ids] if ids else list(there.values())


def _waiting_row(record: Record) -> list[str]:
    from rankeval_mlflow.connection import masked

    parcel = read(record)
    target = parcel.target
    place = f"run {target.run_id}" if target.run_id else f"experiment {target.experiment_name or target.experiment_id}"
    return [record.id, parcel.root.name, f"{place} in {masked(target.uri)}"]


def _run_row(run: LoggedRun) -> list[str]:
    metrics = ", ".join(f"{key} {value:.4f}" for key, value in sorted(run.metrics.items()))
    return [run.run_id, run.name, ", ".join(run.roles), metrics]


def _print(header: list[str], rows: list[list[str]], nothing: str) -> None:
    """Print columns, or that there is nothing."""
    if not rows:
        tell(nothing)
        return
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        tell("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
