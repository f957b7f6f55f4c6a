"""Laws of plans: what they are made of, and what is refused before anything is recorded."""

import numpy as np
import pandas as pd
import pytest
from guard.protocol.conftest import kinds, systems
from sklearn.linear_model import LogisticRegression, Ridge

import rankeval as rk
from rankeval.errors import InvalidInput, LedgerError, QueryIdError
from rankeval.guard import Guard

ODD = (None, 3, 1.5, b"x", [], {}, object())


@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
def test_odd_arguments_are_refused_by_name(guard, test, value):
    """In one line of our own, whatever stands for a plan, a collection or a ledger."""
    plan = guard.freeze(test, systems=systems(test.content, 0, 1), baseline="s0")
    for act, name in (
        (lambda: guard.open(value), "plan"),
        (lambda: guard.plan(value), "plan"),
        (lambda: guard.looks(7 if value is None else value), "collection"),
        (lambda: guard.retire(value, reason="old"), "collection"),
        (lambda: guard.freeze(value, systems=systems(test.content, 0, 1)), "collection"),
    ):
        with pytest.raises(InvalidInput, match=rf"^{name} is [^\n]*; expected [^\n]*$"):
            act()
    if value is not None:
        with pytest.raises(InvalidInput, match=r"^collection is [^\n]*; expected the result of guard\.register$"):
            guard.open(plan, value)
        with pytest.raises(InvalidInput, match=r"^ledger is [^\n]*; expected a path or an SQLAlchemy URL$"):
            Guard("project", ledger=value)


class TestFreeze:
    def test_a_plan_has_the_same_id_whenever_it_says_the_same(self, guard, test, data):
        one = guard.freeze(test, systems=systems(data, 0, 1), baseline="s0", measure="ndcg_cut_10")
        reordered = dict(reversed(systems(data, 0, 1).items()))
        two = guard.freeze(test, systems={n: 3 * s + 1 for n, s in reordered.items()}, baseline="s0", measure="nDCG@10")
        assert one.id == two.id
        assert kinds(guard) == ["register", "freeze"]
        assert guard.plan(one.id[:8]).systems == tuple(sorted(one.systems))
        for change in ({"baseline": "s1"}, {"measure": "AP"}, {"alpha": 0.01}, {"convention": "sklearn"}, {"rng": 1}):
            given = {"baseline": "s0", "measure": "nDCG@10"} | change
            assert guard.freeze(test, systems=systems(data, 0, 1), **given).id != one.id

    def test_a_model_predicts_when_it_is_frozen_with_ids_if_it_takes_them(self, guard, test, data):
        seen = []

        class TakesIds:
            def predict(self, X, qid=None):
                seen.append(qid)
                return X[:, 0]

        class Plain:
            def predict(self, X):
                return X[:, 1]

        plan = guard.freeze(test, systems={"ids": TakesIds(), "plain": Plain()})
        assert (seen[0] == data.qid).all()
        scores = guard.freeze(test, systems={"ids": data.X[:, 0], "plain": data.X[:, 1]})
        assert plan.id == scores.id

    def test_a_classifier_is_frozen_with_its_expected_grades_and_not_with_its_labels(self, guard, test, data):
        fitted = LogisticRegression(max_iter=1000).fit(data.X, data.y)
        expected = fitted.predict_proba(data.X) @ fitted.classes_
        plan = guard.freeze(test, systems={"model": fitted, "plain": data.X[:, 1]})
        assert plan.id == guard.freeze(test, systems={"model": expected, "plain": data.X[:, 1]}).id

    @pytest.mark.parametrize(
        ("given", "match"),
        [
            ({"systems": {}}, "at least one"),
            ({"systems": {"a": np.ones(500), "b": np.ones(3)}}, "^'b': has 3 scores for 500 rows"),
            ({"systems": {"a": np.ones(500), "b": np.full(500, np.nan)}}, "^'b': row 0 is nan"),
            (
                {"systems": {"a": np.ones(500), "b": np.ones(500)}, "baseline": "c"},
                "'c' is not among the systems: a, b",
            ),
            ({"systems": {"a": np.ones(500), "b": np.ones(500)}, "measure": "nDGC@10"}, "nDCG@10"),
            ({"systems": {"a": np.ones(500), "b": np.ones(500)}, "alpha": 5}, "alpha is 5"),
        ],
    )
    def test_a_plan_that_is_not_whole_is_refused(self, guard, test, given, match):
        with pytest.raises(InvalidInput, match=match):
            guard.freeze(test, **given)
        assert kinds(guard) == ["register"]

    def test_plans_are_found_by_id_only(self, guard, test, data):
        guard.freeze(test, systems=systems(data, 0, 1))
        for plan_id in ("nonsense", ""):
            with pytest.raises(LedgerError, match="give the id"):
                guard.open(plan_id)


@pytest.mark.usefixtures("test")
def test_a_name_cannot_be_frozen_for_want_of_the_data(guard, data):
    """Looks are asked for by name; systems are scored on the collection itself."""
    with pytest.raises(InvalidInput, match=r"collection is 'test'; expected the result of guard\.register"):
        guard.freeze("test", systems=systems(data, 0, 1))


def test_a_system_may_be_called_y_and_one_measure_be_secondary(guard):
    data = rk.datasets.make_ranking(60, 8, 3, rng=5)
    test = guard.register("named", data)
    plan = guard.freeze(test, systems={"x": data.X[:, 0], "y": data.X[:, 1]}, baseline="x", secondary="AP")
    assert set(guard.open(plan).evaluations) == {"x", "y"}
    assert plan.secondary == ("AP",)


@pytest.mark.parametrize("as_frame", [False, True], ids=["array", "frame"])
def test_a_model_that_lacks_a_new_feature_is_frozen_by_its_scores(guard, as_frame):
    """An old model beside a new one: the error has the model's own words, and names the way to go."""
    data, dev = (rk.datasets.make_ranking(60, 8, 4, rng=seed) for seed in (5, 6))
    rows, fitted_on = (pd.DataFrame(one.X, columns=list("abcd")) if as_frame else one.X for one in (data, dev))
    old_rows, old_fitted_on = (one[["a", "b"]] if as_frame else one[:, :2] for one in (rows, fitted_on))
    old, new = Ridge().fit(old_fitted_on, dev.y), Ridge().fit(fitted_on, dev.y)
    test = guard.register("grown", rows, data.y, qid=data.qid)
    with pytest.raises(InvalidInput, match=r"'old' cannot predict .* give its scores .* systems=\{'old': ") as error:
        guard.freeze(test, systems={"old": old, "new": new}, baseline="old")
    assert str(error.value.__cause__).splitlines()[0].rstrip(".") in str(error.value)
    plan = guard.freeze(test, systems={"old": old.predict(old_rows), "new": new}, baseline="old")
    assert set(plan.names) == {"old", "new"}


def test_an_error_of_ours_in_a_model_keeps_its_class(guard, test):
    class Asks:
        def predict(self, X):
            raise QueryIdError("query ids are missing")

    with pytest.raises(QueryIdError):
        guard.freeze(test, systems={"asks": Asks()})
