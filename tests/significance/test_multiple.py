"""Corrections equal statsmodels; joint ones equal brute force; no adjusted p is below its raw one."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from tables import each_row

from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance import CORRECTIONS, adjust, multiple, paired_test
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import _shuffled_means, max_t, max_t_limits
from rankeval.significance.running import family_level

STATSMODELS = {"holm": "holm", "bonferroni": "bonferroni", "bh": "fdr_bh"}
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def tukey(*given):
    return multiple.tukey(*given).p_value


def tukey_limits(*given):
    found = multiple.tukey(*given)
    return found.ci_low, found.ci_high


@pytest.mark.parametrize("method", [*STATSMODELS, "by"])
@given(p=P_VALUES)
def test_corrections_equal_statsmodels(method, p):
    expected = multipletests(p, method={**STATSMODELS, "by": "fdr_by"}[method])[1]
    np.testing.assert_allclose(adjust(p, method), expected, rtol=0, atol=1e-12)


@pytest.mark.shared
@each_row("method", STATSMODELS)
def test_golden_corrections(shared, method):
    """The fixed lists of golden/stats/multipletests.json, and all pairs of real runs, to 1e-12."""
    golden = json.loads((shared / "golden" / "stats" / "multipletests.json").read_text())
    cases = [(case["p"], case[STATSMODELS[method]]["adjusted"]) for case in golden["cases"].values()]
    for collection in ("cranfield", "trec_covid_r5"):
        pairs = json.loads((shared / "golden" / "stats" / f"{collection}.json").read_text())["all_pairs"]
        cases.append((pairs["ttest_rel_pvalues"], pairs["corrections"][STATSMODELS[method]]["adjusted"]))
    for p, expected in cases:
        np.testing.assert_allclose(adjust(p, method), expected, rtol=0, atol=1e-12)


@given(p=P_VALUES)
def test_holm_is_between_the_raw_p_and_bonferroni(p):
    assert (adjust(p, "holm") <= adjust(p, "bonferroni") + 1e-15).all()
    assert (adjust(p, "bh") <= adjust(p, "holm") + 1e-15).all()


def test_bad_p_values_are_refused():
    for p in ([0.1, np.nan], [1.2], [-0.1], [[0.1]]):
        with pytest.raises(InvalidInput, match="p-values in"):
            adjust(p)
    with pytest.raises(UnknownName, match="bonferroni"):
        adjust([0.1], "bonferoni")


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 8), m=st.integers(1, 5))
def test_max_t_equals_brute_force(alternative, seed, n, m):
    """Step-down max-T over all sign patterns with Student's t as the statistic."""
    d = np.random.default_rng(seed).normal(0.3, 1, size=(n, m))

    def statistic(x):
        t = x.mean(axis=0) / x.std(axis=0, ddof=1)
        return {"two-sided": np.abs(t), "greater": t, "less": -t}[alternative]

    observed = statistic(d)
    drawn = np.array([statistic(d * np.array(signs)[:, None]) for signs in itertools.product((1, -1), repeat=n)])
    order, expected, floor = np.argsort(-observed), np.empty(m), 0.0
    for step, j in enumerate(order):
        reached = drawn[:, order[step:]].max(axis=1) >= observed[j] * (1 - np.sign(observed[j]) * 1e-9)
        floor = max(floor, reached.mean())
        expected[j] = floor
    np.testing.assert_allclose(max_t(d, Settings(alternative=alternative)), expected, atol=1e-12)


def test_max_t_of_one_comparison_is_the_sign_flip():
    d = np.random.default_rng(0).normal(0.2, 1, size=(40, 1))
    assert max_t(d, Settings(n_resamples=999, rng=5)) == pytest.approx(
        paired_test("randomization", d, n_resamples=999, rng=5).p_value
    )


def test_max_t_beats_holm_on_near_copies():
    """Twenty variants that agree on every query cost hardly more than one; equal systems get 1."""
    generator = np.random.default_rng(2)
    base = generator.normal(0.45, 1, size=(50, 1))
    d = np.hstack([base + generator.normal(0, 0.05, size=(50, 20)), np.zeros((50, 1))])
    raw = paired_test("randomization", d, n_resamples=9999, rng=1).p_value
    joint = max_t(d, Settings(n_resamples=9999, rng=1))
    assert (joint[:20] < adjust(raw, "holm")[:20]).all()
    assert joint[20] == 1.0
    assert (joint > 0).all()


