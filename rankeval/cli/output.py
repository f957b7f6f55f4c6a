"""Print scores, tables, progress and warnings.

Control characters are escaped in texts for people, and so are letters that the terminal cannot
show.
"""

from __future__ import annotations

import math
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankeval._display import view_of
from rankeval._secrets import without_secrets
from rankeval._visible import visible
from rankeval.render.tables import guarded

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.evaluation import Evaluation


# Classes and not calls of StrEnum: Pyright, and so a user's program, knows the members of no other
# form.
class Format(StrEnum):
    """The forms of a table."""

    table, json, csv = "table", "json", "csv"


class EvaluationFormat(StrEnum):
    """The forms of scores."""

    table, json, csv, trec = "table", "json", "csv", "trec"


class ListFormat(StrEnum):
    """The forms of a list; markdown is the guide to what it lists."""

    table, json, csv, markdown = "table", "json", "csv", "markdown"


class KeysFormat(StrEnum):
    """The forms of the reference of keys."""

    text, markdown = "text", "markdown"


WIDE: ContextVar[bool] = ContextVar("wide", default=False)
"""Whether the tables of this command may be wider than the terminal."""

FOR_PEOPLE = ("table", "text")
"""The output formats that end with the next command."""

CARD = ("ties", "judgments", "missing", "no_relevant")
"""The rules that change numbers most; printed below every table."""

SELDOM = ("unjudged", "depth", "score_dtype")
"""Rules of options; printed if they differ from the preset rankeval."""


HELD: list[str] = []
"""Warnings that are notes of a result too, until its notes are printed or the command ends."""


_HANGING = re.compile(r" *(?:\* |\S.{0,18}?  +)?")
"""What a line begins with, such as the topic of a fact: its further lines are indented as far."""


def room() -> int | None:
    """Return the columns of the terminal, or 80 without one; None if --wide lifts the limit."""
    return None if WIDE.get() else shutil.get_terminal_size((80, 24)).columns


def tell(text: str, *, to_stderr: bool = False, fill: bool = True) -> None:
    """Print lines for people, wrapped to the terminal unless they have a form of their own."""
    encoding = getattr(sys.stderr if to_stderr else sys.stdout, "encoding", None) or "utf-8"
    shown = visible(without_secrets(text), keep="\n")
    limit = room()
    if fill and limit is not None:
        shown = "\n".join(_filled(line, limit) for line in shown.split("\n"))
    typer.echo(shown.encode(encoding, "backslashreplace").decode(encoding), err=to_stderr)


def _filled(line: str, limit: int) -> str:
    """Wrap a line; a path or an address that is longer has a line of its own."""
    if len(line) <= limit:
        return line
    start = _HANGING.match(line)
    return textwrap.fill(
        line,
        limit,
        subsequent_indent=" " * (start.end() if start else 0),
        break_long_words=False,
        break_on_hyphens=False,
    )


def suggest(template: str, values: Mapping[str, Any]) -> None:
    """End a command with the next one to type, on stderr.

    The values replace a name in braces. Without values, the name is left to the reader, in capitals.
    A command that is too long for a line is continued as a shell reads it.
    """
    words: list[str] = []
    for word in template.split():
        before, _, name = word.rstrip("}").partition("{")
        value = values.get(name, name.upper()) if name else ""
        several = value if isinstance(value, list) else [name.upper() if value is None else value]
        words += [shlex.quote(visible(f"{before}{each}")) for each in several]
    limit = (room() or 80) - len("next: ")
    text = " ".join(word.replace(" ", "\0") for word in words)  # no line ends within a word
    lines = [text]
    if len(text) > limit:
        lines = textwrap.wrap(text, limit - 2, break_long_words=False, break_on_hyphens=False)
    joined = " \\\n      ".join(lines).replace("\0", " ")
    tell(f"next: {joined}", to_stderr=True, fill=False)


def from_here(place: str) -> str:
    """Return a path, or a command with the URL of SQLite, relative to the working directory."""
    here = f"{Path.cwd()}/"
    return place.removeprefix(here).replace(f"sqlite:///{here}", "sqlite:///")


def say(message: str) -> None:
    """Print a line to stderr."""
    tell(message, to_stderr=True)


def noted(rows: Any) -> Any:
    """Return rows that were read, after their notes are printed to stderr."""
    for note in rows.notes:
        say(f"note: {note}")
    return rows


def ask(role: str, choices: Sequence[str]) -> str:
    """Ask which of some columns has a role, by their numbers: a name may be any text."""
    from rich.prompt import IntPrompt

    tell("\n".join(f"{number:>4}  {name}" for number, name in enumerate(choices, start=1)))
    numbers = [str(number) for number in range(1, len(choices) + 1)]
    question = f"Which column is the {role}?"
    return choices[IntPrompt.ask(question, choices=numbers, show_choices=False) - 1]


