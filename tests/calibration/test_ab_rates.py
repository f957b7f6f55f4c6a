"""A/B tests claim as often as promised; `ab_rates.json` is held against the promises, and the code against the file."""

from __future__ import annotations

import pytest
from calibration.guard_tables import filled
from calibration.measure_ab import (
    BETTER,
    COMMENTS,
    EQUAL,
    GUIDE,
    N_DRAWS,
    TRIALS,
    block,
    by_days,
    measured,
    rows,
)
from circles import choose

from rankeval.online import unequal

DAYS = [row for row in rows() if "by days" in row]
WORLDS = [row for row in rows() if "by days" not in row]
NULL, ALTERNATIVE = ([row for row in WORLDS if bool(row["lift"]) == lifted] for lifted in (False, True))


def claims(row, way="ours"):
    return row[f"{way}_lower"] + row[f"{way}_higher"]


def name(row):
    return f"{row['metric']}, {row['control']} + {row['treatment']}"


def test_the_file_is_of_every_world():
    expected = [(world.words, *world.sizes, world.lift) for world in (*EQUAL, *BETTER)]
    assert [tuple(row[key] for key in ("metric", "control", "treatment", "lift")) for row in WORLDS] == expected
    assert all(row["trials"] >= TRIALS for row in rows())


def test_equal_arms_are_rarely_claimed_to_differ():
    """In at most 6.5 % of the tests, and on either side in at most 4 %, where Welch's test claims up to a half."""
    assert {name(row): claims(row) for row in NULL if claims(row) > 0.065} == {}
    sides = {name(row): max(row["ours_lower"], row["ours_higher"]) for row in NULL}
    assert {world: rate for world, rate in sides.items() if rate > 0.04} == {}
    assert max(claims(row, "welch") for row in NULL) > 0.35


def test_every_test_has_an_answer():
    assert {row["answered"] for row in WORLDS} == {1.0}


def test_differences_are_found():
    """As often as by Welch's test in arms of one size, elsewhere nearly as often as by permutation of the mean."""
    for row in ALTERNATIVE:
        if row["control"] == row["treatment"]:
            assert claims(row) == pytest.approx(claims(row, "welch"), abs=0.03), name(row)
        else:
            side = "higher" if row["lift"] > 0 else "lower"
            assert row[f"ours_{side}"] >= 0.8 * row[f"permutation_{side}"], name(row)


def test_a_plan_by_days_keeps_its_level():
    assert all(row["claimed"] <= 0.065 for row in DAYS)
    text = " ".join(GUIDE.read_text("utf-8").split())
    even, uneven, first = (f"{100 * row['claimed']:.1f} %" for row in DAYS)
    assert f"If users came evenly, {even} of the tests claimed a difference" in text
    assert f"If 60 % of the users came on the first day, {uneven} did." in text
    assert f"If 95 % came on the first day and all came back, {first} did." in text


def test_the_guide_has_the_figures():
    text = GUIDE.read_text("utf-8")
    assert filled(text, block(WORLDS), COMMENTS) == text


@pytest.mark.random
@pytest.mark.parametrize("world", [EQUAL[0], pytest.param(EQUAL[3], marks=pytest.mark.rest)], ids=lambda one: one.words)
def test_the_code_claims_as_the_file_says(world, monkeypatch):
    """By some trials of another seed."""
    monkeypatch.setattr(unequal, "N_DRAWS", N_DRAWS)
    trials = choose(default=60, full=1000)
    row, kept = measured(world, trials, 77), rows()[EQUAL.index(world)]
    for way in ("ours", "welch"):
        rate = claims(kept, way)
        assert claims(row, way) == pytest.approx(rate, abs=4 * (rate * (1 - rate) / trials) ** 0.5 + 1 / trials)


def test_days_are_simulated_as_the_file_says():
    assert by_days(0.6, 100, 5)["claimed"] <= 0.14
