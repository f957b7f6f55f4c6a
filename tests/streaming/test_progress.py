"""The progress of a call ends with all that there is to do, and never goes beyond it."""

from __future__ import annotations

import numpy as np
import pytest
from streaming.logs import Log, evaluate
from tables import each_row

pytestmark = pytest.mark.usefixtures("small")


def order_of(form, n_rows):
    order = np.arange(n_rows)
    if form == "shuffled":
        return np.random.default_rng(0).permutation(n_rows)
    if form == "found late":  # within one row group, so that its statistics do not tell
        order[-3:] = order[-3:][::-1]
        order[-30:-3] = np.roll(order[-30:-3], 9)
    return order


@pytest.mark.further
@each_row("form", ["sorted", "shuffled", "found late"])
@each_row("keeps", [False, True])
def test_progress_ends_with_all(form, keeps, tmp_path):
    log = Log.made(n_queries=75)
    data = log.ordered(order_of(form, len(log.qid))).write(tmp_path / "log", row_group_size=200)
    how = {"folder": tmp_path / "scores"} if keeps else {}
    for _ in range(1 + keeps):
        seen: list[tuple[int, int]] = []
        evaluate(data, progress=lambda done, total, seen=seen: seen.append((done, total)), **how)
        assert seen[-1][0] == seen[-1][1]
        assert all(done <= total for done, total in seen)
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
