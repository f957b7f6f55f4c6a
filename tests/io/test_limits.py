"""What would exhaust the machine is refused within five seconds and 500 MB, by the name of the limit that it breaks."""

from __future__ import annotations

import gzip
import os
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import forking
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tables import each_row

import rankeval as rk
from rankeval.datasets import load_letor, load_letor_parts, load_table
from rankeval.errors import FileFormatError, InvalidInput, LimitExceeded, UnknownName
from rankeval.io.opening import Limits

WATCHED = r"""
import re, sys, time
import rankeval as rk
from rankeval.datasets import load_letor
begun = time.perf_counter()
try:
    {read}(sys.argv[1])
except rk.errors.InvalidInput as error:
    print(type(error).__name__, error)
# Not ru_maxrss, which a process takes over from the one that started it.
peak = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
print(time.perf_counter() - begun, peak / 1024)
"""


def refused(read: str, path: object) -> str:
    """Return what was said of a file, once it was said in five seconds and 500 MB."""
    done = forking.run(WATCHED.format(read=read), str(path), timeout=60)
    *said, figures = done.stdout.splitlines()
    seconds, megabytes = map(float, figures.split())
    assert (seconds < 5, megabytes < 500, done.stderr) == (True, True, "")
    return "\n".join(said)


def gzip_bomb(megabytes: int, block: bytes) -> bytes:
    """Return many members of a megabyte each, which a reader takes for one file."""
    return gzip.compress(block * ((1 << 20) // len(block))) * megabytes


BLOCKS = (b"\n", b"q Q0 d 1 1 tag_\n", b"1 qid:1 1:0.25 \n")


@pytest.mark.parametrize(
    ("read", "block"),
    [
        ("rk.Run.read", BLOCKS[1]),
        ("load_letor", BLOCKS[2]),
        *(
            pytest.param(read, block, marks=pytest.mark.rest)
            for read in ("rk.Run.read", "rk.Qrels.read", "load_letor", "rk.Evaluation.load")
            for block in BLOCKS
            if (read, block) not in {("rk.Run.read", BLOCKS[1]), ("load_letor", BLOCKS[2])}
        ),
    ],
)
def test_a_gzip_bomb_is_found_out_early(tmp_path: Path, block, read):
    (tmp_path / "bomb.gz").write_bytes(gzip_bomb(800, block))
    said = refused(read, tmp_path / "bomb.gz")
    assert "LimitExceeded" in said
    assert "bomb.gz: it expands to more than" in said
    assert "raise it: limits=Limits(expansion=...)" in said


@pytest.mark.parametrize("read", ["rk.Run.read", "load_letor"])
def test_a_zstd_bomb_is_found_out_early(tmp_path: Path, read):
    """Far beyond what gzip can do: some kilobytes hold gigabytes."""
    with pa.CompressedOutputStream(str(tmp_path / "bomb.zst"), "zstd") as stream:
        for _ in range(3000):
            stream.write(b"\n" * (1 << 20))
    assert (tmp_path / "bomb.zst").stat().st_size < 1_000_000
    assert "expansion" in refused(read, tmp_path / "bomb.zst")


@pytest.mark.further
def test_a_parquet_file_of_nothing_but_rows_is_refused(tmp_path: Path):
    """A column of one value takes no bytes, however often it is repeated."""
    column = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), 20_000_000), ["q"])
    pq.write_table(pa.table({"qid": column, "docid": column}), tmp_path / "r.parquet", row_group_size=20_000_000)
    with pytest.raises(FileFormatError, match="no column 'score'"):
        rk.Run.read(tmp_path / "r.parquet")
    pq.write_table(pa.table({"qid": column, "docid": column, "score": column}), tmp_path / "r.parquet")
    for read in ("rk.Run.read", "rk.Evaluation.load"):
        assert "20,000,000 rows in" in refused(read, tmp_path / "r.parquet")


@pytest.mark.rest
def test_a_column_of_lists_is_refused(tmp_path: Path):
    """Before it is read: one row may hold gigabytes."""
    lists = pa.array([[0] * 30_000_000], pa.list_(pa.int8()))
    pq.write_table(pa.table({"qid": ["q"], "docid": lists, "score": [1]}), tmp_path / "r.parquet")
    assert "the column 'docid' holds lists" in refused("rk.Run.read", tmp_path / "r.parquet")


