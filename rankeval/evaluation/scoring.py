"""Score what is joined, query by query.

A convention decides the join, which queries count, and the parameters that a measure's name leaves
open; after that a measure is a pure function of a chunk of judged queries. `score` goes through the
chunks once:

    chunk of Joined -> Judged -> one value a query and measure, counts of documents, two digests

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
class ScoreTable:
    """The scores in all readings of unjudged documents, filled in chunk by chunk."""

    # (3, n_queries, n_measures): the scores; if unjudged documents are relevant; without them. The
    # first alone if there are none.
    scores: Floats
    # (n_queries, n_measures): the share of the documents within the cut-off that are judged.
    judged: Floats
    grade: float  # The greatest grade of the collection, at least 1
    # (query, column) -> the standard error of a mean over drawn orders of tied rows.
    drawn: dict[tuple[int, int], float] = field(default_factory=dict)

    @classmethod
    def of(cls, joined: Joined, n_measures: int) -> ScoreTable:
        """Return the scores to fill; arrays have no documents but their rows, so one reading."""
        is_read = joined.identity is not None and joined.convention.unjudged != "skip"
        if not is_read or not joined.rule_counts["unjudged"].any():
            return cls(np.empty((1, joined.n_queries, n_measures)), np.empty((0, 0)), 0.0)
        grades = (float(labels.max(initial=1)) for labels in (joined.relevance, joined.unretrieved))
        scores = np.empty((3, joined.n_queries, n_measures))
        return cls(scores, np.empty_like(scores[0]), max(grades))

    def fill(self, queries: Ints, chunk: Judged, measures: Mapping[int, Measure]) -> None:
        """Fill in the scores of a chunk by some measures, given by column, in all readings."""
        columns = np.empty((len(measures), chunk.n_queries))
        for values, (column, measure) in zip(columns, measures.items(), strict=True):
            chunk.drawn.clear()
            values[:] = measure.values(chunk)
            for query, error in chunk.drawn.items():
                self.drawn[int(queries[query]), column] = error
        if len(measures) == self.scores.shape[2]:
            # Each line of memory is written once, not once a measure (bench_arrays D).
            self.scores[0, queries] = columns.T
        else:
            self.scores[0, queries[:, None], list(measures)] = columns.T
        if len(self.scores) == 1:
            return
        assert chunk.judged is not None
        n_judged_before = offsets_of(chunk.judged)
        judged_alone = condensed(chunk)
        cutoffs = {measure.cutoff for measure in measures.values()}
        all_relevant = {cutoff: completed(chunk, cutoff, self.grade) for cutoff in cutoffs}
        for column, measure in measures.items():
            within = chunk.mean_within(chunk.ties, n_judged_before, measure.cutoff)
            self.judged[queries, column] = ratio(within, chunk.depth(measure.cutoff), otherwise=1.0)
            for place, reading in (1, all_relevant[measure.cutoff]), (2, judged_alone):
                has_grades = measure.family.needs == "grades"
                self.scores[place, queries, column] = measure.values(reading) if has_grades else 0.0

    def errors(self) -> dict[str, Any]:
        """Return which scores are drawn, and their standard errors, as fields of `QueryFacts`."""
        if not self.drawn:
            return {}
        is_drawn = np.zeros(self.scores.shape[1:], dtype=bool)
        errors = np.zeros(is_drawn.shape)
        for place, error in self.drawn.items():
            is_drawn[place], errors[place] = True, error
        return {"drawn": is_drawn, "errors": errors}

    def readings(self, measures: Sequence[Measure]) -> dict[str, Floats]:
        """Return the readings, nan by measures that read more than a grade a document."""
        if len(self.scores) == 1:
            return {}
        without = [measure.family.needs != "grades" for measure in measures]
        self.scores[1:, :, without] = np.nan
        return dict(zip(READINGS, [self.judged, *self.scores[1:]], strict=True))


def score(
    joined: Joined,
    labelled: Named,
    *,
    weights: Floats | None = None,
    name: str | None = None,
    rows: Any = None,
) -> Evaluation:
    """Score joined data as `score_part` does, and warn if no query is left."""
    scored = warned_if_empty(score_part(joined, labelled, weights=weights, name=name))
    return replace(scored, facts=replace(scored.facts, rows=rows))


def score_part(
    joined: Joined, labelled: Named, *, weights: Floats | None = None, name: str | None = None
) -> Evaluation:
    """Score joined data, all queries or a part that `merged` puts together with others.

    This asks no guard, reads no names and changes none of its arguments.
    """
    names, measures = zip(*labelled, strict=True)
    measures = bound_measures(measures, joined.convention)
    # Chunks count into `rule_counts` while they are made: the counts of one scoring must not reach
    # another.
    zeros = np.zeros(joined.n_queries, dtype=np.int64)
    rules = dict.fromkeys(("ties", "negative", "constant", "fixed"), zeros) | joined.rule_counts
    if gain_maps := {measure.gain_map for measure in measures if measure.gain_map}:
        rules["gain"] = zeros
        grades = np.unique(joined.relevance)
        for measure in measures:
            measure.refuse_falling_gains(joined.convention.ties, grades)
    rules = {rule: numbers.copy() for rule, numbers in rules.items()}
    joined = replace(
        joined,
        rule_counts=rules,
        separate_unjudged=any(map(_zero_gains, measures)),
        reach=_reach(measures, joined.columns),
    )
    table = ScoreTable.of(joined, len(measures))
    facts, undefined = _score_chunks(joined, measures, table, gain_maps)
    named = dict(zip(names, measures, strict=True))
    reasons = _settle_undefined(joined, named, facts, table.scores, undefined)
    keep = ~np.any([*reasons.values()], axis=0) if reasons else slice(None)
    excluded = dict(joined.excluded)
    for reason, left in reasons.items():
        excluded[reason] = tuple(joined.queries[left].tolist())
    # Measure by measure: NumPy adds up the rows of a narrow table twenty times slower.
    n_undefined = [int(np.count_nonzero(column)) for column in undefined[0].T]
    return Evaluation(
        joined.queries[keep],
        names,
        measures,
        table.scores[0][keep],
        joined.convention,
        excluded,
        undefined=dict(zip(names, n_undefined, strict=True)),
        facts=facts.part(keep).with_totals(facts.totals()),
        weights=None if weights is None else weights[keep],
        name=name,
    )


def _score_chunks(
    joined: Joined, measures: Sequence[Measure], table: ScoreTable, gain_maps: Collection[Any]
) -> tuple[QueryFacts, NDArray[np.bool_]]:
    """Fill the table chunk by chunk; return the facts, and which scores were 0/0 and are 0 now."""
    counts = {count: np.zeros(joined.n_queries, dtype=np.int64) for count in QUERY_COUNTS}
    labels, rankings = (np.zeros(joined.n_queries, dtype=np.uint64) for _ in range(2))
    least, greatest = np.empty((2, joined.n_queries))

    lengths = np.diff(joined.offsets)
    by_docid = joined.convention.ties == "docid"
    ascending: dict[int, Measure] = {}
    others: dict[int, Measure] = {}
    for column, measure in enumerate(measures):
        group = ascending if by_docid and measure.family.ascending else others
        group[column] = measure
    for queries, chunk, ties in joined.chunks_by_length():
        table.fill(queries, chunk, others)
        _count_documents(queries, chunk, ties, counts)
        whole = ties.query[ties.end - ties.start == lengths[queries[ties.query]]]
        joined.rule_counts["constant"][queries] = np.bincount(whole, minlength=chunk.n_queries)
        least[queries], greatest[queries] = _extremes(chunk, joined.convention)
        if gain_maps:
            unnamed = np.any([are_unnamed(chunk.levels, gains) for gains in gain_maps], axis=0)
            joined.rule_counts["gain"][queries] = chunk.counts @ unnamed
        rankings[queries] = ranking_hashes(chunk)
        if joined.identity is None:
            labels[queries] = label_hashes(chunk)
        del chunk, ties  # or the memory of two chunks is held while the next is made
    if ascending:
        turned = replace(joined, ascending=True, rule_counts={})
        for queries, chunk, _ in turned.chunks_by_length():
            table.fill(queries, chunk, ascending)
    if joined.lacking is not None and joined.convention.missing == "zero":
        # A mean gains nothing. A geometric mean keeps its floor for an empty list, and counts of
        # judgments stay.
        means = np.array([measure.family.aggregate == "mean" for measure in measures])
        table.scores[:, joined.lacking[:, None] & means] = 0.0

    undefined = np.isnan(table.scores)
    table.scores[undefined] = 0.0
    columns = {name: column_hashes(column, joined) for name, column in joined.columns.items()}
    facts = QueryFacts(
        counts,
        joined.rule_counts,
        undefined[0],
        labels if joined.identity is None else joined.identity,
        rankings,
        least,
        greatest,
        readings=table.readings(measures),
        columns=columns,
        left_out=joined.left_out_counts,
        signs=joined.signs,
        **table.errors(),
    )
    return facts, undefined


def warned_if_empty(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation; warn if no query is left in it."""
    if not len(evaluation.queries):
        excluded = evaluation.excluded.items()
        reasons = "; ".join(f"{len(ids)} by {reason!r}" for reason, ids in excluded)
        warn(
            f"no query is left ({reasons}), so every mean is nan: the convention's rules missing= "
            "and no_relevant= say which queries are left out, and rel= of a measure from which "
            "grade on a document is relevant"
        )
    return evaluation


