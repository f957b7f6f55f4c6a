"""Files as people have them: each is read at the first attempt, or the error names a remedy that works.

The files of ``field/`` are small ones in the shape of those of other tools. The expected values are computed here from
their lines, by pandas or by hand, without rankeval.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import FileFormatError, InvalidInput, UnknownName
from rankeval.io.frames import JUDGES
from rankeval.io.words import words_remedy
from rankeval.judging import agreement

FIELD = Path(__file__).parent / "field"
WANDS = {"Exact": 2, "Partial": 1, "Irrelevant": 0}
ESCI = {"E": 3, "S": 2, "C": 1, "I": 0}


def cells(name: str, delimiter: str | None) -> list[dict[str, str]]:
    """Return the rows of a table as Python's own reader has them."""
    with (FIELD / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter or ","))


def rows(made: rk.Qrels | rk.Run) -> list[tuple[str, str, float]]:
    frame = made.to_frame().iloc[:, :3]
    return [tuple(row) for row in frame.itertuples(index=False)]


# File: its delimiter, the columns of query, document and number, and the grades of words
TABLES = {
    "agreement.csv": (",", ("qid", "docid", "relevance"), None),
    "beir_qrels.tsv": ("\t", ("query-id", "corpus-id", "score"), None),
    "esci_examples.csv": (",", ("query_id", "product_id", "esci_label"), ESCI),
    "lenskit_truth.csv": (",", ("user", "item", "rating"), None),
    "quepid_detailed.csv": (",", ("Query Text", "Doc ID", "Rating"), None),
    "recbole.inter": ("\t", ("user_id:token", "item_id:token", "rating:float"), None),
    "trec_crowd_rf10.txt": ("\t", ("topicID", "docID", "label"), None),
    "wands_label.csv": ("\t", ("query_id", "product_id", "label"), WANDS),
}


@each_row("name", TABLES)
def test_tables_of_other_tools_are_read(name):
    """By their usual names, whatever the case, the blanks and the delimiter; rows without a rating judge nothing."""
    delimiter, columns, grades = TABLES[name]
    expected = [tuple(row[column] for column in columns) for row in cells(name, delimiter)]
    number = grades.__getitem__ if grades else float
    expected = [(query, document, number(grade)) for query, document, grade in expected if grade]
    assert rows(rk.Qrels.read(FIELD / name, grades=grades)) == expected


def test_words_are_never_guessed_and_the_error_writes_the_line():
    for name, grades in (("wands_label.csv", WANDS), ("esci_examples.csv", ESCI), ("ntcir_trec_style.txt", None)):
        with pytest.raises(FileFormatError) as refused:
            rk.Qrels.read(FIELD / name)
        line = re.search(r"grades=(\{.*?\})", refused.value.remedy)[1]
        written = eval(line)  # noqa: S307 - our own words, which a user would paste
        assert grades is None or written == {word: grades[word] for word in written}
        assert len(rk.Qrels.read(FIELD / name, grades=written)) > 0
        options = re.search(r"\((--grade .*)\)", refused.value.remedy)[1].split(" --grade ")
        assert len(options) == len(written)


def test_words_of_no_known_scale_are_left_to_the_caller():
    with pytest.raises(InvalidInput) as refused:
        rk.Qrels.from_dict({"q": {"a": "hot", "b": "cold"}})
    assert 'grades={"cold": ..., "hot": ...}' in refused.value.remedy
    assert rk.Qrels.from_dict({"q": {"a": "hot", "b": "cold"}}, grades={"hot": 1, "cold": 0}).relevance.tolist() == [
        1,
        0,
    ]


def test_words_that_the_grades_lack_are_refused_all_at_once():
    with pytest.raises(InvalidInput) as refused:
        rk.Qrels.read(FIELD / "esci_examples.csv", grades={"E": 3, "I": 0})
    assert (refused.value.argument, refused.value.found) == ("grades", "'S', 'C'")
    frame = pd.DataFrame({"qid": [1, 1, 1], "docid": [1, 2, 3], "label": ["yes", "3", "no"]})
    assert rk.Qrels.from_frame(frame, grades={"yes": 1, "no": 0}).relevance.tolist() == [1, 3, 0]
    with pytest.raises(InvalidInput, match="have no '3'"):
        rk.Qrels.from_frame(frame, grades={"yes": 1, "no": 0, "1": 2})
    for wrong in ({}, {"E": "x"}, {"E": float("nan")}, 3):
        with pytest.raises(InvalidInput):
            rk.Qrels.from_frame(frame, grades=wrong)
    with pytest.raises(InvalidInput, match="a ranking has scores"):
        rk.Run.read(FIELD / "run_q.txt", grades={"E": 1})


