"""Decide on two versions: by the evaluations that were logged of them, or by a guard's gate.

For a gate nobody evaluates the versions beforehand: that would be a look. The gate ranks its registered queries by the
scores of the two models, compares, and tells whether it accepts. No score, no difference and no p-value comes out, so
none can reach a run or a tag.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval._checks import count
from rankeval.errors import ConventionMismatch, InvalidInput, QueryIdError
from rankeval.evaluation.choosing import labels_of
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.gate import Gate
from rankeval.tracking import LoggedData
from rankeval_mlflow.delivery.connection import reason
from rankeval_mlflow.packing.evaluation import judged_data
from rankeval_mlflow.promotion.registry import Alias, asking
from rankeval_mlflow.promotion.rules import Rule, decide
from rankeval_mlflow.reading.evaluations import logged_for

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation
    from rankeval.guard.gate_terms import Decision


@dataclass(frozen=True, eq=False)
class Decided:
    """What was decided on a candidate, and all that its record holds.

    Attributes
    ----------
    accepted : bool
        Whether the alias may move.
    reason : str
        Why, in a sentence or a few.
    data : LoggedData
        The test content.
    facts : dict
        The rule, the numbers and the runs, as JSON can hold them.
    comparison, floors, decision
        As in `Promotion`.
    """

    accepted: bool
    reason: str
    data: LoggedData
    facts: dict[str, Any]
    comparison: Comparison | None = None
    floors: pd.DataFrame | None = None
    decision: Decision | None = None


@dataclass(frozen=True, eq=False)
class Logged:
    """A version, its evaluation, and the run that holds it."""

    version: str
    evaluation: Evaluation
    run: Any = field(repr=False)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return str(self.run.info.run_id)


def by_evaluations(alias: Alias, version: str, holder: str | None, rule: Rule, role: str) -> Decided:
    """Decide by the evaluations that were logged of two versions.

    Parameters
    ----------
    alias : Alias
        The alias.
    version : str
        The candidate.
    holder : str or None
        The version in use; None if there is none, and the candidate may be the first.
    rule : Rule
        What must be shown.
    role : str
        The role of the evaluations.
    """
    candidate = _logged(alias, version, role)
    data = _data(candidate, role)
    if holder is None:
        labels_of(rule.measure, candidate.evaluation.measure_names)
        reason = "It is the first version with this alias, so nothing was compared."
        return Decided(True, reason, data, _facts(rule, role, candidate))
    used = _logged(alias, holder, role)
    names = (f"{alias.model} v{version}", f"{alias.model} v{holder}")
    try:
        verdict = decide(candidate.evaluation, used.evaluation, rule, names)
    except (ConventionMismatch, QueryIdError) as error:
        raise type(error)(f"{error}. {_remedy(alias, role)}") from error
    facts = _facts(rule, role, candidate, used)
    facts["numbers"] = _plain(verdict.comparison.table)[0]
    if verdict.floors is not None:
        facts["floors"] = _plain(verdict.floors)
    return Decided(verdict.accepted, verdict.reason, data, facts, verdict.comparison, verdict.floors)


def _facts(rule: Rule, role: str, candidate: Logged, used: Logged | None = None) -> dict[str, Any]:
    evaluation = candidate.evaluation
    return {
        "rule": {
            "measure": str(rule.measure),
            "claim": rule.claim,
            "margin": rule.margin,
            "alpha": rule.alpha,
            "test": rule.test,
            "floors": rule.floors_by_slice,
        },
        "role": role,
        "convention": evaluation.convention.card(),
        "judgments": evaluation.judgments_digest,
        "n_queries": evaluation.n_queries,
        "candidate_run": candidate.run_id,
        "holder_run": None if used is None else used.run_id,
    }


def _logged(alias: Alias, version: str, role: str) -> Logged:
    uri = f"models:/{alias.model}/{version}"
    with _with_remedy(alias, version, role), asking(alias.uri, f"read the evaluation of {uri}"):
        found = alias.client.get_model_version(alias.model, version)
        run, evaluation = logged_for(alias.client, found, role)
        return Logged(version, evaluation, run)


@contextlib.contextmanager
def _with_remedy(alias: Alias, version: str, role: str) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(
            f"version {version} of {alias.model} has no evaluation of role {role!r} to decide by ({error}). "
            f'Log one: rankeval_mlflow.log_evaluation(ev, role="{role}", model_version="{alias.model}/{version}")'
        ) from error


def _data(logged: Logged, role: str) -> LoggedData:
    described = judged_data(logged.evaluation, role)
    for used in logged.run.inputs.dataset_inputs:
        tags = {tag.key: tag.value for tag in used.tags}
        if tags.get("rankeval.role") == role and tags.get("rankeval.digest"):
            return LoggedData(used.dataset.name, tags["rankeval.digest"], role, described.n_rows, described.n_queries)
    return described


def _remedy(alias: Alias, role: str) -> str:
    return (
        "Versions are compared on the same frozen content only: evaluate both on it by the same rules, and log each "
        f'with rankeval_mlflow.log_evaluation(ev, role="{role}", model_version="{alias.model}/VERSION")'
    )


def _plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as JSON can hold them; numbers that are not finite are words, as in `Comparison.to_json`."""
    import math

    def plain(value: Any) -> Any:
        value = value.item() if hasattr(value, "item") else value
        return repr(value) if isinstance(value, float) and not math.isfinite(value) else value

    return [{str(key): plain(value) for key, value in row.items()} for row in table.to_dict("records")]


