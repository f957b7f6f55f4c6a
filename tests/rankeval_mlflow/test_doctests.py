"""The examples in the plugin's docstrings give what they say, in a store of the test's own."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.further
@pytest.mark.parametrize(
    "name",
    [
        "rankeval_mlflow.run_names",
        "rankeval_mlflow.autologging",
        "rankeval_mlflow.evaluator.entry",
        "rankeval_mlflow.saving",
        "rankeval_mlflow.delivery.payload",
        "rankeval_mlflow.promotion.promoting",
        "rankeval_mlflow.genai",
        "rankeval_mlflow.reading.loading",
        "rankeval_mlflow.reading.leaderboards",
        "rankeval_mlflow.recording",
    ],
)
def test_doctests(name):
    """Every public function has an example, and it runs."""
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert tried
    assert failed == 0
