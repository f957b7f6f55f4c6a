"""The commands of ``rankeval mlflow``, put together from their files. Each imports slow things when it is called."""

from __future__ import annotations

import typer

from rankeval.cli.net import OwnAnswers
from rankeval_mlflow.commands.delivery import discard, resend
from rankeval_mlflow.commands.guarding import verify_guard
from rankeval_mlflow.commands.promoting import promote
from rankeval_mlflow.commands.reading import compare, leaderboard, list_all

app: typer.Typer = typer.Typer(
    cls=OwnAnswers,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="List, compare and rank evaluations in MLflow, send pending uploads, promote models, check ledgers.",
)

app.command("list")(list_all)
app.command()(compare)
app.command()(leaderboard)
app.command()(resend)
app.command()(discard)
app.command()(promote)
app.command("verify-guard")(verify_guard)
