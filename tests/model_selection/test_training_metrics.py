"""Our measures inside the training loops of LightGBM and XGBoost."""

from __future__ import annotations

import pickle
from inspect import signature

import lightgbm
import numpy as np
import pytest
from lightgbm import LGBMRanker
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, QueryIdError, UnknownName
from rankeval.model_selection.query_ids import encode

QUIET = {"objective": "lambdarank", "metric": "None", "num_threads": 1, "verbose": -1}


@pytest.fixture
def blocks(ltr):
    """X, y, sizes and codes, rows in blocks."""
    codes = encode(ltr.qid)[0]
    order = np.argsort(codes, kind="stable")
    return ltr.X[order], ltr.y[order], np.unique(codes, return_counts=True)[1], codes[order]


def test_lightgbm_reports_our_value(blocks):
    X, y, sizes, codes = blocks
    history = {}
    booster = lightgbm.train(
        {"objective": "lambdarank", "metric": "None", "num_threads": 1, "verbose": -1},
        data := lightgbm.Dataset(X, y, group=sizes),
        num_boost_round=3,
        valid_sets=[data],
        valid_names=["seen"],
        feval=rk.lightgbm_feval(["nDCG@10", "AP"]),
        callbacks=[lightgbm.record_evaluation(history)],
    )
    expected = rk.evaluate(y, booster.predict(X), qid=codes, measures=["nDCG@10", "AP"]).aggregate()
    assert history["seen"]["nDCG@10"][-1] == pytest.approx(expected["nDCG@10"], abs=1e-12)
    assert history["seen"]["AP"][-1] == pytest.approx(expected["AP"], abs=1e-12)


def test_lightgbm_cross_validates_by_our_measure(blocks):
    X, y, sizes, _ = blocks
    result = lightgbm.cv(
        {"objective": "lambdarank", "metric": "None", "num_threads": 1, "verbose": -1},
        lightgbm.Dataset(X, y, group=sizes),
        num_boost_round=2,
        nfold=3,
        stratified=False,
        feval=rk.lightgbm_feval("AP", convention="sklearn"),
    )
    assert all(0.3 < value < 1 for value in result["valid AP-mean"])


@pytest.mark.needs("xgboost")
def test_xgboost_reports_our_value_and_stops_by_it(blocks):
    import xgboost

    X, y, _, codes = blocks
    history = {}
    matrix = xgboost.DMatrix(X, y, qid=codes)
    booster = xgboost.train(
        {"objective": "rank:ndcg", "nthread": 1, "disable_default_eval_metric": True},
        matrix,
        num_boost_round=4,
        evals=[(matrix, "seen")],
        custom_metric=rk.xgboost_metric(["RR", "nDCG@10"]),
        early_stopping_rounds=3,
        maximize=True,
        evals_result=history,
        verbose_eval=False,
    )
    last = booster.predict(matrix, iteration_range=(0, len(history["seen"]["RR"])))
    expected = rk.evaluate(y, last, qid=codes, measures=["RR", "nDCG@10"]).aggregate()
    # XGBoost hands metrics on as text of six digits.
    assert history["seen"]["RR"][-1] == pytest.approx(expected["RR"], abs=1e-5)
    assert history["seen"]["nDCG@10"][-1] == pytest.approx(expected["nDCG@10"], abs=1e-5)


def test_data_without_queries_is_an_error(blocks):
    X, y, _, _ = blocks
    with pytest.raises(UnknownName, match="nDCG@10"):
        rk.lightgbm_feval("nDGC@10")
    with pytest.raises(QueryIdError, match="group="):
        rk.lightgbm_feval("AP")(np.zeros(len(y)), lightgbm.Dataset(X, y).construct())


@pytest.mark.needs("xgboost")
def test_a_matrix_of_xgboost_without_queries_is_an_error(blocks):
    import xgboost

    X, y, _, _ = blocks
    with pytest.raises(QueryIdError, match="qid="):
        rk.xgboost_metric("AP")(np.zeros(len(y)), xgboost.DMatrix(X, y))


def test_training_metrics_are_values():
    assert pickle.loads(pickle.dumps(rk.xgboost_metric("AP"))) == rk.xgboost_metric(rk.measure("AP"))


