"""A result of online evaluation in MLflow: its numbers as metrics, its headline as a tag, its tables, and its page."""

from __future__ import annotations

import io
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.exceptions import MlflowException
from pandas.testing import assert_frame_equal

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval.report import report_for_judging
from rankeval_mlflow.delivery.sending import send
from rankeval_mlflow.delivery.spool import waiting

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def log():
    """Return the log of 300 impressions of two documents, whose query is markup."""
    rng = np.random.default_rng(7)
    swapped = rng.random(300) < 0.5
    clicked = rng.random((300, 2)) < np.where(swapped[:, None], [0.3, 0.25], [0.5, 0.1])
    shown = {"docid": np.where(swapped[:, None], ["b", "a"], ["a", "b"]).ravel(), "clicked": clicked.ravel()}
    rows = {"impression": np.repeat(np.arange(300), 2), "position": [1, 2] * 300, "qid": EVIL, **shown}
    return rk.online.ClickLog.from_frame(pd.DataFrame({**rows, "user": np.repeat(np.arange(300) % 60, 2)}))


@pytest.fixture(scope="module")
def arms():
    """Return an A/B test of two metrics, one of which is a ratio."""
    rng = np.random.default_rng(3)
    arm = np.array(["A", "B"] * 200)
    users = {"user": range(400), "arm": arm, "clicks": rng.poisson(np.where(arm == "B", 6, 4)), "views": 10}
    frame = pd.DataFrame({**users, "orders": rng.poisson(1, 400)})
    return rk.online.ab_test(frame, metrics={"ctr": ("clicks", "views"), "orders": "orders"})


@pytest.fixture(scope="module")
def interleaved():
    """Return the comparison of two rankings by the clicks of 40 users."""
    il = rk.online.Interleaver("team_draft", salt="s")
    lists = [il.show({"A": ["a", "b"], "B": ["c", "d"]}, impression=n, user=n % 40) for n in range(120)]
    return rk.online.compare_interleaved(lists, {one.impression: ["a"] for one in lists[::2]})


def read(run_id, path, folder):
    return Path(mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path=path, dst_path=folder)).read_bytes()


def test_a_metric_of_a_test_is_a_metric_of_the_run_with_interval_change_and_p(arms, client, tmp_path):
    run_id = rkm.log(arms).run_id
    logged = client.get_run(run_id).data
    ends = {"estimate": "", "relative": "_relative", "p_adjusted": "_p_adjusted"}
    ends |= {"ci_low": "_ci_low", "ci_high": "_ci_high"}
    rows = arms.table.set_index("metric")
    assert logged.metrics == {
        f"ab_test/{name}{end}": rows.loc[name, of] for name in rows.index for of, end in ends.items()
    } | {"ab_test/sample_ratio": arms.sample_ratio, "ab_test/A/users": 200, "ab_test/B/users": 200}
    assert "users: A 200 (200 due), B 200 (200 due)" in logged.tags["mlflow.note.content"]
    assert logged.tags["rankeval.kind"] == "ab_test"
    assert logged.tags["rankeval.ab_test.headline"] == arms.headline
    assert "ctr is higher in B than in A" in logged.tags["mlflow.note.content"]
    again = pd.read_csv(io.BytesIO(read(run_id, "rankeval/ab_test/table.csv", tmp_path)), float_precision="round_trip")
    assert_frame_equal(again, arms.table, check_dtype=False)
    assert b"expected" in read(run_id, "rankeval/ab_test/arms.csv", tmp_path)
    page = read(run_id, "rankeval/ab_test/report.html", tmp_path).decode()
    assert page == report_for_judging([arms], title="A/B test")


def test_of_several_arms_each_has_its_metrics(client):
    frame = pd.DataFrame({"user": range(90), "arm": list("ABC") * 30, "orders": np.arange(90) % 7})
    test = rk.online.ab_test(frame, metrics={"orders": "orders"}, control="A")
    metrics = client.get_run(rkm.log(test).run_id).data.metrics
    for row in test.table.to_dict("records"):
        assert metrics[f"ab_test/{row['arm']}/orders"] == row["estimate"]
        assert metrics[f"ab_test/{row['arm']}/orders_p_adjusted"] == row["p_adjusted"]
    assert len(test.table) == 2
    assert "ab_test/orders" not in metrics
    assert metrics["ab_test/sample_ratio"] == 1


def test_a_test_that_lost_users_logs_their_ratio_and_no_adjusted_p(client):
    """If the sample ratio is wrong, the run has its p-value as a metric and no adjusted p of any row."""
    frame = pd.DataFrame({"user": range(150), "arm": ["A", "B", "B"] * 50, "orders": np.arange(150) % 7})
    logged = client.get_run(rkm.log(rk.online.ab_test(frame, metrics={"orders": "orders"})).run_id).data
    assert logged.metrics["ab_test/sample_ratio"] < 0.001
    assert "ab_test/orders_p_adjusted" not in logged.metrics


