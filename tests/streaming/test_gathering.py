"""Rows gathered from buckets: whole queries in the order of the data, in so much memory and no more."""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streaming.logs import NAMES

from rankeval.errors import InvalidInput
from rankeval.streaming import queries
from rankeval.streaming.rows import Share
from rankeval.streaming.source import ParquetSource

N_ROWS = 6000
RANGES = [range(5), range(5, 10), range(10, 12)]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return a function that writes buckets of some queries, and returns their files."""
    monkeypatch.setattr(queries, "RUN", 700)

    def write(query):
        table = pa.table({"query": query, "label": np.zeros(len(query)), "value": np.arange(float(len(query)))})
        paths = []
        for number, begin in enumerate(range(0, len(query), 4000)):
            pq.write_table(table.slice(begin, 4000), tmp_path / f"{number}.parquet", row_group_size=1000)
        source = ParquetSource.of(tmp_path, NAMES)
        for part in queries.row_parts(source):
            paths.append(tmp_path / f"{part.number}.arrow")
            queries.write_buckets(part, source.columns, RANGES, paths[-1], Share(1 << 30))
        return paths

    return write


def rows_of(form, n_rows=N_ROWS):
    rng = np.random.default_rng(5)
    found = rng.integers(0, 300 * n_rows // N_ROWS, n_rows)
    if form == "one is frequent":
        found[rng.random(n_rows) < 0.4] = 7
    return pa.array([f"query-{one:020}" for one in found.tolist()]) if form == "long names" else pa.array(found)


@pytest.mark.parametrize("form", ["even", "one is frequent", "long names"])
@pytest.mark.parametrize("rows_that_fit", [N_ROWS * 2, 3000, 2800])
def test_blocks_are_of_whole_queries_in_the_order_of_the_data(form, rows_that_fit, written):
    paths = written(rows_of(form))
    share = Share(rows_that_fit * 128)
    found: dict[object, list[float]] = {}
    for place in range(len(RANGES)):
        for block in queries.blocks_of(paths, RANGES, place, share):
            qid, value = block.rows["qid"].to_pylist(), block.rows["score"].to_pylist()
            assert not found.keys() & set(qid), "a query is in two blocks"
            assert share.holds(0, len(qid))
            for one, number in zip(qid, value, strict=True):
                found.setdefault(one, []).append(number)
    assert sorted(number for numbers in found.values() for number in numbers) == list(range(N_ROWS))
    assert all(numbers == sorted(numbers) for numbers in found.values())
    expected = rows_of(form).to_pylist()
    assert all(expected[int(number)] == one for one, numbers in found.items() for number in numbers)


@pytest.fixture
def held(monkeypatch):
    """Return the bytes that Arrow holds whenever a batch is read."""
    found, before, read = [], pa.total_allocated_bytes(), queries.batches_of

    def watched(path, n_ranges, place):
        for one in read(path, n_ranges, place):
            found.append(pa.total_allocated_bytes() - before)
            yield one

    monkeypatch.setattr(queries, "batches_of", watched)
    return found


@pytest.mark.parametrize("form", ["even", "long names"])
@pytest.mark.parametrize("rows_that_fit", [150, 400, 1500])
def test_no_more_is_held_than_fits(form, rows_that_fit, written, held):
    paths = written(rows_of(form))
    share = Share(rows_that_fit * 128)
    n_rows = 0
    for place in range(len(RANGES)):
        for block in queries.blocks_of(paths, RANGES, place, share):
            n_rows += block.rows.num_rows
            assert block.rows.num_rows <= rows_that_fit
            del block
    assert n_rows == N_ROWS
    a_batch = 32_000  # as it is read; the share is what is kept of it
    assert max(held) <= share.n_bytes + a_batch


def test_a_query_that_does_not_fit_is_refused_before_its_rows_are_held(written, held):
    paths = written(rows_of("one is frequent", 10 * N_ROWS))
    share = Share(500 * 128)
    a_run = 700 * 24
    assert share.n_bytes + a_run < 0.2 * (0.4 * 10 * N_ROWS * 24), "the rows of the query are much more"
    blocks = (queries.blocks_of(paths, RANGES, place, share) for place in range(len(RANGES)))
    with pytest.raises(InvalidInput, match="query 7 has more than 500 rows"):
        deque(itertools.chain(*blocks), maxlen=0)
    assert max(held) < share.n_bytes + 3 * a_run
