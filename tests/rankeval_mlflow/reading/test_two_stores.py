"""Each call that asks a store takes its address, whatever store MLflow itself is set to."""

from __future__ import annotations

import shutil

import mlflow
import pytest

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput


@pytest.fixture
def other(small, store, client, tmp_path, empty_database):
    """Fill one store, and set MLflow to a second one, which is empty; return the first and what it holds."""
    mlflow.set_experiment("search")
    runs = [rkm.log(small(name, seed=seed), role="test") for seed, name in enumerate(("one", "other"))]
    compared = rkm.log(rk.compare({"a": small("a"), "b": small("b", seed=1)}, baseline="a"))
    client.create_registered_model("ranker")
    version = client.create_model_version("ranker", "s3://models/ranker", run_id=runs[0].run_id)
    rkm.log(small("one"), role="test", model_version=version)
    database = tmp_path / "second.db"
    shutil.copy(empty_database, database)
    mlflow.set_tracking_uri(f"sqlite:///{database}")
    return store, [run.run_id for run in runs], compared.run_id


CALLS = {
    "load_evaluation": lambda runs, _, uri: rkm.load_evaluation(runs[0], uri=uri).name == "one",
    "load_evaluation of a version": lambda _, __, uri: rkm.load_evaluation("models:/ranker/1", uri=uri).name == "one",
    "load_comparison": lambda _, run, uri: list(rkm.load_comparison(run, uri=uri).evaluations) == ["a", "b"],
    "compare_runs": lambda runs, _, uri: len(rkm.compare_runs(runs, uri=uri).table) == 3,
    "leaderboard": lambda _, __, uri: len(rkm.leaderboard("search", uri=uri, role="test").table) == 3,
    "promote": lambda _, __, uri: rkm.promote("ranker", 1, measure="AP", first=True, uri=uri).moved,
}


@pytest.mark.further
@pytest.mark.parametrize("call", CALLS)
def test_a_call_asks_the_store_that_it_was_given(other, call):
    uri, runs, compared = other
    now = mlflow.get_tracking_uri()
    with pytest.raises(InvalidInput):
        CALLS[call](runs, compared, None)
    assert CALLS[call](runs, compared, uri)
    assert mlflow.get_tracking_uri() == now


def test_the_rows_of_a_leaderboard_are_tested_at_alpha(small):
    mlflow.set_experiment("search")
    for seed, name in ((0, "one"), (4, "other")):
        rkm.log(small(name, seed=seed), role="test")
    p_value = rkm.leaderboard("search").comparison.table["p_value"].item()
    boards = {alpha: rkm.leaderboard("search", alpha=alpha) for alpha in (p_value / 2, p_value * 2)}
    assert [board.table["group"].tolist()[1] for board in boards.values()] == ["tied", "below"]
    with pytest.raises(InvalidInput) as refused:
        rkm.leaderboard("search", alpha=2)
    assert refused.value.argument == "alpha"
