"""Measure how collections of positives only are recognised, and how often others are taken for them.

    python tests/calibration/measure_positives.py                 # about 6 CPU minutes
    python tests/calibration/measure_positives.py --quick         # a tenth of the work; prints and writes nothing
    python tests/calibration/measure_positives.py --as before     # the same figures of an earlier release

A collection in the shape of a public one is registered, and comes back: whole, in part, among other queries, among
candidates that nobody judged, under new ids. And other collections come that have its ids, its documents or its users.
The program writes tests/calibration/positive_rates.json and, from it, the tables in examples/guides/guard_rules.md.
For the figures "before", run it with the code of an earlier release on the PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from calibration.guard_tables import filled, table
from joblib import Parallel, delayed

import rankeval as rk
from rankeval.contamination.fingerprint import Fingerprint, fingerprint, fingerprint_qrels
from rankeval.contamination.matching import match_content
from rankeval.contamination.registered import RegisteredContent
from rankeval.contamination.signature import Signature
from rankeval.io.opening import write_atomically

FIGURES = Path(__file__).with_name("positive_rates.json")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "guard_rules.md"
COMMENTS = (
    "<!-- measured by tests/calibration/measure_positives.py -->",
    "<!-- end of what measure_positives.py measured -->",
)
SEEDS, TRIALS = 10, 200


@dataclass(frozen=True, eq=False)
class Judgments:
    """Judgments as numbers: the query, the document and the label of each row."""

    qid: np.ndarray
    docid: np.ndarray
    y: np.ndarray
    prefix: str = "q"

    def take(self, rows: np.ndarray) -> Judgments:
        """Return some of the rows."""
        return replace(self, qid=self.qid[rows], docid=self.docid[rows], y=self.y[rows])

    def with_rows(self, other: Judgments) -> Judgments:
        """Return these rows and others."""
        parts = {name: np.append(getattr(self, name), getattr(other, name)) for name in ("qid", "docid", "y")}
        return replace(self, **parts)

    def part(self, share: float, rng: np.random.Generator) -> Judgments:
        """Return the rows of a share of the queries."""
        queries = np.unique(self.qid)
        return self.take(np.isin(self.qid, rng.choice(queries, round(share * len(queries)), replace=False)))

    def prints(self) -> Fingerprint:
        """Return the fingerprint."""
        ids = np.char.add(self.prefix, self.qid.astype(str)), np.char.add("d", self.docid.astype(str))
        return fingerprint_qrels(rk.Qrels(*ids, self.y))

    def rows(self, rng: np.random.Generator) -> Fingerprint:
        """Return the fingerprint of a training set: with features, and 20 candidates a query that nobody judged."""
        every = self.with_rows(unjudged(self, rng))
        ids = np.char.add(self.prefix, every.qid.astype(str)), np.char.add("d", every.docid.astype(str))
        return fingerprint(rng.normal(size=(len(every.y), 4)), every.y, ids[0], docid=ids[1])

    def registered(self) -> RegisteredContent:
        """Return the registration, as a ledger gives it back."""
        known = self.prints()
        signature = Signature.from_arrays(Signature.of(known).arrays())
        return RegisteredContent("p", "t", known.digest, "id", "me", "2026-01-02", signature=signature)


def drawn(sizes: np.ndarray, n_items: int, slope: float, rng: np.random.Generator) -> Judgments:
    """Draw so many relevant documents for each query; the i-th item is drawn as often as i ** -slope says."""
    chance = np.arange(1, n_items + 1.0) ** -slope
    chance /= chance.sum()
    every = [rng.choice(n_items, min(k, n_items), replace=False, p=chance if slope else None) for k in sizes]
    qid = np.repeat(np.arange(len(every)), [len(one) for one in every])
    return Judgments(qid, np.concatenate(every), np.ones(len(qid), dtype=int))


def nfcorpus(rng: np.random.Generator) -> Judgments:
    """Draw 323 queries of 38 documents in the mean, of grades 1 and 2."""
    found = drawn(np.clip(rng.lognormal(3.1, 1.0, 323).astype(int), 1, 400), 3_633, 0.3, rng)
    return replace(found, y=rng.choice([1, 2], len(found.y), p=[0.9, 0.1]))


def trec_dl(rng: np.random.Generator) -> Judgments:
    """Draw 43 queries with 215 judged documents, zeros among them."""
    found = drawn(np.full(43, 215), 500_000, 0.0, rng)
    return replace(found, y=rng.choice(4, len(found.y), p=[0.55, 0.17, 0.2, 0.08]))


WORLDS: dict[str, Callable[[np.random.Generator], Judgments]] = {
    "MS MARCO dev: 1,000 queries of 1.07": lambda rng: drawn(1 + (rng.random(1000) < 0.07), 500_000, 0.0, rng),
    "ArguAna: 1,406 of 1": lambda rng: drawn(np.ones(1406, int), 8_674, 0.0, rng),
    "SciFact: 300 of 1.2": lambda rng: drawn(rng.choice(4, 300, p=[0.86, 0.08, 0.03, 0.03]) + 1, 5_183, 0.0, rng),
    "HotpotQA: 2,000 of 2": lambda rng: drawn(np.full(2000, 2), 500_000, 0.0, rng),
    "FiQA: 648 of 2.6": lambda rng: drawn(np.minimum(1 + rng.poisson(1.6, 648), 15), 57_638, 0.0, rng),
    "leave-one-out: 2,000 users, 3,000 items": lambda rng: drawn(np.ones(2000, int), 3_000, 0.8, rng),
    "12 items of each of 2,000 users": lambda rng: drawn(np.clip(rng.poisson(12, 2000), 1, 60), 3_000, 0.8, rng),
    "5 items of each of 200 users": lambda rng: drawn(np.clip(rng.poisson(5, 200), 1, 40), 1_500, 0.8, rng),
    "playlists: 1,000 of 10 tracks": lambda rng: drawn(np.full(1000, 10), 5_000, 0.8, rng),
    "NFCorpus: 323 of 38, two grades": nfcorpus,
    "TREC DL: 43 of 215 judged, with zeros": trec_dl,
}


def unjudged(judged: Judgments, rng: np.random.Generator, n: int = 20) -> Judgments:
    """Return candidates of the same queries that nobody judged."""
    qid = np.repeat(np.unique(judged.qid), n)
    return Judgments(qid, rng.integers(10**8, 2 * 10**8, len(qid)), np.zeros(len(qid), dtype=int))


def returned(known: Judgments, other: Judgments, rng: np.random.Generator) -> Iterator[tuple[str, Fingerprint]]:
    """Yield the forms in which a collection comes back; the other one is of the same kind, with ids of its own."""
    new = replace(known, prefix="n")
    yield "the same", known.prints()
    yield "90 %", known.part(0.9, rng).prints()
    yield "50 %", known.part(0.5, rng).prints()
    yield "20 %", known.part(0.2, rng).prints()
    yield "90 % of rows", known.take(rng.random(len(known.y)) < 0.9).prints()
    yield "among as many others", known.with_rows(other).prints()
    yield "50 % among others", known.part(0.5, rng).with_rows(other).prints()
    yield "with features and candidates", known.rows(rng)
    yield "new ids", new.prints()
    yield "new ids, 90 %", new.part(0.9, rng).prints()
    yield "new ids, candidates", new.rows(rng)
    yield "new ids, among others", new.with_rows(other).prints()


def recognised(world: str, seed: int) -> list[dict]:
    """Return what is refused of one collection of a world."""
    rng = np.random.default_rng([seed, list(WORLDS).index(world)])
    judged, other = WORLDS[world](rng), WORLDS[world](rng)
    known, other = judged.registered(), replace(other, qid=other.qid + 10**6)
    return [
        {"world": world, "change": change, "seed": seed, "refused": match_content(known, data).refused}
        for change, data in returned(judged, other, rng)
    ]


def month(judged: Judgments, n_items: int, rng: np.random.Generator) -> Judgments:
    """Return the clicks of the next month: each persists with a chance of .8, and others take the place of the rest."""
    kept = rng.random(len(judged.y)) < 0.8
    return replace(judged, docid=np.where(kept, judged.docid, rng.integers(n_items, 2 * n_items, len(kept))))


def _months(rng: np.random.Generator) -> tuple[Judgments, Judgments]:
    n, k = rng.choice([100, 300, 1000]), rng.choice([1, 2, 5, 10])
    judged = drawn(np.full(n, k), 20_000, 0.5, rng)
    return judged, month(judged, 20_000, rng)


def _catalogues(rng: np.random.Generator) -> tuple[Judgments, Judgments]:
    n, k, n_items = rng.choice([50, 300, 1000]), rng.choice([1, 2, 5]), int(10 ** rng.uniform(1, 4))
    slope = rng.choice([0.0, 0.5, 1.0])
    return drawn(np.full(n, k), n_items, slope, rng), drawn(np.full(rng.choice([n // 2, n]), k), n_items, slope, rng)


def _users(rng: np.random.Generator) -> tuple[Judgments, Judgments]:
    n, n_items = rng.choice([100, 500, 2000]), rng.choice([100, 1000, 3000])
    return tuple(drawn(np.ones(n, int), n_items, 0.8, rng) for _ in range(2))


def _languages(rng: np.random.Generator) -> tuple[Judgments, Judgments]:
    sizes = 1 + rng.poisson(rng.choice([0.1, 1.5, 5.0]), rng.choice([100, 300, 1000]))
    judged, other = (drawn(rng.permutation(sizes), 50_000, 0.0, rng) for _ in range(2))
    return judged, replace(other, docid=other.docid + 10**6)


def _candidates(rng: np.random.Generator) -> tuple[Judgments, Judgments]:
    """Judge the first stage's lists of other queries: of 20 documents each, some are relevant."""

    def judged() -> Judgments:
        found = drawn(np.full(100, 20), 3_000, 0.8, rng)
        return replace(found, y=(rng.random(len(found.y)) < 0.15).astype(int))

    return judged(), judged()


