"""The commands of ``rankeval guard`` that keep the ledger: verify, merge, export, exempt, retire."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from rankeval import errors
from rankeval._checks import count, few
from rankeval.cli.collection import CollectionFiles, with_collection
from rankeval.cli.guard import Ledger, Project, Test, entries_of, guard_of
from rankeval.cli.output import say, tell


def verify(
    project: Project,
    ledger: Ledger = None,
    head: Annotated[
        list[str] | None, typer.Option(help="A head noted earlier: finds entries that were cut off since.")
    ] = None,
    report: Annotated[
        list[Path] | None, typer.Option(help="A report or another file, whose heads the ledger must still hold.")
    ] = None,
    other: Annotated[
        str | None, typer.Option(help="Another copy of the ledger, whose entries this one must hold.")
    ] = None,
) -> None:
    """Check that no entry of the ledger was altered, and that none is missing; exit with 1 otherwise."""
    from rankeval.ledger import discovery

    guard = guard_of(project, ledger)
    if not discovery.may_exist(discovery.ledger_url(guard.ledger)):
        raise errors.InvalidInput(f"there is no ledger {guard.ledger}: nothing was verified")
    noted = "+".join([*(head or ()), *_heads_of(report or ())])
    problems = guard.problems(noted or None, other=other)
    if problems:
        raise errors.GuardRefusal(f"{guard.ledger}: {'; '.join(problems)}")
    tell(f"{guard.ledger} is whole; head {guard.head}")
    projects = sorted({entry.project for entry in entries_of(ledger)})
    if project not in projects:
        say(f"project {project!r} has no entry in it: it holds {f'those of {few(projects)}' if projects else 'none'}")


def merge(
    project: Project,
    other: Annotated[str, typer.Argument(help="Folder, file or SQLAlchemy URL of the other ledger.")],
    ledger: Ledger = None,
) -> None:
    """Add all entries of another ledger to this one; nothing is lost, and the other one stays as it is."""
    guard = guard_of(project, ledger)
    added = guard.merge(other)
    tell(f"{count(added, 'entry')} added to {guard.ledger}; head {guard.head}")


def export(
    project: Project,
    target: Annotated[str, typer.Argument(help="Folder, file or SQLAlchemy URL of a ledger, which may be new.")],
    ledger: Ledger = None,
) -> None:
    """Add all entries of the ledger to another one: from a folder to a database, or back."""
    guard = guard_of(project, ledger)
    tell(f"{count(guard.export(target), 'entry')} added to {target}; head {guard.head}")


@with_collection
def exempt(
    project: Project,
    test: Annotated[
        str,
        typer.Argument(metavar="TEST", help="Name of the collection; PROJECT/NAME if another project registered it."),
    ],
    reason: Annotated[str, typer.Argument(help="The reason, which goes on record.")],
    *,
    files: CollectionFiles,
    query: Annotated[
        list[str] | None, typer.Option(help="A query by the id under which it was registered; several times.")
    ] = None,
    ledger: Ledger = None,
) -> None:
    """Release some queries of a collection: those given by --query, or those found in some data."""
    guard = guard_of(project, ledger)
    released = guard.exempt(test, query or guard.status(**files.load()), reason)
    tell(f"{count(released, 'query')} of {test} exempted; ledger {guard.ledger}, head {guard.head}")


def retire(
    project: Project,
    test: Test,
    reason: Annotated[str, typer.Argument(help="The reason, which goes on record.")],
    ledger: Ledger = None,
) -> None:
    """Give a test collection up for good: its content may be fitted on from now on."""
    guard = guard_of(project, ledger)
    guard.retire(test, reason)
    tell(f"{test} is retired and no test any more; ledger {guard.ledger}, head {guard.head}")


def add_keeping(group: typer.Typer) -> None:
    """Add these commands to a group.

    Parameters
    ----------
    group : Typer
        The group of ``rankeval guard``.
    """
    for command in (verify, merge, export, exempt, retire):
        group.command()(command)


def _heads_of(reports: Iterable[Path]) -> list[str]:
    """Return the heads that reports name; raises InvalidInput for a file without one."""
    from rankeval.ledger.noted import heads_in

    found = {path: heads_in(path) for path in reports}
    for path, heads in found.items():
        if not heads:
            raise errors.InvalidInput(f"{path} names no head of a ledger: is it a report of a guarded test part?")
    return [head for heads in found.values() for head in heads]
