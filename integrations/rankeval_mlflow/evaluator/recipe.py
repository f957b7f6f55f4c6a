"""The evaluation of a ranker for MLflow: settings, rows, scores, guard, measures, log, result.

The trap: if there is a logged model, `mlflow.models.evaluate` logs the metrics that come back from here, to the run and
to the model. So the upload leaves them out then, and each metric is there once. Without a model, only the upload logs
them. A kill between the two leaves a whole evaluation without metrics in the run; they can be computed from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mlflow
from mlflow.models.evaluation import EvaluationResult
from mlflow.models.evaluation.artifacts import JsonEvaluationArtifact, ParquetEvaluationArtifact

from rankeval.collection.run import Run
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import InvalidInput
from rankeval.evaluation import evaluate
from rankeval.ledger import discovery
from rankeval_mlflow.delivery.addresses import now_ms, store
from rankeval_mlflow.delivery.payload import Node, Payload, Target, manifest
from rankeval_mlflow.delivery.sending import deliver
from rankeval_mlflow.evaluator.rows import Rows, predicted_scores, static_scores
from rankeval_mlflow.evaluator.settings import Settings
from rankeval_mlflow.layout import ROLE, evaluation_path, manifest_path
from rankeval_mlflow.packing.evaluation import evaluation_node, judged_data

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval.evaluation import Evaluation

_ACTION = "mlflow.models.evaluate"
_UNNAMED = "dataset"
"""MLflow's name for a data set without one."""


@dataclass(frozen=True)
class Call:
    """The arguments with which MLflow calls an evaluator.

    Parameters
    ----------
    dataset : EvaluationDataset
        The rows.
    run_id : str
        The run to log to.
    evaluator_config : mapping, optional
        The settings.
    model : pyfunc model, optional
        The ranker; None if the data set holds the predictions.
    model_id : str, optional
        The logged model.
    predictions : str, optional
        The column of the model's output that holds the scores.
    """

    dataset: Any
    run_id: str
    evaluator_config: Mapping[str, Any] | None
    model: Any = None
    model_id: str | None = None
    predictions: str | None = None


def evaluate_ranker(call: Call, *, extra_metrics: Any = None, custom_artifacts: Any = None) -> EvaluationResult:
    """Score a ranking, log the evaluation to the run, and return its metrics and artifacts.

    Parameters
    ----------
    call : Call
        The arguments.
    extra_metrics, custom_artifacts : None
        Refused.

    Raises
    ------
    InvalidInput
        If the settings or the data cannot be used.
    GuardRefusal
        If the data is registered test content.
    TrackingError
        If the store refuses; the evaluation is kept on disk.
    """
    _refuse_extras(extra_metrics, custom_artifacts)
    settings = Settings.of(call.evaluator_config)
    settings.respect_guard()
    rows = Rows.of(call.dataset, settings)
    scores = (
        static_scores(call.dataset)
        if call.model is None
        else predicted_scores(call.model, rows, call.predictions, pass_ids=settings.pass_ids)
    )
    if settings.qrels is None:
        _refuse(rows, scores)
    evaluation = _evaluated(rows, scores, settings, _system(call, settings))
    data = judged_data(evaluation, settings.role, settings.data or _data_name(call.dataset))
    node = evaluation_node(evaluation, settings.role, data, report=settings.report)
    _log(node, call)
    return _result(node, evaluation, settings.role, call.run_id)


def _refuse_extras(extra_metrics: Any, custom_artifacts: Any) -> None:
    if extra_metrics:
        raise InvalidInput(
            "extra_metrics score rows, and a ranking is scored by query: give a measure of your own as "
            "evaluator_config={'measures': [..., your_measure]}; the guide own_measure.md shows how to write one"
        )
    if custom_artifacts:
        raise InvalidInput(
            "custom_artifacts are not made here: log them to the run yourself (mlflow.log_artifact, "
            "mlflow.log_figure); result.artifacts['per_query'].content has the scores of the queries"
        )


def _refuse(rows: Rows, scores: NDArray[Any]) -> None:
    """Refuse registered test content by its features; `rankeval.evaluate` sees labels and documents only."""
    features = rows.for_guard() if discovery.active_urls() else None
    if features is not None:
        check = ContaminationCheck.current()
        check.refuse(features, rows.relevance, rows.qid, docid=rows.docid, score=scores, action=_ACTION)


def _evaluated(rows: Rows, scores: NDArray[Any], settings: Settings, name: str | None) -> Evaluation:
    """Return the evaluation by `rankeval.evaluate`, of rows or of a collection."""
    rules: dict[str, Any] = {"convention": settings.convention, "query_weight": rows.weights, **settings.single_rules}
    if settings.qrels is not None:
        ranking = Run(rows.qid, rows.docid, scores)
        return evaluate(settings.qrels, ranking, measures=settings.measures, name=name, **rules)
    return evaluate(
        rows.relevance, scores, qid=rows.qid, docid=rows.docid, measures=settings.measures, name=name, **rules
    )


def _system(call: Call, settings: Settings) -> str | None:
    """Return the name of the system: as set, else that of the logged model, else of the column of predictions."""
    if settings.name:
        return settings.name
    if call.model_id:
        return str(mlflow.get_logged_model(call.model_id).name)
    return str(call.dataset.predictions_name) if call.model is None else None


def _data_name(dataset: Any) -> str | None:
    """Return the name that the user gave to MLflow's data set; None if MLflow made one up."""
    return None if dataset.name in {_UNNAMED, dataset.hash} else str(dataset.name)


def _log(node: Node, call: Call) -> None:
    """Send the evaluation to the run; its metrics too, unless MLflow logs them for the model."""
    target = Target(uri=store(None), registry_uri=mlflow.get_registry_uri(), run_id=call.run_id)
    payload = Payload(target, node, now_ms(), {}, call.model_id)
    deliver(payload, aggregates=call.model_id is None)


def _result(node: Node, evaluation: Evaluation, role: str, run_id: str) -> EvaluationResult:
    """Return the metrics, under the names that they have in the run, and the artifacts."""
    run = mlflow.get_run(run_id)
    prefix = "" if run.data.tags[ROLE] == role else f"{role}/"
    metrics = {f"{prefix}{key}": value for scores in node.scores for key, value in scores.metrics.items()}
    folder = run.info.artifact_uri
    # With their content: MLflow saves what is there, and downloads nothing then.
    facts = json.loads(manifest(node))
    artifacts = {
        f"{prefix}per_query": ParquetEvaluationArtifact(f"{folder}/{evaluation_path(role)}", evaluation.per_query),
        f"{prefix}manifest": JsonEvaluationArtifact(f"{folder}/{manifest_path(node.label)}", facts),
    }
    return EvaluationResult(metrics, artifacts, run_id)
