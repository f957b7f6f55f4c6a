"""Words and terms: where words stand in any text, what folds together, and hostile text."""

import pickle
import sys
import unicodedata

import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import each_row

from rankeval.errors import InvalidInput
from rankeval.io import texts_by_id
from rankeval.io.texts_by_id import as_texts
from rankeval.text import terms
from rankeval.text.terms import Analyzer

PLAIN = Analyzer()


@given(st.text())
@example("The Straße, 2nd: İstanbul\0naïve\ud800snake_case")
def test_words_are_pieces_of_the_text_in_their_order(text):
    """Each word is a piece of the original text that alone gives the same term; the terms are those of the words."""
    words = PLAIN.words(text)
    assert [word.term for word in words] == PLAIN(text)
    assert all(PLAIN(text[word.start : word.end]) == [word.term] for word in words)
    ends = [0, *(word.end for word in words)]
    assert all(end <= word.start < word.end for end, word in zip(ends, words, strict=False))


@given(st.text())
def test_no_letter_or_digit_is_outside_of_words(text):
    """What lies between words has neither letters nor digits."""
    rest, end = "", 0
    for word in PLAIN.words(text):
        rest, end = rest + text[end : word.start], word.end
    assert not any(letter.isalnum() for letter in rest + text[end:])


@given(st.text())
@example("e\u0301 \u1100\u1161")
def test_composed_and_decomposed_texts_have_the_same_terms(text):
    """How an editor stores an accent changes no term."""
    assert PLAIN(unicodedata.normalize("NFD", text)) == PLAIN(unicodedata.normalize("NFC", text)) == PLAIN(text)


@each_row(
    ("one", "other"),
    [
        ("STRASSE", "straße"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("cafe\u0301", "CAFÉ"),
        ("ﬁne", "Fine"),
        ("\uff11\uff12", "12"),
        ("İ", "i\u0307"),
    ],
)
def test_forms_of_a_word_fold_together(one, other):
    """Case, ligatures, widths and combining accents make no difference."""
    assert len(PLAIN(one)) == 1
    assert PLAIN(one) == PLAIN(other)


@each_row("word", ["हिन्दी", "cafe\u0301", "𑄇𑄮𑄙𑄳𑄦", "葛\U000e0100飾", "2nd", "ไทย", "a\u20dd", "x" * 3000, "é" * 3000])
def test_a_word_with_its_marks_is_one_word(word):
    """Vowel signs, accents and variation selectors, also beyond the basic plane, do not cut their word."""
    text = f"({word}) b"
    assert [text[found.start : found.end] for found in PLAIN.words(text)] == [word, "b"]


@each_row(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n\0\u202e\u2066\ufeff", []),
        ("\ud800\udfff", []),
        ("a\0b\u202ec\ud800d", ["a", "b", "c", "d"]),
        ('<script>alert("x")</script>', ["script", "alert", "x", "script"]),
        ("snake_case don't e.g. 3.14", ["snake", "case", "don", "t", "e", "g", "3", "14"]),
        ("\u0301\u0301 alone", ["alone"]),
    ],
)
def test_what_is_no_letter_parts_words(text, expected):
    """Controls, halves of characters, signs of direction, markup and underscores are no part of a word."""
    assert PLAIN(text) == expected


def test_marks_in_a_row_take_no_quadratic_time():
    """Normalising sorts marks by insertion: a million of them at once would take longer than a test may."""
    assert len(PLAIN("a" + "\u0300\u0327" * 500_000)) == 1


@each_row("stop", ["english", ["THE", "And"], {"the", "and"}, ("the", "and")])
def test_stop_words_are_words_without_a_term(stop):
    """Stop words fold as words do; they keep their place and lose their term."""
    without = Analyzer(stop=stop)
    assert without("The apple AND pear") == ["apple", "pear"]
    assert [word.term for word in without.words("The apple")] == [None, "apple"]


def test_words_are_stemmed_after_stop_words_are_taken_out():
    """A stop list holds words, and no stems."""
    assert Analyzer("english", ["running"])("Running runs") == ["run"]
    assert Analyzer("german")("Häuser") == Analyzer("german")("HAUS")


def test_terms_are_a_value():
    """Equal ways to terms are equal, can be keys, and pickle."""
    one = Analyzer("english", ["b", "a"])
    assert one == Analyzer("english", {"a", "b"}) == pickle.loads(pickle.dumps(one))
    assert len({one, Analyzer("english", ("a", "b"))}) == 1


