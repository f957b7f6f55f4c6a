"""The tests without resampling equal SciPy, and say what they cannot know."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from scipy import stats
from tables import each_row

from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance import CORRECTIONS, TESTS, paired_test
from rankeval.significance.columns import differences
from rankeval.significance.declarations import Settings
from rankeval.significance.effects import outcomes, standardised_effect

RNG = np.random.default_rng(7)
SIDES = ["two-sided", "greater", "less"]


@each_row("alternative", ["two-sided", "greater", "less"])
@each_row("n", [2, 3, 10, 50, 1000])
def test_t_equals_scipy(n, alternative):
    """P-value and interval of the paired t are SciPy's to 1e-12, all columns at once."""
    a, b = RNG.random((2, n, 4))
    ours = paired_test("t", a - b, alternative=alternative, alpha=0.1)
    theirs = stats.ttest_rel(a, b, alternative=alternative)
    np.testing.assert_allclose(ours.p_value, theirs.pvalue, rtol=0, atol=1e-12)
    interval = theirs.confidence_interval(0.9)
    np.testing.assert_allclose(ours.ci_low, interval.low, rtol=0, atol=1e-11)
    np.testing.assert_allclose(ours.ci_high, interval.high, rtol=0, atol=1e-11)


@each_row("alternative", ["two-sided", "greater", "less"])
def test_wilcoxon_and_sign_equal_scipy(alternative):
    """With and without zeros and ties, few queries and many."""
    for d in (RNG.normal(size=12), RNG.normal(size=80), np.round(RNG.normal(size=40), 1), np.round(RNG.normal(size=9))):
        changed = d[d != 0]
        flips = stats.PermutationMethod(n_resamples=np.inf)
        method = "exact" if len(set(np.abs(changed))) == len(changed) <= 25 else "approx"
        method = flips if len(changed) < 10 else method
        expected = stats.wilcoxon(changed, method=method, alternative=alternative).pvalue
        assert paired_test("wilcoxon", d, alternative=alternative).p_value == pytest.approx(expected, abs=1e-12)
        wins = int((d > 0).sum())
        expected = stats.binomtest(wins, len(changed), alternative=alternative).pvalue
        assert paired_test("sign", d, alternative=alternative).p_value == pytest.approx(min(expected, 1.0), abs=1e-12)


def test_wilcoxon_and_sign_say_what_they_test():
    """The note that it is not the mean is in the result object."""
    d = RNG.normal(size=30)
    assert "symmetry" in paired_test("wilcoxon", d).notes[0]
    assert "not of the mean" in paired_test("wilcoxon", d).notes[0]
    assert "median" in paired_test("sign", d).notes[0]


@each_row("name", TESTS)
@each_row("alternative", ["two-sided", "greater", "less"])
def test_constant_difference_gets_the_p_value_of_the_sign_flips(name, alternative):
    """SciPy's t says 8e-33 for three queries; ours 2 in 2^n, as every exact test says."""
    d = differences([0.5, 0.6, 0.7], [0.25, 0.35, 0.45])
    result = paired_test(name, d, alternative=alternative, n_resamples=999, rng=0)
    assert result.p_value == pytest.approx({"two-sided": 0.25, "greater": 0.125, "less": 1.0}[alternative])
    if name in ("t", "bootstrap", "bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"):
        assert "same number on every query" in result.notes[0]


def test_unknown_names_are_refused_with_the_near_misses():
    with pytest.raises(UnknownName, match="randomization"):
        paired_test("randomisation", [1.0, 2.0])
    with pytest.raises(UnknownName, match="greater"):
        paired_test("t", [1.0, 2.0], alternative="greatr")


def test_float_noise_is_a_tie():
    """0.1 + 0.2 against 0.3 is neither a win nor a loss; a real difference of 1e-9 is one."""
    assert differences([0.1 + 0.2, 0.5 + 1e-9], [0.3, 0.5]).tolist() == [0.0, pytest.approx(1e-9)]


