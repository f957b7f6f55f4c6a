"""Laws of results of online evaluation in MLflow and in reports."""

from __future__ import annotations

import mlflow
import pandas as pd
import pytest

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput
from rankeval.report import report_for_evaluation


@pytest.fixture
def log():
    """Return a log of 4 impressions, 1 of them with a click."""
    rows = {"impression": range(4), "position": 1, "docid": list("abab"), "clicked": [1, 0, 0, 0]}
    return rk.online.ClickLog.from_frame(pd.DataFrame(rows))


def test_abandonment_is_not_logged_as_a_click_rate(log):
    """The share of impressions without a click has a name of its own: as click_rates/all it says the contrary."""
    run = rkm.log(log.abandonment())
    metrics = mlflow.get_run(run.run_id).data.metrics
    assert metrics.get("click_rates/all", 0.25) == 0.25
    assert [name for name, value in metrics.items() if "abandonment" in name and value == 0.75]


def test_click_rates_and_abandonment_stand_in_one_run(log):
    """Both are logged to one run without names, since they are different results."""
    with mlflow.start_run() as run:
        rkm.log(log.click_rates(()))
        rkm.log(log.abandonment())
    assert 0.75 in mlflow.get_run(run.info.run_id).data.metrics.values()


def test_a_single_result_for_a_report_is_shown(log):
    """One result stands for a list of it; things without a table are refused."""
    ev = rk.evaluate([1, 0], [2, 1], qid=["q", "q"], measures="nDCG@10")
    for wrong in ([rk.online.ClickModel("pbm")], "rates", [1]):
        with pytest.raises(InvalidInput, match="online"):
            report_for_evaluation(ev, online=wrong)
    assert "Click rate by position" in report_for_evaluation(ev, online=log.click_rates())
