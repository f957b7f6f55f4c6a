"""Collections made to trip an evaluation program up, each from its number alone.

Only `random.Random.random` is called, whose values are the same in every version of Python, and every score and label
is written as a text that was chosen as such: the files are the same bytes everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

N_COLLECTIONS = 60

KINDS = ("qrels", "qrels", "qrels", "qrels", "qrels_jg", "prefs")
"""What judgments are of, in turn: grades, grades by several judges, preferences by several judges."""

OF_GRADES = (
    (),
    ("-q", "-m", "all_trec"),
    ("-q", "-c", "-m", "all_trec"),
    ("-q", "-c", "-l", "2", "-m", "all_trec", "-m", "relstring.4"),
    ("-q", "-c", "-M", "3", "-m", "all_trec"),
    ("-q", "-J", "-m", "all_trec", "-m", "yaap"),
    ("-q", "-c", "-N", "5000", "-m", "set", "-m", "utility.1,-0.5,-0.25,0.001"),
    ("-n", "-q", "-c", "-l", "0", "-m", "official", "-m", "success.2,7", "-m", "ndcg_cut.1,4,6"),
    (
        *("-q", "-c", "-m", "P.1,3,7", "-m", "recall.2,50", "-m", "iprec_at_recall.0.05,.33,0.5,1", "-m", "set_F.0.3"),
        *("-m", "Rprec_mult.0.3,1.7", "-m", "11pt_avg.0.2,0.5,0.8", "-m", "map_cut.1,4", "-m", "utility.2,-1,-0.5,0"),
        *(
            "-m",
            "ndcg.1=4.5,2=9,3=6,4=1",
            "-m",
            "yaap",
            "-m",
            "success.3",
            "-m",
            "relative_P.2,9",
            "-m",
            "relstring.20",
        ),
    ),
    ("-q", "-c", "-J", "-M", "8", "-l", "3", "-m", "all_trec", "-m", "yaap", "-m", "num_nonrel_judged_ret"),
)
OF_GROUPS = tuple(
    (*flags, "-m", "qrels_jg", *more)
    for flags in (("-q",), ("-q", "-c"), ("-q", "-M", "4"), ("-q", "-c", "-l", "2"), ("-q", "-c", "-J"))
    for more in ((), ("-m", "P_avgjg.2,6", "-m", "Rprec_mult_avgjg.0.4,1.2"))
)
OF_PREFERENCES = tuple(
    (*flags, "-m", *measures)
    for flags in (("-q",), ("-q", "-c"), (), ("-q", "-c", "-M", "3"), ("-n", "-q", "-c", "-J"))
    for measures in (("all_prefs",), ("prefs", "-m", "prefs_simp_ret", "-m", "prefs_num_prefs_ful_ret"))
)
FLAGS = {"qrels": OF_GRADES, "qrels_jg": OF_GROUPS, "prefs": OF_PREFERENCES}
"""Ten sets of flags for each kind of judgments.

They stay within what trec_eval computes at all: levels of relevance below 0 make it read memory that is not its own,
and gains that differ by less than 1 it takes for equal when it looks for the ideal list.
"""

DOCIDS = (
    *("d1", "d10", "d2", "D2", "d02", "a", "aa", "é", "e\u0301", "文書", "文", "\U0001f600", "~", "-", "'", '"', "%s"),
    *("%", "x" * 300, "x" * 299 + "y", "0", "00", "-1", "1e3", "nan", "WSJ880406-0090", "clueweb12-0000tw-00-00013"),
    "zß",
)
TOPICS = ("1", "10", "2", "01", "A", "a", "tópico", "題", "q%d", "t" * 40, "-3", "301")

SCORES = {
    "plain": ("3", "2", "1", "0.5", "12.25", "-1", "7"),
    "tied": ("1",),
    "few": ("1", "1.0", "2", "0"),
    "narrow": ("16777216", "16777217", "16777218", "0.1", "0.10000000149011612", "0.1000000000000001", "33554433"),
    "spelt": ("+3", "3.0", ".5", "5.", "1E1", "1e1", "10", "-.5", "005", "0.5000"),
    "zero": ("0", "-0", "0.0", "-0.0", "+0", "0e5", "4.9e-324", "-4.9e-324", "1e-400"),
    "small": ("4.9e-324", "1e-310", "2.2250738585072014e-308", "1e-45", "1e-46", "1.4e-45", "-1e-320", "0"),
    "huge": ("1.7976931348623157e308", "-1.7976931348623157e308", "1e39", "2e39", "3.4028235e38", "3.5e38", "-1e39"),
    "near": ("0.3", "0.30000000000000004", "0.1", "0.2", "0.29999999999999999", "1", "0.9999999999999999"),
}
LABELS = {
    "binary": ("0", "1"),
    "graded": ("0", "1", "2", "3", "4"),
    "zeros": ("0",),
    "ones": ("1",),
    "negative": ("-1", "-2", "0", "1", "2"),
    "large": ("0", "1", "10", "100", "1000", "9"),
    "spelt": ("+1", "01", "-0", "002", "0"),
    "high": ("2", "3", "7"),
}
PREFERENCES = ("0", "1", "2", "3", "0.5", "1.5", "0", "1.0", "10")


class Chance:
    """Choices that follow from a number."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random  # noqa: S311 (no secret)

    def below(self, n: int) -> int:
        """Return a whole number from 0 to n - 1."""
        return int(self._random() * n)

    def one_of(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self.below(len(values))]

    def happens(self, share: float) -> bool:
        """Say yes in this share of the calls."""
        return self._random() < share

    def order(self, values: Sequence[T]) -> list[T]:
        """Return the values in any order."""
        rest = list(values)
        return [rest.pop(self.below(len(rest))) for _ in values]