@each_row("name", TESTS)
def test_the_smallest_p_value_is_a_floor_that_is_reached(name):
    """Where the floor is positive, overwhelming evidence gives just that; a law holds that nothing gives less."""
    for n in (8, 30):
        d = 1 + RNG.random(n) * 1e-3
        floor = TESTS[name].floor(n, Settings(n_resamples=99))
        p_value = paired_test(name, d, n_resamples=99, rng=0).p_value
        # Wilcoxon's normal approximation, beyond 25 queries, has no floor that it reaches.
        if floor > 0 and (TESTS[name].resamples or name == "sign") and name != "bootstrap":
            assert p_value == pytest.approx(floor)


@pytest.mark.shared
@each_row("collection", ["cranfield", "trec_covid_r5"])
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
        result = paired_test("t", d)
        assert result.p_value == pytest.approx(expected["ttest_rel"]["pvalue"], abs=1e-12)
        assert [result.ci_low, result.ci_high] == pytest.approx(expected["ttest_rel"]["ci95"], abs=1e-12)
        for side in ("greater", "less"):
            assert paired_test("t", d, alternative=side).p_value == pytest.approx(
                expected[f"ttest_rel_{side}"], abs=1e-12
            )
        if np.count_nonzero(d) > 25:  # below, ours is exact and the golden value an approximation
            assert paired_test("wilcoxon", d).p_value == pytest.approx(
                expected["wilcoxon_wilcox_approx"]["pvalue"], abs=1e-12
            )
        assert paired_test("sign", d).p_value == pytest.approx(expected["sign_test"]["pvalue"], abs=1e-12)
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
@each_row("name", ["t", "randomization", "wilcoxon"])
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


@each_row("alternative", ["two-sided", "greater", "less"])
@each_row("n", [24, 25, 26])
def test_wilcoxon_is_exact_up_to_25_differences(n, alternative):
    """Beyond, it is the normal approximation without correction; zeros do not count towards the 25."""
    d = np.append(np.random.default_rng(n).normal(0.4, 1, size=n), [0.0, 0.0])
    method = "exact" if n <= 25 else "approx"
    found = paired_test("wilcoxon", d, alternative=alternative).p_value
    assert found == pytest.approx(stats.wilcoxon(d[:n], method=method, alternative=alternative).pvalue, rel=1e-12)
    other = "approx" if n <= 25 else "exact"
    assert abs(found - stats.wilcoxon(d[:n], method=other, alternative=alternative).pvalue) > 1e-6


@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("kind", [pytest.param("continuous", marks=pytest.mark.rest), "tenths"])
def test_pratts_zeros_equal_scipy(alternative, kind):
    """By SciPy's approximation beyond 25 differences, and by its count of all patterns for few, zeros and ties too."""
    rng = np.random.default_rng(5)
    for n in (6, 9, 40):
        d = rng.normal(0.4, 1, n) if kind == "continuous" else rng.integers(1, 5, n) * rng.choice([-0.5, 0.5], n)
        d = np.append(d, [0.0, 0.0, 0.0])
        method = stats.PermutationMethod(n_resamples=np.inf) if n < 10 else "approx"
        expected = stats.wilcoxon(d, zero_method="pratt", method=method, alternative=alternative).pvalue
        found = paired_test("wilcoxon_pratt", d, alternative=alternative).p_value
        assert found == pytest.approx(min(expected, 1), rel=1e-9)
    assert paired_test("wilcoxon_pratt", np.zeros(5)).p_value == 1


def test_wilcoxon_of_tied_ranks_counts_patterns():
    """Ranks 1.5, 1.5, 3: of the eight sums 0 to 6, the observed 4.5 and those beyond it."""
    assert paired_test("wilcoxon", [0.1, 0.1, 0.2]).p_value == 0.25
    assert paired_test("wilcoxon", [0.1, -0.1, 0.2], alternative="greater").p_value == 3 / 8
    assert paired_test("wilcoxon", [0.1, -0.1, 0.2], alternative="less").p_value == 7 / 8
    assert paired_test("wilcoxon", [0.1, -0.1, 0.2]).p_value == 0.75
    d = differences([0.3, 0.1], [0.2, 0.2])
    assert -d[1] > d[0], "0.3 - 0.2 is not quite 0.2 - 0.1"
    assert paired_test("wilcoxon", d, alternative="less").p_value == 0.75, "and ties with it all the same"


