"""No query is ever cut."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    cross_val_score,
)
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, QueryIdError, UnknownName
from rankeval.model_selection import splitters
from rankeval.model_selection.query_split import QuerySplit
from rankeval.model_selection.splitters import (
    QueryKFold,
    QueryShuffleSplit,
    QueryTimeSplit,
    RepeatedQueryKFold,
    StratifiedQueryKFold,
)

SPLITTERS = [
    QueryKFold(3),
    QueryKFold(3, shuffle=True, random_state=0),
    RepeatedQueryKFold(3, n_repeats=2, random_state=0),
    QueryShuffleSplit(4, test_size=0.3, random_state=0),
    QueryTimeSplit(3, gap=1, times={f"q{number}": number for number in range(30)}),
    QuerySplit(KFold(4)),
    QuerySplit(LeaveOneOut()),
    QuerySplit(GroupKFold(3)),
    QuerySplit(LeaveOneGroupOut()),
    QuerySplit(GroupShuffleSplit(2, random_state=1)),
]


@each_row("cv", SPLITTERS, ids=repr)
def test_no_query_is_on_two_sides(cv, ltr):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        splits = list(cv.split(ltr.X, ltr.y, qid=ltr.qid))
    assert len(splits) == cv.get_n_splits(ltr.X, ltr.y, qid=ltr.qid)
    for train, test in splits:
        assert len(train)
        assert len(test)
        assert not set(ltr.qid[train]) & set(ltr.qid[test])
        assert np.isin(ltr.qid, ltr.qid[test]).sum() == len(test)


@given(
    ids=st.lists(st.one_of(st.integers(0, 9), st.text(max_size=2)), min_size=4, max_size=40).filter(
        lambda x: len(set(x)) > 2
    )
)
def test_folds_of_any_ids_hold_each_row_out_once(ids):
    column = np.empty(len(ids), dtype=object)
    column[:] = ids
    held_out = np.concatenate([test for _, test in QueryKFold(2).split(np.zeros((len(ids), 1)), qid=column)])
    assert sorted(held_out.tolist()) == list(range(len(ids)))


def test_folds_do_not_depend_on_the_order_of_rows(ltr):
    order = np.random.default_rng(1).permutation(len(ltr.y))
    one = [set(ltr.qid[test]) for _, test in QueryKFold(4).split(ltr.X, qid=ltr.qid)]
    other = [set(ltr.qid[order][test]) for _, test in QueryKFold(4).split(ltr.X[order], qid=ltr.qid[order])]
    assert one == other


def test_ids_come_by_groups_by_sizes_by_index_and_by_column(ltr):
    expected = [test.tolist() for _, test in QueryKFold(3).split(ltr.X, qid=ltr.qid)]
    frame = ltr.frame.assign(qid=ltr.qid)
    for X, y, given_ids in (
        (ltr.X, ltr.y, {"groups": ltr.qid}),
        (ltr.indexed, ltr.y, {}),
        (ltr.X, ltr.y_indexed, {}),
        (frame, ltr.y, {}),
    ):
        assert [test.tolist() for _, test in QueryKFold(3).split(X, y, **given_ids)] == expected
    halves = [test.tolist() for _, test in QueryKFold(2).split(np.zeros((5, 1)), group=[2, 3])]
    assert halves == [[0, 1], [2, 3, 4]]


def test_a_missing_qid_is_an_error(ltr):
    with pytest.raises(QueryIdError, match="QueryKFold needs the query id"):
        list(QueryKFold(3).split(ltr.X, ltr.y))


def test_a_second_key_keeps_whole_groups_of_queries_together(ltr):
    """Split by author, rank by query."""
    author = np.array([f"author {int(query[1:]) % 7}" for query in ltr.qid])
    for train, test in QueryKFold(3).split(ltr.X, groups=author, qid=ltr.qid):
        assert not set(author[train]) & set(author[test])
        assert not set(ltr.qid[train]) & set(ltr.qid[test])
    with pytest.raises(QueryIdError, match="groups differs within the query"):
        list(QueryKFold(3).split(ltr.X, groups=np.arange(len(ltr.y)), qid=ltr.qid))


def test_stratified_folds_share_the_stratum_evenly(ltr):
    cv = StratifiedQueryKFold(3, stratum=lambda y: y.max() > 2)
    strong = pd.Series(ltr.y).groupby(ltr.qid).max() > 2
    shares = [strong[np.unique(ltr.qid[test])].sum() for _, test in cv.split(ltr.X, ltr.y, qid=ltr.qid)]
    assert max(shares) - min(shares) <= 1
    assert 0 < strong.sum() < len(strong)


def test_time_runs_with_the_rows():
    qid = np.repeat(["z", "y", "x", "w", "v", "u"], 2)
    for train, test in QueryTimeSplit(2, gap=1).split(np.zeros((12, 1)), qid=qid):
        assert train.max() + 2 < test.min()


@pytest.mark.usefixtures("routing")
def test_routing_brings_one_qid_to_splitter_and_scorer(ltr):
    cv = QueryKFold(3)
    values = cross_val_score(Ridge(), ltr.X, ltr.y, cv=cv, scoring=rk.make_scorer("AP"), params={"qid": ltr.qid})
    assert np.isfinite(values).all()
    renamed = QueryKFold(3).set_split_request(qid="query")
    scorer = rk.make_scorer("AP").set_score_request(qid="query")
    again = cross_val_score(Ridge(), ltr.X, ltr.y, cv=renamed, scoring=scorer, params={"query": ltr.qid})
    assert again.tolist() == values.tolist()
    with pytest.raises(UnknownName, match="quid"):
        cv.set_split_request(quid=True)


def test_without_routing_groups_reach_the_splitter(ltr):
    """As with scikit-learn's own group splitters."""
    values = cross_val_score(Ridge(), ltr.X, ltr.y, groups=ltr.qid, cv=QueryKFold(3), scoring="r2")
    assert len(values) == 3


def test_a_splitter_prints_as_it_is_made():
    assert repr(QueryKFold(4)).startswith("QueryKFold(n_splits=4")
    assert repr(clone(QuerySplit(KFold(3)), safe=False)).startswith("QuerySplit(KFold(n_splits=3")
    names = {**vars(rk), **vars(splitters), **vars(sklearn.model_selection)}
    for cv in SPLITTERS:
        assert "\n" not in repr(cv)
        assert repr(eval(repr(cv), names)) == repr(cv)  # noqa: S307 - our own text
    with pytest.raises(InvalidInput, match="no split method"):
        QuerySplit(5)
    with pytest.raises(UnknownName, match="order of queries"):
        QuerySplit(KFold(3), order="time")
