"""A seed and the options that are not given lead to the same numbers in every version.

Plans record their seed, and a plan that is opened again must say the same. The values were made by rankeval and NumPy
2.4; they change only knowingly, or where NumPy changes the streams of its generators.
"""

from __future__ import annotations

import numpy as np
import pytest
from tables import each_row

from rankeval.significance import FOLD_TESTS, TESTS, paired_test
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import max_t, tukey
from rankeval.significance.paired import widened
from rankeval.significance.power import detectable_difference
from rankeval.significance.running import run

D = [
    0.1,
    -0.05,
    0.2,
    0.15,
    -0.1,
    0.05,
    0.3,
    0.0,
    0.12,
    -0.02,
    0.07,
    0.18,
    -0.15,
    0.25,
    0.01,
    0.09,
    -0.03,
    0.11,
    0.06,
    -0.08,
]
STUDENT = (0.007580087821513558, 0.11841991217848644)
EXPECTED = {
    "t": (0.0279826369231673, *STUDENT),
    "randomization": (0.0322, 0.0072727272727155234, 0.11888888888890063),
    "bootstrap": (0.0269, 0.007378050130452438, 0.11862194986954756),
    "wilcoxon": (0.03318023681640625, *STUDENT),
    "wilcoxon_pratt": (0.035274505615234375, *STUDENT),
    "sign": (0.1670684814453125, *STUDENT),
    "bootstrap_shift": (0.0141, 0.0125, 0.1135),
    "bootstrap_percentile": (0.0118, 0.0135, 0.114),
    "bootstrap_bca": (0.0118725987726573, 0.013, 0.1135),
}


@each_row("name", TESTS)
def test_a_seed_gives_the_same_p_value_and_interval(name):
    """By the test itself and by its name, with 9,999 resamples and at 95 %; a test of yours is not in EXPECTED."""
    column = np.array(D)[:, None]
    own, named = TESTS[name].function(column, Settings(rng=7)), paired_test(name, D, rng=7)
    found, again = (np.ravel([one.p_value, one.ci_low, one.ci_high]) for one in (own, named))
    assert found == pytest.approx(again, rel=1e-9)
    assert found == pytest.approx(EXPECTED.get(name, found), rel=1e-9)


def test_a_seed_gives_the_same_joint_corrections():
    d = np.array(D)
    turned = d[::-1] - 0.03
    found = max_t(np.column_stack([d, turned, d * 0.5 + 0.01]), Settings(rng=7))
    assert found == pytest.approx([0.0597, 0.2369, 0.0134], rel=1e-9)
    scores = np.column_stack([np.zeros(20), d, turned])
    joint = tukey(scores, [(0, 1), (0, 2), (1, 2)], Settings(rng=7))
    assert joint.p_value == pytest.approx([0.0652, 0.4912, 0.5579], rel=1e-9)


def test_the_defaults_of_fold_tests_are_those_documented():
    result = run(FOLD_TESTS["corrected_resampled_t"], widened(D, 0.25), Settings())
    assert result.p_value == pytest.approx(0.34358103592461037, rel=1e-9)
    assert (result.ci_low, result.ci_high) == pytest.approx((-0.07275050642714707, 0.19875050642714703), rel=1e-9)
    assert detectable_difference(len(D), widened(D, 0.25).std(ddof=1)) == pytest.approx(0.1915652335715006, rel=1e-6)