def test_grades_mean_the_same_everywhere(tmp_path: Path):
    """In files, frames, records, dicts, rows with labels and evaluate."""
    qid, docid, words = ["q", "q", "q"], ["a", "b", "c"], ["Partial", "Exact", "Irrelevant"]
    frame = pd.DataFrame({"qid": qid, "docid": docid, "label": words, "x": [1.0, 2.0, 3.0]})
    plain = {"q": dict(zip(docid, [1, 2, 0], strict=True))}
    run = {"q": ["a", "b", "c"]}
    expected = rk.evaluate(plain, run).mean()
    forms = [frame, frame.to_dict("records"), {"q": dict(zip(docid, words, strict=True))}]
    for suffix in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"judged.{suffix}"
        forms.append(path)
        {"csv": lambda p: frame.to_csv(p, index=False), "parquet": frame.to_parquet,
         "jsonl": lambda p: frame.to_json(p, orient="records", lines=True)}[suffix](path)  # fmt: skip
    for form in forms:
        pd.testing.assert_series_equal(rk.evaluate(form, run, grades=WANDS).mean(), expected)
        with pytest.raises(InvalidInput, match=re.escape('grades={"Exact": 2, "Partial": 1')):
            rk.evaluate(form, run)
    by_row = rk.evaluate(words, [3, 2, 1], qid=qid, grades=WANDS, judgments="rows").mean()
    pd.testing.assert_series_equal(by_row, expected)
    data = rk.datasets.load_table(tmp_path / "judged.csv", qid="qid", label="label", features=["x"], grades=WANDS)
    assert data.y.tolist() == rk.RankingData(np.zeros((3, 1)), words, qid, grades=WANDS).y.tolist() == [1, 2, 0]
    with pytest.raises(FileFormatError) as refused:
        rk.datasets.load_table(tmp_path / "judged.csv", qid="qid", label="label", features=["x"])
    assert "grades=" in refused.value.remedy


def test_the_basic_export_of_quepid_is_read():
    """A query without a rating is a row that judges nothing; a text has its first letter back. Both are counted."""
    qrels = rk.Qrels.read(FIELD / "quepid_basic.csv")
    expected = [
        (row["query"].lstrip(), row["docid"], float(row["rating"]))
        for row in cells("quepid_basic.csv", ",")
        if row["docid"]
    ]
    assert rows(qrels) == expected
    assert "-minus" in qrels.qid.to_pylist()
    assert len(qrels.notes) == 2
    run = {query: ["11", "152"] for query in dict.fromkeys(qrels.qid.to_pylist())}
    notes = rk.evaluate(qrels, run, measures="RR").notes
    assert all(any(note in line for line in notes) for note in qrels.notes)


def test_an_error_after_rows_without_a_grade_names_the_line_of_the_file(tmp_path: Path):
    text = "query,docid,rating\na,1,3\nb,,\nc,2,bad!\n"
    (tmp_path / "export.csv").write_text(text)
    with pytest.raises(FileFormatError) as refused:
        rk.Qrels.read(tmp_path / "export.csv")
    assert "line 4, column relevance" in refused.value.where
    (tmp_path / "own.csv").write_text(text.replace("rating", "relevance").replace("bad!", ""))
    with pytest.raises(FileFormatError, match="line 4, column relevance"):
        rk.Qrels.read(tmp_path / "own.csv")


def test_judges_are_compared_by_rows_or_by_columns(tmp_path: Path):
    """A column of judges under its usual names, a column for each judge, and TREC text give the same."""
    by_rows = cells("agreement.csv", ",")
    known = {judge: {} for judge in ("a", "b")}
    for row in by_rows:
        known[row["judge"]].setdefault(row["qid"], {})[row["docid"]] = int(row["relevance"])
    expected = rk.judging.agreement(known).table
    pd.testing.assert_frame_equal(rk.judging.agreement(FIELD / "agreement.csv").table, expected)
    frame = pd.DataFrame(by_rows).astype({"relevance": int})
    for name in ("workerID", "Assessor", "annotator_id", "rater"):
        renamed = frame.rename(columns={"judge": name})
        pd.testing.assert_frame_equal(rk.judging.agreement(renamed).table, expected)
    wide = frame.pivot_table("relevance", ["qid", "docid"], "judge").astype("Int64").reset_index()
    wide.rename(columns={"qid": "query"}).to_csv(tmp_path / "book.csv", index=False)
    pd.testing.assert_frame_equal(rk.judging.agreement(tmp_path / "book.csv").table, expected)
    book = rk.judging.agreement(FIELD / "quepid_book_judgements.csv")
    assert book.table.set_index("coefficient")["n_items"]["observed"] == 2
    assert rk.Qrels.read(FIELD / "agreement.csv").aspect is None  # a judge is no subtopic


