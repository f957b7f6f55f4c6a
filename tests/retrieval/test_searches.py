"""How a search is called, and the ranking in each form of an answer."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput

DOCS = {"d1": "red pear", "d2": "green pear", "d3": "red wine"}
Scored = namedtuple("Scored", ["doc_id", "score"])  # noqa: PYI024 - as those of ir_datasets
FRAME = pd.DataFrame({"docno": ["d2", "d1"], "score": [2.0, 1.0]})
PYTERRIER = FRAME.assign(qid="q", query="pear", rank=[0, 1], docid=[7, 5])


def hits(*pairs):
    return {"hits": {"total": 2, "hits": [{"_id": name, "_score": score} for name, score in pairs]}}


def found(answer, **options):
    return rk.retrieve(lambda _: answer, {"q": "pear"}, **options)


@each_row(
    "answer",
    [
        {"d1": 1.0, "d2": 2.0},
        [("d2", 2.0), ("d1", 1.0)],
        [["d1", 1], ["d2", 2]],
        [{"id": "d2", "score": 2.0}, {"id": "d1", "score": 1.0}],
        [{"_id": "d2", "_score": 2.0}, {"_id": "d1", "_score": 1.0}],
        [Scored("d2", 2.0), Scored("d1", 1.0)],
        [SimpleNamespace(docid="d1", score=1.0, contents="a"), SimpleNamespace(docid="d2", score=2.0)],
        hits(("d2", 2.0), ("d1", 1.0)),
        FRAME,
        PYTERRIER,
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME),
        rk.Run.from_dict({"q": {"d1": 1.0, "d2": 2.0}}),
        pd.Series({"d1": 1.0, "d2": 2.0}),
    ],
)
def test_each_form_of_an_answer_with_scores_gives_the_same_ranking(answer):
    """The best document first, whatever the order of the rows."""
    run = found(answer)
    assert run.to_frame().to_numpy().tolist() == [["q", "d2", 2.0], ["q", "d1", 1.0]]
    assert run.seconds.keys() == {"q"}
    assert run.failed == {}


@each_row(
    "answer",
    [
        ["d2", "d1"],
        ("d2", "d1"),
        np.array(["d2", "d1"]),
        [{"id": "d2"}, {"id": "d1"}],
        hits(("d2", None), ("d1", None)),
        FRAME[["docno"]],
        pd.DataFrame({"docno": ["d1", "d2"], "rank": [2, 1]}),
    ],
)
def test_an_answer_without_scores_is_ordered_by_its_rows_and_says_so(answer):
    """-1, -2, ...: the run can be written, and no tie is left to a rule."""
    run = found(answer)
    assert run.to_frame().to_numpy().tolist() == [["q", "d2", -1.0], ["q", "d1", -2.0]]
    assert run.notes == ("1 query by rank: scores are missing or do not descend",)


@each_row("answer", [[], {}, hits(), FRAME[:0], np.array([])])
def test_an_empty_answer_is_an_answer(answer):
    """It was asked and found nothing: it did not fail."""
    run = found(answer)
    assert (len(run), run.failed, run.notes) == (0, {}, ("1 query without a document",))
    assert run.seconds.keys() == {"q"}


@each_row(
    "answer",
    [
        None,
        5,
        "d1",
        {"d1"},
        ["d1", "d1"],
        [("d1", 1.0), ("d1", 1.0)],
        [("d1", float("nan"))],
        {"responseHeader": {}, "response": {"docs": [{"id": "d1"}]}},
        {"root": {"children": [{"id": "d1", "relevance": 1.0}]}},
        PYTERRIER.assign(qid="another"),
        pd.DataFrame({"title": ["a"]}),
        [{"title": "a"}],
    ],
)
def test_an_answer_without_a_ranking_is_refused_with_its_query(answer):
    """The first such answer stops the work: those to come would have the same form."""
    with pytest.raises(InvalidInput, match="'q'"):
        found(answer)


def test_a_longer_answer_is_cut_at_the_best_and_counted():
    """By score, not by the order of the rows."""
    run = found({f"d{place}": float(place) for place in range(5)}, k=2)
    assert run.docid.to_pylist() == ["d4", "d3"]
    assert run.notes == ("1 query with more than 2 documents, of which the best 2 are kept",)


def test_distances_given_as_scores_are_noted():
    """A list is in its order: scores that rise in every one of them run against it."""
    index = {"a": [("d1", 0.1), ("d2", 0.7)], "b": [("d3", 0.2), ("d1", 0.5)]}
    run = rk.retrieve(index.get, {"q1": "a", "q2": "b"})
    assert run.against_rank
    mixed = rk.retrieve((index | {"b": [("d3", 2.0), ("d1", 0.5)]}).get, {"q1": "a", "q2": "b"})
    assert not mixed.against_rank


def _with_id(qid, text):
    return {f"{qid} {text}": 1.0}


def _with_depth(text, size):
    return {f"{text} {size}": 1.0}


def _with_both(qid, text, *, top_k=10):
    return {f"{qid} {text} {top_k}": 1.0}


class _Engine:
    def search(self, queries, k=5):
        return rk.Run.from_dict({qid: {f"{text} {k}": 1.0} for qid, text in queries.items()})


class _Transformer:
    """As PyTerrier's: callable too, and with a length."""

    def transform(self, topics):
        assert list(topics.columns) == ["qid", "query"]
        return topics.assign(docno=topics["query"] + " " + topics["qid"], score=1.0, rank=0)

    def __call__(self, topics):
        raise AssertionError

    def __len__(self):
        return 2


