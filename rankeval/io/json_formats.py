"""Judgments and rankings in the JSON of search engines, annotation tools and benchmarks.

Each format is one declaration: `Format.fits` recognises an object, from a file or in memory, and
`Format.take` turns such objects into columns::

    file -> tables: JSON or JSON lines -> [object, ...] --+
    rk.Run.from_any({"q1": answer}) ----> [object] -------+-> fits -> take -> Columns, with notes

Most formats list the documents of a query, the best first. `_columns` checks such lists for all of
them: a query that comes twice with other documents is refused, and documents without a grade are
counted in a note. The trap is a score that does not order the list: a search that is sorted by a
field has the scores null, or in another order. Its rows then get -1, -2, ... as scores, and a note.

`_NO_FORMAT` names JSON without a format of its own, most of it without judgments and rankings, and
says what to do with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

from rankeval._checks import count, few, refuse, shown
from rankeval.errors import InvalidInput
from rankeval.io.columns import Columns
from rankeval.io.formats import FORMATS, Format, OpenFile, add_format
from rankeval.io.frames import from_dict, from_records, spelled

_WHOLE = "give it as the program writes it; the guide to files names the parts that are read"
Object = Mapping[str, Any]
Lists = Iterable[tuple[Any, Iterable[tuple[Any, Any]]]]
"""Queries with pairs of a document and its number, the best first."""
Read = Callable[[Object, str], Lists]
Take = Callable[[list[Object], str], Columns]

_META = "mteb_model_meta"
_LISTS = (
    "rk.Run.from_dict({{{query}: "
    '{{hit["{document}"]: hit["score"] for hit in row["{results}"]}} for row in rows}})'
)
_BY_QUERY = 'rk.Run.from_any({"q1": answer})'
_BY_PLACE = 'rk.Run.from_any(dict(zip(qids, content["responses"])))'


def content_columns(content: Any, value: str) -> Columns | None:
    """Return the columns of an object, or of a list of objects, in a declared format; else None.

    Raises
    ------
    InvalidInput
        If the format is known, but has no relevance or no score, or cannot be read.
    """
    objects = [content] if isinstance(content, Mapping) else content
    if not isinstance(objects, list) or not objects or not isinstance(objects[0], Mapping):
        return None
    for entry in FORMATS.values():
        if entry.take and entry.fits and entry.fits(objects[0]):
            return replace(_taken(entry, entry.take, objects, value), format=entry.name)
    # An object of answers by query is recognised by its first answer.
    first = next(iter(objects[0].values()), None)
    known = [objects[0]]
    if isinstance(first, Mapping) and not all(map(_is_number, first.values())):
        known.append(first)
    for fits, name, remedy in () if spelled(objects[0], "docid") else _NO_FORMAT:
        if any(map(fits, known)):
            rows = "judgments" if value == "relevance" else "a ranking"
            raise InvalidInput(f"{name}: no format reads {rows} from it", remedy=remedy)
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _taken(
    entry: Format, take: Callable[..., Columns], objects: list[Object], value: str
) -> Columns:
    if value not in entry.values:
        raise InvalidInput(f"found {entry.words}, which have no {value}")
    try:
        return take(objects, value)
    except (LookupError, TypeError, AttributeError) as error:
        part = f"{error} is missing" if isinstance(error, KeyError) else "a part has another type"
        found = f"found {entry.words}, but not as they must be: {part} in {shown(objects[0])}"
        raise InvalidInput(found, remedy=_WHOLE) from error


def _declared(
    name: str, words: str, fits: Callable[[Object], bool], *values: str
) -> Callable[[Take], Take]:
    """Declare a format by the function that takes its objects."""

    def declare(take: Take) -> Take:
        read = partial(_read, name)
        add_format(Format(name, words, read, fits=fits, take=take, values=values, is_keyed=True))
        return take

    return declare


def _read(name: str, opened: OpenFile) -> Columns:
    columns = FORMATS["json"].read(replace(opened, is_named=False))
    if columns.format != name:
        raise InvalidInput(f"expected {FORMATS[name].words}, found other JSON")
    return columns


def _by_query(read: Read) -> Take:
    """Return the function that takes objects, of one that yields the lists of an object."""
    return partial(_columns, read)


def _columns(read: Read, objects: Sequence[Object], value: str) -> Columns:
    """Return the columns of lists of documents, with notes on what was left out or replaced."""
    lists: dict[Any, list[Any]] = {}
    n_ranked = n_unrated = 0
    for query, pairs in chain.from_iterable(read(content, value) for content in objects):
        documents: list[Any] = [(_text(document), number) for document, number in pairs]
        if value == "relevance":
            n_listed = len(documents)
            documents = [pair for pair in documents if pair[1] is not None]
            n_unrated += n_listed - len(documents)
        elif not _descends([number for _, number in documents]):
            documents = [document for document, _ in documents]
            n_ranked += 1
        if lists.setdefault(query, documents) != documents:
            problem = f"query {shown(query)} occurs twice, with different documents"
            raise InvalidInput(problem, remedy="give each query an id of its own")
    n_empty = [*lists.values()].count([])
    notes = (
        (n_ranked, f"{count(n_ranked, 'query')} by rank: scores are missing or do not descend"),
        (n_unrated, f"{count(n_unrated, 'document')} without a rating left out"),
        (n_empty, f"{count(n_empty, 'query')} without a document"),
    )
    columns = from_dict(lists, value)
    return replace(columns, notes=tuple(note for number, note in notes if number))


def _text(label: Any) -> Any:
    """Return an id as text, as these programs hold it also where JSON has a number."""
    return str(label) if type(label) is int else label


def _descends(scores: list[Any]) -> bool:
    if None in scores:
        return False
    try:
        numbers = [*map(float, scores)]
    except ValueError:
        return True  # `Run` refuses the text, with its place
    return numbers == sorted(numbers, reverse=True)


def _has(*keys: str) -> Callable[[Object], bool]:
    return lambda content: content.keys() >= {*keys}


def _lists_objects(key: str, *keys: str) -> Callable[[Object], bool]:
    """Return whether an object has a list, under a key, of objects that have further keys."""
    return lambda content: any(map(_has(*keys), _objects_in([content.get(key)])))


def _objects_in(values: Iterable[Any]) -> list[Object]:
    items = chain.from_iterable(part for part in values if isinstance(part, list))
    return [item for item in items if isinstance(item, Mapping)]


def _numbered(items: Iterable[Object], document: str, number: str) -> list[tuple[Any, Any]]:
    return [(item[document], item.get(number)) for item in items]


# Elasticsearch and OpenSearch


def _is_answer(answer: Any) -> bool:
    answer = getattr(answer, "body", answer)  # of an object of the client
    hits = answer.get("hits") if isinstance(answer, Mapping) else None
    return isinstance(hits, Mapping) and isinstance(hits.get("hits"), list)


def _workbench_list(content: Object) -> Object:
    """Return a list of judgments, which OpenSearch gives as the only hit of a search."""
    hits = content["hits"]["hits"] if _is_answer(content) else []
    return dict(hits[0]["_source"]) if len(hits) == 1 and "_source" in hits[0] else content


@_declared(
    "workbench",
    "judgments of OpenSearch's Search Relevance Workbench",
    lambda content: "judgmentRatings" in _workbench_list(content),
    "relevance",
)
@_by_query
def _workbench(content: Object, _value: str) -> Lists:
    judged = _workbench_list(content)["judgmentRatings"]
    by_list = isinstance(judged, list)
    for query, ratings in _numbered(judged, "query", "ratings") if by_list else judged.items():
        yield query, _numbered(ratings, "docId", "rating")


@_declared(
    "rank_eval",
    "requests of Elasticsearch's _rank_eval with ratings",
    _lists_objects("requests", "id", "ratings"),
    "relevance",
)
@_by_query
def _requests(content: Object, _value: str) -> Lists:
    for request in content["requests"]:
        yield _text(request["id"]), _numbered(request["ratings"], "_id", "rating")


@_declared(
    "rank_eval_answer",
    "answers of Elasticsearch's _rank_eval",
    _has("metric_score", "details"),
    "relevance",
    "score",
)
def _evaluated(objects: Sequence[Object], value: str) -> Columns:
    columns = _columns(_details, objects, value)
    if value == "score":
        return columns
    found = "judgments only of documents that the search found: recall and nDCG know no other"
    return replace(columns, notes=(found, *columns.notes))


def _details(content: Object, value: str) -> Lists:
    if failures := content.get("failures"):
        problem = f"the requests of {few([*failures])} failed"
        raise InvalidInput(problem, remedy="mend them, and evaluate again")
    number = "rating" if value == "relevance" else "_score"
    for query, details in content["details"].items():
        hits = [{**item["hit"], "rating": item["rating"]} for item in details["hits"]]
        yield query, _numbered(hits, "_id", number)


def _are_answers(content: Object) -> bool:
    answers = content.get("responses") or content.values()
    return _is_answer(content) or any(map(_is_answer, answers))


@_declared(
    "search_answers",
    "answers of Elasticsearch or OpenSearch by query",
    _are_answers,
    "score",
)
@_by_query
def _answers(content: Object, _value: str) -> Lists:
    by_query: Iterable[tuple[Any, Any]] = content.items()
    if _is_answer(content) or "responses" in content:
        by_query = [(_query_of(answer), answer) for answer in content.get("responses", [content])]
    for query, answer in by_query:
        yield query, _hits(query, getattr(answer, "body", answer))


def _query_of(answer: Object) -> Any:
    """Return the query that OpenSearch's User Behavior Insights writes to an answer."""
    extensions = answer.get("ext", {})
    if "ubi" not in extensions:
        problem = "the answer to a search does not name its query"
        raise InvalidInput(problem, remedy=f"say it: {_BY_QUERY}; of _msearch: {_BY_PLACE}")
    return extensions["ubi"]["query_id"]


