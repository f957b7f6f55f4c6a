"""All that can be wrong with an experiment is found before any data is loaded."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from model_selection.libraries import each
from tables import each_row

from rankeval.errors import ConfigError, RankevalWarning
from rankeval.experiment import check_config, run_experiment
from rankeval.experiment.checks import check_experiment
from rankeval.experiment.schema import ExperimentConfig

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


def test_checks_of_one_experiment_at_once_do_not_take_away_each_others_folder():
    config = ExperimentConfig(**experiment())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: check_experiment(config), range(200)))
    left = [path for path in Path().rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert left == [Path("loads.py")]


STEPS = [SCALER, RIDGE]
WRONG = [
    ({"measures": ["nDGC@10"]}, "measures.0"),
    ({"measures": ["alpha_nDCG@10"]}, "measures"),
    ({"primary": "Accuracy"}, "primary"),
    ({"convention": "trec"}, "convention"),
    ({"tracking": {"host": "mlfow"}}, "tracking"),
    ({"tracking": {"uri": "sqlte:///mlflow.db"}}, "tracking"),
    ({"output": {"directory": "loads.py"}}, "output.directory"),
    ({"comparison": {"test": "tt"}}, "comparison"),
    ({"comparison": {"correction": "hom"}}, "comparison"),
    ({"comparison": {"correction": "tukey"}}, "comparison.correction"),
    ({"comparison": {"claim": "equivalent"}}, "comparison.margin"),
    ({"comparison": {"test": "t"}, "guard": {"ledger": "ledger.db"}}, "comparison"),
    ({"data": {"loader": "loads:lod"}}, "data.loader"),
    ({"data": {"loader": "no_such_module:load"}}, "data.loader"),
    ({"data": {"loader": "digitz"}}, "data.loader"),
    ({"data": {"loader": "digits", "arguments": {"n_querys": 3}}}, "data"),
    ({"data": {"loader": "letor"}}, "data"),
    ({"data": {"loader": "loads:load", "arguments": {"n": 3}}}, "data"),
    ({"data": {"loader": "letor", "path": "nowhere"}}, "data.path"),
    ({"data": {"loader": "parquet", "path": "nowhere.parquet", "qid": "q", "label": "y"}}, "data.path"),
    ({"data": {"loader": "csv", "path": ".", "qid": "q", "label": "y"}}, "data.path"),
    ({"data": {"loader": "csv", "path": "x.csv", "label": "y"}}, "data"),
    ({"data": {"loader": "letor", "qid": "q"}}, "data"),
    ({"data": {"loader": "parkett", "qid": "q"}}, "data.loader"),
    ({"split": {"test": 2024}}, "split"),
    ({"split": {"column": "part", "test_size": 0.4}}, "split"),
    ({"split": {"column": "part", "train": {}}}, "split.train"),
    ({"third": {"estimator": RIDGE, "steps": [RIDGE]}}, "rankers.third"),
    ({"third": {"estimator": "sklearn.linear_model.Rigde"}}, "rankers.third.estimator"),
    ({"third": {"estimator": "Ridge"}}, "rankers.third.estimator"),
    ({"third": {"estimator": RIDGE, "params": {"alhpa": 1}}}, "rankers.third"),
    ({"third": {}}, "rankers.third"),
    ({"third": {"steps": []}}, "rankers.third.steps"),
    ({"third": {"steps": [SCALER]}}, "rankers.third.steps.0.estimator"),
    ({"third": {"steps": [RIDGE, RIDGE]}}, "rankers.third.steps.0.estimator"),
    ({"third": {"steps": [{"estimator": SCALER, "prams": {}}, RIDGE]}}, "rankers.third.steps.0.prams"),
    ({"third": {"steps": [{"estimator": SCALER, "name": "ridge"}, RIDGE]}}, "rankers.third.steps"),
    ({"third": {"steps": [{"estimator": SCALER, "name": "a__b"}, RIDGE]}}, "rankers.third.steps"),
    ({"third": {"steps": [{"estimator": SCALER, "name": "memory"}, RIDGE]}}, "rankers.third.steps"),
    ({"third": {"estimator": RIDGE, "early_stopping_rounds": 3}}, "rankers.third.early_stopping_rounds"),
    ({"third": {"steps": STEPS, "early_stopping_rounds": 3}}, "rankers.third.early_stopping_rounds"),
    ({"third": {"estimator": LIGHTGBM, "early_stopping_rounds": 0}}, "rankers.third.early_stopping_rounds"),
    ({"third": {"estimator": LIGHTGBM, "early_stopping_rounds": "x"}}, "rankers.third.early_stopping_rounds"),
    ({"third": {"estimator": LIGHTGBM, "validation_fraction": 0.2}}, "rankers.third.validation_fraction"),
    ({"third": {"estimator": LIGHTGBM, "eval_measure": "AP"}}, "rankers.third.eval_measure"),
    ({"third": {"estimator": LIGHTGBM, "eval_measure": "APP"}}, "rankers.third.eval_measure"),
    ({"third": {"estimator": RIDGE, "grid": {"alpha": 3}}}, "rankers.third.grid.alpha"),
    ({"third": {"estimator": RIDGE, "params": {"alpha": 1}, "grid": {"alpha": [3]}}}, "rankers.third"),
]


def check_wrong(changes, key):
    with pytest.raises(ConfigError) as error:
        run_experiment(experiment(**changes))
    assert error.value.argument == key
    assert "\n" not in str(error.value)
    assert not list(Path().glob("rankeval-out/*/kept"))


def test_a_wrong_key_is_named_in_one_line_before_data_is_loaded():
    """Row by row; the key that fails is in the assertion."""
    for changes, key in WRONG:
        check_wrong(changes, key)


@pytest.mark.needs("catboost")
def test_a_wrong_parameter_of_catboost_is_named_too():
    check_wrong({"third": {"estimator": CATBOOST, "params": {"dpth": 3}}}, "rankers.third")


@pytest.mark.parametrize(
    ("third", "said"),
    each(
        [
            ({"steps": STEPS, "params": {"alpha": 1}}, "no parameter 'alpha'; write 'ridge__alpha'"),
            ({"steps": STEPS, "grid": {"beta": [1]}}, "no parameter 'beta'; a parameter of a part is"),
            ({"steps": STEPS, "grid": {"ridge__alhpa": [1]}}, "rankers.third: Pipeline .*mean 'ridge__alpha'"),
            ({"estimator": LIGHTGBM, "grid": {"estimator__num_leaves": [3]}}, "LGBMRanker .*write 'num_leaves'"),
            ({"estimator": CATBOOST, "grid": {"dpth": [3]}}, "rankers.third: CatBoostRanker .*mean 'depth'"),
            ({"estimator": RIDGE, "search": {"distributions": {"alhpa": {"float": [0, 1]}}}}, "mean 'alpha'"),
        ]
    ),
)
def test_a_parameter_that_the_estimator_lacks_is_answered_with_the_one_that_may_be_meant(third, said):
    with pytest.raises(ConfigError, match=said):
        run_experiment(experiment(third=third))


def test_the_parts_need_a_table():
    with pytest.raises(ConfigError, match=r"split.column names a column of a table, and the loader is 'loads:load'"):
        run_experiment(experiment(split={"column": "part"}))


DISTRIBUTIONS = [[], 3, {"norm": [0, 1]}, {"float": [0, 1], "int": [0, 1]}, {"int": [1, 2.5]}, {"float": [1]}]
DISTRIBUTIONS += [{"float": [0, float("inf")]}, {"log_float": [float("nan"), 1]}, {"int": [0, 10**30]}]
DISTRIBUTIONS += [{"float": [2, 1]}, {"int": [2, 2]}, {"log_float": [0, 1]}, {"int": [False, True]}]


@each_row("one", DISTRIBUTIONS)
def test_a_distribution_that_cannot_be_drawn_is_refused(one):
    with pytest.raises(ConfigError, match=r"alpha is .*; expected a list of values, or one of {int: ") as error:
        run_experiment(experiment(third={"estimator": RIDGE, "search": {"distributions": {"alpha": one}}}))
    assert error.value.argument == "rankers.third.search.distributions"


@each_row(
    ("search", "key"),
    [
        ({"n_iter": 3}, "distributions"),
        ({"distributions": {}}, "distributions"),
        ({"n_iter": 0, "distributions": {"alpha": [1]}}, "n_iter"),
        ({"n_itr": 2, "distributions": {"alpha": [1]}}, "n_itr"),
    ],
)
def test_a_search_that_is_not_whole_is_refused(search, key):
    with pytest.raises(ConfigError) as error:
        run_experiment(experiment(third={"estimator": RIDGE, "search": search}))
    assert error.value.argument == f"rankers.third.search.{key}"


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
