"""Count the decisions on the same queries for an alias, by the records of its promotions.

The runs of kind promotion are all read, those of deleted runs and experiments too. A record names its queries by hashes
of their ids, the smallest 4,096 of them, so that a part of them, more of them and other judgments of them are known
again::

    queries     n, and the hashes in Base64     which queries a decision was made on
    question    hash of both systems' scores    the same question again has the recorded answer
                and of what was asked
    rule        alpha, budget                   the terms, which stay as they were

Where the project has a ledger, a decision by evaluations is an entry there too, of the kind "promote" and without any
score, and the decisions of both are counted, each once: so promotions of one model on two servers share a budget, and
a server that loses its runs spares nobody. A gate has its own entries.

The trap: a record that cannot be read may be of these queries. It is an error, since it must not count as none.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mlflow.entities import ViewType
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.contamination.hashing import text_hashes
from rankeval.errors import InvalidInput, LedgerError, TrackingError
from rankeval.guard.exposure import is_few
from rankeval.guard.gate_terms import Budget, Decision
from rankeval.guard.records import Journal, why_lost
from rankeval.ledger.discovery import active_urls, default_url, may_exist
from rankeval.ledger.ledger import Ledger
from rankeval_mlflow.layout import DECISION, KIND, param_text
from rankeval_mlflow.promotion.registry import Alias
from rankeval_mlflow.reading.listing import PAGE
from rankeval_mlflow.reading.loading import artifact
from rankeval_mlflow.reading.resolving import pages

# Hashes that a record keeps: all of most test parts, in 44 kB.
MOST = 4096

ENTRY = "promote"
"""Kind of a ledger's entry on a decision by evaluations."""


@dataclass(frozen=True, eq=False)
class Queries:
    """The queries of a decision.

    Attributes
    ----------
    n : int
        Their number.
    hashes : ndarray of uint64
        Hashes of their ids, ascending: the smallest `MOST`. None are known of records from before they were kept.
    judgments : str
        The digest of their judgments.
    """

    n: int
    hashes: NDArray[np.uint64]
    judgments: str

    @classmethod
    def of(cls, ids: Any, judgments: str) -> Queries:
        """Return the queries with some ids."""
        hashes = np.unique(text_hashes(ids))
        return cls(len(hashes), hashes[:MOST], judgments)

    @classmethod
    def recorded(cls, said: Mapping[str, Any]) -> Queries:
        """Return the queries of a record."""
        kept = said.get("queries", {"n": said["n_queries"], "hashes": ""})
        hashes = np.frombuffer(base64.b64decode(kept["hashes"], validate=True), dtype="<u8").astype(np.uint64)
        return cls(int(kept["n"]), hashes, str(said["judgments"]))

    def content(self) -> dict[str, Any]:
        """Return them as a record has them."""
        return {"n": self.n, "hashes": base64.b64encode(self.hashes.astype("<u8").tobytes()).decode()}

    def n_shared(self, other: Queries) -> int:
        """Return how many are among the others; of more than `MOST` on a side it is an estimate.

        Parameters
        ----------
        other : Queries
            The others.
        """
        if self.judgments == other.judgments:
            return self.n
        # Up to the smaller of the greatest hashes kept, all hashes of both are known; hashes spread evenly.
        ends = [int(one.hashes[-1]) + 1 for one in (self, other) if one.n > len(one.hashes) > 0]
        known = min([2**64, *ends]) / 2**64
        return math.ceil(len(np.intersect1d(self.hashes, other.hashes, assume_unique=True)) / known)


@dataclass(frozen=True, eq=False)
class Past:
    """A decision that was made before.

    Attributes
    ----------
    where, version, reason : str
        Its record, such as "run ...", the candidate, and why.
    accepted : bool
        Whether the candidate was.
    queries : Queries
        The queries.
    question : str
        What was asked; for a gate, the run.
    terms : Budget or None
        The terms; None of records from before there was a budget.
    gate : str or None
        The gate that decided.
    """

    where: str
    version: str
    reason: str
    accepted: bool
    queries: Queries
    question: str
    terms: Budget | None
    gate: str | None

    @classmethod
    def recorded(cls, where: str, said: Mapping[str, Any]) -> Past | None:
        """Return the decision of a record; None if it decided nothing, such as that of a first version."""
        gate, rule, texts = said.get("gate"), said.get("rule", {}), (where, str(said["version"]), str(said["reason"]))
        if not gate["is_new"] if gate else "numbers" not in said:
            return None
        terms = Budget(rule["alpha"], rule["budget"]) if "budget" in rule else None
        asked, by = str(said.get("question", where)), gate and str(gate["name"])
        return cls(*texts, said["decision"] == "accepted", Queries.recorded(said), asked, terms, by)


def made_on(alias: Alias, queries: Queries) -> list[Past]:
    """Return the decisions for an alias on the same queries, the oldest first.

    Parameters
    ----------
    alias : Alias
        The alias.
    queries : Queries
        The queries. Others count as the same unless they share few with these, as the guard has it (`is_few`).

    Raises
    ------
    LedgerError
        If the ledger of the project is not whole.
    TrackingError
        If a record cannot be read, or the store cannot be reached.
    """
    with alias.asking(f"list the promotions to {alias}"):
        found = [_decision(alias, run) for run in _runs(alias)][::-1]
    for url in active_urls():
        entries = [one for one in Ledger(url).read().entries if one.kind == ENTRY]
        own = [one for one in entries if (one.body["model"], one.body["alias"]) == (alias.model, alias.name)]
        found += [Past.recorded(f"entry {one.hash[:20]} of the ledger", one.body) for one in own]
    return [one for one in found if one and not is_few(queries.n_shared(one.queries), queries.n)]


