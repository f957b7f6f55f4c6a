"""A call that is killed at any moment leaves whole parts, and the same call goes on to the same bytes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import numpy as np
import pyarrow.dataset as ds
import pytest
from streaming.logs import Log, evaluate

import rankeval as rk
from rankeval.evaluation import to_bytes
from rankeval.streaming import queries, running

KILLS = [
    ("shuffled", 1),
    pytest.param("sorted", 3, marks=pytest.mark.rest),
    pytest.param("shuffled", 10, marks=pytest.mark.kill),
    pytest.param("sorted", 10, marks=pytest.mark.kill),
]
"""How rows stand, and how often the call is killed."""

DRIVER = """
import json, os, random, signal, sys
import pyarrow.dataset
import rankeval as rk
from rankeval.streaming import queries, rows
rows.BATCH = queries.BATCH = 16
queries.RUN, queries._LEAST, queries.PART = 50, 8, 200
data, folder, kills, order = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
NAMES = {"qid": "query", "relevance": "label", "score": "value"}

def call(scores, at=None):
    "Run a call in a process of its own, killed at an event if asked for; return its exit and the number of events."
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        n_events = 0
        def count(frame, event, arg):
            nonlocal n_events
            n_events += 1
            if n_events == at:
                os.kill(os.getpid(), signal.SIGKILL)
        sys.setprofile(count)
        rk.evaluate_dataset(data, **NAMES, measures=["nDCG@10", "AP"], folder=scores)
        sys.setprofile(None)
        os.write(writes, str(n_events).encode())
        os._exit(0)
    os.close(writes)
    n_events = os.read(reads, 100)
    return os.waitpid(child, 0)[1], int(n_events or 0)

clean, n_events = call(f"{folder}/clean")
assert clean == 0
draw, left = random.Random(order), []
for number in range(kills):
    scores = f"{folder}/{number}"
    killed, _ = call(scores, at=draw.randrange(1, n_events))
    assert killed == signal.SIGKILL
    kept = os.scandir(scores) if os.path.isdir(scores) else []
    there = {one.name: one.stat().st_mtime_ns for one in kept if one.name.startswith("part-")}
    left.append(len(there))
    done, _ = call(scores)
    assert done == 0
    after = {one.name: one.stat().st_mtime_ns for one in os.scandir(scores)}
    assert all(after[name] == time for name, time in there.items()), "a whole part was made again"
print(json.dumps(left))
"""

PROCESSES = """
import os, signal, sys, threading, time
import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.streaming import queries, running
queries.BATCH, queries.RUN, queries.PART, running._OF_A_PART = 500, 1000, 2000, 4
data, scores, whom = sys.argv[1:4]
n_jobs, at, delay = int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6])
n_events = 0

def shoot():
    time.sleep(delay)
    pid = os.getpid()
    if whom == "worker":
        from joblib.externals.loky import reusable_executor
        pid = sorted(reusable_executor._executor._processes)[at % 2]
    os.kill(pid, signal.SIGKILL)

def count(done, total):
    global n_events
    n_events += 1
    if whom != "nobody" and n_events == at:
        threading.Thread(target=shoot, daemon=True).start()

NAMES = {"qid": "query", "relevance": "label", "score": "value"}
try:
    rk.evaluate_dataset(data, **NAMES, measures=["nDCG@10", "AP"], folder=scores, n_jobs=n_jobs, progress=count)
except InvalidInput as error:
    sys.exit(3 if "was ended from outside" in str(error) else str(error))
