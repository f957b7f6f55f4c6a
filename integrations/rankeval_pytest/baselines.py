"""Evaluations beside the tests: one Parquet file per test, in a folder next to the test's file.

::

    tests/test_search.py::test_ltr        tests/rankeval_baselines/test_search.test_ltr.parquet
    rankeval_baseline(ev, name="ltr")     tests/rankeval_baselines/ltr.parquet

Files are replaced atomically, so that the workers of pytest-xdist may share a baseline.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from rankeval._checks import require
from rankeval.errors import InvalidInput
from rankeval.evaluation.merging import differences
from rankeval.evaluation.result import Evaluation, aggregates, size_of
from rankeval_pytest import RENEWED


def baseline(node: pytest.Item, candidate: Evaluation, name: str | None = None) -> Evaluation:
    """Return the baseline of a test; with ``--rankeval-update``, write and return the candidate."""
    __tracebackhide__ = True
    is_one = isinstance(candidate, Evaluation)
    require(is_one, "candidate", type(candidate), "an Evaluation, as rankeval.evaluate returns")
    test, start = node.nodeid.partition("::")[2], node.config.invocation_params.dir
    stem = f"{node.path.stem}.{test}" if name is None else name
    # Quoting keeps different names different, and leaves no character that a file system refuses.
    # File systems take 255 bytes: of a longer name the first ones are folders.
    parts = re.findall(".{1,200}", f"{quote(stem.replace('::', '.'), safe='[]')}.parquet")
    path = Path(node.path.parent, node.config.getini("rankeval_baselines"), *parts)
    file = os.path.relpath(path, start)
    if node.config.getoption("rankeval_update"):
        node.user_properties.append((RENEWED, _renewed(candidate, path, file)))
        return candidate
    target = shlex.quote(f"{os.path.relpath(node.path, start)}::{test}")
    remedy = (
        f"write it from this code with `pytest {target} --rankeval-update`, and commit the file"
    )
    if not path.exists():
        pytest.fail(f"there is no baseline {file}; {remedy}", pytrace=False)
    kept = Evaluation.load(path)
    absent = [measure for measure in candidate.measure_names if measure not in kept.measure_names]
    if reasons := [
        *(f"the baseline has no {measure}" for measure in absent),
        *differences(candidate, kept),
    ]:
        problem = f"the candidate cannot be compared with the baseline {file}: {'; '.join(reasons)}"
        pytest.fail(f"{problem}. If the change is meant, {remedy}", pytrace=False)
    return kept


def _renewed(candidate: Evaluation, path: Path, file: str) -> str:
    before, old = path.read_bytes() if path.exists() else b"", dict[str, float]()
    with suppress(
        InvalidInput
    ):  # there is no file yet, or one that is no Evaluation, which may be replaced
        old = aggregates(Evaluation.load(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    candidate.save(path)
    kind = {b"": "new", path.read_bytes(): "unchanged"}.get(before, "renewed")
    new = aggregates(candidate).items()
    means = [
        f"{n} {f'{old[n]:.4f} -> ' if old.get(n, mean) != mean else ''}{mean:.4f}"
        for n, mean in new
    ]
    return f"{kind} baseline {file}: {', '.join(means)} ({size_of(candidate)})"
