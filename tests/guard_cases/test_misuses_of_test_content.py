"""Misuse of registered content: fitted, searched over or scored, in whatever form it comes."""

import lightgbm
import numpy as np
import optuna
import pandas as pd
import pytest
from guard_cases.situations import (
    N_TEST,
    REFUSED,
    WARNED,
    changed,
    misuse,
    relabelled,
    renamed,
    stacked,
)
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import rankeval as rk
from rankeval.errors import GuardRefusal, RankevalWarning


def added(X):
    return np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 1))])


FEATURES = {
    "as they are": lambda X: X,
    "a column added": added,
    "standardised": lambda X: (X - X.mean(axis=0)) / X.std(axis=0),
    "a column dropped": lambda X: X[:, :4],
    "reordered": lambda X: X[:, [3, 1, 4, 0, 2]],
    "a monotone map": lambda X: 1 / (1 + np.exp(-X)),
}


@pytest.mark.parametrize("ids", ["the same ids", "other ids"])
@pytest.mark.parametrize("features", FEATURES)
@misuse(REFUSED, rows=[2])
def test_beside_dev_with_changed_features(guarded, features, ids):
    """More than three times as many dev rows, and one change to the features of all rows; nearly all are told."""
    test = guarded.test if ids == "the same ids" else renamed(guarded.test)
    data = stacked(guarded.dev, test)
    X = FEATURES[features](data.X)
    with pytest.raises(GuardRefusal, match=r"(?s)(3[6-9]|40) of its 40.*guard\.freeze"):
        rk.QueryRanker(Ridge()).fit(X, data.y, qid=data.qid)
    with pytest.raises(GuardRefusal, match=r"(3[6-9]|40) of its 40"):
        rk.cross_validate(Ridge(), X, data.y, qid=data.qid, measures="AP", cv=2)


