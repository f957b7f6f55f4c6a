"""Searches and cross-validations log themselves, with MLflow's own automatic logging on or off, before or after."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.model_selection
from lightgbm import LGBMRanker
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import possible
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import GuardRefusal, RankevalWarning
from rankeval_mlflow.run_names import NOTE

LIGHT = {"n_estimators": 5, "verbose": -1, "n_jobs": 1, "random_state": 0, "min_child_samples": 2}
ORDERS = ("alone", "mlflow first", "mlflow last", "mlflow again", "mlflow off again")


@pytest.fixture(autouse=True)
def _off():
    """Leave no automatic logging behind."""
    before = vars(sklearn.model_selection._search.BaseSearchCV)["fit"]
    yield
    rkm.autolog(disable=True)
    mlflow.sklearn.autolog(disable=True, silent=True)
    mlflow.autolog(disable=True, silent=True)
    assert vars(sklearn.model_selection._search.BaseSearchCV)["fit"] is before
    assert "fit" not in vars(GridSearchCV)


@pytest.fixture(autouse=True)
def _requirements(monkeypatch):
    """Tell MLflow the packages of its own models: to find them it starts a process, 5 to 10 seconds each."""
    monkeypatch.setattr("mlflow.utils.environment._infer_requirements", lambda *_, **__: ["scikit-learn"])


@pytest.fixture(scope="module")
def data():
    """Return 40 queries of 8 rows, their ids in the index."""
    made = rk.datasets.make_ranking(40, 8, rng=3)
    index = pd.Index(made.qid, name="qid")
    return pd.DataFrame(made.X, columns=list("abcdefghij")[: made.X.shape[1]], index=index), pd.Series(made.y, index)


def _search(estimator=None, grid=None, *, scoring=None, **options):
    return GridSearchCV(
        rk.QueryRanker(LGBMRanker(**LIGHT) if estimator is None else estimator),
        {"estimator__num_leaves": [3, 15]} if grid is None else grid,
        cv=rk.QueryKFold(3),
        scoring=rk.make_scorer("nDCG@10") if scoring is None else scoring,
        **options,
    )


def _switched_on(order, **options):
    if order in {"mlflow first", "mlflow again", "mlflow off again"}:
        mlflow.sklearn.autolog(silent=True)
    rkm.autolog(**options)
    if order in {"mlflow last", "mlflow again"}:
        mlflow.sklearn.autolog(silent=True, log_datasets=False)
    if order == "mlflow off again":
        mlflow.sklearn.autolog(disable=True, silent=True)


@pytest.fixture
def noisy(data):
    """Return an evaluation of noise."""
    X, y = data
    scores = np.random.default_rng(0).normal(size=len(y))
    return rk.evaluate(y.to_numpy(), scores, qid=np.asarray(X.index), measures="nDCG@10", name="noise")


@pytest.fixture
def guarded(data, tmp_path, monkeypatch):
    """Register the data as a test set, so that nothing may be fitted to it."""
    X, y = data
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    guard = rk.Guard("autolog", ledger=tmp_path / "ledger")
    guard.register("kept", X.reset_index(drop=True), y.to_numpy(), qid=np.asarray(X.index))


def _runs(client):
    """Return the runs without a parent, and those with one."""
    runs = client.search_runs(["0"], max_results=1000)
    children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    return [run for run in runs if run not in children], children


@pytest.mark.parametrize("order", ORDERS)
def test_a_search_is_logged_once_in_any_order_of_calls(order, data, client):
    """The run is FINISHED, its children complete, names readable, the best model is there once and predicts alike."""
    _switched_on(order)
    search = _search().fit(*data)
    (parent,), children = _runs(client)
    assert parent.info.status == "FINISHED"
    assert parent.info.run_name == "GridSearchCV of LGBMRanker"
    best = search.best_index_
    folds = np.array([search.cv_results_[f"split{fold}_test_score"] for fold in range(3)])
    assert parent.data.metrics["nDCG_at_10"] == pytest.approx(search.best_score_, rel=1e-15)
    assert "Means of 3 folds" in parent.data.tags["mlflow.note.content"]
    assert parent.data.metrics["nDCG_at_10_sd"] == pytest.approx(np.std(folds[:, best], ddof=1))
    assert parent.data.params["num_leaves"] == str(search.best_params_["estimator__num_leaves"])
    assert not [name for name in parent.data.metrics if "training" in name or "@" in name or "test" in name]
    assert len(children) == 2
    for child in children:
        place = [3, 15].index(int(child.data.params["num_leaves"]))
        assert child.info.status == "FINISHED"
        assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert child.info.run_name == f"num_leaves={[3, 15][place]}"
        assert child.data.metrics["nDCG_at_10"] == pytest.approx(search.cv_results_["mean_test_score"][place])
        steps = client.get_metric_history(child.info.run_id, "nDCG_at_10_fold")
        assert [(metric.step, metric.value) for metric in steps] == list(enumerate(folds[:, place]))
    (model,) = client.search_logged_models(["0"])
    loaded = mlflow.pyfunc.load_model(f"models:/{model.model_id}")
    np.testing.assert_array_equal(loaded.predict(data[0]), search.predict(data[0]))
    assert model.source_run_id == parent.info.run_id
    assert mlflow.active_run() is None


@pytest.mark.further
@pytest.mark.parametrize("order", ORDERS)
def test_other_estimators_are_left_alone(order, data, client):
    """They are logged as without us: by MLflow's automatic logging if it is on, else not at all."""
    _switched_on(order)
    Ridge().fit(*data)
    GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=2, scoring="r2").fit(*data)
    parents, _ = _runs(client)
    names = sorted(run.data.tags["estimator_name"] for run in parents)
    assert names == ([] if order in {"alone", "mlflow off again"} else ["GridSearchCV", "Ridge"])
    assert not any("rankeval.kind" in run.data.tags for run in parents)


