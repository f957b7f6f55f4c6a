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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.merging import differences
from rankeval.evaluation.result import aggregates, size_of, to_bytes

_LONGEST = 200
"""Bytes in the name of a file; file systems take 255."""


class Baselines:
    """The fixture ``rankeval_baseline``: call it with the candidate to get the Evaluation to compare with.

    Parameters
    ----------
    node : pytest.Item
        The test; its configuration says where baselines are, and if they are renewed.
    said : callable
        Takes the sentence on a baseline that was renewed.
    """

    def __init__(self, node: pytest.Item, said: Callable[[str], None]) -> None:
        self._node, self._said = node, said
        self.folder: Path = node.path.parent / node.config.getini("rankeval_baselines")

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
        if not isinstance(candidate, Evaluation):
            raise InvalidInput(
                f"rankeval_baseline keeps an Evaluation, as rankeval.evaluate returns, found {type(candidate).__name__}"
            )
        path = self.path(name)
        if self._node.config.getoption("rankeval_update"):
            return self._renewed(candidate, path)
        if not path.exists():
            pytest.fail(f"there is no baseline {_relative(path, self._node)}; {self._remedy()}", pytrace=False)
        baseline = Evaluation.load(path)
        lacking = [measure for measure in candidate.measure_names if measure not in baseline.measure_names]
        reasons = [f"the baseline has no {', '.join(lacking)}"] if lacking else []
        if reasons := [*reasons, *differences(candidate, baseline)]:
            pytest.fail(
                f"the candidate cannot be compared with the baseline {_relative(path, self._node)}: "
                f"{'; '.join(reasons)}. If the change is meant, {self._remedy()}",
                pytrace=False,
            )
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
        return self.folder / f"{quoted}.parquet"

    def _renewed(self, candidate: Evaluation, path: Path) -> Evaluation:
        old, words = dict[str, float](), "renewed" if path.exists() else "new"
        with suppress(InvalidInput):  # a file that is no Evaluation may be replaced
            old = aggregates(Evaluation.load(path)) if path.exists() else {}
        if path.exists() and path.read_bytes() == to_bytes(candidate):
            old, words = {}, "unchanged"
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            candidate.save(path)
        new = aggregates(candidate).items()
        means = [f"{name} {f'{old[name]:.4f} -> ' if name in old else ''}{value:.4f}" for name, value in new]
        self._said(f"{words} baseline {_relative(path, self._node)}: {', '.join(means)} ({size_of(candidate)})")
        return candidate

    def _remedy(self) -> str:
        inner = self._node.nodeid.partition("::")[2]
        target = shlex.quote(f"{_relative(self._node.path, self._node)}::{inner}")
        return f"write it from this code with `pytest {target} --rankeval-update`, and commit the file"


def _relative(path: Path, node: pytest.Item) -> str:
    try:
        return os.path.relpath(path, node.config.invocation_params.dir)
    except ValueError:  # another drive
        return str(path)
