from rankeval_spark.evaluating import evaluate as evaluate
from rankeval_spark.result import SparkEvaluation as SparkEvaluation

__all__ = ["SparkEvaluation", "evaluate"]
