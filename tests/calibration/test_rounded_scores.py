"""Scores that are rounded make resamples tie with 0: the level is kept all the same, whatever rounding adds to them."""

from __future__ import annotations

import numpy as np
import pytest
from calibration.experiments import ALPHA, SIDES
from calibration.worlds import scores_in

from rankeval.significance import paired_test

REPLICATIONS, QUERIES = 4000, 200


@pytest.mark.parametrize("side", ["two-sided", *(pytest.param(side, marks=pytest.mark.rest) for side in SIDES[1:])])
@pytest.mark.parametrize("world", [pytest.param("sym", marks=pytest.mark.rest), "P@1"])
def test_bca_keeps_its_level_on_scores_in_tenths(world, side):
    """Equally good systems. A draw of 0 counted half made 6.1 to 6.8 % false claims about P@1."""
    tenths = np.round(scores_in(world, QUERIES, 2, REPLICATIONS, [11, QUERIES]), 1)
    d = (tenths[..., 1] - tenths[..., 0]).T
    claims = paired_test("bootstrap_bca", d, alternative=side, n_resamples=499, rng=5).p_value <= ALPHA
    error = np.sqrt(ALPHA * (1 - ALPHA) / REPLICATIONS)
    assert abs(claims.mean() - ALPHA) < 2.5 * error, claims.mean()
