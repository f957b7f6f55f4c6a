"""One table in every form: each function of the room gives what it gives for NumPy's array."""

from __future__ import annotations

import numpy as np
import optuna
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import sklearn
from lightgbm import LGBMRanker
from model_selection.libraries import CatBoostRanker, XGBRanker, each
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from tables import each_row

import rankeval as rk
from rankeval.collection.data import take_rows
from rankeval.contamination.fingerprint import fingerprint
from rankeval.errors import GuardRefusal, InvalidInput

DATA = rk.datasets.make_ranking(14, 6, 3, rng=0)
ROWS = np.random.default_rng(0).permutation(len(DATA))
X, Y, QID = np.round(DATA.X[ROWS], 2), DATA.y[ROWS], np.char.add("q", DATA.qid[ROWS].astype(str))
FRAME = pd.DataFrame(X, columns=list("abc"))
TABLE = pa.table(FRAME)
VALIDATION = rk.datasets.make_ranking(6, 6, 3, rng=1)
LIGHT = {"n_estimators": 3, "min_child_samples": 2, "n_jobs": 1, "verbose": -1}


def _read_only() -> np.ndarray:
    array = X.copy()
    array.flags.writeable = False
    return array


KINDS = {
    "list": X.tolist(),
    "objects": X.astype(object),
    "read only": _read_only(),
    "Fortran": np.asfortranarray(X),
    "big-endian": X.astype(">f8"),
    "pandas": FRAME,
    "pandas' Float64": FRAME.astype("Float64"),
    "Arrow in pandas": FRAME.astype("double[pyarrow]"),
    "polars": pl.DataFrame(FRAME),
    "Arrow": TABLE,
    "Arrow from pandas": pa.Table.from_pandas(FRAME.set_index(pd.Index(ROWS, name="row"))),
    "Arrow chunks": pa.concat_tables([TABLE.slice(0, 20), TABLE.slice(20)]),
    "Arrow batch": pa.record_batch(FRAME),
    **{f"sparse {kind}": getattr(scipy.sparse, kind)(X) for kind in ("csr_matrix", "csc_array", "coo_array")},
}
LIKE_FRAMES = {name: one for name, one in KINDS.items() if "pandas" in name or "polars" in name or "Arrow" in name}


def with_ids(table: object) -> object:
    """Return a frame with a column of query ids."""
    if isinstance(table, (pa.Table, pa.RecordBatch)):
        return (
            table.append_column("qid", pa.array(QID))
            if isinstance(table, pa.Table)
            else table.add_column(1, "qid", pa.array(QID))
        )
    return table.assign(qid=QID) if isinstance(table, pd.DataFrame) else table.with_columns(qid=pl.Series(QID))


def _fitted(X, **told):
    return rk.QueryRanker(Ridge()).fit(X, Y, **told)


def _split(X, **told):
    parts = rk.dev_test_split(X, Y, test_size=0.4, **told)
    ranker = rk.QueryRanker(Ridge()).fit(parts.dev.X, parts.dev.y, qid=parts.dev.qid)
    return ranker.predict(parts.test.X)


def _study(X, **told):
    objective = rk.optuna_objective(Ridge(), {"alpha": [1.0, 2.0]}, X, Y, cv=3, measure="nDCG@5", **told)
    return objective(optuna.trial.FixedTrial({"alpha": 2.0}))


def _nested(X, **told):
    search = GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [1.0, 9.0]}, cv=rk.QueryKFold(2))
    return rk.cross_validate(search, X, Y, cv=3, **told).predictions


def _searched(X, **told):
    search = GridSearchCV(
        _searchable(), {"estimator__alpha": [1.0, 9.0]}, cv=rk.QueryKFold(3), scoring=rk.make_scorer("AP")
    )
    with sklearn.config_context(enable_metadata_routing=True):
        return search.fit(X, Y, **told).cv_results_["mean_test_score"]


def _searchable():
    return rk.QueryRanker(Ridge())


FUNCTIONS = {
    "fit and predict": lambda X, **told: _fitted(X, **told).predict(X),
    "score": lambda X, **told: _fitted(X, **told).score(X, Y, **told),
    "scorer": lambda X, **told: rk.make_scorer("nDCG@5")(_fitted(X, **told), X, Y, **told),
    "cross_validate": lambda X, **told: rk.cross_validate(Ridge(), X, Y, cv=3, **told).predictions,
    "learning_curve": lambda X, **told: rk.learning_curve(Ridge(), X, Y, cv=3, sizes=[4], **told).table["AP"],
    "dev_test_split": _split,
    "optuna_objective": _study,
    "nested search": _nested,
    "search of scikit-learn": _searched,
}


