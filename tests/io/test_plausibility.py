"""A table without a header whose columns cannot be what they are read as is refused with the likely reading."""

from __future__ import annotations

import re
import shlex
import subprocess
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io import opening
from rankeval.io.plausibility import is_doubtful, reading_of_four, reading_of_six

SWAPPED, LISTED = "qid docid relevance iter", "qid docid 0 0"
RUN, TIMED = "qid docid rank score", "qid docid relevance time"
ROUNDS = "".join(f"1 doc{row:03d} {row % 3} {(0.5, 1, 2)[row % 3]}\n" for row in range(30))
FOUR = {
    "ir_datasets": ("1048585\t7187158\t1\t0\n1048586\t7187159\t1\t0\n", SWAPPED),
    "ir_datasets, one query": ("q1\td1\t1\t0\nq1\td2\t0\t0\nq1\td3\t4\t0\n", SWAPPED),
    "ir_datasets, blanks and CRLF": ("q1  d1 1 0\r\nq1 d2  0 0\r\nq2 d3 4 0\r\nq2 d4 4 0\r\n", SWAPPED),
    "ir_datasets, a mark and a comment": ("\ufeff# about\nq1 7 1 0\nq1 8 0 0\nq1 9 1 0\n", SWAPPED),
    "ir_datasets, negative and whole as floats": ("q a -1 0\nq b 1.0 0\nq c 1.0 0\n", SWAPPED),
    "rounds of TREC-COVID last": (ROUNDS, SWAPPED),
    "iteration third": ("q1 d1 0 1\nq1 d2 0 2\nq2 d5 0 0\n", "qid docid iter relevance"),
    "Q0 third": ("q1 d1 Q0 1\nq1 d2 Q0 2\nq2 d5 Q0 0\n", "qid docid iter relevance"),
    "SMART": ("01 1410  0 0\n01 1572  0 0\n02 2434  0 0\n", LISTED),
    "SMART with a decimal": ("1\t28\t0\t0.000000\n1\t35\t0\t0.000000\n2\t28\t0\t0.000000\n", LISTED),
    "MovieLens": ("196\t242\t3\t881250949\n186\t302\t3\t891717742\n", TIMED),
    "milliseconds and halves": ("1 50 3.5 1112486027000\n1 60 4.0 1112484676123\n", TIMED),
    "a day": ("u1 i1 1 20240131\nu1 i2 5 20231201\n", TIMED),
    "time before rating": ("196 242 881250949 3\n186 302 891717742 0\n", "qid docid time relevance"),
    "a run of four": ("q1 d1 1 9.5\nq1 d2 2 8.5\nq2 d3 1 7.5\n", RUN),
    "from 0, whole scores": ("q1 1 0 95\nq1 2 1 85\nq2 3 0 7\n", RUN),
    "negative scores of one query, unsorted": ("q d1 2 -2\nq d2 1 -1\nq d3 3 -7.5\n", RUN),
    "score and rank": ("q1 d1 9.5 1\nq1 d2 8.5 2\nq2 d3 7.5 1\n", "qid docid score rank"),
    "three rows of numbered documents": ("1\t101\t1\t1\n1\t102\t2\t4.5\n2\t103\t0\t2\n", SWAPPED),
    "Q0 and score": ("q1 Q0 d1 9.5\nq1 Q0 d2 8.5\nq2 Q0 d3 7.5\n", "qid Q0 docid score"),
}


@each_row("case", FOUR)
def test_judgments_in_another_order_are_refused_by_their_likely_reading(tmp_path: Path, case):
    """Until then each was read, and every measure was 0; the caller who names the format is believed."""
    text, reading = FOUR[case]
    (tmp_path / "qrels").write_text(text, newline="")
    with pytest.raises(FileFormatError) as caught:
        rk.Qrels.read(tmp_path / "qrels")
    error = caught.value
    assert (error.found, error.expected) == (reading, "qid iter docid relevance")
    assert error.where == str(tmp_path / "qrels")
    assert error.remedy.endswith("or say format='trec' (-R trec) if they are right")
    assert len(rk.Qrels.read(tmp_path / "qrels", "trec")) == len(text.removeprefix("\ufeff# about\n").splitlines())


