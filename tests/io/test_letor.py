"""Learning-to-rank files: cells, queries and documents are those of the file, and a bad line is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import issparse
from sklearn.datasets import load_svmlight_file
from tables import each_row

from rankeval.datasets import load_letor, load_letor_parts
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io import letor
from rankeval.io.letor import read_svmlight
from rankeval.io.opening import Limits

FILE = """\
2 qid:7 1:0.5 3:-1e-2 #docid = A-1 inc = 1 prob = 0.02
0 qid:7 1:1 2:2 3:3 #docid = B
1 qid:3 #docid = A-1
"""
X = [[0.5, 0, -0.01], [1, 2, 3], [0, 0, 0]]


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


FORMS = {
    "plain": FILE,
    "no newline at the end": FILE.rstrip(),
    "blanks at the ends": FILE.replace("#", "   #").replace("\n", " \n"),
    "CRLF": FILE.replace("\n", "\r\n"),
    "tabs": FILE.replace(" qid", "\tqid").replace(" 1:", "\t1:"),
    "comment and blank lines": "# made by hand\n\n" + FILE.replace("\n", "\n\n"),
    "indices out of order": FILE.replace("1:0.5 3:-1e-2", "3:-1e-2 1:0.5"),
    "gzip": gzip.compress(FILE.encode()),
    "byte-order mark": b"\xef\xbb\xbf" + FILE.encode(),
}


@each_row("form", FORMS)
def test_the_same_rows_are_read_from_every_form(tmp_path: Path, form):
    """Spacing, line ends, comments and compression are no part of the content."""
    data = load_letor(write(tmp_path / "train.txt", FORMS[form]))
    assert data.X.tolist() == X
    assert data.y.tolist() == [2, 0, 1]
    assert data.y.dtype == data.qid.dtype == np.int64
    assert data.qid.tolist() == [7, 7, 3]
    assert data.docid.tolist() == ["A-1", "B", "A-1"]
    assert data.feature_names == ("f1", "f2", "f3")
    assert data.name == "train.txt"


cells = st.dictionaries(st.integers(1, 30), st.floats(-1e6, 1e6), max_size=6)
lines = st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 10**12), cells), min_size=1, max_size=20)


def same(fast, exact):
    """Say whether two readings have equal rows, to the last bit."""
    (X, label, qid), (other_X, other_label, other_qid) = fast, exact
    cells = [getattr(X, part).tolist() == getattr(other_X, part).tolist() for part in ("indptr", "indices", "data")]
    queries = [qid if qid is None else qid.tolist() for qid in (qid, other_qid)]
    return all(cells) and label.tolist() == other_label.tolist() and queries[0] == queries[1]


@given(lines, st.booleans())
def test_scikit_learn_agrees_with_the_exact_reader(rows, with_qid):
    """The plain form is left to scikit-learn, which gives the rows that reading line by line gives."""
    text = "".join(
        f"{label}{f' qid:{qid}' if with_qid else ''}"
        + "".join(f" {index}:{value!r}" for index, value in sorted(row.items()))
        + "\n"
        for label, qid, row in rows
    ).encode()
    fast = letor._by_sklearn(text, Limits())
    assert fast is not None
    assert same(fast, letor._line_by_line(text, "file"))
    found = read_svmlight(text, "file").qid
    assert (found is None) == (not with_qid)
    assert not with_qid or found.tolist() == [qid for _, qid, _ in rows]


WORDS = """1 qid:1 qid:x 1:2 2:3 1: :1 3:nan 4:0x1 # : a 1:2:3 -1:2 1_0 1_0:5 1:1_0 +1:5 -0:1 01:2 1:+.5 nan 1e999 1,5
qid:007 qid:+7 qid:-0 qid:-7 qid:0 qid:999999999999999999 qid:9999999999999999999 qid:1_0"""
tokens = st.sampled_from([*WORDS.split(), "\t"])


@given(st.lists(st.lists(tokens, max_size=5), max_size=4))
def test_scikit_learn_reads_nothing_that_the_exact_reader_refuses(rows):
    """Whatever is put together, it is not left to scikit-learn, or both agree."""
    text = "\n".join(" ".join(row).partition("#")[0] for row in rows).encode()
    fast = letor._by_sklearn(text, Limits())
    assert fast is None or same(fast, letor._line_by_line(text, "file"))


@pytest.mark.shared
@pytest.mark.parametrize(("part", "rows", "queries"), [("train", 3005, 201), ("test", 768, 50)])
def test_files_with_sizes_beside_them_are_read(shared: Path, part, rows, queries):
    """LightGBM's example: cells as scikit-learn reads them, queries by size in row order."""
    path = shared / "ltr_lightgbm" / f"rank.{part}.gz"
    data = load_letor(path)
    expected, labels = load_svmlight_file(str(path))
    assert data.X.shape == (rows, 300)
    assert np.array_equal(data.X, expected.toarray())
    assert np.array_equal(data.y, labels)
    assert np.bincount(data.qid)[1:].tolist() == np.loadtxt(path.with_suffix(".query"), int).tolist()
    assert data.n_queries == queries
    assert data.docid is None


