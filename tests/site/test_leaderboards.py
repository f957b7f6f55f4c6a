"""The site alone says which run is best, what it is not shown better than, and what it lost."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from projects import LABELS, N_QUERIES, QID, Page, evaluated, promotion, run_page, three, write
from scipy import stats
from sklearn.linear_model import Lasso, Ridge

import rankeval as rk
from rankeval.errors import RankevalWarning
from rankeval.render.tables import DASH
from rankeval.shelf.files import stored_in
from rankeval.site import ranking, write_site
from rankeval.site.gathering import gathered
from rankeval.site.ranking import boards_of, figures_of, promotions_of


@pytest.fixture
def home(tmp_path):
    return tmp_path / "saved"


def headings(index):
    """Return the headings of the leaderboards."""
    found = re.findall("<h2>((?:test|dev): .*?)</h2>", index.read_text("utf-8"))
    return [re.sub("<[^>]*>", "", heading) for heading in found]


def boards(home):
    project = gathered(stored_in(home))
    return boards_of(project.entries, promotions_of(project.runs))


def test_the_index_names_the_best_run_and_what_it_is_not_shown_better_than(home, tmp_path):
    three(home)
    text = Page(write_site(home, tmp_path / "public").index).text
    assert re.search(r"good has the best mean nDCG@10: 0\.\d{4} \[0\.\d{4}, 0\.\d{4}\]", text)
    assert "It is not shown to be better than close." in text
    assert [row[0] for row in Page(tmp_path / "public/index.html").rows[1:4]] == ["good", "close", "poor"]


def max_t_of_all_pairs(scores):
    """Return the adjusted p of each pair and the half width in standard errors, by 20,000 sign flips of NumPy."""
    pairs = list(combinations(scores, 2))
    d = np.column_stack([scores[system] - scores[baseline] for baseline, system in pairs])
    signs = np.random.default_rng(5).choice([-1.0, 1.0], (20_000, len(d)))

    def t_of(columns):
        mean, square = signs @ columns / len(d), (columns**2).mean(axis=0)
        return np.abs(mean) / np.sqrt((square - mean**2) / (len(d) - 1))

    observed = np.abs(d.mean(axis=0)) / stats.sem(d)
    order, drawn = np.argsort(-observed), t_of(d)
    p, above = np.empty(len(pairs)), 0.0
    for place, pair in enumerate(order):  # step down
        above = max(above, (drawn[:, order[place:]].max(axis=1) >= observed[pair] - 1e-9).mean())
        p[pair] = above
    reach = np.quantile(t_of(d - d.mean(axis=0)).max(axis=1), 0.95)
    return {frozenset(pair): (value, reach) for pair, value in zip(pairs, p, strict=True)}


def test_the_figures_are_those_of_scipy(home):
    """Mean and interval by Student's t; verdict, p, interval and ranks by max-T over all pairs."""
    systems = three(home)
    (board,) = boards(home)
    figures = figures_of(board, queries=True)
    scores = {name: evaluation.per_query["nDCG@10"] for name, evaluation in systems.items()}
    for name, values in scores.items():
        low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        assert board.rows[name].value(board.key) == pytest.approx((values.mean(), low, high))
    by_pair = max_t_of_all_pairs(scores)
    for name in ("close", "poor"):
        against, d = figures.against[name], scores[name] - scores["good"]
        p, reach = by_pair[frozenset((name, "good"))]
        assert against.difference == pytest.approx(d.mean())
        assert against.p_adjusted == pytest.approx(p, abs=0.02)
        assert against.ci_high_adjusted - d.mean() == pytest.approx(reach * stats.sem(d), rel=0.03)
        assert against.shown == (against.p_adjusted <= 0.05)
        assert (against.wins, against.losses) == (int((d > 0).sum()), int((d < 0).sum()))
        assert [query for query, _, _ in against.lost[:3]] == d.nsmallest(3).index.tolist()
    assert figures.against["good"].baseline == "close"
    assert figures.against["good"].difference == -figures.against["close"].difference
    ranks = rk.rank_intervals(systems, measure="nDCG@10").set_index("system")
    for name, ends in figures.ranks.items():
        assert ends == tuple(ranks.loc[name, ["rank_low", "rank_high"]])


