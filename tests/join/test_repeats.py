"""A document that occurs twice is refused; "keep one of them" is said only of rows that say the same."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput

LISTS = pd.DataFrame(
    {
        "flavour": ["UU", "UU", "II", "II"],
        "qid": ["q1"] * 4,
        "rank": [1, 2, 1, 2],
        "docid": ["a", "b", "a", "c"],
        "score": [3.0, 2.0, 3.0, 1.0],
    }
)
JUDGED = pd.DataFrame(
    {"id": range(4), "qid": "q1", "docid": ["a", "a", "b", "b"], "relevance": [1, 1, 0, 2], "worker": ["x", "y"] * 2}
)
TRUTH, RUN = {"q1": {"a": 1, "b": 0}}, {"q1": {"a": 2.0, "b": 1.0}}


def remedy_of(truth, ranking):
    with pytest.raises(InvalidInput, match="occurs twice in query 'q1'") as caught:
        rk.evaluate(truth, ranking, measures="RR")
    return caught.value.remedy


TEXTS = {
    "same": ("q1 0 a 1\nq1 0 b 0\nq1 0 a 1\n", "^keep one of them$"),
    "other grades": ("q1 0 a 1\nq1 0 a 0\n", r"^they differ \(relevance 1 and 0\): find out which of them is right$"),
    "subtopics": ("q1 1 a 1\nq1 1 b 0\nq1 2 a 1\n", r"column 2 \('1' and '2'\); .*format='ndeval' \(-R ndeval\)"),
    "judges of other grades": ("# by two\nq1  ann a 1\nq1 bob a 0\n", r"column 2 \('ann' and 'bob'\)"),
    "one pair the same, one not": ("q1 0 a 1\nq1 0 a 1\nq1 0 b 1\nq1 0 b 2\n", "they differ"),
    "judges behind a repeated row": ("q1 x a 1\nq1 x a 1\nq1 x b 1\nq1 y b 1\n", r"column 2 \('x' and 'y'\)"),
}


@each_row("case", TEXTS)
def test_judgments_of_trec_name_the_second_column(tmp_path: Path, case):
    text, remedy = TEXTS[case]
    (tmp_path / "qrels").write_text(text)
    assert re.search(remedy, remedy_of(tmp_path / "qrels", RUN))


def test_the_format_that_is_advised_reads_the_file(tmp_path: Path):
    (tmp_path / "qrels").write_text(TEXTS["subtopics"][0])
    assert rk.evaluate(rk.Qrels.read(tmp_path / "qrels", "ndeval"), RUN, measures="RR").mean()["RR"] == 1
    named = rk.Qrels.from_frame(JUDGED, aspect="worker")
    assert rk.evaluate(named, RUN, measures="RR").mean()["RR"] == 1


RUNS = {
    "same": ("q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\nq1 Q0 a 1 2 t\n", "^keep one of them$"),
    "other scores": ("q1 Q0 a 1 2 t\nq1 Q0 a 3 1 t\n", r"^they differ \(score 2.0 and 1.0\)"),
    "two systems": ("q1 Q0 a 1 2 t\nq1 Q0 a 1 2 u v\n", r"tag \('t' and 'u v'\); if it is the system, .*: awk"),
}


@each_row("case", RUNS)
def test_rankings_of_trec_name_the_tag(tmp_path: Path, case):
    text, remedy = RUNS[case]
    (tmp_path / "run").write_text(text)
    assert re.search(remedy, remedy_of(TRUTH, tmp_path / "run"))


MAKES = {
    "pandas": lambda frame: frame,
    "pandas, by label": lambda frame: frame.set_axis(range(9, 9 + len(frame))),
    "pandas, as index": lambda frame: frame.set_index(["qid", "docid"]),
    "polars": pl.from_pandas,
    "Arrow": pa.Table.from_pandas,
    "records": lambda frame: frame.to_dict("records"),
}


@each_row("make", MAKES)
def test_frames_name_the_column_that_tells_rows_apart(make):
    """The system or the judge, not the rank, and not the number of the row."""
    told = remedy_of(TRUTH, MAKES[make](LISTS))
    assert told.startswith("these rows differ in a column: flavour ('UU' and 'II'); ")
    assert "system='flavour'" in told
    told = remedy_of(MAKES[make](JUDGED), RUN)
    assert told.startswith("these rows differ in a column: worker ('x' and 'y')")
    assert "aspect='worker'" in told
    assert remedy_of(TRUTH, MAKES[make](LISTS[["qid", "docid", "score"]].iloc[[0, 1, 2]])) == "keep one of them"
    numbered = LISTS[["qid", "docid", "score"]].iloc[[0, 1, 2]].set_index(pd.Index([5, 6, 9]))
    assert remedy_of(TRUTH, MAKES[make](numbered)) == "keep one of them"


@each_row("suffix", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_tables_name_the_column_that_tells_rows_apart(tmp_path: Path, suffix):
    write = {
        "csv": lambda frame, path: frame.to_csv(path, index=False),
        "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
        "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
        "json": lambda frame, path: frame.to_json(path, orient="records", indent=1),
        "parquet": lambda frame, path: frame.to_parquet(path, index=False),
    }[suffix]
    path = tmp_path / f"rows.{suffix}"
    write(LISTS, path)
    assert remedy_of(TRUTH, path).startswith("these rows differ in a column: flavour ('UU' and 'II'); ")
    for name in ("Algorithm", "run"):
        write(LISTS.rename(columns={"flavour": name}), path)
        with pytest.raises(InvalidInput, match=r"the rankings of 2 systems: 'UU', 'II'; rk.Run.by_system"):
            rk.evaluate(TRUTH, path, measures="RR")
        assert {*rk.Run.by_system(path)} == {"UU", "II"}
    write(JUDGED, path)
    assert "worker ('x' and 'y')" in remedy_of(path, RUN)


def test_rows_of_arrays_differ_in_label_or_score():
    for y, score, remedy in (([1, 1], [2, 2], "keep one of them"), ([1, 0], [2, 2], "they differ (truth 1 and 0)")):
        with pytest.raises(InvalidInput, match="occurs twice") as caught:
            rk.evaluate(y, score, qid=["q", "q"], docid=["a", "a"])
        assert caught.value.remedy.startswith(remedy)


@each_row(
    ("given", "remedy"),
    [
        ({"q": ["a", "b", "a"]}, "keep its best place"),
        ({"q": [("a", 1), ("a", 1)]}, "keep one of them"),
        ({"q": [("a", 1), ("a", 2)]}, "1 and 2 are given: find out which of them is right"),
    ],
)
def test_lists_that_repeat_a_document_say_what_differs(given, remedy):
    with pytest.raises(InvalidInput, match="occurs twice in the list of query 'q'") as caught:
        rk.Run.from_dict(given)
    assert caught.value.remedy == remedy


def test_a_judge_who_labels_twice_is_not_asked_to_drop_a_label():
    for grades, remedy in (((1, 1), "keep one label"), ((1, 0), "the labels are 1, 0: find out which is right")):
        given = rk.Qrels(["q", "q"], ["d", "d"], grades, aspect=["a", "a"])
        with pytest.raises(InvalidInput, match="labels document 'd' of query 'q' twice") as caught:
            rk.judging.agreement(given)
        assert caught.value.remedy == remedy


def test_a_copy_of_the_rows_takes_no_frame_along():
    """The frame may hold texts of many megabytes, which workers do not need."""
    run = rk.Run.from_frame(LISTS.assign(text="x" * 10_000_000))
    assert len(pickle.dumps(run)) < 10_000
    assert copy.deepcopy(run).source.names == ()
    assert remedy_of(TRUTH, pickle.loads(pickle.dumps(run))) == "keep one of them"
