"""joblib's backend "multiprocessing", whose workers are forked.

In a program of its own: a fork of a process with threads, such as one with a client of Dask, may wait for a lock that
nobody holds. Only the first fold is refused while the others still fit: a worker that is ended while it sends its
own refusal takes the lock of the results with it, and `multiprocessing.Pool.terminate` waits for ever (CPython
96995, open; about one run in a hundred).
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import joblib, numpy as np, pandas as pd, time
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
import rankeval as rk
from rankeval.evaluation import to_bytes
from rankeval.errors import GuardRefusal, MissingQueryIdsRefusal

def rows(seed):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(100 * seed, 100 * seed + 40), 12)
    return rng.normal(size=(480, 5)), rng.integers(0, 4, 480), qid

class FirstFoldFirst(Ridge):
    def fit(self, X, y):
        if X[0, 0] == first_row:
            time.sleep(2)
        return super().fit(X, y)

X, y, qid = rows(1)
one = rk.cross_validate(Ridge(), X, y, qid=qid, cv=rk.QueryKFold(3)).evaluation
with joblib.parallel_config("multiprocessing", n_jobs=2):
    two = rk.cross_validate(Ridge(), X, y, qid=qid, cv=rk.QueryKFold(3)).evaluation
    print("equal", to_bytes(one) == to_bytes(two))
    first_row = X[0, 0]
    try:
        cross_val_score(FirstFoldFirst(), X, y, scoring=rk.make_scorer("AP"), error_score=np.nan)
    except MissingQueryIdsRefusal:
        print("missing ids end it")
    X, y, qid = rows(2)
    rk.Guard("project").register("test", X, y, qid=qid)
    ids = pd.Series(y, pd.Index(qid, name="qid"))
    first_row = X[0, 0]
    try:
        cross_val_score(FirstFoldFirst(), X, ids, cv=rk.QueryKFold(3), scoring=rk.make_scorer("AP"), error_score=np.nan)
    except GuardRefusal:
        print("a refusal ends it")
"""


@pytest.mark.further
@pytest.mark.timeout(120)
def test_forked_workers_score_alike_and_refuse(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "RANKEVAL_LEDGER": str(tmp_path / "ledger")},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.stdout.splitlines() == ["equal True", "missing ids end it", "a refusal ends it"], done.stderr
