"""A result of judging in MLflow: its numbers as metrics, what is undefined in words, its tables, and its page."""

from __future__ import annotations

import io
from pathlib import Path

import mlflow
import pandas as pd
import pytest
from mlflow.exceptions import MlflowException
from pandas.testing import assert_frame_equal
from report.test_judging import results

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval.report import report_for_judging
from rankeval_mlflow.delivery.sending import send
from rankeval_mlflow.delivery.spool import waiting


@pytest.fixture(scope="module")
def judged():
    """Return an agreement, a disagreement, a reusability and a calibration, of names that are markup."""
    return {type(one).__name__: one for one in results()}


def read(run_id, path, folder):
    return Path(mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path=path, dst_path=folder)).read_bytes()


def frame_of(content, index=None):
    return pd.read_csv(io.BytesIO(content), index_col=index, float_precision="round_trip")


def test_a_coefficient_is_a_metric_with_its_interval_and_an_undefined_one_is_words(judged, client, tmp_path):
    """MLflow makes 0 of nan, and a chart of it would show a disagreement that nobody saw."""
    agreement = judged["Agreement"]
    run_id = rkm.log(agreement).run_id
    logged = client.get_run(run_id)
    table = agreement.table.set_index("coefficient")
    ends = {"value": "", "ci_low": "_ci_low", "ci_high": "_ci_high"}
    expected = {f"agreement/{name}{end}": row[column] for name, row in table.iterrows() for column, end in ends.items()}
    assert logged.data.metrics == {key: value for key, value in expected.items() if pd.notna(value)}
    assert "agreement/krippendorff_alpha_ci_low" in logged.data.metrics
    assert "agreement/linear_kappa" not in logged.data.metrics
    assert "nominal grades have no order" in read(run_id, "rankeval/agreement/notes.txt", tmp_path).decode()
    assert {key: logged.data.params[key] for key in ("level", "n_items")} == {"level": "nominal", "n_items": "240"}
    assert logged.data.params["judges"].endswith(", llm")
    assert logged.data.tags["rankeval.kind"] == "agreement"
    assert logged.data.tags["rankeval.agreement.headline"] == agreement.caption
    assert logged.data.tags["rankeval.complete"].startswith("agreement():")
    assert logged.info.status == "FINISHED"


def test_the_frames_come_back_and_the_page_is_that_of_the_report(judged, tmp_path):
    agreement = judged["Agreement"]
    run_id = rkm.log(agreement).run_id
    table = frame_of(read(run_id, "rankeval/agreement/table.csv", tmp_path))
    assert_frame_equal(table.fillna({"undefined": ""}), agreement.table, check_dtype=False)
    per_query = frame_of(read(run_id, "rankeval/agreement/per_query.csv", tmp_path), index="qid")
    assert_frame_equal(per_query, agreement.per_query, check_dtype=False)
    page = read(run_id, "rankeval/agreement/report.html", tmp_path).decode()
    assert page == report_for_judging([agreement], title="Agreement")
    bare = rkm.log(agreement, report=False)
    kept = {one.path for one in mlflow.MlflowClient().list_artifacts(bare.run_id, "rankeval/agreement")}
    assert kept == {
        f"rankeval/agreement/{name}"
        for name in ("table.csv", "per_query.csv", "confusion.csv", "disputed.csv", "notes.txt", "manifest.json")
    } | {"rankeval/agreement/record.json", "rankeval/agreement/tables"}
    back = rkm.load(bare)
    assert (str(back), back._repr_html_()) == (str(agreement), agreement._repr_html_())


