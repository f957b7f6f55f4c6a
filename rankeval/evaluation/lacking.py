"""Queries in which a measure has nothing to count, and the notes on them.

The least and the greatest grade of a query say what each measure finds there:

    grades     least   greatest     AP, nDCG    AP(rel=2)    PairAccuracy of these rows
    2 1 0        0        2         counts      counts       counts
    1 0          0        1         counts      lacks        counts
    1 1          1        1         counts      lacks        lacks: there is no pair
    0 0          0        0         lacks       lacks        lacks

The trap: such a query is not the same as 0/0. RR of a query without a relevant document is 0 by its
definition, and ARP is 0/0 for a ranking that found none of the relevant documents. The rule
``no_relevant`` goes by the judgments alone, or a system would leave out a query by failing at it;
only 0/0 counts as 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count, few
from rankeval.errors import InvalidInput
from rankeval.evaluation.facts import Mask, QueryFacts
from rankeval.join.flat import Floats
from rankeval.measures import Measure

_MOST_NAMED = 5
"""Measures or systems that a note names."""


def lacking(measure: Measure, facts: QueryFacts, undefined: Mask) -> Mask:
    """Return the queries in which a measure has nothing to count; ``undefined`` are its 0/0."""
    nothing = _nothing(measure, facts, undefined)
    if measure.family.counts == "pairs":
        nothing |= undefined & _are_alike(measure, facts) & (facts.query_counts["retrieved"] > 0)
    return nothing


def lacking_everywhere(evaluation: Any) -> list[str]:
    """Return the names of the measures that have nothing to count in any query."""
    facts = evaluation.facts
    columns = zip(evaluation.measure_names, evaluation.measures, facts.undefined.T, strict=True)
    return [name for name, measure, zeros in columns if lacking(measure, facts, zeros).all()]


def fixed(
    measure: Measure, facts: QueryFacts, undefined: Mask, values: Floats, *, by_rows: bool
) -> Mask:
    """Return the queries whose value no ranking changes; ``by_rows``: only ranked rows exist."""
    nothing = _nothing(measure, facts, undefined)
    if not by_rows:  # unjudged documents may change the value, which is then not 0
        nothing &= undefined | (values == 0)
        return nothing
    nothing |= facts.query_counts["retrieved"] <= 1
    sees_grades = measure.level > -np.inf and measure.family.needs == "grades"
    return nothing | _are_alike(measure, facts) if sees_grades else nothing


def _nothing(measure: Measure, facts: QueryFacts, undefined: Mask) -> Mask:
    """Say in which queries no document has a grade that counts."""
    nothing: Mask = facts.greatest < measure.level
    # A map may give the greatest grade no gain, and a lower one some.
    return nothing | undefined if measure.gain_map else nothing


def _are_alike(measure: Measure, facts: QueryFacts) -> Mask:
    """Say in which queries a measure cannot tell the documents apart."""
    same: Mask = facts.least == facts.greatest
    return same | (facts.least >= measure.level) if measure.is_binary else same


def left_out(
    queries: NDArray[Any], named: Mapping[str, Measure], lacks: Sequence[Mask], facts: QueryFacts
) -> dict[str, Mask]:
    """Return the queries that ``no_relevant="skip"`` leaves out, by the reason."""
    pairs = zip(named.items(), lacks, strict=True)
    known = [(label, lack) for (label, measure), lack in pairs if measure.level > -np.inf]
    (first, out), *others = known or [("", facts.greatest <= 0)]
    for label, other in others:
        apart = queries[out != other].tolist()
        if apart:
            measures = f"only one of {first} and {label} has something to count"
            problem = f"{measures} in {count(len(apart), 'query')} ({few(apart)})"
            raise InvalidInput(
                f"'skip' leaves a query out of all measures, but {problem}",
                argument="no_relevant",
                remedy="evaluate by each alone, or choose 'zero' or 'one'",
            )
    pairless = np.zeros_like(out)
    for measure in named.values():
        if measure.family.counts == "pairs":
            pairless |= out & (facts.greatest >= measure.level)
    reasons = {"no relevant document": out & ~pairless, "no pair of documents to order": pairless}
    return {reason: queries for reason, queries in reasons.items() if queries.any()}


def own_notes(evaluation: Any) -> list[str]:
    """Return the note on documents that are their own query, if some were left out."""
    totals = evaluation.facts.totals()
    n, n_judgments = (totals.get(rule, 0) for rule in ("own_document", "own_judgment"))
    rows = count(n - n_judgments, "row")
    if n_judgments:
        rows += f" of the ranking and {n_judgments:,} of the judgments"
    return [f"{rows} left out: the document is its own query"] if n else []


def undefined_notes(
    evaluation: Any, names: Sequence[str] | None = None, unit: str = "query"
) -> list[str]:
    """Return notes on the queries in which measures have nothing to count, or are 0/0."""
    if evaluation.weights is not None and (evaluation.weights == 0).any():
        counts = evaluation.weights > 0
        evaluation = evaluation.subset(counts) if counts.any() else evaluation
    facts = evaluation.facts
    barren = facts.query_counts["relevant"] == 0
    if evaluation.convention.judgments == "rows":  # without rows nothing is known of a query
        barren &= facts.query_counts["retrieved"] > 0
    notes: dict[str, list[str]] = {}
    value = {"zero": 0, "one": 1}.get(evaluation.convention.no_relevant)
    columns = [
        column
        for column, name in enumerate(evaluation.measure_names)
        if names is None or name in names
    ]
    undefined = barren if names is None else facts.undefined[barren][:, columns]
    if value is not None and undefined.any():
        queries = count(int(barren.sum()), unit)
        notes[f"{queries} without a relevant document: 0/0 counted as {value}"] = []
    for column in columns:
        measure, values = evaluation.measures[column], evaluation.scores[:, column]
        for note, affected in _notes_on(measure, facts, facts.undefined[:, column], values, barren):
            queries = "" if affected is None else f"{count(int(affected.sum()), unit)} "
            notes.setdefault(f"{queries}{note}", []).append(evaluation.measure_names[column])
    return [f"{listed(labels)}: {note}" if labels else note for note, labels in notes.items()]


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - _MOST_NAMED} others" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _notes_on(
    measure: Measure, facts: QueryFacts, undefined: Mask, values: Floats, barren: Mask
) -> Iterator[tuple[str, Mask | None]]:
    """Yield what to say of a measure, and the queries to count before it."""
    short = (facts.greatest < measure.level) & ~barren
    parameter, needed = measure.level_in_words
    if short.any() and (short | barren).all():
        greatest = f"the greatest is {facts.greatest[short].max():g}"
        yield f"no document has a grade of {needed}; {greatest}: give {parameter}=", None
        return
    rest = undefined & ~barren & ~short
    empty = facts.query_counts["retrieved"] == 0
    valueless = "without a value"
    if measure.gain_map:
        valueless = "without a document that gains"
    elif measure.family.counts == "pairs":
        valueless = "without a pair of documents to order"
    reasons = {
        f"without a document of grade {needed}": short,
        "without a ranked document": rest & empty,
        valueless: rest & ~empty,
    }
    for reason, queries in reasons.items():
        for value in (0, 1):
            if (counted := queries & undefined & (values == value)).any():
                yield f"{reason}: 0/0 counted as {value}", counted
        if (defined := queries & ~undefined).any():
            yield reason, defined
