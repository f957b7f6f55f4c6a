"""Rows at fault are named by file, row group and row, and queries at fault by their id, sorted or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from streaming.logs import NAMES, Log, evaluate
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.streaming.rows import of_queries
from rankeval.streaming.source import ReadColumns

pytestmark = pytest.mark.usefixtures("small")

AT = 200 + 40 + 27
"""A row of the second file, of its second row group, and of the second batch of that."""


def rows_of(*, shuffled: bool, texts: bool = True) -> pa.Table:
    """Return a log with documents and weights, which are 1, in one order."""
    log = Log.made(ids=lambda numbers: np.array([f"q{one:03}" for one in numbers], dtype=object) if texts else numbers)
    log.y, log.score = np.maximum(log.y, 0), np.arange(len(log.y)) * 0.5
    log = log.shuffled() if shuffled else log
    rows = log.table.append_column("weight", pa.array(np.ones(len(log.qid))))
    return rows.append_column("doc", pa.array([f"d{one}" for one in range(len(log.qid))]))


def changed(rows: pa.Table, column: str, at: int, value: object) -> pa.Table:
    cells = rows[column].to_pylist()
    cells[at] = value
    return rows.set_column(rows.schema.get_field_index(column), column, pa.array(cells, rows[column].type))


def written(rows: pa.Table, folder: Path) -> Path:
    """Write rows as two files, the first of 200 rows, in row groups of 40."""
    pq.write_table(rows.slice(0, 200), folder / "a.parquet", row_group_size=40)
    pq.write_table(rows.slice(200), folder / "b.parquet", row_group_size=40)
    return folder


def error_of(data: object, **how: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as raised:
        evaluate(data, **how)
    return raised.value


@each_row("shuffled", [False, True])
@each_row(
    ("column", "value", "said"),
    [
        ("doc", None, "row 11 has no document id"),
        ("weight", None, "row 11 has no number"),
        ("weight", float("nan"), "row 11 is nan"),
        ("weight", -0.5, "row 11 is -0.5; expected numbers, none below 0"),
    ],
)
def test_a_document_or_weight_at_fault_is_named_by_its_row(tmp_path, shuffled, column, value, said):
    data = written(changed(rows_of(shuffled=shuffled), column, AT, value), tmp_path)
    error = error_of(data, docid="doc", query_weight="weight")
    argument = {"doc": "docid='doc'", "weight": "query_weight='weight'"}[column]
    assert (error.where, error.argument) == (f"{tmp_path}/b.parquet, row group 1, counting from row 16", argument)
    assert error.problem.startswith(said)


def test_a_document_without_a_number_is_named_by_its_row(tmp_path):
    rows = rows_of(shuffled=True)
    rows = rows.set_column(rows.schema.get_field_index("doc"), "doc", pa.array(np.arange(len(rows)) * 1.0))
    data = written(changed(rows, "doc", AT, float("nan")), tmp_path)
    error = error_of(data, docid="doc")
    assert (error.where, error.argument) == (f"{tmp_path}/b.parquet, row group 1, counting from row 16", "docid='doc'")
    assert error.problem == "row 11 has no document id (found nan)"


def faults_of_a_query(rows: pa.Table, query: object):
    """Yield rows in which one query is at fault, the call that shows it, and what is said."""
    first, second = np.flatnonzero(np.array(rows["query"].to_pylist(), dtype=object) == query)[:2].tolist()
    doc = rows["doc"][first].as_py()
    yield (
        changed(rows, "weight", second, 2.0),
        {"query_weight": "weight"},
        "query_weight='weight': found several within one query",
    )
    yield (
        changed(rows, "doc", second, doc),
        {"docid": "doc"},
        f"docid='doc': document {doc!r} occurs twice in query {str(query)!r} (rows 0 and 1, counting from",
    )
    yield changed(rows, "label", second, -3), {"convention": "sklearn"}, "relevance='label': found 1 label below zero"
    tied = changed(rows, "value", second, rows["value"][first].as_py())
    yield (
        tied,
        {"convention": rk.Convention.with_rules(ties="docid")},
        "ties='docid' needs docid=, one document id for each row",
    )
    weights = {one: 1.0 for one in rows["query"].to_pylist() if one != query}
    yield rows, {"query_weight": weights}, f"query_weight: query {query!r} has none"


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("texts", [False, True])
def test_a_query_at_fault_is_named(tmp_path, shuffled, texts):
    rows = rows_of(shuffled=shuffled, texts=texts)
    names = rows["query"].to_pylist()
    query = next(one for one in names[AT:] if names.count(one) > 2 and one != names[AT])
    for number, (wrong, how, said) in enumerate(faults_of_a_query(rows, query)):
        (tmp_path / str(number)).mkdir()
        data = written(wrong, tmp_path / str(number))
        found = error_of(data, **how)
        assert str(found.having(where=None)).startswith(said)
        groups = "" if shuffled else f" in {', '.join(row_groups_with(query, data))}"
        assert found.where == f"query {query!r}{groups}"
        assert "among" not in str(found)
        assert "(1 such in all)" not in str(found)


def row_groups_with(query: object, data: Path) -> list[str]:
    return [
        f"{path}, row group {group}"
        for path in sorted(data.iterdir())
        for group in range(pq.ParquetFile(path).num_row_groups)
        if query in pq.ParquetFile(path).read_row_group(group, ["query"])["query"].to_pylist()
    ]


@each_row(
    ("kind", "folders", "shown"),
    [
        (pa.timestamp("ns"), ["2026-11-22 00:00:00", "2026-11-23 00:00:00"], "Timestamp('2026-11-23 00:00:00')"),
        (pa.date32(), ["2026-11-22", "2026-11-23"], "datetime.date(2026, 11, 23)"),
        (pa.uint64(), ["1", str(2**63 + 1)], str(2**63 + 1)),
        (pa.string(), ["a", "b"], "'b'"),
    ],
)
def test_a_query_of_the_names_of_folders_is_named(tmp_path, kind, folders, shown):
    for folder, weights in zip(folders, ([1.0, 1.0], [1.0, 2.0]), strict=True):
        (tmp_path / f"query={folder}").mkdir()
        rows = pa.table({"label": [1, 0], "value": [0.1, 0.2], "weight": weights})
        pq.write_table(rows, tmp_path / f"query={folder}" / "x.parquet")
    data = ds.dataset(tmp_path, partitioning=ds.partitioning(pa.schema([("query", kind)]), flavor="hive"))
    found = error_of(data, query_weight="weight")
    assert found.where == f"query {shown} in {tmp_path}/query={folders[1]}/x.parquet, row group 0"
    assert found.argument == "query_weight='weight'"


@pytest.mark.worth("the one fault by default that comes from processes of `n_jobs`")
def test_a_query_of_processes_of_their_own_is_named(tmp_path):
    rows = rows_of(shuffled=True)
    query = rows["query"][AT].as_py()
    wrong, how, said = next(faults_of_a_query(rows, query))
    assert str(error_of(written(wrong, tmp_path), n_jobs=2, **how)).startswith(f"query {query!r}: {said}")


def test_the_first_of_several_queries_at_fault_in_a_block_is_named():
    """By halves: a look at each query alone would take minutes where they are many."""
    n = 3000
    weights = np.where(np.arange(n) < 1234, 1.0, np.arange(n))
    rows = pa.table({"qid": np.arange(n) // 2, "relevance": np.ones(n, int), "score": np.ones(n), "weights": weights})
    calls = []

    def work(some):
        calls.append(len(some))
        return rk.evaluate(some["relevance"], some["score"], qid=some["qid"], query_weight=some["weights"])

    with pytest.raises(InvalidInput, match=r"^query 617: query_weight: found several within one query"):
        of_queries(rows, [], ReadColumns(NAMES, {}), work)
    assert len(calls) < 15
    assert sum(calls) < 4 * n


def test_an_error_that_no_query_has_alone_is_raised_as_it_is():
    rows = pa.table({"qid": ["a", "b"]})

    def work(some):
        if len(some) == 2:
            raise InvalidInput("two are too many")

    with pytest.raises(InvalidInput, match=r"^two are too many$"):
        of_queries(rows, [], ReadColumns(NAMES, {}), work)
