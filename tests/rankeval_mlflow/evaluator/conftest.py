"""The evaluator, registered with MLflow whether or not the installed distribution declares it already."""

from __future__ import annotations

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry

from rankeval_mlflow.evaluator.entry import RankevalEvaluator


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Register the evaluator as its entry point does, for the test only."""
    monkeypatch.setitem(_model_evaluation_registry._registry, "rankeval", RankevalEvaluator)


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return 30 queries of 8 rows, shuffled, with two features, a label and the scores of some system."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, 240)
    features = rng.normal(size=(240, 2))
    rows = pd.DataFrame(
        {
            "first": features[:, 0] + labels,
            "second": features[:, 1],
            "qid": np.repeat([f"q{number}" for number in range(30)], 8),
            "docid": [f"d{number}" for number in range(240)],
            "relevance": labels,
        }
    )
    rows["bm25"] = 2 * rows["first"] + rows["second"]
    return rows.iloc[rng.permutation(240)].reset_index(drop=True)


def predict(features):
    """Score rows as the column bm25 does; fails if it gets anything but the features."""
    assert list(features.columns) == ["first", "second"]
    return (2 * features["first"] + features["second"]).to_numpy()


class Scorer(mlflow.pyfunc.PythonModel):
    """The same as a model."""

    def predict(self, context, model_input, params=None):
        return predict(model_input)


@pytest.fixture
def function():
    """Return the ranker as a Python function."""
    return predict


@pytest.fixture
def logged() -> mlflow.models.model.ModelInfo:
    """Return the ranker as a logged model of the test's store."""
    return mlflow.pyfunc.log_model(name="linear", python_model=Scorer(), pip_requirements=[])
