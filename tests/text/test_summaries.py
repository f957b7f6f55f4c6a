"""A summary is places in the text: it changes nothing, cuts no word, and its windows hold what was asked for."""

from __future__ import annotations

import itertools

import pytest
from circles import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tables import each_row

from rankeval.errors import InvalidInput
from rankeval.text import Snippet, key_sentences, lead, snippets
from rankeval.text.terms import Analyzer

WORDS = ["lift", "Straße", "STRASSE", "İstanbul", "wing", "e\u0301cole", "École", "ﬁn", "क्षि", "查询", "1º", "x"]
GLUE = [
    " ",
    "\n",
    "\n\n",
    ". ",
    "! ",
    "... ",
    " .\n",
    "\x00",
    "\u202e",
    "\ud800",
    "_",
    "。",
    "-",
    "\u0301",
    "<b>",
    "\u200f",
]
TEXTS = st.one_of(
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GLUE)), max_size=40).map(
        lambda pairs: "".join(itertools.chain(*pairs))
    ),
    st.text(st.characters(), max_size=60),
)
LIMITS = {"words": st.integers(1, 9), "most": st.integers(1, 4)}

NEW_GUINEA = """\
Port Moresby is the capital of a country of islands and high valleys, in which more than eight hundred languages are
spoken. Mines of gold and copper, timber and oil palms pay for most of its imports. For some years, Papua New Guinea has
faced severe economic difficulties and economic growth has slowed: the state was badly led, and a war on Bougainville
closed the largest of its copper mines. Elections brought a new prime minister and a budget with few promises. Donors
asked for reforms of the banks, of the pension funds and of the forests. Seen over all these years, PNG's economic
development record is evidence that governance issues come before those of money. Villages on the coast live on fish
and gardens as they did before, and have little use for either."""


def words_of(doc, part):
    return [
        (word.start, word.end) for word in Analyzer().words(doc) if part.start <= word.start and word.end <= part.end
    ]


def stands_in(doc, part):
    """Say whether a part begins and ends at words of the whole text; only the end of a sentence may follow."""
    whole = words_of(doc, part)
    rest = doc[whole[-1][1] : part.end]
    return 0 <= part.start == whole[0][0] and part.end <= len(doc) and not any(letter.isalnum() for letter in rest)


def same_words(doc, part):
    """Say whether the part alone has the words that it has in the text."""
    alone = [(part.start + word.start, part.start + word.end) for word in Analyzer().words(doc[part.start : part.end])]
    return alone == words_of(doc, part)


@given(doc=TEXTS, query=TEXTS, **LIMITS)
@example(doc="A\x00Straße \u202e İx. \ud800 e\u0301", query="STRASSE i\u0307x É", words=3, most=2)
@settings(deadline=None, max_examples=examples(150))
def test_windows_are_parts_of_the_text_and_their_marks_are_terms_of_the_query(doc, query, words, most):
    found = snippets(doc, query, words, most)
    asked = set(Analyzer()(query))
    has_term = bool(asked & set(Analyzer()(doc)))
    assert len(found) <= (most if has_term else 1)
    assert all(one.end <= other.start for one, other in itertools.pairwise(found))
    for part in found:
        assert stands_in(doc, part)
        assert same_words(doc, part)
        assert 1 <= len(words_of(doc, part)) <= words
        terms = {(word.start, word.end): word.term for word in Analyzer().words(doc)}
        expected = [place for place in words_of(doc, part) if terms[place] in asked]
        assert list(part.marks) == expected == sorted(expected)
        assert bool(part.marks) == has_term
    if not has_term:
        assert found == lead(doc, words)


@given(doc=TEXTS, query=TEXTS, words=st.integers(1, 9))
@settings(deadline=None, max_examples=examples(100))
def test_no_window_has_more_of_the_query_than_the_first_choice(doc, query, words):
    """Checked against every window of so many words, and against the rule on phrases."""
    terms, asked = [word.term for word in Analyzer().words(doc)], Analyzer()(query)
    phrases = set(itertools.pairwise(asked))

    def worth(part):
        return len({*part} & {*asked}), len({*itertools.pairwise(part)} & phrases)

    best = max((worth(terms[place : place + words]) for place in range(len(terms))), default=(0, 0))
    for part in snippets(doc, query, words, 1):
        assert worth(Analyzer()(doc[part.start : part.end])) == best


