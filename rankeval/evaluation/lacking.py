"""Queries in which a measure has nothing to count, and the notes on them.

The least and the greatest grade of a query say what each measure finds there:

    grades     least   greatest     AP, nDCG    AP(rel=2)    PairAccuracy of these rows
    2 1 0        0        2         counts      counts       counts
    1 0          0        1         counts      lacks        counts
    1 1          1        1         counts      lacks        lacks: there is no pair
    0 0          0        0         lacks       lacks        lacks

The trap: such a query is not the same as 0/0. RR of a query without a relevant document is 0 by its definition, and ARP
is 0/0 for a ranking that found none of the relevant documents. The rule ``no_relevant`` goes by the judgments alone, or
a system would leave out a query by failing at it; only 0/0 counts as 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rankeval._checks import count, few
from rankeval.errors import InvalidInput
from rankeval.evaluation.facts import Mask, QueryFacts
from rankeval.join.flat import Floats
from rankeval.measures import Measure

_MOST_NAMED = 5
"""Measures that a note names."""


def lacking(one: Measure, facts: QueryFacts, undefined: Mask) -> Mask | None:
    """Return the queries in which a measure has nothing to count; None if it counts rows of all grades.

    Parameters
    ----------
    one : Measure
        The measure.
    facts : QueryFacts
        Its least and greatest grades, and numbers of documents.
    undefined : ndarray of bool of shape (n_queries,)
        Where its value is 0/0.
    """
    if one.level is None:
        return None
    found = facts.greatest < one.level
    if one.gain_map:  # it may give the greatest grade no gain, and a lower one some
        found |= undefined
    if one.family.counts == "pairs":
        found |= undefined & _are_alike(one, facts) & (facts.query_counts["retrieved"] > 0)
    return found


def _are_alike(one: Measure, facts: QueryFacts) -> Mask:
    """Say in which queries a measure cannot tell the documents apart."""
    same = facts.least == facts.greatest
    return same | (facts.least >= one.level) if one.is_binary else same


def fixed(one: Measure, facts: QueryFacts, undefined: Mask, values: Floats, *, by_rows: bool) -> Mask:
    """Return the queries whose value no ranking of their documents changes.

    Parameters
    ----------
    one : Measure
        The measure.
    facts : QueryFacts
        Its least and greatest grades, and numbers of documents.
    undefined : ndarray of bool of shape (n_queries,)
        Where its value is 0/0.
    values : ndarray of shape (n_queries,)
        Its values.
    by_rows : bool
        Whether the ranked rows are all documents; else a ranking may have others.
    """
    nothing: Mask = np.zeros(len(values), dtype=bool)
    if one.level is not None:
        nothing = facts.greatest < one.level
        if one.gain_map:
            nothing |= undefined
    if not by_rows:  # unjudged documents may change the value, which is then not 0
        return nothing & (undefined | (values == 0))
    nothing |= facts.query_counts["retrieved"] <= 1
    if one.level is None or one.family.needs != "grades":
        return nothing
    return nothing | _are_alike(one, facts)


def left_out(queries: Any, named: Mapping[str, Measure], lacks: Sequence[Mask | None], facts: QueryFacts) -> Mask:
    """Return the queries that ``no_relevant="skip"`` leaves out: those in which the measures have nothing to count.

    Parameters
    ----------
    queries : ndarray of shape (n_queries,)
        The ids.
    named : mapping of str to Measure
        The measures.
    lacks : sequence of ndarray of bool of shape (n_queries,), or None
        What `lacking` says of each of them.
    facts : QueryFacts
        The greatest grades, which decide if no measure does.

    Raises
    ------
    InvalidInput
        If measures lack something in different queries: a query counts in all means or in none.
    """
    known = [(label, of) for label, of in zip(named, lacks, strict=True) if of is not None]
    if not known:
        return facts.greatest <= 0
    (first, out), *others = known
    for label, other in others:
        apart = queries[out != other].tolist()
        if apart:
            raise InvalidInput(
                f"'skip' leaves a query out of all measures, but only one of {first} and {label} has something to "
                f"count in {count(len(apart), 'query')} ({few(apart)})",
                argument="no_relevant",
                remedy="evaluate by each of them alone, or choose 'zero' or 'one'",
            )
    return out


def reasons_to_leave_out(out: Mask, measures: Iterable[Measure], facts: QueryFacts) -> dict[str, Mask]:
    """Return the queries that are left out by the reason."""
    pairless = np.zeros_like(out)
    for one in measures:
        if one.family.counts == "pairs":
            pairless |= out & (facts.greatest >= one.level)
    reasons = {"no relevant document": out & ~pairless, "no pair of documents to order": pairless}
    return {reason: queries for reason, queries in reasons.items() if queries.any()}


def undefined_notes(evaluation: Any, names: Sequence[str] | None = None, unit: str = "query") -> list[str]:
    """Return notes on the queries in which measures have nothing to count, or are 0/0.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    names : sequence of str, optional
        The names of the measures to speak of; by default all.
    unit : str
        The noun for a query.
    """
    facts = evaluation.facts
    barren = facts.query_counts["relevant"] == 0
    if evaluation.convention.judgments == "rows":  # a query without rows does not show whether it has some
        barren &= facts.query_counts["retrieved"] > 0
    notes: dict[str, list[str]] = {}
    value = {"zero": 0, "one": 1}.get(evaluation.convention.no_relevant)
    asked = [column for column, name in enumerate(evaluation.measure_names) if names is None or name in names]
    if value is not None and (barren if names is None else facts.undefined[barren][:, asked]).any():
        notes[f"{count(int(barren.sum()), unit)} without a relevant document: 0/0 counted as {value}"] = []
    for column in asked:
        one, values = evaluation.measures[column], evaluation.scores[:, column]
        undefined = facts.undefined[:, column]
        for note, queries in _notes_on(one, facts, undefined, values, barren):
            said = note if queries is None else f"{count(int(queries.sum()), unit)} {note}"
            notes.setdefault(said, []).append(evaluation.measure_names[column])
    return [f"{_listed(of)}: {note}" if of else note for note, of in notes.items()]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} others" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _notes_on(
    one: Measure, facts: QueryFacts, undefined: Mask, values: Floats, barren: Mask
) -> Iterator[tuple[str, Mask | None]]:
    """Yield what to say of a measure, and the queries to count before it."""
    short = np.zeros_like(barren) if one.level is None else (facts.greatest < one.level) & ~barren
    parameter, needed = _needed(one)
    if short.any() and (short | barren).all():
        greatest = f"{facts.greatest[short].max():g}"
        yield f"no document has a grade of {needed}; the greatest is {greatest}: give {parameter}=", None
        return
    rest = undefined & ~barren & ~short
    empty = facts.query_counts["retrieved"] == 0
    pairless = "without a pair of documents to order" if one.family.counts == "pairs" else "without a value"
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


def _needed(one: Measure) -> tuple[str, str]:
    """Return the parameter that says from which grade a document counts, and that grade in words."""
    given = {**one.family.defaults, **dict(one.parameters)}
    if one.level == given.get("rel"):
        return "rel", f"{one.level:g} or more" if one.level is not None else ""
    return "min_rel", f"more than {given.get('min_rel', 0):g}"
