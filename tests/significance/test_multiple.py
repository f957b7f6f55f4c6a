"""Corrections equal statsmodels; joint ones equal brute force; no adjusted p is below its raw one."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance.multiple import CORRECTIONS, JOINT_CORRECTIONS, adjust, family_level, max_t, tukey
from rankeval.significance.resampling import sign_flip

STATSMODELS = {"holm": "holm", "bonferroni": "bonferroni", "bh": "fdr_bh"}
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@pytest.mark.parametrize("method", STATSMODELS)
@given(p=P_VALUES)
def test_corrections_equal_statsmodels(method, p):
    expected = multipletests(p, method=STATSMODELS[method])[1]
    np.testing.assert_allclose(adjust(p, method), expected, rtol=0, atol=1e-12)


@pytest.mark.shared
@pytest.mark.parametrize("method", STATSMODELS)
def test_golden_corrections(shared, method):
    """The fixed lists of golden/stats/multipletests.json, and all pairs of real runs, to 1e-12."""
    golden = json.loads((shared / "golden" / "stats" / "multipletests.json").read_text())
    cases = [(case["p"], case[STATSMODELS[method]]["adjusted"]) for case in golden["cases"].values()]
    for collection in ("cranfield", "trec_covid_r5"):
        pairs = json.loads((shared / "golden" / "stats" / f"{collection}.json").read_text())["all_pairs"]
        cases.append((pairs["ttest_rel_pvalues"], pairs["corrections"][STATSMODELS[method]]["adjusted"]))
    for p, expected in cases:
        np.testing.assert_allclose(adjust(p, method), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", sorted(set(CORRECTIONS) - JOINT_CORRECTIONS))
@given(p=P_VALUES, data=st.data())
def test_adjusted_p_values_keep_order_and_never_fall(method, p, data):
    """Adjusted >= raw, at most 1, monotone in the raw p, and indifferent to the order of the family."""
    adjusted = adjust(p, method)
    assert (adjusted >= np.array(p) - 1e-15).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= -1e-15).all()
    order = data.draw(st.permutations(range(len(p))))
    np.testing.assert_allclose(adjust(np.array(p)[order], method), adjusted[order], rtol=1e-12)


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


def test_the_level_of_a_family():
    assert family_level(0.05, "holm", 10) == pytest.approx(0.005)
    assert family_level(0.05, "bh", 10) == 0.05


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@settings(max_examples=25, deadline=None)
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
    np.testing.assert_allclose(max_t(d, alternative=alternative), expected, atol=1e-12)


def test_max_t_of_one_comparison_is_the_sign_flip():
    d = np.random.default_rng(0).normal(0.2, 1, size=(40, 1))
    assert max_t(d, n_resamples=999, rng=5) == pytest.approx(sign_flip(d, n_resamples=999, rng=5).p_value)


def test_max_t_beats_holm_on_near_copies():
    """Twenty variants that agree on every query cost hardly more than one; equal systems get 1."""
    generator = np.random.default_rng(2)
    base = generator.normal(0.45, 1, size=(50, 1))
    d = np.hstack([base + generator.normal(0, 0.05, size=(50, 20)), np.zeros((50, 1))])
    raw = sign_flip(d, n_resamples=9999, rng=1).p_value
    joint = max_t(d, n_resamples=9999, rng=1)
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
    found = tukey(scores, pairs, n_resamples=40_000, rng=0)
    np.testing.assert_allclose(found, expected, atol=4 * 0.5 / np.sqrt(40_000))


def test_tukey_over_measures_is_free_of_their_scale():
    """A measure in percent is the same family member as in shares; equal systems get p = 1."""
    scores = np.random.default_rng(3).random((30, 4, 2))
    scaled = scores * np.array([1.0, 100.0])
    pairs = [(0, 1), (2, 3)]
    assert tukey(scores, pairs, n_resamples=500, rng=1) == pytest.approx(tukey(scaled, pairs, n_resamples=500, rng=1))
    assert tukey(np.ones((5, 3)), [(0, 1)], n_resamples=50, rng=0).tolist() == [1.0]
    with pytest.raises(InvalidInput, match="2 systems or more"):
        tukey(np.ones((5, 1)), [(0, 0)])
