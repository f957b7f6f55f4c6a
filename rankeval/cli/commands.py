"""The commands `rankeval run`, `rankeval tests` and `rankeval doctor`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from rankeval import errors
from rankeval import tracking as hosts
from rankeval._checks import count
from rankeval.cli.output import Format, KeysFormat, OutputFormat, print_frame, print_result, say, show_progress, tell

SAID = ("name", "kind", "words", "title", "two_sided", "one_sided", "note")
RATES = ("name", "test", "world", "n", "comparisons", "sides", "quantity", "rate", "standard_error", "replications")
DISTRIBUTION = "rankeval-mlflow"
SHOWN_VERSIONS = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "mlflow", "lightgbm", "xgboost", "catboost")


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


def list_declared(
    name: Annotated[
        str | None, typer.Argument(help="A part of a name or of its words: print all that was measured of these.")
    ] = None,
    output: OutputFormat = Format.table,
) -> None:
    """List the significance tests, corrections and claims with their measured error rates."""
    from rankeval.significance.catalogue import list_tests, rates_found

    listed = list_tests(name).reset_index()
    if output is not Format.table:
        print_frame(listed if name is None else rates_found(name), output)
    elif name is None:
        print_frame(listed[["name", "kind", "words", "title"]], Format.table)
    else:
        for row in listed.to_dict("records"):
            tell("\n".join(f"{topic:<10} {row[topic]}" for topic in SAID if row[topic]) + "\n")
        if len(found := rates_found(name)):
            print_frame(found[[*RATES]], Format.table)


def doctor() -> None:
    """Show versions, hosts and the ledger in force: its head, whether it is whole, and the name in new entries."""
    import platform
    from importlib import metadata

    def version(name: str) -> str:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return "not installed"

    facts = {"python": platform.python_version(), "rankeval": str(Path(__file__).parents[2])}
    facts |= {name: version(name) for name in (DISTRIBUTION, *SHOWN_VERSIONS)}
    facts |= {f"host {name}": hosts.title_of(name) for name in hosts.host_names()}
    facts |= dict(_ledger())
    for topic, said in facts.items():
        tell(f"{topic:<16} {said}")
    # The plain name belongs to an older package with the same import name: one would overwrite files of the other.
    if version("rankeval") != "not installed":
        raise errors.InvalidInput(
            f"the distribution rankeval {version('rankeval')}, another project, is installed into the same folder: "
            f"pip uninstall rankeval, then pip install --force-reinstall {DISTRIBUTION}"
        )


def _ledger() -> Iterator[tuple[str, str]]:
    """Yield what is known of the ledger in force; a broken one is described, since a doctor must not fall ill."""
    from rankeval.guard.records import why_lost
    from rankeval.ledger import discovery
    from rankeval.ledger.ledger import Ledger

    try:
        url = discovery.default_url()
        if url is None:
            yield "ledger", "switched off"
            return
        ledger = Ledger(url)
        if not discovery.may_exist(url):
            yield "ledger", f"{ledger.where} (not there yet)"
        else:
            yield "ledger", ledger.where
            faults = ledger.problems()
            yield "its state", "; ".join(faults) if faults else f"whole, {count(len(ledger.read().entries), 'entry')}"
            if not faults:
                yield "its head", ledger.read().head
        yield "you are", ledger.who
        if lost := why_lost(url):
            yield "warning", lost
    except errors.RankevalError as error:
        yield "ledger", str(error)
