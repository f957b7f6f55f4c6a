"""The gate: accept or reject one candidate after the other on the same queries, and show nothing else.

A team that deploys continuously cannot take fresh queries for each candidate. What makes repeated
looks harmful is what they teach. So a gate has a budget of T decisions, tests each candidate at
alpha / T, and tells one bit.

As long as nothing was accepted, every answer was "rejected", and the next candidate would have been
made whatever the scores were. So the chance that a gate with no better candidate ever accepts one
is at most alpha, by Bonferroni's inequality, as nearly as the randomisation test holds its level.
With skewed differences it is larger.

A gate is declared once: its terms and its baseline are on record from then on. A candidate is its
ranking and the hash of that, by which a repeated question is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import count, refuse
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.errors import InvalidInput, LedgerError, warn
from rankeval.guard.checks import check_positive, check_text
from rankeval.guard.collection import (
    LoadedCollection,
    Ranking,
    RegisteredCollection,
    check_registered,
    groups_kept,
    keep_groups,
    output_digest,
)
from rankeval.guard.decisions import Decision, GateRecord, Terms
from rankeval.guard.exposure import is_few
from rankeval.guard.journal import Journal, Records
from rankeval.ledger.graph import mention, short
from rankeval.measures import direction

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison.groups import Groups


@dataclass(frozen=True, eq=False)
class Candidate:
    """A ranking at a gate.

    Attributes
    ----------
    name : str
        The system.
    ranking : ndarray or Run
        Its ranking.
    output : str
        The hash of its ranking output.
    """

    name: str
    ranking: Ranking
    output: str

    @classmethod
    def of(cls, loaded: LoadedCollection, name: str, system: Any) -> Candidate:
        """Return the ranking of a system from its scores, its fitted model or its run."""
        ranking = loaded.ranking(name, system)
        return cls(name, ranking, output_digest(loaded.outputs(ranking)))


def scores_of(loaded: LoadedCollection, system: Candidate, terms: Terms) -> NDArray[np.float64]:
    """Return the scores of a system by query, in the order of the content."""
    evaluation = loaded.evaluate(system.name, system.ranking, [terms.measure], terms.convention)
    scores = loaded.by_content(evaluation)[:, 0]
    lacking = ~np.isfinite(scores)
    if lacking.any():
        query = loaded.prints.names_by_content[lacking][0]
        raise InvalidInput(
            f"{system.name!r} has no score by {terms.measure} on {count(int(lacking.sum()), 'query')}, such as "
            f"{query!r}: declare a gate by a convention that scores every query"
        )
    return scores


def groups_of(
    gate: GateRecord, collection: RegisteredCollection, loaded: LoadedCollection
) -> Groups:
    """Return the groups that a gate was declared with, in the order of the content; without any, a query is one."""
    records = gate.records
    terms = gate.terms
    if not terms.groups:
        return loaded.grouped(None)
    # By the ids of the queries: the content of a revision has another order.
    ids = {content.id: content.signature.ids for content in records.contents}
    kept = groups_kept(records.ledger, terms, ids[gate.declared[0].body["registration"]])
    return loaded.grouped(
        kept.reindex(ids[records.registered(collection).hash]).set_axis(loaded.ids)
    )


def n_exposed_outside(
    records: Records, collection: RegisteredCollection, gate: GateRecord | None = None
) -> int:
    """Return how many queries of a collection somebody looked at, apart from the decisions of a gate; 0 if few."""
    own = set() if gate is None else {entry.hash for entry in gate.decided}
    exposure = records.exposure
    queries = exposure.queries_of(about(collection, records))
    outside = [entry for entry in exposure.exposing(records.project) if entry.hash not in own]
    n_exposed = int(exposure.exposed(queries, outside).sum())
    return 0 if is_few(n_exposed, len(queries)) else n_exposed


def exposed_words(n_exposed: int, collection: RegisteredCollection) -> str:
    """Say what looks beside the gate mean for it."""
    return (
        f"{n_exposed} of {count(collection.n_queries, 'query')} of {collection.name!r} were looked at outside this "
        "gate. Its level is not valid for candidates that such a look helped to make: declare a gate on fresh queries"
    )


def about(collection: RegisteredCollection, records: Records) -> dict[str, Any]:
    """Return the keys by which entries name a collection."""
    return {
        "registration": records.registered(collection).hash,
        "queries": None,
        "digest": collection.digest,
        "collection": collection.name,
    }


_WARNED: set[str] = set()
"""The gates of whose exposure this process has warned."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Gate(Displayed):
    """Decides on one candidate after the other, within a budget.

    `Guard.gate` makes it.

    Attributes
    ----------
    name : str
        Its name.
    collection : RegisteredCollection
        The collection.
    terms : Terms
        Measure, convention, claim, margin, alpha, budget, groups.
    detectable : float
        The true gain that one decision accepts with a chance of 80 %; for "not_worse" the margin at
        which a system that is equal is accepted so often.
    sd : float
        The standard deviation of the differences by query, or by group, that it was computed with.
    sd_assumed : bool
        Whether nobody gave that, so that it is .2.

    Examples
    --------
    >>> import tempfile
    >>> from rankeval.datasets import make_ranking
    >>> from rankeval.guard import Guard
    >>> data = make_ranking(60, 10, 4, rng=0)
    >>> guard = Guard("my-project", ledger=f"{tempfile.mkdtemp()}/ledger")
    >>> test = guard.register("my-test", data)
    >>> gate = guard.gate(test, baseline=-data.y, budget=10)
    >>> print(gate.decide("ideal", data.y))
    ideal: accepted against baseline by gate 'gate'; decision 1 of 10
    >>> gate.decide("again", data.y).remaining, gate.baseline
    (9, 'ideal')
    """

    name: str
    collection: RegisteredCollection
    terms: Terms
    detectable: float
    sd: float
    sd_assumed: bool
    _journal: Journal

    @property
    def remaining(self) -> int:
        """Decisions that are left, as the ledger has it now."""
        return self._now.account.remaining

    @property
    def baseline(self) -> str:
        """The system that the next candidate is compared with: the last accepted, or else the declared one."""
        return self._now.standard.name

    def decisions(self) -> pd.DataFrame:
        """Return the decisions, a row each, in the order of the ledger.

        Returns
        -------
        DataFrame
            Columns: time, who, system, against (its baseline), accepted, output (the hash of its
            ranking), over_budget (whether it lies over the budget: clones decided without knowing
            of each other, and their ledgers were merged; the last decisions in the order of the
            ledger are over it).
        """
        import pandas as pd

        gate = self._now
        columns = ["time", "who", "system", "against", "accepted", "output", "over_budget"]
        keys = ("system", "baseline_name", "accepted", "output")
        rows = [
            (entry.time, entry.who, *(entry.body[key] for key in keys), gate.is_over(entry))
            for entry in gate.decided
        ]
        return pd.DataFrame(rows, columns=columns)

    def decide(
        self, name: str, system: Any, *, baseline: Any = None, baseline_name: str = "baseline"
    ) -> Decision:
        """Accept or reject a system, and record no more than that.

        A system that was accepted is the baseline of later decisions. The same ranking output again
        has the same decision, for free, although the baseline may be another one by now. With
        ``baseline=``, it is the decision on these two outputs.

        Parameters
        ----------
        name : str
            Name of the system.
        system : array, fitted model or Run
            Its scores, model or run, as in `Guard.freeze`.
        baseline : array, fitted model or Run, optional
            Compare with this one: the system in use, if another one than the gate knows.
        baseline_name : str, default "baseline"
            The name of that one, for the record.

        Returns
        -------
        Decision

        Raises
        ------
        InvalidInput
            If a system gives no ranking of the collection, or has a query without a score.
        LedgerError
            If no decision is left, the collection was retired or revised, two clones accepted
            different systems, or the ledger cannot keep the decision.
        """
        check_text("name", name, "a name for the system")
        check_text("baseline_name", baseline_name, "a name for the baseline")
        loaded = self.collection.loaded()
        candidate = Candidate.of(loaded, name, system)
        own_baseline = None if baseline is None else Candidate.of(loaded, baseline_name, baseline)
        self._journal.check_lasting()

        def record(records: Records) -> Decision:
            records.unretired(self.collection)
            gate = self._gate_record(records)
            fields: dict[str, Any] = {
                "name": name,
                "gate": self.name,
                "n_exposed": n_exposed_outside(records, self.collection, gate),
            }
            past = gate.decision(
                candidate.output, None if own_baseline is None else own_baseline.output
            )
            if past is not None:
                fields["against"] = gate.known(past.question[1], past.baseline)
                return gate.account.repeat(past, fields)
            against = own_baseline or self._standard(gate, loaded)
            fields |= {
                "baseline": against.name,
                "against": gate.known(against.output, against.name),
            }
            if candidate.output != against.output:
                return gate.account.decide(
                    lambda: self._test_and_record(gate, loaded, candidate, against), fields
                )
            # Nothing is learned of the labels, and nothing is recorded.
            fields |= {
                "accepted": self.terms.claim == "not_worse",
                "is_new": False,
                "is_baseline": True,
            }
            return Decision(**fields, remaining=gate.account.remaining, budget=self.terms.budget)

        decision = self._journal.transact(record)
        self._warn_of_looks(decision)
        return decision

    def _warn_of_looks(self, decision: Decision) -> None:
        """Warn once in this process if more queries were looked at outside than when the gate was declared."""
        declared = self._now.declared[0]
        if decision.n_exposed > declared.body["n_exposed"] and declared.hash not in _WARNED:
            _WARNED.add(declared.hash)
            warn(f"gate {self.name!r}: {exposed_words(decision.n_exposed, self.collection)}")

    @property
    def _now(self) -> GateRecord:
        return self._gate_record(self._journal.read())

    def _gate_record(self, records: Records) -> GateRecord:
        gate = GateRecord.find(records, self.name, records.registered(self.collection).hash)
        if gate is None:
            raise LedgerError(
                f"gate {self.name!r} is no longer in the ledger {records.where}: restore it from a copy"
            )
        return gate

    def _standard(self, gate: GateRecord, loaded: LoadedCollection) -> Candidate:
        kept = gate.standard
        if kept.digest != self.collection.digest:
            raise LedgerError(
                f"the collection was revised since the ranking of {kept.name!r} was kept, which therefore does not fit "
                "its rows: give the system in use by baseline="
            )
        ranking = loaded.restored(self._journal.ledger.load(kept.rankings), kept.name)
        return Candidate(kept.name, ranking, kept.output)

    def _test_and_record(
        self, gate: GateRecord, loaded: LoadedCollection, candidate: Candidate, against: Candidate
    ) -> bool:
        """Decide, and record one bit before it is told: a process that is killed here has used a decision."""
        means = groups_of(gate, self.collection, loaded).means
        before, after = (
            means(scores_of(loaded, system, self.terms)) for system in (against, candidate)
        )
        gains = direction(self.terms.measure).sign * (after - before)
        accepted = self.terms.claim_shown(gains, float(np.abs(before).max()))
        ledger = self._journal.ledger
        rankings = ledger.keep("rankings", loaded.stored(candidate.ranking)) if accepted else None
        body = {
            **about(self.collection, gate.records),
            "gate": gate.declared[0].hash,
            "system": candidate.name,
            "output": candidate.output,
            "baseline": against.output,
            "baseline_name": against.name,
            "accepted": accepted,
            "rankings": rankings,
        }
        self._journal.append(gate.records, ("decide", body))
        return accepted

    def _view(self) -> View:
        terms = self.terms
        gate = self._now
        account = gate.account
        level = f"{terms.shared.level:.2g} (alpha {terms.alpha:g} over {count(terms.budget, 'decision')})"
        sd = f"a standard deviation of {self.sd:g}{', which is assumed' if self.sd_assumed else ''}"
        what = "a true gain" if terms.claim == "better" else "with a margin"
        equal = "" if terms.claim == "better" else "a system that is equal "
        power = (
            f"{what} of {self.detectable:.2g} {equal}is accepted four times in five if differences by "
            f"{terms.grouped_by or 'query'} have {sd}"
        )
        ledger = mention(gate.records.where, short(gate.records.head))
        rule = f"accepts a system shown {terms.words()}, at {level}"
        left = f"{account.n_made} made, {account.remaining} left"
        sentences = [
            f"{self.name} on {self.collection.name!r}: {rule}; {left}",
            f"{power[0].upper()}{power[1:]}",
            f"Recorded in {ledger}",
        ]
        return View(sentences, notes=self._warnings(gate))

    def _warnings(self, gate: GateRecord) -> list[str]:
        """Say which decisions are over the budget, and whether queries were seen elsewhere."""
        verdicts = [
            f"{decision.body['system']} {'accepted' if decision.body['accepted'] else 'rejected'}"
            for decision in gate.decided
            if gate.is_over(decision)
        ]
        words = []
        if verdicts:
            n_over = count(gate.account.n_over, "decision")
            over = f"{n_over} over the budget ({', '.join(verdicts)})"
            words.append(f"{over}: clones decided without knowing of each other")
        n_exposed = n_exposed_outside(gate.records, self.collection, gate)
        return [*words, exposed_words(n_exposed, self.collection)] if n_exposed else words


