"""What is wrong with a data set or a call is said with its place, and nothing is left behind."""

from __future__ import annotations

import re
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from streaming.logs import NAMES, Log, evaluate
from tables import each_row

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import FileFormatError, GuardRefusal, InvalidInput, RankevalWarning
from rankeval.evaluation import to_bytes
from rankeval.streaming import folder as folder_module
from rankeval.streaming import running
from rankeval.streaming.rows import _ROW, Share, bytes_of, share_of

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def data(tmp_path):
    return Log.made().write(tmp_path / "log", cuts=(200,))


def test_the_two_ways_are_not_mixed(data):
    y, score = [1, 0], [0.2, 0.1]
    frame = pa.table({"query": [1, 1], "label": y, "value": score})
    for call, said in (
        (lambda: rk.evaluate(data, **NAMES), "call rankeval.evaluate_dataset"),
        (lambda: rk.evaluate([data], **NAMES), "call rankeval.evaluate_dataset"),
        (lambda: rk.evaluate(data, qid="query"), "call rankeval.evaluate_dataset"),
        (lambda: rk.evaluate(frame, score, relevance="label", score="value", qid="query"), "group= was given too"),
        (lambda: rk.evaluate(frame, group=[2], **NAMES), "group= was given too"),
        (lambda: rk.evaluate(frame, relevance="label", score="value"), "qid: expected the name of a column .* nothing"),
        (lambda: rk.evaluate(frame, qid="query", relevance="label"), "score: expected the name of a column"),
        (lambda: rk.evaluate(frame, **{**NAMES, "score": "none"}), "score: 'none' occurs 0 times in the frame"),
        (lambda: evaluate(data, qid=[1, 2]), "qid: expected the name .* found a list"),
        (lambda: evaluate(data, query_weight=[1.0]), "query_weight: expected the name of a column .* found a list"),
        (lambda: rk.evaluate(y, score, qid="query"), "qid='query' is the name of a column"),
        (lambda: rk.evaluate(data, qid=y), "ranking is missing"),
        (lambda: evaluate(frame), "a frame in memory goes to rankeval.evaluate"),
    ):
        with pytest.raises(InvalidInput, match=said):
            call()


def test_a_column_that_is_not_there_is_said_with_those_that_are(data):
    with pytest.raises(InvalidInput, match=r"score='sore' is not in the data set; its columns are: query, label"):
        evaluate(data, score="sore")
    pq.write_table(Log.made().table.drop_columns(["value"]), data / "002.parquet")
    with pytest.raises(InvalidInput, match=r"score='value' is not in .*002.parquet; its columns are: query, label"):
        evaluate(data)


def test_what_is_no_data_set_is_refused(tmp_path, data):
    (tmp_path / "log.csv").write_text("query,label,value\n1,1,1\n")
    pa.feather.write_feather(Log.made().table, tmp_path / "log.arrow")
    pq.write_table(Log.made().table.slice(0, 0), tmp_path / "empty.parquet")
    pq.write_table(pa.table({"query": [1], "label": [[1, 2]], "value": [0.5]}), tmp_path / "lists.parquet")
    for given, error, said in (
        (tmp_path / "nowhere", InvalidInput, "there is no such data set"),
        (tmp_path / "log.csv", InvalidInput, "log.csv"),
        ("odd://bucket/log", InvalidInput, "cannot open the data set 'odd://bucket/log'"),
        ([], InvalidInput, "there is no Parquet file in"),
        (tmp_path / "empty.parquet", InvalidInput, "the data set has no rows"),
        (tmp_path / "lists.parquet", InvalidInput, "give one value a row"),
        (ds.dataset(data).filter(ds.field("label") > 0), InvalidInput, "has a filter"),
        (ds.dataset(Log.made().table), InvalidInput, "of Parquet files, found rows in memory"),
        (
            ds.dataset(tmp_path / "log.csv", format="csv"),
            InvalidInput,
            "found one of csv files; write",
        ),
        (
            ds.dataset(tmp_path / "log.arrow", format="feather"),
            InvalidInput,
            "found one of arrow files; write",
        ),
        ({"query": [1]}, InvalidInput, "found a dict; a frame in memory"),
        ({}, InvalidInput, "found a dict"),
    ):
        with pytest.raises(error, match=said):
            evaluate(given)
    damaged = data / "001.parquet"
    content = bytearray(damaged.read_bytes())
    content[40:400] = bytes(360)
    damaged.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"001.parquet, row group 0: cannot be read"):
        evaluate(data)


