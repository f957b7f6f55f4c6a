"""Commands of ``rankeval``: in this process, and a few in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from oracle.calls import Call, recipe
from oracle.drawing import CONVENTIONS, Draw
from oracle.recipes_datasets import feature_table, scored_rows
from oracle.recipes_files import flat
from oracle.recipes_measures import some_measures
from oracle.recipes_mlflow import evaluation, store_of
from oracle.recipes_online import events, lists_of, users_of
from oracle.recipes_report import CONFIG
from oracle.recipes_text import file_of_texts

FORMATS = ("table", "json", "csv")


def flags(draw: Draw, share: float = 0.4, **choices: tuple[Any, ...]) -> list[str]:
    """Return some options of a command line; a value of True stands for a flag alone."""
    line: list[str] = []
    for name, value in draw.options(share, **choices).items():
        flag = f"--{name.replace('_', '-')}" if len(name) > 1 else f"-{name}"
        line += [flag] if value is True else [flag, str(value)]
    return line


def measure_flags(draw: Draw) -> list[str]:
    """Return measures as options."""
    return [word for name in some_measures(draw, 2) for word in ("-m", name)]


def collection(draw: Draw, n: int | None = None) -> tuple[Path, list[Path]]:
    """Write judgments and runs; return their paths."""
    judgments = draw.judgments(draw.integer(3, 8), 8)
    runs = (
        draw.rankings(judgments, n)
        if n
        else {"a": draw.ranking(judgments), "b": draw.ranking(judgments)}
    )
    paths = [draw.write_ranking(run, f"{name}.run") for name, run in runs.items()]
    return draw.write_judgments(judgments), paths


@recipe("commands", 192)
def evaluate(draw: Draw, call: Call) -> None:
    """Evaluate runs."""
    qrels, runs = collection(draw)
    options = flags(
        draw,
        0.3,
        convention=CONVENTIONS,
        format=("table", "json", "csv", "trec"),
        q=(True,),
        n=(True,),
        c=(True,),
        M=(3,),
    )
    options += flags(
        draw,
        0.15,
        l=(2,),
        J=(True,),
        N=(100,),
        ties=("worst",),
        missing=("skip", "error"),
        qrels_format=("trec",),
    )
    call.command("evaluate", qrels, *runs, *measure_flags(draw), *options)


@recipe("commands", 72)
def compare(draw: Draw, call: Call) -> None:
    """Compare runs."""
    qrels, runs = collection(draw, draw.integer(2, 3))
    options = flags(
        draw,
        0.4,
        baseline=("bm25.run", "bm25"),
        test=("randomization", "sign"),
        correction=("max_t", "none"),
        format=FORMATS,
    )
    options += flags(
        draw,
        0.2,
        claim=("better",),
        margin=(0.01,),
        family=("measure",),
        alpha=(0.1,),
        unjudged=("skip",),
        seed=(1,),
    )
    call.command("compare", qrels, *runs, "--resamples", 99, *measure_flags(draw), *options)


@recipe("commands", 48)
def evaluate_dataset(draw: Draw, call: Call) -> None:
    """Evaluate a Parquet data set."""
    scored_rows(draw).to_parquet("log.parquet", index=False)
    options = flags(
        draw,
        0.3,
        docid=("docid",),
        query_weight=("weight",),
        column=("price",),
        q=(True,),
        format=("json", "csv"),
        ties=("worst",),
    )
    line = ("--qid", "qid", "--relevance", "y", "--score", "score", *measure_flags(draw), *options)
    call.command("evaluate-dataset", "log.parquet", *line)


@recipe("commands", 36)
def lists(draw: Draw, call: Call) -> None:
    """List measures and tests."""
    words = [draw.choice(("nDCG", "map", "t", "holm", "none such"))] if draw.happens(0.7) else []
    call.command("measures", *words, *flags(draw, 0.5, format=("json", "csv", "markdown", "odd")))
    call.command("tests", *words, *flags(draw, 0.5, format=FORMATS))


@recipe("commands", 18, hashes=True, timed=True)
def help_pages(draw: Draw, call: Call) -> None:
    """Show help, versions and the doctor."""
    topics = (
        [],
        ["evaluate"],
        ["compare"],
        ["run"],
        ["guard"],
        ["guard", "open"],
        ["judging"],
        ["online", "ab"],
        ["mlflow"],
        ["mlflow", "promote"],
    )
    call.command(*draw.choice(topics), "--help")
    printed = call.command("--version")
    call.keep("version", printed["exit"])
    call.command("doctor")


@recipe("commands", 36)
def search(draw: Draw, call: Call) -> None:
    """Search documents by queries, and write a run."""
    name, text = file_of_texts(draw, draw.documents(5))
    documents = draw.write(name, text)
    queries = draw.write(
        "queries.tsv", "".join(f"{query}\t{words}\n" for query, words in draw.queries().items())
    )
    options = flags(
        draw,
        0.4,
        scheme=("bm25", "lnc.ltc", "odd"),
        k=(2,),
        stem=("english",),
        stop=("english",),
        out=("found.run",),
    )
    call.command("search", documents, queries, *options)


@recipe("commands", 36)
def fuse(draw: Draw, call: Call) -> None:
    """Fuse two runs."""
    _, runs = collection(draw)
    options = flags(
        draw,
        0.4,
        method=("combsum", "bordafuse", "log_isr", "odd"),
        norm=("z-score", "odd"),
        k=(5, -1),
        out=("fused.run",),
    )
    call.command("fuse", *runs, *options)


@recipe("commands", 18, timed=True)
def page(draw: Draw, call: Call) -> None:
    """Write the page of single queries."""
    qrels, runs = collection(draw)
    texts = {f"d{at}": draw.sentence() for at in range(20)}
    draw.write("docs.tsv", "".join(f"{name}\t{text}\n" for name, text in texts.items()))
    call.command(
        "page",
        qrels,
        *runs,
        *flags(draw, 0.5, documents=("docs.tsv",), queries=(2,), M=(3,), out=("page.html",)),
    )


@recipe("commands", 30)
def init(draw: Draw, call: Call) -> None:
    """Write the first files for a table, or for judgments and a run."""
    if draw.happens(0.4):
        qrels, runs = collection(draw, 1)
        files: list[Any] = [qrels, runs[0]]
    else:
        feature_table(draw, 8).drop(columns=["part"]).to_csv("rows.csv", index=False)
        files = ["rows.csv"]
    options = flags(
        draw, 0.4, qid=("query",), relevance=("label", "none"), feature=("bm25",), into=("new",)
    )
    call.command("init", *files, *options)


@recipe("commands", 10, hashes=True, timed=True)
def run(draw: Draw, call: Call) -> None:
    """Check an experiment, run it, and list its keys."""
    draw.write("my.yaml", yaml.safe_dump({**CONFIG, "guard": "off"}))
    settings = draw.some(("cv.n_splits=3", "seed=3", "measures=[RR]", "odd=1"), 0, 1)
    options = [word for setting in settings for word in ("--set", setting)]
    call.command("run", "my.yaml", "--check", *options)
    if draw.happens(0.3):
        call.command("run", "my.yaml", *options)
    call.command("run", "--keys", *flags(draw, 0.5, format=("markdown",)))


@recipe("commands", 42, hashes=True)
def guard(draw: Draw, call: Call) -> None:
    """Walk through the guard's protocol in the shell."""
    qrels, runs = collection(draw, 3)
    Path("ledger").mkdir()
    ledger = ("--ledger", "ledger")
    call.command(
        "guard",
        "register",
        "p",
        "test",
        "--qrels",
        qrels,
        *ledger,
        *flags(draw, 0.3, effect=(0.1,), sd=(0.2,)),
    )
    systems = [f"{path.stem}={path}" for path in runs]
    frozen = call.command(
        "guard",
        "freeze",
        "p",
        "test",
        *systems[:2],
        "--qrels",
        qrels,
        "--resamples",
        99,
        *ledger,
        *flags(draw, 0.4, baseline=("bm25",)),
    )
    plan = next(
        (word for word in reversed(frozen["stdout"].split()) if len(word) >= 8 and word.isalnum()),
        "none",
    )
    call.command(
        "guard", "open", "p", plan, "--qrels", qrels, *ledger, *flags(draw, 0.4, format=FORMATS)
    )
    call.command(
        "guard", "looks", "p", *ledger, *flags(draw, 0.4, format=FORMATS, all_projects=(True,))
    )
    call.command("guard", "status", "p", "--qrels", qrels, *ledger)
    call.command("guard", "verify", "p", *ledger, *flags(draw, 0.2, head=("0123456789ab",)))
    call.command(
        "guard",
        "gate",
        "p",
        "test",
        systems[2],
        "--baseline",
        runs[0],
        "--qrels",
        qrels,
        *ledger,
        "--budget",
        2,
    )
    call.command(
        "guard", "exempt", "p", "test", "public", "--query", "q1", "--qrels", qrels, *ledger
    )
    call.command("guard", "export", "p", "copy", *ledger)
    call.command("guard", "merge", "p", "copy", *ledger)
    call.command("guard", "retire", "p", "test", "too small", *ledger)
    call.command("guard", "checks", *flags(draw, 0.5, format=FORMATS))


