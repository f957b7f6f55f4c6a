"""The commands of ``rankeval guard``: parse, call, print.

A step that says yes exits with 0. If the guard says no, the exit code is 1: `status` of data that would be refused,
`verify` of a ledger that is not whole, a refusal. What scripts read stands alone on stdout, and the words on stderr.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankeval import errors
from rankeval._checks import count, few
from rankeval.cli.collection import CollectionFiles, with_collection
from rankeval.cli.net import OwnAnswers, steps
from rankeval.cli.output import (
    ConventionName,
    Format,
    OutputFormat,
    ending_with,
    print_comparison,
    print_frame,
    print_rows,
    say,
    tell,
)

if TYPE_CHECKING:
    from rankeval.guard import Guard
    from rankeval.guard.collection import RegisteredCollection
    from rankeval.guard.releasing import Status
    from rankeval.ledger.entry import Entry


guard_app: typer.Typer = typer.Typer(
    cls=OwnAnswers,
    no_args_is_help=True,
    help="Keep a test collection out of tuning: register it, freeze systems, open them once.",
)

Project = Annotated[str, typer.Argument(help="The guard's project.")]
Test = Annotated[str, typer.Argument(metavar="TEST", help="Name of the registered collection.")]
Ledger = Annotated[
    str | None, typer.Option(help="Folder, file or SQLAlchemy URL of the ledger; else the one in force here.")
]
Systems = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME=PATH...",
        help="Systems: runs for judgments; for rows a file with one score a line, or a table with a column score.",
    ),
]


def _declared_checks() -> Iterator[str]:
    from rankeval.guard import list_checks

    return (f"{check.Index} ({check.severity}): {check.finds}" for check in list_checks().itertuples())


@guard_app.command(cls=ending_with(_declared_checks))
@with_collection
def register(
    project: Project,
    name: Annotated[str, typer.Argument(help="A name for the collection.")],
    *,
    files: CollectionFiles,
    supersedes: Annotated[
        str | None, typer.Option(help="The registered collection that this one extends or relabels.")
    ] = None,
    effect: Annotated[
        float | None, typer.Option(help="The difference that you hope to find, to check the size.")
    ] = None,
    sd: Annotated[float | None, typer.Option(help="Standard deviation of differences between systems.")] = None,
    ledger: Ledger = None,
) -> None:
    """Register a test collection: from now on it is refused for tuning.

    These checks are made:
    """
    guard = guard_of(project, ledger)
    found = guard.register(name, **files.load(), **_given(supersedes=supersedes, effect=effect, sd=sd))
    tell(
        f"{found.name}: {count(found.n_queries, 'query')}, {count(found.n_rows, 'row')}; {found.n_identifiable} of the "
        f"queries can be recognised; digest {found.digest}"
    )
    for finding in found.findings:
        if finding.severity == "note":  # the others were printed as warnings
            tell(str(finding))
    tell(f"ledger {found.ledger}, head {found.head}")


@guard_app.command()
@with_collection
def freeze(
    project: Project,
    test: Test,
    systems: Systems,
    *,
    files: CollectionFiles,
    baseline: Annotated[str | None, typer.Option(help="The system that the others are compared with.")] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure that decides.")] = "nDCG@10",
    secondary: Annotated[list[str] | None, typer.Option(help="A measure to show besides; several times.")] = None,
    convention: ConventionName = "rankeval",
    claim: Annotated[
        str | None, typer.Option(help="What to show: difference, better, not_worse or equivalent.")
    ] = None,
    margin: Annotated[float | None, typer.Option(help="Margin of the claim, in units of the measure.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Test on the queries that nobody has looked at; else on all.")
    ] = False,
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    resamples: Annotated[int, typer.Option(help="Number of resamples.")] = 9999,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    ledger: Ledger = None,
) -> None:
    """Fix systems and test before any score is seen, and print the id of the plan, alone on stdout."""
    guard = guard_of(project, ledger)
    plan = guard.freeze(
        _at_hand(guard, test, files, _registered(project, test, ledger)),
        systems=files.systems(systems),
        baseline=baseline,
        measure=measure,
        secondary=secondary or (),
        convention=convention,
        alpha=alpha,
        n_resamples=resamples,
        rng=seed,
        fresh=fresh,
        **_given(claim=claim, margin=margin),
    )
    say(f"frozen: {plan!r}")
    say(f"open it with: rankeval guard open {project} {plan.id}, and the same files of the collection")
    typer.echo(plan.id)


@guard_app.command("open")
@with_collection
def open_plan(
    project: Project,
    plan: Annotated[str, typer.Argument(metavar="PLAN_ID", help="The id that freeze printed, or its beginning.")],
    *,
    files: CollectionFiles,
    ledger: Ledger = None,
    output: OutputFormat = Format.table,
) -> None:
    """Score all systems of a plan at once, record the looks, and print the comparison."""
    guard = guard_of(project, ledger)
    frozen = guard.plan(plan)
    test = _at_hand(guard, frozen.collection, files, {frozen.digest})
    print_comparison(guard.open(frozen, test), output)


@guard_app.command()
def looks(
    project: Project,
    test: Annotated[
        str | None, typer.Argument(metavar="TEST", help="Name of a registered collection; all of the project if none.")
    ] = None,
    *,
    everybody: Annotated[bool, typer.Option("--all-projects", help="List the looks of other projects too.")] = False,
    ledger: Ledger = None,
    output: OutputFormat = Format.table,
) -> None:
    """List the looks at a registered collection, or of a project."""
    frame = guard_of(project, ledger).looks(test, projects="all" if everybody else "own")
    elsewhere = 0 if everybody else frame.attrs["elsewhere"]
    print_frame(frame.drop(columns="output") if output is Format.table else frame, output)
    if elsewhere:
        say(f"{count(elsewhere, 'look')} more by other projects: --all-projects lists them")
    if decisions := frame.attrs["decisions"]:
        say(f"{count(decisions, 'decision')} by gates besides, which are no looks: gate.decisions() lists them")


@guard_app.command()
@with_collection
def status(
    project: Project,
    *,
    files: CollectionFiles,
    ledger: Ledger = None,
    output: OutputFormat = Format.table,
) -> None:
    """Say whether some data would be refused, why, and which of its queries are registered; exit with 1 if refused."""
    found = guard_of(project, ledger).status(**files.load())
    _tell_status(found, output)
    if found.refused and found.project is not None and found.collection is not None:
        say(steps(found.project, found.collection, ledger))
    if found.refused:
        raise typer.Exit(1)


@guard_app.command()
@with_collection
def gate(
    project: Project,
    test: Test,
    candidate: Annotated[
        str | None, typer.Argument(metavar="NAME=PATH", help="The candidate; without one, the gate is declared only.")
    ] = None,
    *,
    files: CollectionFiles,
    baseline: Annotated[
        Path | None, typer.Option(help="Ranking of the system in use; needed once, when the gate is declared.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Number of decisions.")] = 20,
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure that decides.")] = "nDCG@10",
    claim: Annotated[str, typer.Option(help="What must be shown of a candidate: better or not_worse.")] = "better",
    margin: Annotated[float, typer.Option(help="Margin of the claim, in units of the measure.")] = 0.0,
    alpha: Annotated[float, typer.Option(help="Level of all decisions together.")] = 0.05,
    convention: ConventionName = "rankeval",
    name: Annotated[str, typer.Option(help="Name of the gate.")] = "gate",
    ledger: Ledger = None,
) -> None:
    """Accept or reject one candidate after the other within a budget; exit with 1 if it is rejected.

    A gate is declared by its first call, and later calls repeat its options.
    """
    guard = guard_of(project, ledger)
    systems = files.systems(filter(None, [candidate]))
    standard = None if baseline is None else files.systems([f"baseline={baseline}"])["baseline"]
    terms: dict[str, Any] = {"measure": measure, "claim": claim, "margin": margin, "alpha": alpha}
    terms |= {"budget": budget, "convention": convention, "name": name}
    declared = guard.gate(_at_hand(guard, test, files, _registered(project, test, ledger)), baseline=standard, **terms)
    if candidate is None:
        tell(str(declared))
        return
    ((system, ranking),) = systems.items()
    decision = declared.decide(system, ranking)
    tell(str(decision))
    if not decision.accepted:
        raise typer.Exit(1)


@guard_app.command(cls=ending_with(_declared_checks))
def checks(output: OutputFormat = Format.table) -> None:
    """List the checks that the guard makes when a collection is registered."""
    from rankeval.guard import list_checks

    print_frame(list_checks().reset_index(), output)


@guard_app.command()
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
    try:
        guard.verify(noted or None, other=other, strict=True)
    except errors.LedgerError as error:
        if error.where is None:  # it could not be read, and nothing was verified
            raise
        raise errors.GuardRefusal(f"{error.where}: {error.problem}", ledger=error.where) from error
    tell(f"{guard.ledger} is whole; head {guard.head}")
    projects = sorted({entry.project for entry in entries_of(ledger)})
    if project not in projects:
        say(f"project {project!r} has no entry in it: it holds {f'those of {few(projects)}' if projects else 'none'}")


@guard_app.command()
def merge(
    project: Project,
    other: Annotated[str, typer.Argument(help="Folder, file or SQLAlchemy URL of the other ledger.")],
    ledger: Ledger = None,
) -> None:
    """Add all entries of another ledger to this one; nothing is lost, and the other one stays as it is."""
    guard = guard_of(project, ledger)
    added = guard.merge(other)
    tell(f"{count(added, 'entry')} added to {guard.ledger}; head {guard.head}")


@guard_app.command()
def export(
    project: Project,
    target: Annotated[str, typer.Argument(help="Folder, file or SQLAlchemy URL of a ledger, which may be new.")],
    ledger: Ledger = None,
) -> None:
    """Add all entries of the ledger to another one: from a folder to a database, or back."""
    guard = guard_of(project, ledger)
    tell(f"{count(guard.export(target), 'entry')} added to {target}; head {guard.head}")


@guard_app.command()
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


@guard_app.command()
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


def guard_of(project: str, ledger: str | None) -> Guard:
    """Return the guard of a project, with the ledger given or the one in force."""
    from rankeval.guard import Guard

    return Guard(project, ledger=ledger)


def entries_of(ledger: str | None) -> tuple[Entry, ...]:
    """Return the entries of the ledger given, or of the one in force; none if ledgers are off."""
    from rankeval.ledger import discovery
    from rankeval.ledger.ledger import Ledger

    url = discovery.default_url() if ledger is None else discovery.ledger_url(ledger)
    return Ledger(url).read().entries if url else ()


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that were given; the defaults of the others stand in the library."""
    return {name: value for name, value in options.items() if value is not None}


