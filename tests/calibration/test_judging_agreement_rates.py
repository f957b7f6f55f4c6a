"""Intervals of agreement cover the true value as often as promised, and a consensus is right as often as it says.

`judging_agreement_rates.json` is held against the promises, and the code as it is now against the file: with a few
trials of another seed, or in the worlds of the full circle by as many as the file has.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calibration.measure_judging_agreement import LEVEL, SIZES, UNITS, Population, coefficients, crowd, rates, simulated

from rankeval.judging import agreement
from rankeval.judging.agreeing import WORDS

GUIDES = Path(__file__).parents[2] / "examples" / "guides"
RATES = rates()
MEASURED = {(row["topics"], row["unit"], row["coefficient"]): row for row in RATES["coverage"]}
LEAST = {10: 0.92, 22: 0.94, 50: 0.94}


def covered(n_topics, unit, name):
    row = MEASURED[n_topics, unit, name]
    return row["covered"] / row["trials"]


def test_the_file_is_of_every_size_unit_and_coefficient():
    assert set(MEASURED) == {(n, unit, name) for n in SIZES for unit in UNITS for name in WORDS}
    assert {(row["unit"], row["trials"]) for row in RATES["coverage"]} == set(UNITS.items())


def test_intervals_by_topics_cover_the_true_value():
    """At a nominal .95: of 10 topics at least .92, of 22 and 50 at least .94, and nowhere above .975."""
    found = {(n, name): covered(n, "topic", name) for n in SIZES for name in WORDS}
    assert {row: rate for row, rate in found.items() if not LEAST[row[0]] <= rate <= 0.975} == {}


def test_intervals_by_documents_would_cover_it_about_half_as_often():
    """Why topics are left out: documents of one topic are judged alike."""
    found = {(n, name): covered(n, "document", name) for n in SIZES for name in WORDS}
    assert {row: rate for row, rate in found.items() if rate >= 0.65} == {}


@pytest.mark.shared
@pytest.mark.parametrize("n_topics", SIZES)
@pytest.mark.parametrize("trials", [300, pytest.param(UNITS["topic"], marks=pytest.mark.world)])
def test_the_code_of_today_covers_as_often_as_the_file_says(n_topics, trials):
    """Within four standard errors."""
    counts = Population.read().covered(n_topics, "topic", 10**6, trials)
    for name, count in zip(WORDS, counts, strict=True):
        expected = covered(n_topics, "topic", name)
        assert count / trials == pytest.approx(expected, abs=4 * (expected * (1 - expected) / trials) ** 0.5)


@pytest.mark.shared
def test_a_trial_is_agreement_on_the_topics_that_it_draws():
    """Values and intervals of ten topics, and the intervals by documents of one."""
    population = Population.read()
    items = population.labels.items.assign(**{str(judge): population.labels.grade[judge::2] for judge in range(2)})
    items["query"] = pd.factorize(items["qid"])[0]
    for topics, unit in ((population.drawn(10, 0, 1)[0], "topic"), (np.array([3]), "document")):
        copies = [items[items["query"] == topic].assign(qid=place) for place, topic in enumerate(topics)]
        drawn = pd.concat(copies).melt(["qid", "docid"], ["0", "1"], "aspect", "relevance")
        found = agreement(drawn, level=LEVEL).table
        assert found["value"].to_numpy() == pytest.approx(coefficients(population.tables[topics].sum(axis=0)))
        low, high = population.intervals(topics[None], unit)
        assert found["ci_low"].to_numpy() == pytest.approx(low[0], rel=1e-6)
        assert found["ci_high"].to_numpy() == pytest.approx(high[0], rel=1e-6)


def test_the_estimate_sees_through_judges_who_answer_the_wrong_way_round():
    """The JSON has the mean over 50 worlds; the first world is drawn again here."""
    assert RATES["simulated"]["majority"] == pytest.approx(0.81, abs=0.02)
    assert RATES["simulated"]["dawid_skene"] >= 0.92
    assert simulated(0) == pytest.approx(RATES["simulated"], abs=0.03)


@pytest.mark.shared
def test_the_crowd_is_right_as_often_as_the_file_says():
    assert crowd() == pytest.approx(RATES["crowd"], abs=2)


def test_the_guides_have_the_measured_figures():
    """Those of Scott's pi in "An LLM as judge", those of a consensus in "Make a test collection"."""
    pi = {unit: [covered(n, unit, "scott_pi") for n in SIZES] for unit in UNITS}
    crowd_right = [RATES["crowd"][name] / RATES["crowd"]["documents"] for name in ("dawid_skene", "majority")]
    simulated_right = [RATES["simulated"][name] for name in ("dawid_skene", "majority")]
    for guide, sentence in (
        ("llm_judge", "in {:.3f}, {:.3f} and {:.3f} of the samples".format(*pi["topic"])),
        ("llm_judge", "in {:.2f}, {:.2f} and {:.2f}.".format(*pi["document"])),
        ("make_collection", "{:.3f} of its labels are right, and {:.3f} of the majority's".format(*crowd_right)),
        ("make_collection", f"of its labels are right, and {simulated_right[1]:.2f} of the majority's"),
    ):
        text = " ".join((GUIDES / f"{guide}.md").read_text(encoding="utf-8").split())
        assert sentence.replace("0.", ".") in text
