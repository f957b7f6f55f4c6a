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
from rankeval.cli.inputs import Reading, by_file_name, evaluations
from rankeval.cli.options import options
from rankeval.cli.output import Format, noted, print_frame, print_result, say, tell_all

judging_app: typer.Typer = command_group(
    "Make a test collection: pools, sheets, agreement, machine judges."
)


@judging_app.command()
@options(
    "RUNS depth by judged minutes rng RANKINGS output",
    depth=20,
    then="rankeval judging sheets FOLDER {runs} --depth {depth} --judge NAME",
)
def pool(
    *,
    runs: list[Path],
    depth: int,
    minutes: float,
    reading: Reading,
    output: Format,
    **arguments: Any,
) -> None:
    """List the documents to judge, the next one first, and how long it takes.

    The table shows what each run adds. --format csv and json list the documents.

    For example:
        rankeval judging pool bm25.run dense.run --depth 10
        rankeval judging pool bm25.run dense.run --judged qrels.txt --format csv
    """
    from rankeval.judging import pool as pooled

    made = pooled({name: noted(run) for name, run in reading.rankings(runs)}, depth=depth)
    waiting = made.order(**arguments)
    if output is Format.table:
        tell_all(made)
    else:
        print_frame(waiting.assign(found_by=waiting["found_by"].map(" ".join)), output)
    cost = made.cost(minutes=minutes).loc["all"]
    hours = cost["hours"] * len(waiting) / cost["documents"]
    documents = count(len(waiting), "document")
    say(f"to judge: {documents}, {hours:,.1f} hours if one takes {minutes:g} minutes")


@judging_app.command()
@options(
    "FOLDER RUNS depth judges overlap documents topics scale rng sheet_format RANKINGS wide",
    depth=20,
    then="rankeval judging agreement {folder}",
)
def sheets(
    *, folder: Path, runs: list[Path], depth: int, reading: Reading, **arguments: Any
) -> None:
    """Pool rankings, and write a sheet of documents for each judge.

    For example:
        rankeval judging sheets sheets bm25.run dense.run --judge ann --judge ben
        rankeval judging sheets sheets bm25.run --judge ann --documents docs.tsv
    """
    from rankeval.io.texts import read_texts
    from rankeval.judging import pool as pooled
    from rankeval.judging import write_sheets

    made = pooled({name: noted(run) for name, run in reading.rankings(runs)}, depth=depth)
    arguments["format"] = arguments.pop("sheet_format")
    texts, queries = (
        None if path is None else read_texts(path)
        for path in map(arguments.pop, ("documents", "topics"))
    )
    print_frame(write_sheets(made, folder, texts=texts, queries=queries, **arguments), Format.table)


@judging_app.command()
@options(
    "JUDGED levels READING output",
    then="rankeval judging calibrate RUN RUN --human QRELS --machine QRELS",
)
def agreement(*, judged: list[Path], levels: Any, reading: Reading, output: Format) -> None:
    """Measure how far judges agree, with intervals by topics.

    Give a folder of sheets, a file of judgments for each judge, or one file of all judges. This
    file is a table with a column of judges or a column for each judge, or TREC text whose second
    column is the judge.

    For example:
        rankeval judging agreement sheets
        rankeval judging agreement ann.qrels ben.qrels --grades ordinal
    """
    from rankeval.io.frames import JUDGES
    from rankeval.judging import agreement as agreed
    from rankeval.judging import read_sheets

    judgments: Any
    if len(judged) > 1:
        files = by_file_name(judged).items()
        judgments = {name: noted(reading.judgments(path)) for name, path in files}
    elif judged[0].is_dir():
        judgments = read_sheets(judged[0])
    else:
        judgments = noted(reading.judgments(judged[0], aspect=JUDGES))
    reading.check()
    print_result(agreed(judgments, level=levels), output)


@judging_app.command()
@options(
    "RUNS human machine baseline measures convention correction alpha READING output",
    measures=["nDCG@10"],
    then="rankeval page {human} {runs} --out queries.html",
)
def calibrate(
    *,
    runs: list[Path],
    human: Path,
    machine: Path,
    measures: list[str],
    convention: str,
    reading: Reading,
    output: Format,
    **arguments: Any,
) -> None:
    r"""Compare rankings by a machine's judgments of all queries, corrected by people's judgments of some.

    The queries for the people must be drawn at random, and judged completely.

    For example:
        rankeval judging calibrate bm25.run dense.run --human people.qrels \
            --machine llm.qrels
        rankeval judging calibrate bm25.run dense.run --human people.qrels \
            --machine llm.qrels --baseline bm25.run -m AP
    """
    from rankeval.judging import calibrate as calibrated

    by_people, by_machine = (
        evaluations(path, runs, measures, convention, reading) for path in (human, machine)
    )
    print_result(calibrated(by_people, by_machine, **arguments), output)
