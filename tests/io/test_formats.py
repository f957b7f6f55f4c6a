"""Files: format and compression are read off the content, and a bad line is named with what it holds."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.collection.qrels import Qrels
from rankeval.collection.run import Run
from rankeval.errors import FileFormatError, InvalidInput, UnknownName
from rankeval.io.formats import OpenFile
from rankeval.io.opening import DEFAULT, Limits, text_blocks
from rankeval.io.trec import QRELS, RUN, TrecColumns, _made_regular, _read_lines, _read_regular, read_trec

TREC = b"q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n"
ROWS = [("q1", "d1", 2), ("q1", "d2", 0), ("q2", "d1", 1)]
TABLE = pa.table({"qid": ["q1", "q1", "q2"], "docid": ["d1", "d2", "d1"], "relevance": [2, 0, 1]})


def rows(columns):
    value = columns.value if hasattr(columns, "value") else columns.relevance
    return list(zip(columns.qid.to_pylist(), columns.docid.to_pylist(), list(value), strict=True))


def _fast(text: bytes, blocks: Iterable[bytes], layout: TrecColumns):
    return _read_regular(pa.BufferReader(text), blocks, layout)


def compressed(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


SKIPPED = bytes.fromhex("5f2a4d18 04000000 00010203")  # a frame of four bytes, as pzstd writes
SAME = {
    "plain": ("qrels", TREC),
    "no newline at the end": ("qrels", TREC.rstrip()),
    "tabs": ("qrels.tsv", TREC.replace(b" ", b"\t")),
    "blanks, several and at the ends": ("qrels", TREC.replace(b" ", b"   ").replace(b"\n", b"  \n  ")),
    "blanks and tabs": ("qrels", TREC.replace(b" 0 ", b"\t0 ")),
    "a tab within what blanks separate": ("qrels", TREC.replace(b"q2 0", b"q2\t0")),
    "CRLF": ("qrels", TREC.replace(b"\n", b"\r\n")),
    "byte-order mark": ("qrels", b"\xef\xbb\xbf" + TREC),
    "blank lines": ("qrels", b"\n" + TREC.replace(b"\n", b"\n\n \n")),
    "comments": ("qrels", b"# about\n" + TREC + b"  # q9 0 d9\n"),
    "a comment of four words": ("qrels", b"# is a comment\n#is a comment 1\n" + TREC),
    "labels as floats": ("qrels", TREC.replace(b" 2\n", b" 2.0\n").replace(b" 1\n", b" +1e0\n")),
    "gzip": ("qrels.gz", gzip.compress(TREC)),
    "gzip in two members, without suffix": ("qrels", gzip.compress(TREC[:10]) + gzip.compress(TREC[10:])),
    "zstd": ("qrels.txt.zst", compressed(TREC, "zstd")),
    "zstd behind frames that are skipped": ("qrels.zst", SKIPPED * 2 + compressed(TREC, "zstd") + SKIPPED),
    "csv": ("q.csv", b'qid,docid,relevance\nq1,d1,2\n"q1",d2,0\nq2,d1,1\n'),
    "csv of other names and more columns": ("q.csv", b"note,topic,docno,label\nx,q1,d1,2\n,q1,d2,0\n,q2,d1,1\n"),
    "tsv as BEIR has it": ("test.tsv", b"query-id\tcorpus-id\tscore\r\nq1\td1\t2\r\nq1\td2\t0\r\nq2\td1\t1\r\n"),
    "jsonl": ("q.jsonl", b"\n".join(json.dumps(row).encode() for row in TABLE.to_pylist())),
    "jsonl, zstd": ("q.jsonl.zst", compressed(b"\n".join(json.dumps(r).encode() for r in TABLE.to_pylist()), "zstd")),
    "parquet": ("q.parquet", parquet(TABLE)),
    "parquet with ids as bytes": (
        "q.parquet",
        parquet(TABLE.set_column(0, "qid", TABLE["qid"].cast(pa.binary()))),
    ),
}


@each_row("form", SAME)
def test_the_same_rows_are_read_from_every_form(tmp_path: Path, form):
    """Format, compression, spacing and line ends are no part of the content."""
    name, data = SAME[form]
    (tmp_path / name).write_bytes(data)
    qrels = Qrels.read(tmp_path / name)
    assert rows(qrels) == ROWS
    assert qrels.relevance.dtype.kind == "i"


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\v\f\r "), min_size=1, max_size=4)
spaces = st.text(" \t\v\f", min_size=1, max_size=3)
levels = st.sampled_from(
    ["0", "1", "-1", "+2", "0.5", "1e3", ".5", "3.", "abc", "nan", "inf", "0x10", "2,5", "1_0", ""]
)


@given(
    st.lists(st.lists(st.tuples(st.one_of(words, levels), spaces), min_size=3, max_size=6), max_size=4), st.booleans()
)
def test_the_fast_reader_agrees_with_the_exact_one(lines, run):
    """Whatever the fast reader takes, the exact one reads the same; what that refuses, the other never takes."""
    layout = RUN if run else QRELS
    text = "\n".join("".join(word + space for word, space in line) for line in lines).encode()
    text = text.removeprefix(b"\xef\xbb\xbf")
    fast = _fast(text, [text], layout) or _fast(_made_regular(text), [_made_regular(text)], layout)
    try:
        exact = _read_lines(text, layout, "file")
    except FileFormatError:
        assert fast is None
    else:
        assert fast is None or (rows(fast), fast.name) == (rows(exact), exact.name)


@each_row("word", ['"q', "'q", "NA", "null", "NULL", "nan", "None", "N/A", "true", "1", "007", "a,b", "\\"])
def test_no_id_means_anything(tmp_path: Path, word):
    """Quotes, words for nothing, numbers and leading zeros are ids like any other."""
    (tmp_path / "run").write_text(f"{word} Q0 {word} 1 0.5 {word}\nq Q0 d 1 1 t\n")
    run = Run.read(tmp_path / "run")
    assert (run.qid.to_pylist(), run.docid.to_pylist(), run.name) == ([word, "q"], [word, "d"], word)


def test_a_tag_may_hold_blanks(tmp_path: Path):
    """More than six columns are a tag in several words, if the rank is one."""
    (tmp_path / "run").write_text("q Q0 d 1 0.5 my own tag\n")
    assert Run.read(tmp_path / "run").name == "my own tag"


GOOD_RUN = "q1 Q0 d1 1 2.5 t\n"
BAD = {
    "text as score": ("run", GOOD_RUN + "q1 Q0 d2 2 abc t\n", r"bad, line 2, column score: .*found 'abc'"),
    "a comma": ("run", GOOD_RUN + "q1 Q0 d2 2 2,5 t\n", r"line 2, column score: .*'2,5'; the decimal sign is a point"),
    "NaN": ("run", "q1 Q0 d2 2 NaN t\n", r"line 1, column score: expected a finite number, found 'NaN'"),
    "infinity": ("run", "q1 Q0 d2 2 -inf t\n", r"line 1, column score: .*found '-inf'"),
    "too large": ("run", "q1 Q0 d2 2 1e999 t\n", r"line 1, column score: .*'1e999', which is beyond 64-bit floats"),
    "hexadecimal": ("run", "q1 Q0 d2 2 0x10 t\n", r"found '0x10'"),
    "underscores": ("run", "q1 Q0 d2 2 1_0 t\n", r"found '1_0'"),
    "no tag": ("run", "\n" + GOOD_RUN + "q1 Q0 d1 1 3.0\n", r"line 3: expected 6 columns .*found 5: 'q1 Q0 d1 1 3.0'"),
    "a docid with a blank": ("run", "q1 Q0 my doc 1 3.0 t\n", r"line 1: expected 6 columns .*found 7.*blanks"),
    "a docid that ends in a number": ("run", "q1 Q0 doc 7 1 3.0 t\n", r"line 1: expected 6 columns .*found 7"),
    "NUL": ("run", GOOD_RUN + "q1 Q0 d\0 1 3.0 t\n", r"line 2: found a NUL byte"),
    "Latin-1": ("run", (GOOD_RUN + "q1 Q0 d\xe4 1 3.0 t\n").encode("latin-1"), r"line 2: expected UTF-8 text"),
    "an empty file": ("qrels", "", r"bad is empty: expected lines of 4 columns \(qid iter docid relevance\)"),
    "only comments": ("qrels", "# nothing\n\n", r"is empty"),
    "text as label": ("qrels", "q1 0 d1 abc\n", r"line 1, column relevance: .*found 'abc'"),
    "a hexadecimal label": ("qrels", "q1 0 d1 0x10\n", r"line 1, column relevance: .*found '0x10'"),
    "three columns": ("qrels", "q1 d1 1\n", r"line 1: expected 4 columns .*found 3: 'q1 d1 1'"),
    "a column lost in spacing": ("qrels", "q1 0 d1 1\nq1  d1 1\n", r"line 2: expected 4 columns .*found 3"),
    "five columns": ("qrels", "q1 0 d1 1 extra\n", r"line 1: expected 4 columns .*found 5"),
    "a run for judgments": ("qrels", GOOD_RUN, r"line 1: .*found 6: .*; this looks like a run file"),
    "judgments for a run": ("run", "q1 0 d1 1\n", r"line 1: .*found 4: .*; this looks like a qrels file"),
    "a damaged archive": ("qrels", gzip.compress(TREC)[:-9], r"is damaged: it starts as gzip"),
    "half a Parquet file": ("qrels", parquet(TABLE)[:-20], r"not a whole Parquet file"),
    "a short csv row": (
        "qrels",
        "qid,docid,relevance\nq,d,1\nq,d\n",
        r"line 3: expected 3 columns .*found 2: 'q,d'",
    ),
    "text in csv": ("qrels", "qid,docid,relevance\nq,d,1\nq,e,x\n", r"line 3, column relevance: .*found 'x'"),
    "an empty cell in csv": ("qrels", "qid,docid,relevance\nq,d,\n", r"line 2, column relevance: .*found ''"),
    "an empty id in csv": ("qrels", "qid,docid,relevance\n,d,1\n", r"line 2, column qid: expected an id, found ''"),
    "csv without rows": ("qrels", "qid,docid,relevance\n", r"is empty"),
    "csv without labels": (
        "qrels",
        "qid,docid,other\nq,d,1\n",
        r"line 1: .*no column 'relevance': .*'other'",
    ),
    "csv with a column twice": (
        "run",
        "qid,docid,score,score\nq,d,1,2\n",
        r"line 1: .*has 2 columns 'score'",
    ),
    "Latin-1 in csv": ("run", "qid,docid,score\nq,\xe4,1\n".encode("latin-1"), r"line 2: expected UTF-8 text"),
    "csv with a line break in a value": (
        "run",
        'qid,docid,score\n\nq1,"d\n1",2\nq1,d2,2,5\n',
        r"line 5: expected 3 columns .*found 4: 'q1,d2,2,5'",
    ),
    "text below such a value": (
        "run",
        'qid,docid,score\n\nq1,"d\n1",2\nq1,d2,x\n',
        r"line 5, column score: .*found 'x'",
    ),
    "jsonl that is not": (
        "qrels",
        '{"qid": 1, "docid": 2, "relevance": 1}\n[1]\n',
        r"line 2: expected one JSON object",
    ),
    "Latin-1 in jsonl": ("qrels", '{"qid": "\xe4"}'.encode("latin-1"), r"line 1: expected one JSON object"),
    "broken jsonl": ("qrels", '{"qid": 1\n', r"line 1: expected one JSON object"),
    "jsonl of mixed ids": (
        "qrels",
        '{"qid": 1, "docid": "2", "relevance": 1}\n{"qid": "a", "docid": "2", "relevance": 1}\n',
        r"line 2, column qid: expected an id, found 'a'; .* of one type",
    ),
    "jsonl without a label": (
        "qrels",
        '{"qid": 1, "docid": "2", "relevance": 1}\n{"qid": 1, "docid": "3"}\n',
        r"line 2, column relevance: expected a finite number, found None",
    ),
    "text as score in jsonl": (
        "run",
        '{"qid":"q","docid":"a","score":1}\n\n{"qid":"q","docid":"b","score":"x"}\n',
        r"line 3, column score: expected a finite number, found 'x'",
    ),
    "NaN in jsonl": ("run", '{"qid":"q","docid":"a","score":NaN}\n', r"line 1, column score: .*found nan"),
    "infinity in jsonl": ("run", '{"qid":"q","docid":"a","score":1e999}\n', r"line 1, column score: .*found inf"),
    "null in jsonl": ("run", '{"qid":null,"docid":"a","score":1}\n', r"line 1, column qid: expected an id, found None"),
    "a list in jsonl": (
        "run",
        '{"qid":"q","docid":["a"],"score":1}\n',
        r"line 1, column docid: expected an id, found \['a'\]",
    ),
    "a fraction as id": ("run", '{"qid":1.5,"docid":"a","score":1}\n', r"line 1, column qid: .*, found 1.5"),
    "a key twice in jsonl": (
        "run",
        '{"qid":"q","docid":"a","score":1}\n{"qid":"q","docid":"b","score":2,"score":3}\n',
        r"line 2: the key 'score' occurs twice",
    ),
    "a huge id": (
        "run",
        f'{{"qid":{2**64},"docid":"a","score":1}}\n',
        r"line 1, column qid: .*found 18446744073709551616",
    ),
    "jsonl without a score": ("run", '{"qid":"q","docid":"a"}\n', r"no column 'score': .*--column score="),
    "NaN in Parquet": (
        "run",
        parquet(pa.table({"qid": ["q", "q"], "docid": ["a", "b"], "score": [1.0, float("nan")]})),
        r"row 2, column score: .*found nan",
    ),
    "bytes that are no text as ids of Parquet": (
        "run",
        parquet(pa.table({"qid": pa.array([b"q", b"q\xff"]), "docid": ["a", "b"], "score": [1.0, 2.0]})),
        r"row 2, column qid: expected an id, found b'q\\xff'",
    ),
    "a text that is none in Parquet": (
        "qrels",
        parquet(pa.table({"qid": pa.array([b"q\xff"]).view(pa.string()), "docid": pa.array([b"a"]), "relevance": [1]})),
        r"not a whole Parquet file \(.*Invalid UTF8",
    ),
}


@each_row("case", BAD)
def test_a_bad_file_is_refused_with_what_was_found(tmp_path: Path, case):
    """File, line and column stand in the message, and nothing is read."""
    kind, text, message = BAD[case]
    path = tmp_path / "bad"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileFormatError, match=message) as caught:
        (Run if kind == "run" else Qrels).read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    """A missing file and a folder are errors of one line."""
    with pytest.raises(InvalidInput, match=r"there is no file 'nowhere' in '.*'$"):
        Run.read("nowhere")
    with pytest.raises(InvalidInput, match="is a folder: name a file"):
        Run.read(tmp_path)


def test_a_file_that_cannot_be_opened_is_named():
    """The system's reason is given."""
    with pytest.raises(InvalidInput, match=r"cannot read 'xxx.*: File name too long"):
        Run.read("x" * 300)


