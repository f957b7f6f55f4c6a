"""The processes of n_jobs= are cheap to start: each imports what it needs and no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest
from streaming.logs import Log

from rankeval.evaluation.streaming.workers import end_with

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


CALLER = """
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", sys.argv[1]]).pid, flush=True)
sys.stdin.read()
"""
WORKER = """
import os, time
from rankeval.evaluation.streaming.workers import end_with
end_with(os.getppid())
print("ready", flush=True)
time.sleep(600)
"""


def test_a_process_ends_with_its_caller():
    """Also if that was killed and told it nothing. The pipe is open as long as one of both is there."""
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    worker = int(caller.stdout.readline())
    assert caller.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        caller.wait(1)
    os.kill(worker, 0)  # it is there
    caller.kill()
    assert caller.communicate(timeout=30)[0] == ""


def test_a_process_of_another_caller_does_not_end():
    end_with(os.getpid())
    assert not [one for one in threading.enumerate() if one.name.endswith("(_wait_for_end)")]