def test_lightgbm_is_told_what_is_better(blocks):
    """It stops where the least ARP is, beside a measure of which more is better."""
    X, y, sizes, codes = blocks
    assert [up for _, _, up in rk.lightgbm_feval(["ARP", "AP"])(np.arange(len(y)), y, None, sizes)] == [False, True]
    n_rows, n_queries = sizes[:20].sum(), 20
    train = lightgbm.Dataset(X[:n_rows], y[:n_rows], group=sizes[:n_queries])
    test = lightgbm.Dataset(X[n_rows:], y[n_rows:], group=sizes[n_queries:], reference=train)
    booster = lightgbm.train(
        QUIET,
        train,
        60,
        valid_sets=[test],
        feval=rk.lightgbm_feval("ARP"),
        callbacks=[lightgbm.early_stopping(4, verbose=False)],
    )
    values = [
        rk.evaluate(
            y[n_rows:], booster.predict(X[n_rows:], num_iteration=n), qid=codes[n_rows:], measures="ARP"
        ).aggregate()["ARP"]
        for n in range(1, booster.current_iteration() + 1)
    ]
    assert 1 < booster.best_iteration == 1 + int(np.argmin(values)) < 60


def test_xgboost_has_to_be_told_what_is_better():
    assert rk.xgboost_metric(["AP", "nDCG@10"]).maximize
    assert not rk.xgboost_metric("ARP").maximize
    with pytest.raises(InvalidInput, match="stop by one of them"):
        _ = rk.xgboost_metric(["AP", "ARP"]).maximize


@pytest.fixture
def weighted(blocks):
    """Return a score, a weight per query, and the weighted mean of AP."""
    X, y, sizes, codes = blocks
    score, weight = X[:, 0], np.random.default_rng(0).uniform(1, 9, len(sizes))
    weighted = rk.evaluate(y, score, qid=codes, query_weight=weight[codes], measures="AP")
    return score, weight, weighted.aggregate()["AP"]


