"""Pages are tested with their images."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def images() -> None:
    """Paint the figures of reports."""
