"""A program of a user that strict type checkers accept: the types of the lazy public names reach it."""

from __future__ import annotations

from pathlib import Path
from typing import Self, assert_type

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import rankeval as rk
import rankeval_mlflow as rkm


class FirstFeature:
    """Ranks by a feature; scikit-learn's own estimators have no types, which makes Any of what is done with them."""

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Self:
        """Learn nothing."""
        assert len(X) == len(y)
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the first feature."""
        return X[:, 0]


def score(qrels: Path, run: Path) -> pd.DataFrame:
    """Score a run, save the evaluation, and return the scores by query."""
    evaluation = rk.evaluate(qrels, run, measures=["nDCG@10", rk.measure("AP")], convention="trec_eval-9.0.8")
    assert_type(evaluation, rk.Evaluation)
    assert_type(evaluation.n_queries, int)
    evaluation.save("evaluation.parquet")
    return evaluation.per_query


def validate(data: rk.RankingData) -> rk.Comparison:
    """Cross-validate one ranker, then two, and compare these."""
    one = rk.cross_validate(FirstFeature(), data, measures="nDCG@10")
    assert_type(one, rk.CrossValidation)
    several = rk.cross_validate({"weak": FirstFeature(), "strong": FirstFeature()}, data)
    assert_type(several, rk.model_selection.CrossValidations)
    return several.compare(question="models", baseline="weak")


def guarded(data: rk.RankingData) -> rk.Comparison:
    """Register a test part, freeze a plan and open it."""
    guard = rk.Guard("project")
    split = rk.dev_test_split(data, test_size=0.4, guard=guard)
    plan = guard.freeze(
        split.registered, systems={"a": FirstFeature().fit(data.X, data.y)}, baseline="a", measure="nDCG@10"
    )
    return guard.open(plan)


def logged(evaluation: rk.Evaluation) -> str:
    """Log an evaluation to MLflow and return where to look."""
    tracked = rkm.log(evaluation, role="dev")
    assert_type(rkm.load_evaluation(tracked), rk.Evaluation)
    return tracked.where


def kept(evaluation: rk.Evaluation) -> rk.Record:
    """Save an evaluation as a folder and read its record."""
    assert_type(rk.save(evaluation, "saved", role="dev"), str)
    assert_type(rk.Evaluation.from_record(evaluation.record()), rk.Evaluation)
    return rk.read_record("saved")
