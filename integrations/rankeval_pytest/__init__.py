"""The pytest plugin of rankeval: a baseline beside the tests, a ledger for one test, a table of what was checked.

pytest loads this module for every project in an environment with rankeval. So it imports nothing of
rankeval: the fixtures do, when a test asks for one, and the summary does at the end, if there is
something to say. What the assertions of `rankeval.testing` checked travels with the reports of the
tests, as a user property, so that it reaches the process that prints and writes the summary from
the workers of pytest-xdist too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

__all__ = ["rankeval_baseline", "rankeval_ledger"]

_CHECKED = "rankeval"
RENEWED = "rankeval_baseline"

_MOST_ROWS = 25
"""Rows of one test in the summary: those that failed, and the last ones of a loop or of slices."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for new baselines and the summary, and the name of the baselines' folder."""
    group = parser.getgroup("rankeval")
    update = "write the evaluations that tests give to rankeval_baseline as their new baselines"
    group.addoption("--rankeval-update", action="store_true", help=update)
    group.addoption(
        "--rankeval-summary",
        metavar="FILE",
        help="write what was checked to this file, as Markdown",
    )
    parser.addini(
        "rankeval_baselines",
        "folder beside each test file for its baselines",
        default="rankeval_baselines",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Gather the summary, in the process that prints it."""
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist
        return
    option = config.getoption("rankeval_summary")
    file = (
        None if option is None else Path(option).absolute()
    )  # now, since a test may change the working directory
    if file and (file.is_dir() or not (file.parent.is_dir() and os.access(file.parent, os.W_OK))):
        remedy = "name a file in a folder that exists and can be written to"
        raise pytest.UsageError(f"--rankeval-summary: cannot write {str(file)!r}; {remedy}")
    config.pluginmanager.register(_Summary(file), "rankeval-summary")


@pytest.fixture
def rankeval_baseline(request: pytest.FixtureRequest) -> Callable[..., object]:
    """Keep an Evaluation beside the tests: ``rankeval_baseline(candidate)`` returns the one to compare with.

    ``pytest --rankeval-update`` writes the candidate as the new baseline. Without it nothing is
    ever written, and a test without a baseline fails.
    """
    from rankeval_pytest.baselines import baseline

    return partial(baseline, request.node)


@pytest.fixture
def rankeval_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test an empty ledger of its own: what it registers and opens is on no other record.

    The variable ``RANKEVAL_LEDGER`` names the folder during the test, so processes that the test
    starts use it too. What this process knew of other ledgers is forgotten, and looked up again
    after the test.
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


@pytest.hookimpl(tryfirst=True)  # pytest's own makes the report of what the item has then
def pytest_runtest_makereport(item: pytest.Item) -> None:
    """Attach what was checked to the test that did."""
    testing = sys.modules.get("rankeval.testing")
    while testing is not None and testing.CHECKS:
        item.user_properties.append(
            (_CHECKED, json.dumps({"test": item.nodeid, **testing.CHECKS.popleft()}))
        )


class _Summary:
    """Collects the reports of tests, prints them at the end, and writes them as Markdown."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.rows: list[dict[str, str]] = []
        self.notes: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read the properties of a test once, when all of its phases are over."""
        if report.when == "teardown":
            rows = [
                json.loads(str(value)) for name, value in report.user_properties if name == _CHECKED
            ]
            rows.sort(key=lambda row: bool(row["failure"]))
            self.rows += rows[-_MOST_ROWS:]
            if len(rows) > _MOST_ROWS:
                self.notes.append(
                    f"{report.nodeid}: {len(rows) - _MOST_ROWS:,} more checks are not listed"
                )
            self.notes += [str(value) for name, value in report.user_properties if name == RENEWED]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each measure that was checked and each baseline that was renewed."""
        if self.rows or self.notes:
            from rankeval_pytest.summary import table_of

            terminalreporter.section("rankeval")
            lines = table_of(self.rows).to_text().splitlines() if self.rows else []
            del lines[1:2]  # the rule: the header is one line, as a row is
            terminalreporter.write_line("\n".join([*lines, *self.notes]))

    @pytest.hookimpl(
        wrapper=True, tryfirst=True
    )  # the outermost: pytest has printed all if a file cannot be written
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Append the Markdown to GitHub's step summary, and write it to the file of the option."""
        yield
        step = os.environ.get("GITHUB_STEP_SUMMARY") if self.rows else None
        if step or self.file:
            from rankeval.io.opening import write_atomically
            from rankeval_pytest.summary import to_markdown

            text = to_markdown(self.rows, self.notes, session.testsfailed)
        if step:
            try:
                with Path(step).open("a", encoding="utf-8") as file:
                    file.write(f"\n{text}")
            except OSError as error:  # of a container that knows the variable, and not the folder
                sys.stderr.write(
                    f"\nrankeval: nothing is appended to GITHUB_STEP_SUMMARY: {error}\n"
                )
        if self.file:
            write_atomically(self.file, [text.encode()])
