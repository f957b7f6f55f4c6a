"""The terms of a gate with the test by which it decides, the count of its decisions, and their record.

A ``gate`` entry declares the terms, and each ``decide`` entry is one decision::

    gate  name, terms, baseline, n_exposed
    decide  name of the system, its output, the output it was compared with, accepted

An entry of a decision holds the hash of a ranking output and one bit: no score, no difference and
no p-value. Which system is the baseline of the next decision, and how many are left, follows from
the entries.

An `Account` counts decisions against a `Budget`: those of a gate from its entries, and promotions
without a gate from the runs that MLflow has of them.

The trap: two clones of a ledger may have decided without knowing of each other. All of their
decisions count, so more may stand there than the budget allows: the last ones in the order of the
ledger lie over it. If both accepted a system, nothing says which is the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import check_alpha, check_count, count, require
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.collection.convention import Convention
from rankeval.errors import LedgerError
from rankeval.guard.exposure import is_few
from rankeval.guard.journal import Records
from rankeval.guard.plan import content_of, fields_in
from rankeval.ledger.entry import Entry
from rankeval.measures import greatest_loss

if TYPE_CHECKING:
    from rankeval.significance.declarations import ClaimName


CLAIMS = ("better", "not_worse")
"""What a gate can ask for: a claim with one side."""

_RESAMPLES = 20
"""Resampled patterns, at least, that a p-value at the level of a decision is made of."""


@dataclass(frozen=True)
class Budget:
    """The decisions that share one level: those of a gate, or the promotions to an alias on the same queries.

    Each of T decisions is tested at alpha / T. As long as nothing was accepted, every answer was
    "rejected", and the next candidate would have been made with any other scores too. So the chance
    that a candidate is ever accepted although none is better is at most alpha, by Bonferroni's
    inequality, as nearly as the test holds its level.

    Examples
    --------
    >>> budget = Budget(0.05, 20)
    >>> budget.level, budget.n_resamples
    (0.0025, 9999)
    """

    alpha: float  # The one-sided level of all decisions together
    decisions: int  # Their number

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_count("budget", self.decisions)
        # More resamples than a test of the last one would take fill the memory.
        require(self.decisions <= 10_000, "budget", self.decisions, "10,000 decisions or fewer")

    @property
    def level(self) -> float:
        """The level of one decision."""
        return self.alpha / self.decisions

    @property
    def n_resamples(self) -> int:
        """The number of resamples that a test takes: a p-value is a multiple of 1 / (n_resamples + 1)."""
        return max(9999, math.ceil(_RESAMPLES / self.level) - 1)


@escaping
@dataclass(frozen=True)
class Terms:
    """What a gate asks of every candidate.

    Attributes
    ----------
    measure : str
        The measure.
    convention : Convention
        The rules by which rankings are scored.
    claim : {"better", "not_worse"}
        The claim to be shown of the candidate.
    margin : float
        Of the claim.
    alpha : float
        The level of all decisions together.
    budget : int
        Number of decisions.
    rng : int
        Seed of the randomisation test.
    unseen : int
        Number of unseen queries that "not_worse" counts; 0 for gates declared before any were.
    groups, grouped_by : str
        The file of the ledger that has the group of each query, and the noun for a group; ""
        without groups.
    """

    measure: str
    convention: Convention
    claim: ClaimName
    margin: float
    alpha: float
    budget: int
    rng: int
    unseen: int = 0
    groups: str = ""
    grouped_by: str = ""

    def __post_init__(self) -> None:
        from rankeval.significance.declarations import check_claim

        require(self.claim in CLAIMS, "claim", self.claim, " or ".join(map(repr, CLAIMS)))
        _ = self.shared  # raises for a budget that is none
        check_claim(self.claim, self.margin)

    @property
    def shared(self) -> Budget:
        """The budget with the level that its decisions share."""
        return Budget(self.alpha, self.budget)

    def words(self, baseline: str = "the baseline") -> str:
        """Return what must be shown of a candidate."""
        over = f", tested by {self.grouped_by}" if self.groups else ""
        if self.claim == "not_worse":
            return f"not worse than {baseline} by {self.margin:g} {self.measure}{over}"
        return f"better than {baseline} by {f'more than {self.margin:g} ' if self.margin else ''}{self.measure}{over}"

    @property
    def least_queries(self) -> int:
        """The number of queries below which no candidate can be accepted."""
        from rankeval.significance.randomization import EXACT_UP_TO

        # n queries have 2**n patterns of signs, one of which is the best: no p-value is below
        # 2**-n.
        least = max(2, math.ceil(-math.log2(self.shared.level)))
        return least if least <= EXACT_UP_TO else EXACT_UP_TO + 1

    def claim_shown(self, gains: NDArray[np.float64], largest: float) -> bool:
        """Return whether the claim is shown, one-sided by the randomisation test, at the level of one decision.

        `largest` is the greatest score of the baseline: what a query can lose by a measure without
        a declared range.
        """
        from rankeval.significance.running import paired_test

        loss = greatest_loss(self.measure)
        level = self.shared.level
        tested = paired_test(
            "randomization",
            gains,
            alpha=level,
            n_resamples=self.shared.n_resamples,
            rng=self.rng,
            claim=self.claim,
            margin=self.margin,
            unseen=self.unseen,
            greatest_loss=loss if math.isfinite(loss) else largest or 1.0,
        )
        return bool(tested.p_value <= level)

    def detectable(self, n_queries: int, sd: float) -> float:
        """Return the gain that is accepted four times in five; for "not_worse", the margin of an equal system."""
        from rankeval.significance.power import detectable_difference

        difference = detectable_difference(
            max(2, n_queries),
            sd,
            self.shared.level,
            claim=self.claim,
            margin=self.margin,
            unseen=self.unseen,
        )
        return float(difference)

    def content(self) -> dict[str, Any]:
        """Return the terms as JSON can hold them."""
        return content_of(self, vars(self)) | {"budget": int(self.budget)}

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Terms:
        """Return the terms that `content` described."""
        numbers = {"margin": float(content["margin"]), "alpha": float(content["alpha"])}
        return cls(**fields_in(content, cls.__annotations__) | numbers)

    def differences(self, other: Terms) -> str:
        """Return in words where other terms differ; "" if they are the same."""
        ours = self.content()
        theirs = other.content()
        pairs = {name: (ours.get(name, "none"), theirs.get(name, "none")) for name in ours | theirs}
        return ", ".join(
            f"{name} is {own} and not {other}"
            for name, (own, other) in pairs.items()
            if own != other
        )


@explained
@escaping
@dataclass(frozen=True, repr=False)
class Decision(Displayed):
    """What a gate decided on a system: accepted or rejected, and nothing else.

    Attributes
    ----------
    accepted : bool
        Whether the claim of the gate was shown. A system that is rejected may be as good as the
        baseline, or better.
    remaining : int
        Decisions that the gate has left.
    budget : int
        Decisions that it may make in all.
    name : str
        The system.
    gate : str
        The gate, or the model and the alias that it was promoted to.
    baseline : str
        The system it was compared with.
    is_new : bool
        Whether the decision was made now, and used the budget. A repeated one is free.
    is_baseline : bool
        Whether the ranking is that of the baseline, on which nothing is to be decided.
    n_exposed : int
        Queries that were looked at outside of the gate; 0 if few.
    first_name : str
        The name under which the same output was decided on; "" if the decision is new.
    n_over : int
        Decisions over the budget, made by clones that did not know of each other. If there are any,
        the level is exceeded.
    against : Standard or None
        The ranking of the baseline: its hash, and since when and by whom it is on record. None
        without a gate.
    """

    accepted: bool
    remaining: int
    budget: int
    name: str
    gate: str
    baseline: str
    is_new: bool
    is_baseline: bool = False
    n_exposed: int = 0
    first_name: str = ""
    n_over: int = 0
    against: Standard | None = field(default=None, compare=False, repr=False)

    def __bool__(self) -> bool:
        return self.accepted

    @property
    def counted(self) -> str:
        """Which decision of the budget it is; if it was free, how many are left."""
        if not self.is_new:
            over = (
                f", and {self.n_over} over the budget: its level is exceeded" if self.n_over else ""
            )
            return f"{self.remaining} of {count(self.budget, 'decision')} left{over}"
        release = ", a single release" if self.budget == 1 else ""
        return f"decision {self.budget - self.remaining} of {self.budget}{release}"

    @property
    def words(self) -> str:
        """The verdict in a sentence, with the decisions that are left."""
        verdict = "accepted" if self.accepted else "rejected"
        under = (
            f" under the name {self.first_name!r}" if self.first_name not in ("", self.name) else ""
        )
        known = "" if self.is_new else f" (as before{under}, which is free)"
        if self.is_baseline:
            known = " (the ranking of the baseline, which is free)"
        words = f"{self.name}: {verdict}{known} against {self.baseline} by gate {self.gate!r}; {self.counted}"
        if self.n_exposed:
            words += f"; {count(self.n_exposed, 'query')} looked at outside this gate, so its level may be exceeded"
        return words

    def _view(self) -> View:
        return View([self.words])


@dataclass(frozen=True)
class Made:
    """A decision on record: the question by its hashes, the answer, and the two systems."""

    question: tuple[str, ...]
    accepted: bool
    name: str
    baseline: str


@dataclass(frozen=True)
class Account:
    """Decisions against a budget, by whom and on which queries; a question that two clones decided counts once."""

    budget: Budget
    who: str
    queries: str
    made: tuple[Made, ...]

    @cached_property
    def questions(self) -> list[tuple[str, ...]]:
        """The questions that used the budget, in order; one that two clones decided counts once."""
        return list(dict.fromkeys(decision.question for decision in self.made))

    @property
    def n_made(self) -> int:
        """The decisions that used the budget."""
        return len(self.questions)

    @property
    def remaining(self) -> int:
        """Decisions that are left."""
        return max(0, self.budget.decisions - self.n_made)

    @property
    def n_over(self) -> int:
        """Decisions over the budget: clones or machines decided without knowing of each other."""
        return max(0, self.n_made - self.budget.decisions)

    def repeat(self, past: Made, fields: Mapping[str, Any]) -> Decision:
        """Return a past decision again, which is free."""
        again = {"baseline": past.baseline, "first_name": past.name, "accepted": past.accepted}
        return Decision(
            **{**fields, **again},
            n_over=self.n_over,
            is_new=False,
            remaining=self.remaining,
            budget=self.budget.decisions,
        )

    def decide(self, accepts: Callable[[], bool], fields: Mapping[str, Any]) -> Decision:
        """Return the decision of a test; raise LedgerError if no decision is left."""
        left = self.remaining
        of = self.budget.decisions
        if not left:
            raise LedgerError(
                f"{self.who} has made its {count(of, 'decision')} on {self.queries}, and decides no more",
                argument="budget",
                found=str(self.n_made),
                remedy="collect and label fresh queries, under ids of their own; or declare a gate of the guard with "
                "terms of its own, whose level adds to this one",
            )
        return Decision(**fields, accepted=accepts(), remaining=left - 1, budget=of, is_new=True)


@dataclass(frozen=True)
class Standard:
    """The ranking that candidates are compared with: the hashes of its output, of the content, and its file."""

    name: str
    output: str
    digest: str = ""
    rankings: str = ""
    time: str = ""
    who: str = ""

    @property
    def on_record(self) -> str:
        """The start of the hash, and since when and by whom the ranking is on record."""
        since = f", on record since {self.time[:10]} by {self.who}" if self.time else ""
        return f"ranking {self.output[:12]}{since}"


@dataclass(frozen=True)
class GateRecord:
    """A gate and its decisions, as the ledger has them; two entries declared it, if two clones did."""

    records: Records
    declared: tuple[Entry, ...]

    @classmethod
    def find(cls, records: Records, name: str, registration: str) -> GateRecord | None:
        """Return the gate of this name of the project on the queries of a collection; None without one.

        A part of a collection, a larger one and other labels are the same queries, under whatever
        name.
        """
        whole: dict[str, Any] = {"registration": registration, "queries": None}
        n_queries = len(records.exposure.queries_of(whole))
        declared = tuple(
            entry
            for entry in records.snapshot.entries
            if entry.kind == "gate"
            and entry.project == records.project
            and entry.body["gate"] == name
            and not is_few(records.exposure.shared(whole, entry.body), n_queries)
        )
        return cls(records, declared) if declared else None

    @property
    def name(self) -> str:
        """The name of the gate."""
        return str(self.declared[0].body["gate"])

    @cached_property
    def terms(self) -> Terms:
        """The terms; raises LedgerError if two clones declared it by different ones."""
        first, *others = (Terms.from_content(entry.body["terms"]) for entry in self.declared)
        for other in others:
            if differences := first.differences(other):
                raise LedgerError(
                    f"gate {self.name!r} was declared in two clones by different terms ({differences}): declare a "
                    "gate of another name"
                )
        return first

    @cached_property
    def decided(self) -> tuple[Entry, ...]:
        """The decisions, parents first."""
        ids = {entry.hash for entry in self.declared}
        return tuple(
            entry
            for entry in self.records.snapshot.entries
            if entry.kind == "decide" and entry.body["gate"] in ids
        )

    @cached_property
    def account(self) -> Account:
        """The decisions by their questions: the outputs of candidate and baseline."""
        made = tuple(_made(entry.body) for entry in self.decided)
        return Account(
            self.terms.shared,
            f"gate {self.name!r}",
            repr(self.declared[0].body["collection"]),
            made,
        )

    def is_over(self, decision: Entry) -> bool:
        """Return whether a decision lies over the budget, as it can if clones decided without knowing of each other."""
        return _made(decision.body).question in self.account.questions[self.terms.budget :]

    @cached_property
    def standards(self) -> tuple[Standard, ...]:
        """The baselines that the next decision may have: one, unless clones accepted different systems."""
        accepted = [entry for entry in self.decided if entry.body["accepted"]] or list(
            self.declared
        )
        # The last of those accepted; if two clones accepted apart from each other, there are two.
        last = [
            entry
            for entry in accepted
            if not any(self.records.snapshot.precedes(entry.hash, other.hash) for other in accepted)
        ]
        by_output = {standard.output: standard for standard in map(_standard, last)}
        return tuple(by_output.values())

    @property
    def standard(self) -> Standard:
        """The baseline of the next decision."""
        if len(self.standards) > 1:
            names = " and ".join(repr(standard.name) for standard in self.standards)
            raise LedgerError(
                f"gate {self.name!r} accepted {names} in two clones that did not know of each other: say which one is "
                "in use by baseline="
            )
        return self.standards[0]

    def known(self, output: str, name: str = "") -> Standard:
        """Return the declared baseline or the accepted system with an output; without a time if there is none."""
        accepted = [entry for entry in self.decided if entry.body["accepted"]]
        standards = map(_standard, [*self.declared, *accepted])
        known = (standard for standard in standards if standard.output == output)
        return next(known, Standard(name, output))

    def decision(self, output: str, baseline: str | None = None) -> Made | None:
        """Return the last decision on an output, against any baseline or against that output; None without one."""
        latest_first = reversed(self.account.made)
        return next(
            (
                made
                for made in latest_first
                if made.question[0] == output and baseline in {None, made.question[1]}
            ),
            None,
        )


def _made(body: Mapping[str, Any]) -> Made:
    question = (str(body["output"]), str(body["baseline"]))
    return Made(question, bool(body["accepted"]), str(body["system"]), str(body["baseline_name"]))


def _standard(entry: Entry) -> Standard:
    keys = ("baseline_name", "baseline") if entry.kind == "gate" else ("system", "output")
    name, output, digest, rankings = (str(entry.body[key]) for key in (*keys, "digest", "rankings"))
    return Standard(name, output, digest, rankings, entry.time, entry.who)