def test_tukey_equals_brute_force():
    """Against all shuffles of three systems within four queries."""
    scores = np.random.default_rng(3).random((4, 3))
    pairs = [(0, 1), (0, 2), (1, 2)]
    orders = list(itertools.permutations(range(3)))
    ranges = [
        np.ptp(np.array([row[list(order)] for row, order in zip(scores, chosen, strict=True)]).mean(axis=0))
        for chosen in itertools.product(orders, repeat=4)
    ]
    means = scores.mean(axis=0)
    expected = [np.mean(np.array(ranges) >= abs(means[i] - means[j]) - 1e-12) for i, j in pairs]
    found = tukey(scores, pairs, Settings(n_resamples=40_000, rng=0))
    np.testing.assert_allclose(found, expected, atol=4 * 0.5 / np.sqrt(40_000))


def test_tukey_over_measures_is_free_of_their_scale():
    """A measure in percent is the same family member as in shares; equal systems get p = 1."""
    scores = np.random.default_rng(3).random((30, 4, 2))
    scaled = scores * np.array([1.0, 100.0])
    pairs = [(0, 1), (2, 3)]
    assert tukey(scores, pairs, Settings(n_resamples=500, rng=1)) == pytest.approx(
        tukey(scaled, pairs, Settings(n_resamples=500, rng=1))
    )
    assert tukey(np.ones((5, 3)), [(0, 1)], Settings(n_resamples=50, rng=0)).tolist() == [1.0]
    with pytest.raises(InvalidInput, match="2 systems or more"):
        tukey(np.ones((5, 1)), [(0, 0)], Settings())


def all_tables(scores):
    """Return every table that shuffles systems within queries, the observed one among them."""
    n, k = scores.shape[:2]
    orders = list(itertools.permutations(range(k)))
    for chosen in itertools.product(orders, repeat=n):
        yield np.array([row[list(order)] for row, order in zip(scores, chosen, strict=True)])


def test_tukey_of_given_shuffles_is_their_share_with_the_observed_table_added(monkeypatch):
    """All 1,296 shuffles of tenths, so that ranges tie; two measures are held against the larger of their ranges.

    Ranges are in units of the measure's deviation within queries, over all systems.
    """
    scores = np.array(
        [[[1, 2], [3, 9], [2, 5]], [[4, 4], [5, 1], [9, 0]], [[0, 7], [3, 8], [1, 1]], [[2, 6], [2, 3], [7, 3]]]
    )
    scores = scores / 10
    pairs = [(0, 1), (0, 2), (2, 1)]
    tables = np.array([table.mean(axis=0) for table in all_tables(scores)])
    monkeypatch.setattr("rankeval.significance.multiple._shuffled_means", lambda *_: np.array_split(tables_of, 7))
    for measures in ([0], [1], [0, 1]):
        part = scores[:, :, measures]
        units = np.sqrt(np.mean([[query[:, j].var() for j in range(len(measures))] for query in part], axis=0))
        tables_of = (tables[:, :, measures] - part.mean(axis=(0, 1))) / units
        largest = np.ptp(tables[:, :, measures] / units, axis=1).max(axis=1)
        means = part.mean(axis=0) / units
        expected = [
            [(1 + np.sum(largest >= abs(means[i, j] - means[k, j]) - 1e-9)) / 1297 for j in range(len(measures))]
            for i, k in pairs
        ]
        np.testing.assert_allclose(tukey(part, pairs, Settings(n_resamples=1296)), expected, rtol=1e-12)
        if len(measures) == 1:
            found = tukey(part[:, :, 0], pairs, Settings(n_resamples=1296))
            np.testing.assert_allclose(found, np.array(expected)[:, 0], rtol=1e-12)


@each_row("n_resamples", [1, 7, 99, 5000])
def test_tukey_draws_as_many_shuffles_as_asked_for_and_is_never_zero(n_resamples):
    """Overwhelming evidence gives 1 / (B + 1); equal means 1, which needs every draw."""
    clear = np.arange(3.0) + np.random.default_rng(0).random((30, 3)) / 100
    assert tukey(clear, [(0, 2)], Settings(n_resamples=n_resamples, rng=0)).tolist() == [1 / (n_resamples + 1)]
    even = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5]] * 4)
    assert tukey(even, [(0, 1)], Settings(n_resamples=n_resamples, rng=0)).tolist() == [1.0]
    many = np.random.default_rng(0).random((500, 40))
    assert (tukey(many, [(0, 0)], Settings(n_resamples=min(n_resamples, 99), rng=0)) == 1).all()


