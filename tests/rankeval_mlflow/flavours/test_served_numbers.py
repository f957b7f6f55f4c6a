"""A saved ranker serves the rows that it was fitted on, wherever a value is missing, and later gaps that it scores."""

from __future__ import annotations

import importlib
import json
from decimal import Decimal

import mlflow
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from circles import missing
from lightgbm import LGBMRanker
from mlflow.pyfunc import scoring_server
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder
from tables import each_row

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput
from rankeval_mlflow.saving import saved
from rankeval_mlflow.signing import CHECKED_ROWS

LATE = CHECKED_ROWS + 500
RNG = np.random.default_rng(0)
DATA = rk.datasets.make_ranking(200, 10, 4, rng=0)
FLOATS = pd.DataFrame(DATA.X, columns=list("abcd"))
NUMBERS = pd.Series(RNG.integers(0, 9, len(DATA.y)))
TRUTHS = NUMBERS > 4
BRANDS = pd.Series(RNG.choice(["x", "y", "z"], len(DATA.y)), dtype=object)
LIGHT = LGBMRanker(n_estimators=5, verbose=-1, n_jobs=1)
HISTOGRAMS = HistGradientBoostingRegressor(max_iter=5)
BOOSTERS = {
    "xgboost": ("XGBRanker", {"n_estimators": 5, "n_jobs": 1}),
    "catboost": ("CatBoostRanker", {"iterations": 5, "verbose": False, "allow_writing_files": False}),
}


def with_gap(column, place):
    """Return a column of which one value is missing; of NumPy's whole numbers and truth values None is."""
    column = column.copy()
    if place is not None:
        column = column.astype(object) if isinstance(column.dtype, np.dtype) else column
        column[place] = None if column.dtype == object else pd.NA
    return column


def encoded(last, encoder=None):
    """Return a Pipeline that encodes the brand."""
    encoder = encoder or OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(make_column_transformer((encoder, ["brand"]), remainder="passthrough"), last)


def fitted(estimator, X, y=DATA.y):
    return rk.QueryRanker(estimator).fit(X, y, qid=DATA.qid)


def loaded(ranker, X, folder):
    """Return the saved ranker as `mlflow.pyfunc` loads it."""
    for path, content in saved(ranker, X=X).files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return mlflow.pyfunc.load_model(str(folder))


def asked(model, rows):
    """Return the scores of rows that are sent as JSON; a missing value is null."""
    plain = rows.astype(object).where(rows.notna(), None)
    data = [[cell.item() if hasattr(cell, "item") else cell for cell in row] for row in plain.itertuples(index=False)]
    body = json.loads(json.dumps({"dataframe_split": {"columns": list(rows.columns), "data": data}}, default=float))
    sent = scoring_server.infer_and_parse_data(body, schema=model.metadata.get_input_schema())
    return np.asarray(model.predict(sent), dtype=float)


def assert_served(ranker, X, folder):
    """Assert that the saved ranker serves a frame, and JSON of several rows and of each alone, bit for bit."""
    model, expected = loaded(ranker, X, folder), ranker.predict(X)
    assert len(np.unique(expected)) > 5
    np.testing.assert_array_equal(np.asarray(model.predict(X), dtype=float), expected)
    places = [0, 3, LATE, LATE + 1]
    np.testing.assert_array_equal(asked(model, X.iloc[places]), expected[places])
    for place in places:
        np.testing.assert_array_equal(asked(model, X.iloc[[place]]), expected[[place]])
    return model


COLUMNS = {
    "Int64": NUMBERS.astype("Int64"),
    "Int8": NUMBERS.astype("Int8"),
    "UInt64": NUMBERS.astype("UInt64"),
    "boolean": TRUTHS.astype("boolean"),
    "Float64": NUMBERS.astype("Float64"),
    "uint64": NUMBERS.astype("uint64") * 2**59,  # hashed ids
    "int64": NUMBERS,
    "int16": NUMBERS.astype("int16"),
    "bool": TRUTHS,
    "sparse": NUMBERS.astype(pd.SparseDtype("int64", 0)),
}


def libraries():
    """Return the estimators that may be tried here."""
    found = {"lightgbm": LIGHT, "histograms": HISTOGRAMS}
    for library, (name, options) in BOOSTERS.items():
        if not missing("needs", (library,)):
            found[library] = getattr(importlib.import_module(library), name)(**options)
    return found


