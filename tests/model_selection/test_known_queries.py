"""A search that fits some rows of a query and scores others is told once; one that keeps queries whole never."""

from __future__ import annotations

import pickle
import warnings

import forking
import numpy as np
import pandas as pd
import pytest
import sklearn
from lightgbm import LGBMRanker
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import possible
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankeval as rk
from rankeval.errors import QueryCutWarning, RankevalWarning

BOOSTER = LGBMRanker(n_estimators=4, min_child_samples=5, n_jobs=1, verbose=-1)
RANKERS = {
    "ranker": rk.QueryRanker(BOOSTER),
    "pipeline": make_pipeline(StandardScaler(), rk.QueryRanker(Ridge())),
}
TIMES = {f"q{number}": number for number in range(30)}


def searched(kind, **options):
    """Return a call that fits a search over a parameter without consequence."""
    space = {"estimator__importance_type": ["split", "gain"]}
    return lambda one, X, y, **told: kind(one, space, **options, **told).fit(X, y)


CALLS = {
    "cross_val_score": cross_val_score,
    "cross_validate with training scores": lambda *data, **told: cross_validate(*data, return_train_score=True, **told),
    "learning_curve": lambda *data, **told: learning_curve(*data, train_sizes=[0.5, 1.0], **told),
    "validation_curve": lambda *data, **told: validation_curve(
        *data, param_name="estimator__importance_type", param_range=["split"], **told
    ),
    "permutation_test_score": lambda *data, **told: permutation_test_score(*data, n_permutations=2, **told),
    "grid": searched(GridSearchCV),
    "random": searched(RandomizedSearchCV, n_iter=2),
}


def caught(call):
    """Return the warnings of cut queries, each time one is given."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [one for one in found if issubclass(one.category, QueryCutWarning)]


def told(call, ranker, ltr, cv, **options):
    return caught(lambda: call(ranker, ltr.X, ltr.y_indexed, cv=cv, **options))


@pytest.mark.further
@pytest.mark.parametrize("ranker", RANKERS)
def test_a_splitter_of_rows_is_told_once_and_one_of_queries_never(ranker, ltr):
    """By a scorer, and by the ranker's own score."""
    scorer = rk.make_scorer("AP")
    scorings = [scorer, scorer, rk.make_scorer(["AP", "RR"])]
    for scoring in [*scorings, None]:
        call = cross_validate if scoring is scorings[-1] else cross_val_score
        if ranker == "pipeline" and scoring is None:
            continue  # its score needs routing
        for cv in (3, KFold(3, shuffle=True, random_state=0), ShuffleSplit(2, random_state=0)):
            (one,) = told(call, RANKERS[ranker], ltr, cv, scoring=scoring)
            assert "use cv=rankeval.QueryKFold(...)" in str(one.message)
            assert one.filename == __file__
        for cv in (rk.QueryKFold(3), rk.QuerySplit(ShuffleSplit(2, random_state=0)), rk.QueryTimeSplit(3, times=TIMES)):
            assert not told(call, RANKERS[ranker], ltr, cv, scoring=scoring)
    assert issubclass(QueryCutWarning, RankevalWarning)


@pytest.mark.further
@pytest.mark.parametrize("call", CALLS)
def test_every_search_tells_it_once(call, ltr):
    """And again in the next search, though ranker, scorer and data are the same."""
    scorer = rk.make_scorer("AP")
    for _ in range(2):
        (one,) = told(CALLS[call], RANKERS["ranker"], ltr, 3, scoring=scorer)
        assert one.filename == __file__
    assert not told(CALLS[call], RANKERS["ranker"], ltr, rk.QueryKFold(3), scoring=scorer)


@pytest.mark.parametrize("source", ["qid", "query", "column", "X"])
def test_the_rows_of_a_query_are_known_from_every_source_of_ids(source, ltr):
    X, y, scorer, params = ltr.frame, pd.Series(ltr.y), rk.make_scorer("AP"), None
    ranker = rk.QueryRanker(Ridge())
    if source in ("qid", "query"):
        params = {source: ltr.qid, "weight": np.ones(len(ltr.y))}
        scorer.set_score_request(qid=source, query_weight="weight")
        with sklearn.config_context(enable_metadata_routing=True):
            ranker.set_fit_request(qid=source)
    elif source == "column":
        X = X.assign(qid=ltr.qid)
    else:
        X, y = ltr.indexed, ltr.y
    model = make_pipeline("passthrough", ranker)
    with sklearn.config_context(enable_metadata_routing=params is not None):
        for many in (scorer, {"one": scorer}):

            def run(cv, many=many):
                return lambda: cross_validate(model, X, y, cv=cv, scoring=many, params=params)

            assert len(caught(run(3))) == 1
            whole = list(GroupKFold(3).split(X, y, ltr.qid))
            assert not caught(run(whole))


