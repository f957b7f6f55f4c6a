"""`rankeval.cross_validate` tells observers what it was given, what came of it, and what went wrong."""

from __future__ import annotations

from contextlib import contextmanager
from inspect import signature

import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval import tracking
from rankeval.errors import InvalidInput


@pytest.fixture
def seen(monkeypatch):
    """Return what an observer saw."""
    notes = []

    @contextmanager
    def observer(given):
        notes.append(("given", given))
        try:
            yield lambda result: notes.append(("result", result))
        except BaseException as error:
            notes.append(("error", error))
            raise

    monkeypatch.setattr(tracking, "OBSERVERS", [observer])
    return notes


@pytest.fixture(scope="module")
def data():
    return rk.datasets.make_ranking(20, 5, rng=0)


def test_arguments_and_the_result(seen, data):
    """Arguments come by name, without the defaults."""
    result = rk.cross_validate(Ridge(), data, cv=2)
    (_, given), (_, told) = seen
    assert set(given) == {"estimator", "X", "cv"}
    assert given["X"] is data
    assert told is result


def test_an_error_is_seen_and_raised(seen, data):
    """The observer cannot swallow what it does not raise."""
    with pytest.raises(InvalidInput, match="measures"):
        rk.cross_validate(Ridge(), data, measures=[])
    assert [kind for kind, _ in seen] == ["given", "error"]
    assert isinstance(seen[1][1], InvalidInput)


def test_without_observers_nothing_changes(data):
    """The signature is that of the function itself."""
    assert not tracking.OBSERVERS
    assert "measures" in signature(rk.cross_validate).parameters
    assert rk.cross_validate(Ridge(), data, cv=2).evaluation.n_queries == 20
