"""An SQLite store of its own for each test, one MLflow server for the test run, and a spool that nobody else has."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import mlflow
import mlflow.store.db.utils
import numpy as np
import pytest
from servers import tracking
from servers.tracking import Server

import rankeval as rk
from rankeval.evaluation.facts import QueryFacts

# For each store that it opens MLflow reads its fifty files of migrations anew, which takes half of the opening.
mlflow.store.db.utils._get_latest_schema_revision = cache(mlflow.store.db.utils._get_latest_schema_revision)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Server]:
    """Return the server of the test run. Other tests write to it at the same time: use an experiment of your own."""
    base = tmp_path_factory.getbasetemp()
    with tracking.shared(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base, empty_database) as running:
        yield running


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Server]:
    """Start a server for the tests of one module, which may kill it and bring it back."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(empty_database, folder / "mlflow.db")
    with tracking.running(folder, f"sqlite:///{folder}/mlflow.db") as running:
        yield running


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a spool of its own."""
    folder = tmp_path / "spool"
    monkeypatch.setenv("RANKEVAL_SPOOL", str(folder))
    monkeypatch.setattr("rankeval_mlflow.delivery.spool.spare_directory", lambda: tmp_path / "spare")
    return folder


@pytest.fixture(autouse=True)
def images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay out the figures of reports, but do not paint them, which is half of the time of `log`.

    They are painted in the tests of `views`, in those of other processes, and in tests/report and tests/browser.
    """
    monkeypatch.setattr("rankeval.report.html._image", lambda _: "data:,")


@pytest.fixture
def database(empty_database: Path) -> Path:
    """Return the database that the test's own store is a copy of."""
    return empty_database


@pytest.fixture(autouse=True)
def store(tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the test a store of its own, and set MLflow to it."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.setenv(name, "")  # so that it is put back, whatever the test does to it
        monkeypatch.delenv(name)
    # `mlflow.set_experiment` is remembered here too, and the next test has another store.
    monkeypatch.setattr("mlflow.tracking.fluent._active_experiment_id", None)
    shutil.copy(database, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    mlflow.set_tracking_uri(uri)
    yield uri
    while mlflow.active_run():
        mlflow.end_run()
    mlflow.set_tracking_uri(None)


@pytest.fixture
def client(store: str) -> mlflow.MlflowClient:
    """Return a client of the test's own store."""
    return mlflow.MlflowClient(tracking_uri=store)


@pytest.fixture
def small() -> Callable[..., rk.Evaluation]:
    """Return what evaluates 20 queries of 8 rows, with the same judgments for every seed."""

    def evaluated(name="ridge", *, seed=0, qid=None, measures=("nDCG@10", "AP", "P(rel=2)@5"), **options):
        labels = np.random.default_rng(7).integers(0, 3, 160)
        scores = labels + np.random.default_rng(seed).normal(size=160).round(1)
        ids = np.repeat(np.arange(20) if qid is None else qid, 8)
        return rk.evaluate(labels, scores, qid=ids, measures=measures, name=name, **options)

    return evaluated


@pytest.fixture
def assert_same() -> Callable[[rk.Evaluation, rk.Evaluation], None]:
    """Return the check that two evaluations agree in every field, bit for bit; the rows are not saved."""

    def check(one, other):
        one, other = (replace(each, facts=replace(each.facts, rows=None)) for each in (one, other))
        for part in fields(one):
            mine, theirs = getattr(one, part.name), getattr(other, part.name)
            for left, right in _leaves(mine, theirs):
                assert left == right, part.name

    return check


def _leaves(one, other):
    """Yield what is compared of two fields: arrays by type and bytes."""
    if isinstance(one, np.ndarray):
        yield one.dtype, other.dtype
        yield (
            one.tobytes() if one.dtype != object else one.tolist(),
            (other.tobytes() if other.dtype != object else other.tolist()),
        )
    elif isinstance(one, dict):
        yield set(one), set(other)
        for key, value in one.items():
            yield from _leaves(value, other[key])
    elif isinstance(one, QueryFacts):
        yield from _leaves(vars(one), vars(other))
    else:
        yield one, other
