"""The site alone says which run is best, what it is not shown better than, and what it lost."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from projects import LABELS, QID, Page, evaluated, promotion, run_page, three, write
from scipy import stats
from sklearn.linear_model import Lasso, Ridge

import rankeval as rk
from rankeval.shelf.files import stored_in
from rankeval.site import write_site
from rankeval.site.gathering import gathered
from rankeval.site.ranking import boards_of, figures_of, promotions_of


@pytest.fixture
def home(tmp_path):
    return tmp_path / "saved"


def boards(home):
    project = gathered(stored_in(home))
    return boards_of(project.entries, promotions_of(project.runs))


def test_the_index_names_the_best_run_and_what_it_is_not_shown_better_than(home, tmp_path):
    three(home)
    text = Page(write_site(home, tmp_path / "public").index).text
    assert re.search(r"good has the best mean nDCG@10: 0\.\d{4} \[0\.\d{4}, 0\.\d{4}\]", text)
    assert "It is not shown to be better than close." in text
    assert [row[0] for row in Page(tmp_path / "public/index.html").rows[1:4]] == ["good", "close", "poor"]


def test_the_figures_are_those_of_scipy(home):
    """Mean and interval by Student's t, and Holm's adjusted p of paired t tests, decide what is shown."""
    systems = three(home)
    (board,) = boards(home)
    figures = figures_of(board, queries=True)
    scores = {name: evaluation.per_query["nDCG@10"] for name, evaluation in systems.items()}
    for name, values in scores.items():
        low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        assert board.rows[name].value(board.key) == pytest.approx((values.mean(), low, high))
    pvalues = {name: stats.ttest_rel(scores[name], scores["good"]).pvalue for name in ("close", "poor")}
    holm = {name: min(1, p * (2 if p == min(pvalues.values()) else 1)) for name, p in pvalues.items()}
    for name, p in holm.items():
        against = figures.against[name]
        assert against.difference == pytest.approx((scores[name] - scores["good"]).mean())
        assert against.shown == (p <= 0.05)
        assert (against.wins, against.losses) == (
            int((scores[name] > scores["good"]).sum()),
            int((scores[name] < scores["good"]).sum()),
        )
        losses = (scores[name] - scores["good"]).nsmallest(3)
        assert [query for query, _, _ in against.lost[:3]] == losses.index.tolist()
    assert figures.against["good"].baseline == "close"
    assert figures.against["good"].difference == -figures.against["close"].difference
    ranks = rk.rank_intervals(systems, measure="nDCG@10").set_index("system")
    for name, ends in figures.ranks.items():
        assert ends == tuple(ranks.loc[name, ["rank_low", "rank_high"]])


@pytest.mark.parametrize("queries", [False, True])
def test_lost_queries_and_notes_stand_on_pages_only_if_they_are_wanted(home, tmp_path, queries):
    three(home)
    rk.save(evaluated("noted", 0.9), home / "noted", role="test", note="Mind query-7.")
    public = write_site(home, tmp_path / "public", queries=queries).index.parent
    pages = [path.read_text("utf-8") for path in public.rglob("*") if path.is_file()]
    assert any("query-" in page for page in pages) == queries
    assert ("Queries that lost most against" in Page(run_page(public, "good")).text) == queries
    assert ("Mind query-7." in Page(run_page(public, "noted")).text) == queries


def test_runs_on_other_data_roles_or_conventions_have_leaderboards_of_their_own(home, tmp_path):
    three(home)
    half = np.isin(QID, [f"query-{place}" for place in range(20)])
    scores = LABELS[half] + 0.5
    rk.save(rk.evaluate(LABELS[half], scores, qid=QID[half], measures="AP"), home / "half", role="test")
    rk.save(evaluated("on dev"), home / "dev", role="dev")
    rk.save(evaluated("worst", convention="ranx"), home / "ranx", role="test")
    found = boards(home)
    assert [len(board.rows) for board in found] == [3, 1, 1, 1]
    contents = {(board.head.facts.role, board.head.facts.judgments, board.head.card) for board in found}
    assert len(contents) == 4
    text = Page(write_site(home, tmp_path / "public").index).text
    assert "Values of different leaderboards are not comparable." in text


def test_a_promotion_makes_the_champion_that_runs_are_compared_with(home, tmp_path):
    """The version that was accepted last counts, a rejected one does not, and a rollback names no run."""
    three(home)
    write(home, "promotions/1", promotion(1, "poor"))
    write(home, "promotions/2", promotion(2, "close"))
    write(home, "promotions/3", promotion(3, "good", "rejected"))
    (board,) = boards(home)
    assert (board.first, board.champion) == ("good", "close")
    public = tmp_path / "public"
    text = Page(write_site(home, public).index).text
    assert "The champion is close" in text
    assert "Against the champion" in text
    assert "No promotion moved" not in text
    assert "good against the champion, close" in Page(run_page(public, "good")).text
    rollback = promotion(1, "", "rolled back", started=1.8e9)
    write(home, "promotions/4", replace(rollback, kind="rollback"))
    (board,) = boards(home)
    assert board.champion == "poor"


def test_without_a_promotion_the_choice_of_the_best_is_said(home, tmp_path):
    three(home)
    text = Page(write_site(home, tmp_path / "public").index).text
    assert "No promotion moved one of these rows" in text
    assert "chosen among 3 by the same scores" in text


def test_a_measure_of_which_less_is_better_puts_the_least_first(home):
    for name, noise in (("good", 0.5), ("poor", 3.0)):
        rk.save(evaluated(name, noise, measures="ARP"), home / name)
    (board,) = boards(home)
    figures = figures_of(board, queries=True)
    assert board.first == min(board.rows, key=lambda name: board.rows[name].value("ARP")[0])
    other = next(name for name in board.rows if name != board.first)
    assert figures.against[other].difference > 0
    assert all(own > before for _, before, own in figures.against[other].lost)


def test_systems_of_one_name_are_told_apart_by_their_places(home):
    rk.save(evaluated("bm25", 0.5), home / "a", role="test")
    rk.save(evaluated("bm25", 0.9, seed=2), home / "b", role="test")
    (board,) = boards(home)
    assert {*board.rows} == {"bm25 (a)", "bm25 (b)"}


def test_a_look_of_the_guard_gives_its_evaluations_their_standing(home, tmp_path):
    data = rk.datasets.make_ranking(60, rng=0)
    guard = rk.Guard("shop", ledger=tmp_path / "ledger")
    test = guard.register("months", data)
    noise = np.random.default_rng(0).normal(size=len(data.y))
    for look, weight in enumerate((0.2, 2.0), start=1):
        scores = {"line": data.X[:, 0], "new": data.X[:, 0] + weight * noise}
        opened = guard.open(guard.freeze(test, systems=scores, baseline="line"))
        rk.save(opened, home / f"look {look}")
    (board,) = boards(home)
    standings = {name: entry.standing for name, entry in board.rows.items()}
    assert set(standings.values()) == {"confirmatory, look 1", "exploratory, look 2"}
    text = Page(write_site(home, tmp_path / "public").index).text
    assert "Decisions and looks" in text
    assert "exploratory; 2 looks of project shop at months" in text


def test_an_evaluation_in_a_comparison_stands_on_its_leaderboard_once(home):
    systems = three(home)
    rk.save(rk.compare({"old": systems["poor"], "new": systems["good"]}), home / "cmp", role="test")
    rk.save(rk.compare({"x": evaluated("x", 0.8), "y": systems["good"]}), home / "cmp2", role="test")
    (board,) = boards(home)
    assert sorted(board.rows) == ["close", "good", "poor", "x"]


def test_rankers_of_cross_validations_are_rows_with_pages(home, tmp_path):
    data = rk.datasets.make_ranking(30, 8, rng=0)
    rk.save(rk.cross_validate({"ridge": Ridge(), "lasso": Lasso()}, data, cv=3), home / "cvs")
    (board,) = boards(home)
    assert sorted(board.rows) == ["lasso", "ridge"]
    public = tmp_path / "public"
    assert write_site(home, public).n_pages == 4
    assert "Cross-validation" in Page(run_page(public, "ridge")).text


def test_what_cannot_be_compared_is_a_note(home, tmp_path):
    for name in ("a", "b"):
        evaluation = evaluated(name)
        own = replace(evaluation, scores=np.full_like(evaluation.scores, np.nan)) if name == "b" else evaluation
        rk.save(own, home / name, role="test")
    text = Page(write_site(home, tmp_path / "public").index).text
    assert "1 evaluation without nDCG@10 cannot be ranked." in text


def test_the_numbers_of_a_board_do_not_depend_on_the_order_of_folders(home):
    three(home / "x")
    three(home / "y" / "z")
    first = boards(home / "x")[0]
    other = boards(home / "y")[0]
    assert figures_of(first, queries=False) == figures_of(other, queries=False)
    assert pd.Series(list(first.rows)).equals(pd.Series(list(other.rows)))