@each_row(
    ("search", "document"),
    [
        (lambda text: [text], "pear"),
        (_with_id, "q pear"),
        (_with_depth, "pear 7"),
        (_with_both, "q pear 7"),
        (_Engine(), "pear 7"),
        (_Engine().search, None),
        (_Transformer(), "pear q"),
        (str.split, "pear"),
    ],
)
def test_a_search_is_called_as_its_signature_says(search, document):
    """The names of parameters tell an id from a depth."""
    if document is None:
        with pytest.raises(AttributeError) as caught:
            rk.retrieve(search, {"q": "pear"}, k=7)
        assert caught.value.__notes__ == ["rankeval.retrieve searched the query 'q'"]
    else:
        assert rk.retrieve(search, {"q": "pear"}, k=7).docid.to_pylist() == [document]


@each_row(
    "queries",
    [
        {"q1": "pear", "q2": "wine"},
        [("q1", "pear"), ("q2", "wine")],
        pd.Series(["pear", "wine"], index=["q1", "q2"]),
        pd.DataFrame({"qid": ["q1", "q2"], "query": ["pear", "wine"]}),
        "path",
    ],
)
def test_queries_may_be_any_texts_by_id(queries, tmp_path):
    """As the rankers of rk.text take them, and pairs."""
    if isinstance(queries, str):
        queries = tmp_path / "queries.tsv"
        queries.write_text("q1\tpear\nq2\twine\n")
    run = rk.retrieve(str.split, queries)
    assert run.queries == {"q1": "pear", "q2": "wine"}
    assert run.qid.to_pylist() == ["q1", "q2"]


@each_row("queries", [[("q1", "a"), ("q1", "b")], [("q1", 5)], ["q1"], {}, {"q1": "a", 2: "b"}])
def test_queries_without_an_id_or_a_text_each_are_refused(queries):
    """Before anything is asked."""
    with pytest.raises(InvalidInput):
        rk.retrieve(pytest.fail, queries)


@each_row(
    ("argument", "options"),
    [
        ("k", {"k": 0}),
        ("n_jobs", {"n_jobs": 0}),
        ("retries", {"retries": -1}),
        ("timeout", {"timeout": 0}),
        ("name", {"cache": "answers"}),
        ("search", {"search": 5}),
    ],
)
def test_options_out_of_range_are_refused(argument, options):
    """With the argument."""
    with pytest.raises(InvalidInput) as caught:
        rk.retrieve(**{"search": str.split, "queries": {"q": "a"}} | options)
    assert caught.value.argument == argument


def test_the_rankers_of_text_and_the_profile_take_the_same_searches():
    """One call of a search: an object that retrieve asks can be timed."""
    ranker = rk.text.BM25().fit(DOCS)
    queries = {"q1": "pear", "q2": "red wine"}
    run = rk.retrieve(ranker, queries, k=2)
    expected = ranker.search(queries, k=2)
    assert run.to_frame().equals(expected.to_frame())
    profile = rk.profile({"bm25": ranker, "pt": _Transformer()}, queries, repeats=1)
    assert profile["pt"].per_query.index.tolist() == ["q1", "q2"]
