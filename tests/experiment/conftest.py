"""What all tests of experiments share: reports without painted figures."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay out the figures of reports, but do not paint them, which is half of the time of a run that is logged.

    They are painted in the tests of other processes, in tests/test_cli.py and in tests/report.
    """
    monkeypatch.setattr("rankeval.report.html._image", lambda _: "data:,")
