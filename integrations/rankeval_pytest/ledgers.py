"""A ledger for one test, which nothing outside of the test reads or writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rankeval.contamination.refusal import forget
from rankeval.ledger.discovery import VARIABLE


@contextmanager
def empty_ledger(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let this process, and those that it starts, use an empty ledger.

    Parameters
    ----------
    folder : path
        Where it is made.
    monkeypatch : pytest.MonkeyPatch
        Puts the environment back after the test.

    Yields
    ------
    path
        The folder.
    """
    with monkeypatch.context() as patch:
        patch.setenv(VARIABLE, str(folder))
        folder.mkdir()  # now, so that nothing warns of a ledger that is named and not there
        forget()
        yield folder
    forget()
