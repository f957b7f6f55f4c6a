"""Texts by id come from files of six formats; nothing is lost, and a wrong file is refused with its place."""

from __future__ import annotations

import gzip
import html
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.errors import FileFormatError, InvalidInput, LimitExceeded, UnknownName
from rankeval.io.texts import TEXT_FORMATS
from rankeval.text import read_texts

TOPICS = """
<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations with n < 5 &amp; more.

<narr> Narrative:
A relevant document <b>names</b> one.
</top>

<top>

<num> Number: 302
<title> Poliomyelitis and Post-Polio </title>
<desc> Description: Is it under control?
</top>
"""
DOCUMENTS = """<?xml version="1.0"?>
<DOC>
<DOCNO> FT911-1 </DOCNO>
<DOCID>7</DOCID>
<HEADLINE> A title &lt;here&gt; </HEADLINE>
<BYLINE> nobody
<TEXT>
<P>First, if a < b.</P>
<P>Second.</P>
</TEXT>
<TEXT> Third. </TEXT>
between
</DOC>
<doc><docno>FT911-2</docno><text></text></doc>
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE t [ <!ENTITY big "lol"> <!ENTITY file SYSTEM "file:///etc/hostname"> <!ELEMENT topic (query)> ]>
<!-- Of topics. -->
<topics task="t">
 <topic type="x" number="151">
  <query>403b &amp; <![CDATA[a plan]]></query>
  <subtopic number="1">one &big;</subtopic>
  <subtopic number="2">two &file;</subtopic>
 </topic>
 <topic><number>152</number><query>&lt;b&gt;</query></topic>
</topics>
"""
CRANFIELD = (
    ".I 1\r\n.T\r\nwing in a slip\r\nstream .\r\n.A\r\nb,m.\r\n.W\nwing in a slip stream .\n  more .\n.I 2\n.T \n.W\n"
)
CRANFIELD += ".I 3\n.T\ntitle\n.A\na\n.A\nb\n.W  \n. not a mark\n.I not a record\n.W\nagain\n.X\n1\t5\t1"


def write(tmp_path: Path, text: str | bytes, name: str = "file") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_topics_without_end_tags_have_their_fields(tmp_path):
    """Labels are taken off, tags too, and a `<` that begins no tag stays."""
    path = write(tmp_path, TOPICS)
    assert read_texts(path) == {"301": "International Organized Crime", "302": "Poliomyelitis and Post-Polio"}
    assert read_texts(path, fields="desc")["301"] == "Identify organizations with n < 5 & more."
    assert read_texts(path, fields="narr") == {"301": "A relevant document", "302": ""}


def test_documents_of_trec_have_title_and_text(tmp_path):
    """An element is a field with all that it holds, one without an end reaches to the next; no text is dropped."""
    path = write(tmp_path, DOCUMENTS)
    found = read_texts(path)
    assert {name: text.split() for name, text in found.items()} == {
        "FT911-1": ["A", "title", "<here>", "First,", "if", "a", "<", "b.", "Second.", "Third."],
        "FT911-2": [],
    }
    assert read_texts(path, fields=("byline", "outside"))["FT911-1"] == "nobody\nbetween"
    assert read_texts(path, fields="docid") == {"FT911-1": "7", "FT911-2": ""}


def test_topics_in_xml_are_read_without_entities_of_the_file(tmp_path):
    """No text grows and no other file is read; repeated fields go on in a new line."""
    path = write(tmp_path, XML)
    assert read_texts(path) == {"151": "403b &  a plan", "152": "<b>"}
    assert read_texts(path, fields="subtopic") == {"151": "one &big;\ntwo &file;", "152": ""}


def test_cranfield_keeps_documents_without_text(tmp_path):
    """A mark that comes again goes on; a line that begins with a point is text."""
    path = write(tmp_path, CRANFIELD)
    assert read_texts(path) == {
        "1": "wing in a slip\nstream .\nwing in a slip stream .\n  more .",
        "2": "",
        "3": "title\n. not a mark\n.I not a record\nagain",
    }
    assert read_texts(path, fields=("author",)) == {"1": "b,m.", "2": "", "3": "a\nb"}


