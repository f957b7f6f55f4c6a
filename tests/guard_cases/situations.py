"""Data, steps and the declaration of a case, for the thirty misuses and the thirty legitimate uses.

A case is a test that says what it expects, and which row of the reviewers' table it answers::

    @misuse("never confirmatory", rows=[1])
    def test_one_changed_label(desk): ...

`test_list_of_cases` counts the cases.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import rankeval as rk
from rankeval.contamination import forget
from rankeval.contamination.registered import RegisteredContent
from rankeval.contamination.signature import Signature
from rankeval.errors import RankevalWarning
from rankeval.guard.journal import SERVICES
from rankeval.guard.standings import STATUS_OF

REFUSED, WARNED, COUNTED = "refused", "warned", "counted as looks"
NEVER, FAILS, FOUND = "never confirmatory", "fails before scoring", "found"
UNDISTURBED, SAID = "undisturbed", "said once"
N_TEST = 40


@dataclass(frozen=True)
class Case:
    """What a case is, what it expects, and the rows of the table of findings that it answers."""

    kind: str
    expected: str
    rows: tuple[int, ...]


def misuse(expected: str, *, rows: Sequence[int] = ()):
    """Declare a misuse: refused, warned about, counted, or never confirmatory."""
    return _declare(Case("misuse", expected, tuple(rows)))


def legitimate(expected: str = UNDISTURBED, *, rows: Sequence[int] = ()):
    """Declare a legitimate use: nothing is refused, and no warning is given unless the case says so."""
    return _declare(Case("legitimate", expected, tuple(rows)))


def _declare(case: Case):
    def declare(function):
        function.case = case
        return function

    return declare


@dataclass
class Desk:
    """Somebody's desk: a folder, a ledger, a test collection of 40 queries and 140 other queries of the same source."""

    folder: Path
    test: rk.RankingData
    dev: rk.RankingData
    monkeypatch: pytest.MonkeyPatch

    @property
    def ledger(self) -> Path:
        """The folder of the ledger."""
        return self.folder / "rankeval-ledger"

    def guard(self, project: str = "project", **options) -> rk.Guard:
        """Return a guard on the desk's ledger, as a new process would make it."""
        return rk.Guard(project, ledger=options.pop("ledger", self.ledger), **options)

    def look(self, name, data, *weights, project="project", guard=None, **options):
        """Register data, freeze systems of some weights, and open them; warnings of the registration are left out."""
        guard = guard or self.guard(project)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankevalWarning)
            registered = guard.register(name, data, **options)
        return guard.open(planned(guard, registered, data, *weights))


def start_desk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Give a test a desk of its own, whose ledger is the one of this process."""
    for variable in (*" ".join(SERVICES).split(), "RANKEVAL_LEDGER_COMMITTED", "RANKEVAL_WHO"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("RANKEVAL_LEDGER", str(folder / "rankeval-ledger"))
    monkeypatch.chdir(folder)
    forget()
    whole = rk.datasets.make_ranking(N_TEST + 140, 12, 5, rng=11)
    return Desk(folder, whole.take(whole.qid <= N_TEST), whole.take(whole.qid > N_TEST), monkeypatch)


def registered(prints):
    """Return a collection as it is read from a ledger."""
    signature = Signature.from_arrays(Signature.of(prints).arrays())
    return RegisteredContent("project", "test", prints.digest, "id", "me", "2026-01-02", signature=signature)


def weighted(data, *weights):
    """Return systems that weigh the first two features: s0 ignores the second."""
    return {f"s{weight}": data.X[:, 0] + weight * data.X[:, 1] for weight in weights}


def planned(guard, registered, data, *weights, **options):
    """Freeze systems of some weights; the first is the baseline."""
    baseline = f"s{weights[0]}" if len(weights) > 1 else None
    options = {"n_resamples": 199, "baseline": baseline} | options
    return guard.freeze(registered, systems=weighted(data, *weights), **options)


def standing(result) -> str:
    """Return the standing of a comparison, whose word must come first in its notes."""
    words = ("confirmatory", "exploratory")
    assert STATUS_OF[result.standing] == next(word for note in result.notes for word in words if note.startswith(word))
    return result.standing


def renamed(data, start=5000):
    """Give the queries other ids."""
    return changed(data, qid=data.qid + start)


def changed(data, **parts):
    """Return the data with other features, labels or ids."""
    kept = {name: getattr(data, name) for name in ("X", "y", "qid", "docid")}
    return rk.RankingData(**(kept | parts))


def stacked(*parts):
    """Return the rows of several data sets, one after the other."""
    return rk.RankingData(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "qid")))


def relabelled(data, share=0.05, seed=0):
    """Move a share of the labels by one grade."""
    rng, y = np.random.default_rng(seed), data.y.copy()
    chosen = rng.choice(len(y), max(1, round(share * len(y))), replace=False)
    y[chosen] = np.where(y[chosen] > 0, y[chosen] - 1, 1)
    return changed(data, y=y)


def copied(ledger: Path, name: str) -> Path:
    """Return a clone of a ledger."""
    return Path(shutil.copytree(ledger, ledger.with_name(name)))


def entries(ledger: Path, kind: str) -> list[Path]:
    """Return the files of the entries of one kind."""
    return [file for file in sorted(ledger.glob("*.json")) if f'"kind": "{kind}"' in file.read_text()]


def without_rights_to_write(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program for which permissions count: root may write anywhere, unless it gives that right up."""
    powerless = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []
    return subprocess.run(
        [*powerless, sys.executable, "-W", "error::rankeval.errors.RankevalWarning", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | variables,
    )
