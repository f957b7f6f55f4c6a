"""Print scores, tables, progress and warnings; arguments and options that several commands share.

Control characters are escaped in texts for people, and so are letters that the terminal cannot show. Help is made only
when somebody asks for it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from rankeval.cli.options import as_options
from rankeval.render.markup import visible

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.collection.convention import Convention
    from rankeval.collection.qrels import Qrels
    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation
    from rankeval.experiment import ExperimentResult
    from rankeval.io.limits import Limits

CARD = ("ties", "judgments", "missing", "no_relevant")
"""The rules that change numbers most; printed below every table."""

SELDOM = ("unjudged", "depth", "score_dtype")
"""Rules of options; printed if they differ from the preset rankeval."""

_FORMULA = ("=", "+", "-", "@")
"""Spreadsheets take a text that begins so for a formula (OWASP, CSV injection)."""

MEASURE_HELP = "A measure, such as nDCG@10; may be given several times."


def tell(text: str, *, to_stderr: bool = False) -> None:
    """Print lines for people.

    Parameters
    ----------
    text : str
        The lines.
    to_stderr : bool
        Whether to print on stderr, as for all messages that are no results.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    typer.echo(encodable(visible(text, keep="\n"), stream), err=to_stderr)


def encodable(text: str, stream: TextIO | None) -> str:
    """Return a text with the characters that a stream cannot encode as Python escapes.

    Parameters
    ----------
    text : str
        The text to print.
    stream : text stream, optional
        The stream.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


class Format(StrEnum):
    """The forms of a table."""

    table = "table"
    json = "json"
    csv = "csv"


class EvaluationFormat(StrEnum):
    """The forms of scores."""

    table = "table"
    json = "json"
    csv = "csv"
    trec = "trec"


class ListFormat(StrEnum):
    """The forms of the list of measures; markdown is the guide to them."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


class KeysFormat(StrEnum):
    """The forms of the reference of keys."""

    text = "text"
    markdown = "markdown"


