"""Data sets: files of features by every loader, made-up data, and streams of scored rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from fuzz.mutations import mutated
from oracle.calls import Call, recipe
from oracle.drawing import CONVENTIONS, Draw
from oracle.recipes_measures import some_measures


@recipe("datasets", 260)
def made_up(draw: Draw, call: Call) -> None:
    """Make data for a ranker."""
    sizes = draw.options(0.6, n_queries=(1, 5, 12), n_docs=(1, 4, (2, 6)), n_features=(1, 3))
    options = draw.options(
        0.4,
        noise=(0.0, 2.0),
        max_relevance=(1, 2),
        tie_share=(0.0, 0.5),
        shuffle=(True,),
        rng=(1, 7),
    )
    call("rankeval.datasets.make_ranking", **{"n_queries": 5, **sizes}, **options)


@recipe("datasets", 20)
def digits(draw: Draw, call: Call) -> None:
    """Make the task of digits."""
    call(
        "rankeval.datasets.load_digits_retrieval",
        n_queries=draw.integer(2, 8),
        n_candidates=draw.integer(3, 9),
        **draw.options(0.5, rng=(1,)),
    )


@recipe("datasets", 280)
def letor(draw: Draw, call: Call) -> None:
    """Read a file of LETOR, of which a third is damaged."""
    content = draw.letor(draw.integer(1, 4)).encode()
    path = draw.write(
        draw.choice(("train.txt", "rows.letor")),
        mutated(content, draw.rng) if draw.happens(0.3) else content,
    )
    call(
        "rankeval.datasets.load_letor",
        path,
        **draw.options(0.4, name=("mslr",), sparse=(True, False)),
    )


@recipe("datasets", 40)
def results_of_mteb(draw: Draw, call: Call) -> None:
    """Read a folder of results, perhaps with a task missing or a damaged file."""
    for model in draw.some(("org__a/1", "org__b/1", "org__b/2"), 2):
        for task in draw.some(("t1", "t2", "t3"), 2):
            scores = {"test": [{"main_score": draw.integer(0, 9) / 10}]}
            result = {"task_name": task, "dataset_revision": "1", "scores": scores}
            content = json.dumps(result).encode()
            draw.write(
                f"results/{model}/{task}.json",
                mutated(content, draw.rng) if draw.happens(0.1) else content,
            )
    call("rankeval.datasets.load_mteb_results", "results")


@recipe("datasets", 90)
def letor_parts(draw: Draw, call: Call) -> None:
    """Read a folder of LETOR, perhaps with a part missing or damaged."""
    for name in draw.some(("train.txt", "vali.txt", "test.txt", "other.txt"), 2):
        content = draw.letor(2).encode()
        draw.write(f"fold/{name}", mutated(content, draw.rng) if draw.happens(0.1) else content)
    call("rankeval.datasets.load_letor_parts", "fold", **draw.options(0.3, sparse=(True, False)))


@recipe("datasets", 60)
def beir_folder(draw: Draw, call: Call) -> None:
    """Read a folder of BEIR, perhaps without a file, a split or the text of a query."""
    queries = draw.some(("q1", "q2", "q3"), 1)
    rows = "".join(f"{query}\td{place}\t{place}\n" for query in queries for place in range(2))
    splits = draw.some(("test", "dev"), 1)
    for split in splits:
        draw.write(f"beir/qrels/{split}.tsv", f"query-id\tcorpus-id\tscore\n{rows}".encode())
    texts = queries[1:] if draw.happens(0.2) else queries
    lines = "".join(f'{{"_id": "{query}", "text": "about {query}"}}\n' for query in texts)
    draw.write("beir/queries.jsonl", lines.encode())
    draw.write("beir/corpus.jsonl", b'{"_id": "d1", "title": "t", "text": "x"}\n')
    call("rankeval.datasets.load_beir", "beir", **draw.options(0.5, split=("test", "dev", "tset")))


def feature_table(draw: Draw, n_queries: int = 4) -> pd.DataFrame:
    """Return a table of rows with features, a category and a part."""
    rows = draw.rows(n_queries, 5)
    n = len(rows["y"])
    queries = {
        query: draw.choice(("train", "vali", "test"))
        for query in dict.fromkeys(rows["qid"].tolist())
    }
    return pd.DataFrame(
        {
            "query": rows["qid"],
            "label": np.abs(rows["y"]),
            "doc": rows["docid"],
            "bm25": draw.numpy.normal(size=n).round(2),
            "clicks": draw.numpy.integers(0, 9, n),
            "kind": [draw.choice(("a", "b", "c")) for _ in range(n)],
            "part": [queries[query] for query in rows["qid"].tolist()],
        }
    )


def write_table(draw: Draw, frame: pd.DataFrame, *, damaged: float = 0.15) -> Path:
    """Write a table in one of the formats; some files are damaged."""
    form = draw.choice(("csv", "tsv", "parquet"))
    path = Path(f"table.{form}")
    if form == "parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="," if form == "csv" else "\t")
    if draw.happens(damaged):
        path.write_bytes(mutated(path.read_bytes(), draw.rng))
    return path


@recipe("datasets", 280)
def table(draw: Draw, call: Call) -> None:
    """Read a table of rows."""
    path = write_table(draw, feature_table(draw))
    options = draw.options(
        0.5,
        docid=("doc",),
        features=(["bm25"], ["bm25", "clicks"], ["bm25", "kind"], ["none"]),
        name=("t",),
    )
    options |= (
        {"categories": ["kind"]}
        if "kind" in options.get("features", ["kind"]) and draw.happens(0.8)
        else {}
    )
    options.setdefault("features", ["bm25", "clicks"])
    call("rankeval.datasets.load_table", path, qid="query", label="label", **options)


@recipe("datasets", 120)
def table_parts(draw: Draw, call: Call) -> None:
    """Read a table whose rows name their part."""
    frame = feature_table(draw, 6)
    if draw.happens(0.2):
        frame.loc[0, "part"] = draw.choice(("odd", "test", None))
    path = write_table(draw, frame, damaged=0.05)
    options = draw.options(
        0.3,
        train=("train", ["train", "vali"]),
        test=("test", "none"),
        others=("drop", "error"),
        docid=("doc",),
    )
    features = ["bm25", "clicks"]
    call(
        "rankeval.datasets.load_table_parts",
        path,
        part="part",
        qid="query",
        label="label",
        features=features,
        **options,
    )


def scored_rows(draw: Draw) -> pd.DataFrame:
    """Return scored rows, their queries together."""
    rows = draw.rows(draw.integer(1, 6))
    frame = pd.DataFrame(rows).sort_values("qid", kind="stable", ignore_index=True)
    weights = {query: draw.number(0.1, 3, 1) for query in dict.fromkeys(frame["qid"].tolist())}
    frame["weight"] = [weights[query] for query in frame["qid"].tolist()]
    return frame.assign(price=draw.numpy.uniform(0, 5, len(frame)).round(1))


@recipe("streaming", 330)
def stream(draw: Draw, call: Call) -> None:
    """Evaluate a Parquet data set, a folder of such, or a table, within memory."""
    frame = scored_rows(draw)
    data: Any = "data.parquet"
    if draw.happens(0.3):
        Path("data").mkdir()
        half = len(frame) // 2
        for name, part in {"a": frame[:half], "b": frame[half:]}.items():
            part.to_parquet(f"data/{name}.parquet", index=False)
        data = "data"
    else:
        frame.to_parquet("data.parquet", index=False, row_group_size=draw.choice((2, 5, 1000)))
        data = draw.choice(("data.parquet", Path("data.parquet"), frame))
    rules = draw.options(
        0.25,
        convention=CONVENTIONS,
        ties=("expected", "worst", "docid"),
        no_relevant=("one", "skip"),
    )
    options = draw.options(
        0.3,
        docid=("docid",),
        query_weight=("weight",),
        memory=("1GB", 10**8, "1B"),
        folder=("scores",),
        name=("d",),
    )
    columns = draw.options(0.2, columns=({"price": "price"}, ["price"], "odd"))
    named = {"qid": "qid", "relevance": "y", "score": "score"}
    measures = [*some_measures(draw, 2), *(["Gain@3(column='price')"] if columns else [])]
    found = call(
        "rankeval.evaluate_dataset", data, **named, measures=measures, **options, **rules, **columns
    )
    call.plain(found, "Evaluation.aggregate")
