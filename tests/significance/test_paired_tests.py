"""The tests without resampling equal SciPy, and say what they cannot know."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from scipy import stats

from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance import RESAMPLING_TESTS, TESTS, paired_test, smallest_p_value
from rankeval.significance.effects import outcomes, standardised_effect
from rankeval.significance.paired import differences, paired_t, sign, wilcoxon

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("n", [2, 3, 10, 50, 1000])
def test_t_equals_scipy(n, alternative):
    """P-value and interval of the paired t are SciPy's to 1e-12, all columns at once."""
    a, b = RNG.random((2, n, 4))
    ours = paired_t(a - b, alternative=alternative, confidence_level=0.9)
    theirs = stats.ttest_rel(a, b, alternative=alternative)
    np.testing.assert_allclose(ours.p_value, theirs.pvalue, rtol=0, atol=1e-12)
    interval = theirs.confidence_interval(0.9)
    np.testing.assert_allclose(ours.ci_low, interval.low, rtol=0, atol=1e-11)
    np.testing.assert_allclose(ours.ci_high, interval.high, rtol=0, atol=1e-11)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_wilcoxon_and_sign_equal_scipy(alternative):
    """With and without zeros and ties, few queries and many."""
    for d in (RNG.normal(size=12), RNG.normal(size=80), np.round(RNG.normal(size=40), 1), np.round(RNG.normal(size=9))):
        changed = d[d != 0]
        flips = stats.PermutationMethod(n_resamples=np.inf)
        method = "exact" if len(set(np.abs(changed))) == len(changed) <= 25 else "approx"
        method = flips if len(changed) < 10 else method
        expected = stats.wilcoxon(changed, method=method, alternative=alternative).pvalue
        assert wilcoxon(d, alternative=alternative).p_value == pytest.approx(expected, abs=1e-12)
        wins = int((d > 0).sum())
        expected = stats.binomtest(wins, len(changed), alternative=alternative).pvalue
        assert sign(d, alternative=alternative).p_value == pytest.approx(min(expected, 1.0), abs=1e-12)


def test_wilcoxon_and_sign_say_what_they_test():
    """The note that it is not the mean is in the result object."""
    d = RNG.normal(size=30)
    assert "symmetry" in wilcoxon(d).notes[0]
    assert "not of the mean" in wilcoxon(d).notes[0]
    assert "median" in sign(d).notes[0]


@pytest.mark.parametrize("name", TESTS)
def test_equal_systems_have_p_one(name):
    """All differences zero: p is 1 and the interval is the point 0, by every test."""
    result = paired_test(name, np.zeros((20, 2)), n_resamples=99, rng=0)
    assert result.p_value.tolist() == [1.0, 1.0]
    assert result.ci_low.tolist() == result.ci_high.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_constant_difference_gets_the_p_value_of_the_sign_flips(name, alternative):
    """SciPy's t says 8e-33 for three queries; ours 2 in 2^n, as every exact test says."""
    d = differences([0.5, 0.6, 0.7], [0.25, 0.35, 0.45])
    result = paired_test(name, d, alternative=alternative, n_resamples=999, rng=0)
    assert result.p_value == pytest.approx({"two-sided": 0.25, "greater": 0.125, "less": 1.0}[alternative])
    if name in ("t", "bootstrap", "bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"):
        assert "same number on every query" in result.notes[0]


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize(
    ("d", "message"),
    [
        ([0.5], "at least 2 queries, found 1"),
        ([], "at least 2 queries, found 0"),
        ([0.1, np.nan, 0.2], "found 1 that are NaN"),
        ([0.1, np.inf], "finite"),
        (np.zeros((2, 2, 2)), "shape"),
    ],
)
def test_bad_differences_are_refused(name, d, message):
    with pytest.raises(InvalidInput, match=message):
        paired_test(name, d)


def test_unknown_names_are_refused_with_the_near_misses():
    with pytest.raises(UnknownName, match="randomization"):
        paired_test("randomisation", [1.0, 2.0])
    with pytest.raises(UnknownName, match="greater"):
        paired_t([1.0, 2.0], alternative="greatr")