def test_a_format_can_be_asked_for(tmp_path: Path):
    """What is said by name goes before what the content looks like."""
    path = tmp_path / "qrels.csv"
    path.write_bytes(TREC)
    assert rows(Qrels.read(path, "trec")) == ROWS
    with pytest.raises(UnknownName, match=r"unknown format 'trek'; did you mean 'trec'\?"):
        Qrels.read(path, format="trek")


def test_integer_ids_of_jsonl_and_parquet_stay_integers(tmp_path: Path):
    """A typed format says what its ids are."""
    (tmp_path / "run.jsonl").write_text(
        '{"query_id": 1, "docno": "d", "score": 1}\n{"query_id": 2, "docno": "d", "score": 0.5}'
    )
    run = Run.read(tmp_path / "run.jsonl")
    assert (run.qid.type, run.docid.type, run.score.tolist()) == (pa.int64(), pa.string(), [1.0, 0.5])


# Which of the hand-made odd inputs are errors with us, and what is said; the others are read.
ODD = {
    ("empty_qrels", "qrels"): "is empty",
    ("empty_run", "run"): "is empty",
    ("inf_score", "run"): "line 1, column score",
    ("nan_score", "run"): "line 2, column score",
    ("score_not_number", "run"): "line 1, column score",
    ("qrels_label_text", "qrels"): "line 1, column relevance",
    ("qrels_3_fields", "qrels"): "line 1: expected 4 columns",
    ("qrels_5_fields", "qrels"): "line 1: expected 4 columns",
    ("missing_qrels_file", "qrels"): "there is no file",
    ("missing_run_file", "run"): "there is no file",
}