def test_numbers_of_cranfield_that_do_not_count_the_records_are_asked_about(tmp_path):
    """Its judgments count the queries in the file: 004 would be another query than the third, or none."""
    path = write(tmp_path, ".I 1\n.W\none\n.I 004\n.W\ntwo\n")
    with pytest.raises(FileFormatError, match='record 2 is written as 004; ids must be "order" if') as error:
        read_texts(path)
    assert error.value.where == f"{path}, line 4"
    assert read_texts(path, ids="order") == {"1": "one", "2": "two"}
    assert read_texts(path, ids="written") == {"1": "one", "004": "two"}
    with pytest.raises(UnknownName, match="numbering"):
        read_texts(path, ids="ordered")


@each_row(
    ("row", "expected"),
    [
        ({"_id": "d", "title": "T", "text": "body", "metadata": {"a": 1}}, "T\nbody"),
        ({"num": 1, "id": 7, "contents": "body"}, "body"),
        ({"docno": "d", "title": "", "body": "a\tb\u2028c"}, "a\tb\u2028c"),
        ({"qid": "q", "query": "who?"}, "who?"),
        ({"docid": "d", "title": "only"}, "only"),
    ],
)
def test_json_lines_are_read_under_the_usual_names(tmp_path, row, expected):
    path = write(tmp_path, f"\n{json.dumps(row)}\r\n\n", "x.jsonl")
    (name,) = {*row} & {"_id", "id", "docno", "qid", "docid"}
    assert read_texts(path) == {str(row[name]): expected}


def test_lines_with_a_tab_end_at_line_feeds_alone(tmp_path):
    """A text may hold further tabs, and other separators of lines; blank lines are none of it."""
    path = write(tmp_path, "a\tone\ttwo\x0b\u2028\r\n\r\n\nb\t\nc\t")
    assert read_texts(path) == {"a": "one\ttwo\x0b\u2028", "b": "", "c": ""}


WRONG = {
    "tab": ("d1\ttext\nd2 text\n", "line 2: expected an id, a tab and its text, found b'd2 text"),
    "blank id": (" \ttext\n", "line 1: found a record without an id"),
    "twice": ("a\tb\nb\tc\na\td\n", "line 3: the id 'a' occurs twice"),
    "json": ('{"_id": "a", "text": "x"}\n{"_id": "b", "text": \n', "line 2: expected a JSON object .*Expecting value"),
    "no id": ('{"text": "x"}\n', "line 1: expected a JSON object with an id and texts"),
    "no text id": ('{"_id": null, "text": "x"}\n', "line 1: expected a JSON object with an id"),
    "list": ('{"_id": "a", "text": "x"}\n[1]\n', "line 2: expected a JSON object"),
    "deep": ('{"_id": ' + "[" * 100_000 + "\n", "line 1: expected a JSON object"),
    "key twice": ('{"_id": "a", "text": "x", "text": "y"}\n', "line 1: .* the key 'text' occurs twice"),
    "half a character": (r'{"_id": "a", "text": "\ud800"}', "line 1: .* surrogates not allowed"),
    "not UTF-8": (b"a\tx\nb\tcaf\xe9\n", "line 2: .* can't decode byte 0xe9"),
    "NUL": (b"a\tx\nb\t\0\n", "line 2: found a NUL byte"),
    "no end": ("<DOC><DOCNO>a</DOCNO></DOC>\n<DOC>\n<DOCNO>b</DOCNO>\n", "line 2: expected .* from <doc> to </doc>"),
    "no docno": ("<DOC>\n<TEXT>a</TEXT></DOC>", "line 1: expected a document of TREC with its DOCNO"),
    "after": ("<DOC><DOCNO>a</DOCNO></DOC>\nlost\n<DOC><DOCNO>b</DOCNO></DOC>", "line 1: .* a text follows </doc>"),
    "cut": ("<P>of an earlier</P></DOC>\n<DOC><DOCNO>a</DOCNO></DOC>", "expected a document of TREC"),
    "no number": (
        "<topics><topic><query>a</query></topic></topics>",
        "line 1: expected a topic in XML with its number",
    ),
    "marks": (".I 1\nstray\n.W\ntext\n", "line 1: expected a record of Cranfield"),
    "empty": ("", "expected an id, a tab and its text, found b''"),
    "blank": ("\n\n", "expected an id, a tab"),
}


@each_row("name", WRONG)
def test_a_wrong_file_is_refused_with_its_place(tmp_path, name):
    content, problem = WRONG[name]
    path = write(tmp_path, content)
    with pytest.raises(FileFormatError, match=f"^{re.escape(str(path))}(, |: ){problem}") as error:
        read_texts(path)
    assert error.value.where.startswith(str(path))


