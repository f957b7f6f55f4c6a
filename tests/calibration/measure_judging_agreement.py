"""Measure how often the intervals of agreement cover the true value, and how often a consensus is right.

    python tests/calibration/measure_judging_agreement.py          # about 1 CPU minute
    python tests/calibration/measure_judging_agreement.py --quick  # a tenth of the work; prints and writes nothing

The population is the 22 topics of TREC RAG 2025 with the grades of people and of an automatic judge. Topics are drawn
from it with replacement, so the true value is that of all 22. The same trials are counted for intervals that take
documents as independent. The crowd is that of the TREC 2011 crowdsourcing track, its truth the grades by NIST. Both
collections are read from the folder of shared collections beside the checkout. The script writes
tests/calibration/judging_agreement_rates.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import rankeval as rk
from rankeval.io.opening import write_atomically
from rankeval.judging import agreeing, consensus
from rankeval.judging.coefficients import WORDS
from rankeval.judging.labels import Labels

FIGURES = Path(__file__).with_name("judging_agreement_rates.json")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
SIZES = (10, 22, 50)
UNITS = {"topic": 20_000, "document": 1_000}
"""The number of trials of intervals that leave out topics, and of those that leave out documents."""

BLOCK = 500
LEVEL, PLACES = "ordinal", np.arange(5.0)
APART = np.abs(PLACES[:, None] - PLACES)


def coefficients(tables: np.ndarray) -> np.ndarray:
    """Return the coefficients of tables of two judges, of shape (..., 5, 5), in the order of the package's table."""
    n, rows, columns = tables.sum(axis=(-2, -1)), tables.sum(axis=-1), tables.sum(axis=-2)
    shares = (rows + columns) / (2 * n[..., None])
    observed = np.einsum("...ii->...", tables) / n

    def weighted(apart: np.ndarray) -> np.ndarray:
        expected = np.einsum("...i,ij,...j->...", rows, apart, columns) / n
        return 1 - (tables * apart).sum(axis=(-2, -1)) / expected

    ranks = 2 * n[..., None] * (shares.cumsum(axis=-1) - shares / 2)
    square = (ranks[..., :, None] - ranks[..., None, :]) ** 2
    expected = (shares[..., :, None] * shares[..., None, :] * square).sum(axis=(-2, -1))
    alpha = 1 - (tables * square).sum(axis=(-2, -1)) / n / expected * (2 * n - 1) / (2 * n)
    equal = (shares**2).sum(axis=-1)
    pi, ac1_chance = (observed - equal) / (1 - equal), (1 - equal) / (len(PLACES) - 1)
    ac1, pabak = (observed - ac1_chance) / (1 - ac1_chance), (observed - 0.2) / 0.8
    kappas = weighted(APART > 0), weighted(APART), weighted(APART**2)
    return np.stack([observed, pi, *kappas, pi, alpha, ac1, pabak], axis=-1)


