"""Each call scores the rows of its own time once, and keeps its scores whatever happens to the rows later."""

from __future__ import annotations

import pytest

import rankeval_spark

pytestmark = pytest.mark.spark

ASKED = {"qid": "q", "relevance": "y", "score": "s", "measures": "AP", "partitions": 2}
FIRST, SECOND = 1.0, 0.5
"""AP before and after the scores are turned around."""


def frame(spark, sign):
    return spark.createDataFrame([(1, 1, 2.0 * sign), (1, 0, 1.0 * sign)], "q long, y int, s double")


def ap(result):
    found = result.evaluation.aggregate()["AP"]
    assert [row["AP"] for row in result.scores.collect()] == [found]
    return found


def kept(spark):
    return len(spark.sparkContext._jsc.getPersistentRDDs())


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_files_that_change_between_two_calls_are_read_again(spark, tmp_path, form):
    """Spark's cache of plans takes two reads of one path for the same, and would return the first call's scores."""

    def evaluated(sign):
        table = frame(spark, sign).toPandas()
        getattr(table, f"to_{form}")(tmp_path / "rows", index=False)
        reader = spark.read.schema("q long, y int, s double").option("header", form == "csv")
        return rankeval_spark.evaluate(getattr(reader, form)(str(tmp_path / "rows")), **ASKED)

    with evaluated(1) as first, evaluated(-1) as second:
        assert (ap(first), ap(second)) == (FIRST, SECOND)
    assert kept(spark) == 0


def test_rows_that_spark_overwrites_after_the_call_change_no_score(spark, tmp_path):
    """Spark throws cached plans that read a path away when it writes there, and all of them in clearCache."""
    path = str(tmp_path / "rows")
    frame(spark, 1).write.parquet(path)
    with rankeval_spark.evaluate(spark.read.parquet(path), **ASKED) as result:
        frame(spark, -1).write.mode("overwrite").parquet(path)
        spark.catalog.clearCache()
        assert ap(result) == FIRST


def test_rows_are_read_once_in_a_call_and_another_result_of_them_may_be_released(spark):
    from pyspark.sql import functions

    read = spark.sparkContext.accumulator(0)

    def counted(score):
        read.add(1)
        return score

    score = functions.udf(counted, "double").asNondeterministic()("s")
    rows = frame(spark, 1).withColumn("s", score)
    first, second = (rankeval_spark.evaluate(rows, **ASKED) for _ in range(2))
    assert read.value == 4
    with second:
        first.release()
        assert ap(second) == FIRST
    assert read.value == 4
    assert kept(spark) == 0


def test_scores_taken_before_the_release_are_those_of_the_call_after_it(spark, tmp_path):
    """They are scored again, but from the shuffled rows: the rows are not read again."""
    from pyspark.sql import functions

    turned = tmp_path / "turned"
    score = functions.udf(lambda score: -score if turned.exists() else score, "double").asNondeterministic()("s")
    with rankeval_spark.evaluate(frame(spark, 1).withColumn("s", score), **ASKED) as result:
        scores = result.scores
    turned.touch()
    assert scores.first()["AP"] == FIRST
    assert kept(spark) == 0
