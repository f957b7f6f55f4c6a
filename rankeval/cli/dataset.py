"""`rankeval evaluate-dataset`: scored rows of Parquet instead of judgments and runs."""

from __future__ import annotations

from typing import Annotated

import typer

from rankeval.cli.options import sized
from rankeval.cli.output import (
    DEFAULT_MEASURES,
    CollectionSize,
    ConventionName,
    Depth,
    Format,
    Level,
    Measures,
    Missing,
    NoRelevant,
    OutputFormat,
    PerQuery,
    ScoreType,
    Ties,
    print_scores,
    show_progress,
)


def evaluate_dataset(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A Parquet data set of scored rows: a file, a folder or a URL (s3://...). It may be larger than "
            "memory.",
        ),
    ],
    qid: Annotated[str, typer.Option(metavar="COLUMN", help="The column of the query.")],
    relevance: Annotated[str, typer.Option(metavar="COLUMN", help="The column of the relevance.")],
    score: Annotated[str, typer.Option(metavar="COLUMN", help="The column of the score.")],
    docid: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of the document, for --ties docid.")
    ] = None,
    query_weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A column of weights, constant within a query.")
    ] = None,
    measures: Measures = DEFAULT_MEASURES,
    convention: ConventionName = "rankeval",
    per_query: PerQuery = False,
    level: Level = 1,
    depth: Depth = None,
    collection_size: CollectionSize = None,
    ties: Ties = None,
    missing: Missing = None,
    no_relevant: NoRelevant = None,
    score_dtype: ScoreType = None,
    memory: Annotated[str | None, typer.Option(help="What all processes may take together, such as 1GB.")] = None,
    n_jobs: Annotated[int, typer.Option(help="Number of processes; -1 for all cores.")] = 1,
    folder: Annotated[
        str | None,
        typer.Option(
            help="Write the scores of each query there, as Parquet. The same command goes on after a kill.",
        ),
    ] = None,
    output: OutputFormat = Format.table,
) -> None:
    """Score the rows of a Parquet data set."""
    from rankeval.collection.convention import get_convention
    from rankeval.streaming import evaluate_dataset as evaluate
    from rankeval.streaming.source import name_of
    from rankeval.trec_eval.output import trec_rules

    preset = get_convention(convention)
    rules = trec_rules(
        preset.with_rules(ties=ties, missing=missing, no_relevant=no_relevant, score_dtype=score_dtype),
        complete=False,
        level=level,
        depth=depth,
        judged_only=False,
        collection_size=collection_size,
    )
    name = name_of(data)
    with show_progress() as show:
        found = evaluate(
            data,
            qid=qid,
            relevance=relevance,
            score=score,
            docid=docid,
            measures=[sized(spec, collection_size) for spec in measures],
            convention=rules,
            query_weight=query_weight,
            name=name,
            memory=memory,
            n_jobs=n_jobs,
            folder=folder,
            progress=None if show is None else lambda done, total: show(done, total, f"{done:,} of {total:,} rows"),
        )
    print_scores({name: found}, output, per_query=per_query)
