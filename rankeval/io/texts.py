r"""Texts by id, from files: one declaration for each format.

::

    file -> opening.read_text -> split where a record starts -> TextFormat.parse -> {field: text}
                                                            fields chosen and joined -> {id: text}

A format gives all fields of a record, and `read_texts` chooses among them: so a misspelt field is
told from an empty one, and a document without a text stays a document. Tags are read alike in SGML
and in XML: a field ends at its end tag, or else where the next field begins, and a ``<`` that
begins no tag is a letter. No entity is replaced but those of HTML, so a file cannot name another
file, or grow. The trap is the number of a query: Cranfield's queries are written as ``.I 004``, but
its judgments count them in the order of the file.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from rankeval._arguments import explained
from rankeval._checks import refuse, require, said, shown, unique_keys
from rankeval._registry import chosen
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.opening import DEFAULT, Limits, in_utf8, read_text


class TextFormat(NamedTuple):
    """A format of texts, declared once."""

    words: str  # For help and errors
    sniff: bytes  # Matches the start of a file of this format
    starts: bytes  # Matches, without width, where a record starts
    # Takes a record and returns its texts by field, with the id in one of the fields of `_IDS`, or
    # raises ValueError.
    parse: Callable[[str], dict[str, str]]
    is_counted: bool = False  # Ids must be 1, 2, 3, ... unless the caller says how they are meant


@explained
def read_texts(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - as in `Qrels.read`
    *,
    fields: str | Iterable[str] | None = None,
    ids: str | None = None,
    limits: Limits = DEFAULT,
) -> dict[str, str]:
    r"""Read the texts of documents or queries.

    A record without a text, or without the chosen fields, has the empty text: none is left out. A
    tag in small letters names a field; text between tags is the field ``outside``. A first line of
    names, such as ``query_id<tab>query<tab>class``, is not a record, and its columns are fields. An
    array of JSON is read as its lines are, and an object ``{id: text}`` as texts by id.

    ================= =========================================== =====================
    format            a record                                    fields by default
    ================= =========================================== =====================
    trec_topics       ``<top> <num> Number: 301 <title> ...``     title
    xml_topics        ``<topic number="1"><query>...``            title, query
    trec_documents    ``<DOC> <DOCNO> d1 </DOCNO> <TEXT> ...``    title, headline, text
    cranfield         ``.I 1``, ``.T``, ``.A``, ``.B``, ``.W``    title, text
    jsonl             ``{"_id": "d", "title": "", "text": ""}``   title, text
    tsv               ``ID<tab>TEXT``                             text
    ================= =========================================== =====================

    Parameters
    ----------
    path : path
        The file in UTF-8; gzip and zstd are recognised by content.
    format : str, optional
        The name of a format, by default recognised by content.
    fields : str or iterable of str, optional
        The fields to take, such as ``"desc"`` or ``("title", "narr")``. They are joined by a line
        break. The text of a document of Cranfield begins with its title, so the title comes twice
        by default; ``"text"`` has it once.
    ids : {"written", "order"}, optional
        Take the ids as written, or count the records from 1 in the order of the file. Needed for
        Cranfield's format if the numbers written there are not 1, 2, 3, ...
    limits : Limits
        How large the file and its lines may be.

    Returns
    -------
    dict of str to str
        Texts by id, in the order of the file.

    Raises
    ------
    InvalidInput
        If the file does not exist or cannot be read.
    FileFormatError
        If its content does not follow the format, is not UTF-8, or repeats an id: with the line.
    LimitExceeded
        If it exceeds a limit.
    UnknownName
        If there is no such format, or the file has no such field; the error names the fields that
        it has.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "topics.txt"
    >>> record = "<num> Number: 301 <title> organized crime <desc> Description: Name the groups."
    >>> path.write_text(f"<top> {record} </top>")
    91
    >>> read_texts(path)
    {'301': 'organized crime'}
    >>> read_texts(path, fields=("title", "desc"))
    {'301': 'organized crime\nName the groups.'}
    """
    data = read_text(path, limits)
    objects = None if format else _objects_in(data, str(path))
    if format is None:
        format = "jsonl" if objects is not None else _recognised(data)  # noqa: A001
    entry = TEXT_FORMATS[chosen("format of texts", format, TEXT_FORMATS)]
    if entry is TEXT_FORMATS["tsv"] and (names := _names_in(data)):
        entry = entry._replace(parse=partial(_parse_row, names))
        if len(names) != 2:
            entry = entry._replace(words=f"{len(names)} columns ({', '.join(names)})")
        data = re.sub(rb"\A[^\n]*", b"", data)
    numbering = ids and chosen("numbering", ids, ["order", "written"])
    before, *blocks = re.split(entry.starts, data) if objects is None else (b"", *objects)
    # Before the first tag there may be a prolog, but no end of a record.
    if not blocks or re.search(rb"</|\A\s*[^<\s]", before):
        raise FileFormatError(f"expected {entry.words}, found {shown(data[:60])}", where=str(path))
    line = 1 + before.count(b"\n")
    records: dict[str, dict[str, str]] = {}
    for number, block in enumerate(blocks, start=1):
        place = f"{path}, line {line}" if objects is None else f"{path}, record {number}"
        label, texts = _parsed(block, entry, place)
        if numbering == "order":
            label = str(number)
        is_miscounted = entry.is_counted and not ids and label != str(number)
        refuse(
            (is_miscounted, f"record {number} is written as {label}", _COUNT),
            (not label.strip(), "found a record without an id"),
            (label in records, f"the id {label!r} occurs twice"),
            kind=FileFormatError,
            where=place,
        )
        records[label] = texts
        line += block.count(b"\n")
    known = dict.fromkeys(chain.from_iterable(records.values()))
    wanted = [fields] if isinstance(fields, str) else list(() if fields is None else fields)
    wanted = wanted or [name for name in _FIELDS if name in known] or ["text"]
    names = [chosen(f"field of {path}", name, known) for name in wanted]
    return {
        label: "\n".join(filter(None, map(texts.get, names))) for label, texts in records.items()
    }


def _recognised(data: bytes) -> str:
    """Return the name of the first format that the start of a text matches."""
    start = data[: 1 << 14].lstrip()
    return next(name for name, entry in TEXT_FORMATS.items() if re.match(entry.sniff, start))


def _parsed(block: bytes, entry: TextFormat, place: str) -> tuple[str, dict[str, str]]:
    """Return a record's id as written and its texts by field."""
    try:
        texts = entry.parse(block.decode().replace("\r\n", "\n"))
        "".join(texts.values()).encode()  # an escape of JSON may stand for half a character
        return texts.pop(next(key for key in _IDS if key in texts)), texts
    except (ValueError, TypeError, LookupError, StopIteration, RecursionError) as error:
        problem = f"expected {entry.words}, found {shown(block[:60])}"
        if isinstance(error, InvalidInput | UnicodeError | json.JSONDecodeError):
            problem = f"{problem}: {said(error)}"
        is_encoded = isinstance(error, UnicodeDecodeError)
        remedy = in_utf8(place.rpartition(", ")[0], block) if is_encoded else None
        raise FileFormatError(problem, where=place, remedy=remedy) from error


