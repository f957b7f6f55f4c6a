"""``rankeval search`` and ``rankeval page``: from files of texts to a run, and to queries to be read."""

from __future__ import annotations

from pathlib import Path

import pytest

import rankeval as rk
from rankeval.text import BM25, VectorSpace, read_texts

DOCUMENTS = (
    ".I 1\n.T\nwings\n.W\nwings of birds\n.I 2\n.W\nbirds and wings\n.I 3\n.W\n\n.I 4\n.W\nthe <b>fish</b> swims\n"
)
QUERIES = ".I 001\n.W\nwings of birds\n.I 004\n.W\nthe fish\n.I 005\n.W\nnothing\n.I 007\n.W\n"


@pytest.fixture
def collection() -> None:
    """Write four documents, one of them empty, four queries whose numbers count nothing, and judgments."""
    Path("docs").write_text(DOCUMENTS)
    Path("queries").write_text(QUERIES)
    rk.Qrels.from_dict({"1": {"1": 1, "2": 0}, "2": {"4": 1}, "3": {"1": 1}}).write("qrels")


@pytest.mark.usefixtures("collection")
@pytest.mark.parametrize("scheme", ["lnc.ltc", "bm25"])
def test_a_search_writes_the_run_of_python_and_prints_counts(rankeval, scheme):
    """The file and what is printed are the same rows, under the scheme as their tag; counts are on stderr."""
    options = ("--query-ids", "order", "--stem", "english", "--stop", "english", "--scheme", scheme, "--k", "2")
    how = {"stem": "english", "stop": "english"}
    ranker = BM25(**how) if scheme == "bm25" else VectorSpace(scheme, **how)
    expected = ranker.fit(read_texts("docs")).search(read_texts("queries", ids="order"), k=2)
    code, out, err = rankeval("search", "docs", "queries", *options, "--out", "found.run")
    assert (code, out) == (0, "")
    assert err == "4 documents, 1 empty; 4 queries, 1 empty\n3 rows; 2 queries found nothing\n"
    found = rk.Run.read("found.run")
    assert (found.name, found.to_frame().equals(expected.to_frame())) == (expected.name, True)
    assert rankeval("search", "docs", "queries", *options) == (0, Path("found.run").read_text(), err)


@pytest.mark.usefixtures("collection")
def test_fields_are_chosen_and_the_suffix_chooses_the_format(rankeval):
    call = ("search", "docs", "queries", "--query-ids", "order", "--query-field", "text")
    assert rankeval(*call, "--field", "title", "--out", "found.parquet")[0] == 0
    assert rk.Run.read("found.parquet").to_frame()[["qid", "docid"]].to_numpy().tolist() == [["1", "1"]]


@pytest.mark.usefixtures("collection")
def test_a_page_is_that_of_python(rankeval):
    """For one run and for two; what the texts hold stays text; it is printed if no file is named."""
    for scheme in ("BM25", "nnn.nnn"):
        assert (
            rankeval("search", "docs", "queries", "--query-ids", "order", "--scheme", scheme, "--out", scheme)[0] == 0
        )
    files = ("--documents", "docs", "--topics", "queries", "--query-ids", "order")
    call = ("page", "qrels", "BM25", "nnn.nnn", *files, "--queries", "2", "-m", "AP", "--seed", "3", "--depth", "1")
    code, out, err = rankeval(*call, "--out", "page.html")
    assert (code, out, err) == (0, "", "")
    scored = {name: rk.evaluate("qrels", name, measures="AP", name=name) for name in ("BM25", "nnn.nnn")}
    runs = {name: name for name in scored}
    how = {"texts": read_texts("docs"), "needs": read_texts("queries", ids="order")}
    page = rk.report.report_for_queries(scored, runs, "qrels", **how, queries=2, rng=3, depth=1)
    assert Path("page.html").read_text() == page
    Path("of=k1.run").write_bytes(Path("nnn.nnn").read_bytes())
    assert rankeval("page", "qrels", "ours=BM25", "of=k1.run", "-m", "AP", "--out", "named.html")[0] == 0
    assert "<title>of=k1.run against ours</title>" in Path("named.html").read_text()
    code, out, _ = rankeval("page", "qrels", "BM25", *files, "-m", "AP")
    assert (code, "&lt;b&gt;" in out, "<b>fish" in out) == (0, True, False)
    assert rankeval("page", "qrels", "BM25", "-m", "AP", "--out", "short.html")[0] == 0


