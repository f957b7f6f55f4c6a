"""Early stopping on a validation part of one's own."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRanker
from model_selection.libraries import CatBoostRanker, XGBRanker, each
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.model_selection import cross_validate as sklearn_cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk
from rankeval.errors import GuardRefusal, InvalidInput, MissingQueryIdsRefusal, QueryIdError

MEASURE, ROUNDS, MOST = "nDCG@10", 5, 60
BOOSTERS = {
    "lightgbm": LGBMRanker(n_estimators=MOST, min_child_samples=5, n_jobs=1, verbose=-1),
    "xgboost": XGBRanker(n_estimators=MOST, learning_rate=0.2, n_jobs=1),
    "catboost": CatBoostRanker(
        iterations=MOST, learning_rate=0.2, thread_count=1, random_seed=0, verbose=False, allow_writing_files=False
    ),
}
LGBM = BOOSTERS["lightgbm"]


def made(n_queries=40, seed=11, first=0):
    """Return made queries with ids from a number on, rows in no order."""
    data = rk.datasets.make_ranking(n_queries, rng=seed, n_features=5)
    rows = np.random.default_rng(seed).permutation(len(data))
    ids = np.array([f"q{first + number}" for number in data.qid[rows]])
    return rk.RankingData(data.X[rows], data.y[rows], ids)


@pytest.fixture
def train():
    return made()


@pytest.fixture
def vali():
    return made(25, seed=5, first=1000)


def shuffled(data):
    return data.take(np.random.default_rng(3).permutation(len(data)))


@pytest.fixture(
    params=["made", pytest.param("letor_cranfield", marks=pytest.mark.shared)],
)
def parts(request):
    """Return a training and a validation part: made ones, or LETOR's own."""
    if request.param == "made":
        return (made(), made(25, seed=5, first=1000))
    fold = request.getfixturevalue("shared") / "letor_cranfield" / "Fold1"
    return tuple(shuffled(rk.datasets.load_letor(fold / f"{part}.txt.gz")) for part in ("train", "vali"))


def sorted_by_query(data, X=None):
    order = np.argsort(data.qid, kind="stable")
    codes, sizes = np.unique(data.qid[order], return_inverse=True, return_counts=True)[1:]
    return (data.X if X is None else X)[order], data.y[order], codes, sizes


def by_hand(booster, train, vali, scale=lambda X: X, measure=MEASURE):
    """Fit the library's own ranker, score the validation part after each iteration, keep the best."""
    X, y, codes, sizes = sorted_by_query(train, scale(train.X))
    told, stage = {
        "LGBMRanker": ({"group": sizes}, lambda model, n: model.predict(scale(vali.X), num_iteration=n)),
        "XGBRanker": (
            {"qid": codes},
            lambda model, n: model.predict(scale(vali.X), output_margin=True, iteration_range=(0, n)),
        ),
        "CatBoostRanker": ({"group_id": codes}, lambda model, n: model.predict(scale(vali.X), ntree_end=n)),
    }[type(booster).__name__]
    model = clone(booster).fit(X, y, **told)
    sign = 1 if rk.measure(measure).family.greater_is_better else -1
    best, best_value = 0, -np.inf
    for n_iterations in range(1, MOST + 1):
        score = stage(model, n_iterations)
        value = sign * rk.evaluate(vali.y, score, qid=vali.qid, measures=measure).aggregate()[measure]
        if value > best_value:
            best, best_value = n_iterations, value
        if n_iterations - best >= ROUNDS:
            break
    return best, sign * best_value


@pytest.mark.parametrize("name", each(BOOSTERS))
@pytest.mark.parametrize("measure", [MEASURE, "ARP"])
def test_the_best_iteration_is_that_of_a_loop_by_hand(name, measure, parts):
    train, vali = parts
    best, value = by_hand(BOOSTERS[name], train, vali, measure=measure)
    ranker = rk.QueryRanker(BOOSTERS[name], early_stopping_rounds=ROUNDS, eval_measure=measure)
    ranker.fit(train.X, train.y, qid=train.qid, eval_set=(vali.X, vali.y), eval_qid=vali.qid)
    assert (ranker.n_iterations_, ranker.validation_score_) == (best, pytest.approx(value, abs=1e-12))
    found = rk.evaluate(vali.y, ranker.predict(vali.X), qid=vali.qid, measures=measure).aggregate()[measure]
    assert found == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", each(BOOSTERS))