@recipe("commands", 36)
def judging(draw: Draw, call: Call) -> None:
    """Pool runs, write sheets, measure agreement and calibrate a machine."""
    qrels, runs = collection(draw, 2)
    call.command(
        "judging",
        "pool",
        *runs,
        *flags(
            draw,
            0.4,
            depth=(2,),
            order=("random", "odd"),
            judged=(qrels,),
            minutes=(2,),
            format=FORMATS,
        ),
    )
    call.command(
        "judging",
        "sheets",
        "sheets",
        *runs,
        "--judge",
        "ann",
        "--judge",
        "bo",
        *flags(draw, 0.4, overlap=(0.5,), depth=(2,), seed=(1,)),
    )
    second = draw.write("second.txt", qrels.read_text().replace(" 1\n", " 0\n", 3))
    call.command(
        "judging",
        "agreement",
        qrels,
        second,
        *flags(draw, 0.4, grades=("ordinal",), format=FORMATS),
    )
    call.command(
        "judging",
        "calibrate",
        *runs,
        "--human",
        qrels,
        "--machine",
        second,
        *flags(draw, 0.4, format=FORMATS),
    )


@recipe("commands", 36)
def online(draw: Draw, call: Call) -> None:
    """Check a click log, rate it, interleave runs and test users in arms."""
    events(draw).to_csv("log.csv", index=False)
    call.command("online", "checks", "log.csv", "--tz", "UTC", *flags(draw, 0.4, format=FORMATS))
    call.command(
        "online",
        "rates",
        "log.csv",
        "--tz",
        "UTC",
        *flags(draw, 0.5, by=("arm", "odd"), format=FORMATS),
    )
    users_of(draw).to_csv("users.csv", index=False)
    call.command(
        "online",
        "ab",
        "users.csv",
        "-m",
        "orders",
        *flags(draw, 0.3, control=("B",), alpha=(0.1,), format=FORMATS),
    )
    judgments = draw.judgments(3, 6)
    runs = [
        draw.write_ranking(run, f"{name}.run") for name, run in draw.rankings(judgments, 2).items()
    ]
    shown = pd.DataFrame(
        [{"impression": f"i{at}", "qid": f"q{at % 3 + 1}", "user": f"u{at}"} for at in range(6)]
    )
    shown.to_csv("impressions.csv", index=False)
    call.command(
        "online",
        "interleave",
        *runs,
        "--impressions",
        "impressions.csv",
        "--salt",
        "s",
        *flags(draw, 0.4, scheme=("balanced",), depth=(3,)),
    )
    credits_of(draw, call)


