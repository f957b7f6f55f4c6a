"""Circles of cases: what a run tries, what it leaves to wider circles, and when to leave out a case is a failure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from circles import module_marks

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

@pytest.mark.needs("json", "no_such_module")
def test_of_a_package():
    raise AssertionError

@pytest.mark.xfail
def test_of_a_known_defect():
    raise AssertionError

def test_of_nothing():
    pass
""",
    # In one line: the marks of a module are read from its text, and this module has none.
    "test_two.py": "import pytest\npytestmark = pytest.mark.needs('no_such_module')\nimport no_such_module\n",
    "test_three.py": """
import pytest

def test_of_nothing():
    pass

@pytest.mark.further
def test_of_more():
    pass

@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.world)])
def test_of_a_world(number):
    pass
""",
    "test_four.py": "import pytest\npytestmark = [pytest.mark.timeout(9), pytest.mark.kill]\ndef test_it(): pass\n",
    "test_five.py": """
import pytest

def spin(seconds):
    import time
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def test_of_no_word():
    spin(0.4)

@pytest.mark.worth("a reason")
def test_of_a_word():
    spin(0.4)
""",
}
LEFT_OUT, CIRCLES, SLOW = ("test_one.py", "test_two.py"), ("test_three.py", "test_four.py"), ("test_five.py",)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("pytestmark = pytest.mark.kill\n", [("kill", ())]),
        ("pytestmark = pytest.mark.needs('a', \"b\")  # a word\nx = pytest.mark.world\n", [("needs", ("a", "b"))]),
        (
            "pytestmark = [\n    pytest.mark.timeout(9),\n    pytest.mark.kill,  # why\n]\ny = [pytest.mark.docs]\n",
            [("kill", ())],
        ),
        ("# pytestmark = pytest.mark.kill\nx = pytest.mark.world\n", []),
    ],
)
def test_the_marks_of_a_module_are_those_of_its_statement(tmp_path, statement, expected):
    path = tmp_path / "test_it.py"
    path.write_text(f"import pytest\n{statement}")
    assert module_marks(path) == expected


def outcome(folder: Path, files: tuple[str, ...], circle: str, *options: str) -> tuple[int, str]:
    """Run some of the tests above under our conftest, in a folder without collections; return exit code and output."""
    tests = folder / "checkout" / "tests"
    tests.mkdir(parents=True)
    for needed in ("conftest.py", "circles.py", "forking.py"):
        shutil.copy(Path(__file__).parent / needed, tests / needed)
    for name in files:
        (tests / name).write_text(TESTS[name])
    (folder / "checkout" / "pytest.ini").write_text("[pytest]\npythonpath = tests\ntestpaths = tests\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "--strict-markers", *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder / "checkout",
        env={**os.environ, "RANKEVAL_TESTS": circle, "PYTEST_ADDOPTS": ""},
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "options", [(), pytest.param(("-n", "2"), marks=pytest.mark.further)], ids=["serial", "parallel"]
)
def test_a_promised_test_or_module_that_is_skipped_fails(tmp_path, options):
    """In the workers of pytest-xdist too; tests of absent collections are counted, a known defect stays one."""
    code, output = outcome(tmp_path, LEFT_OUT, "complete", "--continue-on-collection-errors", *options)
    assert code == 1
    assert "left out, although RANKEVAL_TESTS=complete: Skipped: needs a fax" in output
    assert "left out, although RANKEVAL_TESTS=complete: Skipped: needs no_such_module: " in output
    assert f"left out: 3 tests: needs the shared collections at {tmp_path / 'shared' / 'data'}" in output
    assert "1 passed, 3 skipped, 1 xfailed, 3 errors" in output


def test_a_public_checkout_passes(tmp_path):
    """Without the collections, the tests that read them are no failure, whatever is promised."""
    code, output = outcome(tmp_path, ("test_one.py",), "complete", "-k", "collections or nothing")
    assert code == 0, output
    assert "1 passed, 3 skipped" in output


def test_the_default_circle_leaves_out_what_the_machine_lacks(tmp_path):
    """It says so, with the package that is missing, and nothing fails."""
    code, output = outcome(tmp_path, LEFT_OUT, "")
    assert code == 0, output
    assert "left out: 1 tests: needs a fax" in output
    assert "left out: 2 tests: needs no_such_module: python -m pip install '.[test-all]'" in output


@pytest.mark.parametrize(
    ("circle", "options", "passed", "left"),
    [
        (
            "default",
            (),
            2,
            "1 cases of the circle 'complete', 1 cases of the circle 'full', 1 modules of the circle 'full'",
        ),
        pytest.param(
            "complete",
            ("-n", "2"),
            3,
            "1 cases of the circle 'full', 1 modules of the circle 'full'",
            marks=pytest.mark.further,
        ),
        pytest.param("full", (), 5, None, marks=pytest.mark.further),
        ("full", ("-m", "kill or world"), 2, None),
    ],
)
def test_a_circle_has_the_cases_of_the_narrower_ones(tmp_path, circle, options, passed, left):
    """What is not tried is counted; the modules of wider circles are not even imported."""
    code, output = outcome(tmp_path, CIRCLES, circle, *options)
    assert code == 0, output
    assert f"{passed} passed" in output
    assert (f"not tried: {left} (" in output) if left else ("not tried" not in output)


def test_a_circle_that_does_not_exist_is_refused(tmp_path):
    code, output = outcome(tmp_path, CIRCLES, "whole")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "RANKEVAL_TESTS=whole: expected one of default, complete, full" in output


def test_a_slow_case_of_the_default_circle_needs_a_word(tmp_path, monkeypatch):
    """What it takes is counted in CPU seconds, and `--cpu` lists the dearest."""
    (tmp_path / "quick.py").write_text("import circles\ncircles.SLOW = 0.2\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code, output = outcome(tmp_path, SLOW, "", "-p", "quick", "--cpu", "1")
    assert code == 0, output
    assert "CPU s without a word why: tests/test_five.py::test_of_no_word" in output
    assert "test_of_a_word" not in output.partition("without a word why")[2].partition("before")[0]
    assert output.count(" before, ") == 1
