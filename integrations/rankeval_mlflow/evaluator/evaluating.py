"""The evaluation of a ranker for MLflow: settings, rows, scores, guard, measures, log, result.

The trap: if there is a logged model, `mlflow.models.evaluate` logs the metrics that come back from
here, to the run and to the model. So the upload leaves them out then, and each metric is there
once. Without a model, only the upload logs them. A kill between the two leaves a whole evaluation
without metrics in the run; they can be computed from it.

The trap: MLflow leaves the columns of ids among the features, and a model would take them for
features.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import mlflow
import numpy as np
from mlflow.models.evaluation import EvaluationResult
from mlflow.models.evaluation.artifacts import JsonEvaluationArtifact, ParquetEvaluationArtifact
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, StrictBool, ValidationError

from rankeval._arguments import gone
from rankeval._checks import few, refuse, require, shown
from rankeval._registry import unknown
from rankeval.collection.convention import Convention
from rankeval.collection.rows import check_rows, index_of, same_rows
from rankeval.collection.run import Run
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.evaluation import DEFAULT_MEASURES, Evaluation, evaluate
from rankeval.guard import Guard
from rankeval.io import columns
from rankeval.ledger import discovery
from rankeval.measures import measures as parse_measures
from rankeval.shelf.record import checked_word
from rankeval_mlflow.delivery.addresses import now_ms
from rankeval_mlflow.delivery.connection import store
from rankeval_mlflow.delivery.payload import Node, Payload, Target, manifest
from rankeval_mlflow.delivery.sending import deliver
from rankeval_mlflow.packing.nodes import node_of
from rankeval_mlflow.recording import hint_at_guard
from rankeval_mlflow.run_names import ROLE, evaluation_path, manifest_path

# The names that the arguments have in errors.
_CONFIG, _HERE = "evaluator_config", "predictions"

# The name of the evaluator, under which a nested ``evaluator_config`` has our keys.
NAME = "rankeval"

_ACTION = "mlflow.models.evaluate"
# MLflow's name for a data set without one.
_UNNAMED = "dataset"


class EvaluatorSettings(BaseModel):
    """The settings of an evaluation, checked before the model predicts."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, use_attribute_docstrings=True
    )

    qid: Any = "qid"
    """Column or level of the index with the query of each row, or an array."""
    docid: Any = None
    """Column of the document of each row, or an array."""
    query_weight: Any = None
    """Weights of the queries: a column, an array, or a mapping by query."""
    qrels: Any = None
    """Judgments of a collection, as rankeval.evaluate takes them, instead of targets: for rankings without
    every judged document; needs docid."""
    measures: Any = DEFAULT_MEASURES
    """Measures, as rankeval.evaluate takes them."""
    convention: str | Convention = "rankeval"
    """Name of a preset, or a Convention, such as rk.Convention.with_rules(ties="docid")."""
    guard: Any = None
    """A Guard or the place of a ledger whose collections are refused too, beside the ledger of the project."""
    role: Annotated[str, AfterValidator(checked_word)] = "dev"
    """Role of the data: dev, test or another plain word."""
    data: str | None = None
    """Name of the data set; by default the name of MLflow's Dataset."""
    name: str | None = None
    """Name of the system; by default of the logged model, or of the column of predictions."""
    report: StrictBool = True
    """Whether the run gets a report in HTML."""
    pass_ids: StrictBool = False
    """Whether the model gets the columns of qid, docid and query_weight even if its signature lacks them."""

    @classmethod
    def of(cls, evaluator_config: Mapping[str, Any] | None) -> EvaluatorSettings:
        """Read an ``evaluator_config``, flat or nested under the name of the evaluator."""
        config = {} if evaluator_config is None else evaluator_config
        if isinstance(config, Mapping) and set(config) == {NAME}:
            config = config[NAME]
        require(isinstance(config, Mapping), _CONFIG, config, "a mapping of keys")
        if answer := gone(config, cls.model_fields):
            raise answer.having(where=_CONFIG)
        for key in config:
            if key not in cls.model_fields:
                raise unknown("key of evaluator_config", key, cls.model_fields)
        try:
            settings = cls(**config)
        except ValidationError as error:
            raise _refusal(error) from error
        # A misspelt name is an error before the model predicts.
        parse_measures(settings.measures, settings.convention)
        return settings

    def respect_guard(self) -> None:
        """Look into the ledger that ``guard`` names, too."""
        if self.guard is None:
            return
        where = self.guard.ledger if isinstance(self.guard, Guard) else self.guard
        url = discovery.ledger_url(where) if isinstance(where, (str, os.PathLike)) else ""
        off = f"no ledger, since {discovery.VARIABLE} or pyproject.toml switch ledgers off for this process"
        require(bool(url), "guard", where, "a Guard, or the place of its ledger", _CONFIG)
        require(discovery.default_url() is not None, "guard", where, off, _CONFIG)
        require(discovery.may_exist(url), "guard", where, "a ledger that exists", _CONFIG)
        if not isinstance(
            self.guard, Guard
        ):  # which is watched, and whose address is shown without its password
            discovery.watch(url)


