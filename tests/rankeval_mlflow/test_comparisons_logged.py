"""log and compare_runs: a comparison goes in whole, and runs are compared as their evaluations are."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import mlflow
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from typer.testing import CliRunner

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.comparison.concluding import comparison_of_one
from rankeval.comparison.design import without_adjusted
from rankeval.comparison.record import with_notes
from rankeval.contamination import refusal
from rankeval.errors import ConventionMismatch, InvalidInput
from rankeval.evaluation import from_bytes
from rankeval.report.html import typeset
from rankeval.tracking import host


@pytest.fixture
def systems(small):
    return {name: small(name, seed=seed) for seed, name in enumerate(("bm25", "ltr@2", "<b>bert</b>"))}


@pytest.fixture
def comparison(systems):
    return with_notes(rk.compare(systems, baseline="bm25"), "exploratory: 3 looks | <i>")


def artifact(client, run_id, path, tmp_path):
    return Path(client.download_artifacts(run_id, path, str(tmp_path))).read_bytes()


def test_one_system_has_its_mean_and_interval_as_metrics(systems, assert_same, client, tmp_path):
    """What a plan of one system opens: no difference, and everything else as for a comparison."""
    one = comparison_of_one("ltr@2", systems["ltr@2"])
    run = client.get_run(rkm.log(one).run_id)
    row = one.means.iloc[0]
    for column, end in {"mean": "", "ci_low": "_ci_low", "ci_high": "_ci_high"}.items():
        assert run.data.metrics[f"mean/nDCG_at_10{end}"] == row[column]
    assert run.data.params["system"] == "ltr@2"
    assert len(run.data.metrics) == 3 * len(one.means)
    assert run.data.tags["rankeval.headline"] == one.headline
    content = artifact(client, run.info.run_id, "rankeval/comparison/comparison.json", tmp_path).decode()
    assert_frame_equal(rk.Comparison.from_json(content).means, one.means)
    scores = artifact(client, run.info.run_id, "rankeval/comparison/evaluations/ltr_at_2.parquet", tmp_path)
    assert_same(from_bytes(scores), systems["ltr@2"])


def test_a_comparison_by_users_speaks_of_users(client, tmp_path):
    """Headline, description and page; the unit is a parameter, and that of a comparison by queries is none."""
    credit = pd.DataFrame({"AP": [0.1, 0.4, 0.3, 0.2]}, index=pd.Index(list("abcd"), name="user"))
    systems = {"A": credit, "B": credit.assign(AP=[0.4, 0.6, 0.6, 0.6])}
    run = client.get_run(rkm.log(rk.compare(systems, baseline="A", unit="user")).run_id)
    page = artifact(client, run.info.run_id, "rankeval/comparison/report.html", tmp_path).decode()
    content = artifact(client, run.info.run_id, "rankeval/comparison/comparison.json", tmp_path).decode()
    assert run.data.params["unit"] == rk.Comparison.from_json(content).settings.unit == "user"
    for text in (run.data.tags["rankeval.headline"], run.data.tags["mlflow.note.content"], page.partition("<body")[2]):
        assert "4 users" in text
        assert "quer" not in text.lower()
    assert "unit" not in client.get_run(rkm.log(rk.compare(systems)).run_id).data.params


@pytest.mark.further
def test_releases_are_one_column_of_the_table_of_runs(systems):
    """Each against the one before; the names are parameters, and the comparison comes back whole."""
    names = list(systems)
    pairs = [(old, new) for old in names for new in names if old != new]
    compared = {pair: rk.compare({name: systems[name] for name in pair}, baseline=pair[0]) for pair in pairs}
    runs = {pair: rkm.log(one).run_id for pair, one in compared.items()}
    found = mlflow.search_runs().set_index("run_id")
    metrics = {name for name in found if name.startswith("metrics.")}
    assert len(metrics) == 4 * 3, "four of each measure, and none of each pair"
    for (old, new), run_id in runs.items():
        row, table = found.loc[run_id], compared[old, new].table
        assert (row["params.baseline"], row["params.system"]) == (old, new)
        assert row["metrics.difference/nDCG_at_10"] == table["difference"].iloc[0]
        assert row["metrics.difference/nDCG_at_10_ci_low"] == table["ci_low_adjusted"].iloc[0]
        assert_frame_equal(rkm.load_comparison(run_id).table, table)


def test_p_values_that_are_not_given_are_not_logged(comparison, client):
    exploratory = replace(comparison, table=without_adjusted(comparison.table))
    metrics = client.get_run(rkm.log(exploratory).run_id).data.metrics
    assert not [key for key in metrics if key.endswith("p_adjusted")]


def test_notes_stand_in_description_and_report_and_all_is_escaped(comparison, client, tmp_path):
    run_id = rkm.log(comparison).run_id
    page = artifact(client, run_id, "rankeval/comparison/report.html", tmp_path).decode()
    note = client.get_run(run_id).data.tags["mlflow.note.content"]
    assert "exploratory: 3 looks" in page
    assert "exploratory: 3 looks" in note
    assert "<b>" not in page
    assert "<i>" not in page
    assert re.findall("<script[^>]*>", page) == ['<script type="application/json" id="queries-data">', "<script>"]


def test_the_headline_is_a_tag_and_stands_in_description_and_report(systems, client, tmp_path):
    comparison = rk.compare(systems, baseline="bm25", measures="AP")
    run_id = rkm.log(comparison).run_id
    tags = client.get_run(run_id).data.tags
    assert tags["rankeval.headline"] == comparison.headline
    assert comparison.headline.split(" [")[0] in tags["mlflow.note.content"].replace("\\", "")
    page = artifact(client, run_id, "rankeval/comparison/report.html", tmp_path).decode()
    assert all(escape(typeset(finding)) in page for finding in comparison.findings)
    rkm.log(comparison, run_id, name="again")
    assert client.get_run(run_id).data.tags["rankeval.again.headline"] == comparison.headline


def test_the_page_has_every_query_with_its_text_though_its_file_has_no_scores(systems, client, tmp_path):
    """The texts go to the page alone, and only if they are given."""
    comparison = rk.compare(systems, baseline="bm25", measures="AP")
    needs = {query: f"need of {query} <b>" for query in systems["bm25"].queries}
    pages = []
    for name, given in (("bare", None), ("worded", needs)):
        run_id = rkm.log(comparison, name=name, needs=given).run_id
        pages.append(artifact(client, run_id, f"rankeval/{name}/report.html", tmp_path / name).decode())
    bare, worded = pages
    assert "need of" not in bare
    for query in systems["bm25"].queries[:3]:
        assert f'"need of {query} \\u003cb\\u003e"' in worded
    rows = json.loads(re.search('id="queries-data">(.*?)</script>', bare, re.DOTALL)[1])["rows"]
    assert [row[0] for row in rows] == [str(query) for query in systems["bm25"].queries]


def test_the_same_comparison_twice_is_one_and_another_needs_another_name(comparison, systems, client):
    run_id = rkm.log(comparison).run_id
    rkm.log(comparison, run_id)
    other = rk.compare(systems, baseline="bm25", test="randomization")
    with pytest.raises(InvalidInput, match="already has a piece called 'comparison'"):
        rkm.log(other, run_id)
    rkm.log(other, run_id, name="randomization")
    assert {file.path for file in client.list_artifacts(run_id, "rankeval")} == {
        "rankeval/comparison",
        "rankeval/randomization",
    }


def test_runs_are_compared_as_their_evaluations_are(systems):
    runs = {name: rkm.log(evaluation).run_id for name, evaluation in systems.items()}
    expected = rk.compare(systems, baseline="bm25", test="randomization").table
    found = rkm.compare_runs(runs.values(), baseline=runs["bm25"], test="randomization")
    assert_frame_equal(found.table, expected)
    assert_frame_equal(rkm.compare_runs(runs.values(), baseline="bm25", test="randomization").table, expected)


def test_runs_without_names_of_their_own_go_by_their_ids(small):
    runs = [rkm.log(small("same", seed=seed)).run_id for seed in range(2)]
    assert list(rkm.compare_runs(runs).evaluations) == runs


def test_runs_under_different_conventions_are_not_compared(small):
    runs = [
        rkm.log(small("one")).run_id,
        rkm.log(small("two", convention="trec_eval-9.0.8", docid=list(range(8)) * 20)).run_id,
    ]
    with pytest.raises(ConventionMismatch, match="must not be compared"):
        rkm.compare_runs(runs)


@pytest.fixture
def opened(tmp_path):
    """Open a plan under a guard with a ledger of its own."""
    data = rk.datasets.make_ranking(60, rng=0)
    guard = rk.Guard("shop", ledger=tmp_path / "ledger")
    plan = guard.freeze(guard.register("held-out", data), systems={"a": data.X[:, 0], "b": data.X[:, 1]}, baseline="a")
    yield guard, guard.open(plan)
    refusal.forget()


def test_what_the_guard_says_of_an_opening_is_in_tags_and_in_the_page(opened, client, tmp_path):
    guard, comparison = opened
    run_id = rkm.log(comparison).run_id
    tags = client.get_run(run_id).data.tags
    guarded = {key.removeprefix("rankeval."): value for key, value in tags.items() if "guard" in key or "stand" in key}
    assert guarded == {
        "standing": "confirmatory",
        "guard.ledger": str(tmp_path / "ledger"),
        "guard.head": guard.head,
    }
    content = artifact(client, run_id, "rankeval/comparison/manifest.json", tmp_path)
    facts = json.loads(content)["facts"]["comparison"]["guard"]
    assert (facts["looks"], facts["elsewhere"]) == (1, 0)
    assert guard.plan(facts["plan"]).baseline == "a"
    (used,) = client.get_run(run_id).inputs.dataset_inputs
    assert {tag.value for tag in used.tags if tag.key == "mlflow.data.context"} == {"test"}
    assert guard.head in artifact(client, run_id, "rankeval/comparison/report.html", tmp_path).decode()
    rkm.log(comparison, run_id, name="again")
    assert client.get_run(run_id).data.tags["rankeval.again.guard.head"] == guard.head


def test_the_head_in_a_run_shows_that_the_ledger_lost_its_end(opened, systems, tmp_path):
    guard, comparison = opened
    run_id = rkm.log(comparison).run_id

    def verify(*arguments):
        return CliRunner().invoke(host("mlflow").commands(), ["verify-guard", *arguments])

    found = verify(run_id)
    assert (found.exit_code, guard.head in found.output) == (0, True)
    (tmp_path / "ledger" / f"{guard.head}.json").unlink()
    with pytest.raises(rk.errors.GuardRefusal, match=f"run {run_id}: the head"):
        verify(run_id)
    with pytest.raises(rk.errors.GuardRefusal, match="nowhere is gone"):
        verify(run_id, "--ledger", str(tmp_path / "nowhere"))
    unguarded = rkm.log(rk.compare(systems, measures="AP")).run_id
    assert "names no head" in str(verify(unguarded).exception)


def test_runs_and_their_page_say_what_unjudged_documents_could_change(client, tmp_path):
    """Evaluations keep it, so that runs are compared as the evaluations were."""
    qrels = {f"q{q}": {f"d{d}": int((q + d) % 3 == 0) for d in range(10)} for q in range(30)}
    pooled = {q: {d: float(-place) for place, d in enumerate(grades)} for q, grades in qrels.items()}
    new = {q: {**scores, **{f"n{k}": 5.0 + k for k in range(1 + int(q[1:]) % 4)}} for q, scores in pooled.items()}
    evs = {
        name: rk.evaluate(qrels, run, measures=["P@5", "nDCG@5"], name=name)
        for name, run in (("a", pooled), ("b", new))
    }
    expected = rk.compare(evs, baseline="a", unjudged="skip")
    assert expected.bounds["shares_differ"].all()
    runs = [rkm.log(ev, role="dev").run_id for ev in evs.values()]
    found = rkm.compare_runs(runs, baseline=runs[0], unjudged="skip")
    assert_frame_equal(found.bounds, expected.bounds)
    assert_frame_equal(found.condensed, expected.condensed)
    run = client.get_run(rkm.log(found).run_id)
    page = artifact(client, run.info.run_id, "rankeval/comparison/report.html", tmp_path).decode()
    assert "What unjudged documents could change" in page
    assert "Without unjudged documents: Paired t test" in page
    assert f"{expected.bounds['upper'].iloc[0]:.4f}" in page
    note = run.data.tags["mlflow.note.content"]
    assert "What unjudged documents could change" in note
    assert "Without unjudged documents" in note
    evaluated = artifact(client, runs[1], "rankeval/dev/report.html", tmp_path).decode()
    assert "judged within the cut-off" in evaluated
