"""Pack an Evaluation and its data set: what a run holds of one.

The layout of role ``dev``; at a step of training, the folder is ``rankeval/dev/step-3/``::

    params     system, measure (the first), convention, data, role
    metrics    nDCG_at_10 ...                   the keys of the measures; dev/nDCG_at_10 if the run already has an
               nDCG_at_10_ci_low, _ci_high      evaluation of another role (`rankeval.role` names the first)
    tags       rankeval.kind, rankeval.card     the convention
    facts      of the role, in the manifest: canonical spelling of the measures, card, digests, data, values not finite
    artifacts  rankeval/dev/evaluation.parquet  the whole evaluation with the scores of every query, bit for bit
               rankeval/dev/queries.json        drawn: the worst queries as MLflow shows tables
               rankeval/dev/report.html         drawn
    inputs     the data set, role as context, full digest in the tag `rankeval.digest`
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import rankeval
from rankeval.evaluation.result import by_name, to_bytes
from rankeval.tracking import LoggedData
from rankeval_mlflow.delivery.payload import DatasetUse, Node, Rendering, Scores
from rankeval_mlflow.layout import (
    CARD,
    INTERVAL_ENDS,
    KIND,
    checked_role,
    evaluation_path,
    folder,
    label_of,
    param_text,
    safe_names,
    sha256,
    short_digest,
    short_name,
)
from rankeval_mlflow.views import QUERIES, evaluation_section, intervals

if TYPE_CHECKING:
    from rankeval.evaluation import Evaluation

CLOSE = 1e-9
"""Difference that a store's columns and JSON may leave in an aggregate."""


def judged_data(evaluation: Evaluation, role: str, name: str | None = None) -> LoggedData:
    """Describe the data set of an evaluation by the evaluation alone.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    role : str
        The role of the data.
    name : str, optional
        Its name; by default one with the start of the digest of the judgments.
    """
    digest = evaluation.judgments_digest
    rows = int(evaluation.facts.query_counts["retrieved"].sum())
    return LoggedData(name or f"judgments-{short_digest(digest)[:8]}", digest, role, rows, evaluation.n_queries)


def dataset_use(data: LoggedData) -> DatasetUse:
    """Return the data set input of a run.

    Parameters
    ----------
    data : LoggedData
        The data set.
    """
    profile = {"num_rows": data.n_rows, "num_queries": data.n_queries}
    return DatasetUse(data.name, data.digest, checked_role(data.role), data.source, profile)


def evaluation_node(
    evaluation: Evaluation,
    role: str,
    data: LoggedData | None = None,
    said: str = "",
    *,
    step: int | None = None,
    report: bool = True,
) -> Node:
    """Pack an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    role : str
        The role of its data.
    data : LoggedData, optional
        The data set; by default one that has only the digest of the judgments.
    said : str
        A sentence for the page.
    step : int, optional
        The epoch or other step of training.
    report : bool
        Whether a report is drawn.
    """
    label = label_of(role, step)
    data = data or judged_data(evaluation, role)
    values = aggregates(evaluation)
    limits = intervals(evaluation)
    whole = to_bytes(evaluation)
    scores = Scores(
        role=role,
        metrics=_metrics(evaluation, values, limits),
        dataset_name=data.name,
        dataset_digest=data.digest,
        evaluation_sha256=sha256(whole),
        step=step or 0,
    )
    drawn = _drawings(label, {"role": role, "said": said, "report": report, "table": step is None})
    has_table = step is None and evaluation.n_queries > 0
    table = f"{folder(label)}/{QUERIES}" if has_table else None
    return Node(
        name=short_name(evaluation.name, most=200) if evaluation.name else f"{role} evaluation",
        label=label,
        params=evaluation_params(evaluation, data, role),
        tags={KIND: "evaluation", CARD: card_text(evaluation)},
        facts={role: _facts(evaluation, data, values)},
        scores=(scores,),
        datasets=(dataset_use(data),),
        files={evaluation_path(label): whole},
        renderings=(Rendering(**drawn, tables=(QUERIES,) if has_table else ()),) if report or has_table else (),
        # A later step takes the place of an earlier one in the description, which has room for few.
        sections={role: evaluation_section(evaluation, role, limits, step=step, table=table)},
    )


def _drawings(label: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "evaluation", "source": evaluation_path(label), "into": folder(label), "options": options}


def evaluation_params(evaluation: Evaluation, data: LoggedData, role: str) -> dict[str, str]:
    """Return the parameters by which runs are told apart in MLflow's tables and charts.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    data : LoggedData
        Its data set.
    role : str
        The role of the data.
    """
    system = {"system": short_name(evaluation.name)} if evaluation.name else {}
    first = param_text(evaluation.measure_names[0])
    return {**system, "measure": first, "convention": evaluation.convention.name, "data": data.name, "role": role}


def card_text(evaluation: Evaluation) -> str:
    """Return the name of the convention, and the start of the digest of its card.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    """
    card = json.dumps(evaluation.convention.card(), sort_keys=True)
    return f"{evaluation.convention.name} {sha256(card.encode())[:12]}"


def aggregates(evaluation: Evaluation) -> dict[str, float]:
    """Return the aggregate of every measure by its key.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    """
    keys = keys_of(evaluation)
    values = evaluation.aggregate().to_numpy(dtype=float)
    return {keys[label]: float(value) for label, value in zip(evaluation.measure_names, values, strict=True)}


def keys_of(evaluation: Evaluation) -> dict[str, str]:
    """Return the metric name of every measure by its label: the key, made safe for a user's own measures.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    """
    safe = safe_names(dict.fromkeys(measure.key for measure in evaluation.measures))
    return {label: safe[measure.key] for label, measure in by_name(evaluation).items()}


def _metrics(
    evaluation: Evaluation, values: dict[str, float], limits: dict[str, tuple[float, float]]
) -> dict[str, float]:
    keys = keys_of(evaluation)
    ends = {
        f"{keys[label]}{side}": end
        for label, pair in limits.items()
        for side, end in zip(INTERVAL_ENDS, pair, strict=True)
    }
    # MLflow's tables have the order of this mapping. A measure of a user may have the name of an end: it stays.
    return {key: value for key, value in {**values, **ends, **values}.items() if math.isfinite(value)}


def _facts(evaluation: Evaluation, data: LoggedData, values: dict[str, float]) -> dict[str, Any]:
    keys = keys_of(evaluation)
    return {
        "system": evaluation.name,
        "measures": {keys[label]: str(measure) for label, measure in by_name(evaluation).items()},
        "convention": evaluation.convention.card(),
        "judgments": evaluation.judgments_digest,
        "ranking": evaluation.ranking_digest,
        "data": {"name": data.name, "digest": data.digest},
        # MLflow turns infinity into the largest float, and nan of a model's metric into 0: neither is sent.
        "not_finite": {key: repr(value) for key, value in values.items() if not math.isfinite(value)},
        "rankeval": rankeval.__version__,
    }
