"""Judgments and runs: files of every format, damaged files, frames, records and limits."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from fuzz.mutations import mutated
from golden.hostile import N_COLLECTIONS, collection
from oracle.calls import Call, recipe
from oracle.drawing import Draw
from oracle.recipes_measures import some_measures

WRITTEN = ("csv", "tsv", "jsonl", "parquet", "trec")
SUFFIXES = {"csv": ".csv", "tsv": ".tsv", "jsonl": ".jsonl", "parquet": ".parquet", "trec": ".txt"}


class TrecQrel(NamedTuple):
    """A judgment, as ir_datasets has it."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str


class ScoredDoc(NamedTuple):
    """A row of a run, as ir_measures has it."""

    query_id: str
    doc_id: str
    score: float


def text_of(draw: Draw, kind: str, rows: list[dict[str, Any]], value: str) -> tuple[str, str]:
    """Return a name of a file and its text, in one of the formats of text."""
    frame = pd.DataFrame(rows)
    if kind in ("csv", "tsv"):
        return f"rows.{kind}", frame.to_csv(index=False, sep="," if kind == "csv" else "\t")
    if kind == "jsonl":
        return "rows.jsonl", frame.to_json(orient="records", lines=True)
    if kind == "json":
        nested: dict[str, dict[str, Any]] = {}
        for row in rows:
            nested.setdefault(row["qid"], {})[row["docid"]] = row[value]
        return "rows.json", json.dumps(nested)
    blank = draw.choice((" ", "\t"))
    if value == "relevance":
        lines = [blank.join((row["qid"], "0", row["docid"], str(row[value]))) for row in rows]
    else:
        lines = [
            blank.join((row["qid"], "Q0", row["docid"], "1", repr(row[value]), "tag"))
            for row in rows
        ]
    return "rows.txt", "".join(f"{line}\n" for line in lines)


def flat(nested: dict[str, dict[str, Any]], value: str) -> list[dict[str, Any]]:
    """Return judgments or a ranking as a row for each document."""
    return [
        {"qid": query, "docid": doc, value: it}
        for query, docs in nested.items()
        for doc, it in docs.items()
    ]


@recipe("files", 900)
def reading(draw: Draw, call: Call) -> None:
    """Read judgments or a run of a drawn format; a third of the files are damaged."""
    is_run = draw.happens()
    judgments = draw.judgments()
    rows = flat(draw.ranking(judgments), "score") if is_run else flat(judgments, "relevance")
    name, text = text_of(
        draw,
        draw.choice(("csv", "tsv", "jsonl", "json", "trec", "trec")),
        rows,
        "score" if is_run else "relevance",
    )
    content = text.encode()
    if draw.happens(0.35):
        content = mutated(content, draw.rng)
    if draw.happens(0.15):
        name, content = f"{name}.gz", gzip.compress(content, mtime=0)
    path = draw.write(name, content)
    formats = (
        None,
        None,
        "csv",
        "tsv",
        "jsonl",
        "json",
        "trec",
        "parquet",
        "ndeval",
        "prefs",
        "other",
    )
    options = draw.options(0.25, format=formats)
    found = call("rankeval.Run.read" if is_run else "rankeval.Qrels.read", path, **options)
    call.of(found, "Run.to_frame" if is_run else "Qrels.to_frame")


@recipe("files", 400)
def writing(draw: Draw, call: Call) -> None:
    """Write judgments and a run in each format, and read what was written."""
    judgments = draw.judgments()
    kind = draw.choice(WRITTEN)
    name = f"out{draw.choice((SUFFIXES[kind], SUFFIXES[kind], '.gz', '', '.zst'))}"
    options = draw.options(0.5, format=(*WRITTEN, "json", None))
    if draw.happens():
        made = call.make("rankeval.Qrels.from_dict", judgments)
        call.of(made, "Qrels.write", name, **options)
        call.tried("rankeval.Qrels.read", name)
    else:
        made = call.make(
            "rankeval.Run.from_dict",
            draw.ranking(judgments),
            **draw.options(0.4, name=("bm25", "a b")),
        )
        call.of(made, "Run.write", name, **options)
        call.tried("rankeval.Run.read", name)


@recipe("files", 300)
def hostile(draw: Draw, call: Call) -> None:
    """Evaluate collections that are made to trip programs up."""
    drawn = collection(draw.integer(0, N_COLLECTIONS - 1))
    qrels, run = draw.write("qrels", drawn.qrels), draw.write("run", drawn.run)
    options = draw.options(0.6, convention=("trec_eval-9.0.8", "trec_eval-10", "rankeval"))
    call("rankeval.evaluate", qrels, run, measures=some_measures(draw, 3), **options)