print(n_events)
"""


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("order", "kills"), KILLS)
def test_a_call_that_was_killed_goes_on_to_the_same_bytes(tmp_path, order, kills):
    log = Log.made(n_queries=100)
    rows = log if order == "sorted" else log.shuffled()
    data = rows.write(tmp_path / "log", cuts=(400,))
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, data, tmp_path, str(kills), order], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == kills
    clean = content(tmp_path / "clean")
    assert len(clean) > 4
    for number in range(kills):
        assert content(tmp_path / str(number)) == clean
    how = {"measures": ["nDCG@10", "AP"]}
    again = evaluate(data, folder=tmp_path / "clean", **how)
    assert to_bytes(again) == to_bytes(log.evaluation(**how))


@pytest.mark.kill
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
@pytest.mark.parametrize("whom", ["caller", "worker"])
def test_processes_that_were_killed_leave_the_same_bytes(tmp_path, order, whom):
    """At random moments, with two of them; the next call has two or one."""
    log = Log.made(n_queries=3000)
    data = (log if order == "sorted" else log.shuffled()).write(tmp_path / "log", row_group_size=500)

    def call(scores, n_jobs=2, whom="nobody", at=0, delay=0.0):
        command = [sys.executable, "-c", PROCESSES, data, tmp_path / str(scores), whom, n_jobs, at, delay]
        # Into files: pipes would end with the workers of a caller that was killed, which may wait minutes for work.
        with (tmp_path / "out").open("w+") as out, (tmp_path / "err").open("w+") as err:
            done = subprocess.run(list(map(str, command)), stdout=out, stderr=err, check=False, timeout=60)
        done.stdout, done.stderr = (tmp_path / "out").read_text(), (tmp_path / "err").read_text()
        return done

    clean = call("clean")
    assert clean.returncode == 0, clean.stderr
    n_events, expected, draw = (
        int(clean.stdout),
        content(tmp_path / "clean"),
        np.random.default_rng(len(order + whom)),
    )
    assert n_events > 20
    # Not after the last result: where an idle worker is killed, loky may wait for the others when the caller exits.
    last, ends = n_events - 3, []
    for number in range(5):
        ends.append(call(number, whom=whom, at=draw.integers(1, last), delay=draw.random() / 50).returncode)
        assert ends[-1] in (0, -signal.SIGKILL if whom == "caller" else 3)
        again = call(number, n_jobs=1 + number % 2)
        assert again.returncode == 0, again.stderr
        assert content(tmp_path / str(number)) == expected
    assert sum(end != 0 for end in ends) >= 3  # the others had ended before


@pytest.mark.usefixtures("small")
def test_the_folder_is_a_data_set_of_scores(tmp_path):
    log = Log.made(n_queries=100).shuffled()
    data, seen = log.write(tmp_path / "log"), []
    whole = evaluate(data, folder=tmp_path / "scores", progress=lambda done, total: seen.append((done, total)))
    rows = ds.dataset(tmp_path / "scores").to_table().to_pandas().set_index("qid").sort_index()
    assert rows["measure:AP"].tolist() == whole.per_query["AP"].tolist()
    assert sorted({path.name[0] for path in (tmp_path / "scores").iterdir()}) == ["_", "p"]
    assert seen == sorted(seen)
    assert seen[-1][0] <= seen[-1][1] == 2 * len(log.qid)


@pytest.mark.usefixtures("small")
def test_a_part_that_is_damaged_is_made_again(tmp_path):
    log = Log.made(n_queries=100)
    data = log.write(tmp_path / "log")
    evaluate(data, folder=tmp_path / "scores")
    before = content(tmp_path / "scores")
    part = next((tmp_path / "scores").glob("part-*"))
    part.write_bytes(part.read_bytes()[:100])
    assert to_bytes(evaluate(data, folder=tmp_path / "scores")) == to_bytes(log.evaluation())
    assert content(tmp_path / "scores") == before


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shuffled", [False, True])
def test_parts_that_are_cut_in_another_way_are_not_mixed(tmp_path, monkeypatch, shuffled):
    log = Log.made(n_queries=100)
    log = log.shuffled() if shuffled else log
    data = log.write(tmp_path / "log")
    evaluate(data, folder=tmp_path / "scores")
    monkeypatch.setattr(queries, "PART", 500)
    monkeypatch.setattr(running, "_OF_A_PART", 7)
    assert to_bytes(evaluate(data, folder=tmp_path / "scores")) == to_bytes(log.evaluation())


@pytest.mark.usefixtures("small")
def test_grades_of_parts_that_are_there_are_known(tmp_path):
    """The best case of a measure with a map of gains is refused by the grades of all rows, also after a kill."""
    from rankeval.errors import InvalidInput

    log = Log.made(n_queries=100)
    log.y = (log.qid > 500).astype(int) * 2
    data = log.write(tmp_path / "log")
    how = {"measures": "nDCG(gain={1: 3, 3: 9})@5", "convention": rk.Convention.with_rules(ties="best")}
    for _ in range(2):
        with pytest.raises(InvalidInput, match="grade 1 has gain 3 and grade 2 has gain 2") as streamed:
            evaluate(data, folder=tmp_path / "scores", **how)
    with pytest.raises(InvalidInput) as whole:
        log.evaluation(**how)
    assert str(whole.value) in str(streamed.value)
    assert rk.evaluate([0], [1], qid=[1]).n_queries == 1