@pytest.mark.usefixtures("collection")
def test_a_page_of_a_registered_collection_is_refused_and_a_search_is_not(rankeval, monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER", "ledger")
    grades = {f"q{n}": {f"doc-{n:04d}-{m:05d}": m % 2 for m in range(20)} for n in range(20)}
    rk.Qrels.from_dict(grades).write("test.qrels")
    rk.Run.from_dict({q: {d: len(d) + m for m, d in enumerate(of)} for q, of in grades.items()}).write("test.run")
    assert rankeval("guard", "register", "web", "held-out", "--qrels", "test.qrels")[0] == 0
    code, out, err = rankeval("page", "test.qrels", "test.run", "--out", "page.html")
    assert (code, out, Path("page.html").exists()) == (1, "", False)
    assert err.startswith("refused: ")
    Path("q.tsv").write_text("".join(f"{q}\twings\n" for q in grades))
    assert rankeval("search", "docs", "q.tsv", "--out", "found.run")[0] == 0


WRONG = {
    "queries of Cranfield": (["search", "docs", "queries"], "queries, line 1: record 1 is written as 001; ids must be"),
    "scheme": (["search", "docs", "docs", "--scheme", "ltc"], "--scheme is 'ltc'; expected the letters"),
    "k": (["search", "docs", "docs", "--k", "0"], "--k is 0; expected a whole number"),
    "stem": (["search", "docs", "docs", "--stem", "klingon"], "unknown stemmer 'klingon'"),
    "field": (["search", "docs", "docs", "--field", "abstract"], "unknown field of docs 'abstract'; known are: "),
    "no file": (["search", "docs", "nothing"], "there is no file 'nothing'"),
    "no rows": (["search", "docs", "q.tsv", "--out", "found.run"], "there are no rows to write"),
    "no folder": (["search", "docs", "docs", "--out", "a/b.run"], "there is no folder 'a'"),
    "limit": (["search", "docs", "docs", "--limit", "line=4"], "raise it: --limit line=..."),
    "measure": (["page", "qrels", "x.run", "-m", "APP"], "unknown measure 'APP'"),
    "three runs": (["page", "qrels", "x.run", "y.run", "z.run"], "a page takes one or two systems, found 3"),
    "queries": (["page", "qrels", "x.run", "--queries", "0"], "--queries is 0; expected a whole number"),
}


@pytest.mark.usefixtures("collection")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_answered_in_one_line(rankeval, name):
    call, problem = WRONG[name]
    Path("q.tsv").write_text("q\tnothing\n")
    for run in ("x.run", "y.run", "z.run"):
        rk.Run.from_dict({"1": {"1": 1.0}}).write(run)
    code, out, err = rankeval(*call)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert problem in err


@pytest.mark.shared
def test_cranfield_is_ranked_from_its_own_files(rankeval, shared):
    """No file is made by hand between the collection and the evaluation."""
    folder = shared / "cranfield"
    call = ("search", folder / "cran.all.1400.gz", folder / "cran.qry", "--query-ids", "order", "--scheme", "lnc.ltc")
    code, _, err = rankeval(*call, "--k", "100", "--out", "lnc.run")
    assert code == 0
    assert err.startswith("1,400 documents, 2 empty; 225 queries, 0 empty\n")
    found = rk.evaluate(folder / "qrels.binary.txt.gz", "lnc.run", measures="AP").mean()["AP"]
    assert found == pytest.approx(0.281, abs=0.01)