def test_a_table_of_systems_is_a_run_of_each():
    table = pd.read_csv(FIELD / "lenskit_recs.csv", dtype={"user": str, "item": str})
    runs = rk.Run.by_system(FIELD / "lenskit_recs.csv")
    for system, part in table.groupby("Algorithm", sort=False):
        assert rows(runs[system]) == list(part[["user", "item", "score"]].itertuples(index=False, name=None))
        assert runs[system].name == system
    for other in (rk.Run.by_system(table, system="Algorithm"), rk.Run.by_system(table)):
        assert {name: rows(run) for name, run in other.items()} == {name: rows(run) for name, run in runs.items()}
    for read in (lambda: rk.Run.read(FIELD / "lenskit_recs.csv"), lambda: rk.Run.from_any(table)):
        with pytest.raises(InvalidInput) as refused:
            read()
        assert refused.value.found == "'UU-B', 'II-B'"
    apart = table.rename(columns={"Algorithm": "made by"})
    with pytest.raises(InvalidInput, match=r"system='made by'"):
        rk.evaluate(FIELD / "lenskit_truth.csv", apart)
    assert len(rk.Run.by_system(apart, system="made by")) == 2


RUNS = {
    "msmarco_run.tsv": lambda cells: (cells[0], cells[1], -float(cells[2])),
    "run_no_tag.txt": lambda cells: (cells[0], cells[2], float(cells[4])),
    "run_q.txt": lambda cells: (cells[0], cells[2], float(cells[4])),
}


@each_row("name", RUNS)
def test_runs_of_fewer_columns_are_read_and_noted(name):
    expected = [RUNS[name](line.split()) for line in (FIELD / name).read_text().splitlines()]
    run = rk.Run.read(FIELD / name)
    assert rows(run) == expected
    assert bool(run.notes) == (name != "run_q.txt")


@each_row(
    ("third", "read"),
    [
        ("1 2 3", "rank"), ("0 1 2", "rank"), ("9.5 7 .5", "score"), ("3 2 1", "score"), ("5 9 7", "score"),
        ("1 2 4", None), ("1 1 1", None), ("2 1 3", None), (".1 .4 .9", None),
    ],
)  # fmt: skip
def test_a_third_column_is_a_rank_or_a_score_by_its_numbers(tmp_path: Path, third, read):
    """Or it is refused, and both ways out work."""
    lines = [f"q{query} d{place} {number}" for query in range(3) for place, number in enumerate(third.split())]
    path = tmp_path / "run"
    path.write_text("\n".join(lines) + "\n")
    if read is not None:
        sign = -1 if read == "rank" else 1
        run = rk.Run.read(path)
        assert run.score.tolist() == [sign * float(number) for number in third.split()] * 3
        assert read in run.notes[0]
        return
    with pytest.raises(FileFormatError) as refused:
        rk.Run.read(path)
    for program, sign in zip(re.findall(r"awk '(.*?)'", refused.value.remedy), (1, -1), strict=True):
        mended(program, path, tmp_path / "mended")
        assert rk.Run.read(tmp_path / "mended").score.tolist() == [sign * float(number) for number in third.split()] * 3


def mended(program: str, path: Path, to: Path) -> None:
    """Write what awk makes of a file."""
    done = subprocess.run([shutil.which("awk"), program, path], check=True, capture_output=True)
    to.write_bytes(done.stdout)


def test_other_files_of_the_field_are_refused_and_the_remedy_works(tmp_path: Path):
    with pytest.raises(FileFormatError) as prels:
        rk.Qrels.read(FIELD / "prels_mq.txt")
    mended(re.search(r"awk '(.*)'", prels.value.remedy)[1], FIELD / "prels_mq.txt", tmp_path / "qrels")
    assert rows(rk.Qrels.read(tmp_path / "qrels")) == [("10", "GX253-98-16418961", 0), ("10", "GX000-00-0000001", 1)]
    with pytest.raises(FileFormatError) as four:
        rk.Run.read(FIELD / "run_4col_score.txt")
    mended(re.search(r"awk '(.*)'", four.value.remedy)[1], FIELD / "run_4col_score.txt", tmp_path / "run")
    assert rk.Run.read(tmp_path / "run").score.tolist() == [9.5, 8.5, 7.5]
    with pytest.raises(FileFormatError) as blank:
        rk.Qrels.read(FIELD / "ids_blank.tsv")
    command = blank.value.remedy.partition(": ")[2].rpartition(">")[0]
    subprocess.run(["/bin/sh", "-c", f"{command} > {tmp_path}/blank.tsv"], check=True)
    assert rk.Qrels.read(tmp_path / "blank.tsv").docid.to_pylist() == ["John F. Kennedy", "Jfk"]
    for name, remedy in (("run_cut_off.txt", "cut off"), ("yandex_relpred.txt", "ClickLog")):
        with pytest.raises(FileFormatError) as refused:
            rk.Run.read(FIELD / name)
        assert remedy in refused.value.remedy
    for kind in (rk.Qrels, rk.Run):
        with pytest.raises(FileFormatError) as clicks:
            kind.read(FIELD / "clicks.csv")
        assert clicks.value.expected in ("relevance", "score")
    assert rk.Qrels.read(FIELD / "ndeval_qrels.txt", "ndeval").aspect.to_pylist() == ["1", "1", "2", "2"]
    assert rows(rk.Qrels.read(FIELD / "msmarco_qrels.tsv"))[0] == ("1048585", "17485853", 1)
    assert rows(rk.Qrels.read(FIELD / "hf_qrels.jsonl"))[0] == ("1", "31715818", 1)


