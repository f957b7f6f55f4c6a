"""Rows by bucket: every row in the bucket of its query, in the order of the data."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streaming.logs import NAMES
from tables import each_row

from rankeval.streaming import queries
from rankeval.streaming.rows import Share
from rankeval.streaming.source import ParquetSource, ReadColumns

IDS = {
    "whole": lambda numbers: pa.array(numbers - 50),
    "bytes": lambda numbers: pa.array(numbers.astype(np.int8)),
    "texts": lambda numbers: pa.array([f"q{one}" for one in numbers.tolist()]),
    "fractions": lambda numbers: pa.array(numbers / 4),
}


NUMBERS = [1, 3, 1 << 16, pytest.param(1 << 24, marks=pytest.mark.rest)]
"""Of buckets; for the last one keys have 64 bits and not 32."""


@pytest.mark.parametrize("number", NUMBERS)
@each_row("ids", IDS)
@each_row("n_rows", [1, 2, 5000])
def test_rows_of_a_query_are_in_one_bucket_in_their_order(ids, n_rows, number):
    assert_in_one_bucket_in_their_order(ids, n_rows, number)


@pytest.mark.further
def test_keys_of_64_bits_keep_queries_together_too():
    assert_in_one_bucket_in_their_order("whole", 5000, 1 << 24)


def assert_in_one_bucket_in_their_order(ids, n_rows, number):
    numbers = np.random.default_rng(n_rows).integers(0, 100, n_rows)
    rows = pa.RecordBatch.from_arrays([IDS[ids](numbers), pa.array(np.arange(n_rows))], ["qid", "score"])
    ordered, starts = queries.by_bucket(rows, number)
    assert starts[0] == 0
    assert starts[-1] == n_rows == ordered.num_rows
    assert len(starts) == number + 1
    place = np.repeat(np.arange(number), np.diff(starts))
    order = ordered["score"].to_numpy()
    assert ordered["qid"].equals(rows["qid"].take(ordered["score"]))
    bucket_of = dict(zip(numbers[order].tolist(), place.tolist(), strict=True))
    assert [bucket_of[one] for one in numbers[order].tolist()] == place.tolist()
    assert (np.diff(order)[np.diff(place) == 0] > 0).all()
    if n_rows == 5000 and number == 3:
        assert len(set(place.tolist())) == 3


@each_row("sizes", [(10, 10, 10), (60, 60), (200,), (30, 80, 5, 100, 1)])
def test_a_run_has_no_more_rows_than_fit(tmp_path, sizes):
    for number, size in enumerate(sizes):
        table = pa.table({"query": np.arange(size), "label": np.zeros(size), "value": np.arange(size) / 7})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    source = ParquetSource.of(tmp_path, NAMES)
    (part,) = queries.row_parts(source)
    found = [rows.num_rows for rows in queries._runs(part, source.columns, 100)]
    assert sum(found) == sum(sizes)
    assert max(found) <= 100
    assert all(one + other > 100 for one, other in pairwise(found))


@each_row("n_bytes", [1000, 5000, 20_000])
def test_a_run_and_its_copies_fill_the_share_and_no_more(tmp_path, n_bytes):
    pq.write_table(
        pa.table({"query": np.arange(500), "label": np.zeros(500), "value": np.zeros(500)}), tmp_path / "log"
    )
    source = ParquetSource.of(tmp_path / "log", NAMES)
    (part,) = queries.row_parts(source)
    row_bytes = 3 * 8
    run = queries._run_of(part, source.columns, Share(n_bytes))
    assert 0 <= n_bytes - run * row_bytes * queries._COPIES < row_bytes * queries._COPIES


@each_row("kind", [pa.null(), pa.int8(), pa.int64(), pa.float16(), pa.float64()], ids=str)
def test_a_row_is_thought_as_wide_as_arrow_keeps_it(kind):
    kept = pa.array([None if pa.types.is_null(kind) else 0] * 8, kind)
    assert ReadColumns({}, {"qid": kind}).row_bytes == kept.nbytes / 8
