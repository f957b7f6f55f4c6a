"""The table of queries: what a page holds, in which order, and what it says of the rest."""

from __future__ import annotations

import json

import numpy as np
import pytest
from report.test_html import facts

import rankeval as rk
from rankeval.report import html, queries
from rankeval.report.queries import QueryColumn, query_table


def table(n=30, *, falls=False, name="q{}", values=None):
    scores = np.random.default_rng(0).random(n) if values is None else np.array(values)
    columns = [QueryColumn("AP", "score", scores), QueryColumn("relevant", "count", np.arange(n))]
    ids = [name.format(place) for place in range(n)]
    return query_table(ids, columns, by=0, falls=falls, order="worst by AP first"), dict(zip(ids, scores, strict=True))


@pytest.mark.parametrize("falls", [False, True])
def test_the_page_has_all_rows_by_id_and_the_first_ones_as_text(falls):
    made, scores = table(falls=falls)
    data = json.loads(made.json)
    assert data["columns"] == ["id", "score", "count"]
    assert data["order"] == [1, falls]
    assert [row[0] for row in data["rows"]] == list(scores)
    assert {row[0]: row[1] for row in data["rows"]} == {query: round(score, 4) for query, score in scores.items()}
    first = sorted(scores, key=scores.get, reverse=falls)[: queries.N_FIRST]
    assert [row[0] for row in made.first.rows] == first
    assert [row[1] for row in made.first.rows] == [f"{scores[query]:.4f}" for query in first]
    assert made.said == "All 30 queries, worst by AP first."


def test_more_queries_than_a_page_holds_are_left_out_from_the_best_end_and_counted(monkeypatch):
    monkeypatch.setattr(queries, "MOST_QUERIES", 12)
    made, scores = table()
    held = [row[0] for row in json.loads(made.json)["rows"]]
    assert held == [query for query in scores if query in sorted(scores, key=scores.get)[:12]]
    assert made.said == "12 of 30 queries, worst by AP first. The other 18 are left out of this page."


def test_long_ids_do_not_fill_the_page():
    """By the limit of bytes; the rows that are held are still the worst."""
    made, scores = table(3000, name="x" * 1000 + "{:05}")
    held = [row[0] for row in json.loads(made.json)["rows"]]
    assert 1000 < len(held) < 1250
    assert len(made.json) < queries.MOST_BYTES + 10_000
    assert set(held) == set(sorted(scores, key=scores.get)[: len(held)])


def test_no_id_ends_the_element_that_holds_the_data():
    for evil in ("</script>", "<!--<script>", "&lt;", "\u2028", "\ud800", '"\\'):
        made, scores = table(2, name=evil + "{}")
        assert not set("<>&") & set(made.json)
        assert made.json.isascii()
        assert [row[0] for row in json.loads(made.json)["rows"]] == list(scores)


def test_values_that_are_no_numbers_are_dashes_and_last():
    made, _ = table(3, values=[np.nan, 0.5, np.inf])
    assert [row[1] for row in json.loads(made.json)["rows"]] == [None, 0.5, None]
    assert made.first.rows[0][0] == "q1"


def test_the_first_rows_of_an_evaluation_are_its_worst_queries():
    data = rk.datasets.make_ranking(50, 10, rng=0)
    for measures in (["nDCG@10", "ARP"], ["ARP", "nDCG@10"]):
        ev = rk.evaluate(data.y, data.X[:, 0], qid=data.qid, measures=measures)
        made = html._scores_of_queries(ev)
        assert [row[0] for row in made.first.rows] == [str(query) for query in ev.worst(10).index]
        assert list(made.first.headers) == ["Query", *ev.worst().columns]


def test_an_experiment_has_the_scores_of_every_ranker_and_the_largest_losses_first():
    given = facts()
    made = html._queries_of(given, "strong")
    assert list(made.first.headers) == ["Query", "difference", "weak", "strong"]
    weak, strong = (each.test.per_query["nDCG@10"] for each in given.candidates)
    lost = (strong - weak).round(4).sort_values(kind="stable")
    assert [row[0] for row in made.first.rows] == lost.index[:10].tolist()
    assert made.first.rows[0][1:] == [
        f"{lost.iloc[0]:+.4f}",
        f"{weak[lost.index[0]]:.4f}",
        f"{strong[lost.index[0]]:.4f}",
    ]
    assert made.said == "All 40 queries, by nDCG@10, the largest losses of strong against weak first."
