"""mlflow.genai.evaluate with our scorers, on a database and on a server, and its runs as evaluations."""

from __future__ import annotations

import mlflow
import pytest
from mlflow.entities import SpanType

import rankeval as rk
from rankeval.errors import GuardRefusal, InvalidInput, TrackingError
from rankeval_mlflow import compare_runs, genai_evaluation, genai_scorer, load_evaluation, log_evaluation

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


def test_a_run_has_readable_metrics_and_loads_as_the_evaluation(assert_same):
    """Equal to rankeval.evaluate in every field: values, facts, digests, convention."""
    result = evaluated("v1")
    ours = expected("v1", name="v1")
    assert result.metrics["nDCG_at_10/mean"] == pytest.approx(ours.aggregate()["nDCG@10"], abs=1e-15)
    assert set(result.metrics) == {"nDCG_at_10/mean", "AP/mean", "P_at_1/mean"}
    assert sorted(result.result_df["nDCG_at_10/value"]) == sorted(ours.per_query["nDCG@10"])
    by_id = genai_evaluation(result.run_id)
    assert sorted(by_id.measure_names) == sorted(ours.measure_names)
    by_name = by_id.measure_names
    run = {one: {doc: -rank for rank, doc in enumerate(dict.fromkeys(RUNS["v1"][one]))} for one in QUESTIONS}
    assert_same(by_id, rk.evaluate(TRUTH, run, measures=by_name, name="v1"))


def test_two_versions_are_compared_with_intervals():
    """Straight from MLflow, or logged once as evaluations and compared by their runs."""
    runs = {version: evaluated(version).run_id for version in RUNS}
    loaded = {version: genai_evaluation(run) for version, run in runs.items()}
    table = rk.compare(loaded, baseline="v1", measures="nDCG@10").table
    want = rk.compare({one: expected(one) for one in RUNS}, baseline="v1", measures="nDCG@10").table
    columns = ["difference", "ci_low", "ci_high", "p_value"]
    assert table[columns].equals(want[columns])
    for version, run in runs.items():
        log_evaluation(loaded[version], role="test", run_id=run)
    assert load_evaluation(runs["v1"]).per_query.equals(loaded["v1"].per_query)
    assert (
        compare_runs(list(runs.values()), baseline=runs["v1"], measures="nDCG@10").table[columns].equals(table[columns])
    )


@pytest.mark.server
def test_on_a_server_the_values_are_the_same_bits(server):
    """Through JSON and HTTP."""
    mlflow.set_tracking_uri(server.uri)
    mlflow.set_experiment("genai")
    evaluation = genai_evaluation(evaluated("v2"))
    ours = expected("v2")
    assert evaluation.per_query[list(ours.measure_names)].equals(ours.per_query)
    assert (evaluation.judgments_digest, evaluation.name) == (ours.judgments_digest, "v2")


def test_rows_that_failed_or_are_not_judged_are_counted():
    """They are in no mean, and the choice of what a failure counts is the reader's."""
    unjudged = {"inputs": {"question": QUESTIONS[0]}, "expectations": {"expected_response": "42"}}
    result = evaluated("v1", data=[unjudged, *ROWS[1:]], broken=QUESTIONS[1:3])
    kept = [one for one in QUESTIONS if one not in QUESTIONS[:3]]
    assert result.metrics["nDCG_at_10/mean"] == pytest.approx(expected("v1", kept).aggregate()["nDCG@10"])
    with pytest.raises(InvalidInput, match="2 rows without a ranking"):
        genai_evaluation(result)
    skipped = genai_evaluation(result, failed="skip")
    assert skipped.queries.tolist() == sorted(kept)
    assert skipped.excluded == {"no judgments": (QUESTIONS[0],), "no ranking": (QUESTIONS[1], QUESTIONS[2])}
    assert "2 queries left out: no ranking" in skipped.notes
    empty = genai_evaluation(result, failed="empty")
    assert empty.per_query["nDCG@10"][[QUESTIONS[1], QUESTIONS[2]]].tolist() == [0, 0]
    assert empty.n_queries == 11