@each_row("shuffled", [False, True])
@each_row(
    ("column", "value", "said"),
    [
        ("value", float("nan"), r"score='value': row 7 is nan"),
        ("label", None, r"relevance='label': row 7 has no number"),
        ("query", None, r"qid='query': row 7 has no query id"),
    ],
)
def test_a_row_at_fault_is_named_by_file_and_row_group(tmp_path, shuffled, column, value, said):
    log = Log.made(ids=lambda numbers: np.array([f"q{one}" for one in numbers], dtype=object))
    table = (log.shuffled() if shuffled else log).table
    cells = table[column].to_pylist()
    cells[200 + 40 + 7] = value
    table = table.set_column(table.schema.get_field_index(column), column, pa.array(cells, table[column].type))
    pq.write_table(table.slice(0, 200), tmp_path / "a.parquet", row_group_size=40)
    pq.write_table(table.slice(200), tmp_path / "b.parquet", row_group_size=40)
    with pytest.raises(InvalidInput, match=rf"b.parquet, row group 1: {said}"):
        evaluate(tmp_path)


def test_what_only_a_join_sees_is_said_with_the_row_groups(tmp_path):
    log = Log.made()
    table = log.table.append_column("weight", pa.array(np.arange(len(log.qid)) * 1.0))
    table = table.append_column("doc", pa.array(["d"] * len(log.qid)))
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=40)
    for how, said in (
        ({"query_weight": "weight"}, r"query \d+ in .*log.parquet, row group 0: query_weight='weight': found several"),
        ({"docid": "doc"}, r"docid='doc': document 'd' occurs twice in query"),
        ({"convention": rk.Convention.with_rules(ties="docid")}, r"ties='docid' needs docid="),
        ({"convention": "sklearn"}, r"labels? below zero"),
    ):
        with pytest.raises(InvalidInput, match=said):
            evaluate(tmp_path / "log.parquet", **how)
    with pytest.raises(InvalidInput, match=r"query_weight: expected finite numbers, none below 0 and not all 0"):
        evaluate(tmp_path / "log.parquet", query_weight=dict.fromkeys(log.qid.tolist(), 0.0))


@each_row("shuffled", [False, True])
def test_a_query_that_does_not_fit_is_named(tmp_path, monkeypatch, shuffled):
    log = Log(np.repeat([1, 77, 90], [40, 500, 30]), np.zeros(570, dtype=int), np.arange(570.0))
    data = (log.shuffled() if shuffled else log).write(tmp_path / "log")
    monkeypatch.setattr(running, "share_of", lambda *_: Share(300 * _ROW))
    with pytest.raises(InvalidInput, match=r"memory: query 77 has more than 300 rows.*raise memory="):
        evaluate(data)


def test_memory_is_an_amount(data):
    assert [bytes_of(one) for one in (7, "7", "7B", "2kB", "1.5GB", "1 GiB")] == [7, 7, 7, 2000, 15 * 10**8, 2**30]
    for wrong in ("much", "1XB", 0, -1, True, 1.5):
        with pytest.raises(InvalidInput, match="memory is"):
            evaluate(data, memory=wrong)
    with pytest.raises(InvalidInput) as refused:
        evaluate(data, memory="10MB")
    assert refused.value.argument == "memory"
    assert bytes_of(refused.value.expected.partition(" for n_jobs=1")[0]) > bytes_of("10MB")
    assert share_of("4GB", 2).n_bytes < share_of("4GB", 1).n_bytes
    for wrong in (0, True, np.bool_(True), 1.0, "2", None):
        with pytest.raises(InvalidInput, match="n_jobs is"):
            evaluate(data, n_jobs=wrong)


def test_numbers_of_numpy_are_numbers(data):
    expected = to_bytes(evaluate(data))
    assert bytes_of(np.int64(7)) == 7
    assert to_bytes(evaluate(data, memory=np.int64(2 * 10**9), n_jobs=np.int64(2))) == expected
    assert to_bytes(evaluate(data, memory=np.uint32(2 * 10**9), n_jobs=np.int8(1))) == expected
    for wrong in (np.int64(0), np.float64(1e9), np.bool_(True)):
        with pytest.raises(InvalidInput, match="memory is"):
            evaluate(data, memory=wrong)


