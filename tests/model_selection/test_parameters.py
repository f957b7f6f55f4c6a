"""Misspelt parameters are found although boosters take any name."""

from __future__ import annotations

import warnings

import pytest
from lightgbm import LGBMRanker
from model_selection.libraries import CatBoostRanker, XGBRanker, each
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankeval import QueryRanker
from rankeval.errors import RankevalWarning, UnknownName
from rankeval.model_selection.checks import check_names


class TakesMore(BaseEstimator):
    """As skorch's nets: `set_params` takes names that `get_params` does not list."""

    def set_params(self, **params):
        vars(self).update(params)
        return self


@pytest.mark.parametrize(
    ("estimator", "name", "said"),
    each([
        (LGBMRanker(), "estimator__num_leaves", "LGBMRanker has .* 'estimator__num_leaves'; write 'num_leaves'$"),
        (XGBRanker(), "ranker__max_depth", "XGBRanker has no parameter 'ranker__max_depth'; write 'max_depth'$"),
        (QueryRanker(LGBMRanker()), "num_leaves", "QueryRanker has .* 'num_leaves'; write 'estimator__num_leaves'$"),
        (QueryRanker(LGBMRanker()), "num_leavs", "'num_leavs'; did you mean 'estimator__num_leaves'\\?$"),
        (QueryRanker(Ridge()), "estimator__estimator__alpha", "estimator__alpha'; write 'estimator__alpha'$"),
        (QueryRanker(Ridge()), "estimator__alhpa", "'estimator__alhpa'; did you mean 'estimator__alpha'\\?$"),
        (make_pipeline(StandardScaler(), Ridge()), "alpha", "Pipeline has no parameter 'alpha'; write 'ridge__alpha'$"),
        (make_pipeline(StandardScaler(), Ridge()), "rigde__alpha", "'rigde__alpha'; write 'ridge__alpha'$"),
        (make_pipeline(StandardScaler(), Ridge()), "beta", "'beta'; a parameter of a part is written part__parameter$"),
        (make_pipeline(StandardScaler(), QueryRanker(LGBMRanker())), "queryranker__num_leaves",
         "write 'queryranker__estimator__num_leaves'$"),
        (make_pipeline(LGBMRanker()), "lgbmranker__estimator__num_leaves", "write 'lgbmranker__num_leaves'$"),
        (GridSearchCV(QueryRanker(Ridge()), {}), "estimator__alpha", "write 'estimator__estimator__alpha'$"),
        (CatBoostRanker(), "dpth", "CatBoostRanker has no parameter 'dpth'; did you mean 'depth'\\?$"),
        (Ridge(), "qqq", "^space: Ridge has no parameter 'qqq'$"),
    ]),
)  # fmt: skip
def test_a_name_that_the_estimator_does_not_have_is_refused(estimator, name, said):
    """With the name that may be meant."""
    with pytest.raises(UnknownName, match=said):
        check_names(estimator, {name: 1}, where="space")


@pytest.mark.parametrize(
    ("estimator", "name", "near"),
    each(
        [
            (LGBMRanker(), "num_leavs", "num_leaves"),
            (LGBMRanker(), "num_leafs", "num_leaves"),
            (LGBMRanker(num_leavs=5), "num_leavs", "num_leaves"),
            (XGBRanker(), "max_dept", "max_depth"),
            (QueryRanker(LGBMRanker()), "estimator__num_leavs", "estimator__num_leaves"),
            (make_pipeline(LGBMRanker()), "lgbmranker__num_leavs", "lgbmranker__num_leaves"),
        ]
    ),
)
def test_a_name_that_is_nearly_one_of_a_booster_is_asked_about(estimator, name, near):
    """It may be another name of the library's own."""
    with pytest.warns(RankevalWarning, match=f"^space: .* has no parameter '{name}' .* did you mean '{near}'"):
        check_names(estimator, {name: 1}, where="space")


@pytest.mark.parametrize(
    ("estimator", "params"),
    each([
        (LGBMRanker(), {"num_leaves": 3, "lambda_l2": 1, "max_bin": 63, "colsample_bynode": 0.5}),
        (XGBRanker(), {"max_depth": 3, "lambdarank_num_pair_per_sample": 8}),
        (CatBoostRanker(), {"depth": 3, "iterations": 5}),
        (QueryRanker(LGBMRanker()), {"estimator__num_leaves": 3, "early_stopping_rounds": 5}),
        (QueryRanker(Ridge()), {"estimator": LGBMRanker(), "estimator__num_leaves": 3}),
        (make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": 3, "standardscaler": "passthrough"}),
        (make_pipeline(ColumnTransformer([("a", StandardScaler(), [0])])), {"columntransformer__a__with_mean": False}),
        (TakesMore(), {"module__width": 3, "anything": 2}),
    ]),
)  # fmt: skip
def test_all_else_passes_in_silence(estimator, params):
    """Aliases of the libraries, parts that are replaced, estimators that take more than they list."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_names(estimator, params, where="space")


def test_the_part_that_replaces_another_is_asked():
    """And not the one that is there before."""
    with pytest.raises(UnknownName, match="QueryRanker has no parameter 'estimator__ranker__n_leaves'"):
        check_names(QueryRanker(Ridge()), {"estimator": LGBMRanker(), "estimator__ranker__n_leaves": 3}, where="space")
