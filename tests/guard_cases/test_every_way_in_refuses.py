"""Every way into the library refuses a registered test collection, in whatever form the content comes."""

import os
import subprocess
import sys

import joblib
import numpy as np
import optuna
import pandas as pd
import pytest
from joblib.externals.loky import get_reusable_executor
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import GuardRefusal

N_QUERIES = 40


@pytest.fixture
def data():
    return rk.datasets.make_ranking(N_QUERIES, 12, 5, rng=11)


@pytest.fixture
def guard(tmp_path, monkeypatch, data):
    """Register the data in a ledger that the process finds by itself, as its workers do."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    forget()
    guard = rk.Guard("project")
    guard.register("test", data.X, data.y, qid=data.qid)
    yield guard
    forget()


@pytest.fixture
def _fresh_workers():
    """End the workers of earlier tests, which have the environment of those."""
    get_reusable_executor().shutdown(wait=True)


def renamed(data):
    return np.array([f"topic-{1000 - q}" for q in data.qid])


def folds_for(search, X, y, qid):
    """Search without routing, on folds over queries given as rows, with ids bound to the scorer."""
    y = pd.Series(y)
    cv = [(np.flatnonzero(qid % 2 == part), np.flatnonzero(qid % 2 != part)) for part in (0, 1)]
    return search(cv, rk.make_scorer("nDCG@10", qid=pd.Series(qid)), X, y)


# What one may do with labels and scores -----------------------------------------------------------------------------


def evaluate_as_it_is(data):
    rk.evaluate(data.y, data.X[:, 0], qid=data.qid)


def evaluate_by_group_sizes(data):
    rk.evaluate(data.y, data.X[:, 0], group=np.full(N_QUERIES, 12))


def evaluate_with_float_labels_in_lists(data):
    rk.evaluate([float(label) for label in data.y], list(data.X[:, 0]), qid=list(data.qid))


def evaluate_most_of_it(data):
    part = data.qid <= 32
    rk.evaluate(data.y[part], data.X[part, 0], qid=data.qid[part])


# What one may do with estimators ------------------------------------------------------------------------------------


def fit_a_ranker(data):
    rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid)


def fit_a_frame(data):
    rk.QueryRanker(Ridge()).fit(pd.DataFrame(data.X, columns=list("abcde")), data.y, qid=data.qid)


def fit_a_sparse_matrix(data):
    rk.QueryRanker(Ridge()).fit(sparse.csr_matrix(data.X), data.y, qid=data.qid)


def cross_validate_it(data):
    rk.cross_validate(Ridge(), data.X, data.y, qid=renamed(data), measures=["nDCG@10"], cv=3)


def cross_validate_a_tenth_of_it(data):
    part = data.qid % 10 == 0
    rk.cross_validate(Ridge(), data.X[part], data.y[part], qid=data.qid[part], measures="AP", cv=2)


def score_by_a_scorer(data):
    model = Ridge().fit(np.eye(5), np.arange(5))
    rk.make_scorer("nDCG@10")(model, data.X, data.y, qid=data.qid)


def grid_search(n_jobs):
    def search(cv, scorer, X, y):
        GridSearchCV(Ridge(), {"alpha": [1, 2]}, scoring=scorer, cv=cv, n_jobs=n_jobs, error_score=np.nan).fit(X, y)

    return lambda data: folds_for(search, data.X, data.y, data.qid)


def random_search(data):
    def search(cv, scorer, X, y):
        RandomizedSearchCV(Ridge(), {"alpha": [1, 2, 3]}, n_iter=2, scoring=scorer, cv=cv, random_state=0).fit(X, y)

    folds_for(search, data.X, data.y, data.qid)


def cross_val(n_jobs):
    def search(cv, scorer, X, y):
        cross_val_score(Ridge(), X, y, scoring=scorer, cv=cv, n_jobs=n_jobs, error_score=np.nan)

    return lambda data: folds_for(search, data.X, data.y, data.qid)


def optuna_objective(data):
    study = optuna.create_study(direction="maximize")
    study.optimize(rk.optuna_objective(Ridge(), {"alpha": [0.1, 1.0]}, data), n_trials=2, catch=(Exception,))


def learning_curve(data):
    rk.learning_curve(Ridge(), data)


def several_rankers_nested(data):
    search = GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [0.1, 1.0]})
    rk.cross_validate({"tuned": search, "plain": Ridge()}, data)


def loop_over_seeds_in_workers(data):
    joblib.Parallel(n_jobs=2)(
        joblib.delayed(rk.evaluate)(data.y, np.random.default_rng(seed).normal(size=len(data)), qid=data.qid)
        for seed in range(2)
    )


MISUSE = [
    evaluate_as_it_is,
    evaluate_by_group_sizes,
    evaluate_with_float_labels_in_lists,
    evaluate_most_of_it,
    fit_a_ranker,
    fit_a_frame,
    fit_a_sparse_matrix,
    cross_validate_it,
    cross_validate_a_tenth_of_it,
    score_by_a_scorer,
    pytest.param(grid_search(1), id="grid search"),
    random_search,
    pytest.param(cross_val(1), id="cross_val_score"),
    pytest.param(cross_val(2), id="cross_val_score in two workers", marks=pytest.mark.rest),
    optuna_objective,
    learning_curve,
    several_rankers_nested,
    pytest.param(loop_over_seeds_in_workers, marks=pytest.mark.rest),
]


@pytest.mark.usefixtures("_fresh_workers")
@pytest.mark.parametrize("misuse", MISUSE)
def test_misuse_is_refused(guard, data, misuse):
    with pytest.raises(GuardRefusal, match=r"(?s)test collection 'test' of project 'project'.*ledger\.db.*freeze"):
        misuse(data)
    assert len(guard.looks("test")) == 0


@pytest.mark.further
def test_workers_that_began_while_ledgers_were_off_refuse_too(tmp_path, monkeypatch, data):
    """Workers of joblib live on, and keep the environment in which they began."""
    get_reusable_executor().shutdown(wait=True)
    monkeypatch.setenv("RANKEVAL_LEDGER", "off")
    forget()
    joblib.Parallel(n_jobs=2)(joblib.delayed(os.getpid)() for _ in range(4))
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    forget()
    rk.Guard("project").register("test", data)
    with pytest.raises(GuardRefusal, match=r"ledger\.db"):
        grid_search(2)(data)
    get_reusable_executor().shutdown(wait=True)
    forget()


@pytest.mark.further
@pytest.mark.usefixtures("_fresh_workers")
def test_a_scorer_that_is_older_than_the_guard_refuses_in_workers_too(tmp_path, monkeypatch, data):
    """The guard's ledger is its own: the workers can learn of it only from the scorer."""
    monkeypatch.delenv("RANKEVAL_LEDGER")
    monkeypatch.chdir(tmp_path)
    forget()
    qid = data.qid
    scorer = rk.make_scorer("nDCG@10", qid=pd.Series(qid))
    rk.Guard("project", ledger=tmp_path / "elsewhere.db").register("test", data)
    cv = [(np.flatnonzero(qid % 2 == 0), np.flatnonzero(qid % 2 == 1))]
    with pytest.raises(GuardRefusal, match=r"elsewhere\.db"):
        cross_val_score(Ridge(), data.X, pd.Series(data.y), scoring=scorer, cv=cv, n_jobs=2, error_score=np.nan)
    forget()


