"""A ranker by a column is served without rankeval, and asks for this column alone."""

from __future__ import annotations

import mlflow
import numpy as np
import pandas as pd
import pytest

import rankeval as rk
import rankeval_mlflow as rkm

ROWS = pd.DataFrame({"price": [3.5, 1.0, 2.0], "now": [0.1, 0.7, 0.3], "brand": ["x", "y", "z"]})


@pytest.mark.parametrize(
    ("ranker", "X"),
    [
        (rk.ColumnRanker("price", ascending=True), ROWS),
        (rk.QueryRanker(rk.ColumnRanker("now")).fit(ROWS, [0, 1, 0], qid=["a", "a", "b"]), ROWS),
        (rk.ColumnRanker(1), ROWS[["price", "now"]].to_numpy()),
        (rk.ColumnRanker("now", feature_names=("price", "now")), ROWS[["price", "now"]].to_numpy()),
    ],
)
def test_the_served_scores_are_the_column(ranker, X):
    """To the last bit; a frame is asked for no other column."""
    loaded = mlflow.pyfunc.load_model(rkm.log_ranker(ranker, X=X).model_uri)
    sent = X[["now"]] if isinstance(ranker, rk.QueryRanker) else X
    assert np.array_equal(loaded.predict(sent), ranker.predict(X))
    assert "rankeval" not in "".join(loaded.metadata.get_model_info().flavors["python_function"])


def test_a_served_row_without_a_score_is_refused():
    """With its row, as in memory."""
    loaded = mlflow.pyfunc.load_model(rkm.log_ranker(rk.ColumnRanker("now"), X=ROWS).model_uri)
    with pytest.raises(ValueError, match="row 1 is nan"):
        loaded.predict(ROWS.assign(now=[0.1, np.nan, 0.3]))
