"""Legitimate use of data that is not the test, or is allowed: nothing is refused, and nothing is warned about."""

import numpy as np
import optuna
import pandas as pd
import pytest
from circles import choose
from guard_cases.situations import (
    N_TEST,
    SAID,
    changed,
    legitimate,
    planned,
    stacked,
    standing,
    weighted,
)
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

import rankeval as rk
from rankeval.errors import GuardRefusal, RankevalWarning

pytestmark = pytest.mark.filterwarnings("error::rankeval.errors.RankevalWarning")


def use(data):
    """Do with some data what people do: fit, cross-validate, score, by features and by labels alone."""
    rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid)
    rk.cross_validate(Ridge(), data.X, data.y, qid=data.qid, measures="AP", cv=2)
    rk.evaluate(data.y, data.X[:, 0], qid=data.qid, docid=data.docid)


@legitimate()
def test_dev_queries_of_the_same_source(guarded):
    """All of them, and many splits of the size of the test."""
    use(guarded.dev)
    rng, queries = np.random.default_rng(0), np.unique(guarded.dev.qid)
    for _ in range(20):
        rows = np.isin(guarded.dev.qid, rng.choice(queries, N_TEST, replace=False))
        rk.evaluate(guarded.dev.y[rows], guarded.dev.X[rows, 0], qid=guarded.dev.qid[rows])


@legitimate(rows=[2])
def test_dev_features_in_another_form(guarded):
    """Standardised, by quantile, fewer, more, and by a pipeline that was fitted on dev."""
    X = guarded.dev.X
    quantiles = QuantileTransformer(n_quantiles=50).fit_transform(X)
    for form in (StandardScaler().fit_transform(X), quantiles, X[:, :2], np.hstack([X, X**2])):
        use(changed(guarded.dev, X=form))
    rk.cross_validate(make_pipeline(StandardScaler(), Ridge()), guarded.dev, measures="AP", cv=2)


def month(seed, n_recurring, *, docid=False, n_queries=300):
    """Make a month of a search log: some head queries come every month, with the same documents and new clicks."""
    rng = np.random.default_rng(seed)
    qid = np.repeat([*range(n_recurring), *range(1000 * seed, 1000 * seed + n_queries - n_recurring)], 10)
    clicks = (rng.random(len(qid)) < 0.4 / (1 + np.tile(np.arange(10), n_queries))).astype(int)
    head = np.char.add(
        np.char.add("d", qid.astype(str)), np.char.add("-", np.tile(np.arange(10), n_queries).astype(str))
    )
    return rk.RankingData(rng.normal(size=(len(qid), 6)), clicks, qid, docid=head if docid else None)


@pytest.mark.parametrize("n_recurring", [20, 100])
@legitimate(rows=[2])
def test_logs_of_months_that_share_head_queries(desk, n_recurring):
    """The same ids and sizes come again; labels agree as often as chance has it, and that is no evidence."""
    desk.guard().register("january", month(1, n_recurring))
    for seed in range(2, 6):
        use(month(seed, n_recurring))


@pytest.mark.parametrize("n_recurring", [20, 100])
@legitimate(rows=[2])
def test_logs_of_months_that_share_documents_too(desk, n_recurring):
    """The engine shows the same ten documents for a head query; the clicks are new."""
    desk.guard().register("january", month(1, n_recurring, docid=True))
    for seed in range(2, 6):
        use(month(seed, n_recurring, docid=True))


def clicks_later(clicks, persisting, rng):
    """Return the clicks of a later month: so many of them persist, and others come so that they are as many."""
    rate = clicks.mean()
    return np.where(rng.random(len(clicks)) < persisting, clicks, rng.random(len(clicks)) < rate).astype(int)


