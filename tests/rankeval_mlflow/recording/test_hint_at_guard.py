"""A test part that no ledger knows: the log says once what registering it gives, and nothing of any other content."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import mlflow
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.contamination.refusal import forget
from rankeval_mlflow import recording

DATA = rk.datasets.make_ranking(20, 8, 4, rng=0)
QRELS = {f"q{i}": {"a": 1, "b": i % 3, "c": 0} for i in range(20)}
RUN = {q: {"a": 2.0, "b": 1.0} for q in QRELS}


@pytest.fixture(autouse=True)
def guard(tmp_path, monkeypatch):
    """Give each test a ledger of its own, and a process that has said nothing."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    forget()
    recording._say_once.cache_clear()
    guard = rk.Guard("shop")
    guard.register("of others", rk.datasets.make_ranking(20, 30, 4, rng=9))  # the same ids, other labels
    yield guard
    forget()
    recording._say_once.cache_clear()


def of_rows():
    return rk.evaluate(DATA.y, DATA.X[:, 0], qid=DATA.qid, measures="nDCG@10")


def of_judgments():
    return rk.evaluate(QRELS, RUN, measures="nDCG@10")


def register_rows(guard):
    return guard.register("test", DATA)


def register_judgments(guard):
    return guard.register("test", qrels=QRELS)


@pytest.mark.parametrize("first", [of_rows, of_judgments])
def test_a_line_says_once_how_to_register_a_test_that_no_ledger_knows(caplog, first):
    """Once for a process, whatever kinds of evaluations it logs."""
    rkm.log(first(), role="test")
    (said,) = caplog.messages
    assert "register('NAME', X, y, qid=qid), or with qrels=qrels" in said
    assert "\n" not in said
    for evaluated in (of_rows, of_judgments):
        rkm.log(evaluated(), role="test")
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("evaluated", "register"), [(of_rows, register_rows), (of_judgments, register_judgments)], ids=["rows", "qrels"]
)
@pytest.mark.parametrize("part", [slice(None), slice(0, 7)], ids=["whole", "subset"])
def test_nothing_is_said_of_registered_content(caplog, guard, evaluated, register, part):
    ev = evaluated()
    register(guard)
    rkm.log(ev.subset(ev.queries[part]), role="test")
    assert caplog.messages == []


def test_nothing_is_said_of_other_roles_nor_without_ledgers(caplog, monkeypatch):
    rkm.log(of_rows(), role="dev")
    monkeypatch.setenv("RANKEVAL_LEDGER", "off")
    rkm.log(of_rows(), role="test")
    assert caplog.messages == []


def test_a_ledger_that_cannot_be_read_keeps_nothing_from_the_log(caplog, tmp_path):
    ev = of_rows()
    forget()
    (tmp_path / "ledger.db").write_bytes(b"no database at all" * 100)
    assert rkm.log(ev, role="test").run_id
    assert caplog.messages == []


def test_an_evaluation_by_mlflow_and_a_cross_validation_say_it_too(caplog):
    frame = pd.DataFrame({"qid": DATA.qid, "score": DATA.X[:, 0], "relevance": DATA.y})
    config = {"measures": "nDCG@10", "role": "test"}
    options = {"targets": "relevance", "predictions": "score", "model_type": "ranker", "evaluators": "rankeval"}
    with mlflow.start_run():
        mlflow.models.evaluate(data=frame, **options, evaluator_config=config)
    assert len([said for said in caplog.messages if "no ledger knows" in said]) == 1
    recording._say_once.cache_clear()
    rkm.log(rk.cross_validate(Ridge(), DATA, measures="AP", cv=2), role="test")
    assert len([said for said in caplog.messages if "no ledger knows" in said]) == 2


@pytest.mark.further
def test_a_worker_says_nothing(capfd):
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(recording.hint_at_guard, of_rows(), "test").result()
    assert "no ledger knows" not in capfd.readouterr().err
