"""Summaries of a document: its beginning, its key sentences, windows around words of a query.

A summary is a list of places in the text, so nothing is changed or lost::

    doc                           The old plane. A wing in a slipstream gains lift.
    snippets(doc, "wing lift", 7)                A wing in a slipstream gains lift.
                                                   ----                       ----    marks

A sentence ends at ``.``, ``!``, ``?`` or an ellipsis before a blank, at a full stop of Chinese or
Japanese, and at an empty line. The point of an abbreviation before a blank ends one too: rules for
those depend on the language.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rankeval._arguments import explained
from rankeval._checks import check_count, require
from rankeval.text.terms import Analyzer, Word

_END = re.compile(
    r"[.!?\u2026]['\"\u2019\u201d\u00bb)\]]*+(?=\s|\Z)|[\u3002\uff01\uff1f]|\n[^\S\n]*+\n"
)
_FREQUENT, _NEAR = 10, 4


@explained
@dataclass(frozen=True)
class Snippet:
    """A part of a text, and the words of the query in it.

    Attributes
    ----------
    start, end : int
        The part is ``text[start:end]``; it begins and ends with a whole word, or with the mark that
        ends a sentence.
    marks : tuple of (start, end)
        The words of the query, as places in the whole text, ascending.
    """

    start: int
    end: int
    marks: tuple[tuple[int, int], ...] = ()


@explained
def lead(doc: str, words: int = 50) -> list[Snippet]:
    """Return the first words of a document.

    Parameters
    ----------
    doc : str
        The document.
    words : int
        How many words; all if there are fewer.

    Returns
    -------
    list of Snippet
        One; none if the document has no words.

    Raises
    ------
    InvalidInput
        If ``doc`` is not text, or ``words`` is not a whole number of at least 1.

    Examples
    --------
    >>> [part] = lead("Lift, drag and thrust.", 3)
    >>> "Lift, drag and thrust."[part.start : part.end]
    'Lift, drag and'
    """
    check_count("words", words)
    first = Analyzer().words(doc)[:words]
    return [_part(doc, first)] if first else []


@explained
def key_sentences(
    doc: str, n: int = 3, *, stem: str | None = None, stop: str | Collection[str] | None = "english"
) -> list[Snippet]:
    """Return the sentences of a document that say most of it, by Luhn's significance factor.

    A term is significant if it occurs at least twice and no less often than the tenth most frequent
    one. The factor of a sentence is the greatest (number of significant words)² / (number of words)
    of its clusters: parts that begin and end with a significant word, with at most four other words
    between two of them. Of equal sentences the earlier ones are taken, since documents begin with
    their subject.

    Parameters
    ----------
    doc : str
        The document.
    n : int
        How many sentences; all if there are fewer.
    stem, stop
        As in `rankeval.text.VectorSpace`. Without stop words the most frequent terms are those of
        every document.

    Returns
    -------
    list of Snippet
        In the order of the document, without marks.

    Raises
    ------
    InvalidInput
        If ``doc`` is not text, ``n`` is not a whole number of at least 1, or PyStemmer is not
        installed.
    UnknownName
        If there is no such stemmer or list of stop words.

    References
    ----------
    Luhn, H. P. (1958). The automatic creation of literature abstracts. IBM Journal of Research and
    Development 2(2), 159-165. https://doi.org/10.1147/rd.22.0159

    Examples
    --------
    >>> doc = "We saw birds. The wing of a plane gives lift. So does the wing of a bird!"
    >>> [part] = key_sentences(doc, 1)
    >>> doc[part.start : part.end]
    'The wing of a plane gives lift.'
    """
    check_count("n", n)
    words = Analyzer(stem, stop).words(doc)
    counts = Counter(word.term for word in words if word.term is not None)
    least = max(2, min((times for _, times in counts.most_common(_FREQUENT)), default=0))
    firsts = [place for place in range(len(words)) if _is_first(doc, words, place)]
    sentences = [words[first:last] for first, last in pairwise([*firsts, len(words)])]
    factors = [
        _factor([counts[word.term or ""] >= least for word in sentence]) for sentence in sentences
    ]
    best = sorted(range(len(sentences)), key=lambda place: -factors[place])[:n]
    return [_part(doc, sentences[place]) for place in sorted(best)]


@explained
def snippets(
    doc: str,
    query: str,
    words: int = 25,
    most: int = 2,
    *,
    stem: str | None = None,
    stop: str | Collection[str] | None = None,
) -> list[Snippet]:
    """Return the windows of a document with most words of a query.

    The first window chosen is the one with the most different terms of the query; of equal ones
    that with more of its phrases (two terms side by side as in the query, but for stop words), then
    the earlier one. A further window counts the terms and phrases first that the others lack. A
    window begins where a sentence does if that costs no term, and else with a few words before the
    first term.

    Parameters
    ----------
    doc, query : str
        The document and the query.
    words : int
        The most words of a window.
    most : int
        The most windows.
    stem, stop
        As in `rankeval.text.VectorSpace`. Stop words are not marked.

    Returns
    -------
    list of Snippet
        In the order of the document; the windows do not overlap. A document without a term of the
        query has its `lead`, without marks.

    Raises
    ------
    InvalidInput
        If ``doc`` or ``query`` is not text, ``words`` or ``most`` is not a whole number of at least
        1, or PyStemmer is not installed.
    UnknownName
        If there is no such stemmer or list of stop words.

    Examples
    --------
    >>> doc = "The old plane. A wing in a slipstream gains lift."
    >>> [part] = snippets(doc, "Wing lift", words=7)
    >>> doc[part.start : part.end], [doc[start:end] for start, end in part.marks]
    ('A wing in a slipstream gains lift.', ['wing', 'lift'])
    """
    check_count("words", words)
    check_count("most", most)
    require(isinstance(query, str), "query", query, "a text")
    terms = Analyzer(stem, stop)
    doc_words, query_terms = terms.words(doc), terms(query)
    parts = _parts_of_query(doc_words, query_terms)
    places = dict.fromkeys(place for place, _, _ in parts)
    free, shown, chosen = [(0, len(doc_words))], set[Any](), list[tuple[int, int]]()
    for _ in range(most if places else 0):
        starts = [(start, room) for room in free for start in places if room[0] <= start < room[1]]
        windows = [
            (_held(parts, start, min(start + words, room[1])), start, room)
            for start, room in starts
        ]
        if not windows:
            break
        held, start, room = max(
            windows, key=lambda window: (_worth(window[0] - shown), _worth(window[0]))
        )
        back = range(start, max(start - words, -1), -1)
        sentence = next((place for place in back if _is_first(doc, doc_words, place)), -1)
        begins = (sentence, start - words // 4, start - words // 8, start)
        begin = next(
            place
            for place in begins
            if place >= room[0] and held <= _held(parts, place, min(place + words, room[1]))
        )
        last = min(begin + words, room[1])
        at = free.index(room)
        free[at : at + 1] = [(room[0], begin), (last, room[1])]
        chosen.append((begin, last))
        shown |= held
    if not chosen:
        return lead(doc, words)
    return [_part(doc, doc_words[first:last], query_terms) for first, last in sorted(chosen)]


def _parts_of_query(words: list[Word], query: list[str]) -> list[tuple[int, int, Any]]:
    """Return last word's place, first word's, and part, of a query's terms and phrases."""
    terms, phrases = set(query), set(pairwise(query))
    parts, before = list[tuple[int, int, Any]](), (0, "")
    for place, (term, _, _) in enumerate(words):
        if term is None:  # a stop word may stand within a phrase
            continue
        if term in terms:
            parts.append((place, place, term))
        if (before[1], term) in phrases:
            parts.append((place, before[0], (before[1], term)))
        before = place, term
    return parts


