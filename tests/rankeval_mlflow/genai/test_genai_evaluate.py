"""mlflow.genai.evaluate with our scorers, on a database and on a server."""

from __future__ import annotations

import mlflow
import pytest
from mlflow.entities import SpanType

import rankeval as rk
from rankeval.errors import GuardRefusal
from rankeval_mlflow import genai_scorer

QUESTIONS = [f"what is {number}?" for number in range(12)]
TRUTH = {question: {"d1": 2, f"d{place}": 1, "d3": 0} for place, question in enumerate(QUESTIONS)}
ROWS = [{"inputs": {"question": one}, "expectations": {"relevance": TRUTH[one]}} for one in QUESTIONS]
RUNS = {
    "v1": {one: [f"d{place % 4 + 2}", "d7", "d1"] for place, one in enumerate(QUESTIONS)},
    "v2": {one: ["d1", f"d{place % 5}", "d8"] for place, one in enumerate(QUESTIONS)},
}


pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture(autouse=True)
def _plain_settings(monkeypatch):
    """No trial call of the application; and few threads, since MLflow's many lock each other out of a SQLite file."""
    monkeypatch.setenv("MLFLOW_GENAI_EVAL_SKIP_TRACE_VALIDATION", "true")
    monkeypatch.setenv("MLFLOW_GENAI_EVAL_MAX_WORKERS", "2")


def application(version, *, broken=()):
    """Return an application that searches in a span, and answers."""

    @mlflow.trace(span_type=SpanType.RETRIEVER, name="search")
    def search(question):
        return [{"page_content": "...", "metadata": {"doc_uri": one}} for one in RUNS[version][question]]

    @mlflow.trace
    def answer(question):
        if question in broken:
            raise RuntimeError("the model is overloaded")
        return f"see {search(question)[0]}"

    return answer


def expected(version, questions=QUESTIONS, **options):
    run = {one: {doc: -rank for rank, doc in enumerate(dict.fromkeys(RUNS[version][one]))} for one in questions}
    return rk.evaluate({one: TRUTH[one] for one in questions}, run, measures=["nDCG@10", "AP", "P@1"], **options)


def evaluated(version, *, data=ROWS, scorers=None, **options):
    scorers = scorers or [genai_scorer("nDCG@10"), genai_scorer(["AP", "P@1"])]
    with mlflow.start_run(run_name=version):
        return mlflow.genai.evaluate(data=data, predict_fn=application(version, **options), scorers=scorers)


def values(result, column="nDCG_at_10/value"):
    """Return the values that a run has, by query."""
    questions = [request["question"] for request in result.result_df["request"]]
    return dict(zip(questions, result.result_df[column], strict=True))


def test_a_run_has_readable_metrics_and_the_values_of_evaluate():
    """Each row has the value that its query has in rankeval.evaluate, and each metric is their mean."""
    result = evaluated("v1")
    ours = expected("v1")
    assert set(result.metrics) == {"nDCG_at_10/mean", "AP/mean", "P_at_1/mean"}
    for label, column in {"nDCG@10": "nDCG_at_10", "AP": "AP", "P@1": "P_at_1"}.items():
        assert result.metrics[f"{column}/mean"] == pytest.approx(ours.aggregate()[label], abs=1e-15)
        assert values(result, f"{column}/value") == ours.per_query[label].to_dict()


@pytest.mark.server
def test_on_a_server_the_values_are_the_same_bits(server):
    """Through JSON and HTTP."""
    mlflow.set_tracking_uri(server.uri)
    mlflow.set_experiment("genai")
    assert values(evaluated("v2")) == expected("v2").per_query["nDCG@10"].to_dict()


@pytest.mark.further
def test_rows_that_failed_or_are_not_judged_are_in_no_mean():
    """Each says why in its trace."""
    unjudged = {"inputs": {"question": QUESTIONS[0]}, "expectations": {"expected_response": "42"}}
    result = evaluated("v1", data=[unjudged, *ROWS[1:]], broken=QUESTIONS[1:3])
    kept = [one for one in QUESTIONS if one not in QUESTIONS[:3]]
    assert result.metrics["nDCG_at_10/mean"] == pytest.approx(expected("v1", kept).aggregate()["nDCG@10"])
    codes = [
        one.error.error_code
        for trace in mlflow.search_traces(run_id=result.run_id, return_type="list")
        for one in trace.info.assessments
        if one.name == "nDCG_at_10" and one.error is not None
    ]
    assert sorted(codes) == ["NOT_JUDGED", "NO_RANKING", "NO_RANKING"]


@pytest.mark.further
def test_traces_of_production_are_scored_again():
    """The values are those of the first time."""
    first = evaluated("v1")
    experiment = mlflow.get_run(first.run_id).info.experiment_id
    traces = mlflow.search_traces(locations=[experiment], run_id=first.run_id, return_type="list")
    again = mlflow.genai.evaluate(data=traces, scorers=[genai_scorer("AP")])
    assert again.metrics["AP/mean"] == pytest.approx(first.metrics["AP/mean"], abs=1e-15)


def test_scorers_with_names_have_their_own_columns():
    """Two retrievers in one application."""
    data = [{**row, "outputs": {"a": ["d99", "d1"], "b": ["d1"]}} for row in ROWS]
    scorers = [genai_scorer("RR", name=name, retrieved=f"outputs.{name}") for name in "ab"]
    result = mlflow.genai.evaluate(data=data, scorers=scorers)
    assert {key: float(value) for key, value in result.metrics.items()} == {"a/mean": 0.5, "b/mean": 1.0}


def test_a_registered_test_collection_is_refused(tmp_path, monkeypatch):
    """An application tuned on it row by row would be tuned on the test set: the refusal ends the evaluation."""
    ledger = tmp_path / "ledger"
    monkeypatch.setenv("RANKEVAL_LEDGER", str(ledger))
    many = {one: {f"{one} {number}": number % 3 for number in range(40)} for one in QUESTIONS}
    rk.Guard("p", ledger=str(ledger)).register("faq", qrels=many)
    data = [
        {"inputs": {"question": one}, "outputs": list(judged), "expectations": {"relevance": judged}}
        for one, judged in many.items()
    ]
    with pytest.raises(GuardRefusal, match="faq"):
        mlflow.genai.evaluate(data=data, scorers=[genai_scorer("RR")])
