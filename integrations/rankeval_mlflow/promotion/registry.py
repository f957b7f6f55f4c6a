"""One alias of one registered model, and the record of a decision about it.

MLflow sets an alias without asking which version has it (there is no compare-and-set), so
`promoting` reads it before and after.

The record is a run with the decision, written before the alias moves, and short tags that lead to
it.

::

    run        rankeval/promotion/decision.json    who asked what of which versions, on which queries, what was decided,
                                                   and which decision of the budget that is (`counting` reads it)
               the comparison, unless a gate with a budget decided
               tag rankeval.outcome                what became of the alias, in a word or two, set when that is known
               tag rankeval.promotion              the same in a sentence for people
    version    tag rankeval.promotion.<alias>.state    a `Mark` as JSON, set before the alias moves, and after a
                                                   rollback
               tag rankeval.promotion.<alias>      the same for people: "accepted over 3 in <run id>", "forced over 3
                                                   in <run id>; override by ...", "rolled back to 3 in <run id>"
               tag rankeval.rejection.<alias>      "rejected against 3 in <run id>", until the version gets the alias

Nothing reads the sentences. A gate's claim stands behind them, after a semicolon: what was shown,
of which baseline, at which level.

A rejection has a tag of its own, so that it never covers the acceptance by which a version came to
its alias.

The run lies in an experiment of its own, by default "<model> promotions": the experiment of the
candidates has the candidates only, and the decisions on all of them stand together wherever they
were trained. A saved view would not do, since MLflow shows all runs until somebody chooses it.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from dataclasses import dataclass, replace
from html import escape
from numbers import Integral
from typing import Any, NamedTuple

import pandas as pd

import rankeval
from rankeval._checks import require, shown
from rankeval._visible import escaping
from rankeval.comparison import Comparison
from rankeval.errors import InvalidInput, TrackingError, warn
from rankeval.guard import Decision
from rankeval.tracking import LoggedData, RunRecord, TrackedRun
from rankeval_mlflow.delivery.addresses import now_ms
from rankeval_mlflow.delivery.connection import NOT_READ, existing, run_context, translating_errors
from rankeval_mlflow.delivery.payload import Node, Payload, Target
from rankeval_mlflow.delivery.sending import deliver
from rankeval_mlflow.packing.record import record_node
from rankeval_mlflow.reading.resolving import aliases_of, version_named, versions_of
from rankeval_mlflow.run_names import (
    DECISION,
    HEADLINE,
    KIND,
    OUTCOME,
    PROMOTION,
    REJECTION,
    STATE,
    param_text,
    state_of,
)

_ALIAS = re.compile(r"(?!latest$|v\d+$)[\w\-]{1,200}", re.IGNORECASE)


FORMAT = 1


def checked_alias(alias: str) -> str:
    """Return an alias that MLflow accepts; raise InvalidInput for another one."""
    expected = "letters, digits, _ and -, and neither 'latest' nor 'v' with a number, which MLflow reserves"
    require(
        isinstance(alias, str) and _ALIAS.fullmatch(alias) is not None, "alias", alias, expected
    )
    return alias


@escaping
@dataclass(frozen=True)
class Alias:
    """An alias of a registered model in one store."""

    client: Any  # A client of the store
    uri: str  # The store, for messages
    model: str  # The registered model, and the alias
    name: str

    def __str__(self) -> str:
        return f"{self.model}@{self.name}"

    def translating_errors(self, to: str) -> contextlib.AbstractContextManager[None]:
        """Raise an error of ours for that of the registry; a name that is gone was the caller's."""
        return translating_errors(self.uri, to, gone=InvalidInput)

    def holder(self) -> str | None:
        """Return the version that has the alias now; None if none has it."""
        return self.aliases().get(self.name)

    def aliases(self) -> dict[str, str]:
        """Return the version of each alias of the model."""
        with self.translating_errors(f"read the aliases of {self.model}"):
            return aliases_of(self.client, self.model)

    def version(self, spelling: Any) -> Any:
        """Return a version in a spelling of `promote`; raise InvalidInput if there is none."""
        is_number = isinstance(spelling, Integral) and not isinstance(spelling, bool)
        if is_number or (isinstance(spelling, str) and not {"/", "@"} & set(spelling)):
            spelling = f"{self.model}/{str(spelling).strip()}"
        with self.translating_errors(f"read the version {shown(spelling)} of {self.model}"):
            return version_named(self.client, spelling, "version", self.model)

    def refuse_unready(self, version: Any) -> None:
        """Raise InvalidInput if a version is not ready, or was archived."""
        is_archived = version.current_stage == "Archived"
        if is_archived or version.status not in {None, "READY"}:
            state = "archived" if is_archived else f"not ready: its status is {version.status}"
            raise InvalidInput(
                f"version {version.version} of {self.model} is {state}", remedy="promote another"
            )

    def tag(self, number: str, key: str, value: str) -> None:
        """Set a tag of a version."""
        with self.translating_errors(f"tag version {number} of {self.model}"):
            self.client.set_model_version_tag(self.model, number, key, value)

    def move(self, number: str) -> None:
        """Give the alias to a version, whoever has it."""
        with self.translating_errors(f"move the alias {self}"):
            self.client.set_registered_model_alias(self.model, self.name, number)

    def mark(self, version: Any) -> Mark | None:
        """Return the last promotion of a version to the alias, or its rollback, if any."""
        state = state_of(version.tags, f"{PROMOTION}.{self.name}{STATE}")
        return Mark(**state) if state else None

    def acceptance(self, version: Any) -> Mark | None:
        """Return the promotion that gave a version the alias; None after its rollback."""
        mark = self.mark(version)
        return None if mark is None or mark.is_rollback else mark

    def _acceptances(self) -> dict[str, Mark]:
        with self.translating_errors(f"list the versions of {self.model}"):
            versions = versions_of(self.client, self.model)
        marks = {str(version.version): self.acceptance(version) for version in versions}
        return {number: mark for number, mark in marks.items() if mark}

    def _outcome(self, run_id: str) -> str:
        """Return what became of the alias by the run of a promotion; "" if not known yet."""
        with self.translating_errors(f"read run {run_id}"):
            run = existing(self.client.get_run, run_id, codes=NOT_READ)
        return "erased" if run is None else str(run.data.tags.get(OUTCOME, ""))

    def note_on_rollback(self, version: Any) -> str:
        """Say where and why a version was rolled back; "" if it was not, or promoted since."""
        mark = self.mark(version)
        if mark is None or not mark.is_rollback:
            return ""
        return (
            f"version {version.version} was rolled back from {self} to version {mark.other} in "
            f"run {mark.run_id} ({mark.why})"
        )

    def ended_over(self, holder: str | None) -> frozenset[str]:
        """Return the runs of the promotions over a version that have ended."""
        runs = [mark.run_id for mark in self._acceptances().values() if mark.other == holder]
        return frozenset(run_id for run_id in runs if self._outcome(run_id))

    def promoted_from(self, holder: str) -> list[str]:
        """Return versions promoted over `holder` and not rolled back since.

        Versions that had the alias before the holder do not count: tags lead from each to the one
        before it. So no clock is asked, and the run of an acceptance only if its version is none of
        these.
        """
        accepted = self._acceptances()
        last = accepted.get(holder)
        earlier: set[str] = set()
        while last and last.other and last.other not in earlier:
            earlier.add(last.other)
            last = accepted.get(last.other)
        return [
            version
            for version, mark in accepted.items()
            if mark.other == holder
            and version not in earlier
            and self._outcome(mark.run_id) == "moved"
        ]

    def rivals(self, request: Request) -> list[str]:
        """Return other versions accepted over the same one by promotions that had not ended.

        A promoter tags its version before it moves the alias. So whoever moves it last sees the
        promoters that moved it meanwhile. A rollback tags after its move: it is seen from its own
        side, as it looks again after the tag. A promotion that had ended before this one began is
        history: the alias came back since, or never went.
        """
        return sorted(
            version
            for version, mark in self._acceptances().items()
            if mark.other == request.holder
            and version != request.version
            and mark.run_id not in request.ended
        )

    def write_record(self, request: Request, decided: Decided, experiment: str) -> TrackedRun:
        """Write the record to its own run; TrackingError if that fails: it stays on disk then."""
        target = Target(uri=self.uri, experiment_name=experiment)
        try:
            return deliver(
                Payload(target, _record_of(self, request, decided), now_ms(), run_context())
            )
        except TrackingError as error:
            raise TrackingError(
                f"the decision could not be recorded, so the alias {self} stays as it is: {error}\n"
                "Try again then: a record that is sent later moves nothing"
            ) from error

    def tag_version(self, request: Request, decided: Decided, run_id: str) -> None:
        """Set the tags that lead to the record, on the candidate or the version taken back.

        The version that gets the alias loses the tag of an earlier rejection, which would speak
        against it from then on.
        """
        promotion = f"{PROMOTION}.{self.name}"
        rejection = f"{REJECTION}.{self.name}"
        tagged = request.version
        other = request.holder
        why = decided.override
        words = "; ".join(filter(None, [f"{other or 'none'} in {run_id}", why, decided.claim]))
        if not decided.moves:
            self.tag(tagged, rejection, f"rejected against {words}")
            return
        words = f"{decided.verdict} over {words}"
        if decided.takes_back:
            tagged, other, why = str(other), tagged, decided.facts["why"]
            words = f"rolled back to {other} in {run_id}"
        mark = Mark(bool(decided.takes_back), other, run_id, why[:_LONGEST])
        self.tag(tagged, promotion + STATE, json.dumps(mark._asdict(), ensure_ascii=False))
        self.tag(tagged, promotion, param_text(words))
        with self.translating_errors(f"delete a tag of version {request.version} of {self.model}"):
            if rejection in self.client.get_model_version(self.model, request.version).tags:
                self.client.delete_model_version_tag(self.model, request.version, rejection)

    def note_outcome(self, run_id: str, outcome: str, words: str) -> None:
        """Tag the run with what became of the alias; only warn if that fails."""
        try:
            with self.translating_errors(f"tag run {run_id}"):
                self.client.set_tag(run_id, OUTCOME, outcome)
                self.client.set_tag(run_id, PROMOTION, param_text(words))
        except (TrackingError, ValueError) as error:
            warn(f"run {run_id} does not say what became of {self} ({words}): {error}")


