"""Evaluations kept beside the tests: one Parquet file per test, in a folder next to the test's file.

::

    tests/test_search.py::test_ltr        tests/rankeval_baselines/test_search.test_ltr.parquet
    rankeval_baseline(ev, name="ltr")     tests/rankeval_baselines/ltr.parquet

Files are replaced atomically, so that the workers of pytest-xdist may share a baseline.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from rankeval._checks import require
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.merging import differences
from rankeval.evaluation.result import aggregates, size_of
from rankeval_pytest import RENEWED

_LONGEST = 200
"""Bytes in the name of a file; file systems take 255."""


class Baselines:
    """The fixture ``rankeval_baseline``: call it with the candidate to get the Evaluation to compare with.

    Parameters
    ----------
    node : pytest.Item
        The test; its configuration says where baselines are, and if they are renewed. A sentence on each baseline that
        was renewed travels with its report, as the user property `RENEWED`.
    """

    def __init__(self, node: pytest.Item) -> None:
        self._node = node

    def __call__(self, candidate: Evaluation, name: str | None = None) -> Evaluation:
        """Return the baseline; with ``--rankeval-update``, write the candidate first and return it.

        Parameters
        ----------
        candidate : Evaluation
            The evaluation of the system under test.
        name : str, optional
            Name of the baseline, to share one between tests, or to have several in one test. By default the name of
            the test.

        Returns
        -------
        Evaluation
            The baseline.

        Raises
        ------
        pytest.fail.Exception
            If there is no baseline, or its measures, rules or judgments are not those of the candidate. The message has
            the command that writes one.
        InvalidInput
            If the candidate is no Evaluation, or the file is no saved one.
        """
        __tracebackhide__ = True
        is_one = isinstance(candidate, Evaluation)
        require(is_one, "candidate", type(candidate), "an Evaluation, as rankeval.evaluate returns")
        path = self.path(name)
        if self._node.config.getoption("rankeval_update"):
            return self._renewed(candidate, path)
        target = shlex.quote(f"{self._relative(self._node.path)}::{self._node.nodeid.partition('::')[2]}")
        remedy = f"write it from this code with `pytest {target} --rankeval-update`, and commit the file"
        if not path.exists():
            pytest.fail(f"there is no baseline {self._relative(path)}; {remedy}", pytrace=False)
        baseline = Evaluation.load(path)
        absent = [measure for measure in candidate.measure_names if measure not in baseline.measure_names]
        if reasons := [*(f"the baseline has no {measure}" for measure in absent), *differences(candidate, baseline)]:
            problem = f"the candidate cannot be compared with the baseline {self._relative(path)}: {'; '.join(reasons)}"
            pytest.fail(f"{problem}. If the change is meant, {remedy}", pytrace=False)
        return baseline

    def path(self, name: str | None = None) -> Path:
        """Return the file of a baseline.

        Parameters
        ----------
        name : str, optional
            As given to the call.
        """
        stem = f"{self._node.path.stem}.{self._node.nodeid.partition('::')[2]}" if name is None else name
        # Quoting keeps different names different, and leaves no character that a file system refuses.
        quoted = quote(stem.replace("::", "."), safe="[]")
        if len(quoted) > _LONGEST:
            quoted = f"{quoted[:_LONGEST]}.{hashlib.sha256(stem.encode()).hexdigest()[:16]}"
        return Path(self._node.path.parent, self._node.config.getini("rankeval_baselines"), f"{quoted}.parquet")

    def _renewed(self, candidate: Evaluation, path: Path) -> Evaluation:
        before, old = path.read_bytes() if path.exists() else b"", dict[str, float]()
        with suppress(InvalidInput):  # there is no file yet, or one that is no Evaluation, which may be replaced
            old = aggregates(Evaluation.load(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        candidate.save(path)
        words = ("unchanged" if path.read_bytes() == before else "renewed") if before else "new"
        new = aggregates(candidate).items()
        means = [f"{n} {f'{old[n]:.4f} -> ' if old.get(n, mean) != mean else ''}{mean:.4f}" for n, mean in new]
        text = f"{words} baseline {self._relative(path)}: {', '.join(means)} ({size_of(candidate)})"
        self._node.user_properties.append((RENEWED, text))
        return candidate

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self._node.config.invocation_params.dir)
