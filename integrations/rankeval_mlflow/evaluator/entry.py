"""The class that MLflow loads from the entry point ``rankeval`` of the group ``mlflow.model_evaluator``.

MLflow loads it while ``import mlflow`` runs, and forgives only AttributeError and ImportError
there. So this module imports MLflow's base class and nothing else; an evaluation imports the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlflow.models.evaluation.base import ModelEvaluator

if TYPE_CHECKING:
    from mlflow.models.evaluation import EvaluationResult

MODEL_TYPE = "ranker"


class RankevalEvaluator(ModelEvaluator):  # type: ignore[misc]  # MLflow is not typed
    """Evaluates rankers for `mlflow.models.evaluate` with the measures of `rankeval.evaluate`.

    The keys of ``evaluator_config`` are the fields of
    `rankeval_mlflow.evaluator.evaluating.Settings`.

    Examples
    --------
    >>> import mlflow, pandas as pd
    >>> data = pd.DataFrame({"qid": ["a", "a", "b"], "relevance": [0, 1, 1], "score": [0.2, 0.1, 0.3]})
    >>> evaluator = RankevalEvaluator()
    >>> evaluator.can_evaluate(model_type="ranker", evaluator_config={})
    True
    >>> dataset = mlflow.data.from_pandas(data, targets="relevance", predictions="score").to_evaluation_dataset()
    >>> with mlflow.start_run() as run:
    ...     result = evaluator.evaluate(
    ...         model_type="ranker", dataset=dataset, run_id=run.info.run_id, evaluator_config={"measures": "RR"}
    ...     )
    >>> result.metrics["RR"]
    0.75
    """

    @classmethod
    def can_evaluate(cls, *, model_type: Any, evaluator_config: Any, **_: Any) -> bool:  # noqa: ARG003 - MLflow's signature
        """Return whether the model is a ranker: ``evaluators=None`` asks every evaluator about every model type."""
        return bool(model_type == MODEL_TYPE)

    def evaluate(
        self,
        *,
        model_type: str,  # noqa: ARG002 - `can_evaluate` has seen it
        dataset: Any,
        run_id: str,
        evaluator_config: Any,
        model: Any = None,
        extra_metrics: Any = None,
        custom_artifacts: Any = None,
        predictions: str | None = None,
        **more: Any,
    ) -> EvaluationResult:
        """Score the model's ranking, log the evaluation to the run, and return its metrics and artifacts."""
        try:
            from rankeval_mlflow.evaluator.evaluating import evaluate_ranker, refuse_extras
        except ImportError:
            raise
        except Exception as error:
            raise ImportError(f"the evaluator 'rankeval' cannot be loaded: {error!r}") from error
        refuse_extras(extra_metrics=extra_metrics, custom_artifacts=custom_artifacts)
        return evaluate_ranker(
            dataset, run_id, evaluator_config, model, more.get("model_id"), predictions
        )