def test_the_passages_of_dynamic_domain_become_documents(tmp_path: Path):
    path = tmp_path / "dd"
    path.write_text("DD1 DD1.1 a p1 0\nDD1 DD1.1 a p2 3\nDD1 DD1.2 a p3 0\n")
    with pytest.raises(FileFormatError) as refused:
        rk.Qrels.read(path)
    mended(re.search(r"awk '(.*)'", refused.value.remedy)[1], path, tmp_path / "qrels")
    frame = rk.Qrels.read(tmp_path / "qrels", "ndeval").to_frame().sort_values("aspect")
    assert frame["relevance"].tolist() == [3, 0]


@each_row("delimiter", [",", ";", "\t", "|"])
@each_row("suffix", [".csv", ".tsv", ".txt"])
def test_the_header_has_the_delimiter(tmp_path: Path, delimiter, suffix):
    (tmp_path / f"qrels{suffix}").write_text(f"QID{delimiter} Doc ID{delimiter}Rating\nq{delimiter}d 1{delimiter}2\n")
    qrels = rk.Qrels.read(tmp_path / f"qrels{suffix}")
    assert rows(qrels) == [("q", "d 1", 2)]
    usual = {".csv": ",", ".tsv": "\t", ".txt": ",\t"}[suffix]
    assert bool(qrels.notes) == (delimiter not in usual)


def test_decimal_commas_are_read_if_every_number_has_one(tmp_path: Path):
    path = tmp_path / "run.csv"
    path.write_text("qid;docid;score\nq;a;1,5\nq;b;0,25\n")
    run = rk.Run.read(path)
    assert run.score.tolist() == pd.read_csv(path, sep=";", decimal=",")["score"].tolist()
    assert len(run.notes) == 2
    path.write_text("qid;docid;score\nq;a;1,5\nq;b;2\n")
    with pytest.raises(FileFormatError) as refused:
        rk.Run.read(path)
    call = re.search(r"pandas\.read_csv\(\.\.\., (.*)\)", refused.value.remedy)[1]
    settings = eval(f"dict({call})")  # noqa: S307 - our own words
    assert rk.Run.from_frame(pd.read_csv(path, **settings)).score.tolist() == [1.5, 2.0]


