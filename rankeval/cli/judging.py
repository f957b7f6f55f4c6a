"""The commands of ``rankeval judging``: parse, call, print.

::

    rankeval judging pool RUN...            the documents to judge
    rankeval judging sheets FOLDER RUN...   a file of them for each judge, to be filled
    rankeval judging agreement FOLDER       how far the judges agree
    rankeval judging calibrate RUN...       systems by judgments of people and of a machine
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from rankeval._checks import count
from rankeval.cli.exits import command_group
from rankeval.cli.inputs import by_file_name, evaluations
from rankeval.cli.options import Format, options
from rankeval.cli.output import print_frame, print_result, say, tell

judging_app: typer.Typer = command_group(
    "Make a test collection: pools, sheets, agreement, machine judges."
)


@judging_app.command()
@options("RUNS depth by judged minutes rng output", depth=20)
def pool(*, runs: list[Path], depth: int, minutes: float, output: Format, **arguments: Any) -> None:
    """List the documents to judge, the next one first, and how long it takes; as a table, what each run adds."""
    from rankeval.judging import pool as pooled

    made = pooled(by_file_name(runs), depth=depth)
    waiting = made.order(**arguments)
    if output is Format.table:
        tell(str(made))
    else:
        print_frame(waiting.assign(found_by=waiting["found_by"].map(" ".join)), output)
    cost = made.cost(minutes=minutes).loc["all"]
    hours = cost["hours"] * len(waiting) / cost["documents"]
    documents = count(len(waiting), "document")
    say(f"to judge: {documents}, {hours:,.1f} hours if one takes {minutes:g} minutes")


@judging_app.command()
@options("FOLDER RUNS depth judges overlap documents topics scale rng sheet_format", depth=20)
def sheets(*, folder: Path, runs: list[Path], depth: int, **arguments: Any) -> None:
    """Pool rankings, and write a sheet of documents for each judge; --overlap is the share that all judges get."""
    from rankeval.io.texts import read_texts
    from rankeval.judging import pool as pooled
    from rankeval.judging import write_sheets

    made, arguments["format"] = (
        pooled(by_file_name(runs), depth=depth),
        arguments.pop("sheet_format"),
    )
    texts, queries = (
        None if path is None else read_texts(path)
        for path in map(arguments.pop, ("documents", "topics"))
    )
    print_frame(write_sheets(made, folder, texts=texts, queries=queries, **arguments), Format.table)


@judging_app.command()
@options("JUDGED grades output")
def agreement(*, judged: list[Path], grades: Any, output: Format) -> None:
    """Measure how far judges agree, with intervals by topics.

    Give a folder of sheets; a file of judgments for each judge; or one file whose second column is
    the judge.
    """
    from rankeval.collection.qrels import Qrels
    from rankeval.judging import agreement as agreed
    from rankeval.judging import read_sheets

    judgments: Any = by_file_name(judged)
    if len(judged) == 1:
        (path,) = judged
        judgments = read_sheets(path) if path.is_dir() else Qrels.read(path, "ndeval")
    print_result(agreed(judgments, level=grades), output)


@judging_app.command()
@options(
    "RUNS human machine baseline measures convention correction alpha output", measures=["nDCG@10"]
)
def calibrate(
    *,
    runs: list[Path],
    human: Path,
    machine: Path,
    measures: list[str],
    convention: str,
    output: Format,
    **arguments: Any,
) -> None:
    """Compare rankings by a machine's judgments of all queries, corrected by people's judgments of some.

    People judge each of their queries completely, and the queries are drawn at random.
    """
    from rankeval.judging import calibrate as calibrated

    by_people, by_machine = (
        evaluations(path, runs, measures, convention) for path in (human, machine)
    )
    print_result(calibrated(by_people, by_machine, **arguments), output)
