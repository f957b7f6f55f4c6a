"""What holds for every format: its files are told, its rows come back, and its bad cells have a place."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.errors import FileFormatError, InvalidInput, UnknownName
from rankeval.io.formats import FORMATS, format_list

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
ROWS = st.lists(st.tuples(IDS, IDS, st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=6)


def all_formats():
    return list(FORMATS)


def written_formats():
    return [name for name in all_formats() if FORMATS[name].write]


def rows_of(run):
    return sorted(zip(run.qid.to_pylist(), run.docid.to_pylist(), run.score.tolist(), strict=True))


@pytest.mark.parametrize("name", written_formats())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_rows_come_back_or_are_refused(tmp_path: Path, name, rows):
    """To the last bit; an id that the format cannot hold is an error before the file is there."""
    run = rk.Run(*map(list, zip(*rows, strict=True)))
    path = tmp_path / "file"
    path.unlink(missing_ok=True)
    try:
        run.write(path, format=name)
    except InvalidInput as error:
        assert "cannot be in" in str(error)  # noqa: PT017 - most rows are written
        assert not path.exists()
    else:
        assert rows_of(rk.Run.read(path, name)) == rows_of(run)


@each_row("name", written_formats())
def test_a_file_is_told_by_what_it_holds_or_is_called(tmp_path: Path, name):
    """Each suffix is written as the format and read again; judgments keep their aspects."""
    qrels = rk.Qrels(["q1", "q1", "q2"], ["a", "b", "a"], [2, 0, 1])
    for suffix in FORMATS[name].suffixes:
        qrels.write(tmp_path / f"file{suffix}.gz")
        read = rk.Qrels.read(tmp_path / f"file{suffix}.gz")
        assert read.source.format == name
        assert pickle.loads(pickle.dumps(read.source)) == read.source
        assert read.to_frame().equals(qrels.to_frame())


@each_row("name", written_formats())
def test_a_document_given_twice_has_its_place(tmp_path: Path, name):
    """The line, if the format has lines, else the row."""
    rk.Run(["q", "q"], ["d", "d"], [2.0, 1.0]).write(tmp_path / "file", format=name)
    with pytest.raises(InvalidInput, match=r"file, lines? \d+ and \d+" if FORMATS[name].row_lines else "rows 1 and 2"):
        rk.evaluate({"q": {"d": 1}}, rk.Run.read(tmp_path / "file", name))


@each_row("name", all_formats())
def test_a_file_of_bytes_at_random_is_refused_by_its_path(tmp_path: Path, name):
    (tmp_path / "file").write_bytes(bytes(range(1, 256)) * 3)
    kind = rk.Qrels if "relevance" in FORMATS[name].values else rk.Run
    with pytest.raises(FileFormatError, match="file"):
        kind.read(tmp_path / "file", name)


def test_an_unknown_format_is_refused_with_near_misses(tmp_path: Path):
    """In reading and in writing, for each side; a format of judgments is none of rankings."""
    run = rk.Run(["q"], ["d"], [1.0])
    run.write(tmp_path / "run")
    for call in (rk.Run.read, rk.Qrels.read, run.write):
        with pytest.raises(UnknownName, match=r"unknown format 'jsnl'; did you mean 'jsonl'"):
            call(tmp_path / "run", "jsnl")
    of_runs = ", ".join(sorted(name for name in all_formats() if "score" in FORMATS[name].values))
    with pytest.raises(UnknownName, match=f"unknown format 'ndeval'; known are: {of_runs}"):
        rk.Run.read(tmp_path / "run", "ndeval")
    with pytest.raises(UnknownName, match="unknown format 'prefs'"):
        run.write(tmp_path / "run", "prefs")


def test_every_format_is_listed_in_words():
    """By name, as help and guides print them."""
    listed = {value: format_list(value) for value in ("relevance", "score")}
    for name in all_formats():
        assert all(f"{name} ({FORMATS[name].words})" in listed[value] for value in FORMATS[name].values)
    assert "ndeval" not in format_list("score")


def test_a_table_without_rows_is_refused_in_one_way(tmp_path: Path):
    """Whatever the format, the message asks for rows."""
    table = pa.table({"qid": pa.array([], pa.string()), "docid": pa.array([], pa.string()), "score": [1.0][:0]})
    for name in ("csv", "jsonl", "parquet"):
        (tmp_path / "file").write_bytes(b"".join(map(bytes, FORMATS[name].write(table))))
        with pytest.raises(FileFormatError, match="is empty: expected rows with qid, docid and score"):
            rk.Run.read(tmp_path / "file", name)
