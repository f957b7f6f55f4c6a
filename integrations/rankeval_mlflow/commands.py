"""The commands of ``rankeval mlflow``. Each imports slow things when it is called.

``list``, ``compare`` and ``leaderboard`` show what the runs of a store hold; ``resend`` and
``discard`` treat uploads that a store refused; ``promote`` moves an alias, ``rollback`` takes that
back, and ``why`` explains it; ``verify-guard`` holds ledgers against the heads that runs name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankeval._registry import chosen
from rankeval.cli.exits import OwnAnswers
from rankeval.cli.inputs import by_query
from rankeval.cli.options import OPTIONS, TEXT, TEXTS, Format, options
from rankeval.cli.output import print_result, print_rows, tell
from rankeval.errors import GuardRefusal, InvalidInput, RankevalError
from rankeval_mlflow.delivery.spool import PendingUpload, read_payload, spool_directory, waiting

if TYPE_CHECKING:
    import pandas as pd

    from rankeval_mlflow.promotion.promoting import Promotion
    from rankeval_mlflow.reading.listing import LoggedRun


OPTIONS.update(
    MODELS=(list[str], ..., "Runs by id, or models: models:/NAME/VERSION, NAME@ALIAS.", "RUNS..."),
    MODEL=(str, ..., "The registered model."),
    EXPERIMENT=(str, ..., "Name of the experiment."),
    UPLOADS=(TEXTS, None, "Uploads by id; to resend, by default all that a store may take now."),
    data_set=(TEXT, None, "Name or digest of the data set.", "--data"),
    most=(int, 20, "Number of rows.", "--limit"),
    role=(TEXT, None, "The role of the evaluations."),
    wait=(bool, False, "List the pending uploads instead.", "--waiting"),
    significance=(
        bool,
        True,
        "Test the rows against the first.",
        "--significance/--no-significance",
    ),
    version=(str, None, "The candidate: 7, latest, or models:/NAME@challenger."),
    alias=(str, "champion", "The alias of the registered model."),
    slices=(
        TEXT,
        None,
        "CSV or Parquet file with qid and an attribute of the queries, or a count such as relevant.",
    ),
    floors=(
        TEXTS,
        None,
        "Loss to rule out on a slice, as in tail=0.05; 0.05 for all. Repeatable.",
        "--floor",
    ),
    run_id=(
        TEXTS,
        None,
        "The run that decides, if evaluations of a version disagree; one for each version.",
    ),
    first=(bool, False, "Give an alias that no version has, undecided.", "--first"),
    again=(bool, False, "Promote a version that was rolled back.", "--again"),
    override=(
        TEXT,
        None,
        "Move the alias though the claim is not shown, for this reason; no measure, no test.",
    ),
    override_by=(TEXT, None, "Who answers for the override."),
    dry_run=(bool, False, "Decide, and do not move the alias; it counts.", "--dry-run"),
    who=(TEXT, None, "The person or machine, for the record."),
    reason=(str, None, "Why, for the record."),
    log=(bool, False, "Write the answer to the version's description.", "--log"),
)

app: typer.Typer = typer.Typer(
    cls=OwnAnswers,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="List, compare and rank evaluations in MLflow, send pending uploads, promote models, check ledgers.",
)


@app.command("list")
@options("experiment uri output wait")
def list_all(*, experiment: str | None, uri: str | None, output: Format, wait: bool) -> None:
    """List the runs that hold evaluations, newest first."""
    if wait:
        rows = [_waiting_row(upload) for upload in waiting()]
        _print(
            ["upload", "name", "goes to", "state"],
            rows,
            output,
            f"no upload is pending in {spool_directory()}",
        )
        return
    from rankeval_mlflow.reading.listing import logged_runs

    runs = [_run_row(run) for run in logged_runs(experiment, uri)]
    _print(["run", "name", "role", "metrics"], runs, output, "no run holds an evaluation")
    if held_up := waiting():
        tell(f"{len(held_up)} pending: rankeval mlflow list --waiting", to_stderr=True)


@app.command()
@options("MODELS baseline measures role test correction alpha uri output", measures=None)
def compare(*, models: list[str], output: Format, **settings: Any) -> None:
    """Compare the evaluations of several runs, paired by query.

    The baseline is a run, a model or the name of an evaluation; without it all pairs are compared.
    Without measures it is all that the runs share. `rankeval tests` lists tests and corrections.
    """
    from rankeval_mlflow.reading.loading import compare_runs

    print_result(compare_runs(models, **settings), output)


@app.command()
@options("EXPERIMENT data_set most measure role alpha uri output significance", measure=None)
def leaderboard(
    *, experiment: str, data_set: str | None, most: int, output: Format, **settings: Any
) -> None:
    """Rank the evaluations of an experiment that may be compared, and count the others by reason.

    Without a measure, the first of the evaluations counts.
    """
    from rankeval_mlflow.reading.leaderboards import leaderboard as rank

    board = rank(experiment, data=data_set, limit=most, **settings)
    print_result(board, output)
    for other in board.others.itertuples(index=False) if output is not Format.table else ():
        tell(f"not ranked: {other.run_id} {other.system}: {other.reason}", to_stderr=True)


def _run_row(run: LoggedRun) -> list[str]:
    metrics = ", ".join(f"{key} {value:.4f}" for key, value in sorted(run.metrics.items()))
    is_said = metrics and run.metrics_role and len(run.roles) > 1
    return [
        run.run_id,
        run.name,
        ", ".join(run.roles),
        f"{run.metrics_role}: {metrics}" if is_said else metrics,
    ]


def _print(
    header: Sequence[str], rows: Sequence[Sequence[str]], output: Format, nothing: str
) -> None:
    if output is Format.table and not rows:
        tell(nothing)
    else:
        print_rows(header, rows, output)


@app.command()
@options("UPLOADS uri")
def resend(*, uploads: list[str] | None, uri: str | None) -> None:
    """Send pending uploads, which a tracking store refused before. Nothing is logged twice."""
    chosen = _chosen(uploads or [])
    if not chosen:
        tell(f"no upload is pending in {spool_directory()}")
    done = [_resent(upload, uri, named=bool(uploads)) for upload in chosen]
    if not all(done):
        raise typer.Exit(2)


def _resent(upload: PendingUpload, uri: str | None, *, named: bool) -> bool:
    from rankeval_mlflow.delivery.sending import send

    try:
        if not named and (why := upload.refusal()):
            tell(
                f"{upload.id}: left out, since its store refused it for good ({why}); name it to try again"
            )
            return True
        tracked = send(upload, uri=uri)
    except RankevalError as error:
        tell(f"{upload.id}: {error}", to_stderr=True)
        return False
    done = (
        f"sent to run {tracked.run_id}; see {tracked.where}"
        if tracked
        else "another process took care of it"
    )
    tell(f"{upload.id}: {done}")
    return True


@app.command()
@options("UPLOADS", uploads=...)
def discard(*, uploads: list[str]) -> None:
    """Delete pending uploads."""
    for upload in _chosen(uploads):
        upload.remove()
        tell(f"{upload.id}: discarded")


def _waiting_row(upload: PendingUpload) -> list[str]:
    from rankeval._secrets import bare

    payload = read_payload(upload)
    target = payload.target
    place = (
        f"run {target.run_id}"
        if target.run_id
        else f"experiment {target.experiment_name or target.experiment_id}"
    )
    why = upload.refusal()
    state = "waits" if why is None else f"undeliverable: {why}"
    return [upload.id, payload.root.name, f"{place} in {bare(target.uri)}", state]


def _chosen(ids: list[str]) -> list[PendingUpload]:
    there = {upload.id: upload for upload in waiting()}
    return [there[chosen("upload", name, there)] for name in ids or there]


@app.command()
@options("MODELS ledger uri")
def verify_guard(*, models: list[str], ledger: str | None, uri: str | None) -> None:
    """Check that ledgers still hold the heads that runs name; exit with 1 otherwise.

    Without --ledger, it is the ledger that each run names.
    """
    from rankeval.ledger.discovery import ledger_url, may_exist
    from rankeval.ledger.ledger import Ledger
    from rankeval_mlflow.reading.listing import noted_heads

    faults = []
    for run in models:
        heads = noted_heads(run, uri)
        if not heads:
            raise InvalidInput(
                f"run {run} names no head of a ledger: no guard opened its test part"
            )
        for where, head in heads:
            url = ledger_url(ledger or where)
            problems = (
                Ledger(url).problems(head)
                if may_exist(url)
                else [f"the ledger {ledger or where} is gone"]
            )
            faults += [f"run {run}: {fault}" for fault in problems]
            if not problems:
                tell(f"run {run}: {Ledger(url).where} is whole, and holds its head {head}")
    if faults:
        raise GuardRefusal("; ".join(faults))


@app.command()
@options(
    "MODEL version measure alias claim margin alpha budget test slices floors groups role run_id first again override "
    "override_by dry_run experiment who uri",
    version=...,
    measure=None,
    claim="better",
    role="test",
)
def promote(*, model: str, slices: str | None, floors: list[str] | None, **settings: Any) -> None:
    """Move an alias of a registered model to a version that is shown to be better than the one in use.

    The claim is better or not_worse, alpha the one-sided level of all decisions on the same
    queries, and the budget their number; 1 is a single release. `rankeval tests` lists the tests.
    The decision is written to a run of the experiment, by default "MODEL promotions".

    Exits with 0 if the alias is with the version (with --dry-run: would be), with 1 if the version
    is rejected or another promoter came first, and with 2 on bad use or if the store refuses.
    """
    from rankeval_mlflow.promotion.promoting import promote as move

    _tell_promotion(move(model, slices=_slices(slices), floors=_floors(floors or []), **settings))


@app.command()
@options("MODEL reason alias experiment who uri", reason=...)
def rollback(*, model: str, **settings: Any) -> None:
    """Give an alias back to the version that had it before the last recorded promotion.

    The decision is written to a run of the experiment, by default "MODEL promotions".

    Exits with 0 if the alias is with that version, with 1 if it went elsewhere meanwhile, and with
    2 on bad use or if the store refuses.
    """
    from rankeval_mlflow.promotion.promoting import rollback as give_back

    _tell_promotion(give_back(model, **settings))


@app.command()
@options("MODEL version alias log uri output", version=...)
def why(*, model: str, output: Format, **settings: Any) -> None:
    """Explain by the records of promotions why a version has an alias, or why it has not."""
    from rankeval_mlflow.promotion.explaining import why as explain

    print_result(explain(model, **settings), output)


def _tell_promotion(done: Promotion) -> None:
    tell(done.words)
    if done.floors is not None:
        tell(done.floors.to_string(index=False))
    if done.run_id is not None:
        tell(f"record: run {done.run_id}; see {done.where}")
    if not done:
        raise typer.Exit(1)


def _floors(texts: list[str]) -> float | dict[str, float] | None:
    named = dict[str, float]()
    joined = " ".join(texts)
    for value, _, text in (floor.rpartition("=") for floor in texts):
        try:
            named[value] = float(text)
        except ValueError:
            raise InvalidInput(
                argument="--floor", found=joined, expected="a loss such as 0.05, or tail=0.05"
            ) from None
    if len(named) < len(texts) or ("" in named and len(texts) > 1):
        raise InvalidInput(
            argument="--floor",
            found=joined,
            expected="each slice once, or one loss alone for all slices",
        )
    return named.get("", named) if named else None


def _slices(text: str | None) -> pd.Series[Any] | str | None:
    path = text and Path(text)
    return by_query(path, "slices") if path and (path.suffix or path.exists()) else text
