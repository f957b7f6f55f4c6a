"""The shapes that users bring give the values of the plain form, ``{qid: {docid: number}}``.

Files of ranx are made by ranx; those of BEIR and the frames of PyTerrier and ir_measures are written as documented.
"""

from __future__ import annotations

import gzip
import json
import re
import tracemalloc
from io import BytesIO, StringIO
from time import process_time

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csr_matrix
from tables import each_row

import rankeval as rk
from rankeval.errors import FileFormatError, InvalidInput, LimitExceeded

try:  # `.[test]` does not install it; in wider circles, its absence is a failure
    import ranx
    from ranx.io import save_json
except ImportError:
    ranx = None

QRELS = {"1": {"31": 2, "7": 0, "12": 1}, "20": {"31": 1, "5": 0}, "3": {"9": 0, "31": 1}}
RUN = {"1": {"7": 4.5, "31": 3.25, "99": -1.0}, "20": {"5": 0.5, "31": 0.25}, "3": {"31": 1e-3}}
MEASURES = ["nDCG@10", "AP", "RR", "P@5"]


def rows(values, *names):
    found = [(qid, docid, number) for qid, known in values.items() for docid, number in known.items()]
    return pd.DataFrame(found, columns=list(names))


def order_of(run):
    return {qid: sorted(known, key=known.get, reverse=True) for qid, known in run.items()}


def by_rank(run):
    return {qid: {docid: -rank for rank, docid in enumerate(ids, start=1)} for qid, ids in order_of(run).items()}


def text(path, content):
    path.write_bytes(content.encode())
    return path


def tsv(path, values):
    """Write BEIR's file of judgments, with the line ends of Windows."""
    lines = ["query-id\tcorpus-id\tscore", *map("\t".join, rows(values, "q", "d", "n").astype(str).to_numpy().tolist())]
    return text(path, "\r\n".join([*lines, ""]))


def packed(path, content):
    path.write_bytes(gzip.compress(content.encode()))
    return path


def saved(thing, path, kind=None):
    thing.save(str(path), kind=kind)
    return path


def json_of_ranx(values, path):
    """Write what its `save` writes; without numba's compiler, as in these tests, its own dict has keys of NumPy."""
    save_json(values, str(path))
    return path


def of_pyterrier(run):
    frame = rows(run, "qid", "docno", "score").assign(query="some text")
    return frame.assign(
        rank=frame.groupby("qid")["score"].rank(ascending=False).astype(int) - 1, docid=range(len(frame))
    )


