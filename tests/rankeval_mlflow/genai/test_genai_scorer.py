"""A scorer's value of a row is rankeval's value of the query, whatever form the ranking and the judgments have."""

from __future__ import annotations

from types import SimpleNamespace

import mlflow
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.entities import Document, SpanType

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval_mlflow import genai_scorer
from rankeval_mlflow.genai import query_id, ranking_of_row

JUDGED = {"relevance": {"d1": 3, "d2": 0, "d3": 1}}
RANKED = ["d2", "d1", "d9"]
VALUE = rk.evaluate({"q": JUDGED["relevance"]}, {"q": {"d2": 3, "d1": 2, "d9": 1}}, measures="nDCG@10").scores[0, 0]

MEASURES = [
    "nDCG@10",
    "nDCG(gain='exp')@3",
    "AP",
    "RR",
    "P@5",
    "R@2",
    "ERR(max_rel=4)@10",
    "RBP(p=0.8)",
    "bpref",
    "F@3",
]
CONVENTIONS = ["rankeval", "trec_eval-9.0.8", "trec_eval-10", "sklearn", "ranx"]
documents = st.sampled_from([f"d{number}" for number in range(12)])
grades = st.dictionaries(documents, st.integers(0, 4), min_size=1)
lists = st.lists(documents, unique=True, min_size=1)
scored = st.dictionaries(documents, st.sampled_from([0.0, 0.25, 0.5, 1.0, 7.5]), min_size=1)


def value_of(**row):
    return genai_scorer("nDCG@10", **row.pop("options", {}))(**row).value


@given(truth=grades, ranking=lists | scored, convention=st.sampled_from(CONVENTIONS))
def test_every_measure_has_the_value_that_evaluate_gives(truth, ranking, convention):
    """Lists and scores with ties, by five conventions: the same to the last bit."""
    found = genai_scorer(MEASURES, convention=convention)(outputs=ranking, expectations={"relevance": truth})
    run = {one: len(ranking) - place for place, one in enumerate(ranking)} if isinstance(ranking, list) else ranking
    expected = rk.evaluate({"q": truth}, {"q": run}, measures=MEASURES, convention=convention)
    assert [one.value for one in found] == expected.scores[0].tolist()
    assert [one.name for one in found] == [one.key for one in expected.measures]


@given(rows=st.lists(st.tuples(grades, lists), min_size=1, max_size=6))
def test_a_row_has_the_value_that_its_query_has_in_the_whole_collection(rows):
    """Rows are scored one by one, and no value depends on the others."""
    scorer = genai_scorer(MEASURES)
    alone = [[one.value for one in scorer(outputs=got, expectations={"relevance": truth})] for truth, got in rows]
    truth = {place: dict(judged) for place, (judged, _) in enumerate(rows)}
    run = {place: {one: -rank for rank, one in enumerate(got)} for place, (_, got) in enumerate(rows)}
    assert alone == rk.evaluate(truth, run, measures=MEASURES).scores.tolist()


@pytest.mark.parametrize(
    "outputs",
    [
        RANKED,
        tuple(RANKED),
        np.array(RANKED),
        pd.Series(RANKED),
        [{"doc_id": one, "page_content": "..."} for one in RANKED],
        [{"page_content": "...", "metadata": {"doc_uri": one}} for one in RANKED],
        [Document(page_content="...", id=one) for one in RANKED],
        [Document(page_content="...", metadata={"doc_uri": one}) for one in RANKED],
        [SimpleNamespace(node_id=one, score=0.1) for one in RANKED],
        [(Document(page_content="...", id=one), 0.9) for one in RANKED],
        [[one, rank] for rank, one in enumerate(RANKED)],
        {"d1": 0.5, "d2": 0.9, "d9": 0.2},
        {"d1": np.float32(0.5), "d2": np.float32(0.9), "d9": np.float32(0.2)},
    ],
    ids=repr,
)
def test_a_ranking_may_have_any_of_these_forms(outputs):
    """The order of a list counts, and of a mapping the scores."""
    assert value_of(outputs=outputs, expectations=JUDGED) == VALUE


@pytest.mark.parametrize(
    ("expectations", "options"),
    [
        (JUDGED, {}),
        ({"grades": JUDGED["relevance"], "relevance": {"d9": 1}}, {"expected": "grades"}),
        ({"expected_retrieved_context": [{"doc_uri": "d1", "relevance": 3}, {"doc_uri": "d3", "content": "x"}]}, {}),
        ({"relevance": [{"id": "d1", "relevance": 3}, {"id": "d3"}, {"id": "d3"}]}, {}),
        ({"a": {"b": {"d1": 3, "d3": 1}}}, {"expected": lambda all_of_them: all_of_them["a"]["b"]}),
    ],
)
def test_judgments_may_have_any_of_these_forms(expectations, options):
    """By document or as a list, in a field of the user's or in MLflow's own."""
    assert value_of(outputs=RANKED, expectations=expectations, options=options) == VALUE