@pytest.mark.further
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.usefixtures("guarded")
def test_a_refusal_ends_the_run_as_failed(order, data, client):
    """A refusal is a BaseException, which MLflow's own wrapper leaves RUNNING."""
    _switched_on(order)
    with pytest.raises(GuardRefusal):
        _search().fit(*data)
    (run,), children = _runs(client)
    assert run.info.status == "FAILED"
    assert not children
    assert "GuardRefusal" in run.data.tags["mlflow.note.content"]
    assert mlflow.active_run() is None
    # What comes next is logged again.
    made = rk.datasets.make_ranking(30, 8, rng=99)
    ids = pd.Index(made.qid, name="qid")
    _search(Ridge(), {"estimator__alpha": [1.0]}).fit(pd.DataFrame(made.X, index=ids), pd.Series(made.y, ids))
    assert sorted(run.info.status for run in _runs(client)[0]) == ["FAILED", "FINISHED"]


@pytest.mark.parametrize("order", ["alone", "mlflow first"])
def test_an_error_ends_the_run_as_failed(order, data, client):
    """It reaches the caller unchanged."""
    _switched_on(order)
    with pytest.raises(ValueError, match="fits failed"):
        _search(Ridge(), {"estimator__alpha": [-1.0]}).fit(*data)
    (run,), _ = _runs(client)
    assert run.info.status == "FAILED"
    assert "fits failed" in run.data.tags["mlflow.note.content"]


@pytest.mark.further
@pytest.mark.parametrize("order", ["alone", "mlflow last"])
def test_two_processes(order, data, client):
    """Workers log nothing themselves."""
    _switched_on(order)
    _search(n_jobs=2).fit(*data)
    (parent,), children = _runs(client)
    assert (parent.info.status, len(children)) == ("FINISHED", 2)