@pytest.mark.parametrize("champion", [None, "s3"])
def test_headline_shading_colour_and_ranks_say_the_same(home, tmp_path, champion):
    for number in range(8):
        rk.save(evaluated(f"s{number}", 0.6 + 0.12 * number), home / f"{number}", role="test")
    if champion:
        write(home, "promotion", promotion(1, champion))
    (board,) = boards(home)
    assert board.champion == champion
    figures = figures_of(board, queries=False)
    assert figures.ranks[board.first] == (1, 1 + len(figures.tied))
    shown = {name for name, row in figures.against.items() if row.shown and name != board.reference}
    assert shown
    if not champion:
        assert figures.tied == [name for name in board.rows if name not in {board.first, *shown}]
    html = write_site(home, tmp_path / "public").index.read_text("utf-8")
    rows = re.findall(r'<tr class="(tied|other)"><th scope="row"><a[^>]*><bdi>([^<]*)</bdi></a>(.*?)</tr>', html)
    text = Page(tmp_path / "public/index.html").text
    if champion:
        verdict = "not shown" if champion in figures.tied else "shown"
        assert f"{board.first} is {verdict} to be better." in text
    assert {name for kind, name, _ in rows if kind == "tied"} == {board.first, *figures.tied}
    assert {name for _, name, cells in rows if re.search('class="number (better|worse)"', cells)} == shown


def test_rows_below_the_first_fifty_are_not_compared_and_counted(home, monkeypatch):
    monkeypatch.setattr(ranking, "MOST_RANKED", 3)
    for number in range(6):
        rk.save(evaluated(f"s{number}", 0.5 + number), home / f"{number}", role="test")
    write(home, "promotion", promotion(1, "s5"))
    (board,) = boards(home)
    figures = figures_of(board, queries=False)
    names = [*board.rows]
    assert board.champion == names[-1] == "s5"
    assert [*figures.ranks] == names[:3]
    assert {*figures.against} == {*names[:3], "s5"}
    assert "2 rows below the first 3 are not compared" in figures.notes


def test_the_frozen_baseline_is_the_reference_of_its_look(home, tmp_path):
    """It was not chosen by these scores: no warning, and the interval is that of the look."""
    data = rk.datasets.make_ranking(60, rng=0)
    guard = rk.Guard("shop", ledger=tmp_path / "ledger")
    noise = np.random.default_rng(0).normal(size=len(data.y))
    scores = {"line": data.X[:, 0], "new": data.X[:, 0] + 0.2 * noise}
    opened = guard.open(guard.freeze(guard.register("months", data), systems=scores, baseline="line"))
    rk.save(opened, home / "look")
    rk.save(opened.evaluations["line"], home / "line", role="test")
    (board,) = boards(home)
    assert (board.reference, board.champion) == ("line", None)
    against = figures_of(board, queries=False).against["new"]
    for column in ("difference", "ci_low_adjusted", "ci_high_adjusted", "p_adjusted"):
        assert getattr(against, column) == pytest.approx(opened.table[column].item())
    page = Page(write_site(home, tmp_path / "public").index)
    assert "chosen among" not in page.text
    assert "Against the frozen baseline" in page.text
    assert "Other results" not in page.text
    assert any("Comparison, confirmatory" in cell for row in page.rows for cell in row)


def test_boards_of_one_name_say_what_differs(home, tmp_path):
    rk.save(evaluated("a"), home / "a", role="test", data="shop")
    rk.save(evaluated("b", convention="ranx"), home / "b", role="test", data="shop")
    rk.save(evaluated("c", ties="docid"), home / "c", role="dev", data="shop")
    rk.save(evaluated("d"), home / "d", role="dev", data="shop")
    found = headings(write_site(home, tmp_path / "public").index)
    assert sorted(found) == [
        "dev: shop, convention: rankeval+, ties: docid",
        "dev: shop, convention: rankeval, ties: expected",
        "test: shop, convention: rankeval, ties: expected, missing: empty",
        "test: shop, convention: ranx+, ties: stable, missing: error",
    ]


