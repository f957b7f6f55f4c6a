"""A saved ranker loads without rankeval and predicts the same to the last bit."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace

import mlflow
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from lightgbm import LGBMClassifier, LGBMRanker, LGBMRegressor
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor, VotingRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.evaluation.responses import responses
from rankeval.model_selection.boosters import BOOSTERS
from rankeval_mlflow.saving import saved

WITHOUT_RANKEVAL = """
import pickle, sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("rankeval", "rankeval_mlflow", "rankeval_pytest"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
import mlflow
found = {}
for name, (folder, rows) in pickle.load(open(sys.argv[1], "rb")).items():
    found[name] = mlflow.pyfunc.load_model(folder).predict(rows)
try:
    import rankeval
except ModuleNotFoundError:
    pickle.dump(found, open(sys.argv[2], "wb"))
"""

BOOSTED = {"n_estimators": 15, "random_state": 0, "n_jobs": 1}
LIGHT = {**BOOSTED, "verbose": -1, "min_child_samples": 2}
CAT = {"iterations": 15, "random_seed": 0, "verbose": False, "thread_count": 1, "allow_writing_files": False}


def _catboost(**options):
    from catboost import CatBoostRanker

    return CatBoostRanker(**options)


def _xgboost(name="XGBRanker", **options):
    import xgboost

    return getattr(xgboost, name)(**options)


@pytest.fixture(scope="module")
def data():
    """Return rows with a numeric, an integer and a text column, and their queries in the index and as a column."""
    made = rk.datasets.make_ranking(60, 8, rng=3)
    table = pd.DataFrame(made.X[:, :4], columns=["a", "b", "c", "d"])
    table["clicks"] = np.random.default_rng(1).integers(0, 9, len(table))
    table["kind"] = np.random.default_rng(2).choice(["news", "shop", "wiki"], len(table))
    return table, made.y.astype(int), made.qid


def _numeric(table):
    return table.drop(columns="kind")


def _by_name(last):
    columns = ColumnTransformer([("number", StandardScaler(), ["a", "c"]), ("text", OneHotEncoder(), ["kind"])])
    return make_pipeline(columns, last)


def _searched():
    folds = rk.QueryKFold(2)
    return GridSearchCV(
        rk.QueryRanker(LGBMRanker(**LIGHT)),
        {"estimator__num_leaves": [3, 7]},
        cv=folds,
        scoring=rk.make_scorer("nDCG@10"),
    )


def _routed():
    with sklearn.config_context(enable_metadata_routing=True):
        return rk.QueryRanker(Ridge().set_fit_request(sample_weight=True))


# Each: the ranker, whether the text column is a feature, the flavour that is expected.
RANKERS = {
    "lightgbm": (lambda: rk.QueryRanker(LGBMRanker(**LIGHT)), False, "lightgbm"),
    "lightgbm_regressor": (lambda: rk.QueryRanker(LGBMRegressor(objective="poisson", **LIGHT)), False, "lightgbm"),
    "lightgbm_early": (
        lambda: rk.QueryRanker(
            LGBMRanker(**{**LIGHT, "n_estimators": 200, "learning_rate": 0.7}), early_stopping_rounds=3
        ),
        False,
        "lightgbm",
    ),
    "xgboost": (lambda: rk.QueryRanker(_xgboost(**BOOSTED)), False, "xgboost"),
    "xgboost_early": (
        lambda: rk.QueryRanker(
            _xgboost(**{**BOOSTED, "n_estimators": 200, "learning_rate": 0.9}), early_stopping_rounds=3
        ),
        False,
        "xgboost",
    ),
    "xgboost_missing": (lambda: rk.QueryRanker(_xgboost(missing=0.0, **BOOSTED)), False, "sklearn"),
    "catboost": (lambda: rk.QueryRanker(_catboost(cat_features=["kind"], **CAT)), True, "catboost"),
    "catboost_early": (
        lambda: rk.QueryRanker(
            _catboost(cat_features=["kind"], **{**CAT, "iterations": 200, "learning_rate": 0.9}),
            early_stopping_rounds=3,
        ),
        True,
        "catboost",
    ),
    "ridge": (lambda: rk.QueryRanker(Ridge()), False, "sklearn"),
    "forest": (lambda: rk.QueryRanker(RandomForestRegressor(5, random_state=0)), False, "sklearn"),
    "pipeline_inside": (lambda: rk.QueryRanker(_by_name(LGBMRanker(**LIGHT))), True, "sklearn"),
    "xgboost_in_a_pipeline": (lambda: _by_name(rk.QueryRanker(_xgboost(**BOOSTED))), True, "sklearn"),
    "pipeline_catboost": (lambda: _by_name(rk.QueryRanker(_catboost(**CAT))), True, "sklearn"),
    "search": (_searched, False, "lightgbm"),
    "search_inside": (lambda: rk.QueryRanker(_searched()), False, "lightgbm"),
    "search_of_pipelines": (
        lambda: GridSearchCV(
            _by_name(rk.QueryRanker(Ridge())),
            {"queryranker__estimator__alpha": [0.1, 10]},
            cv=rk.QueryKFold(2),
            scoring=rk.make_scorer(["AP", "RR"]),
            refit="AP",
        ),
        True,
        "sklearn",
    ),
    "voting": (
        lambda: VotingRegressor([("a", rk.QueryRanker(LGBMRanker(**LIGHT))), ("b", rk.QueryRanker(Ridge()))]),
        False,
        "sklearn",
    ),
    "lambda": (
        lambda: rk.QueryRanker(make_pipeline(FunctionTransformer(lambda rows: rows * 3), Ridge())),
        False,
        "sklearn",
    ),
    "routed": (_routed, False, "sklearn"),
    "grades": (lambda: rk.QueryRanker(LogisticRegression(max_iter=500)), False, "sklearn"),
    "xgboost_classes": (lambda: rk.QueryRanker(_xgboost("XGBClassifier", **BOOSTED)), False, "sklearn"),
    "lightgbm_classes": (lambda: rk.QueryRanker(_by_name(LGBMClassifier(**LIGHT))), True, "sklearn"),
    "confidences": (lambda: rk.QueryRanker(LinearSVC()), False, "sklearn"),
}


LACKING = ("xgboost", "catboost")
"""Libraries that '.[test]' does not install; the names of their rankers have theirs."""


@pytest.fixture(params=["", pytest.param("boosters", marks=pytest.mark.needs(*LACKING))])
def models(request, data, tmp_path):
    """Save the rankers of one kind, and predict with all of them in one process without rankeval."""
    table, labels, ids = data
    models, asked = {}, {}
    for name in [name for name in RANKERS if any(one in name for one in LACKING) == bool(request.param)]:
        make, with_text, _ = RANKERS[name]
        rows = table if with_text else _numeric(table)
        grades = (labels > 0).astype(int) if name == "confidences" else labels
        rows = rows.set_axis(pd.Index(ids, name="qid"))  # found by every search, and no feature
        ranker = make().fit(rows, pd.Series(grades, index=rows.index))
        models[name] = saved(ranker, name, X=rows), responses(ranker, rows)
        for path, content in models[name][0].files.items():
            target = tmp_path / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        # Another order of the columns, and one more: the signature puts them right.
        asked[name] = str(tmp_path / name), rows.reset_index()[[*reversed(rows.columns), "qid"]]
    (tmp_path / "asked.pkl").write_bytes(pickle.dumps(asked))
    subprocess.run(
        [sys.executable, "-c", WITHOUT_RANKEVAL, str(tmp_path / "asked.pkl"), str(tmp_path / "found.pkl")],
        check=True,
        cwd=tmp_path,
    )
    return models, pickle.loads((tmp_path / "found.pkl").read_bytes())


def test_it_predicts_the_same_without_rankeval_and_pins_what_it_requires(models):
    """Scores are equal to the last bit; XGBoost's are of 32 bits, which 64 hold exactly.

    Requirements are written without a second process that imports the model.
    """
    for name, (model, scores) in models[0].items():
        found = models[1][name]
        assert model.flavor == RANKERS[name][2], name
        assert len(np.unique(scores)) > 10, name
        np.testing.assert_array_equal(np.asarray(found, dtype=float).reshape(-1), scores, err_msg=name)
        lines = model.files["requirements.txt"].decode().split()
        assert all("==" in line for line in lines), name
        assert not any("rankeval" in line for line in lines), name
        for package in ("lightgbm", *LACKING):
            if package in name:
                assert any(line.startswith(f"{package}==") for line in lines), name


def _loaded(model, folder):
    for path, content in model.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return mlflow.pyfunc.load_model(str(folder))


def test_ids_in_the_rows_are_no_feature(data, tmp_path):
    """A column "qid" of X is not in the signature, so a request may have it or not."""
    table, labels, ids = data
    rows = _numeric(table).assign(qid=ids)
    ranker = rk.QueryRanker(LGBMRanker(**LIGHT)).fit(rows, labels)
    model = _loaded(saved(ranker, X=rows), tmp_path)
    assert model.metadata.get_input_schema().input_names() == ["a", "b", "c", "d", "clicks"]
    np.testing.assert_array_equal(model.predict(rows), ranker.predict(rows))


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csr_array, pl.from_pandas])
def test_any_kind_of_rows(kind, data, tmp_path):
    """Arrays, sparse matrices and polars frames; the signature of an array is a tensor."""
    table, labels, ids = data
    table = table[["a", "b", "c", "d"]]
    rows = kind(table)
    ranker = rk.QueryRanker(LGBMRanker(**LIGHT)).fit(rows, labels, qid=ids)
    model = _loaded(saved(ranker, X=rows), tmp_path)
    np.testing.assert_array_equal(model.predict(table), ranker.predict(rows))


@pytest.mark.needs("xgboost")
def test_ranking_data_are_rows(tmp_path):
    """What loaders return can be given as it is."""
    made = rk.datasets.make_ranking(20, 5, rng=0)
    ranker = rk.QueryRanker(_xgboost(**BOOSTED)).fit(made.X, made.y, qid=made.qid)
    model = _loaded(saved(ranker, X=made), tmp_path)
    np.testing.assert_array_equal(model.predict(made.X), ranker.predict(made.X))


def test_without_rows_there_is_no_signature(data, tmp_path):
    """Nothing is known of the columns, and the model is loaded and used all the same."""
    table, labels, ids = data
    rows = _numeric(table)
    ranker = rk.QueryRanker(LGBMRanker(**LIGHT)).fit(rows, labels, qid=ids)
    model = _loaded(saved(ranker), tmp_path)
    assert model.metadata.signature is None
    np.testing.assert_array_equal(model.predict(rows), ranker.predict(rows))


def test_without_rows_columns_are_taken_by_place(data, tmp_path):
    """As the docstring of `log_ranker` says: a table in another order gets other scores, and with X the same ones."""
    table, labels, ids = data
    rows = _numeric(table)
    ranker = rk.QueryRanker(LGBMRanker(**LIGHT)).fit(rows, labels, qid=ids)
    turned = rows[rows.columns[::-1]]
    assert not np.array_equal(_loaded(saved(ranker), tmp_path / "bare").predict(turned), ranker.predict(rows))
    model = _loaded(saved(ranker, X=rows), tmp_path / "signed")
    np.testing.assert_array_equal(model.predict(turned), ranker.predict(rows))


@pytest.mark.needs("xgboost")
def test_the_parameters_of_the_winner_and_its_iterations(data):
    """A search gives those that it chose; early stopping gives the number of iterations."""
    table, labels, ids = data
    rows = _numeric(table).set_axis(pd.Index(ids, name="qid"))
    grades = pd.Series(labels, index=rows.index)
    search = _searched().fit(rows, grades)
    assert saved(search).params["num_leaves"] == str(search.best_params_["estimator__num_leaves"])
    early = RANKERS["xgboost_early"][0]().fit(rows, grades)
    assert saved(early).params["n_iterations"] == str(early.n_iterations_)
    assert early.n_iterations_ < early.estimator_.get_booster().num_boosted_rounds()


def test_the_ranker_stays_as_it_is(data):
    """What is taken out is taken out of copies."""
    table, labels, ids = data
    rows = _numeric(table).set_axis(pd.Index(ids, name="qid"))
    voting = RANKERS["voting"][0]().fit(rows, pd.Series(labels, index=rows.index))
    saved(voting, X=rows)
    assert all(isinstance(one, rk.QueryRanker) for one in [*voting.estimators_, *voting.named_estimators_.values()])
    assert all(isinstance(one, rk.QueryRanker) for _, one in voting.estimators)


def test_splitters_and_scorers_of_ours_are_left_out(data):
    """A fitted RidgeCV keeps the splitter that it was given, and predicts without it."""
    table, labels, ids = data
    ranker = rk.QueryRanker(RidgeCV(cv=rk.QueryKFold(3), scoring=None)).fit(_numeric(table), labels, qid=ids)
    assert type(ranker.estimator_.cv).__module__.startswith("rankeval")
    assert saved(ranker, X=_numeric(table)).flavor == "sklearn"


def test_refusals_say_what_to_do(data):
    """A ranker that is not fitted, has no best estimator, or cannot do without rankeval."""
    table, labels, ids = data
    rows = _numeric(table)
    with pytest.raises(InvalidInput, match="call fit first"):
        saved(rk.QueryRanker(Ridge()))
    with pytest.raises(InvalidInput, match="without best_estimator_"):
        saved(_searched())
    with pytest.raises(InvalidInput, match="give a fitted estimator"):
        saved("ranker")
    with pytest.raises(InvalidInput, match="not fitted"):
        saved(LGBMRanker())
    ours = FunctionTransformer(rk.model_selection.query_ids.without_ids)
    ranker = rk.QueryRanker(make_pipeline(ours, Ridge())).fit(rows, labels, qid=ids)
    with pytest.raises(InvalidInput, match="cannot be saved without rankeval"):
        saved(ranker)
    indexed = rows.set_axis(pd.Index(ids, name="qid"))
    around = TransformedTargetRegressor(rk.QueryRanker(LogisticRegression(max_iter=500)))
    around.fit(indexed, pd.Series(labels, index=indexed.index))
    with pytest.raises(InvalidInput, match="a regressor or a ranker there"):
        saved(around)


@pytest.mark.needs("xgboost")
def test_a_model_that_predicts_otherwise_is_refused(data, monkeypatch):
    """A flavour that loses a parameter is noticed before anything is logged."""
    table, labels, ids = data
    rows = _numeric(table).round(0)
    ranker = rk.QueryRanker(_xgboost(missing=0.0, **BOOSTED)).fit(rows, labels, qid=ids)
    monkeypatch.setitem(BOOSTERS, "xgboost", replace(BOOSTERS["xgboost"], saved=lambda model: model))
    with pytest.raises(InvalidInput, match="another score in row"):
        saved(ranker, X=rows)


def test_a_class_of_the_main_program_travels_in_the_file(data):
    """Skops would look for it in the main program of the reader; cloudpickle takes its code along."""
    table, labels, ids = data
    rows = _numeric(table)
    notebook = type("Notebook", (Ridge,), {"__module__": "__main__"})
    ranker = rk.QueryRanker(notebook()).fit(rows, labels, qid=ids)
    model = saved(ranker, X=rows)
    assert b"cloudpickle" in model.files["MLmodel"]


def test_equal_models_are_equal_files(data):
    """A rerun that logs the same ranker finds what waits of it."""
    table, labels, ids = data
    rows = _numeric(table)
    one, other = (rk.QueryRanker(LGBMRanker(**LIGHT)).fit(rows, labels, qid=ids) for _ in range(2))
    assert saved(one, X=rows) == saved(other, X=rows)


class Turned(LGBMRanker):
    """Ranks the other way round, by a `predict` of its own."""

    def predict(self, X, **options):
        return -super().predict(X, **options)


def test_a_predict_of_a_subclass_is_kept(data, tmp_path):
    """The file of a booster has no method: without rows to check it on, the model would rank the other way round."""
    table, y, qid = data
    rows = _numeric(table)
    ranker = rk.QueryRanker(Turned(**LIGHT)).fit(rows, y, qid=qid)
    made = saved(ranker)
    assert made.flavor == "sklearn"
    for path, content in made.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    found = mlflow.pyfunc.load_model(str(tmp_path)).predict(rows)
    assert np.array_equal(found, ranker.predict(rows))
