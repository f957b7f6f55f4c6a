"""Diversity measures equal those of ndeval of the TREC Web Track, per query, on the Web Track 2012."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from tables import each_row

import rankeval as rk

pytestmark = pytest.mark.shared

RUNS = ["indri-ql-cata", "indri-ql-cata-filtered", "indri-ql-catb", "indri-rm-cata-filtered", "indri-rm-catb"]
NAMES = {
    **{f"{name}@{k}": f"{name}@{k}" for name in ("ERR-IA", "nERR-IA", "alpha-DCG", "alpha-nDCG") for k in (5, 10, 20)},
    **{f"{name}@{k}": f"{name}@{k}" for name in ("P-IA", "strec") for k in (5, 10, 20)},
    "NRBP": "NRBP",
    "nNRBP": "nNRBP",
    "MAP-IA": "MAP-IA",
}


def printed(path: Path) -> dict[str, dict[str, str]]:
    with gzip.open(path, "rt") as lines:
        return {row["topic"]: row for row in csv.DictReader(lines) if row["topic"] != "amean"}


def read_run(shared: Path, name: str) -> rk.Run:
    folder = shared / "web2012" / "runs"
    return rk.Run.read(next(path for path in folder.iterdir() if path.name.startswith(f"{name}.run")))


def ranked_by_column(shared: Path, name: str) -> rk.Run:
    """Return a run in the order of its rank column, which ndeval trusts by default."""
    folder = shared / "web2012" / "runs"
    path = next(path for path in folder.iterdir() if path.name.startswith(f"{name}.run"))
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [line.split() for line in text.decode().splitlines()]
    return rk.Run([row[0] for row in rows], [row[2] for row in rows], -np.array([float(row[3]) for row in rows]))


def compare(ours, theirs, names):
    assert len(theirs) >= 48
    for topic, row in theirs.items():
        for spelt, name in names.items():
            assert ours.at[topic, name] == pytest.approx(float(row[spelt]), abs=1.5e-6), (topic, name)


@pytest.mark.parametrize("run", RUNS)
def test_runs_sorted_by_score_and_id_agree(shared: Path, run: str):
    """Every topic and measure to the six digits printed, as ndeval -traditional -c has them."""
    qrels = rk.Qrels.read(shared / "web2012" / "qrels.ndeval.txt.gz", format="ndeval")
    theirs = printed(shared / "golden" / "diversity_web2012" / f"{run}.ndeval.traditional.c.csv.gz")
    ours = rk.evaluate(qrels, read_run(shared, run), measures=list(NAMES.values()), ties="docid").per_query
    compare(ours, theirs, NAMES)
    # What ndeval lacks, it counts as 0.
    assert (ours.drop(index=list(theirs)) == 0).all().all()


@pytest.mark.parametrize("run", RUNS)
def test_runs_sorted_by_their_rank_column_agree(shared: Path, run: str):
    """The same in the order of the rank column."""
    qrels = rk.Qrels.read(shared / "web2012" / "qrels.ndeval.txt.gz", format="ndeval")
    theirs = printed(shared / "golden" / "diversity_web2012" / f"{run}.ndeval.csv.gz")
    ours = rk.evaluate(qrels, ranked_by_column(shared, run), measures=list(NAMES.values()), ties="docid").per_query
    compare(ours, theirs, NAMES)


@each_row("run", RUNS)
def test_other_intolerance_and_patience_agree(shared: Path, run: str):
    """The same with alpha 0.2 and beta 0.8."""
    qrels = rk.Qrels.read(shared / "web2012" / "qrels.ndeval.txt.gz", format="ndeval")
    theirs = printed(shared / "golden" / "diversity_web2012" / f"{run}.ndeval.traditional.c.alpha02_beta08.csv.gz")
    names = {f"{ours.replace('_', '-')}@{k}": f"{ours}(alpha=0.2)@{k}" for ours in
             ("ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG") for k in (5, 10, 20)}  # fmt: skip
    names |= {"NRBP": "NRBP(alpha=0.2, beta=0.8)", "nNRBP": "nNRBP(alpha=0.2, beta=0.8)"}
    ours = rk.evaluate(qrels, read_run(shared, run), measures=list(names.values()), ties="docid").per_query
    compare(ours, theirs, names)