@given(doc=TEXTS, n=st.integers(1, 5))
@settings(deadline=None, max_examples=examples(100))
def test_leads_and_key_sentences_are_parts_of_the_text_too(doc, n):
    whole = [(word.start, word.end) for word in Analyzer().words(doc)]
    begun = lead(doc, n)
    assert [place for part in begun for place in words_of(doc, part)] == whole[:n]
    sentences = key_sentences(doc, n)
    assert len(sentences) <= n
    assert bool(sentences) == bool(whole)
    assert all(one.end <= other.start for one, other in itertools.pairwise(sentences))
    assert all(stands_in(doc, part) and same_words(doc, part) and not part.marks for part in begun + sentences)
    everything = key_sentences(doc, max(1, len(whole)))
    assert [place for part in everything for place in words_of(doc, part)] == whole


def test_the_two_windows_of_the_lectures_on_new_guinea_are_found():
    """Manning, Raghavan & Schütze 2008, section 8.7: dynamic summaries for "new guinea economic development"."""
    one, other = (
        (" ".join(NEW_GUINEA[part.start : part.end].split()), [NEW_GUINEA[start:end] for start, end in part.marks])
        for part in snippets(NEW_GUINEA, "new guinea economic development")
    )
    assert "Papua New Guinea has faced severe economic difficulties and economic growth has slowed" in one[0]
    assert one[1] == ["New", "Guinea", "economic", "economic"]
    assert "PNG's economic development record is evidence that governance issues" in other[0]
    assert other[1] == ["economic", "development"]


def test_a_window_begins_with_its_sentence_if_that_costs_no_term():
    doc = "Old planes flew. In the thin air of great heights a swept wing has little lift. Pilots know."
    assert [doc[part.start : part.end] for part in snippets(doc, "wing lift", 13)] == [
        "In the thin air of great heights a swept wing has little lift."
    ]
    assert [doc[part.start : part.end] for part in snippets(doc, "wing lift", 8)] == [
        "a swept wing has little lift. Pilots know."
    ]
    assert [doc[part.start : part.end] for part in snippets(doc, "wing lift", 4)] == ["wing has little lift."]


def test_a_second_window_shows_what_the_first_lacks():
    doc = "The wing has lift. " * 3 + "Nobody measured. " * 6 + "Drag came later."
    found = snippets(doc, "wing lift drag", 4)
    assert [doc[part.start : part.end] for part in found] == ["The wing has lift.", "Drag came later."]


def test_stop_words_are_not_marked_and_stems_are():
    doc = "The flow of the wings."
    (part,) = snippets(doc, "the wing", stem="english", stop="english")
    assert part == Snippet(0, 22, ((16, 21),))
    assert snippets(doc, "the", stop="english") == lead(doc, 25)


def test_the_factor_of_a_sentence_is_luhns():
    """Four significant words within seven give 16 / 7, two side by side give 2, and a gap of five begins a cluster."""
    doc = "Wing lift. Wing nu xi lift pi wing lift. Wing aa bb cc dd ee lift. Nothing at all happened here."
    assert [doc[part.start : part.end] for part in key_sentences(doc, 1)] == ["Wing nu xi lift pi wing lift."]
    assert [doc[part.start : part.end] for part in key_sentences(doc, 2)] == [
        "Wing lift.",
        "Wing nu xi lift pi wing lift.",
    ]
    assert len(key_sentences(doc, 9)) == 4


@each_row("doc", ["", "...", "\x00\u202e", " \n\n . "])
def test_a_document_without_words_has_no_summary(doc):
    assert lead(doc) == key_sentences(doc) == snippets(doc, "wing") == []


@each_row(
    ("call", "argument"),
    [
        (lambda: lead("a", 0), "words"),
        (lambda: key_sentences("a", 0), "n"),
        (lambda: snippets("a", "a", 0), "words"),
        (lambda: snippets("a", "a", most=True), "most"),
        (lambda: lead(None), "doc"),
        (lambda: key_sentences(b"a"), "doc"),
        (lambda: snippets(None, "a"), "doc"),
        (lambda: snippets("a", None), "query"),
    ],
)
def test_numbers_are_whole_and_at_least_one_and_texts_are_texts(call, argument):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.argument == argument


@each_row("part", ["." * 200_000 + "-", ")" * 200_000, "\n" * 200_000, ". " * 100_000, "wing. " * 20_000])
def test_long_documents_of_marks_take_no_long_time(part):
    """Each pattern reads a place once: in squares of the length this would not end."""
    doc = f"wing {part} lift"
    assert snippets(doc, "wing lift")
    assert key_sentences(doc, 1)
