"""Defects that a hostile tester found in `rankeval.judging`: each test fails until its defect is mended."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import rankeval as rk
from rankeval.errors import InvalidInput, RankevalError

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


@pytest.mark.parametrize("do", ["adds", "order", "qrels"])
@pytest.mark.parametrize("other", [{1: {"d1": 1}}, {"q1": {1: 1}}], ids=["qid", "docid"])
def test_ids_of_another_kind_than_the_pools_are_an_error_of_rankeval(do, other):
    """Ids of another kind than the pool's are an InvalidInput, as `adds` says, and not the ValueError of a merge."""
    pool = rk.judging.pool({"a": {"q1": ["d1", "d2"]}})
    calls = {
        "adds": lambda: pool.adds(other),
        "order": lambda: pool.order(judged=other),
        "qrels": lambda: pool.qrels(other),
    }
    with pytest.raises(RankevalError):
        calls[do]()


def test_many_grades_are_refused_before_they_take_memory():
    """Real-valued scores of a model are no grades: they are to be rounded."""
    one = {f"q{q}": {f"d{d}": (20 * q + d) / 7 for d in range(20)} for q in range(10)}
    with pytest.raises(InvalidInput, match="at most 50"):
        rk.judging.agreement(one, one, level="interval")


def test_documents_that_nobody_judged_are_no_agreement():
    """Two judges who differ on all documents of a sample do not agree by the -1 of those that were left out."""
    part = rk.judging.pool({"a": {q: list("abcdefghij") for q in ("q", "r")}}).sample(0.2)
    one = {q: dict.fromkeys("abcdefghij", int(q == "q")) for q in ("q", "r")}
    two = {q: dict.fromkeys("abcdefghij", int(q == "r")) for q in ("q", "r")}
    assert rk.judging.agreement(part.qrels(one), part.qrels(two))["observed"] == 0


def test_a_label_beats_not_judged_in_a_consensus():
    """-1 is no label, as `Pool.order` says, so one judge's 1 and another one's "not judged" make 1."""
    found = rk.judging.consensus({"ann": {"q": {"d": 1}}, "bo": {"q": {"d": -1}}})
    assert found.qrels.to_frame()["relevance"].tolist() == [1]


@pytest.mark.filterwarnings("ignore")
def test_a_query_whose_judgments_all_go_with_a_group_still_counts():
    """The mean by all judgments is that of `evaluate`, also if a query loses all its judgments with a group."""
    runs = {"one": {"q1": ["d1"], "q2": ["d3"], "q3": ["d1"]}, "two": {"q1": ["d1"], "q2": ["d4"], "q3": ["d1"]}}
    qrels = {"q1": {"d1": 1}, "q2": {"d4": 1}, "q3": {"d1": 1}}
    row = rk.judging.reusability(qrels, runs, depth=1, measure="P@1").table.set_index("system").loc["two"]
    assert row["mean"] == rk.evaluate(qrels, runs["two"], measures=["P@1"]).mean()["P@1"] == 1
    assert row["mean_without"] == pytest.approx(2 / 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("groups", [None, {1: 7, 2: 8}], ids=["runs", "groups"])
def test_numbers_may_name_runs_and_groups(groups):
    """Runs and groups that are named by numbers give a table, as in `pool` and `disagreement`."""
    runs = {1: {"q1": ["d1"], "q2": ["d3"]}, 2: {"q1": ["d2"], "q2": ["d4"]}}
    qrels = {"q1": {"d1": 1, "d9": 1}, "q2": {"d4": 1, "d9": 1}}
    assert len(rk.judging.reusability(qrels, runs, depth=1, measure="P@1", groups=groups).table) == 2


RUNS = {"x": {"q1": ["d1"], "q2": ["d1"]}, "y": {"q1": ["d2"], "q2": ["d1"]}}
JUDGES = {"ann": {"q1": {"d1": 1}, "q2": {"d1": 1}}, "bo": {"q1": {"d1": 1}, "q2": {"d1": 0}}}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_draws", [0, -1, 1.5])
def test_a_number_of_draws_that_is_none_is_named(n_draws):
    """A number of draws that is no whole number from 1 on is refused by its name."""
    with pytest.raises(RankevalError, match="n_draws"):
        rk.judging.disagreement(JUDGES, RUNS, measure="P@1", n_draws=n_draws)


def test_judges_without_a_common_query_are_named():
    """Judges with no query in common are refused as such, and not as empty qrels."""
    judges = {"ann": {"q1": {"d1": 1}}, "bo": {"q2": {"d1": 1}}}
    with pytest.raises(RankevalError, match=r"quer(y|ies) .*all|all .*quer(y|ies)|common"):
        rk.judging.disagreement(judges, RUNS, measure="P@1")
