"""Sheets: who gets which documents, and what is read back from files that people and spreadsheets have changed."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.errors import FileFormatError, InvalidInput, RankevalWarning
from rankeval.judging import pool, read_sheets, write_sheets

POOL = pool({"a": {f"q{query}": [f"d{query}{number}" for number in range(10)] for query in range(6)}})


def pairs(frame):
    return list(zip(frame["qid"], frame["docid"], strict=True))


def sheet(folder, judge="ann"):
    return pd.read_csv(folder / f"sheet_{judge}.csv", dtype=str, keep_default_na=False)


def fill(path, label, **options):
    """Write a label into each row of a sheet, as a function of query and document."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    frame["relevance"] = [label(*pair) for pair in pairs(frame)]
    frame.to_csv(path, index=False, **options)


@each_row("overlap", [0, 0.1, 0.25, 1])
@each_row("judges", [["ann"], ["ann", "bo", "cy"]])
def test_every_judge_gets_the_shared_pairs_and_an_even_part_of_the_rest(tmp_path, judges, overlap):
    """All pairs are on a sheet; each query has its share of the shared ones; few queries are divided."""
    given_out = write_sheets(POOL, tmp_path / "s", judges=judges, overlap=overlap)
    sheets = {judge: pairs(sheet(tmp_path / "s", judge)) for judge in judges}
    assert given_out["documents"].tolist() == [len(rows) for rows in sheets.values()]
    assert {pair for rows in sheets.values() for pair in rows} == set(pairs(POOL.table))
    shared = set.intersection(*map(set, sheets.values()))
    if len(judges) > 1:
        assert len(shared) == given_out["shared"].unique() == round(60 * overlap)
        assert max(given_out["documents"]) - min(given_out["documents"]) <= 1
        counts = [sum(qid == f"q{query}" for qid, _ in shared) for query in range(6)]
        assert max(counts) - min(counts) <= 1
        rest = [{qid for qid, docid in rows if (qid, docid) not in shared} for rows in sheets.values()]
        assert sum(map(len, rest)) <= 6 + len(judges) - 1


def test_a_sheet_does_not_tell_the_rank(tmp_path):
    """Documents of a query stand together, in another order for each judge and seed; a seed gives the same sheets."""
    for name, seed in (("s", 0), ("same", 0), ("other", 1)):
        write_sheets(POOL, tmp_path / name, judges=["ann", "bo"], overlap=1, rng=seed)
    orders = {
        (name, judge): pairs(sheet(tmp_path / name, judge))
        for name in ("s", "same", "other")
        for judge in ("ann", "bo")
    }
    assert orders["s", "ann"] == orders["same", "ann"]
    assert len({tuple(order) for order in orders.values()}) == 4
    for order in orders.values():
        queries = [qid for qid, _ in order]
        assert queries == sorted(queries, key=queries.index)
        assert [pair for pair in order if pair[0] == "q1"] != [pair for pair in pairs(POOL.table) if pair[0] == "q1"]


def test_a_judge_reads_the_texts(tmp_path):
    """In jsonl whole, in CSV as much as a cell of a spreadsheet holds."""
    queries, texts = {"q": "=SUM(A1)"}, {"d": "two\nlines " + "x" * 40_000}
    small = pool({"a": {"q": ["d"]}})
    write_sheets(small, tmp_path / "csv", judges=["ann"], queries=queries, texts=texts)
    write_sheets(small, tmp_path / "jsonl", judges=["ann"], queries=queries, texts=texts, format="jsonl")
    read = sheet(tmp_path / "csv").iloc[0]
    assert read["query"] == "'=SUM(A1)"
    assert read["text"] == texts["d"][:32_000]
    whole = json.loads((tmp_path / "jsonl" / "sheet_ann.jsonl").read_text())
    assert whole == {"qid": "q", "query": "=SUM(A1)", "docid": "d", "text": texts["d"], "relevance": "", "note": ""}


