"""Weights of collections: shares, means, and what flips of signs leave as they are."""

from __future__ import annotations

import numpy as np
import pytest

from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance.declarations import Settings
from rankeval.significance.effects import standardised_effect
from rankeval.significance.strata import Strata, apart, strata_limits, stratum_weights, weights_of_collections

SIZES = (8, 12, 30)
PARTS = np.split(np.random.default_rng(9).permutation(50), np.cumsum(SIZES)[:-1])
SCORES = np.random.default_rng(0).random((50, 3, 2)) * np.array([0.2, 1.0, 0.5]).repeat(2).reshape(3, 2)


def test_weighted_means_are_means_over_collections():
    """The mean of weighted scores is the weighted mean of the collections' means, by hand."""
    for how, shares in {"collections": [1 / 3] * 3, "queries": [0.16, 0.24, 0.6]}.items():
        found = weights_of_collections(how, SCORES, PARTS)
        np.testing.assert_allclose(found, shares)
        weights = stratum_weights(found, PARTS)
        expected = sum(share * SCORES[part].mean(axis=0) for share, part in zip(shares, PARTS, strict=True))
        np.testing.assert_allclose((SCORES * weights[:, None, None]).mean(axis=0), expected)
    np.testing.assert_allclose(stratum_weights(np.array([0.16, 0.24, 0.6]), PARTS), 1.0)


def test_inverse_variance_weighs_by_queries_over_variance():
    """By one measure, n / v over their sum; a measure on another scale counts alike."""
    one = SCORES[:, :, :1]
    precision = np.array([len(part) / one[part].var(axis=1).mean() for part in PARTS])
    np.testing.assert_allclose(weights_of_collections("inverse_variance", one, PARTS), precision / precision.sum())
    scaled = np.concatenate([one, 7 * one], axis=2)
    np.testing.assert_allclose(weights_of_collections("inverse_variance", scaled, PARTS), precision / precision.sum())


def test_no_flip_changes_the_weights():
    """Two systems' scores swapped on any queries leave inverse variances as they are: the test stays exact."""
    expected = weights_of_collections("inverse_variance", SCORES, PARTS)
    swapped = SCORES.copy()
    rows = np.random.default_rng(1).random(50) < 0.5
    swapped[rows] = swapped[rows][:, [1, 0, 2]]
    np.testing.assert_allclose(weights_of_collections("inverse_variance", swapped, PARTS), expected, rtol=1e-12)


def test_equal_systems_have_no_inverse_variance():
    scores = SCORES.copy()
    scores[PARTS[1]] = 0.5
    with pytest.raises(InvalidInput, match="same scores"):
        weights_of_collections("inverse_variance", scores, PARTS)
    with pytest.raises(UnknownName, match="queries"):
        weights_of_collections("query", scores, PARTS)


def test_errors_are_those_of_independent_means():
    """One collection: the plain error and deviation. Several: from the errors of their means."""
    d = SCORES[:, 1] - SCORES[:, 0]
    plain = Strata.together([np.arange(50)], np.ones(1))
    np.testing.assert_allclose(plain.effect(d), standardised_effect(d))
    np.testing.assert_allclose(plain.error(d, 1), d.std(axis=0, ddof=1) / np.sqrt(50))
    shares = np.array([0.2, 0.3, 0.5])
    deviations = np.array([d[part].std(axis=0, ddof=1) for part in PARTS])
    strata = Strata.together(PARTS, shares)
    means = np.array([d[part].mean(axis=0) for part in PARTS])
    np.testing.assert_allclose(strata.effect(d), shares @ means / np.sqrt(shares @ deviations**2))
    assert strata.effect(np.full((50, 1), 0.1)).tolist() == [np.inf]
    assert strata.effect(np.zeros((50, 1))).tolist() == [0]
    expected = np.sqrt((shares**2 / SIZES) @ deviations**2)
    np.testing.assert_allclose(strata.error(d, 1), expected)


def test_parts_stand_apart():
    """Each measure of each part has, weighed, the part's mean over all rows, and 0 on the rows of the others."""
    weights = Strata.side_by_side([8, 12]).of(4, 1)
    block = apart(SCORES, PARTS[:2]) * weights[:, None]
    assert block.shape == (20, 3, 4)
    expected = np.stack([SCORES[part].mean(axis=0) for part in PARTS[:2]], axis=2)  # systems, measures, parts
    np.testing.assert_allclose(block.mean(axis=0), expected.reshape(3, 4))
    assert (block[8:, :, [0, 2]] == 0).all()
    assert (block[:8, :, [1, 3]] == 0).all()


def test_a_column_without_variance_leaves_the_intervals_of_the_others_as_they_are():
    """Centring leaves a constant of .1 in dust of rounding, and no t is made of dust."""
    sizes = [7, 9, 11]
    strata = Strata.together(Strata.side_by_side(sizes).parts, np.full(3, 1 / 3))
    limits, settings = strata_limits(strata, 2), Settings(n_resamples=999, rng=0)
    noise = np.random.default_rng(4).normal(0.1, 1, sum(sizes))
    dusty, clean = (np.column_stack([noise, np.full(sum(sizes), constant)]) for constant in (0.1, 0.0))
    assert any(np.ptp(dusty[part, 1] - dusty[part, 1].mean()) or dusty[part, 1].mean() != 0.1 for part in strata.parts)
    (low, high), (low_of_clean, high_of_clean) = limits(dusty, settings), limits(clean, settings)
    assert (low[0], high[0]) == (low_of_clean[0], high_of_clean[0])
    assert (low[1], high[1]) == (-np.inf, np.inf)
