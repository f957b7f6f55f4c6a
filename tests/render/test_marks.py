"""Marks of systems: emphasis by what is printed, stars by level and direction, letters of the systems below."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from rankeval.render import layouts

MEANS = pd.DataFrame({"AP": [0.3, 0.4, 0.5]}, index=["a", "b", "c"])


def claims(*rows):
    return pd.DataFrame(rows, columns=["system", "other", "column", "p", "sign", "shown"]).assign(parted=False)


def test_of_some_measures_less_is_better():
    frame = pd.DataFrame({"ARP": [3.0, 1.0, 2.0], "AP": [3.0, 1.0, 2.0]})
    emphasis = layouts.best_and_second(frame, signs={"ARP": -1, "AP": 1})
    assert emphasis["ARP"].tolist() == ["", "best", "second"]
    assert emphasis["AP"].tolist() == ["best", "", "second"]


def test_best_and_second_share_ties():
    """Equal values have equal emphasis; nan has none."""
    frame = pd.DataFrame({"AP": [0.5, 0.7, 0.7, 0.5, 0.1, math.nan]}, index=list("abcdef"))
    assert layouts.best_and_second(frame)["AP"].tolist() == ["second", "best", "best", "second", "", ""]


def test_of_two_systems_the_other_one_is_not_second():
    assert layouts.best_and_second(MEANS.iloc[:2])["AP"].tolist() == ["", "best"]


def test_what_is_printed_alike_is_marked_alike():
    frame = pd.DataFrame({"AP": [0.4121, 0.4119, 0.3]})
    assert layouts.best_and_second(frame, digits={"AP": 3})["AP"].tolist() == ["best", "best", "second"]
    assert layouts.best_and_second(frame, digits={"AP": 4})["AP"].tolist() == ["best", "second", ""]


@pytest.mark.parametrize(("p", "sign", "mark"), [
    (0.05, 1, "*"), (0.011, 1, "*"), (0.01, 1, "**"), (0.001, 1, "***"), (0.04, -1, "\u2193*"),
    (0.0001, -1, "\u2193***"),
])  # fmt: skip
def test_stars_tell_level_and_direction(p, sign, mark):
    found = layouts.stars(claims(("b", "a", "AP", p, sign, True)), MEANS, levels=layouts.levels_within(0.05))
    assert found["AP"].tolist() == ["", mark, ""]


def test_a_claim_that_is_not_shown_has_no_star():
    rows = claims(("b", "a", "AP", 1e-9, 1, False), ("c", "a", "AP", math.nan, 1, False))
    assert layouts.stars(rows, MEANS, levels=[0.05])["AP"].tolist() == ["", "", ""]


def test_letters_name_the_systems_below():
    rows = claims(
        ("c", "a", "AP", 0.01, 1, True), ("c", "b", "AP", 0.01, 1, True), ("a", "c", "AP", 0.01, -1, True),
        ("b", "a", "AP", 0.2, 1, False),
    )  # fmt: skip
    assert layouts.letters(rows, MEANS, layouts.letters_for(["a", "b", "c"]))["AP"].tolist() == ["", "", "ab"]
    assert layouts.letters(rows, MEANS, {"b": "x"})["AP"].tolist() == ["", "", "x"]


def test_many_systems_have_distinct_names_that_are_told_apart():
    names = layouts.letters_for([f"s{k}" for k in range(60)])
    assert len(set(names.values())) == 60
    assert {len(name) for name in names.values()} == {2}
    means = pd.DataFrame({"AP": 0.5}, index=list(names))
    rows = claims(("s9", "s0", "AP", 0.01, 1, True), ("s9", "s27", "AP", 0.01, 1, True))
    assert layouts.letters(rows, means, names).loc["s9", "AP"] == "aa,bb"
