"""Files whose columns differ in type, columns of rare types, and values in names of folders."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from circles import choose
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.evaluation.result import aggregates

K = {"qid": "q", "relevance": "y", "score": "s", "measures": ["nDCG@10", "RR"]}


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def as_arrays(y, score, qid, **how):
    return rk.evaluate(y, score, qid=qid, measures=K["measures"], **how)


def assert_equal(found, expected):
    assert found.queries.tolist() == expected.queries.tolist()
    assert aggregates(found) == aggregates(expected)
    assert found.ranking_digest == expected.ranking_digest


@each_row("qid", [[1, 1, 2, 2, 2], [1, 2, 1, 2, 1]], ids=["sorted", "any order"])
@each_row("turned", [False, True])
def test_numbers_of_several_types_keep_their_values(tmp_path, qid, turned):
    flags, grades = pa.array([True, False]), pa.array([0, 3, 2], pa.int8())
    near, exact = pa.array([0.25, 0.5], pa.float32()), pa.array([0.5, 0.5 + 1e-12, 0.1])
    first, second = ("b", "a") if turned else ("a", "b")
    write(tmp_path / f"{first}.parquet", q=qid[:2], y=flags, s=near)
    write(tmp_path / f"{second}.parquet", q=qid[2:], y=grades, s=exact)
    if turned:
        qid = qid[2:] + qid[:2]
    y = [0, 3, 2, 1, 0] if turned else [1, 0, 0, 3, 2]
    score = [0.5, 0.5 + 1e-12, 0.1, 0.25, 0.5] if turned else [0.25, 0.5, 0.5, 0.5 + 1e-12, 0.1]
    assert_equal(rk.evaluate_dataset(tmp_path, **K), as_arrays(y, score, qid))


def test_numbers_that_no_common_type_holds_are_refused(tmp_path):
    write(tmp_path / "a.parquet", q=[1], y=[1], s=[0.5])
    write(tmp_path / "b.parquet", q=[2], y=[1], s=[2**53 + 1])
    with pytest.raises(InvalidInput, match=r"b.parquet, row group 0: score='s': .*9007199254740993"):
        rk.evaluate_dataset(tmp_path, **K)
    write(tmp_path / "b.parquet", q=[2], y=["1"], s=[0.5])
    with pytest.raises(
        InvalidInput, match=r"relevance='y' is of type int64 in .*a.parquet and of type string in .*b.p"
    ):
        rk.evaluate_dataset(tmp_path, **K)


def test_the_two_types_that_do_not_fit_are_named(tmp_path):
    for name, kind in zip("abc", (pa.int64(), pa.int8(), pa.uint64()), strict=True):
        write(tmp_path / f"{name}.parquet", q=[1], y=pa.array([1], kind), s=[0.5])
    with pytest.raises(InvalidInput, match=r"relevance='y' is of type int64 in .*a.parq.* type uint64 in .*c.parquet"):
        rk.evaluate_dataset(tmp_path, **K)


def told(path, **types):
    """Return the data set of a file, with other types of some columns in its schema."""
    schema = pq.read_schema(path)
    for name, kind in types.items():
        schema = schema.set(schema.get_field_index(name), pa.field(name, kind))
    return ds.dataset(path, schema=schema)


@each_row(
    ("role", "name", "kind"),
    [
        ("qid", "q", pa.string()),
        ("qid", "q", pa.float64()),
        ("relevance", "y", pa.bool_()),
        ("relevance", "y", pa.uint64()),
        ("relevance", "y", pa.float32()),
        ("score", "s", pa.float32()),
        ("score", "s", pa.decimal128(5, 2)),
    ],
)
def test_a_schema_that_changes_values_is_refused(tmp_path, role, name, kind):
    write(tmp_path / "a.parquet", q=[1, 1], y=[1, 2], s=[0.5, 0.1])
    said = rf"{role}='{name}' is of type \w+ in .*a.parquet and of type .*{str(kind)[:6]}.* in the schema"
    with pytest.raises(InvalidInput, match=said):
        rk.evaluate_dataset(told(tmp_path / "a.parquet", **{name: kind}), **K)


@each_row("types", [{"q": pa.int32(), "y": pa.float64()}, {"q": pa.uint8(), "y": pa.int8()}])
def test_a_schema_that_changes_no_value_is_taken(tmp_path, types):
    write(tmp_path / "a.parquet", q=pa.array([1, 1, 2], pa.uint8()), y=[1, 2, 0], s=[0.5, 0.1, 1.5])
    found = rk.evaluate_dataset(told(tmp_path / "a.parquet", **types), **K)
    read = np.uint8 if types["q"] == pa.uint8() else np.int64
    assert_equal(found, as_arrays([1, 2, 0], [0.5, 0.1, 1.5], np.array([1, 1, 2], read)))


@each_row(
    ("one", "other"),
    [
        (pa.array([0.1], pa.float32()), pa.array([0.2], pa.float64())),
        (pa.array([1]), pa.array(["01"])),
        (pa.array([1]), pa.array([2], pa.uint64())),
        (pa.array([True]), pa.array([2])),
    ],
)
def test_ids_of_several_types_are_refused(tmp_path, one, other):
    write(tmp_path / "a.parquet", q=one, y=[1], s=[0.5])
    write(tmp_path / "b.parquet", q=other, y=[1], s=[0.5])
    said = rf"qid='q' is of type {one.type} in .*a.parquet and of type {other.type} in .*b.parquet"
    with pytest.raises(QueryIdError, match=said):
        rk.evaluate_dataset(tmp_path, **K)


@each_row(
    ("one", "other"),
    [
        (pa.array([2], pa.int32()), pa.array([2**40, 1])),
        (pa.array([2], pa.uint64()), pa.array([3, 1], pa.uint8())),
        (pa.array(["b"]), pa.array(["b", "a"], pa.large_string())),
        (pa.array(["b"], pa.string_view()), pa.array(["b", "a"]).dictionary_encode()),
    ],
)
@each_row("is_sorted", [True, False])
def test_ids_of_several_widths_are_one_type(tmp_path, one, other, is_sorted):
    other = other.take([1, 0]) if is_sorted else other
    parts = (other, one) if is_sorted else (one, other)
    qid = [value for part in parts for value in part.to_pylist()]
    y, score = [1, 0, 2], [0.1, 0.2, 0.3]
    begin = 0
    for name, part in zip("ab", parts, strict=True):
        end = begin + len(part)
        write(tmp_path / f"{name}.parquet", q=part, y=y[begin:end], s=score[begin:end])
        begin = end
    assert_equal(rk.evaluate_dataset(tmp_path, **K), as_arrays(y, score, qid))


TEXTS = {
    "plain": pa.array,
    "large": lambda texts: pa.array(texts, pa.large_string()),
    "view": lambda texts: pa.array(texts, pa.string_view()),
    "dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "large dictionary": lambda texts: pa.array(texts, pa.large_string()).dictionary_encode(),
    "ordered": lambda texts: pa.array(texts).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string(), True)),
    "DELTA_BYTE_ARRAY": pa.array,
    "DELTA_LENGTH_BYTE_ARRAY": pa.array,
}


def write_texts(path, how, qid, docid, y, score):
    """Write a file whose texts are held, or encoded, in one of many ways."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"q": TEXTS[how](qid), "d": TEXTS[how](docid), "y": y, "s": score})
    encoding = {"q": how, "d": how} if "DELTA" in how else None
    pq.write_table(table, path, use_dictionary=not encoding, column_encoding=encoding, row_group_size=50)


