"""What is given by mistake is refused by the name of its argument, before anything is kept or sent."""

from __future__ import annotations

import mlflow
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput
from rankeval_mlflow.delivery.spool import waiting


def test_an_evaluation_is_not_what_other_calls_log(small):
    for call, argument in ((rkm.log, "cmp"), (rkm.log, "cv"), (rkm.log_ranker, "ranker")):
        with pytest.raises(InvalidInput, match=f"^{argument} .*Evaluation"):
            call(small())
    assert not waiting()


def test_the_data_set_is_no_frame(small):
    with pytest.raises(InvalidInput, match=r"^data is of type DataFrame; expected its name"):
        rkm.log(small(), data=small().per_query)


@pytest.mark.parametrize("run_id", ["", 5, "a/b", "../b", " "])
def test_an_id_that_no_run_can_have_is_refused_before_anything_is_kept(small, run_id):
    with pytest.raises(InvalidInput, match=r"^run_id is .*expected the id of a run"):
        rkm.log(small(), run_id=run_id, report=False)
    assert not waiting()


@pytest.mark.parametrize("name", [5, "", "a/b", "../b", "a:b"])
def test_a_model_that_mlflow_cannot_name_is_refused_before_anything_is_kept(name):
    with pytest.raises(InvalidInput) as refused:
        rkm.log_ranker(Ridge().fit([[0.0], [1.0]], [0, 1]), name=name)
    assert refused.value.argument == "name"
    assert not waiting()
    assert not mlflow.search_runs(output_format="list")


@pytest.mark.parametrize(("field", "value"), [("name", "a/b"), ("name", 5), ("role", "a b"), ("data", 5)])
def test_a_comparison_is_refused_by_the_argument_that_is_wrong(small, field, value):
    compared = rk.compare({"one": small("one"), "other": small("other", seed=1)}, baseline="one")
    with pytest.raises(InvalidInput) as refused:
        rkm.log(compared, **{field: value})
    assert refused.value.argument == field
    assert not waiting()
