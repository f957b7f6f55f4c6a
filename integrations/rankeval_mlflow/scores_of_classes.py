"""The score of a row from a classifier, for models of MLflow: copied into the model, and run there without rankeval.

The rule is that of `rankeval.evaluation.responses`: the probability of the second class, or the expected grade if there
are several classes. A model names this module as its loader.
"""

from __future__ import annotations

from typing import Any

import mlflow
import numpy as np


class ScoresOfClasses:
    """Ranks rows by the classes that a classifier expects.

    Parameters
    ----------
    classifier : object
        A fitted classifier.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def predict(self, rows: Any, params: Any = None) -> Any:  # noqa: ARG002 - MLflow's signature
        """Return one score a row; higher ranks first."""
        inner = self.classifier
        if not hasattr(inner, "predict_proba"):
            ranks = hasattr(inner, "decision_function") and len(inner.classes_) <= 2
            return np.asarray((inner.decision_function if ranks else inner.predict)(rows)).astype(np.float64)
        values = np.asarray(inner.predict_proba(rows))
        if values.shape[1] > 2:
            return values @ np.asarray(inner.classes_, dtype=np.float64)
        return values[:, -1].astype(np.float64)


def _load_pyfunc(path: str) -> ScoresOfClasses:
    """Return the model whose classifier is in a folder; MLflow calls this."""
    return ScoresOfClasses(mlflow.sklearn.load_model(path))
