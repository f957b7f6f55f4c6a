"""The pytest plugin of rankeval: a baseline beside the tests, a ledger for one test, a table of what was checked.

pytest loads this module for every project in an environment with rankeval. So it imports nothing of rankeval: the
fixture does, when a test asks for it. What the assertions of `rankeval.testing` checked travels with the reports of the
tests, as a user property, so that it reaches the process that prints the summary from the workers of pytest-xdist too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rankeval_pytest.baselines import Baselines

__all__ = ["rankeval_baseline", "rankeval_ledger"]

_CHECKED = "rankeval"
_RENEWED = "rankeval_baseline"
_COLUMNS = ("test", "measure", "queries", "gain", "interval", "verdict")

_MOST_ROWS = 10
"""Rows of one test in the summary: of a test that checks in a loop, the last ones, among them the one that failed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that renews baselines, and the name of their folder."""
    parser.getgroup("rankeval").addoption(
        "--rankeval-update",
        action="store_true",
        help="write the evaluations that tests give to rankeval_baseline as their new baselines",
    )
    parser.addini("rankeval_baselines", "folder beside each test file for its baselines", default="rankeval_baselines")


def pytest_configure(config: pytest.Config) -> None:
    """Gather the summary, in the process that prints it."""
    if not hasattr(config, "workerinput"):  # a worker of pytest-xdist
        config.pluginmanager.register(_Summary(), "rankeval-summary")


@pytest.fixture
def rankeval_baseline(request: pytest.FixtureRequest) -> Baselines:
    """Keep an Evaluation beside the tests: ``rankeval_baseline(candidate)`` returns the one to compare with.

    ``pytest --rankeval-update`` writes the candidate as the new baseline. Without it nothing is ever written, and a
    test without a baseline fails.
    """
    from rankeval_pytest.baselines import Baselines

    return Baselines(
        request.node,
        update=request.config.getoption("rankeval_update"),
        folder=request.config.getini("rankeval_baselines"),
        said=lambda text: request.node.user_properties.append((_RENEWED, text)),
    )


@pytest.fixture
def rankeval_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test an empty ledger of its own: what it registers and opens is on no other record.

    The variable ``RANKEVAL_LEDGER`` names the folder during the test, so processes that the test starts use it too.
    What this process knew of other ledgers is forgotten, and looked up again after the test.
    """
    from rankeval.contamination.refusal import forget
    from rankeval.ledger.discovery import VARIABLE

    folder = tmp_path / "rankeval-ledger"
    with monkeypatch.context() as patch:
        patch.setenv(VARIABLE, str(folder))
        folder.mkdir()  # now, so that nothing warns of a ledger that is named and not there
        forget()
        yield folder
    forget()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Attach what was checked to the test that did."""
    testing = sys.modules.get("rankeval.testing")
    while testing is not None and testing.CHECKS:
        item.user_properties.append((_CHECKED, json.dumps(testing.CHECKS.popleft())))
    return (yield)


class _Summary:
    """Collects what the tests reported, and prints it at the end."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []
        self.more: list[str] = []
        self.renewed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read the properties of a test once, when all of its phases are over."""
        if report.when == "teardown":
            found = [(name, str(value)) for name, value in report.user_properties]
            rows = [{"test": report.nodeid, **json.loads(value)} for name, value in found if name == _CHECKED]
            self.rows += rows[-_MOST_ROWS:]
            if len(rows) > _MOST_ROWS:
                self.more.append(f"{report.nodeid}: {len(rows) - _MOST_ROWS:,} earlier checks are not listed")
            self.renewed += [value for name, value in found if name == _RENEWED]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each measure that was checked and each baseline that was renewed."""
        if not (self.rows or self.renewed):
            return
        terminalreporter.section("rankeval")
        for line in [*_drawn(self.rows), *self.more, *self.renewed]:
            terminalreporter.write_line(line)


def _drawn(rows: list[dict[str, str]]) -> list[str]:
    if not rows:
        return []
    cells = [_COLUMNS, *([row[column] for column in _COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if name in ("queries", "gain") else text.ljust(width)
            for name, text, width in zip(_COLUMNS, line, widths, strict=True)
        ).rstrip()
        for line in cells
    ]