@each_row("text", ["1\t101\t1\tQ0\n", "q1 0 1 d1\nq1 0 2 d2\n"])
def test_ids_in_the_last_column_are_no_labels(tmp_path: Path, text):
    """Words were taken for labels, and the error gave each document a grade."""
    (tmp_path / "qrels").write_text(text)
    with pytest.raises(FileFormatError) as caught:
        rk.Qrels.read(tmp_path / "qrels")
    assert "grades" not in (caught.value.remedy or "")


def test_the_refusal_says_what_was_found_and_how_to_write_it(tmp_path: Path):
    (tmp_path / "qrels").write_text(FOUR["ir_datasets, one query"][0])
    with pytest.raises(
        FileFormatError,
        match=r"qrels: the columns are read as qid iter docid relevance, but they seem to be qid docid relevance iter: "
        r"column 2 differs between the rows of each query, and column 3 has 3 values in 3 rows \(0, 1, 4\); "
        r"write them in order, awk '{print \$1, \$4, \$2, \$3}', or say format='ndeval' \(-R ndeval\) if",
    ):
        rk.Qrels.read(tmp_path / "qrels")


ORDERS = {
    SWAPPED: (0, 1, 2, 3),
    TIMED: (0, 1, 2, 3),
    "qid docid time relevance": (0, 1, 3, 2),
    "qid docid iter relevance": (0, 1, 3, 2),
    LISTED: (0, 1, 2, 3),
}


@each_row("case", [case for case, (_, reading) in FOUR.items() if reading in ORDERS])
def test_the_order_that_is_advised_is_read(tmp_path: Path, case):
    """The words are a command of the shell; here its columns are taken in Python."""
    text, reading = FOUR[case]
    (tmp_path / "qrels").write_text(text, newline="")
    with pytest.raises(FileFormatError) as caught:
        rk.Qrels.read(tmp_path / "qrels")
    printed = caught.value.remedy.partition("print ")[2].partition("}")[0].split(", ")
    rows = [line.split() for line in text.removeprefix("\ufeff# about\n").splitlines()]
    lines = (" ".join(row[int(cell[1:]) - 1] if cell[0] == "$" else cell for cell in printed) for row in rows)
    (tmp_path / "qrels").write_text("\n".join(lines))
    qrels = rk.Qrels.read(tmp_path / "qrels")
    wanted = [1.0 if reading == LISTED else float(row[ORDERS[reading][2]]) for row in rows]
    assert qrels.docid.to_pylist() == [row[1] for row in rows]
    assert qrels.relevance.tolist() == wanted


RUN_FIELDS = ["qid", "Q0", "docid", "rank", "score", "tag"]
SIX = {
    "score and rank": ("q1 Q0 d1 9.5 1 t\nq1 Q0 d2 8.5 2 t\nq2 Q0 d1 3 1 t\n", "qid Q0 docid score rank tag"),
    "from 0, whole, a tag in words": ("q Q0 d1 90 0 my tag\nq Q0 d2 80 1 my tag\n", "qid Q0 docid score rank tag"),
    "score and rank, no tag": ("q1 Q0 d1 9.5 1\nq1 Q0 d2 8.5 2\n", "qid Q0 docid score rank"),
    "document and Q0": ("q1 d1 Q0 1 9.5 t\nq2 d2 Q0 1 8.5 t\n", "qid docid Q0 rank score tag"),
}


@each_row("case", SIX)
def test_runs_in_another_order_are_refused_by_their_likely_reading(tmp_path: Path, case):
    text, reading = SIX[case]
    (tmp_path / "run").write_text(text)
    with pytest.raises(FileFormatError, match=r"awk") as caught:
        rk.Run.read(tmp_path / "run")
    assert (caught.value.found, caught.value.expected) == (
        reading,
        " ".join(sorted(reading.split(), key=RUN_FIELDS.index)),
    )
    if "tag" in reading:
        assert len(rk.Run.read(tmp_path / "run", "trec")) == text.count("\n")