COLUMNS = pd.Series, pl.Series, pa.array
LISTS = {
    "lists": order_of,
    "tuples": lambda run: {qid: tuple(ids) for qid, ids in order_of(run).items()},
    "arrays": lambda run: {qid: np.array(ids) for qid, ids in order_of(run).items()},
    "columns": lambda run: {qid: COLUMNS[len(qid) % 3](ids) for qid, ids in order_of(run).items()},
    "iterators": lambda run: {qid: iter(ids) for qid, ids in order_of(run).items()},
    "dicts among them": lambda run: {
        qid: ids if place else by_rank(run)[qid] for place, (qid, ids) in enumerate(order_of(run).items())
    },
}  # fmt: skip
RUNS = {
    "pairs": lambda run, _: {qid: list(known.items()) for qid, known in run.items()},
    "lists of pairs": lambda run, _: {qid: list(map(list, known.items())) for qid, known in run.items()},
    "json": lambda run, folder: text(folder / "run.json", json.dumps(run)),
    "json in lines": lambda run, folder: text(folder / "run", "\ufeff" + json.dumps(run, indent=2)),
    "json of pairs": lambda run, folder: packed(
        folder / "run.json.gz", json.dumps({qid: list(known.items()) for qid, known in run.items()})
    ),
    "results of beir": lambda run, _: {qid: {d: float(s) for d, s in known.items()} for qid, known in run.items()},
    "ranx": lambda run, _: ranx.Run(run, name="bm25"),
    "frame of ranx": lambda run, _: ranx.Run(run).to_dataframe(),
    "json of ranx": lambda run, folder: json_of_ranx(run, folder / "run.json"),
    "trec of ranx": lambda run, folder: saved(ranx.Run(run, name="bm25"), folder / "run.trec"),
    "text of ranx": lambda run, folder: saved(ranx.Run(run, name="bm25"), folder / "run.txt"),
    "parquet of ranx": lambda run, folder: saved(ranx.Run(run), folder / "run.parq"),
    "pyterrier": lambda run, _: of_pyterrier(run),
    "pyterrier in polars": lambda run, _: pl.from_pandas(of_pyterrier(run)),
    "ir_measures": lambda run, _: [ir_measures.ScoredDoc(*row) for row in rows(run, *"qds").to_numpy().tolist()],
    "frame of ir_measures": lambda run, _: rows(run, "query_id", "doc_id", "score"),
}  # fmt: skip
JUDGED = {
    "pairs": lambda qrels, _: {qid: list(known.items()) for qid, known in qrels.items()},
    "json": lambda qrels, folder: text(folder / "qrels.json", json.dumps(qrels)),
    "beir": lambda qrels, folder: tsv(folder / "test.tsv", qrels),
    "rows of beir": lambda qrels, _: rows(qrels, "query-id", "corpus-id", "score").to_dict("records"),
    "ranx": lambda qrels, _: ranx.Qrels(qrels),
    "json of ranx": lambda qrels, folder: json_of_ranx(qrels, folder / "qrels.json"),
    "trec of ranx": lambda qrels, folder: saved(ranx.Qrels(qrels), folder / "qrels.trec"),
    "parquet of ranx": lambda qrels, folder: saved(ranx.Qrels(qrels), folder / "qrels.parquet"),
    "pyterrier": lambda qrels, _: rows(qrels, "qid", "docno", "label").assign(iteration="0"),
    "ir_measures": lambda qrels, _: [
        ir_measures.Qrel(qid, docid, int(grade)) for qid, docid, grade in rows(qrels, *"qdg").to_numpy().tolist()
    ],
    "frame of ir_measures": lambda qrels, _: rows(qrels, "query_id", "doc_id", "relevance").assign(iteration="0"),
}  # fmt: skip
if ranx is None:
    RUNS, JUDGED = ({shape: make for shape, make in table.items() if "ranx" not in shape} for table in (RUNS, JUDGED))


def same(truth, ranking, qrels, run):
    """Compare with typed objects of plain dicts, which nothing has to guess."""
    wanted = rk.evaluate(rk.Qrels.from_dict(qrels), rk.Run.from_dict(run), measures=MEASURES).per_query
    pd.testing.assert_frame_equal(rk.evaluate(truth, ranking, measures=MEASURES).per_query, wanted)


def made(seed):
    """Return a random collection whose runs hold neither all judged documents nor these alone."""
    rng = np.random.default_rng(seed)
    queries, ids = [f"q{one}" for one in range(12)], [str(one) for one in range(40)]
    qrels = {
        qid: dict(zip(rng.permutation(ids)[:15].tolist(), rng.integers(0, 4, 15).tolist(), strict=True))
        for qid in queries
    }
    run = {
        qid: dict(zip(rng.permutation(ids)[:20].tolist(), rng.normal(5, 3, 20).tolist(), strict=True))
        for qid in queries
    }
    return qrels, run


def real(shared):
    qrels, run = ({}, {})
    for rows_, found in (
        (rk.Qrels.read(shared / "cranfield" / "qrels.graded.txt.gz"), qrels),
        (rk.Run.read(shared / "cranfield" / "runs" / "tfidf_cos.run.gz"), run),
    ):
        for qid, docid, number in rows_.to_frame().to_numpy().tolist():
            found.setdefault(qid, {})[docid] = number
    return qrels, run


@each_row("seed", [None, 1, 2])
@each_row("shape", RUNS)
def test_a_run_in_each_shape_gives_the_values_of_a_dict(shape, seed, tmp_path):
    qrels, run = (QRELS, RUN) if seed is None else made(seed)
    same(qrels, RUNS[shape](run, tmp_path), qrels, run)


@each_row("seed", [None, 1, 2])
@each_row("shape", JUDGED)
def test_judgments_in_each_shape_give_the_values_of_a_dict(shape, seed, tmp_path):
    qrels, run = (QRELS, RUN) if seed is None else made(seed)
    same(JUDGED[shape](qrels, tmp_path), run, qrels, run)


