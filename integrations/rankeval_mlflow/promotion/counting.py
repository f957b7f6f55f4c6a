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
    terms: Budget | None  # None of records from before there was a budget
    reason: str
    judgments: str
    candidate_run: str
    role: str


def made_on(alias: Alias, ids: Any, judgments: str) -> list[Past]:
    """Return the decisions for an alias on the queries with some ids, the oldest first.

    Raises TrackingError if a record cannot be read, or the store cannot be reached.
    """
    hashes, is_same = text_hashes(ids), {judgments: True}
    with alias.asking(f"list the promotions to {alias}"):
        past = [
            one
            for run in recorded(alias, "promotion")
            if (one := _decision(alias, run)) is not None
        ][::-1]
        for one in past:
            if one.judgments not in is_same:
                is_same[one.judgments] = _shares(alias, one, hashes)
    return [one for one in past if is_same[one.judgments]]


def _shares(alias: Alias, past: Past, hashes: Any) -> bool:
    """Return whether a decision was on some of these queries, or nobody knows."""
    run = existing(alias.client.get_run, past.candidate_run, codes=NOT_READ)
    try:
        before = None if run is None else evaluation_of(alias.client, run, past.role)
    except RankevalError:
        before = None
    if before is None:
        return True
    return not is_few(int(np.isin(hashes, text_hashes(before.queries)).sum()), len(hashes))


def recorded(alias: Alias, *kinds: str) -> Iterator[Any]:
    """Yield the runs with records about an alias, newest first, those of deleted runs and experiments too."""
    ids = [
        one.experiment_id for one in pages(alias.client.search_experiments, view_type=DELETED_TOO)
    ]
    asked = f"params.alias = '{alias.name}'"
    for run in pages(
        alias.client.search_runs, ids, asked, run_view_type=DELETED_TOO, max_results=PAGE
    ):
        if (
            run.data.params.get("model") == param_text(alias.model)
            and run.data.tags.get(KIND) in kinds
        ):
            yield run


def last_holder(alias: Alias) -> str:
    """Say which version a record gave the alias last; "" if there is none."""
    with alias.asking(f"list the promotions to {alias}"):
        runs = recorded(alias, "promotion", "rollback")
        moved = next((run for run in runs if run.data.tags.get(OUTCOME) == "moved"), None)
    return (
        ""
        if moved is None
        else f"version {moved.data.params['version']} had it last, by run {moved.info.run_id}"
    )


def _decision(alias: Alias, run: Any) -> Past | None:
    """Return the decision of a record; None if nothing was tested, as for a first version, or a gate tested."""
    run_id = run.info.run_id
    try:
        said = json.loads(artifact(alias.client, run, DECISION))
        return None if said.get("gate") or "numbers" not in said else _past(alias, run_id, said)
    except (InvalidInput, TrackingError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrackingError(
            f"the record of a promotion to {alias} in run {run_id} cannot be read, so nobody knows whether it was of "
            f"these queries, and nothing is decided ({error})",
            where=run_id,
            remedy=f"restore {DECISION} from a copy, or let a gate of the guard decide, which counts in its own ledger",
        ) from error


def _past(alias: Alias, run_id: str, said: Mapping[str, Any]) -> Past:
    rule, question = said["rule"], (str(said.get("question", run_id)),)
    terms = Budget(rule["alpha"], rule["budget"]) if "budget" in rule else None
    name, baseline = (f"{alias.model} v{said[key]}" for key in ("version", "alias_before"))
    texts = (str(said[key]) for key in ("reason", "judgments", "candidate_run", "role"))
    return Past(question, said["decision"] == "accepted", name, baseline, run_id, terms, *texts)


def refuse_other_terms(past: Sequence[Past], budget: Budget) -> None:
    """Raise LedgerError if earlier decisions have other terms; records from before there was a budget have none."""
    for one in past:
        if one.terms not in (None, budget):
            name = "alpha" if one.terms.alpha != budget.alpha else "decisions"
            raise LedgerError(
                f"run {one.run_id} decided on these queries by other terms (alpha {one.terms.alpha:g} over a budget of "
                f"{one.terms.decisions}), and terms do not change",
                argument="alpha" if name == "alpha" else "budget",
                found=f"{getattr(budget, name):g}",
                expected=f"{getattr(one.terms, name):g}",
                remedy="use those, or go on with fresh queries",
            )


def chosen_here(alias: Alias, past: Sequence[Past], holder: str | None) -> str:
    """Say what it means that the version in use was accepted on the same queries; "" if it was not."""
    said = (
        f" Version {holder} of {alias.model} was itself accepted on these queries, so its mean here is too high by "
        "that choice: the test of another version holds and is only harder to pass, but do not quote this mean."
    )
    return (
        said if any(one.accepted and one.name == f"{alias.model} v{holder}" for one in past) else ""
    )


def made_elsewhere(alias: Alias, past: Sequence[Past]) -> str:
    """Say how many decisions on the same queries no gate made; "" if none."""
    n_others = len({one.question for one in past})
    said = f" Without a gate, {count(n_others, 'decision')} for {alias} used these queries, so the levels add up."
    return said if n_others else ""


def not_known(alias: Alias) -> str:
    """Say what is counted, and what nobody can know."""
    return (
        f"Counted are the recorded promotions to {alias} in this store: decisions on other servers, in erased runs or "
        "by other tools are not known."
    )
