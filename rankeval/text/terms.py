"""Words of a text: where each stands, and the term that it counts as.

::

    "The Straße, 2nd"    The  0:3   no term (a stop word)
                         Straße 4:10  "strasse"
                         2nd  12:15  "2nd"

A word is folded, never the text: ``ß`` becomes two letters and ``İ`` two characters, so a folded
text has other offsets than the one that a reader sees. Letters with marks of their own (a combining
accent, a vowel sign of Devanagari) are one word; scripts without spaces make one long word of a
phrase.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple
from unicodedata import category, normalize

from rankeval._arguments import explained
from rankeval._checks import require
from rankeval._registry import chosen
from rankeval._source import install
from rankeval.errors import InvalidInput


class Word(NamedTuple):
    """A word of a text: ``text[start:end]``, and its term; None for a stop word."""

    term: str | None
    start: int
    end: int


@explained
@dataclass(frozen=True)
class Analyzer:
    """Splits a text into its terms: lower case, stop words out, stemmed."""

    stem: str | None = None  # A language of the Snowball stemmers, such as "english"
    stop: str | Collection[str] | None = None  # Words, or "english"

    def __post_init__(self) -> None:
        # Each fit of a ranker reads them again.
        require(
            not isinstance(self.stop, Iterator), "stop", self.stop, "a list or a set of stop words"
        )
        if not isinstance(self.stop, str | None):
            object.__setattr__(self, "stop", frozenset(self.stop))
        self._term()

    def _term(self) -> Callable[[str], str | None]:
        # `stop` is a frozenset, if it is neither text nor None.
        return _term_of(self.stem, self.stop)  # type: ignore[arg-type]

    def words(self, doc: str) -> list[Word]:
        """Return all words of a text in their order, or refuse what is no text."""
        require(isinstance(doc, str), "doc", doc, "a text")
        term = self._term()
        return [Word(term(match[0]), *match.span()) for match in _pattern().finditer(doc)]

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text in their order, without stop words."""
        return [term for term in map(self._term(), _pattern().findall(text)) if term is not None]


@cache
def _pattern() -> re.Pattern[str]:
    # `\w` has no combining marks: a word with a decomposed accent would be cut in two. The
    # lookahead spares most letters the long list of marks.
    letters = map(chr, [*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)])
    marks = "".join(letter for letter in letters if category(letter)[0] == "M")
    return re.compile(rf"[^\W_]+(?:(?![\x00-\u02ff])[{marks}]+[^\W_]*)*")


@cache
def _term_of(stem: str | None, stop: Any) -> Callable[[str], str | None]:
    stopped, stemmed = _stop_words(stop), _stemmer(stem)

    @lru_cache(maxsize=1 << 18)
    def term(word: str) -> str | None:
        folded = _folded(word)
        return None if folded in stopped else stemmed(folded)

    return term


def _folded(word: str) -> str:
    # Twice: case folding may leave letters that are not composed. In pieces: the time grows with
    # the square of the marks that stand in a row.
    pieces = (word[start : start + 1000] for start in range(0, len(word), 1000))
    return "".join(normalize("NFKC", normalize("NFKC", piece).casefold()) for piece in pieces)


def _stop_words(words: str | Collection[str] | None) -> frozenset[str]:
    if isinstance(words, str):
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        chosen("list of stop words", words, ["english"])
        words = ENGLISH_STOP_WORDS
    return frozenset(map(_folded, words or ()))


def _stemmer(language: str | None) -> Callable[[str], str]:
    if language is None:
        return str
    try:
        import Stemmer
    except ImportError as error:
        problem = "stemming needs PyStemmer, which is not installed"
        raise InvalidInput(problem, argument="stem", remedy=install("text")) from error
    stemmer = Stemmer.Stemmer(chosen("stemmer", language, Stemmer.algorithms()))
    return stemmer.stemWord  # type: ignore[no-any-return] # no types