def test_a_board_of_rows_is_told_from_one_of_judgments(home, tmp_path):
    """The rule that differs is named, in words and without a digest."""
    data = rk.datasets.make_ranking(20, 8, rng=0)
    docids = [f"d{place}" for place in range(len(data.y))]
    rows = pd.DataFrame({"qid": data.qid.astype(str), "docid": docids, "rel": data.y, "score": data.X[:, 0]})
    qrels, run = (
        {qid: dict(zip(own["docid"], own[column].tolist(), strict=True)) for qid, own in rows.groupby("qid")}
        for column in ("rel", "score")
    )
    rk.save(rk.evaluate(qrels, run, measures="nDCG@10", name="run"), home / "run", data="shop-dev")
    rk.save(rk.cross_validate(Ridge(), data, cv=3), home / "cv", data="shop-dev")
    found = headings(write_site(home, tmp_path / "public").index)
    assert {heading.partition(", ")[2] for heading in found} == {
        "judgments: rows of the ranking",
        "judgments: all judgments",
    }


def test_boards_that_differ_in_judgments_alone_are_numbered(home, tmp_path):
    for place in range(2):
        labels = np.roll(LABELS, place)
        rk.save(rk.evaluate(labels, LABELS, qid=QID, measures="AP"), home / f"{place}", role="test", data="shop")
    found = headings(write_site(home, tmp_path / "public").index)
    assert [heading.partition(", ")[2] for heading in found] == [
        "other judgments or weights (1 of 2)",
        "other judgments or weights (2 of 2)",
    ]


def weighted(name, noise, factor):
    """Evaluate with weights that grow with the factor; return the effective number too."""
    weights = 1.0 + factor * (np.arange(N_QUERIES) % 4)
    by_query = dict(zip(dict.fromkeys(QID.tolist()), weights, strict=True))
    row_weights = [by_query[query] for query in QID]
    return evaluated(name, noise, query_weight=row_weights), weights.sum() ** 2 / (weights**2).sum()


def test_other_weights_of_queries_are_another_leaderboard(home, tmp_path):
    """Weighted means are not comparable with plain ones: no headline, test or rank is over both."""
    three(home)
    numbers = []
    for place, factor in enumerate((1.0, 1.0, 5.0)):
        evaluation, effective = weighted(f"w{place}", 0.5 + place / 10, factor)
        rk.save(evaluation, home / f"w{place}", role="test", data="letor")
        numbers.append(f"{effective:,.0f}")
    found = boards(home)
    assert [[*board.rows] for board in found] == [["good", "close", "poor"], ["w0", "w1"], ["w2"]]
    figures = figures_of(found[1], queries=False)
    assert {*figures.against} == {"w0", "w1"}
    assert headings(write_site(home, tmp_path / "public").index) == [
        "test: letor, not weighted",
        f"test: letor, weighted: effective number {numbers[0]}",
        f"test: letor, weighted: effective number {numbers[2]}",
    ]


def test_the_weighted_evaluation_of_a_comparison_is_on_its_board(home):
    systems = {name: weighted(name, noise, 2.0)[0] for name, noise in (("a", 0.5), ("b", 0.8))}
    rk.save(systems["a"], home / "a", role="test")
    rk.save(evaluated("a", 0.5), home / "plain", role="test")
    rk.save(rk.compare(systems), home / "compared", role="test")
    assert [sorted(board.rows) for board in boards(home)] == [["a", "b"], ["a"]]


@pytest.mark.parametrize(
    ("asked", "deciding"),
    [
        ({"a": ["nDCG@10", "AP"], "b": ["AP", "nDCG@10"], "c": ["AP"], "d": ["RR"]}, "AP"),
        ({"a": ["AP", "RR"], "b": ["RR", "AP"]}, "RR"),
        ({"a": ["RR", "AP"], "b": ["P@1"], "c": ["AP", "RR"]}, "AP"),
        ({"a": ["ndcg@10"], "b": ["nDCG@10"], "c": ["AP"]}, "nDCG@10"),
    ],
)
def test_the_measure_of_most_rows_decides_and_no_row_vanishes(home, tmp_path, asked, deciding):
    """Ties go by the newest run, of runs without dates the last by name."""
    for name, measures in asked.items():
        rk.save(evaluated(name, measures=measures), home / name, role="test")
    (board,) = boards(home)
    assert board.measure == deciding
    assert {*board.entries} == {*asked}
    without = {name for name, measures in asked.items() if deciding.lower() not in map(str.lower, measures)}
    assert {*board.unranked} == without
    page = Page(write_site(home, tmp_path / "public", queries=True).index)
    rows = {row[0].split()[0]: row for row in page.rows[1:]}
    assert [*rows][-len(without) or len(rows) :] == [*board.unranked]
    for name in without:
        assert rows[name][0] == f"{name} not ranked: it was evaluated without {deciding}"
        assert rows[name][1] == DASH
        page_of_run = run_page(tmp_path / "public", name)
        assert f"runs/{page_of_run.name}" in page.links
        assert f"it was evaluated without {deciding}" in Page(page_of_run).text
    assert (
        f"Ranked by {deciding}: {len(board.rows)} of {len(asked)} evaluations have it" in page.text or not board.others
    )


