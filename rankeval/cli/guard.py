"""The commands of ``rankeval guard``: parse, call, print.

A step that says yes exits with 0. If the guard says no, the exit code is 1: `status` of data that
would be refused, `verify` of a ledger that is not whole, a refusal. The output that scripts read is
alone on stdout, and the words are on stderr.

A test collection is given as files: judgments, or rows with labels. They must be those that it was
registered from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer

from rankeval import errors
from rankeval._checks import count, few, refuse
from rankeval._display import view_of
from rankeval.cli.exits import command_group, steps
from rankeval.cli.inputs import query_texts
from rankeval.cli.options import COLLECTION, ending_with, options
from rankeval.cli.output import (
    Format,
    noted,
    print_frame,
    print_result,
    print_rows,
    say,
    tell,
    tell_all,
)

if TYPE_CHECKING:
    from rankeval.collection.data import RankingData
    from rankeval.guard import Guard
    from rankeval.guard.collection import RegisteredCollection
    from rankeval.io.opening import Limits
    from rankeval.ledger.entry import Entry


guard_app: typer.Typer = command_group(
    "Keep a test collection out of tuning: register, freeze, open once."
)

_SCORE = "score"
"""The column of a table of scores, as in the predictions of an experiment."""


class CollectionFiles(SimpleNamespace):
    """A test collection as the options of a command name it: judgments, or rows with labels."""

    @classmethod
    def taken(cls, arguments: dict[str, Any]) -> CollectionFiles:
        """Take the options of a collection out of the arguments of a command."""
        return cls(**{name: arguments.pop(name) for name in COLLECTION.split()})

    def load(self) -> dict[str, Any]:
        """Return the collection as arguments of `Guard.register`."""
        n_named = (self.qid is not None) + (self.label is not None)
        columns = self._flags("qid label docid features part")
        of_table = self._flags("docid part input_format")
        both = "--qid and --label, the columns of the query and of the relevance"
        neither = "name the test collection: judgments (--qrels) or rows (--data)"
        refuse(((self.qrels is None) == (self.data is None), neither))
        if self.qrels is None:
            refuse(
                (self.texts is not None, "--texts goes with --qrels"),
                (n_named == 0 and of_table, f"{of_table} need {both}"),
                (n_named == 1, f"a table needs {both}"),
            )
            return {"X": self._rows(self.data or Path())}
        refuse((columns, f"{columns} name columns of --data: leave them out with --qrels"))
        from rankeval.collection.qrels import Qrels

        texts = query_texts(self.texts, limits=self.limit)
        reading = {"columns": self.parts, "grades": self.grades, "limits": self.limit}
        qrels = noted(Qrels.read(self.qrels, self.input_format, **reading))
        return {"qrels": qrels, "queries": texts}

    def systems(self, pairs: Iterable[str]) -> dict[str, Any]:
        """Return the rankings of systems, NAME=PATH: runs for judgments, scores for rows."""
        from rankeval.collection.run import Run

        systems: dict[str, Any] = {}
        for pair in pairs:
            name, _, path = pair.partition("=")
            unlike = f"the system {pair!r} is not NAME=PATH, such as bm25=bm25.run"
            refuse(
                (not name or not path, unlike),
                (name in systems, f"two systems are called {name!r}"),
            )
            if self.qrels:
                systems[name] = noted(Run.read(path, limits=self.limit))
            else:
                systems[name] = _scores(Path(path), self.limit)
        return systems

    def named(self) -> dict[str, str | Path]:
        """Return the option of the collection and its file, for the next command."""
        kind = "data" if self.qrels is None else "qrels"
        return {"kind": kind, "file": getattr(self, kind)}

    def _flags(self, names: str) -> str:
        filled = [name for name in names.split() if getattr(self, name)]
        return ", ".join(f"--{name.replace('_', '-')}" for name in filled)

    def _rows(self, path: Path) -> RankingData:
        from rankeval import datasets

        if self.qid is None:
            if not path.is_dir():
                return datasets.load_letor(path, limits=self.limit)
            parts, where = datasets.load_letor_parts(path, limits=self.limit), str(path)
        else:
            columns: dict[str, Any] = {"qid": self.qid, "label": self.label, "docid": self.docid}
            columns |= {"features": self.features or None, "format": self.input_format}
            columns |= {"grades": self.grades, "limits": self.limit}
            if self.part is None:
                return datasets.load_table(path, **columns)
            column, _, value = self.part.partition("=")
            parts = datasets.load_table_parts(
                path, part=column, test=value or None, others="drop", **columns
            )
            where = f"{path}, column {column}"
        found = ", ".join(parts) or "none"
        refuse(("test" not in parts, f"{where} has no test part; it has: {found}"))
        return parts["test"]


def _declared_checks() -> Iterator[str]:
    from rankeval.guard import list_checks

    for check in list_checks().itertuples():
        yield f"{check.Index} ({check.severity}): {check.finds}"


@guard_app.command(cls=ending_with(_declared_checks))
@options(
    f"PROJECT NAME supersedes effect sd ledger {COLLECTION}",
    then="rankeval guard freeze {project} {name} NAME=PATH --{kind} {file}",
)
def register(
    *, project: str, name: str, ledger: str | None, **arguments: Any
) -> dict[str, str | Path]:
    """Register a test collection: from now on it is refused for tuning.

    The checks below are made.

    For example:
        rankeval guard register shop web-test --qrels qrels.txt
        rankeval guard register shop web-test --data test.csv --qid q --label y
    """
    guard = guard_of(project, ledger)
    files = CollectionFiles.taken(arguments)
    settings = {key: value for key, value in arguments.items() if value is not None}
    registered = guard.register(name, **files.load(), **settings)
    sizes = f"{count(registered.n_queries, 'query')}, {count(registered.n_rows, 'row')}"
    known = f"{registered.n_identifiable} of the queries can be recognised"
    tell(f"{registered.name}: {sizes}; {known}; digest {registered.digest}")
    for finding in registered.findings:
        if finding.severity == "note":  # the others were printed as warnings
            tell(finding.words)
    tell(f"ledger {registered.ledger}, head {registered.head}")
    return files.named()


@guard_app.command()
@options(
    "PROJECT COLLECTION SYSTEMS baseline measure secondary convention claim margin groups "
    f"fresh alpha n_resamples rng ledger {COLLECTION}",
    then="rankeval guard open {project} {plan} --{kind} {file}",
)
def freeze(
    *, project: str, collection: str, systems: list[str], ledger: str | None, **arguments: Any
) -> dict[str, str | Path]:
    r"""Fix systems and test before any score is seen, and print the id of the plan, alone on stdout.

    For example:
        rankeval guard freeze shop web-test new=new.run --qrels qrels.txt
        rankeval guard freeze shop web-test old=old.run new=new.run \
            --baseline old --qrels qrels.txt
    """
    guard, files = guard_of(project, ledger), CollectionFiles.taken(arguments)
    registered = _at_hand(
        guard, collection, files, _registered_digests(project, collection, ledger)
    )
    plan = guard.freeze(registered, systems=files.systems(systems), **arguments)
    say(view_of(plan).to_text(width=None, lines=None))
    say("to open it, name the same files of the collection")
    typer.echo(plan.id)
    return {"plan": plan.id} | files.named()


@guard_app.command("open")
@options(f"PROJECT PLAN ledger output {COLLECTION}", then="rankeval guard looks {project}")
def open_plan(
    *, project: str, plan: str, ledger: str | None, output: Format, **arguments: Any
) -> None:
    """Score all systems of a plan at once, record the looks, and print the comparison.

    For example:
        rankeval guard open shop 3f9a --qrels qrels.txt
        rankeval guard open shop 3f9a --qrels qrels.txt --format json
    """
    guard = guard_of(project, ledger)
    frozen = guard.plan(plan)
    test = _at_hand(guard, frozen.collection, CollectionFiles.taken(arguments), {frozen.digest})
    print_result(guard.open(frozen, test), output)


@guard_app.command()
@options(
    "PROJECT COLLECTION everybody ledger output",
    collection=None,
    then="rankeval guard verify {project}",
)
def looks(
    *, project: str, collection: str | None, everybody: bool, ledger: str | None, output: Format
) -> None:
    """List the looks at a registered collection; without COLLECTION, at all collections of a project.

    For example:
        rankeval guard looks shop
        rankeval guard looks shop web-test --all-projects
    """
    frame = guard_of(project, ledger).looks(collection, projects="all" if everybody else "own")
    print_frame(frame, output, spare=["who", "plan", "output"])
    if not everybody and (elsewhere := frame.attrs["elsewhere"]):
        say(f"{count(elsewhere, 'look')} more by other projects: --all-projects lists them")
    if decisions := frame.attrs["decisions"]:
        gates = f"{count(decisions, 'decision')} by gates besides, which are not looks"
        say(f"{gates}: gate.decisions() lists them")


@guard_app.command()
@options(
    f"PROJECT ledger output {COLLECTION}",
    then="rankeval guard register {project} NAME --{kind} {file}",
)
def status(
    *, project: str, ledger: str | None, output: Format, **arguments: Any
) -> dict[str, str | Path]:
    """Say whether some data would be refused, why, and which of its queries are registered; exit with 1 if refused.

    For example:
        rankeval guard status shop --qrels train-qrels.txt
        rankeval guard status shop --data train.csv --qid q --label y --format json
    """
    files = CollectionFiles.taken(arguments)
    state = guard_of(project, ledger).status(**files.load())
    if output is Format.table:
        tell(state.words)
    else:
        names = [field.name for field in dataclasses.fields(state) if field.repr]
        cells = {name: getattr(state, name) for name in names}
        if output is not Format.json:
            cells["queries"] = " ".join(map(str, state.queries))
        print_rows(names, [list(cells.values())], output)
    if state.refused and state.project is not None and state.collection is not None:
        say(steps(state.project, state.collection, ledger))
    if state.refused:
        raise typer.Exit(1)
    return files.named()


@guard_app.command()
@options(
    "PROJECT COLLECTION CANDIDATE baseline baseline_name budget measure claim margin groups "
    f"alpha convention name ledger {COLLECTION}",
    claim="better",
    then="rankeval guard gate {project} {collection} {more} --baseline {baseline} --{kind} {file}",
)
def gate(
    *, project: str, collection: str, candidate: str | None, ledger: str | None, **arguments: Any
) -> dict[str, Any]:
    r"""Accept or reject one candidate after the other within a budget; exit with 1 if it is rejected.

    The first call declares a gate, and later calls repeat its options.

    For example:
        rankeval guard gate shop web-test --baseline old.run --qrels qrels.txt
        rankeval guard gate shop web-test new=new.run --baseline old.run \
            --qrels qrels.txt
    """
    guard, files = guard_of(project, ledger), CollectionFiles.taken(arguments)
    systems = files.systems([] if candidate is None else [candidate])
    if arguments["baseline"]:
        pair = f"baseline={arguments['baseline']}"
        arguments["baseline"] = files.systems([pair])["baseline"]
    registered = _at_hand(
        guard, collection, files, _registered_digests(project, collection, ledger)
    )
    declared = guard.gate(registered, **arguments)
    following = {"more": "NAME=PATH", **files.named()}
    if candidate is None:
        tell_all(declared)
        return following
    decision = declared.decide(*next(iter(systems.items())))
    tell(decision.words)
    if not decision.accepted:
        raise typer.Exit(1)
    return following


@guard_app.command(cls=ending_with(_declared_checks))
@options("output", then="rankeval guard register PROJECT NAME --qrels QRELS")
def checks(*, output: Format) -> None:
    """List the checks that the guard makes when a collection is registered.

    For example:
        rankeval guard checks
        rankeval guard checks --format csv
    """
    from rankeval.guard import list_checks

    print_frame(list_checks().reset_index(), output)


@guard_app.command()
@options("PROJECT ledger head report other", then="rankeval guard looks {project}")
def verify(
    *,
    project: str,
    ledger: str | None,
    head: list[str] | None,
    report: list[Path] | None,
    **of: Any,
) -> None:
    """Check that no entry of the ledger was altered or is missing; exit with 1 otherwise.

    For example:
        rankeval guard verify shop
        rankeval guard verify shop --report rankeval-out/quickstart/report.html
    """
    from rankeval.ledger import discovery
    from rankeval.ledger.graph import heads_named

    guard = guard_of(project, ledger)
    exists = discovery.may_exist(discovery.ledger_url(guard.ledger))
    refuse((not exists, f"there is no ledger {guard.ledger}: nothing was verified"))
    noted = "+".join(chain(head or (), *map(heads_named, report or ())))
    try:
        guard.verify(noted or None, strict=True, **of)
    except errors.LedgerError as error:
        if error.where is None:  # it could not be read, and nothing was verified
            raise
        raise errors.GuardRefusal(f"{error.where}: {error.problem}", ledger=error.where) from error
    tell(f"{guard.ledger} is whole; head {guard.head}")
    projects = sorted({entry.project for entry in entries_of(ledger)})
    if project not in projects:
        others = f"other projects: {few(projects)}" if projects else "no project"
        say(f"project {project!r} has no entry in it; its entries are of {others}")


@guard_app.command()
@options("PROJECT OTHER ledger", then="rankeval guard verify {project}")
def merge(*, project: str, other: str, ledger: str | None) -> None:
    """Add all entries of another ledger to this one. Nothing is lost, and the other one does not change.

    For example:
        rankeval guard merge shop ../colleague/rankeval-ledger
        rankeval guard merge shop sqlite:///ledger.db
    """
    guard = guard_of(project, ledger)
    tell(f"{count(guard.merge(other), 'entry')} added to {guard.ledger}; head {guard.head}")


@guard_app.command()
@options("PROJECT TARGET ledger", then="rankeval guard verify {project} --ledger {target}")
def export(*, project: str, target: str, ledger: str | None) -> None:
    """Add all entries of the ledger to another one, such as from a folder to a database.

    For example:
        rankeval guard export shop sqlite:///ledger.db
        rankeval guard export shop backup --ledger sqlite:///ledger.db
    """
    guard = guard_of(project, ledger)
    tell(f"{count(guard.export(target), 'entry')} added to {target}; head {guard.head}")


@guard_app.command()
@options(
    f"PROJECT COLLECTION REASON query ledger {COLLECTION}",
    then="rankeval guard looks {project}",
)
def exempt(
    *,
    project: str,
    collection: str,
    reason: str,
    query: list[str] | None,
    ledger: str | None,
    **arguments: Any,
) -> None:
    """Release some queries of a collection: those given by --query, or those found in some data.

    Name a collection of another project as PROJECT/NAME.

    For example:
        rankeval guard exempt shop web-test "frequent queries" --query q7
        rankeval guard exempt shop web-test "public data" --qrels public.qrels
    """
    guard = guard_of(project, ledger)
    queries = query or guard.status(**CollectionFiles.taken(arguments).load())
    released = guard.exempt(collection, queries, reason)
    tell(
        f"{count(released, 'query')} of {collection} exempted; ledger {guard.ledger}, head {guard.head}"
    )


@guard_app.command()
@options("PROJECT COLLECTION REASON ledger", then="rankeval guard looks {project}")
def retire(*, project: str, collection: str, reason: str, ledger: str | None) -> None:
    """Give a test collection up for good: its content may be fitted on from now on.

    For example:
        rankeval guard retire shop web-test "replaced by web-test-2"
        rankeval guard retire shop web-test "leaked" --ledger sqlite:///ledger.db
    """
    guard = guard_of(project, ledger)
    guard.retire(collection, reason)
    tell(
        f"{collection} is retired: it is not a test collection any more; ledger {guard.ledger}, head {guard.head}"
    )


def guard_of(project: str, ledger: str | None) -> Guard:
    """Return the guard of a project, with the ledger given or the one in force."""
    from rankeval.guard import Guard

    return Guard(project, ledger=ledger)


def entries_of(ledger: str | None) -> tuple[Entry, ...]:
    """Return the entries of a ledger, by default of the one in force; none if ledgers are off."""
    from rankeval.ledger import discovery
    from rankeval.ledger.ledger import Ledger

    url = discovery.default_url() if ledger is None else discovery.ledger_url(ledger)
    return Ledger(url).read().entries if url else ()


def _registered_digests(project: str, name: str, ledger: str | None) -> set[str]:
    entries = [entry for entry in entries_of(ledger) if entry.kind == "register"]
    own = [entry.body for entry in entries if entry.project == project]
    known = dict.fromkeys(repr(body["name"]) for body in own)
    found = ", ".join(known) or "none"
    problem = f"project {project!r} has no collection {name!r}, it has: {found}"
    refuse((repr(name) not in known, problem, "register it first"))
    return {body["digest"] for body in own if body["name"] == name}


def _at_hand(
    guard: Guard, name: str, files: CollectionFiles, digests: set[str]
) -> RegisteredCollection:
    # Data of another content is not registered in place of a collection that is on record.
    from rankeval.guard.collection import load_collection

    data = files.load()
    empty = dict.fromkeys(("X", "y", "qid", "group", "qrels", "queries", "docid"))
    found = load_collection(**{**empty, **data}).prints.digest
    expected = " or ".join(digest[:12] for digest in sorted(digests))
    digest = f"digest {found[:12]}, expected {expected}"
    problem = f"the content of the files is not that of {name!r} ({digest})"
    refuse((found not in digests, problem, "name the files that it was registered from"))
    return guard.register(name, **data)


def _scores(path: Path, limits: Limits) -> list[float]:
    """Read the scores of rows: one number a line, or the column ``score`` of a table."""
    from rankeval.io.opening import NUMBER, number_of, read_bytes, read_text, reading
    from rankeval.io.tables import open_table

    first = read_bytes(path, limits)[:1024].partition(b"\n")[0]
    if NUMBER.fullmatch(first.decode(errors="replace").strip()):
        lines = read_text(path, limits).decode().splitlines()
        return [
            number_of(line.strip(), f"{path}, line {number}")
            for number, line in enumerate(lines, start=1)
        ]
    with reading(path, limits) as file:
        source = open_table(file, str(path), None, limits)
        found = f"found the columns {', '.join(map(repr, source.kinds))}"
        problem = f"{path}: expected one score a line, or a table with a column {_SCORE!r}; {found}"
        refuse((_SCORE not in source.kinds, problem), kind=errors.FileFormatError)
        column = source.columns([_SCORE]).column(_SCORE).to_pylist()
    return [
        number_of(str(value).strip(), f"{path}, {source.place(row)}")
        for row, value in enumerate(column)
    ]
