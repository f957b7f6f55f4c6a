"""The record of a promotion: a run with the decision, written before the alias moves, and short tags that lead to it.

::

    run        rankeval/promotion/decision.json    who asked what of which versions, and what was decided
               the comparison, unless a gate with a budget decided
               tag rankeval.promotion              what became of the alias, set when that is known
    version    tag rankeval.promotion.<alias>      "accepted over 3 in <run id>", set before the alias moves
               tag rankeval.rejection.<alias>      "rejected against 3 in <run id>"

A rejection has a tag of its own, so that it never covers the acceptance by which a version came to its alias.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, replace
from typing import Any

import rankeval
from rankeval.errors import TrackingError, warn
from rankeval.tracking import RunRecord, TrackedRun
from rankeval_mlflow.delivery.addresses import now_ms, run_context
from rankeval_mlflow.delivery.payload import Node, Payload, Target
from rankeval_mlflow.delivery.sending import deliver
from rankeval_mlflow.layout import DECISION, HEADLINE, KIND, PROMOTION, REJECTION, param_text
from rankeval_mlflow.packing.record import record_node
from rankeval_mlflow.promotion.deciding import Decided
from rankeval_mlflow.promotion.registry import Alias, asking

FORMAT = 1

_ACCEPTED = re.compile(r"accepted over (?P<before>\S+) in (?P<run_id>\S+)")


@dataclass(frozen=True)
class Question:
    """Who asks, for which versions, since when, and why.

    Attributes
    ----------
    version : str
        The candidate.
    before : str or None
        The version in use.
    who : str
        The person or machine.
    started : float
        When the promotion began, in seconds since the epoch.
    """

    version: str
    before: str | None
    who: str
    started: float


def acceptance_tag(alias: str) -> str:
    """Return the tag of a version that was accepted for an alias."""
    return f"{PROMOTION}.{alias}"


def rejection_tag(alias: str) -> str:
    """Return the tag of a version that was rejected for an alias."""
    return f"{REJECTION}.{alias}"


def accepted_over(value: str) -> str | None:
    """Return the version that an acceptance names as the one in use; None if the tag is not ours."""
    found = _ACCEPTED.fullmatch(value)
    return found["before"] if found else None


def write(alias: Alias, question: Question, decided: Decided, experiment_id: str) -> TrackedRun:
    """Write the record to a run of its own.

    Parameters
    ----------
    alias : Alias
        The alias.
    question : Question
        Who asked what.
    decided : Decided
        What was decided.
    experiment_id : str
        The experiment of the run.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses. The record is kept on disk; the alias was not touched.
    """
    target = Target(uri=alias.uri, experiment_id=experiment_id)
    try:
        return deliver(Payload(target, _node(alias, question, decided), now_ms(), run_context()))
    except TrackingError as error:
        raise TrackingError(
            f"the decision could not be recorded, so the alias {alias} stays as it is: {error}\n"
            "Promote again then: a record that is sent later moves nothing"
        ) from error


def tag_version(alias: Alias, question: Question, run_id: str, *, accepted: bool) -> None:
    """Set the short tag of the version that leads to its record."""
    before = question.before or "none"
    if accepted:
        alias.tag(question.version, acceptance_tag(alias.name), f"accepted over {before} in {run_id}")
    else:
        alias.tag(question.version, rejection_tag(alias.name), f"rejected against {before} in {run_id}")


def note_outcome(alias: Alias, run_id: str, outcome: str) -> None:
    """Set the tag of the run that says what became of the alias; warn if that fails, since nothing hangs on it."""
    try:
        with asking(alias.uri, f"tag run {run_id}"):
            alias.client.set_tag(run_id, PROMOTION, param_text(outcome))
    except (TrackingError, ValueError) as error:
        warn(f"run {run_id} does not say what became of {alias} ({outcome}): {error}")


def rivals(alias: Alias, question: Question) -> list[str]:
    """Return the other versions that were accepted over the same version in use.

    Whoever moves the alias last is sure to see those who moved it meanwhile: they had tagged their version before they
    moved the alias, and so before this call.
    """
    key, before = acceptance_tag(alias.name), question.before or "none"
    return sorted(
        str(one.version)
        for one in alias.versions()
        if str(one.version) != question.version and accepted_over(one.tags.get(key, "")) == before
    )


def _node(alias: Alias, question: Question, decided: Decided) -> Node:
    verdict = "accepted" if decided.accepted else "rejected"
    content = _content(alias, question, decided, verdict)
    rule = decided.facts["rule"]
    params = {
        "model": alias.model,
        "alias": alias.name,
        "version": question.version,
        "holder": question.before or "none",
    }
    params |= {name: str(rule[name]) for name in ("measure", "claim", "margin", "alpha")}
    name = f"{alias.model} v{question.version} for {alias.name}: {verdict}"
    node = record_node(
        RunRecord(
            name=name,
            params={**params, "decision": verdict},
            comparison=decided.comparison,
            data=(decided.data,),
            artifacts={DECISION: json.dumps(content, indent=1).encode()},
            started=question.started,
            seconds=time.time() - question.started,
        )
    )
    said = f"**{name}**\n\n{decided.reason}\n\n{_runs(decided)}".strip()
    tags = {**node.tags, KIND: "promotion", HEADLINE: param_text(f"{verdict}: {decided.reason}")}
    return replace(node, tags=tags, sections={"promotion": said, **node.sections})


def _content(alias: Alias, question: Question, decided: Decided, verdict: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "decision": verdict,
        "reason": decided.reason,
        "model": alias.model,
        "alias": alias.name,
        "version": question.version,
        "alias_before": question.before,
        "who": question.who,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(question.started)),
        "data": {"name": decided.data.name, "digest": decided.data.digest},
        "rankeval": rankeval.__version__,
        **decided.facts,
    }


def _runs(decided: Decided) -> str:
    names = {"candidate_run": "Evaluation of the candidate", "holder_run": "Evaluation of the version in use"}
    return "\n".join(
        f"* {words}: run `{decided.facts[key]}`" for key, words in names.items() if decided.facts.get(key) is not None
    )
