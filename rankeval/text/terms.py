"""Words of a text: where each stands, and the term that it counts as.

::

    "The Straße, 2nd"    The  0:3   no term (a stop word)
                         Straße 4:10  "strasse"
                         2nd  12:15  "2nd"

A word is folded, never the text: ``ß`` becomes two letters and ``İ`` two characters, so a folded text has other offsets
than the one that a reader sees. Letters with marks of their own (a combining accent, a vowel sign of Devanagari) are
one word; scripts without spaces make one long word of a phrase.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from os import PathLike
from typing import Any, NamedTuple
from unicodedata import category, normalize

import pandas as pd

from rankeval._checks import few, refuse, require, shown
from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.io.frames import SPELLINGS, spelled
from rankeval.io.texts import read_texts


class Word(NamedTuple):
    """A word of a text: ``text[start:end]``, and its term; None for a stop word."""

    term: str | None
    start: int
    end: int


@dataclass(frozen=True)
class Terms:
    """The way from a text to its terms.

    Parameters
    ----------
    stem : str, optional
        A language of the Snowball stemmers, such as "english"; needs the extra ``text``.
    stop : str or collection of str, optional
        Stop words, or "english" for those of scikit-learn.

    Raises
    ------
    UnknownName
        If there is no stemmer, or no list of stop words, of this name.
    InvalidInput
        If PyStemmer is not installed, or the stop words can be read only once.
    """

    stem: str | None = None
    stop: str | Collection[str] | None = None

    def __post_init__(self) -> None:
        is_lasting = not isinstance(self.stop, Iterator)  # each fit of a ranker reads them again
        require(is_lasting, "stop", self.stop, "a list or a set of stop words")
        if not isinstance(self.stop, str | None):
            object.__setattr__(self, "stop", frozenset(self.stop))
        self._term()

    def _term(self) -> Callable[[str], str | None]:
        return _term_of(self.stem, self.stop)  # type: ignore[arg-type] # a frozenset, if it is neither text nor None

    def words(self, text: str) -> list[Word]:
        """Return all words of a text in their order."""
        term = self._term()
        return [Word(term(found[0]), *found.span()) for found in _pattern().finditer(text)]

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text in their order, without stop words."""
        return [term for term in map(self._term(), _pattern().findall(text)) if term is not None]


@cache
def _pattern() -> re.Pattern[str]:
    # `\w` has no combining marks: a word with a decomposed accent would be cut in two. The lookahead spares most
    # letters the long list of marks.
    marks = "".join(c for c in map(chr, [*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)]) if category(c)[0] == "M")
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
    # Twice: case folding may leave letters that are not composed. In pieces: the time grows with the square of the
    # marks that stand in a row.
    pieces = (word[start : start + 1000] for start in range(0, len(word), 1000))
    return "".join(normalize("NFKC", normalize("NFKC", piece).casefold()) for piece in pieces)


def _stop_words(given: str | Collection[str] | None) -> frozenset[str]:
    if isinstance(given, str):
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        chosen("list of stop words", given, ["english"])
        given = ENGLISH_STOP_WORDS
    return frozenset(map(_folded, given or ()))


def _stemmer(language: str | None) -> Callable[[str], str]:
    if language is None:
        return str
    try:
        import Stemmer
    except ImportError as error:
        problem, remedy = "stemming needs PyStemmer, which is not installed", 'pip install "rankeval-mlflow[text]"'
        raise InvalidInput(problem, argument="stem", remedy=remedy) from error
    return Stemmer.Stemmer(chosen("stemmer", language, Stemmer.algorithms())).stemWord  # type: ignore[no-any-return]


def as_texts(given: Any, argument: str, part: str) -> dict[Any, str]:
    """Return texts by id.

    Parameters
    ----------
    given : mapping, Series, frame or path
        Texts by id. A frame of pandas, polars or Arrow has the ids in a column, such as ``docid`` or ``id``, or in an
        index that is more than the numbers of its rows. Its text is a column ``text``, ``contents`` or ``body``, of
        queries first ``query``; a column ``title`` comes before it, in a line of its own, and may have gaps. A path is
        read by `rankeval.text.read_texts`.
    argument : str
        The caller's name for them, for messages.
    part : {"docid", "qid"}
        What the ids are.

    Raises
    ------
    InvalidInput
        If an id is repeated, a text is none, or a frame has no ids.
    """
    if isinstance(given, str | PathLike):
        return read_texts(given)
    titles: dict[Any, str] = {}
    given = given.to_pandas() if callable(getattr(given, "to_pandas", None)) else given
    if isinstance(given, pd.DataFrame):
        given = _by_id(given, argument, part)
        column = next((name for name in _TEXTS[part] if name in given), None)
        require(column, argument, list(given.columns), "a frame with a column 'text'")
        if column != "title" and "title" in given:
            titles = {name: str(title) for name, title in given["title"].dropna().items()}
        given = given[column]
    is_by_id = isinstance(given, Mapping | pd.Series)
    require(is_by_id, argument, type(given).__name__, "texts by id: a mapping, a Series, a frame or a path")
    texts: dict[Any, str] = dict(given.items())
    twice = [name for name, times in Counter(given.keys()).items() if times > 1]
    missing = list(given.index[given.isna()]) if isinstance(given, pd.Series) else []
    refuse(
        (twice, f"{few(twice)} is given more than once"),
        (missing, f"the text of {few(missing)} is missing", '.fillna("") makes it an empty document'),
        argument=argument,
    )
    for name, text in texts.items():
        require(isinstance(text, str), f"{argument}[{shown(name)}]", text, "a text")
    return {name: "\n".join(filter(None, (titles.get(name), text))) for name, text in texts.items()}


_TEXTS = {"docid": ("text", "contents", "body", "title"), "qid": ("query", "text", "contents", "body", "title")}


def _by_id(frame: pd.DataFrame, argument: str, part: str) -> pd.DataFrame:
    names, known = list(frame.columns), [*SPELLINGS[part], "_id", "id"]
    ids = spelled([name for name in names if name in SPELLINGS[part]], part) or [n for n in known[-2:] if n in names]
    # Filtering leaves numbers of rows that are no range: beside other columns they are hardly ids.
    is_range = isinstance(frame.index, pd.RangeIndex) or not {*names} <= {*_TEXTS[part]}
    is_numbered = is_range and frame.index.name is None and frame.index.inferred_type == "integer"
    problem = f"{argument} has no column of ids among {few(names)}; known names are {', '.join(known)}"
    refuse((not ids and is_numbered, problem, "rename the column of ids, or set the index"), argument=argument)
    return frame.set_index(ids[0]) if ids else frame
