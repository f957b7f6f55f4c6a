"""A search log as shops have it: positions, clicks, times, prices, markets; by a file as in Python."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
import yaml
from lightgbm import LGBMRanker
from model_selection.libraries import each, installed
from sklearn.model_selection import GridSearchCV
from tables import each_row

import rankeval as rk
from rankeval.errors import ConfigError, InvalidInput, RankevalWarning
from rankeval.experiment import check_config, check_run, load_config, load_parts, loading, run_experiment

FIXED = {"n_estimators": 20, "learning_rate": 0.2, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
EXPERIMENT = """\
name: shop
data:
  loader: csv
  path: log.csv
  qid: query
  label: grade
  docid: doc
  features: [bm25, price, age]
  categories: [market, brand]
  slices: [market, length]
split: {time: day, test_from: 2026-05-01}
cv: {n_splits: 2, by_time: true}
rankers:
  numbers:
    steps:
      - {estimator: sklearn.preprocessing.OneHotEncoder, columns: [market, brand], params: {handle_unknown: ignore}}
      - sklearn.impute.SimpleImputer
      - sklearn.linear_model.Ridge
  trees:
    estimator: lightgbm.LGBMRanker
    params: {n_estimators: 20, learning_rate: 0.2, min_child_samples: 5, n_jobs: 1, verbose: -1}
    grid: {num_leaves: [3, 7]}
