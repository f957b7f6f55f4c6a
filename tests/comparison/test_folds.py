"""Folds are compared as plain columns: frames of means by fold, and the sizes of the folds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tables import each_row

import rankeval as rk
from rankeval.comparison.comparing import compare_algorithms, compare_models
from rankeval.errors import ConventionMismatch, InvalidInput, UnknownName
from rankeval.significance import FOLD_TESTS
from rankeval.significance.declarations import Settings
from rankeval.significance.effects import effect_interval
from rankeval.significance.paired import widened
from rankeval.significance.power import detectable_difference
from rankeval.significance.running import run

SIZES = [(20, 10)] * 6


def corrected_resampled_t(d, ratio, **options):
    """Test folds as a comparison of learners does."""
    return run(FOLD_TESTS["corrected_resampled_t"], widened(d, ratio), Settings(**options))


@pytest.fixture
def evaluations():
    generator = np.random.default_rng(0)
    qid = np.repeat(np.arange(30), 8)
    y = generator.integers(0, 3, len(qid))
    noise = generator.random(len(qid))
    return {
        name: rk.evaluate(y, noise + gain * y, qid=qid, measures=["nDCG@10", "AP", "NumRel"], name=name)
        for name, gain in (("weak", 0.0), ("strong", 0.3), ("best", 0.5))
    }


def folds(evaluations, n=6):
    generator = np.random.default_rng(1)
    means = {name: one.mean()[["nDCG@10", "AP"]].to_numpy() for name, one in evaluations.items()}
    return {
        name: pd.DataFrame(mean + generator.normal(0, 0.01, (n, 2)), columns=["nDCG@10", "AP"]).assign(NumRel=9.0)
        for name, mean in means.items()
    }


def test_the_numbers_are_those_of_the_corrected_t(evaluations):
    columns = folds(evaluations)
    found = compare_algorithms(columns, evaluations, sizes=SIZES, baseline="weak", alpha=0.1)
    assert found.table["measure"].tolist() == ["nDCG@10", "nDCG@10", "AP", "AP"]
    for row in found.table.itertuples():
        d = (columns[row.system][row.measure] - columns["weak"][row.measure]).to_numpy()
        expected = corrected_resampled_t(d, 10 / 20, alpha=0.1)
        assert (row.p_value, row.ci_low, row.ci_high) == pytest.approx(
            (expected.p_value, expected.ci_low, expected.ci_high), rel=1e-12
        )
        assert row.difference == pytest.approx(d.mean(), abs=1e-12)
        deviation = widened(d, 10 / 20).std(ddof=1)
        assert row.detectable_difference == pytest.approx(detectable_difference(6, deviation, 0.1 / 4))
        assert row.effect_size == pytest.approx(d.mean() / d.std(ddof=1))
        assert row.n_queries == 30
    assert found.evaluations == evaluations
    assert found.settings.n_comparisons == 4
    assert "over 6 folds with 0.5 test queries for each training query" in " ".join(found.notes)
    assert "each query was held out 2 times on average" in " ".join(found.notes)


def test_the_ratio_is_the_mean_over_folds_of_any_size(evaluations):
    columns = folds(evaluations, n=2)
    sizes = [(20, 10), (10, 20)]
    found = compare_algorithms(columns, evaluations, sizes=sizes, baseline="weak", measures="AP")
    d = (columns["best"]["AP"] - columns["weak"]["AP"]).to_numpy()
    expected = corrected_resampled_t(d, (0.5 + 2) / 2).p_value
    assert found.table.query("system == 'best'")["p_value"].item() == pytest.approx(expected, rel=1e-12)


def test_measures_are_found_by_meaning_and_several_by_one_name(evaluations):
    found = compare_algorithms(folds(evaluations), evaluations, sizes=SIZES, measures=["map", "ndcg_cut.10"])
    assert found.table["measure"].unique().tolist() == ["AP", "nDCG@10"]


def test_what_a_correction_does_not_promise_is_said_of_folds_too(evaluations):
    found = compare_algorithms(folds(evaluations), evaluations, sizes=SIZES, correction="none")
    assert "p-values are not corrected for the 6 comparisons" in found.notes


def test_bad_use(evaluations):
    columns = folds(evaluations)
    for options, error, words in (
        (
            {"sizes": SIZES[:1]},
            InvalidInput,
            '2 folds, found 3 on 1; for a single hold-out, use question="models"',
        ),
        ({"sizes": SIZES, "test": "t"}, InvalidInput, "by the corrected_resampled_t, not by test='t'"),
        ({"sizes": SIZES, "correction": "tukey"}, UnknownName, "correction of tests over folds 'tukey'"),
        ({"sizes": SIZES, "measures": "NumRel"}, UnknownName, "measure that is a mean over queries 'NumRel'"),
        ({"sizes": SIZES, "baseline": "weka"}, UnknownName, "did you mean 'weak'"),
        ({"sizes": SIZES, "family": "one"}, UnknownName, "family"),
    ):
        with pytest.raises(error, match=words):
            compare_algorithms(columns, evaluations, **options)
    one = {"weak": columns["weak"]}
    with pytest.raises(InvalidInput, match="at least two estimators on at least 2 folds, found 1 on 6"):
        compare_algorithms(one, evaluations, sizes=SIZES)


@each_row("option", ["unjudged", "by", "alhpa"])
def test_options_of_queries_are_refused(evaluations, option):
    with pytest.raises(UnknownName, match=f"unknown option for algorithms '{option}'"):
        compare_algorithms(folds(evaluations), evaluations, sizes=SIZES, **{option: "skip"})


def test_other_conventions_are_refused(evaluations):
    qid = np.repeat(np.arange(30), 8)
    other = rk.evaluate(np.zeros(240) + (qid > 3), np.arange(240.0), qid=qid, measures=["nDCG@10", "AP", "NumRel"])
    with pytest.raises(ConventionMismatch, match="'weak' and 'other' must not be compared"):
        compare_algorithms(folds(evaluations), {**evaluations, "other": other}, sizes=SIZES)


@each_row(("n_folds", "says"), [(1, "fitted on one training part"), (5, "approximate: the queries of")])
def test_models_are_compared_by_queries(evaluations, n_folds, says):
    evaluations = {name: replace(one, facts=replace(one.facts, n_folds=n_folds)) for name, one in evaluations.items()}
    found = compare_models(evaluations, baseline="weak", measures="AP")
    expected = rk.compare(evaluations, baseline="weak", measures="AP")
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert any(says in note for note in found.notes)


def test_pooled_folds_are_noted_wherever_they_are_compared(evaluations, tmp_path):
    """The evaluation knows of them: saved, loaded, a subset, beside a plain one, over collections."""
    pooled = replace(evaluations["weak"], facts=replace(evaluations["weak"].facts, n_folds=5))
    pooled.save(tmp_path / "pooled.parquet")
    loaded = rk.Evaluation.load(tmp_path / "pooled.parquet")
    assert loaded.facts.n_folds == pooled.subset(pooled.queries[:9]).facts.n_folds == 5
    other = next(one for name, one in evaluations.items() if name != "weak")
    assert any("folds are pooled" in note for note in rk.compare({"a": loaded, "b": other}, measures="AP").notes)
    assert not any("pooled" in note for note in rk.compare({"a": evaluations["weak"], "b": other}, measures="AP").notes)


def test_effects_and_posteriors_are_those_of_folds_and_kept_in_json(evaluations):
    """With the ratio of the folds: d's interval and the posterior belong to the corrected t."""
    columns = folds(evaluations)
    found = compare_algorithms(columns, evaluations, sizes=SIZES, baseline="weak", measures="AP")
    back = rk.Comparison.from_json(found.to_json())
    for one in (found, back):
        tables = (one.effects, one.bayes(rope=0.0), found.table)
        for effect, chance, row in zip(*(table.itertuples() for table in tables), strict=True):
            d = (columns[row.system]["AP"] - columns["weak"]["AP"]).to_numpy()
            expected = corrected_resampled_t(d, 10 / 20, alternative="greater").p_value
            assert chance.p_worse == pytest.approx(expected, rel=1e-9)
            assert effect.cohens_d == pytest.approx(row.effect_size, rel=1e-12)
            interval = effect_interval(d, ratio=10 / 20)
            assert (effect.d_low, effect.d_high) == pytest.approx((interval.low, interval.high), rel=1e-9)
            assert effect.superiority == (d > 0).mean()
        with pytest.raises(InvalidInput, match="folds overlap"):
            one.bayes(rope=0.01, method="signed_rank")
    pd.testing.assert_frame_equal(back.effects, found.effects)
    broken = found.to_json().replace('"systems": [', '"systems": ["more",')
    with pytest.raises(InvalidInput, match="not a whole comparison"):
        rk.Comparison.from_json(broken)
