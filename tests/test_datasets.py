"""Built-in data: fixed by the seed, with the truth that was planted, and hard enough to tell rankers apart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankeval as rk
from rankeval.datasets import load_digits_retrieval, make_ranking
from rankeval.errors import InvalidInput


def same(a, b):
    """Whether two data sets are equal in every part."""
    return all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("X", "y", "qid", "docid"))


@pytest.mark.parametrize("load", [load_digits_retrieval, make_ranking])
def test_a_seed_fixes_everything(load):
    """The same number or Generator state gives the same data, another number other data."""
    assert same(load(n_queries=5, rng=1), load(n_queries=5, rng=1))
    assert same(load(n_queries=5, rng=1), load(n_queries=5, rng=np.random.default_rng(1)))
    assert not same(load(n_queries=5, rng=1), load(n_queries=5, rng=2))


def test_digits_are_relevant_to_their_like():
    """Relevance is equality of digits; a query is never its own candidate, and each has something to find."""
    data = load_digits_retrieval(n_queries=40, n_candidates=10)
    digits = load_digits().target
    assert np.array_equal(data.y, digits[data.qid] == digits[data.docid])
    assert not (data.qid == data.docid).any()
    for query in np.unique(data.qid):
        rows = data.take(data.qid == query)
        assert len(rows) == len(np.unique(rows.docid)) == 10
        assert rows.y.any()


def test_features_of_a_pair_are_what_they_are_called():
    """Cosine, distance, blocks, profiles and ink, recomputed for one pair by their definitions."""
    data = load_digits_retrieval(n_queries=2, n_candidates=3)
    images = load_digits().images / 16
    left, right = images[data.qid[4]], images[data.docid[4]]
    pair = dict(zip(data.feature_names, data.X[4], strict=True))
    assert pair["cosine"] == pytest.approx((left * right).sum() / np.sqrt((left**2).sum() * (right**2).sum()))
    assert pair["distance"] == pytest.approx(np.sqrt(((left - right) ** 2).sum()))
    assert pair["block_6"] == pytest.approx((left - right)[2:4, 4:6].mean())
    assert pair["row_3"] == pytest.approx((left - right)[3].mean())
    assert pair["column_5"] == pytest.approx((left - right)[:, 5].mean())
    assert pair["ink"] == pytest.approx((left - right).mean())
    assert data.X.shape[1] == len(set(data.feature_names)) == 35


def test_digits_tell_a_linear_model_from_trees():
    """The figures in the documentation: nDCG@10 .74 for Ridge, .81 for boosted trees."""
    data = rk.datasets.load_digits_retrieval()
    models = {
        "ridge": make_pipeline(StandardScaler(), Ridge()),
        "trees": HistGradientBoostingRegressor(random_state=0),
    }
    scores = {}
    for name, model in models.items():
        out = cross_val_predict(clone(model), data.X, data.y, groups=data.qid, cv=GroupKFold(3))
        scores[name] = ndcg_score(data.y.reshape(300, 40), out.reshape(300, 40), k=10)
    assert scores["ridge"] == pytest.approx(0.74, abs=0.01)
    assert scores["trees"] == pytest.approx(0.81, abs=0.01)


@pytest.mark.parametrize(
    "argument", [{"n_queries": 0}, {"n_queries": 1798}, {"n_candidates": 1797}, {"n_candidates": 0}]
)
def test_more_digits_than_there_are_cannot_be_asked_for(argument):
    with pytest.raises(InvalidInput) as caught:
        load_digits_retrieval(**argument)
    assert caught.value.argument == next(iter(argument))


def test_the_planted_utility_is_the_truth():
    """Without noise grades never fall as X @ w rises, w as documented; noise of 0.5 leaves most of it."""
    w = 1 / np.arange(1, 6)
    clean = make_ranking(30, 10, 5, noise=0)
    assert (np.diff(clean.y[np.argsort(clean.X @ w)]) >= 0).all()
    noisy = make_ranking(30, 10, 5)
    correlation = np.corrcoef(noisy.X @ w, noisy.y)[0, 1]
    assert 0.6 < correlation < 0.95


def test_planted_grades_are_halved():
    """Half the rows are 0, half of the rest 1, and so on; the largest grade takes what is left."""
    assert np.bincount(make_ranking(80, 20).y).tolist() == [800, 400, 200, 100, 100]
    assert np.bincount(make_ranking(80, 20, max_relevance=1).y).tolist() == [800, 800]


def test_planted_queries_have_the_sizes_asked_for():
    """A number is exact, a pair is a range; documents are numbered within their query."""
    data = make_ranking(50, (3, 5), rng=3)
    assert set(np.bincount(data.qid)[1:]) == {3, 4, 5}
    assert data.docid[0] == "1-1"
    assert len(np.unique(data.docid)) == len(data)


def test_tied_rows_cannot_be_told_apart():
    """Of ten rows the share asked for has the features of the first, and grades of their own."""
    data = make_ranking(50, 10, tie_share=0.4)
    X = data.X.reshape(50, 10, -1)
    assert (X[:, :4] == X[:, :1]).all()
    assert (X[:, 4:] != X[:, :1]).all()
    assert (np.ptp(data.y.reshape(50, 10)[:, :4], axis=1) > 0).any()


def test_shuffling_moves_rows_and_nothing_else():
    """The same rows in another order, queries interleaved."""
    plain, shuffled = make_ranking(10, 5), make_ranking(10, 5, shuffle=True)
    order = np.argsort(shuffled.docid)
    assert same(plain.take(np.argsort(plain.docid)), shuffled.take(order))
    assert (np.diff(shuffled.qid) < 0).any()


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"n_queries": 0}, "n_queries"),
        ({"n_docs": (0, 3)}, "n_docs"),
        ({"n_docs": (4, 3)}, "n_docs"),
        ({"max_relevance": 0}, "max_relevance"),
        ({"noise": -1}, "noise"),
        ({"noise": float("nan")}, "noise"),
        ({"noise": float("inf")}, "noise"),
        ({"tie_share": 1.5}, "tie_share"),
        ({"tie_share": float("nan")}, "tie_share"),
    ],
)
def test_impossible_data_cannot_be_asked_for(arguments, argument):
    """The argument is named."""
    with pytest.raises(InvalidInput) as caught:
        make_ranking(**arguments)
    assert caught.value.argument == argument


@pytest.mark.parametrize("rng", ["x", -1, 0.5])
def test_what_is_no_seed_is_refused_by_its_argument(rng):
    with pytest.raises(InvalidInput) as error:
        make_ranking(3, 3, rng=rng)
    assert error.value.argument == "rng"


def test_no_rows_are_a_part_too():
    assert len(make_ranking(3, 3).take([])) == 0
