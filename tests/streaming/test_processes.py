"""The processes of n_jobs= are cheap to start: each imports what it needs and no more."""

from __future__ import annotations

import json
import os
import pickle
import select
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from streaming.logs import Log

from rankeval.streaming import running
from rankeval.streaming.running import each_done, end_with

CALL = """
import json, sys, time
import joblib
import rankeval as rk
from rankeval.streaming import queries
queries.PART, queries.BATCH = 200, 16

def loaded():
    time.sleep(0.1)  # so that each process gets a task
    return sorted({name.partition(".")[0] for name in sys.modules})

rk.evaluate_dataset(sys.argv[1], qid="query", relevance="label", score="value", n_jobs=2)
found = joblib.Parallel(2, batch_size=1)(joblib.delayed(loaded)() for _ in range(4))
print(json.dumps([modules for modules in found if "rankeval" in modules]))
"""


@pytest.mark.parametrize("order", ["shuffled", pytest.param("sorted", marks=pytest.mark.rest)])
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
import multiprocessing, os, sys, time
from rankeval.streaming.running import end_with

def work(caller, starts_late):
    print("ready", flush=True)
    while starts_late and os.getppid() == caller:
        time.sleep(0.01)
    end_with(caller)
    time.sleep(600)

multiprocessing.get_context("fork").Process(target=work, args=(os.getpid(), sys.argv[1] == "late")).start()
sys.stdin.read()
"""


@pytest.mark.parametrize("start", ["in time", "late"])
def test_a_process_ends_with_its_caller(start):
    """Also if that was killed before the process began to work. The pipe is open as long as one of both is there."""
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert caller.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        caller.wait(1)
    caller.kill()
    assert caller.communicate(timeout=30)[0] == ""


def test_a_process_of_another_caller_does_not_end():
    end_with(os.getpid())
    assert not [one for one in threading.enumerate() if one.name.endswith("(_wait_for_end)")]


@pytest.mark.parametrize(("n_tasks", "workers", "is_here"), [(1, 2, True), (2, 1, True), (2, 2, False), (3, 2, False)])
def test_tasks_leave_this_process_if_there_are_two_and_two_processes(n_tasks, workers, is_here):
    done = dict(each_done([os.getpid] * n_tasks, workers, goes_on=""))
    assert sorted(done) == list(range(n_tasks))
    assert {one == os.getpid() for one in done.values()} == {is_here}


def test_a_large_result_sends_only_its_place_through_the_pipe(tmp_path):
    """A message within the atomic size of a pipe is whole or absent, whenever its sender is killed."""
    asked = partial(np.zeros, 1_000_000), tmp_path / "result"
    sent = running._done(os.getppid(), 7, asked)
    assert len(pickle.dumps(sent)) < select.PIPE_BUF
    assert pickle.loads((tmp_path / "result").read_bytes()).shape == (1_000_000,)
