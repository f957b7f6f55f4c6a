"""The guard: registered content, frozen plans, looks, gates, ledgers, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from oracle.calls import Call, recipe
from oracle.drawing import Draw
from oracle.recipes_model_selection import keep_validation, ridge, table

PROJECT = "search"
ERRORS = (
    *(
        "rankeval.errors.AmbiguousName",
        "rankeval.errors.CheckFailed",
        "rankeval.errors.ConfigError",
    ),
    *(
        "rankeval.errors.ConflictingQueryIds",
        "rankeval.errors.ConventionMismatch",
        "rankeval.errors.FileFormatError",
    ),
    *(
        "rankeval.errors.GuardRefusal",
        "rankeval.errors.GuardRefusalError",
        "rankeval.errors.InvalidInput",
    ),
    *(
        "rankeval.errors.LedgerError",
        "rankeval.errors.LimitExceeded",
        "rankeval.errors.MissingQueryIds",
    ),
    *("rankeval.errors.QueryIdError", "rankeval.errors.RankevalError", "rankeval.errors.Refusal"),
    *(
        "rankeval.errors.SharedQueries",
        "rankeval.errors.SharedQueriesError",
        "rankeval.errors.TrackingError",
    ),
    *(
        "rankeval.errors.UnknownName",
        "rankeval.errors.UnusableColumns",
        "rankeval.errors.UnusableQueryIdsError",
    ),
    "rankeval.errors.UnusableRows",
    "rankeval.errors.UnusableWeights",
    "rankeval.errors.NotedWarning",
)


def guard_of(draw: Draw, call: Call, **options: Any) -> Any:
    """Return a guard with a ledger of the call's own: a folder, or a database."""
    ledger = draw.choice(("ledger", "ledger", "sqlite:///ledger.db"))
    if ledger == "ledger":
        Path("ledger").mkdir(exist_ok=True)
    return call("rankeval.Guard", PROJECT, ledger, **options)


def registered(draw: Draw, call: Call, guard: Any, rows: dict[str, Any]) -> Any:
    """Register rows as a test collection, as a later step needs it."""
    return call.of(
        guard,
        "Guard.register",
        "test",
        rows["X"],
        rows["y"],
        qid=rows["qid"],
        **draw.options(0.2, effect=(0.05,), sd=(0.1,)),
    )


@recipe("guard", 82, hashes=True)
def protocol(draw: Draw, call: Call) -> None:
    """Register, freeze, open, look, verify; then look again."""
    rows = table(draw, draw.integer(8, 14), 4)
    guard = guard_of(draw, call, **draw.options(0.3, who=("ann",)))
    test = registered(draw, call, guard, rows)
    systems = {f"s{at}": rows["X"][:, 0] * at + rows["X"][:, 1] for at in range(draw.integer(1, 3))}
    options = draw.options(
        0.3,
        measure=("AP", "RR", "odd"),
        secondary=("AP", ["RR"]),
        alpha=(0.1,),
        rng=(1,),
        fresh=(True,),
    )
    if draw.happens(0.3):
        options |= {"claim": draw.choice(("better", "not_worse")), "margin": 0.05}
    options |= draw.options(0.7, baseline=("s0",))
    plan = call.of(guard, "Guard.freeze", test, systems=systems, n_resamples=99, **options)
    call.of(guard, "Guard.open", plan, test)
    call.of(guard, "Guard.looks", test, **draw.options(0.4, projects=("all", "odd")))
    call.of(guard, "Guard.verify")
    if draw.happens(0.3) and plan is not None:
        call.of(guard, "Guard.plan", draw.choice((plan.id, "none such")))
        call.of(guard, "Guard.open", plan, test)


