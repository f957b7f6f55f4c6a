r"""Queries to be read one by one: which ones, and what a reader sees of each.

A bug in relevance is found by reading ten queries, not by a mean. So the queries of a page are
those that lost most, those that gained most, and some that were drawn by chance: extremes alone say
nothing about the usual query::

    evaluations -> greatest losses, greatest gains, a random few -> QueryCard
    runs        -> the first documents of each system, and how they moved       RankedDocument
    texts       -> pieces of text around the words of the need, near-duplicates  Piece

Ids, needs and texts come from strangers. Here each becomes text that can be shown: white space is
one blank, and a control character (NUL, U+202E) is written as ``\u202e``, so that nothing steers
the reader's eye. A text is cut into pieces before a template escapes it: an escaped text is never
cut, so that no mark can stand within ``&lt;``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rankeval._checks import check_count, count, refuse, require, whole_number
from rankeval._visible import visible
from rankeval.collection.convention import Convention
from rankeval.collection.qrels import as_qrels
from rankeval.collection.run import as_run
from rankeval.errors import UnknownName
from rankeval.evaluation import Evaluation, Given
from rankeval.evaluation import score as score_joined
from rankeval.evaluation.by_query import labels_of, query_places
from rankeval.evaluation.result import aggregates, by_name, worst_first
from rankeval.measures import Measure
from rankeval.render.tables import number, signed
from rankeval.significance.columns import differences
from rankeval.significance.declarations import Rng, generator_of
from rankeval.significance.effects import Outcomes, outcomes
from rankeval.text.summaries import Snippet, snippets
from rankeval.text.terms import Analyzer, as_texts

MOST_ROWS = 2_000
"""Ranked documents on one page, of all queries and systems."""

SHINGLE, DUPLICATE = 4, 0.5
"""Words of a shingle, and the Jaccard coefficient of the shingles above which two documents are near-duplicates."""

MOST_LETTERS = 100_000
"""Letters of a text that are read."""

_LETTERS, _MISSED = 1_000, 5
_BLANKS = re.compile(r"[^\S\xa0]+")


class Piece(NamedTuple):
    """A piece of a text, and whether it is a word of the query."""

    text: str
    is_marked: bool


class RankedDocument(NamedTuple):
    """A document in the ranking of a system."""

    rank: int  # Its rank, from 1; 0 if it is not shown in a ranking
    docid: str  # Its id and its score
    score: str
    label: str  # Its grade; empty if it is not judged
    # Its rank in the other of two systems, such as "↑ from 7" or "↓ to 9"; "=", "new" or "gone". If
    # no ranking shows the document, its ranks in all systems, or "not retrieved".
    moved: str
    twin: int  # The rank of the first document above that has nearly the same text; 0 if there is none
    # Its text around the words of the need, or its first words; None if there is no text.
    pieces: list[Piece] | None


class QueryCard(NamedTuple):
    """A query as a reader sees it."""

    qid: str  # The id, and the text of the query; empty if there is none
    need: str
    why: str  # Why it is shown, such as "greatest losses"
    # Each system with its score; of two systems the difference and "better" or "worse" too.
    scores: list[tuple[str, str]]
    rankings: list[
        tuple[str, list[RankedDocument]]
    ]  # Each system with the first documents of its ranking
    # Relevant documents that are in no ranking shown: at most five, of the highest grades.
    missed: list[RankedDocument]
    n_missed: int  # How many documents are relevant and not shown, and how many are judged
    n_judged: int


class Inspection(NamedTuple):
    """Some queries to be read, all queries in numbers, and sentences on what is not shown."""

    title: str  # The systems, and the measure that chose the queries
    measure: str
    means: list[
        tuple[str, str, str]
    ]  # Each system, its aggregate over all queries, and their number
    outcomes: Outcomes | None  # On how many queries the second of two systems won, tied and lost
    cards: list[QueryCard]  # The queries
    notes: list[str]  # What is not shown, and what may mislead
    convention: Convention  # The rules of the scores
    has_texts: bool  # Whether texts were given


def inspected(
    evaluations: Evaluation | Mapping[str, Evaluation],
    runs: Any,
    qrels: Any,
    texts: Any,
    needs: Any,
    queries: Any,
    measure: str | Measure | None,
    depth: int,
    rng: Rng,
    stem: str | None,
    stop: str | Collection[str] | None,
) -> Inspection:
    """Choose queries and lay out what a reader sees of each; see `rankeval.report.report_for_queries`."""
    check_count("depth", depth)
    systems = (
        {evaluations.name or "system": evaluations}
        if isinstance(evaluations, Evaluation)
        else evaluations
    )
    are_evaluations = isinstance(systems, Mapping) and all(
        isinstance(one, Evaluation) for one in systems.values()
    )
    require(
        are_evaluations, "evaluations", systems, "an Evaluation, or a mapping of one or two by name"
    )
    is_pair, found = len(systems) == 2, f"a page takes one or two systems, found {len(systems)}"
    refuse((not is_pair and len(systems) != 1, found), argument="evaluations")
    are_named = isinstance(runs, Mapping) and systems.keys() <= runs.keys()
    require(
        are_named or not is_pair,
        "runs",
        runs,
        f"a mapping with the runs of {' and '.join(map(str, systems))}",
    )
    first = next(iter(systems.values()))
    shared = [
        name
        for name in first.measure_names
        if all(name in one.measure_names for one in systems.values())
    ]
    try:
        label = labels_of(shared[:1] if measure is None else measure, shared)[0]
    except UnknownName as error:
        raise UnknownName(
            f"the evaluations lack a measure: {error}", remedy="evaluate all systems by it"
        ) from None
    sign = 1 if by_name(first)[label].family.greater_is_better else -1
    scores = pd.concat([one.per_query[label] for one in systems.values()], axis=1, join="inner")
    require(len(scores), "evaluations", list(systems), "evaluations with a query in common")
    gained = sign * differences(scores.iloc[:, -1], scores.iloc[:, 0])
    gains = dict(zip(scores.index, gained, strict=True)) if is_pair else None
    depth = min(depth, MOST_ROWS // len(systems))
    most, wanted = MOST_ROWS // (depth * len(systems)), whole_number(queries)
    if wanted is None:
        places = query_places(queries, scores.index.to_numpy(), first.excluded)
        chosen, wanted = dict.fromkeys(scores.index[places[:most]], "asked for"), len(places)
    else:
        check_count("queries", wanted)
        order = (
            sorted(gains, key=gains.__getitem__)
            if gains
            else first.queries[worst_first(first, label)].tolist()
        )
        chosen = _extremes(order, gains, min(wanted, most), rng)
    truth, names, rankings, others, means = (
        as_qrels(qrels),
        {str(query) for query in chosen},
        [],
        [],
        [],
    )
    asked = _by_id(needs, "needs", "qid")
    for place, (name, one) in enumerate(systems.items()):
        run = as_run(runs[name] if are_named else runs)
        joined = Given.of(truth, run, queries=asked or None).refuse_or_join(
            one.convention, action="report_for_queries"
        )
        order = ["score", "docid"][: 1 + (one.convention.ties == "docid")]
        rankings.append((_shown(str(name)), _by_query(run.to_frame(), names, order)))
        means.append(
            (rankings[-1][0], number(aggregates(one)[label]), count(one.n_queries, "query"))
        )
        if not by_name(one)[label].columns:
            again = (
                score_joined(joined, [(label, by_name(one)[label])])
                .per_query[label]
                .reindex(list(chosen))
            )
            others += [rankings[-1][0]] * (
                not np.allclose(again, scores.loc[list(chosen)].iloc[:, place])
            )
    judged = _by_query(truth.to_frame(), names, ["relevance"])
    data = _Data(rankings, judged, _by_id(texts, "texts", "docid"), asked, depth, stem, stop)
    cards = [
        data.card(query, why, scores.loc[query].tolist(), sign) for query, why in chosen.items()
    ]
    without = sum(each.pieces is None for card in cards for _, of in card.rankings for each in of)
    longest = max(map(len, data.texts.values()), default=0)
    notes = {
        f"each ranking is shown to rank {depth:,}": True,
        f"{label}: less is better": sign < 0,
        f"by these judgments the rankings given have other {label} than shown for {' and '.join(others)}": others,
        f"{count(wanted - most, 'query')} left out: a page has at most {MOST_ROWS:,} documents": wanted
        > most,
        f"{count(without, 'ranked document')} without a text": data.texts and without,
        f"only the first {MOST_LETTERS:,} characters of a text are read": longest > MOST_LETTERS,
    }
    title = " against ".join(name for name, _ in reversed(rankings))
    won, said = (
        outcomes(gained) if is_pair else None,
        [note for note, holds in notes.items() if holds],
    )
    return Inspection(title, label, means, won, cards, said, first.convention, bool(data.texts))


def _extremes(
    order: list[Any], gains: Mapping[Any, float] | None, n: int, rng: Rng
) -> dict[Any, str]:
    """Return two fifths from the low end of the order, two from the high end, the rest at random, and why each."""
    few = -(-2 * n // 5)
    low = [one for one in order[:few] if gains is None or gains[one] < 0]
    high = order[len(low) :][::-1][: min(few, n - len(low))]
    high = [one for one in high if gains is None or gains[one] > 0]
    rest = [one for one in order if one not in {*low, *high}]
    drawn = np.sort(generator_of(rng).permutation(len(rest))[: n - len(low) - len(high)])
    words = (
        ("worst scores", "best scores") if gains is None else ("greatest losses", "greatest gains")
    )
    found = {one: word for ids, word in zip((low, high), words, strict=True) for one in ids}
    return found | {rest[place]: "drawn at random" for place in drawn}


def _by_query(
    frame: pd.DataFrame, queries: set[str], order: list[str]
) -> dict[str, dict[str, float]]:
    """Return the first column of an order by query and document, sorted by all of them, descending."""
    frame = frame[frame["qid"].astype(str).isin(queries)].astype({"qid": str, "docid": str})
    frame = frame.sort_values(order, ascending=False, kind="stable")
    found: dict[str, dict[str, float]] = {query: {} for query in queries}
    for query, docid, number_of in zip(frame["qid"], frame["docid"], frame[order[0]], strict=True):
        found[query].setdefault(docid, number_of)  # a document may have a judgment for each aspect
    return found


def _by_id(given: Any, argument: str, part: str) -> dict[str, str]:
    return (
        {}
        if given is None
        else {str(name): text for name, text in as_texts(given, argument, part).items()}
    )


@dataclass(frozen=True)
class _Data:
    """Rankings and judgments by query, and texts, with all ids as text."""

    rankings: Sequence[tuple[str, Mapping[str, Mapping[str, float]]]]
    judged: Mapping[str, Mapping[str, float]]
    texts: Mapping[str, str]
    needs: Mapping[str, str]
    depth: int
    stem: str | None
    stop: str | Collection[str] | None

    def card(self, query: Any, why: str, scores: list[float], sign: int) -> QueryCard:
        qid = str(query)
        written = [
            (name, number(score)) for (name, _), score in zip(self.rankings, scores, strict=True)
        ]
        if len(scores) == 2:
            gain = sign * (scores[1] - scores[0])
            written.append(
                (
                    "better" if gain > 0 else "worse" if gain < 0 else "equal",
                    signed(scores[1] - scores[0]),
                )
            )
        shown = [
            (name, self._documents(qid, place)) for place, (name, _) in enumerate(self.rankings)
        ]
        return QueryCard(
            _shown(qid), _shown(self.needs.get(qid, "")), why, written, shown, *self._missed(qid)
        )

    def _documents(self, qid: str, system: int) -> list[RankedDocument]:
        # Of one system the other is itself.
        ranking, other = (self.rankings[place][1][qid] for place in (system, -1 - system))
        ranks = {docid: rank for rank, docid in enumerate(other, 1)}
        found, above = list[RankedDocument](), list[frozenset[int]]()
        for rank, (docid, score) in enumerate(list(ranking.items())[: self.depth], 1):
            own = _shingles(self.texts.get(docid, "")[:MOST_LETTERS])
            twin = next(
                (
                    at
                    for at, one in enumerate(above, 1)
                    if len(one & own) > DUPLICATE * len(one | own)
                ),
                0,
            )
            above.append(own)
            moved = (
                _moved(rank, ranks.get(docid), is_second=system == 1)
                if len(self.rankings) == 2
                else ""
            )
            found.append(self._document(qid, docid, rank, number(score), moved, twin))
        return found

    def _document(
        self, qid: str, docid: str, rank: int, score: str, moved: str, twin: int = 0
    ) -> RankedDocument:
        label = f"{self.judged[qid][docid]:g}" if docid in self.judged[qid] else ""
        pieces = self._pieces(docid, self.needs.get(qid, ""))
        return RankedDocument(rank, _shown(docid), score, label, moved, twin, pieces)

    def _pieces(self, docid: str, need: str) -> list[Piece] | None:
        if docid not in self.texts:
            return None
        text, pieces, room = self.texts[docid][:MOST_LETTERS], list[Piece](), _LETTERS
        for piece, is_marked in _cut(text, snippets(text, need, stem=self.stem, stop=self.stop)):
            if room > 0 and piece:
                pieces.append(Piece(_shown(piece, room), is_marked))
                room -= len(pieces[-1].text)
        return pieces

    def _missed(self, qid: str) -> tuple[list[RankedDocument], int, int]:
        """Return the first relevant documents that no ranking shows, their number, and that of judged documents."""
        labels, lists = self.judged[qid], [(name, list(of[qid])) for name, of in self.rankings]
        shown = {docid for _, of in lists for docid in of[: self.depth]}
        missed = [docid for docid, label in labels.items() if label > 0 and docid not in shown]
        found = list[RankedDocument]()
        for docid in missed[:_MISSED]:
            places = [
                f"rank {of.index(docid) + 1:,} of {name}" for name, of in lists if docid in of
            ]
            found.append(
                self._document(qid, docid, 0, "", _shown(" and ".join(places) or "not retrieved"))
            )
        return found, len(missed), len(labels)


def _moved(rank: int, other: int | None, *, is_second: bool) -> str:
    if other is None:
        return "new" if is_second else "gone"
    rises = rank < other if is_second else other < rank
    return (
        "="
        if rank == other
        else f"{'↑' if rises else '↓'} {'from' if is_second else 'to'} {other:,}"
    )


def _shingles(text: str) -> frozenset[int]:
    """Return the hashes of all runs of so many terms; of a shorter text the one of all its terms."""
    terms = Analyzer()(text)
    runs = [tuple(terms[at : at + SHINGLE]) for at in range(max(1, len(terms) - SHINGLE + 1))]
    return frozenset(map(hash, filter(None, runs)))


def _cut(text: str, parts: list[Snippet]) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text between and at the words of the query, with an ellipsis where text is left out."""
    at = 0
    for part in parts:
        yield _between(text[at : part.start], "\N{NO-BREAK SPACE}… " if at else "… "), False
        at = part.start
        for start, end in part.marks:
            yield text[at:start], False
            yield text[start:end], True
            at = end
        yield text[at : part.end], False
        at = part.end
    yield _between(text[at:], "\N{NO-BREAK SPACE}…"), False


def _between(text: str, ellipsis: str) -> str:
    return ellipsis if any(map(str.isalnum, text)) else text


def _shown(text: str, most: int = _LETTERS) -> str:
    shown = visible(_BLANKS.sub(" ", text))
    return shown if len(shown) <= most else f"{shown[:most]}…"