def credits_of(draw: Draw, call: Call) -> None:
    """Compare rankings by the clicks of a file."""
    mixer = call.make("rankeval.online.Interleaver", "team_draft", salt="s")
    shown = [
        mixer.show(lists_of(draw, 2), impression=f"i{at}", user=f"u{at % 7}") for at in range(12)
    ]
    draw.write(
        "credits.jsonl", "".join(f"{json.dumps(json.loads(each.to_json()))}\n" for each in shown)
    )
    pd.DataFrame(
        [{"impression": each.impression, "docid": each.ids[0]} for each in shown[::2]]
    ).to_csv("clicks.csv", index=False)
    call.command(
        "online",
        "interleave",
        "--credits",
        "credits.jsonl",
        "--clicks",
        "clicks.csv",
        *flags(draw, 0.3, unit=("impression",)),
    )


@recipe("commands", 14, hashes=True, timed=True)
def mlflow(draw: Draw, call: Call) -> None:
    """List, compare, rank and promote what a store holds; send uploads; verify ledgers."""
    uri = store_of(call)
    runs = [
        call.make(
            "rankeval_mlflow.log",
            evaluation(draw, call, name),
            role="test",
            report=False,
        ).run_id
        for name in ("a", "b")
    ]
    call.command("mlflow", "list", "--uri", uri, *flags(draw, 0.4, format=FORMATS, waiting=(True,)))
    call.command("mlflow", "compare", *runs, "--uri", uri, *flags(draw, 0.4, format=FORMATS))
    call.command(
        "mlflow",
        "leaderboard",
        "oracle",
        "--uri",
        uri,
        *flags(draw, 0.4, format=FORMATS, limit=(1,)),
    )
    call.command("mlflow", "promote", "ranker", "--version", 1, "-m", "AP", "--uri", uri)
    call.command("mlflow", "rollback", "ranker", "--reason", "worse", "--uri", uri)
    call.command("mlflow", "why", "ranker", "--version", "2", "--uri", uri)
    call.command("mlflow", "resend", "--uri", uri)
    call.command("mlflow", "discard", "none")
    call.command("mlflow", "verify-guard", runs[0], "--uri", uri)


@recipe("commands", 6, timed=True)
def processes(draw: Draw, call: Call) -> None:
    """Run commands in processes of their own."""
    qrels, runs = collection(draw)
    rows = flat(json.loads(json.dumps(draw.judgments(2, 3))), "relevance")
    draw.write("broken.csv", pd.DataFrame(rows).to_csv(index=False).replace("d", '"d', 1))
    lines = (
        ["evaluate", qrels, *runs, "-m", "AP"],
        ["evaluate", "broken.csv", *runs],
        ["measures", "--format", "json"],
        ["compare"],
    )
    for line in draw.some(lines, 1, 2):
        command = [sys.executable, "-P", "-m", "rankeval", *map(str, line)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=dict(os.environ), timeout=100
        )
        call.called.append(f"rankeval {line[0]}")
        call.keep("process", [str(line[0]), done.returncode, done.stdout, done.stderr])