def test_weights_of_the_data_are_those_of_queries(blocks, weighted):
    (X, y, sizes, codes), (score, weight, expected) = blocks, weighted
    data = lightgbm.Dataset(X, y, group=sizes, weight=weight[codes]).construct()
    # The library keeps weights as float32.
    assert rk.lightgbm_feval("AP")(score, data)[0][1] == pytest.approx(expected, abs=1e-7)
    uneven = weight[codes] + np.tile([0.5, -0.5], len(y) // 2)
    data = lightgbm.Dataset(X, y, group=sizes, weight=uneven).construct()
    assert rk.lightgbm_feval("AP")(score, data)[0][1] == pytest.approx(expected, abs=1e-7)


@pytest.mark.needs("xgboost")
def test_weights_of_a_matrix_of_xgboost_are_those_of_queries(blocks, weighted):
    import xgboost

    (X, y, _, codes), (score, weight, expected) = blocks, weighted
    matrix = xgboost.DMatrix(X, y, qid=codes, weight=weight)
    assert rk.xgboost_metric("AP")(score, matrix)[0][1] == pytest.approx(expected, abs=1e-7)


def test_lightgbms_scikit_learn_classes_take_it_too(blocks):
    X, y, sizes, codes = blocks
    ranker = LGBMRanker(n_estimators=3, n_jobs=1, verbose=-1, metric="None")
    takes = signature(ranker.fit).parameters
    told = {"eval_X": X, "eval_y": y} if "eval_X" in takes else {"eval_set": [(X, y)]}
    ranker.fit(X, y, group=sizes, eval_group=[sizes], eval_metric=rk.lightgbm_feval(["AP", "RR"]), **told)
    expected = rk.evaluate(y, ranker.predict(X), qid=codes, measures=["AP", "RR"]).aggregate()
    (found,) = ranker.evals_result_.values()
    assert {name: values[-1] for name, values in found.items()} == pytest.approx(expected.to_dict(), abs=1e-12)


@pytest.mark.needs("xgboost")
def test_xgboosts_scikit_learn_classes_say_no_queries(blocks):
    from xgboost import XGBRanker

    X, y, _, codes = blocks
    ranker = XGBRanker(n_estimators=2, n_jobs=1, eval_metric=rk.xgboost_metric("AP"))
    with pytest.raises(InvalidInput, match=r"xgboost.train and xgboost.cv.*QueryRanker"):
        ranker.fit(X, y, qid=codes, eval_set=[(X, y)], eval_qid=[codes], verbose=False)


@each_row("make", [rk.lightgbm_feval, rk.xgboost_metric])
def test_a_metric_prints_as_it_is_made(make):
    names = {"lightgbm_feval": rk.lightgbm_feval, "xgboost_metric": rk.xgboost_metric}
    for metric in (make("nDCG@10"), make(["AP", "P(rel=2)@5"]), make("map", convention="trec_eval-10")):
        assert eval(repr(metric), names) == metric  # noqa: S307 - our own text
    assert repr(make("AP", convention=rk.Convention("mine", ties="best"))).endswith("('AP', convention='mine')")
    assert repr(make("nDCG@10")) == f"{make.__name__}('nDCG@10')"


@each_row("make", [rk.lightgbm_feval, rk.xgboost_metric])
def test_a_measure_of_a_column_is_refused_when_the_metric_is_made(make):
    """A training loop has no columns beside the features, so it would fail after the first iteration."""
    with pytest.raises(InvalidInput, match="expected the column 'price'") as refused:
        make(["AP", "Revenue@5(column='price')"])
    assert refused.value.argument == "columns"


@pytest.fixture
def train(blocks):
    """Return a function that trains XGBoost, or cross-validates it, with a metric of ours and early stopping."""
    import xgboost

    X, y, sizes, _ = blocks
    params = {"objective": "rank:ndcg", "nthread": 1}

    def trained(way, measures, maximize, watched=None):
        matrix, metric = xgboost.DMatrix(X, y, group=sizes), rk.xgboost_metric(measures)
        told = {"num_boost_round": 8, "custom_metric": metric, "verbose_eval": False}
        stop = xgboost.callback.EarlyStopping(rounds=2, maximize=maximize, metric_name=watched)
        if way == "cv":
            return xgboost.cv(params, matrix, nfold=2, early_stopping_rounds=2, maximize=maximize, **told)
        early = {"callbacks": [stop]} if way == "callback" else {"early_stopping_rounds": 2, "maximize": maximize}
        return xgboost.train(params, matrix, evals=[(matrix, "a"), (matrix, "b")], **early, **told)

    return trained


ONE_OF_EACH = ["nDCG@10", "AP", "RR", "P@5", "R@10", "RBP(p=.8)", "ARP", "Success@5", ["AP", "ARP"], ["ARP", "nDCG"]]


@pytest.mark.needs("xgboost")
@each_row("measures", ONE_OF_EACH)
def test_xgboost_does_not_stop_early_in_the_wrong_direction(measures, train):
    """It minimises every metric of another name than its own, unless it is told."""
    last = rk.measure(measures if isinstance(measures, str) else measures[-1])
    higher = last.family.greater_is_better
    for way in ("rounds", "callback", "cv"):
        train(way, measures, maximize=higher)
        for wrong in [None, False] if higher else [True]:
            with pytest.raises(InvalidInput) as refused:
                train(way, measures, maximize=wrong)
            assert (refused.value.argument, refused.value.remedy) == ("maximize", f"give maximize={higher}")
    if not higher:
        train("rounds", measures, maximize=None)


@pytest.mark.needs("xgboost")
def test_only_the_metric_that_is_watched_is_judged(train):
    train("callback", ["AP", "nDCG@10"], maximize=None, watched="ndcg@32")
    train("callback", ["ARP", "AP"], maximize=None, watched="ARP")
    with pytest.raises(InvalidInput, match="maximize is None: early stopping minimises AP; give maximize=True"):
        train("callback", ["AP", "ARP"], maximize=None, watched="AP")


@pytest.mark.needs("xgboost")
def test_xgbranker_is_told_that_its_metric_gets_no_queries(blocks):
    from xgboost import XGBRanker

    X, y, _, codes = blocks
    ranker = XGBRanker(n_estimators=3, n_jobs=1, eval_metric=rk.xgboost_metric("AP"), early_stopping_rounds=1)
    with pytest.raises(InvalidInput, match="eval_measure"):
        ranker.fit(X, y, qid=codes, eval_set=[(X, y)], eval_qid=[codes])


@each_row("measure", ["nDCG@10", "AP", "ARP"])
def test_lightgbm_stops_early_in_the_direction_of_the_measure(measure, blocks):
    X, y, sizes, _ = blocks
    history, train = {}, lightgbm.Dataset(X[:180], y[:180], group=sizes[:15])
    booster = lightgbm.train(
        QUIET,
        train,
        num_boost_round=30,
        valid_sets=[lightgbm.Dataset(X[180:], y[180:], group=sizes[15:], reference=train)],
        valid_names=["new"],
        feval=rk.lightgbm_feval(measure),
        callbacks=[lightgbm.early_stopping(5, verbose=False), lightgbm.record_evaluation(history)],
    )
    values = np.array(history["new"][measure])
    best = values.max() if rk.measure(measure).family.greater_is_better else values.min()
    assert booster.best_iteration == int(np.argmax(values == best)) + 1