def _held(parts: list[tuple[int, int, Any]], first: int, last: int) -> set[Any]:
    within = parts[bisect_left(parts, (first,)) : bisect_left(parts, (last,))]
    return {part for _, start, part in within if start >= first}


def _worth(held: set[Any]) -> tuple[int, int]:
    """Return the number of terms and that of phrases, which are pairs."""
    phrases = sum(isinstance(part, tuple) for part in held)
    return len(held) - phrases, phrases


def _factor(significant: list[bool]) -> float:
    """Return Luhn's significance factor of a sentence, by whether each word is significant."""
    best, first, n, before = 0.0, 0, 0, -_NEAR - 2
    for place in (place for place, is_one in enumerate(significant) if is_one):
        first, n = (first, n + 1) if place - before <= _NEAR + 1 else (place, 1)
        best, before = max(best, n**2 / (place - first + 1)), place
    return best


def _is_first(doc: str, words: list[Word], place: int) -> bool:
    """Say whether a word is the first of its sentence."""
    # With the first letter of the word, a point at the end of what is searched is not at the end of
    # the text.
    return place == 0 or _END.search(doc, words[place - 1].end, words[place].start + 1) is not None


def _part(doc: str, words: list[Word], query: Iterable[str] = ()) -> Snippet:
    """Return the part of some words, with a sign that ends their sentence, and marks of a query."""
    end, terms = words[-1].end, {*query}
    if ended := _END.match(doc, end):
        end += len(ended[0].rstrip())
    marks = tuple(word[1:] for word in words if word.term in terms)
    return Snippet(words[0].start, end, marks)
