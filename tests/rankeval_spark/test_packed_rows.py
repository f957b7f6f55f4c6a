"""Packed rows come back whole, all rows of a query in one place, whatever task packs them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark.rows import Packing, unpacked

PLACES = (7, 0, 12)


def batches(ids, seed=0, cut=10):
    rng = np.random.default_rng(seed)
    ids = pa.array([ids[at] for at in rng.integers(0, len(ids), 100)])
    rows = pa.record_batch({"qid": ids, "row": np.arange(100) + 100 * seed, "score": rng.normal(size=100)})
    return [rows.slice(start, cut) for start in range(0, 100, cut)]


@pytest.mark.parametrize("ids", [list(range(-5, 20)), [f"q{number}" for number in range(25)]])
@pytest.mark.parametrize("run", [1, 30, 1000])
def test_all_rows_of_a_query_are_in_one_place_and_none_is_lost(ids, run):
    tasks = [batches(ids, seed, cut) for seed, cut in ((0, 10), (1, 33))]
    sent = [one for task in tasks for one in Packing(PLACES, run).packed(iter(task))]
    by_place: dict[int, list[pa.RecordBatch]] = {}
    for one in sent:
        for at in range(one.num_rows):
            by_place.setdefault(one["place"][at].as_py(), []).append(one.slice(at, 1))
    assert set(by_place) == set(PLACES)
    held = {place: pa.Table.from_batches(unpacked(pieces)) for place, pieces in by_place.items()}
    queries = [set(rows["qid"].to_pylist()) for rows in held.values()]
    assert sum(map(len, queries)) == len(set.union(*queries)) == len(ids)
    found = pa.concat_tables(held.values()).sort_by("row")
    assert found.equals(pa.Table.from_batches([batch for task in tasks for batch in task]))


def test_rows_without_an_id_are_kept_for_the_error_that_counts_them():
    rows = pa.record_batch({"qid": pa.array([None, "a", None]), "row": [0, 1, 2]})
    kept = pa.Table.from_batches(unpacked(Packing(PLACES).packed([rows.slice(0, 0), rows])))
    assert kept["qid"].null_count == 2
    assert kept.sort_by("row").equals(pa.Table.from_batches([rows]))
    assert list(Packing(PLACES).packed([rows.slice(0, 0)])) == []
