"""A saved ranker with columns of categories serves JSON without rankeval, and gives its library's scores."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostRanker
from lightgbm import LGBMRanker
from servers.tracking import free_port
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, VotingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder
from xgboost import XGBClassifier, XGBRanker

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput
from rankeval_mlflow.saving import saved

pytestmark = [pytest.mark.further, pytest.mark.needs("catboost", "xgboost")]

# Python imports a module of this name when it starts; nothing that such a process starts finds rankeval either.
BLOCK = """
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("rankeval", "rankeval_mlflow", "rankeval_pytest"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
"""

# What `mlflow models serve` does with the body of a request, of many models in one process.
SERVE = """
import json, pickle, sys
import mlflow
from mlflow.pyfunc import scoring_server

found = {}
for (name, request), (folder, sent) in pickle.load(open(sys.argv[1], "rb")).items():
    model = mlflow.pyfunc.load_model(folder)
    if isinstance(sent, str):
        answer = scoring_server.invocations(sent, "application/json", model, model.metadata.get_input_schema())
        assert answer.status == 200, answer.response
        found[name, request] = json.loads(answer.response)["predictions"]
    else:
        found[name, request] = model.predict(sent)
try:
    import rankeval
except ModuleNotFoundError:
    pickle.dump(found, open(sys.argv[2], "wb"))
"""

BOOSTED = {"n_estimators": 15, "random_state": 0, "n_jobs": 1}
LIGHT = {**BOOSTED, "verbose": -1, "min_child_samples": 2, "min_data_per_group": 2, "cat_smooth": 1.0}
CAT = {"iterations": 15, "random_seed": 0, "verbose": False, "thread_count": 1, "allow_writing_files": False}
ROWS = 480
QID = np.repeat(np.arange(60), 8)
INDEX = pd.Index(QID, name="qid")
RNG = np.random.default_rng(5)
X = pd.DataFrame(
    {
        "number": RNG.normal(size=ROWS),
        "kind": pd.Categorical(RNG.choice(["wiki", "news", "shop"], ROWS), ["wiki", "news", "shop", "never"]),
        "size": pd.Categorical(RNG.choice(np.array([7, 1, 2], dtype="int8"), ROWS)),
    }
)
Y = (2 * (X["kind"] == "shop") + (X["size"] == 2) + (X["number"] > 0.5)).to_numpy()
UNKNOWN = X.astype({"kind": object}).assign(kind=lambda table: table["kind"].where(np.arange(ROWS) % 3 > 0, "new"))
# CatBoost takes no missing category.
GAPS = X.assign(kind=X["kind"].where(np.arange(ROWS) % 5 > 0), size=X["size"].where(np.arange(ROWS) % 7 > 0))


def by_name(last):
    """Return a Pipeline that finds the columns of categories by their names."""
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(make_column_transformer((encode, ["kind", "size"]), remainder="passthrough"), last)


def searched():
    """Return a search over rankers."""
    return GridSearchCV(
        rk.QueryRanker(LGBMRanker(**LIGHT)), {"estimator__num_leaves": [31]}, cv=rk.QueryKFold(2), refit=True
    )


def with_ids(estimator):
    """Fit a Pipeline or search, which finds the queries in the index."""
    return estimator.fit(X.set_axis(INDEX), pd.Series(Y, index=INDEX))


def light(X, y):
    """Fit LightGBM alone."""
    return LGBMRanker(**LIGHT).fit(X, y, group=[8] * 60)


def xgb(X, y):
    """Fit XGBoost alone."""
    return XGBRanker(enable_categorical=True, **BOOSTED).fit(X, y, qid=QID)


def fit(estimator):
    """Fit a QueryRanker."""
    return rk.QueryRanker(estimator).fit(X, Y, qid=QID)


# Each: the ranker, its library's own estimator, and the method whose last column has the scores.
RANKERS = {
    "lightgbm": (lambda: fit(LGBMRanker(**LIGHT)), light, "predict"),
    "lightgbm_alone": (lambda: light(X, Y), light, "predict"),
    "search": (lambda: with_ids(searched()), light, "predict"),
    "xgboost": (lambda: fit(XGBRanker(**BOOSTED)), xgb, "predict"),
    "xgboost_alone": (lambda: xgb(X, Y), xgb, "predict"),
    "xgboost_in_steps": (lambda: fit(make_pipeline(FunctionTransformer(), XGBRanker(**BOOSTED))), xgb, "predict"),
    "xgboost_around": (
        lambda: with_ids(make_pipeline(FunctionTransformer(), rk.QueryRanker(XGBRanker(**BOOSTED)))),
        xgb,
        "predict",
    ),
    "xgboost_in_a_vote": (
        lambda: with_ids(VotingRegressor([("a", rk.QueryRanker(XGBRanker(**BOOSTED)))])),
        xgb,
        "predict",
    ),
    "xgboost_of_numbers": (
        lambda: fit(by_name(XGBRanker(**BOOSTED))),
        lambda X, y: by_name(XGBRanker(**BOOSTED)).fit(X, y, xgbranker__qid=QID),
        "predict",
    ),
    "xgboost_classes": (
        lambda: rk.QueryRanker(XGBClassifier(**BOOSTED)).fit(X, Y > 1, qid=QID),
        lambda X, y: XGBClassifier(enable_categorical=True, **BOOSTED).fit(X, y > 1),
        "predict_proba",
    ),
    "catboost": (
        lambda: fit(CatBoostRanker(**CAT)),
        lambda X, y: CatBoostRanker(cat_features=["kind", "size"], **CAT).fit(X, y, group_id=QID),
        "predict",
    ),
    "histograms": (
        lambda: fit(HistGradientBoostingRegressor(random_state=0, max_iter=15)),
        lambda X, y: HistGradientBoostingRegressor(random_state=0, max_iter=15).fit(X, y),
        "predict",
    ),
    "pipeline": (lambda: fit(by_name(Ridge())), lambda X, y: by_name(Ridge()).fit(X, y), "predict"),
    "pipeline_around": (
        lambda: with_ids(by_name(rk.QueryRanker(LGBMRanker(**LIGHT)))),
        lambda X, y: by_name(LGBMRanker(**LIGHT)).fit(X, y, lgbmranker__group=[8] * 60),
        "predict",
    ),
}
SERVED = ["lightgbm", "xgboost", "catboost", "pipeline"]


def as_json(rows):
    """Return the body of a request, with the columns in the order of the rows; a missing value is null."""
    plain = rows.astype(object).where(rows.notna(), None).to_dict("split")
    return json.dumps({"dataframe_split": {"columns": plain["columns"], "data": plain["data"]}})


def requests(name):
    """Return what is sent to each model, by the name of the case."""
    turned = X[X.columns[::-1]].assign(qid=QID)
    cases = {"frame": X, "turned frame": turned, "json": as_json(X), "turned json": as_json(turned)}
    cases["unknown"] = as_json(UNKNOWN)
    return cases if name == "catboost" else {**cases, "gaps": as_json(GAPS)}


def written(model, folder):
    """Write the files of a saved model."""
    for path, content in model.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return str(folder)


@pytest.fixture(scope="module")
def blocked(tmp_path_factory):
    """Return the environment of processes that do not find rankeval."""
    folder = tmp_path_factory.mktemp("blocked")
    (folder / "sitecustomize.py").write_text(BLOCK)
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def models(tmp_path_factory, blocked):
    """Save each ranker, and ask all of them in one process without rankeval."""
    folder = tmp_path_factory.mktemp("models")
    rankers, asked = {}, {}
    for name, (make, *_) in RANKERS.items():
        rankers[name] = make()
        where = written(saved(rankers[name], name, X=X), folder / name)
        asked |= {(name, case): (where, sent) for case, sent in requests(name).items()}
    (folder / "asked.pkl").write_bytes(pickle.dumps(asked))
    command = [sys.executable, "-c", SERVE, str(folder / "asked.pkl"), str(folder / "found.pkl")]
    subprocess.run(command, check=True, cwd=folder, env=blocked)
    return folder, rankers, pickle.loads((folder / "found.pkl").read_bytes())


def of_library(name, rows):
    """Return the scores of the library itself, which never saw rankeval."""
    _, alone, method = RANKERS[name]
    found = np.asarray(getattr(alone(X, Y), method)(rows), dtype=float)
    return found if found.ndim == 1 else found[:, -1]


@pytest.mark.parametrize("name", RANKERS)
def test_served_scores_are_those_of_the_library_and_of_python(name, models):
    """A frame, JSON, and both with the columns in another order, to the last bit."""
    _, rankers, found = models
    expected = of_library(name, X)
    assert len(np.unique(expected)) > 5
    if isinstance(rankers[name], rk.QueryRanker):
        np.testing.assert_array_equal(rankers[name].predict(X), expected)
    for case in ("frame", "turned frame", "json", "turned json"):
        np.testing.assert_array_equal(np.asarray(found[name, case], dtype=float), expected, err_msg=case)


@pytest.mark.parametrize("name", RANKERS)
def test_unknown_categories_are_as_the_library_has_them(name, models):
    """XGBoost takes them for the next in its order or raises: there they are missing, as in `QueryRanker.predict`."""
    rows = X.assign(kind=pd.Categorical(UNKNOWN["kind"], [*X["kind"].cat.categories, "new"]))
    if "xgboost" in name and name != "xgboost_of_numbers":
        rows = rows.assign(kind=rows["kind"].cat.set_categories(X["kind"].cat.categories))
    expected = of_library(name, rows)
    assert (expected != of_library(name, X)).any()
    _, rankers, found = models
    np.testing.assert_array_equal(found[name, "unknown"], expected)
    if isinstance(rankers[name], rk.QueryRanker):
        np.testing.assert_array_equal(rankers[name].predict(UNKNOWN), expected)


@pytest.mark.parametrize("name", [name for name in RANKERS if name != "catboost"])
def test_null_is_a_missing_category(name, models):
    """Beside it JSON's whole numbers become floats, and are found all the same."""
    np.testing.assert_array_equal(models[2][name, "gaps"], of_library(name, GAPS))


@contextlib.contextmanager
def serving(model, env, log):
    """Run ``mlflow models serve``; give what sends a body to it and returns the scores."""
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", model, "--env-manager", "local"]
    with Path(log).open("wb") as sink:
        process = subprocess.Popen(
            [*command, "-h", "127.0.0.1", "-p", str(port)], env=env, stdout=sink, stderr=sink, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 180
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=5):
                    break
            except OSError:
                assert process.poll() is None, Path(log).read_text()
                assert time.monotonic() < deadline, Path(log).read_text()
                time.sleep(0.3)

        def asked(body):
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"http://127.0.0.1:{port}/invocations", body.encode(), headers)
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - the address is of loopback
                return json.load(answer)["predictions"]

        yield asked
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@pytest.mark.parametrize("name", [SERVED[0], *(pytest.param(one, marks=pytest.mark.rest) for one in SERVED[1:])])
def test_mlflow_models_serve_gives_the_same(name, models, blocked, tmp_path):
    """Over HTTP, from JSON strings, in processes that do not find rankeval."""
    folder, _, found = models
    with serving(str(folder / name), blocked, tmp_path / "log") as asked:
        for case in ("json", "turned json", "unknown"):
            assert asked(requests(name)[case]) == found[name, case]
        np.testing.assert_array_equal(asked(requests(name)["turned json"]), of_library(name, X))


