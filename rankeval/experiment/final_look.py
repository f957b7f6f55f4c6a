"""Guard the test part before anything is trained, and open it for the winners at the end.

First the ledger is tried, the other parts are checked against it, and the test part is registered.
At the end it is opened through the guard, or without one if the experiment switches it off. Then
`moved_rows` finds the rows that moved in the query on which a ranker lost most.

The effect of a row's move is the score of the ranker, less its score if this row alone were back at
its rank by the baseline. So it holds for every measure. The effects need not add up to the loss:
rows make room for each other.

Rows of equal score share the mean of their ranks. Among the other rows, with ranks from 1, a row
goes back to rank r at the value r - 1/2: behind the r - 1 rows above it, and before the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from rankeval._checks import count, few
from rankeval.collection.convention import Convention, get_convention
from rankeval.collection.data import RankingData
from rankeval.comparison import Comparison, compare
from rankeval.comparison.concluding import comparison_of_one
from rankeval.comparison.headline import named_system
from rankeval.contamination.fingerprint import Fingerprint, fingerprint
from rankeval.contamination.matching import match_content
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.contamination.registered import RegisteredContent
from rankeval.contamination.signature import Signature
from rankeval.errors import GuardRefusal, LedgerError
from rankeval.evaluation import Evaluation, Given, evaluate, score
from rankeval.experiment.loading import DataParts
from rankeval.experiment.schema import ExperimentConfig, GuardConfig
from rankeval.guard.journal import COMMITTED, why_lost
from rankeval.join.flat import Floats
from rankeval.ledger import discovery
from rankeval.ledger.graph import heads_in
from rankeval.ledger.ledger import Ledger
from rankeval.measures import direction
from rankeval.measures import measures as parse_measures
from rankeval.render.tables import signed
from rankeval.report.summaries import GuardFacts, MovedRows
from rankeval.significance.columns import TIE_TOLERANCE

if TYPE_CHECKING:
    from rankeval.guard import Guard

SHOWN = 10
"""Rows of the table."""

TRIED = 200
"""Rows whose effect is computed: those whose discount 1 / log2(1 + rank) changed most."""


@dataclass(frozen=True, eq=False)
class TestPart:
    """The test part, and its guard if it has one."""

    data: RankingData
    guard: Guard | None
    registered: Any = None


def why_unguarded(config: ExperimentConfig) -> str:
    """Return why no guard counts the looks at the test part; an empty text if one does."""
    if config.guard is None:
        return "The experiment file switches the guard off."
    if config.guard.ledger is None and discovery.default_url() is None:
        return "The ledger is switched off (RANKEVAL_LEDGER=off)."
    return ""


def check_ledger(config: ExperimentConfig) -> None:
    """Raise if the ledger is unreadable or lost entries, or looks would be lost with this machine.

    Nothing is written. Entries were lost if a report in the folder of the results names a head of
    this ledger that it no longer holds: the run would write over the only file that shows it.
    """
    if config.guard is None or why_unguarded(config):
        return
    url = _url_of(config.guard)
    ledger = Ledger(url)
    # The reports first: another run may add an entry and its report between the two readings.
    reports = sorted(config.directory.glob("*.html"))
    heads = {report: heads_in(report, ledger=ledger.where) for report in reports}
    kept = ledger.read() if discovery.may_exist(url) else None
    for report, named in heads.items():
        if lost := [head[:12] for head in named if kept is None or not kept.holds(head)]:
            raise LedgerError(
                f"{report} was written at the head {few(lost)} of the ledger {ledger.where}, "
                "which no longer contains it: entries were deleted or rewritten, and nothing was "
                "registered or opened. Restore the ledger from a copy (rankeval guard merge adds "
                "what is missing). Another folder (output.directory) lets the run go on, and then "
                "it is on you that looks are missing from its count"
            )
    if reason := why_lost(url, committed=config.guard.commits_ledger):
        raise LedgerError(f"{reason}. An experiment file says so with guard.commits_ledger: true")


def guard_test_part(config: ExperimentConfig, parts: DataParts) -> TestPart:
    """Register the test part, so that this experiment and later ones cannot score it by accident.

    Nothing is registered if the rows to train on are refused, or the ledger cannot be written.
    """
    guard = check_parts(config, parts)
    if guard is None or config.guard is None:
        return TestPart(parts.test, None)
    Ledger(_url_of(config.guard)).check_writable()
    test = parts.test
    registered = guard.register(test.name or "test", test, supersedes=config.guard.supersedes)
    return TestPart(test, guard, registered)


def check_parts(config: ExperimentConfig, parts: DataParts) -> Guard | None:
    """Return the guard of an experiment, if it has one, after it refused no part to train on."""
    if config.guard is None or why_unguarded(config):
        return None
    from rankeval.guard import Guard

    # The guard makes the process look into its ledger, also if that is not the one in force here.
    guard = Guard(config.guard.project or config.name, ledger=config.guard.ledger)
    url = _url_of(config.guard)
    known = discovery.may_exist(url)
    if known:  # else the process would warn of a ledger that is about to be made
        for data in filter(None, (parts.dev, parts.validation)):
            check = ContaminationCheck.current()
            check.refuse(data.X, data.y, data.qid, docid=data.docid, action="run")
    _refuse_shared(parts, Ledger(url) if known else None)
    return guard


def _refuse_shared(parts: DataParts, ledger: Ledger | None) -> None:
    """Refuse parts to train on that hold queries of the test part, before the ledger knows of it.

    A test part on record was checked by the ledger, which knows of queries that are exempt.
    """
    test = _prints(parts.test)
    entries = () if ledger is None else ledger.read().entries
    registered = [entry.body["digest"] for entry in entries if entry.kind == "register"]
    if test.digest in registered:
        return
    name = parts.test.name or "test"
    content = RegisteredContent(
        project="",
        name=name,
        digest=test.digest,
        id="",
        who="",
        time="",
        signature=Signature.of(test),
    )
    for role, data in (("training", parts.dev), ("validation", parts.validation)):
        if data is None:
            continue
        prints = _prints(data)
        shared = match_content(content, prints)
        if shared.refused:
            names = prints.names[shared.queries].tolist()
            raise GuardRefusal(
                f"run was refused, and nothing was registered: the {role} part contains queries of "
                f"the test part {name!r} ({shared.why}): in the {role} part, "
                f"{count(len(names), 'query')}: {few(names)}. Take them out of one of the two"
            )


def _prints(data: RankingData) -> Fingerprint:
    return fingerprint(data.X, data.y, data.qid, docid=data.docid)


def _url_of(guard: GuardConfig) -> str:
    if guard.ledger is None:
        return str(discovery.default_url())
    return str(discovery.ledger_url(guard.ledger))


@contextmanager
def committing(config: ExperimentConfig) -> Iterator[None]:
    """Say in the environment that this run commits the ledger, as a script in CI would."""
    if config.guard is None or not config.guard.commits_ledger or COMMITTED in os.environ:
        yield
        return
    os.environ[COMMITTED] = "1"
    try:
        yield
    finally:
        del os.environ[COMMITTED]


@dataclass(frozen=True, eq=False)
class Opened:
    """The results on the test part."""

    comparison: Comparison  # By the primary measure
    evaluations: Mapping[str, Evaluation]  # Of each ranker, by all measures
    guard: GuardFacts


def open_test(
    config: ExperimentConfig, part: TestPart, scores: Mapping[str, NDArray[np.float64]]
) -> Opened:
    """Freeze the winners, open the test part once, and compare."""
    if part.guard is None or config.guard is None:
        return _opened_unguarded(config, part.data, scores)
    guard, primary, others = part.guard, config.all_measures[0], config.all_measures[1:]
    plan = guard.freeze(
        part.registered,
        systems=dict(scores),
        measure=primary,
        secondary=others if config.baseline is None else (),
        convention=config.convention,
        fresh=config.guard.fresh,
        **_terms(config),
    )
    with committing(config):
        comparison = guard.open(plan)
    facts = GuardFacts.of(comparison, digest=part.registered.digest)
    assert facts is not None  # of a comparison that a guard opened
    # These rankings are open now: any measure of them is free, so nothing is left to refuse.
    rules = get_convention(config.convention)
    measures = parse_measures(config.all_measures, rules)
    evaluations = {}
    for name, column in scores.items():
        joined = Given(part.data.y, column, part.data.qid).join(rules)
        evaluation = score(joined, measures, name=name)
        if config.guard.fresh:  # the other queries are not open
            opened = comparison.evaluations[name]
            assert isinstance(opened, Evaluation)
            evaluation = evaluation.subset(opened.queries)
        evaluations[name] = evaluation
    return Opened(comparison, evaluations, facts)


def _opened_unguarded(
    config: ExperimentConfig, data: RankingData, scores: Mapping[str, NDArray[np.float64]]
) -> Opened:
    rules: dict[str, Any] = {"measures": config.all_measures, "convention": config.convention}
    evaluations = {
        name: evaluate(data.y, column, qid=data.qid, **rules, name=name)
        for name, column in scores.items()
    }
    section = config.comparison
    if config.baseline is None:
        (name,) = evaluations
        comparison = comparison_of_one(name, evaluations[name], alpha=section.alpha)
    else:
        comparison = compare(
            evaluations,
            measures=config.all_measures[:1],
            test=section.test,
            correction=section.correction,
            **_terms(config),
        )
    return Opened(comparison, evaluations, GuardFacts(active=False, reason=why_unguarded(config)))


def _terms(config: ExperimentConfig) -> dict[str, Any]:
    """Return the arguments that `compare` and `Guard.freeze` share."""
    claim = config.comparison.model_dump(include={"alpha", "claim", "margin"})
    return claim | {"baseline": config.baseline, "rng": config.seed}


def moved_rows(
    comparison: Comparison,
    evaluations: Mapping[str, Evaluation],
    scores: Mapping[str, NDArray[np.float64]],
    test: RankingData,
) -> MovedRows | None:
    """Return the rows that moved in the query on which the system of the headline lost most."""
    baseline = comparison.settings.baseline
    if baseline is None or comparison.table.empty:
        return None
    system = named_system(comparison)
    before, after = (evaluations[name] for name in (baseline, system))
    label = after.measure_names[0]
    gains = direction(label).sign * (after.scores[:, 0] - before.scores[:, 0])
    worst = int(np.argmin(gains))
    if not gains[worst] < -TIE_TOLERANCE:
        return None
    query = after.queries[worst]
    rows = np.flatnonzero([row_query == query for row_query in test.qid.tolist()])
    old, new = (rankdata(-scores[name][rows]) for name in (baseline, system))
    effect = _effects(label, test.y[rows], old, new, after.convention)
    first = sorted(effect, key=lambda row: -abs(effect[row]))[:SHOWN]
    moves = new[first] - old[first]
    noun, ids = ("row", rows) if test.docid is None else ("document", test.docid[rows])
    columns = {
        noun: [*map(str, ids[first])],
        "label": [f"{grade:g}" for grade in test.y[rows][first]],
    }
    for name, ranks in ((baseline, old), (system, new)):
        columns[f"rank by {name}"] = [f"{rank:g}" for rank in ranks[first]]
    columns["moved"] = [f"{'up' if move < 0 else 'down'} {abs(move):g}" for move in moves]
    columns[f"effect on {label}"] = [signed(effect[row]) for row in first]
    scored = float(before.scores[worst, 0]), float(after.scores[worst, 0])
    return MovedRows(query, *scored, pd.DataFrame(columns))


def _effects(
    label: str, y: NDArray[np.float64], old: Floats, new: Floats, rules: Convention
) -> dict[int, float]:
    discounts = np.abs(1 / np.log2(1 + new) - 1 / np.log2(1 + old))
    tried = np.argsort(-discounts, kind="stable")[:TRIED].tolist()
    rankings = [new]
    for row in tried:
        others = rankdata(np.delete(new, row))
        rankings.append(np.insert(others, row, old[row] - 0.5))
    places = np.repeat(np.arange(len(rankings)), len(y))
    rows = Given(np.tile(y, len(rankings)), -np.concatenate(rankings), places)
    now, *back = score(rows.join(rules), parse_measures([label], rules)).scores[:, 0]
    values = zip(tried, back, strict=True)
    return {row: float(now - value) for row, value in values if new[row] != old[row]}
