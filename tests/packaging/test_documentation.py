"""What the documentation shows is what happens: README, doctests, examples."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rankeval
from rankeval.measures.family import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(module.name for module in pkgutil.walk_packages(rankeval.__path__, "rankeval."))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    """Every example in a docstring gives what it says."""
    module, declared = importlib.import_module(name), set(FAMILIES)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for example in set(FAMILIES) - declared:  # else the laws over all measures would find them, by the order of tests
        del FAMILIES[example]
    assert failed == 0


def test_the_readme_prints_what_it_shows(tmp_path):
    """The README's first program, run as a user would, prints the block that stands below it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL).groups()
    path = tmp_path / "first.py"
    path.write_text(program)
    environment = {**os.environ, "RANKEVAL_LEDGER": str(tmp_path / "ledger.db")}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", path], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split("\n") == shown.split("\n")


def test_the_readme_counts_the_measures():
    """The number of measures that the README names is the number there is."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    # In a process of its own: doctests declare measures too.
    count = "import rankeval as rk; print(len(rk.list_measures()))"
    done = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    assert re.search(r"(\d+) measures", text)[1] == done.stdout.strip()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run_and_warn_of_nothing(path, tmp_path):
    """Each example is a story that runs, in under 80 lines, and prints something."""
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80
    environment = {**os.environ, "RANKEVAL_LEDGER": str(tmp_path / "ledger.db")}
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert done.stdout
