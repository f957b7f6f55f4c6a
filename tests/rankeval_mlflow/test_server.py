"""The same on a tracking server: whole, exact, and safe when the server dies."""

from __future__ import annotations

from pathlib import Path

import mlflow
import pytest
import requests

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput
from rankeval.report import report_for_queries
from rankeval.tracking import LoggedData, RunRecord, host
from rankeval_mlflow.delivery.spool import waiting
from rankeval_mlflow.run_names import COMPLETE

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def _on_the_server(server, store):  # noqa: ARG001 - the test's own store is set first
    """Set MLflow to the server."""
    mlflow.set_tracking_uri(server.uri)


@pytest.fixture
def remote(server):
    return mlflow.MlflowClient(tracking_uri=server.uri)


def test_an_evaluation_comes_back_from_a_server_bit_for_bit(small, assert_same, remote, server, capfd):
    evaluation = small()
    tracked = rkm.log(evaluation, role="test", data="letor")
    assert_same(evaluation, rkm.load_evaluation(tracked.run_id))
    run = remote.get_run(tracked.run_id)
    means = dict(zip(("nDCG_at_10", "AP", "P__rel.2_at_5"), evaluation.aggregate(), strict=True))
    assert {key: value for key, value in run.data.metrics.items() if "_ci_" not in key} == means
    assert tracked.where == f"{server.uri}/#/experiments/0/runs/{tracked.run_id}?workflowType=machine_learning"
    assert COMPLETE in run.data.tags
    assert run.info.status == "FINISHED"
    assert capfd.readouterr() == ("", "")


def test_a_page_of_queries_stands_beside_the_report_of_an_evaluation_and_of_a_comparison(remote, tmp_path):
    """Byte for byte, with what only looks like markup; and nothing else is an artifact of that name."""
    truth = {f"q{q}": {f"d{d}": int((q + d) % 3 == 0) for d in range(6)} for q in range(12)}
    runs = {
        name: {q: {d: float(scale * (int(d[1:]) - 2) ** 2) for d in of} for q, of in truth.items()}
        for name, scale in (("<b>up</b>", 1), ("down", -1))
    }
    evaluations = {name: rk.evaluate(truth, run, measures=["AP"], name=name) for name, run in runs.items()}
    texts = {f"d{d}": f"</script><i>text \u202e of {d}" for d in range(6)}
    page = report_for_queries(evaluations, runs, truth, texts=texts, needs={"q1": "text"})
    compared = rk.compare(evaluations, baseline="down", n_resamples=99)
    for tracked, folder in (
        (rkm.log(evaluations["down"], role="test", page=page), "test"),
        (rkm.log(compared, page=page), "comparison"),
        (rkm.log(evaluations["down"], role="dev", step=3, page=page), "dev/step-3"),
    ):
        path = remote.download_artifacts(tracked.run_id, f"rankeval/{folder}/queries.html", str(tmp_path))
        assert Path(path).read_bytes() == page.encode()
    bare = rkm.log(compared)
    listed = {one.path for one in remote.list_artifacts(bare.run_id, "rankeval/comparison")}
    assert "rankeval/comparison/report.html" in listed
    assert "rankeval/comparison/queries.html" not in listed


def test_a_page_that_is_no_text_is_refused_before_anything_is_kept(small):
    with pytest.raises(InvalidInput, match=r"^page is PosixPath.*report_for_queries"):
        rkm.log(small(), page=Path("queries.html"))
    assert not waiting()


def test_a_record_arrives_with_its_children_data_and_files(small, assert_same, remote, tmp_path):
    data = (LoggedData("letor", "ab" * 32, "dev", 160, 20),)
    record = RunRecord(
        "parent",
        params={"grid(alpha)": "[1]"},
        metrics={"nDCG@10": 0.5, "bad": float("inf")},
        artifacts={"report.html": b"<p>report</p>"},
        children=(RunRecord("ridge", evaluations={"dev": small()}, data=data),),
    )
    tracked = host("mlflow").tracker().log(record, experiment="letor")
    run, child = (remote.get_run(run_id) for run_id in (tracked.run_id, tracked.children[0].run_id))
    assert run.data.metrics == {"nDCG_at_10": 0.5}
    assert run.data.params == {"grid_alpha_": "[1]"}
    assert (
        Path(remote.download_artifacts(tracked.run_id, "rankeval/record/report.html", str(tmp_path))).read_bytes()
        == b"<p>report</p>"
    )
    assert child.data.tags["mlflow.parentRunId"] == tracked.run_id
    (used,) = child.inputs.dataset_inputs
    assert {tag.key: tag.value for tag in used.tags} == {
        "mlflow.data.context": "dev",
        "rankeval.role": "dev",
        "rankeval.digest": "ab" * 32,
    }
    assert_same(small(), rkm.load_evaluation(child.info.run_id))


def test_an_evaluation_takes_few_requests(small, server, monkeypatch):
    """At most six and one for each measure, without the report, and fewer into a run that exists.

    The first run of an experiment also makes the view of its table, and the note that links to it.
    """
    sent = []
    original = requests.Session.request

    def counted(session, method, url, **options):
        sent.append((method, url.removeprefix(server.uri)))
        return original(session, method, url, **options)

    monkeypatch.setattr(requests.Session, "request", counted)
    evaluation = small(measures=("nDCG@10", "AP", "P(rel=2)@5", "RR", "R@5", "P@3"))
    mlflow.set_experiment("requests")
    sent.clear()
    run = rkm.log(evaluation, report=False)
    assert len(sent) <= 2 + 6 + len(evaluation.measures), sent
    assert len(evaluation.measures) == 6
    sent.clear()
    rkm.log(evaluation, role="test", run_id=run.run_id, report=False)
    assert len(sent) <= 6 + len(evaluation.measures), sent
