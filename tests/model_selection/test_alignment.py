"""What is fitted, split and scored has rows in one order: labelled columns agree, or the call is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, MissingQueryIdsRefusal, QueryIdError
from rankeval.model_selection.trials import optuna_objective

RNG = np.random.default_rng(3)
INDEX = pd.Index(RNG.permutation(200) + 1000)
X = pd.DataFrame(RNG.normal(size=(200, 3)), index=INDEX, columns=list("abc"))
Y = pd.Series(RNG.integers(0, 3, 200), index=INDEX)
QID = pd.Series(np.repeat(np.arange(20), 10), index=INDEX)
GROUPS = QID // 2
WEIGHT = 1.0 + QID % 3
COLUMNS = {"X": X, "y": Y, "qid": QID, "groups": GROUPS, "sample_weight": WEIGHT, "query_weight": WEIGHT}


def fit(X, y, **beside):
    """Fit a ranker."""
    return rk.QueryRanker(Ridge()).fit(X, y, **beside)


def split(X, y, **beside):
    """Split rows into two folds."""
    return list(rk.QueryKFold(2).split(X, y, **beside))


DOORS = {
    "cross_validate": partial(rk.cross_validate, Ridge(), cv=2, measures="AP"),
    "learning_curve": partial(rk.learning_curve, Ridge(), cv=2, sizes=[1.0], measures="AP"),
    "optuna_objective": partial(optuna_objective, Ridge(), {"alpha": [1, 2]}),
    "QueryRanker.fit": fit,
    "dev_test_split": rk.dev_test_split,
    "RankingData": rk.RankingData,
    "split": split,
}
LEFT = dict.fromkeys(("dev_test_split", "RankingData", "split"), ("groups", "sample_weight", "query_weight"))
TAKES = [(door, name) for door in DOORS for name in COLUMNS if name not in LEFT.get(door, ())]


def call(door, **other):
    """Call a front door with all that it takes, some of it replaced."""
    columns = COLUMNS | other
    columns = {name: column for name, column in columns.items() if name not in LEFT.get(door, ())}
    return DOORS[door](columns.pop("X"), columns.pop("y"), **columns)


@each_row(("door", "name"), TAKES)
def test_one_argument_in_another_order_is_refused(door, name):
    """And all in one order are taken, whatever it is."""
    call(door)
    turned = COLUMNS[name].iloc[::-1]
    with pytest.raises(QueryIdError, match=r"have different indexes: row 0 is \d+ in \w+ and \d+ in \w+; give"):
        call(door, **{name: turned})


@each_row("name", ["X", "y", "qid"])
def test_scorers_refuse_past_error_score(name):
    """An ordinary exception would become a column of nan."""
    fitted = rk.QueryRanker(Ridge()).fit(X, Y, qid=QID)
    columns = {**COLUMNS, name: COLUMNS[name].iloc[::-1]}
    del columns["groups"], columns["sample_weight"]
    with pytest.raises(MissingQueryIdsRefusal, match="have different indexes"):
        rk.make_scorer("AP")(fitted, columns.pop("X"), columns.pop("y"), **columns)


def test_ids_bound_beforehand_are_looked_up_by_label():
    """They come from another call: their labels are all there is to go by."""
    fitted = rk.QueryRanker(Ridge()).fit(X, Y, qid=QID)
    expected = rk.make_scorer("AP")(fitted, X, Y, qid=QID)
    assert rk.make_scorer("AP", qid=QID.iloc[::-1])(fitted, X, Y) == expected
    with pytest.raises(QueryIdError, match="qid and y have different indexes"):
        rk.make_scorer("AP", qid=QID, y=Y.iloc[::-1])


@each_row("plain", [(), ("X",), ("y",), ("qid",), ("X", "y"), ("y", "qid"), ("X", "qid")], ids=str)
def test_searches_slice_rows_and_labels_alike(plain):
    """Folds of frames, arrays and both give one value, with routing on: nothing is refused that agrees."""
    columns = {name: value.to_numpy() if name in plain else value for name, value in COLUMNS.items()}
    ranker = rk.QueryRanker(Ridge())
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        options = {"scoring": rk.make_scorer("AP"), "cv": rk.QueryKFold(3), "error_score": "raise"}
        params = {"qid": columns["qid"]}
        found = cross_validate(ranker, columns["X"], columns["y"], params=params, **options)["test_score"]
        search = GridSearchCV(ranker, {"estimator__alpha": [0.1, 10.0]}, **options)
        search.fit(columns["X"], columns["y"], qid=columns["qid"])
    expected = rk.cross_validate(Ridge(), X, Y, qid=QID, cv=3, measures="AP").folds["AP"]
    assert found.tolist() == pytest.approx(expected.tolist())
    assert np.isfinite(search.best_score_)


def test_a_key_by_row_has_the_index_of_the_rows():
    """Strata are told by row, or by query; those of other rows are none."""
    cv = rk.StratifiedQueryKFold(2, key=QID % 2)
    assert len(list(cv.split(X, Y, qid=QID))) == 2
    with pytest.raises(QueryIdError, match="and key have different indexes"):
        list(rk.StratifiedQueryKFold(2, key=(QID % 2).iloc[::-1]).split(X, Y, qid=QID))
    by_query = pd.Series(np.arange(20) % 2, index=range(20))
    assert len(list(rk.StratifiedQueryKFold(2, key=by_query).split(X, Y, qid=QID))) == 2


@each_row(("door", "name"), TAKES)
def test_a_masked_value_is_refused_as_nan_is(door, name):
    """The mask was ignored: what it hides was used."""
    column = np.ma.array(COLUMNS[name].to_numpy())
    call(door, **{name: column})
    column[5] = np.ma.masked
    with pytest.raises(InvalidInput, match=f"^{name}: row 5 is masked"):
        call(door, **{name: column})


def test_masked_values_are_refused_by_fitted_models_and_scorers():
    """`predict` too, and what a model predicts."""
    fitted = rk.QueryRanker(Ridge()).fit(X, Y, qid=QID)
    masked = np.ma.array(X.to_numpy())
    masked[3, 1] = np.ma.masked
    with pytest.raises(InvalidInput, match=r"^X: row 3 is masked"):
        fitted.predict(masked)
    for columns in ((masked, Y), (X, np.ma.masked_equal(Y.to_numpy(), 2))):
        with pytest.raises(MissingQueryIdsRefusal, match="is masked"):
            rk.make_scorer("AP")(fitted, *columns, qid=QID)


@each_row("qid", [[1.0, np.nan], ["a", None], [None, "a"]])
def test_ranking_data_without_a_query_id_are_refused(qid):
    """They were one query named nan."""
    with pytest.raises(QueryIdError, match=r"qid: row . has no query id"):
        rk.RankingData(np.zeros((2, 1)), [0, 1], qid)


@each_row("y", [[1.0, np.nan], [1, None], pd.array([1, None], dtype="Int64")], ids=["nan", "None", "NA"])
def test_ranking_data_without_a_label_are_refused(y):
    """A label that is missing would be met where it is scored, or never."""
    with pytest.raises(InvalidInput, match=r"^y: row 1 (is nan|has no number)"):
        rk.RankingData(np.zeros((2, 1)), y, [1, 1])
    with pytest.raises(InvalidInput, match=r"^y: row 1 (is nan|has no number)"):
        rk.dev_test_split(np.zeros((2, 1)), y, qid=[1, 2])


def test_predictions_that_floats_cannot_tell_apart_are_refused():
    """A list of them became an array of rounded floats."""

    class Model:
        def predict(self, _):
            return [0.0, 2**60 + 1, 2.0]

    with pytest.raises(InvalidInput, match="predict: row 1 is 1152921504606846977"):
        rk.make_scorer("AP")(Model(), np.zeros((3, 1)), [0, 1, 2], qid=[1, 1, 1])