@pytest.mark.further
@each_row(
    "kind, place",
    [(kind, place) for kind in COLUMNS for place in ((3, LATE) if kind[0].isupper() or kind == "boolean" else (None,))],
)
def test_whole_numbers_and_truth_values_are_served(kind, place, tmp_path):
    """Of any width and type, with and without a missing value, early and late: the very frame, and JSON."""
    X = FLOATS.assign(clicks=with_gap(COLUMNS[kind], place))
    assert_served(fitted(LIGHT, X), X, tmp_path)


@pytest.mark.further
@pytest.mark.worth("every library converts whole numbers in its own way")
@pytest.mark.parametrize(
    "library", ["histograms", *(pytest.param(one, marks=pytest.mark.needs(one)) for one in BOOSTERS)]
)
def test_every_library_serves_whole_numbers(library, tmp_path):
    """CatBoost takes no missing truth value in Python either."""
    estimator = libraries()[library]
    for kind, column in list(COLUMNS.items())[:-1]:  # only LightGBM takes sparse columns
        gaps = (kind[0].isupper() or kind == "boolean") and (library, kind) != ("catboost", "boolean")
        X = FLOATS.assign(clicks=with_gap(column, LATE if gaps else None))
        assert_served(fitted(estimator, X), X, tmp_path / kind)


OBJECTS = {
    "None among numbers": with_gap(NUMBERS, LATE),
    "None among truth values": with_gap(TRUTHS, LATE),
    "decimals": NUMBERS.map(Decimal),
}


@each_row("kind", OBJECTS)
def test_objects_that_are_numbers_are_served(kind, tmp_path):
    """scikit-learn makes floats of them."""
    X = FLOATS.assign(clicks=OBJECTS[kind])
    assert_served(fitted(HISTOGRAMS, X), X, tmp_path)


@each_row("kind", ["int64", "int16", "uint64", "bool"])
def test_a_later_value_may_be_missing(kind, tmp_path):
    """Null alone, null among others, and NaN in a frame: as the ranker itself scores it."""
    X = FLOATS.assign(clicks=COLUMNS[kind])
    ranker = fitted(LIGHT, X)
    model = loaded(ranker, X, tmp_path)
    later = X.head(3).assign(clicks=[1.0, np.nan, 0.0])
    expected = ranker.predict(later)
    np.testing.assert_array_equal(model.predict(later), expected)
    truths = later.assign(clicks=[True, None, False]) if kind == "bool" else later
    np.testing.assert_array_equal(asked(model, truths), expected)
    np.testing.assert_array_equal(asked(model, truths.iloc[[1]]), expected[[1]])


def test_a_ranker_that_refuses_gaps_has_the_types_of_mlflow(tmp_path):
    """No null is taken for False: Ridge refuses what is missing."""
    X = FLOATS.assign(clicks=NUMBERS, seen=TRUTHS)
    model = loaded(fitted(Ridge(), X), X, tmp_path)
    assert str(model.metadata.get_input_schema().input_dict()["clicks"].type) == "DataType.long"
    for gap in ({"clicks": [None]}, {"seen": [None]}):
        with pytest.raises((ValueError, mlflow.MlflowException)):
            asked(model, X.head(1).assign(**gap))


def test_the_names_of_columns_may_be_numbers(tmp_path):
    X = FLOATS.assign(clicks=with_gap(COLUMNS["UInt64"], LATE)).set_axis(range(5), axis=1)
    assert_served(fitted(LIGHT, X), X, tmp_path)


def written_out(frame):
    """Make texts of the clicks: those of floats are others."""
    return frame.assign(brand=frame["brand"].astype(str))


@each_row("kind, place", [("Int64", 3), ("UInt64", LATE), ("boolean", LATE)])
def test_what_cannot_be_served_names_the_column_and_the_cast(kind, place):
    X = FLOATS.assign(brand=with_gap(COLUMNS[kind], place))
    pipeline = make_pipeline(FunctionTransformer(written_out), encoded(Ridge()))
    with pytest.raises(InvalidInput) as refused:
        saved(fitted(pipeline, X), X=X)
    assert (refused.value.argument, refused.value.where) == ("X", "column 'brand'")
    assert refused.value.remedy == 'fit the ranker on X.astype({"brand": "float64"})'
    mended = X.astype({"brand": "float64"})
    assert saved(fitted(pipeline, mended), X=mended).flavor == "sklearn"


