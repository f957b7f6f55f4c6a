"""A chunk holds all that a kernel sees: the layout that the module's picture shows."""

from __future__ import annotations

import numpy as np

from rankeval.collection.convention import Convention
from rankeval.collection.qrels import Qrels
from rankeval.collection.run import Run
from rankeval.join.collections import join_collection


def test_the_picture_of_the_layout():
    """The example at the top of rankeval/join/judged.py, value by value."""
    qrels = Qrels.from_dict({"a": {"d1": 2, "d3": 0, "d5": 1, "d7": 1}, "b": {"d2": 1}})
    run = Run.from_dict({"a": {"d1": 9.0, "d3": 5.0, "d5": 5.0}, "b": {"d9": 4.0, "d2": 3.0}})
    ((queries, chunk, ties),) = join_collection(qrels, run, convention=Convention()).chunks()
    assert (queries.start, queries.stop) == (0, 2)
    assert chunk.offsets.tolist() == [0, 3, 5]
    assert chunk.levels.tolist() == [0, 1, 2]
    assert chunk.code.tolist() == [2, 0, 1, 0, 1]
    assert chunk.judged.tolist() == [True, True, True, False, True]
    assert chunk.counts.tolist() == [[1, 2, 1], [0, 1, 0]]
    assert [part.tolist() for part in chunk.groups] == [part.tolist() for part in ties] == [[1], [3], [0]]
    assert chunk.n_relevant(1).tolist() == [3, 1]
    np.testing.assert_array_equal(chunk.hits(1, 2), [1.5, 1.0])  # d3 and d5 share the second place
