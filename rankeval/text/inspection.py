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

from rankeval._checks import check_count, count, require, whole_number
from rankeval._visible import visible
from rankeval.collection.convention import Convention
from rankeval.collection.qrels import as_qrels
from rankeval.collection.run import as_run
from rankeval.errors import InvalidInput, UnknownName
from rankeval.evaluation import Evaluation, Given
from rankeval.evaluation import score as score_joined
from rankeval.evaluation.by_query import labels_of, query_places
from rankeval.evaluation.result import aggregates, by_name, worst_first
from rankeval.io.texts_by_id import as_texts
from rankeval.join.joined import Joined
from rankeval.measures import Measure
from rankeval.render.tables import number, signed
from rankeval.significance.columns import differences
from rankeval.significance.declarations import Rng, generator_of
from rankeval.significance.effects import Outcomes, outcomes
from rankeval.text.summaries import Snippet, snippets
from rankeval.text.terms import Analyzer

MOST_ROWS = 2_000
"""Ranked documents on one page, of all queries and systems."""

SHINGLE, DUPLICATE = 4, 0.5
"""Words of a shingle, and the Jaccard coefficient of shingles above which documents are
near-duplicates."""

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

    rank: int  # From 1; 0 if it is not shown in a ranking
    docid: str
    score: str
    label: str  # Its grade; empty if it is not judged
    # Its rank in the other of two systems, such as "↑ from 7", "↓ to 9", "=", "new" or "gone". If no
    # ranking shows the document, its ranks in all systems, or "not retrieved"
    moved: str
    twin: int  # The rank of the first near-duplicate above; 0 if there is none
    # Its text around the words of the need, or its first words; None if there is no text
    pieces: list[Piece] | None


class QueryCard(NamedTuple):
    """A query as a reader sees it."""

    qid: str
    need: str  # The text of the query; empty if there is none
    why: str  # Why it is shown, such as "greatest losses"
    # Each system with its score; of two systems the difference and "better" or "worse" too
    scores: list[tuple[str, str]]
    # Each system with the first documents of its ranking
    rankings: list[tuple[str, list[RankedDocument]]]
    # Relevant documents that are in no ranking shown: at most five, of the highest grades
    missed: list[RankedDocument]
    n_missed: int  # Relevant documents that are not shown
    n_judged: int


class Inspection(NamedTuple):
    """Some queries to be read, all queries in numbers, and sentences on what is not shown."""

    title: str  # The systems, and the measure that chose the queries
    measure: str
    means: list[tuple[str, str, str]]  # Each system, its aggregate and its number of queries
    outcomes: Outcomes | None  # Queries on which the second of two systems won, tied and lost
    cards: list[QueryCard]
    notes: list[str]  # What is not shown, and what may mislead
    convention: Convention
    has_texts: bool


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
    """Choose queries and lay out what a reader sees of each, for `report_for_queries`."""
    check_count("depth", depth)
    systems = _systems(evaluations)
    is_pair = len(systems) == 2
    are_named = isinstance(runs, Mapping) and systems.keys() <= runs.keys()
    expected = f"a mapping with the runs of {' and '.join(map(str, systems))}"
    require(are_named or not is_pair, "runs", runs, expected)
    first, label = next(iter(systems.values())), _label(systems, measure)
    sign = 1 if by_name(first)[label].family.greater_is_better else -1
    columns = [system.per_query[label] for system in systems.values()]
    scores = pd.concat(columns, axis=1, join="inner")
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
        order = first.queries[worst_first(first, label)].tolist()
        if gains:
            order = sorted(gains, key=gains.__getitem__)
        chosen = _extremes(order, gains, min(wanted, most), rng)
    truth, qids = as_qrels(qrels), {str(query) for query in chosen}
    need_of = _by_id(needs, "needs", "qid")
    rankings, others, means = [], [], []
    for place, (name, system) in enumerate(systems.items()):
        run = as_run(runs[name] if are_named else runs)
        data = Given.of(truth, run, queries=need_of or None)
        joined = data.refuse_or_join(system.convention, action="report_for_queries")
        order = ["score", "docid"][: 1 + (system.convention.ties == "docid")]
        shown, mean = _shown(str(name)), number(aggregates(system)[label])
        rankings.append((shown, _by_query(run.to_frame(), qids, order)))
        means.append((shown, mean, count(system.n_queries, "query")))
        scored = scores.loc[list(chosen)].iloc[:, place]
        if not _agree(joined, label, by_name(system)[label], scored):
            others.append(shown)
    judged = _by_query(truth.to_frame(), qids, ["relevance"])
    page = _Page(rankings, judged, _by_id(texts, "texts", "docid"), need_of, depth, stem, stop)
    cards = [
        page.card(query, why, scores.loc[query].tolist(), sign) for query, why in chosen.items()
    ]
    notes = [f"each ranking is shown to rank {depth:,}"]
    notes += [f"{label}: less is better"] if sign < 0 else []
    notes += _notes(label, others, wanted - most)
    notes += _notes_on_texts(page.texts, cards)
    title = " against ".join(name for name, _ in reversed(rankings))
    won = outcomes(gained) if is_pair else None
    return Inspection(title, label, means, won, cards, notes, first.convention, bool(page.texts))


