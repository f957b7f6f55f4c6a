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

from rankeval._checks import count, few, refuse
from rankeval.evaluation.facts import Mask, QueryFacts
from rankeval.join.flat import Floats
from rankeval.measures import Measure

_MOST_NAMED = 5
"""Measures or systems that a note names."""


def lacking(one: Measure, facts: QueryFacts, undefined: Mask) -> Mask:
    """Return the queries in which a measure has nothing to count; ``undefined`` says where its value is 0/0."""
    found = _nothing(one, facts, undefined)
    if one.family.counts == "pairs":
        found |= undefined & _are_alike(one, facts) & (facts.query_counts["retrieved"] > 0)
    return found


def lacking_everywhere(evaluation: Any) -> list[str]:
    """Return the names of the measures that have nothing to count in any query, whatever the ranking."""
    facts, names = evaluation.facts, evaluation.measure_names
    each = zip(names, evaluation.measures, facts.undefined.T, strict=True)
    return [name for name, one, undefined in each if lacking(one, facts, undefined).all()]


def fixed(
    one: Measure, facts: QueryFacts, undefined: Mask, values: Floats, *, by_rows: bool
) -> Mask:
    """Return the queries whose value no ranking changes; with ``by_rows`` the ranked rows are all documents."""
    nothing = _nothing(one, facts, undefined)
    if not by_rows:  # unjudged documents may change the value, which is then not 0
        nothing &= undefined | (values == 0)
        return nothing
    nothing |= facts.query_counts["retrieved"] <= 1
    sees_grades = one.level > -np.inf and one.family.needs == "grades"
    return nothing | _are_alike(one, facts) if sees_grades else nothing


def _nothing(one: Measure, facts: QueryFacts, undefined: Mask) -> Mask:
    """Say in which queries no document has a grade that counts."""
    nothing: Mask = facts.greatest < one.level
    # A map may give the greatest grade no gain, and a lower one some.
    return nothing | undefined if one.gain_map else nothing


def _are_alike(one: Measure, facts: QueryFacts) -> Mask:
    """Say in which queries a measure cannot tell the documents apart."""
    same: Mask = facts.least == facts.greatest
    return same | (facts.least >= one.level) if one.is_binary else same


def left_out(
    queries: NDArray[Any], named: Mapping[str, Measure], lacks: Sequence[Mask], facts: QueryFacts
) -> dict[str, Mask]:
    """Return the queries that ``no_relevant="skip"`` leaves out, by the reason."""
    known = [
        (label, of)
        for (label, one), of in zip(named.items(), lacks, strict=True)
        if one.level > -np.inf
    ]
    (first, out), *others = known or [("", facts.greatest <= 0)]
    for label, other in others:
        apart = queries[out != other].tolist()
        problem = (
            f"'skip' leaves a query out of all measures, but only one of {first} and {label} has something to count in "
            f"{count(len(apart), 'query')} ({few(apart)})"
        )
        refuse(
            (apart, problem, "evaluate by each alone, or choose 'zero' or 'one'"),
            argument="no_relevant",
        )
    of_pairs = [
        facts.greatest >= one.level for one in named.values() if one.family.counts == "pairs"
    ]
    pairless = out & np.any([np.zeros_like(out), *of_pairs], axis=0)
    reasons = {"no relevant document": out & ~pairless, "no pair of documents to order": pairless}
    return {reason: of for reason, of in reasons.items() if of.any()}


def undefined_notes(
    evaluation: Any, names: Sequence[str] | None = None, unit: str = "query"
) -> list[str]:
    """Return notes on the queries in which measures have nothing to count, or are 0/0."""
    facts = evaluation.facts
    barren = facts.query_counts["relevant"] == 0
    if (
        evaluation.convention.judgments == "rows"
    ):  # a query without rows does not show whether it has some
        barren &= facts.query_counts["retrieved"] > 0
    notes: dict[str, list[str]] = {}
    value = {"zero": 0, "one": 1}.get(evaluation.convention.no_relevant)
    asked = [
        column
        for column, name in enumerate(evaluation.measure_names)
        if names is None or name in names
    ]
    if value is not None and (barren if names is None else facts.undefined[barren][:, asked]).any():
        notes[
            f"{count(int(barren.sum()), unit)} without a relevant document: 0/0 counted as {value}"
        ] = []
    for column in asked:
        one, values = evaluation.measures[column], evaluation.scores[:, column]
        undefined = facts.undefined[:, column]
        for note, queries in _notes_on(one, facts, undefined, values, barren):
            said = note if queries is None else f"{count(int(queries.sum()), unit)} {note}"
            notes.setdefault(said, []).append(evaluation.measure_names[column])
    return [f"{listed(of)}: {note}" if of else note for note, of in notes.items()]


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - _MOST_NAMED} others" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _notes_on(
    one: Measure, facts: QueryFacts, undefined: Mask, values: Floats, barren: Mask
) -> Iterator[tuple[str, Mask | None]]:
    """Yield what to say of a measure, and the queries to count before it."""
    short = (facts.greatest < one.level) & ~barren
    parameter, needed = one.level_in_words
    if short.any() and (short | barren).all():
        greatest = f"{facts.greatest[short].max():g}"
        yield (
            f"no document has a grade of {needed}; the greatest is {greatest}: give {parameter}=",
            None,
        )
        return
    rest = undefined & ~barren & ~short
    empty = facts.query_counts["retrieved"] == 0
    pairless = (
        "without a pair of documents to order"
        if one.family.counts == "pairs"
        else "without a value"
    )
    reasons = {
        f"without a document of grade {needed}": short,
        "without a ranked document": rest & empty,
        "without a document that gains" if one.gain_map else pairless: rest & ~empty,
    }
    for why, queries in reasons.items():
        for value in (0, 1):
            if (counted := queries & undefined & (values == value)).any():
                yield f"{why}: 0/0 counted as {value}", counted
        if (defined := queries & ~undefined).any():
            yield why, defined