@each_row("seed", [None, 1, 2])
@each_row("shape", LISTS)
def test_a_ranked_list_has_the_scores_of_its_ranks(shape, seed, tmp_path):
    """The first -1, the next -2; in a file too."""
    qrels, run = (QRELS, RUN) if seed is None else made(seed)
    same(qrels, LISTS[shape](run), qrels, by_rank(run))
    same(qrels, text(tmp_path / "run.json", json.dumps(order_of(run))), qrels, by_rank(run))
    assert rk.Run.from_dict({"q": ["b", "a"]}).score.tolist() == [-1, -2]


@pytest.mark.shared
def test_all_shapes_of_a_real_collection_give_the_values_of_a_dict(shared, tmp_path):
    """Cranfield's judgments, and a run whose scores have no ties within ten documents."""
    qrels, run = real(shared)
    for shape in JUDGED.values():
        same(shape(qrels, tmp_path), run, qrels, run)
    for shape in RUNS.values():
        same(qrels, shape(run, tmp_path), qrels, run)
    for shape in LISTS.values():
        same(qrels, shape(run), qrels, by_rank(run))


@each_row("make", [list, tuple, set, frozenset, np.array])
def test_listed_documents_are_relevant(make):
    """In judgments each has the grade 1, as in sentence-transformers and LlamaIndex; their order says nothing."""
    listed = {"q1": make(["a", "b"]), "q2": make(["c"])}
    run = {"q1": {"x": 3, "a": 2, "b": 1}, "q2": {"y": 2, "c": 1}}
    same(listed, run, {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}}, run)


@each_row(
    ("given", "problem"),
    [
        ({"q": ["a", "b", "a"]}, "document 'a' occurs twice in the list of query 'q'"),
        ({"q": [("a", 1), ("a", 2)]}, "document 'a' occurs twice in the list of query 'q'"),
        ({"q": "abc"}, "query 'q' has a str"),
        ({"q": {"a", "b"}}, "query 'q' has a set"),
        ({"q": 3}, "query 'q' has a int"),
        ({"q": pd.DataFrame({"docno": ["a"]})}, "query 'q' has a DataFrame"),
        ({"q": [{"id": "a"}]}, "query 'q' has a dict as document 0"),
        ({"q": [("a", 1), "b", ["c", 2]]}, "query 'q' has a list as document 2"),
        ({"q": [("a", "b")]}, "expected numbers, found 'b'"),
        ({"q": [1.5]}, "ids are text or integers"),
        ({"q": [None]}, "has no id in row 0"),
    ],
)
def test_lists_that_are_no_ranking_are_refused(given, problem):
    with pytest.raises(InvalidInput, match=problem):
        rk.Run.from_dict(given)


def test_an_empty_list_retrieved_nothing():
    assert len(rk.Run.from_dict({"q": [], "p": ["a"]})) == 1


@each_row(
    ("content", "problem"),
    [
        ('{"q": {"a": 1, "b": 2, "a": 3}}', "the key 'a' occurs twice"),
        ('{"q": {"a": 1}, "p": {}, "q": {"b": 1}}', "the key 'q' occurs twice"),
        ('{"q": ["a", "a"]}', "document 'a' occurs twice"),
        ('{"q": {"a": 1}', "Expecting ',' delimiter"),
        ('{"q": {"a": 1}} {"p": {"a": 1}}', "Extra data"),
        ('{"q": {"a": NaN}}', "query 'q', document 'a', column score: expected a finite number"),
        ('{"q": {"a": 1e999}}', "query 'q', document 'a', column score: expected a finite number"),
        ('{"q": {"b": 1, "a": "x"}}', "query 'q', document 'a', column score: expected a finite number"),
        ('{"q": {"a": null}}', "query 'q', document 'a', column score"),
        ('{"q": {"a\\u0000": 1}}', "query 'q', document '.*', column docid"),
        ('{"q": {"a\\ud800": 1}}', "query 'q', document '.*', column docid"),
        ('{"q": {}}', "is empty"),
        ('{"q": ' + "[" * 100_000, "recursion"),
        ('{"q": {"a": {"b": ["c"]}}}', "query 'q', document 'a', column score"),
        ('{"q": {"a": 9007199254740993}}', "query 'q', document 'a', column score"),
    ],
)
def test_json_that_is_no_run_is_refused_by_its_path(content, problem, tmp_path):
    with pytest.raises(FileFormatError, match=rf"run\.json.*{problem}"):
        rk.Run.read(text(tmp_path / "run.json", content))