QUICK = [*FUNCTIONS][:6]


@pytest.fixture(scope="module")
def of_array():
    """Return what each function gives for NumPy's array."""
    return {name: function(X, qid=QID) for name, function in FUNCTIONS.items()}


@each_row("kind", KINDS)
def test_every_form_of_rows_gives_the_same(kind, of_array):
    """Searches and studies take rows as `cross_validate` does, so a few kinds are enough."""
    few = kind in ("pandas", "polars", "Arrow", "sparse csr_matrix")
    for name in FUNCTIONS if few else QUICK:
        np.testing.assert_allclose(FUNCTIONS[name](KINDS[kind], qid=QID), of_array[name], rtol=1e-9, err_msg=name)


@each_row("kind", LIKE_FRAMES)
def test_a_column_of_ids_is_found_in_every_frame_and_is_no_feature(kind, of_array):
    for name in QUICK:
        found = FUNCTIONS[name](with_ids(KINDS[kind]))
        np.testing.assert_allclose(found, of_array[name], rtol=1e-9, err_msg=name)


@each_row("kind", LIKE_FRAMES)
def test_ranking_data_keeps_the_kind_of_a_frame_and_takes_its_rows(kind):
    data = rk.RankingData(KINDS[kind], Y, QID)
    for rows in ([3, 1, 1], np.array([-1, 0]), Y > 1, np.array([], dtype=int)):
        taken = data.take(rows)
        assert type(taken.X) is type(KINDS[kind])
        assert taken.X.shape[0] == len(taken.y)
        some = np.asarray(rows) if len(rows) else np.array([], dtype=int)
        np.testing.assert_array_equal(np.asarray(taken.X, dtype=float)[:, :3], X[some])
    with pytest.raises(IndexError):
        data.take([len(Y)])


def test_rows_of_an_arrow_table_of_texts_as_views_are_taken():
    """A table that polars made may have them, and Arrow itself takes no rows of them."""
    table = pa.table({"text": pa.array(["a", None, "c"], pa.string_view()), "number": [1.0, 2.0, 3.0]})
    assert take_rows(table, np.array([2, 1])).to_pylist() == [
        {"text": "c", "number": 3.0},
        {"text": None, "number": 2.0},
    ]


@each_row("kind", LIKE_FRAMES)
def test_the_names_of_columns_are_kept(kind):
    split = rk.dev_test_split(KINDS[kind], Y, qid=QID)
    assert split.dev.feature_names[:3] == ("a", "b", "c")
    assert rk.QueryRanker(Ridge()).fit(KINDS[kind], Y, qid=QID).feature_names_in_.tolist() == list("abc")


GAPS = np.where(X > 1, np.nan, X)
WITH_GAPS = pd.DataFrame(GAPS, columns=list("abc"))
MISSING = {
    "pandas": WITH_GAPS,
    "pandas' Float64": WITH_GAPS.astype("Float64"),
    "polars": pl.from_pandas(WITH_GAPS, nan_to_null=True),
    "Arrow": pa.Table.from_pandas(WITH_GAPS, preserve_index=False),
    "sparse": scipy.sparse.csc_matrix(GAPS),
}


@pytest.mark.parametrize(
    "booster",
    each(
        [
            LGBMRanker(**LIGHT),
            HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2),
            XGBRanker(n_estimators=3, n_jobs=1),
            CatBoostRanker(iterations=3, verbose=False, thread_count=1, allow_writing_files=False),
        ]
    ),
)
def test_missing_values_of_every_frame_are_those_of_the_array(booster):
    stops = {} if isinstance(booster, HistGradientBoostingRegressor) else {"early_stopping_rounds": 2}
    expected = rk.QueryRanker(booster).fit(GAPS, Y, qid=QID).predict(GAPS)
    for kind, table in MISSING.items():
        if kind == "sparse" and not isinstance(booster, LGBMRanker):
            continue
        np.testing.assert_array_equal(rk.QueryRanker(booster).fit(table, Y, qid=QID).predict(table), expected, kind)
    for kind in ("polars", "Arrow", "Arrow batch"):
        told = {"eval_set": (pd.DataFrame(VALIDATION.X, columns=list("abc")), VALIDATION.y), "eval_qid": VALIDATION.qid}
        told["eval_set"] = (
            type(KINDS[kind])(told["eval_set"][0]) if kind == "polars" else pa.table(told["eval_set"][0]),
            VALIDATION.y,
        )
        if stops:
            ranker = rk.QueryRanker(booster, **stops)
            assert ranker.fit(KINDS[kind], Y, qid=QID, **told).n_iterations_
            assert rk.cross_validate(ranker, KINDS[kind], Y, qid=QID, cv=2, **told).predictions.shape == Y.shape


