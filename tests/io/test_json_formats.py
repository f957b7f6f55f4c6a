"""JSON of search engines, annotation tools and benchmarks: the rows that it means, or an error that names it.

The files of `field` were cut down from real ones; the others follow the exporters' sources.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tables import each_row

import rankeval as rk
from rankeval.datasets import load_mteb_results
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.formats import FORMATS, format_list

FIELD = Path(__file__).parent / "field"
HITS = [("d1", 7.5), ("d2", 7.5), ("d3", 1.25)]


def answer(hits=HITS, **more):
    """Return the answer of Elasticsearch to one search."""
    listed = [{"_index": "wiki", "_id": document, "_score": score, "_source": {}} for document, score in hits]
    total = {"value": len(hits), "relation": "eq"}
    shards = {"total": 2, "successful": 2, "skipped": 0, "failed": 0}
    return {"took": 3, "timed_out": False, "_shards": shards, "hits": {"total": total, "hits": listed}} | more


def rows(table, number):
    """Return {(query, document): number}."""
    frame = table.to_frame()
    return dict(zip(zip(frame["qid"], frame["docid"], strict=True), frame[number], strict=True))


def as_file(folder, content, name="f.json"):
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in content) if name.endswith("l") else json.dumps(content))
    return path


@each_row(
    ("name", "kind", "expected"),
    [
        ("es_rank_eval_request.json", rk.Qrels, {("JFK", "d1"): 3, ("JFK", "d2"): 0}),
        ("es_rank_eval_response.json", rk.Qrels, {("JFK", "d1"): 3}),
        ("es_rank_eval_response.json", rk.Run, {("JFK", "d1"): 7.1, ("JFK", "d9"): 6.0}),
        (
            "quepid_rre.json",
            rk.Qrels,
            {("star trek", "193"): 1, ("star trek", "157"): 2, ("star wars", "12180"): 1},
        ),
        ("cast_run.json", rk.Run, {("1_1", "D1"): 0.5}),
        ("llamaindex_qa.json", rk.Qrels, {("u1", "n1"): 1, ("u2", "n2"): 1}),
        ("records.json", rk.Qrels, {("q1", "d1"): 1, ("q1", "d2"): 0}),
        ("hf_qrels.jsonl", rk.Qrels, {("1", "31715818"): 1, ("3", "14717500"): 1}),
    ],
)
def test_files_that_people_have_are_read_at_the_first_attempt(name, kind, expected):
    """Indented or in one line, named by format= or not, as a file or as the object."""
    read = kind.read(FIELD / name)
    assert rows(read, kind._value) == expected
    if read.source.format not in ("jsonl", "json_records"):
        assert rows(kind.read(FIELD / name, format=read.source.format), kind._value) == expected
    text = (FIELD / name).read_text()
    content = json.loads(text) if name.endswith("json") else [json.loads(line) for line in text.splitlines()]
    assert rows(kind.from_any(content), kind._value) == expected


@each_row(
    ("name", "kind", "cause"),
    [
        ("umbrela.jsonl", rk.Qrels, "UMBRELA"),
        ("ubi_events.jsonl", rk.Qrels, "User Behavior Insights"),
        ("ubi_events.jsonl", rk.Run, "User Behavior Insights"),
        ("es_rank_eval_request.json", rk.Run, "_rank_eval"),
        ("quepid_rre.json", rk.Run, "Rated Ranking Evaluator"),
        ("llamaindex_qa.json", rk.Run, "LlamaIndex"),
        ("cast_run.json", rk.Qrels, "CAsT"),
        ("patapsco_results.jsonl", rk.Qrels, "patapsco"),
    ],
)
def test_other_files_are_refused_by_their_names(name, kind, cause):
    """One error with the file and the program that wrote it."""
    with pytest.raises(FileFormatError) as caught:
        kind.read(FIELD / name)
    assert caught.value.fields["where"] == str(FIELD / name)
    assert cause in str(caught.value)


def test_answers_of_a_search_engine_are_a_ranking(tmp_path: Path):
    """From memory, a file, a client's object and an answer that names its query."""
    answers = {"q1": answer(), "q2": answer([("d9", 2.0)]), "q3": answer([])}
    expected = {("q1", "d1"): 7.5, ("q1", "d2"): 7.5, ("q1", "d3"): 1.25, ("q2", "d9"): 2.0}
    run = rk.Run.from_any(answers)
    assert rows(run, "score") == expected
    assert run.notes == ("1 query without a document",)
    assert rows(rk.Run.read(as_file(tmp_path, answers)), "score") == expected

    class Response:
        def __init__(self, body):
            self.body = body

    assert rows(rk.Run.from_any({query: Response(body) for query, body in answers.items()}), "score") == expected
    named = [body | {"ext": {"ubi": {"query_id": query}}} for query, body in answers.items()]
    assert rows(rk.Run.from_any({"took": 5, "responses": named}), "score") == expected
    assert rows(rk.Run.from_any(named), "score") == expected


