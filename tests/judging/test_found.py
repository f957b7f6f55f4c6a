"""Defects that a hostile tester found in `rankeval.judging`: each test fails until its defect is mended."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import rankeval as rk
from rankeval.errors import RankevalError

PAIRS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docid": ["d1", "d2", "d1"]})


def of_two(folder: Path, ann: str) -> Path:
    """Return a folder of two sheets: the given one of ann, and one that bo has filled."""
    rk.judging.write_sheets(PAIRS, folder, judges=["ann", "bo"], overlap=1)
    (folder / "sheet_ann.csv").write_text(ann)
    (folder / "sheet_bo.csv").write_text("qid,docid,relevance\nq1,d1,1\nq1,d2,0\nq2,d1,1\n")
    return folder


@pytest.mark.parametrize(
    "ann",
    [
        "QID,DOCID,RELEVANCE\nq1,d1,1\n",
        "qid,docid,label\nq1,d1,1\n",
        "qid, docid, relevance\nq1,d1,1\n",
        "q1,d1,1\nq1,d2,1\nq2,d1,1\n",
        "",
    ],
    ids=["upper case", "renamed", "spaces", "no header", "truncated"],
)
@pytest.mark.filterwarnings("ignore")
def test_labels_under_another_header_are_refused_and_not_lost(tmp_path, ann):
    """A sheet without the columns qid, docid and relevance is an error with its file, not a judge without labels."""
    with pytest.raises(RankevalError, match="sheet_ann"):
        rk.judging.read_sheets(of_two(tmp_path / "s", ann))


@pytest.mark.filterwarnings("ignore")
def test_a_sheet_that_is_missing_is_named(tmp_path):
    """A sheet that was renamed is an error, as the docstring says, also if its new name does not begin with sheet_."""
    folder = of_two(tmp_path / "s", "qid,docid,relevance\nq1,d1,1\n")
    (folder / "sheet_ann.csv").rename(folder / "ann.csv")
    with pytest.raises(RankevalError, match="sheet_ann"):
        rk.judging.read_sheets(folder)


def test_one_column_twice_in_a_sheet_is_refused(tmp_path):
    """Two columns relevance that differ are an error; the last one does not win in silence."""
    with pytest.raises(RankevalError, match="relevance"):
        rk.judging.read_sheets(
            of_two(tmp_path / "s", "qid,docid,relevance,relevance\nq1,d1,1,0\nq1,d2,1,0\nq2,d1,1,0\n")
        )


@pytest.mark.parametrize("scale", [["a", "b"], [], "01", ["0", "1"], [float("nan"), 1], [0, float("inf")], 3, {0, 1}])
def test_a_scale_that_no_label_fits_is_refused_before_judges_work(tmp_path, scale):
    """A scale that read_sheets cannot read is refused by write_sheets, and no sheet is written."""
    with pytest.raises(RankevalError, match="scale"):
        rk.judging.write_sheets(PAIRS, tmp_path / "s", judges=["ann"], scale=scale)
    assert not list(tmp_path.glob("s/*"))


def test_ids_that_look_alike_are_refused_before_judges_work(tmp_path):
    """The ids 1 and "1" cannot be told apart on a sheet, so such a pool is refused when it is written."""
    with pytest.raises(RankevalError):
        rk.judging.write_sheets(
            pd.DataFrame({"qid": [1, "1"], "docid": ["a", "a"]}, dtype=object), tmp_path / "s", judges=["ann"]
        )


@pytest.mark.parametrize("manifest", ["{", "{}", "[]"])
def test_a_broken_manifest_is_an_error_with_its_file(tmp_path, manifest):
    """A sheets.json that is cut off or was edited is an error of rankeval with the name of the file."""
    (tmp_path / "sheets.json").write_text(manifest)
    with pytest.raises(RankevalError, match=r"sheets\.json"):
        rk.judging.read_sheets(tmp_path)


def test_the_remedy_for_sheets_that_were_cut_off_can_be_followed(tmp_path):
    """A folder of sheets without sheets.json is not said to be readable by read_sheets, which cannot read it."""
    (tmp_path / "sheet_ann.csv").write_text("half")
    with pytest.raises(RankevalError) as caught:
        rk.judging.write_sheets(PAIRS, tmp_path, judges=["ann"])
    assert "read them by read_sheets" not in str(caught.value)
