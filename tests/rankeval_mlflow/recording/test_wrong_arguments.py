"""What is given by mistake is refused by the name of its argument, before anything is kept or sent."""

from __future__ import annotations

import pytest

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput
from rankeval_mlflow.delivery.spool import waiting


def test_an_evaluation_is_not_what_other_calls_log(small):
    for call, argument in ((rkm.log_comparison, "cmp"), (rkm.log_cross_validation, "cv"), (rkm.log_ranker, "ranker")):
        with pytest.raises(InvalidInput, match=f"^{argument} .*Evaluation"):
            call(small())
    assert not waiting()


def test_the_data_set_is_no_frame(small):
    with pytest.raises(InvalidInput, match=r"^data is of type DataFrame; expected the name"):
        rkm.log_evaluation(small(), data=small().per_query)


@pytest.mark.parametrize("run_id", ["", 5, "a/b", "../b", " "])
def test_an_id_that_no_run_can_have_is_refused_before_anything_is_kept(small, run_id):
    with pytest.raises(InvalidInput, match=r"^run_id is .*expected the id of a run"):
        rkm.log_evaluation(small(), run_id=run_id, report=False)
    assert not waiting()