def test_answers_can_be_evaluated_as_they_are():
    """A query with an empty answer stays a query: it has the score of an empty ranking."""
    judged = {"q1": {"d2": 1, "d3": 1}, "q3": {"d1": 1}}
    found = rk.evaluate(judged, {"q1": answer(), "q3": answer([])}, measures=["AP", "RR"])
    wanted = rk.evaluate(judged, {"q1": dict(HITS), "q3": {}}, measures=["AP", "RR"])
    pd.testing.assert_frame_equal(found.per_query, wanted.per_query)
    assert any("1 query without a document" in note for note in found.notes)


@each_row("scores", [[None, None, None], [1.0, 3.0, 2.0], [None, 2.0, 1.0]])
def test_a_search_sorted_by_a_field_keeps_its_order(scores):
    """The order of the hits is the ranking, with scores -1, -2, ..., and a note says so."""
    hits = list(zip(["d2", "d1", "d3"], scores, strict=True))
    run = rk.Run.from_any({"q1": answer(hits), "q2": answer()})
    assert rows(run, "score") == {
        ("q1", "d2"): -1,
        ("q1", "d1"): -2,
        ("q1", "d3"): -3,
        **{("q2", document): score for document, score in HITS},
    }
    assert run.notes == ("1 query by rank: scores are missing or do not descend",)
    assert run.notes[0] in rk.evaluate({"q1": {"d1": 1}}, run).notes


FAILED = {"total": 2, "successful": 1, "failed": 1}


@each_row(
    ("content", "remedy"),
    [
        ({"q1": answer(timed_out=True)}, "allow_partial_search_results=false"),
        ({"q1": answer(_shards=FAILED)}, "allow_partial_search_results=false"),
        ({"q0": answer(), "q1": {"error": {"type": "parsing_exception"}, "status": 400}}, "search again"),
        ({"q1": answer([("d1", 2.0), ("d1", 1.0)])}, "find out which"),
        (answer(), 'rk.Run.from_any({"q1": answer})'),
        ({"took": 1, "responses": [answer()]}, 'rk.Run.from_any(dict(zip(qids, content["responses"])))'),
    ],
)
def test_what_is_no_whole_ranking_is_refused(tmp_path: Path, content, remedy):
    """A partial answer, a document that comes twice, and answers whose queries nobody knows."""
    with pytest.raises(InvalidInput) as caught:
        rk.Run.from_any(content)
    assert remedy in caught.value.fields["remedy"]
    with pytest.raises(FileFormatError) as caught:
        rk.Run.read(as_file(tmp_path, content))
    assert remedy in caught.value.fields["remedy"]


def test_the_remedies_for_answers_work():
    """The queries that the remedy asks for make a ranking of the answers."""
    content, qids = {"responses": [answer(), answer([])]}, ["q1", "q2"]
    assert len(rk.Run.from_any(dict(zip(qids, content["responses"], strict=True)))) == len(HITS)
    assert len(rk.Run.from_any({"q1": answer()})) == len(HITS)


RATED = {"193": 1, "157": 2}
EXPECTED = {("star trek", "193"): 1, ("star trek", "157"): 2}
LIST = [{"docId": document, "rating": grade} for document, grade in RATED.items()]
TEXTS = [{"docId": document, "rating": f"{grade}.000"} for document, grade in RATED.items()]
NUMBERS = [{"docId": int(document), "rating": grade} for document, grade in RATED.items()]
WORKBENCH = {"name": "n", "type": "IMPORT_JUDGMENT", "judgmentRatings": [{"query": "star trek", "ratings": LIST}]}
PLACED = {"template": "t.json", "placeholders": {"$query": "star trek", "$lang": "en"}}
GAINS = {document: {"gain": grade} for document, grade in RATED.items()}
GROUP = {"name": "g", "queries": [PLACED, PLACED | {"template": "u.json"}], "relevant_documents": GAINS}


