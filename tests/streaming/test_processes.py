"""The processes of n_jobs= are cheap to start: each imports what it needs and no more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from streaming.logs import Log

CALL = """
import json, sys, time
import joblib
import rankeval as rk
from rankeval.evaluation.streaming import buckets, plan
plan.PART, buckets.BATCH = 200, 16

def loaded():
    time.sleep(0.1)  # so that each process gets a task
    return sorted({name.partition(".")[0] for name in sys.modules})

rk.evaluate(sys.argv[1], qid="query", relevance="label", score="value", n_jobs=2)
found = joblib.Parallel(2, batch_size=1)(joblib.delayed(loaded)() for _ in range(4))
print(json.dumps([modules for modules in found if "rankeval" in modules]))
"""


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_a_process_does_not_import_pandas_or_scipy(tmp_path, order):
    log = Log.made()
    data = (log if order == "sorted" else log.shuffled()).write(tmp_path / "log", cuts=(200,))
    done = subprocess.run([sys.executable, "-c", CALL, data], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    processes = json.loads(done.stdout)
    assert processes
    for modules in processes:
        assert not {"pandas", "scipy", "sklearn"} & set(modules)
