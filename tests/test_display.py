"""What a session prints of a result: a repr fits a terminal, says what the result is, and is quick."""

from __future__ import annotations

import importlib
import pkgutil
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow
from rankeval import tracking
from rankeval._display import LINES, WIDTH, Displayed, Page, View
from rankeval.experiment.recipe import ExperimentResult
from rankeval.guard.checks import Finding
from rankeval.render.tables import Table
from rankeval.shelf.kinds import KINDS, class_of
from rankeval.site.gathering import Fault
from rankeval.site.publishing import Site
from rankeval_mlflow.promotion.explaining import Standing
from rankeval_mlflow.promotion.promoting import Promotion
from rankeval_mlflow.reading.leaderboards import COLUMNS, OTHER_COLUMNS, Leaderboard
from rankeval_mlflow.recording import LoggedRanker

LONG = "a system of <b>many</b> words and a_word_without_any_space_in_it_" + "x" * 60
QUERIES, ROWS = 40, 6


def assert_fits(result):
    """Fail unless the text of a result fits a terminal, and print gives the same."""
    started = time.process_time()
    text = repr(result)
    assert time.process_time() - started < 2
    lines = text.split("\n")
    assert max(map(cell_len, lines)) <= WIDTH, text
    assert len(lines) <= LINES + 2, text
    assert text == str(result)
    assert "that cannot be shown" not in text
    assert "<b>" not in result._repr_html_()


def evaluation(seed, name=LONG):
    rng = np.random.default_rng(seed)
    labels = np.random.default_rng(0).integers(0, 3, QUERIES * ROWS)
    qid = np.repeat([f"query {place}" for place in range(QUERIES)], ROWS)
    cuts = [f"nDCG@{cut}" for cut in range(1, 41)]
    return rk.evaluate(labels, labels + rng.normal(size=labels.size), qid=qid, measures=["AP", *cuts], name=name)


