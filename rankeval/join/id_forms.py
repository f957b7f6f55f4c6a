"""Why hardly a retrieved document is judged: the ids of run and qrels are written in two forms.

    run  doc-07.txt     qrels  7       one form alone: no two ids agree
                                       all forms, one after another: both are 7
                                       without each that is not needed: suffix, padding, prefix

A cause is named only if documents agree in that form, so the look of ids alone is no evidence. The
trap is a bad run on a small pool, which is told nothing but its count: its ids have the form of the
judged ones, and those that agree by chance, in a form that drops much of an id, are few.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from rankeval.io.columns import row_numbers
from rankeval.join.flat import NO_ROWS, Ints
from rankeval.join.matching import Side

FEW = 20
"""One in so many is few: of documents that could be judged, and of those that agree in a form."""

_MOST = 2**14
"""Ids of each side that are looked at."""

_SHORTEST_CUT = 8
"""Shorter ids are common, and say nothing about a field that was too short."""

_MOST_DIGITS = 24
"""Longer texts are not a float that a library has written."""

_FEWEST = 3
"""Ids of each side; of fewer, two prefixes may leave the same number by chance."""

_MOST_PAIRS = 200
"""Ids that show which forms are needed."""

_SWAPPED = "score and id swapped"

Texts = list[str]


class Unlike(NamedTuple):
    """An id of the run and one of the qrels, the same document if there is a cause (else "")."""

    run: str
    qrels: str
    cause: str


def advice(cause: str) -> str:
    """Return the likely cause and what to do, as the end of a note; "" without a cause."""
    if not cause:
        return ""
    swap, unify = "give each document as (id, score)", "write the ids of both sides in one form"
    return f"; likely cause: {cause}; {swap if cause == _SWAPPED else unify}"


Form = Callable[[Texts, Texts], tuple[Texts, Texts]]


def _by_id(change: Callable[[str], str]) -> Form:
    return lambda run, qrels: ([*map(change, run)], [*map(change, qrels)])


def _without(pattern: str) -> Form:
    compiled = re.compile(pattern)
    return _by_id(lambda text: compiled.sub("", text))


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _unescaped(text: str) -> str:
    return html.unescape(unquote(text))


def _decoded(text: str) -> str:
    with suppress(UnicodeError):
        return text.encode("cp1252").decode()
    return text


def _whole(text: str) -> str:
    is_number = re.fullmatch(r"-?\d+(\.\d*)?([eE]\+?\d+)?", text) and len(text) < _MOST_DIGITS
    if is_number and set(text) & set(".eE") and float(text).is_integer():
        return f"{float(text):.0f}"
    return text


def _joined(text: str) -> str:
    bare = re.sub(r"(?i)^urn:uuid:|[-{}]", "", text)
    return bare if re.fullmatch("[0-9a-fA-F]{32}", bare) else re.sub(r"[-_\s:./]+", "-", text)


def _cut(run: Texts, qrels: Texts) -> tuple[Texts, Texts]:
    """Cut the longer ids of one side where nearly all ids of the other end."""
    size = min(max(map(len, run)), max(map(len, qrels)))
    shares = sorted(sum(len(text) == size for text in side) / len(side) for side in (run, qrels))
    is_cut = size >= _SHORTEST_CUT and shares[1] > 1 / 2 > shares[0]
    if not is_cut or all(map(str.isdigit, run)):
        return run, qrels
    return [text[:size] for text in run], [text[:size] for text in qrels]


def _unprefixed(run: Texts, qrels: Texts) -> tuple[Texts, Texts]:
    """Drop the beginning that nearly all ids of a side have."""
    of_run, of_qrels = _head(run), _head(qrels)
    if of_run and of_qrels and min(len(run), len(qrels)) < _FEWEST:
        return run, qrels
    run = [text.removeprefix(of_run) for text in run]
    return run, [text.removeprefix(of_qrels) for text in qrels]


def _head(texts: Texts) -> str:
    parts = re.findall(r"\d+|[^\W\d_]+|[\W_]+", texts[len(texts) // 2])
    heads = ["".join(parts[:n]) for n in range(len(parts) - 1, 0, -1) if not parts[n - 1].isdigit()]
    least = len(texts) - len(texts) // FEW
    for head in heads:
        if sum(text.startswith(head) for text in texts) >= least:
            return head
    return ""


_EDGES = r"\s\ufeff\u200b'\"<>\[\](),;"

_OUTER = _without(rf"^(b(?=['\"]))?[{_EDGES}]+|[{_EDGES}]+$")
_FILE = _without(r"^.*[/\\](?=.)|(?<=.)(\.[A-Za-z]\w{0,5})+$")
_PADDING = _without(r"(?<!\d)0+(?=\d)")
_PASSAGE = _without(r"(?<=.)([#%]|::).*$|(?<=\d)v\d+$")

FORMS: dict[str, Form] = {
    "blanks, line ends or quotes around ids": _OUTER,
    "letter case": _by_id(str.casefold),
    "the normal form of Unicode (NFC, NFD)": _by_id(_normal),
    "text that was read in a wrong encoding": _by_id(_decoded),
    "escapes such as %20 or &amp;": _by_id(_unescaped),
    "whole numbers that became floats (.0)": _by_id(_whole),
    "padding with zeros": _PADDING,
    "a path or the suffix of a file": _FILE,
    "the number of a passage or version behind the id": _PASSAGE,
    "dashes or other separators": _by_id(_joined),
    "ids that were cut": _cut,
    "a prefix": _unprefixed,
}
"""Cause -> the form without it, of the ids of both sides. The first are the least rough."""


@dataclass(frozen=True)
class _Sample:
    """Ids of some queries, the number of the query of each, and the rows of the side."""

    ids: Texts
    query: list[int]
    rows: Ints = field(default_factory=lambda: NO_ROWS)

    @classmethod
    def of(cls, side: Side, queries: Ints) -> _Sample:
        parts = [side.part(slice(query, query + 1)) for query in queries.tolist()]
        by_query = [side.rows[part][:_MOST] for part in parts]
        rows = np.concatenate(by_query)
        ids = [str(docid) for docid in side.docid.take(row_numbers(rows)).to_pylist()]
        return cls(ids, np.repeat(queries, [len(part) for part in by_query]).tolist(), rows)

    def by_key(self, ids: Texts) -> dict[tuple[int, str], str]:
        """Return the ids by query and their form."""
        return dict(zip(zip(self.query, ids, strict=True), self.ids, strict=True))


def unlike_ids(
    truth: Side, ranked: Side, n_judged: int, score: NDArray[np.float64]
) -> Unlike | None:
    """Return why few retrieved documents are judged; None if many are, or some without a cause."""
    possible = np.minimum(np.diff(truth.offsets), np.diff(ranked.offsets))
    if FEW * n_judged > possible.sum() or not possible.any():
        return None
    some = np.flatnonzero(possible)[:: 1 + (len(truth.rows) + len(ranked.rows)) // _MOST]
    run, qrels = _Sample.of(ranked, some), _Sample.of(truth, some)
    least = int(possible[some].sum()) // FEW
    swapped = _swapped(run, qrels, score[run.rows])
    if len(swapped) > least:
        return Unlike(*swapped[0], _SWAPPED)
    differing = _differing(run, qrels, least)
    if differing or n_judged:
        return differing
    return Unlike(run.ids[0], qrels.ids[0], "")


def _differing(run: _Sample, qrels: _Sample, least: int) -> Unlike | None:
    """Return the forms in which more than ``least`` unlike ids agree, and the first two ids."""
    for forms in (*([form] for form in FORMS), [*FORMS]):
        pairs = _agreeing(run, qrels, forms)
        if len(pairs) > least:
            return Unlike(*pairs[0], " and ".join(_needed(pairs[:_MOST_PAIRS], forms)))
    return None


def _needed(pairs: Sequence[tuple[str, str]], forms: list[str]) -> list[str]:
    """Return the forms without those that the ids agree without."""
    run, qrels = (_Sample([*ids], [*range(len(pairs))]) for ids in zip(*pairs, strict=True))
    for form in reversed(forms[1:] and forms):
        others = [other for other in forms if other != form]
        if len(_agreeing(run, qrels, others)) == len(pairs):
            forms = others
    return forms


def _agreeing(run: _Sample, qrels: _Sample, forms: Iterable[str]) -> list[tuple[str, str]]:
    """Return the unlike ids of one query, of the run and the qrels, that agree in a form."""
    run_ids, judged_ids = run.ids, qrels.ids
    for form in forms:
        run_ids, judged_ids = FORMS[form](run_ids, judged_ids)
    judged = qrels.by_key(judged_ids)
    retrieved = run.by_key(run_ids).items()
    pairs = [(docid, judged[key]) for key, docid in retrieved if key in judged and key[1]]
    return [pair for pair in pairs if pair[0] != pair[1]]


def _swapped(run: _Sample, qrels: _Sample, score: NDArray[np.float64]) -> list[tuple[str, str]]:
    """Return ids of the run and the judged ids in its scores, if its ids fall as scores do."""
    try:
        numbers = np.array(run.ids, dtype=np.float64)
    except ValueError:
        return []
    is_next = np.diff(run.query) == 0
    falls, others = (np.diff(column)[is_next] for column in (numbers, score))
    if (falls >= 0).any() or (others <= 0).all() or (score != np.floor(score)).any():
        return []
    known = qrels.by_key(qrels.ids)
    keys = zip(run.query, (f"{number:.0f}" for number in score), strict=True)
    return [(text, known[key]) for text, key in zip(run.ids, keys, strict=True) if key in known]