@each_row(("n", "exact"), [(16, True), (17, False)])
def test_sign_flips_are_counted_out_up_to_sixteen_queries(n, exact):
    """Which is what the floor of p-values and the need of a seed say too."""
    for declared in (TESTS["randomization"], CORRECTIONS["max_t"]):
        assert declared.is_random(n) != exact
        floors = [declared.floor(n, Settings(side, n_resamples=99)) for side in ("two-sided", "greater")]
        assert floors == ([2 * 0.5**n, 0.5**n] if exact else [0.01, 0.01])
    d = 1 + np.arange(n) / 100
    two_sided, greater = (
        paired_test("randomization", d, alternative=side, n_resamples=99, rng=0) for side in SIDES[:2]
    )
    assert (two_sided.p_value, greater.p_value) == ((2 * 0.5**n, 0.5**n) if exact else (0.01, 0.01))
    for name in ("bootstrap", "bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"):
        assert TESTS[name].is_random(n)
    assert CORRECTIONS["tukey"].is_random(n)
    for name in ("t", "wilcoxon", "sign"):
        assert not TESTS[name].is_random(n)


@each_row(
    ("name", "two_sided", "greater"),
    [
        ("t", 0.0, 0.0),
        ("bootstrap_bca", 0.0, 0.0),
        ("sign", 2 / 1024, 1 / 1024),
        ("wilcoxon", 2 / 1024, 1 / 1024),
        ("bootstrap", 0.01, 0.005),
        ("bootstrap_shift", 0.01, 0.01),
        ("bootstrap_percentile", 0.02, 0.01),
        ("tukey", 0.01, 0.01),
    ],
)
def test_the_floors_of_p_values(name, two_sided, greater):
    """Of ten queries and 99 resamples."""
    floor = (TESTS | CORRECTIONS)[name].floor
    assert floor(10, Settings(n_resamples=99)) == pytest.approx(two_sided)
    assert floor(10, Settings("greater", n_resamples=99)) == pytest.approx(greater)


def test_differences_leave_the_scores_as_they_are_and_see_small_ones():
    """A tie is relative to the larger score: 1e-13 beside 1 is rounding, 1e-13 beside 0 is a score."""
    one, two = np.array([1.0, 1e-13, 0.5, 1e6]), np.array([1.0 + 1e-13, 0.0, 0.5, 1e6 + 1e-7])
    assert (differences(one, two) != 0).tolist() == [False, True, False, False]
    assert (differences(two, one) != 0).tolist() == [False, True, False, False]
    assert differences([1.0], [1.0 + 3e-12]) != 0
    assert one.tolist() == [1.0, 1e-13, 0.5, 1e6]


@each_row("name", ["t", "bootstrap", "bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"])
def test_a_constant_column_is_told_apart_from_its_neighbours(name):
    """The note counts the columns; a constant difference tells no interval."""
    varied = RNG.normal(size=12)
    d = np.column_stack([np.full(12, 0.25), varied, np.full(12, -0.5), np.zeros(12)])
    result = paired_test(name, d, n_resamples=499, rng=0)
    assert result.p_value[[0, 2, 3]].tolist() == [2 / 4096, 2 / 4096, 1.0]
    alone = paired_test(name, varied, n_resamples=499, rng=0)
    assert result.p_value[1] == pytest.approx(alone.p_value, rel=1e-12)  # NumPy sums a single column in another order
    assert "2 of the differences tested: the same number on every query" in result.notes[0]
    assert np.isneginf(result.ci_low).tolist() == np.isposinf(result.ci_high).tolist() == [True, False, True, True]
    greater = paired_test(name, d, alternative="greater", n_resamples=499, rng=0)
    assert greater.p_value[[0, 2, 3]].tolist() == [1 / 4096, 1.0, 1.0]
    less = paired_test(name, d, alternative="less", n_resamples=499, rng=0)
    assert less.p_value[[0, 2, 3]].tolist() == [1.0, 1 / 4096, 1.0]


def test_no_p_value_underflows_to_zero():
    """A constant difference of 2,000 queries: 2 in 2^2000 is not zero, but no float either."""
    assert paired_test("t", np.ones(2000)).p_value == np.finfo(float).tiny
    assert paired_test("sign", np.ones(2000)).p_value > 0