@each_row(
    "content",
    [
        WORKBENCH,
        WORKBENCH | {"judgmentRatings": [{"query": "star trek", "ratings": TEXTS}]},
        WORKBENCH | {"judgmentRatings": [{"query": "star trek", "ratings": NUMBERS}]},
        WORKBENCH | {"judgmentRatings": {"star trek": LIST}},
        {"took": 1, "hits": {"hits": [{"_index": "s", "_id": "1", "_score": 1.0, "_source": WORKBENCH}]}},
        {"queries": [{"query": "star trek", "ratings": RATED}]},
        {"case_name": "c", "queries": [{"query_text": "star trek", "notes": None, "ratings": RATED}], "try": {}},
        {"queries": [{"query": "q", "ratings": None}, {"query": "star trek", "ratings": RATED}]},
        {"id_field": "id", "queries": [PLACED | {"relevant_documents": {"1": ["193"], "2": ["157"]}}]},
        {"id_field": "id", "query_groups": [GROUP]},
        {"id_field": "id", "query_groups": [GROUP | {"relevant_documents": [GAINS]}]},
        {"index": "i", "topics": [{"description": "d", "query_groups": [GROUP]}]},
        {"index": "i", "iterations": [{"topics": [{"query_groups": [GROUP]}]}]},
        {
            "query_placeholder": "$text",
            "queries": [{"placeholders": {"$text": "star trek", "$v": "[0.1]"}, "relevant_documents": GAINS}],
        },
        {"requests": [{"id": "star trek", "ratings": [{"_id": d, "rating": str(g)} for d, g in RATED.items()]}]},
    ],
)
def test_judgments_of_tools(tmp_path: Path, content):
    """The same judgments in each form that the tools write: numbers as text, ids as numbers, groups."""
    assert rows(rk.Qrels.from_any(content), "relevance") == EXPECTED
    assert rows(rk.Qrels.read(as_file(tmp_path, content)), "relevance") == EXPECTED
    indented = tmp_path / "f.txt"
    indented.write_text(json.dumps(content, indent=2))
    assert rows(rk.Qrels.read(indented), "relevance") == EXPECTED


@each_row(
    ("content", "problem"),
    [
        ({"queries": [{"query": "q", "ratings": {"a": 1}}, {"query": "q", "ratings": {"b": 1}}]}, "occurs twice"),
        ({"queries": [{"placeholders": {"$a": "x", "$b": "y"}, "relevant_documents": GAINS}]}, "placeholders"),
        (
            WORKBENCH | {"judgmentRatings": [{"query": "q", "ratings": LIST}, {"query": "q", "ratings": []}]},
            "occurs twice",
        ),
        ({"judgmentRatings": [{"query": "q", "ratings": [{"doc": "1", "rating": 1}]}]}, "docId"),
        ({"metric_score": 0.1, "details": {}, "failures": {"q1": {"error": {}}}}, "failed"),
    ],
)
def test_judgments_that_cannot_be_known_are_refused(content, problem):
    """One error says what is wrong."""
    with pytest.raises(InvalidInput, match=problem):
        rk.Qrels.from_any(content)


def test_unrated_documents_are_counted():
    """A _rank_eval answer has ratings only of the documents that the search found, and notes say so."""
    qrels = rk.Qrels.read(FIELD / "es_rank_eval_response.json")
    evaluation = rk.evaluate(qrels, rk.Run.read(FIELD / "es_rank_eval_response.json"))
    assert qrels.notes[1:] == ("1 document without a rating left out",)
    assert "; ".join(qrels.notes) in evaluation.notes
    assert "1 document without a rating left out" in repr(qrels)


