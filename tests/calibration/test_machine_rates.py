"""The intervals of a calibrated machine judge hold as often as promised.

`machine_rates.json` is held against the promises, and the code as it is now against the file: by some trials of another
seed. `calibrate` gives the figures of the trials to the last digits.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from calibration.guard_tables import filled
from calibration.measure_machine import (
    COMMENTS,
    GUIDE,
    JUDGED,
    TOLD,
    TRIALS,
    block,
    measured,
    of_rag25,
    rows,
    simulated,
    two_phase,
)

from rankeval.judging import calibrate, plan
from rankeval.judging.machine import FEW_NOTE

MEASURED = {(row["world"], row["n"]): row for row in rows()}
PROMISED = [
    "mean, strong judge",
    "mean, weak judge",
    "difference",
    "judge favours its kin",
    "RAG25 nDCG@10, mean",
    "RAG25 nDCG@10, difference",
    "RAG25 P(rel=2)@10, mean",
    "RAG25 P(rel=2)@10, difference",
    "cranfield nDCG@10, mean",
    "cranfield nDCG@10, difference",
]
CEILINGS = ["ceiling", "ceiling, tenths", "RAG25 P(rel=2)@10, ceiling", "RAG25 P(rel=1)@10, ceiling"]
UNEVEN = ["unequal noise", "curve", "kin on lost queries", "kin on some queries", "exponential, saturating"]
NEAR_ONE = "RAG25 P(rel=1)@10, ceiling"
"""Of the few scores below 1 often none is drawn: people alone do not see them either."""


def test_the_file_is_of_every_world_and_number_of_judged_queries():
    assert set(MEASURED) == {(world, n) for world in PROMISED + CEILINGS + UNEVEN for n in JUDGED}
    assert {row["trials"] for row in MEASURED.values()} == {TRIALS}


def test_intervals_hold_as_often_as_promised():
    """In every world 92 % or more of the 95 % ones with 25 judged queries, and 93 % or more with 50 and 100.

    Near 1 they hold in 91 % with 25, more than people alone; the note on few queries stands there.
    """
    least = {25: 0.92, 50: 0.93, 100: 0.93}
    short = {row: of["held"] for row, of in MEASURED.items() if of["held"] < least.get(row[1], 0.89)}
    assert list(short) == [(NEAR_ONE, 25)]
    for of in MEASURED.values():
        if of["n"] <= 25 and of["world"] in CEILINGS:
            assert of["held"] > of["held_people"]
    assert short[NEAR_ONE, 25] > 0.91


def test_where_scatter_is_even_intervals_are_hardly_wider():
    """Than by the formula for even scatter, which held there: by 7 % with 25 queries, 4 % with 50, 2 % with 100."""
    wider = {
        n: [MEASURED[world, n]["width"] / MEASURED[world, n]["width_even"] - 1 for world in PROMISED] for n in JUDGED
    }
    for n, most in ((10, 0.25), (50, 0.04)):
        assert 0 <= min(wider[n]) <= max(wider[n]) <= most
    ends = [f"{100 * end(wider[n]):.0f}" for n in (25, 100) for end in (min, max)]
    said = "this costs {} to {} % of the width with 25 queries, and {} to {} % with 100"
    assert said.format(*ends) in " ".join(GUIDE.read_text("utf-8").split())
    for row in (MEASURED[world, n] for world in PROMISED for n in JUDGED):
        assert 0.935 <= row["held_even"] <= 0.965
        assert row["held"] >= row["held_even"]


def test_where_scatter_is_not_even_the_formula_for_it_was_too_short():
    """Why the error has three parts."""
    held = {world: MEASURED[world, 25]["held_even"] for world in UNEVEN}
    assert max(held.values()) < 0.92
    of = [f"{100 * held[world]:.0f}" for world in ("unequal noise", "curve", "kin on lost queries")]
    assert "its intervals contain the truth in {}, {} and {} %".format(*of) in " ".join(
        GUIDE.read_text("utf-8").split()
    )


def test_near_a_ceiling_intervals_hold_more_often_than_those_of_people():
    """As the guide says; with 10 and 25 queries they do not hold in 95 %."""
    at = [MEASURED[world, 25] for world in CEILINGS]
    ours, people = (
        [f"{100 * end(row[key] for row in at):.0f}" for end in (min, max)] for key in ("held", "held_people")
    )
    said = f"contain the truth in {' to '.join(ours)} % of the trials, and people's own in {' to '.join(people)} %"
    assert said in " ".join(GUIDE.read_text("utf-8").split())
    assert f"(there people alone in {' to '.join(people)} %, so they are no better)" in FEW_NOTE
    for row in (of for of in MEASURED.values() if of["world"] in CEILINGS):
        assert row["held"] > max(row["held_people"], row["held_advised"])


def test_the_note_on_few_queries_has_the_figures_of_the_guides_table():
    of = {n: [round(100 * MEASURED[world, n]["held"]) for world in TOLD] for n in (10, 25)}
    said = "covered the value in {} to {} % of trials with 10 queries, in {} to {} % with 25"
    assert said.format(*(end(of[n]) for n in of for end in (min, max))) in FEW_NOTE
    least = min(TOLD, key=lambda world: MEASURED[world, 25]["held"])
    assert least in CEILINGS


def test_who_takes_people_alone_where_the_note_says_so_loses_little():
    """As the guide says: where people's own intervals are too short, these are; elsewhere they hold in 92 %."""
    of = {n: {world: MEASURED[world, n]["held_advised"] for world in TOLD} for n in (25, 50)}
    for n, rates in of.items():
        few = {world for world in TOLD if MEASURED[world, n]["held_people"] < 0.93 or world == "ceiling"}
        assert min(rate for world, rate in rates.items() if world not in few) >= 0.92
    assert min(of[25], key=of[25].get) == min(of[50], key=of[50].get) == "curve"
    worst = [f"{100 * of[n]['curve']:.0f}" for n in of]
    people = " and ".join(f"{100 * MEASURED['curve', n]['held_people']:.0f}" for n in of)
    assert (
        f"{worst[0]} % of the trials with 25 queries and in {worst[1]} % with 50 (people alone: {people} %)"
        in " ".join(GUIDE.read_text("utf-8").split())
    )


