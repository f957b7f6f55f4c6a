"""Measure how often the intervals of agreement cover the true value, and how often a consensus is right.

    python tests/calibration/measure_judging_agreement.py          # about 6 CPU minutes
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
from rankeval.judging.coefficients import WORDS, of_judges, of_labels
from rankeval.judging.labels import Labels

FIGURES = Path(__file__).with_name("judging_agreement_rates.json")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
SIZES = (10, 22, 50)
UNITS = {"topic": 12000, "document": 600}
"""The number of trials of intervals that leave out topics, and of those that leave out documents."""

LEVEL, PLACES, BLOCK = "ordinal", np.arange(5.0), 50


class Population(NamedTuple):
    """The grades of each topic's documents by two judges, and the coefficients of all topics."""

    topics: list[np.ndarray]
    truth: dict[str, float]

    @classmethod
    def read(cls) -> Population:
        """Read the grades of people and of the automatic judge."""
        files = {name: rk.Qrels.read(SHARED / f"agreement_rag25/qrels.{name}.txt.gz") for name in ("nist", "umbrela")}
        labels = Labels.of(files)
        grades = np.full((len(labels.items), 2), -1)
        grades[labels.item, labels.judge] = labels.grade
        whole = rk.judging.agreement(files, level=LEVEL)
        cuts = np.flatnonzero(np.diff(labels.items["query"])) + 1
        return cls(np.split(grades, cuts), whole.table.set_index("coefficient")["value"].to_dict())

    def covered(self, n_topics: int, unit: str, seed: int, trials: int) -> dict[str, int]:
        """Count the trials in which the interval of each coefficient covers its true value."""
        rng, found = np.random.default_rng([seed, n_topics]), dict.fromkeys(WORDS, 0)
        for _ in range(trials):
            drawn = [self.topics[place] for place in rng.integers(0, len(self.topics), n_topics)]
            grades = np.concatenate(drawn)
            by_topic = np.repeat(np.arange(n_topics), list(map(len, drawn)))
            group = by_topic if unit == "topic" else np.arange(len(grades))
            counts = (grades[:, :, None] == PLACES).sum(axis=1)
            values = of_labels(counts, group, PLACES, LEVEL)[0] | of_judges(grades, group, PLACES)[0]
            stack = np.array([values[name] for name in WORDS]).T
            ends = agreeing._interval(stack[0], stack[1 : group[-1] + 2], 0.95)
            for place, name in enumerate(WORDS):
                found[name] += int(ends["ci_low"][place] <= self.truth[name] <= ends["ci_high"][place])
        return found


def measured(share: float, jobs: int) -> list[dict]:
    """Return one dict for each number of topics, unit and coefficient."""
    population, work = Population.read(), Parallel(n_jobs=jobs, verbose=1)
    cells = [(n, unit, seed) for n in SIZES for unit in UNITS for seed in range(int(share * UNITS[unit]) // BLOCK)]
    found = work(delayed(population.covered)(*cell, BLOCK) for cell in cells)
    totals: dict[tuple, int] = {}
    for (n, unit, _), counts in zip(cells, found, strict=True):
        for name, count in counts.items():
            totals[n, unit, name] = totals.get((n, unit, name), 0) + count
    return [
        {"topics": n, "unit": unit, "coefficient": name, "trials": int(share * UNITS[unit]), "covered": covered}
        for (n, unit, name), covered in totals.items()
    ]


def crowd() -> dict[str, int]:
    """Count the documents of the crowd with NIST's grades, and those that each consensus gets right."""
    folder = SHARED / "agreement_trec_crowd2011"
    votes = pd.read_csv(folder / "votes.tsv.gz", sep="\t", names=["order", "pair", "aspect", "relevance"])
    votes[["qid", "docid"]] = votes["pair"].str.split("_", n=1, expand=True)
    gold = pd.read_csv(folder / "consensus_and_nist_gold.txt.gz", sep="\t", usecols=[1, 2, 3], dtype=str)
    gold = gold.set_axis(["qid", "docid", "grade"], axis=1).drop_duplicates(["qid", "docid"])
    found = consensus(votes[["qid", "docid", "aspect", "relevance"]])
    both = found.items.merge(gold[gold["grade"] != "-1"], on=["qid", "docid"])
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
    items = found.items.set_index("docid").sort_index()
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