def test_a_calibration_is_logged_as_a_comparison_is(judged, small, client, tmp_path):
    """One pair has metrics without a system's name, and of several pairs only the table says which is which."""
    calibration = judged["Calibration"]
    run_id = rkm.log(calibration).run_id
    logged = client.get_run(run_id).data
    bias = frame_of(read(run_id, "rankeval/calibration/bias.csv", tmp_path))
    assert_frame_equal(bias.fillna({"baseline": ""}), calibration.bias, check_dtype=False)
    (row,) = calibration.table.to_dict("records")
    ends = {"estimate": "", "gain": "_gain", "p_adjusted": "_p_adjusted"}
    ends |= {"ci_low_adjusted": "_ci_low", "ci_high_adjusted": "_ci_high"}
    assert logged.metrics == {f"calibration/AP{end}": row[column] for column, end in ends.items()}
    assert logged.params["baseline"] == "b"
    assert (logged.params["n_human"], logged.params["n_machine"]) == ("12", "30")
    machine = {name: small(name, seed=seed, measures=["AP"]) for seed, name in enumerate("abc")}
    people = {name: one.subset(one.queries[:15]) for name, one in machine.items()}
    several = client.get_run(rkm.log(rk.judging.calibrate(people, machine, baseline="a")).run_id).data
    assert several.metrics == {}
    assert "system" not in several.params


def test_orders_under_other_judgments_are_metrics_by_the_judgments(judged, client):
    disagreement = judged["Disagreement"]
    logged = client.get_run(rkm.log(disagreement).run_id).data.metrics
    table = disagreement.table.set_index("judgments")
    assert logged["disagreement/union_tau_b"] == table.loc["union", "tau_b"]
    assert logged["disagreement/llm_overlap"] == table.loc["llm", "overlap"]
    assert len(logged) == 3 * len(table)


def test_all_stand_in_one_run_and_a_second_of_a_kind_has_a_name(judged, client):
    run_id = None
    for one in judged.values():
        run_id = rkm.log(one, run_id, report=False).run_id
    rkm.log(judged["Agreement"], run_id, report=False)  # the same again is the same
    rkm.log(judged["Agreement"], run_id, name="final", report=False)
    logged = client.get_run(run_id).data
    assert logged.metrics["agreement/final/pabak"] == logged.metrics["agreement/pabak"] == judged["Agreement"]["pabak"]
    assert logged.tags["rankeval.kind"] == "agreement"
    pieces = [piece.partition(":")[0] for piece in logged.tags["rankeval.complete"].split()]
    assert pieces == ["agreement()", "disagreement()", "reusability()", "calibration()", "final()"]
    with pytest.raises(InvalidInput, match="has no evaluation"):
        rkm.load_evaluation(run_id)


def test_a_name_that_is_no_word_is_refused_before_anything_is_kept(judged):
    with pytest.raises(InvalidInput, match=r"^name is 'a b'; expected a plain word"):
        rkm.log(judged["Agreement"], name="a b")
    assert not waiting()


def test_nothing_is_lost_if_the_store_is_down(judged, client, monkeypatch):
    with monkeypatch.context() as patched:

        def down(*_, **__):
            raise MlflowException("down for repair")

        patched.setattr(mlflow.MlflowClient, "log_batch", down)
        with pytest.raises(TrackingError, match="rankeval mlflow resend"):
            rkm.log(judged["Agreement"], report=False)
    (upload,) = waiting()
    run_id = send(upload).run_id
    assert client.get_run(run_id).data.metrics["agreement/pabak"] == judged["Agreement"]["pabak"]
    assert not waiting()


@pytest.mark.server
def test_on_a_server_it_is_one_batch_with_its_tables(judged, server, store, tmp_path):  # noqa: ARG001 - set first
    mlflow.set_tracking_uri(server.uri)
    run_id = rkm.log(judged["Agreement"], report=False).run_id
    assert mlflow.get_run(run_id).data.metrics["agreement/ac1"] == judged["Agreement"]["ac1"]
    confusion = frame_of(read(run_id, "rankeval/agreement/confusion.csv", tmp_path), index=0)
    assert confusion.to_numpy().tolist() == judged["Agreement"].confusion.to_numpy().tolist()
