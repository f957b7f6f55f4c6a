"""MLflow in five minutes: cross-validate, log, register, compare and promote rankers, one call a step.

    python -m pip install .                 # in a clone of the repository
    python 09_five_minutes_mlflow.py        # starts a server of its own in this folder, and ends it
    python 09_five_minutes_mlflow.py URI    # uses your server, or a file such as sqlite:///mlflow.db

The alias `champion` names the version in use. Rankers are cross-validated on development data, and logged, as often as
you like. The test part is registered with the guard once, and nobody scores it: a gate with a budget of 20 decisions
compares each version there with the one in use, and says yes or no. The first ranker is better than the cosine of two
images, and gets the alias. The second and the third are not shown to be better than the first: the alias stays. Another
run in this folder adds versions, and no decision on what was decided. Delete `five-minutes-ledger` with the rest.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import mlflow
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow as rkm

RANKERS = {
    "trees": HistGradientBoostingRegressor(random_state=0),
    "trees, fewer bins": HistGradientBoostingRegressor(max_bins=200, random_state=0),
    "ridge": Ridge(),
}


@contextmanager
def a_server() -> Iterator[str]:
    """Run `mlflow server` on a free port, and end it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", "sqlite:///mlflow.db", "--artifacts-destination", "artifacts"]
    with Path("server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        while not listens(port) and server.poll() is None:
            time.sleep(0.25)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def listens(port: int) -> bool:
    """Return whether the server listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


with nullcontext(sys.argv[1]) if sys.argv[1:] else a_server() as address:
    mlflow.set_tracking_uri(address)
    mlflow.set_experiment("digits")
    guard = rk.Guard("digits", ledger="five-minutes-ledger")  # a trial, as it warns; yours: rk.Guard("digits")
    split = rk.dev_test_split(rk.datasets.load_digits_retrieval(), test_size=0.4, guard=guard, test_name="digits-test")
    dev, cosine = split.dev, split.test.X[:, 0]  # what the search in use ranks by
    gate = guard.gate(split.registered, baseline=cosine, budget=20, measure="nDCG@10")
    for name, model in RANKERS.items():
        cv = rk.cross_validate(model, dev, measures=["nDCG@10", "AP"], cv=3, name=name)
        ranker = rk.QueryRanker(model).fit(dev.X, dev.y, qid=dev.qid)
        with mlflow.start_run(run_name=name):
            run = rkm.log(cv, data=dev)
            saved = rkm.log_ranker(ranker, X=dev, registered_model_name="digits")
        print(f"\n{name}: {run.where}")
        print(rkm.promote("digits", saved.version, gate=gate, first=True))
    print("", rkm.leaderboard("digits", measure="nDCG@10", data=dev.name), "", sep="\n")
    print("in use:", rkm.load_evaluation("models:/digits@champion", "dev"))
