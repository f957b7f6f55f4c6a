"""The folder of scores tells nothing that the call is refused for, and goes on with parts of the same call alone."""

from __future__ import annotations

import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streaming.logs import Log, evaluate

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import GuardRefusal, InvalidInput
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
            evaluate(tmp_path / "log.parquet", docid="doc", scores=tmp_path / "scores", progress=look, n_jobs=n_jobs)
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
        assert evaluate(ours, scores=tmp_path / "scores").to_bytes() == log.evaluation().to_bytes()
        assert evaluate(ours, scores=tmp_path / "scores").to_bytes() == log.evaluation().to_bytes()
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
        first = evaluate(ours, measures="TwoRanks", scores=tmp_path / "scores")
        assert evaluate(ours, measures="TwoRanks", scores=tmp_path / "scores").to_bytes() == first.to_bytes()
        declared(0.25)
        with pytest.raises(InvalidInput, match="parts of another call: measures is"):
            evaluate(ours, measures="TwoRanks", scores=tmp_path / "scores")
    finally:
        FAMILIES.pop("TwoRanks", None)


def test_scores_are_not_written_into_the_data_set(tmp_path):
    ours = Log.made().write(tmp_path / "log")
    with pytest.raises(InvalidInput, match="the folder of the data set"):
        evaluate(ours, scores=ours / "deeper" / "scores")
    assert not (ours / "deeper").exists()


def test_a_worker_that_was_killed_is_said_with_what_to_do(tmp_path):
    log = Log.made(n_queries=200).shuffled()
    log.write(tmp_path / "log")

    def kill(_done, _total):
        for pid in _children():
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(InvalidInput, match=r"ended from outside.*the same call goes on from there"):
        evaluate(tmp_path / "log", n_jobs=2, scores=tmp_path / "scores", progress=kill)
    assert evaluate(tmp_path / "log", scores=tmp_path / "scores").to_bytes() == log.evaluation().to_bytes()


def _children() -> list[int]:
    """Return the workers of this process."""
    import psutil

    return [one.pid for one in psutil.Process().children() if "popen_loky" in " ".join(one.cmdline())]
