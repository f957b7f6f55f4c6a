"""Users are cut by time: the last rows of each, or all rows from one time on, with what leaks counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from tables import each_row

import rankeval as rk
from rankeval.contamination import refusal
from rankeval.errors import GuardRefusal, InvalidInput, RankevalWarning

USER = np.array(["ann", "bob", "ann", "cid", "ann", "bob", "bob", "dan"])
TIME = np.array([1, 2, 5, 3, 4, 9, 6, 7])
ITEM = np.arange(8).astype(str)


def log(n_users=60, seed=0):
    """Return interactions as a frame, in any order."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 12, n_users)
    user = np.repeat([f"u{k}" for k in range(n_users)], sizes)
    frame = pd.DataFrame({"user": user, "time": generator.permutation(len(user)), "item": generator.random(len(user))})
    return frame.sample(frac=1, random_state=seed, ignore_index=True)


def split_of(frame, **options):
    X, y = frame[["item", "time"]], np.ones(len(frame))
    return rk.user_test_split(X, y, qid=frame["user"], times="time", **options)


def cut(**options):
    return rk.user_test_split(ITEM[:, None].astype(float), np.ones(8), qid=USER, docid=ITEM, times=TIME, **options)


def test_the_last_rows_of_each_user_are_tested_on():
    """Of ann's and bob's; cid and dan have one row. Rows of bob and dan are later than ann's fifth day."""
    with pytest.warns(RankevalWarning, match=r"2 dev rows are later than test rows of \d other users"):
        split = cut(last=1)
    assert split.test.docid.tolist() == ["2", "5"]
    assert split.dev.docid.tolist() == ["0", "1", "3", "4", "6", "7"]


@pytest.mark.filterwarnings("ignore::rankeval.errors.RankevalWarning")
def test_the_last_rows_are_those_of_pandas():
    for seed in range(5):
        frame = log(seed=seed)
        for last in (1, 2, 5):
            split = split_of(frame, last=last)
            many = frame[frame.groupby("user")["item"].transform("size") > last]
            expected = many.sort_values("time").groupby("user").tail(last)
            assert sorted(split.test.X["time"]) == sorted(expected["time"])
            assert len(split.dev) + len(split.test) == len(frame)
            earliest = expected.groupby("user")["time"].min()
            kept = frame.drop(expected.index)
            later = sum((earliest.drop(row.user, errors="ignore") < row.time).any() for row in kept.itertuples())
            users = sum((kept[kept["user"] != user]["time"] > time).any() for user, time in earliest.items())
            few = (frame.groupby("user").size() <= last).sum()
            counted = f"{few} of 60 users have no test row" if few else ""
            assert split.note.startswith(counted)
            assert f"{later:,} dev rows are later than test rows of {users} other users" in split.note
            assert split.note in split._repr_html_()


def test_one_time_for_all_users_leaks_nothing():
    split = cut(test_from=5)
    assert split.test.docid.tolist() == ["2", "5", "6", "7"]
    assert split.note == "1 of 4 users have no test row; 1 of 4 users have no dev row"
    days = pd.to_datetime("2026-03-01") + pd.to_timedelta(TIME, unit="D")
    by_day = rk.user_test_split(np.zeros((8, 1)), np.ones(8), qid=USER, times=days, test_from="2026-03-06")
    assert len(by_day.test) == 4


@each_row(("options", "match"), [
    ({}, "either last= or test_from="),
    ({"last": 1, "test_from": 3}, "either last= or test_from="),
    ({"last": 0}, "last"),
    ({"last": 3}, "one part"),
    ({"test_from": 99}, "one part"),
    ({"test_from": "2026-01-01"}, "of one kind"),
    ({"last": 1, "supersedes": "old"}, "give guard= too"),
    ({"last": 1, "guard": "team"}, "rk.Guard"),
])  # fmt: skip
def test_splits_that_cannot_be_are_refused(options, match):
    with pytest.raises(InvalidInput, match=match):
        cut(**options)


def test_times_of_users_cut_no_user():
    with pytest.raises(InvalidInput, match="one time a row"):
        rk.user_test_split(np.zeros((3, 1)), [1, 1, 1], qid=[1, 1, 2], times={1: 3, 2: 4}, last=1)


def test_cross_validation_still_cuts_no_user():
    """Rows of a user on both sides of a fold are refused, since the user's list would be torn."""
    folds = [(np.array([0, 1]), np.array([2, 5]))]
    with pytest.raises(InvalidInput, match="cuts query 'ann'"):
        rk.cross_validate(Ridge(), np.zeros((8, 1)), np.ones(8), qid=USER, cv=folds)


@pytest.mark.filterwarnings("ignore::rankeval.errors.RankevalWarning")
def test_the_guard_refuses_the_test_rows_and_not_those_of_the_same_users_before(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    refusal.forget()
    frame = log(200)
    score = np.random.default_rng(0).random((len(frame), 4))
    label = (score[:, 0] + score[:, 1] > 1).astype(int)
    split = rk.user_test_split(
        score, label, qid=frame["user"].to_numpy(), docid=np.arange(len(frame)).astype(str),
        times=frame["time"].to_numpy(), last=3, guard=rk.Guard("shop"),
    )  # fmt: skip
    assert split.registered.n_queries == split.test.n_queries
    dev = split.dev
    assert rk.evaluate(dev.y, dev.X[:, 0], qid=dev.qid, docid=dev.docid, measures="AP").n_queries == dev.n_queries
    with pytest.raises(GuardRefusal):
        rk.evaluate(split.test.y, split.test.X[:, 0], qid=split.test.qid, docid=split.test.docid, measures="AP")
    refusal.forget()