def test_in_a_pipeline_the_steps_transform_the_validation_part(name, parts):
    """As scikit-learn does with rows to predict."""
    train, vali = parts
    scale = StandardScaler().fit(train.X)
    best, value = by_hand(BOOSTERS[name], train, vali, scale.transform)
    inside = rk.QueryRanker(make_pipeline(StandardScaler(), BOOSTERS[name]), early_stopping_rounds=ROUNDS)
    inside.fit(train.X, train.y, qid=train.qid, eval_set=(vali.X, vali.y), eval_qid=vali.qid)
    assert (inside.n_iterations_, inside.validation_score_) == (best, pytest.approx(value, abs=1e-12))


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", each(BOOSTERS))
def test_a_pipeline_around_the_ranker_transforms_eval_x(name, parts):
    train, vali = parts
    scale = StandardScaler().fit(train.X)
    best, value = by_hand(BOOSTERS[name], train, vali, scale.transform)
    ranker = rk.QueryRanker(BOOSTERS[name], early_stopping_rounds=ROUNDS)
    outside = Pipeline([("scale", StandardScaler()), ("rank", ranker)], transform_input=["eval_X"])
    outside.fit(train.X, train.y, qid=train.qid, eval_X=vali.X, eval_y=vali.y, eval_qid=vali.qid)
    rank = outside["rank"]
    assert (rank.n_iterations_, rank.validation_score_) == (best, pytest.approx(value, abs=1e-12))


def test_every_form_of_a_validation_part_is_the_same(train, vali):
    own = clone(LGBM).set_params(early_stopping_round=ROUNDS)
    frame = pd.DataFrame(vali.X, columns=list("abcde"))
    index = pd.Index(vali.qid, name="qid")
    forms = [
        (train.X, {"eval_set": (vali.X, vali.y), "eval_qid": vali.qid}),
        (train.X, {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid]}),
        (train.X, {"eval_set": [vali.X, list(vali.y)], "eval_qid": list(vali.qid)}),
        (train.X, {"eval_set": rk.RankingData(vali.X, vali.y, vali.qid)}),
        (train.X, {"eval_X": vali.X, "eval_y": vali.y, "eval_qid": vali.qid}),
        (train.X, {"eval_set": (vali.X, pd.Series(vali.y, index))}),
        (pd.DataFrame(train.X, columns=list("abcde")), {"eval_set": (frame.set_axis(index), vali.y)}),
        (pd.DataFrame(train.X, columns=list("abcde")), {"eval_set": (frame.assign(qid=vali.qid), vali.y)}),
    ]
    fits = [rk.QueryRanker(own).fit(X, train.y, qid=train.qid, **form) for X, form in forms]
    assert {(one.n_iterations_, one.validation_score_) for one in fits} == {
        (fits[0].n_iterations_, fits[0].validation_score_)
    }
    assert fits[0].n_iterations_ < MOST


@pytest.mark.parametrize("name", each(BOOSTERS))
def test_a_pickle_of_the_ranker_has_no_validation_rows(name, train, vali):
    marked = vali.X.copy()
    marked[:, 4] = np.arange(len(marked)) + 0.123456789
    ranker = rk.QueryRanker(BOOSTERS[name], early_stopping_rounds=ROUNDS)
    ranker.fit(train.X, train.y, qid=train.qid, eval_set=(marked, vali.y), eval_qid=vali.qid)
    packed = pickle.dumps(ranker)
    assert marked[3, 4].tobytes() not in packed
    assert marked[:, 4].astype(np.float32)[3].tobytes() not in packed
    assert pickle.loads(packed).predict(vali.X).tolist() == ranker.predict(vali.X).tolist()


def test_rows_without_ids_are_one_query_if_asked_for(train, vali):
    ranker = rk.QueryRanker(LGBM, early_stopping_rounds=ROUNDS, single_query=True)
    ranker.fit(train.X, train.y, eval_set=(vali.X, vali.y))
    whole = rk.evaluate(vali.y, ranker.predict(vali.X), qid=np.zeros(len(vali.y)), measures=MEASURE)
    assert whole.aggregate()[MEASURE] == pytest.approx(ranker.validation_score_, abs=1e-12)


