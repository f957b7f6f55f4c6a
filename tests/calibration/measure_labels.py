"""Measure by how many of its labels a registered collection is recognised, and write it for the tests and the guide.

    python tests/calibration/measure_labels.py          # about 4 CPU minutes
    python tests/calibration/measure_labels.py --quick  # a tenth of the work; prints and writes nothing

A collection is registered, and comes back under the same ids with some labels flipped, or without its zeros. A hundred
collections of each kind are tried. The script writes tests/calibration/label_rates.json and, from it, the block
of tables in examples/guides/guard_rules.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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

FIGURES = Path(__file__).with_name("label_rates.json")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "guard_rules.md"
COMMENTS = (
    "<!-- measured by tests/calibration/measure_labels.py -->",
    "<!-- end of what measure_labels.py measured -->",
)
REPLICATIONS = 100
POSITIVES, GRADES = "positives only", "grades"
FLIPS = (0.0, 0.02, 0.05, 0.08, 0.1, 0.15, 0.2)
GRADE_SHARES = (0.5, 0.2, 0.15, 0.1, 0.05)

INTRODUCTION = """\
**Judgments with some labels flipped.** We registered binary judgments with their zeros. They came back with the same
ids, but with a share of all labels flipped, or with positives only. The cells show how many of {n} collections are
refused / warned about.
"""

ALONE = """\
**Labels alone.** The same for `rk.evaluate(labels, scores, qid=qid)`, where neither documents nor features show which
label belongs to which document. Grades are 0 to 4, and half of them are 0. Under new ids, only unchanged labels are
recognised.
"""


class Cell(NamedTuple):
    """What is registered, and what comes back.

    Attributes
    ----------
    documents : bool
        Whether documents are known, as in qrels.
    n_queries, n_docs : int
        Queries, and documents of each.
    density : float or str
        Share of relevant documents, or "grades".
    change : float or str
        Share of labels that change, or "positives only".
    """

    documents: bool
    n_queries: int
    n_docs: int
    density: float | str
    change: float | str


KINDS = (
    *((True, 100, 50, density) for density in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)),
    *((True, 100, n_docs, 0.1) for n_docs in (10, 20, 100)),
    *((True, n_queries, 50, 0.1) for n_queries in (20, 50, 300)),
    *((False, 100, n_docs, density) for n_docs in (10, 20, 50) for density in (0.1, 0.3, 0.5, GRADES)),
)


def verdicts(kind: tuple, seed: int, replications: int) -> list[dict]:
    """Return one dict a change: how many collections of a kind are refused, and how many are warned about."""
    found = {change: [] for change in (*FLIPS, POSITIVES)}
    for number in range(replications):
        rng = np.random.default_rng([seed, number, *kind[1:3]])
        collection = Collection.drawn(*kind, rng)
        known = collection.registered()
        for change, verdicts_of_change in found.items():
            verdicts_of_change.append(match_content(known, collection.changed(change, rng)))
    return [
        Cell(*kind, change)._asdict()
        | {"refused": sum(one.refused for one in of_change), "warned": sum(one.warned for one in of_change)}
        for change, of_change in found.items()
    ]


@dataclass
class Collection:
    """Labels of queries, other labels that may stand in their place, and documents if they are known."""

    qid: np.ndarray
    y: np.ndarray
    other: np.ndarray
    docid: np.ndarray | None

    @classmethod
    def drawn(cls, documents, n_queries, n_docs, density, rng) -> Collection:
        """Draw a collection of one kind."""
        qid, n = np.repeat(np.arange(n_queries), n_docs), n_queries * n_docs
        docid = np.char.add("d", np.arange(n).astype(str)) if documents else None
        if density != GRADES:
            y = (rng.random(n) < density).astype(int)
            return cls(qid.astype(str), y, 1 - y, docid)
        y = rng.choice(len(GRADE_SHARES), p=GRADE_SHARES, size=n)
        return cls(qid.astype(str), y, (y + rng.integers(1, len(GRADE_SHARES), n)) % len(GRADE_SHARES), docid)

    def registered(self) -> RegisteredContent:
        """Return the registration."""
        known = self._prints(self.y)
        return RegisteredContent("p", "t", known.digest, "id", "me", "2026-01-02", signature=Signature.of(known))

    def changed(self, change: float | str, rng) -> Fingerprint:
        """Return the collection with some labels changed, or its positives."""
        if change == POSITIVES:
            return self._prints(self.y, self.y > 0)
        return self._prints(np.where(rng.random(len(self.y)) < change, self.other, self.y))

    def _prints(self, y, keep=slice(None)) -> Fingerprint:
        if self.docid is None:
            return fingerprint(None, y[keep], self.qid[keep])
        return fingerprint_qrels(rk.Qrels(self.qid[keep], self.docid[keep], y[keep]))


def measured(replications: int, jobs: int) -> list[dict]:
    """Return one dict a cell."""
    work = Parallel(n_jobs=jobs, verbose=5)
    found = work(delayed(verdicts)(kind, 1, replications) for kind in KINDS)
    return [row | {"replications": replications} for rows_of_kind in found for row in rows_of_kind]


def rows() -> list[dict]:
    """Return the measured figures."""
    return json.loads(FIGURES.read_text("utf-8"))


def block() -> str:
    """Return both tables, in Markdown."""
    found = {Cell(*(row[name] for name in Cell._fields)): row for row in rows()}
    changes = (*FLIPS, POSITIVES)
    head = ["queries", "documents of each", "relevant", *(f"{100 * share:.0f} %" for share in FLIPS), POSITIVES]
    lines = [
        (
            documents,
            [n, n_docs, _share(density), *(_cell(found[Cell(documents, n, n_docs, density, c)]) for c in changes)],
        )
        for documents, n, n_docs, density in KINDS
    ]
    of_judgments, of_labels = ([line for known, line in lines if known == documents] for documents in (True, False))
    return "\n".join([INTRODUCTION.format(n=REPLICATIONS), table(head, of_judgments), ALONE, table(head, of_labels)])


def _share(density: float | str) -> str:
    return density if isinstance(density, str) else f"{100 * density:.0f} %"


def _cell(row: dict) -> str:
    refused, warned = (round(100 * row[name] / row["replications"]) for name in ("refused", "warned"))
    return f"{refused} / {warned}" if warned else f"{refused}"


def write_guide() -> None:
    """Write the tables into the guide."""
    GUIDE.write_text(filled(GUIDE.read_text("utf-8"), block(), COMMENTS), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nice", type=int, default=10)
    given = parser.parse_args()
    os.nice(given.nice)
    found = measured(REPLICATIONS // 10 if given.quick else REPLICATIONS, given.jobs)
    if given.quick:
        for row in found:
            print(*row.values(), sep="\t")
        return
    lines = ",\n".join(json.dumps(row) for row in found)
    write_atomically(FIGURES, [f"[\n{lines}\n]\n".encode()])
    write_guide()
    print(block())


if __name__ == "__main__":
    main()