def test_a_list_of_relevant_documents_has_grade_one():
    """As qrels with one grade have."""
    expected = rk.evaluate({"q": {"d1": 1, "d3": 1}}, {"q": {"d2": 3, "d1": 2, "d9": 1}}, measures="nDCG@10")
    assert value_of(outputs=RANKED, expectations={"relevance": ["d1", "d3"]}) == expected.scores[0, 0]


def test_ids_that_are_numbers_are_those_of_their_text():
    """The tracking server turns the keys of a mapping into text."""
    assert value_of(outputs=[2, 1, 9], expectations={"relevance": {"1": 3, "2": 0, "3": 1}}) == VALUE


def test_two_chunks_of_a_document_count_once():
    """At the first place, and those behind it move up: else one relevant document would count twice."""
    assert value_of(outputs=["d2", "d1", "d1", "d2", "d9"], expectations=JUDGED) == VALUE


def test_a_short_list_is_not_a_better_one():
    """The ideal list has all relevant documents, so that two good documents of ten are no 1."""
    truth = {f"d{number}": 1 for number in range(10)}
    value = value_of(outputs=["d0", "d1"], expectations={"relevance": truth})
    assert value == pytest.approx((1 + 1 / np.log2(3)) / sum(1 / np.log2(rank + 1) for rank in range(1, 11)))


def test_an_empty_list_is_a_ranking_and_nothing_else_is():
    """The application retrieved nothing: 0. If it failed, that is no 0."""
    assert value_of(outputs=[], expectations=JUDGED) == 0
    for outputs in (None, "an answer", {}, {"answer": "x", "documents": RANKED}, 3, [None], [True], [["d1"]]):
        feedback = genai_scorer("nDCG@10")(outputs=outputs, expectations=JUDGED)
        assert (feedback.value, feedback.error.error_code) == (None, "NO_RANKING")


@pytest.mark.parametrize("expectations", [None, {}, {"expected_response": "x"}, {"relevance": {}}, {"relevance": []}])
def test_a_row_without_judgments_is_not_judged(expectations):
    """It has no value, and says what to do."""
    found = genai_scorer(["nDCG@10", "RR"])(outputs=RANKED, expectations=expectations)
    assert (found.value, found.error.error_code) == (None, "NOT_JUDGED")
    assert "expectations={'relevance': {'d1': 1}}" in found.error.error_message


def test_documents_without_a_common_id_are_an_error_that_shows_their_fields():
    """The field can be named, also within a field."""
    outputs = [{"content": "...", "metadata": {"source": one}} for one in RANKED]
    feedback = genai_scorer("nDCG@10")(outputs=outputs, expectations=JUDGED)
    assert "'content', 'metadata': name the field of the id with docid=" in feedback.error.error_message
    assert value_of(outputs=outputs, expectations=JUDGED, options={"docid": "metadata.source"}) == VALUE


@pytest.mark.parametrize(
    ("expectations", "said"),
    [
        ({"relevance": "d1"}, "relevance is 'd1'; expected grades by document id, or a list"),
        ({"relevance": {"d1": "good"}}, "'good'"),
        ({"relevance": {1: 1, "1": 2}}, "the same id as text"),
        ({"relevance": [{"id": "d1", "relevance": 1}, {"id": "d1", "relevance": 2}]}, "has the grades 1 and 2"),
    ],
)
def test_judgments_that_cannot_be_read_are_an_error(expectations, said):
    """Never a 0."""
    feedback = genai_scorer("nDCG@10")(outputs=RANKED, expectations=expectations)
    assert feedback.value is None
    assert said in feedback.error.error_message


def test_a_row_that_the_convention_leaves_out_has_no_value():
    """As a query has none."""
    feedback = genai_scorer("nDCG@10", convention="gdeval")(outputs=RANKED, expectations={"relevance": {"d1": 0}})
    assert feedback.error.error_code == "LEFT_OUT"
    feedback = genai_scorer("AP", convention="trec_eval-9.0.8")(outputs=[], expectations=JUDGED)
    assert feedback.error.error_message == "left out by the convention: nothing was retrieved"


def test_a_value_that_is_0_by_0_says_so():
    """Here the convention gives it 0."""
    feedback = genai_scorer("nDCG@10")(outputs=RANKED, expectations={"relevance": {"d1": 0}})
    assert feedback.value == 0
    assert feedback.rationale == "0 of 0 relevant documents among 3 retrieved; 0/0 by the convention"


# Traces --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def trace(store):  # noqa: ARG001 - traces are written to it
    """Return what makes the trace of an application with these retriever spans; a list within one is a part of it."""

    def traced(*rankings, outputs="an answer", last=None):
        with mlflow.start_span("app", span_type=SpanType.CHAIN) as root:
            root.set_inputs({"question": "who?"})
            for number, ranking in enumerate(rankings):
                with mlflow.start_span(f"search {number}", span_type=SpanType.RETRIEVER) as span:
                    with mlflow.start_span("inner", span_type=SpanType.RETRIEVER) as inner:
                        inner.set_outputs(["d9"])
                    span.set_outputs([Document(page_content="...", id=one) for one in ranking])
            if last is not None:
                with mlflow.start_span("rerank", span_type=SpanType.RERANKER) as span:
                    span.set_outputs(last)
            root.set_outputs(outputs)
        mlflow.flush_trace_async_logging()
        return mlflow.get_trace(root.trace_id)

    return traced


