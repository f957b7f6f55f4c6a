"""A desk for each case."""

import pytest
from guard_cases.situations import start_desk
from joblib.externals.loky import get_reusable_executor

import rankeval as rk
from rankeval.contamination import forget


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Start with an empty ledger."""
    yield start_desk(tmp_path, monkeypatch)
    forget()


@pytest.fixture
def guard(tmp_path, monkeypatch):
    """Return a guard whose ledger is that of the process, as its workers find it."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    yield rk.Guard("project")
    forget()


@pytest.fixture
def guarded(desk):
    """Start with the test collection registered as ``test`` by the project."""
    desk.guard().register("test", desk.test)
    return desk


@pytest.fixture
def _fresh_workers():
    """End the workers of earlier tests, which have the environment of those."""
    get_reusable_executor().shutdown(wait=True)
    yield
    get_reusable_executor().shutdown(wait=True)
