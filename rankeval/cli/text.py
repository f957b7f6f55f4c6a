"""The commands for texts: rank by words, and write a page of queries to be read."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from rankeval._checks import count
from rankeval.cli.inputs import by_file_name
from rankeval.cli.options import options
from rankeval.cli.output import say


@options("DOCS QUERIES scheme k stem stop fields query_fields ids limit out")
def search(*, docs: Path, queries: Path, scheme: str, k: int, out: Path | None, **given: Any) -> None:
    """Rank documents by words: by the weights of a SMART scheme, or by BM25.

    The run has the name of the scheme. Its file is TREC text, or has the format of its suffix.
    """
    from rankeval.text import BM25, VectorSpace

    texts, needs = _texts(docs, queries, given)
    ranker = BM25(**given) if scheme == "BM25" else VectorSpace(scheme, **given)
    run = ranker.fit(texts).search(needs, k=k)
    with TemporaryDirectory() as folder:
        path = out or Path(folder, "run")
        run.write(path)
        if out is None:
            typer.echo(path.read_text(encoding="utf-8"), nl=False)
    said = [
        f"{count(len(one), noun)} ({sum(not text.strip() for text in one.values()):,} empty)"
        for one, noun in ((texts, "document"), (needs, "query"))
    ]
    n_found = len(set(run.qid.to_pylist()))
    say(f"{', '.join(said)}: {count(len(run), 'row')}; {count(len(needs) - n_found, 'query')} found nothing")


@options(
    "QRELS RUNS documents topics measure queries depth rng stem stop fields query_fields ids limit out",
    depth=10,
    stop="english",
)
def page(
    *, qrels: Path, runs: list[Path], documents: Path | None, topics: Path | None, measure: str, out: Path | None,
    **given: Any,
) -> None:  # fmt: skip
    """Write queries as a page of HTML to be read: need, ranked documents, labels, snippets, and why each is there.

    Of two runs, the second is compared with the first, and the page shows how each document moved.
    """
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run
    from rankeval.evaluation import evaluate
    from rankeval.io.opening import limits_of, write_atomically
    from rankeval.measures import measure as find_measure
    from rankeval.report import report_for_queries

    find_measure(measure)  # answer a misspelt measure before reading a large file
    limits = limits_of(given["limit"] or ())
    judged = Qrels.read(qrels, limits=limits)
    rankings = {name: Run.read(path, limits=limits) for name, path in by_file_name(runs).items()}
    scored = {name: evaluate(judged, run, measures=measure, name=name) for name, run in rankings.items()}
    texts, needs = _texts(documents, topics, given)
    html = report_for_queries(scored, rankings, judged, texts=texts, needs=needs, **given)
    if out is None:
        typer.echo(html)
    else:
        write_atomically(out, [html.encode()])


def _texts(docs: Path | None, queries: Path | None, given: dict[str, Any]) -> tuple[Any, Any]:
    """Read texts by their options, which are taken out of those given."""
    from rankeval.io.opening import limits_of
    from rankeval.text import read_texts

    fields, of_queries, ids, limit = (given.pop(name) for name in ("fields", "query_fields", "ids", "limit"))
    limits = limits_of(limit or ())
    texts = None if docs is None else read_texts(docs, fields=fields, limits=limits)
    return texts, None if queries is None else read_texts(queries, fields=of_queries, ids=ids, limits=limits)