@pytest.mark.shared
def test_the_odd_inputs_are_read_or_refused(shared: Path):
    """Of the 53 odd pairs those named are errors; every other file gives a row for each line with content."""
    for case in sorted((shared / "edge_inputs").iterdir()):
        for kind, read in (("qrels", Qrels.read), ("run", Run.read)):
            path = case / kind
            if message := ODD.get((case.name, kind)):
                with pytest.raises(InvalidInput, match=message):
                    read(path)
            else:
                lines = [line for line in path.read_bytes().splitlines() if line.strip() and line[:1] != b"#"]
                assert len(read(path)) == len(lines), path


def test_a_regular_million_lines_take_the_fast_way():
    """The regular forms are read without going line by line, else reading would take ten times as long."""
    for text in (TREC, TREC.replace(b" ", b"\t"), TREC.rstrip()):
        assert _fast(text, [text], QRELS) is not None
    for text in (TREC.replace(b"\n", b"\r\n"), TREC.replace(b" ", b"  ")):
        assert _fast(_made_regular(text), [_made_regular(text)], QRELS) is not None


def test_a_long_file_is_checked_to_its_end():
    """A double blank behind the first megabyte is seen."""
    line = b"q1 0 d1 2\n"
    text = line * 200_000
    blocks = partial(text_blocks, where="qrels", limits=DEFAULT)
    assert _fast(text, blocks(pa.BufferReader(text)), QRELS) is not None
    text += b"q1  d1 2\n"
    assert _fast(text, blocks(pa.BufferReader(text)), QRELS) is None
    with pytest.raises(FileFormatError, match="line 200001: expected 4 columns"):
        read_trec(QRELS, OpenFile(pa.BufferReader(text + b"q1  d1 2\n"), "relevance", "file", Limits()))