def test_float_noise_is_a_tie():
    """0.1 + 0.2 against 0.3 is neither a win nor a loss; a real difference of 1e-9 is one."""
    assert differences([0.1 + 0.2, 0.5 + 1e-9], [0.3, 0.5]).tolist() == [0.0, pytest.approx(1e-9)]


@pytest.mark.parametrize("name", TESTS)
def test_the_smallest_p_value_is_a_floor_that_is_reached(name):
    """No differences give less; where the floor is positive, overwhelming evidence gives just that."""
    for n in (8, 30):
        d = 1 + RNG.random(n) * 1e-3
        floor = smallest_p_value(name, n, n_resamples=99)
        p_value = paired_test(name, d, n_resamples=99, rng=0).p_value
        assert p_value >= floor * (1 - 1e-12)
        # Wilcoxon's normal approximation, beyond 25 queries, has no floor that it reaches.
        if floor > 0 and name in RESAMPLING_TESTS | {"sign"} and name != "bootstrap":
            assert p_value == pytest.approx(floor)


@pytest.mark.shared
@pytest.mark.parametrize("collection", ["cranfield", "trec_covid_r5"])
def test_golden_values_of_scipy(shared, collection):
    """On all pairs of real runs in golden/stats: t, its interval, Wilcoxon, sign and effect to 1e-12."""
    golden = json.loads((shared / "golden" / "stats" / f"{collection}.json").read_text())
    runs = {}
    for key, expected in golden["pairs"].items():
        first, second, measure = key.split("|")
        for run in (first, second):
            if run not in runs:
                path = shared / "golden" / "perquery_full_precision" / collection / f"{run}.json.gz"
                runs[run] = json.loads(gzip.decompress(path.read_bytes()))
        d = _golden_differences(runs[first], runs[second], measure)
        result = paired_t(d)
        assert result.p_value == pytest.approx(expected["ttest_rel"]["pvalue"], abs=1e-12)
        assert [result.ci_low, result.ci_high] == pytest.approx(expected["ttest_rel"]["ci95"], abs=1e-12)
        for side in ("greater", "less"):
            assert paired_t(d, alternative=side).p_value == pytest.approx(expected[f"ttest_rel_{side}"], abs=1e-12)
        if np.count_nonzero(d) > 25:  # below, ours is exact and the golden value an approximation
            assert wilcoxon(d).p_value == pytest.approx(expected["wilcoxon_wilcox_approx"]["pvalue"], abs=1e-12)
        assert sign(d).p_value == pytest.approx(expected["sign_test"]["pvalue"], abs=1e-12)
        counts = outcomes(d)
        wtl = [expected["sign_test"][part] for part in ("wins", "ties", "losses")]
        assert [counts.wins, counts.ties, counts.losses] == wtl
        assert standardised_effect(d) == pytest.approx(expected["cohens_d_paired"], abs=1e-12)


def _golden_differences(first, second, measure):
    queries = sorted(first.get("topics", first))
    assert queries == sorted(second.get("topics", second))
    a, b = (np.array([run.get("topics", run)[q][measure] for q in queries]) for run in (first, second))
    return differences(a, b)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["t", "randomization", "wilcoxon"])
def test_golden_degenerate_input(shared, name):
    """Where SciPy has nan, infinity or a p of 8e-33, ours is 1, the sign flips' p, or an error; else they are equal."""
    cases = json.loads((shared / "golden" / "stats" / "degenerate.json").read_text())["cases"]
    scipys = {"t": "ttest_rel", "randomization": "permutation", "wilcoxon": "wilcoxon"}[name]
    for case, entry in cases.items():
        d = differences([float(value) for value in entry["x"]], [float(value) for value in entry["y"]])
        if case in ("one_topic", "has_nan", "empty"):
            with pytest.raises(InvalidInput):
                paired_test(name, d)
            continue
        constant = case.startswith("constant") or case == "identical"
        expected = entry["permutation"]["pvalue"] if constant else entry[scipys]["pvalue"]
        assert paired_test(name, d).p_value == pytest.approx(expected, abs=1e-12)