@pytest.mark.shared
def test_a_fold_is_read_in_its_parts(shared: Path):
    """Cranfield in LETOR form: 135, 45 and 45 queries, 9,793 rows, features by their names, no query twice."""
    for fold in range(1, 6):
        parts = load_letor_parts(shared / "letor_cranfield" / f"Fold{fold}")
        assert {part: data.n_queries for part, data in parts.items()} == {"train": 135, "vali": 45, "test": 45}
        assert sum(map(len, parts.values())) == 9793
        assert len(set().union(*(data.qid.tolist() for data in parts.values()))) == 225
    train = parts["train"]
    assert train.feature_names[:2] == ("bm25_full", "bm25_title")
    assert train.X.shape[1] == len(train.feature_names) == 19
    assert train.docid.dtype.kind == "U"
    assert set(train.y.tolist()) == {0, 1, 2, 3, 4}


@pytest.mark.shared
def test_queries_of_sizes_files_are_distinct_over_parts(shared: Path):
    """They carry the part's name."""
    parts = load_letor_parts(shared / "ltr_lightgbm")
    assert list(parts) == ["train", "test"]
    assert parts["train"].qid[:3].tolist() == ["train-1", "train-2", "train-2"]
    assert set(parts["test"].qid) == {f"test-{number}" for number in range(1, 51)}


def test_all_parts_get_the_same_columns(tmp_path: Path):
    """A feature that only one part has is 0 in the others, and the kind of matrix is the same."""
    write(tmp_path / "train.txt", "1 qid:1 1:1\n")
    write(tmp_path / "vali.txt", "1 qid:2 2:1\n")
    write(tmp_path / "set.test.txt.gz", gzip.compress(b"1 qid:3 4:1\n"))
    parts = load_letor_parts(tmp_path)
    assert [data.X.tolist() for data in parts.values()] == [[[1, 0, 0, 0]], [[0, 1, 0, 0]], [[0, 0, 0, 1]]]
    assert all(issparse(data.X) for data in load_letor_parts(tmp_path, sparse=True).values())


def test_a_feature_0_in_one_part_counts_for_all(tmp_path: Path):
    """Then columns count from feature 0 everywhere, else they would be shifted against each other."""
    write(tmp_path / "train.txt", "1 qid:1 0:5 1:1\n")
    write(tmp_path / "test.txt", "1 qid:2 1:1\n")
    parts = load_letor_parts(tmp_path)
    assert parts["train"].X.tolist() == [[5, 1]]
    assert parts["test"].X.tolist() == [[0, 1]]
    assert parts["test"].feature_names == ("f0", "f1")


def test_few_cells_of_many_are_kept_sparse(tmp_path: Path):
    """Below 30 % of the cells and above 64 MB X is a CSR matrix, by request always or never."""
    wide = write(tmp_path / "wide", "1 qid:1 3000:1\n" * 3000)
    assert issparse(load_letor(wide).X)
    path = write(tmp_path / "train.txt", FILE)
    assert load_letor(path, sparse=True).X.toarray().tolist() == load_letor(path, sparse=False).X.tolist() == X


def test_query_ids_may_be_text(tmp_path: Path):
    """One id that is no integer makes all of them text."""
    data = load_letor(write(tmp_path / "train.txt", FILE.replace("qid:3", "qid:x3")))
    assert data.qid.tolist() == ["7", "7", "x3"]


@each_row("beside", ["rank.train.query", "rank.train.group", "rank.query", "rank.train.query.gz"])
def test_sizes_are_found_beside_the_file(tmp_path: Path, beside):
    """Under the names that LightGBM and XGBoost use."""
    write(tmp_path / beside, gzip.compress(b"1\n2\n") if beside.endswith(".gz") else "1\n2\n")
    data = load_letor(write(tmp_path / "rank.train.gz", gzip.compress(b"1 1:1\n0 1:2\n2 1:3\n")))
    assert data.qid.tolist() == [1, 2, 2]


