"""Every wrong setting, row and prediction is an error that names its key and its row."""

from __future__ import annotations

import re

import mlflow
import numpy as np
import pandas as pd
import pytest

from rankeval.errors import InvalidInput, UnknownName
from rankeval_mlflow.evaluator.evaluating import EvaluatedRows, EvaluatorSettings, predicted_scores, static_scores

ROWS = pd.DataFrame({"qid": ["a", "a", "b"], "docid": ["x", "y", "x"], "f": [1.0, 2.0, 3.0], "rel": [0, 1, 2]})


def dataset(frame=ROWS, targets="rel", **options):
    return mlflow.data.from_pandas(frame, targets=targets, **options).to_evaluation_dataset()


def rows(frame=ROWS, targets="rel", **config):
    return EvaluatedRows.of(dataset(frame, targets), EvaluatorSettings.of(config))


class Model:
    """Returns what it is told to."""

    def __init__(self, output):
        self.output = output

    def predict(self, features):
        return self.output


WRONG_SETTINGS = [
    ({"qidd": "qid"}, UnknownName, "unknown key of evaluator_config 'qidd'; did you mean 'qid'?"),
    ({"measure": "AP"}, UnknownName, "unknown key of evaluator_config 'measure'; did you mean 'measures'?"),
    ({"metric_prefix": "x"}, UnknownName, "unknown key of evaluator_config 'metric_prefix'"),
    ({"measures": "nDGC@10"}, UnknownName, "did you mean 'nDCG"),
    ({"convention": "treceval"}, UnknownName, "trec_eval"),
    ({"ties": "worst"}, InvalidInput, "evaluator_config: ties: this argument is gone; use convention="),
    ({"role": "the test set"}, InvalidInput, "evaluator_config: role is 'the test set'; expected a plain word"),
    ({"role": 3}, InvalidInput, "evaluator_config: role: Input should be a valid string, found 3"),
    ({"pass_ids": "yes"}, InvalidInput, "evaluator_config: pass_ids: Input should be a valid boolean"),
    ({"weights": "w"}, UnknownName, "unknown key of evaluator_config 'weights'; did you mean 'query_weight'?"),
    ("qid", InvalidInput, "evaluator_config is 'qid'; expected a mapping of keys"),
    ({"rankeval": "qid"}, InvalidInput, "evaluator_config is 'qid'; expected a mapping of keys"),
    ({"guard": 3}, InvalidInput, "evaluator_config: guard is 3; expected a Guard, or the place of its ledger"),
    ({"guard": "no/such/ledger"}, InvalidInput, "guard is 'no/such/ledger'; expected a ledger that exists"),
]


