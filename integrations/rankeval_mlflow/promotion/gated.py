"""The decision of a guard's gate on two versions: one bit, and the decisions that are left.

Nobody evaluates the versions beforehand: that would be a look. The gate ranks its registered queries by the scores of
the two models, compares, and tells whether it accepts. No score, no difference and no p-value comes out, so none can
reach a run or a tag.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankeval._checks import count
from rankeval.errors import InvalidInput
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.gate.gate import Gate
from rankeval.tracking import LoggedData
from rankeval_mlflow.delivery.refusals import reason
from rankeval_mlflow.promotion.evaluations import Decided
from rankeval_mlflow.promotion.registry import Alias


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
