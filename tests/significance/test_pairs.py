"""Pairs of systems: sums of systems, subtracted, lead to the p-values of the differences themselves."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
from tables import each_row
from threadpoolctl import threadpool_info, threadpool_limits

import rankeval as rk
from rankeval import _threads
from rankeval.errors import InvalidInput
from rankeval.significance import TESTS, paired_test, randomization
from rankeval.significance.columns import differences
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import max_t, max_t_limits
from rankeval.significance.pairs import Pairs
from rankeval.significance.randomization import flip_test
from rankeval.significance.running import run

ALTERNATIVES = ["two-sided", "greater", "less"]


def rounded_scores(n, n_systems=8, digits=2):
    """Return scores whose sums tie, a copy of a system, near-copies, a constant gain, and float noise."""
    rng = np.random.default_rng(n)
    hard = rng.normal(0.4, 0.25, (n, 1))
    scores = np.clip(np.round(hard + rng.normal(0, 0.1, (n, n_systems)), digits), 0, 1)
    near, single = scores[:, 0].copy(), scores[:, 0].copy()
    near[:4] += 0.01
    single[1] += 10.0**-digits
    noise = scores[:, 1] * (1 + 1e-15)
    return np.column_stack([scores, scores[:, 0], near, single, scores[:, 2] + 0.25, noise])[:, :, None]


def all_pairs(scores):
    return np.column_stack(np.triu_indices(scores.shape[1], k=1))


def columns_of(scores):
    low, high = all_pairs(scores).T
    return differences(scores[:, high, 0], scores[:, low, 0])


@each_row("alternative", ALTERNATIVES)
@each_row("n", [2, 5, 12, 17, 150])
def test_differences_of_sums_lead_to_the_counts_of_sums_of_differences(n, alternative):
    """On rounded scores, whose sums tie: the same p-values to the last bit, and the same intervals up to rounding."""
    scores = rounded_scores(n)
    settings = Settings(alternative, 0.1, 999, 3, family_alpha=0.02)
    pairs, d = Pairs.of_systems(scores, all_pairs(scores)), columns_of(scores)
    np.testing.assert_array_equal(pairs, d)
    for weights in (None, np.random.default_rng(1).choice([0.5, 1.0, 3.0], n)):
        found, expected = flip_test(pairs, settings, weights), flip_test(d, settings, weights)
        assert found.p_value.tolist() == expected.p_value.tolist()
        for name in ("ci_low", "ci_high"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(found.family, expected.family, rtol=1e-9, atol=1e-14)


@each_row("alternative", ALTERNATIVES)
def test_the_counts_are_those_of_whole_numbers(alternative):
    """Scores in hundredths, counted as integers over all patterns of eleven queries."""
    scores = rounded_scores(11)
    exact = np.rint(columns_of(scores) * 100).astype(np.int64)
    signs = np.array(list(itertools.product((1, -1), repeat=11)))
    sums, total = signs @ exact, exact.sum(axis=0)
    reached = {
        "two-sided": np.abs(sums) >= np.abs(total), "greater": sums >= total, "less": sums <= total
    }[alternative]  # fmt: skip
    found = flip_test(Pairs.of_systems(scores, all_pairs(scores)), Settings(alternative))
    assert found.p_value.tolist() == reached.mean(axis=0).tolist()


@each_row("claim", ["better", "not_worse", "equivalent"])
@each_row("name", TESTS)
def test_every_test_and_claim_reads_pairs_as_it_reads_columns(name, claim):
    scores = rounded_scores(30, n_systems=4)
    pairs, d = Pairs.of_systems(scores, all_pairs(scores)), columns_of(scores)
    signs = np.where(np.arange(d.shape[1]) % 2, 1.0, -1.0)
    settings = Settings("two-sided", 0.1, 199, 5, claim, 0.02, family_alpha=0.01)
    found, expected = run(TESTS[name], pairs.turned(signs), settings), run(TESTS[name], d * signs, settings)
    if name != "bootstrap_bca":  # its p-values hang on how sums that tie were rounded
        np.testing.assert_allclose(found.p_value, expected.p_value, rtol=1e-9)
        np.testing.assert_allclose(found.ci_low, expected.ci_low, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(found.family, expected.family, rtol=1e-9, atol=1e-13)
    assert found.notes == expected.notes


@each_row("name", TESTS)
def test_the_interval_of_the_family_is_that_of_a_test_at_its_level(name):
    d = np.random.default_rng(2).normal(0.1, 1, (40, 3))
    both = run(TESTS[name], d, Settings(n_resamples=499, rng=1, family_alpha=0.01))
    alone = run(TESTS[name], d, Settings(alpha=0.01, n_resamples=499, rng=1))
    assert np.array_equal(both.family, [alone.ci_low, alone.ci_high])
    assert both.p_value.tolist() == alone.p_value.tolist()


@each_row("of_sums", [1, 2**12, 2**14])
@each_row("n", [12, 70])
def test_groups_of_systems_and_spans_of_patterns_change_nothing(n, of_sums, monkeypatch):
    """With room for few sums at once, systems are read in tiles, or the largest ends kept from span to span."""
    scores = rounded_scores(n)
    settings = Settings("two-sided", 0.1, 999, 3, family_alpha=0.02)
    pairs = Pairs.of_systems(scores, all_pairs(scores))
    whole, joint = flip_test(pairs, settings), max_t(pairs, settings)
    monkeypatch.setattr(randomization, "SUMS_AT_ONCE", of_sums)
    monkeypatch.setattr(randomization, "_KEPT", 0)
    parts = flip_test(pairs, settings)
    assert parts.p_value.tolist() == whole.p_value.tolist()
    np.testing.assert_allclose(parts.ci_low, whole.ci_low, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(parts.family, whole.family, rtol=1e-9, atol=1e-14)
    assert max_t(pairs, settings).tolist() == joint.tolist()


@each_row("n", [12, 70])
def test_a_test_and_its_joint_correction_draw_the_same_signs_once(n, monkeypatch):
    """Of a million queries drawing takes nearly all of the time. What is read of the sums is that of drawing anew."""
    scores, settings = rounded_scores(n), Settings("two-sided", 0.1, 999, 3)
    calls = [flip_test, max_t, max_t_limits]
    anew = [call(Pairs.of_systems(scores, all_pairs(scores)), settings) for call in calls]
    pairs, drawn, by_pattern = Pairs.of_systems(scores, all_pairs(scores)), [], randomization.sums_by_pattern
    monkeypatch.setattr(
        randomization, "sums_by_pattern", lambda *given, **at: drawn.append(1) or by_pattern(*given, **at)
    )
    once = [call(pairs, settings) for call in calls]
    assert len(drawn) == 1
    assert once[0].p_value.tolist() == anew[0].p_value.tolist()
    assert once[0].ci_low.tolist() == anew[0].ci_low.tolist()
    assert [each.tolist() for each in (once[1], *once[2])] == [each.tolist() for each in (anew[1], *anew[2])]
    other = flip_test(pairs, replace(settings, rng=4))
    assert len(drawn) == 2, "another seed draws other signs"
    assert n < 17 or other.p_value.tolist() != once[0].p_value.tolist()


@each_row("alternative", ALTERNATIVES)
@each_row("n", [9, 120])
def test_max_t_of_pairs_is_that_of_their_columns(n, alternative):
    scores = rounded_scores(n)
    pairs, d = Pairs.of_systems(scores, all_pairs(scores)), columns_of(scores)
    settings = Settings(alternative, n_resamples=499, rng=4)
    assert max_t(pairs, settings).tolist() == max_t(d, settings).tolist()
    np.testing.assert_allclose(max_t_limits(pairs, settings), max_t_limits(d, settings), rtol=1e-9, atol=1e-13)


def test_max_t_steps_down_as_a_plain_loop_does():
    """The largest of the columns not yet rejected, by signs drawn in the same stream."""
    d, settings = np.round(np.random.default_rng(3).normal(0.2, 1, (40, 6)), 1), Settings(n_resamples=499, rng=8)
    unit = d / np.sqrt((d**2).sum(axis=0))
    observed = np.abs(unit.sum(axis=0))
    signs = np.concatenate(list(resampling_signs(40, settings)))
    order, worst, expected = np.argsort(-observed), 0.0, np.empty(6)
    for place, column in enumerate(order):
        largest = np.abs(signs @ unit[:, order[place:]]).max(axis=1)
        worst = max(worst, (1 + (largest >= observed[column] - 1e-9).sum()) / 500)
        expected[column] = worst
    assert max_t(d, settings).tolist() == expected.tolist()


def resampling_signs(n, settings):
    words = -(-n // 64)
    drawn = np.random.default_rng(settings.rng).integers(
        0, 2**64 - 1, size=(settings.n_resamples, words), dtype=np.uint64, endpoint=True
    )
    yield np.unpackbits(drawn.view(np.uint8), axis=1, count=n) * 2.0 - 1


def test_a_long_pattern_is_the_one_drawn_in_whole_words():
    """Queries beyond one tile: the stream of signs is that of whole rows of 64-bit words."""
    d = np.round(np.random.default_rng(5).normal(0.01, 1, (3000, 2)), 2)
    settings = Settings(n_resamples=300, rng=2)
    (signs,) = resampling_signs(3000, settings)
    sums, total = np.rint(signs @ (d * 100)), np.rint(d.sum(axis=0) * 100)
    expected = (1 + (np.abs(sums) >= np.abs(total)).sum(axis=0)) / 301
    assert paired_test("randomization", d, n_resamples=300, rng=2).p_value.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"test": "t"},
        {"test": "randomization"},
        pytest.param({"test": "t", "correction": "max_t"}, marks=pytest.mark.rest),
        pytest.param({"test": "sign", "correction": "bh"}, marks=pytest.mark.rest),
        pytest.param({"test": "randomization", "claim": "equivalent", "margin": 0.02}, marks=pytest.mark.rest),
    ],
)
def test_no_array_of_all_differences_is_made(options):
    """Of 100 systems on 1,500 queries it would take 59 MB."""
    rng = np.random.default_rng(0)
    systems = {f"s{k}": pd.DataFrame({"AP": rng.random(1500)}) for k in range(100)}
    rk.compare(dict(list(systems.items())[:3]), n_resamples=99, **options)  # what is loaded at first use
    tracemalloc.start()
    compared = rk.compare(systems, n_resamples=99, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(compared.table) == 4950
    assert peak < 45e6


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(InvalidInput, match="finite"):
        Pairs.of_systems(np.array([[[0.1], [np.nan]], [[0.2], [0.3]]]), [(0, 1)])


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="one core: there is nothing to limit")
def test_products_are_made_in_one_thread_unless_somebody_said_how_many(monkeypatch):
    def blas():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    for name in _threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(joblib.cpu_count()):
        before = blas()
        with _threads.one_blas_thread():
            assert blas() == {1}
        assert blas() == before != {1}
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        with _threads.one_blas_thread():
            assert blas() == before
