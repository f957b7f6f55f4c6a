"""The cut between what is worked with and what is looked at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_matrix, csc_array, lil_array
from sklearn.linear_model import Ridge
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.model_selection.holdout import dev_test_split


class TestDevTest:
    """The cut between what is worked with and what is looked at once."""

    def test_parts_are_whole_queries_and_all_of_them(self, ltr):
        split = dev_test_split(ltr.frame, ltr.y, qid=ltr.qid, test_size=0.4, salt="s")
        assert len(split.dev) + len(split.test) == len(ltr.y)
        assert not set(split.dev.qid) & set(split.test.qid)
        assert split.dev.feature_names == tuple("abcde")
        assert split.registered is None
        assert "not registered" in split._repr_html_()
        assert repr(split).startswith("Dev and test part")

    def test_a_query_keeps_its_side_when_others_come_and_go(self, ltr):
        whole = dev_test_split(ltr.X, ltr.y, qid=ltr.qid, test_size=0.4)
        keep = np.isin(ltr.qid, [f"q{number}" for number in range(15)])
        part = dev_test_split(ltr.X[keep], ltr.y[keep], qid=ltr.qid[keep], test_size=0.4)
        assert set(part.test.qid) == set(whole.test.qid) & set(ltr.qid[keep])

    def test_ids_read_as_numbers_or_as_text_fall_on_the_same_side(self):
        ids = np.arange(50)
        by_number = dev_test_split(np.zeros((50, 1)), ids, qid=ids)
        by_text = dev_test_split(np.zeros((50, 1)), ids, qid=ids.astype(str))
        assert by_number.test.y.tolist() == by_text.test.y.tolist()

    def test_the_salt_makes_another_cut_and_the_share_is_met(self):
        ids = np.arange(4000)
        one, other = (dev_test_split(np.zeros((4000, 1)), ids, qid=ids, salt=salt).test for salt in ("a", "b"))
        assert set(one.qid) != set(other.qid)
        assert abs(one.n_queries - 800) < 100

    def test_a_ranking_data_brings_its_own_labels_and_ids(self, ltr):
        data = rk.RankingData(ltr.X, ltr.y, ltr.qid, name="small")
        split = dev_test_split(data, test_size=0.4)
        assert (split.dev.name, split.test.name) == ("small-dev", "small-test")
        with pytest.raises(InvalidInput, match="RankingData"):
            dev_test_split(data, ltr.y)

    def test_the_test_part_is_registered_with_the_guard(self, ltr):
        calls = []

        class Recorder:
            """Takes the place of a guard; tests/guard_cases has the real one."""

            def register(self, name, data, *, supersedes):
                calls.append((name, data, supersedes))
                return name

        split = dev_test_split(ltr.X, ltr.y, qid=ltr.qid, test_size=0.4, guard=Recorder(), test_name="mine")
        assert split.registered == "mine"
        assert calls == [("mine", split.test, None)]

    @pytest.mark.parametrize(
        ("options", "message"), [({"test_size": 1.2}, "between 0 and 1"), ({"test_size": 1e-9}, "another")]
    )
    def test_a_cut_that_cannot_be_made_is_an_error(self, ltr, options, message):
        with pytest.raises(InvalidInput, match=message):
            dev_test_split(ltr.X, ltr.y, qid=ltr.qid, **options)

    @pytest.mark.parametrize("salt", [np.random.default_rng(0), None, 0.5], ids=str)
    def test_a_salt_that_is_no_text_is_an_error(self, ltr, salt):
        """The text of a generator has its address: each process would make another cut."""
        with pytest.raises(InvalidInput) as caught:
            dev_test_split(ltr.X, ltr.y, qid=ltr.qid, salt=salt)
        assert caught.value.argument == "salt"

    def test_labels_are_needed(self, ltr):
        with pytest.raises(InvalidInput, match="needs y"):
            dev_test_split(ltr.X, qid=ltr.qid)


@each_row("table", [pl.DataFrame, pd.DataFrame, coo_matrix, csc_array, lil_array], ids=lambda kind: kind.__name__)
def test_any_kind_of_table_is_cut(table, ltr):
    """And each part can be cut again, by numbers of rows or by a mask."""
    X = table(ltr.X)
    split = rk.dev_test_split(X, ltr.y, qid=ltr.qid, test_size=0.3)
    assert {type(part.X).__module__.partition(".")[0] for part in (split.dev, split.test)} == {
        table.__module__.partition(".")[0]
    }
    for part in (split.dev, split.test):
        dense = part.X.toarray() if hasattr(part.X, "toarray") else np.asarray(part.X)
        np.testing.assert_array_equal(dense, ltr.X[np.isin(ltr.qid, part.qid)])
    assert rk.cross_validate(Ridge(), split.dev, cv=2).evaluation.n_queries == split.dev.n_queries