def test_tukey_shuffles_within_queries_and_all_orders_alike():
    """Means over queries stay in the table; each system stands in each place equally often."""
    blocked = np.random.default_rng(1).random((5, 3, 2))
    drawn = np.concatenate(list(_shuffled_means(blocked, Settings(n_resamples=6000, rng=3))))
    assert drawn.shape == (6000, 3, 2)
    np.testing.assert_allclose(drawn.mean(axis=1), np.broadcast_to(blocked.mean(axis=(0, 1)), (6000, 2)), rtol=1e-12)
    np.testing.assert_allclose(drawn.mean(axis=0), np.broadcast_to(blocked.mean(axis=(0, 1)), (3, 2)), atol=0.01)
    np.testing.assert_allclose(
        drawn.var(axis=0), np.broadcast_to(blocked.var(axis=1).mean(axis=0) / 5, (3, 2)), rtol=0.1
    )


@each_row("n", [4, 40])
def test_joint_corrections_without_resamples_are_refused(n):
    d = np.random.default_rng(0).normal(size=(n, 3))
    for n_resamples in (0, -1):
        with pytest.raises(InvalidInput, match="n_resamples is"):
            max_t(d, Settings(n_resamples=n_resamples))
        with pytest.raises(InvalidInput, match="n_resamples is"):
            tukey(d, [(0, 1)], Settings(n_resamples=n_resamples))
    assert tukey(d, [(0, 1)], Settings(n_resamples=1, rng=0))[0] in (0.5, 1.0)


def test_joint_corrections_refuse_what_is_no_table():
    with pytest.raises(InvalidInput, match="shape"):
        tukey(np.ones(5), [(0, 1)], Settings())
    with pytest.raises(InvalidInput, match="shape"):
        tukey(np.ones((5, 2, 2, 2)), [(0, 1)], Settings())
    with pytest.raises(InvalidInput, match="1 that are NaN"):
        tukey([[1.0, np.nan], [1.0, 2.0]], [(0, 1)], Settings())
    with pytest.raises(InvalidInput, match="at least 2 queries"):
        tukey([[1.0, 2.0]], [(0, 1)], Settings())
    with pytest.raises(UnknownName, match="greater"):
        max_t(np.ones((3, 2)), Settings("more"))


@each_row("alternative", ["two-sided", "greater", "less"])
def test_max_t_of_random_patterns_counts_the_observed_one(alternative):
    """Beyond 16 queries: overwhelming evidence gives 1 / (B + 1), evidence for the other side 1."""
    side = -1 if alternative == "less" else 1
    d = side * np.column_stack([np.linspace(1, 2, 40), np.linspace(1, 3, 40), -np.linspace(1, 2, 40)])
    expected = [0.001, 0.001, 0.001 if alternative == "two-sided" else 1.0]
    assert max_t(d, Settings(alternative=alternative, n_resamples=999, rng=0)).tolist() == expected


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data(), n=st.integers(2, 6), m=st.integers(1, 3))
def test_max_t_counts_ties_in_exact_arithmetic(alternative, data, n, m):
    """Patterns of tenths that reach the observed statistic count, whatever rounding says."""
    tenths = data.draw(st.lists(st.lists(st.integers(-3, 3), min_size=m, max_size=m), min_size=n, max_size=n))
    squares = [sum(row[j] ** 2 for row in tenths) or 1 for j in range(m)]

    def statistic(signs, j):
        """Return the sum over the root of the sum of squares: squared with its sign, a fraction."""
        total = sum(s * row[j] for s, row in zip(signs, tenths, strict=True))
        total = {"two-sided": abs(total), "greater": total, "less": -total}[alternative]
        return Fraction(total * abs(total), squares[j])

    patterns = list(itertools.product((1, -1), repeat=n))
    observed = [statistic((1,) * n, j) for j in range(m)]
    expected = [
        max(
            sum(max(statistic(signs, k) for k in range(m) if observed[k] <= bar) >= bar for signs in patterns)
            for bar in observed
            if bar >= observed[j]
        )
        / 2**n
        for j in range(m)
    ]
    if len(set(observed)) == m:  # of equal statistics the first goes first
        assert max_t(np.array(tenths) / 10, Settings(alternative=alternative)).tolist() == expected