def _colliding(rng: np.random.Generator) -> tuple[Judgments, Judgments]:
    world = WORLDS[list(WORLDS)[rng.integers(len(WORLDS))]]
    return world(rng), world(rng)


OTHERS: dict[str, tuple[Callable, int, str]] = {
    "colliding integer ids": (_colliding, 3 * TRIALS, "q"),
    "the next month, clicks persist with .8": (_months, TRIALS, "q"),
    "catalogues of 10 to 10,000 items, the same ids": (_catalogues, TRIALS, "q"),
    "catalogues of 10 to 10,000 items, other ids": (_catalogues, TRIALS, "n"),
    "leave-one-out by other users": (_users, TRIALS, "n"),
    "the same ids, the corpus of another language": (_languages, TRIALS, "q"),
    "other queries, candidates of one first stage": (_candidates, TRIALS, "n"),
}


def mistaken(kind: str, trial: int) -> dict:
    """Return whether other data is refused."""
    draw, _, prefix = OTHERS[kind]
    judged, other = draw(np.random.default_rng([trial, list(OTHERS).index(kind), 7]))
    found = match_content(judged.registered(), replace(other, prefix=prefix).prints())
    return {"kind": kind, "trial": trial, "refused": found.refused, "warned": found.warned}


def measured(share: float, jobs: int) -> dict[str, list[dict]]:
    """Return counts: of each world and change, and of each kind of other data."""
    work = Parallel(n_jobs=jobs, verbose=5)
    seeds = range(max(1, round(share * SEEDS)))
    parts = work(delayed(recognised)(world, seed) for seed in seeds for world in WORLDS)
    trials = [(kind, trial) for kind, (_, n, _) in OTHERS.items() for trial in range(max(1, round(share * n)))]
    others = work(delayed(mistaken)(*one) for one in trials)
    rows = [row for part in parts for row in part]
    return {
        "recognised": [
            {"world": world, "change": change, **_counted(rows, world=world, change=change)}
            for world, change in dict.fromkeys((row["world"], row["change"]) for row in rows)
        ],
        "mistaken": [{"kind": kind, **_counted(others, kind=kind)} for kind in OTHERS],
    }


