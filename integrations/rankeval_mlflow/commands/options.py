"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from rankeval.cli.output import Format

Store = Annotated[str | None, typer.Option("--uri", help="The tracking store; by default MLflow's own setting.")]
Role = Annotated[str | None, typer.Option(help="The role of the evaluations.")]
OutputFormat = Annotated[Format, typer.Option("--format", help="How to print it.")]
