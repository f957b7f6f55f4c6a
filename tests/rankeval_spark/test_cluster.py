"""On two executors: five million rows, one query of a million, a worker and an executor killed in the middle.

It takes minutes, and belongs to the full run (see conftest.py).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


def test_killed_workers_change_no_bit(tmp_path):
    """A task that runs again doubles nothing, and a query with a fifth of all rows is scored as any other."""
    program = [sys.executable, Path(__file__).with_name("cluster.py"), tmp_path, "50000"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {
        "same bytes": True,
        "n_scores": found["n_queries"],
        "n_queries": found["n_queries"],
        "killed": ["killed-0", "killed-1"],
    }
