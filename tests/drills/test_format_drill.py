"""A format of files is one declaration in one file: reading, writing, help, errors and laws follow from it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rankeval as rk
from rankeval.cli import app
from rankeval.errors import FileFormatError, InvalidInput, UnknownName
from rankeval.io import formats
from rankeval.io.columns import Columns
from rankeval.io.formats import FORMATS, Format, add_format

MARK = b"%bars\n"


def read_bars(given):
    """Read ``query|document|number`` behind a first line ``%bars``."""
    rows = [line.split("|") for line in given.file.read().decode().splitlines()[1:]]
    return Columns(*map(list, zip(*rows, strict=True)))


def write_bars(table):
    rows = zip(*(table.column(place).to_pylist() for place in range(3)), strict=True)
    return [MARK, *(f"{qid}|{docid}|{number!r}\n".encode() for qid, docid, number in rows)]


def declare() -> Format:
    return add_format(
        Format(
            "bars",
            "rows with bars",
            read=read_bars,
            write=write_bars,
            suffixes=(".bars",),
            sniff=lambda start: start.startswith(MARK),
            row_lines=lambda data: range(2, data.count(b"\n") + 1),
            # Where str.splitlines ends a line.
            unfit="[|\x00\n\r\v\f\x1c-\x1e\x85\u2028\u2029]",
        )
    )


@pytest.fixture
def declared():
    yield declare()
    del FORMATS["bars"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch):
    """Write judgments and a run in the format, under names that do not say it."""
    monkeypatch.chdir(tmp_path)
    Path("qrels").write_bytes(b"%bars\nq1|a|2\nq1|b|0\n")
    Path("run").write_bytes(b"%bars\nq1|a|1.5\nq1|b|2.5\n")


@pytest.mark.usefixtures("declared", "files")
class TestFiles:
    """It is read and written as the built-in formats are."""

    def test_content_tells_it(self):
        assert rk.Qrels.read("qrels").relevance.tolist() == [2, 0]
        assert rk.evaluate("qrels", "run", measures="RR").mean()["RR"] == 0.5

    def test_suffix_and_name_write_it(self):
        run = rk.Run.from_dict({"q1": {"a": 1.5}})
        run.write("new.bars.gz")
        run.write("new", format="bars")
        assert Path("new").read_bytes() == b"%bars\nq1|a|1.5\n"
        assert rk.Run.read("new.bars.gz").docid.to_pylist() == ["a"]

    def test_the_command_evaluates_it(self):
        shown = CliRunner().invoke(app, ["evaluate", "qrels", "run", "-m", "RR", "-R", "bars", "--format", "csv"])
        assert (shown.exit_code, "0.5" in shown.output) == (0, True)


@pytest.mark.usefixtures("declared")
class TestWords:
    """Help and errors list it."""

    def test_the_help_lists_it(self):
        shown = CliRunner().invoke(app, ["evaluate", "--help"], env={"COLUMNS": "200"})
        assert "bars (rows with bars)" in " ".join(shown.output.replace("│", " ").split())

    def test_near_misses_name_it(self, tmp_path: Path):
        (tmp_path / "qrels").write_bytes(b"q1 0 a 1\n")
        with pytest.raises(UnknownName, match="unknown format 'bar'; did you mean 'bars'"):
            rk.Qrels.read(tmp_path / "qrels", "bar")

    @pytest.mark.parametrize(
        ("row", "said"),
        [(b"q1|c|x", "column relevance: expected a finite number, found 'x'"), (b"|c|1", "column qid: expected an id")],
    )
    def test_a_bad_cell_has_its_line(self, tmp_path: Path, row, said):
        (tmp_path / "qrels").write_bytes(b"%bars\nq1|a|2\n" + row + b"\n")
        with pytest.raises(FileFormatError, match=f"qrels, line 3, {said}"):
            rk.Qrels.read(tmp_path / "qrels")

    def test_an_id_that_it_cannot_hold_is_refused(self, tmp_path: Path):
        with pytest.raises(InvalidInput, match=r"docid 'a\|b' in row 0 .* cannot be in rows with bars"):
            rk.Run(["q"], ["a|b"], [1.0]).write(tmp_path / "run.bars")


@pytest.mark.usefixtures("declared")
def test_it_keeps_the_laws_of_all_formats(tmp_path: Path):
    """The laws run over the registry, so that they find it."""
    path = Path(__file__).parents[1] / "io" / "test_format_laws.py"
    spec = importlib.util.spec_from_file_location("laws_for_the_drill", path)
    laws = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(laws)
    assert "bars" in laws.written_formats()
    laws.test_rows_come_back_or_are_refused(tmp_path, "bars")
    laws.test_a_file_is_told_by_what_it_holds_or_is_called.of_a_row(tmp_path, "bars")
    laws.test_a_document_given_twice_has_its_place.of_a_row(tmp_path, "bars")
    laws.test_an_unknown_format_is_refused_with_near_misses(tmp_path)
    laws.test_every_format_is_listed_in_words()


@pytest.mark.usefixtures("files")
def test_an_installed_package_brings_it(tmp_path: Path, monkeypatch):
    """By an entry point that names the module of the declaration; loaded when a name or a suffix is unknown."""
    package = tmp_path / "site" / "bars-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: bars\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[rankeval.formats]\nbars = bars_format\n")
    source = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport {Path(__file__).stem} as drill\n"
    (tmp_path / "site" / "bars_format.py").write_text(f"{source}drill.declare()\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    formats.load_installed.cache_clear()
    try:
        assert len(rk.Run.read("run", "bars")) == 2
    finally:
        FORMATS.pop("bars", None)
        formats.load_installed.cache_clear()


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("content", [b"%bars\n", b"%bars\nq1|a|1\nq2|b\n", b"%bars\nq1|\xe9|1\n"])
def test_a_reader_that_trips_over_a_file_is_answered_in_one_line(tmp_path: Path, content):
    """The one of this drill expects no short row, no empty file and no other encoding."""
    (tmp_path / "run").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"run is not as rows with bars must be: \w+: [^\n]+$"):
        rk.Run.read(tmp_path / "run")


def test_a_format_of_runs_writes_no_judgments(declared, tmp_path):
    """Else judgments were written that nothing reads."""
    del FORMATS["bars"]
    add_format(replace(declared, values=("score",)))
    judgments = rk.Qrels.from_dict({"q": {"d": 1}})
    judgments.write(tmp_path / "judged.bars")
    assert rk.Qrels.read(tmp_path / "judged.bars").relevance.tolist() == [1]
    with pytest.raises(UnknownName):
        judgments.write(tmp_path / "judged", format="bars")
    rk.Run.from_dict({"q": {"d": 1.0}}).write(tmp_path / "run.bars")
    assert (tmp_path / "run.bars").read_bytes().startswith(MARK)


def test_a_suffix_that_would_never_be_found_is_refused():
    with pytest.raises(InvalidInput, match="suffixes with one dot"):
        add_format(Format("bars", "rows with bars", print, suffixes=(".bars.txt",)))
