"""The session of Spark that a DataFrame belongs to: which ones are served, how they cut rows, what failures mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankeval.errors import InvalidInput

OLDEST = (4, 0)
"""The oldest Spark that the tests run on."""

ROWS = 1_500_000
"""Rows in a partition: enough that its start does not count, few enough for the memory of any executor."""

_LEAST_ROWS = 100_000
_BYTES_A_ROW = 12  # of the columns of an evaluation, in Parquet


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


def partitions_for(rows: Any) -> int:
    """Return a number of partitions for the shuffle: `ROWS` rows each, and all cores busy if the rows are worth it.

    Without a number Spark makes 200 of any data, since adaptive execution leaves a cached shuffle as it is; each costs
    a fifth of a second (bench_spark). The number comes from the optimizer's estimate of the size, which costs nothing.
    Estimates of joins are far too large at times, and some sources have none: if the estimate asks for more partitions
    than the session's default, the rows are counted.

    Parameters
    ----------
    rows : DataFrame
        The columns that an evaluation reads.
    """
    session = rows.sparkSession
    size = int(str(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))  # noqa: SLF001 - no other way
    n_rows = size // _BYTES_A_ROW
    if n_rows > ROWS * int(session.conf.get("spark.sql.shuffle.partitions")):
        n_rows = rows.count()
    busy = min(session.sparkContext.defaultParallelism, -(-n_rows // _LEAST_ROWS))
    return int(max(1, busy, -(-n_rows // ROWS)))


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
            'under a name that ends in .zip: spark.sparkContext.addPyFile("rankeval_mlflow.zip"); if their Python is '
            "another one, name yours by the environment variable PYSPARK_PYTHON"
        ) from error