def by_gate(
    alias: Alias, version: str, holder: str | None, gate: Gate, role: str, systems: tuple[Any | None, Any | None]
) -> Decided:
    """Let a gate decide.

    Parameters
    ----------
    alias : Alias
        The alias.
    version : str
        The candidate.
    holder : str or None
        The version in use; without one, the candidate is compared with the baseline that the gate knows.
    gate : Gate
        The gate.
    role : str
        The role of the collection.
    systems : tuple
        Scores or runs of candidate and holder; None: those that the models predict.
    """
    given, used = systems
    candidate = scores_of(alias, version, gate.test) if given is None else given
    if used is None and holder is not None:
        used = scores_of(alias, holder, gate.test)
    decision = gate.decide(f"{alias.model} v{version}", candidate, baseline=used)
    test, terms = gate.test, gate.terms
    sources = {
        "candidate": "predicted by the model" if given is None else "given by the caller",
        "holder": "given by the caller"
        if systems[1] is not None
        else "predicted by the model"
        if holder
        else "kept by the gate",
    }
    facts = {
        "scores": sources,
        "gate": {"name": gate.name, "remaining": decision.remaining, "is_new": decision.is_new},
        "rule": {name: value for name, value in terms.content().items() if name != "convention"},
        "role": role,
        "convention": terms.convention.card(),
        "judgments": test.digest,
        "n_queries": test.n_queries,
        "ledger": test.ledger,
    }
    data = LoggedData(test.name, test.digest, role, test.n_rows, test.n_queries)
    verdict = "accepts" if decision.accepted else "does not accept"
    said = f"Gate {gate.name!r} on {test.name!r} {verdict} it; {count(decision.remaining, 'decision')} left."
    if not decision.is_new:
        said += " The same rankings were decided on before, or are equal, which is free."
    if callers := [name for name, source in sources.items() if source == "given by the caller"]:
        said += f" The caller gave the scores of the {' and the '.join(callers)}; no model was asked for them."
    if decision.n_exposed:
        said += (
            f" {count(decision.n_exposed, 'query')} of the collection were looked at outside of this gate, so its "
            "level may not hold."
        )
    return Decided(decision.accepted, said, data, facts, decision=decision)


def scores_of(alias: Alias, version: str, test: RegisteredCollection) -> Any:
    """Return the scores that the model of a version predicts for the rows of a registered collection.

    Raises
    ------
    InvalidInput
        If the collection has no features, or the model cannot be loaded or gives no score a row.
    """
    X = test.content.X
    if X is None:
        raise InvalidInput(
            f"{test.name!r} was registered without features, so no model can score it: give the rankings by candidate= "
            "and holder="
        )
    uri = f"models:/{alias.model}/{version}"
    try:
        predicted = np.asarray(_predicted(uri, X), dtype=np.float64)
    except Exception as error:  # a model raises whatever its own library raises
        raise InvalidInput(
            f"{uri} gives no scores for {test.name!r} ({type(error).__name__}: {reason(error)}): give its scores, one "
            "a row, by candidate= or holder="
        ) from error
    scores = predicted[:, 0] if predicted.ndim == 2 and predicted.shape[1] == 1 else predicted
    if scores.shape != (test.n_rows,):
        raise InvalidInput(
            f"{uri} predicts an array of shape {predicted.shape} for the {count(test.n_rows, 'row')} of {test.name!r}: "
            "give its scores, one a row, by candidate= or holder="
        )
    return scores


def _predicted(uri: str, X: Any) -> Any:
    """Predict with the logged model; columns are named as its signature names them."""
    import mlflow
    import pandas as pd

    model = mlflow.pyfunc.load_model(uri)
    schema = model.metadata.get_input_schema()
    names = schema.input_names() if schema is not None and schema.has_input_names() else None
    if names and hasattr(X, "columns"):
        X = X[names]
    elif hasattr(X, "columns"):
        X = X.drop(columns="qid", errors="ignore")  # a column of query ids is no feature
    elif schema is not None and not schema.is_tensor_spec():
        X = pd.DataFrame(X, columns=names)
    return model.predict(X)