RIGHT = {
    "one judgment a query": "1 0 7187158 1\n2 0 7187159 1\n",
    "documents are small numbers": "1 0 1 1\n1 0 2 0\n2 0 1 2\n",
    "all of grade 0": "1 0 1 0\n1 0 2 0\n2 0 1 0\n",
    "rounds": "1 0.5 d1 2\n1 1 d2 0\n1 1 d3 0\n",
    "judges of numbered documents": "201 1 5 1\n201 1 7 1\n201 2 6 0\n201 3 9 1\n",
    "fractions beside Q0": "q1 Q0 d1 0.5\nq1 Q0 d2 0\nq1 Q0 d3 1\n",
    "great gains": "q1 0 d1 5000\nq1 0 d2 100000\n",
    "great gains of numbered documents": "q1 0 7 881250949\nq1 0 50000001 891717742\n",
    "documents as great as times": "q1 0 36194815 1\nq1 0 36194816 0\nq2 0 36194815 1\n",
    "one row": "q1 0 1 0\n",
}


@each_row("case", RIGHT)
def test_judgments_of_the_usual_order_are_read(tmp_path: Path, case):
    (tmp_path / "qrels").write_text(RIGHT[case])
    assert len(rk.Qrels.read(tmp_path / "qrels")) == RIGHT[case].count("\n")


ids = st.integers(1, 30).map(str)


@given(
    st.dictionaries(st.tuples(ids, ids), st.integers(-2, 20), min_size=1, max_size=60),
    st.sampled_from(["0", "1", "Q0", "N/A", "4.5"]),
    st.randoms(use_true_random=False),
)
def test_no_judgments_with_one_iteration_are_doubted(judged, iteration, order):
    """However small the collection, and though its documents are numbers."""
    rows = [(query, iteration, document, str(grade)) for (query, document), grade in judged.items()]
    order.shuffle(rows)
    assert not is_doubtful(rows) or reading_of_four(rows) is None


@given(st.dictionaries(st.tuples(ids, ids), st.integers(-2, 20), min_size=1, max_size=60))
def test_no_ranking_is_doubted(scored):
    """Its scores may be whole, few, tied or negative, and its documents numbers."""
    ranked = sorted(scored.items(), key=lambda row: (row[0][0], -row[1]))
    rows = [(query, "Q0", document, "1", str(score), "t") for (query, document), score in ranked]
    assert reading_of_six(rows) is None
    counted = [(*row[:3], str(place + 1), *row[4:]) for place, row in enumerate(rows)]
    assert reading_of_six(counted) is None
    gaps = [(*row[:3], str(3 * place + 1), str(len(rows) - place), "t") for place, row in enumerate(rows)]
    assert reading_of_six(gaps) is None


@each_row("blank", ["\x1f", "\x85", "\xa0", "\u2003"])
def test_only_the_blanks_of_trec_separate_columns(tmp_path: Path, blank: str):
    """Python would split text at these."""
    (tmp_path / "run").write_text(f"a{blank}b Q0 d1 1 2.5 tag\na{blank}b Q0 d2 2 1.5 tag\n", "utf-8")
    assert rk.Run.read(tmp_path / "run").to_frame()["qid"].unique().tolist() == [f"a{blank}b"]


def test_a_long_file_is_judged_by_all_its_rows(tmp_path: Path):
    """The first 16 KB may look odd by chance; a swap lasts to the end."""
    swapped = [f"{row // 50} d{row} {row % 4} 0" for row in range(5_000)]
    (tmp_path / "qrels").write_text("\n".join(swapped))
    with pytest.raises(FileFormatError, match=r"seem to be qid docid relevance iter.* 4 values in 5000 rows"):
        rk.Qrels.read(tmp_path / "qrels")
    (tmp_path / "qrels").write_text("\ufeff" + "\n".join(swapped))
    with pytest.raises(FileFormatError, match="qid docid relevance iter"):
        rk.Qrels.read(tmp_path / "qrels")
    odd = [f"{row // 50} d{row % 50} 7 0" for row in range(2_000)] + [f"{row // 50} 0 d{row} 1" for row in range(5_000)]
    (tmp_path / "qrels").write_text("\n".join(odd))
    assert len(rk.Qrels.read(tmp_path / "qrels")) == 7_000


LETOR = {
    "one feature and two words": "0\tqid:1\t1:10.149572 # 7555\trambo\n",
    "features and a comment": "2 qid:10 1:0.5 2:3 #docid = GX1\n0 qid:10 1:1 2:0 #docid = GX2\n",
    "no features": "4 qid:1 # 7555 rambo\n3 qid:1 # 1370 rambo\n",
    "no query": "# sizes beside it\n2 1:0.5 3:0.25\n0 2:-1e-3\n",
    "a mark, a sign, words as queries": "\ufeff+1 qid:star_wars 1:0.5\n",
}


