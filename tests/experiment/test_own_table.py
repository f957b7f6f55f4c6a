"""From a Parquet file of one's own to a report, by an experiment file alone."""

from __future__ import annotations

from pathlib import Path

import forking
import numpy as np
import pandas as pd
import pytest
import yaml
from experiment.loaded import load_parts
from lightgbm import LGBMRanker

import rankeval as rk
from rankeval.contamination import refusal
from rankeval.errors import ConfigError, InvalidInput
from rankeval.experiment import check_config, load_config, run_experiment

EXPERIMENT = """\
name: clicks
data:
  loader: parquet
  path: clicks.parquet
  qid: query_id
  label: relevance
  docid: doc_id
split: {column: part}
rankers:
  shallow:
    estimator: lightgbm.LGBMRanker
    params: &fixed {n_estimators: 60, learning_rate: 0.3, min_child_samples: 5, n_jobs: 1, verbose: -1}
    early_stopping_rounds: 5
    grid: {num_leaves: [3]}
  searched:
    estimator: lightgbm.LGBMRanker
    params: *fixed
    early_stopping_rounds: 5
    search:
      n_iter: 3
      distributions:
        num_leaves: {int: [4, 31]}
        reg_lambda: {log_float: [0.01, 10]}
        max_bin: [63, 255]
measures: [nDCG@5, AP]
cv: {n_splits: 2}
tracking: off
"""
FIXED = {"n_estimators": 60, "learning_rate": 0.3, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}


@pytest.fixture
def table() -> pd.DataFrame:
    """Write a table with text as ids, 12 features and a column of parts; its rows are shuffled."""
    data = rk.datasets.make_ranking(90, 12, 12, noise=0.8, rng=5)
    frame = pd.DataFrame(data.X, columns=[f"f{number}" for number in range(12)])
    query = data.qid - 1
    frame.insert(0, "query_id", [f"q-{number}" for number in query])
    frame.insert(1, "doc_id", data.docid)
    frame["relevance"] = data.y
    frame["part"] = np.select([query < 40, query < 60], ["train", "vali"], "test")
    frame["title"] = "no feature"
    frame = frame.sample(frac=1, random_state=0, ignore_index=True)
    frame.to_parquet("clicks.parquet")
    Path("clicks.yaml").write_text(EXPERIMENT)
    return frame


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    refusal.forget()
    yield str(tmp_path / "ledger.db")
    refusal.forget()


def part_of(frame: pd.DataFrame, part: str) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    rows = frame[frame["part"] == part]
    return rows[[f"f{number}" for number in range(12)]], rows["relevance"], rows["query_id"]


@pytest.mark.worth("the one experiment of the default on a user's own table")
@pytest.mark.usefixtures("ledger")
def test_from_a_parquet_file_to_a_report(table):
    """Two LightGBM variants, early stopping on the validation part, a random search; the test part is opened once."""
    assert len(EXPERIMENT.splitlines()) < 35
    done = forking.run("from rankeval.cli import main; main()", "run", "clicks.yaml")
    stages = [line for line in done.stderr.splitlines() if not line.startswith(("[", "next: "))]
    assert (done.returncode, stages) == (0, [])
    assert "This run: 2 rankers trained, 1 look added." in done.stdout
    assert "Data: columns that are not features: 'title' (text)" in done.stdout
    page = Path("rankeval-out/clicks/report.html").read_text()
    assert "12 features: f0, f1" in page.replace("\n", " ").replace("12 Features", "12 features")
    assert "clicks.parquet/vali: 240 rows, 20 queries" in page
    assert "Early stopping watches the validation part" in page

    again = run_experiment("clicks.yaml")
    assert (again.n_trained, again.looks_added, again.guard.looks) == (0, 0, 1)
    assert [one.role for one in again.facts.data] == ["dev", "validation", "test"]
    assert again.facts.candidates[0].dev.n_queries == 40
    predicted = pd.read_parquet(again.predictions("searched"))
    X, y, qid = part_of(table, "train")
    Xv, yv, qv = part_of(table, "vali")
    for candidate in again.facts.candidates:
        by_hand = rk.QueryRanker(
            LGBMRanker(**FIXED, **{k: v for k, v in candidate.params.items() if k not in FIXED}, random_state=0),
            early_stopping_rounds=5,
            eval_measure="nDCG@5",
        ).fit(X, y, qid=qid, eval_set=(Xv, yv), eval_qid=qv)
        assert candidate.n_iterations == by_hand.n_iterations_ < 60
        assert f"stopped early: {candidate.n_iterations} iterations" in page
    Xt, yt, qt = part_of(table, "test")
    assert predicted["qid"].tolist() == qt.tolist()
    np.testing.assert_array_equal(predicted["score"], by_hand.predict(Xt))
    search = again.facts.candidates[1].search
    assert len(search) == 3
    assert search["num_leaves"].between(4, 31).all()
    assert search["reg_lambda"].between(0.01, 10).all()
    assert search["max_bin"].isin([63, 255]).all()
    with pytest.raises(rk.errors.GuardRefusal, match=r"clicks.parquet/test"):
        rk.evaluate(yt, Xt["f0"], qid=qt)


@pytest.mark.usefixtures("table")
def test_without_early_stopping_the_validation_part_belongs_to_dev():
    """As it does if the file says so."""
    joined = load_parts(load_config("clicks.yaml"))
    assert (joined.dev.n_queries, joined.validation, joined.test.n_queries) == (60, None, 30)
    assert "the dev part is the training and the validation part together" in joined.notes
    config = load_config("clicks.yaml", ["split.join_validation=true"])
    both = load_parts(config, watched=True)
    assert both.dev.n_queries == 60
    assert "early stopping watches queries held out of the rows that a ranker is fitted to" in both.notes
    watched = load_parts(load_config("clicks.yaml"), watched=True)
    assert (watched.dev.n_queries, watched.validation.n_queries) == (40, 20)
    assert not set(watched.dev.qid) & set(watched.validation.qid)