IDS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5)
    | st.builds(
        "{}{}".format,
        st.sampled_from(["=", "+", "-", "@", "\t", "\r", "'", "'=", " "]),
        st.text("ab=',;\"\n", max_size=3),
    ),
    min_size=1,
    max_size=6,
    unique=True,
)


@settings(max_examples=examples(60))
@given(ids=IDS, form=st.sampled_from(["csv", "jsonl"]))
def test_ids_are_read_back_whatever_they_hold(ids, form, tmp_path_factory):
    """Also those that a spreadsheet would run; and no cell of CSV begins as a formula."""
    folder = tmp_path_factory.mktemp("ids") / "s"
    made = pool({"a": dict.fromkeys(ids, ids)})
    write_sheets(made, folder, judges=["ann"], format=form)
    path = folder / f"sheet_ann.{form}"
    if form == "csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for cell in row)
        place = rows[0].index("relevance")
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([rows[0], *([*row[:place], "1", *row[place + 1 :]] for row in rows[1:])])
    else:
        rows = [json.loads(line) | {"relevance": 1} for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sorted(pairs(read_sheets(folder).to_frame())) == sorted((query, docid) for query in ids for docid in ids)


def test_ids_that_are_numbers_stay_numbers(tmp_path):
    made = pool({"a": {1: [10, 11]}})
    write_sheets(made, tmp_path / "s", judges=["ann"], scale=(0, 1, 2))
    fill(tmp_path / "s" / "sheet_ann.csv", lambda *_: "2")
    found = read_sheets(tmp_path / "s").to_frame().sort_values("docid")
    assert found.to_dict("list") == {"qid": [1, 1], "docid": [10, 11], "relevance": [2, 2], "aspect": ["ann", "ann"]}


@each_row(
    "options",
    [
        {"sep": ";", "encoding": "utf-8-sig", "lineterminator": "\r\n"},
        {"sep": "\t", "lineterminator": "\n"},
        {"sep": ",", "quoting": csv.QUOTE_ALL},
        {"sep": ";", "encoding": "cp1252"},
    ],
)
def test_a_sheet_saved_by_a_spreadsheet_reads(tmp_path, options):
    """With a byte order mark, semicolons or tabs, other line ends and quotes, an older encoding."""
    made = pool({"a": {"é": ["ü;1", "d,2"]}})
    write_sheets(made, tmp_path / "s", judges=["ann"], texts={"ü;1": "a;b,c\nd", "d,2": "ß"})
    fill(tmp_path / "s" / "sheet_ann.csv", lambda _, docid: "1.0" if docid == "ü;1" else " 0 ", **options)
    found = read_sheets(tmp_path / "s").to_frame().set_index("docid")["relevance"]
    assert found.to_dict() == {"ü;1": 1, "d,2": 0}


def test_sheets_filled_in_part_are_read_and_the_rest_is_counted(tmp_path):
    """Empty rows are counted, also of a judge who has not begun; empty sheets alone are an error."""
    folder = tmp_path / "s"
    write_sheets(POOL, folder, judges=["ann", "bo"], overlap=0)
    with pytest.raises(InvalidInput, match="no row has a label yet"):
        read_sheets(folder)
    first = pairs(sheet(folder))[:7]
    fill(folder / "sheet_ann.csv", lambda *pair: "1" if pair in first else "")
    with pytest.warns(RankevalWarning, match=r"rows without a label: ann 23 of 30, bo 30 of 30"):
        found = read_sheets(folder)
    assert sorted(pairs(found.to_frame())) == sorted(first)
    fill(folder / "sheet_ann.csv", lambda *_: "1")
    with pytest.warns(RankevalWarning, match=r"rows without a label: bo 30 of 30"):
        read_sheets(folder)


def test_labels_of_several_judges_have_the_judge_as_their_aspect(tmp_path):
    """A label keeps its judge, also if both judge one document."""
    folder = tmp_path / "s"
    write_sheets(POOL, folder, judges=["ann", "bo"], overlap=0.5)
    fill(folder / "sheet_ann.csv", lambda *_: "1")
    fill(folder / "sheet_bo.csv", lambda *_: "0")
    found = read_sheets(folder).to_frame()
    assert found.groupby("aspect")["relevance"].unique().map(list).to_dict() == {"ann": [1], "bo": [0]}
    assert found.duplicated(["qid", "docid"]).sum() == 30
    assert len(POOL.order(judged=found)) == 0


@each_row(
    ("line", "problem"),
    [
        ("q0,d01,1", "line 62: document 'd01' of query 'q0' has a label already"),
        ("q9,d00,1", "line 62: document 'd00' of query 'q9' is not on the sheet of ann"),
        ("q0,d10,1", "line 62: document 'd10' of query 'q0' is not on the sheet of ann"),
        ("q0,d00,3", "line 62: document 'd00' of query 'q0': relevance is '3'; expected one of 0, 1"),
        ("q0,d00,yes", "line 62: document 'd00' of query 'q0': expected a finite number, found 'yes'"),
        (
            'q0,d00,"0,5"',
            "line 62: document 'd00' of query 'q0': expected a finite number, found '0,5'; the decimal sign is a point",
        ),
        ("q0,d00", "line 62: expected 3 columns"),
    ],
)
@each_row("form", ["csv", "jsonl"])
def test_a_wrong_row_is_refused_with_file_and_line(tmp_path, line, problem, form):
    """A pair twice, an unknown query or document, a label outside the scale, no number, a row cut off."""
    folder = tmp_path / "s"
    write_sheets(POOL, folder, judges=["ann"], format=form)
    path = folder / f"sheet_ann.{form}"
    rows = [(qid, docid, "" if docid == "d00" else "1") for qid, docid in pairs(POOL.table)]
    rows.append(tuple(next(csv.reader([line]))))
    names = ["qid", "docid", "relevance"]
    if form == "csv":
        path.write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in [names, *rows]))
    elif len(rows[-1]) == 3:
        path.write_text("\n" + "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows))
    else:
        path.write_text("\n" * 61 + '{"qid": "q0", "docid": "d00", ')
        problem = "line 62: expected one JSON object"
    with pytest.raises(FileFormatError) as refused:
        read_sheets(folder)
    assert str(path) in str(refused.value)
    assert problem in str(refused.value)


def test_sheets_are_never_written_over(tmp_path):
    """Neither filled nor empty ones, in no format, and not by fewer judges."""
    folder = tmp_path / "s"
    write_sheets(POOL, folder, judges=["ann", "bo"])
    fill(folder / "sheet_ann.csv", lambda *_: "1")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for judges, form in ((["ann"], "csv"), (["cy"], "jsonl")):
        with pytest.raises(InvalidInput, match="read them by read_sheets"):
            write_sheets(POOL, folder, judges=judges, format=form)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_sheet_under_another_name_is_not_passed_over(tmp_path):
    """As a second copy, or in a spreadsheet's own format."""
    for name in ("sheet_ann (1).csv", "sheet_ann.xlsx"):
        folder = tmp_path / name
        write_sheets(POOL, folder, judges=["ann"])
        fill(folder / "sheet_ann.csv", lambda *_: "1")
        (folder / name).touch()
        with pytest.raises(InvalidInput, match="save each sheet under its first name"):
            read_sheets(folder)


@each_row(
    "wrong",
    [
        {"judges": []},
        {"judges": "ann"},
        {"judges": ["ann", "Ann"]},
        {"overlap": 1.5},
        {"overlap": -0.1},
        {"texts": {"d00": "one"}},
        {"queries": {}},
        {"format": "xlsx"},
    ],
)
def test_sheets_that_cannot_be_written_leave_nothing(tmp_path, wrong):
    """No judge, one name for two, no share, a missing text, an unknown format."""
    with pytest.raises(InvalidInput):
        write_sheets(POOL, tmp_path / "s", **{"judges": ["ann"]} | wrong)
    assert not (tmp_path / "s").exists()


def test_judges_may_have_any_name(tmp_path):
    """The file has a name that every system takes, and the labels have the judge's own."""
    write_sheets(POOL, tmp_path / "s", judges=["Zoë / night"])
    fill(tmp_path / "s" / "sheet_Zoë _ night.csv", lambda *_: "1")
    assert set(read_sheets(tmp_path / "s").aspect.to_pylist()) == {"Zoë / night"}


def test_a_frame_of_pairs_can_be_judged(tmp_path):
    """Such as the first documents of an order."""
    first = POOL.order("move_to_front").head(12)
    write_sheets(first, tmp_path / "s", judges=["ann"])
    assert sorted(pairs(sheet(tmp_path / "s"))) == sorted(pairs(first))


def test_writing_that_is_interrupted_leaves_nothing_to_read(tmp_path, monkeypatch):
    """The manifest comes last, so half of the sheets are not taken for all of them."""
    written = []

    def fails(path, _):
        if len(written) == 2:
            raise OSError("no space left on device")
        written.append(path)

    monkeypatch.setattr("rankeval.judging.pools.write_atomically", fails)
    with pytest.raises(OSError, match="no space"):
        write_sheets(POOL, tmp_path / "s", judges=["ann", "bo", "cy"])
    with pytest.raises(InvalidInput):
        read_sheets(tmp_path / "s")


PAIRS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docid": ["d1", "d2", "d1"]})


def of_two(folder: Path, ann: str) -> Path:
    """Return a folder of two sheets: the given one of ann, and one that bo has filled."""
    write_sheets(PAIRS, folder, judges=["ann", "bo"], overlap=1)
    (folder / "sheet_ann.csv").write_text(ann)
    (folder / "sheet_bo.csv").write_text("qid,docid,relevance\nq1,d1,1\nq1,d2,0\nq2,d1,1\n")
    return folder


@each_row(
    "ann",
    [
        "qid,docid,label\nq1,d1,1\n",
        "q1,d1,1\nq1,d2,1\nq2,d1,1\n",
        "",
    ],
    ids=["renamed", "no header", "truncated"],
)
@pytest.mark.filterwarnings("ignore")
def test_labels_under_another_header_are_refused_and_not_lost(tmp_path, ann):
    """A sheet without the columns qid, docid and relevance is an error with its file, not a judge without labels."""
    with pytest.raises(InvalidInput, match="sheet_ann"):
        read_sheets(of_two(tmp_path / "s", ann))


@pytest.mark.filterwarnings("ignore")
def test_a_sheet_that_is_missing_is_named(tmp_path):
    """A sheet that was renamed is an error, as the docstring says, also if its new name does not begin with sheet_."""
    folder = of_two(tmp_path / "s", "qid,docid,relevance\nq1,d1,1\n")
    (folder / "sheet_ann.csv").rename(folder / "ann.csv")
    with pytest.raises(InvalidInput, match="sheet_ann"):
        read_sheets(folder)


def test_one_column_twice_in_a_sheet_is_refused(tmp_path):
    """Two columns relevance that differ are an error; the last one does not win in silence."""
    with pytest.raises(InvalidInput, match="relevance"):
        read_sheets(of_two(tmp_path / "s", "qid,docid,relevance,relevance\nq1,d1,1,0\nq1,d2,1,0\nq2,d1,1,0\n"))


@each_row("scale", [["a", "b"], [], "01", ["0", "1"], [float("nan"), 1], [0, float("inf")], 3, {0, 1}])
def test_a_scale_that_no_label_fits_is_refused_before_judges_work(tmp_path, scale):
    """A scale that read_sheets cannot read is refused by write_sheets, and no sheet is written."""
    with pytest.raises(InvalidInput, match="scale"):
        write_sheets(PAIRS, tmp_path / "s", judges=["ann"], scale=scale)
    assert not list(tmp_path.glob("s/*"))


def test_ids_that_look_alike_are_refused_before_judges_work(tmp_path):
    """The ids 1 and "1" cannot be told apart on a sheet, so such a pool is refused when it is written."""
    with pytest.raises(InvalidInput):
        write_sheets(pd.DataFrame({"qid": [1, "1"], "docid": ["a", "a"]}, dtype=object), tmp_path / "s", judges=["ann"])


@each_row("manifest", ["{", "{}", "[]"])
def test_a_broken_manifest_is_an_error_with_its_file(tmp_path, manifest):
    """A sheets.json that is cut off or was edited is an error of rankeval with the name of the file."""
    (tmp_path / "sheets.json").write_text(manifest)
    with pytest.raises(InvalidInput, match=r"sheets\.json"):
        read_sheets(tmp_path)


def test_the_remedy_for_sheets_that_were_cut_off_can_be_followed(tmp_path):
    """A folder of sheets without sheets.json is not said to be readable by read_sheets, which cannot read it."""
    (tmp_path / "sheet_ann.csv").write_text("half")
    with pytest.raises(InvalidInput) as caught:
        write_sheets(PAIRS, tmp_path, judges=["ann"])
    assert "read them by read_sheets" not in str(caught.value)


@each_row("header", ["QID,DOCID,RELEVANCE", "qid, docid, relevance"])
def test_names_of_columns_may_have_capitals_and_spaces(tmp_path, header):
    """A column is found by its name, in capitals or with spaces too."""
    folder = of_two(tmp_path / "s", f"{header}\nq1,d1,1\nq1,d2,0\nq2,d1,0\n")
    assert read_sheets(folder).aspect.to_pylist().count("ann") == 3


@each_row(
    "wrong",
    [
        {"texts": {"d1": None, "d2": "two"}},
        {"texts": {"d1": float("nan"), "d2": "two"}},
        {"judges": {"ann"}},
        {"judges": None},
        {"overlap": "a"},
        {"pool": PAIRS[["qid"]]},
        {"pool": PAIRS.assign(qid=["q1", None, "q2"])},
        {"pool": rk.Qrels.from_dict({"q1": {"d1": 1}})},
    ],
)
def test_what_no_sheet_can_hold_is_refused_before_judges_work(tmp_path, wrong):
    """A missing text or id, a set or no judges, an overlap of text, no column docid, and judgments are refused."""
    with pytest.raises(InvalidInput):
        write_sheets(**{"pool": PAIRS, "folder": tmp_path / "s", "judges": ["ann"]} | wrong)
    assert not (tmp_path / "s").exists()


def test_a_file_is_no_folder_for_sheets(tmp_path):
    """A folder that is a file, or would be in one, is refused."""
    (tmp_path / "s").touch()
    for folder in (tmp_path / "s", tmp_path / "s" / "t"):
        with pytest.raises(InvalidInput, match="name a folder"):
            write_sheets(PAIRS, folder, judges=["ann"])


@pytest.mark.shared
def test_a_pool_of_cranfield_goes_through_sheets_to_its_judgments(shared, tmp_path):
    """The labels that the judges copy from the collection are the collection's labels of the pooled documents."""
    runs = {path.name: rk.Run.read(path) for path in sorted((shared / "cranfield" / "runs").glob("*.gz"))}
    made = pool(runs, depth=5)
    judged = rk.Qrels.read(shared / "cranfield" / "qrels.graded.txt.gz").to_frame()
    truth = dict(zip(pairs(judged), judged["relevance"], strict=True))
    write_sheets(made, tmp_path / "s", judges=["ann", "bo"], scale=range(5))
    for judge in ("ann", "bo"):
        fill(tmp_path / "s" / f"sheet_{judge}.csv", lambda *pair: str(truth.get(pair, 0)))
    found = read_sheets(tmp_path / "s").to_frame().drop_duplicates(["qid", "docid"])
    assert len(found) == len(made.table)
    assert found["relevance"].tolist() == [truth.get(pair, 0) for pair in pairs(found)]
