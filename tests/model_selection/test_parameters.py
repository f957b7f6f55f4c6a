"""Misspelt parameters are found although boosters take any name."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest
from lightgbm import LGBMRanker
from model_selection.libraries import CatBoostRanker, XGBRanker, each
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankeval as rk
from rankeval import QueryRanker
from rankeval.errors import RankevalWarning, UnknownName
from rankeval.model_selection.checks import check_names
from rankeval.model_selection.parameters import choices_of, settings_of, shown_choices


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


FOLDS = rk.QueryKFold(2)
BARE = Ridge(alpha=3.0)
PIPELINE = make_pipeline(StandardScaler(), QueryRanker(BARE))
SEARCHES = [
    (GridSearchCV(BARE, {"alpha": [0.1, 10.0]}, cv=FOLDS), "alpha", "alpha"),
    (RandomizedSearchCV(BARE, [{"alpha": [0.1]}, {"alpha": [10.0]}], cv=FOLDS), "alpha", "alpha"),
    (GridSearchCV(QueryRanker(BARE), {"estimator__alpha": [0.1, 10.0]}), "estimator__alpha", "alpha"),
    (QueryRanker(GridSearchCV(BARE, {"alpha": [0.1, 10.0]})), "alpha", "alpha"),
    (make_pipeline(StandardScaler(), GridSearchCV(BARE, {"alpha": [0.1, 10.0]})), "alpha", "gridsearchcv__alpha"),
    (GridSearchCV(PIPELINE, {"queryranker__estimator__alpha": [0.1, 10.0]}), "queryranker__estimator__alpha",
     "queryranker__alpha"),
]  # fmt: skip


@pytest.mark.parametrize(("search", "name", "shown"), each(SEARCHES))
def test_a_searched_parameter_has_the_name_and_the_value_of_a_bare_ranker_that_was_chosen(search, name, shown):
    """And never the value that the search starts from; all folds agree, or a list has the choices in order."""
    ranker = QueryRanker(search)
    assert shown_choices(ranker, [name]) == {name: shown}
    assert "3.0" not in [text for text, _ in settings_of(search).values()]
    folds = pd.DataFrame({name: [10.0, 0.1, 10.0]})
    assert choices_of(ranker, folds, ())[shown] == ("[10.0, 0.1, 10.0]", True)
    assert choices_of(ranker, folds[:1], ())[shown] == ("10.0", True)
    by_seed = pd.concat([folds[:1].add_prefix("seed 0 "), folds[1:2].reset_index().add_prefix("seed 1 ")], axis=1)
    assert choices_of(ranker, by_seed.filter(like=name), (0, 1))[shown] == ("[10.0, 0.1]", True)
    assert any("param_" in shown and "0.1" in text for shown, (text, _) in settings_of(search).items())
    if shown == "alpha":
        assert set(settings_of(BARE)) - {"alpha"} <= set(settings_of(search))


def test_a_searched_part_takes_its_own_parameters_along():
    ranker = QueryRanker(GridSearchCV(PIPELINE, {"queryranker__estimator": [Ridge(0.1), Ridge(2.0)]}))
    assert "queryranker__alpha" not in settings_of(ranker)
    chosen = pd.DataFrame({"queryranker__estimator": [Ridge(0.1), Ridge(0.1)]})
    assert choices_of(ranker, chosen, ())["queryranker"] == ("Ridge", True)


def test_the_weights_that_a_fusion_chose_are_shown_for_those_it_starts_from():
    ranker = QueryRanker(rk.Fusion("weighted", columns=["a", "b"]))
    chosen = pd.DataFrame({"weights": [(0.6, 0.4), (0.5, 0.5)]})
    assert choices_of(ranker, chosen, ())["weights"] == ("[[0.6, 0.4], [0.5, 0.5]]", True)
