"""Words that people write: names of columns in any spelling, and labels that are words.

A name of a column is compared without case, blanks, ``-`` and ``_``, byte order marks and the types
that RecBole writes behind it: ``Query ID``, ``queryId`` and ``query_id:token`` are one name.

A label such as ``Exact`` or ``L2`` has no number until the caller gives one, because the order of
words and the distances between them are not in the data. `graded` maps words by the caller's
``grades``. If there are none, `words_remedy` writes the line that the caller needs, with the words
that were found. It fills in numbers only if the words are those of a known scale; the caller still
has to write them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from rankeval._checks import check_number, few, require
from rankeval.errors import InvalidInput
from rankeval.io.opening import NUMBER

Grades = Mapping[Any, float] | None
"""The grades of labels that are words, as a caller gives them."""

_SCALES = (
    "irrelevant partial exact",
    "irrelevant complement substitute exact",
    "i c s e",
    "n r",
    "n p r",
    "irrelevant relevant",
    "notrelevant relevant",
    "nonrelevant relevant",
    "irrelevant partiallyrelevant relevant highlyrelevant",
    "notrelevant partiallyrelevant relevant highlyrelevant",
    "notrelevant marginallyrelevant relevant highlyrelevant",
    "notrelevant somewhatrelevant relevant highlyrelevant",
    "bad fair good excellent perfect",
    "poor fair good excellent perfect",
    "no yes",
    "false true",
    "l0 l1 l2 l3 l4",
)
"""Known labels by `plain` words, from the grade 0 on."""

_WORD = re.compile(r"(?!(nan|inf|infinity|none|null)$)[^\W\d_].*", re.IGNORECASE)
_NUMBERED = re.compile(r"[A-Za-z]+\W?[0-9]+")
_MOST_WORDS = 12
"""A column with more different texts is hardly one of labels."""


def plain(name: Any) -> str:
    """Return a name without case, blanks, ``-``, ``_``, byte order marks and RecBole's types.

    Examples
    --------
    >>> plain("Query ID") == plain("queryId") == plain("query_id:token")
    True
    """
    return re.sub(r"[\s_\ufeff-]+|:(token|float)(_seq)?$", "", str(name)).casefold()


def graded(labels: list[Any], grades: Mapping[Any, float]) -> list[Any]:
    """Return labels by the caller's grades; numbers stay, unless the grades name a number."""
    example = 'a mapping of words to numbers, such as {"Exact": 2, "Partial": 1}'
    require(isinstance(grades, Mapping) and grades, "grades", grades, example)
    for word, grade in grades.items():
        check_number(f"grades[{word!r}]", grade)
    grade_of = {_word(word): grade for word, grade in grades.items()}
    maps_numbers = any(map(NUMBER.fullmatch, grade_of))
    words = [_word(label) for label in labels]
    unknown = [word for word in dict.fromkeys(words) if word not in grade_of]
    lacking = [word for word in unknown if maps_numbers or not NUMBER.fullmatch(word)]
    if lacking:
        problem = f"they have no {few(lacking)}, which the data have"
        remedy = f"name all: {_line([*grade_of, *lacking], grade_of)}"
        raise InvalidInput(problem, argument="grades", found=few(lacking), remedy=remedy)
    grade_of |= {word: float(word) for word in unknown}
    return [grade_of[word] for word in words]


def words_remedy(labels: list[Any]) -> str | None:
    """Write the grades that would read labels; None if they have no words, or too many."""
    texts = [label for label in labels if isinstance(label, str)]
    words = [word for word in dict.fromkeys(map(_word, texts)) if _WORD.fullmatch(word)]
    plain_words = {*map(plain, words)}
    scale = next((scale for scale in map(str.split, _SCALES) if plain_words <= {*scale}), ())
    are_ids = not scale and all(map(_NUMBERED.fullmatch, words))
    if not words or len(words) > _MOST_WORDS or are_ids:
        return None
    grade_of = {word: scale.index(plain(word)) for word in words if scale}
    return f"if the words are grades, say which: {_line(words, grade_of)}"


def _word(label: Any) -> str:
    return str(label).strip()


def _line(words: list[str], grade_of: Mapping[str, Any]) -> str:
    """Write grades in Python and for a shell, the best first; ``...`` is for the caller to fill."""
    ordered = sorted(words, key=lambda word: (-grade_of.get(word, -1e9), word))
    texts = {word: f"{grade_of[word]:g}" if word in grade_of else "..." for word in ordered}
    python = ", ".join(f'"{word}": {grade}' for word, grade in texts.items())
    shell = " ".join(f"--grade {shlex.quote(f'{word}={texts[word]}')}" for word in ordered)
    return f"grades={{{python}}} ({shell})"
