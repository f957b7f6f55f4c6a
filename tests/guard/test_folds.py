"""A plan over folds: out-of-fold predictions are frozen as one system each, and nothing else may be fitted."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from shown import whole
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, ShuffleSplit

import rankeval as rk
from rankeval.collection.data import RankingData
from rankeval.contamination import refusal
from rankeval.datasets import make_ranking
from rankeval.errors import GuardRefusal, InvalidInput, LedgerError, RankevalWarning
from rankeval.guard.folds import out_of_fold

PROJECT = "folds"
DATA = make_ranking(40, 12, 4, rng=0)
QUERIES = np.unique(DATA.qid)
FOLD_OF_ROW = np.searchsorted(QUERIES, DATA.qid) % 4


@pytest.fixture
def _fresh_workers():
    """End the workers of earlier tests, which know the ledgers of those."""
    get_reusable_executor().shutdown(wait=True)


@pytest.fixture
def test(guard):
    return guard.register("benchmark", DATA)


def search(n_jobs=None, **options):
    return GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [1e-3, 1e6]}, cv=3, n_jobs=n_jobs, **options)


def by_hand(folds, estimator):
    """Fit and predict fold by fold in a loop, on data that no ledger knows."""
    scores = np.full(len(DATA), np.nan)
    for fold in np.unique(folds):
        held_out = folds == fold
        ranker = rk.QueryRanker(estimator).fit(DATA.X[~held_out], DATA.y[~held_out], qid=DATA.qid[~held_out])
        scores[held_out] = ranker.predict(DATA.X[held_out])
    return scores


EXPECTED = by_hand(FOLD_OF_ROW, Ridge())
TUNED = by_hand(FOLD_OF_ROW, search())
PAIRS = [(np.flatnonzero(fold != FOLD_OF_ROW), np.flatnonzero(fold == FOLD_OF_ROW)) for fold in range(4)]


@pytest.mark.parametrize(
    "folds",
    [
        FOLD_OF_ROW,
        FOLD_OF_ROW.tolist(),
        np.array(["a", "b", "c", "d"])[FOLD_OF_ROW],
        PAIRS,
        iter(PAIRS),
        [(fold != FOLD_OF_ROW, fold == FOLD_OF_ROW) for fold in (3, 1, 0, 2)],
        rk.QuerySplit(PredefinedSplit(np.arange(40) % 4)),
        PredefinedSplit(np.arange(40) % 4),
        rk.PredefinedFolds([(QUERIES[np.arange(40) % 4 != k], QUERIES[np.arange(40) % 4 == k]) for k in range(4)]),
    ],
)
def test_each_query_is_scored_by_a_model_that_was_not_fitted_on_it(test, folds):
    """However the folds are given; checked against a plain loop."""
    found = out_of_fold(test.content, {"ridge": Ridge()}, folds)
    assert np.array_equal(found.systems["ridge"], EXPECTED)
    assert found.n_folds == 4


@pytest.mark.parametrize("folds", [3, rk.QueryKFold(3), KFold(3), rk.StratifiedQueryKFold(3)])
def test_any_splitter_that_tests_each_query_once_is_taken(test, folds):
    found = out_of_fold(test.content, {"ridge": Ridge()}, folds)
    assert np.isfinite(found.systems["ridge"]).all()


@pytest.mark.parametrize(
    ("folds", "match"),
    [
        (
            ShuffleSplit(4, test_size=0.25, random_state=0),
            r"query .* is held out (never|\d times) \(\d+ queries",
        ),
        (rk.RepeatedQueryKFold(n_splits=2, n_repeats=2), "out 2 times"),
        (PAIRS[:3], "out never"),
        (np.arange(len(DATA)) % 3, "cuts query"),
        ([(rows, rows) for rows in (np.arange(len(DATA)),)], "cuts query|trains on rows"),
        (FOLD_OF_ROW[:-1], "give the fold of each"),
        ("QueryKFold", "folds is 'QueryKFold'"),
        (object(), "give a number of folds"),
        ([], "no splits|give the fold of each"),
    ],
)
def test_other_folds_are_refused(guard, test, folds, match):
    """Before anything is fitted or written."""
    head = guard.head
    with pytest.raises(InvalidInput, match=match):
        guard.freeze(test, systems={"ridge": Ridge()}, folds=folds)
    assert guard.head == head


def test_what_cannot_be_fitted_is_refused(guard, test):
    for system in (DATA.X[:, 0], Ridge, "ridge"):
        with pytest.raises(InvalidInput, match="give an estimator, fitted or not"):
            guard.freeze(test, systems={"ridge": Ridge(), "other": system}, folds=4)
    with pytest.warns(RankevalWarning, match="RG001"):
        bare = guard.register("no features", y=make_ranking(40, 12, rng=5).y, qid=DATA.qid)
    with pytest.raises(InvalidInput, match="registered without X"):
        guard.freeze(bare, systems={"ridge": Ridge()}, folds=4)


def test_one_estimator_over_all_folds_is_one_look(guard, test):
    systems = {"weak": Ridge(alpha=1e6), "ridge": Ridge()}
    plan = guard.freeze(test, systems=systems, folds=4, baseline="weak")
    assert guard.looks(test).empty  # nothing was scored yet
    opened = guard.open(plan)
    assert guard.looks(test)["system"].tolist() == ["ridge"]
    scores = rk.evaluate(DATA.y, out_of_fold(test.content, systems, 4).systems["ridge"], qid=DATA.qid)
    assert opened.evaluations["ridge"].aggregate()["nDCG@10"] == scores.aggregate()["nDCG@10"]


def test_the_plan_and_its_comparison_say_that_it_is_over_folds(guard, test):
    plan = guard.freeze(test, systems={"ridge": Ridge()}, folds=rk.QueryKFold(4))
    assert "over 4 folds (queries " in whole(plan)
    opened = guard.open(plan)
    (note,) = [one for one in opened.notes if one.startswith("over 4 folds")]
    assert "a model that was not fitted on it" in note
    assert "the procedure on this collection" in note
    assert opened.evaluations["ridge"].facts.n_folds == 4
    again = guard.plan(plan.id)
    assert (again.folds, again.n_folds) == (plan.folds, 4)


def test_the_folds_are_in_the_hash_of_the_plan_and_their_order_is_not(guard, test):
    """The same rankings by other training parts are another plan."""
    smaller = [(train[DATA.qid[train] != DATA.qid[train[0]]], held) for train, held in PAIRS]
    given = (PAIRS, PAIRS[::-1], FOLD_OF_ROW, smaller)
    words = [out_of_fold(test.content, {"ridge": Ridge()}, folds).folds for folds in given]
    assert words[0] == words[1] == words[2] != words[3]
    over = guard.freeze(test, systems={"ridge": Ridge()}, folds=PAIRS)
    plain = guard.freeze(test, systems={"ridge": EXPECTED})
    assert over.systems == plain.systems
    assert over.id != plain.id


@pytest.mark.usefixtures("_fresh_workers")
@pytest.mark.parametrize("scoring", [rk.make_scorer("nDCG@10"), None])
@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.rest)])
def test_tuning_is_nested_and_not_refused(guard, test, scoring, n_jobs):
    """Also in workers, and with the ranker's own score; the same rankings as a search on unregistered data."""
    found = guard.freeze(test, systems={"search": search(n_jobs, scoring=scoring)}, folds=FOLD_OF_ROW)
    assert found.systems == guard.freeze(test, systems={"search": TUNED}).systems


