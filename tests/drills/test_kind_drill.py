"""A new kind of result is a class with a table and one line in KINDS: folders, pages and MLflow follow from it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import rankeval as rk
from rankeval.comparison.recorded import LIMITS, Recorded
from rankeval.render.tables import Table
from rankeval.report import report_for_judging
from rankeval.shelf.files import HOST
from rankeval.shelf.kinds import KINDS


@dataclass(frozen=True, eq=False)
class Novelty(Recorded):
    """How new the documents of each system are."""

    _row_key = "system"
    _row_ends: ClassVar[dict[str, str]] = {"novelty": "", **LIMITS}

    table: pd.DataFrame
    level: float
    notes: tuple[str, ...] = ()

    def _laid_out(self) -> Table:
        return Table(self.table, caption="Novelty of documents", notes=self.notes)


@pytest.fixture
def novelty(monkeypatch):
    """Declare the kind for one test; return a result."""
    monkeypatch.setitem(KINDS, "novelty", "novelty_drill.Novelty")
    monkeypatch.setitem(sys.modules, "rankeval.novelty_drill", sys.modules[__name__])
    table = pd.DataFrame({"system": ["a", "<b>"], "novelty": [0.5, np.inf], "ci_low": [0.4, np.nan], "ci_high": 0.6})
    return Novelty(table, 0.95, ("of the year",))


def test_it_is_saved_and_loaded(novelty, tmp_path):
    seal = rk.save(novelty, tmp_path / "x")
    back = rk.load(tmp_path / "x")
    assert type(back) is Novelty
    assert (back.level, back.notes) == (0.95, ("of the year",))
    assert_frame_equal(back.table, novelty.table, check_exact=True)
    assert rk.save(back, tmp_path / "y") == seal
    record = rk.read_record(tmp_path / "x")
    assert record.metrics["novelty/a"] == 0.5
    assert record.metrics["novelty/a_ci_low"] == 0.4
    assert record.metrics["novelty/<b>"] == np.inf
    assert record.headline == "Novelty of documents"
    assert r"\<b\>" in (tmp_path / "x" / "README.md").read_text()


def test_it_has_a_page(novelty, tmp_path):
    rk.save(novelty, tmp_path / "x")
    assert report_for_judging([rk.load(tmp_path / "x")]) == report_for_judging([novelty])


def test_a_host_takes_it(novelty, tmp_path):
    run = HOST.push(novelty.record(), name="x", experiment="drill", uri=str(tmp_path))
    assert str(rk.load(Path(tmp_path, "drill", "x"))) == str(novelty)
    assert run.where.startswith("rankeval.load(")


@pytest.mark.needs("mlflow")
def test_mlflow_takes_it_too(novelty, tmp_path, empty_database, monkeypatch):
    import mlflow

    import rankeval_mlflow as rkm

    monkeypatch.setenv("RANKEVAL_SPOOL", str(tmp_path / "spool"))
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    try:
        run = rkm.log(novelty, report=False)
        metrics = mlflow.get_run(run.run_id).data.metrics
        assert metrics["novelty/a"] == 0.5
        assert str(rkm.load(run)) == str(novelty)
    finally:
        mlflow.set_tracking_uri(None)
