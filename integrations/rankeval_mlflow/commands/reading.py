"""``rankeval mlflow list``, ``compare`` and ``leaderboard``: what the runs of a store hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankeval.cli.output import Format, print_comparison, print_frame, print_rows
from rankeval.cli.terminal import tell
from rankeval_mlflow.commands.delivery import waiting_row
from rankeval_mlflow.commands.options import OutputFormat, Role, Store
from rankeval_mlflow.delivery.spool import spool_directory, waiting

if TYPE_CHECKING:
    from rankeval_mlflow.reading.listing import LoggedRun


def list_all(
    experiment: Annotated[str | None, typer.Option(help="Only runs of this experiment.")] = None,
    uri: Store = None,
    output: OutputFormat = Format.table,
    *,
    wait: Annotated[bool, typer.Option("--waiting", help="List the pending uploads instead.")] = False,
) -> None:
    """List the runs that hold evaluations, newest first."""
    if wait:
        rows = [waiting_row(upload) for upload in waiting()]
        _print(["upload", "name", "goes to", "state"], rows, output, f"no upload is pending in {spool_directory()}")
        return
    from rankeval_mlflow.reading.listing import logged_runs

    runs = [_run_row(run) for run in logged_runs(experiment, uri)]
    _print(["run", "name", "role", "metrics"], runs, output, "no run holds an evaluation")
    if held_up := waiting():
        tell(f"{len(held_up)} pending: rankeval mlflow list --waiting", to_stderr=True)


def compare(
    runs: Annotated[list[str], typer.Argument(help="Runs by id, or models: models:/NAME/VERSION, NAME@ALIAS.")],
    baseline: Annotated[
        str | None, typer.Option(help="A run or model, or the name of an evaluation; by default all pairs.")
    ] = None,
    measure: Annotated[list[str] | None, typer.Option("--measure", "-m", help="Measures; by default all.")] = None,
    role: Role = None,
    test: Annotated[str, typer.Option(help="Significance test; `rankeval tests` lists them.")] = "t",
    correction: Annotated[str, typer.Option(help="Correction for the number of comparisons.")] = "holm",
    uri: Store = None,
    output: OutputFormat = Format.table,
) -> None:
    """Compare the evaluations of several runs, paired by query."""
    from rankeval_mlflow.reading.comparisons import compare_runs

    options: dict[str, Any] = {"measures": measure or None, "test": test, "correction": correction}
    print_comparison(compare_runs(runs, role=role, baseline=baseline, uri=uri, **options), output)


def leaderboard(
    experiment: Annotated[str, typer.Argument(help="Name of the experiment.")],
    measure: Annotated[
        str | None, typer.Option("--measure", "-m", help="The measure; by default the first of the evaluations.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Name or digest of the data set.")] = None,
    role: Role = None,
    limit: Annotated[int, typer.Option(help="Number of rows.")] = 20,
    uri: Store = None,
    output: OutputFormat = Format.table,
    *,
    significance: Annotated[
        bool, typer.Option("--significance/--no-significance", help="Test the rows against the first.")
    ] = True,
) -> None:
    """Rank the evaluations of an experiment that may be compared, and count the others by reason."""
    from rankeval_mlflow.reading.leaderboards import leaderboard as rank

    board = rank(experiment, measure=measure, data=data, role=role, limit=limit, significance=significance, uri=uri)
    if output is Format.table:
        tell(str(board))
        return
    print_frame(board.table, output)
    for sentence in (board.caption, *board.notes):
        tell(f"note: {sentence}", to_stderr=True)
    for other in board.others.itertuples(index=False):
        tell(f"not ranked: {other.run_id} {other.system}: {other.reason}", to_stderr=True)


def _run_row(run: LoggedRun) -> list[str]:
    metrics = ", ".join(f"{key} {value:.4f}" for key, value in sorted(run.metrics.items()))
    is_said = metrics and run.metrics_role and len(run.roles) > 1
    return [run.run_id, run.name, ", ".join(run.roles), f"{run.metrics_role}: {metrics}" if is_said else metrics]


def _print(header: Sequence[str], rows: Sequence[Sequence[str]], output: Format, nothing: str) -> None:
    """Print a table, or the sentence for an empty one; for programs an empty table is one too."""
    if output is Format.table and not rows:
        tell(nothing)
    else:
        print_rows(header, rows, output)