@pytest.mark.usefixtures("_fresh_workers")
def test_folds_are_fitted_in_workers_if_joblib_says_so(guard, test):
    with joblib.parallel_config("loky", n_jobs=2):
        plan = guard.freeze(test, systems={"ridge": Ridge()}, folds=FOLD_OF_ROW)
    assert plan.id == guard.freeze(test, systems={"ridge": Ridge()}, folds=FOLD_OF_ROW).id


class Studied(BaseEstimator):
    """Tunes by Optuna when it is fitted."""

    def fit(self, X, y, qid):
        optuna = pytest.importorskip("optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))
        data = RankingData(X, y, qid)
        study.optimize(rk.optuna_objective(Ridge(), {"alpha": [1e-3, 1e6]}, data, cv=3), n_trials=2)
        self.ranker_ = rk.QueryRanker(Ridge(**study.best_params)).fit(X, y, qid=qid)
        return self

    def predict(self, X):
        return self.ranker_.predict(X)


def test_a_search_by_optuna_is_not_refused(guard, test):
    plan = guard.freeze(test, systems={"studied": Studied()}, folds=FOLD_OF_ROW)
    assert plan.n_folds == 4


def test_outside_of_a_freeze_the_same_fits_are_refused(guard, test):
    """Also after a freeze that failed."""
    guard.freeze(test, systems={"search": search()}, folds=FOLD_OF_ROW)

    class Broken(Ridge):
        def fit(self, X, y):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        guard.freeze(test, systems={"broken": Broken()}, folds=FOLD_OF_ROW)
    train, _ = PAIRS[0]
    with pytest.raises(GuardRefusal):
        rk.QueryRanker(Ridge()).fit(DATA.X[train], DATA.y[train], qid=DATA.qid[train])
    with pytest.raises(GuardRefusal):
        rk.cross_validate(Ridge(), DATA, cv=4)
    with pytest.raises(GuardRefusal):
        rk.evaluate(DATA.y, EXPECTED, qid=DATA.qid)


@pytest.mark.rest
@pytest.mark.usefixtures("_fresh_workers")
def test_outside_of_a_freeze_a_reused_worker_that_fitted_folds_before_refuses(guard, test):
    guard.freeze(test, systems={"search": search(2)}, folds=FOLD_OF_ROW)
    with pytest.raises(GuardRefusal):
        joblib.Parallel(n_jobs=2)(
            joblib.delayed(rk.QueryRanker.fit)(rk.QueryRanker(Ridge()), DATA.X[rows], DATA.y[rows], qid=DATA.qid[rows])
            for rows, _ in PAIRS
        )


def test_inside_a_freeze_other_registered_collections_are_still_refused(guard, test):
    other = make_ranking(40, 12, 4, rng=7)
    guard.register("other", other)

    class Curious(Ridge):
        def fit(self, X, y):
            rk.QueryRanker(Ridge()).fit(other.X, other.y, qid=other.qid)
            return super().fit(X, y)

    with pytest.raises(GuardRefusal):
        guard.freeze(test, systems={"curious": Curious()}, folds=FOLD_OF_ROW)


@pytest.mark.usefixtures("test")
def test_a_benchmark_that_another_project_registered_too_may_be_frozen():
    other = rk.Guard("other")
    plan = other.freeze(other.register("theirs", DATA), systems={"ridge": Ridge()}, folds=FOLD_OF_ROW)
    assert plan.project == "other"


def test_an_allowance_ends_with_its_context_even_where_it_was_received():
    """A worker that outlives the freeze keeps the name of a file that is gone."""
    with refusal.allowed(["one"]):
        sent = refusal.granted()
    refusal.Allowance().__setstate__(sent)
    assert sent
    assert not refusal.is_allowed("one")
    assert refusal.granted() == {}


def test_a_plan_over_folds_may_test_on_fresh_queries_alone(guard, test):
    """Models are fitted on all training parts; only queries that nobody looked at are tested."""
    half = np.isin(DATA.qid, QUERIES[:20])
    with pytest.warns(RankevalWarning, match="RG003"):
        seen = guard.register("seen", DATA.X[half], DATA.y[half], qid=DATA.qid[half])
    guard.open(guard.freeze(seen, systems={"a": DATA.X[half, 0]}))
    plan = guard.freeze(test, systems={"ridge": Ridge()}, folds=FOLD_OF_ROW, fresh=True)
    opened = guard.open(plan)
    assert sorted(opened.evaluations["ridge"].queries.tolist()) == QUERIES[20:].tolist()
    assert opened.means["n_queries"].tolist() == [20]


def test_a_retired_collection_is_refused_before_anything_is_fitted(guard, test):
    guard.retire(test, "given up")
    with pytest.raises(LedgerError, match="retired"):
        guard.freeze(test, systems={"ridge": Ridge()}, folds=4)


def test_copies_of_a_query_in_two_folds_are_warned_about(guard):
    twice = DATA.take(np.tile(np.arange(len(DATA)), 2))
    ids = np.concatenate([DATA.qid, DATA.qid + 1000])
    test = guard.register("twice", twice.X, twice.y, qid=ids)
    with pytest.warns(RankevalWarning, match="80 queries held out by folds= have the content"):
        guard.freeze(test, systems={"ridge": Ridge()}, folds=np.repeat([0, 1], len(DATA)))


@pytest.mark.further
@pytest.mark.shared
def test_the_five_folds_of_letor_are_one_registration(guard, shared):
    """Their test parts together. The training part of fold 2 holds the test part of fold 1."""
    root = shared / "letor_cranfield"
    parts = [rk.datasets.load_letor_parts(root / f"Fold{fold}") for fold in range(1, 6)]
    first, second = set(parts[0]["test"].qid.tolist()), set(parts[1]["train"].qid.tolist())
    assert first <= second | set(parts[1]["vali"].qid.tolist())
    X = np.concatenate([part["test"].X for part in parts])
    y = np.concatenate([part["test"].y for part in parts])
    qid = np.concatenate([part["test"].qid for part in parts])
    test = guard.register("letor", X, y, qid=qid)
    trained = [np.concatenate([part["train"].qid, part["vali"].qid]) for part in parts]
    folds = [(np.isin(qid, train), np.isin(qid, part["test"].qid)) for train, part in zip(trained, parts, strict=True)]
    systems = {"heavy": Ridge(alpha=1e6), "ridge": Ridge()}
    plan = guard.freeze(test, systems=systems, folds=folds, baseline="heavy")
    assert plan.id == guard.freeze(test, systems=systems, folds=rk.PredefinedFolds.read(root), baseline="heavy").id
    opened = guard.open(plan)
    assert len(guard.looks(test)) == 1
    assert opened.evaluations["ridge"].n_queries == len(set(qid.tolist()))
    for part in parts:
        for name in ("train", "test"):
            with pytest.raises(GuardRefusal):
                rk.QueryRanker(Ridge()).fit(part[name].X, part[name].y, qid=part[name].qid)
