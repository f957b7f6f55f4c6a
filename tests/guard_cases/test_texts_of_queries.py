"""Texts tell registered queries under new ids: one positive a query is recognised by nothing else."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.errors import GuardRefusal, InvalidInput, RankevalWarning
from rankeval.report import report_for_queries
from rankeval.text import BM25

TEXTS = {f"q{number}": f"how to mend number {number}" for number in range(40)}
QRELS = {query: {f"d{query}": 1} for query in TEXTS}
RENAMED = {f"new-{query}": {f"n{query}": 1} for query in QRELS}
RUN = {query: {**docs, "x": 0.5} for query, docs in RENAMED.items()}
SAID = {f"new-{query}": f"  {text.upper()}" for query, text in TEXTS.items()}


pytestmark = pytest.mark.filterwarnings("ignore:RG00[14]")


@pytest.fixture(autouse=True)
def _registered(guard):
    guard.register("test", qrels=QRELS, queries=TEXTS)


def a_month(seed, persisting, *, with_zeros, name="s", n_queries=100, n_documents=10):
    """Return judgments and texts of a month: clicks persist by document, two thirds of the texts come again."""
    first, rng = np.random.default_rng(0), np.random.default_rng(seed)
    click = first.integers(0, n_documents, n_queries)
    moves = rng.random(n_queries) >= persisting
    click[moves] = (click[moves] + rng.integers(1, n_documents, moves.sum())) % n_documents
    qrels = {f"{name}{q}": {f"d{q}-{d}": int(d == click[q]) for d in range(n_documents)} for q in range(n_queries)}
    if not with_zeros:
        qrels = {query: {doc: 1 for doc, grade in docs.items() if grade} for query, docs in qrels.items()}
    words = [f"words {q}" if q % 3 or name == "q" else f"other words {q}" for q in range(n_queries)]
    return qrels, dict(zip(qrels, words, strict=True))


def scored(**options):
    return rk.evaluate(RENAMED, RUN, measures="RR", **options).n_queries


def test_one_positive_a_query_is_refused_by_texts_under_new_ids():
    """Without the texts nothing tells them; some of the texts are enough, and those of other queries are not."""
    assert scored() == scored(queries={}) == 40
    for texts in (SAID, pd.Series(SAID), dict(list(SAID.items())[:5])):
        with pytest.raises(GuardRefusal, match=f"{len(texts)} of its 40 queries are in the data"):
            scored(queries=texts)
    assert scored(queries={query: f"other words for {query}" for query in RENAMED}) == 40
    assert scored(queries={**dict.fromkeys(RENAMED, " "), "elsewhere": "a query that is not judged"}) == 40


@pytest.mark.parametrize("with_zeros", [True, False])
@pytest.mark.parametrize("name", ["q", "s"])
def test_texts_that_come_again_with_new_clicks_are_a_later_month(guard, with_zeros, name):
    """Head queries have the same texts in every month, under the same ids or new ones: the labels decide."""
    march, texts = a_month(0, 1.0, with_zeros=with_zeros, name="q")
    guard.register("march", qrels=march, queries=texts)
    for persisting, refused in ((0.1, 0), (0.5, 0), (0.7, 0), (1.0, 4)):
        found = 0
        for seed in range(1, 5):
            april, texts = a_month(seed, persisting, with_zeros=with_zeros, name=name)
            run = rk.Run.from_dict({query: list(docs) for query, docs in april.items()})
            try:
                rk.evaluate(april, replace(run, queries=texts), measures="RR")
            except GuardRefusal:
                found += 1
        assert found == refused, persisting


def test_the_same_texts_are_the_same_queries_for_looks(guard):
    """Other judgments of them are no new test, under whatever ids."""
    other = {query: {f"{doc}-other": 1 for doc in docs} for query, docs in RENAMED.items()}
    with pytest.warns(RankevalWarning, match="RG003 .*40 of the 40 queries of 'test'"):
        guard.register("second", qrels=other, queries=SAID)


def test_texts_come_with_rows_too():
    query = np.repeat(list(RENAMED), 2)
    rows = {"truth": np.tile([1, 0], 40), "ranking": np.tile([0.2, 0.1], 40), "qid": query, "measures": "RR"}
    assert rk.evaluate(**rows).n_queries == 40
    with pytest.raises(GuardRefusal):
        rk.evaluate(**rows, queries=SAID)
    frame = pd.DataFrame({"query": query, "label": rows["truth"], "score": rows["ranking"]})
    with pytest.raises(GuardRefusal):
        rk.evaluate(frame, qid="query", relevance="label", score="score", measures="RR", queries=SAID)


def test_a_run_that_a_ranker_found_by_texts_brings_them():
    """Without being asked; other texts may be named, and a file of the run has none."""
    run = BM25().fit({**{next(iter(docs)): SAID[query] for query, docs in RENAMED.items()}, "x": "mend"}).search(SAID)
    for call in (rk.evaluate, rk.analysis.contingency_table):
        with pytest.raises(GuardRefusal):
            call(RENAMED, run)
    assert rk.evaluate(RENAMED, run, measures="RR", queries={}).n_queries == 40
    run.write("bm25.run")
    assert rk.evaluate(RENAMED, "bm25.run", measures="RR").n_queries == 40


def test_the_texts_of_a_page_of_queries_count():
    found = rk.evaluate(RENAMED, RUN, measures="RR")
    assert report_for_queries(found, RUN, RENAMED)
    with pytest.raises(GuardRefusal):
        report_for_queries(found, RUN, RENAMED, needs=SAID)


@pytest.mark.parametrize("command", ["evaluate", "evaluate --format trec", "compare"])
def test_texts_come_in_a_file_of_the_command_line(rankeval, command):
    rk.Qrels.from_dict(RENAMED).write("qrels.txt")
    rk.Run.from_dict(RUN).write("a.run")
    rk.Run.from_dict({query: {**docs, "x": 2} for query, docs in RENAMED.items()}).write("b.run")
    pd.Series(SAID).str.strip().to_csv("texts.tsv", sep="\t", header=False)
    called = [*command.split(), "qrels.txt", "a.run", "b.run"]
    assert rankeval(*called)[0] == 0
    code, out, err = rankeval(*called, "--texts", "texts.tsv")
    assert (code, out) == (1, "")
    assert "40 of its 40 queries are in the data" in " ".join(err.split())


def test_a_registration_needs_the_text_of_each_query(guard):
    with pytest.raises(InvalidInput) as refused:
        guard.register("second", qrels=RENAMED, queries={"new-q0": "some"})
    assert (refused.value.argument, refused.value.expected) == ("queries", "the text of each query")
    with pytest.raises(InvalidInput, match="queries"):
        scored(queries=["how to mend"])


def test_texts_do_not_hinder_other_work():
    """A query of the same words is not refused if a few are alike, and a model that is fitted sees no texts."""
    few = dict(list(SAID.items())[:2]) | {query: f"{query}?" for query in list(RENAMED)[2:]}
    with pytest.warns(RankevalWarning, match="2 of its 40 queries are in the data"):
        assert scored(queries=few) == 40
    data = rk.datasets.make_ranking(40, 6, 3, rng=0)
    rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid)
