"""Single rules of a convention mean in scikit-learn's world what they mean in evaluate."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeRegressor
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName

CV = rk.QueryKFold(3)
STUMP = DecisionTreeRegressor(max_depth=2)  # four scores, so that nearly all rows are tied
RULES = [
    {"ties": "best"},
    {"ties": "worst"},
    {"ties": "stable"},
    {"no_relevant": "skip"},
    {"no_relevant": "one", "ties": "best"},
    {"judgments": "rows", "missing": "zero"},
]


@pytest.fixture
def barren(ltr):
    """Return the data with some queries that have no relevant document."""
    ltr.y[np.isin(ltr.qid, ["q1", "q5", "q20"])] = 0
    ltr.y_indexed = ltr.y_indexed * 0 + ltr.y
    return ltr


def by_hand(data, rules):
    """Return the value of each fold, by evaluate."""
    found = []
    for train, test in CV.split(data.X, data.y, qid=data.qid):
        score = STUMP.fit(data.X[train], data.y[train]).predict(data.X[test])
        found.append(rk.evaluate(data.y[test], score, qid=data.qid[test], measures="AP", **rules).mean()["AP"])
    return found


@each_row("rules", RULES, ids=str)
def test_scorer_and_cross_validation_score_as_evaluate(rules, barren):
    scorer = rk.make_scorer("AP", **rules)
    expected = by_hand(barren, rules)
    found = cross_val_score(STUMP, barren.X, barren.y_indexed, cv=CV, scoring=scorer)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    convention = rk.Convention.with_rules(**rules)
    told = {"qid": barren.qid, "measures": "AP", "cv": CV, "convention": convention}
    own = rk.cross_validate(STUMP, barren.X, barren.y, **told)
    np.testing.assert_allclose(own.folds["AP"], expected, rtol=1e-12)
    plain = rk.evaluate(barren.y, own.predictions, qid=barren.qid, measures="AP", **rules)
    assert own.evaluation.convention == plain.convention
    curve = rk.learning_curve(STUMP, barren.X, barren.y, sizes=[1.0], **told)
    np.testing.assert_allclose(curve.table["AP"], expected, rtol=1e-12)
    del told["measures"]
    objective = rk.optuna_objective(STUMP, {"max_depth": [2]}, barren.X, barren.y, measure="AP", **told)
    assert objective(Trial()) == pytest.approx(np.mean(expected), rel=1e-12)


class Trial:
    """As much of a trial of Optuna as the objective asks for."""

    def suggest_categorical(self, _name, choices):
        return choices[0]

    def report(self, value, step): ...

    def should_prune(self):
        return False

    def set_user_attr(self, name, value): ...


def test_a_rule_replaces_that_of_a_preset(barren):
    """And a scorer prints its rules."""
    assert repr(rk.make_scorer("AP", ties="best")) == "make_scorer('AP', ties='best')"
    rules = {"convention": "trec_eval-10", "ties": "stable"}
    scorer = rk.make_scorer("AP", **rules)
    assert scorer.convention.ties == "stable"
    assert scorer.convention.name == "trec_eval-10+"
    found = cross_val_score(STUMP, barren.X, barren.y_indexed, cv=CV, scoring=scorer)
    np.testing.assert_allclose(found, by_hand(barren, rules), rtol=1e-12)


@each_row(
    ("rules", "error", "says"),
    [
        ({"ties": "bets"}, UnknownName, "did you mean 'best'"),
        ({"no_relevant": "none"}, UnknownName, "no_relevant"),
        ({"ties": "best", "measure": "Bpref"}, InvalidInput, "not monotone"),
    ],
)
def test_a_wrong_rule_is_an_error_before_anything_is_fitted(rules, error, says, ltr):
    measure = rules.pop("measure", "AP")
    rows = {"X": ltr.X, "y": ltr.y, "qid": ltr.qid}
    changed = rk.Convention.with_rules
    calls = (
        lambda: rk.make_scorer(measure, **rules),
        lambda: rk.cross_validate(None, **rows, measures=measure, convention=changed(**rules)),
        lambda: rk.learning_curve(None, **rows, measures=measure, convention=changed(**rules)),
        lambda: rk.optuna_objective(None, {}, **rows, measure=measure, convention=changed(**rules)),
    )
    for call in calls:
        with pytest.raises(error, match=says):
            call()


def test_judgments_beyond_the_rows_are_refused_where_they_are_a_single_rule():
    with pytest.raises(InvalidInput, match="arrays have the ranked rows only"):
        rk.make_scorer("AP", judgments="qrels")


@each_row("rule", ["ties", "missing", "no_relevant", "judgments"])
def test_elsewhere_a_single_rule_is_answered_by_the_convention(rule, ltr):
    """Only `evaluate` and `make_scorer` take single rules."""
    rows = {"X": ltr.X, "y": ltr.y, "qid": ltr.qid, rule: "zero"}
    calls = (
        lambda: rk.cross_validate(STUMP, **rows),
        lambda: rk.learning_curve(STUMP, **rows),
        lambda: rk.optuna_objective(STUMP, {}, **rows),
        lambda: rk.evaluate_dataset("none.parquet", qid="q", relevance="y", score="s", **{rule: "zero"}),
    )
    for call in calls:
        with pytest.raises(InvalidInput) as refused:
            call()
        assert refused.value.argument == rule
        assert refused.value.remedy == f"use convention=rk.Convention.with_rules({rule}=...)"