NEARLY = {
    "one more": lambda test, dev: stacked(test, dev.take(dev.qid == N_TEST + 1)),
    "five more": lambda test, dev: stacked(test, dev.take(dev.qid <= N_TEST + 5)),
    "one less": lambda test, _: test.take(test.qid < N_TEST),
    "half": lambda test, _: test.take(test.qid <= N_TEST // 2),
    "half, beside as many": lambda test, dev: stacked(test.take(test.qid <= N_TEST // 2), dev.take(np.arange(20 * 12))),
}


@pytest.mark.parametrize("docid", [False, True], ids=["ids", "ids and documents"])
@pytest.mark.parametrize("part", NEARLY)
@misuse(REFUSED, rows=[3])
def test_a_ranking_of_nearly_the_test(desk, part, docid):
    """After an opening, another ranking: of one or five queries more, one less, or 20 of 40."""
    test, dev = (with_documents(one) if docid else one for one in (desk.test, desk.dev))
    desk.look("test", test, 0, 1)
    data = NEARLY[part](test, dev)
    n = int(np.isin(np.unique(data.qid), test.qid).sum())
    with pytest.raises(GuardRefusal, match=f"{n} of its 40"):
        rk.evaluate(data.y, data.X[:, 2], qid=data.qid, docid=data.docid)


def with_documents(data):
    """Give each row a document that stands under several queries."""
    documents = np.random.default_rng(int(data.qid[0])).integers(0, 5000, len(data))
    return changed(data, docid=np.array([f"d{document}" for document in documents]))


def evaluate(data, rows):
    rk.evaluate(data.y[rows], data.X[rows, 2], qid=data.qid[rows])


def fit(data, rows):
    rk.QueryRanker(Ridge()).fit(data.X[rows], data.y[rows], qid=data.qid[rows])


@pytest.mark.filterwarnings("ignore::rankeval.errors.RankevalWarning")
@pytest.mark.parametrize(("act", "most"), [(evaluate, N_TEST // 2), (fit, 2)])
@misuse(REFUSED, rows=[3])
def test_a_loop_query_by_query(guarded, act, most):
    """What earlier calls of the process showed is remembered: the loop stops long before its end."""
    data, done = guarded.test, 0
    with pytest.raises(GuardRefusal, match="shown before"):  # noqa: PT012 - the loop is what is refused
        for query in np.unique(data.qid):
            act(data, data.qid == query)
            done += 1
    assert done <= most


@pytest.mark.parametrize("others", [False, True], ids=["alone", "beside dev"])
@misuse(REFUSED, rows=[2, 3])
def test_five_percent_relabelled(guarded, others):
    """By ids and labels when it is scored, and by features when it is fitted."""
    data = relabelled(guarded.test)
    if others:
        data = stacked(guarded.dev, data)
    with pytest.raises(GuardRefusal, match="labels agree far beyond chance"):
        rk.evaluate(data.y, data.X[:, 2], qid=data.qid)
    with pytest.raises(GuardRefusal):
        rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid)


@misuse(REFUSED, rows=[2, 3])
def test_judgments_changed_a_little(desk):
    """A collection of documents with 5 % relabelled, a query more, and half of it, under other ids too."""
    rng = np.random.default_rng(3)

    def judged(names):
        return {q: {f"d{d}": int(rng.integers(0, 3)) for d in rng.choice(5000, 20, False)} for q in names}

    qrels = judged([f"q{q}" for q in range(30)])
    desk.guard().register("papers", qrels=qrels)
    forms = {
        "relabelled": {q: {d: rel + (rng.random() < 0.05) for d, rel in docs.items()} for q, docs in qrels.items()},
        "a query more": qrels | judged(["new"]),
        "half": dict(list(qrels.items())[::2]),
        "other ids": {f"topic {q}": docs for q, docs in qrels.items()} | judged(["a", "b"]),
    }
    for form, given in forms.items():
        run = {q: {d: float(rng.random()) for d in docs} for q, docs in given.items()}
        with pytest.raises(GuardRefusal, match="papers"):
            rk.evaluate(given, run, name=form)


@misuse(WARNED, rows=[2, 6])
def test_one_query_among_training_data(guarded):
    """One query is too little to refuse; the warning names it."""
    one = guarded.test.take(guarded.test.qid == 17)
    data = stacked(guarded.dev, one)
    with pytest.warns(RankevalWarning, match=r"1 of its 40(?s:.*)\b17\b"):
        rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid)


@misuse(REFUSED, rows=[6])
def test_a_refusal_that_says_which_queries_and_the_way_out(guarded):
    """Three of 40 queries: how many, which, registered by whom, and a mask that takes them out."""
    data = stacked(guarded.dev, guarded.test.take(np.isin(guarded.test.qid, [3, 5, 8])))
    with pytest.raises(GuardRefusal) as refused:
        rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid)
    said = str(refused.value)
    for part in ("3 of its 40", "3, 5, 8", "registered by", ".rows", "~", "exempt", "retire"):
        assert part in said, part
    rows = guarded.guard().status(data).rows
    assert set(data.qid[rows]) == {3, 5, 8}
    rk.QueryRanker(Ridge()).fit(data.X[~rows], data.y[~rows], qid=data.qid[~rows])


def grid_search_in_two_workers(data):
    cv = [(np.flatnonzero(data.qid % 2 == part), np.flatnonzero(data.qid % 2 != part)) for part in (0, 1)]
    scorer = rk.make_scorer("nDCG@10", qid=pd.Series(data.qid))
    search = GridSearchCV(Ridge(), {"alpha": [1, 2]}, scoring=scorer, cv=cv, n_jobs=2, error_score=np.nan)
    search.fit(data.X, pd.Series(data.y))


def study_of_optuna(data):
    scorer, model = rk.make_scorer("nDCG@10"), Ridge().fit(np.eye(5), np.arange(5))
    objective = lambda _: scorer(model, data.X, data.y, qid=data.qid)  # noqa: E731 - as people write it
    optuna.create_study().optimize(objective, n_trials=3, catch=(Exception,))


@pytest.mark.usefixtures("_fresh_workers")
@pytest.mark.parametrize("search", [pytest.param(grid_search_in_two_workers, marks=pytest.mark.rest), study_of_optuna])
@misuse(REFUSED)
def test_a_search_over_the_test(guarded, search):
    """Scikit-learn would turn an error into nan, and Optuna into a failed trial: a refusal gets through."""
    with pytest.raises(GuardRefusal, match="'test'"):
        search(changed(guarded.test, X=2 * guarded.test.X))


@misuse(REFUSED)
def test_early_stopping_on_the_test(guarded):
    """The test as the validation part of a fit on dev, with one feature more."""
    dev, test = (changed(one, X=np.column_stack([one.X, one.X[:, 0] ** 2])) for one in (guarded.dev, guarded.test))
    booster = lightgbm.LGBMRanker(n_estimators=5, verbose=-1, n_jobs=1)
    with pytest.raises(GuardRefusal, match="'test'"):
        rk.QueryRanker(booster, early_stopping_rounds=2).fit(
            dev.X, dev.y, qid=dev.qid, eval_set=(test.X, test.y), eval_qid=test.qid
        )


@misuse(REFUSED, rows=[8])
def test_folds_of_a_registered_benchmark_outside_the_freeze(guarded):
    """Its folds may be fitted inside the freeze only, and not afterwards either."""
    guard = guarded.guard()
    registered = guard.register("test", guarded.test)
    guard.freeze(registered, systems={"a": Ridge(), "b": Ridge(1e4)}, folds=rk.QueryKFold(4), n_resamples=199)
    with pytest.raises(GuardRefusal, match="'test'"):
        rk.cross_validate(Ridge(), guarded.test, measures="AP", cv=4)
    part = guarded.test.qid <= 30
    with pytest.raises(GuardRefusal, match="'test'"):
        rk.QueryRanker(Ridge()).fit(guarded.test.X[part], guarded.test.y[part], qid=guarded.test.qid[part])
