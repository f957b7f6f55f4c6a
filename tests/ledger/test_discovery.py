"""Laws of finding the ledger."""

import os
import subprocess
import sys

import pytest

from rankeval.contamination import ContaminationCheck, forget
from rankeval.errors import ConfigError, LedgerError
from rankeval.ledger.discovery import FILE, VARIABLE, default_url, ledger_url, watch


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE)
    (tmp_path / ".git").mkdir()
    forget()
    yield
    forget()


def found():
    forget()
    return default_url()


def test_without_any_setting_it_is_in_the_root_of_the_project(tmp_path, monkeypatch):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert found() == f"sqlite:///{tmp_path / FILE}"
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert found() == f"sqlite:///{tmp_path / 'a' / FILE}"
    (inner / FILE).touch()
    assert found() == f"sqlite:///{inner / FILE}"


def test_the_project_may_name_it(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.rankeval]\nledger = "records/looks.db"\n')
    inner = tmp_path / "a"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert found() == f"sqlite:///{tmp_path / 'records' / 'looks.db'}"


def test_the_variable_goes_first_and_can_switch_it_off(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.rankeval]\nledger = "looks.db"\n')
    monkeypatch.setenv(VARIABLE, "other.db")
    assert found() == f"sqlite:///{tmp_path / 'other.db'}"
    monkeypatch.setenv(VARIABLE, "postgresql+psycopg://host/base")
    assert found() == "postgresql+psycopg://host/base"
    monkeypatch.setenv(VARIABLE, "off")
    assert found() is None
    watch("sqlite:////tmp/x.db")
    assert not ContaminationCheck.current().ledgers


def test_it_is_resolved_once(tmp_path, monkeypatch):
    first = found()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    assert default_url() == first
    assert found() != first


def test_settings_that_cannot_be_are_said(tmp_path):
    for text in ("[tool.rankeval]\nledger = 3\n", "[tool.rankeval\nledger = 'x'\n"):
        (tmp_path / "pyproject.toml").write_text(text)
        with pytest.raises(ConfigError, match=r"pyproject\.toml"):
            found()
    for spec in (":memory:", "sqlite://", "folder/"):
        with pytest.raises(LedgerError, match="give"):
            ledger_url(spec)


def test_paths_and_urls_do_not_depend_on_the_working_directory(tmp_path):
    assert ledger_url("a.db") == ledger_url("sqlite:///a.db") == f"sqlite:///{tmp_path / 'a.db'}"
    assert ledger_url(f"sqlite:///{tmp_path}/a.db") == ledger_url(tmp_path / "a.db")


def test_asking_where_there_is_no_ledger_loads_no_database_and_no_frames(tmp_path):
    program = (
        "import sys; from rankeval.contamination.refusal import ContaminationCheck; s = ContaminationCheck.current(); "
        "s.refuse(None, [1], [1], action='x'); "
        "print(bool(s.ledgers), [m for m in ('sqlalchemy', 'pandas', 'scipy', 'sklearn') if m in sys.modules])"
    )
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "[]"]


@pytest.mark.parametrize(
    "text", ["tool = 'tool.rankeval'", "[tool]\nrankeval = 'tool.rankeval'", f"# tool.rankeval\na = {'[' * 10_000}"]
)
def test_a_project_file_of_another_make_is_named(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"pyproject\.toml cannot be read, and may name the ledger"):
        found()


def test_a_ledger_called_mlflow_is_refused():
    """It would be a file of that name, and its owner would look for it on the server."""
    with pytest.raises(LedgerError, match="'mlflow' is no ledger"):
        ledger_url("mlflow")
