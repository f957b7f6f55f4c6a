"""Decide on two versions: by the evaluations that were logged of them, or by a guard's gate.

For a gate nobody evaluates the versions beforehand: that would be a look. The gate ranks its
registered queries by the scores of the two models, compares, and tells whether it accepts. No
score, no difference and no p-value comes out, so none can reach a run or a tag.

To decide on two evaluations (`decide`), no store is asked. The numbers are those of
`rankeval.compare`:

* the claim, over all queries: "better" or "not worse" by the margin, one-sided at the level of one decision, which is
  alpha over the budget;
* the floors, slice by slice: "not worse" by the floor of the slice, one-sided at the same level. A candidate that wins
  on the head queries may lose on the tail. Small slices show little: the table has the floor that
  an equal candidate passes four times in five.

The candidate is accepted if all of them are shown. Nothing is corrected for their number, since
each must be shown: a candidate for which one of them is false is accepted with the probability of
that level or less, as nearly as the test holds it (intersection-union test: Berger, 1982,
doi:10.1080/00401706.1982.10487790). The decisions on the same queries share alpha, and
`rankeval.guard.decisions.Account` counts them: a gate's by its ledger, others by `counting`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from rankeval._checks import check_number, count, few, require
from rankeval._registry import chosen
from rankeval.comparison import Comparison, compare
from rankeval.comparison.design import TOGETHER
from rankeval.comparison.record import directions, gains, kept, part_of_row
from rankeval.contamination.hashing import text_hashes
from rankeval.errors import (
    ConventionMismatch,
    InvalidInput,
    QueryIdError,
    TrackingError,
    UnknownName,
)
from rankeval.evaluation import Evaluation
from rankeval.evaluation.by_query import LEAST_QUERIES, labels_of
from rankeval.evaluation.result import data_of
from rankeval.guard import Decision, Gate
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.decisions import CLAIMS, Account, Budget, Standard
from rankeval.tracking import LoggedData
from rankeval_mlflow.delivery.connection import reason
from rankeval_mlflow.promotion.counting import (
    chosen_here,
    made_elsewhere,
    made_on,
    not_known,
    refuse_other_terms,
)
from rankeval_mlflow.promotion.registry import Alias, Decided
from rankeval_mlflow.reading.listing import entries_of
from rankeval_mlflow.reading.loading import logged_for
from rankeval_mlflow.run_names import sha256
from rankeval_mlflow.signing import predicted_by

# The difference by query up to which two evaluations of one version are the same.
SAME = 1e-6

Floors = float | Mapping[Any, float]

OneSided = Literal["better", "not_worse"]


def tested_floors(
    systems: Mapping[str, Evaluation],
    baseline: str,
    slices: Any,
    floors: Mapping[str, float],
    options: Mapping[str, Any],
) -> pd.DataFrame:
    """Test "not worse" on each slice with a floor: one comparison for all equal floors."""
    tables = []
    for floor in dict.fromkeys(floors.values()):
        compared = compare(
            systems, baseline=baseline, by=slices, claim="not_worse", margin=floor, **options
        )
        table = compared.table
        low = np.where(directions(compared) > 0, table["ci_low"], -table["ci_high"])
        columns = {
            "slice": part_of_row(compared),
            "n_queries": table["n_queries"],
            "mean_holder": table["mean_baseline"],
            "mean_candidate": table["mean_system"],
            "gain": gains(compared),
            "gain_low": low,
            "floor": floor,
            "p_value": table["p_value"],
            "passes_if_equal": table["detectable_difference"],
            "passed": compared.shown,
        }
        rows = pd.DataFrame(columns)[(table[compared.settings.grouped] != TOGETHER).to_numpy()]
        parts = rows["slice"].tolist()
        if TOGETHER not in floors:
            parts = [chosen("slice", part, parts) for part in floors if floors[part] == floor]
        tables.append(rows[rows["slice"].isin(parts)])
    table = pd.concat(tables, ignore_index=True)
    small = table[table["n_queries"] < LEAST_QUERIES]
    if len(small):
        found = ", ".join(
            f"{name!r} ({n})" for name, n in zip(small["slice"], small["n_queries"], strict=True)
        )
        least = f"{LEAST_QUERIES} {compared.settings.units} or more"
        raise InvalidInput(
            f"slices with a floor need {least}, found {found}: make larger slices, or name "
            'those that have a floor, as in floors={"tail": 0.05}'
        )
    return table


@dataclass(frozen=True)
class Rule:
    """What must be shown of a candidate."""

    measure: Any  # The measure that decides
    claim: OneSided = "better"  # The claim over all queries
    margin: float = 0.0  # Of the claim, in units of the measure
    alpha: float = 0.05  # One-sided level of all decisions on the same queries together
    test: str = "t"  # Name of the test, as in `rankeval.compare`
    slices: Any = None  # An attribute of the queries, as in `Evaluation.slices`
    floors: Floors | None = None  # The loss that must be ruled out on each slice, or on those named
    budget: int = 20  # Number of these decisions; each is tested at alpha over the budget
    run_ids: tuple[
        Any, ...
    ] = ()  # The runs whose evaluations decide, if a version has several that disagree
    # The group of each query, as in `rankeval.compare`: the claim and the floors are then tested
    # over groups.
    groups: Any = None

    def __post_init__(self) -> None:
        require(self.claim in CLAIMS, "claim", self.claim, " or ".join(map(repr, CLAIMS)))
        check_number("margin", self.margin, least=0)
        shows = self.claim == "better" or self.margin > 0
        require(
            shows,
            "margin",
            self.margin,
            "a number in units of the measure, above 0: nothing shows equality",
        )
        _ = self.floors_by_slice, self.shared  # raise for floors or a budget that are none
        require(
            self.alpha < 0.25, "alpha", self.alpha, "a one-sided level below 0.25, such as 0.05"
        )

    @property
    def shared(self) -> Budget:
        """The budget with the level that its decisions share."""
        return Budget(self.alpha, self.budget)

    @cached_property
    def floors_by_slice(self) -> dict[str, float]:
        """The floors by the text of their value; one for all slices stands under "all"."""
        both = (
            'both or neither of slices and floors, as in slices=kind_by_qid, floors={"tail": 0.05}'
        )
        require((self.slices is None) == (self.floors is None), "floors", self.floors, both)
        if self.floors is None:
            return {}
        if not isinstance(self.floors, Mapping):
            floors = {TOGETHER: self.floors}
            names = ["floors"]
        else:
            floors = {str(value): floor for value, floor in self.floors.items()}
            names = [f"floors[{value!r}]" for value in floors]
            fits = floors and len(floors) == len(self.floors) and TOGETHER not in floors
            expected = f"a loss for each slice with a floor, by different names; {TOGETHER!r} is for claim= and margin="
            require(bool(fits), "floors", self.floors, expected)
        for name, floor in zip(names, floors.values(), strict=True):
            check_number(name, floor)
            require(floor > 0, name, floor, "the smallest loss to rule out, above 0")
        return floors

    @property
    def options(self) -> dict[str, Any]:
        """The options of `rankeval.compare` that the claim and the floors share."""
        return {
            "measures": self.measure,
            "test": self.test,
            "correction": "none",
            "alpha": self.shared.level,
            "n_resamples": self.shared.n_resamples,
            "groups": self.groups,
        }


@dataclass(frozen=True, eq=False)
class Verdict:
    """What was decided on a candidate, and the numbers behind it."""

    accepted: bool  # Whether the claim, and all floors, were shown
    comparison: Comparison  # The candidate against the version in use
    # A row per slice with a floor: slice, n_queries, mean_holder, mean_candidate, gain, gain_low
    # (its one-sided lower limit), floor, p_value, passes_if_equal (the floor that an equal
    # candidate passes four times in five; nan for tests whose power is not that of Student's t) and
    # passed.
    floors: pd.DataFrame | None
    claimed: bool  # Whether the claim over all queries was shown

    @cached_property
    def reason(self) -> str:
        """The verdict in a sentence or two; a claim that is shown may still fail by a floor."""
        headline = self.comparison.headline
        failed = (
            [] if self.floors is None else self.floors["slice"][~self.floors["passed"]].tolist()
        )
        if not failed:
            return headline
        slices = f"slice {failed[0]!r}" if len(failed) == 1 else f"slices {few(failed)}"
        floor = "its floor" if len(failed) == 1 else "their floors"
        return f"{headline} {'But' if self.claimed else 'And'} a loss of {floor} is not ruled out on {slices}."


def decide(
    candidate: Evaluation,
    holder: Evaluation,
    rule: Rule,
    names: tuple[str, str] = ("candidate", "holder"),
) -> Verdict:
    """Decide whether a candidate takes the place of the version in use."""
    systems = {names[1]: holder, names[0]: candidate}
    compared = compare(
        systems, baseline=names[1], claim=rule.claim, margin=rule.margin, **rule.options
    )
    if len(compared.table) > 1:
        several = ", ".join(compared.table["measure"])
        raise InvalidInput(
            f"measure is {str(rule.measure)!r}, which names several ({several}): one decides"
        )
    claimed = bool(compared.shown.all())
    floors = None
    if rule.floors_by_slice:
        floors = tested_floors(systems, names[1], rule.slices, rule.floors_by_slice, rule.options)
    accepted = claimed and (floors is None or bool(floors["passed"].all()))
    return Verdict(accepted, compared, floors, claimed)


@dataclass(frozen=True, eq=False)
class Logged:
    """A version, an evaluation of it, and the run that holds it."""

    version: str
    evaluation: Evaluation
    run: Any = field(repr=False)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return str(self.run.info.run_id)

    @cached_property
    def content(self) -> tuple[str, Any]:
        """The judgments and the rules, which evaluations must share to be compared."""
        return self.evaluation.judgments_digest, self.evaluation.convention.card()

    def scores(self, measure: Any) -> Any:
        """Return scores and weights by query; None if the evaluation lacks the measure."""
        evaluation = self.evaluation
        with contextlib.suppress(UnknownName):
            scores = evaluation.per_query[labels_of(measure, evaluation.measure_names)]
            return scores.assign(weight=1.0 if evaluation.weights is None else evaluation.weights)
        return None

    def agrees(self, other: Logged, measure: Any) -> bool:
        """Return whether two evaluations agree by a measure, up to `SAME` on each query."""
        mine = self.scores(measure)
        theirs = other.scores(measure)
        if (
            mine is None
            or theirs is None
            or self.content != other.content
            or not mine.index.equals(theirs.index)
        ):
            return False
        return np.allclose(mine.to_numpy(), theirs.to_numpy(), rtol=0, atol=SAME, equal_nan=True)


def by_evaluations(
    alias: Alias, version: str, holder: str | None, rule: Rule, role: str
) -> Decided:
    """Decide by the logged evaluations of two versions; a first version is not compared."""
    logged_candidate = _logged(alias, version, rule, role)
    logged_holder = None if holder is None else _logged(alias, holder, rule, role, logged_candidate)
    data = _data(logged_candidate, role)
    named_runs = _named_runs(rule, logged_candidate, logged_holder)
    if logged_holder is None:
        labels_of(rule.measure, logged_candidate.evaluation.measure_names)
        reason = f"It is the first version with this alias, so nothing was compared.{named_runs}"
        return Decided(True, reason, data, _facts(rule, role, logged_candidate))
    names = (f"{alias.model} v{version}", f"{alias.model} v{holder}")
    try:
        verdict = decide(logged_candidate.evaluation, logged_holder.evaluation, rule, names)
    except (ConventionMismatch, QueryIdError) as error:
        call = f'rankeval_mlflow.log(ev, role="{role}", model_version="{alias.model}/VERSION")'
        raise error.having(
            remedy=f"evaluate both versions on the same frozen content by the same rules, and log each with {call}"
        ) from error
    evaluation = logged_candidate.evaluation
    request_hash = _request_hash(rule, verdict, logged_candidate, logged_holder)
    past = made_on(alias, evaluation.queries, evaluation.judgments_digest)
    refuse_other_terms(past, rule.shared)
    known = next((decision for decision in past if decision.question == (request_hash,)), None)
    entry = {"name": names[0], "gate": str(alias), "baseline": names[1]}
    account = Account(rule.shared, str(alias), "these queries", tuple(past))
    decision = (
        account.decide(lambda: verdict.accepted, entry)
        if known is None
        else account.repeat(known, entry)
    )
    if known is None:
        reason = f"{verdict.reason} This is {decision.counted} on these queries, tested at {rule.shared.level:.2g}."
        reason += f" {not_known(alias)}{chosen_here(alias, past, holder)}{named_runs}"
    else:
        twin = ""
        if known.name != names[0]:
            twin = f" on {known.name}, which has the same scores by query"
        reason = f"Decided before{twin}, so it is free ({decision.counted}), in run {known.run_id}: {known.reason}"
    facts = _facts(rule, role, logged_candidate, logged_holder) | {
        "question": request_hash,
        "budget": _counts(decision),
    }
    facts["budget"]["not_known"] = not_known(alias)
    facts["numbers"] = _plain(verdict.comparison.table)[0]
    if verdict.floors is not None:
        facts["floors"] = _plain(verdict.floors)
    if rule.groups is not None:
        facts["rule"]["groups"] = verdict.comparison.settings.sized(facts["numbers"]["n_queries"])
    return Decided(
        decision.accepted, reason, data, facts, verdict.comparison, verdict.floors, decision
    )


def untested(_alias: Alias, _version: str, _holder: str | None) -> Decided:
    """Compare nothing, for an override."""
    return Decided(False, "Nothing was compared.", None, {})


def _request_hash(rule: Rule, verdict: Verdict, candidate: Logged, holder: Logged) -> str:
    """Return a hash of the rule, and of the scores by query that it is decided by."""
    floors = []
    if verdict.floors is not None:
        floors = _plain(verdict.floors.drop(columns=["gain_low", "p_value", "passed"]))
    parts = [json.dumps([rule.claim, float(rule.margin), rule.test, floors]).encode()]
    for evaluation in (candidate.evaluation, holder.evaluation):
        scores = evaluation.per_query[labels_of(rule.measure, evaluation.measure_names)]
        weights = evaluation.weights
        parts += [text_hashes(evaluation.queries).tobytes(), scores.to_numpy().tobytes()]
        parts += [",".join(scores.columns).encode(), b"" if weights is None else weights.tobytes()]
    grouped = kept(verdict.comparison).groups
    if grouped is not None:
        parts.append(grouped.numbers.tobytes())
    return sha256(b"".join(sha256(part).encode() for part in parts))


def _counts(decision: Decision) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in ("counted", "remaining", "budget", "is_new")}


def _facts(
    rule: Rule, role: str, candidate: Logged, holder: Logged | None = None
) -> dict[str, Any]:
    evaluation = candidate.evaluation
    terms = {name: getattr(rule, name) for name in ("claim", "margin", "alpha", "budget", "test")}
    terms |= {"measure": str(rule.measure), "level": rule.shared.level}
    terms["floors"] = rule.floors_by_slice
    return {
        "rule": terms,
        "role": role,
        "convention": evaluation.convention.card(),
        "judgments": evaluation.judgments_digest,
        "n_queries": evaluation.n_queries,
        "candidate_run": candidate.run_id,
        "holder_run": None if holder is None else holder.run_id,
        "named_runs": list(rule.run_ids),
    }


def _logged(
    alias: Alias, version: str, rule: Rule, role: str, candidate: Logged | None = None
) -> Logged:
    """Return the evaluation that decides: the named one, or the first of equal ones.

    The first, since the same question then stays the same if a version is evaluated once more.
    """
    spelt = f"{alias.model}/{version}"
    who = f"version {version} of {alias.model}{f', which has the alias {alias.name} now,' if candidate else ''}"
    try:
        with alias.translating_errors(f"read the evaluation of models:/{spelt}"):
            logged = logged_for(
                alias.client, alias.client.get_model_version(alias.model, version), role
            )
    except InvalidInput as error:
        raise InvalidInput(
            f"{who} has no evaluation of role {role!r} to decide by ({error})",
            remedy=f'log one: rankeval_mlflow.log(ev, role="{role}", model_version="{spelt}")',
        ) from error
    entries = [Logged(version, evaluation, run) for run, evaluation in logged]
    entries = [entry for entry in entries if entry.run_id in rule.run_ids] or entries
    entries = [entry for entry in entries if entry.scores(rule.measure) is not None] or entries[:1]
    if candidate is not None:
        entries = [entry for entry in entries if entry.content == candidate.content] or entries
    first = entries[0]
    if not all(first.agrees(entry, rule.measure) for entry in entries[1:]):
        means = []
        for entry in entries[:5]:
            label = entry.scores(rule.measure).columns[0]
            means.append(f"{entry.evaluation.aggregate()[label]:.4f} in run {entry.run_id}")
        raise InvalidInput(
            f"{who} has evaluations of role {role!r} that disagree by {rule.measure}, or are of other data: "
            f"{', '.join(means)}",
            argument="run_id",
            remedy=f'name the one that decides, as in run_id="{first.run_id}", or delete the wrong run',
        )
    return first


def _named_runs(rule: Rule, candidate: Logged, holder: Logged | None) -> str:
    """Say which evaluations the caller named; raise for a run that is none of these versions."""
    entries = [candidate] if holder is None else [candidate, holder]
    run_ids = {entry.run_id for entry in entries}
    versions = " or ".join(f"version {entry.version}" for entry in entries)
    expected = f"a run with an evaluation of {versions}, one for each"
    for run_id in rule.run_ids:
        require(run_id in run_ids, "run_id", run_id, expected)
    return "".join(
        f" The caller named run {entry.run_id} as the evaluation of version {entry.version}."
        for entry in entries
        if entry.run_id in rule.run_ids
    )


def _data(logged: Logged, role: str) -> LoggedData:
    described = data_of(logged.evaluation, role)
    named_data = (
        replace(described, name=entry.data, digest=entry.content.digest)
        for entry in entries_of(logged.run)
        if entry.content.role == role
    )
    return next(named_data, described)


def _plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as JSON: numbers that are not finite are words, as in `Comparison.to_json`."""

    def plain(value: Any) -> Any:
        value = value.item() if hasattr(value, "item") else value
        return repr(value) if isinstance(value, float) and not np.isfinite(value) else value

    return [
        {str(key): plain(value) for key, value in row.items()} for row in table.to_dict("records")
    ]