@each_row(
    ("told", "error"),
    [
        ({"eval_set": (np.zeros((3, 4)), [0, 1, 0]), "eval_qid": [1, 1, 1]}, InvalidInput),
        ({"eval_qid": None}, QueryIdError),
        ({"eval_qid": ["a", "b"]}, QueryIdError),
        ({"eval_qid": [None] * 500}, QueryIdError),
        ({"eval_set": np.zeros((3, 5))}, InvalidInput),
        ({"eval_set": [None]}, InvalidInput),
        ({"eval_set": (1, 2, 3)}, InvalidInput),
        ({"eval_set": (np.zeros((3, 5)), [0, 1])}, InvalidInput),
        ({"eval_set": [(np.zeros((2, 5)), [0, 1]), (np.zeros((2, 5)), [0, 1])]}, InvalidInput),
        ({"eval_set": None}, InvalidInput),
        ({"eval_X": np.zeros((3, 5))}, InvalidInput),
        ({"eval_set": None, "eval_X": np.zeros((3, 5))}, InvalidInput),
        ({"eval_set": rk.RankingData(np.zeros((2, 5)), [0, 1], [1, 1])}, InvalidInput),
    ],
)
def test_a_validation_part_that_cannot_be_used_is_an_error(told, error, train, vali):
    told = {"eval_set": (vali.X, vali.y), "eval_qid": vali.qid} | told
    with pytest.raises(error, match=r"eval_"):
        rk.QueryRanker(LGBM, early_stopping_rounds=3).fit(train.X, train.y, qid=train.qid, **told)


@each_row(
    ("ranker", "message"),
    [
        (rk.QueryRanker(LGBM), "give early_stopping_rounds"),
        (rk.QueryRanker(Ridge(), early_stopping_rounds=3), "found Ridge"),
        (rk.QueryRanker(LGBM, early_stopping_rounds=3, validation_fraction=0.1), "validation_fraction takes"),
    ],
)
def test_a_validation_part_that_nothing_stops_on_is_an_error(ranker, message, train, vali):
    with pytest.raises(InvalidInput, match=message):
        ranker.fit(train.X, train.y, qid=train.qid, eval_set=vali)


def test_two_sources_of_its_ids_must_agree(train, vali):
    frame = pd.DataFrame(vali.X).set_axis(pd.Index(vali.qid, name="qid"))
    with pytest.raises(QueryIdError, match=r"eval_set: .* different queries"):
        rk.QueryRanker(LGBM, early_stopping_rounds=3).fit(
            train.X, train.y, qid=train.qid, eval_set=(frame, vali.y), eval_qid=vali.qid[::-1]
        )


