"""leaderboard: only what may be compared is ranked together, and everything else is listed with the reason."""

from __future__ import annotations

import shutil
from urllib.parse import urlsplit

import mlflow
import numpy as np
import pandas as pd
import pytest
from shown import whole
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.comparison.inputs import POOLED_FOLDS
from rankeval.errors import InvalidInput, UnknownName
from rankeval_mlflow.run_names import COMPLETE

WEIGHTED = 'group: "weighted" is ranked by its weighted mean, and not tested here; rk.compare does that'


@pytest.fixture
def noisy():
    """Return what evaluates 40 queries of 10 rows, ranked by their labels and noise of a size."""

    def evaluated(name, noise, *, seed=0, measures=("nDCG@10", "AP"), n=40, **options):
        labels = np.random.default_rng(7).integers(0, 3, 10 * n)
        scores = labels + np.random.default_rng(seed).normal(size=10 * n) * noise
        return rk.evaluate(labels, scores, qid=np.repeat(np.arange(n), 10), measures=measures, name=name, **options)

    return evaluated


def logged(evaluation, role="dev", **options):
    return rkm.log(evaluation, role=role, report=False, **options).run_id


@pytest.fixture
def ranked(noisy):
    """Log two near rankers and a bad one."""
    given = {"good": noisy("good", 0.5), "like it": noisy("like it", 0.5, seed=1), "bad": noisy("bad", 8)}
    return given, {name: logged(evaluation) for name, evaluation in given.items()}


def test_rows_are_ranked_with_value_interval_and_group(ranked):
    given, ids = ranked
    board = rkm.leaderboard("Default")
    values = {name: one.aggregate()["nDCG@10"] for name, one in given.items()}
    assert board.table["system"].tolist() == sorted(values, key=values.__getitem__, reverse=True)
    assert board.table["rank"].tolist() == [1, 2, 3]
    assert board.table["group"].tolist() == ["first", "tied", "below"]
    for row in board.table.itertuples():
        interval = given[row.system].ci().loc["nDCG@10"]
        assert row.run_id == ids[row.system]
        assert (row.value, row.ci_low, row.ci_high) == (values[row.system], interval.ci_low, interval.ci_high)
        assert row.n_queries == 40
    assert (board.measure, board.role, board.convention) == ("nDCG@10", "dev", "rankeval")
    assert len(board.others) == 0


def test_the_groups_are_those_of_all_pairs_since_the_first_was_chosen(ranked):
    given, _ = ranked
    board = rkm.leaderboard("Default", measure="AP")
    first = board.table["system"][0]
    table = rk.compare(given, measures=["AP"]).table
    of_first = table[(table["baseline"] == first) | (table["system"] == first)]
    shown = {
        ({*pair} - {first}).pop()
        for pair in of_first.loc[of_first["p_adjusted"] <= 0.05, ["baseline", "system"]].to_numpy()
    }
    assert set(board.table.loc[board.table["group"] == "below", "system"]) == shown != set()
    assert "all 3 pairs" in whole(board)
    assert board.comparison.best.words in board.notes[-1]


@pytest.mark.usefixtures("ranked")
def test_other_data_conventions_and_roles_are_listed_with_the_reason(noisy):
    other = {
        "cut": (logged(noisy("cut", 1, n=39)), "other data: judgments-"),
        "sk": (logged(noisy("sk", 1, convention="sklearn")), "other convention: sklearn "),
        "tested": (logged(noisy("tested", 1), "test"), "role test"),
    }
    board = rkm.leaderboard("Default")
    assert set(board.table["system"]) == {"good", "like it", "bad"}
    found = board.others.set_index("system")
    assert set(found.index) == set(other)
    for name, (run_id, reason) in other.items():
        assert found.loc[name, "run_id"] == run_id
        assert reason in found.loc[name, "reason"]
    assert "not ranked: 3 evaluations" in whole(board)


