"""The labels of several judges as codes."""

import pandas as pd
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.judging.labels import Labels

VOTES = pd.DataFrame(
    {
        "qid": ["q2", "q1", "q1", "q1", "q2"],
        "docid": ["d1", "d9", "d9", "d3", "d1"],
        "aspect": ["bo", "bo", "ann", "ann", "ann"],
        "relevance": [2, 0, 1, 0, 2],
    }
)


def test_labels_are_the_same_in_every_form_and_order_of_rows():
    """Judges as aspects, or a mapping of judges; rows in any order."""
    apart = {judge: VOTES[VOTES["aspect"] == judge].drop(columns="aspect") for judge in ("bo", "ann")}
    for given in (VOTES, rk.Qrels.from_frame(VOTES), apart, VOTES.iloc[::-1]):
        labels = Labels.of(given)
        assert labels.items[["qid", "docid"]].to_numpy().tolist() == [["q1", "d3"], ["q1", "d9"], ["q2", "d1"]]
        assert labels.counts().tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 2]]
        assert sorted(labels.judges) == ["ann", "bo"]


def test_judges_stand_in_the_order_in_which_they_are_first_named():
    """Whatever the order of the ids is; a grade that a judge did not give is missing."""
    table = Labels.of(VOTES).table()
    assert table.columns.tolist() == ["bo", "ann"]
    assert table.loc[("q1", "d9")].tolist() == [0, 1]
    assert table["bo"].isna().tolist() == [True, False, False]


@each_row(
    "wrong",
    [
        {"q1": {"d1": 1}},  # no judge
        rk.Qrels.from_frame(VOTES, aspect=False),  # no judge
        pd.concat([VOTES, VOTES.iloc[:1]]),  # twice
        {"a": {"q": {"1": 1}}, "b": rk.Qrels(["q"], [1], [1])},  # 1 and "1"
        {},
    ],
)
def test_labels_that_name_no_judge_or_stand_twice_are_refused(wrong):
    with pytest.raises(InvalidInput):
        Labels.of(wrong)
