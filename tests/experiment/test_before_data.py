"""All that can be wrong with an experiment is found before any data is loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from rankeval.errors import ConfigError, RankevalWarning
from rankeval.experiment import check_config, run_experiment
from rankeval.experiment.checks import check_experiment

LIGHTGBM = "lightgbm.LGBMRanker"
CATBOOST = "catboost.CatBoostRanker"
RIDGE = "sklearn.linear_model.Ridge"
SCALER = "sklearn.preprocessing.StandardScaler"
EXPERIMENT = """\
name: small
data: {loader: "loads:load"}
rankers: {ridge: {estimator: sklearn.linear_model.Ridge}, tree: {estimator: sklearn.tree.DecisionTreeRegressor}}
guard: off
tracking: off
"""


@pytest.fixture(autouse=True)
def _loader(monkeypatch):
    """Write a loader that leaves a trace if it is called."""
    Path("loads.py").write_text("def load():\n    open('called', 'w')\n    raise OSError\n")
    monkeypatch.delitem(sys.modules, "loads", raising=False)
    yield
    assert not Path("called").exists()


def experiment(**changes):
    """Return an experiment; a ranker called third joins the others."""
    raw = {**yaml.safe_load(EXPERIMENT), **changes}
    if "third" in raw:
        raw["rankers"] = {**raw["rankers"], "third": raw.pop("third")}
    return raw


def test_the_trace_is_left_if_all_is_right():
    with pytest.raises(OSError, match=r"^$"):
        run_experiment(experiment())
    Path("called").unlink()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"measures": ["nDGC@10"]}, "measures: unknown measure 'nDGC@10'; did you mean 'nDCG@10'"),
        ({"measures": ["alpha_nDCG@10"]}, "measures: .*needs judgments by aspect"),
        ({"primary": "Accuracy"}, "primary: Accuracy needs collection_size"),
        ({"convention": "trec"}, "convention: unknown convention 'trec'"),
        ({"tracking": {"host": "mlfow"}}, "tracking: unknown host 'mlfow'; did you mean 'mlflow'"),
        (
            {"tracking": {"uri": "sqlte:///mlflow.db"}},
            "tracking: MLflow knows no kind of tracking store",
        ),
        ({"output": {"directory": "loads.py"}}, "output.directory: 'loads.py/predictions' cannot be written: Not"),
        ({"comparison": {"test": "tt"}}, "comparison: unknown test 'tt'; "),
        ({"comparison": {"correction": "hom"}}, "comparison: unknown correction 'hom'; did you mean 'holm'"),
        ({"comparison": {"correction": "tukey"}}, "tukey compares all pairs, and an experiment compares with its base"),
        ({"data": {"loader": "loads:lod"}}, "the module 'loads' has no 'lod'"),
        ({"data": {"loader": "loads:load", "arguments": {"n": 3}}}, "cannot be called like this: .*'n'"),
        ({"data": {"loader": "letor", "path": "nowhere"}}, "data.path: there is no file 'nowhere' in '"),
        (
            {"data": {"loader": "parquet", "path": "nowhere.parquet", "qid": "q", "label": "y"}},
            "data.path: there is no file 'nowhere.parquet'",
        ),
        ({"data": {"loader": "csv", "path": ".", "qid": "q", "label": "y"}}, "data.path: '.' is a folder"),
        ({"data": {"loader": "csv", "path": "x.csv", "label": "y"}}, "data: the loader 'csv' needs qid"),
        ({"data": {"loader": "letor", "qid": "q"}}, "data: qid name columns of a table, and the loader is 'letor'"),
        ({"split": {"column": "part"}}, "split.column names a column of a table, and the loader is 'loads:load'"),
        ({"split": {"test": 2024}}, "split: test need column"),
        ({"split": {"column": "part", "test_size": 0.4}}, "split: the parts come from column, so leave test_size out"),
        ({"split": {"column": "part", "train": {}}}, "split.train: expected a value of the column or a list"),
        ({"third": {"estimator": RIDGE, "steps": [RIDGE]}}, "rankers.third: a ranker has either .* found both"),
        ({"third": {}}, "rankers.third: a ranker has either estimator or steps, found none of them"),
        ({"third": {"steps": []}}, "rankers.third.steps: expected a list with at least 1"),
        ({"third": {"steps": [SCALER]}}, "rankers.third.steps.0.estimator: .*has no predict"),
        ({"third": {"steps": [RIDGE, RIDGE]}}, "rankers.third.steps.0.estimator: .*has no transform"),
        (
            {"third": {"steps": [{"estimator": SCALER, "prams": {}}, RIDGE]}},
            "unknown key 'rankers.third.steps.0.prams'",
        ),
        (
            {"third": {"steps": [{"estimator": SCALER, "name": "ridge"}, RIDGE]}},
            "rankers.third.steps: two steps are called 'ridge'",
        ),
        ({"third": {"steps": [{"estimator": SCALER, "name": "a__b"}, RIDGE]}}, "takes no step called 'a__b'"),
        ({"third": {"steps": [SCALER, RIDGE], "params": {"alpha": 1}}}, "no parameter 'alpha'; write 'ridge__alpha'"),
        ({"third": {"steps": [SCALER, RIDGE], "grid": {"beta": [1]}}}, "no parameter 'beta'; a parameter of a part is"),
        ({"data": {"loader": "parkett", "qid": "q"}}, "data.loader: unknown loader 'parkett'; did you mean 'parquet'"),
        (
            {"third": {"steps": [SCALER, RIDGE], "grid": {"ridge__alhpa": [1]}}},
            "rankers.third: Pipeline .*mean 'ridge__alpha'",
        ),
        (
            {"third": {"estimator": RIDGE, "early_stopping_rounds": 3}},
            "rankers.third.early_stopping_rounds: only Light",
        ),
        (
            {"third": {"steps": [SCALER, RIDGE], "early_stopping_rounds": 3}},
            r"found .*StandardScaler > .*Ridge: leave it",
        ),
        ({"third": {"estimator": LIGHTGBM, "early_stopping_rounds": 0}}, "expected a number of at least 1, found 0"),
        ({"third": {"estimator": LIGHTGBM, "early_stopping_rounds": "x"}}, "expected a whole number, found 'x'"),
        (
            {"third": {"estimator": LIGHTGBM, "validation_fraction": 0.2}},
            "validation_fraction belongs to early stopping",
        ),
        ({"third": {"estimator": LIGHTGBM, "eval_measure": "AP"}}, "eval_measure belongs to early stopping"),
        (
            {"third": {"estimator": LIGHTGBM, "early_stopping_rounds": 5, "eval_measure": "APP"}},
            "rankers.third.eval_measure: unknown measure 'APP'",
        ),
        ({"third": {"estimator": LIGHTGBM, "grid": {"estimator__num_leaves": [3]}}}, "LGBMRanker .*write 'num_leaves'"),
        ({"third": {"estimator": CATBOOST, "grid": {"dpth": [3]}}}, "rankers.third: CatBoostRanker .*mean 'depth'"),
        ({"third": {"estimator": CATBOOST, "params": {"dpth": 3}}}, "rankers.third: .*'dpth'"),
        ({"third": {"estimator": RIDGE, "grid": {"alpha": 3}}}, "rankers.third.grid.alpha: expected a list, found 3"),
        (
            {"third": {"estimator": RIDGE, "params": {"alpha": 1}, "grid": {"alpha": [3]}}},
            "rankers.third: alpha is fixed in params and searched",
        ),
    ],
)
def test_it_is_said_before_data_is_loaded(changes, said):
    with pytest.raises(ConfigError, match=said) as error:
        run_experiment(experiment(**changes))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"n_iter": 3}, "the key 'rankers.third.search.distributions' is missing"),
        ({"distributions": {}}, "expected parameters with a list or a range each"),
        ({"distributions": {"alpha": []}}, "alpha has no value to try"),
        ({"distributions": {"alpha": 3}}, "alpha is 3: expected a list of values, or one of {int: "),
        ({"distributions": {"alpha": {"norm": [0, 1]}}}, "expected a list of values, or one of {int: "),
        ({"distributions": {"alpha": {"float": [0, 1], "int": [0, 1]}}}, "expected a list of values, or one of"),
        ({"distributions": {"alpha": {"int": [1, 2.5]}}}, "expected two whole numbers"),
        ({"distributions": {"alpha": {"float": [1]}}}, "expected two numbers"),
        ({"distributions": {"alpha": {"float": [0, float("inf")]}}}, "expected two numbers below"),
        ({"distributions": {"alpha": {"log_float": [float("nan"), 1]}}}, "expected two numbers below"),
        ({"distributions": {"alpha": {"int": [0, 10**30]}}}, "expected two whole numbers below"),
        ({"distributions": {"alpha": {"float": [2, 1]}}}, "the first number must be below the second"),
        ({"distributions": {"alpha": {"int": [2, 2]}}}, "the first number must be below the second"),
        ({"distributions": {"alpha": {"log_float": [0, 1]}}}, "a logarithm needs numbers above 0"),
        (
            {"distributions": {"alhpa": {"float": [0, 1]}}},
            "rankers.third: Ridge has no .*'alhpa'; did you mean 'alpha'",
        ),
        ({"n_iter": 0, "distributions": {"alpha": [1]}}, "search.n_iter: expected a number of at least 1, found 0"),
        (
            {"n_itr": 2, "distributions": {"alpha": [1]}},
            "unknown key 'rankers.third.search.n_itr'; did you mean 'n_iter'",
        ),
    ],
)
def test_a_search_that_cannot_be_drawn_is_refused(search, said):
    with pytest.raises(ConfigError, match=said):
        run_experiment(experiment(third={"estimator": RIDGE, "search": search}))


def test_a_grid_and_a_search_are_too_much():
    third = {"estimator": RIDGE, "grid": {"alpha": [1]}, "search": {"distributions": {"alpha": [1]}}}
    with pytest.raises(ConfigError, match="a ranker has either grid or search, found both"):
        run_experiment(experiment(third=third))


def test_a_parameter_that_is_nearly_one_of_a_booster_is_asked_about():
    """LightGBM takes any name, since it has aliases, and says nothing of those that mean nothing to it."""
    third = {"estimator": LIGHTGBM, "params": {"verbose": -1}, "grid": {"num_leavs": [3]}}
    with pytest.warns(RankevalWarning, match="LGBMRanker has no parameter 'num_leavs' .* did you mean 'num_leaves'"):
        check_experiment(check_config(experiment(third=third)))


def test_parameters_that_boosters_know_by_another_name_are_theirs():
    third = {"estimator": LIGHTGBM, "params": {"lambda_l2": 1, "max_bin": 63, "bagging_freq": 1}}
    assert check_experiment(check_config(experiment(third=third))).rankers["third"].estimator.lambda_l2 == 1
