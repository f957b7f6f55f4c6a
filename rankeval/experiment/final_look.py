"""Guard the test part before anything is trained, and open it for the winners at the end.

First the ledger is tried, the other parts are held against it, and the test part is registered. At
the end it is opened through the guard, or without one if the experiment switches it off. Then the
rows are found that moved in the query on which a ranker lost most.

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
from rankeval.guard.records import COMMITTED, why_lost
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
    """Raise if the ledger cannot be read or lost entries, or a look would be lost with this machine.

    Nothing is written. Entries were lost if a report in the folder of the results names a head of
    this ledger that it no longer holds: the run would write over the only file that shows it.
    """
    if config.guard is None or why_unguarded(config):
        return
    url = _url_of(config.guard)
    ledger = Ledger(url)
    # The reports first: another run may add an entry and its report between the two readings.
    heads = {
        one: heads_in(one, ledger=ledger.where) for one in sorted(config.directory.glob("*.html"))
    }
    kept = ledger.read() if discovery.may_exist(url) else None
    for report, named in heads.items():
        if lost := [head[:12] for head in named if kept is None or not kept.holds(head)]:
            raise LedgerError(
                f"{report} was written at the head {few(lost)} of the ledger {ledger.where}, which no longer holds it: "
                "entries were deleted or rewritten, and nothing was registered or opened. Restore the ledger from a "
                "copy (rankeval guard merge adds what is missing). Another folder (output.directory) lets the run go "
                "on, and then it is on you that looks are missing from its count"
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
    registered = guard.register(
        parts.test.name or "test", parts.test, supersedes=config.guard.supersedes
    )
    return TestPart(parts.test, guard, registered)


def check_parts(config: ExperimentConfig, parts: DataParts) -> Guard | None:
    """Return the guard of an experiment, None if it has none, once it refuses no part to train on."""
    if config.guard is None or why_unguarded(config):
        return None
    from rankeval.guard import Guard

    # The guard makes the process look into its ledger, also if that is not the one in force here.
    guard = Guard(config.guard.project or config.name, ledger=config.guard.ledger)
    url = _url_of(config.guard)
    known = discovery.may_exist(url)
    if known:  # else the process would warn of a ledger that is about to be made
        for data in filter(None, (parts.dev, parts.validation)):
            ContaminationCheck.current().refuse(
                data.X, data.y, data.qid, docid=data.docid, action="run"
            )
    _refuse_shared(parts, Ledger(url) if known else None)
    return guard


def _refuse_shared(parts: DataParts, ledger: Ledger | None) -> None:
    """Refuse parts to train on that hold queries of the test part, before the ledger knows of it.

    If it is on record, the ledger was asked already, which knows of queries that are exempt.
    """
    test = _prints(parts.test)
    entries = () if ledger is None else ledger.read().entries
    if any(one.kind == "register" and one.body["digest"] == test.digest for one in entries):
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
        found = match_content(content, prints)
        if found.refused:
            names = prints.names[found.queries].tolist()
            raise GuardRefusal(
                f"run was refused, and nothing was registered: the {role} part holds queries of the test part {name!r} "
                f"({found.why}): in the {role} part, {count(len(names), 'query')}: {few(names)}. Take them out of one "
                "of the two"
            )


def _prints(data: RankingData) -> Fingerprint:
    return fingerprint(data.X, data.y, data.qid, docid=data.docid)


def _url_of(guard: GuardConfig) -> str:
    return str(
        discovery.default_url() if guard.ledger is None else discovery.ledger_url(guard.ledger)
    )


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
    """The comparison by the primary measure, the evaluation of each ranker by all measures, and facts on the guard."""

    comparison: Comparison
    evaluations: Mapping[str, Evaluation]
    guard: GuardFacts


def open_test(
    config: ExperimentConfig, part: TestPart, scores: Mapping[str, NDArray[np.float64]]
) -> Opened:
    """Freeze the winners, open the test part once, and compare."""
    data, tested = part.data, config.comparison
    asked = tested.model_dump(include={"alpha", "claim", "margin"}) | {
        "baseline": config.baseline,
        "rng": config.seed,
    }
    if part.guard is None or config.guard is None:
        how: dict[str, Any] = {
            "qid": data.qid,
            "measures": config.all_measures,
            "convention": config.convention,
        }
        evaluations = {
            name: evaluate(data.y, one, **how, name=name) for name, one in scores.items()
        }
        if config.baseline is None:
            (name,) = evaluations
            comparison = comparison_of_one(name, evaluations[name], alpha=tested.alpha)
        else:
            asked |= {
                "test": tested.test,
                "correction": tested.correction,
                "measures": config.all_measures[:1],
            }
            comparison = compare(evaluations, **asked)
        return Opened(
            comparison, evaluations, GuardFacts(active=False, reason=why_unguarded(config))
        )
    guard = part.guard
    plan = guard.freeze(
        part.registered,
        systems=dict(scores),
        measure=config.all_measures[0],
        secondary=config.all_measures[1:] if config.baseline is None else (),
        convention=config.convention,
        fresh=config.guard.fresh,
        **asked,
    )
    with committing(config):
        comparison = guard.open(plan)
    facts = GuardFacts.of(comparison, digest=part.registered.digest)
    assert facts is not None  # of a comparison that a guard opened
    # These rankings are open now: any measure of them is free, so nothing is left to refuse.
    rules = get_convention(config.convention)
    wanted = parse_measures(config.all_measures, rules)
    evaluations = {
        n: score(Given(data.y, one, data.qid).join(rules), wanted, name=n)
        for n, one in scores.items()
    }
    if config.guard.fresh:  # the others are not open
        opened = {
            name: one for name, one in comparison.evaluations.items() if isinstance(one, Evaluation)
        }
        evaluations = {name: one.subset(opened[name].queries) for name, one in evaluations.items()}
    return Opened(comparison, evaluations, facts)


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
    rows = np.flatnonzero([one == query for one in test.qid.tolist()])
    old, new = (rankdata(-scores[name][rows]) for name in (baseline, system))
    effect = _effects(label, test.y[rows], old, new, after.convention)
    first = sorted(effect, key=lambda row: -abs(effect[row]))[:SHOWN]
    ids = rows if test.docid is None else test.docid[rows]
    table = pd.DataFrame(
        {
            "row" if test.docid is None else "document": str(ids[row]),
            "label": f"{test.y[rows[row]]:g}",
            f"rank by {baseline}": f"{old[row]:g}",
            f"rank by {system}": f"{new[row]:g}",
            "moved": f"{'up' if new[row] < old[row] else 'down'} {abs(new[row] - old[row]):g}",
            f"effect on {label}": signed(effect[row]),
        }
        for row in first
    )
    return MovedRows(query, float(before.scores[worst, 0]), float(after.scores[worst, 0]), table)


def _effects(
    label: str, y: NDArray[np.float64], old: Floats, new: Floats, rules: Convention
) -> dict[int, float]:
    discounts = np.abs(1 / np.log2(1 + new) - 1 / np.log2(1 + old))
    tried = np.argsort(-discounts, kind="stable")[:TRIED]
    rankings = [new]
    for row in tried:
        others = rankdata(np.delete(new, row))
        rankings.append(np.insert(others, row, old[row] - 0.5))
    places = np.repeat(np.arange(len(rankings)), len(y))
    given = Given(np.tile(y, len(rankings)), -np.concatenate(rankings), places)
    now, *back = score(given.join(rules), parse_measures([label], rules)).scores[:, 0]
    return {
        int(row): float(now - one)
        for row, one in zip(tried, back, strict=True)
        if new[row] != old[row]
    }