def _hits(query: Any, answer: Object) -> list[tuple[Any, Any]]:
    fault = fault_of(answer)
    remedy = "search again, with allow_partial_search_results=false"
    refuse((fault, f"the answer to query {shown(query)} {fault}", remedy))
    return _numbered(answer["hits"]["hits"], "_id", "_score")


def fault_of(answer: Any) -> str:
    """Say why an engine's answer is not a whole ranking; "" for whole and for other answers."""
    answer = getattr(answer, "body", answer)
    if not isinstance(answer, Mapping) or answer.keys().isdisjoint({"error", "hits"}):
        return ""
    if "error" in answer:
        return f"is an error: {shown(answer['error'])}"
    shards = answer.get("_shards")
    has_failed = isinstance(shards, Mapping) and shards.get("failed")
    is_partial = answer.get("timed_out") is True or has_failed
    return "is partial: the search timed out, or a shard failed" if is_partial else ""


# Tools for judgments


@_declared(
    "quepid", "ratings or a case of Quepid", _lists_objects("queries", "ratings"), "relevance"
)
@_by_query
def _quepid(content: Object, _value: str) -> Lists:
    for query in content["queries"]:
        yield query.get("query_text", query.get("query")), (query["ratings"] or {}).items()


def _is_rre(content: Object) -> bool:
    """Say whether an object within the lists of an object has placeholders for a query."""
    items = _objects_in(content.values())
    return any("placeholders" in item or _is_rre(item) for item in items)


