"""A column of scores, and a fusion of several, are rankers wherever a ranker is taken; they learn nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import GuardRefusal, InvalidInput, QueryIdError, UnknownName
from rankeval.model_selection.parameters import settings_of


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas])
def test_a_column_is_found_by_its_name_in_frames_of_every_library(table, ltr):
    """The scores are the column, to the last bit, and nothing need be fitted."""
    assert np.array_equal(rk.ColumnRanker("c").predict(table(ltr.frame)), ltr.X[:, 2])


@pytest.mark.parametrize("rows", [np.asarray, csr_matrix, np.ndarray.tolist])
def test_a_column_of_an_array_is_found_by_its_number_or_by_the_names_of_the_data(rows, ltr):
    """Arrays have no names, so those of the RankingData are given."""
    by_number, by_name = rk.ColumnRanker(2), rk.ColumnRanker("c", feature_names=tuple("abcde"))
    for ranker in (by_number, by_name):
        assert np.array_equal(clone(ranker).predict(rows(ltr.X)), ltr.X[:, 2])


def test_ranks_and_prices_rank_the_lowest_first(ltr):
    """The score is the negative of the value."""
    ranks = ltr.frame["a"].rank()
    scores = rk.ColumnRanker("place", ascending=True).predict(ranks.to_frame("place"))
    assert np.array_equal(np.argsort(-scores), np.argsort(ranks))


@pytest.mark.parametrize(
    ("values", "row"),
    [([1.0, np.nan], 1), ([None, 2], 0), (["x", "y"], 0), (pd.array([1, 2, None], "Int64"), 2), ([1.0, np.inf], 1)],
)
def test_a_missing_value_is_refused_with_its_row(values, row):
    """No order is invented for a row without a score."""
    with pytest.raises(InvalidInput, match=f"row {row}") as caught:
        rk.ColumnRanker("now").predict(pd.DataFrame({"now": values}))
    assert caught.value.argument == "column now"


@pytest.mark.parametrize("column", [None, -1, 1.5, "a"])
def test_what_is_no_column_is_refused(column, ltr):
    """A column has a name or a number."""
    with pytest.raises(UnknownName):
        rk.ColumnRanker(column).fit(ltr.X)


def test_an_unknown_column_is_refused_with_the_nearest_name(ltr):
    """In a frame by its columns, in an array by the names that were given or its width."""
    frame = ltr.frame.rename(columns={"a": "first_stage_score"})
    with pytest.raises(UnknownName, match="did you mean 'first_stage_score'"):
        rk.ColumnRanker("first_stage_scor").fit(frame)
    with pytest.raises(UnknownName):
        rk.ColumnRanker(5).predict(ltr.X)


def test_it_is_compared_in_cross_validation_with_rankers_that_learn(ltr):
    """The out-of-fold scores are the column, so its measures are those of the whole data."""
    rankers = {"now": rk.ColumnRanker("b"), "ridge": Ridge()}
    found = rk.cross_validate(rankers, ltr.frame, ltr.y, qid=ltr.qid, measures="nDCG@10")
    assert np.array_equal(found["now"].predictions, ltr.frame["b"])
    expected = rk.evaluate(ltr.y, ltr.frame["b"].to_numpy(), qid=ltr.qid, measures="nDCG@10")
    assert found["now"].evaluation.mean().equals(expected.mean())
    assert found.compare(question="models", baseline="now").table["system"].tolist() == ["ridge"]


def test_a_search_can_choose_the_column(ltr):
    """The column is a parameter like any other: the relevance was made from column a."""
    search = GridSearchCV(
        rk.QueryRanker(rk.ColumnRanker("e")),
        {"estimator__column": list("edcba")},
        scoring=rk.make_scorer("nDCG@10"),
        cv=rk.QueryKFold(3),
    )
    search.fit(ltr.indexed, ltr.y_indexed)
    assert search.best_params_ == {"estimator__column": "a"}


@pytest.fixture
def guard(tmp_path, monkeypatch):
    """Return a guard with a ledger that the process finds by itself."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    yield rk.Guard("shop")
    forget()


def test_the_guard_freezes_and_opens_it_unfitted(ltr, guard):
    """The baseline of a plan needs no fit, and its look is that of its scores."""
    test = guard.register("weeks", ltr.frame, ltr.y, qid=ltr.qid)
    systems = {"now": rk.ColumnRanker("b"), "new": ltr.X[:, 0]}
    opened = guard.open(guard.freeze(test, systems=systems, baseline="now", measure="nDCG@10"))
    assert opened.table["baseline"].tolist() == ["now"]
    with pytest.raises(GuardRefusal):
        rk.cross_validate(rk.ColumnRanker("c"), ltr.frame, ltr.y, qid=ltr.qid)


def fused(ltr, columns, method="rrf", **options):
    """Return what `rk.fuse` makes of columns, each as a run of its own; row numbers are the documents."""
    documents = np.arange(len(ltr.y))
    runs = [rk.Run(ltr.qid, documents, ltr.frame[column].to_numpy()) for column in columns]
    run = rk.fuse(runs, method, **options)
    return run.to_frame().set_index("docid")["score"].sort_index().to_numpy()


