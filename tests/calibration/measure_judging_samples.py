"""Measure how far infAP of a sample of judgments is from AP of all, and write it for the tests and the guide.

    python tests/calibration/measure_judging_samples.py  # about 1 CPU minute; needs the shared collections

The pool is the judged documents of a collection. Of it a share is drawn, 500 times for each share, and every run of the
collection is scored by infAP. The script writes tests/calibration/sample_rates.json: for each run the mean over the
samples less AP, and the standard deviation of the samples; also over the queries with few relevant documents, and over
those with many.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

import rankeval as rk
from rankeval.analysis.overlap import ranked_lists
from rankeval.io.opening import write_atomically

GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "make_collection.md"
FIGURES = Path(__file__).with_name("sample_rates.json")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
COLLECTIONS = {
    "trec_covid_r5": "qrels.residual.txt.gz",
    "web2012": "qrels.adhoc.txt.gz",
    "cranfield": "qrels.graded.txt.gz",
}
WORDS = {
    "web2012": "Web Track 2012, 58 relevant documents a query",
    "trec_covid_r5": "TREC-COVID, 189 relevant documents a query",
    "cranfield": "Cranfield, 6 relevant documents a query",
}
"""The median number of relevant documents."""
RATES = (0.1, 0.2, 0.4)
SAMPLES = 500
FEW = 10
"""A query has few relevant documents if it has no more."""
CONVENTION = "trec_eval-9.0.8"


def collection(folder: Path, qrels: str) -> tuple[dict[str, rk.Run], rk.Qrels]:
    """Return the runs by file, and the judgments; a label below 0, of spam, becomes 0."""
    runs = {path.name.removesuffix(".gz"): rk.Run.read(path) for path in sorted((folder / "runs").glob("*.gz"))}
    frame = rk.Qrels.read(folder / qrels).to_frame()
    return runs, rk.Qrels.from_frame(frame.assign(relevance=frame["relevance"].clip(lower=0)))


class Samples:
    """Samples of the judged documents of a collection, and infAP of runs by them, on arrays.

    Scoring all samples of all runs by `rankeval.evaluate` takes an hour; the test compares some.
    """

    def __init__(self, judged: rk.Qrels) -> None:
        self.frame = judged.to_frame()
        self.query, self.queries = pd.factorize(self.frame["qid"])
        self.relevant = self.frame["relevance"].to_numpy() > 0
        self.places = {pair: row for row, pair in enumerate(zip(self.frame["qid"], self.frame["docid"], strict=True))}
        numbers = {query: rows.index.tolist() for query, rows in self.frame.groupby("qid")}
        self.pool = rk.judging.pool({"judged": numbers}, depth=len(self.frame))

    def drawn(self, rate: float, seed: int) -> np.ndarray:
        """Return which judgments a sample has."""
        mask = np.zeros(len(self.frame), dtype=bool)
        mask[self.pool.sample(rate, seed).table["docid"]] = True
        return mask

    def qrels(self, drawn: np.ndarray) -> rk.Qrels:
        """Return the judgments of a sample, with -1 for the others."""
        return rk.Qrels.from_frame(self.frame.assign(relevance=np.where(drawn, self.frame["relevance"], -1)))

    def retrieved(self, run: rk.Run) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and the rank of the judged documents of a run, query by query in the order of rank."""
        lists = ranked_lists(run)
        found = [
            (self.places[query, document], rank)
            for query in self.queries
            for rank, document in enumerate(lists.get(query, ()), start=1)
            if (query, document) in self.places
        ]
        row, rank = np.array(found).T
        return row, rank

    def inf_ap(self, row: np.ndarray, rank: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """Return infAP of each query: Yilmaz and Aslam 2006, with the small number of trec_eval."""
        query = self.query[row]
        first = np.searchsorted(query, query)

        def above(flags: np.ndarray) -> np.ndarray:
            before = np.cumsum(flags) - flags
            return before - before[first]

        hits, known = above(drawn[row] & self.relevant[row]), above(drawn[row])
        value = (1 + above(np.ones(len(row), dtype=int)) * (hits + 1e-5) / (known + 2e-5)) / rank
        counted, n = drawn[row] & self.relevant[row], len(self.queries)
        total = np.bincount(query[counted], value[counted], n)
        return total / np.maximum(1, np.bincount(self.query[drawn & self.relevant], minlength=n))


def measured(folder: str) -> list[dict]:
    """Return one dict a run and rate."""
    runs, judged = collection(SHARED / folder, COLLECTIONS[folder])
    samples = Samples(judged)
    few = np.bincount(samples.query[samples.relevant], minlength=len(samples.queries)) <= FEW
    retrieved = {name: samples.retrieved(run) for name, run in runs.items()}
    exact = {name: rk.evaluate(judged, run, measures="AP", convention=CONVENTION) for name, run in runs.items()}
    found = []
    for rate in RATES:
        masks = [samples.drawn(rate, seed) for seed in range(SAMPLES)]
        for name, places in retrieved.items():
            truth = pd.Series(exact[name].scores[:, 0], index=exact[name].queries).reindex(samples.queries).to_numpy()
            scores = np.array([samples.inf_ap(*places, drawn) for drawn in masks])
            row = {"collection": folder, "run": name, "rate": rate, "samples": SAMPLES}
            for part, chosen in {"": np.ones(len(few), dtype=bool), "_few": few, "_many": ~few}.items():
                means, ap = scores[:, chosen].mean(axis=1), truth[chosen].mean()
                figures = {"ap": ap, "bias": means.mean() - ap, "sd": means.std(ddof=1)}
                row[f"queries{part}"] = int(chosen.sum())
                row |= {f"{figure}{part}": round(float(value), 5) for figure, value in figures.items()}
            found.append(row)
    return found


def rows() -> list[dict]:
    """Return the measured figures."""
    return json.loads(FIGURES.read_text("utf-8"))


def block() -> str:
    """Return the table of the guide: of each collection and rate the error of the run with the largest one."""
    worst = {(row["collection"], row["rate"]): min(one["bias"] for one in like(row)) for row in rows()}
    lines = [f"| | {' | '.join(f'{100 * rate:.0f} %' for rate in RATES)} |", f"|---{'|---:' * len(RATES)}|"]
    for folder, words in WORDS.items():
        lines.append(f"| {words} | {' | '.join(f'{worst[folder, rate]:.3f}' for rate in RATES)} |")
    return "\n".join(lines)


def like(known: dict) -> list[dict]:
    """Return the rows of the same collection and rate."""
    return [row for row in rows() if (row["collection"], row["rate"]) == (known["collection"], known["rate"])]


def main() -> None:
    found = [measured(folder) for folder in COLLECTIONS]
    lines = ",\n".join(json.dumps(row) for part in found for row in part)
    write_atomically(FIGURES, [f"[\n{lines}\n]\n".encode()])
    print(block())


if __name__ == "__main__":
    main()