def by_gate(
    alias: Alias,
    version: str,
    holder: str | None,
    gate: Gate,
    role: str,
    systems: tuple[Any | None, Any | None],
) -> Decided:
    """Let a gate decide; a first version is compared with the gate's own baseline.

    The systems are scores or runs of candidate and holder; None: what the models predict.
    """
    candidate_system, holder_system = systems
    collection = gate.collection
    terms = gate.terms
    if candidate_system is None:
        candidate_system = version_scores(alias, version, collection)
    if holder_system is None and holder is not None:
        holder_system = version_scores(alias, holder, collection)
    name = f"{alias.model} v{version}"
    baseline_name = "the baseline that the caller gave"
    if holder is not None:
        baseline_name = f"{alias.model} v{holder}"
    decision = gate.decide(
        name, candidate_system, baseline=holder_system, baseline_name=baseline_name
    )
    against = decision.against or Standard(decision.baseline, "")
    baseline = decision.baseline
    if holder_system is None:
        baseline = f"the gate's baseline {baseline!r}"
    level = terms.shared.level
    claimed = terms.words(f"{baseline} ({against.on_record})")
    claim = f"{'' if decision.accepted else 'not '}shown to be {claimed}, one-sided at {level:.2g}"
    from_caller = [
        side
        for side, system in zip(("candidate", "holder"), systems, strict=True)
        if system is not None
    ]
    standard = {
        "name": decision.baseline,
        "ranking": against.output,
        "since": against.time,
        "by": against.who,
    }
    facts = {
        "scores_given_by_caller": from_caller,
        "gate": {"name": gate.name, "claim": claim},
        "baseline": standard,
        "rule": {**terms.content(), "level": level, "baseline": decision.baseline},
        "role": role,
        "convention": terms.convention.card(),
        "judgments": collection.digest,
        "n_queries": collection.n_queries,
        "ledger": collection.ledger,
        "budget": _counts(decision),
    }
    data = LoggedData(
        collection.name, collection.digest, role, collection.n_rows, collection.n_queries
    )
    verdict = "accepts" if decision.accepted else "does not accept"
    text = f"Gate {gate.name!r} on {collection.name!r} {verdict} it; {decision.counted}. It is {claim}."
    if not decision.is_new:
        text += " The same rankings were decided on before, or are equal, which is free."
    if from_caller:
        text += f" The caller gave the scores of the {' and the '.join(from_caller)}; no model was asked for them."
    if decision.n_exposed:
        text += (
            f" {count(decision.n_exposed, 'query')} of the collection were looked at outside this gate, so its "
            "level may be exceeded."
        )
    try:
        past = made_on(alias, collection.loaded().prints.names_by_content, collection.digest)
        text += made_elsewhere(alias, past)
    except TrackingError as error:  # the gate counts in its ledger
        text += f" Whether other decisions were made on these queries is not known: {error}."
    return Decided(decision.accepted, text, data, facts, decision=decision, claim=claim)


def version_scores(alias: Alias, version: str, collection: RegisteredCollection) -> Any:
    """Return the scores that a version's model predicts for a registered collection."""
    X = collection.content.X
    if X is None:
        raise InvalidInput(
            f"{collection.name!r} was registered without features, so no model can score it: give the "
            "rankings by candidate= and holder="
        )
    uri = f"models:/{alias.model}/{version}"
    cause = None
    try:
        predicted = np.asarray(predicted_by(uri, X), dtype=np.float64)
        scores = predicted[:, 0] if predicted.ndim == 2 and predicted.shape[1] == 1 else predicted
        if scores.shape == (collection.n_rows,):
            return scores
        rows = count(collection.n_rows, "row")
        why = f"predicts an array of shape {predicted.shape} for the {rows} of {collection.name!r}"
    except Exception as error:  # noqa: BLE001 - a model raises whatever its own library raises
        why = f"gives no scores for {collection.name!r} ({type(error).__name__}: {reason(error)})"
        cause = error
    raise InvalidInput(
        f"{uri} {why}", remedy="give its scores, one a row, by candidate= or holder="
    ) from cause