def test_without_pystemmer_stemming_is_refused_with_the_way_to_install_it(monkeypatch):
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    terms._term_of.cache_clear()
    with pytest.raises(InvalidInput, match="PyStemmer") as refused:
        Analyzer("english")
    assert "[text]" in refused.value.remedy


def test_texts_of_a_path_are_read(tmp_path, monkeypatch):
    """A path, as text or as Path, is a file of texts."""
    monkeypatch.setattr(texts_by_id, "read_texts", lambda path: {"d": f"text of {path}"})
    assert as_texts("docs.jsonl", "docs", "docid") == {"d": "text of docs.jsonl"}
    assert as_texts(tmp_path, "docs", "docid") == {"d": f"text of {tmp_path}"}


@each_row("name", ["_id", "id"])
@each_row("part", ["docid", "qid"])
def test_a_frame_with_the_ids_of_beir_keeps_them(name, part):
    """The numbers of the rows never stand silently for ids that a column holds."""
    frame = pd.DataFrame({name: ["a", "b"], "text": ["red", "pear"]})
    assert as_texts(frame, "docs", part) == {"a": "red", "b": "pear"}


@each_row("make", [pd.DataFrame, pl.DataFrame])
@each_row(
    ("part", "columns", "expected"),
    [
        ("docid", {"id": ["a", "b"], "title": ["T", ""], "text": ["red", "pear"]}, {"a": "T\nred", "b": "pear"}),
        ("docid", {"_id": ["a", "b"], "title": [None, "T"], "text": ["red", ""]}, {"a": "red", "b": "T"}),
        ("docid", {"id": [7, 8], "docid": ["a", "b"], "contents": ["red", "pear"]}, {"a": "red", "b": "pear"}),
        ("docid", {"qid": ["q"], "query": ["who"], "docno": ["a"], "docid": [0], "text": ["red"]}, {"a": "red"}),
        ("qid", {"qid": ["q"], "query": ["who"], "docno": ["a"], "docid": [0], "text": ["red"]}, {"q": "who"}),
        ("qid", {"id": ["q"], "title": ["who"]}, {"q": "who"}),
    ],
)
def test_a_frame_is_read_as_a_file_is(make, part, columns, expected):
    """Title and text are joined, a missing title is empty, and our names of ids win over ``id``."""
    assert as_texts(make(columns), "docs", part) == expected


@each_row("make", [pd.DataFrame, pl.DataFrame])
@each_row("part", ["docid", "qid"])
def test_numbers_of_rows_are_no_ids(make, part):
    """A frame whose ids have a name that nobody knows is refused, and not searched under the numbers of its rows."""
    frame = make({"sku": ["a", "b", "c"], "text": ["red", "pear", "fig"]})
    with pytest.raises(InvalidInput, match=rf"no column of ids among .*; known names are _id, .*{part}"):
        as_texts(frame, "docs", part)
    with pytest.raises(InvalidInput, match="no column of ids"):
        as_texts(frame[1:], "docs", part)
    with pytest.raises(InvalidInput, match="no column of ids"):
        as_texts(frame[[0, 2]] if make is pl.DataFrame else frame[frame["sku"] != "b"], "docs", part)


def test_an_index_that_the_caller_set_has_the_ids():
    """It has a name, or labels that are no numbers of rows."""
    frame = pd.DataFrame({"sku": ["a", "b"], "text": ["red", "pear"]})
    expected = {"a": "red", "b": "pear"}
    assert as_texts(frame.set_index("sku"), "docs", "docid") == expected
    assert as_texts(frame.set_index(pd.Index(["a", "b"])), "docs", "docid") == expected
    assert as_texts(frame.rename_axis("row"), "docs", "docid") == {0: "red", 1: "pear"}


@each_row("nothing", [None, float("nan"), pd.NA])
def test_a_missing_text_is_refused_with_the_way_to_an_empty_document(nothing):
    frame = pd.DataFrame({"id": ["a", "b"], "title": ["T", "T"], "text": ["red", nothing]})
    with pytest.raises(InvalidInput, match="'b' has no text") as refused:
        as_texts(frame, "docs", "docid")
    assert refused.value.remedy == '.fillna("") makes it an empty document'
    assert as_texts(frame.fillna(""), "docs", "docid") == {"a": "T\nred", "b": "T"}