@pytest.mark.parametrize(
    ("ranker", "grid", "flavour"),
    [
        (LGBMRanker(**LIGHT), {"estimator__num_leaves": [3]}, "lightgbm"),
        pytest.param("XGBRanker", {"estimator__max_depth": [2]}, "xgboost", marks=pytest.mark.needs("xgboost")),
        pytest.param("CatBoostRanker", {"estimator__depth": [2]}, "catboost", marks=pytest.mark.needs("catboost")),
        (make_pipeline(StandardScaler(), Ridge()), {"estimator__ridge__alpha": [1.0]}, "sklearn"),
    ],
)
def test_the_libraries(ranker, grid, flavour, data, client):
    """The best model is in the flavour of its library, whose own automatic logging keeps out."""
    if isinstance(ranker, str):
        of_catboost = {"iterations": 5, "verbose": False, "allow_writing_files": False}
        options = {"n_estimators": 5, "n_jobs": 1} if flavour == "xgboost" else of_catboost
        ranker = getattr(importlib.import_module(flavour), ranker)(**options)
    mlflow.autolog(silent=True)
    rkm.autolog()
    search = _search(ranker, grid).fit(*data)
    (parent,), children = _runs(client)
    assert len(children) == 1
    (model,) = client.search_logged_models(["0"])
    loaded = mlflow.pyfunc.load_model(f"models:/{model.model_id}")
    assert flavour in loaded.metadata.flavors
    # The last bits of Ridge depend on how the rows lie in memory.
    np.testing.assert_allclose(np.asarray(loaded.predict(data[0]), float), search.predict(data[0]), rtol=1e-12)
    assert {metric.key for metric in model.metrics} >= {"nDCG_at_10"}
    assert parent.inputs.dataset_inputs[0].tags


def test_several_measures_and_one_that_is_better_if_less(data, client):
    """Names of the measures; the value itself, where scikit-learn has the negative."""
    rkm.autolog(log_models=False)
    scorer = rk.make_scorer(["AP", "ARP"])
    search = _search(Ridge(), {"estimator__alpha": [1.0, 1e5]}, scoring=scorer, refit="ARP").fit(*data)
    params = mlflow.search_runs(filter_string="tags.`rankeval.kind` = 'search'").iloc[0]
    assert (params["params.refit"], params["params.measure"]) == ("ARP", "ARP"), "what the search chose by"
    (parent,), _ = _runs(client)
    best = search.best_index_
    assert parent.data.metrics["AP"] == pytest.approx(search.cv_results_["mean_test_AP"][best])
    assert parent.data.metrics["ARP"] == pytest.approx(-search.cv_results_["mean_test_ARP"][best])
    assert parent.data.metrics["ARP"] > 0
    assert not client.search_logged_models(["0"])


def test_a_dict_of_scorers_and_names_of_ones_own(data, client):
    """Scorers of others keep their names, made safe."""
    rkm.autolog(log_models=False)
    scoring = {"ndcg@ten": rk.make_scorer("nDCG@10"), "error": "neg_mean_squared_error"}
    search = _search(Ridge(), {"estimator__alpha": [1.0]}, scoring=scoring, refit="ndcg@ten").fit(*data)
    (parent,), _ = _runs(client)
    assert parent.data.metrics["ndcg_at_ten"] == pytest.approx(search.best_score_)
    assert parent.data.metrics["error"] < 0


def test_the_score_of_a_query_ranker_counts(data, client):
    """Without scoring= a search asks the QueryRanker, which says nDCG@10."""
    rkm.autolog(log_models=False)
    ranker = rk.QueryRanker(Ridge())
    search = GridSearchCV(ranker, {"estimator__alpha": [1.0, 10.0]}, cv=rk.QueryKFold(3)).fit(*data)
    (parent,), _ = _runs(client)
    assert parent.data.metrics["nDCG_at_10"] == pytest.approx(search.best_score_)