@each_row(("kind", "case"), [*product([rk.Qrels, rk.Run], LETOR)])
def test_a_learning_to_rank_file_is_called_so(tmp_path: Path, kind, case):
    (tmp_path / "rows.txt").write_text(LETOR[case])
    with pytest.raises(FileFormatError, match="this is a learning-to-rank file") as caught:
        kind.read(tmp_path / "rows.txt")
    assert "load_letor" in caught.value.remedy


def run_in_shell(remedy, folder):
    """Run the command that a remedy ends in, and return the file that it writes."""
    command = remedy[re.search(r"\{ printf|tr -s|python|iconv|sed|awk", remedy).start() :]
    subprocess.run(["/bin/sh", "-c", command], cwd=folder, check=True)
    return folder / shlex.split(command)[-1]


BLANKS = {
    "judgments": (rk.Qrels, "star wars\td1\t1\nstar trek\td2\t1\n", ["star wars", "d1", 1]),
    "a document": (rk.Qrels, "# about\nq1\tiphone 5\t2\n", ["q1", "iphone 5", 2]),
    "four columns": (rk.Qrels, "q1\t0\tmy doc\t2\nq1\t0\td2\t1\n", ["q1", "my doc", 2]),
    "ir_datasets": (rk.Qrels, "star wars\td1\t1\t0\nq1\td2\t2\t0\n", ["star wars", "d1", 1]),
    "rank and tag": (rk.Run, "star wars\td1\t1\t9.5\tbm25\n", ["star wars", "d1", 9.5]),
    "score and tag": (rk.Run, "q1\tQ0\tiphone 5\t9.5\tbm25\n", ["q1", "iphone 5", 9.5]),
    "no tag": (rk.Run, "q1\tQ0\tmy doc\t1\t9.5\n", ["q1", "my doc", 9.5]),
    "no tag, the score first": (rk.Run, "q1\tQ0\tmy doc\t9.5\t1\nq1\tQ0\td2\t8\t2\n", ["q1", "my doc", 9.5]),
    "a whole run": (rk.Run, "q1\tQ0\tmy doc\t1\t9.5\tmy tag\n", ["q1", "my doc", 9.5]),
    "three columns": (rk.Run, "q1\tmy doc\t9.5\nq1\td2\t8.5\n", ["q1", "my doc", 9.5]),
}


@each_row("case", BLANKS)
def test_blanks_within_cells_between_tabs_split_no_id(tmp_path: Path, case):
    """They did, without a note; the command that is advised makes a table of the same rows."""
    kind, text, first = BLANKS[case]
    (tmp_path / "rows.tsv").write_text(text)
    with pytest.raises(FileFormatError, match="an id has a blank") as caught:
        kind.read(tmp_path / "rows.tsv")
    if "#" not in text:
        read = kind.read(run_in_shell(caught.value.remedy, tmp_path))
        assert read.to_frame().to_numpy().tolist()[0] == first
    (tmp_path / "tag").write_text("q1\tQ0\td1\t1\t9.5\tmy own tag\n")
    assert rk.Run.read(tmp_path / "tag").name == "my own tag"


@each_row("name", ["rows.tsv", "rows.txt", "my rows"])
def test_the_table_with_tabs_is_another_file(tmp_path: Path, name):
    (tmp_path / name).write_text("qid docid relevance\nq1 d1 1\n")
    with pytest.raises(FileFormatError, match="looks like a header") as caught:
        rk.Qrels.read(tmp_path / name)
    assert len(rk.Qrels.read(run_in_shell(caught.value.remedy, tmp_path))) == 1


def test_columns_that_may_be_swapped_are_noted(tmp_path: Path):
    """Iterations that differ, and documents called like judges: nothing in the rows decides."""
    (tmp_path / "small").write_text("1\td1\t1\t1\n1\td2\t2\t4.5\n2\td1\t0\t2\n")
    assert "give format='ir_datasets'" in rk.Qrels.read(tmp_path / "small").notes[0]
    assert rk.Qrels.read(tmp_path / "small", "ir_datasets").docid.to_pylist() == ["d1", "d2", "d1"]
    assert rk.Qrels.read(tmp_path / "small", "trec").notes == ()


