"""A library of boosters is one declaration: fits, early stopping, refusals, hints and the MLflow flavour read it."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType, SimpleNamespace

import mlflow.sklearn
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from typer.testing import CliRunner

import rankeval as rk
from rankeval import _source
from rankeval.cli import app
from rankeval.errors import ConfigError, InvalidInput, UnknownName
from rankeval.experiment.loading import imported
from rankeval.model_selection.boosters import BOOSTERS
from rankeval.model_selection.checks import check_names
from rankeval.model_selection.libraries import COUNTS, Booster, add_booster
from rankeval_mlflow.saving import saved


class StumpRanker(BaseEstimator):
    """Add one column a round, the first ones first."""

    def __init__(self, n_rounds=4, patience=None, objective="rank"):
        self.n_rounds, self.patience, self.objective = n_rounds, patience, objective

    def fit(self, X, y, sizes=None, sample_weight=None, watch=None):
        self.sizes_, self.weight_, self.n_used_ = np.asarray(sizes), sample_weight, 0
        while self.n_used_ < self.n_rounds and not (watch and watch(self)):
            self.n_used_ += 1
        return self

    def predict(self, X):
        return np.asarray(X)[:, : self.n_used_].sum(axis=1)


def stopped_fit(estimator, rows, watch, told):
    def is_over(fitted):
        return fitted.n_used_ > 0 and watch.noted(fitted.n_used_, watch.value(fitted.predict(watch.held_out.X)))

    estimator.fit(rows.X, rows.y, watch=is_over, **told)
    estimator.n_used_ = watch.best_iteration
    return estimator.n_used_


@pytest.fixture(autouse=True)
def _declared(monkeypatch):
    """Declare the library for one test, and let its package be found."""
    for part in (StumpRanker, StumpRanker.predict):
        monkeypatch.setattr(part, "__module__", "stumps")
    monkeypatch.setitem(sys.modules, "stumps", ModuleType("stumps"))
    sys.modules["stumps"].StumpRanker = StumpRanker
    add_booster(
        Booster(
            name="stumps",
            words="Stumps",
            queries={"sizes": "sizes"},
            stopped_fit=stopped_fit,
            own_rounds=lambda estimator: estimator.patience,
            query_weight=lambda weight, rows: {"sample_weight": weight[rows.starts]},
            row_weighers="StumpRegressor",
            objective=("objective",),
            labels=lambda *_: COUNTS,
            unfit_name=r"\|",
            unfit_words="|",
            importances=lambda fitted: np.arange(fitted.n_rounds) < fitted.n_used_,
        )
    )
    yield
    del BOOSTERS["stumps"]


@pytest.fixture
def rows():
    """Six queries with three rows each, not in blocks; the first column ranks them right, later ones do harm."""
    y = np.tile(np.repeat([2, 1, 0], 6), 1)
    X = pd.DataFrame({"right": y * 1.0, "zero": 0.0, "harm": -9.0 * y, "more": 0.0})
    return {"X": X, "y": y, "qid": np.tile(np.arange(6), 3)}


def test_it_is_told_the_queries_in_its_form(rows):
    fitted = rk.QueryRanker(StumpRanker()).fit(**rows, sample_weight=np.tile([1.0, 2, 1, 1, 1, 1], 3)).estimator_
    assert fitted.sizes_.tolist() == [3] * 6
    assert fitted.weight_.tolist() == [1, 2, 1, 1, 1, 1]


def test_it_stops_early_by_our_measure(rows):
    ranker = rk.QueryRanker(StumpRanker(), early_stopping_rounds=2, eval_measure="AP", validation_fraction=0.5)
    ranker.fit(**rows)
    assert ranker.n_iterations_ == 1
    assert ranker.feature_importances_.tolist() == [True, False, False, False]
    own = rk.QueryRanker(StumpRanker(patience=1), validation_fraction=0.5).fit(**rows)
    assert own.n_iterations_ == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": -np.arange(18)}, "no label below 0 for StumpRanker"),
        ({"sample_weight": np.arange(1, 19)}, "one weight per query.*StumpRegressor"),
        ({"position": np.arange(18)}, "positions for StumpRanker"),
        ({"X": pd.DataFrame({"a|b": np.arange(18)})}, r"a name with none of \| for StumpRanker"),
    ],
)
def test_rows_that_it_refuses_are_refused_before_the_fit(rows, changes, words):
    with pytest.raises(InvalidInput, match=words):
        rk.QueryRanker(StumpRanker()).fit(**rows | changes)


def test_errors_hints_and_the_doctor_name_it(rows, monkeypatch):
    with pytest.raises(UnknownName, match="StumpRanker has no parameter 'n_round'; did you mean 'n_rounds'"):
        check_names(StumpRanker(), {"n_round": 1}, where="space")
    other = type("Other", (BaseEstimator,), {"fit": StumpRanker.fit, "predict": StumpRanker.predict})
    with pytest.raises(InvalidInput, match=r"only .* and Stumps can stop early"):
        rk.QueryRanker(other(), early_stopping_rounds=2).fit(**rows)
    monkeypatch.setitem(sys.modules, "stumps", None)
    with pytest.raises(ConfigError) as refused:
        imported("stumps.StumpRanker", key="rankers.a.estimator")
    assert refused.value.remedy == f"install it: {_source.install('stumps')}"
    assert "stumps           not installed" in CliRunner().invoke(app, ["doctor"]).output


def test_mlflow_gets_it_in_the_flavour_of_its_name(rows, monkeypatch):
    flavour = SimpleNamespace(save_model=partial(mlflow.sklearn.save_model, serialization_format="cloudpickle"))
    monkeypatch.setitem(sys.modules, "mlflow.stumps", flavour)
    model = saved(rk.QueryRanker(StumpRanker()).fit(**rows))
    assert (model.flavor, "MLmodel" in model.files) == ("stumps", True)