def test_signature_example_and_categories_are_kept(models):
    """The signature says ``any`` of a column of categories; the example has texts; a file has the categories."""
    folder = models[0] / "lightgbm"
    model = mlflow.models.Model.load(str(folder))
    assert [(one.name, str(one.type)) for one in model.get_input_schema().inputs] == [
        ("number", "DataType.double"),
        ("kind", "Any"),
        ("size", "Any"),
    ]
    example = model.load_input_example(str(folder))
    assert example[["kind", "size"]].to_numpy().tolist() == X[["kind", "size"]].head(3).to_numpy().tolist()
    kept = json.loads((folder / "served_ranker.json").read_text())["categories"]
    assert {name: kind["categories"] for name, kind in kept.items()} == {
        "kind": ["wiki", "news", "shop", "never"],
        "size": [1, 2, 7],
    }


def test_the_flavour_of_the_library_loads_too(models):
    """Who wants the booster itself gets it."""
    booster = mlflow.lightgbm.load_model(str(models[0] / "lightgbm"))
    np.testing.assert_array_equal(booster.predict(X), of_library("lightgbm", X))


def test_what_json_cannot_send_is_refused():
    """Intervals have no text that JSON gives back, and without rows there are no column names."""
    bins = pd.DataFrame({"bin": pd.cut(X["number"], 5), "number": X["number"]})
    ranker = rk.QueryRanker(HistGradientBoostingRegressor(max_iter=2)).fit(bins, Y, qid=QID)
    with pytest.raises(InvalidInput) as refusal:
        saved(ranker, X=bins)
    assert (refusal.value.argument, refusal.value.where) == ("X", "column 'bin'")
    texts = bins.assign(bin=bins["bin"].astype(str).astype("category"))  # as the remedy says
    ranker = rk.QueryRanker(LGBMRanker(**LIGHT)).fit(texts, Y, qid=QID)
    assert saved(ranker, X=texts).flavor == "lightgbm"
    with pytest.raises(InvalidInput) as refusal:
        saved(ranker)
    assert refusal.value.argument == "X"