def test_a_header_split_by_blanks_is_named_and_the_command_mends_it(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for header, columns in (
        ("query_id doc_id relevance", None),
        ("topic document gain", {"docid": "document", "relevance": "gain"}),
    ):
        Path("qrels.txt").write_text(f"{header}\nq1 d1 2\nq1 d2 0\n")
        with pytest.raises(FileFormatError, match="line 1 looks like a header") as refused:
            rk.Qrels.read("qrels.txt")
        command = re.search(r"tr .*? > \S+\.tsv", refused.value.remedy)[0]
        subprocess.run(command, shell=True, check=True)  # noqa: S602 - our own words
        assert rk.Qrels.read("qrels.tsv", columns=columns).relevance.tolist() == [2, 0]


def test_the_command_for_a_header_never_writes_over_the_file(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "query_id doc_id relevance\nq1 d1 2\n"
    Path("qrels.tsv").write_text(text)
    with pytest.raises(FileFormatError) as refused:
        rk.Qrels.read("qrels.tsv")
    command = re.search(r"tr .*? > \S+\.tsv", refused.value.remedy)[0]
    subprocess.run(command, shell=True, check=True)  # noqa: S602 - our own words
    assert Path("qrels.tsv").read_text() == text
    assert rows(rk.Qrels.read("qrels.tabs.tsv")) == [("q1", "d1", 2)]


@each_row("encoding", ["latin-1", "utf-16"])
def test_other_encodings_are_mended_by_the_command_of_the_error(tmp_path: Path, monkeypatch, encoding):
    monkeypatch.chdir(tmp_path)
    Path("my qrels.csv").write_text("qid,docid,relevance\nq1,café,1\n", encoding=encoding)
    with pytest.raises(FileFormatError) as refused:
        rk.Qrels.read("my qrels.csv")
    assert "line" in refused.value.where
    subprocess.run(refused.value.remedy.partition(": ")[2], shell=True, check=True)  # noqa: S602 - our own words
    assert rk.Qrels.read("utf8-my qrels.csv").docid.to_pylist() == ["café"]


@each_row(
    ("name", "text"), [("q.json", '{"q1": {"café": 1}}'), ("q.jsonl", '{"qid": "q1", "docid": "café", "relevance": 1}')]
)
def test_json_in_another_encoding_is_mended_too(tmp_path: Path, monkeypatch, name, text):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text, encoding="latin-1")
    with pytest.raises(FileFormatError) as refused:
        rk.Qrels.read(name)
    subprocess.run(refused.value.remedy.partition(": ")[2], shell=True, check=True)  # noqa: S602 - our own words
    assert rk.Qrels.read(f"utf8-{name}").docid.to_pylist() == ["café"]


def test_runs_joined_into_one_file_are_parted_by_the_command(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("two").write_text("q Q0 a 1 2 x\nq Q0 b 2 1 x\nq Q0 a 1 9 y\n")
    with pytest.raises(InvalidInput) as refused:
        rk.evaluate({"q": {"a": 1}}, "two")
    subprocess.run(re.search(r"awk .*", refused.value.remedy)[0], shell=True, check=True)  # noqa: S602 - our own words
    assert [rk.Run.read(f"{system}.run").score.tolist() for system in "xy"] == [[2, 1], [9]]


def test_a_column_may_be_two_parts(tmp_path: Path):
    """As in a frame."""
    (tmp_path / "qrels.csv").write_text("qid,docid,grade\nq,a,1\nq,b,2\n")
    qrels = rk.Qrels.read(tmp_path / "qrels.csv", columns={"aspect": "grade"})
    assert qrels.aspect.to_pylist() == ["1", "2"]


def test_a_table_cut_off_says_so(tmp_path: Path):
    (tmp_path / "qrels.csv").write_text("qid,docid,relevance\nq1,d1,1\nq2,d")
    with pytest.raises(FileFormatError) as refused:
        rk.Qrels.read(tmp_path / "qrels.csv")
    assert "cut off" in refused.value.remedy


def test_a_masked_item_is_named(tmp_path: Path):
    (tmp_path / "run").write_text("q Q0 a 1 2.5 t\nq Q0 b 2 -inf t\n")
    frame = pd.DataFrame({"qid": ["q"], "docid": ["a"], "score": [-np.inf]})
    for read in (lambda: rk.Run.read(tmp_path / "run"), lambda: rk.Run.from_frame(frame)):
        with pytest.raises(InvalidInput) as refused:
            read()
        assert "leave out its row" in refused.value.remedy


def test_all_columns_that_are_missing_are_named_at_once(tmp_path: Path):
    (tmp_path / "t.csv").write_text("a,b,c\nq1,d1,1\n")
    with pytest.raises(FileFormatError) as refused:
        rk.Qrels.read(tmp_path / "t.csv")
    assert (refused.value.expected, refused.value.found) == ("qid, docid, relevance", "a, b, c")
    columns = eval(re.search(r"columns=(\{.*?\})", refused.value.remedy)[1])  # noqa: S307 - our own words
    columns = dict(zip(columns, "abc", strict=True))
    assert rows(rk.Qrels.read(tmp_path / "t.csv", columns=columns)) == [("q1", "d1", 1)]
    (tmp_path / "t.txt").write_text("a\tb\tc\nq1\td1\t1\n")
    assert rows(rk.Qrels.read(tmp_path / "t.txt", columns=columns)) == [("q1", "d1", 1)]
    with pytest.raises(UnknownName):
        rk.Qrels.read(tmp_path / "t.csv", columns={"document": "b"})
    with pytest.raises(InvalidInput, match="no column 'z'"):
        rk.Qrels.read(tmp_path / "t.csv", columns={"docid": "z"})


@each_row("names", [("user_id", "query"), ("item_id", "product_id"), ("label", "Rating")])
def test_two_columns_that_may_be_one_part_are_refused_with_both(tmp_path: Path, names):
    others = {"user_id": "docid,label", "item_id": "qid,label", "label": "qid,docid"}[names[0]]
    (tmp_path / "t.csv").write_text(f"{','.join(names)},{others}\n1,2,3,4\n")
    with pytest.raises(FileFormatError) as refused:
        rk.Qrels.read(tmp_path / "t.csv")
    assert all(repr(name) in refused.value.problem for name in names)


def test_the_export_of_ir_datasets_is_a_format(tmp_path: Path):
    path = tmp_path / "qrels.tsv"
    path.write_text("1048585\t7187158\t1\t0\n1048585\t7187159\t0\t0\n1048586\t7187159\t1\t0\n")
    with pytest.raises(FileFormatError) as refused:
        rk.Qrels.read(path)
    name = re.search(r"format='(ir_datasets)'", refused.value.remedy)[1]
    assert rk.Qrels.read(path, name).relevance.tolist() == [1, 0, 1]


def beir(folder: Path, *splits: str) -> Path:
    (folder / "qrels").mkdir(parents=True)
    for split in splits:
        (folder / f"qrels/{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{split}\td1\t1\n")
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "{split}", "text": "of {split}"}}\n' for split in splits))
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "Wings", "text": "lift"}\n')
    return folder