def test_a_refusal_by_mlflow_names_the_column_and_repeats_no_rows():
    """It was 800 characters of the frame."""
    hour = FunctionTransformer(lambda frame: frame.assign(time=frame["time"].dt.hour))
    X = FLOATS.assign(time=pd.date_range("2026", periods=len(FLOATS), freq="h", tz="UTC"))
    with pytest.raises(InvalidInput) as refused:
        saved(fitted(make_pipeline(hour, Ridge()), X), X=X)
    assert (refused.value.argument, refused.value.where) == ("X", "column 'time'")
    assert len(str(refused.value)) < 300


MISSING = BRANDS.where(np.arange(len(BRANDS)) != LATE, None)
NAN = BRANDS.where(np.arange(len(BRANDS)) != LATE, np.nan)
TEXTS = {
    "objects": FLOATS.assign(brand=MISSING),
    "NaN among objects": FLOATS.assign(brand=NAN),
    "as pandas infers": FLOATS.assign(brand=MISSING.astype(pd.Series(["a"]).dtype)),  # "str" from pandas 3 on
    "polars": pl.from_pandas(FLOATS.assign(brand=MISSING)),
    "pyarrow": pa.Table.from_pandas(FLOATS.assign(brand=MISSING)),
    "reversed": FLOATS.assign(brand=MISSING[::-1].to_numpy()).iloc[::-1].reset_index(drop=True),
}


@each_row("kind", TEXTS)
def test_the_first_missing_text_is_looked_at_wherever_it_is(kind):
    """An encoder tells None from NaN, and null in JSON is the one or the other."""
    X = TEXTS[kind]
    y = np.where(np.arange(len(DATA.y)) == LATE, 4, DATA.y)
    with pytest.raises(InvalidInput) as refused:
        saved(fitted(encoded(Ridge()), X, y), X=X)
    assert (refused.value.argument, refused.value.where) == ("X", "column 'brand'")
    assert "null" in refused.value.found


def test_arrays_of_objects_are_looked_at_too():
    """A column of texts in them has a number for its name."""
    X = np.column_stack([DATA.X.astype(object), MISSING])
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [4]), remainder="passthrough")
    with pytest.raises(InvalidInput) as refused:
        saved(fitted(make_pipeline(encoder, Ridge()), X), X=X)
    assert refused.value.where == "column 4"


def none_and_positive(frame):
    """Tell None from NaN, where another column is positive."""
    is_none = np.array([brand is None for brand in frame["brand"]])
    return np.column_stack([frame["a"], is_none & (frame["a"] > 0)])


def test_many_rows_with_gaps_are_tried():
    """The score of the first gap alone may be the same for None and NaN."""
    gaps = FLOATS.index.isin([LATE, LATE + 1])
    X = FLOATS.assign(brand=BRANDS.where(~gaps, None), a=FLOATS["a"].where(~gaps, [-1.0, 1.0] * (len(gaps) // 2)))
    ranker = fitted(make_pipeline(FunctionTransformer(none_and_positive), Ridge()), X, np.where(gaps, 4, DATA.y))
    with pytest.raises(InvalidInput) as refused:
        saved(ranker, X=X)
    assert refused.value.where == "column 'brand'"


def test_the_column_at_fault_is_named():
    """Not the first one with a gap."""
    X = FLOATS.assign(other=pd.Series(MISSING).rename("other"), brand=MISSING)
    dropped = FunctionTransformer(lambda frame: frame.drop(columns="other"))
    with pytest.raises(InvalidInput) as refused:
        saved(fitted(make_pipeline(dropped, encoded(Ridge())), X), X=X)
    assert refused.value.where == "column 'brand'"


def test_a_gap_that_any_encoding_takes_is_served(tmp_path):
    """The remedies: no gap, and categories."""
    for number, brand in enumerate((MISSING.fillna(""), MISSING.astype("category"))):
        X = FLOATS.assign(brand=brand)
        assert_served(fitted(encoded(HISTOGRAMS, OrdinalEncoder()), X), X, tmp_path / str(number))


def test_a_registered_version_serves_the_rows_of_training():
    """As the page of the review tried it."""
    X = FLOATS.assign(clicks=with_gap(COLUMNS["Int64"], LATE))
    ranker = fitted(LIGHT, X)
    logged = rkm.log_ranker(ranker, X=X, registered_model_name="shop")
    np.testing.assert_array_equal(mlflow.pyfunc.load_model("models:/shop/1").predict(X), ranker.predict(X))
    assert logged.version == "1"