@pytest.mark.parametrize(
    "options",
    [
        {"method": "rrf", "k": 10},
        {"method": "weighted", "weights": [0.3, 0.7]},
        {"method": "combsum", "norm": "z-score"},
        {"method": "bordafuse"},
    ],
)
def test_a_fusion_of_columns_is_the_fusion_of_their_runs(options, ltr):
    """To the last bit, with rows of queries in any order, in folds of whole queries too."""
    expected, ranker = fused(ltr, "ab", **options), rk.Fusion(columns=["a", "b"], **options)
    assert np.array_equal(ranker.predict(ltr.frame, qid=ltr.qid), expected)
    assert np.array_equal(ranker.predict(ltr.indexed), expected)
    assert np.array_equal(ranker.predict(ltr.frame.assign(qid=ltr.qid)), expected)
    by_number = rk.Fusion(columns=[0, 1], **options)
    assert np.array_equal(by_number.predict(ltr.X, qid=ltr.qid), expected)
    found = rk.cross_validate(ranker, ltr.frame, ltr.y, qid=ltr.qid, measures="AP")
    assert np.array_equal(found.predictions, expected)


def test_a_missing_score_is_a_row_that_the_system_did_not_retrieve(ltr):
    """As if the run had no such row; a row without any score is refused."""
    gaps = ltr.frame["b"] < 0
    frame = ltr.frame.assign(b=ltr.frame["b"].mask(gaps))
    documents = np.arange(len(frame))
    runs = [
        rk.Run(ltr.qid[kept], documents[kept], frame[name][kept]) for name, kept in (("a", ~gaps | gaps), ("b", ~gaps))
    ]
    expected = rk.fuse(runs, "combmnz").to_frame().set_index("docid")["score"].sort_index()
    ranker = rk.Fusion("combmnz", columns=["a", "b"])
    assert np.array_equal(ranker.predict(frame, qid=ltr.qid), expected)
    with pytest.raises(InvalidInput, match="row 3 has no score") as caught:
        ranker.predict(frame.assign(a=frame["a"].mask(documents == 3), b=np.nan).iloc[:4], qid=ltr.qid[:4])
    assert caught.value.argument == "X"


def test_a_fusion_without_queries_is_refused_unless_no_row_depends_on_another(ltr):
    """A weighted sum of the scores as they are needs no query."""
    with pytest.raises(QueryIdError):
        rk.Fusion(columns=["a", "b"]).predict(ltr.frame)
    plain = rk.Fusion("weighted", columns=["a", "b"], weights={"b": 2, "a": 1}, norm="none")
    assert np.array_equal(plain.predict(ltr.frame), ltr.X[:, 0] + 2 * ltr.X[:, 1])


def test_weights_are_tuned_inside_cross_validation(ltr):
    """In a bare search and in one over a QueryRanker, behind a transformer too: column a made the relevance."""
    ranker = rk.Fusion("weighted", columns=["a", "e"], weights=[0.5, 0.5])
    choices = {"weights": [[0, 1], [0.5, 0.5], [1, 0]]}
    options = {"scoring": rk.make_scorer("nDCG@10"), "cv": rk.QueryKFold(3)}
    bare = GridSearchCV(ranker, choices, **options)
    wrapped = GridSearchCV(rk.QueryRanker(ranker), {"estimator__weights": choices["weights"]}, **options)
    behind = make_pipeline(FunctionTransformer(), bare)
    expected = fused(ltr, "ae", "weighted", weights=[1, 0])
    for search in (bare, wrapped, behind):
        found = rk.cross_validate(search, ltr.frame, ltr.y, qid=ltr.qid, measures="AP", cv=3)
        assert np.array_equal(found.predictions, expected)


def test_weights_cannot_be_tuned_on_registered_queries(ltr, guard):
    """Tuned on dev, a fusion never sees the test queries; frozen, it is opened once."""
    split = rk.dev_test_split(rk.RankingData(ltr.frame, ltr.y, ltr.qid), test_size=0.4)
    test = guard.register("weeks", split.test)
    search = GridSearchCV(
        rk.QueryRanker(rk.Fusion("weighted", columns=["a", "e"], weights=[1, 1])),
        {"estimator__weights": [[0, 1], [1, 0]]},
        scoring=rk.make_scorer("nDCG@10"),
        cv=rk.QueryKFold(3),
    )
    for data in (split.test, rk.RankingData(ltr.frame, ltr.y, ltr.qid)):
        with pytest.raises(GuardRefusal):
            rk.cross_validate(search, data)
    tuned = rk.QueryRanker(search).fit(split.dev.X, split.dev.y, qid=split.dev.qid)
    systems = {"now": rk.ColumnRanker("e"), "fused": tuned}
    opened = guard.open(guard.freeze(test, systems=systems, baseline="now", measure="nDCG@10"))
    assert opened.table["system"].tolist() == ["fused"]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"columns": []}, "columns"),
        ({"columns": "ab"}, "columns"),
        ({"k": 3, "method": "combsum"}, "k"),
        ({"method": "weighted", "weights": [1.0]}, "weights"),
    ],
)
def test_parameters_of_a_fusion_that_do_not_fit_are_refused(options, argument, ltr):
    """When it is fitted, as scikit-learn asks."""
    with pytest.raises(InvalidInput) as caught:
        rk.Fusion(**{"columns": ["a", "b"], **options}).fit(ltr.frame)
    assert caught.value.argument == argument


def test_the_weights_of_a_fusion_are_among_the_settings_that_records_show():
    fusion = rk.QueryRanker(rk.Fusion("weighted", columns=["a", "b"], weights=[0.6, 0.4]))
    settings = settings_of(fusion)
    assert settings["weights"] == ("[0.6, 0.4]", True)
    steps = settings_of(make_pipeline(StandardScaler(), fusion))["steps"]
    assert steps[1] is False, "the steps of a Pipeline are shown by their own settings"
