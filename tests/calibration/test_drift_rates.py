"""How often an unpaired test shows a drift that is not there: the table in the guide on drift."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from calibration.worlds import scores_in
from scipy import stats

GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "drift.md"
REPLICATIONS, ALPHA = 4000, 0.05
SIZES = ((25, 25), (50, 50), (300, 300), (50, 300))
WORLD_OF = {
    "nDCG: spread evenly, mean .45, sd .28": "sym",
    "sparse RR: 1 on 5 % of the queries, 0 on 80 %": "RR",
    "sparse P@1: 1 on 10 % of the queries, otherwise 0": "P@1",
    "exponential: a long upper tail": "exponential",
}


def claims(one, other):
    """Return the percentage of pairs of months in which Welch's test shows a drift at 5 %."""
    with np.errstate(invalid="ignore"):  # no score varies in either month: no p-value, and no claim
        return 100 * np.mean(stats.ttest_ind(one, other, axis=1, equal_var=False).pvalue <= ALPHA)


FIRST = "sparse P@1: 1 on 10 % of the queries, otherwise 0"


@pytest.mark.parametrize("row", [pytest.param(row, marks=() if row == FIRST else pytest.mark.rest) for row in WORLD_OF])
def test_a_drift_that_is_not_there_is_shown_as_often_as_the_guide_says(row):
    """Each month has queries of its own, with scores of the same distribution."""
    table = re.search(rf"^\| {re.escape(row)} \|(.*)\|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    found = []
    for first, second in SIZES:
        scores = scores_in(WORLD_OF[row], first + second, 2, REPLICATIONS, [27, first, second])[..., 1]
        found.append(claims(scores[:, :first], scores[:, first:]))
    assert found == pytest.approx([float(cell) for cell in table[1].split("|")], abs=0.1)


def test_queries_that_come_back_hide_a_drift_from_an_unpaired_test():
    """The same queries in both months make it claim next to nothing; the paired test of SciPy keeps its level."""
    one, other = np.moveaxis(scores_in("sym", 300, 2, REPLICATIONS, 27), -1, 0)
    assert claims(one, other) < 0.1
    assert abs(100 * np.mean(stats.ttest_rel(one, other, axis=1).pvalue <= ALPHA) - 5) < 1