WAYS = list(TEXTS)
PAIRS = choose(default=list(zip(WAYS, WAYS[1:] + WAYS[:1], strict=True)), full=list(product(WAYS, WAYS)))


@pytest.mark.random
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("is_sorted", [True, False], ids=["sorted", "any order"])
@each_row(("first", "second"), PAIRS)
def test_texts_are_read_however_each_file_holds_them(tmp_path, first, second, is_sorted):
    order = np.arange(400) if is_sorted else np.random.default_rng(0).permutation(400)
    qid = [f"q{100 + row // 8}" for row in order.tolist()]
    docid = [f"d{row % 8}" for row in order.tolist()]
    y, score = order % 3, np.round(np.sin(order), 1)
    write_texts(tmp_path / "a.parquet", first, qid[:203], docid[:203], y[:203], score[:203])
    write_texts(tmp_path / "b.parquet", second, qid[203:], docid[203:], y[203:], score[203:])
    convention = rk.Convention(ties="docid")
    found = rk.evaluate_dataset(tmp_path, **K, docid="d", convention=convention)
    assert_equal(found, as_arrays(y, score, qid, docid=docid, convention=convention))


@each_row("how", ["plain", "DELTA_BYTE_ARRAY"])
def test_a_folder_of_queries_stands_beside_a_column_of_them(tmp_path, how):
    write(tmp_path / "keys/q=a/x.parquet", y=[1, 0], s=[0.1, 0.2], d=["1", "2"])
    write(tmp_path / "keys/q=c/x.parquet", y=[1, 0], s=[0.3, 0.2], d=["1", "2"])
    write_texts(tmp_path / "column/x.parquet", how, ["b", "b"], ["1", "2"], [0, 2], [0.1, 0.1])
    both = [ds.dataset(tmp_path / name, format="parquet", partitioning="hive") for name in ("keys", "column")]
    schema = pa.schema([("q", pa.string()), ("d", pa.string()), ("y", pa.int64()), ("s", pa.float64())])
    data = ds.dataset([one.replace_schema(schema) for one in both])
    expected = as_arrays([1, 0, 0, 2, 1, 0], [0.1, 0.2, 0.1, 0.1, 0.3, 0.2], list("aabbcc"))
    assert_equal(rk.evaluate_dataset(data, **K), expected)