@recipe("guard", 68, hashes=True, timed=True)
def refused(draw: Draw, call: Call) -> None:
    """Use registered content for fitting and scoring; ask why it is refused."""
    rows = table(draw, 8, 4)
    guard = guard_of(draw, call)
    registered(draw, call, guard, rows)
    import os

    os.environ["RANKEVAL_LEDGER"] = "ledger" if Path("ledger").is_dir() else "sqlite:///ledger.db"
    call.names.find("rankeval.contamination.forget")()
    form = draw.integer(0, 3)
    X, y, qid = rows["X"], rows["y"], rows["qid"]
    if form == 1:
        order = draw.numpy.permutation(len(y))
        X, y, qid = X[order], y[order], qid[order]
    elif form == 2:
        X = X * 2 + 1
    elif form == 3:
        kept = qid == qid[0]
        X, y, qid = X[~kept], y[~kept], qid[~kept]
    call.of(guard, "Guard.status", X, y, qid=qid)
    try:
        found = call.make("rankeval.cross_validate", ridge(), X, y, qid=qid, cv=2)
        keep_validation(call, "cross_validate", found)
    except (Exception, call.refusal) as error:  # noqa: BLE001 - errors are results
        call.keep("cross_validate", error)
    call.tried("rankeval.evaluate", y, X[:, 0], qid=qid)
    call.tried("rankeval.dev_test_split", X, y, qid=qid)


@recipe("guard", 52, hashes=True)
def gates(draw: Draw, call: Call) -> None:
    """Declare a gate, and let it decide on candidates."""
    rows = table(draw, 12, 4)
    guard = guard_of(draw, call)
    test = registered(draw, call, guard, rows)
    base = rows["X"][:, 1]
    options = draw.options(0.4, measure=("AP",), alpha=(0.1, 0.2), name=("nightly",), rng=(1,))
    if draw.happens(0.3):
        options |= {"claim": draw.choice(("better", "not_worse")), "margin": 0.1}
    gate = call.of(guard, "Guard.gate", test, baseline=base, budget=draw.integer(1, 3), **options)
    if gate is None:
        return
    for name, weight in (("first", 3.0), ("second", 0.0), ("first", 3.0)):
        call.of(
            gate,
            "Gate.decide",
            name,
            base + weight * rows["y"] + draw.numpy.normal(0, 0.1, len(base)).round(3),
        )
    call.of(gate, "Gate.decisions")


@recipe("guard", 45, hashes=True)
def ledgers(draw: Draw, call: Call) -> None:
    """Merge two ledgers, export one, verify both, and damage one."""
    rows, other_rows = table(draw, 6, 3), table(draw, 6, 3)
    guard = guard_of(draw, call)
    registered(draw, call, guard, rows)
    Path("second").mkdir()
    other = call("rankeval.Guard", PROJECT, "second")
    call.of(
        other, "Guard.register", "other", other_rows["X"], other_rows["y"], qid=other_rows["qid"]
    )
    call.of(guard, "Guard.merge", draw.choice(("second", "second", "third")))
    call.of(guard, "Guard.export", draw.choice(("copy", "copy.db")))
    call.of(
        guard,
        "Guard.verify",
        **draw.options(0.4, other=("second", "copy"), strict=(True,), head=("0123456789abcdef",)),
    )
    if draw.happens(0.3):
        files = sorted(path for path in Path("second").rglob("*") if path.is_file())
        chosen = draw.choice(("cut", "gone"))
        if files and chosen == "cut":
            files[0].write_bytes(files[0].read_bytes()[:40])
        elif files:
            files[0].unlink()
    call.of(other, "Guard.verify")
    call.of(other, "Guard.looks")