RECORDS = [{"qid": "q1", "docid": "d1", "score": 2.5}, {"qid": "q1", "docid": "d2", "score": 1}]
AS_RECORDS = {
    "array": json.dumps(RECORDS),
    "array, indented": json.dumps(RECORDS, indent=2),
    "array behind a mark and blanks": "\ufeff\n  " + json.dumps(RECORDS),
    "lines": "\n".join(map(json.dumps, RECORDS)),
    "lines with blank ones and CRLF": "\r\n\r\n".join(map(json.dumps, RECORDS)) + "\r\n",
    "other names and fields": json.dumps(
        [{"query_id": one["qid"], "docno": one["docid"], "score": one["score"], "text": ["x"]} for one in RECORDS]
    ),
    "numbers as text": json.dumps([{**one, "score": str(one["score"])} for one in RECORDS]),
}


@each_row("name", ["file", "run.json", "run.jsonl", "run.txt", "run.csv", "run.json.gz"])
@each_row("form", AS_RECORDS)
def test_records_of_json_are_read_like_a_frame(tmp_path, form, name):
    """Whatever the suffix, and whether indented or not."""
    content = AS_RECORDS[form]
    path = packed(tmp_path / name, content) if name.endswith(".gz") else text(tmp_path / name, content)
    assert rk.Run.read(path).to_frame().to_numpy().tolist() == [["q1", "d1", 2.5], ["q1", "d2", 1]]


@each_row("indent", [None, 0, 3])
def test_one_record_is_read_with_and_without_indentation(tmp_path, indent):
    path = text(tmp_path / "one", json.dumps(RECORDS[0], indent=indent))
    assert rk.Run.read(path).to_frame().to_numpy().tolist() == [["q1", "d1", 2.5]]
    with pytest.raises(FileFormatError, match="column 'relevance'"):
        rk.Qrels.read(path)


OTHER_SHAPES = {
    "no turns": {"run_name": "s", "turns": [{"turn_id": "1_1"}]},
    "no ratings": {"id_field": "id", "index": "movies", "queries": [{"text": "q"}]},
    "one query": {"q1": {"d1": 1}, "name": "bm25"},
    "lists": [["q1", "d1", 1]],
    "ids": ["d1", "d2"],
}


@each_row("name", ["file", "file.json", "file.jsonl", "file.txt"])
@each_row("shape", OTHER_SHAPES)
def test_json_of_another_shape_is_refused_by_its_shape(tmp_path, shape, name):
    """In the same words with and without indentation, and never as TREC text."""
    said = set()
    for indent in (None, 1):
        with pytest.raises(
            FileFormatError, match=r"or records with qid, docid and relevance, found an (array|object)"
        ) as no:
            rk.Qrels.read(text(tmp_path / name, json.dumps(OTHER_SHAPES[shape], indent=indent)))
        assert no.value.remedy.endswith("rk.Qrels.from_dict")
        said.add(str(no.value))
    assert len(said) == 1


def test_lines_whose_first_value_is_an_object_are_lines(tmp_path):
    """As many tools write their results: "Extra data: line 2" was all that was said."""
    line = json.dumps({"query": {"id": "1"}, "system": "P", "found": [{"doc_id": "a", "rank": 0, "score": 1.6}]})
    with pytest.raises(
        FileFormatError, match=r"no column 'docid', no column 'score': its columns are \['query', 'system', 'found'\]"
    ) as no:
        rk.Run.read(text(tmp_path / "results.jsonl", f"{line}\n{line}\n"))
    assert no.value.remedy == "write one object for each document, without lists or objects in it"


def test_a_query_of_trec_text_may_begin_like_json(tmp_path):
    """If its first line is a row; any other text that begins so is JSON, unless the format is named."""
    for query in ("{", "{a}", "[1]", '["q"]'):
        assert rk.Run.read(text(tmp_path / "run", f"{query} Q0 d 1 2.5 t\n")).qid.to_pylist() == [query]
        assert rk.Qrels.read(text(tmp_path / "qrels", f"{query} 0 d 1\n")).qid.to_pylist() == [query]
    for content in ("{'q1': {'d1': 1}}", "[q1 d1", "{", "[1, 2"):
        with pytest.raises(FileFormatError, match=r"is not as JSON .* must be"):
            rk.Run.read(text(tmp_path / "run", content))
    with pytest.raises(FileFormatError, match="expected 6 columns"):
        rk.Run.read(text(tmp_path / "run", "{'q1': {'d1': 1}}"), "trec")


