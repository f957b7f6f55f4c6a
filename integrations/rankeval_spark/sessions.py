"""The session of Spark that a DataFrame belongs to: which ones are served, and what their failures mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankeval.errors import InvalidInput

OLDEST = (4, 0)
"""The oldest Spark that the tests run on."""


def refuse_session(df: Any) -> None:
    """Refuse anything but a DataFrame of a classic session that is new enough.

    Parameters
    ----------
    df : object
        The DataFrame.

    Raises
    ------
    InvalidInput
        If it is none, is of Spark Connect, or Spark is too old.
    """
    try:
        import pyspark
    except ImportError:
        raise InvalidInput('rankeval_spark needs PySpark: python -m pip install "rankeval-mlflow[spark]"') from None
    oldest = ".".join(map(str, OLDEST))
    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < OLDEST:
        raise InvalidInput(f"this is PySpark {pyspark.__version__}; rankeval_spark needs {oldest} or newer")
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        kind = f"{type(df).__module__}.{type(df).__qualname__}"
        raise InvalidInput(
            f"df: expected a DataFrame of pyspark.sql, found a {kind}; rankeval.evaluate takes arrays, frames and files"
        )
    if type(df).__module__.startswith("pyspark.sql.connect"):
        raise InvalidInput(
            "df: this DataFrame is of Spark Connect, which has no broadcasts; give one of a classic session "
            "(SparkSession.builder.master(...)), or write the rows as Parquet"
        )


@contextmanager
def explained() -> Iterator[None]:
    """Say it in one sentence if the executors lack this package."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if "No module named 'rankeval" not in str(error):
            raise
        raise InvalidInput(
            "the executors of Spark cannot import rankeval: install rankeval-mlflow there, or send them its wheel "
            'under a name that ends in .zip: spark.sparkContext.addPyFile("rankeval_mlflow.zip")'
        ) from error
