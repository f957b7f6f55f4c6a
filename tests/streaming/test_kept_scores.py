"""The folder of scores tells nothing that the call is refused for, and goes on with parts of the same call alone."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from streaming.logs import Log, evaluate
from tables import each_row

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import GuardRefusal, InvalidInput
from rankeval.evaluation import to_bytes
from rankeval.measures.family import FAMILIES, family

pytestmark = pytest.mark.usefixtures("small")


@pytest.mark.filterwarnings("ignore:RG00[18]", "ignore:the ledger")
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_part_of_registered_content_is_written_before_the_verdict(tmp_path, monkeypatch, shuffled, n_jobs):
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    try:
        log = Log.made(n_queries=80)
        log.y = np.maximum(log.y, 0)
        docid = [f"d{one}" for one in range(len(log.qid))]
        rk.Guard("project").register("test", qrels=rk.Qrels(log.qid, docid, log.y))
        forget()
        rows = log.table.append_column("doc", pa.array(docid))
        rows = rows.take(np.random.default_rng(0).permutation(len(rows))) if shuffled else rows
        pq.write_table(rows, tmp_path / "log.parquet", row_group_size=100)
        seen = []

        def look(done, _total):
            seen.append((done, [path.name for path in (tmp_path / "scores").glob("part-*")]))

        with pytest.raises(GuardRefusal):
            evaluate(tmp_path / "log.parquet", docid="doc", folder=tmp_path / "scores", progress=look, n_jobs=n_jobs)
        assert seen[-1][0] >= len(rows)  # every row was read
        assert not any(parts for _, parts in seen)
    finally:
        forget()


@pytest.mark.filterwarnings("ignore:RG00[18]", "ignore:the ledger")
def test_content_beside_a_registration_is_scored_as_without_it(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    try:
        other, log = Log.made(n_queries=80), Log.made(seed=5)
        rk.Guard("project").register(
            "test", qrels=rk.Qrels(other.qid, np.arange(len(other.qid)), np.maximum(other.y, 0))
        )
        forget()
        ours = log.write(tmp_path / "log")
        assert to_bytes(evaluate(ours, folder=tmp_path / "scores")) == to_bytes(log.evaluation())
        assert to_bytes(evaluate(ours, folder=tmp_path / "scores")) == to_bytes(log.evaluation())
    finally:
        forget()


def declared(second: float) -> None:
    """Declare a measure of one's own, as a cell of a notebook that is run again."""

    @family("TwoRanks", title="two ranks", formula="f", source="a test", bounds=(0.0, 9.0), linear=True)
    def two_ranks(judged):
        """Gains of two ranks."""
        return judged.discounted(np.maximum(judged.levels, 0).astype(float), np.array([1.0, second]), 2)


def test_a_measure_whose_code_has_changed_does_not_take_the_scores_of_the_old_one(tmp_path):
    ours = Log.made().write(tmp_path / "log")
    try:
        declared(0.5)
        first = evaluate(ours, measures="TwoRanks", folder=tmp_path / "scores")
        assert to_bytes(evaluate(ours, measures="TwoRanks", folder=tmp_path / "scores")) == to_bytes(first)
        declared(0.25)
        with pytest.raises(InvalidInput, match="parts of another call: measures is"):
            evaluate(ours, measures="TwoRanks", folder=tmp_path / "scores")
    finally:
        FAMILIES.pop("TwoRanks", None)


def test_scores_are_not_written_into_the_data_set(tmp_path):
    ours = Log.made().write(tmp_path / "log")
    with pytest.raises(InvalidInput, match="the folder of the data set"):
        evaluate(ours, folder=ours / "deeper" / "scores")
    assert not (ours / "deeper").exists()


def ways_to_open_a_folder(folder, monkeypatch):
    """Yield data sets that would hold a folder beside or below their files when they are opened again."""
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    yield folder.as_uri()
    yield f"{folder.as_uri()}/"
    yield f"~/{folder.name}"
    yield ds.dataset(folder)
    yield ds.dataset(folder.name)
    yield ds.dataset(folder.as_uri())
    yield ds.dataset([ds.dataset(folder)])


def test_scores_are_not_written_into_the_data_set_however_it_was_given(tmp_path, monkeypatch):
    ours = Log.made().write(tmp_path / "log")
    for data in ways_to_open_a_folder(ours, monkeypatch):
        for scores in (ours / "scores", (ours / "scores").as_uri(), "~/log/scores", "log/scores"):
            with pytest.raises(InvalidInput, match=r"the folder of the data set.* give a folder elsewhere"):
                evaluate(data, folder=scores)
        assert [one.name for one in ours.iterdir()] == ["000.parquet"]


def test_scores_are_not_written_beside_partitions_of_the_data_set(tmp_path):
    rows = Log.made().table
    for query in (1, 2):
        (tmp_path / f"query={query}" / "day=1").mkdir(parents=True)
        pq.write_table(rows.drop_columns("query"), tmp_path / f"query={query}" / "day=1" / "x.parquet")
    for data in (tmp_path, ds.dataset(tmp_path, partitioning="hive")):
        with pytest.raises(InvalidInput, match="the folder of the data set"):
            evaluate(data, folder=tmp_path / "scores")
    assert not (tmp_path / "scores").exists()


