"""Every make of number is held exactly or refused by row: nothing wraps, nothing ignores a mask."""

from __future__ import annotations

import array
import datetime as dt
import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.evaluation import from_bytes, to_bytes
from rankeval.io.columns import labels, scores

D = decimal.Decimal
HELD = {
    "list": [0, 2, 1],
    "tuple of floats": (0.0, 2.0, 1.0),
    "bools and numbers": [False, 2, True],
    "Decimals": [D(0), D("2.0"), D(1)],
    "objects": np.array([0, 2.0, np.int8(1)], dtype=object),
    "big-endian": np.array([0, 2, 1], dtype=">i4"),
    "big-endian floats": np.array([0, 2, 1], dtype=">f8"),
    "float16": np.array([0, 2, 1], dtype=np.float16),
    "uint64": np.array([0, 2, 1], dtype=np.uint64),
    "strided": np.array([0, 9, 2, 9, 1])[::2],
    "memoryview": memoryview(array.array("d", [0, 2, 1])),
    "nothing masked": np.ma.array([0, 2, 1], mask=False),
    "Int64": pd.array([0, 2, 1], dtype="Int64"),
    "Float64": pd.Series([0, 2, 1], dtype="Float64"),
    "categories": pd.Series([0, 2, 1], dtype="category"),
    "sparse": pd.Series(pd.arrays.SparseArray([0, 2, 1])),
    "pandas on Arrow": pd.Series([0, 2, 1], dtype="uint64[pyarrow]"),
    "decimals of pandas": pd.Series([D(0), D(2), D(1)], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
    "polars": pl.Series([0, 2, 1]),
    "Arrow": pa.array([0, 2, 1], pa.uint64()),
    "Arrow chunks": pa.chunked_array([[0.0], [2.0, 1.0]]),
    "Arrow decimals": pa.array([D(0), D(2), D(1)]),
    "Arrow categories": pa.array([0, 2, 1]).dictionary_encode(),
    "half floats of Arrow": pa.array(np.array([0, 2, 1], dtype=np.float16)),
}


@each_row("make", HELD)
def test_every_make_is_the_same_numbers(make):
    """As labels and as scores, of rows and of collections."""
    assert labels(HELD[make], "y").tolist() == scores(HELD[make], "s").tolist() == [0, 2, 1]
    expected = rk.evaluate([0, 2, 1], [0, 2, 1], qid=[1, 1, 1], measures="nDCG").per_query["nDCG"].tolist()
    found = rk.evaluate(HELD[make], HELD[make], qid=[1, 1, 1], measures="nDCG")
    assert found.per_query["nDCG"].tolist() == expected
    assert rk.Run(["q"] * 3, ["a", "b", "c"], HELD[make]).score.tolist() == [0, 2, 1]
    assert rk.Qrels(["q"] * 3, ["a", "b", "c"], HELD[make]).relevance.dtype == np.int64


BEYOND = {
    "uint64": (np.array([0, 2**64 - 1], dtype=np.uint64), "18446744073709551615"),
    "uint64 of Arrow": (pa.array([0, 2**63 + 1], pa.uint64()), "9223372036854775809"),
    "uint64 of pandas": (pd.Series([0, 2**64 - 1], dtype="UInt64"), "18446744073709551615"),
    "uint64 of polars": (pl.Series([0, 2**64 - 1], dtype=pl.UInt64), "18446744073709551615"),
    "a list": ([0, 2**64 - 1], "18446744073709551615"),
    "beside a negative": ([-1, 2**63 + 1], "9223372036854775809"),
    "beside a float": ([0.5, 2**53 + 1], "9007199254740993"),
    "a very great number": ([0, 10**400], "1000000000000000000000000000000000000..."),
    "a very great Decimal": ([0, D("1e400")], "1E[+]400"),
}


@each_row("make", BEYOND)
def test_what_would_wrap_or_be_rounded_is_refused(make):
    """A label of 2^64 - 1 gave nDCG .25 where .5 is right; a score of it made the best document the worst."""
    column, shown = BEYOND[make]
    for y, score, name in ((column, [1, 2], "truth"), ([1, 0], column, "ranking")):
        with pytest.raises(InvalidInput, match=f"^{name}: row 1 is {shown}.*cannot represent; subtract"):
            rk.evaluate(y, score, qid=[0, 0])
    with pytest.raises(InvalidInput, match=f"^column relevance: row 1 is {shown}"):
        rk.Qrels(["q", "q"], ["a", "b"], column)
    with pytest.raises(InvalidInput, match=f"^column score: row 1 is {shown}"):
        rk.Run(["q", "q"], ["a", "b"], column)


def test_scores_are_exact_or_refused():
    """What float64 holds ranks as it should, to the last bit; neighbours that it makes one are named."""
    held = np.array([2**63, 2**63 + 2048, 2**53 - 1], dtype=np.uint64)
    assert scores(held, "s").tolist() == [float(one) for one in held.tolist()]
    first = rk.evaluate([0, 1, 0], held, qid=[0, 0, 0], measures="RR").per_query["RR"].tolist()
    assert first == [1.0]
    with pytest.raises(InvalidInput, match=r"^ranking: row 1 is 9007199254740993, which a 64-bit float"):
        rk.evaluate([0, 1], np.array([2**53, 2**53 + 1]), qid=[0, 0])
    with pytest.raises(InvalidInput, match=r"^ranking: row 0 is 9223372036854775807"):
        scores(np.array([2**63 - 1, 0]), "ranking")
    assert labels(np.array([2**63 - 1, 0]), "y").tolist() == [2**63 - 1, 0]


@each_row("value", [fractions.Fraction(1, 2), np.longdouble(1) / 2])
def test_numbers_of_more_than_64_bits_are_refused(value):
    """Fractions and long doubles, which float64 would round, even those that it holds."""
    for values in ([0, value], np.array([0, value])):
        for read in (labels, scores):
            with pytest.raises(InvalidInput) as caught:
                read(values, "y")
            assert caught.value.argument == "y"
            assert caught.value.remedy == "give whole numbers, floats of 64 bits or Decimals"


@each_row("kind", ["relevance", "score"])
def test_a_parquet_file_with_uint64_is_refused(tmp_path, kind):
    """Relevance 2^63 + 1 became negative."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"qid": ["q"], "docid": ["d"], kind: pa.array([2**63 + 1], pa.uint64())}), path)
    with pytest.raises(
        InvalidInput, match=f"row 1, column {kind}: expected a finite number, found 9223372036854775809"
    ):
        (rk.Qrels if kind == "relevance" else rk.Run).read(path)


NO_NUMBERS = {
    "complex": (np.array([1j, 0]), "expected numbers, found complex128"),
    "dates": (np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"), "expected numbers, found datetime64"),
    "digits": (["1", "2"], "expected numbers, found '1' in row 0"),
    "digits as objects": (np.array(["1", "2"], dtype=object), "expected numbers, found '1' in row 0"),
    "digits of pandas": (pd.Series(["1", "2"], dtype="string"), "expected numbers, found '1' in row 0"),
    "digits of Arrow": (pa.array(["1", "2"]), "expected numbers, found '1' of type string"),
    "bytes": ([1, b"2"], "expected numbers, found b'2' in row 1"),
    "None": ([1, None], r"row 1 has no number \(found None\)"),
    "NA": (pd.Series([1, None], dtype="Int64"), "row 1 (has no number|is nan)"),
    "Float64 NA": (pd.Series([1.0, None], dtype="Float64"), "row 1 (has no number|is nan)"),
    "boolean NA": (pd.Series([True, None], dtype="boolean"), "row 1 has no number"),
    "Arrow of pandas": (pd.Series([1, None], dtype="int64[pyarrow]"), "row 1 (has no number|is nan)"),
    "category NaN": (pd.Series([1, None], dtype="category"), "row 1 is nan"),
    "null": (pa.array([1, None]), r"row 1 has no number \(found null\)"),
    "polars null": (pl.Series([1, None]), "row 1 is nan"),
    "masked": (np.ma.array([1, 2], mask=[False, True]), r"row 1 is masked \(1 such in all\)"),
    "a masked cell": ([1, np.ma.masked], "row 1"),
    "a date": ([1, dt.date(2020, 1, 1)], r"expected numbers, found datetime.date\(2020, 1, 1\) in row 1"),
    "ragged": ([[1], [1, 2]], "expected one number a row"),
    "a number": (3, "expected one number a row"),
    "a set": ({1, 2}, "expected one number a row"),
    "a matrix": (np.zeros((2, 2)), r"expected one number a row, found an array of shape \(2, 2\)"),
    "records": (np.zeros(2, dtype=[("a", int)]), "expected numbers, found"),
    "Decimal NaN": ([1, D("NaN")], "row 1 is nan"),
    "infinity": ([1, float("inf")], "row 1 is inf"),
}


@each_row("make", NO_NUMBERS)
@pytest.mark.filterwarnings("ignore:Warning. converting a masked element:UserWarning")
def test_what_is_no_number_is_refused_in_one_line(make):
    """Everywhere by one rule, naming the argument."""
    column, said = NO_NUMBERS[make]
    for y, score, name in ((column, [1, 2], "truth"), ([1, 0], column, "ranking")):
        with pytest.raises(InvalidInput, match=f"^{name}: {said}") as caught:
            rk.evaluate(y, score, qid=[0, 0])
        assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInput, match=f"relevance: {said}"):
        rk.Qrels(["q", "q"], ["a", "b"], column)
    with pytest.raises(InvalidInput, match=r"^query_weight"):
        rk.evaluate([1, 0], [1, 2], qid=[0, 0], query_weight=column)


@each_row("name", ["qid", "docid"])
def test_masked_ids_are_refused(name):
    """A masked id was an id like the others."""
    ids = {"qid": [1, 1, 2], "docid": [1, 2, 3]} | {name: np.ma.array([1, 2, 3], mask=[0, 0, 1])}
    with pytest.raises(InvalidInput, match=f"^{name}: row 2 is masked"):
        rk.evaluate([1, 0, 1], [1, 2, 3], **ids)
    with pytest.raises(InvalidInput, match=f"^{name}: row 2 is masked"):
        rk.Run(ids["qid"], ids["docid"], [1, 2, 3])
    with pytest.raises(InvalidInput, match=r"^group: row 1 is masked"):
        rk.evaluate([1, 0, 1], [1, 2, 3], group=np.ma.array([1, 2], mask=[0, 1]))


def test_ids_that_floats_would_merge_stay_apart():
    """NumPy makes floats of -1 beside 2**63, and of whole numbers beside fractions."""
    great = [2**63, 2**63 + 1, -1]
    assert rk.evaluate([1, 1, 1], [1, 2, 3], qid=great).n_queries == 3
    assert rk.evaluate([1, 1], [1, 2], qid=["a", "a\0"]).n_queries == 2
    with pytest.raises(InvalidInput, match="ids of several types are mixed"):
        rk.evaluate([1, 1, 1], [1, 2, 3], qid=[2**53, 2**53 + 1, 0.5])


def test_group_sizes_do_not_wrap():
    """2**63 - 1 twice and 4 add up to 2 in 64 bits."""
    with pytest.raises(InvalidInput, match="add up to 18446744073709551618, but the data has 2 rows"):
        rk.evaluate([1, 0], [1, 2], group=[2**63 - 1, 2**63 - 1, 4])


def test_great_ids_are_stored_or_refused():
    """Saving them was an OverflowError."""
    rows = {"truth": [1, 0, 1], "ranking": [3, 2, 1], "measures": "AP"}
    ev = rk.evaluate(**rows, qid=np.array([2**63, 2**63, 2], dtype=np.uint64))
    assert from_bytes(to_bytes(ev)).queries.tolist() == [2, 2**63]
    with pytest.raises(InvalidInput, match="qid: these ids cannot be stored"):
        to_bytes(rk.evaluate(**rows, qid=[2**63, -1, -1]))


OBJECTS = '{{"qid":"q","docid":"a","NUMBER":{}}}\n{{"qid":"q","docid":"b","NUMBER":{}}}\n'
TEXTS = {
    "trec": ("f", "q Q0 a 1 {} t\nq Q0 b 2 {} t\n", "q 0 a {}\nq 0 b {}\n"),
    "trec with two blanks": ("f", "q  Q0 a 1 {} t\nq Q0 b 2 {} t\n", "q  0 a {}\nq 0 b {}\n"),
    "csv": ("f.csv", "qid,docid,score\nq,a,{}\nq,b,{}\n", "qid,docid,relevance\nq,a,{}\nq,b,{}\n"),
    "jsonl": ("f.jsonl", OBJECTS.replace("NUMBER", "score"), OBJECTS.replace("NUMBER", "relevance")),
}


@each_row("form", TEXTS)
@each_row(
    "pair", [(2**53, 2**53 + 1), (1, 2**63), (2**63 - 1, 1), (-(2**63), -1), (2**53 + 2, 0.5), (2**60, 2**53 + 4)]
)
def test_a_text_holds_the_numbers_of_a_dict_or_is_refused_as_they_are(tmp_path, form, pair):
    """The score 2^53 + 1 was tied with 2^53, and the label 2^63 became 9.22e18, in text alone."""
    name, *texts = TEXTS[form]
    for kind, text in zip((rk.Run, rk.Qrels), texts, strict=True):
        (tmp_path / name).write_text(text.format(*pair))
        value = "score" if kind is rk.Run else "relevance"
        try:
            expected = getattr(kind.from_dict({"q": dict(zip("ab", pair, strict=True))}), value)
        except InvalidInput:
            with pytest.raises(FileFormatError, match=rf"f.*, line \d, column {value}: .*found '?-?\d+'?; it must fit"):
                kind.read(tmp_path / name)
            continue
        found = getattr(kind.read(tmp_path / name), value)
        assert (found.tolist(), found.dtype) == (expected.tolist(), expected.dtype)


@each_row("label", [2**63, 2**63 - 1])
def test_labels_of_rows_with_features_are_exact_or_refused(tmp_path, label):
    """In both kinds of text."""
    (tmp_path / "rows.txt").write_text(f"{label} qid:1 1:0.5\n0 qid:1 1:0.25\n")
    (tmp_path / "rows.csv").write_text(f"qid,label,x\n1,{label},0.5\n1,0,0.25\n")
    for read in (
        lambda: rk.datasets.load_letor(tmp_path / "rows.txt").y,
        lambda: rk.datasets.load_table(tmp_path / "rows.csv", qid="qid", label="label").y,
    ):
        if label == 2**63:
            with pytest.raises(InvalidInput, match=r"rows.*9223372036854775808, which a 64-bit whole number cannot"):
                read()
        else:
            assert read().tolist() == [label, 0]


GREAT = {
    "dict": lambda ids: rk.Run.from_dict({"q": dict.fromkeys(ids, 1.0)}),
    "pairs": lambda ids: rk.Run.from_dict({"q": [(one, 1.0) for one in ids]}),
    "list": lambda ids: rk.Run(["q"] * len(ids), ids, range(len(ids))),
    "NumPy": lambda ids: rk.Run(["q"] * len(ids), np.array(ids, np.uint64), range(len(ids))),
    "pandas": lambda ids: rk.Run.from_frame(pd.DataFrame({"qid": "q", "docid": ids, "score": 1})),
    "polars": lambda ids: rk.Run(pl.Series(["q"] * len(ids)), pl.Series(ids, dtype=pl.UInt64), range(len(ids))),
    "Arrow": lambda ids: rk.Run(["q"] * len(ids), pa.array(ids, pa.uint64()), range(len(ids))),
    "records": lambda ids: rk.Run.from_records([{"qid": "q", "docid": one, "score": 1} for one in ids]),
}  # fmt: skip


@each_row("make", GREAT)
def test_whole_ids_beyond_int64_are_refused_in_true_words(make):
    """They were said to be of several types, or beyond 64 bits, which 2**63 is not."""
    with pytest.raises(InvalidInput, match=r"docid: row 1 is 9223372036854775808, and whole ids go from -2\^63") as no:
        GREAT[make]([5, 2**63])
    assert no.value.remedy == "give ids of this column as text"
    assert GREAT[make]([5, 2**63 - 1]).docid.to_pylist() == [5, 2**63 - 1]


@each_row("ids", [["d", "d\udce9"], ["\ud800"]])
def test_half_a_character_in_an_id_is_named(ids):
    """As `os.fsdecode` leaves it in names of files."""
    for make in (lambda: rk.Run.from_dict({"q": ids}), lambda: rk.Qrels(["q"] * len(ids), ids, [1] * len(ids))):
        with pytest.raises(InvalidInput, match=f"docid: row {len(ids) - 1} is .*, which has half a character"):
            make()
