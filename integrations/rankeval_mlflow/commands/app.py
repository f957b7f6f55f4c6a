"""The commands of ``rankeval mlflow``: parse, call, print. Each command imports what is slow to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rankeval._registry import unknown
from rankeval.cli.net import OwnAnswers
from rankeval.cli.terminal import tell, visible
from rankeval.errors import GuardRefusal, InvalidInput, RankevalError
from rankeval_mlflow.commands.promoting import promote
from rankeval_mlflow.delivery.spool import PendingUpload, read, spool_directory, waiting

if TYPE_CHECKING:
    from rankeval_mlflow.reading.listing import LoggedRun

app: typer.Typer = typer.Typer(
    cls=OwnAnswers,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="List evaluations in MLflow, send pending uploads, hold ledgers against the heads in runs.",
)

app.command()(promote)

Store = Annotated[str | None, typer.Option(help="The tracking store; by default MLflow's own setting.")]


@app.command()
def resend(
    uploads: Annotated[
        list[str] | None, typer.Argument(help="Uploads by id; by default all that a store may take now.")
    ] = None,
    uri: Annotated[
        str | None, typer.Option(help="The present address of their store, if it moved or its password changed.")
    ] = None,
) -> None:
    """Send pending uploads, which a tracking store refused before. Nothing is logged twice."""
    chosen = _chosen(uploads or [])
    if not chosen:
        tell(f"no upload is pending in {spool_directory()}")
    done = [_resent(upload, uri, named=bool(uploads)) for upload in chosen]
    if not all(done):
        raise typer.Exit(2)


def _resent(upload: PendingUpload, uri: str | None, *, named: bool) -> bool:
    """Send one upload and say how it went; return whether nothing failed."""
    from rankeval_mlflow.delivery.sending import send

    try:
        if not named and (why := upload.refusal()):
            tell(f"{upload.id}: left out, since its store refused it for good ({why}); name it to try again")
            return True
        tracked = send(upload, uri=uri)
    except RankevalError as error:
        tell(f"{upload.id}: {error}", to_stderr=True)
        return False
    done = f"sent to run {tracked.run_id}; see {tracked.where}" if tracked else "another process took care of it"
    tell(f"{upload.id}: {done}")
    return True


@app.command()
def discard(uploads: Annotated[list[str], typer.Argument(help="Uploads by id.")]) -> None:
    """Delete pending uploads."""
    for upload in _chosen(uploads):
        upload.remove()
        tell(f"{upload.id}: discarded")


@app.command("list")
def list_all(
    experiment: Annotated[str | None, typer.Option(help="Only runs of this experiment.")] = None,
    uri: Store = None,
    *,
    wait: Annotated[bool, typer.Option("--waiting", help="List the pending uploads instead.")] = False,
) -> None:
    """List the runs that hold evaluations, newest first."""
    if wait:
        rows = [_waiting_row(upload) for upload in waiting()]
        _print(["upload", "name", "goes to", "state"], rows, f"no upload is pending in {spool_directory()}")
        return
    from rankeval_mlflow.reading.listing import logged_runs

    rows = [_run_row(run) for run in logged_runs(experiment, uri)]
    _print(["run", "name", "role", "metrics"], rows, "no run holds an evaluation")
    if held_up := waiting():
        tell(f"{len(held_up)} pending: rankeval mlflow list --waiting", to_stderr=True)


@app.command("verify-guard")
def verify_guard(
    runs: Annotated[list[str], typer.Argument(help="Runs by id, or models:/NAME/VERSION.")],
    ledger: Annotated[
        str | None, typer.Option(help="Folder, file or SQLAlchemy URL of the ledger; else the one that each run names.")
    ] = None,
    uri: Store = None,
) -> None:
    """Check that ledgers still hold the heads that runs name; exit with 1 otherwise."""
    from rankeval.ledger.discovery import ledger_url, may_exist
    from rankeval.ledger.ledger import Ledger
    from rankeval_mlflow.reading.listing import noted_heads

    faults = []
    for run in runs:
        heads = noted_heads(run, uri)
        if not heads:
            raise InvalidInput(f"run {run} names no head of a ledger: no guard opened its test part")
        for where, head in heads:
            url = ledger_url(ledger or where)
            found = Ledger(url).problems(head) if may_exist(url) else [f"the ledger {ledger or where} is gone"]
            faults += [f"run {run}: {fault}" for fault in found]
            if not found:
                tell(f"run {run}: {Ledger(url).where} is whole, and holds its head {head}")
    if faults:
        raise GuardRefusal("; ".join(faults))


def _chosen(ids: list[str]) -> list[PendingUpload]:
    """Return the uploads of these ids, or all."""
    there = {upload.id: upload for upload in waiting()}
    for name in ids:
        if not there:
            raise InvalidInput(f"there is no upload {name!r}: no upload is pending in {spool_directory()}")
        if name not in there:
            raise unknown("upload", name, there)
    return [there[name] for name in ids] if ids else list(there.values())


def _waiting_row(upload: PendingUpload) -> list[str]:
    from rankeval_mlflow.delivery.addresses import masked

    payload = read(upload)
    target = payload.target
    place = f"run {target.run_id}" if target.run_id else f"experiment {target.experiment_name or target.experiment_id}"
    why = upload.refusal()
    state = "waits" if why is None else f"undeliverable: {why}"
    return [upload.id, payload.root.name, f"{place} in {masked(target.uri)}", state]


def _run_row(run: LoggedRun) -> list[str]:
    metrics = ", ".join(f"{key} {value:.4f}" for key, value in sorted(run.metrics.items()))
    return [run.run_id, run.name, ", ".join(run.roles), metrics]


def _print(header: list[str], rows: list[list[str]], nothing: str) -> None:
    """Print a table, or the sentence for an empty one."""
    if not rows:
        tell(nothing)
        return
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        tell("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
