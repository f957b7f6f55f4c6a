"""Two evaluations are the same, or the message says in what they differ and where first."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rankeval as rk
from rankeval.errors import CheckFailed, InvalidInput
from rankeval.testing import CHECKS, assert_evaluations_equal


def evaluation(**rules):
    scores = np.random.default_rng(0).integers(0, 5, 200)
    labels = np.random.default_rng(1).integers(0, 3, 200)
    options = {"measures": ["nDCG@10", "AP"]} | rules
    return rk.evaluate(labels, scores, qid=np.arange(200) // 10, **options)


@pytest.fixture
def frame():
    return pd.DataFrame({"nDCG@10": [0.1, 0.2, 0.3], "AP": [0.4, 0.5, 0.6]}, index=["a", "b", "c"])


def says(*args, **options):
    with pytest.raises(CheckFailed) as failed:
        assert_evaluations_equal(*args, **options)
    return str(failed.value)


def test_the_same_evaluation_is_equal_saved_or_not_in_any_order(tmp_path, frame):
    evaluation().save(tmp_path / "kept.parquet")
    assert_evaluations_equal(evaluation(), tmp_path / "kept.parquet")
    assert_evaluations_equal(evaluation(), evaluation(measures=["AP", "nDCG@10"]))
    assert_evaluations_equal(frame.iloc[::-1, ::-1], frame)


def test_scores_are_equal_within_the_tolerance_and_not_beyond(frame):
    assert_evaluations_equal(frame + 9e-10, frame)
    assert_evaluations_equal(frame + 0.009, frame, atol=0.01)
    assert says(frame + 2e-9, frame).startswith("6 of 6 scores differ by more than 1e-09")
    assert says(frame + 0.011, frame, atol=0.01).startswith("6 of 6 scores differ by more than 0.01")
    assert says(frame + 1e-12, frame, atol=0).startswith("6 of 6")


def test_the_first_difference_is_named_and_the_greatest_stand_first(frame):
    other = frame.copy()
    other.loc["b", "AP"] += 0.01
    other.loc["c", "nDCG@10"] -= 0.2
    message = says(other, frame)
    assert message.startswith("2 of 6 scores differ by more than 1e-09, first AP of query 'b': 0.51, was 0.5\n")
    rows = [line.split() for line in message.splitlines()[-2:]]
    assert rows == [["c", "nDCG@10", "0.3000", "0.1000", "-0.2000"], ["b", "AP", "0.5000", "0.5100", "+0.0100"]]


def test_queries_measures_and_rules_are_compared_before_scores(frame):
    assert "only the baseline has 1 query ('b')" in says(frame.drop("b"), frame)
    assert "only the candidate has 1 measure ('x')" in says(frame.assign(x=0), frame)
    several = says(frame.drop("b").assign(x=0), frame)
    assert "1 measure" in several
    assert "1 query" in several
    assert "ties is 'best' in one and 'expected' in the other" in says(evaluation(ties="best"), evaluation())
    assert "the weights of the queries differ" in says(
        evaluation(query_weight=np.arange(200) // 10 + 1.0), evaluation()
    )
    assert_evaluations_equal(evaluation(query_weight=np.ones(200)), evaluation(query_weight=np.ones(200)))


def test_at_most_ten_differences_are_listed():
    old = pd.DataFrame({"AP": np.zeros(50)})
    message = says(old + np.arange(50)[:, None] / 100, old)
    assert message.startswith("49 of 50 scores differ by more than 1e-09, first AP of query 1")
    assert len(message.splitlines()) == 2 + 1 + 2 + 10


def test_nan_is_equal_to_nan_only(frame):
    missing = frame.where(frame > 0.1)
    assert_evaluations_equal(missing, missing)
    assert says(missing, frame).startswith("1 of 6 scores differs by more than 1e-09, first nDCG@10 of query 'a': nan")


def test_bad_use_is_no_failure(frame):
    for atol in (-1, "x", float("nan")):
        with pytest.raises(InvalidInput, match="atol is"):
            assert_evaluations_equal(frame, frame, atol=atol)
    with pytest.raises(InvalidInput, match="systems are evaluations"):
        assert_evaluations_equal(frame, [1, 2])
    with pytest.raises(InvalidInput, match="the candidate has the query 'a' more than once"):
        assert_evaluations_equal(frame.set_axis(["a", "a", "c"]), frame)


def test_it_is_kept_for_the_summary(frame):
    CHECKS.clear()
    assert_evaluations_equal(frame, frame)
    row = CHECKS.pop()
    assert (row["verdict"], row["failure"]) == ("equal to the baseline", "")
    with pytest.raises(CheckFailed) as failed:
        assert_evaluations_equal(frame + 1, frame)
    row = CHECKS.pop()
    assert (row["verdict"], row["failure"]) == ("differs from the baseline", str(failed.value))