@dataclass(frozen=True, eq=False)
class Decided:
    """What was decided on a candidate, and all that its record holds."""

    accepted: bool  # Whether the claim was shown, or nothing had to be
    reason: str  # Why, in a sentence or a few
    data: LoggedData | None  # The test content; None for a rollback, and if nothing was compared
    facts: dict[str, Any]  # The rule, the numbers and the runs, as JSON can hold them
    comparison: Comparison | None = None  # As in `Promotion`
    floors: pd.DataFrame | None = None
    decision: Decision | None = None
    takes_back: str | None = None  # The run of the promotion that a rollback takes back
    override: str = ""
    claim: str = ""  # What a gate was asked to show, of which baseline, and at which level; "" without a gate

    @property
    def moves(self) -> bool:
        """Whether the alias may move."""
        return self.accepted or self.override != ""

    @property
    def verdict(self) -> str:
        """The decision in a word or two."""
        if self.takes_back:
            return "rolled back"
        return "forced" if self.override else "accepted" if self.accepted else "rejected"


@dataclass(frozen=True)
class Request:
    """A request to move the alias: by whom, to which version, from which, and since when."""

    version: str  # The candidate
    holder: str | None  # The version that has the alias
    who: str  # The person or machine
    started: float  # When the promotion began, in seconds since the epoch
    # The runs of promotions over that version which had ended when this one began: they are no
    # rivals.
    ended: frozenset[str]


