"""Score what is joined, query by query.

A convention decides the join, which queries count, and the parameters that a measure's name leaves
open; after that a measure is a pure function of a chunk of judged queries. `score` goes through the
chunks once:

    chunk of Joined -> Judged -> one value a query and measure, the numbers of documents, the two
    digests

The trap: 0/0 comes out of a kernel as nan. Its count in ``undefined``, its value (0 or 1) and the
rule that leaves such queries out are settled at the end, over all chunks, in that order (see
`rankeval.evaluation.lacking`).

A run that nobody pooled has many documents without a judgment, which count as not relevant. So it
may lose for having found others, and two systems with unlike shares are not compared fairly.
Whoever compares needs to know the share, and the scores if these documents were relevant or were
not there (`rankeval.join.what_if`). Both follow from the ranked chunk that is scored anyway, and
cannot be had from scores later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import chosen
from rankeval.collection.convention import Convention
from rankeval.errors import warn
from rankeval.evaluation.facts import (
    QUERY_COUNTS,
    READINGS,
    QueryFacts,
    column_hashes,
    label_hashes,
    ranking_hashes,
)
from rankeval.evaluation.lacking import fixed, lacking, left_out
from rankeval.evaluation.result import Evaluation
from rankeval.join.flat import Floats, Ints, offsets_of, ratio
from rankeval.join.joined import DEEPEST, Joined
from rankeval.join.judged import Judged, TiedGroups
from rankeval.join.what_if import completed, condensed
from rankeval.measures import Measure
from rankeval.measures.family import FAMILIES, are_unnamed

Named = Iterable[tuple[str, Measure]]


@dataclass(frozen=True, eq=False)
class Unread:
    """The scores of an evaluation in all readings of its unjudged documents, filled in chunk by chunk."""

    # (3, n_queries, n_measures): The scores themselves; if unjudged documents are relevant; without
    # them. The first alone if there are none.
    scores: Floats
    judged: Floats  # (n_queries, n_measures): The share of the documents within the cut-off that is judged
    grade: float  # The greatest grade of the collection, at least 1
    # The standard errors of scores that are means over drawn orders of tied rows, by query and
    # measure.
    drawn: dict[tuple[int, int], float] = field(default_factory=dict)

    @classmethod
    def of(cls, joined: Joined, n_measures: int) -> Unread:
        """Return the scores to fill; those of arrays, which have no documents but their rows, are not read."""
        is_read = joined.identity is not None and joined.convention.unjudged != "skip"
        if not is_read or not joined.rule_counts["unjudged"].any():
            return cls(np.empty((1, joined.n_queries, n_measures)), np.empty((0, 0)), 0.0)
        grades = (float(labels.max(initial=1)) for labels in (joined.relevance, joined.unretrieved))
        scores = np.empty((3, joined.n_queries, n_measures))
        return cls(scores, np.empty_like(scores[0]), max(grades))

    def read(self, queries: Ints, judged: Judged, measures: Mapping[int, Measure]) -> None:
        """Fill in the scores of a chunk by some measures, given by column, in all readings."""
        columns = np.empty((len(measures), judged.n_queries))
        for values, (column, one) in zip(columns, measures.items(), strict=True):
            judged.drawn.clear()
            values[:] = one.values(judged)
            self.drawn.update(
                ((int(queries[query]), column), error) for query, error in judged.drawn.items()
            )
        if len(measures) == self.scores.shape[2]:
            # Each line of memory is written once, not once a measure (bench_arrays D).
            self.scores[0, queries] = columns.T
        else:
            self.scores[0, queries[:, None], list(measures)] = columns.T
        if len(self.scores) == 1:
            return
        assert judged.judged is not None
        rest, before = condensed(judged), offsets_of(judged.judged)
        whole = {
            cutoff: completed(judged, cutoff, self.grade)
            for cutoff in {one.cutoff for one in measures.values()}
        }
        for column, one in measures.items():
            within = judged.mean_within(judged.ties, before, one.cutoff)
            self.judged[queries, column] = ratio(within, judged.depth(one.cutoff), otherwise=1.0)
            for place, chunk in (1, whole[one.cutoff]), (2, rest):
                self.scores[place, queries, column] = (
                    one.values(chunk) if one.family.needs == "grades" else 0.0
                )

    def readings(self, measures: Sequence[Measure]) -> dict[str, Floats]:
        """Return the readings, nan by measures that read more than a grade a document."""
        if len(self.scores) == 1:
            return {}
        self.scores[1:, :, [one.family.needs != "grades" for one in measures]] = np.nan
        return dict(zip(READINGS, [self.judged, *self.scores[1:]], strict=True))


def score(
    joined: Joined,
    asked: Named,
    *,
    weights: Floats | None = None,
    name: str | None = None,
    rows: Any = None,
) -> Evaluation:
    """Score what is joined, and warn if no query is left. See `score_part`; ``rows`` has the query of each row."""
    scored = warned_if_empty(score_part(joined, asked, weights=weights, name=name))
    return replace(scored, facts=replace(scored.facts, rows=rows))


def score_part(
    joined: Joined, asked: Named, *, weights: Floats | None = None, name: str | None = None
) -> Evaluation:
    """Score what is joined, be it all queries or some of them: `merged` makes one evaluation of several parts.

    This asks no guard, reads no names and changes none of its arguments.
    """
    names, measures = zip(*asked, strict=True)
    measures = bound_measures(measures, joined.convention)
    # Chunks count into `rule_counts` while they are made: the counts of one scoring must not reach
    # another.
    zeros = np.zeros(joined.n_queries, dtype=np.int64)
    rules = {
        "ties": zeros,
        "negative": zeros,
        "constant": zeros,
        "fixed": zeros,
        **joined.rule_counts,
    }
    if maps := {one.gain_map for one in measures if one.gain_map}:
        rules["gain"] = zeros
        grades = np.unique(joined.relevance)
        for one in measures:
            one.refuse_falling_gains(joined.convention.ties, grades)
    rules = {rule: numbers.copy() for rule, numbers in rules.items()}
    joined = replace(
        joined,
        rule_counts=rules,
        separate_unjudged=any(map(_zero_gains, measures)),
        reach=_reach(measures, joined.columns),
    )
    unread = Unread.of(joined, len(measures))
    scores = unread.scores[0]
    counts = {count: np.zeros(joined.n_queries, dtype=np.int64) for count in QUERY_COUNTS}
    labels, rankings = (np.zeros(joined.n_queries, dtype=np.uint64) for _ in range(2))
    least, greatest = np.empty((2, joined.n_queries))

    lengths = np.diff(joined.offsets)
    by_docid = joined.convention.ties == "docid"
    ascending = {
        column: one for column, one in enumerate(measures) if one.family.ascending and by_docid
    }
    others = {column: one for column, one in enumerate(measures) if column not in ascending}
    for queries, judged, ties in joined.chunks_by_length():
        unread.read(queries, judged, others)
        _count_documents(queries, judged, ties, counts)
        whole = ties.query[ties.end - ties.start == lengths[queries[ties.query]]]
        rules["constant"][queries] = np.bincount(whole, minlength=judged.n_queries)
        least[queries], greatest[queries] = _extremes(judged, joined.convention)
        if maps:
            rules["gain"][queries] = judged.counts @ np.any(
                [are_unnamed(judged.levels, one) for one in maps], axis=0
            )
        rankings[queries] = ranking_hashes(judged)
        if joined.identity is None:
            labels[queries] = label_hashes(judged)
        del judged, ties  # or the memory of two chunks is held while the next is made
    if ascending:
        for queries, judged, _ in replace(
            joined, ascending=True, rule_counts={}
        ).chunks_by_length():
            unread.read(queries, judged, ascending)
    if joined.lacking is not None and joined.convention.missing == "zero":
        # A mean gains nothing. A geometric mean keeps its floor for an empty list, and counts of
        # judgments stay.
        means = np.array([one.family.aggregate == "mean" for one in measures])
        unread.scores[:, joined.lacking[:, None] & means] = 0.0

    is_drawn, errors = np.zeros(scores.shape, dtype=bool), np.zeros(scores.shape)
    for place, error in unread.drawn.items():
        is_drawn[place], errors[place] = True, error
    undefined = np.isnan(unread.scores)
    unread.scores[undefined] = 0.0
    facts = QueryFacts(
        counts,
        rules,
        undefined[0],
        labels if joined.identity is None else joined.identity,
        rankings,
        least,
        greatest,
        readings=unread.readings(measures),
        columns={name: column_hashes(column, joined) for name, column in joined.columns.items()},
        drawn=is_drawn if unread.drawn else None,
        errors=errors if unread.drawn else None,
        left_out=joined.left_out_counts,
        signs=joined.signs,
    )
    reasons = _settle_undefined(
        joined, dict(zip(names, measures, strict=True)), facts, unread.scores, undefined
    )
    keep = ~np.any([*reasons.values()], axis=0) if reasons else slice(None)
    excluded = {
        reason: tuple(joined.queries[queries].tolist()) for reason, queries in reasons.items()
    }
    return Evaluation(
        queries=joined.queries[keep],
        measure_names=names,
        measures=measures,
        scores=scores[keep],
        convention=joined.convention,
        excluded={**joined.excluded, **excluded},
        # Measure by measure: NumPy adds up the rows of a narrow table twenty times slower.
        undefined={
            name: int(np.count_nonzero(one))
            for name, one in zip(names, undefined[0].T, strict=True)
        },
        facts=facts.part(keep).with_totals(facts.totals()),
        weights=None if weights is None else weights[keep],
        name=name,
    )


def warned_if_empty(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation; warn if no query is left in it."""
    if not len(evaluation.queries):
        reasons = "; ".join(
            f"{len(ids)} by {reason!r}" for reason, ids in evaluation.excluded.items()
        )
        warn(
            f"no query is left ({reasons}), so every mean is nan: the convention's rules missing= and no_relevant= say "
            "which queries are left out, and rel= of a measure from which grade on a document is relevant"
        )
    return evaluation