def test_the_guard_refuses_a_validation_part_that_is_the_test_set(train, vali, tmp_path, monkeypatch):
    """Choosing the number of iterations on the test set is fitting on it."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    rk.Guard("p").register("test", vali.X, vali.y, qid=vali.qid)
    ranker = rk.QueryRanker(LGBM, early_stopping_rounds=3)
    with pytest.raises(GuardRefusal, match="fit with this eval_set was refused"):
        ranker.fit(train.X, train.y, qid=train.qid, eval_set=(vali.X, vali.y), eval_qid=vali.qid)
    with pytest.raises(GuardRefusal, match="cross_validate with this eval_set was refused"):
        rk.cross_validate(ranker, train.X, train.y, qid=train.qid, eval_set=(vali.X, vali.y), eval_qid=vali.qid)


def n_iterations(estimators):
    return [estimator.n_iterations_ for estimator in estimators]


def fold_by_fold(ranker, train, vali, cv):
    return [
        clone(ranker)
        .fit(train.X[rows], train.y[rows], qid=train.qid[rows], eval_set=(vali.X, vali.y), eval_qid=vali.qid)
        .n_iterations_
        for rows, _ in cv.split(train.X, qid=train.qid)
    ]


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("n_queries", [25, 40], ids=["shorter than X", "as long as X"])
def test_scikit_learn_passes_one_validation_part_to_every_fold(n_queries, train):
    """It cuts an array that is as long as X, so ids go in a list."""
    vali, cv = made(n_queries, seed=5, first=1000), rk.QueryKFold(3)
    ranker = rk.QueryRanker(LGBM, early_stopping_rounds=ROUNDS)
    told = {"qid": train.qid, "eval_set": (vali.X, vali.y), "eval_qid": [vali.qid]}
    options = {"scoring": rk.make_scorer(MEASURE), "cv": cv, "error_score": "raise"}
    done = sklearn_cross_validate(ranker, train.X, train.y, params=told, return_estimator=True, **options)
    assert n_iterations(done["estimator"]) == fold_by_fold(ranker, train, vali, cv)
    search = GridSearchCV(ranker, {"estimator__num_leaves": [7, 31]}, **options).fit(train.X, train.y, **told)
    again = clone(search.best_estimator_).fit(train.X, train.y, **told)
    assert search.best_estimator_.n_iterations_ == again.n_iterations_


def test_a_search_inside_a_ranker_gets_a_validation_part_as_long_as_x_whole(train):
    """scikit-learn would cut ids that are as long as X, if they stood in no list."""
    vali = made(40, seed=5, first=1000)
    search = GridSearchCV(rk.QueryRanker(LGBM, early_stopping_rounds=3), {"estimator__num_leaves": [7]}, cv=2)
    ranker = rk.QueryRanker(search).fit(train.X, train.y, qid=train.qid, eval_set=vali)
    assert ranker.estimator_.best_estimator_.n_iterations_ is not None


@pytest.mark.usefixtures("routing")
def test_ids_that_a_search_has_cut_stop_it_with_the_way_out(train):
    vali = made(40, seed=5, first=1000)
    ranker = rk.QueryRanker(LGBM, early_stopping_rounds=ROUNDS)
    with pytest.raises(MissingQueryIdsRefusal, match=r"eval_qid has shape .* give eval_qid=\[ids\]"):
        sklearn_cross_validate(
            ranker,
            train.X,
            train.y,
            params={"qid": train.qid, "eval_set": (vali.X, vali.y), "eval_qid": vali.qid},
            scoring=rk.make_scorer(MEASURE),
            cv=rk.QueryKFold(3),
        )
    around = Pipeline([("scale", StandardScaler()), ("rank", ranker)], transform_input=["eval_X"])
    with pytest.raises(MissingQueryIdsRefusal, match="eval_X has as many rows as X"):
        sklearn_cross_validate(
            around,
            train.X,
            train.y,
            params={"qid": train.qid, "eval_X": vali.X, "eval_y": vali.y, "eval_qid": vali.qid},
            scoring=rk.make_scorer(MEASURE),
            cv=rk.QueryKFold(3),
        )


def test_rankevals_cross_validation_stops_every_fold_on_it(train, vali):
    """Rankers that cannot stop are fitted beside those that do; in a Pipeline and in a search inside as well."""
    cv, ranker = rk.QueryKFold(3), rk.QueryRanker(LGBM, early_stopping_rounds=ROUNDS)
    told = {"eval_set": (vali.X, vali.y), "eval_qid": vali.qid}
    systems = {
        "plain": ranker,
        "inside": rk.QueryRanker(make_pipeline(StandardScaler(), LGBM), early_stopping_rounds=ROUNDS),
        "around": make_pipeline(StandardScaler(), ranker),
        "search": GridSearchCV(ranker, {"estimator__num_leaves": [31]}, scoring=rk.make_scorer(MEASURE), cv=2),
        "ridge": Ridge(),
    }
    done = rk.cross_validate(
        systems, train.X, train.y, qid=train.qid, cv=cv, measures=MEASURE, return_estimators=True, **told
    )
    expected = fold_by_fold(ranker, train, vali, cv)
    assert n_iterations(done["plain"].estimators) == expected
    assert n_iterations(one.estimator_.best_estimator_ for one in done["search"].estimators) == expected
    scaled = n_iterations(done["inside"].estimators)
    assert n_iterations(one.estimator_[-1] for one in done["around"].estimators) == scaled
    with pytest.raises(InvalidInput, match="no ranker stops: give early_stopping_rounds"):
        rk.cross_validate(Ridge(), train.X, train.y, qid=train.qid, **told)
