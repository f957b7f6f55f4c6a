"""Collections of positives only are recognised, and others are not taken for them, as often as the guide says.

`positive_rates.json` is held against the promises; tests/guard_cases/test_positives_only.py holds the code against
them, on other seeds.
"""

from __future__ import annotations

from calibration.guard_tables import filled
from calibration.measure_positives import COMMENTS, GUIDE, OTHERS, SEEDS, WORLDS, block, figures

FIGURES = figures()
MAY_PASS = ("new ids, among others",)


def test_the_file_is_of_every_world_and_all_other_data():
    for found in FIGURES.values():
        assert {row["world"] for row in found["recognised"]} == set(WORLDS)
        assert {row["n"] for row in found["recognised"]} == {SEEDS}
        assert {row["kind"]: row["n"] for row in found["mistaken"]} == {kind: n for kind, (_, n, _) in OTHERS.items()}


def test_every_collection_is_recognised_in_part_and_among_others():
    missed = [row for row in FIGURES["now"]["recognised"] if row["refused"] < SEEDS and row["change"] not in MAY_PASS]
    assert missed == []


def test_no_other_data_is_refused():
    assert [row for row in FIGURES["now"]["mistaken"] if row["refused"]] == []


def test_the_guide_has_the_measured_figures():
    text = GUIDE.read_text("utf-8")
    assert text == filled(text, block(), COMMENTS), "run: python tests/calibration/measure_positives.py"