class Mark(NamedTuple):
    """A version's last promotion to an alias, or the rollback that took it back."""

    is_rollback: bool
    # The holder before; after a rollback, the holder since. The key of the tag's JSON.
    other: str | None
    run_id: str  # The run with the record
    why: str  # The override, or the reason of the rollback; "" for a plain acceptance


# Characters of a reason that a tag keeps: its JSON may have six for one. The record has all.
_LONGEST = 1000
# The terms of a rule that are parameters of the run.
_TERMS = ("measure", "claim", "margin", "alpha", "level", "baseline")


def _record_of(alias: Alias, request: Request, decided: Decided) -> Node:
    verdict = decided.verdict
    rule = decided.facts.get("rule", {})
    params = {
        "model": alias.model,
        "alias": alias.name,
        "version": request.version,
        "holder": request.holder or "none",
    }
    params |= {name: str(rule[name]) for name in _TERMS if name in rule}
    if decided.override:
        params["override"] = decided.override
    if decided.decision is not None:  # a decision is true if the version was accepted
        params["counted"] = decided.decision.counted
    params["decision"] = verdict
    content = json.dumps(_decision(alias, request, decided), indent=1).encode()
    name = f"{alias.model} v{request.version} for {alias.name}: {verdict}"
    node = record_node(
        RunRecord(
            name=name,
            params=params,
            comparison=decided.comparison,
            data=(decided.data,) if decided.data else (),
            artifacts={DECISION: content},
            started=request.started,
            seconds=time.time() - request.started,
        )
    )
    text = f"**{name}**\n\n{escape(decided.reason, quote=False)}\n\n{_runs_text(decided)}".strip()
    kind = "rollback" if decided.takes_back else "promotion"
    tags = {**node.tags, KIND: kind, HEADLINE: param_text(f"{verdict}: {decided.reason}")}
    return replace(node, tags=tags, sections={"promotion": text, **node.sections})


def _decision(alias: Alias, request: Request, decided: Decided) -> dict[str, Any]:
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(request.started))
    data = decided.data and {"name": decided.data.name, "digest": decided.data.digest}
    return {
        "format": FORMAT,
        "decision": decided.verdict,
        "reason": decided.reason,
        "model": alias.model,
        "alias": alias.name,
        "version": request.version,
        "alias_before": request.holder,
        "who": request.who,
        "time": began,
        "data": data,
        "takes_back": decided.takes_back,
        "rankeval": rankeval.__version__,
        **decided.facts,
    }


def _runs_text(decided: Decided) -> str:
    names = {
        "candidate_run": "Evaluation of the candidate",
        "holder_run": "Evaluation of the version in use",
    }
    return "\n".join(
        f"* {words}: run `{decided.facts[key]}`"
        for key, words in names.items()
        if decided.facts.get(key) is not None
    )