def _refusal(error: ValidationError) -> InvalidInput:
    first = error.errors(include_url=False)[0]
    ours = first.get("ctx", {}).get("error")  # what a validator of `EvaluatorSettings` raised
    if isinstance(ours, InvalidInput):
        return ours.having(where=_CONFIG)
    key = str(first["loc"][0])
    found = shown(first["input"])
    return InvalidInput(f"{first['msg']}, found {found}", where=_CONFIG, argument=key, found=found)


@dataclass(frozen=True)
class EvaluatedRows:
    """The columns of an evaluation, one value a row."""

    features: Any  # (n_rows, n_columns): Everything but targets and predictions, ids included
    ids: tuple[str, ...]  # The columns of the features that hold ids or weights
    qid: Any  # (n_rows,): The columns. Weights may also be a mapping by query.
    docid: Any = None
    query_weight: Any = None
    relevance: Any = None

    @classmethod
    def of(cls, dataset: Any, settings: EvaluatorSettings) -> EvaluatedRows:
        """Take the columns that the settings name."""
        features = dataset.features_data
        keys = {"qid": settings.qid, "docid": settings.docid, "query_weight": settings.query_weight}
        taken = {key: _column(features, key, column) for key, column in keys.items()}
        ids = tuple(
            column
            for column in keys.values()
            if isinstance(column, str) and column in _names(features)
        )
        if settings.qrels is not None:
            _refuse_two_truths(dataset, settings)
            return cls(features, ids, **taken)
        missing = (
            "targets is missing: name the column with the relevance (for a Dataset: from_pandas(..., targets=)), "
            "or give the judgments of a collection as the key 'qrels' of evaluator_config"
        )
        refuse((not dataset.has_targets, missing))
        relevance = columns.labels(dataset.labels_data, "targets")
        columns.refuse_unbounded(relevance, "targets")
        return cls(features, ids, **taken, relevance=relevance)

    def for_model(self, named: Iterable[str], *, pass_ids: bool) -> Any:
        """Return the features for the model."""
        dropped = [] if pass_ids else [name for name in self.ids if name not in set(named)]
        return self.features.drop(columns=dropped) if dropped else self.features

    def for_guard(self) -> Any | None:
        """Return the features that are numbers, by which registered content is recognised; None without any."""
        bare = self.for_model((), pass_ids=False)
        if hasattr(bare, "select_dtypes"):
            bare = bare.select_dtypes(["number", "bool"])
        elif np.asarray(bare).dtype.kind not in "biuf":
            return None
        return bare if bare.shape[1] else None