def _counted(rows: list[dict], **of: str) -> dict[str, int]:
    found = [row for row in rows if all(row[name] == value for name, value in of.items())]
    counts = {name: sum(row[name] for row in found) for name in ("refused", "warned") if name in found[0]}
    return {"n": len(found), **counts}


def figures() -> dict[str, dict[str, list[dict]]]:
    """Return the measured figures: "before" and "now"."""
    return json.loads(FIGURES.read_text("utf-8"))


def block() -> str:
    """Return both tables, in Markdown."""
    now = figures()["now"]
    changes = list(dict.fromkeys(row["change"] for row in now["recognised"]))
    refused = {(row["world"], row["change"]): row["refused"] for row in now["recognised"]}
    lines = [[world, *(refused[world, change] for change in changes)] for world in WORLDS]
    others = [[row[name] for name in ("kind", "n", "refused", "warned")] for row in now["mistaken"]]
    return "\n".join(
        [
            INTRODUCTION.format(n=SEEDS),
            table(["registered", *changes], lines),
            FOREIGN,
            table(["other data", "trials", "refused", "warned about"], others),
        ]
    )


INTRODUCTION = """\
**Positives only.** We registered collections in the shape of public ones. Then their queries came back: whole or in
part, among as many other queries, with features and 20 unjudged candidates for each query, or under new ids. The cells
show how many of {n} are refused.
"""

FOREIGN = """\
**Other data.** None of these is the registered collection. By chance or by nature they have the same ids, items or
users.
"""


def write_guide() -> None:
    """Write the tables into the guide."""
    GUIDE.write_text(filled(GUIDE.read_text("utf-8"), block(), COMMENTS), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--as", dest="when", choices=("before", "now"), default="now")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nice", type=int, default=10)
    given = parser.parse_args()
    os.nice(given.nice)
    found = measured(0.1 if given.quick else 1.0, given.jobs)
    if given.quick:
        for row in [*found["recognised"], *found["mistaken"]]:
            print(*row.values(), sep="\t")
        return
    kept = (figures() if FIGURES.exists() else {}) | {given.when: found}
    lines = [
        f'  "{when}": {{\n'
        + ",\n".join(
            f'    "{name}": [\n' + ",\n".join(f"      {json.dumps(row)}" for row in rows) + "\n    ]"
            for name, rows in kept[when].items()
        )
        + "\n  }"
        for when in ("before", "now")
        if when in kept
    ]
    write_atomically(FIGURES, [("{\n" + ",\n".join(lines) + "\n}\n").encode()])
    if set(kept) == {"before", "now"}:
        write_guide()


if __name__ == "__main__":
    main()