def test_a_named_format_of_json_is_read_as_this_alone(tmp_path):
    path = text(tmp_path / "run", AS_RECORDS["lines"])
    assert len(rk.Run.read(path, "jsonl")) == 2
    with pytest.raises(FileFormatError, match="Extra data"):
        rk.Run.read(path, "json")
    path = text(tmp_path / "run", AS_RECORDS["array"])
    assert len(rk.Run.read(path, "json")) == 2
    with pytest.raises(FileFormatError, match="expected one JSON object"):
        rk.Run.read(path, "jsonl")


def test_records_of_json_say_which_is_which(tmp_path):
    """As a frame does: the check for swapped arguments looks at objects of queries, which do not."""
    truth = [{"qid": f"q{q}", "docid": f"d{d}", "relevance": 0.1 + d / 7.3} for q in range(5) for d in range(8)]
    ranked = [{"qid": f"q{q}", "docid": f"d{d}", "score": int(d % 4 == 0)} for q in range(5) for d in range(8)]
    for indent in (None, 1):
        paths = [
            text(tmp_path / name, json.dumps(one, indent=indent))
            for name, one in (("t.json", truth), ("r.json", ranked))
        ]
        assert rk.evaluate(*paths, measures="nDCG").n_queries == 5


@each_row("numbers", [("2", "0"), ("1.5", "-3"), ("9007199254740992", "1")])
def test_numbers_as_text_are_the_same_in_memory_and_in_json(tmp_path, numbers):
    plain = {"q": dict(zip("ab", map(float, numbers), strict=True))}
    written = {"q": dict(zip("ab", numbers, strict=True))}
    for kind in (rk.Run, rk.Qrels):
        wanted = kind.from_dict(plain).to_frame()
        for given in (written, {"q": list(written["q"].items())}):
            pd.testing.assert_frame_equal(kind.from_dict(given).to_frame(), wanted, check_dtype=False)
            path = text(tmp_path / "file.json", json.dumps(given))
            pd.testing.assert_frame_equal(kind.read(path).to_frame(), wanted, check_dtype=False)
    for mixed in ({"q": {"a": "1", "b": 2}}, {"q": {"a": "one"}}, {"q": {"a": "0x10"}}):
        with pytest.raises(InvalidInput, match="expected numbers"):
            rk.Run.from_dict(mixed)
        with pytest.raises(FileFormatError, match="query 'q', document"):
            rk.Run.read(text(tmp_path / "file.json", json.dumps(mixed)))


def test_json_lines_are_told_from_json(tmp_path):
    """By the first value: a row begins with an id or a number, an object of queries with its documents."""
    path = text(tmp_path / "one", '{"qid": "q", "docid": "a", "score": 1}\n')
    assert rk.Run.read(path).source.format == "jsonl"
    assert rk.Run.read(text(tmp_path / "one", '{"qid": {"docid": 1, "score": 1}}\n')).source.format == "json"


def test_subtopics_of_json_are_aspects(tmp_path):
    nested = {"q": {"a": {"x": 1, "y": 0}}}
    found = rk.Qrels.read(text(tmp_path / "qrels.json", json.dumps(nested)))
    assert found.to_frame().equals(rk.Qrels.from_dict(nested).to_frame())


def test_json_that_expands_too_far_is_refused(tmp_path):
    packed(tmp_path / "run.json.gz", '{"q": {' + " " * (1 << 25) + '"a": 1}}')
    with pytest.raises(LimitExceeded):
        rk.Run.read(tmp_path / "run.json.gz")