def _column(features: Any, key: str, column: Any) -> Any:
    if isinstance(column, str):
        return _named(features, key, column)
    if column is None:
        if key == "qid":
            expected = "the column with the query of each row"
            raise QueryIdError(where=_CONFIG, argument=key, found="None", expected=expected)
        return None
    if hasattr(column, "items") and key == "query_weight":
        return column  # by query
    fits = hasattr(column, "__len__") and len(column) == len(features)
    require(fits, key, column, f"one value for each of {len(features)} rows of data", _CONFIG)
    check_rows(data=features, **{key: column})
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def _named(features: Any, key: str, name: str) -> Any:
    if name in _names(features):
        return features[name].to_numpy()
    index = getattr(features, "index", None)
    if index is not None and name in index.names:
        return index.get_level_values(name).to_numpy()
    wrong = unknown(
        f"column (evaluator_config: {key})", name, _names(features), summary="it is not in the data"
    )
    raise wrong.having(
        remedy=f"give {key} as an array if the column is not among the features that MLflow has"
    )


def _names(features: Any) -> list[Any]:
    return list(getattr(features, "columns", ()))


def _refuse_two_truths(dataset: Any, settings: EvaluatorSettings) -> None:
    twice = "the targets give judgments too: leave them out, or qrels, which has documents that the ranking lacks"
    by_row = settings.query_weight is not None and not hasattr(settings.query_weight, "items")
    refuse(
        (dataset.has_targets, twice),
        (settings.docid is None, "it needs docid, the column with the document of each row"),
        (by_row, "it needs query_weight as a mapping by query, since some queries have no row"),
        where=_CONFIG,
        argument="qrels",
    )


def static_scores(dataset: Any) -> NDArray[Any]:
    """Return the predictions that the data set holds."""
    neither = (
        "there is neither a model nor predictions: give model=, or name the column of the scores "
        "(predictions=; for a Dataset: from_pandas(..., predictions=))"
    )
    refuse((not dataset.has_predictions, neither))
    return _checked(dataset.predictions_data, len(dataset.features_data))


def predicted_scores(
    model: Any, rows: EvaluatedRows, column: str | None, *, pass_ids: bool
) -> NDArray[Any]:
    """Return what the model predicts."""
    features = rows.for_model(_signature(model), pass_ids=pass_ids)
    output = _one_column(model.predict(features), column)
    index: Any = index_of(output)
    ours = index_of(features)
    known = index is not None and len(index) == len(features)
    kept = known and (
        np.array_equal(index, range(len(features))) or (ours is not None and same_rows(index, ours))
    )
    other = f"{_HERE}: the model returned a Series whose index is not that of the data, in the same order"
    refuse((known and not kept, other, "return an array in the order of the rows"))
    return _checked(output, len(features))


def _signature(model: Any) -> Iterable[str]:
    # A Python function has no signature.
    metadata = getattr(model, "metadata", None)
    schema = None if metadata is None else metadata.get_input_schema()
    return schema.input_names() if schema is not None and schema.has_input_names() else ()


def _one_column(output: Any, column: str | None) -> Any:
    if not isinstance(output, Mapping) and not hasattr(output, "columns"):
        if column is not None and getattr(output, "name", None) != column:
            raise InvalidInput(
                f"predictions={column!r} names a column of the model's output, but the model returned a "
                f"{type(output).__name__} without columns; leave predictions= out"
            )
        return columns.as_column(output)
    names = list(getattr(output, "columns", output))
    chosen = column or next(iter(names), None)
    if column is None and len(names) != 1:
        raise InvalidInput(
            f"{_HERE}: the model returned {len(names)} columns ({few(names)})",
            remedy="choose one with predictions=",
        )
    if chosen not in names:
        raise unknown("column of the model's output (predictions=)", chosen, names)
    return output[chosen]


def _checked(values: Any, n_rows: int) -> NDArray[Any]:
    n = len(values) if hasattr(values, "__len__") else None
    refuse(
        (n is None, f"{_HERE}: expected one number a row, found a {type(values).__name__}"),
        (n != n_rows, f"{_HERE}: {n} values for {n_rows} rows of data; expected one number a row"),
    )
    scores = columns.scores(values, _HERE)
    columns.refuse_unbounded(scores, _HERE)
    return scores


