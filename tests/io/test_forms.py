"""Whatever holds judgments or a ranking may stand in evaluate, and what was written is read back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables import each_row

import rankeval as rk
from rankeval.collection.qrels import as_qrels
from rankeval.collection.run import as_run
from rankeval.errors import InvalidInput, UnknownName

JUDGMENTS = {"q1": {"a": 2, "b": 0}, "q2": {"a": 1}}
SCORES = {"q1": {"b": 0.1 + 0.2, "a": 1e-300}, "q2": {"a": -1.0}}
BY_ASPECT = {"q1": {"a": {"x": 2, "y": 0}, "b": {"y": 1}}}
FORMS = ["qrels", "q.txt.gz", "q.csv", "q.tsv", "q.jsonl", "q.parquet", "q.csv.zst", "q.tsv.gz", "q.jsonl.gz"]


class Judgment(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str


class SubJudgment(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    subtopic_id: str


class Scored(NamedTuple):
    query_id: str
    doc_id: str
    score: float


RECORDS = [Judgment(qid, docid, grade, "0") for qid, known in JUDGMENTS.items() for docid, grade in known.items()]
SCORED = [Scored(qid, docid, score) for qid, known in SCORES.items() for docid, score in known.items()]


class Dataset:
    """What a dataset of ir_datasets offers."""

    def qrels_iter(self):
        return iter(RECORDS)

    def scoreddocs_iter(self):
        return iter(SCORED)


def same(one, other):
    columns = [name for name in ("qid", "aspect", "subgroup", "docid") if name in one]
    frames = [frame.sort_values(columns, ignore_index=True) for frame in (one, other)]
    pd.testing.assert_frame_equal(*frames)


@each_row("name", FORMS)
def test_what_was_written_is_read_back(tmp_path: Path, name):
    """In every format, compressed or not, to the last bit; so evaluate gives the same."""
    qrels, run = rk.Qrels.from_dict(JUDGMENTS), rk.Run.from_dict(SCORES)
    run.write(tmp_path / f"r.{name}")
    qrels.write(tmp_path / name)
    same(rk.Qrels.read(tmp_path / name).to_frame(), qrels.to_frame())
    same(rk.Run.read(tmp_path / f"r.{name}").to_frame(), run.to_frame())
    ours = rk.evaluate(tmp_path / name, tmp_path / f"r.{name}", measures=["RR", "nDCG@10"])
    pd.testing.assert_frame_equal(ours.per_query, rk.evaluate(qrels, run, measures=["RR", "nDCG@10"]).per_query)


@each_row("name", FORMS)
def test_the_name_of_a_run_is_written_and_read_back(tmp_path: Path, name):
    """As the tag of TREC text, where blanks are joined, and as a column of tables; and not, where there is none."""
    rk.Run.from_dict(SCORES, name="my_run").write(tmp_path / f"r.{name}")
    assert rk.Run.read(tmp_path / f"r.{name}").name == "my_run"
    rk.Run.from_dict(SCORES, name="my run").write(tmp_path / f"r.{name}")
    assert rk.Run.read(tmp_path / f"r.{name}").name in ("my_run", "my run")
    rk.Run.from_dict(SCORES).write(tmp_path / f"s.{name}")
    assert rk.Run.read(tmp_path / f"s.{name}").name in (None, "run")


def test_what_cannot_be_written_is_said(tmp_path: Path):
    """By the name that was given: not by that of a file in between, and not when it is read again."""
    qrels, run = rk.Qrels.from_dict(JUDGMENTS), rk.Run.from_dict(SCORES)
    for write in (qrels.write, run.write, rk.evaluate(qrels, run).save):
        for name in ("nowhere/r", "nowhere/r.csv"):
            with pytest.raises(InvalidInput, match=r"^cannot write '.*nowhere/r.*': there is no folder '.*nowhere'$"):
                write(tmp_path / name)
    for empty in (rk.Qrels.from_dict({}), rk.Run.from_dict({})):
        with pytest.raises(InvalidInput, match="a file without rows cannot be read"):
            empty.write(tmp_path / "empty")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidInput, match="there is no file"):
        rk.Evaluation.load(tmp_path / "nothing")


@pytest.mark.filterwarnings("error")
@each_row("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, pa.RecordBatch.from_pydict])
def test_frames_of_any_make_are_evaluated_without_a_warning(make):
    """Both sides as frames, lazy ones included."""
    truth = make({"qid": ["q1", "q1"], "docid": ["a", "b"], "relevance": [2, 0]})
    ranking = make({"qid": ["q1", "q1"], "docid": ["b", "a"], "score": [2.0, 1.0]})
    assert rk.evaluate(truth, ranking, measures="RR").per_query["RR"].tolist() == [0.5]


@each_row("name", FORMS)
def test_sub_groups_of_judges_are_written_and_read_back(tmp_path: Path, name):
    """TREC text has five columns then, which are asked for; tables have columns of these names."""
    qrels = rk.Qrels(["q", "q"], ["d", "d"], [1, 0], aspect=["ann", "bob"], subgroup=["1", "2"])
    qrels.write(tmp_path / name)
    is_text = name in ("qrels", "q.txt.gz")
    same(rk.Qrels.read(tmp_path / name, format="prefs" if is_text else None).to_frame(), qrels.to_frame())


def test_tables_hold_what_text_cannot(tmp_path: Path):
    """Ids with blanks, commas and quotes, and integers where the format has them."""
    qrels = rk.Qrels.from_dict({'a "query", say': {"a b": 1, "#\n": 0}})
    for name in ("q.csv", "q.tsv", "q.jsonl", "q.parquet"):
        qrels.write(tmp_path / name)
        same(rk.Qrels.read(tmp_path / name).to_frame(), qrels.to_frame())
    rk.Qrels.from_dict({1: {2: 1}}).write(tmp_path / "whole", format="parquet")
    assert rk.Qrels.read(tmp_path / "whole").qid.type == pa.int64()
    with pytest.raises(UnknownName, match="csv"):
        qrels.write(tmp_path / "q", format="cvs")


def test_a_file_of_preferences_has_five_columns(tmp_path: Path):
    """Blanks, tabs and comments as in qrels; a line of four columns is named."""
    (tmp_path / "prefs").write_text("# judged by two\nq\t ann  1 d 1.5\nq bob 2 d 0\n")
    qrels = rk.Qrels.read(tmp_path / "prefs", format="prefs")
    assert qrels.to_frame().to_numpy().tolist() == [["q", "d", 1.5, "ann", "1"], ["q", "d", 0.0, "bob", "2"]]
    (tmp_path / "prefs").write_text("q ann 1 d 1\nq 0 d 1\n")
    with pytest.raises(rk.errors.FileFormatError, match=r"line 2: expected 5 columns .*this looks like a qrels file"):
        rk.Qrels.read(tmp_path / "prefs", format="prefs")


@each_row("given_as", [list, tuple, iter, lambda rows: (row for row in rows)])
def test_records_of_ir_datasets_are_taken(given_as):
    """Lists, iterators and generators of them, in evaluate too."""
    same(as_qrels(given_as(RECORDS)).to_frame(), rk.Qrels.from_dict(JUDGMENTS).to_frame())
    same(as_run(given_as(SCORED)).to_frame(), rk.Run.from_dict(SCORES).to_frame())
    assert rk.evaluate(given_as(RECORDS), given_as(SCORED), measures="RR").per_query["RR"].tolist() == [0.5, 1]


def test_a_dataset_of_ir_datasets_is_taken():
    """By what it iterates over; one without scores is no ranking."""
    assert rk.evaluate(Dataset(), Dataset(), measures="RR").mean()["RR"] == 0.75
    Dataset.docs_only = type("DocsOnly", (), {"qrels_iter": Dataset.qrels_iter})
    with pytest.raises(InvalidInput, match=r"no scoreddocs_iter\(\)"):
        as_run(Dataset.docs_only())


def test_subtopics_of_records_are_aspects():
    """The iteration of TREC qrels says nothing, a subtopic does; records of another kind are named."""
    rows = [SubJudgment("q1", "a", 2, "x"), SubJudgment("q1", "a", 0, "y"), SubJudgment("q1", "b", 1, "y")]
    same(as_qrels(rows).to_frame(), rk.Qrels.from_dict(BY_ASPECT).to_frame())
    assert as_qrels(RECORDS).aspect is None
    with pytest.raises(InvalidInput, match=r"record 1 .* expected query_id, doc_id, relevance, found Scored"):
        as_qrels([RECORDS[0], SCORED[0]])


def test_aspects_are_a_column_of_a_frame_or_the_third_level_of_a_dict():
    """Under a usual name the column is taken; any other is named; False leaves it."""
    frame = rk.Qrels.from_dict(BY_ASPECT).to_frame()
    assert frame.to_numpy().tolist() == [["q1", "a", 2, "x"], ["q1", "a", 0, "y"], ["q1", "b", 1, "y"]]
    same(as_qrels(frame).to_frame(), frame)
    named = rk.Qrels.from_frame(frame.rename(columns={"aspect": "subtopic"}), aspect="subtopic")
    same(named.to_frame(), frame)
    same(as_qrels(frame.rename(columns={"aspect": "subtopic_id"})).to_frame(), frame)
    assert rk.Qrels.from_frame(frame, aspect=False).aspect is None
    with pytest.raises(InvalidInput, match="no column 'theme'"):
        rk.Qrels.from_frame(frame, aspect="theme")
    with pytest.raises(InvalidInput, match="document 'b' of query 'q1' has a int"):
        rk.Qrels.from_dict({"q1": {"a": {"x": 1}, "b": 1}})
