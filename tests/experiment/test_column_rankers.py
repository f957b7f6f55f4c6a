"""An experiment file has the ranking in production as a baseline: a ranker by a column of the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rankeval as rk
from rankeval.errors import ConfigError, UnknownName
from rankeval.experiment import check_config, run_experiment
from rankeval.experiment.checks import check_run

RIDGE = {"estimator": "sklearn.linear_model.Ridge"}


@pytest.fixture
def log(tmp_path, monkeypatch) -> pd.DataFrame:
    """Write a log with two features, a score of the first stage and the rank at which rows were shown."""
    monkeypatch.chdir(tmp_path)
    data = rk.datasets.make_ranking(40, 8, 3, rng=3)
    frame = pd.DataFrame(data.X, columns=["a", "b", "first_stage_score"])
    frame = frame.assign(query=data.qid, label=data.y, shown=np.tile(np.arange(1, 9), 40))
    frame.to_csv("log.csv", index=False)
    return frame


def shop(rankers, *, features=("a", "b"), **more):
    """Return an experiment over the log."""
    table = {"loader": "csv", "path": "log.csv", "qid": "query", "label": "label"}
    data = table if features is None else {**table, "features": [*features]}
    base = {"name": "shop", "data": data, "rankers": rankers, "tracking": "off", "cv": {"n_splits": 2}}
    return check_config({**base, "guard": {"ledger": "ledger"}, **more})


def test_the_ranking_in_production_is_the_baseline_and_no_feature_of_the_others(log):
    """Its scores of the test part are the column, and the other ranker does not see it."""
    now = {"column": "first_stage_score"}
    result = run_experiment(shop({"now": now, "shown": {"column": "shown", "ascending": True}, "ridge": RIDGE}))
    assert result.comparison.table["baseline"].unique().tolist() == ["now"]
    parts = check_run(result.config)
    assert list(parts.test.X) == ["a", "b"]
    scores = {name: pd.read_parquet(result.predictions(name)) for name in ("now", "shown")}
    rows = log[log["query"].astype(str).isin(parts.test.qid)]
    assert np.array_equal(scores["now"]["score"], rows["first_stage_score"])
    assert np.array_equal(scores["shown"]["score"], -rows["shown"])
    expected = rk.evaluate(rows["label"], rows["first_stage_score"], qid=rows["query"], measures="nDCG@10")
    assert result.evaluations["now"].mean()["nDCG@10"] == expected.mean()["nDCG@10"]
    assert "column first_stage_score" in result.report.read_text()
    assert run_experiment(result.config).n_trained == 0


@pytest.mark.usefixtures("log")
def test_the_column_may_be_a_feature_too():
    """By default all numbers are features, and the score of the first stage is a good one."""
    parts = check_run(shop({"now": {"column": "first_stage_score"}, "ridge": RIDGE}, features=None))
    assert list(parts.dev.X) == ["a", "b", "first_stage_score", "shown"]


def test_the_column_follows_the_rows_into_every_part_of_the_table(log):
    """Training, validation and test part by a column."""
    part = np.repeat(["train", "vali", "test"], [160, 80, 80])
    log.assign(part=part).to_csv("log.csv", index=False)
    now = {"column": "first_stage_score"}
    parts = check_run(shop({"now": now}, split={"column": "part"}, guard="off"))
    ranked = parts.by_column["first_stage_score"]
    assert np.array_equal(ranked.test.X["first_stage_score"], log["first_stage_score"][240:])
    assert np.array_equal(ranked.dev.X["first_stage_score"], log["first_stage_score"][:240])


def test_a_loader_of_arrays_names_the_column_by_its_feature_names():
    """The column is then a feature of the others too."""
    digits = {"loader": "digits", "arguments": {"n_queries": 30}}
    parts = check_run(shop({"now": {"column": "cosine"}}, data=digits, guard="off"))
    column = parts.test.X[:, parts.test.feature_names.index("cosine")]
    assert np.array_equal(parts.by_column["cosine"].test.X["cosine"], column)


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("ranker", "key"),
    [
        ({"column": "first_stage_score", **RIDGE}, "rankers.now"),
        ({}, "rankers.now"),
        ({"column": "a", "grid": {"alpha": [1]}}, "rankers.now"),
        ({"ascending": True, **RIDGE}, "rankers.now"),
        ({"column": "label"}, None),
        ({"column": "query"}, None),
        ({"column": "a", "early_stopping_rounds": 3}, "rankers.now.early_stopping_rounds"),
    ],
)
def test_what_no_column_can_be_is_refused_before_data_is_read(ranker, key):
    """A column is not trained, and the label is no ranking in production."""
    with pytest.raises(ConfigError) as caught:
        check_run(shop({"now": ranker}))
    assert caught.value.argument == key


def test_check_refuses_an_unknown_column_and_a_row_without_a_score(log):
    """Before anything is trained, with the row."""
    with pytest.raises(UnknownName):
        check_run(shop({"now": {"column": "first_stage_scor"}}))
    log.assign(first_stage_score=log["first_stage_score"].mask(log.index == 5)).to_csv("log.csv", index=False)
    with pytest.raises(ConfigError, match="row 5 is nan") as caught:
        check_run(shop({"now": {"column": "first_stage_score"}}))
    assert caught.value.argument == "rankers.now.column first_stage_score"
