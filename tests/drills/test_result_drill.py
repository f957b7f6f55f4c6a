"""A result is one class and one line: saving, loading, records, pushes and hosts follow from them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import rankeval as rk
from rankeval.comparison.recorded import LIMITS, Recorded
from rankeval.errors import CheckFailed, UnknownName
from rankeval.render.tables import Table
from rankeval.shelf.files import HOST
from rankeval.shelf.kinds import KINDS
from rankeval.testing import check_host
from rankeval.tracking import Host, TrackedRun


@dataclass(frozen=True, eq=False)
class Freshness(Recorded):
    """The age of the documents at the top."""

    _row_key = "system"
    _row_ends: ClassVar[Mapping[str, str]] = {"days": "", **LIMITS}

    table: pd.DataFrame
    depth: int = 10
    notes: tuple[str, ...] = ()

    def _laid_out(self):
        return Table(self.table, caption=f"Age of the first {self.depth} documents", notes=self.notes)


FOUND = Freshness(
    pd.DataFrame({"system": ["bm25", "ltr"], "days": [3.5, 40.25], "ci_low": [3.0, 30.0], "ci_high": [4.0, 50.0]}),
    depth=5,
    notes=("two documents have no date",),
)


@pytest.fixture
def _declared(monkeypatch):
    """Add the line, and a module of the library that has the class."""
    module = ModuleType("rankeval.drilled")
    module.Freshness = Freshness
    monkeypatch.setitem(sys.modules, "rankeval.drilled", module)
    monkeypatch.setitem(KINDS, "freshness", "drilled.Freshness")


@pytest.mark.usefixtures("_declared")
def test_a_class_and_a_line_make_a_kind_of_result(tmp_path):
    """All its fields come back, its numbers are metrics, and the record of what was loaded is the same."""
    seal = rk.save(FOUND, tmp_path / "saved")
    back = rk.load(tmp_path / "saved")
    assert_frame_equal(back.table, FOUND.table)
    assert (back.depth, back.notes, str(back)) == (5, FOUND.notes, str(FOUND))
    assert rk.save(back, tmp_path / "again") == seal
    record = rk.read_record(tmp_path / "saved")
    assert record.metrics == {
        "freshness/bm25": 3.5,
        "freshness/bm25_ci_low": 3.0,
        "freshness/bm25_ci_high": 4.0,
        "freshness/ltr": 40.25,
        "freshness/ltr_ci_low": 30.0,
        "freshness/ltr_ci_high": 50.0,
    }
    assert "two documents have no date" in (tmp_path / "saved" / "README.md").read_text()


@pytest.mark.usefixtures("_declared")
def test_a_kind_of_a_later_version_is_read_shown_and_pushed(tmp_path, monkeypatch):
    rk.save(FOUND, tmp_path / "saved")
    monkeypatch.delitem(KINDS, "freshness")
    record = rk.read_record(tmp_path / "saved")
    assert record.headline == "Age of the first 5 documents"
    with pytest.raises(UnknownName, match="unknown kind of record 'freshness'"):
        rk.load(tmp_path / "saved")
    HOST.push(record, name="first", experiment="shop", uri=str(tmp_path / "shared"))
    assert_frame_equal(rk.read_record(tmp_path / "shared" / "shop" / "first").tables["table"], FOUND.table)


def diary(record, *, name, experiment, uri=None):
    """Keep the numbers in a text file, one line each: a host of ten lines."""
    path = Path(uri)
    with path.open("a", encoding="utf-8") as file:
        place = file.tell()
        numbers = {key: value for key, value in record.metrics.items() if math.isfinite(value)}
        file.write(json.dumps([experiment, name, record.kind, numbers]) + "\n")
    return TrackedRun(f"{path} from byte {place}", (), f"tail {path}")


def test_a_host_of_ten_lines_passes_the_check(tmp_path):
    check_host(Host("A diary", push=diary), str(tmp_path / "diary.jsonl"))
    kinds = [json.loads(line)[2] for line in (tmp_path / "diary.jsonl").read_text().splitlines()]
    assert set(kinds) == {"unknown-kind"}


def test_the_hosts_that_are_shipped_and_need_no_server_pass_the_check(tmp_path):
    check_host(HOST, str(tmp_path / "shared"))


def no_run(*_, **__):
    return None


def one_place(record, **_):
    return TrackedRun("the only place", (), f"{record.kind} is there")


def without_numbers(record, **_):
    record.metrics.clear()
    return TrackedRun(record.kind, (), "gone")


@pytest.mark.parametrize("push", [no_run, one_place, without_numbers])
def test_a_host_that_loses_something_fails_the_check(push, tmp_path):
    """It returns no run, puts another record in the place of the first, or changes the record."""
    with pytest.raises(CheckFailed):
        check_host(Host("Careless", push=push), str(tmp_path))


def test_a_record_is_not_changed_by_another_of_its_name(tmp_path):
    """The folder of the first stays; the error names it."""
    record = rk.Record("note", "first", metrics={"value": 1.0})
    pushed = [HOST.push(record, name="a", experiment="b", uri=str(tmp_path)).run_id for _ in range(2)]
    assert pushed[0] == pushed[1]
    with pytest.raises(rk.errors.InvalidInput, match="holds another record"):
        HOST.push(replace(record, metrics={"value": 2.0}), name="a", experiment="b", uri=str(tmp_path))
    assert rk.read_record(tmp_path / "b" / "a").metrics == {"value": 1.0}