def test_a_wrong_setting_is_named(monkeypatch, tmp_path):
    """Before the model predicts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKEVAL_LEDGER", raising=False)
    for config, error, said in WRONG_SETTINGS:
        with pytest.raises(error) as caught:
            EvaluatorSettings.of(config).respect_guard()
        assert said in str(caught.value), config


def test_a_ledger_is_not_named_in_vain_where_ledgers_are_off(monkeypatch, tmp_path):
    """It would not be looked into."""
    monkeypatch.setenv("RANKEVAL_LEDGER", "off")
    with pytest.raises(InvalidInput, match="switch ledgers off for this process"):
        EvaluatorSettings.of({"guard": str(tmp_path)}).respect_guard()


WRONG_COLUMNS = [
    ({"qid": "query"}, "unknown column (evaluator_config: qid) 'query'"),
    ({"docid": "docids"}, "did you mean 'docid'?"),
    ({"qid": None}, "evaluator_config: qid is None"),
    ({"qid": ["a", "b"]}, "evaluator_config: qid is ['a', 'b']; expected one value for each of 3 rows of data"),
    ({"query_weight": [1.0]}, "evaluator_config: query_weight is [1.0]; expected one value"),
    ({"docid": 7}, "evaluator_config: docid is 7; expected one value"),
    ({"qid": pd.Series(["a", "a", "b"], index=[2, 1, 0])}, "data and qid have different indexes"),
    ({"qrels": {"a": {"x": 1}}, "docid": "docid"}, "evaluator_config: qrels: the targets give judgments too"),
]


def test_a_wrong_column_is_named():
    """Also an array of another length, and a Series in another order."""
    for config, said in WRONG_COLUMNS:
        with pytest.raises(InvalidInput) as caught:
            rows(**config)
        assert said in str(caught.value), config


def test_relevance_must_be_there_and_be_numbers():
    """The message speaks of targets, as MLflow does, and says where the row is."""
    with pytest.raises(InvalidInput, match="targets is missing"):
        rows(targets=None)
    with pytest.raises(InvalidInput, match=r"targets.*row 1"):
        rows(ROWS.assign(rel=[0.0, np.nan, 1.0]))
    with pytest.raises(InvalidInput, match="targets: expected numbers, found '0' in row 0"):
        rows(ROWS.assign(rel=["0", "good", "1"]))


def test_judgments_of_a_collection_need_documents():
    """And weights by query: a query may have no row."""
    judged = {"a": {"x": 1}}
    with pytest.raises(InvalidInput, match="qrels: it needs docid"):
        rows(targets=None, qrels=judged)
    with pytest.raises(InvalidInput, match="query_weight as a mapping by query"):
        rows(targets=None, qrels=judged, docid="docid", query_weight="f")


def test_query_ids_may_stand_in_the_index():
    """As everywhere in the library: a level of the index called qid."""
    found = rows(ROWS.set_index("qid"))
    assert found.qid.tolist() == ["a", "a", "b"]
    assert list(found.for_model((), pass_ids=False).columns) == ["docid", "f"]


@pytest.mark.parametrize(
    ("output", "column", "said"),
    [
        ([1.0, 2.0], None, "predictions: 2 values for 3 rows of data"),
        (np.array([1.0, np.nan, 3.0]), None, "predictions: row 1 is nan; expected finite numbers"),
        (np.array([1.0, 2.0, -np.inf]), None, "predictions: row 2 is -inf"),
        (["1", "high", "2"], None, "predictions"),
        ([1.0, None, 2.0], None, "row 1"),
        (np.ones((3, 2)), None, "predictions: expected one number a row, found an array of shape (3, 2)"),
        (4.0, None, "predictions: expected one number a row, found a float"),
        (
            pd.DataFrame({"one": [1, 2, 3], "two": [1, 2, 3]}),
            None,
            "2 columns ('one', 'two'); choose one with predictions=",
        ),
        (pd.DataFrame({"one": [1, 2, 3]}), "score", "unknown column of the model's output (predictions=) 'score'"),
        (
            np.ones(3),
            "score",
            "predictions='score' names a column of the model's output, but the model returned a ndarray",
        ),
        (pd.Series([1.0, 2.0, 3.0], index=[2, 1, 0]), None, "a Series whose index is not that of the data"),
    ],
)
def test_a_wrong_prediction_is_named(output, column, said):
    """By its row, its shape, or its column."""
    with pytest.raises(InvalidInput, match=re.escape(said)):
        predicted_scores(Model(output), rows(), column, pass_ids=False)


@pytest.mark.parametrize(
    ("output", "column"),
    [
        ([1, 2, 3], None),
        (np.array([[1.0], [2.0], [3.0]]), None),
        (pd.Series([1.0, 2.0, 3.0]), None),
        (pd.Series([1.0, 2.0, 3.0], name="score"), "score"),
        (pd.DataFrame({"score": [1, 2, 3]}), None),
        (pd.DataFrame({"score": [1, 2, 3], "rank": [3, 2, 1]}), "score"),
        ({"score": [1, 2, 3], "rank": [3, 2, 1]}, "score"),
    ],
)
def test_every_make_of_predictions_is_taken(output, column):
    """A list, an array, a matrix of one column, a Series, a frame, a dict."""
    assert predicted_scores(Model(output), rows(), column, pass_ids=False).tolist() == [1.0, 2.0, 3.0]


def test_predictions_of_a_filtered_frame_are_taken_in_its_order():
    """A model may return a Series with the index of the data, or one that only counts its rows."""
    part = ROWS.iloc[[2, 0]]
    for output in (pd.Series([3.0, 1.0], index=part.index), pd.Series([3.0, 1.0])):
        assert predicted_scores(Model(output), rows(part), None, pass_ids=False).tolist() == [3.0, 1.0]


def test_static_predictions_must_be_there_and_be_finite():
    """Without a model the scores stand in the data."""
    with pytest.raises(InvalidInput, match="there is neither a model nor predictions"):
        static_scores(dataset())
    with pytest.raises(InvalidInput, match="predictions: row 0 is nan"):
        static_scores(dataset(ROWS.assign(f=[np.nan, 1.0, 2.0]), predictions="f"))


@pytest.mark.parametrize("extra", ["extra_metrics", "custom_artifacts"])
def test_what_is_not_made_here_is_refused_with_the_way_to_it(extra):
    """A metric of rows cannot score a ranking, so nobody waits for it in vain."""
    with mlflow.start_run(), pytest.raises(InvalidInput, match=extra):
        mlflow.models.evaluate(
            data=ROWS, targets="rel", predictions="f", model_type="ranker", evaluators="rankeval",
            **{extra: [mlflow.metrics.mae() if extra == "extra_metrics" else print]},
        )  # fmt: skip
