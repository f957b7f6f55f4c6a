"""Judges who share errors are noted, independent ones seldom, and a rare grade makes intervals of agreement too short.

`judge_rates.json` is held against the promises, and the code as it is now against the file: by some trials of another
seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from calibration.guard_tables import filled
from calibration.measure_judges import (
    ALIKE,
    APART,
    COMMENTS,
    DOCUMENTS,
    GUIDE,
    OF_TOPIC,
    PREVALENCES,
    RARE_TRIALS,
    TOPICS,
    TRIALS,
    block,
    coefficients,
    covered,
    noted,
    rates,
)

from rankeval.judging import agreement, consensus
from rankeval.judging.agreeing import RARE, RARE_NOTE

PANELS = {(row["panel"], row["documents"]): row for row in rates()["panels"]}
RARE_ROWS = {(row["prevalence"], row["topics"], row["of_topic"]): row for row in rates()["rare"]}
LOOKS_ALIKE = "one expert"


def test_the_file_is_of_every_panel_and_of_every_prevalence():
    assert set(PANELS) == {(name, n) for name in ALIKE | APART for n in DOCUMENTS}
    assert {row["trials"] for row in PANELS.values()} == {TRIALS}
    assert set(RARE_ROWS) == {(share, n, of) for share in PREVALENCES for n in TOPICS for of in OF_TOPIC}
    assert {row["trials"] for row in RARE_ROWS.values()} == {RARE_TRIALS}


def test_judges_who_share_errors_are_noted_with_400_documents():
    """In nine of ten trials or more, two twins and a person in 97 %: there the majority is worse than the person."""
    assert {name: PANELS[name, 400]["noted"] for name in ALIKE if PANELS[name, 400]["noted"] < 0.9} == {}
    twins = PANELS["twins", 400]
    assert twins["named"] >= 0.96
    assert twins["majority"] < twins["best"] - 0.05


def test_independent_judges_are_seldom_noted():
    """In 5 % of the trials at most, whatever their quality; of three, if none errs over three times as often."""
    found = {row: of["noted"] for row, of in PANELS.items() if row[0] in APART}
    assert {row[0] for row, share in found.items() if share > 0.05} == {LOOKS_ALIKE}
    most = max(share for row, share in found.items() if row[0] != LOOKS_ALIKE)
    assert f"somebody was named in {100 * most:.1f} % at most" in " ".join(consensus.__doc__.split())


def test_of_three_judges_two_experts_look_as_twins_do():
    """Labels cannot tell the two worlds, and the note says so."""
    for n in DOCUMENTS:
        assert PANELS[LOOKS_ALIKE, n]["noted"] == pytest.approx(PANELS["twins", n]["noted"], abs=0.05)


@pytest.mark.parametrize("name", ["twins", "three times", "four, two experts"])
def test_the_code_notes_as_often_as_was_measured(name):
    known, trials = PANELS[name, 400]["noted"], 150
    found = noted(name, 400, trials)["noted"]
    assert found == pytest.approx(known, abs=4 * np.sqrt(max(known * (1 - known), 0.01) / trials))


def test_a_rare_grade_makes_intervals_of_kappa_too_short():
    """As the docstring of `agreement` says; those of observed agreement and of AC1 hold."""
    share = {row: {name: n / RARE_TRIALS for name, n in of["covered"].items()} for row, of in RARE_ROWS.items()}
    rare = {n: [one for row, one in share.items() if row[0] < 0.3 and row[1] == n] for n in TOPICS}
    kappas = ("cohen_kappa", "krippendorff_alpha")
    ends = [f"{end(one[name] for one in rare[n] for name in kappas):.2f}"[1:] for n in TOPICS for end in (min, max)]
    said = "cover it in {} to {} of simulations with 10 topics, {} to {} with 25 and {} to {} with 50".format(*ends)
    text = " ".join(agreement.__doc__.split())
    assert said in text
    common = [one[name] for row, one in share.items() if row[0] == 0.3 for name in kappas]
    assert f"with 30 %, in {min(common):.2f} to {max(common):.2f}.".replace("0.", ".") in text
    others = [one[name] for one in share.values() for name in ("observed", "ac1")]
    assert f"AC1 cover it in {min(others):.2f} to {max(others):.2f}.".replace("0.", ".") in text


def test_the_note_has_the_coverage_of_few_labels_of_rare_grades():
    """With 30 labels or more it is .88 at the least, and .93 on average."""
    few = [of["covered_few"] / of["few"] for of in RARE_ROWS.values() if of["few"]]
    assert f"fewer than {RARE}," in RARE_NOTE
    assert f"in {100 * min(few):.0f} to {100 * max(few):.0f} % of trials" in RARE_NOTE
    enough = {
        row: (of["covered"]["cohen_kappa"] - of["covered_few"]) / (RARE_TRIALS - of["few"])
        for row, of in RARE_ROWS.items()
    }
    assert min(enough.values()) > 0.88
    assert np.mean(list(enough.values())) > 0.93


def test_the_code_covers_as_often_as_was_measured():
    known = RARE_ROWS[0.05, 10, 20]
    found = covered(0.05, 10, 20, 500)["covered"]
    for name, number in found.items():
        assert number / 500 == pytest.approx(known["covered"][name] / RARE_TRIALS, abs=0.05)


def test_a_trial_is_agreement():
    """The coefficients of a table of two judges are those of `agreement`."""
    tables = np.array([[40, 5], [3, 12]]), np.array([[50, 2], [6, 2]])
    judges = [{}, {}]
    for topic, of in enumerate(tables):
        for place, (one, other) in enumerate(np.repeat(list(np.ndindex(2, 2)), of.ravel(), axis=0).tolist()):
            for labels, grade in zip(judges, (one, other), strict=True):
                labels.setdefault(f"q{topic}", {})[f"d{place}"] = grade
    found = agreement(*judges)
    names = ("observed", "cohen_kappa", "krippendorff_alpha", "ac1")
    assert [found[name] for name in names] == pytest.approx(coefficients(sum(tables)).tolist(), abs=1e-12)


def test_the_guide_has_the_measured_figures():
    text = Path(GUIDE).read_text("utf-8")
    assert text == filled(text, block(), COMMENTS), "run: python tests/calibration/measure_judges.py"
