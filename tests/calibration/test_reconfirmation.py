"""The best of many null systems is never confirmed again, however the collection is changed in between.

The full form, 2,000 histories, runs with RANKEVAL_TESTS=full.
"""

from __future__ import annotations

import os

import pytest
from calibration.histories import disagreements, simulate, simulate_honest

from rankeval.guard.exposure import Exposure
from rankeval.guard.standings import CONFIRMATORY

AT_ONCE, HISTORIES = (50, 2000) if os.environ.get("RANKEVAL_TESTS") == "full" else (5, 10)

pytestmark = pytest.mark.filterwarnings("ignore:RG")  # findings of checks: few queries, queries of other collections


@pytest.mark.parametrize("first", range(0, HISTORIES, AT_ONCE))
def test_the_best_of_null_systems_is_never_confirmed_again(first, tmp_path):
    for seed in range(first, first + AT_ONCE):
        openings = simulate(seed, str(tmp_path / f"ledger-{seed}"))
        assert len(openings) >= 2
        for opening in openings:
            assert opening.standing != CONFIRMATORY, (seed, opening)
            assert not disagreements(opening), (seed, opening)


def test_a_guard_that_counts_by_registration_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(Exposure, "_links", lambda _: iter(()))
    with pytest.raises(AssertionError, match="standing='confirmatory'"):
        test_the_best_of_null_systems_is_never_confirmed_again(0, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_new_queries_are_confirmatory(seed, tmp_path):
    """The control. One old query of 21, which is under 5 %, changes nothing."""
    for opening in simulate_honest(seed, str(tmp_path / "ledger")):
        assert opening.standing == CONFIRMATORY, opening
        assert not disagreements(opening), opening
        assert opening.looks