def refuse_extras(**extras: Any) -> None:
    """Refuse metrics and artifacts of MLflow's own kind."""
    ways = {
        "extra_metrics": "they score rows, and a ranking is scored by query: give a measure of your own as "
        "evaluator_config={'measures': [..., your_measure]}; the guide own_measure.md shows how to write one",
        "custom_artifacts": "they are not made here: log them to the run yourself (mlflow.log_artifact, "
        "mlflow.log_figure); result.artifacts['per_query'].content has the scores of the queries",
    }
    for name, value in extras.items():
        if value:
            raise InvalidInput(ways[name], argument=name)


def evaluate_ranker(
    dataset: Any,
    run_id: str,
    config: Mapping[str, Any] | None,
    model: Any,
    model_id: str | None,
    column: str | None,
) -> EvaluationResult:
    """Score a ranking, log the evaluation to the run, and return its metrics and artifacts."""
    settings = EvaluatorSettings.of(config)
    settings.respect_guard()
    rows = EvaluatedRows.of(dataset, settings)
    if model is None:
        scores = static_scores(dataset)
        name = str(dataset.predictions_name)
    else:
        scores = predicted_scores(model, rows, column, pass_ids=settings.pass_ids)
        name = None
    # By the features: `rankeval.evaluate` sees labels and documents only.
    features = rows.for_guard() if settings.qrels is None and discovery.active_urls() else None
    if features is not None:
        ContaminationCheck.current().refuse(
            features, rows.relevance, rows.qid, docid=rows.docid, score=scores, action=_ACTION
        )
    if model_id and not settings.name:
        name = str(mlflow.get_logged_model(model_id).name)
    evaluation = _evaluated(rows, scores, settings, settings.name or name)
    named = None if dataset.name in {_UNNAMED, dataset.hash} else str(dataset.name)
    node = node_of(
        evaluation.record(role=settings.role, data=settings.data or named), report=settings.report
    )
    target = Target(uri=store(None), registry_uri=mlflow.get_registry_uri(), run_id=run_id)
    # MLflow logs what comes back from here for a logged model, and to the run.
    deliver(Payload(target, node, now_ms(), {}, model_id), aggregates=model_id is None)
    hint_at_guard(evaluation, settings.role)
    return _result(node, evaluation, settings.role, run_id)


def _evaluated(
    rows: EvaluatedRows, scores: NDArray[Any], settings: EvaluatorSettings, name: str | None
) -> Evaluation:
    rules: dict[str, Any] = {
        "measures": settings.measures,
        "convention": settings.convention,
        "query_weight": rows.query_weight,
        "name": name,
    }
    if settings.qrels is not None:
        return evaluate(settings.qrels, Run(rows.qid, rows.docid, scores), **rules)
    return evaluate(rows.relevance, scores, qid=rows.qid, docid=rows.docid, **rules)


def _result(node: Node, evaluation: Evaluation, role: str, run_id: str) -> EvaluationResult:
    run = mlflow.get_run(run_id)
    prefix = "" if run.data.tags[ROLE] == role else f"{role}/"
    metrics = {
        f"{prefix}{key}": value for scores in node.scores for key, value in scores.metrics.items()
    }
    folder = run.info.artifact_uri
    # With their content: MLflow saves what is there, and downloads nothing then.
    facts = json.loads(manifest(node))
    artifacts = {
        f"{prefix}per_query": ParquetEvaluationArtifact(
            f"{folder}/{evaluation_path(role)}", evaluation.per_query
        ),
        f"{prefix}manifest": JsonEvaluationArtifact(f"{folder}/{manifest_path(node.label)}", facts),
    }
    return EvaluationResult(metrics, artifacts, run_id)