@dataclass(frozen=True)
class Collection:
    """Two files as text, and what the first is.

    Attributes
    ----------
    kind : str
        As after trec_eval's ``-R``.
    qrels, run : str
        The text of the files.
    """

    kind: str
    qrels: str
    run: str


def collection(number: int) -> Collection:
    """Return the collection of a number, from 0 to `N_COLLECTIONS`."""
    chance = Chance(number)
    kind = KINDS[number % len(KINDS)]
    topics = chance.order(TOPICS)[: 1 + chance.below(6)]
    deep = kind == "qrels" and chance.happens(0.1)
    qrels, run = [], []
    complete = chance.happens(0.4)  # trec_eval 10 stops at a topic that the run lacks unless there is -c
    for place, topic in enumerate(topics):
        known = chance.order(DOCIDS)[: 1 + chance.below(len(DOCIDS))]
        if deep:
            known += [f"{'ab'[chance.below(2)]}{at}" for at in range(100 + chance.below(150))]
        if place and chance.happens(0.15):
            known = known[:1]
        everywhere = complete or not place
        if everywhere or chance.happens(0.85):
            qrels += _judgments(chance, kind, topic, known)
        elif chance.happens(0.2):
            continue
        if everywhere or chance.happens(0.8):
            run += _ranking(chance, topic, known)
    return Collection(kind, _text(chance, qrels), _text(chance, run))


def _judgments(chance: Chance, kind: str, topic: str, known: list[str]) -> list[list[str]]:
    """Return the judgments of a topic: one for each document, or for each judge and document."""
    judged = [doc for doc in known if chance.happens(0.7)] or known[:1]
    if kind == "qrels":
        labels = LABELS[chance.one_of(tuple(LABELS))]
        # Where no label is 0 or above, trec_eval stops or reads what the topic before left behind.
        return [[topic, "0", doc, chance.one_of(labels) if at else labels[-1]] for at, doc in enumerate(judged)]
    judges = ("j1", "j2", "j10", "ä")[: 1 + chance.below(4)]
    if kind == "qrels_jg":
        labels = LABELS[chance.one_of(("binary", "graded", "zeros", "high", "negative"))]
        pairs = [(judge, doc) for judge in judges for doc in judged if chance.happens(0.8)] or [("j1", judged[0])]
        return [[topic, judge, doc, chance.one_of(labels)] for judge, doc in pairs]
    rows = []
    for judge in judges:
        grades = [chance.one_of(PREFERENCES) for _ in judged]
        for part in ("s1", "s2")[: 1 + chance.below(2)]:
            if chance.happens(0.02):  # mostly against what the other sub-group says, which all programs refuse
                grades = chance.order(grades)
            known = zip(judged[:12], grades, strict=False)
            rows += [[topic, judge, part, doc, grade] for doc, grade in known if chance.happens(0.7)]
    return rows or [[topic, "j1", "s1", judged[0], "1"]]


def _ranking(chance: Chance, topic: str, known: list[str]) -> list[list[str]]:
    """Return the rows of a topic's ranking, some of their documents without a judgment."""
    found = [doc for doc in known if chance.happens(0.8)] + [f"new{at}" for at in range(chance.below(8))]
    scores = SCORES[chance.one_of(tuple(SCORES))]
    return [[topic, "Q0", doc, "0", chance.one_of(scores), "tag"] for doc in found or known[:1]]


def _text(chance: Chance, rows: list[list[str]]) -> str:
    """Return rows in any order as lines, their columns apart by one blank, by one tab, or by several of both."""
    apart = chance.one_of((" ", "\t", " ", "several"))
    end = chance.one_of(("\n", "\n", "\r\n", " \n"))
    lines = [
        "".join(cell + (chance.one_of((" ", "\t", "  ", " \t")) if apart == "several" else apart) for cell in row[:-1])
        + row[-1]
        for row in chance.order(rows)
    ]
    return end.join(lines) + ("" if chance.happens(0.1) else end)
