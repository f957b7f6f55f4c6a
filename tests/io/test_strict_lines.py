"""No row is lost in silence: what hides a row in a line of another one is refused, with file and line."""

from __future__ import annotations

import gzip
import importlib
from pathlib import Path

import pyarrow as pa
import pytest
from tables import each_row

import rankeval as rk
from rankeval.datasets import load_letor
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.trec_eval.output import read_zscores

N_ROWS = 300
RUN = b"".join(b"q%d Q0 d%d %d %d.5 tag\n" % (row // 100, row, row % 100, 1000 - row) for row in range(N_ROWS))
QRELS = b"".join(b"q%d 0 d%d %d\n" % (row // 100, row, row % 3) for row in range(N_ROWS))
LETOR = b"".join(b"%d qid:%d 1:0.5 2:%d #docid = D%d\n" % (row % 3, row // 100, row, row) for row in range(N_ROWS))
CSV = b"qid,docid,score\n" + b"".join(b"q%d,d%d,%d\n" % (row // 100, row, 1000 - row) for row in range(N_ROWS))
JSONL = b"".join(b'{"qid":"q%d","docid":"d%d","score":%d}\n' % (row // 100, row, row) for row in range(N_ROWS))
KINDS = {
    "run": (RUN, rk.Run.read),
    "qrels": (QRELS, rk.Qrels.read),
    "rows.letor": (LETOR, load_letor),
    "run.csv": (CSV, rk.Run.read),
    "run.tsv": (CSV.replace(b",", b"\t"), rk.Run.read),
    "run.jsonl": (JSONL, rk.Run.read),
    "zscores": (b"".join(b"q%d map 0.5 0.1\n" % row for row in range(N_ROWS)), read_zscores),
}


def packed(text: bytes, how: str) -> bytes:
    if how == "plain":
        return text
    return gzip.compress(text) if how == "gzip" else pa.Codec("zstd").compress(text, asbytes=True)


@each_row("how", ["plain", "gzip", "zstd"])
@each_row("name", KINDS)
def test_a_carriage_return_is_the_end_of_a_line_or_an_error(tmp_path: Path, name, how):
    """CRLF is read as LF is; CR alone, everywhere or in one place, is refused with the line."""
    text, read = KINDS[name]
    path = tmp_path / name
    path.write_bytes(packed(text.replace(b"\n", b"\r\n"), how))
    assert len(read(path)) == N_ROWS
    lines = text.splitlines(keepends=True)
    mixed = b"".join([*lines[:53], lines[53].replace(b"\n", b"\r"), *lines[54:]])
    for broken, line in ((text.replace(b"\n", b"\r"), 1), (mixed, 54), (text[:-1] + b"\r", len(lines))):
        path.write_bytes(packed(broken, how))
        with pytest.raises(FileFormatError, match=rf"{name}, line {line}: found a carriage return \(CR\)"):
            read(path)


@each_row("how", ["plain", "gzip"])
@each_row("name", KINDS)
@each_row("instead", [b"", b" ", b"\t"])
def test_a_lost_line_end_is_named(tmp_path: Path, name, instead, how):
    """Two rows in one line are no row with a strange tag, comment or label."""
    text, read = KINDS[name]
    lines = text.splitlines(keepends=True)
    (tmp_path / name).write_bytes(packed(b"".join([*lines[:99], lines[99][:-1] + instead, *lines[100:]]), how))
    with pytest.raises(FileFormatError, match=rf"{name}, line 100"):
        read(tmp_path / name)


@each_row(
    ("tag", "problem"),
    [
        ("t " * 100_000, "a tag has 16 words at most"),
        ("t q2 Q0 d2 2 8.0 t", "is a line end missing"),
        ("tq2 Q0 d2 2 8.0 t", "is a line end missing"),
        ("tq2 0 d2 2 8.0", "is a line end missing"),
        ("t q2 Q0 d2", "is a line end missing"),
    ],
)
def test_columns_beyond_the_format_are_refused(tmp_path: Path, tag, problem):
    (tmp_path / "run").write_text(f"q1 Q0 d1 1 9.0 t\nq1 Q0 d2 2 8.0 {tag}\n")
    with pytest.raises(FileFormatError, match=rf"run, line 2: expected 6 columns .*{problem}"):
        rk.Run.read(tmp_path / "run")


@each_row("tag", ["my own tag", "bm25 k1 = 0.9 b = 0.4", "a 1 2"])
def test_a_tag_may_hold_a_few_words(tmp_path: Path, tag):
    (tmp_path / "run").write_text(f"q1 Q0 d1 1 9.0 {tag}\n")
    assert rk.Run.read(tmp_path / "run").name == tag


def test_a_tag_in_another_encoding_is_named(tmp_path: Path):
    """That of the first row is read; the others are not, and cost no row."""
    (tmp_path / "run").write_bytes("q1 Q0 d1 1 9.0 Größe\nq1 Q0 d2 2 8.0 t\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match="run, line 1: expected UTF-8 text"):
        rk.Run.read(tmp_path / "run")
    for space in (b" ", b"  "):  # the fast and the exact reader
        text = "q1 Q0 d1 1 9.0 t\nq1 Q0 d2 2 8.0 Größe\n".encode("latin-1")
        (tmp_path / "run").write_bytes(text.replace(b" ", space))
        assert len(rk.Run.read(tmp_path / "run")) == 2


def test_a_query_that_begins_like_a_comment_is_no_comment(tmp_path: Path):
    (tmp_path / "qrels").write_text("q1 0 d1 1\n#q2 0 d1 1\n")
    with pytest.raises(FileFormatError, match="line 2: found a row whose query begins with #"):
        rk.Qrels.read(tmp_path / "qrels")
    (tmp_path / "qrels").write_text("q1 0 d1 1\n# q2 0 d1 1\n#about 1\n")
    assert len(rk.Qrels.read(tmp_path / "qrels")) == 1
    (tmp_path / "qrels").write_text("#q1 0 d1 1\nq2 0 #d1 1\n")
    with pytest.raises(FileFormatError, match="line 1: found a row whose query begins with #"):
        rk.Qrels.read(tmp_path / "qrels")
    (tmp_path / "qrels").write_text("q1 0 #d1 1\nq#2 0 d1 1\n")
    assert rk.Qrels.read(tmp_path / "qrels").docid.to_pylist() == ["#d1", "d1"]
    for length in range((1 << 18) - 1, (1 << 18) + 2):  # at the edge of what is read at a time
        (tmp_path / "qrels").write_bytes(b"q 0 " + b"d" * (length - 7) + b" 1\n#q 0 d 1\n")
        with pytest.raises(FileFormatError, match="line 2: found a row whose query begins with #"):
            rk.Qrels.read(tmp_path / "qrels")


def test_files_joined_with_their_marks_are_refused(tmp_path: Path):
    """A byte order mark within would be part of a query's id."""
    for name, (text, read) in KINDS.items():
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text)
        assert len(read(tmp_path / name)) == N_ROWS
        lines = text.splitlines(keepends=True)
        (tmp_path / name).write_bytes(b"".join([*lines[:7], b"\xef\xbb\xbf", *lines[7:]]))
        with pytest.raises(FileFormatError, match="line 8: found a byte order mark"):
            read(tmp_path / name)
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" * 2 + text)
        with pytest.raises(FileFormatError, match="line 1: found a byte order mark"):
            read(tmp_path / name)
    for length in ((1 << 20) - 1, 1 << 20, (1 << 20) + 1):  # at the edges of what is read at a time
        (tmp_path / "qrels").write_bytes(b"#" * (length - 8) + b"\nq 0 d 1\n\xef\xbb\xbfq 0 e 1\n")
        with pytest.raises(FileFormatError, match="line 3: found a byte order mark"):
            rk.Qrels.read(tmp_path / "qrels")


def test_nul_is_refused_in_every_format(tmp_path: Path):
    for name, (text, read) in KINDS.items():
        (tmp_path / name).write_bytes(text.replace(b"q1", b"q\0", 1).replace(b"qid:1", b"qid:\0", 1))
        with pytest.raises(FileFormatError, match=rf"{name}, line \d+: found a NUL byte"):
            read(tmp_path / name)
    (tmp_path / "r.jsonl").write_text('{"qid":"a","docid":"b","score":1}\n{"qid":"a\\u0000","docid":"b","score":1}\n')
    with pytest.raises(FileFormatError, match=r"r.jsonl, line 2, column qid: found 'a\\x00'"):
        rk.Run.read(tmp_path / "r.jsonl")
    run = rk.Run(["a\0"], ["d"], [1.0])
    for name in ("w.csv", "w.tsv", "w.jsonl", "w.parquet", "w.run"):
        with pytest.raises(InvalidInput, match=r"qid 'a\\x00'"):
            run.write(tmp_path / name)
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"qid": ["a", "b\0"], "docid": ["d", "d"], "score": [1.0, 2.0]}), tmp_path / "p.parquet")
    with pytest.raises(FileFormatError, match=r"p.parquet, row 2, column qid: found 'b\\x00'"):
        rk.Run.read(tmp_path / "p.parquet")


def test_stray_quotes_swallow_no_rows(tmp_path: Path):
    (tmp_path / "r.csv").write_text('qid,docid,score\nq1,"d1,9\nq1,d2",8\nq1,d3,7\n')
    with pytest.raises(FileFormatError, match=r"line 2, column docid: .*is there a quote too many"):
        rk.Run.read(tmp_path / "r.csv")


def test_ids_of_a_wide_table_are_text(tmp_path: Path):
    """Also where the header is longer than what formats are told by, or holds line breaks."""
    wide = ",".join(f"column{number}" for number in range(3000))
    for header, cells in ((f"{wide},qid,docid,score", "," * 3000), ('"a\nb",qid,docid,score', ",")):
        (tmp_path / "r.csv").write_text(f"{header}\n{cells}007,08,1\n")
        assert rk.Run.read(tmp_path / "r.csv").qid.to_pylist() == ["007"]


@each_row("row", ["1 qid:1 1.0:5", "1 qid:1 1e0:5", "1 qid:1 +1:5", "1 1.0:5", "1 qidNaN:2 1:5", "1 qid1:2 1:5"])
def test_a_feature_is_a_whole_number(tmp_path: Path, row):
    (tmp_path / "rows").write_text(f"{row}\n")
    (tmp_path / "rows.query").write_text("1\n")
    with pytest.raises(FileFormatError, match="rows, line 1: expected 'index:value'"):
        load_letor(tmp_path / "rows")


def test_queries_keep_their_names(tmp_path: Path):
    """007 and 7, 1.0 and 1 are different queries."""
    for first, second in (("007", "7"), ("1.0", "1"), ("1e0", "1"), ("-0", "0")):
        (tmp_path / "rows").write_text(f"1 qid:{first} 1:1\n1 qid:{second} 1:2\n")
        assert load_letor(tmp_path / "rows").qid.tolist() == [first, second]


def test_half_a_character_is_no_id(tmp_path: Path):
    (tmp_path / "r.jsonl").write_text('{"qid":"a","docid":"b","score":1}\n{"qid":"\\ud800","docid":"b","score":1}\n')
    with pytest.raises(FileFormatError, match=r"r.jsonl, line 2, column qid: expected an id"):
        rk.Run.read(tmp_path / "r.jsonl")


def test_the_last_row_has_all_its_columns(tmp_path: Path):
    """Also where the file breaks off behind a blank, which looks like an empty tag."""
    (tmp_path / "run").write_text("q1 Q0 d1 1 9.0 t\nq1 Q0 d2 2 8.0 ")
    with pytest.raises(FileFormatError, match=r"run, line 2: expected 6 columns .*found 5"):
        rk.Run.read(tmp_path / "run")


def test_a_quote_ends_its_value(tmp_path: Path):
    """What stands behind a closing quote was part of another row."""
    (tmp_path / "r.csv").write_text('qid,docid,score\nq1,"d1","9"\nq1,"d2,"d3",8\n')
    with pytest.raises(FileFormatError, match=r"r.csv, line 3: a quote in the wrong place"):
        rk.Run.read(tmp_path / "r.csv")
    (tmp_path / "r.csv").write_text('qid,docid,score\nq1,"d ""1""",9\nq1,5" disk,8\n')
    assert rk.Run.read(tmp_path / "r.csv").docid.to_pylist() == ['d "1"', '5" disk']


def test_a_header_in_another_encoding_is_named(tmp_path: Path):
    (tmp_path / "r.csv").write_bytes("qid,docid,score,größe\nq1,d1,9,x\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match=r"r.csv, line 1: expected UTF-8 text"):
        rk.Run.read(tmp_path / "r.csv")


def test_ids_of_a_table_are_text(tmp_path: Path):
    """Parquet does not look whether what it calls text is UTF-8."""
    import pyarrow.parquet as pq

    qid = pa.array([b"q1", b"q\xfb"]).view(pa.string())
    pq.write_table(pa.table({"qid": qid, "docid": ["a", "b"], "score": [1.0, 2.0]}), tmp_path / "r.parquet")
    with pytest.raises(FileFormatError, match=r"r.parquet: not a whole Parquet file .*UTF8"):
        rk.Run.read(tmp_path / "r.parquet")


@each_row(("module", "name"), [("bz2", "bzip2"), ("lzma", "xz"), ("zipfile", "zip")])
def test_a_file_packed_by_another_program_is_called_so(tmp_path: Path, module, name):
    """Its bytes would be told as a text with strange ones."""
    packed = tmp_path / "run.packed"
    if module == "zipfile":
        import zipfile

        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("run", RUN)
    else:
        packed.write_bytes(importlib.import_module(module).compress(RUN))
    with pytest.raises(FileFormatError, match=rf"run.packed is a {name} file, which is not read: unpack it"):
        rk.Run.read(packed)