def test_umbrela_grades_only_parsed_answers(tmp_path: Path):
    """A grade that stands for an answer that was not parsed is left out, and counted."""
    row = {"model": "m", "query": "t", "passage": "p", "prompt": "", "prediction": ""}
    judged = [("q1", "d1", 3, 1), ("q1", "d2", 0, 0), ("q1", "d3", 0, 1), ("q2", "d1", 0, 0)]
    lines = [
        row | {"qid": query, "docid": document, "judgment": grade, "result_status": status}
        for query, document, grade, status in judged
    ]
    qrels = rk.Qrels.read(as_file(tmp_path, lines, "f.jsonl"))
    assert rows(qrels, "relevance") == {("q1", "d1"): 3, ("q1", "d3"): 0}
    assert qrels.notes == ("2 rows left out: the judge's answer was not parsed",)
    assert qrels.notes[0] in rk.evaluate(qrels, {"q1": ["d1", "d2"]}).notes


def test_runs_of_conversations(tmp_path: Path):
    """Turns are queries, and passages of several responses are ranked as generate_run.py of the track does it."""
    passages = [{"id": "p1", "score": 0.9, "used": True}, {"id": "p2", "score": 0.5}]
    turns = [
        {"turn_id": "9-1_1", "responses": [{"rank": 1, "text": "", "passage_provenance": passages, "ptkb": []}]},
        {
            "turn_id": "9-1_2",
            "responses": [
                {"rank": 1, "provenance": [{"id": "p3", "score": 0.5}]},
                {"rank": 2, "provenance": [{"id": "p4", "score": 0.7}, {"id": "p3", "score": 0.1}]},
            ],
        },
        {
            "turn_id": "9-1_3",
            "responses": [
                {"rank": 1, "passage_provenance": [{"id": "p5", "score": 0.9}, {"id": "p6", "score": 0.1}]},
                {"rank": 2, "passage_provenance": [{"id": "p7", "score": 0.9}]},
            ],
        },
    ]
    run = rk.Run.read(as_file(tmp_path, {"run_name": "mine", "run_type": "automatic", "turns": turns}))
    assert run.name == "mine"
    assert rows(run, "score") == {
        ("9-1_1", "p1"): 0.9,
        ("9-1_1", "p2"): 0.5,
        ("9-1_2", "p3"): -1,
        ("9-1_2", "p4"): -2,
        ("9-1_3", "p5"): 0.9 / 2,
        ("9-1_3", "p7"): 0.9 / 3,
        ("9-1_3", "p6"): 0.1 / 2,
    }
    by_rank = "1 query by rank: scores are missing or do not descend"
    assert run.notes == (by_rank, "1 passage cited again left out")


def test_the_remedies_for_lists_of_results_work(tmp_path: Path):
    """The line that the error writes makes a run of patapsco's results and of RankLLM's candidates."""
    candidates = [{"docid": "7", "score": 2.0, "doc": {"segment": "t"}}, {"docid": "d2", "score": 1.0}]
    as_file(tmp_path, [{"query": {"text": "t", "qid": 1}, "candidates": candidates}], "f.jsonl")
    expected = {
        FIELD / "patapsco_results.jsonl": {("001", "a"): 1.6, ("001", "b"): 1.5, ("002", "c"): 1.6},
        tmp_path / "f.jsonl": {("1", "7"): 2.0, ("1", "d2"): 1.0},
    }
    for path, scores in expected.items():
        with pytest.raises(FileFormatError) as refused:
            rk.Run.read(path)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        run = eval(refused.value.remedy, {"rk": rk, "rows": lines})  # noqa: S307 - our own words
        assert rows(run, "score") == scores


RANKINGS = {"q1": {"d1": 0.5, "d2": 0.25}, "q2": {"d9": 1.5}}
META = {"mteb_model_meta": {"model_name": "org/model", "revision": "1"}}


def test_predictions_of_mteb(tmp_path: Path):
    """One subset and split is read; of several none is guessed, and the remedy reads one."""
    for content in ({"default": {"test": RANKINGS}}, META | {"default": {"test": RANKINGS}}):
        run = rk.Run.read(as_file(tmp_path, content))
        assert rows(run, "score") == rows(rk.Run.from_dict(RANKINGS), "score")
        assert run.name == ("org/model" if content.keys() >= META.keys() else None)
    content = META | {"en": {"test": RANKINGS, "dev": RANKINGS}, "de": {"test": RANKINGS}}
    path = as_file(tmp_path, content)
    with pytest.raises(FileFormatError, match="'en/test', 'en/dev', 'de/test'") as caught:
        rk.Run.read(path)
    assert "rk.Run.from_any(json.load(open(path))[subset][split])" in caught.value.fields["remedy"]
    assert len(rk.Run.from_any(json.loads(path.read_text())["de"]["test"])) == 3


