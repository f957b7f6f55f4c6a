"""A guard check is one declaration: warnings, results, ledger, list, help and JSON have it without another edit."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import rankeval as rk
from rankeval.cli import app
from rankeval.errors import InvalidInput, RankevalWarning
from rankeval.guard import guard_check, list_checks
from rankeval.guard.checks import CHECKS
from rankeval.ledger.ledger import Ledger


def even_number_of_queries(registration):
    """Even numbers of queries have no median query.

    Only the first line is shown.
    """
    if registration.data.n_queries % 2 == 0:
        yield f"{registration.data.n_queries} queries have no query in the middle"


@pytest.fixture(autouse=True)
def _declared():
    """Declare the check for one test."""
    assert guard_check("RG900", severity="warning")(even_number_of_queries) is even_number_of_queries
    yield
    del CHECKS["RG900"]


@pytest.fixture
def guard(tmp_path):
    return rk.Guard("project", ledger=tmp_path / "ledger.db")


def shown(*arguments):
    result = CliRunner().invoke(app, ["guard", "checks", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    return result.output


def test_registering_warns_by_its_code(guard):
    with pytest.warns(RankevalWarning, match=r"^RG900 'even': 60 queries have no query in the middle$"):
        test = guard.register("even", rk.datasets.make_ranking(60, 10, 4, rng=3))
    assert "RG900: 60 queries have no query in the middle" in map(str, test.findings)
    assert "<li>RG900: 60 queries have no query in the middle</li>" in test._repr_html_()


def test_the_ledger_keeps_its_findings_as_json(guard, tmp_path):
    with pytest.warns(RankevalWarning, match="RG900"):
        guard.register("even", rk.datasets.make_ranking(60, 10, 4, rng=3))
    (entry,) = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").read().entries
    assert entry.body["findings"] == {"RG900": 1}


@pytest.mark.filterwarnings("error")
def test_a_collection_that_it_does_not_concern_is_registered_in_silence(guard):
    assert guard.register("odd", rk.datasets.make_ranking(61, 10, 4, rng=3)).findings == ()


@pytest.mark.filterwarnings("error")
def test_a_note_does_not_warn(guard):
    del CHECKS["RG900"]
    guard_check("RG900")(even_number_of_queries)
    test = guard.register("even", rk.datasets.make_ranking(60, 10, 4, rng=3))
    assert [(one.code, one.severity) for one in test.findings] == [("RG900", "note")]


def test_the_list_has_a_row():
    row = list_checks().loc["RG900"]
    assert row.to_dict() == {"severity": "warning", "finds": "Even numbers of queries have no median query."}


def test_the_command_and_its_help_list_it():
    assert "Even numbers of queries have no median query." in shown()
    assert "RG900 (warning): Even numbers of queries have no median query." in shown("--help")
    rows = json.loads(shown("--format", "json"))
    own = {"code": "RG900", "severity": "warning", "finds": "Even numbers of queries have no median query."}
    assert own in rows
    assert [row["code"] for row in rows] == [*(f"RG{k:03}" for k in range(1, len(rows))), "RG900"]


def test_a_code_is_declared_once():
    with pytest.raises(InvalidInput, match=r"RG900 is already declared \(Even numbers.*choose another code"):
        guard_check("RG900")(lambda _: iter(()))
    with pytest.raises(InvalidInput, match="guard check RG001 is already declared"):
        guard_check("RG001")(even_number_of_queries)
    assert CHECKS["RG900"].find is even_number_of_queries


def test_findings_are_yielded():
    """A returned sentence would be a finding per letter, and findings stay in ledgers."""
    with pytest.raises(InvalidInput, match="RG901 must yield its findings"):
        guard_check("RG901")(lambda _: "too few queries")
    assert "RG901" not in CHECKS