measures: [nDCG@5, AP]
guard: off
tracking: off
"""


def search_log(n_queries: int = 120) -> pd.DataFrame:
    """Make a log whose brands are liked in one market and disliked in another."""
    rng = np.random.default_rng(27)
    size = rng.integers(3, 20, n_queries)
    query = np.repeat(np.arange(n_queries), size)
    n = len(query)
    market = rng.choice(["de", "fr", "us"], n_queries)[query]
    brand = rng.choice(["acme", "bolt", "coil"], n)
    bm25 = rng.normal(size=n)
    liked = (brand == "acme") * np.select([market == "de", market == "us"], [1.5, -1.5])
    grade = np.clip(np.round(bm25 + liked + rng.normal(scale=0.7, size=n) + 1), 0, 4).astype(int)
    day = pd.Timestamp("2026-03-01") + pd.to_timedelta(np.sort(rng.integers(0, 90, n_queries))[query], "D")
    table = {
        "query": [f"q-{number}" for number in query],
        "doc": [f"d-{number}" for number in rng.permutation(n)],
        "grade": grade,
        "bm25": bm25.round(4),
        "price": np.exp(rng.normal(3, 1, n)).round(2),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 400, n)),
        "market": market,
        "brand": np.where(rng.random(n) < 0.05, None, brand),
        "length": np.where(size < 10, "short", "long")[query],
        "position": 1 + pd.Series(-bm25).groupby(query).rank(method="first").astype(int).to_numpy(),
        "clicked": (rng.random(n) < 0.1 + 0.2 * grade).astype(int),
        "day": day,
    }
    return pd.DataFrame(table).sample(frac=1, random_state=27, ignore_index=True)


@pytest.fixture
def log() -> pd.DataFrame:
    frame = search_log()
    frame.to_csv("log.csv", index=False)
    frame.to_parquet("log.parquet")
    Path("shop.yaml").write_text(EXPERIMENT)
    return frame


def changed(**sections) -> dict:
    raw = yaml.safe_load(EXPERIMENT)
    return {**raw, **{name: {**raw[name], **keys} for name, keys in sections.items()}}


TREES = {"trees": yaml.safe_load(EXPERIMENT)["rankers"]["trees"]}


def test_a_file_gives_the_numbers_of_the_same_steps_in_python(log):
    """From CSV and from Parquet, to the bit: split and folds by time, categories, a grid, the scores of the test."""
    results = [run_experiment(changed(data={"loader": kind, "path": f"log.{kind}"})) for kind in ("csv", "parquet")]

    X = log[["bm25", "price", "age", "market", "brand"]].astype({"market": "category", "brand": "category"})
    times = log.groupby("query")["day"].max()
    parts = rk.dev_test_split(X, log["grade"], qid=log["query"], times=times, test_from="2026-05-01")
    dev, folds = parts.dev, rk.QueryTimeSplit(2, times=times)
    assert 0 < parts.test.n_queries < 60
    scorer = rk.make_scorer(["nDCG@5", "AP"])
    search = GridSearchCV(
        rk.QueryRanker(LGBMRanker(**FIXED, random_state=0)),
        {"estimator__num_leaves": [3, 7]},
        scoring=scorer,
        refit="nDCG@5",
        cv=folds,
    )
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(dev.X, dev.y, qid=dev.qid)
    scores = search.best_estimator_.predict(parts.test.X)
    tested = rk.evaluate(parts.test.y, scores, qid=parts.test.qid, measures=["nDCG@5", "AP"])
    out = rk.cross_validate(search.best_estimator_, dev, measures=["nDCG@5", "AP"], cv=folds).evaluation
    for result in results:
        trees = result.facts.candidates[1]
        assert trees.params["num_leaves"] == search.best_params_["estimator__num_leaves"]
        np.testing.assert_array_equal(pd.read_parquet(result.predictions("trees"))["score"], scores)
        pd.testing.assert_frame_equal(trees.test.per_query, tested.per_query)
        pd.testing.assert_frame_equal(trees.dev.per_query, out.per_query)
    assert "the test part has the queries from 2026-05-01 on" in results[0].facts.notes
    numbers = [pd.read_parquet(one.predictions("numbers"))["score"] for one in results]
    np.testing.assert_array_equal(*numbers)
    # The one trick of this log is the brand in its market, which only the trees can see.
    assert results[0].comparison.table["difference"].item() > 0


def test_older_rows_of_the_test_part_stand_among_the_notes(log):
    """A search that comes again is one query: its rows of March go to the test part of May, and the report says so."""
    again = log["query"] == log["query"][log["day"] < "2026-04-01"].iloc[0]
    moved = log.assign(day=log["day"].mask(again & (log["position"] == 2), pd.Timestamp("2026-05-02")))
    moved.to_csv("log.csv", index=False)
    test = moved["query"].isin(moved["query"][moved["day"] >= "2026-05-01"])
    words = f"{again.sum() - 1} of the {test.sum()} test rows are earlier than 2026-05-01, since a query is kept whole"
    raw = check_config({**changed(), "rankers": TREES})
    with pytest.warns(RankevalWarning, match=words):
        parts = load_parts(raw)
    assert [note for note in parts.notes if note.startswith(words)]
    assert parts.test.n_queries == moved["query"][test].nunique()
    log.to_csv("log.csv", index=False)
    assert not [note for note in load_parts(raw).notes if "earlier" in note]


def test_a_slice_has_the_scores_of_its_queries(log):
    """Each column of slices is a table of the report: queries and means by value, as `Evaluation.slices` has them."""
    result = run_experiment({**changed(), "rankers": TREES})
    assert list(result.facts.slices) == ["market", "length"]
    table = result.facts.slices["market"]
    expected = result.evaluations["trees"].slices(log.groupby("query")["market"].first())
    assert table["market"].tolist() == expected["nDCG@5"].sort_values().index.tolist()  # the worst first
    expected = expected.loc[table["market"]]
    assert table["queries"].tolist() == expected["n_queries"].tolist()
    assert table["trees"].tolist() == expected["nDCG@5"].tolist()
    page = result.report.read_text()
    assert "<h2>By market</h2>" in page
    assert "<td>long</td>" in page


def test_a_slice_with_two_values_in_a_query_is_refused():
    frame = search_log(20)
    frame.to_csv("log.csv", index=False)
    with pytest.raises(ConfigError, match="the column 'brand' has several values in query 'q-") as refused:
        check_run(check_config(changed(data={"slices": ["brand"]}, split={"test_from": "2026-04-01"})))
    assert refused.value.argument == "data.slices"


@pytest.mark.usefixtures("log")
def test_categories_are_part_of_what_a_cached_result_depends_on(log):
    """The same table trains nothing again; the same texts as other categories do."""
    raw = {**changed(data={"loader": "parquet", "path": "log.parquet", "slices": []}), "rankers": TREES}
    assert run_experiment(raw).n_trained == 1
    assert run_experiment(raw).n_trained == 0
    log.assign(market=pd.Categorical(log["market"], ["us", "fr", "de"])).to_parquet("log.parquet")
    assert run_experiment(raw).n_trained == 1
    moved = log.assign(day=log["day"] - pd.to_timedelta(log["query"].str.len(), "D"))
    moved.assign(day=moved.groupby("query")["day"].transform("max")).to_parquet("log.parquet")
    assert run_experiment(raw).n_trained == 1


BOOSTERS = {
    "xgboost": {
        "estimator": "xgboost.XGBRanker",
        "params": {"n_estimators": 5, "n_jobs": 1},
        "early_stopping_rounds": 3,
    },
    "catboost": {
        "estimator": "catboost.CatBoostRanker",
        "params": {"iterations": 5, "verbose": False, "allow_writing_files": False, "thread_count": 1},
    },
    "histogram": {"estimator": "sklearn.ensemble.HistGradientBoostingRegressor", "params": {"max_iter": 5}},
}


@pytest.mark.parametrize("name", each(BOOSTERS))
def test_every_library_learns_from_categories(log, name):
    """The brand in its market decides, and no number tells it: with categories each booster ranks better."""
    log.dropna(subset="brand").to_csv("log.csv", index=False)
    short = {
        "split": {"time": "day", "test_from": "2026-05-01"},
        "cv": {"n_splits": 2},
        "rankers": {name: BOOSTERS[name]},
    }
    with_them = run_experiment({**changed(), **short})
    without = run_experiment({**changed(data={"categories": []}), **short, "name": "without"})
    assert with_them.evaluations[name].mean()["nDCG@5"] > without.evaluations[name].mean()["nDCG@5"]


def test_a_logged_model_scores_texts_as_the_run_did(log, empty_database, monkeypatch, tmp_path):
    """The model of the run, loaded by MLflow, gives the test scores of the run from the columns of the log."""
    import mlflow

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"  # of this test alone: MLflow keeps stores by their addresses
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    result = run_experiment({**changed(), "rankers": TREES, "tracking": {"uri": uri}})
    (child,) = result.tracked.children
    (output,) = mlflow.MlflowClient(uri).get_run(child.run_id).outputs.model_outputs
    served = mlflow.pyfunc.load_model(f"models:/{output.model_id}")
    test = log[log["day"] >= "2026-05-01"]
    scores = served.predict(test[["brand", "age", "bm25", "price", "market"]])
    np.testing.assert_array_equal(np.ravel(scores), pd.read_parquet(result.predictions("trees"))["score"])


SUSPECTS = {
    "position": lambda log: log["position"],
    "was_clicked": lambda log: log["clicked"],
    "target": lambda log: log["age"].fillna(0),
    "rating": lambda log: log["grade"] + log["bm25"] / 50,
    "malus": lambda log: -np.exp(log["grade"] + log["bm25"] / 50),
    "verdict": lambda log: log["grade"].map({0: "bad", 1: "weak", 2: "fair", 3: "good", 4: "best"}).astype("category"),
}


@each_row("name", SUSPECTS)
def test_features_are_asked_for_if_a_column_looks_like_an_answer(name):
    """By its name, or by what it says of the label; the error holds a list to paste, which then runs."""
    frame = search_log(40)
    rows = frame.drop(columns=["position", "clicked", "brand", "length"]).assign(**{name: SUSPECTS[name](frame)})
    rows.to_parquet("log.parquet")
    table = {"loader": "parquet", "path": "log.parquet", "features": None, "categories": [], "slices": []}
    raw = {**changed(data=table), "rankers": TREES}
    with pytest.raises(ConfigError) as refused:
        check_run(check_config(raw))
    assert (refused.value.argument, refused.value.where) == ("data.features", "log.parquet")
    assert f"columns look like answers: {name!r} (" in refused.value.problem
    pasted = yaml.safe_load(refused.value.remedy.partition("perhaps ")[2])
    assert pasted == {"features": ["bm25", "price", "age"]}
    parts = check_run(check_config({**changed(data={**table, **pasted}), "rankers": TREES}))
    assert parts.test.feature_names == ("bm25", "price", "age")


@each_row("name", ["rating", "verdict"])
def test_an_answer_is_found_in_some_of_many_rows(monkeypatch, name):
    """Each list begins with its best row, so rows at equal distances would show one label only."""
    monkeypatch.setattr(loading, "_MOST", 200)
    n, grade = 2000, np.tile([1, 0, 0, 0, 0], 400)
    column = grade + np.arange(n) / n / 50 if name == "rating" else pd.Categorical(np.where(grade, "good", "bad"))
    with pytest.raises(ConfigError, match=f"columns look like answers: '{name}'"):
        loading.refuse_answers({name: column}, grade, "rows.csv")
    loading.refuse_answers({"noise": np.random.default_rng(1).normal(size=n)}, grade, "rows.csv")


def test_features_that_say_much_of_the_label_are_no_answers():
    """A score of which nine in ten pairs are right, a price that is often low, a small group that is always right."""
    rng = np.random.default_rng(3)
    n, grade = 2000, np.arange(2000) % 2
    rare = np.where((np.arange(n) < 40) & (grade == 1), 1.0, 0.0)
    table = {"grade": grade, "score_by_us": grade + rng.normal(scale=0.5, size=n), "rare": rare}
    frame = pd.DataFrame({**table, "query": np.arange(n) // 10, "spend": np.exp(3 * rng.normal(size=n))})
    frame.to_csv("rows.csv", index=False)
    data = {"loader": "csv", "path": "rows.csv", "qid": "query", "label": "grade"}
    raw = {"name": "x", "data": data, "rankers": TREES, "guard": "off", "tracking": "off"}
    assert check_run(check_config(raw)).dev.feature_names == ("score_by_us", "rare", "spend")


@pytest.mark.shared
def test_no_collection_of_others_is_suspected(shared: Path):
    """The features of LETOR folders, of LightGBM's own example and of the digits, under the names that they have."""
    found = {"digits": rk.datasets.load_digits_retrieval(), "made": rk.datasets.make_ranking(90, rng=0)}
    found["lightgbm"] = rk.datasets.load_letor(shared / "ltr_lightgbm" / "rank.train.gz", sparse=False)
    found |= rk.datasets.load_letor_parts(shared / "letor_cranfield" / "Fold1", sparse=False)
    for name, data in found.items():
        table = pd.DataFrame(data.X, columns=data.feature_names).assign(qid=data.qid, label=data.y)
        table.to_parquet(f"{name}.parquet")
        raw = {"name": name, "data": {"loader": "parquet", "path": f"{name}.parquet", "qid": "qid", "label": "label"}}
        parts = load_parts(check_config({**raw, "rankers": TREES, "guard": "off", "tracking": "off"}))
        assert len(parts.dev.feature_names) == data.X.shape[1]