def test_a_judge_who_favours_its_kin_makes_no_false_claims():
    """At most 6 % of the trials, where the machine alone claims a difference in all."""
    for n in JUDGED:
        row = MEASURED["judge favours its kin", n]
        assert row["truth"] == 0
        assert row["claimed"] <= 0.06
        assert row["claimed_machine"] >= 0.995


def test_the_printed_gain_is_the_ratio_of_variances():
    """Its median is below it, since the error is cautious: .83 to 1 of it with 25 queries, .92 to 1 with 50."""
    for n, least in ((25, 0.83), (50, 0.915), (100, 0.95)):
        ratios = [MEASURED[world, n]["gain_median"] / MEASURED[world, n]["variance_ratio"] for world in PROMISED]
        assert least <= min(ratios) <= max(ratios) <= 1


def test_samples_that_were_drawn_are_seldom_noted():
    """The Kolmogorov-Smirnov note comes in about 1 % of the trials."""
    assert max(row["alarm"] for row in MEASURED.values()) <= 0.02


def test_the_intervals_of_ppi_are_shorter_and_hold_less_often():
    for world in PROMISED:
        held = [MEASURED[world, n]["held_ppi"] for n in JUDGED[:3]]
        assert held == sorted(held)
        assert 0.84 <= held[0] < 0.90
        assert 0.90 <= held[1] < held[2] < 0.945


def check_now(name, world, n, trials=1000):
    """Assert that the code now has the figures of the file within four standard errors of the difference."""
    known = MEASURED[name, n]
    found = measured(name, world, n, trials, 2)
    for rate in ("held", "claimed"):
        error = np.sqrt(max(known[rate] * (1 - known[rate]), 1e-3) * (1 / trials + 1 / TRIALS))
        assert found[rate] == pytest.approx(known[rate], abs=4 * error)
    assert found["gain_median"] == pytest.approx(known["gain_median"], rel=0.05)
    assert (found["truth"], found["correlation"]) == (known["truth"], known["correlation"])


@pytest.mark.parametrize("name", ["mean, strong judge", "judge favours its kin", "unequal noise"])
def test_the_code_holds_as_often_as_was_measured(name):
    check_now(name, simulated()[name], 25)


@pytest.mark.world
def test_the_code_holds_in_all_simulated_worlds_as_often_as_was_measured():
    """With as many trials as the file, of another seed; on the collections by the test below."""
    for name, world in simulated().items():
        for n in JUDGED:
            check_now(name, world, n, TRIALS)


@pytest.mark.shared
def test_the_code_holds_on_rag25_as_often_as_was_measured(shared):
    check_now("RAG25 nDCG@10, difference", of_rag25(shared)["RAG25 nDCG@10, difference"], 25)


def test_trials_are_what_calibrate_computes():
    """The means and differences of some trials, as columns, are those of `calibrate`."""
    for name in ("mean, strong judge", "difference"):
        world = simulated()[name]
        drawn = np.random.default_rng(5).integers(len(world.human), size=(world.n_machine, 4))
        human, machine = world.columns
        expected = two_phase(human[drawn[:25]], machine[drawn[:25]], machine[drawn])
        for trial, queries in enumerate(drawn.T):
            by = {
                judge: {str(k): pd.DataFrame({"AP": scores[rows, k]}) for k in range(scores.shape[1])}
                for judge, scores, rows in (("human", world.human, queries[:25]), ("machine", world.machine, queries))
            }
            row = calibrate(**by).table.iloc[0]
            names = ["estimate", "std_error", "gain", "correlation"]
            assert row[names].tolist() == pytest.approx(expected.loc[trial, names].tolist(), rel=1e-12)


def test_a_plan_has_the_widths_that_were_measured():
    """Within 3 queries of 10 to 50 and 5 of 100, if the pilot is so large that its spreads are nearly the true ones."""
    for name in ("mean, strong judge", "difference"):
        human, machine = (pd.DataFrame({"AP": scores[:5000]}) for scores in simulated()[name].columns)
        pilot = calibrate({"s": human}, {"s": machine})
        for n in JUDGED:
            planned = plan(pilot, width=MEASURED[name, n]["width"], n_machine=500).table
            assert planned["n_human"][0] == pytest.approx(n, abs=3 if n < 100 else 5)


def test_the_guide_has_the_measured_figures():
    text = GUIDE.read_text("utf-8")
    assert text == filled(text, block(), COMMENTS), "run: python tests/calibration/measure_machine.py"