@_declared("rre", "ratings of the Rated Ranking Evaluator", _is_rre, "relevance")
@_by_query
def _rre(content: Object, _value: str) -> Lists:
    return _in_groups(content)


def _in_groups(content: Object, placeholder: str = "$query", graded: Any = ()) -> Lists:
    """Yield the queries within topics and groups, with the documents of their group."""
    graded = content.get("relevant_documents") or graded
    placeholder = content.get("query_placeholder") or placeholder
    if "placeholders" in content:
        yield _query_in(content["placeholders"], placeholder), _gains(graded)
    for item in _objects_in(content.values()):
        yield from _in_groups(item, placeholder, graded)


def _query_in(placeholders: Object, placeholder: str) -> Any:
    if placeholder not in placeholders and len(placeholders) == 1:
        (placeholder,) = placeholders
    if placeholder not in placeholders:
        problem = f"the query has the placeholders {few([*placeholders])}, and no {placeholder!r}"
        remedy = 'name the one with the query, as "query_placeholder": "$text" in the file'
        raise InvalidInput(problem, remedy=remedy)
    return placeholders[placeholder]


def _gains(graded: Any) -> Iterator[tuple[Any, Any]]:
    """Yield documents with grades, of ``{document: {"gain": 2}}`` or ``{"2": [document]}``."""
    parts = graded if isinstance(graded, list) else [dict(graded)]
    for key, gain in chain.from_iterable(part.items() for part in parts):
        if isinstance(gain, list):
            yield from ((document, key) for document in gain)
        else:
            yield key, gain.get("gain", gain.get("rating"))


@_declared(
    "llamaindex",
    "relevant documents of LlamaIndex's question and context pairs",
    _has("queries", "corpus", "relevant_docs"),
    "relevance",
)
def _llamaindex(objects: Sequence[Object], value: str) -> Columns:
    return from_dict(objects[0]["relevant_docs"], value)


@_declared(
    "umbrela",
    "judgments of UMBRELA",
    lambda content: "judgment" in content and bool({"result_status", "prompt"} & {*content}),
    "relevance",
)
def _umbrela(objects: Sequence[Object], value: str) -> Columns:
    if not spelled(objects[0], "docid"):
        problem = "UMBRELA's judgments have the texts of query and passage, and no qid and docid"
        remedy = "add them: the rows are in the order of the requests and their candidates"
        raise InvalidInput(problem, remedy=remedy)
    parsed = [row for row in objects if row.get("result_status") != 0]
    n_failed = len(objects) - len(parsed)
    note = f"{count(n_failed, 'row')} left out: the judge's answer was not parsed"
    return replace(from_records(parsed, value), notes=(note,) if n_failed else ())


# Runs