def bound_measures(measures: Iterable[Measure], convention: Convention) -> tuple[Measure, ...]:
    """Return measures with the parameters that a convention binds."""
    for family in convention.bind:
        chosen("family that the convention binds", family, FAMILIES)
    bound = tuple(one.bound(convention.bind) for one in measures)
    for one in bound:
        one.refuse_bounds(convention.ties, convention.unjudged)
    return bound


def _zero_gains(one: Measure) -> bool:
    # True if documents of grade 0 can have a gain: then the unjudged ones need a level of their own
    # below them.
    given = {**one.family.defaults, **dict(one.parameters)}
    gain = given.get("gain")
    return (
        (given.get("rel") is not None and given["rel"] <= 0)
        or (isinstance(gain, tuple) and any(level == 0 and value != 0 for level, value in gain))
        or any(isinstance(value, Measure) and _zero_gains(value) for value in given.values())
    )


def _reach(measures: Sequence[Measure], known: Collection[str]) -> int:
    """Return the deepest rank at which a measure reads a column."""
    for one in measures:
        one.refuse_lacking(known)
    # A user's own measure may read all rows, also below its cut-off.
    deep = (
        one.cutoff if one.family.is_known_everywhere else None for one in measures if one.columns
    )
    return max((DEEPEST if cutoff is None else cutoff for cutoff in deep), default=0)


