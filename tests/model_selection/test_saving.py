"""A fitted ranker is saved as its model: nothing of this package is left in it, and no parameter has changed."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys

import cloudpickle
import mlflow
import numpy as np
import pytest
from lightgbm import LGBMRanker, LGBMRegressor
from model_selection.libraries import CatBoostRanker, CatBoostRegressor, XGBRanker, XGBRegressor, each
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankeval as rk
from rankeval.model_selection.rows import EarlyStopping
from rankeval.model_selection.with_catboost import CatBoostMetric

CAT = {"iterations": 20, "thread_count": 1, "verbose": False, "allow_writing_files": False}
LGBM = {"n_estimators": 20, "n_jobs": 1, "verbose": -1}
BOOSTERS = {
    "lightgbm": LGBMRanker(**LGBM),
    "lightgbm with a metric": LGBMRanker(**LGBM, metric="map"),
    "lightgbm with rounds": LGBMRanker(**LGBM, early_stopping_round=3),
    "lightgbm regressor": LGBMRegressor(**LGBM),
    "xgboost": XGBRanker(n_estimators=20, n_jobs=1),
    "xgboost regressor": XGBRegressor(n_estimators=20, n_jobs=1, eval_metric="mae"),
    "catboost": CatBoostRanker(**CAT),
    "catboost with a metric": CatBoostRanker(**CAT, eval_metric="MAP"),
    "catboost regressor": CatBoostRegressor(**CAT),
}
RANKER = "rankeval.model_selection.ranker.QueryRanker"
TRUSTED = {
    "lightgbm": ["collections.OrderedDict", "lightgbm.basic.Booster", "lightgbm.sklearn.LGBMRanker"],
    "xgboost": ["xgboost.core.Booster", "xgboost.sklearn.XGBRanker"],
    "catboost": ["catboost.core.CatBoostRanker"],
}


@pytest.mark.parametrize("name", each(BOOSTERS))
def test_early_stopping_leaves_the_parameters_of_the_estimator_as_they_were(name, ltr):
    """A fitted estimator can be cloned, and fitted again by its own metric."""
    before = {**BOOSTERS[name].get_params(), "missing": None}
    ranker = rk.QueryRanker(BOOSTERS[name], early_stopping_rounds=3).fit(ltr.X, ltr.y, qid=ltr.qid)
    assert {**ranker.estimator_.get_params(), "missing": None} == before
    assert set(vars(ranker.estimator_)) & {"metric"} == set(before) & {"metric"}


@pytest.mark.parametrize("name", each(TRUSTED))
def test_a_fitted_ranker_holds_no_held_out_rows(name, ltr):
    ranker = rk.QueryRanker(BOOSTERS[name], early_stopping_rounds=3).fit(ltr.X, ltr.y, qid=ltr.qid)
    gc.collect()
    # By type(): isinstance asks an object for its class, and a dead weak proxy of another test answers with an error.
    assert [one for one in gc.get_objects() if type(one) in {EarlyStopping, CatBoostMetric}] == []
    assert ranker.n_iterations_ > 0


@pytest.mark.needs("skops")
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", each(TRUSTED))
def test_a_ranker_that_stopped_early_is_saved_by_all(name, inside, ltr):
    """For skops, the types of the guide are enough."""
    import skops.io

    estimator = make_pipeline(StandardScaler(), BOOSTERS[name]) if inside else BOOSTERS[name]
    ranker = rk.QueryRanker(estimator, early_stopping_rounds=3, eval_measure="AP").fit(ltr.X, ltr.y, qid=ltr.qid)
    skopsed = skops.io.loads(skops.io.dumps(ranker), trusted=[*TRUSTED[name], RANKER])
    for again in (pickle.loads(pickle.dumps(ranker)), pickle.loads(cloudpickle.dumps(ranker)), skopsed):
        np.testing.assert_array_equal(again.predict(ltr.X), ranker.predict(ltr.X))
        assert again.n_iterations_ == ranker.n_iterations_


@pytest.mark.needs("skops")
def test_skops_asks_for_the_class_of_a_measure_and_of_a_convention(ltr):
    """Given by name they need no type."""
    import skops.io

    rules = rk.Convention(ties="worst", bind={"nDCG": {"gain": "exp"}})
    for measure, convention, types in (
        ("nDCG@10", "trec_eval-10", []),
        (rk.measure("AP"), "rankeval", ["rankeval.measures.family.Measure"]),
        ("nDCG@10", rules, ["rankeval.collection.convention.Convention"]),
    ):
        ranker = rk.QueryRanker(
            BOOSTERS["lightgbm"], early_stopping_rounds=3, eval_measure=measure, eval_convention=convention
        ).fit(ltr.X, ltr.y, qid=ltr.qid)
        packed = skops.io.dumps(ranker)
        assert set(skops.io.get_untrusted_types(data=packed)) == {*TRUSTED["lightgbm"], RANKER, *types}
        again = skops.io.loads(packed, trusted=[*TRUSTED["lightgbm"], RANKER, *types])
        assert (again.eval_measure, again.eval_convention) == (measure, convention)


LOAD = """
import pathlib, sys
import mlflow, numpy as np, skops.io
rows = np.load("rows.npy")
trusted = pathlib.Path("types").read_text().split()
found = [mlflow.sklearn.load_model("model").predict(rows), skops.io.load("search.skops", trusted=trusted).predict(rows)]
np.save("found.npy", found)
"""


@pytest.mark.further
@pytest.mark.needs("skops", "catboost")
@pytest.mark.timeout(200)
def test_a_search_by_our_scorer_is_saved_by_mlflow_and_skops(ltr, tmp_path):
    """MLflow's cloudpickle format, as in autologging, and skops load it in another process."""
    import skops.io

    ranker = rk.QueryRanker(BOOSTERS["catboost"], early_stopping_rounds=3)
    scorer = rk.make_scorer(["nDCG@10", "AP"], convention="lightgbm")
    grid = {"estimator__depth": [2, 3]}
    search = GridSearchCV(ranker, grid, scoring=scorer, refit="AP", cv=rk.QueryKFold(2)).fit(ltr.X, ltr.y_indexed)
    pip = ["rankeval-mlflow", "catboost"]
    mlflow.sklearn.save_model(search, tmp_path / "model", serialization_format="cloudpickle", pip_requirements=pip)
    packed = skops.io.dumps(search)
    (tmp_path / "search.skops").write_bytes(packed)
    (tmp_path / "types").write_text("\n".join(skops.io.get_untrusted_types(data=packed)))
    np.save(tmp_path / "rows.npy", ltr.X)
    subprocess.run([sys.executable, "-W", "ignore", "-c", LOAD], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), [search.predict(ltr.X)] * 2)
