"""Forgotten or wrong query ids stop a search in one line, though it was told to turn errors into nan."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from tables import each_row

import rankeval as rk
from rankeval.errors import ConflictingQueryIdsRefusal, MissingQueryIdsRefusal, QueryIdError, UnusableWeightsRefusal
from rankeval.model_selection.inside_searches import in_search

ROWS = 360
N_JOBS = [1, pytest.param(2, marks=pytest.mark.rest)]
"""Workers: test_scorers.py has a refusal that comes through them by default."""


def told_as(wrong, qid):
    """Return what a caller passes, and the words that say what is wrong with it."""
    with_gap = qid.astype(object)
    with_gap[7] = np.nan
    return {
        "missing": (None, "needs the query id of each row"),
        "wrong length": (qid[:-1], "has shape"),
        "nan": (with_gap, "is missing in row"),
    }[wrong]


@each_row("wrong", ["missing", "wrong length", "nan"])
@each_row("cv", [3, rk.QueryKFold(3)], ids=["KFold", "QueryKFold"])
@each_row("ranker", [Ridge(), rk.QueryRanker(Ridge())], ids=["scorer only", "fit too"])
def test_a_wrong_qid_is_an_error_of_one_line_in_a_routed_search(wrong, cv, ranker, ltr):
    """From the splitter, which stands outside of error_score, a ValueError; from fit and scorer a refusal."""
    qid, words = told_as(wrong, ltr.qid)
    grid = {"estimator__alpha" if isinstance(ranker, rk.QueryRanker) else "alpha": [1.0]}
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(ranker, grid, scoring=rk.make_scorer("AP"), cv=cv, error_score=np.nan)
        told = {} if qid is None else {"qid": qid}
        with pytest.raises((MissingQueryIdsRefusal, QueryIdError), match=words) as caught:
            search.fit(ltr.X, ltr.y, **told)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n_jobs", N_JOBS)
def test_a_key_that_is_not_in_the_index_of_bound_ids_stops_the_search(n_jobs, ltr):
    index = [f"row {number}" for number in range(ROWS)]
    y = pd.Series(ltr.y, index)
    scorer = rk.make_scorer("AP", qid=pd.Series(ltr.qid[:-1], index[:-1]))
    with pytest.raises(MissingQueryIdsRefusal, match="has no row 'row 359'") as caught:
        cross_val_score(Ridge(), ltr.X, y, cv=KFold(3), scoring=scorer, error_score=np.nan, n_jobs=n_jobs)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("n_jobs", N_JOBS)
def test_sources_that_disagree_stop_the_search(n_jobs, ltr):
    """In the scorer, in fit; and a caller who expects MissingQueryIdsRefusal gets it."""
    other = ltr.qid[::-1].copy()
    for ranker in (Ridge(), rk.QueryRanker(Ridge())):
        with pytest.raises(ConflictingQueryIdsRefusal, match="into different queries") as caught:
            cross_validate(
                ranker, ltr.X, ltr.y_indexed, cv=KFold(3), scoring=rk.make_scorer("AP"), params={"qid": other},
                error_score=np.nan, n_jobs=n_jobs,
            )  # fmt: skip
        assert isinstance(caught.value, MissingQueryIdsRefusal)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("n_jobs", N_JOBS)
def test_weights_by_row_in_a_scorer_stop_the_search(n_jobs, ltr):
    """Weights of rows are fitted only: they do not reach a scorer."""
    by_row = np.arange(1.0, 1 + len(ltr.y))
    ranker = rk.QueryRanker(Ridge()).set_fit_request(sample_weight=True)
    search = {"cv": rk.QueryKFold(3), "scoring": rk.make_scorer("AP"), "error_score": np.nan, "n_jobs": n_jobs}
    with pytest.raises(UnusableWeightsRefusal) as caught:
        cross_val_score(ranker, ltr.X, ltr.y, params={"qid": ltr.qid, "query_weight": by_row}, **search)
    assert caught.value.argument == "query_weight"
    assert "\n" not in str(caught.value)
    params = {"qid": ltr.qid, "sample_weight": by_row}
    assert np.isfinite(cross_val_score(ranker, ltr.X, ltr.y, params=params, **search)).all()


def test_outside_of_a_search_fit_raises_what_can_be_caught(ltr):
    """A ValueError, as everywhere else."""
    assert not in_search()
    with pytest.raises(ValueError, match="needs the query id of each row"):
        rk.QueryRanker(Ridge()).fit(ltr.X, ltr.y)


def test_our_own_cross_validation_raises_what_can_be_caught(ltr):
    for qid in (None, ltr.qid[:-1]):
        with pytest.raises(QueryIdError):
            rk.cross_validate(rk.QueryRanker(Ridge()), ltr.X, ltr.y, qid=qid, cv=3)
