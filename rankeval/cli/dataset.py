"""`rankeval evaluate --parquet`: a data set instead of judgments and runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankeval.errors import InvalidInput

if TYPE_CHECKING:
    from rankeval.collection.convention import Convention
    from rankeval.evaluation import Evaluation

Parquet = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Instead of QRELS and RUN: a Parquet data set of scored rows, as a file, a folder or a URL (s3://...), "
        "with --qid, --relevance and --score. It may be larger than memory.",
    ),
]
Qid = Annotated[str | None, typer.Option(metavar="COLUMN", help="With --parquet: the column of the query.")]
Relevance = Annotated[str | None, typer.Option(metavar="COLUMN", help="With --parquet: the column of the relevance.")]
Score = Annotated[str | None, typer.Option(metavar="COLUMN", help="With --parquet: the column of the score.")]
Docid = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="With --parquet: the column of the document, for --ties docid.")
]
Weights = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="With --parquet: a column of weights, constant within a query.")
]
Memory = Annotated[str | None, typer.Option(help="With --parquet: what all processes may take together, such as 1GB.")]
Jobs = Annotated[int, typer.Option(help="With --parquet: number of processes; -1 for all cores.")]
Scores = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="With --parquet: write the scores of each query there, as Parquet. The same command goes on after a kill.",
    ),
]


@dataclass(frozen=True)
class Dataset:
    """A Parquet data set as the options of the command name it; every field is that option."""

    parquet: str | None
    qid: str | None
    relevance: str | None
    score: str | None
    docid: str | None
    weights: str | None
    memory: str | None
    n_jobs: int
    scores: str | None

    def is_given(self, qrels: Path | None, runs: list[Path] | None) -> bool:
        """Say whether a data set is to be evaluated; refuse options of both ways, and of neither.

        Parameters
        ----------
        qrels : Path, optional
            The judgments of the command.
        runs : list of Path, optional
            The runs of the command.

        Raises
        ------
        InvalidInput
            If both are given, or something is missing.
        """
        if self.parquet is None:
            given = [name for name, value in vars(self).items() if value is not None and (name, value) != ("n_jobs", 1)]
            if given:
                raise InvalidInput(f"--{given[0].replace('_', '-')} goes with --parquet: name the data set by it")
            if qrels is None or not runs:
                raise InvalidInput("expected QRELS and one RUN or more, or a data set by --parquet")
            return False
        if qrels is not None:
            raise InvalidInput(f"--parquet has judgments and scores in one data set: leave out QRELS ({qrels}) and RUN")
        for name in ("qid", "relevance", "score"):
            if getattr(self, name) is None:
                raise InvalidInput(f"--parquet needs --{name}, the name of a column")
        return True

    def evaluated(self, measures: list[str], rules: Convention) -> dict[str, Evaluation]:
        """Return the evaluation under the name of the data set.

        Parameters
        ----------
        measures : list of str
            The measures.
        rules : Convention
            The convention.
        """
        from rankeval.cli.output import show_progress
        from rankeval.evaluation import evaluate
        from rankeval.evaluation.streaming.files import name_of

        name = name_of(str(self.parquet))
        options: dict[str, Any] = {field: value for field, value in vars(self).items() if field != "parquet"}
        with show_progress() as show:
            progress = None if show is None else lambda done, total: show(done, total, f"{done:,} of {total:,} rows")
            found = evaluate(self.parquet, measures=measures, convention=rules, name=name, progress=progress, **options)
        return {name: found}