def test_malformed_judgments_are_the_reason_that_is_said():
    """Not that the application failed; and no choice of failed= drops these rows."""
    data = [{**row, "outputs": ["d1"]} for row in ROWS]
    for place in (7, 2, 5):
        data[place] = {**data[place], "expectations": {"relevance": "d1"}}
    result = mlflow.genai.evaluate(data=data, scorers=[genai_scorer("RR")])
    said = r"3 rows could not be scored \('what is 2\?', 'what is 5\?', 'what is 7\?'\): relevance is 'd1'; exp"
    for failed in ("error", "skip", "empty"):
        with pytest.raises(InvalidInput, match=said):
            genai_evaluation(result, failed=failed)


def test_outputs_that_are_no_ranking_are_told_from_an_application_that_failed():
    """The first reason is told, and that there are others."""
    data = [{**row, "outputs": "an answer" if place in (3, 8) else ["d1"]} for place, row in enumerate(ROWS)]
    result = mlflow.genai.evaluate(data=data, scorers=[genai_scorer("RR", retrieved="outputs")])
    said = r"2 rows without a ranking \('what is 3\?', 'what is 8\?'\): outputs is no ranking: it is 'an answer'; exp"
    with pytest.raises(InvalidInput, match=said) as found:
        genai_evaluation(result)
    assert "failed" not in str(found.value).partition("failed='empty'")[0]
    failing = evaluated("v1", data=ROWS[:3], broken=QUESTIONS[1:2])
    with pytest.raises(InvalidInput, match=r"1 row without a ranking \('what is 1\?'\): the application failed"):
        genai_evaluation(failing)


def test_traces_of_production_are_scored_again_and_each_run_has_its_own():
    """A trace has the values of every evaluation of it."""
    first = evaluated("v1")
    experiment = mlflow.get_run(first.run_id).info.experiment_id
    traces = mlflow.search_traces(locations=[experiment], run_id=first.run_id, return_type="list")
    again = mlflow.genai.evaluate(data=traces, scorers=[genai_scorer("RR")])
    assert genai_evaluation(again).measure_names == ("RR",)
    assert genai_evaluation(first).measure_names != ("RR",)
    assert genai_evaluation(again).queries.tolist() == genai_evaluation(first).queries.tolist()


def test_scorers_with_names_are_loaded_by_them():
    """Two retrievers in one application."""
    data = [{**row, "outputs": {"a": ["d99", "d1"], "b": ["d1"]}} for row in ROWS]
    scorers = [genai_scorer("RR", name=name, retrieved=f"outputs.{name}") for name in "ab"]
    result = mlflow.genai.evaluate(data=data, scorers=scorers)
    assert {key: float(value) for key, value in result.metrics.items()} == {"a/mean": 0.5, "b/mean": 1.0}
    assert genai_evaluation(result, scorer="b").aggregate()["RR"] == 1
    with pytest.raises(InvalidInput, match=r"expected one of those in run \w+: (a, b|b, a)"):
        genai_evaluation(result)


def test_a_query_that_stands_twice_is_an_error():
    """Not the mean of two, and not the last."""
    data = [{**row, "outputs": ["d1"]} for row in (ROWS[0], ROWS[1], ROWS[0])]
    result = mlflow.genai.evaluate(data=data, scorers=[genai_scorer("RR")])
    with pytest.raises(InvalidInput, match="two rows for the query 'what is 0"):
        genai_evaluation(result)


def test_a_value_that_was_altered_is_an_error():
    """Somebody corrects a score in the pages of MLflow."""
    result = mlflow.genai.evaluate(data=[{**ROWS[0], "outputs": ["d99", "d1"]}], scorers=[genai_scorer("RR")])
    trace_id = result.result_df["trace_id"].iloc[0]
    found = next(one for one in mlflow.get_trace(trace_id).info.assessments if one.name == "RR")
    assert found.value == 0.5
    found.feedback.value = 1.0
    mlflow.update_assessment(trace_id, found.assessment_id, found)
    with pytest.raises(TrackingError, match=r"the value of RR for the query 'what is 0\?' is 1.0"):
        genai_evaluation(result)


def test_a_run_of_something_else_says_so():
    """Also a run that does not exist, and no run at all."""
    with mlflow.start_run() as run:
        pass
    with pytest.raises(InvalidInput, match="no values of a genai_scorer"):
        genai_evaluation(run.info.run_id)
    with pytest.raises(InvalidInput, match="there is no run '0123'"):
        genai_evaluation("0123")
    with pytest.raises(InvalidInput, match="expected the id of a run"):
        genai_evaluation(3)


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