RARE = {
    "binary": pa.array([b"a", b"\xff", b"a"]),
    "large_binary": pa.array([b"a", b"\xff", b"a"], pa.large_binary()),
    "binary_view": pa.array([b"a", b"\xff", b"a"], pa.binary_view()),
    "fixed": pa.array([b"a", b"\xff", b"a"], pa.binary(1)),
    "string_view": pa.array(["a", "b", "a"], pa.string_view()),
    "uuid": pa.array([b"a" * 16, b"\xff" * 16, b"a" * 16], pa.binary(16)).cast(pa.uuid()),
    "json": pa.array(["1", "2", "1"], pa.json_()),
    "null": pa.nulls(3),
}


@each_row("order", [[0, 2, 1], [0, 1, 2]], ids=["sorted", "any order"])
@each_row("kind", RARE)
def test_ids_of_rare_types_give_what_arrays_give(tmp_path, kind, order):
    qid = pa.chunked_array([RARE[kind].slice(row, 1) for row in order]).combine_chunks()
    y, score = pa.array([1, 0, 2]), pa.array([0.1, 0.2, 0.3])
    write(tmp_path / "a.parquet", q=qid, y=y, s=score)
    if kind == "null":
        with pytest.raises(QueryIdError, match=r"a.parquet, row group 0: qid='q': row 0 has no query id"):
            rk.evaluate_dataset(tmp_path, **K)
        return
    assert_equal(rk.evaluate_dataset(tmp_path, **K), as_arrays(y, score, qid))


@each_row("kind", [kind for kind in RARE if kind != "null"])
def test_documents_of_rare_types_give_what_arrays_give(tmp_path, kind):
    docid = RARE[kind].slice(0, 2)
    y, score, qid = [1, 0], [0.5, 0.5], [7, 7]
    write(tmp_path / "a.parquet", q=qid, y=y, s=score, d=docid)
    convention = rk.Convention(ties="docid")
    expected = as_arrays(y, score, qid, docid=docid.to_pylist(), convention=convention)
    for column in (docid, pa.chunked_array([docid.slice(0, 1), docid.slice(1)])):
        assert_equal(as_arrays(y, score, qid, docid=column, convention=convention), expected)
    assert_equal(rk.evaluate_dataset(tmp_path, **K, docid="d", convention=convention), expected)


def test_texts_in_names_of_folders_are_ids(tmp_path):
    write(tmp_path / "q=a/x.parquet", y=[1, 0], s=[0.1, 0.2])
    write(tmp_path / "q=b/x.parquet", y=[1, 0], s=[0.3, 0.2])
    assert_equal(
        rk.evaluate_dataset(tmp_path, **K), as_arrays([1, 0, 1, 0], [0.1, 0.2, 0.3, 0.2], ["a", "a", "b", "b"])
    )


def test_a_folder_without_a_query_id_is_named(tmp_path):
    write(tmp_path / "q=1/x.parquet", y=[1], s=[0.1])
    write(tmp_path / "q=__HIVE_DEFAULT_PARTITION__/x.parquet", y=[1], s=[0.1])
    with pytest.raises(QueryIdError, match=r"q=__HIVE_DEFAULT_PARTITION__/x.parquet: qid='q': .* no query id"):
        rk.evaluate_dataset(tmp_path, **K)


def test_a_folder_whose_id_is_not_a_number_is_named(tmp_path):
    write(tmp_path / "q=1.5/x.parquet", y=[1], s=[0.1])
    write(tmp_path / "q=nan/x.parquet", y=[1], s=[0.1])
    as_number = ds.partitioning(pa.schema([("q", pa.float64())]), flavor="hive")
    with pytest.raises(QueryIdError, match=r"q=nan/x.parquet: qid='q': .* no query id"):
        rk.evaluate_dataset(ds.dataset(tmp_path, partitioning=as_number), **K)


@each_row("scheme", ["foo", "hdfs", "s3"])
@each_row("is_list", [False, True])
def test_secrets_of_urls_are_not_shown(scheme, is_list):
    url = f"{scheme}://user:SECRET@host/x.parquet?key=SECRET"
    with pytest.raises(InvalidInput, match=r"://\*\*\*@host/x.parquet\?key=\*\*\*") as raised:
        rk.evaluate_dataset([url, url + "2"] if is_list else url, **K)
    assert "SECRET" not in str(raised.value)
