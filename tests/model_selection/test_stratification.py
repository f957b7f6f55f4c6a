"""What stratified splitters balance, over whole queries."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.model_selection.query_split import n_relevant, strata

LANGUAGE = ["de", "en", "fr"]


def language(query):
    return LANGUAGE[int(query[1:]) % 3]


def held_out(cv, ltr, **options):
    """Return the queries of each test part; nothing may be warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [np.unique(ltr.qid[test]) for _, test in cv.split(ltr.X, ltr.y, qid=ltr.qid, **options)]


@each_row(
    "splitter",
    [
        StratifiedKFold(5),
        RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0),
        StratifiedGroupKFold(5),
        StratifiedShuffleSplit(3, test_size=0.3, random_state=0),
        StratifiedShuffleSplit(3, random_state=0),
        StratifiedShuffleSplit(3, train_size=4, random_state=0),
    ],
    ids=repr,
)
def test_every_stratified_splitter_balances_the_number_of_relevant_rows(splitter, ltr):
    cv = rk.QuerySplit(splitter)
    parts = held_out(cv, ltr)
    assert len(parts) == cv.get_n_splits(ltr.X, ltr.y, qid=ltr.qid)
    counts = pd.Series(ltr.y > 0).groupby(ltr.qid).sum()
    plain = np.std([counts[part].mean() for part in held_out(rk.QueryKFold(5), ltr)])
    if len(parts) != 3:
        assert np.std([counts[part].mean() for part in parts]) < plain
    assert rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=splitter).folds.shape[0] == len(parts)


@given(st.lists(st.integers(0, 40), min_size=5, max_size=80), st.integers(2, 5))
def test_any_counts_can_be_shared_out(counts, n_splits):
    """Folds differ by at most one query in each stratum, and by at most one in all."""
    rows = np.repeat(np.arange(len(counts)), 40)
    y = (np.tile(np.arange(40), len(counts)) < np.repeat(counts, 40)).astype(int)
    cv = rk.StratifiedQueryKFold(n_splits)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = [np.unique(rows[test]) for _, test in cv.split(y.reshape(-1, 1), y, qid=rows)]
    assert sorted(np.concatenate(parts)) == list(range(len(counts)))
    assert np.ptp([len(part) for part in parts]) <= 1
    stratum = strata(counts, cv.splitter)
    for one in np.unique(stratum):
        assert np.ptp([(stratum[part] == one).sum() for part in parts]) <= 1
    assert (np.diff(stratum[np.argsort(counts, kind="stable")]) >= 0).all()


@each_row(
    "key",
    [
        lambda ltr: {query: language(query) for query in np.unique(ltr.qid)},
        lambda ltr: pd.Series({query: language(query) for query in np.unique(ltr.qid)}),
        lambda ltr: np.array([language(query) for query in ltr.qid]),
        lambda ltr: pd.Series([language(query) for query in ltr.qid]),
        lambda ltr: [language(query) for query in ltr.qid],
    ],
    ids=["mapping", "series by query", "array by row", "series by row", "list by row"],
)
def test_a_key_is_balanced_by_query_or_by_row(key, ltr):
    cv = rk.StratifiedQueryKFold(5, key=key(ltr))
    for part in held_out(cv, ltr):
        assert sorted(map(language, part)) == sorted(LANGUAGE * 2)
    without_y = [ltr.qid[test].tolist() for _, test in cv.split(ltr.X, qid=ltr.qid)]
    names = {"StratifiedQueryKFold": rk.StratifiedQueryKFold, "Series": pd.Series, "np": np}
    again = clone(eval(repr(cv), names), safe=False)  # noqa: S307 - our own text
    assert [ltr.qid[test].tolist() for _, test in again.split(ltr.X, ltr.y, qid=ltr.qid)] == without_y


def test_a_rare_label_goes_to_as_many_folds_as_it_can(ltr):
    rare = {query: query in {"q1", "q2", "q3"} for query in np.unique(ltr.qid)}
    parts = held_out(rk.StratifiedQueryKFold(5, key=rare), ltr)
    assert sorted(sum(rare[query] for query in part) for part in parts) == [0, 0, 1, 1, 1]
    parts = held_out(rk.StratifiedQueryKFold(5, stratum=lambda y: int(y.sum() > 18)), ltr)
    assert len(parts) == 5


@each_row(
    "options",
    [
        {"key": {"q0": "de"}},
        {"key": ["de", "en"]},
        {"key": np.arange(360)},
        {"key": [None] * 360},
        {"key": "language"},
        {"stratum": "language"},
        {"stratum": n_relevant, "key": {}},
        {"n_splits": 31},
    ],
    ids=range(8),
)
def test_a_key_that_is_none_is_an_error_of_one_line(options, ltr):
    with pytest.raises(InvalidInput, match=r"key|stratum|needs 31 queries") as caught:
        list(rk.StratifiedQueryKFold(**options).split(ltr.X, ltr.y, qid=ltr.qid))
    assert "\n" not in str(caught.value)


def test_labels_are_needed_where_they_are_balanced(ltr):
    for cv in (rk.StratifiedQueryKFold(3), rk.QuerySplit(StratifiedKFold(3))):
        with pytest.raises(InvalidInput, match=r"give y to split\(\), or key="):
            list(cv.split(ltr.X, qid=ltr.qid))


def test_predefined_folds_are_of_queries(ltr):
    assert len(held_out(rk.QuerySplit(PredefinedSplit(np.arange(30) % 3)), ltr)) == 3
    for size in (360, 29):
        with pytest.raises(InvalidInput, match=f"test_fold has {size} entries.*30 queries"):
            held_out(rk.QuerySplit(PredefinedSplit(np.arange(size) % 3)), ltr)


def test_a_splitter_of_strata_prints_as_it_is_made():
    assert repr(rk.StratifiedQueryKFold(3)) == "StratifiedQueryKFold(n_splits=3, random_state=None, shuffle=False)"
    assert repr(rk.StratifiedQueryKFold(3, stratum=n_relevant)).endswith("shuffle=False, stratum=n_relevant)")
    assert repr(rk.QuerySplit(KFold(3), order="row", stratum=n_relevant)).endswith(", order='row', stratum=n_relevant)")
