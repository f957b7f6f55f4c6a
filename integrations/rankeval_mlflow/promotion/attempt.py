"""Promote a version: decide, record, move the alias, and look again.

MLflow sets an alias without asking which version has it: there is no compare-and-set. So the order of the steps does
what can be done::

    1 read the alias -> 2 decide -> 3 write the record -> 4 tag the version -> 5 read the alias again
      -> 6 move it -> 7 read it once more, and look for versions accepted over the same one

A promoter that is killed between two steps leaves at most a record of a move that did not take place. So an alias that
only promoters move is never with a version without a record. Two promoters on machines that do not share a lock may
both pass step 5 before either moves. Then the alias is with the one that moved last, which was compared with the
version before both, and not with the other one. Step 7 tells the last one so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from rankeval.errors import InvalidInput, RankevalError, TrackingError
from rankeval_mlflow.promotion import record
from rankeval_mlflow.promotion.deciding import Decided
from rankeval_mlflow.promotion.registry import Alias, asking

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison
    from rankeval.guard.gate.decisions import Decision


Outcome = Literal["moved", "in place", "rejected", "overtaken", "would move"]

_WORDS: dict[str, str] = {
    "moved": "moved from {before} to version {version}",
    "in place": "version {version} has it already",
    "rejected": "stays with {before}; version {version} is rejected",
    "overtaken": "not moved to version {version}, although it was accepted",
    "would move": "would move from {before} to version {version}",
}


@dataclass(frozen=True, eq=False)
class Promotion:
    """The result of `promote`. It is true if the alias is with the version, or would be after a dry run.

    Attributes
    ----------
    model, alias, version : str
        The registered model, the alias, and the version that asked for it.
    outcome : {"moved", "in place", "rejected", "overtaken", "would move"}
        "moved": the alias was moved to the version; the reason says if it could not be read again. "in place": it was
        there before, and nothing was decided. "rejected": the
        claim or a floor was not shown. "overtaken": the version was accepted, but another promoter moved the alias
        meanwhile. "would move": accepted in a dry run.
    reason : str
        Why, in a sentence or a few.
    alias_before : str or None
        The version that had the alias; None if none had it.
    comparison : Comparison or None
        The candidate against that version; None if nothing was compared, or a gate with a budget decided.
    floors : DataFrame or None
        A row per slice with a floor: slice, n_queries, mean_holder, mean_candidate, gain, gain_low (its one-sided
        lower limit), floor, p_value, passes_if_equal (the floor that an equal candidate passes four times in five; nan
        for tests whose power is not that of Student's t) and passed.
    decision : Decision or None
        The answer of the gate, if one decided.
    run_id : str or None
        The run with the record; None if nothing was written.
    where : str
        How to look at the record; "" without one.
    """

    model: str
    alias: str
    version: str
    outcome: Outcome
    reason: str
    alias_before: str | None
    comparison: Comparison | None = None
    floors: pd.DataFrame | None = None
    decision: Decision | None = None
    run_id: str | None = None
    where: str = ""

    @property
    def accepted(self) -> bool:
        """Whether nothing spoke against the version."""
        return self.outcome != "rejected"

    @property
    def moved(self) -> bool:
        """Whether the alias was moved to the version, and was not seen elsewhere when it was read again."""
        return self.outcome == "moved"

    def __bool__(self) -> bool:
        return self.outcome in {"moved", "in place", "would move"}

    def __str__(self) -> str:
        before = "no version" if self.alias_before is None else f"version {self.alias_before}"
        said = _WORDS[self.outcome].format(version=self.version, before=before)
        return f"{self.model}@{self.alias}: {said}. {self.reason}"

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(str(self))}</p>"]
        if self.floors is not None:
            parts.append(self.floors.to_html(index=False, escape=True))
        if self.comparison is not None:
            parts.append(self.comparison._repr_html_())
        return "".join(parts)


class _NotKnown(TrackingError):
    """Nobody can say whether the alias moved."""


@dataclass(frozen=True)
class Attempt:
    """One attempt to move an alias.

    Attributes
    ----------
    alias : Alias
        The alias.
    decide : callable
        Decides on the candidate and the version in use; None for the latter if there is none.
    who : str
        The person or machine.
    """

    alias: Alias
    decide: Callable[[Alias, str, str | None], Decided]
    who: str

    def made(self, version: Any, *, first: bool, dry_run: bool) -> Promotion:
        """Take the steps; the arguments are those of `promote`."""
        started = time.time()
        before = self.alias.holder()
        number = self.alias.number_of(version)
        if number == before:
            said = "Nothing was decided, and nothing written."
            return Promotion(self.alias.model, self.alias.name, number, "in place", said, before)
        candidate = self.alias.version(number)
        number = str(candidate.version)
        if before is None and not first:
            raise self._no_holder()
        question = record.Question(number, before, self.who, started)
        decided = self.decide(self.alias, number, before)
        if dry_run:
            return self._told(question, decided, "would move" if decided.accepted else "rejected")
        tracked = record.write(self.alias, question, decided, self._experiment(decided, candidate))
        outcome, said = self._moved(question, decided, tracked.run_id)
        return self._told(question, decided, outcome, said, run_id=tracked.run_id, where=tracked.where)

    def _no_holder(self) -> InvalidInput:
        others = self.alias.others()
        known = f"{self.alias.model} has the aliases {', '.join(others)}" if others else "it has no alias at all"
        return InvalidInput(
            f"no version of {self.alias.model} has the alias {self.alias.name!r} ({known}), so there is none to "
            "compare with",
            argument="first",
            remedy="to give it to this version without a comparison: first=True",
        )

    def _experiment(self, decided: Decided, candidate: Any) -> str:
        """Return the experiment of the record: that of the evaluation, else that of the run which made the version."""
        run_id = decided.facts.get("candidate_run") or candidate.run_id
        with asking(self.alias.uri, f"read run {run_id}"):
            return str(self.alias.client.get_run(run_id).info.experiment_id) if run_id else "0"

    def _moved(self, question: record.Question, decided: Decided, run_id: str) -> tuple[Outcome, str]:
        """Tag the version and move the alias; whatever happens, the record says what became of it."""
        try:
            record.tag_version(self.alias, question, run_id, accepted=decided.accepted)
            outcome, said = self._move(question) if decided.accepted else ("rejected", "")
        except RankevalError as error:
            became = "unknown whether it moved" if isinstance(error, _NotKnown) else "not moved"
            record.note_outcome(self.alias, run_id, f"{became}: {error}")
            raise TrackingError(f"{error}. The decision is recorded in run {run_id}") from error
        before = question.before or "none"
        noted = {"moved": f"moved from {before} to {question.version}", "rejected": f"stays with {before}: rejected"}
        record.note_outcome(self.alias, run_id, " ".join([noted.get(outcome, outcome), said]).strip())
        return outcome, said

    def _move(self, question: record.Question) -> tuple[Outcome, str]:
        now = self.alias.holder()
        if now != question.before:
            return "overtaken", f"Meanwhile the alias went to {_named_version(now)}. Promote again to compare with it."
        self._set(question.version)
        try:
            return self._looked_again(question)
        except RankevalError as error:  # it moved, whatever cannot be read now
            return "moved", f"Beware: whether another promoter moved it since could not be read: {error}"

    def _looked_again(self, question: record.Question) -> tuple[Outcome, str]:
        """Read the alias after the move, and look for versions accepted over the same one."""
        now = self.alias.holder()
        if now != question.version:
            return "overtaken", f"It was moved, and then went to {_named_version(now)} by another hand."
        others = record.rivals(self.alias, question)
        if not others:
            return "moved", ""
        return "moved", (
            f"Beware: version {' and '.join(others)} of {self.alias.model} was accepted over "
            f"{_named_version(question.before)} too, and was not compared with this one."
        )

    def _set(self, version: str) -> None:
        """Move the alias; if the answer is lost, look whether it moved."""
        try:
            self.alias.move(version)
        except TrackingError as error:
            if self._reread(error) != version:
                raise

    def _reread(self, lost: TrackingError) -> str | None:
        """Return the version that has the alias after an answer was lost; raise if that cannot be read either."""
        try:
            return self.alias.holder()
        except RankevalError as error:
            raise _NotKnown(
                f"{lost}. Whether {self.alias} moved is not known, since it cannot be read again ({error}): look which "
                "version has it"
            ) from lost

    def _told(
        self, question: record.Question, decided: Decided, outcome: Outcome, said: str = "", **logged: str
    ) -> Promotion:
        return Promotion(
            model=self.alias.model,
            alias=self.alias.name,
            version=question.version,
            outcome=outcome,
            reason=f"{decided.reason} {said}".strip(),
            alias_before=question.before,
            comparison=decided.comparison,
            floors=decided.floors,
            decision=decided.decision,
            **logged,
        )


def _named_version(version: str | None) -> str:
    return "no version" if version is None else f"version {version}"
