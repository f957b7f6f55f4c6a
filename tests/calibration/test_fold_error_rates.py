"""How often tests over cross-validation see a difference between two learners that are equally good.

1,500 replications of ten times ten folds over 100 queries; the allowed range is nominal rate, known timidity and two
standard errors of the simulation (.006).
"""

from __future__ import annotations

import numpy as np
import pytest
from calibration.worlds import equal_learners

from rankeval.significance import paired_test
from rankeval.significance.folds import corrected_resampled_t

REPEATS = FOLDS = 10


@pytest.fixture(scope="module")
def null():
    """Return differences of two equal learners by fold and by query, a column per replication."""
    drawn = [equal_learners([seed, 5]) for seed in range(1500)]
    return [np.stack(one, axis=1) for one in zip(*drawn, strict=True)]


def rate(result):
    return float((result.p_value <= 0.05).mean())


def test_the_corrected_t_keeps_its_level_where_the_plain_one_is_wrong_in_over_forty_percent(null):
    by_fold, _ = null
    assert 0.030 <= rate(corrected_resampled_t(by_fold, 1 / (FOLDS - 1))) <= 0.065
    assert rate(paired_test("t", by_fold)) > 0.40


def test_one_run_of_ten_folds_is_too_timid(null):
    """Which is why ten repeats are recommended."""
    by_fold, _ = null
    assert rate(corrected_resampled_t(by_fold[:FOLDS], 1 / (FOLDS - 1))) < 0.030


def test_queries_pooled_over_folds_keep_their_level_nearly(null):
    _, by_query = null
    assert 0.035 <= rate(paired_test("t", by_query)) <= 0.075


def test_ten_repeats_find_what_one_run_misses():
    """One learner's signal is a quarter stronger."""
    by_fold = np.stack([equal_learners([seed, 6], gain=1.25)[0] for seed in range(200)], axis=1)
    ten, one = (rate(corrected_resampled_t(d, 1 / 9)) for d in (by_fold, by_fold[:FOLDS]))
    assert ten > 0.55
    assert one < ten - 0.2
