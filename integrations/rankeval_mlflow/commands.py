"""The commands of ``rankeval mlflow``. Each imports slow things when it is called.

``list``, ``compare`` and ``leaderboard`` show the evaluations in a store; ``resend`` and
``discard`` handle uploads that a store refused; ``promote`` moves an alias, ``rollback`` takes that
back, and ``why`` explains it; ``verify-guard`` compares ledgers with the heads that runs name.

A run has the first characters of its id in a table, as in Git, and may be named by them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankeval._checks import refuse
from rankeval._registry import chosen
from rankeval.cli.exits import OwnAnswers
from rankeval.cli.inputs import by_query
from rankeval.cli.options import OPTIONS, PANELS, TEXT, TEXTS, options
from rankeval.cli.output import WIDE, Format, from_here, print_frame, print_result, print_rows, tell
from rankeval.errors import GuardRefusal, InvalidInput, RankevalError
from rankeval_mlflow.delivery.spool import PendingUpload, read_payload, spool_directory, waiting

if TYPE_CHECKING:
    import pandas as pd

    from rankeval_mlflow.promotion.promoting import Promotion
    from rankeval_mlflow.reading.listing import LoggedRun


OPTIONS.update(
    MODELS=(
        list[str],
        ...,
        "Runs, by id or its first 8 characters, or models: models:/NAME/VERSION, NAME@ALIAS.",
        "RUNS...",
    ),
    MODEL=(str, ..., "The registered model."),
    EXPERIMENT=(str, ..., "Name of the experiment."),
    EXPERIMENT_NAME=(TEXT, None, "Name of the experiment. Default: all.", "EXPERIMENT"),
    UPLOADS=(TEXTS, None, "Uploads, by id. Default for resend: all that a store may take now."),
    data_set=(TEXT, None, "Name or digest of the data set.", "--data"),
    most=(int, 20, "Number of rows.", "--limit"),
    role=(TEXT, None, "The role of the evaluations."),
    wait=(bool, False, "List the pending uploads.", "--waiting"),
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
        "CSV or Parquet file with qid and an attribute of the queries; or a count, such as relevant.",
    ),
    floors=(
        TEXTS,
        None,
        "Loss to rule out on a slice, such as tail=0.05, or 0.05 for all. May be repeated.",
        "--floor",
    ),
    run_id=(
        TEXTS,
        None,
        "Run that decides, if evaluations of a version disagree. Once for each version.",
    ),
    first=(bool, False, "Give a new alias to this version, without a comparison.", "--first"),
    again=(bool, False, "Promote a version that was rolled back.", "--again"),
    override=(
        TEXT,
        None,
        "Move the alias without a test, for this reason.",
    ),
    override_by=(TEXT, None, "The person who is responsible for the override."),
    dry_run=(
        bool,
        False,
        "Decide without moving the alias. The decision counts towards the budget.",
        "--dry-run",
    ),
    who=(TEXT, None, "The person or machine, for the record."),
    reason=(str, None, "The reason, for the record."),
    log=(bool, False, "Write the answer to the version's description.", "--log"),
)

PANELS["Statistics"] += " slices floors significance"
PANELS["Records"] += " override override_by who reason log"
PANELS["Store"] += " run_id alias version"

app: typer.Typer = typer.Typer(
    cls=OwnAnswers,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="List, compare and rank evaluations in MLflow, send pending uploads, promote models, check ledgers.",
)


@app.command("list")
@options(
    "EXPERIMENT_NAME experiment uri output wait", then="rankeval mlflow leaderboard {experiment}"
)
def list_all(
    *,
    experiment_name: str | None,
    experiment: str | None,
    uri: str | None,
    output: Format,
    wait: bool,
) -> dict[str, str | None]:
    """List the runs with evaluations, newest first.

    For example:
        rankeval mlflow list
        rankeval mlflow list ranking --uri sqlite:///mlflow.db
    """
    twice = "name the experiment once: EXPERIMENT is the same as --experiment"
    refuse((None not in (experiment, experiment_name), twice))
    experiment = experiment_name or experiment
    if wait:
        rows = [_waiting_row(upload) for upload in waiting()]
        _print(
            ["upload", "name", "goes to", "state"],
            rows,
            output,
            f"no upload is pending in {spool_directory()}",
        )
        return {"then": "rankeval mlflow resend"}
    from rankeval_mlflow.reading.listing import logged_runs

    in_short = output is Format.table and not WIDE.get()
    runs = [_run_row(run, in_short=in_short) for run in logged_runs(experiment, uri)]
    _print(["run", "name", "role", "metrics"], runs, output, "no run has an evaluation")
    if held_up := waiting():
        tell(f"{len(held_up)} pending: rankeval mlflow list --waiting", to_stderr=True)
    return {"experiment": experiment}


@app.command()
@options(
    "MODELS baseline measures role test correction alpha uri output",
    measures=None,
    then="rankeval mlflow leaderboard EXPERIMENT",
)
def compare(*, models: list[str], output: Format, **settings: Any) -> None:
    """Compare the evaluations of several runs, paired by query.

    The baseline is a run, a model or the name of an evaluation. Without it, all pairs are compared.
    Without measures, all measures that the runs share are compared. `rankeval tests` lists tests
    and corrections.

    For example:
        rankeval mlflow compare 1f0c3a5e 9b27d401
        rankeval mlflow compare ranker@champion models:/ranker/3 -m nDCG@10
    """
    from rankeval_mlflow.reading.loading import compare_runs

    uri, baseline = settings["uri"], settings["baseline"]
    *runs, settings["baseline"] = _whole_ids([*models, baseline], uri)
    print_result(compare_runs(runs, **settings), output)


@app.command()
@options(
    "EXPERIMENT data_set most measure role alpha uri output significance",
    measure=None,
    then="rankeval mlflow compare RUN RUN",
)
def leaderboard(
    *, experiment: str, data_set: str | None, most: int, output: Format, **settings: Any
) -> None:
    """Rank the evaluations of an experiment that may be compared, and count the others by reason.

    Without --measure, the first measure of the evaluations decides.

    For example:
        rankeval mlflow leaderboard ranking
        rankeval mlflow leaderboard ranking --measure AP --role test
    """
    from rankeval_mlflow.reading.leaderboards import leaderboard as rank

    board = rank(experiment, data=data_set, limit=most, **settings)
    if output is Format.table and not WIDE.get():
        board = replace(board, table=board.table.assign(run_id=board.table["run_id"].str[:_SHORT]))
    print_result(board, output)
    for other in board.others.itertuples(index=False) if output is not Format.table else ():
        tell(f"not ranked: {other.run_id} {other.system}: {other.reason}", to_stderr=True)


_SHORT = 8
_BEGINNING = re.compile(rf"[0-9a-f]{{{_SHORT},31}}")


def _whole_ids(names: Sequence[str | None], uri: str | None) -> list[Any]:
    """Return names with the whole id of each run that is named by its beginning."""
    from rankeval_mlflow.reading.listing import logged_runs

    beginnings = [name for name in names if name and _BEGINNING.fullmatch(name)]
    ids = [run.run_id for run in logged_runs(None, uri)] if beginnings else []
    whole = {}
    for beginning in beginnings:
        found = [run_id for run_id in ids if run_id.startswith(beginning)]
        several = f"{beginning} begins the ids of several runs: {', '.join(found)}"
        refuse((len(found) > 1, several))
        whole[beginning] = found[0] if found else beginning
    return [whole.get(name, name) if name else name for name in names]


def _run_row(run: LoggedRun, *, in_short: bool) -> list[str]:
    ends = ("_ci_low", "_ci_high") if in_short else ()
    shown = [(key, value) for key, value in sorted(run.metrics.items()) if not key.endswith(ends)]
    metrics = ", ".join(f"{key} {value:.4f}" for key, value in shown)
    is_said = metrics and run.metrics_role and len(run.roles) > 1
    return [
        run.run_id[:_SHORT] if in_short else run.run_id,
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
@options("UPLOADS uri", then="rankeval mlflow list")
def resend(*, uploads: list[str] | None, uri: str | None) -> None:
    """Send pending uploads, which a tracking store refused before. Nothing is logged twice.

    For example:
        rankeval mlflow resend
        rankeval mlflow resend --uri http://localhost:5000
    """
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
    done = f"sent to run {tracked.run_id}" if tracked else "another process took care of it"
    tell(f"{upload.id}: {done}")
    if tracked:
        tell(from_here(tracked.where), fill=False)
    return True


@app.command()
@options("UPLOADS", uploads=..., then="rankeval mlflow list --waiting")
def discard(*, uploads: list[str]) -> None:
    """Delete pending uploads; `rankeval mlflow list --waiting` lists them.

    For example:
        rankeval mlflow discard 20260102-101500-3f2a
        rankeval mlflow discard 20260102-101500-3f2a 20260103-090000-77c1
    """
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
@options("MODELS ledger uri", then="rankeval mlflow list")
def verify_guard(*, models: list[str], ledger: str | None, uri: str | None) -> None:
    """Check that ledgers still contain the heads that runs name; exit with 1 otherwise.

    Without --ledger, the ledger that each run names is checked.

    For example:
        rankeval mlflow verify-guard 1f0c3a5e
        rankeval mlflow verify-guard ranker@champion --ledger rankeval-ledger
    """
    from rankeval.ledger.discovery import ledger_url, may_exist
    from rankeval.ledger.ledger import Ledger
    from rankeval_mlflow.reading.listing import noted_heads

    faults = []
    for run in _whole_ids(models, uri):
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
                tell(f"run {run}: {Ledger(url).where} is whole, and contains its head {head}")
    if faults:
        raise GuardRefusal("; ".join(faults))


@app.command()
@options(
    "MODEL version measure alias claim margin alpha budget test slices floors groups role run_id first again override "
    "override_by dry_run experiment who uri wide",
    version=...,
    measure=None,
    claim="better",
    role="test",
    then="rankeval mlflow why {model} --version {version} --alias {alias}",
)
def promote(*, model: str, slices: str | None, floors: list[str] | None, **settings: Any) -> None:
    r"""Move an alias of a registered model to a version that is shown to be better than the one in use.

    The claim is better or not_worse. The budget is the number of decisions on the same queries, 1
    for a single release, and alpha the one-sided level of all of them together. `rankeval tests`
    lists the tests. The decision is written to a run of the experiment, by default "MODEL
    promotions".

    The exit code is 0 if the version has the alias (with --dry-run: would have it), 1 if the
    version is rejected or another promoter came first, and 2 on bad use or if the store refuses.

    For example:
        rankeval mlflow promote ranker --version 4 --measure nDCG@10
        rankeval mlflow promote ranker --version latest --claim not_worse \
            --margin 0.01 --dry-run
    """
    from rankeval_mlflow.promotion.promoting import promote as move

    settings["run_id"] = _whole_ids(settings["run_id"] or (), settings["uri"]) or None
    _tell_promotion(move(model, slices=_slices(slices), floors=_floors(floors or []), **settings))


@app.command()
@options(
    "MODEL reason alias experiment who uri",
    reason=...,
    then="rankeval mlflow why {model} --version VERSION --alias {alias}",
)
def rollback(*, model: str, **settings: Any) -> None:
    """Give an alias back to the version that had it before the last recorded promotion.

    The decision is written to a run of the experiment, by default "MODEL promotions".

    The exit code is 0 if that version has the alias, 1 if the alias was moved meanwhile, and 2 on
    bad use or if the store refuses.

    For example:
        rankeval mlflow rollback ranker --reason "slow in production"
        rankeval mlflow rollback ranker --reason "bug" --alias challenger --who ann
    """
    from rankeval_mlflow.promotion.promoting import rollback as give_back

    _tell_promotion(give_back(model, **settings))


@app.command()
@options(
    "MODEL version alias log uri output",
    version=...,
    then="rankeval mlflow compare {tried} {holder}",
)
def why(*, model: str, output: Format, **settings: Any) -> dict[str, str]:
    """Explain by the records of promotions why a version has an alias, or does not have it.

    For example:
        rankeval mlflow why ranker --version 3
        rankeval mlflow why ranker --version latest --alias challenger
    """
    from rankeval_mlflow.promotion.explaining import why as explain

    print_result(explain(model, **settings), output)
    tried, holder = f"{model}/{settings['version']}", f"{model}@{settings['alias']}"
    return {"tried": tried, "holder": holder}


def _tell_promotion(done: Promotion) -> None:
    tell(done.words)
    if done.floors is not None:
        print_frame(done.floors, Format.table)
    if done.run_id is not None:
        tell(f"record: run {done.run_id}")
        tell(from_here(str(done.where)), fill=False)
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