def test_all_rankers_train_on_the_same_rows_if_one_stops_early(table):
    """The one that does not stop gains no rows by it."""
    ridge = {"ridge": {"estimator": "sklearn.linear_model.Ridge"}}
    raw = yaml.safe_load(EXPERIMENT)
    rankers = {**ridge, "shallow": raw["rankers"]["shallow"]}
    result = run_experiment({**raw, "rankers": rankers, "guard": "off"})
    X, y, _ = part_of(table, "train")
    from sklearn.linear_model import Ridge

    scores = pd.read_parquet(result.predictions("ridge"))["score"]
    np.testing.assert_allclose(scores, Ridge().fit(X, y).predict(part_of(table, "test")[0]))
    assert [each.n_iterations is None for each in result.facts.candidates] == [True, False]


@pytest.mark.further
def test_changed_validation_rows_train_again_those_that_watch_them(table):
    raw = yaml.safe_load(EXPERIMENT)
    ridge = {"ridge": {"estimator": "sklearn.linear_model.Ridge"}}
    raw = {**raw, "rankers": {**ridge, "shallow": raw["rankers"]["shallow"]}, "guard": "off"}
    assert run_experiment(raw).n_trained == 2
    table.loc[table.index[table["part"] == "vali"][0], "f3"] += 1
    table.to_parquet("clicks.parquet")
    again = run_experiment(raw)
    assert [(each.name, each.reused) for each in again.facts.candidates] == [("ridge", True), ("shallow", False)]
    rounds = {**raw["rankers"]["shallow"], "early_stopping_rounds": 6}
    again = run_experiment({**raw, "rankers": {**raw["rankers"], "shallow": rounds}})
    assert [(each.name, each.reused) for each in again.facts.candidates] == [("ridge", True), ("shallow", False)]


def test_a_csv_file_without_parts_is_split_by_a_share(table):
    table.to_csv("clicks.csv", index=False)
    data = {"loader": "csv", "path": "clicks.csv", "qid": "query_id", "label": "relevance", "features": ["f0", "f1"]}
    parts = load_parts(check_config({**yaml.safe_load(EXPERIMENT), "data": data, "split": {"test_size": 0.3}}))
    assert (parts.dev.n_queries + parts.test.n_queries, parts.test.feature_names) == (90, ("f0", "f1"))


@pytest.mark.usefixtures("table")
def test_parts_that_do_not_fit_are_refused():
    raw = yaml.safe_load(EXPERIMENT)
    for others in ("error", "drop"):  # a part that is misspelt must not be dropped, and something else be watched
        with pytest.raises(InvalidInput, match=r"clicks.parquet, column part: no row has the value 'w1'"):
            load_parts(check_config({**raw, "split": {"column": "part", "validation": "w1", "others": others}}))
    with pytest.raises(InvalidInput, match=r"clicks.parquet, column part: found 480 rows in no part: 'train'"):
        load_parts(check_config({**raw, "split": {"column": "part", "train": "vali"}}))
    dropped = load_parts(check_config({**raw, "split": {"column": "part", "train": "vali", "others": "drop"}}))
    assert any("left out 480 rows in no part: 'train'" in note for note in dropped.notes)
    with pytest.raises(InvalidInput, match="unknown column 'prat'; did you mean 'part'"):
        load_parts(check_config({**raw, "split": {"column": "prat"}}))
    with pytest.raises(ConfigError, match="has train and vali; expected test and at least one of"):
        load_parts(check_config({**raw, "split": {"column": "part", "train": ["train", "test"]}}))


@pytest.mark.usefixtures("table")
def test_a_share_to_hold_out_is_refused_beside_a_validation_part():
    raw = yaml.safe_load(EXPERIMENT)
    raw["rankers"]["shallow"]["validation_fraction"] = 0.2
    with pytest.raises(InvalidInput, match="validation_fraction takes the queries to stop on from X"):
        run_experiment({**raw, "guard": "off"})


@pytest.mark.usefixtures("table")
def test_too_many_folds_are_counted_in_queries():
    raw = {**yaml.safe_load(EXPERIMENT), "guard": "off", "cv": {"n_splits": 41}}
    with pytest.raises(ConfigError, match=r"cv.n_splits: found 41 folds for 40 queries of the dev part"):
        run_experiment(raw)


def test_a_validation_part_as_long_as_the_training_part_is_watched_whole(table):
    """A search of scikit-learn cuts whatever is as long as X, and it fits in two processes here."""
    number = table["query_id"].str.removeprefix("q-").astype(int)
    table["part"] = np.select([number < 40, number < 80], ["train", "vali"], "test")
    table.to_parquet("clicks.parquet")
    config = load_config("clicks.yaml", ["guard=off", "n_jobs=2"])
    parts = load_parts(config, watched=True)
    assert len(parts.dev) == len(parts.validation)
    for candidate in run_experiment(config).facts.candidates:
        params = {key: value for key, value in candidate.params.items() if key not in FIXED}
        by_hand = rk.QueryRanker(
            LGBMRanker(**FIXED, **params, random_state=0), early_stopping_rounds=5, eval_measure="nDCG@5"
        )
        watched = (parts.validation.X, parts.validation.y)
        by_hand.fit(parts.dev.X, parts.dev.y, qid=parts.dev.qid, eval_set=watched, eval_qid=parts.validation.qid)
        assert candidate.n_iterations == by_hand.n_iterations_
