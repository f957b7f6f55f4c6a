"""The command `rankeval run`."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from rankeval import errors
from rankeval.cli.output import KeysFormat, print_result, say, show_progress, tell


def run(
    config: Annotated[
        str | None,
        typer.Argument(metavar="CONFIG", help="An experiment file, or a shipped one by name: quickstart, letor."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a setting, as in --set cv.n_splits=10."),
    ] = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="Print all keys of an experiment file, and run nothing.")
    ] = False,
    output: Annotated[KeysFormat, typer.Option("--format", help="How to print the keys.")] = KeysFormat.text,
) -> None:
    """Run an experiment: tune on the training part, freeze, open the test part once, compare, report, log.

    An experiment file names functions and classes, which are imported and called: trust it as you would trust a script.
    """
    if keys:
        _print_keys(output)
        return
    if config is None:
        raise errors.InvalidInput("name an experiment file, or a shipped one: quickstart, letor; --keys lists its keys")
    from rankeval.experiment.config import load_config

    checked = load_config(config, settings or ())  # before the slow imports, to answer a misspelt key at once
    from rankeval.experiment import run_experiment
    from rankeval.experiment.recipe import NOT_LOGGED

    with warnings.catch_warnings(), show_progress() as progress:
        warnings.filterwarnings("ignore", NOT_LOGGED, errors.RankevalWarning)  # printed below, as an error
        result = run_experiment(checked, progress=progress)
    print_result(result)
    if result.tracking_error:
        say(f"error: {result.tracking_error}")
        raise typer.Exit(2)


def _print_keys(output: KeysFormat) -> None:
    from rankeval.experiment.keys import keys_markdown, keys_text

    if output is KeysFormat.markdown:
        typer.echo(keys_markdown(), nl=False)
    else:
        tell(keys_text())