def test_a_table_needs_a_header(tmp_path: Path):
    """A file of one line without one is not empty."""
    path = tmp_path / "run.csv"
    path.write_text("q1,d1,1\n")
    with pytest.raises(
        FileFormatError, match=r"line 1: expected columns called qid, .*columns are \['q1', 'd1', '1'\]"
    ):
        Run.read(path)
    path.write_text("")
    with pytest.raises(FileFormatError, match=r"run.csv is empty: expected rows with qid, docid and score"):
        Run.read(path)


TWICE = {
    "run": (b"# about\n\nq1 Q0 d1 1 2 t\nq2 Q0 d1 1 1 t\nq1 Q0 d1 3 1 t\n", "lines 3 and 5"),
    "run.gz": (gzip.compress(b"q1 Q0 d1 1 2 t\nq1 Q0 d1 3 1 t\n"), "lines 1 and 2"),
    "run.csv": (b'qid,docid,score\nq1,"d\n2",3\nq1,d1,1\nq1,d1,2\n', "lines 4 and 5"),
    "run.jsonl": (b'{"qid":"q1","docid":"d1","score":1}\n\n{"qid":"q1","docid":"d1","score":2}\n', "lines 1 and 3"),
    "run.parquet": (
        parquet(pa.table({"qid": ["q1", "q1"], "docid": ["d1", "d1"], "score": [1.0, 2.0]})),
        "rows 1 and 2",
    ),
}


@each_row("name", TWICE)
def test_a_document_given_twice_is_named_with_its_lines(tmp_path: Path, name):
    """File and lines are found by going through the file again."""
    content, place = TWICE[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=f"run: document 'd1' occurs twice in query 'q1' .*{name}, {place}"):
        rk.evaluate({"q1": {"d1": 1, "d2": 0}}, path)
    (tmp_path / "qrels").write_bytes(b"q1 0 d1 1\nq1 0 d1 2\n")
    with pytest.raises(InvalidInput, match=r"qrels: document 'd1' occurs twice .*qrels, lines 1 and 2;"):
        rk.evaluate(tmp_path / "qrels", {"q1": {"d1": 1.0}})
    (tmp_path / "qrels").write_bytes(b"q1 a d1 1\nq1 b d1 2\nq1 a d1 1\n")
    with pytest.raises(InvalidInput, match=r"occurs twice for aspect 'a' .*qrels, lines 1 and 3;"):
        rk.evaluate(Qrels.read(tmp_path / "qrels", format="ndeval"), {"q1": {"d1": 1.0}})