@pytest.mark.parametrize("way", ["exempt", "register"])
@pytest.mark.parametrize("docid", [False, True])
@legitimate(rows=[2])
def test_a_later_month_whose_clicks_persist(desk, docid, way):
    """Up to .8 it is other data. Above .9 it is refused: the refusal names the later month, and both ways out work."""
    rng, guard, april = np.random.default_rng(7), desk.guard(), month(1, 300, docid=docid)
    guard.register("april", april)
    for persisting in (0.5, 0.8):
        use(changed(april, X=rng.normal(size=april.X.shape), y=clicks_later(april.y, persisting, rng)))
    may = changed(april, X=rng.normal(size=april.X.shape), y=clicks_later(april.y, 0.97, rng))
    with pytest.raises(GuardRefusal, match="such as a later month of a log whose clicks persist, on record"):
        rk.evaluate(may.y, may.X[:, 0], qid=may.qid, docid=may.docid)
    if way == "exempt":
        assert guard.exempt("april", guard.status(may), "a later month") == 300
        use(may)
    else:
        registered = guard.register("may", may, supersedes="april")
        plan = guard.freeze(registered, systems={"a": may.X[:, 0], "b": may.X[:, 1]}, baseline="a")
        assert standing(guard.open(plan)) == "confirmatory"


def test_a_refusal_by_rows_speaks_of_no_later_month(guarded):
    with pytest.raises(GuardRefusal) as refused:
        rk.QueryRanker(Ridge()).fit(guarded.test.X, guarded.test.y, qid=guarded.test.qid + 5000)
    assert "for a good reason, on record" in str(refused.value)


@legitimate()
def test_ids_that_are_row_numbers(guarded):
    """Everybody's queries are called 0 to n-1."""
    for seed in range(10):
        other = rk.datasets.make_ranking(N_TEST, 12, 5, rng=seed + 50)
        use(changed(other, qid=other.qid - other.qid.min() + guarded.test.qid.min()))


@legitimate()
def test_toy_data(guarded):
    """Four rows in a test suite."""
    assert guarded.ledger.exists()
    rk.evaluate([1, 0, 0, 1], [0.9, 0.2, 0.3, 0.1], qid=["a", "a", "b", "b"])
    rk.QueryRanker(Ridge()).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2])
    rk.evaluate([1, 0, 2], [0.9, 0.2, 0.3], qid=[1, 1, 1])


@pytest.mark.shared
@legitimate()
def test_another_fold_of_a_benchmark(desk, shared):
    """The test parts of Cranfield's folds have no query in common."""
    parts = {
        fold: rk.datasets.load_letor(shared / "letor_cranfield" / f"Fold{fold}" / "test.txt.gz") for fold in (1, 2, 3)
    }
    desk.guard().register("fold 1", parts[1])
    use(parts[2])
    use(parts[3])


@legitimate()
def test_training_queries_that_share_documents(desk):
    """Documents are the collection's, queries are the split's: every document stands under several queries."""
    rng = np.random.default_rng(0)

    def judged(names):
        return {q: {f"d{d}": int(rng.integers(0, 3)) for d in rng.choice(100, 20, False)} for q in names}

    desk.guard().register("papers", qrels=judged(f"q{q}" for q in range(60)))
    other = judged(f"t{q}" for q in range(60))
    rk.evaluate(other, {q: dict.fromkeys(docs, 1.0) for q, docs in other.items()})
    frame = rk.Qrels.from_dict(other).to_frame()
    rk.evaluate(frame["relevance"], np.arange(len(frame)), qid=frame["qid"], docid=frame["docid"])