def test_a_dictionary_with_a_value_twice_is_read_as_it_stands(tmp_path: Path):
    """Some writers do not look; read as a dictionary, Arrow gives one row the value of another."""
    columns = {"qid": ["q1", "q2", "q3", "q4"], "docid": ["a"] * 4, "score": range(4)}
    pq.write_table(pa.table(columns), tmp_path / "r.parquet", compression="none")
    content = (tmp_path / "r.parquet").read_bytes()
    (tmp_path / "r.parquet").write_bytes(content.replace(b"q1\x02\0\0\0q2", b"q1\x02\0\0\0q1"))
    assert rk.Run.read(tmp_path / "r.parquet").qid.to_pylist() == ["q1", "q1", "q3", "q4"]


def test_a_parquet_file_of_one_long_value_is_refused(tmp_path: Path):
    """100 KB of dictionary stand for 100 GB of text."""
    column = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), 100_000), ["x" * 1_000_000])
    pq.write_table(pa.table({"qid": column, "docid": column, "score": range(100_000)}), tmp_path / "r.parquet")
    for read in ("rk.Run.read", "rk.Evaluation.load"):
        assert "up to 200,000,000,000 bytes of text in" in refused(read, tmp_path / "r.parquet")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
@pytest.mark.parametrize("read", ["rk.Run.read", "rk.Qrels.read", "load_letor", "rk.Evaluation.load"])
def test_a_device_without_end_is_refused(read):
    assert "/dev/zero, line 1: found a NUL byte" in refused(read, "/dev/zero")


def test_a_large_file_of_nothing_is_refused(tmp_path: Path):
    """A sparse file holds ten gigabytes of NUL."""
    with (tmp_path / "run").open("wb") as file:
        file.write(b"q  Q0 d 1 1 t\n")
        file.truncate(10 << 30)
    for read in ("rk.Run.read", "load_letor"):
        assert "run, line 2: found a NUL byte" in refused(read, tmp_path / "run")


@each_row(
    ("row", "limit"),
    [
        ("1 qid:1 2000000000:1", "found feature 2000000000, beyond the limit of 1,048,576; .*feature="),
        ("1 qid:1 99999999999999999999:1", "found feature 99999999999999999999, beyond the limit"),
        (f"1 qid:1 {'9' * 5000}:1", "found feature 9{40}, beyond the limit"),
        (f"1 qid:1 1:1 #{'x' * (1 << 20)}", "the line has more than 1,048,576 bytes, beyond the limit .*line="),
    ],
)
def test_limits_of_rows_are_named_with_the_line(tmp_path: Path, row, limit):
    (tmp_path / "rows").write_text(f"1 qid:1 1:1\n{row}\n")
    with pytest.raises(LimitExceeded, match=f"rows, line 2: {limit}"):
        load_letor(tmp_path / "rows")


def test_limits_can_be_raised(tmp_path: Path):
    """By name, for a file that is known to be sound."""
    (tmp_path / "rows").write_text(f"1 qid:1 2000000:1 #{'x' * (1 << 20)}\n")
    data = load_letor(tmp_path / "rows", limits=Limits(feature=2_000_000, line=1 << 21))
    assert data.X.shape == (1, 2_000_000)
    text = b"".join(b"q%07d Q0 d 1 1 t\n" % number for number in range(1_000_000)) + b"#" * 5_000_000
    (tmp_path / "run.gz").write_bytes(gzip.compress(text.replace(b"#" * 5_000_000, b""), 9))
    with pytest.raises(LimitExceeded, match="expansion"):
        rk.Run.read(tmp_path / "run.gz", limits=Limits(expansion=2))
    assert len(rk.Run.read(tmp_path / "run.gz", limits=Limits(expansion=1000))) == 1_000_000
    for one in ({"line": 0}, {"feature": 2.5}, {"stream": True}):
        with pytest.raises(InvalidInput) as caught:
            Limits(**one)
        assert caught.value.argument == next(iter(one))


@each_row("length", [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 21) + 5])
@each_row("before", [0, 5, (1 << 20) - 20])
def test_a_line_is_measured_wherever_it_stands(tmp_path: Path, length, before):
    """Across the blocks that are read at a time; neither shorter lines nor the file's end count."""
    comment = "#" + "x" * (before - 2) + "\n" if before else ""
    (tmp_path / "qrels").write_text(f"{comment}q 0 d 1\n#{'y' * (length - 1)}\n" + "q 0 e 1\n" * 3)
    if length <= 1 << 20:
        assert len(rk.Qrels.read(tmp_path / "qrels")) == 4
        return
    with pytest.raises(LimitExceeded, match=rf"line {3 if before else 2}: the line has more than"):
        rk.Qrels.read(tmp_path / "qrels")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@each_row("text", [b"q1 Q0 d 1 1 t\n", gzip.compress(b"q1 Q0 d 1 1 t\n")], ids=["plain", "gzip"])