def test_the_newest_run_by_date_breaks_a_tie_of_measures(home):
    for name, measures, started in (("a", ["AP", "RR"], 2e9), ("b", ["RR", "AP"], 1e9)):
        record = evaluated(name, measures=measures).record(role="test")
        write(home, name, replace(record, started=started))
    (board,) = boards(home)
    assert board.measure == "AP"


def test_a_champion_without_the_measure_is_named(home, tmp_path):
    three(home)
    rk.save(evaluated("old", measures="RR"), home / "old", role="test")
    write(home, "promotion", promotion(1, "old"))
    text = Page(write_site(home, tmp_path / "public").index).text
    assert "The champion, old, is not ranked: it was evaluated without nDCG@10." in text
    assert "No promotion moved" not in text
    assert "Against the best row" in text


def test_the_choice_of_the_best_is_said_of_pairs_with_it_alone(home, tmp_path):
    for number in range(4):
        rk.save(evaluated(f"s{number}", 0.6 + 0.3 * number), home / f"{number}", role="test")
    write(home, "promotion", promotion(1, "s1"))
    public = tmp_path / "public"
    write_site(home, public)
    has_it = {name: "was chosen by the same scores" in Page(run_page(public, name)).text for name in ("s0", "s1", "s2")}
    assert has_it == {"s0": True, "s1": True, "s2": False}  # s1 stands against s0


def test_a_page_of_a_comparison_has_a_row_for_each_system(home, tmp_path):
    """With names, links to the leaderboard's runs and the board's name of the data; p is on no scale."""
    systems = three(home)
    compared = rk.compare({"new": systems["good"], "close": systems["close"], "poor": systems["poor"]}, baseline="poor")
    rk.save(compared, home / "compared", role="test")
    public = tmp_path / "public"
    write_site(home, public)
    page, html = Page(run_page(public, "comparison")), run_page(public, "comparison").read_text("utf-8")
    rows = [row for row in page.rows if row[1] == "poor"]
    table = compared.table.set_index(["system", "measure"])
    assert [row[0] for row in rows] == ["new", "close"] * 2
    for row, measure in zip(rows, ["nDCG@10"] * 2 + ["AP"] * 2, strict=True):
        numbers = table.loc[(row[0], measure)]
        low, high = (f"{numbers[f'ci_{end}_adjusted']:+.4f}" for end in ("low", "high"))
        written = [cell.replace("\N{MINUS SIGN}", "-") for cell in row[2:4]]
        assert written == [f"{numbers['difference']:+.4f}", f"[{low}, {high}]"]
    for name in ("good", "close", "poor"):
        assert f"../runs/{run_page(public, name).name}" in page.links
    assert html.count('class="zero"') == html.count("<circle") == len(rows)
    assert "testletor" in page.text
    assert "judgments-" not in page.text


def save_two_looks(home, folder):
    """Open two plans on one registered test, so that the second look is exploratory."""
    data = rk.datasets.make_ranking(60, rng=0)
    guard = rk.Guard("shop", ledger=folder / "ledger")
    test = guard.register("months", data)
    noise = np.random.default_rng(0).normal(size=len(data.y))
    for look, weight in enumerate((0.2, 2.0), start=1):
        scores = {"line": data.X[:, 0], "new": data.X[:, 0] + weight * noise}
        rk.save(guard.open(guard.freeze(test, systems=scores, baseline="line")), home / f"look {look}")


def test_a_confirmatory_standing_is_no_warning(home, tmp_path):
    save_two_looks(home, tmp_path)
    public = tmp_path / "public"
    index = Page(write_site(home, public).index)
    pages = [path.read_text("utf-8") for path in (public / "runs").iterdir()]
    assert sorted(re.findall('class="(note|soft) said">(EXPL|conf)?', " ".join(pages))) == [
        ("note", "EXPL"),
        ("soft", ""),
    ]
    assert {"look 1", "look 2"} <= {word for row in index.rows for word in re.findall("look [12]", row[0])}