def test_progress_is_a_function_or_a_bar(data):
    for progress in (True, False, None, lambda *_: None):
        assert evaluate(data, progress=progress).n_queries == 60
    for wrong in (5, "yes", 1, np.bool_(True)):
        with pytest.raises(InvalidInput, match=r"progress is .*; expected a function of two numbers, or True"):
            evaluate(data, progress=wrong)


def test_a_folder_of_another_call_is_refused_with_the_difference(tmp_path, data):
    scores = tmp_path / "scores"
    evaluate(data, folder=scores)
    for how, said in (
        ({"measures": "AP"}, "measures is .* there and .* here"),
        ({"convention": rk.Convention.with_rules(ties="worst")}, "convention is"),
        ({"name": "b"}, 'name is null there and "b" here'),
        ({"query_weight": {1: 2.0}}, "weights is"),
    ):
        with pytest.raises(InvalidInput, match=rf"contains the parts of another call: {said}"):
            evaluate(data, folder=scores, **how)
    Log.made(1).write(data)
    with pytest.raises(InvalidInput, match="another call: data is"):
        evaluate(data, folder=scores)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="contains other files"):
        evaluate(data, folder=tmp_path / "full")


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    log = Log.made().shuffled()
    log.score[7] = np.nan
    with pytest.raises(InvalidInput):
        evaluate(log.write(tmp_path / "log"))
    log.score[7] = 0
    evaluate(log.write(tmp_path / "log"))
    assert not list((tmp_path / "temporary").iterdir())


def test_a_full_disk_is_said_before(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(folder_module.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(InvalidInput, match=r"takes 0.0 GB, and 0.0 GB are free there.*TMPDIR"):
        evaluate(Log.made().shuffled().write(tmp_path / "log"))


def test_a_mean_over_no_query_is_said(tmp_path):
    log = Log.made()
    log.y[:] = 0
    with pytest.warns(RankevalWarning, match="no query is left"):
        evaluate(log.write(tmp_path / "log"), convention=rk.Convention.with_rules(no_relevant="skip"))


@pytest.mark.filterwarnings("ignore:RG00[18]", "ignore:the ledger")
@pytest.mark.parametrize("shuffled", [False, True])
def test_registered_content_is_refused_before_scores_are_kept(tmp_path, monkeypatch, shuffled):
    """Also if the parts were made while nothing was registered."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    try:
        log = Log.made(n_queries=80)
        log.y = np.maximum(log.y, 0)
        docid = [f"d{one}" for one in range(len(log.qid))]
        rows = log.table.append_column("doc", pa.array(docid))
        rows = rows.take(np.random.default_rng(0).permutation(len(rows))) if shuffled else rows
        pq.write_table(rows, tmp_path / "log.parquet", row_group_size=100)
        how = {"docid": "doc", "folder": tmp_path / "scores"}
        evaluate(tmp_path / "log.parquet", **how)
        guard = rk.Guard("project")
        guard.register("test", qrels=rk.Qrels(log.qid, docid, log.y))
        forget()
        refusals = []
        for call in (
            lambda: rk.evaluate(log.y, log.score, qid=log.qid, docid=docid),
            lambda: evaluate(tmp_path / "log.parquet", **how),
            lambda: evaluate(tmp_path / "log.parquet", docid="doc", folder=tmp_path / "others", n_jobs=1),
        ):
            with pytest.raises(GuardRefusal) as refusal:
                call()
            refusals.append(refusal.value.found)
        assert len(set(refusals)) == 1
        assert not list((tmp_path / "scores").iterdir())
        assert not list((tmp_path / "others").iterdir())
        assert re.search("test", refusals[0])
    finally:
        forget()


def test_files_on_another_file_system_are_read(tmp_path):
    """One that is not the local one is read as remote ones are: in a few large requests."""
    log = Log.made()
    data = log.write(tmp_path / "log", cuts=(100,))
    remote = SubTreeFileSystem(str(data), LocalFileSystem())
    assert remote.type_name != "local"
    assert to_bytes(evaluate(ds.dataset("/", filesystem=remote, format="parquet"))) == to_bytes(log.evaluation())
