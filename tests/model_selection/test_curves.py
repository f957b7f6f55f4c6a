"""Learning curves by number of queries; and what scikit-learn's own can take."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import learning_curve, validation_curve

import rankeval as rk
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import GuardRefusal, InvalidInput, QueryIdError, UnknownName

MANY = ["nDCG@10", "AP"]


class Counting(Ridge):
    """Ridge, and how many queries each fit saw; the last feature holds the query's number."""

    seen: list = []  # noqa: RUF012 - shared by clones, on purpose

    def fit(self, X, y):
        type(self).seen.append(frozenset(X[:, -1]))
        return super().fit(X[:, :-1], y)

    def predict(self, X):
        return super().predict(X[:, :-1])


def numbered(ltr):
    return np.column_stack([ltr.X, np.unique(ltr.qid, return_inverse=True)[1]])


def test_training_parts_grow_by_whole_queries(ltr):
    """Each is part of the next of its fold."""
    Counting.seen = []
    curve = rk.learning_curve(Counting(), numbered(ltr), ltr.y, qid=ltr.qid, cv=3, sizes=[5, 0.5, 1.0], measures=MANY)
    assert [len(queries) for queries in Counting.seen] == [5] * 3 + [10] * 3 + [20] * 3
    for fold in range(3):
        five, ten, twenty = Counting.seen[fold::3]
        assert five < ten < twenty
    assert curve.table.index.names == ["n_train_queries", "fold"]
    assert curve.table["n_queries"].eq(10).all()
    assert curve.mean().index.tolist() == [5, 10, 20]


def test_the_last_point_is_cross_validation(ltr):
    curve = rk.learning_curve(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3, measures=MANY)
    folds = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3, measures=MANY).folds
    assert curve.table.loc[20, "AP"].tolist() == pytest.approx(folds["AP"].tolist(), abs=1e-12)
    again = rk.learning_curve(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3, measures=MANY, n_jobs=2)
    assert again.table[MANY].equals(curve.table[MANY])


def test_the_order_of_queries_does_not_matter(ltr):
    """Which queries are drawn depends on their ids and the seed."""
    order = np.argsort(ltr.qid, kind="stable")[::-1]
    told = {"cv": 3, "sizes": [4, 9], "measures": "AP"}
    curve = rk.learning_curve(Ridge(), ltr.X, ltr.y, qid=ltr.qid, **told)
    moved = rk.learning_curve(Ridge(), ltr.X[order], ltr.y[order], qid=ltr.qid[order], **told)
    np.testing.assert_allclose(moved.table["AP"], curve.table["AP"], rtol=0, atol=1e-9)


def test_it_is_drawn(ltr):
    curve = rk.learning_curve(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3, sizes=[4, 8], measures=MANY)
    axes = curve.plot("AP").axes[0]
    assert axes.get_lines()[0].get_xdata().tolist() == [4, 8]
    assert axes.get_ylabel() == "AP"
    assert curve.plot().axes[0].get_ylabel() == "nDCG@10"
    assert "n_train_queries" in curve._repr_html_()
    assert repr(curve).startswith("nDCG@10, AP by the number of training queries, means over folds\n")
    with pytest.raises(UnknownName, match="AP"):
        curve.plot("RR")


def test_bad_use_is_an_error_of_one_line(ltr):
    for sizes, words in (
        ([0], "size 0 "),
        ([1.5], "size 1.5"),
        ([21], "1 to 20"),
        ([0.01], "size 0.01"),
        ([], "empty"),
    ):
        with pytest.raises(InvalidInput, match=words):
            rk.learning_curve(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3, sizes=sizes)
    with pytest.raises(QueryIdError, match="learning_curve needs the query id"):
        rk.learning_curve(Ridge(), ltr.X, ltr.y)


def test_registered_content_is_refused_before_anything_is_fitted(ltr, monkeypatch):
    class Refusing:
        def refuse(self, X, y, qid, *, docid, action):
            raise GuardRefusal(action)

    Counting.seen = []
    monkeypatch.setattr(ContaminationCheck, "current", Refusing)
    with pytest.raises(GuardRefusal, match="learning_curve"):
        rk.learning_curve(Counting(), ltr.X, ltr.y, qid=ltr.qid)
    assert Counting.seen == []


def test_scikit_learns_own_curves_take_one_measure(ltr):
    """They put scores into an array, which dicts cannot be: several measures end in an error, not in wrong numbers."""
    told = {"cv": rk.QueryKFold(3), "error_score": "raise"}
    one, many = rk.make_scorer("AP"), rk.make_scorer(MANY)
    assert learning_curve(Ridge(), ltr.X, ltr.y_indexed, scoring=one, **told)[2].shape == (5, 3)
    with pytest.raises((AttributeError, TypeError, ValueError)):
        learning_curve(Ridge(), ltr.X, ltr.y_indexed, scoring=many, **told)
    with pytest.raises((AttributeError, TypeError, ValueError)):
        validation_curve(Ridge(), ltr.X, ltr.y_indexed, param_name="alpha", param_range=[1, 2], scoring=many, **told)
