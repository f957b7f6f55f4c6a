"""A ranker by a column is served without rankeval, and asks for this column alone."""

from __future__ import annotations

import mlflow
import numpy as np
import pandas as pd
import pytest

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import QueryIdError
from rankeval_mlflow.saving import parameters

ROWS = pd.DataFrame({"price": [3.5, 1.0, 2.0], "now": [0.1, 0.7, 0.3], "brand": ["x", "y", "z"]})


def served(ranker, X):
    """Log a ranker and load it as it is served."""
    return mlflow.pyfunc.load_model(rkm.log_ranker(ranker, X=X).model_uri)


@pytest.mark.parametrize("ranker", [rk.ColumnRanker("now"), rk.ColumnRanker("price", ascending=True)])
@pytest.mark.parametrize("wrap", [lambda ranker: ranker, rk.QueryRanker])
def test_the_served_scores_are_the_column(ranker, wrap):
    """To the last bit; a request needs no other column."""
    fitted = wrap(ranker).fit(ROWS, [0, 1, 0], **({} if wrap(ranker) is ranker else {"qid": ["a", "a", "b"]}))
    model = served(fitted, ROWS)
    assert np.array_equal(model.predict(ROWS[[ranker.column]]), ranker.predict(ROWS))
    assert "rankeval" not in "".join(model.metadata.flavors["python_function"]["env"])


def test_a_served_row_without_a_score_is_refused():
    """With its row, as in memory."""
    with pytest.raises(ValueError, match="row 1 has no score"):
        served(rk.ColumnRanker("now"), ROWS).predict(pd.DataFrame({"now": [0.1, np.nan, 0.3]}))


@pytest.mark.parametrize(
    "options",
    [
        {"method": "rrf"},
        {"method": "weighted", "weights": {"a": 0.3, "b": 0.7}, "norm": "z-score"},
        {"method": "weighted", "weights": [0.3, 0.7], "norm": "none"},
    ],
)
def test_a_served_fusion_gives_the_scores_of_memory_to_the_last_bit(options):
    """For one query or several, in any order, with systems that did not retrieve a row."""
    made = rk.datasets.make_ranking(20, rng=1)
    frame = pd.DataFrame(made.X[:, :2], columns=["a", "b"])
    frame["b"] = frame["b"].mask(frame["b"] < -1)
    ranker = rk.QueryRanker(rk.Fusion(columns=["a", "b"], **options)).fit(frame, made.y, qid=made.qid)
    model = served(ranker, rk.RankingData(frame, made.y, made.qid))
    expected = ranker.predict(frame, qid=made.qid)
    rows = frame.assign(qid=[f"q{query}" for query in made.qid])
    order = np.random.default_rng(0).permutation(len(rows))
    assert np.array_equal(model.predict(rows.iloc[order]), expected[order])
    one = made.qid == 3
    assert np.array_equal(model.predict(rows[one]), expected[one])


def test_columns_and_weights_of_a_fusion_are_parameters_of_its_model():
    """Also those that a search chose: they make the ranking."""
    fusion = rk.Fusion("weighted", columns=["price", "now"], weights=[0.3, 0.7], norm="none")
    assert parameters(fusion) == {
        "estimator": "Fusion",
        "method": "weighted",
        "columns": "[price, now]",
        "weights": "[0.3, 0.7]",
        "norm": "none",
    }
    named = rk.Fusion("weighted", columns=["price", "now"], weights={"price": 0.3, "now": 0.7})
    assert parameters(named)["weights"] == "{price: 0.3, now: 0.7}"


def test_a_served_fusion_asks_for_the_queries():
    """Without them, rows of several queries would be fused as one."""
    fusion = rk.Fusion(columns=["price", "now"])
    model = served(fusion, ROWS.assign(qid=["a", "a", "b"]))
    assert "qid" in model.metadata.get_input_schema().input_names()
    with pytest.raises(mlflow.exceptions.MlflowException, match="qid"):
        model.predict(ROWS)
    with pytest.raises(QueryIdError):
        rkm.log_ranker(fusion, X=ROWS)
