"""A data set that is streamed has the evaluation of its rows in memory, bit for bit, however it is cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from circles import examples
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from streaming.logs import MEASURES, NAMES, Log, evaluate
from streaming.s3_server import s3
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.evaluation import to_bytes
from rankeval.evaluation.result import aggregates
from rankeval.streaming import queries, running
from rankeval.streaming.rows import _ROW, Share
from rankeval.streaming.source import ParquetSource

IDS = {
    "integers": lambda numbers: numbers,
    "wide integers": lambda numbers: numbers * 10**15 - 2**62,
    "unsigned": lambda numbers: numbers.astype(np.uint64) + np.uint64(2**63),
    "texts": lambda numbers: np.array([f"q{one}" for one in numbers], dtype=object),
    "floats": lambda numbers: numbers / 4 - 20,
    "small floats": lambda numbers: (numbers / 4).astype(np.float32),
    "days": lambda numbers: numbers.astype("datetime64[D]"),
}
pytestmark = pytest.mark.usefixtures("small")


def is_by_interval(data):
    return queries.sorted_parts(ParquetSource.of(data, NAMES), keep_order=False) is not None


SIZES = [40, pytest.param(7, marks=pytest.mark.rest), pytest.param(1000, marks=pytest.mark.rest)]


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("row_group_size", SIZES)
def test_sorted_and_shuffled_files_give_the_whole(tmp_path, ids, row_group_size):
    log = Log.made(ids=IDS[ids])
    for name, rows in (("sorted", log), ("shuffled", log.shuffled())):
        data = rows.write(tmp_path / name, cuts=(100, 333), row_group_size=row_group_size)
        expected = rk.evaluate(rows.table["label"], rows.table["value"], qid=rows.table["query"], measures=MEASURES)
        by_interval = name == "sorted" and ids not in ("small floats", "days")
        assert is_by_interval(data) == by_interval
        found = evaluate(data)
        assert aggregates(found) == aggregates(expected) == aggregates(log.evaluation())
        if ids != "days":  # ids that a file of an evaluation cannot hold
            assert to_bytes(found) == to_bytes(expected)
        assert found.queries.tolist() == expected.queries.tolist()
        assert found.ranking_digest == expected.ranking_digest


@hypothesis_settings(max_examples=examples(12))
@given(seed=st.integers(0, 10**6), size=st.integers(1, 60), n_cuts=st.integers(0, 5), shuffled=st.booleans())
def test_cuts_do_not_matter(tmp_path_factory, seed, size, n_cuts, shuffled):
    log = Log.made(seed, n_queries=25)
    log = log.shuffled(seed) if shuffled else log
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(log.qid), n_cuts)).tolist()
    data = log.write(tmp_path_factory.mktemp("log"), cuts=cuts, row_group_size=size)
    assert to_bytes(evaluate(data)) == to_bytes(log.evaluation())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_workers_do_not_matter(tmp_path, n_jobs):
    log = Log.made(n_queries=100)
    for rows in (log, log.shuffled()):
        assert to_bytes(evaluate(rows.write(tmp_path / "log"), n_jobs=n_jobs)) == to_bytes(log.evaluation())


def test_a_query_over_five_row_groups_and_two_files_is_whole(tmp_path):
    log = Log(np.repeat([1, 2, 3], [5, 50, 5]), np.arange(60) % 3, np.sin(np.arange(60)))
    data = log.write(tmp_path / "log", cuts=(33,), row_group_size=10)
    assert is_by_interval(data)
    assert to_bytes(evaluate(data)) == to_bytes(log.evaluation())


@each_row("ties", ["stable", "worst", "best", "expected"])
@each_row("shuffled", [False, True])
def test_the_order_of_rows_decides_as_in_memory(tmp_path, ties, shuffled):
    """Files that are named in another order than that of their queries, cut in the middle of one."""
    log = Log.made(most=60)
    log.score = np.round(log.score)
    log = log.shuffled() if shuffled else log.ordered(np.roll(np.arange(len(log.qid)), len(log.qid) // 2))
    how = {"convention": rk.Convention.with_rules(ties=ties), "measures": ["nDCG@10", "AP"]}
    data = log.write(tmp_path / "log", cuts=(len(log.qid) - len(log.qid) // 2,))
    assert to_bytes(evaluate(data, **how)) == to_bytes(log.evaluation(**how))


@each_row("convention", ["trec_eval-9.0.8", "trec_eval-10", "sklearn", "gdeval"])
def test_conventions_are_those_of_arrays(tmp_path, convention):
    log = Log.made()
    if convention != "trec_eval-10":
        log.y = np.maximum(log.y, 0)
    ids = np.array([f"d{one}" for one in range(len(log.qid))])
    table = log.table.append_column("doc", pa.array(ids))
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=30)
    how = {"convention": convention, "measures": ["nDCG@10", "AP"]}
    found = evaluate(tmp_path / "log.parquet", docid="doc", **how)
    assert to_bytes(found) == to_bytes(log.evaluation(docid=ids, **how))


@each_row("start", [2**53, 2**60, 2**63 - 20, 2**64 - 40])
def test_unsigned_ids_next_to_each_other_are_cut_apart(tmp_path, start):
    """Ids that are one as float64, in several parts."""
    qid = np.repeat(np.arange(40).astype(np.uint64) + np.uint64(start), 20)
    log = Log(qid, np.arange(800) % 3, np.sin(np.arange(800)))
    data = log.write(tmp_path / "log", row_group_size=30)
    assert len(queries.sorted_parts(ParquetSource.of(data, NAMES), keep_order=False)) > 2
    assert to_bytes(evaluate(data)) == to_bytes(log.evaluation())


KEYS = {
    "timestamp": pa.array([10**18 + 1, 10**18 + 2, 5], pa.timestamp("ns")),
    "zoned": pa.array([10**15, 10**15 + 1, 5], pa.timestamp("us", "Europe/Paris")),
    "date": pa.array([20000, 20001, 5], pa.date32()),
    "unsigned": pa.array([2**64 - 2, 2**64 - 1, 2**63], pa.uint64()),
    "texts": pa.array(["b", "c", "a"]),
    "fractions": pa.array([0.1, 0.2, -0.5], pa.float32()),
}


@each_row("kind", KEYS)
def test_queries_in_names_of_folders_are_cut_by_their_type(tmp_path, kind):
    qid = KEYS[kind].take(np.repeat([2, 0, 1], 250))
    table = pa.table({"query": qid, "label": np.arange(750) % 3, "value": np.sin(np.arange(750))})
    by_query = ds.partitioning(pa.schema([("query", qid.type)]), flavor="hive")
    ds.write_dataset(table, tmp_path, format="parquet", partitioning=by_query)
    data = ds.dataset(tmp_path, format="parquet", partitioning=by_query)
    assert len(queries.sorted_parts(ParquetSource.of(data, NAMES), keep_order=False)) > 2
    expected = rk.evaluate(table["label"], table["value"], qid=qid, measures=MEASURES)
    found = evaluate(data)
    assert aggregates(found) == aggregates(expected)
    assert found.queries.tolist() == expected.queries.tolist()
    assert found.ranking_digest == expected.ranking_digest


def test_statistics_that_lie_are_not_believed(tmp_path):
    """A row group out of order inside, and statistics that leave rows out, are found while reading."""
    log = Log.made(n_queries=30)
    inside = np.concatenate(
        [np.random.default_rng(0).permutation(part) for part in np.split(np.arange(len(log.qid)), [40, 80])]
    )
    mixed = log.ordered(inside)
    data = mixed.write(tmp_path / "mixed", row_group_size=40)
    assert to_bytes(evaluate(data)) == to_bytes(log.evaluation())


def test_without_statistics_rows_go_through_buckets(tmp_path):
    log = Log.made()
    data = log.write(tmp_path / "log", write_statistics=False)
    assert not is_by_interval(data)
    assert to_bytes(evaluate(data)) == to_bytes(log.evaluation())


def test_hive_partitions_are_columns(tmp_path):
    log = Log.made(n_queries=9)
    table = log.table.append_column("day", pa.array(log.qid % 3))
    ds.write_dataset(
        table,
        tmp_path / "log",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("day", pa.int64())]), flavor="hive"),
    )
    assert to_bytes(evaluate(tmp_path / "log")) == to_bytes(log.evaluation())
    by_day = evaluate(tmp_path / "log", qid="day")
    assert aggregates(by_day) == aggregates(rk.evaluate(log.y, log.score, qid=log.qid % 3, measures=MEASURES))


@each_row("shuffled", [False, True])
def test_a_dictionary_and_other_types_are_read(tmp_path, shuffled):
    log = Log.made(ids=IDS["texts"])
    table = (log.shuffled() if shuffled else log).table
    for name, column in (
        ("query", table["query"].dictionary_encode()),
        ("label", table["label"].cast(pa.int8())),
        ("value", table["value"].cast(pa.decimal128(10, 3))),
    ):
        table = table.set_column(table.schema.get_field_index(name), name, column)
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=33)
    assert to_bytes(evaluate(tmp_path / "log.parquet")) == to_bytes(log.evaluation())


def test_a_data_set_is_given_in_many_ways(tmp_path):
    log = Log.made()
    data = log.write(tmp_path / "log", cuts=(150,))
    files = sorted(data.iterdir())
    both = ds.dataset([ds.dataset(str(one)) for one in files])
    ways = (str(data), files, [str(one) for one in files], data.as_uri(), [one.as_uri() for one in files])
    for way in (*ways, ds.dataset(data), both):
        assert to_bytes(evaluate(way)) == to_bytes(log.evaluation())


def test_weights_stand_in_a_column_or_by_query(tmp_path):
    log = Log.made()
    weights = {query: float(query % 3) for query in log.qid.tolist()}
    table = log.table.append_column("weight", pa.array([weights[query] for query in log.qid.tolist()]))
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=33)
    for way in (weights, "weight"):
        found = evaluate(tmp_path / "log.parquet", query_weight=way)
        assert to_bytes(found) == to_bytes(log.evaluation(query_weight=weights))


def test_a_bucket_that_is_too_large_is_divided(tmp_path, monkeypatch):
    log = Log.made(n_queries=80).shuffled()
    monkeypatch.setattr(running.queries, "n_buckets", lambda _: 2)
    monkeypatch.setattr(running, "share_of", lambda *_: Share(40 * _ROW))
    assert to_bytes(evaluate(log.write(tmp_path / "log"))) == to_bytes(log.evaluation())


def test_a_bucket_of_s3_is_named_by_its_url(tmp_path):
    log = Log.made()
    (tmp_path / "bucket").mkdir()
    log.write(tmp_path / "bucket" / "log", cuts=(100,))
    with s3(tmp_path) as (server, asked):
        found = evaluate(f"s3://key:secret@bucket/log?{server}")
        assert to_bytes(found) == to_bytes(log.evaluation())
        assert any(one.startswith("bytes=") for one in asked)
        with pytest.raises(InvalidInput, match="there is no such data set"):
            evaluate(f"s3://key:secret@bucket/lost?{server}")


@each_row("shuffled", [False, True])
def test_a_column_is_read_from_the_files(tmp_path, shuffled):
    """Revenue has the bytes of memory, over row groups and buckets; what is missing is told with file and column."""
    log = Log.made(n_queries=80)
    log = log.shuffled() if shuffled else log
    table = log.table.append_column("usd", pa.array(np.random.default_rng(1).lognormal(2, 1, len(log.qid))))
    names = ["Revenue@5(column='price')", "Gain(column='price', rel=1, discount='log2')@3", "nDCG@10"]
    (tmp_path / "log").mkdir()
    pq.write_table(table, tmp_path / "log" / "a.parquet", row_group_size=70)

    def streamed(columns, measures=names):
        return rk.evaluate_dataset(tmp_path / "log", **NAMES, columns=columns, measures=measures)

    how = {"qid": table["query"], "measures": names, "columns": {"price": table["usd"]}}
    expected = rk.evaluate(table["label"], table["value"], **how)
    assert to_bytes(streamed({"price": "usd"})) == to_bytes(expected)
    with pytest.raises(InvalidInput) as lacking:
        streamed(["usd"])
    assert (lacking.value.argument, lacking.value.expected) == ("columns", "the column 'price'")
    with pytest.raises(InvalidInput, match=r"columns\['price'\]='usdd' is not in the data set"):
        streamed({"price": "usdd"})
    gap = pa.array([*table["usd"].to_pylist()[:-1], float("nan")])
    place = table.schema.get_field_index("usd")
    pq.write_table(table.set_column(place, "usd", gap), tmp_path / "log" / "a.parquet", row_group_size=70)
    with pytest.raises(InvalidInput, match=r"a\.parquet, row group \d+.*columns\['price'\]='usd'.* is nan"):
        streamed({"price": "usd"})
