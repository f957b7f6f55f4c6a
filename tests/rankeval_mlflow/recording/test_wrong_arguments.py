"""What is given by mistake is refused by the name of its argument, before anything is kept or sent."""

from __future__ import annotations

import mlflow
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput
from rankeval_mlflow.delivery.spool import waiting


def test_an_evaluation_is_no_ranker(small):
    with pytest.raises(InvalidInput, match=r"^ranker .*Evaluation"):
        rkm.log_ranker(small())
    assert not waiting()


@pytest.mark.parametrize(
    ("option", "takers"),
    [({"folds": True}, "CrossValidation or CrossValidations, and"), ({"name": "x"}, "Evaluation")],
)
def test_an_option_of_other_results_is_refused_with_those_that_take_it(small, option, takers):
    with pytest.raises(InvalidInput, match=takers):
        rkm.log(small(), **option)
    compared = rk.compare({"one": small("one"), "other": small("other", seed=1)}, baseline="one")
    for name in ("step", "slices", "model_version", "model_id"):
        with pytest.raises(InvalidInput, match=f"{name}= .*belongs? to (an )?Evaluation"):
            rkm.log(compared, **{name: 1})
    assert not waiting()


def test_the_data_set_is_no_frame(small):
    with pytest.raises(InvalidInput, match=r"^data is .*DataFrame.*expected its name"):
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