def test_numbers_of_positions_are_metrics_by_position(log, client):
    """Rates, propensities, a model's perplexity and a policy's value stand in one run, each under its kind."""
    rates, model = log.click_rates(), rk.online.ClickModel("pbm").fit(log)
    found = rk.online.propensities(log, how="randomized", n_resamples=10)
    perplexity, checks = model.perplexity(log), log.checks()
    value = rk.online.policy_value([1, 0, 1, 0] * 20, [0.5] * 80, [0.5] * 80, how="snips")
    run_id = None
    for one in (rates, found, perplexity, checks, value):
        run_id = rkm.log(one, run_id, report=False).run_id
    logged = client.get_run(run_id).data
    assert logged.metrics["click_rate/position_1"] == rates.table.set_index("position").loc[1, "click_rate"]
    assert logged.metrics["propensities/position_2"] == found.table.set_index("position").loc[2, "propensity"]
    assert logged.metrics["perplexity/all"] == perplexity.overall
    assert logged.metrics["log_checks/positions never clicked"] == 0
    assert logged.metrics["log_checks/repeated events left out"] == 0
    assert logged.metrics["policy_value/snips"] == value.value == 0.5
    assert logged.metrics["policy_value/snips_effective_clicks"] == value.table["effective_clicks"].item() == 40
    assert logged.metrics["policy_value/snips_effective_share"] == 1
    pieces = [piece.partition(":")[0] for piece in logged.tags["rankeval.complete"].split()]
    assert pieces == ["click_rate()", "propensities()", "perplexity()", "log_checks()", "policy_value()"]


def test_rates_of_very_many_groups_are_no_metrics(client):
    rows = {"impression": range(101), "position": 1, "docid": [f"d{n}" for n in range(101)], "clicked": 1}
    found = rk.online.ClickLog.from_frame(pd.DataFrame(rows)).click_rates(by="docid")
    assert client.get_run(rkm.log(found).run_id).data.metrics == {}


def test_interleaved_rankings_stand_beside_the_offline_comparison(interleaved, client):
    """A run holds both: the one under its plain keys, the other under the name online."""
    truth = {"q1": {"a": 1, "c": 0}, "q2": {"a": 0, "c": 1}, "q3": {"a": 1, "c": 1}}
    runs = {name: {q: {"a": sign, "c": 0} for q in truth} for name, sign in {"A": 1, "B": -1}.items()}
    offline = rk.compare({name: rk.evaluate(truth, run, measures="RR") for name, run in runs.items()}, baseline="A")
    run_id = rkm.log(interleaved, rkm.log(offline).run_id, name="online").run_id
    logged = client.get_run(run_id).data
    assert logged.metrics["difference/online/credit"] == interleaved.table["difference"].iloc[0]
    assert "difference/RR" in logged.metrics
    assert logged.tags["rankeval.online.headline"] == interleaved.headline
    assert "users" in logged.tags["rankeval.online.headline"]
    assert_frame_equal(rkm.load_comparison(run_id, "online").table, interleaved.table)


def test_a_name_tells_two_results_of_a_kind_apart(arms, client):
    run_id = rkm.log(arms, name="june", report=False).run_id
    rkm.log(arms, run_id, name="july", report=False)
    metrics = client.get_run(run_id).data.metrics
    assert metrics["ab_test/june/ctr"] == metrics["ab_test/july/ctr"]


def test_no_query_becomes_markup(log, tmp_path):
    run_id = rkm.log(log.click_rates(by="qid")).run_id
    page = read(run_id, "rankeval/click_rate/report.html", tmp_path).decode()
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)" in page


def test_what_is_no_result_is_refused_before_anything_is_kept(log):
    with pytest.raises(InvalidInput, match=r"^result is .*expected a result such as evaluate"):
        rkm.log(log)
    assert not waiting()


def test_nothing_is_lost_if_the_store_is_down(arms, client, monkeypatch):
    with monkeypatch.context() as patched:

        def down(*_, **__):
            raise MlflowException("down for repair")

        patched.setattr(mlflow.MlflowClient, "log_batch", down)
        with pytest.raises(TrackingError, match="rankeval mlflow resend"):
            rkm.log(arms, report=False)
    (upload,) = waiting()
    run_id = send(upload).run_id
    assert client.get_run(run_id).data.metrics["ab_test/ctr"] == arms.table["estimate"].iloc[0]
    assert not waiting()


@pytest.mark.server
def test_a_server_holds_the_numbers_and_the_page(arms, interleaved, server, store, tmp_path):  # noqa: ARG001 - set first
    mlflow.set_tracking_uri(server.uri)
    run_id = rkm.log(interleaved, rkm.log(arms).run_id, name="online").run_id
    logged = mlflow.get_run(run_id).data
    assert logged.metrics["ab_test/ctr"] == arms.table["estimate"].iloc[0]
    assert logged.metrics["difference/online/credit"] == interleaved.table["difference"].iloc[0]
    assert b"ctr is higher" in read(run_id, "rankeval/ab_test/report.html", tmp_path)
