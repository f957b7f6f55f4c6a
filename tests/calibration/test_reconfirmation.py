"""The best of many null systems is never confirmed again, however the collection is changed in between.

Of the 2,000 histories that were promised, the default circle takes five, the worlds of the full circle 400.
"""

from __future__ import annotations

import pytest
from calibration.histories import disagreements, simulate, simulate_clones, simulate_honest

from rankeval.guard.exposure import Exposure
from rankeval.guard.standings import CONFIRMATORY, EXPLORATORY, FIRST

# Findings of checks: few queries, queries of other collections.
pytestmark = pytest.mark.filterwarnings("ignore:RG")


@pytest.mark.parametrize(
    ("first", "at_once"),
    [
        (0, 5),
        pytest.param(5, 5, marks=pytest.mark.rest),
        *(pytest.param(first, 50, marks=pytest.mark.world) for first in range(10, 410, 50)),
    ],
)
def test_the_best_of_null_systems_is_never_confirmed_again(first, at_once, tmp_path):
    for seed in range(first, first + at_once):
        openings = simulate(seed, str(tmp_path / f"ledger-{seed}"))
        assert len(openings) >= 2
        for opening in openings:
            assert opening.standing != CONFIRMATORY, (seed, opening)
            assert not disagreements(opening), (seed, opening)


def test_a_guard_that_counts_by_registration_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(Exposure, "_links", lambda _: iter(()))
    with pytest.raises(AssertionError, match="standing='confirmatory'"):
        test_the_best_of_null_systems_is_never_confirmed_again(0, 5, tmp_path)


@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.rest) for one in (1, 2))])
def test_new_queries_are_confirmatory(seed, tmp_path):
    """The control. One old query of 21, which is under 5 %, changes nothing."""
    for opening in simulate_honest(seed, str(tmp_path / "ledger")):
        assert opening.standing == CONFIRMATORY, opening
        assert not disagreements(opening), opening
        assert opening.looks


@pytest.mark.parametrize(("first", "at_once"), [(0, 6), pytest.param(6, 200, marks=pytest.mark.world)])
def test_of_two_openings_in_two_clones_the_first_one_alone_is_kept(first, at_once, tmp_path):
    """Also if the other clone registered the collection as changed, under another name, or in another project."""
    lowered = []
    for seed in range(first, first + at_once):
        before, after = simulate_clones(seed, str(tmp_path / f"ledger-{seed}"))
        assert before == [CONFIRMATORY] * 2, seed
        assert after[0] == CONFIRMATORY, seed
        lowered.append(after[1])
    assert set(lowered) <= {EXPLORATORY, FIRST}
    assert EXPLORATORY in lowered