def of_evaluation():
    run = {f"q{query}": {f"d{place}": 1 / (place + 1) for place in range(9)} for query in range(40)}
    other = {query: dict(reversed(documents.items())) for query, documents in run.items()}
    qrels = {query: {"d1": 1, "d5": 2} for query in run}
    systems = {f"{LONG}{seed}": evaluation(seed) for seed in range(9)}
    first = next(iter(systems.values()))
    parts = pd.Series(["a", "b"] * (QUERIES // 2), index=first.queries, name=LONG)
    compared = rk.compare(systems, baseline=f"{LONG}0", measures=["AP", "nDCG@3"], by=parts)
    truth = np.random.default_rng(0).integers(0, 2, 200)
    rows = {"qid": np.repeat(np.arange(20), 10)}
    yield from (first, compared, compared.best, rk.compare(systems, measures="AP"))
    yield rk.Qrels.from_any(qrels)
    yield rk.Run.from_dict(run, name=LONG)
    yield rk.rank_biased_overlap(run, {**other, LONG: {"d": 1.0}})
    yield rk.analysis.contingency_table(qrels, run)
    yield rk.curves.precision_recall(truth, np.arange(200.0), **rows)
    yield rk.curves.roc(truth, np.arange(200.0), **rows)
    yield rk.explain_difference([3, 2, 3, 0], [4, 3, 2, 1], qid=[0] * 4, measure="nDCG", values=("0.9778", "0.9595"))
    yield rk.testing.assert_not_worse(first, first, margin=0.1, measure=["AP", "nDCG@3"])
    yield rk.significance.paired_test("t", [0.1, 0.3, 0.2])
    yield rk.significance.paired_test("t", np.random.default_rng(0).random((9, 40)))
    shards = [{"x": evaluation(seed).per_query[["AP"]], "y": evaluation(seed + 1).per_query[["AP"]]} for seed in (0, 2)]
    yield rk.analysis.anova({LONG: shards[0], "b": shards[1]})


def of_training():
    data = rk.datasets.make_ranking(30, 6, rng=0)
    cv = rk.cross_validate(Ridge(), data, cv=3, measures=["AP", "nDCG@10", "P@5", "RR", "nDCG@20"])
    several = rk.cross_validate({LONG: Ridge(), "b": Ridge(9.0)}, data, cv=2, measures="AP")
    curve = rk.learning_curve(Ridge(), data, sizes=[5, 10, 20], measures="AP", cv=3)
    yield from (data, cv, several, curve, cv.diagnose(), rk.dev_test_split(data, test_size=0.5, guard=None))


def of_guard(folder):
    data = rk.datasets.make_ranking(60, 6, rng=0)
    guard = rk.Guard(LONG, ledger=folder / "a_folder_of_a_rather_long_name" / LONG[:80].replace("/", ""))
    test = guard.register(LONG, data)
    systems = {f"{LONG}{place}": data.X[:, place] for place in range(5)}
    plan = guard.freeze(test, systems=systems, baseline=f"{LONG}0")
    gate = guard.gate(test, baseline=-data.y, budget=10)
    yield from (guard, test, plan, gate, gate.decide(LONG, data.y), guard.status(data), guard.open(plan))
    yield Finding("RG101", "note", LONG * 3)


def of_judging_and_clicks():
    runs = {LONG: {"q1": ["d7", "d9"]}, "rm3": {"q1": ["d7", "d3"]}}
    judges = {name: {"q": {"d1": 1, "d2": 0}} for name in (*"abcdefghijklmnopqrstuvwxyz", LONG)}
    people = pd.DataFrame({"P@5": np.linspace(0.2, 1, 8)}, index=range(8))
    machine = pd.DataFrame({"P@5": np.resize(np.linspace(0.4, 1, 10), 400)}, index=range(400))
    rows = {"impression": np.repeat(np.arange(99), 2), "position": [1, 2] * 99, "qid": "q", "docid": ["a", "b"] * 99}
    yield rk.judging.pool(runs)
    yield rk.judging.consensus(judges)
    yield rk.judging.plan(rk.judging.calibrate({"bm25": people}, {"bm25": machine}), width=0.1)
    yield rk.online.ClickLog.from_frame(pd.DataFrame({**rows, "clicked": np.arange(198) % 3 == 0}))
    yield rk.online.looks_plan(50)
    yield rk.online.Interleaver("team_draft").show({LONG: ["d1", "d2"], "B": ["d1"]}, impression=LONG)


def of_tracking(folder):
    comparison = rk.compare({LONG: evaluation(0), "b": evaluation(1)}, measures="AP")
    run = tracking.TrackedRun("0" * 32, (), f"mlflow ui --backend-store-uri {LONG}")
    data = tracking.LoggedData(LONG, "0" * 64, "test", 10, 2, LONG)
    board = dict.fromkeys(COLUMNS, [1.0] * 90) | {"rank": range(90), "system": [LONG] * 90, "run_id": ["0" * 32] * 90}
    board["logged_at"] = [pd.Timestamp("2026-01-01", tz="UTC")] * 90
    others = pd.DataFrame([["0" * 32, LONG, "other data"]], columns=list(OTHER_COLUMNS))
    floors = pd.DataFrame({name: [1.0] for name in ("slice", "n_queries", "mean_holder", "gain", "floor")})
    yield from (run, data, tracking.RunRecord(LONG, data=(data,)), tracking.StoredRun(LONG, read=dict))
    yield rk.Record("evaluation", LONG, LONG, notes=(LONG,) * 9)
    yield LoggedRanker("m-1", f"models:/{LONG}", run, LONG, "3")
    yield Leaderboard(pd.DataFrame(board), others, "AP", LONG, "0" * 64, "test", "rankeval", 99, notes=(LONG,) * 9)
    yield Standing("rejected", LONG, LONG, "ask", pd.DataFrame({"time": [1], "decision": [LONG]}))
    yield Promotion(LONG, "champion", "3", "moved", LONG, "2", comparison, floors)
    yield Site(Path(LONG), 3, (Fault(LONG, LONG),) * 9)
    facts = SimpleNamespace(name=LONG, comparison=comparison)
    yield ExperimentResult(None, facts, Path(LONG))
    yield rk.datasets.BeirData({"q1": LONG}, rk.Qrels.from_any({"q1": {"d1": 1}}), folder / LONG[:60])


def results(folder):
    with warnings.catch_warnings(action="ignore"):  # some are as small as nobody should have them
        for part in (of_evaluation(), of_training(), of_judging_and_clicks(), of_guard(folder), of_tracking(folder)):
            yield from part


def test_a_repr_fits(tmp_path):
    """Of every class of results, with names, paths and numbers of rows that are too long for a terminal."""
    tried = {class_of(kind) for kind in KINDS}  # tests/shelf tries these
    for result in results(tmp_path):
        tried.add(type(result))
        assert_fits(result)
    for package in (rk, rankeval_mlflow):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    kinds = [*Displayed.__subclasses__()]
    for kind in kinds:
        kinds += kind.__subclasses__()
    ours = {kind for kind in kinds if not kind.__subclasses__() and kind.__module__.startswith("rankeval")}
    assert {kind.__name__ for kind in ours - tried} == set()


def test_a_repr_never_raises_though_the_result_is_half_made():
    assert repr(object.__new__(rk.Evaluation)) == "<Evaluation that cannot be shown: AttributeError>"


def test_a_table_keeps_its_first_columns_and_rows_and_says_what_is_not_shown():
    frame = pd.DataFrame({f"number {place}": np.arange(100) + 0.25 for place in range(20)})
    text = View(["Many numbers."], [Table(frame, notes=["a note"])]).to_text()
    shown, missing = text.split("\nnot shown: ")
    columns = shown.splitlines()[2].split().count("number")
    assert columns == 9, "they have the width of their numbers"
    assert shown.splitlines()[-1] == f"... {100 - shown.count('.2500') // columns} more rows"
    assert " ".join(missing.split()) == ", ".join(f"number {place}" for place in range(9, 20)) + " * a note"
    assert len(text.splitlines()) == LINES
    assert View([], [Table(frame)]).to_html().count("<td") == 2000


@pytest.mark.parametrize("text", ["検索" * 60, "a " * 200, "x" * 300, "one\ntwo"])
def test_lines_are_as_wide_as_a_terminal_shows_them(text):
    for view in (View([text], notes=[text]), View(tables=[Table(pd.DataFrame({"text": [text], "n": [1.5]}))])):
        assert max(map(cell_len, view.to_text().split("\n"))) <= WIDTH


def test_a_page_is_displayed_in_a_frame_of_its_own():
    page = Page("<p>&amp;</p>")
    assert page == "<p>&amp;</p>"
    assert 'srcdoc="&lt;p&gt;&amp;amp;&lt;/p&gt;"' in page._repr_html_()
    assert len(repr(page)) <= WIDTH