def test_a_pipe_is_read_to_its_end_and_no_further_than_the_limit(tmp_path: Path, text):
    os.mkfifo(tmp_path / "pipe")

    def feed(times: int) -> threading.Thread:
        def write() -> None:
            try:
                with (tmp_path / "pipe").open("wb") as pipe:
                    for _ in range(times):
                        pipe.write(text)
            except BrokenPipeError:
                pass

        thread = threading.Thread(target=write)
        thread.start()
        return thread

    writer = feed(1)
    assert len(rk.Run.read(tmp_path / "pipe")) == 1
    writer.join()
    writer = feed(1 << 17)
    with pytest.raises(LimitExceeded, match="pipe: more bytes come out of it, beyond the limit of 1,000,000"):
        rk.Run.read(tmp_path / "pipe", limits=Limits(stream=1_000_000))
    writer.join()


def test_a_file_that_grows_meanwhile_is_named(tmp_path: Path, monkeypatch):
    """Half a row more at the end of what was read would be a row lost or made up."""
    from rankeval.io import formats

    path = tmp_path / "run"
    path.write_text("q1 Q0 d1 1 9 t\n")
    declared = formats.FORMATS["trec"]

    def slow(*arguments):
        columns = declared.read(*arguments)
        with path.open("a") as file:
            file.write("q1 Q0 d2 2 8 t\n")
        return columns

    monkeypatch.setitem(formats.FORMATS, "trec", replace(declared, read=slow))
    with pytest.raises(FileFormatError, match="run: the file changed while it was read, from 15 to 30 bytes"):
        rk.Run.read(path)


def test_names_of_features_are_within_the_limit(tmp_path: Path):
    (tmp_path / "rows").write_text("1 qid:1 1:1\n")
    (tmp_path / "features.json").write_text('{"99999999999999": "far"}')
    with pytest.raises(LimitExceeded, match=r"features.json: found feature 99999999999999"):
        load_letor(tmp_path / "rows")
    (tmp_path / "features.json").write_text("[" * 100_000)
    with pytest.raises(FileFormatError, match=r"features.json is not JSON"):
        load_letor(tmp_path / "rows")


@each_row("sizes", ["9" * 5000, "18446744073709551617", "1\n" * 2, "1\r1", "²"])
def test_sizes_are_numbers_of_rows(tmp_path: Path, sizes):
    (tmp_path / "rows").write_text("1 1:1\n")
    (tmp_path / "rows.query").write_text(f"{sizes}\n", newline="")
    with pytest.raises(FileFormatError, match=r"rows.query"):
        load_letor(tmp_path / "rows")


TABLE = partial(load_table, qid="q", label="y")
READERS = [rk.Run.read, rk.Qrels.read, load_letor, load_letor_parts, TABLE]


@each_row("read", READERS)
@each_row("path", [None, 3, b"run", ["run"]])
def test_a_path_of_another_type_is_an_invalid_argument(read, path):
    with pytest.raises(InvalidInput) as caught:
        read(path)
    assert (caught.value.argument, caught.value.found) == ("path", repr(path))


@each_row("read", READERS)
@each_row("limits", [None, 3, {"line": 10}])
def test_limits_of_another_type_are_an_invalid_argument(tmp_path: Path, read, limits):
    (tmp_path / "train").write_text("1 qid:1 1:1\n")
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path if read is load_letor_parts else tmp_path / "train", limits=limits)
    assert (caught.value.argument, caught.value.found) == ("limits", repr(limits))


@each_row("call", [rk.Run.read, rk.Qrels.read, rk.Run(["q"], ["d"], [1.0]).write, TABLE])
@each_row("name", [3, ["trec"], {"trec"}])
def test_a_format_of_another_type_is_an_unknown_one(tmp_path: Path, call, name):
    (tmp_path / "run").write_text("q Q0 d 1 1 t\n")
    with pytest.raises(UnknownName, match="format"):
        call(tmp_path / "run", format=name)


def test_a_file_is_written_under_a_path():
    with pytest.raises(InvalidInput) as caught:
        rk.Run(["q"], ["d"], [1.0]).write(3)
    assert caught.value.argument == "path"