@pytest.mark.usefixtures("ranked")
def test_data_is_chosen_by_name_or_digest_and_the_role_by_its_name(noisy):
    cut = noisy("cut", 1, n=39)
    logged(cut, data="letor")
    logged(noisy("tested", 1), "test")
    for name in ("letor", cut.judgments_digest, cut.judgments_digest[:8]):
        board = rkm.leaderboard("Default", data=name)
        assert board.table["system"].tolist() == ["cut"]
        assert (board.data, board.digest) == ("letor", cut.judgments_digest)
    assert rkm.leaderboard("Default", role="test").table["system"].tolist() == ["tested"]
    with pytest.raises(UnknownName, match="unknown data set 'letr'; did you mean 'letor'"):
        rkm.leaderboard("Default", data="letr")
    with pytest.raises(UnknownName, match="unknown role 'train'"):
        rkm.leaderboard("Default", role="train")


def test_most_runs_decide_and_of_equally_many_the_newest(noisy):
    logged(noisy("one", 1))
    logged(noisy("two", 1, n=50))
    assert rkm.leaderboard("Default").table["system"].tolist() == ["two"]
    logged(noisy("three", 1))
    assert set(rkm.leaderboard("Default").table["system"]) == {"one", "three"}


@pytest.mark.usefixtures("ranked")
def test_a_missing_measure_is_a_reason_and_one_that_nobody_has_an_error(noisy):
    logged(noisy("short", 1, measures=["AP"]))
    board = rkm.leaderboard("Default", measure="ndcg_cut_10")
    assert board.others[["system", "reason"]].to_numpy().tolist() == [["short", "no value by nDCG@10"]]
    with pytest.raises(UnknownName, match="unknown measure of these evaluations 'P@7'"):
        rkm.leaderboard("Default", measure="P@7")


def test_runs_that_are_not_whole_or_deleted_or_of_others_are_no_rows(ranked, client):
    _, ids = ranked
    client.delete_tag(ids["good"], COMPLETE)
    client.delete_run(ids["bad"])
    with mlflow.start_run():
        mlflow.log_metric("nDCG_at_10", 2.0)
    board = rkm.leaderboard("Default")
    assert board.table["system"].tolist() == ["like it"]
    assert board.table["group"].tolist() == [""]
    assert board.others[["run_id", "reason"]].to_numpy().tolist() == [
        [ids["good"], "not whole: its upload has not ended"]
    ]


def test_ties_share_a_rank_and_equal_names_are_told_apart_by_run(noisy):
    twins = [logged(noisy("twin", 1)) for _ in range(2)]
    logged(noisy("bad", 8))
    board = rkm.leaderboard("Default")
    assert board.table["rank"].tolist() == [1, 1, 3]
    assert board.table["run_id"].tolist()[:2] == twins, "the earliest first"
    assert board.table["group"].tolist() == ["first", "tied", "below"]


def test_the_least_is_the_first_if_less_is_better(noisy):
    for name, noise in (("bad", 8), ("good", 0.5)):
        logged(noisy(name, noise, measures=["ARP"]))
    assert rkm.leaderboard("Default").table["system"].tolist() == ["good", "bad"]


def test_the_limit_is_that_of_the_rows_and_the_rest_is_not_loaded(ranked, client):
    _, ids = ranked
    first = rkm.leaderboard("Default", limit=2)
    assert (len(first.table), first.n_ranked) == (2, 3)
    assert "the first 2 of 3" in first.caption
    assert "flatters it; a test set that was not looked at" in first.notes[-1]
    shutil.rmtree(urlsplit(client.get_run(ids["bad"]).info.artifact_uri).path)
    assert rkm.leaderboard("Default", limit=2).table.equals(first.table)
    whole = rkm.leaderboard("Default")
    assert len(whole.table) == 2
    assert "no longer has the artifact" in whole.others["reason"][0]
    assert len(rkm.leaderboard("Default", significance=False).table) == 3


def test_other_queries_of_the_same_data_are_found_when_they_are_loaded(noisy):
    """A digest may be that of the whole data set, of which some runs evaluated a part."""
    data = {name: noisy(name, noise) for name, noise in (("a", 1), ("b", 2))}
    part = noisy("part", 0.1)
    part = part.subset(part.queries[:30])
    for evaluation in (*data.values(), part):
        whole = rk.tracking.LoggedData("letor", "ab" * 32, "dev", 400, 40)
        logged(evaluation, data=whole)
    board = rkm.leaderboard("Default")
    assert board.table["system"].tolist() == ["a", "b"]
    assert board.others["reason"].tolist() == ["other queries or judgments (30 queries) of the same data"]


