"""Promote a version: decide, record, move the alias, and look again. Or roll it back.

MLflow sets an alias without asking which version has it: there is no compare-and-set. So the order
of the steps does what can be done::

    1 read the alias -> 2 decide -> 3 write the record -> 4 tag the version -> 5 read the alias again
      -> 6 move it -> 7 read it once more, and look for versions accepted over the same one

A promoter that is killed between two steps leaves at most a record of a move that did not take
place. So an alias that only promoters move is never with a version without a record. Two promoters
on machines that do not share a lock may both pass step 5 before either moves. Then the alias is
with the one that moved last, which was compared with the version before both, and not with the
other one. Step 7 tells the last one so.

A rollback tags the version that it takes back after its move, so that one that is killed before can
be made again. If it meets a promotion between the promoter's steps 5 and 6, the promoter moves the
alias on and is not told; the rollback looks again, finds the alias elsewhere, and says so.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import require
from rankeval._display import Displayed, View, view_of
from rankeval._secrets import bare
from rankeval._visible import escaping
from rankeval.comparison import Comparison
from rankeval.errors import InvalidInput, RankevalError, TrackingError
from rankeval.guard import Decision, Gate
from rankeval.guard.checks import check_text
from rankeval.ledger.ledger import WHO
from rankeval.measures import Measure
from rankeval.measures import measure as parsed
from rankeval.render.tables import Table
from rankeval.shelf.record import checked_word
from rankeval.tracking import TrackedRun
from rankeval_mlflow.delivery.connection import (
    connected,
    current_store,
    run_context,
    translating_errors,
)
from rankeval_mlflow.delivery.spool import alone
from rankeval_mlflow.promotion.counting import note_on_last_holder
from rankeval_mlflow.promotion.deciding import (
    Floors,
    OneSided,
    Rule,
    by_evaluations,
    by_gate,
    untested,
)
from rankeval_mlflow.promotion.registry import (
    Alias,
    Decided,
    Request,
    checked_alias,
)
from rankeval_mlflow.run_names import name_hash

Outcome = Literal["moved", "in place", "rejected", "overtaken", "would move"]

_WORDS: dict[str, str] = {
    "moved": "moved from {holder} to version {version}",
    "in place": "version {version} has it already",
    "rejected": "stays with {holder}; version {version} is rejected",
    "overtaken": "not moved to version {version}, although it was accepted",
    "would move": "would move from {holder} to version {version}",
}


_DRY: dict[bool, Outcome] = {True: "would move", False: "rejected"}


# Seconds to wait for another promoter on this machine: it may have to load two models.
_PATIENCE = 900.0


@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Promotion(Displayed):
    """The result of `promote` or `rollback`. It is true if the alias is with the version, or would be after a dry run.

    Attributes
    ----------
    model, alias, version : str
        The registered model, the alias, and the version that asked for it.
    outcome : {"moved", "in place", "rejected", "overtaken", "would move"}
        "moved": the alias was moved to the version; the reason says if it could not be read again. "in place": it was
        there before, and nothing was decided. "rejected": the
        claim or a floor was not shown. "overtaken": the version was accepted, but another promoter moved the alias
        meanwhile. "would move": accepted in a dry run, which uses a decision as any other. An override moves, or would
        move, the alias although the claim was not shown.
    reason : str
        Why, in a sentence or a few.
    alias_before : str or None
        The version that had the alias; None if none had it.
    comparison : Comparison or None
        The candidate against that version; None if nothing was compared, or a gate with a budget
        decided.
    floors : DataFrame or None
        A row per slice with a floor: slice, n_queries, mean_holder, mean_candidate, gain, gain_low
        (its one-sided lower limit), floor, p_value, passes_if_equal (the floor that an equal
        candidate passes four times in five; nan for tests whose power is not that of Student's t)
        and passed.
    decision : Decision or None
        Which decision of the budget it is (``counted``, ``remaining``), by a gate or by
        evaluations; None if nothing was compared.
    run_id : str or None
        The run with the record; None if nothing was written.
    where : str
        How to look at the record; "" without one.
    override : str
        "override by WHO: REASON" if the alias was to move although the claim was not shown; ""
        otherwise.
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
    override: str = ""

    @property
    def accepted(self) -> bool:
        """Whether nothing spoke against the version, and nobody overrode that."""
        return self.outcome != "rejected" and not self.override

    @property
    def moved(self) -> bool:
        """Whether the alias was moved to the version, and was not seen elsewhere when it was read again."""
        return self.outcome == "moved"

    def __bool__(self) -> bool:
        return self.outcome in {"moved", "in place", "would move"}

    @property
    def words(self) -> str:
        """The outcome and the reason in a few sentences."""
        holder = _named_version(self.alias_before)
        words = _WORDS[self.outcome].format(version=self.version, holder=holder)
        return f"{self.model}@{self.alias}: {words}. {self.reason}"

    def _view(self) -> View:
        tables = [] if self.floors is None else [Table(self.floors)]
        if self.comparison is None:
            return View([self.words], tables)
        compared = view_of(self.comparison)
        sentences = [self.words, *compared.sentences]
        return View(sentences, [*tables, *compared.tables], compared.notes)


class _NotKnown(TrackingError):
    """Nobody can say whether the alias moved."""


@dataclass(frozen=True)
class Attempt:
    """One attempt to move an alias."""

    alias: Alias  # The alias
    who: str  # The person or machine
    experiment: str  # The name of the experiment that gets the record
    # The person who overrides the decision, and the reason; empty without an override.
    override: Mapping[str, str]

    def run(
        self,
        version: Any,
        decide: Callable[[Alias, str, str | None], Decided],
        *,
        first: bool,
        again: bool,
        dry_run: bool,
    ) -> Promotion:
        """Take the steps of `promote`; `decide` gets the candidate and the version in use, if any."""
        started = time.time()
        holder = self.alias.holder()
        candidate = self.alias.version(version)
        number = str(candidate.version)
        if number == holder:
            reason = f"Nothing was decided, and nothing written.{_note_on_override(self.alias, candidate)}"
            return Promotion(self.alias.model, self.alias.name, number, "in place", reason, holder)
        self.alias.refuse_unready(candidate)
        rollback_note = self.alias.note_on_rollback(candidate)
        if rollback_note and not again:
            raise InvalidInput(
                rollback_note,
                argument="again",
                remedy="if it may have the alias all the same: again=True",
            )
        override_note = ""
        if holder is None:
            self._refuse_first(first=first)
        else:
            override_note = _note_on_override(self.alias, self.alias.version(holder))
        request = Request(number, holder, self.who, started, self.alias.ended_over(holder))
        decided = decide(self.alias, number, holder)
        again_note = f" Asked with again=True: {rollback_note}." if rollback_note else ""
        reason = decided.reason + again_note + override_note
        decided = self._with_override(replace(decided, reason=reason))
        if dry_run:
            return self._dry_result(request, decided)
        return self._record_and_move(request, decided)

    def _refuse_first(self, *, first: bool) -> None:
        """Refuse an alias that no version has, without `first` or if it was deleted."""
        last = note_on_last_holder(self.alias)
        aliases = sorted(self.alias.aliases())
        if first and (self.override or not last):
            return
        known = "it has no alias at all"
        remedy = (
            "first=True gives it to this version; a gate compares it with its own baseline first"
        )
        if aliases:
            known = f"{self.alias.model} has the aliases {', '.join(aliases)}"
        if last:
            known = f"{last}, and it was deleted since"
            remedy = "give it back to that version, to compare with it; or move it on record, with first=True, "
            remedy += 'override="why" and override_by="who"'
        raise InvalidInput(
            f"no version of {self.alias.model} has the alias {self.alias.name!r} ({known}), so no version is "
            "there to compare with",
            argument="first",
            remedy=remedy,
        )

    def _with_override(self, decided: Decided) -> Decided:
        """Return the decision with the override of this attempt, unless a test made it needless."""
        if not self.override:
            return decided
        override = "override by {by}: {reason}".format(**self.override)
        if decided.accepted and decided.decision is not None:
            return replace(decided, reason=f"{decided.reason} This needed no {override}.")
        reason = f"This is an {override}. {decided.reason}"
        facts = {**decided.facts, "override": self.override}
        return replace(decided, accepted=False, override=override, reason=reason, facts=facts)

    def roll_back(self, reason: str) -> Promotion:
        """Take the steps of `rollback`, whose decision is the reason of the caller."""
        started = time.time()
        holder = self.alias.holder()
        promotion = holder and self.alias.acceptance(self.alias.version(holder))
        why = ""
        if holder is None:
            why = "no version has it"
        elif after := self.alias.promoted_from(holder):
            moved = f"it was promoted from {_named_version(holder)} to version {after[0]}"
            why = f"{moved}, and somebody else moved it back"
            why += ", or by a rollback that stopped half way"
        elif not promotion:
            why = f"no recorded promotion gave it to version {holder}"
        elif not promotion.other:
            why = f"version {holder} was the first to have it"
        if why:
            raise InvalidInput(
                f"{self.alias} cannot be rolled back: {why}", remedy="set the alias yourself"
            )
        assert promotion
        assert promotion.other  # else there was a reason
        self.alias.refuse_unready(self.alias.version(promotion.other))
        why = reason.strip()
        decided = Decided(
            True, f"Rolled back: {why}", None, {"why": why}, takes_back=promotion.run_id
        )
        ended = self.alias.ended_over(holder)
        request = Request(promotion.other, holder, self.who, started, ended)
        return self._record_and_move(request, decided)

    def _dry_result(self, request: Request, decided: Decided) -> Promotion:
        """Return the result of a dry run; a decision that used the budget is recorded."""
        outcome = _DRY[decided.moves]
        run = None
        if decided.decision is not None and decided.decision.is_new:
            run = self.alias.write_record(request, decided, self.experiment)
            self.alias.note_outcome(run.run_id, outcome, f"dry run: {outcome}")
        return self._result(request, decided, outcome, run=run)

    def _record_and_move(self, request: Request, decided: Decided) -> Promotion:
        tracked = self.alias.write_record(request, decided, self.experiment)
        outcome, words = self._tag_and_move(request, decided, tracked.run_id)
        return self._result(request, decided, outcome, words, tracked)

    def _tag_and_move(self, request: Request, decided: Decided, run_id: str) -> tuple[Outcome, str]:
        """Tag the version and move the alias; the record says what was done, after an error too."""
        try:
            if not decided.takes_back:
                self.alias.tag_version(request, decided, run_id)
            outcome: Outcome = "rejected"
            words = ""
            if decided.moves:
                outcome, words = self._move_if_unchanged(request, decided, run_id)
        except RankevalError as error:
            became = "unknown whether it moved" if isinstance(error, _NotKnown) else "not moved"
            self.alias.note_outcome(run_id, became, f"{became}: {error}")
            raise TrackingError(f"{error}. The decision is recorded in run {run_id}") from error
        holder = request.holder or "none"
        noted = {
            "moved": f"moved from {holder} to {request.version}",
            "rejected": f"stays with {holder}: rejected",
        }
        self.alias.note_outcome(run_id, outcome, f"{noted.get(outcome, outcome)} {words}".strip())
        return outcome, words

    def _move_if_unchanged(
        self, request: Request, decided: Decided, run_id: str
    ) -> tuple[Outcome, str]:
        holder = self.alias.holder()
        if holder != request.holder:
            remedy = "Promote again to compare with it."
            if decided.takes_back:
                remedy = "Roll back again if it must go too."
            return "overtaken", f"Meanwhile the alias went to {_named_version(holder)}. {remedy}"
        self._set_alias(request.version)
        try:
            if decided.takes_back:  # not before: a rollback that is killed here can be made again
                self.alias.tag_version(request, decided, run_id)
            return self._check_after_move(request)
        except RankevalError as error:  # the alias moved, though its versions cannot be read now
            return "moved", f"Beware: whether another promoter moved it since is not known: {error}"

    def _check_after_move(self, request: Request) -> tuple[Outcome, str]:
        holder = self.alias.holder()
        if holder != request.version:
            words = f"It was moved, and then somebody else moved it to {_named_version(holder)}."
            return "overtaken", words
        rivals = self.alias.rivals(request)
        if not rivals:
            return "moved", ""
        return "moved", (
            f"Beware: version {' and '.join(rivals)} of {self.alias.model} was accepted over "
            f"{_named_version(request.holder)} too, and was not compared with this one."
        )

    def _set_alias(self, version: str) -> None:
        try:
            self.alias.move(version)
        except TrackingError as lost:
            # The answer may be lost, and not the move: look which version has the alias.
            try:
                holder = self.alias.holder()
            except RankevalError as error:
                raise _NotKnown(
                    f"{lost}. Whether {self.alias} moved is not known, since it cannot be read again ({error})",
                    remedy="look which version has it",
                ) from lost
            if holder != version:
                raise

    def _result(
        self,
        request: Request,
        decided: Decided,
        outcome: Outcome,
        words: str = "",
        run: TrackedRun | None = None,
    ) -> Promotion:
        run_id, where = (None, "") if run is None else (run.run_id, run.where)
        return Promotion(
            self.alias.model,
            self.alias.name,
            request.version,
            outcome,
            f"{decided.reason} {words}".strip(),
            request.holder,
            decided.comparison,
            decided.floors,
            decided.decision,
            run_id,
            where,
            decided.override,
        )


def _named_version(version: str | None) -> str:
    return "no version" if version is None else f"version {version}"


def _note_on_override(alias: Alias, version: Any) -> str:
    """Say that a version got the alias by an override; "" if it did not."""
    accepted = alias.acceptance(version)
    if accepted is None or not accepted.why:
        return ""
    return f" Version {version.version} got the alias by {accepted.why}."


@explained
def promote(
    name: str,
    version: Any,
    alias: str = "champion",
    measure: str | Measure | None = None,
    margin: float = 0.0,
    *,
    claim: OneSided = "better",
    alpha: float = 0.05,
    budget: int = 20,
    test: str = "t",
    slices: Any = None,
    floors: Floors | None = None,
    groups: Any = None,
    gate: Gate | None = None,
    candidate: Any = None,
    holder: Any = None,
    role: str = "test",
    run_id: str | list[str] | None = None,
    first: bool = False,
    again: bool = False,
    override: str | None = None,
    override_by: str | None = None,
    dry_run: bool = False,
    experiment: str | None = None,
    who: str | None = None,
    uri: str | None = None,
) -> Promotion:
    """Move an alias of a registered model to a version, if the version is shown to be better than the one in use.

    Both versions need an evaluation on the same frozen content (`log` with ``model_version=``), or
    a gate of the guard. If evaluations of a version disagree, one must be named. The decision is
    written to a run of its own before the alias moves, and the version gets a short tag that leads
    to it. MLflow cannot set an alias only if nobody else did meanwhile, so it is read before and
    after; of two promoters on one machine, the second waits.

    Parameters
    ----------
    name : str
        The registered model.
    version : int, str or ModelVersion
        The candidate: ``7``, ``"latest"``, ``"models:/ranker/7"`` or
        ``"models:/ranker@challenger"``.
    alias : str, default "champion"
        The alias.
    measure : str or Measure
        The measure that decides; a gate has its own. An override without a measure tests nothing.
    margin : float, default 0
        Of the claim, in units of the measure; "not_worse" needs one.
    claim : {"better", "not_worse"}, default "better"
        What must be shown over all queries: a gain above the margin, or that no loss reaches it.
    alpha : float, default 0.05
        One-sided level of all decisions for this alias on the same queries together.
    budget : int, default 20
        The number of these decisions. Each is tested at alpha / budget, and no more are made. 1 is
        a single release. A gate counts its decisions in its ledger. Without a gate, the recorded
        promotions to this alias in this store are counted, whatever was asked, and the terms stay
        as they were. Other servers, erased runs and other tools are not known. The same request
        again has the recorded answer, for free.
    test : str, default "t"
        The test, as in `rankeval.compare`.
    slices : Series, mapping, DataFrame or str, optional
        An attribute of the queries, as in ``Evaluation.slices``.
    floors : float or mapping of value to float, optional
        The loss that must be ruled out on each slice, or on those named: "not worse" by that much
        must be shown there too, at the same level.
    groups : Series or mapping by query id, DataFrame or array, optional
        The group of each query, such as its conversation, as in `rankeval.compare`: the claim and
        the floors are then tested over groups. The record says how many there are.
    gate : Gate, optional
        A gate of the guard that decides by its own terms, within its budget. It shows only whether
        it accepts.
    candidate, holder : array or Run, optional
        For a gate: scores or rankings of the two versions. By default their models predict the
        registered rows.
    role : str, default "test"
        The role of the evaluations.
    run_id : str or list of str, optional
        The run of the evaluation that decides, if a version has several that differ by more than
        1e-6 on a query; of both versions, if both have. The record says that it was named. Of equal
        evaluations the first decides.
    first : bool
        Whether the alias may be given without a comparison if no version has it. A gate compares
        with its baseline. If a version had it by the records, the alias was deleted since: that is
        an error that names the version, unless there is an override.
    again : bool
        Whether a version that was rolled back from this alias may have it again. The record names
        the rollback.
    override : str, optional
        Move the alias although the claim is not shown, for this reason. A decision that was made
        counts; without a gate and a measure nothing is tested. The record, the tag and the result
        say "override by WHO: REASON".
    override_by : str, optional
        Who answers for that; needed with ``override``.
    dry_run : bool
        Decide, and leave the alias and the version alone. The decision is recorded and counts;
        promoting the version then has the same answer, for free. Refused for a gate.
    experiment : str, optional
        The name of the experiment for the record, which is created if it does not exist; by default
        ``"<name> promotions"``, apart from the candidates. Databricks needs a path.
    who : str, optional
        The person or machine, for the record; by default ``RANKEVAL_WHO``, or the user as MLflow
        knows it.
    uri : str, optional
        The tracking store; by default MLflow's own setting.

    Returns
    -------
    Promotion
        True if the alias is with the version now, or would be after a dry run.

    Raises
    ------
    InvalidInput
        If the version, its model or its evaluation does not exist, evaluations of a version
        disagree and none is named, the version is archived, nobody has the alias and ``first`` is
        not set, or it is set and somebody had it, the version was rolled back from it and ``again``
        is not set, an override says not who or why, or an argument is out of range.
    ConventionMismatch, QueryIdError
        If the two evaluations are not of the same content by the same rules.
    LedgerError
        If the gate cannot decide, the budget is spent, or earlier decisions on these queries have
        other terms.
    TrackingError
        If the store cannot be reached, does not let this user write, or has a record of a promotion
        that cannot be read and so cannot be counted. The message says what was done before.

    Examples
    --------
    >>> import rankeval as rk
    >>> import rankeval_mlflow as rkm
    >>> from mlflow import MlflowClient
    >>> client = MlflowClient()
    >>> model = client.create_registered_model("ranker")
    >>> truth = {f"q{i}": {"a": 1, "b": 0} for i in range(40)}
    >>> for share in (0.5, 1.0):  # of the queries that a version ranks right
    ...     right = {q: {"a": 1, "b": 2 if i >= 40 * share else 0} for i, q in enumerate(truth)}
    ...     version = client.create_model_version("ranker", "s3://models/ranker")
    ...     run = rkm.log(rk.evaluate(truth, right, measures="RR"), role="test", model_version=version)
    >>> promote("ranker", 1, measure="RR", first=True).moved
    True
    >>> print(promote("ranker", 2, measure="RR"))
    ranker@champion: moved from version 1 to version 2. ranker v2 beats ranker v1 by
    +0.2500 RR...
    >>> int(client.get_model_version_by_alias("ranker", "champion").version)
    2
    """
    checked_word(role)
    overriding = _checked_override(override, override_by)
    rankings = {"candidate": candidate, "holder": holder}
    own = {
        "floors": floors,
        "slices": slices,
        "dry_run": dry_run,
        "run_id": run_id,
        "groups": groups,
    }
    decide: Callable[[Alias, str, str | None], Decided] = untested
    if gate is not None:
        _refuse_arguments(own, "a gate counts its decisions and shows one bit: leave it out")
        terms = {
            "measure": measure,
            "margin": margin,
            "claim": claim,
            "alpha": alpha,
            "budget": budget,
        }
        _refuse_terms_beside_gate(gate, terms)
        decide = partial(by_gate, gate=gate, role=role, systems=(candidate, holder))
    elif measure is not None:
        _refuse_arguments(
            rankings, "it is a ranking for a gate: give gate= too, or log evaluations"
        )
        run_ids = run_id if isinstance(run_id, list | tuple) else [] if run_id is None else [run_id]
        rule = Rule(
            measure, claim, margin, alpha, test, slices, floors, budget, tuple(run_ids), groups
        )
        decide = partial(by_evaluations, rule=rule, role=role)
    elif overriding:
        _refuse_arguments(
            own | rankings,
            "an override without a measure tests nothing: name one, or leave this out",
        )
    else:
        raise InvalidInput(
            'name the measure that decides, such as measure="nDCG@10"', argument="measure"
        )
    checked_alias(alias)
    with _attempt(name, alias, who, experiment, uri, overriding) as attempt:
        return attempt.run(version, decide, first=first, again=again, dry_run=dry_run)


@explained
def rollback(
    name: str,
    alias: str = "champion",
    *,
    reason: str,
    experiment: str | None = None,
    who: str | None = None,
    uri: str | None = None,
) -> Promotion:
    """Give an alias back to the version that had it before the last recorded promotion.

    No test is asked. A rollback waits for a promotion that runs on this machine. The reason is
    written to a run of its own before the alias moves, and the tag of the version that is taken
    back leads to it. The version that has the alias again loses the tag of an earlier rejection.
    The next rollback takes back the promotion before that one.

    Parameters
    ----------
    name : str
        The registered model.
    alias : str, default "champion"
        The alias.
    reason : str
        Why, for the record.
    experiment, who, uri
        As in `promote`.

    Returns
    -------
    Promotion
        True if the alias is with the earlier version now.

    Raises
    ------
    InvalidInput
        If there is no recorded promotion or no version before it, the alias went elsewhere since by
        another hand, the earlier version is deleted or archived, or the reason is empty.
    TrackingError
        If the store cannot be reached, or does not let this user write. The message says what was
        done before.

    Examples
    --------
    >>> import rankeval as rk
    >>> import rankeval_mlflow as rkm
    >>> from mlflow import MlflowClient
    >>> client = MlflowClient()
    >>> model = client.create_registered_model("reranker")
    >>> truth = {f"q{i}": {"a": 1, "b": 0} for i in range(40)}
    >>> for number, share in enumerate((0.5, 1.0), start=1):  # of the queries that a version ranks right
    ...     right = {q: {"a": 1, "b": 2 if i >= 40 * share else 0} for i, q in enumerate(truth)}
    ...     version = client.create_model_version("reranker", "s3://models/ranker")
    ...     run = rkm.log(rk.evaluate(truth, right, measures="RR"), role="test", model_version=version)
    ...     done = rkm.promote("reranker", number, measure="RR", first=True)
    >>> print(rollback("reranker", reason="empty pages"))
    reranker@champion: moved from version 2 to version 1. Rolled back: empty pages
    """
    checked_alias(alias)
    require(
        isinstance(reason, str) and reason.strip() != "",
        "reason",
        reason,
        "a sentence for the record",
    )
    with _attempt(name, alias, who, experiment, uri, {}) as attempt:
        return attempt.roll_back(reason)


def _checked_override(reason: Any, who: Any) -> dict[str, str]:
    """Return who overrides and why, each on one line; nothing if nobody does."""
    if reason is None and who is None:
        return {}
    check_text("override", reason, "why the alias moves without the claim")
    check_text("override_by", who, "who answers for the override")
    return {"by": " ".join(who.split()), "reason": " ".join(reason.split()).rstrip(".")}


@contextlib.contextmanager
def _attempt(
    name: str,
    alias: str,
    who: str | None,
    experiment: str | None,
    uri: str | None,
    override: Mapping[str, str],
) -> Iterator[Attempt]:
    promoter = who or os.environ.get(WHO) or run_context().get("mlflow.user", "unknown")
    with contextlib.ExitStack() as stack:
        where = stack.enter_context(current_store(uri))  # a gate loads models from there
        stack.enter_context(translating_errors(where, "answer"))
        lock = f"promotion-{name_hash(f'{where} {name} {alias}')}"
        try:
            stack.enter_context(alone(lock, _PATIENCE))
        except TimeoutError as error:
            raise TrackingError(
                f"another promoter of {name}@{alias} at {bare(where)} is still at work: {error}"
            ) from error
        named = Alias(stack.enter_context(connected(where)), where, name, alias)
        yield Attempt(named, promoter, experiment or f"{name} promotions", override)


def _refuse_arguments(arguments: Mapping[str, Any], why: str) -> None:
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise InvalidInput(why, argument=name)


def _refuse_terms_beside_gate(gate: Any, arguments: Mapping[str, Any]) -> None:
    require(isinstance(gate, Gate), "gate", gate, "the result of guard.gate")
    defaults = {"measure": None, "margin": 0, "claim": "better", "alpha": 0.05, "budget": 20}
    for name, value in arguments.items():
        term = getattr(gate.terms, name)
        same = value
        if name == "measure" and value is not None:
            same = str(parsed(value, gate.terms.convention))
        expected = f"{term!r}, by which gate {gate.name!r} decides: leave it out"
        require(same in (defaults[name], term), name, value, expected)
