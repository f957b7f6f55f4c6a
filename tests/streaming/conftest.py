"""Small batches and parts, so that a small log is cut as a large one is."""

import pytest

from rankeval.streaming import queries, rows


@pytest.fixture
def small(monkeypatch):
    """Cut into batches of 16 rows, parts of 200, and buckets of about 16."""
    monkeypatch.setattr(rows, "BATCH", 16)
    monkeypatch.setattr(queries, "BATCH", 16)
    monkeypatch.setattr(queries, "RUN", 50)
    monkeypatch.setattr(queries, "_LEAST", 8)
    monkeypatch.setattr(queries, "PART", 200)