def test_the_span_of_the_retriever_is_read(trace):
    """Its result and not that of a retriever within it; inputs and outputs come from the trace."""
    assert value_of(trace=trace(RANKED), expectations=JUDGED) == VALUE
    asked = genai_scorer("nDCG@10", qid="ticket")
    with pytest.raises(InvalidInput, match="but the inputs of a row are \\['question'\\]"):
        asked(trace=trace(RANKED), expectations=JUDGED)


def test_two_rankings_that_differ_must_be_told_apart(trace):
    """By default that is an error which names them."""
    two = trace(["d7", "d1"], RANKED, outputs=["d3"], last=["d1", "d3"])
    feedback = genai_scorer("nDCG@10")(trace=two, expectations=JUDGED)
    assert "3 different rankings (outputs, span 'search 0', span 'search 1')" in feedback.error.error_message
    want = {
        "outputs": ["d3"],
        "first span": ["d7", "d1"],
        "last span": RANKED,
        "all spans": ["d7", "d1", "d2", "d9"],
        "span rerank": ["d1", "d3"],
    }
    for place, ranking in want.items():
        assert list(ranking_of_row(["d3"], two, place)) == ranking, place
        judged = {"relevance": {one: 1 + rank for rank, one in enumerate(ranking)}}
        value = value_of(outputs=ranking, expectations=judged)
        assert value_of(trace=two, expectations=judged, options={"retrieved": place}) == value
    feedback = genai_scorer("nDCG@10", retrieved="span")(trace=two, expectations=JUDGED)
    assert "2 different rankings" in feedback.error.error_message


def test_a_field_of_the_outputs_is_read(trace):
    """Of a mapping or an object; or by a function."""
    outputs = {"answer": "x", "context": {"documents": [{"id": one} for one in RANKED]}}
    assert value_of(outputs=outputs, expectations=JUDGED, options={"retrieved": "outputs.context.documents"}) == VALUE
    own = {"retrieved": lambda outputs, _: [one["id"] for one in outputs["context"]["documents"]]}
    assert value_of(outputs=outputs, trace=trace(["d9"]), expectations=JUDGED, options=own) == VALUE


def test_expectations_of_the_trace_are_read(trace):
    """As MLflow's own scorers do."""
    judged = trace(RANKED)
    mlflow.log_expectation(trace_id=judged.info.trace_id, name="relevance", value=JUDGED["relevance"])
    assert value_of(trace=mlflow.get_trace(judged.info.trace_id)) == VALUE


# Ids of queries and options ------------------------------------------------------------------------------------------


def test_the_id_of_a_query():
    """An input of that name, else the only text, else a hash that does not depend on the order of inputs."""
    assert query_id({"qid": 7, "question": "who?"}, None) == "7"
    assert query_id({"question": "who?"}, None) == "who?"
    assert query_id({"question": "who?", "ticket": "t1"}, "ticket") == "t1"
    assert query_id({"a": 1, "b": [2]}, None) == query_id({"b": (2,), "a": 1}, None) != query_id({"a": 1}, None)
    assert len(query_id({"question": "w" * 300}, None)) == 16
    with pytest.raises(InvalidInput, match="qid is 'ticket', but the inputs of a row are"):
        query_id({"question": "who?"}, "ticket")


def test_names():
    """A name of the user's, with the measure behind it if there are several."""
    row = {"outputs": RANKED, "expectations": JUDGED}
    assert genai_scorer("nDCG@10")(**row).name == "nDCG_at_10"
    assert genai_scorer("nDCG@10", name="reranked")(**row).name == "reranked"
    assert [one.name for one in genai_scorer(["P@1", "RR"], name="first")(**row)] == ["first/P_at_1", "first/RR"]


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"measures": "nDGC@10"}, UnknownName, "nDCG"),
        ({"measures": "gm_AP"}, InvalidInput, "aggregated by gmean"),
        ({"measures": "AP", "convention": "trec"}, UnknownName, "convention"),
        ({"measures": "AP", "convention": rk.Convention(unjudged="highest")}, InvalidInput, "needs the grades of all"),
        ({"measures": "AP", "retrieved": "spans"}, InvalidInput, "expected 'outputs', 'outputs.FIELD'"),
        ({"measures": "AP", "expected": 3}, InvalidInput, "expected is 3"),
        ({"measures": "AP", "docid": ""}, InvalidInput, "docid is ''"),
    ],
)
def test_options_are_checked_before_anything_is_evaluated(arguments, error, said):
    """Not once a row."""
    with pytest.raises(error, match=said):
        genai_scorer(**arguments)
