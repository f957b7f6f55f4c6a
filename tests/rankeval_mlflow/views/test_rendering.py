"""The files that are drawn for people: of the numbers alone, in MLflow's layout, and no name makes them long."""

from __future__ import annotations

import json
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.evaluation import to_bytes
from rankeval.report import report_for_evaluation
from rankeval_mlflow.delivery.spool import waiting
from rankeval_mlflow.views import KINDS, MOST_QUERIES, query_table_note, render

LONG = "x" * 10_000


def note_on(evaluation):
    """Return the note on the table of queries."""
    facts = evaluation.record().facts
    return query_table_note(facts["n_telling"], facts["left_out"], "queries.json")


def table_of(evaluation):
    return json.loads(render("evaluation", to_bytes(evaluation), {"report": False})["queries.json"])


def many(n, measures=("nDCG@10", "AP"), ids=None, name="ridge"):
    labels = np.random.default_rng(0).integers(0, 2, n * 5)
    scores = np.random.default_rng(1).normal(size=n * 5)
    return rk.evaluate(
        labels, scores, qid=np.repeat(np.arange(n) if ids is None else ids, 5), measures=measures, name=name
    )


def test_the_table_has_the_worst_queries_by_the_first_measure_first(small):
    evaluation = small()
    table = table_of(evaluation)
    assert table["columns"] == ["query", *evaluation.measure_names, *evaluation.facts.query_counts]
    expected = evaluation.per_query.sort_values("nDCG@10", kind="stable")
    assert [row[0] for row in table["data"]] == [str(query) for query in expected.index]
    assert [row[1:4] for row in table["data"]] == expected.round(6).to_numpy().tolist()


def test_of_a_measure_that_falls_the_largest_values_are_the_worst(small):
    values = [row[1] for row in table_of(small(measures=["ARP"]))["data"]]
    assert values == sorted(values, reverse=True)


def test_the_table_is_read_by_mlflow(small):
    import mlflow

    with mlflow.start_run() as run:
        content = render("evaluation", to_bytes(small()), {"report": False})["queries.json"]
        mlflow.log_text(content.decode(), "rankeval/dev/queries.json")
        mlflow.set_tag("mlflow.loggedArtifacts", json.dumps([{"path": "rankeval/dev/queries.json", "type": "table"}]))
    frame = mlflow.load_table("rankeval/dev/queries.json", run_ids=[run.info.run_id])
    assert len(frame) == 20
    assert frame["nDCG@10"].is_monotonic_increasing


def test_a_bounded_table_says_so():
    evaluation = many(MOST_QUERIES + 100)
    rows = table_of(evaluation)["data"]
    assert len(rows) == MOST_QUERIES
    assert max(row[1] for row in rows) <= np.partition(evaluation.scores[:, 0], MOST_QUERIES)[MOST_QUERIES] + 1e-6
    assert "The 1,000 worst queries" in note_on(evaluation)
    assert "The queries, the worst first" in note_on(many(3))


def test_queries_that_no_ranking_changes_are_left_out_and_counted():
    labels = [1, 0, 0, 0, 1, 1, 0, 1]
    evaluation = rk.evaluate(labels, range(8), qid=list("aabbccdd"), measures=["ERR(max_rel=1)", "AP"])
    assert [row[0] for row in table_of(evaluation)["data"]] == ["a", "d"]
    assert "Left out: 2 queries" in note_on(evaluation)


def test_a_column_beside_leaves_no_query_in_that_no_ranking_changes():
    """By nDCG nothing can change in b, and by the revenue of its documents something can."""
    rows = {"qid": list("aabb"), "columns": {"price": [1, 2, 3, 4]}}
    measures = ["nDCG@10", "Revenue@1(column='price')"]
    for first, listed in zip(measures, (["a"], ["a", "b"]), strict=True):
        others = [one for one in measures if one != first]
        ev = rk.evaluate([1, 0, 0, 0], [1, 2, 2, 1], **rows, measures=[first, *others])
        assert sorted(row[0] for row in table_of(ev)["data"]) == listed
        assert ("Left out: 1 query" in note_on(ev)) == (listed == ["a"])


def test_the_page_of_a_run_says_what_a_measure_lacks():
    ev = rk.evaluate([0.5, 0.25], [2.0, 1.0], qid=[1, 1], measures="AP")
    assert "AP: no document has a grade of 1 or more" in ev.record().text


def test_without_queries_nothing_is_drawn():
    with pytest.warns(rk.errors.RankevalWarning, match="no query is left"):
        none = rk.evaluate([0, 0], [1.0, 2.0], qid=["a", "a"], measures="AP", no_relevant="skip")
    assert none.n_queries == 0
    assert render("evaluation", to_bytes(none), {}) == {}


def test_the_report_says_role_and_sentence(small):
    drawn = render("evaluation", to_bytes(small()), {"role": "test", "said": "The guard says so."})
    assert set(drawn) == {"queries.json", "report.html"}
    assert "The guard says so." in drawn["report.html"].decode()


def test_slices_stand_in_the_logged_report(small):
    """Their table is made before anything is kept, so an attribute that does not fit leaves no run."""
    ev = small()
    market = pd.Series(["de", "us"] * 10, index=ev.queries, name="market")
    run = rkm.log(ev, slices=market)
    path = mlflow.artifacts.download_artifacts(run_id=run.run_id, artifact_path="rankeval/dev/report.html")
    assert Path(path).read_text(encoding="utf-8") == report_for_evaluation(ev, role="dev", slices=market)
    with pytest.raises(rk.errors.QueryIdError, match=r"^by: no id in common"):
        rkm.log(ev, slices={"other": "us"})
    assert len(mlflow.search_runs(output_format="list")) == 1
    assert not waiting()


def test_the_table_of_rankers_is_that_of_the_file():
    content = b"ranker,dev nDCG@10,note\nridge,0.25,\nbm25,,<b>\n"
    table = json.loads(render("rankers", content, {})["rankers.json"])
    assert table == {
        "columns": ["ranker", "dev nDCG@10", "note"],
        "data": [["ridge", 0.25, None], ["bm25", None, "<b>"]],
    }


def test_drawings_are_equal_for_equal_numbers(small):
    content = rk.compare({"a": small("a", seed=1), "b": small("b", seed=2)}, baseline="a").to_json().encode()
    assert render("comparison", content, {}) == render("comparison", content, {})
    assert set(KINDS) == {"evaluation", "comparison", "rankers"}