WIDTHS = {
    "a run without a rank": (rk.Run, "q1 Q0 d1 9.5 t\n", r"\$1, \$2, \$3, 0, \$4, \$5"),
    "a run without Q0": (rk.Run, "q1 d1 1 9.5 t\n", r"\$1, \"Q0\", \$2, \$3, \$4, \$5"),
    "a run of four columns": (rk.Run, "q1 d1 1 9.5\nq1 d2 2 8.5\n", r"\"Q0\", \$2, \$3, \$4, \"run\""),
    "judgments": (rk.Run, "q1 0 d1 1\nq1 0 d2 1\n", "this looks like a qrels file"),
    "a run": (rk.Qrels, "q1 Q0 d1 1 9.5 t\n", "this looks like a run file"),
    "judgments with blanks": (
        rk.Qrels,
        "JFK\t0\tJohn F. Kennedy\t3\n",
        r"name the columns: .*qid\\titer\\tdocid\\trelevance",
    ),
    "a run cut off": (rk.Run, "q1 Q0 d1 1 9.5 t\nq1 Q0 d2 2", "the file is cut off here"),
    "judgments cut off": (rk.Qrels, "q1 0 d1 1\nq1 0", "the file is cut off here"),
    "a blank in the query": (rk.Qrels, "star wars 0 d1 2\n", "an id has a blank"),
    "a blank in the document": (rk.Qrels, "q1 0 my doc 2\n", "an id has a blank"),
    "preferences": (rk.Qrels, "q ann 1 doc-1 1\nq bob 2 doc-1 0\n", r"format='prefs' \(-R prefs\)"),
}


@each_row("case", WIDTHS)
def test_a_line_of_another_width_says_what_it_may_be(tmp_path: Path, case):
    kind, text, remedy = WIDTHS[case]
    (tmp_path / "file").write_text(text)
    with pytest.raises(FileFormatError) as caught:
        kind.read(tmp_path / "file")
    assert re.search(remedy, caught.value.remedy)


OTHERS = {
    "10 GX253-98-1 0 1 0.1659\n": "Million Query",
    "DD1 DD1.1 doc p1 2\n": "Dynamic Domain",
    "q Q0 d 1 2.5\n": "looks like a run file without tags",
    "q d 1\n": "if these are query, document and grade",
}


@each_row("text", OTHERS)
def test_judgments_of_other_widths_are_named(tmp_path: Path, text):
    """Five columns of the Million Query track are no preferences, five of a run no judgments."""
    (tmp_path / "file").write_text(text)
    with pytest.raises(FileFormatError, match="expected 4 columns") as caught:
        rk.Qrels.read(tmp_path / "file")
    assert OTHERS[text] in caught.value.remedy


@pytest.mark.shared
def test_no_real_collection_is_doubted(shared: Path):
    """Of 82 files of four columns and 113 of six, only SMART's of CISI is: rightly, each row ends in 0 0."""
    doubted, n_files = [], 0
    for path in sorted(one for one in shared.rglob("*") if one.is_file() and "field" not in one.parts):
        try:
            text = opening.read_text(path).decode(errors="replace")
        except InvalidInput:
            continue
        rows = [line.split() for line in text[: 1 << 14].split("\n")[:-1] if line.strip() and line[0] != "#"]
        widths = {len(row) for row in rows}
        reading_of = {(4,): reading_of_four, (6,): reading_of_six}.get(tuple(widths))
        if reading_of:
            n_files += 1
            if (len(rows[0]) == 6 or is_doubtful(rows)) and reading_of(rows):
                doubted.append(path.name)
    assert (doubted, n_files > 150) == (["CISI.REL"], True)


def test_a_swap_in_any_order_of_rows_is_seen(tmp_path: Path):
    rows = [f"q{query} d{query}{place} {place % 3} 0" for place in range(9) for query in range(9)]
    (tmp_path / "qrels").write_text("\n".join(rows))
    with pytest.raises(FileFormatError, match="qid docid relevance iter"):
        rk.Qrels.read(tmp_path / "qrels")