@each_row(
    ("content", "name"),
    [
        ([{"user_input": "t", "retrieved_contexts": ["x"], "response": "r"}], "ragas"),
        ([{"question": "t", "contexts": ["x"], "answer": "r"}], "ragas"),
        ([{"run_id": "r", "topic_id": "1", "references": ["d"], "answer": []}], "TREC RAG"),
        ({"root": {"id": "toplevel", "children": [{"id": "d", "relevance": 1.0}]}}, "Vespa"),
        ([{"put": "id:n:t::1", "fields": {}}], "Vespa"),
        ({"responseHeader": {}, "response": {"docs": []}}, "Solr"),
        ({"q1": {"responseHeader": {}, "response": {"docs": []}}}, "Solr"),
        ({"q1": {"root": {"children": [{"id": "d1", "relevance": 0.5}]}}}, "Vespa"),
        ({"task_name": "SciFact", "scores": {"test": []}, "mteb_version": "2"}, "mteb"),
        ({"name": "b", "query_doc_pairs": []}, "Quepid"),
        ([{"_id": "d1", "title": "", "text": "t"}], "texts"),
    ],
)
def test_json_without_a_format_is_named(tmp_path: Path, content, name):
    """The error has the program's name and the way on, for judgments and for rankings."""
    for kind in (rk.Qrels, rk.Run):
        with pytest.raises(FileFormatError, match=name) as caught:
            kind.read(as_file(tmp_path, content, "f.jsonl" if isinstance(content, list) else "f.json"))
        assert caught.value.fields["remedy"]


def test_ordinary_dicts_are_not_taken_for_another_format():
    """Queries and documents may be called as the keys of these formats are."""
    names = [
        "hits",
        "details",
        "metric_score",
        "query",
        "queries",
        "requests",
        "turns",
        "root",
        "fields",
        "relevant_documents",
        "responses",
    ]
    for name in names:
        assert rows(rk.Qrels.from_any({name: {"fields": 1, "hits": 2}}), "relevance") == {
            (name, "fields"): 1,
            (name, "hits"): 2,
        }
        assert rows(rk.Run.from_any({name: ["hits", "d1"]}), "score") == {(name, "hits"): -1, (name, "d1"): -2}


def test_records_with_documents_are_records(tmp_path: Path):
    """Whatever further fields they have."""
    more = {"_id": "x", "text": "t", "question": "t", "contexts": ["c"], "fields": {}, "id": "1"}
    records = [{"qid": "q1", "docid": "d1", "score": 2.5, "relevance": 1} | more]
    assert rows(rk.Run.from_any(records), "score") == {("q1", "d1"): 2.5}
    assert rows(rk.Qrels.read(as_file(tmp_path, records, "f.jsonl")), "relevance") == {("q1", "d1"): 1}


def test_queries_of_a_dict_keep_their_type():
    """The caller says the queries of answers, so whole numbers stay so; other scores than numbers are refused."""
    evaluation = rk.evaluate({1: {"d1": 1}, 2: {"d9": 1}}, {1: answer(), 2: answer([])}, measures=["P@2"])
    assert evaluation.per_query["P@2"].to_dict() == {1: 0.5, 2: 0.0}
    with pytest.raises(InvalidInput, match="expected numbers, found 'x'"):
        rk.Run.from_any({1: answer([("d1", 2.0), ("d2", "x")])})


def test_formats_are_listed():
    """Help and guides list each of them by its declaration."""
    taken = {entry.name for entry in FORMATS.values() if entry.take}
    assert len(taken) == 10
    assert all(f"{name} (" in format_list("relevance") + format_list("score") for name in taken)


def test_a_named_format_is_no_other(tmp_path: Path):
    """What is named as one tool's and is another's is refused."""
    path = as_file(tmp_path, {"queries": [{"query": "star trek", "ratings": RATED}]})
    assert len(rk.Qrels.read(path, format="quepid")) == 2
    with pytest.raises(FileFormatError, match="_rank_eval"):
        rk.Qrels.read(path, format="rank_eval")


