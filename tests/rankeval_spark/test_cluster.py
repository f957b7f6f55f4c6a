"""On executors of their own: five million rows with a worker and an executor killed, and the package sent as a wheel.

They take minutes, and belong to the full circle.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(1200)]


def found_by(program, *arguments):
    """Run a program beside this file; return what it prints last."""
    command = [sys.executable, Path(__file__).with_name(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_killed_workers_change_no_bit(tmp_path):
    """A task that runs again doubles nothing, and a query with a fifth of all rows is scored as any other."""
    found = found_by("cluster.py", tmp_path, "50000")
    assert found == {
        "same bytes": True,
        "n_scores": found["n_queries"],
        "n_queries": found["n_queries"],
        "killed": ["killed-0", "killed-1"],
    }


def test_an_executor_takes_the_package_from_a_wheel(tmp_path):
    """The executor has the dependencies alone: it says what to do, and works once the wheel is sent."""
    found = found_by("shipped.py", tmp_path)
    assert "cannot import rankeval: install rankeval-mlflow there, or send them its wheel" in found.pop("without")
    assert found == {"same bytes": True, "n_scores": 50}
