"""The command that lists significance tests, corrections and claims with their measured error rates."""

from __future__ import annotations

from typing import Annotated

import typer

from rankeval import errors
from rankeval.cli.output import Format, ListFormat, print_frame, tell

SAID = ("name", "kind", "words", "title", "two_sided", "one_sided", "note")
RATES = ("name", "test", "world", "n", "comparisons", "sides", "quantity", "rate", "standard_error", "replications")


def list_declared(
    name: Annotated[
        str | None, typer.Argument(help="A part of a name or of its words: print all that was measured of these.")
    ] = None,
    output: Annotated[
        ListFormat, typer.Option("--format", help="How to print it; markdown: the guide to significance.")
    ] = ListFormat.table,
) -> None:
    """List the significance tests, corrections and claims with their measured error rates."""
    from rankeval.significance.catalogue import list_tests, rates_found

    if output is ListFormat.markdown:
        _print_guide(name)
        return
    listed = list_tests(name).reset_index()
    if output is not ListFormat.table:
        print_frame(listed if name is None else rates_found(name), Format(output.value))
    elif name is None:
        print_frame(listed[["name", "kind", "words", "title"]], Format.table)
    else:
        for row in listed.to_dict("records"):
            tell("\n".join(f"{topic:<10} {row[topic]}" for topic in SAID if row[topic]) + "\n")
        if len(found := rates_found(name)):
            print_frame(found[[*RATES]], Format.table)


def _print_guide(name: str | None) -> None:
    from rankeval.significance.guide import significance_markdown

    if name is not None:
        raise errors.InvalidInput("--format markdown prints the page of all tests: leave out the name")
    typer.echo(significance_markdown(), nl=False)
