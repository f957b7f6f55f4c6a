"""Say in commands what to do about registered test content; the library says it in Python."""

from __future__ import annotations

import shlex

from rankeval.errors import GuardRefusal


def as_commands(refusal: GuardRefusal) -> str:
    """Return the message of a refusal with the commands that go on from there.

    Parameters
    ----------
    refusal : GuardRefusal
        The refusal; one that is of no registered collection has its message only.
    """
    if refusal.project is None or refusal.collection is None:
        return str(refusal)
    status = command("status", refusal.project, ledger=refusal.ledger)
    return (
        f"{refusal.found} To go on without these queries, take them out of the files: {status} --format json, with the "
        f"files as --qrels or --data, lists them all. {steps(refusal.project, refusal.collection, refusal.ledger)}"
    )


def steps(project: str, collection: str, ledger: str | None) -> str:
    """Return the commands for data that is refused: to score final systems, to release queries, to give it up.

    Parameters
    ----------
    project, collection : str
        The registered collection, and the project that registered it.
    ledger : str, optional
        The ledger, unless it is the one in force.
    """
    freeze, exempt, retire = (
        command(name, project, collection, ledger=ledger) for name in ("freeze", "exempt", "retire")
    )
    opening = command("open", project, ledger=ledger)
    return (
        f"To score final systems, once: {freeze} NAME=PATH ..., then {opening} PLAN_ID, both "
        "with the files that it was registered from; rankings opened that way may be evaluated again freely. To "
        f"release some queries for a good reason, on record: {exempt} REASON --query ID; for all that are in some "
        f"files, those files instead of --query. To give the collection up as a test and fit on it, for good: {retire} "
        "REASON"
    )


def command(name: str, *arguments: str, ledger: str | None) -> str:
    """Return a command of the guard as a shell takes it.

    Parameters
    ----------
    name : str
        The command.
    *arguments : str
        Its first arguments.
    ledger : str, optional
        The ledger, unless it is the one in force.

    Examples
    --------
    >>> command("retire", "web shop", "r5", ledger=None)
    "rankeval guard retire 'web shop' r5"
    """
    options = [] if ledger is None else ["--ledger", ledger]
    return shlex.join(["rankeval", "guard", name, *arguments, *options])