def test_a_folder_of_beir_is_read(tmp_path: Path):
    folder = beir(tmp_path / "two", "dev", "test")
    for split in ("dev", "test"):
        data = rk.datasets.load_beir(folder, split=split)
        assert (data.queries, rows(data.qrels)) == ({split: f"of {split}"}, [(split, "d1", 1)])
        assert data.corpus == {"d1": "Wings\nlift"}
    evaluated = rk.evaluate(folder, {"test": ["d1"]}, measures="RR")
    assert evaluated.mean()["RR"] == 1
    assert any("qrels/test.tsv" in note for note in evaluated.notes)
    assert rk.Qrels.read(beir(tmp_path / "one", "train")).qid.to_pylist() == ["train"]
    with pytest.raises(UnknownName, match="dev, train"):
        rk.Qrels.read(beir(tmp_path / "none", "dev", "train"))
    with pytest.raises(UnknownName):
        rk.datasets.load_beir(folder, split="tset")
    with pytest.raises(InvalidInput, match="name a file"):
        rk.Run.read(folder)
    (folder / "queries.jsonl").write_text("")
    with pytest.raises(InvalidInput):
        rk.datasets.load_beir(folder)


def test_the_systems_of_records_are_a_run_of_each():
    """The remedy of the error on several systems works for records too."""
    table = pd.read_csv(FIELD / "lenskit_recs.csv", dtype={"user": str, "item": str})
    records = table.to_dict("records")
    with pytest.raises(InvalidInput) as refused:
        rk.Run.from_any(records)
    assert "by_system" in refused.value.remedy
    by_frame = rk.Run.by_system(table)
    assert {name: rows(run) for name, run in rk.Run.by_system(records).items()} == {
        name: rows(run) for name, run in by_frame.items()
    }


def test_names_of_columns_are_never_dropped(tmp_path: Path):
    """A part that no table has, and rows without named columns."""
    frame = pd.DataFrame({"qid": ["q"], "docid": ["d"], "label": [1], "sku": ["s"]})
    for part in ("document", "frame"):
        for given in (frame, frame.to_dict("records")):
            with pytest.raises(UnknownName):
                rk.Qrels.from_any(given, columns={part: "sku"})
    (tmp_path / "qrels.txt").write_text("q 0 d 1\n")
    for given in (tmp_path / "qrels.txt", {"q": {"d": 1}}):
        with pytest.raises(InvalidInput) as refused:
            rk.Qrels.from_any(given, columns={"docid": "sku"})
        assert refused.value.argument == "columns"


def test_words_of_aspects_become_grades():
    judged = {"q": {"a": {"x": "Exact", "y": "Irrelevant"}}}
    assert rk.Qrels.from_dict(judged, grades=WANDS).relevance.tolist() == [2, 0]


def test_the_name_of_a_product_is_no_system(tmp_path: Path):
    """And our own name of a column comes before other tools' names."""
    (tmp_path / "run.csv").write_text("qid,docid,score,name\nq,a,2,chair\nq,b,1,table\n")
    assert rk.Run.read(tmp_path / "run.csv").docid.to_pylist() == ["a", "b"]
    (tmp_path / "run.csv").write_text("qid,docid,score,algorithm,run\nq,a,2,knn,x\nq,b,1,knn,y\n")
    assert [*rk.Run.by_system(tmp_path / "run.csv")] == ["x", "y"]


def test_a_score_with_fractions_is_a_relevance_if_the_caller_says_so(tmp_path: Path):
    """In a file as in a frame; else it is refused as a ranking."""
    path = tmp_path / "qrels.csv"
    path.write_text("query-id,corpus-id,score\nq,d,0.5\n")
    with pytest.raises(InvalidInput, match="fractions"):
        rk.Qrels.read(path)
    assert rk.Qrels.read(path, columns={"relevance": "score"}).relevance.tolist() == [0.5]


@each_row(
    "name", ["Method", "Model", "model_name", "engine", "retriever", "ranker", "approach", "System Name", "experiment"]
)
@each_row("suffix", ["csv", "parquet", "jsonl"])
def test_rankings_of_several_systems_are_never_merged(tmp_path: Path, name, suffix):
    """Their column has many names; nothing else shows it where the documents of the systems differ."""
    frame = pd.DataFrame({name: ["bm25", "dense"], "qid": "q1", "docid": ["d1", "d3"], "score": [9.5, 11.0]})
    path = tmp_path / f"runs.{suffix}"
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "jsonl": frame.to_json}[suffix]
    write(path, **({"orient": "records", "lines": True} if suffix == "jsonl" else {"index": False}))
    with pytest.raises(InvalidInput) as caught:
        rk.Run.read(path)
    assert caught.value.found == "'bm25', 'dense'"
    assert [*rk.Run.by_system(path)] == ["bm25", "dense"]


