from rankeval_spark.evaluating import SparkEvaluation as SparkEvaluation
from rankeval_spark.evaluating import evaluate as evaluate

__all__ = ["SparkEvaluation", "evaluate"]