def test_a_halving_search_by_trees_keeps_queries_whole(ltr):
    search = HalvingGridSearchCV(
        RANKERS["ranker"], {"estimator__num_leaves": [2, 3, 4, 5]}, cv=rk.QueryKFold(2), scoring=rk.make_scorer("AP"),
        resource="estimator__n_estimators", max_resources=8, min_resources=2, factor=2,
    )  # fmt: skip
    assert not caught(lambda: search.fit(ltr.X, ltr.y_indexed))
    assert search.n_iterations_ > 1


def test_nested_searches_tell_it_once(ltr):
    inner = GridSearchCV(RANKERS["ranker"], {"estimator__num_leaves": [2, 3]}, cv=2, scoring=rk.make_scorer("AP"))
    assert len(told(cross_val_score, inner, ltr, rk.QueryKFold(2), scoring=rk.make_scorer("RR"))) == 1
    assert len(told(cross_val_score, inner, ltr, 2, scoring=rk.make_scorer("RR"))) == 1


def test_our_cross_validation_never_tells_it(ltr):
    """It applies a splitter of rows to queries, also that of a search inside of it."""
    space, scorer = {"estimator__num_leaves": [2, 3]}, rk.make_scorer("AP")
    inner = GridSearchCV(RANKERS["ranker"], space, cv=KFold(2), scoring=scorer)
    for one in (RANKERS["ranker"], inner):
        assert not caught(lambda one=one: rk.cross_validate(one, ltr.X, ltr.y, qid=ltr.qid, cv=KFold(2)))


def test_outside_of_a_search_nobody_knows_all_rows(ltr):
    """Rows of a fitted query may be a later day of it."""
    ranker = rk.QueryRanker(Ridge()).fit(ltr.X[:200], ltr.y[:200], qid=ltr.qid[:200])
    rest = ltr.X[200:], ltr.y[200:]
    assert not caught(lambda: rk.make_scorer("AP")(ranker, *rest, qid=ltr.qid[200:]))
    assert not caught(lambda: ranker.score(*rest, qid=ltr.qid[200:]))


def test_the_score_of_a_fitted_search_is_no_fold(ltr):
    """New rows of a fitted query may be a later day of it here too."""
    search = GridSearchCV(RANKERS["ranker"], {"estimator__num_leaves": [2]}, cv=rk.QueryKFold(2))
    search.fit(ltr.X[:200], ltr.y_indexed.iloc[:200])
    assert not caught(lambda: search.score(ltr.X[200:], ltr.y_indexed.iloc[200:]))


def test_a_pickle_of_the_ranker_knows_no_queries(ltr):
    """A model that is served carries no hashes of its training data."""
    ranker = rk.QueryRanker(Ridge())
    before = len(pickle.dumps(ranker.fit(ltr.X[:200], ltr.y[:200], qid=ltr.qid[:200])))
    assert abs(len(pickle.dumps(ranker.fit(ltr.X, ltr.y, qid=ltr.qid))) - before) < 16
    assert pickle.loads(pickle.dumps(ranker)).predict(ltr.X).tolist() == ranker.predict(ltr.X).tolist()


@pytest.mark.usefixtures("routing")
def test_routed_weights_are_not_taken_for_queries(ltr):
    """A scorer does not know which of the routed columns has the ids."""
    ranker = rk.QueryRanker(Ridge()).set_fit_request(sample_weight=True)
    weights, scorer = np.ones(len(ltr.y)), rk.make_scorer("AP")
    params = {"sample_weight": weights, "qid": ltr.qid}
    assert not caught(lambda: cross_val_score(ranker, ltr.X, ltr.y, cv=rk.QueryKFold(3), scoring=scorer, params=params))


@pytest.mark.further
def test_workers_tell_it_at_most_once_each(tmp_path):
    """On standard error, where the user sees it: three searches, twelve folds, two workers."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = forking.run(script)
    assert done.returncode == 0, done.stderr
    assert 1 <= done.stderr.count("QueryCutWarning") <= 2


SCRIPT = """
import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import rankeval as rk

data = rk.datasets.make_ranking(30, 10, rng=0)
y = pd.Series(np.asarray(data.y), pd.Index(data.qid, name="qid"))
space = {"estimator__alpha": [1, 2, 3, 4]}
for measure in ("AP", "RR", "P@1"):
    for cv in (4, rk.QueryKFold(3)):  # 75 rows, of which the last 5 are half of a query
        search = GridSearchCV(rk.QueryRanker(Ridge()), space, cv=cv, scoring=rk.make_scorer(measure), n_jobs=2)
        search.fit(data.X, y)
"""