@pytest.mark.usefixtures("log")
def test_a_check_writes_nothing():
    """No folder, no ledger, no database of MLflow; neither for a right file nor for a wrong one."""
    Path("rankeval").mkdir()  # as in a checkout of ours: the room of a file is tried by another name
    before = sorted(Path().rglob("*"))
    for more in ([], ["data.slices=[brand]"]):
        config = load_config("shop.yaml", ["guard={ledger: ledger}", "tracking={uri: 'sqlite:///mlflow.db'}", *more])
        if more:
            with pytest.raises(ConfigError):
                check_run(config)
        else:
            assert check_run(config).test.n_queries > 0
        assert sorted(Path().rglob("*")) == before


WRONG = [
    ({"split": {"time": "dya"}}, "time"),
    ({"split": {"time": "brand"}}, "'brand' is named for time and again for categories"),
    ({"split": {"time": "length"}}, "split.time"),
    ({"split": {"test_from": 3}}, "split"),
    ({"split": {"test_from": "2030-01-01"}}, "split"),
    ({"split": {"test_from": None}}, "split"),
    ({"split": {"salt": "x"}}, "split"),
    ({"split": {"column": "day"}}, "split"),
    ({"cv": {"n_splits": 100}}, "cv.n_splits"),
    ({"cv": {"by_time": "often"}}, "cv.by_time"),
    ({"data": {"slices": "market"}}, "data.slices"),
    ({"data": {"slices": ["markt"]}}, "slices"),
    ({"data": {"slices": ["market", "query"]}}, "slices has ['query'], which qid, label or docid name"),
    ({"data": {"categories": ["grade"]}}, "categories"),
    ({"data": {"loader": "letor"}}, "data"),
]


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(("keys", "named"), WRONG)
def test_a_check_reads_the_keys_of_categories_slices_and_time(keys, named):
    """Each wrong value is refused before anything is trained, and the message names its key."""
    with pytest.raises(rk.errors.InvalidInput) as refused:
        check_run(check_config(changed(**keys)))
    assert named in str(refused.value)