def test_an_unknown_field_or_format_is_refused_with_those_there_are(tmp_path):
    """So is a file whose texts have other names."""
    path = write(tmp_path, XML)
    with pytest.raises(UnknownName, match=r"unknown field of .*file 'narr'; known are: query, subtopic"):
        read_texts(path, fields=("query", "narr"))
    with pytest.raises(UnknownName, match="unknown format of texts 'xml'"):
        read_texts(path, "xml")
    with pytest.raises(UnknownName, match="'text'; known are: abstract"):
        read_texts(write(tmp_path, '{"_id": "a", "abstract": "x"}'))
    with pytest.raises(FileFormatError, match="expected a record of Cranfield"):
        read_texts(path, "cranfield")
    with pytest.raises(InvalidInput, match="there is no file"):
        read_texts(tmp_path / "nothing")


def test_compressed_files_are_read_within_the_limits(tmp_path):
    path = write(tmp_path, gzip.compress(TOPICS.encode()), "topics.gz")
    assert list(read_texts(str(path))) == ["301", "302"]
    with pytest.raises(LimitExceeded, match="line 7"):
        read_texts(path, limits=rk.io.Limits(line=40))


LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")
NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=4)
TEXTS = st.dictionaries(NAMES, st.lists(st.text(LETTERS, max_size=8), max_size=4).map(" ".join), min_size=1, max_size=5)


def _lines(text: str) -> str:
    return " ".join(text.split("\n"))


PRINTED = {
    "jsonl": lambda name, text: json.dumps({"_id": name, "text": text}) + "\n",
    "tsv": lambda name, text: f"{name}\t{_lines(text)}\n",
    "cranfield": lambda name, text: f".I {name}\n.W\n {_lines(text)}\n",
    "trec_topics": lambda name, text: f"<top>\n<num> Number: {name}\n<title>\n\n{html.escape(text)}\n</top>\n",
    "trec_documents": lambda name, text: f"<DOC><DOCNO>{name}</DOCNO>\n<TEXT>{html.escape(text)}</TEXT></DOC>\n",
    "xml_topics": lambda name, text: f"<topic number='{name}'><query>{html.escape(text)}</query></topic>\n",
}


@pytest.mark.parametrize("form", TEXT_FORMATS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS)
def test_texts_come_back(tmp_path, form, texts):
    """Of any letters: those of JSON as they are, others without the white space around them."""
    path = write(tmp_path, "".join(PRINTED[form](name, text) for name, text in texts.items()))
    found = read_texts(path, form, ids="written")
    assert list(found) == list(texts)
    for name, text in texts.items():
        if form == "jsonl":
            assert found[name] == text
        else:
            assert found[name].split() == text.split()


