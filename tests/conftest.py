"""What every test stands on: the guard is off unless a test asks for it, and where the shared collections are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no failure: no test is timed. In CI the examples are the same in each run, elsewhere they are new.
settings.register_profile("rankeval", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("rankeval")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

# "complete": whoever runs .ci/run promised all of it, and what would be left out is a failure.
# "full": the slow forms as well.
PROMISED = os.environ.get("RANKEVAL_TESTS", "")

# Set before any test module is imported: the ledger is resolved once per process.
os.environ["RANKEVAL_LEDGER"] = "off"


def _absent() -> dict[str, str]:
    """Return marker -> why its tests cannot run on this machine."""
    from shutil import which

    why = {}
    if not SHARED.is_dir():
        why["shared"] = f"needs the shared collections at {SHARED}"
    if not (which("chromium") or which("chromium-browser") or which("google-chrome")):
        why["browser"] = "needs Chromium on the PATH"
    if PROMISED != "full":
        why["slow"] = "takes minutes: `.ci/run --full` runs it"
    return why


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, with the reason, what this machine cannot run; fail instead where everything was promised."""
    why = _absent()
    for item in items:
        for marker in item.iter_markers():
            if marker.name in why:
                if PROMISED and marker.name != "slow":
                    raise pytest.UsageError(f"{item.nodeid} {why[marker.name]}, and RANKEVAL_TESTS={PROMISED}")
                item.add_marker(pytest.mark.skip(reason=why[marker.name]))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of the shared collections."""
    return SHARED


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in a directory of its own, so that no store or ledger is found by accident."""
    monkeypatch.chdir(tmp_path)