def test_the_level_of_a_family_is_shared_out_by_those_that_control_any_false_claim():
    for method in CORRECTIONS:
        expected = 0.05 if method in ("bh", "by", "none") else 0.01
        assert family_level(0.05, CORRECTIONS[method], 5) == pytest.approx(expected)


def test_p_values_at_the_ends_are_p_values():
    for method in ("none", "holm", "bonferroni", "bh"):
        assert adjust([0.0, 1.0], method).tolist() == [0.0, 1.0]
    given_p = np.array([0.5])
    adjust(given_p, "none")[0] = 7
    assert given_p[0] == 0.5, "the caller's array stays as it is"


@each_row("alternative", ["two-sided", "greater", "less"])
@each_row("n", [7, 10])
def test_max_t_limits_equal_brute_force(alternative, n):
    """Student's t of centred differences under all patterns; its quantile times the standard errors."""
    d, alpha = np.random.default_rng(n).normal(0.3, 1, size=(n, 4)), 0.1
    centred = d - d.mean(axis=0)

    def evidence(x):
        t = x.mean(axis=0) / (x.std(axis=0, ddof=1) / np.sqrt(n))
        return {"two-sided": np.abs(t), "greater": t, "less": -t}[alternative].max()

    drawn = sorted(evidence(centred * np.array(signs)[:, None]) for signs in itertools.product((1, -1), repeat=n))
    # The least of the values that at most a share alpha of all patterns exceeds.
    critical = min(one for one in drawn if sum(other > one * (1 + 1e-9) for other in drawn) <= alpha * 2**n)
    reach = critical * d.std(axis=0, ddof=1) / np.sqrt(n)
    low, high = max_t_limits(d, Settings(alternative, alpha))
    np.testing.assert_allclose(low, d.mean(axis=0) - reach, rtol=1e-9)
    np.testing.assert_allclose(high, d.mean(axis=0) + reach, rtol=1e-9)


def test_max_t_limits_know_columns_without_variance():
    """They tell no width and leave the others alone; too few patterns leave all ends infinite."""
    d = np.random.default_rng(1).normal(0.3, 1, size=(30, 2))
    flat = np.column_stack([d, np.full(30, 0.1)])
    low, high = max_t_limits(flat, Settings(rng=1))
    assert (low[2], high[2]) == (-np.inf, np.inf)
    assert low[:2].tolist() == pytest.approx(max_t_limits(d, Settings(rng=1))[0].tolist())
    assert np.isinf(max_t_limits(flat[:4], Settings())).all()
    assert np.isinf(max_t_limits(flat[:5], Settings())).all()  # the least two-sided p is 2 in 32
    assert np.isinf(max_t_limits(flat, Settings(n_resamples=18, rng=1))).all()


def test_all_adjusted_intervals_hold_together_in_95_of_100_samples():
    """Five correlated comparisons of unlike effects, 50 queries, 400 samples: two standard errors are .022."""
    rng, held = np.random.default_rng(2), 0
    truth = np.array([0.0, 0.0, 0.1, -0.2, 0.3])
    for seed in range(400):
        d = truth + 0.3 * rng.normal(size=(50, 1)) + 0.3 * rng.normal(size=(50, 5))
        low, high = max_t_limits(d, Settings(n_resamples=499, rng=seed))
        held += bool(((low <= truth) & (truth <= high)).all())
    assert held / 400 == pytest.approx(0.95, abs=0.03)


@each_row("n_measures", [1, 2])
def test_tukey_limits_exclude_zero_exactly_if_p_is_at_most_alpha(n_measures):
    """In the unit of each measure: a measure in percent has a hundred times the ends."""
    scores = np.random.default_rng(3).random((40, 5, n_measures)) + np.linspace(0, 0.3, 5)[:, None]
    pairs, settings = list(itertools.combinations(range(5), 2)), Settings(n_resamples=999, rng=4)
    p, (low, high) = tukey(scores, pairs, settings), tukey_limits(scores, pairs, settings)
    assert (((low > 0) | (high < 0)) == (p <= 0.05)).all()
    assert 0 < (p <= 0.05).sum() < p.size
    difference = np.array([scores[:, j].mean(axis=0) - scores[:, i].mean(axis=0) for i, j in pairs])
    np.testing.assert_allclose((low + high) / 2, difference, atol=1e-12)
    np.testing.assert_allclose(tukey_limits(scores * 100, pairs, settings), 100 * np.array([low, high]), rtol=1e-9)