def test_a_page_of_a_cross_validation_says_what_spreads(home, tmp_path):
    data = rk.datasets.make_ranking(30, 8, rng=0)
    validated = rk.cross_validate(Ridge(), data, cv=3, measures="nDCG@10")
    rk.save(validated, home / "cv")
    public = tmp_path / "public"
    write_site(home, public)
    page = Page(run_page(public, "cross-validation"))
    spread = np.std(validated.folds["nDCG@10"], ddof=1)
    assert page.rows[-1][0] == "nDCG@10, standard deviation over folds"
    assert page.rows[-1][1].split()[0] == f"{spread:.4f}"


def test_the_champion_is_that_of_the_decisions_recorded_here(home, tmp_path):
    three(home)
    write(home, "promotion", promotion(1, "close"))
    write(home, "another", promotion(2, "good", "rejected"))
    text = Page(write_site(home, tmp_path / "public").index).text
    assert "The champion is close by the decisions recorded here" in text
    assert "moved the alias by other means" in text
    assert text.count("accepted: close") == text.count("rejected: good") == 1


def test_a_board_says_that_a_run_may_be_missing_and_that_dev_is_no_test(home, tmp_path):
    three(home)
    rk.save(evaluated("tuned"), home / "tuned", role="dev")
    (home / "runs/poor/evaluation.parquet").write_bytes(b"altered")
    text = Page(write_site(home, tmp_path / "public").index).text
    assert text.count("1 run of the project cannot be read, and may belong here") == 2
    assert text.count("The role of these data is dev, not test") == 1


def test_names_of_any_script_are_isolated(home, tmp_path):
    names = ["حذاء رياضي #069", "נעל #1 (x)", "plain"]
    for place, name in enumerate(names):
        rk.save(evaluated(name, 0.5 + place), home / f"{place}", role="test", data="נתונים 2")
    public = tmp_path / "public"
    site = write_site(home, public, queries=True)
    pages = [site.index, *(public / "runs").iterdir()]
    for path in pages:
        body = path.read_text("utf-8").partition("<h2>")[2].partition("<h2>Settings")[0]
        bare = re.sub("<(bdi|strong)>[^<]*</(bdi|strong)>", "", body)
        assert not re.search("[\u0590-\u06ff]", bare), path


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
    save_two_looks(home, tmp_path)
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
    assert "1 evaluation without nDCG@10 cannot be ranked: b (its nDCG@10 is not defined)." in text


def test_the_numbers_of_a_board_do_not_depend_on_the_order_of_folders(home):
    three(home / "x")
    three(home / "y" / "z")
    first = boards(home / "x")[0]
    other = boards(home / "y")[0]
    assert figures_of(first, queries=False) == figures_of(other, queries=False)
    assert pd.Series(list(first.rows)).equals(pd.Series(list(other.rows)))


@pytest.mark.further
def test_an_experiment_leaves_its_record_beside_the_report(tmp_path):
    """The site of its folder has the test part, its comparison and a link to the report; a second run adds nothing."""
    ridge = "sklearn.linear_model.Ridge"
    config = {
        "name": "example",
        "data": {"loader": "digits", "arguments": {"n_queries": 30}},
        "rankers": {
            "plain": {"estimator": ridge},
            "tuned": {"estimator": ridge, "grid": {"alpha": [0.1, 100.0]}},
        },
        "guard": "off",
        "tracking": "off",
        "output": {"directory": str(tmp_path / "out")},
    }
    result = rk.run_experiment(config)
    (record,) = (result.directory / "runs").iterdir()
    assert (record / "report.html").read_bytes() == result.report.read_bytes()
    rk.run_experiment(config)
    assert [*(result.directory / "runs").iterdir()] == [record]
    found = {board.head.facts.role: board for board in boards(tmp_path / "out")}
    assert {*found} == {"dev", "test"}
    assert all(sorted(board.rows) == ["plain", "tuned"] for board in found.values())
    public = tmp_path / "public"
    site = write_site(tmp_path / "out", public)
    assert site.faults == ()
    links = Page(run_page(public, "example")).links
    (report,) = [link for link in links if link.endswith("report.html")]
    assert (public / "runs" / report).resolve() == record / "report.html"
    shutil.rmtree(record.parent)
    record.parent.write_text("in the way")
    with pytest.warns(RankevalWarning, match="the record for `rankeval site` was not written"):
        assert rk.run_experiment(config).report.is_file()
