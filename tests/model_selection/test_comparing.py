"""Cross-validated estimators compared: as algorithms, or as fitted models."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from tables import each_row

import rankeval as rk
from rankeval.errors import ConventionMismatch, InvalidInput, UnknownName
from rankeval.model_selection.splitters import QueryKFold, QueryShuffleSplit, RepeatedQueryKFold
from rankeval.significance import paired_test
from rankeval.significance.declarations import Settings
from rankeval.significance.paired import corrected_resampled_t, widened

CV = RepeatedQueryKFold(3, n_repeats=10, random_state=0)


class FirstFeature(Ridge):
    """Ridge that sees one feature, which carries all of the signal."""

    def fit(self, X, y):
        return super().fit(X[:, :1], y)

    def predict(self, X):
        return super().predict(X[:, :1])


class LastFeature(Ridge):
    """Ridge that sees one feature, which carries none."""

    def fit(self, X, y):
        return super().fit(X[:, -1:], y)

    def predict(self, X):
        return super().predict(X[:, -1:])


RIVALS = {"last": LastFeature(), "first": FirstFeature(), "all": Ridge()}


@pytest.fixture
def rivals(ltr):
    return rk.cross_validate(RIVALS, ltr.X, ltr.y, qid=ltr.qid, cv=CV, measures=["AP", "nDCG@10", "NumRel"])


def test_several_estimators_stand_on_the_same_folds(rivals, ltr):
    """Each with what it gets alone."""
    assert list(rivals) == ["last", "first", "all"]
    alone = rk.cross_validate(FirstFeature(), ltr.X, ltr.y, qid=ltr.qid, cv=CV, measures="AP")
    assert rivals["first"].predictions.tolist() == alone.predictions.tolist()
    assert rivals["first"].splits == alone.splits == rivals["all"].splits
    assert rivals["first"].evaluation.name == "first"
    assert rivals.folds.loc["first", "AP"].tolist() == alone.folds["AP"].tolist()
    assert rivals.evaluations["all"] is rivals["all"].evaluation
    assert "on the same 30 folds" in repr(rivals)
    assert re.search(r"^first +0\.\d{4}", repr(rivals), re.MULTILINE)
    with pytest.raises(UnknownName, match="first"):
        rivals["frist"]


def test_algorithms_are_compared_over_folds(rivals):
    """The numbers are those of the corrected resampled t; sums over queries such as NumRel are left out."""
    result = rivals["last"].compare(rivals["first"], question="algorithms")
    row = result.table.set_index("measure").loc["AP"]
    d = rivals["first"].folds["AP"].to_numpy() - rivals["last"].folds["AP"].to_numpy()
    expected = corrected_resampled_t(widened(d, 10 / 20), Settings())
    assert row["difference"] == pytest.approx(d.mean(), abs=1e-12)
    assert row["p_value"] == pytest.approx(float(expected.p_value), abs=1e-12)
    assert row["ci_low"] == pytest.approx(float(expected.ci_low), abs=1e-12)
    assert result.table["measure"].tolist() == ["AP", "nDCG@10"]
    assert (row["baseline"], row["system"], row["n_queries"]) == ("last", "first", 30)
    assert row["wins"] + row["ties"] + row["losses"] == 30
    assert row["p_adjusted"] <= 0.05
    assert "Corrected resampled t test of fold means" in result.caption
    assert not any("recommended" in note for note in result.notes)
    assert "over 30 folds" in str(result)


def test_the_result_is_a_comparison_like_any_other(rivals):
    """It is written, drawn and read back."""
    result = rivals.compare(question="algorithms", baseline="last")
    again = rk.Comparison.from_json(result.to_json())
    pd.testing.assert_frame_equal(again.table, result.table)
    assert again.caption == result.caption
    assert "corrected resampled t" in result.to_markdown().lower()
    assert result.to_latex(layout="systems").count("first") == 1
    assert len(result.plot().axes) == 2
    assert result.plot(system="first", measure="AP").axes


def test_all_pairs_and_a_baseline_are_corrected_for(rivals):
    pairs = rivals.compare(question="algorithms", measures="AP")
    assert len(pairs.table) == pairs.settings.n_comparisons == 3
    against = rivals.compare(question="algorithms", baseline="last", measures=["AP", "nDCG@10"], family="measure")
    assert against.table["system"].tolist() == ["first", "all"] * 2
    assert against.settings.n_comparisons == 2
    assert (against.table["p_adjusted"] >= against.table["p_value"]).all()


def test_few_repeats_are_said_to_be_few(ltr):
    results = rk.cross_validate(RIVALS, ltr.X, ltr.y, qid=ltr.qid, cv=3, measures="AP")
    notes = results.compare(question="algorithms").notes
    assert any("10 repeats or more are recommended" in note for note in notes)


def test_models_are_compared_over_queries(rivals, ltr):
    """Approximately where folds are pooled; without that note on one hold-out."""
    pooled = rivals["last"].compare(rivals["first"], question="models", measures="AP")
    d = rivals["first"].evaluation.per_query["AP"] - rivals["last"].evaluation.per_query["AP"]
    assert pooled.table["p_value"][0] == pytest.approx(paired_test("t", d.to_numpy()).p_value, abs=1e-12)
    assert any(note.startswith("approximate") for note in pooled.notes)
    one = QueryShuffleSplit(1, test_size=0.5, random_state=0)
    held_out = rk.cross_validate(RIVALS, ltr.X, ltr.y, qid=ltr.qid, cv=one, measures="AP")
    exact = held_out.compare(question="models", baseline="last")
    assert exact.table["n_queries"].tolist() == [15, 15]
    assert not any("approximate" in note for note in exact.notes)
    with pytest.raises(InvalidInput, match='question="models"'):
        held_out.compare(question="algorithms")


def test_unnamed_estimators_are_told_apart(ltr):
    one, other = (rk.cross_validate(each, ltr.X, ltr.y, qid=ltr.qid, cv=3) for each in (Ridge(), FirstFeature()))
    table = one.compare(other, question="models").table
    assert (table["baseline"][0], table["system"][0]) == ("this", "other")
    named = [
        rk.cross_validate(each, ltr.X, ltr.y, qid=ltr.qid, cv=3, name="ridge") for each in (Ridge(), FirstFeature())
    ]
    assert named[0].compare(named[1], question="models").table["system"][0] == "ridge (other)"


def test_the_question_must_be_asked(rivals):
    """The answers differ, so neither is the default."""
    says = r"give question='algorithms' \(which estimator .*\) or question='models' \(which of the fitted models .*\)"
    with pytest.raises(InvalidInput, match=says):
        rivals["last"].compare(rivals["first"])
    with pytest.raises(InvalidInput, match=says):
        rivals.compare(baseline="last")
    with pytest.raises(UnknownName, match="algorithms"):
        rivals["last"].compare(rivals["first"], question="algorithm")


def test_what_differs_is_not_compared(rivals, ltr):
    base = rivals["last"]

    def other(**options):
        told = {"qid": ltr.qid, "cv": CV, "measures": ["AP", "nDCG@10", "NumRel"], **options}
        return rk.cross_validate(Ridge(), ltr.X, options.pop("y", ltr.y), **{k: v for k, v in told.items() if k != "y"})

    with pytest.raises(InvalidInput, match="different folds"):
        base.compare(other(cv=RepeatedQueryKFold(3, n_repeats=10, random_state=1)), question="algorithms")
    with pytest.raises(ConventionMismatch):
        base.compare(other(y=np.roll(ltr.y, 5)), question="algorithms")
    with pytest.raises(InvalidInput, match="is a CrossValidation"):
        base.compare(base.evaluation, question="models")
    for options, words in (
        ({"measures": "RR"}, "RR"),
        ({"measures": "NumRel"}, "mean over queries"),
        ({"correction": "max_t"}, "holm"),
        ({"family": "none"}, "measure"),
        ({"alpha": 5}, "alpha"),
        ({"claim": "better"}, "baseline="),
    ):
        with pytest.raises(InvalidInput, match=words):
            rivals.compare(question="algorithms", **options)
    with pytest.raises(UnknownName, match="last"):
        rivals.compare(question="algorithms", baseline="lats")


def test_fold_scores_are_refused_by_tests_of_queries(rivals):
    with pytest.raises(InvalidInput, match="scores of folds"):
        rk.compare({name: result.folds for name, result in rivals.items()})
    with pytest.raises(InvalidInput, match="scores of folds"):
        paired_test("t", rivals["last"].folds["AP"] - rivals["first"].folds["AP"])


def test_fold_scores_are_known_without_their_index(rivals):
    """By the other columns of their table, pandas' or polars'."""
    folds = {name: result.folds.reset_index(drop=True) for name, result in rivals.items()}
    for frames in (folds, {name: pl.from_pandas(frame) for name, frame in folds.items()}):
        with pytest.raises(InvalidInput, match="scores of folds"):
            rk.compare(frames)


@each_row("test", ["t", "wilcoxon"])
def test_a_plain_test_of_algorithms_is_refused_and_says_why(test, rivals):
    with pytest.raises(InvalidInput, match=f"not by test='{test}': scores of folds overlap"):
        rivals.compare(question="algorithms", test=test)
    assert rivals["last"].compare(rivals["first"], question="models", test=test).settings.test == test


def test_bad_mappings(ltr):
    with pytest.raises(InvalidInput, match="mapping of estimators is empty"):
        rk.cross_validate({}, ltr.X, ltr.y, qid=ltr.qid)
    with pytest.raises(InvalidInput, match="keys are their names"):
        rk.cross_validate({"a": Ridge()}, ltr.X, ltr.y, qid=ltr.qid, name="b")


def test_nested_cross_validation_tells_what_was_chosen(ltr):
    """One call; a row per outer fold. An estimator without a search chose nothing."""
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1e5]}, scoring=rk.make_scorer("AP"), cv=QueryKFold(2))
    ranker = GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [0.1, 1e5]}, scoring=rk.make_scorer("AP"), cv=2)
    both = rk.cross_validate({"inside": search, "outside": ranker}, ltr.X, ltr.y, qid=ltr.qid, cv=3)
    assert both["inside"].best_params.index.tolist() == [0, 1, 2]
    assert both["inside"].best_params["alpha"].tolist() == both["outside"].best_params["estimator__alpha"].tolist()
    assert rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3).best_params is None


def test_headlines_of_cross_validation_say_what_was_sampled(rivals):
    """Folds for algorithms; for models the queries of all folds, whose test is approximate."""
    result = next(iter(rivals.values()))
    size = f"{len(result.splits)} folds of {result.evaluation.n_queries} queries"
    headline = rivals.compare(question="algorithms", measures="AP", baseline="last").headline
    assert f"], over {size}, p " in headline
    assert "this many queries" not in headline
    assert "(approximate: queries of several folds)" in rivals.compare(question="models", measures="AP").headline