def test_scores_may_lie_beside_files_that_were_named(tmp_path, monkeypatch):
    log = Log.made()
    file = log.write(tmp_path / "log") / "000.parquet"
    monkeypatch.chdir(file.parent)
    for number, data in enumerate((file, file.name, file.as_uri(), [file], [str(file)])):
        scores = file.parent / f"scores-{number}"
        for _ in range(2):
            assert to_bytes(evaluate(data, folder=scores)) == to_bytes(log.evaluation())


def test_the_folder_of_scores_may_be_a_url_of_this_machine_or_at_home(tmp_path, monkeypatch):
    log = Log.made()
    data = log.write(tmp_path / "log")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for scores, where in (
        ((tmp_path / "a b").as_uri(), tmp_path / "a b"),
        ("~/deep/scores", tmp_path / "home" / "deep" / "scores"),
        (Path("~/other"), tmp_path / "home" / "other"),
        ("plain", tmp_path / "plain"),
    ):
        assert to_bytes(evaluate(data, folder=scores)) == to_bytes(log.evaluation())
        assert (where / "part-00000.parquet").exists()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a b", "home", "log", "plain"]


@each_row(
    ("scores", "said"),
    [
        ("s3://key:SECRET@bucket/out", "a URL of s3"),
        (Path("s3://key:SECRET@bucket/out"), "a URL of s3"),
        ("hdfs://host:8020/x", "a URL of hdfs"),
        ("file://elsewhere/x", "expected a folder here"),
        ("~nobody-of-this-name/x", "expected a folder here"),
        ("a\0b", r"expected the path of a folder"),
        ("", "folder is ''; expected the path of a folder"),
        (5, "folder is 5; expected the path of a folder"),
        (b"x", "folder is b'x'; expected the path of a folder"),
        (True, "folder is True; expected the path of a folder"),
    ],
)
def test_what_is_no_folder_of_this_machine_is_refused(tmp_path, monkeypatch, scores, said):
    data = Log.made().write(tmp_path / "log")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=said) as raised:
        evaluate(data, folder=scores)
    assert "SECRET" not in str(raised.value)
    assert [one.name for one in tmp_path.iterdir()] == ["log"]


@each_row("text", ["[1]", "3", "null", '{"format": 1, "call": [], "plan": {}}', '{"plan": 7}', "{", ""])
def test_a_manifest_that_is_none_is_said(tmp_path, text):
    ours, scores = Log.made().write(tmp_path / "log"), tmp_path / "scores"
    evaluate(ours, folder=scores)
    (scores / "_rankeval.json").write_text(text)
    with pytest.raises(InvalidInput, match=r"_rankeval.json is damaged .*; remove the folder, or give another"):
        evaluate(ours, folder=scores)


def test_rows_put_together_stay_after_an_error_until_the_folder_is_removed(tmp_path):
    """The guide says so. Mended rows are another call, which does not take them."""
    log, scores = Log.made().shuffled(), tmp_path / "scores"
    log.score[-1] = np.nan
    data = log.write(tmp_path / "log")
    for _ in range(2):
        with pytest.raises(InvalidInput, match="is nan"):
            evaluate(data, folder=scores)
        assert list((scores / "_buckets").glob("rows-*.arrow"))
    log.score[-1] = 0.0
    with pytest.raises(InvalidInput, match=r"another call: data is .*; give another folder, or remove this one"):
        evaluate(log.write(tmp_path / "log"), folder=scores)
    shutil.rmtree(scores)
    assert to_bytes(evaluate(log.write(tmp_path / "log"), folder=scores)) == to_bytes(log.evaluation())
    assert not (scores / "_buckets").exists()


def test_a_manifest_of_another_format_is_said(tmp_path):
    ours, scores = Log.made().write(tmp_path / "log"), tmp_path / "scores"
    evaluate(ours, folder=scores)
    (scores / "_rankeval.json").write_text('{"format": 2}')
    with pytest.raises(InvalidInput, match="its format is 2 there and 1 here"):
        evaluate(ours, folder=scores)


@pytest.mark.further
def test_a_worker_that_was_killed_is_said_with_what_to_do(tmp_path):
    log = Log.made(n_queries=200).shuffled()
    log.write(tmp_path / "log")

    def kill(_done, _total):
        for pid in _children():
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(InvalidInput, match=r"ended from outside.*the same call goes on from there"):
        evaluate(tmp_path / "log", n_jobs=2, folder=tmp_path / "scores", progress=kill)
    assert to_bytes(evaluate(tmp_path / "log", folder=tmp_path / "scores")) == to_bytes(log.evaluation())


def _children() -> list[int]:
    """Return the workers of this process; one that was killed and not yet waited for has no command line."""
    import psutil

    found = [one.info for one in psutil.process_iter(["pid", "ppid", "cmdline"])]
    return [
        one["pid"] for one in found if one["ppid"] == os.getpid() and "popen_loky" in " ".join(one["cmdline"] or ())
    ]
