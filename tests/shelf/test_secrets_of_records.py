"""No secret of a result reaches a folder, and no query id stands where everybody looks."""

from __future__ import annotations

import json

import pytest
from shelf.every_kind import evaluation
from sklearn.base import BaseEstimator

import rankeval as rk
from rankeval.tracking import LoggedData

CANARY = "canary5f3a"


class Remote(BaseEstimator):
    """An estimator that asks a service."""

    def __init__(self, api_key=None, url=None, headers=None):
        self.api_key, self.url, self.headers = api_key, url, headers

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


@pytest.fixture
def folder(tmp_path):
    """Save results that know secrets; return their folder."""
    source = f"https://me:{CANARY}@host/data?token={CANARY}&version=3"
    data = LoggedData("letor", "sha256:00", "dev", 160, 20, source)
    rk.save(evaluation(), tmp_path / "evaluation", data=data)
    systems = {name: evaluation(name, seed=seed) for seed, name in enumerate(("old", "new"))}
    rk.save(rk.compare(systems, baseline="old"), tmp_path / "comparison", role="dev", data=data)
    service = Remote(CANARY, f"https://me:{CANARY}@host/v1?token={CANARY}", {"api_key": CANARY})
    cv = rk.cross_validate(service, rk.datasets.make_ranking(12, 6, rng=0), cv=2)
    rk.save(cv, tmp_path / "cv", folds=True, data=data)
    rk.save(rk.load(tmp_path / "cv"), tmp_path / "again", data=data)
    return tmp_path


def test_no_secret_is_in_a_folder(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]


def test_what_is_no_secret_stays(folder):
    """Where the data lies, and which settings there are."""
    record = rk.read_record(folder / "evaluation")
    assert record.data[0].source == "https://host/data"
    params = rk.read_record(folder / "cv").params
    assert (params["estimator"], params["api_key"]) == ("Remote", "***")
    assert "***" in params["headers"]
    assert rk.read_record(folder / "again").params == params


def test_ids_of_queries_are_in_parquet_files_alone(tmp_path):
    """Whoever lists records sees none, nor does whoever reads a README."""
    ids = [f"{CANARY}{place}" for place in range(20) for _ in range(8)]
    systems = {name: evaluation(name, seed=seed, qid=ids) for seed, name in enumerate(("old", "new"))}
    rk.save(systems["old"], tmp_path / "evaluation")
    rk.save(rk.compare(systems, baseline="old"), tmp_path / "comparison")
    data = rk.datasets.make_ranking(20, 8, rng=0)
    rk.save(rk.cross_validate(Remote(), data.X, data.y, qid=ids, cv=2), tmp_path / "cv", folds=True)
    judges = {name: {qid: {"d1": place % 2, "d2": 1} for place, qid in enumerate(ids)} for name in ("a", "b")}
    rk.save(rk.judging.agreement(judges), tmp_path / "agreement")
    rk.save(rk.profile(len, {qid: qid for qid in ids}), tmp_path / "profile")
    held = {path for path in tmp_path.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()}
    assert {path.suffix for path in held} <= {".parquet"}
    for name in ("record.json", "README.md", "comparison.json"):
        for path in tmp_path.rglob(name):
            assert CANARY not in path.read_text("utf-8"), path
    assert json.loads((tmp_path / "evaluation" / "record.json").read_text())["facts"]["n_queries"] == 20