def keep(alias: Alias, version: str, facts: Mapping[str, Any], *, accepted: bool) -> None:
    """Record a decision in the ledger of the project too, before it is told; do nothing if there is none that lasts.

    Parameters
    ----------
    alias : Alias
        The alias.
    version : str
        The candidate.
    facts : mapping
        The facts of its record.
    accepted : bool
        What was decided: the only result that the entry has.

    Raises
    ------
    LedgerError
        If the ledger cannot be written.
    """
    url = default_url()  # not that of a guard elsewhere, which may be another team's
    if url is None or not may_exist(url) or why_lost(url) is not None:
        return
    verdict = "accepted" if accepted else "rejected"
    body: dict[str, Any] = {"model": alias.model, "alias": alias.name, "version": version, "decision": verdict}
    body |= {"rule": {name: facts["rule"][name] for name in ("alpha", "budget")}, "numbers": None, "reason": verdict}
    body |= {name: facts[name] for name in ("queries", "n_queries", "judgments", "question")}
    journal = Journal(alias.model, Ledger(url))
    journal.decide(lambda records: journal.append(records, (ENTRY, body)))


def _runs(alias: Alias) -> Iterator[Any]:
    every: Any = ViewType.ALL
    ids = [one.experiment_id for one in pages(alias.client.search_experiments, view_type=every)]
    asked = f"tags.`{KIND}` = 'promotion' and params.alias = '{alias.name}'"
    for run in pages(alias.client.search_runs, ids, asked, run_view_type=every, max_results=PAGE):
        if run.data.params.get("model") == param_text(alias.model):
            yield run


def _decision(alias: Alias, run: Any) -> Past | None:
    run_id = run.info.run_id
    try:
        return Past.recorded(f"run {run_id}", json.loads(artifact(alias.client, run, DECISION)))
    except (InvalidInput, TrackingError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrackingError(
            f"the record of a promotion to {alias} in run {run_id} cannot be read, so nobody knows whether it was of "
            f"these queries, and nothing is decided ({error})",
            where=run_id,
            remedy=f"restore {DECISION} from a copy, or let a gate of the guard decide, which counts in its own ledger",
        ) from error


def counted(
    alias: Alias, past: Sequence[Past], budget: Budget, question: str, names: tuple[str, str], *, accepted: bool
) -> tuple[Decision, Past | None]:
    """Return which decision it is, and the earlier one whose question is the same.

    Parameters
    ----------
    alias : Alias
        The alias.
    past : sequence of Past
        The decisions on the same queries.
    budget : Budget
        The terms.
    question : str
        What is asked.
    names : tuple of str
        Of the candidate and of the version in use.
    accepted : bool
        Whether the candidate is, if nobody asked before.

    Raises
    ------
    LedgerError
        If the earlier decisions have other terms, or none is left.
    """
    for one in past:
        _refuse_other_terms(one, budget)
    known = next((one for one in past if one.question == question), None)
    asked = {one.question for one in past}
    if known is None:
        budget.refuse_spent(len(asked), str(alias), "these queries")
    first, accepted = ("", accepted) if known is None else (f"{alias.model} v{known.version}", known.accepted)
    left, of = budget.left(len(asked | {question})), (names[0], str(alias), names[1])
    return Decision(accepted, left, budget.decisions, *of, known is None, first_name=first), known


def _refuse_other_terms(past: Past, budget: Budget) -> None:
    # A decision without terms has none to differ.
    if past.terms not in (None, budget):
        name = "alpha" if past.terms.alpha != budget.alpha else "decisions"
        who = f"gate {past.gate!r}" if past.gate else past.where
        raise LedgerError(
            f"{who} decided on these queries by other terms (alpha {past.terms.alpha:g} over a budget of "
            f"{past.terms.decisions}), and terms do not change",
            argument="alpha" if name == "alpha" else "budget",
            found=f"{getattr(budget, name):g}",
            expected=f"{getattr(past.terms, name):g}",
            remedy="use those, or go on with fresh queries",
        )


def chosen_here(alias: Alias, past: Sequence[Past], holder: str | None) -> str:
    """Say what it means that the version in use was accepted on the same queries; "" if it was not."""
    said = (
        f" Version {holder} of {alias.model} was itself accepted on these queries, so its mean here is too high by "
        "that choice: the test of another version holds and is only harder to pass, but do not quote this mean."
    )
    return said if any(one.accepted and one.version == holder for one in past) else ""


def made_elsewhere(alias: Alias, past: Sequence[Past], gate: str) -> str:
    """Say how many decisions on the same queries a gate did not make; "" if none."""
    n_others = len({one.question for one in past if one.gate != gate})
    said = f" Outside of this gate, {count(n_others, 'decision')} for {alias} used these queries, so the levels add up."
    return said if n_others else ""