TAGS = ["<top>", "</top>", "<num>", "<DOC>", "</DOC>", "<DOCNO>", "</DOCNO>", "<topic number='1'>", "</topic>", "<!--"]
SIGNS = ["-->", "]]>", "<", ">", "&lt;", "&#0;", "&#x110000;", '{"_id":', '"a"', ",", "}", "1", "\u2028", "é"]
PIECES = st.sampled_from([*TAGS, *SIGNS, ".I 1", "\n.W\n", "\n", "\r\n", "\t"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(parts=st.lists(PIECES, max_size=12), form=st.sampled_from([None, *TEXT_FORMATS]))
def test_a_file_of_any_pieces_is_read_or_refused_by_its_name(tmp_path, parts, form):
    path = write(tmp_path, "".join(parts))
    try:
        found = read_texts(path, form)
    except (FileFormatError, UnknownName) as error:
        assert str(path) in str(error)  # noqa: PT017 - some files are read
    else:
        assert found


@each_row("piece", ["<a ", "<p>", "<!--", "</p>", "&", "<![CDATA[", "<p>a</p>"])
def test_a_hostile_document_is_read_in_one_pass(tmp_path, piece):
    """It would take minutes if each piece were searched to the end of the document."""
    content = (piece * 99 + "\n") * (2_000 // len(piece))
    path = write(tmp_path, f"<DOC><DOCNO>a</DOCNO>\n<TEXT>x</TEXT>{content}</DOC>")
    assert read_texts(path) == {"a": "x"}


@pytest.mark.shared
def test_the_real_collections_are_read_whole(shared):
    """Counts, the empty documents and the numbers of queries are those of the collections' notes."""
    documents = read_texts(shared / "cranfield" / "cran.all.1400.gz")
    assert list(documents) == [str(n + 1) for n in range(1400)]
    assert [name for name, text in documents.items() if not text] == ["471", "995"]
    title = "experimental investigation of the aerodynamics of a\nwing in a slipstream .\n"
    assert documents["1"].startswith(f"{title}{title}  an experimental study")
    with pytest.raises(FileFormatError, match="record 1 is written as 001"):
        read_texts(shared / "cranfield" / "cran.qry")
    queries = read_texts(shared / "cranfield" / "cran.qry", ids="order")
    lines = gzip.decompress((shared / "cranfield" / "queries.tsv.gz").read_bytes()).decode().splitlines()
    rows = (line.split("\t") for line in lines)
    assert {name: text.split() for name, text in queries.items()} == {name: text.split() for name, _, text in rows}
    assert len(read_texts(shared / "cisi" / "CISI.ALL.gz")) == 1460
    assert len(read_texts(shared / "cisi" / "CISI.QRY")) == 111
    topics = read_texts(shared / "trec_covid_r5" / "topics.xml")
    assert (len(topics), topics["1"]) == (50, "coronavirus origin")
    web = shared / "web2012" / "topics.xml"
    assert list(read_texts(web)) == [str(n) for n in range(151, 201)]
    assert read_texts(web, fields="description")["151"] == "What is a 403b plan?"


def test_words_like_labels_within_a_field_stay(tmp_path):
    """Only the label at the beginning of a field is no part of its text."""
    narrative = "Lists with Name(s): of planes, and the Title: of each report, count."
    path = write(tmp_path, f"<top>\n<num> Number: 1\n<title> Planes\n<narr> Narrative:\n{narrative}\n</top>\n")
    assert read_texts(path, fields="narr") == {"1": narrative}


@pytest.mark.timeout(30)
def test_a_topic_of_one_long_word_is_read_in_one_pass(tmp_path):
    """A search for labels from each letter to the end of the word would take hours; a line may be that long."""
    word = "a" * 1_000_000
    assert read_texts(write(tmp_path, f"<top><num>1\n<title>{word}\n</top>")) == {"1": word}


@each_row("text", [["red", "pear"], {"body": "red"}, 3.5, True])
def test_a_text_of_json_that_is_no_text_is_refused_with_its_line(tmp_path, text):
    """A list of paragraphs beside good records would else be lost silently."""
    path = write(
        tmp_path, "".join(json.dumps({"_id": name, "text": one}) + "\n" for name, one in (("a", "x"), ("b", text)))
    )
    with pytest.raises(FileFormatError) as refused:
        read_texts(path)
    assert f"{path}, line 2" in str(refused.value)


def test_tags_in_cdata_are_text(tmp_path):
    """Within CDATA a sign is itself."""
    path = write(tmp_path, '<topics><topic number="1"><query><![CDATA[a <b> & c]]></query></topic></topics>')
    assert read_texts(path) == {"1": "a <b> & c"}


@each_row(
    "header", ["query_id\ttext", "doc_id\ttext", "ID\tText\r", "_id\tquery", "product_id\tname", "#QID\tquestion"]
)
def test_a_line_of_names_is_no_text(tmp_path, header):
    """Tables that other tools write begin with the names of their columns."""
    path = write(tmp_path, f"{header}\na\tx\nid\ttext\n")
    assert read_texts(path) == {"a": "x", "id": "text"}
    assert read_texts(path, ids="order") == {"1": "x", "2": "text"}
    with pytest.raises(FileFormatError, match="line 3: expected an id, a tab"):
        read_texts(write(tmp_path, f"{header}\na\tx\nb\n"))
    assert read_texts(write(tmp_path, "id\ta text\n")) == {"id": "a text"}
    with pytest.raises(FileFormatError, match="expected an id, a tab and its text"):
        read_texts(write(tmp_path, header.strip()))


WANDS = "query_id\tquery\tquery_class\n0\tsalon chair\tMassage Chairs\n1\tsmart coffee table\tCoffee Tables\n"


@each_row(
    "header",
    ["query_id\tquery", "query-id\tQuery", "QueryID\tquery text", "Query ID\tQuery Text", "queryId\tquestion",
     "topic_id\ttitle", "\ufeffQID\ttext", "#qid\tquery", "id\tquery", "product_id\tpassage", "Topic Number\tBody"],
)  # fmt: skip
def test_a_line_of_three_names_is_no_text_and_its_columns_are_fields(tmp_path, header):
    """A baseline by words would else search with the class of the query, and for a query called ``query_id``."""
    path = write(tmp_path, WANDS.replace("query_id\tquery", header, 1).replace("\n", "\r\n"))
    assert read_texts(path) == {"0": "salon chair", "1": "smart coffee table"}
    assert read_texts(path, fields="query_class") == {"0": "Massage Chairs", "1": "Coffee Tables"}


def test_columns_are_told_by_their_names(tmp_path):
    """In any order; where no name is usual, the caller chooses; a row has all columns."""
    assert read_texts(write(tmp_path, "query\tquery_id\nsalon chair\t7\n")) == {"7": "salon chair"}
    assert read_texts(write(tmp_path, "doc_id\tlang\ttitle\ttext\n1\ten\tT\tB\n2\tde\t\tC\n")) == {
        "1": "T\nB",
        "2": "C",
    }
    path = write(tmp_path, "product_id\tname\tclass\n1\tsofa\tSofas\n")
    with pytest.raises(UnknownName, match="'text'; known are: class, name"):
        read_texts(path)
    assert read_texts(path, fields=["name", "class"]) == {"1": "sofa\nSofas"}
    with pytest.raises(FileFormatError, match=r"line 3: expected 3 columns \(_id, query, query_class\), found b'2"):
        read_texts(write(tmp_path, WANDS.replace("1\tsmart coffee table", "2", 1)))


@each_row("text", ["a\tone\ttwo\nb\tx\n", "id\ta text\n", "1\tquery\tclass\n", "covid\tvirus\tdisease\n", "title\tx\n"])
def test_a_first_line_of_texts_is_no_header(tmp_path, text):
    first, _, words = text.partition("\n")[0].partition("\t")
    assert read_texts(write(tmp_path, text))[first] == words


@each_row("indent", [None, 0, 2])
def test_arrays_and_indented_objects_of_json_are_read_as_lines_are(tmp_path, indent):
    rows = [{"_id": "a", "title": "T", "text": "x"}, {"_id": "b", "text": "é\t"}]
    for name in ("corpus.json", "corpus.jsonl", "corpus"):
        assert read_texts(write(tmp_path, json.dumps(rows, indent=indent), name)) == {"a": "T\nx", "b": "é\t"}
        assert read_texts(write(tmp_path, json.dumps(rows[0], indent=indent), name)) == {"a": "T\nx"}
    with pytest.raises(FileFormatError, match=r"record 2: the id 'a' occurs twice"):
        read_texts(write(tmp_path, json.dumps([rows[0]] * 2, indent=indent)))
    with pytest.raises(FileFormatError, match=r"record 1: expected a JSON object with an id and texts"):
        read_texts(write(tmp_path, json.dumps([{"text": "x"}], indent=indent)))
    with pytest.raises(FileFormatError, match=r"expected JSON objects with an id and texts, found \['a'\]"):
        read_texts(write(tmp_path, json.dumps(["a", "b"], indent=indent)))
    assert read_texts(write(tmp_path, "[1]\ttext\n")) == {"[1]": "text"}


@pytest.mark.parametrize("indent", [None, 1])
def test_an_object_of_texts_by_id_is_read(tmp_path, indent):
    """As people keep queries; a record with an id and a text of its own is no such object."""
    path = tmp_path / "queries.json"
    texts = {"q1": "star wars", "q2": "red \u00fcber"}
    path.write_text(json.dumps(texts, indent=indent))
    assert read_texts(path) == texts
    path.write_text(json.dumps({"_id": "q1", "text": "star wars"}, indent=indent))
    assert read_texts(path) == {"q1": "star wars"}
    path.write_text('{"q1": "star wars", "q1": "twice"}')
    with pytest.raises(InvalidInput):
        read_texts(path)


def test_a_json_field_that_is_no_text_is_named(tmp_path):
    """It is not "unknown": it is there, and no text. A field of that name may be null."""
    row = {"_id": "a", "text": ["red", "pear"]}
    with pytest.raises(FileFormatError, match=r"line 1: .*: text is \['red', 'pear'\]; expected a text"):
        read_texts(write(tmp_path, json.dumps(row)))
    assert read_texts(write(tmp_path, json.dumps(row | {"title": None, "text": "red"}))) == {"a": "red"}