def test_an_objective_that_is_older_than_the_registration_fails_its_trial_and_stops_the_study(
    tmp_path, monkeypatch, data
):
    """Optuna would leave the trial RUNNING."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    forget()
    objective = rk.optuna_objective(Ridge(), {"alpha": [0.1, 1.0]}, data)
    study = optuna.create_study(direction="maximize")
    study.optimize(objective, n_trials=2)
    rk.Guard("project").register("test", data.X, data.y, qid=data.qid)
    with pytest.raises(GuardRefusal, match="test collection 'test'"):
        study.optimize(objective, n_trials=5, catch=(Exception,))
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE", "FAIL"]
    forget()


POOLS = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.pool import ThreadPool
import joblib
import rankeval as rk

def work(_):
    data = rk.datasets.make_ranking(40, 12, 5, rng=11)
    return rk.evaluate(data.y, data.X[:, 0], qid=data.qid)

def in_threads(_):
    with joblib.parallel_config("threading", n_jobs=2):
        return joblib.Parallel()(joblib.delayed(work)(number) for number in range(2))

def in_an_executor(_):
    with ThreadPoolExecutor(2) as executor:
        return list(executor.map(work, range(2)))

def said(call):
    try:
        call()
    except BaseException as error:
        print(type(error).__name__)

if __name__ == "__main__":
    said(lambda: in_threads(0))
    said(lambda: in_an_executor(0))
    with ThreadPool(2) as pool:
        said(lambda: pool.map(work, range(2)))
    with get_context("fork").Pool(2) as pool:
        said(lambda: pool.apply_async(work, (0,)).get())
        said(lambda: pool.map(in_threads, range(2)))
        said(lambda: pool.map(in_an_executor, range(2)))
"""


@pytest.mark.further
@pytest.mark.usefixtures("guard")
def test_a_pool_of_multiprocessing_gets_an_exception_and_joblib_and_executors_the_refusal(tmp_path):
    """In a program of its own, because it would hang otherwise; also if a call in a pool starts threads."""
    (tmp_path / "pools.py").write_text(POOLS)
    done = subprocess.run(
        [sys.executable, "pools.py"],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["GuardRefusal"] * 2 + ["GuardRefusalError"] * 4


class TestCollections:
    @pytest.fixture
    def qrels(self):
        rng = np.random.default_rng(1)
        return {f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in rng.choice(500, 15, False)} for q in range(20)}

    @pytest.fixture
    def _registered(self, tmp_path, monkeypatch, qrels):
        monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
        forget()
        rk.Guard("project").register("test", qrels=qrels)
        yield
        forget()

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda qrels: qrels, id="as it is"),
            pytest.param(lambda qrels: {f"topic {q}": docs for q, docs in qrels.items()}, id="renamed"),
            pytest.param(lambda qrels: dict(list(qrels.items())[5:9]), id="a part"),
            pytest.param(
                lambda qrels: rk.Qrels.from_dict(qrels).to_frame().sample(frac=1, random_state=0), id="shuffled"
            ),
            pytest.param(
                lambda qrels: {q: {d: int(rel > 0) for d, rel in docs.items()} for q, docs in qrels.items()},
                id="binary",
            ),
        ],
    )
    @pytest.mark.usefixtures("_registered")
    def test_a_collection_is_refused(self, qrels, change):
        run = {q: dict.fromkeys(docs, 1.0) for q, docs in qrels.items()}
        with pytest.raises(GuardRefusal, match=r"of its \d+ queries are in the data"):
            rk.evaluate(change(qrels), run, missing="zero")