def print_scores(evaluations: Mapping[str, Evaluation], output: Format, *, per_query: bool) -> None:
    """Print one row per run (and query) and one column per measure; the other way round if too wide."""
    # Without pandas, whose import is slow.
    from rankeval.evaluation.result import aggregates

    labels = next(iter(evaluations.values())).measure_names
    rows: list[tuple[Any, ...]] = []
    for name, evaluation in evaluations.items():
        means = aggregates(evaluation).values()
        if not per_query:
            rows.append((name, *means))
            continue
        queries = zip(evaluation.queries.tolist(), evaluation.scores.tolist(), strict=True)
        rows += [(name, query, *scores) for query, scores in queries]
        rows.append((name, "all", *means))
    header = ["run", "qid", *labels] if per_query else ["run", *labels]
    is_read = output is Format.table
    if is_read and not per_query and _is_wide(header, len(rows)):
        first, *rows = zip(["measure", *labels], *rows, strict=True)
        header = list(first)
    print_rows(header, rows, output)
    for note in _notes(evaluations):  # the output for programs has numbers only
        tell(note if is_read else f"note: {note}", to_stderr=not is_read)


def _is_wide(header: Sequence[str], n_runs: int) -> bool:
    """Return whether the measures of a few runs are easier to read below each other."""
    limit, needed = room(), sum(max(len(name), 6) + 2 for name in header)
    return limit is not None and n_runs < len(header) - 1 and needed > limit


def _notes(evaluations: Mapping[str, Evaluation]) -> list[str]:
    """Return the convention and the notes on each run; notes that all runs share appear once."""
    from rankeval.collection.convention import PRESETS, in_words

    first, *others = evaluations.values()
    usual = PRESETS["rankeval"].card()
    card = first.convention.card()
    rules = [
        rule for rule in card if rule in CARD or (rule in SELDOM and card[rule] != usual[rule])
    ]
    notes = [
        f"convention {first.convention.name}: {in_words({rule: card[rule] for rule in rules})}"
    ]
    if all(other.notes == first.notes for other in others):
        return notes + list(first.notes)
    return notes + [
        f"{name}: {note}" for name, evaluation in evaluations.items() for note in evaluation.notes
    ]


def print_result(result: Any, output: Format) -> None:
    """Print findings, table, caption and notes; for programs the table, the rest on stderr.

    A comparison is printed as JSON with all that `Comparison.from_json` reads. A comparison of
    one system has no differences, so its means are printed.
    """
    HELD.clear()  # the notes say it, in each form
    if output is Format.json and hasattr(result, "to_json"):
        typer.echo(result.to_json())
        return
    from rankeval.comparison.tables import caption_of

    if output is Format.table:
        tell_all(result)
        return
    findings, means = getattr(result, "findings", ()), getattr(result, "means", None)
    print_frame(means if result.table.empty and means is not None else result.table, output)
    for sentence in (*findings, caption_of(result), *result.notes):
        say(f"note: {sentence}")


def tell_all(result: Any) -> None:
    """Print a result as a session shows it, with all its rows and notes."""
    tell(view_of(result).to_text(width=room(), lines=None))


def print_frame(frame: pd.DataFrame, output: Format, spare: Sequence[str] = ()) -> None:
    """Print a frame by `print_rows`; the table lacks the spare columns, unless it may be wide."""
    is_narrow = bool(spare) and output is Format.table and not WIDE.get()
    shown = frame.drop(columns=[*spare]) if is_narrow else frame
    print_rows(list(shown.columns), list(shown.itertuples(index=False, name=None)), output)
    if is_narrow:
        tell(f"* --wide shows more columns: {', '.join(spare)}")


def print_rows(header: Sequence[str], rows: Sequence[Sequence[Any]], output: Format) -> None:
    """Print a table: json and csv with every digit, the table rounded for readers.

    Nan is null in json and empty in csv; infinity is null in json and a word, inf or -inf, in csv.
    The texts of csv are safe for a terminal, by escapes, and for a spreadsheet: see
    `rankeval.render.tables.guarded`.
    """
    if output is Format.table:
        from rankeval.render.tables import rows_to_text

        tell(rows_to_text([visible(name) for name in header], _written(rows, visible), room()))
        return
    unknown = math.isnan if output is Format.csv else lambda value: not math.isfinite(value)
    plain = [[_plain(value, unknown) for value in row] for row in rows]
    if output is Format.json:
        import json

        records = [dict(zip(header, row, strict=True)) for row in plain]
        typer.echo(json.dumps(records, indent=1, default=str))
    else:
        import csv

        cells = _written([header, *plain], lambda text: guarded(visible(text)))
        csv.writer(sys.stdout, lineterminator="\n").writerows(cells)


def _written(rows: Sequence[Sequence[Any]], write: Callable[[str], str]) -> list[list[Any]]:
    return [[write(value) if isinstance(value, str) else value for value in row] for row in rows]


def _plain(value: Any, unknown: Callable[[float], bool]) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and unknown(value):
        return None
    return value if isinstance(value, (str, int, float, bool, list, type(None))) else str(value)


@contextmanager
def show_progress(*, stages: bool = False) -> Iterator[Callable[[int, int, str], None] | None]:
    """Yield a function that shows progress on stderr: a bar in a terminal, else a line a stage, or None."""
    if not sys.stderr.isatty():
        yield _show_stage if stages else None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(done: int, total: int, doing: str) -> None:
            bar.update(task, completed=done, total=total, description=doing)

        yield show


def _show_stage(done: int, total: int, doing: str) -> None:
    if done < total:
        say(f"[{done + 1}/{total}] {doing}")