@pytest.mark.usefixtures("log")
def test_a_measure_of_a_column_is_refused_before_any_look():
    """A run would spend a look at the test part, and then have no price for the rows."""
    with pytest.raises(ConfigError, match="a scorer or cross_validate") as refused:
        check_run(check_config({**changed(), "measures": ["nDCG@10", "Revenue@5(column='price')"]}))
    assert refused.value.argument == "measures.columns"


ENCODER = {"estimator": "sklearn.preprocessing.OneHotEncoder", "columns": ["market"]}
UNFIT = [
    ({"estimator": "sklearn.linear_model.Ridge"}, "rankers.one", "market, brand reach Ridge, which takes numbers"),
    (
        {"estimator": BOOSTERS["histogram"]["estimator"], "params": {"categorical_features": None}},
        "rankers.one",
        "brand",
    ),
    ({"steps": [ENCODER, "sklearn.linear_model.Ridge"]}, "rankers.one", "the categories brand reach"),
    ({"steps": [ENCODER, TREES["trees"]["estimator"]]}, "rankers.one", "the categories brand reach"),
    (
        {"steps": [{**ENCODER, "columns": ["brand", "markt"]}, "sklearn.linear_model.Ridge"]},
        "rankers.one.steps.0.columns",
        "unknown column 'markt'; did you mean 'market'?",
    ),
    (
        {"steps": [ENCODER, {**ENCODER, "columns": ["brand"]}, "sklearn.linear_model.Ridge"]},
        "rankers.one",
        "columns lose their names in the first step with columns",
    ),
]


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(("ranker", "key", "problem"), UNFIT)
def test_a_check_refuses_categories_that_reach_an_estimator_of_numbers(ranker, key, problem):
    """The run would fail in the first fit, with a word of scikit-learn about one cell."""
    with pytest.raises(ConfigError) as refused:
        check_run(check_config({**changed(), "rankers": {"one": ranker}}))
    assert refused.value.argument == key
    assert problem in str(refused.value)


