"""A small learning-to-rank problem, with rows in no order."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn

QUERIES = 30


@pytest.fixture
def ltr():
    """Return X, y, qid of 30 queries with string ids, rows shuffled, and the same with an index level "qid"."""
    rng = np.random.default_rng(7)
    qid = np.array([f"q{number}" for number in rng.permutation(np.repeat(np.arange(QUERIES), 12))])
    X = rng.normal(size=(len(qid), 5))
    y = np.clip(np.round(X[:, 0] + 0.7 * rng.normal(size=len(qid))), 0, 3).astype(int)
    index = pd.Index(qid, name="qid")
    frame = pd.DataFrame(X, columns=list("abcde"))
    return SimpleNamespace(X=X, y=y, qid=qid, frame=frame, indexed=frame.set_axis(index), y_indexed=pd.Series(y, index))


@pytest.fixture
def routing():
    """Switch metadata routing on."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield
