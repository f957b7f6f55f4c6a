"""Scores that run against a column of ranks are noted, in every way in: distances are ranked upside down."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from tables import each_row

import rankeval as rk

JUDGED = {"q": {"a": 1}, "p": {"b": 1}}
FRAME = pd.DataFrame(
    {"qid": list("qqqpp"), "docid": list("abcab"), "rank": [1, 2, 3, 1, 2], "score": [0.1, 0.4, 0.9, 0.5, 0.5]}
)


class Row(NamedTuple):
    """A record with a rank, as some libraries give them."""

    query_id: str
    doc_id: str
    rank: int
    score: float


def is_noted(run):
    """Say whether an evaluation of the run has the note."""
    ev = rk.evaluate(JUDGED, run, measures="RR")
    assert any("rank column" in note for note in ev.notes) == ("rank" in ev.facts.signs)
    return "rank" in ev.facts.signs


@each_row(
    "make",
    [
        lambda frame: frame,
        lambda frame: frame.sample(frac=1, random_state=3),
        lambda frame: frame.assign(rank=frame["rank"].astype("Int64") - 1),
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda frame: frame.to_dict("records"),
        lambda frame: [Row(*row) for row in frame.itertuples(index=False)],
        lambda frame: rk.Run.from_frame(frame, score="score"),
    ],
)
def test_frames_and_records_with_ranks(make):
    """A note if the scores rise with the ranks in every query; none if they fall in one."""
    assert is_noted(make(FRAME))
    assert not is_noted(make(FRAME.assign(score=-FRAME["score"])))
    assert not is_noted(make(FRAME.assign(score=[0.1, 0.4, 0.9, 0.9, 0.5])))


@each_row("name", ["run.txt", "run.csv", "run.tsv", "run.parquet", "run.jsonl"])
def test_files_with_ranks(tmp_path, name):
    """Also a long file, whose ranks are only read if those of its head run against the scores."""
    long = pd.DataFrame({"qid": np.repeat(np.arange(500), 10).astype(str), "docid": np.tile(np.arange(10), 500)})
    long = long.assign(rank=long["docid"] + 1, score=long["docid"] / 10, docid=long["docid"].astype(str))
    odd = long.assign(score=np.where(long.index == len(long) - 1, -1.0, long["score"]))
    for frame, expected in ((FRAME, True), (long, True), (odd, False), (long.assign(score=-long["score"]), False)):
        _write(frame, tmp_path / name)
        assert rk.Run.read(tmp_path / name).against_rank == expected


def _write(frame: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".txt":
        columns = [frame["qid"], "Q0", frame["docid"], frame["rank"], frame["score"], "tag"]
        pd.DataFrame(dict(enumerate(columns))).to_csv(path, sep=" ", header=False, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, sep="," if path.suffix == ".csv" else "\t", index=False)


def test_a_file_that_is_read_line_by_line(tmp_path):
    """A tag of two words and a comment."""
    (tmp_path / "run").write_text("# a comment\nq Q0 a 1 0.1 my tag\nq Q0 b 2 0.4 my tag\n")
    assert rk.Run.read(tmp_path / "run").against_rank


@each_row(
    "ranks",
    [[0] * 5, [1, 2, 3, None, 1], list("abcde"), [3, 1, 2, 1, 2], [[1]] * 5, [True] * 5],
)
def test_other_columns_called_rank_say_nothing(ranks):
    """Nor do ranks that disagree otherwise."""
    assert not is_noted(FRAME.assign(rank=ranks))


def test_a_frame_of_rows_may_have_ranks():
    """Of columns that are named in the call."""
    rows = FRAME.assign(label=[1, 0, 0, 1, 0])
    named = {"qid": "qid", "relevance": "label", "measures": "RR"}
    assert "rank" in rk.evaluate(rows, score="score", **named).facts.signs
    assert "rank" not in rk.evaluate(rows.assign(score=-rows["score"]), score="score", **named).facts.signs
    assert rk.evaluate(rows, score="rank", **named).facts.signs == {}