ORDINAL = "sklearn.preprocessing.OrdinalEncoder"
FIT = [
    *installed(BOOSTERS).values(),
    TREES["trees"],
    {"estimator": "sklearn.dummy.DummyRegressor"},
    {
        "steps": [
            {"estimator": ORDINAL, "params": {"handle_unknown": "use_encoded_value", "unknown_value": -1}},
            BOOSTERS["histogram"]["estimator"],
        ]
    },
    {"steps": [{**ENCODER, "columns": ["market", "brand"]}, BOOSTERS["histogram"]["estimator"]]},
]


@pytest.mark.further
def test_a_check_lets_categories_pass_that_an_estimator_takes(log):
    """What a check lets pass is trained: boosters, histograms, encoders of the columns or of all, a constant."""
    log.dropna(subset="brand").to_csv("log.csv", index=False)
    raw = {**changed(), "rankers": {f"r{number}": one for number, one in enumerate(FIT)}}
    raw |= {"cv": {"n_splits": 2}}
    check_run(check_config(raw))
    assert run_experiment(raw).n_trained == len(FIT)


@pytest.mark.usefixtures("log")
def test_the_step_that_a_check_proposes_runs():
    """The message holds the step as YAML, and with it the ranker is trained."""
    raw = {**changed(data={"features": ["bm25"]}), "rankers": {"one": {"estimator": "sklearn.linear_model.Ridge"}}}
    with pytest.raises(ConfigError) as refused:
        check_run(check_config(raw))
    step = yaml.safe_load(refused.value.remedy.partition("such as ")[2].rpartition("}, ")[0] + "}")
    assert step["columns"] == ["market", "brand"]
    raw["rankers"] = {"one": {"steps": [step, "sklearn.linear_model.Ridge"]}}
    assert run_experiment(raw).n_trained == 1


