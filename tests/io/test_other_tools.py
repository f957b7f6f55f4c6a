"""Judgments and rankings of other tools: the rows that the tool means, or an error.

The packages are real, but for PyTerrier, which needs Java: frames here have the columns that it documents.
"""

from __future__ import annotations

from pathlib import Path

import ir_measures
import pandas as pd
import polars as pl
import pytest
import pytrec_eval
from tables import each_row

import rankeval as rk
from rankeval.collection.qrels import as_qrels
from rankeval.collection.run import as_run
from rankeval.errors import FileFormatError, InvalidInput

JUDGMENTS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d1": 1, "d4": 0}}
SCORES = {"q1": {"d1": 0.5, "d2": 1.5, "d3": 0.25}, "q2": {"d4": -1.0, "d1": -2.0}}
QRELS_TEXT = "".join(f"{q} 0 {d} {grade}\n" for q, known in JUDGMENTS.items() for d, grade in known.items())
RUN_TEXT = "".join(f"{q} Q0 {d} 1 {score} tag\n" for q, known in SCORES.items() for d, score in known.items())
MEASURES = ["nDCG@10", "AP", "RR"]


def rows(values, names):
    """Return a frame with columns of these names, from {qid: {docid: value}}."""
    return pd.DataFrame([(q, d, value) for q, known in values.items() for d, value in known.items()], columns=names)


def as_pyterrier(results=SCORES):
    """Return results as PyTerrier's transformers do: id, text, number in the index, rank and score."""
    frame = rows(results, ["qid", "docno", "score"])
    numbers = {"d1": 40, "d2": 7, "d3": 3, "d4": 11}
    frame["docid"] = frame["docno"].map(numbers)
    frame["rank"] = frame.groupby("qid")["score"].rank(ascending=False).astype(int) - 1
    frame["query"] = "what is " + frame["qid"]
    return frame[["qid", "docid", "docno", "rank", "score", "query"]]


def means_the_same(truth, ranking):
    found = rk.evaluate(truth, ranking, measures=MEASURES)
    wanted = rk.evaluate(rk.Qrels.from_dict(JUDGMENTS), rk.Run.from_dict(SCORES), measures=MEASURES)
    assert wanted.mean().between(0.3, 0.99).all()  # a reversed or shuffled ranking would give others
    pd.testing.assert_frame_equal(found.per_query, wanted.per_query)
    return True


PYTERRIER_QRELS = rows(JUDGMENTS, ["qid", "docno", "label"]).assign(iteration="0")


def test_frames_of_pyterrier():
    """The id is docno, not the number docid beside it; rank, query and iteration are no part of it."""
    assert means_the_same(PYTERRIER_QRELS, as_pyterrier())
    assert means_the_same(pl.from_pandas(PYTERRIER_QRELS), pl.from_pandas(as_pyterrier()).lazy())
    both = as_pyterrier().merge(PYTERRIER_QRELS)
    assert means_the_same(both, both)
    assert as_run(as_pyterrier()).docid.to_pylist() == ["d1", "d2", "d3", "d4", "d1"]