def say(message: str) -> None:
    """Print a line to stderr."""
    tell(message, to_stderr=True)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line."""
    del category, filename, lineno, file, line
    say(f"warning: {' '.join(str(message).split())}")


def print_trec(
    judgments: Qrels,
    runs: list[Path],
    measures: list[str],
    rules: Convention,
    zscores: Path | None,
    limits: Limits,
    *,
    per_query: bool,
    summary: bool,
) -> None:
    """Print the output of trec_eval for each run."""
    from rankeval.collection.run import Run
    from rankeval.trec_eval.output import read_zscores, trec_text

    reference = None if zscores is None else read_zscores(zscores, limits=limits)
    for path in runs:
        text = trec_text(
            judgments,
            Run.read(path, limits=limits),
            measures=measures,
            convention=rules,
            per_query=per_query,
            summary=summary,
            zscores=reference,
        )
        sys.stdout.write(text)


def print_scores(evaluations: Mapping[str, Evaluation], output: Format, *, per_query: bool) -> None:
    """Print one row per run (and query) and one column per measure, without the slow import of pandas."""
    from rankeval.evaluation.result import aggregates

    labels = next(iter(evaluations.values())).measure_names
    rows: list[tuple[Any, ...]] = []
    for name, evaluation in evaluations.items():
        total = aggregates(evaluation).values()
        if per_query:
            queries = zip(evaluation.queries.tolist(), evaluation.scores.tolist(), strict=True)
            rows += [(name, query, *scores) for query, scores in queries]
            rows.append((name, "all", *total))
        else:
            rows.append((name, *total))
    print_rows(["run", "qid", *labels] if per_query else ["run", *labels], rows, output)
    for note in _notes(evaluations):
        if output is Format.table:
            tell(note)
        else:  # the output for programs holds numbers only
            say(f"note: {note}")


def _notes(evaluations: Mapping[str, Evaluation]) -> list[str]:
    """Return the convention and the notes on each run; notes that all runs share appear once."""
    from rankeval.collection.convention import PRESETS

    first, *others = evaluations.values()
    usual = PRESETS["rankeval"].card()
    card = {
        rule: value
        for rule, value in first.convention.card().items()
        if rule in CARD or (rule in SELDOM and value != usual[rule])
    }
    notes = [f"convention {first.convention.name}: {', '.join(f'{rule} {value}' for rule, value in card.items())}"]
    if all(other.notes == first.notes for other in others):
        return notes + list(first.notes)
    return notes + [f"{name}: {note}" for name, evaluation in evaluations.items() for note in evaluation.notes]


def print_comparison(compared: Comparison, output: Format) -> None:
    """Print the table for readers, all that `Comparison.from_json` reads, or the numbers of the table as csv.

    A comparison of one system has no differences, so its means are printed.
    """
    if output is Format.table:
        tell(as_options("\n".join([*compared.findings, "", str(compared)])))
    elif output is Format.json:
        typer.echo(compared.to_json())
    else:
        numbers = compared.table if compared.has_pairs or compared.means is None else compared.means
        print_frame(numbers, output)
        for sentence in (*compared.findings, compared.caption, *compared.notes):
            say(as_options(f"note: {sentence}"))


def print_frame(frame: pd.DataFrame, output: Format) -> None:
    """Print a frame by `print_rows`."""
    print_rows(list(frame.columns), list(frame.itertuples(index=False, name=None)), output)


def print_rows(header: Sequence[str], rows: Sequence[Sequence[Any]], output: Format) -> None:
    """Print a table: json and csv with every digit, the table rounded for readers.

    Nan is null in json and empty in csv; infinity is null in json and a word, inf or -inf, in csv. The texts of csv are
    safe for a terminal and a spreadsheet: see `_cell`.
    """
    if output is Format.table:
        from rankeval.render.tables import rows_to_text

        tell(rows_to_text([visible(name) for name in header], [[_shown(value) for value in row] for row in rows]))
        return
    unknown = math.isnan if output is Format.csv else _is_not_finite
    plain = [[_plain(value, unknown) for value in row] for row in rows]
    if output is Format.json:
        import json

        typer.echo(json.dumps([dict(zip(header, row, strict=True)) for row in plain], indent=1))
    else:
        import csv

        cells = [[_cell(value) if isinstance(value, str) else value for value in row] for row in [header, *plain]]
        csv.writer(sys.stdout, lineterminator="\n").writerows(cells)


def _shown(value: Any) -> Any:
    """Return a cell for people, with control characters of names and ids escaped."""
    return visible(value) if isinstance(value, str) else value


def _cell(text: str) -> str:
    """Return a text as csv holds it: control characters as escapes, and ' before a text that would be a formula."""
    text = visible(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _is_not_finite(value: float) -> bool:
    return not math.isfinite(value)


def _plain(value: Any, unknown: Callable[[float], bool]) -> Any:
    """Return a value as plain Python, None for floats that are unknown in the form printed."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and unknown(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


@contextmanager
def show_progress() -> Iterator[Callable[[int, int, str], None] | None]:
    """Yield a function that shows progress on stderr, or None if stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(done: int, total: int, doing: str) -> None:
            bar.update(task, completed=done, total=total, description=doing)

        yield show


def print_result(result: ExperimentResult) -> None:
    """Print the result, and the places of its report and run."""
    from rankeval.report.summaries import experiment_text

    tell(experiment_text(result.facts))
    tell(f"Report:  {result.report}")
    if result.tracked:
        tell(f"MLflow:  {result.tracked.where}")


Measures = Annotated[list[str], typer.Option("--measure", "-m", help=MEASURE_HELP)]
ConventionName = Annotated[
    str, typer.Option("--convention", help="How judgments and ranking are joined: rankeval, trec_eval-9.0.8, ...")
]
Ties = Annotated[
    str | None, typer.Option(help="Rows of equal score: expected, docid, stable, best, worst; else by the convention.")
]
Missing = Annotated[
    str | None,
    typer.Option(help="Queries that a run lacks: empty (an empty ranking), zero, skip, error; else by the convention."),
]
NoRelevant = Annotated[
    str | None, typer.Option(help="Queries without a relevant document: zero, one, skip; else by the convention.")
]
ScoreType = Annotated[
    str | None, typer.Option(help="Precision in which scores are compared: float64, float32; else by the convention.")
]
PerQuery = Annotated[bool, typer.Option("--per-query", "-q", help="Print every query too.")]
Level = Annotated[int, typer.Option("--level", "-l", help="Lowest label that is relevant.")]
Depth = Annotated[int | None, typer.Option("--depth", "-M", help="Cut rankings off at this rank.")]
CollectionSize = Annotated[
    int | None, typer.Option("--collection-size", "-N", help="Number of documents in the collection.")
]
DEFAULT_MEASURES = ["nDCG@10", "AP", "RR"]
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