def _systems(evaluations: Any) -> Mapping[str, Evaluation]:
    systems = evaluations
    if isinstance(evaluations, Evaluation):
        systems = {evaluations.name or "system": evaluations}
    are_evaluations = isinstance(systems, Mapping) and all(
        isinstance(system, Evaluation) for system in systems.values()
    )
    expected = "an Evaluation, or a mapping of one or two by name"
    require(are_evaluations, "evaluations", systems, expected)
    if len(systems) not in (1, 2):
        problem = f"a page takes one or two systems, found {len(systems)}"
        raise InvalidInput(problem, argument="evaluations")
    return systems  # type: ignore[no-any-return]  # checked


def _label(systems: Mapping[str, Evaluation], measure: str | Measure | None) -> str:
    """Return the name of the measure, by default the first that all systems have."""
    first, *others = (system.measure_names for system in systems.values())
    shared = [name for name in first if all(name in names for names in others)]
    try:
        return labels_of(shared[:1] if measure is None else measure, shared)[0]
    except UnknownName as error:
        problem = f"the evaluations lack a measure: {error}"
        raise UnknownName(problem, remedy="evaluate all systems by it") from None


def _agree(joined: Joined, label: str, measure: Measure, scores: pd.Series) -> bool:
    """Say whether scores are those of a ranking; nothing is known of columns of the rows."""
    if measure.columns:
        return True
    again = score_joined(joined, [(label, measure)]).per_query[label]
    return bool(np.allclose(again.reindex(scores.index), scores))


def _notes(label: str, others: list[str], n_left_out: int) -> Iterator[str]:
    if others:
        yield (
            f"by these judgments the rankings given have other {label} than shown for "
            f"{' and '.join(others)}"
        )
    if n_left_out > 0:
        left_out = count(n_left_out, "query")
        yield f"{left_out} left out: a page has at most {MOST_ROWS:,} documents"


def _notes_on_texts(texts: Mapping[str, str], cards: list[QueryCard]) -> Iterator[str]:
    documents = [document for card in cards for _, ranked in card.rankings for document in ranked]
    without = sum(document.pieces is None for document in documents)
    if texts and without:
        yield f"{count(without, 'ranked document')} without a text"
    if max(map(len, texts.values()), default=0) > MOST_LETTERS:
        yield f"only the first {MOST_LETTERS:,} characters of a text are read"