@legitimate()
def test_discrete_features(desk):
    """Counts and flags: the same row stands in many queries of both."""

    def flags(seed, start):
        rng = np.random.default_rng(seed)
        X = np.hstack([rng.poisson(1, size=(2400, 4)), rng.random((2400, 3)) < 0.3]).astype(float)
        return rk.RankingData(X, rng.integers(0, 3, 2400), start + np.arange(2400) // 12)

    desk.guard().register("flags", flags(0, 0))
    for seed in range(1, 6):
        use(flags(seed, 1000 * seed))


@legitimate()
def test_short_lists(desk):
    """Three to five documents a query, two grades."""

    def short(seed, start):
        rng = np.random.default_rng(seed)
        qid = start + np.repeat(np.arange(300), rng.integers(3, 6, 300))
        return rk.RankingData(rng.normal(size=(len(qid), 4)), rng.integers(0, 2, len(qid)), qid)

    desk.guard().register("short", short(0, 0))
    for seed in range(1, 6):
        use(short(seed, 1000 * seed))
        use(short(seed + 10, 0))


@legitimate()
def test_searches_on_dev(guarded):
    """A grid (in two workers beyond the default circle), a study of Optuna, early stopping on a validation part."""
    n_jobs = choose(default=1, complete=2)
    dev = guarded.dev
    cv = [(np.flatnonzero(dev.qid % 2 == part), np.flatnonzero(dev.qid % 2 != part)) for part in (0, 1)]
    scorer = rk.make_scorer("nDCG@10", qid=pd.Series(dev.qid))
    GridSearchCV(Ridge(), {"alpha": [1, 2]}, scoring=scorer, cv=cv, n_jobs=n_jobs).fit(dev.X, pd.Series(dev.y))
    optuna.create_study(direction="maximize").optimize(
        rk.optuna_objective(Ridge(), {"alpha": [0.1, 1.0]}, dev), n_trials=2
    )
    fit, stop = dev.qid % 5 != 0, dev.qid % 5 == 0
    booster = rk.QueryRanker(LGBMRanker(n_estimators=5, verbose=-1, n_jobs=1), early_stopping_rounds=2)
    booster.fit(dev.X[fit], dev.y[fit], qid=dev.qid[fit], eval_set=(dev.X[stop], dev.y[stop]), eval_qid=dev.qid[stop])


def opened(desk):
    """Open two systems, and return the scores of one."""
    desk.look("test", desk.test, 0, 1)
    return weighted(desk.test, 1)["s1"]


@legitimate()
def test_an_opened_ranking_in_another_form(guarded):
    """Renamed, in another order, rescaled; beside other queries; half of it, and query by query."""
    scores, data = opened(guarded), guarded.test
    order = np.random.default_rng(0).permutation(len(data))
    rk.evaluate(data.y[order], np.exp(scores)[order], qid=data.qid.astype(str)[order])
    together = stacked(data, guarded.dev)
    rk.evaluate(together.y, np.append(scores, guarded.dev.X[:, 3]), qid=together.qid)
    for rows in (data.qid % 2 == 0, *(data.qid == query for query in np.unique(data.qid))):
        rk.evaluate(data.y[rows], scores[rows], qid=data.qid[rows])


@legitimate()
def test_more_measures_of_an_opened_ranking(guarded):
    """What a reviewer asks for."""
    scores, data = opened(guarded), guarded.test
    rk.evaluate(data.y, scores, qid=data.qid, measures=["AP", "RR", "P@5", "ERR(max_rel=4)"])
    guard = guarded.guard()
    again = guard.open(planned(guard, guard.register("test", data), data, 0, 1, secondary=["AP"]))
    assert len(guard.looks("test")) == 1
    assert len(again.evaluations) == 2


@legitimate(rows=[6])
def test_another_split_of_the_same_data_on_record(guarded):
    """Ten queries of the test are training data of somebody else, with good reason."""
    both = stacked(guarded.dev, guarded.test.take(guarded.test.qid <= 10))
    guarded.guard().exempt("test", np.arange(1, 11), "the course uses another split")
    use(both)


@legitimate(rows=[6])
def test_fitting_on_a_retired_collection(guarded):
    """It was given up as a test, with a reason."""
    guarded.guard().retire("test", "a new one was bought")
    use(guarded.test)


@legitimate(SAID, rows=[6])
def test_two_queries_below_the_threshold(guarded):
    """Two of 40 are too few to refuse: the fit goes on, and one warning names them."""
    data = stacked(guarded.dev, guarded.test.take(guarded.test.qid <= 2))
    with pytest.warns(RankevalWarning, match=r"2 of its 40(?s:.*)\b1, 2\b") as given:
        rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid)
    assert len([one for one in given if issubclass(one.category, RankevalWarning)]) == 1