def test_randomized_and_halving(data, client):
    """Of a halving search each setting has its iteration."""
    rkm.autolog(log_models=False)
    options = {"cv": rk.QueryKFold(3), "scoring": rk.make_scorer("nDCG@10")}
    grid = {"estimator__alpha": [0.1, 1.0, 10.0, 100.0]}
    RandomizedSearchCV(rk.QueryRanker(Ridge()), grid, n_iter=3, random_state=0, **options).fit(*data)
    halving = HalvingGridSearchCV(rk.QueryRanker(Ridge()), grid, random_state=0, min_resources=100, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows are halved, and queries are cut
        halving.fit(*data)
    parents, children = _runs(client)
    by_name = {run.data.params["search"]: run for run in parents}
    assert sorted(by_name) == ["HalvingGridSearchCV", "RandomizedSearchCV"]
    ours = [
        one for one in children if one.data.tags["mlflow.parentRunId"] == by_name["HalvingGridSearchCV"].info.run_id
    ]
    assert len(ours) == len(halving.cv_results_["iter"]) > 4
    assert {run.data.params["iter"] for run in ours} == {str(one) for one in halving.cv_results_["iter"]}


def test_the_best_settings_only(data, client):
    """As MLflow's max_tuning_runs; the table has all."""
    rkm.autolog(log_models=False, max_tuning_runs=1)
    search = _search(Ridge(), {"estimator__alpha": [1.0, 1e6, 10.0]}).fit(*data)
    (parent,), (child,) = _runs(client)
    assert child.data.params["alpha"] == str(search.best_params_["estimator__alpha"])
    assert parent.data.params["alpha"] == child.data.params["alpha"]
    assert parent.data.params["fit_intercept"] == "True"
    path = client.download_artifacts(parent.info.run_id, "rankeval/search/cv_results.csv")
    assert len(pd.read_csv(path)) == 3


def test_the_active_run_gets_it(data, client):
    """It stays open, and a second search in it has a place of its own."""
    rkm.autolog(log_models=False)
    with mlflow.start_run(run_name="mine") as active:
        _search(Ridge(), {"estimator__alpha": [1.0]}).fit(*data)
        _search(Ridge(), {"estimator__alpha": [5.0]}).fit(*data)
        assert mlflow.active_run().info.run_id == active.info.run_id
    (parent,), children = _runs(client)
    assert parent.info.run_name == "mine"
    assert parent.info.status == "FINISHED"
    assert sorted(run.data.params["alpha"] for run in children) == ["1.0", "5.0"]


@pytest.mark.parametrize("first", ["search", "evaluation"])
def test_means_of_a_search_stay_apart_from_an_evaluation_in_the_run(first, data, client, noisy):
    """One key would have two points, of which MLflow shows the later: a mean over folds for the evaluation's value."""
    rkm.autolog(log_models=False)
    search = _search(Ridge(), {"estimator__alpha": [1.0]})
    with mlflow.start_run() as active:
        if first == "evaluation":
            rkm.log(noisy)
        search.fit(*data)
        again = _search(Ridge(), {"estimator__alpha": [1e6]}).fit(*data)
        if first == "search":
            rkm.log(noisy)
    metrics = client.get_run(active.info.run_id).data.metrics
    assert metrics["nDCG_at_10"] == noisy.aggregate()["nDCG@10"]
    assert metrics["search/nDCG_at_10"] == pytest.approx(search.best_score_)
    assert metrics["search-2/nDCG_at_10"] == pytest.approx(again.best_score_)
    histories = {key: client.get_metric_history(active.info.run_id, key) for key in metrics}
    assert {key for key, points in histories.items() if len(points) > 1} == {
        "search/nDCG_at_10_fold",
        "search-2/nDCG_at_10_fold",
    }


@pytest.mark.parametrize("order", ["alone", "mlflow first", "mlflow last"])
def test_cross_validate_of_scikit_learn(order, data, client):
    """One run, with the folds as steps and the parameters of the ranker."""
    _switched_on(order)
    result = sklearn.model_selection.cross_validate(
        rk.QueryRanker(Ridge()), *data, cv=rk.QueryKFold(3), scoring=rk.make_scorer(["nDCG@10", "AP"])
    )
    (parent,), children = _runs(client)
    assert parent.info.run_name == "cross-validation of Ridge"
    assert parent.data.metrics["nDCG_at_10"] == pytest.approx(result["test_nDCG@10"].mean())
    assert parent.data.metrics["AP_sd"] == pytest.approx(result["test_AP"].std(ddof=1))
    assert len(client.get_metric_history(parent.info.run_id, "AP_fold")) == 3
    assert (parent.data.params["estimator"], parent.data.params["alpha"]) == ("Ridge", "1.0")
    assert not children


def test_cross_validate_of_ours(data, client):
    """However it was imported; searches inside are parts of it."""
    from rankeval import cross_validate

    rkm.autolog(log_folds=True)
    cross_validate(_search(Ridge(), {"estimator__alpha": [1.0, 5.0]}), *data, cv=3, measures="AP", name="nested")
    (parent,), children = _runs(client)
    assert parent.info.run_name == "nested"
    assert parent.data.metrics["AP"] == rkm.load_evaluation(parent.info.run_id).aggregate()["AP"]
    assert len(children) == 3
    assert {run.data.tags["rankeval.kind"] for run in children} == {"fold"}


def test_a_store_that_is_away_does_not_lose_the_search(data, monkeypatch):
    """The search is there; a warning says how to send what is kept."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    rkm.autolog()
    with pytest.warns(RankevalWarning, match="rankeval mlflow resend"):
        search = _search(Ridge(), {"estimator__alpha": [1.0]}).fit(*data)
    assert search.best_score_ > 0


def test_a_model_that_needs_rankeval_is_left_out(data, client):
    """The rest is logged, with a warning."""
    from sklearn.preprocessing import FunctionTransformer

    rkm.autolog()
    ours = make_pipeline(FunctionTransformer(rk.model_selection.query_ids.without_ids), Ridge())
    with pytest.warns(RankevalWarning, match="best model of GridSearchCV.fit was not logged"):
        _search(ours, {"estimator__ridge__alpha": [1.0]}).fit(*data)
    (parent,), _ = _runs(client)
    assert "nDCG_at_10" in parent.data.metrics


def test_switched_off_nothing_is_logged(data, client):
    """And MLflow's own automatic logging is as it was."""
    rkm.autolog()
    rkm.autolog(disable=True)
    _search(Ridge(), {"estimator__alpha": [1.0]}).fit(*data)
    rk.cross_validate(Ridge(), *data, cv=3)
    assert _runs(client) == ([], [])


def test_the_best_model_is_registered(data, client):
    """As with log_ranker."""
    rkm.autolog(registered_model_name="winner")
    _search(Ridge(), {"estimator__alpha": [1.0]}).fit(*data)
    assert client.get_model_version("winner", "1").status == "READY"


def test_a_bug_in_logging_does_not_lose_the_search(data, monkeypatch):
    """Whatever logging raises is a warning; silent, not even that."""
    monkeypatch.setattr("rankeval_mlflow.autologging.search_node", lambda *_, **__: 1 / 0)
    rkm.autolog(log_models=False)
    with pytest.warns(RankevalWarning, match=r"GridSearchCV\.fit was not logged: ZeroDivisionError"):
        assert _search(Ridge(), {"estimator__alpha": [1.0]}).fit(*data).best_score_ > 0
    rkm.autolog(log_models=False, silent=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        _search(Ridge(), {"estimator__alpha": [1.0]}).fit(*data)


def test_ids_may_be_routed(data, client):
    """By `params=` of scikit-learn, where X has no index: the data is found all the same."""
    X, y = data
    rkm.autolog()
    with sklearn.config_context(enable_metadata_routing=True):
        search = _search(Ridge(), {"estimator__alpha": [1.0, 10.0]})
        search.fit(X.to_numpy(), y.to_numpy(), qid=np.asarray(X.index))
    (parent,), children = _runs(client)
    assert len(children) == 2
    assert len(parent.inputs.dataset_inputs) == 1
    tags = {tag.key: tag.value for tag in parent.inputs.dataset_inputs[0].tags}
    scores = rk.evaluate(y.to_numpy(), np.zeros(len(y)), qid=np.asarray(X.index))
    assert tags["rankeval.digest"] == scores.judgments_digest


FIRST = rk.datasets.make_ranking(40, 8, rng=3).X[0, 0]


class Brittle(Ridge):
    """Fails to be fitted if it is told to, always or where the first row of all is among those of training."""

    def __init__(self, alpha=1.0, fails="never", max_iter=None):
        super().__init__(alpha, max_iter=max_iter)
        self.fails = fails

    def fit(self, X, y):
        if self.fails == "always" or (self.fails == "sometimes" and FIRST in np.asarray(X)):
            raise ValueError(f"no fit of {self.fails}\nand more words")
        return super().fit(X, y)


FAILING = {"estimator__fails": ["never", "always", "sometimes"], "estimator__alpha": [1.0, 2.0]}
SEARCHES = {
    "grid": lambda ranker, folds, scorer: GridSearchCV(ranker, FAILING, cv=folds, scoring=scorer),
    "error_score=0": lambda ranker, folds, scorer: GridSearchCV(
        ranker, FAILING, cv=folds, scoring=scorer, error_score=0.0
    ),
    "random": lambda ranker, folds, scorer: RandomizedSearchCV(
        ranker, FAILING, n_iter=6, cv=folds, scoring=scorer, random_state=0
    ),
    "halving": lambda ranker, folds, scorer: HalvingGridSearchCV(
        ranker, FAILING, cv=folds, scoring=scorer, resource="estimator__max_iter", min_resources=2, max_resources=6
    ),
}


@pytest.mark.further
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the test scores")
@each_row("kind", SEARCHES)
def test_a_setting_whose_fits_fail_says_why(kind, data, client):
    """All fits: the run is FAILED, with the reason. Some: a note. The search itself is FINISHED, and counts them."""
    rkm.autolog(log_models=False)
    before = {run.info.run_id for run in client.search_runs(["0"])}
    SEARCHES[kind](rk.QueryRanker(Brittle()), rk.QueryKFold(3), rk.make_scorer("nDCG@10")).fit(*data)
    parents, children = _runs(client)
    (parent,) = [run for run in parents if run.info.run_id not in before]
    children = [run for run in children if run.data.tags["mlflow.parentRunId"] == parent.info.run_id]
    assert parent.info.status == "FINISHED"
    assert "settings failed" in parent.data.tags[NOTE]
    for child in children:
        fails, note = child.data.params["fails"], child.data.tags.get(NOTE, "")
        assert child.info.status == ("FAILED" if fails == "always" else "FINISHED"), child.info.run_name
        if fails == "always":
            assert "3 of 3 fits failed: ValueError: no fit of always" in note
            folder = client.download_artifacts(child.info.run_id, "rankeval/setting/error.txt")
            assert "and more words" in Path(folder).read_text()
        elif fails == "sometimes":
            assert "2 of 3 fits failed: ValueError: no fit of sometimes" in note
        else:
            assert note == ""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore:Scoring failed")
def test_a_search_whose_fits_all_fail_and_folds_that_fail(data, client):
    """The first is FAILED as before; the folds of `cross_validate` are told in its description."""
    X, y = data
    rkm.autolog()
    with pytest.raises(ValueError, match="All the 6 fits failed"):
        _search(Brittle(fails="always"), {"estimator__alpha": [1.0, 2.0]}).fit(X, y)
    odd = rk.QueryRanker(Brittle(fails="sometimes"))
    scorer = rk.make_scorer("nDCG@10")
    sklearn.model_selection.cross_validate(odd, X, y, cv=rk.QueryKFold(3), scoring=scorer)
    (cross, failed), _ = _runs(client)
    assert failed.info.status == "FAILED"
    assert "fits failed: ValueError: no fit of sometimes" in cross.data.tags[NOTE]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the test scores")
def test_failures_of_a_search_within_a_search_are_not_those_of_its_settings(data, client):
    """The inner search tries a setting that fails, and goes on."""
    X, y = data
    rkm.autolog(log_models=False)
    inner = GridSearchCV(
        rk.QueryRanker(Brittle()),
        {"estimator__fails": ["never", "always"]},
        cv=rk.QueryKFold(2),
        scoring=rk.make_scorer("nDCG@10"),
    )
    GridSearchCV(inner, {"estimator__estimator__alpha": [1.0, 2.0]}, cv=rk.QueryKFold(3)).set_params(
        scoring=rk.make_scorer("nDCG@10")
    ).fit(X, y)
    _, children = _runs(client)
    assert [child.info.status for child in children] == ["FINISHED"] * 2
    assert [child.data.tags.get(NOTE, "") for child in children] == ["", ""]
