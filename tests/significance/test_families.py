"""Which comparisons are corrected together, and what is said where nothing could be significant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tables import each_row

from rankeval.significance import CORRECTIONS, TESTS, Correction, adjust, multiple
from rankeval.significance.catalogue import rates_of
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import max_t, tukey
from rankeval.significance.running import (
    adjust_by_family,
    family_notes,
    few_query_notes,
    resolution_notes,
    run,
    with_family_level,
)

PAIRS = [(0, 1), (0, 2)]
SETTINGS = Settings(n_resamples=199, rng=4)


def columns():
    """Return scores of three systems by three measures, and differences and p-values, a measure's pairs together."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(9, 3, 3)) + np.array([0.0, 0.5, 1.0])[:, None]
    d = np.column_stack([scores[:, j, k] - scores[:, i, k] for k in range(3) for i, j in PAIRS])
    return rng.random(6) / 20, d, scores


@each_row(("size", "families"), [(2, [[0, 1], [2, 3], [4, 5]]), (6, [[0, 1, 2, 3, 4, 5]])])
@each_row("correction", CORRECTIONS)
def test_a_family_is_all_comparisons_or_those_of_a_measure(correction, size, families):
    """Each is adjusted by itself, in the order of the columns; never below the raw p-value."""
    p, d, scores = columns()
    found = run(TESTS["t"], d, with_family_level(SETTINGS, CORRECTIONS[correction], size))
    tested = replace(found, p_value=p)
    expected = []
    for family in families:
        measures = sorted({column // 2 for column in family})
        if correction == "max_t":
            expected += max_t(d[:, family], SETTINGS).tolist()
        elif correction == "tukey":
            joint = tukey(scores[:, :, measures], PAIRS, SETTINGS).p_value
            expected += [joint[pair, k] for k in range(len(measures)) for pair in range(2)]
        else:
            expected += adjust(p[family], correction).tolist()
    found = adjust_by_family(CORRECTIONS[correction], tested, d, scores, PAIRS, size, SETTINGS)
    np.testing.assert_allclose(found.p_value, np.maximum(expected, p), rtol=1e-12)
    ones = replace(tested, p_value=np.ones(6))
    raised = adjust_by_family(CORRECTIONS[correction], ones, d, scores, PAIRS, size, SETTINGS)
    assert raised.p_value.tolist() == [1.0] * 6


def test_what_a_correction_does_not_promise_is_said_of_families_of_two_or_more():
    assert "expected share" in family_notes(TESTS["t"], CORRECTIONS["bh"], 2)[0]
    assert "exchangeable" in family_notes(TESTS["t"], CORRECTIONS["tukey"], 2)[0]
    assert family_notes(TESTS["t"], CORRECTIONS["none"], 3) == ["p-values are not corrected for the 3 comparisons"]
    for correction in ("bh", "tukey", "none"):
        assert family_notes(TESTS["t"], CORRECTIONS[correction], 1) == []
    for correction in ("holm", "bonferroni"):
        assert family_notes(TESTS["t"], CORRECTIONS[correction], 5) == []
    assert family_notes(TESTS["randomization"], CORRECTIONS["max_t"], 5) == []
    (note,) = family_notes(TESTS["t"], CORRECTIONS["max_t"], 5)
    assert note.startswith("adjusted p-values come from the randomisation test (sign flips), joint over the family; ")
    assert note.endswith("raw ones from the paired t test")


@each_row("correction", ["holm", "bonferroni", "max_t"])
@each_row(("n", "measured"), [(5, 10), (10, 10), (12, 10), (24, 10), (25, 25), (49, 25)])
def test_families_on_few_queries_name_the_rates_measured_there(correction, n, measured):
    """The worst of up to 10 comparisons; claims that count an unseen query, and single pairs, are not noted."""
    settings = Settings()
    (note,) = few_query_notes(CORRECTIONS[correction], 3, n, settings)
    rates = rates_of(CORRECTIONS[correction].words)
    rates = rates[(rates["sides"] == "two-sided") & (rates["comparisons"] <= 10)]
    for quantity, extreme in (("false claims", "max"), ("coverage", "min")):
        found = rates["rate"][(rates["quantity"] == quantity) & (rates["n"] == measured)]
        assert f"{100 * found.agg(extreme):.1f} % at {measured} queries" in note
    assert f"at {35 - measured}" not in note, "the rates of another number of queries say nothing here"
    assert f"here {n}" in note
    assert ("none were measured below 10" in note) == (n < 10)
    assert "`best`" in note
    assert few_query_notes(CORRECTIONS[correction], 1, n, settings) == []
    assert few_query_notes(CORRECTIONS[correction], 3, 50, settings) == []
    harmless = Settings(claim="not_worse", margin=0.1, unseen=1)
    assert few_query_notes(CORRECTIONS[correction], 3, n, harmless) == []
    (one_sided,) = few_query_notes(CORRECTIONS[correction], 3, n, Settings("less"))
    assert one_sided != note


def test_a_correction_that_was_not_measured_has_no_rates_of_its_own():
    (note,) = few_query_notes(Correction(function=CORRECTIONS["holm"].function, words="mine"), 3, 12, Settings())
    assert "mine" not in note
    assert "`best`" in note


@each_row(
    ("test", "correction", "size", "n", "n_resamples", "says"),
    [
        ("t", "holm", 1000, 5, 9, None),
        ("randomization", "holm", 10, 50, 1999, None),  # 1/2000 is .05/100
        ("randomization", "holm", 10, 50, 199, None),  # 1/200 is just .05/10
        ("randomization", "holm", 10, 50, 198, "199 resamples or more"),
        ("randomization", "holm", 10, 50, 99, "199 resamples or more"),
        ("randomization", "bh", 10, 50, 19, None),
        ("randomization", "max_t", 10, 50, 19, None),
        ("randomization", "max_t", 10, 50, 18, "19 resamples or more"),
        ("randomization", "none", 10, 6, 9999, None),  # 2/64 is below .05
        ("randomization", "none", 10, 5, 9999, "more queries are needed"),
        ("randomization", "bonferroni", 2, 6, 9999, "more queries are needed"),
        ("t", "tukey", 3, 50, 18, "19 resamples or more"),
        ("t", "max_t", 3, 5, 9999, "more queries are needed"),
        ("sign", "max_t", 3, 5, 9999, "more queries are needed"),
        ("sign", "tukey", 3, 6, 9999, None),
        ("bootstrap_percentile", "holm", 1, 50, 38, "39 resamples or more"),
        ("bootstrap_percentile", "holm", 1, 50, 39, None),
    ],
)
def test_a_family_in_which_nothing_could_be_significant_is_noted(test, correction, size, n, n_resamples, says):
    """The smallest p-value that there is against the level of the hardest comparison, at 5 %."""
    notes = resolution_notes(TESTS[test], CORRECTIONS[correction], size, n, Settings(n_resamples=n_resamples))
    assert (notes == []) == (says is None)
    if says:
        assert notes[0].startswith("nothing can be significant here: the smallest p-value possible is ")
        assert f"the family of {size} asks for " in notes[0]
        assert notes[0].endswith(says)


def test_randomised_tukey_draws_its_tables_once(monkeypatch):
    """P-values and intervals read the same shuffles; they are those that each would find alone."""
    _, d, scores = columns()
    pairs, sizes = [(0, 1), (0, 2), (1, 2)], []
    d = np.column_stack([scores[:, j, k] - scores[:, i, k] for k in range(3) for i, j in pairs])
    correction = CORRECTIONS["tukey"]
    settings = with_family_level(SETTINGS, correction, 9)
    joint = tukey(scores, pairs, settings)
    expected = (each.T.ravel() for each in (joint.p_value, joint.ci_low, joint.ci_high))
    shuffled = multiple._shuffled_means
    monkeypatch.setattr(multiple, "_shuffled_means", lambda *given: sizes.append(1) or shuffled(*given))
    tested = replace(run(TESTS["t"], d, settings), p_value=np.zeros(9))
    found = adjust_by_family(correction, tested, d, scores, pairs, 9, settings)
    assert len(sizes) == 1
    for ours, theirs in zip((found.p_value, found.ci_low, found.ci_high), expected, strict=True):
        assert ours.tolist() == theirs.tolist()