def _gathered(parts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return texts by field; a field that comes again, such as a subtopic, adds a line."""
    fields: dict[str, list[str]] = {}
    for name, text in parts:
        fields.setdefault(name, []).append(text.strip())
    return {name: "\n".join(filter(None, texts)) for name, texts in fields.items()}


def _parse_tab(line: str) -> dict[str, str]:
    return dict(zip(("_id", "text"), line.rstrip("\n").split("\t", 1), strict=True))


def _names_in(data: bytes) -> list[str]:
    """Return the names of the columns, if the first line has names; the id is called ``_id``."""
    first = data.partition(b"\n")[0].decode(errors="replace").rstrip("\r")
    cells = [cell.strip(" #\"'") for cell in first.split("\t")]
    plain = [re.sub(r"(?<=[a-z])(?=[A-Z])|[ -]+", "_", cell).lower() for cell in cells]
    is_id = [_ID.fullmatch(name) is not None for name in plain]
    is_text = [name in _FIELDS or name in _ALSO for name in plain]
    is_header = len(cells) > 1 and (is_id[0] or (is_text[0] and any(is_id)))
    is_header = is_header or (plain[0] in _IDS and (len(cells) > 2 or any(is_text)))
    if not is_header:
        return []
    columns = zip(plain, is_text, cells, strict=True)
    names = [_ALSO.get(name, name) if known else cell for name, known, cell in columns]
    names[is_id.index(True) if any(is_id) else 0] = "_id"
    if len(names) == 2 and not any(is_text):
        names[names[0] == "_id"] = "text"
    return names


def _parse_row(names: Sequence[str], line: str) -> dict[str, str]:
    # The text of a table of two columns may hold tabs.
    most = 1 if len(names) == 2 and names[0] == "_id" else -1
    return _gathered(zip(names, line.rstrip("\n").split("\t", most), strict=True))


def _objects_in(data: bytes, where: str) -> list[bytes] | None:
    """Return each record of a JSON array, of one object, or of ``{id: text}``, as a line."""
    try:
        content = json.loads(data, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return None
    if _are_texts_by_id(content):
        content = [{"_id": label, "text": text} for label, text in content.items()]
    if isinstance(content, dict) and b"\n" in data.strip():
        content = [content]
    if not isinstance(content, list):
        return None
    wrong = [record for record in content if not isinstance(record, dict)]
    if wrong:
        problem = f"expected JSON objects with an id and texts, found {shown(wrong[:1])}"
        raise FileFormatError(problem, where=where)
    return [json.dumps(record).encode() for record in content]


def _are_texts_by_id(content: Any) -> bool:
    """Say whether an object has texts by id, and is not a record with fields."""
    has_texts = isinstance(content, dict) and all(
        isinstance(part, str) for part in content.values()
    )
    return has_texts and content.keys().isdisjoint({*_IDS, *_FIELDS, *_ALSO})


def _parse_json(line: str) -> dict[str, str]:
    row = dict(json.loads(line, object_pairs_hook=unique_keys))
    for name in filter(_FIELDS.__contains__, row):
        require(row[name] is None or type(row[name]) in (str, int), name, row[name], "a text")
    return {key: str(value) for key, value in row.items() if type(value) in (str, int)}


def _parse_cranfield(record: str) -> dict[str, str]:
    first, *parts = re.split(r"(?m)^\.([A-Z])[ \t]*(?:\n|\Z)", record)
    _, number = first.split()
    marked = zip(parts[::2], parts[1::2], strict=True)
    return {"_id": number, **_gathered((_MARKS.get(mark, mark), text) for mark, text in marked)}


def _parse_tagged(tag: str, record: str) -> dict[str, str]:
    record = _CDATA.sub(lambda match: html.escape(match[0]), record)
    _, attributes, content, after = re.split(rf"(?is)\A<{tag}([^<>]*)>(.*)</{tag}\s*>", record)
    if _plain(after):
        raise InvalidInput(f"a text follows </{tag}>")
    parts = [("_id", number) for number in _NUMBER.findall(attributes)[:1]]
    parts += [(name, _plain(text)) for name, text in _elements(content)]
    parts = [(name, text) for name, text in parts if text or name != "outside"]
    if tag == "top":
        parts = [(name, _LABEL.sub("", text)) for name, text in parts]
    return _gathered(parts)


def _elements(record: str) -> Iterator[tuple[str, str]]:
    """Yield the outermost elements, and the text outside of them."""
    tags = [(tag["name"].lower(), tag) for tag in _TAG.finditer(record) if tag["name"]]
    last_end = {name: tag.start() for name, tag in tags if tag["closes"]}
    inside, begin = "outside", 0
    for name, tag in tags:
        # An end tag ends its own element; any other tag does where no end tag follows.
        if name == inside if tag["closes"] else last_end.get(inside, -1) < tag.start():
            yield inside, record[begin : tag.start()]
            inside, begin = "outside" if tag["closes"] else name, tag.end()
    yield inside, record[begin:]


def _plain(text: str) -> str:
    text = _TAG.sub(" ", text)
    return re.sub(r"&#?\w{1,32};", lambda match: html.unescape(match[0]), text).strip()


def _tagged(words: str, tag: str) -> TextFormat:
    tags = f"<{tag}[\\s>]"
    words = f"{words}, from <{tag}> to </{tag}>"
    sniff, starts = f"(?is)(?=<).*?{tags}", f"(?i)(?={tags})"
    return TextFormat(words, sniff.encode(), starts.encode(), partial(_parse_tagged, tag))


_COUNT = (
    'ids must be "order" if the judgments count the records so, as those of Cranfield do, '
    'and else "written"'
)
_IDS = ("_id", "docno", "id", "docid", "doc_id", "qid", "query_id", "num", "number")
_FIELDS = ("title", "headline", "query", "text", "contents", "body")
_ALSO = {
    "query_text": "query",
    "question": "query",
    "content": "contents",
    "passage": "text",
    "document": "text",
}
_ID = re.compile(
    r"[qdp]id|docid|docno|(query|topic|document|corpus|passage|product|item)id"
    r"|.+_(id|no|num|number)"
)
_MARKS = {"T": "title", "A": "author", "B": "source", "W": "text", "K": "keywords"}
_TAG = re.compile(
    r"<!--[^<>]*-->|<!\[CDATA\[|\]\]>|<(?P<closes>/?)(?P<name>[A-Za-z][\w.:-]*)(?:\s[^<>]*)?>"
)
_NUMBER = re.compile(r"""\s(?:number|id)\s*=\s*["']([^"']*)["']""")
_CDATA = re.compile(r"(?s)(?<=<!\[CDATA\[)(?:(?!<!\[CDATA\[|\]\]>).)*+(?=\]\]>)")
_LABEL = re.compile(r"\A(?:Number|Topic|Domain|Title|Description|Summary|Narrative|\w+\(s\)):\s*")
_LINE, _MARK = rb"(?m)^(?=[^\r\n])", rb"(?m)^(?=\.I[ \t]+\S+[ \t\r]*$)"

_CRANFIELD = TextFormat(
    "a record of Cranfield, from .I on", rb"\.I\s", _MARK, _parse_cranfield, is_counted=True
)
TEXT_FORMATS = {
    "jsonl": TextFormat("a JSON object with an id and texts", rb"\{", _LINE, _parse_json),
    "cranfield": _CRANFIELD,
    "trec_topics": _tagged("a topic of TREC with its number", "top"),
    "trec_documents": _tagged("a document of TREC with its DOCNO", "doc"),
    "xml_topics": _tagged("a topic in XML with its number", "topic"),
    "tsv": TextFormat("an id, a tab and its text", b"", _LINE, _parse_tab),
}
"""All formats of texts by name, in the order in which a file is tried."""