def bound_measures(measures: Iterable[Measure], convention: Convention) -> tuple[Measure, ...]:
    """Return measures with the parameters that a convention binds."""
    for family in convention.bind:
        chosen("family that the convention binds", family, FAMILIES)
    bound = tuple(measure.bound(convention.bind) for measure in measures)
    for measure in bound:
        measure.refuse_bounds(convention.ties, convention.unjudged)
    return bound


def _zero_gains(measure: Measure) -> bool:
    """Say whether grade 0 can have a gain: then unjudged documents need a level of their own."""
    parameters = {**measure.family.defaults, **dict(measure.parameters)}
    rel, gain = parameters.get("rel"), parameters.get("gain")
    if rel is not None and rel <= 0:
        return True
    if isinstance(gain, tuple) and any(level == 0 and value != 0 for level, value in gain):
        return True
    return any(isinstance(value, Measure) and _zero_gains(value) for value in parameters.values())


def _reach(measures: Sequence[Measure], known: Collection[str]) -> int:
    """Return the deepest rank at which a measure reads a column."""
    for measure in measures:
        measure.refuse_lacking(known)
    # A user's own measure may read all rows, also below its cut-off.
    reach = 0
    for measure in measures:
        if measure.columns:
            cutoff = measure.cutoff if measure.family.is_known_everywhere else None
            reach = max(reach, DEEPEST if cutoff is None else cutoff)
    return reach


