"""Ids bound to a scorer are found again, or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rankeval.errors import QueryIdError
from rankeval.model_selection.query_ids import BoundIds, find

X = np.zeros((4, 2))
IDS = ["a", "b", "a", "b"]


class TestBound:
    """Ids bound to a scorer."""

    ids = pd.Series(["a", "a", "b", "b", "c", "c"], index=[10, 11, 12, 13, 14, 15])
    y = pd.Series([0, 1, 2, 3, 4, 5], index=ids.index)

    def test_are_found_by_the_labels_of_a_part(self):
        part = self.y.iloc[[3, 1, 4]]
        assert BoundIds(self.ids).at(np.zeros((3, 1)), part).tolist() == ["b", "a", "c"]
        assert BoundIds(self.ids, self.y).at(part.to_frame(), part.to_numpy()).tolist() == ["b", "a", "c"]

    def test_without_index_stand_for_the_whole_data_only(self):
        y = [0, 1, 2, 3]
        assert BoundIds(IDS, y).at(X, y).tolist() == IDS
        assert BoundIds(IDS, y).at(X, np.array([y]).T).tolist() == IDS
        with pytest.raises(QueryIdError, match="bind a Series"):
            BoundIds(IDS).at(X[:3], np.zeros(3))

    def test_reset_labels_are_refused(self):
        """They would resolve, to the wrong queries."""
        bound = BoundIds(self.ids.reset_index(drop=True))
        part = self.y.iloc[2:5].reset_index(drop=True)
        with pytest.raises(QueryIdError, match="reset_index"):
            bound.at(np.zeros((3, 1)), part)

    def test_nothing_tells_rows_in_another_order_but_y_or_labels_of_their_own(self):
        """All rows, shuffled and with new labels from 0 on, would get each other's queries."""
        ids, y = self.ids.reset_index(drop=True), self.y.reset_index(drop=True)
        turned = y[::-1].reset_index(drop=True)
        for bound, labels in ((BoundIds(ids), turned), (BoundIds(ids.to_numpy()), turned.to_numpy())):
            with pytest.raises(QueryIdError, match=r"of other rows: bind y with it.*make_scorer\(\.\.\., y=y"):
                bound.at(np.zeros((6, 1)), labels)
        with pytest.raises(QueryIdError, match="y is not the y bound with it"):
            BoundIds(ids, y).at(np.zeros((6, 1)), turned)
        assert BoundIds(ids, y).at(np.zeros((6, 1)), y).tolist() == self.ids.tolist()
        assert BoundIds(self.ids).at(np.zeros((6, 1)), self.y[::-1]).tolist() == self.ids.tolist()[::-1]

    def test_the_bound_y_tells_a_reset_from_a_first_fold(self):
        y = self.y.reset_index(drop=True)
        bound = BoundIds(self.ids.reset_index(drop=True), y)
        assert bound.at(np.zeros((3, 1)), y.iloc[:3]).tolist() == ["a", "a", "b"]
        with pytest.raises(QueryIdError, match="y is not the y bound with it"):
            bound.at(np.zeros((3, 1)), y.iloc[2:5].reset_index(drop=True))

    def test_other_rows_are_refused(self):
        with pytest.raises(QueryIdError, match="no row 99"):
            BoundIds(self.ids).at(np.zeros((1, 1)), pd.Series([1], index=[99]))
        with pytest.raises(QueryIdError, match="duplicates"):
            BoundIds(self.ids.set_axis([1] * 6)).at(np.zeros((1, 1)), pd.Series([1], index=[1]))
        with pytest.raises(QueryIdError, match="different indexes"):
            find(pd.DataFrame(X), pd.Series(np.zeros(4), index=[10, 11, 12, 13]), bound=BoundIds(self.ids))

    def test_need_one_label_an_id(self):
        with pytest.raises(QueryIdError, match="6 values of qid and 2 labels"):
            BoundIds(self.ids, [1, 2])
