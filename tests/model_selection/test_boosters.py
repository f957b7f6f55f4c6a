"""What the libraries are told, and early stopping by our measures."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.model_selection.rows import EarlyStopping, TrainingRows


def test_a_watch_stops_after_its_rounds_and_not_before():
    y = np.array([1, 0, 1, 0])
    watch = EarlyStopping(rk.measure("P@1"), 2, TrainingRows.of(np.zeros((4, 1)), y, np.array([1, 1, 2, 2])))
    good, bad = [1, 0, 1, 0], [0, 1, 0, 1]
    assert [watch.after(number, score) for number, score in enumerate([bad, good, good, bad])] == [False] * 3 + [True]
    assert (watch.best, watch.best_iteration) == (1.0, 1)
    watch.end()
    with pytest.raises(InvalidInput, match="has ended"):
        watch.value(good)


def test_a_watch_of_a_measure_of_which_less_is_better():
    watch = EarlyStopping(
        rk.measure("ARP"), 2, TrainingRows.of(np.zeros((4, 1)), np.array([1, 0, 1, 0]), np.array([1, 1, 2, 2]))
    )
    good, bad = [1, 0, 1, 0], [0, 1, 0, 1]
    assert [watch.after(number, score) for number, score in enumerate([bad, good, bad, bad])] == [False] * 3 + [True]
    assert (watch.best, watch.best_iteration) == (watch.value(good), 1)


def test_no_booster_is_imported_that_the_caller_did_not_import():
    code = (
        "import sys, rankeval as rk; from sklearn.linear_model import Ridge; "
        "rk.QueryRanker(Ridge()).fit([[1.0], [2.0]], [0, 1], qid=[1, 1]); "
        "print([name for name in ('lightgbm', 'xgboost', 'catboost', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