def test_the_system_is_the_first_of_its_names():
    """An experiment of several models is one column, the models are the other."""
    frame = pd.DataFrame({"experiment": "e1", "model": ["a", "b"], "qid": 1, "docid": [1, 2], "score": 0.5})
    assert [*rk.Run.by_system(frame)] == ["a", "b"]


@each_row("suffix", ["csv", "parquet", "jsonl"])
def test_failed_judgments_of_umbrela_are_never_grades(tmp_path: Path, suffix):
    frame = pd.DataFrame({"qid": "q1", "docid": ["d1", "d2"], "judgment": [2, 0], "result_status": [1, 0]})
    path = tmp_path / f"umbrela.{suffix}"
    if suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
        assert rk.Qrels.read(path).docid.to_pylist() == ["d1"]
        return
    (frame.to_csv if suffix == "csv" else frame.to_parquet)(path, index=False)
    with pytest.raises(FileFormatError, match="result_status is 0 in 1"):
        rk.Qrels.read(path)
    frame.query("result_status != 0").to_csv(tmp_path / "parsed.csv", index=False)
    assert len(rk.Qrels.read(tmp_path / "parsed.csv")) == 1


RANKED = {
    "my run.csv": "qid,docid,rank\nq1,d1,1\nq1,d2,2\n",
    "run.tsv": "qid\tdocid\trank\nq1\td1\t1\nq1\td2\t2\n",
    "run.jsonl": '{"qid": "q1", "docid": "d1", "rank": 1}\n{"qid": "q1", "docid": "d2", "rank": 2}\n',
    "run.parquet": "",
}


@each_row("name", RANKED)
def test_the_command_that_makes_scores_of_ranks_keeps_the_order(tmp_path: Path, name):
    """Also where the caller names the rank as the score, which would turn the ranking round."""
    if RANKED[name]:
        (tmp_path / name).write_text(RANKED[name])
    else:
        pd.DataFrame({"qid": "q1", "docid": ["d1", "d2"], "rank": [1, 2]}).to_parquet(tmp_path / name)
    for columns in (None, {"score": "rank"}):
        with pytest.raises(FileFormatError, match="a rank is not a score") as caught:
            rk.Run.read(tmp_path / name, columns=columns)
    if "python" in caught.value.remedy:
        command = caught.value.remedy.partition(": ")[2].replace("python", sys.executable, 1)
        subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=True)
        read = rk.Run.read(tmp_path / "scored.csv")
    else:
        frame = pd.read_parquet(tmp_path / name) if "parquet" in name else pd.read_json(tmp_path / name, lines=True)
        exec(caught.value.remedy.partition(": ")[2], {"frame": frame})  # noqa: S102 - what the error advises
        read = rk.Run.from_frame(frame)
    assert rk.evaluate({"q1": {"d1": 1}}, read, measures="RR").mean().tolist() == [1]


EDGES = {
    "a blank": ("qrels.csv", "qid,docid,relevance\nq1 ,d1,2\n", "qid 'q1 '"),
    "no space": ("qrels.csv", "qid,docid,relevance\nq1,\u200bd1,2\n", "docid '\\u200bd1'"),
    "commas": ("qrels", "q1, 0, d1, 1\n", "qid 'q1,'"),
    "a hard blank": ("qrels.jsonl", '{"qid": "q1\\u00a0", "docid": "d1", "relevance": 1}\n', "qid 'q1\\xa0'"),
}


@each_row("case", EDGES)
def test_ids_that_end_in_a_blank_or_a_comma_are_noted(tmp_path: Path, case):
    """They match no other id; the rows are kept as they are."""
    name, text, found = EDGES[case]
    (tmp_path / name).write_text(text, "utf-8")
    assert found in rk.Qrels.read(tmp_path / name).notes[0]


def test_judges_in_columns_are_columns_of_grades(tmp_path: Path):
    """Not ids, places, or text; the note names those that were read."""
    table = pd.DataFrame({"id": [7, 8, 9], "query": "q", "docid": ["a", "b", "c"], "position": [1, 2, 3]})
    table = table.assign(Ann=[1, 1, 0], Bob=[0, 1, 0], remark=["good", "", "bad"])
    table.to_csv(tmp_path / "judges.csv", index=False)
    read = rk.Qrels.read(tmp_path / "judges.csv", columns={"aspect": JUDGES})
    assert read.notes[0].endswith("a column for each judge: 'Ann', 'Bob'")
    observed = agreement(read).table.set_index("coefficient")["value"]["observed"]
    assert observed == pytest.approx((table["Ann"] == table["Bob"]).mean())


