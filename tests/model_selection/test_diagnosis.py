"""The checks of a fit: their figures against NumPy and SciPy, what they refuse, and what of them is kept."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from shown import whole
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor

import rankeval as rk
from rankeval.errors import GuardRefusal, InvalidInput, UnknownName
from rankeval.model_selection import CrossValidations
from rankeval.model_selection.diagnosis import OUTCOMES, Diagnosis
from rankeval.model_selection.edges import edge_gains
from rankeval.model_selection.fit_checks import CHECKS

DATA = rk.datasets.make_ranking(40, 10, 4, rng=0)
LEAKED = np.column_stack([DATA.X, -DATA.y])


@pytest.fixture(scope="module")
def linear():
    return rk.cross_validate(Ridge(), DATA, measures=["nDCG@10", "ARP"], cv=4)


@pytest.fixture(scope="module")
def leaked():
    return rk.cross_validate(Ridge(), LEAKED, DATA.y, qid=DATA.qid, measures="nDCG@10", cv=4, name="leak")


def of(found, check):
    return found.table.set_index("check").loc[check]


def gains(score, data=DATA):
    """Return the gain of each query over rows in random order: nDCG@10 less that of equal scores."""
    chance = rk.evaluate(data.y, np.zeros(len(data)), qid=data.qid, measures="nDCG@10").per_query["nDCG@10"]
    return rk.evaluate(data.y, score, qid=data.qid, measures="nDCG@10").per_query["nDCG@10"] - chance


def test_every_check_has_a_row_and_a_sound_fit_no_finding(linear):
    found = linear.diagnose()
    assert list(found.table["check"]) == list(CHECKS)
    assert set(found.table["outcome"]) <= set(OUTCOMES)
    assert found.findings == ()
    assert (found.table["seen"] != "").all()
    assert (found.table["remedy"] == "").all()
    assert found.measure == "nDCG@10"
    assert str(len(DATA.qid) // 10) in found.caption


def test_a_leak_in_the_other_direction_is_found_with_its_figure(leaked):
    row = of(leaked.diagnose(), "single_column")
    column, model = gains(DATA.y.astype(float)), gains(leaked.predictions)
    assert row["outcome"] == "found"
    assert row["figure"] == pytest.approx(column.mean() / model.mean())
    expected = stats.ttest_1samp(column - 0.95 * model, 0, alternative="greater").pvalue
    assert row["p_value"] == pytest.approx(expected)
    assert "column 4 alone, smallest first" in row["seen"]


@pytest.mark.parametrize("make", [sparse.csr_matrix, pd.DataFrame], ids=["sparse", "frame"])
def test_any_features_give_the_same_findings(leaked, make):
    X = make(LEAKED)
    result = rk.cross_validate(Ridge(solver="lsqr", tol=1e-12), X, DATA.y, qid=DATA.qid, measures="nDCG@10", cv=4)
    assert of(result.diagnose(), "single_column")["outcome"] == "found"
    text = pd.DataFrame(LEAKED).assign(title="a")
    (seen,) = CHECKS["single_column"].find(fit_of(replace(leaked, inputs=with_features(leaked, text)), None))
    assert seen.found
    assert "1 column without numbers" in seen.facts["others"]


def with_features(result, X):
    data = replace(result.inputs.task.data, X=X, feature_names=None)
    return replace(result.inputs, task=replace(result.inputs.task, data=data))


def test_scores_in_training_are_of_models_that_were_fitted_to_the_rows():
    """By hand: the model of a fold scores the queries that the fold before held out."""
    tree = rk.cross_validate(
        DecisionTreeRegressor(random_state=0), DATA, measures="nDCG@10", cv=4, return_estimators=True
    )
    trained = np.full(len(DATA), np.nan)
    for place, estimator in enumerate(tree.estimators):
        _, before = tree.inputs.folds[place - 1]
        trained[before] = estimator.predict(DATA.X[before])
    assert np.array_equal(trained, tree.inputs.trained())
    row = of(tree.diagnose(), "overfit")
    training, held_out = gains(trained), gains(tree.predictions)
    assert row["figure"] == pytest.approx(held_out.mean() / training.mean())
    assert row["p_value"] == pytest.approx(stats.ttest_1samp(held_out - 0.75 * training, 0, alternative="less").pvalue)
    assert row["outcome"] == "found"


def test_models_of_other_processes_are_kept_if_asked_for():
    for keep, outcome in ((False, "not made"), (True, "nothing found")):
        result = rk.cross_validate(Ridge(), DATA, measures="nDCG@10", cv=2, n_jobs=2, return_estimators=keep)
        assert of(result.diagnose(), "overfit")["outcome"] == outcome


def test_a_single_part_has_no_score_in_training():
    first = np.isin(DATA.qid, np.unique(DATA.qid)[:20])
    result = rk.cross_validate(Ridge(), DATA, measures="nDCG@10", cv=[(np.flatnonzero(first), np.flatnonzero(~first))])
    assert of(result.diagnose(), "overfit")["outcome"] == "not made"
    assert of(result.diagnose(), "folds")["outcome"] == "not made"


def test_folds_are_tested_by_the_f_of_their_queries(linear):
    row = of(linear.diagnose(), "folds")
    scores = linear.evaluation.per_query["nDCG@10"]
    parts = [scores[np.unique(DATA.qid[test])] for _, test in linear.inputs.folds]
    f, p = stats.f_oneway(*parts)
    assert (row["figure"], row["p_value"]) == (pytest.approx(f), pytest.approx(p))


def test_lower_can_be_better(linear):
    """Gains of ARP, where less is better, are turned: the model gains in training and out of fold."""
    row = of(linear.diagnose(measure="ARP"), "overfit")
    assert row["figure"] == pytest.approx(1, abs=0.1)


def test_edges_of_a_search_by_hand():
    scoring, inner = rk.make_scorer("nDCG@10"), rk.QueryKFold(3)
    grid = {"estimator__alpha": [1e-6, 1e2, 1e4, 1e6], "estimator__fit_intercept": [True, False]}
    search = GridSearchCV(rk.QueryRanker(Ridge()), grid, scoring=scoring, cv=inner)
    search.fit(DATA.X, pd.Series(DATA.y, index=pd.Index(DATA.qid, name="qid")))
    results = pd.DataFrame(search.cv_results_)
    splits = results[[f"split{place}_test_score" for place in range(3)]]
    at_end = results["param_estimator__alpha"] == 1e6
    best = [splits.loc[results.loc[part, "mean_test_score"].idxmax()] for part in (at_end, ~at_end)]
    found = edge_gains(search)
    assert set(found) == {("estimator__alpha", "smallest"), ("estimator__alpha", "greatest")}
    assert found["estimator__alpha", "greatest"] == pytest.approx(best[0] - best[1])


def test_a_seed_is_held_against_the_claim(linear):
    means = pd.DataFrame({"nDCG@10": [0.80, 0.82, 0.81, 0.79]})
    seeded = SeededResult(linear, means)
    reach = stats.t.ppf(0.975, 3) * means["nDCG@10"].std() * np.sqrt(5 / 4)
    check = CHECKS["seed"].find
    (seen,) = check(fit_of(seeded, 0.01))
    assert (seen.figure, seen.found) == (pytest.approx(reach), True)
    (seen,) = check(fit_of(seeded, -0.1))
    assert not seen.found
    assert isinstance(check(fit_of(seeded, None)), str)
    assert of(linear.diagnose(difference=0.01), "seed")["outcome"] == "not made"


class SeededResult:
    def __init__(self, result, seeds):
        self.evaluation, self.predictions, self.inputs, self.seeds = (
            result.evaluation,
            result.predictions,
            result.inputs,
            seeds,
        )


def fit_of(result, difference):
    from rankeval.model_selection.fit_checks import Fit

    return Fit(result, result.inputs, "nDCG@10", None, difference, 0.01)


def test_constant_scores_are_counted_in_single_precision():
    faint = rk.cross_validate(Ridge(1e12), DATA, measures="nDCG@10", cv=4)
    row = of(faint.diagnose(), "constant")
    rounded = pd.Series(faint.predictions.astype(np.float32)).groupby(DATA.qid)
    assert row["outcome"] == "found"
    assert row["figure"] == pytest.approx((rounded.transform(lambda one: one.map(one.value_counts())) > 1).mean())


def test_columns_at_serving():
    frame = pd.DataFrame(DATA.X, columns=DATA.feature_names)
    result = rk.cross_validate(Ridge(), frame, DATA.y, qid=DATA.qid, measures="nDCG@10", cv=4)
    assert of(result.diagnose(serving=frame), "serving")["outcome"] == "nothing found"
    spoilt = frame.assign(f1=0.0, f2=frame["f2"].where(np.arange(len(frame)) % 2 == 0)).drop(columns="f3")
    found = result.diagnose(serving=spoilt).table.query("check == 'serving'")
    assert len(found) == 3
    for words in ("f1 is always 0.0 in 100.0%", "f2 is missing in 50.0%", "f3 is absent in 100.0%"):
        assert found["seen"].str.contains(words, regex=False).sum() == 1
    one_query = frame.iloc[:10].assign(f1=0.0)
    assert of(result.diagnose(serving=one_query), "serving")["outcome"] == "nothing found"


def test_a_flag_that_is_stuck_at_its_usual_value_is_found():
    """Two of three training queries have the value, so its share cannot double."""
    flag = (pd.factorize(DATA.qid)[0] % 3 > 0).astype(int)
    frame = pd.DataFrame(DATA.X, columns=DATA.feature_names).assign(mobile=flag)
    result = rk.cross_validate(Ridge(), frame, DATA.y, qid=DATA.qid, measures="nDCG@10", cv=4)
    served = frame.assign(qid=DATA.qid)
    assert of(result.diagnose(serving=served), "serving")["outcome"] == "nothing found"
    row = of(result.diagnose(serving=served.assign(mobile=1)), "serving")
    assert row["outcome"] == "found"
    assert "mobile is always 1 in 100.0%" in row["seen"]
    n, k = len(np.unique(DATA.qid)), round(flag.mean() * len(np.unique(DATA.qid)))
    p = stats.fisher_exact([[n, k], [0, n - k]], alternative="greater").pvalue
    assert row["p_value"] == pytest.approx(min(1, 2 * frame.shape[1] * p))


@pytest.mark.parametrize("rows", [[{"f1": 1.0}], [1.0, 2.0], {"f1": [1.0]}, "rows"])
def test_rows_at_serving_that_are_no_table_are_refused(linear, rows):
    with pytest.raises(InvalidInput) as caught:
        linear.diagnose(serving=rows)
    assert caught.value.fields["argument"] == "serving"


def test_several_results_lead_on_to_each(linear):
    with pytest.raises(AttributeError, match=r"ask each, results\['ridge'\]\.diagnose$"):
        CrossValidations({"ridge": linear}).diagnose()
    assert not hasattr(CrossValidations({"ridge": linear}), "nothing")


def test_rows_without_names_are_paired_by_place(linear):
    assert of(linear.diagnose(serving=DATA.X[:100]), "serving")["outcome"] == "nothing found"
    assert of(linear.diagnose(serving=DATA), "serving")["outcome"] == "nothing found"
    with pytest.raises(InvalidInput) as caught:
        linear.diagnose(serving=DATA.X[:, 1:])
    assert caught.value.fields["argument"] == "serving"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"measure": "AP"}, UnknownName),
        ({"alpha": 1.0}, InvalidInput),
        ({"difference": "much"}, InvalidInput),
        ({"serving": DATA.X[:0]}, ValueError),
    ],
)
def test_wrong_arguments_are_refused(linear, arguments, error):
    with pytest.raises(error):
        linear.diagnose(**arguments)


def test_the_findings_are_in_the_record_and_come_back(leaked, tmp_path):
    found = leaked.diagnose()
    record = leaked.record()
    assert record.notes == found.findings
    assert record.parts["dev"].notes == (f"{found.findings[0]}.",)
    seal = rk.save(leaked, tmp_path / "cv")
    back = rk.load(tmp_path / "cv")
    pd.testing.assert_frame_equal(back.diagnose().table, found.table)
    assert rk.save(back, tmp_path / "again") == seal
    with pytest.raises(InvalidInput):
        back.diagnose(difference=0.1)


def test_a_diagnosis_is_shown_whole_and_saved_with_its_result_only(leaked, tmp_path):
    found = leaked.diagnose()
    assert isinstance(found, Diagnosis)
    assert found.caption in whole(found)
    for shown in (str(found), found.to_markdown(), found._repr_html_()):
        assert "column" in shown
        assert "not made" in shown
    with pytest.raises(InvalidInput):
        rk.save(found, tmp_path / "found")


def test_a_pickled_result_has_no_rows(leaked):
    back = pickle.loads(pickle.dumps(leaked))
    assert back.inputs is None
    with pytest.raises(InvalidInput):
        back.diagnose()
    assert back.record().notes == ()


def test_weights_are_noted():
    weighted = rk.cross_validate(Ridge(), DATA, measures="nDCG@10", query_weight=np.ones(len(DATA)), cv=4)
    assert len(weighted.diagnose().notes) == 1


def test_data_that_was_registered_since_is_refused_and_the_record_says_so(tmp_path, monkeypatch):
    result = rk.cross_validate(LinearRegression(), DATA, measures="nDCG@10", cv=4)
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    monkeypatch.setenv("RANKEVAL_LEDGER", ledger)
    rk.Guard("p", ledger=ledger).register("test", DATA)
    with pytest.raises(GuardRefusal):
        result.diagnose()
    assert result.record().notes == ("the fit was not diagnosed: its rows are registered test content now",)