def test_names_of_features_are_found_above(tmp_path: Path):
    """``features.json`` names features by number, in the folder or the one above; what it leaves out is numbered."""
    write(tmp_path / "features.json", '{"features": {"1": "bm25", "4": "length"}}')
    data = load_letor(write(tmp_path / "Fold1" / "train.txt", FILE))
    assert data.feature_names == ("bm25", "f2", "f3", "length")
    assert data.X.shape == (3, 4)
    write(tmp_path / "Fold1" / "features.json", '["of", "another", "form"]')
    write(tmp_path / "features.json", '{"other": {}}')
    assert load_letor(tmp_path / "Fold1" / "train.txt").feature_names == ("f1", "f2", "f3")


BAD = {
    "empty": ("", "train.txt is empty: expected lines 'label qid:id index:value ...'"),
    "text as label": ("1 qid:1 1:1\nx qid:1 1:1\n", "train.txt, line 2, label: expected a finite number, found 'x'"),
    "a missing colon": ("1 qid:1 1:1 2;3\n", "train.txt, line 1: expected 'index:value', found '2;3'"),
    "NaN": ("1 qid:1 1:1\n\n1 qid:1 3:nan\n", "train.txt, line 3, feature 3: expected a finite number, found 'nan'"),
    "no value": ("1 qid:1 1:\n", "train.txt, line 1, feature 1: expected a finite number, found ''"),
    "a decimal comma": ("1 qid:1 1:2,5\n", "found '2,5'; the decimal sign is a point"),
    "a negative index": ("1 qid:1 -1:2\n", "expected 'index:value', found '-1:2'"),
    "an index twice": ("1 qid:1 1:2 1:3\n", "train.txt, line 1: a feature index is given twice"),
    "a line without qid": ("1 qid:1 1:1\n1 1:1\n", "train.txt, line 2: expected 'label qid:id index:value ...' in all"),
    "a line with qid": ("1 1:1\n1 qid:1 1:1\n", "train.txt, line 2: expected 'label qid:id index:value ...' in all"),
    "an empty qid": ("1 qid: 1:1\n", "train.txt, line 1: expected 'label qid:id"),
    "docid not everywhere": (FILE.replace("#docid = B", "# B"), "train.txt, line 2: expected '#docid = D' in all rows"),
    "Latin-1 in a docid": (
        "1 qid:1 1:1 #docid = \xe4\n".encode("latin-1"),
        "expected document ids in UTF-8, found b'\\xe4'",
    ),
    "no queries at all": ("1 1:1\n", "no file of query sizes beside it: expected train.txt.query or train.txt.group"),
    "Latin-1": ("1 qid:\xe4 1:1\n".encode("latin-1"), "train.txt, line 1: expected UTF-8 text"),
}


@each_row("case", BAD)
def test_a_bad_file_is_refused_with_what_was_found(tmp_path: Path, case):
    """File and line stand in the message."""
    text, message = BAD[case]
    with pytest.raises(FileFormatError) as caught:
        load_letor(write(tmp_path / "train.txt", text))
    assert message in str(caught.value)


@each_row(
    ("sizes", "message"),
    [("1\n1\n", r"add up to 2, but .*train has 3 rows"), ("1\ntwo\n", r"line 2: expected the size of a query")],
)
def test_sizes_that_do_not_fit_are_refused(tmp_path: Path, sizes, message):
    """The sum and the rows are named, or the line."""
    write(tmp_path / "train.query", sizes)
    with pytest.raises(FileFormatError, match=message):
        load_letor(write(tmp_path / "train", "1 1:1\n0 1:2\n2 1:3\n"))


def test_a_folder_is_refused_with_what_it_holds(tmp_path: Path):
    """No folder, no part, two files for a part, a query on both sides."""
    with pytest.raises(InvalidInput, match="there is no folder"):
        load_letor_parts(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match=r"cannot read 'xxx.*: File name too long"):
        load_letor_parts("x" * 300)
    write(tmp_path / "train.conf", "task = train")
    with pytest.raises(InvalidInput, match=r"no file named train, vali or test; it contains \['train.conf'\]"):
        load_letor_parts(tmp_path)
    write(tmp_path / "train.txt", FILE)
    write(tmp_path / "test.txt", FILE)
    with pytest.raises(InvalidInput, match="query 3 is in train and in test"):
        load_letor_parts(tmp_path)
    write(tmp_path / "rank.train", FILE)
    with pytest.raises(InvalidInput, match=r"several files for train: \['rank.train', 'train.txt'\]"):
        load_letor_parts(tmp_path)
    with pytest.raises(InvalidInput, match="there is no file"):
        load_letor(tmp_path / "nowhere.txt")
