"""A registered model whose versions have evaluations on the same content."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest

import rankeval as rk
import rankeval_mlflow as rkm

N = 200


def evaluated(scores, *, salt=0) -> rk.Evaluation:
    """Return an evaluation on the same content with these scores by query; another salt is other content."""
    labels, qid = np.tile([1, 0], len(scores)), np.repeat(np.arange(len(scores)), 2)
    whole = rk.evaluate(np.append(labels, [1, 0][:salt]), np.zeros(len(labels) + salt), qid=np.append(qid, [0] * salt),
                        measures="nDCG@10")  # fmt: skip
    return replace(whole, scores=np.asarray(scores, dtype=float).reshape(-1, 1))


def scores_of(gain, seed=1, sd=0.2):
    """Return scores of 200 queries whose differences from those of gain 0 have this mean, as nearly as luck has it."""
    base = np.random.default_rng(0).uniform(0.3, 0.7, N)
    return base if gain is None else base + np.random.default_rng(seed).normal(gain, sd, N)


def promotions(client, model="ranker") -> list[Any]:
    """Return the runs with the records of promotions, which have an experiment of their own."""
    found = client.get_experiment_by_name(f"{model} promotions")
    return list(client.search_runs([found.experiment_id], "tags.`rankeval.kind` = 'promotion'")) if found else []


@dataclass
class Ranker:
    """A registered model, made version by version."""

    client: mlflow.MlflowClient
    name: str = "ranker"
    runs: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        gain: float | None = None,
        *,
        role: str | None = "test",
        salt: int = 0,
        scores: Any = None,
        data: Any = None,
    ) -> str:
        """Register a version that gains so much over the first, and log its evaluation."""
        made = self.client.create_model_version(self.name, "s3://models/ranker")
        if role is not None:
            values = scores_of(gain, seed=int(made.version)) if scores is None else scores
            logged = rkm.log(evaluated(values, salt=salt), role=role, model_version=made, data=data)
            self.runs[str(made.version)] = logged.run_id
        return str(made.version)

    def put(self, version: str, alias: str = "champion") -> None:
        self.client.set_registered_model_alias(self.name, alias, version)

    def holder(self, alias: str = "champion") -> str | None:
        found = self.client.get_registered_model(self.name).aliases.get(alias)
        return None if found is None else str(found)

    def tags(self, version: str) -> dict[str, str]:
        return dict(self.client.get_model_version(self.name, version).tags)


@dataclass(frozen=True)
class History:
    """A database with a registered model and its evaluations, to be copied by each test."""

    database: Path
    runs: dict[str, str]


@pytest.fixture(scope="session")
def histories(tmp_path_factory, empty_database) -> Callable[..., History]:
    """Return what makes the history of a registered model whose version 1 is champion, once a session."""
    known: dict[tuple[float, ...], History] = {}

    def made(*promoted: float) -> History:
        if promoted not in known:
            known[promoted] = _history(tmp_path_factory.mktemp("history"), empty_database, promoted)
        return known[promoted]

    return made


def _history(folder: Path, empty_database: Path, promoted: tuple[float, ...]) -> History:
    """Make a model whose versions with these gains were promoted one after the other; its files stay in a folder."""
    database = folder / "mlflow.db"
    shutil.copy(empty_database, database)
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE experiments SET artifact_location = ?", [str(folder / "artifacts")])
    before = mlflow.get_tracking_uri()
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setenv("RANKEVAL_SPOOL", str(folder / "spool"))
        patched.setattr("rankeval_mlflow.delivery.upload.render", lambda *_: {})
        mlflow.set_tracking_uri(f"sqlite:///{database}")
        try:
            made = _ranker(mlflow.MlflowClient(), "ranker")
            for gain in promoted:
                assert rkm.promote("ranker", made.add(gain), measure="nDCG@10").moved
        finally:
            mlflow.set_tracking_uri(before)
    return History(database, made.runs)


def _ranker(client: mlflow.MlflowClient, name: str) -> Ranker:
    """Register a model whose version 1 is champion."""
    client.create_registered_model(name)
    made = Ranker(client, name)
    made.put(made.add())
    return made


@pytest.fixture
def history(request, histories) -> History | None:
    """Return the history that a test begins with: of two promotions if it asks for champions, or of version 1."""
    asked = request.fixturenames
    if "champions" in asked:
        return histories(0.1, 0.3)
    return histories() if "ranker" in asked else None


@pytest.fixture
def database(empty_database, history) -> Path:
    """Return the database that the test's own store is a copy of."""
    return history.database if history else empty_database


@pytest.fixture
def ranker(client, history) -> Ranker:
    """Return a registered model in the test's own store whose version 1 is champion."""
    return Ranker(client, runs=dict(history.runs))


@pytest.fixture
def champions(ranker) -> Ranker:
    """Return a model whose version 2 was promoted over 1, and version 3 over 2."""
    assert ranker.holder() == "3"
    return ranker


@pytest.fixture(autouse=True)
def drawings(request, monkeypatch) -> None:
    """Draw no reports, which take a fifth of the time; the tests of `views`, `recording` and commands draw them."""
    if not request.node.get_closest_marker("server"):
        monkeypatch.setattr("rankeval_mlflow.delivery.upload.render", lambda *_: {})


@pytest.fixture(name="evaluated")
def _evaluated() -> Callable[..., rk.Evaluation]:
    """Return what makes an evaluation of scores by query."""
    return evaluated


@pytest.fixture(name="promotions")
def _promotions() -> Callable[..., list[Any]]:
    """Return what lists the records of promotions."""
    return promotions


@pytest.fixture(name="scores_of")
def _scores_of() -> Callable[..., Any]:
    """Return what makes scores of 200 queries with a gain over those of version 1."""
    return scores_of


@pytest.fixture
def ranker_of() -> Callable[..., Ranker]:
    """Return what makes a registered model of a client whose version 1 is champion."""
    return lambda client, name="ranker": _ranker(client, name)


@pytest.fixture
def meanwhile(monkeypatch) -> Callable[[str, Callable[[], None]], None]:
    """Return what lets something happen just before a call of the client, once."""

    def patch(method: str, happens: Callable[[], None]) -> None:
        real, left = getattr(mlflow.MlflowClient, method), [happens]

        def wrapped(self, *arguments, **options):
            if left:
                left.pop()()
            return real(self, *arguments, **options)

        monkeypatch.setattr(mlflow.MlflowClient, method, wrapped)

    return patch