@pytest.mark.usefixtures("log")
def test_an_error_of_training_names_the_ranker():
    """Another library's error comes under the key of the ranker, with the class."""
    steps = [{**ENCODER, "columns": ["market", "brand"]}, "sklearn.linear_model.Ridge"]
    with pytest.raises(InvalidInput, match=r"Ridge cannot be trained: .*% empty; ValueError: .*NaN") as refused:
        run_experiment({**changed(), "rankers": {"trees": TREES["trees"], "line": {"steps": steps}}})
    assert refused.value.argument == "rankers.line"


@pytest.mark.usefixtures("log")
def test_a_check_fits_each_ranker_on_a_few_queries():
    """The error is that of the run, though few rows have an empty cell; nothing is written."""
    steps = [{**ENCODER, "columns": ["market", "brand"]}, "sklearn.linear_model.Ridge"]
    config = {**changed(), "rankers": {"trees": TREES["trees"], "line": {"steps": steps}}}
    log = pd.read_csv("log.csv")
    first_empty = log["age"].isna() & (log["age"].isna().cumsum() == 1)
    log["age"] = log["age"].fillna(1.0).mask(first_empty & (log["day"] < "2026-05-01"))
    log.loc[log[log["day"] < "2026-05-01"].index[7], "age"] = np.nan
    log.to_csv("log.csv", index=False)
    before = sorted(Path().rglob("*"))
    with pytest.raises(InvalidInput) as checked:
        check_run(check_config(config))
    assert sorted(Path().rglob("*")) == before
    with pytest.raises(InvalidInput) as ran:
        run_experiment(config)
    assert (str(checked.value), checked.value.argument) == (str(ran.value), "rankers.line")
    assert "% empty" in str(ran.value)


@pytest.mark.usefixtures("log")
def test_a_check_fits_with_a_value_of_the_grid():
    """Weights that are searched need no value in params."""
    fusion = {
        "estimator": "rankeval.Fusion",
        "params": {"method": "weighted", "columns": ["bm25", "price"], "norm": "z-score"},
        "grid": {"weights": [[0.3, 0.7], [0.7, 0.3]]},
    }
    check_run(check_config({**changed(), "rankers": {"fused": fusion}}))


def test_a_check_says_the_shares_of_empty_cells(log, rankeval):
    code, out, _ = rankeval("run", "--check", "shop.yaml")
    dev = log[log["day"] < "2026-05-01"]
    shares = [f"{name}: {100 * dev[name].isna().mean():.3g} % empty" for name in ("age", "brand")]
    assert (code, out.splitlines()[2:]) == (0, shares)


def test_folds_by_time_need_a_time():
    with pytest.raises(ConfigError, match=r"cv.by_time needs split.time, the column of the times"):
        check_config({**changed(), "split": {}})
