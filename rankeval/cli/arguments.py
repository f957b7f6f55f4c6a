"""Arguments and options that several commands share, and help that is made only when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from rankeval.cli.output import Format

MEASURE_HELP = "A measure, such as nDCG@10; may be given several times."
Measures = Annotated[list[str], typer.Option("--measure", "-m", help=MEASURE_HELP)]
ConventionName = Annotated[
    str, typer.Option("--convention", help="How judgments and ranking are joined: rankeval, trec_eval-9.0.8, ...")
]
LimitOptions = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=VALUE", help="Raise a limit for a large file that is sound: expansion, ..."),
]
OutputFormat = Annotated[Format, typer.Option("--format", help="How to print it.")]


def ending_with(lines: Callable[[], Iterable[str]]) -> type[typer.core.TyperCommand]:
    """Make a class of commands whose help ends with lines that are found only when somebody asks for help.

    Parameters
    ----------
    lines : callable
        Returns the lines.
    """

    class Listing(typer.core.TyperCommand):
        def format_help(self, ctx: Any, formatter: Any) -> None:
            self.epilog = "\n\n".join(lines())
            super().format_help(ctx, formatter)

    return Listing
