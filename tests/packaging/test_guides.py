"""The guides are programs: their blocks run in order, and what they say fails does fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = [*sorted((ROOT / "examples" / "guides").glob("*.md")), ROOT / ".github" / "CONTRIBUTING.md"]
FAILS = """
try:
{block}
except BaseException as found:
    if type(found).__name__ != {error!r}:
        raise
    print("failed as it should:", type(found).__name__)
else:
    raise SystemExit("the block that begins in line {line} is said to fail, and did not")
"""


def blocks(text):
    """Yield the line, the name of the error that must come or None, and the code of each block of Python."""
    for match in re.finditer(r"^```python(?: fails (\w+))?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 2, match[1], match[2]


def program(text):
    """Return one program of all blocks; those that must fail are guarded, the others must not warn."""
    parts = []
    for line, error, code in blocks(text):
        indented = "".join(f"    {row}\n" if row.strip() else "\n" for row in code.splitlines())
        part = FAILS.format(block=indented, error=error, line=line) if error else code
        parts.append(f"# line {line}\n{part}")
    return "\n".join(parts)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.name)
def test_a_guide_runs_from_top_to_bottom(path, tmp_path):
    script = tmp_path / "guide.py"
    script.write_text(program(path.read_text(encoding="utf-8")), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=300,
        env={**os.environ, "RANKEVAL_LEDGER": "off"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr
    failing = sum(error is not None for _, error, _ in blocks(path.read_text(encoding="utf-8")))
    assert done.stdout.count("failed as it should") == failing


def test_the_guide_to_cross_validation_has_its_twelve_ways():
    """Each with a block that works; eleven fail today, the twelfth is silently wrong."""
    text = (ROOT / "examples" / "guides" / "cross_validation.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (?=\d+\. )", text, flags=re.MULTILINE)[1:]
    assert [int(section.partition(".")[0]) for section in sections] == list(range(1, 13))
    for section in sections:
        assert any(error is None for _, error, _ in blocks(section))
    assert sum(error is not None for section in sections for _, error, _ in blocks(section)) == 11
