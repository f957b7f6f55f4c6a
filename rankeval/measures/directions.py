"""Which values of a column are better, the words for it, and the most that a query can lose."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from rankeval._arguments import explained
from rankeval.errors import RankevalError
from rankeval.measures.family import Family
from rankeval.measures.names import family_of, meanings, measure, names_behind


@explained
def greatest_loss(name: str) -> float:
    """Return the most that a query can lose by a measure; infinite for columns without a range."""
    try:
        low, high = measure(name).family.bounds
    except RankevalError:
        return math.inf
    return high - low


class Direction(NamedTuple):
    """Which values of a column are better, and the words for it.

    Attributes
    ----------
    sign : float
        1: the greater ones; -1: the smaller ones; 0: it is not known. Differences times it are
        gains.
    better, worse : str
        As in "is faster than" and "was shown slower than".
    """

    sign: float = 1.0
    better: str = "better"
    worse: str = "worse"

    @property
    def verb(self) -> str:
        """The verb between a system and one that it is shown better than; no claim if unknown."""
        return _VERBS.get(self.better, f"is {self.better} than")

    @property
    def note(self) -> str:
        """A note behind a column's name, if less is better and no word such as "faster" says so."""
        return " (less is better)" if self.sign < 0 and self.better == "better" else ""


_VERBS = {"better": "beats", "different": "differs from"}
_UNKNOWN = Direction(0.0, "different", "different")

LOWER_IS_BETTER = {
    ("faster", "slower"): "latency|latencies|time|runtime|duration|seconds?|secs?|milliseconds|ms",
    ("cheaper", "more expensive"): "costs?|prices?",
    ("smaller", "larger"): "memory|bytes|[kmg]i?b",
}
"""Words for less and for more -> the nouns in names of columns that they describe."""

BESIDE_NOUNS = (
    "p|mean|median|average|max|min|peak|total|in|of|s|us|ns|usd|eur|query|search|retrieval|"
    "response|index|indexing|build|wall|clock|cpu|gpu|ram|disk|usage"
)
"""Words that keep the direction of such a noun; others, as in "cost savings", may turn it."""


@explained
def direction(name: str, lower_is_better: Mapping[str, bool | None] | None = None) -> Direction:
    """Return which values of a column are better.

    A measure declares it; for other columns the argument or the name decides.

    Parameters
    ----------
    name : str
        The column.
    lower_is_better : mapping of str to bool, optional
        Columns that are not measures -> whether less is better.

    Examples
    --------
    >>> names = ("ARP", "p95 latency_ms", "cost per 1000", "bytes per second")
    >>> [direction(name).verb for name in names]
    ['beats', 'is faster than', 'is cheaper than', 'differs from']
    """
    names = names_behind(name.strip(), version_10=True) or [name.strip()]
    families: set[Family | None]
    try:
        families = {value.family for single in names for _, value in meanings(single)}
    except RankevalError:  # such a name may lack a parameter only
        families = {family_of(re.split("[@(]", name)[0])}
    signs = {1.0 if family.greater_is_better else -1.0 for family in families if family}
    if signs:
        return Direction(signs.pop()) if len(signs) == 1 else _UNKNOWN
    words = _words_for_less(name)
    less = (lower_is_better or {}).get(name)
    if less is False:
        return Direction()
    return Direction(-1.0, *(words or ())) if less or words else _UNKNOWN


def _words_for_less(name: str) -> tuple[str, str] | None:
    """Return the words for less and more, if a name has a known noun and no other word."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("/", " per ").lower()
    # A sign in front is a word that is in no list, as are those of bounds and inverses, and "in"
    # before a noun.
    tokens = re.findall(r"^\W|^in[\W_]|^\d+\s*-|[<>=^*]|[^\W\d_]+", spaced)
    head, _, rate = f" {' '.join(tokens)} ".partition(" per ")
    for words, nouns in LOWER_IS_BETTER.items():
        only_known = re.fullmatch(rf"( ({nouns}|{BESIDE_NOUNS}))*", head.rstrip())
        if only_known and re.search(rf"\b({nouns})\b", head):
            of_less = "|".join(LOWER_IS_BETTER.values())
            return None if re.search(rf"\b({of_less}|s|us|ns)\b", rate) else words
    return None