@each_row("suffix", ["csv", "jsonl", "parquet"])
def test_files_of_pyterrier(tmp_path: Path, suffix):
    """As its frames, however they are kept; all ids of CSV are text."""
    frame, path = as_pyterrier(), tmp_path / f"res.{suffix}"
    PYTERRIER_QRELS.to_csv(tmp_path / "qrels.csv", index=False)
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet}.get(suffix)
    if write:
        write(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    assert means_the_same(tmp_path / "qrels.csv", path)


@each_row(
    "columns",
    [
        {"docid": ["x1", "x2"], "docno": ["d1", "d2"]},
        {"docid": [1, 2], "docno": [3, 4]},
        {"docid": [1.0, 2.0], "docno": ["d1", "d2"]},
        {"docid": [1, None], "docno": ["d1", "d2"]},
    ],
)
def test_docno_beside_another_docid_is_refused(columns, tmp_path: Path):
    """Either could be the id; the caller says which, to the letter."""
    frame = pd.DataFrame({"qid": "q", "score": [2.0, 1.0], **columns})
    with pytest.raises(InvalidInput, match=r"^the frame has the columns 'docno' and 'docid'.* say which by docid="):
        as_run(frame)
    assert rk.Run.from_frame(frame, docid="docno").docid.to_pylist() == columns["docno"]
    frame.to_parquet(tmp_path / "r.parquet")
    with pytest.raises(FileFormatError, match=r"r\.parquet: the table has the columns 'docno' and 'docid'"):
        rk.Run.read(tmp_path / "r.parquet")


def test_a_docid_that_is_asked_for_is_taken_beside_docno():
    assert rk.Run.from_frame(as_pyterrier(), docid="docid").docid.to_pylist() == [40, 7, 3, 11, 40]


def test_a_text_is_not_taken_for_the_id_of_its_query():
    """`query` and `topic` are ids only where nothing else is, as in trectools' frames."""
    frame = rows(SCORES, ["query_id", "docno", "score"]).assign(query="a text", topic="another")
    assert as_run(frame).qid.to_pylist() == ["q1", "q1", "q1", "q2", "q2"]
    run = rows(SCORES, ["query", "docid", "score"]).assign(q0="Q0", rank=1, system="bm25")
    assert means_the_same(rows(JUDGMENTS, ["query", "docid", "rel"]).assign(q0="0"), run)


def test_a_rank_is_no_score(tmp_path: Path):
    """No tool of the field orders by it; the error says how to make a score of it."""
    frame = as_pyterrier().drop(columns="score")
    with pytest.raises(InvalidInput, match=r"no column 'score': a rank is not a score; .*score = -rank"):
        as_run(frame)
    frame.to_csv(tmp_path / "r.csv")
    with pytest.raises(FileFormatError, match="no column 'score': a rank is not a score"):
        rk.Run.read(tmp_path / "r.csv")
    assert means_the_same(JUDGMENTS, frame.assign(score=-frame["rank"]))


BEIR = ["query-id", "corpus-id", "score"]


@each_row("names", [BEIR, ["query_id", "corpus_id", "score"], ["q_id", "doc_id", "score"]])
def test_a_score_is_the_relevance_in_judgments_of_beir_and_ranx(names, tmp_path: Path):
    """In frames and files, whole numbers or floats; with fractions it is a ranking, and a mix-up is refused."""
    truth, ranking = rows(JUDGMENTS, names), rows(SCORES, names)
    assert means_the_same(truth, ranking)
    assert means_the_same(truth.astype({"score": float}), ranking)
    for name, frame in (("qrels.tsv", truth), ("run.tsv", ranking)):
        frame.to_csv(tmp_path / name, sep="\t", index=False)
    assert means_the_same(tmp_path / "qrels.tsv", tmp_path / "run.tsv")
    for swapped in ((ranking, truth), (tmp_path / "run.tsv", tmp_path / "qrels.tsv")):
        with pytest.raises(InvalidInput, match="has fractions, like a ranking"):
            rk.evaluate(*swapped)
    assert rk.Qrels.from_frame(ranking, relevance="score").relevance.tolist()[0] == 0.5


@pytest.fixture
def dataset(tmp_path: Path):
    """Make a dataset of ir_datasets from local files."""
    import ir_datasets

    for name, text in (("qrels", QRELS_TEXT), ("run", RUN_TEXT)):
        (tmp_path / name).write_text(text)
    local = ir_datasets.util.LocalDownload
    return ir_datasets.Dataset(
        ir_datasets.formats.TrecQrels(local(tmp_path / "qrels"), {}),
        ir_datasets.formats.TrecScoredDocs(local(tmp_path / "run")),
    )


@pytest.mark.needs("ir_datasets")
def test_datasets_of_ir_datasets(dataset):
    """A dataset, its iterators, their lists and frames, its parts and its dict."""
    assert means_the_same(dataset, dataset)
    assert means_the_same(dataset.qrels_iter(), dataset.scoreddocs_iter())
    assert means_the_same(list(dataset.qrels_iter()), tuple(dataset.scoreddocs_iter()))
    assert means_the_same(pd.DataFrame(dataset.qrels_iter()), pd.DataFrame(dataset.scoreddocs_iter()))
    assert means_the_same(dataset.qrels, dataset.scoreddocs)
    assert means_the_same(dataset.qrels_handler(), dataset.scoreddocs_handler())
    assert means_the_same(dataset.qrels_dict(), dataset)


@pytest.mark.needs("ir_datasets")
def test_a_dataset_without_rankings_is_no_run(tmp_path: Path):
    import ir_datasets

    (tmp_path / "qrels").write_text(QRELS_TEXT)
    only_qrels = ir_datasets.create_dataset(qrels_trec=str(tmp_path / "qrels"))
    assert means_the_same(only_qrels, SCORES)
    with pytest.raises(InvalidInput, match=r"the dataset has no scoreddocs_iter\(\)"):
        rk.evaluate(only_qrels, only_qrels)
    with pytest.raises(InvalidInput, match=r"record 0 .* expected query_id, doc_id, score, found TrecQrel"):
        as_run(only_qrels.qrels_iter())


@pytest.mark.needs("ir_datasets")
def test_subtopics_of_ir_datasets_are_aspects(tmp_path: Path):
    """In its records and in a frame of them."""
    import ir_datasets

    (tmp_path / "qrels").write_text("q1 s1 d1 1\nq1 s2 d1 0\nq1 s2 d2 1\n")
    found = ir_datasets.formats.TrecSubQrels(ir_datasets.util.LocalDownload(tmp_path / "qrels"), {})
    wanted = rk.Qrels.from_dict({"q1": {"d1": {"s1": 1, "s2": 0}, "d2": {"s2": 1}}}).to_frame()
    for given in (found, found.qrels_iter(), pd.DataFrame(found.qrels_iter())):
        pd.testing.assert_frame_equal(as_qrels(given).to_frame(), wanted)


@pytest.mark.needs("ir_datasets")
def test_records_that_differ_are_refused_by_row():
    """Also if only the subtopic is missing."""
    import ir_datasets

    record = ir_datasets.formats.TrecSubQrel("q", "d", 1, "s")
    with pytest.raises(InvalidInput, match=r"record 1 .* expected query_id, doc_id, relevance, found Qrel"):
        as_qrels([record, ir_measures.Qrel("q", "e", 1)])


def test_iterables_of_ir_measures():
    """Its records, readers and frames; and as mappings, as Hugging Face's data sets iterate."""
    qrels, run = ir_measures.read_trec_qrels(QRELS_TEXT), ir_measures.read_trec_run(RUN_TEXT)
    assert means_the_same(qrels, run)
    qrels, run = list(ir_measures.read_trec_qrels(QRELS_TEXT)), list(ir_measures.read_trec_run(RUN_TEXT))
    assert means_the_same(qrels, run)
    assert means_the_same(pd.DataFrame(qrels), pd.DataFrame(run))
    assert means_the_same(rows(JUDGMENTS, BEIR).to_dict("records"), iter(rows(SCORES, BEIR).to_dict("records")))


def test_dicts_of_pytrec_eval(tmp_path: Path):
    """Both sides as that package reads them."""
    for name, text in (("qrels", QRELS_TEXT), ("run", RUN_TEXT)):
        (tmp_path / name).write_text(text)
    with (tmp_path / "qrels").open() as qrels, (tmp_path / "run").open() as run:
        assert means_the_same(pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(run))


@pytest.mark.needs("ranx")
def test_objects_of_ranx():
    """Qrels and Run with its name; one for the other is refused, and so are their frames."""
    import ranx

    truth, ranking = ranx.Qrels(JUDGMENTS), ranx.Run(SCORES, name="bm25")
    assert means_the_same(truth, ranking)
    assert rk.evaluate(truth, ranking, measures="RR").name == as_run(ranking).name == "bm25"
    assert rk.Run.from_records(ranking, name="mine").name == "mine"
    with pytest.raises(InvalidInput, match=r"expected Qrels of ranx, found its .*Run"):
        as_qrels(ranking)
    with pytest.raises(InvalidInput, match=r"expected Run of ranx, found its .*Qrels"):
        rk.evaluate(truth, truth)
    assert means_the_same(truth.to_dataframe(), ranking.to_dataframe())