def test_time_and_memory_of_json_grow_with_its_size(tmp_path):
    """Eight times the queries take about eight times as much, and not sixty-four."""
    taken = []
    for queries in (250, 2000):
        content = {f"q{qid}": {f"document {docid}": docid / 7 for docid in range(100)} for qid in range(queries)}
        path = text(tmp_path / "run.json", json.dumps(content))
        begin = process_time()
        tracemalloc.start()
        assert len(rk.Run.read(path)) == queries * 100
        taken.append((process_time() - begin, tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
    assert taken[1][0] < 24 * taken[0][0]
    assert taken[1][1] < 12 * taken[0][1]


@pytest.mark.needs("ranx")
def test_lz4_of_ranx_is_read(tmp_path):
    run = rk.Run.read(saved(ranx.Run(RUN), tmp_path / "run.lz4"))
    wanted = rk.Run.from_dict(RUN).to_frame()
    columns = ["qid", "docid"]
    found = run.to_frame().sort_values(columns, ignore_index=True)
    pd.testing.assert_frame_equal(found, wanted.sort_values(columns, ignore_index=True))


@each_row(
    ("index", "numbers", "expected"),
    [
        (["a", "b"], [0.5, 2.0], {"a": 0.5, "b": 2.0}),
        (["a", "b"], [1, 2], {"a": 1, "b": 2}),
        ([7, 9], [0.5, 2.0], {7: 0.5, 9: 2.0}),
        ([7, 9], [4, 2], {4: -1, 2: -2}),
        ([0, 1], ["x", "y"], {"x": -1, "y": -2}),
    ],
)
def test_a_series_with_documents_as_its_index_has_their_numbers(index, numbers, expected):
    """Whole values beside whole labels are ids: the labels are what a selection of rows left."""
    given = {"q": pd.Series(numbers, index=index)}
    assert rk.Run.from_dict(given).to_frame().equals(rk.Run.from_dict({"q": expected}).to_frame())
    same({"q": dict.fromkeys(expected, 1)}, given, {"q": dict.fromkeys(expected, 1)}, {"q": expected})


MATRIX = np.array([[1, 0], [0, 1]])
UNTAKEN = {
    "lists of ids": ([["a"], ["b", "c"]], {}, r"dict\(enumerate\(...\)\)"),
    "lists of whole ids": ([[1, 2], [3]], {}, r"dict\(enumerate\(...\)\)"),
    "lists of labels": (MATRIX.tolist(), {}, "one list of each, with qid="),
    "matrix": (MATRIX, {}, r"ravel\(\) of both, and qid=np.repeat"),
    "matrix with queries": (MATRIX, {"qid": [1, 2]}, r"give its ravel\(\), and the query of each number"),
    "sparse": (csr_matrix(MATRIX), {}, r"toarray\(\).ravel\(\) of both"),
    "sparse with queries": (coo_array(MATRIX), {"qid": [1, 2]}, r"give its toarray\(\).ravel\(\)"),
    "generator": (lambda: (one for one in (1, 0)), {"qid": [1, 1]}, "give a list of its values"),
    "generator without queries": (lambda: iter([1, 0]), {}, "or lists with qid="),
    "text in memory": (lambda: StringIO("q1 0 d1 1\n"), {}, "write the text to a file, and give its path"),
    "bytes in memory": (lambda: BytesIO(b"q1 0 d1 1\n"), {}, "write the text to a file, and give its path"),
    "address": ("https://user:secret@host/qrels", {}, "download the file, and give the path of the copy"),
}


@each_row("case", UNTAKEN)
def test_a_shape_that_is_not_taken_says_the_way_on(case):
    given, ids, remedy = UNTAKEN[case]
    made = [given() if callable(given) else given for _ in range(2)]
    with pytest.raises(InvalidInput) as refused:
        rk.evaluate(*made, **ids, measures="RR")
    assert re.search(remedy, refused.value.remedy)
    assert "secret" not in str(refused.value)


def test_an_open_file_is_refused_by_its_path(tmp_path):
    path = text(tmp_path / "qrels", "q1 0 d1 1\n")
    with path.open() as file, pytest.raises(InvalidInput, match="found an open file") as refused:
        rk.evaluate(file, {"q1": {"d1": 1.0}})
    assert refused.value.remedy == f"give its path, {str(path)!r}"


@each_row(
    "address",
    ["http://host/x", "https://host/x.csv?a=1", "s3://bucket/x.parquet", "hf://datasets/a/b.jsonl", "file:///x"],
)
def test_an_address_is_no_path(address):
    for read in (rk.Run.read, rk.Qrels.from_any, rk.text.read_texts, rk.datasets.load_letor):
        with pytest.raises(InvalidInput, match=rf"^path: an address \({address.partition('/')[0]}//...\) is not the"):
            read(address)
