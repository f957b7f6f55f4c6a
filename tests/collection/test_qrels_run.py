"""Qrels and Run: what a file, a frame or a dict holds is what they hold, row for row."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.collection.qrels import as_qrels
from rankeval.collection.run import as_run
from rankeval.errors import InvalidInput
from rankeval.io.formats import FORMATS

# From the notes that came with the collections: lines, topics, number of lines with each label.
QRELS = {
    "cranfield/qrels.codes.txt.gz": (1837, 225, {-1: 225, 1: 128, 2: 387, 3: 734, 4: 363}),
    "cranfield/qrels.graded.txt.gz": (1837, 225, {0: 225, 1: 363, 2: 734, 3: 387, 4: 128}),
    "cranfield/qrels.binary.txt.gz": (1837, 225, {0: 225, 1: 1612}),
    "cisi/qrels.binary.txt.gz": (3114, 76, {1: 3114}),
    "trec_covid_r5/qrels.residual.txt.gz": (23151, 50, {-1: 2, 0: 12239, 1: 4233, 2: 6677}),
    "trec_covid_r5/qrels.complete.txt.gz": (69318, 50, {-1: 2, 0: 42652, 1: 11055, 2: 15609}),
    "web2012/qrels.adhoc.txt.gz": (16055, 50, {-2: 858, 0: 11674, 1: 2208, 2: 405, 3: 52, 4: 858}),
    "web2012/qrels.ndeval.txt.gz": (59736, 50, {0: 50368, 1: 5578, 2: 1174, 3: 130, 4: 2486}),
    "agreement_rag25/qrels.nist.txt.gz": (10284, 22, {0: 3619, 1: 1499, 2: 3760, 3: 1318, 4: 88}),
    "agreement_rag25/qrels.umbrela.txt.gz": (10284, 22, {0: 2524, 1: 2399, 2: 3790, 3: 1263, 4: 308}),
}
# Lines, topics, fewest and most documents of a topic, and lines that repeat a score of their topic.
RUNS = {
    "cranfield/runs/bm25_k09_b40.run.gz": (22471, 225, 71, 100, 87),
    "cranfield/runs/bm25_k12_b75.run.gz": (22471, 225, 71, 100, 105),
    "cranfield/runs/bm25_title.run.gz": (21127, 225, 13, 100, 9455),
    "cranfield/runs/coord_ties.run.gz": (22471, 225, 71, 100, 21478),
    "cranfield/runs/lm_dirichlet.run.gz": (22471, 225, 71, 100, 170),
    "cranfield/runs/lm_jm.run.gz": (22471, 225, 71, 100, 157),
    "cranfield/runs/lsa120.run.gz": (22500, 225, 100, 100, 7),
    "cranfield/runs/random.run.gz": (22500, 225, 100, 100, 18),
    "cranfield/runs/rocchio_prf.run.gz": (22500, 225, 100, 100, 18),
    "cranfield/runs/tf_sum_ties.run.gz": (22471, 225, 71, 100, 19432),
    "cranfield/runs/tfidf_cos.run.gz": (22471, 225, 71, 100, 2),
    "cisi/runs/bm25_k09_b40.run.gz": (11100, 111, 100, 100, 59),
    "cisi/runs/bm25_k12_b75.run.gz": (11100, 111, 100, 100, 60),
    "cisi/runs/bm25_title.run.gz": (10977, 111, 48, 100, 4660),
    "cisi/runs/coord_ties.run.gz": (11100, 111, 100, 100, 10472),
    "cisi/runs/lm_dirichlet.run.gz": (11100, 111, 100, 100, 80),
    "cisi/runs/lm_jm.run.gz": (11100, 111, 100, 100, 83),
    "cisi/runs/lsa120.run.gz": (11100, 111, 100, 100, 8),
    "cisi/runs/random.run.gz": (11100, 111, 100, 100, 6),
    "cisi/runs/rocchio_prf.run.gz": (11100, 111, 100, 100, 13),
    "cisi/runs/tf_sum_ties.run.gz": (11100, 111, 100, 100, 8979),
    "cisi/runs/tfidf_cos.run.gz": (11100, 111, 100, 100, 1),
    "trec_covid_r5/runs/BioInfo-run1.gz": (30490, 50, 388, 830, 3505),
    "trec_covid_r5/runs/CSIROmedNIR.gz": (39769, 50, 686, 1000, 496),
    "trec_covid_r5/runs/HKPU-BM25-dPRF.gz": (49910, 50, 993, 1000, 9135),
    "trec_covid_r5/runs/UPrrf93-wt-r5.gz": (49887, 50, 993, 1000, 0),
    "trec_covid_r5/runs/bm25_bl_run5.gz": (49984, 50, 998, 1000, 720),
    "trec_covid_r5/runs/covidex.r5.2s.lr.gz": (49900, 50, 993, 1000, 210),
    "trec_covid_r5/runs/fc3-qrel-hidden.gz": (7659, 50, 1, 429, 2084),
    "trec_covid_r5/runs/poznan_baseline.gz": (37132, 50, 611, 971, 717),
    "trec_covid_r5/runs/r5.fusion1.gz": (49920, 50, 994, 1000, 7189),
    "trec_covid_r5/runs/r5.rf.gz": (49896, 50, 994, 1000, 32),
    "trec_covid_r5/runs/sab20.5.dfo.gz": (49905, 50, 994, 1000, 4049),
    "trec_covid_r5/runs/uab.base.gz": (520, 50, 2, 25, 0),
    "trec_covid_r5/runs/udel_fang_ltr_split.gz": (49894, 50, 994, 1000, 0),
    "trec_covid_r5/runs/uogTrDPH_QE_RF.gz": (49847, 50, 992, 1000, 12400),
    "trec_covid_r5/runs/uw_crowd1.gz": (49819, 50, 980, 1000, 7386),
    "trec_covid_r5/runs/xj4wang_run1.gz": (49923, 50, 992, 1000, 0),
    "web2012/runs/indri-ql-cata-filtered.run.gz": (8060, 50, 5, 399, 252),
    "web2012/runs/indri-ql-cata.run.gz": (50000, 50, 1000, 1000, 3741),
    "web2012/runs/indri-ql-catb.run.gz": (49413, 50, 413, 1000, 2543),
    "web2012/runs/indri-rm-cata-filtered.run.gz": (8083, 50, 6, 464, 153),
    "web2012/runs/indri-rm-catb.run.gz": (50000, 50, 1000, 1000, 1220),
}

JUDGMENTS = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}
SCORES = {"q1": {"d1": 0.5, "d2": 1.5}, "q2": {"d1": -1.0}}


@pytest.mark.shared
@each_row("name", QRELS)
def test_judgments_of_the_collections_are_read_whole(shared: Path, name):
    """Lines, topics and labels are as counted by other means, whatever the spacing."""
    lines, topics, labels = QRELS[name]
    qrels = rk.Qrels.read(shared / name)
    values, counts = np.unique(qrels.relevance, return_counts=True)
    assert (len(qrels), len(qrels.qid.unique())) == (lines, topics)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == labels
    assert qrels.relevance.dtype == np.int64
    assert qrels.qid.type == qrels.docid.type == pa.string()


@pytest.mark.shared
@each_row("name", RUNS)
def test_rankings_of_the_collections_are_read_whole(shared: Path, name):
    """Lines, topics, lengths and ties are as counted by other means."""
    run = rk.Run.read(shared / name)
    frame = run.to_frame()
    lengths = frame.groupby("qid").size()
    tied = frame.duplicated(["qid", "score"]).sum()
    assert (len(run), len(lengths), lengths.min(), lengths.max(), tied) == RUNS[name]


@pytest.mark.shared
def test_the_lecture_sample_is_read(shared: Path, tmp_path: Path):
    """The 14 judgments printed in the lecture: 7 not relevant, 6 of grade 1, one of grade 2."""
    examples = json.loads((shared / "seed_examples.json").read_text())["examples"]
    sample = next(example for example in examples if example["id"] == "qrels_sample")
    (tmp_path / "qrels").write_text("\n".join(sample["inputs"]["lines"]))
    qrels = rk.Qrels.read(tmp_path / "qrels")
    assert len(qrels) == sample["expected"]["judged"] == 14
    assert qrels.qid.unique().to_pylist() == ["1"]
    assert np.bincount(qrels.relevance).tolist() == list(sample["expected"]["by_label"].values()) == [7, 6, 1]


ids = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\v\f\r "), min_size=1, max_size=8
).filter(lambda text: not text.startswith(("#", "\ufeff")))
numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(ids, ids, numbers), min_size=1), st.sampled_from(["run", "run.gz", "run.zst"]))
def test_a_run_comes_back_from_its_file(tmp_path_factory, rows, name):
    """Written and read, a run has the same rows, scores to the last bit: grouped by query, by descending score."""
    run = rk.Run(*map(list, zip(*rows, strict=True)), name="tag")
    path = tmp_path_factory.getbasetemp() / name
    run.write(path)
    back = rk.Run.read(path)
    first = {query: place for place, (query, _, _) in reversed(list(enumerate(rows)))}
    expected = sorted(rows, key=lambda row: (first[row[0]], -row[2]))
    assert list(zip(back.qid.to_pylist(), back.docid.to_pylist(), back.score.tolist(), strict=True)) == expected
    assert back.name == "tag"


@given(st.lists(st.tuples(ids, ids, st.one_of(st.integers(-9, 9), numbers)), min_size=1))
def test_judgments_come_back_from_their_file(tmp_path_factory, rows):
    """Written and read, judgments have the same rows in the same order, fractions to the last bit."""
    qrels = rk.Qrels(*map(list, zip(*((q, d, float(r)) for q, d, r in rows), strict=True)))
    path = tmp_path_factory.getbasetemp() / "qrels"
    qrels.write(path)
    back = rk.Qrels.read(path)
    assert (back.qid, back.docid) == (qrels.qid, qrels.docid)
    assert back.relevance.tolist() == qrels.relevance.tolist()
    assert back.relevance.dtype == qrels.relevance.dtype


def test_a_large_grade_that_we_wrote_is_no_time(tmp_path: Path):
    rk.Qrels(["q"], ["0"], [10_000_000.0]).write(tmp_path / "qrels")
    assert rk.Qrels.read(tmp_path / "qrels").relevance.tolist() == [10_000_000.0]


@each_row("query", ["{", '{"', "{}", "["])
def test_a_query_that_looks_like_another_format_comes_back(tmp_path: Path, query):
    """What a file is, its first characters alone do not say."""
    rk.Qrels.from_dict({query: {"d": 1}}).write(tmp_path / "qrels")
    assert rk.Qrels.read(tmp_path / "qrels").qid.to_pylist() == [query]


def test_ranks_in_a_written_run_follow_the_scores(tmp_path: Path):
    """Ranks count from 1 in each query by descending score; equal scores keep the order of their rows."""
    rk.Run(["b", "a", "b", "b"], ["x", "y", "z", "w"], [1, 5, 2, 1]).write(tmp_path / "run")
    assert (tmp_path / "run").read_text().splitlines() == [
        "b Q0 z 1 2 run",
        "b Q0 x 2 1 run",
        "b Q0 w 3 1 run",
        "a Q0 y 1 5 run",
    ]


@each_row("query", ["a b", "a\tb", "#a", "a\n", "\ufeffa"])
def test_ids_that_text_cannot_hold_are_not_written(tmp_path: Path, query):
    """An id with a blank, or a query that would read as a comment, is refused, and no file is left."""
    with pytest.raises(InvalidInput, match=r"row 1 .* cannot be in TREC text"):
        rk.Qrels(["ok", query], ["d", "d"], [1, 1]).write(tmp_path / "qrels")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch):
    """A file is replaced whole or not at all."""
    path = tmp_path / "run"
    path.write_text("old")

    def interrupted(_):
        yield b"half"
        raise KeyboardInterrupt

    monkeypatch.setitem(FORMATS, "trec", replace(FORMATS["trec"], write=interrupted))
    with pytest.raises(KeyboardInterrupt):
        rk.Run.from_dict(SCORES).write(path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("run", "old")]


def test_repeated_rows_are_kept(tmp_path: Path):
    """A pair given twice stays two rows: what it means is for the join to say."""
    (tmp_path / "qrels").write_text("q 0 d 1\nq 0 d 1\n")
    assert len(rk.Qrels.read(tmp_path / "qrels")) == 2


def test_grades_are_integers_where_all_are_whole():
    """One fraction makes all of them floats."""
    assert rk.Qrels(["q", "q"], ["a", "b"], [1.0, 2.0]).relevance.dtype == np.int64
    assert rk.Qrels(["q", "q"], ["a", "b"], [1.0, 0.5]).relevance.dtype == np.float64


@each_row("kind", [np.int8, np.uint32, np.int64])
def test_integer_ids_stay_integers(kind):
    """Ids of any integer type become int64, text stays text."""
    qrels = rk.Qrels(np.array([1, 2], kind), ["01", "1"], [1, 0])
    assert (qrels.qid.type, qrels.docid.type) == (pa.int64(), pa.string())
    assert qrels.docid.to_pylist() == ["01", "1"]


def test_aspects_go_through_file_and_frame(tmp_path: Path):
    """The aspect is the second column of the file and the fourth of the frame."""
    qrels = rk.Qrels(["q", "q"], ["a", "a"], [1, 0], aspect=["1", "2"])
    qrels.write(tmp_path / "qrels")
    assert (tmp_path / "qrels").read_text() == "q 1 a 1\nq 2 a 0\n"
    assert qrels.to_frame()["aspect"].tolist() == ["1", "2"]


def test_whatever_holds_judgments_is_taken(tmp_path: Path):
    """Qrels, dict, frame and path give the same rows."""
    qrels = rk.Qrels.from_dict(JUDGMENTS)
    qrels.write(tmp_path / "qrels")
    for given_as in (qrels, JUDGMENTS, qrels.to_frame(), tmp_path / "qrels", str(tmp_path / "qrels")):
        pd.testing.assert_frame_equal(as_qrels(given_as).to_frame(), qrels.to_frame())


def test_whatever_holds_a_ranking_is_taken(tmp_path: Path):
    """Run, dict, frame and path give the same rows."""
    run = rk.Run.from_dict(SCORES)
    rk.Run(run.qid, run.docid, run.score).write(tmp_path / "run")
    for given_as in (run, SCORES, run.to_frame(), tmp_path / "run", str(tmp_path / "run")):
        rows = as_run(given_as).to_frame().sort_values(["qid", "docid"], ignore_index=True)
        pd.testing.assert_frame_equal(rows, run.to_frame())


@each_row(("take", "what"), [(as_qrels, "judgments as Qrels"), (as_run, "a ranking as Run")])
def test_anything_else_is_refused_by_its_type(take, what):
    """The message says what would do and what came."""
    with pytest.raises(InvalidInput, match=f"expected {what}.* found a list"):
        take([1, 2])


def test_columns_of_different_lengths_are_refused():
    """Both lengths are named."""
    with pytest.raises(InvalidInput, match="score has 1 row, but qid has 2"):
        rk.Run(["q", "q"], ["a", "b"], [1.0])


def test_a_name_cannot_inject_markup():
    """The notebook view shows a name as text."""
    assert "<b>" not in rk.Run.from_dict(SCORES, name="<b>")._repr_html_()
    assert repr(rk.Run.from_dict(SCORES, name="bm25")) == "Run('bm25', 3 rows, 2 queries)"


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(InvalidInput) as error:
        rk.Run(["a"], ["x"], [1.0], name=3)
    assert (error.value.argument, error.value.found) == ("name", "3")
