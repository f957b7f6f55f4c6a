"""The call that promotes: check the arguments, choose who decides, let one promoter at a time at an alias."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from rankeval._checks import shown
from rankeval.errors import InvalidInput, TrackingError
from rankeval.ledger.ledger import WHO
from rankeval_mlflow.delivery.addresses import masked, run_context, store
from rankeval_mlflow.delivery.connection import connected
from rankeval_mlflow.delivery.spool import held, spool_directory
from rankeval_mlflow.names import checked_role, sha256
from rankeval_mlflow.promotion.attempt import Attempt, Promotion
from rankeval_mlflow.promotion.deciding import Decided, by_evaluations, by_gate
from rankeval_mlflow.promotion.registry import Alias, asking, checked_alias
from rankeval_mlflow.promotion.rules import Floors, OneSided, Rule

if TYPE_CHECKING:
    from rankeval.guard.gate.gate import Gate
    from rankeval.measures import Measure

_PATIENCE = 900.0
"""Seconds to wait for another promoter on this machine: it may have to load two models."""


def promote(
    name: str,
    version: Any,
    alias: str = "champion",
    measure: str | Measure | None = None,
    margin: float = 0.0,
    *,
    claim: OneSided = "better",
    alpha: float = 0.025,
    test: str = "t",
    slices: Any = None,
    floors: Floors | None = None,
    gate: Gate | None = None,
    candidate: Any = None,
    holder: Any = None,
    role: str = "test",
    first: bool = False,
    dry_run: bool = False,
    who: str | None = None,
    uri: str | None = None,
) -> Promotion:
    """Move an alias of a registered model to a version, if the version is shown to be better than the one in use.

    Both versions need an evaluation on the same frozen content (`log_evaluation` with ``model_version=``), or a gate
    of the guard. The decision is written to a run of its own before the alias moves, and the version gets a short tag
    that leads to it. MLflow cannot set an alias only if nobody else did meanwhile, so it is read before and after; of
    two promoters on one machine, the second waits.

    Parameters
    ----------
    name : str
        The registered model.
    version : int, str or ModelVersion
        The candidate: ``7``, ``"latest"``, ``"models:/ranker/7"`` or ``"models:/ranker@challenger"``.
    alias : str, default "champion"
        The alias.
    measure : str or Measure
        The measure that decides; a gate has its own.
    margin : float, default 0
        Of the claim, in units of the measure; "not_worse" needs one.
    claim : {"better", "not_worse"}, default "better"
        What must be shown over all queries: a gain above the margin, or that no loss reaches it.
    alpha : float, default 0.025
        One-sided level of each test.
    test : str, default "t"
        The test, as in `rankeval.compare`.
    slices : Series, mapping, DataFrame or str, optional
        An attribute of the queries, as in ``Evaluation.slices``.
    floors : float or mapping of value to float, optional
        The loss that must be ruled out on each slice, or on those named: "not worse" by that much must be shown there
        too, at alpha.
    gate : Gate, optional
        A gate of the guard that decides by its own terms, within its budget. It shows only whether it accepts.
    candidate, holder : array or Run, optional
        For a gate: scores or rankings of the two versions. By default their models predict the registered rows.
    role : str, default "test"
        The role of the evaluations.
    first : bool
        Whether the alias may be given without a comparison if no version has it. A gate compares with its baseline.
    dry_run : bool
        Decide, and write nothing. Refused for a gate, whose decisions are counted.
    who : str, optional
        The person or machine, for the record; by default ``RANKEVAL_WHO``, or the user as MLflow knows it.
    uri : str, optional
        The tracking store; by default MLflow's own setting.

    Returns
    -------
    Promotion
        True if the alias is with the version now, or would be after a dry run.

    Raises
    ------
    InvalidInput
        If the version, its model or its evaluation does not exist, the version is archived, nobody has the alias and
        ``first`` is not set, or an argument is out of range.
    ConventionMismatch, QueryIdError
        If the two evaluations are not of the same content by the same rules.
    LedgerError
        If the gate cannot decide.
    TrackingError
        If the store cannot be reached, or does not let this user write. The message says what was done before.

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
    ...     run = rkm.log_evaluation(rk.evaluate(truth, right, measures="RR"), role="test", model_version=version)
    >>> promote("ranker", 1, measure="RR", first=True).moved
    True
    >>> print(promote("ranker", 2, measure="RR"))
    ranker@champion: moved from version 1 to version 2. ranker v2 beats ranker v1 by +0.2500 RR...
    >>> int(client.get_model_version_by_alias("ranker", "champion").version)
    2
    """
    checked_role(role)
    _refuse_conflicts(gate, measure, margin, claim, floors, slices, (candidate, holder), dry_run=dry_run)
    decide: Callable[[Alias, str, str | None], Decided]
    if gate is not None:
        decide = partial(by_gate, gate=gate, role=role, systems=(candidate, holder))
    else:
        rule = Rule(_named(measure), claim, margin, alpha, test, slices, floors)
        decide = partial(by_evaluations, rule=rule, role=role)
    checked_alias(alias)
    where, asker = store(uri), who or os.environ.get(WHO) or run_context().get("mlflow.user", "unknown")
    with _at(uri), asking(where, "answer"), _one_at_a_time(where, name, alias), connected(where) as client:
        attempt = Attempt(Alias(client, where, name, alias), decide, asker)
        return attempt.made(version, first=first, dry_run=dry_run)


def _named(measure: Any) -> Any:
    if measure is None:
        raise InvalidInput('measure is missing: name the measure that decides, such as measure="nDCG@10"')
    return measure


def _refuse_conflicts(
    gate: Any,
    measure: Any,
    margin: float,
    claim: str,
    floors: Any,
    slices: Any,
    systems: tuple[Any, Any],
    *,
    dry_run: bool,
) -> None:
    """Raise for arguments that do not go together."""
    if gate is None:
        if any(one is not None for one in systems):
            raise InvalidInput("candidate= and holder= are rankings for a gate: give gate= too, or log evaluations")
        return
    from rankeval.guard.gate.gate import Gate
    from rankeval.measures import measure as parsed

    if not isinstance(gate, Gate):
        raise InvalidInput(argument="gate", found=shown(gate), expected="the result of guard.gate")
    if dry_run:
        raise InvalidInput("dry_run=True with a gate: a decision of a gate is counted, so it cannot be tried")
    if floors is not None or slices is not None:
        raise InvalidInput("floors with a gate: a gate shows one bit, and a floor would show more")
    terms = gate.terms
    asked = {"measure": None if measure is None else str(parsed(measure, terms.convention)), "margin": margin or None}
    asked["claim"] = None if claim == "better" else claim
    for name, given in asked.items():
        own = getattr(terms, name)
        if given not in (None, own):
            raise InvalidInput(f"{name} is {shown(given)}, but gate {gate.name!r} decides by {own!r}: leave it out")


@contextlib.contextmanager
def _at(uri: str | None) -> Iterator[None]:
    """Let MLflow's own functions use a store for a while."""
    import mlflow

    if uri is None:
        yield
        return
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)


@contextlib.contextmanager
def _one_at_a_time(uri: str, name: str, alias: str) -> Iterator[None]:
    """Let one promoter of this machine at a time decide on an alias; without a folder for the lock, go on."""
    lock = spool_directory() / f".promotion-{sha256(f'{uri} {name} {alias}'.encode())[:16]}.lock"
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(held(lock, _PATIENCE))
        except TimeoutError as error:
            raise TrackingError(
                f"another promoter of {name}@{alias} at {masked(uri)} is still at work: {error}"
            ) from error
        except OSError:
            pass  # nothing can be written here: the order of the steps does what it does between machines
        yield