@recipe("files", 500)
def in_memory(draw: Draw, call: Call) -> None:
    """Make judgments and runs of frames, dicts and records, and look at them as frames."""
    judgments = draw.judgments(n_docs=6)
    names = draw.choice((("qid", "docid"), ("query_id", "doc_id"), ("q", "d")))
    value = draw.choice(("relevance", "score"))
    source = draw.ranking(judgments) if value == "score" else judgments
    columns = pd.DataFrame(flat(source, value)).rename(
        columns=dict(zip(("qid", "docid"), names, strict=True))
    )
    kind = "Run" if value == "score" else "Qrels"
    named = dict(zip(("qid", "docid"), names, strict=True)) if draw.happens(0.7) else {}
    table = draw.table({name: columns[name].to_numpy() for name in columns})
    if kind == "Run":
        call.of(call("rankeval.Run.from_frame", table, **named), "Run.to_frame")
    else:
        call.of(call("rankeval.Qrels.from_frame", table, **named), "Qrels.to_frame")


@recipe("files", 100)
def systems_of_a_table(draw: Draw, call: Call) -> None:
    """Let runs be made of a table of one system or of several, named or found."""
    column = draw.choice(("Algorithm", "run", "engine"))
    rows = [
        {column: system, "qid": query, "docid": f"d{place}", "score": draw.integer(0, 5)}
        for system in draw.some(("a", "b", "c"), 1)
        for query in ("q1", "q2")
        for place in range(draw.integer(1, 3))
    ]
    frame = pd.DataFrame(rows)
    options = draw.options(0.5, system=(column, "nothing"))
    if draw.happens():
        frame.to_csv("systems.csv", index=False)
        call("rankeval.Run.by_system", "systems.csv", **options)
    else:
        call("rankeval.Run.by_system", frame, **options)


@recipe("files", 300)
def any_form(draw: Draw, call: Call) -> None:
    """Let judgments and runs be made of whatever is handed over."""
    judgments = draw.judgments(n_docs=5)
    if draw.happens():
        form: Any = draw.choice(
            (judgments, pd.DataFrame(flat(judgments, "relevance")), draw.write_judgments(judgments))
        )
        found = call("rankeval.Qrels.from_any", form)
        call.of(found, "Qrels.to_frame")
    else:
        ranking = draw.ranking(judgments)
        lists = {query: sorted(docs, key=docs.get, reverse=True) for query, docs in ranking.items()}
        form = draw.choice(
            (
                ranking,
                lists,
                pd.DataFrame(flat(ranking, "score")),
                draw.write_ranking(ranking, "a.run"),
            )
        )
        found = call("rankeval.Run.from_any", form)
        call.of(found, "Run.to_frame")


@recipe("files", 250)
def records(draw: Draw, call: Call) -> None:
    """Make judgments and runs of records, as ir_datasets and ir_measures have them."""
    judgments = draw.judgments(n_docs=5)
    if draw.happens():
        rows = [
            TrecQrel(row["qid"], row["docid"], row["relevance"], "0")
            for row in flat(judgments, "relevance")
        ]
        call("rankeval.Qrels.from_records", rows if draw.happens() else iter(rows))
    else:
        rows = [
            ScoredDoc(row["qid"], row["docid"], row["score"])
            for row in flat(draw.ranking(judgments), "score")
        ]
        call("rankeval.Run.from_records", rows, **draw.options(0.4, name=("bm25",)))


@recipe("files", 150)
def dictionaries(draw: Draw, call: Call) -> None:
    """Make judgments and runs of dicts, with odd values among them."""
    judgments = draw.judgments(n_docs=4)
    ranking: Any = draw.ranking(judgments)
    odd = draw.choice((None, float("nan"), "1", -1, 2**40, 0.5, True, [1]))
    if draw.happens(0.3):
        judgments["q1"]["odd"] = odd
        ranking.setdefault("q1", {})["odd"] = odd
    call.tried("rankeval.Qrels.from_dict", judgments)
    call.tried("rankeval.Run.from_dict", ranking, **draw.options(0.3, name=("bm25", "", 3)))


@recipe("files", 150)
def arrays(draw: Draw, call: Call) -> None:
    """Make judgments and runs of Arrow columns."""
    import pyarrow as pa

    rows = draw.rows(3, 4)
    qid, docid = pa.array([str(query) for query in rows["qid"]]), pa.array(rows["docid"].tolist())
    made = call.tried("rankeval.Qrels", qid, docid, rows["y"])
    if made is not None:
        call.keep("equal", made == made)  # noqa: PLR0124
    call.tried("rankeval.Run", qid, docid, rows["score"], **draw.options(0.5, name=("bm25",)))


@recipe("files", 120)
def limits(draw: Draw, call: Call) -> None:
    """Read files under limits that are too low, and make the error of a limit."""
    judgments = draw.judgments()
    path = draw.write(
        "q.txt.gz",
        gzip.compress(
            Path(draw.write_judgments(judgments)).read_bytes() * draw.integer(1, 60), mtime=0
        ),
    )
    chosen = draw.options(
        0.5, expansion=(1, 2, 100), stream=(10, 1000, 10**6), line=(5, 100), feature=(3,)
    )
    made = call("rankeval.Limits", **chosen)
    call.of(
        made,
        "Limits.exceeded",
        draw.choice(("stream", "line", "expansion")),
        "q.txt, line 3",
        "5 MB",
    )
    call("rankeval.Qrels.read", path, limits=made)