@pytest.mark.parametrize("kind", ["str", object])
def test_missing_texts_are_refused_where_none_and_nan_differ(kind):
    """A null in JSON is None in a request of one row and NaN in others: an encoder may take them for two texts."""
    some = np.arange(len(X)) % 5 > 0
    texts = pd.DataFrame(
        {"number": X["number"], "kind": pd.Series(X["kind"].astype(object).where(some, None), dtype=kind)}
    )
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((encoder, ["kind"]), remainder="passthrough")
    ranker = rk.QueryRanker(make_pipeline(columns, HistGradientBoostingRegressor(max_iter=20)))
    with pytest.raises(InvalidInput) as refusal:
        saved(ranker.fit(texts, Y + 2 * ~some, qid=QID), X=texts)
    assert (refusal.value.argument, refusal.value.where) == ("X", "column 'kind'")
    for mended in (texts.assign(kind=texts["kind"].fillna("")), texts.assign(kind=texts["kind"].astype("category"))):
        assert saved(ranker.fit(mended, Y + 2 * ~some, qid=QID), X=mended).flavor == "sklearn"


@pytest.mark.parametrize("name", ["lightgbm_alone", "xgboost_alone", "lightgbm", "xgboost"])
def test_a_few_rows_of_x_are_enough(name, models, tmp_path):
    """Categories that X has not are known all the same: to the QueryRanker, or to the model of the library."""
    few = X.iloc[[1, 2, 4]].assign(kind=pd.Categorical(X["kind"].astype(object).iloc[[1, 2, 4]]))
    assert few["kind"].cat.categories.tolist() == ["news", "wiki"]
    model = mlflow.pyfunc.load_model(written(saved(models[1][name], X=few), tmp_path / name))
    np.testing.assert_array_equal(np.asarray(model.predict(X), dtype=float), of_library(name, X))


def test_a_logged_model_serves_categories_too():
    """By its address, in the store."""
    logged = rkm.log_ranker(fit(LGBMRanker(**LIGHT)), X=X.head(50))
    model = mlflow.pyfunc.load_model(logged.model_uri)
    np.testing.assert_array_equal(
        model.predict(X[["size", "number", "kind"]].astype(object)), of_library("lightgbm", X)
    )