def _count_documents(
    queries: Ints, chunk: Judged, ties: TiedGroups, counts: dict[str, NDArray[np.int64]]
) -> None:
    counts["relevant"][queries] = chunk.n_relevant(np.nextafter(0.0, 1.0))
    counts["retrieved"][queries] = chunk.n_retrieved
    n_tied = ties.end - ties.start
    counts["tied"][queries] = np.bincount(ties.query, weights=n_tied, minlength=chunk.n_queries)
    n_judged = chunk.n_retrieved
    if chunk.judged is not None:
        n_judged = np.diff(offsets_of(chunk.judged)[chunk.offsets])
    counts["judged"][queries] = n_judged


def _settle_undefined(
    joined: Joined,
    named: Mapping[str, Measure],
    facts: QueryFacts,
    scores: Floats,
    undefined: NDArray[np.bool_],
) -> dict[str, NDArray[np.bool_]]:
    """Give 0/0 its value, count the queries of the rules, and return those to leave out."""
    # `facts.rule_counts` is the same dict as `joined.rule_counts`: what is counted here is in both.
    rule, by_rows = joined.convention.no_relevant, joined.convention.judgments == "rows"
    lacks, fixes = [], []
    for column, measure in enumerate(named.values()):
        zeros = undefined[0, :, column]
        lacks.append(lacking(measure, facts, zeros))
        if rule == "one":
            has_nothing = lacks[-1] | (facts.greatest <= 0)
            scores[..., column][undefined[..., column] & has_nothing] = 1.0
        fixes.append(fixed(measure, facts, zeros, scores[0, :, column], by_rows=by_rows))
    has_nothing = np.any([facts.greatest <= 0, *lacks], axis=0)
    joined.rule_counts["fixed"] = np.all(fixes, axis=0).astype(np.int64)
    joined.rule_counts["no_relevant"] = has_nothing.astype(np.int64)
    return left_out(joined.queries, named, lacks, facts) if rule == "skip" else {}


def _extremes(chunk: Judged, convention: Convention) -> tuple[Floats, Floats]:
    """Return the least and the greatest grade of each query."""
    levels = np.asarray(chunk.levels, dtype=np.float64)
    there = chunk.counts > 0
    first = _first_in(there)
    least, greatest = levels[first], levels[::-1][_first_in(there[:, ::-1])]
    none = (first == 0) & ~there[:, 0]
    least[none] = greatest[none] = 0.0
    if chunk.judged is not None:
        unjudged = np.diff(offsets_of(~chunk.judged)[chunk.offsets]) > 0
        least[unjudged] = np.minimum(least[unjudged], min(levels[0], 0.0))
    # A query without rows does not show whether it has relevant documents.
    if convention.judgments == "rows":
        greatest[chunk.n_retrieved == 0] = np.nan
    return least, greatest


def _first_in(there: NDArray[np.bool_]) -> Ints:
    """Return the first true column of each row, 0 if none is."""
    # Few rows lack the first column, and argmax is slow.
    first = np.zeros(len(there), dtype=np.int64)
    others = np.flatnonzero(~there[:, 0])
    first[others] = there[others].argmax(axis=1)
    return first
