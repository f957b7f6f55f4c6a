"""MLflow in five minutes: cross-validate, log, register, compare and promote rankers, one call a step.

    pip install rankeval-mlflow
    python 09_five_minutes_mlflow.py        # starts a server of its own in this folder, and ends it
    python 09_five_minutes_mlflow.py URI    # uses your server, or a file such as sqlite:///mlflow.db

The alias `champion` names the version in use. The second ranker is better than the first and takes the alias over. The
third has a higher mean than the second, by no more than chance: the alias stays.
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
    "ridge": Ridge(),
    "trees": HistGradientBoostingRegressor(random_state=0),
    "trees, fewer bins": HistGradientBoostingRegressor(max_bins=200, random_state=0),
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
    split = rk.dev_test_split(rk.datasets.load_digits_retrieval(), test_size=0.4)
    dev, test = split.dev, split.test
    for name, model in RANKERS.items():
        cv = rk.cross_validate(model, dev, measures=["nDCG@10", "AP"], cv=3)
        ranker = rk.QueryRanker(model).fit(dev.X, dev.y, qid=dev.qid)
        ev = rk.evaluate(test.y, ranker.predict(test.X), qid=test.qid, measures=["nDCG@10", "AP"], name=name)
        with mlflow.start_run(run_name=name):
            rkm.log_cross_validation(cv, data=dev)
            saved = rkm.log_ranker(ranker, X=dev, registered_model_name="digits")
            version = f"digits/{saved.version}"
            run = rkm.log_evaluation(ev, role="test", model_id=saved.model_id, model_version=version, data=test)
        print(f"{name}: {run.where}\n{rkm.promote('digits', saved.version, measure='nDCG@10', first=True)}\n")
    print(rkm.leaderboard("digits", measure="nDCG@10", data=test.name), end="\n\n")
    print("in use:", rkm.load_evaluation("models:/digits@champion", "test"))
