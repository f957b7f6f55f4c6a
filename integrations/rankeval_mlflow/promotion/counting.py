"""Count the decisions for an alias that were made without a gate, by the records of its promotions in this store.

The runs of kind promotion are all read, those of deleted runs and experiments too. A decision
counts if it was made on today's queries. Its record names the judgments, and the run of the
evaluation, which holds the ids of the queries::

    the same judgments                              counts
    5 or more, or 5 %, of today's ids among its own counts: a part, a superset, other judgments
    fewer                                           does not count: fresh queries
    its evaluation is gone                          counts, since nobody knows

Decisions by a gate are counted by the gate, in its ledger. `rankeval.guard.decisions.Account`
counts both.

The trap: a record that cannot be read may be of these queries. It is an error, since it must not
count as none.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankeval._checks import count
from rankeval.contamination.hashing import text_hashes
from rankeval.errors import InvalidInput, LedgerError, RankevalError, TrackingError
from rankeval.guard.decisions import Budget, Made
from rankeval.guard.exposure import is_few
from rankeval_mlflow.delivery.connection import DELETED_TOO, NOT_READ, artifact, existing
from rankeval_mlflow.promotion.registry import Alias
from rankeval_mlflow.reading.listing import PAGE
from rankeval_mlflow.reading.loading import evaluation_of
from rankeval_mlflow.reading.resolving import pages
from rankeval_mlflow.run_names import DECISION, KIND, OUTCOME, param_text


@dataclass(frozen=True)
class Past(Made):
    """A decision by evaluations, with its record."""

    run_id: str
    budget: Budget | None  # None of records from before there was a budget
    reason: str
    judgments: str
    candidate_run: str
    role: str


def made_on(alias: Alias, ids: Any, judgments: str) -> list[Past]:
    """Return the decisions for an alias on the queries with some ids, the oldest first.

    Raises TrackingError if a record cannot be read, or the store cannot be reached.
    """
    hashes = text_hashes(ids)
    is_same = {judgments: True}
    with alias.translating_errors(f"list the promotions to {alias}"):
        decisions = [_decision(alias, run) for run in recorded(alias, "promotion")]
        past = [decision for decision in decisions[::-1] if decision]
        for decision in past:
            if decision.judgments not in is_same:
                is_same[decision.judgments] = _shares(alias, decision, hashes)
    return [decision for decision in past if is_same[decision.judgments]]


def _shares(alias: Alias, past: Past, hashes: Any) -> bool:
    """Return whether a decision was on some of these queries, or nobody knows."""
    run = existing(alias.client.get_run, past.candidate_run, codes=NOT_READ)
    try:
        evaluation = None if run is None else evaluation_of(alias.client, run, past.role)
    except RankevalError:
        evaluation = None
    if evaluation is None:
        return True
    return not is_few(int(np.isin(hashes, text_hashes(evaluation.queries)).sum()), len(hashes))


def recorded(alias: Alias, *kinds: str) -> Iterator[Any]:
    """Yield the runs with records about an alias, newest first, deleted ones too."""
    experiments = pages(alias.client.search_experiments, view_type=DELETED_TOO)
    ids = [experiment.experiment_id for experiment in experiments]
    condition = f"params.alias = '{alias.name}'"
    model = param_text(alias.model)
    for run in pages(
        alias.client.search_runs, ids, condition, run_view_type=DELETED_TOO, max_results=PAGE
    ):
        if run.data.params.get("model") == model and run.data.tags.get(KIND) in kinds:
            yield run


def note_on_last_holder(alias: Alias) -> str:
    """Say which version a record gave the alias last; "" if there is none."""
    with alias.translating_errors(f"list the promotions to {alias}"):
        runs = recorded(alias, "promotion", "rollback")
        moved = next((run for run in runs if run.data.tags.get(OUTCOME) == "moved"), None)
    if moved is None:
        return ""
    return f"version {moved.data.params['version']} had it last, by run {moved.info.run_id}"


def _decision(alias: Alias, run: Any) -> Past | None:
    """Return the decision of a record; None if nothing was tested, or a gate tested."""
    remedy = "let a gate of the guard decide, which counts in its own ledger"
    nobody = "so nobody knows whether it was of these queries, and nothing is decided"
    with refusing_unreadable(alias, run.info.run_id, nobody, remedy):
        record = json.loads(artifact(alias.client, run, DECISION))
        is_tested = "numbers" in record and not record.get("gate")
        return _past(alias, run.info.run_id, record) if is_tested else None


@contextlib.contextmanager
def refusing_unreadable(alias: Alias, run_id: str, so: str, remedy: str) -> Iterator[None]:
    """Raise TrackingError for a record that cannot be read."""
    try:
        yield
    except (InvalidInput, TrackingError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrackingError(
            f"the record of a promotion to {alias} in run {run_id} cannot be read, {so} ({error})",
            where=run_id,
            remedy=f"restore {DECISION} from a copy, or {remedy}",
        ) from error


def _past(alias: Alias, run_id: str, record: Mapping[str, Any]) -> Past:
    rule = record["rule"]
    question = (str(record.get("question", run_id)),)
    budget = Budget(rule["alpha"], rule["budget"]) if "budget" in rule else None
    name, baseline = (f"{alias.model} v{record[key]}" for key in ("version", "alias_before"))
    texts = (str(record[key]) for key in ("reason", "judgments", "candidate_run", "role"))
    return Past(question, record["decision"] == "accepted", name, baseline, run_id, budget, *texts)


def refuse_other_terms(past: Sequence[Past], budget: Budget) -> None:
    """Raise LedgerError if earlier decisions have other terms; the oldest records have none."""
    for decision in past:
        earlier = decision.budget
        if earlier not in (None, budget):
            argument = "budget"
            field = "decisions"
            if earlier.alpha != budget.alpha:
                argument = field = "alpha"
            raise LedgerError(
                f"run {decision.run_id} decided on these queries by other terms (alpha {earlier.alpha:g} over a budget "
                f"of {earlier.decisions}), and terms do not change",
                argument=argument,
                found=f"{getattr(budget, field):g}",
                expected=f"{getattr(earlier, field):g}",
                remedy="use those, or go on with fresh queries",
            )


def chosen_here(alias: Alias, past: Sequence[Past], holder: str | None) -> str:
    """Say what follows if the version in use was accepted on the same queries; else ""."""
    name = f"{alias.model} v{holder}"
    if not any(decision.accepted and decision.name == name for decision in past):
        return ""
    return (
        f" Version {holder} of {alias.model} was itself accepted on these queries, so its mean here is too high by "
        "that choice: the test of another version is valid and only harder to pass, but do not quote this mean."
    )


def made_elsewhere(alias: Alias, past: Sequence[Past]) -> str:
    """Say how many decisions on the same queries no gate made; "" if none."""
    n_others = len({decision.question for decision in past})
    if not n_others:
        return ""
    return f" Without a gate, {count(n_others, 'decision')} for {alias} used these queries, so the levels add up."


def not_known(alias: Alias) -> str:
    """Say what is counted, and what nobody can know."""
    return (
        f"Counted are the recorded promotions to {alias} in this store: decisions on other servers, in erased runs or "
        "by other tools are not known."
    )
