"""Measure how far infAP of a sample of judgments is from AP of all, and write it for the tests and the guide.

    python tests/calibration/measure_judging_samples.py  # about 5 CPU minutes; needs the shared collections

The pool is the judged documents of a collection. Of it a share is drawn, 500 times for each share, and runs of the
collection are scored by infAP. The script writes tests/calibration/sample_rates.json: for each run the mean over the
samples less AP, and the standard deviation of the samples; also both over the queries with few relevant documents.
"""

from __future__ import annotations

import json
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
    """Return the runs by file, of many every second one, and the judgments; a label below 0, of spam, becomes 0."""
    files = sorted((folder / "runs").glob("*.gz"))
    runs = {path.name.removesuffix(".gz"): rk.Run.read(path) for path in files[:: 1 + (len(files) > 5)]}
    frame = rk.Qrels.read(folder / qrels).to_frame()
    return runs, rk.Qrels.from_frame(frame.assign(relevance=frame["relevance"].clip(lower=0)))


def scored(judged: rk.Qrels, runs: dict[str, rk.Run], rate: float, seeds) -> tuple[pd.DataFrame, np.ndarray]:
    """Return AP and infAP: of each query and run, and of each sample, query and run."""
    frame = judged.to_frame()
    everything = {query: rows["docid"].tolist() for query, rows in frame.groupby("qid")}
    pool = rk.judging.pool({"judged": everything}, depth=len(frame))

    def each(qrels: rk.Qrels, measure: str) -> pd.DataFrame:
        found = {name: rk.evaluate(qrels, run, measures=measure, convention=CONVENTION) for name, run in runs.items()}
        return pd.DataFrame({name: pd.Series(one.scores[:, 0], index=one.queries) for name, one in found.items()})

    exact = each(judged, "AP")
    return exact, np.array([each(pool.sample(rate, seed).qrels(judged), "infAP").loc[exact.index] for seed in seeds])


def with_few(judged: rk.Qrels, queries: pd.Index) -> np.ndarray:
    """Say which queries have few relevant documents."""
    frame = judged.to_frame()
    counts = (frame["relevance"] > 0).groupby(frame["qid"]).sum()
    return counts.loc[queries].to_numpy() <= FEW


def measured(folder: str, rate: float) -> list[dict]:
    """Return one dict a run."""
    runs, judged = collection(SHARED / folder, COLLECTIONS[folder])
    exact, scores = scored(judged, runs, rate, range(SAMPLES))
    few = with_few(judged, exact.index)
    found = []
    for column, name in enumerate(runs):
        row = {"collection": folder, "run": name, "rate": rate, "samples": SAMPLES}
        for part, chosen in {"": np.ones(len(few), dtype=bool), "_few": few, "_many": ~few}.items():
            truth, means = float(exact[name][chosen].mean()), scores[:, chosen, column].mean(axis=1)
            figures = {"ap": truth, "bias": means.mean() - truth, "sd": means.std(ddof=1)}
            row[f"queries{part}"] = int(chosen.sum())
            row |= {f"{figure}{part}": round(float(value), 5) for figure, value in figures.items()}
        found.append(row)
    return found


def rows() -> list[dict]:
    """Return the measured figures."""
    return json.loads(FIGURES.read_text("utf-8"))


def main() -> None:
    work = [delayed(measured)(folder, rate) for folder in COLLECTIONS for rate in RATES]
    found = Parallel(n_jobs=3, verbose=5)(work)
    lines = ",\n".join(json.dumps(row) for part in found for row in part)
    write_atomically(FIGURES, [f"[\n{lines}\n]\n".encode()])


if __name__ == "__main__":
    main()
