"""Measure how far infAP of a sample of judgments is from AP of all, and write it for the tests and the guide.

    python tests/calibration/measure_judging_samples.py  # about 5 CPU minutes; needs the shared collections

The pool is the judged documents of a collection. Of it a share is drawn, 500 times for each share, and every run of the
collection is scored by infAP. The script writes tests/calibration/sample_rates.json: for each run the mean over the
samples less AP, and the standard deviation of the samples; also both over the queries with few relevant documents.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import rankeval as rk
from rankeval.io.opening import write_atomically

FIGURES = Path(__file__).with_name("sample_rates.json")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
COLLECTIONS = {
    "trec_covid_r5": "qrels.residual.txt.gz",
    "web2012": "qrels.adhoc.txt.gz",
    "cranfield": "qrels.graded.txt.gz",
}
RATES = (0.1, 0.2, 0.4)
SAMPLES = 500
FEW = 10
"""A query has few relevant documents if it has no more."""
CONVENTION = "trec_eval-9.0.8"


def collection(folder: Path, qrels: str) -> tuple[dict[str, rk.Run], rk.Qrels]:
    """Return the runs by file, and the judgments with labels of at least 0: those below 0 are of spam."""
    runs = {path.name.partition(".gz")[0]: rk.Run.read(path) for path in sorted((folder / "runs").glob("*.gz"))}
    frame = rk.Qrels.read(folder / qrels).to_frame()
    return runs, rk.Qrels.from_frame(frame.assign(relevance=frame["relevance"].clip(lower=0)))


def errors(judged: rk.Qrels, run: rk.Run, rate: float, seeds) -> tuple[pd.Series, np.ndarray, pd.Series]:
    """Return AP of each query, infAP of each sample and query, and the number of relevant documents of each query."""
    frame = judged.to_frame()
    everything = {query: rows["docid"].tolist() for query, rows in frame.groupby("qid")}
    pool = rk.judging.pool({"judged": everything}, depth=len(frame))
    truth = rk.evaluate(judged, run, measures="AP", convention=CONVENTION)
    scores = [
        rk.evaluate(pool.sample(rate, seed).qrels(judged), run, measures="infAP", convention=CONVENTION).scores[:, 0]
        for seed in seeds
    ]
    exact = pd.Series(truth.scores[:, 0], index=truth.queries)
    relevant = frame[frame["relevance"] > 0].groupby("qid").size().reindex(exact.index, fill_value=0)
    return exact, np.array(scores), relevant


def measured(folder: str, qrels: str) -> list[dict]:
    """Return one dict a run and rate."""
    runs, judged = collection(SHARED / folder, qrels)
    found = []
    for rate in RATES:
        for name, run in runs.items():
            exact, scores, relevant = errors(judged, run, rate, range(SAMPLES))
            few = (relevant <= FEW).to_numpy()
            parts = {"": np.ones(len(few), dtype=bool), "_few": few}
            row = {"collection": folder, "run": name, "rate": rate, "samples": SAMPLES}
            for part, rows in parts.items():
                means = scores[:, rows].mean(axis=1)
                row |= {
                    f"queries{part}": int(rows.sum()),
                    f"ap{part}": round(float(exact[rows].mean()), 5),
                    f"bias{part}": round(float(means.mean() - exact[rows].mean()), 5),
                    f"sd{part}": round(float(means.std(ddof=1)), 5),
                }
            found.append(row)
    return found


def rows() -> list[dict]:
    """Return the measured figures."""
    return json.loads(FIGURES.read_text("utf-8"))


def main() -> None:
    os.nice(10)
    found = Parallel(n_jobs=2, verbose=5)(delayed(measured)(*one) for one in COLLECTIONS.items())
    lines = ",\n".join(json.dumps(row) for part in found for row in part)
    write_atomically(FIGURES, [f"[\n{lines}\n]\n".encode()])


if __name__ == "__main__":
    main()
