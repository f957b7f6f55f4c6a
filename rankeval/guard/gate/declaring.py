"""Declare a gate: put its terms and its baseline on record, or find that they are."""

from __future__ import annotations

from typing import Any

from rankeval._checks import check_number, count, shown
from rankeval.errors import InvalidInput, LedgerError, warn
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.gate.candidates import Candidate, about, exposed, exposed_words, registration_of, scores_of
from rankeval.guard.gate.decisions import GateRecord
from rankeval.guard.gate.gate import Gate
from rankeval.guard.gate.terms import Terms
from rankeval.guard.records import Journal, Records

ASSUMED_SD = 0.2
"""Standard deviation of the differences of two systems by query, if nobody says otherwise."""


def declare(
    journal: Journal,
    test: RegisteredCollection,
    name: str,
    terms: Terms,
    *,
    baseline: Any = None,
    sd: float | None = None,
) -> Gate:
    """Record a gate, unless it is on record.

    Parameters
    ----------
    journal : Journal
        The ledger.
    test : RegisteredCollection
        The collection.
    name : str
        Name of the gate.
    terms : Terms
        Its terms.
    baseline : array, fitted model or Run, optional
        The system that candidates are compared with; needed for a new gate.
    sd : float, optional
        Standard deviation of differences by query.
    """
    if not isinstance(test, RegisteredCollection):
        raise InvalidInput(argument="test", found=shown(test), expected="the result of guard.register")
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(argument="name", found=shown(name), expected="a name for the gate")
    spread = ASSUMED_SD if sd is None else sd
    check_number("sd", spread)
    if spread <= 0:
        raise InvalidInput(f"sd is {sd}; expected the standard deviation of the differences by query, above 0")
    loaded = test.loaded()
    gate = Gate(name, test, terms, terms.detectable(test.n_queries, spread), spread, sd is None, journal)
    journal.ledger.check_writable()
    given = None if baseline is None else Candidate.of(loaded, "baseline", baseline)

    def record(records: Records) -> None:
        records.in_use(test)
        found = GateRecord.find(records, name, registration_of(records, test))
        if found is not None:
            _refuse_other_terms(found, terms, given)
            return
        if given is None:
            raise InvalidInput("baseline is missing: give the system in use, with which candidates are compared")
        _refuse_too_few(test, terms)
        scores_of(loaded, given, terms)  # raises if a query cannot be scored
        n_exposed = exposed(records, test)
        body = {
            **about(test, records),
            "gate": name,
            "terms": terms.content(),
            "baseline": given.output,
            "baseline_name": given.name,
            "rankings": journal.ledger.keep("rankings", loaded.stored(given.ranking)),
            "n_exposed": n_exposed,
        }
        journal.append(records, ("gate", body))
        if n_exposed:
            warn(f"gate {name!r}: {exposed_words(n_exposed, test)}")

    journal.decide(record)
    return gate


def _refuse_other_terms(found: GateRecord, terms: Terms, given: Candidate | None) -> None:
    told = found.terms.differences(terms)
    if told:
        raise LedgerError(
            f"gate {found.name!r} is declared by other terms ({told}), and terms do not change: use those, or declare "
            "a gate of another name on fresh queries"
        )
    if given is not None and not found.knows(given.output):
        raise LedgerError(
            f"gate {found.name!r} is declared with another baseline: leave baseline= out here; "
            "decide(..., baseline=) compares with the system in use"
        )


def _refuse_too_few(test: RegisteredCollection, terms: Terms) -> None:
    if test.n_queries < terms.least_queries:
        raise InvalidInput(
            f"{test.name!r} has {count(test.n_queries, 'query')}, on which no candidate can be accepted at "
            f"{terms.level:.2g}: that takes {terms.least_queries}. Take more queries, or a smaller budget"
        )