class Population(NamedTuple):
    """The documents of each topic by the grades of two judges, of shape (22, 5, 5), and the labels themselves."""

    tables: np.ndarray
    labels: Labels

    @classmethod
    def read(cls) -> Population:
        """Read the grades of people and of the automatic judge."""
        files = {name: rk.Qrels.read(SHARED / f"agreement_rag25/qrels.{name}.txt.gz") for name in ("nist", "umbrela")}
        labels = Labels.of(files)
        grades = labels.grade.reshape(-1, 2)  # both judges labelled all documents
        query, topics = pd.factorize(labels.items["qid"])
        tables = np.zeros((len(topics), 5, 5))
        np.add.at(tables, (query, grades[:, 0], grades[:, 1]), 1)
        return cls(tables, labels)

    def drawn(self, n_topics: int, seed: int, trials: int) -> np.ndarray:
        """Draw topics with replacement, of shape (trials, n_topics)."""
        return np.random.default_rng([seed, n_topics]).integers(0, len(self.tables), (trials, n_topics))

    def intervals(self, topics: np.ndarray, unit: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of each coefficient's interval, of shape (trials, n_coefficients)."""
        found = []
        for tables in self.tables[topics]:
            total = tables.sum(axis=0)
            if unit == "topic":
                left_out = coefficients(total - tables)
            else:  # all documents of a cell leave the same table
                cells = np.eye(25).reshape(-1, 5, 5)[total.ravel() > 0]
                left_out = coefficients(total - cells).repeat(total[total > 0].astype(int), axis=0)
            found.append(agreeing._interval(coefficients(total), left_out, 0.95))
        return tuple(np.array([ends[name] for ends in found]) for name in ("ci_low", "ci_high"))

    def covered(self, n_topics: int, unit: str, seed: int, trials: int) -> np.ndarray:
        """Count the trials in which the interval of each coefficient covers its true value."""
        low, high = self.intervals(self.drawn(n_topics, seed, trials), unit)
        truth = coefficients(self.tables.sum(axis=0))
        return ((low <= truth) & (truth <= high)).sum(axis=0)


def measured(share: float, jobs: int) -> list[dict]:
    """Return one dict for each number of topics, unit and coefficient."""
    population, work = Population.read(), Parallel(n_jobs=jobs, verbose=1)
    kinds = [(n, unit, int(share * UNITS[unit])) for n in SIZES for unit in UNITS]
    blocks = [(n, unit, seed, BLOCK) for n, unit, trials in kinds for seed in range(max(1, trials // BLOCK))]
    kinds_of_blocks = pd.MultiIndex.from_tuples([block[:2] for block in blocks])
    counts = work(delayed(population.covered)(*block) for block in blocks)
    found = pd.DataFrame(counts, kinds_of_blocks, columns=list(WORDS))
    return [
        {"topics": n, "unit": unit, "coefficient": name, "trials": BLOCK * len(part), "covered": int(part[name].sum())}
        for (n, unit), part in found.groupby(level=[0, 1], sort=False)
        for name in WORDS
    ]


def crowd() -> dict[str, int]:
    """Count the documents of the crowd with NIST's grades, and those that each consensus gets right."""
    folder = SHARED / "agreement_trec_crowd2011"
    votes = pd.read_csv(folder / "votes.tsv.gz", sep="\t", names=["order", "pair", "aspect", "relevance"])
    votes[["qid", "docid"]] = votes["pair"].str.split("_", n=1, expand=True)
    gold = pd.read_csv(folder / "consensus_and_nist_gold.txt.gz", sep="\t", usecols=[1, 2, 3], dtype=str)
    gold = gold.set_axis(["qid", "docid", "grade"], axis=1).drop_duplicates(["qid", "docid"])
    found = consensus(votes[["qid", "docid", "aspect", "relevance"]])
    both = found.table.merge(gold[gold["grade"] != "-1"], on=["qid", "docid"])
    relevant = both["grade"] != "0"
    right = {name: int(((both[name] == 1) == relevant).sum()) for name in ("majority", "dawid_skene")}
    return {"labels": len(votes), "workers": len(found.judges), "documents": len(both)} | right


def simulated(seed: int, n_items: int = 1000, n_labels: int = 5) -> dict[str, float]:
    """Return the accuracy of each consensus of 24 judges who are right four times out of five and 6 wrong as often."""
    rng, right = np.random.default_rng(seed), np.array([0.8] * 24 + [0.2] * 6)
    truth, item = rng.integers(0, 2, n_items), np.repeat(np.arange(n_items), n_labels)
    judge = np.concatenate([rng.choice(len(right), n_labels, replace=False) for _ in range(n_items)])
    label = np.where(rng.random(len(item)) < right[judge], truth[item], 1 - truth[item])
    found = consensus(pd.DataFrame({"qid": item // 25, "docid": item, "aspect": judge, "relevance": label}))
    items = found.table.set_index("docid").sort_index()
    return {name: float((items[name] == truth).mean()) for name in ("majority", "dawid_skene")}


def rates() -> dict:
    """Return the measured figures."""
    return json.loads(FIGURES.read_text("utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nice", type=int, default=10)
    given = parser.parse_args()
    os.nice(given.nice)
    coverage = measured(0.1 if given.quick else 1.0, given.jobs)
    if given.quick:
        for row in coverage:
            print(*row.values(), round(row["covered"] / row["trials"], 4), sep="\t")
        return
    worlds = pd.DataFrame([simulated(seed) for seed in range(50)]).mean().round(4).to_dict()
    lines = ",\n".join(f"  {json.dumps(row)}" for row in coverage)
    text = f'{{"crowd": {json.dumps(crowd())},\n "simulated": {json.dumps(worlds)},\n "coverage": [\n{lines}\n ]}}\n'
    write_atomically(FIGURES, [text.encode()])
    print(text)


if __name__ == "__main__":
    main()