ASSUMED_SD = 0.2
"""Standard deviation of the differences of two systems by query, if nobody says otherwise."""


def declare(
    journal: Journal,
    collection: RegisteredCollection,
    name: str,
    terms: Terms,
    *,
    baseline: Any = None,
    baseline_name: str = "baseline",
    sd: float | None = None,
    groups: Any = None,
) -> Gate:
    """Record a gate, unless it is on record; a new one needs its baseline."""
    check_registered(collection)
    check_text("name", name, "a name for the gate")
    check_text("baseline_name", baseline_name, "a name for the baseline")
    spread = ASSUMED_SD if sd is None else sd
    check_positive("sd", spread)
    loaded = collection.loaded()
    ledger = journal.ledger
    ledger.check_writable()
    system = None if baseline is None else Candidate.of(loaded, baseline_name, baseline)
    grouped = loaded.grouped(groups)

    def record(records: Records) -> tuple[Terms, Groups]:
        records.unretired(collection)
        gate = GateRecord.find(records, name, records.registered(collection).hash)
        if gate is not None:
            kept = groups_of(gate, collection, loaded)
            is_regrouped = groups is not None and not np.array_equal(grouped.numbers, kept.numbers)
            same_groups = replace(terms, groups=gate.terms.groups, grouped_by=gate.terms.grouped_by)
            _refuse_other_terms(gate, same_groups, system, is_regrouped=is_regrouped)
            return gate.terms, kept
        if system is None:
            raise InvalidInput(
                "baseline is missing: give the system in use, with which candidates are compared"
            )
        size = len(grouped.sizes)
        problem = f"{collection.name!r} has {count(size, grouped.noun)}, on which no candidate can be accepted at "
        problem += f"{terms.shared.level:.2g}: that takes {terms.least_queries}"
        refuse((size < terms.least_queries, problem, "take more of them, or a smaller budget"))
        scores_of(loaded, system, terms)  # raises if a query cannot be scored
        n_exposed = n_exposed_outside(records, collection)
        new_terms = terms if groups is None else replace(terms, **keep_groups(ledger, grouped))
        body = {
            **about(collection, records),
            "gate": name,
            "terms": new_terms.content(),
            "baseline": system.output,
            "baseline_name": system.name,
            "rankings": ledger.keep("rankings", loaded.stored(system.ranking)),
            "n_exposed": n_exposed,
        }
        journal.append(records, ("gate", body))
        if n_exposed:
            warn(f"gate {name!r}: {exposed_words(n_exposed, collection)}")
        return new_terms, grouped

    declared, groups_of_queries = journal.transact(record)
    return Gate(
        name,
        collection,
        declared,
        declared.detectable(len(groups_of_queries.sizes), spread),
        spread,
        sd is None,
        journal,
    )


def _refuse_other_terms(
    gate: GateRecord, terms: Terms, baseline: Candidate | None, *, is_regrouped: bool
) -> None:
    differences = gate.terms.differences(terms)
    named = f"gate {gate.name!r} is declared"
    others = f"{named} by other terms ({differences}), and terms do not change"
    refuse(
        (differences, others, "use those, or declare a gate of another name on fresh queries"),
        (
            baseline is not None and not gate.known(baseline.output).time,
            f"{named} with another baseline: leave baseline= out here",
            "decide(..., baseline=) compares with the system in use",
        ),
        (is_regrouped, f"{named} with other groups, or without any: leave groups= out here"),
        kind=LedgerError,
    )