@recipe("guard", 45, hashes=True)
def judged(draw: Draw, call: Call) -> None:
    """Register judgments with texts of queries, revise, exempt and retire them."""
    judgments = draw.judgments(draw.integer(4, 7), 8)
    guard = guard_of(draw, call)
    texts = {query: draw.sentence(5) for query in judgments}
    test = call.of(
        guard, "Guard.register", "trec", qrels=judgments, **draw.options(0.5, queries=(texts,))
    )
    runs = draw.rankings(judgments, 2)
    plan = call.of(
        guard,
        "Guard.freeze",
        test,
        systems=runs,
        n_resamples=99,
        **draw.options(0.6, baseline=("bm25",)),
    )
    call.of(guard, "Guard.open", plan, test)
    more = {**judgments, "q99": {"d1": 1, "d2": 0}}
    call.of(
        guard, "Guard.register", "trec-2", qrels=more, **draw.options(0.7, supersedes=("trec",))
    )
    call.of(
        guard,
        "Guard.exempt",
        "trec",
        draw.some(list(judgments), 1, 2),
        draw.choice(("public examples", "public examples", "")),
    )
    call.of(guard, "Guard.retire", "trec", draw.choice(("too small", "too small", "")))
    call.of(guard, "Guard.status", qrels=judgments)
    call.of(guard, "Guard.looks")


@recipe("guard", 22, hashes=True, timed=True)
def folds(draw: Draw, call: Call) -> None:
    """Open a benchmark of folds as one look, and split off a registered test part."""
    rows = table(draw, 9, 4)
    guard = guard_of(draw, call)
    test = registered(draw, call, guard, rows)
    plan = call.of(
        guard,
        "Guard.freeze",
        test,
        systems={"a": ridge(), "b": ridge().set_params(alpha=100.0)},
        folds=draw.choice((2, 3)),
        n_resamples=99,
    )
    call.of(guard, "Guard.open", plan, test)
    other = table(draw, 8, 3)
    call.tried(
        "rankeval.dev_test_split",
        other["X"],
        other["y"],
        qid=other["qid"],
        guard=guard,
        test_name=draw.choice(("held", "test")),
    )


@recipe("guard", 30)
def checks(draw: Draw, call: Call) -> None:
    """List the checks; declare one of our own, and take it away."""
    call("rankeval.guard.list_checks")
    known = call.names.find("rankeval.guard.checks.CHECKS")
    before = dict(known) if isinstance(known, dict) else list(known)
    try:
        declare = call(
            "rankeval.guard.guard_check",
            draw.choice(("own-check", "odd code", "")),
            **draw.options(0.5, severity=("warning", "odd")),
        )

        def find(*_: Any) -> Any:
            """Find nothing, as a test."""
            yield from ()

        declare(find)
    finally:
        known.clear()
        known.update(before) if isinstance(known, dict) else known.extend(before)


@recipe("guard", 45)
def errors(draw: Draw, call: Call) -> None:
    """Make errors and warnings by hand: their fields, messages and bases."""
    fields = {
        "argument": ("qid",),
        "found": ("3",),
        "expected": ("2",),
        "where": ("a.csv, line 3",),
        "remedy": ("do this",),
    }
    for name in draw.some(ERRORS, 2, 4):
        call(name, draw.choice(("it is wrong", "")), **draw.options(0.5, **fields))
    call(
        draw.choice(("rankeval.errors.QueryCutWarning", "rankeval.errors.RankevalWarning")),
        "a warning",
    )
    call("rankeval.errors.warn", draw.sentence(4))


@recipe("guard", 30, hashes=True)
def facts(draw: Draw, call: Call) -> None:
    """Read what a report says of the guard, of an opening and by hand."""
    rows = table(draw, 8, 4)
    guard = guard_of(draw, call)
    test = registered(draw, call, guard, rows)
    plan = call.of(
        guard,
        "Guard.freeze",
        test,
        systems={"a": rows["X"][:, 0], "b": rows["X"][:, 1]},
        n_resamples=99,
    )
    opened = call.of(guard, "Guard.open", plan, test)
    found = call.tried("rankeval.report.summaries.GuardFacts.of", opened)
    if found is not None:
        call.of(found, "GuardFacts.tags")
    made = call(
        "rankeval.report.summaries.GuardFacts",
        draw.happens(),
        **draw.options(0.5, project=("p",), test=("t",), looks=(3,), standing=("exploratory",)),
    )
    call.of(made, "GuardFacts.tags")
    call.keep("lines", np.array([made.line, made.word]))