ENCODED = {
    "Latin-1": ("q1 0 caf\xe9 1\n", "latin1"),
    "Windows": ("q1 0 caf\xe9 1\nq1 0 10\u20ac 1\n", "cp1252"),
    "UTF-16": ("q1 0 caf\xe9 1\n", "utf-16"),
    "UTF-32": ("q1 0 caf\xe9 1\n", "utf-32"),
}


@each_row("case", ENCODED)
def test_the_encoding_that_is_advised_gives_the_text_back(tmp_path: Path, case):
    text, encoding = ENCODED[case]
    (tmp_path / "qrels").write_bytes(text.encode(encoding))
    with pytest.raises(FileFormatError) as caught:
        rk.Qrels.read(tmp_path / "qrels")
    command = caught.value.remedy[caught.value.remedy.index("iconv -f") :]
    subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=True)
    assert (tmp_path / "utf8-qrels").read_text("utf-8").removeprefix("\ufeff") == text


def test_beir_in_capitals_is_judged_by_its_score(tmp_path: Path):
    (tmp_path / "qrels.tsv").write_text("Query-ID\tCorpus-ID\tScore\nq\td\t1\n")
    assert rows(rk.Qrels.read(tmp_path / "qrels.tsv")) == [("q", "d", 1)]


def test_words_that_are_ids_are_no_grades():
    assert words_remedy(["d1", "doc-12", "Q0"]) is None
    assert "Exact" in words_remedy(["d1", "Exact"])
    assert 'grades={"L2": 2, "L0": 0}' in words_remedy(["L0", "L2"])


def test_rows_without_a_word_are_counted_as_those_without_a_number(tmp_path: Path):
    (tmp_path / "words.csv").write_text("qid,docid,label\nq,a,E\nq,b,\nq,c,S\n")
    with pytest.raises(FileFormatError) as caught:
        rk.Qrels.read(tmp_path / "words.csv")
    assert 'grades={"E": 3, "S": 2}' in caught.value.remedy
    read = rk.Qrels.read(tmp_path / "words.csv", grades={"E": 3, "S": 2})
    assert (rows(read), read.notes[0].partition(": ")[2]) == (
        [("q", "a", 3), ("q", "c", 2)],
        "1 row without a grade left out",
    )


HEADERS = {
    "no header": ("q1,d1,9.5\nq1,d2,8.5\n", rk.Run),
    "no header, semicolons": ("q1;d1;2\nq1;d2;1\n", rk.Qrels),
    "a line for a spreadsheet": ("sep=;\nqid;docid;score\nq1;d1;9.5\nq1;d2;8.5\n", rk.Run),
    "a comment": ("# made by hand\nqid,docid,relevance\nq1,d1,2\nq1,d2,1\n", rk.Qrels),
    "blanks": ("qid docid relevance\nq1 d1 2\nq1 d2 1\n", rk.Qrels),
    "another mark": ("qid^docid^score\nq1^d1^9.5\nq1^d2^8.5\n", rk.Run),
}


@each_row("case", HEADERS)
def test_a_first_line_without_names_says_how_to_mend_it(tmp_path: Path, case):
    text, kind = HEADERS[case]
    path, mended = tmp_path / "my table.csv", tmp_path / "mended-my table.csv"
    path.write_text(text)
    with pytest.raises(FileFormatError) as caught:
        kind.read(path)
    remedy = caught.value.remedy.partition(": ")[2]
    if remedy.startswith("qid"):
        mended.write_text(f"{remedy}\n{text}")
    else:
        subprocess.run(["/bin/sh", "-c", remedy], cwd=tmp_path, check=True)
    assert kind.read(mended).docid.to_pylist() == ["d1", "d2"]


def test_decimal_commas_between_commas_are_read_as_the_error_says(tmp_path: Path):
    (tmp_path / "run.csv").write_text('qid,docid,score\nq1,d1,"9,5"\nq1,d2,"8,5"\n')
    with pytest.raises(FileFormatError) as caught:
        rk.Run.read(tmp_path / "run.csv")
    options = re.search(r"read_csv\(\.\.\., (.*)\)", caught.value.remedy)[1]
    frame = eval(f"read_csv(path, {options})", {"read_csv": pd.read_csv, "path": tmp_path / "run.csv"})  # noqa: S307 - our own words
    assert rk.Run.from_frame(frame).score.tolist() == [9.5, 8.5]


def test_a_workbook_is_saved_as_text(tmp_path: Path):
    (tmp_path / "run.xlsx").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(FileFormatError, match="save it as CSV"):
        rk.Run.read(tmp_path / "run.xlsx")