# Written by ranx 0.3.21: ranx.Run({"q1": {"d1": 0.5, "d2": 1.5}, "q2": {"d3": 2.0}}).save("run.lz4")
OF_RANX = "BCJNGEBAwD8AAACCBCJNGGhALQABAPAjdikAAADBomJxMaJiZDL7P/gAAQBjYmQx+z/gDADwAHEyoWJkM/tAAAAAAAAAAAAAAAAAAAAA"


def test_lz4_of_ranx_needs_cbor2(tmp_path: Path, monkeypatch):
    """The file is CBOR, packed twice; a part of it is refused, and so is the whole without cbor2."""
    path, content = tmp_path / "run.lz4", base64.b64decode(OF_RANX)
    path.write_bytes(content)
    assert rows(rk.Run.read(path), "score") == {("q1", "d1"): 0.5, ("q1", "d2"): 1.5, ("q2", "d3"): 2.0}
    for size in range(1, len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(FileFormatError):
            rk.Run.read(path)
    path.write_bytes(content)
    monkeypatch.setitem(sys.modules, "cbor2", None)
    with pytest.raises(FileFormatError, match="cbor2 is not installed") as caught:
        rk.Run.read(path)
    assert "[ranx]" in caught.value.fields["remedy"]


def test_other_files_in_lz4_are_read_and_written(tmp_path: Path):
    """Any format may be packed by lz4, and no file may grow beyond the limit."""
    run = rk.Run.from_dict({f"q{number}": {"d1": 1.0} for number in range(2_000)})
    for name in ("run.lz4", "run.jsonl.lz4"):
        run.write(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(b"\x04\x22\x4d\x18")
        assert len(rk.Run.read(tmp_path / name)) == len(run)
    packed = pa.compress(bytes(17 << 20), "lz4", asbytes=True)
    for content in (packed, pa.compress(packed, "lz4", asbytes=True)):
        (tmp_path / "run.lz4").write_bytes(content)
        with pytest.raises(rk.errors.LimitExceeded):
            rk.Run.read(tmp_path / "run.lz4")


@each_row(
    "text",
    [
        "star trek,193,1\nstar trek,157,2\n",
        "star trek, 193 ,1.000\r\n\r\nstar trek,157,2.000",
        '"star trek",193,1\n"star trek","157",2\n',
    ],
)
def test_csv_of_the_workbench_has_no_header(tmp_path: Path, text):
    """Query, document and rating, under any name; a cell that is refused is named with its line."""
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    assert rows(rk.Qrels.read(path), "relevance") == EXPECTED
    path.write_text(text.rstrip() + "\nq,,1\n")
    with pytest.raises(FileFormatError) as caught:
        rk.Qrels.read(path)
    assert "line" in caught.value.fields["where"]


def results(folder, scores, revision="1"):
    """Write the results of models as mteb does, from {model/revision: {task: [main score of a subset]}}."""
    for model, of_tasks in scores.items():
        (folder / model).mkdir(parents=True)
        (folder / model / "model_meta.json").write_text("{}")
        for task, parts in of_tasks.items():
            subsets = [{"main_score": part, "hf_subset": str(at), "ndcg_at_1": 0.0} for at, part in enumerate(parts)]
            content = {"task_name": task, "dataset_revision": revision, "scores": {"test": subsets}}
            (folder / model / f"{task}.json").write_text(json.dumps(content))


def test_results_of_mteb_are_compared_over_tasks(tmp_path: Path):
    """The score of a task is the mean of its subsets, and the ranges are of models over tasks."""
    rng = np.random.default_rng(1)
    drawn = rng.uniform(0.2, 0.5, (12, 2))
    tasks = [f"task{number}" for number in range(len(drawn))]
    shifts = {"org__small/main": 0.0, "org__large/main": 0.2, "org__two/a": 0.21, "org__two/b": 0.1}
    noise = {model: rng.normal(0, 0.01, drawn.shape) for model in shifts}
    scores = {model: drawn + shift + noise[model] for model, shift in shifts.items()}
    results(tmp_path, {model: dict(zip(tasks, part.tolist(), strict=True)) for model, part in scores.items()})
    tables = load_mteb_results(tmp_path)
    assert [*tables] == ["org/large", "org/small", "org/two/a", "org/two/b"]
    np.testing.assert_allclose(
        tables["org/large"].loc[tasks, "main_score"], scores["org__large/main"].mean(axis=1), rtol=1e-14
    )
    ranks = rk.rank_intervals(tables, lower_is_better={"main_score": False}).set_index("system")
    assert ranks.loc["org/small", ["rank_low", "rank_high"]].tolist() == [4, 4]
    assert ranks.loc["org/two/b", ["rank_low", "rank_high"]].tolist() == [3, 3]


def test_a_model_of_mteb_has_its_name_wherever_its_folder_begins(tmp_path: Path):
    """The cache of mteb has a folder more, and a path may name one model or one revision."""
    results(tmp_path / "results", {"org__small/main": {"task": [0.5]}, "org__large/main": {"task": [0.6]}})
    assert {*load_mteb_results(tmp_path)} == {"org/small", "org/large"}
    for below in ("org__small", "org__small/main"):
        assert {*load_mteb_results(tmp_path / "results" / below)} == {"org/small"}
    results(tmp_path / "copy", {"org__small/main": {"task": [0.7]}})
    with pytest.raises(InvalidInput, match="two folders"):
        load_mteb_results(tmp_path)


@each_row(
    ("name", "text", "problem"),
    [
        ("a/1/t.json", "{", "JSONDecodeError"),
        ("a/1/t.json", '{"task_name": "t", "scores": {"test": [{"ndcg": 1}]}}', "KeyError"),
        ("a/1/t.json", '{"mteb_dataset_name": "t", "test": {}}', "mteb 1.11 and later"),
        (
            "a/1/other.json",
            '{"dataset_revision": "2", "task_name": "s", "scores": {"t": [{"main_score": 1}]}}',
            "differ",
        ),
        ("empty/model_meta.json", "{}", None),
    ],
)
def test_other_results_are_refused(tmp_path: Path, name, text, problem):
    """Old results, other files, and scores on different data."""
    if problem:
        results(tmp_path, {"z/1": {"s": [0.5]}})
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(InvalidInput, match=problem or "results of mteb"):
        load_mteb_results(tmp_path)


def test_the_remedy_for_events_of_user_behavior_insights_works():
    """The events say what was clicked, and the queries beside them what was shown."""
    (event,) = [json.loads(line) for line in (FIELD / "ubi_events.jsonl").read_text().splitlines()]
    shown = {"query_id": "u1", "user_query": "fender", "query_response_hit_ids": ["d1", "d2", "d3"]}
    clicked = event["event_attributes"]["object"]["object_id"]
    items = pd.DataFrame({"docid": shown["query_response_hit_ids"], "position": [1, 2, 3]})
    items = items.assign(impression=event["query_id"], qid=shown["user_query"], clicked=items["docid"] == clicked)
    log = rk.online.ClickLog.from_frame(items)
    assert "1 click" in repr(log)


def test_words_of_tools_become_grades():
    """As in a table: by the caller's grades, in memory and from a file."""
    body = {"requests": [{"id": "q1", "ratings": [{"_id": "d1", "rating": "Exact"}, {"_id": "d2", "rating": "No"}]}]}
    qrels = rk.Qrels.from_any(body, grades={"Exact": 2, "No": 0})
    assert rows(qrels, "relevance") == {("q1", "d1"): 2, ("q1", "d2"): 0}
    with pytest.raises(InvalidInput, match="Exact"):
        rk.Qrels.from_any(body)


def test_responses_of_cast_are_ordered_by_their_ranks(tmp_path: Path):
    """With scores and without, whatever the order of the file."""
    cited = [{"rank": 2, "provenance": [{"id": "D1", "score": 0.5}]}, {"rank": 1, "provenance": [{"id": "D2"}]}]
    run = {"run_name": "x", "turns": [{"turn_id": "1_1", "responses": cited}]}
    for score in ({}, {"score": 0.9}):
        cited[1]["provenance"][0] |= score
        (tmp_path / "run.json").write_text(json.dumps(run))
        read = rk.Run.read(tmp_path / "run.json")
        assert rk.evaluate({"1_1": {"D2": 1}}, read, measures="RR").mean().tolist() == [1]