def test_a_run_whose_metric_is_not_that_of_its_evaluation_is_no_row(ranked, client):
    """The user may log the metric again."""
    given, ids = ranked
    client.log_metric(ids["bad"], "nDCG_at_10", 0.999)
    board = rkm.leaderboard("Default")
    assert set(board.table["system"]) == {"good", "like it"}
    reasons = dict(zip(board.others["run_id"], board.others["reason"], strict=True))
    assert set(reasons) == {ids["bad"]}
    own = given["bad"].aggregate()["nDCG@10"]
    assert reasons[ids["bad"]].startswith(f"its metric nDCG_at_10 is 0.999, and its evaluation {own:.6g}")
    assert len(rkm.leaderboard("Default", measure="AP").table) == 3


def test_weighted_evaluations_are_marked_and_the_others_tested_among_themselves(noisy):
    """A weighted row, though it be the best, takes no group from the others, and none of them is tested against it."""
    given = {"good": noisy("good", 0.5), "bad": noisy("bad", 8)}
    for evaluation in given.values():
        logged(evaluation)
    alone = rkm.leaderboard("Default")
    logged(noisy("heavy", 0, query_weight=dict(enumerate(np.linspace(1, 2, 40)))))
    board = rkm.leaderboard("Default")
    assert board.table[["rank", "system", "group"]].to_numpy().tolist() == [
        [1, "heavy", "weighted"],
        [2, "good", "first"],
        [3, "bad", "below"],
    ]
    assert board.notes[:2] == (*alone.notes[:1], WEIGHTED)
    pd.testing.assert_frame_equal(board.comparison.table, alone.comparison.table)
    assert "a test set that was not looked at" in board.notes[-1], "the comparison knows nothing of the first"


def test_weights_are_ranked_and_not_tested(noisy):
    for name, noise in (("a", 1), ("b", 2)):
        logged(noisy(name, noise, query_weight=dict(enumerate(np.linspace(1, 2, 40)))))
    board = rkm.leaderboard("Default")
    assert board.table["group"].tolist() == ["weighted", "weighted"]
    assert board.notes[0] == WEIGHTED


def test_a_leaderboard_of_cross_validations_says_that_folds_are_pooled():
    """The note is that of the comparison of the same runs, on the board and on what it has compared."""
    data = rk.datasets.make_ranking(60, 10, 4, rng=0)
    cv = rk.cross_validate({"x": Ridge(), "y": Ridge(1e6)}, data, measures="nDCG@10", cv=3)
    rkm.log(cv)
    board, pooled = rkm.leaderboard("Default"), POOLED_FOLDS.format(units="queries")
    assert pooled in rkm.compare_runs(board.table["run_id"].tolist()).notes
    assert pooled in board.notes
    assert pooled in board.comparison.notes


def test_a_leaderboard_shows_itself_and_escapes_what_comes_from_outside(noisy):
    for name, noise in (("<script>x</script>", 1), ("b | c", 2)):
        logged(noisy(name, noise))
    logged(noisy("<i>", 1, n=50), "test")
    board = rkm.leaderboard("Default")
    assert "<script" not in board._repr_html_()
    assert "<i>" not in board._repr_html_()
    assert r"b \| c" in board.to_markdown()
    assert isinstance(board.table["logged_at"].dtype, pd.DatetimeTZDtype)


@pytest.mark.usefixtures("ranked")
def test_an_empty_experiment_and_a_wrong_one_are_named():
    mlflow.create_experiment("empty")
    with pytest.raises(InvalidInput, match="'empty' has no whole evaluation"):
        rkm.leaderboard("empty")
    with pytest.raises(UnknownName, match="unknown experiment 'Defualt'; did you mean 'Default'"):
        rkm.leaderboard("Defualt")
    with pytest.raises(InvalidInput, match="limit is 0"):
        rkm.leaderboard("Default", limit=0)
    assert len(rkm.leaderboard(None).table) == 3
