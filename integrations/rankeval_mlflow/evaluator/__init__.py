"""The evaluator that `mlflow.models.evaluate(model_type="ranker")` finds by its entry point."""