def _count_documents(
    queries: Ints, judged: Judged, ties: TiedGroups, counts: dict[str, NDArray[np.int64]]
) -> None:
    counts["relevant"][queries] = judged.n_relevant(np.nextafter(0.0, 1.0))
    counts["retrieved"][queries] = judged.n_retrieved
    counts["tied"][queries] = np.bincount(
        ties.query, weights=ties.end - ties.start, minlength=judged.n_queries
    )
    before = None if judged.judged is None else offsets_of(judged.judged)
    counts["judged"][queries] = (
        judged.n_retrieved if before is None else np.diff(before[judged.offsets])
    )


def _settle_undefined(
    joined: Joined,
    named: Mapping[str, Measure],
    facts: QueryFacts,
    scores: Floats,
    undefined: NDArray[np.bool_],
) -> dict[str, NDArray[np.bool_]]:
    """Give 0/0 its value, count the queries of the rules, and return those to leave out by the reason."""
    rule, by_rows = joined.convention.no_relevant, joined.convention.judgments == "rows"
    lacks, fixes = [], []
    for column, one in enumerate(named.values()):
        its = undefined[0, :, column]
        lacks.append(lacking(one, facts, its))
        if rule == "one":
            scores[..., column][undefined[..., column] & (lacks[-1] | (facts.greatest <= 0))] = 1.0
        fixes.append(fixed(one, facts, its, scores[0, :, column], by_rows=by_rows))
    joined.rule_counts["fixed"] = np.all(fixes, axis=0).astype(np.int64)
    joined.rule_counts["no_relevant"] = np.any([facts.greatest <= 0, *lacks], axis=0).astype(
        np.int64
    )
    return left_out(joined.queries, named, lacks, facts) if rule == "skip" else {}


def _extremes(judged: Judged, convention: Convention) -> tuple[Floats, Floats]:
    """Return the least and the greatest grade of each query."""
    levels = np.asarray(judged.levels, dtype=np.float64)
    there = judged.counts > 0
    first = _first_in(there)
    least, greatest = levels[first], levels[::-1][_first_in(there[:, ::-1])]
    none = (first == 0) & ~there[:, 0]
    least[none] = greatest[none] = 0.0
    if judged.judged is not None:
        unjudged = np.diff(offsets_of(~judged.judged)[judged.offsets]) > 0
        least[unjudged] = np.minimum(least[unjudged], min(levels[0], 0.0))
    if (
        convention.judgments == "rows"
    ):  # a query without rows does not show whether it has relevant documents
        greatest[judged.n_retrieved == 0] = np.nan
    return least, greatest


def _first_in(there: NDArray[np.bool_]) -> Ints:
    """Return the first column that is there, 0 if none is: few rows lack the first one, and argmax is slow."""
    first = np.zeros(len(there), dtype=np.int64)
    others = np.flatnonzero(~there[:, 0])
    first[others] = there[others].argmax(axis=1)
    return first