@_declared(
    "cast",
    "runs of TREC CAsT and iKAT",
    _lists_objects("turns", "turn_id", "responses"),
    "score",
)
def _conversations(objects: Sequence[Object], value: str) -> Columns:
    again: list[Any] = []
    columns = _columns(partial(_turns, again), objects, value)
    columns = replace(columns, name=objects[0].get("run_name"))
    note = f"{count(len(again), 'passage')} cited again left out"
    return columns.noting(note) if again else columns


def _turns(again: list[Any], content: Object, _value: str) -> Lists:
    """Yield the passages of turns, each at its first place, in the order of the tracks' tools.

    CAsT takes the order of the responses by rank. iKAT divides the scores of a response by its rank plus one.
    Passages that are cited once more are added to ``again``.
    """
    for turn in content["turns"]:
        responses = turn["responses"]
        is_ikat = any("passage_provenance" in response for response in responses)
        if not is_ikat:
            responses = sorted(responses, key=lambda response: response.get("rank", 0))
        passages: dict[Any, Any] = {}
        for response in responses:
            divisor = response["rank"] + 1 if is_ikat and len(responses) > 1 else None
            for item in _passages(response):
                score = item["score"] / divisor if divisor else item.get("score")
                if item["id"] in passages:
                    again.append(item["id"])
                passages.setdefault(item["id"], score)
        ranked = [*passages.items()]
        if is_ikat:
            ranked.sort(key=itemgetter(1), reverse=True)
        yield _text(turn["turn_id"]), ranked


def _passages(response: Object) -> Sequence[Object]:
    """Return the passages of a response, of iKAT or of CAsT; null counts as none."""
    return response.get("passage_provenance") or response.get("provenance") or ()


def _is_predictions(content: Object) -> bool:
    """Say whether this is ``{subset: {split: {qid: {docid: score}}}}``, as mteb writes it."""
    inner: Any = content
    for _ in range(3):
        inner = next(iter(inner.values()), None) if isinstance(inner, Mapping) else None
    return _META in content or isinstance(inner, Mapping)


@_declared("mteb", "predictions of mteb", _is_predictions, "score")
def _predictions(objects: Sequence[Object], value: str) -> Columns:
    content = dict(objects[0])
    meta = content.pop(_META, {})
    parts = {
        f"{subset}/{split}": content[subset][split]
        for subset in content
        for split in content[subset]
    }
    if len(parts) != 1:
        choice = "rk.Run.from_any(json.load(open(path))[subset][split])"
        raise InvalidInput(
            f"mteb's predictions are of several splits: {few([*parts])}", remedy=choice
        )
    (rankings,) = parts.values()
    return replace(from_dict(rankings, value), name=meta.get("model_name"))


_NO_FORMAT: tuple[tuple[Callable[[Object], bool], str, str], ...] = (
    (
        _has("task_name", "scores"),
        "a result of mteb, which has scores of tasks",
        "rk.datasets.load_mteb_results(folder) reads the models of a folder for rk.rank_intervals",
    ),
    (
        _has("action_name", "query_id"),
        "events of User Behavior Insights",
        "join them to ubi_queries, and give a row for each shown item to rk.online.ClickLog",
    ),
    (_has("query_doc_pairs"), "a book of Quepid", "export it as CSV, with a column for each judge"),
    (
        lambda content: "retrieved_contexts" in content or {"question", "contexts"} <= {*content},
        "a data set of ragas, whose contexts are texts",
        "give the ids of the contexts, the best first: rk.Run.from_dict({qid: [docid, ...]})",
    ),
    (
        _has("references", "answer"),
        "answers of TREC RAG, whose references have no scores",
        'rk.Run.from_dict({answer["topic_id"]: answer["references"] for answer in answers})',
    ),
    (
        lambda content: isinstance(content.get("root"), Mapping) and "children" in content["root"],
        "an answer of Vespa",
        'rk.Run.from_dict({qid: [(hit["id"], hit["relevance"]) for hit in root["children"]]})',
    ),
    (
        lambda content: "fields" in content and not {"put", "id"}.isdisjoint(content),
        "a feed of Vespa, which has documents",
        "give the answers of Vespa as {qid: {docid: score}}, and judgments in a file of their own",
    ),
    (
        _has("responseHeader", "response"),
        "an answer of Solr",
        'rk.Run.from_dict({qid: [doc["id"] for doc in answer["response"]["docs"]]})',
    ),
    (
        _lists_objects("results", "doc_id"),
        "result lists of patapsco",
        _LISTS.format(query='str(row["query"]["id"])', document="doc_id", results="results"),
    ),
    (
        _lists_objects("candidates", "docid"),
        "candidates of RankLLM",
        _LISTS.format(query='str(row["query"]["qid"])', document="docid", results="candidates"),
    ),
    (_has("_id", "text"), "texts", "rk.text.read_texts(path) reads them"),
)
"""JSON without a format: how to recognise it, its name and the way on."""
