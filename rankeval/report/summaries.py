"""Put results into plain values and sentences, without markup; pages, terminal and tracker share them.

Every report names the facts on the guard: the ledger, its head, the plan, its standing, and the
looks. A page has the whole head as JSON too, where ``rankeval guard verify --report`` finds it
(`rankeval.ledger.graph`): only so does a report show later that entries were deleted or rewritten.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import count, few
from rankeval._display import view_of
from rankeval._visible import LimitNote, LooksNote, escaping
from rankeval.collection.convention import COUNTED_AS, RULE_WORDS, VALUE_WORDS
from rankeval.comparison import Comparison
from rankeval.comparison.headline import KeyNumber
from rankeval.evaluation import Evaluation
from rankeval.evaluation.lacking import undefined_notes
from rankeval.evaluation.result import aggregates, info_of, intervals, weights_note
from rankeval.guard.standings import EXPLORATORY, FIRST, SECONDARY, STATUS_OF
from rankeval.render.tables import DASH, Table, number, p_value, signed
from rankeval.tracking import LoggedData

MOST_KEY_MEANS = 3
"""Measures whose means a page of an evaluation has at its top."""

WARNED = {
    FIRST: "the first look of this project, but others had looked at the test part before this comparison was frozen",
    EXPLORATORY: "the test part had been opened before this comparison was frozen",
    SECONDARY: "all these rankings had been opened before",
}
"""Each standing but confirmatory -> why the result can be trusted less."""


@explained
@dataclass(frozen=True)
class GuardFacts:
    """Facts on the guard of an experiment, or of one comparison."""

    active: bool
    reason: str = ""  # Why there was no guard, else empty
    project: str = ""
    ledger: str = ""
    head: str = ""
    plan: str = ""
    test: str = ""  # The name of the registered part
    digest: str = ""  # Of the registered content
    looks: int = 0  # Of the project at this content, up to this plan
    looks_added: int = 0  # By this run
    elsewhere: int = 0  # Looks of other projects
    standing: str = "unguarded"  # Or "confirmatory", or one of `WARNED`
    later: int = 0  # Looks of the project after the plan was opened

    @classmethod
    def of(cls, comparison: Comparison, *, digest: str = "") -> GuardFacts | None:
        """Return the facts on the guard that opened a comparison; None if none did."""
        if comparison.opening is None:
            return None
        return cls(active=True, digest=digest, standing=comparison.standing, **comparison.opening)

    @property
    def status(self) -> str:
        """The status of the standing, one of two words, or "unguarded"."""
        return STATUS_OF.get(self.standing, self.standing)

    @property
    def warning(self) -> str:
        """Why the result can be trusted less, as a sentence; empty if it is confirmatory."""
        return f"{self.status.upper()}: {WARNED[self.standing]}." if self.standing in WARNED else ""

    @property
    def line(self) -> str:
        """All that a reader needs to check the standing, as a sentence; empty without a guard."""
        if not self.active:
            return ""
        return f"Guard: {self.status} as of head {self.head}; plan {self.plan}; {self.looked}; ledger {self.ledger}."

    @property
    def looked(self) -> str:
        """How often the test part was looked at."""
        later = f" up to this plan, {self.later:,} later" if self.later else ""
        looks = count(self.looks, "look")
        return f"{looks} of project {self.project} at {self.test}{later}, {self.elsewhere:,} of other projects"

    def tags(self) -> dict[str, str]:
        """Return the tags of a tracked run: the standing, and the facts on the guard."""
        named = {name: str(getattr(self, name)) for name in ("head", "plan", "looks", "elsewhere")}
        facts = {"ledger": self.ledger or self.reason, **named}
        return {"rankeval.standing": self.status} | {
            f"rankeval.guard.{name}": value for name, value in facts.items()
        }


@escaping
@dataclass(frozen=True)
class Candidate:
    """One ranker of an experiment: its search, its chosen parameters, its scores."""

    name: str
    estimator: str  # The import path of its class
    params: Mapping[str, Any]  # The chosen ones, fixed and searched
    # A row for each point of the grid: its parameters, mean and standard deviation over the folds
    search: pd.DataFrame
    dev: Evaluation  # Out-of-fold scores
    test: Evaluation
    seconds: float  # Time of the training, also if it was in an earlier run
    reused: bool  # Whether the result came from the cache
    digest: str  # SHA-256 of everything that determines the result
    n_iterations: int | None = None  # Those that it uses, if it stopped early
    findings: tuple[str, ...] = ()  # Of the checks of its fit on dev


@escaping
@dataclass(frozen=True)
class MovedRows:
    """The rows that moved in the query on which the ranker of the headline lost most."""

    query: Any
    before: float  # Its primary score by the baseline
    after: float  # Its primary score by the ranker
    table: pd.DataFrame  # Texts, a row per row of the query, those with the largest effect first


@escaping
@dataclass(frozen=True)
class ExperimentFacts:
    """The content of the report of an experiment."""

    name: str
    primary: str
    baseline: str | None  # The ranker that the others are compared with; None for a single ranker
    candidates: tuple[Candidate, ...]  # In the order of the experiment file
    comparison: Comparison  # On the test part by the primary measure
    # By the other measures. Its p-values are not shown: the plan promised none.
    secondary: Comparison | None
    guard: GuardFacts
    # The parts with their digests: dev, validation if early stopping watched one, test
    data: tuple[LoggedData, ...]
    config: str  # The experiment file with all defaults, as YAML
    versions: Mapping[str, str]  # Of Python and the libraries that the results depend on
    notes: tuple[str, ...] = ()  # On the data
    moved: MovedRows | None = None  # None if there is no baseline, or no query lost
    # Attribute of the queries -> a row for each value, the worst first: its number of queries, each
    # ranker's score, and the difference of the best one to the baseline
    slices: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def n_trained(self) -> int:
        """Number of candidates trained in this run; the results of the others were cached."""
        return sum(not candidate.reused for candidate in self.candidates)


def experiment_text(
    facts: ExperimentFacts, *, verbose: bool = False, width: int | None = None
) -> str:
    """Write the result of an experiment for a terminal: findings, rankers, standing, and what limits the result."""
    notes = unguarded_notes(facts)
    findings = [*facts.comparison.findings, *worst_slices(facts)]
    paragraphs = ["\n".join(map(_filled, findings)), _rankers(facts).to_text(width=width)]
    if verbose:
        compared = view_of(replace(facts.comparison, notes=notes))
        paragraphs.append(compared.to_text(width=width, lines=None))
    further = fit_notes(facts) if verbose else limits_of(facts)
    paragraphs += [_filled(f"* {note}") for note in further]
    paragraphs.append(standing_words(facts, verbose=verbose))
    paragraphs += [_filled(f"Data: {note}.") for note in facts.notes]
    return "\n\n".join(paragraphs)


def worst_slices(facts: ExperimentFacts) -> list[str]:
    """Return a sentence on the worst slice by each attribute."""
    sentences = []
    for name, frame in facts.slices.items():
        worst, last = frame.iloc[0], frame.columns[-1]
        by = f"{last} {signed(worst[last])}" if facts.baseline else f"mean {worst[last]:.4f}"
        size = count(int(worst["queries"]), "query")
        sentences.append(f"Worst {name}: {worst.iloc[0]}, {by} {facts.primary} on {size}.")
    return sentences


def _filled(sentence: str) -> str:
    return textwrap.fill(sentence, 80, break_long_words=False, break_on_hyphens=False)


def _rankers(facts: ExperimentFacts) -> Table:
    frame, table = candidate_frame(facts).iloc[:, :3], facts.comparison.table
    if len(table):
        primary = table[table["measure"] == facts.primary].set_index("system")
        compared = primary.reindex([candidate.name for candidate in facts.candidates])
        frame["difference"] = compared["difference"].array
        frame["p adjusted"] = compared["p_adjusted"].array
    return Table(frame, formats={"difference": signed, "p adjusted": p_value})


def candidate_frame(facts: ExperimentFacts) -> pd.DataFrame:
    """Return one row per ranker: out-of-fold mean on dev, means on test, time of training."""
    stopped = any(candidate.n_iterations is not None for candidate in facts.candidates)
    rows = []
    for each in facts.candidates:
        row: dict[str, Any] = {"ranker": each.name}
        if each.name == facts.baseline:
            row["ranker"] += " (baseline)"
        row[f"dev {facts.primary}"] = float(each.dev.aggregate()[facts.primary])
        row |= {f"test {label}": float(value) for label, value in each.test.aggregate().items()}
        if stopped:
            row["iterations"] = DASH if each.n_iterations is None else str(each.n_iterations)
        row["training"] = "cached" if each.reused else f"{each.seconds:.1f} s"
        rows.append(row)
    return pd.DataFrame(rows)


def unguarded_notes(facts: ExperimentFacts) -> tuple[str, ...]:
    """Return the notes of the comparison but the one on looks and ledger, which the line on the guard says in full."""
    return tuple(note for note in facts.comparison.notes if not isinstance(note, LooksNote))


def limits_of(facts: ExperimentFacts) -> list[str]:
    """Return the notes that limit how far the numbers can be trusted."""
    return [note for note in facts.comparison.notes if isinstance(note, LimitNote)]


def fit_notes(facts: ExperimentFacts) -> list[str]:
    """Return the findings of the checks of every fit, each with the name of its ranker."""
    rankers = facts.candidates
    return [f"{ranker.name}, {finding}" for ranker in rankers for finding in ranker.findings]


def standing_words(facts: ExperimentFacts, *, verbose: bool = False) -> str:
    """Say what was trained, how many looks were added, and how far the result can be believed."""
    guard = facts.guard
    trained = f"This run: {count(facts.n_trained, 'ranker')} trained"
    fit = ""
    if (notes := fit_notes(facts)) and not verbose:
        fit = f" The report has {count(len(notes), 'note')} on the fit."
    if not guard.active:
        return _filled(f"NOT GUARDED. {guard.reason} {trained}.{fit}")
    words = f"{guard.warning} {trained}, {count(guard.looks_added, 'look')} added.".lstrip()
    return (
        f"{words}\n{guard.line}"
        if verbose
        else _filled(f"{words}{fit} Guard: {guard.status}; {guard.looked}.")
    )


def key_means(evaluation: Evaluation) -> list[KeyNumber]:
    """Return the numbers that a reader of an evaluation sees first: means, and how many queries."""
    limits, numbers = intervals(evaluation), []
    for label, value in [*aggregates(evaluation).items()][:MOST_KEY_MEANS]:
        ends = limits.get(label, (math.nan, math.nan))
        known = not any(map(math.isnan, ends))
        detail = f"95% interval {number(ends[0])} to {number(ends[1])}" if known else ""
        numbers.append(KeyNumber(number(value), label, detail))
    detail = weights_note(evaluation)
    if not detail and evaluation.judged_share < 1:
        detail = f"{evaluation.judged_share:.1%} of the ranked documents are judged"
    return [*numbers, KeyNumber(f"{evaluation.n_queries:,}", "queries", detail)]


def coverage_sentences(evaluation: Evaluation) -> list[str]:
    """Tell a reader of the means how many queries or rows were left out, undefined or tied."""
    sentences = [f"{count(evaluation.n_queries, 'query')} counted."]
    for reason, queries in evaluation.excluded.items():
        if len(queries):
            sentences.append(
                f"{count(len(queries), 'query')} left out ({reason.replace('_', ' ')}): {few(queries)}."
            )
    missing = evaluation.facts.totals().get("missing", 0)
    if missing and evaluation.convention.missing in COUNTED_AS:
        sentences.append(
            f"{count(missing, 'query')} missing from the run: {COUNTED_AS[evaluation.convention.missing]}."
        )
    tied = count(int(evaluation.facts.query_counts["tied"].sum()), "ranked row")
    shared = (
        f"{tied} ({evaluation.tied_share:.1%}) share their score with another row of their query."
    )
    sentences.append(shared if evaluation.tied_share else "No equal scores within a query.")
    if evaluation.judged_share < 1:
        sentences.append(f"{evaluation.judged_share:.1%} of the ranked rows are judged.")
    notes = [*undefined_notes(evaluation), *info_of(evaluation).values()]
    return sentences + [f"{note[0].upper()}{note[1:]}." for note in notes]


def card_rows(evaluation: Evaluation) -> list[tuple[str, str, str]]:
    """Return the convention card: each rule in words, its value, and the number of rows or queries that it affected."""
    touched = {rule: f"{n:,}" for rule, n in evaluation.facts.totals().items()}
    return [
        (RULE_WORDS.get(rule, rule), _in_words(rule, value), touched.get(rule, ""))
        for rule, value in evaluation.convention.card().items()
        if value is not None and value != {}
    ]


def _in_words(rule: str, value: Any) -> str:
    if not isinstance(value, Mapping):
        return VALUE_WORDS.get(rule, {}).get(str(value), str(value))
    families = []
    for family, bound in value.items():
        parameters = ", ".join(f"{name}={parameter}" for name, parameter in bound.items())
        families.append(f"{family}({parameters})")
    return "; ".join(families)