def _extremes(
    order: list[Any], gains: Mapping[Any, float] | None, n: int, rng: Rng
) -> dict[Any, str]:
    """Return two fifths from either end of the order, the rest at random, and why each."""
    few = -(-2 * n // 5)
    low = [query for query in order[:few] if gains is None or gains[query] < 0]
    high = order[len(low) :][::-1][: min(few, n - len(low))]
    high = [query for query in high if gains is None or gains[query] > 0]
    rest = [query for query in order if query not in {*low, *high}]
    drawn = np.sort(generator_of(rng).permutation(len(rest))[: n - len(low) - len(high)])
    worst, best = "greatest losses", "greatest gains"
    if gains is None:
        worst, best = "worst scores", "best scores"
    at_random = [rest[place] for place in drawn]
    ends = dict.fromkeys(low, worst) | dict.fromkeys(high, best)
    return ends | dict.fromkeys(at_random, "drawn at random")


def _by_query(
    frame: pd.DataFrame, queries: set[str], order: list[str]
) -> dict[str, dict[str, float]]:
    """Return the first column of an order by query and document, descending by all columns."""
    frame = frame[frame["qid"].astype(str).isin(queries)].astype({"qid": str, "docid": str})
    frame = frame.sort_values(order, ascending=False, kind="stable")
    by_query: dict[str, dict[str, float]] = {query: {} for query in queries}
    for query, docid, value in zip(frame["qid"], frame["docid"], frame[order[0]], strict=True):
        by_query[query].setdefault(docid, value)  # a document may have a judgment for each aspect
    return by_query


def _by_id(texts: Any, argument: str, part: str) -> dict[str, str]:
    if texts is None:
        return {}
    return {str(name): text for name, text in as_texts(texts, argument, part).items()}


@dataclass(frozen=True)
class _Page:
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
            difference = scores[1] - scores[0]
            gain = sign * difference
            word = "better" if gain > 0 else "worse" if gain < 0 else "equal"
            written.append((word, signed(difference)))
        shown = [
            (name, self._documents(qid, place)) for place, (name, _) in enumerate(self.rankings)
        ]
        need = _shown(self.needs.get(qid, ""))
        return QueryCard(_shown(qid), need, why, written, shown, *self._missed(qid))

    def _documents(self, qid: str, system: int) -> list[RankedDocument]:
        # Of one system the other is itself.
        ranking, other = (self.rankings[place][1][qid] for place in (system, -1 - system))
        ranks = {docid: rank for rank, docid in enumerate(other, 1)}
        documents, above = list[RankedDocument](), list[frozenset[int]]()
        for rank, (docid, score) in enumerate(list(ranking.items())[: self.depth], 1):
            shingles = _shingles(self.texts.get(docid, "")[:MOST_LETTERS])
            twin = _twin(shingles, above)
            above.append(shingles)
            moved = ""
            if len(self.rankings) == 2:
                moved = _moved(rank, ranks.get(docid), is_second=system == 1)
            documents.append(self._document(qid, docid, rank, number(score), moved, twin))
        return documents

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
        """Return the first relevant documents not shown, their number, and that of judged ones."""
        labels = self.judged[qid]
        lists = [(name, list(ranking[qid])) for name, ranking in self.rankings]
        shown = {docid for _, ranked in lists for docid in ranked[: self.depth]}
        missed = [docid for docid, label in labels.items() if label > 0 and docid not in shown]
        documents = list[RankedDocument]()
        for docid in missed[:_MISSED]:
            places = [
                f"rank {ranked.index(docid) + 1:,} of {name}"
                for name, ranked in lists
                if docid in ranked
            ]
            moved = _shown(" and ".join(places) or "not retrieved")
            documents.append(self._document(qid, docid, 0, "", moved))
        return documents, len(missed), len(labels)


def _twin(shingles: frozenset[int], above: list[frozenset[int]]) -> int:
    for rank, other in enumerate(above, 1):
        if len(other & shingles) > DUPLICATE * len(other | shingles):
            return rank
    return 0


def _moved(rank: int, other: int | None, *, is_second: bool) -> str:
    if other is None:
        return "new" if is_second else "gone"
    if rank == other:
        return "="
    rises = rank < other if is_second else other < rank
    return f"{'↑' if rises else '↓'} {'from' if is_second else 'to'} {other:,}"


def _shingles(text: str) -> frozenset[int]:
    """Return the hashes of all runs of terms of a length; of a shorter text that of all terms."""
    terms = Analyzer()(text)
    runs = [tuple(terms[at : at + SHINGLE]) for at in range(max(1, len(terms) - SHINGLE + 1))]
    return frozenset(map(hash, filter(None, runs)))


def _cut(text: str, parts: list[Snippet]) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text at and between words of the query, with ellipses for gaps."""
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