@each_row(("kind", "values"), [("Int64", [1, 2, None]), ("boolean", [True, False, None]), ("UInt8", [0, 9, None])])
def test_nullable_columns_are_those_of_numbers(kind, values):
    number = pd.Series(values * 28, dtype=kind)
    nullable = FRAME.assign(d=number)
    plain = FRAME.assign(d=number.astype("float64"))
    expected = rk.cross_validate(LGBMRanker(**LIGHT), plain, Y, qid=QID, cv=2).predictions
    arrow = pa.Table.from_pandas(nullable, preserve_index=False)
    for table in (nullable, pl.from_pandas(nullable), arrow, nullable.convert_dtypes(dtype_backend="pyarrow")):
        found = rk.cross_validate(LGBMRanker(**LIGHT), table, Y, qid=QID, cv=2).predictions
        np.testing.assert_array_equal(found, expected, type(table).__module__)


@each_row("lazy", [pl.LazyFrame(FRAME), pl.LazyFrame(FRAME).with_columns(qid=1)])
def test_a_lazy_frame_is_refused_with_the_way_out(lazy):
    for name in QUICK:
        with pytest.raises(InvalidInput) as refused:
            FUNCTIONS[name](lazy, qid=QID)
        assert (refused.value.argument, refused.value.remedy) == ("X", "call its .collect() first"), name
    with pytest.raises(InvalidInput) as refused:
        rk.QueryRanker(Ridge()).fit(X, pl.LazyFrame({"y": Y}), qid=QID)
    assert (refused.value.argument, refused.value.found) == ("y", "a lazy frame")


@each_row("rows", [None, {"a": [1.0]}, (row for row in X), 3.0, "X.csv", object()], ids=lambda rows: str(type(rows[0])))
def test_what_has_no_rows_is_refused(rows):
    for name in ("cross_validate", "learning_curve", "dev_test_split", "optuna_objective"):
        with pytest.raises(InvalidInput) as refused:
            FUNCTIONS[name](rows, qid=QID)
        assert refused.value.argument == "X", name


def test_a_column_is_no_rows():
    for name in QUICK[:5]:
        with pytest.raises(ValueError, match="1D array"):
            FUNCTIONS[name](FRAME["a"], qid=QID)


@each_row("kind", ["pandas", "Arrow", "Arrow batch"])
def test_two_columns_of_one_name_are_refused(kind):
    twice = FRAME.set_axis(["a", "b", "a"], axis=1)
    arrays = [TABLE[name].combine_chunks() for name in "abc"]
    tables = {"Arrow": pa.Table, "Arrow batch": pa.RecordBatch}
    table = tables[kind].from_arrays(arrays, names=["a", "b", "a"]) if kind in tables else twice
    for name in QUICK[:5]:
        with pytest.raises(InvalidInput) as refused:
            FUNCTIONS[name](table, qid=QID)
        assert (refused.value.argument, refused.value.found) == ("X", "a frame with two columns 'a'"), (
            name,
            refused.value,
        )


MIXED = FRAME.assign(word=np.where(Y > 1, "x", "y"), flag=Y > 0, gap=pd.Series(np.where(Y > 1, 1, None), dtype="Int64"))
SAME_CONTENT = {
    "polars": pl.from_pandas(MIXED),
    "Arrow": pa.Table.from_pandas(MIXED, preserve_index=False),
    "Arrow batch": pa.RecordBatch.from_pandas(MIXED, preserve_index=False),
    "Arrow with categories": pa.Table.from_pandas(MIXED.astype({"word": "category"}), preserve_index=False),
    "Arrow with ids": pa.Table.from_pandas(MIXED.assign(qid=QID), preserve_index=False),
    "polars with ids": pl.from_pandas(MIXED.assign(qid=QID)),
}


@each_row("kind", SAME_CONTENT)
def test_every_frame_has_the_fingerprint_of_the_pandas_frame(kind):
    assert fingerprint(SAME_CONTENT[kind], Y, QID).digest == fingerprint(MIXED, Y, QID).digest


@each_row(("registered", "used"), [("pandas", "Arrow"), ("Arrow", "polars"), ("polars with ids", "Arrow batch")])
def test_the_guard_recognises_content_in_another_frame(registered, used, tmp_path, monkeypatch):
    frames = {**SAME_CONTENT, "pandas": MIXED}
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    guard = rk.Guard("tables")
    assert guard.register("test", frames[registered], Y, qid=QID).digest == fingerprint(MIXED, Y, QID).digest
    with pytest.raises(GuardRefusal):
        rk.cross_validate(LGBMRanker(**LIGHT), frames[used], Y, qid=QID)
