"""Posterior probabilities: equal to baycomp's, to a plain count over all pairs, and to the t test without a rope."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance import FOLD_TESTS
from rankeval.significance.declarations import Settings
from rankeval.significance.effects import PRIOR_STRENGTH, correlated_t, signed_rank
from rankeval.significance.paired import widened
from rankeval.significance.running import run

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "baycomp.json").read_text())
DRAWS = 200_000  # baycomp's, as the file says
gains = st.lists(st.integers(-4, 4), min_size=2, max_size=12).map(lambda values: np.array(values) / 8)


def probabilities(found):
    return np.array([found.worse, found.equivalent, found.better])


@each_row("case", GOLDEN["correlated_t"], ids=lambda one: f"{one['case']}, {one['folds']}, {one['rope']}")
def test_the_correlated_t_equals_baycomp(case):
    """Repeats of k folds: the ratio of test to training queries is 1 / (k - 1)."""
    found = correlated_t(GOLDEN["gains"][case["case"]], case["rope"], ratio=1 / (case["folds"] - 1))
    np.testing.assert_allclose(probabilities(found), case["probs"], atol=1e-14)


@pytest.mark.further
@each_row("case", GOLDEN["signed_rank"], ids=lambda one: f"{one['case']}, {one['rope']}")
def test_the_signed_rank_test_equals_baycomp_to_monte_carlo_error(case):
    """Within four standard errors of the difference of two samples, and 1e-4 for shares that nearly never occur."""
    expected, n = np.array(case["probs"]), 50_000
    found = probabilities(signed_rank(GOLDEN["gains"][case["case"]], case["rope"], n_samples=n, rng=3))
    error = np.sqrt(expected * (1 - expected) * (1 / DRAWS + 1 / n))
    assert (np.abs(found - expected) <= 4 * error + 1e-4).all()
    assert found.sum() == pytest.approx(1)


def counted(values, rope, weights):
    """Return the masses of worse, equivalent and better in one draw, pair by pair in whole eighths."""
    masses = np.zeros(3)
    for one, w in zip(values, weights, strict=True):
        for other, v in zip(values, weights, strict=True):
            mean, edge = one + other, 2 * rope
            place = [1.0 * (mean < -edge) + 0.5 * (mean == -edge), 0, 1.0 * (mean > edge) + 0.5 * (mean == edge)]
            masses += w * v * np.array([place[0], 1 - place[0] - place[2], place[2]])
    return masses


@given(gains, st.sampled_from([0.0, 0.125, 0.25]))
@settings(max_examples=examples(30))
def test_the_signed_rank_test_counts_pairs_of_each_draw(values, rope):
    """The same draws, counted over all n * n pairs: without a rope the middle is no choice."""
    z = np.append(values, 0.0)
    order = np.argsort(z, kind="stable")
    prior = int(np.flatnonzero(order == len(values))[0])
    generator, n = np.random.default_rng(5), 40
    weights = generator.standard_exponential((n, len(z)))
    weights[:, prior] = generator.standard_gamma(PRIOR_STRENGTH, n)
    weights /= weights.sum(axis=1, keepdims=True)
    shares = np.zeros(3)
    for draw in weights:
        masses = counted(z[order], rope, draw)
        masses[1] = masses[1] if rope > 0 else -1
        most = masses >= masses.max() - 1e-9
        shares += most / most.sum()
    expected = np.full(3, np.nan) if np.ptp(values) == 0 else shares / n
    np.testing.assert_allclose(probabilities(signed_rank(values, rope, n_samples=n, rng=5)), expected, atol=1e-12)


@given(gains, st.sampled_from([0.0, 0.125, 0.2]))
@settings(max_examples=examples(30))
def test_a_system_and_its_baseline_change_places(values, rope):
    """Exactly for the t test; draws differ in the signed rank test, so to their error."""
    one, other = probabilities(correlated_t(values, rope)), probabilities(correlated_t(-values, rope))
    np.testing.assert_allclose(one, other[::-1], atol=1e-12)
    one, other = (probabilities(signed_rank(v, rope, n_samples=16_000, rng=0)) for v in (values, -values))
    np.testing.assert_allclose(one, other[::-1], atol=0.06)


@given(gains.filter(np.ptp))
def test_a_wider_rope_has_more_in_it(values):
    for test in (correlated_t, lambda v, rope: signed_rank(v, rope, n_samples=500, rng=0)):
        within = [float(test(values, rope).equivalent) for rope in (0.0, 0.05, 0.125, 0.3, 10.0)]
        if test is correlated_t:
            assert within == sorted(within)
        assert within[0] == 0
    assert within[-1] == 1  # twice the largest gain is far inside


def test_float_noise_is_on_no_side_of_an_edge():
    """Tenths are not exact in binary, yet ten times the gains and rope gives the same probabilities."""
    whole = np.array(GOLDEN["gains"]["whole numbers with ties and zeros, 20"])
    for rope in (0.0, 0.5, 1.0, 2.0):
        one, other = (signed_rank(whole * by, rope * by, n_samples=2000, rng=1) for by in (1, 0.1))
        np.testing.assert_allclose(probabilities(one), probabilities(other), atol=1e-12)


@each_row("ratio", [0.1, 0.25])
def test_without_a_rope_worse_is_the_one_sided_p(ratio):
    """The prior is the one under which posterior and sampling distribution agree."""
    d = np.random.default_rng(0).normal(0.1, 0.2, (12, 3))
    found = correlated_t(d, 0.0, ratio=ratio)
    np.testing.assert_allclose(
        found.worse,
        run(FOLD_TESTS["corrected_resampled_t"], widened(d, ratio), Settings("greater")).p_value,
        rtol=1e-10,
    )
    np.testing.assert_allclose(found.worse + found.better, 1)


def test_gains_without_variance():
    """Ten tied queries say nothing of the next: no probability, and so none of 1."""
    for gain in (0.2, -0.2, 0.0):
        for rope in (0.0, 0.1):
            assert np.isnan(probabilities(correlated_t([gain] * 10, rope))).all()
            assert np.isnan(probabilities(signed_rank([gain] * 10, rope, rng=0))).all()
    found = correlated_t(np.column_stack([np.zeros(4), [0.1, 0.2, 0.1, 0.3]]), 0.05)
    assert np.isnan(found.better).tolist() == [True, False]


def test_no_probability_depends_on_another_pair():
    d = np.random.default_rng(0).normal(0.1, 0.2, (15, 3))
    for test in (correlated_t, lambda v, rope: signed_rank(v, rope, n_samples=700, rng=9)):
        together = test(d, 0.05)
        for place in range(3):
            alone = test(d[:, place], 0.05)
            assert np.ndim(alone.better) == 0
            assert alone.better == pytest.approx(together.better[place], abs=1e-15)


def test_what_cannot_be_computed_is_refused():
    for test in (correlated_t, signed_rank):
        with pytest.raises(InvalidInput, match=r"rope is -0\.1; expected a number, 0 or greater"):
            test([0.1, 0.2], -0.1)
        with pytest.raises(InvalidInput, match="rope is nan"):
            test([0.1, 0.2], np.nan)
        with pytest.raises(InvalidInput, match="at least 2"):
            test([0.1], 0.1)
    with pytest.raises(InvalidInput, match="ratio is -1"):
        correlated_t([0.1, 0.2], 0.1, ratio=-1)
    with pytest.raises(InvalidInput, match="n_samples"):
        signed_rank([0.1, 0.2], 0.1, n_samples=0)


@pytest.fixture
def frames():
    generator = np.random.default_rng(4)
    base = generator.random((30, 2))
    return {
        name: pd.DataFrame(base + generator.normal(gain, 0.1, base.shape), columns=["AP", "ARP"])
        for name, gain in (("weak", 0.0), ("strong", 0.08), ("odd", 0.02))
    }


@each_row("method", ["t", "signed_rank"])
def test_the_table_of_a_comparison_follows_the_direction_of_the_measure(frames, method):
    """A greater ARP is worse: what is better by AP is worse by ARP."""
    compared = rk.compare(frames, baseline="weak")
    found = compared.bayes(rope=0.02, method=method, n_samples=5000)
    assert found.columns.tolist() == ["measure", "baseline", "system", "p_worse", "p_equivalent", "p_better"]
    names = ["measure", "baseline", "system"]
    assert found[names].to_numpy().tolist() == compared.table[names].to_numpy().tolist()
    np.testing.assert_allclose(found[["p_worse", "p_equivalent", "p_better"]].sum(axis=1), 1)
    strong = found[found["system"] == "strong"].set_index("measure")
    assert strong.loc["AP", "p_better"] > 0.9
    assert strong.loc["ARP", "p_worse"] > 0.9
    again = rk.compare({name: frame.sample(frac=1, random_state=1) for name, frame in frames.items()}, baseline="weak")
    pd.testing.assert_frame_equal(again.bayes(rope=0.02, method=method, n_samples=5000), found)


def test_a_comparison_on_common_queries_uses_those(frames):
    fewer = {**frames, "odd": frames["odd"].iloc[5:]}
    found = rk.compare(fewer, baseline="weak", unpaired="skip").bayes(rope=0.01)
    same = rk.compare({name: frame.iloc[5:] for name, frame in frames.items()}, baseline="weak").bayes(rope=0.01)
    pd.testing.assert_frame_equal(found, same)


def test_a_comparison_read_from_json_has_no_scores(frames):
    back = rk.Comparison.from_json(rk.compare(frames).to_json())
    with pytest.raises(InvalidInput, match="compare the evaluations again"):
        back.bayes(rope=0.01)
    with pytest.raises(UnknownName, match="signed_rank"):
        rk.compare(frames).bayes(rope=0.01, method="signedrank")
