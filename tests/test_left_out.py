"""A promised test that is left out fails; only tests of collections that do not exist are left out and counted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = {
    "test_one.py": """
import pytest

@pytest.mark.shared
@pytest.mark.parametrize("number", range(3))
def test_of_the_collections(number):
    raise AssertionError

@pytest.mark.skipif(True, reason="needs a fax")
def test_of_a_fax():
    raise AssertionError

@pytest.mark.xfail
def test_of_a_known_defect():
    raise AssertionError

def test_of_nothing():
    pass
""",
    "test_two.py": "import pytest\npytest.importorskip('no_such_module')\n",
}


def outcome(folder: Path, promised: str, *options: str) -> tuple[int, str]:
    """Run the tests above under our conftest, in a folder without collections; return exit code and output."""
    tests = folder / "checkout" / "tests"
    (tests / "fuzz").mkdir(parents=True)
    for needed in ("conftest.py", "fuzz/budget.py"):
        shutil.copy(Path(__file__).parent / needed, tests / needed)
    for name, text in TESTS.items():
        (tests / name).write_text(text)
    (folder / "checkout" / "pytest.ini").write_text("[pytest]\nmarkers = shared\npythonpath = tests\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder / "checkout",
        env={**os.environ, "RANKEVAL_TESTS": promised, "PYTEST_ADDOPTS": ""},
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["serial", "parallel"])
def test_a_promised_test_or_module_that_is_skipped_fails(tmp_path, options):
    """In the workers of pytest-xdist too; tests of absent collections are counted, a known defect stays one."""
    code, said = outcome(tmp_path, "complete", "--continue-on-collection-errors", *options)
    assert code == 1
    assert "left out, although RANKEVAL_TESTS=complete: Skipped: needs a fax" in said
    assert "left out, although RANKEVAL_TESTS=complete: Skipped: could not import 'no_such_module'" in said
    assert f"left out: 3 tests: needs the shared collections at {tmp_path / 'shared' / 'data'}" in said
    assert "1 passed, 3 skipped, 1 xfailed, 2 errors" in said


def test_a_public_checkout_passes(tmp_path):
    """Without the collections, the tests that read them are no failure, whatever is promised."""
    code, said = outcome(tmp_path, "complete", "-k", "collections or nothing", "--ignore=tests/test_two.py")
    assert code == 0, said
    assert "1 passed, 3 skipped" in said


def test_without_a_promise_nothing_fails(tmp_path):
    """A plain `pytest` leaves out what the machine lacks, and says so."""
    code, said = outcome(tmp_path, "")
    assert code == 0, said
    assert "left out: 1 tests: needs a fax" in said
