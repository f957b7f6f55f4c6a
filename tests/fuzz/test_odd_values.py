"""Odd values for every argument: an error of ours or a value; never a raw error, a hang, or memory without end."""

from __future__ import annotations

import os
import random

import pytest
from circles import choose
from fuzz.odd_calls import EXEMPT, complaints_of
from fuzz.odd_values import VALUES, WORDS
from oracle import coverage
from oracle.calls import load_recipes

pytestmark = pytest.mark.random
RECIPES = [name for name in load_recipes() if name not in ("testing.plugin", "commands.processes")]
"""All but those that call in processes of their own."""
CHEAP = [name for name in RECIPES if not name.startswith(("mlflow", "commands", "report", "model_selection"))]
PARTS = choose(default=1, full=8)
SHARE = choose(default=0.02, full=1)
LIMITS = pytest.mark.skipif(os.name != "posix", reason="needs limits of resources")


def runs(part=0, parts=1):
    """Return recipes and their numbers: a sample by seed, each once, or each often, so that they take all ways.

    A part has all numbers of its recipes: a pair that was tried is not tried again.
    """
    some = random.Random(0).sample(CHEAP, 24)  # noqa: S311 - no secret
    names = choose(default=some, full=RECIPES)[part::parts]
    return [(name, number) for name in names for number in range(choose(default=1, full=12))]


def test_there_are_odd_values_of_many_kinds():
    assert len(VALUES) >= 29
    assert len(WORDS) >= 20


@LIMITS
@pytest.mark.worth("the process starts with all libraries, and fits and resamples what the odd values are beside")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_odd_values_are_refused_or_have_a_value(part, tmp_path):
    """The lines of a failure name the call; `fuzz.odd_calls` says how to repeat it."""
    complaints, arguments = complaints_of(runs(part, PARTS), SHARE, tmp_path)
    assert complaints == []
    assert len(arguments) >= 100


@LIMITS
@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_every_public_name_is_tried(tmp_path):
    """Each function, method and command has a valid call, after which odd ones are made."""
    _, arguments = complaints_of(runs(), 0, tmp_path)
    tried = {name.partition("(")[0] for name in arguments}
    left_out = (*EXEMPT, *coverage.EXEMPT)
    wanted = [name for name in coverage.public_names() if not name.startswith(left_out)]
    assert [name for name in wanted if not coverage.is_named(name, tried)] == []
