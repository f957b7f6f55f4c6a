"""An estimator that raises when it is fitted, for experiments that fail after they began."""

from __future__ import annotations

from sklearn.base import BaseEstimator, RegressorMixin


class Broken(RegressorMixin, BaseEstimator):
    """It divides by nothing."""

    def fit(self, X, y):
        """Raise."""
        raise ZeroDivisionError("nothing to divide by")

    def predict(self, X):
        """Return nothing: `fit` never ends."""
        raise NotImplementedError
