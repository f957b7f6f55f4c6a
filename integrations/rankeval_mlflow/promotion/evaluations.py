"""The logged evaluations of two versions, and the decision on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankeval.errors import ConventionMismatch, InvalidInput, QueryIdError
from rankeval.evaluation.labels import labels_of
from rankeval.tracking import LoggedData
from rankeval_mlflow.packing.datasets import judged_data
from rankeval_mlflow.promotion.registry import Alias, asking
from rankeval_mlflow.promotion.rules import Rule, decide
from rankeval_mlflow.reading.versions import logged_for

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation
    from rankeval.guard.gate.decisions import Decision


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
    """Return what was asked, and of which runs."""
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
    """Return the evaluation of a version, or say what to log."""
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
    """Return the test content under the name that the run knows it by."""
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