def _tell_status(found: Status, output: Format) -> None:
    """Print a status in words, or its fields with all queries."""
    if output is Format.table:
        tell(found.words)
        return
    fields = {one.name: getattr(found, one.name) for one in dataclasses.fields(found) if one.repr}
    if output is Format.json:
        typer.echo(json.dumps([fields], indent=1, default=str))
    else:
        fields["queries"] = " ".join(map(str, found.queries))
        print_rows(list(fields), [list(fields.values())], output)


def _registered(project: str, name: str, ledger: str | None) -> set[str]:
    """Return the digests of the contents that the project registered by a name."""
    own = [one.body for one in entries_of(ledger) if one.kind == "register" and one.project == project]
    if not any(body["name"] == name for body in own):
        known = ", ".join(dict.fromkeys(repr(body["name"]) for body in own)) or "none"
        raise errors.InvalidInput(f"project {project!r} has no collection {name!r}, it has: {known}; register it first")
    return {body["digest"] for body in own if body["name"] == name}


def _at_hand(guard: Guard, name: str, files: CollectionFiles, digests: set[str]) -> RegisteredCollection:
    """Return a collection that is on record, with its data; other data is not registered instead of it."""
    from rankeval.guard.collection import load_collection

    data = files.load()
    empty = dict.fromkeys(("X", "y", "qid", "group", "qrels", "queries", "docid"))
    found = load_collection(**{**empty, **data}).prints.digest
    if found not in digests:
        expected = " or ".join(one[:12] for one in sorted(digests))
        raise errors.InvalidInput(
            f"the files hold other content than {name!r} (digest {found[:12]}, expected {expected}): name the files "
            "that it was registered from"
        )
    return guard.register(name, **data)


def _heads_of(reports: Iterable[Path]) -> list[str]:
    """Return the heads that reports name; raises InvalidInput for a file without one."""
    from rankeval.ledger.graph import heads_in

    found = {path: heads_in(path) for path in reports}
    for path, heads in found.items():
        if not heads:
            raise errors.InvalidInput(f"{path} names no head of a ledger: is it a report of a guarded test part?")
    return [head for heads in found.values() for head in heads]
