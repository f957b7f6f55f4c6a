"""What every test stands on: the guard is off unless a test asks for it, and where the shared collections are."""

from __future__ import annotations

import os
from collections.abc import Iterator
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


@pytest.fixture
def without_formula() -> Iterator[str]:
    """Declare a measure whose mean over orders of tied rows has no formula, so that many orders are drawn."""
    from rankeval.measures import family
    from rankeval.measures.family import FAMILIES
    from rankeval.measures.ranked import average_precision

    def squared(judged, *, rel=1, cutoff=None):
        """Square of AP, in [0, 1]."""
        return average_precision(judged, rel=rel, cutoff=cutoff) ** 2

    family("SquaredAP", title="square of AP", formula="AP^2", source="a test", expected="orders of hits")(squared)
    yield "SquaredAP"
    del FAMILIES["SquaredAP"]
